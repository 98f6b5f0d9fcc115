//! The first pass over an operand: the norm exponent of every column, and in exact arithmetic the check for integers.
//!
//! Reads heads alone, in the order they are stored in, whether or not the view is transposed. Promise: the exponents
//! depend on the entries alone, not on their order or the number of workers.

use crate::drive;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::math::scale::{column_exponent, norm_exponent, square_bound};
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
                group_exponents[0] = column_exponent(column_heads(&view, first));
            } else {
                tile_exponents(&view, first, group_exponents);
            }
            let in_range = |exponent: &i64| exponent.unsigned_abs() <= 2 * MAXIMUM_EXPONENT as u64;
            if group_exponents.iter().all(in_range) { Ok(()) } else { Err(Error::Cancelled) }
        },
    );
    // The entry is looked for only when there is one, in the caller's order, so that the error is always the same.
    done.map_err(|_| first_out_of_range(operand).expect("norms beyond twice the range come from an entry beyond it"))
}

/// The same for neighbouring columns of a view stored by rows: all of them advance together.
fn tile_exponents(view: &MatrixView<'_>, first: usize, exponents: &mut [i64]) {
    let (count, stride) = (exponents.len(), view.col_stride());
    let mut largest = [i64::MIN; TILE_COLUMNS];
    let mut sums = [0u128; TILE_COLUMNS];
    let row_heads = |row: usize| view.all_heads()[view.element_index(row, first)..].iter().step_by(stride).take(count);
    for row in 0..view.rows() {
        for (largest, &head) in largest.iter_mut().zip(row_heads(row)) {
            *largest = (*largest).max(if head == 0 { i64::MIN } else { Head(head).exponent() });
        }
    }
    for row in 0..view.rows() {
        for ((sum, &largest), &head) in sums.iter_mut().zip(&largest).zip(row_heads(row)) {
            *sum += u128::from(square_bound(Head(head), largest));
        }
    }
    for (exponent, (&sum, &largest)) in exponents.iter_mut().zip(sums.iter().zip(&largest)) {
        *exponent = norm_exponent(sum, largest);
    }
}

/// The heads of one column from top to bottom.
pub(crate) fn column_heads<'a>(view: &MatrixView<'a>, col: usize) -> impl Iterator<Item = Head> + Clone + use<'a> {
    let heads = match view.rows() {
        0 => &[],
        rows => &view.all_heads()[view.element_index(0, col)..=view.element_index(rows - 1, col)],
    };
    heads.iter().step_by(view.row_stride().max(1)).map(|&head| Head(head))
}

/// The error of the first entry beyond what any conversion makes, column by column of the operand.
pub(crate) fn first_out_of_range(operand: &Operand<'_>) -> Option<Error> {
    let view = operand.view;
    for col in 0..view.cols() {
        for row in 0..view.rows() {
            let exponent = view.get(row, col).head.exponent();
            if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
                let (row, column) = operand.caller_index(row, col);
                return Some(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
            }
        }
    }
    None
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
pub(crate) fn is_integer(value: FloatRef<'_>) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::matrix::{Matrix, Op};

    #[test]
    fn transposes_and_workers_do_not_change_the_exponents() {
        let (rows, cols) = (331, 150);
        for (case, spread) in [1i32, 2, 40, 900].into_iter().enumerate() {
            let mut matrix = Matrix::zeros(rows, cols, 100).unwrap();
            let mut state = 88_172_645_463_325_252u64 + case as u64;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            for col in (0..cols).filter(|col| col % 9 != 4) {
                let used = 1 + next() as usize % rows;
                for row in 0..used {
                    let size = 1.0 + if col % 3 == 0 { 0.0 } else { (next() % 1000) as f64 / 1000.0 };
                    matrix.set_f64(row, col, size * 2f64.powi((next() % spread as u64) as i32)).unwrap();
                }
            }
            for op in [Op::NoTranspose, Op::Transpose] {
                for workers in [1, 3] {
                    let operand = Operand::new(matrix.view(), op);
                    let mut exponents = vec![77; operand.view.cols()];
                    let ctx = Context::builder().threads(workers).build().unwrap();
                    ctx.install(|| norm_exponents(workers, &operand, &mut exponents)).unwrap();
                    let view = operand.view;
                    let want = (0..view.cols())
                        .map(|col| column_exponent((0..view.rows()).map(|row| view.get(row, col).head)))
                        .collect::<Vec<_>>();
                    assert_eq!(exponents, want, "spread {spread}, {op:?}, {workers} workers");
                }
            }
        }
    }

    #[test]
    fn integers_are_told_from_fractions() {
        let values = [0.0, 1.0, -3.0, 0.5, 1e300, 2.25, 4_503_599_627_370_496.5, 1e-300];
        let matrix = Matrix::from_f64s(values.len(), 1, 200, &values).unwrap();
        for (row, value) in values.iter().enumerate() {
            assert_eq!(is_integer(matrix.get(row, 0)), value.fract() == 0.0, "{value}");
        }
    }
}
