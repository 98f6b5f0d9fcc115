//! Solutions of triangular systems of balls.
//!
//! As for other systems, with an inverse `R` of the triangle of midpoints; `E >= |I - R T|` is triangular too, so that
//! `(I - E)^-1` is applied by substitution, and exists wherever the diagonal excludes 0.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS};
use super::matrix::{BallMatrix, BallView};
use super::product::BallProduct;
use super::regular::{BOUND_BITS, SPARE_BITS};
use super::solve::ResidualImage;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Diag, Matrix, Op, Side, Uplo};
use crate::ops::estimate::Upper;
use crate::ops::product::problem::Accuracy;
use crate::ops::trsm::{TrsmOptions, trsm_with};
use rug::Float;
use rug::float::Round;

/// Bits of the first inverse.
const FIRST_BITS: u32 = 96;

/// No inverse takes more bits.
const MOST_BITS: u32 = 1 << 12;

/// An inverse is sharp enough where its error adds no more than this part, as a power of two.
const SHARP_LOG2: i32 = -10;

/// Balls that contain the solution `X` of `op(T) X = alpha B`, or with side right `X op(T) = alpha B`, for all points
/// of the triangle `T` and of `B`.
///
/// Shapes: as for [`crate::trsm_with`], whose options these are; the accuracy has no effect. Radius: for operands of
/// radius 0 two to three units in the last place of each entry, or 0 for exact entries; otherwise, to first order, the
/// largest change over the points of the operands, `|T^-1| (rB + rT |X|)`. Cost: two or three solves with as many bits
/// as `precision_bits` and the condition require, of them one or two for the identity, and a few products of few bits.
/// Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, TrsmOptions, rug::Rational};
/// let ctx = Context::new()?;
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.0, 0.0, 0.0, 1.0])?;
/// let t = BallMatrix::new(Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?, &radius)?;
/// let b = BallMatrix::exact(Matrix::from_f64s(2, 1, 128, &[5.0, 18.0])?)?;
/// let x = ball::trsm(&ctx, &t, &b, 128, &TrsmOptions::new())?; // 5, and 8 / 3 for the midpoint
/// assert!(x.contains(1, 0, &Rational::from(4)) && x.contains(1, 0, &Rational::from(2)));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Singular`] for a midpoint on the diagonal that is 0; [`Error::InvalidArgument`] for a ball on the diagonal
/// that contains 0, and if alpha is not finite; the errors of [`crate::trsm_with`].
pub fn trsm(
    ctx: &Context,
    t: &BallMatrix,
    b: &BallMatrix,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<BallMatrix> {
    Matrix::check_size(1, 1, precision_bits)?;
    let shape = |balls: &BallMatrix| (balls.rows(), balls.cols());
    let (rows, cols) = if options.side == Side::Right { (b.cols(), b.rows()) } else { (b.rows(), b.cols()) };
    if t.rows() != t.cols() || t.cols() != rows {
        return Err(Error::shape_mismatch("trsm", shape(t), shape(b)));
    }
    let zero = (0..rows).find(|&at| t.midpoint().get(at, at).head.is_zero());
    if let Some(index) = zero.filter(|_| options.diag == Diag::NonUnit) {
        return Err(Error::Singular { index });
    }
    let scaled;
    let right = match options.alpha {
        None => b,
        Some(alpha) => {
            scaled = b.scaled(&super::Ball { midpoint: alpha.clone(), radius: Float::new(RADIUS_BITS) })?;
            &scaled
        }
    };
    let places = Orientation::of(options, rows);
    let triangle = places.triangle(t, options.diag)?;
    let right = places.right(right, cols)?;
    let solution = System { ctx, triangle: &triangle, right: &right, precision_bits }.solved()?;
    places.given_back(&solution)
}

/// The positions of the entries of a lower triangle on the left in the operands of a call.
struct Orientation {
    order: usize,
    /// Whether rows and columns of `T` are exchanged.
    is_transposed: bool,
    /// Whether rows and columns are counted from the end, since the triangle is an upper one.
    is_reversed: bool,
    /// Whether `B` and `X` are transposed.
    is_right: bool,
}

impl Orientation {
    fn of(options: &TrsmOptions<'_>, order: usize) -> Orientation {
        // X op(T) = B is op(T)^T X^T = B^T.
        let is_right = options.side == Side::Right;
        let is_transposed = (options.op == Op::Transpose) != is_right;
        let is_lower = (options.uplo == Uplo::Lower) != is_transposed;
        Orientation { order, is_transposed, is_reversed: !is_lower, is_right }
    }

    fn row(&self, row: usize) -> usize {
        if self.is_reversed { self.order - 1 - row } else { row }
    }

    fn triangle(&self, t: &BallMatrix, diag: Diag) -> Result<BallMatrix> {
        let of = |matrix: &Matrix, bits: u32, unit: u32| {
            Matrix::from_fn(self.order, self.order, bits, |row, col| {
                let (own, other) = (self.row(row), self.row(col));
                match row.cmp(&col) {
                    std::cmp::Ordering::Less => Float::new(bits),
                    std::cmp::Ordering::Equal if diag == Diag::Unit => Float::with_val(bits, unit),
                    _ if self.is_transposed => matrix.float(other, own),
                    _ => matrix.float(own, other),
                }
            })
        };
        let midpoint = of(t.midpoint(), t.midpoint().precision_bits(), 1)?;
        Ok(BallMatrix::trusted(midpoint, of(t.radius(), RADIUS_BITS, 0)?))
    }

    fn right(&self, b: &BallMatrix, cols: usize) -> Result<BallMatrix> {
        let of = |matrix: &Matrix| {
            Matrix::from_fn(self.order, cols, matrix.precision_bits(), |row, col| match self.is_right {
                true => matrix.float(col, self.row(row)),
                false => matrix.float(self.row(row), col),
            })
        };
        Ok(BallMatrix::trusted(of(b.midpoint())?, of(b.radius())?))
    }

    fn given_back(&self, x: &BallMatrix) -> Result<BallMatrix> {
        let of = |matrix: &Matrix| match self.is_right {
            true => Matrix::from_fn(matrix.cols(), self.order, matrix.precision_bits(), |row, col| {
                matrix.float(self.row(col), row)
            }),
            false => Matrix::from_fn(self.order, matrix.cols(), matrix.precision_bits(), |row, col| {
                matrix.float(self.row(row), col)
            }),
        };
        Ok(BallMatrix::trusted(of(x.midpoint())?, of(x.radius())?))
    }
}

/// A system with a lower triangle.
struct System<'a> {
    ctx: &'a Context,
    triangle: &'a BallMatrix,
    right: &'a BallMatrix,
    precision_bits: u32,
}

