//! Operations on chunks of tall matrices, which have few columns and are stored row by row.
//!
//! Promise: each product and each sum is rounded once, in an order that depends only on the shapes: the same bits on
//! every processor.

use crate::random;
use crate::small::SmallMatrix;
use sunzi::{Error, Result};

#[cfg(test)]
mod tests;

/// Columns that a kernel takes at a time.
const WIDE: usize = 8;

/// Rows whose part of an inner product is added up before it is added to the whole.
const PANEL_ROWS: usize = 256;

/// A chunk of a tall matrix.
#[derive(Clone, Copy, Debug)]
pub struct Tall<'a> {
    /// Row by row.
    pub numbers: &'a [f64],
    /// Number of columns, at least 1.
    pub cols: usize,
}

impl Tall<'_> {
    /// Its rows.
    pub fn rows(&self) -> usize {
        self.numbers.len() / self.cols.max(1)
    }
}

fn mismatch(operation: &'static str, left: [usize; 2], right: [usize; 2]) -> Error {
    let ([left_rows, left_cols], [right_rows, right_cols]) = (left, right);
    Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols }
}

/// All of these with as many rows as the first; their columns together.
fn side_by_side(parts: &[Tall<'_>], operation: &'static str) -> Result<[usize; 2]> {
    let rows = parts.first().map_or(0, Tall::rows);
    let cols = parts.iter().map(|part| part.cols).sum();
    for part in parts {
        if part.cols == 0 || part.numbers.len() != rows * part.cols {
            return Err(mismatch(operation, [rows, cols], [part.rows(), part.cols]));
        }
    }
    Ok([rows, cols])
}

/// Uniform random numbers in `[-1, 1)` that depend on `seed` and on row and column in the whole matrix; the chunk
/// begins at row `first_row` of it.
pub fn fill_random(seed: u64, first_row: usize, cols: usize, out: &mut [f64]) {
    let first = (first_row as u64).wrapping_mul(cols as u64);
    for (place, number) in out.iter_mut().enumerate() {
        *number = random::symmetric(seed, first.wrapping_add(place as u64));
    }
}

/// `y := alpha x + beta y`, where `beta = 0` does not read `y`.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub fn axpby(alpha: f64, x: &[f64], beta: f64, y: &mut [f64]) -> Result<()> {
    if x.len() != y.len() {
        return Err(mismatch("sum of chunks", [x.len(), 1], [y.len(), 1]));
    }
    pulp::Arch::new().dispatch(|| {
        let pairs = y.iter_mut().zip(x);
        match beta {
            0.0 => pairs.for_each(|(y, x)| *y = alpha * x),
            1.0 => pairs.for_each(|(y, x)| *y += alpha * x),
            _ => pairs.for_each(|(y, x)| *y = alpha * x + beta * *y),
        }
    });
    Ok(())
}

/// Divides each row of `y` by its own divisor.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::Singular`] for a zero, with its row in the chunk.
pub fn divide_rows(divisors: &[f64], cols: usize, y: &mut [f64]) -> Result<()> {
    if divisors.len() * cols != y.len() {
        return Err(mismatch("division of rows", [divisors.len(), 1], [y.len() / cols.max(1), cols]));
    }
    for (index, (row, &divisor)) in y.chunks_exact_mut(cols.max(1)).zip(divisors).enumerate() {
        if divisor == 0.0 {
            return Err(Error::Singular { index });
        }
        row.iter_mut().for_each(|number| *number /= divisor);
    }
    Ok(())
}

/// `Y := [X_1 X_2 ...] C + beta Y` for tall matrices `X_k`, whose columns are joined, and a small matrix `C`, where
/// `beta` is 0 or 1.
///
/// Cost: `2 rows k m` operations.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub fn times_small(parts: &[Tall<'_>], c: &SmallMatrix, accumulate: bool, y: &mut [f64]) -> Result<()> {
    let [rows, inner] = side_by_side(parts, "product with a small matrix")?;
    if inner != c.rows() || rows * c.cols() != y.len() {
        return Err(mismatch("product with a small matrix", [rows, inner], [c.rows(), c.cols()]));
    }
    if !accumulate {
        y.fill(0.0);
    }
    let mut from = 0;
    while from < c.cols() {
        if from + WIDE <= c.cols() {
            pulp::Arch::new().dispatch(|| times_part::<WIDE>(parts, c, from, y));
            from += WIDE;
        } else {
            times_part::<1>(parts, c, from, y);
            from += 1;
        }
    }
    Ok(())
}

