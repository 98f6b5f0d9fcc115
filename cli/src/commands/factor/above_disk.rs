//! `sunzi cholesky --storage`: from a binary file to a binary file, with the tiles in a directory.
//!
//! What ends a run early leaves the finished tiles there, and the error says how to go on. Does not know: blocks.

use crate::args::{Cholesky, Output};
use crate::files::stated_precision;
use crate::progress::{Stage, factor_seconds};
use crate::session::{Session, Work, check_output};
use crate::signals::{Mode, complete, in_mode};
use serde::Serialize;
use std::path::Path;
use sunzi::comm::{Transport, agree, agreed, local};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::io::MatrixFile;
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCoreReport, cholesky_over_ranks};
use sunzi::{Accuracy, Error, Result, Uplo};
use sunzi_lab::engine::limited;
use sunzi_lab::memory::peak_resident_bytes;
use sunzi_lab::session::{ROOT, Session as _};
use sunzi_lab::units::{counted, format_bytes, format_seconds};

/// The report.
#[derive(Serialize)]
struct StorageReport<'a> {
    #[serde(flatten)]
    factorisation: &'a OutOfCoreReport,
    /// The most memory that the process occupied.
    peak_resident_bytes: u64,
}

/// Runs in this process, or on the ranks that work `together`, each with a directory of its own below the one given.
pub fn run(session: &mut Session, args: &Cholesky, together: Option<&dyn Transport>) -> Result<()> {
    let Cholesky { factor, storage, output } = args;
    let directory = storage.directory.as_deref().expect("asked for");
    let output = output.clone().given().expect("an output goes with a storage directory");
    let world = together.unwrap_or(local::alone());
    let is_root = world.rank() == ROOT;
    agree(world, check(args, &output, together))?;
    let file = agreed(world, MatrixFile::open(&factor.a))?;
    let bits = agreed(world, stated_precision(factor.precision.typed(None).bits, &factor.a, Some(&file.info())))?;
    let order = file.rows();
    if is_root {
        session.expect(&[&factor.a], bits, |_| Work {
            stages: vec![Stage::call("factor", factor_seconds(order, bits))],
            output: Some((output.path.as_path(), (order, order))),
        });
    }
    let options = OutOfCoreOptions::new()
        .tile_rows(factor.tile_rows)
        .lower(factor.triangle.uplo() == Some(Uplo::Lower))
        .caching(storage.caching)
        .grid(factor.ranks.grid);
    let files = (factor.a.as_path(), output.path.as_path());
    let made = match together {
        None => {
            let (builder, restate) = limited(session.context(&factor.engine)?, factor.engine.budget(0));
            let ctx = builder.build()?;
            let call = || out_of_core::cholesky(&ctx, files, directory, bits, &options).inspect(|_| complete());
            in_mode(Mode::Computing, call).map_err(restate)
        }
        Some(world) => {
            let team = Team::new(world.split(0)?, agreed(world, TeamOptions::from_environment())?)?;
            let budget = factor.engine.budget(0).map(|budget| budget.of_node(team.node())).transpose()?;
            let (builder, restate) = limited(session.context(&factor.engine)?, budget);
            let ctx = agreed(world, builder.build())?;
            let call = || cholesky_over_ranks(&ctx, &team, files, directory, bits, &options).inspect(|_| complete());
            let made = in_mode(Mode::Computing, call).map_err(restate);
            team.close()?;
            made
        }
    };
    if !is_root {
        return made.map(drop);
    }
    let report = made.inspect_err(|error| explain(session, directory, error))?;
    session.finish_report(&StorageReport { factorisation: &report, peak_resident_bytes: peak_resident_bytes() })?;
    report.remarks.iter().for_each(|remark| session.note(remark));
    session.say(&line(&output.path, directory, &report))
}

/// Refuses what cannot work, before anything is read.
fn check(args: &Cholesky, output: &Output, together: Option<&dyn Transport>) -> Result<()> {
    check_output(output)?;
    [&args.factor.a, &output.path].into_iter().try_for_each(|path| check_binary(path))?;
    if together.is_none() && args.factor.ranks.grid.is_some() {
        return Err(Error::InvalidArgument("--grid is for a factor on several ranks: start them with mpirun".into()));
    }
    check_choices(args)
}

/// Refuses a file that is not binary, or is compressed: blocks of it cannot be read where they lie.
fn check_binary(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("bin")) {
        return Ok(());
    }
    let path = path.display();
    Err(Error::InvalidArgument(format!(
        "{path}: --storage works on blocks of binary files (.bin, not compressed); sunzi convert makes one"
    )))
}

fn check_choices(args: &Cholesky) -> Result<()> {
    let refused = |message: &str| Err(Error::InvalidArgument(message.into()));
    if args.factor.accuracy == Some(Accuracy::Entrywise) {
        return refused("--accuracy entrywise is not there with --storage: a factor is accurate by norms");
    }
    if args.factor.precision.automatic().is_some() {
        return refused("--precision auto is not there with --storage: give the bits");
    }
    Ok(())
}

/// Says how to go on where the tiles that are finished are of use.
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
        session.note(&format!("finished tiles stay in {directory}: the same command goes on from them"));
    }
}

fn line(output: &Path, directory: &Path, report: &OutOfCoreReport) -> String {
    let OutOfCoreReport { order, precision_bits, kernel, threads, plan, .. } = report;
    let (rows, cols) = plan.block_tiles;
    let found = match report.tiles_found {
        0 => String::new(),
        tiles => format!(", {} found there", counted(tiles, "tile")),
    };
    let ranks = report.ranks.as_ref().map_or(String::new(), |ranks| {
        format!(" a rank, {} ranks as {} x {}", ranks.ranks, ranks.grid.rows, ranks.grid.cols)
    });
    format!(
        "{}: {order} x {order}, {precision_bits} bits ({kernel}, {}, tiles of {} rows in blocks of {rows} x {cols}, {} \
         planned{ranks}) in {}\n{}: {} read, {} written{found}; remove it once the factor is all you need",
        output.display(),
        counted(*threads, "thread"),
        plan.tile_rows,
        format_bytes(plan.planned_bytes),
        format_seconds(report.seconds),
        directory.display(),
        format_bytes(report.read_bytes),
        format_bytes(report.written_bytes),
    )
}
