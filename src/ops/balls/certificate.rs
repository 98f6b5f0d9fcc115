//! Digits of solutions, inverses and determinants by LU factors, proven by enclosures.
//!
//! Proof: docs/CHECKS.md, "Correct digits".

use super::bounds::{RADIUS_BITS, magnitudes};
use super::determinant::Near;
use super::matrix::{BallMatrix, BallView};
use super::midpoint::lu_perturbation;
use super::product::BallProduct;
use super::regular::Regular;
use super::solve::ResidualImage;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::matrix::{EntryIndex, Matrix, MatrixView};
use crate::ops::estimate::{ESTIMATE_BITS, Upper, all_digits, correct_digits, magnitude, power, spread_bits};
use crate::ops::input_rounding::InputRounding;
use crate::ops::lu::Lu;
use crate::ops::lu::condition::Scales;
use rug::Float;
use rug::float::Round;

/// Bits of the approximate inverse beyond those that the condition takes.
const INVERSE_BITS: u32 = 32;

/// Bits of residuals beyond those that the condition and the scaling take.
const RESIDUAL_BITS: u32 = 24;

/// Number of approximate inverses that are tried, each with twice the bits of the previous one.
const TRIES: u32 = 3;

/// A matrix, its LU factors, and an approximate inverse that proves it regular, from which error bounds are proven.
/// Made by [`Lu::certify`].
#[derive(Clone, Debug)]
pub struct LuCertificate<'a> {
    factors: &'a Lu,
    a: MatrixView<'a>,
    /// The rounding of the entries when they were read; `None` for exact entries.
    radius: Option<Matrix>,
    rounding: InputRounding,
    scales: Scales,
    inverse: Matrix,
    regular: Regular,
}

