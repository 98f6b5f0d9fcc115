//! What calls take beside the caller's arrays: as planned, within the limit, nothing new the second time.
//!
//! One test, since the counter sees all threads of the process.

mod common;

use common::{Array, Ctx, Kind, definite, number};
use std::ptr;
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

const BITS: u32 = 512;

/// Entry by entry the bits, and so the bytes, depend on the entries.
fn by_norms() -> sunzi_options {
    sunzi_options { accuracy: SUNZI_NORM, ..sunzi_options_default() }
}

fn filled(kind: Kind, rows: usize, cols: usize) -> Array {
    Array::new(kind, SUNZI_COL_MAJOR, (rows, cols), |row, col| number((row + 1000 * col) as u64, BITS))
}

fn format_of(kind: Kind) -> i32 {
    if kind == Kind::Mpfr { SUNZI_MPFR } else { SUNZI_LIMBS }
}

fn syrk(ctx: &Ctx, a: &Array, c: &Array) -> sunzi_status {
    let (a, c, none) = (a.describe(), c.describe(), ptr::null());
    // SAFETY: all arrays are live.
    unsafe { sunzi_syrk(ctx.0, SUNZI_LOWER, SUNZI_TRANS, none, &a, none, &c) }
}

fn planned(ctx: &Ctx, kind: Kind, n: usize, k: usize) -> sunzi_plan {
    let mut plan = sunzi_plan::default();
    let (n, k, bits) = (n as i64, k as i64, i64::from(BITS));
    // SAFETY: both are live.
    ctx.ok(unsafe { sunzi_plan_syrk(ctx.0, format_of(kind), n, k, bits, bits, &mut plan) }, "plan");
    plan
}

/// A first call takes what was planned, to a twentieth.
fn check_peak(report: &sunzi_report, plan: &sunzi_plan, what: &str) {
    assert_eq!((report.planned_bytes, report.copied_bytes), (plan.planned_bytes, plan.copied_bytes), "{what}");
    assert!(report.peak_bytes <= plan.planned_bytes, "{what}: {report:?}");
    assert!(report.peak_bytes * 100 >= plan.planned_bytes * 90, "{what}: {report:?}");
}

#[test]
fn calls_take_what_is_planned() {
    let (n, k) = (130, 190);
    for kind in [Kind::Mpfr, Kind::Limbs] {
        let (a, c) = (filled(kind, k, n), filled(kind, n, n));
        for threads in [1, 2] {
            let ctx = Ctx::with(&sunzi_options { threads, ..by_norms() });
            let plan = planned(&ctx, kind, n, k);
            let what = format!("syrk, {kind:?}, {threads} threads");
            ctx.ok(syrk(&ctx, &a, &c), &what);
            check_peak(&ctx.report(), &plan, &what);
            ctx.ok(syrk(&ctx, &a, &c), &what);
            let again = ctx.report();
            assert!(again.peak_bytes < 64 << 10, "{what}: a second call allocates {} bytes", again.peak_bytes);
            assert_eq!(again.precision_bits, i64::from(BITS));
        }
        limits(kind, &a, &c, (n, k));
    }
    gemm_and_cholesky();
    limits_of_all();
}

/// Every operation on `mpfr_t` under the least limit that its messages lead to, and above it.
fn limits_of_all() {
    let (n, columns) = (60, 40);
    let (no, low, none) = (SUNZI_NO_TRANS, SUNZI_LOWER, ptr::null());
    let fresh = || (Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &definite(n, BITS, 2)), filled(Kind::Mpfr, n, columns));
    let reversed: [usize; 60] = std::array::from_fn(|row| 59 - row);
    type Operation<'a> = (&'a str, &'a dyn Fn(&Ctx, &sunzi_matrix, &sunzi_matrix) -> sunzi_status);
    // SAFETY: all arrays are live.
    let operations: [Operation<'_>; 9] = unsafe {
        [
            ("gemm", &|ctx, a, b| sunzi_gemm(ctx.0, no, no, none, a, b, none, b)),
            ("trsm", &|ctx, a, b| sunzi_trsm(ctx.0, SUNZI_LEFT, low, no, SUNZI_NON_UNIT, none, a, b)),
            ("cholesky", &|ctx, a, _| sunzi_cholesky(ctx.0, low, a)),
            ("solve", &|ctx, a, b| sunzi_solve(ctx.0, low, a, b)),
            ("cholesky_solve", &|ctx, a, b| sunzi_cholesky_solve(ctx.0, SUNZI_UPPER, a, b)),
            ("lu", &|ctx, a, _| sunzi_lu(ctx.0, a, [0; 60].as_mut_ptr())),
            ("general_solve", &|ctx, a, b| sunzi_general_solve(ctx.0, a, b)),
            ("lu_solve", &|ctx, a, b| sunzi_lu_solve(ctx.0, SUNZI_TRANS, a, reversed.as_ptr(), b)),
            ("lu_inverse", &|ctx, a, _| sunzi_lu_inverse(ctx.0, a, reversed.as_ptr(), a)),
        ]
    };
    for (name, operation) in operations {
        let run = |memory_bytes: u64| {
            let ctx = Ctx::with(&sunzi_options { threads: 1, memory_bytes, ..by_norms() });
            let (a, b) = fresh();
            let status = operation(&ctx, &a.describe(), &b.describe());
            (status, ctx.message(), ctx.report(), (a.matrix(|_, _| true), b.matrix(|_, _| true)))
        };
        let (_, _, _, want) = run(0);
        let (mut limit, mut tries) = (1, 0);
        // Each copy that does not fit names a bound; the operation itself the least.
        let report = loop {
            let (status, message, report, found) = run(limit);
            if status == SUNZI_OK {
                assert!(found == want, "{name}: other bits under a limit");
                break report;
            }
            assert_eq!(status, SUNZI_MEMORY_LIMIT, "{name}: {message}");
            let named = message.split("at least ").nth(1).unwrap();
            let digits = named.rsplit('(').next().and_then(|rest| rest.split(' ').next()).unwrap();
            let least = digits.parse::<u64>().unwrap();
            assert!(least > limit && tries < 5, "{name}: {message}");
            (limit, tries) = (least, tries + 1);
        };
        assert!(report.peak_bytes <= limit + (64 << 10), "{name}: {report:?} under {limit}");
        assert_eq!(run(limit - 1).0, SUNZI_MEMORY_LIMIT, "{name}: {limit} is not the least");
    }
}

