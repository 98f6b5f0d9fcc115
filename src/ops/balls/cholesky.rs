//! Cholesky factors of matrices of balls, and logarithms of their determinants.
//!
//! `A = L (I + G) L^T` for each symmetric point, `I + G = (I + F)(I + F)^T`, so its factor is `L + L F`. The first
//! order of `L F` is bounded derivative by derivative, the rest by a matrix `H >= |F|`.
//! `log det A = log det L L^T + log det(I + K)` with `K = (L L^T)^-1 (A - L L^T)`; the trace of `K` is its first order.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS, image, largest_row_sum, power_above_one};
use super::matrix::{Ball, BallMatrix};
use super::product::rounding;
use super::regular::{BOUND_BITS, Definite, InverseFactor, perturbation, scales};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Symmetric};
use crate::ops::cholesky::cholesky as factor_of;
use crate::ops::estimate::{Upper, magnitude, power};
use crate::ops::product::problem::Accuracy;
use rug::Float;
use rug::float::Round;
use rug::ops::AddAssignRound;

/// Steps of the iteration that bounds `F`, at most.
const STEPS: usize = 40;

/// Relative amount by which each step raises its result, as a power of two.
const ROOM_LOG2: i32 = -8;

/// Amount by which entries of `G` are raised where `F` is found from a factor, as a power of two.
const RAISED_LOG2: i64 = -30;

/// Bits of the logarithms beyond those of the result.
const SPARE_BITS: u32 = 64;

/// Steps of the search for a vector that `K` shrinks.
const MOST_STEPS: usize = 400;

/// A vector whose image is at most this part of it is not improved upon.
const FINE_RATIO: f64 = 0.5;

/// No larger part is taken.
const MOST_RATIO: f64 = 1.0 - 1e-6;

/// Steps that gain less than this are the last.
const SETTLED: f64 = 1e-3;

/// Balls that contain the lower triangular `L` with `A = L L^T` for every symmetric point of `a`.
///
/// Shapes: `a` is `n x n` with a symmetric midpoint; only the lower triangle of the radii is used. Above the diagonal
/// both midpoint and radius are 0. Radius: to first order the sum of all derivatives times the radii; the rest is
/// proportional to their square. Cost: a factorisation with as many bits as `precision_bits` and the condition require,
/// the inverse of a triangle, and `2 n^3 / 3` multiply-adds of about 64 bits. Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let midpoint = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.0, 0.5, 0.5, 0.0])?;
/// let l = ball::cholesky(&ctx, &BallMatrix::new(midpoint, &radius)?, 128)?;
/// assert!(l.contains(0, 0, &Rational::from(2)) && l.contains(1, 1, &Rational::from(2)));
/// assert!(l.contains(1, 0, &Rational::from((3, 4))) && l.contains(1, 0, &Rational::from((5, 4))));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] for the midpoint; [`crate::Error::InvalidArgument`] if no proof is found that
/// all points are positive definite; [`crate::Error::NotSymmetric`]; the errors of [`crate::cholesky_with`].
pub fn cholesky(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    let definite = Definite::new(ctx, a, precision_bits, Accuracy::Entrywise)?;
    let factor = definite.factor.factor();
    let (order, midpoint) = (factor.rows(), factor.view().rounded(precision_bits)?);
    let perturbation = perturbation(ctx, a, factor.view())?;
    let inverse = InverseFactor::of(ctx, &definite)?;
    // q >= dA |L^-T|, G <= |L^-1| q.
    let image = bounds::product(ctx, perturbation.view(), inverse.size.transposed())?;
    let relative = bounds::product(ctx, inverse.size.view(), image.view())?;
    let Some(change) = majorant(ctx, &relative)? else { return Err(not_definite(a, &relative)) };
    let first = first_order(&definite, &inverse, &image)?;
    let moved = with_second_order(ctx, factor, &first, &change)?;
    let radius = Matrix::from_fn(order, order, RADIUS_BITS, |row, col| {
        if row < col {
            return Float::new(RADIUS_BITS);
        }
        let rounded = rounding(factor.float(row, col), &midpoint.float(row, col));
        Upper(moved.float(row, col)).add(&rounded).0
    })?;
    Ok(BallMatrix::trusted(midpoint, radius))
}

