//! General matrices: LU in arrays and its twins of LAPACK give the bits of the Rust calls, and refuse what they must.

use crate::common::{Array, Ctx, KINDS, Kind, LAYOUTS, number, scalar};
use rug::Float;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use sunzi::{Accuracy, Context, Lu, LuOptions, Matrix, lu_with};
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

const COL: i32 = SUNZI_COL_MAJOR;

fn rust() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn all(_: usize, _: usize) -> bool {
    true
}

fn filled(kind: Kind, layout: i32, (rows, cols): (usize, usize), bits: u32) -> Array {
    Array::new(kind, layout, (rows, cols), |row, col| number((rows * 7919 + row * 101 + col) as u64, bits))
}

/// `[1 2 3; 2 4 7; 5 10 8]`: the second column is twice the first.
fn singular(kind: Kind) -> Array {
    let entries = [[1, 2, 3], [2, 4, 7], [5, 10, 8]];
    Array::new(kind, COL, (3, 3), |row, col| Float::with_val(100, entries[row][col]))
}

fn factors_of(rust: &Context, matrix: &Matrix, bits: u32, accuracy: Accuracy) -> Lu {
    lu_with(rust, matrix, bits, &LuOptions::new().accuracy(accuracy)).unwrap().result
}

/// Whether an order of rows is an odd permutation, by its inversions.
fn is_odd(rows: &[usize]) -> bool {
    let pairs = (0..rows.len()).flat_map(|right| (0..right).map(move |left| (left, right)));
    pairs.filter(|&(left, right)| rows[left] > rows[right]).count() % 2 == 1
}

#[test]
fn factors_solutions_and_inverses_have_the_bits_of_rust() {
    let rust = rust();
    for (accuracy, code) in [(Accuracy::Entrywise, SUNZI_ENTRYWISE), (Accuracy::Norm, SUNZI_NORM)] {
        let ctx = Ctx::with(&sunzi_options { threads: 2, accuracy: code, ..sunzi_options_default() });
        for order in [0, 1, 2, 9, 40] {
            for (kind, layout) in KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| (kind, layout))) {
                case(&ctx, &rust, accuracy, (order, kind, layout));
            }
        }
    }
}

fn case(ctx: &Ctx, rust: &Context, accuracy: Accuracy, (order, kind, layout): (usize, Kind, i32)) {
    let what = format!("order {order}, {kind:?}, layout {layout}, {accuracy:?}");
    let a = filled(kind, layout, (order, order), 256);
    let (before, a_matrix) = (a.matrix(all), a.describe());

    // In one call, at the precision of the right-hand sides.
    let b = filled(kind, layout, (order, 3), 320);
    let (right, bits) = (b.matrix(all), b.result_bits(all));
    let want = factors_of(rust, &before, bits, accuracy).solve(rust, &right, bits).unwrap();
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_general_solve(ctx.0, &a_matrix, &b.describe()) }, &what);
    b.check(&want, &right, all, &what);
    assert!(a.matrix(all) == before, "{what}: A is as it was");
    let report = ctx.report();
    let expected = if accuracy == Accuracy::Norm { SUNZI_NORM } else { SUNZI_ENTRYWISE };
    assert_eq!((report.accuracy, report.precision_bits), (expected, i64::from(bits)), "{what}");
    assert!(report.planned_bytes > report.copied_bytes || order == 0, "{what}: {report:?}");

    let bits = a.result_bits(all);
    let want = factors_of(rust, &before, bits, accuracy);
    let mut rows = vec![usize::MAX; order];
    // SAFETY: as above.
    ctx.ok(unsafe { sunzi_lu(ctx.0, &a_matrix, rows.as_mut_ptr()) }, &what);
    a.check(want.factors(), &before, all, &what);
    assert_eq!((rows.as_slice(), ctx.report().precision_bits), (want.rows(), i64::from(bits)), "{what}");
    with_factors(ctx, rust, &want, &a, &what);
}

