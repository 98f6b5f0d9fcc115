//! Matrices of few entries each: SDPA's constraints.

use crate::block::{Block, Shape};
use crate::numbers::{Arithmetic, column};
use rug::{Assign, Float};
use sunzi::{Matrix, Result};

/// An entry of the lower triangle.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Row, from 0.
    pub row: usize,
    /// Column, at most the row.
    pub col: usize,
    /// The number, with no more bits than it has.
    pub value: Float,
}

/// All matrices of a group, block by block.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// Variables of the group.
    pub variables: usize,
    /// The blocks.
    pub cones: Vec<SparseCone>,
}

/// One block of all matrices.
#[derive(Clone, Debug)]
pub struct SparseCone {
    /// Kind and order.
    pub shape: Shape,
    /// The variables that have entries here, rising.
    pub active: Vec<usize>,
    /// The entries of each of them.
    pub entries: Vec<Vec<Entry>>,
    /// The entries of `C`.
    pub constant: Vec<Entry>,
}

impl Sparse {
    /// The matrices with entries of at most `bits` bits.
    pub fn rounded(&self, bits: u32) -> Sparse {
        let entry = |entry: &Entry| {
            let value = Float::with_val(entry.value.prec().min(bits), &entry.value);
            Entry { value, ..*entry }
        };
        let cone = |cone: &SparseCone| SparseCone {
            shape: cone.shape,
            active: cone.active.clone(),
            entries: cone.entries.iter().map(|list| list.iter().map(entry).collect()).collect(),
            constant: cone.constant.iter().map(entry).collect(),
        };
        Sparse { variables: self.variables, cones: self.cones.iter().map(cone).collect() }
    }
}

impl Entry {
    /// Whether it stands for two entries of the whole matrix.
    pub fn is_beside(&self) -> bool {
        self.row != self.col
    }
}

/// Adds `scale value` to the entries of both triangles of `matrix`.
fn add(matrix: &mut Matrix, shape: Shape, entry: &Entry, amount: &Float) -> Result<()> {
    let bits = matrix.precision_bits();
    let mut add_at = |row: usize, col: usize| {
        let sum = Float::with_val(bits, &matrix.float(row, col) + amount);
        matrix.set_float(row, col, &sum)
    };
    match shape {
        Shape::Diagonal(_) => add_at(entry.row, 0),
        Shape::Dense(_) if entry.is_beside() => {
            add_at(entry.row, entry.col)?;
            add_at(entry.col, entry.row)
        }
        Shape::Dense(_) => add_at(entry.row, entry.col),
    }
}

impl SparseCone {
    /// `sum_p x_p A_p`.
    ///
    /// # Errors
    /// Those of [`Matrix::set_float`].
    pub fn weighted_sum(&self, k: Arithmetic<'_>, x: &Matrix) -> Result<Block> {
        let mut whole = match self.shape {
            Shape::Dense(order) => Matrix::zeros(order, order, k.bits)?,
            Shape::Diagonal(order) => Matrix::zeros(order, 1, k.bits)?,
        };
        let mut amount = Float::new(k.bits);
        for (&variable, entries) in self.active.iter().zip(&self.entries) {
            let weight = x.float(variable, 0);
            for entry in entries {
                amount.assign(&weight * &entry.value);
                add(&mut whole, self.shape, entry, &amount)?;
            }
        }
        Ok(self.block(whole))
    }

    fn block(&self, stored: Matrix) -> Block {
        match self.shape {
            Shape::Dense(_) => Block::Dense(stored),
            Shape::Diagonal(_) => Block::Diagonal(stored),
        }
    }

    /// `M - C`.
    ///
    /// # Errors
    /// Those of [`Matrix::set_float`].
    pub fn less_constant(&self, block: Block) -> Result<Block> {
        let (Block::Dense(mut whole) | Block::Diagonal(mut whole)) = block;
        for entry in &self.constant {
            add(&mut whole, self.shape, entry, &Float::with_val(entry.value.prec(), -&entry.value))?;
        }
        Ok(self.block(whole))
    }

    /// `A . M` for the entries of one matrix.
    fn pairing(&self, k: Arithmetic<'_>, entries: &[Entry], matrix: &Matrix) -> Float {
        let (mut sum, mut product) = (Float::new(k.bits), Float::new(k.bits));
        for entry in entries {
            let other = match self.shape {
                Shape::Dense(_) => matrix.float(entry.row, entry.col),
                Shape::Diagonal(_) => matrix.float(entry.row, 0),
            };
            product.assign(&other * &entry.value);
            if entry.is_beside() {
                product <<= 1u32;
            }
            sum += &product;
        }
        sum
    }

    /// `C . M`.
    pub fn constant_pairing(&self, k: Arithmetic<'_>, block: &Block) -> Float {
        self.pairing(k, &self.constant, block.stored())
    }

    /// `A_p . M` for all that have entries here.
    pub fn pairings(&self, k: Arithmetic<'_>, block: &Block) -> Vec<Float> {
        self.entries.iter().map(|entries| self.pairing(k, entries, block.stored())).collect()
    }

    /// The diagonals as columns of a matrix: for a block that is diagonal.
    ///
    /// # Errors
    /// Those of [`Matrix::set_float`].
    pub fn diagonals(&self, bits: u32) -> Result<Matrix> {
        let mut all = Matrix::zeros(self.shape.order(), self.active.len(), bits)?;
        for (col, entries) in self.entries.iter().enumerate() {
            entries.iter().try_for_each(|entry| all.set_float(entry.row, col, &entry.value))?;
        }
        Ok(all)
    }
}

/// `y_i / x_i` for two diagonals.
///
/// # Errors
/// Those of [`Matrix::from_fn`].
pub fn weights(k: Arithmetic<'_>, x_inverse: &Matrix, y: &Matrix) -> Result<Matrix> {
    column(y.rows(), k.bits, |row| Float::with_val(k.bits, &x_inverse.float(row, 0) * &y.float(row, 0)))
}
