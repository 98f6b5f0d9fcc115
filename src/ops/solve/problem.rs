//! The problem of a solve: a list of substitutions, and the scaling of a factor that keeps its rows near 1.
//!
//! A solve with a factored symmetric matrix `A = L D L^T` (`D` absent for Cholesky) is Lower, Diagonal, Upper in a
//! system that powers of two scale to row norms of about 1. With `H` such that `|D| H^-2` lies in `[1/4, 1)` and `S`
//! the norms of the rows of `L H`, it is `L' D' L'^T z = S^-1 b`, `L' = S^-1 L H`, `D' = D H^-2`, `x = S^-1 z`.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{guard_bits, trsm_guard_bits};
use crate::math::float::Head;
use crate::math::pivot::diagonal_exponent;
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, Matrix, Uplo};
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::block::maximum_working_bits;
use crate::ops::solve::triangle::Triangle;

/// One step of a solve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Substitution {
    /// `L X = B`, from the first row to the last.
    Lower,
    /// `D X = B`.
    Diagonal,
    /// `U X = B`, from the last row to the first.
    Upper,
}

/// `L L^T X = B`.
pub(crate) const CHOLESKY: &[Substitution] = &[Substitution::Lower, Substitution::Upper];

/// `L D L^T X = B`.
pub(crate) const LDLT: &[Substitution] = &[Substitution::Lower, Substitution::Diagonal, Substitution::Upper];

/// `L X = B`.
pub(crate) const LOWER: &[Substitution] = &[Substitution::Lower];

/// `U X = B`.
pub(crate) const UPPER: &[Substitution] = &[Substitution::Upper];

/// The shape of a linear system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SystemShape {
    /// Rows and columns of the matrix.
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
}

impl SystemShape {
    /// Whether there are no unknowns.
    pub fn is_empty(self) -> bool {
        self.order == 0 || self.columns == 0
    }

    /// Bytes of right-hand sides or of a solution, at `precision_bits` bits.
    pub fn right_bytes(self, precision_bits: u32) -> u64 {
        Matrix::bytes_for(self.order, self.columns, precision_bits)
    }
}

/// Bits of the numbers of a solve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SolveBits {
    /// Of the solution, as requested.
    pub precision: u32,
    /// Of right-hand sides and unknowns during the solve.
    pub working: u32,
}

/// The working precision of a solve for results of `precision_bits`, with `guard` guard bits.
///
/// # Errors
/// [`Error::Precision`] where no kernel that the context may choose has enough primes.
pub(crate) fn working_bits(ctx: &Context, precision_bits: u32, guard: u32, order: usize) -> Result<u32> {
    let maximum_bits = maximum_working_bits(ctx).saturating_sub(guard + guard_bits(order));
    if !(2..=maximum_bits).contains(&precision_bits) {
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    Ok(precision_bits + guard)
}

/// [`working_bits`] of a solve with one triangle.
///
/// # Errors
/// As [`working_bits`].
pub(crate) fn triangle_working_bits(ctx: &Context, precision_bits: u32, order: usize) -> Result<u32> {
    working_bits(ctx, precision_bits, trsm_guard_bits(order), order)
}

/// A lower triangular `L H = S L'`: the rows of `L'` have norms in `(1/5, 1]`.
pub(crate) struct ScaledRows<'a> {
    factor: &'a Matrix,
    /// Heads of `L'`, zero above the diagonal.
    heads: Vec<u64>,
    /// Row `i` of `S` is `2^exponents[i]`.
    pub exponents: Vec<i64>,
}

impl<'a> ScaledRows<'a> {
    /// Scales column `j` by `2^columns[j]`, by 1 beyond their end, then the rows; entries above the diagonal are not
    /// read.
    pub fn new(factor: &'a Matrix, columns: &[i64]) -> ScaledRows<'a> {
        let order = factor.rows();
        let head = |row: usize, col: usize| {
            let head = factor.get(row, col).head;
            let exponent = || head.exponent() + columns.get(col).copied().unwrap_or(0);
            if head.is_zero() { head } else { Head::new(head.is_negative(), exponent()) }
        };
        let exponents = (0..order).map(|row| column_exponent((0..=row).map(|col| head(row, col)))).collect::<Vec<_>>();
        let mut heads = vec![0; order * order];
        for (col, column) in heads.chunks_mut(order.max(1)).enumerate() {
            for (row, word) in column.iter_mut().enumerate().skip(col) {
                let head = head(row, col);
                if !head.is_zero() {
                    *word = Head::new(head.is_negative(), head.exponent() - exponents[row]).0;
                }
            }
        }
        ScaledRows { factor, heads, exponents }
    }

    /// `L'`.
    ///
    /// # Errors
    /// [`Error::Singular`] where the diagonal has a zero.
    pub fn lower(&self) -> Result<Triangle<'_>> {
        Triangle::new(self.factor.view().with_heads(&self.heads), Uplo::Lower, Diag::NonUnit)
    }

    /// Its transpose.
    ///
    /// # Errors
    /// As [`ScaledRows::lower`].
    pub fn upper(&self) -> Result<Triangle<'_>> {
        Triangle::new(self.factor.view().with_heads(&self.heads).transposed(), Uplo::Upper, Diag::NonUnit)
    }

    /// Bytes held for a factor of that order.
    pub fn bytes(order: usize) -> u64 {
        8 * (order as u64 + 1) * order as u64
    }
}

/// For each pivot the `h` with `|d| 2^(-2 h)` in `[1/4, 1)`.
pub(crate) fn half_exponents(pivots: &Matrix) -> Vec<i64> {
    (0..pivots.rows()).map(|i| half_exponent(pivots.get(i, 0).head)).collect()
}

/// The `h` with `|d| 2^(-2 h)` in `[1/4, 1)`.
pub(crate) fn half_exponent(head: Head) -> i64 {
    diagonal_exponent(head.exponent())
}

/// The entries of `D'^-1`.
pub(crate) fn reciprocals(pivots: &Matrix, halves: &[i64], working_bits: u32) -> Vec<OwnFloat> {
    let each = halves.iter().enumerate();
    each.map(|(i, half)| OwnFloat::reciprocal(pivots.get(i, 0), working_bits).shifted(2 * half)).collect()
}
