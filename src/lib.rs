//! Dense linear algebra on big floats (about 100 to 4000 bits) through word-size residues.

pub mod advanced;
pub mod comm;
mod context;
mod device;
mod drive;
mod error;
pub mod gallery;
pub mod io;
mod kernels;
mod math;
mod matrix;
mod ops;
mod options;
mod plan;
mod runtime;
mod store;
mod tile;

pub use context::{Context, ContextBuilder, Progress, ProgressCallback};
pub use device::{Device, cuda_devices, open_cuda};
pub use error::{Error, Result};
pub use math::float::{FloatRef, Head};
pub use matrix::{Destination, MatrixViewMut, Symmetric, SymmetricDestination, SymmetricMatrix};
pub use matrix::{Diag, MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Op, Side, Uplo};
pub use ops::device::{DeviceReport, DeviceSeconds};
pub use ops::{Cholesky, CholeskyOptions, CholeskyReport, Span, TaskKind, cholesky, cholesky_into, cholesky_with};
pub use ops::{CholeskyPlan, Plan, SolvePlan, UpdatePlan};
pub use ops::{GemmOptions, SyrkOptions, gemm, gemm_into, gemm_with, syrk, syrk_into, syrk_with};
pub use ops::{Inertia, Ldlt, LdltOptions, RefineOptions, RefineReport, SolveReport, TrsmOptions};
pub use ops::{Outcome, Path, Phases, Report};
pub use ops::{distributed, double, log_det_of, verify};
pub use ops::{inverse, inverse_into, inverse_with, ldlt, ldlt_with, trsm, trsm_into, trsm_with};
pub use ops::{plan_cholesky, plan_gemm, plan_solve, plan_syrk, plan_trsm};
pub use ops::{solve, solve_into, solve_refined, solve_refined_into, solve_refined_with, solve_with};
pub use rug;

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
