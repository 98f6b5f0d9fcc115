//! Neighbouring diagonal blocks that are solved by one product each: `x_I = V_I w_I - M_I x_J`, where `V_I` is the
//! inverse of block `I`, `J` the unknowns of the group before it, and `M_I = V_I T_IJ`.
//!
//! `V_I` is found and applied at as many extra bits as it is large; how many is read off `V_I` itself, so it depends on
//! the triangle and the precision alone. Source: docs/ALGORITHM.md, "Triangular solves".

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{COMMON_WORKING_BITS, TRSM_BLOCK_ROWS, TRSM_GROUP_ROWS, guard_bits, trsm_inverse_bits};
use crate::math::float::{FloatRef, Head};
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, Matrix, MatrixView};
use crate::ops::block::BlockProduct;
use crate::ops::problem::Inner;
use crate::ops::trsm::layout::{EXTRA_BITS_STEP, Layout, pieces};
use crate::ops::trsm::solver::Solver;
use crate::ops::trsm::spaces::Spaces;
use crate::ops::trsm::triangle::{Triangle, scaled};
use std::ops::Range;

/// Diagonal blocks whose rows are scaled to norms of about 1 within the group.
pub(super) struct Group {
    /// Row `i` of the group is scaled by `2^-exponents[i]`.
    pub exponents: Vec<i64>,
    /// The blocks in the order in which their unknowns are found.
    pub parts: Vec<Part>,
}

/// One block.
pub(super) struct Part {
    /// Its rows in the triangle.
    pub rows: Range<usize>,
    /// The rows that its unknowns are made from: those of the group up to its own.
    pub sources: Range<usize>,
    /// `V` and `-M`, in the order of `sources`.
    pub factors: Matrix,
    /// Bits of the scaled integers when they are applied.
    pub product_bits: u32,
}

impl Group {
    /// Prepares the group `rows`; `None` where some block takes too many extra bits.
    ///
    /// `held_bytes` of the memory limit are taken.
    ///
    /// # Errors
    /// Those of a product.
    pub fn new(
        ctx: &Context,
        triangle: &Triangle<'_>,
        rows: Range<usize>,
        (layout, held_bytes): (Layout, u64),
    ) -> Result<Option<Group>> {
        assert!(rows.len() <= TRSM_GROUP_ROWS, "{} rows are too many", rows.len());
        let exponents = triangle.row_exponents(&rows);
        let maker = Maker { ctx, triangle, exponents: &exponents, rows: rows.clone(), layout, held_bytes };
        let parts = pieces(&rows, TRSM_BLOCK_ROWS).map(|block| match maker.part(block) {
            Err(Error::ExponentRange { .. }) => Ok(None),
            other => other,
        });
        let Some(mut parts) = parts.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
        if !triangle.is_lower() {
            parts.reverse();
        }
        Ok(Some(Group { exponents, parts }))
    }
}

/// What the blocks of a group have in common.
struct Maker<'a> {
    ctx: &'a Context,
    triangle: &'a Triangle<'a>,
    exponents: &'a [i64],
    rows: Range<usize>,
    layout: Layout,
    held_bytes: u64,
}

impl Maker<'_> {
    fn part(&self, block: Range<usize>) -> Result<Option<Part>> {
        let Some((inverse, product_bits)) = self.inverse(&block)? else { return Ok(None) };
        let known = match self.triangle.is_lower() {
            true => self.rows.start..block.start,
            false => block.end..self.rows.end,
        };
        let sources = known.start.min(block.start)..known.end.max(block.end);
        let mut factors = Matrix::zeros(block.len(), sources.len(), inverse.precision_bits())?;
        copy_block(&mut factors, block.start - sources.start, inverse.view(), |head| head);
        if !known.is_empty() {
            let mut product = Matrix::zeros(0, 0, 2)?;
            let right = self.scaled_rectangle(&block, &known)?;
            let inner = Inner { working_bits: Some(product_bits), held_bytes: self.held_bytes };
            let (left, right, precision_bits) = (inverse.view(), right.view(), inverse.precision_bits());
            BlockProduct { left, right, minuend: None, precision_bits, inner }.run(self.ctx, &mut product)?;
            copy_block(&mut factors, known.start - sources.start, product.view(), Head::negated);
        }
        Ok(Some(Part { rows: block, sources, factors, product_bits }))
    }

    /// The inverse of the scaled block, at its extra bits, and the bits of the products that it takes part in.
    fn inverse(&self, block: &Range<usize>) -> Result<Option<(Matrix, u32)>> {
        let scaled = self.triangle.scaled_block(block, self.exponents_of(block))?;
        let scaled = Triangle::new(scaled.view(), self.triangle.uplo(), Diag::NonUnit)?;
        let mut extra = EXTRA_BITS_STEP;
        while extra <= self.layout.most_extra_bits() {
            let inverse_bits = self.layout.working_bits + extra;
            let product_bits = inverse_bits + guard_bits(self.rows.len());
            if product_bits > COMMON_WORKING_BITS {
                return Ok(None);
            }
            let inverse = self.invert(scaled, inverse_bits)?;
            let norm_exponent = column_exponent(inverse.parts().0.iter().map(|&head| Head(head)));
            let needed = u32::try_from(trsm_inverse_bits(norm_exponent)).unwrap_or(u32::MAX / 2);
            if needed <= extra {
                return Ok(Some((inverse, product_bits)));
            }
            extra = needed.next_multiple_of(EXTRA_BITS_STEP);
        }
        Ok(None)
    }

    /// The inverse of a scaled block: the solution for the unit matrix.
    fn invert(&self, block: Triangle<'_>, precision_bits: u32) -> Result<Matrix> {
        let layout = Layout { order: block.order(), working_bits: precision_bits, columns: 0 };
        let solver = Solver::new(self.ctx, block, layout, self.held_bytes)?;
        let mut w = Matrix::zeros(block.order(), block.order(), precision_bits)?;
        for i in 0..block.order() {
            w.set_f64(i, i, 1.0)?;
        }
        let mut spaces = Spaces { w, result: Matrix::zeros(0, 0, precision_bits)? };
        solver.run(self.ctx, &mut spaces, self.held_bytes)?;
        Ok(spaces.w)
    }

    fn exponents_of(&self, block: &Range<usize>) -> &[i64] {
        &self.exponents[block.start - self.rows.start..block.end - self.rows.start]
    }

    /// A copy of a rectangle of the triangle with its rows scaled.
    fn scaled_rectangle(&self, rows: &Range<usize>, cols: &Range<usize>) -> Result<Matrix> {
        let view = self.triangle.block(rows.clone(), cols.clone())?;
        let mut copy = Matrix::zeros(rows.len(), cols.len(), view.precision_bits())?;
        for (row, exponent) in self.exponents_of(rows).iter().enumerate() {
            for col in 0..cols.len() {
                copy.set(row, col, scaled(view.get(row, col), -exponent));
            }
        }
        Ok(copy)
    }
}

/// Copies `source` into the columns of `target` from `first` on, with other heads.
fn copy_block(target: &mut Matrix, first: usize, source: MatrixView<'_>, head: impl Fn(Head) -> Head) {
    for col in 0..source.cols() {
        for row in 0..source.rows() {
            let value = source.get(row, col);
            target.set(row, first + col, FloatRef { head: head(value.head), ..value });
        }
    }
}