/// `sum := sum + scalar * x`, by indices: iterators over two arrays are not always inlined here.
#[inline(always)]
fn add_scaled<const N: usize>(sum: &mut [f64; N], scalar: f64, x: &[f64; N]) {
    for k in 0..N {
        sum[k] += scalar * x[k];
    }
}

/// Columns `from .. from + N` of the product.
#[inline(always)]
fn times_part<const N: usize>(parts: &[Tall<'_>], c: &SmallMatrix, from: usize, y: &mut [f64]) {
    let (cols, rows) = (c.cols(), y.len() / c.cols());
    let mut start = 0;
    while start < rows {
        let end = (start + PANEL_ROWS).min(rows);
        let mut first = 0;
        for part in parts {
            for row in start..end {
                let Some(y) = y[row * cols + from..].first_chunk_mut::<N>() else { return };
                let mut sum = *y;
                let x = &part.numbers[row * part.cols..(row + 1) * part.cols];
                let mut at = first * cols + from;
                for &x in x {
                    let Some(c) = c.numbers()[at..].first_chunk::<N>() else { return };
                    add_scaled(&mut sum, x, c);
                    at += cols;
                }
                *y = sum;
            }
            first += part.cols;
        }
        start = end;
    }
}

/// `[X_1 X_2 ...]^T [Y_1 Y_2 ...]` for tall matrices with the same rows.
///
/// Rows are summed in panels of 256, and the sums of panels are added from first to last. Cost: `2 rows k m`
/// operations.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub fn inner(left: &[Tall<'_>], right: &[Tall<'_>]) -> Result<SmallMatrix> {
    let [rows, left_cols] = side_by_side(left, "inner product")?;
    let [right_rows, right_cols] = side_by_side(right, "inner product")?;
    if rows != right_rows {
        return Err(mismatch("inner product", [rows, left_cols], [right_rows, right_cols]));
    }
    let mut whole = SmallMatrix::zeros(left_cols, right_cols);
    for start in (0..rows).step_by(PANEL_ROWS) {
        let panel = |part: &Tall<'_>| {
            let end = (start + PANEL_ROWS).min(rows);
            start * part.cols..end * part.cols
        };
        let mut row = 0;
        for x in left {
            let mut col = 0;
            let numbers = &x.numbers[panel(x)];
            for y in right {
                inner_panel(
                    Tall { numbers, ..*x },
                    Tall { numbers: &y.numbers[panel(y)], ..*y },
                    [row, col],
                    &mut whole,
                );
                col += y.cols;
            }
            row += x.cols;
        }
    }
    Ok(whole)
}

/// Adds the inner product of two panels to the place of `whole` that begins at `at`.
fn inner_panel(x: Tall<'_>, y: Tall<'_>, at: [usize; 2], whole: &mut SmallMatrix) {
    let mut i = 0;
    while i < x.cols {
        let is_wide = i + WIDE <= x.cols;
        let mut j = 0;
        while j < y.cols {
            let place = [at[0] + i, at[1] + j];
            if is_wide && j + WIDE <= y.cols {
                pulp::Arch::new().dispatch(|| inner_block::<WIDE>(x, y, [i, j], place, whole));
                j += WIDE;
            } else {
                let count = if is_wide { WIDE } else { 1 };
                (0..count).for_each(|k| inner_block::<1>(x, y, [i + k, j], [place[0] + k, place[1]], whole));
                j += 1;
            }
        }
        i += if is_wide { WIDE } else { 1 };
    }
}

/// Columns `from[0] .. + N` of `x` with columns `from[1] .. + N` of `y`.
#[inline(always)]
fn inner_block<const N: usize>(x: Tall<'_>, y: Tall<'_>, from: [usize; 2], at: [usize; 2], whole: &mut SmallMatrix) {
    let mut sums = [[0.0; N]; N];
    for row in 0..x.rows() {
        let (Some(x), Some(y)) = (
            x.numbers[row * x.cols + from[0]..].first_chunk::<N>(),
            y.numbers[row * y.cols + from[1]..].first_chunk::<N>(),
        ) else {
            return;
        };
        for k in 0..N {
            add_scaled(&mut sums[k], x[k], y);
        }
    }
    for (i, sums) in sums.iter().enumerate() {
        for (j, sum) in sums.iter().enumerate() {
            *whole.at_mut(at[0] + i, at[1] + j) += sum;
        }
    }
}
