//! Matrices of few entries each: SDPA's constraints.

use super::SchurOperand;
use super::sparse_cone::{Entry, SparseCone, entry_bytes};
use super::sparse_schur::{schur, task_bytes, weight_bytes};
use super::sparse_tables::Tables;
use crate::block::{Block, Shape, Summand};
use crate::calls::{axpy, sddmm, spmm};
use crate::numbers::Arithmetic;
use crate::ranks::Ranks;
use crate::workers::{TaskBytes, Workers};
use rug::Float;
use std::sync::OnceLock;
use sunzi::sparse::SparseMatrix;
use sunzi::{FloatRef, Head, Matrix, Result};

/// All matrices of a group, block by block.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// Number of variables of the group.
    pub variables: usize,
    /// The blocks; they must not change once a sum or a product with them has been computed.
    pub cones: Vec<SparseCone>,
    /// Tables made from the blocks at their first use.
    tables: OnceLock<Tables>,
}

impl Sparse {
    /// The matrices of `variables` variables in these blocks. Entries are sorted by column, so that bits and hashes do
    /// not depend on their order in a file.
    pub fn new(variables: usize, mut cones: Vec<SparseCone>) -> Sparse {
        let place = |entry: &Entry| (entry.col, entry.row);
        for list in cones.iter_mut().flat_map(|cone| cone.entries.iter_mut().chain([&mut cone.constant])) {
            if !list.is_sorted_by_key(place) {
                list.sort_by_key(place);
            }
        }
        Sparse { variables, cones, tables: OnceLock::new() }
    }

    /// The same matrices as one sparse matrix of the library.
    ///
    /// # Errors
    /// The errors of [`Tables::new`].
    pub(super) fn tables(&self) -> Result<&Tables> {
        if let Some(tables) = self.tables.get() {
            return Ok(tables);
        }
        let tables = Tables::new(self.variables, &self.cones)?;
        Ok(self.tables.get_or_init(|| tables))
    }

    /// The memory of the tasks that form the Schur complement; see [`task_bytes`].
    ///
    /// # Errors
    /// The errors of [`Tables::new`] and of `gemm`.
    pub(crate) fn schur_tasks<G: Fn(usize, usize, usize) -> Result<u64>>(
        &self,
        bits: u32,
        gemm: impl FnOnce(usize) -> G,
    ) -> Result<Vec<TaskBytes>> {
        task_bytes(self.tables()?, bits, gemm)
    }

    /// Bytes of the data formed in addition to those tasks.
    pub(crate) fn schur_beside(&self, bits: u32) -> u64 {
        weight_bytes(&self.cones, bits)
    }

    /// Bytes of the tables.
    ///
    /// # Errors
    /// The errors of [`Tables::new`].
    pub(crate) fn table_bytes(&self) -> Result<u64> {
        Ok(self.tables()?.bytes())
    }

    /// Block `cone` of `sum_p x_p A_p`.
    ///
    /// # Errors
    /// The errors of [`sunzi::sparse::spmm`].
    pub fn weighted_sum(&self, k: Arithmetic<'_>, cone: usize, x: &Matrix) -> Result<Block> {
        let (tables, shape) = (self.tables()?, self.cones[cone].shape);
        let table = &tables.cones[cone];
        let own = table.first..table.first + table.positions.len();
        let sums = spmm(k.ctx, tables.transposed.view().row_range(own)?, x, k.bits)?;
        let Shape::Dense(order) = shape else {
            let mut whole = Matrix::zeros(shape.order(), 1, k.bits)?;
            let rows = table.positions.iter().enumerate();
            rows.for_each(|(at, &(row, _))| whole.set(row, 0, sums.get(at, 0)));
            return Ok(Block::Diagonal(whole));
        };
        let mut whole = Matrix::zeros(order, order, k.bits)?;
        for (at, &(row, col)) in table.positions.iter().enumerate() {
            let sum = sums.get(at, 0);
            let sum = if row == col { doubled(sum) } else { sum };
            whole.set(row, col, sum);
            whole.set(col, row, sum);
        }
        Ok(Block::Dense(whole))
    }

    /// The lower triangle of `S_pq = Tr(A_p X^-1 A_q Y)` on the root, from all blocks of the group; every rank has the
    /// blocks. Collective.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn schur(
        &self,
        workers: &Workers,
        ranks: &Ranks,
        k: Arithmetic<'_>,
        operands: &[SchurOperand<'_>],
    ) -> Result<Option<Matrix>> {
        schur(workers, ranks, k, ranks.agreed(self.tables())?, operands)
    }

    /// Positions of each block.
    ///
    /// # Errors
    /// The errors of [`Tables::new`].
    pub(crate) fn heights(&self) -> Result<Vec<usize>> {
        Ok(self.tables()?.cones.iter().map(|table| table.positions.len()).collect())
    }

