//! A product of matrices in files, and its way from their headers to the report.

use super::run::DiskProduct;
use super::scan::scan;
use super::{OperandFile, OutOfCoreProductOptions, OutOfCoreProductPlan, OutOfCoreProductReport, ProductPaths};
use crate::comm::{Reduction, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::matrix::Op;
use crate::ops::disk::{Place, ResultCut, progress_of};
use crate::ops::product::problem::{Bits, check_precision};
use crate::ops::product::size::ProductSize;
use crate::ops::product::streamed::FileOperand;
use crate::storage::Identity;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A product of matrices in files: `X^T Y` of the operands' columns.
pub(super) struct FileProduct {
    pub operation: &'static str,
    pub left: FileOperand,
    /// `None` for SYRK.
    pub right: Option<FileOperand>,
    pub precision_bits: u32,
}

fn open(path: &Path) -> Result<Arc<MatrixFile>> {
    MatrixFile::open(path).map(Arc::new)
}

impl FileProduct {
    pub fn syrk(p: OperandFile<'_>, precision_bits: u32) -> Result<FileProduct> {
        let left = FileOperand::new(open(p.path)?, p.op);
        Ok(FileProduct { operation: "syrk", left, right: None, precision_bits })
    }

    pub fn gemm((a, b): (OperandFile<'_>, OperandFile<'_>), precision_bits: u32) -> Result<FileProduct> {
        // The columns of the left operand are the rows of op(A).
        let op = if a.op == Op::Transpose { Op::NoTranspose } else { Op::Transpose };
        let (left, right) = (FileOperand::new(open(a.path)?, op), FileOperand::new(open(b.path)?, b.op));
        Ok(FileProduct { operation: "gemm", left, right: Some(right), precision_bits })
    }

    pub fn right(&self) -> &FileOperand {
        self.right.as_ref().unwrap_or(&self.left)
    }

    pub fn size(&self) -> ProductSize {
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

    pub fn planned(&self, ctx: &Context, options: &OutOfCoreProductOptions) -> Result<OutOfCoreProductPlan> {
        self.check(ctx)?;
        Ok(self.plan((ctx, Place::alone()), &self.cut(options), options.caching)?.1)
    }

    /// Shifts of the columns that scale them to the working precision, and the checksums of the files, as rank 0 finds
    /// them. Collective.
    fn scan(&self, (ctx, place): (&Context, Place<'_>), bits: &Bits) -> Result<Scanned> {
        let words = place.from_root(|| {
            let (left, left_checksum) = scan(&self.left, progress_of(ctx))?;
            let (right, right_checksum) = match &self.right {
                Some(right) => scan(right, progress_of(ctx))?,
                None => (Vec::new(), left_checksum),
            };
            let shifts = left.iter().chain(&right).map(|exponent| (i64::from(bits.working) - exponent) as u64);
            Ok([left_checksum, right_checksum].into_iter().chain(shifts).collect())
        })?;
        let (checksums, shifts) = words.split_at(2);
        let (left, right) = shifts.split_at(self.left.cols());
        let signed = |words: &[u64]| words.iter().map(|&word| word as i64).collect();
        Ok(Scanned { shifts: (signed(left), signed(right)), checksums: (checksums[0], checksums[1]) })
    }

    fn identity(&self, cut: &ResultCut, (left, right): (u64, u64)) -> Identity {
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
            .with("tile_size", cut.block_rows)
    }
}

/// What a product has to know of the entries of its operands.
struct Scanned {
    /// Of the columns of both operands; those of the right one are empty for SYRK.
    shifts: (Vec<i64>, Vec<i64>),
    checksums: (u64, u64),
}

/// The product that `open` finds the files of. Collective.
pub(super) fn run(
    (ctx, place): (&Context, Place<'_>),
    open: impl FnOnce() -> Result<FileProduct>,
    paths: ProductPaths<'_>,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    let (start, world) = (Instant::now(), place.world);
    let problem = agreed(world, open().and_then(|problem| problem.check(ctx).map(|()| problem)))?;
    let (ctx, cut) = (&place.share(ctx), problem.cut(options));
    // Refused before a file is read.
    let (planned, plan) = problem.plan((ctx, place), &cut, options.caching)?;
    let bits = Bits::scaled(problem.precision_bits, problem.size().contracted);
    let Scanned { shifts, checksums } = problem.scan((ctx, place), &bits)?;
    let scan_seconds = start.elapsed().as_secs_f64();
    let call = DiskProduct {
        ctx,
        place,
        problem: &problem,
        planned: &planned,
        cut,
        bits,
        shifts: (&shifts.0, &shifts.1),
        identity: problem.identity(&cut, checksums),
        caching: options.caching,
    };
    let mut made =
        agreed(world, place.directory(paths.storage)).and_then(|directory| call.make(paths.result, &directory))?;
    made.disk.sum(world)?;
    let mut threads = [ctx.threads() as u64];
    world.all_reduce(Reduction::Sum, &mut threads)?;
    let size = problem.size();
    Ok(OutOfCoreProductReport {
        operation: problem.operation,
        contracted: size.contracted,
        rows: size.rows,
        cols: size.cols,
        precision_bits: problem.precision_bits,
        working_bits: bits.working,
        kernel: planned.plan.kernel,
        primes: planned.plan.primes,
        threads: threads[0] as usize,
        ranks: world.size(),
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
