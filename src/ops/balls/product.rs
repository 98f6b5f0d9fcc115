//! Products of balls: `C + A B` and `C - A B`, midpoints by one product, radii by products of magnitudes.
//!
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS};
use super::matrix::{BallMatrix, BallView};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView, Op, Symmetric};
use crate::ops::estimate::{Upper, magnitude, power};
use crate::ops::gemm::{GemmOptions, gemm_with};
use crate::ops::product::problem::Accuracy;
use crate::ops::syrk::{SyrkOptions, syrk_with};
use rug::Float;
use rug::float::Round;

/// Bits of the first product beyond those of the result.
const SPARE_BITS: u32 = 32;

/// An entry counts as exact where its own rounding relative to its spread is below this power of two.
const FINE_LOG2: i64 = -3;

/// The same relative to a unit in the last place of the result, as a power of two.
const ROUNDING_LOG2: i64 = -12;

/// For entries that cancel, a product takes at most this times the requested bits, plus a constant.
const MOST_TIMES: u32 = 4;

/// Bits that are always granted.
const MOST_MORE_BITS: u32 = 512;

/// The least exponent where there is none: that of a number that is 0.
const NO_UNIT: i64 = i64::MAX / 4;

/// Errors below this part of a unit in the last place, as a power of two, do not count as roundings of the midpoint.
const UNSEEN_BITS: u32 = 24;

/// Where units are no powers of two that a shift can reach.
const LEAST_UNIT: i64 = i32::MIN as i64 + 64;

/// Balls that contain `op(A) op(B) + C`, or `op(A) op(B)`, for all points of the operands.
///
/// Shapes: `op(A)` is `M x K`, `op(B)` is `K x N`, the result and `c` are `M x N`; any of them may be 0. To multiply by
/// a scalar, scale an operand first, see [`BallMatrix::scaled`]. Radius: `|A| rB + rA (|B| + rB) + rC`, plus the
/// rounding error of the midpoint at `precision_bits` bits. Entries that cancel are computed with more bits. Cost: a
/// product of `precision_bits + 32` bits, of up to four times as many bits if entries cancel, and up to three products
/// of 32 bits. Source: S. M. Rump, *Fast and parallel interval arithmetic*, BIT 39 (1999).
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, Op, rug::Rational};
/// let ctx = Context::new()?;
/// let a = BallMatrix::exact(Matrix::from_f64s(1, 2, 128, &[1.0, 2.0])?)?;
/// let radius = Matrix::from_f64s(2, 1, 64, &[0.5, 0.25])?;
/// let b = BallMatrix::new(Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?, &radius)?;
/// let c = ball::gemm(&ctx, (&a, Op::NoTranspose), (&b, Op::NoTranspose), None, 128)?; // 11, give or take 1
/// assert!(c.contains(0, 0, &Rational::from(10)) && c.contains(0, 0, &Rational::from(12)));
/// assert!(c.radius().float(0, 0) < 1.001);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::gemm_with`].
pub fn gemm(
    ctx: &Context,
    (a, op_a): (&BallMatrix, Op),
    (b, op_b): (&BallMatrix, Op),
    c: Option<&BallMatrix>,
    precision_bits: u32,
) -> Result<BallMatrix> {
    let product = BallProduct::plain(oriented(a.view(), op_a), oriented(b.view(), op_b));
    BallProduct { added: c.map(BallMatrix::view), ..product }.balls(ctx, precision_bits)
}

/// Balls that contain `P^T P + C`, with [`Op::Transpose`] `P P^T + C`, for all points `P`, and all symmetric points
/// `C`.
///
/// Shapes: `p` is `K x N`, the result and `c` are `N x N`; `c` has a symmetric midpoint. Radius and cost: as for
/// [`gemm`].
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, Op, rug::Rational};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let p = BallMatrix::new(p, &Matrix::from_f64s(2, 1, 64, &[0.5, 0.0])?)?;
/// let q = ball::syrk(&ctx, (&p, Op::NoTranspose), None, 128)?; // 2.5^2 + 16 to 3.5^2 + 16
/// assert!(q.contains(0, 0, &Rational::from((89, 4))) && q.contains(0, 0, &Rational::from((113, 4))));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::syrk_with`].
pub fn syrk(
    ctx: &Context,
    (p, op): (&BallMatrix, Op),
    c: Option<&BallMatrix>,
    precision_bits: u32,
) -> Result<BallMatrix> {
    if let Some(c) = c {
        Symmetric::from(c.midpoint()).lower_view("syrk")?;
    }
    let right = oriented(p.view(), op);
    let product = BallProduct { symmetric: true, ..BallProduct::plain(right.transposed(), right) };
    BallProduct { added: c.map(BallMatrix::view), ..product }.balls(ctx, precision_bits)
}

