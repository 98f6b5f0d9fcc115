//! Dense linear algebra on big floats (about 100 to 4000 bits) through word-size residues.
//!
//! Layers, each knowing only those below it: `io` (matrices in files) and `gallery` (test matrices), `ops` (the public
//! verbs), `drive` (threads), `context` (what a caller chooses), `kernels` (mechanisms), `plan` and `runtime`
//! (decisions), `tile` (indices and owners), `matrix` (storage), `store` (memory) beside `math` (numbers), and
//! `error`.

pub mod comm;
pub mod context;
pub mod device;
pub mod drive;
pub mod error;
pub mod gallery;
pub mod io;
pub mod kernels;
pub mod math;
pub mod matrix;
pub mod ops;
pub mod plan;
pub mod runtime;
pub mod store;
pub mod tile;

pub use context::{Context, ContextBuilder, Progress};
pub use error::{Error, Result};
pub use matrix::{Diag, Matrix, MatrixView, Op, Side, Symmetric, SymmetricMatrix, Uplo};
pub use ops::distributed;
pub use ops::{Cholesky, CholeskyOptions, CholeskyReport, Span, TaskKind, cholesky, cholesky_into, cholesky_with};
pub use ops::{CholeskyPlan, log_det_of, plan_cholesky, verify_cholesky};
pub use ops::{GemmOptions, Outcome, Plan, Report, SyrkOptions};
pub use ops::{Inertia, Ldlt, RefineOptions, Refined, TrsmOptions, ldlt, solve, solve_refined, trsm, trsm_into};
pub use ops::{gemm, gemm_into, gemm_with, plan_gemm, plan_syrk, syrk, syrk_into, syrk_with};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
