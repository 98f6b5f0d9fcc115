//! The condition of a matrix with LU factors, as it is and scaled, estimated by a few solves.

use super::Lu;
use crate::context::Context;
use crate::error::Result;
use crate::math::magnitude::Magnitude;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::cholesky::ScaledInverseNorm;
use crate::ops::estimate::condition::{BIT_COLUMNS, RIGHT_BITS, inverse_norm, with_enough_bits};
use crate::ops::estimate::digits::DOUBT_LOG2;
use crate::ops::estimate::rough::{Vector, vector};
use crate::ops::estimate::{ESTIMATE_BITS, power};
use rug::Float;

/// Powers of two with `|a_ij| < 2^(rows[i] + cols[j])`, where each row has an entry of at least half of its bound.
#[derive(Clone, Debug)]
pub(crate) struct Scales {
    pub rows: Vec<i64>,
    pub cols: Vec<i64>,
}

impl Scales {
    pub fn of(a: MatrixView<'_>) -> Scales {
        let exponent = |row: usize, col: usize| {
            let head = a.head(row, col);
            (!head.is_zero()).then(|| head.exponent())
        };
        let (rows, cols) = (0..a.rows(), 0..a.cols());
        let largest = |col: usize| rows.clone().filter_map(|row| exponent(row, col)).max().unwrap_or(0);
        let cols: Vec<i64> = cols.map(largest).collect();
        let scaled = |row: usize| (0..cols.len()).filter_map(|col| Some(exponent(row, col)? - cols[col])).max();
        let rows = (0..a.rows()).map(|row| scaled(row).unwrap_or(0)).collect();
        Scales { rows, cols }
    }
}

/// The condition that factors show.
pub(crate) struct ShownCondition {
    /// The approximate 1-norm of the inverse of the scaled matrix.
    pub norm: Float,
    /// Bits of solves that give at least one correct digit of any solution.
    pub solve_bits: u32,
    /// Whether the condition is that of the factored matrix, and not of rounding errors.
    pub is_told: bool,
    /// Whether a correction by the factors may be as wrong as the solution that it corrects.
    pub is_doubtful: bool,
}

/// If the residual of the factors, times the norm of the inverse, is at most this power of two, the factors show the
/// condition of the matrix.
const TOLD_LOG2: i64 = -4;

impl Lu {
    /// A lower bound, usually within a factor of 3, of the condition `||A||_1 ||A^-1||_1` of the factored matrix, whose
    /// 1-norm is `one_norm` (see [`Matrix::one_norm`]). It has 53 bits, and is 0 for an empty matrix.
    ///
    /// Deterministic. Cost: at most five solves with two right-hand sides, at the precision of the factors. Source: as
    /// [`crate::Cholesky::condition_estimate`].
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[0.0, 0.5, 3.0, 0.0])?; // [0 3; 1/2 0]
    /// let condition = sunzi::lu(&ctx, &a, 128)?.condition_estimate(&ctx, &a.one_norm())?;
    /// assert!((condition - 6u32).abs() < 1e-10);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lu::solve`].
    pub fn condition_estimate(&self, ctx: &Context, one_norm: &Float) -> Result<Float> {
        let zeros = vec![0; self.order()];
        let norm = self.inverse_norm(ctx, &Scales { rows: zeros.clone(), cols: zeros }, self.precision_bits())?;
        Ok(Float::with_val(RIGHT_BITS, norm * one_norm))
    }

    pub(crate) fn precision_bits(&self) -> u32 {
        self.factors().precision_bits()
    }

    /// The condition of the scaled matrix.
    ///
    /// # Errors
    /// As [`Lu::solve`].
    pub(crate) fn shown_condition(&self, ctx: &Context, scales: &Scales) -> Result<ShownCondition> {
        let bits = self.precision_bits();
        let ScaledInverseNorm { norm, solve_bits } =
            with_enough_bits(0, bits, |bits| self.inverse_norm(ctx, scales, bits))?;
        let deviation = Float::with_val(ESTIMATE_BITS, &norm * &self.scaled_residual(scales));
        let [is_told, is_certain] = [TOLD_LOG2, DOUBT_LOG2].map(|log2| deviation <= power(log2));
        Ok(ShownCondition { norm, solve_bits, is_told, is_doubtful: !is_certain })
    }

    /// About `A^-1`, with a small residual `A^-1 A - I`.
    ///
    /// # Errors
    /// As [`Lu::solve`].
    pub(crate) fn left_inverse(&self, ctx: &Context, precision_bits: u32) -> Result<Matrix> {
        let transposed = self.solve_transposed(ctx, &Matrix::identity(self.order(), 2)?, precision_bits)?;
        transposed.transposed().to_matrix()
    }

    /// `norm_1((R^-1 A C^-1)^-1)`, by solves of `bits` bits.
    fn inverse_norm(&self, ctx: &Context, scales: &Scales, bits: u32) -> Result<Float> {
        let images = |columns: &[Vec<f64>]| {
            let found = self.solve(ctx, &scaled(columns, &scales.rows)?, bits)?;
            Ok(vectors(&found, &scales.cols))
        };
        let transposed = |columns: &[Vec<f64>]| {
            let found = self.solve_transposed(ctx, &scaled(columns, &scales.cols)?, bits)?;
            Ok(vectors(&found, &scales.rows))
        };
        inverse_norm(self.order(), BIT_COLUMNS, &images, &transposed)
    }

    /// An upper bound, nearly, of the 1-norm of the residual `P A - L U` of the scaled matrix: `2^(3 - b)` times the
    /// norm of `|L| |U|`.
    fn scaled_residual(&self, scales: &Scales) -> Float {
        let (factors, order) = (self.factors(), self.order());
        let size = |row: usize, col: usize| Magnitude::of(factors.get(row, col));
        let scale = |exponent: i64| Magnitude::power_of_two(-exponent);
        // The sums of the rows of |L|, scaled, times |U|.
        let mut sums: Vec<Magnitude> = self.rows().iter().map(|&row| scale(scales.rows[row])).collect();
        for (col, sum) in sums.iter_mut().enumerate() {
            let terms = (col + 1..order).map(|row| size(row, col).times(scale(scales.rows[self.rows()[row]])));
            *sum = terms.fold(*sum, Magnitude::plus);
        }
        let column = |col: usize| {
            let terms = (0..=col).map(|row| sums[row].times(size(row, col)));
            terms.fold(Magnitude::ZERO, Magnitude::plus).times(scale(scales.cols[col]))
        };
        let largest = (0..order).map(column).fold(Magnitude::ZERO, Magnitude::max);
        Float::with_val(ESTIMATE_BITS, largest.to_float() * power(3 - i64::from(self.precision_bits())))
    }
}

/// The columns, row `i` times `2^exponents[i]`.
fn scaled(columns: &[Vec<f64>], exponents: &[i64]) -> Result<Matrix> {
    let mut right = Matrix::zeros(exponents.len(), columns.len(), RIGHT_BITS)?;
    for (col, column) in columns.iter().enumerate() {
        for (row, value) in column.iter().enumerate() {
            right.set_float(row, col, &(Float::with_val(RIGHT_BITS, value) * power(exponents[row])))?;
        }
    }
    Ok(right)
}

/// The columns, row `i` times `2^exponents[i]`, as doubles.
fn vectors(found: &Matrix, exponents: &[i64]) -> Vec<Vector> {
    (0..found.cols()).map(|col| vector(found, col, |row| exponents[row])).collect()
}
