//! The verifier of Cholesky factors against exact fractions, at the bound, and on planted errors.

use super::*;
use crate::math::float::FloatRef;
use crate::matrix::Matrix;
use crate::ops::cholesky;
use crate::testing::effort;
use rug::rand::RandState;
use rug::{Float, Integer, Rational};

fn random(seed: u32) -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    rng
}

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

fn fraction(value: FloatRef<'_>) -> Rational {
    let (integer, exponent) = value.to_integer_exponent();
    if integer == 0 { Rational::new() } else { Rational::from(integer) << exponent as i32 }
}

/// Whether all residuals are within the bound, by fractions.
fn oracle(a: &Matrix, l: &Matrix, precision_bits: u32) -> bool {
    (0..a.rows()).all(|i| {
        (0..=i).all(|j| {
            let product = (0..=j).fold(Rational::new(), |sum, k| sum + fraction(l.get(i, k)) * fraction(l.get(j, k)));
            let bound = (fraction(a.get(i, i)) * fraction(a.get(j, j))) << (4 - 2 * precision_bits as i32);
            (fraction(a.get(i, j)) - product).square() <= bound
        })
    })
}

/// A Gram matrix of random integers, its rows and columns scaled by powers of two of up to `spread` bits.
fn gram(n: usize, precision_bits: u32, spread: u32, rng: &mut RandState<'_>) -> Matrix {
    let entries: Vec<i64> = (0..n * n).map(|_| i64::from(rng.below(2001)) - 1000).collect();
    let scales: Vec<i64> = (0..n).map(|_| i64::from(rng.below(2 * spread + 1)) - i64::from(spread)).collect();
    let mut a = Matrix::zeros(n, n, precision_bits).unwrap();
    for i in 0..n {
        for j in 0..=i {
            let sum: i64 = (0..n).map(|k| entries[k + n * i] * entries[k + n * j]).sum();
            let sum = sum + if i == j { 1 } else { 0 };
            a.set_integer_exponent(i, j, &Integer::from(sum), scales[i] + scales[j]).unwrap();
        }
    }
    a
}

fn verify(a: &Matrix, l: &Matrix, precision_bits: u32, tile_rows: usize, planar: Option<bool>) -> Result<Verification> {
    let check = FactorCheck {
        a: LowerTriangle::Memory(a.view()),
        l: LowerTriangle::Memory(l.view()),
        uplo: Uplo::Lower,
        precision_bits,
        compared: None,
    };
    let ctx = context(2);
    let mut rows = check.look_at_rows(&ctx)?;
    for (i, row) in rows.iter_mut().enumerate() {
        row.planar = planar.unwrap_or(i % 3 != 1);
    }
    let integer_bits = rows.iter().map(Row::integer_bits).max().unwrap_or(0);
    Verifier { check, rows, cut: Cut { tile_rows, depth: 1 + tile_rows / 2 }, integer_bits }.decide(&ctx, None)
}

fn message(result: Result<Verification>) -> String {
    match result {
        Err(Error::Verification(message)) => message.to_string(),
        other => panic!("expected a failed verification, not {other:?}"),
    }
}

#[test]
fn tiles_and_single_sums_agree() {
    for (seed, n) in [0, 1, 2, 5, 6, 7, 13].into_iter().enumerate() {
        for spread in [0, 400] {
            let a = gram(n, 130, spread, &mut random(seed as u32));
            let l = cholesky(&context(1), Symmetric::lower(&a), 100).unwrap().into_factor();
            let whole = verify_cholesky(&context(1), Symmetric::lower(&a), &l, 100, &VerifyOptions::default()).unwrap();
            assert_eq!(whole.entry_count, n * (n + 1) / 2);
            for (turn, tile_rows) in [1, 3, 6, 100].into_iter().enumerate() {
                for (at, planar) in [Some(true), Some(false), None].into_iter().enumerate() {
                    // With little effort one way for each size of tiles, another one with each matrix.
                    if effort() == 1 && at != (turn + seed + usize::from(spread > 0)) % 3 {
                        continue;
                    }
                    let found = verify(&a, &l, 100, tile_rows, planar).unwrap();
                    assert_eq!((found.worst_entry, found.worst_place), (whole.worst_entry, whole.worst_place));
                    assert_eq!(found.prime.is_some(), n > 0);
                }
            }
        }
    }
}

