//! The ranks of a grid that read a tile of the factorisation, and the tiles that a rank needs from others.

use crate::tile::{RankGrid, RankPlace, TileId, count_in, first_from};

impl RankGrid {
    /// The ranks other than its owner that read a finished tile of `tiles x tiles`, each once: along its row from
    /// the nearest column on, then down its column.
    pub fn clients(&self, tiles: usize, tile: TileId) -> Vec<u32> {
        let RankGrid { rows, cols } = self.counted();
        let TileId { row, col } = tile;
        let (grid_row, own_col) = (row % rows, col % cols);
        let owner = grid_row * cols + own_col;
        let mut clients = Vec::new();
        if row > col {
            // Updates of (row, j), col < j <= row.
            let along = (col + 1..=row).take(cols).map(|j| grid_row * cols + j % cols);
            clients.extend(along.filter(|&rank| rank != owner).map(|rank| rank as u32));
        }
        // Updates of (i, row), or the column below a diagonal tile.
        let reader_col = if row > col { row } else { col } % cols;
        let met = |rank: usize| row > col && rank == grid_row * cols + reader_col;
        let down = (row + 1..tiles).take(rows).map(|i| i % rows * cols + reader_col);
        clients.extend(down.filter(|&rank| rank != owner && !met(rank)).map(|rank| rank as u32));
        clients
    }

    /// The number of tiles that a rank owns, of `tiles x tiles` tiles.
    pub fn own_tiles(&self, tiles: usize, rank: usize) -> usize {
        let RankGrid { rows, cols } = self.counted();
        let RankPlace { row: grid_row, col: grid_col } = self.place(rank);
        (grid_col..tiles).step_by(cols).map(|col| count_in(col..tiles, grid_row, rows)).sum()
    }

    /// The number of tasks of a rank that read a finished tile.
    pub fn consumers(&self, tiles: usize, rank: usize, tile: TileId) -> usize {
        let RankGrid { rows, cols } = self.counted();
        let RankPlace { row: grid_row, col: grid_col } = self.place(rank);
        let TileId { row, col } = tile;
        if row == col {
            let below = || count_in(row + 1..tiles, grid_row, rows);
            return if col % cols == grid_col { below() } else { 0 };
        }
        let along = || count_in(col + 1..row + 1, grid_col, cols);
        let down = || count_in(row + 1..tiles, grid_row, rows);
        let left = if row % rows == grid_row { along() } else { 0 };
        let right = if row % cols == grid_col { down() } else { 0 };
        left + right
    }

    /// The first tile in column `col`, from row `from` on, that `rank` reads and does not own.
    pub(super) fn next_need(&self, tiles: usize, rank: usize, from: TileId) -> Option<TileId> {
        let RankGrid { rows, cols } = self.counted();
        let RankPlace { row: grid_row, col: grid_col } = self.place(rank);
        let TileId { mut row, col } = from;
        while row < tiles {
            let tile = TileId { row, col };
            if self.owner(tile) != rank && self.consumers(tiles, rank, tile) > 0 {
                return Some(tile);
            }
            let next = first_from(row + 1, grid_row, rows);
            row = next.min(first_from(row + 1, grid_col, cols));
        }
        None
    }
}
