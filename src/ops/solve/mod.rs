//! Linear systems with a symmetric positive definite matrix: by one factorisation, or refined from a cheaper one.

pub(crate) mod agreement;
pub(crate) mod band;
mod cholesky;
mod condition;
pub(crate) mod cut;
mod dots;
pub(crate) mod factored;
mod fixed;
pub(crate) mod ldlt;
pub(crate) mod memory;
mod parts;
pub(crate) mod path;
mod plan;
pub(crate) mod problem;
pub(crate) mod ranks;
mod refine;
mod residual;
pub(crate) mod run;
mod scalar;
pub(crate) mod spaces;
pub(crate) mod step;
mod tiles;
pub(crate) mod triangle;
pub(crate) mod triangular;

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::cholesky;
pub use path::Path;
pub use plan::{SolvePlan, plan_solve, plan_trsm};

/// Choices of [`solve_refined`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefineOptions {
    /// Precision of the factorisation, at least 2 bits.
    pub factor_bits: u32,
    /// Most corrections that are made, the first solution included.
    pub max_iterations: usize,
}

impl Default for RefineOptions {
    /// A factor of 53 bits and at most 200 corrections.
    fn default() -> Self {
        RefineOptions { factor_bits: 53, max_iterations: 200 }
    }
}

/// A refined solution.
#[derive(Clone, Debug)]
pub struct Refined {
    /// The solution, rounded to the precision asked for.
    pub solution: Matrix,
    /// Corrections made, the first solution included.
    pub iterations: usize,
    /// An upper bound of `log2` of the componentwise backward error of `solution`,
    /// `max_ij |b - A x|_ij / (|A| |x| + |b|)_ij`; `i64::MIN` where there is nothing but zeros.
    pub backward_error_log2: i64,
}

/// The solution `X` of `A X = B` for a symmetric positive definite `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n`, plain, known to be symmetric or a named triangle, see [`Symmetric`]; `b` and the result are
/// `n x m`.
/// Accuracy: `|b - A x|_i <= 2^(4 - precision_bits) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)` for each column. The
/// bits depend on `A`, `B` and the precision alone.
/// Cost: one factorisation, `n^3 / 6` word products for each prime, and `n^2 m`.
/// Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
///
/// # Errors
/// Those of [`crate::cholesky()`] and [`crate::Cholesky::solve`].
pub fn solve<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    let (a, b) = (a.into().lower_view("solve")?, b.into());
    refine::check_shapes(&a, &b)?;
    if ctx.memory_bytes().is_some() {
        plan_solve(ctx, a.rows(), b.cols(), precision_bits)?; // before the work of a factorisation
    }
    let factor = cholesky(ctx, Symmetric::lower(a), precision_bits)?;
    ctx.release(); // under a limit the tiles of the factorisation are in the way
    factor.solve_beside(ctx, b, precision_bits, factor.factor().bytes())
}

/// [`solve`] with a factor of few bits, refined to the full precision.
///
/// Shapes as in [`solve`].
/// Accuracy: `|b - A x|_ij <= 2^(1 - precision_bits) (|A| |x| + |b|)_ij` for every entry: a componentwise bound, which
/// the unrefined solve does not give. The bits depend on `A`, `B`, the precision and the options alone.
/// Cost: one factorisation at `factor_bits`; each correction takes a product with `A` at as many bits as are known by
/// then, and a solve at `factor_bits`, and gains about `factor_bits - log2(condition)` bits.
/// Source: docs/ALGORITHM.md, "Refinement".
///
/// # Errors
/// As [`solve`]; [`crate::Error::NotPositiveDefinite`] also where `factor_bits` are too few to factor `A`;
/// [`crate::Error::RefinementStalls`] where the corrections do not converge.
pub fn solve_refined<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &RefineOptions,
) -> Result<Refined> {
    refine::refine(ctx, (a.into().lower_view("solve")?, b.into()), precision_bits, options)
}
