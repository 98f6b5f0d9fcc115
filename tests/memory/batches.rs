//! What batches allocate: results and lists as planned, and nothing for a small problem beside its result.

use crate::{alone, matrix, rise};
use sunzi::advanced::store::allocation_count;
use sunzi::batch::{
    cholesky_batch_into, cholesky_batch_with, gemm_batch_into, syrk_batch_into, syrk_batch_with, trsm_batch_into,
    trsm_batch_with,
};
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Error, GemmOptions, Matrix, Symmetric, SymmetricMatrix, SyrkOptions,
    TrsmOptions, cholesky_with, gemm_with,
};

/// A positive definite matrix.
fn definite(order: usize, bits: u32) -> Matrix {
    let mut a = matrix(order, order, bits, 1);
    (0..order).for_each(|i| a.set_f64(i, i, order as f64).unwrap());
    a
}

fn context(threads: usize, memory_bytes: Option<u64>) -> Context {
    let builder = Context::builder().threads(threads);
    memory_bytes.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build().unwrap()
}

/// Blocks asked for by a call on so many problems, beyond those of a call on half of them: by this thread, so that the
/// call must have no other.
fn beyond_half(count: usize, mut call: impl FnMut(usize)) -> u64 {
    call(count); // memory that is kept for later calls
    let mut counted = |count: usize| {
        let before = allocation_count();
        call(count);
        allocation_count() - before
    };
    let (half, all) = (counted(count / 2), counted(count));
    all.saturating_sub(half)
}

/// Choices with which small problems go side by side.
struct ByNorms {
    syrk: SyrkOptions<'static>,
    gemm: GemmOptions<'static>,
    cholesky: CholeskyOptions,
    trsm: TrsmOptions<'static>,
}

fn norms() -> ByNorms {
    ByNorms {
        syrk: SyrkOptions::new().accuracy(Accuracy::Norm),
        gemm: GemmOptions::new().accuracy(Accuracy::Norm),
        cholesky: CholeskyOptions::new().accuracy(Accuracy::Norm),
        trsm: TrsmOptions::new().accuracy(Accuracy::Norm),
    }
}

#[test]
fn small_problems_allocate_nothing_beside_their_results() {
    let _alone = alone();
    let ctx = context(1, None);
    let one = |bits: u32| {
        let (p, q) = (matrix(20, 10, bits, 1), matrix(10, 7, bits, 2));
        let mut grams = vec![SymmetricMatrix::default(); 200];
        let syrk = beyond_half(200, |count| {
            let places = &mut grams[..count];
            syrk_batch_into(&ctx, vec![&p; count], bits, &norms().syrk, places).unwrap();
        });
        let mut products = vec![Matrix::empty(); 200];
        let gemm = beyond_half(200, |count| {
            let pairs = std::iter::repeat_n((&p, &q), count);
            gemm_batch_into(&ctx, pairs, bits, &norms().gemm, &mut products[..count]).unwrap();
        });
        let mut factors = vec![Cholesky::default(); 200];
        let mut cholesky = |order: usize| {
            let a = definite(order, bits);
            beyond_half(200, |count| {
                let matrices = std::iter::repeat_n(Symmetric::lower(&a), count);
                cholesky_batch_into(&ctx, matrices, bits, &norms().cholesky, &mut factors[..count]).unwrap();
            })
        };
        let (t, b) = (definite(20, bits), matrix(20, 8, bits, 4));
        let mut solutions = vec![Matrix::empty(); 200];
        let trsm = beyond_half(200, |count| {
            let pairs = std::iter::repeat_n((&t, &b), count);
            trsm_batch_into(&ctx, pairs, bits, &norms().trsm, &mut solutions[..count]).unwrap();
        });
        [syrk, gemm, cholesky(6), cholesky(12), trsm]
    };
    for bits in [64, 256, 1024] {
        let outcome = one(bits);
        let ctx_takes_it = sunzi::syrk_with(&ctx, &matrix(20, 10, bits, 1), bits, &norms().syrk).unwrap();
        let is_direct = ctx_takes_it.report.kernel == "direct";
        let (p, q) = (matrix(20, 10, bits, 1), matrix(10, 7, bits, 2));
        let product = gemm_with(&ctx, &p, &q, bits, &norms().gemm).unwrap();
        let is_multiplied_directly = product.report.kernel == "direct";
        let factor = cholesky_with(&ctx, Symmetric::lower(&definite(12, bits)), bits, &norms().cholesky).unwrap();
        let is_factored_directly = factor.report.kernel == "direct";
        let systems = vec![(definite(20, bits), matrix(20, 8, bits, 4)); 8];
        let batch = trsm_batch_with(&ctx, systems.iter().map(|(t, b)| (t, b)), bits, &norms().trsm).unwrap();
        // Systems that lie side by side.
        assert!(outcome[4] <= 4 || batch.report.direct < 8, "{bits} bits: {outcome:?}");
        // A list that grows is all that may differ.
        assert!(outcome[0] <= 4 || !is_direct, "{bits} bits: {outcome:?}");
        assert!(outcome[1] <= 4 || !is_multiplied_directly, "{bits} bits: {outcome:?}");
        // Six rows are few enough on every kernel.
        assert!(outcome[2] <= 4, "{bits} bits: {outcome:?}");
        assert!(outcome[3] <= 4 || !is_factored_directly, "{bits} bits: {outcome:?}");
    }
}

