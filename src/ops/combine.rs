//! The last step of an entry: the exact product, times alpha, plus beta times an entry of the accumulated matrix,
//! rounded once.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, bit_length, round_integer};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView, Uplo};
use crate::ops::scale::is_integer;
use crate::ops::sum;
use rug::integer::Order;
use rug::{Float, Integer};
use std::ops::Range;

/// `alpha * product + beta * accumulate`; absent factors are 1, an absent matrix is 0.
#[derive(Clone, Copy)]
pub(crate) struct Combination<'a> {
    /// Factor of the product.
    alpha: Option<&'a Float>,
    /// Factor of the accumulated matrix.
    beta: Option<&'a Float>,
    /// The matrix added.
    accumulate: Option<MatrixView<'a>>,
    /// The triangle of it that is read, where not all of it is.
    triangle: Option<Uplo>,
    /// The least that computes it.
    form: Form,
}

/// What a combination comes down to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The product itself.
    Plain,
    /// The product and the matrix, either with the other sign.
    Sum { negate_product: bool, negate_added: bool },
    /// Factors other than 1 and -1.
    General,
}

/// The number `(-1)^negative * magnitude * 2^exponent`: one entry of the exact product.
#[derive(Clone, Copy)]
pub(crate) struct ExactEntry<'a> {
    /// Whether it is below 0.
    pub negative: bool,
    /// Little-endian limbs.
    pub magnitude: &'a [u64],
    /// Power of two.
    pub exponent: i64,
}

/// Place of an entry in the result.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Row of the result.
    pub row: usize,
    /// Column of the result.
    pub col: usize,
}

impl<'a> Combination<'a> {
    /// `alpha * product + beta * accumulate`.
    pub fn new(alpha: Option<&'a Float>, beta: Option<&'a Float>, accumulate: Option<MatrixView<'a>>) -> Self {
        let is = |factor: Option<&Float>, value: i32| factor.map_or(value == 1, |factor| *factor == value);
        let is_sign = |factor| is(factor, 1) || is(factor, -1);
        let form = match accumulate {
            None if is(alpha, 1) => Form::Plain,
            Some(_) if is_sign(alpha) && is_sign(beta) => {
                Form::Sum { negate_product: is(alpha, -1), negate_added: is(beta, -1) }
            }
            _ => Form::General,
        };
        Combination { alpha, beta, accumulate, triangle: None, form }
    }

    /// The same for a result of which one triangle is computed: nothing else is read of the matrix added.
    pub fn of_triangle(self, uplo: Uplo) -> Self {
        Combination { triangle: Some(uplo), ..self }
    }

    /// Rows of column `col` that are read of the matrix added.
    fn rows(&self, matrix: &MatrixView<'_>, col: usize) -> Range<usize> {
        match self.triangle {
            None => 0..matrix.rows(),
            Some(Uplo::Lower) => col..matrix.rows(),
            Some(Uplo::Upper) => 0..(col + 1).min(matrix.rows()),
        }
    }

    /// Whether the result is the product itself.
    pub fn is_plain(&self) -> bool {
        self.form == Form::Plain
    }

    /// Refuses an accumulated matrix of another shape, factors that are not finite, and, for exact integers, factors
    /// and entries that are not integers.
    pub fn check(&self, (rows, cols): (usize, usize), exact_integers: bool) -> Result<()> {
        for (name, factor) in [("alpha", self.alpha), ("beta", self.beta)] {
            let Some(factor) = factor else { continue };
            if !factor.is_finite() {
                return Err(Error::InvalidArgument(format!("{name} is {factor}: it must be finite")));
            }
            if exact_integers && !factor.is_integer() {
                return Err(Error::InvalidArgument(format!("{name} is not an integer, as exact integers need")));
            }
        }
        let Some(matrix) = self.accumulate else { return Ok(()) };
        if (matrix.rows(), matrix.cols()) != (rows, cols) {
            return Err(Error::ShapeMismatch {
                operation: "accumulate",
                left_rows: rows,
                left_cols: cols,
                right_rows: matrix.rows(),
                right_cols: matrix.cols(),
            });
        }
        if exact_integers {
            let places = (0..cols).flat_map(|column| self.rows(&matrix, column).map(move |row| (row, column)));
            let fraction = places.into_iter().find(|&(row, column)| !is_integer(matrix.get(row, column)));
            return fraction.map_or(Ok(()), |(row, column)| Err(Error::NotInteger { row, column }));
        }
        Ok(())
    }

    /// Bits that hold `alpha * q + beta * c` exactly, for integers `|q| < 2^product_bits`.
    pub fn exact_bits(&self, product_bits: u32) -> u64 {
        let bits = |factor: Option<&Float>| {
            factor.map_or(0, |value| value.get_exp().map_or(0, |exponent| exponent.max(0) as u64))
        };
        let product = u64::from(product_bits) + bits(self.alpha);
        let Some(matrix) = self.accumulate else { return product };
        let column = |col| self.rows(&matrix, col).map(move |row| matrix.get(row, col).head.exponent().max(0) as u64);
        let largest = (0..matrix.cols()).flat_map(column).max().unwrap_or(0);
        product.max(largest + bits(self.beta)) + 1
    }

