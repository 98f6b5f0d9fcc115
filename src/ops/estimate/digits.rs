//! The correct digits of answers, estimated.
//!
//! Of solutions and inverses: see [`super::probe`].
//!
//! Of `log det A`: the factorisation rounds each entry of the factor once in fixed point, so it factors `A - E` where
//! `e_ij = l_jj r_ij` for `i >= j`, and the `r_ij` are independent and uniform in `+-2^(s_i - w - 1)`. The logarithm is
//! off by `tr(A^-1 E)`, whose variance is at most `2^(-2w) / 3` times the sum of the squares of `D A^-1 diag(l)`: that
//! sum is the mean of `||D A^-1 (l z)||^2` over random signs `z`.

use super::probe::{Examined, Loss, Probe};
use super::rough::{Rough, Vector, double};
use super::{ESTIMATE_BITS, correct_digits, power, spread_bits};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::magnitude::Magnitude;
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::Cholesky;
use crate::ops::input_rounding::InputRounding;
use crate::ops::vector::{SymvOptions, symv_with};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Float;

/// Bits beyond those that a proof from rounded input needs.
const INPUT_SPARE_BITS: u32 = 20;

/// Where `2^-b` times the scaled condition is at least `2^DOUBT_LOG2`, corrections are checked by a second one.
pub(crate) const DOUBT_LOG2: i64 = -10;

/// Number of random vectors; the ratio of the error to the estimate from six of them has Student's distribution with
/// six degrees of freedom where one eigenvalue outweighs all others.
const LOG_DET_PROBES: usize = 6;

/// Factor of the standard deviation: Student's distribution with six degrees of freedom exceeds it once in 2,000 times.
const LOG_DET_MARGIN: f64 = 6.7;

