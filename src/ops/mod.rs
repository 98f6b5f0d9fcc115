//! The public verbs, and the verification of their results.
//!
//! Joins `plan`, `kernels` and the context's threads. Independent of: the command line.

pub mod balls;
mod batch;
pub mod calls;
pub(crate) mod cholesky;
mod cluster;
mod columns;
mod determinant;
mod disk;
pub mod distributed;
mod distribution;
mod eigenvalue;
mod estimate;
mod exact_sum;
pub(crate) mod factor;
mod fingerprint;
mod fixed_sum;
mod gemm;
mod indefinite;
mod input_rounding;
mod inverse;
pub(crate) mod ldlt;
pub(crate) mod lu;
pub mod out_of_core;
mod product;
mod seed;
mod singularity;
pub(crate) mod solve;
mod symm;
mod syr2k;
mod syrk;
mod trmm;
pub(crate) mod trsm;
mod vector;
pub mod verify;
mod weighted_gram;

pub use batch::{
    BatchReport, GemmProblem, Operand, SyrkProblem, TrsmProblem, cholesky_batch, cholesky_batch_into,
    cholesky_batch_with, gemm_batch, gemm_batch_into, gemm_batch_with, syrk_batch, syrk_batch_into, syrk_batch_with,
    trsm_batch, trsm_batch_into, trsm_batch_with,
};
pub use batch::{WeightedGramProblem, weighted_gram_batch, weighted_gram_batch_into, weighted_gram_batch_with};
pub use cholesky::{
    Cholesky, CholeskyOptions, CholeskyReport, Span, TaskKind, TaskTimes, cholesky, cholesky_into, cholesky_with,
};
pub use cholesky::{CholeskyPlan, UpdatePlan, log_det_of, plan_cholesky};
pub use determinant::product_of_pivots;
pub use eigenvalue::plan_extreme_eigenvalue;
pub use eigenvalue::{EigenvalueInterval, EigenvalueOptions, EigenvaluePlan, EigenvalueReport, Extreme};
pub use eigenvalue::{extreme_eigenvalue, extreme_eigenvalue_with, pencil_eigenvalue, pencil_eigenvalue_with};
pub use estimate::{Certificate, PrecisionSearch, PrecisionTry, optional_estimate};
pub use factor::double;
pub use gemm::{GemmOptions, gemm, gemm_into, gemm_with};
pub use indefinite::LdltCertificate;
pub use input_rounding::InputRounding;
pub use inverse::{inverse, inverse_into, inverse_with, plan_inverse};
pub use ldlt::{Inertia, Ldlt, LdltOptions, ldlt, ldlt_with};
pub use lu::{Lu, LuOptions, LuReport, lu, lu_into, lu_with, plan_lu, plan_lu_solve};
pub use product::device;
pub use product::plan::{Plan, ProductPlanOptions, plan_gemm, plan_gemm_with, plan_syrk, plan_syrk_with};
pub use product::problem::{Accuracy, FaultHook, Hooks};
pub use product::report::{Outcome, Phases, Report};
pub use singularity::{Singularity, general_singularity, singularity, singularity_as_written};
pub use solve::{Path, RefineOptions, RefineReport, SolvePlan, SolveReport};
pub use solve::{plan_solve, plan_solve_refined, plan_trsm};
pub use solve::{solve, solve_into, solve_refined, solve_refined_into, solve_refined_with, solve_with};
pub use symm::{SymmOptions, symm, symm_into, symm_with};
pub use syr2k::{Syr2kOptions, syr2k, syr2k_into, syr2k_with};
pub use syrk::{SyrkOptions, syrk, syrk_into, syrk_with};
pub use trmm::{TrmmOptions, trmm, trmm_into, trmm_with};
pub use trsm::{TrsmOptions, trsm, trsm_into, trsm_with};
pub use vector::{GemvOptions, GerOptions, SymvOptions, TriangleVectorOptions, VectorReport};
pub use vector::{HadamardOptions, hadamard, hadamard_into};
pub use vector::{axpy, axpy_into, dot, gemv, gemv_into, gemv_with, ger, ger_into, ger_with, nrm2};
pub use vector::{sddmm, sddmm_into, spmm, spmm_into};
pub use vector::{symv, symv_into, symv_with, trmv, trmv_into, trmv_with, trsv, trsv_into, trsv_with};
pub use weighted_gram::{plan_weighted_gram, weighted_gram, weighted_gram_into, weighted_gram_with};
