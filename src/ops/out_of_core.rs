//! Operations on matrices larger than memory, from binary files to a binary file, with a storage directory for what is
//! finished. A run that was ended goes on from what lies there; the result is that of a call in memory, byte for byte.
//!
//! docs/OUT_OF_CORE.md says how they work and what they cost.

pub use crate::ops::disk_use::DiskUse;
pub use crate::ops::factor::disk::{OutOfCoreOptions, OutOfCorePlan, OutOfCoreReport};
pub use crate::ops::factor::disk::{cholesky, cholesky_over_ranks, plan_cholesky};
pub use crate::ops::product::disk::{
    OperandFile, OutOfCoreProductOptions, OutOfCoreProductPlan, OutOfCoreProductReport, ProductPaths, gemm, plan_gemm,
    plan_syrk, syrk,
};
