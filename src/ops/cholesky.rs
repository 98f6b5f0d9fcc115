//! Cholesky factorisation `A = L L^T` in fixed point: exact updates, one rounding per entry of the factor.
//!
//! Promise: the bits of the factor, and the index at which it fails, depend only on the matrix and the precision.

use crate::context::{Context, Workspace};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::factor::direct::Direct;
use crate::ops::factor::entrywise::{self, RangeBits};
use crate::ops::factor::kernel::{engine_for, with_traffic};
pub use crate::ops::factor::options::CholeskyOptions;
use crate::ops::factor::plan::FactorPlan;
pub use crate::ops::factor::plan::{CholeskyPlan, UpdatePlan, plan_cholesky};
use crate::ops::factor::problem::{FactorInput, FactorProblem, SQUARE, working_bits};
pub use crate::ops::factor::report::CholeskyReport;
use crate::ops::factor::run::{Ending, run};
use crate::ops::factor::spans::Clock;
pub use crate::ops::factor::spans::{Span, TaskKind, TaskTimes};
use crate::ops::factor::{diagnose, reference, unpoisoned};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use rug::Float;
use rug::float::{Constant, prec_max};
use std::sync::{Arc, Mutex, OnceLock};

/// A factor `L` with `A = L L^T`; the default value is the factor of the 0 x 0 matrix.
#[derive(Clone, Debug, Default)]
pub struct Cholesky {
    factor: Matrix,
    /// Accuracy that solves promise.
    pub(crate) accuracy: Accuracy,
    /// Found by the first solve that needs them.
    pub(crate) row_norms: OnceLock<Vec<i64>>,
    /// Fixed-point bits of the factorisation, where it was made here.
    pub(crate) working_bits: Option<u32>,
    /// Found by the first estimate that needs it.
    pub(crate) inverse_norm: OnceLock<Float>,
    /// Found by the first estimate that needs it.
    pub(crate) scaled_inverse_norm: OnceLock<ScaledInverseNorm>,
    /// Usual upper bound of the error of its logarithm: see `ops::estimate`.
    pub(crate) log_det_spread: OnceLock<Float>,
    /// The factor in doubles, column by column, each row scaled by its norm: kept by the first estimate where memory
    /// has no limit, until a call that has one.
    pub(crate) scaled_doubles: KeptDoubles,
}

/// Doubles that a factor keeps between calls without a memory limit. A copy of the factor has none at first.
#[derive(Debug, Default)]
pub(crate) struct KeptDoubles(Mutex<Option<Arc<Vec<f64>>>>);

impl Clone for KeptDoubles {
    fn clone(&self) -> KeptDoubles {
        KeptDoubles::default()
    }
}

impl KeptDoubles {
    /// Releases them before a call with a memory limit, which does not count them.
    pub fn heed_limit(&self, ctx: &Context) {
        if ctx.memory().limit_bytes().is_some() {
            *unpoisoned(self.0.lock()) = None;
        }
    }

    /// The kept doubles, for a call in this context.
    pub fn for_call(&self, ctx: &Context) -> Option<Arc<Vec<f64>>> {
        self.heed_limit(ctx);
        unpoisoned(self.0.lock()).clone()
    }

    /// Keeps them, where the context has no limit.
    pub fn keep(&self, ctx: &Context, entries: &Arc<Vec<f64>>) {
        if ctx.memory().limit_bytes().is_none() {
            *unpoisoned(self.0.lock()) = Some(entries.clone());
        }
    }
}

/// The result of the first estimate of a factor: see [`Cholesky::scaled_condition`].
#[derive(Clone, Debug)]
pub(crate) struct ScaledInverseNorm {
    /// The estimate.
    pub norm: Float,
    /// Bits of solves with which two digits of any inverse image exceed their own rounding, where the factor has as
    /// many.
    pub solve_bits: u32,
}

