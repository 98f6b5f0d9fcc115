//! Products of matrices larger than memory: from binary files to a binary file, tiles of the result in a storage
//! directory in between.
//!
//! The product is that of one process (`product::run`) with operands that are read piece by piece, ahead of their
//! conversion (`product::streamed`), and a result that is rounded tile by tile. Tiles are published as they are
//! finished, so a run that was ended goes on from them. Source: docs/OUT_OF_CORE.md.

mod plan;
mod scan;
mod tiles;

pub use plan::OutOfCoreProductPlan;

use crate::comm::window::NodeWindow;
use crate::context::{Context, Workspace, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::io::{BlockStreamStatistics, MatrixFile};
use crate::matrix::{Op, Uplo};
use crate::ops::disk_use::{DiskUse, progress_of};
use crate::ops::distribution::team::Ranks;
use crate::ops::product::clock::PhaseClock;
use crate::ops::product::combine::Combination;
use crate::ops::product::plan::PlannedRun;
use crate::ops::product::problem::{Bits, OperandRows, check_precision};
use crate::ops::product::report::Phases;
use crate::ops::product::run::{ProductRun, RunState};
use crate::ops::product::size::ProductSize;
use crate::ops::product::space::worker_spaces;
use crate::ops::product::streamed::{FileOperand, StreamedOperands};
use crate::options::setters;
use crate::plan::NodeShape;
use crate::storage::{AnsweredStorage, Caching, Identity};
use crate::tile::TileMap;
use scan::scan;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tiles::ResultTiles;

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
    /// Worker threads.
    pub threads: usize,
    /// Bands, chunks, memory and bytes as planned.
    pub plan: OutOfCoreProductPlan,
    /// What was found there, read and written.
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
/// Those of [`crate::syrk_with`]; [`Error::MemoryLimit`] with the least limit that would do;
/// [`Error::StorageMismatch`] for a directory of another product, [`Error::StorageInUse`] where another run works
/// there; [`Error::DiskFull`], [`Error::Io`]: what was finished stays, and the next call goes on from there;
/// [`Error::InvalidArgument`] for a context with Freivalds' test, which would have to read all once more.
pub fn syrk(
    ctx: &Context,
    p: OperandFile<'_>,
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    FileProduct::syrk(p, precision_bits)?.run(ctx, paths, options)
}

/// `C := op(A) op(B)` from the binary files of `A` and `B` to that of `C`; the rest is as in [`syrk`].
///
/// # Errors
/// As [`syrk`]; [`Error::ShapeMismatch`].
pub fn gemm(
    ctx: &Context,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    FileProduct::gemm((a, b), precision_bits)?.run(ctx, paths, options)
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

/// A product of matrices in files: `X^T Y` of the operands' columns.
struct FileProduct {
    operation: &'static str,
    left: FileOperand,
    /// `None` for SYRK.
    right: Option<FileOperand>,
    precision_bits: u32,
}

fn open(path: &Path) -> Result<Arc<MatrixFile>> {
    MatrixFile::open(path).map(Arc::new)
}

impl FileProduct {
    fn syrk(p: OperandFile<'_>, precision_bits: u32) -> Result<FileProduct> {
        let left = FileOperand::new(open(p.path)?, p.op);
        Ok(FileProduct { operation: "syrk", left, right: None, precision_bits })
    }

    fn gemm((a, b): (OperandFile<'_>, OperandFile<'_>), precision_bits: u32) -> Result<FileProduct> {
        // The columns of the left operand are the rows of op(A).
        let op = if a.op == Op::Transpose { Op::NoTranspose } else { Op::Transpose };
        let (left, right) = (FileOperand::new(open(a.path)?, op), FileOperand::new(open(b.path)?, b.op));
        Ok(FileProduct { operation: "gemm", left, right: Some(right), precision_bits })
    }

    fn right(&self) -> &FileOperand {
        self.right.as_ref().unwrap_or(&self.left)
    }

    fn size(&self) -> ProductSize {
        let (rows, cols) = (self.left.cols(), self.right().cols());
        ProductSize { contracted: self.left.rows(), rows, cols, triangle: self.right.is_none() }
    }

    fn check(&self, ctx: &Context) -> Result<()> {
        let (left, right) = (&self.left, self.right());
        if left.rows() != right.rows() {
            let shapes = ((left.cols(), left.rows()), (right.rows(), right.cols()));
            return Err(Error::shape_mismatch(self.operation, shapes.0, shapes.1));
        }
        if ctx.freivalds() {
            return Err(Error::InvalidArgument(
                "Freivalds' test would read the operands of a product above a disk once more: the self-check is there"
                    .into(),
            ));
        }
        check_precision(ctx.kernel(), self.precision_bits, left.rows())?;
        self.size().check(self.precision_bits)
    }

    fn planned(&self, ctx: &Context, options: &OutOfCoreProductOptions) -> Result<OutOfCoreProductPlan> {
        self.check(ctx)?;
        Ok(self.plan(ctx, &self.tiling(options), options.caching)?.1)
    }

    fn run(
        &self,
        ctx: &Context,
        paths: ProductPaths<'_>,
        options: &OutOfCoreProductOptions,
    ) -> Result<OutOfCoreProductReport> {
        let start = Instant::now();
        self.check(ctx)?;
        let tiling = self.tiling(options);
        // Refused before a file is read.
        let (planned, plan) = self.plan(ctx, &tiling, options.caching)?;
        let (mut left, left_checksum) = scan(&self.left, progress_of(ctx))?;
        let (mut right, right_checksum) = match &self.right {
            Some(right) => scan(right, progress_of(ctx))?,
            None => (Vec::new(), left_checksum),
        };
        let bits = Bits::scaled(self.precision_bits, self.size().contracted);
        left.iter_mut().chain(&mut right).for_each(|exponent| *exponent = i64::from(bits.working) - *exponent);
        let scan_seconds = start.elapsed().as_secs_f64();
        let call = DiskProduct {
            ctx,
            problem: self,
            planned: &planned,
            tiling,
            bits,
            shifts: (&left, &right),
            identity: self.identity(&tiling, (left_checksum, right_checksum)),
            caching: options.caching,
        };
        let made = call.make(paths)?;
        let size = self.size();
        Ok(OutOfCoreProductReport {
            operation: self.operation,
            contracted: size.contracted,
            rows: size.rows,
            cols: size.cols,
            precision_bits: self.precision_bits,
            working_bits: bits.working,
            kernel: planned.plan.kernel,
            primes: planned.plan.primes,
            threads: ctx.threads(),
            plan,
            disk: made.disk,
            operand_seconds: made.operand_seconds,
            wait_seconds: made.wait_seconds,
            seconds: start.elapsed().as_secs_f64(),
            scan_seconds,
            product_seconds: made.product_seconds,
            store_seconds: made.store_seconds,
            phases: made.phases,
            checked: ctx.self_check(),
        })
    }

    fn identity(&self, tiling: &TileMap, (left, right): (u64, u64)) -> Identity {
        let size = self.size();
        let stored = |operand: &FileOperand| {
            format!("{} x {}, {} bits", operand.file.rows(), operand.file.cols(), operand.file.precision_bits())
        };
        Identity::new(self.operation)
            .with("rows", size.rows)
            .with("cols", size.cols)
            .with("contracted", size.contracted)
            .with("precision_bits", self.precision_bits)
            .with("left_matrix", stored(&self.left))
            .with("right_matrix", stored(self.right()))
            .with("left_transposed", self.left.transposed)
            .with("right_transposed", self.right().transposed)
            .with("left_checksum", format!("{left:016x}"))
            .with("right_checksum", format!("{right:016x}"))
            .with("tile_size", tiling.tile_size)
    }
}

/// A product under way.
struct DiskProduct<'a> {
    ctx: &'a Context,
    problem: &'a FileProduct,
    planned: &'a PlannedRun,
    tiling: TileMap,
    bits: Bits,
    /// Scale shifts of the columns of both operands; those of the right one are empty for SYRK.
    shifts: (&'a [i64], &'a [i64]),
    identity: Identity,
    caching: Caching,
}

/// What became of it.
#[derive(Default)]
struct Made {
    disk: DiskUse,
    operand_seconds: f64,
    wait_seconds: f64,
    phases: Phases,
    product_seconds: f64,
    store_seconds: f64,
}

impl DiskProduct<'_> {
    /// Makes all tiles that are not there, and writes the result. A damaged tile is made again.
    fn make(&self, paths: ProductPaths<'_>) -> Result<Made> {
        let mut made = Made::default();
        loop {
            let (objects, damaged) = AnsweredStorage::open(paths.storage, &self.identity, self.caching)?;
            made.disk.groups_repaired += damaged;
            let (tiling, bits) = (self.tiling, self.problem.precision_bits);
            let mut tiles = ResultTiles::new(objects, tiling, bits, self.problem.tile_buffers(self.ctx))?;
            made.disk.tiles_found = made.disk.tiles_found.max(tiles.found());
            let start = Instant::now();
            let multiplied = self.multiply(&mut tiles, &mut made);
            // What was rounded is written, whatever ended the product.
            let finished = tiles.finish();
            made.product_seconds += start.elapsed().as_secs_f64();
            multiplied.and(finished)?;
            let start = Instant::now();
            let written = match self.problem.size().is_empty() {
                true => tiles.write_zeros(self.ctx, paths.result),
                false => tiles.write(self.ctx, paths.result),
            };
            made.store_seconds += start.elapsed().as_secs_f64();
            made.disk.add(&tiles.objects.storage);
            match written {
                Ok(()) => return Ok(made),
                Err(Error::Damaged { object, .. } | Error::Truncated { object, .. }) => {
                    tiles.objects.discard(&object)?;
                    made.disk.groups_repaired += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Multiplies the pairs of bands that have tiles which are not there.
    fn multiply(&self, tiles: &mut ResultTiles, made: &mut Made) -> Result<()> {
        let DiskProduct { ctx, problem, planned, bits, shifts, .. } = *self;
        let PlannedRun { engine, cutting, words, plan, .. } = planned;
        let schedule = planned.schedule.clone().of_pairs(|pair| tiles.is_wanted(pair));
        if problem.size().is_empty() || schedule.pairs().next().is_none() {
            return Ok(());
        }
        let mut workspace = ctx.workspace();
        workspace.trim(ctx.memory(), &self.needs());
        workspace.reserve_workers(plan.threads);
        let Workspace { operands, products, workers, .. } = &mut *workspace;
        let spaces = worker_spaces(&mut workers[..plan.threads], engine.magnitude_limbs(), words.scratch)?;
        let operands = NodeWindow::Alone(operands.words(words.operands)?);
        let products = NodeWindow::Alone(products.words(words.products)?);
        let options = problem.stream(cutting.cut.band_panels, cutting.cut.chunk_rows, self.caching);
        let files = (&problem.left, problem.right());
        let streamed = StreamedOperands::new(files, &schedule, cutting.chunks, options)?;
        let mut clock = PhaseClock::alone(Instant::now());
        let shape = NodeShape::alone(problem.size().contracted, plan.threads);
        let run = ProductRun {
            ctx,
            ranks: Ranks::alone(),
            shape: &shape,
            engine: &**engine,
            cutting: *cutting,
            schedule,
            left: OperandRows { blocks: &[], shifts: shifts.0 },
            right: problem.right.as_ref().map(|_| OperandRows { blocks: &[], shifts: shifts.1 }),
            streamed: Some(&streamed),
            uplo: Uplo::Lower,
            bits,
            combination: Combination::new(None, None, None),
            owners: None,
            fault: None,
        };
        let outcome = run.run(&mut RunState { operands, products, spaces, clock: &mut clock }, tiles);
        let BlockStreamStatistics { read_bytes, read_seconds, wait_seconds } = streamed.statistics();
        made.disk.read_bytes += read_bytes;
        made.operand_seconds += read_seconds;
        made.wait_seconds += wait_seconds;
        made.phases = Phases::new(&clock, &outcome?);
        Ok(())
    }

    fn needs(&self) -> WorkspaceNeeds {
        let plan = &self.planned.plan;
        WorkspaceNeeds {
            operand_bytes: plan.bytes.operand_window,
            product_bytes: plan.bytes.product_window,
            workers: plan.threads,
            worker_bytes: (plan.bytes.scratch + plan.bytes.integers) / plan.threads.max(1) as u64,
            planned_bytes: plan.planned_bytes,
        }
    }
}
