//! Iterative refinement: solve with a cheap factor, compute the residual, correct. The plan of that, and residuals
//! `B - A X` of a symmetric matrix with their size relative to `|A| |X| + |B|`, entry by entry.
//!
//! For a residual columns of `A` and rows of `X` are scaled by powers of two first, so that norms are close to the
//! entries that matter. Where a norm still covers an entry, that entry is summed scalar by scalar.

use crate::context::{Context, KEPT_ENGINES};
use crate::error::{Error, Result};
use crate::kernels::EngineSpec;
use crate::kernels::digit_lanes::STEP_BITS;
use crate::math::bound::{REFINE_GUARD_BITS, RESIDUAL_COVERED_BITS, RESIDUAL_SIZE_BITS, guard_bits, residual_bits};
use crate::math::float::{FloatRef, Head, round_integer};
use crate::math::magnitude::Magnitude;
use crate::math::pivot::diagonal_exponent;
use crate::math::scale::column_exponent;
use crate::matrix::{Destination, Matrix, MatrixView, Symmetric, check_exponent};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, CholeskyPlan, CholeskyReport, cholesky_with, plan_cholesky};
use crate::ops::columns::each_column;
use crate::ops::exact_sum::{ExactEntry, round_sum};
use crate::ops::fixed_sum::{FixedSum, Sign};
use crate::ops::product::block::{BlockProduct, BlockShape, maximum_working_bits, plan, working_bits_below};
use crate::ops::product::path::{ProductMethod, choose_path, shorter_ends};
use crate::ops::product::problem::{Accuracy, Bits, ProductSize};
use crate::ops::product::report::Outcome;
use crate::ops::solve::cut::{larger, least_limit};
use crate::ops::solve::plan::{BeforeSolve, PlannedSolve, SolvePlan, check_sizes};
use crate::ops::solve::problem::{CHOLESKY, Path, SystemShape, solve_bits};
use crate::ops::solve::run::{SolutionPlace, store};
use crate::ops::solve::triangle::scaled_head;
use crate::options::setters;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
struct RefineShape {
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
        let size =
            ProductSize { contracted: self.order, rows: self.order, cols: self.columns, triangle: false, half: None };
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

