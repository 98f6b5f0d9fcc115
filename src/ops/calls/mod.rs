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
mod copies;
mod described;
mod factors;
mod kept;
mod matrix;
mod opening;
mod plan_steps;
mod plans;
mod products;
mod ranks;
mod shapes;
mod tally;
mod triangle;

pub use account::CallAccount;
pub use caller::{ArgumentFault, CallFailure, CallNote, Caller, LocalArray, LocalInput, caught, check_process};
pub use copies::CopyPool;
pub use described::{DescribedMatrix, DistributionNumbers};
pub use factors::{
    TriangularKind, cholesky_over, cholesky_solve_over, inverse_over, log_det_over, solve_over, stored_log_det,
    trsm_over,
};
pub use kept::KeptFactor;
pub use matrix::PlacedMatrix;
pub use opening::{Opening, Routine};
pub use plan_steps::{CallPlan, PlannedBits};
pub use plans::{plan_cholesky_over, plan_gemm_over, plan_solve_over, plan_syrk_over, plan_trsm_over};
pub use products::{ProductTerms, gemm_over, syrk_over};
pub use ranks::{CallRanks, together};
pub use shapes::RankShapes;
pub use tally::{Tally, process_bytes};
pub use triangle::{LocalTriangle, TrianglePart};

/// The result of a call for a caller.
type CallOutcome<T, C> = Result<T, <C as Caller>::Failure>;
