//! `dot`, `nrm2`, `gemv`, `symv`.

use super::{Lying, context, entry};
use crate::common::oracle::{Exact, assert_beside_terms};
use crate::common::{KINDS, Kind, Rng, matrix, seeds};
use rug::Float;
use std::cmp::Ordering;
use sunzi::blas::{GemvOptions, SymvOptions};
use sunzi::blas::{dot, gemv, gemv_into, gemv_with, nrm2, symv_with};
use sunzi::{Matrix, Op, Symmetric, SymmetricMatrix, Uplo};

const LENGTHS: [usize; 8] = [0, 1, 2, 3, 9, 32, 33, 70];
const PRECISIONS: [u32; 10] = [2, 53, 64, 65, 128, 256, 300, 512, 1024, 1100];

#[test]
fn sums_of_products_are_right_beside_their_terms() {
    let ctx = context(1);
    for seed in seeds(300) {
        let mut rng = Rng::new(seed);
        let (kind, len) = (KINDS[seed as usize % KINDS.len()], rng.pick(&LENGTHS));
        let bits = rng.pick(&PRECISIONS);
        let same = rng.coin(); // mostly all of one precision, as callers have it
        let (of_x, of_y) = if same { (bits, bits) } else { (rng.pick(&PRECISIONS), rng.pick(&PRECISIONS)) };
        let (x, y) = (Lying::new(kind, len, of_x, seed), Lying::new(kind, len, of_y, seed + 9000));
        let label = format!("seed {seed}, {kind:?}, {len} terms, {of_x} and {of_y} to {bits} bits");
        let terms = (0..len).map(|k| x.at(k).times(&y.at(k))).collect::<Vec<_>>();
        let sum = dot(&ctx, x.view(), y.view(), bits).unwrap();
        assert_eq!(sum.prec(), bits);
        assert_beside_terms(&Exact::float(&sum), &terms, bits, &label);
        // |norm - sqrt(s)| <= 2^(1-b) sqrt(s), by the squares of both ends.
        let norm = nrm2(&ctx, x.view(), bits).unwrap();
        let square = (0..len).fold(Exact::zero(), |sum, k| sum.plus(x.at(k).times(&x.at(k))));
        let norm = Exact::float(&norm);
        let unit = Exact { integer: 1.into(), exponent: 1 - i64::from(bits) };
        let one = Exact { integer: 1.into(), exponent: 0 };
        let end = |sign: Exact| one.clone().plus(sign);
        let scaled = |end: Exact| square.times(&end).times(&end);
        let got = norm.times(&norm);
        assert_ne!(got.compare(&scaled(end(unit.clone()))), Ordering::Greater, "{label}: norm too large");
        assert_ne!(got.compare(&scaled(end(unit.negated()))), Ordering::Less, "{label}: norm too small");
    }
}

#[test]
fn cancelling_sums_keep_what_is_left() {
    let ctx = context(1);
    for seed in seeds(60) {
        let mut rng = Rng::new(seed);
        let (bits, half) = (rng.pick(&[64, 256, 512, 1024]), 1 + rng.below(20));
        let (x, mut y) = (matrix(Kind::Unit, 2 * half, 1, bits, seed), matrix(Kind::Unit, 2 * half, 1, bits, seed + 1));
        let mut twice = x.clone();
        for k in 0..half {
            twice.set_float(half + k, 0, &-x.float(k, 0)).unwrap();
            let change = Float::with_val(bits, y.float(k, 0) >> rng.pick(&[bits - 1, bits / 2, 5]));
            let near = if k == 0 { y.float(k, 0) + change } else { y.float(k, 0) };
            y.set_float(half + k, 0, &near).unwrap();
        }
        let terms = (0..2 * half).map(|k| entry(&twice.view(), k).times(&entry(&y.view(), k))).collect::<Vec<_>>();
        let sum = dot(&ctx, &twice, &y, bits).unwrap();
        assert_beside_terms(&Exact::float(&sum), &terms, bits, &format!("seed {seed}, {bits} bits"));
        if half > 1 {
            let exact =
                dot(&ctx, twice.view().block(1..half, 0..1).unwrap(), y.view().block(1..half, 0..1).unwrap(), bits);
            let minus = dot(
                &ctx,
                twice.view().block(half + 1..2 * half, 0..1).unwrap(),
                y.view().block(half + 1..2 * half, 0..1).unwrap(),
                bits,
            );
            assert_eq!(exact.unwrap(), -minus.unwrap(), "opposite terms give opposite sums");
        }
    }
}

/// The terms of entry `row` of `alpha op(A) x + beta y`.
fn terms(a: &Matrix, op: Op, row: usize, x: &Lying, scalars: Option<(&Float, &Float, &Lying)>) -> Vec<Exact> {
    let of = |k: usize| if op == Op::NoTranspose { (row, k) } else { (k, row) };
    let product = |k: usize| Exact::entry(&a.view(), of(k).0, of(k).1).times(&x.at(k));
    let terms = (0..x.len).map(product);
    match scalars {
        None => terms.collect(),
        Some((alpha, beta, y)) => {
            let added = y.at(row).times(&Exact::float(beta));
            terms.map(|term| term.times(&Exact::float(alpha))).chain([added]).collect()
        }
    }
}

