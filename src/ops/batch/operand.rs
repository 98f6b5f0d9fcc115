//! The operands of a problem in a batch.

use crate::matrix::{Matrix, MatrixView, SymmetricMatrix};

/// A matrix or a view of one, as an operand of a problem in a batch.
///
/// Every type that converts to a [`MatrixView`] has it. As a trait of this package it lets the compiler rule out that a
/// pair of operands is an operand itself.
pub trait Operand<'a>: Into<MatrixView<'a>> {}

impl<'a> Operand<'a> for MatrixView<'a> {}

impl<'a> Operand<'a> for &'a Matrix {}

impl<'a> Operand<'a> for &'a SymmetricMatrix {}