/// Factors `A = L L^T`; see [`cholesky_with`].
///
/// ```
/// use sunzi::{Context, Matrix, Symmetric, SymmetricMatrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let p = Matrix::from_f64s(3, 2, 256, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let q = sunzi::syrk(&ctx, &p, 256)?;
/// assert_eq!(q.view().to_f64s(), [14.0, 32.0, 32.0, 77.0]);
/// let l = sunzi::cholesky(&ctx, &q, 256)?;
/// // A plain matrix is checked; a triangle counts only where it is named.
/// let plain = Matrix::from_f64s(2, 2, 256, &[4.0, 2.0, 1.0, 5.0])?;
/// assert!(sunzi::cholesky(&ctx, &plain, 256).is_err());
/// assert!(sunzi::cholesky(&ctx, Symmetric::lower(&plain), 256).is_ok());
/// assert!(SymmetricMatrix::new(plain).is_err());
/// # let _ = l;
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky<'a>(ctx: &Context, a: impl Into<Symmetric<'a>>, precision_bits: u32) -> Result<Cholesky> {
    Ok(cholesky_with(ctx, a, precision_bits, &CholeskyOptions::default())?.result)
}

/// The lower triangular `L` with `A = L L^T` for a symmetric positive definite `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n` (n may be 0), given as a [`SymmetricMatrix`](crate::SymmetricMatrix), as a plain matrix,
/// which is checked for symmetry, or as one triangle, see [`Symmetric`]. Accuracy:
/// `|A - L L^T|_ij <= 2^(2 - precision_bits) sqrt(a_ii a_jj)`, for any n and any condition of `A`; with
/// [`Accuracy::Entrywise`] also `|A - L L^T|_ij <= 2^(2 - precision_bits) (|L| |L^T|)_ij`. The report states whether
/// the entrywise bound was reached: entries of the factor that decay exponentially in places where entries of `A` are 0
/// may need more bits than the last attempt has. The bits depend only on `A`, the precision and the accuracy, not on
/// threads, tiles, kernel or memory limit. Cost: `n^3 / 6` word products for each of about `2 precision_bits / 52`
/// primes, and `n^2 / 2` conversions. Entrywise accuracy needs primes for `range_bits` additional bits (see the
/// report), and repeats the factorisation if these bits were too few. Source: docs/ALGORITHM.md, "Cholesky in residues"
/// and "Componentwise accuracy of Cholesky factors".
///
/// ```
/// use sunzi::{Accuracy, CholeskyOptions, Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let made = sunzi::cholesky_with(&ctx, &a, 128, &CholeskyOptions::new().accuracy(Accuracy::Norm))?;
/// assert_eq!(made.result.factor().view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// assert_eq!((made.report.operation, made.report.order), ("cholesky", 2));
/// assert_eq!(made.result.accuracy(), Accuracy::Norm); // what solves with it promise
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] with the index of the first computed pivot that is not positive;
/// [`crate::Error::NotSymmetric`]; [`crate::Error::NotSquare`] if `A` is not square; [`crate::Error::Precision`];
/// [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn cholesky_with<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<Outcome<Cholesky, CholeskyReport>> {
    let mut result = Cholesky::default();
    let report = cholesky_into(ctx, a, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`cholesky_with`] in the memory of a factor that is no longer needed, such as the result of an earlier call.
///
/// Allocating fresh memory is slow, so repeated factorisations of one size are faster this way. The memory is released
/// if the order or the precision of the old factor do not fit. After an error `result` is the factor of the 0 x 0
/// matrix.
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Matrix};
/// let ctx = Context::new()?;
/// let first = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let second = Matrix::from_f64s(2, 2, 128, &[1.0, 3.0, 3.0, 25.0])?;
/// let mut l = sunzi::cholesky(&ctx, &first, 128)?;
/// sunzi::cholesky_into(&ctx, &second, 128, &CholeskyOptions::new(), &mut l)?;
/// assert_eq!(l.factor().view().to_f64s(), [1.0, 3.0, 0.0, 4.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky_into<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
    result: &mut Cholesky,
) -> Result<CholeskyReport> {
    let memory = std::mem::take(result).factor;
    let lower = a.into().lower_view(SQUARE)?;
    let factoring = Factoring { ctx, lower, precision_bits, options, clock: Clock::new() };
    let (factor, report) = match options.accuracy {
        Accuracy::Norm => factoring.by_norms(memory)?,
        Accuracy::Entrywise => factoring.entrywise(memory)?,
    };
    *result = Cholesky::made(factor, report.working_bits).with_accuracy(options.accuracy);
    Ok(report)
}

