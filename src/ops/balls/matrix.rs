//! Matrices of balls, with midpoints and radii, and functions that read them.

use super::bounds::RADIUS_BITS;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::estimate::{Upper, magnitude, power};
use rug::Float;

/// A matrix of balls: the matrices `a` with `|a_ij - midpoint_ij| <= radius_ij` for all entries; these matrices are
/// called its points.
///
/// The radii are not negative. The entries vary independently of each other: the points of a ball matrix with a
/// symmetric midpoint need not be symmetric.
#[derive(Clone, Debug, Default)]
pub struct BallMatrix {
    midpoint: Matrix,
    radius: Matrix,
}

/// A ball: all real numbers `x` with `|x - midpoint| <= radius`.
#[derive(Clone, PartialEq, Debug)]
pub struct Ball {
    /// The midpoint.
    pub midpoint: Float,
    /// The radius, not negative.
    pub radius: Float,
}

/// A borrowed matrix of balls, which may be transposed; `None` for the radii is a matrix that is one point.
#[derive(Clone, Copy)]
pub(super) struct BallView<'a> {
    pub midpoint: MatrixView<'a>,
    pub radius: Option<MatrixView<'a>>,
}

impl BallMatrix {
    /// The balls with these midpoints and radii; both matrices must have the same shape.
    ///
    /// Radii may have any precision; they are kept with 64 bits, rounded up.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for a negative radius; [`Error::OutOfMemory`].
    pub fn new(midpoint: Matrix, radius: &Matrix) -> Result<BallMatrix> {
        let shape = |matrix: &Matrix| (matrix.rows(), matrix.cols());
        if shape(&midpoint) != shape(radius) {
            return Err(Error::shape_mismatch("radii of balls", shape(&midpoint), shape(radius)));
        }
        for (row, col) in (0..radius.cols()).flat_map(|col| (0..radius.rows()).map(move |row| (row, col))) {
            let head = radius.get(row, col).head;
            if head.is_negative() && !head.is_zero() {
                let message = format!("the radius at row {row}, column {col} is negative: radii are at least 0");
                return Err(Error::InvalidArgument(message));
            }
        }
        let radius = super::bounds::magnitudes(radius.view())?;
        Ok(BallMatrix { midpoint, radius })
    }

