//! The twins of the level 1 and level 2 BLAS beside exact sums: both kinds of numbers, distances of either sign, one
//! entry and none.

use crate::common::{Array, Ctx, Kind, number};
use rug::Float;
use std::ffi::{CStr, c_void};
use sunzi_c::*;

/// Bits that hold every sum of these tests exactly.
const EXACT: u32 = 3000;
const KINDS: [Kind; 2] = [Kind::Mpfr, Kind::Mpf];

/// A vector of a C program.
struct Vector {
    array: Array,
    backwards: bool,
}

impl Vector {
    /// Entries of very different sizes; neighbours, or three apart.
    fn new(kind: Kind, count: usize, distance: i64, seed: u64) -> Vector {
        let layout = if distance.abs() == 1 { SUNZI_COL_MAJOR } else { SUNZI_ROW_MAJOR };
        let value = |row: usize, _| number(seed * 1000 + row as u64, 190) >> (row as u32 * 97 % 300);
        let array = Array::new(kind, layout, (count, 1), value);
        assert!(array.ld == 3 || layout == SUNZI_COL_MAJOR);
        Vector { array, backwards: distance < 0 }
    }

    fn get(&self, index: usize) -> Float {
        let row = if self.backwards { self.array.rows - 1 - index } else { index };
        Float::with_val(EXACT, self.array.get(row, 0))
    }

    fn values(&self) -> Vec<Float> {
        (0..self.array.rows).map(|index| self.get(index)).collect()
    }

    fn pointer(&self) -> *mut c_void {
        self.array.describe().entries
    }

    /// Fails unless each entry is within `2^(1 - bits)` times the size of its terms of what it should be.
    fn check(&self, wanted: &[(Float, Float)], what: &str) {
        self.array.check_gaps();
        for (index, (sum, sizes)) in wanted.iter().enumerate() {
            let bits = self.array.bits(index, 0);
            let error = (self.get(index) - sum).abs();
            assert!(error <= Float::with_val(EXACT, sizes >> (bits - 1)), "{what}: entry {index} is off by {error:.5}");
        }
    }
}

/// The sum of some products, and that of their magnitudes.
fn sum_of<'a>(terms: impl IntoIterator<Item = (&'a Float, &'a Float)>) -> (Float, Float) {
    let zero = (Float::new(EXACT), Float::new(EXACT));
    terms.into_iter().fold(zero, |(sum, sizes), (x, y)| {
        let product = Float::with_val(EXACT, x * y);
        (sum + &product, sizes + product.abs())
    })
}

/// `beta y + alpha sum`, and the size of the terms.
fn combined(alpha: &Float, (sum, sizes): (Float, Float), beta: &Float, y: &Float) -> (Float, Float) {
    let (product, size) = (sum * alpha, sizes * alpha.clone().abs());
    let added = Float::with_val(EXACT, beta * y);
    (product + &added, size + added.abs())
}

fn matrix(kind: Kind, rows: usize, cols: usize, seed: u64) -> Array {
    Array::new(kind, SUNZI_COL_MAJOR, (rows, cols), |row, col| {
        number(seed + (row * 50 + col) as u64, 190) >> ((row * 7 + col * 31) as u32 % 200)
    })
}

fn at(array: &Array, row: usize, col: usize) -> Float {
    Float::with_val(EXACT, array.get(row, col))
}

/// A number as both languages have it.
struct Scalar {
    array: Array,
    value: Float,
}

impl Scalar {
    fn new(kind: Kind, value: Float) -> Scalar {
        let array = Array::new(kind, SUNZI_COL_MAJOR, (1, 1), |_, _| value.clone());
        Scalar { value: Float::with_val(EXACT, array.get(0, 0)), array }
    }

    fn pointer(&self) -> *const c_void {
        self.array.describe().entries
    }
}

