//! The first pass over operands: the norm exponent of every column, of one process or over the ranks of a team; in
//! exact arithmetic the check for integers.
//!
//! First the largest exponent of each column, then the sum of the squares' bounds, which are integers in a unit that
//! the largest fixes (`math::scale`). Ranks reduce after each step; one process does both at once, a group of columns
//! at a time. Reads only heads, in the order in which they are stored, whether or not a view is transposed.
//! Promise: the exponents depend only on the entries, not on their order, on workers or on ranks.

use crate::comm::Reduction;
use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::math::float::Head;
use crate::math::scale::{norm_exponent, square_bound};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use crate::ops::product::combine::check_integers;
use crate::ops::product::problem::ProductOperand;
use crate::site::Site;

/// Columns that are walked through together, at most: of a view stored by rows, eight cache lines of heads.
const GROUP_COLUMNS: usize = 64;

/// Approximate number of heads of a group of columns stored one after the other: they stay in the first cache for the
/// second step.
const GROUP_HEADS: usize = 4096;

/// Bits of each of the three words that a sum travels in: a rank's sum of up to 2^40 rows fits, and the sums of 2^30
/// ranks cannot overflow.
const SUM_BITS: u32 = 34;

/// Columns whose norms are wanted: one rank's part of them.
pub(crate) trait Columns: Sync {
    /// Number of columns to walk through together, of `cols` columns on `workers` workers.
    fn group(&self, cols: usize, workers: usize) -> usize;
    /// Raises `largest` to the largest exponents of the columns from `first` on; `i64::MIN` stands for a column without
    /// nonzero entries.
    fn raise_largest(&self, first: usize, largest: &mut [i64]);
    /// Adds to `sums` the bounds of the squares of the columns from `first` on, in the units of `largest`.
    fn add_squares(&self, first: usize, largest: &[i64], sums: &mut [u128]);
}

/// Rows of a matrix as blocks one above the other.
struct Blocks<'a>(&'a [MatrixView<'a>]);

/// The heads `f(column)`.
pub(crate) struct ColumnHeads<F>(pub F);

fn is_by_column(view: &MatrixView<'_>) -> bool {
    view.row_stride() <= view.col_stride()
}

/// The heads of row `row` in the columns from `first` on.
fn row_heads<'a>(view: &MatrixView<'a>, row: usize, first: usize) -> impl Iterator<Item = &'a u64> {
    view.all_heads()[view.element_index(row, first)..].iter().step_by(view.col_stride().max(1))
}

/// The exponent of a head; `i64::MIN` for that of 0.
pub(crate) fn exponent_of(head: u64) -> i64 {
    if head == 0 { i64::MIN } else { Head(head).exponent() }
}

impl Columns for Blocks<'_> {
    fn group(&self, cols: usize, workers: usize) -> usize {
        let rows = self.0.iter().map(MatrixView::rows).sum::<usize>().max(1);
        let (least, most) = match self.0.iter().all(is_by_column) {
            true => (1, (GROUP_HEADS / rows).clamp(1, GROUP_COLUMNS)),
            false => (8, GROUP_COLUMNS),
        };
        cols.div_ceil(workers).clamp(least, most)
    }

    fn raise_largest(&self, first: usize, largest: &mut [i64]) {
        for view in self.0 {
            if is_by_column(view) {
                for (col, largest) in (first..).zip(&mut *largest) {
                    let of_column = column_heads(view, col).map(|head| exponent_of(head.0));
                    *largest = of_column.fold(*largest, i64::max);
                }
                continue;
            }
            for row in 0..view.rows() {
                let row = largest.iter_mut().zip(row_heads(view, row, first));
                row.for_each(|(largest, &head)| *largest = (*largest).max(exponent_of(head)));
            }
        }
    }

    fn add_squares(&self, first: usize, largest: &[i64], sums: &mut [u128]) {
        for view in self.0 {
            if is_by_column(view) {
                for (col, (sum, &largest)) in (first..).zip(sums.iter_mut().zip(largest)) {
                    *sum += column_heads(view, col).map(|head| u128::from(square_bound(head, largest))).sum::<u128>();
                }
                continue;
            }
            for row in 0..view.rows() {
                let row = sums.iter_mut().zip(largest).zip(row_heads(view, row, first));
                row.for_each(|((sum, &largest), &head)| *sum += u128::from(square_bound(Head(head), largest)));
            }
        }
    }
}

impl<I: Iterator<Item = Head>, F: Fn(usize) -> I + Sync> Columns for ColumnHeads<F> {
    fn group(&self, _cols: usize, _workers: usize) -> usize {
        16
    }

    fn raise_largest(&self, first: usize, largest: &mut [i64]) {
        for (col, largest) in (first..).zip(largest) {
            *largest = (self.0)(col).map(|head| exponent_of(head.0)).fold(*largest, i64::max);
        }
    }

