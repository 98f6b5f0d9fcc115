//! The entries of a resulting vector, written one by one on the context's threads.

use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::math::float::Head;
use crate::matrix::{Destination, Matrix, MatrixViewMut};
use crate::ops::vector::report::VectorReport;
use std::time::Instant;

/// Work that is worth a thread of its own, and work that a thread takes at a time.
const WORKER_NANOSECONDS: f64 = 100_000.0;
const PIECE_NANOSECONDS: f64 = 20_000.0;

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

    /// The same with some neighbouring entries at a time, all of which `work` writes.
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

    /// How many.
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
