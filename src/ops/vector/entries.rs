//! Vectors and scalars as the calls take them, and results, whose entries are written one by one, or column by column,
//! on the context's threads.

use crate::context::{Context, Progress};
use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Destination, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, MatrixViewMut};
use crate::ops::columns::{Column, each_column};
use rug::Float;
use serde::Serialize;
use std::time::Instant;

/// Work that is worth a thread of its own, and work that a thread takes at a time.
const WORKER_NANOSECONDS: f64 = 100_000.0;
const PIECE_NANOSECONDS: f64 = 20_000.0;

/// The shape, the memory and the time of one call on vectors.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct VectorReport {
    /// `gemv`, `symv`, `trmv`, `trsv`, `ger`, `axpy`, `hadamard`, `spmm` or `sddmm`.
    pub operation: &'static str,
    /// Number of entries of the result, or its rows for `ger`, `hadamard` and `spmm`.
    pub rows: usize,
    /// Number of terms of the longest sum, or columns of the result for `ger`, `hadamard` and `spmm`.
    pub cols: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Worker threads.
    pub threads: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the call needs, including the result.
    pub planned_bytes: u64,
}

/// A matrix of one column or one row, as a column.
///
/// # Errors
/// [`Error::ShapeMismatch`] for anything else.
pub(super) fn vector<'a>(operation: &'static str, view: MatrixView<'a>) -> Result<MatrixView<'a>> {
    match (view.rows(), view.cols()) {
        (_, 1) | (0, 0) => Ok(view),
        (1, _) => Ok(view.transposed()),
        (rows, cols) => Err(Error::shape_mismatch(operation, (rows, cols), (rows, 1))),
    }
}

/// A vector of `len` entries, as a column.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub(super) fn vector_of<'a>(operation: &'static str, view: MatrixView<'a>, len: usize) -> Result<MatrixView<'a>> {
    let column = vector(operation, view)?;
    match column.rows() == len {
        true => Ok(column),
        false => Err(Error::shape_mismatch(operation, (len, 1), (view.rows(), view.cols()))),
    }
}

/// Refuses a precision that no matrix can have.
///
/// # Errors
/// [`Error::Precision`].
pub(super) fn check_precision(precision_bits: u32) -> Result<()> {
    match (2..=MAXIMUM_PRECISION_BITS).contains(&precision_bits) {
        true => Ok(()),
        false => Err(Error::precision(precision_bits, MAXIMUM_PRECISION_BITS)),
    }
}

/// Refuses a scalar that is not finite.
///
/// # Errors
/// [`Error::InvalidArgument`].
pub(super) fn check_scalar(name: &str, value: &Float) -> Result<()> {
    match value.is_finite() {
        true => Ok(()),
        false => Err(Error::InvalidArgument(format!("{name} is {value}: it must be finite"))),
    }
}

/// A scalar as a matrix of one entry, exactly.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is not finite.
pub(super) fn scalar(name: &str, value: &Float) -> Result<Matrix> {
    check_scalar(name, value)?;
    Matrix::from_floats(1, 1, value.prec().max(2), std::slice::from_ref(value))
}

/// The number 1 as a matrix of one entry.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn one() -> Result<Matrix> {
    Matrix::identity(1, 2)
}

/// A column of a view, whose entries are looked up without a check for each.
pub(super) struct Strided<'a> {
    heads: &'a [u64],
    limbs: &'a [u64],
    width: usize,
    first: usize,
    stride: usize,
}

impl<'a> Strided<'a> {
    /// Column `col`, which must exist (asserted if it has entries).
    pub fn column(view: MatrixView<'a>, col: usize) -> Strided<'a> {
        let first = if view.rows() == 0 { 0 } else { view.element_index(0, col) };
        let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
        Strided { heads, limbs, width, first, stride: view.row_stride() }
    }

    /// The entry in this row.
    #[inline]
    pub fn get(&self, row: usize) -> FloatRef<'a> {
        let index = self.first.wrapping_add(row.wrapping_mul(self.stride));
        FloatRef { head: Head(self.heads[index]), limbs: &self.limbs[index * self.width..][..self.width] }
    }
}

/// One call that makes a vector.
pub(super) struct VectorCall<'c> {
    pub ctx: &'c Context,
    pub operation: &'static str,
    /// Entries of the result.
    pub len: usize,
    /// Terms of the longest sum.
    pub terms: usize,
    pub precision_bits: u32,
    /// Estimate for one entry.
    pub entry_nanoseconds: f64,
    /// Bytes of each worker's private memory.
    pub worker_bytes: u64,
}

