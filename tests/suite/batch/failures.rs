//! Problems that fail beside others that do not; calls that end as a whole.

use super::{context, definite, operands};
use crate::common::{Kind, matrix};
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::batch::{
    cholesky_batch, cholesky_batch_into, cholesky_batch_with, gemm_batch, gemm_batch_with, syrk_batch, syrk_batch_into,
    syrk_batch_with, trsm_batch_with,
};
use sunzi::{
    Cholesky, CholeskyOptions, Context, Error, IndexBase, Matrix, Symmetric, SymmetricMatrix, SyrkOptions, TrsmOptions,
    cholesky,
};

#[test]
fn one_bad_matrix_of_many_costs_the_others_nothing() {
    let one = context(1, None);
    let block = definite(256, 17).swap_remove(7);
    let order = block.rows();
    let mut bad = block.clone().into_matrix();
    bad.set_f64(order - 1, order - 1, -1.0).unwrap();
    let mut skew = block.clone().into_matrix();
    skew.set_f64(3, 1, 77.0).unwrap();
    let (bad, flat) = (SymmetricMatrix::new(bad).unwrap(), matrix(Kind::Unit, 3, 2, 256, 1));
    let want = cholesky(&one, &block, 256).unwrap();
    for threads in [1, 3] {
        let ctx = context(threads, None);
        let all = (0..1000).map(|at| match at {
            400 => Symmetric::from(&bad),
            600 => Symmetric::from(&skew),
            700 => Symmetric::from(&flat),
            _ => Symmetric::from(&block),
        });
        let batch = cholesky_batch_with(&ctx, all.clone(), 256, &CholeskyOptions::new()).unwrap();
        assert_eq!((batch.report.problems, batch.report.failed), (1000, 3));
        for (at, factor) in batch.result.iter().enumerate() {
            match (at, factor) {
                (400, Err(Error::Problem { problem: 400, count: 1000, error })) => {
                    let index = order - 1;
                    assert!(matches!(**error, Error::NotPositiveDefinite { index: found, .. } if found == index));
                }
                (600, Err(Error::Problem { problem: 600, error, .. })) => {
                    assert!(matches!(**error, Error::NotSymmetric { row: 3, column: 1 }));
                }
                (700, Err(Error::Problem { problem: 700, error, .. })) => {
                    assert!(matches!(**error, Error::NotSquare { rows: 3, cols: 2, .. }));
                }
                (_, factor) => assert!(factor.as_ref().unwrap().factor() == want.factor(), "{at}"),
            }
        }
        // The short form gives the first of them.
        let error = cholesky_batch(&ctx, all.clone(), 256).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        let text = error.to_string();
        assert!(text.starts_with("problem 400 of 1000: the matrix is not positive definite: index 19: "), "{text}");
        let from_one = error.text().in_base(IndexBase::One).to_string();
        assert!(from_one.starts_with("problem 401 of 1000: the matrix is not positive definite: index 20: "));
        assert!(from_one.ends_with("(counted from 1)"), "{from_one}");
        // In memory of the caller a failed problem leaves the factor of the 0 x 0 matrix.
        let mut places = vec![want.clone(); 1000];
        let outcome = cholesky_batch_into(&ctx, all, 256, &CholeskyOptions::new(), &mut places).unwrap();
        assert!(outcome.result[400].is_err() && outcome.result[401].is_ok());
        assert_eq!((places[400].factor().rows(), places[401].factor()), (0, want.factor()));
    }
}

