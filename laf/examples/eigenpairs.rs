//! The eight lowest eigenpairs of a generated sparse matrix, out of core where a folder is given.
//!
//!     cargo run --release -p sunzi-laf --example eigenpairs -- rows=1000000 chunk=65536 memory=200M folder=/data
//!
//! Further words: `links=25`, `run=5` (chunks that a partial result stands for), `nodes=4`, `layout=2d`, `threads=2`,
//! `tolerance=1e-6`, `trace=FILE` for the states of the nodes as comma-separated values.

use std::fmt::Write as _;
use std::time::Instant;
use sunzi::{Error, Result};
use sunzi_laf::gallery::GrowingDiagonal;
use sunzi_laf::partition::Layout;
use sunzi_laf::{LobpcgOptions, Preconditioner, Session, SessionOptions, SparseMatrix, Symmetry, lobpcg};

/// What the words of the command line say.
struct Choices {
    rows: usize,
    links: usize,
    tolerance: f64,
    trace: Option<String>,
    session: SessionOptions,
}

fn wrong(word: &str) -> Error {
    Error::InvalidArgument(format!("'{word}' is not understood: see the top of examples/eigenpairs.rs"))
}

/// A number of bytes, with `K`, `M` or `G` behind it.
fn bytes(text: &str) -> Option<u64> {
    let powers = [("K", 10), ("M", 20), ("G", 30)];
    let unit = powers.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, 1u64 << power)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn choices(words: impl Iterator<Item = String>) -> Result<Choices> {
    let session = SessionOptions { chunk_rows: 20_000, threads: 2, ..SessionOptions::default() };
    let mut found = Choices { rows: 100_000, links: 25, tolerance: 1e-6, trace: None, session };
    for word in words {
        let refused = || wrong(&word);
        let (key, value) = word.split_once('=').ok_or_else(refused)?;
        let number = || value.parse::<usize>().map_err(|_| wrong(&word));
        match key {
            "rows" => found.rows = number()?,
            "links" => found.links = number()?,
            "chunk" => found.session.chunk_rows = number()?,
            "run" => found.session.run_chunks = number()?,
            "nodes" => found.session.nodes = number()?,
            "threads" => found.session.threads = number()?,
            "memory" => found.session.memory_bytes = bytes(value).ok_or_else(refused)?,
            "folder" => found.session.folder = Some(value.into()),
            "tolerance" => found.tolerance = value.parse().map_err(|_| wrong(&word))?,
            "layout" if value == "1d" => found.session.layout = Layout::OneDimensional,
            "layout" if value == "2d" => found.session.layout = Layout::TwoDimensional,
            "trace" => (found.trace, found.session.trace) = (Some(value.to_string()), true),
            _ => return Err(refused()),
        }
    }
    Ok(found)
}

fn generate(session: &Session, matrix: GrowingDiagonal) -> Result<SparseMatrix> {
    let mut a = session.sparse(matrix.order(), matrix.order(), Symmetry::Lower)?;
    a.fill(|chunks, row, col| matrix.block(chunks, row, col))?;
    Ok(a)
}

/// Runs and prints; returns the eigenvalues.
fn run(choices: &Choices) -> Result<Vec<f64>> {
    let matrix = GrowingDiagonal::new(choices.rows, choices.links, 1)?;
    let session = Session::new(&choices.session)?;
    let start = Instant::now();
    let a = generate(&session, matrix)?;
    let per_entry = a.bytes() as f64 / matrix.entries() as f64;
    println!("{} bytes, {per_entry:.2} an entry, made in {:.1} s", a.bytes(), start.elapsed().as_secs_f64());
    let diagonal = a.diagonal()?;
    let preconditioner = Preconditioner::Diagonal(&diagonal);
    let options = LobpcgOptions { preconditioner, tolerance: choices.tolerance, ..LobpcgOptions::default() };
    let start = Instant::now();
    let found = lobpcg(&a, &options, |step| {
        let worst = step.residuals.iter().zip(&step.values).map(|(residual, value)| residual / value);
        let worst = worst.fold(0.0, f64::max);
        println!("{:3} {worst:.2e} {:.1} s", step.iteration, start.elapsed().as_secs_f64());
        true
    })?;
    println!("{} iterations, {:.1} s: {:?}", found.iterations, start.elapsed().as_secs_f64(), found.values);
    for (node, traffic) in session.traffic().iter().enumerate() {
        println!("node {node}: {traffic:?}");
    }
    if let Some(path) = &choices.trace {
        let mut text = String::from("seconds,node,waiting_tasks,planned_tasks,used_bytes\n");
        for one in session.trace() {
            let state = one.state;
            let numbers = [state.waiting_tasks as u64, state.planned_tasks as u64, state.used_bytes];
            let [waiting, planned, used] = numbers;
            let _ = writeln!(text, "{:.6},{},{waiting},{planned},{used}", one.seconds, one.node);
        }
        std::fs::write(path, text).map_err(|source| Error::Io { path: path.into(), action: "write", source })?;
    }
    Ok(found.values)
}

fn main() -> Result<()> {
    // Or freed chunks would stay with the process, beyond the limit.
    sunzi::advanced::store::return_freed_memory();
    run(&choices(std::env::args().skip(1))?).map(drop)
}

#[test]
fn words_are_taken_and_refused() {
    let words = ["rows=300", "links=9", "chunk=40", "nodes=4", "layout=2d", "memory=3M"].map(String::from);
    let values = run(&choices(words.into_iter()).unwrap()).unwrap();
    assert!(values.len() == 8 && values.is_sorted() && (values[0] - 1.0).abs() < 0.01);
    for word in ["rows", "rows=x", "memory=3T", "layout=3d", "colour=red"] {
        assert!(choices([word.to_string()].into_iter()).is_err(), "{word}");
    }
}
