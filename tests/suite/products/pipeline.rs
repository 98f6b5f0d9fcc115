//! The pipeline against an exact oracle: shapes, options, cuts, threads, errors, cancelling, faults.
//!
//! The oracle scales entry by entry with `math::scale`, sums products as big integers and rounds once through MPFR,
//! so every bit of every result is known. All tests force the reference kernel.

use crate::common::{by_norms, in_turn};
use rug::{Float, Integer, rand::RandState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::advanced::Hooks;
use sunzi::advanced::math::bound::working_bits;
use sunzi::advanced::math::scale::{column_exponent, scaled_integer};
use sunzi::advanced::plan::Cut;
use sunzi::plans::{plan_gemm, plan_syrk};
use sunzi::{
    Context, ContextBuilder, Error, Matrix, MatrixView, Op, Symmetric, SymmetricMatrix, Uplo, gemm_into, gemm_with,
    syrk_into, syrk_with,
};

fn reference() -> ContextBuilder {
    Context::builder().kernel("reference")
}

fn rng(seed: u32) -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    rng
}

/// Entries of all signs with exponents within `+-spread`, every seventh column and some entries 0.
fn random(rows: usize, cols: usize, precision_bits: u32, spread: u32, seed: u32) -> Matrix {
    let mut rng = rng(seed);
    let mut matrix = Matrix::zeros(rows, cols, precision_bits).unwrap();
    for col in (0..cols).filter(|col| col % 7 != 5) {
        let column_shift = rng.below(2 * spread + 1) as i32 - spread as i32;
        for row in 0..rows {
            let mut value = Float::with_val(precision_bits, Float::random_bits(&mut rng)) - 0.5f64;
            value <<= column_shift + rng.below(spread / 4 + 1) as i32;
            if rng.below(9) > 0 {
                matrix.set_float(row, col, &value).unwrap();
            }
        }
    }
    matrix
}

fn random_integers(rows: usize, cols: usize, bits: u32, seed: u32) -> Matrix {
    let mut rng = rng(seed);
    let values = (0..rows * cols)
        .map(|_| Integer::from(Integer::random_bits(bits, &mut rng)) - (Integer::from(1) << (bits - 1)))
        .collect::<Vec<_>>();
    Matrix::from_integers(rows, cols, bits + 10, &values).unwrap()
}

fn exponent(view: &MatrixView<'_>, col: usize) -> i64 {
    column_exponent((0..view.rows()).map(|row| view.get(row, col).head))
}

/// Factors of a combined product.
#[derive(Clone, Copy, Default)]
struct Factors<'a> {
    alpha: Option<&'a Float>,
    beta: Option<&'a Float>,
    accumulate: Option<&'a Matrix>,
}

