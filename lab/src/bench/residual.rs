//! Sampled entries of residuals, in far more bits than the answers have: the verifier of operations with a factor.
//!
//! The unit is our own bound: `2^(2-b) sqrt(a_ii a_jj)` for `A - L L^T`, `2^(1-b) (||l_i|| ||x_j|| + |b_ij|)` for `L
//! X - B`, and `2^(4-b) (sqrt(a_ii) sum_k sqrt(a_kk) |x_kj| + |b_ij|)` for `L L^T X - B`, where `a_kk` is the square of
//! the norm of row k of L. For baselines, the factor `n` times `2^(8-b)` replaces these powers of two.

use super::check::{Verifier, draw, worst};
use crate::baselines::Operation;
use rug::Float;
use rug::ops::CompleteRound;
use sunzi::Matrix;

/// Entries sampled.
const SAMPLES: usize = 64;
/// Columns that the samples of a solve lie in: each costs half a million products for 1000 rows.
const SOLVE_COLUMNS: usize = 2;
/// Bits beyond those of the answers in which residuals are formed: their own errors are far below the bounds.
const SPARE_BITS: u32 = 96;

/// Places of a residual, with the operands it is formed from.
pub struct Residual<'a> {
    operation: Operation,
    a: &'a Matrix,
    b: Option<&'a Matrix>,
    /// Rows and columns; always the last entry, which most of the arithmetic leads to.
    places: Vec<(usize, usize)>,
}

impl<'a> Residual<'a> {
    /// Draws the places for an operation with a factor.
    pub fn new(operation: Operation, a: &'a Matrix, b: Option<&'a Matrix>) -> Residual<'a> {
        let (rows, cols) = (a.rows(), b.map_or(a.rows(), Matrix::cols));
        let mut places = Vec::new();
        if rows > 0 && cols > 0 {
            places.push((rows - 1, cols - 1));
            let drawn = draw(rows, cols).take(SAMPLES - 1);
            places.extend(drawn.map(|(i, j)| match operation {
                Operation::Cholesky => (i.max(j), i.min(j)),
                // The last columns, which the recursions of a baseline reach last.
                Operation::Solve => (i, cols - 1 - j % SOLVE_COLUMNS.min(cols)),
                _ => (i, j),
            }));
        }
        // Entries of one column together.
        places.sort_by_key(|&(i, j)| (j, i));
        places.dedup();
        Residual { operation, a, b, places }
    }

    fn bits(&self) -> u32 {
        self.a.precision_bits() + SPARE_BITS
    }

    /// `sum x_k y_k` over the terms of the shorter one, rounded once.
    fn dot(&self, x: &[Float], y: &[Float]) -> Float {
        Float::dot(x.iter().zip(y)).complete(self.bits())
    }

    /// Row `i` of L up to the diagonal.
    fn row(&self, i: usize) -> Vec<Float> {
        (0..=i).map(|k| self.a.float(i, k)).collect()
    }

    fn norm(&self, values: &[Float]) -> Float {
        self.dot(values, values).sqrt()
    }

    /// Errors of a factorisation in units of the bound.
    fn factorisation(&self, entry: &dyn Fn(usize, usize) -> Float) -> Vec<Float> {
        let ratio = |&(i, j): &(usize, usize)| {
            let row = (0..=j).map(|k| entry(i, k)).collect::<Vec<_>>();
            let col = (0..=j).map(|k| entry(k, j)).collect::<Vec<_>>();
            let error = self.dot(&row, &col) - self.a.float(i, j);
            let size = (self.a.float(i, i) * self.a.float(j, j)).sqrt();
            quotient(error, size) << (self.a.precision_bits() - 2)
        };
        self.places.iter().map(ratio).collect()
    }

    /// Errors of a triangular system in units of the bound.
    fn triangular(&self, entry: &dyn Fn(usize, usize) -> Float) -> Vec<Float> {
        let ratio = |&(i, j): &(usize, usize)| {
            let x = (0..self.a.rows()).map(|k| entry(k, j)).collect::<Vec<_>>();
            let (row, wanted) = (self.row(i), self.wanted(i, j));
            let error = self.dot(&row, &x) - &wanted;
            let size = self.norm(&row) * self.norm(&x) + wanted.abs();
            quotient(error, size) << (self.a.precision_bits() - 1)
        };
        self.places.iter().map(ratio).collect()
    }

    /// Errors of both triangular systems together in units of the bound.
    fn factored(&self, entry: &dyn Fn(usize, usize) -> Float) -> Vec<Float> {
        let rows = self.a.rows();
        let norms = (0..rows).map(|k| self.norm(&self.row(k))).collect::<Vec<_>>();
        let mut ratios = Vec::new();
        for of_column in self.places.chunk_by(|x, y| x.1 == y.1) {
            let j = of_column[0].1;
            let x = (0..rows).map(|k| entry(k, j)).collect::<Vec<_>>();
            let inner = |k: usize| {
                let column = (k..rows).map(|l| self.a.float(l, k)).collect::<Vec<_>>();
                self.dot(&column, &x[k..])
            };
            let inner = (0..=of_column[of_column.len() - 1].0).map(inner).collect::<Vec<_>>();
            let sizes = x.iter().map(|x| x.clone().abs()).collect::<Vec<_>>();
            let weight = self.dot(&norms, &sizes);
            for &(i, _) in of_column {
                let (row, wanted) = (self.row(i), self.wanted(i, j));
                let error = self.dot(&row, &inner) - &wanted;
                let size = (&norms[i] * &weight).complete(self.bits()) + wanted.abs();
                ratios.push(quotient(error, size) << (self.a.precision_bits() - 4));
            }
        }
        ratios
    }

    fn wanted(&self, i: usize, j: usize) -> Float {
        self.b.map_or(Float::new(self.bits()), |b| b.float(i, j))
    }
}

