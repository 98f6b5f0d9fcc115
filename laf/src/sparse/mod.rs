//! Blocks of sparse matrices, stored as one object of bytes each, and their products with blocks of vectors.
//!
//! Depends on: entries, bytes. Independent of: the place of a block in its matrix, the place of its bytes.

mod block;
mod build;
mod multiply;
#[cfg(test)]
mod tests;

pub use block::{BlockShape, SparseBlock};
pub use build::{Entry, pack};
pub use multiply::{diagonal, multiply, multiply_diagonal, multiply_symmetric};
