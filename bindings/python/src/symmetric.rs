//! Symmetric operands, read for a factorisation.

use crate::call::Call;
use crate::choices::{ACCURACIES, Named, SYMMETRIC, part_of, symmetric};
use crate::input::{Bits, Operand};
use crate::output::Shape;
use crate::view::View;
use pyo3::prelude::*;
use rug::Rational;
use std::collections::HashMap;
use sunzi::estimate::{InputRounding, general_singularity, singularity_as_written};
use sunzi::io::WrittenEntry;
use sunzi::{Accuracy, CholeskyOptions, Error, MoreBits, Outcome};

/// A symmetric matrix, the selected triangle if one is selected, and the precision of results computed from it.
pub struct Symmetric {
    pub view: View,
    pub uplo: Option<Named>,
    pub precision_bits: u32,
    pub accuracy: Accuracy,
    pub shape: Shape,
    /// The entries that were rounded, as they were given; `None` where these are not known.
    written: Option<Vec<WrittenEntry>>,
    /// Whether they are those of a symmetric matrix, or of one of its triangles.
    is_written_symmetric: bool,
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
        let (view, written) = a.view_and_written(call.py(), Bits::InFull(precision_bits))?;
        let is_written_symmetric = uplo.is_some() || written.as_deref().is_none_or(are_mirrored);
        Ok(Symmetric { view, uplo, precision_bits, accuracy, shape, written, is_written_symmetric })
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

    /// The factor; an error states that the matrix is singular if that is proven.
    ///
    /// # Errors
    /// As [`sunzi::cholesky()`].
    pub fn factor_or_reason(
        &self,
        ctx: &sunzi::Context,
    ) -> sunzi::Result<Outcome<sunzi::Cholesky, sunzi::report::CholeskyReport>> {
        self.factor(ctx).map_err(|error| self.explained(ctx, error))
    }

    /// The error of a factorisation, with the reason that the matrix is singular where that is proven.
    pub fn explained(&self, ctx: &sunzi::Context, error: Error) -> Error {
        match error {
            Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits } if more_bits.might_help() => {
                // Without a proof, or where the search for one fails, the first error stands.
                let (more_bits, enough_bits) = match self.found_singular(ctx) {
                    Ok(Some(found)) => (found, None),
                    _ => (more_bits, enough_bits),
                };
                Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits }
            }
            other => other,
        }
    }

    /// Whether the matrix as it was given is proven to be singular.
    ///
    /// # Errors
    /// As [`singularity`].
    pub fn is_singular(&self, ctx: &sunzi::Context) -> sunzi::Result<bool> {
        Ok(self.found_singular(ctx)? == Some(MoreBits::Singular))
    }

    /// What is proven: that the matrix as it was given is singular, or else, where the numbers that were given are not
    /// known, that it is with the numbers that are. Nothing where the memory limit has no room to find out.
    fn found_singular(&self, ctx: &sunzi::Context) -> sunzi::Result<Option<MoreBits>> {
        // As the program counts it: scaled integers, numbers as they were given, and words modulo a prime.
        let order = self.view.rows() as u64;
        let bytes = order.saturating_mul(order).saturating_mul(160 + u64::from(self.view.precision_bits()) / 2);
        if ctx.memory_bytes().is_some_and(|limit| bytes > limit) {
            return Ok(None);
        }
        let (written, proof) = match (&self.written, self.view.rounded_bits()) {
            (Some(written), _) if self.is_written_symmetric || self.is_general() => (&written[..], MoreBits::Singular),
            (None, None) => (&[][..], MoreBits::Singular),
            (_, bits) => (&[][..], MoreBits::SingularAsRead { bits: bits.unwrap_or(self.view.precision_bits()) }),
        };
        let found = match self.is_general() {
            true => general_singularity(self.view.entries(), written)?,
            false => singularity_as_written(self.operand(), written)?,
        };
        Ok(found.is_proven_singular().then_some(proof))
    }

    /// Whether the matrix is not symmetric.
    fn is_general(&self) -> bool {
        let triangle = self.operand().lower_view("singularity");
        matches!(triangle, Err(Error::NotSymmetric { .. }))
    }
}

/// Whether each entry is given on both sides of the diagonal by the same number: what was rounded may be equal although
/// it was not before.
fn are_mirrored(written: &[WrittenEntry]) -> bool {
    let by_place: HashMap<(usize, usize), &Rational> =
        written.iter().map(|entry| ((entry.row, entry.col), &entry.value)).collect();
    written.iter().all(|entry| by_place.get(&(entry.col, entry.row)) == Some(&&entry.value))
}