impl Cholesky {
    /// Approximate number of correct digits of a solution `X` of `A X = B`: `-log10` of the relative error of the worst
    /// column in the maximum norm.
    ///
    /// Shapes: `a` is the matrix that was factored, `b` and `x` are `n x m`. `x` may come from any solve; the matrix
    /// and the right-hand sides are taken as exact. Up to four columns are examined one by one; of more columns four
    /// random combinations are examined, which give up to two digits less. The result is 0 if the factor is too
    /// inaccurate for an estimate, see [`Cholesky::tells_condition`]. Cost: that of [`Cholesky::scaled_condition`],
    /// once, and for each column examined a product with `A` and a solve with as few bits as the condition allows.
    /// Source: docs/CHECKS.md, "Correct digits".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?; // X is (2/3, -1/3)
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let x = factor.solve(&ctx, &b, 128)?;
    /// assert!(factor.solution_digits(&ctx, &a, &b, &x)? > 35.0);
    /// let rough = x.view().rounded(53)?;
    /// assert!(factor.solution_digits(&ctx, &a, &b, &rough)? < 18.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; the errors of [`crate::blas::symv_with`] and [`crate::trsm()`].
    pub fn solution_digits<'a, 'b, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
    ) -> Result<f64> {
        self.solution_digits_with(ctx, a, b, x, InputRounding::new())
    }

    /// [`Cholesky::solution_digits`], if the matrix and the right-hand sides may have been rounded.
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let x = factor.solve(&ctx, &b, 128)?;
    /// let rounding = InputRounding::new().matrix_bits(64).right_bits(64); // operands known to 64 bits
    /// let digits = factor.solution_digits_with(&ctx, &a, &b, &x, rounding)?;
    /// assert!(digits > 17.0 && digits < 20.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cholesky::solution_digits`].
    pub fn solution_digits_with<'a, 'b, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
        rounding: InputRounding,
    ) -> Result<f64> {
        let (a, b, x) = (a.into(), b.into(), x.into());
        self.check_order("solution_digits", a.order())?;
        self.check_solution("solution_digits", &b, &x)?;
        let Some((system, loss)) = examined(self, ctx, a, x)? else { return Ok(0.0) };
        Probe::new(ctx, &system, loss, x.precision_bits(), rounding).solution_digits(b, x)
    }

    /// Approximate number of correct digits of an inverse: `-log10` of its relative error in the maximum norm.
    ///
    /// Shapes: `a` is the matrix that was factored, `inverse` is `n x n`. Cost: four products of `A` with a vector and
    /// four solves, as [`Cholesky::solution_digits`].
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let inverse = factor.inverse(&ctx, 128)?;
    /// assert!(factor.inverse_digits(&ctx, &a, &inverse)? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cholesky::solution_digits`].
    pub fn inverse_digits<'a, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        inverse: impl Into<MatrixView<'x>>,
    ) -> Result<f64> {
        self.inverse_digits_with(ctx, a, inverse, InputRounding::new())
    }

    /// [`Cholesky::inverse_digits`], if the matrix may have been rounded.
    ///
    /// # Errors
    /// As [`Cholesky::solution_digits`].
    pub fn inverse_digits_with<'a, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        inverse: impl Into<MatrixView<'x>>,
        rounding: InputRounding,
    ) -> Result<f64> {
        let (a, x) = (a.into(), inverse.into());
        self.check_order("inverse_digits", a.order())?;
        self.check_inverse("inverse_digits", &x)?;
        let rounding = InputRounding { right_bits: None, ..rounding };
        let Some((system, loss)) = examined(self, ctx, a, x)? else { return Ok(0.0) };
        let probe = Probe::new(ctx, &system, loss, x.precision_bits(), rounding);
        probe.inverse_digits(&probe, x)
    }

    /// Bits that a matrix and right-hand sides must have so that a solution (or an inverse) `x` has `digits` correct
    /// digits, also proven ones: the bits of the digits, the bits lost by the condition, the bits lost by the scaling
    /// of the rows, and a margin.
    ///
    /// Cost: that of [`Cholesky::scaled_condition`].
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let x = factor.solve(&ctx, &b, 128)?;
    /// let bits = factor.input_bits(&ctx, &x, 30.0)?; // 30 digits take 100 bits by themselves
    /// assert!(bits >= 100 && bits < 150);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cholesky::scaled_condition`].
    pub fn input_bits<'x>(&self, ctx: &Context, x: impl Into<MatrixView<'x>>, digits: f64) -> Result<u32> {
        let lost_bits = self.scaled_inverse_norm(ctx)?.norm.get_exp().map_or(0, i64::from).max(0) as u32;
        let spread_bits = spread_bits(self.row_exponents(ctx)?, x.into());
        let own_bits = (digits * std::f64::consts::LOG2_10).max(0.0).ceil() as u32;
        let sum_bits = ceil_log2(self.factor().rows()) + INPUT_SPARE_BITS;
        let parts = [own_bits, lost_bits, spread_bits, sum_bits];
        Ok(parts.into_iter().fold(0, u32::saturating_add).min(MAXIMUM_PRECISION_BITS))
    }

    /// Refuses a matrix of another order.
    pub(super) fn check_order(&self, operation: &'static str, order: usize) -> Result<()> {
        let own = self.factor().rows();
        if order == own { Ok(()) } else { Err(Error::shape_mismatch(operation, (own, own), (order, order))) }
    }

    /// Refuses solutions to other right-hand sides, and right-hand sides of another matrix.
    pub(super) fn check_solution(&self, operation: &'static str, b: &MatrixView<'_>, x: &MatrixView<'_>) -> Result<()> {
        let (right, solution) = ((b.rows(), b.cols()), (x.rows(), x.cols()));
        let fits = b.rows() == self.factor().rows() && solution == right;
        if fits { Ok(()) } else { Err(Error::shape_mismatch(operation, right, solution)) }
    }

    /// Refuses an inverse of another matrix.
    pub(super) fn check_inverse(&self, operation: &'static str, inverse: &MatrixView<'_>) -> Result<()> {
        let (own, found) = (self.factor().rows(), (inverse.rows(), inverse.cols()));
        if found == (own, own) { Ok(()) } else { Err(Error::shape_mismatch(operation, (own, own), found)) }
    }
}

