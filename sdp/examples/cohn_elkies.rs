//! The least f(0) of Cohn and Elkies in dimension 8, by degrees:
//! `cohn_elkies 20 40 60 [threads=N] [bits=N] [json=FOLDER] [certify=FOLDER] [calls=N]`.
//!
//! Each degree is solved, and a row of a table printed; with `json=FOLDER` the programs are written there instead, as
//! `pmp.json` files that `sunzi sdp` and SDPB's pmp2sdp read; with `certify=FOLDER` they are written, solved, and
//! bounds of f(0) are proven, which the row shows: the first bounds packings. With `calls=N` the first N iterations are
//! made on one thread, and then again with each call of the library timed separately: the ratio of an iteration to its
//! calls, and the list of these calls.

#[path = "../tests/inputs/cohn_elkies.rs"]
mod cohn_elkies;

use cohn_elkies::Exact;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::rug::{Float, Integer, Rational, ops::Pow};
use sunzi::{Context, Result};
use sunzi_sdp::output::write_text;
use sunzi_sdp::proof::{read_exact, verify};
use sunzi_sdp::{Control, Problem, Solution, Solver, SolverOptions, certify, read_problem, time_calls};

/// Bits that the degree wants: the polynomials are far smaller than their terms.
fn bits_for(degree: usize) -> u32 {
    400 + 2 * degree as u32
}

/// All digits of numbers whose denominators divide powers of ten.
fn list(numbers: &[Rational]) -> String {
    let texts = numbers.iter().map(|number| format!("\"{}\"", decimal(number)));
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

fn decimal(number: &Rational) -> String {
    let places = (0..).find(|&places| Integer::from(10).pow(places).is_divisible(number.denom())).unwrap_or(0);
    format!("{}e-{places}", number.numer() * Integer::from(10).pow(places) / number.denom())
}

/// The text of `pmp.json`.
fn json(program: &Exact) -> String {
    let matrix = |polynomials: &Vec<Vec<Rational>>| {
        let polynomials = polynomials.iter().map(|polynomial| list(polynomial)).collect::<Vec<_>>().join(",\n");
        format!("{{\"polynomials\": [[[{polynomials}]]]}}")
    };
    let (objective, normalization) = (list(&program.objective), list(&program.normalization));
    let matrices = program.matrices.iter().map(matrix).collect::<Vec<_>>().join(",\n");
    format!(
        "{{\"objective\": {objective},\n\"normalization\": {normalization},\n\
         \"PositiveMatrixWithPrefactorArray\": [{matrices}]}}\n"
    )
}

fn write(folder: &Path, degree: usize) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("cohn_elkies_{degree}.json"));
    std::fs::write(&path, json(&cohn_elkies::exact(degree)))?;
    Ok(path)
}

/// The largest degree tried that the default scales of 1e20 suit: at 201 steps stay near 0 for hundreds of iterations,
/// as the solution lies beyond the first point.
const MOST_DEGREE_OF_DEFAULT_SCALES: usize = 161;

/// Options of a run to the end: at degrees near 200 the complementarity passes 1e100 on its way.
fn patient(problem: &Problem, degree: usize) -> SolverOptions {
    let mut options = SolverOptions::new(problem.form);
    options.max_iterations = 2000;
    options.max_complementarity = Float::with_val(64, 1e300);
    if degree > MOST_DEGREE_OF_DEFAULT_SCALES {
        let scale = Float::with_val(256, Float::parse("1e40").expect("a decimal"));
        options.initial_matrix_scale_primal = scale.clone();
        options.initial_matrix_scale_dual = scale;
    }
    options
}

/// Solves the program of a file, proves its bounds, checks them, and keeps the proof beside the file.
fn prove(path: &Path, degree: usize, bits: u32, ctx: &Context) -> Result<()> {
    let problem = read_problem(path, bits)?;
    let solver = Solver::new(ctx.clone(), &problem, patient(&problem, degree))?;
    let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    let start = Instant::now();
    let program = read_exact(path)?;
    let found = certify(ctx, &program, &problem, &solution.point)?;
    let proving = start.elapsed().as_secs_f64();
    let Some(proof) = found.proof else {
        let (iterations, end) = (solution.iterations, solution.termination);
        println!("| {degree} | {iterations} | no bound, after '{end}': {:?} |", found.without_lower);
        return Ok(());
    };
    write_text(&path.with_extension("certificate"), &proof.text())?;
    let start = Instant::now();
    verify(&program, &proof, ctx.threads())?;
    let checking = start.elapsed().as_secs_f64();
    let least = proof.upper.map_or(found.without_upper.unwrap_or_default(), |upper| upper.shown(25));
    let most = proof.lower.map_or(found.without_lower.unwrap_or_default(), |lower| lower.shown(25));
    let (seconds, iterations) = (solution.seconds, solution.iterations);
    println!("| {degree} | {iterations} | {seconds:.1} | {proving:.1} | {checking:.1} | {most} | {least} |");
    Ok(())
}

