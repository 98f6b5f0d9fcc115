//! The three tests of a claimed product: single entries against exact dot products, the residual
//! `r = L^T (R x) - C x` for random vectors `x`, summed without rounding, and Freivalds' test modulo a random 61-bit
//! prime: is an integer matrix exactly the product of two others?
//!
//! Promise: a right result always passes. An entry passes if and only if
//! `|C_ij - (L^T R)_ij| <= 2^(1-b) ||l_i|| ||r_j||`, decided by integers, and every `r_i` is the exact value, for any
//! exponents (only where exponents spread over more than a million bits, up to the allowance that [`Bounds::floor`]
//! proves). Independent of: the operation that is checked.
//! Source: R. Freivalds, "Fast probabilistic algorithms", 1979; docs/CHECKS.md, "Verification".

use super::exact::{Accumulator, CutColumn, Dyadic, KEEP_ALL, ProductSum, UpperBound, term};
use super::{Bounds, Claim, ClaimedProduct, Verification, VerifyOptions, WIDEST_SPREAD_BITS, map_indices};
use crate::context::Context;
use crate::error::{Error, ErrorText, Result};
use crate::math::check_field::CheckField;
use crate::math::float::FloatRef;
use crate::matrix::{EntryIndex, MatrixView, Op, Symmetric, Uplo};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Integer;
use std::cmp::Ordering;

/// Rows of `R` whose sums are formed together: enough to read columns in runs, few enough to stay in cache.
const ROWS_AT_ONCE: usize = 16;

/// Most random vectors of one test.
const MOST_VECTORS: usize = 1 << 16;

