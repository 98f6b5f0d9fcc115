//! Many small problems in one call: the threads share the problems, and each problem has its own result or its own
//! error.
//!
//! A single small problem cannot keep several threads busy. In a batch each problem is computed by one thread, and
//! several problems of one shape may be computed together in the lanes of one core. Shapes and precisions of the
//! operands may differ from problem to problem; the precision of the results and the options are common to all. Each
//! result has the bits of a call for only its problem. The functions `verb` return the error of the first problem that
//! has no result; the other forms return the outcome of each problem.
//!
//! ```
//! use sunzi::{Context, Matrix, batch};
//! let ctx = Context::new()?;
//! let blocks = (1..=3).map(|k| Matrix::from_f64s(1, 1, 256, &[f64::from(k * k)]));
//! let blocks = blocks.collect::<sunzi::Result<Vec<_>>>()?;
//! let factors = batch::cholesky_batch(&ctx, &blocks, 256)?;
//! assert_eq!(factors[2].factor().view().to_f64s(), [3.0]);
//! # Ok::<(), sunzi::Error>(())
//! ```

pub use crate::ops::{GemmProblem, Operand, SyrkProblem, TrsmProblem, WeightedGramProblem};
pub use crate::ops::{cholesky_batch, cholesky_batch_into, cholesky_batch_with};
pub use crate::ops::{gemm_batch, gemm_batch_into, gemm_batch_with};
pub use crate::ops::{syrk_batch, syrk_batch_into, syrk_batch_with};
pub use crate::ops::{trsm_batch, trsm_batch_into, trsm_batch_with};
pub use crate::ops::{weighted_gram_batch, weighted_gram_batch_into, weighted_gram_batch_with};
