//! A linear-algebra front end for matrices that do not fit in memory: sparse and tall dense matrices of doubles, cut
//! into chunks.
//!
//! ```
//! use sunzi_laf::{LobpcgOptions, Session, SessionOptions, Symmetry, gallery::GrowingDiagonal, lobpcg};
//!
//! let session = Session::new(&SessionOptions { chunk_rows: 100, threads: 2, ..SessionOptions::default() })?;
//! let matrix = GrowingDiagonal::new(300, 10, 1)?;
//! let mut a = session.sparse(300, 300, Symmetry::Lower)?;
//! a.fill(|chunks, row, col| matrix.block(chunks, row, col))?;
//! let found = lobpcg(&a, &LobpcgOptions { count: 4, ..LobpcgOptions::default() }, |_| true)?;
//! assert!(found.converged && (found.values[0] - 1.0).abs() < 0.01);
//! # Ok::<(), sunzi::Error>(())
//! ```
//!
//! - [`Session`], [`TallMatrix`], [`SparseMatrix`], [`Small`]: matrices that are computed when needed, and operations
//!   on them; [`lobpcg()`] uses only these;
//! - [`engine`]: emulated nodes, each with threads, a memory limit and a directory; [`partition`]: the assignment of
//!   parts to nodes;
//! - [`sparse`]: a block of a sparse matrix as one object of bytes, and its products;
//! - [`dense`]: operations on chunks of tall matrices, which are stored row by row;
//! - [`small`]: matrices of a few dozen rows: symmetric eigenproblems, orthonormal bases;
//! - [`mod@sum`]: the fixed order in which partial results are summed;
//! - [`chunks`]: the division of rows into chunks; [`random`]: random numbers that depend only on their place;
//! - [`gallery`]: a large test matrix, block by block; [`market`]: Matrix Market files as streams.
//!
//! Promise: a result depends on the operands and on the chunks, not on threads, nodes, memory limits or the order in
//! which tasks end. Depends on: the library. This package is independent of the program.
#![forbid(unsafe_code)]

pub mod chunks;
pub mod dense;
pub mod engine;
mod front;
pub mod gallery;
mod lobpcg;
pub mod market;
pub mod partition;
pub mod random;
pub mod small;
pub mod sparse;
pub mod sum;

pub use front::{Session, SessionOptions, Small, SparseMatrix, Symmetry, TallMatrix, inner, times_small};
pub use lobpcg::{EigenPairs, LobpcgOptions, LobpcgStep, Preconditioner, lobpcg};
