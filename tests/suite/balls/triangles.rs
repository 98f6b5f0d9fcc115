//! Solutions of triangular systems of balls.

use super::operands;
use super::points::{POINTS, Radii, assert_inside, balls, number, point, transposed};
use crate::common::Rng;
use crate::common::rational::{Rows, solve as solve_exactly};
use rug::{Float, Rational};
use sunzi::ball::{self, BallMatrix};
use sunzi::{Context, Diag, Error, Matrix, Op, Side, TrsmOptions, Uplo};

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// The triangle that a call reads, from a point of the whole matrix.
fn read(t: &Rows, options: &TrsmOptions<'_>) -> Rows {
    let n = t.len();
    let entry = |row: usize, col: usize| match row == col {
        true if options.diag == Diag::Unit => Rational::from(1),
        is_diagonal if is_diagonal || (row > col) == (options.uplo == Uplo::Lower) => t[row][col].clone(),
        _ => Rational::new(),
    };
    (0..n).map(|row| (0..n).map(|col| entry(row, col)).collect()).collect()
}

/// The solution for one point of the operands.
fn exact(t: &Rows, b: &Rows, b_cols: usize, options: &TrsmOptions<'_>) -> Option<Rows> {
    let t = read(t, options);
    let n = t.len();
    let op = if options.op == Op::Transpose { transposed(&t, n) } else { t };
    match options.side {
        Side::Left => solve_exactly(&op, b),
        Side::Right => {
            let rows = b.len();
            Some(transposed(&solve_exactly(&transposed(&op, n), &transposed(b, b_cols))?, rows))
        }
    }
}

/// A triangle, the other one filled too, with a condition that may be large.
fn triangle(rng: &mut Rng, n: usize, bits: u32) -> Matrix {
    let (spread, is_hard) = (rng.pick(&[0i64, 4, 60]), rng.coin());
    let scales: Vec<i32> = (0..n).map(|_| rng.within(spread) as i32).collect();
    Matrix::from_fn(n, n, bits, |row, col| {
        let value = match (row == col, rng.below(5)) {
            (true, _) if is_hard => Float::with_val(bits, 1),
            (true, _) => number(rng, bits, 1).abs() + 1u32,
            (false, 0) => Float::new(bits),
            // Columns of an inverse that grows as 3^n.
            _ if is_hard => Float::with_val(bits, rng.pick(&[-2i32, 2])),
            _ => number(rng, bits, 2),
        };
        value << (scales[row] - scales[col])
    })
    .unwrap()
}

#[test]
fn solutions_hold_those_of_all_points() {
    let (ctx, mut proven) = (context(), 0);
    let count = operands(60, 2000);
    for seed in 0..count {
        let mut rng = Rng::new(2300 + seed);
        let (n, cols) = (rng.pick(&[0usize, 1, 2, 3, 5, 9]), rng.pick(&[0usize, 1, 3]));
        let bits = rng.pick(&[24u32, 53, 120, 300]);
        let options = TrsmOptions::new()
            .side(rng.pick(&[Side::Left, Side::Right]))
            .uplo(rng.pick(&[Uplo::Lower, Uplo::Upper]))
            .op(rng.pick(&[Op::NoTranspose, Op::Transpose]))
            .diag(rng.pick(&[Diag::NonUnit, Diag::NonUnit, Diag::Unit]));
        let mut radii =
            || rng.pick(&[Radii::None, Radii::None, Radii::Tiny, Radii::Some, Radii::Relative(20), Radii::Relative(1)]);
        let (own, other) = (radii(), radii());
        let t = balls(triangle(&mut rng, n, bits), own, false, &mut rng);
        let (rows, b_cols) = if options.side == Side::Left { (n, cols) } else { (cols, n) };
        let b = Matrix::from_fn(rows, b_cols, bits, |_, _| number(&mut rng, bits, 4)).unwrap();
        let b = balls(b, other, false, &mut rng);
        let label = format!("seed {seed}: {n} rows, {bits} bits, {options:?}, {own:?}, right {other:?}");
        let found = match ball::trsm(&ctx, &t, &b, bits, &options) {
            Ok(found) => found,
            Err(Error::InvalidArgument(text)) if text.contains("balls may contain") => continue,
            Err(error) => panic!("{label}: {error}"),
        };
        proven += 1;
        assert_eq!((found.rows(), found.cols(), found.midpoint().precision_bits()), (rows, b_cols, bits));
        for _ in 0..POINTS {
            let (p, q) = (point(&t, false, &mut rng), point(&b, false, &mut rng));
            let exact = exact(&p, &q, b_cols, &options).unwrap_or_else(|| panic!("{label}: a point is singular"));
            assert_inside(&found, &exact, &label);
            if own == Radii::None && other == Radii::None {
                assert_rounded_once(&found, &exact, &label);
            }
        }
    }
    assert!(4 * proven > 3 * count, "{proven} of {count}");
}

