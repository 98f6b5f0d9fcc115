//! `sunzi trsm --storage` and `sunzi solve --storage`: from binary files to a binary file, with finished columns in a
//! directory. Does not know: bands, panels.

use super::above_disk::{self, check_binary};
use super::trsm::scalar;
use crate::args::{Solve, Trsm};
use crate::files::{header, stated_precision};
use crate::progress::{Stage, factor_seconds, solve_seconds, trsm_seconds};
use crate::session::{Session, Work, check_output};
use std::path::Path;
use sunzi::out_of_core::{self, OutOfCoreSolveOptions, OutOfCoreSolveReport, SolvePaths};
use sunzi::{Accuracy, Context, Error, Result, Uplo};
use sunzi_lab::units::{counted, format_bytes, format_seconds};

/// A triangular solve.
pub fn trsm(session: &mut Session, args: &Trsm) -> Result<()> {
    let storage = args.storage.directory.as_deref().expect("asked for");
    let paths = SolvePaths { matrix: &args.t, right: &args.b, solution: &args.output.path, storage };
    check_output(&args.output)?;
    check_binary(&[paths.matrix, paths.right, paths.solution])?;
    let bits = stated_precision(args.precision.bits, &args.t, header(&args.t)?.as_ref())?;
    let alpha = scalar(&args.system, bits)?;
    session.expect(&[paths.matrix, paths.right], bits, |infos| {
        let (order, shape) = (infos[0].rows, (infos[1].rows, infos[1].cols));
        let stages = vec![Stage::calls("solve", trsm_seconds(order, shape.1, bits))];
        Work { stages, output: Some((paths.solution, shape)) }
    });
    let system = args.system.options(alpha.as_ref()).accuracy(args.accuracy);
    let options = OutOfCoreSolveOptions::new().caching(args.storage.caching);
    let builder = session.context(&args.engine)?;
    let call = |ctx: &Context| out_of_core::trsm(ctx, paths, bits, &system, &options);
    let report = above_disk::run(session, builder, (args.engine.budget(0), storage), call)?;
    finish(session, &report, paths)
}

/// A factorisation and a solve.
pub fn solve(session: &mut Session, args: &Solve) -> Result<()> {
    let Solve { factor, b, output, storage: choices, .. } = args;
    let storage = choices.directory.as_deref().expect("asked for");
    let paths = SolvePaths { matrix: &factor.a, right: b, solution: &output.path, storage };
    check_output(output)?;
    check_binary(&[paths.matrix, paths.right, paths.solution])?;
    let refused = |message: &str| Err(Error::InvalidArgument(message.into()));
    if factor.accuracy != Some(Accuracy::Norm) {
        return refused("a solve with --storage is accurate by norms: give --accuracy norm");
    }
    if factor.precision.automatic().is_some() {
        return refused("--precision auto is not there with --storage: give the bits");
    }
    let bits = stated_precision(factor.precision.typed(None).bits, &factor.a, header(&factor.a)?.as_ref())?;
    session.expect(&[paths.matrix, paths.right], bits, |infos| {
        let (order, shape) = (infos[0].rows, (infos[1].rows, infos[1].cols));
        let seconds = factor_seconds(order, bits) + solve_seconds(order, shape.1, bits);
        Work { stages: vec![Stage::calls("solve", seconds)], output: Some((paths.solution, shape)) }
    });
    let options = OutOfCoreSolveOptions::new()
        .tile_rows(factor.tile_rows)
        .lower(factor.triangle.uplo() == Some(Uplo::Lower))
        .caching(choices.caching);
    let builder = session.context(&factor.engine)?;
    let call = |ctx: &Context| out_of_core::solve(ctx, paths, bits, &options);
    let report = above_disk::run(session, builder, (factor.engine.budget(0), storage), call)?;
    finish(session, &report, paths)
}

fn finish(session: &mut Session, report: &OutOfCoreSolveReport, paths: SolvePaths<'_>) -> Result<()> {
    let line = line(paths.solution, report);
    above_disk::finish(session, report, (&line, "solution"), (paths.storage, &report.disk))
}

fn line(output: &Path, report: &OutOfCoreSolveReport) -> String {
    let OutOfCoreSolveReport { order, columns, precision_bits, kernel, threads, bands, band_columns, .. } = report;
    format!(
        "{}: {order} x {columns}, {precision_bits} bits ({kernel}, {}, {} of {band_columns} columns, {} planned) in {}",
        output.display(),
        counted(*threads, "thread"),
        counted(*bands, "band"),
        format_bytes(report.planned_bytes),
        format_seconds(report.seconds),
    )
}
