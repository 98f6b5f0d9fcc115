//! Residuals `B - A X` of a symmetric matrix, and their size relative to `|A| |X| + |B|`, entry by entry.
//!
//! Columns of `A` and rows of `X` are scaled by powers of two first, so that norms are close to the entries that
//! matter. Where a norm still covers an entry, that entry is summed scalar by scalar.

use crate::context::Context;
use crate::error::Result;
use crate::math::bound::{RESIDUAL_COVERED_BITS, RESIDUAL_SIZE_BITS, guard_bits, residual_bits};
use crate::math::float::{FloatRef, Head};
use crate::math::magnitude::Magnitude;
use crate::math::pivot::diagonal_exponent;
use crate::math::scale::column_exponent;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::{FixedSum, Sign};
use crate::ops::product::block::BlockProduct;
use crate::ops::product::problem::Accuracy;
use std::sync::{Mutex, PoisonError};

/// A symmetric matrix and right-hand sides, ready for residuals.
pub(super) struct SymmetricSystem<'a> {
    a: Matrix,
    b: MatrixView<'a>,
    /// Column `j` of `A` is scaled by `2^-exponents[j]`.
    exponents: Vec<i64>,
    scaled: ScaledHeads,
    /// The norm exponent of each scaled row.
    norms: Vec<i64>,
}

/// Heads of a scaled matrix, and of its magnitudes.
struct ScaledHeads {
    signed: Vec<u64>,
    sizes: Vec<u64>,
}

/// A residual and its size.
pub(super) struct Residual {
    /// `B - A X`; each entry is off by at most `2^-bits (|A| |X| + |B|)` for the requested `bits`, and by one rounding.
    pub matrix: Matrix,
    /// How large it is.
    pub size: ResidualSizes,
}

/// Two measures of a residual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ResidualSizes {
    /// At least `log2` of the largest `|r| / (|A| |x| + |b|)`; `i64::MIN` where all are 0.
    pub componentwise_log2: i64,
    /// About `log2` of the largest residual relative to the norms of its row and column.
    pub normwise_log2: i64,
}

impl ResidualSizes {
    const LEAST: ResidualSizes = ResidualSizes { componentwise_log2: i64::MIN, normwise_log2: i64::MIN };

    fn max(self, other: ResidualSizes) -> ResidualSizes {
        ResidualSizes {
            componentwise_log2: self.componentwise_log2.max(other.componentwise_log2),
            normwise_log2: self.normwise_log2.max(other.normwise_log2),
        }
    }
}

/// Bytes of the scaled heads of unknowns, and of their norms.
pub(super) fn scaled_bytes(order: usize, columns: usize) -> u64 {
    8 * (2 * order as u64 + 1).saturating_mul(columns as u64)
}

