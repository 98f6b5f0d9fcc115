//! Exact residuals of solves, and the bounds that the library promises for them.

use super::oracle::Exact;
use rug::Float;
use sunzi::{Diag, Matrix, Op, Side, TrsmOptions, Uplo};

/// Bits of bounds: enough that rounding them is no excuse.
const BOUND_BITS: u32 = 128;

/// A dense matrix of exact numbers, row by row.
pub type Rows = Vec<Vec<Exact>>;

/// All entries of a matrix.
pub fn rows_of(matrix: &Matrix) -> Rows {
    let view = matrix.view();
    (0..matrix.rows()).map(|row| (0..matrix.cols()).map(|col| Exact::entry(&view, row, col)).collect()).collect()
}

/// The transpose; a matrix of no rows has no columns either.
pub fn transposed(rows: &Rows) -> Rows {
    (0..rows.first().map_or(0, Vec::len)).map(|col| rows.iter().map(|row| row[col].clone()).collect()).collect()
}

/// A symmetric matrix from its lower triangle.
pub fn symmetric(matrix: &Matrix) -> Rows {
    let mut rows = rows_of(matrix);
    for row in 0..rows.len() {
        let (above, below) = rows.split_at_mut(row);
        for (upper, value) in above.iter_mut().zip(&below[0]) {
            upper[row] = value.clone();
        }
    }
    rows
}

/// `op(T)` in full, zeros and ones written out.
pub fn triangle(t: &Matrix, options: &TrsmOptions<'_>) -> Rows {
    let mut rows = rows_of(t);
    for (r, row) in rows.iter_mut().enumerate() {
        for (c, entry) in row.iter_mut().enumerate() {
            let inside = if options.uplo == Uplo::Lower { r >= c } else { r <= c };
            if r == c && options.diag == Diag::Unit {
                *entry = Exact { integer: 1.into(), exponent: 0 };
            } else if !inside {
                *entry = Exact::zero();
            }
        }
    }
    if options.op == Op::Transpose { transposed(&rows) } else { rows }
}

/// `sum x_k y_k`, exactly.
pub fn dot(x: &[Exact], y: &[Exact]) -> Exact {
    let terms = x.iter().zip(y).filter(|(x, y)| !x.integer.is_zero() && !y.integer.is_zero());
    terms.fold(Exact::zero(), |sum, (x, y)| sum.plus(x.times(y)))
}

/// The number to [`BOUND_BITS`].
pub fn size(value: &Exact) -> Float {
    value.round(BOUND_BITS).abs()
}

/// The Euclidean norm.
pub fn norm(x: &[Exact]) -> Float {
    x.iter().fold(Float::new(BOUND_BITS), |sum, value| sum + size(value).square()).sqrt()
}

/// `2^exponent`.
pub fn power(exponent: i32) -> Float {
    Float::with_val(BOUND_BITS, 1) << exponent
}

/// Asserts that a residual is within its bound; returns their quotient.
pub fn assert_within(residual: &Exact, bound: &Float, place: (usize, usize), label: &str) -> f64 {
    let residual = size(residual);
    assert!(residual <= *bound, "{label}: {residual:.3e} above the bound {bound:.3e} at {place:?}");
    if *bound == 0 { 0.0 } else { Float::with_val(53, residual / bound).to_f64() }
}

/// Asserts `|alpha b - op(T) x|_ij <= 2^(1 - b) (||t_i|| ||x_j|| + |alpha b_ij|)` for every entry; returns the largest
/// quotient of the two sides.
pub fn assert_trsm_bound(t: &Matrix, b: &Matrix, x: &Matrix, options: &TrsmOptions<'_>, label: &str) -> f64 {
    assert_eq!((x.rows(), x.cols()), (b.rows(), b.cols()), "{label}");
    let mut t = triangle(t, options);
    // Columns of the right side and of the solution. X op(T) = alpha B is op(T)^T X^T = alpha B^T.
    let (right, solution) = match options.side {
        Side::Left => (transposed(&rows_of(b)), transposed(&rows_of(x))),
        Side::Right => (rows_of(b), rows_of(x)),
    };
    if options.side == Side::Right {
        t = transposed(&t);
    }
    let alpha = options.alpha.map_or(Exact { integer: 1.into(), exponent: 0 }, Exact::float);
    let norms: Vec<Float> = t.iter().map(|row| norm(row)).collect();
    let unit = power(1 - x.precision_bits() as i32);
    let mut worst = 0.0f64;
    for (col, (right, solution)) in right.iter().zip(&solution).enumerate() {
        let length = norm(solution);
        for (row, entries) in t.iter().enumerate() {
            let right = alpha.times(&right[row]);
            let bound = (Float::with_val(BOUND_BITS, &norms[row] * &length) + size(&right)) * &unit;
            let residual = right.plus(dot(entries, solution).negated());
            worst = worst.max(assert_within(&residual, &bound, (row, col), label));
        }
    }
    worst
}

/// Without its sign.
pub fn magnitude(value: &Exact) -> Exact {
    Exact { integer: value.integer.clone().abs(), exponent: value.exponent }
}

/// Without their signs.
pub fn magnitudes(rows: &[Exact]) -> Vec<Exact> {
    rows.iter().map(magnitude).collect()
}

/// Asserts `|b - A x|_i <= 2^(4 - bits) (|L| |D| |L^T| |x| + |b|)_i`; returns the largest quotient.
pub fn assert_solved(
    (a, b, x): (&Rows, &Matrix, &Matrix),
    (lower, pivots): (&Matrix, Option<&Matrix>),
    what: &str,
) -> f64 {
    let lower = rows_of(lower).iter().map(|row| magnitudes(row)).collect::<Rows>();
    let upper = transposed(&lower);
    let unit = power(4 - x.precision_bits() as i32);
    let of = |rows: &[Vec<Exact>], x: &[Exact]| rows.iter().map(|row| dot(row, x)).collect::<Vec<_>>();
    let mut worst = 0.0f64;
    for (col, (right, solution)) in transposed(&rows_of(b)).iter().zip(transposed(&rows_of(x))).enumerate() {
        let mut middle = of(&upper, &magnitudes(&solution));
        for (k, value) in middle.iter_mut().enumerate() {
            if let Some(pivots) = pivots {
                *value = value.times(&magnitude(&Exact::entry(&pivots.view(), k, 0)));
            }
        }
        for (row, sum) in of(&lower, &middle).into_iter().enumerate() {
            let residual = right[row].clone().plus(dot(&a[row], &solution).negated());
            let bound = size(&sum.plus(magnitude(&right[row]))) * &unit;
            worst = worst.max(assert_within(&residual, &bound, (row, col), what));
        }
    }
    worst
}