/// A factorisation in one process, and its time so far.
struct Factoring<'a> {
    ctx: &'a Context,
    lower: MatrixView<'a>,
    precision_bits: u32,
    options: &'a CholeskyOptions,
    clock: Clock,
}

impl<'a> Factoring<'a> {
    fn by_norms(mut self, memory: Matrix) -> Result<(Matrix, CholeskyReport)> {
        let problem = self.problem(0)?;
        let done = self.run(self.ctx, &problem, problem.working_bits, Some(memory));
        self.keep_lists(problem);
        done
    }

    /// Keeps the lists of a problem for the next one.
    fn keep_lists(&self, problem: FactorProblem) {
        let mut workspace = self.ctx.workspace();
        (workspace.left_shifts, workspace.weights[1]) = (problem.exponents, problem.weights);
    }

    /// Factors with more and more bits, until each entry of the residual is as small as its own terms require.
    fn entrywise(mut self, mut memory: Matrix) -> Result<(Matrix, CholeskyReport)> {
        let order = self.lower.rows();
        let mut range = RangeBits::first(order, self.precision_bits, self.options.range_bits);
        let mut problem = self.problem(range.bits)?;
        let planned_bits = problem.working_bits;
        range = range.for_depth(entrywise::deepest_entry(self.input(&problem)));
        let check_bytes = entrywise::check_bytes(order);
        let beside = self.ctx.holding(check_bytes);
        loop {
            if problem.working_bits != self.working_bits(range.bits)? {
                problem = self.problem(range.bits)?;
            }
            let (factor, report) = self.run(&beside, &problem, planned_bits, Some(memory))?;
            let needed = entrywise::needed_bits(&beside, self.input(&problem), &factor, range.bits)?;
            if let Some(next) = range.next(needed) {
                (memory, range) = (factor, next);
                continue;
            }
            let report = CholeskyReport { seconds: self.clock.now(), ..report };
            return Ok((factor, report.entrywise(range, needed, check_bytes)));
        }
    }

    fn working_bits(&self, range_bits: u32) -> Result<u32> {
        Ok(working_bits(self.precision_bits, self.ctx.maximum_modulus_bits())? + range_bits)
    }

    fn problem(&self, range_bits: u32) -> Result<FactorProblem> {
        let mut workspace = self.ctx.workspace();
        let Workspace { left_shifts, weights: [_, weights], .. } = &mut *workspace;
        let (exponents, weights) = (std::mem::take(left_shifts), std::mem::take(weights));
        FactorProblem::in_lists(exponents, weights, self.lower, self.precision_bits, self.working_bits(range_bits)?)
    }