/// Radii of solutions of points: at most three units in the last place, but for entries that are 0 or nearly.
fn assert_rounded_once(found: &BallMatrix, exact: &Rows, label: &str) {
    let bits = found.midpoint().precision_bits();
    for (row, col) in (0..found.rows()).flat_map(|row| (0..found.cols()).map(move |col| (row, col))) {
        let (radius, size) = (found.radius().float(row, col), Float::with_val(64, &exact[row][col]).abs());
        assert!(
            radius <= size >> (bits - 3),
            "{label}: row {row}, column {col}: {radius} at {}",
            exact[row][col].to_f64()
        );
    }
}

/// `1 / (1 +- r)` is off by `r / (1 - r)` at one end, and at `r = 1` there is no bound; below the diagonal radii of any
/// size are no obstacle.
#[test]
fn radii_are_those_of_the_worst_corner() {
    let ctx = context();
    let cell = |value: f64| Matrix::from_f64s(1, 1, 64, &[value]).unwrap();
    let one = BallMatrix::exact(cell(1.0)).unwrap();
    let options = TrsmOptions::new();
    for r in [1e-9, 0.5, 0.96875, 1.0 - 1.0 / 1024.0] {
        let t = BallMatrix::new(cell(1.0), &cell(r)).unwrap();
        let radius = ball::trsm(&ctx, &t, &one, 64, &options).unwrap().radius().float(0, 0).to_f64();
        assert!((1.0..1.001).contains(&(radius / (r / (1.0 - r)))), "{r}: {radius}");
    }
    for r in [1.0, 1.5] {
        let t = BallMatrix::new(cell(1.0), &cell(r)).unwrap();
        let error = ball::trsm(&ctx, &t, &one, 64, &options).unwrap_err().to_string();
        assert!(error.contains("the 1 x 1 balls may contain a singular matrix: the ball 1.000000 +- "), "{error}");
    }
    for r in [0.5, 1e10, 1e100] {
        let t = Matrix::from_f64s(2, 2, 64, &[1.0, 0.0, 0.0, 2.0]).unwrap();
        let t = BallMatrix::new(t, &Matrix::from_f64s(2, 2, 64, &[0.0, r, 7.0, 0.0]).unwrap()).unwrap();
        let b = BallMatrix::exact(Matrix::from_f64s(2, 1, 64, &[1.0, 0.0]).unwrap()).unwrap();
        let radius = ball::trsm(&ctx, &t, &b, 64, &options).unwrap().radius().float(1, 0).to_f64();
        assert!((1.0..1.001).contains(&(radius / (r / 2.0))), "{r}: {radius}");
    }
}

#[test]
fn scalars_and_what_is_refused() {
    let ctx = context();
    let t = BallMatrix::exact(Matrix::from_f64s(2, 2, 64, &[1.0, 2.0, 0.0, 0.0]).unwrap()).unwrap();
    let b = BallMatrix::exact(Matrix::from_f64s(2, 1, 64, &[1.0, 4.0]).unwrap()).unwrap();
    let alpha = Float::with_val(64, -2);
    let unit = TrsmOptions::new().diag(Diag::Unit).alpha(&alpha);
    let found = ball::trsm(&ctx, &t, &b, 64, &unit).unwrap();
    assert!(found.midpoint().view().to_f64s() == [-2.0, -4.0] && found.radius().max_norm() == 0);
    let refused = ball::trsm(&ctx, &t, &b, 64, &TrsmOptions::new());
    assert!(matches!(refused, Err(Error::Singular { index: 1 })));
    let upper = ball::trsm(&ctx, &t, &b, 64, &TrsmOptions::new().uplo(Uplo::Upper));
    assert!(matches!(upper, Err(Error::Singular { index: 1 })));
    let refused = ball::trsm(&ctx, &t, &b, 64, &TrsmOptions::new().side(Side::Right));
    assert!(matches!(refused, Err(Error::ShapeMismatch { .. })));
    let infinite = Float::with_val(64, f64::INFINITY);
    let refused = ball::trsm(&ctx, &t, &b, 64, &TrsmOptions::new().diag(Diag::Unit).alpha(&infinite));
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
}
