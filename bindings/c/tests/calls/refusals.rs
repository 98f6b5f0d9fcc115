//! Bad input: a code, a message with the numbers, the place where there is one, and results as they were.

use crate::common::{Array, Ctx, KINDS, Kind, LAYOUTS, number, scalar};
use rug::Float;
use rug::float::Special;
use std::ffi::CStr;
use std::ptr;
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

const NO: i32 = SUNZI_NO_TRANS;

fn filled(rows: usize, cols: usize) -> Array {
    Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (rows, cols), |row, col| number((row + 10 * col) as u64, 100))
}

/// SYRK of `a` into `c`; fails unless it ends with `status` and a message with all of `words`.
fn refused(ctx: &Ctx, a: *const sunzi_matrix, c: *const sunzi_matrix, status: sunzi_status, words: &[&str]) {
    // SAFETY: descriptions are live or null; wrong ones are refused before their entries are looked at.
    let found = unsafe { sunzi_syrk(ctx.0, SUNZI_LOWER, NO, ptr::null(), a, ptr::null(), c) };
    let message = ctx.message();
    assert_eq!(found, status, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}: {words:?}");
}

#[test]
fn descriptions_that_make_no_sense() {
    let ctx = Ctx::new(1);
    let (a, c) = (filled(3, 4), filled(3, 3));
    let (good, target) = (a.describe(), c.describe());
    let before = c.matrix(|_, _| true);
    refused(&ctx, ptr::null(), &target, SUNZI_NULL_POINTER, &["a: the pointer is null"]);
    refused(&ctx, &good, ptr::null(), SUNZI_NULL_POINTER, &["c: the pointer is null"]);
    let with = |change: &dyn Fn(&mut sunzi_matrix)| {
        let mut matrix = good;
        change(&mut matrix);
        matrix
    };
    type Change<'a> = &'a dyn Fn(&mut sunzi_matrix);
    let cases: [(Change<'_>, sunzi_status, &[&str]); 10] = [
        (&|a| a.entries = ptr::null_mut(), SUNZI_NULL_POINTER, &["a: the pointer to the entries", "3 x 4"]),
        (&|a| a.rows = -3, SUNZI_INVALID_SIZE, &["-3 x 4", "must not be negative"]),
        (&|a| a.cols = -1, SUNZI_INVALID_SIZE, &["3 x -1"]),
        (&|a| a.ld = 2, SUNZI_INVALID_SIZE, &["dimension 2 is too small; it must be at least 3 for 3 rows"]),
        (&|a| a.ld = -5, SUNZI_INVALID_SIZE, &["leading dimension -5"]),
        (&|a| (a.layout, a.ld) = (SUNZI_ROW_MAJOR, 3), SUNZI_INVALID_SIZE, &["at least 4 for 4 columns of a row"]),
        (&|a| a.layout = 7, SUNZI_INVALID_ARGUMENT, &["the layout 7 is not valid"]),
        (&|a| a.format = 9, SUNZI_INVALID_ARGUMENT, &["the format 9 is not valid"]),
        (&|a| a.format = SUNZI_LIMBS, SUNZI_NULL_POINTER, &["the pointer to the limbs"]),
        (&|a| (a.cols, a.ld) = (i64::MAX, i64::MAX), SUNZI_INVALID_SIZE, &["too large to address"]),
    ];
    for (change, status, words) in cases {
        refused(&ctx, &with(change), &target, status, words);
    }
    let limbs = with(&|a| (a.format, a.limbs, a.precision_bits) = (SUNZI_LIMBS, a.entries.cast(), 1));
    refused(&ctx, &limbs, &target, SUNZI_PRECISION, &["precision of 1 bits"]);
    let odd = with(&|a| {
        (a.format, a.limbs, a.precision_bits) = (SUNZI_LIMBS, a.entries.cast::<u8>().wrapping_add(1).cast(), 64);
    });
    refused(&ctx, &odd, &target, SUNZI_INVALID_ARGUMENT, &["multiples of 8 bytes"]);
    let odd = with(&|a| a.entries = a.entries.cast::<u8>().wrapping_add(4).cast());
    refused(&ctx, &odd, &target, SUNZI_INVALID_ARGUMENT, &["multiples of 8 bytes"]);
    let huge = with(&|a| {
        (a.format, a.limbs, a.precision_bits) = (SUNZI_LIMBS, a.entries.cast(), 1 << 24);
        (a.cols, a.ld) = (1 << 25, 1 << 25);
    });
    refused(&ctx, &huge, &target, SUNZI_INVALID_SIZE, &["a 3 x 33554432 matrix of 16777216 bits is too large"]);
    let small = sunzi_matrix { rows: 2, cols: 2, ..target };
    refused(&ctx, &good, &small, SUNZI_INVALID_SIZE, &["c: the matrix is 2 x 2; it must be 3 x 3"]);
    assert!(c.matrix(|_, _| true) == before);
    // SAFETY: null on purpose.
    unsafe {
        assert_eq!(
            sunzi_syrk(ptr::null(), SUNZI_LOWER, NO, ptr::null(), &good, ptr::null(), &target),
            SUNZI_NULL_POINTER
        );
        assert_eq!(CStr::from_ptr(sunzi_last_error(ptr::null())).to_str().unwrap(), "ctx: the pointer is null");
    }
}

#[test]
fn choices_that_do_not_exist() {
    let ctx = Ctx::new(1);
    let (a, b) = (filled(3, 3), filled(3, 3));
    let (a, b, none) = (a.describe(), b.describe(), ptr::null());
    let said = |status: sunzi_status, words: &str| {
        let message = ctx.message();
        assert!(status == SUNZI_INVALID_ARGUMENT && message.contains(words), "{status:?} {message}, not {words}");
    };
    let (left, low, unit) = (SUNZI_LEFT, SUNZI_LOWER, SUNZI_UNIT);
    // SAFETY: all arrays are live.
    unsafe {
        said(sunzi_syrk(ctx.0, 1, NO, none, &a, none, &b), "uplo: 1 is not a valid value; choose SUNZI_UPPER (121)");
        said(sunzi_syrk(ctx.0, low, 2, none, &a, none, &b), "trans: 2 is not a valid value");
        said(sunzi_gemm(ctx.0, 3, NO, none, &a, &b, none, &b), "trans_a: 3");
        said(sunzi_gemm(ctx.0, NO, 4, none, &a, &b, none, &b), "trans_b: 4");
        said(sunzi_trsm(ctx.0, 5, low, NO, unit, none, &a, &b), "side: 5");
        said(sunzi_trsm(ctx.0, left, low, NO, 6, none, &a, &b), "diag: 6");
        said(sunzi_cholesky(ctx.0, 0, &a), "uplo: 0");
        said(sunzi_solve(ctx.0, 0, &a, &b), "uplo: 0");
    }
}

#[test]
fn shapes_that_do_not_fit() {
    let ctx = Ctx::new(1);
    let (wide, square, tall) = (filled(2, 3), filled(3, 3), filled(4, 1));
    let (wide, square, tall, none) = (wide.describe(), square.describe(), tall.describe(), ptr::null());
    let said = |status: sunzi_status, words: &str| {
        let message = ctx.message();
        assert!(status == SUNZI_INVALID_SIZE && message.contains(words), "{status:?} {message}, not {words}");
    };
    let (low, left, right, full) = (SUNZI_LOWER, SUNZI_LEFT, SUNZI_RIGHT, SUNZI_NON_UNIT);
    let mut factor = ptr::null_mut();
    // SAFETY: all arrays are live.
    unsafe {
        said(sunzi_gemm(ctx.0, NO, NO, none, &wide, &wide, none, &square), "op(A) is 2 x 3 and op(B) is 2 x 3");
        said(
            sunzi_gemm(ctx.0, NO, NO, &wide, &wide, &square, none, &wide),
            "alpha: the matrix is 2 x 3; it must be 1 x 1",
        );
        said(sunzi_cholesky(ctx.0, low, &wide), "a: the matrix is 2 x 3; it must be square");
        said(sunzi_solve(ctx.0, low, &square, &tall), "b: the matrix is 4 x 1; it must be 3 x 1");
        said(sunzi_cholesky_solve(ctx.0, low, &wide, &tall), "factor: the matrix is 2 x 3");
        said(sunzi_log_det(ctx.0, &square, &wide), "result: the matrix is 2 x 3; it must be 1 x 1");
        said(sunzi_trsm(ctx.0, left, low, NO, full, none, &square, &tall), "b: the matrix is 4 x 1; it must be 3 x 1");
        said(sunzi_trsm(ctx.0, right, low, NO, full, none, &square, &tall), "b: the matrix is 4 x 1; it must be 4 x 3");
        said(sunzi_factor_new(ctx.0, low, 0, &wide, &mut factor), "a: the matrix is 2 x 3");
        assert!(factor.is_null());
        assert_eq!(sunzi_factor_new(ctx.0, low, -2, &square, &mut factor), SUNZI_PRECISION);
        assert_eq!(sunzi_factor_new(ctx.0, low, 0, &square, ptr::null_mut()), SUNZI_NULL_POINTER);
        assert_eq!(sunzi_factor_solve(ctx.0, ptr::null(), &tall), SUNZI_NULL_POINTER);
        assert_eq!((sunzi_factor_order(ptr::null()), sunzi_factor_precision_bits(ptr::null())), (-1, -1));
        sunzi_factor_free(ptr::null_mut());
        sunzi_context_free(ptr::null_mut());
    }
}

#[test]
fn entries_that_are_not_finite_are_named() {
    let ctx = Ctx::new(2);
    for layout in LAYOUTS {
        for (special, word) in
            [(Special::Nan, "NaN"), (Special::Infinity, "infinite"), (Special::NegInfinity, "infinite")]
        {
            let mut a = Array::new(Kind::Mpfr, layout, (9, 7), |row, col| number((row + col) as u64, 80));
            a.set(5, 3, &Float::with_val(80, special));
            let c = filled(9, 9);
            let words = [word, "a: entry at row 5, column 3"];
            refused(&ctx, &a.describe(), &c.describe(), SUNZI_NOT_FINITE, &words);
            assert_eq!(ctx.place(), (5, 3));
        }
    }
    // In a factor, and in what is added.
    let (a, mut c, one) = (filled(2, 2), filled(2, 2), Float::with_val(9, 1));
    let nan = Float::with_val(80, Special::Nan);
    let (a_matrix, c_matrix, beta, none) = (a.describe(), c.describe(), scalar(&one), ptr::null());
    let syrk = |alpha: *const sunzi_matrix| {
        // SAFETY: all arrays are live.
        unsafe { sunzi_syrk(ctx.0, SUNZI_LOWER, NO, alpha, &a_matrix, &beta, &c_matrix) }
    };
    assert_eq!(syrk(&scalar(&nan)), SUNZI_NOT_FINITE);
    assert!(ctx.message().starts_with("alpha: "), "{}", ctx.message());
    c.set(0, 1, &nan); // not in the triangle
    ctx.ok(syrk(none), "NaN outside of the triangle");
    c.set(1, 0, &nan);
    assert_eq!(syrk(none), SUNZI_NOT_FINITE);
    assert!(ctx.message().starts_with("c: entry at row 1, column 0"), "{}", ctx.message());
    // The first of many, whatever the threads.
    let many = Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (300, 60), |row, col| match (row * 7 + col * 11) % 50 {
        0 if col > 4 => nan.clone(),
        _ => Float::with_val(80, 1),
    });
    let first = (0..300).find(|row| (row * 7 + 5 * 11) % 50 == 0).unwrap();
    refused(&ctx, &many.describe(), &filled(300, 300).describe(), SUNZI_NOT_FINITE, &["column 5"]);
    assert_eq!(ctx.place(), (first as i64, 5));
}

