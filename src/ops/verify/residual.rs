//! The residual `r = L^T (R x) - C x` for random vectors `x`, summed without rounding.
//!
//! Promise: every `r_i` is the exact value (or within the allowance that [`Bounds::floor`] proves), for any exponents.
//! Independent of: which operation is judged.

use super::exact::{Accumulator, Dyadic, ProductSum, UpperBound, term};
use super::{Bounds, ClaimedProduct, Verification, VerifyOptions, entries, map_indices};
use crate::context::Context;
use crate::error::{Error, ErrorText, Result};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::cmp::Ordering;

/// Rows of `R` whose sums are formed together: enough to read columns in runs, few enough to stay in cache.
const ROWS_AT_ONCE: usize = 16;

/// Most random vectors of one test.
const MOST_VECTORS: usize = 1 << 16;

/// A random vector `x_j = +-2^(shift_j)` and the numbers that the bounds need of it.
struct Signs {
    negative: Vec<bool>,
    shifts: Vec<i64>,
    /// `sum_j ||r_j|| |x_j|`.
    weighted_norm: UpperBound,
    /// Floor of the terms `r_kj x_j`.
    floor: i64,
    /// Largest exponent of such a term.
    top: i64,
}

impl Signs {
    fn draw(bounds: &Bounds, scaled: bool, rng: &mut ChaCha8Rng) -> Signs {
        let count = bounds.right.len();
        let negative = (0..count).map(|_| rng.next_u32() & 1 == 1).collect();
        let shift = |norm: UpperBound| if scaled { -norm.top_exponent() } else { 0 };
        let shifts = bounds.right.iter().map(|size| shift(size.norm)).collect::<Vec<_>>();
        let (mut weighted_norm, mut low, mut top) = (UpperBound::ZERO, i64::MAX, i64::MIN);
        for (size, &shift) in bounds.right.iter().zip(&shifts).filter(|(size, _)| !size.norm.is_zero()) {
            weighted_norm = weighted_norm.plus(size.norm.times(UpperBound::power_of_two(shift)));
            low = low.min(size.low + shift);
            top = top.max(size.top + shift);
        }
        let (low, top) = if weighted_norm.is_zero() { (0, 0) } else { (low, top) };
        Signs { negative, shifts, weighted_norm, floor: bounds.floor(low, top), top }
    }
}

/// Tests `options.vector_count` random vectors against `2^(1-b) ||l_i|| sum_j ||r_j|| |x_j|`.
pub(super) fn test(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    bounds: &Bounds,
    options: &VerifyOptions,
    outcome: &mut Verification,
) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(outcome.seed);
    let vectors = (0..options.vector_count.min(MOST_VECTORS))
        .map(|index| Signs::draw(bounds, index % 4 != 0, &mut rng))
        .collect::<Vec<_>>();
    outcome.vector_count = vectors.len();
    if vectors.is_empty() {
        return Ok(());
    }
    let images = multiply_right(ctx, problem, &vectors);
    let rows = map_indices(ctx, problem.left.cols(), |row| row_residuals(problem, bounds, &vectors, &images, row));
    let mut worst = (0, 0.0);
    let mut failed = false;
    for (row, (ratio, fails)) in rows.into_iter().enumerate() {
        if (fails, ratio) > (failed, worst.1) {
            (worst, failed) = ((row, ratio), fails);
        }
    }
    outcome.worst_residual = worst.1;
    if !failed {
        return Ok(());
    }
    Err(explain(ctx, problem, bounds, worst.0, worst.1))
}

