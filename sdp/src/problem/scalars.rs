//! Matrices with one entry each: one-point blocks of a polynomial program, combined.
//!
//! `A_p = a_p e_p e_p^T`, so X and Y are one diagonal, and with it `S_pp = a_p^2 Y_pp / X_pp` and zeros outside the
//! diagonal. Each number is a few products of its own, and no call of the library is as short. Independent of: which
//! blocks these are.

use crate::block::{Block, Shape};
use crate::numbers::{Arithmetic, column, rounded};
use rug::Float;
use sunzi::{Matrix, Result};

/// The only entry of each matrix.
#[derive(Clone, Debug)]
pub struct Scalars {
    /// `a`, a column.
    weights: Matrix,
}

impl Scalars {
    /// Matrices with the squares of these numbers, rounded to `bits` bits.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub(crate) fn of_roots(roots: &[Float], bits: u32) -> Result<Scalars> {
        Ok(Scalars { weights: column(roots.len(), bits, |row| Float::with_val(bits, roots[row].square_ref()))? })
    }

    /// The same matrices with numbers rounded to at most `bits` bits.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn rounded(&self, bits: u32) -> Result<Scalars> {
        Ok(Scalars { weights: rounded(self.weights.clone(), bits)? })
    }

    /// Variables.
    pub fn variables(&self) -> usize {
        self.weights.rows()
    }

    /// The only block.
    pub fn shape(&self) -> Shape {
        Shape::Diagonal(self.variables())
    }

    /// `a`, a column.
    pub fn weights(&self) -> &Matrix {
        &self.weights
    }

    /// The diagonal of `sum_p x_p A_p`.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn weighted_sum(&self, k: Arithmetic<'_>, x: &Matrix) -> Result<Block> {
        let product = |row| Float::with_val(k.bits, &self.weights.float(row, 0) * &x.float(row, 0));
        Ok(Block::Diagonal(column(self.variables(), k.bits, product)?))
    }

    /// `A_p . M` for all variables.
    pub fn pairings(&self, k: Arithmetic<'_>, block: &Block) -> Vec<Float> {
        let product = |row| Float::with_val(k.bits, &self.weights.float(row, 0) * &block.stored().float(row, 0));
        (0..self.variables()).map(product).collect()
    }

    /// `S_pp = A_p X^-1 A_p . Y`, a column.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn schur(&self, k: Arithmetic<'_>, x_inverse: &Block, y: &Block) -> Result<Matrix> {
        let weight = |block: &Block, row| self.weights.float(row, 0) * block.stored().float(row, 0);
        column(self.variables(), k.bits, |row| Float::with_val(k.bits, weight(x_inverse, row) * weight(y, row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Sampled, SchurOperand};
    use sunzi::Context;

    /// Each row compared with the one-point block that it stands for.
    #[test]
    fn sums_pairings_and_schur_complements_are_those_of_one_point_blocks() -> Result<()> {
        let (bits, count) = (192, 5);
        let ctx = Context::builder().threads(1).build()?;
        let k = Arithmetic { ctx: &ctx, bits };
        let number = |at: usize| Float::with_val(bits, 2 + 3 * at).ln();
        let one = |value: Float| Matrix::from_floats(1, 1, bits, &[value]);
        let roots = (0..count).map(number).collect::<Vec<_>>();
        let scalars = Scalars::of_roots(&roots, bits)?;
        assert_eq!((scalars.variables(), scalars.shape()), (count, Shape::Diagonal(count)));
        let diagonal = |shift: usize| column(count, bits, |row| number(row + shift));
        let (x, y) = (diagonal(7)?, diagonal(11)?);
        let inverse = Block::Diagonal(column(count, bits, |row| number(row + 7).recip())?);
        let sum = scalars.weighted_sum(k, &x)?;
        let pairings = scalars.pairings(k, &Block::Diagonal(y.clone()));
        let schur = scalars.schur(k, &inverse, &Block::Diagonal(y.clone()))?;
        let is_near = |found: &Float, wanted: &Float| (Float::with_val(bits, found / wanted) - 1u32).abs() < 1e-56;
        for row in 0..count {
            let sampled = Sampled::new(1, 1, [one(roots[row].clone())?, Matrix::zeros(0, 1, bits)?])?;
            let (own_x, own_y) = (one(x.float(row, 0))?, Block::Dense(one(y.float(row, 0))?));
            let wanted = sampled.weighted_sum(k, 0, &own_x)?;
            assert!(is_near(&sum.stored().float(row, 0), &wanted.stored().float(0, 0)));
            assert!(is_near(&pairings[row], &sampled.pairings(k, 0, &own_y)?[0]));
            let (lower, root) = (one(x.float(row, 0).sqrt().recip())?, one(y.float(row, 0).sqrt())?);
            let own_inverse = Block::Dense(one(inverse.stored().float(row, 0))?);
            let operand = SchurOperand {
                x_inverse: &own_inverse,
                x_lower_inverse: Some(&lower),
                y: &own_y,
                y_lower: Some(&root),
            };
            assert!(is_near(&schur.float(row, 0), &sampled.schur(k, &[operand])?.float(0, 0)));
        }
        assert_eq!(scalars.rounded(2)?.weights().precision_bits(), 2);
        Ok(())
    }
}