/// Everything that factors in an array serve for.
fn with_factors(ctx: &Ctx, rust: &Context, want: &Lu, a: &Array, what: &str) {
    let (order, bits, rows, factors) = (want.order(), a.result_bits(all), want.rows(), a.describe());
    for columns in [0, 1, 4] {
        for trans in [SUNZI_NO_TRANS, SUNZI_TRANS] {
            let b = filled(Kind::Mpfr, COL, (order, columns), 192);
            let right = b.matrix(all);
            let solution = match trans {
                SUNZI_TRANS => want.solve_transposed(rust, &right, 192),
                _ => want.solve(rust, &right, 192),
            };
            // SAFETY: all arrays are live.
            ctx.ok(unsafe { sunzi_lu_solve(ctx.0, trans, &factors, rows.as_ptr(), &b.describe()) }, what);
            b.check(&solution.unwrap(), &right, all, what);
        }
    }
    // The determinant at the precision of the factors, and at more: against a product without roundings.
    let exact = (0..order).fold(Float::with_val(20_000, 1), |product, i| product * a.get(i, i));
    let exact = if is_odd(rows) { -exact } else { exact };
    for precision in [bits, 700] {
        let found = Float::with_val(precision, rug::float::Special::Nan);
        // SAFETY: as above.
        ctx.ok(unsafe { sunzi_lu_det(ctx.0, &factors, rows.as_ptr(), &scalar(&found)) }, what);
        let error = Float::with_val(20_000, &found - &exact).abs();
        assert!(error <= Float::with_val(64, exact.abs_ref()) >> (precision - 1), "{what}: {found} for {exact}");
        assert!(precision != bits || found == want.det().unwrap(), "{what}");
    }
    // The inverse in an array of its own, and in that of the factors.
    let inverse = filled(Kind::Mpf, SUNZI_ROW_MAJOR, (order, order), 300);
    for target in [&inverse, a] {
        let (before, bits) = (target.matrix(all), target.result_bits(all));
        // SAFETY: as above.
        let found = unsafe { sunzi_lu_inverse(ctx.0, &factors, rows.as_ptr(), &target.describe()) };
        ctx.ok(found, what);
        target.check(&want.inverse(rust, bits).unwrap(), &before, all, what);
    }
}

#[test]
fn singular_matrices_stay_as_they_were() {
    let ctx = Ctx::new(1);
    for kind in KINDS {
        let (a, b) = (singular(kind), filled(kind, COL, (3, 1), 100));
        let (before, right, mut rows) = (a.matrix(all), b.matrix(all), [7; 3]);
        // SAFETY: all arrays are live.
        let found = unsafe {
            [
                sunzi_lu(ctx.0, &a.describe(), rows.as_mut_ptr()),
                sunzi_general_solve(ctx.0, &a.describe(), &b.describe()),
            ]
        };
        assert_eq!((found, ctx.place()), ([SUNZI_SINGULAR; 2], (1, 1)));
        assert!(ctx.message().contains("in column 1 all candidates for the pivot are 0"), "{}", ctx.message());
        assert_eq!((a.matrix(all), b.matrix(all), rows), (before, right, [7; 3]));
    }
}