/// `R x` for all vectors: `[k][vector]`, each number as an odd integer (or 0) and an exponent.
fn multiply_right(ctx: &Context, problem: &ClaimedProduct<'_>, vectors: &[Signs]) -> Vec<Dyadic> {
    let view = problem.right;
    let groups = map_indices(ctx, view.rows().div_ceil(ROWS_AT_ONCE), |group| {
        let first = group * ROWS_AT_ONCE;
        let rows = first..view.rows().min(first + ROWS_AT_ONCE);
        let mut sums = (0..rows.len() * vectors.len()).map(|_| Accumulator::default()).collect::<Vec<_>>();
        for col in 0..view.cols() {
            for (row, sums) in rows.clone().zip(sums.chunks_exact_mut(vectors.len())) {
                let value = view.get(row, col);
                for (x, sum) in vectors.iter().zip(sums) {
                    let shift = x.shifts[col];
                    if let Some(term) = term(value, x.floor.saturating_sub(shift)) {
                        sum.add(term.negative != x.negative[col], term.limbs, term.low + shift);
                    }
                }
            }
        }
        sums.iter_mut().map(Accumulator::take).collect::<Vec<_>>()
    });
    groups.into_iter().flatten().collect()
}

/// The largest `|r_i|` of row `i` over all vectors, in units of its bound, and whether one is beyond it.
fn row_residuals(
    problem: &ClaimedProduct<'_>,
    bounds: &Bounds,
    vectors: &[Signs],
    images: &[Dyadic],
    row: usize,
) -> (f64, bool) {
    let size = bounds.left[row];
    let floor = bounds.floor(size.low, size.top);
    let mut sums = vectors.iter().map(|_| Accumulator::default()).collect::<Vec<_>>();
    let mut products = ProductSum::default();
    for (k, images) in images.chunks_exact(vectors.len()).enumerate() {
        let Some(term) = term(problem.left.get(k, row), floor) else { continue };
        products.set_left(term);
        for (sum, image) in sums.iter_mut().zip(images) {
            products.add_to(sum, &image.integer, term.low + image.exponent);
        }
    }
    // `sum_j |c_ij| |x_j|` for each vector, where the bound has it.
    let mut own = vec![UpperBound::ZERO; vectors.len()];
    for col in 0..problem.right.cols() {
        let value = problem.entry(row, col);
        if problem.claim.with_result {
            let size = UpperBound::of(value);
            let add = |own: &mut UpperBound, x: &Signs| {
                *own = own.plus(size.times(UpperBound::power_of_two(x.shifts[col])));
            };
            own.iter_mut().zip(vectors).for_each(|(own, x)| add(own, x));
        }
        for (x, sum) in vectors.iter().zip(&mut sums) {
            let shift = x.shifts[col];
            let floor = bounds.floor(value.head.exponent() + shift, x.top + size.top);
            if let Some(term) = term(value, floor.saturating_sub(shift)) {
                sum.add(term.negative == x.negative[col], term.limbs, term.low + shift);
            }
        }
    }
    let mut worst = (0.0, false);
    for ((x, own), sum) in vectors.iter().zip(own).zip(&mut sums) {
        let residual = sum.take();
        let bound = bounds.allowance(size.norm.times(x.weighted_norm).plus(own));
        let fails = bound.compare(&residual) == Ordering::Greater;
        worst = (f64::max(worst.0, bound.ratio(&residual)), worst.1 || fails);
    }
    worst
}

/// Names the worst entry of the row that failed; the row itself where each single entry is within its bound.
fn explain(ctx: &Context, problem: &ClaimedProduct<'_>, bounds: &Bounds, row: usize, ratio: f64) -> Error {
    let errors = map_indices(ctx, problem.right.cols(), |col| entries::error(problem, bounds, row, col));
    let worst = errors.iter().enumerate().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    match worst {
        Some((col, error)) if error.fails => entries::failure(problem, row, col, error.ratio),
        _ => Error::verification(ErrorText::counted(|base| {
            let (operation, claim) = (problem.operation, &problem.claim);
            let row = base.one(if claim.transposed { "column" } else { "row" }, row);
            format!("{operation}: {row}: |r_i| is {ratio:.4e} times its bound {}", claim.row_unit)
        })),
    }
}
