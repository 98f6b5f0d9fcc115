//! `A x = b` by substitution for a few right-hand sides: exact dot products in fixed point below one common exponent,
//! blocks of 8 rows.
//!
//! Promise: a solution depends only on factor, right-hand side and precision. Sums of products are exact integers, so
//! the order of summation does not matter; all unknowns in a sum must have one common exponent. [`Unknowns`] serve one
//! process and ranks. Bounds: docs/ALGORITHM.md, "One right-hand side".

use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::io::Block;
use crate::kernels::dots::{DIGIT_BITS, DotSource, FixedVector, PADDING};
use crate::kernels::{PanelSource, PlaneKernel};
use crate::math::bound::vector_solve_bits;
use crate::matrix::{Destination, MAXIMUM_EXPONENT, Matrix, MatrixView, MatrixViewMut};
use crate::ops::product::scale::{NormPass, norm_exponents};
use crate::ops::solve::problem::SystemShape;
use crate::ops::solve::run::make_room;
use crate::ops::solve::triangle::TriangleBlocks;
use crate::plan::BLOCK;
use rug::{Float, Integer};
use std::ops::Range;
use std::sync::OnceLock;

/// For each row of the factor the `r_i` with `norm(l_i) <= 2^r_i`.
///
/// # Errors
/// The errors of [`norm_exponents`].
pub(crate) fn row_norms(ctx: &Context, factor: &Matrix) -> Result<Vec<i64>> {
    let mut norms = vec![0; factor.rows()];
    let rows = [factor.transposed()];
    norm_exponents(&NormPass::one_process(ctx, ctx.threads()), &rows, true, &mut norms)?;
    Ok(norms)
}

/// [`row_norms`], found once and kept.
///
/// # Errors
/// As [`row_norms`].
pub(crate) fn kept_row_norms<'a>(ctx: &Context, factor: &Matrix, kept: &'a OnceLock<Vec<i64>>) -> Result<&'a [i64]> {
    if kept.get().is_none() {
        let norms = row_norms(ctx, factor)?;
        kept.get_or_init(|| norms);
    }
    Ok(kept.get().map_or(&[], |norms| norms))
}

/// Solves `L L^T X = B` column by column; `factor` is `n x n` with zeros above its diagonal and none on it, and its
/// [`row_norms`]; `b` has `n` rows. Returns the bytes of the call.
///
/// # Errors
/// [`Error::ExponentRange`], [`Error::MemoryLimit`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(crate) fn solve_columns(
    ctx: &Context,
    factor: &Matrix,
    norms: &[i64],
    b: MatrixView<'_>,
    precision_bits: u32,
    result: Destination<'_>,
) -> Result<u64> {
    let order = factor.rows();
    let shape = SystemShape { order, columns: b.cols() };
    let planned_bytes = ctx.memory().admit(bytes(ctx, shape, precision_bits))?;
    make_room(ctx, planned_bytes);
    let result = result.prepare((order, b.cols()), precision_bits)?;
    let system = DotSystem::new(precision_bits, norms, order);
    let (mut lower, mut upper) = (factor.view(), factor.transposed());
    store_columns(&system.solve(ctx, [&mut lower, &mut upper], b)?, result)?;
    Ok(planned_bytes)
}

/// Rounds columns of numbers into a matrix.
///
/// # Errors
/// [`Error::ExponentRange`] with the first place, column by column, that leaves the exponent range.
pub(crate) fn store_columns(columns: &[Vec<Float>], mut solution: MatrixViewMut<'_>) -> Result<()> {
    for (column, values) in columns.iter().enumerate() {
        for (row, value) in values.iter().enumerate() {
            if !value.is_finite() {
                let (exponent, limit) = (i64::from(i32::MAX), MAXIMUM_EXPONENT);
                return Err(Error::ExponentRange { row, column, exponent, limit });
            }
            solution.set_float(row, column, value)?;
        }
    }
    Ok(())
}

/// The largest number of bytes of a call: the solution, and what [`vector_bytes`] counts.
pub(crate) fn bytes(ctx: &Context, shape: SystemShape, precision_bits: u32) -> u64 {
    shape.right_bytes(precision_bits) + vector_bytes(ctx, shape, precision_bits)
}

