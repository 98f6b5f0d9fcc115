//! The twins of BLAS and LAPACK: the bits of the calls they stand for, and info for every wrong argument.

use crate::common::{Array, Ctx, Kind, definite, number};
use rug::Float;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use sunzi_c::*;

const COL: i32 = SUNZI_COL_MAJOR;

/// The entry points of one routine for both kinds.
type Rsyrk = unsafe extern "C" fn(
    *const sunzi_context,
    *const c_char,
    *const c_char,
    i64,
    i64,
    *const c_void,
    *const c_void,
    i64,
    *const c_void,
    *mut c_void,
    i64,
) -> i64;
type Rgemm = unsafe extern "C" fn(
    *const sunzi_context,
    *const c_char,
    *const c_char,
    i64,
    i64,
    i64,
    *const c_void,
    *const c_void,
    i64,
    *const c_void,
    i64,
    *const c_void,
    *mut c_void,
    i64,
) -> i64;
type Rtrsm = unsafe extern "C" fn(
    *const sunzi_context,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    i64,
    i64,
    *const c_void,
    *const c_void,
    i64,
    *mut c_void,
    i64,
) -> i64;
type Rpotrf = unsafe extern "C" fn(*const sunzi_context, *const c_char, i64, *mut c_void, i64) -> i64;
type Rpotrs =
    unsafe extern "C" fn(*const sunzi_context, *const c_char, i64, i64, *const c_void, i64, *mut c_void, i64) -> i64;

fn entries(array: &Array) -> *mut c_void {
    array.describe().entries
}

/// The kinds that the twins take.
const BOTH: [Kind; 2] = [Kind::Mpfr, Kind::Mpf];

fn filled_with(kind: Kind, rows: usize, cols: usize, seed: u64) -> Array {
    Array::new(kind, COL, (rows, cols), |row, col| number(seed + (row * 100 + col) as u64, 200))
}

fn filled(rows: usize, cols: usize, seed: u64) -> Array {
    filled_with(Kind::Mpfr, rows, cols, seed)
}

/// A context on which all products are right entry by entry, as those of the twins are on any context.
fn entrywise() -> Ctx {
    Ctx::with(&sunzi_options { threads: 1, accuracy: SUNZI_ENTRYWISE, ..sunzi_options_default() })
}

/// A number as an array of one entry.
fn one_number(kind: Kind, value: &Float) -> Array {
    Array::new(kind, COL, (1, 1), |_, _| value.clone())
}

fn same(left: &Array, right: &Array, what: &str) {
    right.check_gaps();
    for col in 0..left.cols {
        for row in 0..left.rows {
            assert!(left.get(row, col) == right.get(row, col), "{what}: ({row}, {col})");
        }
    }
}

fn pointer(value: &Float) -> *const c_void {
    ptr::from_ref(value).cast()
}

