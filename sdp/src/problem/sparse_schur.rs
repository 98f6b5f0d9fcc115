//! The Schur complement of sparse constraint matrices: `S_pq = Tr(A_p X^-1 A_q Y)`, one triangle.
//!
//! For each constraint in the order of the tables the numbers `U_rs + U_sr` of `U = X^-1 A_q Y` are formed at the
//! positions that it and later constraints meet, block by block; a column of S is the product of the sparse matrix of
//! the group with them. `A_q Y` is a product of the rows of `A_q` that are not 0. The rest is one sum for each
//! position, or, where the matrix has entries in many rows, a product of whole matrices for several constraints at a
//! time. Both give numbers that depend only on the operands, and so do the rules that choose.
//! Source of the idea: Fujisawa, Kojima, Nakata, Math. Programming 79 (1997), 235-253.

use super::SchurOperand;
use super::sparse_cone::SparseCone;
use super::sparse_tables::{ConeTables, ConstraintPart, Tables};
use crate::balance::assign;
use crate::block::{Block, Shape};
use crate::calls::{Call, axpy, call, gemm_with, spmm};
use crate::numbers::{Arithmetic, column, entrywise};
use crate::ranks::{Piece, Ranks};
use crate::workers::{TaskBytes, Workers};
use rug::Float;
use std::ops::Range;
use sunzi::sparse::{SparseView, sddmm_into};
use sunzi::{FloatRef, Matrix, MatrixView, Result};

/// Columns of a product of whole matrices, about.
const PRODUCT_COLUMNS: usize = 4096;

/// Constraints of a task that forms sums for positions.
const TASK_CONSTRAINTS: usize = 8;

/// The factors of the numbers of a block.
enum Factors<'a> {
    /// `X^-1` and Y.
    Dense(&'a Matrix, &'a Matrix),
    /// `y_i / x_i`.
    Diagonal(Matrix),
}

/// A piece of the work: neighbouring places.
struct SchurTask {
    places: Range<usize>,
    /// Nanoseconds, about.
    cost: u64,
}

/// Bytes of the position of an entry of a diagonal block.
const PLACE_BYTES: u64 = size_of::<Option<usize>>() as u64;

/// Bytes of `y_i / x_i` of all diagonal blocks, which [`schur`] forms in addition to its tasks.
pub fn weight_bytes(cones: &[SparseCone], bits: u32) -> u64 {
    let of_cone = |cone: &SparseCone| match cone.shape {
        Shape::Diagonal(order) => Matrix::bytes_for(order, 1, bits),
        Shape::Dense(_) => 0,
    };
    cones.iter().map(of_cone).sum()
}

/// Neighbouring columns that are formed at a time, from the place of the first on.
const PIECE_CONSTRAINTS: usize = 8;

impl SchurTask {
    /// Bytes of the columns, of `count` constraints in all.
    fn result_bytes(&self, count: usize, bits: u32) -> u64 {
        Matrix::bytes_for(count - self.places.start, self.places.len(), bits)
    }

    /// Columns of S from the numbers at all positions, piece by piece.
    ///
    /// # Errors
    /// The errors of [`spmm`].
    fn columns(&self, tables: &Tables, k: Arithmetic<'_>, numbers: &Matrix) -> Result<Vec<Matrix>> {
        let (count, height) = (tables.order.len(), numbers.rows());
        let pieces = (0..self.places.len()).step_by(PIECE_CONSTRAINTS).map(|first| {
            let cols = first..(first + PIECE_CONSTRAINTS).min(self.places.len());
            let rows = tables.matrices.view().row_range(self.places.start + first..count)?;
            spmm(k.ctx, rows, numbers.view().block(0..height, cols)?, k.bits)
        });
        pieces.collect()
    }
}

/// The tasks of a group, which depend only on its tables and the precision.
fn tasks(tables: &Tables, bits: u32) -> Vec<SchurTask> {
    let count = tables.order.len();
    let (mut widths, mut costs) = (vec![0; count], vec![0.0; count]);
    for cone in &tables.cones {
        cone.parts.iter().for_each(|part| costs[part.place] += cone.cost(part, bits));
        let wide = cone.parts.iter().filter(|part| cone.is_product(part, bits));
        wide.for_each(|part| widths[part.place] = cone.shape.order().max(widths[part.place]));
    }
    let (mut found, mut first) = (Vec::new(), 0);
    while first < count {
        // Constraints with products of whole matrices form parts of their own.
        let width = widths[first];
        let most = PRODUCT_COLUMNS.checked_div(width).map_or(TASK_CONSTRAINTS, |columns| columns.max(1));
        let same = widths[first..].iter().take(most).take_while(|&&other| (other > 0) == (width > 0)).count();
        let cost = costs[first..first + same].iter().sum::<f64>() as u64;
        found.push(SchurTask { places: first..first + same, cost });
        first += same;
    }
    found
}

