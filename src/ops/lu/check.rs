//! Accuracy entry by entry of an LU factorisation: how many bits it takes beyond those of accuracy by norms, and
//! whether the factors keep the promise.
//!
//! Entry `(i, j)` of `P A - L U` is one rounding of an entry of the scaled `U`, of at most `2^(-w - 1)`, or one of an
//! entry of `L`, times the pivot of its column. It is small relative to `(|L| |U|)_ij` where the largest of the sum's
//! terms is; the product of the exponents of the factors in the (max, +) semiring shows how large that is.
//! Source: docs/ALGORITHM.md, "LU with partial pivoting".

use crate::context::Context;
use crate::drive;
use crate::error::Result;
use crate::kernels::max_plus::{self, DepthRow, EMPTY, PANEL};
use crate::math::bound::{LU_GUARD_BITS, lu_range_bits};
use crate::math::float::Head;
use crate::matrix::{EntryIndex, MatrixView};
use crate::ops::lu::problem::LuProblem;
use crate::ops::lu::run::Factors;
use crate::store::filled;

/// Depths of entries from this one on count as equal, as those of sums do.
const MOST_DEPTH: i64 = 2 * max_plus::DEEPEST.unsigned_abs() as i64;

/// Columns of `L`, or rows of `U`, that are taken in at a time, so that they stay in a cache.
const TOGETHER: usize = 256;

/// The largest depth of an entry other than 0 below the largest of its column.
pub(super) fn deepest_entry(problem: &LuProblem, a: &MatrixView<'_>) -> u32 {
    let places = (0..problem.order).flat_map(|col| (0..problem.order).map(move |row| (row, col)));
    let depths = places.filter_map(|(row, col)| own_depth(problem, a.head(row, col), EntryIndex { row, col }));
    depths.max().unwrap_or(0)
}

/// The depth of an entry of the matrix below the largest of its column; `None` for 0.
fn own_depth(problem: &LuProblem, head: Head, at: EntryIndex) -> Option<u32> {
    (!head.is_zero()).then(|| (problem.exponent(at) - head.exponent()).clamp(0, MOST_DEPTH) as u32)
}

/// Bytes of [`needed_bits`].
pub(super) fn bytes(order: usize) -> u64 {
    2 * (order.next_multiple_of(PANEL) * order * size_of::<i16>()) as u64
}

/// The bits beyond those of accuracy by norms with which `|P A - L U|_ij <= 2^(2 - b) (|L| |U|)_ij` holds for every
/// entry of these factors: it holds if the factorisation had at least as many.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(super) fn needed_bits(ctx: &Context, problem: &LuProblem, a: &MatrixView<'_>, factors: &Factors) -> Result<u32> {
    let (order, entries) = (problem.order, &factors.entries);
    let growth = i64::from(factors.growth_bits) + 1;
    // Depths of the scaled `L` below 2, and of the scaled `U` below its largest entry.
    let of_row = |row: usize| problem.row_exponents[factors.rows[row]];
    let lower = |row: usize, col: usize| match row.cmp(&col) {
        std::cmp::Ordering::Less => EMPTY,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => max_plus::depth(entries.get(row, col).head, 1 + of_row(row) - of_row(col)),
    };
    let upper = |row: usize, col: usize| match row <= col {
        true => max_plus::depth(entries.get(row, col).head, of_row(row) + problem.col_exponents[col] + growth),
        false => EMPTY,
    };
    let left = depths(order, lower)?;
    let right = depths(order, |col, row| upper(row, col))?;
    let need = |row: usize, col: usize, sum: i16| {
        let pivot = (row > col).then(|| i64::from(upper(col, col)) + growth);
        let largest = (sum != EMPTY).then(|| i64::from(sum) + 1 + growth);
        lu_range_bits(largest, pivot, || {
            let row = factors.rows[row];
            own_depth(problem, a.head(row, col), EntryIndex { row, col })
        })
    };
    let check = LuCheck { order, left: &left, right: &right, need: &need };
    let panels = order.div_ceil(PANEL);
    let needed = drive::map_indices(ctx, panels * panels, |at| check.pair(at / panels, at % panels));
    Ok(needed.into_iter().max().unwrap_or(0).saturating_sub(LU_GUARD_BITS))
}

/// The depths of `order` rows in panels of 32, term by term; `depth(row, term)` is one.
fn depths(order: usize, depth: impl Fn(usize, usize) -> i16) -> Result<Vec<DepthRow>> {
    let panels = order.div_ceil(PANEL);
    let mut all = filled([EMPTY; PANEL], panels * order)?;
    for (panel, terms) in all.chunks_exact_mut(order.max(1)).enumerate() {
        let first = panel * PANEL;
        for (term, lanes) in terms.iter_mut().enumerate() {
            for (lane, out) in lanes.iter_mut().enumerate().take(order - first.min(order)) {
                *out = depth(first + lane, term);
            }
        }
    }
    Ok(all)
}

/// The check of factors, in panels of 32 rows by 32 columns.
struct LuCheck<'a> {
    order: usize,
    /// Depths of the rows of `L`.
    left: &'a [DepthRow],
    /// Depths of the columns of `U`.
    right: &'a [DepthRow],
    /// The bits that an entry needs beyond the precision, by its place and the depth of its largest term.
    need: &'a (dyn Fn(usize, usize, i16) -> u32 + Sync),
}

impl LuCheck<'_> {
    /// The bits that the entries of a panel of rows in a panel of columns need.
    fn pair(&self, row: usize, col: usize) -> u32 {
        let order = self.order;
        let terms = ((row.min(col) + 1) * PANEL).min(order);
        let (left, right) = (&self.left[row * order..][..terms], &self.right[col * order..][..terms]);
        let mut sums = [[EMPTY; PANEL]; PANEL];
        for (left, right) in left.chunks(TOGETHER).zip(right.chunks(TOGETHER)) {
            max_plus::raise_sums(left, right, &mut sums);
        }
        let (first_row, first_col) = (row * PANEL, col * PANEL);
        let mut needed = 0;
        for (row, sums) in (first_row..order).zip(&sums) {
            for (col, &sum) in (first_col..order).zip(sums) {
                needed = needed.max((self.need)(row, col, sum));
            }
        }
        needed
    }
}