/// `round(alpha * X^T Y + beta * C)` with the product of the integers that the scaling defines.
fn oracle(x: MatrixView<'_>, y: MatrixView<'_>, precision_bits: u32, factors: Factors<'_>) -> Matrix {
    let working = i64::from(working_bits(precision_bits, x.rows()));
    let scaled = |view: &MatrixView<'_>| {
        (0..view.cols())
            .map(|col| {
                let shift = working - exponent(view, col);
                (shift, (0..view.rows()).map(|row| scaled_integer(view.get(row, col), shift)).collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
    };
    let (left, right) = (scaled(&x), scaled(&y));
    let mut result = Matrix::zeros(x.cols(), y.cols(), precision_bits).unwrap();
    for (i, (left_shift, left)) in left.iter().enumerate() {
        for (j, (right_shift, right)) in right.iter().enumerate() {
            let sum: Integer = left.iter().zip(right).map(|(a, b)| Integer::from(a * b)).sum();
            let product = Float::with_val(sum.significant_bits().max(2), &sum) >> (left_shift + right_shift) as i32;
            let one = Float::with_val(2, 1);
            let added = factors.accumulate.map_or(Float::new(2), |matrix| matrix.float(i, j));
            let (alpha, beta) = (factors.alpha.unwrap_or(&one), factors.beta.unwrap_or(&one));
            let value = Float::with_val(precision_bits, alpha.mul_add_mul_ref(&product, beta, &added));
            result.set_float(i, j, &value).unwrap();
        }
    }
    result
}

/// Keeps one triangle.
fn mirrored(full: &Matrix, uplo: Uplo) -> Matrix {
    let mut whole = full.clone();
    for col in 0..full.cols() {
        for row in 0..full.rows() {
            if (uplo == Uplo::Lower && row >= col) || (uplo == Uplo::Upper && row <= col) {
                whole.set(row, col, full.get(row, col));
                whole.set(col, row, full.get(row, col));
            }
        }
    }
    whole
}

#[test]
fn syrk_equals_the_oracle_for_all_options() {
    let ctx = reference().threads(2).build().unwrap();
    for (case, (rows, cols, precision_bits, spread)) in
        [(0, 3, 64, 4), (5, 0, 64, 4), (1, 1, 53, 0), (3, 8, 128, 100), (33, 9, 200, 3000), (20, 41, 512, 40)]
            .into_iter()
            .enumerate()
    {
        let p = random(rows, cols, precision_bits, spread, case as u32);
        for op in [Op::NoTranspose, Op::Transpose] {
            let stored = if op == Op::Transpose { p.transposed().to_matrix().unwrap() } else { p.clone() };
            let full = oracle(p.view(), p.view(), precision_bits, Factors::default());
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let options = by_norms::syrk_options().op(op).uplo(uplo);
                let outcome = syrk_with(&ctx, &stored, precision_bits, &options).unwrap();
                assert_eq!(outcome.result, mirrored(&full, uplo), "case {case}, {op:?}, {uplo:?}");
            }
        }
    }
}

#[test]
fn gemm_equals_the_oracle_for_all_transpositions() {
    let ctx = reference().threads(2).build().unwrap();
    for (case, (m, n, k)) in
        [(1, 1, 1), (0, 3, 2), (3, 0, 2), (2, 3, 0), (9, 17, 20), (40, 3, 11)].into_iter().enumerate()
    {
        let (a, b) = (random(m, k, 160, 90, 50 + case as u32), random(k, n, 160, 90, 80 + case as u32));
        let want = oracle(a.transposed(), b.view(), 160, Factors::default());
        for op_a in [Op::NoTranspose, Op::Transpose] {
            for op_b in [Op::NoTranspose, Op::Transpose] {
                let turned = |matrix: &Matrix, op| match op {
                    Op::NoTranspose => matrix.clone(),
                    Op::Transpose => matrix.transposed().to_matrix().unwrap(),
                };
                let options = by_norms::gemm_options().op_a(op_a).op_b(op_b);
                let outcome = gemm_with(&ctx, &turned(&a, op_a), &turned(&b, op_b), 160, &options).unwrap();
                assert_eq!(outcome.result, want, "case {case}, {op_a:?}, {op_b:?}");
            }
        }
    }
}

#[test]
fn factors_and_an_accumulated_matrix_are_rounded_once() {
    let ctx = reference().threads(1).build().unwrap();
    let p = random(20, 10, 150, 50, 7);
    let c = random(10, 10, 90, 200, 8);
    let (alpha, beta) = (Float::with_val(70, 1) / 3u32, Float::with_val(30, -1.625));
    let zero = Float::new(2);
    for alpha in [None, Some(&alpha), Some(&zero)] {
        for beta in [None, Some(&beta), Some(&zero)] {
            for accumulate in [None, Some(&c)] {
                let factors = Factors { alpha, beta, accumulate };
                let want = oracle(p.view(), p.view(), 150, factors);
                for uplo in [Uplo::Lower, Uplo::Upper] {
                    let accumulate = accumulate.map(|c| Symmetric::triangle(c, uplo));
                    let options = by_norms::syrk_options().uplo(uplo).alpha(alpha).beta(beta).accumulate(accumulate);
                    assert_eq!(syrk_with(&ctx, &p, 150, &options).unwrap().result, mirrored(&want, uplo));
                }
                let options = by_norms::gemm_options()
                    .op_a(Op::Transpose)
                    .alpha(alpha)
                    .beta(beta)
                    .accumulate(accumulate.map(Matrix::view));
                assert_eq!(gemm_with(&ctx, &p, &p, 150, &options).unwrap().result, want);
            }
        }
    }
}

#[test]
fn an_accumulated_matrix_is_scaled_also_where_there_is_no_product() {
    let ctx = reference().threads(1).build().unwrap();
    let (empty, c) = (Matrix::zeros(0, 5, 100).unwrap(), random(5, 5, 100, 10, 3));
    let beta = Float::with_val(20, 2.5);
    let accumulate = Some(Symmetric::lower(&c));
    let options = by_norms::syrk_options().beta(&beta).accumulate(accumulate);
    let result = syrk_with(&ctx, &empty, 100, &options).unwrap().result;
    assert_eq!(result, mirrored(&c.scale(&beta).unwrap(), Uplo::Lower));
}

#[test]
fn extreme_exponents_of_factors_do_not_overflow_between() {
    let ctx = reference().threads(1).build().unwrap();
    let p = Matrix::from_floats(1, 1, 64, &[Float::with_val(64, 3) << 600_000_000]).unwrap();
    // The square alone is beyond the exponent range; times alpha it is not.
    assert!(matches!(syrk_with(&ctx, &p, 64, &by_norms::syrk_options()), Err(Error::ExponentRange { row: 0, .. })));
    let alpha = Float::with_val(64, 1) >> 900_000_000;
    let options = by_norms::syrk_options().alpha(&alpha);
    let result = syrk_with(&ctx, &p, 64, &options).unwrap().result;
    assert_eq!(result.float(0, 0), Float::with_val(64, 9) << 300_000_000);
    // A far smaller term only breaks the tie that the larger one leaves.
    let c = Matrix::from_floats(1, 1, 80, &[Float::with_val(80, 1) >> 900_000_000]).unwrap();
    let p = Matrix::from_floats(1, 1, 64, &[Float::with_val(64, 1)]).unwrap();
    let tie = Float::with_val(80, 1) + (Float::with_val(80, 1) >> 64);
    let options = by_norms::syrk_options().alpha(&tie).accumulate(Symmetric::from(&c));
    let result = syrk_with(&ctx, &p, 64, &options).unwrap().result;
    assert_eq!(result.float(0, 0), Float::with_val(64, 1) + (Float::with_val(64, 1) >> 63));
}

#[test]
fn integers_are_multiplied_exactly() {
    let ctx = reference().threads(2).build().unwrap();
    for bits in [2, 31, 200] {
        let (a, b) = (random_integers(17, 9, bits, 1), random_integers(17, 12, bits + 3, 2));
        let options = by_norms::gemm_options().op_a(Op::Transpose).exact_integers(true);
        let (left, right) = (a.view().to_integers().unwrap(), b.view().to_integers().unwrap());
        let dot = |i: usize, j: usize| {
            (0..17).map(|k| Integer::from(&left[17 * i + k] * &right[17 * j + k])).sum::<Integer>()
        };
        let result = gemm_with(&ctx, &a, &b, 2, &options).unwrap().result;
        let got = result.view().to_integers().unwrap();
        for (i, j) in (0..9).flat_map(|i| (0..12).map(move |j| (i, j))) {
            assert_eq!(got[9 * j + i], dot(i, j), "{bits} bits");
        }
        let (three, minus_seven) = (Float::with_val(53, 3), Float::with_val(53, -7));
        let options = options.alpha(&minus_seven).beta(&three).accumulate(result.view());
        let combined = gemm_with(&ctx, &a, &b, 2, &options).unwrap().result.view().to_integers().unwrap();
        assert_eq!(combined[10], -4i32 * dot(1, 1), "{bits} bits");
    }
    let wide = random_integers(3, 2, 60, 5);
    let options = by_norms::syrk_options().exact_integers(true);
    assert!(syrk_with(&ctx, &wide, 500, &options).unwrap().result.precision_bits() >= 500);
    assert_eq!(syrk_with(&ctx, &Matrix::zeros(4, 4, 64).unwrap(), 64, &options).unwrap().result.max_norm(), 0);
}

#[test]
fn a_fraction_among_integers_is_named_in_the_callers_indices() {
    let ctx = reference().threads(2).build().unwrap();
    let mut p = random_integers(6, 4, 20, 3);
    p.set_f64(4, 2, 0.5).unwrap();
    p.set_f64(1, 3, 0.25).unwrap();
    for op in [Op::NoTranspose, Op::Transpose] {
        let options = by_norms::syrk_options().op(op).exact_integers(true);
        let error = syrk_with(&ctx, &p, 64, &options).unwrap_err();
        assert!(matches!(error, Error::NotInteger { row: 4, column: 2 }), "{error}");
    }
}

#[test]
fn batches_bands_chunks_and_threads_give_the_same_bits() {
    let (rows, cols, precision_bits) = (600, 70, 100);
    let p = random(rows, cols, precision_bits, 30, 21);
    let whole = reference().threads(1).build().unwrap();
    let want = syrk_with(&whole, &p, precision_bits, &by_norms::syrk_options()).unwrap();
    let b = random(rows, 20, precision_bits, 30, 22);
    let transposed = by_norms::gemm_options().op_a(Op::Transpose);
    let want_gemm = gemm_with(&whole, &p, &b, precision_bits, &transposed).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for threads in [1, 2, 3] {
        let make = |bytes: u64| reference().threads(threads).memory_bytes(bytes).build().unwrap();
        let least = |error: Error| match error {
            Error::MemoryLimit { minimum_bytes, .. } => minimum_bytes,
            other => panic!("{other}"),
        };
        let minimum = least(plan_syrk(&make(0), rows, cols, precision_bits).unwrap_err());
        let all = plan_syrk(&reference().threads(threads).build().unwrap(), rows, cols, precision_bits).unwrap();
        // Each limit on one number of threads.
        for part in (0..=8).filter(|&part| in_turn(3, part as usize).contains(&(threads - 1))) {
            let limit = minimum + (all.planned_bytes - minimum) * part * part / 64;
            let uplo = [Uplo::Lower, Uplo::Upper][(part as usize + threads) % 2];
            let got = syrk_with(&make(limit), &p, precision_bits, &by_norms::syrk_options().uplo(uplo)).unwrap();
            assert!(got.report.planned_bytes <= limit);
            seen.insert((got.report.batches, got.report.bands, got.report.chunks));
            assert_eq!(got.result, want.result, "{threads} threads, {limit} bytes, {uplo:?}");
        }
        let minimum = least(plan_gemm(&make(0), cols, 20, rows, precision_bits).unwrap_err());
        for extra in [0, 30_000, 100_000] {
            let got = gemm_with(&make(minimum + extra), &p, &b, precision_bits, &transposed).unwrap();
            assert_eq!(got.result, want_gemm.result, "{threads} threads, {extra} extra bytes");
        }
    }
    assert!(seen.iter().any(|&(batches, bands, chunks)| batches > 1 && bands > 1 && chunks > 1), "{seen:?}");
    assert!(seen.len() >= 4, "{seen:?}");
}

#[test]
fn every_cut_gives_the_same_bits() {
    let p = random(50, 42, 90, 30, 31); // 6 panels, the last with 2 columns
    let b = random(50, 19, 90, 30, 32);
    let transposed = by_norms::gemm_options().op_a(Op::Transpose);
    let planes = reference().threads(1).build().unwrap();
    let want = syrk_with(&planes, &p, 90, &by_norms::syrk_options()).unwrap().result;
    let want_gemm = gemm_with(&planes, &p, &b, 90, &transposed).unwrap().result;
    let fast = sunzi::advanced::kernels::available()[0].name();
    for (kernel, threads) in [("reference", 2), (fast, 1), (fast, 3)] {
        let ctx = Context::builder().kernel(kernel).threads(threads).build().unwrap();
        for (batch_primes, band_panels, chunk_rows) in cuts() {
            let cut = Cut { batch_primes, band_panels, chunk_rows };
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let options = by_norms::syrk_options().uplo(uplo);
                let got = syrk_with(&ctx, &p, 90, &options.clone().hooks(Hooks::cut(cut))).unwrap();
                assert_eq!(got.report.bands, 6usize.div_ceil(band_panels));
                assert_eq!(got.report.chunks, 50usize.div_ceil(chunk_rows));
                assert_eq!(got.result, want, "{kernel}, {threads} threads, {cut:?}, {uplo:?}");
            }
            let got = gemm_with(&ctx, &p, &b, 90, &transposed.clone().hooks(Hooks::cut(cut))).unwrap();
            assert_eq!(got.result, want_gemm, "{kernel}, {threads} threads, {cut:?}");
        }
    }
}

