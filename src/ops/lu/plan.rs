//! How a factorisation runs, and the bytes it takes: decided once, for calls and for plans.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::{self, EngineSpec, PlaneEngine, PlaneKernel};
use crate::math::bound::{LU_GUARD_BITS, lu_first_growth_bits, lu_modulus_bits};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::factor::kernel::choose_kernel;
use crate::ops::lu::leaf::Rules;
use crate::ops::lu::problem::{Headroom, LuProblem, Stopped};
use crate::ops::lu::report::LuReport;
use crate::ops::lu::run::{self, Factors, LuOperands, LuSizes};
use crate::ops::lu::{LuOptions, check, direct};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::{BeforeSolve, LOWER, PlannedSolve, SolvePlan, SystemShape, check_sizes, solve_bits};
use std::sync::Arc;

/// The plan of [`crate::lu_with`] for `order` rows of `matrix_bits` bits: the report of a call, so far as the sizes
/// determine it.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. `seconds` is 0, and
/// `growth_bits` is the room for growth of a first attempt. A call needs more memory if its `U` grows beyond that room,
/// or if its entries differ so widely in magnitude that entrywise accuracy takes more bits: if their number is known,
/// pass it as [`LuOptions::range_bits`]. `planned_bytes` counts the factors and not the matrix.
///
/// ```
/// use sunzi::{Context, LuOptions, Matrix, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_lu(&ctx, 100, 256, 256, &LuOptions::new())?;
/// assert_eq!((plan.operation, plan.order, plan.precision_bits), ("lu", 100, 256));
/// assert!(plan.planned_bytes > Matrix::bytes_for(100, 100, 256));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Precision`]; [`Error::MemoryLimit`] with the smallest limit that suffices; [`Error::DimensionOverflow`].
pub fn plan_lu(
    ctx: &Context,
    order: usize,
    matrix_bits: u32,
    precision_bits: u32,
    options: &LuOptions,
) -> Result<LuReport> {
    if [matrix_bits, precision_bits].into_iter().any(|bits| Matrix::bytes_for(order, order, bits) > MAXIMUM_BYTES) {
        return Err(Error::DimensionOverflow { rows: order, cols: order, precision_bits });
    }
    let range = RangeBits::for_accuracy(options.accuracy, order, precision_bits, options.range_bits);
    let (range_bits, check_bytes) = range.map_or((0, 0), |range| (range.bits, check::bytes(order)));
    check_precision(ctx, order, precision_bits, range_bits)?;
    let problem = LuProblem::of_order(order, matrix_bits, precision_bits, range_bits);
    let headroom = problem.headroom(lu_first_growth_bits(order));
    let plan = LuPlan::new(&ctx.holding(check_bytes), &problem, headroom)?;
    Ok(LuReport {
        accuracy: options.accuracy,
        range_bits,
        growth_bits: headroom.growth_bits,
        planned_bytes: plan.planned_bytes + check_bytes,
        ..plan.report(LuReport::new(ctx, &problem))
    })
}

/// The plan of [`crate::lu_with`] for a matrix of `order` rows, followed by [`crate::Lu::solve`] for `columns`
/// right-hand sides while the factors are held; the matrix and the right-hand sides have `precision_bits` bits. The
/// inverse is the solution for `order` columns. See [`plan_lu`] and [`crate::plans::plan_trsm`].
///
/// ```
/// use sunzi::{Context, LuOptions, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_lu_solve(&ctx, 100, 20, 256, &LuOptions::new())?;
/// assert_eq!((plan.operation, plan.order, plan.columns), ("solve", 100, 20));
/// assert!(plan.factorisation_bytes <= plan.planned_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::plans::plan_trsm`].
pub fn plan_lu_solve(
    ctx: &Context,
    order: usize,
    columns: usize,
    precision_bits: u32,
    options: &LuOptions,
) -> Result<SolvePlan> {
    check_sizes(order, columns, precision_bits)?;
    let bits = solve_bits(ctx, LOWER, precision_bits, order)?;
    let unlimited = ctx.with_memory_bytes(None);
    let factorisation_bytes = plan_lu(&unlimited, order, precision_bits, precision_bits, options)?.planned_bytes;
    let factor_bytes = Matrix::bytes_for(order, order, precision_bits);
    let copies_bytes = PERMUTED_COPIES * Matrix::bytes_for(order, columns, precision_bits);
    let (shape, accuracy) = (SystemShape { order, columns }, Accuracy::Entrywise);
    let solve = PlannedSolve { operation: "solve", substitutions: LOWER, shape, bits, accuracy };
    solve.plan(ctx, BeforeSolve { factorisation_bytes, factor_bytes, copies_bytes, shares_windows: false })
}

/// Copies of the right-hand sides that a solve with `P`, `L` and `U` holds: in the order of the pivots, and two for the
/// results of the substitutions.
const PERMUTED_COPIES: u64 = 3;

