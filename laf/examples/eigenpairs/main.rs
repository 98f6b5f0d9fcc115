//! The eight lowest eigenpairs of a generated sparse matrix, out of core where a folder is given.
//!
//!     cargo run --release -p sunzi-laf --example eigenpairs -- rows=1000000 chunk=65536 memory=200M folder=/data
//!
//! `memory` is for the objects of each node; `process=512M` in its place is for all that the process takes. Further
//! words: `links=25`, `run=5` (chunks that a partial result stands for), `nodes=4`, `layout=2d`, `threads=2`,
//! `tolerance=1e-6`, `iterations=100`, `trace=FILE` for the states of the nodes as comma-separated values. Pictures:
//! `states=FILE.svg` (tasks in queues, free memory), `overlap=FILE.svg` (computing, reading and writing), and
//! `partitions=FILE.svg`, for which the same is computed on 4 and 9 nodes in both layouts: bytes between nodes.

mod memory;
mod picture;

use picture::{Course, Moved};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::{Error, Result};
use sunzi_laf::engine::Sample;
use sunzi_laf::gallery::GrowingDiagonal;
use sunzi_laf::partition::Layout;
use sunzi_laf::{LobpcgOptions, Preconditioner, Session, SessionOptions, SparseMatrix, Symmetry, lobpcg};

/// What the words of the command line say.
#[derive(Clone)]
struct Choices {
    rows: usize,
    links: usize,
    tolerance: f64,
    iterations: usize,
    outputs: Outputs,
    session: SessionOptions,
}

/// Files that are asked for.
#[derive(Clone, Default)]
struct Outputs {
    trace: Option<PathBuf>,
    states: Option<PathBuf>,
    overlap: Option<PathBuf>,
    partitions: Option<PathBuf>,
}

fn wrong(word: &str) -> Error {
    Error::InvalidArgument(format!("'{word}' is not understood: see the top of examples/eigenpairs/main.rs"))
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
    let outputs = Outputs::default();
    let mut found = Choices { rows: 100_000, links: 25, tolerance: 1e-6, iterations: 100, outputs, session };
    let (mut has_limit, mut process_bytes) = (false, None);
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
            "iterations" => found.iterations = number()?,
            "memory" => (found.session.memory_bytes, has_limit) = (bytes(value).ok_or_else(refused)?, true),
            "process" => process_bytes = Some(bytes(value).ok_or_else(refused)?),
            "folder" => found.session.folder = Some(value.into()),
            "tolerance" => found.tolerance = value.parse().map_err(|_| wrong(&word))?,
            "layout" if value == "1d" => found.session.layout = Layout::OneDimensional,
            "layout" if value == "2d" => found.session.layout = Layout::TwoDimensional,
            "trace" => found.outputs.trace = Some(value.into()),
            "states" => found.outputs.states = Some(value.into()),
            "overlap" => found.outputs.overlap = Some(value.into()),
            "partitions" => found.outputs.partitions = Some(value.into()),
            _ => return Err(refused()),
        }
    }
    if let Some(limit) = process_bytes {
        (found.session.memory_bytes, has_limit) = (memory::objects_bytes(&found, limit)?, true);
    }
    let Outputs { trace, states, overlap, .. } = &found.outputs;
    if states.is_some() && !has_limit {
        return Err(Error::InvalidArgument("states=FILE shows free memory: give memory=BYTES as well".to_string()));
    }
    found.session.trace = trace.is_some() || states.is_some() || overlap.is_some();
    Ok(found)
}

fn generate(session: &Session, matrix: GrowingDiagonal) -> Result<SparseMatrix> {
    let mut a = session.sparse(matrix.order(), matrix.order(), Symmetry::Lower)?;
    a.fill(|chunks, row, col| matrix.block(chunks, row, col))?;
    Ok(a)
}

/// What a run has found.
struct Found {
    values: Vec<f64>,
    moved: Moved,
}