/// Near the end of the preferred kernel's moduli too, where there is a kernel with more of them.
#[test]
fn rows_that_spread_a_little_go_by_residues() {
    let ctx = context(1);
    let own = i64::from(ctx.kernel().maximum_modulus_bits() / 2);
    let furthest = i64::from(ctx.maximum_modulus_bits() / 2);
    for bits in [own - 300, own - 200, own - 10, own + 1] {
        let l = Matrix::zeros(3, 3, bits as u32).unwrap();
        let (a, l) = (LowerTriangle::Memory(l.view()), LowerTriangle::Memory(l.view()));
        let check = FactorCheck { a, l, uplo: Uplo::Lower, precision_bits: 2, compared: None };
        assert!(check.planar_bits(&ctx) >= (bits + i64::from(EXPECTED_SPREAD_BITS)).min(furthest - 10), "{bits} bits");
    }
}

#[test]
fn decisions_are_those_of_fractions() {
    let (mut passed, mut failed) = (0, 0);
    let seeds = 120 * effort() as u32;
    for seed in 0..seeds {
        let mut rng = random(1000 + seed);
        let (n, bits) = (1 + rng.below(5) as usize, 20 + rng.below(70));
        let a = gram(n, 3 * bits, 30, &mut rng);
        let mut l = cholesky(&context(1), Symmetric::lower(&a), bits).unwrap().into_factor();
        // Some entries are moved by about the bound.
        for _ in 0..rng.below(3) {
            let i = rng.below(n as u32) as usize;
            let j = rng.below(i as u32 + 1) as usize;
            let step = Float::with_val(bits, a.float(i, i).sqrt()) >> (bits - 1);
            let step = step * (f64::from(rng.below(4000)) / 1000.0 - 2.0);
            let moved = Float::with_val(2 * bits, l.float(i, j)) + step;
            let mut wider = Matrix::zeros(n, n, 2 * bits).unwrap();
            for (row, col) in (0..n).flat_map(|row| (0..n).map(move |col| (row, col))) {
                wider.set_float(row, col, &l.float(row, col)).unwrap();
            }
            wider.set_float(i, j, &moved).unwrap();
            l = wider;
        }
        let wanted = oracle(&a, &l, bits);
        let found = verify_cholesky(&context(1), Symmetric::lower(&a), &l, bits, &VerifyOptions::default());
        assert_eq!(found.is_ok(), wanted, "seed {seed}: {found:?}");
        assert_eq!(verify(&a, &l, bits, 2, Some(false)).is_ok(), wanted, "seed {seed}");
        *(if wanted { &mut passed } else { &mut failed }) += 1;
    }
    assert!(passed > seeds / 6 && failed > seeds / 6, "{passed} passed, {failed} failed");
}

#[test]
fn the_bound_itself_passes_and_nothing_above() {
    // A = [[1, x], [x, 4]], L = [[1, 0], [t, 2]]: the bound at (1, 0) is 2 * 2^(2 - b), and its residual is x - t.
    let bits = 40;
    let bound = Float::with_val(64, 2) >> (bits - 2);
    for (tiny, sign, planar) in
        [(-3000, 1, true), (-3000, -1, false), (-200, 1, false), (-200, -1, true), (-(1 << 20), -1, false)]
    {
        for (offset, passes) in [(0, true), (-1, true), (1, false)] {
            // The residual is the bound plus a little: of far smaller size than any sum would keep.
            let mut a = Matrix::from_f64s(2, 2, 100, &[1.0, 0.0, 0.0, 4.0]).unwrap();
            let mut l = Matrix::from_f64s(2, 2, bits, &[1.0, 0.0, 0.0, 2.0]).unwrap();
            a.set_float(1, 0, &Float::with_val(100, &bound * sign)).unwrap();
            l.set_integer_exponent(1, 0, &Integer::from(-sign * offset), tiny).unwrap();
            let found = verify(&a, &l, bits, 9, Some(planar));
            assert_eq!(found.is_ok(), passes, "2^{tiny}, {sign}, {planar}, {found:?}");
            if let Ok(found) = found {
                assert!((found.worst_entry - 1.0).abs() < 1e-12 && found.worst_place == Some((1, 0)));
            } else {
                assert!(message(found).contains("A - L L^T at row 1, column 0 (from 0) is 1.0000e0 times its bound"));
            }
        }
    }
}