#[test]
fn wrong_arguments_have_a_status_and_a_name() {
    let ctx = Ctx::new(1);
    let [a, wide, b, tall] = [(3, 3), (3, 2), (3, 1), (4, 1)].map(|shape| filled(Kind::Mpfr, COL, shape, 100));
    let before = [&a, &b].map(|array| array.matrix(all));
    let (square, wide, right, tall, null) = (a.describe(), wide.describe(), b.describe(), tall.describe(), ptr::null());
    let (order, value, no) = ([0, 1, 2], Float::with_val(64, 77), SUNZI_NO_TRANS);
    let (rows, result, ctx_) = (order.as_ptr(), scalar(&value), ctx.0);
    let refused = |status: sunzi_status, expected: sunzi_status, words: &str| {
        let message = ctx.message();
        assert!(status == expected && message.contains(words), "{status:?} {message}, not {words}");
    };
    // SAFETY: all arrays are live, or null on purpose; nothing is read through the odd address.
    unsafe {
        let mut written = order;
        let to = written.as_mut_ptr();
        refused(sunzi_lu(ptr::null(), &square, to), SUNZI_NULL_POINTER, "");
        refused(sunzi_lu(ctx_, null, to), SUNZI_NULL_POINTER, "a: the pointer is null");
        refused(sunzi_lu(ctx_, &square, ptr::null_mut()), SUNZI_NULL_POINTER, "rows: the pointer is null");
        let odd = to.cast::<u8>().wrapping_add(1).cast();
        refused(sunzi_lu(ctx_, &square, odd), SUNZI_INVALID_ARGUMENT, "rows: the address must be a multiple of");
        refused(sunzi_lu(ctx_, &wide, to), SUNZI_INVALID_SIZE, "a: the matrix is 3 x 2; it must be square");
        refused(sunzi_general_solve(ctx_, &wide, &right), SUNZI_INVALID_SIZE, "a: the matrix is 3 x 2");
        refused(sunzi_general_solve(ctx_, &square, &tall), SUNZI_INVALID_SIZE, "b: the matrix is 4 x 1");
        refused(sunzi_lu_solve(ctx_, 0, &square, rows, &right), SUNZI_INVALID_ARGUMENT, "trans: 0");
        refused(sunzi_lu_solve(ctx_, no, &wide, rows, &right), SUNZI_INVALID_SIZE, "factors: the matrix is 3 x 2");
        refused(sunzi_lu_solve(ctx_, no, &square, rows, &tall), SUNZI_INVALID_SIZE, "b: the matrix is 4 x 1");
        refused(sunzi_lu_solve(ctx_, no, &square, ptr::null(), &right), SUNZI_NULL_POINTER, "rows: ");
        refused(sunzi_lu_inverse(ctx_, &square, rows, &wide), SUNZI_INVALID_SIZE, "inverse: the matrix is 3 x 2");
        refused(sunzi_lu_inverse(ctx_, &square, ptr::null(), &square), SUNZI_NULL_POINTER, "rows: ");
        refused(sunzi_lu_det(ctx_, &wide, rows, &result), SUNZI_INVALID_SIZE, "factors: the matrix is 3 x 2");
        refused(sunzi_lu_det(ctx_, &square, rows, &right), SUNZI_INVALID_SIZE, "result: the matrix is 3 x 1");
        for (wrong, words) in
            [([0, 1, 3], "entry 2 is 3"), ([2, 2, 1], "entry 1 is 2"), ([0, usize::MAX, 1], "entry 1")]
        {
            let (rows, words) = (wrong.as_ptr(), format!("rows: {words}"));
            refused(sunzi_lu_solve(ctx_, no, &square, rows, &right), SUNZI_INVALID_ARGUMENT, &words);
            refused(sunzi_lu_inverse(ctx_, &square, rows, &square), SUNZI_INVALID_ARGUMENT, &words);
            refused(
                sunzi_lu_det(ctx_, &square, rows, &result),
                SUNZI_INVALID_ARGUMENT,
                "numbers from 0 to 2, each once",
            );
        }
        assert_eq!(written, order);
    }
    assert_eq!(([&a, &b].map(|array| array.matrix(all)), value.to_f64()), (before, 77.0));
}

