//! Verbs over ranks on matrices as a caller has them: the one implementation behind the C library and the Python
//! package.
//!
//! A caller says how the numbers of its arrays are read and written ([`Caller`], [`LocalArray`]). The verbs take
//! operands into tiles, call `distributed`, and store this rank's part of the result. They count the bytes of each step
//! ([`CallAccount`]), so that the memory of a node stays within its limit and a plan states what a call takes. An error
//! of one rank is one of all. Knows: distributions, products, factors, solves. Does not know: the caller's formats.

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