/// Larger parts could not be addressed, nor their sums counted.
const MAXIMUM_BYTES: u64 = 1 << 62;

/// Refuses a precision for which no kernel has room.
///
/// # Errors
/// [`Error::Precision`] with the largest one.
pub(super) fn check_precision(ctx: &Context, order: usize, precision_bits: u32, range_bits: u32) -> Result<()> {
    let most = ctx.maximum_modulus_bits();
    let fits = |precision_bits: u32| {
        let growth_bits = lu_first_growth_bits(order);
        lu_modulus_bits(precision_bits + LU_GUARD_BITS + range_bits, growth_bits, order) <= most
    };
    if precision_bits < 2 || precision_bits > most / 2 || !fits(precision_bits) {
        let maximum_bits = (2..=most / 2).rev().find(|&bits| fits(bits)).unwrap_or(0);
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    Ok(())
}

/// One factorisation, as it will run.
pub(super) struct LuPlan {
    rules: Rules,
    way: Way,
    /// Bytes of everything but the matrix.
    planned_bytes: u64,
}

/// On which numbers a factorisation computes.
enum Way {
    /// Integers on the calling thread.
    Direct,
    Planes {
        kernel: &'static dyn PlaneKernel,
        engine: Arc<dyn PlaneEngine>,
        sizes: LuSizes,
    },
}

impl LuPlan {
    /// Chooses how a matrix is factored, within the memory of the context.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], [`Error::Precision`].
    pub fn new(ctx: &Context, problem: &LuProblem, headroom: Headroom) -> Result<LuPlan> {
        let rules = Rules::new(problem, headroom);
        let factors_bytes = Matrix::bytes_for(problem.order, problem.order, problem.precision_bits);
        if direct::is_best(ctx, problem) {
            let planned_bytes = factors_bytes + direct::bytes(problem, &rules);
            ctx.memory().admit(planned_bytes)?;
            return Ok(LuPlan { rules, way: Way::Direct, planned_bytes });
        }
        let kernel = large_kernel(ctx, problem, headroom)?;
        let operand_bits = problem.working_bits + headroom.growth_bits;
        let spec = EngineSpec { operand_bits, modulus_bits: headroom.modulus_bits, redundant: false };
        ctx.settle(kernel, headroom.modulus_bits, (problem.order as f64).powi(3) / 3.0);
        let engine = ctx.engine_for_tiles(kernel, spec)?;
        let sizes = LuSizes::new(problem.order, ctx.threads());
        let planned_bytes = factors_bytes + sizes.bytes(&*engine, &rules);
        ctx.memory().admit(planned_bytes)?;
        Ok(LuPlan { rules, way: Way::Planes { kernel, engine, sizes }, planned_bytes })
    }

    /// The report with the numbers of the plan.
    pub fn report(&self, report: LuReport) -> LuReport {
        let planned = LuReport { planned_bytes: self.planned_bytes, ..report };
        match &self.way {
            Way::Direct => LuReport { kernel: direct::NAME, primes: 0, threads: 1, ..planned },
            Way::Planes { kernel, engine, .. } => {
                LuReport { kernel: kernel.name(), primes: engine.moduli().len(), ..planned }
            }
        }
    }

    /// Factors `a`, in `memory` where that fits.
    ///
    /// # Errors
    /// [`super::problem::LuStop`].
    pub fn run(&self, ctx: &Context, a: MatrixView<'_>, problem: &LuProblem, memory: Matrix) -> Stopped<Factors> {
        let LuProblem { order, precision_bits, .. } = *problem;
        let memory = match memory.fits(order, order, precision_bits) {
            true => memory,
            false => {
                drop(memory);
                Matrix::zeros(order, order, precision_bits)?
            }
        };
        let operands = LuOperands { a, memory };
        match &self.way {
            Way::Direct => direct::factor(ctx, operands, problem, self.rules),
            Way::Planes { engine, sizes, .. } => run::factor(ctx, operands, problem, &**engine, self.rules, *sizes),
        }
    }
}

fn large_kernel(ctx: &Context, problem: &LuProblem, headroom: Headroom) -> Result<&'static dyn PlaneKernel> {
    let own = choose_kernel(ctx, kernels::preferred_for_large_factors, problem.order, problem.working_bits);
    let reaches = |kernel: &dyn PlaneKernel| headroom.modulus_bits <= kernel.maximum_modulus_bits();
    if reaches(own) {
        return Ok(own);
    }
    let other = ctx.kernel_for(headroom.modulus_bits);
    let beyond = headroom.modulus_bits.saturating_sub(other.maximum_modulus_bits()).div_ceil(2);
    match reaches(other) {
        true => Ok(other),
        false => Err(Error::precision(problem.precision_bits, problem.precision_bits.saturating_sub(beyond))),
    }
}