fn oriented(view: BallView<'_>, op: Op) -> BallView<'_> {
    if op == Op::Transpose { view.transposed() } else { view }
}

/// `added + sign * left * right`, for all points of these.
#[derive(Clone, Copy)]
pub(super) struct BallProduct<'a> {
    pub left: BallView<'a>,
    pub right: BallView<'a>,
    pub added: Option<BallView<'a>>,
    pub negated: bool,
    /// Whether `left` is the transpose of `right`, and the added matrix symmetric.
    pub symmetric: bool,
}

/// A product of midpoints, and bounds of its distance from the exact ones.
pub(super) struct Enclosed {
    pub midpoint: Matrix,
    /// Largest distance of a midpoint from that of the exact product.
    pub rounding: Matrix,
    /// The contribution of the operands' radii to each entry; `None` where all are 0.
    pub spread: Option<Matrix>,
}

impl Enclosed {
    /// An upper bound of the magnitude of every point.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::ExponentRange`].
    pub fn magnitudes(&self) -> Result<Matrix> {
        Matrix::from_fn(self.midpoint.rows(), self.midpoint.cols(), RADIUS_BITS, |row, col| {
            Upper(magnitude(self.midpoint.get(row, col))).add(&self.radius(row, col)).0
        })
    }

    fn radius(&self, row: usize, col: usize) -> Float {
        let spread = self.spread.as_ref().map_or_else(|| Float::new(RADIUS_BITS), |spread| spread.float(row, col));
        Upper(spread).add(&self.rounding.float(row, col)).0
    }

    /// The midpoints rounded to `precision_bits`, with radii that count it.
    ///
    /// # Errors
    /// As [`Enclosed::magnitudes`].
    fn rounded(&self, precision_bits: u32) -> Result<BallMatrix> {
        let midpoint = self.midpoint.view().rounded(precision_bits)?;
        let radius = Matrix::from_fn(midpoint.rows(), midpoint.cols(), RADIUS_BITS, |row, col| {
            let moved = distance(&self.midpoint.float(row, col), &midpoint.float(row, col));
            Upper(self.radius(row, col)).add(&moved).0
        })?;
        Ok(BallMatrix::trusted(midpoint, radius))
    }
}

/// The radius for the rounding of a number to the midpoint `rounded`: 0 where it is exact, else two units in the last
/// place.
///
/// The number is at most half a unit away. Two units hold the ball of one unit around it rounded in any direction too,
/// which is how ball arithmetic has the number at this precision.
pub(super) fn rounding(number: Float, rounded: &Float) -> Float {
    let moved = distance(&number, rounded);
    if shows(&moved, rounded) { moved.max(&two_units(rounded)) } else { moved }
}

/// `|a - b|`, rounded up.
fn distance(a: &Float, b: &Float) -> Float {
    let (lower, upper) = if a < b { (a, b) } else { (b, a) };
    Float::with_val_round(RADIUS_BITS, upper - lower, Round::Up).0
}

/// Whether an error is too large for the midpoint to count as exact.
pub(super) fn shows(moved: &Float, midpoint: &Float) -> bool {
    *moved > Float::with_val(RADIUS_BITS, two_units(midpoint) >> UNSEEN_BITS)
}

/// Two units in the last place of a midpoint; 0 of 0.
pub(super) fn two_units(midpoint: &Float) -> Float {
    match midpoint.get_exp() {
        Some(exponent) => power(i64::from(exponent) - i64::from(midpoint.prec()) + 1),
        None => Float::new(RADIUS_BITS),
    }
}