/// The memory of the tasks of [`schur`] at `bits` bits. `gemm` gives the plan of a product, by the rows of the left
/// factor, the columns of the right one and the terms of its sums, for a given number of tasks.
///
/// # Errors
/// The errors of `gemm`.
pub fn task_bytes<G: Fn(usize, usize, usize) -> Result<u64>>(
    tables: &Tables,
    bits: u32,
    gemm: impl FnOnce(usize) -> G,
) -> Result<Vec<TaskBytes>> {
    let bytes = |rows: usize, cols: usize| Matrix::bytes_for(rows, cols, bits);
    let (tasks, count) = (tasks(tables, bits), tables.order.len());
    let gemm = gemm(tasks.len());
    let of_task = |task: &SchurTask| {
        let (numbers, result) = (bytes(tables.positions(), task.places.len()), task.result_bytes(count, bits));
        let mut most = result;
        for cone in &tables.cones {
            let order = cone.shape.order();
            let at = |place: usize| cone.parts.partition_point(|part| part.place < place);
            let parts = &cone.parts[at(task.places.start)..at(task.places.end)];
            let (wide, narrow): (Vec<&ConstraintPart>, Vec<&ConstraintPart>) =
                parts.iter().partition(|part| cone.is_product(part, bits));
            let rows = parts.iter().map(|part| part.rows.len()).sum();
            if let Shape::Diagonal(_) = cone.shape {
                most = most.max(bytes(rows, 1) + PLACE_BYTES * order as u64);
                continue;
            }
            let images = bytes(rows, order);
            let own = cone.rows_of(parts)?;
            if cone.is_full(own, bits) {
                most = most.max(Matrix::bytes_for(rows, order, entry_bits(own)) + gemm(rows, order, order)?);
            }
            let buffer = narrow.iter().map(|part| bytes(3 * part.rows.len(), order)).max().unwrap_or(0);
            most = most.max(images + buffer);
            if !wide.is_empty() {
                let width = order * wide.len();
                let sums = 3 * bytes(cone.positions.len(), 1);
                let product = gemm(order, width, order)?.max(bytes(order, width) + sums);
                most = most.max(images + bytes(order, width) + product);
            }
        }
        Ok(TaskBytes { result, work: numbers + most })
    };
    tasks.iter().map(of_task).collect()
}