/// A symmetric matrix and its factor.
struct DefiniteSystem<'a> {
    rough: Rough<'a>,
    a: Symmetric<'a>,
}

impl Examined for DefiniteSystem<'_> {
    fn residual(&self, ctx: &Context, b: MatrixView<'_>, x: MatrixView<'_>, bits: u32) -> Result<Matrix> {
        let minus = Float::with_val(2, -1);
        let options = SymvOptions::new().alpha(&minus).accumulate(b);
        Ok(symv_with(ctx, self.a, x, bits, &options)?.result)
    }

    fn correction(&self, _: &Context, residual: &Matrix) -> Result<Matrix> {
        self.rough.solve(residual)
    }

    fn terms(&self, x: &[Magnitude]) -> Result<Vec<Magnitude>> {
        let lower = self.a.lower_view("solution_digits")?;
        let mut products = vec![Magnitude::ZERO; x.len()];
        for (col, row) in (0..x.len()).flat_map(|col| (col..x.len()).map(move |row| (col, row))) {
            let size = Magnitude::of(lower.get(row, col));
            products[row] = products[row].plus(size.times(x[col]));
            if row != col {
                products[col] = products[col].plus(size.times(x[row]));
            }
        }
        Ok(products)
    }
}

/// The examination of this answer; `None` where the factor does not show the condition of the matrix.
fn examined<'a>(
    factor: &'a Cholesky,
    ctx: &'a Context,
    a: Symmetric<'a>,
    answer: MatrixView<'_>,
) -> Result<Option<(DefiniteSystem<'a>, Loss)>> {
    if !factor.tells_condition(ctx)? {
        return Ok(None);
    }
    let found = factor.scaled_inverse_norm(ctx)?;
    let bits = i64::from(factor.factor().precision_bits());
    let is_doubtful = Float::with_val(ESTIMATE_BITS, &found.norm) > power(bits + DOUBT_LOG2);
    let spread_bits = spread_bits(factor.row_exponents(ctx)?, answer);
    let rough = Rough::for_condition(factor, ctx)?.with_more_bits(spread_bits);
    Ok(Some((DefiniteSystem { rough, a }, Loss { solve_bits: found.solve_bits, spread_bits, is_doubtful })))
}

