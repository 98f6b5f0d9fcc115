//! The operands of a problem in a batch.

use crate::matrix::{Matrix, MatrixView, SymmetricMatrix};

/// A matrix or a view of one, as an operand of a problem in a batch.
///
/// Every type that converts to a [`MatrixView`] implements it. It is a trait of this package, so that the compiler can
/// exclude that a pair of operands is itself an operand.
pub trait Operand<'a>: Into<MatrixView<'a>> {}

impl<'a> Operand<'a> for MatrixView<'a> {}

impl<'a> Operand<'a> for &'a Matrix {}

impl<'a> Operand<'a> for &'a SymmetricMatrix {}
