//! The correct digits of answers, estimated.
//!
//! Of solutions and inverses: the residual in enough bits, and the correction for it, which is the error.
//!
//! Of `log det A`: the factorisation rounds each entry of the factor once in fixed point, so it factors `A - E` where
//! `e_ij = l_jj r_ij` for `i >= j`, and the `r_ij` are independent and uniform in `+-2^(s_i - w - 1)`. The logarithm is
//! off by `tr(A^-1 E)`, whose variance is at most `2^(-2w) / 3` times the sum of the squares of `D A^-1 diag(l)`: that
//! sum is the mean of `||D A^-1 (l z)||^2` over random signs `z`.

use super::rough::{Rough, Vector, double};
use super::{ESTIMATE_BITS, all_digits, correct_digits, magnitude, power, spread_bits};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::float::Head;
use crate::math::magnitude::Magnitude;
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::Cholesky;
use crate::ops::input_rounding::InputRounding;
use crate::ops::vector::{SymvOptions, gemv, symv_with};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Float;
use rug::float::Special;

/// Up to this number of right-hand sides each one is examined; of more, this number of random combinations.
const PROBES: usize = 4;

/// Random combinations for an inverse.
const INVERSE_PROBES: usize = 2;

/// Factor by which combinations may understate the worst column.
const COMBINATION_MARGIN: u32 = 4;

/// Factor by which one column of an inverse may understate the others.
const INVERSE_MARGIN: u32 = 4;

/// Bits of residuals beyond those that the condition takes.
const RESIDUAL_BITS: u32 = 12;

/// Number of random signs of the rounding of the input, and the factor by which they may understate it.
const INPUT_PROBES: usize = 4;
const INPUT_MARGIN: u32 = 2;

/// Bits beyond those that a proof from rounded input needs.
const INPUT_SPARE_BITS: u32 = 20;

/// Factor for the neglected part of a correction.
const SLACK: f64 = 1.02;

/// Bits of random weights.
const WEIGHT_BITS: u32 = 24;

/// Where `2^-b` times the scaled condition is at least `2^DOUBT_LOG2`, corrections are checked by a second one.
const DOUBT_LOG2: i64 = -10;

/// A second correction must be smaller than the first by this power of two.
const CONTRACTION_LOG2: i64 = -3;

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
        let Some(probe) = Probe::new(self, ctx, a, x, rounding)? else { return Ok(0.0) };
        let mut digits = all_digits(x.precision_bits());
        for column in 0..x.cols().min(PROBES) {
            let own =
                if x.cols() <= PROBES { probe.one_column(b, x, column)? } else { probe.combination(b, x, column)? };
            digits = digits.min(own);
        }
        Ok(digits)
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
        let order = a.order();
        self.check_order("inverse_digits", order)?;
        self.check_inverse("inverse_digits", &x)?;
        let rounding = InputRounding { right_bits: None, ..rounding };
        let Some(probe) = Probe::new(self, ctx, a, x, rounding)? else { return Ok(0.0) };
        let (mut error, even) = (Float::new(ESTIMATE_BITS), vec![0; order]);
        for index in 0..INVERSE_PROBES.min(order) {
            // The error is symmetric: the largest entry of a combination of its columns names the worst column.
            let weights = weights(index, &even)?;
            let image = gemv(ctx, x, &weights, probe.residual_bits)?;
            let (found, _) = probe.correction(weights.view(), image.view())?;
            let sizes = (0..order).map(|row| magnitude(found.get(row, 0)));
            let worst =
                sizes.enumerate().fold((0, power(i64::MIN)), |best, own| if own.1 > best.1 { own } else { best }).0;
            let mut unit = Matrix::zeros(order, 1, WEIGHT_BITS)?;
            unit.set_f64(worst, 0, 1.0)?;
            error.max_mut(&probe.error(unit.view(), x.block(0..order, worst..worst + 1)?)?);
        }
        Ok(correct_digits(&(error * INVERSE_MARGIN), &largest(&x), x.precision_bits()))
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

/// The examination of columns of answers.
struct Probe<'a> {
    rough: Rough<'a>,
    ctx: &'a Context,
    a: Symmetric<'a>,
    residual_bits: u32,
    /// Whether a correction may be as wrong as the answer that it corrects.
    doubtful: bool,
    rounding: InputRounding,
}

