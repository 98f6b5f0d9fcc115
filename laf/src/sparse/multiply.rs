//! Products of a block of a sparse matrix with blocks of vectors, which lie row by row.
//!
//! Promise: each entry of a result is the sum of its products in the order of the stored entries, each product and each
//! sum rounded once: the bits do not depend on the vector units of the processor, nor on the number of vectors.

use super::block::{RowEntries, SparseBlock, damaged};
use sunzi::{Error, Result};

/// Vectors that a kernel takes at a time.
const WIDE: usize = 8;

/// Hands `$width` as a constant to a kernel, which it calls on the processor's widest vectors.
macro_rules! at_width {
    ($block:expr, $kernel:ident($($argument:expr),*)) => {
        match $block.column_bytes() {
            1 => pulp::Arch::new().dispatch(|| $kernel::<1>($($argument),*)),
            2 => pulp::Arch::new().dispatch(|| $kernel::<2>($($argument),*)),
            3 => pulp::Arch::new().dispatch(|| $kernel::<3>($($argument),*)),
            _ => pulp::Arch::new().dispatch(|| $kernel::<4>($($argument),*)),
        }
    };
}

/// `Y := Y + A X` for a rectangular block `A`; the rows of `X` belong to the columns of `A` and the rows of `Y` to the
/// rows of `A`, each with `vectors` numbers.
///
/// Cost: `2 vectors` operations for each entry.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for a damaged block.
pub fn multiply(block: &SparseBlock<'_>, x: &[f64], y: &mut [f64], vectors: usize) -> Result<()> {
    let shape = block.shape();
    fits(x, shape.cols, vectors)?;
    fits(y, shape.rows, vectors)?;
    at_width!(block, general(block, x, y, vectors))
}

/// `Y_i := Y_i + A X_j` and `Y_j := Y_j + A^T X_i` in one pass over the block `A` in rows `i`, columns `j` of a
/// symmetric matrix. `x` and `y` contain the part of the columns first, then the part of the rows.
///
/// Cost: `4 vectors` operations for each entry. Errors: as [`multiply`].
///
/// # Errors
/// As [`multiply`].
pub fn multiply_symmetric(block: &SparseBlock<'_>, x: [&[f64]; 2], y: [&mut [f64]; 2], vectors: usize) -> Result<()> {
    let shape = block.shape();
    let [y_cols, y_rows] = y;
    for (numbers, size) in [(x[0], shape.cols), (x[1], shape.rows), (&*y_cols, shape.cols), (&*y_rows, shape.rows)] {
        fits(numbers, size, vectors)?;
    }
    at_width!(block, symmetric(block, x, [&mut *y_cols, &mut *y_rows], vectors))
}

/// `Y := Y + A X` for a block `A` on the diagonal of a symmetric matrix, of which the lower triangle is stored.
///
/// Cost: `4 vectors` operations for each entry. Errors: as [`multiply`].
///
/// # Errors
/// As [`multiply`].
pub fn multiply_diagonal(block: &SparseBlock<'_>, x: &[f64], y: &mut [f64], vectors: usize) -> Result<()> {
    let shape = block.shape();
    fits(x, shape.cols, vectors)?;
    fits(y, shape.rows, vectors)?;
    if !shape.lower {
        return Err(damaged(format_args!("it is not a lower triangle")));
    }
    at_width!(block, lower(block, x, y, vectors))
}

/// The diagonal of a block on the diagonal, with zeros for entries that are not stored.
///
/// # Errors
/// [`Error::InvalidArgument`] for a damaged block.
pub fn diagonal(block: &SparseBlock<'_>) -> Result<Vec<f64>> {
    let mut found = sunzi::advanced::store::zeroed(block.shape().rows)?;
    block.for_each_row(|row, entries| {
        if let Some((_, value)) = entries.filter(|&(col, _)| col == row).last() {
            found[row] = value;
        }
        Ok(())
    })?;
    Ok(found)
}

fn fits(numbers: &[f64], rows: usize, vectors: usize) -> Result<()> {
    if rows.checked_mul(vectors) == Some(numbers.len()) {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        operation: "product with a sparse block",
        left_rows: rows,
        left_cols: vectors,
        right_rows: numbers.len() / vectors.max(1),
        right_cols: vectors,
    })
}

/// Numbers `from .. from + N` of a row of `vectors` numbers.
#[inline(always)]
fn part<const N: usize>(numbers: &[f64], row: usize, vectors: usize, from: usize) -> Option<&[f64; N]> {
    numbers.get(row * vectors + from..)?.first_chunk()
}

