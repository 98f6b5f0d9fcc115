//! The inverse of the matrix behind a factor: the inverse of the row-scaled factor, and the product with its transpose.

use crate::context::{Context, MemoryBudget, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::math::bound::{cholesky_inverse_guard_bits, guard_bits};
use crate::math::float::Head;
use crate::math::scale::column_exponent;
use crate::matrix::{Destination, Matrix, Symmetric, SymmetricMatrix, check_exponent};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with, plan_cholesky};
use crate::ops::columns::{Column, each_column};
use crate::ops::estimate::optional_estimate;
use crate::ops::product::block::{BlockProduct, BlockShape, maximum_working_bits, plan};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::solve::SolvePlan;
use crate::ops::solve::band::{Band, Spaces, copy_rows};
use crate::ops::solve::cut::{TriangleCut, larger, least_limit};
use crate::ops::solve::memory::{Bands, SolveMemory};
use crate::ops::solve::problem::{LOWER, Method, Path, SolveBits, SystemShape};
use crate::ops::solve::run::{TriangleSolver, make_room};
use crate::ops::solve::system::SolveReport;
use crate::ops::solve::triangle::{ScaledRows, scaled};
use std::ops::Range;
use std::time::Instant;

/// Columns of the inverse factor that are found together: their rows above the first column's diagonal are 0. Fixed,
/// since it affects the last bits.
const STRIP_COLUMNS: usize = 256;

/// Computes `A^-1`; see [`inverse_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 1.0])?;
/// assert_eq!(sunzi::inverse(&ctx, &a, 128)?.view().to_f64s(), [1.0, -1.0, -1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`inverse_with`].
pub fn inverse<'a>(ctx: &Context, a: impl Into<Symmetric<'a>>, precision_bits: u32) -> Result<SymmetricMatrix> {
    Ok(inverse_with(ctx, a, precision_bits, &CholeskyOptions::default())?.result)
}

/// The inverse of a symmetric positive definite `A`, from its Cholesky factor at `precision_bits` bits.
///
/// Accuracy: that of [`crate::cholesky_with`], followed by that of [`Cholesky::inverse`]. The options are options of
/// the factorisation. Cost: about `n^3 / 2` word products for each prime.
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let inverse = sunzi::inverse_with(&ctx, &a, 128, &CholeskyOptions::new().digits(true))?;
/// assert!((inverse.result.get(0, 0).to_float(128) * 3u32 - 2u32).abs() < 1e-37); // 2/3
/// assert!(inverse.report.digits.unwrap() > 35.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::cholesky_with`] and [`Cholesky::inverse`].
pub fn inverse_with<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<Outcome<SymmetricMatrix, SolveReport>> {
    let mut result = SymmetricMatrix::default();
    let (start, a) = (Instant::now(), a.into());
    let (factor, mut report) = invert_and_keep(ctx, a, precision_bits, options, &mut result)?;
    if options.digits {
        let held = ctx.holding(factor.factor().bytes()).holding(result.as_matrix().bytes());
        report.digits = optional_estimate(factor.inverse_digits_with(&held, a, result.as_matrix(), options.rounding))?;
        report.seconds = start.elapsed().as_secs_f64();
    }
    Ok(Outcome { result, report })
}

/// [`inverse_with`] into a matrix of the caller, as [`Cholesky::inverse_into`].
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Matrix, SymmetricMatrix};
/// let ctx = Context::new()?;
/// let mut inverse = SymmetricMatrix::default(); // its memory serves again in the second call
/// for scale in [1.0, 2.0] {
///     let a = Matrix::from_f64s(2, 2, 128, &[2.0 * scale, scale, scale, scale])?;
///     sunzi::inverse_into(&ctx, &a, 128, &CholeskyOptions::new(), &mut inverse)?;
/// }
/// assert_eq!(inverse.view().to_f64s(), [0.5, -0.5, -0.5, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`inverse_with`].
pub fn inverse_into<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
    result: &mut SymmetricMatrix,
) -> Result<SolveReport> {
    invert_and_keep(ctx, a.into(), precision_bits, options, result).map(|(_, report)| report)
}

/// [`inverse_into`], and the factor.
fn invert_and_keep(
    ctx: &Context,
    a: Symmetric<'_>,
    precision_bits: u32,
    options: &CholeskyOptions,
    result: &mut SymmetricMatrix,
) -> Result<(Cholesky, SolveReport)> {
    let start = Instant::now();
    // Refused before the work of a factorisation. Pivots may need fewer bits than planned, but the plan's bytes
    // suffice.
    let planned_bytes = match ctx.memory_bytes() {
        Some(_) => plan_inverse(ctx, a.order(), precision_bits, options)?.planned_bytes,
        None => u64::MAX,
    };
    let Outcome { result: factor, report } = cholesky_with(ctx, a, precision_bits, options)?;
    ctx.release(); // under a limit the tiles of the factorisation are in the way
    let ctx = ctx.holding(factor.factor().bytes());
    let inverted = factor.inverse_within(&ctx, precision_bits, planned_bytes, result)?;
    Ok((factor, inverted.after(report, start)))
}

