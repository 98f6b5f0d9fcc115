//! TRSM, Cholesky, solves, log-determinants and kept factors on every kind of array: the bits of the Rust call.

use crate::common::{Array, Ctx, KINDS, Kind, LAYOUTS, definite, number, scalar, within};
use rug::Float;
use std::ptr;
use sunzi::estimate::{InputRounding, log_det_of};
use sunzi::{Cholesky, CholeskyOptions, Context, Diag, Matrix, Op, Side, TrsmOptions, Uplo, cholesky_with, trsm_with};
use sunzi_c::*;

fn rust() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn uplo_of(uplo: i32) -> Uplo {
    if uplo == SUNZI_LOWER { Uplo::Lower } else { Uplo::Upper }
}

fn all(_: usize, _: usize) -> bool {
    true
}

/// Entries of `matrix` in one triangle; in the other NaN where the kind has it, and words that are no numbers where the
/// numbers are raw.
fn triangle(kind: Kind, layout: i32, uplo: i32, matrix: &Matrix) -> Array {
    let mut array = Array::new(kind, layout, (matrix.rows(), matrix.cols()), |row, col| match within(uplo, row, col) {
        false if kind == Kind::Mpfr => Float::with_val(40, rug::float::Special::Nan),
        false => Float::with_val(matrix.precision_bits(), -12345),
        true => matrix.float(row, col),
    });
    let (rows, cols) = (array.rows, array.cols);
    let places = (0..cols).flat_map(|col| (0..rows).map(move |row| (row, col)));
    for (row, col) in places.filter(|&(row, col)| kind == Kind::Limbs && !within(uplo, row, col)) {
        array.spoil(row, col);
    }
    array
}

/// The other triangle is as it was.
fn check_triangle(a: &Array, want: &Matrix, uplo: i32, kind: Kind, what: &str) {
    a.check_gaps();
    for col in 0..a.cols {
        for row in 0..a.rows {
            if kind == Kind::Limbs && !within(uplo, row, col) {
                assert!(a.is_spoiled(row, col), "{what}: ({row}, {col})");
                continue;
            }
            let found = a.get(row, col);
            if within(uplo, row, col) {
                assert_eq!(found, Float::with_val(a.bits(row, col), &want.float(row, col)), "{what}: ({row}, {col})");
            } else if kind == Kind::Mpfr {
                assert!(found.is_nan() && found.prec() == 40, "{what}: ({row}, {col}) is {found}");
            } else {
                assert_eq!(found, -12345, "{what}: ({row}, {col})");
            }
        }
    }
}

#[test]
fn factors_and_solutions_have_the_bits_of_rust() {
    let (ctx, rust) = (Ctx::new(2), rust());
    for order in [0, 1, 2, 9, 40] {
        for kind in KINDS {
            for layout in LAYOUTS {
                for uplo in [SUNZI_LOWER, SUNZI_UPPER] {
                    factor_case(&ctx, &rust, order, (kind, layout, uplo));
                }
            }
        }
    }
}

fn factor_case(ctx: &Ctx, rust: &Context, order: usize, (kind, layout, uplo): (Kind, i32, i32)) {
    let what = format!("order {order}, {kind:?}, layout {layout}, uplo {uplo}");
    let matrix = definite(order, 256, 3);
    let a = triangle(kind, layout, uplo, &matrix);
    let bits = a.result_bits(|row, col| within(uplo, row, col));
    let options = CholeskyOptions::default();
    let want = cholesky_with(rust, &matrix, bits, &options).unwrap().result;
    let a_matrix = a.describe();

    // One call: the factor at the right side's precision.
    let b = Array::new(kind, layout, (order, 5), |row, col| number((row * 7 + col) as u64, 320));
    let (before, b_matrix) = (b.matrix(all), b.describe());
    let b_bits = b.result_bits(all);
    let solution = cholesky_with(rust, &matrix, b_bits, &options).unwrap().result.solve(rust, &before, b_bits).unwrap();
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_solve(ctx.0, uplo, &a_matrix, &b_matrix) }, &what);
    b.check(&solution, &before, all, &what);

    // In place, then solves from the triangle.
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_cholesky(ctx.0, uplo, &a_matrix) }, &what);
    let factor =
        if uplo == SUNZI_LOWER { want.factor().clone() } else { want.factor().transposed().to_matrix().unwrap() };
    check_triangle(&a, &factor, uplo, kind, &what);
    for columns in [0, 1, 4] {
        let b = Array::new(kind, layout, (order, columns), |row, col| number((row * 9 + col) as u64, 192));
        let (before, b_matrix) = (b.matrix(all), b.describe());
        let solution = want.solve(rust, &before, b.result_bits(all)).unwrap();
        // SAFETY: all arrays are live.
        ctx.ok(unsafe { sunzi_cholesky_solve(ctx.0, uplo, &a_matrix, &b_matrix) }, &what);
        b.check(&solution, &before, all, &what);
    }
    let result = Float::with_val(200, rug::float::Special::Nan);
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_log_det(ctx.0, &a_matrix, &scalar(&result)) }, &what);
    assert_eq!(result, log_det_of(want.factor(), 200), "{what}");
}

