//! Derivatives of the one-dimensional crossing functions: the matrices of the conformal bootstrap in one variable.
//!
//! With the conformal block `G_D(z) = z^D 2F1(D, D; 2D; z)` and external dimension `d` the crossing equation reads
//! `sum_D a_D F_D(z) = 0`, `F_D(z) = (1 - z)^(2d) G_D(z) - z^(2d) G_D(1 - z)`. `F_D` is odd about `z = 1/2`, so a
//! functional acts by its odd derivatives there, `F_D^(n)(1/2)`, `n = 1, 3, 5, ...`: one column each. Rows sample
//! `D_k = 1 + 512 ((2k + 1) / (2K))^2`, cut to 32 binary places. Here `d = 1/2` (the free fermion), so `(1 - z)^(2d)`
//! is `1 - z`. Rows vary slowly with `D`, so the columns are dependent to hundreds of bits: doubles see noise.
//! Source: D. Gaiotto, D. Mazac, M. Paulos, "Bootstrapping the 3d Ising twist defect", arXiv:1310.5078;
//! the block is the eigenfunction of the Casimir operator, Dolan and Osborn, arXiv:1108.6194.
//!
//! Method. `H(z) = (1 - z) G_D(z)` has `F_D^(n)(1/2) = 2 H^(n)(1/2)` for odd `n`. With `C = D (D - 1)` the Casimir
//! equation `z^2 (1 - z) G'' - z^2 G' = C G` gives `z^2 (1 - z)^2 H'' + z^2 (1 - z) H' + (z^2 - C (1 - z)) H = 0`. With
//! `z = (1 + u) / 2` and `H = sum_n k_n u^n` the coefficient of `u^n`, times 4, is the recurrence
//! `(n + 2)(n + 1) k_(n+2) = -(n + 1) k_(n+1) + (2n^2 - 3n - 1 + 2C) k_n + (n - 3 - 2C) k_(n-1) - (n - 3)^2 k_(n-2)`,
//! and the derivative is `2 n! 2^n k_n`. The initial values come from the block's series at `z = 1/2`:
//! `k_0 = sum_m c_m 2^(-D-m-1)`, `k_1 = sum_m c_m (D + m - 1) 2^(-D-m-1)` with
//! `c_(m+1) / c_m = (D + m)^2 / ((2D + m)(m + 1))`. No term is negative (`D >= 1`), and from `m = D` on each is below
//! 2/3 of the previous one.
//!
//! Accuracy. A rounding error in the recurrence excites its other solutions; the fastest belongs to `G_(1-D)`, whose
//! coefficients grow like `binomial(n + D, n)` where ours fall like a small power of `1/n`. [`guard_bits`] covers that
//! growth with 64 bits to spare. That is an estimate of growth, no proof of each rounding: a test compares every bit
//! with doubled guard bits, and derivatives with the block's series summed term by term.

use super::columns::MatrixPart;
use crate::error::Result;
use crate::matrix::Matrix;
use rayon::prelude::*;
use rug::{Float, Integer};

/// Binary places of the sampled dimensions.
const DIMENSION_BITS: u32 = 32;
/// Width of the sampled range, as a power of two.
const RANGE_BITS: u32 = 9;
/// Rows computed at a time, so that few big floats exist outside the matrix.
const ROWS_AT_A_TIME: usize = 256;

/// A block of the matrix of `F_(D_k)^(2j + 1)(1/2)`.
pub fn crossing_derivatives(part: &MatrixPart) -> Result<Matrix> {
    with_guard_bits(part, guard_bits(part.size.cols))
}

pub(super) fn with_guard_bits(part: &MatrixPart, guard_bits: u32) -> Result<Matrix> {
    let mut matrix = part.zeros()?;
    let work_bits = part.size.precision_bits + guard_bits;
    let factors = derivative_factors(part.cols.end, work_bits);
    for start in part.rows.clone().step_by(ROWS_AT_A_TIME) {
        let rows = start..part.rows.end.min(start + ROWS_AT_A_TIME);
        let made =
            rows.clone().into_par_iter().map(|row| derivatives(sample(row, part.size.rows), &factors, work_bits));
        let made: Vec<Vec<Float>> = made.collect();
        for (row, values) in rows.zip(&made) {
            for (at, value) in values[part.cols.start..].iter().enumerate() {
                matrix.set_float(row - part.rows.start, at, value)?;
            }
        }
    }
    Ok(matrix)
}