/// The largest number of bytes in addition to the solution: for each column the unknowns as numbers and as digits, and
/// those of the previous substitution as numbers; exponents; for each worker the sums of a block, and their operands.
pub(crate) fn vector_bytes(ctx: &Context, shape: SystemShape, precision_bits: u32) -> u64 {
    let SystemShape { order, columns } = shape;
    let bits = vector_solve_bits(precision_bits, order);
    let number = u64::from(bits.div_ceil(64)) * 8 + 48;
    let digits = bits.div_ceil(DIGIT_BITS);
    let fixed = 8 * (u64::from(digits) + 2 * PADDING as u64 + 1);
    // Sums as the kernel returns them and as they are kept, both of twice the bits, right sides, and some on the way.
    let block = ctx.kernel().dots_bytes(digits as usize) + (4 * BLOCK as u64 + BLOCK as u64 + 12) * number;
    order as u64 * (columns as u64 * (2 * number + fixed) + 8 * 6) + workers(ctx, columns) as u64 * block.max(64 << 10)
}

/// Each has a column at a time.
fn workers(ctx: &Context, cols: usize) -> usize {
    ctx.threads().min(cols).max(1)
}

/// A factor's scaling, and the number of its rows that are read together.
pub(crate) struct DotSystem {
    scaling: Scaling,
    /// Rows of a piece, whole blocks of 8; they never change the solution.
    piece_rows: usize,
}

impl DotSystem {
    /// For a factor whose rows have these norms, in pieces of `piece_rows` rows or a few more.
    pub fn new(precision_bits: u32, norms: &[i64], piece_rows: usize) -> DotSystem {
        DotSystem {
            scaling: Scaling::new(precision_bits, norms),
            piece_rows: piece_rows.next_multiple_of(BLOCK).max(BLOCK),
        }
    }

    /// The columns of `X` with `L L^T X = B`; the triangles are `L` and its transpose.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and the errors of the triangles.
    pub fn solve(
        &self,
        ctx: &Context,
        [lower, upper]: [&mut dyn TriangleBlocks; 2],
        b: MatrixView<'_>,
    ) -> Result<Vec<Vec<Float>>> {
        let right = |row: usize, col: usize| b.get(row, col).to_float(b.precision_bits());
        let blocks = self.scaling.order().div_ceil(BLOCK) * b.cols();
        let meter = Meter::new(ctx, 2 * blocks as u64);
        let middle = self.sweep(&meter, Sweep::Forward, lower, b.cols(), &right)?;
        self.sweep(&meter, Sweep::Backward, upper, b.cols(), &|row, col| middle[col][row].clone())
    }

    /// The pieces of a substitution: a fixed number of rows of its triangle at a time, up to the diagonal.
    fn pieces(&self, sweep: Sweep) -> impl Iterator<Item = Block> + Send + use<> {
        let (order, piece_rows) = (self.scaling.order(), self.piece_rows);
        let count = order.div_ceil(piece_rows);
        (0..count).map(move |step| {
            let at = if sweep == Sweep::Forward { step } else { count - 1 - step };
            let rows = at * piece_rows..((at + 1) * piece_rows).min(order);
            let cols = if sweep == Sweep::Forward { 0..rows.end } else { rows.start..order };
            Block { rows, cols }
        })
    }

    /// One of the two substitutions, on `columns` columns with the right-hand sides `right(row, col)`.
    fn sweep(
        &self,
        meter: &Meter<'_>,
        sweep: Sweep,
        triangle: &mut dyn TriangleBlocks,
        columns: usize,
        right: &(dyn Fn(usize, usize) -> Float + Sync),
    ) -> Result<Vec<Vec<Float>>> {
        let ctx = meter.ctx();
        let mut unknowns = (0..columns).map(|_| Unknowns::new(&self.scaling, sweep)).collect::<Vec<_>>();
        let mut locals = vec![(); workers(ctx, columns)];
        let order = self.scaling.order();
        triangle.begin(Box::new(self.pieces(sweep)), self.piece_rows.min(order) * order)?;
        for Block { rows, cols } in self.pieces(sweep) {
            let view = triangle.block(&Block { rows: rows.clone(), cols: cols.clone() })?;
            let piece = match sweep {
                Sweep::Forward => FactorPiece { view, first_row: rows.start, first_col: 0 },
                Sweep::Backward => {
                    FactorPiece { view: view.transposed(), first_row: rows.start, first_col: rows.start }
                }
            };
            let mut items = unknowns.iter_mut().enumerate();
            let solve = |(): &mut (), (col, unknowns): (usize, &mut Unknowns<'_>)| {
                self.solve_piece(meter, &piece, &rows, unknowns, &|row| right(row, col))
            };
            ctx.install(|| drive::parallel_for(&mut locals, |()| items.next(), solve))?;
        }
        triangle.finish();
        Ok(unknowns.into_iter().map(Unknowns::into_values).collect())
    }