#[test]
fn zeros_and_numbers_that_are_not_finite() {
    let (ctx, rows) = (Ctx::new(1), [2, 0, 1]);
    let value = |row: usize, col: usize| Float::with_val(100, if row == col { 2 - row as i32 } else { 1 });
    let (factors, b, value) =
        (Array::new(Kind::Mpfr, COL, (3, 3), value), filled(Kind::Mpfr, COL, (3, 1), 100), Float::with_val(64, 77));
    let (rows, no) = (rows.as_ptr(), SUNZI_NO_TRANS);
    // SAFETY: all arrays are live.
    unsafe {
        let found = sunzi_lu_solve(ctx.0, no, &factors.describe(), rows, &b.describe());
        assert_eq!((found, ctx.place()), (SUNZI_SINGULAR, (2, 2)), "{}", ctx.message());
        ctx.ok(sunzi_lu_det(ctx.0, &factors.describe(), rows, &scalar(&value)), "the determinant of a singular matrix");
    }
    assert_eq!(value, 0);
    let mut spoilt = filled(Kind::Mpfr, COL, (3, 3), 100);
    spoilt.set(2, 1, &Float::with_val(100, rug::float::Special::Nan));
    let (matrix, mut order) = (spoilt.describe(), [7; 3]);
    // SAFETY: as above.
    unsafe {
        assert_eq!(sunzi_lu(ctx.0, &matrix, order.as_mut_ptr()), SUNZI_NOT_FINITE);
        assert_eq!((ctx.place(), order), ((2, 1), [7; 3]));
        assert!(ctx.message().starts_with("a: entry at row 2, column 1"), "{}", ctx.message());
        // Only the diagonal counts for a determinant.
        ctx.ok(sunzi_lu_det(ctx.0, &matrix, rows, &scalar(&value)), "det");
        assert_eq!(sunzi_lu_inverse(ctx.0, &matrix, rows, &factors.describe()), SUNZI_NOT_FINITE);
    }
    // A determinant beyond the exponents has none.
    let most = Array::new(Kind::Mpfr, COL, (3, 3), |row, col| {
        if row == col { Float::with_val(100, 1) << (1 << 29) } else { Float::new(100) }
    });
    // SAFETY: as above.
    let found = unsafe { sunzi_lu_det(ctx.0, &most.describe(), rows, &scalar(&value)) };
    assert_eq!(found, SUNZI_EXPONENT_RANGE, "{}", ctx.message());
}

/// The entry points of the twins for both kinds.
type Rgetrf = unsafe extern "C" fn(*const sunzi_context, i64, i64, *mut c_void, i64, *mut i64) -> i64;
type Rgetrs = unsafe extern "C" fn(
    *const sunzi_context,
    *const c_char,
    i64,
    i64,
    *const c_void,
    i64,
    *const i64,
    *mut c_void,
    i64,
) -> i64;
type Rgesv = unsafe extern "C" fn(*const sunzi_context, i64, i64, *mut c_void, i64, *mut i64, *mut c_void, i64) -> i64;
type Rgetri = unsafe extern "C" fn(*const sunzi_context, i64, *mut c_void, i64, *const i64, *mut c_void, i64) -> i64;

struct Twins {
    getrf: Rgetrf,
    getrs: Rgetrs,
    gesv: Rgesv,
    getri: Rgetri,
}

fn twins(kind: Kind) -> Twins {
    match kind {
        Kind::Mpf => {
            Twins { getrf: sunzi_rgetrf_mpf, getrs: sunzi_rgetrs_mpf, gesv: sunzi_rgesv_mpf, getri: sunzi_rgetri_mpf }
        }
        _ => Twins { getrf: sunzi_rgetrf, getrs: sunzi_rgetrs, gesv: sunzi_rgesv, getri: sunzi_rgetri },
    }
}

fn entries(array: &Array) -> *mut c_void {
    array.describe().entries
}

fn same(left: &Array, right: &Array, what: &str) {
    right.check_gaps();
    assert!(left.matrix(all) == right.matrix(all), "{what}");
}

/// The order of rows after LAPACK's interchanges, as `laswp` makes them.
fn after(ipiv: &[i64]) -> Vec<usize> {
    let mut rows = (0..ipiv.len()).collect::<Vec<_>>();
    ipiv.iter().enumerate().for_each(|(at, &pivot)| rows.swap(at, pivot as usize - 1));
    rows
}