#[test]
fn a_wrong_entry_is_named() {
    let ctx = context(1);
    let a = gram(9, 160, 50, &mut random(7));
    let l = cholesky(&ctx, Symmetric::lower(&a), 100).unwrap().into_factor();
    for (i, j) in [(0, 0), (8, 0), (8, 8), (5, 2)] {
        let mut wrong = l.clone();
        let step = Float::with_val(100, a.float(i, i).sqrt()) >> 90;
        wrong.set_float(i, j, &(l.float(i, j) + step)).unwrap();
        let text = message(verify_cholesky(&ctx, Symmetric::lower(&a), &wrong, 100, &VerifyOptions::default()));
        assert!(text.contains(&format!("row {i}")), "{text}");
        // The same factor transposed, in the other triangle; row and column change places in the message.
        let (upper, wrong) = (a.transposed().to_matrix().unwrap(), wrong.transposed().to_matrix().unwrap());
        let options = VerifyOptions { uplo: Uplo::Upper, ..VerifyOptions::default() };
        let text = message(verify_cholesky(&ctx, Symmetric::upper(&upper), &wrong, 100, &options));
        assert!(text.contains("A - U^T U") && text.contains(&format!("column {i}")), "{text}");
        let right = l.transposed().to_matrix().unwrap();
        verify_cholesky(&ctx, Symmetric::upper(&upper), &right, 100, &options).unwrap();
    }
}

#[test]
fn what_cannot_be_a_factor_is_refused() {
    let ctx = context(1);
    let a = Matrix::from_f64s(2, 2, 60, &[4.0, 2.0, 77.0, 10.0]).unwrap(); // the unread triangle may hold anything
    let l = Matrix::from_f64s(2, 2, 60, &[2.0, 1.0, 0.0, 3.0]).unwrap();
    let run = |a: &Matrix, l: &Matrix| verify_cholesky(&ctx, Symmetric::lower(a), l, 60, &VerifyOptions::default());
    assert_eq!(run(&a, &l).unwrap().worst_entry, 0.0);
    let with = |matrix: &Matrix, row: usize, col: usize, value: f64| {
        let mut changed = matrix.clone();
        changed.set_f64(row, col, value).unwrap();
        changed
    };
    let huge = |matrix: &Matrix| {
        let mut changed = matrix.clone();
        changed.set_integer_exponent(1, 0, &Integer::from(1), 1 << 29).unwrap();
        changed
    };
    let cases = [
        (a.clone(), with(&l, 0, 1, 1e-300), "not lower triangular: the entry at row 0, column 1"),
        (a.clone(), with(&l, 1, 1, 0.0), "diagonal entry 1 (from 0) of the factor"),
        (a.clone(), with(&l, 0, 0, -2.0), "diagonal entry 0 (from 0) of the factor"),
        (with(&a, 1, 1, 0.0), l.clone(), "diagonal entry 1 (from 0) of the matrix"),
        (with(&a, 0, 0, -4.0), l.clone(), "diagonal entry 0 (from 0) of the matrix"),
        (a.clone(), huge(&l), "must be diagonal entry 1 (from 0) of the matrix, but is over 2^1073741"),
        (huge(&a), l.clone(), "row 1, column 0 (from 0) of the matrix exceeds"),
        (with(&a, 1, 0, 1e-300), l.clone(), "row 1, column 0"),
    ];
    for (a, l, words) in cases {
        let text = message(run(&a, &l));
        assert!(text.starts_with("verify cholesky: ") && text.contains(words), "{text}");
    }
    let wide = Matrix::zeros(2, 3, 60).unwrap();
    assert!(matches!(run(&a, &wide), Err(Error::ShapeMismatch { right_cols: 3, .. })));
    assert!(matches!(run(&wide, &l), Err(Error::NotSquare { cols: 3, .. })));
    let few = verify_cholesky(&ctx, Symmetric::lower(&a), &l, 1, &VerifyOptions::default());
    assert!(matches!(few, Err(Error::Precision { precision_bits: 1, .. })));
}

#[test]
fn sums_are_those_of_integers() {
    let (mut rng, ctx) = (RandState::new(), Context::new().unwrap());
    for (case, bits) in [1u32, 20, 63, 64, 65, 127, 128, 300, 1000].into_iter().enumerate() {
        let mut sums = IntegerSums::new(2, 3, i64::from(bits) + 5).unwrap();
        let mut wanted = vec![Integer::new(); 6];
        for round in 0..30 {
            let mut integers = Matrix::zeros(2, 3, bits.max(2) + 70 * (round % 3)).unwrap();
            for (at, wanted) in wanted.iter_mut().enumerate() {
                let size = Integer::from(Integer::random_bits(1 + (round * 7 + case as u32) % bits, &mut rng));
                let value = if rng.bits(1) == 1 { -size } else { size };
                integers.set_integer_exponent(at % 2, at / 2, &value, 0).unwrap();
                *wanted += value;
            }
            sums.add(&ctx, &integers).unwrap();
        }
        for (at, wanted) in wanted.iter().enumerate() {
            assert_eq!(&sums.get(at % 2, at / 2), wanted, "{bits} bits");
        }
    }
}