    /// Rounds one entry of the result to `precision_bits` into `limbs`.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] where the result leaves the exponent range.
    #[inline]
    pub fn finish(&self, exact: ExactEntry<'_>, place: Place, precision_bits: u32, limbs: &mut [u64]) -> Result<Head> {
        let head = match self.form {
            Form::Plain => round_integer(exact.negative, exact.magnitude, exact.exponent, precision_bits, limbs),
            Form::Sum { negate_product, negate_added } => {
                let product = ExactEntry { negative: exact.negative != negate_product, ..exact };
                let added = self.accumulate.map_or(ExactEntry::ZERO, |matrix| matrix.get(place.row, place.col).into());
                let added = ExactEntry { negative: added.negative != negate_added, ..added };
                match sum::round_sum(&product, &added, precision_bits, limbs) {
                    Some(head) => head,
                    None => self.combine(exact, place, precision_bits, limbs)?,
                }
            }
            Form::General => self.combine(exact, place, precision_bits, limbs)?,
        };
        check_range(head.exponent(), place)?;
        Ok(head)
    }

    /// The general case, through MPFR's correctly rounded sum of two products.
    ///
    /// Exponents are taken out first, so that no intermediate leaves MPFR's range.
    fn combine(&self, exact: ExactEntry<'_>, place: Place, precision_bits: u32, limbs: &mut [u64]) -> Result<Head> {
        let one = Float::with_val(2, 1);
        let zero = Float::new(2);
        let [alpha, beta] = [self.alpha, self.beta].map(|factor| Normal::new(factor.unwrap_or(&one)));
        let added =
            self.accumulate.map_or(zero, |matrix| matrix.get(place.row, place.col).to_float(matrix.precision_bits()));
        let (mut product, mut added) = (exact.normal(), Normal::new(&added));
        let left = alpha.exponent + product.exponent;
        let right = beta.exponent + added.exponent;
        let common = match (alpha.is_zero() || product.is_zero(), beta.is_zero() || added.is_zero()) {
            (true, _) => right,
            (_, true) => left,
            _ => left.max(right),
        };
        // A part that lies 2^29 bits below the other only decides on which side of a tie the sum is.
        let shift = |exponent: i64| (exponent - common).clamp(-(1 << 29), 0) as i32;
        product.fraction <<= shift(left);
        added.fraction <<= shift(right);
        let sum = alpha.fraction.mul_add_mul_ref(&product.fraction, &beta.fraction, &added.fraction);
        let sum = Normal::new(&Float::with_val(precision_bits, sum));
        if sum.is_zero() {
            limbs.fill(0);
            return Ok(Head::ZERO);
        }
        let (integer, exponent) = sum.fraction.to_integer_exp().expect("a sum of finite products is finite");
        let exponent = i64::from(exponent) + sum.exponent + common;
        check_range(exponent + i64::from(integer.significant_bits()), place)?;
        Ok(round_integer(integer < 0, integer.as_limbs(), exponent, precision_bits, limbs))
    }
}

/// A number as a fraction in `[1/2, 1)` and a power of two, or 0.
struct Normal {
    fraction: Float,
    exponent: i64,
}

impl Normal {
    fn new(value: &Float) -> Normal {
        let exponent = value.get_exp().unwrap_or(0);
        Normal { fraction: Float::with_val(value.prec(), value >> exponent), exponent: exponent.into() }
    }

    fn is_zero(&self) -> bool {
        self.fraction.is_zero()
    }
}

impl ExactEntry<'_> {
    /// The number 0.
    pub const ZERO: ExactEntry<'static> = ExactEntry { negative: false, magnitude: &[], exponent: 0 };

    /// Exponent of the power of two above the magnitude.
    pub fn top(&self) -> i64 {
        bit_length(self.magnitude) as i64 + self.exponent
    }

    /// The number as a fraction and a power of two, exactly.
    fn normal(self) -> Normal {
        let bits = bit_length(self.magnitude);
        let integer = Integer::from_digits(self.magnitude, Order::Lsf);
        let mut normal = Normal::new(&Float::with_val(bits.max(2) as u32, &integer));
        normal.exponent += self.exponent;
        if self.negative {
            normal.fraction = -normal.fraction;
        }
        normal
    }
}

impl<'a> From<FloatRef<'a>> for ExactEntry<'a> {
    fn from(value: FloatRef<'a>) -> Self {
        let exponent = value.head.exponent() - value.limbs.len() as i64 * 64;
        ExactEntry { negative: value.head.is_negative(), magnitude: value.limbs, exponent }
    }
}

/// Refuses an exponent that a matrix cannot hold.
fn check_range(exponent: i64, place: Place) -> Result<()> {
    if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
        let (row, column) = (place.row, place.col);
        return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
    }
    Ok(())
}
