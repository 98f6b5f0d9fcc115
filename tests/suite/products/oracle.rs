//! Every kernel against the exact oracle: the bound of the contract, and the very bits.
//!
//! Shapes at and beside the edges of blocks, precisions from 53 to 5000 bits, exponents from -100000 to 100000,
//! both triangles, all transpositions, factors, accumulation, exact integers, views of larger matrices.

use crate::common::oracle::{Factors, assert_bound, expected, expected_integers, mirrored};
use crate::common::{KINDS, Kind, Rng, forced, integer_matrix, kernel_names, matrix, seeds};
use rug::Float;
use sunzi::{
    Accuracy, Context, GemmOptions, Matrix, MatrixView, Op, Symmetric, SyrkOptions, Uplo, gemm_with, syrk_with,
};

const SIZES: [usize; 7] = [0, 1, 7, 8, 9, 64, 65];

/// One context for each kernel that can run here, one or two threads.
fn contexts() -> Vec<(&'static str, Context)> {
    let threads = |index: usize| 1 + index % 2;
    kernel_names()
        .into_iter()
        .enumerate()
        .map(|(index, name)| (name, forced(name, threads(index)).build().unwrap()))
        .collect()
}

/// Runs SYRK on `p^T p` in the given form on every kernel and compares all bits; `full` is the whole product.
fn check_syrk(contexts: &[(&str, Context)], p: MatrixView<'_>, full: &Matrix, form: (Op, Uplo), label: &str) {
    let (op, uplo) = form;
    let stored = if op == Op::Transpose { p.transposed() } else { p };
    let want = mirrored(full, uplo);
    for (kernel, ctx) in contexts {
        let options = SyrkOptions::new().accuracy(Accuracy::Norm).op(op).uplo(uplo);
        let outcome = syrk_with(ctx, stored, full.precision_bits(), &options);
        let outcome = outcome.unwrap_or_else(|error| panic!("{kernel}, {label}, {form:?}: {error}"));
        assert!(outcome.result == want, "{kernel}, {label}, {form:?}: wrong bits");
    }
}

#[test]
fn syrk_has_the_expected_bits_and_meets_the_bound_for_all_shapes() {
    let contexts = contexts();
    for seed in seeds(2) {
        for (index, (rows, cols)) in SIZES.iter().flat_map(|&k| SIZES.map(|n| (k, n))).enumerate() {
            let mut rng = Rng::new(1000 * seed + index as u64);
            // Dots of numbers with 200000 bits take too long at the largest shapes.
            let kinds = if rows * cols > 600 { &KINDS[..3] } else { &KINDS[..] };
            let kind = rng.pick(kinds);
            let precision_bits = rng.pick(&[53, 64, 65, 100, 128, 129]);
            let p = matrix(kind, rows, cols, rng.pick(&[53, 64, 100, 192, 300]), rng.word());
            let label = format!("{kind:?} {rows} x {cols}, {precision_bits} bits, seed {seed}");
            let full = expected(&p.view(), &p.view(), precision_bits, Factors::default());
            assert_bound(&full, &p.view(), &p.view(), precision_bits, &label);
            let form = (rng.pick(&[Op::NoTranspose, Op::Transpose]), rng.pick(&[Uplo::Lower, Uplo::Upper]));
            check_syrk(&contexts, p.view(), &full, form, &label);
        }
    }
}

#[test]
fn syrk_holds_for_every_kind_of_matrix_and_form() {
    let contexts = contexts();
    for seed in seeds(2) {
        for kind in KINDS {
            for (rows, cols) in [(1, 9), (4, 3), (16, 8), (33, 10), (64, 5)] {
                let p = matrix(kind, rows, cols, 160, seed);
                let full = expected(&p.view(), &p.view(), 120, Factors::default());
                let label = format!("{kind:?} {rows} x {cols}, seed {seed}");
                assert_bound(&full, &p.view(), &p.view(), 120, &label);
                for op in [Op::NoTranspose, Op::Transpose] {
                    for uplo in [Uplo::Lower, Uplo::Upper] {
                        check_syrk(&contexts, p.view(), &full, (op, uplo), &label);
                    }
                }
            }
        }
    }
}

