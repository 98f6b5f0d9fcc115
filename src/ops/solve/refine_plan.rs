//! The plan of a refined solve: the factorisation at few bits, then corrections and residuals in turn.

use crate::context::{Context, KEPT_ENGINES};
use crate::error::Result;
use crate::kernels::EngineSpec;
use crate::kernels::digit_lanes::STEP_BITS;
use crate::math::bound::{REFINE_GUARD_BITS, RESIDUAL_SIZE_BITS, cholesky_solve_guard_bits, guard_bits, residual_bits};
use crate::matrix::Matrix;
use crate::ops::cholesky::{CholeskyOptions, CholeskyPlan, plan_cholesky};
use crate::ops::product::block::{BlockShape, plan, working_bits_below};
use crate::ops::product::kernel::shorter_ends;
use crate::ops::product::path::{ProductMethod, choose_path};
use crate::ops::product::problem::{Accuracy, Bits};
use crate::ops::product::size::ProductSize;
use crate::ops::solve::cut::{larger, least_limit};
use crate::ops::solve::path::Path;
use crate::ops::solve::plan::{SolvePlan, SolveShape, check_sizes};
use crate::ops::solve::problem::{CHOLESKY, working_bits};
use crate::ops::solve::residual::{SymmetricSystem, scaled_bytes};
use crate::options::setters;

/// Choices of [`crate::solve_refined_with`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RefineOptions {
    /// Precision of the factorisation, at least 2 bits.
    pub factor_bits: u32,
    /// The largest number of corrections, including the first solution.
    pub max_iterations: usize,
}

impl Default for RefineOptions {
    /// A factor of 53 bits and at most 200 corrections.
    fn default() -> Self {
        RefineOptions { factor_bits: 53, max_iterations: 200 }
    }
}

setters! { new RefineOptions { factor_bits: u32, max_iterations: usize } }

/// The shapes and precisions that the memory of a refined solve depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefineShape {
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
    /// Precision of the matrix as it is given.
    pub input_bits: u32,
    /// Precision of the solution.
    pub precision_bits: u32,
    /// Precision of the factor.
    pub factor_bits: u32,
}

impl RefineShape {
    /// Bits of the unknowns and of the residual that is known best.
    pub fn full_bits(&self) -> u32 {
        self.precision_bits + REFINE_GUARD_BITS
    }

    /// Bytes held from the first correction to the last: matrix, factor, unknowns and solution.
    pub fn held_bytes(&self) -> u64 {
        let RefineShape { order, columns, input_bits, precision_bits, factor_bits } = *self;
        let unknowns = [precision_bits, self.full_bits()].map(|bits| Matrix::bytes_for(order, columns, bits));
        let factor = Matrix::bytes_for(order, order, factor_bits);
        let parts = [SymmetricSystem::bytes_for(order, input_bits), factor, unknowns[0], unknowns[1]];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The options for the factor that finds corrections; its few bits decide the number of corrections.
    pub fn factor_options() -> CholeskyOptions {
        CholeskyOptions::new().accuracy(Accuracy::Norm)
    }

    /// The plan of the factorisation, made without the limit: the memory of a factorisation does not depend on it.
    pub fn factorisation(&self, ctx: &Context) -> Result<CholeskyPlan> {
        plan_cholesky(&ctx.with_memory_bytes(None), self.order, self.factor_bits, &RefineShape::factor_options())
    }

    /// Bytes of the residual that a correction is found for.
    pub fn residual_bytes(&self) -> u64 {
        Matrix::bytes_for(self.order, self.columns, residual_bits(self.full_bits()))
    }

    /// Bits of the residuals that are planned for: the widest on each kernel used before the last residual, then the
    /// last.
    fn widths(&self, ctx: &Context) -> impl Iterator<Item = u32> + use<> {
        let (widest, guard) = (residual_bits(self.full_bits()), guard_bits(self.order));
        let ends = shorter_ends(ctx, self.residual_spec(ctx, widest).modulus_bits);
        let ends = ends.into_iter().filter_map(move |end| working_bits_below(end).checked_sub(guard));
        ends.filter(|&bits| bits >= 2).chain([widest])
    }

    /// Whether the product of a residual of `bits` bits runs without planes.
    fn goes_direct(&self, ctx: &Context, bits: u32) -> bool {
        let size = ProductSize { contracted: self.order, rows: self.order, cols: self.columns, triangle: false };
        choose_path(ctx, &size, bits + guard_bits(self.order)) == ProductMethod::Direct
    }

    /// Lengths between those of [`RefineShape::widths`] whose products may take more than longer ones: all that run
    /// without planes, where digits of short integers take more than long integers, and the longest with planes on each
    /// kernel. Only without a limit, under which a product takes the other path where one has no room.
    fn lengths_between(&self, ctx: &Context) -> Vec<u32> {
        if ctx.under_limit() {
            return Vec::new();
        }
        let widest = residual_bits(self.full_bits());
        let direct = (2..=widest).step_by(STEP_BITS as usize).filter(|&bits| self.goes_direct(ctx, bits));
        let below = |end: u32| {
            let near = (2..=end).rev().step_by(STEP_BITS as usize).find(|&bits| !self.goes_direct(ctx, bits))?;
            (near..=end.min(near + STEP_BITS)).rev().find(|&bits| !self.goes_direct(ctx, bits))
        };
        direct.chain(self.widths(ctx).filter_map(below)).collect()
    }

    /// The requirements of the product of a residual of `bits` bits on an engine.
    fn residual_spec(&self, ctx: &Context, bits: u32) -> EngineSpec {
        Bits::scaled(bits, self.order).widened(bits + guard_bits(self.order)).spec(ctx.self_check())
    }

    /// The kernel of the product of the last residual.
    pub fn kernel(&self, ctx: &Context) -> &'static str {
        ctx.kernel_for(self.residual_spec(ctx, residual_bits(self.full_bits())).modulus_bits).name()
    }

