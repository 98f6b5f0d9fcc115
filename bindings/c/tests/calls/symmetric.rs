//! The twins TRMM, SYMM and SYR2K beside the twin of GEMM on whole matrices, in positive numbers, where every error is
//! relative to the entry.

use crate::common::{Array, Ctx, Kind, number};
use rug::Float;
use std::ffi::c_void;
use sunzi_c::*;

const COL: i32 = SUNZI_COL_MAJOR;
const KINDS: [Kind; 2] = [Kind::Mpfr, Kind::Mpf];
const SIZES: [(usize, usize); 5] = [(0, 3), (1, 1), (3, 0), (5, 4), (17, 6)];

fn value(seed: usize) -> Float {
    (number(seed as u64, 180).abs() + Float::with_val(180, 1)) >> (seed as u32 * 37 % 190)
}

fn filled(kind: Kind, rows: usize, cols: usize, seed: usize) -> Array {
    Array::new(kind, COL, (rows, cols), |row, col| value(seed + row * 100 + col))
}

fn entries(array: &Array) -> *mut c_void {
    array.describe().entries
}

/// An entry that no call may look at.
fn never(kind: Kind) -> Float {
    let nan = Float::with_val(64, rug::float::Special::Nan);
    if kind == Kind::Mpfr { nan } else { Float::with_val(64, -12345) }
}

/// One triangle of numbers, with what they stand for.
fn halves(kind: Kind, order: usize, (lower, unit): (bool, bool), symmetric: bool) -> (Array, Array) {
    let inside = |row: usize, col: usize| if lower { row >= col } else { row <= col };
    let half = |row: usize, col: usize| match inside(row, col) && !(unit && row == col) {
        true => value(row * 100 + col),
        false => never(kind),
    };
    let whole = |row: usize, col: usize| match inside(row, col) {
        _ if unit && row == col => Float::with_val(64, 1),
        true => value(row * 100 + col),
        false if symmetric => value(col * 100 + row),
        false => Float::new(64),
    };
    (Array::new(kind, COL, (order, order), half), Array::new(kind, COL, (order, order), whole))
}

/// `c := alpha op(a) op(b) + beta c` by the twin of GEMM.
struct Gemm<'a> {
    ctx: &'a Ctx,
    kind: Kind,
    alpha: &'a Array,
    beta: &'a Array,
}

