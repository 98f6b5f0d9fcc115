//! Products of matrices larger than memory: from binary files to a binary file, tiles of the result in a storage
//! directory in between.
//!
//! The product is that of one process (`product::run`) with operands that are read piece by piece, ahead of their
//! conversion (`product::streamed`), and a result that is rounded tile by tile. Tiles are published as they are
//! finished, so a run that was ended goes on from them. Source: docs/OUT_OF_CORE.md.

mod plan;
mod problem;
mod run;
mod scan;
mod tiles;

pub use plan::OutOfCoreProductPlan;

use crate::context::Context;
use crate::error::Result;
use crate::matrix::Op;
use crate::ops::disk::DiskUse;
use crate::ops::product::report::Phases;
use crate::options::setters;
use crate::site::{Site, Team};
use crate::storage::Caching;
use problem::FileProduct;
use serde::Serialize;
use std::path::Path;

/// An operand in a binary file.
#[derive(Clone, Copy, Debug)]
pub struct OperandFile<'a> {
    /// The file: all entries, or the lower triangle of a symmetric matrix.
    pub path: &'a Path,
    /// Whether it is transposed.
    pub op: Op,
}

impl<'a> OperandFile<'a> {
    /// The matrix in a file as it is.
    pub fn new(path: &'a Path) -> OperandFile<'a> {
        OperandFile { path, op: Op::NoTranspose }
    }

    /// `op` of it.
    #[must_use]
    pub fn op(self, op: Op) -> OperandFile<'a> {
        OperandFile { op, ..self }
    }
}

/// Where a product above a disk goes.
#[derive(Clone, Copy, Debug)]
pub struct ProductPaths<'a> {
    /// The binary file of the result.
    pub result: &'a Path,
    /// The directory of finished tiles.
    pub storage: &'a Path,
}

/// Choices of a product above a disk.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OutOfCoreProductOptions {
    /// Rows and columns of a tile of the result, in multiples of 8; by default what its shape asks for. A directory
    /// belongs to tiles of one size.
    pub tile_size: Option<usize>,
    /// Whether the system's cache is used.
    pub caching: Caching,
}

setters! { new OutOfCoreProductOptions {
    tile_size: impl Into<Option<usize>>,
    caching: Caching,
} }

/// How a product above a disk went.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreProductReport {
    /// `syrk` or `gemm`.
    pub operation: &'static str,
    /// Rows contracted.
    pub contracted: usize,
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Precision of the result.
    pub precision_bits: u32,
    /// Precision of the scaled integers.
    pub working_bits: u32,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Planes, a redundant one included.
    pub primes: usize,
    /// Worker threads, those of all ranks.
    pub threads: usize,
    /// Ranks.
    pub ranks: usize,
    /// Bands, chunks, memory and bytes as planned; of one rank.
    pub plan: OutOfCoreProductPlan,
    /// What was found there, read and written, by all ranks.
    #[serde(flatten)]
    pub disk: DiskUse,
    /// Seconds during which pieces of operands were read.
    pub operand_seconds: f64,
    /// Seconds during which workers waited for them.
    pub wait_seconds: f64,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the pass over the operands.
    pub scan_seconds: f64,
    /// Seconds of the product.
    pub product_seconds: f64,
    /// Seconds of writing the result.
    pub store_seconds: f64,
    /// Wall-clock seconds of the product's phases.
    pub phases: Phases,
    /// Whether a redundant prime checked the product.
    pub checked: bool,
}

/// `Q := P^T P`, or `P P^T` with [`Op::Transpose`], from the binary file of `P` to a binary file that holds the lower
/// triangle of `Q`, with what is finished in a storage directory.
///
/// Shapes, accuracy and bits: those of [`crate::syrk_with`] by norms: the file is that of [`crate::io::write`] of its
/// result, byte for byte, whatever the limit, the threads, and however often the run was ended and begun again.
/// Memory: as planned, at most the context's limit; without one what the machine has. A directory belongs to one
/// matrix, operation, precision and size of tiles; it holds about the bytes of the result, and stays there.
/// Cost: that of [`crate::syrk_with`], a conversion of each band for each pair of bands that it is part of, and the
/// bytes that the plan counts. Source: docs/OUT_OF_CORE.md.
///
/// # Errors
/// Those of [`crate::syrk_with`]; [`crate::Error::MemoryLimit`] with the least limit that would do;
/// [`crate::Error::StorageMismatch`] for a directory of another product, [`crate::Error::StorageInUse`] where another
/// run works there; [`crate::Error::DiskFull`], [`crate::Error::Io`]: what was finished stays, and the next call goes
/// on from there; [`crate::Error::InvalidArgument`] for a context with Freivalds' test, which would have to read all
/// once more.
pub fn syrk(
    ctx: &Context,
    p: OperandFile<'_>,
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site::alone(ctx), || FileProduct::syrk(p, precision_bits), paths, options)
}

/// [`syrk`] over the ranks of `team`: each multiplies pairs of bands of its own, has a directory of its own below that
/// of `paths`, and an equal share of its node's limit. Collective.
///
/// All ranks read the operand's file, each its own bands, and rank 0 all of it once; rank 0 writes the result. A run
/// that is begun again may have another number of ranks: what one of them finds in its directory no rank makes again.
/// The bytes of the file are those of one process.
///
/// # Errors
/// As [`syrk`], the same on every rank; [`crate::Error::Transport`].
pub fn syrk_over_ranks(
    ctx: &Context,
    team: &Team,
    p: OperandFile<'_>,
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site { ctx, team }, || FileProduct::syrk(p, precision_bits), paths, options)
}

/// `C := op(A) op(B)` from the binary files of `A` and `B` to that of `C`; the rest is as in [`syrk`].
///
/// # Errors
/// As [`syrk`]; [`crate::Error::ShapeMismatch`].
pub fn gemm(
    ctx: &Context,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site::alone(ctx), || FileProduct::gemm((a, b), precision_bits), paths, options)
}

/// [`gemm`] over the ranks of `team`; see [`syrk_over_ranks`].
///
/// # Errors
/// As [`syrk_over_ranks`].
pub fn gemm_over_ranks(
    ctx: &Context,
    team: &Team,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site { ctx, team }, || FileProduct::gemm((a, b), precision_bits), paths, options)
}

/// The plan of [`syrk`]: bands, chunks, bytes of memory, bytes that are read.
///
/// # Errors
/// As [`syrk`], as far as the header of the file and the limit go.
pub fn plan_syrk(
    ctx: &Context,
    p: OperandFile<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductPlan> {
    FileProduct::syrk(p, precision_bits)?.planned(ctx, options)
}

/// The plan of [`gemm`]; see [`plan_syrk`].
///
/// # Errors
/// As [`plan_syrk`].
pub fn plan_gemm(
    ctx: &Context,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductPlan> {
    FileProduct::gemm((a, b), precision_bits)?.planned(ctx, options)
}
