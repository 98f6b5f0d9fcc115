//! Single entries of a product against exact dot products.
//!
//! Promise: an entry passes if and only if `|C_ij - (L^T R)_ij| <= 2^(1-b) ||l_i|| ||r_j||`, decided by integers (only
//! where exponents spread over more than a million bits, up to the allowance that `Bounds::floor` proves).
//! Independent of: random vectors.

use super::exact::{Accumulator, CutColumn, Dyadic, KEEP_ALL, ProductSum, UpperBound, term};
use super::{Bounds, Claim, ClaimedProduct, Verification, VerifyOptions, map_indices};
use crate::context::Context;
use crate::error::{Error, ErrorText, Result};
use crate::matrix::{EntryIndex, MatrixView, Uplo};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Integer;
use std::cmp::Ordering;

/// The error of one entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryError {
    /// In units of its bound; infinite where the bound is 0.
    pub ratio: f64,
    /// Whether it is beyond the bound.
    pub fails: bool,
}

/// Refuses entries that no product of these columns can reach, so that sums stay of a bounded width.
pub(super) fn check_sizes(problem: &ClaimedProduct<'_>, bounds: &Bounds) -> Result<()> {
    for col in 0..problem.result.cols() {
        for row in rows_of(problem, col) {
            let (left, right) = (bounds.left[row].norm, bounds.right[col].norm);
            let head = problem.result.get(row, col).head;
            // |entry| >= 2^(exponent - 1). No honest entry exceeds (1 + 2^(1-b)) ||l|| ||r|| < 2^(top + 1), or
            // 3 ||l|| ||r|| < 2^(top + 2) where its own size belongs to the bound.
            let slack = if problem.claim.with_result { 2 } else { 1 };
            let top = left.times(right).top_exponent() + slack;
            let too_large = left.is_zero() || right.is_zero() || head.exponent() > top;
            if !head.is_zero() && too_large {
                return Err(failure(problem, row, col, error(problem, bounds, row, col).ratio));
            }
        }
    }
    Ok(())
}

/// The error of entry `(row, col)` in units of `2^(1-b) ||l_row|| ||r_col||`.
pub(super) fn error(problem: &ClaimedProduct<'_>, bounds: &Bounds, row: usize, col: usize) -> EntryError {
    let (x, y) = (bounds.left[row], bounds.right[col]);
    let left = CutColumn { view: problem.left, index: row, floor: bounds.floor(x.low, x.top) };
    let right = CutColumn { view: problem.right, index: col, floor: bounds.floor(y.low, y.top) };
    let value = problem.entry(row, col);
    // A stored entry is kept whole unless it spreads away from the products themselves.
    let far = (x.top + y.top - value.head.exponent()).abs() > super::WIDEST_SPREAD_BITS;
    let floor = if far { x.top + y.top - bounds.kept_bits } else { KEEP_ALL };
    let size = x.norm.times(y.norm);
    let claim = &problem.claim;
    let own = if claim.with_result { UpperBound::of(value) } else { UpperBound::ZERO };
    let bound = bounds.allowance(size.plus(own));
    if far && !value.head.is_zero() && value.head.exponent() > size.top_exponent() + 2 {
        // Far above anything possible: the entry itself is the error, and a sum that held both would be huge.
        let magnitude = Integer::from_digits(value.limbs, rug::integer::Order::Lsf);
        let exponent = value.head.exponent() - value.limbs.len() as i64 * 64;
        return EntryError { ratio: bound.ratio(&Dyadic { integer: magnitude, exponent }), fails: true };
    }
    let mut sum = Accumulator::default();
    ProductSum::default().add_dot(&mut sum, left, right);
    if let Some(term) = term(value, floor) {
        sum.add(!term.negative, term.limbs, term.low);
    }
    let difference = sum.take();
    let ratio = bound.ratio(&difference);
    let cut = [left.floor, right.floor, floor].iter().any(|&floor| floor != KEEP_ALL);
    // Only norms of columns are known as exact squares.
    let fails = if ratio < 1.0 - 1e-6 || cut || claim.with_result || claim.power != 1 {
        bound.compare(&difference) == Ordering::Greater
    } else {
        exceeds(problem, bounds, EntryIndex { row, col }, difference)
    };
    EntryError { ratio, fails }
}

/// Whether `E^2 > 2^(2-2b) ||l||^2 ||r||^2`, by exact integers.
fn exceeds(problem: &ClaimedProduct<'_>, bounds: &Bounds, place: EntryIndex, error: Dyadic) -> bool {
    let square = |view: MatrixView<'_>, index: usize| {
        let column = CutColumn::whole(view, index);
        let mut sum = Accumulator::default();
        ProductSum::default().add_dot(&mut sum, column, column);
        sum.take()
    };
    let (left, right) = (square(problem.left, place.row), square(problem.right, place.col));
    let exponent = left.exponent + right.exponent + 2 - 2 * i64::from(bounds.precision_bits);
    let bound = Dyadic { integer: left.integer * right.integer, exponent };
    error.square().compare(&bound) == Ordering::Greater
}

