//! Big floats between matrices and the pinned memory that copies run from and to.

use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::math::float::{Head, bit_length};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView, MatrixViewMut, Uplo};
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::combine::{Combination, Place};
use crate::ops::product::inner_check::{InnerCheck, RowSums};
use std::ops::Range;

/// A rectangle of a matrix, dense and column-major in a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Rows.
    pub rows: Range<usize>,
    /// Columns.
    pub cols: Range<usize>,
}

impl Piece {
    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.rows.len() * self.cols.len()
    }
}

/// Bytes of `entries` heads and as many times `limbs` limbs.
pub(super) fn float_bytes(entries: usize, limbs: usize) -> usize {
    entries * 8 * (1 + limbs)
}

/// Copies a piece of `view` into `bytes`: all heads first, then all limbs.
pub(super) fn gather(ctx: &Context, view: MatrixView<'_>, piece: &Piece, bytes: &mut [u8]) -> Result<()> {
    let width = view.limbs_per_element();
    let words = bytemuck::cast_slice_mut::<u8, u64>(&mut bytes[..float_bytes(piece.entries(), width)]);
    let (heads, limbs) = words.split_at_mut(piece.entries());
    let rows = piece.rows.clone();
    let columns = heads.chunks_exact_mut(rows.len()).zip(limbs.chunks_exact_mut(rows.len() * width));
    let mut columns = piece.cols.clone().zip(columns);
    let mut locals = vec![(); ctx.threads()];
    let work = |_: &mut (), (col, (heads, limbs)): (usize, (&mut [u64], &mut [u64]))| {
        gather_column(view, rows.clone(), col, heads, limbs);
        Ok(())
    };
    ctx.install(|| drive::parallel_for(&mut locals, |_| columns.next(), work))
}

fn gather_column(view: MatrixView<'_>, rows: Range<usize>, col: usize, heads: &mut [u64], limbs: &mut [u64]) {
    let width = view.limbs_per_element();
    if view.row_stride() == 1 {
        let first = view.element_index(rows.start, col);
        heads.copy_from_slice(&view.all_heads()[first..][..rows.len()]);
        limbs.copy_from_slice(&view.all_limbs()[first * width..][..rows.len() * width]);
        return;
    }
    for ((row, head), limbs) in rows.zip(heads).zip(limbs.chunks_exact_mut(width)) {
        let at = view.element_index(row, col);
        *head = view.all_heads()[at];
        limbs.copy_from_slice(&view.all_limbs()[at * width..][..width]);
    }
}

/// Where finished entries go.
pub(super) struct Sink<'a> {
    pub ctx: &'a Context,
    /// The triangle that is wanted, if only one is.
    pub triangle: Option<Uplo>,
    pub left_shifts: &'a [i64],
    pub right_shifts: &'a [i64],
    pub combination: Combination<'a>,
    pub precision_bits: u32,
    /// Bit length that no product may exceed, where a redundant modulus is held.
    pub largest_bits: Option<u32>,
    pub check: Option<&'a InnerCheck>,
}

/// One column of the result, and where in a copy its entries begin.
struct Column<'r> {
    col: usize,
    rows: Range<usize>,
    /// Entry of the copy that belongs to `rows.start`.
    first: usize,
    heads: &'r mut [u64],
    limbs: &'r mut [u64],
}

