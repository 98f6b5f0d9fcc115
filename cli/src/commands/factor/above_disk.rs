//! `sunzi cholesky --storage`: from a binary file to a binary file, with the tiles in a directory.
//!
//! Independent of: blocks.

use crate::args::{Cholesky, ElementType, Output};
use crate::commands::above_disk::{self, check_binary, check_grid, each_of};
use crate::files::stated_precision;
use crate::progress::{Stage, factor_seconds};
use crate::session::{Session, Work, check_output};
use crate::triangles::FACTORED;
use std::path::Path;
use sunzi::comm::{Transport, agree, agreed, local};
use sunzi::distributed::Team;
use sunzi::io::MatrixFile;
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCoreReport};
use sunzi::{Accuracy, Context, Error, Result, Uplo};
use sunzi_session::session::ROOT;
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// Runs in this process, or on the ranks that work `together`, each with a directory of its own below the one given.
pub fn run(session: &mut Session, args: &Cholesky, together: Option<&dyn Transport>) -> Result<()> {
    let Cholesky { factor, ranks: _, storage, output, element_type } = args;
    let directory = storage.directory.as_deref().expect("asked for");
    let output = output.clone().given().expect("an output goes with a storage directory");
    let world = together.unwrap_or(local::alone());
    let is_root = world.rank() == ROOT;
    agree(world, check(args, &output, together))?;
    let file = agreed(world, MatrixFile::open(&factor.a))?;
    // The library reads the triangle that is named, and nothing of the other one.
    agree(world, if is_root { FACTORED.check_file(&file, factor.triangle.named()) } else { Ok(()) })?;
    let asked = if *element_type == ElementType::Double {
        Some(f64::MANTISSA_DIGITS)
    } else {
        factor.precision.typed(None).bits
    };
    let bits = agreed(world, stated_precision(asked, &factor.a, Some(&file.info())))?;
    let order = file.rows();
    if is_root {
        session.expect(&[&factor.a], bits, |_| Work {
            stages: vec![Stage::call("factor", factor_seconds(order, bits))],
            output: Some((output.path.as_path(), (order, order))),
        });
        session.follow_phases();
    }
    let options = OutOfCoreOptions::new()
        .tile_rows(factor.tile_rows)
        .lower(factor.triangle.uplo() == Some(Uplo::Lower))
        .caching(storage.caching)
        .grid(args.ranks.grid);
    let files = (factor.a.as_path(), output.path.as_path());
    let builder = agreed(world, session.context(&factor.engine))?;
    let call = |ctx: &Context, team: Option<&Team>| match (team, element_type) {
        (None, ElementType::Big) => out_of_core::cholesky(ctx, files, directory, bits, &options),
        (Some(team), ElementType::Big) => out_of_core::cholesky_over_ranks(ctx, team, files, directory, bits, &options),
        (None, ElementType::Double) => out_of_core::double_cholesky(ctx, files, directory, &options),
        (Some(team), ElementType::Double) => {
            out_of_core::double_cholesky_over_ranks(ctx, team, files, directory, &options)
        }
    };
    let report = above_disk::run(session, builder, factor.engine.budget(0), directory, together, call)?;
    if !is_root {
        return Ok(());
    }
    let line = line(&output.path, &report);
    above_disk::finish(session, &report, &line, directory, &report.disk, "factor")
}

/// Refuses arguments that cannot work, before anything is read.
fn check(args: &Cholesky, output: &Output, together: Option<&dyn Transport>) -> Result<()> {
    check_output(output)?;
    check_binary(&[&args.factor.a, &output.path])?;
    check_grid(args.ranks.grid, together)?;
    check_choices(args)
}

fn check_choices(args: &Cholesky) -> Result<()> {
    let refused = |message: &str| Err(Error::InvalidArgument(message.into()));
    if args.element_type == ElementType::Big && args.factor.accuracy != Accuracy::Norm {
        return refused("--storage requires --accuracy norm for a factor of big floats");
    }
    if args.factor.precision.automatic().is_some() {
        return refused("--precision auto cannot be used with --storage: give the bits");
    }
    Ok(())
}

fn line(output: &Path, report: &OutOfCoreReport) -> String {
    let OutOfCoreReport { order, precision_bits, kernel, threads, plan, .. } = report;
    let element = if report.element == "double" { "doubles".into() } else { format!("{precision_bits} bits") };
    let (rows, cols) = plan.block_tiles;
    let ranks = report.ranks.as_ref().map_or(String::new(), |ranks| {
        format!("{} as {} x {}", each_of(ranks.ranks), ranks.grid.rows, ranks.grid.cols)
    });
    format!(
        "{}: {order} x {order}, {element} ({kernel}, {}, tiles of {} rows in blocks of {rows} x {cols}, {} \
         planned{ranks}) in {}",
        output.display(),
        counted(*threads, "thread"),
        plan.tile_rows,
        format_bytes(plan.planned_bytes),
        format_seconds(report.seconds),
    )
}
