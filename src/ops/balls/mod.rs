//! Balls: enclosures of products, solutions, inverses, Cholesky factors and determinants.
//!
//! A [`BallMatrix`] consists of a matrix of midpoints and a matrix of radii. Each function here returns balls that
//! contain the exact result for every point of the operands: roundings, truncations and the radii of the operands are
//! all included, rounded upward. The precision is that of midpoints; radii have 64 bits. The rounded midpoint of a
//! result other than a product adds two units in its last place to the radius, so that the ball also contains the exact
//! number rounded to the same precision in any direction.
//!
//! ```
//! use sunzi::{Context, Matrix, ball::{self, BallMatrix}, rug::Rational};
//! let ctx = Context::builder().threads(1).build()?;
//! let a = BallMatrix::exact(Matrix::from_f64s(2, 2, 128, &[3.0, 1.0, 1.0, 4.0])?)?;
//! let inverse = ball::inverse(&ctx, &a, 128)?;
//! assert!(inverse.contains(0, 0, &Rational::from((4, 11))));
//! assert!(inverse.radius().float(0, 0) < 1e-38);
//! # Ok::<(), sunzi::Error>(())
//! ```
//! Proofs: docs/CHECKS.md, "Balls".

mod bounds;
mod certificate;
mod cholesky;
mod determinant;
mod matrix;
mod midpoint;
mod product;
mod regular;
mod solve;
mod triangular;

pub use certificate::LuCertificate;
pub use cholesky::cholesky;
pub use determinant::{det, log_det};
pub use matrix::{Ball, BallMatrix};
pub use product::{gemm, syrk};
pub use solve::{inverse, solve};
pub use triangular::trsm;
