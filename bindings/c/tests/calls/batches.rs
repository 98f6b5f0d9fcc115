//! Batches on every kind of array: the bits of single calls, statuses, and problems that fail beside others.

use crate::common::{Array, Ctx, KINDS, LAYOUTS, definite, number, scalar};
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

/// `[[4, 1], [2, 5]]` among what is added, where both triangles count.
#[test]
fn one_matrix_that_is_not_symmetric_leaves_the_others_alone() {
    let ctx = Ctx::new(1);
    let one = Float::with_val(53, 1);
    let beta = scalar(&one);
    for (kind, layout) in KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| (kind, layout))) {
        let make = |entries: [[i32; 2]; 2]| {
            Array::new(kind, layout, (2, 2), |row, col| Float::with_val(100, entries[row][col]))
        };
        let a = [make([[1, 0], [0, 1]]), make([[1, 0], [0, 1]])];
        let c = [make([[4, 1], [2, 5]]), make([[4, 1], [1, 5]])];
        let (a_all, c_all) = (a.each_ref().map(Array::describe), c.each_ref().map(Array::describe));
        let mut statuses = [sunzi_status::SUNZI_INTERNAL; 2];
        let (no, both, said) = (SUNZI_NO_TRANS, SUNZI_BOTH, statuses.as_mut_ptr());
        let status = {
            let (a, c) = (a_all.as_ptr(), c_all.as_ptr());
            // SAFETY: all arrays are live, and no two overlap.
            unsafe { sunzi_syrk_batch(ctx.0, both, no, ptr::null(), a, &beta, c, 2, said) }
        };
        assert_eq!(statuses, [sunzi_status::SUNZI_NOT_SYMMETRIC, sunzi_status::SUNZI_OK]);
        assert_eq!((status, ctx.place()), (statuses[0], (1, 0)));
        assert!(ctx.message().starts_with("problem 0 of 2: c: "), "{}", ctx.message());
        equal(&c[0], &make([[4, 1], [2, 5]]), "as it was");
        equal(&c[1], &make([[5, 1], [1, 6]]), "the other");
    }
}

/// As in the single calls, what an alpha of 0 multiplies is not looked at: neither NaN nor a pivot of 0.
#[test]
fn operands_without_a_part_are_not_looked_at() {
    let ctx = Ctx::new(1);
    let (zero, two) = (Float::with_val(53, 0), Float::with_val(53, 2));
    let (alpha, beta) = (scalar(&zero), scalar(&two));
    for layout in LAYOUTS {
        let of = |value: Float| Array::new(KINDS[0], layout, (2, 2), move |_, _| value.clone());
        let (bad, no) = ([of(Float::with_val(80, rug::float::Special::Nan)), of(zero.clone())], SUNZI_NO_TRANS);
        let bad_all = bad.each_ref().map(Array::describe);
        let fresh = || [of(Float::with_val(80, 3)), of(Float::with_val(90, 5))];
        let (c, d, b) = (fresh(), fresh(), fresh());
        let [c_all, d_all, b_all] = [&c, &d, &b].map(|all| all.each_ref().map(Array::describe));
        let (bad, c_first, d_first, b_first) = (bad_all.as_ptr(), c_all.as_ptr(), d_all.as_ptr(), b_all.as_ptr());
        let none = ptr::null_mut();
        // SAFETY: all arrays are live, and no two overlap.
        unsafe {
            ctx.ok(sunzi_syrk_batch(ctx.0, SUNZI_LOWER, no, &alpha, bad, &beta, c_first, 2, none), "syrk");
            ctx.ok(sunzi_gemm_batch(ctx.0, no, no, &alpha, bad, bad, &beta, d_first, 2, none), "gemm");
            let (side, uplo, unit) = (SUNZI_LEFT, SUNZI_LOWER, SUNZI_NON_UNIT);
            ctx.ok(sunzi_trsm_batch(ctx.0, side, uplo, no, unit, &alpha, bad, b_first, 2, none), "trsm");
        }
        for (at, value) in [3, 5].into_iter().enumerate() {
            assert_eq!(
                (c[at].get(1, 0), c[at].get(0, 1)),
                (Float::with_val(90, 2 * value), Float::with_val(90, value))
            );
            assert_eq!((d[at].get(1, 0), d[at].get(0, 1)), (Float::with_val(90, 2 * value), d[at].get(0, 0)));
            assert!(b[at].get(0, 0).is_zero() && b[at].get(1, 1).is_zero());
        }
    }
}

