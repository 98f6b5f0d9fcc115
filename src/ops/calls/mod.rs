//! Verbs over ranks on matrices in the caller's own distribution: the common implementation of the C library and the
//! Python package.
//!
//! A caller defines how the numbers of its arrays are read and written ([`Caller`], [`LocalArray`]). The verbs convert
//! operands to tiles, call `distributed`, and store this rank's part of the result. They count the bytes of each step
//! ([`CallAccount`]), so that the memory of a node stays within its limit and a plan can predict it. An error on one
//! rank is returned by all ranks. Depends on: distributions, products, factors, solves. Independent of: the caller's
//! formats.

mod account;
mod caller;
mod factors;
mod matrix;
mod opening;
mod plans;
mod products;

pub use account::CallAccount;
pub use caller::{
    ArgumentFault, CallFailure, CallNote, Caller, CopyPool, LocalArray, LocalInput, LocalTriangle, caught,
    check_process, together,
};
pub use factors::{
    KeptFactor, TriangularKind, cholesky_over, cholesky_solve_over, inverse_over, log_det_over, solve_over,
    stored_log_det, trsm_over,
};
pub use matrix::PlacedMatrix;
pub use opening::{DescribedMatrix, DistributionNumbers, Opening, RankShapes, Routine};
pub use plans::{
    CallPlan, PlannedBits, plan_cholesky_over, plan_gemm_over, plan_solve_over, plan_syrk_over, plan_trsm_over,
};
pub use products::{ProductTerms, gemm_over, syrk_over};

/// The result of a call for a caller.
type CallOutcome<T, C> = Result<T, <C as Caller>::Failure>;