#[test]
fn twins_have_the_bits_of_the_other_calls() {
    let ctx = Ctx::new(1);
    for (kind, order) in [Kind::Mpfr, Kind::Mpf].into_iter().flat_map(|kind| [0, 1, 9, 30].map(|n| (kind, n))) {
        let (of, n, what) = (twins(kind), order as i64, format!("{kind:?}, order {order}"));
        let [want, found, both] = [(); 3].map(|()| filled(kind, COL, (order, order), 200));
        let (mut rows, mut ipiv, lda) = (vec![0; order], vec![0; order], found.ld as i64);
        // SAFETY: all arrays are live.
        unsafe {
            ctx.ok(sunzi_lu(ctx.0, &want.describe(), rows.as_mut_ptr()), &what);
            assert_eq!((of.getrf)(ctx.0, n, n, entries(&found), lda, ipiv.as_mut_ptr()), 0, "{}", ctx.message());
        }
        same(&want, &found, &what);
        assert!(ipiv.iter().enumerate().all(|(at, &pivot)| pivot > at as i64 && pivot <= n), "{what}: {ipiv:?}");
        assert_eq!(after(&ipiv), rows, "{what}");
        let (factors, order_of_rows, pivots) = (want.describe(), rows.as_ptr(), ipiv.as_ptr());
        for (letters, trans) in [([c"N", c"n"], SUNZI_NO_TRANS), ([c"T", c"c"], SUNZI_TRANS)] {
            let [x_want, x_found, x_one] = [(); 3].map(|()| filled(kind, COL, (order, 4), 200));
            let (ldb, letters) = (x_found.ld as i64, letters.map(CStr::as_ptr));
            // SAFETY: as above.
            unsafe {
                ctx.ok(sunzi_lu_solve(ctx.0, trans, &factors, order_of_rows, &x_want.describe()), &what);
                let (a, b) = (entries(&found), entries(&x_found));
                assert_eq!((of.getrs)(ctx.0, letters[0], n, 3, a, lda, pivots, b, ldb), 0, "{}", ctx.message());
                let last = x_found.ld * 3;
                let last = match kind {
                    Kind::Mpf => b.cast::<gmp_mpfr_sys::gmp::mpf_t>().wrapping_add(last).cast(),
                    _ => b.cast::<Float>().wrapping_add(last).cast(),
                };
                assert_eq!((of.getrs)(ctx.0, letters[1], n, 1, a, lda, pivots, last, ldb), 0, "{}", ctx.message());
            }
            same(&x_want, &x_found, &what);
            if trans == SUNZI_NO_TRANS {
                let (a, b) = (entries(&both), entries(&x_one));
                let mut own = vec![0; order];
                // SAFETY: as above.
                let info = unsafe { (of.gesv)(ctx.0, n, 4, a, lda, own.as_mut_ptr(), b, ldb) };
                assert_eq!((info, &own), (0, &ipiv), "{}", ctx.message());
                same(&want, &both, &what);
                same(&x_want, &x_one, &what);
            }
        }
        let work = filled(kind, COL, (order + 1, 1), 64);
        // SAFETY: as above.
        unsafe {
            assert_eq!((of.getri)(ctx.0, n, ptr::null_mut(), lda, ptr::null(), entries(&work), -1), 0);
            assert_eq!(work.get(0, 0), n.max(1), "{what}: the answer of the query");
            ctx.ok(sunzi_lu_inverse(ctx.0, &factors, order_of_rows, &factors), &what);
            let info = (of.getri)(ctx.0, n, entries(&found), lda, pivots, entries(&work), n.max(1));
            assert_eq!(info, 0, "{}", ctx.message());
        }
        same(&want, &found, &what);
        assert!((1..=order).all(|at| work.get(at, 0) == number((work.rows * 7919 + at * 101) as u64, 64)), "{what}");
    }
}

