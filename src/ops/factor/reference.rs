//! The factorisation as it is defined: one integer after the other, column by column.
//!
//! Slow, complete and free of residues: every other path is tested against it, bit for bit.

use crate::error::Result;
use crate::math::pivot::{round_quotient, round_root};
use crate::matrix::Matrix;
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use rug::Integer;

/// The integers of a factor: `L_ij = entries[i][j] * 2^(s_i - working_bits)`, `j <= i`.
pub(crate) struct ReferenceRows(pub Vec<Vec<Integer>>);

/// A factorisation that failed.
pub(crate) struct Failed {
    /// The row whose pivot is not positive, or which is rejected.
    pub index: usize,
    /// The rows before it.
    pub rows: ReferenceRows,
    /// The pivot, where it was computed.
    pub pivot: Option<Integer>,
}

/// Factors the leading `problem.order` rows of the matrix.
pub(crate) fn factor(input: FactorInput<'_>) -> std::result::Result<ReferenceRows, Failed> {
    let problem = input.problem;
    let order = problem.order;
    let mut rows = Vec::<Vec<Integer>>::with_capacity(order);
    let mut weights = problem.weights.clone();
    for i in 0..order {
        rows.push((0..=i).map(|j| input.scaled_entry(i, j)).collect());
    }
    for j in 0..order {
        let pivot = dot_subtracted(&rows[j], &rows[j], j);
        if weights[j].is_rejected() || pivot <= 0 {
            let known = (!weights[j].is_rejected()).then_some(pivot);
            rows.truncate(j);
            return Err(Failed { index: j, rows: ReferenceRows(rows), pivot: known });
        }
        let root = round_root(&pivot);
        rows[j][j] = root.clone();
        let (upper, lower) = rows.split_at_mut(j + 1);
        for (row, weight) in lower.iter_mut().zip(&mut weights[j + 1..]) {
            let value = dot_subtracted(row, &upper[j], j);
            let entry = if weight.is_rejected() { Integer::new() } else { round_quotient(&value, &root) };
            weight.add(&Integer::from(entry.abs_ref()), problem.working_bits);
            row[j] = if weight.is_rejected() { Integer::new() } else { entry };
        }
    }
    Ok(ReferenceRows(rows))
}

/// `x[j] - sum over k < j of x[k] y[k]`.
fn dot_subtracted(x: &[Integer], y: &[Integer], j: usize) -> Integer {
    let mut sum = x[j].clone();
    for (left, right) in x[..j].iter().zip(&y[..j]) {
        sum -= left * right;
    }
    sum
}

impl ReferenceRows {
    /// The factor at `precision_bits`, zeros above the diagonal.
    pub fn to_matrix(&self, problem: &FactorProblem) -> Result<Matrix> {
        let mut factor = Matrix::zeros(self.0.len(), self.0.len(), problem.precision_bits)?;
        for (i, row) in self.0.iter().enumerate() {
            let exponent = problem.exponents[i] - i64::from(problem.working_bits);
            for (j, entry) in row[..=i].iter().enumerate() {
                factor.set_integer_exponent(i, j, entry, exponent)?;
            }
        }
        Ok(factor)
    }
}
