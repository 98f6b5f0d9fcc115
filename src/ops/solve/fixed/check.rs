//! Whether unknowns in fixed point are accurate entry by entry: rows whose largest term lies too far below the scale of
//! their right side are not, and end their column's try.
//!
//! For row `i` the roundings of the triangle, of the right side and of the unknown are small relative to `2^e`, the
//! scale of the column; `sum_k |t_ik| |x_k|` is at least a quarter of its largest term, which follows from the
//! exponents.
//! Source: docs/ALGORITHM.md, "Solves in fixed point".

use super::{FixedPoint, RowPiece};
use crate::kernels::max_plus::{DEEPEST, DepthRow, EMPTY, PANEL, depth, largest_sums};
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::float::Head;
use crate::math::pivot::RowWeight;
use crate::matrix::MatrixView;
use std::ops::Range;

/// Depths of some rows of the triangle below the norms of these rows, in panels of 32 rows, column by column.
pub(super) struct RowDepths {
    rows: Range<usize>,
    panels: Vec<Vec<DepthRow>>,
}

impl RowDepths {
    /// The depths of `rows`, which `piece` contains.
    pub fn new(fixed: &FixedPoint, piece: &RowPiece<'_>, rows: Range<usize>) -> RowDepths {
        let panel = |first: usize| {
            let own = first..rows.end.min(first + PANEL);
            let mut depths = vec![[EMPTY; PANEL]; own.end];
            for (lane, row) in own.enumerate() {
                let exponent = fixed.form.exponents[row];
                for (col, depths) in depths[..row].iter_mut().enumerate() {
                    depths[lane] = depth(piece.view.head(row - piece.first, col), exponent);
                }
                let pivot = if fixed.form.unit { Head::new(false, 1) } else { piece.view.head(row - piece.first, row) };
                depths[row][lane] = depth(pivot, exponent);
            }
            depths
        };
        RowDepths { panels: rows.clone().step_by(PANEL).map(panel).collect(), rows }
    }
}

/// Depths of the unknowns of some right-hand sides below the scale of their column, in panels of 32 right-hand sides.
pub(super) struct UnknownDepths {
    panels: Vec<Vec<DepthRow>>,
}

impl UnknownDepths {
    /// No unknown found yet, for `rights` right-hand sides.
    pub fn new(order: usize, rights: usize) -> UnknownDepths {
        UnknownDepths { panels: vec![vec![[EMPTY; PANEL]; order]; rights.div_ceil(PANEL)] }
    }

    /// Adds the unknown `row` of 8 right-hand sides from `first` on, given by its magnitudes with `fixed_bits` after
    /// the point.
    pub fn set(&mut self, row: usize, first: usize, magnitudes: &[u64], fixed_bits: u32) {
        let each = magnitudes.len() / PANEL_ROWS;
        let lanes = &mut self.panels[first / PANEL][row][first % PANEL..][..PANEL_ROWS];
        for (own, magnitude) in lanes.iter_mut().zip(magnitudes.chunks_exact(each)) {
            *own = match magnitude.iter().rposition(|&limb| limb > 0) {
                Some(top) => {
                    let bits = 64 * (top as i64 + 1) - i64::from(magnitude[top].leading_zeros());
                    (bits - i64::from(fixed_bits)).clamp(DEEPEST.into(), 0) as i16
                }
                None => EMPTY,
            };
        }
    }

    /// Rejects the right-hand sides in which the largest term of one of `rows` lies more than `deepest` below the
    /// scale; they are the rows of `right` from `first` on.
    pub fn reject(
        &self,
        rows: &RowDepths,
        deepest: u32,
        right: &MatrixView<'_>,
        first: usize,
        weights: &mut [RowWeight],
    ) {
        let mut sums = [[EMPTY; PANEL]; PANEL];
        for (index, unknowns) in self.panels.iter().enumerate() {
            let weights = weights.iter_mut().enumerate().skip(index * PANEL).take(PANEL);
            let mut weights = weights.collect::<Vec<_>>();
            for (panel, triangle) in rows.panels.iter().enumerate() {
                largest_sums(triangle, &unknowns[..triangle.len()], &mut sums);
                let own = (rows.rows.start + panel * PANEL..rows.rows.end).zip(&sums);
                for (row, sums) in own {
                    for ((at, weight), &sum) in weights.iter_mut().zip(sums) {
                        let is_exact = sum == EMPTY && right.head(first + *at, row).is_zero();
                        if !is_exact && (sum == EMPTY || u32::from(sum.unsigned_abs()) > deepest) {
                            weight.reject();
                        }
                    }
                }
            }
        }
    }
}