/// The lower triangle of the Schur complement of a group on the root, with `operands` of its blocks, all of them on
/// every rank. Each rank carries out its part of the tasks. Collective.
///
/// # Errors
/// The errors of the library's products.
pub fn schur(
    workers: &Workers,
    ranks: &Ranks,
    k: Arithmetic<'_>,
    tables: &Tables,
    operands: &[SchurOperand<'_>],
) -> Result<Option<Matrix>> {
    let tasks = tasks(tables, k.bits);
    let given = assign(&tasks.iter().map(|task| task.cost).collect::<Vec<_>>(), ranks.size());
    let own = tasks.iter().zip(&given).filter(|(_, rank)| **rank == ranks.rank()).map(|(task, _)| task);
    let columns = columns(workers, k, tables, operands, &own.collect::<Vec<_>>());
    let count = tables.order.len();
    let pieces = tasks.iter().zip(&given).flat_map(|(task, &owner)| {
        let firsts = task.places.clone().step_by(PIECE_CONSTRAINTS);
        firsts.map(move |first| (first, owner, PIECE_CONSTRAINTS.min(task.places.end - first)))
    });
    let pieces = pieces.collect::<Vec<_>>();
    let list = pieces.iter().map(|&(first, owner, width)| Piece { owner, shape: (count - first, width) });
    let columns = ranks.on_root(k.bits, &list.collect::<Vec<_>>(), columns)?;
    let whole = columns.map(|columns| {
        let mut whole = Matrix::zeros(count, count, k.bits)?;
        for (&(first, ..), columns) in pieces.iter().zip(&columns) {
            for (at, &one) in tables.order[first..first + columns.cols()].iter().enumerate() {
                for (below, &other) in tables.order[first + at..].iter().enumerate() {
                    whole.set(one.max(other), one.min(other), columns.get(at + below, at));
                }
            }
        }
        Ok(whole)
    });
    ranks.agreed(whole.transpose())
}

/// The columns that these tasks form, piece by piece.
fn columns(
    workers: &Workers,
    k: Arithmetic<'_>,
    tables: &Tables,
    operands: &[SchurOperand<'_>],
    tasks: &[&SchurTask],
) -> Result<Vec<Matrix>> {
    let factors = operands.iter().map(|operand| match (operand.x_inverse, operand.y) {
        (Block::Dense(x_inverse), Block::Dense(y)) => Ok(Factors::Dense(x_inverse, y)),
        (x_inverse, y) => {
            let (x_inverse, y) = (x_inverse.stored(), y.stored());
            let weight = |row| Float::with_val(k.bits, &x_inverse.float(row, 0) * &y.float(row, 0));
            Ok(Factors::Diagonal(column(y.rows(), k.bits, weight)?))
        }
    });
    let factors = factors.collect::<Result<Vec<_>>>()?;
    let result = |task: &&SchurTask| {
        let result = task.result_bytes(tables.order.len(), k.bits);
        TaskBytes { result, work: result }
    };
    let columns = workers.map(tasks, (|task: &&SchurTask| task.cost, result), |ctx, task| {
        let k = Arithmetic { ctx, ..k };
        let mut numbers = Matrix::zeros(tables.positions(), task.places.len(), k.bits)?;
        for (cone, factors) in tables.cones.iter().zip(&factors) {
            InBlock { k, cone, places: &task.places }.fill(factors, &mut numbers)?;
        }
        task.columns(tables, k, &numbers)
    })?;
    Ok(columns.into_iter().flatten().collect())
}

/// The bits of the longest entry, in whole limbs.
fn entry_bits(rows: SparseView<'_>) -> u32 {
    let limbs = (0..rows.rows()).flat_map(|row| rows.row(row)).map(|(_, value)| value.limbs.len());
    64 * limbs.max().unwrap_or(1) as u32
}

/// Rows with all their entries, exactly.
fn whole(rows: SparseView<'_>) -> Result<Matrix> {
    let bits = entry_bits(rows);
    let mut whole = Matrix::zeros(rows.rows(), rows.cols(), bits)?;
    let mut limbs = vec![0; (bits / 64) as usize];
    for row in 0..rows.rows() {
        for (col, value) in rows.row(row) {
            // The leading limbs of a number are the last ones.
            let (low, high) = limbs.split_at_mut((bits / 64) as usize - value.limbs.len());
            low.fill(0);
            high.copy_from_slice(value.limbs);
            whole.set(row, col, FloatRef { limbs: &limbs, ..value });
        }
    }
    Ok(whole)
}

/// The rows of `A_q Y` for the constraints of a task in one block.
struct Images {
    rows: Matrix,
    /// The number of the first among the rows of all constraints.
    first_row: usize,
}

impl Images {
    /// The first row of a constraint.
    fn start(&self, part: &ConstraintPart) -> usize {
        part.first_row - self.first_row
    }

    /// The entries of a constraint.
    fn of(&self, part: &ConstraintPart) -> Result<MatrixView<'_>> {
        let first = self.start(part);
        self.rows.view().block(first..first + part.rows.len(), 0..self.rows.cols())
    }
}

/// The constraints of a task in one block.
struct InBlock<'a> {
    k: Arithmetic<'a>,
    cone: &'a ConeTables,
    places: &'a Range<usize>,
}

