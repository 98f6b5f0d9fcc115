//! Blocks of symmetric matrices: dense blocks, and diagonal blocks.
//!
//! Independent of: programs, the factorisation of blocks.

use crate::numbers::{Arithmetic, column, largest, rounded};
use rug::Float;
use sunzi::{Matrix, Result};

/// Kind and order of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A symmetric matrix with this number of rows.
    Dense(usize),
    /// A diagonal with this number of entries.
    Diagonal(usize),
}

impl Shape {
    /// Rows and columns.
    pub fn order(self) -> usize {
        match self {
            Shape::Dense(order) | Shape::Diagonal(order) => order,
        }
    }

    /// Rows and columns of the stored matrix.
    pub fn stored(self) -> (usize, usize) {
        match self {
            Shape::Dense(order) => (order, order),
            Shape::Diagonal(order) => (order, 1),
        }
    }

    /// An estimate of the work on such a block in one iteration.
    pub fn cost(self) -> u64 {
        match self {
            Shape::Dense(order) => (order as u64).pow(3),
            Shape::Diagonal(order) => order as u64,
        }
    }
}

/// A block of a symmetric matrix.
#[derive(Clone, PartialEq, Debug)]
pub enum Block {
    /// All entries, both triangles.
    Dense(Matrix),
    /// The diagonal, as a column; all other entries are 0.
    Diagonal(Matrix),
}

/// A block `M`, or `M + sym(X^-1 P)` with the matrices `X^-1` and `P`.
#[derive(Clone, Copy)]
pub struct Summand<'a> {
    /// `M`.
    pub block: &'a Block,
    /// `X^-1` and `P`, of a dense block of sparse matrices.
    pub product: Option<(&'a Block, &'a Matrix)>,
}

impl Block {
    /// `value` times the identity.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn scaled_identity(shape: Shape, value: &Float, bits: u32) -> Result<Block> {
        match shape {
            Shape::Diagonal(order) => Ok(Block::Diagonal(column(order, bits, |_| value.clone())?)),
            Shape::Dense(order) => {
                let mut matrix = Matrix::zeros(order, order, bits)?;
                (0..order).try_for_each(|at| matrix.set_float(at, at, value))?;
                Ok(Block::Dense(matrix))
            }
        }
    }

    /// The block of this kind with these entries.
    pub fn of_shape(shape: Shape, stored: Matrix) -> Block {
        match shape {
            Shape::Dense(_) => Block::Dense(stored),
            Shape::Diagonal(_) => Block::Diagonal(stored),
        }
    }

    /// Kind and order.
    pub fn shape(&self) -> Shape {
        match self {
            Block::Dense(matrix) => Shape::Dense(matrix.rows()),
            Block::Diagonal(diagonal) => Shape::Diagonal(diagonal.rows()),
        }
    }

    /// The stored entries.
    pub fn stored(&self) -> &Matrix {
        match self {
            Block::Dense(matrix) | Block::Diagonal(matrix) => matrix,
        }
    }

    /// The stored entries, for changes.
    pub fn stored_mut(&mut self) -> &mut Matrix {
        match self {
            Block::Dense(matrix) | Block::Diagonal(matrix) => matrix,
        }
    }

    /// A block of the same kind with other entries.
    pub fn like(&self, stored: Matrix) -> Block {
        match self {
            Block::Dense(_) => Block::Dense(stored),
            Block::Diagonal(_) => Block::Diagonal(stored),
        }
    }

    /// The block rounded to `bits`.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn rounded(self, bits: u32) -> Result<Block> {
        Ok(match self {
            Block::Dense(matrix) => Block::Dense(rounded(matrix, bits)?),
            Block::Diagonal(diagonal) => Block::Diagonal(rounded(diagonal, bits)?),
        })
    }

    /// `self + alpha other`.
    ///
    /// # Errors
    /// The errors of [`sunzi::blas::axpy`].
    pub fn plus(&self, k: Arithmetic<'_>, alpha: &Float, other: &Block) -> Result<Block> {
        Ok(self.like(k.sum(alpha, other.stored(), self.stored())?))
    }

    /// `Tr(self other)`.
    ///
    /// # Errors
    /// The errors of [`sunzi::blas::dot`].
    pub fn inner(&self, k: Arithmetic<'_>, other: &Block) -> Result<Float> {
        k.inner(self.stored(), other.stored())
    }

    /// The largest magnitude among the entries.
    pub fn largest(&self) -> Float {
        largest(self.stored())
    }
}
