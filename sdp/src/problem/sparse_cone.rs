//! One block of matrices of few entries.

use crate::block::{Block, Shape};
use crate::numbers::Arithmetic;
use rug::{Assign, Float};
use sunzi::{Matrix, Result};

/// Bytes of a sparse matrix of `count` entries, and of the lists that it is made from.
pub(crate) fn entry_bytes(count: usize, bits: u32) -> u64 {
    const BESIDE_LIMBS: u64 = 128;
    count as u64 * (BESIDE_LIMBS + 24 * u64::from(bits.div_ceil(64)))
}

/// An entry of the lower triangle.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Row, from 0.
    pub row: usize,
    /// Column, at most the row.
    pub col: usize,
    /// The number, with as few bits as it needs.
    pub value: Float,
}

/// One block of all matrices.
#[derive(Clone, Debug)]
pub struct SparseCone {
    /// Kind and order.
    pub shape: Shape,
    /// The variables that have entries in this block, in ascending order.
    pub active: Vec<usize>,
    /// The entries of each of these variables, column by column in a program.
    pub entries: Vec<Vec<Entry>>,
    /// The entries of `C`.
    pub constant: Vec<Entry>,
}

impl Entry {
    /// Whether the entry is off the diagonal, so that it represents two entries of the whole matrix.
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
    /// `M - C`.
    ///
    /// # Errors
    /// The errors of [`Matrix::set_float`].
    pub fn less_constant(&self, block: Block) -> Result<Block> {
        let (Block::Dense(mut whole) | Block::Diagonal(mut whole)) = block;
        for entry in &self.constant {
            add(&mut whole, self.shape, entry, &Float::with_val(entry.value.prec(), -&entry.value))?;
        }
        Ok(Block::of_shape(self.shape, whole))
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
}
