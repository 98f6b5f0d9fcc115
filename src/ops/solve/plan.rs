//! The plan of a solve as numbers a user can read, made before anything is allocated.

use crate::context::Context;
use crate::error::Result;
use crate::math::float::limbs_for;
use crate::matrix::Matrix;
use crate::ops::cholesky::{CholeskyOptions, plan_cholesky};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::memory::{Bands, SolveMemory};
use crate::ops::solve::problem::{CHOLESKY, LOWER, Method, Path, SolveBits, Substitution, SystemShape, solve_bits};
use crate::ops::solve::{dots, sums};
use serde::Serialize;

/// The plan of a solve: its algorithm, its bands and its bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SolvePlan {
    /// `trsm`, `solve`, `solve_refined` or `inverse`.
    pub operation: &'static str,
    /// Rows of the triangle, or of the matrix.
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
    /// Precision of the solution.
    pub precision_bits: u32,
    /// Working precision in bits of right-hand sides and unknowns.
    pub working_bits: u32,
    /// The algorithm that computes the unknowns.
    pub path: Path,
    /// Accuracy of the residual.
    pub accuracy: Accuracy,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Bands of right-hand sides that are solved one after the other.
    pub bands: usize,
    /// Right-hand sides of a band; the last band may have fewer.
    pub band_columns: usize,
    /// Bytes of the factorisation before the solve, including the factor; 0 if the triangle is given.
    pub factorisation_bytes: u64,
    /// The smallest memory limit that suffices for any entries.
    pub least_bytes: u64,
    /// The largest number of bytes that the call holds at one time, including the solution.
    pub planned_bytes: u64,
}

/// The plan of [`crate::trsm()`] for a triangle of `order` rows and `columns` right-hand sides.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. The plan assumes that the
/// pivots are at least `2^-21` of the norms of their rows: with smaller pivots a call without a memory limit needs some
/// more memory, and a call under a limit uses narrower bands.
///
/// ```
/// use sunzi::{Accuracy, Context, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_trsm(&ctx, (100, 20), 256, Accuracy::Norm)?;
/// assert_eq!((plan.operation, plan.order, plan.columns), ("trsm", 100, 20));
/// assert!(plan.least_bytes <= plan.planned_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::DimensionOverflow`]; [`crate::Error::MemoryLimit`] with the smallest
/// limit that suffices.
pub fn plan_trsm(
    ctx: &Context,
    (order, columns): (usize, usize),
    precision_bits: u32,
    accuracy: Accuracy,
) -> Result<SolvePlan> {
    check_sizes(order, columns, precision_bits)?;
    let bits = solve_bits(ctx, LOWER, precision_bits, order)?;
    let shape = SystemShape { order, columns };
    PlannedSolve { operation: "trsm", substitutions: LOWER, shape, bits, accuracy }.plan(ctx, BeforeSolve::default())
}