#[test]
fn entries_that_are_no_numbers_are_named() {
    let ctx = Ctx::new(1);
    let c = filled(2, 2);
    for kind in KINDS {
        let a = Array::new(kind, SUNZI_COL_MAJOR, (2, 2), |_, _| Float::with_val(100, 3));
        let matrix = a.describe();
        let words: *mut u64 = matrix.entries.cast();
        // Words to the head of entry (1, 0): its precision, or the head itself.
        let offset = match kind {
            Kind::Mpfr => 4,
            Kind::Mpf => 3,
            Kind::Limbs => 1,
        };
        // SAFETY: within the array; it is put back below.
        let head = unsafe { words.add(offset) };
        // SAFETY: as above.
        let kept = unsafe { head.replace(if kind == Kind::Limbs { 5 } else { 1 << 41 }) };
        refused(&ctx, &matrix, &c.describe(), SUNZI_INVALID_ENTRY, &["a: entry at row 1, column 0"]);
        assert_eq!(ctx.place(), (1, 0));
        // SAFETY: as above.
        unsafe { head.write(kept) };
    }
    // Limbs that break their form: a top bit of 0, bits below the precision, a zero with limbs.
    let mut limbs = [1u64 << 63, 3, 0, 1 << 63];
    let heads = [sunzi_head(0, 1), sunzi_head(1, -4)];
    let check = |heads: &[u64], limbs: &[u64], word: &str| {
        let a = sunzi_limb_matrix(SUNZI_COL_MAJOR, 2, 1, heads.as_ptr(), limbs.as_ptr(), 2, 100);
        refused(&ctx, &a, &c.describe(), SUNZI_INVALID_ENTRY, &[word, "row 0"]);
    };
    check(&heads, &limbs, "top bit is 0");
    limbs[1] |= 1 << 63;
    limbs[0] = 1;
    check(&heads, &limbs, "beyond its precision of 100 bits");
    check(&[0, heads[1]], &limbs, "head 0 and limbs other than 0");
    assert_eq!((sunzi_head(0, 1 << 31), sunzi_head_exponent(heads[1])), (0, -4));
    let far = Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (2, 1), |_, _| Float::with_val(64, 1) << ((1 << 30) - 2));
    refused(&ctx, &far.describe(), &c.describe(), SUNZI_EXPONENT_RANGE, &["exponent"]);
}

