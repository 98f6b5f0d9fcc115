//! Matrices that are not positive definite: the failing index, the pivot, and whether the hint tells the truth.

use super::ctx;
use crate::common::definite::{Known, check_factor, integer_gram, set_both};
use crate::common::{Rng, by_norms, seeds};
use rug::{Float, Integer};
use sunzi::{Error, Matrix, MoreBits, cholesky};

/// What a failed factorisation said.
struct Failure {
    index: usize,
    pivot: Float,
    more_bits: MoreBits,
}

fn failure(a: &Matrix, precision_bits: u32, label: &str) -> Failure {
    match cholesky(&ctx(), a, precision_bits) {
        Err(error @ Error::NotPositiveDefinite { .. }) => {
            let text = error.to_string();
            let Error::NotPositiveDefinite { index, pivot, more_bits, .. } = error else { unreachable!() };
            assert!(text.contains(&format!("index {index}:")) && !text.contains('\n'), "{label}: {text}");
            let says = |words: &str| text.contains(words);
            assert_eq!(says("more bits of precision might help"), more_bits.might_help(), "{label}: {text}");
            assert_eq!(says("more bits will not help"), more_bits == MoreBits::Never, "{label}: {text}");
            Failure { index, pivot, more_bits }
        }
        other => panic!("{label}: {other:?}"),
    }
}

/// Fails at `index` with a pivot of at most 0, and no precision helps.
fn assert_indefinite(a: &Matrix, index: usize, label: &str) {
    for bits in [53, 64, 200] {
        let found = failure(a, bits, label);
        assert_eq!(
            (found.index, found.more_bits),
            (index, MoreBits::Never),
            "{label}, {bits} bits, pivot {}",
            found.pivot
        );
        assert!(found.pivot <= 0, "{label}, {bits} bits: pivot {}", found.pivot);
    }
}

fn small(n: usize, entries: &[f64]) -> Matrix {
    Matrix::from_f64s(n, n, 80, entries).unwrap()
}

#[test]
fn the_first_bad_minor_is_named() {
    assert_indefinite(&small(3, &[0.0; 9]), 0, "zero");
    assert_indefinite(&small(2, &[-1.0, 0.0, 0.0, -1.0]), 0, "minus identity");
    assert_indefinite(&small(1, &[-1e-300]), 0, "a small negative number");
    assert_indefinite(&small(2, &[1.0, 4.0, 4.0, 1.0]), 1, "[[1, 4], [4, 1]]");
    assert_indefinite(&small(3, &[1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, -1.0]), 1, "two bad minors");
    assert_indefinite(&small(3, &[1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 1.0]), 2, "the last minor");
}

#[test]
fn a_negative_pivot_at_any_index() {
    // A = M D M^T with unit lower triangular M and D = I but for one entry of -1.
    for (seed, (n, index)) in [(1, 0), (5, 0), (5, 2), (5, 4), (33, 16), (64, 63), (65, 64)].into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let factor = (0..n * n).map(|at| match (at % n, at / n) {
            (i, j) if i == j => 1,
            (i, j) if i > j => rng.within(2),
            _ => 0,
        });
        let factor = factor.collect::<Vec<_>>();
        let entry = |i: usize, j: usize| -> i64 {
            let signed = |k: usize| if k == index { -factor[i + n * k] } else { factor[i + n * k] };
            (0..=i.min(j)).map(|k| signed(k) * factor[j + n * k]).sum()
        };
        let entries = (0..n * n).map(|at| Integer::from(entry(at % n, at / n))).collect::<Vec<_>>();
        let a = Matrix::from_integers(n, n, 80, &entries).unwrap();
        let found = failure(&a, 300, &format!("{n} rows, index {index}"));
        assert_eq!((found.index, found.more_bits), (index, MoreBits::Never), "{n} rows");
        assert_eq!(found.pivot, -1, "{n} rows, index {index}");
    }
}

#[test]
fn a_zero_row_and_column() {
    // LAPACK's tests of xPOTRF zero the first, the last or a middle row and column of a good matrix.
    for n in [1, 2, 9, 50] {
        for index in [0, n / 2, n - 1] {
            let mut a = integer_gram(n + 2, n, 80, 11);
            for k in 0..n {
                set_both(&mut a, index, k, &Float::new(80));
            }
            assert_indefinite(&a, index, &format!("row {index} of {n} is zero"));
        }
    }
}

