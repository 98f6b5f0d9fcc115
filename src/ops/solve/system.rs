//! Solves in one process: with one triangular matrix, `T X = alpha B`, and with a factored symmetric matrix, `L L^T X =
//! B` or `L D L^T X = B`; their options and their report.

use crate::comm::say_fields;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Destination, Diag, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::cholesky::Cholesky;
use crate::ops::factor::report::CholeskyReport;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::kernel_name;
use crate::ops::solve::memory::SolveMemory;
use crate::ops::solve::problem::{
    CHOLESKY, LDLT, LOWER, Method, Path, SolveBits, Substitution, SystemShape, UPPER, solve_bits,
};
use crate::ops::solve::run::{Right, Solve, SolveStep, TriangleSolver};
use crate::ops::solve::triangle::{ScaledRows, Triangle, half_exponents, reciprocals};
use crate::ops::solve::{dots, sums};
use crate::options::setters;
use crate::site::Team;
use rug::Float;
use serde::Serialize;
use std::sync::OnceLock;
use std::time::Instant;

/// Options of a triangular solve in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TrsmOptions<'a> {
    /// `Left` solves `op(T) X = alpha B` (the default), `Right` solves `X op(T) = alpha B`.
    pub side: Side,
    /// The triangle of `T` that is read; the contents of the other triangle are ignored.
    pub uplo: Uplo,
    /// Whether `T` is used transposed.
    pub op: Op,
    /// Whether the diagonal of `T` is read or taken as ones.
    pub diag: Diag,
    /// Accuracy of each entry of the residual.
    pub accuracy: Accuracy,
    /// Scalar of `B`; `None` is 1.
    pub alpha: Option<&'a Float>,
}

setters! { new TrsmOptions<'a> {
    side: Side,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
} }

say_fields! { TrsmOptions<'_> { side, uplo, op, diag, accuracy, alpha } }

/// The scalar of right-hand sides.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is not finite.
pub(crate) fn check_scalar(alpha: &Float) -> Result<OwnFloat> {
    if alpha.is_finite() {
        return Ok(OwnFloat::new(alpha));
    }
    Err(Error::InvalidArgument(format!("alpha is {alpha}: it must be finite")))
}

/// The plan and the time of a triangular solve, of a solve with a factor, or of an operation made of such solves.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SolveReport {
    /// `trsm`, `solve`, `solve_refined`, `ldlt` or `inverse`.
    pub operation: &'static str,
    /// Rows of the triangle, or of the matrix.
    pub order: usize,
    /// Right-hand sides; for `ldlt` the columns of the first panel, for `inverse` the order.
    pub columns: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Bits of right-hand sides and unknowns during the solve.
    pub working_bits: u32,
    /// The algorithm that computed the unknowns.
    pub path: Path,
    /// The accuracy that holds for the residual; for a solve with a given factor, the residual of the system whose
    /// matrix is the product of the factors. The accuracy is by norms also if the factorisation before the solve had
    /// too few bits for entrywise accuracy.
    pub accuracy: Accuracy,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Bands of right-hand sides that were solved one after the other.
    pub bands: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the plan allows under a memory limit, including the result. Without a limit, the bytes of the first
    /// pass: right-hand sides that are solved with more bits need more.
    pub planned_bytes: u64,
    /// Approximate number of correct digits of the result, see [`crate::Cholesky::solution_digits`]; `None` if it was
    /// not requested, or if the memory limit was too small for an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digits: Option<f64>,
    /// The report of the factorisation at the start of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factorisation: Option<CholeskyReport>,
}

impl SolveReport {
    /// The report of a call about to begin.
    pub(crate) fn new(
        ctx: &Context,
        operation: &'static str,
        shape: SystemShape,
        bits: SolveBits,
        method: Method,
    ) -> SolveReport {
        let Method { path, accuracy } = method;
        SolveReport {
            operation,
            order: shape.order,
            columns: shape.columns,
            precision_bits: bits.precision,
            working_bits: bits.working,
            path,
            accuracy,
            kernel: kernel_name(ctx, method, shape.order, bits.working),
            threads: ctx.threads(),
            ..SolveReport::default()
        }
    }

    /// The report of a call that began at `start` with a factorisation.
    pub(crate) fn after(self, factorisation: CholeskyReport, start: Instant) -> SolveReport {
        let planned_bytes = self.planned_bytes.max(factorisation.planned_bytes);
        let seconds = start.elapsed().as_secs_f64();
        // Both have it, or neither.
        let both = [self.accuracy, factorisation.accuracy] == [Accuracy::Entrywise; 2];
        let accuracy = if both { Accuracy::Entrywise } else { Accuracy::Norm };
        SolveReport { planned_bytes, seconds, accuracy, factorisation: Some(factorisation), ..self }
    }
}

