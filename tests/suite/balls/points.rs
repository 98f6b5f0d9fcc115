//! Balls, and exact points of them.

use crate::common::Rng;
use crate::common::rational::Rows;
use rug::{Float, Integer, Rational};
use sunzi::Matrix;
use sunzi::ball::BallMatrix;

/// How large radii are beside midpoints.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Radii {
    /// All 0.
    None,
    /// About a unit in the last place.
    Tiny,
    /// Some entries by `2^-40`, the others 0.
    Some,
    /// About `2^-k` of each entry.
    Relative(u32),
}

/// Points that are looked at of each ball matrix.
pub const POINTS: usize = 20;

/// A number of `bits` bits, with an exponent within `spread`.
pub fn number(rng: &mut Rng, bits: u32, spread: i64) -> Float {
    let shift = rng.within(spread) as i32 - bits as i32;
    Float::with_val(bits, rng.integer(bits)) << shift
}

/// Balls around the entries of a matrix; of a symmetric one with symmetric radii.
pub fn balls(midpoint: Matrix, radii: Radii, is_symmetric: bool, rng: &mut Rng) -> BallMatrix {
    let bits = midpoint.precision_bits() as i32;
    let mut radius = Matrix::zeros(midpoint.rows(), midpoint.cols(), 64).unwrap();
    for (row, col) in (0..midpoint.cols()).flat_map(|col| (0..midpoint.rows()).map(move |row| (row, col))) {
        let size = midpoint.float(row, col).abs();
        let part = Float::with_val(32, rng.below(1 << 30)) >> 30;
        let value = match radii {
            Radii::None => Float::new(32),
            Radii::Tiny => (part * &size) >> bits,
            Radii::Some if rng.coin() => part >> 40,
            Radii::Some => Float::new(32),
            Radii::Relative(lost) => (part * &size) >> lost,
        };
        if !is_symmetric || row >= col {
            radius.set_float(row, col, &value).unwrap();
        }
        if is_symmetric && row > col {
            radius.set_float(col, row, &value).unwrap();
        }
    }
    let mirrored = |row: usize, col: usize| radius.float(row.max(col), row.min(col));
    if is_symmetric {
        radius = Matrix::from_fn(radius.rows(), radius.cols(), 64, mirrored).unwrap();
    }
    BallMatrix::new(midpoint, &radius).unwrap()
}

/// A point of the balls: inside, or at a corner; the point of a symmetric matrix is symmetric where that is asked for.
pub fn point(balls: &BallMatrix, is_symmetric: bool, rng: &mut Rng) -> Rows {
    let at_corner = rng.below(3) == 0;
    let mut entry = |row: usize, col: usize| {
        let part = if at_corner { 64 * (2 * rng.below(2) as i64 - 1) } else { rng.within(64) };
        let exact = |value: Float| value.to_rational().unwrap();
        exact(balls.midpoint().float(row, col)) + exact(balls.radius().float(row, col)) * Rational::from((part, 64))
    };
    let mut rows: Rows = (0..balls.rows()).map(|row| (0..balls.cols()).map(|col| entry(row, col)).collect()).collect();
    if is_symmetric {
        for (row, col) in (0..balls.rows()).flat_map(|row| (0..row).map(move |col| (row, col))) {
            rows[col][row] = rows[row][col].clone();
        }
    }
    rows
}

/// Asserts that all entries lie in their balls.
pub fn assert_inside(balls: &BallMatrix, exact: &Rows, label: &str) {
    for (row, entries) in exact.iter().enumerate() {
        for (col, value) in entries.iter().enumerate() {
            let (midpoint, radius) = (balls.midpoint().float(row, col), balls.radius().float(row, col));
            let shown = Float::with_val(200, value);
            assert!(
                balls.contains(row, col, value),
                "{label}: {shown} at row {row}, column {col} is not within {radius} of {midpoint}"
            );
        }
    }
}

/// `A B`.
pub fn product(a: &Rows, b: &Rows, cols: usize) -> Rows {
    let sum = |row: &Vec<Rational>, col: usize| {
        row.iter().zip(b).map(|(left, right)| Rational::from(left * &right[col])).sum::<Rational>()
    };
    a.iter().map(|row| (0..cols).map(|col| sum(row, col)).collect()).collect()
}

/// `A^T`, of a matrix with so many columns.
pub fn transposed(a: &Rows, cols: usize) -> Rows {
    (0..cols).map(|col| a.iter().map(|row| row[col].clone()).collect()).collect()
}

/// `A + B`.
pub fn sum(a: &Rows, b: &Rows) -> Rows {
    let add = |(a, b): (&Vec<Rational>, &Vec<Rational>)| a.iter().zip(b).map(|(a, b)| Rational::from(a + b)).collect();
    a.iter().zip(b).map(add).collect()
}

/// The Cholesky factor with so many bits; `None` where a pivot is not positive.
pub fn factor(a: &Rows, bits: u32) -> Option<Vec<Vec<Float>>> {
    let n = a.len();
    let mut l = vec![vec![Float::new(bits); n]; n];
    for row in 0..n {
        for col in 0..=row {
            let mut left = Float::with_val(bits, &a[row][col]);
            for (own, other) in l[row].iter().zip(&l[col]).take(col) {
                left -= Float::with_val(bits, own * other);
            }
            if row == col && left <= 0 {
                return None;
            }
            l[row][col] = if row == col { left.sqrt() } else { left / &l[col][col] };
        }
    }
    Some(l)
}

/// The determinant, by elimination.
pub fn determinant(a: &Rows) -> Rational {
    let (mut rows, mut whole) = (a.clone(), Rational::from(Integer::from(1)));
    for col in 0..rows.len() {
        let Some(pivot) = (col..rows.len()).find(|&row| rows[row][col] != 0) else { return Rational::new() };
        if pivot != col {
            rows.swap(pivot, col);
            whole = -whole;
        }
        whole *= &rows[col][col];
        let own = rows[col].clone();
        for row in rows.iter_mut().skip(col + 1) {
            let factor = Rational::from(&row[col] / &own[col]);
            row.iter_mut().zip(&own).for_each(|(entry, own)| *entry -= Rational::from(&factor * own));
        }
    }
    whole
}