#[test]
fn kept_factors_solve_as_often_as_asked() {
    let (ctx, rust) = (Ctx::new(1), rust());
    for (order, precision_bits) in [(0, 0), (1, 300), (30, 0), (30, 400)] {
        let matrix = definite(order, 256, 8);
        let a = Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &matrix);
        let bits = if precision_bits == 0 { a.result_bits(all) } else { precision_bits as u32 };
        let want = cholesky_with(&rust, &matrix, bits, &CholeskyOptions::default()).unwrap().result;
        let mut factor = ptr::null_mut();
        // SAFETY: all arrays are live.
        let made = unsafe { sunzi_factor_new(ctx.0, SUNZI_UPPER, precision_bits, &a.describe(), &mut factor) };
        ctx.ok(made, "factor");
        // SAFETY: the factor is live until it is freed below.
        unsafe {
            assert_eq!(sunzi_factor_order(factor), order as i64);
            assert_eq!(sunzi_factor_precision_bits(factor), i64::from(bits));
        }
        for columns in [1, 7] {
            let b =
                Array::new(Kind::Mpf, SUNZI_COL_MAJOR, (order, columns), |row, col| number((row + col) as u64, 256));
            let (before, b_matrix) = (b.matrix(all), b.describe());
            let solution = want.solve(&rust, &before, b.result_bits(all)).unwrap();
            // SAFETY: all are live.
            ctx.ok(unsafe { sunzi_factor_solve(ctx.0, factor, &b_matrix) }, "solve");
            b.check(&solution, &before, all, "solve");
        }
        let log_det = Float::new(500);
        // SAFETY: all are live.
        ctx.ok(unsafe { sunzi_factor_log_det(ctx.0, factor, &scalar(&log_det)) }, "log det");
        assert_eq!(log_det, log_det_of(want.factor(), 500));
        check_digits(&ctx, factor, &want, &matrix);
        for kind in KINDS {
            // Fewer bits than the factor has, and more.
            for bits in [128, 512] {
                let blank = Matrix::zeros(order, order, bits).unwrap();
                let got = triangle(kind, SUNZI_COL_MAJOR, SUNZI_UPPER, &blank);
                // SAFETY: all are live.
                ctx.ok(unsafe { sunzi_factor_get(ctx.0, factor, SUNZI_UPPER, &got.describe()) }, "get");
                let upper = want.factor().transposed().to_matrix().unwrap();
                check_triangle(&got, &upper, SUNZI_UPPER, kind, "get");
            }
        }
        // SAFETY: live, and not used again.
        unsafe { sunzi_factor_free(factor) };
    }
}