    /// The largest number of bytes while a residual is found, those held included, and how many of them the context
    /// keeps afterwards.
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
/// Nothing is computed, except that the kernel's tables are made and kept in the context. The pivots are assumed to be
/// as in [`crate::plans::plan_trsm`]. Without a memory limit, a call with many right-hand sides may need a third less
/// memory than planned.
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
fn plan_refined(ctx: &Context, shape: RefineShape) -> Result<SolvePlan> {
    let RefineShape { order, columns, factor_bits, .. } = shape;
    let factorisation = shape.factorisation(ctx)?;
    let bits = solve_bits(ctx, CHOLESKY, factor_bits, order)?;
    let (system, accuracy) = (SystemShape { order, columns }, Accuracy::Norm);
    let solve = PlannedSolve { operation: "solve_refined", substitutions: CHOLESKY, shape: system, bits, accuracy };
    // The context keeps the tables of the factorisation, and of the residuals from planning them on.
    let beside = |ctx: &Context| -> Result<(Context, u64)> {
        let tables = shape.residual_tables(ctx)?;
        let first = ctx.memory().total(factorisation.planned_bytes.saturating_add(tables));
        Ok((ctx.holding(factorisation.table_bytes).holding(tables), first))
    };
    let correction = |ctx: &Context| {
        let ctx = ctx.holding(shape.held_bytes()).holding(shape.residual_bytes());
        solve.plan(&ctx, BeforeSolve::default())
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

/// The report of a refinement.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RefineReport {
    /// Number of corrections, including the first solution.
    pub iterations: usize,
    /// An upper bound of `log2` of the componentwise backward error of the solution, `max_ij |b - A x|_ij / (|A| |x| +
    /// |b|)_ij`; `i64::MIN` if all numbers are zero.
    pub backward_error_log2: i64,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// The largest number of bytes that the call holds at one time, including the result, as in
    /// [`crate::plans::plan_solve_refined`].
    pub planned_bytes: u64,
    /// Name of the kernel of the last residual, which has the most bits.
    pub kernel: &'static str,
    /// The report of the factorisation at the start of the call.
    pub factorisation: CholeskyReport,
}

/// Corrections in a row that may gain less than a bit.
const IDLE_CORRECTIONS: usize = 2;

/// Refuses a matrix that is not square, and right-hand sides of another number of rows.
pub(super) fn check_shapes(a: &MatrixView<'_>, b: &MatrixView<'_>) -> Result<()> {
    if a.rows() == a.cols() && a.rows() == b.rows() {
        return Ok(());
    }
    Err(Error::shape_mismatch("solve", (a.rows(), a.cols()), (b.rows(), b.cols())))
}

/// See [`crate::solve_refined_into`]; of `a` the lower triangle is read.
///
/// # Errors
/// The errors of [`crate::solve_refined_into`].
pub(super) fn refine(
    ctx: &Context,
    a: MatrixView<'_>,
    b: MatrixView<'_>,
    precision_bits: u32,
    options: &RefineOptions,
    solution: &mut Matrix,
) -> Result<RefineReport> {
    let start = Instant::now();
    check_shapes(&a, &b)?;
    let order = a.rows();
    let most = residual_bits(precision_bits.saturating_add(REFINE_GUARD_BITS)).saturating_add(guard_bits(order));
    let maximum = maximum_working_bits(ctx);
    if precision_bits < 2 || most > maximum {
        let maximum_bits = maximum.saturating_sub(residual_bits(REFINE_GUARD_BITS) + guard_bits(order));
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    let shape = RefineShape {
        order,
        columns: b.cols(),
        input_bits: a.precision_bits(),
        precision_bits,
        factor_bits: options.factor_bits,
    };
    // Planned before the work of a factorisation; without right sides there is nothing to plan.
    let plan = (b.cols() > 0).then(|| plan_refined(ctx, shape)).transpose()?;
    let choices = RefineShape::factor_options();
    let Outcome { result: factor, report } = cholesky_with(ctx, Symmetric::lower(a), options.factor_bits, &choices)?;
    Destination::Matrix(solution).prepare((order, b.cols()), precision_bits)?;
    let planned_bytes = plan.map_or(report.planned_bytes, |plan| plan.planned_bytes);
    let (iterations, backward_error_log2, kernel) = (0, i64::MIN, shape.kernel(ctx));
    let mut report =
        RefineReport { iterations, backward_error_log2, seconds: 0.0, planned_bytes, kernel, factorisation: report };
    if order == 0 || b.cols() == 0 {
        return Ok(report);
    }
    ctx.release(); // under a limit the tiles of the factorisation are in the way
    let system = SymmetricSystem::new(a, b)?;
    let x = Matrix::zeros(order, b.cols(), shape.full_bits())?;
    let ctx = ctx.holding(shape.held_bytes()).holding(shape.factorisation(ctx)?.table_bytes);
    let residual_bytes = shape.residual_bytes();
    let options = *options;
    let mut refinement = Refinement { ctx, factor, system, options, precision_bits, residual_bytes, planned_bytes, x };
    report.iterations = refinement.iterate(b)?;
    report.backward_error_log2 = refinement.finish(solution)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

struct Refinement<'a> {
    /// Holds all below, and the solution.
    ctx: Context,
    factor: Cholesky,
    system: SymmetricSystem<'a>,
    options: RefineOptions,
    precision_bits: u32,
    /// The largest number of bytes of a residual, as the plan has it.
    residual_bytes: u64,
    /// Most bytes of the call, as the plan has it.
    planned_bytes: u64,
    x: Matrix,
}

impl Refinement<'_> {
    /// Corrects `x` until its backward error is at most `2^(-precision_bits - 1)`; returns the corrections made.
    fn iterate(&mut self, b: MatrixView<'_>) -> Result<usize> {
        let target = -i64::from(self.precision_bits) - 1;
        let full = self.precision_bits + REFINE_GUARD_BITS;
        let mut best = ResidualSizes { componentwise_log2: 0, normwise_log2: 0 };
        let (mut idle, mut residual) = (0, None::<Residual>);
        for iteration in 1..=self.options.max_iterations {
            let right = residual.as_ref().map_or(b, |residual| residual.matrix.view());
            let (bits, mut correction) = (self.options.factor_bits, Matrix::empty());
            // The first correction, without a residual, keeps to the plan of the others.
            let ctx = self.ctx.holding(self.residual_bytes);
            let planned_bytes = self.planned_bytes;
            ctx.within_plan(planned_bytes, |ctx| self.factor.solve_into(ctx, right, bits, &mut correction))?;
            drop(residual);
            self.add(&correction)?;
            drop(correction);
            // The residual to come is as small as this correction makes it; it must be known to the factor's bits.
            let known = best.componentwise_log2.min(0).unsigned_abs() + 2 * u64::from(self.options.factor_bits);
            let bits = u64::from(full).min(known + u64::from(REFINE_GUARD_BITS)) as u32;
            // Tables for more bits are made before windows are trimmed: under a limit the windows of the last step make
            // room.
            self.ctx.release();
            let next = self.ctx.within_plan(planned_bytes, |ctx| self.system.residual(ctx, &self.x, bits))?;
            let size = next.size;
            if size.componentwise_log2 <= target {
                return Ok(iteration);
            }
            let gains = size.componentwise_log2 < best.componentwise_log2 || size.normwise_log2 < best.normwise_log2;
            idle = if gains { 0 } else { idle + 1 };
            best.componentwise_log2 = best.componentwise_log2.min(size.componentwise_log2);
            best.normwise_log2 = best.normwise_log2.min(size.normwise_log2);
            if idle == IDLE_CORRECTIONS {
                return Err(self.stalled(iteration, best));
            }
            residual = Some(next);
        }
        Err(self.stalled(self.options.max_iterations, best))
    }

    fn stalled(&self, iterations: usize, best: ResidualSizes) -> Error {
        Error::RefinementStalls {
            iterations,
            reached_log2: best.componentwise_log2,
            wanted_log2: 1 - i64::from(self.precision_bits),
            factor_bits: self.options.factor_bits,
        }
    }

    /// `x := x + correction`, each entry rounded once.
    fn add(&mut self, correction: &Matrix) -> Result<()> {
        let precision_bits = self.x.precision_bits();
        each_column(&self.ctx, &mut self.x, Vec::new, |old: &mut Vec<u64>, mut column| {
            for row in 0..correction.rows() {
                let added = correction.get(row, column.index);
                if added.head.is_zero() {
                    continue;
                }
                let known = column.get(row);
                old.clear();
                old.extend_from_slice(known.limbs);
                let known = ExactEntry::from(FloatRef { limbs: old, ..known });
                column.set(row, |limbs| {
                    round_sum(&known, &ExactEntry::from(added), precision_bits, limbs).unwrap_or_else(|| {
                        // The exponents lie so far apart that the smaller number does not matter.
                        let larger = if known.top() > ExactEntry::from(added).top() { known } else { added.into() };
                        round_integer(larger.negative, larger.magnitude, larger.exponent, precision_bits, limbs)
                    })
                });
                check_exponent(column.get(row).head.exponent(), row, column.index)?;
            }
            Ok(())
        })
    }

    /// Rounds `x` into `solution` and measures it: the bound of its backward error.
    fn finish(self, solution: &mut Matrix) -> Result<i64> {
        let place = SolutionPlace { columns: 0..solution.cols(), transposed: false };
        store(&self.ctx, &self.x, &place, &mut *solution)?;
        let bits = self.precision_bits + REFINE_GUARD_BITS;
        self.ctx.release();
        let residual = self.system.residual(&self.ctx, solution, bits)?;
        Ok(residual.size.componentwise_log2)
    }
}

/// A symmetric matrix and right-hand sides, ready for residuals.
struct SymmetricSystem<'a> {
    a: Matrix,
    b: MatrixView<'a>,
    /// Column `j` of `A` is scaled by `2^-exponents[j]`.
    exponents: Vec<i64>,
    scaled: ScaledHeads,
    /// The norm exponent of each scaled row.
    norms: Vec<i64>,
}

/// Heads of a scaled matrix, and of its magnitudes.
struct ScaledHeads {
    signed: Vec<u64>,
    sizes: Vec<u64>,
}

/// A residual and its size.
struct Residual {
    /// `B - A X`; each entry is off by at most `2^-bits (|A| |X| + |B|)` for the requested `bits`, and by one rounding.
    pub matrix: Matrix,
    /// Its size.
    pub size: ResidualSizes,
}

/// Two measures of a residual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ResidualSizes {
    /// At least `log2` of the largest `|r| / (|A| |x| + |b|)`; `i64::MIN` where all are 0.
    pub componentwise_log2: i64,
    /// About `log2` of the largest residual relative to the norms of its row and column.
    pub normwise_log2: i64,
}

