//! Operations on matrices larger than memory: from binary files to a binary file, with what is finished in a directory.

pub use super::factor::disk::{OutOfCoreOptions, OutOfCorePlan, OutOfCoreReport, cholesky, plan_cholesky};
pub use super::solve::disk::{OutOfCoreSolveOptions, OutOfCoreSolveReport, solve, trsm};