#[test]
fn contexts_that_cannot_be_made_say_why() {
    let options = |change: &dyn Fn(&mut sunzi_options)| {
        let mut options = sunzi_options_default();
        change(&mut options);
        options
    };
    for (options, status, words) in [
        (options(&|o| o.threads = -2), SUNZI_INVALID_ARGUMENT, "options: threads = -2"),
        (options(&|o| o.threads = 5000), SUNZI_INVALID_ARGUMENT, "threads = 5000 is not valid; choose 1 to 4096"),
        (options(&|o| o.kernel = c"fast".as_ptr()), SUNZI_INVALID_ARGUMENT, "unknown kernel 'fast'"),
    ] {
        let mut ctx = ptr::null_mut();
        // SAFETY: both are live.
        assert_eq!(unsafe { sunzi_context_new(&options, &mut ctx) }, status);
        let ctx = Ctx(ctx);
        assert!(ctx.message().contains(words), "{}", ctx.message());
        let c = filled(2, 2);
        refused(&ctx, &c.describe(), &c.describe(), status, &[words]);
    }
    // SAFETY: null on purpose.
    assert_eq!(unsafe { sunzi_context_new(ptr::null(), ptr::null_mut()) }, SUNZI_NULL_POINTER);
}

#[test]
fn what_this_build_lacks_is_named() {
    // SAFETY: texts end with a zero.
    let has = |name: &CStr| unsafe { sunzi_has(name.as_ptr()) } == 1;
    assert_eq!(has(c"mpi"), cfg!(feature = "mpi"));
    assert!(has(c"reference") && !has(c"nonsense"));
    // SAFETY: static texts.
    let text = |text: *const std::ffi::c_char| unsafe { CStr::from_ptr(text) }.to_str().unwrap();
    assert_eq!(text(sunzi_version()), env!("CARGO_PKG_VERSION"));
    assert_eq!(text(sunzi_status_text(SUNZI_INTERNAL as i32)), "the library has a defect");
    assert_eq!(text(sunzi_status_text(SUNZI_NOT_SYMMETRIC as i32)), "the matrix is not symmetric");
    let last = SUNZI_NOT_SYMMETRIC as i32;
    assert!((0..=last).all(|status| !text(sunzi_status_text(status)).contains("not a status")));
    assert!(text(sunzi_status_text(last + 1)).contains("not a status"));
    assert!(
        text(sunzi_status_text(99)).contains("not a status") && text(sunzi_status_text(-1)).contains("not a status")
    );
    let ctx = Ctx::new(1);
    let a = filled(2, 2);
    let (part, none) = (sunzi_dist_rows(a.describe(), 1), ptr::null());
    // SAFETY: all arrays are live.
    unsafe {
        assert_eq!(sunzi_mpi_syrk(ctx.0, SUNZI_LOWER, SUNZI_TRANS, none, &part, none, &part), SUNZI_UNAVAILABLE);
        assert_eq!(sunzi_mpi_size(ctx.0, ptr::null_mut(), ptr::null_mut()), SUNZI_UNAVAILABLE);
        assert!(ctx.message().contains("sunzi_context_from_mpi"), "{}", ctx.message());
        let mut factor = ptr::dangling_mut();
        assert_eq!(sunzi_mpi_factor_new(ctx.0, SUNZI_LOWER, 0, &part, &mut factor), SUNZI_UNAVAILABLE);
        assert!(factor.is_null());
        assert_eq!(sunzi_mpi_grid(ctx.0, 0, 1, 1, SUNZI_ROW_MAJOR), SUNZI_UNAVAILABLE);
        let desc = [1, 0, 2, 2, 2, 2, 0, 0, 2];
        let info = psunzi_rpotrf(ctx.0, c"L".as_ptr(), 2, ptr::null_mut(), 1, 1, desc.as_ptr());
        assert_eq!(info, -10_000 - SUNZI_UNAVAILABLE as i64);
        assert_eq!(psunzi_rpotrf(ptr::null(), c"L".as_ptr(), 2, ptr::null_mut(), 1, 1, desc.as_ptr()), -10_001);
        if !cfg!(feature = "mpi") {
            let mut ctx = ptr::null_mut();
            assert_eq!(sunzi_context_from_mpi(0, ptr::null(), &mut ctx), SUNZI_UNAVAILABLE);
            assert!(Ctx(ctx).message().contains("build the library with the feature mpi"));
        }
    }
}

