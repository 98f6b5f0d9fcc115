//! Right results pass, wrong ones are named; the oracle is an exact product by big integers.

use super::*;
use crate::matrix::Matrix;
use rug::rand::RandState;
use rug::{Float, Integer};

const BITS: u32 = 150;

fn random(seed: u32) -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    rng
}

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

fn seeded() -> VerifyOptions {
    VerifyOptions { seed: Some(77), ..VerifyOptions::default() }
}

/// Entries with `bits` random bits; `exponent(row, col, draw)` places the top bit, `None` makes a zero.
fn matrix(
    (rows, cols): (usize, usize),
    rng: &mut RandState<'_>,
    exponent: impl Fn(usize, usize, i32) -> Option<i64>,
) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, BITS).unwrap();
    for col in 0..cols {
        for row in 0..rows {
            let draw = rng.bits(20) as i32;
            if let Some(top) = exponent(row, col, draw) {
                let integer = Integer::from(Integer::random_bits(BITS, rng)) + 1u32;
                let integer = if rng.bits(1) == 1 { -integer } else { integer };
                let low = top - i64::from(integer.significant_bits());
                matrix.set_integer_exponent(row, col, &integer, low).unwrap();
            }
        }
    }
    matrix
}

/// `left^T right`, each entry rounded once to `BITS` bits.
fn product(left: MatrixView<'_>, right: MatrixView<'_>) -> Matrix {
    let mut result = Matrix::zeros(left.cols(), right.cols(), BITS).unwrap();
    for col in 0..right.cols() {
        for row in 0..left.cols() {
            let mut sum = exact::Accumulator::default();
            for k in 0..left.rows() {
                let (x, ex) = left.get(k, row).to_integer_exponent();
                let (y, ey) = right.get(k, col).to_integer_exponent();
                let product = x * y;
                sum.add(product.is_negative(), product.as_limbs(), ex + ey);
            }
            let exact::Dyadic { integer, exponent } = sum.take();
            result.set_integer_exponent(row, col, &integer, exponent).unwrap();
        }
    }
    result
}

fn message(result: Result<Verification>) -> String {
    match result {
        Err(Error::Verification(message)) => message.to_string(),
        other => panic!("expected a failed verification, not {other:?}"),
    }
}

/// Adds `factor * 2^(1-b) ||p_i|| ||p_j||` to an entry, in units from the exact squared norms.
fn spoil(q: &mut Matrix, p: MatrixView<'_>, (row, col): (usize, usize), factor: f64) {
    let square =
        |index: usize| (0..p.rows()).fold(Float::new(4000), |sum, k| sum + p.get(k, index).to_float(BITS).square());
    let unit: Float = (square(row) * square(col)).sqrt() >> (BITS - 1);
    let value = Float::with_val(4000, q.float(row, col)) + unit * factor;
    let mut exact = Matrix::zeros(q.rows(), q.cols(), 4000).unwrap();
    for j in 0..q.cols() {
        for i in 0..q.rows() {
            exact.set_float(i, j, &q.float(i, j)).unwrap();
        }
    }
    exact.set_float(row, col, &value).unwrap();
    *q = exact;
}

#[test]
fn right_results_pass_for_every_shape_and_spread() {
    let spreads: [&dyn Fn(usize, usize, i32) -> Option<i64>; 4] = [
        &|_, _, _| Some(3),
        &|row, col, draw| Some(700 * row as i64 - 900 * col as i64 + i64::from(draw % 9)),
        &|_, col, draw| (col % 3 != 1).then_some(i64::from(draw % 200)),
        &|_, _, draw| Some(i64::from(draw % 200_001) - 100_000),
    ];
    for (seed, (rows, cols)) in [(0, 3), (3, 0), (1, 1), (17, 5), (5, 20), (33, 9)].into_iter().enumerate() {
        for (kind, spread) in spreads.iter().enumerate() {
            let p = matrix((rows, cols), &mut random(seed as u32), spread);
            let q = product(p.view(), p.view());
            for threads in [1, 2] {
                for samples in [0, 4, 10_000] {
                    let options = VerifyOptions { sample_count: samples, ..seeded() };
                    let outcome = verify_syrk(&context(threads), &p, &q, BITS, &options);
                    let outcome = outcome.unwrap_or_else(|error| panic!("{rows} x {cols}, spread {kind}: {error}"));
                    assert!(outcome.worst_entry <= 1.0 && outcome.worst_residual <= 1.0);
                    assert_eq!(outcome.vector_count, 4);
                }
            }
            let transposed = VerifyOptions { op: Op::Transpose, ..seeded() };
            verify_syrk(&context(1), p.transposed(), Symmetric::upper(&q), BITS, &transposed).unwrap();
        }
    }
}

