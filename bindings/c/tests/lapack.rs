//! The twins of BLAS and LAPACK: the bits of the calls they stand for, and info for every wrong argument.

mod common;

use common::{Array, Ctx, Kind, definite, number, scalar};
use rug::Float;
use std::ffi::{CStr, c_void};
use std::ptr;
use sunzi_c::*;

const COL: i32 = SUNZI_COL_MAJOR;

fn entries(array: &Array) -> *mut c_void {
    array.describe().entries
}

fn filled(rows: usize, cols: usize, seed: u64) -> Array {
    Array::new(Kind::Mpfr, COL, (rows, cols), |row, col| number(seed + (row * 100 + col) as u64, 200))
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
fn products_and_triangles_are_those_of_the_other_calls() {
    let ctx = Ctx::new(1);
    let (n, k) = (7, 12);
    let (alpha, beta) = (number(1, 150), number(2, 90));
    let (alpha_matrix, beta_matrix) = (scalar(&alpha), scalar(&beta));
    for (letter, trans) in [(c"N", SUNZI_NO_TRANS), (c"t", SUNZI_TRANS), (c"C", SUNZI_TRANS)] {
        let a = if trans == SUNZI_TRANS { filled(k, n, 5) } else { filled(n, k, 5) };
        let (lda, ldc) = (a.ld as i64, n as i64 + 2);
        for (uplo_letter, uplo) in [(c"U", SUNZI_UPPER), (c"lower", SUNZI_LOWER)] {
            let (want, found) = (filled(n, n, 9), filled(n, n, 9));
            let (uplo_text, letter, c) = (uplo_letter.as_ptr(), letter.as_ptr(), entries(&found));
            let (n, k, alpha, beta) = (n as i64, k as i64, pointer(&alpha), pointer(&beta));
            // SAFETY: all arrays are live.
            unsafe {
                let (a_matrix, c_matrix) = (a.describe(), want.describe());
                ctx.ok(sunzi_syrk(ctx.0, uplo, trans, &alpha_matrix, &a_matrix, &beta_matrix, &c_matrix), "syrk");
                let info = sunzi_rsyrk(ctx.0, uplo_text, letter, n, k, alpha, entries(&a), lda, beta, c, ldc);
                assert_eq!(info, 0, "{}", ctx.message());
            }
            same(&want, &found, "syrk");
        }
        let b = filled(k, 5, 6);
        let (want, found) = (filled(n, 5, 9), filled(n, 5, 9));
        let (letter, no, c) = (letter.as_ptr(), c"N".as_ptr(), entries(&found));
        let (sizes, alpha, beta) = ((n as i64, 5, k as i64), pointer(&alpha), pointer(&beta));
        // SAFETY: all arrays are live.
        unsafe {
            let (a_matrix, b_matrix, c_matrix) = (a.describe(), b.describe(), want.describe());
            let factors = (&alpha_matrix, &beta_matrix);
            let no_trans = SUNZI_NO_TRANS;
            let done = sunzi_gemm(ctx.0, trans, no_trans, factors.0, &a_matrix, &b_matrix, factors.1, &c_matrix);
            ctx.ok(done, "gemm");
            let (m, n, k) = sizes;
            let (a, b, ldb) = (entries(&a), entries(&b), b.ld as i64);
            let info = sunzi_rgemm(ctx.0, letter, no, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
            assert_eq!(info, 0, "{}", ctx.message());
        }
        same(&want, &found, "gemm");
    }
}

#[test]
fn factors_and_solves_are_those_of_the_other_calls() {
    let ctx = Ctx::new(1);
    let matrix = definite(9, 200, 4);
    let alpha = number(3, 64);
    for (letter, uplo) in [(c"U", SUNZI_UPPER), (c"L", SUNZI_LOWER)] {
        let (want, found) = (Array::of(Kind::Mpfr, COL, &matrix), Array::of(Kind::Mpfr, COL, &matrix));
        let (lda, letter) = (found.ld as i64, letter.as_ptr());
        let (x_want, x_found) = (filled(9, 4, 7), filled(9, 4, 7));
        let ldb = x_found.ld as i64;
        // SAFETY: all arrays are live.
        unsafe {
            ctx.ok(sunzi_cholesky(ctx.0, uplo, &want.describe()), "cholesky");
            assert_eq!(sunzi_rpotrf(ctx.0, letter, 9, entries(&found), lda), 0, "{}", ctx.message());
            same(&want, &found, "potrf");
            ctx.ok(sunzi_cholesky_solve(ctx.0, uplo, &want.describe(), &x_want.describe()), "solve");
            let info = sunzi_rpotrs(ctx.0, letter, 9, 4, entries(&found), lda, entries(&x_found), ldb);
            assert_eq!(info, 0, "{}", ctx.message());
            same(&x_want, &x_found, "potrs");
            let (left, trans, full) = (SUNZI_LEFT, SUNZI_TRANS, SUNZI_NON_UNIT);
            let (t, x) = (want.describe(), x_want.describe());
            ctx.ok(sunzi_trsm(ctx.0, left, uplo, trans, full, &scalar(&alpha), &t, &x), "trsm");
            let (a, b) = (entries(&found), entries(&x_found));
            let [left, trans, full] = [c"L", c"T", c"N"].map(CStr::as_ptr);
            let info = sunzi_rtrsm(ctx.0, left, letter, trans, full, 9, 4, pointer(&alpha), a, lda, b, ldb);
            assert_eq!(info, 0, "{}", ctx.message());
            same(&x_want, &x_found, "trsm");
        }
    }
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
        assert!(ctx.message().contains("'X' is no choice: 'U' or 'L'"), "{}", ctx.message());
        assert_eq!(sunzi_rpotrf(ctx.0, ptr::null(), 6, a, lda), -1);
        assert_eq!(sunzi_rpotrf(ctx.0, lower, -6, a, lda), -2);
        assert!(ctx.message().contains("-6"), "{}", ctx.message());
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 6, none, lda), -3);
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 6, a, 5), -4);
        assert!(ctx.message().contains("leading dimension 5 is too small: at least 6"), "{}", ctx.message());
        assert_eq!(sunzi_rpotrf(ctx.0, lower, 0, none, 1), 0);
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