/// Primes of a batch, panels of a band, rows of a chunk.
fn cuts() -> impl Iterator<Item = (usize, usize, usize)> {
    let bands_and_chunks =
        |batch| [1, 2, 4, 6].into_iter().flat_map(move |band| [7, 50].map(|chunk| (batch, band, chunk)));
    [1, 2, 4].into_iter().flat_map(bands_and_chunks)
}

#[test]
fn the_least_limit_named_is_the_least_that_works() {
    let p = random(300, 30, 64, 10, 4);
    let run = |bytes| {
        syrk_with(&reference().threads(2).memory_bytes(bytes).build().unwrap(), &p, 64, &by_norms::syrk_options())
    };
    let Err(Error::MemoryLimit { limit_bytes: 1000, minimum_bytes }) = run(1000) else {
        panic!("1000 bytes cannot do")
    };
    assert!(run(minimum_bytes).is_ok());
    assert!(matches!(run(minimum_bytes - 1), Err(Error::MemoryLimit { .. })));
}

#[test]
fn misfits_are_errors_with_the_numbers() {
    let ctx = reference().threads(1).build().unwrap();
    let (a, b) = (Matrix::zeros(3, 4, 64).unwrap(), Matrix::zeros(5, 2, 64).unwrap());
    let error = gemm_with(&ctx, &a, &b, 64, &by_norms::gemm_options()).unwrap_err();
    assert!(error.to_string().contains("3 x 4 against 5 x 2"), "{error}");
    let options = by_norms::syrk_options().accumulate(Symmetric::from(&b));
    assert!(matches!(syrk_with(&ctx, &a, 64, &options), Err(Error::NotSquare { .. })));
    let infinite = Float::with_val(53, f64::INFINITY);
    let options = by_norms::syrk_options().alpha(&infinite);
    assert!(matches!(syrk_with(&ctx, &a, 64, &options), Err(Error::InvalidArgument(_))));
    for precision_bits in [0, 1, 100_000, u32::MAX] {
        let Err(Error::Precision { maximum_bits, .. }) = syrk_with(&ctx, &a, precision_bits, &by_norms::syrk_options())
        else {
            panic!("{precision_bits} bits")
        };
        assert!(syrk_with(&ctx, &a, maximum_bits as u32, &by_norms::syrk_options()).is_ok());
        assert!(syrk_with(&ctx, &a, maximum_bits as u32 + 1, &by_norms::syrk_options()).is_err());
    }
}

