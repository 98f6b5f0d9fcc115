//! Batches on every kind of array: the bits of single calls, statuses, and problems that fail beside others.

mod common;

use common::{Array, Ctx, KINDS, LAYOUTS, definite, number, scalar};
use rug::Float;
use std::ptr;
use sunzi_c::*;

/// Shapes of operands, rows by columns, and bits of results.
const SHAPES: [(usize, usize, u32); 6] =
    [(3, 2, 256), (5, 5, 128), (0, 4, 256), (9, 1, 256), (1, 7, 64), (20, 10, 128)];

fn equal(got: &Array, want: &Array, what: &str) {
    got.check_gaps();
    for (row, col) in (0..got.rows).flat_map(|row| (0..got.cols).map(move |col| (row, col))) {
        let (got, want) = (got.get(row, col), want.get(row, col));
        assert!(got == want || got.is_nan() && want.is_nan(), "{what}: ({row}, {col}) is {got} instead of {want}");
    }
}

#[test]
fn batches_have_the_bits_of_single_calls() {
    let ctx = Ctx::new(2);
    let (three, minus) = (Float::with_val(20, 3), Float::with_val(20, -2));
    let (alpha, beta) = (scalar(&three), scalar(&minus));
    for (kind, layout) in KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| (kind, layout))) {
        let make = |seed: u64, shape: fn((usize, usize)) -> (usize, usize)| {
            let each = SHAPES.iter().enumerate().map(move |(at, &(rows, cols, bits))| {
                let entry = move |row: usize, col: usize| number(seed + (at * 100 + row * 7 + col) as u64, bits);
                Array::new(kind, layout, shape((rows, cols)), entry)
            });
            each.collect::<Vec<_>>()
        };
        let a = make(1, |shape| shape);
        let b = make(2, |(rows, cols)| (cols, rows));
        let describe = |arrays: &[Array]| arrays.iter().map(Array::describe).collect::<Vec<_>>();
        let count = SHAPES.len() as i64;
        let (c, singles) = (make(3, |(rows, _)| (rows, rows)), make(3, |(rows, _)| (rows, rows)));
        let (a_all, b_all, c_all) = (describe(&a), describe(&b), describe(&c));
        let mut statuses = [sunzi_status::SUNZI_INTERNAL; SHAPES.len()];
        // SAFETY: all arrays are live, and no two overlap.
        unsafe {
            let [no, lower] = [SUNZI_NO_TRANS, SUNZI_LOWER];
            let (a, b, c, said) = (a_all.as_ptr(), b_all.as_ptr(), c_all.as_ptr(), statuses.as_mut_ptr());
            ctx.ok(sunzi_gemm_batch(ctx.0, no, no, &alpha, a, b, ptr::null(), c, count, said), "gemm");
            ctx.ok(sunzi_syrk_batch(ctx.0, lower, no, &alpha, a, &beta, c, count, ptr::null_mut()), "syrk");
            for (at, single) in singles.iter().enumerate() {
                let single = single.describe();
                ctx.ok(sunzi_gemm(ctx.0, no, no, &alpha, &a_all[at], &b_all[at], ptr::null(), &single), "gemm");
                ctx.ok(sunzi_syrk(ctx.0, lower, no, &alpha, &a_all[at], &beta, &single), "syrk");
            }
        }
        assert!(statuses.iter().all(|&status| status == sunzi_status::SUNZI_OK));
        for (got, want) in c.iter().zip(&singles) {
            equal(got, want, &format!("products, {kind:?}, layout {layout}"));
        }
    }
}

#[test]
fn factors_and_solutions_have_the_bits_of_single_calls() {
    let ctx = Ctx::new(2);
    let orders = [4, 0, 13, 30, 1];
    for (kind, layout) in KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| (kind, layout))) {
        for uplo in [SUNZI_LOWER, SUNZI_UPPER] {
            let make = || orders.map(|order| Array::of(kind, layout, &definite(order, 192, 3)));
            let right = || orders.map(|order| Array::new(kind, layout, (order, 3), |i, j| number((i + j) as u64, 200)));
            let (a, singles, b, single_b) = (make(), make(), right(), right());
            let (a_all, b_all) = (a.each_ref().map(Array::describe), b.each_ref().map(Array::describe));
            let count = orders.len() as i64;
            let (no, unit) = (SUNZI_NO_TRANS, SUNZI_NON_UNIT);
            // SAFETY: all arrays are live, and no two overlap.
            unsafe {
                let (a, b) = (a_all.as_ptr(), b_all.as_ptr());
                ctx.ok(sunzi_cholesky_batch(ctx.0, uplo, a, count, ptr::null_mut()), "cholesky");
                let solved =
                    sunzi_trsm_batch(ctx.0, SUNZI_LEFT, uplo, no, unit, ptr::null(), a, b, count, ptr::null_mut());
                ctx.ok(solved, "trsm");
                for (a, b) in singles.iter().zip(&single_b) {
                    let (a, b) = (a.describe(), b.describe());
                    ctx.ok(sunzi_cholesky(ctx.0, uplo, &a), "cholesky");
                    ctx.ok(sunzi_trsm(ctx.0, SUNZI_LEFT, uplo, no, unit, ptr::null(), &a, &b), "trsm");
                }
            }
            for (got, want) in a.iter().chain(&b).zip(singles.iter().chain(&single_b)) {
                equal(got, want, &format!("factors, {kind:?}, layout {layout}, uplo {uplo}"));
            }
        }
    }
}

#[test]
fn problems_that_fail_leave_the_others_alone() {
    let ctx = Ctx::new(1);
    let kind = KINDS[0];
    let good = || Array::of(kind, SUNZI_COL_MAJOR, &definite(5, 128, 3));
    let mut bad = good();
    bad.set(3, 3, &Float::with_val(128, -1));
    let (arrays, before) = ([good(), bad, good()], good());
    let all = arrays.each_ref().map(Array::describe);
    let mut statuses = [sunzi_status::SUNZI_INTERNAL; 3];
    // SAFETY: all arrays are live, and no two overlap; the pointers that are wrong are null.
    unsafe {
        let status = sunzi_cholesky_batch(ctx.0, SUNZI_LOWER, all.as_ptr(), 3, statuses.as_mut_ptr());
        assert_eq!(status, sunzi_status::SUNZI_NOT_POSITIVE_DEFINITE);
        assert_eq!(statuses, [sunzi_status::SUNZI_OK, status, sunzi_status::SUNZI_OK]);
        let message = ctx.message();
        assert!(message.starts_with("problem 1 of 3: the matrix is not positive definite: index 3"), "{message}");
        // The bad one is as it was, the others are factors.
        assert_eq!(arrays[1].get(4, 4), before.get(4, 4));
        let single = before.describe();
        ctx.ok(sunzi_cholesky(ctx.0, SUNZI_LOWER, &single), "cholesky");
        equal(&arrays[0], &before, "first");
        equal(&arrays[2], &before, "last");
        let refused = sunzi_cholesky_batch(ctx.0, SUNZI_LOWER, ptr::null(), 2, statuses.as_mut_ptr());
        assert_eq!((refused, statuses[0], statuses[1]), (sunzi_status::SUNZI_NULL_POINTER, refused, refused));
        let refused = sunzi_cholesky_batch(ctx.0, SUNZI_LOWER, all.as_ptr(), -1, ptr::null_mut());
        assert_eq!(refused, sunzi_status::SUNZI_INVALID_SIZE);
        ctx.ok(sunzi_cholesky_batch(ctx.0, SUNZI_LOWER, ptr::null(), 0, ptr::null_mut()), "nothing");
    }
}