/// A precise right-hand side makes the factors as precise.
#[test]
fn gesv_factors_at_the_larger_precision() {
    let (ctx, rust) = (Ctx::new(1), rust());
    let (a, b) = (filled(Kind::Mpfr, COL, (5, 5), 80), filled(Kind::Mpfr, COL, (5, 2), 400));
    let (matrix, right, mut ipiv) = (a.matrix(all), b.matrix(all), [0; 5]);
    let want = factors_of(&rust, &matrix, 400, Accuracy::Entrywise);
    // SAFETY: all arrays are live.
    let info =
        unsafe { sunzi_rgesv(ctx.0, 5, 2, entries(&a), a.ld as i64, ipiv.as_mut_ptr(), entries(&b), b.ld as i64) };
    assert_eq!(info, 0, "{}", ctx.message());
    b.check(&want.solve(&rust, &right, 400).unwrap(), &right, all, "gesv");
    a.check(want.factors(), &matrix, all, "gesv");
}

#[test]
fn info_of_twins() {
    let ctx = Ctx::new(1);
    for kind in [Kind::Mpfr, Kind::Mpf] {
        let of = twins(kind);
        let (a, b, good) = (singular(kind), filled(kind, COL, (3, 1), 100), filled(kind, COL, (3, 3), 100));
        let before = [&a, &b].map(|array| array.matrix(all));
        let (mut ipiv, no, none, null) = ([1, 2, 3], c"N".as_ptr(), ptr::null_mut::<c_void>(), ptr::null());
        let (first, second, x, ld) = (entries(&a), entries(&good), entries(&b), a.ld as i64);
        let work = filled(kind, COL, (3, 1), 64);
        let (room, to) = (entries(&work), ipiv.as_mut_ptr());
        // SAFETY: all arrays are live, or null on purpose.
        unsafe {
            assert_eq!((of.getrf)(ctx.0, 3, 3, first, ld, to), 2, "{}", ctx.message());
            assert_eq!((of.gesv)(ctx.0, 3, 1, first, ld, to, x, ld), 2);
            assert_eq!(([&a, &b].map(|array| array.matrix(all)), to.cast::<[i64; 3]>().read()), (before, [1, 2, 3]));

            assert_eq!((of.getrf)(ctx.0, -1, 3, second, ld, to), -1);
            assert_eq!((of.getrf)(ctx.0, 3, -1, second, ld, to), -2);
            assert_eq!((of.getrf)(ctx.0, 3, 2, second, ld, to), -2);
            assert!(ctx.message().contains("A is 3 x 2; only square matrices"), "{}", ctx.message());
            assert_eq!((of.getrf)(ctx.0, 3, 3, none, ld, to), -3);
            assert_eq!((of.getrf)(ctx.0, 3, 3, second, 2, to), -4);
            assert_eq!((of.getrf)(ctx.0, 3, 3, second, ld, ptr::null_mut()), -5);
            assert_eq!((of.getrf)(ctx.0, 0, 3, none, 1, ptr::null_mut()), 0);
            assert_eq!((of.getrf)(ctx.0, 3, 0, none, 3, ptr::null_mut()), 0);
            assert_eq!((of.getrf)(ptr::null(), 3, 3, second, ld, to), -1001);

            assert_eq!((of.getrs)(ctx.0, c"X".as_ptr(), 3, 1, second, ld, to, x, ld), -1);
            assert_eq!((of.getrs)(ctx.0, ptr::null(), 3, 1, second, ld, to, x, ld), -1);
            assert_eq!((of.getrs)(ctx.0, no, -3, 1, second, ld, to, x, ld), -2);
            assert_eq!((of.getrs)(ctx.0, no, 3, -1, second, ld, to, x, ld), -3);
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, none, ld, to, x, ld), -4);
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, second, 2, to, x, ld), -5);
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, second, ld, null, x, ld), -6);
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, second, ld, to, none, ld), -7);
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, second, ld, to, x, 2), -8);
            for wrong in [[0, 2, 3], [1, 4, 3], [1, 2, i64::MIN]] {
                assert_eq!((of.getrs)(ctx.0, no, 3, 1, second, ld, wrong.as_ptr(), x, ld), -6);
                assert_eq!((of.getri)(ctx.0, 3, second, ld, wrong.as_ptr(), room, 3), -4);
                assert!(ctx.message().contains("is not one of the rows 1 to 3"), "{}", ctx.message());
            }
            // Any interchanges within the matrix are an order, whatever made them.
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, second, ld, [3, 3, 1].as_ptr(), x, ld), 0, "{}", ctx.message());
            // Without right-hand sides the factors are not looked at.
            assert_eq!((of.getrs)(ctx.0, no, 3, 0, second, ld, [9; 3].as_ptr(), none, ld), 0);
        }
    }
}