#[test]
fn syrk_holds_from_53_to_5000_bits() {
    let contexts = contexts();
    let precisions = [2, 53, 54, 63, 113, 127, 192, 256, 500, 768, 1000, 1024, 2048, 3000, 4096, 5000];
    for seed in seeds(2) {
        for (index, &precision_bits) in precisions.iter().enumerate() {
            let kind = KINDS[(index + seed as usize) % KINDS.len()];
            let (rows, cols) = if precision_bits > 1024 { (10, 3) } else { (21, 9) };
            let stored_bits = if index % 3 == 0 { precision_bits + 70 } else { precision_bits };
            let p = matrix(kind, rows, cols, stored_bits, seed);
            let full = expected(&p.view(), &p.view(), precision_bits, Factors::default());
            let label = format!("{kind:?}, {precision_bits} bits, seed {seed}");
            assert_bound(&full, &p.view(), &p.view(), precision_bits, &label);
            check_syrk(&contexts, p.view(), &full, (Op::NoTranspose, Uplo::Lower), &label);
        }
    }
}

#[test]
fn results_rounded_by_the_library_meet_the_bound_themselves() {
    // The other tests show that results equal the oracle's bits; this one reads a result and nothing else.
    for (kernel, ctx) in contexts() {
        for kind in KINDS {
            let p = matrix(kind, 40, 6, 90, 5);
            let full =
                gemm_with(&ctx, p.transposed(), &p, 90, &GemmOptions::new().accuracy(Accuracy::Norm)).unwrap().result;
            assert_bound(&full, &p.view(), &p.view(), 90, &format!("{kernel}, {kind:?}"));
        }
    }
}

#[test]
fn gemm_has_the_expected_bits_for_all_transpositions() {
    let contexts = contexts();
    for seed in seeds(2) {
        for index in 0..40 {
            let mut rng = Rng::new(7000 + 1000 * seed + index);
            let (m, n, k) = (rng.pick(&SIZES[..5]), rng.pick(&SIZES), rng.pick(&SIZES));
            let kinds = if k * (m + n) > 400 { &KINDS[..3] } else { &KINDS[..] };
            let kind = rng.pick(kinds);
            let precision_bits = rng.pick(&[53, 64, 90, 128, 200]);
            // Operands of different kinds and precisions: left is K x M, right is K x N.
            let left = matrix(kind, k, m, rng.pick(&[53, 128, 250]), rng.word());
            let right = matrix(rng.pick(kinds), k, n, rng.pick(&[53, 128, 250]), rng.word());
            let label = format!("{kind:?}, m {m}, n {n}, k {k}, {precision_bits} bits, case {index}, seed {seed}");
            let want = expected(&left.view(), &right.view(), precision_bits, Factors::default());
            assert_bound(&want, &left.view(), &right.view(), precision_bits, &label);
            let (left_rows, right_rows) =
                (left.transposed().to_matrix().unwrap(), right.transposed().to_matrix().unwrap());
            for (op_a, op_b) in [
                (Op::NoTranspose, Op::NoTranspose),
                (Op::NoTranspose, Op::Transpose),
                (Op::Transpose, Op::NoTranspose),
                (Op::Transpose, Op::Transpose),
            ] {
                let a = if op_a == Op::NoTranspose { &left_rows } else { &left };
                let b = if op_b == Op::NoTranspose { &right } else { &right_rows };
                let options = GemmOptions::new().accuracy(Accuracy::Norm).op_a(op_a).op_b(op_b);
                for (kernel, ctx) in &contexts {
                    let result = gemm_with(ctx, a, b, precision_bits, &options).unwrap().result;
                    assert!(result == want, "{kernel}, {label}, {op_a:?}, {op_b:?}: wrong bits");
                }
            }
        }
    }
}

#[test]
fn factors_and_accumulation_are_rounded_once() {
    let contexts = contexts();
    for seed in seeds(40) {
        let mut rng = Rng::new(300 + seed);
        let (kind, precision_bits) = (rng.pick(&KINDS), rng.pick(&[53, 64, 150]));
        let (rows, cols) = (rng.pick(&[0, 1, 9, 30]), rng.pick(&[1, 8, 11]));
        let p = matrix(kind, rows, cols, 130, seed);
        let c = matrix(rng.pick(&KINDS), cols, cols, rng.pick(&[53, 200]), seed + 1);
        let mut factor = |optional: bool| {
            let value = Float::with_val(80, &rng.integer(80)) >> rng.below(160) as u32;
            match rng.below(5) {
                0 if optional => None,
                1 => Some(Float::new(53)),
                2 => Some(Float::with_val(53, -1)),
                _ => Some(value),
            }
        };
        let (alpha, beta) = (factor(true), factor(true));
        let accumulate = (seed % 3 != 0).then_some(&c);
        let factors = Factors { alpha: alpha.as_ref(), beta: beta.as_ref(), accumulate };
        let label = format!("{kind:?} {rows} x {cols}, alpha {alpha:?}, beta {beta:?}, seed {seed}");
        let want = expected(&p.view(), &p.view(), precision_bits, factors);
        for (kernel, ctx) in &contexts {
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let options = SyrkOptions::new()
                    .accuracy(Accuracy::Norm)
                    .uplo(uplo)
                    .alpha(alpha.as_ref())
                    .beta(beta.as_ref())
                    .accumulate(accumulate.map(|c| Symmetric::triangle(c, uplo)));
                let result = syrk_with(ctx, &p, precision_bits, &options).unwrap().result;
                assert!(result == mirrored(&want, uplo), "{kernel}, {uplo:?}, {label}: wrong bits");
            }
            let options = GemmOptions::new()
                .accuracy(Accuracy::Norm)
                .alpha(alpha.as_ref())
                .beta(beta.as_ref())
                .accumulate(accumulate.map(Matrix::view));
            let result = gemm_with(ctx, p.transposed(), &p, precision_bits, &options).unwrap().result;
            assert!(result == want, "{kernel}, gemm, {label}: wrong bits");
        }
    }
}