    /// The unknowns `rows`, for which all entries of the factor are in a piece, a block after the other.
    fn solve_piece(
        &self,
        meter: &Meter<'_>,
        piece: &FactorPiece<'_>,
        rows: &Range<usize>,
        unknowns: &mut Unknowns<'_>,
        right: &dyn Fn(usize) -> Float,
    ) -> Result<()> {
        let ctx = meter.ctx();
        let blocks = rows.len().div_ceil(BLOCK);
        for step in 0..blocks {
            let at = rows.start + BLOCK * if unknowns.sweep() == Sweep::Forward { step } else { blocks - 1 - step };
            let block = at..(at + BLOCK).min(rows.end);
            let right = block.clone().map(right).collect::<Vec<_>>();
            let mut sums = [Integer::ZERO; BLOCK];
            unknowns.solve_rows(ctx.kernel(), piece, &block, &right, &mut sums);
            meter.add("solve", 1)?;
        }
        Ok(())
    }
}

/// Extra bits of the numbers inside a block of 8 rows.
const BLOCK_BITS: u32 = 32;

/// The two substitutions of a solve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sweep {
    /// `L y = b`, from the first row to the last.
    Forward,
    /// `L^T x = y`, from the last row to the first. Unknowns are scaled by the norms of the factor's rows.
    Backward,
}

/// Sums of products of the unknowns with the 8 rows of a block.
pub(crate) type BlockSums = [Integer; BLOCK];

/// The scaling of the entries of a factor and of the unknowns.
pub(crate) struct Scaling {
    /// Fixed-point bits of scaled entries and of the unknowns.
    pub bits: u32,
    /// `r_i` with `norm(l_i) <= 2^r_i`, for every row of the factor.
    norms: Vec<i64>,
    /// `bits - r_i`.
    forward_shifts: Vec<i64>,
    /// `-r_k`.
    backward_shifts: Vec<i64>,
    /// `bits`, for every column.
    even_shifts: Vec<i64>,
    no_shifts: Vec<i64>,
}

/// A rectangle of a factor.
pub(crate) struct FactorPiece<'a> {
    /// Its entries.
    pub view: MatrixView<'a>,
    /// Its place in the factor.
    pub first_row: usize,
    pub first_col: usize,
}

impl FactorPiece<'_> {
    /// The entry of the factor at a place within the piece.
    fn float(&self, row: usize, col: usize) -> Float {
        self.view.get(row - self.first_row, col - self.first_col).to_float(self.view.precision_bits())
    }
}

impl Scaling {
    /// For a factor whose rows have these norms, and solutions of `precision_bits`.
    pub fn new(precision_bits: u32, norms: &[i64]) -> Scaling {
        let (order, bits) = (norms.len(), vector_solve_bits(precision_bits, norms.len()));
        Scaling {
            bits,
            norms: norms.to_vec(),
            forward_shifts: norms.iter().map(|norm| i64::from(bits) - norm).collect(),
            backward_shifts: norms.iter().map(|norm| -norm).collect(),
            even_shifts: vec![i64::from(bits); order],
            no_shifts: vec![0; order],
        }
    }

    /// Unknowns of a solve.
    pub fn order(&self) -> usize {
        self.norms.len()
    }