#[test]
fn sizes_beyond_any_memory_are_errors() {
    for ctx in [reference().threads(1).build().unwrap(), Context::builder().threads(1).build().unwrap()] {
        for (rows, cols) in [(usize::MAX, 1), (1, usize::MAX), (1 << 39, 1 << 39), (1 << 30, 1 << 30)] {
            let error = plan_syrk(&ctx, rows, cols, 100).unwrap_err();
            assert!(matches!(error, Error::DimensionOverflow { .. } | Error::MemoryLimit { .. }), "{error}");
            assert!(plan_gemm(&ctx, rows, cols, rows, 100).is_err());
        }
        // No memory is needed for these operands, but none would be enough for the result.
        let (a, b) = (Matrix::zeros(1 << 40, 0, 64).unwrap(), Matrix::zeros(0, 1 << 40, 64).unwrap());
        assert!(gemm_with(&ctx, &a, &b, 64, &by_norms::gemm_options()).is_err());
        let none = Matrix::zeros(0, usize::MAX, 64).unwrap();
        assert!(syrk_with(&ctx, &none, 64, &by_norms::syrk_options()).is_err());
        let options = by_norms::syrk_options().op(Op::Transpose);
        assert_eq!(syrk_with(&ctx, &none, 64, &options).unwrap().result.rows(), 0);
    }
}