/// Binary exponent that plans take the inverse of the row-scaled factor to have: pivots within `2^-21` of the norms of
/// their rows, and the four bits by which a call overestimates.
const EXPECTED_NORM_EXPONENT: i64 = 25;

/// The plan of [`inverse_with`] for a matrix of `order` rows: the factorisation, followed by the inverse while the
/// factor is held.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. The plan assumes that the
/// pivots are at least `2^-21` of the norms of their rows: with smaller pivots a call computes with more bits, and
/// needs correspondingly more memory. If the precision is within some tens of bits of the maximum of a kernel, a call
/// whose pivots differ from this assumption may run on another kernel than planned, which needs more or fewer bytes for
/// each entry.
///
/// ```
/// use sunzi::{CholeskyOptions, Context, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_inverse(&ctx, 100, 256, &CholeskyOptions::new())?;
/// assert_eq!((plan.operation, plan.order, plan.precision_bits), ("inverse", 100, 256));
/// assert!(plan.least_bytes <= plan.planned_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Precision`]; [`Error::DimensionOverflow`]; [`Error::MemoryLimit`] with the smallest limit that suffices.
pub fn plan_inverse(ctx: &Context, order: usize, precision_bits: u32, options: &CholeskyOptions) -> Result<SolvePlan> {
    Matrix::check_size(order, order, precision_bits)?;
    let factorisation = plan_cholesky(&ctx.with_memory_bytes(None), order, precision_bits, options)?;
    let working_bits = working_bits(ctx, precision_bits, order, EXPECTED_NORM_EXPONENT)?;
    let method = method(order);
    let cut = TriangleCut::expected(order, working_bits, method);
    let held_bytes = 2 * Matrix::bytes_for(order, order, precision_bits) + ScaledRows::bytes(order);
    let strips =
        |memory: MemoryBudget| StripPlan::new(&ctx.with_memory(memory.holding(held_bytes)), cut, precision_bits);
    let least = least_limit(strips(ctx.memory().within(Some(0))).map(|strips| strips.planned_bytes))?;
    let least_bytes = ctx.memory().admit_total(least.max(ctx.memory().total(factorisation.planned_bytes)))?;
    let StripPlan { bands, planned_bytes, kept_bytes, .. } = strips(ctx.memory())?;
    // Without a limit the context keeps the tiles of the factorisation, and the windows of the products lie in them.
    let beside_tiles = match ctx.memory_bytes() {
        None => kept_bytes - Matrix::bytes_for(order, order, precision_bits),
        Some(_) => ctx.memory().held_bytes(),
    };
    let tiles_bytes = factorisation.planned_bytes.saturating_add(beside_tiles);
    Ok(SolvePlan {
        operation: "inverse",
        order,
        columns: order,
        precision_bits,
        working_bits,
        path: method.path,
        accuracy: Accuracy::Norm,
        kernel: cut.product_kernel(ctx).name(),
        threads: ctx.threads(),
        bands: bands.count() * self::strips(order).count(),
        band_columns: bands.columns,
        factorisation_bytes: factorisation.planned_bytes,
        least_bytes,
        planned_bytes: planned_bytes.max(tiles_bytes),
    })
}

impl Cholesky {
    /// The inverse of `L L^T`, rounded to `precision_bits` bits.
    ///
    /// Accuracy: with `Z = (L L^T)^-1`, taking the factor as exact,
    /// `|computed - Z|_ij <= 2^(2 - precision_bits) sqrt(z_ii z_jj)`, for any condition. The bits depend only on the
    /// factor and the precision. Cost: about `n^3 / 3` word products for each prime, with additional bits, half the
    /// binary logarithm of the condition number. Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 1.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// assert_eq!(factor.inverse(&ctx, 128)?.view().to_f64s(), [1.0, -1.0, -1.0, 2.0]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`]; [`Error::Precision`] also if the condition requires more bits than the kernel has.
    pub fn inverse(&self, ctx: &Context, precision_bits: u32) -> Result<SymmetricMatrix> {
        let mut result = SymmetricMatrix::default();
        self.inverse_into(ctx, precision_bits, &mut result)?;
        Ok(result)
    }