#[test]
fn off_diagonal_entries_beyond_all_reason() {
    let power = |exponent: i64| {
        let mut one = Matrix::zeros(1, 1, 80).unwrap();
        one.set_integer_exponent(0, 0, &Integer::from(1), exponent).unwrap();
        one
    };
    for exponent in [1, 60, 5000, 1 << 29] {
        for (i, j) in [(1, 0), (4, 0), (4, 3), (3, 1)] {
            let mut a = small(5, &[0.0; 25]);
            for k in 0..5 {
                a.set_f64(k, k, 1.0).unwrap();
            }
            for (row, col) in [(i, j), (j, i)] {
                a.set(row, col, power(exponent).get(0, 0));
            }
            assert_indefinite(&a, i, &format!("2^{exponent} at ({i}, {j})"));
            // A bad minor before it comes first.
            if i == 4 {
                set_both(&mut a, 2, 1, &Float::with_val(80, -3));
                assert_indefinite(&a, 2, &format!("2^{exponent} at ({i}, {j}) after a bad minor"));
            }
        }
    }
    // Random signs and sizes: the first two rows are indefinite already.
    for seed in seeds(20) {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(12);
        let mut a = Matrix::zeros(n, n, 80).unwrap();
        for i in 0..n {
            a.set_f64(i, i, 1.0 + rng.below(9) as f64).unwrap();
            for j in 0..i {
                let value = Float::with_val(80, 10 + rng.below(90)) << rng.below(3000) as u32;
                set_both(&mut a, i, j, &if rng.coin() { -value } else { value });
            }
        }
        assert_indefinite(&a, 1, &format!("seed {seed}"));
    }
}

#[test]
fn singular_gram_matrices_fail_at_their_rank_or_later() {
    let mut failed = 0;
    for seed in seeds(40) {
        let mut rng = Rng::new(300 + seed);
        let n = 2 + rng.below(20);
        let (rank, bits) = (1 + rng.below(n - 1), 40 + rng.below(200) as u32);
        let a = integer_gram(rank, n, 80, seed);
        let label = format!("seed {seed}: rank {rank} of {n}, {bits} bits");
        match cholesky(&ctx(), &a, bits) {
            Ok(result) => drop(check_factor(&a, result.factor(), bits, &label)),
            Err(Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, .. }) => {
                failed += 1;
                // A row of zeros is known to be one.
                if diagonal == 0 {
                    assert!(more_bits == MoreBits::Never && pivot == 0, "{label}: pivot {pivot}, {more_bits:?}");
                    continue;
                }
                assert!(index >= rank, "{label}: index {index}");
                // The true pivot is 0: rounding alone explains what was found.
                let small = Float::with_val(53, &diagonal >> (bits / 4));
                let may_help = matches!(more_bits, MoreBits::AtLeast(_));
                assert!(may_help && pivot <= 0 && pivot > -small, "{label}: pivot {pivot}, {more_bits:?}");
            }
            Err(error) => panic!("{label}: {error}"),
        }
    }
    assert!(failed > 0);
}

/// At a few bits the rounded factor says less of a pivot than the factorisation knows: what is told is never positive.
#[test]
fn a_pivot_that_is_told_is_not_positive() {
    let fives = Matrix::from_f64s(2, 2, 4, &[5.0, 5.0, 5.0, 5.0]).unwrap();
    let mut refusals = vec![cholesky(&ctx(), &fives, 4).unwrap_err()];
    for seed in seeds(60) {
        let mut rng = Rng::new(900 + seed);
        let n = 2 + rng.below(6);
        let a = integer_gram(1 + rng.below(n - 1), n, 12, seed);
        refusals.extend((2..12).filter_map(|bits| cholesky(&ctx(), &a, bits).err()));
    }
    assert!(refusals.len() > 60, "{}", refusals.len());
    for refusal in refusals {
        let Error::NotPositiveDefinite { pivot, diagonal, .. } = &refusal else { panic!("{refusal}") };
        assert!(*pivot <= 0 && *diagonal >= 0, "{refusal}");
    }
}

#[test]
fn following_the_hint_leads_to_a_factor() {
    for (kind, n) in [(Known::Hilbert, 60), (Known::Cauchy, 40), (Known::Pascal, 70)] {
        let enough = kind.condition_bits(n) + 20;
        let a = kind.matrix(n, 2 * enough);
        let (mut bits, mut steps) = (24, 0);
        let factor = loop {
            match by_norms::cholesky(&ctx(), &a, bits) {
                Ok(result) => break result.into_factor(),
                Err(Error::NotPositiveDefinite { more_bits: MoreBits::AtLeast(more), .. }) => bits += more,
                Err(error) => panic!("{kind:?}, {bits} bits: {error}"),
            }
            steps += 1;
            assert!(steps < 30 && bits < 2 * enough, "{kind:?}: {steps} steps, {bits} bits, {enough} are enough");
        };
        assert!(steps > 0, "{kind:?} must fail first");
        check_factor(&a, &factor, bits, &format!("{kind:?} at {bits} bits"));
    }
}

/// Numbers that were rounded to the precision of the factor make a matrix indefinite that is not: more bits do help.
#[test]
fn a_matrix_that_was_rounded_to_the_precision_is_not_called_hopeless() {
    let hilbert = |bits: u32| Known::Hilbert.matrix(30, bits);
    for bits in [40, 60, 90] {
        let found = failure(&hilbert(bits), bits, "Hilbert's matrix, rounded");
        assert!(matches!(found.more_bits, MoreBits::AtLeast(_)), "{bits} bits: {:?}", found.more_bits);
    }
    cholesky(&ctx(), &hilbert(300), 300).unwrap();
}
