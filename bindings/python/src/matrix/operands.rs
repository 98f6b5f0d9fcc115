//! Code that the methods of `Matrix` share: matrices like it, and further operands.

use crate::arithmetic::{negated, plus_number, sum};
use crate::call::number_kind;
use crate::index::Line;
use crate::input::{Bits, Operand, ReadPart, scalar, working_bits};
use crate::kind::{Container, NumberKind};
use crate::matrix_object::Matrix;
use crate::output::{ResultForm, Shape, assemble};
use crate::view::View;
use pyo3::prelude::*;

impl Matrix {
    /// Other numbers of the same shape.
    pub(super) fn like(&self, view: View) -> Matrix {
        Matrix { line: self.line, ..Matrix::new(view, self.kind) }
    }

    pub(super) fn kind_or(&self, name: Option<&str>) -> PyResult<NumberKind> {
        name.map_or(Ok(self.kind), number_kind)
    }

    pub(super) fn assemble<'py>(
        &self,
        py: Python<'py>,
        container: Container,
        kind: NumberKind,
    ) -> PyResult<Bound<'py, PyAny>> {
        assemble(py, &self.view().entries(), ResultForm::General, Shape { container, kind })
    }

    /// The numbers of an operand; a flat list is a row where the matrix is a row.
    pub(super) fn beside(&self, operand: Operand<'_>, py: Python<'_>, bits: u32) -> PyResult<View> {
        let along = self.line == Line::Row && operand.container.is_flat();
        let view = operand.view(py, Bits::Round(bits))?;
        Ok(if along { view.transpose() } else { view })
    }

    /// `self + other`, or `self - other`, of a matrix or of a number, which goes to every entry.
    pub(super) fn sum(&self, other: &Bound<'_, PyAny>, minus: bool) -> PyResult<Matrix> {
        let (py, view) = (other.py(), self.view());
        if Operand::is_number(other)? {
            let number = scalar(Some(other), "the other operand", Bits::Round(view.precision_bits()))?;
            let number = number.expect("a number was given");
            return Ok(self.like(plus_number(py, &view, &if minus { -number } else { number })?));
        }
        let other = Operand::of(other, "the other operand", ReadPart::Whole)?;
        let bits = working_bits(None, &[Some(view.precision_bits()), other.natural_bits])?;
        let kind = self.kind.min(other.kind);
        let other = self.beside(other, py, bits)?;
        let other = if minus { negated(py, &other)? } else { other };
        Ok(Matrix { kind, ..self.like(sum(py, &view, &other, bits)?) })
    }
}
