//! What a problem of a batch is made from.

use crate::matrix::{Matrix, MatrixView, SymmetricMatrix};

/// A matrix or a view of one, as an operand of a problem in a batch.
///
/// Every type that converts to a [`MatrixView`] has it. As a trait of this package it tells the compiler that a pair of
/// operands is no operand itself.
pub trait Operand<'a>: Into<MatrixView<'a>> {}

impl<'a> Operand<'a> for MatrixView<'a> {}

impl<'a> Operand<'a> for &'a Matrix {}

impl<'a> Operand<'a> for &'a SymmetricMatrix {}
