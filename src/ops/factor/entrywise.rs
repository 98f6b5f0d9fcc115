//! Accuracy entry by entry of a factorisation: how many bits it takes beyond those of norm-wise accuracy, and whether
//! the factor keeps the promise.
//!
//! Entry `(i, j)` of `A - L L^T` is one rounding of `T_ij` and one of the quotient: small relative to the norms of two
//! rows. It is small relative to `(|L| |L^T|)_ij` where the largest of the sum's terms does not lie too far below these
//! norms; the product of the factor's exponents in the (max, +) semiring shows how far. Before the factorisation the
//! entries of `A` show it, except in places where they are 0 and the factor is not.
//! Source: docs/ALGORITHM.md, "Componentwise accuracy of Cholesky factors".

use crate::context::Context;
use crate::error::Result;
use crate::kernels::max_plus::{self, PANEL};
use crate::math::bound::{COMMON_WORKING_BITS, RANGE_STEP_BITS, ceil_log2, cholesky_range_bits, cholesky_working_bits};
use crate::math::float::Head;
use crate::matrix::{EntryIndex, Matrix, MatrixView, Uplo};
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use crate::ops::product::entrywise::{Depths, triangle_bytes};
use crate::ops::product::problem::{OperandRows, ProductSize};
use crate::ops::product::scale::NormPass;

/// Factorisations with more bits after the first one: fill-in may decay exponentially, and no number of bits is enough.
const MAXIMUM_REPEATS: u32 = 3;

/// Most bits beyond those of the norms that a factorisation takes, where they are more than three times the precision:
/// work and memory grow with them.
const LEAST_CAP_BITS: u32 = 1024;

/// Depths of entries from this one on count as equal, as those of sums do.
const MOST_DEPTH: u32 = 2 * max_plus::DEEPEST.unsigned_abs() as u32;

/// Rows from which the check takes all threads: below, waking them takes longer.
const ROWS_OF_THREADS: usize = 256;

/// The bits of a factorisation beyond those of the norms, from one try to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeBits {
    /// Bits of the try under way.
    pub bits: u32,
    /// Tries before it.
    pub repeats: u32,
    most: u32,
}

impl RangeBits {
    /// The bits for a matrix of `order` rows whose entries, and those of its factor, are of similar size.
    pub fn even(order: usize, precision_bits: u32) -> RangeBits {
        let most = COMMON_WORKING_BITS.saturating_sub(cholesky_working_bits(0)).saturating_sub(precision_bits);
        let most = most.min(precision_bits.saturating_mul(3).max(LEAST_CAP_BITS)) / RANGE_STEP_BITS * RANGE_STEP_BITS;
        let bits = (ceil_log2(order).div_ceil(2) + 2).next_multiple_of(RANGE_STEP_BITS).min(most);
        RangeBits { bits, repeats: 0, most }
    }

    /// The bits of a first try: those of [`RangeBits::even`], at least `least_bits`.
    pub fn first(order: usize, precision_bits: u32, least_bits: u32) -> RangeBits {
        RangeBits::even(order, precision_bits).at_least(least_bits)
    }

    /// At least `bits` bits, but no more than the most.
    pub fn at_least(self, bits: u32) -> RangeBits {
        RangeBits { bits: self.bits.max(bits.min(self.most).next_multiple_of(RANGE_STEP_BITS)).min(self.most), ..self }
    }

    /// Enough for a matrix of which some entry lies `deepest` bits below the norms of its rows; unchanged where no try
    /// has as many.
    pub fn for_depth(self, deepest: u32) -> RangeBits {
        self.raised(deepest).unwrap_or(self)
    }

    /// The next try after one that would have needed `needed` bits; `None` where it had them, or there is none.
    pub fn next(self, needed: u32) -> Option<RangeBits> {
        let repeats = self.repeats + 1;
        let next = self.raised(needed).filter(|next| next.bits > self.bits && repeats <= MAXIMUM_REPEATS);
        next.map(|next| RangeBits { repeats, ..next })
    }

    fn raised(self, bits: u32) -> Option<RangeBits> {
        (bits <= self.most).then(|| self.at_least(bits))
    }
}