impl<'a> BallProduct<'a> {
    /// `A B`.
    pub fn plain(left: BallView<'a>, right: BallView<'a>) -> BallProduct<'a> {
        BallProduct { left, right, added: None, negated: false, symmetric: false }
    }

    /// `C - A B`.
    pub fn residual(added: BallView<'a>, left: BallView<'a>, right: BallView<'a>) -> BallProduct<'a> {
        BallProduct { left, right, added: Some(added), negated: true, symmetric: false }
    }

    /// The product with midpoints of `bits` bits; exact entries are found as such where the bits suffice.
    ///
    /// # Errors
    /// The errors of [`gemm_with`].
    pub fn enclose(&self, ctx: &Context, bits: u32) -> Result<Enclosed> {
        let sizes = self.sizes(ctx)?;
        let units = self.units().all(sizes.cols());
        let (midpoint, rounding) = self.midpoints(ctx, bits, &sizes, &units)?;
        Ok(Enclosed { midpoint, rounding, spread: self.spread(ctx)? })
    }

    /// The product with midpoints of `precision_bits` bits, computed with more where entries cancel.
    ///
    /// # Errors
    /// The errors of [`gemm_with`].
    pub fn balls(&self, ctx: &Context, precision_bits: u32) -> Result<BallMatrix> {
        let sizes = self.sizes(ctx)?;
        let units = self.units().all(sizes.cols());
        let mut bits = precision_bits.saturating_add(SPARE_BITS);
        let (midpoint, rounding) = self.midpoints(ctx, bits, &sizes, &units)?;
        let mut enclosed = Enclosed { midpoint, rounding, spread: self.spread(ctx)? };
        let most = MOST_TIMES.saturating_mul(precision_bits).saturating_add(MOST_MORE_BITS);
        for _ in 0..2 {
            let wanted = wanted_bits(&enclosed, bits, precision_bits, |row, col| {
                sizes.get(row, col).head.exponent() - units[col * sizes.rows() + row]
            });
            if wanted <= bits || bits >= most {
                break;
            }
            bits = wanted.min(most);
            match self.midpoints(ctx, bits, &sizes, &units) {
                Ok((midpoint, rounding)) => enclosed = Enclosed { midpoint, rounding, ..enclosed },
                Err(Error::Precision { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        enclosed.rounded(precision_bits)
    }

    /// The midpoints with `bits` bits, entry by entry, and bounds of their errors.
    fn midpoints(&self, ctx: &Context, bits: u32, sizes: &Matrix, units: &[i64]) -> Result<(Matrix, Matrix)> {
        let unit = |row: usize, col: usize| units[col * sizes.rows() + row];
        let computed = self.computed(ctx, bits)?;
        let error = |row: usize, col: usize| Upper(sizes.float(row, col)).times(&power(1 - i64::from(bits))).0;
        // All entries are multiples of their unit: one that is known to less than half of it is known exactly.
        let is_exact = |row: usize, col: usize| {
            let unit = unit(row, col);
            unit > LEAST_UNIT && error(row, col) < power(unit - 1)
        };
        let rounding = Matrix::from_fn(computed.rows(), computed.cols(), RADIUS_BITS, |row, col| {
            if is_exact(row, col) { Float::new(RADIUS_BITS) } else { error(row, col) }
        })?;
        let midpoint = Matrix::from_fn(computed.rows(), computed.cols(), bits, |row, col| {
            let value = computed.float(row, col);
            if value.is_zero() || !is_exact(row, col) {
                return value;
            }
            let unit = i32::try_from(unit(row, col)).expect("a number that is not 0 has bits");
            (value >> unit).round_even() << unit
        })?;
        Ok((midpoint, rounding))
    }

    fn computed(&self, ctx: &Context, bits: u32) -> Result<Matrix> {
        let sign = Float::with_val(2, if self.negated { -1 } else { 1 });
        let added = self.added.map(|added| added.midpoint);
        if self.symmetric {
            let options = SyrkOptions::new().accuracy(Accuracy::Entrywise).alpha(&sign);
            let options = options.accumulate(added.map(Symmetric::lower));
            return Ok(syrk_with(ctx, self.right.midpoint, bits, &options)?.result.into_matrix());
        }
        let options = GemmOptions::new().accuracy(Accuracy::Entrywise).alpha(&sign).accumulate(added);
        Ok(gemm_with(ctx, self.left.midpoint, self.right.midpoint, bits, &options)?.result)
    }

    /// `|A| |B| + |C|` of the midpoints, rounded up.
    fn sizes(&self, ctx: &Context) -> Result<Matrix> {
        let (left, right) = (bounds::magnitudes(self.left.midpoint)?, bounds::magnitudes(self.right.midpoint)?);
        let product = bounds::product(ctx, left.view(), right.view())?;
        match self.added {
            Some(added) => bounds::sum(product.view(), bounds::magnitudes(added.midpoint)?.view()),
            None => Ok(product),
        }
    }

    /// `|A| rB + rA (|B| + rB) + rC`, rounded up; `None` where all radii are 0.
    fn spread(&self, ctx: &Context) -> Result<Option<Matrix>> {
        let mut whole: Option<Matrix> = None;
        let mut add = |part: Matrix| -> Result<()> {
            whole = Some(match whole.take() {
                Some(whole) => bounds::sum(whole.view(), part.view())?,
                None => part,
            });
            Ok(())
        };
        if let Some(radius) = self.right.radius {
            let left = bounds::magnitudes(self.left.midpoint)?;
            add(bounds::product(ctx, left.view(), radius)?)?;
        }
        if let Some(radius) = self.left.radius {
            let mut right = bounds::magnitudes(self.right.midpoint)?;
            if let Some(own) = self.right.radius {
                right = bounds::sum(right.view(), own)?;
            }
            add(bounds::product(ctx, radius, right.view())?)?;
        }
        if let Some(radius) = self.added.and_then(|added| added.radius) {
            add(radius.to_matrix()?)?;
        }
        let Some(whole) = whole else { return Ok(None) };
        if !self.symmetric {
            return Ok(Some(whole));
        }
        // Both triangles bound the same numbers: one serves both.
        let lower = |row: usize, col: usize| whole.float(row.max(col), row.min(col));
        Matrix::from_fn(whole.rows(), whole.cols(), RADIUS_BITS, lower).map(Some)
    }

    fn units(&self) -> Units {
        let (left, right) = (self.left.midpoint, self.right.midpoint);
        let row = |row: usize| (0..left.cols()).map(move |at| lowest_bit(left, row, at));
        let col = |col: usize| (0..right.rows()).map(move |at| lowest_bit(right, at, col));
        let added = self.added.map(|added| {
            let view = added.midpoint;
            (0..view.cols()).flat_map(|col| (0..view.rows()).map(move |row| lowest_bit(view, row, col))).collect()
        });
        Units {
            rows: left.rows(),
            contracted: left.cols(),
            left: (0..left.rows()).flat_map(row).collect(),
            right: (0..right.cols()).flat_map(col).collect(),
            added,
        }
    }
}

/// Powers of two that all terms of an entry are multiples of.
struct Units {
    rows: usize,
    contracted: usize,
    /// Units of the left factor, row by row.
    left: Vec<i64>,
    /// Units of the right factor, column by column.
    right: Vec<i64>,
    /// Units of the added matrix, column by column.
    added: Option<Vec<i64>>,
}

impl Units {
    fn of(&self, row: usize, col: usize) -> i64 {
        let at = |index: usize| index * self.contracted..(index + 1) * self.contracted;
        let (left, right) = (&self.left[at(row)], &self.right[at(col)]);
        let product = left.iter().zip(right).map(|(left, right)| left + right).min().unwrap_or(NO_UNIT);
        self.added.as_ref().map_or(product, |added| product.min(added[col * self.rows + row]))
    }

    /// The units of all entries, column by column.
    fn all(&self, cols: usize) -> Vec<i64> {
        (0..cols)
            .flat_map(|col| (0..self.rows).map(move |row| (row, col)))
            .map(|(row, col)| self.of(row, col))
            .collect()
    }
}

/// The exponent of the lowest bit of an entry that is 1.
fn lowest_bit(matrix: MatrixView<'_>, row: usize, col: usize) -> i64 {
    let value = matrix.get(row, col);
    if value.head.is_zero() {
        return NO_UNIT;
    }
    let zeros = value.limbs.iter().take_while(|&&limb| limb == 0).count();
    let bits = value.limbs.len() as i64 * 64;
    value.head.exponent() - bits + zeros as i64 * 64 + i64::from(value.limbs[zeros].trailing_zeros())
}

/// Bits with which no entry of `enclosed`, now of `bits` bits, has a rounding of its own that matters relative to its
/// spread or to the rounding to `precision_bits` bits; `size_bits` returns the exponent of an entry's size less that of
/// its unit.
fn wanted_bits(enclosed: &Enclosed, bits: u32, precision_bits: u32, size_bits: impl Fn(usize, usize) -> i64) -> u32 {
    let (bits, precision_bits) = (i64::from(bits), i64::from(precision_bits));
    let Enclosed { midpoint, rounding, spread } = enclosed;
    let mut most = 0;
    for (row, col) in (0..midpoint.cols()).flat_map(|col| (0..midpoint.rows()).map(move |row| (row, col))) {
        let error = rounding.get(row, col).head;
        if error.is_zero() {
            continue;
        }
        let error = error.exponent();
        let beside_spread = spread.as_ref().map(|spread| spread.get(row, col).head);
        if beside_spread.is_some_and(|head| !head.is_zero() && error <= head.exponent() + FINE_LOG2) {
            continue;
        }
        let exact = size_bits(row, col) + 3;
        let own = midpoint.float(row, col);
        let is_known = own.get_exp().is_some_and(|exponent| i64::from(exponent) > error + 1);
        let rounded = Float::with_val(precision_bits as u32, &own);
        let is_rounded = shows(&Float::with_val(RADIUS_BITS, &own - &rounded).abs(), &rounded);
        let fine = bits + (error - (midpoint.get(row, col).head.exponent() - precision_bits + ROUNDING_LOG2)).max(0);
        // Where the midpoint needs no rounding, the radius is only its own error.
        most = most.max(if is_known && is_rounded { fine.min(exact) } else { exact });
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}
