//! The problem of a factorisation: the triangle that is read, its scaling, and how far it can go.

use crate::error::{Error, Result};
use crate::kernels::limbs;
use crate::math::bound::{cholesky_modulus_bits, cholesky_working_bits};
use crate::math::float::limbs_for;
use crate::math::pivot::RowWeight;
use crate::matrix::{EntryIndex, MatrixView};
use crate::ops::factor::scaling::{is_beyond_one, row_exponent, scaled_entry, scaled_limbs};
use rug::Integer;

/// Limbs of a scaled diagonal entry that is kept on the stack.
const SHORT_LIMBS: usize = 80;

/// A symmetric matrix to factor at one precision; the same on all ranks that share it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FactorProblem {
    /// Rows of the whole matrix.
    pub rows: usize,
    /// Rows to factor: all, or those before the first that already shows the matrix to be indefinite.
    pub order: usize,
    /// Precision of the factor.
    pub precision_bits: u32,
    /// Fixed-point bits of the scaled factor.
    pub working_bits: u32,
    /// `s_i`: the scaled matrix is `a_ij 2^(-s_i - s_j)`; one for each row of `order`.
    pub exponents: Vec<i64>,
    /// Empty running sums of all rows of `order`.
    pub weights: Vec<RowWeight>,
}

impl FactorProblem {
    /// Checks the shape and scales the diagonal of the matrix whose lower triangle is that of `lower`, for a factor of
    /// `precision_bits` and the `working_bits` that it takes.
    ///
    /// # Errors
    /// [`Error::NotSquare`] where it is not square.
    pub fn new(lower: MatrixView<'_>, precision_bits: u32, working_bits: u32) -> Result<FactorProblem> {
        FactorProblem::in_lists(Vec::new(), Vec::new(), lower, precision_bits, working_bits)
    }

    /// The same in the memory of lists that are no longer needed.
    ///
    /// # Errors
    /// As [`FactorProblem::new`].
    pub fn in_lists(
        mut exponents: Vec<i64>,
        mut weights: Vec<RowWeight>,
        lower: MatrixView<'_>,
        precision_bits: u32,
        working_bits: u32,
    ) -> Result<FactorProblem> {
        let problem = FactorProblem::unscaled(lower.rows(), lower.cols(), precision_bits, working_bits)?;
        exponents.clear();
        weights.clear();
        let mut problem = FactorProblem { exponents, weights, ..problem };
        problem.exponents.reserve(problem.rows);
        problem.exponents.extend((0..problem.rows).map_while(|i| row_exponent(lower.get(i, i).head)));
        let mut order = problem.exponents.len();
        // By columns, as the entries lie in memory.
        for (j, &other) in problem.exponents.iter().enumerate() {
            let beyond = |&i: &usize| {
                is_beyond_one(lower.head(i, j), problem.exponents[i] + other, working_bits, || lower.get(i, j))
            };
            order = (j + 1..order).find(beyond).unwrap_or(order);
        }
        problem.cut(order);
        // A scaled diagonal entry is below 1, but may be rounded up to it.
        let count = limbs_for(2 * working_bits + 1);
        let (mut short, mut long) = ([0; SHORT_LIMBS], Vec::new());
        let scaled = if count > SHORT_LIMBS {
            long.resize(count, 0);
            &mut long[..]
        } else {
            &mut short[..count]
        };
        let FactorProblem { exponents, weights, order, .. } = &mut problem;
        weights.extend(exponents.iter().enumerate().take(*order).map(|(i, &exponent)| {
            scaled_limbs(lower.get(i, i), 2 * exponent, working_bits, scaled);
            RowWeight::of_limbs(scaled, working_bits)
        }));
        Ok(problem)
    }

    /// Only the shape, which is checked.
    ///
    /// # Errors
    /// [`Error::NotSquare`] where it is not square.
    pub(super) fn unscaled(rows: usize, cols: usize, precision_bits: u32, working_bits: u32) -> Result<FactorProblem> {
        check_square(rows, cols)?;
        let (exponents, weights) = (Vec::new(), Vec::new());
        Ok(FactorProblem { rows, order: rows, precision_bits, working_bits, exponents, weights })
    }

    /// Drops the rows from `order` on.
    pub(super) fn cut(&mut self, order: usize) {
        self.order = order;
        self.exponents.truncate(order);
        self.weights.truncate(order);
    }

    /// Whether all rows can be tried.
    pub fn is_whole(&self) -> bool {
        self.order == self.rows
    }
}

/// The input of a factorisation in one process.
#[derive(Clone, Copy)]
pub(crate) struct FactorInput<'a> {
    /// The scaling of the matrix.
    pub problem: &'a FactorProblem,
    /// The matrix, of which the lower triangle is read.
    pub lower: MatrixView<'a>,
}

impl FactorInput<'_> {
    /// Entry `(i, j)` as an integer of the scaled matrix.
    pub fn scaled_entry(&self, i: usize, j: usize) -> Integer {
        let FactorProblem { exponents, working_bits, .. } = self.problem;
        scaled_entry(self.lower.get(i, j), exponents[i] + exponents[j], *working_bits)
    }

    /// The same integer into all of `out`, in two's complement.
    #[inline]
    pub fn scaled_limbs(&self, EntryIndex { row, col }: EntryIndex, out: &mut [u64]) {
        let FactorProblem { exponents, working_bits, .. } = self.problem;
        let entry = self.lower.get(row, col);
        scaled_limbs(entry, exponents[row] + exponents[col], *working_bits, out);
        if entry.head.is_negative() {
            limbs::negate(out);
        }
    }
}

/// The operation named where a matrix that is not square is refused.
pub(crate) const SQUARE: &str = "cholesky";

/// Refuses a matrix that is not square.
///
/// # Errors
/// [`Error::NotSquare`].
pub(crate) fn check_square(rows: usize, cols: usize) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    Err(Error::NotSquare { operation: SQUARE, rows, cols })
}

/// Fixed-point bits of a factor of `precision_bits`, with moduli up to `2^maximum_modulus_bits`.
///
/// # Errors
/// [`Error::Precision`] where no such moduli are enough.
pub(crate) fn working_bits(precision_bits: u32, maximum_modulus_bits: u32) -> Result<u32> {
    let fits = |bits: u32| cholesky_modulus_bits(cholesky_working_bits(bits)) <= maximum_modulus_bits;
    if precision_bits < 2 || precision_bits > maximum_modulus_bits / 2 || !fits(precision_bits) {
        let maximum_bits = (2..=maximum_modulus_bits / 2).rev().find(|&bits| fits(bits)).unwrap_or(0);
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    Ok(cholesky_working_bits(precision_bits))
}