#[test]
fn products_are_those_of_the_other_calls_entry_by_entry() {
    let (ctx, other) = (Ctx::new(1), entrywise());
    let (n, k) = (7, 12);
    for kind in BOTH {
        let (rsyrk, rgemm) = match kind {
            Kind::Mpf => (sunzi_rsyrk_mpf as Rsyrk, sunzi_rgemm_mpf as Rgemm),
            _ => (sunzi_rsyrk as Rsyrk, sunzi_rgemm as Rgemm),
        };
        let (alpha, beta) = (one_number(kind, &number(1, 150)), one_number(kind, &number(2, 90)));
        let (alpha_matrix, beta_matrix) = (alpha.describe(), beta.describe());
        let (alpha, beta) = (entries(&alpha), entries(&beta));
        for (letter, trans) in [(c"N", SUNZI_NO_TRANS), (c"t", SUNZI_TRANS), (c"C", SUNZI_TRANS)] {
            let (rows, cols) = if trans == SUNZI_TRANS { (k, n) } else { (n, k) };
            let (a, letter) = (filled_with(kind, rows, cols, 5), letter.as_ptr());
            let (lda, ldc) = (a.ld as i64, n as i64 + 2);
            let (a_matrix, no_trans) = (a.describe(), SUNZI_NO_TRANS);
            for (uplo_letter, uplo) in [(c"U", SUNZI_UPPER), (c"lower", SUNZI_LOWER)] {
                let (want, found) = (filled_with(kind, n, n, 9), filled_with(kind, n, n, 9));
                let (uplo_text, c, a) = (uplo_letter.as_ptr(), entries(&found), entries(&a));
                let (n, k, c_matrix) = (n as i64, k as i64, want.describe());
                // SAFETY: all arrays are live.
                unsafe {
                    let done = sunzi_syrk(other.0, uplo, trans, &alpha_matrix, &a_matrix, &beta_matrix, &c_matrix);
                    other.ok(done, "syrk");
                    let info = rsyrk(ctx.0, uplo_text, letter, n, k, alpha, a, lda, beta, c, ldc);
                    assert_eq!(info, 0, "{}", ctx.message());
                }
                assert_eq!(ctx.report().accuracy, SUNZI_ENTRYWISE);
                same(&want, &found, "syrk");
            }
            let b = filled_with(kind, k, 5, 6);
            let (want, found) = (filled_with(kind, n, 5, 9), filled_with(kind, n, 5, 9));
            let (no, c, ldb) = (c"N".as_ptr(), entries(&found), b.ld as i64);
            let (m, width, k) = (n as i64, 5, k as i64);
            let (b_matrix, c_matrix) = (b.describe(), want.describe());
            // SAFETY: all arrays are live.
            unsafe {
                let (first, second) = (&alpha_matrix, &beta_matrix);
                let done = sunzi_gemm(other.0, trans, no_trans, first, &a_matrix, &b_matrix, second, &c_matrix);
                other.ok(done, "gemm");
                let (a, b) = (entries(&a), entries(&b));
                let info = rgemm(ctx.0, letter, no, m, width, k, alpha, a, lda, b, ldb, beta, c, ldc);
                assert_eq!(info, 0, "{}", ctx.message());
            }
            same(&want, &found, "gemm");
        }
    }
}

/// What loops find and norms lose: small entries beside large ones of the same row.
#[test]
fn products_keep_small_entries() {
    let ctx = Ctx::new(1);
    for kind in BOTH {
        let a = Array::new(kind, COL, (1, 2), |_, col| Float::with_val(128, 1) >> (col as u32 * 400));
        let b = Array::new(kind, COL, (2, 2), |row, col| Float::with_val(128, u32::from(row == col)));
        let c = Array::new(kind, COL, (1, 2), |_, _| Float::new(128));
        let (one, zero) = (one_number(kind, &Float::with_val(64, 1)), one_number(kind, &Float::new(64)));
        let rgemm = if kind == Kind::Mpf { sunzi_rgemm_mpf as Rgemm } else { sunzi_rgemm as Rgemm };
        let (no, one, zero) = (c"N".as_ptr(), entries(&one), entries(&zero));
        let (lda, ldb, ldc) = (a.ld as i64, b.ld as i64, c.ld as i64);
        let (a, b, result) = (entries(&a), entries(&b), entries(&c));
        // SAFETY: all arrays are live.
        let info = unsafe { rgemm(ctx.0, no, no, 1, 2, 2, one, a, lda, b, ldb, zero, result, ldc) };
        assert_eq!(info, 0, "{}", ctx.message());
        assert_eq!(c.get(0, 1), Float::with_val(128, 1) >> 400u32);
    }
}

