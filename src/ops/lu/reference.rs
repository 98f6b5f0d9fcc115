//! The factorisation as it is defined: one integer after the other.
//!
//! Slow, complete and free of residues: every other path is tested against it, bit for bit.

use crate::error::Result;
use crate::math::pivot::{round_quotient, round_shift};
use crate::matrix::{EntryIndex, Matrix, MatrixView};
use crate::ops::lu::problem::{FactorPlace, LuProblem, LuStop};
use rug::Integer;

/// The integers of `L` below the diagonal and of `U` on and above it, and the row of the matrix at each place.
pub(crate) struct ReferenceFactors {
    pub entries: Vec<Vec<Integer>>,
    pub rows: Vec<usize>,
}

/// `value / divisor`, to nearest, ties to even.
fn quotient(value: &Integer, divisor: &Integer) -> Integer {
    let rounded = round_quotient(&Integer::from(value.abs_ref()), &Integer::from(divisor.abs_ref()));
    if (*value < 0) == (*divisor < 0) { rounded } else { -rounded }
}

/// Factors `a`.
pub(crate) fn factor(problem: &LuProblem, a: MatrixView<'_>) -> std::result::Result<ReferenceFactors, LuStop> {
    let order = problem.order;
    let entry = |row: usize, col: usize| problem.scaled_entry(a.get(row, col), EntryIndex { row, col });
    let mut entries = (0..order).map(|row| (0..order).map(|col| entry(row, col)).collect()).collect::<Vec<Vec<_>>>();
    let mut rows = (0..order).collect::<Vec<_>>();
    for col in 0..order {
        for row in 0..order {
            for k in 0..row.min(col) {
                let product = Integer::from(&entries[row][k] * &entries[k][col]);
                entries[row][col] -= product;
            }
            if row < col {
                entries[row][col] = round_shift(&entries[row][col], -i64::from(problem.working_bits));
            }
        }
        let size = |row: usize| Integer::from(entries[row][col].abs_ref());
        // The first of the largest.
        let pivot = (col..order).rev().max_by_key(|&row| size(row)).expect("a row is left");
        entries.swap(col, pivot);
        rows.swap(col, pivot);
        let above = round_shift(&entries[col][col], -i64::from(problem.working_bits));
        if above == 0 {
            return Err(LuStop::NoPivot(col));
        }
        for row in &mut entries[col + 1..] {
            row[col] = quotient(&row[col], &above);
        }
        entries[col][col] = above;
    }
    Ok(ReferenceFactors { entries, rows })
}

impl ReferenceFactors {
    /// The factors at their precision, in one matrix.
    pub fn to_matrix(&self, problem: &LuProblem) -> Result<Matrix> {
        let mut factors = Matrix::zeros(problem.order, problem.order, problem.precision_bits)?;
        for (row, entries) in self.entries.iter().enumerate() {
            for (col, entry) in entries.iter().enumerate() {
                let pivot = (row > col).then(|| self.rows[col]);
                let place = FactorPlace { row: self.rows[row], col, pivot };
                factors.set_integer_exponent(row, col, entry, problem.entry_exponent(place))?;
            }
        }
        Ok(factors)
    }
}
