//! Classical plane products: cache blocking around the register tile.
//!
//! Loop order: chunks of rows (K), then groups of X panels that stay in the second-level cache, then columns of
//! blocks, whose panel of Y stays in the first-level cache while the group's panels stream past it.

pub use super::micro::Store;
use super::micro::{Fold, RegisterTile, tile};
use crate::kernels::area::Target;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// Rows of one pass over the operands: the accumulators are folded once per pass.
pub const KC: usize = 512;

/// Panels of X in one group.
pub const MC_PANELS: usize = 20;

/// Panels of an operand, `stride` words apart, from some row on.
#[derive(Clone, Copy)]
pub struct Ifma52Panels<'a> {
    /// The first panel's first row begins the slice.
    pub words: &'a [u64],
    /// Words from one panel to the next.
    pub stride: usize,
}

impl<'a> Ifma52Panels<'a> {
    /// The panels from number `panel` on, from row `row` on.
    pub fn from(self, panel: usize, row: usize) -> Ifma52Panels<'a> {
        Ifma52Panels { words: &self.words[(panel * self.stride + row * BLOCK).min(self.words.len())..], ..self }
    }

    /// Whether `count` panels of `rows` rows lie in the slice.
    fn holds(&self, count: usize, rows: usize) -> bool {
        rows == 0 || count == 0 || (count - 1) * self.stride + rows * BLOCK <= self.words.len()
    }
}

/// Panels that the next step will read: they are fetched while the last group of this product is at work.
///
/// Only a hint: the address is never read, and may be any.
#[derive(Clone, Copy)]
pub struct Next {
    start: *const u64,
    stride: usize,
    count: usize,
    rows: usize,
}

impl Next {
    /// The first `count` of `panels`, `rows` rows of each.
    pub fn new(panels: Ifma52Panels<'_>, count: usize, rows: usize) -> Next {
        Next { start: panels.words.as_ptr(), stride: panels.stride, count, rows }
    }

    /// The operand with which a product of the same shape would begin if its operand followed `panels` in memory.
    ///
    /// Planes lie one after another, so that the same worker most often multiplies this one next.
    pub fn following(panels: Ifma52Panels<'_>, grid: &BlockGrid, rows: usize) -> Next {
        let start = panels.words.as_ptr().wrapping_add(panels.words.len());
        Next { start, stride: panels.stride, count: grid.rows.min(MC_PANELS), rows: depth_of_passes(rows, KC) }
    }
}

/// The two operands of a product over `rows` rows.
#[derive(Clone, Copy)]
pub struct Ifma52Operands<'a> {
    /// Panels that give the rows of C.
    pub x: Ifma52Panels<'a>,
    /// Panels that give the columns of C.
    pub y: Ifma52Panels<'a>,
    /// Rows of both.
    pub rows: usize,
    /// The operand that is read after this product, if it is known.
    pub next: Option<Next>,
}

/// Rows of each of the fewest equal pieces of at most `most` rows, a multiple of 4; the last piece may have fewer.
pub fn depth_of_passes(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most).max(1)).next_multiple_of(4)
}