    /// Bytes of the tables of a residual's products, which the context keeps.
    fn residual_tables(&self, ctx: &Context) -> Result<u64> {
        let mut most = 0;
        for bits in self.widths(ctx) {
            let spec = self.residual_spec(ctx, bits);
            most = most.max(ctx.engine(ctx.kernel_for(spec.modulus_bits), spec)?.table_bytes());
        }
        // Without a limit the engines of other products stay too: residuals grow in bits from one to the next.
        let engines = if ctx.memory_bytes().is_some() { 1 } else { KEPT_ENGINES as u64 };
        Ok(engines * most)
    }

    /// Most bytes while a residual is found, those held included, and how many of them the context keeps afterwards.
    fn residual_step(&self, ctx: &Context) -> Result<(u64, u64)> {
        let RefineShape { order, columns, .. } = *self;
        let holding = ctx.holding(self.held_bytes()).holding(scaled_bytes(order, columns));
        let product = |ctx: &Context, bits: u32| {
            let shape = BlockShape { rows: order, cols: columns, contracted: order };
            let planned = plan(ctx, shape, bits, bits + guard_bits(order));
            planned.map(|plan| (ctx.memory().total(plan.planned_bytes), plan.bytes.windows()))
        };
        let sizes = product(&holding.holding(self.residual_bytes()), RESIDUAL_SIZE_BITS);
        let lengths = self.widths(ctx).chain(self.lengths_between(ctx));
        let residuals = lengths.map(|bits| product(&holding, bits));
        let (mut most, mut kept) = (Ok(0), 0);
        for step in residuals.chain([sizes]) {
            kept = kept.max(step.as_ref().map_or(0, |step| step.1));
            most = larger(most, step.map(|step| step.0));
        }
        most.map(|bytes| (bytes, kept))
    }
}

/// The plan of [`crate::solve_refined_with`] for a matrix of `order` rows and `columns` right-hand sides, all of
/// `precision_bits` bits: the factorisation, then alternately a solve at the factor's precision and a residual.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. The assumption on pivots is
/// that of [`crate::plans::plan_trsm`]. Without a limit a call with many right-hand sides may need a third less.
///
/// ```
/// use sunzi::{Context, RefineOptions, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_solve_refined(&ctx, (100, 1), 1024, &RefineOptions::new().factor_bits(128))?;
/// assert_eq!((plan.operation, plan.precision_bits), ("solve_refined", 1024));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::plans::plan_trsm`].
pub fn plan_solve_refined(
    ctx: &Context,
    (order, columns): (usize, usize),
    precision_bits: u32,
    options: &RefineOptions,
) -> Result<SolvePlan> {
    check_sizes(order, columns, precision_bits)?;
    let factor_bits = options.factor_bits;
    plan_refined(ctx, RefineShape { order, columns, input_bits: precision_bits, precision_bits, factor_bits })
}

/// The plan for a matrix of any precision.
pub(super) fn plan_refined(ctx: &Context, shape: RefineShape) -> Result<SolvePlan> {
    let RefineShape { order, columns, factor_bits, .. } = shape;
    let factorisation = shape.factorisation(ctx)?;
    let working_bits = working_bits(ctx, factor_bits, cholesky_solve_guard_bits(order), order)?;
    let (accuracy, precision_bits) = (Accuracy::Norm, factor_bits);
    let solve =
        SolveShape { operation: "solve_refined", substitutions: CHOLESKY, order, columns, precision_bits, accuracy };
    // The context keeps the tables of the factorisation, and of the residuals from planning them on.
    let beside = |ctx: &Context| -> Result<(Context, u64)> {
        let tables = shape.residual_tables(ctx)?;
        let first = ctx.memory().total(factorisation.planned_bytes.saturating_add(tables));
        Ok((ctx.holding(factorisation.table_bytes).holding(tables), first))
    };
    let correction = |ctx: &Context| {
        let ctx = ctx.holding(shape.held_bytes()).holding(shape.residual_bytes());
        solve.plan(&ctx, working_bits, 0, 0)
    };
    let (none, least_bytes) = beside(&ctx.with_memory(ctx.memory().within(Some(0))))?;
    let least_bytes = least_limit(correction(&none).map(|plan| plan.planned_bytes))?
        .max(least_limit(shape.residual_step(&none).map(|step| step.0))?)
        .max(least_bytes);
    let least_bytes = ctx.memory().admit_total(least_bytes)?;
    let (beside, factorisation_bytes) = beside(ctx)?;
    let found = correction(&beside)?;
    let (residual_bytes, kept_bytes) = shape.residual_step(&beside)?;
    // Solves column by column leave the windows of the products idle, until a limit has no room for them; other solves
    // work in them, but in other parts than products, and keep their right sides.
    let by_columns = matches!(found.path, Path::Dots | Path::Sums);
    let kept_bytes = if by_columns || ctx.memory_bytes().is_none() { kept_bytes } else { 0 };
    let correction_bytes = found.planned_bytes.saturating_add(kept_bytes).min(ctx.memory_bytes().unwrap_or(u64::MAX));
    let later_bytes = correction_bytes.max(residual_bytes);
    Ok(SolvePlan {
        precision_bits: shape.precision_bits,
        kernel: shape.kernel(ctx),
        factorisation_bytes,
        least_bytes,
        planned_bytes: later_bytes.max(factorisation_bytes),
        ..found
    })
}
