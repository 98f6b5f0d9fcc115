//! Products of balls.

use super::operands;
use super::points::{POINTS, Radii, assert_inside, balls, number, point, product, sum, transposed};
use crate::common::Rng;
use rug::{Float, Rational};
use sunzi::ball::{self, Ball, BallMatrix};
use sunzi::{Context, Error, Matrix, Op};

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn matrix(rng: &mut Rng, (rows, cols): (usize, usize), bits: u32, spread: i64) -> Matrix {
    Matrix::from_fn(rows, cols, bits, |_, _| match rng.below(6) {
        0 => Float::new(bits),
        _ => number(rng, bits, spread),
    })
    .unwrap()
}

fn pick_radii(rng: &mut Rng) -> Radii {
    rng.pick(&[Radii::None, Radii::Tiny, Radii::Some, Radii::Relative(20), Radii::Relative(1), Radii::Relative(0)])
}

#[test]
fn products_hold_those_of_all_points() {
    let ctx = context();
    for seed in 0..operands(40, 2500) {
        let mut rng = Rng::new(100 + seed);
        let mut size = || rng.pick(&[0usize, 1, 2, 3, 5, 8, 17]);
        let (m, k, n) = (size(), size(), size());
        let bits = rng.pick(&[2u32, 24, 53, 64, 128, 300]);
        let spread = rng.pick(&[0i64, 3, 80, 2000]);
        let (op_a, op_b) = (rng.pick(&[Op::NoTranspose, Op::Transpose]), rng.pick(&[Op::NoTranspose, Op::Transpose]));
        let stored = |op: Op, rows: usize, cols: usize| if op == Op::Transpose { (cols, rows) } else { (rows, cols) };
        let oriented = |op: Op, rows: &crate::common::rational::Rows, cols: usize| match op {
            Op::Transpose => transposed(rows, cols),
            Op::NoTranspose => rows.clone(),
        };
        let radii = [pick_radii(&mut rng), pick_radii(&mut rng), pick_radii(&mut rng)];
        let own_bits = rng.pick(&[4u32, bits]);
        let mut operand = |shape: (usize, usize), radii: Radii| {
            balls(matrix(&mut rng, shape, own_bits, spread), radii, false, &mut rng)
        };
        let a = operand(stored(op_a, m, k), radii[0]);
        let b = operand(stored(op_b, k, n), radii[1]);
        let c = operand((m, n), radii[2]);
        let with_c = rng.coin();
        let found = ball::gemm(&ctx, (&a, op_a), (&b, op_b), with_c.then_some(&c), bits).unwrap();
        assert_eq!((found.rows(), found.cols(), found.midpoint().precision_bits()), (m, n, bits));
        let label = format!("seed {seed}: {m} x {k} x {n}, {bits} bits, spread {spread}, {radii:?}");
        for _ in 0..POINTS {
            let (p, q) = (point(&a, false, &mut rng), point(&b, false, &mut rng));
            let exact = product(&oriented(op_a, &p, a.cols()), &oriented(op_b, &q, b.cols()), n);
            let exact = if with_c { sum(&exact, &point(&c, false, &mut rng)) } else { exact };
            assert_inside(&found, &exact, &label);
        }
        if radii[0] == Radii::None && radii[1] == Radii::None && !with_c {
            assert_rounded_once(
                &found,
                &product(
                    &oriented(op_a, &point(&a, false, &mut rng), a.cols()),
                    &oriented(op_b, &point(&b, false, &mut rng), b.cols()),
                    n,
                ),
                &label,
            );
        }
    }
}

/// Radii of products of points: at most two units in the last place, and 0 for numbers that have as many bits.
fn assert_rounded_once(found: &BallMatrix, exact: &crate::common::rational::Rows, label: &str) {
    let bits = found.midpoint().precision_bits();
    for (row, entries) in exact.iter().enumerate() {
        for (col, value) in entries.iter().enumerate() {
            let radius = found.radius().float(row, col);
            if Float::with_val(bits, value) == *value {
                assert_eq!(radius, 0, "{label}: row {row}, column {col}");
                continue;
            }
            let unit = Float::with_val(64, value).abs() >> bits;
            assert!(
                radius <= unit * 5u32,
                "{label}: row {row}, column {col}: {radius} beside {}",
                found.midpoint().float(row, col)
            );
        }
    }
}