/// What a kept factor says of digits is what Rust says of the same factor.
fn check_digits(ctx: &Ctx, factor: *const sunzi_factor, want: &Cholesky, matrix: &Matrix) {
    let (rust, order) = (rust(), matrix.rows());
    let b = Array::new(Kind::Mpfr, SUNZI_ROW_MAJOR, (order, 2), |row, col| number((row + 5 * col) as u64, 256));
    let x = Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &want.solve(&rust, &b.matrix(all), 256).unwrap());
    let a = Array::of(Kind::Mpfr, SUNZI_COL_MAJOR, matrix);
    let mut found = [f64::NAN; 3];
    // SAFETY: all are live.
    let statuses = unsafe {
        [
            sunzi_factor_condition_bits(ctx.0, factor, &mut found[0]),
            sunzi_factor_log_det_digits(ctx.0, factor, &mut found[1]),
            sunzi_factor_solution_digits(
                ctx.0,
                factor,
                SUNZI_LOWER,
                &a.describe(),
                &b.describe(),
                &x.describe(),
                &mut found[2],
            ),
        ]
    };
    statuses.into_iter().for_each(|status| ctx.ok(status, "digits"));
    let condition = want.scaled_condition(&rust).unwrap().log2().to_f64().max(0.0);
    let solution = want.solution_digits(&rust, matrix, &b.matrix(all), &x.matrix(all)).unwrap();
    assert_eq!(found, [condition, want.log_det_digits(&rust).unwrap(), solution]);
    assert!(order == 0 || found[2] > 15.0, "{found:?}");
    // SAFETY: null pointers are refused.
    let refused = unsafe { sunzi_factor_log_det_digits(ctx.0, ptr::null(), &mut found[0]) };
    assert_eq!(refused, sunzi_status::SUNZI_NULL_POINTER);
}

/// Inverses of a kept factor, and what it says and proves of digits, are those of Rust.
#[test]
fn inverses_and_certificates_are_those_of_rust() {
    let (ctx, rust) = (Ctx::new(2), rust());
    for (order, uplo, kind) in [
        (1, SUNZI_LOWER, Kind::Mpfr),
        (7, SUNZI_UPPER, Kind::Limbs),
        (9, SUNZI_LOWER, Kind::Mpfr),
        (6, SUNZI_BOTH, Kind::Mpfr),
    ] {
        let matrix = definite(order, 256, 5);
        let describe = |matrix: &Matrix| match uplo {
            SUNZI_BOTH => Array::of(kind, SUNZI_ROW_MAJOR, matrix),
            uplo => triangle(kind, SUNZI_ROW_MAJOR, uplo, matrix),
        };
        let (a, got) = (describe(&matrix), describe(&Matrix::zeros(order, order, 256).unwrap()));
        let b = Array::of(Kind::Mpfr, SUNZI_COL_MAJOR, &matrix);
        let mut factor = ptr::null_mut();
        let mut found = [f64::NAN; 4];
        // SAFETY: all are live.
        let statuses = unsafe {
            let made = sunzi_factor_new(ctx.0, uplo, 256, &a.describe(), &mut factor);
            [
                made,
                sunzi_factor_inverse(ctx.0, factor, uplo, &got.describe()),
                sunzi_factor_inverse_digits(ctx.0, factor, uplo, &a.describe(), &got.describe(), &mut found[0]),
                sunzi_factor_certified_inverse_digits(
                    ctx.0,
                    factor,
                    uplo,
                    &a.describe(),
                    &got.describe(),
                    &mut found[1],
                ),
                sunzi_factor_certified_log_det_digits(ctx.0, factor, uplo, &a.describe(), &mut found[2]),
                sunzi_factor_certified_solution_digits(
                    ctx.0,
                    factor,
                    uplo,
                    &a.describe(),
                    &b.describe(),
                    &b.describe(),
                    &mut found[3],
                ),
            ]
        };
        statuses.into_iter().for_each(|status| ctx.ok(status, "inverse"));
        let want = cholesky_with(&rust, &matrix, 256, &CholeskyOptions::new()).unwrap().result;
        let inverse = want.inverse(&rust, 256).unwrap().into_matrix();
        match uplo {
            SUNZI_BOTH => assert!(got.matrix(all) == inverse),
            uplo => check_triangle(&got, &inverse, uplo, kind, "inverse"),
        }
        let proof = want.certify(&rust, &matrix).unwrap().unwrap();
        let expected = [
            want.inverse_digits(&rust, &matrix, &inverse).unwrap(),
            proof.inverse_digits(&rust, &inverse).unwrap(),
            proof.log_det_digits(&rust).unwrap(),
            proof.solution_digits(&rust, &matrix, &matrix).unwrap(),
        ];
        assert_eq!(found, expected);
        assert!(found[0] > 60.0 && found[1] > 40.0 && found[2] > 40.0 && found[3] < 2.0, "{found:?}");
        // SAFETY: null pointers and wrong shapes are refused.
        unsafe {
            let refused = sunzi_factor_inverse(ctx.0, ptr::null(), uplo, &got.describe());
            assert_eq!(refused, sunzi_status::SUNZI_NULL_POINTER);
            let small = Array::of(Kind::Mpfr, SUNZI_COL_MAJOR, &Matrix::zeros(order + 1, order + 1, 64).unwrap());
            assert_eq!(sunzi_factor_inverse(ctx.0, factor, uplo, &small.describe()), sunzi_status::SUNZI_INVALID_SIZE);
            sunzi_factor_free(factor);
        }
    }
}

