//! Many small problems in one call: the threads share them out, and each has a result, or an error, of its own.

pub use crate::ops::{GemmProblem, Operand, SyrkProblem, TrsmProblem};
pub use crate::ops::{cholesky_batch, cholesky_batch_into, cholesky_batch_with};
pub use crate::ops::{gemm_batch, gemm_batch_into, gemm_batch_with};
pub use crate::ops::{syrk_batch, syrk_batch_into, syrk_batch_with};
pub use crate::ops::{trsm_batch, trsm_batch_into, trsm_batch_with};