/// The error of one entry.
#[derive(Clone, Copy, Debug)]
struct EntryError {
    /// In units of its bound; infinite where the bound is 0.
    ratio: f64,
    /// Whether it is beyond the bound.
    fails: bool,
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
fn error(problem: &ClaimedProduct<'_>, bounds: &Bounds, row: usize, col: usize) -> EntryError {
    let (x, y) = (bounds.left[row], bounds.right[col]);
    let left = CutColumn { view: problem.left, index: row, floor: bounds.floor(x.low, x.top) };
    let right = CutColumn { view: problem.right, index: col, floor: bounds.floor(y.low, y.top) };
    let value = problem.entry(row, col);
    // A stored entry is kept whole unless it spreads away from the products themselves.
    let far = (x.top + y.top - value.head.exponent()).abs() > WIDEST_SPREAD_BITS;
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
    let difference = difference(left, right, value, floor);
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

/// The product of two columns less `value`, exactly but for bits below the floors.
fn difference(left: CutColumn<'_>, right: CutColumn<'_>, value: FloatRef<'_>, floor: i64) -> Dyadic {
    let mut sum = Accumulator::default();
    ProductSum::default().add_dot(&mut sum, left, right);
    if let Some(term) = term(value, floor) {
        sum.add(!term.negative, term.limbs, term.low);
    }
    sum.take()
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
        let (left, right) = (CutColumn::whole(problem.left, row), CutColumn::whole(problem.right, col));
        difference(left, right, problem.entry(row, col), KEEP_ALL)
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
fn failure(problem: &ClaimedProduct<'_>, row: usize, col: usize, ratio: f64) -> Error {
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
pub(super) fn test_vectors(
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
    let errors = map_indices(ctx, problem.right.cols(), |col| error(problem, bounds, row, col));
    let worst = errors.iter().enumerate().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    match worst {
        Some((col, error)) if error.fails => failure(problem, row, col, error.ratio),
        _ => Error::verification(ErrorText::counted(|base| {
            let (operation, claim) = (problem.operation, &problem.claim);
            let row = base.one(if claim.transposed { "column" } else { "row" }, row);
            format!("{operation}: {row}: the residual |r_i| is {ratio:.4e} times its bound {}", claim.row_unit)
        })),
    }
}

/// Tests whether the integer matrix `q` is exactly `P^T P` (or `P P^T`), by one random vector modulo one random prime.
///
/// The test compares `P^T (P x)` with `Q x` modulo a prime drawn from all primes between `2^60` and `2^61`, where `x`
/// is uniform modulo the prime. A wrong `q` passes with probability below `2^-60 + h 2^-60`, where `h` is the number of
/// bits of the largest entry of `P^T P - Q`: at most `h / 60` of the more than `2^54.5` primes divide a nonzero entry,
/// and for every other prime only one value of some `x_j` hides it. Shapes and triangle as in
/// [`verify_syrk`](super::verify_syrk). Cost: two reductions and two word products for each entry of `p`.
///
/// ```
/// use sunzi::verify::{VerifyOptions, freivalds_syrk};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let q = Matrix::from_f64s(2, 2, 128, &[5.0, 11.0, 11.0, 25.0])?;
/// assert!(freivalds_syrk(&ctx, &p, &q, &VerifyOptions::new())?.prime.is_some());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the first row that differs; [`Error::NotInteger`] names the first entry of `p`, then
/// of `q`, that is not an integer; [`Error::ShapeMismatch`].
pub fn freivalds_syrk<'a, 'b>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    q: impl Into<Symmetric<'b>>,
    options: &VerifyOptions,
) -> Result<Verification> {
    run(ctx, &ClaimedProduct::syrk(p.into(), q.into(), options)?, options)
}

/// Tests whether the integer matrix `c` is exactly `op(A) op(B)`, as [`freivalds_syrk`].
///
/// ```
/// use sunzi::verify::{VerifyOptions, freivalds_gemm};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let right = Matrix::from_f64s(2, 2, 128, &[7.0, 10.0, 15.0, 22.0])?;
/// let wrong = Matrix::from_f64s(2, 2, 128, &[7.0, 10.0, 15.0, 23.0])?;
/// assert!(freivalds_gemm(&ctx, (&a, &a), &right, &VerifyOptions::new()).is_ok());
/// assert!(freivalds_gemm(&ctx, (&a, &a), &wrong, &VerifyOptions::new()).is_err());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`freivalds_syrk`].
pub fn freivalds_gemm<'a, 'b, 'c>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    c: impl Into<MatrixView<'c>>,
    options: &VerifyOptions,
) -> Result<Verification> {
    run(ctx, &ClaimedProduct::gemm(operands.0.into(), operands.1.into(), c.into(), options)?, options)
}

fn run(ctx: &Context, problem: &ClaimedProduct<'_>, options: &VerifyOptions) -> Result<Verification> {
    let mut outcome = options.first_outcome();
    test_modulo_prime(ctx, problem, options, &mut outcome)?;
    Ok(outcome)
}

/// The test itself; fills in the prime.
pub(super) fn test_modulo_prime(
    ctx: &Context,
    problem: &ClaimedProduct<'_>,
    options: &VerifyOptions,
    outcome: &mut Verification,
) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(outcome.seed);
    rng.set_stream(2);
    let field = CheckField::random(&mut rng);
    let prime = field.prime();
    outcome.prime = Some(prime);
    outcome.vector_count = 1;
    let x = (0..problem.right.cols()).map(|_| field.draw(&mut rng)).collect::<Vec<_>>();
    let image = multiply(ctx, &field, problem.right.rows(), &x, |row, col| problem.right.get(row, col))
        .map_err(|(row, col)| not_integer(problem, options, ProductMatrix::Right, row, col))?;
    let left = multiply(ctx, &field, problem.left.cols(), &image, |row, k| problem.left.get(k, row))
        .map_err(|(row, k)| not_integer(problem, options, ProductMatrix::Left, k, row))?;
    let right = multiply(ctx, &field, problem.left.cols(), &x, |row, col| problem.entry(row, col))
        .map_err(|(row, col)| not_integer(problem, options, ProductMatrix::Result, row, col))?;
    match left.iter().zip(&right).position(|(want, got)| want != got) {
        None => Ok(()),
        Some(row) => Err(Error::verification(ErrorText::counted(|base| {
            let (operation, row, seed) = (problem.operation, base.one("row", row), outcome.seed);
            format!("{operation}: {row} of the integer product is wrong (Freivalds modulo {prime}, seed {seed})")
        }))),
    }
}

/// The matrix that an index belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProductMatrix {
    Left,
    Right,
    Result,
}

/// Names a fraction by its place in the matrix the caller gave.
fn not_integer(
    problem: &ClaimedProduct<'_>,
    options: &VerifyOptions,
    part: ProductMatrix,
    row: usize,
    column: usize,
) -> Error {
    let swapped = match part {
        ProductMatrix::Left if problem.triangle.is_none() => options.op == Op::NoTranspose,
        ProductMatrix::Left => options.op == Op::Transpose,
        ProductMatrix::Right if problem.triangle.is_none() => options.op_b == Op::Transpose,
        ProductMatrix::Right => options.op == Op::Transpose,
        ProductMatrix::Result => false,
    };
    if swapped { Error::NotInteger { row: column, column: row } } else { Error::NotInteger { row, column } }
}

/// `rows` inner products modulo the prime; the place of the first entry that is no integer otherwise.
fn multiply<'a>(
    ctx: &Context,
    field: &CheckField,
    rows: usize,
    x: &[u64],
    entry: impl Fn(usize, usize) -> FloatRef<'a> + Send + Sync,
) -> std::result::Result<Vec<u64>, (usize, usize)> {
    let sums = map_indices(ctx, rows, |row| {
        let mut sum = field.product_sum();
        for (col, &factor) in x.iter().enumerate() {
            let residue = field.residue(entry(row, col)).ok_or((row, col))?;
            sum.add(residue, factor);
        }
        Ok(sum.residue())
    });
    sums.into_iter().collect()
}
