//! Memory limits: the least that is named is enough, a byte less is refused before any work, bits are the same.

use super::{context, definite, operands};
use crate::common::{Kind, matrix};
use rug::Float;
use sunzi::batch::{cholesky_batch_with, syrk_batch_with, trsm_batch};
use sunzi::plans::plan_syrk;
use sunzi::{Accuracy, Cholesky, CholeskyOptions, Context, Error, Matrix, Result, SyrkOptions, syrk_with};

/// The least limit that `call` names.
fn least<R>(call: impl Fn(&Context) -> Result<R>) -> u64 {
    match call(&context(3, Some(1))) {
        Err(Error::MemoryLimit { limit_bytes: 1, minimum_bytes }) => minimum_bytes,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("one byte is enough"),
    }
}

fn check<R: PartialEq>(call: impl Fn(&Context) -> Result<(R, usize, u64)>) {
    let free = call(&context(3, None)).unwrap();
    assert_eq!(free.1, 3);
    let least = least(&call);
    assert!(matches!(call(&context(3, Some(least - 1))), Err(Error::MemoryLimit { minimum_bytes, .. })
        if minimum_bytes == least));
    let mut threads = Vec::new();
    for limit in [least, least + least / 4, 2 * least, 20 * least + (100 << 20)] {
        let (results, workers, planned_bytes) = call(&context(3, Some(limit))).unwrap();
        assert!(results == free.0 && planned_bytes <= limit, "{planned_bytes} planned of {limit}");
        threads.push(workers);
    }
    assert!(threads.is_sorted() && threads[0] == 1 && threads[3] == 3, "{threads:?}");
}

#[test]
fn products_keep_to_limits() {
    let ps = operands(256, 31);
    for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
        let options = SyrkOptions::new().accuracy(accuracy);
        let call = |ctx: &Context| {
            let batch = syrk_batch_with(ctx, &ps, 256, &options)?;
            let results = batch.result.into_iter().collect::<Result<Vec<_>>>()?;
            Ok((results, batch.report.threads, batch.report.planned_bytes))
        };
        match accuracy {
            Accuracy::Norm => check(call),
            // The ranges of the entries may ask for more than entries of one size do: then problems are refused.
            _ => {
                let (free, least) = (call(&context(3, None)).unwrap().0, least(call));
                let tight = syrk_batch_with(&context(3, Some(least)), &ps, 256, &options).unwrap();
                for (at, (tight, free)) in tight.result.iter().zip(&free).enumerate() {
                    match tight {
                        Ok(tight) => assert!(tight == free),
                        Err(Error::Problem { problem, error, .. }) => {
                            assert!(*problem == at && matches!(**error, Error::MemoryLimit { .. }), "{error}");
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                let roomy = syrk_batch_with(&context(3, Some(least + (64 << 20))), &ps, 256, &options).unwrap();
                assert!(roomy.result.iter().zip(&free).all(|(q, free)| q.as_ref().unwrap() == free));
            }
        }
    }
}

#[test]
fn factors_keep_to_limits() {
    let matrices = definite(256, 37);
    check(|ctx| {
        let batch = cholesky_batch_with(ctx, &matrices, 256, &CholeskyOptions::new())?;
        let factors = batch.result.into_iter().map(|factor| factor.map(Cholesky::into_factor));
        let factors = factors.collect::<Result<Vec<Matrix>>>()?;
        Ok((factors, batch.report.threads, batch.report.planned_bytes))
    });
}

#[test]
fn solves_keep_to_limits() {
    let factors = sunzi::batch::cholesky_batch(&context(1, None), &definite(200, 41), 200).unwrap();
    let factors = factors.into_iter().map(Cholesky::into_factor).collect::<Vec<_>>();
    let pairs = || factors.iter().zip(&factors);
    let free = trsm_batch(&context(2, None), pairs(), 200).unwrap();
    let least = least(|ctx| trsm_batch(ctx, pairs(), 200));
    for limit in [least, 2 * least, 10 * least] {
        assert!(trsm_batch(&context(2, Some(limit)), pairs(), 200).unwrap() == free, "{limit} of {least}");
    }
}

/// A matrix whose Gram matrix has entries that lie `depth` bits below the norms of their columns, all of them.
fn deep(rows: usize, cols: usize, bits: u32, depth: u32) -> Matrix {
    let noise = matrix(Kind::Unit, rows, cols, bits, 99);
    Matrix::from_fn(rows, cols, bits, |row, col| {
        if row == col { Float::with_val(bits, 1) } else { noise.float(row, col) >> depth }
    })
    .unwrap()
}

/// A problem that takes more than the share of one worker is computed with the memory of all, beside others that take
/// less.
#[test]
fn a_problem_larger_than_a_share_has_the_memory_of_all() {
    let (order, bits, options) = (40, 53, SyrkOptions::new());
    let mut ps = vec![matrix(Kind::Unit, order, order, bits, 1); 3];
    ps.push(deep(order, order, bits, 2000));
    let want = syrk_with(&context(1, None), &ps[3], bits, &options).unwrap().result;
    let is_enough = |limit| syrk_with(&context(1, Some(limit)), &ps[3], bits, &options).is_ok();
    // Two workers take room for two problems whose entries are of one size.
    let planned = plan_syrk(&context(1, Some(u64::MAX)), order, order, bits).unwrap().planned_bytes;
    let mut refused = 0;
    for eighths in 16..40 {
        let limit = planned * eighths / 8;
        let batch = syrk_batch_with(&context(2, Some(limit)), &ps, bits, &options).unwrap();
        // All that there is beside the other results is enough, and a share of it, less than half, is not.
        let others = 3 * want.bytes() + (10 << 10);
        if batch.report.threads == 2 && is_enough(limit - others) && !is_enough(limit / 2 + want.bytes()) {
            assert_eq!(batch.report.failed, 0, "{limit} bytes: {:?}", batch.result[3].as_ref().err());
            assert!(batch.result[3].as_ref().unwrap() == &want);
            refused += 1;
        }
    }
    assert!(refused > 1, "no limit was too small for one worker and large enough for one alone");
}
