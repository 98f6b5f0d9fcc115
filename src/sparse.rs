//! Matrices with few entries, and their products with dense ones.
//!
//! A [`SparseMatrix`] stores its entries in compressed rows, exactly as they are given; a [`SparseView`] is a range of
//! its rows. [`spmm`] multiplies it with a dense matrix, [`sddmm`] computes selected entries of a product of dense
//! matrices. Each entry of a result is one sum that is rounded once, so its error is at most `2^(1 - precision_bits)`
//! times the sum of the absolute values of its terms.
//!
//! ```
//! use sunzi::sparse::{SparseMatrix, spmm};
//! use sunzi::{Context, Matrix, rug::Float};
//! let ctx = Context::new()?;
//! let (one, minus) = (Float::with_val(2, 1), Float::with_val(2, -1));
//! let places = [((0, 0), &minus), ((0, 1), &one), ((1, 1), &minus), ((1, 2), &one)];
//! let differences = SparseMatrix::from_entries(2, 3, places)?;
//! let squares = Matrix::from_f64s(3, 1, 256, &[1.0, 4.0, 9.0])?;
//! assert_eq!(spmm(&ctx, &differences, &squares, 256)?.view().to_f64s(), [3.0, 5.0]);
//! # Ok::<(), sunzi::Error>(())
//! ```

#[doc(inline)]
pub use crate::matrix::{SparseMatrix, SparseView};
pub use crate::ops::{sddmm, sddmm_into, spmm, spmm_into};
