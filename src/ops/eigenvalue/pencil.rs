//! `L^-1 X L^-T` as a matrix, and the errors of its eigenvalues: a small congruence, and a small sum.

use super::interval::{check_exponents, find, of_zero_matrix, power};
use super::{EigenvalueInterval, EigenvalueReport, Extreme, reflected};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::float::Head;
use crate::matrix::{Matrix, MatrixView, Side, Symmetric, SymmetricMatrix, Uplo};
use crate::ops::gemm::{GemmOptions, gemm_with};
use crate::ops::product::problem::Accuracy;
use crate::ops::trsm::{TrsmOptions, trsm_with};
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, SubAssignRound};

/// Least bits beyond the requested ones with which the product is formed.
const SPARE_BITS: u32 = 64;

/// A search for an eigenvalue of `L^-1 X L^-T`.
pub(super) struct Congruence<'a> {
    pub ctx: &'a Context,
    pub l: MatrixView<'a>,
    pub x: Symmetric<'a>,
    pub which: Extreme,
    pub precision_bits: u32,
}

/// The product, and the powers of two that bound its errors.
struct Formed {
    matrix: Matrix,
    /// `||N L - I||` is below 2 to this power.
    relative: i64,
    /// The matrix is off by less than 2 to this power, in the Frobenius norm.
    absolute: i64,
}

/// A power of two not below the Frobenius norm.
fn norm_exponent(matrix: &MatrixView<'_>) -> i64 {
    let heads = (0..matrix.cols()).flat_map(|col| (0..matrix.rows()).map(move |row| matrix.head(row, col)));
    let largest = heads.filter(|head| !head.is_zero()).map(Head::exponent).max();
    let count = ceil_log2(matrix.rows().max(matrix.cols()));
    largest.map_or(0, |largest| largest + i64::from(count))
}

impl Congruence<'_> {
    /// The interval of the smallest eigenvalue, of the product with the other sign where the largest is wanted.
    ///
    /// # Errors
    /// The errors of [`super::pencil_eigenvalue_with`].
    pub fn solve(&self) -> Result<(EigenvalueInterval, EigenvalueReport)> {
        let order = self.l.rows();
        let x = self.x.lower_view("pencil_eigenvalue")?;
        if (0..order).all(|col| (col..order).all(|row| x.head(row, col).is_zero())) {
            // No product is formed, but a singular L is refused as well.
            let singular = (0..order).find(|&index| self.l.head(index, index).is_zero());
            let found = of_zero_matrix(order, self.precision_bits);
            return singular.map_or(Ok(found), |index| Err(Error::Singular { index }));
        }
        let mut bits = self.precision_bits + SPARE_BITS;
        loop {
            let formed = self.form(bits)?;
            // Two bits go to the errors of the product, two to the interval of the matrix.
            let wanted = self.precision_bits + 2;
            let held = Matrix::bytes_for(self.l.rows(), self.l.rows(), bits);
            let (found, report) = find(&self.ctx.holding(held), &formed.matrix, wanted)?;
            let widened = formed.widen(&found);
            let goal = self.goal(&found, norm_exponent(&formed.matrix.view()));
            let missing = formed.missing_bits(&found, goal);
            if missing <= 0 {
                let product_bytes = 4 * Matrix::bytes_for(self.l.rows(), self.l.rows(), bits + 64);
                let planned_bytes = report.planned_bytes + held.max(product_bytes);
                let working_bits = report.working_bits.max(bits);
                return Ok((widened, EigenvalueReport { planned_bytes, working_bits, ..report }));
            }
            bits = bits.saturating_add((missing as u32).next_multiple_of(32));
        }
    }

    /// The power of two that each of the two errors may have.
    fn goal(&self, found: &EigenvalueInterval, norm: i64) -> i64 {
        let bits = i64::from(self.precision_bits);
        (size_exponent(found) - bits).max(norm - 2 * bits - 32) - 4
    }

    /// `N X N^T` with `N L = I`, both up to rounding at `bits` bits.
    fn form(&self, bits: u32) -> Result<Formed> {
        let (order, ctx) = (self.l.rows(), self.ctx);
        let bytes = Matrix::bytes_for(order, order, bits);
        ctx.admit(bytes.saturating_mul(4))?;
        let ctx = &ctx.holding(bytes.saturating_mul(3));
        let options = TrsmOptions::new().side(Side::Right).uplo(Uplo::Lower).accuracy(Accuracy::Norm);
        let inverse = trsm_with(ctx, self.l, &Matrix::identity(order, 2)?, bits, &options)?.result;
        let whole = self.x.to_symmetric()?;
        let entrywise = GemmOptions::new().accuracy(Accuracy::Entrywise);
        let half = gemm_with(ctx, &inverse, &whole, bits, &entrywise)?.result;
        [&inverse, &whole].into_iter().try_for_each(check_exponents)?;
        let product = gemm_with(ctx, &half, inverse.transposed(), bits, &entrywise)?.result;
        let symmetric = SymmetricMatrix::from_triangle(product, Uplo::Lower)?;
        let (n, lower, x) = (norm_exponent(&inverse.view()), lower_norm(&self.l), norm_exponent(&whole.view()));
        let precision = i64::from(bits);
        Ok(Formed {
            matrix: reflected(symmetric.into_matrix(), self.which),
            relative: 3 - precision + (n + lower).max(i64::from(ceil_log2(order))),
            absolute: 4 - precision + 2 * n + x,
        })
    }
}

/// The exponent of the larger end of an interval; far below all others for 0.
fn size_exponent(found: &EigenvalueInterval) -> i64 {
    let size = |end: &Float| end.get_exp().map_or(i64::MIN / 2, i64::from);
    size(&found.lower).max(size(&found.upper))
}

/// A power of two not below the Frobenius norm of the lower triangle.
fn lower_norm(l: &MatrixView<'_>) -> i64 {
    let heads = (0..l.cols()).flat_map(|col| (col..l.rows()).map(move |row| l.head(row, col)));
    let largest = heads.filter(|head| !head.is_zero()).map(Head::exponent).max();
    largest.unwrap_or(0) + i64::from(ceil_log2(l.rows()))
}

impl Formed {
    /// Additional bits needed until both errors are within `2^goal`.
    fn missing_bits(&self, found: &EigenvalueInterval, goal: i64) -> i64 {
        let relative = self.relative + 3 + size_exponent(found);
        (relative - goal).max(self.absolute - goal).max(self.relative + 4)
    }

    /// The interval of the exact product: eigenvalues of the matrix are off by the absolute error, and a congruence
    /// with `I + R` changes each by a factor between `(1 - ||R||)^2` and `(1 + ||R||)^2`.
    fn widen(&self, found: &EigenvalueInterval) -> EigenvalueInterval {
        let (mut lower, mut upper) = (found.lower.clone(), found.upper.clone());
        lower.sub_assign_round(&power(self.absolute), Round::Down);
        upper.add_assign_round(&power(self.absolute), Round::Up);
        // (1 + r)^-2 and (1 - r)^-2 lie between 1 - 4 r and 1 + 4 r for r <= 1/8.
        for (end, away) in [(&mut lower, Round::Down), (&mut upper, Round::Up)] {
            let mut error = Float::with_val(end.prec(), end.abs_ref());
            error *= power(self.relative + 2);
            match away {
                Round::Down => drop(end.sub_assign_round(&error, away)),
                _ => drop(end.add_assign_round(&error, away)),
            }
        }
        EigenvalueInterval { lower, upper }
    }
}
