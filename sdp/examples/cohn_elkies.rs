//! The least f(0) of Cohn and Elkies in dimension 8, by degrees: `cohn_elkies 20 40 60 [threads=N] [json=FOLDER]`.
//!
//! Each degree is solved, and a row of a table printed; with `json=FOLDER` the programs are written there instead, as
//! `pmp.json` files that `sunzi sdp` and SDPB's pmp2sdp read.

#[path = "../tests/inputs/cohn_elkies.rs"]
mod cohn_elkies;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use sunzi::rug::Float;
use sunzi::{Context, Result};
use sunzi_sdp::{Control, PolynomialProgram, Solver, SolverOptions};

/// Bits that the degree wants: the polynomials are far smaller than their terms.
fn bits_for(degree: usize) -> u32 {
    400 + 2 * degree as u32
}

fn list(numbers: &[Float]) -> String {
    let texts = numbers.iter().map(|number| format!("\"{}\"", number.to_string_radix(10, None)));
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// The text of `pmp.json`, for programs of one row without choices of sampling.
fn json(program: &PolynomialProgram) -> String {
    let mut text = format!("{{\"objective\": {},\n", list(&program.objective));
    if let Some(normalization) = &program.normalization {
        writeln!(text, "\"normalization\": {},", list(normalization)).expect("a string takes all");
    }
    let matrix = |entry: &Vec<Vec<Float>>| {
        let polynomials = entry.iter().map(|polynomial| list(polynomial)).collect::<Vec<_>>().join(",\n");
        format!("{{\"polynomials\": [[[{polynomials}]]]}}")
    };
    let matrices = program.matrices.iter().map(|found| matrix(&found.entries[0])).collect::<Vec<_>>().join(",\n");
    format!("{text}\"PositiveMatrixWithPrefactorArray\": [{matrices}]}}\n")
}

fn write(folder: &Path, degree: usize) -> std::io::Result<PathBuf> {
    let path = folder.join(format!("cohn_elkies_{degree}.json"));
    std::fs::write(&path, json(&cohn_elkies::program(degree, 2 * bits_for(degree))))?;
    Ok(path)
}

fn solve(degree: usize, threads: Option<usize>) -> Result<()> {
    let bits = bits_for(degree);
    let start = std::time::Instant::now();
    let problem = cohn_elkies::program(degree, 2 * bits).problem(bits)?;
    let sampling = start.elapsed().as_secs_f64();
    let mut options = SolverOptions::new(problem.form);
    options.max_iterations = 2000;
    let builder = Context::builder();
    let ctx = threads.map_or(Context::builder(), |threads| builder.threads(threads)).build()?;
    let solver = Solver::new(ctx, &problem, options)?;
    let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    let value = Float::with_val(bits, -&solution.quality.dual_objective);
    println!(
        "| {degree} | {bits} | {} | {:.3} | {:.1} | {sampling:.2} | {value:.25} | {:.3e} | {} |",
        solution.iterations,
        solution.seconds / solution.iterations.max(1) as f64,
        solution.seconds,
        Float::with_val(64, &value - 1u32),
        solution.termination,
    );
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (mut degrees, mut threads, mut folder) = (Vec::new(), None, None);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("threads", count)) => threads = Some(count.parse()?),
            Some(("json", path)) => folder = Some(PathBuf::from(path)),
            Some(_) => return Err(format!("'{word}' is neither a degree, nor threads=N, nor json=FOLDER").into()),
            None => degrees.push(word.parse::<usize>()?),
        }
    }
    if folder.is_none() {
        println!("| degree | bits | iterations | s per iteration | s | s of sampling | f(0) | f(0) - 1 | end |");
        println!("|---|---|---|---|---|---|---|---|---|");
    }
    for degree in degrees {
        match &folder {
            Some(folder) => println!("{}", write(folder, degree)?.display()),
            None => solve(degree, threads)?,
        }
    }
    Ok(())
}