/// Bits beyond the precision: `log2 binomial(n + D, n)` by its entropy bound, a power of `n`, and 64 to spare.
pub(super) fn guard_bits(cols: usize) -> u32 {
    let n = 2.0 * cols as f64;
    let dimension = f64::from(1u32 << RANGE_BITS) + 1.0;
    let growth = n * (1.0 + dimension / n).log2() + dimension * (1.0 + n / dimension).log2();
    64 + (growth + 8.0 * (n + 2.0).log2()).ceil() as u32
}

/// `D_k` in units of `2^-32`.
pub(super) fn sample(row: usize, rows: usize) -> u64 {
    let (odd, twice) = (2 * row as u128 + 1, 2 * rows as u128);
    (1 << DIMENSION_BITS) + (((odd * odd) << (DIMENSION_BITS + RANGE_BITS)) / (twice * twice)) as u64
}

/// `2 n! 2^n` for the odd `n` of each column.
fn derivative_factors(cols: usize, work_bits: u32) -> Vec<Float> {
    let mut factor = Integer::from(4); // n = 1
    let mut factors = Vec::with_capacity(cols);
    for col in 0..cols as u64 {
        factors.push(Float::with_val(work_bits, &factor));
        factor *= (2 * col + 2) * (2 * col + 3) * 4;
    }
    factors
}

/// One row: derivatives at `D = dimension / 2^32`, by the recurrence.
fn derivatives(dimension: u64, factors: &[Float], work_bits: u32) -> Vec<Float> {
    // Twice the Casimir eigenvalue, D (D - 1), is an integer of at most 78 bits in units of 2^-64.
    let casimir = u128::from(dimension) * u128::from(dimension - (1 << DIMENSION_BITS));
    let twice_casimir = Float::with_val(128, casimir) >> (2 * DIMENSION_BITS - 1);
    let zero = || Float::new(work_bits);
    let [k0, k1] = start(dimension, work_bits);
    let mut window = [zero(), zero(), k0, k1]; // k_(n-2), k_(n-1), k_n, k_(n+1)
    let mut values = Vec::with_capacity(factors.len());
    let last = 2 * factors.len() as i64 - 1;
    for n in 0..last {
        if n % 2 == 0 {
            values.push(Float::with_val(work_bits, &window[3] * &factors[values.len()]));
        }
        let at_n = Float::with_val(128, &twice_casimir + (2 * n * n - 3 * n - 1));
        let before = Float::with_val(128, (n - 3) - &twice_casimir);
        let mut next = Float::with_val(work_bits, &window[2] * &at_n);
        next += &window[1] * &before;
        next -= Float::with_val(work_bits, &window[3] * (n + 1));
        next -= Float::with_val(work_bits, &window[0] * ((n - 3) * (n - 3)));
        next /= (n + 2) * (n + 1);
        window.rotate_left(1);
        window[3] = next;
    }
    values
}

/// `k_0 = sum_m c_m 2^(-D-m-1)` and `k_1 = sum_m c_m (D + m - 1) 2^(-D-m-1)`,
/// `c_(m+1) / c_m = (D + m)^2 / ((2D + m)(m + 1))`: the block's series at `z = 1/2`.
fn start(dimension: u64, work_bits: u32) -> [Float; 2] {
    let one = 1u64 << DIMENSION_BITS;
    let (mut sum, mut weighted) = (Float::new(work_bits), Float::new(work_bits));
    let mut term = Float::with_val(work_bits, 1); // c_m 2^-m
    for m in 0u64.. {
        sum += &term;
        weighted += Float::with_val(work_bits, &term * (dimension + m * one - one));
        // From m = D on each term is below 2/3 of the one before (the limit is 1/2): the tail is below twice the term.
        let tail_is_small = term.get_exp() < sum.get_exp().map(|exponent| exponent - work_bits as i32 - 8);
        if m * one > dimension && tail_is_small {
            break;
        }
        term *= dimension + m * one;
        term *= dimension + m * one;
        term /= 2 * dimension + m * one;
        term /= m + 1;
        term >>= DIMENSION_BITS + 1;
    }
    let exponent = Float::with_val(128, dimension) >> DIMENSION_BITS;
    let scale = Float::with_val(work_bits, -(exponent + 1u32)).exp2(); // 2^(-D - 1)
    weighted >>= DIMENSION_BITS;
    [sum * &scale, weighted * &scale]
}