/// A sum of GMP's fills a limb beyond the precision where its top limb is not full, and so do results here.
#[test]
fn results_of_mpf_are_as_long_as_those_of_gmp() {
    let ctx = Ctx::new(1);
    // 2/3 has a full top limb in GMP's form, 4/3 one of a single bit.
    for (numerator, limbs) in [(2u32, 5), (4, 6)] {
        let value = Float::with_val(1000, numerator) / 3u32;
        let a = one_number(Kind::Mpf, &value);
        let b = one_number(Kind::Mpf, &Float::with_val(64, 1));
        let c = Array::new(Kind::Mpf, COL, (1, 1), |_, _| Float::new(256));
        let (no, one, result) = (c"N".as_ptr(), entries(&b), entries(&c));
        // SAFETY: all arrays are live.
        let info = unsafe { sunzi_rgemm_mpf(ctx.0, no, no, 1, 1, 1, one, entries(&a), 1, one, 1, one, result, 1) };
        assert_eq!(info, 0, "{}", ctx.message());
        // SAFETY: the entry is live.
        let found = unsafe { &*result.cast::<gmp_mpfr_sys::gmp::mpf_t>() };
        assert_eq!((found.prec, found.size), (5, limbs));
        let error = (c.get(0, 0) - &value).abs();
        assert!(error <= value >> 320u32, "{error}");
    }
}

#[test]
fn factors_and_solves_are_those_of_the_other_calls() {
    let (ctx, other) = (Ctx::new(1), entrywise());
    let matrix = definite(9, 200, 4);
    for kind in BOTH {
        let (rpotrf, rpotrs, rtrsm) = match kind {
            Kind::Mpf => (sunzi_rpotrf_mpf as Rpotrf, sunzi_rpotrs_mpf as Rpotrs, sunzi_rtrsm_mpf as Rtrsm),
            _ => (sunzi_rpotrf as Rpotrf, sunzi_rpotrs as Rpotrs, sunzi_rtrsm as Rtrsm),
        };
        let alpha = one_number(kind, &number(3, 64));
        for (letter, uplo) in [(c"U", SUNZI_UPPER), (c"L", SUNZI_LOWER)] {
            let (want, found) = (Array::of(kind, COL, &matrix), Array::of(kind, COL, &matrix));
            let (lda, letter) = (found.ld as i64, letter.as_ptr());
            let (x_want, x_found) = (filled_with(kind, 9, 4, 7), filled_with(kind, 9, 4, 7));
            let ldb = x_found.ld as i64;
            // SAFETY: all arrays are live.
            unsafe {
                other.ok(sunzi_cholesky(other.0, uplo, &want.describe()), "cholesky");
                assert_eq!(rpotrf(ctx.0, letter, 9, entries(&found), lda), 0, "{}", ctx.message());
                same(&want, &found, "potrf");
                other.ok(sunzi_cholesky_solve(other.0, uplo, &want.describe(), &x_want.describe()), "solve");
                let info = rpotrs(ctx.0, letter, 9, 4, entries(&found), lda, entries(&x_found), ldb);
                assert_eq!(info, 0, "{}", ctx.message());
                same(&x_want, &x_found, "potrs");
                let (left, trans, full) = (SUNZI_LEFT, SUNZI_TRANS, SUNZI_NON_UNIT);
                let (t, x) = (want.describe(), x_want.describe());
                other.ok(sunzi_trsm(other.0, left, uplo, trans, full, &alpha.describe(), &t, &x), "trsm");
                let (a, b) = (entries(&found), entries(&x_found));
                let [left, trans, full] = [c"L", c"T", c"N"].map(CStr::as_ptr);
                let info = rtrsm(ctx.0, left, letter, trans, full, 9, 4, entries(&alpha), a, lda, b, ldb);
                assert_eq!(info, 0, "{}", ctx.message());
                same(&x_want, &x_found, "trsm");
            }
        }
    }
}

#[test]
fn the_wrong_kind_is_refused() {
    let ctx = Ctx::new(1);
    let (mpf, one) = (filled_with(Kind::Mpf, 3, 3, 1), Float::with_val(64, 1));
    let (a, one, no, low) = (entries(&mpf), pointer(&one), c"N".as_ptr(), c"L".as_ptr());
    // SAFETY: all arrays are live; the library looks at no limbs of what it refuses.
    unsafe {
        assert_eq!(sunzi_rsyrk(ctx.0, low, no, 3, 3, one, a, 5, one, a, 5), -9);
        assert!(ctx.message().contains("or an mpf_t"), "{}", ctx.message());
    }
}