impl Lu {
    /// Proves that the factored matrix `A` is regular, and every matrix within the rounding of the input; the resulting
    /// [`LuCertificate`] proves how many digits of a solution, an inverse or a determinant are correct.
    ///
    /// Shapes: `a` is the matrix that was factored. `None` if no proof is found: `A` is singular, or nearly so at the
    /// precision of the factors, or the rounding is as large as the least singular value. The proof does not depend on
    /// the accuracy of the factors. Cost: an inverse of as many bits as the condition requires, and a product with it.
    /// Source: S. M. Rump, *Verification methods: rigorous results using floating-point arithmetic*, Acta Numerica 19
    /// (2010); docs/CHECKS.md, "Correct digits".
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[0.0, 3.0, 1.0, 1.0])?; // [0 1; 3 1]
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?; // X is (-1/3, 1)
    /// let factors = sunzi::lu(&ctx, &a, 128)?;
    /// let x = factors.solve(&ctx, &b, 128)?;
    /// let certificate = factors.certify(&ctx, &a, InputRounding::new())?.expect("the matrix is far from singular");
    /// assert!(certificate.solution_digits(&ctx, &b, &x)? > 35.0); // proven
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; the errors of [`crate::gemm_with`] and [`Lu::solve`].
    pub fn certify<'a>(
        &'a self,
        ctx: &Context,
        a: impl Into<MatrixView<'a>>,
        rounding: InputRounding,
    ) -> Result<Option<LuCertificate<'a>>> {
        let a = a.into();
        self.check_matrix(&a)?;
        let scales = Scales::of(a);
        let [matrix_unit, _] = rounding.units();
        let radius = if rounding.matrix_bits.is_some() { Some(rounded(a, &matrix_unit)?) } else { None };
        let norm = self.shown_condition(ctx, &scales)?.norm;
        let lost_bits = norm.get_exp().unwrap_or(0).max(0) as u32 + 2 * ceil_log2(self.order().max(1));
        let first = lost_bits.saturating_add(INVERSE_BITS);
        for attempt in 0..TRIES {
            let bits = first.saturating_mul(1 << attempt);
            let square = |bits| Matrix::bytes_for(self.order(), self.order(), bits);
            // The inverse and its transpose; the radii, the bound of `I - R A` and its parts.
            let bytes = 2 * square(bits) + 4 * square(RADIUS_BITS);
            ctx.admit(bytes)?;
            let beside = ctx.holding(bytes);
            let start = scales.cols.iter().map(|exponent| power(-exponent)).collect();
            let points = BallView { midpoint: a, radius: radius.as_ref().map(Matrix::view) };
            match self.left_inverse(&beside, bits).and_then(|inverse| {
                let proof = Regular::prove(&beside, inverse.view(), points, start)?;
                Ok(proof.ok().map(|regular| (inverse, regular)))
            }) {
                Ok(Some((inverse, regular))) => {
                    return Ok(Some(LuCertificate { factors: self, a, radius, rounding, scales, inverse, regular }));
                }
                Ok(None) if bits <= self.precision_bits() => {}
                Ok(None) | Err(Error::Precision { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl LuCertificate<'_> {
    /// A lower bound of the correct digits of each column of a solution `X` of `A X = B`, in the maximum norm: `-log10`
    /// of a bound of the relative error of the worst column.
    ///
    /// Shapes: `b` and `x` are `n x m`; `x` may come from any solve. Cost: a product with `A` and one with the
    /// approximate inverse, for all columns together, and a few products of few bits.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; the errors of [`crate::gemm_with`].
    pub fn solution_digits<'b, 'x>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
    ) -> Result<f64> {
        let (b, x) = (b.into(), x.into());
        self.factors.check_solution(&b, &x)?;
        let [_, right_unit] = self.rounding.units();
        let radius = if self.rounding.right_bits.is_some() { Some(rounded(b, &right_unit)?) } else { None };
        let distance = self.distance(ctx, BallView { midpoint: b, radius: radius.as_ref().map(Matrix::view) }, x)?;
        let column = |col: usize| {
            let places = || (0..x.rows()).map(|row| EntryIndex { row, col });
            correct_digits(&largest(&distance, places()), &largest_below(x, places()), x.precision_bits())
        };
        Ok((0..x.cols()).map(column).fold(all_digits(x.precision_bits()), f64::min))
    }

    /// A lower bound of the correct digits of an inverse: `-log10` of a bound of its relative error in the maximum
    /// norm.
    ///
    /// Shapes: `inverse` is `n x n`. Cost: as [`LuCertificate::solution_digits`] for `n` columns.
    ///
    /// # Errors
    /// As [`LuCertificate::solution_digits`].
    pub fn inverse_digits<'x>(&self, ctx: &Context, inverse: impl Into<MatrixView<'x>>) -> Result<f64> {
        let x = inverse.into();
        self.factors.check_inverse(&x)?;
        let unit = Matrix::identity(x.rows(), 2)?;
        let distance = self.distance(ctx, BallView::point(&unit), x)?;
        let places = || (0..x.cols()).flat_map(|col| (0..x.rows()).map(move |row| EntryIndex { row, col }));
        Ok(correct_digits(&largest(&distance, places()), &largest_below(x, places()), x.precision_bits()))
    }

    /// A lower bound of the correct digits of [`Lu::det`]: `-log10` of a bound of its relative error.
    ///
    /// Cost: a product of the factors, and a product with the approximate inverse.
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[0.0, 3.0, 1.0, 1.0])?; // its determinant is -3
    /// let factors = sunzi::lu(&ctx, &a, 128)?;
    /// let certificate = factors.certify(&ctx, &a, InputRounding::new())?.expect("the matrix is far from singular");
    /// assert!(certificate.det_digits(&ctx)? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`LuCertificate::solution_digits`]; [`Error::OutOfMemory`].
    pub fn det_digits(&self, ctx: &Context) -> Result<f64> {
        let midpoint = self.a.to_matrix()?;
        let a = match &self.radius {
            Some(radius) => BallMatrix::new(midpoint, radius)?,
            None => BallMatrix::exact(midpoint)?,
        };
        let start: Vec<Float> = self.scales.cols.iter().map(|exponent| power(-exponent)).collect();
        let near = Near::of(&a, &|a| lu_perturbation(ctx, a, self.factors))?;
        let proof = Regular::prove(ctx, self.inverse.view(), near.around.view(), start.clone())?;
        let Ok(regular) = proof else { return Ok(0.0) };
        let relative = near.relative(ctx, &self.inverse, &regular, start)?;
        let bits = self.factors.precision_bits();
        // (1 + k) (1 + u) - 1 for the change by the residual and the rounding of the product of the pivots.
        let (change, unit) = (relative.quotient(), power(1 - i64::from(bits)));
        let error = Upper(change.clone()).times(&unit).add(&change).add(&unit).0;
        Ok(correct_digits(&error, &Float::with_val(ESTIMATE_BITS, 1), bits))
    }

    /// An upper bound of `|X - X0|` for the solutions `X0` of all points.
    fn distance(&self, ctx: &Context, b: BallView<'_>, x: MatrixView<'_>) -> Result<Matrix> {
        let own_bits = self.inverse.precision_bits();
        let lost_bits = own_bits.saturating_add(spread_bits(&self.scales.cols, x)).saturating_add(RESIDUAL_BITS);
        let points = BallView { midpoint: self.a, radius: self.radius.as_ref().map(Matrix::view) };
        let bits = x.precision_bits().saturating_add(lost_bits);
        let bytes = |bits| Matrix::bytes_for(x.rows(), x.cols(), bits);
        // The residual, its image, and their bounds.
        let held_bytes = 2 * bytes(bits) + 2 * bytes(own_bits) + 8 * bytes(RADIUS_BITS);
        ctx.admit(held_bytes)?;
        let ctx = &ctx.holding(held_bytes).holding(self.inverse.bytes());
        let residual = BallProduct::residual(b, points, BallView::point(x)).enclose(ctx, bits)?;
        let image = ResidualImage::of(ctx, &self.inverse, &residual, own_bits)?;
        self.regular.solution(ctx, &image.whole)
    }
}

/// `unit |a_ij|`, rounded up.
fn rounded(a: MatrixView<'_>, unit: &Float) -> Result<Matrix> {
    let sizes = magnitudes(a)?;
    Matrix::from_fn(a.rows(), a.cols(), RADIUS_BITS, |row, col| Upper(sizes.float(row, col)).times(unit).0)
}

/// The largest of these entries of a matrix of bounds.
fn largest(bounds: &Matrix, places: impl Iterator<Item = EntryIndex>) -> Float {
    places.fold(Float::new(ESTIMATE_BITS), |most, EntryIndex { row, col }| most.max(&magnitude(bounds.get(row, col))))
}

/// The largest magnitude of these entries, rounded down.
fn largest_below(x: MatrixView<'_>, places: impl Iterator<Item = EntryIndex>) -> Float {
    places.fold(Float::new(ESTIMATE_BITS), |most, EntryIndex { row, col }| {
        let entry = x.get(row, col).to_float(x.precision_bits()).abs();
        most.max(&Float::with_val_round(ESTIMATE_BITS, &entry, Round::Down).0)
    })
}
