//! The task graph of a tiled Cholesky factorisation, by formula: nothing is stored.
//!
//! On tiles `(i, j)`, `j <= i < tiles`, of the lower triangle:
//! `Potrf(k)` factors tile `(k, k)`; `Trsm(i, k)` solves `(i, k)` with it; `Syrk(i, k)` takes `(i, k)` off `(i, i)`;
//! `Gemm(i, j, k)` takes `(i, k) (j, k)^T` off `(i, j)`. Updates of one tile are exact, so their order is free.

/// A tile by its row and column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct TileId {
    /// Tile row.
    pub row: usize,
    /// Tile column, at most the row.
    pub col: usize,
}

/// One task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Task {
    /// Factor of tile `(k, k)`.
    Potrf {
        /// Tile column.
        k: usize,
    },
    /// `(i, k) := (i, k) L_kk^-T`, `i > k`.
    Trsm {
        /// Tile row.
        i: usize,
        /// Tile column.
        k: usize,
    },
    /// `(i, i) := (i, i) - (i, k) (i, k)^T`, `i > k`.
    Syrk {
        /// Tile row.
        i: usize,
        /// Tile column contracted.
        k: usize,
    },
    /// `(i, j) := (i, j) - (i, k) (j, k)^T`, `i > j > k`.
    Gemm {
        /// Tile row.
        i: usize,
        /// Tile column.
        j: usize,
        /// Tile column contracted.
        k: usize,
    },
}

/// The graph for `tiles x tiles` tiles.
#[derive(Clone, Copy, Debug)]
pub struct CholeskyGraph {
    /// Tile rows and columns.
    pub tiles: usize,
}

impl CholeskyGraph {
    /// Tiles of the lower triangle.
    pub fn tile_count(&self) -> usize {
        self.tiles * (self.tiles + 1) / 2
    }

    /// Number of a tile, column by column.
    pub fn index(&self, tile: TileId) -> usize {
        debug_assert!(tile.col <= tile.row && tile.row < self.tiles);
        tile.col * self.tiles - tile.col * tile.col.saturating_sub(1) / 2 + tile.row - tile.col
    }

    /// The tile that a task writes.
    pub fn output(&self, task: Task) -> TileId {
        match task {
            Task::Potrf { k } => TileId { row: k, col: k },
            Task::Trsm { i, k } => TileId { row: i, col: k },
            Task::Syrk { i, .. } => TileId { row: i, col: i },
            Task::Gemm { i, j, .. } => TileId { row: i, col: j },
        }
    }

    /// The finished tiles that a task reads.
    pub fn inputs(&self, task: Task) -> Vec<TileId> {
        match task {
            Task::Potrf { .. } => Vec::new(),
            Task::Trsm { k, .. } => vec![TileId { row: k, col: k }],
            Task::Syrk { i, k } => vec![TileId { row: i, col: k }],
            Task::Gemm { i, j, k } => vec![TileId { row: i, col: k }, TileId { row: j, col: k }],
        }
    }

    /// The update of `tile` by tile column `k < tile.col`.
    pub fn update(&self, tile: TileId, k: usize) -> Task {
        match tile {
            TileId { row, col } if row == col => Task::Syrk { i: row, k },
            TileId { row, col } => Task::Gemm { i: row, j: col, k },
        }
    }

    /// The task that finishes `tile`, once its updates by all columns before it are in.
    pub fn finish(&self, tile: TileId) -> Task {
        match tile {
            TileId { row, col } if row == col => Task::Potrf { k: row },
            TileId { row, col } => Task::Trsm { i: row, k: col },
        }
    }

    /// All tasks, in an order in which they may run.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + use<> {
        let (graph, tiles) = (*self, self.tiles);
        let all = (0..tiles).flat_map(move |col| (col..tiles).map(move |row| TileId { row, col }));
        all.flat_map(move |tile| (0..tile.col).map(move |k| graph.update(tile, k)).chain([graph.finish(tile)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_task_reads_only_what_is_finished_before_it() {
        for tiles in 0..7usize {
            let graph = CholeskyGraph { tiles };
            let mut finished = HashSet::new();
            let mut kinds = [0usize; 4];
            for task in graph.tasks() {
                assert!(graph.inputs(task).iter().all(|tile| finished.contains(tile)), "{task:?}");
                assert!(!finished.contains(&graph.output(task)), "{task:?} writes a finished tile");
                match task {
                    Task::Potrf { .. } => kinds[0] += 1,
                    Task::Trsm { .. } => kinds[1] += 1,
                    Task::Syrk { .. } => kinds[2] += 1,
                    Task::Gemm { .. } => kinds[3] += 1,
                }
                if matches!(task, Task::Potrf { .. } | Task::Trsm { .. }) {
                    finished.insert(graph.output(task));
                }
            }
            let pairs = tiles * tiles.saturating_sub(1) / 2;
            let triples = pairs * tiles.saturating_sub(2) / 3;
            assert_eq!(kinds, [tiles, pairs, pairs, triples]);
            let indices = finished.iter().map(|&tile| graph.index(tile)).collect::<HashSet<_>>();
            assert!(indices.len() == graph.tile_count() && indices.iter().all(|&index| index < graph.tile_count()));
        }
    }
}