#[test]
fn trsm_has_the_bits_of_rust() {
    let (ctx, rust) = (Ctx::new(2), rust());
    let mut case = 0;
    for (order, columns) in [(0, 2), (1, 1), (2, 0), (9, 5), (25, 30)] {
        for uplo in [SUNZI_LOWER, SUNZI_UPPER] {
            for trans in [SUNZI_NO_TRANS, SUNZI_TRANS] {
                for diag in [SUNZI_NON_UNIT, SUNZI_UNIT] {
                    for side in [SUNZI_LEFT, SUNZI_RIGHT] {
                        case += 1;
                        trsm_case(&ctx, &rust, (order, columns), (side, uplo, trans, diag), case);
                    }
                }
            }
        }
    }
}

fn trsm_case(
    ctx: &Ctx,
    rust: &Context,
    (order, columns): (usize, usize),
    (side, uplo, trans, diag): (i32, i32, i32, i32),
    case: usize,
) {
    let what = format!("order {order}, side {side}, uplo {uplo}, trans {trans}, diag {diag}, case {case}");
    let (kind, layout) = (KINDS[case % 3], LAYOUTS[case / 3 % 2]);
    let counts = |row: usize, col: usize| within(uplo, row, col) && (row != col || diag == SUNZI_NON_UNIT);
    let t = Array::new(kind, layout, (order, order), |row, col| match counts(row, col) {
        false if kind == Kind::Mpfr => Float::with_val(40, rug::float::Special::Nan),
        _ if row == col => number(row as u64, 200).abs() + 3u32,
        _ => number((row * 100 + col) as u64, 200) >> 3,
    });
    let shape = if side == SUNZI_LEFT { (order, columns) } else { (columns, order) };
    let b = Array::new(KINDS[case / 2 % 3], layout, shape, |row, col| number((row * 31 + col) as u64, 256));
    let alpha = (!case.is_multiple_of(3)).then(|| number(4, 100));
    let options = TrsmOptions::new()
        .side(if side == SUNZI_LEFT { Side::Left } else { Side::Right })
        .uplo(uplo_of(uplo))
        .op(if trans == SUNZI_TRANS { Op::Transpose } else { Op::NoTranspose })
        .diag(if diag == SUNZI_UNIT { Diag::Unit } else { Diag::NonUnit })
        .alpha(alpha.as_ref());
    let (before, bits) = (b.matrix(all), b.result_bits(all));
    let want = trsm_with(rust, &t.matrix(counts), &before, bits, &options).unwrap().result;
    let (t_matrix, b_matrix) = (t.describe(), b.describe());
    let pointed = alpha.as_ref().map(scalar);
    let alpha = pointed.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_trsm(ctx.0, side, uplo, trans, diag, alpha, &t_matrix, &b_matrix) }, &what);
    b.check(&want, &before, all, &what);
}

#[test]
fn bad_pivots_are_named_and_leave_the_matrix_as_it_was() {
    let ctx = Ctx::new(1);
    for bad in [0, 3, 9] {
        let mut matrix = definite(10, 128, 5);
        matrix.set_f64(bad, bad, -1.0).unwrap();
        for kind in KINDS {
            let a = Array::of(kind, SUNZI_ROW_MAJOR, &matrix);
            // SAFETY: the array is live.
            let status = unsafe { sunzi_cholesky(ctx.0, SUNZI_LOWER, &a.describe()) };
            assert_eq!(status, sunzi_status::SUNZI_NOT_POSITIVE_DEFINITE);
            assert!(ctx.message().contains(&format!("index {bad}")), "{}", ctx.message());
            assert_eq!(ctx.place(), (bad as i64, bad as i64));
            a.check(&matrix, &matrix, all, "a failed factorisation");
        }
    }
    let zero = Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (4, 4), |row, _| Float::with_val(64, 3 - row as i32));
    let b = Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (4, 1), |_, _| Float::with_val(64, 1));
    let (t, b, none) = (zero.describe(), b.describe(), ptr::null());
    let (left, upper, no, full) = (SUNZI_LEFT, SUNZI_UPPER, SUNZI_NO_TRANS, SUNZI_NON_UNIT);
    // SAFETY: all arrays are live.
    let statuses = unsafe {
        [
            sunzi_trsm(ctx.0, left, upper, no, full, none, &t, &b),
            sunzi_cholesky_solve(ctx.0, upper, &t, &b),
            sunzi_log_det(ctx.0, &t, &scalar(&Float::new(64))),
        ]
    };
    assert_eq!(statuses, [sunzi_status::SUNZI_SINGULAR; 3]);
    assert_eq!(ctx.place(), (3, 3));
}