#[test]
fn a_call_can_be_cancelled_anywhere_and_the_context_used_again() {
    let p = random(40, 30, 100, 10, 6);
    for threads in [1, 3] {
        let (calls, stop_at) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(u64::MAX)));
        let (count, stop) = (calls.clone(), stop_at.clone());
        let ctx = reference()
            .threads(threads)
            .progress(move |progress| {
                assert!(progress.done <= progress.total);
                count.fetch_add(1, Ordering::Relaxed) < stop.load(Ordering::Relaxed)
            })
            .build()
            .unwrap();
        let want = syrk_with(&ctx, &p, 100, &by_norms::syrk_options()).unwrap().result;
        let all = calls.swap(0, Ordering::Relaxed);
        for at in 0..all {
            stop_at.store(at, Ordering::Relaxed);
            assert!(matches!(syrk_with(&ctx, &p, 100, &by_norms::syrk_options()), Err(Error::Cancelled)));
            calls.store(0, Ordering::Relaxed);
        }
        stop_at.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(syrk_with(&ctx, &p, 100, &by_norms::syrk_options()).unwrap().result, want);
    }
}

#[test]
fn a_context_with_another_callback_shares_the_rest() {
    let p = random(40, 30, 100, 10, 6);
    let ctx = reference().threads(2).build().unwrap();
    let want = syrk_with(&ctx, &p, 100, &by_norms::syrk_options()).unwrap().result;
    let kept = ctx.workspace().bytes();
    let stopped = ctx.with_progress(|_| false);
    assert!(matches!(syrk_with(&stopped, &p, 100, &by_norms::syrk_options()), Err(Error::Cancelled)));
    assert!(kept > 0 && stopped.workspace().bytes() == kept, "{kept} bytes");
    assert_eq!(syrk_with(&ctx, &p, 100, &by_norms::syrk_options()).unwrap().result, want);
}