/// The lower triangle with half of the diagonal.
fn half_diagonal(matrix: &Matrix) -> Result<Matrix> {
    let order = matrix.rows();
    Matrix::from_fn(order, order, RADIUS_BITS, |row, col| match row.cmp(&col) {
        std::cmp::Ordering::Less => Float::new(RADIUS_BITS),
        std::cmp::Ordering::Equal => matrix.float(row, col) >> 1,
        std::cmp::Ordering::Greater => matrix.float(row, col),
    })
}

/// A lower triangular `H >= low(G) + low(H H^T)` with a diagonal below 1, for a symmetric `G >= 0`; `None` where none
/// is found.
fn majorant(ctx: &Context, relative: &Matrix) -> Result<Option<Matrix>> {
    let order = relative.rows();
    let base = half_diagonal(&larger_triangle(relative)?)?;
    let image = |change: &Matrix| -> Result<Matrix> {
        let squares = half_diagonal(&bounds::product(ctx, change.view(), change.transposed())?)?;
        bounds::sum(base.view(), squares.view())
    };
    let holds = |least: &Matrix, change: &Matrix| {
        (0..order).all(|col| (col..order).all(|row| least.float(row, col) <= change.float(row, col)))
    };
    // The image, raised by the most that its own image may move once it has nearly converged.
    let room = power_above_one(ROOM_LOG2);
    let mut change = Matrix::zeros(order, order, RADIUS_BITS)?;
    for _ in 0..STEPS {
        let least = image(&change)?;
        if !is_below_one(&least) {
            break;
        }
        if holds(&least, &change) {
            return Ok(Some(change));
        }
        change = Matrix::from_fn(order, order, RADIUS_BITS, |row, col| Upper(least.float(row, col)).times(&room).0)?;
    }
    let Some(change) = by_factor(ctx, relative, &change)? else { return Ok(None) };
    let least = image(&change)?;
    Ok((holds(&least, &change) && is_below_one(&change)).then_some(change))
}

