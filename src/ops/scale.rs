//! The first pass over an operand: the norm exponent of every column, and in exact arithmetic the check for integers.
//!
//! Reads heads, then as many top limbs as decide the exponents, in the order they are stored in, whether or not the
//! view is transposed. Promise: the exponents depend on the entries alone, not on their order or the number of workers.

use crate::drive;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::math::scale::SquareRange;
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use crate::ops::problem::Operand;

/// Rows read between two looks at whether the exponent is decided.
const GROUP_ROWS: usize = 64;

/// Walks over the heads of a column that a new largest exponent may end.
const RESTARTS: usize = 6;

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

/// The norm exponent of one column whose entries lie `row_stride` apart.
///
/// Limbs are far apart and cost a cache line each. The heads alone give the exponent up to one; the entries with the
/// largest exponent decide most of what is left, so they are read first, and reading ends when nothing is left.
fn column_exponent(view: &MatrixView<'_>, col: usize) -> i64 {
    if view.rows() == 0 {
        return 0;
    }
    let (start, stride, width) = (view.element_index(0, col), view.row_stride().max(1), view.limbs_per_element());
    let end = view.element_index(view.rows() - 1, col) + 1;
    let heads = &view.all_heads()[start..end];
    let limbs = &view.all_limbs()[start * width..end * width];
    let (largest, mut range) = match stride {
        1 => scan_heads(heads.iter()),
        _ => scan_heads(heads.iter().step_by(stride)),
    };
    if largest == i64::MIN {
        return 0;
    }
    for leading in [true, false] {
        for group in (0..view.rows()).step_by(GROUP_ROWS) {
            if let Some(exponent) = range.exponent(largest) {
                return exponent;
            }
            // First a list without branches, then reads that the processor can overlap.
            let (mut chosen, mut count) = ([0; GROUP_ROWS], 0);
            for row in group..view.rows().min(group + GROUP_ROWS) {
                chosen[count] = row * stride;
                count += usize::from((rank(heads[row * stride]) == largest) == leading);
            }
            for &at in &chosen[..count] {
                range.read(FloatRef { head: Head(heads[at]), limbs: &limbs[at * width..][..width] }, largest);
            }
        }
    }
    range.exponent(largest).expect("every entry has been read")
}

/// The largest exponent, and what the heads alone tell of the sum of squares.
///
/// One walk suffices where the largest exponent comes early, as it mostly does: a new largest one begins the walk
/// again, up to a few times.
fn scan_heads<'a>(heads: impl Iterator<Item = &'a u64> + Clone) -> (i64, SquareRange) {
    let mut largest = i64::MIN;
    for _ in 0..RESTARTS {
        let mut range = SquareRange::default();
        let larger = heads.clone().find(|&&head| {
            let larger = rank(head) > largest;
            if !larger {
                range.add_head(Head(head), largest);
            }
            larger
        });
        match larger {
            Some(&head) => largest = rank(head),
            None => return (largest, range),
        }
    }
    let largest = heads.clone().fold(largest, |largest, &head| largest.max(rank(head)));
    let mut range = SquareRange::default();
    heads.for_each(|&head| range.add_head(Head(head), largest));
    (largest, range)
}

/// The same for neighbouring columns of a view stored by rows: all of them advance together.
fn tile_exponents(view: &MatrixView<'_>, first: usize, exponents: &mut [i64]) {
    let (count, stride, width) = (exponents.len(), view.col_stride(), view.limbs_per_element());
    let mut largest = [i64::MIN; TILE_COLUMNS];
    let mut ranges = [SquareRange::default(); TILE_COLUMNS];
    let row_heads = |row: usize| view.all_heads()[view.element_index(row, first)..].iter().step_by(stride);
    for row in 0..view.rows() {
        for (largest, &head) in largest[..count].iter_mut().zip(row_heads(row)) {
            *largest = (*largest).max(rank(head));
        }
    }
    for row in 0..view.rows() {
        for (lane, &head) in row_heads(row).take(count).enumerate() {
            ranges[lane].add_head(Head(head), largest[lane]);
        }
    }
    let mut open = (0..count).collect::<Vec<_>>();
    let mut row = 0;
    loop {
        open.retain(|&lane| match ranges[lane].exponent(largest[lane]) {
            Some(exponent) => {
                exponents[lane] = exponent;
                false
            }
            None => true,
        });
        if open.is_empty() {
            return;
        }
        for row in row..view.rows().min(row + GROUP_ROWS) {
            let start = view.element_index(row, first);
            for &lane in &open {
                let at = start + lane * stride;
                let limbs = &view.all_limbs()[at * width..][..width];
                ranges[lane].read(FloatRef { head: Head(view.all_heads()[at]), limbs }, largest[lane]);
            }
        }
        row += GROUP_ROWS;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::math::scale::{largest_exponent, norm_exponent, square_rounded_up};
    use crate::matrix::{Matrix, Op};

    /// The definition: all entries of a column in order.
    fn plain(view: &MatrixView<'_>, col: usize) -> i64 {
        let column = || (0..view.rows()).map(|row| view.get(row, col));
        let largest = largest_exponent(column().map(|value| value.head));
        largest
            .map_or(0, |largest| norm_exponent(column().map(|value| square_rounded_up(value, largest)).sum(), largest))
    }

    #[test]
    fn early_ends_and_transposes_do_not_change_the_exponents() {
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
                    let want = (0..operand.view.cols()).map(|col| plain(&operand.view, col)).collect::<Vec<_>>();
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
