//! `sunzi cholesky --storage`: from a binary file to a binary file, with the tiles in a directory.
//!
//! Does not know: blocks.

use crate::args::Cholesky;
use crate::commands::above_disk::{self, check_binary};
use crate::files::stated_precision;
use crate::progress::{Stage, factor_seconds};
use crate::session::{Session, Work, check_output};
use std::path::Path;
use sunzi::io::MatrixFile;
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCoreReport};
use sunzi::{Accuracy, Context, Error, Result, Uplo};
use sunzi_lab::units::{counted, format_bytes, format_seconds};

/// Runs in this process.
pub fn run(session: &mut Session, args: &Cholesky) -> Result<()> {
    let Cholesky { factor, storage, output } = args;
    let directory = storage.directory.as_deref().expect("asked for");
    let output = output.clone().given().expect("an output goes with a storage directory");
    check_output(&output)?;
    check_binary(&[&factor.a, &output.path])?;
    check_choices(args)?;
    let file = MatrixFile::open(&factor.a)?;
    let bits = stated_precision(factor.precision.typed(None).bits, &factor.a, Some(&file.info()))?;
    let order = file.rows();
    session.expect(&[&factor.a], bits, |_| Work {
        stages: vec![Stage::call("factor", factor_seconds(order, bits))],
        output: Some((output.path.as_path(), (order, order))),
    });
    let options = OutOfCoreOptions::new()
        .tile_rows(factor.tile_rows)
        .lower(factor.triangle.uplo() == Some(Uplo::Lower))
        .caching(storage.caching);
    let files = (factor.a.as_path(), output.path.as_path());
    let builder = session.context(&factor.engine)?;
    let call = |ctx: &Context| out_of_core::cholesky(ctx, files, directory, bits, &options);
    let report = above_disk::run(session, builder, (&factor.engine, directory), call)?;
    let line = line(&output.path, &report);
    above_disk::finish(session, &report, (&line, "factor"), (directory, &report.disk))
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

fn line(output: &Path, report: &OutOfCoreReport) -> String {
    let OutOfCoreReport { order, precision_bits, kernel, threads, plan, .. } = report;
    let (rows, cols) = plan.block_tiles;
    format!(
        "{}: {order} x {order}, {precision_bits} bits ({kernel}, {}, tiles of {} rows in blocks of {rows} x {cols}, {} \
         planned) in {}",
        output.display(),
        counted(*threads, "thread"),
        plan.tile_rows,
        format_bytes(plan.planned_bytes),
        format_seconds(report.seconds),
    )
}