impl VectorCall<'_> {
    fn workers(&self) -> usize {
        let worth = self.len as f64 * self.entry_nanoseconds / WORKER_NANOSECONDS;
        self.ctx.threads().min(worth as usize).max(1)
    }

    /// Fills `result`: `write` puts the limbs of an entry in place and returns its head; `local` makes the private
    /// memory of each worker.
    ///
    /// # Errors
    /// The first error of `write`; [`crate::Error::MemoryLimit`], [`crate::Error::Cancelled`], those of a result that
    /// does not fit.
    pub fn fill<L: Send>(
        &self,
        result: Destination<'_>,
        local: impl Fn() -> L,
        write: impl Fn(&mut L, usize, &mut [u64]) -> Result<Head> + Sync,
    ) -> Result<VectorReport> {
        self.fill_pieces(result, local, |local, mut piece| {
            (0..piece.count()).try_for_each(|at| piece.set(at, |index, limbs| write(local, index, limbs)))
        })
    }

    /// As [`VectorCall::fill`], with several neighbouring entries for each call of `work`, which writes all of them.
    ///
    /// # Errors
    /// As [`VectorCall::fill`].
    pub fn fill_pieces<L: Send>(
        &self,
        result: Destination<'_>,
        local: impl Fn() -> L,
        work: impl Fn(&mut L, VectorPiece<'_>) -> Result<()> + Sync,
    ) -> Result<VectorReport> {
        let start = Instant::now();
        let workers = self.workers();
        let bytes = Matrix::bytes_for(self.len, 1, self.precision_bits);
        let planned_bytes = bytes.saturating_add(workers as u64 * self.worker_bytes);
        self.ctx.admit(planned_bytes)?;
        let result = prepare(result, self.len, self.precision_bits)?;
        let meter = Meter::new(self.ctx, self.len as u64);
        let piece = match workers {
            1 => self.len.max(1),
            _ => (PIECE_NANOSECONDS / self.entry_nanoseconds) as usize + 1,
        };
        let mut pieces = VectorPiece::all(result, piece);
        let fill = |local: &mut L, piece: VectorPiece<'_>| {
            let count = piece.count() as u64;
            work(local, piece)?;
            meter.add(self.operation, count)
        };
        let next = |_: &mut L| pieces.next();
        if workers == 1 {
            // On the stack: digits of eight numbers begin with a line of the cache, which a heap is slow to find.
            drive::parallel_for(&mut [local()], next, fill)?;
        } else {
            let mut locals = (0..workers).map(|_| local()).collect::<Vec<_>>();
            self.ctx.install(|| drive::parallel_for(&mut locals, next, fill))?;
        }
        Ok(VectorReport {
            operation: self.operation,
            rows: self.len,
            cols: self.terms,
            precision_bits: self.precision_bits,
            threads: workers,
            seconds: start.elapsed().as_secs_f64(),
            planned_bytes,
        })
    }
}

/// One call that makes a matrix, column by column.
pub(super) struct ColumnsCall<'c> {
    pub ctx: &'c Context,
    pub operation: &'static str,
    pub rows: usize,
    pub cols: usize,
    pub precision_bits: u32,
    /// Bytes of each worker's private memory.
    pub worker_bytes: u64,
    /// The start of the call.
    pub start: Instant,
}

impl ColumnsCall<'_> {
    /// Fills `result`: `work` writes a column; `local` makes the private memory of each worker.
    ///
    /// # Errors
    /// As [`VectorCall::fill`].
    pub fn fill<L: Send>(
        &self,
        result: Destination<'_>,
        local: impl Fn() -> L,
        work: impl Fn(&mut L, &mut Column<'_>) -> Result<()> + Sync,
    ) -> Result<VectorReport> {
        let ColumnsCall { ctx, operation, rows, cols, precision_bits, worker_bytes, start } = *self;
        let workers_bytes = (ctx.threads() as u64).saturating_mul(worker_bytes);
        let planned_bytes = Matrix::bytes_for(rows, cols, precision_bits).saturating_add(workers_bytes);
        ctx.admit(planned_bytes)?;
        let result = result.prepare((rows, cols), precision_bits)?;
        each_column(ctx, result, local, |local, mut column| {
            work(local, &mut column)?;
            ctx.report_progress(Progress::new(operation, column.index as u64 + 1, cols as u64))
        })?;
        let (threads, seconds) = (ctx.threads(), start.elapsed().as_secs_f64());
        Ok(VectorReport { operation, rows, cols, precision_bits, threads, seconds, planned_bytes })
    }
}

/// The place of a resulting vector: a column, or a row where the caller's memory is one.
///
/// # Errors
/// The errors of [`Destination::prepare`].
pub(super) fn prepare(result: Destination<'_>, len: usize, precision_bits: u32) -> Result<MatrixViewMut<'_>> {
    let is_row = match &result {
        Destination::Matrix(matrix) => matrix.fits(1, len, precision_bits),
        Destination::Block(block) => (block.rows(), block.cols()) == (1, len),
    };
    result.prepare(if is_row { (1, len) } else { (len, 1) }, precision_bits)
}

/// Neighbouring entries of a vector.
pub(super) struct VectorPiece<'r> {
    /// Index of the first.
    pub first: usize,
    heads: &'r mut [u64],
    limbs: &'r mut [u64],
    /// From one entry to the next.
    stride: usize,
    width: usize,
}

impl<'r> VectorPiece<'r> {
    fn all(vector: MatrixViewMut<'r>, count: usize) -> impl Iterator<Item = VectorPiece<'r>> + Send {
        let width = vector.limbs_per_element();
        let stride = if vector.cols() > 1 { vector.leading_dimension() } else { 1 };
        let (heads, limbs) = vector.into_parts();
        let both = heads.chunks_mut(count * stride).zip(limbs.chunks_mut(count * stride * width));
        both.enumerate().map(move |(at, (heads, limbs))| VectorPiece { first: at * count, heads, limbs, stride, width })
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.heads.len().div_ceil(self.stride)
    }

    /// Sets one of them: `write` gets its index in the vector and its limbs, and gives its head.
    ///
    /// # Errors
    /// The error of `write`.
    #[inline]
    pub fn set(&mut self, at: usize, write: impl FnOnce(usize, &mut [u64]) -> Result<Head>) -> Result<()> {
        let place = at * self.stride;
        let limbs = &mut self.limbs[place * self.width..][..self.width];
        self.heads[place] = write(self.first + at, limbs)?.0;
        Ok(())
    }
}
