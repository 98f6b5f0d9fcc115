//! Extreme eigenvalues of symmetric matrices and products, to a few digits or to many, as intervals that are proven.
//!
//! Lanczos' method in doubles finds a starting point. From there on every step is a proof: a Rayleigh quotient bounds
//! the smallest eigenvalue from above, a Cholesky factorisation of the matrix shifted by `theta` from below, and the
//! same factor makes the vector of the next quotient. A few digits are proven in doubles, where these can be
//! distinguished from their roundings. Proofs: docs/decisions/032-vectors.md, "Extreme eigenvalues", and
//! 070-a-few-digits-in-doubles.md.

mod doubles;
mod interval;
mod pencil;
mod plan;

pub use plan::{EigenvaluePlan, plan_extreme_eigenvalue};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::Head;
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Symmetric};
use crate::ops::product::report::Outcome;
use crate::options::setters;
use pencil::Congruence;
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, SubAssignRound};
use serde::Serialize;
use std::time::Instant;

/// Selects the smallest or the largest eigenvalue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Extreme {
    /// The smallest eigenvalue, which may be negative.
    #[default]
    Smallest,
    /// The largest eigenvalue.
    Largest,
}

/// Options for finding an eigenvalue.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct EigenvalueOptions {
    /// Selects the smallest or the largest eigenvalue.
    pub which: Extreme,
}

setters! { new EigenvalueOptions { which: Extreme } }

/// An interval that contains the eigenvalue, both ends included.
#[derive(Clone, Debug, PartialEq)]
pub struct EigenvalueInterval {
    /// The lower end: at most the eigenvalue.
    pub lower: Float,
    /// The upper end: at least the eigenvalue.
    pub upper: Float,
}

impl EigenvalueInterval {
    /// Widens an interval of a rounded matrix `a` so that it contains the eigenvalue of the matrix before the rounding.
    ///
    /// Each entry of `a` must differ from the original entry by at most `2^-rounded_bits` of its magnitude. By Weyl's
    /// theorem no eigenvalue then moves by more than the 2-norm of the difference, which is at most the order times its
    /// largest entry. Each end moves outwards by a bound of this product, rounded outwards. Shapes: `a` is the `n x n`
    /// operand. Cost: one pass over the exponents.
    ///
    /// ```
    /// use sunzi::eigenvalue::extreme_eigenvalue;
    /// use sunzi::{Context, Matrix, Symmetric, rug::{Float, Rational}};
    /// let ctx = Context::new()?;
    /// let third = Rational::from((1, 3));
    /// let a = Matrix::from_fn(1, 1, 100, |_, _| Float::with_val(100, &third))?;
    /// let found = extreme_eigenvalue(&ctx, Symmetric::lower(&a), 60)?.widened_by_rounding(a.view(), 100);
    /// assert!(found.lower <= third && found.upper >= third);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    #[must_use]
    pub fn widened_by_rounding(mut self, a: MatrixView<'_>, rounded_bits: u32) -> EigenvalueInterval {
        let places = (0..a.cols()).flat_map(|col| (0..a.rows()).map(move |row| (row, col)));
        let heads = places.map(|(row, col)| a.get(row, col).head).filter(|head| !head.is_zero());
        if let Some(exponent) = heads.map(|head| head.exponent()).max() {
            // The original entries may be larger than those of `a`, by less than a factor of 2.
            let exponent = exponent + 1 + i64::from(a.rows().next_power_of_two().trailing_zeros());
            let error = Float::with_val(2, 1) << (exponent - i64::from(rounded_bits)) as i32;
            self.lower.sub_assign_round(&error, Round::Down);
            self.upper.add_assign_round(&error, Round::Up);
        }
        self
    }
}

/// The report of a search for an eigenvalue.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct EigenvalueReport {
    /// `extreme_eigenvalue` or `pencil_eigenvalue`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// The largest number of bits of a factorisation; 53 if that is a factorisation of doubles.
    pub working_bits: u32,
    /// Steps of Lanczos' method, in doubles.
    pub lanczos_steps: usize,
    /// Factorisations of shifted matrices, including failed ones.
    pub factorisations: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the call needs.
    pub planned_bytes: u64,
}

