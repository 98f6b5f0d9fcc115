//! Blocks of sparse matrices, each one object of bytes, and their products with blocks of vectors.
//!
//! Knows: entries, bytes. Does not know: where a block lies in its matrix, where bytes are kept.

mod block;
mod build;
mod multiply;
#[cfg(test)]
mod tests;

pub use block::{BlockShape, SparseBlock};
pub use build::{Entry, pack};
pub use multiply::{diagonal, multiply, multiply_diagonal, multiply_symmetric};