/// `C := C + X^T Y` or `C := X^T Y` on the blocks of `target`.
///
/// # Panics
/// Where the slices are shorter than the shape requires.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply(fold: &Fold, operands: &Ifma52Operands<'_>, target: &Target, c: &mut [u64], into: Store) {
    let Ifma52Operands { x, y, rows, next } = *operands;
    let Target { grid, blocks, row_window, col_window, origin } = target;
    assert!(row_window.end <= grid.rows && col_window.end <= grid.cols && blocks.end <= grid.len());
    assert!(row_window.start >= origin.0 && col_window.start >= origin.1);
    assert!(x.holds(row_window.end - origin.0, rows) && y.holds(col_window.end - origin.1, rows));
    assert!(c.len() == blocks.len() * BLOCK_WORDS);
    if rows == 0 && into == Store::Overwrite {
        for col in col_window.clone() {
            let (run, first_block) = target.run(col, row_window);
            c[first_block * BLOCK_WORDS..][..run.len() * BLOCK_WORDS].fill(0);
        }
    }
    if rows == 0 || blocks.is_empty() {
        return;
    }
    let columns = target.columns();
    let step = depth_of_passes(rows, KC);
    let group_panels = row_window.len().div_ceil(row_window.len().div_ceil(MC_PANELS).max(1)).max(1);
    for first in (0..rows).step_by(step) {
        let depth = step.min(rows - first);
        let into = if first > 0 { Store::Add } else { into };
        for group in row_window.clone().step_by(group_panels) {
            let group = group..(group + group_panels).min(row_window.end);
            let later = first + depth;
            let panels = |start: usize| start - origin.0..(start + group_panels).min(row_window.end) - origin.0;
            let mut next_group = match next {
                _ if group.end < row_window.end => PanelPrefetch::new(x, panels(group.end), first..later),
                Some(next) if later == rows => PanelPrefetch::from(next),
                _ => PanelPrefetch::new(x, panels(row_window.start), later..(later + step).min(rows)),
            };
            for col in columns.clone() {
                let (run, first_block) = target.run(col, &group);
                let column = &mut c[first_block * BLOCK_WORDS..][..run.len() * BLOCK_WORDS];
                if run.is_empty() {
                    continue;
                }
                // SAFETY: `holds` gives every panel the rows `first..first + depth`; `column` holds the blocks `run`.
                unsafe {
                    let x = x.words.as_ptr().add((run.start - origin.0) * x.stride + first * BLOCK);
                    let y = y.words.as_ptr().add((col - origin.1) * y.stride + first * BLOCK);
                    let strip =
                        PanelRun { x, x_stride: operands.x.stride, y, y_stride: operands.y.stride, rows: depth };
                    block_column(fold, strip, column, into, &mut next_group);
                }
            }
        }
    }
}

/// The panels that a run of blocks contracts.
#[derive(Clone, Copy)]
struct PanelRun {
    x: *const u64,
    x_stride: usize,
    y: *const u64,
    y_stride: usize,
    rows: usize,
}

/// Lines of panels that a later pass will need, given out piece by piece to be fetched into the second-level cache.
struct PanelPrefetch {
    start: usize,
    stride: usize,
    panels: usize,
    rows: usize,
    done_rows: usize,
}

impl PanelPrefetch {
    fn from(next: Next) -> PanelPrefetch {
        PanelPrefetch {
            start: next.start as usize,
            stride: next.stride,
            panels: next.count,
            rows: next.rows,
            done_rows: 0,
        }
    }

    fn new(x: Ifma52Panels<'_>, panels: Range<usize>, rows: Range<usize>) -> PanelPrefetch {
        let start = x.words.as_ptr() as usize + (panels.start * x.stride + rows.start * BLOCK) * 8;
        PanelPrefetch { start, stride: x.stride, panels: panels.len(), rows: rows.len(), done_rows: 0 }
    }

    /// Where the next `rows` lines lie; past the end, always the same spot.
    fn take(&mut self, rows: usize) -> *const u64 {
        let pointer = self.start as *const u64;
        if self.panels == 0 || self.rows == 0 {
            return pointer;
        }
        let at = pointer.wrapping_add(self.done_rows * BLOCK);
        self.done_rows += rows;
        if self.done_rows >= self.rows {
            self.done_rows = 0;
            self.panels -= 1;
            self.start += self.stride * 8;
        }
        at
    }
}

/// A vertical run of blocks of one block column.
///
/// # Safety
/// As [`tile`], for as many panels of X as `c` has blocks.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn block_column(fold: &Fold, strip: PanelRun, c: &mut [u64], into: Store, next_group: &mut PanelPrefetch) {
    let PanelRun { x, x_stride, y, y_stride, rows } = strip;
    for (panel, block) in c.chunks_exact_mut(BLOCK_WORDS).enumerate() {
        let next_rows = (panel * (rows / 4)).min(rows);
        let operands = RegisterTile {
            x: x.wrapping_add(panel * x_stride),
            y,
            next_x: next_group.take(rows / 4),
            next_y: y.wrapping_add(y_stride + next_rows * BLOCK),
        };
        // SAFETY: panel `panel` and its block exist, by the caller's promise.
        unsafe { tile(fold, operands, rows, block.as_mut_ptr(), into) };
    }
}

#[cfg(test)]
mod tests;