/// `|error| / size`, 0 where there is no error.
fn quotient(error: Float, size: Float) -> Float {
    if error.is_zero() { error } else { error.abs() / size }
}

impl Verifier for Residual<'_> {
    fn worst_error(&self, entry: &dyn Fn(usize, usize) -> Float) -> f64 {
        let ratios = match self.operation {
            Operation::Cholesky => self.factorisation(entry),
            Operation::Trsm => self.triangular(entry),
            _ => self.factored(entry),
        };
        worst(ratios.iter().map(Float::to_f64))
    }

    fn baseline_allowance(&self) -> f64 {
        let ours_log2 = match self.operation {
            Operation::Cholesky => 2,
            Operation::Trsm => 1,
            _ => 4,
        };
        f64::from(1u32 << (8 - ours_log2)) * self.a.rows() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::operands::Operands;
    use sunzi::gallery::Size;

    const BITS: u32 = 100;

    fn operands(operation: Operation) -> Operands {
        Operands::new(operation, Size { rows: 12, cols: 3, precision_bits: BITS }).unwrap()
    }

    /// The error at every sampled place is one bound when the last entry of the answer is off by a given amount.
    #[test]
    fn an_error_is_seen_in_units_of_the_bound() {
        let Operands { a, .. } = operands(Operation::Cholesky);
        let verifier = Residual::new(Operation::Cholesky, &a, None);
        let factor = sunzi::cholesky(&sunzi::Context::builder().threads(1).build().unwrap(), &a, 300).unwrap();
        let exact = |i: usize, j: usize| factor.factor().float(i.max(j), i.min(j));
        assert!(verifier.worst_error(&exact) < 1e-9);
        // l^2 moves by 2 l d, so d = 2^(1-b) l is one bound, as l^2 is nearly a_ii here.
        let off = |i: usize, j: usize| {
            let value = exact(i, j);
            if (i, j) == (11, 11) { value.clone() + (value >> (BITS - 1)) } else { value }
        };
        assert!((0.9..1.1).contains(&verifier.worst_error(&off)), "{}", verifier.worst_error(&off));
    }

    #[test]
    fn systems_are_checked_by_their_residuals() {
        for (operation, power) in [(Operation::Trsm, 1), (Operation::Solve, 4)] {
            let Operands { a: l, b } = operands(operation);
            let b = b.unwrap();
            let verifier = Residual::new(operation, &l, Some(&b));
            // No answer at all: the residual is B, and the bound is `2^(power-b)` times B.
            let ratio = verifier.worst_error(&|_, _| Float::new(BITS)) * f64::exp2(f64::from(power) - f64::from(BITS));
            assert!((ratio - 1.0).abs() < 1e-12, "{operation:?}: {ratio}");
        }
    }

    #[test]
    fn what_is_no_number_is_wrong() {
        for operation in [Operation::Cholesky, Operation::Trsm, Operation::Solve] {
            let Operands { a, b } = operands(operation);
            let verifier = Residual::new(operation, &a, b.as_ref());
            let worst = verifier.worst_error(&|i, _| Float::with_val(64, if i == 3 { f64::NAN } else { 1.0 }));
            assert!(worst.is_nan(), "{operation:?}: {worst}");
        }
    }
}