/// Compares the sampled entries (all of them where they are few) with exact dot products.
pub(super) fn compare(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    bounds: &Bounds,
    options: &VerifyOptions,
    mut outcome: Verification,
) -> Result<Verification> {
    let entries = sample(problem, options.sample_count, outcome.seed);
    let errors = map_indices(ctx, entries.len(), |at| error(problem, bounds, entries[at].row, entries[at].col));
    let worst = entries
        .iter()
        .zip(&errors)
        .max_by(|a, b| (a.1.fails, a.1.ratio).partial_cmp(&(b.1.fails, b.1.ratio)).unwrap_or(Ordering::Equal));
    outcome.entry_count = entries.len();
    match worst {
        Some((&EntryIndex { row, col }, error)) if error.fails => Err(failure(problem, row, col, error.ratio)),
        Some((&place, error)) => {
            let EntryIndex { row, col } = problem.claim.place(place);
            let worst_place = Some((row, col));
            Ok(Verification { worst_entry: error.ratio, worst_place, ..outcome })
        }
        None => Ok(outcome),
    }
}

/// Asks the sampled entries to be equal to the exact dot products.
pub(super) fn compare_exactly(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    options: &VerifyOptions,
    mut outcome: Verification,
) -> Result<Verification> {
    let entries = sample(problem, options.sample_count, outcome.seed);
    let errors = map_indices(ctx, entries.len(), |at| {
        let EntryIndex { row, col } = entries[at];
        let mut sum = Accumulator::default();
        ProductSum::default().add_dot(
            &mut sum,
            CutColumn::whole(problem.left, row),
            CutColumn::whole(problem.right, col),
        );
        if let Some(term) = term(problem.entry(row, col), KEEP_ALL) {
            sum.add(!term.negative, term.limbs, term.low);
        }
        sum.take()
    });
    outcome.entry_count = entries.len();
    match entries.iter().zip(errors).find(|(_, error)| error.integer != 0) {
        None => Ok(outcome),
        Some((&EntryIndex { row, col }, Dyadic { integer, exponent })) => {
            let size = rug::Float::with_val(53, integer.abs()) << exponent.clamp(-(1 << 29), 1 << 29) as i32;
            Err(Error::verification(ErrorText::counted(|base| {
                let name = problem.name(row, col, base);
                format!("{name} has an error of {size:.4e}, but integers must be exact")
            })))
        }
    }
}

/// The error that names an entry beyond its bound.
pub(super) fn failure(problem: &ClaimedProduct<'_>, row: usize, col: usize, ratio: f64) -> Error {
    Error::verification(ErrorText::counted(|base| {
        let (name, Claim { subject, unit, .. }) = (problem.name(row, col, base), problem.claim);
        let off = if subject == Claim::PRODUCT.subject { "off by " } else { "" };
        if ratio.is_infinite() {
            format!("{name} must be 0, since its bound {unit} is 0")
        } else {
            format!("{name} is {off}{ratio:.4e} units of {unit}, and at most 1 is allowed")
        }
    }))
}

/// Rows of column `col` that are stored.
fn rows_of(problem: &ClaimedProduct<'_>, col: usize) -> std::ops::Range<usize> {
    match problem.triangle {
        None => 0..problem.result.rows(),
        Some(Uplo::Lower) => col..problem.result.rows(),
        Some(Uplo::Upper) => 0..col + 1,
    }
}

/// All stored entries where there are at most `count`, else that many random ones.
fn sample(problem: &ClaimedProduct<'_>, count: usize, seed: u64) -> Vec<EntryIndex> {
    let cols = problem.result.cols();
    let total: u128 = (0..cols).map(|col| rows_of(problem, col).len() as u128).sum();
    if total <= count as u128 {
        return (0..cols).flat_map(|col| rows_of(problem, col).map(move |row| EntryIndex { row, col })).collect();
    }
    // A stream of its own, so that the choice does not depend on the number of vectors drawn before.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    let mut below = |limit: usize| ((u128::from(rng.next_u64()) * limit as u128) >> 64) as usize;
    (0..count)
        .map(|_| {
            let place = EntryIndex { row: below(problem.result.rows()), col: below(cols) };
            if rows_of(problem, place.col).contains(&place.row) { place } else { place.transposed() }
        })
        .collect()
}
