//! `axpy` and `ger`: every entry is the exact number, rounded once.

use super::{Lying, context};
use crate::common::oracle::Exact;
use crate::common::{KINDS, Rng, matrix, seeds};
use rug::Float;
use sunzi::Matrix;
use sunzi::blas::{GerOptions, axpy, axpy_into, ger, ger_into, ger_with};

/// Rounds by MPFR's exact sum, whatever the distance of the exponents.
fn rounded(exact: &Exact, bits: u32) -> Float {
    exact.round(bits)
}

#[test]
fn sums_of_vectors_are_rounded_once() {
    let ctx = context(2);
    for seed in seeds(250) {
        let mut rng = Rng::new(seed);
        let (kind, bits) = (KINDS[seed as usize % KINDS.len()], rng.pick(&[2, 53, 64, 65, 256, 512, 1024]));
        let len = rng.pick(&[0, 1, 2, 9, 33]);
        let alpha = match rng.below(4) {
            0 => Float::with_val(2, 1),
            1 => Float::with_val(2, -1),
            2 => Float::new(53),
            _ => Float::with_val(bits, &rng.integer(bits)) >> rng.below(300) as u32,
        };
        let of_y = rng.pick(&[bits, 100]);
        let (x, y) = (Lying::new(kind, len, bits, seed), Lying::new(kind, len, of_y, seed + 1));
        let sum = axpy(&ctx, &alpha, x.view(), y.view(), bits).unwrap();
        let mut row = Matrix::zeros(1, len, bits).unwrap();
        axpy_into(&ctx, &alpha, x.view(), y.view(), bits, &mut row).unwrap();
        for k in 0..len {
            let want = rounded(&x.at(k).times(&Exact::float(&alpha)).plus(y.at(k)), bits);
            assert_eq!(sum.float(k, 0), want, "seed {seed}, {kind:?}, entry {k}, {bits} bits");
            assert_eq!(row.float(0, k), want);
        }
    }
}

#[test]
fn updates_of_rank_one_are_rounded_once() {
    let ctx = context(3);
    for seed in seeds(70) {
        let mut rng = Rng::new(seed);
        let (kind, bits) = (KINDS[seed as usize % KINDS.len()], rng.pick(&[2, 53, 64, 200, 512]));
        let (rows, cols) = (rng.pick(&[0, 1, 3, 17, 60]), rng.pick(&[0, 1, 2, 40]));
        let (x, y) = (Lying::new(kind, rows, bits, seed), Lying::new(kind, cols, 90, seed + 1));
        let a = matrix(kind, rows, cols, bits, seed + 2);
        let alpha = Float::with_val(70, &rng.integer(70)) >> 70u32;
        let plain = ger(&ctx, x.view(), y.view(), bits).unwrap();
        let options = GerOptions::new().alpha(&alpha).accumulate(a.view());
        let sum = ger_with(&ctx, x.view(), y.view(), bits, &options).unwrap().result;
        let mut large = Matrix::zeros(rows + 2, cols + 1, bits).unwrap();
        let block = large.view_mut().block(1..rows + 1, 1..cols + 1).unwrap();
        ger_into(&ctx, x.view(), y.view(), bits, &options, block).unwrap();
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            let product = x.at(i).times(&y.at(j));
            let label = format!("seed {seed}, {kind:?}, ({i}, {j}), {bits} bits");
            assert_eq!(plain.float(i, j), rounded(&product, bits), "{label}");
            let exact = product.times(&Exact::float(&alpha)).plus(Exact::entry(&a.view(), i, j));
            assert_eq!(sum.float(i, j), rounded(&exact, bits), "{label}");
            assert_eq!(large.get(i + 1, j + 1), sum.get(i, j), "{label}");
        }
        assert!((0..cols + 1).all(|j| large.get(0, j).head.is_zero() && large.get(rows + 1, j).head.is_zero()));
    }
}