#[test]
fn exact_integers_are_exact() {
    let contexts = contexts();
    for seed in seeds(30) {
        let mut rng = Rng::new(900 + seed);
        let (m, n, k) = (rng.pick(&SIZES[..5]), rng.pick(&SIZES[..5]), rng.pick(&SIZES));
        let (a, b) = (
            integer_matrix(m, k, rng.pick(&[1, 5, 64, 300]), seed),
            integer_matrix(k, n, rng.pick(&[1, 63, 200]), seed),
        );
        let c = integer_matrix(m, n, 90, seed + 7);
        let (alpha, beta) = (Float::with_val(90, &rng.integer(70)), Float::with_val(64, -3));
        let combined = seed % 2 == 1;
        let factors = if combined {
            Factors { alpha: Some(&alpha), beta: Some(&beta), accumulate: Some(&c) }
        } else {
            Factors::default()
        };
        let label = format!("m {m}, n {n}, k {k}, combined {combined}, seed {seed}");
        for (kernel, ctx) in &contexts {
            let options = GemmOptions::new()
                .accuracy(Accuracy::Norm)
                .exact_integers(true)
                .alpha(factors.alpha)
                .beta(factors.beta)
                .accumulate(factors.accumulate.map(Matrix::view));
            let result = gemm_with(ctx, &a, &b, 64, &options).unwrap().result;
            let want = expected_integers(&a.transposed(), &b.view(), &result, factors);
            assert!(result == want, "{kernel}, {label}: wrong integers");
            assert!(result.precision_bits() >= 64);
            let options = SyrkOptions::new().accuracy(Accuracy::Norm).exact_integers(true).op(Op::Transpose);
            let result = syrk_with(ctx, &a, 64, &options).unwrap().result;
            let want = expected_integers(&a.transposed(), &a.transposed(), &result, Factors::default());
            assert!(result == mirrored(&want, Uplo::Lower), "{kernel}, syrk, {label}: wrong integers");
        }
    }
}

#[test]
fn blocks_of_larger_matrices_are_taken_where_they_lie() {
    let contexts = contexts();
    for kind in [Kind::Unit, Kind::Extreme] {
        let large = matrix(kind, 30, 20, 100, 3);
        for (rows, cols) in [(3..17, 2..13), (0..30, 19..20), (29..30, 0..9), (5..5, 1..4)] {
            for view in
                [large.view().block(rows.clone(), cols.clone()).unwrap(), large.transposed().block(cols, rows).unwrap()]
            {
                let full = expected(&view, &view, 77, Factors::default());
                for op in [Op::NoTranspose, Op::Transpose] {
                    check_syrk(&contexts, view, &full, (op, Uplo::Lower), &format!("{kind:?} block"));
                }
            }
        }
    }
}

#[test]
fn products_at_their_bound_do_not_wrap() {
    // K equal entries with K a power of 4: the norm is a power of two, and |Q'| = 2^(2B) exactly, with both signs.
    let contexts = contexts();
    for rows in [1usize, 4, 16, 64] {
        let column = |sign: f64| vec![sign; rows];
        let values = [column(1.0), column(-1.0), column(1.0), column(-1.0)].concat();
        let p = Matrix::from_f64s(rows, 4, 53, &values).unwrap();
        for precision_bits in [53, 101, 257, 1024] {
            let full = expected(&p.view(), &p.view(), precision_bits, Factors::default());
            assert_eq!(full.get(3, 0).to_f64(), -(rows as f64));
            check_syrk(&contexts, p.view(), &full, (Op::NoTranspose, Uplo::Lower), &format!("{rows} equal rows"));
        }
    }
}
