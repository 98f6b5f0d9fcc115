//! The correct digits of solutions and inverses by LU factors, estimated.
//!
//! Source: docs/CHECKS.md, "Correct digits".

use super::condition::Scales;
use super::{Lu, NAME};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::magnitude::Magnitude;
use crate::matrix::{Matrix, MatrixView, Op};
use crate::ops::estimate::probe::{Examined, Loss, Probe};
use crate::ops::estimate::spread_bits;
use crate::ops::input_rounding::InputRounding;
use crate::ops::vector::{GemvOptions, gemv_with};
use rug::Float;

/// A matrix or its transpose, and its factors.
struct GeneralSystem<'a> {
    factors: &'a Lu,
    a: MatrixView<'a>,
    op: Op,
    /// Bits of solves.
    bits: u32,
}

impl Examined for GeneralSystem<'_> {
    fn residual(&self, ctx: &Context, b: MatrixView<'_>, x: MatrixView<'_>, bits: u32) -> Result<Matrix> {
        let minus = Float::with_val(2, -1);
        let options = GemvOptions::new().op(self.op).alpha(&minus).accumulate(b);
        Ok(gemv_with(ctx, self.a, x, bits, &options)?.result)
    }

    fn correction(&self, ctx: &Context, residual: &Matrix) -> Result<Matrix> {
        match self.op {
            Op::Transpose => self.factors.solve_transposed(ctx, residual, self.bits),
            _ => self.factors.solve(ctx, residual, self.bits),
        }
    }

    fn terms(&self, x: &[Magnitude]) -> Result<Vec<Magnitude>> {
        let a = if self.op == Op::Transpose { self.a.transposed() } else { self.a };
        let term = |row: usize, col: usize| Magnitude::of(a.get(row, col)).times(x[col]);
        let sum = |row: usize| (0..x.len()).map(|col| term(row, col)).fold(Magnitude::ZERO, Magnitude::plus);
        Ok((0..x.len()).map(sum).collect())
    }
}

impl Lu {
    /// Approximate number of correct digits of a solution `X` of `A X = B`: `-log10` of the relative error of the worst
    /// column in the maximum norm.
    ///
    /// Shapes: `a` is the matrix that was factored, `b` and `x` are `n x m`; `rounding` describes the rounding of the
    /// input. Up to four columns are examined one by one; of more columns four random combinations are examined, which
    /// give up to two digits less. The result is 0 if the factors are too inaccurate for an estimate: their residual is
    /// as large as the least singular value of the scaled matrix. Cost: at most five solves with two right-hand sides,
    /// and for each column examined a product with `A` and a solve with as few bits as the condition allows. Source:
    /// docs/CHECKS.md, "Correct digits".
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[0.0, 3.0, 1.0, 1.0])?; // [0 1; 3 1]
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?; // X is (-1/3, 1)
    /// let factors = sunzi::lu(&ctx, &a, 128)?;
    /// let x = factors.solve(&ctx, &b, 128)?;
    /// assert!(factors.solution_digits(&ctx, &a, &b, &x, InputRounding::new())? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; the errors of [`crate::blas::gemv_with`] and [`Lu::solve`].
    pub fn solution_digits<'a, 'b, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<MatrixView<'a>>,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
        rounding: InputRounding,
    ) -> Result<f64> {
        let (a, b, x) = (a.into(), b.into(), x.into());
        self.check_matrix(&a)?;
        self.check_solution(&b, &x)?;
        let Some((system, loss)) = self.examined(ctx, a, x)? else { return Ok(0.0) };
        Probe::new(ctx, &system, loss, x.precision_bits(), rounding).solution_digits(b, x)
    }

    /// Approximate number of correct digits of an inverse: `-log10` of its relative error in the maximum norm.
    ///
    /// Shapes: `a` is the matrix that was factored, `inverse` is `n x n`. Cost: as [`Lu::solution_digits`] for four
    /// columns. The result is 0 as there.
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[0.0, 3.0, 1.0, 1.0])?;
    /// let factors = sunzi::lu(&ctx, &a, 128)?;
    /// let inverse = factors.inverse(&ctx, 128)?;
    /// assert!(factors.inverse_digits(&ctx, &a, &inverse, InputRounding::new())? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lu::solution_digits`].
    pub fn inverse_digits<'a, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<MatrixView<'a>>,
        inverse: impl Into<MatrixView<'x>>,
        rounding: InputRounding,
    ) -> Result<f64> {
        let (a, x) = (a.into(), inverse.into());
        self.check_matrix(&a)?;
        self.check_inverse(&x)?;
        let rounding = InputRounding { right_bits: None, ..rounding };
        let Some((system, loss)) = self.examined(ctx, a, x)? else { return Ok(0.0) };
        let transposed = GeneralSystem { op: Op::Transpose, ..system };
        let [probe, transposed] =
            [&system, &transposed].map(|system| Probe::new(ctx, system, loss, x.precision_bits(), rounding));
        probe.inverse_digits(&transposed, x)
    }

    /// The examination of this answer; `None` where the factors do not show the condition of the matrix.
    fn examined<'a>(
        &'a self,
        ctx: &Context,
        a: MatrixView<'a>,
        answer: MatrixView<'_>,
    ) -> Result<Option<(GeneralSystem<'a>, Loss)>> {
        let scales = Scales::of(a);
        let found = self.shown_condition(ctx, &scales)?;
        if !found.is_told {
            return Ok(None);
        }
        let mut spread = spread_bits(&scales.cols, answer);
        if answer.cols() == self.order() {
            // The rows of an inverse are solutions of the transposed systems.
            spread = spread.max(spread_bits(&scales.rows, answer.transposed()));
        }
        let bits = found.solve_bits.saturating_add(spread).min(self.precision_bits().max(found.solve_bits));
        let system = GeneralSystem { factors: self, a, op: Op::NoTranspose, bits };
        Ok(Some((system, Loss { solve_bits: found.solve_bits, spread_bits: spread, is_doubtful: found.is_doubtful })))
    }

    /// Refuses a matrix of another shape than the factored one.
    pub(crate) fn check_matrix(&self, a: &MatrixView<'_>) -> Result<()> {
        let (own, given) = (self.order(), (a.rows(), a.cols()));
        if given == (own, own) { Ok(()) } else { Err(Error::shape_mismatch(NAME, (own, own), given)) }
    }

    /// Refuses solutions to other right-hand sides, and right-hand sides of another matrix.
    pub(crate) fn check_solution(&self, b: &MatrixView<'_>, x: &MatrixView<'_>) -> Result<()> {
        let (right, solution) = ((b.rows(), b.cols()), (x.rows(), x.cols()));
        let fits = b.rows() == self.order() && solution == right;
        if fits { Ok(()) } else { Err(Error::shape_mismatch("solution_digits", right, solution)) }
    }

    /// Refuses an inverse of another matrix.
    pub(crate) fn check_inverse(&self, inverse: &MatrixView<'_>) -> Result<()> {
        let (own, found) = (self.order(), (inverse.rows(), inverse.cols()));
        if found == (own, own) { Ok(()) } else { Err(Error::shape_mismatch("inverse_digits", (own, own), found)) }
    }
}
