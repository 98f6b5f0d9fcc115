//! Intervals that contain an extreme eigenvalue of a symmetric matrix.
//!
//! The smallest or the largest eigenvalue of `A` ([`extreme_eigenvalue`]) or of `L^-1 X L^-T` ([`pencil_eigenvalue`])
//! is approximated by Lanczos' method in doubles. Both ends of the interval are then proven: for the smallest
//! eigenvalue the upper end by a Rayleigh quotient, the lower end by a Cholesky factorisation of the shifted matrix.
//! The width of the interval is at most `2^-precision_bits` relative to the eigenvalue, except for eigenvalues near 0.
//!
//! ```
//! use sunzi::{Context, Matrix, eigenvalue};
//! let ctx = Context::new()?;
//! let a = Matrix::from_f64s(2, 2, 256, &[1.0, 2.0, 2.0, 1.0])?; // eigenvalues -1 and 3
//! let smallest = eigenvalue::extreme_eigenvalue(&ctx, &a, 64)?;
//! assert!(smallest.lower <= -1 && smallest.upper >= -1);
//! assert!(smallest.upper < 0); // so A is proven not to be positive semidefinite
//! # Ok::<(), sunzi::Error>(())
//! ```

pub use crate::ops::{EigenvalueInterval, EigenvalueOptions, EigenvaluePlan, Extreme, plan_extreme_eigenvalue};
pub use crate::ops::{extreme_eigenvalue, extreme_eigenvalue_with, pencil_eigenvalue, pencil_eigenvalue_with};