fn solve(degree: usize, bits: u32, threads: Option<usize>) -> Result<()> {
    let start = Instant::now();
    let problem = cohn_elkies::program(degree, 2 * bits).problem(bits)?;
    let sampling = start.elapsed().as_secs_f64();
    let solver = Solver::new(context(threads)?, &problem, patient(&problem, degree))?;
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

/// The time of iterations beside that of their calls alone.
fn calls(degree: usize, bits: u32, iterations: u64) -> Result<()> {
    let problem = cohn_elkies::program(degree, 2 * bits).problem(bits)?;
    let mut options = SolverOptions::new(problem.form);
    options.max_iterations = iterations;
    let solver = Solver::new(context(Some(1))?, &problem, options)?;
    let run = || -> Result<Solution> { solver.run(solver.begin()?, |_, _| Ok(Control::Continue)) };
    let solution = (0..3).map(|_| run()).collect::<Result<Vec<_>>>()?;
    let least = solution.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let Some(Solution { seconds, iterations, phases, .. }) = least else { return Ok(()) };
    let (again, times) = time_calls(run);
    again?;
    let each = 1e6 / iterations.max(1) as f64;
    let alone = times.values().map(|time| time.seconds).sum::<f64>();
    println!("degree {degree}, {bits} bits, {iterations} iterations, microseconds for each of them:");
    let (iteration, calls, ratio) = (seconds * each, alone * each, seconds / alone);
    println!("iteration {iteration:.0}, its calls timed separately {calls:.0}, ratio {ratio:.3}");
    println!("{phases:?}");
    let mut list = times.into_iter().collect::<Vec<_>>();
    list.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    println!("| verb | rows, columns, terms | bits | calls | timed separately |\n|---|---|---|---|---|");
    for (call, time) in list {
        let (count, alone) = (time.count as f64 / iterations.max(1) as f64, time.seconds * each);
        println!("| {} | {:?} | {} | {count:.2} | {alone:.1} |", call.verb, call.shape, call.bits);
    }
    Ok(())
}

fn context(threads: Option<usize>) -> Result<Context> {
    threads.map_or(Context::builder(), |threads| Context::builder().threads(threads)).build()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (mut degrees, mut threads, mut asked, mut folder, mut is_proven) = (Vec::new(), None, None, None, false);
    let mut timed = None;
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("threads", count)) => threads = Some(count.parse()?),
            Some(("calls", count)) => timed = Some(count.parse::<u64>()?),
            Some(("bits", count)) => asked = Some(count.parse::<u32>()?),
            Some((name @ ("json" | "certify"), path)) => {
                (folder, is_proven) = (Some(PathBuf::from(path)), name != "json")
            }
            Some(_) => {
                return Err(format!(
                    "'{word}' is not a degree, threads=N, bits=N, calls=N, json=FOLDER or certify=FOLDER"
                )
                .into());
            }
            None => degrees.push(word.parse::<usize>()?),
        }
    }
    if timed.is_some() && (folder.is_some() || threads.is_some()) {
        return Err("calls=N times one thread and proves nothing: no threads=N, json=FOLDER or certify=FOLDER".into());
    }
    match (&folder, is_proven) {
        (None, _) if timed.is_some() => {}
        (None, _) => {
            println!("| degree | bits | iterations | s per iteration | s | s of sampling | f(0) | f(0) - 1 | end |");
            println!("|---|---|---|---|---|---|---|---|---|");
        }
        (_, true) => {
            println!("| degree | iterations | s | s to prove | s to check | -f(0) at least | -f(0) at most |");
            println!("|---|---|---|---|---|---|---|");
        }
        _ => {}
    }
    for degree in degrees {
        let bits = asked.unwrap_or(bits_for(degree));
        match &folder {
            Some(folder) if is_proven => prove(&write(folder, degree)?, degree, bits, &context(threads)?)?,
            Some(folder) => println!("{}", write(folder, degree)?.display()),
            None => match timed {
                Some(iterations) => calls(degree, bits, iterations)?,
                None => solve(degree, bits, threads)?,
            },
        }
    }
    Ok(())
}
