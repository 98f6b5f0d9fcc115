//! Where an operation puts its result: a matrix of the caller, which may be replaced, or a view, which may not.

use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixViewMut, SymmetricMatrix};

/// The place for the result of an operation.
#[derive(Debug)]
pub enum Destination<'a> {
    /// A matrix of the caller, which is replaced if its shape or precision do not fit.
    Matrix(&'a mut Matrix),
    /// A block of a larger matrix, or the caller's memory, with exactly the shape and precision of the result.
    Block(MatrixViewMut<'a>),
}

impl<'a> From<&'a mut Matrix> for Destination<'a> {
    fn from(matrix: &'a mut Matrix) -> Self {
        Destination::Matrix(matrix)
    }
}

impl<'a> From<MatrixViewMut<'a>> for Destination<'a> {
    fn from(view: MatrixViewMut<'a>) -> Self {
        Destination::Block(view)
    }
}

impl<'a> Destination<'a> {
    /// The same destination with a shorter lifetime.
    #[doc(hidden)]
    pub fn reborrow(&mut self) -> Destination<'_> {
        match self {
            Destination::Matrix(matrix) => Destination::Matrix(matrix),
            Destination::Block(block) => Destination::Block(block.reborrow()),
        }
    }

    /// The place for a result of this shape and precision.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] and [`Error::InvalidArgument`] for a block that does not fit; the errors of
    /// [`Matrix::zeros`].
    #[doc(hidden)]
    pub fn prepare(self, (rows, cols): (usize, usize), precision_bits: u32) -> Result<MatrixViewMut<'a>> {
        match self {
            Destination::Matrix(matrix) => {
                if !matrix.fits(rows, cols, precision_bits) {
                    *matrix = Matrix::empty(); // give the old memory back before asking for the new
                    *matrix = Matrix::zeros(rows, cols, precision_bits)?;
                }
                Ok(matrix.view_mut())
            }
            Destination::Block(block) if (block.rows(), block.cols()) != (rows, cols) => {
                Err(Error::shape_mismatch("the block for the result", (rows, cols), (block.rows(), block.cols())))
            }
            Destination::Block(block) if block.precision_bits() != precision_bits => {
                let bits = block.precision_bits();
                let message = format!("the block for the result has {bits} bits, but the result has {precision_bits}");
                Err(Error::InvalidArgument(message))
            }
            Destination::Block(block) => Ok(block),
        }
    }
}

/// The place for the symmetric result of an operation.
#[derive(Debug)]
pub enum SymmetricDestination<'a> {
    /// A symmetric matrix of the caller, which is replaced if its order or precision do not fit.
    Matrix(&'a mut SymmetricMatrix),
    /// Both triangles of a square block of a larger matrix.
    Block(MatrixViewMut<'a>),
    /// Only one triangle, as in the BLAS; the contents of the other triangle are undefined afterwards.
    Triangle(Destination<'a>),
}

impl SymmetricDestination<'_> {
    /// The same destination with a shorter lifetime.
    #[doc(hidden)]
    pub fn reborrow(&mut self) -> SymmetricDestination<'_> {
        match self {
            SymmetricDestination::Matrix(matrix) => SymmetricDestination::Matrix(matrix),
            SymmetricDestination::Block(block) => SymmetricDestination::Block(block.reborrow()),
            SymmetricDestination::Triangle(result) => SymmetricDestination::Triangle(result.reborrow()),
        }
    }
}

impl<'a> From<&'a mut SymmetricMatrix> for SymmetricDestination<'a> {
    fn from(matrix: &'a mut SymmetricMatrix) -> Self {
        SymmetricDestination::Matrix(matrix)
    }
}

impl<'a> From<MatrixViewMut<'a>> for SymmetricDestination<'a> {
    fn from(view: MatrixViewMut<'a>) -> Self {
        SymmetricDestination::Block(view)
    }
}
