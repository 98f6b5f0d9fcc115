//! Digits of solutions by `L D L^T`, estimated and proven.
//!
//! Without pivoting a factor may have nothing to do with its matrix: its quality follows from its growth. `A` is scaled
//! by powers of two such that `|a_ij| < d_i d_j`.
//! Proof: docs/CHECKS.md, "Correct digits".

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::estimate::condition::{BIT_COLUMNS, RIGHT_BITS, inverse_norm};
use crate::ops::estimate::proven::{Proven, Solver, shifted_lower};
use crate::ops::estimate::rough::vector;
use crate::ops::estimate::{ESTIMATE_BITS, Upper, all_digits, correct_digits, magnitude, power, spread_bits};
use crate::ops::input_rounding::InputRounding;
use crate::ops::ldlt::{Inertia, Ldlt, LdltOptions, ldlt_with};
use crate::ops::product::problem::Accuracy;
use crate::ops::symm::{SymmOptions, symm_with};
use rug::Float;
use rug::float::Round;

/// Number of shifts that are tried, each a sixteenth of the previous one.
const TRIES: i64 = 4;

/// Bits of the factorisations that prove, beyond those that shift and growth take.
const PROOF_BITS: i64 = 8;

/// Fewest bits of the factorisations that prove.
const LEAST_PROOF_BITS: i64 = 32;

/// Bits of residuals beyond those that the condition takes.
const RESIDUAL_BITS: u32 = 36;

/// If the residual of the factors, times the norm of the inverse, is at most this power of two, the factors show the
/// condition of the matrix.
const TOLD_LOG2: i64 = -4;

/// Factor for the neglected part of a correction.
const SLACK: f64 = 1.2;

/// A symmetric matrix, its factors `L D L^T`, and a lower bound of the distance of the scaled matrix's eigenvalues from
/// 0, from which error bounds are proven. Made by [`Ldlt::certify`].
#[derive(Clone, Debug)]
pub struct LdltCertificate<'a> {
    proven: Proven<'a>,
}

impl Solver for Ldlt {
    fn precision_bits(&self) -> u32 {
        self.lower().precision_bits()
    }

    fn solve_nearly(&self, ctx: &Context, b: &Matrix, precision_bits: u32) -> Result<Matrix> {
        self.solve(ctx, b, precision_bits)
    }
}

impl LdltCertificate<'_> {
    /// A lower bound of the correct digits of each column of a solution `X` of `A X = B`, in the maximum norm.
    ///
    /// Shapes, cost and errors are those of [`crate::estimate::Certificate::solution_digits`].
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?; // X is (1/6, 1/3)
    /// let factors = sunzi::ldlt(&ctx, &a, 128)?;
    /// let x = factors.solve(&ctx, &b, 128)?;
    /// let certificate = factors.certify(&ctx, &a, InputRounding::new())?.expect("the matrix is far from singular");
    /// assert!(certificate.solution_digits(&ctx, &b, &x)? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; the errors of [`crate::symm_with`] and [`Ldlt::solve`].
    pub fn solution_digits<'b, 'x>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
    ) -> Result<f64> {
        let (b, x) = (b.into(), x.into());
        check_shapes(self.proven.lower.rows(), &b, &x)?;
        self.proven.solution_digits(ctx, b, x)
    }
}