impl Sink<'_> {
    /// Whether entries are rounded on the device: nothing but the product is wanted, and nobody asks for its integers.
    pub fn rounds_on_device(&self) -> bool {
        self.combination.is_plain() && self.check.is_none()
    }

    /// Rows of column `col` that are wanted of `rows`; `0..0` for none.
    fn wanted(&self, rows: &Range<usize>, col: usize, count: usize) -> Range<usize> {
        let (start, end) = match self.triangle {
            None => (0, count),
            Some(Uplo::Lower) => (col, count),
            Some(Uplo::Upper) => (0, col + 1),
        };
        let wanted = rows.start.max(start)..rows.end.min(end);
        if wanted.is_empty() { 0..0 } else { wanted }
    }

    /// Runs `work` on all columns of a piece that lie in the result.
    fn for_columns<L: Send>(
        &self,
        piece: &Piece,
        result: &mut MatrixViewMut<'_>,
        locals: &mut [L],
        work: impl Fn(&mut L, Column<'_>) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let (count, width, cols) = (result.rows(), result.limbs_per_element(), result.cols());
        let inside = piece.cols.start.min(cols)..piece.cols.end.min(cols);
        if count == 0 || inside.is_empty() {
            return Ok(());
        }
        let columns = result.reborrow().block(0..count, inside.clone())?.into_columns();
        let mut columns = inside.zip(columns).map(|(col, (heads, limbs))| {
            let rows = self.wanted(&piece.rows, col, count);
            let first = (col - piece.cols.start) * piece.rows.len() + rows.start.saturating_sub(piece.rows.start);
            let limbs = &mut limbs[rows.start * width..rows.end * width];
            Column { col, first, heads: &mut heads[rows.clone()], limbs, rows }
        });
        self.ctx.install(|| drive::parallel_for(locals, |_| columns.next(), work))
    }

    /// Copies rounded entries, heads first and then limbs, into the result.
    pub fn store_rounded(&self, piece: &Piece, bytes: &[u8], result: &mut MatrixViewMut<'_>) -> Result<()> {
        let width = result.limbs_per_element();
        let words = bytemuck::cast_slice::<u8, u64>(&bytes[..float_bytes(piece.entries(), width)]);
        let (heads, limbs) = words.split_at(piece.entries());
        let mut locals = vec![(); self.ctx.threads()];
        self.for_columns(piece, result, &mut locals, |_, column| {
            let count = column.rows.len();
            column.heads.copy_from_slice(&heads[column.first..][..count]);
            column.limbs.copy_from_slice(&limbs[column.first * width..][..count * width]);
            Ok(())
        })
    }

    /// Finishes exact integers, each a sign word and `limbs` limbs, into the result.
    ///
    /// # Errors
    /// [`Error::SelfCheck`], [`Error::ExponentRange`].
    pub fn finish(&self, piece: &Piece, bytes: &[u8], limbs: usize, result: &mut MatrixViewMut<'_>) -> Result<()> {
        let words = bytemuck::cast_slice::<u8, u64>(&bytes[..float_bytes(piece.entries(), limbs)]);
        let width = result.limbs_per_element();
        let mut sums = (0..self.ctx.threads()).map(|_| self.check.map(InnerCheck::row_sums)).collect::<Vec<_>>();
        self.for_columns(piece, result, &mut sums, |sums: &mut Option<RowSums>, column| {
            let integers = words[column.first * (1 + limbs)..].chunks_exact(1 + limbs);
            let targets = column.heads.iter_mut().zip(column.limbs.chunks_exact_mut(width));
            for ((row, integer), (head, out)) in column.rows.zip(integers).zip(targets) {
                let (negative, magnitude) = (integer[0] != 0, &integer[1..]);
                let place = Place { row, col: column.col };
                if let (Some(check), Some(sums)) = (self.check, sums.as_mut()) {
                    check.add(sums, place, negative, magnitude);
                }
                self.check_range(magnitude, place)?;
                let exponent = -(self.left_shifts[row] + self.right_shifts[column.col]);
                let exact = ExactEntry { negative, magnitude, exponent };
                *head = self.combination.finish(exact, place, self.precision_bits, out)?.0;
            }
            Ok(())
        })?;
        if let Some(check) = self.check {
            sums.into_iter().flatten().for_each(|sums| check.collect(sums));
        }
        Ok(())
    }

    fn check_range(&self, magnitude: &[u64], Place { row, col }: Place) -> Result<()> {
        match self.largest_bits {
            Some(bits) if bit_length(magnitude) > u64::from(bits) => Err(Error::SelfCheck { row, column: col }),
            _ => Ok(()),
        }
    }

    /// The error that a device found while rounding a piece: the first entry out of the proven range, and the first
    /// whose exponent cannot be stored, counted in the piece; `u64::MAX` where there is none.
    pub fn faults(&self, piece: &Piece, [range, exponent]: [u64; 2], heads: &[u8]) -> Result<()> {
        let place = |entry: usize| {
            let (rows, cols) = (piece.rows.len(), &piece.cols);
            let (row, col) = (piece.rows.start + entry % rows, cols.start + entry / rows);
            // A square on the diagonal has both triangles, of which one was asked for.
            match self.triangle {
                Some(Uplo::Upper) if row > col => (col, row),
                Some(Uplo::Lower) if row < col => (col, row),
                _ => (row, col),
            }
        };
        if range != u64::MAX {
            let (row, column) = place(range as usize);
            return Err(Error::SelfCheck { row, column });
        }
        if exponent != u64::MAX {
            let (row, column) = place(exponent as usize);
            let head = bytemuck::pod_read_unaligned::<u64>(&heads[exponent as usize * 8..][..8]);
            return Err(Error::ExponentRange { row, column, exponent: Head(head).exponent(), limit: MAXIMUM_EXPONENT });
        }
        Ok(())
    }
}
