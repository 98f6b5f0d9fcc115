//! The values of options of several functions: triangles, sides, accuracies.

use crate::input::ReadPart;
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use sunzi::{Accuracy, Op, Side, Uplo};

/// The triangles of a matrix.
pub const TRIANGLES: &[(&str, Uplo)] = &[("lower", Uplo::Lower), ("upper", Uplo::Upper)];

/// The sides of a triangular or symmetric matrix in a product.
pub const SIDES: &[(&str, Side)] = &[("left", Side::Left), ("right", Side::Right)];

/// A triangle of a symmetric matrix that the caller names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    pub uplo: Uplo,
    /// Whether the other triangle is not read.
    only: bool,
}

/// The triangle of a symmetric matrix that is read: both, which must agree, unless one is selected.
pub const SYMMETRIC: &[(&str, Option<Named>)] = &[
    ("both", None),
    ("lower", Some(Named { uplo: Uplo::Lower, only: false })),
    ("upper", Some(Named { uplo: Uplo::Upper, only: false })),
    ("lower_only", Some(Named { uplo: Uplo::Lower, only: true })),
    ("upper_only", Some(Named { uplo: Uplo::Upper, only: true })),
];

/// The accuracy that is promised for each entry.
pub const ACCURACIES: &[(&str, Accuracy)] = &[("entrywise", Accuracy::Entrywise), ("norm", Accuracy::Norm)];

/// The part of a symmetric operand that is read.
pub fn part_of(named: Option<Named>) -> ReadPart {
    match named {
        None => ReadPart::Whole,
        Some(Named { uplo, only: false }) => ReadPart::Symmetric(uplo),
        Some(Named { uplo, only: true }) => ReadPart::Triangle(uplo),
    }
}

/// A symmetric operand of the library.
pub fn symmetric(view: &View, named: Option<Named>) -> sunzi::Symmetric<'_> {
    match named {
        Some(Named { uplo, .. }) => sunzi::Symmetric::triangle(view.entries(), uplo),
        None => view.entries().into(),
    }
}

/// Whether an operand is transposed.
pub fn op(transpose: bool) -> Op {
    if transpose { Op::Transpose } else { Op::NoTranspose }
}

/// A report as JSON.
///
/// # Errors
/// `ValueError`.
pub fn json(numbers: &impl Serialize) -> PyResult<Option<String>> {
    serde_json::to_string(numbers).map(Some).map_err(|error| PyValueError::new_err(error.to_string()))
}