/// Runs and prints.
fn run(choices: &Choices) -> Result<Found> {
    let matrix = GrowingDiagonal::new(choices.rows, choices.links, 1)?;
    let session = Session::new(&choices.session)?;
    let start = Instant::now();
    let a = generate(&session, matrix)?;
    let per_entry = a.bytes() as f64 / matrix.entries() as f64;
    println!("{} bytes, {per_entry:.2} an entry, made in {:.1} s", a.bytes(), start.elapsed().as_secs_f64());
    let begin = session.trace().last().map_or(0.0, |sample| sample.seconds);
    let diagonal = a.diagonal()?;
    let &Choices { tolerance, iterations, .. } = choices;
    let preconditioner = Preconditioner::Diagonal(&diagonal);
    let options = LobpcgOptions { preconditioner, tolerance, iterations, ..LobpcgOptions::default() };
    let start = Instant::now();
    let found = lobpcg(&a, &options, |step| {
        let worst = step.residuals.iter().zip(&step.values).map(|(residual, value)| residual / value);
        let worst = worst.fold(0.0, f64::max);
        println!("{:3} {worst:.2e} {:.1} s", step.iteration, start.elapsed().as_secs_f64());
        true
    })?;
    println!("{} iterations, {:.1} s", found.iterations, start.elapsed().as_secs_f64());
    let traffic = session.traffic();
    for (node, traffic) in traffic.iter().enumerate() {
        println!("node {node}: {traffic:?}");
    }
    println!("at most {} bytes resident", memory::peak_resident_bytes());
    write_outputs(choices, &session.trace(), begin)?;
    let SessionOptions { nodes, layout, .. } = choices.session;
    let layout = if layout == Layout::OneDimensional { "1D" } else { "2D" };
    let moved = Moved {
        label: format!("{nodes} nodes, {layout}"),
        received_bytes: traffic.iter().map(|node| node.received_bytes).sum(),
        read_bytes: traffic.iter().map(|node| node.read_bytes).sum(),
    };
    Ok(Found { values: found.values, moved })
}

fn write_outputs(choices: &Choices, samples: &[Sample], begin: f64) -> Result<()> {
    let &SessionOptions { nodes, threads, memory_bytes, .. } = &choices.session;
    let course = Course { samples, nodes, threads, memory_bytes, begin };
    let Outputs { trace, states, overlap, .. } = &choices.outputs;
    if let Some(path) = trace {
        write_trace(samples, path)?;
    }
    if let Some(path) = states {
        picture::draw_states(&course, path)?;
    }
    overlap.as_deref().map_or(Ok(()), |path| picture::draw_overlap(&course, path))
}

fn write_trace(samples: &[Sample], path: &Path) -> Result<()> {
    let mut text = String::from("seconds,node,waiting_tasks,planned_tasks,used_bytes,running_tasks,disk_requests\n");
    for one in samples {
        let (state, running, requests) = (one.state, one.running_tasks, one.disk_requests);
        let (waiting, planned, used) = (state.waiting_tasks, state.planned_tasks, state.used_bytes);
        let _ = writeln!(text, "{:.6},{},{waiting},{planned},{used},{running},{requests}", one.seconds, one.node);
    }
    std::fs::write(path, text).map_err(|source| Error::Io { path: path.into(), action: "write", source })
}

/// Runs on 4 and 9 nodes in both layouts and draws what they moved. A partial result stands for a band, or for half a
/// band in two dimensions, which moves the fewest bytes.
fn compare_partitions(choices: &Choices, path: &Path) -> Result<Vec<Moved>> {
    let chunks = choices.rows.div_ceil(choices.session.chunk_rows.max(1));
    let mut all = Vec::new();
    for nodes in [4usize, 9] {
        for (layout, parts) in [(Layout::OneDimensional, nodes), (Layout::TwoDimensional, 2 * nodes.isqrt())] {
            let run_chunks = (chunks / parts).max(1);
            let session = SessionOptions { nodes, layout, run_chunks, trace: false, ..choices.session.clone() };
            all.push(run(&Choices { session, outputs: Outputs::default(), ..choices.clone() })?.moved);
        }
    }
    picture::draw_partitions(&all, path)?;
    Ok(all)
}