/// The smallest eigenvalue of a symmetric matrix; see [`extreme_eigenvalue_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let a = Matrix::from_f64s(2, 2, 256, &[2.0, 1.0, 1.0, 2.0])?; // eigenvalues 1 and 3
/// let found = sunzi::eigenvalue::extreme_eigenvalue(&ctx, &a, 100)?;
/// assert!(found.lower <= 1 && found.upper >= 1);
/// assert!(found.upper - found.lower < 1e-29);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`extreme_eigenvalue_with`].
pub fn extreme_eigenvalue<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
) -> Result<EigenvalueInterval> {
    Ok(extreme_eigenvalue_with(ctx, a, precision_bits, &EigenvalueOptions::default())?.result)
}

/// The smallest or the largest eigenvalue of a symmetric matrix, as an interval that is proven to contain it.
///
/// Shapes: `a` is `n x n` with `n >= 1`, given as a plain matrix, a symmetric matrix or one triangle, see
/// [`Symmetric`]. Accuracy: the width of the interval is at most `2^-precision_bits |eigenvalue|`, or, if the
/// eigenvalue is smaller than about `2^-precision_bits` of the norm of the matrix, `2^(-2 precision_bits - 32)` of that
/// norm. The bits are the same on any number of threads. Cost: for a few digits (up to 32 bits) of an eigenvalue that
/// is not far smaller than the norm, one factorisation in doubles; else one or two factorisations of about
/// `precision_bits + 64` bits, and a few more for many digits.
///
/// ```
/// use sunzi::eigenvalue::{EigenvalueOptions, Extreme, extreme_eigenvalue_with};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?; // eigenvalues 1 and 3
/// let found = extreme_eigenvalue_with(&ctx, &a, 100, &EigenvalueOptions::new().which(Extreme::Largest))?;
/// assert!(found.result.lower <= 3 && found.result.upper >= 3);
/// assert!(found.report.factorisations > 0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::NotSymmetric`]; [`Error::InvalidArgument`] for a matrix without rows;
/// [`Error::Precision`] for fewer than 2 and more than [`crate::MAXIMUM_PRECISION_BITS`] bits, and if the precision
/// required exceeds the kernel's maximum; [`Error::ExponentRange`] for a matrix whose largest entry is above `2^(2^27)`
/// or below its reciprocal, unless doubles prove the interval; [`Error::Verification`] if the interval cannot be made
/// that narrow; [`Error::MemoryLimit`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub fn extreme_eigenvalue_with<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &EigenvalueOptions,
) -> Result<Outcome<EigenvalueInterval, EigenvalueReport>> {
    let (start, a) = (Instant::now(), a.into());
    let lower = a.lower_view("extreme_eigenvalue")?;
    check(lower.rows(), precision_bits)?;
    let copy_bytes = Matrix::bytes_for(lower.rows(), lower.rows(), lower.precision_bits());
    ctx.admit(copy_bytes)?;
    let matrix = reflected(a.to_symmetric()?.into_matrix(), options.which);
    let (found, report) = interval::find(&ctx.holding(copy_bytes), &matrix, precision_bits)?;
    let result = turned_back(found, options.which);
    let report = EigenvalueReport { operation: "extreme_eigenvalue", ..report };
    let (seconds, planned_bytes) = (start.elapsed().as_secs_f64(), report.planned_bytes + copy_bytes);
    Ok(Outcome { result, report: EigenvalueReport { seconds, planned_bytes, ..report } })
}

/// The smallest eigenvalue of `L^-1 X L^-T`; see [`pencil_eigenvalue_with`].
///
/// ```
/// use sunzi::{Context, Matrix, eigenvalue};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[2.0, 0.0, 0.0, 2.0])?; // of Z = 4 I
/// let x = Matrix::from_f64s(2, 2, 128, &[0.0, 2.0, 2.0, 0.0])?; // X / 4 has the eigenvalues -1/2 and 1/2
/// let found = eigenvalue::pencil_eigenvalue(&ctx, &l, &x, 100)?; // so Z + s X is semidefinite up to s = 2
/// assert!(found.lower <= -0.5 && found.upper >= -0.5);
/// assert!(found.upper - found.lower < 1e-29);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`pencil_eigenvalue_with`].
pub fn pencil_eigenvalue<'l, 'x>(
    ctx: &Context,
    l: impl Into<MatrixView<'l>>,
    x: impl Into<Symmetric<'x>>,
    precision_bits: u32,
) -> Result<EigenvalueInterval> {
    Ok(pencil_eigenvalue_with(ctx, l, x, precision_bits, &EigenvalueOptions::default())?.result)
}

