//! Matrices joined below and next to each other.

use crate::arithmetic::rounded;
use crate::call::{checked_bits, number_kind};
use crate::files::from_bytes;
use crate::index::Line;
use crate::input::{Bits, Operand, ReadPart, stack, working_bits};
use crate::matrix_object::Matrix;
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The native part of `sunzi.vstack`, and of `sunzi.hstack` where the flag is set.
#[pyfunction]
#[pyo3(signature = (parts, beside, precision))]
pub fn joined(parts: &Bound<'_, PyAny>, beside: bool, precision: Option<i64>) -> PyResult<Matrix> {
    let py = parts.py();
    let asked = checked_bits(py, "precision", precision)?;
    let objects = parts.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let operands =
        objects.iter().enumerate().map(|(at, part)| Operand::of(part, &format!("part {at}"), ReadPart::Whole));
    let operands = operands.collect::<PyResult<Vec<_>>>()?;
    let Some(kind) = operands.iter().map(|operand| operand.kind).min() else {
        return Err(PyValueError::new_err("the list of matrices to join is empty"));
    };
    let natural: Vec<Option<u32>> = operands.iter().map(|operand| operand.natural_bits).collect();
    let bits = working_bits(asked, &natural)?;
    let mut views = Vec::with_capacity(operands.len());
    for operand in operands {
        // A flat list is a column; below others it is a row, and so is the transpose of a column next to others.
        let turned = beside || operand.container.is_flat();
        let view = operand.view(py, Bits::Round(bits))?;
        views.push(if turned { view.transpose() } else { view });
    }
    let cols = views[0].cols();
    if let Some((at, other)) = views.iter().map(View::cols).enumerate().find(|(_, other)| *other != cols) {
        let what = if beside { "rows" } else { "columns" };
        return Err(PyValueError::new_err(format!("part {at} has {other} {what}, but part 0 has {cols}")));
    }
    let bits = asked.unwrap_or_else(|| View::largest_precision(&views).max(bits));
    let whole = stack(py, &views, bits)?;
    let whole = if beside { whole.transpose() } else { whole };
    Ok(Matrix::new(rounded(py, &whole, bits)?, kind))
}

/// A matrix from the bytes of `Matrix.to_bytes`, with the fewest bits to which its entries were rounded; used by
/// pickles.
#[pyfunction]
#[pyo3(signature = (data, numbers, rounded_bits))]
pub fn restored(py: Python<'_>, data: &[u8], numbers: &str, rounded_bits: Option<u32>) -> PyResult<Matrix> {
    Ok(Matrix::new(from_bytes(py, data)?.after_rounding(rounded_bits), number_kind(numbers)?))
}

/// A matrix as a row or a column whose single index counts entries; used by pickles.
#[pyfunction]
pub fn line(matrix: &Matrix, row: bool) -> Matrix {
    Matrix::new(matrix.view(), matrix.number_kind()).along(if row { Line::Row } else { Line::Column })
}