fn letter(letters: &[&'static CStr], choice: usize) -> *const std::ffi::c_char {
    letters[choice].as_ptr()
}

/// Every kind, count and pair of distances.
fn each(check: impl Fn(Kind, usize, [i64; 2])) {
    for kind in KINDS {
        for count in [0, 1, 2, 9] {
            for distances in [[1, 1], [-1, 3], [3, -3], [-3, -1]] {
                check(kind, count, distances);
            }
        }
    }
}

#[test]
fn sums_and_norms() {
    let ctx = Ctx::new(2);
    each(|kind, count, [incx, incy]| {
        let (x, y) = (Vector::new(kind, count, incx, 1), Vector::new(kind, count, incy, 2));
        let (result, n) = (Vector::new(kind, 1, 1, 3), count as i64);
        let (x_at, y_at, result_at) = (x.pointer(), y.pointer(), result.pointer());
        // SAFETY: all arrays are live.
        let info = unsafe {
            match kind {
                Kind::Mpf => sunzi_rdot_mpf(ctx.0, n, x_at, incx, y_at, incy, result_at),
                _ => sunzi_rdot(ctx.0, n, x_at, incx, y_at, incy, result_at),
            }
        };
        assert_eq!(info, 0, "{}", ctx.message());
        let (xs, ys) = (x.values(), y.values());
        result.check(&[sum_of(xs.iter().zip(&ys))], "dot");
        // SAFETY: as above.
        let info = unsafe {
            match kind {
                Kind::Mpf => sunzi_rnrm2_mpf(ctx.0, n, x_at, incx, result_at),
                _ => sunzi_rnrm2(ctx.0, n, x_at, incx, result_at),
            }
        };
        assert_eq!(info, 0, "{}", ctx.message());
        let norm = sum_of(xs.iter().zip(&xs)).0.sqrt();
        result.check(&[(norm.clone(), norm)], "nrm2");
    });
}

#[test]
fn multiples_are_added() {
    let ctx = Ctx::new(1);
    each(|kind, count, [incx, incy]| {
        let (x, y) = (Vector::new(kind, count, incx, 1), Vector::new(kind, count, incy, 2));
        let alpha = Scalar::new(kind, number(4, 130));
        let (xs, before) = (x.values(), y.values());
        let n = count as i64;
        // SAFETY: all arrays are live.
        let info = unsafe {
            match kind {
                Kind::Mpf => sunzi_raxpy_mpf(ctx.0, n, alpha.pointer(), x.pointer(), incx, y.pointer(), incy),
                _ => sunzi_raxpy(ctx.0, n, alpha.pointer(), x.pointer(), incx, y.pointer(), incy),
            }
        };
        assert_eq!(info, 0, "{}", ctx.message());
        let one = Float::with_val(EXACT, 1);
        let wanted = xs.iter().zip(&before).map(|(x, y)| {
            let sum = combined(&alpha.value, (x.clone(), x.clone()), &one, y).0;
            (sum.clone(), sum.abs())
        });
        y.check(&wanted.collect::<Vec<_>>(), "axpy");
    });
}

#[test]
fn matrices_times_vectors() {
    let ctx = Ctx::new(2);
    each(|kind, count, [incx, incy]| {
        for (trans, beta) in [(0, 0), (1, 3), (0, 3), (1, 0)] {
            let (rows, cols) = (count, if count > 2 { 5 } else { count });
            let (of_y, of_x) = if trans == 0 { (rows, cols) } else { (cols, rows) };
            let (x, y) = (Vector::new(kind, of_x, incx, 1), Vector::new(kind, of_y, incy, 2));
            let a = matrix(kind, rows, cols, 77);
            let (alpha, beta) = (Scalar::new(kind, number(4, 130)), Scalar::new(kind, Float::with_val(60, beta)));
            let (xs, before) = (x.values(), y.values());
            let (m, n, lda, op) = (rows as i64, cols as i64, a.ld as i64, letter(&[c"n", c"T"], trans));
            let entry = a.describe().entries;
            let (x_at, y_at) = (x.pointer(), y.pointer());
            let (alpha_at, beta_at) = (alpha.pointer(), beta.pointer());
            // SAFETY: all arrays are live.
            let info = unsafe {
                match kind {
                    Kind::Mpf => {
                        sunzi_rgemv_mpf(ctx.0, op, m, n, alpha_at, entry, lda, x_at, incx, beta_at, y_at, incy)
                    }
                    _ => sunzi_rgemv(ctx.0, op, m, n, alpha_at, entry, lda, x_at, incx, beta_at, y_at, incy),
                }
            };
            assert_eq!(info, 0, "{}", ctx.message());
            let wanted = (0..of_y).map(|row| {
                let line = (0..of_x).map(|col| if trans == 0 { at(&a, row, col) } else { at(&a, col, row) });
                let line = line.collect::<Vec<_>>();
                combined(&alpha.value, sum_of(line.iter().zip(&xs)), &beta.value, &before[row])
            });
            y.check(&wanted.collect::<Vec<_>>(), "gemv");
        }
    });
}

/// The other triangle is never looked at: of `mpfr_t` it is NaN.
fn half(kind: Kind, order: usize, lower: bool, unit: bool) -> Array {
    let whole = matrix(kind, order, order, 5);
    Array::new(kind, SUNZI_COL_MAJOR, (order, order), |row, col| {
        let read = if lower { row >= col } else { row <= col } && !(unit && row == col);
        match (read, kind) {
            (true, _) => whole.get(row, col),
            (false, Kind::Mpfr) => Float::with_val(64, rug::float::Special::Nan),
            _ => Float::with_val(64, 12345),
        }
    })
}

#[test]
fn symmetric_matrices_times_vectors() {
    let ctx = Ctx::new(1);
    each(|kind, count, [incx, incy]| {
        for lower in [0, 1] {
            let a = half(kind, count, lower == 1, false);
            let (x, y) = (Vector::new(kind, count, incx, 1), Vector::new(kind, count, incy, 2));
            let (alpha, beta) = (Scalar::new(kind, number(4, 130)), Scalar::new(kind, number(5, 130)));
            let (xs, before) = (x.values(), y.values());
            let (n, lda, uplo, entry) = (count as i64, a.ld as i64, letter(&[c"U", c"L"], lower), a.describe().entries);
            let (x_at, y_at) = (x.pointer(), y.pointer());
            let (alpha_at, beta_at) = (alpha.pointer(), beta.pointer());
            // SAFETY: all arrays are live.
            let info = unsafe {
                match kind {
                    Kind::Mpf => sunzi_rsymv_mpf(ctx.0, uplo, n, alpha_at, entry, lda, x_at, incx, beta_at, y_at, incy),
                    _ => sunzi_rsymv(ctx.0, uplo, n, alpha_at, entry, lda, x_at, incx, beta_at, y_at, incy),
                }
            };
            assert_eq!(info, 0, "{}", ctx.message());
            let wanted = (0..count).map(|row| {
                let mirror =
                    |col: usize| if (row >= col) == (lower == 1) { at(&a, row, col) } else { at(&a, col, row) };
                let line = (0..count).map(mirror).collect::<Vec<_>>();
                combined(&alpha.value, sum_of(line.iter().zip(&xs)), &beta.value, &before[row])
            });
            y.check(&wanted.collect::<Vec<_>>(), "symv");
        }
    });
}

#[test]
fn products_of_vectors_are_added() {
    let ctx = Ctx::new(1);
    each(|kind, count, [incx, incy]| {
        let cols = if count > 2 { 4 } else { count };
        let (x, y) = (Vector::new(kind, count, incx, 1), Vector::new(kind, cols, incy, 2));
        let (a, alpha) = (matrix(kind, count, cols, 8), Scalar::new(kind, number(4, 130)));
        let before = matrix(kind, count, cols, 8);
        let (m, n, lda, entry) = (count as i64, cols as i64, a.ld as i64, a.describe().entries);
        let (alpha_at, x_at, y_at) = (alpha.pointer(), x.pointer(), y.pointer());
        // SAFETY: all arrays are live.
        let info = unsafe {
            match kind {
                Kind::Mpf => sunzi_rger_mpf(ctx.0, m, n, alpha_at, x_at, incx, y_at, incy, entry, lda),
                _ => sunzi_rger(ctx.0, m, n, alpha_at, x_at, incx, y_at, incy, entry, lda),
            }
        };
        assert_eq!(info, 0, "{}", ctx.message());
        a.check_gaps();
        let (xs, ys) = (x.values(), y.values());
        for (row, of_x) in xs.iter().enumerate() {
            for (col, of_y) in ys.iter().enumerate() {
                let product = Float::with_val(EXACT, of_x * of_y) * &alpha.value + at(&before, row, col);
                let error = (at(&a, row, col) - &product).abs();
                assert!(error <= product.abs() >> (a.bits(row, col) - 1), "ger: ({row}, {col})");
            }
        }
    });
}

#[test]
fn triangles_times_vectors_and_back() {
    let ctx = Ctx::new(1);
    each(|kind, count, [incx, _]| {
        for choice in 0..8 {
            let (lower, trans, unit) = (choice & 1, choice >> 1 & 1, choice >> 2);
            let t = half(kind, count, lower == 1, unit == 1);
            let entry_of = |row: usize, col: usize| match (trans == 0) == (lower == 1) {
                _ if unit == 1 && row == col => Float::with_val(EXACT, 1),
                lower_now if (row >= col) != lower_now && row != col => Float::new(EXACT),
                _ if trans == 0 => at(&t, row, col),
                _ => at(&t, col, row),
            };
            let x = Vector::new(kind, count, incx, 6);
            let before = x.values();
            let (n, ldt, entry, place) = (count as i64, t.ld as i64, t.describe().entries, x.pointer());
            let (uplo, op) = (letter(&[c"U", c"L"], lower), letter(&[c"N", c"T"], trans));
            let diag = letter(&[c"N", c"U"], unit);
            let call = |solve: bool| {
                // SAFETY: all arrays are live.
                let info = unsafe {
                    match (kind, solve) {
                        (Kind::Mpf, false) => sunzi_rtrmv_mpf(ctx.0, uplo, op, diag, n, entry, ldt, place, incx),
                        (Kind::Mpf, true) => sunzi_rtrsv_mpf(ctx.0, uplo, op, diag, n, entry, ldt, place, incx),
                        (_, false) => sunzi_rtrmv(ctx.0, uplo, op, diag, n, entry, ldt, place, incx),
                        (_, true) => sunzi_rtrsv(ctx.0, uplo, op, diag, n, entry, ldt, place, incx),
                    }
                };
                assert_eq!(info, 0, "{}", ctx.message());
            };
            let times = |x: &[Float]| {
                let row = |row: usize| {
                    let line = (0..count).map(|col| entry_of(row, col)).collect::<Vec<_>>();
                    sum_of(line.iter().zip(x))
                };
                (0..count).map(row).collect::<Vec<_>>()
            };
            call(false);
            x.check(&times(&before), "trmv");
            let right = x.values();
            call(true);
            for (index, (product, sizes)) in times(&x.values()).into_iter().enumerate() {
                let error = (product - &right[index]).abs();
                // Rounding each unknown to its own entry comes on top.
                assert!(error <= sizes >> (x.array.bits(index, 0) - 2), "trsv: row {index}, {error:.5}");
            }
        }
    });
}

#[test]
fn info_of_vectors() {
    let ctx = Ctx::new(1);
    let (a, x) = (matrix(Kind::Mpfr, 3, 3, 1), Vector::new(Kind::Mpfr, 3, 1, 1));
    let one = Scalar::new(Kind::Mpfr, Float::with_val(60, 1));
    let (entry, lda, at, one) = (a.describe().entries, a.ld as i64, x.pointer(), one.pointer());
    let (no, none) = (c"N".as_ptr(), std::ptr::null_mut());
    // SAFETY: all arrays are live, or null on purpose.
    unsafe {
        assert_eq!(sunzi_rdot(ctx.0, 3, none, 1, at, 1, at), -2);
        assert_eq!(sunzi_rdot(ctx.0, 3, at, 1, at, 1, none), -6);
        assert_eq!(sunzi_rdot(ctx.0, -3, none, 1, none, 1, at), 0);
        assert_eq!(sunzi_raxpy(ctx.0, 3, one, at, 1, at, 0), -6);
        assert!(ctx.message().contains("the distance between entries must not be 0"), "{}", ctx.message());
        assert_eq!(sunzi_rgemv(ctx.0, no, 3, 3, one, entry, lda, at, 0, one, at, 1), -8);
        assert_eq!(sunzi_rgemv(ctx.0, no, 3, 3, one, entry, 2, at, 1, one, at, 1), -6);
        assert_eq!(sunzi_rgemv(ctx.0, no, 3, 3, one, entry, lda, at, 1, one, at, i64::MIN), -11);
        assert_eq!(sunzi_rgemv(ctx.0, no, 3, 3, one, entry, lda, at, 1, one, at, 1 << 62), -10);
        assert_eq!(sunzi_rgemv(ctx.0, no, 3, 0, one, none, 3, none, 1, one, none, 1), -10, "{}", ctx.message());
        assert_eq!(sunzi_rsymv(ctx.0, no, 3, one, entry, lda, at, 1, one, at, 1), -1);
        assert_eq!(sunzi_rger(ctx.0, 3, 3, one, at, 1, at, 1, entry, 2), -9);
        assert_eq!(sunzi_rtrsv(ctx.0, c"L".as_ptr(), no, no, 3, entry, lda, at, 0), -8);
        let singular = Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (3, 3), |row, _| Float::with_val(64, 1 - row as i32));
        let (entry, lda) = (singular.describe().entries, singular.ld as i64);
        assert_eq!(sunzi_rtrsv(ctx.0, c"L".as_ptr(), no, no, 3, entry, lda, at, 1), 2);
    }
}