/// The plan of [`crate::solve()`] for a matrix of `order` rows and `columns` right-hand sides: the factorisation,
/// followed by the solve while the factor is held; see [`plan_trsm`].
///
/// ```
/// use sunzi::{CholeskyOptions, Context, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_solve(&ctx, (100, 20), 256, &CholeskyOptions::new())?;
/// assert_eq!((plan.operation, plan.order, plan.columns), ("solve", 100, 20));
/// assert!(plan.factorisation_bytes <= plan.planned_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_trsm`].
pub fn plan_solve(
    ctx: &Context,
    (order, columns): (usize, usize),
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<SolvePlan> {
    check_sizes(order, columns, precision_bits)?;
    let accuracy = options.accuracy;
    let bits = solve_bits(ctx, CHOLESKY, precision_bits, order)?;
    let unlimited = ctx.with_memory_bytes(None);
    let factorisation = plan_cholesky(&unlimited, order, precision_bits, options)?;
    let factor_bytes = Matrix::bytes_for(order, order, precision_bits);
    let shape = SystemShape { order, columns };
    let solve = PlannedSolve { operation: "solve", substitutions: CHOLESKY, shape, bits, accuracy };
    let factorisation_bytes = factorisation.planned_bytes;
    solve.plan(ctx, BeforeSolve { factorisation_bytes, factor_bytes, shares_windows: true, ..BeforeSolve::default() })
}

/// Refuses matrices beyond the address space, so that no later arithmetic overflows.
pub(crate) fn check_sizes(order: usize, columns: usize, precision_bits: u32) -> Result<()> {
    Matrix::check_size(order, order, precision_bits)?;
    Matrix::check_size(order, columns, precision_bits).map(drop)
}

/// Memory in use when a planned solve begins.
#[derive(Clone, Copy, Default)]
pub(crate) struct BeforeSolve {
    /// Bytes of the factorisation before the solve, including the factor.
    pub factorisation_bytes: u64,
    /// Bytes of the factor, which stays.
    pub factor_bytes: u64,
    /// Bytes of copies of the right-hand sides.
    pub copies_bytes: u64,
    /// Whether the windows of the solve lie in memory that the context keeps of the factorisation.
    pub shares_windows: bool,
}

/// The planned problem.
pub(crate) struct PlannedSolve {
    pub operation: &'static str,
    pub substitutions: &'static [Substitution],
    pub shape: SystemShape,
    pub bits: SolveBits,
    pub accuracy: Accuracy,
}

impl PlannedSolve {
    /// The plan of a call that takes the bytes of a factorisation first.
    pub fn plan(&self, ctx: &Context, before: BeforeSolve) -> Result<SolvePlan> {
        let PlannedSolve { operation, substitutions, shape, bits, accuracy } = *self;
        let BeforeSolve { factorisation_bytes, factor_bytes, copies_bytes, shares_windows } = before;
        let held_bytes = factor_bytes.saturating_add(copies_bytes);
        let SystemShape { order, columns } = shape;
        let method = Method::choose(substitutions, order, columns, accuracy);
        let holding = ctx.holding(held_bytes);
        let cuts = vec![TriangleCut::expected(order, bits.working, method); substitutions.len()];
        let memory = SolveMemory::of_system(&holding, substitutions, shape, bits, cuts);
        // Column by column there are no bands.
        let by_columns = match method.path {
            Path::Dots => Some(dots::bytes(ctx, shape, bits.precision)),
            Path::Sums => Some(sums::bytes(ctx, shape, bits, limbs_for(bits.precision))),
            Path::Parts | Path::Tiles => None,
        };
        let by_columns = by_columns.map(|bytes| holding.memory().total(bytes));
        let least_bytes = by_columns.map_or_else(|| memory.least_bytes(columns), Ok)?;
        let least_bytes = ctx.memory().admit_total(least_bytes.max(ctx.memory().total(factorisation_bytes)))?;
        let (bands, solve_bytes) = match by_columns {
            Some(bytes) => (Bands::widest(columns), bytes),
            None => memory.plan(columns)?,
        };
        let kernel = if by_columns.is_some() { ctx.kernel().name() } else { memory.kernel(bands)? };
        // Without a limit the context keeps the tiles of the factorisation, and the windows of the solve lie in them.
        let kept_bytes = match (ctx.memory_bytes(), by_columns) {
            (Some(_), _) => 0,
            (None, Some(bytes)) => bytes,
            (None, None) if shares_windows => memory.held_beside_windows(bands.columns)?,
            (None, None) => solve_bytes,
        };
        let kept_bytes = kept_bytes.saturating_sub(held_bytes).saturating_add(copies_bytes);
        let beside_tiles = factorisation_bytes.saturating_add(kept_bytes);
        let planned_bytes = if factorisation_bytes == 0 { solve_bytes } else { solve_bytes.max(beside_tiles) };
        Ok(SolvePlan {
            operation,
            order,
            columns,
            precision_bits: bits.precision,
            working_bits: bits.working,
            path: method.path,
            accuracy,
            kernel,
            threads: ctx.threads(),
            bands: bands.count(),
            band_columns: bands.columns,
            factorisation_bytes,
            least_bytes,
            planned_bytes,
        })
    }
}