/// A solve in one process by `substitutions` that are prepared as `steps`, in a system scaled by `scale`; completes the
/// report.
fn solve_by_bands(
    ctx: &Context,
    substitutions: &[Substitution],
    steps: Vec<SolveStep<'_>>,
    scale: Option<&[i64]>,
    right: &Right<'_>,
    result: Destination<'_>,
    report: &mut SolveReport,
) -> Result<()> {
    let SolveReport { order, columns, precision_bits, working_bits, .. } = *report;
    let bits = SolveBits { precision: precision_bits, working: working_bits };
    let cuts = steps.iter().filter_map(SolveStep::cut).collect();
    let memory = SolveMemory::of_system(ctx, substitutions, SystemShape { order, columns }, bits, cuts);
    let mut solve = Solve { memory, team: Team::one_process(), steps, scale };
    let (bands, planned_bytes) = solve.bands(columns)?;
    report.kernel = solve.memory.kernel(bands)?;
    let shape = if right.transposed { (columns, order) } else { (order, columns) };
    let mut result = result.prepare(shape, precision_bits)?;
    solve.run(bands, right, &mut result)?;
    (report.bands, report.planned_bytes) = (bands.count(), planned_bytes);
    Ok(())
}

/// `T X = alpha B`, or the transpose of that, in the form that the solve takes.
pub(crate) struct TriangularSystem<'a> {
    /// A square view, of which the triangle `uplo` counts.
    pub t: MatrixView<'a>,
    pub uplo: Uplo,
    pub diag: Diag,
    /// As many rows as `t`.
    pub b: MatrixView<'a>,
    pub alpha: Option<OwnFloat>,
    /// Whether the caller's right-hand sides and solution are the transposes.
    pub transposed: bool,
    pub precision_bits: u32,
    /// Accuracy of the residual.
    pub accuracy: Accuracy,
    /// Column count of the whole call; it selects the algorithm, hence the bits.
    pub total_columns: usize,
}

impl TriangularSystem<'_> {
    /// Solves into `result`.
    ///
    /// # Errors
    /// The errors of [`crate::trsm_into`].
    pub fn solve(self, ctx: &Context, result: Destination<'_>) -> Result<SolveReport> {
        let start = Instant::now();
        let (order, columns, precision) = (self.b.rows(), self.b.cols(), self.precision_bits);
        let substitutions = if self.uplo == Uplo::Lower { LOWER } else { UPPER };
        let bits = solve_bits(ctx, substitutions, precision, order)?;
        let triangle = Triangle::new(self.t, self.uplo, self.diag)?;
        let method = Method::choose(substitutions, order, self.total_columns, self.accuracy);
        let mut report = SolveReport::new(ctx, "trsm", SystemShape { order, columns }, bits, method);
        if order == 0 || columns == 0 {
            let shape = if self.transposed { (columns, order) } else { (order, columns) };
            return result.prepare(shape, precision).map(|_| report);
        }
        let steps = vec![SolveStep::Triangle(TriangleSolver::new(triangle, bits.working, method))];
        let right = Right { b: self.b, alpha: self.alpha, first_column: 0, transposed: self.transposed };
        solve_by_bands(ctx, substitutions, steps, None, &right, result, &mut report)?;
        report.seconds = start.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// A factored matrix and the choices of a solve with it.
pub(crate) struct Factored<'a> {
    /// `L`.
    pub lower: &'a Matrix,
    /// `D`, an `n x 1` matrix without zeros.
    pub pivots: Option<&'a Matrix>,
    /// Bits of the entries of the solution.
    pub precision_bits: u32,
    /// Column count of the whole call; it selects the algorithm, hence the bits.
    pub total_columns: usize,
    /// Accuracy of the residual.
    pub accuracy: Accuracy,
    /// Norms of the rows of `L`, computed by the first solve that needs them.
    pub row_norms: &'a OnceLock<Vec<i64>>,
}