#[test]
fn factors_that_reach_norms_alone_are_reported() {
    let ctx = Ctx::with(&sunzi_options { threads: 1, accuracy: SUNZI_ENTRYWISE, ..sunzi_options_default() });
    // Entries beyond any number of bits that is tried.
    let far = |row: usize, col: usize| Float::with_val(60, 1) << if row == col { 0 } else { -(1 << 28) };
    let even = Array::of(KINDS[0], SUNZI_COL_MAJOR, &definite(4, 128, 3));
    let wide = Array::new(KINDS[0], SUNZI_COL_MAJOR, (2, 2), far);
    let all = [even.describe(), wide.describe()];
    // SAFETY: all arrays are live, and no two overlap.
    let factor = |count| unsafe { sunzi_cholesky_batch(ctx.0, SUNZI_LOWER, all.as_ptr(), count, ptr::null_mut()) };
    ctx.ok(factor(1), "even");
    let report = ctx.report();
    assert!(report.accuracy == SUNZI_ENTRYWISE && report.range_bits > 0, "{report:?}");
    ctx.ok(factor(2), "both");
    assert_eq!(ctx.report().accuracy, SUNZI_NORM);
}

/// A problem whose entries ask for more bits than were planned names a limit that it runs with.
#[test]
fn refusals_of_one_problem_name_the_whole_limit() {
    let spread = |row: usize, col: usize| number((row * 31 + col) as u64, 256) << ((row * 53 + col * 31) % 300) as u32;
    let run = |memory_bytes: u64| {
        let options = sunzi_options { threads: 1, accuracy: SUNZI_ENTRYWISE, memory_bytes, ..sunzi_options_default() };
        let ctx = Ctx::with(&options);
        let a = [(90, 90), (3, 3)].map(|shape| Array::new(KINDS[0], SUNZI_ROW_MAJOR, shape, spread));
        let c = [90, 3].map(|order| Array::new(KINDS[0], SUNZI_ROW_MAJOR, (order, order), spread));
        let (a_all, c_all) = (a.each_ref().map(Array::describe), c.each_ref().map(Array::describe));
        let (a, c, no, none) = (a_all.as_ptr(), c_all.as_ptr(), SUNZI_NO_TRANS, ptr::null());
        let mut statuses = [sunzi_status::SUNZI_INTERNAL; 2];
        // SAFETY: all arrays are live, and no two overlap.
        let status = unsafe { sunzi_syrk_batch(ctx.0, SUNZI_LOWER, no, none, a, none, c, 2, statuses.as_mut_ptr()) };
        (status, statuses[1], ctx.message())
    };
    let (mut limit, mut tries, mut alone) = (1, 0, 0);
    loop {
        let (status, other, message) = run(limit);
        if status == sunzi_status::SUNZI_OK {
            break;
        }
        assert_eq!(status, sunzi_status::SUNZI_MEMORY_LIMIT, "{message}");
        alone += u32::from(other == sunzi_status::SUNZI_OK);
        let named = message.split("at least ").nth(1).unwrap();
        let digits = named.rsplit('(').next().and_then(|rest| rest.split(' ').next()).unwrap();
        let least = digits.parse::<u64>().unwrap();
        assert!(least > limit && tries < 12, "{limit}: {message}");
        (limit, tries) = (least, tries + 1);
    }
    assert!(alone > 0, "no problem was refused by itself");
}