#[test]
fn products_of_matrices_and_vectors_are_right_beside_their_terms() {
    let (ctx, alpha, beta) = (context(2), Float::with_val(90, -7) / 3u32, Float::with_val(40, 5));
    for seed in seeds(80) {
        let mut rng = Rng::new(seed);
        let (kind, bits) = (KINDS[seed as usize % KINDS.len()], rng.pick(&PRECISIONS));
        let (rows, cols, op) = (rng.pick(&LENGTHS), rng.pick(&LENGTHS), rng.pick(&[Op::NoTranspose, Op::Transpose]));
        let a = matrix(kind, rows, cols, if rng.coin() { bits } else { 100 }, seed);
        let (len, terms_of) = if op == Op::NoTranspose { (rows, cols) } else { (cols, rows) };
        let (x, y) = (Lying::new(kind, terms_of, bits, seed + 1), Lying::new(kind, len, 70, seed + 2));
        let label = format!("seed {seed}, {kind:?}, {rows} x {cols}, {op:?}, {bits} bits");
        let options = GemvOptions::new().op(op);
        let plain = gemv_with(&ctx, &a, x.view(), bits, &options).unwrap().result;
        let with = options.alpha(&alpha).beta(&beta).accumulate(y.view());
        let outcome = gemv_with(&ctx, &a, x.view(), bits, &with).unwrap();
        assert_eq!((outcome.report.rows, outcome.report.cols), (len, terms_of));
        // The same into a piece of a row of a larger matrix.
        let mut large = Matrix::zeros(3, len + 2, bits).unwrap();
        let piece = large.view_mut().block(1..2, 1..len + 1).unwrap();
        gemv_into(&ctx, &a, x.view(), bits, &with, piece).unwrap();
        for row in 0..len {
            let got = entry(&plain.view(), row);
            assert_beside_terms(&got, &terms(&a, op, row, &x, None), bits, &label);
            let got = Exact::entry(&outcome.result.view(), row, 0);
            assert_beside_terms(&got, &terms(&a, op, row, &x, Some((&alpha, &beta, &y))), bits, &label);
            assert_eq!(large.get(1, row + 1), outcome.result.get(row, 0), "{label}");
        }
        let zeros =
            (0..3).flat_map(|i| (0..len + 2).map(move |j| (i, j))).filter(|&(i, j)| i != 1 || j == 0 || j > len);
        assert!(zeros.into_iter().all(|(i, j)| large.get(i, j).head.is_zero()), "{label}: written outside");
        if rows > 0 && cols > 0 {
            let no_terms = gemv(&ctx, a.view().block(0..rows, 0..0).unwrap(), &Matrix::zeros(0, 1, 64).unwrap(), bits);
            assert!(no_terms.unwrap() == Matrix::zeros(rows, 1, bits).unwrap());
        }
    }
}

#[test]
fn threads_do_not_show_in_the_bits() {
    for (bits, kind) in [(256, Kind::Unit), (100, Kind::Graded), (1024, Kind::Extreme)] {
        let (a, x) = (matrix(kind, 300, 200, bits, 5), matrix(kind, 200, 1, bits, 6));
        let of = |threads: usize| gemv_with(&context(threads), &a, &x, bits, &GemvOptions::new()).unwrap();
        let (one, three) = (of(1), of(3));
        assert_eq!((one.report.threads, three.report.threads), (1, 3));
        assert!(one.result == three.result);
        let mut replaced = Matrix::zeros(300, 1, bits).unwrap();
        gemv_into(&context(2), &a, &x, bits, &GemvOptions::new(), &mut replaced).unwrap();
        assert!(replaced == one.result);
    }
}

#[test]
fn symmetric_products_read_what_counts() {
    let (ctx, alpha, beta) = (context(2), Float::with_val(30, -3), Float::with_val(40, 0.5));
    for (order, kind) in
        [0, 1, 2, 9, 33, 64].into_iter().flat_map(|order| [Kind::Unit, Kind::Graded].map(|k| (order, k)))
    {
        let (seed, bits) = (order as u64, 192);
        let plain = matrix(kind, order, order, bits, seed);
        let whole = SymmetricMatrix::from_triangle(plain.clone(), Uplo::Lower).unwrap();
        let (x, y) = (Lying::new(kind, order, bits, seed + 1), Lying::new(kind, order, bits, seed + 2));
        let options = SymvOptions::new().alpha(&alpha).beta(&beta).accumulate(y.view());
        let known = symv_with(&ctx, &whole, x.view(), bits, &options).unwrap().result;
        for row in 0..order {
            let got = Exact::entry(&known.view(), row, 0);
            let terms = terms(whole.as_matrix(), Op::NoTranspose, row, &x, Some((&alpha, &beta, &y)));
            assert_beside_terms(&got, &terms, bits, &format!("order {order}, {kind:?}"));
        }
        let upper = plain.transposed();
        let operands = [Symmetric::lower(&plain), Symmetric::upper(upper), Symmetric::from(whole.as_matrix())];
        for operand in operands {
            assert!(symv_with(&ctx, operand, x.view(), bits, &options).unwrap().result == known);
        }
        if order > 1 {
            let refused = sunzi::blas::symv(&ctx, &plain, x.view(), bits);
            assert!(matches!(refused, Err(sunzi::Error::NotSymmetric { .. })));
        }
    }
}
