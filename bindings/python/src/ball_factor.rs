//! Cholesky factors of balls that are kept: the matrix, of which every method encloses, and its factor.

use crate::balls::{self, Origin, container_among};
use crate::call::Call;
use crate::choices::Named;
use crate::errors::OrRaise;
use crate::input::Operand;
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sunzi::ball::{self, BallMatrix};

/// A matrix of balls and its factor.
pub struct BallFactor {
    a: BallMatrix,
    lower: BallMatrix,
    /// Container of the matrix.
    origin: Origin,
}

impl BallFactor {
    /// Factors an operand.
    ///
    /// # Errors
    /// As [`Operand::balls`] and [`Call::run`].
    pub fn of(call: &mut Call<'_>, a: Operand<'_>, uplo: Option<Named>) -> PyResult<BallFactor> {
        let (bits, origin) = (call.precision_bits(&[a.natural_bits])?, Origin::of(&a));
        let a = balls::symmetric(a.balls(call.py(), bits)?, uplo)?;
        let lower = call.run(|ctx| ball::cholesky(ctx, &a, bits))?;
        Ok(BallFactor { a, lower, origin })
    }

    /// From midpoints and radii, for pickles.
    ///
    /// # Errors
    /// As [`BallFactor::of`].
    pub fn restored(call: &mut Call<'_>, midpoint: &Matrix, radius: &Matrix) -> PyResult<BallFactor> {
        let py = call.py();
        let bits = call.precision_bits(&[])?;
        let matrix = |part: &Matrix| part.view().entries().to_matrix().or_raise(py);
        let a = BallMatrix::new(matrix(midpoint)?, &matrix(radius)?).or_raise(py)?;
        let lower = call.run(|ctx| ball::cholesky(ctx, &a, bits))?;
        Ok(BallFactor { a, lower, origin: Origin::ARB_MAT })
    }

    /// The midpoints of the factor.
    pub fn midpoint(&self) -> &sunzi::Matrix {
        self.lower.midpoint()
    }

    /// Midpoints and radii of the matrix.
    pub fn parts(&self) -> [Matrix; 2] {
        [self.a.midpoint(), self.a.radius()].map(|part| Matrix::new(part.clone().into(), NumberKind::Flint))
    }

    /// The factor, an `arb_mat`, or its transpose.
    ///
    /// # Errors
    /// As [`balls::give`].
    pub fn factor<'py>(&self, call: Call<'py>, is_upper: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = call.py();
        if !is_upper {
            return balls::give(call, &self.lower, Container::ArbMat, "cholesky");
        }
        let transposed = |matrix: &sunzi::Matrix| matrix.view().transposed().to_matrix().or_raise(py);
        let (midpoint, radius) = (transposed(self.lower.midpoint())?, transposed(self.lower.radius())?);
        let upper = BallMatrix::new(midpoint, &radius).or_raise(py)?;
        balls::give(call, &upper, Container::ArbMat, "cholesky")
    }

    /// The solution of `A X = B`.
    ///
    /// # Errors
    /// As [`balls::solve`].
    pub fn solve<'py>(&self, mut call: Call<'py>, b: Operand<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bits = call.precision_bits(&[b.natural_bits, Some(self.midpoint().precision_bits())])?;
        let container = container_among(&[Origin::of(&b), self.origin]);
        let b = b.balls(call.py(), bits)?;
        let found = call.run(|ctx| ball::solve(ctx, &self.a, &b, bits))?;
        balls::give(call, &found, container, "solve")
    }

    /// The inverse.
    ///
    /// # Errors
    /// As [`balls::inverse`].
    pub fn inverse<'py>(&self, mut call: Call<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bits = call.precision_bits(&[Some(self.midpoint().precision_bits())])?;
        let found = call.run(|ctx| ball::inverse(ctx, &self.a, bits))?;
        balls::give(call, &found, container_among(&[self.origin]), "inverse")
    }

    /// The logarithm of the determinant, or the determinant.
    ///
    /// # Errors
    /// As [`balls::log_det`] and [`balls::det`].
    pub fn determinant<'py>(&self, mut call: Call<'py>, is_logarithm: bool) -> PyResult<Bound<'py, PyAny>> {
        let bits = self.midpoint().precision_bits();
        let found = call.run(|ctx| match is_logarithm {
            true => ball::log_det(ctx, &self.a, bits),
            false => ball::det(ctx, &self.a, bits),
        })?;
        balls::one(call, &found)
    }
}

/// The exception for a request of the correct digits of an answer.
pub fn no_digits() -> PyErr {
    PyValueError::new_err("correct digits are not estimated for balls: the radii of the result bound its errors")
}