impl Ldlt {
    /// Approximate number of correct digits of a solution `X` of `A X = B`: `-log10` of the relative error of the worst
    /// column in the maximum norm.
    ///
    /// Shapes: `a` is the matrix that was factored, `b` and `x` are `n x m`; `rounding` describes the rounding of the
    /// input. The result is 0 if the factors are too inaccurate for an estimate: their residual, which grows with
    /// [`Ldlt::growth`], is as large as the least eigenvalue of the scaled matrix. Cost: at most five solves with two
    /// right-hand sides, a product with `A` and a solve for all columns. Source: docs/CHECKS.md, "Correct digits".
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?; // X is (1/6, 1/3)
    /// let factors = sunzi::ldlt(&ctx, &a, 128)?;
    /// let x = factors.solve(&ctx, &b, 128)?;
    /// assert!(factors.solution_digits(&ctx, &a, &b, &x, InputRounding::new())? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::NotSymmetric`]; the errors of [`crate::symm_with`] and [`Ldlt::solve`].
    pub fn solution_digits<'a, 'b, 'x>(
        &self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
        rounding: InputRounding,
    ) -> Result<f64> {
        let (lower, b, x) = (a.into().lower_view("solution_digits")?, b.into(), x.into());
        check_shapes(lower.rows(), &b, &x)?;
        self.check_order(lower.rows())?;
        let exponents = scales(lower);
        let norm = self.scaled_norm_of_inverse(ctx, &exponents)?;
        if Float::with_val(ESTIMATE_BITS, &norm * &self.scaled_residual(&exponents).0) > power(TOLD_LOG2) {
            return Ok(0.0);
        }
        let lost_bits = norm.get_exp().map_or(0, i64::from).max(0) as u32;
        let bits = [x.precision_bits(), lost_bits, spread_bits(&exponents, x), RESIDUAL_BITS];
        let bits = bits.into_iter().fold(0, u32::saturating_add);
        let minus = Float::with_val(2, -1);
        let options = SymmOptions::new().alpha(&minus).accumulate(b).accuracy(Accuracy::Entrywise);
        let residual = symm_with(ctx, Symmetric::lower(lower), x, bits, &options)?.result;
        let correction = self.solve(ctx, &residual, self.lower().precision_bits())?;
        // The rounding of the input: at most `units` times the terms of each equation.
        let [matrix_unit, right_unit] = rounding.units();
        let column = |col: usize| {
            let scaled = |view: MatrixView<'_>, sign: i64| {
                let terms = (0..view.rows()).map(|row| magnitude(view.get(row, col)) * power(sign * exponents[row]));
                terms.fold(Upper::zero(), |sum, term| sum.add(&term)).0
            };
            let input = scaled(x, 1) * &matrix_unit + scaled(b, -1) * &right_unit;
            let least = exponents.iter().copied().min().unwrap_or(0);
            let largest = |view: MatrixView<'_>| {
                let sizes = (0..view.rows()).map(|row| magnitude(view.get(row, col)));
                sizes.fold(Float::new(ESTIMATE_BITS), |most, size| most.max(&size))
            };
            let error = largest(correction.view()) * SLACK + input * &norm * power(-least);
            correct_digits(&error, &largest(x), x.precision_bits())
        };
        Ok((0..x.cols()).map(column).fold(all_digits(x.precision_bits()), f64::min))
    }

    /// Proves a lower bound of the magnitude of all eigenvalues of the factored matrix `A`, scaled by powers of two;
    /// the resulting [`LdltCertificate`] proves how many digits of solutions are correct.
    ///
    /// `A - s D^2` and `A + s D^2` are factored; if the positive pivots of the first and the negative pivots of the
    /// second are `n` in total, no eigenvalue of the scaled matrix lies between `-s` and `s`, up to the residuals of
    /// both factorisations, which are bounded by their growth (Sylvester's law of inertia). `None` if no proof is
    /// found. Cost: two factorisations, with as many bits as condition and growth require, and the cost of
    /// [`Ldlt::solution_digits`] for one column.
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?;
    /// let factors = sunzi::ldlt(&ctx, &a, 128)?;
    /// assert!(factors.certify(&ctx, &a, InputRounding::new())?.is_some());
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::NotSymmetric`]; the errors of [`crate::ldlt_with`] except
    /// [`Error::Singular`].
    pub fn certify<'a>(
        &'a self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        rounding: InputRounding,
    ) -> Result<Option<LdltCertificate<'a>>> {
        let lower = a.into().lower_view("certify")?;
        self.check_order(lower.rows())?;
        let exponents = scales(lower);
        let lost_bits = self.scaled_norm_of_inverse(ctx, &exponents)?.get_exp().map_or(0, i64::from).max(0);
        let own_bits = i64::from(self.lower().precision_bits());
        // Bits that the residual of a factorisation loses to growth.
        let growth_bits =
            self.scaled_residual(&exponents).0.get_exp().map_or(0, |exponent| i64::from(exponent) + own_bits);
        for attempt in 0..TRIES {
            let shift = lost_bits + 1 + 4 * attempt;
            let bits = (shift + growth_bits.max(0) + PROOF_BITS).max(LEAST_PROOF_BITS);
            let Ok(bits) = u32::try_from(bits) else { return Ok(None) };
            let sides = [-1, 1].map(|sign| shifted(ctx, lower, &exponents, &Shift { sign, log2: shift, bits }));
            let [below, above] = match sides {
                [Ok(Some(below)), Ok(Some(above))] => [below, above],
                [Err(Error::Precision { .. }), _] | [_, Err(Error::Precision { .. })] => return Ok(None),
                [Err(error), _] | [_, Err(error)] => return Err(error),
                _ => continue,
            };
            let (lost, least) = (below.1.0.max(&above.1.0), power(-shift));
            let eigenvalue = Float::with_val_round(ESTIMATE_BITS, &least - &lost, Round::Down).0;
            if below.0.positive + above.0.negative == lower.rows() && eigenvalue > 0 {
                let proven = Proven::new(self, lower, exponents, &eigenvalue, rounding);
                return Ok(proven.map(|proven| LdltCertificate { proven }));
            }
        }
        Ok(None)
    }

    fn check_order(&self, order: usize) -> Result<()> {
        let own = self.lower().rows();
        if order == own { Ok(()) } else { Err(Error::shape_mismatch("digits of LDL^T", (own, own), (order, order))) }
    }

    /// The approximate 1-norm of the inverse of `D^-1 L D L^T D^-1`.
    fn scaled_norm_of_inverse(&self, ctx: &Context, exponents: &[i64]) -> Result<Float> {
        let (order, bits) = (self.lower().rows(), self.lower().precision_bits());
        let images = |columns: &[Vec<f64>]| {
            let mut right = Matrix::zeros(order, columns.len(), RIGHT_BITS)?;
            for (col, column) in columns.iter().enumerate() {
                for (row, value) in column.iter().enumerate() {
                    right.set_float(row, col, &(Float::with_val(RIGHT_BITS, value) * power(exponents[row])))?;
                }
            }
            let found = self.solve(ctx, &right, bits)?;
            Ok((0..columns.len()).map(|col| vector(&found, col, |row| exponents[row])).collect())
        };
        inverse_norm(order, BIT_COLUMNS, &images, &images)
    }

    /// A bound of the 2-norm of the residual `A - L D L^T`, scaled: `2^(3 - b) sum_i g_i / d_i^2` with `g_i` the
    /// diagonal of `|L| |D| |L^T|`.
    fn scaled_residual(&self, exponents: &[i64]) -> Upper {
        let (lower, pivots) = (self.lower(), self.pivots());
        let mut sum = Upper::zero();
        for (row, exponent) in exponents.iter().enumerate() {
            let mut own = Upper::zero();
            for col in 0..=row {
                let entry = magnitude(lower.get(row, col));
                own = own.add(&Upper(entry.clone()).times(&entry).times(&magnitude(pivots.get(col, 0))).0);
            }
            sum = sum.add(&own.times(&power(-2 * exponent)).0);
        }
        sum.times(&power(3 - i64::from(lower.precision_bits())))
    }
}

/// Exponents with `|a_ij| < 2^(e_i + e_j)`: half of that of the largest entry of each row, rounded up.
fn scales(lower: MatrixView<'_>) -> Vec<i64> {
    let mut largest = vec![i64::MIN; lower.rows()];
    for (row, col) in (0..lower.rows()).flat_map(|row| (0..=row).map(move |col| (row, col))) {
        let head = lower.head(row, col);
        if !head.is_zero() {
            largest[row] = largest[row].max(head.exponent());
            largest[col] = largest[col].max(head.exponent());
        }
    }
    // A row of zeros has any scale.
    largest
        .into_iter()
        .map(|exponent| if exponent == i64::MIN { 0 } else { exponent.div_euclid(2) + exponent.rem_euclid(2) })
        .collect()
}

/// The shift of a matrix, and the bits of its factorisation.
struct Shift {
    /// 1 or -1.
    sign: i32,
    /// `s = 2^-log2`.
    log2: i64,
    bits: u32,
}

/// The inertia of `A + sign s D^2`, but for a symmetric matrix whose scaled 2-norm is bounded by the second; `None`
/// where a pivot is 0.
fn shifted(
    ctx: &Context,
    lower: MatrixView<'_>,
    exponents: &[i64],
    &Shift { sign, log2, bits }: &Shift,
) -> Result<Option<(Inertia, Upper)>> {
    let copy_bits = lower.precision_bits().max(bits);
    let copy_bytes = Matrix::bytes_for(lower.rows(), lower.rows(), copy_bits);
    ctx.admit(copy_bytes)?;
    let matrix = shifted_lower(lower, copy_bits, |row, entry| {
        let part = power(2 * exponents[row] - log2) * sign;
        Float::with_val(copy_bits, entry + &part)
    })?;
    let options = LdltOptions::new().accuracy(Accuracy::Norm);
    match ldlt_with(&ctx.holding(copy_bytes), Symmetric::lower(&matrix), bits, &options) {
        Ok(made) => {
            // The diagonal was rounded: by at most 2^-copy_bits of twice its scale.
            let lost = made.result.scaled_residual(exponents).add(&power(1 - i64::from(copy_bits)));
            Ok(Some((made.result.inertia(), lost)))
        }
        Err(Error::Singular { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn check_shapes(order: usize, b: &MatrixView<'_>, x: &MatrixView<'_>) -> Result<()> {
    let (right, answer) = ((b.rows(), b.cols()), (x.rows(), x.cols()));
    if right.0 != order || answer != right {
        return Err(Error::shape_mismatch("solution_digits", right, answer));
    }
    Ok(())
}
