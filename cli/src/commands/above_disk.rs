//! Code shared by commands with `--storage`: a check that files are binary, a call within the memory limit, a hint how
//! to continue.
//!
//! A run that ends early leaves the finished parts in the directory, and the error explains how to continue.

use crate::session::Session;
use crate::signals::{Mode, complete, in_mode};
use serde::Serialize;
use std::path::Path;
use sunzi::comm::{Transport, agreed};
use sunzi::distributed::{RankGrid, Team, TeamOptions};
use sunzi::out_of_core::DiskUse;
use sunzi::{Context, ContextBuilder, Error, Result};
use sunzi_session::engine::limited;
use sunzi_session::memory::{Budget, peak_resident_bytes};
use sunzi_session::session::Session as _;
use sunzi_session::units::{counted, format_bytes};

/// The report.
#[derive(Serialize)]
struct StorageReport<'a, R> {
    #[serde(flatten)]
    operation: &'a R,
    /// The most memory that the process occupied.
    peak_resident_bytes: u64,
}

/// Refuses files that are not binary, or are compressed: blocks of them cannot be read where they lie.
pub fn check_binary(paths: &[&Path]) -> Result<()> {
    let is_binary = |path: &Path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("bin"));
    let Some(other) = paths.iter().find(|path| !is_binary(path)) else { return Ok(()) };
    let path = other.display();
    Err(Error::InvalidArgument(format!(
        "{path}: --storage requires binary files (.bin, not compressed); sunzi convert writes them"
    )))
}

/// Refuses a grid of ranks in one process.
pub fn check_grid(grid: Option<RankGrid>, together: Option<&dyn Transport>) -> Result<()> {
    match (grid, together) {
        (Some(_), None) => Err(Error::InvalidArgument(
            "--grid requires a factorisation on several ranks: start them with mpirun".into(),
        )),
        _ => Ok(()),
    }
}

/// Runs `call`, which keeps its tiles in `directory`, within the memory limit of the command: in this process or by the
/// ranks that work `together`, whose team it gets. Prints how to continue if the run ends early.
pub fn run<R>(
    session: &Session,
    builder: ContextBuilder,
    budget: Option<Budget>,
    directory: &Path,
    together: Option<&dyn Transport>,
    call: impl FnOnce(&Context, Option<&Team>) -> Result<R>,
) -> Result<R> {
    let Some(world) = together else { return run_here(session, builder, budget, directory, |ctx| call(ctx, None)) };
    let team = Team::new(world.split(0)?, agreed(world, TeamOptions::from_environment())?)?;
    let budget = budget.map(|budget| budget.of_node(team.node())).transpose()?;
    let made = run_here(session, builder, budget, directory, |ctx| call(ctx, Some(&team)));
    team.close()?;
    made
}

fn run_here<R>(
    session: &Session,
    builder: ContextBuilder,
    budget: Option<Budget>,
    directory: &Path,
    call: impl FnOnce(&Context) -> Result<R>,
) -> Result<R> {
    let (builder, restate) = limited(builder, budget);
    let ctx = builder.build()?;
    let made = in_mode(Mode::Computing, || call(&ctx).inspect(|_| complete()));
    made.map_err(restate).inspect_err(|error| explain(session, directory, error))
}

/// Prints how to go on where the finished parts are of use.
fn explain(session: &Session, directory: &Path, error: &Error) {
    let can_go_on = matches!(
        error,
        Error::Cancelled
            | Error::DiskFull { .. }
            | Error::Io { .. }
            | Error::OutOfMemory { .. }
            | Error::SelfCheck { .. }
    );
    if can_go_on && directory.is_dir() {
        let directory = directory.display();
        session.note(&format!("finished tiles remain in {directory}: the same command resumes from them"));
    }
}

/// Writes the report and prints what was done: `line`, and the work of the disk for `what` in `directory`.
pub fn finish(
    session: &mut Session,
    report: &impl Serialize,
    line: &str,
    directory: &Path,
    disk: &DiskUse,
    what: &str,
) -> Result<()> {
    session.finish_report(&StorageReport { operation: report, peak_resident_bytes: peak_resident_bytes() })?;
    disk.remarks.iter().for_each(|remark| session.note(remark));
    let found = match disk.tiles_found {
        0 => String::new(),
        tiles => format!(", {} found in it", counted(tiles, "tile")),
    };
    let (read, written) = (format_bytes(disk.read_bytes), format_bytes(disk.written_bytes));
    let directory = directory.display();
    session.say(&format!(
        "{line}\n{directory}: {read} read, {written} written{found}; the directory can be removed if only the {what} \
         is needed"
    ))
}

/// The words after a number of bytes that each of several ranks takes.
pub fn each_of(ranks: usize) -> String {
    if ranks > 1 { format!(" per rank, {ranks} ranks") } else { String::new() }
}
