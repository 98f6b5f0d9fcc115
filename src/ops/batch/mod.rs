//! Many problems in one call: the verbs on small matrices, the threads share the problems.
//!
//! Each problem is the single call, on one thread, in the workspace of its worker, so its bits are those of the single
//! call; memory in addition to the results is allocated once for each worker. `verb` defines a problem, `run` is the
//! loop, `memory` its memory; the other files are pages of the verbs.

mod cholesky;
mod gemm;
mod memory;
mod operand;
mod report;
mod run;
mod syrk;
mod trsm;
mod verb;

pub use cholesky::{cholesky_batch, cholesky_batch_into, cholesky_batch_with};
pub use gemm::{GemmProblem, gemm_batch, gemm_batch_into, gemm_batch_with};
pub use operand::Operand;
pub use report::BatchReport;
pub use syrk::{SyrkProblem, syrk_batch, syrk_batch_into, syrk_batch_with};
pub use trsm::{TrsmProblem, trsm_batch, trsm_batch_into, trsm_batch_with};