/// Both triangles: the result of SYRK is whole, a factor of it has zeros above the diagonal, and products agree.
#[test]
fn both_triangles_are_read_and_written() {
    let (ctx, rust) = (Ctx::new(1), rust());
    for (kind, layout) in KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| (kind, layout))) {
        let p = Array::new(kind, layout, (9, 5), |row, col| number((row * 31 + col) as u64, 200));
        let blank = || Array::new(kind, layout, (5, 5), |row, col| number((row + 7 * col) as u64, 200));
        let (q, none) = (blank(), ptr::null());
        // SAFETY: all arrays are live.
        ctx.ok(unsafe { sunzi_syrk(ctx.0, SUNZI_BOTH, SUNZI_TRANS, none, &p.describe(), none, &q.describe()) }, "syrk");
        let want = sunzi::syrk(&rust, &p.matrix(all), q.result_bits(all)).unwrap();
        q.check(&want, &want, all, "syrk");
        let matrix = q.matrix(all);
        // SAFETY: all arrays are live.
        ctx.ok(unsafe { sunzi_cholesky(ctx.0, SUNZI_BOTH, &q.describe()) }, "cholesky");
        let factor = sunzi::cholesky(&rust, &matrix, q.result_bits(all)).unwrap().into_factor();
        q.check(&factor, &factor, all, "cholesky");
        assert_eq!(q.get(0, 4), 0);
    }
}

