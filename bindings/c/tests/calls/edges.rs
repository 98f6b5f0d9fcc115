//! Corners of the interface: results after failures, empty arrays with long lines, alpha = 0.

use crate::common::{Array, Ctx, Kind, definite, number, scalar};
use rug::Float;
use rug::float::Special;
use std::ptr;
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

const COL: i32 = SUNZI_COL_MAJOR;
const LONG: i64 = 1 << 40;

fn filled(rows: usize, cols: usize) -> Array {
    Array::new(Kind::Mpfr, COL, (rows, cols), |row, col| number((row + 10 * col) as u64, 100))
}

fn not_a_number(rows: usize, cols: usize) -> Array {
    Array::new(Kind::Mpfr, COL, (rows, cols), |_, _| Float::with_val(100, Special::Nan))
}

#[test]
fn no_factor_is_left_where_there_is_no_context() {
    let a = Array::of(Kind::Mpfr, COL, &definite(3, 100, 1));
    let options = sunzi_options { threads: -2, ..sunzi_options_default() };
    let mut broken = ptr::null_mut();
    // SAFETY: all are live, or null on purpose; the factor is only compared.
    unsafe {
        assert_eq!(sunzi_context_new(&options, &mut broken), SUNZI_INVALID_ARGUMENT);
        let broken = Ctx(broken);
        for (ctx, status) in [(ptr::null_mut(), SUNZI_NULL_POINTER), (broken.0, SUNZI_INVALID_ARGUMENT)] {
            let mut factor = ptr::dangling_mut();
            assert_eq!(sunzi_factor_new(ctx, SUNZI_LOWER, 0, &a.describe(), &mut factor), status);
            assert!(factor.is_null());
        }
    }
}

#[test]
fn limbs_of_other_formats_may_be_anything() {
    let ctx = Ctx::new(1);
    let (a, c) = (filled(2, 2), filled(2, 2));
    let odd = sunzi_matrix { limbs: ptr::without_provenance_mut(3), precision_bits: -7, ..a.describe() };
    // SAFETY: all arrays are live.
    let status =
        unsafe { sunzi_syrk(ctx.0, SUNZI_LOWER, SUNZI_NO_TRANS, ptr::null(), &odd, ptr::null(), &c.describe()) };
    ctx.ok(status, "syrk");
}

#[test]
fn long_lines_of_nothing_take_no_time() {
    let ctx = Ctx::new(2);
    let none = ptr::null::<u64>();
    // SAFETY: empty arrays need no entries.
    unsafe {
        let mpfr = |rows, cols| sunzi_mpfr_matrix(COL, rows, cols, ptr::null(), i64::max(rows, 1));
        let limbs = |rows, cols| sunzi_limb_matrix(COL, rows, cols, none, none, i64::max(rows, 1), 64);
        let (no, one, zero) = (SUNZI_NO_TRANS, ptr::null(), ptr::null());
        let inner = mpfr(0, 3);
        for (b, c) in [(mpfr(3, LONG), mpfr(0, LONG)), (limbs(3, LONG), limbs(0, LONG))] {
            // Three rows so long are no array; none at all are.
            let status = sunzi_gemm(ctx.0, no, no, one, &inner, &b, zero, &c);
            assert_ne!(status, SUNZI_OK);
        }
        let (a, b) = (mpfr(0, 0), limbs(0, LONG));
        ctx.ok(sunzi_gemm(ctx.0, no, no, one, &a, &b, zero, &mpfr(0, LONG)), "gemm");
        ctx.ok(sunzi_gemm(ctx.0, no, no, one, &a, &mpfr(0, LONG), zero, &b), "gemm");
        let beta = Float::with_val(64, 2);
        ctx.ok(sunzi_gemm(ctx.0, no, no, one, &a, &b, &scalar(&beta), &b), "gemm with beta");
        let mut plan = sunzi_plan { copied_bytes: 0, planned_bytes: 0 };
        for order in [1 << 33, i64::MAX] {
            let status = sunzi_plan_cholesky(ctx.0, SUNZI_MPFR, order, 1000, &mut plan);
            assert_eq!(status, SUNZI_INVALID_SIZE, "{}", ctx.message());
        }
    }
}

#[test]
fn operands_of_a_product_times_zero_are_not_looked_at() {
    let ctx = Ctx::new(1);
    let (zero, two) = (Float::new(64), Float::with_val(64, 2));
    let bad = not_a_number(3, 3);
    let doubled = |c: &Array, row, col| assert_eq!(c.get(row, col), number((row + 10 * col) as u64, 100) * 2u32);
    // SAFETY: all arrays are live.
    unsafe {
        let (nan, alpha, beta) = (bad.describe(), scalar(&zero), scalar(&two));
        let (no, lower) = (SUNZI_NO_TRANS, SUNZI_LOWER);
        for trans in [SUNZI_NO_TRANS, SUNZI_TRANS] {
            let c = filled(3, 3);
            ctx.ok(sunzi_syrk(ctx.0, lower, trans, &alpha, &nan, &beta, &c.describe()), "syrk");
            (0..3).flat_map(|col| (col..3).map(move |row| (row, col))).for_each(|(row, col)| doubled(&c, row, col));
            assert_eq!(c.get(0, 2), number(20, 100), "the other triangle");
            let c = filled(3, 3);
            ctx.ok(sunzi_gemm(ctx.0, trans, no, &alpha, &nan, &nan, &beta, &c.describe()), "gemm");
            (0..3).flat_map(|col| (0..3).map(move |row| (row, col))).for_each(|(row, col)| doubled(&c, row, col));
            ctx.ok(sunzi_gemm(ctx.0, trans, no, &alpha, &nan, &nan, ptr::null(), &c.describe()), "gemm");
            assert!(c.get(2, 2).is_zero() && c.get(0, 2).is_zero());
        }
        let b = filled(3, 2);
        let (left, unit) = (SUNZI_LEFT, SUNZI_NON_UNIT);
        ctx.ok(sunzi_trsm(ctx.0, left, lower, no, unit, &alpha, &nan, &b.describe()), "trsm");
        assert!((0..6).all(|at| b.get(at % 3, at / 3).is_zero()));
    }
}

#[test]
fn a_kept_factor_goes_to_initialised_entries_or_to_none() {
    let ctx = Ctx::new(1);
    let a = Array::of(Kind::Mpfr, COL, &definite(3, 100, 1));
    let mut entries = (0..9).map(|_| Float::with_val(100, 7)).collect::<Vec<_>>();
    let mut factor = ptr::null_mut();
    // SAFETY: all arrays are live; the broken entry is put right before it is dropped.
    unsafe {
        ctx.ok(sunzi_factor_new(ctx.0, SUNZI_LOWER, 0, &a.describe(), &mut factor), "factor");
        let last = entries[8].as_raw_mut();
        let precision = std::mem::replace(&mut (*last).prec, -1);
        let target = sunzi_mpfr_matrix(COL, 3, 3, entries.as_ptr().cast(), 3);
        assert_eq!(sunzi_factor_get(ctx.0, factor, SUNZI_LOWER, &target), SUNZI_INVALID_ENTRY);
        (*last).prec = precision;
        assert!(entries.iter().all(|entry| *entry == 7), "nothing is stored");
        ctx.ok(sunzi_factor_get(ctx.0, factor, SUNZI_LOWER, &target), "factor_get");
        sunzi_factor_free(factor);
    }
    assert!(entries[8] != 7);
}