impl<'a> SymmetricSystem<'a> {
    /// Copies the lower triangle of `a` into both.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(a: MatrixView<'_>, b: MatrixView<'a>) -> Result<SymmetricSystem<'a>> {
        let order = a.rows();
        let mut full = Matrix::zeros(order, order, a.precision_bits())?;
        for col in 0..order {
            for row in col..order {
                full.set(row, col, a.get(row, col));
                full.set(col, row, a.get(row, col));
            }
        }
        let exponents: Vec<i64> = (0..order).map(|i| diagonal_exponent(a.get(i, i).head.exponent())).collect();
        let scaled = ScaledHeads::new(&full, |_, col| -exponents[col]);
        let row_heads = |row: usize| scaled.signed[row..].iter().step_by(order).map(|&head| Head(head));
        let norms = (0..order).map(|row| column_exponent(row_heads(row))).collect();
        Ok(SymmetricSystem { a: full, b, exponents, scaled, norms })
    }

    /// Bytes held of a matrix of `order` rows.
    pub fn bytes_for(order: usize, precision_bits: u32) -> u64 {
        let heads = 16 * (order as u64 + 1).saturating_mul(order as u64);
        Matrix::bytes_for(order, order, precision_bits).saturating_add(heads)
    }

    /// The residual of `x`, correct to `bits` bits relative to `|A| |X| + |B|`.
    ///
    /// # Errors
    /// The errors of a product.
    pub fn residual(&self, ctx: &Context, x: &Matrix, bits: u32) -> Result<Residual> {
        let order = self.a.rows();
        let scaled = ScaledHeads::new(x, |row, _| self.exponents[row]);
        let column_heads = |column: &[u64]| column_exponent(column.iter().map(|&head| Head(head)));
        let norms: Vec<i64> = scaled.signed.chunks(order.max(1)).map(column_heads).collect();
        let holding = ctx.holding(scaled_bytes(order, x.cols()));
        let product = |ctx: &Context, (left, right), minuend, precision_bits| -> Result<Matrix> {
            let (mut result, working_bits) = (Matrix::empty(), precision_bits + guard_bits(order));
            let (left, right) = (self.a.view().with_heads(left), x.view().with_heads(right));
            let accuracy = Accuracy::Norm;
            BlockProduct { left, right, minuend, precision_bits, working_bits, accuracy }.run(ctx, &mut result)?;
            Ok(result)
        };
        let signed = (&self.scaled.signed[..], &scaled.signed[..]);
        let matrix = product(&holding, signed, Some(self.b), residual_bits(bits))?;
        let sizes = (&self.scaled.sizes[..], &scaled.sizes[..]);
        let products = product(&holding.holding(matrix.bytes()), sizes, None, RESIDUAL_SIZE_BITS)?;
        self.measure(ctx, x, bits, ResidualParts { matrix, products, norms })
    }

    /// Compares each entry with its size; recomputes entries whose size is small relative to their norm.
    fn measure(&self, ctx: &Context, x: &Matrix, bits: u32, parts: ResidualParts) -> Result<Residual> {
        let ResidualParts { mut matrix, products, norms } = parts;
        let (worst, precision_bits) = (Mutex::new(ResidualSizes::LEAST), matrix.precision_bits());
        let sums = || (FixedSum::new(precision_bits), FixedSum::new(RESIDUAL_SIZE_BITS));
        each_column(ctx, &mut matrix, sums, |(sum, size_sum), mut column| {
            let mut largest = ResidualSizes::LEAST;
            for row in 0..self.a.rows() {
                let entry = ResidualEntry { system: self, x, row, col: column.index };
                let norm = self.norms[row] + norms[entry.col];
                let right = Magnitude::of(self.b.get(row, entry.col));
                let mut whole = Magnitude::of(products.get(row, entry.col)).plus(right);
                if whole.is_zero() || whole.exponent() < norm - i64::from(RESIDUAL_COVERED_BITS) {
                    column.set(row, |limbs| entry.sum(sum, limbs));
                    whole = entry.size(size_sum);
                }
                if !whole.is_zero() {
                    let residual = Magnitude::of(column.get(row));
                    let componentwise_log2 = residual.log2_over(&whole, -i64::from(bits) - 1);
                    let normwise_log2 = residual.exponent().saturating_sub(norm.max(whole.exponent()));
                    largest = largest.max(ResidualSizes { componentwise_log2, normwise_log2 });
                }
            }
            let mut worst = worst.lock().unwrap_or_else(PoisonError::into_inner);
            *worst = worst.max(largest);
            Ok(())
        })?;
        Ok(Residual { matrix, size: worst.into_inner().unwrap_or_else(PoisonError::into_inner) })
    }
}

impl ScaledHeads {
    /// Heads of `matrix` with the entry at each place times `2^shift(row, col)`.
    fn new(matrix: &Matrix, shift: impl Fn(usize, usize) -> i64) -> ScaledHeads {
        let rows = matrix.rows();
        let scale = |(at, &word): (usize, &u64)| {
            let head = Head(word);
            let exponent = || head.exponent() + shift(at % rows, at / rows);
            if head.is_zero() { 0 } else { Head::new(head.is_negative(), exponent()).0 }
        };
        let signed: Vec<u64> = matrix.parts().0.iter().enumerate().map(scale).collect();
        let sizes = signed.iter().map(|&word| size(Head(word)).0).collect();
        ScaledHeads { signed, sizes }
    }
}

/// The head of the magnitude.
fn size(head: Head) -> Head {
    if head.is_negative() { head.negated() } else { head }
}

/// The results of the products of a residual.
struct ResidualParts {
    matrix: Matrix,
    /// `|A| |X|`, up to a part of the norms.
    products: Matrix,
    /// The norm exponent of each scaled column of `X`.
    norms: Vec<i64>,
}

/// One entry of a residual, to be summed term by term.
struct ResidualEntry<'a> {
    system: &'a SymmetricSystem<'a>,
    x: &'a Matrix,
    row: usize,
    col: usize,
}

impl ResidualEntry<'_> {
    /// `b - sum a_k x_k`, rounded into `limbs`.
    fn sum(&self, sum: &mut FixedSum, limbs: &mut [u64]) -> Head {
        self.add_terms(sum, Sign::Minus, |value| value);
        sum.round(limbs)
    }

    /// `|b| + sum |a_k| |x_k|`.
    fn size(&self, sum: &mut FixedSum) -> Magnitude {
        let mut limbs = [0];
        self.add_terms(sum, Sign::Plus, |value| FloatRef { head: size(value.head), ..value });
        let head = sum.round(&mut limbs);
        Magnitude::of(FloatRef { head, limbs: &limbs })
    }

    fn add_terms(&self, sum: &mut FixedSum, sign: Sign, part: fn(FloatRef<'_>) -> FloatRef<'_>) {
        let ResidualEntry { system, x, row, col } = self;
        let right = system.b.get(*row, *col);
        let pairs = (0..x.rows()).map(|k| (part(system.a.get(*row, k)), part(x.get(k, *col))));
        sum.set(part(right), pairs, sign);
    }
}
