//! SYRK and GEMM on every kind of array, layout and transposition: the bits of the Rust call.

use crate::common::{Array, Ctx, KINDS, Kind, LAYOUTS, number, scalar, within};
use rug::Float;
use std::ptr;
use sunzi::{Context, GemmOptions, Matrix, Op, Symmetric, SyrkOptions, Uplo};
use sunzi_c::*;

/// Precisions of the entries of an array: all the same, or mixed.
fn bits_at(mixed: bool, bits: u32, row: usize, col: usize) -> u32 {
    if mixed { bits - 60 * ((row + 2 * col) % 3) as u32 } else { bits }
}

fn filled(kind: Kind, layout: i32, shape: (usize, usize), (bits, mixed, seed): (u32, bool, u64)) -> Array {
    Array::new(kind, layout, shape, |row, col| {
        number(seed + (row * 1009 + col) as u64, bits_at(mixed && kind != Kind::Limbs, bits, row, col))
    })
}

/// The factors of a case: none; both; beta 0, where C must not be read.
fn factors(case: usize) -> (Option<Float>, Option<Float>) {
    match case % 4 {
        0 => (None, None),
        1 => (Some(number(5, 90)), Some(number(6, 300))),
        2 => (Some(Float::with_val(53, -1)), Some(Float::with_val(53, 1))),
        _ => (Some(number(7, 200)), Some(Float::new(53))),
    }
}

#[test]
fn syrk_has_the_bits_of_rust() {
    let (ctx, rust) = (Ctx::new(2), Context::builder().threads(1).build().unwrap());
    let mut case = 0;
    for (n, k) in [(0, 3), (1, 1), (3, 0), (5, 9), (17, 8), (33, 60)] {
        for kind in KINDS {
            for layout in LAYOUTS {
                for (uplo, trans) in [
                    (SUNZI_LOWER, SUNZI_TRANS),
                    (SUNZI_UPPER, SUNZI_NO_TRANS),
                    (SUNZI_UPPER, SUNZI_TRANS),
                    (SUNZI_LOWER, SUNZI_NO_TRANS),
                ] {
                    case += 1;
                    syrk_case(&ctx, &rust, (n, k), (kind, layout), (uplo, trans), case);
                }
            }
        }
    }
}

/// The triangle of `c` that counts, or both.
fn symmetric(c: &Matrix, uplo: i32) -> Symmetric<'_> {
    match uplo {
        SUNZI_LOWER => Symmetric::lower(c),
        SUNZI_UPPER => Symmetric::upper(c),
        _ => c.into(),
    }
}

fn syrk_case(
    ctx: &Ctx,
    rust: &Context,
    (n, k): (usize, usize),
    (kind, layout): (Kind, i32),
    (uplo, trans): (i32, i32),
    case: usize,
) {
    let what = format!("{n} x {k}, {kind:?}, layout {layout}, uplo {uplo}, trans {trans}, case {case}");
    let shape = if trans == SUNZI_TRANS { (k, n) } else { (n, k) };
    let mixed = case.is_multiple_of(3);
    let a = filled(kind, layout, shape, (320, mixed, case as u64));
    // The result is of another kind and layout now and then.
    let (c_kind, c_layout) = (KINDS[case % 3], LAYOUTS[case / 3 % 2]);
    let c = filled(c_kind, c_layout, (n, n), (256, case.is_multiple_of(2), 77));
    let (alpha, beta) = factors(case);
    let before = c.matrix(|_, _| true);
    let added = beta.as_ref().is_some_and(|beta| !beta.is_zero()).then(|| c.matrix(|row, col| within(uplo, row, col)));
    let bits = c.result_bits(|row, col| within(uplo, row, col));
    let options = SyrkOptions::new()
        .op(if trans == SUNZI_TRANS { Op::NoTranspose } else { Op::Transpose })
        .uplo(if uplo == SUNZI_LOWER { Uplo::Lower } else { Uplo::Upper })
        .alpha(alpha.as_ref())
        .beta(added.as_ref().and(beta.as_ref()))
        .accumulate(added.as_ref().map(|c| symmetric(c, uplo)));
    let want = sunzi::syrk_with(rust, &a.matrix(|_, _| true), bits, &options).unwrap().result;
    let (a_matrix, c_matrix) = (a.describe(), c.describe());
    let pointers = [&alpha, &beta].map(|factor| factor.as_ref().map(scalar));
    let [alpha, beta] = [0, 1].map(|at| pointers[at].as_ref().map_or(ptr::null(), ptr::from_ref));
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_syrk(ctx.0, uplo, trans, alpha, &a_matrix, beta, &c_matrix) }, &what);
    c.check(&want, &before, |row, col| within(uplo, row, col), &what);
    // The same with weights.
    let shape = if case.is_multiple_of(2) { (k, 1) } else { (1, k) };
    let d = filled(KINDS[case / 2 % 3], layout, shape, (130, false, 5 + case as u64));
    let want = sunzi::weighted_gram_with(rust, &a.matrix(|_, _| true), &d.matrix(|_, _| true), bits, &options);
    let c = filled(c_kind, c_layout, (n, n), (256, case.is_multiple_of(2), 77));
    let (d_matrix, c_matrix) = (d.describe(), c.describe());
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_weighted_gram(ctx.0, uplo, trans, alpha, &a_matrix, &d_matrix, beta, &c_matrix) }, &what);
    c.check(&want.unwrap().result, &before, |row, col| within(uplo, row, col), &what);
    a.check_gaps();
    d.check_gaps();
}