#[test]
fn progress_reaches_its_total_under_every_cut() {
    let p = random(600, 70, 100, 10, 6);
    for limit in [u64::MAX, 900_000, 500_000] {
        let last = Arc::new(AtomicU64::new(0));
        let (seen, total) = (last.clone(), Arc::new(AtomicU64::new(0)));
        let whole = total.clone();
        let ctx = reference().threads(1).memory_bytes(limit);
        let ctx = ctx.progress(move |progress| {
            assert!(progress.done > seen.swap(progress.done, Ordering::Relaxed));
            whole.store(progress.total, Ordering::Relaxed);
            true
        });
        syrk_with(&ctx.build().unwrap(), &p, 100, &by_norms::syrk_options()).unwrap();
        assert_eq!(last.load(Ordering::Relaxed), total.load(Ordering::Relaxed), "limit {limit}");
    }
}

#[test]
fn the_self_check_finds_every_changed_residue() {
    let p = random(30, 12, 100, 10, 9);
    let checked = reference().threads(2).self_check(true).build().unwrap();
    let plain = reference().threads(2).build().unwrap();
    let want = syrk_with(&checked, &p, 100, &by_norms::syrk_options()).unwrap();
    assert!(want.report.checked);
    let other = syrk_with(&plain, &p, 100, &by_norms::syrk_options()).unwrap();
    assert!(!other.report.checked && other.result == want.result && other.report.primes + 1 == want.report.primes);
    for trial in 0..40usize {
        let flip = move |window: &mut [u64], plane_words: usize| {
            let primes = window.len() / plane_words;
            // Entry (8, 3) of the second block of the plane lies below the diagonal.
            window[(trial % primes) * plane_words + 64 + 3 * 8] ^= 1 << (trial % 40);
        };
        let error = syrk_with(&checked, &p, 100, &by_norms::syrk_options().hooks(Hooks::fault(&flip))).unwrap_err();
        assert!(matches!(error, Error::SelfCheck { row: 8, column: 3 }), "trial {trial}: {error}");
        assert_ne!(
            syrk_with(&plain, &p, 100, &by_norms::syrk_options().hooks(Hooks::fault(&flip))).unwrap().result,
            other.result
        );
    }
}