/// Under a limit: the least that is named is enough, one byte less is not, and the peak stays within.
fn limits(kind: Kind, a: &Array, c: &Array, (n, k): (usize, usize)) {
    let with = |memory_bytes| Ctx::with(&sunzi_options { threads: 1, memory_bytes, ..by_norms() });
    let copies = planned(&with(0), kind, n, k).copied_bytes;
    let tight = with(copies);
    assert_eq!(syrk(&tight, a, c), SUNZI_MEMORY_LIMIT);
    let message = tight.message();
    assert!(message.contains(&format!("({copies} bytes) is too small")), "{message}");
    let named = message.split("at least ").nth(1).unwrap();
    let digits = named.rsplit('(').next().and_then(|rest| rest.split(' ').next()).unwrap();
    let least = digits.parse::<u64>().unwrap();
    assert_eq!(syrk(&with(least - 1), a, c), SUNZI_MEMORY_LIMIT);
    for limit in [least, least + least / 3] {
        let ctx = with(limit);
        for _ in 0..2 {
            ctx.ok(syrk(&ctx, a, c), "under a limit");
            let report = ctx.report();
            assert!(report.planned_bytes <= limit && report.peak_bytes <= limit + (64 << 10), "{limit}: {report:?}");
        }
    }
}

fn gemm_and_cholesky() {
    let (m, n, k, bits) = (100, 120, 150, i64::from(BITS));
    let ctx = Ctx::with(&sunzi_options { threads: 1, ..by_norms() });
    let (a, b, c) = (filled(Kind::Mpfr, m, k), filled(Kind::Mpfr, k, n), filled(Kind::Mpfr, m, n));
    let (a, b, target, none, no) = (a.describe(), b.describe(), c.describe(), ptr::null(), SUNZI_NO_TRANS);
    let mut plan = sunzi_plan::default();
    let (rows, cols, inner) = (m as i64, n as i64, k as i64);
    // SAFETY: all arrays are live.
    unsafe {
        ctx.ok(sunzi_plan_gemm(ctx.0, SUNZI_MPFR, rows, cols, inner, bits, bits, &mut plan), "plan");
        ctx.ok(sunzi_gemm(ctx.0, no, no, none, &a, &b, none, &target), "gemm");
    }
    check_peak(&ctx.report(), &plan, "gemm");

    let ctx = Ctx::with(&sunzi_options { threads: 1, ..by_norms() });
    let array = Array::of(Kind::Mpfr, SUNZI_COL_MAJOR, &definite(n, BITS, 2));
    let matrix = array.describe();
    // SAFETY: all arrays are live.
    unsafe {
        ctx.ok(sunzi_plan_cholesky(ctx.0, SUNZI_MPFR, cols, bits, &mut plan), "plan");
        ctx.ok(sunzi_cholesky(ctx.0, SUNZI_LOWER, &matrix), "cholesky");
    }
    check_peak(&ctx.report(), &plan, "cholesky");
    // SAFETY: all are live, or null on purpose.
    unsafe {
        ctx.ok(sunzi_context_release(ctx.0), "release");
        assert_eq!(sunzi_plan_cholesky(ctx.0, SUNZI_MPFR, -1, bits, &mut plan), SUNZI_INVALID_SIZE);
        assert_eq!(sunzi_plan_cholesky(ctx.0, 17, cols, bits, &mut plan), SUNZI_INVALID_ARGUMENT);
        assert_eq!(sunzi_plan_cholesky(ctx.0, SUNZI_MPFR, cols, 1, &mut plan), SUNZI_PRECISION);
        assert_eq!(sunzi_plan_cholesky(ctx.0, SUNZI_MPFR, cols, bits, ptr::null_mut()), SUNZI_NULL_POINTER);
    }
}