    /// [`Cholesky::inverse`] into a matrix of the caller, which is replaced if its order or precision do not fit.
    ///
    /// After an error the matrix is empty.
    ///
    /// # Errors
    /// As [`Cholesky::inverse`].
    pub fn inverse_into(
        &self,
        ctx: &Context,
        precision_bits: u32,
        result: &mut SymmetricMatrix,
    ) -> Result<SolveReport> {
        self.inverse_within(ctx, precision_bits, u64::MAX, result)
    }

    /// [`Cholesky::inverse_into`] within `planned_bytes` where they are enough, else within the context's limit.
    fn inverse_within(
        &self,
        ctx: &Context,
        precision_bits: u32,
        planned_bytes: u64,
        result: &mut SymmetricMatrix,
    ) -> Result<SolveReport> {
        let start = Instant::now();
        let order = self.factor().rows();
        self.scaled_doubles.heed_limit(ctx);
        // While it is half written it is not symmetric, so it is moved out of sight.
        let mut matrix = std::mem::take(result).into_matrix();
        Destination::Matrix(&mut matrix).prepare((order, order), precision_bits)?;
        let shape = SystemShape { order, columns: order };
        let bits = SolveBits { precision: precision_bits, working: precision_bits };
        let mut report = SolveReport::new(ctx, "inverse", shape, bits, method(order));
        if order == 0 {
            *result = SymmetricMatrix::trusted(matrix);
            return Ok(report);
        }
        let scaled = ScaledRows::new(self.factor(), &[]);
        let ctx = &ctx.holding(matrix.bytes()).holding(ScaledRows::bytes(order));
        // A diagonal entry of the inverse factor is the reciprocal of the factor's; a guess too low is corrected once.
        let head = |i: usize| self.factor().get(i, i).head.exponent() - scaled.exponents[i];
        let mut norm_exponent = (0..order).map(|i| 1 - head(i)).max().unwrap_or(0).max(0) + 4;
        loop {
            let working_bits = working_bits(ctx, precision_bits, order, norm_exponent)?;
            let plan = |ctx: &Context| Inversion::plan(ctx, &scaled, working_bits, precision_bits);
            let mut work = ctx.within_plan(planned_bytes, plan)?;
            let inverse = work.invert()?;
            let found = column_exponent(inverse.parts().0.iter().map(|&head| Head(head)));
            if found <= norm_exponent {
                work.multiply(&inverse, &scaled.exponents, &mut matrix)?;
                *result = SymmetricMatrix::trusted(matrix);
                (report.working_bits, report.planned_bytes) = (working_bits, work.strips.planned_bytes);
                report.kernel = work.solver.cut().product_kernel(ctx).name();
                report.bands = work.strips.bands.count() * strips(order).count();
                report.seconds = start.elapsed().as_secs_f64();
                return Ok(report);
            }
            norm_exponent = found + 1;
        }
    }
}

/// The computation of the columns of a strip.
fn method(order: usize) -> Method {
    Method::by_norms(Path::choose(LOWER, order, order.min(STRIP_COLUMNS)))
}

fn working_bits(ctx: &Context, precision_bits: u32, order: usize, norm_exponent: i64) -> Result<u32> {
    let guards = cholesky_inverse_guard_bits(order, norm_exponent) + i64::from(guard_bits(order));
    let maximum_bits = (i64::from(maximum_working_bits(ctx)) - guards).max(0) as u64;
    if !(2..=maximum_bits).contains(&u64::from(precision_bits)) {
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    Ok(precision_bits + cholesky_inverse_guard_bits(order, norm_exponent) as u32)
}

/// The data of one try.
struct Inversion<'a> {
    solver: TriangleSolver<'a>,
    precision_bits: u32,
    strips: StripPlan,
}

/// The memory of a try: strips of the inverse factor, then the products of its rows.
struct StripPlan {
    memory: SolveMemory,
    bands: Bands,
    planned_bytes: u64,
    /// Without a limit: bytes of matrices that are held until the end, including those of the caller and the context.
    kept_bytes: u64,
}

