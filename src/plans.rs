//! Plans of calls: how they would run and the memory they need, before any computation or allocation.
//!
//! A plan depends on the shapes, the precision, the options and the context: its threads, its devices and its memory
//! limit. It counts the bytes of everything that a call holds except its operands, and names the kernel and the
//! blocking. If the limit is too small, [`Error::MemoryLimit`](crate::Error::MemoryLimit) names the smallest limit that
//! suffices. Plans for matrices in files are in [`crate::out_of_core`], plans over ranks in [`crate::distributed`].
//!
//! ```
//! use sunzi::{CholeskyOptions, Context, Error, plans};
//! let plan = plans::plan_cholesky(&Context::new()?, 300, 256, &CholeskyOptions::new())?;
//! assert!(plan.planned_bytes > plan.factor_bytes);
//! let small = Context::builder().memory_bytes(plan.factor_bytes / 2).build()?;
//! let refusal = plans::plan_cholesky(&small, 300, 256, &CholeskyOptions::new());
//! assert!(matches!(refusal, Err(Error::MemoryLimit { .. })));
//! # Ok::<(), Error>(())
//! ```

pub use crate::ops::{CholeskyPlan, Plan, ProductPlanOptions, SolvePlan, UpdatePlan};
pub use crate::ops::{plan_cholesky, plan_inverse, plan_solve, plan_solve_refined, plan_trsm};
pub use crate::ops::{plan_gemm, plan_gemm_with, plan_syrk, plan_syrk_with, plan_weighted_gram};
pub use crate::ops::{plan_lu, plan_lu_solve};