#[inline(always)]
fn part_mut<const N: usize>(numbers: &mut [f64], row: usize, vectors: usize, from: usize) -> Option<&mut [f64; N]> {
    numbers.get_mut(row * vectors + from..)?.first_chunk_mut()
}

/// `sum := sum + scalar * x`, by indices: iterators over two arrays are not always inlined here.
#[inline(always)]
fn add_scaled<const N: usize>(sum: &mut [f64; N], scalar: f64, x: &[f64; N]) {
    for k in 0..N {
        sum[k] += scalar * x[k];
    }
}

fn outside(col: usize) -> Error {
    damaged(format_args!("column {col} lies outside"))
}

/// Vectors from `$from` on, eight at a time, the rest one by one.
macro_rules! over_vectors {
    ($vectors:ident, $kernel:ident::<$w:ident>($($argument:expr),*)) => {{
        let mut from = 0;
        while from + WIDE <= $vectors {
            $kernel::<$w, WIDE>($($argument),*, $vectors, from)?;
            from += WIDE;
        }
        while from < $vectors {
            $kernel::<$w, 1>($($argument),*, $vectors, from)?;
            from += 1;
        }
        Ok(())
    }};
}

#[inline(always)]
fn general<const W: usize>(block: &SparseBlock<'_>, x: &[f64], y: &mut [f64], vectors: usize) -> Result<()> {
    over_vectors!(vectors, general_part::<W>(block, x, y))
}

#[inline(always)]
fn general_part<const W: usize, const N: usize>(
    block: &SparseBlock<'_>,
    x: &[f64],
    y: &mut [f64],
    vectors: usize,
    from: usize,
) -> Result<()> {
    block.rows::<W>(|row, entries: RowEntries<'_, W>| {
        let sum = part_mut::<N>(y, row, vectors, from).ok_or_else(|| outside(row))?;
        let mut total = *sum;
        for (col, value) in entries.iter() {
            add_scaled(&mut total, value, part(x, col, vectors, from).ok_or_else(|| outside(col))?);
        }
        *sum = total;
        Ok(())
    })
}

#[inline(always)]
fn symmetric<const W: usize>(
    block: &SparseBlock<'_>,
    x: [&[f64]; 2],
    y: [&mut [f64]; 2],
    vectors: usize,
) -> Result<()> {
    let [y_cols, y_rows] = y;
    over_vectors!(vectors, symmetric_part::<W>(block, x, [&mut *y_cols, &mut *y_rows]))
}

#[inline(always)]
fn symmetric_part<const W: usize, const N: usize>(
    block: &SparseBlock<'_>,
    x: [&[f64]; 2],
    y: [&mut [f64]; 2],
    vectors: usize,
    from: usize,
) -> Result<()> {
    let ([x_cols, x_rows], [y_cols, y_rows]) = (x, y);
    block.rows::<W>(|row, entries: RowEntries<'_, W>| {
        let x_row = part::<N>(x_rows, row, vectors, from).ok_or_else(|| outside(row))?;
        let sum = part_mut::<N>(y_rows, row, vectors, from).ok_or_else(|| outside(row))?;
        let mut total = *sum;
        for (col, value) in entries.iter() {
            add_scaled(&mut total, value, part(x_cols, col, vectors, from).ok_or_else(|| outside(col))?);
            add_scaled(part_mut(y_cols, col, vectors, from).ok_or_else(|| outside(col))?, value, x_row);
        }
        *sum = total;
        Ok(())
    })
}

#[inline(always)]
fn lower<const W: usize>(block: &SparseBlock<'_>, x: &[f64], y: &mut [f64], vectors: usize) -> Result<()> {
    over_vectors!(vectors, lower_part::<W>(block, x, y))
}

#[inline(always)]
fn lower_part<const W: usize, const N: usize>(
    block: &SparseBlock<'_>,
    x: &[f64],
    y: &mut [f64],
    vectors: usize,
    from: usize,
) -> Result<()> {
    block.rows::<W>(|row, entries: RowEntries<'_, W>| {
        let x_row = part::<N>(x, row, vectors, from).ok_or_else(|| outside(row))?;
        let mut total = *part::<N>(y, row, vectors, from).ok_or_else(|| outside(row))?;
        for (col, value) in entries.iter() {
            add_scaled(&mut total, value, part(x, col, vectors, from).ok_or_else(|| outside(col))?);
            if col != row {
                add_scaled(part_mut(y, col, vectors, from).ok_or_else(|| outside(col))?, value, x_row);
            }
        }
        *part_mut(y, row, vectors, from).ok_or_else(|| outside(row))? = total;
        Ok(())
    })
}