impl ResidualSizes {
    const LEAST: ResidualSizes = ResidualSizes { componentwise_log2: i64::MIN, normwise_log2: i64::MIN };

    fn max(self, other: ResidualSizes) -> ResidualSizes {
        ResidualSizes {
            componentwise_log2: self.componentwise_log2.max(other.componentwise_log2),
            normwise_log2: self.normwise_log2.max(other.normwise_log2),
        }
    }
}

/// Bytes of the scaled heads of unknowns, and of their norms.
pub(super) fn scaled_bytes(order: usize, columns: usize) -> u64 {
    8 * (2 * order as u64 + 1).saturating_mul(columns as u64)
}

impl<'a> SymmetricSystem<'a> {
    /// Copies the lower triangle of `a` into both.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(a: MatrixView<'_>, b: MatrixView<'a>) -> Result<SymmetricSystem<'a>> {
        let order = a.rows();
        let mut full = Matrix::zeros(order, order, a.precision_bits())?;
        for col in 0..order {
            for row in col..order {
                full.set(row, col, a.get(row, col));
                full.set(col, row, a.get(row, col));
            }
        }
        let exponents: Vec<i64> = (0..order).map(|i| diagonal_exponent(a.get(i, i).head.exponent())).collect();
        let scaled = ScaledHeads::new(&full, |_, col| -exponents[col]);
        let row_heads = |row: usize| scaled.signed[row..].iter().step_by(order).map(|&head| Head(head));
        let norms = (0..order).map(|row| column_exponent(row_heads(row))).collect();
        Ok(SymmetricSystem { a: full, b, exponents, scaled, norms })
    }

    /// Bytes held of a matrix of `order` rows.
    pub fn bytes_for(order: usize, precision_bits: u32) -> u64 {
        let heads = 16 * (order as u64 + 1).saturating_mul(order as u64);
        Matrix::bytes_for(order, order, precision_bits).saturating_add(heads)
    }

    /// The residual of `x`, correct to `bits` bits relative to `|A| |X| + |B|`.
    ///
    /// # Errors
    /// The errors of a product.
    pub fn residual(&self, ctx: &Context, x: &Matrix, bits: u32) -> Result<Residual> {
        let order = self.a.rows();
        let scaled = ScaledHeads::new(x, |row, _| self.exponents[row]);
        let column_heads = |column: &[u64]| column_exponent(column.iter().map(|&head| Head(head)));
        let norms: Vec<i64> = scaled.signed.chunks(order.max(1)).map(column_heads).collect();
        let holding = ctx.holding(scaled_bytes(order, x.cols()));
        let product = |ctx: &Context, (left, right), minuend, precision_bits| -> Result<Matrix> {
            let (mut result, working_bits) = (Matrix::empty(), precision_bits + guard_bits(order));
            let (left, right) = (self.a.view().with_heads(left), x.view().with_heads(right));
            let accuracy = Accuracy::Norm;
            BlockProduct { left, right, minuend, precision_bits, working_bits, accuracy }.run(ctx, &mut result)?;
            Ok(result)
        };
        let signed = (&self.scaled.signed[..], &scaled.signed[..]);
        let matrix = product(&holding, signed, Some(self.b), residual_bits(bits))?;
        let sizes = (&self.scaled.sizes[..], &scaled.sizes[..]);
        let products = product(&holding.holding(matrix.bytes()), sizes, None, RESIDUAL_SIZE_BITS)?;
        self.measure(ctx, x, bits, ResidualParts { matrix, products, norms })
    }

    /// Compares each entry with its size; recomputes entries whose size is small relative to their norm.
    fn measure(&self, ctx: &Context, x: &Matrix, bits: u32, parts: ResidualParts) -> Result<Residual> {
        let ResidualParts { mut matrix, products, norms } = parts;
        let (worst, precision_bits) = (Mutex::new(ResidualSizes::LEAST), matrix.precision_bits());
        let sums = || (FixedSum::new(precision_bits), FixedSum::new(RESIDUAL_SIZE_BITS));
        each_column(ctx, &mut matrix, sums, |(sum, size_sum), mut column| {
            let mut largest = ResidualSizes::LEAST;
            for row in 0..self.a.rows() {
                let entry = ResidualEntry { system: self, x, row, col: column.index };
                let norm = self.norms[row] + norms[entry.col];
                let right = Magnitude::of(self.b.get(row, entry.col));
                let mut whole = Magnitude::of(products.get(row, entry.col)).plus(right);
                if whole.is_zero() || whole.exponent() < norm - i64::from(RESIDUAL_COVERED_BITS) {
                    column.set(row, |limbs| entry.sum(sum, limbs));
                    whole = entry.size(size_sum);
                }
                if !whole.is_zero() {
                    let residual = Magnitude::of(column.get(row));
                    let componentwise_log2 = residual.log2_over(&whole, -i64::from(bits) - 1);
                    let normwise_log2 = residual.exponent().saturating_sub(norm.max(whole.exponent()));
                    largest = largest.max(ResidualSizes { componentwise_log2, normwise_log2 });
                }
            }
            let mut worst = worst.lock().unwrap_or_else(PoisonError::into_inner);
            *worst = worst.max(largest);
            Ok(())
        })?;
        Ok(Residual { matrix, size: worst.into_inner().unwrap_or_else(PoisonError::into_inner) })
    }
}

