//! A solve with one triangle, not transposed: `T X = alpha B`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Destination, Diag, Matrix, MatrixView, Uplo};
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::memory::{FirstTryKernel, SolveMemory, UnsolvedColumns};
use crate::ops::solve::path::Method;
use crate::ops::solve::problem::{LOWER, SolveBits, SystemShape, UPPER, triangle_working_bits};
use crate::ops::solve::report::SolveReport;
use crate::ops::solve::run::{Right, Solve};
use crate::ops::solve::step::{SolveStep, TriangleSolver};
use crate::ops::solve::triangle::Triangle;
use crate::site::Team;
use std::time::Instant;

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
        let working_bits = triangle_working_bits(ctx, precision, order)?;
        let triangle = Triangle::new(self.t, self.uplo, self.diag)?;
        let substitutions = if self.uplo == Uplo::Lower { LOWER } else { UPPER };
        let method = Method::choose(substitutions, order, self.total_columns, self.accuracy);
        let bits = SolveBits { precision, working: working_bits };
        let mut report = SolveReport::new(ctx, "trsm", SystemShape { order, columns }, bits, method);
        let shape = if self.transposed { (columns, order) } else { (order, columns) };
        if order == 0 || columns == 0 {
            return result.prepare(shape, precision).map(|_| report);
        }
        let solver = TriangleSolver::new(triangle, working_bits, method);
        let result_bytes = Matrix::bytes_for(shape.0, shape.1, precision);
        let memory = SolveMemory {
            ctx: ctx.holding(result_bytes),
            cuts: vec![solver.cut()],
            piece_row_bytes: 0,
            message_bytes: 0,
            left: UnsolvedColumns::Parts,
            together: None,
            first_tries: FirstTryKernel::Suited,
        };
        let steps = vec![SolveStep::Triangle(solver)];
        let mut solve = Solve { memory, team: Team::one_process(), steps, scale: None, order, working_bits };
        let (bands, planned_bytes) = solve.bands(columns)?;
        report.kernel = solve.memory.kernel(bands)?;
        let mut result = result.prepare(shape, precision)?;
        let right = Right { b: self.b, alpha: self.alpha, first_column: 0, transposed: self.transposed };
        solve.run(bands, &right, &mut result)?;
        (report.bands, report.planned_bytes) = (bands.count(), planned_bytes);
        report.seconds = start.elapsed().as_secs_f64();
        Ok(report)
    }
}