#[test]
fn every_refusal_names_its_problem() {
    let ctx = context(2, None);
    let (a, b) = (matrix(Kind::Unit, 3, 4, 100, 1), matrix(Kind::Unit, 4, 2, 100, 2));
    let products = gemm_batch_with(&ctx, [(&a, &b), (&b, &a), (&a, &b)], 100, &sunzi::GemmOptions::new()).unwrap();
    let error = products.result[1].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "problem 1 of 3: gemm: shapes do not fit: 4 x 2 against 3 x 4");
    assert_eq!(
        error.text().in_base(IndexBase::One),
        "problem 2 of 3: gemm: shapes do not fit: 4 x 2 against 3 x 4 \
         (counted from 1)"
    );
    assert!(products.result[0].is_ok() && products.result[2].is_ok());
    let mut singular = matrix(Kind::Unit, 4, 4, 100, 3);
    singular.set_f64(2, 2, 0.0).unwrap();
    let solves = trsm_batch_with(&ctx, [(&singular, &b)], 100, &TrsmOptions::new()).unwrap();
    let error = solves.result[0].as_ref().unwrap_err();
    assert!(matches!(error, Error::Problem { error, .. } if matches!(**error, Error::Singular { index: 2 })));
    for bits in [1, 100_000] {
        let error = gemm_batch(&ctx, [(&a, &b)], bits).unwrap_err();
        assert!(matches!(error, Error::Problem { problem: 0, count: 1, .. }) && error.exit_code() == 2, "{error}");
    }
    // Eight of one shape, which may go side by side, are refused as one is.
    let nan = rug::Float::with_val(60, rug::float::Special::Nan);
    for count in [1, 8] {
        let scaled = syrk_batch_with(&ctx, vec![&a; count], 100, &SyrkOptions::new().beta(&nan)).unwrap();
        let products = vec![(&a, &b); count];
        let mixed = gemm_batch_with(&ctx, products.clone(), 100, &sunzi::GemmOptions::new().beta(&nan)).unwrap();
        assert_eq!(
            (scaled.report.failed, mixed.report.failed),
            (count, count),
            "{count} problems, beta is not a number"
        );
        for bits in [1, u32::MAX - 1, u32::MAX] {
            let outcomes = gemm_batch_with(&ctx, products.clone(), bits, &sunzi::GemmOptions::new()).unwrap();
            assert_eq!(outcomes.report.failed, count, "{count} problems, {bits} bits");
        }
    }
    // As many places as problems.
    let mut places = vec![SymmetricMatrix::default(); 2];
    for count in [0, 1, 3] {
        let problems = vec![&a; count];
        let error = syrk_batch_into(&ctx, problems, 100, &SyrkOptions::new(), &mut places).unwrap_err();
        let text = format!("syrk_batch: there are {count} problems, but 2 matrices for results");
        assert_eq!(error.to_string(), text);
    }
    // A block of another shape is refused, blocks of the right one are filled.
    let (mut wide, mut high) = (Matrix::zeros(8, 9, 100).unwrap(), Matrix::zeros(7, 4, 100).unwrap());
    let mut other = Matrix::zeros(3, 3, 100).unwrap();
    let places = [
        wide.view_mut().block(3..7, 5..9).unwrap(),
        high.view_mut().block(1..5, 0..4).unwrap(),
        other.view_mut().block(0..3, 0..3).unwrap(),
    ];
    let outcome = syrk_batch_into(&ctx, [&a; 3], 100, &SyrkOptions::new(), places).unwrap();
    assert!(outcome.result[0].is_ok() && outcome.result[1].is_ok());
    assert!(matches!(&outcome.result[2], Err(Error::Problem { error, .. })
        if matches!(**error, Error::ShapeMismatch { .. })));
    let q = sunzi::syrk(&ctx, &a, 100).unwrap();
    for block in [wide.view().block(3..7, 5..9), high.view().block(1..5, 0..4)] {
        assert!(block.unwrap().to_matrix().unwrap() == *q.as_matrix());
    }
}

#[test]
fn progress_counts_problems_and_may_cancel() {
    for threads in [1, 3] {
        let matrices = operands(200, 23);
        let total = 20 * matrices.len() as u64;
        let calls = std::sync::Arc::new(AtomicU64::new(0));
        let most = std::sync::Arc::new(AtomicU64::new(0));
        let (seen, largest) = (calls.clone(), most.clone());
        let watch = move |stop_at: u64| {
            let (seen, largest) = (seen.clone(), largest.clone());
            Context::builder().threads(threads).progress(move |progress| {
                assert_eq!(progress.phase, "batch");
                seen.fetch_add(1, Ordering::Relaxed);
                largest.fetch_max(progress.done, Ordering::Relaxed);
                progress.done < stop_at
            })
        };
        let problems = || matrices.iter().cycle().take(total as usize);
        let ctx = watch(u64::MAX).build().unwrap();
        syrk_batch(&ctx, problems(), 200).unwrap();
        assert_eq!(most.load(Ordering::Relaxed), total);
        assert!(calls.load(Ordering::Relaxed) > total);
        most.store(0, Ordering::Relaxed);
        let ctx = watch(30).build().unwrap();
        assert!(matches!(syrk_batch(&ctx, problems(), 200), Err(Error::Cancelled)));
        assert!(most.load(Ordering::Relaxed) < 30 + threads as u64);
        let ctx = watch(0).build().unwrap();
        let refused = syrk_batch_with(&ctx, problems(), 200, &SyrkOptions::new());
        assert!(matches!(refused, Err(Error::Cancelled)));
        assert!(cholesky_batch(&ctx, &definite(64, 1), 64).is_err());
        // The context is as good as before.
        let plain = ctx.with_progress(|_| true);
        assert!(Cholesky::default().factor().rows() == 0 && syrk_batch(&plain, problems(), 200).is_ok());
    }
}
