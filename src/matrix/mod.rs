//! Dense big-float matrices: one flat block of heads and limbs, and strided views of it.
//!
//! Knows: `math::float`, rug for exchange. Does not know: residues, threads, files.
#![forbid(unsafe_code)]

mod arithmetic;
mod convert;
mod shape;
mod storage;
mod view;

pub use shape::{Diag, Op, Side, Uplo};
pub(crate) use storage::check_exponent;
pub use storage::{MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS, Matrix};
pub use view::MatrixView;