/// How far an entry of the matrix lies below the product of its rows' norms, up to the depth that counts as deepest;
/// `None` for 0.
pub(super) fn entry_depth(problem: &FactorProblem, EntryIndex { row, col }: EntryIndex, head: Head) -> Option<u32> {
    let depth = problem.exponents[row] + problem.exponents[col] - head.exponent();
    (!head.is_zero()).then(|| depth.clamp(0, MOST_DEPTH.into()) as u32)
}

/// The largest depth of an entry below its rows' norms.
pub(crate) fn deepest_entry(FactorInput { problem, lower }: FactorInput<'_>) -> u32 {
    let depths = (0..problem.order).flat_map(|col| {
        (col..problem.order).filter_map(move |row| entry_depth(problem, EntryIndex { row, col }, lower.head(row, col)))
    });
    depths.max().unwrap_or(0)
}

/// The bits that an entry of a factor needs beyond those of the norms: its largest term lies `depth` bits below them
/// (`None` where all terms are 0), the pivot of its column `pivot` bits, and the entry of the matrix `own` bits.
pub(super) fn entry_bits(depth: Option<u32>, pivot: u32, own: Option<u32>, is_diagonal: bool) -> u32 {
    match depth {
        Some(depth) => cholesky_range_bits(-i64::from(pivot), depth, is_diagonal),
        // All terms are 0: so is the residual, unless the entry itself was lost.
        None => own.map_or(0, |depth| depth + 1),
    }
}

/// Bytes of [`needed_bits`].
pub(crate) fn check_bytes(order: usize) -> u64 {
    if order <= PANEL { 0 } else { triangle_bytes(order) }
}

/// The bits beyond those of the norms with which `|A - L L^T|_ij <= 2^(2 - b) (|L| |L^T|)_ij` holds for every entry of
/// this factor of `A`: it holds if the factorisation had at least as many.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(crate) fn needed_bits(ctx: &Context, input: FactorInput<'_>, factor: &Matrix) -> Result<u32> {
    let FactorInput { problem, lower } = input;
    let order = problem.order;
    let mut needed = 0;
    let mut see = |place: EntryIndex, depth: Option<u32>| {
        let EntryIndex { row, col } = place;
        let pivot = max_plus::depth(factor.get(col, col).head, problem.exponents[col]).unsigned_abs();
        let own = entry_depth(problem, place, lower.head(row, col));
        needed = needed.max(entry_bits(depth, pivot.into(), own, row == col));
    };
    if order <= PANEL {
        one_panel(&factor.view(), &problem.exponents, see);
        return Ok(needed);
    }
    let workers = if order < ROWS_OF_THREADS { 1 } else { ctx.threads() };
    let pass = NormPass::one_process(ctx, workers);
    let blocks = [factor.transposed()];
    let rows = OperandRows { blocks: &blocks, shifts: &problem.exponents };
    let size = ProductSize { contracted: order, rows: order, cols: order, triangle: true };
    Depths::of_upper(&pass, &rows)?.visit(&pass, &size, Uplo::Lower, &mut see)?;
    Ok(needed)
}

/// [`Depths::visit`] for the rows of a factor that make one panel.
fn one_panel(factor: &MatrixView<'_>, exponents: &[i64], mut see: impl FnMut(EntryIndex, Option<u32>)) {
    let (mut depths, mut sums) = ([[max_plus::EMPTY; PANEL]; PANEL], [[max_plus::EMPTY; PANEL]; PANEL]);
    let order = exponents.len();
    for (col, depths) in depths[..order].iter_mut().enumerate() {
        for (row, depth) in depths[..order].iter_mut().enumerate().skip(col) {
            *depth = max_plus::depth(factor.head(row, col), exponents[row]);
        }
    }
    max_plus::largest_sums(&depths[..order], &depths[..order], &mut sums);
    for row in 0..order {
        for (col, &sum) in sums[row][..=row].iter().enumerate() {
            see(EntryIndex { row, col }, (sum != max_plus::EMPTY).then(|| u32::from(sum.unsigned_abs())));
        }
    }
}