#[test]
fn the_direct_path_gives_the_same_bits() {
    let auto = Context::builder().threads(2).build().unwrap();
    let planes = reference().threads(1).build().unwrap();
    let beta = Float::with_val(40, 0.3);
    for (case, (rows, cols, precision_bits)) in
        [(1, 1, 2), (3, 5, 53), (4, 4, 125), (7, 3, 126), (9, 2, 700), (2, 3, 1400), (1, 2, 4000)]
            .into_iter()
            .enumerate()
    {
        let seed = 100 + case as u32;
        let (p, b) = (random(rows, cols, precision_bits, 60, seed), random(rows, 4, 90, 5000, seed));
        let c = random(cols, cols, precision_bits, 60, seed);
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let accumulate = Some(Symmetric::triangle(&c, uplo));
            let options = by_norms::syrk_options().uplo(uplo).beta(&beta).accumulate(accumulate);
            let direct = syrk_with(&auto, &p, precision_bits, &options).unwrap();
            assert_eq!(direct.report.kernel, "direct", "case {case}");
            assert_eq!(direct.result, syrk_with(&planes, &p, precision_bits, &options).unwrap().result, "case {case}");
        }
        let options = by_norms::gemm_options().op_a(Op::Transpose);
        let direct = gemm_with(&auto, &p, &b, precision_bits, &options).unwrap();
        assert_eq!(direct.report.kernel, "direct", "case {case}");
        assert_eq!(direct.result, gemm_with(&planes, &p, &b, precision_bits, &options).unwrap().result, "case {case}");
        let integers = random_integers(rows, cols, 1 + precision_bits / 3, seed);
        let options = by_norms::syrk_options().exact_integers(true);
        let direct = syrk_with(&auto, &integers, 2, &options).unwrap();
        assert_eq!(direct.result, syrk_with(&planes, &integers, 2, &options).unwrap().result, "case {case}");
    }
    assert_ne!(
        syrk_with(&auto, &random(60, 60, 256, 1, 1), 256, &by_norms::syrk_options()).unwrap().report.kernel,
        "direct"
    );
}

#[test]
fn a_result_is_reused_where_it_fits_and_replaced_where_not() {
    let ctx = reference().threads(2).build().unwrap();
    let p = random(30, 20, 100, 10, 10);
    let mut result = SymmetricMatrix::from_triangle(random(20, 20, 100, 5, 11), Uplo::Lower).unwrap();
    for uplo in [Uplo::Lower, Uplo::Upper] {
        let options = by_norms::syrk_options().uplo(uplo);
        syrk_into(&ctx, &p, 100, &options, &mut result).unwrap();
        assert_eq!(result, syrk_with(&ctx, &p, 100, &options).unwrap().result);
    }
    let mut other = Matrix::zeros(3, 3, 64).unwrap();
    let options = by_norms::gemm_options().op_a(Op::Transpose);
    gemm_into(&ctx, &p, &p, 100, &options, &mut other).unwrap();
    assert_eq!(other, gemm_with(&ctx, &p, &p, 100, &options).unwrap().result);
}