    /// The part of a piece that multiplies the unknowns found before the rows `block`.
    fn source<'s>(
        &'s self,
        sweep: Sweep,
        block: &Range<usize>,
        &FactorPiece { view, first_row, first_col }: &FactorPiece<'s>,
    ) -> DotSource<'s> {
        match sweep {
            Sweep::Forward => {
                let known = 0..view.cols().min(block.start.saturating_sub(first_col));
                let columns = block.start - first_row..block.end - first_row;
                let shifts = &self.forward_shifts[first_row..];
                let panel = PanelSource { view: view.transposed(), columns, rows: known, shifts };
                DotSource { panel, row_shifts: &self.no_shifts[first_col..], first_entry: first_col }
            }
            Sweep::Backward => {
                let known = block.end.saturating_sub(first_row)..view.rows();
                let columns = block.start - first_col..block.end - first_col;
                let panel = PanelSource { view, columns, rows: known, shifts: &self.even_shifts[first_col..] };
                DotSource { panel, row_shifts: &self.backward_shifts[first_row..], first_entry: first_row }
            }
        }
    }

    /// Power of two that the row of a sum was scaled down by.
    fn sum_norm(&self, sweep: Sweep, row: usize) -> i64 {
        if sweep == Sweep::Forward { self.norms[row] } else { 0 }
    }

    /// Power of two that an unknown is scaled up by.
    fn unknown_norm(&self, sweep: Sweep, row: usize) -> i64 {
        if sweep == Sweep::Forward { 0 } else { self.norms[row] }
    }
}

/// Unknowns found so far: as numbers, and in fixed point below one common exponent.
pub(crate) struct Unknowns<'a> {
    scaling: &'a Scaling,
    sweep: Sweep,
    values: Vec<Float>,
    fixed: FixedVector,
    /// All known values lie below `2^exponent`.
    exponent: Option<i64>,
}

