//! Solutions and inverses of matrices of balls.
//!
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS};
use super::matrix::{BallMatrix, BallView};
use super::midpoint::Midpoint;
use super::product::{BallProduct, Enclosed, shows, two_units};
use super::regular::{BOUND_BITS, Regular, SPARE_BITS};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::estimate::Upper;
use rug::Float;

/// Right-hand sides.
enum BallRightSides<'a> {
    Balls(&'a BallMatrix),
    Identity,
}

/// A running solve.
struct Solving<'a> {
    ctx: &'a Context,
    a: BallView<'a>,
    right: BallRightSides<'a>,
    factored: Midpoint,
    inverse: Matrix,
    regular: Regular,
}

/// Balls that contain the solution `X` of `A X = B` for all points `A`, symmetric or not, and all points `B`.
///
/// Shapes: `a` is `n x n` with a regular midpoint, `b` and the result are `n x m`. Radius: for
/// operands of radius 0, two to three units in the last place of each entry, or 0 for exact entries; otherwise, to
/// first order, the largest change over the points of the operands, `|A^-1| (rB + rA |X|)`. Cost: a factorisation, an
/// inverse and a solve with as many bits as `precision_bits` and the condition require, and a few products of few bits.
/// Source: S. M. Rump, *Verification methods: rigorous results using floating-point arithmetic*, Acta Numerica 19
/// (2010); docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let a = BallMatrix::exact(Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?)?;
/// let b = BallMatrix::exact(Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?)?;
/// let x = ball::solve(&ctx, &a, &b, 128)?;
/// assert!(x.contains(0, 0, &Rational::from((2, 3))) && x.contains(1, 0, &Rational::from((-1, 3))));
/// assert!(x.radius().float(0, 0) < 1e-37);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::NoPivot`] and [`crate::Error::Precision`] if the midpoint is singular to the largest number of bits;
/// [`crate::Error::InvalidArgument`] if no proof is found that all points are regular; [`crate::Error::NotSquare`];
/// [`crate::Error::ShapeMismatch`]; the errors of [`crate::solve_with`] and [`crate::lu_with`].
pub fn solve(ctx: &Context, a: &BallMatrix, b: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    if a.rows() != b.rows() {
        return Err(Error::shape_mismatch("solve", (a.rows(), a.cols()), (b.rows(), b.cols())));
    }
    run(ctx, a, BallRightSides::Balls(b), precision_bits)
}

/// Balls that contain the inverse of every point of `a`, symmetric or not; as [`solve()`] for the columns of the
/// identity.
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let midpoint = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.25, 0.0, 0.0, 0.0])?;
/// let inverse = ball::inverse(&ctx, &BallMatrix::new(midpoint, &radius)?, 128)?;
/// assert!(inverse.contains(0, 0, &Rational::from((4, 5)))); // for a_00 = 1.75
/// assert!(inverse.contains(0, 0, &Rational::from((4, 7)))); // for a_00 = 2.25
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`solve()`].
pub fn inverse(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    run(ctx, a, BallRightSides::Identity, precision_bits)
}

fn run(ctx: &Context, a: &BallMatrix, right: BallRightSides<'_>, precision_bits: u32) -> Result<BallMatrix> {
    let operation = if matches!(right, BallRightSides::Identity) { "inverse" } else { "solve" };
    let factored = Midpoint::new(ctx, a, precision_bits)?;
    let (inverse, regular) = factored.regular(ctx, a.view(), operation)?;
    let solving = Solving { ctx, a: a.view(), right, factored, inverse, regular };
    let first = solving.solved(&solving.factored, 0)?;
    let more_bits = solving.more_bits(&first);
    if more_bits == 0 {
        return Ok(first);
    }
    // Entries that are tiny relative to those of their column: once more, with as many bits as they lack.
    match solving.again(more_bits) {
        Ok(second) => sharper(first, second),
        Err(Error::Precision { .. } | Error::NoPivot { .. }) => Ok(first),
        Err(error) => Err(error),
    }
}