#[test]
fn batches_keep_their_plan_and_their_limit() {
    let _alone = alone();
    let (bits, count) = (256, 40);
    let (p, a) = (matrix(60, 30, bits, 1), definite(40, bits));
    let b = matrix(40, 9, bits, 3);
    for threads in [1, 3] {
        let syrk = |ctx: &Context| {
            let batch = syrk_batch_with(ctx, vec![&p; count], bits, &norms().syrk)?;
            Ok::<_, Error>((batch.result.iter().all(Result::is_ok), batch.report))
        };
        let cholesky = |ctx: &Context| {
            let matrices = vec![Symmetric::lower(&a); count];
            let batch = cholesky_batch_with(ctx, matrices, bits, &norms().cholesky)?;
            Ok::<_, Error>((batch.result.iter().all(Result::is_ok), batch.report))
        };
        let trsm = |ctx: &Context| {
            let batch = trsm_batch_with(ctx, vec![(&a, &b); count], bits, &norms().trsm)?;
            Ok::<_, Error>((batch.result.iter().all(Result::is_ok), batch.report))
        };
        // Windows of one shape are kept while problems of another one run.
        let q = matrix(24, 90, bits, 5);
        let unlike = |ctx: &Context| {
            let operands = [&p, &q].into_iter().cycle().take(count);
            let batch = syrk_batch_with(ctx, operands, bits, &norms().syrk)?;
            Ok::<_, Error>((batch.result.iter().all(Result::is_ok), batch.report))
        };
        type Call<'c> = &'c dyn Fn(&Context) -> Result<(bool, sunzi::report::BatchReport), Error>;
        for call in [&syrk as Call<'_>, &cholesky, &trsm, &unlike] {
            let (peak, outcome) = rise(|| call(&context(threads, None)).unwrap());
            let report = outcome.1;
            let what = format!("{}, {threads} threads: {peak}, {}", report.operation, report.planned_bytes);
            // The threads themselves, and what each makes to run.
            let own = (32 << 10) * (1 + threads as u64);
            assert!(outcome.0 && peak <= report.planned_bytes + own, "{what}");
            let Err(Error::MemoryLimit { minimum_bytes, .. }) = call(&context(threads, Some(1))) else {
                panic!("one byte is enough");
            };
            for limit in [minimum_bytes, 2 * minimum_bytes] {
                let (peak, (right, report)) = rise(|| call(&context(threads, Some(limit))).unwrap());
                let planned = report.planned_bytes;
                assert!(
                    right && peak <= planned + own && planned <= limit,
                    "{what}, limit {limit}: {peak} of {planned}"
                );
            }
        }
    }
}
