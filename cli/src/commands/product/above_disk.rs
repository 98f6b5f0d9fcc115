//! `sunzi syrk --storage` and `sunzi gemm --storage`: from binary files to a binary file, with finished tiles of the
//! result in a directory. Does not know: tiles, bands.

use super::{Operands, Product, expect};
use crate::commands::above_disk::{self, check_binary};
use crate::files::product_precision;
use crate::session::{Session, check_output};
use std::path::Path;
use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions, OutOfCoreProductReport, ProductPaths};
use sunzi::{Accuracy, Context, Error, Result};
use sunzi_lab::units::{counted, format_bytes, format_seconds};

/// Runs in this process.
pub fn run(session: &mut Session, config: &Product, directory: &Path) -> Result<()> {
    let (choices, output) = (&config.choices, &config.output);
    check_output(output)?;
    let mut files = config.operands.files();
    files.push(&output.path);
    check_binary(&files)?;
    if choices.accuracy == Accuracy::Entrywise {
        let message = "--accuracy entrywise is not there with --storage: a product is accurate by norms";
        return Err(Error::InvalidArgument(message.into()));
    }
    let bits = product_precision(choices.precision.bits, files[0], false)?;
    expect(session, config);
    let options = OutOfCoreProductOptions::new().caching(config.storage.caching);
    let paths = ProductPaths { result: &output.path, storage: directory };
    let call = |ctx: &Context| match &config.operands {
        Operands::Syrk { p, op, .. } => out_of_core::syrk(ctx, OperandFile::new(p).op(*op), paths, bits, &options),
        Operands::Gemm { a, b, op_a, op_b } => {
            let operands = (OperandFile::new(a).op(*op_a), OperandFile::new(b).op(*op_b));
            out_of_core::gemm(ctx, operands, paths, bits, &options)
        }
    };
    session.stage("compute");
    let report = above_disk::run(session, config.context(session)?, (choices.engine.budget(0), directory), call)?;
    let line = line(&output.path, &report);
    above_disk::finish(session, &report, (&line, "product"), (directory, &report.disk))
}

fn line(output: &Path, report: &OutOfCoreProductReport) -> String {
    let OutOfCoreProductReport { rows, cols, precision_bits, kernel, primes, threads, plan, .. } = report;
    let product = &plan.product;
    format!(
        "{}: {rows} x {cols}, {precision_bits} bits ({kernel}, {primes} primes, {}, {} of {} columns, {} of {} rows, \
         {} planned{}) in {}",
        output.display(),
        counted(*threads, "thread"),
        counted(product.bands, "band"),
        product.band_columns,
        counted(product.chunks, "chunk"),
        product.chunk_rows,
        format_bytes(product.planned_bytes),
        if report.checked { ", self-checked" } else { "" },
        format_seconds(report.seconds),
    )
}