impl<'a> Unknowns<'a> {
    /// None known yet.
    pub fn new(scaling: &'a Scaling, sweep: Sweep) -> Unknowns<'a> {
        let (order, bits) = (scaling.order(), scaling.bits);
        let (values, fixed) = (vec![Float::new(bits); order], FixedVector::new(order, bits));
        Unknowns { scaling, sweep, values, fixed, exponent: None }
    }

    /// The substitution that finds them.
    pub fn sweep(&self) -> Sweep {
        self.sweep
    }

    /// The unknowns as numbers.
    pub fn values(&self) -> &[Float] {
        &self.values
    }

    /// The unknowns as numbers, by value.
    pub fn into_values(self) -> Vec<Float> {
        self.values
    }

    /// Takes an unknown that was found elsewhere; [`Unknowns::commit`] makes it known in fixed point.
    pub fn set(&mut self, row: usize, value: Float) {
        self.values[row] = value;
    }

    /// Adds to `sums` the products of pieces of the factor with the unknowns that come before the rows `block`, all of
    /// which are known: those of a piece's columns (forward) or rows (backward) are used.
    pub fn add_sums(
        &self,
        kernel: &dyn PlaneKernel,
        block: &Range<usize>,
        pieces: &[FactorPiece<'_>],
        sums: &mut BlockSums,
    ) {
        let sources = pieces.iter().map(|piece| self.scaling.source(self.sweep, block, piece));
        let sources = sources.filter(|source| !source.panel.rows.is_empty()).collect::<Vec<_>>();
        if sources.is_empty() {
            return;
        }
        let mut own = [Integer::ZERO; BLOCK];
        kernel.dots(&sources, &self.fixed, &mut own);
        for (sum, own) in sums.iter_mut().zip(own) {
            *sum += own;
        }
    }

    /// Finds the unknowns of the block `rows` and commits them: adds to `sums` the products of a piece of the factor,
    /// which has the block's diagonal, with the unknowns before the block. Whether the common exponent has grown.
    pub fn solve_rows(
        &mut self,
        kernel: &dyn PlaneKernel,
        piece: &FactorPiece<'_>,
        rows: &Range<usize>,
        right: &[Float],
        sums: &mut BlockSums,
    ) -> bool {
        self.add_sums(kernel, rows, std::slice::from_ref(piece), sums);
        self.solve_block(rows, right, sums, |row, col| piece.float(row, col));
        self.commit(rows.clone())
    }

    /// Finds the unknowns of the block `rows` from its right side, one entry for each of them, and the sums over all
    /// unknowns before them. `entry` is that of the factor.
    fn solve_block(
        &mut self,
        rows: &Range<usize>,
        right: &[Float],
        sums: &BlockSums,
        entry: impl Fn(usize, usize) -> Float,
    ) {
        for step in 0..rows.len() {
            let at = if self.sweep == Sweep::Forward { step } else { rows.len() - 1 - step };
            let row = rows.start + at;
            let sum = self.unscale(&sums[at], self.scaling.sum_norm(self.sweep, row));
            let mut rest = Float::with_val(self.scaling.bits + BLOCK_BITS, &right[at] - &sum);
            match self.sweep {
                Sweep::Forward => (rows.start..row).for_each(|other| rest -= &entry(row, other) * &self.values[other]),
                Sweep::Backward => {
                    (row + 1..rows.end).for_each(|other| rest -= &entry(other, row) * &self.values[other])
                }
            }
            self.values[row] = Float::with_val(self.scaling.bits, rest / entry(row, row));
        }
    }

    /// A sum of products of scaled entries with fixed-point unknowns.
    fn unscale(&self, sum: &Integer, norm: i64) -> Float {
        let exact = Float::with_val(sum.significant_bits().max(2), sum);
        match self.exponent {
            Some(exponent) => shifted(exact, norm + exponent - 2 * i64::from(self.scaling.bits)),
            None => exact, // nothing but zeros was added up
        }
    }

    /// Makes the new unknowns `rows`, which follow those known already, known in fixed point; whether the common
    /// exponent has grown, which cuts all of them anew.
    ///
    /// The result depends only on the values, not on how many are committed at a time.
    pub fn commit(&mut self, rows: Range<usize>) -> bool {
        let norm = |row: usize| self.scaling.unknown_norm(self.sweep, row);
        let exponent_of = |row: usize| self.values[row].get_exp().map(|exponent| i64::from(exponent) + norm(row));
        let largest = rows.clone().filter_map(exponent_of).max();
        let grown = largest > self.exponent;
        self.exponent = largest.max(self.exponent);
        let Some(exponent) = self.exponent else { return false };
        let stale = match (grown, self.sweep) {
            (false, _) => 0..0,
            (true, Sweep::Forward) => 0..rows.start,
            (true, Sweep::Backward) => rows.end..self.values.len(),
        };
        for row in stale.chain(rows) {
            let norm = self.scaling.unknown_norm(self.sweep, row);
            let scaled = shifted(self.values[row].clone(), i64::from(self.scaling.bits) + norm - exponent);
            let size = scaled.abs().trunc().to_integer().unwrap_or_default();
            let negative = self.values[row].is_sign_negative();
            self.fixed.set(row, negative, size.as_limbs());
        }
        grown
    }
}

/// `value * 2^shift`, or 0 or infinity beyond MPFR's range.
fn shifted(value: Float, shift: i64) -> Float {
    value << shift.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::rand::RandState;

    #[test]
    fn pieces_never_show() {
        let ctx = Context::builder().threads(2).build().unwrap();
        let mut rng = RandState::new();
        for order in [1, 7, 8, 9, 16, 17, 100] {
            let mut random = || Float::with_val(130, Float::random_bits(&mut rng)) - 0.5f64;
            // Unknowns that grow and shrink.
            let entry = |row: usize, col: usize, value: Float| match row >= col {
                true => value >> ((row * 7 % 11) as i32 + if row == col { 0 } else { 5 }),
                false => Float::new(130),
            };
            let places = (0..order * order).map(|at| (at % order, at / order));
            let entries = places.map(|(row, col)| entry(row, col, random())).collect::<Vec<_>>();
            let right = (0..2 * order).map(|_| random()).collect::<Vec<_>>();
            let factor = Matrix::from_floats(order, order, 130, &entries).unwrap();
            let b = Matrix::from_floats(order, 2, 130, &right).unwrap();
            let norms = row_norms(&ctx, &factor).unwrap();
            let solve = |piece_rows| {
                let (mut lower, mut upper) = (factor.view(), factor.transposed());
                let system = DotSystem::new(150, &norms, piece_rows);
                system.solve(&ctx, [&mut lower, &mut upper], b.view()).unwrap()
            };
            let whole = solve(order);
            assert!(whole.iter().flatten().all(|value| value.is_finite() && !value.is_zero()));
            for piece_rows in [1, 8, 16, 24, 1000] {
                assert_eq!(solve(piece_rows), whole, "{order} rows in pieces of {piece_rows}");
            }
        }
    }
}