    /// Whether block `cone` of a sum of the matrices has few entries, as [`Sparse::entries_of`] requires.
    ///
    /// # Errors
    /// The errors of making the tables of its matrices.
    pub fn is_sparse(&self, cone: usize, bits: u32) -> Result<bool> {
        Ok(self.tables()?.cones[cone].is_sparse(bits))
    }

    /// Bytes of such entries at `bits` bits, and of the list that they are made from; nothing where they are many.
    ///
    /// # Errors
    /// The errors of [`Tables::new`].
    pub(crate) fn sparse_bytes(&self, cone: usize, bits: u32) -> Result<Option<u64>> {
        let table = &self.tables()?.cones[cone];
        Ok(table.is_sparse(bits).then(|| entry_bytes(table.entries(), bits)))
    }

    /// The entries of a symmetric dense block at all places where one of the matrices has an entry; a sum of the
    /// matrices has no others. They have at most `bits` bits.
    ///
    /// # Errors
    /// The errors of [`SparseMatrix::from_entries`].
    pub fn entries_of(&self, cone: usize, matrix: &Matrix, bits: u32) -> Result<SparseMatrix> {
        let table = &self.tables()?.cones[cone];
        let bits = bits.min(matrix.precision_bits());
        let number = |&(row, col): &(usize, usize)| matrix.get(row, col).to_float(bits);
        let numbers = table.positions.iter().map(number).collect::<Vec<_>>();
        let lower = table.positions.iter().zip(&numbers).map(|(&(row, col), number)| ((row, col), number));
        let beside = lower.clone().filter(|((row, col), _)| row != col);
        let upper = beside.map(|((row, col), number)| ((col, row), number));
        SparseMatrix::from_entries(matrix.rows(), matrix.cols(), lower.chain(upper))
    }

    /// The numbers of block `cone` of M at its positions, of which [`Sparse::paired`] makes `A_p . M`.
    ///
    /// # Errors
    /// The errors of [`sunzi::sparse::sddmm`].
    pub fn numbers(&self, k: Arithmetic<'_>, cone: usize, summand: &Summand<'_>) -> Result<Matrix> {
        let table = &self.tables()?.cones[cone];
        let mut numbers = Matrix::zeros(table.positions.len(), 1, k.bits)?;
        for (at, &(row, col)) in table.positions.iter().enumerate() {
            let number = match summand.block {
                Block::Dense(matrix) => doubled(matrix.get(row, col)),
                Block::Diagonal(diagonal) => diagonal.get(row, 0),
            };
            numbers.set(at, 0, number);
        }
        if let Some((x_inverse, product)) = summand.product {
            // Twice the symmetric part: both orders of the indices, row by row of the symmetric factor.
            let (one, rows) = (Float::with_val(2, 1), x_inverse.stored().transposed());
            let turned = table.positions.iter().map(|&(row, col)| (col, row)).collect::<Vec<_>>();
            for positions in [&table.positions, &turned] {
                let part = sddmm(k.ctx, rows, product, positions, k.bits)?;
                numbers = axpy(k.ctx, &one, part.view(), numbers.view(), k.bits)?;
            }
        }
        Ok(numbers)
    }

    /// `A_p . M` for all variables, a column, of the numbers of all blocks.
    ///
    /// # Errors
    /// The errors of [`sunzi::sparse::spmm`].
    pub fn paired(&self, k: Arithmetic<'_>, of_blocks: &[Matrix]) -> Result<Matrix> {
        let tables = self.tables()?;
        let mut numbers = Matrix::zeros(tables.positions(), 1, k.bits)?;
        for (table, of_block) in tables.cones.iter().zip(of_blocks) {
            let own = table.first..table.first + table.positions.len();
            numbers.view_mut().block(own, 0..1)?.copy_from(of_block);
        }
        let sums = spmm(k.ctx, &tables.matrices, &numbers, k.bits)?;
        let mut found = Matrix::zeros(self.variables, 1, k.bits)?;
        tables.order.iter().enumerate().for_each(|(place, &variable)| found.set(variable, 0, sums.get(place, 0)));
        Ok(found)
    }

    /// Bytes of all entries, the lists that hold them included.
    pub(crate) fn bytes(&self) -> u64 {
        let of_list = |list: &Vec<Entry>| -> u64 {
            let limbs = list.iter().map(|entry| 8 + 8 * u64::from(entry.value.prec().div_ceil(64))).sum::<u64>();
            size_of_val(list) as u64 + (list.capacity() * size_of::<Entry>()) as u64 + limbs
        };
        let of_cone = |cone: &SparseCone| {
            8 * cone.active.capacity() as u64 + cone.entries.iter().chain([&cone.constant]).map(of_list).sum::<u64>()
        };
        self.cones.iter().map(of_cone).sum()
    }

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
        Sparse::new(self.variables, self.cones.iter().map(cone).collect())
    }
}

/// Twice the number.
fn doubled(value: FloatRef<'_>) -> FloatRef<'_> {
    match value.head.is_zero() {
        true => value,
        false => FloatRef { head: Head::new(value.head.is_negative(), value.head.exponent() + 1), ..value },
    }
}