    fn input<'p>(&self, problem: &'p FactorProblem) -> FactorInput<'p>
    where
        'a: 'p,
    {
        FactorInput { problem, lower: self.lower }
    }

    /// One factorisation, in `memory` where that fits. Where it takes more working bits than `planned_bits`, and its
    /// tiles have no room under the limit, the same integers are formed one after the other.
    fn run(
        &mut self,
        ctx: &Context,
        problem: &FactorProblem,
        planned_bits: u32,
        memory: Option<Matrix>,
    ) -> Result<(Matrix, CholeskyReport)> {
        let FactorProblem { rows, order, working_bits, .. } = *problem;
        let (input, is_longer) = (self.input(problem), working_bits > planned_bits);
        let memory = memory.filter(|memory| memory.fits(order, order, self.precision_bits));
        let admitted = |direct: &Direct| ctx.memory().admit(direct.bytes(self.precision_bits));
        let least = || {
            Direct::least(ctx, rows, working_bits, self.options).filter(|direct| is_longer && admitted(direct).is_ok())
        };
        if let Some(direct) = Direct::choose(ctx, rows, working_bits, self.options) {
            return match (admitted(&direct), least()) {
                (Err(_), Some(least)) => self.run_directly(ctx, input, &least, memory),
                (admitted, _) => admitted.and_then(|_| self.run_directly(ctx, input, &direct, memory)),
            };
        }
        let (engine, kernel) = engine_for(ctx, order, self.options.tile_rows, working_bits)?;
        let plan = match FactorPlan::new(ctx, order, self.precision_bits, self.options.tile_rows, &*engine) {
            Err(refusal @ Error::MemoryLimit { .. }) => {
                let Some(direct) = least() else { return Err(refusal) };
                return self.run_directly(ctx, input, &direct, memory);
            }
            plan => plan?,
        };
        let (ending, devices) = with_traffic(&*engine, || run(ctx, input, &plan, &*engine, memory, &mut self.clock));
        match ending? {
            Ending::Factor(factor) if problem.is_whole() => {
                let report = CholeskyReport::new(problem, &plan, &*engine, &mut self.clock);
                Ok((factor, CholeskyReport { kernel: kernel.name(), devices, ..report }))
            }
            Ending::Factor(factor) => Err(diagnose::failure(input, order, &factor, None)),
            Ending::Failed(index, factor, pivot) => Err(diagnose::failure(input, index, &factor, pivot)),
        }
    }

    /// One factorisation without tiles.
    fn run_directly(
        &self,
        ctx: &Context,
        input: FactorInput<'_>,
        direct: &Direct,
        memory: Option<Matrix>,
    ) -> Result<(Matrix, CholeskyReport)> {
        let problem = input.problem;
        let factor = match problem.is_whole() {
            true => direct.factor(ctx, input, memory)?,
            false => None,
        };
        let report = CholeskyReport::direct(problem, direct.bytes(self.precision_bits), self.clock.now());
        factor.map_or_else(|| by_definition(input), Ok).map(|factor| (factor, report))
    }
}

/// [`cholesky_with`] by its definition, one integer after the other: the reference for the tests of every other path;
/// with `range_bits` bits beyond those of the norms.
///
/// # Errors
/// As [`cholesky_with`].
#[doc(hidden)]
pub fn cholesky_reference<'a>(a: impl Into<Symmetric<'a>>, precision_bits: u32, range_bits: u32) -> Result<Cholesky> {
    let lower = a.into().lower_view(SQUARE)?;
    let problem = &FactorProblem::new(lower, precision_bits, working_bits(precision_bits, 11_000)? + range_bits)?;
    Ok(Cholesky::new(by_definition(FactorInput { problem, lower })?, Accuracy::Norm))
}

/// The factor by its definition, or the error where there is none.
fn by_definition(input: FactorInput<'_>) -> Result<Matrix> {
    let problem = input.problem;
    match reference::factor(input) {
        Ok(rows) if problem.is_whole() => rows.to_matrix(problem),
        Ok(rows) => Err(diagnose::failure(input, problem.order, &rows.to_matrix(problem)?, None)),
        Err(reference::Failed { index, rows, pivot }) => {
            Err(diagnose::failure(input, index, &rows.to_matrix(problem)?, pivot))
        }
    }
}

impl Cholesky {
    fn new(factor: Matrix, accuracy: Accuracy) -> Cholesky {
        Cholesky { factor, accuracy, ..Cholesky::default() }
    }

    /// A factor by norms that was made here, with `working_bits` fixed-point bits.
    pub(crate) fn made(factor: Matrix, working_bits: u32) -> Cholesky {
        Cholesky { working_bits: Some(working_bits), ..Cholesky::new(factor, Accuracy::Norm) }
    }

    /// The same factor with another accuracy of its solves. By default a factor computed here solves with the accuracy
    /// of its factorisation, and a factor made elsewhere with entrywise accuracy.
    #[must_use]
    pub fn with_accuracy(self, accuracy: Accuracy) -> Cholesky {
        Cholesky { accuracy, ..self }
    }

    /// Accuracy of solves with the factor.
    pub fn accuracy(&self) -> Accuracy {
        self.accuracy
    }

    /// The same factor, with the fixed-point bits with which it was made: [`Cholesky::log_det_digits`] uses them for a
    /// factor that was stored and read again.
    #[must_use]
    pub fn with_working_bits(self, working_bits: Option<u32>) -> Cholesky {
        Cholesky { working_bits, log_det_spread: OnceLock::new(), ..self }
    }