impl InBlock<'_> {
    /// Writes the numbers at the positions of the block, a column for each place.
    ///
    /// # Errors
    /// The errors of the library's products.
    fn fill(&self, factors: &Factors<'_>, numbers: &mut Matrix) -> Result<()> {
        let (k, cone) = (self.k, self.cone);
        let at = |place: usize| cone.parts.partition_point(|part| part.place < place);
        let parts = &cone.parts[at(self.places.start)..at(self.places.end)];
        let Some(front) = parts.first() else { return Ok(()) };
        let rows = cone.rows_of(parts)?;
        let (x_inverse, y) = match factors {
            Factors::Dense(x_inverse, y) => (x_inverse, y),
            Factors::Diagonal(weights) => {
                let images = Images { rows: spmm(k.ctx, rows, weights, k.bits)?, first_row: front.first_row };
                return self.fill_diagonal(parts, &images, numbers);
            }
        };
        let images = Images { rows: self.images(rows, y, numbers)?, first_row: front.first_row };
        let mut wide = Vec::new();
        for part in parts {
            match cone.is_product(part, k.bits) {
                true => wide.push(part),
                false => self.fill_positions(part, x_inverse, images.of(part)?, numbers)?,
            }
        }
        self.fill_products(&wide, &images, x_inverse, numbers)
    }

    /// The rows of `A_q` that are not 0, times Y: as a product of whole matrices where these have many entries.
    fn images(&self, rows: SparseView<'_>, y: &Matrix, numbers: &Matrix) -> Result<Matrix> {
        let k = self.k;
        if !self.cone.is_full(rows, k.bits) {
            return spmm(k.ctx, rows, y, k.bits);
        }
        let whole = whole(rows)?;
        Ok(gemm_with(&k.beside(numbers.bytes() + whole.bytes()), &whole, y, k.bits, &entrywise())?.result)
    }

    /// `a_ii y_i / x_i`.
    fn fill_diagonal(&self, parts: &[ConstraintPart], images: &Images, numbers: &mut Matrix) -> Result<()> {
        let mut places = vec![None; self.cone.shape.order()];
        self.cone.positions.iter().enumerate().for_each(|(at, &(row, _))| places[row] = Some(at));
        for part in parts {
            let first = images.start(part);
            for (at, &row) in part.rows.iter().enumerate() {
                if let Some(position) = places[row] {
                    let col = part.place - self.places.start;
                    numbers.set(self.cone.first + position, col, images.rows.get(first + at, 0));
                }
            }
        }
        Ok(())
    }

    /// The sums for single positions: rows of `X^-1` and of `A_q Y` in one buffer, so that both orders are views of it.
    fn fill_positions(
        &self,
        part: &ConstraintPart,
        x_inverse: &Matrix,
        image: MatrixView<'_>,
        numbers: &mut Matrix,
    ) -> Result<()> {
        let (k, cone, count, order) = (self.k, self.cone, part.rows.len(), x_inverse.rows());
        let mut buffer = Matrix::zeros(3 * count, order, k.bits)?;
        for col in 0..order {
            for (at, &row) in part.rows.iter().enumerate() {
                buffer.set(at, col, x_inverse.get(row, col));
                buffer.set(count + at, col, image.get(at, col));
                buffer.set(2 * count + at, col, x_inverse.get(row, col));
            }
        }
        let (left, right) = (count..3 * count, 0..2 * count);
        let left = buffer.view().block(left, 0..order)?.transposed();
        let right = buffer.view().block(right, 0..order)?;
        let positions = &cone.positions[..cone.met[part.place]];
        let col = part.place - self.places.start;
        call(Call { verb: "sddmm", shape: (positions.len(), 1, 2 * count), bits: k.bits }, || {
            let place = numbers.view_mut().block(cone.first..cone.first + positions.len(), col..col + 1)?;
            sddmm_into(k.ctx, left, right, positions, k.bits, place)
        })?;
        Ok(())
    }

    /// The same from `X^-1 (A_q Y)` as a whole, for several constraints.
    fn fill_products(
        &self,
        parts: &[&ConstraintPart],
        images: &Images,
        x_inverse: &Matrix,
        numbers: &mut Matrix,
    ) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        let (k, cone) = (self.k, self.cone);
        let Shape::Dense(order) = cone.shape else { return Ok(()) };
        let mut right = Matrix::zeros(order, order * parts.len(), k.bits)?;
        for (number, part) in parts.iter().enumerate() {
            let image = images.of(part)?;
            for col in 0..order {
                for (at, &row) in part.rows.iter().enumerate() {
                    right.set(row, number * order + col, image.get(at, col));
                }
            }
        }
        let held = Matrix::bytes_for(parts.iter().map(|part| part.rows.len()).sum(), order, k.bits);
        let ctx = k.beside(numbers.bytes() + held + right.bytes());
        let products = gemm_with(&ctx, x_inverse, &right, k.bits, &entrywise())?.result;
        let one = Float::with_val(2, 1);
        for (number, part) in parts.iter().enumerate() {
            let positions = &cone.positions[..cone.met[part.place]];
            let mut both = [Matrix::zeros(positions.len(), 1, k.bits)?, Matrix::zeros(positions.len(), 1, k.bits)?];
            for (at, &(row, col)) in positions.iter().enumerate() {
                both[0].set(at, 0, products.get(row, number * order + col));
                both[1].set(at, 0, products.get(col, number * order + row));
            }
            let sums = axpy(k.ctx, &one, both[0].view(), both[1].view(), k.bits)?;
            let col = part.place - self.places.start;
            numbers.view_mut().block(cone.first..cone.first + positions.len(), col..col + 1)?.copy_from(&sums);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
