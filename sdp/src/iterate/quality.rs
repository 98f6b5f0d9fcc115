//! Objectives, gap and errors of a point.

use rug::Float;

/// Objectives, gap and errors of a point.
#[derive(Clone, PartialEq, Debug)]
pub struct Quality {
    /// `f + c^T x`.
    pub primal_objective: Float,
    /// `f + C . Y + b^T y`.
    pub dual_objective: Float,
    /// `|p - d| / max(|p| + |d|, 1)`; in SDPA's form `|p - d| / max((|p| + |d|) / 2, 1)`.
    pub gap: Float,
    /// The largest entry of `A(x) - C - X`.
    pub primal_matrix_error: Float,
    /// The largest entry of `b - B^T x`.
    pub primal_free_error: Float,
    /// The largest entry of `c - A*(Y) - B y`.
    pub dual_error: Float,
}

impl Quality {
    /// The larger of the two primal errors.
    pub fn primal_error(&self) -> &Float {
        if self.primal_free_error > self.primal_matrix_error {
            &self.primal_free_error
        } else {
            &self.primal_matrix_error
        }
    }
}
