//! Properties of a matrix or a result: proven digits, whether a matrix is singular, its determinant.
//!
//! A [`Certificate`] or an [`LdltCertificate`], which [`Cholesky::certify`](crate::Cholesky::certify) and
//! [`Ldlt::certify`](crate::Ldlt::certify) make, proves how many digits of an answer are correct; methods of the
//! factors themselves, such as [`Cholesky::solution_digits`](crate::Cholesky::solution_digits), estimate it at less
//! cost. [`InputRounding`] describes how far the operands may differ from the numbers that they represent.
//! [`singularity()`] decides in exact arithmetic whether a matrix is singular.
//!
//! ```
//! use sunzi::{Context, Matrix};
//! let ctx = Context::new()?;
//! let a = Matrix::from_f64s(2, 2, 256, &[2.0, 1.0, 1.0, 2.0])?;
//! let b = Matrix::from_f64s(2, 1, 256, &[1.0, 0.0])?;
//! let factor = sunzi::cholesky(&ctx, &a, 256)?;
//! let x = factor.solve(&ctx, &b, 256)?;
//! assert!(factor.solution_digits(&ctx, &a, &b, &x)? > 70.0); // estimated
//! let certificate = factor.certify(&ctx, &a)?.expect("the condition is small");
//! assert!(certificate.solution_digits(&ctx, &b, &x)? > 70.0); // proven
//! # Ok::<(), sunzi::Error>(())
//! ```

pub use crate::ops::{Certificate, InputRounding, LdltCertificate, log_det_of};
pub use crate::ops::{Singularity, general_singularity, singularity, singularity_as_written};
