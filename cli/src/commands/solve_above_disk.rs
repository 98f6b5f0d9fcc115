//! `sunzi trsm --storage` and `sunzi solve --storage`: from binary files to a binary file, with finished columns in a
//! directory. Independent of: bands, panels.

use super::above_disk::{self, check_binary, check_grid, each_of};
use super::trsm::scalar;
use crate::args::{Solve, Trsm};
use crate::files::{header, stated_precision};
use crate::progress::{Stage, factor_seconds, solve_seconds, trsm_seconds, writing};
use crate::session::{Session, Work, check_output};
use crate::triangles::FACTORED;
use std::path::Path;
use sunzi::comm::{Transport, agree, agreed, local};
use sunzi::distributed::Team;
use sunzi::io::{FileFormat, MatrixFile};
use sunzi::out_of_core::{self, OutOfCoreSolveOptions, OutOfCoreSolveReport, SolvePaths};
use sunzi::{Accuracy, Context, Error, Result, Uplo};
use sunzi_session::session::ROOT;
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// A triangular solve, in this process or on the ranks that work `together`.
pub fn trsm(session: &mut Session, args: &Trsm, together: Option<&dyn Transport>) -> Result<()> {
    let storage = args.storage.directory.as_deref().expect("asked for");
    let paths = SolvePaths { matrix: &args.t, right: &args.b, solution: &args.output.path, storage };
    let world = together.unwrap_or(local::alone());
    agree(world, check_output(&args.output).and_then(|()| check_binary(&[paths.matrix, paths.right, paths.solution])))?;
    let read = header(&args.t).and_then(|info| stated_precision(args.precision.bits, &args.t, info.as_ref()));
    let bits = agreed(world, read)?;
    let alpha = agreed(world, scalar(&args.system, bits))?;
    let is_root = world.rank() == ROOT;
    if is_root {
        session.expect(&[paths.matrix, paths.right], bits, |infos| {
            let (order, shape) = (infos[0].rows, (infos[1].rows, infos[1].cols));
            let stages = vec![Stage::call("solve", trsm_seconds(order, shape.1, bits))];
            Work { stages, output: Some((paths.solution, shape)) }
        });
        session.follow_phases();
    }
    let system = args.system.options(alpha.as_ref()).accuracy(args.accuracy);
    let options = OutOfCoreSolveOptions::new().caching(args.storage.caching);
    let builder = agreed(world, session.context(&args.engine))?;
    let call = |ctx: &Context, team: Option<&Team>| match team {
        None => out_of_core::trsm(ctx, paths, bits, &system, &options),
        Some(team) => out_of_core::trsm_over_ranks(ctx, team, paths, bits, &system, &options),
    };
    let report = above_disk::run(session, builder, args.engine.budget(0), storage, together, call)?;
    if is_root { finish(session, &report, paths) } else { Ok(()) }
}

/// A factorisation and a solve, in this process or on the ranks that work `together`.
pub fn solve(session: &mut Session, args: &Solve, together: Option<&dyn Transport>) -> Result<()> {
    let Solve { factor, b, output, storage: choices, .. } = args;
    let storage = choices.directory.as_deref().expect("asked for");
    let output = output.chosen();
    let paths = SolvePaths { matrix: &factor.a, right: b, solution: &output.path, storage };
    let world = together.unwrap_or(local::alone());
    agree(world, check(args, &paths, together))?;
    let read = header(&factor.a)
        .and_then(|info| stated_precision(factor.precision.typed(None).bits, &factor.a, info.as_ref()));
    let bits = agreed(world, read)?;
    let is_root = world.rank() == ROOT;
    // The library reads the triangle that is named, and nothing of the other one.
    let check = || FACTORED.check_file(&MatrixFile::open(&factor.a)?, factor.triangle.named());
    agree(world, if is_root { check() } else { Ok(()) })?;
    if is_root {
        session.expect(&[paths.matrix, paths.right], bits, |infos| {
            let (order, shape) = (infos[0].rows, (infos[1].rows, infos[1].cols));
            // The factor is a file in between.
            let factor = Stage::call("factor", factor_seconds(order, bits));
            let write = writing(FileFormat::Binary, order, order, bits);
            let read = Stage { name: "read", ..write.clone() };
            let stages = vec![factor, write, read, Stage::call("solve", solve_seconds(order, shape.1, bits))];
            Work { stages, output: Some((paths.solution, shape)) }
        });
        session.follow_phases();
    }
    let options = OutOfCoreSolveOptions::new()
        .tile_rows(factor.tile_rows)
        .lower(factor.triangle.uplo() == Some(Uplo::Lower))
        .caching(choices.caching)
        .grid(args.ranks.grid);
    let builder = agreed(world, session.context(&factor.engine))?;
    let call = |ctx: &Context, team: Option<&Team>| match team {
        None => out_of_core::solve(ctx, paths, bits, &options),
        Some(team) => out_of_core::solve_over_ranks(ctx, team, paths, bits, &options),
    };
    let report = above_disk::run(session, builder, factor.engine.budget(0), storage, together, call)?;
    if is_root { finish(session, &report, paths) } else { Ok(()) }
}

/// Refuses arguments that cannot work, before anything is read.
fn check(args: &Solve, paths: &SolvePaths<'_>, together: Option<&dyn Transport>) -> Result<()> {
    check_output(&args.output.chosen())?;
    check_binary(&[paths.matrix, paths.right, paths.solution])?;
    let refused = |message: &str| Err(Error::InvalidArgument(message.into()));
    if args.factor.accuracy != Accuracy::Norm {
        return refused("--storage requires --accuracy norm for a solve");
    }
    if args.factor.precision.automatic().is_some() {
        return refused("--precision auto cannot be used with --storage: give the bits");
    }
    check_grid(args.ranks.grid, together)
}

fn finish(session: &mut Session, report: &OutOfCoreSolveReport, paths: SolvePaths<'_>) -> Result<()> {
    let line = line(paths.solution, report);
    above_disk::finish(session, report, &line, paths.storage, &report.disk, "solution")
}

fn line(output: &Path, report: &OutOfCoreSolveReport) -> String {
    let OutOfCoreSolveReport { order, columns, precision_bits, kernel, threads, ranks, bands, band_columns, .. } =
        report;
    format!(
        "{}: {order} x {columns}, {precision_bits} bits ({kernel}, {}, {} of {}, {} planned{}) in \
         {}",
        output.display(),
        counted(*threads, "thread"),
        counted(*bands, "band"),
        counted(*band_columns, "column"),
        format_bytes(report.planned_bytes),
        each_of(*ranks),
        format_seconds(report.seconds),
    )
}
