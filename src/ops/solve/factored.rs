//! A solve with a factored symmetric matrix: `L L^T X = B` or `L D L^T X = B`.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Destination, Matrix, MatrixView};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::dots;
use crate::ops::solve::memory::{FirstTryKernel, SolveMemory, UnsolvedColumns};
use crate::ops::solve::path::{Method, Path};
use crate::ops::solve::problem::{
    CHOLESKY, LDLT, ScaledRows, SolveBits, SystemShape, half_exponents, reciprocals, working_bits,
};
use crate::ops::solve::report::SolveReport;
use crate::ops::solve::run::{Right, Solve};
use crate::ops::solve::step::{SolveStep, TriangleSolver};
use crate::ops::solve::sums;
use crate::site::Team;
use std::sync::OnceLock;
use std::time::Instant;

/// A factored matrix and the choices of a solve with it.
pub(crate) struct Factored<'a> {
    /// `L`.
    pub lower: &'a Matrix,
    /// `D`, an `n x 1` matrix without zeros.
    pub pivots: Option<&'a Matrix>,
    /// Bits of the entries of the solution.
    pub precision_bits: u32,
    /// Bits beyond them that the solve takes.
    pub guard_bits: u32,
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
        let working_bits = working_bits(ctx, precision, self.guard_bits, order)?;
        let substitutions = if self.pivots.is_some() { LDLT } else { CHOLESKY };
        let method = Method::choose(substitutions, order, self.total_columns, self.accuracy);
        let bits = SolveBits { precision, working: working_bits };
        let mut report = SolveReport::new(ctx, "solve", SystemShape { order, columns }, bits, method);
        if order == 0 || columns == 0 {
            return result.prepare((order, columns), precision).map(|_| report);
        }
        ((report.bands, report.planned_bytes), report.kernel) = match method.path {
            Path::Dots => {
                let norms = dots::kept_row_norms(ctx, self.lower, self.row_norms)?;
                ((1, dots::solve_columns(ctx, self.lower, norms, b, precision, result)?), report.kernel)
            }
            Path::Sums => ((1, sums::solve_columns(ctx, self.lower, b, bits, result)?), report.kernel),
            _ => self.solve_by_bands(ctx, b, working_bits, method, result)?,
        };
        report.seconds = start.elapsed().as_secs_f64();
        Ok(report)
    }

    /// The number of bands, the bytes that they were planned for, and the kernel of the tiles.
    fn solve_by_bands(
        &self,
        ctx: &Context,
        b: MatrixView<'_>,
        working_bits: u32,
        method: Method,
        result: Destination<'_>,
    ) -> Result<((usize, u64), &'static str)> {
        let order = self.lower.rows();
        let halves = self.pivots.map_or(Vec::new(), half_exponents);
        let scaled = ScaledRows::new(self.lower, &halves);
        let lower = TriangleSolver::new(scaled.lower()?, working_bits, method);
        let upper = TriangleSolver::new(scaled.upper()?, working_bits, method);
        let result_bytes = Matrix::bytes_for(order, b.cols(), self.precision_bits);
        let middle_bytes = self.pivots.map_or(0, |_| lower.cut().right_bytes(1) + 64 * order as u64);
        let memory = SolveMemory {
            ctx: ctx.holding(result_bytes).holding(ScaledRows::bytes(order)).holding(middle_bytes),
            cuts: vec![lower.cut(), upper.cut()],
            piece_row_bytes: 0,
            message_bytes: 0,
            left: UnsolvedColumns::Parts,
            together: None,
            first_tries: FirstTryKernel::Suited,
        };
        let mut steps = vec![SolveStep::Triangle(lower)];
        steps.extend(self.pivots.map(|pivots| SolveStep::Diagonal(reciprocals(pivots, &halves, working_bits))));
        steps.push(SolveStep::Triangle(upper));
        let scale = Some(&scaled.exponents[..]);
        let mut solve = Solve { memory, team: Team::one_process(), steps, scale, order, working_bits };
        let (bands, planned_bytes) = solve.bands(b.cols())?;
        let kernel = solve.memory.kernel(bands)?;
        let mut result = result.prepare((order, b.cols()), self.precision_bits)?;
        let right = Right { b, alpha: None, first_column: 0, transposed: false };
        solve.run(bands, &right, &mut result)?;
        Ok(((bands.count(), planned_bytes), kernel))
    }
}