    /// Fixed-point bits of the factorisation; `None` for a factor made elsewhere.
    pub fn working_bits(&self) -> Option<u32> {
        self.working_bits
    }

    /// A place for a factor in the memory of a matrix that is no longer needed, for [`cholesky_into`]. Before that call
    /// the value is not a valid factor.
    pub fn with_memory(memory: Matrix) -> Cholesky {
        Cholesky::new(memory, Accuracy::default())
    }

    /// A factor made elsewhere; entries above its diagonal are not read.
    ///
    /// ```
    /// use sunzi::{Cholesky, Context, Matrix};
    /// let ctx = Context::new()?;
    /// let factor = Cholesky::from_factor(Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 0.0, 2.0])?)?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[8.0, 12.0])?;
    /// assert_eq!(factor.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 2.0]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::NotSquare`] if it is not square, [`crate::Error::Singular`] for a zero on its diagonal.
    pub fn from_factor(mut factor: Matrix) -> Result<Cholesky> {
        let (rows, cols) = (factor.rows(), factor.cols());
        if rows != cols {
            return Err(Error::NotSquare { operation: "a Cholesky factor", rows, cols });
        }
        match (0..rows).find(|&i| factor.get(i, i).head.is_zero()) {
            Some(index) => Err(Error::Singular { index }),
            None => {
                factor.clear_above_diagonal();
                Ok(Cholesky::new(factor, Accuracy::default()))
            }
        }
    }

    /// The factor: lower triangular, zeros above the diagonal.
    pub fn factor(&self) -> &Matrix {
        &self.factor
    }

    /// The factor, by value.
    pub fn into_factor(self) -> Matrix {
        self.factor
    }

    /// `log det A = 2 sum log l_ii`, to nearly the precision of the factor; see [`log_det_of`].
    ///
    /// ```
    /// use sunzi::{Context, Matrix, rug::Float};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?; // its determinant is 16
    /// let log_det = sunzi::cholesky(&ctx, &a, 128)?.log_det();
    /// assert!((log_det - Float::with_val(128, 16).ln()).abs() < 1e-37);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    pub fn log_det(&self) -> Float {
        log_det_of(&self.factor, self.factor.precision_bits())
    }
}

/// `log det A = 2 sum log |l_ii|` for a factor of `A = L L^T`, at `precision_bits` bits.
///
/// Only the diagonal of `factor` is read; `factor` may also be a matrix of one column, the diagonal. A zero on it gives
/// minus infinity. Accuracy: the significands of the `n` entries are multiplied with `n` roundings to
/// `precision_bits + 32` bits. The logarithm of this product, the logarithm of the power of two and the sum of the two
/// are also rounded to these bits, and the result is rounded to `precision_bits`. A precision below 1 bit counts as 1,
/// and one above MPFR's maximum as that maximum. Cost: one product for each row.
///
/// ```
/// use sunzi::{Matrix, estimate, rug::Float};
/// let diagonal = Matrix::from_f64s(2, 1, 128, &[2.0, 4.0])?; // of a factor of a matrix with determinant 64
/// let log_det = estimate::log_det_of(&diagonal, 128);
/// assert!((log_det - Float::with_val(128, 64).ln()).abs() < 1e-37);
/// # Ok::<(), sunzi::Error>(())
/// ```
pub fn log_det_of<'a>(factor: impl Into<MatrixView<'a>>, precision_bits: u32) -> Float {
    let factor = factor.into();
    let precision_bits = precision_bits.clamp(1, prec_max() - 32);
    let bits = precision_bits + 32;
    let column = factor.cols() == 1;
    let count = if column { factor.rows() } else { factor.rows().min(factor.cols()) };
    let (mut product, mut exponent) = (Float::with_val(bits, 1), 0i64);
    for i in 0..count {
        let mut entry = factor.get(i, if column { 0 } else { i }).to_float(factor.precision_bits()).abs();
        let own = entry.get_exp().unwrap_or(0);
        entry >>= own;
        product *= entry;
        exponent += i64::from(own);
    }
    let sum = product.ln() + Float::with_val(bits, Constant::Log2) * Float::with_val(64, exponent);
    Float::with_val(precision_bits, sum << 1)
}