#[test]
fn info_of_twins_that_solve_or_invert() {
    let ctx = Ctx::new(1);
    for kind in [Kind::Mpfr, Kind::Mpf] {
        let (of, b, good) = (twins(kind), filled(kind, COL, (3, 1), 100), filled(kind, COL, (3, 3), 100));
        let (mut ipiv, no, none, null) = ([1, 2, 3], c"N".as_ptr(), ptr::null_mut::<c_void>(), ptr::null());
        let (second, x, ld) = (entries(&good), entries(&b), good.ld as i64);
        let work = filled(kind, COL, (3, 1), 64);
        let (room, to) = (entries(&work), ipiv.as_mut_ptr());
        // SAFETY: all arrays are live, or null on purpose.
        unsafe {
            assert_eq!((of.gesv)(ctx.0, -1, 1, second, ld, to, x, ld), -1);
            assert_eq!((of.gesv)(ctx.0, 3, -1, second, ld, to, x, ld), -2);
            assert_eq!((of.gesv)(ctx.0, 3, 1, none, ld, to, x, ld), -3);
            assert_eq!((of.gesv)(ctx.0, 3, 1, second, 1, to, x, ld), -4);
            assert_eq!((of.gesv)(ctx.0, 3, 1, second, ld, ptr::null_mut(), x, ld), -5);
            assert_eq!((of.gesv)(ctx.0, 3, 1, second, ld, to, none, ld), -6);
            assert_eq!((of.gesv)(ctx.0, 3, 1, second, ld, to, x, 0), -7);
            assert_eq!((of.gesv)(ctx.0, 0, 1, none, 1, ptr::null_mut(), none, 1), 0);

            assert_eq!((of.getri)(ctx.0, -1, second, ld, to, room, 3), -1);
            assert_eq!((of.getri)(ctx.0, 3, none, ld, to, room, 3), -2);
            assert_eq!((of.getri)(ctx.0, 3, second, 2, to, room, 3), -3);
            assert_eq!((of.getri)(ctx.0, 3, second, 2, to, room, -1), -3);
            assert_eq!((of.getri)(ctx.0, 3, second, ld, null, room, 3), -4);
            assert_eq!((of.getri)(ctx.0, 3, second, ld, to, none, 3), -5);
            assert_eq!((of.getri)(ctx.0, 3, second, ld, to, room, 2), -6);
            assert_eq!((of.getri)(ctx.0, 0, none, 1, null, room, 0), -6);

            // Without right-hand sides there are factors nevertheless; then U with a zero.
            assert_eq!((of.gesv)(ctx.0, 3, 0, second, ld, to, none, ld), 0, "{}", ctx.message());
            let zero = Array::new(kind, COL, (3, 3), |row, _| Float::with_val(64, 1 - row as i32));
            let before = zero.matrix(all);
            assert_eq!((of.getrs)(ctx.0, no, 3, 1, entries(&zero), ld, to, x, ld), 2);
            assert_eq!((of.getri)(ctx.0, 3, entries(&zero), ld, to, room, 3), 2);
            assert!(zero.matrix(all) == before);
        }
    }
}
