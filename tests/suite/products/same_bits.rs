//! The same bits on every kernel, thread count, memory limit, triangle and form of operand.
//!
//! Memory limits are taken from the plan: none, the whole, between, and the least one that is accepted, so that prime
//! batches, bands and chunks all occur; the tests count the combinations and assert that each cut was met. Forms of
//! operand and numbers of threads take turns; all of them meet all others where `SUNZI_TEST_EFFORT` is above 1.

use crate::common::oracle::{Factors, expected, expected_integers, mirrored};
use crate::common::{KINDS, Kind, effort, forced, in_turn, integer_matrix, kernel_names, matrix};
use rug::Float;
use std::collections::BTreeSet;
use sunzi::advanced::Hooks;
use sunzi::advanced::plan::Cut;
use sunzi::plans::{plan_gemm, plan_syrk};
use sunzi::report::Report;
use sunzi::verify::{VerifyOptions, freivalds_syrk, verify_syrk};
use sunzi::{
    Accuracy, Context, Error, GemmOptions, Matrix, Op, Symmetric, SymmetricMatrix, SyrkOptions, Uplo, gemm_with,
    syrk_into, syrk_with,
};

const THREADS: [usize; 4] = [1, 2, 3, 7];

/// The cuts that a set of runs has met.
#[derive(Default)]
struct Cuts {
    combinations: usize,
    met: BTreeSet<(bool, bool, bool)>,
}

impl Cuts {
    fn note(&mut self, report: &Report) {
        self.combinations += 1;
        self.met.insert((report.batches > 1, report.bands > 1, report.chunks > 1));
    }

    /// Which of so many forms the next runs take: one after the other, or all.
    fn forms(&self, count: usize) -> std::ops::Range<usize> {
        // Six limits for each kernel: each limit meets all forms.
        in_turn(count, self.combinations + self.combinations / 6)
    }

    fn any(&self, cut: fn(&(bool, bool, bool)) -> bool) -> bool {
        self.met.iter().any(cut)
    }
}

/// No limit, what the whole takes, limits below it, and the least one.
fn limits(whole: u64, least: impl Fn(&Context) -> Error, kernel: &str, threads: usize) -> Vec<Option<u64>> {
    let tiny = forced(kernel, threads).memory_bytes(1).build().unwrap();
    let Error::MemoryLimit { minimum_bytes, .. } = least(&tiny) else { panic!("one byte cannot be enough") };
    assert!(minimum_bytes < whole, "the sizes of this test must leave room for cuts");
    let part = |eighths: u64| minimum_bytes + (whole - minimum_bytes) * eighths / 8;
    [None, Some(whole), Some(part(5)), Some(part(2)), Some(part(1)), Some(minimum_bytes)].to_vec()
}

fn context(kernel: &str, threads: usize, limit: Option<u64>) -> Context {
    let builder = forced(kernel, threads);
    match limit {
        Some(bytes) => builder.memory_bytes(bytes),
        None => builder,
    }
    .build()
    .unwrap()
}