    /// Balls of radius 0: an exact matrix.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn exact(midpoint: Matrix) -> Result<BallMatrix> {
        let radius = Matrix::zeros(midpoint.rows(), midpoint.cols(), RADIUS_BITS)?;
        Ok(BallMatrix { midpoint, radius })
    }

    /// Balls that contain the numbers of which these are roundings to nearest at `rounded_bits` bits.
    ///
    /// ```
    /// use sunzi::ball::{self, BallMatrix};
    /// use sunzi::{Context, Matrix, rug::{Float, Rational}};
    /// let ctx = Context::builder().threads(1).build()?;
    /// let third = Matrix::from_floats(1, 1, 128, &[Float::with_val(128, 1) / 3u32])?;
    /// let a = BallMatrix::rounded(third, 128)?;
    /// assert!(a.contains(0, 0, &Rational::from((1, 3))));
    /// let log_det = ball::log_det(&ctx, &a, 128)?; // holds that of 1/3
    /// assert!((log_det.midpoint + Float::with_val(256, 3).ln()).abs() <= log_det.radius);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::ExponentRange`].
    pub fn rounded(midpoint: Matrix, rounded_bits: u32) -> Result<BallMatrix> {
        // Half a unit in the last place of |x| < 2^e.
        let radius = Matrix::from_fn(midpoint.rows(), midpoint.cols(), RADIUS_BITS, |row, col| {
            let head = midpoint.get(row, col).head;
            if head.is_zero() {
                return Float::new(RADIUS_BITS);
            }
            power(head.exponent() - i64::from(rounded_bits) - 1)
        })?;
        Ok(BallMatrix { midpoint, radius })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.midpoint.rows()
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.midpoint.cols()
    }

    /// The midpoints.
    pub fn midpoint(&self) -> &Matrix {
        &self.midpoint
    }

    /// The radii, of 64 bits.
    pub fn radius(&self) -> &Matrix {
        &self.radius
    }

    /// Whether the number lies in the ball at this row and column.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn contains(&self, row: usize, col: usize, value: &rug::Rational) -> bool {
        let exact = |number: Float| number.to_rational().unwrap_or_default();
        let distance = exact(self.midpoint.float(row, col)) - value;
        distance.abs() <= exact(self.radius.float(row, col))
    }

    /// Balls that contain `f a` for every `f` in `factor` and every point `a`; the midpoints are exact products.
    ///
    /// Cost: one product of numbers for each entry.
    ///
    /// ```
    /// use sunzi::ball::{Ball, BallMatrix};
    /// use sunzi::{Matrix, rug::{Float, Rational}};
    /// let a = BallMatrix::exact(Matrix::from_f64s(1, 1, 128, &[4.0])?)?;
    /// let factor = Ball { midpoint: Float::with_val(128, 2), radius: Float::with_val(64, 0.5) };
    /// let scaled = a.scaled(&factor)?; // 6 to 10
    /// assert!(scaled.contains(0, 0, &Rational::from(6)) && scaled.contains(0, 0, &Rational::from(10)));
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a factor that is not finite, or has a negative radius; [`Error::ExponentRange`];
    /// [`Error::OutOfMemory`].
    pub fn scaled(&self, factor: &Ball) -> Result<BallMatrix> {
        let Ball { midpoint, radius } = factor;
        if !midpoint.is_finite() || !radius.is_finite() || radius.is_sign_negative() && !radius.is_zero() {
            let message = format!("the scalar {midpoint} with radius {radius} is not a ball of finite numbers");
            return Err(Error::InvalidArgument(message));
        }
        let bits = self.midpoint.precision_bits() + midpoint.prec();
        let product = |row, col| Float::with_val(bits, midpoint * &self.midpoint.float(row, col));
        let size = Float::with_val_round(RADIUS_BITS, midpoint.abs_ref(), rug::float::Round::Up).0;
        let reach = Float::with_val_round(RADIUS_BITS, radius, rug::float::Round::Up).0;
        let moved = |row, col| {
            let own = self.radius.float(row, col);
            let from_factor = Upper(magnitude(self.midpoint.get(row, col))).add(&own).times(&reach);
            Upper(own).times(&size).add(&from_factor.0).0
        };
        Ok(BallMatrix {
            midpoint: Matrix::from_fn(self.rows(), self.cols(), bits, product)?,
            radius: Matrix::from_fn(self.rows(), self.cols(), RADIUS_BITS, moved)?,
        })
    }

    /// Balls whose radii have 64 bits.
    pub(super) fn trusted(midpoint: Matrix, radius: Matrix) -> BallMatrix {
        BallMatrix { midpoint, radius }
    }

    pub(super) fn view(&self) -> BallView<'_> {
        let is_exact = self.radius.parts().0.iter().all(|&head| crate::math::float::Head(head).is_zero());
        BallView { midpoint: self.midpoint.view(), radius: (!is_exact).then(|| self.radius.view()) }
    }

    /// Row and column of the largest radius; `None` where all are 0.
    pub(super) fn widest(&self) -> Option<(usize, usize)> {
        let places = (0..self.cols()).flat_map(|col| (0..self.rows()).map(move |row| (row, col)));
        let size = |&(row, col): &(usize, usize)| self.radius.float(row, col);
        places.filter(|place| !size(place).is_zero()).max_by(|one, other| size(one).total_cmp(&size(other)))
    }
}

impl<'a> BallView<'a> {
    /// A matrix that is one point.
    pub fn point(midpoint: impl Into<MatrixView<'a>>) -> BallView<'a> {
        BallView { midpoint: midpoint.into(), radius: None }
    }

    pub fn transposed(self) -> BallView<'a> {
        BallView { midpoint: self.midpoint.transposed(), radius: self.radius.map(MatrixView::transposed) }
    }
}