impl ScaledHeads {
    /// Heads of `matrix` with the entry at each place times `2^shift(row, col)`.
    fn new(matrix: &Matrix, shift: impl Fn(usize, usize) -> i64) -> ScaledHeads {
        let rows = matrix.rows();
        let scale = |(at, &word): (usize, &u64)| scaled_head(Head(word), shift(at % rows, at / rows)).0;
        let signed: Vec<u64> = matrix.parts().0.iter().enumerate().map(scale).collect();
        let sizes = signed.iter().map(|&word| size(Head(word)).0).collect();
        ScaledHeads { signed, sizes }
    }
}

/// The head of the magnitude.
fn size(head: Head) -> Head {
    if head.is_negative() { head.negated() } else { head }
}

/// The results of the products of a residual.
struct ResidualParts {
    matrix: Matrix,
    /// `|A| |X|`, up to a part of the norms.
    products: Matrix,
    /// The norm exponent of each scaled column of `X`.
    norms: Vec<i64>,
}

/// One entry of a residual, to be summed term by term.
struct ResidualEntry<'a> {
    system: &'a SymmetricSystem<'a>,
    x: &'a Matrix,
    row: usize,
    col: usize,
}

impl ResidualEntry<'_> {
    /// `b - sum a_k x_k`, rounded into `limbs`.
    fn sum(&self, sum: &mut FixedSum, limbs: &mut [u64]) -> Head {
        self.add_terms(sum, Sign::Minus, |value| value);
        sum.round(limbs)
    }

    /// `|b| + sum |a_k| |x_k|`.
    fn size(&self, sum: &mut FixedSum) -> Magnitude {
        let mut limbs = [0];
        self.add_terms(sum, Sign::Plus, |value| FloatRef { head: size(value.head), ..value });
        let head = sum.round(&mut limbs);
        Magnitude::of(FloatRef { head, limbs: &limbs })
    }

    fn add_terms(&self, sum: &mut FixedSum, sign: Sign, part: fn(FloatRef<'_>) -> FloatRef<'_>) {
        let ResidualEntry { system, x, row, col } = self;
        let right = system.b.get(*row, *col);
        let pairs = (0..x.rows()).map(|k| (part(system.a.get(*row, k)), part(x.get(k, *col))));
        sum.set(part(right), pairs, sign);
    }
}
