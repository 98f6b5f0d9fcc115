//! Big floats between matrices and the pinned memory that copies run from and to.

use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::math::float::{Head, limbs_for};
use crate::matrix::{EntryIndex, MAXIMUM_EXPONENT, MatrixView, Uplo};
use crate::ops::product::device::portions::{CopyPiece, Portion, entries_of};
use crate::ops::product::inner_check::{InnerCheck, RowSums};
use crate::ops::product::sink::ResultTarget;
use crate::ops::product::steps::Rounding;
use std::ops::Range;

/// Bytes of `entries` heads and as many times `limbs` limbs.
pub(super) fn float_bytes(entries: usize, limbs: usize) -> usize {
    entries * 8 * (1 + limbs)
}

/// Copies a piece of `view` into `bytes`: all heads first, then all limbs.
pub(super) fn gather(ctx: &Context, view: MatrixView<'_>, piece: &CopyPiece, bytes: &mut [u8]) -> Result<()> {
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
pub(super) struct EntrySink<'a> {
    pub ctx: &'a Context,
    /// The triangle that is wanted, if only one is.
    pub triangle: Option<Uplo>,
    /// The last steps on the product.
    pub rounding: Rounding<'a>,
}

/// One column of the result, and where in a copy its entries begin.
struct ResultColumn<'r> {
    col: usize,
    rows: Range<usize>,
    /// Entry of the copy that belongs to `rows.start`.
    first: usize,
    heads: &'r mut [u64],
    limbs: &'r mut [u64],
}

impl EntrySink<'_> {
    /// Whether entries are rounded on the device: only the product is required, and no test needs its integers.
    pub fn rounds_on_device(&self) -> bool {
        self.rounding.epilogue.is_plain() && self.rounding.check.is_none()
    }

    /// The sum of both shifts of each entry of a copy.
    pub fn entry_shifts(&self, portions: &[Portion], sums: &mut [i64]) {
        for Portion { piece, at, .. } in portions {
            let columns = sums[*at..][..piece.entries()].chunks_exact_mut(piece.rows.len());
            for (col, sums) in piece.cols.clone().zip(columns) {
                let (left, right) = (&self.rounding.left_shifts[piece.rows.clone()], self.rounding.right_shifts[col]);
                sums.iter_mut().zip(left).for_each(|(sum, left)| *sum = left + right);
            }
        }
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

    /// Runs `work` on all columns of a portion that lie in the result.
    fn for_columns<L: Send>(
        &self,
        portion: &Portion,
        target: &mut ResultTarget<'_>,
        locals: &mut [L],
        work: impl Fn(&mut L, ResultColumn<'_>) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let Portion { piece, at, .. } = portion;
        // A piece lies in one tile of this rank.
        let first = EntryIndex { row: piece.rows.start, col: piece.cols.start };
        let (view, EntryIndex { row: first_row, col: first_col }) = target.part(first).expect("a tile of this rank");
        let (count, width) = (first_row + view.rows(), view.limbs_per_element());
        let inside = piece.cols.start.min(first_col + view.cols())..piece.cols.end.min(first_col + view.cols());
        if view.rows() == 0 || inside.is_empty() {
            return Ok(());
        }
        let local = inside.start - first_col..inside.end - first_col;
        let columns = view.block(0..count - first_row, local)?.into_columns();
        let mut columns = inside.zip(columns).map(|(col, (heads, limbs))| {
            let rows = self.wanted(&piece.rows, col, count);
            let first = at + (col - piece.cols.start) * piece.rows.len() + rows.start.saturating_sub(piece.rows.start);
            let own = if rows.is_empty() { 0..0 } else { rows.start - first_row..rows.end - first_row };
            let limbs = &mut limbs[own.start * width..own.end * width];
            ResultColumn { col, first, heads: &mut heads[own], limbs, rows }
        });
        self.ctx.install(|| drive::parallel_for(locals, |_| columns.next(), work))
    }

    /// Copies rounded entries, heads first and then limbs, into the result.
    pub fn store_rounded(&self, portions: &[Portion], bytes: &[u8], target: &mut ResultTarget<'_>) -> Result<()> {
        let (width, entries) = (limbs_for(self.rounding.precision_bits), entries_of(portions));
        let words = bytemuck::cast_slice::<u8, u64>(&bytes[..float_bytes(entries, width)]);
        let (heads, limbs) = words.split_at(entries);
        let mut locals = vec![(); self.ctx.threads()];
        let mut store = |portion: &Portion| {
            self.for_columns(portion, target, &mut locals, |_, column| {
                let count = column.rows.len();
                column.heads.copy_from_slice(&heads[column.first..][..count]);
                column.limbs.copy_from_slice(&limbs[column.first * width..][..count * width]);
                Ok(())
            })
        };
        portions.iter().try_for_each(&mut store)
    }

    /// The sums that each thread adds to Freivalds' test, where the test is made.
    pub fn row_sums(&self) -> Vec<Option<RowSums>> {
        (0..self.ctx.threads()).map(|_| self.rounding.check.map(InnerCheck::row_sums)).collect()
    }

    /// Finishes exact integers, each a sign word and `limbs` limbs, into the result, and adds them to the `sums`.
    ///
    /// # Errors
    /// [`Error::SelfCheck`], [`Error::ExponentRange`].
    pub fn finish(
        &self,
        portions: &[Portion],
        bytes: &[u8],
        limbs: usize,
        sums: &mut [Option<RowSums>],
        target: &mut ResultTarget<'_>,
    ) -> Result<()> {
        let words = bytemuck::cast_slice::<u8, u64>(&bytes[..float_bytes(entries_of(portions), limbs)]);
        let width = limbs_for(self.rounding.precision_bits);
        let finish = |sums: &mut Option<RowSums>, column: ResultColumn<'_>| {
            let integers = words[column.first * (1 + limbs)..].chunks_exact(1 + limbs);
            let targets = column.heads.iter_mut().zip(column.limbs.chunks_exact_mut(width));
            for ((row, integer), (head, out)) in column.rows.zip(integers).zip(targets) {
                let (negative, magnitude) = (integer[0] != 0, &integer[1..]);
                let place = EntryIndex { row, col: column.col };
                *head = self.rounding.finish(place, negative, magnitude, sums.as_mut(), out)?;
            }
            Ok(())
        };
        portions.iter().try_for_each(|portion| self.for_columns(portion, target, sums, finish))
    }

    /// The error that a device found while rounding some portions: the first entry out of the proven range, and the
    /// first whose exponent cannot be stored, counted in the copy; `u64::MAX` where there is none.
    pub fn faults(&self, portions: &[Portion], [range, exponent]: [u64; 2], heads: &[u8]) -> Result<()> {
        let place = |entry: usize| {
            let portion = portions.iter().rfind(|portion| portion.at <= entry).expect("an entry of the copy");
            let (rows, cols, entry) = (portion.piece.rows.len(), &portion.piece.cols, entry - portion.at);
            let (row, col) = (portion.piece.rows.start + entry % rows, cols.start + entry / rows);
            // A square on the diagonal has both triangles, of which only one is wanted.
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