/// The smallest or the largest eigenvalue of `L^-1 X L^-T`, for a lower triangular `L` and a symmetric `X`, as an
/// interval that is proven to contain it.
///
/// These are the numbers `t` with `X v = t L L^T v`. With the factor of a positive definite `Z = L L^T`, `Z + s X` is
/// positive semidefinite for exactly those `s >= 0` with `s t >= -1` for the smallest `t`; this is the step length of
/// an interior-point method. Shapes: `l` and `x` are `n x n` with `n >= 1`; only the lower triangle of `l` is read.
/// Accuracy and bits are those of [`extreme_eigenvalue_with`]. The product is formed once, with as many bits as the
/// condition of `L` requires.
///
/// ```
/// use sunzi::eigenvalue::{EigenvalueOptions, Extreme, pencil_eigenvalue_with};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 0.0, 0.0, 2.0])?;
/// let x = Matrix::from_f64s(2, 2, 128, &[3.0, 0.0, 0.0, 4.0])?; // L^-1 X L^-T has the eigenvalues 3 and 1
/// let found = pencil_eigenvalue_with(&ctx, &l, &x, 100, &EigenvalueOptions::new().which(Extreme::Largest))?;
/// assert!(found.result.lower <= 3 && found.result.upper >= 3);
/// assert_eq!(found.report.operation, "pencil_eigenvalue");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`extreme_eigenvalue_with`]; [`Error::Singular`] with the first zero on the diagonal of `L`.
pub fn pencil_eigenvalue_with<'l, 'x>(
    ctx: &Context,
    l: impl Into<MatrixView<'l>>,
    x: impl Into<Symmetric<'x>>,
    precision_bits: u32,
    options: &EigenvalueOptions,
) -> Result<Outcome<EigenvalueInterval, EigenvalueReport>> {
    let (start, l, x) = (Instant::now(), l.into(), x.into());
    let shape = x.lower_view("pencil_eigenvalue")?;
    if (l.rows(), l.cols()) != (shape.rows(), shape.cols()) {
        let (l, x) = ((l.rows(), l.cols()), (shape.rows(), shape.cols()));
        return Err(Error::shape_mismatch("pencil_eigenvalue", l, x));
    }
    check(shape.rows(), precision_bits)?;
    let congruence = Congruence { ctx, l, x, which: options.which, precision_bits };
    let (found, report) = congruence.solve()?;
    let (seconds, operation) = (start.elapsed().as_secs_f64(), "pencil_eigenvalue");
    let result = turned_back(found, options.which);
    Ok(Outcome { result, report: EigenvalueReport { operation, seconds, precision_bits, ..report } })
}

fn check(order: usize, precision_bits: u32) -> Result<()> {
    if order == 0 {
        return Err(Error::InvalidArgument("a matrix of order 0 has no eigenvalue".to_string()));
    }
    if !(2..=MAXIMUM_PRECISION_BITS).contains(&precision_bits) {
        return Err(Error::precision(precision_bits, MAXIMUM_PRECISION_BITS));
    }
    Ok(())
}

/// The matrix whose smallest eigenvalue is wanted: the matrix itself, or with the other sign.
fn reflected(mut matrix: Matrix, which: Extreme) -> Matrix {
    if which == Extreme::Largest {
        matrix.parts_mut().0.iter_mut().for_each(|head| *head = Head(*head).negated().0);
    }
    matrix
}

fn turned_back(found: EigenvalueInterval, which: Extreme) -> EigenvalueInterval {
    match which {
        Extreme::Smallest => found,
        Extreme::Largest => EigenvalueInterval { lower: -found.upper, upper: -found.lower },
    }
}