#[test]
fn weights_of_another_number_are_refused() {
    let ctx = Ctx::new(1);
    let array = |shape| filled(Kind::Mpfr, SUNZI_COL_MAJOR, shape, (64, false, 1));
    let (a, c) = (array((3, 4)), array((3, 3)));
    for (shape, wanted) in [
        ((4, 1), sunzi_status::SUNZI_OK),
        ((1, 4), sunzi_status::SUNZI_OK),
        ((3, 1), sunzi_status::SUNZI_INVALID_SIZE),
        ((4, 4), sunzi_status::SUNZI_INVALID_SIZE),
    ] {
        let d = array(shape);
        let (a, d, c) = (a.describe(), d.describe(), c.describe());
        // SAFETY: all arrays are live.
        let status =
            unsafe { sunzi_weighted_gram(ctx.0, SUNZI_LOWER, SUNZI_NO_TRANS, ptr::null(), &a, &d, ptr::null(), &c) };
        assert_eq!(status, wanted, "{shape:?}");
    }
}

#[test]
fn gemm_has_the_bits_of_rust() {
    let (ctx, rust) = (Ctx::new(2), Context::builder().threads(1).build().unwrap());
    let mut case = 0;
    for (m, n, k) in [(0, 2, 3), (1, 1, 1), (4, 3, 0), (5, 9, 7), (16, 17, 31)] {
        for kind in KINDS {
            for layout in LAYOUTS {
                for (op_a, op_b) in [(false, false), (true, false), (false, true), (true, true)] {
                    case += 1;
                    gemm_case(&ctx, &rust, (m, n, k), (kind, layout), (op_a, op_b), case);
                }
            }
        }
    }
}

