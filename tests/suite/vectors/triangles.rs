//! `trmv` and `trsv`: all triangles, transposes and diagonals, against exact sums.

use super::{Lying, context};
use crate::common::oracle::{Exact, assert_beside_terms};
use crate::common::{Kind, Rng, matrix, seeds};
use rug::Float;
use sunzi::blas::{TriangleVectorOptions, trmv_with, trsv, trsv_into, trsv_with};
use sunzi::{Diag, Error, Matrix, Op, Uplo};

fn choices() -> Vec<TriangleVectorOptions<'static>> {
    let mut all = Vec::new();
    for uplo in [Uplo::Lower, Uplo::Upper] {
        for op in [Op::NoTranspose, Op::Transpose] {
            for diag in [Diag::NonUnit, Diag::Unit] {
                all.push(TriangleVectorOptions::new().uplo(uplo).op(op).diag(diag));
            }
        }
    }
    all
}

/// A matrix without zeros on its diagonal, whose other triangle holds numbers that would show.
fn triangle(kind: Kind, order: usize, bits: u32, options: &TriangleVectorOptions<'_>, seed: u64) -> Matrix {
    let mut t = matrix(kind, order, order, bits, seed);
    let mut rng = Rng::new(seed + 77);
    for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))) {
        let counts = if options.uplo == Uplo::Lower { i > j } else { i < j };
        if i == j && t.get(i, i).head.is_zero() {
            t.set_integer_exponent(i, i, &rng.integer(bits), 0).unwrap();
        }
        if (i != j && !counts) || (i == j && options.diag == Diag::Unit) {
            t.set_integer_exponent(i, j, &rng.integer(bits), 500_000).unwrap();
        }
    }
    t
}

/// Entry `(row, col)` of `op(T)`.
fn entry_of(t: &Matrix, options: &TriangleVectorOptions<'_>, row: usize, col: usize) -> Exact {
    let (i, j) = if options.op == Op::NoTranspose { (row, col) } else { (col, row) };
    let counts = if options.uplo == Uplo::Lower { i >= j } else { i <= j };
    match () {
        _ if !counts => Exact::zero(),
        _ if i == j && options.diag == Diag::Unit => Exact { integer: 1.into(), exponent: 0 },
        _ => Exact::entry(&t.view(), i, j),
    }
}

#[test]
fn products_and_solutions_are_right_row_by_row() {
    let (ctx, alpha) = (context(2), Float::with_val(80, 11) / 7u32);
    for seed in seeds(14) {
        for (index, choice) in choices().into_iter().enumerate() {
            let mut rng = Rng::new(seed * 50 + index as u64);
            let kind = rng.pick(&[Kind::Unit, Kind::Graded, Kind::Extreme, Kind::ZeroColumns, Kind::Doubles]);
            let (order, bits) = (rng.pick(&[0, 1, 2, 7, 32, 33, 65]), rng.pick(&[2, 53, 64, 256, 300, 1024]));
            let options = choice.alpha(rng.coin().then_some(&alpha));
            let t = triangle(kind, order, if rng.coin() { bits } else { 120 }, &options, seed);
            let b = Lying::new(kind, order, bits, seed + 3);
            let label = format!("seed {seed}, {kind:?}, order {order}, {bits} bits, {options:?}");
            let factor = options.alpha.map_or(Exact { integer: 1.into(), exponent: 0 }, Exact::float);
            let y = trmv_with(&ctx, &t, b.view(), bits, &options).unwrap().result;
            let x = trsv_with(&ctx, &t, b.view(), bits, &options).unwrap().result;
            for row in 0..order {
                let entries = (0..order).map(|col| entry_of(&t, &options, row, col)).collect::<Vec<_>>();
                let terms = entries.iter().enumerate().map(|(col, t)| t.times(&b.at(col)).times(&factor));
                assert_beside_terms(&Exact::entry(&y.view(), row, 0), &terms.collect::<Vec<_>>(), bits, &label);
                let terms = entries.iter().enumerate().map(|(col, t)| t.times(&Exact::entry(&x.view(), col, 0)));
                let wanted = b.at(row).times(&factor);
                assert_beside_terms(&wanted, &terms.collect::<Vec<_>>(), bits, &format!("{label}: residual"));
            }
        }
    }
}

#[test]
fn a_small_second_unknown_is_not_lost() {
    let ctx = context(1);
    let tiny = Float::with_val(53, 1) >> 60u32;
    let t =
        Matrix::from_floats(2, 2, 53, &[Float::with_val(53, 1), tiny.clone(), Float::new(53), Float::with_val(53, 1)]);
    let b = Matrix::from_f64s(2, 1, 53, &[1.0, 0.0]).unwrap();
    let x = trsv(&ctx, &t.unwrap(), &b, 53).unwrap();
    assert_eq!((x.float(0, 0), x.float(1, 0)), (Float::with_val(53, 1), -tiny));
}

#[test]
fn zeros_on_the_diagonal_and_large_unknowns_are_refused() {
    let ctx = context(1);
    let mut t = matrix(Kind::Unit, 5, 5, 64, 1);
    let b = matrix(Kind::Unit, 5, 1, 64, 2);
    t.set_f64(3, 3, 0.0).unwrap();
    assert!(matches!(trsv(&ctx, &t, &b, 64), Err(Error::Singular { index: 3 })));
    let unit = TriangleVectorOptions::new().diag(Diag::Unit);
    assert!(trsv_with(&ctx, &t, &b, 64, &unit).is_ok());
    assert!(trmv_with(&ctx, &t, &b, 64, &TriangleVectorOptions::new()).is_ok());
    let (mut t, mut b) = (Matrix::identity(2, 64).unwrap(), Matrix::zeros(2, 1, 64).unwrap());
    t.set_integer_exponent(1, 1, &1.into(), -600_000_000).unwrap();
    b.set_integer_exponent(1, 0, &1.into(), 600_000_000).unwrap();
    assert!(matches!(trsv(&ctx, &t, &b, 64), Err(Error::ExponentRange { row: 1, .. })));
    let flat = Matrix::zeros(2, 3, 64).unwrap();
    assert!(matches!(trsv(&ctx, &flat, &b, 64), Err(Error::ShapeMismatch { operation: "trsv", .. })));
}

#[test]
fn solutions_go_into_rows_and_blocks() {
    let ctx = context(1);
    let (t, b) = (matrix(Kind::Unit, 6, 6, 128, 4), matrix(Kind::Unit, 1, 6, 128, 5));
    let want = trsv(&ctx, &t, &b, 128).unwrap();
    let mut large = Matrix::zeros(4, 9, 128).unwrap();
    let options = TriangleVectorOptions::new();
    let report = trsv_into(&ctx, &t, &b, 128, &options, large.view_mut().block(2..3, 1..7).unwrap()).unwrap();
    assert!((0..6).all(|i| large.get(2, i + 1) == want.get(i, 0)));
    assert!(large.get(2, 7).head.is_zero() && large.get(1, 3).head.is_zero());
    let limited = ctx.with_memory_bytes(Some(report.planned_bytes));
    assert!(trsv(&limited, &t, &b, 128).unwrap() == want);
    let refused = trsv(&ctx.with_memory_bytes(Some(report.planned_bytes - 1)), &t, &b, 128);
    assert!(matches!(refused, Err(Error::MemoryLimit { minimum_bytes, .. }) if minimum_bytes == report.planned_bytes));
}
