//! `dot`: `x^T y`, and `nrm2`: the Euclidean norm of `x`.

use crate::context::Context;
use crate::error::Result;
use crate::math::float::{FloatRef, Head, limbs_for, round_integer};
use crate::matrix::{MatrixView, check_exponent};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::vector::operand::{check_precision, vector, vector_of};
use crate::ops::vector::terms::{RightFactors, TermRun, TermSum, cut_columns};
use rug::{Float, Integer, integer::Order};

/// The sum `x^T y` of the products of the entries of two vectors, rounded to `precision_bits` bits.
///
/// Shapes: `x` and `y` are matrices or views of one column or one row, with the same number of entries, which may be 0.
/// Accuracy: `|computed - exact| <= 2^(1 - precision_bits) |x|^T |y|`, for any exponents; only the sum is rounded, and
/// the bits depend only on the entries and the precision. Cost: one product of limbs for each term. Source:
/// docs/decisions/032-vectors.md.
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let x = Matrix::from_f64s(3, 1, 256, &[1.0, 2.0, 3.0])?;
/// let y = Matrix::from_f64s(1, 3, 256, &[4.0, -5.0, 6.0])?; // rows are vectors too
/// assert_eq!(sunzi::blas::dot(&ctx, &x, &y, 256)?, 12);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Precision`]; [`crate::Error::ExponentRange`] if the sum is outside
/// the exponent range; [`crate::Error::MemoryLimit`].
pub fn dot<'a, 'b>(
    ctx: &Context,
    x: impl Into<MatrixView<'a>>,
    y: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Float> {
    check_precision(precision_bits)?;
    let x = vector("dot", x.into())?;
    let y = vector_of("dot", y.into(), x.rows())?;
    let mut sum = sum_of_products(ctx, x, y, precision_bits)?;
    let mut limbs = vec![0; limbs_for(precision_bits)];
    let head = sum.round(&mut limbs);
    float(head, &limbs, precision_bits)
}

/// The Euclidean norm `sqrt(x^T x)` of a vector, rounded to `precision_bits` bits.
///
/// Shapes: `x` is a matrix or view of one column or one row; the norm of no entries is 0. Accuracy: `|computed - exact|
/// <= 2^(1 - precision_bits) exact`. The squares cannot overflow. Source: docs/decisions/032-vectors.md.
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let x = Matrix::from_f64s(2, 1, 256, &[3.0, -4.0])?;
/// assert_eq!(sunzi::blas::nrm2(&ctx, &x, 256)?, 5);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`dot`].
pub fn nrm2<'a>(ctx: &Context, x: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Float> {
    check_precision(precision_bits)?;
    let x = vector("nrm2", x.into())?;
    let mut sum = sum_of_products(ctx, x, x, precision_bits)?;
    let square = sum.exact();
    let bits = 64 * square.magnitude.len() as u32;
    // An even power of two stays outside of the root, so that no number leaves MPFR's range.
    let odd = square.exponent.rem_euclid(2);
    let integer = Integer::from_digits(square.magnitude, Order::Lsf) << odd as u32;
    let root = Float::with_val(precision_bits, Float::with_val(bits + 1, integer).sqrt_ref());
    let Some((integer, exponent)) = root.to_integer_exp() else { return Ok(Float::new(precision_bits)) };
    let exponent = i64::from(exponent) + (square.exponent - odd) / 2;
    let mut limbs = vec![0; limbs_for(precision_bits)];
    let head = round_integer(false, integer.as_limbs(), exponent, precision_bits, &mut limbs);
    float(head, &limbs, precision_bits)
}

/// Terms whose right factors are held as digits at a time.
const PIECE: usize = 512;

/// Short sums hold fewer: blocks of at most this many bytes are allocated faster.
const SHORT_PIECE_BYTES: usize = 960;
const SHORT: usize = 128;

/// Terms of a sum of `len` terms whose right factors are held at a time.
fn piece_of(len: usize, precision_bits: u32) -> usize {
    let eights = SHORT_PIECE_BYTES / (64 * cut_columns(precision_bits, len).max(1));
    if len <= SHORT && eights > 0 { len.min(8 * eights) } else { len.min(PIECE) }
}

fn sum_of_products(ctx: &Context, x: MatrixView<'_>, y: MatrixView<'_>, precision_bits: u32) -> Result<FixedSum> {
    let len = x.rows();
    let piece = piece_of(len, precision_bits);
    let factor_bytes = RightFactors::bytes(piece, precision_bits, len, y.limbs_per_element());
    ctx.admit(TermSum::bytes(precision_bits, len).saturating_add(factor_bytes))?;
    let mut sum = TermSum::new(precision_bits, len);
    let mut factors = RightFactors::zeros(piece, precision_bits, len);
    sum.begin_product(&factors, &x, &y);
    for first in (0..len).step_by(piece.max(1)) {
        let rows = first..(first + piece).min(len);
        factors.set_all(&y.block(rows.clone(), 0..1)?);
        sum.add(&factors, &TermRun { right: 0..rows.len(), left: x.block(rows.clone(), 0..1)? }, rows);
    }
    sum.finish(&factors);
    Ok(sum.sum)
}

/// The number as an MPFR float.
fn float(head: Head, limbs: &[u64], precision_bits: u32) -> Result<Float> {
    check_exponent(head.exponent(), 0, 0)?;
    Ok(FloatRef { head, limbs }.to_float(precision_bits))
}
