//! How a call would run and what it takes, before anything is computed or allocated.

pub use crate::ops::{CholeskyPlan, Plan, ProductPlanOptions, SolvePlan, UpdatePlan};
pub use crate::ops::{plan_cholesky, plan_inverse, plan_solve, plan_solve_refined, plan_trsm};
pub use crate::ops::{plan_gemm, plan_gemm_with, plan_syrk, plan_syrk_with};
