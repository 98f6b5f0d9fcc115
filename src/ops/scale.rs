//! The first pass over an operand: the norm exponent of every column, and in exact arithmetic the check for integers.
//!
//! Reads heads once, then heads and top limbs, in the order they are stored in, whether or not the view is
//! transposed. Promise: the exponents depend on the entries alone, not on their order or the number of workers.

use crate::drive;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::math::scale::{norm_exponent, square_rounded_up};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use crate::ops::problem::Operand;

/// Columns of a transposed view that are walked through together: eight cache lines of heads.
const TILE_COLUMNS: usize = 64;

/// Writes the norm exponent of every column of `operand` into `exponents`.
///
/// # Errors
/// [`Error::ExponentRange`] for an entry beyond what any conversion makes.
pub(crate) fn norm_exponents(workers: usize, operand: &Operand<'_>, exponents: &mut [i64]) -> Result<()> {
    let view = operand.view;
    assert_eq!(exponents.len(), view.cols());
    let by_column = view.row_stride() <= view.col_stride();
    let group = if by_column { 1 } else { exponents.len().div_ceil(workers).clamp(8, TILE_COLUMNS) };
    let mut groups = exponents.chunks_mut(group).enumerate();
    let mut locals = vec![(); workers];
    let done = drive::share(
        &mut locals,
        |()| groups.next(),
        |(), (index, group_exponents)| {
            let first = index * group;
            if by_column {
                group_exponents[0] = column_exponent(&view, first);
            } else {
                tile_exponents(&view, first, group_exponents);
            }
            let in_range = |exponent: &i64| exponent.unsigned_abs() <= 2 * MAXIMUM_EXPONENT as u64;
            if group_exponents.iter().all(in_range) { Ok(()) } else { Err(Error::Cancelled) }
        },
    );
    // The entry is looked for only when there is one, in the caller's order, so that the error is always the same.
    done.map_err(|_| first_out_of_range(operand))
}

/// Largest exponent and rounded sum of squares of one column whose entries lie `row_stride` apart.
fn column_exponent(view: &MatrixView<'_>, col: usize) -> i64 {
    if view.rows() == 0 {
        return 0;
    }
    let (start, stride, width) = (view.element_index(0, col), view.row_stride().max(1), view.limbs_per_element());
    let end = view.element_index(view.rows() - 1, col) + 1;
    let heads = &view.all_heads()[start..end];
    let limbs = &view.all_limbs()[start * width..end * width];
    let largest = heads.iter().step_by(stride).fold(i64::MIN, |largest, &head| largest.max(rank(head)));
    if largest == i64::MIN {
        return 0;
    }
    let entries = heads.iter().zip(limbs.chunks_exact(width)).step_by(stride);
    let sum = entries.map(|(&head, limbs)| square_rounded_up(FloatRef { head: Head(head), limbs }, largest)).sum();
    norm_exponent(sum, largest)
}

/// The same for neighbouring columns of a view stored by rows.
fn tile_exponents(view: &MatrixView<'_>, first: usize, exponents: &mut [i64]) {
    let (count, stride, width) = (exponents.len(), view.col_stride(), view.limbs_per_element());
    let mut largest = [i64::MIN; TILE_COLUMNS];
    let mut sums = [0u128; TILE_COLUMNS];
    for row in 0..view.rows() {
        let start = view.element_index(row, first);
        let heads = view.all_heads()[start..].iter().step_by(stride);
        for (largest, &head) in largest[..count].iter_mut().zip(heads) {
            *largest = (*largest).max(rank(head));
        }
    }
    for row in 0..view.rows() {
        let start = view.element_index(row, first);
        for lane in 0..count {
            let at = start + lane * stride;
            let entry = FloatRef { head: Head(view.all_heads()[at]), limbs: &view.all_limbs()[at * width..][..width] };
            sums[lane] += square_rounded_up(entry, largest[lane]);
        }
    }
    for lane in 0..count {
        exponents[lane] = if sums[lane] == 0 { 0 } else { norm_exponent(sums[lane], largest[lane]) };
    }
}

/// The exponent of a head, below all others for the number 0.
#[inline]
fn rank(head: u64) -> i64 {
    if head == 0 { i64::MIN } else { Head(head).exponent() }
}

fn first_out_of_range(operand: &Operand<'_>) -> Error {
    let view = operand.view;
    for col in 0..view.cols() {
        for row in 0..view.rows() {
            let exponent = view.get(row, col).head.exponent();
            if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
                let (row, column) = operand.caller_index(row, col);
                return Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT };
            }
        }
    }
    unreachable!("norms beyond twice the range come from an entry beyond it")
}

/// Refuses a matrix with an entry that is not an integer.
///
/// # Errors
/// [`Error::NotInteger`] names the first such entry, column by column.
pub(crate) fn check_integers(view: MatrixView<'_>) -> Result<()> {
    for column in 0..view.cols() {
        if let Some(row) = (0..view.rows()).find(|&row| !is_integer(view.get(row, column))) {
            return Err(Error::NotInteger { row, column });
        }
    }
    Ok(())
}

/// Refuses an operand with an entry that is not an integer; the indices are those of the caller's matrix.
pub(crate) fn check_operand_integers(workers: usize, operand: &Operand<'_>) -> Result<()> {
    let caller = if operand.flipped { operand.view.transposed() } else { operand.view };
    let mut columns = 0..caller.cols();
    let mut locals = vec![(); workers];
    let done = drive::share(
        &mut locals,
        |()| columns.next(),
        |(), col| check_integers(caller.block(0..caller.rows(), col..col + 1)?),
    );
    // Which worker met an entry first is chance; the search in order is not.
    done.or_else(|_| check_integers(caller))
}

/// Whether the number has no fractional part.
fn is_integer(value: FloatRef<'_>) -> bool {
    if value.head.is_zero() {
        return true;
    }
    let fraction_bits = value.limbs.len() as i64 * 64 - value.head.exponent();
    let zeros = value
        .limbs
        .iter()
        .position(|&limb| limb != 0)
        .map_or(0, |first| first as i64 * 64 + i64::from(value.limbs[first].trailing_zeros()));
    zeros >= fraction_bits
}