/// How operands were rounded counts as in Rust, for both kinds of factors.
#[test]
fn digits_of_rounded_operands_are_those_of_rust() {
    let (ctx, rust) = (Ctx::new(1), rust());
    let (order, bits) = (7, 256);
    let matrix = definite(order, bits, 5);
    let right = Matrix::identity(order, bits).unwrap();
    let (a, b) = (Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &matrix), Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &right));
    let cholesky = cholesky_with(&rust, &matrix, bits, &CholeskyOptions::new()).unwrap().result;
    let ldlt = sunzi::ldlt(&rust, &matrix, bits).unwrap();
    let (mut factor, mut indefinite) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: all are live.
    unsafe {
        ctx.ok(sunzi_factor_new(ctx.0, SUNZI_LOWER, bits.into(), &a.describe(), &mut factor), "factor");
        ctx.ok(sunzi_ldlt_new(ctx.0, SUNZI_LOWER, 0, &a.describe(), &mut indefinite), "ldlt");
    }
    let x = Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &right);
    // SAFETY: as above.
    unsafe { ctx.ok(sunzi_ldlt_solve(ctx.0, indefinite, &x.describe()), "solve") };
    let solution = ldlt.solve(&rust, &right, bits).unwrap();
    assert!(x.matrix(all) == solution);
    // The solution for the identity is an inverse, but for its last bits: one triangle of it is taken for the whole.
    let inverse = cholesky.inverse(&rust, bits).unwrap().into_matrix();
    let of_inverse = Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &inverse);
    let mut before = [f64::INFINITY; 8];
    for (matrix_bits, right_bits) in [(0, 0), (0, 100), (90, 0), (60, 80)] {
        let said = sunzi_rounding { matrix_bits, right_bits };
        let some = |bits: i64| (bits > 0).then_some(bits as u32);
        let rounding = InputRounding::new().matrix_bits(some(matrix_bits)).right_bits(some(right_bits));
        let (mut found, uplo) = ([f64::NAN; 8], SUNZI_LOWER);
        let [of_a, of_b, of_x, of_i] = [&a, &b, &x, &of_inverse].map(Array::describe);
        let into = found.as_mut_ptr();
        // SAFETY: all are live, and each number has a place of its own.
        let statuses = unsafe {
            let place = |at: usize| into.add(at);
            [
                sunzi_factor_solution_digits_with(ctx.0, factor, &said, uplo, &of_a, &of_b, &of_x, place(0)),
                sunzi_factor_certified_solution_digits_with(ctx.0, factor, &said, uplo, &of_a, &of_b, &of_x, place(1)),
                sunzi_factor_inverse_digits_with(ctx.0, factor, &said, uplo, &of_a, &of_i, place(2)),
                sunzi_factor_certified_inverse_digits_with(ctx.0, factor, &said, uplo, &of_a, &of_i, place(3)),
                sunzi_factor_log_det_digits_with(ctx.0, factor, &said, place(4)),
                sunzi_factor_certified_log_det_digits_with(ctx.0, factor, &said, uplo, &of_a, place(5)),
                sunzi_ldlt_solution_digits(ctx.0, indefinite, &said, uplo, &of_a, &of_b, &of_x, place(6)),
                sunzi_ldlt_certified_solution_digits(ctx.0, indefinite, &said, uplo, &of_a, &of_b, &of_x, place(7)),
            ]
        };
        statuses.into_iter().for_each(|status| ctx.ok(status, "digits"));
        let proof = cholesky.certify_with(&rust, &matrix, rounding).unwrap().unwrap();
        let proof_of_ldlt = ldlt.certify(&rust, &matrix, rounding).unwrap().unwrap();
        let expected = [
            cholesky.solution_digits_with(&rust, &matrix, &right, &solution, rounding).unwrap(),
            proof.solution_digits(&rust, &right, &solution).unwrap(),
            cholesky.inverse_digits_with(&rust, &matrix, &inverse, rounding).unwrap(),
            proof.inverse_digits(&rust, &inverse).unwrap(),
            cholesky.log_det_digits_with(&rust, rounding).unwrap(),
            proof.log_det_digits(&rust).unwrap(),
            ldlt.solution_digits(&rust, &matrix, &right, &solution, rounding).unwrap(),
            proof_of_ldlt.solution_digits(&rust, &right, &solution).unwrap(),
        ];
        assert_eq!(found, expected, "{said:?}");
        assert!(found.iter().zip(&before).all(|(now, before)| now <= before), "{found:?} after {before:?}");
        assert!(matrix_bits == 0 || found.iter().all(|&digits| digits < 28.0), "{said:?}: {found:?}");
        before = found;
    }
    // SAFETY: each handle is freed once.
    unsafe {
        sunzi_factor_free(factor);
        sunzi_ldlt_free(indefinite);
    }
}

#[test]
fn indefinite_factors_and_roundings_that_cannot_be_are_refused() {
    let ctx = Ctx::new(1);
    let [zero, one] = [Matrix::zeros(2, 2, 64).unwrap(), Matrix::identity(2, 64).unwrap()]
        .map(|matrix| Array::of(Kind::Mpfr, SUNZI_ROW_MAJOR, &matrix));
    let (mut none, mut factor, mut digits) = (ptr::null_mut(), ptr::null_mut(), f64::NAN);
    // SAFETY: wrong numbers and null pointers are refused; each handle is freed once.
    unsafe {
        let singular = sunzi_ldlt_new(ctx.0, SUNZI_LOWER, 0, &zero.describe(), &mut none);
        assert_eq!((singular, none.is_null()), (sunzi_status::SUNZI_SINGULAR, true));
        assert_eq!(sunzi_ldlt_solve(ctx.0, none, &one.describe()), sunzi_status::SUNZI_NULL_POINTER);
        ctx.ok(sunzi_factor_new(ctx.0, SUNZI_LOWER, 0, &one.describe(), &mut factor), "factor");
        for (matrix_bits, right_bits) in [(-1, 0), (0, -1), (i64::MAX, 0)] {
            let said = sunzi_rounding { matrix_bits, right_bits };
            let refused = sunzi_factor_log_det_digits_with(ctx.0, factor, &said, &mut digits);
            assert_eq!(refused, sunzi_status::SUNZI_INVALID_ARGUMENT);
        }
        ctx.ok(sunzi_factor_log_det_digits_with(ctx.0, factor, ptr::null(), &mut digits), "digits");
        sunzi_factor_free(factor);
        sunzi_ldlt_free(none);
    }
}