impl StripPlan {
    /// The plan for a factor of `order` rows, in a context that holds the result and the heads of the scaled factor.
    fn new(ctx: &Context, cut: TriangleCut, precision_bits: u32) -> Result<StripPlan> {
        let order = cut.order;
        let columns = order.min(STRIP_COLUMNS);
        let holding = ctx.holding(Matrix::bytes_for(order, order, cut.working_bits));
        let memory = SolveMemory::new(holding.clone(), vec![cut]);
        let bands = Bands::widest(columns);
        // Without a limit the windows of the strips are kept in addition to those of the products where they are
        // larger.
        let first_needs = match ctx.memory_bytes() {
            None => memory.first_needs(bands.columns)?,
            Some(_) => WorkspaceNeeds::default(),
        };
        let mut products = Ok(0);
        for rows in strips(order) {
            let shape = BlockShape { rows: rows.len(), cols: rows.end, contracted: order - rows.start };
            let need = plan(&holding, shape, precision_bits, product_bits(precision_bits, order));
            let bytes = need.map(|plan| plan.planned_bytes + first_needs.beyond(&plan.needs()));
            products = larger(products, bytes.map(|bytes| holding.memory().total(bytes)));
        }
        let planned = match ctx.memory_bytes() {
            None => memory.unlimited_bytes(bands.columns).map(|bytes| (bands, bytes)),
            Some(_) => memory.plan(columns),
        };
        let bands = planned.as_ref().map_or(bands, |planned| planned.0);
        let kept_bytes = match ctx.memory_bytes() {
            None => memory.held_beside_windows(columns)?,
            Some(_) => memory.ctx.memory().held_bytes(),
        };
        let beside_products = kept_bytes - memory.ctx.memory().held_bytes();
        let planned_bytes = larger(planned.map(|planned| planned.1), products.map(|bytes| bytes + beside_products))?;
        Ok(StripPlan { memory, bands, planned_bytes, kept_bytes })
    }
}

impl<'a> Inversion<'a> {
    /// Plans the strips of the inverse factor and the products of its rows, and makes room for them.
    fn plan(
        ctx: &Context,
        scaled: &'a ScaledRows<'_>,
        working_bits: u32,
        precision_bits: u32,
    ) -> Result<Inversion<'a>> {
        let order = scaled.exponents.len();
        let solver = TriangleSolver::new(scaled.lower()?, working_bits, method(order));
        let strips = StripPlan::new(ctx, solver.cut(), precision_bits)?;
        if ctx.memory_bytes().is_some() {
            make_room(ctx, strips.planned_bytes);
        }
        Ok(Inversion { solver, precision_bits, strips })
    }

    /// `L'^-1`, lower triangular: the solution for the identity, strip by strip.
    fn invert(&mut self) -> Result<Matrix> {
        let StripPlan { memory, bands, .. } = &self.strips;
        let (ctx, cut) = (&memory.ctx, self.solver.cut());
        let order = cut.order;
        let mut inverse = Matrix::zeros(order, order, cut.working_bits)?;
        let mut spaces = Spaces::take(ctx)?;
        for strip in strips(order) {
            let bands = Bands { total: strip.len(), ..*bands };
            for index in 0..bands.count() {
                let band = bands.band(index);
                let columns = strip.start + band.start..strip.start + band.end;
                spaces.w.reshape(order, columns.len(), cut.working_bits)?;
                spaces.w.clear();
                let unit = |(): &mut (), mut column: Column<'_>| {
                    column.set_one(columns.start + column.index);
                    Ok(())
                };
                each_column(ctx, &mut spaces.w, || (), unit)?;
                let Bands { columns: widest, limit_bytes, .. } = bands;
                let band = Band { first_row: strip.start, ..Band::first(memory, widest, limit_bytes) };
                self.solver.run(&band, (0..columns.len()).collect(), &mut spaces)?;
                copy_rows(ctx, &spaces.w, 0, &columns, &mut inverse)?;
            }
        }
        spaces.give_back(ctx);
        Ok(inverse)
    }

    /// `D^-1 V^T V D^-1` for a lower triangular `V` and `D` with the powers `exponents`, into `result`.
    fn multiply(&self, v: &Matrix, exponents: &[i64], result: &mut Matrix) -> Result<()> {
        let (ctx, order, precision_bits) = (&self.strips.memory.ctx, v.rows(), self.precision_bits);
        let working_bits = product_bits(precision_bits, order);
        ctx.release();
        for rows in strips(order) {
            let below = |columns: Range<usize>| v.view().block(rows.start..order, columns);
            let (left, right) = (below(rows.clone())?.transposed(), below(0..rows.end)?);
            let mut product = Matrix::zeros(rows.len(), rows.end, precision_bits)?;
            let accuracy = Accuracy::Norm;
            let block = BlockProduct { left, right, minuend: None, precision_bits, working_bits, accuracy };
            block.run(ctx, &mut product)?;
            for col in 0..rows.end {
                for row in rows.start.max(col)..rows.end {
                    let value = scaled(product.get(row - rows.start, col), -exponents[row] - exponents[col]);
                    check_exponent(value.head.exponent(), row, col)?;
                    result.set(row, col, value);
                    result.set(col, row, value);
                }
            }
        }
        Ok(())
    }
}

fn strips(order: usize) -> impl Iterator<Item = Range<usize>> {
    (0..order).step_by(STRIP_COLUMNS).map(move |start| start..(start + STRIP_COLUMNS).min(order))
}

/// The bits of all products of rows, the same so that one engine serves all.
fn product_bits(precision_bits: u32, order: usize) -> u32 {
    precision_bits + guard_bits(order)
}
