//! The register tile of all tile kernels: a few vectors of rows by a few columns of `X Y^T`.
//!
//! Operands are packed: per step of the depth the left one has `R` vectors, the right one `C` doubles.
//! Independent of: where tiles come from.
#![forbid(unsafe_code)]

use crate::kernels::f64::simd::{DoubleVector, LANES};

/// `R` vectors of rows by `C` columns, in registers.
pub type RegisterSums<V, const R: usize, const C: usize> = [[V; R]; C];

/// The sums of products over the whole depth.
#[inline(always)]
pub fn multiply<V: DoubleVector, const R: usize, const C: usize>(
    x: &[[f64; LANES]],
    y: &[[f64; C]],
) -> RegisterSums<V, R, C> {
    let mut sums = [[V::splat(0.0); R]; C];
    for (x, y) in x.chunks_exact(R).zip(y) {
        let mut lanes = [V::splat(0.0); R];
        for r in 0..R {
            lanes[r] = V::load(&x[r]);
        }
        for c in 0..C {
            let factor = V::splat(y[c]);
            for r in 0..R {
                sums[c][r] = lanes[r].mul_add(factor, sums[c][r]);
            }
        }
    }
    sums
}

/// Prefetches the cache lines of a full register tile, whose columns are `stride` words apart.
#[inline(always)]
pub fn prefetch<V: DoubleVector, const R: usize, const C: usize>(words: &[f64], stride: usize) {
    for c in 0..C {
        let (lines, _) = words[c * stride..][..R * LANES].as_chunks();
        for line in lines {
            V::prefetch(line);
        }
        if let Some((_, last)) = words[c * stride..][..R * LANES].split_last_chunk() {
            V::prefetch(last);
        }
    }
}

/// The `R * LANES` rows of `C` columns that start `stride` words apart.
#[inline(always)]
pub fn load<V: DoubleVector, const R: usize, const C: usize>(words: &[f64], stride: usize) -> RegisterSums<V, R, C> {
    let mut out = [[V::splat(0.0); R]; C];
    for c in 0..C {
        let (lines, _) = words[c * stride..][..R * LANES].as_chunks();
        for r in 0..R {
            out[c][r] = V::load(&lines[r]);
        }
    }
    out
}

/// The way back of [`load`].
#[inline(always)]
pub fn store<V: DoubleVector, const R: usize, const C: usize>(
    sums: &RegisterSums<V, R, C>,
    words: &mut [f64],
    stride: usize,
) {
    for c in 0..C {
        let (lines, _) = words[c * stride..][..R * LANES].as_chunks_mut();
        for r in 0..R {
            sums[c][r].store(&mut lines[r]);
        }
    }
}

/// `left - right`.
#[inline(always)]
pub fn subtract<V: DoubleVector, const R: usize, const C: usize>(
    left: &RegisterSums<V, R, C>,
    right: &RegisterSums<V, R, C>,
) -> RegisterSums<V, R, C> {
    let mut out = *left;
    for c in 0..C {
        for r in 0..R {
            out[c][r] = left[c][r].sub(right[c][r]);
        }
    }
    out
}

/// As [`load`] where only `rows x cols` exist; zeros elsewhere.
#[inline(always)]
pub fn load_part<V: DoubleVector, const R: usize, const C: usize>(
    words: &[f64],
    stride: usize,
    rows: usize,
    cols: usize,
) -> RegisterSums<V, R, C> {
    let mut out = [[V::splat(0.0); R]; C];
    for c in 0..C {
        let mut lanes = [[0.0; LANES]; R];
        if c < cols {
            lanes.as_flattened_mut()[..rows].copy_from_slice(&words[c * stride..][..rows]);
        }
        for r in 0..R {
            out[c][r] = V::load(&lanes[r]);
        }
    }
    out
}

/// As [`store`] where only `rows x cols` exist; nothing else is written.
#[inline(always)]
pub fn store_part<V: DoubleVector, const R: usize, const C: usize>(
    sums: &RegisterSums<V, R, C>,
    words: &mut [f64],
    stride: usize,
    rows: usize,
    cols: usize,
) {
    for c in 0..C {
        let mut lanes = [[0.0; LANES]; R];
        for r in 0..R {
            sums[c][r].store(&mut lanes[r]);
        }
        if c < cols {
            words[c * stride..][..rows].copy_from_slice(&lanes.as_flattened()[..rows]);
        }
    }
}

/// Solves `Z T^T = B` for the columns of a register tile, `T` lower triangular: `triangle[j][c]` is entry `(c, j)`.
///
/// Quotients are those of a division: see [`DoubleVector::quotient`].
#[inline(always)]
pub fn solve<V: DoubleVector, const R: usize, const C: usize>(sums: &mut RegisterSums<V, R, C>, triangle: &[[f64; C]]) {
    let triangle: &[[f64; C]; C] = triangle.first_chunk().expect("the rows of a triangle");
    let mut inverses = [0.0; C];
    for c in 0..C {
        inverses[c] = 1.0 / triangle[c][c];
    }
    for j in 0..C {
        let (divisor, inverse) = (V::splat(triangle[j][j]), V::splat(inverses[j]));
        for lanes in &mut sums[j] {
            *lanes = lanes.quotient(divisor, inverse);
        }
        let solved = sums[j];
        for c in 0..C {
            if c > j {
                let factor = V::splat(-triangle[j][c]);
                for r in 0..R {
                    sums[c][r] = solved[r].mul_add(factor, sums[c][r]);
                }
            }
        }
    }
}