fn gemm_case(
    ctx: &Ctx,
    rust: &Context,
    (m, n, k): (usize, usize, usize),
    (kind, layout): (Kind, i32),
    (turn_a, turn_b): (bool, bool),
    case: usize,
) {
    let what = format!("{m} x {n} x {k}, {kind:?}, layout {layout}, {turn_a} {turn_b}, case {case}");
    let turned = |turn: bool, (rows, cols): (usize, usize)| if turn { (cols, rows) } else { (rows, cols) };
    let a = filled(kind, layout, turned(turn_a, (m, k)), (200, case.is_multiple_of(2), 1));
    let b = filled(KINDS[case % 3], LAYOUTS[case % 2], turned(turn_b, (k, n)), (330, case.is_multiple_of(3), 2));
    let c = filled(KINDS[case / 2 % 3], layout, (m, n), (192, case % 4 < 2, 3));
    let (alpha, beta) = factors(case);
    let before = c.matrix(|_, _| true);
    let added = beta.as_ref().is_some_and(|beta| !beta.is_zero()).then_some(&before);
    let op = |turn: bool| if turn { Op::Transpose } else { Op::NoTranspose };
    let options = GemmOptions::new()
        .op_a(op(turn_a))
        .op_b(op(turn_b))
        .alpha(alpha.as_ref())
        .beta(added.and(beta.as_ref()))
        .accumulate(added.map(Matrix::view));
    let all = |_: usize, _: usize| true;
    let (left, right): (Matrix, Matrix) = (a.matrix(all), b.matrix(all));
    let want = sunzi::gemm_with(rust, &left, &right, c.result_bits(all), &options).unwrap().result;
    let (a_matrix, b_matrix, c_matrix) = (a.describe(), b.describe(), c.describe());
    let trans = |turn: bool| if turn { SUNZI_TRANS } else { SUNZI_NO_TRANS };
    let pointers = [&alpha, &beta].map(|factor| factor.as_ref().map(scalar));
    let [alpha, beta] = [0, 1].map(|at| pointers[at].as_ref().map_or(ptr::null(), ptr::from_ref));
    // SAFETY: all arrays are live.
    let status =
        unsafe { sunzi_gemm(ctx.0, trans(turn_a), trans(turn_b), alpha, &a_matrix, &b_matrix, beta, &c_matrix) };
    ctx.ok(status, &what);
    c.check(&want, &before, all, &what);
}

/// The result takes the place of an operand: all is read before anything is written.
#[test]
fn results_may_be_operands() {
    let (ctx, rust) = (Ctx::new(1), Context::builder().threads(1).build().unwrap());
    for kind in KINDS {
        let a = filled(kind, SUNZI_COL_MAJOR, (12, 12), (192, false, 9));
        let before = a.matrix(|_, _| true);
        let want = sunzi::gemm(&rust, &before, &before, a.result_bits(|_, _| true)).unwrap();
        let matrix = a.describe();
        let (no, none) = (SUNZI_NO_TRANS, ptr::null());
        // SAFETY: the array is live.
        ctx.ok(unsafe { sunzi_gemm(ctx.0, no, no, none, &matrix, &matrix, none, &matrix) }, "in place");
        a.check(&want, &before, |_, _| true, "in place");
    }
}

/// Entries of one bit, zeros of both signs, exponents at the ends of the range.
#[test]
fn numbers_at_the_edges_are_exact() {
    let ctx = Ctx::new(1);
    let ends = [1i32 << 29, 1 - (1 << 29)];
    for (at, exponent) in ends.into_iter().enumerate() {
        let value = Float::with_val(1, 1) << (exponent - 1);
        let a = Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (1, 2), |_, col| match col {
            0 => -value.clone(),
            _ => Float::with_val(9, if at == 0 { 0.0 } else { -0.0 }),
        });
        let c = Array::new(Kind::Mpfr, SUNZI_ROW_MAJOR, (1, 1), |_, _| Float::with_val(1, 7));
        let (a_matrix, c_matrix, none) = (a.describe(), c.describe(), ptr::null());
        let status =
            // SAFETY: all arrays are live.
            unsafe { sunzi_syrk(ctx.0, SUNZI_UPPER, SUNZI_NO_TRANS, none, &a_matrix, none, &c_matrix) };
        ctx.ok(status, "edges");
        assert_eq!(c.get(0, 0).get_exp(), Some(2 * exponent - 1));
        assert_eq!(c.get(0, 0).prec(), 1);
    }
    let wide = Array::new(Kind::Mpf, SUNZI_COL_MAJOR, (2, 2), |row, col| {
        (Float::with_val(64, 3 + row as u32) << (40 * col as u32)) >> 100
    });
    let c = Array::new(Kind::Mpf, SUNZI_COL_MAJOR, (2, 2), |_, _| Float::with_val(128, 1));
    let (a_matrix, c_matrix, none) = (wide.describe(), c.describe(), ptr::null());
    // SAFETY: all arrays are live.
    ctx.ok(unsafe { sunzi_syrk(ctx.0, SUNZI_LOWER, SUNZI_TRANS, none, &a_matrix, none, &c_matrix) }, "mpf");
    assert_eq!(c.get(0, 0), Float::with_val(200, 25) >> 200);
    assert_eq!(c.get(1, 1), (Float::with_val(200, 25) << 80) >> 200);
}
