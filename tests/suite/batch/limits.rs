//! Memory limits: the least that is named is enough, a byte less is refused before any work, bits are the same.

use super::{context, definite, operands};
use crate::common::{Kind, matrix};
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Error, Matrix, Result, SyrkOptions, cholesky_batch_with,
    syrk_batch_with, trsm_batch,
};

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
    let factors = sunzi::cholesky_batch(&context(1, None), &definite(200, 41), 200).unwrap();
    let factors = factors.into_iter().map(Cholesky::into_factor).collect::<Vec<_>>();
    let pairs = || factors.iter().zip(&factors);
    let free = trsm_batch(&context(2, None), pairs(), 200).unwrap();
    let least = least(|ctx| trsm_batch(ctx, pairs(), 200));
    for limit in [least, 2 * least, 10 * least] {
        assert!(trsm_batch(&context(2, Some(limit)), pairs(), 200).unwrap() == free, "{limit} of {least}");
    }
}

/// A problem that does not fit the share of one worker is computed with the memory of all: whatever limit does on one
/// thread, a quarter more does on two.
#[test]
fn a_problem_larger_than_a_share_has_the_memory_of_all() {
    let (rows, cols, bits) = (60, 40, 256);
    let mut ps: Vec<Matrix> = (0..12).map(|seed| matrix(Kind::Unit, rows, cols, bits, seed)).collect();
    ps.push(matrix(Kind::Graded, rows, cols, bits, 99));
    // Entries of a column far apart take more bits than those of one size.
    for row in 0..rows {
        let entry = ps[12].float(row, 0) >> (40 * row) as u32;
        ps[12].set_float(row, 0, &entry).unwrap();
    }
    let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
    let run = |threads: usize, limit: u64| {
        let batch = syrk_batch_with(&context(threads, Some(limit)), &ps, bits, &options).ok()?;
        Some((batch.report.threads, batch.result.iter().filter(|result| result.is_err()).count()))
    };
    let (mut limit, mut shared) = (64 << 10, 0);
    while limit < 64 << 20 {
        if run(1, limit).is_some_and(|(_, failed)| failed == 0) {
            let (threads, failed) = run(2, limit + limit / 4).unwrap();
            assert_eq!(failed, 0, "{limit} bytes do on one thread, a quarter more not on two");
            shared += usize::from(threads == 2);
        }
        limit += limit / 16;
    }
    assert!(shared > 5, "{shared} limits left two threads at work");
}
