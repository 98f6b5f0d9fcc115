//! Products, factorisations and solves of matrices that are distributed over many ranks and nodes.
//!
//! Every function here is collective: all ranks of the [`Team`] call it, in the same order, with the same precision and
//! options. The bits of the result are those of [`crate::syrk_with`] on one matrix with all the rows, for any number of
//! ranks and nodes, any distribution of the rows, any memory limit and kernel. Factors and solves also have the bits of
//! one process; [`inverse`] has the bits of the solution for the identity in one process, and not those of
//! [`crate::Cholesky::inverse`]. An error on one rank is returned by all ranks. Source: docs/ALGORITHM.md, "Many
//! ranks".

pub use crate::ops::cluster::{ClusterPlan, plan_cholesky_cluster, plan_solve_cluster};
pub use crate::ops::factor::options::DistCholeskyOptions;
pub use crate::ops::factor::ranks::{
    DistCholesky, DistCholeskyReport, cholesky, cholesky_into, cholesky_tiles, cholesky_with, plan_cholesky,
};
pub use crate::ops::factor::report::{RankSummary, RanksReport};
pub use crate::ops::solve::ranks::{
    DistSolution, LocalSolution, TrsmBits, inverse, inverse_local, log_det, pivots, plan_solve, plan_solve_local,
    plan_trsm, plan_trsm_local, solve, solve_into, solve_local, solve_with, trsm, trsm_into, trsm_local, trsm_with,
};

pub use crate::ops::distribution::matrix::DistMatrix;
pub use crate::ops::distribution::redistribute::{LocalPart, contracted_rows, even_rows, redistribute, scatter_rows};
pub use crate::ops::distribution::travel::{redistribution_bytes, travel_bytes};
pub use crate::ops::product::clock::{RANK_PHASES, RankPhase, RankPhases, RankSpan, Spread};
pub use crate::ops::product::plan::{NodePlan, TeamPlan};
pub use crate::ops::product::ranks::plan::{
    ClusterShape, even_operand_bytes, plan_gemm, plan_syrk, plan_syrk_cluster, plan_syrk_cluster_with,
};
pub use crate::ops::product::ranks::{DistOptions, DistOutcome, PlanHook, gemm, gemm_rows, syrk, weighted_gram};
pub use crate::ops::product::report::TeamReport;
#[doc(inline)]
pub use crate::plan::even_share;
pub use crate::site::{NodeLayout, Team, TeamOptions};
#[doc(inline)]
pub use crate::tile::{Along, Axis, Distribution, GridOrder, LocalDiagonal, RankGrid, TileMap};