impl Solving<'_> {
    fn again(&self, more_bits: u32) -> Result<BallMatrix> {
        let Midpoint { precision_bits, lost_bits, .. } = self.factored;
        let midpoint = BallMatrix::exact(self.a.midpoint.to_matrix()?)?;
        let better = Midpoint::new(self.ctx, &midpoint, precision_bits + more_bits)?;
        let better = Midpoint { precision_bits, lost_bits, ..better };
        self.solved(&better, more_bits)
    }

    /// The solution with `more_bits` bits in addition to those for the condition.
    fn solved(&self, factored: &Midpoint, more_bits: u32) -> Result<BallMatrix> {
        let Midpoint { precision_bits, lost_bits, .. } = factored;
        let (ctx, bits) = (self.ctx, precision_bits + lost_bits + more_bits + SPARE_BITS);
        let unit;
        let (solution, right) = match self.right {
            BallRightSides::Balls(b) => (factored.solve(ctx, b.midpoint(), bits)?, b.view()),
            BallRightSides::Identity => {
                unit = Matrix::identity(self.a.midpoint.rows(), 2)?;
                (factored.inverse(ctx, bits)?, BallView::point(&unit))
            }
        };
        let solution = solution.view().rounded(*precision_bits)?;
        // |X - X0| <= |E| |X - X0| + |R (B - A X0)|.
        let residual =
            BallProduct::residual(right, self.a, BallView::point(&solution)).enclose(ctx, bits + SPARE_BITS)?;
        let image = ResidualImage::of(ctx, &self.inverse, &residual, lost_bits + BOUND_BITS)?;
        image.around(solution, &self.regular.solution(ctx, &image.whole)?)
    }

    /// Bits that would make the radii of a solution of exact operands as small as roundings; at most as many as the
    /// result has.
    fn more_bits(&self, found: &BallMatrix) -> u32 {
        let right = match self.right {
            BallRightSides::Balls(b) => b.view().radius,
            BallRightSides::Identity => None,
        };
        if self.a.radius.is_some() || right.is_some() {
            return 0;
        }
        let bits = i64::from(self.factored.precision_bits);
        let mut most = 0;
        for (row, col) in (0..found.cols()).flat_map(|col| (0..found.rows()).map(move |row| (row, col))) {
            let (own, radius) = (found.midpoint().get(row, col).head, found.radius().get(row, col).head);
            if !own.is_zero() && !radius.is_zero() {
                most = most.max(radius.exponent() - own.exponent() + bits - 3);
            }
        }
        if most <= 0 { 0 } else { (most + 4).min(bits + 64) as u32 }
    }
}

/// The image of the residual of an approximate solution under an approximate inverse `R`.
pub(super) struct ResidualImage {
    /// A bound of `|R|` times the residual for all points.
    pub whole: Matrix,
    /// The part of it that comes from the midpoints: the rounding of the solution.
    rounded: Matrix,
}

impl ResidualImage {
    /// Of this residual; the part of the midpoints is computed with `bits` bits.
    ///
    /// # Errors
    /// The errors of [`BallProduct::enclose`].
    pub fn of(ctx: &Context, inverse: &Matrix, residual: &Enclosed, bits: u32) -> Result<ResidualImage> {
        let image = BallProduct::plain(BallView::point(inverse), BallView::point(&residual.midpoint));
        let rounded = image.enclose(ctx, bits)?.magnitudes()?;
        let mut whole = rounded.view().to_matrix()?;
        let sizes = bounds::magnitudes(inverse.view())?;
        for part in [Some(&residual.rounding), residual.spread.as_ref()].into_iter().flatten() {
            whole = bounds::sum(whole.view(), bounds::product(ctx, sizes.view(), part.view())?.view())?;
        }
        Ok(ResidualImage { whole, rounded })
    }

    /// Balls around a solution that was rounded, from bounds of the distance of all exact solutions from it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn around(&self, solution: Matrix, distance: &Matrix) -> Result<BallMatrix> {
        // A rounding of the solution of the midpoints adds two units in the last place, as everywhere.
        let radius = Matrix::from_fn(distance.rows(), distance.cols(), RADIUS_BITS, |row, col| {
            let (own, midpoint) = (distance.float(row, col), solution.float(row, col));
            let is_rounded = shows(&self.rounded.float(row, col), &midpoint);
            if is_rounded { Upper(own).add(&two_units(&midpoint)).0 } else { own }
        })?;
        Ok(BallMatrix::trusted(solution, radius))
    }
}

/// Entry by entry the ball with the smaller radius: both hold the same numbers.
fn sharper(first: BallMatrix, second: BallMatrix) -> Result<BallMatrix> {
    let (rows, cols) = (first.rows(), first.cols());
    let is_second = |row: usize, col: usize| second.radius().float(row, col) <= first.radius().float(row, col);
    let of = |row: usize, col: usize| if is_second(row, col) { &second } else { &first };
    let bits = first.midpoint().precision_bits();
    let midpoint = Matrix::from_fn(rows, cols, bits, |row, col| of(row, col).midpoint().float(row, col))?;
    let radius: Result<Matrix> =
        Matrix::from_fn(rows, cols, RADIUS_BITS, |row, col| -> Float { of(row, col).radius().float(row, col) });
    Ok(BallMatrix::trusted(midpoint, radius?))
}
