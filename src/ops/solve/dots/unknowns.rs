//! Substitution with one right-hand side: sums in fixed point below one common exponent, a block of 8 rows at a time.
//!
//! Shared by the solve of one process and the one over ranks. Sums of products are exact integers, so the result does
//! not depend on the order of summation; all unknowns in a sum must have one common exponent.
//! Bounds: docs/ALGORITHM.md, "One right-hand side".

use crate::kernels::dots::{DotSource, FixedVector};
use crate::kernels::{PanelSource, PlaneKernel};
use crate::math::bound::vector_solve_bits;
use crate::matrix::MatrixView;
use crate::plan::BLOCK;
use rug::{Float, Integer};
use std::ops::Range;

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

/// How the entries of a factor and the unknowns are scaled.
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