#[test]
fn symmetric_products_hold_those_of_all_points() {
    let ctx = context();
    for seed in 0..operands(20, 500) {
        let mut rng = Rng::new(300 + seed);
        let (rows, cols) = (rng.pick(&[0usize, 1, 4, 9]), rng.pick(&[0usize, 1, 3, 8]));
        let bits = rng.pick(&[53u32, 128, 200]);
        let op = rng.pick(&[Op::NoTranspose, Op::Transpose]);
        let order = if op == Op::Transpose { rows } else { cols };
        let radii = pick_radii(&mut rng);
        let p = balls(matrix(&mut rng, (rows, cols), bits, 3), radii, false, &mut rng);
        let own = matrix(&mut rng, (order, order), bits, 3);
        let own = Matrix::from_fn(order, order, bits, |row, col| own.float(row.max(col), row.min(col))).unwrap();
        let c = balls(own, radii, true, &mut rng);
        let with_c = rng.coin();
        let found = ball::syrk(&ctx, (&p, op), with_c.then_some(&c), bits).unwrap();
        for (row, col) in (0..order).flat_map(|row| (0..row).map(move |col| (row, col))) {
            assert_eq!(found.midpoint().float(row, col), found.midpoint().float(col, row));
            assert_eq!(found.radius().float(row, col), found.radius().float(col, row));
        }
        for _ in 0..POINTS {
            let own = point(&p, false, &mut rng);
            let flipped = transposed(&own, cols);
            let (left, right) = if op == Op::Transpose { (&own, &flipped) } else { (&flipped, &own) };
            let exact = product(left, right, order);
            let exact = if with_c { sum(&exact, &point(&c, true, &mut rng)) } else { exact };
            assert_inside(&found, &exact, &format!("seed {seed}: {rows} x {cols}, {op:?}, {radii:?}"));
        }
    }
}

/// Of the balls `1 +- r` and `2 +- s` the product is `2 +- (2 r + s + r s)`, no less, and hardly more.
#[test]
fn radii_are_those_of_the_worst_corners() {
    let ctx = context();
    let one = |midpoint: f64, radius: f64| {
        let cell = |value: f64| Matrix::from_f64s(1, 1, 64, &[value]).unwrap();
        BallMatrix::new(cell(midpoint), &cell(radius)).unwrap()
    };
    for (r, s) in [(0.0, 0.5), (0.25, 0.0), (0.25, 0.5), (1e-300, 1e-200), (1e300, 1.0)] {
        let (a, b) = (one(1.0, r), one(-2.0, s));
        let found = ball::gemm(&ctx, (&a, Op::NoTranspose), (&b, Op::NoTranspose), None, 64).unwrap();
        let rational = |value: f64| Rational::from_f64(value).unwrap();
        let least = rational(r) * 2u32 + rational(s) + rational(r) * rational(s);
        let radius = found.radius().float(0, 0).to_rational().unwrap();
        assert!(radius >= least && radius <= least * Rational::from((1025, 1024)), "{r}, {s}");
        let scaled = a.scaled(&Ball { midpoint: Float::with_val(64, -2), radius: Float::with_val(64, s) }).unwrap();
        let by_scalar = scaled.radius().float(0, 0).to_rational().unwrap();
        let least = rational(r) * 2u32 + rational(s) + rational(r) * rational(s);
        assert!(by_scalar >= least && by_scalar <= least * Rational::from((1025, 1024)), "{r}, {s}");
    }
}

/// Terms that cancel but for their last bits: entries keep all bits of the result.
#[test]
fn entries_that_cancel_are_as_sharp_as_others() {
    let ctx = context();
    for lost in [10i32, 40, 100, 290] {
        let bits = 300u32;
        let near = (Float::with_val(bits, 1) >> lost) + Float::with_val(bits, 3) / 2u32;
        let third = Float::with_val(bits, 1) / 3u32;
        let a = BallMatrix::exact(Matrix::from_floats(1, 2, bits, &[near, -Float::with_val(bits, 1.5)]).unwrap());
        let b = BallMatrix::exact(Matrix::from_floats(2, 1, bits, &[third.clone(), third.clone()]).unwrap());
        let found =
            ball::gemm(&ctx, (&a.unwrap(), Op::NoTranspose), (&b.unwrap(), Op::NoTranspose), None, 100).unwrap();
        let exact = third.to_rational().unwrap() >> lost;
        let radius = found.radius().float(0, 0).to_rational().unwrap();
        assert!(found.contains(0, 0, &exact) && radius <= exact >> 97u32, "{lost}");
    }
}

#[test]
fn what_is_no_ball_is_refused() {
    let cell = |value: f64| Matrix::from_f64s(1, 1, 64, &[value]).unwrap();
    let error = BallMatrix::new(cell(1.0), &cell(-1.0)).unwrap_err();
    assert_eq!(error.to_string(), "the radius at row 0, column 0 is negative: radii are at least 0");
    let two = Matrix::from_f64s(2, 1, 64, &[1.0, 2.0]).unwrap();
    assert!(matches!(BallMatrix::new(two.clone(), &cell(1.0)), Err(Error::ShapeMismatch { .. })));
    let (two, one) = (BallMatrix::exact(two).unwrap(), BallMatrix::exact(cell(1.0)).unwrap());
    let refused = ball::gemm(&context(), (&two, Op::Transpose), (&one, Op::NoTranspose), None, 64);
    assert!(matches!(refused, Err(Error::ShapeMismatch { .. })));
    let infinite = Ball { midpoint: Float::with_val(64, f64::INFINITY), radius: Float::new(64) };
    assert!(matches!(one.scaled(&infinite), Err(Error::InvalidArgument(_))));
}