impl Gemm<'_> {
    fn run(&self, (a, trans_a): (&Array, bool), (b, trans_b): (&Array, bool), c: &Array) {
        let letter = |trans: bool| if trans { c"T".as_ptr() } else { c"N".as_ptr() };
        let (op_a, op_b, k) = (letter(trans_a), letter(trans_b), if trans_a { a.rows } else { a.cols } as i64);
        let (m, n, lda, ldb, ldc) = (c.rows as i64, c.cols as i64, a.ld as i64, b.ld as i64, c.ld as i64);
        let (alpha, beta, ctx) = (entries(self.alpha), entries(self.beta), self.ctx.0);
        let (a, b, c) = (entries(a), entries(b), entries(c));
        // SAFETY: all arrays are live.
        let info = unsafe {
            match self.kind {
                Kind::Mpf => sunzi_rgemm_mpf(ctx, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                _ => sunzi_rgemm(ctx, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
            }
        };
        assert_eq!(info, 0, "{}", self.ctx.message());
    }
}

/// Fails where an entry of `part` differs from the one wanted by more than a few roundings, or another has changed.
fn close(found: &Array, wanted: &Array, before: &Array, part: impl Fn(usize, usize) -> bool, what: &str) {
    found.check_gaps();
    for col in 0..found.cols {
        for row in 0..found.rows {
            let (x, y) = (found.get(row, col), wanted.get(row, col));
            if !part(row, col) {
                assert!(x == before.get(row, col), "{what}: ({row}, {col}) has changed");
                continue;
            }
            let error = Float::with_val(600, &x - &y).abs();
            assert!(error <= y >> (found.bits(row, col) - 4), "{what}: ({row}, {col}) is off by {error:.5}");
        }
    }
}

/// Two numbers, 0 and 1.
fn scalars(kind: Kind) -> [Array; 4] {
    let values = [value(2), value(3), Float::new(60), Float::with_val(60, 1)];
    values.map(|value| Array::new(kind, COL, (1, 1), |_, _| value.clone()))
}

#[test]
fn triangles_times_matrices() {
    let ctx = Ctx::new(2);
    for kind in KINDS {
        let [alpha, _, zero, _] = scalars(kind);
        for (m, n) in SIZES {
            for choice in 0..16 {
                let [right, lower, trans, unit] = [0, 1, 2, 3].map(|bit| choice >> bit & 1 == 1);
                let (t, whole) = halves(kind, if right { n } else { m }, (lower, unit), false);
                let (found, before, wanted) = (filled(kind, m, n, 7), filled(kind, m, n, 7), filled(kind, m, n, 7));
                let gemm = Gemm { ctx: &ctx, kind, alpha: &alpha, beta: &zero };
                match right {
                    true => gemm.run((&before, false), (&whole, trans), &wanted),
                    false => gemm.run((&whole, trans), (&before, false), &wanted),
                }
                let pick = |yes: bool, letters: [&'static std::ffi::CStr; 2]| letters[usize::from(yes)].as_ptr();
                let (side, uplo) = (pick(right, [c"L", c"R"]), pick(lower, [c"U", c"L"]));
                let (op, diag) = (pick(trans, [c"N", c"T"]), pick(unit, [c"N", c"U"]));
                let (rows, cols, ldt, ldb) = (m as i64, n as i64, t.ld as i64, found.ld as i64);
                let (scale, a, b) = (entries(&alpha), entries(&t), entries(&found));
                // SAFETY: all arrays are live.
                let info = unsafe {
                    match kind {
                        Kind::Mpf => sunzi_rtrmm_mpf(ctx.0, side, uplo, op, diag, rows, cols, scale, a, ldt, b, ldb),
                        _ => sunzi_rtrmm(ctx.0, side, uplo, op, diag, rows, cols, scale, a, ldt, b, ldb),
                    }
                };
                assert_eq!(info, 0, "{}", ctx.message());
                close(&found, &wanted, &before, |_, _| true, "trmm");
            }
        }
    }
}

#[test]
fn symmetric_matrices_times_matrices() {
    let ctx = Ctx::new(1);
    for kind in KINDS {
        let [first, second, zero, one] = scalars(kind);
        for (m, n) in SIZES {
            for (alpha, beta) in [(&first, &second), (&first, &zero), (&zero, &second), (&zero, &zero), (&one, &one)] {
                for (right, lower) in [(false, false), (false, true), (true, false), (true, true)] {
                    let (a, whole) = halves(kind, if right { n } else { m }, (lower, false), true);
                    let b = filled(kind, m, n, 9);
                    let (found, before, wanted) = (filled(kind, m, n, 7), filled(kind, m, n, 7), filled(kind, m, n, 7));
                    let gemm = Gemm { ctx: &ctx, kind, alpha, beta };
                    match right {
                        true => gemm.run((&b, false), (&whole, false), &wanted),
                        false => gemm.run((&whole, false), (&b, false), &wanted),
                    }
                    let side = if right { c"R".as_ptr() } else { c"L".as_ptr() };
                    let uplo = if lower { c"L".as_ptr() } else { c"U".as_ptr() };
                    let (rows, cols, lda, ld) = (m as i64, n as i64, a.ld as i64, b.ld as i64);
                    let (alpha, beta, a, b, c) =
                        (entries(alpha), entries(beta), entries(&a), entries(&b), entries(&found));
                    // SAFETY: all arrays are live.
                    let info = unsafe {
                        match kind {
                            Kind::Mpf => {
                                sunzi_rsymm_mpf(ctx.0, side, uplo, rows, cols, alpha, a, lda, b, ld, beta, c, ld)
                            }
                            _ => sunzi_rsymm(ctx.0, side, uplo, rows, cols, alpha, a, lda, b, ld, beta, c, ld),
                        }
                    };
                    assert_eq!(info, 0, "{}", ctx.message());
                    close(&found, &wanted, &before, |_, _| true, "symm");
                }
            }
        }
    }
}

#[test]
fn sums_of_two_products() {
    let ctx = Ctx::new(1);
    for kind in KINDS {
        let [first, second, zero, one] = scalars(kind);
        for (n, k) in SIZES {
            for (alpha, beta) in [(&first, &second), (&first, &zero), (&zero, &second), (&one, &one)] {
                for (trans, lower) in [(false, false), (false, true), (true, false), (true, true)] {
                    let (rows, cols) = if trans { (k, n) } else { (n, k) };
                    let (a, b) = (filled(kind, rows, cols, 5), filled(kind, rows, cols, 6));
                    let (found, before, wanted) = (filled(kind, n, n, 7), filled(kind, n, n, 7), filled(kind, n, n, 7));
                    Gemm { ctx: &ctx, kind, alpha, beta }.run((&a, trans), (&b, !trans), &wanted);
                    Gemm { ctx: &ctx, kind, alpha, beta: &one }.run((&b, trans), (&a, !trans), &wanted);
                    let op = if trans { c"T".as_ptr() } else { c"N".as_ptr() };
                    let uplo = if lower { c"L".as_ptr() } else { c"U".as_ptr() };
                    let (order, depth, ld, ldc) = (n as i64, k as i64, a.ld as i64, found.ld as i64);
                    let (alpha, beta, a, b, c) =
                        (entries(alpha), entries(beta), entries(&a), entries(&b), entries(&found));
                    // SAFETY: all arrays are live.
                    let info = unsafe {
                        match kind {
                            Kind::Mpf => {
                                sunzi_rsyr2k_mpf(ctx.0, uplo, op, order, depth, alpha, a, ld, b, ld, beta, c, ldc)
                            }
                            _ => sunzi_rsyr2k(ctx.0, uplo, op, order, depth, alpha, a, ld, b, ld, beta, c, ldc),
                        }
                    };
                    assert_eq!(info, 0, "{}", ctx.message());
                    let part = |row: usize, col: usize| if lower { row >= col } else { row <= col };
                    close(&found, &wanted, &before, part, "syr2k");
                }
            }
        }
    }
}