impl Cholesky {
    /// Approximate number of correct digits of [`Cholesky::log_det`], `-log10` of its relative error. The estimate is
    /// usually about one digit too low; it is too high in less than one of a thousand cases.
    ///
    /// The estimate includes the rounding errors of the factorisation and of the logarithms; the factored matrix is
    /// taken as exact. The result is 0 if no digit is known to be correct. Cost: that of
    /// [`Cholesky::scaled_condition`], once, and six solves with equally few bits.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// assert!(factor.log_det_digits(&ctx)? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn log_det_digits(&self, ctx: &Context) -> Result<f64> {
        self.log_det_digits_with(ctx, InputRounding::new())
    }

    /// [`Cholesky::log_det_digits`], if the matrix may have been rounded.
    ///
    /// # Errors
    /// As [`Cholesky::log_det_digits`].
    pub fn log_det_digits_with(&self, ctx: &Context, rounding: InputRounding) -> Result<f64> {
        let bits = self.factor().precision_bits();
        let size = Float::with_val(ESTIMATE_BITS, self.log_det().abs_ref());
        let error = self.log_det_error(ctx, rounding)?;
        Ok(error.map_or(0.0, |error| correct_digits(&error, &size, bits)))
    }

    /// An estimate of the error of [`Cholesky::log_det`], usually about ten times the true error; `None` if nothing is
    /// known. For a matrix of determinant near 1 the error is more informative than the number of correct digits, since
    /// a logarithm near 0 may have no correct digit.
    ///
    /// # Errors
    /// As [`Cholesky::log_det_digits`].
    pub fn log_det_error(&self, ctx: &Context, rounding: InputRounding) -> Result<Option<Float>> {
        let spread = self.input_spread(ctx, rounding)? + self.log_det_spread(ctx)?;
        if spread > 1 {
            return Ok(None);
        }
        // Of the factor's own rounding only that of the diagonal counts.
        let bits = self.factor().precision_bits();
        let size = Float::with_val(ESTIMATE_BITS, self.log_det().abs_ref());
        let order = Float::with_val(ESTIMATE_BITS, self.factor().rows());
        Ok(Some(spread + order.sqrt() * power(1 - i64::from(bits)) + size * power(-i64::from(bits))))
    }

    /// Usual upper bound of the change of `log det A` by the rounding of the matrix.
    ///
    /// `tr(A^-1 dA)` with `|da_ij| <= 2^-bits d_i d_j`, independent but for the symmetry: the sum of the squares of
    /// `D A^-1 D` is the mean of `||D A^-1 D z||^2` over random signs.
    fn input_spread(&self, ctx: &Context, rounding: InputRounding) -> Result<Float> {
        if rounding.matrix_bits.is_none() {
            return Ok(Float::new(ESTIMATE_BITS));
        }
        let rough = Rough::for_condition(self, ctx)?;
        let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_de7f);
        let sign = |rng: &mut ChaCha8Rng| if rng.next_u32() & 1 == 1 { 1.0 } else { -1.0 };
        let column = |rng: &mut ChaCha8Rng| (0..rough.exponents.len()).map(|_| sign(rng)).collect();
        let columns: Vec<Vec<f64>> = (0..LOG_DET_PROBES).map(|_| column(&mut rng)).collect();
        let sum = sum_of_squares(&rough.scaled_images(&columns)?);
        Ok((sum * 2u32 / (3 * LOG_DET_PROBES) as u32).sqrt() * &rounding.units()[0] * LOG_DET_MARGIN)
    }

    /// Usual upper bound of the error of `log det A`.
    pub(super) fn log_det_spread(&self, ctx: &Context) -> Result<&Float> {
        loop {
            if let Some(found) = self.log_det_spread.get() {
                return Ok(found);
            }
            let found = self.find_log_det_spread(ctx)?;
            self.log_det_spread.get_or_init(|| found);
        }
    }

    fn find_log_det_spread(&self, ctx: &Context) -> Result<Float> {
        let rough = Rough::for_condition(self, ctx)?;
        let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_de7e);
        let mut columns = vec![Vec::new(); LOG_DET_PROBES];
        for (row, &exponent) in rough.exponents.iter().enumerate() {
            let entry = double(self.factor().get(row, row), exponent);
            let signs = rng.next_u32();
            for (probe, column) in columns.iter_mut().enumerate() {
                column.push(if signs >> probe & 1 == 1 { -entry } else { entry });
            }
        }
        let found = rough.scaled_images(&columns)?;
        let sum = sum_of_squares(&found);
        // For a factor made elsewhere the bits of the factorisation are unknown: its own bits count.
        let working_bits = self.working_bits.unwrap_or(self.factor().precision_bits());
        let deviation = (sum / (3 * LOG_DET_PROBES) as u32).sqrt() * power(-i64::from(working_bits));
        Ok(deviation * LOG_DET_MARGIN)
    }
}

/// The sum of the squares of all entries.
fn sum_of_squares(images: &[Vector]) -> Float {
    images.iter().fold(Float::new(ESTIMATE_BITS), |sum, image| {
        let squares: f64 = image.values.iter().map(|value| value * value).sum();
        sum + Float::with_val(ESTIMATE_BITS, squares) * power(2 * image.exponent)
    })
}
