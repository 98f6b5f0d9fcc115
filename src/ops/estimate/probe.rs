//! The examination of columns of answers: the residual in enough bits, and the correction for it, which is the error.
//!
//! Independent of: what kind of factors solve nearly. Source: docs/CHECKS.md, "Correct digits".

use super::{ESTIMATE_BITS, all_digits, correct_digits, magnitude, power};
use crate::context::Context;
use crate::error::Result;
use crate::math::float::Head;
use crate::math::magnitude::Magnitude;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::input_rounding::InputRounding;
use crate::ops::vector::gemv;
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

/// Factor for the neglected part of a correction.
const SLACK: f64 = 1.02;

/// Bits of random weights.
const WEIGHT_BITS: u32 = 24;

/// A second correction must be smaller than the first by this power of two.
const CONTRACTION_LOG2: i64 = -3;

/// A matrix with factors that solve nearly.
pub(crate) trait Examined {
    /// `b - A x` for one column, accurate to `bits` bits relative to its own terms.
    ///
    /// # Errors
    /// The errors of a product with a vector.
    fn residual(&self, ctx: &Context, b: MatrixView<'_>, x: MatrixView<'_>, bits: u32) -> Result<Matrix>;

    /// About `A^-1 r` for one column.
    ///
    /// # Errors
    /// The errors of a solve.
    fn correction(&self, ctx: &Context, residual: &Matrix) -> Result<Matrix>;

    /// About `|A| |x|`.
    ///
    /// # Errors
    /// [`crate::Error::NotSymmetric`].
    fn terms(&self, x: &[Magnitude]) -> Result<Vec<Magnitude>>;
}

/// The bits that answers lose to the condition of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Loss {
    /// Bits of solves that give at least one correct digit.
    pub solve_bits: u32,
    /// Bits by which the scaling of the matrix may hide the largest entry of an answer.
    pub spread_bits: u32,
    /// Whether a correction may be as wrong as the answer that it corrects.
    pub is_doubtful: bool,
}

/// The examination of columns of answers.
pub(crate) struct Probe<'a> {
    ctx: &'a Context,
    system: &'a dyn Examined,
    residual_bits: u32,
    is_doubtful: bool,
    rounding: InputRounding,
}

impl<'a> Probe<'a> {
    /// The examination of an answer of `precision_bits` bits.
    pub fn new(
        ctx: &'a Context,
        system: &'a dyn Examined,
        Loss { solve_bits, spread_bits, is_doubtful }: Loss,
        precision_bits: u32,
        rounding: InputRounding,
    ) -> Probe<'a> {
        let lost_bits = solve_bits.saturating_add(RESIDUAL_BITS).saturating_add(spread_bits);
        Probe { ctx, system, residual_bits: precision_bits.saturating_add(lost_bits), is_doubtful, rounding }
    }

    /// The approximate digits of the worst column of a solution.
    ///
    /// # Errors
    /// The errors of products and solves.
    pub fn solution_digits(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<f64> {
        let mut digits = all_digits(x.precision_bits());
        for column in 0..x.cols().min(PROBES) {
            let own = if x.cols() <= PROBES { self.one_column(b, x, column)? } else { self.combination(b, x, column)? };
            digits = digits.min(own);
        }
        Ok(digits)
    }

    /// The approximate digits of an inverse in the maximum norm; `transposed` examines answers for `A^T`.
    ///
    /// A random combination of the rows of the error has its largest entry in the worst column, whose error is then
    /// examined as that of a solution.
    ///
    /// # Errors
    /// The errors of products and solves.
    pub fn inverse_digits(&self, transposed: &Probe<'_>, x: MatrixView<'_>) -> Result<f64> {
        let order = x.rows();
        let (mut error, even) = (Float::new(ESTIMATE_BITS), vec![0; order]);
        for index in 0..INVERSE_PROBES.min(order) {
            let weights = weights(index, &even)?;
            let image = gemv(self.ctx, x.transposed(), &weights, self.residual_bits)?;
            let (found, _) = transposed.correction(weights.view(), image.view())?;
            let sizes = (0..order).map(|row| magnitude(found.get(row, 0)));
            let worst =
                sizes.enumerate().fold((0, power(i64::MIN)), |best, own| if own.1 > best.1 { own } else { best }).0;
            let mut unit = Matrix::zeros(order, 1, WEIGHT_BITS)?;
            unit.set_f64(worst, 0, 1.0)?;
            error.max_mut(&self.error(unit.view(), x.block(0..order, worst..worst + 1)?)?);
        }
        Ok(correct_digits(&(error * INVERSE_MARGIN), &largest(&x), x.precision_bits()))
    }

    /// `A^-1 r`, nearly, and `r = b - A x`.
    fn correction(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<(Matrix, Matrix)> {
        let residual = self.system.residual(self.ctx, b, x, self.residual_bits)?;
        Ok((self.system.correction(self.ctx, &residual)?, residual))
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
        let sizes = |view: MatrixView<'_>| (0..view.rows()).map(|row| Magnitude::of(view.get(row, 0))).collect();
        let (solution, right): (Vec<Magnitude>, Vec<Magnitude>) = (sizes(x), sizes(b));
        let products = self.system.terms(&solution)?;
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
            most.max_mut(&largest(&self.system.correction(self.ctx, &residual)?.view()));
        }
        Ok(most * INPUT_MARGIN)
    }

    /// The error that the computation leaves.
    fn own_error(&self, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<Float> {
        let (correction, residual) = self.correction(b, x)?;
        let first = largest(&correction.view());
        if !self.is_doubtful {
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