impl Factored<'_> {
    /// The solution of `L D L^T X = B`, into `result`.
    ///
    /// # Errors
    /// The errors of [`crate::trsm_into`].
    pub fn solve(&self, ctx: &Context, b: MatrixView<'_>, result: Destination<'_>) -> Result<SolveReport> {
        let start = Instant::now();
        let order = self.lower.rows();
        if b.rows() != order {
            return Err(Error::shape_mismatch("solve with a factor", (order, order), (b.rows(), b.cols())));
        }
        let (columns, precision) = (b.cols(), self.precision_bits);
        let substitutions = if self.pivots.is_some() { LDLT } else { CHOLESKY };
        let bits = solve_bits(ctx, substitutions, precision, order)?;
        let method = Method::choose(substitutions, order, self.total_columns, self.accuracy);
        let mut report = SolveReport::new(ctx, "solve", SystemShape { order, columns }, bits, method);
        if order == 0 || columns == 0 {
            return result.prepare((order, columns), precision).map(|_| report);
        }
        (report.bands, report.planned_bytes) = match method.path {
            Path::Dots => {
                let norms = dots::kept_row_norms(ctx, self.lower, self.row_norms)?;
                (1, dots::solve_columns(ctx, self.lower, norms, b, precision, result)?)
            }
            Path::Sums => (1, sums::solve_columns(ctx, self.lower, b, bits, result)?),
            _ => {
                let halves = self.pivots.map_or(Vec::new(), half_exponents);
                let scaled = ScaledRows::new(self.lower, &halves);
                let triangle = |triangle| SolveStep::Triangle(TriangleSolver::new(triangle, bits.working, method));
                let mut steps = vec![triangle(scaled.lower()?)];
                let middle = self.pivots.map(|pivots| reciprocals(pivots, &halves, bits.working));
                steps.extend(middle.map(SolveStep::Diagonal));
                steps.push(triangle(scaled.upper()?));
                let right = Right { b, alpha: None, first_column: 0, transposed: false };
                let scale = Some(&scaled.exponents[..]);
                solve_by_bands(ctx, substitutions, steps, scale, &right, result, &mut report)?;
                (report.bands, report.planned_bytes)
            }
        };
        report.seconds = start.elapsed().as_secs_f64();
        Ok(report)
    }
}

impl Cholesky {
    /// The solution `X` of `A X = B`, rounded to `precision_bits` bits.
    ///
    /// Shapes: `b` and the result are `n x m`. Accuracy: `|b - A x|_i <= 2^(4 - p) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| +
    /// |b_i|)` for each column, where `p` is the smaller of `precision_bits` and the precision of the factor; for a
    /// factor with entrywise accuracy (see [`Cholesky::with_accuracy`]) `|b - A x|_i <= 2^(4 - p) (|L| |L^T| |x| +
    /// |b|)_i`. The bits depend only on the factor, its accuracy, `b` and the precision. Cost: `n^2 m` word products
    /// for each prime. Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?; // once, for any number of right-hand sides
    /// let b = Matrix::from_f64s(2, 2, 128, &[8.0, 12.0, 6.0, 7.0])?;
    /// assert_eq!(factor.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 2.0, 1.0, 1.0]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn solve<'b>(&self, ctx: &Context, b: impl Into<MatrixView<'b>>, precision_bits: u32) -> Result<Matrix> {
        let mut result = Matrix::empty();
        self.solve_into(ctx, b, precision_bits, &mut result)?;
        Ok(result)
    }

    /// [`Cholesky::solve`] into a matrix of the caller or a block of one.
    ///
    /// # Errors
    /// As [`crate::trsm_into`].
    pub fn solve_into<'b, 'r>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        precision_bits: u32,
        result: impl Into<Destination<'r>>,
    ) -> Result<SolveReport> {
        let b = b.into();
        self.scaled_doubles.heed_limit(ctx);
        self.factored(precision_bits, b.cols(), self.accuracy).solve(ctx, b, result.into())
    }

    /// [`Cholesky::solve`] for any number of columns, each solved as if it were the only one, with entrywise accuracy:
    /// for solves with a few bits, which read only as many bits of the factor.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub(crate) fn solve_columns(&self, ctx: &Context, b: MatrixView<'_>, precision_bits: u32) -> Result<Matrix> {
        self.scaled_doubles.heed_limit(ctx);
        let mut result = Matrix::empty();
        let factored = self.factored(precision_bits, 1, Accuracy::Entrywise);
        factored.solve(ctx, b, Destination::Matrix(&mut result))?;
        Ok(result)
    }

    fn factored(&self, precision_bits: u32, total_columns: usize, accuracy: Accuracy) -> Factored<'_> {
        let (lower, row_norms) = (self.factor(), &self.row_norms);
        Factored { lower, pivots: None, precision_bits, total_columns, accuracy, row_norms }
    }

    /// For each row of the factor the `r_i` with `norm(l_i) <= 2^r_i`, at most about twice the norm.
    ///
    /// # Errors
    /// The errors of the pass over the factor on the context's threads.
    pub(crate) fn row_exponents(&self, ctx: &Context) -> Result<&[i64]> {
        dots::kept_row_norms(ctx, self.factor(), &self.row_norms)
    }
}