/// Where nothing can change, nothing is looked at: neither NaN, nor a pivot of 0, nor an array.
#[test]
fn calls_without_work_return_at_once() {
    let ctx = entrywise();
    let (one, zero) = (Float::with_val(53, 1), Float::with_val(53, 0));
    let nan = Float::with_val(90, rug::float::Special::Nan);
    let spoilt = Array::new(Kind::Mpfr, COL, (2, 2), |_, _| nan.clone());
    let singular = Array::new(Kind::Mpfr, COL, (2, 2), |_, _| zero.clone());
    let (c, ldc, t, ldt) = (entries(&spoilt), spoilt.ld as i64, entries(&singular), singular.ld as i64);
    let (lower, no, left, none) = (c"L".as_ptr(), c"N".as_ptr(), c"L".as_ptr(), ptr::null_mut());
    let (one, zero, nan) = (pointer(&one), pointer(&zero), pointer(&nan));
    let nothing = |info: i64| assert_eq!(info, 0, "{}", ctx.message());
    // SAFETY: all arrays are live, or not looked at.
    unsafe {
        nothing(sunzi_rgemm(ctx.0, no, no, 2, 2, 0, one, none, 2, none, 1, one, c, ldc));
        nothing(sunzi_rgemm(ctx.0, no, no, 2, 2, 2, zero, c, ldc, c, ldc, one, c, ldc));
        nothing(sunzi_rgemm(ctx.0, no, no, 0, 2, 2, nan, none, 1, c, ldc, nan, none, 1));
        nothing(sunzi_rsyrk(ctx.0, lower, no, 2, 0, one, none, 2, one, c, ldc));
        nothing(sunzi_rsyr2k(ctx.0, lower, no, 2, 0, one, none, 2, none, 2, one, c, ldc));
        nothing(sunzi_rsymm(ctx.0, left, lower, 2, 2, zero, c, ldc, c, ldc, one, c, ldc));
        nothing(sunzi_rtrsm(ctx.0, left, lower, no, no, 2, 0, one, t, ldt, none, 2));
        nothing(sunzi_rtrmm(ctx.0, left, lower, no, no, 2, 0, nan, c, ldc, none, 2));
        nothing(sunzi_rpotrs(ctx.0, lower, 2, 0, t, ldt, none, 2));
        // What is wrong with arguments is told first, a leading dimension before a NaN.
        assert_eq!(sunzi_rgemm(ctx.0, no, no, 2, 2, 2, nan, c, ldc, c, ldc, nan, c, 1), -13);
        assert_eq!(sunzi_rtrsm(ctx.0, left, lower, no, no, 2, 2, nan, t, ldt, c, 1), -11);
        assert_eq!(sunzi_rgemm(ctx.0, no, no, 2, 2, 2, nan, c, ldc, c, ldc, one, c, ldc), -6);
    }
    assert!(spoilt.get(0, 0).is_nan() && spoilt.get(1, 1).is_nan());
}