impl<'a> Probe<'a> {
    /// The examination of this answer; `None` where the factor does not show the condition of the matrix.
    fn new(
        factor: &'a Cholesky,
        ctx: &'a Context,
        a: Symmetric<'a>,
        answer: MatrixView<'_>,
        rounding: InputRounding,
    ) -> Result<Option<Probe<'a>>> {
        if !factor.tells_condition(ctx)? {
            return Ok(None);
        }
        let found = factor.scaled_inverse_norm(ctx)?;
        let bits = i64::from(factor.factor().precision_bits());
        let doubtful = Float::with_val(ESTIMATE_BITS, &found.norm) > power(bits + DOUBT_LOG2);
        let spread_bits = spread_bits(factor.row_exponents(ctx)?, answer);
        let lost_bits = found.solve_bits.saturating_add(RESIDUAL_BITS).saturating_add(spread_bits);
        let residual_bits = answer.precision_bits().saturating_add(lost_bits);
        let rough = Rough::for_condition(factor, ctx)?.with_more_bits(spread_bits);
        Ok(Some(Probe { rough, ctx, a, residual_bits, doubtful, rounding }))
    }

    /// `A^-1 r`, nearly, and `r = b - A x`.
    fn correction(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<(Matrix, Matrix)> {
        let minus = Float::with_val(2, -1);
        let options = SymvOptions::new().alpha(&minus).accumulate(b);
        let residual = symv_with(self.ctx, self.a, x, self.residual_bits, &options)?.result;
        Ok((self.rough.solve(&residual)?, residual))
    }

    /// The approximate size of the error of `x`, including that of the rounding of the input; infinity where the factor
    /// is too rough for an estimate.
    fn error(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<Float> {
        Ok(self.own_error(b, x)? + self.input_error(b, x)?)
    }

    /// The approximate error of the solution from the rounding of the input: the largest image under the inverse of the
    /// bound of each equation's error, `|dA| |x| + |db|`, with random signs.
    fn input_error(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<Float> {
        let mut most = Float::new(ESTIMATE_BITS);
        if self.rounding.is_none() {
            return Ok(most);
        }
        let lower = self.a.lower_view("solution_digits")?;
        let sizes = |view: MatrixView<'_>| (0..view.rows()).map(|row| Magnitude::of(view.get(row, 0))).collect();
        let (solution, right): (Vec<Magnitude>, Vec<Magnitude>) = (sizes(x), sizes(b));
        let mut products = vec![Magnitude::ZERO; x.rows()];
        for (col, row) in (0..x.rows()).flat_map(|col| (col..x.rows()).map(move |row| (col, row))) {
            let size = Magnitude::of(lower.get(row, col));
            products[row] = products[row].plus(size.times(solution[col]));
            if row != col {
                products[col] = products[col].plus(size.times(solution[row]));
            }
        }
        let [matrix_unit, right_unit] = self.rounding.units();
        let off: Vec<Float> = products
            .iter()
            .zip(&right)
            .map(|(product, right)| {
                Float::with_val(ESTIMATE_BITS, product.to_float() * &matrix_unit) + right.to_float() * &right_unit
            })
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_1109);
        for _ in 0..INPUT_PROBES {
            let mut residual = Matrix::zeros(off.len(), 1, ESTIMATE_BITS)?;
            for (row, size) in off.iter().enumerate() {
                let signed = if rng.next_u32() & 1 == 1 { Float::with_val(ESTIMATE_BITS, -size) } else { size.clone() };
                residual.set_float(row, 0, &signed)?;
            }
            most.max_mut(&largest(&self.rough.solve(&residual)?.view()));
        }
        Ok(most * INPUT_MARGIN)
    }

    /// The error that the computation leaves.
    fn own_error(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<Float> {
        let (correction, residual) = self.correction(b, x)?;
        let first = largest(&correction.view());
        if !self.doubtful {
            return Ok(first * SLACK);
        }
        let second = largest(&self.correction(residual.view(), correction.view())?.0.view());
        match second <= Float::with_val(ESTIMATE_BITS, &first) * power(CONTRACTION_LOG2) {
            true => Ok((first + second * 2u32) * SLACK),
            false => Ok(Float::with_val(ESTIMATE_BITS, Special::Infinity)),
        }
    }

    fn one_column(&self, b: MatrixView<'_>, x: MatrixView<'_>, column: usize) -> Result<f64> {
        let [b, column] = [b, x].map(|view| view.block(0..view.rows(), column..column + 1));
        let column = column?;
        Ok(correct_digits(&self.error(b?, column)?, &largest(&column), column.precision_bits()))
    }

    /// The same of a random combination of all columns, each scaled to size 1.
    fn combination(&self, b: MatrixView<'_>, x: MatrixView<'_>, index: usize) -> Result<f64> {
        let exponents = (0..x.cols()).map(|col| {
            let heads = (0..x.rows()).map(|row| x.head(row, col)).filter(|head| !head.is_zero());
            heads.map(Head::exponent).max().unwrap_or(0)
        });
        let weights = weights(index, &exponents.collect::<Vec<i64>>())?;
        let sum = |view: MatrixView<'_>| gemv(self.ctx, view, &weights, self.residual_bits);
        let error = self.error(sum(b)?.view(), sum(x)?.view())? * COMBINATION_MARGIN;
        // The columns are scaled to between 1/2 and 1.
        Ok(correct_digits(&error, &power(-1), x.precision_bits()))
    }
}

/// Random weights with signs, between `1/2` and 1 times `2^-exponents[i]`.
fn weights(index: usize, exponents: &[i64]) -> Result<Matrix> {
    let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_0000 + index as u64);
    let mut weights = Matrix::zeros(exponents.len(), 1, WEIGHT_BITS)?;
    for (row, exponent) in exponents.iter().enumerate() {
        let word = rng.next_u32();
        let size = Float::with_val(WEIGHT_BITS, (1 << 23) | (word >> 8)) * power(-exponent - 24);
        weights.set_float(row, 0, &if word & 1 == 1 { -size } else { size })?;
    }
    Ok(weights)
}

/// The largest magnitude of an entry, to 64 bits, rounded up.
fn largest(view: &MatrixView<'_>) -> Float {
    let column = |col: usize| (0..view.rows()).map(move |row| magnitude(view.get(row, col)));
    (0..view.cols()).flat_map(column).fold(Float::new(ESTIMATE_BITS), |most, size| most.max(&size))
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
