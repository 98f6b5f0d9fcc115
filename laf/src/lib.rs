//! A linear-algebra front end for what does not fit in memory: sparse and tall dense matrices of doubles, cut into
//! chunks.
//!
//! - [`sparse`]: a block of a sparse matrix as one object of bytes, and its products;
//! - [`dense`]: operations on chunks of tall matrices, which lie row by row;
//! - [`small`]: matrices of a few dozen rows: symmetric eigenproblems, orthonormal bases;
//! - [`mod@sum`]: the one order in which partial results are added up;
//! - [`chunks`]: how rows are cut; [`random`]: numbers that depend on their place alone;
//! - [`gallery`]: a large test matrix, block by block; [`market`]: Matrix Market files as streams.
//!
//! Promise: a result depends on the operands and on how rows are cut, not on threads, nodes, memory limits or the order
//! in which tasks end. Knows: the library. Does not know: the program.
#![forbid(unsafe_code)]

pub mod chunks;
pub mod dense;
pub mod gallery;
pub mod market;
pub mod random;
pub mod small;
pub mod sparse;
pub mod sum;
