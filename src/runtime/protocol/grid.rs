//! Who owns a tile, who reads it, what a process needs: a 2D block-cyclic distribution of the lower triangle.

use super::progress::MOST_SLOTS;
use crate::error::{Error, Result};
use crate::runtime::TileId;
use serde::Serialize;

/// Processes in rows and columns, numbered row by row: tile `(i, j)` belongs to process
/// `(i mod rows, j mod cols)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ProcessGrid {
    /// Rows of processes.
    pub rows: usize,
    /// Columns of processes.
    pub cols: usize,
}

impl ProcessGrid {
    /// Number of processes.
    pub fn size(&self) -> usize {
        self.rows * self.cols
    }

    /// The owner of a tile.
    pub fn owner(&self, tile: TileId) -> usize {
        tile.row % self.rows * self.cols + tile.col % self.cols
    }

    /// Place of a process.
    pub fn place(&self, process: usize) -> (usize, usize) {
        (process / self.cols, process % self.cols)
    }

    /// The processes other than its owner that read a finished tile of `tiles x tiles`, each once: along its row from
    /// the nearest column on, then down its column.
    pub fn clients(&self, tiles: usize, tile: TileId) -> Vec<u32> {
        let TileId { row, col } = tile;
        let (grid_row, own_col) = (row % self.rows, col % self.cols);
        let owner = grid_row * self.cols + own_col;
        let mut clients = Vec::new();
        if row > col {
            // Updates of (row, j), col < j <= row.
            let along = (col + 1..=row).take(self.cols).map(|j| grid_row * self.cols + j % self.cols);
            clients.extend(along.filter(|&process| process != owner).map(|process| process as u32));
        }
        // Updates of (i, row), or the column below a diagonal tile.
        let reader_col = if row > col { row } else { col } % self.cols;
        let met = |process: usize| row > col && process == grid_row * self.cols + reader_col;
        let down = (row + 1..tiles).take(self.rows).map(|i| i % self.rows * self.cols + reader_col);
        clients.extend(down.filter(|&process| process != owner && !met(process)).map(|process| process as u32));
        clients
    }

    /// The first row from `from` on that is `residue` modulo `modulus`.
    pub(super) fn next_of(from: usize, residue: usize, modulus: usize) -> usize {
        from + (residue + modulus - from % modulus) % modulus
    }

    /// How many rows of `range` are `residue` modulo `modulus`.
    pub(super) fn count_of(range: std::ops::Range<usize>, residue: usize, modulus: usize) -> usize {
        let first = ProcessGrid::next_of(range.start, residue, modulus);
        if first >= range.end { 0 } else { (range.end - first).div_ceil(modulus) }
    }

    /// How many of `tiles x tiles` tiles a process owns.
    pub fn own_tiles(&self, tiles: usize, process: usize) -> usize {
        let (grid_row, grid_col) = self.place(process);
        (grid_col..tiles).step_by(self.cols).map(|col| ProcessGrid::count_of(col..tiles, grid_row, self.rows)).sum()
    }

    /// How many tasks of a process read a finished tile.
    pub fn consumers(&self, tiles: usize, process: usize, tile: TileId) -> usize {
        let ((grid_row, grid_col), TileId { row, col }) = (self.place(process), tile);
        if row == col {
            let below = || ProcessGrid::count_of(row + 1..tiles, grid_row, self.rows);
            return if col % self.cols == grid_col { below() } else { 0 };
        }
        let along = || ProcessGrid::count_of(col + 1..row + 1, grid_col, self.cols);
        let down = || ProcessGrid::count_of(row + 1..tiles, grid_row, self.rows);
        let left = if row % self.rows == grid_row { along() } else { 0 };
        let right = if row % self.cols == grid_col { down() } else { 0 };
        left + right
    }

    /// The first tile in column `col`, from row `from` on, that `process` reads and does not own.
    pub(super) fn next_need(&self, tiles: usize, process: usize, from: TileId) -> Option<TileId> {
        let (grid_row, grid_col) = self.place(process);
        let TileId { mut row, col } = from;
        while row < tiles {
            let tile = TileId { row, col };
            if self.owner(tile) != process && self.consumers(tiles, process, tile) > 0 {
                return Some(tile);
            }
            let next = ProcessGrid::next_of(row + 1, grid_row, self.rows);
            row = next.min(ProcessGrid::next_of(row + 1, grid_col, self.cols));
        }
        None
    }

    /// The fewest slots with which every process comes to an end: room for all tiles of one column that a process
    /// reads and does not own.
    pub fn least_slots(&self, tiles: usize) -> usize {
        // What a process reads of a column depends on whether the column is one of its own, and else shrinks with each.
        let columns = (0..tiles.min(self.cols + 2)).collect::<Vec<_>>();
        let count = |process: usize, col: usize| {
            let mut next = self.next_need(tiles, process, TileId { row: col, col });
            let mut count = 0;
            while let Some(tile) = next {
                count += 1;
                next = self.next_need(tiles, process, TileId { row: tile.row + 1, ..tile });
            }
            count
        };
        let of = |process: usize| columns.iter().map(|&col| count(process, col)).max().unwrap_or(0);
        (0..self.size()).map(of).max().unwrap_or(0)
    }

    /// As many slots as there is any use for, at most `slots`: no more than tiles, and than numbers for them.
    pub fn useful_slots(&self, tiles: usize, slots: usize) -> usize {
        slots.min(tiles.saturating_mul(tiles + 1) / 2).min(MOST_SLOTS)
    }

    /// Refuses a grid of no processes, or with fewer slots than [`ProcessGrid::least_slots`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the numbers.
    pub fn check(&self, tiles: usize, slots: usize) -> Result<()> {
        if self.rows == 0 || self.cols == 0 {
            return Err(Error::InvalidArgument(format!("a grid of {} x {} processes", self.rows, self.cols)));
        }
        let least = self.least_slots(tiles);
        if self.useful_slots(tiles, slots) < least {
            let (rows, cols) = (self.rows, self.cols);
            let message = format!(
                "{slots} slots for tiles of other processes: {tiles} x {tiles} tiles on a grid of {rows} x {cols} \
                 need at least {least}"
            );
            return Err(Error::InvalidArgument(message));
        }
        Ok(())
    }
}