#[test]
fn info_counts_from_one() {
    let ctx = Ctx::new(1);
    let mut matrix = definite(6, 100, 1);
    matrix.set_f64(4, 4, -2.0).unwrap();
    let a = Array::of(Kind::Mpfr, COL, &matrix);
    let b = filled(6, 1, 1);
    let (one, lower) = (Float::with_val(53, 1), c"L".as_ptr());
    // SAFETY: all arrays are live, or null on purpose.
    unsafe {
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 6, entries(&a), a.ld as i64), 5);
        let zero = Array::new(Kind::Mpfr, COL, (6, 6), |row, _| Float::with_val(64, 2 - row as i32));
        let (t, ldt, x, ldb) = (entries(&zero), zero.ld as i64, entries(&b), b.ld as i64);
        let (left, no) = (c"L".as_ptr(), c"N".as_ptr());
        assert_eq!(sunzi_rtrsm(ctx.0, left, lower, no, no, 6, 1, pointer(&one), t, ldt, x, ldb), 3);
        assert_eq!(sunzi_rpotrs(ctx.0, lower, 6, 1, t, ldt, x, ldb), 3);

        let (a, lda) = (entries(&a), a.ld as i64);
        let none = ptr::null_mut();
        assert_eq!(sunzi_rpotrf(ctx.0, c"X".as_ptr(), 6, a, lda), -1);
        assert!(ctx.message().contains("'X' is not a valid value; choose 'U' or 'L'"), "{}", ctx.message());
        assert_eq!(sunzi_last_status(ctx.0), sunzi_status::SUNZI_INVALID_ARGUMENT);
        assert_eq!(sunzi_rpotrf(ctx.0, ptr::null(), 6, a, lda), -1);
        assert_eq!(sunzi_rpotrf(ctx.0, lower, -6, a, lda), -2);
        assert!(ctx.message().contains("-6"), "{}", ctx.message());
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 6, none, lda), -3);
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 6, a, 5), -4);
        assert!(ctx.message().contains("leading dimension 5 is too small; it must be at least 6"), "{}", ctx.message());
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 0, none, 1), 0);
        assert_eq!(sunzi_last_status(ctx.0), sunzi_status::SUNZI_OK);
        assert_eq!(sunzi_rpotrf(ptr::null(), lower, 6, a, lda), -1001);

        assert_eq!(sunzi_rpotrs(ctx.0, lower, 6, -1, a, lda, x, ldb), -3);
        assert_eq!(sunzi_rpotrs(ctx.0, lower, 6, 1, a, lda, x, 5), -7);
        assert_eq!(sunzi_rpotrs(ctx.0, lower, 6, 1, a, lda, none, 6), -6);
        let nan = Float::with_val(53, rug::float::Special::Nan);
        assert_eq!(sunzi_rtrsm(ctx.0, left, lower, no, no, 6, 1, pointer(&nan), t, ldt, x, ldb), -7);
        assert_eq!(sunzi_rtrsm(ctx.0, left, lower, no, no, 6, 1, none, t, ldt, x, ldb), -7);
        assert_eq!(sunzi_rtrsm(ctx.0, left, lower, no, lower, 6, 1, pointer(&one), t, ldt, x, ldb), -4);
        let (one, big) = (pointer(&one), 1 << 40);
        assert_eq!(sunzi_rsyrk(ctx.0, lower, lower, 6, 1, one, a, lda, one, a, lda), -2);
        assert_eq!(sunzi_rsyrk(ctx.0, lower, no, 6, -1, one, a, lda, one, a, lda), -4);
        assert_eq!(sunzi_rsyrk(ctx.0, lower, no, 6, 1, one, a, 5, one, a, lda), -7);
        assert_eq!(sunzi_rsyrk(ctx.0, lower, no, 6, 1, one, a, lda, pointer(&nan), a, lda), -8);
        assert_eq!(sunzi_rsyrk(ctx.0, lower, no, 6, 1, one, a, lda, one, none, lda), -9);
        assert_eq!(sunzi_rsyrk(ctx.0, lower, no, 6, 1, one, a, lda, one, a, 0), -10);
        assert_eq!(sunzi_rgemm(ctx.0, no, no, 6, 1, 6, one, a, lda, x, 3, one, x, ldb), -10);
        assert_eq!(sunzi_rgemm(ctx.0, no, no, 6, 1, 6, one, a, lda, x, ldb, one, x, 2), -13);
        assert_eq!(sunzi_rgemm(ctx.0, no, no, big, big, big, one, a, big, x, big, one, x, big), -7);
        assert!(ctx.message().contains("too large"), "{}", ctx.message());
    }
}
