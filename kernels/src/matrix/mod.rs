//! Dense big-float matrices: one flat block of heads and limbs, and strided views of it.
//!
//! Depends on: `math::float`, rug for exchange; threads only if a caller on a pool requests them. Independent of:
//! residues, files.
#![forbid(unsafe_code)]

mod arithmetic;
mod convert;
mod destination;
pub mod mirror;
mod shape;
mod sparse;
mod storage;
mod symmetric;
mod triangles;
mod view;
mod view_mut;

pub use destination::{Destination, SymmetricDestination};
pub use shape::{Diag, EntryIndex, Op, Side, Uplo};
pub use sparse::{SparseMatrix, SparseView};
pub use storage::check_exponent;
pub use storage::{MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS, Matrix};
pub use symmetric::{Symmetric, SymmetricMatrix};
pub use triangles::{TriangleCheck, TriangleConflict, triangle_conflict};
pub use view::MatrixView;
pub use view_mut::MatrixViewMut;