fn main() -> Result<()> {
    // Or freed chunks would stay with the process, beyond the limit.
    sunzi::advanced::store::return_freed_memory();
    let choices = choices(std::env::args().skip(1))?;
    match &choices.outputs.partitions {
        Some(path) => compare_partitions(&choices, path).map(drop),
        None => run(&choices).map(|found| println!("{:?}", found.values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[String]) -> Result<Choices> {
        choices(words.iter().cloned())
    }

    #[test]
    fn words_are_taken_and_refused() {
        let words = ["rows=300", "links=9", "chunk=40", "nodes=4", "layout=2d", "memory=3M"].map(String::from);
        let values = run(&of(&words).unwrap()).unwrap().values;
        assert!(values.len() == 8 && values.is_sorted() && (values[0] - 1.0).abs() < 0.01);
        for word in ["rows", "rows=x", "memory=3T", "layout=3d", "colour=red", "states=x.svg"] {
            assert!(of(&[word.to_string()]).is_err(), "{word}");
        }
    }

    #[test]
    fn a_limit_of_the_process_leaves_room_for_all_else() {
        let of_process = |limit: u64, more: &str| of(&[format!("process={limit}"), more.to_string()]);
        let Err(Error::MemoryLimit { limit_bytes: 1, minimum_bytes }) = of_process(1, "nodes=2") else {
            panic!("one byte is too little");
        };
        assert!(of_process(minimum_bytes - 1, "nodes=2").is_err());
        assert_eq!(of_process(minimum_bytes, "nodes=2").unwrap().session.memory_bytes, 1);
        // A larger chunk is a larger copy, and its block takes more while it is made.
        let left = |more: &str| of_process(1 << 30, more).unwrap().session.memory_bytes;
        assert!(left("chunk=50000") < left("chunk=20000") && left("threads=3") < left("threads=2"));
        assert!(left("folder=.") < left("links=25") && left("nodes=0") > 0);
    }

    #[test]
    fn pictures_show_what_a_run_did() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = |key: &str, name: &str| format!("{key}={}", at(name).display());
        let mut words =
            ["rows=1800", "links=9", "chunk=50", "run=4", "nodes=4", "iterations=1"].map(String::from).to_vec();
        words.push(format!("folder={}", folder.path().display()));
        let with_limit = [words.as_slice(), &["memory=120K".to_string()]].concat();
        let pictures = [file("trace", "t.csv"), file("states", "s.svg"), file("overlap", "o.svg")];
        run(&of(&[with_limit.as_slice(), &pictures].concat()).unwrap()).unwrap();
        let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        for (name, words) in [
            ("s.svg", ["tasks in the queue", "free memory", "node 4"]),
            ("o.svg", ["threads compute", "disk: ", "both at once: "]),
        ] {
            let picture = text(name);
            assert!(picture.matches("<polyline").count() >= 3 && picture.len() < 60_000, "{name}: {}", picture.len());
            words.iter().for_each(|word| assert!(picture.contains(word), "{name} {word}"));
        }
        // Something ran, something was read or written, and nothing exceeded the limit.
        let trace = text("t.csv");
        let numbers = |line: &str| line.split(',').skip(1).map(|text| text.parse::<u64>().unwrap()).collect::<Vec<_>>();
        let rows = trace.lines().skip(1).map(numbers).collect::<Vec<_>>();
        assert!(rows.iter().any(|row| row[4] > 0) && rows.iter().any(|row| row[5] > 0));
        assert!(rows.iter().all(|row| row[3] <= 120 << 10));

        words.push(file("partitions", "p.svg"));
        let choices = of(&words).unwrap();
        let moved = compare_partitions(&choices, choices.outputs.partitions.as_deref().unwrap()).unwrap();
        assert!(moved.len() == 4 && moved[1].received_bytes < moved[0].received_bytes);
        let picture = text("p.svg");
        ["9 nodes, 1D", "9 nodes, 2D", "MB between nodes"].iter().for_each(|word| assert!(picture.contains(word)));
    }
}