/// `[[4, 1], [2, 5]]` where both triangles count, in every format and layout; one triangle alone is taken.
#[test]
fn matrices_that_are_not_symmetric() {
    let ctx = Ctx::new(1);
    let value = |row: usize, col: usize| Float::with_val(100, [[4, 1], [2, 5]][row][col]);
    for (kind, layout) in KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| (kind, layout))) {
        let make = || Array::new(kind, layout, (2, 2), value);
        let (a, c, b) = (make(), make(), Array::new(kind, layout, (2, 1), |_, _| Float::with_val(100, 1)));
        let (a_matrix, c_matrix, b_matrix) = (a.describe(), c.describe(), b.describe());
        let one = Float::with_val(53, 1);
        let (beta, mut factor) = (scalar(&one), ptr::null_mut());
        let refused = |status: sunzi_status, argument: &str| {
            let (message, mut place) = (ctx.message(), (-1i64, -1i64));
            // SAFETY: the places can be written.
            unsafe { sunzi_last_place(ctx.0, &mut place.0, &mut place.1) };
            assert_eq!((status, place), (SUNZI_NOT_SYMMETRIC, (1, 0)), "{kind:?}, {layout}: {message}");
            assert!(message.starts_with(argument), "{message}");
        };
        // SAFETY: all arrays are live.
        unsafe {
            refused(sunzi_cholesky(ctx.0, SUNZI_BOTH, &a_matrix), "a: ");
            refused(sunzi_solve(ctx.0, SUNZI_BOTH, &a_matrix, &b_matrix), "a: ");
            refused(sunzi_factor_new(ctx.0, SUNZI_BOTH, 0, &a_matrix, &mut factor), "a: ");
            refused(sunzi_syrk(ctx.0, SUNZI_BOTH, NO, ptr::null(), &b_matrix, &beta, &c_matrix), "c: ");
            assert!(factor.is_null());
            for uplo in [SUNZI_LOWER, SUNZI_UPPER] {
                ctx.ok(sunzi_solve(ctx.0, uplo, &a_matrix, &b_matrix), "solve");
                ctx.ok(sunzi_syrk(ctx.0, uplo, NO, ptr::null(), &b_matrix, &beta, &c_matrix), "syrk");
            }
        }
        for (row, col) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            assert_eq!(a.get(row, col), value(row, col));
        }
    }
}