    fn add_squares(&self, first: usize, largest: &[i64], sums: &mut [u128]) {
        for (col, (sum, &largest)) in (first..).zip(sums.iter_mut().zip(largest)) {
            *sum += (self.0)(col).map(|head| u128::from(square_bound(head, largest))).sum::<u128>();
        }
    }
}

/// A pass over the columns of an operand, of which each rank has some rows.
#[derive(Clone, Copy)]
pub(crate) struct NormPass<'a> {
    /// The ranks that have rows, and the context that owns the threads.
    pub site: Site<'a>,
    /// The number of threads.
    pub workers: usize,
}

impl<'a> NormPass<'a> {
    /// `workers` threads of one process.
    pub fn one_process(ctx: &'a Context, workers: usize) -> NormPass<'a> {
        NormPass { site: Site::one_process(ctx), workers }
    }

    /// All threads of each rank.
    pub fn of_ranks(site: Site<'a>) -> NormPass<'a> {
        NormPass { site, workers: site.ctx.threads() }
    }

    /// Calls `work` with groups of neighbouring items and the number of the first.
    pub fn each_group<T: Send>(&self, group: usize, items: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
        let mut groups = items.chunks_mut(group).enumerate();
        let mut locals = vec![(); self.workers];
        let mut run = || {
            drive::parallel_for(
                &mut locals,
                |()| groups.next(),
                |(), (index, items)| {
                    work(index * group, items);
                    Ok(())
                },
            )
        };
        let done = if self.workers == 1 { run() } else { self.site.ctx.install(run) };
        done.expect("the work cannot fail");
    }

    /// The norm exponent of each column. Collective.
    fn exponents(&self, columns: &impl Columns, exponents: &mut [i64]) -> Result<()> {
        let group = columns.group(exponents.len(), self.workers).clamp(1, GROUP_COLUMNS);
        if self.site.team.size() > 1 {
            return self.exponents_of_ranks(columns, group, exponents);
        }
        self.each_group(group, exponents, |first, exponents| {
            let (mut largest, mut sums) = ([i64::MIN; GROUP_COLUMNS], [0; GROUP_COLUMNS]);
            let (largest, sums) = (&mut largest[..exponents.len()], &mut sums[..exponents.len()]);
            columns.raise_largest(first, largest);
            columns.add_squares(first, largest, sums);
            let both = sums.iter().zip(&*largest);
            exponents.iter_mut().zip(both).for_each(|(exponent, (&sum, &largest))| {
                *exponent = norm_exponent(sum, largest);
            });
        });
        Ok(())
    }

    fn exponents_of_ranks(&self, columns: &impl Columns, group: usize, exponents: &mut [i64]) -> Result<()> {
        // Exponents as unsigned words in the same order; 0 stands for a column of zeros.
        let mut largest = vec![0u64; exponents.len()];
        self.each_group(group, &mut largest, |first, words| {
            let mut largest = [i64::MIN; GROUP_COLUMNS];
            let largest = &mut largest[..words.len()];
            columns.raise_largest(first, largest);
            words.iter_mut().zip(largest).for_each(|(word, largest)| *word = ordered(*largest));
        });
        self.site.world().all_reduce(Reduction::Max, &mut largest)?;
        let mut parts = vec![[0u64; 3]; exponents.len()];
        self.each_group(group, &mut parts, |first, parts| {
            let (mut units, mut sums) = ([0; GROUP_COLUMNS], [0; GROUP_COLUMNS]);
            let (units, sums) = (&mut units[..parts.len()], &mut sums[..parts.len()]);
            units.iter_mut().zip(&largest[first..]).for_each(|(unit, &word)| *unit = unordered(word));
            columns.add_squares(first, units, sums);
            for (parts, sum) in parts.iter_mut().zip(sums) {
                *parts = [0, 1, 2].map(|part| (*sum >> (part * SUM_BITS)) as u64 & ((1 << SUM_BITS) - 1));
            }
        });
        self.site.world().all_reduce(Reduction::Sum, parts.as_flattened_mut())?;
        for (exponent, (&word, parts)) in exponents.iter_mut().zip(largest.iter().zip(&parts)) {
            let parts = parts.iter().zip(0..).map(|(&part, number)| u128::from(part) << (number * SUM_BITS));
            *exponent = norm_exponent(parts.sum(), unordered(word));
        }
        Ok(())
    }
}

/// Writes the norm exponent of every column of an operand, of which each rank has some `blocks` of rows, into
/// `exponents`. Collective.
///
/// # Errors
/// [`Error::ExponentRange`] for an entry beyond the range of all conversions, with its place in the rank's block;
/// [`Error::Rank`] around it on ranks; [`Error::Transport`].
pub(crate) fn norm_exponents(
    pass: &NormPass<'_>,
    blocks: &[MatrixView<'_>],
    is_transposed: bool,
    exponents: &mut [i64],
) -> Result<()> {
    pass.exponents(&Blocks(blocks), exponents)?;
    let in_range = exponents.iter().all(|exponent| exponent.unsigned_abs() <= 2 * MAXIMUM_EXPONENT as u64);
    let operand = |&view: &MatrixView<'_>| first_out_of_range(view, is_transposed);
    // The entry is looked for only when there is one, in the caller's order, so that the error is always the same.
    let found = if in_range { None } else { blocks.iter().find_map(operand) };
    pass.site.agree(found.map_or(Ok(()), Err))
}

/// The norm exponent of each of `count` columns, of which this rank has some entries. Collective.
///
/// # Errors
/// [`Error::Transport`].
pub(crate) fn exponents_over_ranks(site: Site<'_>, count: usize, columns: &impl Columns) -> Result<Vec<i64>> {
    let mut exponents = vec![0; count];
    NormPass::of_ranks(site).exponents(columns, &mut exponents)?;
    Ok(exponents)
}

/// An exponent as an unsigned word in the same order; 0 is the least.
pub(crate) fn ordered(exponent: i64) -> u64 {
    (exponent as u64) ^ (1 << 63)
}

/// The exponent behind [`ordered`].
pub(crate) fn unordered(word: u64) -> i64 {
    (word ^ (1 << 63)) as i64
}

/// The heads of one column from top to bottom.
pub(crate) fn column_heads<'a>(view: &MatrixView<'a>, col: usize) -> impl Iterator<Item = Head> + Clone + use<'a> {
    let heads = match view.rows() {
        0 => &[],
        rows => &view.all_heads()[view.element_index(0, col)..=view.element_index(rows - 1, col)],
    };
    heads.iter().step_by(view.row_stride().max(1)).map(|&head| Head(head))
}

/// The error of the first entry beyond the range of all conversions, column by column of the view; `is_transposed`
/// where the caller passed its transpose.
fn first_out_of_range(view: MatrixView<'_>, is_transposed: bool) -> Option<Error> {
    for col in 0..view.cols() {
        for row in 0..view.rows() {
            let exponent = view.get(row, col).head.exponent();
            if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
                let (row, column) = if is_transposed { (col, row) } else { (row, col) };
                return Some(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
            }
        }
    }
    None
}

/// Refuses an operand with an entry that is not an integer; the indices are those of the caller's matrix.
pub(crate) fn check_operand_integers(workers: usize, operand: &ProductOperand<'_>) -> Result<()> {
    let caller = if operand.transposed { operand.view.transposed() } else { operand.view };
    let mut columns = 0..caller.cols();
    let mut locals = vec![(); workers];
    let done = drive::parallel_for(
        &mut locals,
        |()| columns.next(),
        |(), col| check_integers(caller.block(0..caller.rows(), col..col + 1)?),
    );
    // Which worker met an entry first is chance; the search in order is not.
    done.or_else(|_| check_integers(caller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::math::scale::column_exponent;
    use crate::matrix::{Matrix, Op};

    #[test]
    fn transposes_and_workers_do_not_change_the_exponents() {
        let (rows, cols) = (331, 150);
        for (case, spread) in [1i32, 2, 40, 900].into_iter().enumerate() {
            let mut matrix = Matrix::zeros(rows, cols, 100).unwrap();
            let mut state = 88_172_645_463_325_252u64 + case as u64;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            for col in (0..cols).filter(|col| col % 9 != 4) {
                let used = 1 + next() as usize % rows;
                for row in 0..used {
                    let size = 1.0 + if col % 3 == 0 { 0.0 } else { (next() % 1000) as f64 / 1000.0 };
                    matrix.set_f64(row, col, size * 2f64.powi((next() % spread as u64) as i32)).unwrap();
                }
            }
            for op in [Op::NoTranspose, Op::Transpose] {
                for workers in [1, 3] {
                    let operand = ProductOperand::new(matrix.view(), op);
                    let mut exponents = vec![77; operand.view.cols()];
                    let ctx = Context::builder().threads(workers).build().unwrap();
                    let pass = NormPass::one_process(&ctx, workers);
                    norm_exponents(&pass, &[operand.view], operand.transposed, &mut exponents).unwrap();
                    let view = operand.view;
                    let want = (0..view.cols())
                        .map(|col| column_exponent((0..view.rows()).map(|row| view.get(row, col).head)))
                        .collect::<Vec<_>>();
                    assert_eq!(exponents, want, "spread {spread}, {op:?}, {workers} workers");
                }
            }
        }
    }
}
