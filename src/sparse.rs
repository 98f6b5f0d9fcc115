//! Matrices with few entries, and their products with dense ones.

#[doc(inline)]
pub use crate::matrix::{SparseMatrix, SparseView};
pub use crate::ops::{sddmm, sddmm_into, spmm, spmm_into};
