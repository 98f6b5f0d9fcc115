//! Verbs on vectors, which are matrices or views of one column or one row, and products entry by entry.
//!
//! Each entry of a result is one sum that is rounded once, so its error is at most `2^(1 - precision_bits)` times the
//! sum of the absolute values of its terms, for any exponents; a substitution rounds each unknown once. A column, a row
//! or a part of either is an operand without a copy ([`MatrixView`](crate::MatrixView)), and a result can be written
//! into one. For products with many vectors at once see the [crate root](crate).
//!
//! ```
//! use sunzi::{Context, Matrix, blas};
//! let ctx = Context::new()?;
//! let a = Matrix::from_f64s(2, 2, 256, &[2.0, 1.0, 1.0, 2.0])?;
//! let x = Matrix::from_f64s(2, 1, 256, &[1.0, -1.0])?;
//! let y = blas::gemv(&ctx, &a, &x, 256)?;
//! assert_eq!(blas::dot(&ctx, &x, &y, 256)?, 2); // x^T A x
//! let second = a.view().block(1..2, 0..2)?; // the second row of A
//! assert_eq!(blas::dot(&ctx, second, &x, 256)?, -1);
//! # Ok::<(), sunzi::Error>(())
//! ```

pub use crate::ops::{GemvOptions, GerOptions, HadamardOptions, SymvOptions, TriangleVectorOptions};
pub use crate::ops::{axpy, axpy_into, dot, gemv, gemv_into, gemv_with, ger, ger_into, ger_with, nrm2};
pub use crate::ops::{hadamard, hadamard_into, symv, symv_into, symv_with};
pub use crate::ops::{trmv, trmv_into, trmv_with, trsv, trsv_into, trsv_with};