#[test]
fn syrk_gives_the_same_bits_in_every_combination() {
    let mut cuts = Cuts::default();
    // Tall enough for chunks, wide enough for bands, precise enough for batches.
    for (kind, rows, cols, precision_bits) in
        [(Kind::Graded, 700, 20, 64), (Kind::Unit, 40, 45, 200), (Kind::ZeroColumns, 530, 33, 100)]
    {
        let p = matrix(kind, rows, cols, precision_bits, 11);
        let flipped = p.transposed().to_matrix().unwrap();
        let full = expected(&p.view(), &p.view(), precision_bits, Factors::default());
        for (turn, kernel) in kernel_names().into_iter().enumerate() {
            for (which, threads) in THREADS.into_iter().enumerate() {
                let plain = context(kernel, threads, None);
                let whole = plan_syrk(&plain, rows, cols, precision_bits).unwrap().planned_bytes;
                let least = |ctx: &Context| {
                    syrk_with(ctx, &p, precision_bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap_err()
                };
                // Each limit on one number of threads, on another one for the next kernel.
                let limits = limits(whole, least, kernel, threads).into_iter().enumerate();
                for (_, limit) in limits.filter(|(at, _)| in_turn(4, at + turn + rows / 300).contains(&which)) {
                    let ctx = context(kernel, threads, limit);
                    for form in cuts.forms(4) {
                        let (op, stored) = [(Op::NoTranspose, &p), (Op::Transpose, &flipped)][form % 2];
                        let uplo = [Uplo::Lower, Uplo::Upper][(form + form / 2) % 2];
                        let options = SyrkOptions::new().accuracy(Accuracy::Norm).op(op).uplo(uplo);
                        let outcome = syrk_with(&ctx, stored, precision_bits, &options).unwrap();
                        cuts.note(&outcome.report);
                        assert!(
                            outcome.result == mirrored(&full, uplo),
                            "{kernel}, {threads} threads, limit {limit:?}, {op:?}, {uplo:?}, {kind:?}"
                        );
                        assert!(outcome.report.planned_bytes <= limit.unwrap_or(u64::MAX));
                    }
                }
            }
        }
    }
    assert!(cuts.combinations >= if effort() > 1 { 200 } else { 60 }, "only {} combinations", cuts.combinations);
    assert!(cuts.any(|cut| cut.0) && cuts.any(|cut| cut.1) && cuts.any(|cut| cut.2), "{:?}", cuts.met);
    assert!(cuts.any(|cut| *cut == (false, false, false)), "{:?}", cuts.met);
}

#[test]
fn gemm_gives_the_same_bits_in_every_combination() {
    let mut cuts = Cuts::default();
    let (m, n, k, precision_bits) = (19, 30, 600, 80);
    let (a, b) = (matrix(Kind::Graded, m, k, 90, 1), matrix(Kind::ZeroColumns, k, n, 70, 2));
    let (a_flipped, b_flipped) = (a.transposed().to_matrix().unwrap(), b.transposed().to_matrix().unwrap());
    let want = expected(&a.transposed(), &b.view(), precision_bits, Factors::default());
    for (turn, kernel) in kernel_names().into_iter().enumerate() {
        for (which, threads) in THREADS.into_iter().enumerate() {
            let plain = context(kernel, threads, None);
            let whole = plan_gemm(&plain, m, n, k, precision_bits).unwrap().planned_bytes;
            let least = |ctx: &Context| {
                gemm_with(ctx, &a, &b, precision_bits, &GemmOptions::new().accuracy(Accuracy::Norm)).unwrap_err()
            };
            let limits = limits(whole, least, kernel, threads).into_iter().enumerate();
            for (_, limit) in limits.filter(|(at, _)| in_turn(4, at + turn).contains(&which)) {
                let ctx = context(kernel, threads, limit);
                for form in cuts.forms(2) {
                    let (op_a, op_b) = [(Op::NoTranspose, Op::Transpose), (Op::Transpose, Op::NoTranspose)][form];
                    let left = if op_a == Op::Transpose { &a_flipped } else { &a };
                    let right = if op_b == Op::Transpose { &b_flipped } else { &b };
                    let options = GemmOptions::new().accuracy(Accuracy::Norm).op_a(op_a).op_b(op_b);
                    let outcome = gemm_with(&ctx, left, right, precision_bits, &options).unwrap();
                    cuts.note(&outcome.report);
                    assert!(outcome.result == want, "{kernel}, {threads} threads, limit {limit:?}, {op_a:?}, {op_b:?}");
                }
            }
        }
    }
    assert!(cuts.any(|cut| cut.0) && cuts.any(|cut| cut.1) && cuts.any(|cut| cut.2), "{:?}", cuts.met);
}

#[test]
fn factors_and_exact_integers_give_the_same_bits_under_every_limit() {
    let (rows, cols, precision_bits) = (560, 26, 90);
    let (alpha, beta) = (Float::with_val(60, 11) / 8u32, Float::with_val(60, -5));
    let whole_beta = Float::with_val(9, 3);
    let (p, c) = (matrix(Kind::Unit, rows, cols, 90, 4), matrix(Kind::Graded, cols, cols, 70, 5));
    let (integers, added) = (integer_matrix(rows, cols, 40, 6), integer_matrix(cols, cols, 90, 7));
    let accumulate = Some(Symmetric::lower(&c));
    let scaled = SyrkOptions::new().accuracy(Accuracy::Norm).alpha(&alpha).beta(&beta).accumulate(accumulate);
    let exact = SyrkOptions::new()
        .accuracy(Accuracy::Norm)
        .exact_integers(true)
        .beta(&whole_beta)
        .accumulate(Symmetric::upper(&added))
        .uplo(Uplo::Upper);
    let mut cuts = Cuts::default();
    for (operand, options, c) in [(&p, &scaled, &c), (&integers, &exact, &added)] {
        let free = context("reference", 1, None);
        let first = syrk_with(&free, operand, precision_bits, options).unwrap().result;
        let factors = Factors { alpha: options.alpha, beta: options.beta, accumulate: Some(c) };
        let full = match options.exact_integers {
            true => expected_integers(&operand.view(), &operand.view(), &first, factors),
            false => expected(&operand.view(), &operand.view(), precision_bits, factors),
        };
        let want = mirrored(&full, options.uplo);
        for (turn, kernel) in kernel_names().into_iter().enumerate() {
            for (which, threads) in [1, 3].into_iter().enumerate() {
                let plain = context(kernel, threads, None);
                let whole = syrk_with(&plain, operand, precision_bits, options).unwrap().report.planned_bytes;
                let least = |ctx: &Context| syrk_with(ctx, operand, precision_bits, options).unwrap_err();
                let limits = limits(whole, least, kernel, threads).into_iter().enumerate();
                for (_, limit) in limits.filter(|(at, _)| in_turn(2, at + turn).contains(&which)) {
                    let outcome =
                        syrk_with(&context(kernel, threads, limit), operand, precision_bits, options).unwrap();
                    cuts.note(&outcome.report);
                    let label = format!("{kernel}, {threads} threads, limit {limit:?}");
                    assert!(outcome.result == want, "{label}, exact integers: {}", options.exact_integers);
                }
            }
        }
    }
    assert!(cuts.any(|cut| cut.1) && cuts.any(|cut| cut.2), "{:?}", cuts.met);
}

#[test]
fn self_check_and_kept_windows_change_no_bit() {
    for kernel in kernel_names() {
        for threads in [1, 3] {
            let checked = forced(kernel, threads).self_check(true).build().unwrap();
            let plain = forced(kernel, threads).build().unwrap();
            let mut target = SymmetricMatrix::new(Matrix::from_f64s(2, 2, 60, &[1.0, 2.0, 2.0, 4.0]).unwrap()).unwrap();
            // The windows of one shape are dirty when the next one runs, and the target keeps its last result.
            for (index, (rows, cols, bits)) in
                [(30, 17, 300), (9, 40, 100), (64, 8, 128), (64, 8, 128), (3, 2, 60)].into_iter().enumerate()
            {
                let p = matrix(KINDS[index], rows, cols, bits, index as u64);
                let want = expected(&p.view(), &p.view(), bits, Factors::default());
                let uplo = if index % 2 == 0 { Uplo::Lower } else { Uplo::Upper };
                let options = SyrkOptions::new().accuracy(Accuracy::Norm).uplo(uplo);
                let outcome = syrk_with(&checked, &p, bits, &options).unwrap();
                assert!(outcome.result == mirrored(&want, uplo), "{kernel}, {threads} threads, case {index}, checked");
                syrk_into(&plain, &p, bits, &options, &mut target).unwrap();
                assert!(target == mirrored(&want, uplo), "{kernel}, {threads} threads, case {index}, into");
            }
        }
    }
}

#[test]
fn sizes_where_kernels_save_products_have_the_bits_of_the_reference() {
    // Beyond 448 columns and 512 rows a kernel may use a scheme with fewer block products; bands and chunks stop it.
    let (rows, cols, precision_bits) = (519, 459, 53);
    let p = matrix(Kind::Unit, rows, cols, 53, 8);
    let b = matrix(Kind::Graded, rows, 450, 53, 9);
    let integers = integer_matrix(rows, cols, 45, 10);
    let exact = SyrkOptions::new().accuracy(Accuracy::Norm).exact_integers(true);
    let reference = context("reference", 2, None);
    let want = syrk_with(&reference, &p, precision_bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap().result;
    let want_product =
        gemm_with(&reference, p.transposed(), &b, precision_bits, &GemmOptions::new().accuracy(Accuracy::Norm))
            .unwrap()
            .result;
    verify_syrk(&reference, &p, &want, precision_bits, &VerifyOptions::default()).unwrap();
    for (turn, kernel) in kernel_names().into_iter().filter(|&kernel| kernel != "reference").enumerate() {
        for (which, threads) in [1, 2, 5].into_iter().enumerate() {
            // The calls take turns over the numbers of threads; without a limit one thread and another number have all.
            let is_taken = |call: usize| in_turn(3, turn + call).contains(&which);
            let plain = context(kernel, threads, None);
            let whole = plan_syrk(&plain, rows, cols, precision_bits).unwrap().planned_bytes;
            for limit in [None, Some(whole * 3 / 4)] {
                let is_left_out = if limit.is_some() { !is_taken(1) } else { threads > 1 && !is_taken(0) };
                if is_left_out {
                    continue;
                }
                let ctx = context(kernel, threads, limit);
                let label = format!("{kernel}, {threads} threads, limit {limit:?}");
                let outcome =
                    syrk_with(&ctx, &p, precision_bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap();
                assert!(outcome.result == want, "{label}: syrk");
            }
            if is_taken(2) {
                let product =
                    gemm_with(&plain, p.transposed(), &b, precision_bits, &GemmOptions::new().accuracy(Accuracy::Norm))
                        .unwrap();
                assert!(product.result == want_product, "{kernel}, {threads} threads: gemm");
            }
            if is_taken(0) {
                let result = syrk_with(&plain, &integers, 53, &exact).unwrap().result;
                freivalds_syrk(&plain, &integers, &result, &VerifyOptions::default()).unwrap();
            }
        }
    }
}

#[test]
fn tiny_sizes_have_the_bits_of_the_forced_kernels() {
    let free = Context::builder().threads(2).build().unwrap();
    for kind in KINDS {
        for (rows, cols) in [(0, 2), (1, 1), (2, 3), (5, 1), (20, 10), (12, 12), (50, 4)] {
            for precision_bits in [53, 256, 700] {
                let p = matrix(kind, rows, cols, precision_bits, 21);
                let options = SyrkOptions::new().accuracy(Accuracy::Norm);
                let outcome = syrk_with(&free, &p, precision_bits, &options).unwrap();
                let product =
                    gemm_with(&free, p.transposed(), &p, precision_bits, &GemmOptions::new().accuracy(Accuracy::Norm))
                        .unwrap();
                for kernel in kernel_names() {
                    let ctx = forced(kernel, 1).build().unwrap();
                    let label = format!("{kernel} against {}, {kind:?} {rows} x {cols}", outcome.report.kernel);
                    assert!(outcome.result == syrk_with(&ctx, &p, precision_bits, &options).unwrap().result, "{label}");
                    let want = gemm_with(
                        &ctx,
                        p.transposed(),
                        &p,
                        precision_bits,
                        &GemmOptions::new().accuracy(Accuracy::Norm),
                    )
                    .unwrap();
                    assert!(product.result == want.result, "gemm, {label}");
                }
            }
        }
    }
}

/// Chunks are cut evenly, so a call meets other numbers of rows than the plan asks the kernel about. A kernel makes
/// equal passes over its rows, which are longer for 1813 rows than for 2176 and for 1450.
#[test]
fn even_chunks_have_room_whatever_the_plan_asks_about() {
    let (rows, cols, precision_bits) = (3626, 40, 64);
    let p = matrix(Kind::Unit, rows, cols, precision_bits, 5);
    let want =
        syrk_with(&context("reference", 2, None), &p, precision_bits, &SyrkOptions::new().accuracy(Accuracy::Norm))
            .unwrap()
            .result;
    for kernel in kernel_names() {
        for (batch_primes, band_panels, chunk_rows) in [(1000, 5, 2176), (3, 5, 2176), (1000, 3, 1300)] {
            let options = SyrkOptions::new().accuracy(Accuracy::Norm).hooks(Hooks::cut(Cut {
                batch_primes,
                band_panels,
                chunk_rows,
            }));
            let got = syrk_with(&context(kernel, 1, None), &p, precision_bits, &options).unwrap();
            assert_eq!(got.report.chunks, rows.div_ceil(chunk_rows), "{kernel}");
            assert_eq!(got.result, want, "{kernel}, chunks of {chunk_rows} rows");
        }
    }
}