#[test]
fn exponents_too_far_apart_to_be_kept_whole_are_judged_too() {
    let far = 1 << 23;
    let p = matrix((4, 3), &mut random(6), |row, col, draw| {
        Some(if row == 1 { far } else { -far } + i64::from(draw) + if col == 2 { -3 * far } else { 0 })
    });
    let mut q = product(p.view(), p.view());
    let outcome = verify_syrk(&context(1), &p, &q, BITS, &seeded()).unwrap();
    assert!(outcome.worst_entry <= 1.0 && outcome.worst_residual <= 1.0);
    let value = q.float(2, 0) * (1.0 + 2f64.powi(-40));
    q.set_float(2, 0, &value).unwrap();
    let lower = Symmetric::lower(&q);
    assert!(message(verify_syrk(&context(1), &p, lower, BITS, &seeded())).contains("row 2, column 0"));
}

#[test]
fn only_the_named_triangle_is_read() {
    let p = matrix((12, 6), &mut random(4), |_, _, draw| Some(i64::from(draw % 5)));
    let mut q = product(p.view(), p.view());
    for col in 0..6 {
        for row in 0..col {
            q.set_f64(row, col, 99.0).unwrap();
        }
    }
    verify_syrk(&context(1), &p, Symmetric::lower(&q), BITS, &seeded()).unwrap();
    assert!(message(verify_syrk(&context(1), &p, Symmetric::upper(&q), BITS, &seeded())).contains("off by"));
    let unsymmetric = message(verify_syrk(&context(1), &p, &q, BITS, &seeded()));
    assert!(unsymmetric.contains("not symmetric: the entries at row 1, column 0"), "{unsymmetric}");
}

#[test]
fn entries_are_judged_exactly_at_the_bound() {
    // Columns of one entry: the norms are the entries, and the bound is a number of the matrix's own form.
    let mut p = Matrix::zeros(1, 2, BITS).unwrap();
    p.set_f64(0, 0, 3.0).unwrap();
    p.set_f64(0, 1, 5.0).unwrap();
    for (units, passes) in [(1.0, true), (-1.0, true), (1.0 + 1e-12, false), (-1.0 - 1e-12, false), (0.5, true)] {
        let mut q = product(p.view(), p.view());
        spoil(&mut q, p.view(), (1, 0), units);
        let outcome = verify_syrk(&context(1), &p, Symmetric::lower(&q), BITS, &seeded());
        assert_eq!(outcome.is_ok(), passes, "{units} units: {outcome:?}");
    }
}

#[test]
fn a_wrong_entry_is_named_with_its_error() {
    let p = matrix((9, 5), &mut random(9), |row, col, _| Some(40 * row as i64 - 300 * col as i64));
    for (entry, units) in [((4, 4), 1.7), ((3, 1), -12.0), ((0, 0), 1e9), ((4, 0), 1e40)] {
        let mut q = product(p.view(), p.view());
        spoil(&mut q, p.view(), entry, units);
        let text = message(verify_syrk(&context(2), &p, Symmetric::lower(&q), BITS, &seeded()));
        assert!(text.contains(&format!("row {}, column {} (from 0)", entry.0, entry.1)), "{text}");
    }
}

#[test]
fn vectors_alone_find_an_entry_far_off() {
    let p = matrix((20, 12), &mut random(10), |_, col, draw| Some(-500 * col as i64 + i64::from(draw % 3)));
    let mut found = 0;
    for seed in 0..40 {
        let entry = ((seed % 12).max(seed / 12) as usize, (seed % 12).min(seed / 12) as usize);
        let options = VerifyOptions { sample_count: 0, seed: Some(seed), ..VerifyOptions::default() };
        let caught = |units: f64| {
            let mut q = product(p.view(), p.view());
            spoil(&mut q, p.view(), entry, units);
            verify_syrk(&context(1), &p, Symmetric::lower(&q), BITS, &options).is_err()
        };
        found += usize::from(caught(4.1 * 12.0));
        assert!(caught(8.1 * 12.0) && caught(-1e6), "seed {seed}");
    }
    // Each vector with scaled signs finds it with probability 1/2 or more: 35 of 40 are expected at least.
    assert!(found >= 30, "{found} of 40");
}

#[test]
fn nothing_but_zero_passes_beside_a_zero_column() {
    let p = matrix((6, 4), &mut random(11), |_, col, _| (col != 2).then_some(0));
    let mut q = product(p.view(), p.view());
    verify_syrk(&context(1), &p, &q, BITS, &seeded()).unwrap();
    q.set_f64(2, 1, 1e-200).unwrap();
    let text = message(verify_syrk(&context(1), &p, Symmetric::lower(&q), BITS, &seeded()));
    assert!(text.contains("row 2, column 1") && text.contains("must be 0"), "{text}");
}

#[test]
fn absurd_exponents_in_a_result_are_named_without_huge_sums() {
    let p = matrix((4, 3), &mut random(12), |_, _, _| Some(0));
    for exponent in [1 << 29, -(1 << 29)] {
        let mut q = product(p.view(), p.view());
        q.set_integer_exponent(2, 1, &Integer::from(5), exponent).unwrap();
        let lower = Symmetric::lower(&q);
        assert!(message(verify_syrk(&context(1), &p, lower, BITS, &seeded())).contains("row 2, column 1"));
    }
}

