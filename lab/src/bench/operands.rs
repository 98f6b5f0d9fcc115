//! The matrices of a benchmark: random, with full significands, always the same.
//!
//! A product multiplies matrices with entries uniform in (-1, 1). A matrix to factor is `(R + R^T) / 2 + n I` of such a
//! matrix R, a triangular one the lower triangle of `R + n I`: the diagonal outweighs all else in its row, so that both
//! are well conditioned and an elimination has no rows to swap.

use crate::baselines::Operation;
use rug::Float;
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{Matrix, Result};

/// Seed of the first operand; the second has the next.
const SEED: u64 = 1;

/// Bits in which an entry is formed beyond those in which it is kept: a sum with the dimension is then exact except for
/// numbers too small to matter.
const SPARE_BITS: u32 = 128;

/// The operands of an operation.
pub struct Operands {
    /// P, A or L.
    pub a: Matrix,
    /// B, where there is one.
    pub b: Option<Matrix>,
}

impl Operands {
    /// Bytes of both.
    pub fn bytes(&self) -> u64 {
        self.a.bytes() + self.b.as_ref().map_or(0, Matrix::bytes)
    }

    /// The operands for a size: rows and columns of a product's operands, the dimension and the number of right-hand
    /// sides of a system.
    ///
    /// # Errors
    /// The errors of [`generate`].
    pub fn new(operation: Operation, size: Size) -> Result<Operands> {
        Operands::seeded(operation, size, SEED)
    }

    /// The second operand, of an operation that has one.
    pub fn second(&self) -> &Matrix {
        self.b.as_ref().expect("an operation with two operands")
    }

    /// [`Operands::new`] with the seeds `seed` and `seed + 1`.
    ///
    /// # Errors
    /// The errors of [`generate`].
    pub fn seeded(operation: Operation, size: Size, seed: u64) -> Result<Operands> {
        let square = Size { cols: size.rows, ..size };
        let second = || generate(Kind::Random, size, seed + 1).map(Some);
        let dominant =
            |entry: fn(&Matrix, usize, usize) -> Float| dominant(&generate(Kind::Random, square, seed)?, entry);
        Ok(match operation {
            Operation::Syrk => Operands { a: generate(Kind::Random, size, seed)?, b: None },
            Operation::Gemm => Operands { a: generate(Kind::Random, size, seed)?, b: second()? },
            Operation::Cholesky => Operands { a: dominant(symmetric)?, b: None },
            Operation::Trsm | Operation::Solve => Operands { a: dominant(lower)?, b: second()? },
        })
    }
}

/// A square matrix of the given entries, made from the entries of `random`, plus the dimension times the identity.
fn dominant(random: &Matrix, entry: impl Fn(&Matrix, usize, usize) -> Float) -> Result<Matrix> {
    let order = random.rows();
    Matrix::from_fn(order, order, random.precision_bits(), |i, j| {
        let value = entry(random, i, j);
        if i == j { value + order as u64 } else { value }
    })
}

fn symmetric(random: &Matrix, i: usize, j: usize) -> Float {
    let bits = random.precision_bits() + SPARE_BITS;
    Float::with_val(bits, random.float(i, j)) / 2u32 + random.float(j, i) / 2u32
}

fn lower(random: &Matrix, i: usize, j: usize) -> Float {
    Float::with_val(random.precision_bits() + SPARE_BITS, if i < j { Float::new(2) } else { random.float(i, j) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_have_dominant_diagonals() {
        let size = Size { rows: 9, cols: 2, precision_bits: 100 };
        let a = Operands::new(Operation::Cholesky, size).unwrap().a;
        let l = Operands::new(Operation::Trsm, size).unwrap();
        assert_eq!((a.rows(), a.cols(), l.a.cols(), l.b.unwrap().cols()), (9, 9, 9, 2));
        for i in 0..9 {
            assert!(a.float(i, i) > 8 && a.float(i, i) < 10 && l.a.float(i, i) > 8 && l.a.float(i, i) < 10);
            for j in 0..i {
                assert_eq!(a.float(i, j), a.float(j, i));
                assert!(l.a.float(j, i).is_zero() && !l.a.float(i, j).is_zero());
            }
        }
    }
}
