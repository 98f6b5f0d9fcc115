//! Symmetric operands, read for a factorisation.

use crate::call::Call;
use crate::choices::{ACCURACIES, Named, SYMMETRIC, part_of, symmetric};
use crate::input::{Bits, Operand};
use crate::output::Shape;
use crate::view::View;
use pyo3::prelude::*;
use sunzi::estimate::InputRounding;
use sunzi::{Accuracy, CholeskyOptions, Outcome};

/// A symmetric matrix, the selected triangle if one is selected, and the precision of results computed from it.
pub struct Symmetric {
    pub view: View,
    pub uplo: Option<Named>,
    pub precision_bits: u32,
    pub accuracy: Accuracy,
    pub shape: Shape,
}

impl Symmetric {
    /// Reads `a` at the precision of a call that has `others` as operands.
    ///
    /// # Errors
    /// As [`Operand::of`].
    pub fn of(call: &Call<'_>, a: &Bound<'_, PyAny>, others: &[Option<u32>]) -> PyResult<Symmetric> {
        let uplo = call.choice("uplo", SYMMETRIC)?;
        Symmetric::read(call, Operand::of(a, "a", part_of(uplo))?, others)
    }

    /// As [`Symmetric::of`], for an operand that has been checked.
    ///
    /// # Errors
    /// As [`Symmetric::of`].
    pub fn read(call: &Call<'_>, a: Operand<'_>, others: &[Option<u32>]) -> PyResult<Symmetric> {
        let all: Vec<Option<u32>> = others.iter().copied().chain([a.natural_bits]).collect();
        let precision_bits = call.precision_bits(&all)?;
        Symmetric::at(call, a, precision_bits)
    }

    /// As [`Symmetric::read`], for results of `precision_bits` bits.
    ///
    /// # Errors
    /// As [`Symmetric::of`].
    pub fn at(call: &Call<'_>, a: Operand<'_>, precision_bits: u32) -> PyResult<Symmetric> {
        let uplo = call.choice("uplo", SYMMETRIC)?;
        let accuracy = call.choice("accuracy", ACCURACIES)?;
        let shape = Shape { container: a.container, kind: a.kind };
        Ok(Symmetric { view: a.view(call.py(), Bits::InFull(precision_bits))?, uplo, precision_bits, accuracy, shape })
    }

    /// The operand.
    pub fn operand(&self) -> sunzi::Symmetric<'_> {
        symmetric(&self.view, self.uplo)
    }

    /// Choices of its factorisation.
    pub fn options(&self) -> CholeskyOptions {
        CholeskyOptions::new().accuracy(self.accuracy).rounding(self.rounding(None))
    }

    /// The rounding of the given numbers, which bounds their distance from the matrix and right-hand sides.
    pub fn rounding(&self, right: Option<&View>) -> InputRounding {
        InputRounding::new().matrix_bits(self.view.rounded_bits()).right_bits(right.and_then(View::rounded_bits))
    }

    /// The factor.
    ///
    /// # Errors
    /// As [`sunzi::cholesky()`].
    pub fn factor(
        &self,
        ctx: &sunzi::Context,
    ) -> sunzi::Result<Outcome<sunzi::Cholesky, sunzi::report::CholeskyReport>> {
        sunzi::cholesky_with(ctx, self.operand(), self.precision_bits, &self.options())
    }
}