/// A solution of the midpoints.
struct Approximate {
    /// Rounded to the precision of the result.
    solution: Matrix,
    /// A bound of the number of bits that its entries lost.
    lost_bits: u32,
}

impl System<'_> {
    fn solved(&self) -> Result<BallMatrix> {
        let (first, sharp) = self.inverse(FIRST_BITS)?;
        let Approximate { solution, lost_bits } = self.approximate(&first)?;
        let bits = lost_bits.saturating_add(BOUND_BITS).min(MOST_BITS);
        let (inverse, deviation) = if bits <= first.precision_bits() { (first, sharp) } else { self.inverse(bits)? };
        let deviation = match self.triangle.view().radius {
            None => deviation,
            Some(_) => self.deviation(&inverse, self.triangle.view())?,
        };
        let point = BallView::point(&solution);
        let residual = BallProduct::residual(self.right.view(), self.triangle.view(), point)
            .enclose(self.ctx, self.precision_bits + bits + SPARE_BITS)?;
        let image = ResidualImage::of(self.ctx, &inverse, &residual, bits + BOUND_BITS)?;
        match substituted(&deviation, &image.whole)? {
            Ok(distance) => image.around(solution, &distance),
            Err(_) => Err(self.singular()),
        }
    }

    fn of_midpoint(&self, right: &Matrix, bits: u32) -> Result<Matrix> {
        let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
        Ok(trsm_with(self.ctx, self.triangle.midpoint(), right, bits, &options)?.result)
    }

    /// `E >= |I - R T|`.
    fn deviation(&self, inverse: &Matrix, triangle: BallView<'_>) -> Result<Matrix> {
        let unit = Matrix::identity(inverse.rows(), 2)?;
        let product = BallProduct::residual(BallView::point(&unit), BallView::point(inverse), triangle);
        product.enclose(self.ctx, inverse.precision_bits())?.magnitudes()
    }

    /// An inverse `R` of the midpoint with at least `bits` bits, and a bound of `|I - R T|` for the midpoint. The bits
    /// are doubled until `|I - R T| |R|` is small relative to `|R|`, up to `MOST_BITS`.
    fn inverse(&self, bits: u32) -> Result<(Matrix, Matrix)> {
        let unit = Matrix::identity(self.triangle.rows(), 2)?;
        let mut bits = bits;
        loop {
            let inverse = self.of_midpoint(&unit, bits)?;
            let deviation = self.deviation(&inverse, BallView::point(self.triangle.midpoint()))?;
            let sizes = bounds::magnitudes(inverse.view())?;
            let moved = bounds::product(self.ctx, deviation.view(), sizes.view())?;
            let is_sharp = |(row, col): (usize, usize)| {
                let own = sizes.float(row, col);
                own.is_zero() || moved.float(row, col) <= own >> -SHARP_LOG2
            };
            let order = inverse.rows();
            let mut places = (0..order).flat_map(move |col| (col..order).map(move |row| (row, col)));
            if bits >= MOST_BITS || places.all(is_sharp) {
                return Ok((inverse, deviation));
            }
            bits = (2 * bits).min(MOST_BITS);
        }
    }

    /// The solution of the midpoints, with bits for those that its entries lose.
    fn approximate(&self, inverse: &Matrix) -> Result<Approximate> {
        let own_bits = self.precision_bits + SPARE_BITS;
        let first = self.of_midpoint(self.right.midpoint(), own_bits)?;
        // |R| |T| |X| relative to |X|.
        let sizes = bounds::magnitudes(first.view())?;
        let (triangle, inverse) =
            (bounds::magnitudes(self.triangle.midpoint().view())?, bounds::magnitudes(inverse.view())?);
        let image = bounds::product(self.ctx, triangle.view(), sizes.view())?;
        let terms = bounds::product(self.ctx, inverse.view(), image.view())?;
        let mut most = 0;
        for (row, col) in (0..first.cols()).flat_map(|col| (0..first.rows()).map(move |row| (row, col))) {
            let (own, terms) = (sizes.get(row, col).head, terms.get(row, col).head);
            if !own.is_zero() && !terms.is_zero() {
                most = most.max(terms.exponent() - own.exponent() + 2);
            }
        }
        let lost_bits = u32::try_from(most).unwrap_or(0).min(self.precision_bits.saturating_add(MOST_BITS));
        let solution = match self.of_midpoint(self.right.midpoint(), own_bits.saturating_add(lost_bits)) {
            Ok(better) => better,
            Err(Error::Precision { .. }) => first,
            Err(error) => return Err(error),
        };
        Ok(Approximate { solution: solution.view().rounded(self.precision_bits)?, lost_bits })
    }

    fn singular(&self) -> Error {
        let order = self.triangle.rows();
        let radius = |at: usize| self.triangle.radius().float(at, at);
        let holds_zero = |at: &usize| radius(*at) >= self.triangle.midpoint().float(*at, *at).abs();
        let place = (0..order).find(holds_zero);
        let reason =
            place.map_or("for an approximate inverse R of T, a diagonal entry of I - R T may be 1".into(), |at| {
                format!(
                    "the ball {:.6} +- {:.3e} on the diagonal contains 0",
                    self.triangle.midpoint().float(at, at).to_f64(),
                    radius(at).to_f64()
                )
            });
        Error::InvalidArgument(format!("trsm: the {order} x {order} balls may contain a singular matrix: {reason}"))
    }
}

/// A bound of `(I - E)^-1 Y` for a lower triangular `E` and `Y >= 0`, by substitution; the first row whose diagonal
/// entry is not below 1 otherwise.
fn substituted(deviation: &Matrix, bound: &Matrix) -> Result<std::result::Result<Matrix, usize>> {
    let (rows, cols) = (bound.rows(), bound.cols());
    let left = |row: usize| Float::with_val_round(RADIUS_BITS, 1 - &deviation.float(row, row), Round::Down).0;
    let left: Vec<Float> = (0..rows).map(left).collect();
    if let Some(row) = left.iter().position(|left| *left <= 0) {
        return Ok(Err(row));
    }
    let mut whole = Matrix::zeros(rows, cols, RADIUS_BITS)?;
    for (row, col) in (0..cols).flat_map(|col| (0..rows).map(move |row| (row, col))) {
        let terms = (0..row).filter(|&at| !deviation.get(row, at).head.is_zero());
        let sum = terms.fold(Upper(bound.float(row, col)), |sum, at| {
            sum.add(&Upper(deviation.float(row, at)).times(&whole.float(at, col)).0)
        });
        whole.set_float(row, col, &sum.over(&left[row]).0)?;
    }
    Ok(Ok(whole))
}
