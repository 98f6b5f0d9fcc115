//! `sunzi syrk --storage` and `sunzi gemm --storage`: from binary files to a binary file, with finished tiles of the
//! result in a directory. Independent of: tiles, bands.

use super::{Operands, Product, expect};
use crate::commands::above_disk::{self, check_binary, each_of};
use crate::files::product_precision;
use crate::session::{Session, check_output};
use std::path::Path;
use sunzi::comm::{Transport, agreed, local};
use sunzi::distributed::Team;
use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions, OutOfCoreProductReport, ProductPaths};
use sunzi::{Accuracy, Context, Error, Result};
use sunzi_session::session::ROOT;
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// Runs in this process, or on the ranks that work `together`, each with a directory of its own below the one given.
pub fn run(session: &mut Session, config: &Product, directory: &Path, together: Option<&dyn Transport>) -> Result<()> {
    let (choices, output, world) = (&config.choices, &config.output, together.unwrap_or(local::alone()));
    let is_root = world.rank() == ROOT;
    let bits = agreed(world, check(config))?;
    if is_root {
        expect(session, config, "product");
        session.follow_phases();
    }
    let options = OutOfCoreProductOptions::new().caching(config.storage.caching);
    let paths = ProductPaths { result: &output.path, storage: directory };
    let call = |ctx: &Context, team: Option<&Team>| match &config.operands {
        Operands::Syrk { p, op, .. } => {
            let p = OperandFile::new(p).op(*op);
            match team {
                None => out_of_core::syrk(ctx, p, paths, bits, &options),
                Some(team) => out_of_core::syrk_over_ranks(ctx, team, p, paths, bits, &options),
            }
        }
        Operands::Gemm { a, b, op_a, op_b } => {
            let operands = (OperandFile::new(a).op(*op_a), OperandFile::new(b).op(*op_b));
            match team {
                None => out_of_core::gemm(ctx, operands, paths, bits, &options),
                Some(team) => out_of_core::gemm_over_ranks(ctx, team, operands, paths, bits, &options),
            }
        }
    };
    let builder = agreed(world, config.context(session))?;
    let report = above_disk::run(session, builder, choices.engine.budget(0), directory, together, call)?;
    if !is_root {
        return Ok(());
    }
    let line = line(&output.path, &report);
    above_disk::finish(session, &report, &line, directory, &report.disk, "product")
}

/// Refuses arguments that cannot work, before anything is read; returns the bits of the result.
fn check(config: &Product) -> Result<u32> {
    check_output(&config.output)?;
    let mut files = config.operands.files();
    files.push(&config.output.path);
    check_binary(&files)?;
    if config.choices.accuracy != Accuracy::Norm {
        let message = "--storage requires --accuracy norm for a product";
        return Err(Error::InvalidArgument(message.into()));
    }
    product_precision(config.choices.precision.bits, files[0], false)
}

fn line(output: &Path, report: &OutOfCoreProductReport) -> String {
    let OutOfCoreProductReport { rows, cols, precision_bits, kernel, primes, threads, ranks, plan, .. } = report;
    let product = &plan.product;
    format!(
        "{}: {rows} x {cols}, {precision_bits} bits ({kernel}, {primes} primes, {}, {} of {} columns, {} of {} rows, \
         {} planned{}{}) in {}",
        output.display(),
        counted(*threads, "thread"),
        counted(product.bands, "band"),
        product.band_columns,
        counted(product.chunks, "chunk"),
        product.chunk_rows,
        format_bytes(product.planned_bytes),
        each_of(*ranks),
        if report.checked { ", self-checked" } else { "" },
        format_seconds(report.seconds),
    )
}