/// `H` with `I - H` the factor of `I - G'`, for `G'` a little above `G` wherever `pattern` is not 0.
fn by_factor(ctx: &Context, relative: &Matrix, pattern: &Matrix) -> Result<Option<Matrix>> {
    let order = relative.rows();
    let raised = Matrix::from_fn(order, order, RADIUS_BITS, |row, col| {
        let (row, col) = (row.max(col), row.min(col));
        let own = relative.float(row, col).max(&relative.float(col, row));
        let extra = if pattern.get(row, col).head.is_zero() { Float::new(RADIUS_BITS) } else { power(RAISED_LOG2) };
        let unit = Float::with_val(RADIUS_BITS, u32::from(row == col));
        unit - Upper(own).add(&extra).0
    })?;
    let factor = match factor_of(ctx, Symmetric::lower(&raised), RADIUS_BITS) {
        Ok(factor) => factor.into_factor(),
        Err(Error::NotPositiveDefinite { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let change = Matrix::from_fn(order, order, RADIUS_BITS, |row, col| {
        let unit = Float::with_val(RADIUS_BITS, u32::from(row == col));
        (unit - factor.float(row, col)).max(&Float::new(RADIUS_BITS))
    })?;
    Ok(Some(change))
}

/// Symmetric, with the larger of both entries.
fn larger_triangle(matrix: &Matrix) -> Result<Matrix> {
    Matrix::from_fn(matrix.rows(), matrix.cols(), RADIUS_BITS, |row, col| {
        matrix.float(row, col).max(&matrix.float(col, row))
    })
}

fn is_below_one(change: &Matrix) -> bool {
    (0..change.rows()).all(|at| change.float(at, at) < 1)
}

/// A bound of `|L low(L^-1 dA L^-T)|`, with `image >= dA |L^-T|`.
///
/// Entry `i, j` is `sum_k s_ijk (dA L^-T)_kj`, where `s_ijk = delta_ik - sum_(m < j) l_im w_mk - l_ij w_jk / 2` for
/// `W = L^-1` and `k <= j`, and `delta_ik` for `k > j`: these sums, whose terms cancel, are formed in as many bits as
/// the condition takes.
/// Cost: `n^3 / 3` multiply-adds of few bits.
fn first_order(definite: &Definite, inverse: &InverseFactor, image: &Matrix) -> Result<Matrix> {
    let factor = definite.factor.factor();
    let order = factor.rows();
    let bits = definite.lost_bits + BOUND_BITS;
    // Error of a sum relative to its terms: their roundings, and its own.
    let unit = Upper(Float::with_val(RADIUS_BITS, order + 4)).times(&power(2 - i64::from(bits))).0;
    let mut whole = Matrix::zeros(order, order, RADIUS_BITS)?;
    for row in 0..order {
        let own: Vec<Float> = (0..=row).map(|col| Float::with_val(bits, factor.float(row, col))).collect();
        let sizes: Vec<Float> = (0..=row).map(|col| magnitude(factor.get(row, col))).collect();
        let mut sums = vec![Upper::zero(); row + 1];
        for k in 0..=row {
            let mut sum = Float::with_val(bits, u32::from(k == row));
            // The 1 is exact, but each sum with it is rounded.
            let mut off = if k == row { Upper(unit.clone()) } else { Upper::zero() };
            for col in k..=row {
                let term = Float::with_val(bits, &own[col] * &inverse.near.float(col, k)) >> 1;
                let known = Upper(inverse.size.float(col, k)).times(&unit).add(&inverse.off.float(col, k));
                off = off.add(&known.times(&sizes[col]).0);
                sum -= &term;
                let size = Float::with_val_round(RADIUS_BITS, sum.abs_ref(), Round::Up).0;
                sum -= &term;
                let part = Upper(size).add(&off.0).times(&image.float(k, col)).0;
                sums[col].0.add_assign_round(&part, Round::Up);
            }
        }
        for (col, sum) in sums.into_iter().enumerate() {
            let all = if col < row { sum.add(&image.float(row, col)) } else { sum };
            whole.set_float(row, col, &all.0)?;
        }
    }
    Ok(whole)
}

/// The radii of the factor: `first` plus a bound of the contribution of `L low(F F^T)`, the smaller of two.
///
/// Entry `i, j` of that is `sum_(m > j) l_im (F F^T)_mj + l_ij (F F^T)_jj / 2`; and, since `sum_m l_im f_mk` is the
/// change `x_ik` of the factor, also `sum_(k <= j) x_ik f_jk - sum_(m < j) l_im (F F^T)_mj - l_ij (F F^T)_jj / 2`,
/// which is 0 where the row is 0 and does not change.
fn with_second_order(ctx: &Context, factor: &Matrix, first: &Matrix, change: &Matrix) -> Result<Matrix> {
    let order = factor.rows();
    let squares = bounds::product(ctx, change.view(), change.transposed())?;
    let sizes = bounds::magnitudes(factor.view())?;
    let lower = half_diagonal(&squares)?;
    let above = lower.transposed().to_matrix()?;
    let below = bounds::product(ctx, sizes.view(), lower.view())?;
    let before = bounds::product(ctx, sizes.view(), above.view())?;
    let mut whole = Matrix::zeros(order, order, RADIUS_BITS)?;
    for row in 0..order {
        for col in 0..=row {
            let simple = Upper(first.float(row, col)).add(&below.float(row, col)).0;
            let mut sum = Upper(first.float(row, col)).add(&before.float(row, col));
            for k in 0..col {
                sum = sum.add(&Upper(whole.float(row, k)).times(&change.float(col, k)).0);
            }
            let left = Float::with_val_round(RADIUS_BITS, 1 - &change.float(col, col), Round::Down).0;
            whole.set_float(row, col, &sum.over(&left).0.min(&simple))?;
        }
    }
    Ok(whole)
}

fn not_definite(a: &BallMatrix, relative: &Matrix) -> Error {
    let order = a.rows();
    let widest = largest_row_sum(relative);
    let remedy = match a.widest() {
        Some((row, col)) => {
            let radius = a.radius().float(row, col).to_f64();
            format!("give smaller radii (the largest is {radius:.3e}, at row {row}, column {col})")
        }
        None => "give more bits of precision".to_string(),
    };
    Error::InvalidArgument(format!(
        "cholesky: the {order} x {order} balls may contain a matrix that is not positive definite: {remedy}. The proof \
         needs a spectral radius of |L^-1 (A - L L^T) L^-T| below 1, where L is the factor of the midpoints and A any \
         matrix in the balls; the largest bound of the sum of a row is {widest:.3}"
    ))
}

/// A ball that contains `log det A` for every point of `a`, symmetric or not.
///
/// Shapes: `a` is `n x n` with a symmetric positive definite midpoint; the result is 0 for an empty matrix. Radius: to
/// first order `sum |A^-1|_ij rA_ij`. Cost: a factorisation and an inverse. Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Float};
/// let ctx = Context::new()?;
/// let a = BallMatrix::exact(Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?)?; // its determinant is 16
/// let log_det = ball::log_det(&ctx, &a, 128)?;
/// assert!((log_det.midpoint - Float::with_val(256, 16).ln()).abs() <= log_det.radius);
/// assert!(log_det.radius < 1e-36);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve()`](super::solve()).
pub fn log_det(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Ball> {
    let definite = Definite::new(ctx, a, precision_bits, Accuracy::Norm)?;
    let factor = definite.factor.factor();
    let a = &mirrored(a)?;
    let perturbation = perturbation(ctx, a, factor.view())?;
    // A bound of the inverses of the balls around the midpoint that hold L L^T.
    let around = BallMatrix::trusted(a.midpoint().clone(), residual(&perturbation, a)?);
    let (inverse, regular) = definite.regular(ctx, around.view(), "log_det")?;
    let size = regular.solution(ctx, &bounds::magnitudes(inverse.view())?)?;
    let relative = bounds::product(ctx, size.view(), perturbation.view())?;
    let Some(change) = logarithm(&relative, &scales(a.midpoint().view())) else {
        return Err(not_regular(a, &relative));
    };
    let (sum, off) = sum_of_logarithms(factor, precision_bits + SPARE_BITS);
    let midpoint = Float::with_val(precision_bits, &sum);
    let moved = rounding(sum, &midpoint);
    Ok(Ball { midpoint, radius: change.add(&off).add(&moved).0 })
}

/// The part of a perturbation that does not come from the radii.
fn residual(perturbation: &Matrix, a: &BallMatrix) -> Result<Matrix> {
    Matrix::from_fn(a.rows(), a.cols(), RADIUS_BITS, |row, col| {
        let whole = perturbation.float(row, col);
        Float::with_val_round(RADIUS_BITS, &whole - &a.radius().float(row, col), Round::Up).0
    })
}

/// The same balls with the larger radius of each entry and its mirror image, which hold all points of both triangles.
fn mirrored(a: &BallMatrix) -> Result<BallMatrix> {
    let radius = a.radius();
    let larger = |row: usize, col: usize| radius.float(row, col).max(&radius.float(col, row));
    let order = radius.rows().min(radius.cols());
    let radius = Matrix::from_fn(order, order, RADIUS_BITS, larger)?;
    Ok(BallMatrix::trusted(a.midpoint().clone(), radius))
}

/// A bound of `|log det(I + K)|` for all `|K| <= relative`; `None` where a determinant may be 0. `start` is a first
/// guess of a vector that `K` shrinks.
///
/// With eigenvalues of magnitude at most `t < 1`, and `f` the Frobenius norm of `K` scaled by a positive vector,
/// `|log det(I + K) - tr K| <= f^2 sum_(k >= 2) t^(k-2) / k`.
fn logarithm(relative: &Matrix, start: &[Float]) -> Option<Upper> {
    let order = relative.rows();
    let mut vector = start.to_vec();
    let mut last = Float::with_val(RADIUS_BITS, f64::INFINITY);
    for _ in 0..MOST_STEPS {
        let moved = image(relative, &vector);
        let ratio = moved.iter().zip(&vector).map(|(moved, own)| Upper(moved.clone()).over(own).0);
        let ratio = ratio.fold(Float::new(RADIUS_BITS), |most, ratio| most.max(&ratio));
        let has_settled = Float::with_val(RADIUS_BITS, &last - &ratio) < SETTLED;
        if ratio < FINE_RATIO || ratio < MOST_RATIO && has_settled {
            let trace = (0..order).fold(Upper::zero(), |sum, at| sum.add(&relative.float(at, at)));
            return Some(trace.add(&scaled_squares(relative, &vector).times(&tail(&ratio)).0));
        }
        last = ratio;
        vector = moved.into_iter().zip(start).map(|(moved, first)| Upper(moved).add(first).0).collect();
        if vector.iter().any(|entry| !entry.is_finite() || entry.get_exp().is_some_and(|top| top > 1 << 29)) {
            break;
        }
    }
    None
}

/// `sum_(k >= 2) t^(k-2) / k = (-log(1 - t) - t) / t^2`, at most `1 / (2 (1 - t))`, for `0 <= t < 1`; rounded up.
fn tail(t: &Float) -> Float {
    let left = Float::with_val_round(RADIUS_BITS, 1 - t, Round::Down).0;
    if *t < 0.25 {
        return Upper(Float::with_val(RADIUS_BITS, 1)).over(&(left << 1)).0;
    }
    let logarithm = Float::with_val_round(RADIUS_BITS, left.ln_ref(), Round::Down).0;
    let size = -logarithm;
    let rest = Float::with_val_round(RADIUS_BITS, &size - t, Round::Up).0;
    let square = Float::with_val_round(RADIUS_BITS, t.square_ref(), Round::Down).0;
    Upper(rest).over(&square).0
}

/// The sum of all `(k_ij v_j / v_i)^2`, rounded up.
fn scaled_squares(relative: &Matrix, vector: &[Float]) -> Upper {
    let mut squares = Upper::zero();
    for (col, from) in vector.iter().enumerate() {
        for (row, to) in vector.iter().enumerate() {
            let entry = Upper(relative.float(row, col)).times(from).over(to);
            squares = squares.add(&entry.clone().times(&entry.0).0);
        }
    }
    squares
}

/// `2 sum log l_ii` with `bits` bits, and a bound of its error.
fn sum_of_logarithms(factor: &Matrix, bits: u32) -> (Float, Float) {
    let unit = power(-i64::from(bits));
    let (mut sum, mut error) = (Float::new(bits), Upper::zero());
    for at in 0..factor.rows() {
        let logarithm = Float::with_val_round(bits, factor.float(at, at).ln_ref(), Round::Nearest).0;
        let size = |value: &Float| Float::with_val_round(RADIUS_BITS, value.abs_ref(), Round::Up).0;
        error = error.add(&Upper(size(&logarithm)).times(&unit).0);
        sum += &logarithm;
        error = error.add(&Upper(size(&sum)).times(&unit).0);
    }
    (sum << 1, error.0 << 1)
}

fn not_regular(a: &BallMatrix, relative: &Matrix) -> Error {
    let (order, widest) = (a.rows(), largest_row_sum(relative));
    Error::InvalidArgument(format!(
        "log_det: the {order} x {order} balls may contain a matrix whose determinant is not positive: give smaller \
         radii, or more bits of precision. The proof needs a spectral radius of |(L L^T)^-1 (A - L L^T)| below 1, \
         where L is the factor of the midpoints and A any matrix in the balls; the largest bound of the sum of a row \
         is {widest:.3}"
    ))
}