#[test]
fn gemm_is_verified_for_all_transpositions() {
    let mut rng = random(13);
    let a = matrix((7, 11), &mut rng, |row, col, _| Some(90 * row as i64 - 40 * col as i64));
    let b = matrix((11, 5), &mut rng, |row, _, draw| Some(i64::from(draw % 7) - 60 * row as i64));
    let mut c = product(a.transposed(), b.view());
    let (at, bt) = (a.transposed().to_matrix().unwrap(), b.transposed().to_matrix().unwrap());
    let ctx = context(1);
    for spoiled in [false, true] {
        if spoiled {
            let value = c.float(6, 2) * 1.5f64;
            c.set_float(6, 2, &value).unwrap();
        }
        for (op, op_b) in [
            (Op::NoTranspose, Op::NoTranspose),
            (Op::Transpose, Op::NoTranspose),
            (Op::NoTranspose, Op::Transpose),
            (Op::Transpose, Op::Transpose),
        ] {
            let left = if op == Op::Transpose { &at } else { &a };
            let right = if op_b == Op::Transpose { &bt } else { &b };
            let options = VerifyOptions { op, op_b, ..seeded() };
            let outcome = verify_gemm(&ctx, (left, right), &c, BITS, &options);
            assert_eq!(outcome.is_err(), spoiled);
            if spoiled {
                assert!(message(outcome).contains("row 6, column 2"));
            }
        }
    }
    let outcome = verify_gemm(&ctx, (&a, &b), &a, BITS, &seeded());
    assert!(matches!(outcome, Err(Error::ShapeMismatch { left_rows: 7, left_cols: 5, .. })), "{outcome:?}");
    let outcome = verify_gemm(&ctx, (&a, &a), &c, BITS, &seeded());
    assert!(matches!(outcome, Err(Error::ShapeMismatch { left_cols: 11, right_rows: 7, .. })), "{outcome:?}");
}

#[test]
fn freivalds_finds_any_entry_off_by_one() {
    let mut rng = random(14);
    let values = (0..40).map(|_| Integer::from(Integer::random_bits(90, &mut rng)) - (Integer::from(1) << 89));
    let p = Matrix::from_integers(8, 5, BITS, &values.collect::<Vec<_>>()).unwrap();
    let exact = {
        let rounded = product(p.view(), p.view());
        let mut wide = Matrix::zeros(5, 5, 400).unwrap();
        let entries = p.view().to_integers().unwrap();
        for index in 0..25 {
            let (row, col) = (index % 5, index / 5);
            let sum: Integer = (0..8).map(|k| Integer::from(&entries[k + 8 * row] * &entries[k + 8 * col])).sum();
            wide.set_integer_exponent(row, col, &sum, 0).unwrap();
            let close = Float::with_val(BITS, &sum);
            assert_eq!(rounded.float(row, col), close);
        }
        wide
    };
    let ctx = context(2);
    let integers = VerifyOptions { exact_integers: true, ..VerifyOptions::default() };
    let outcome = verify_syrk(&ctx, &p, &exact, BITS, &integers).unwrap();
    assert!(outcome.prime.is_some_and(|prime| prime >> 60 == 1 && outcome.entry_count == 15));
    for row in 0..5 {
        for col in 0..=row {
            for step in [-1i32, 1] {
                let mut q = exact.clone();
                let value = exact.get(row, col).to_integer().unwrap() + step;
                q.set_integer_exponent(row, col, &value, 0).unwrap();
                assert!(message(freivalds_syrk(&ctx, &p, Symmetric::lower(&q), &integers)).contains("row"));
                assert!(
                    message(freivalds_gemm(&ctx, (p.transposed(), &p), &q, &integers)).contains(&format!("row {row}"))
                );
            }
        }
    }
    let mut fraction = p.clone();
    fraction.set_f64(6, 3, 0.5).unwrap();
    let outcome = verify_syrk(&ctx, &fraction, &exact, BITS, &integers);
    assert!(matches!(outcome, Err(Error::NotInteger { row: 6, column: 3 })), "{outcome:?}");
}

#[test]
fn equal_seeds_give_equal_outcomes_and_fresh_ones_differ() {
    let p = matrix((30, 8), &mut random(15), |_, _, _| Some(0));
    let q = product(p.view(), p.view());
    let run = |options: &VerifyOptions, threads| verify_syrk(&context(threads), &p, &q, BITS, options).unwrap();
    assert_eq!(run(&seeded(), 1), run(&seeded(), 2));
    let fresh = VerifyOptions::default();
    assert_ne!(run(&fresh, 1).seed, run(&fresh, 1).seed);
    assert!(verify_syrk(&context(1), &p, &q, 1, &fresh).is_err());
}
