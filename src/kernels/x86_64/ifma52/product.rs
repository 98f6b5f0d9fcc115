//! Classical plane products: cache blocking around the register tile.
//!
//! Loop order: chunks of rows (K), then groups of X panels that stay in the second-level cache, then columns of
//! blocks, whose panel of Y stays in the first-level cache while the group's panels stream past it.

use super::micro::{Fold, TILE_COLUMNS, TILE_PANELS, Tile, tile};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// Rows of one pass over the operands: the accumulators are folded once per pass.
pub const KC: usize = 512;

/// Panels of X in one group.
const MC_PANELS: usize = 24;

/// Operand planes and the part of the result to compute.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// Panels of X, `panel_words` apart.
    pub x: &'a [u64],
    /// Panels of Y, `panel_words` apart.
    pub y: &'a [u64],
    /// Words from one panel to the next.
    pub panel_words: usize,
    /// Rows of both.
    pub rows: usize,
    /// Blocks of the result.
    pub grid: BlockGrid,
}

/// `C := C + X^T Y` (or `:=` when `accumulate` is false) on the linear block range `blocks`.
///
/// # Panics
/// Where the slices are shorter than the shape says.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply(fold: &Fold, operands: &Operands<'_>, blocks: Range<usize>, c: &mut [u64], accumulate: bool) {
    let Operands { x, y, panel_words, rows, grid } = *operands;
    assert!(rows * BLOCK <= panel_words && panel_words.is_multiple_of(BLOCK));
    assert!(grid.rows * panel_words <= x.len() && grid.cols * panel_words <= y.len());
    assert!(c.len() == blocks.len() * BLOCK_WORDS && blocks.end <= grid.len());
    if blocks.is_empty() {
        return;
    }
    if rows == 0 {
        if !accumulate {
            c.fill(0);
        }
        return;
    }
    let columns = grid.column_of(blocks.start)..grid.column_of(blocks.end - 1) + 1;
    for first in (0..rows).step_by(KC) {
        let depth = KC.min(rows - first);
        let keep = accumulate || first > 0;
        for group in (0..grid.rows).step_by(MC_PANELS) {
            let group_end = (group + MC_PANELS).min(grid.rows);
            let mut next_group = if group_end < grid.rows {
                Ahead::new(x, panel_words, group_end..(group_end + MC_PANELS).min(grid.rows), first..first + depth)
            } else {
                let later = (first + depth).min(rows)..(first + depth + KC).min(rows);
                Ahead::new(x, panel_words, 0..MC_PANELS.min(grid.rows), later)
            };
            for col in columns.clone() {
                let present = grid.rows_in(col, &blocks);
                let (start, end) = (present.start.max(group), present.end.min(group_end));
                if start >= end {
                    continue;
                }
                let offset = (grid.column_start(col) + start - grid.first_row(col) - blocks.start) * BLOCK_WORDS;
                let column = &mut c[offset..offset + (end - start) * BLOCK_WORDS];
                // SAFETY: the asserts above give every panel `panel_words` words from its start, rows `first..first +
                // depth` lie inside, `column` holds the blocks `start..end` of column `col`.
                unsafe {
                    let x = x.as_ptr().add(start * panel_words + first * BLOCK);
                    let y = y.as_ptr().add(col * panel_words + first * BLOCK);
                    block_column(fold, Panels { x, panel_words, y, rows: depth }, column, keep, &mut next_group);
                }
            }
        }
    }
}

/// The panels that a run of blocks contracts.
#[derive(Clone, Copy)]
struct Panels {
    x: *const u64,
    panel_words: usize,
    y: *const u64,
    rows: usize,
}

/// Lines of panels that a later pass will need, handed out piece by piece to be fetched into the second-level cache.
struct Ahead {
    start: usize,
    panel_words: usize,
    panels: usize,
    rows: usize,
    done_rows: usize,
}

impl Ahead {
    fn new(x: &[u64], panel_words: usize, panels: Range<usize>, rows: Range<usize>) -> Ahead {
        let start = x.as_ptr() as usize + (panels.start * panel_words + rows.start * BLOCK) * 8;
        Ahead { start, panel_words, panels: panels.len(), rows: rows.len(), done_rows: 0 }
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
            self.start += self.panel_words * 8;
        }
        at
    }
}

/// A vertical run of blocks of one block column.
///
/// # Safety
/// As [`tile`], for as many panels of X as `c` has blocks and all 8 columns of Y.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn block_column(fold: &Fold, panels: Panels, c: &mut [u64], accumulate: bool, next_group: &mut Ahead) {
    let Panels { x, panel_words, y, rows } = panels;
    let count = c.len() / BLOCK_WORDS;
    let mut next_rows = 0;
    for half in 0..BLOCK / TILE_COLUMNS {
        let mut panel = 0;
        while panel < count {
            let width = match count - panel {
                1 => 1,
                2 | 4 => 2, // 2 + 2 keeps more sums in flight than 3 + 1
                _ => TILE_PANELS,
            };
            let part = Tile {
                x: x.wrapping_add(panel * panel_words),
                panel_words,
                y: y.wrapping_add(half * TILE_COLUMNS),
                next_x: next_group.take(rows / 4),
                next_y: y.wrapping_add(panel_words + next_rows.min(rows) * BLOCK),
            };
            next_rows += rows / 4;
            // SAFETY: panels `panel..panel + width` and their blocks exist, by the caller's promise.
            unsafe {
                let at = c.as_mut_ptr().add(panel * BLOCK_WORDS + half * TILE_COLUMNS * BLOCK);
                match width {
                    1 => tile::<1>(fold, part, rows, at, accumulate),
                    2 => tile::<2>(fold, part, rows, at, accumulate),
                    _ => tile::<TILE_PANELS>(fold, part, rows, at, accumulate),
                }
            }
            panel += width;
        }
    }
}
