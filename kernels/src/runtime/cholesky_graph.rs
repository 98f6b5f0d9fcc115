//! The task graph of a tiled Cholesky factorisation, by formula: nothing is stored.
//!
//! On tiles `(i, j)`, `j <= i < tiles`, of the lower triangle:
//! `Potrf(k)` factors tile `(k, k)`; `Trsm(i, k)` solves `(i, k)` with it; `Syrk(i, k)` takes `(i, k)` off `(i, i)`;
//! `Gemm(i, j, k)` takes `(i, k) (j, k)^T` off `(i, j)`. Updates of one tile are exact, so their order is free.

use crate::tile::{TileId, TileMap};

/// One task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Task {
    /// Factor of tile `(k, k)`.
    Potrf {
        /// Tile column.
        k: usize,
    },
    /// The solve `(i, k) := (i, k) L_kk^-T`, `i > k`.
    Trsm {
        /// Tile row.
        i: usize,
        /// Tile column.
        k: usize,
    },
    /// The update `(i, i) := (i, i) - (i, k) (i, k)^T`, `i > k`.
    Syrk {
        /// Tile row.
        i: usize,
        /// Tile column contracted.
        k: usize,
    },
    /// The update `(i, j) := (i, j) - (i, k) (j, k)^T`, `i > j > k`.
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

/// The position of a ready task in the order of the fewest missing tiles; the fields are compared in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MissingKey {
    /// Its tiles that are not where it would run.
    missing: usize,
    /// Column of the tile that it writes.
    col: usize,
    /// The column that it reads.
    k: usize,
    /// Row of the tile that it writes.
    row: usize,
}

impl CholeskyGraph {
    /// The graph of the lower triangle that `map` cuts into tiles.
    pub fn of(map: &TileMap) -> CholeskyGraph {
        CholeskyGraph { tiles: map.tile_rows() }
    }

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

    /// The task that finishes `tile`, after its updates by all columns before it.
    pub fn finish(&self, tile: TileId) -> Task {
        match tile {
            TileId { row, col } if row == col => Task::Potrf { k: row },
            TileId { row, col } => Task::Trsm { i: row, k: col },
        }
    }

    /// The task of `tile` that follows updates by `updates` columns.
    pub fn next_task(&self, tile: TileId, updates: usize) -> Task {
        if updates < tile.col { self.update(tile, updates) } else { self.finish(tile) }
    }

    /// Orders ready tasks by how many of their tiles are missing where they would run; of those the leftmost first.
    pub(super) fn missing_key(&self, task: Task, resident: &dyn Fn(TileId) -> bool) -> MissingKey {
        let tile = self.output(task);
        let absent = |row, col| usize::from(!resident(TileId { row, col }));
        let (inputs, k) = match task {
            Task::Gemm { i, j, k } => (absent(i, k) + absent(j, k), k),
            Task::Syrk { i, k } => (absent(i, k), k),
            Task::Trsm { k, .. } => (absent(k, k), k),
            Task::Potrf { k } => (0, k),
        };
        let missing = inputs + absent(tile.row, tile.col);
        MissingKey { missing, col: tile.col, k, row: tile.row }
    }

    /// The tasks that must be done before `task`; the updates of a tile are applied in the order of their columns.
    pub fn predecessors(&self, task: Task) -> Vec<Task> {
        let before = |tile: TileId, k: usize| (k > 0).then(|| self.update(tile, k - 1));
        let own = self.output(task);
        match task {
            Task::Potrf { k } => before(own, k).into_iter().collect(),
            Task::Trsm { k, .. } => before(own, k).into_iter().chain([Task::Potrf { k }]).collect(),
            Task::Syrk { i, k } => before(own, k).into_iter().chain([Task::Trsm { i, k }]).collect(),
            Task::Gemm { i, j, k } => {
                before(own, k).into_iter().chain([Task::Trsm { i, k }, Task::Trsm { i: j, k }]).collect()
            }
        }
    }

    /// The tasks of which `task` is a predecessor.
    pub fn successors(&self, task: Task) -> Vec<Task> {
        let after = |tile: TileId, k: usize| if k < tile.col { self.update(tile, k) } else { self.finish(tile) };
        match task {
            Task::Potrf { k } => (k + 1..self.tiles).map(|i| Task::Trsm { i, k }).collect(),
            Task::Trsm { i, k } => {
                let in_row = (k + 1..i).map(|j| Task::Gemm { i, j, k });
                let in_column = (i + 1..self.tiles).map(|row| Task::Gemm { i: row, j: i, k });
                in_row.chain([Task::Syrk { i, k }]).chain(in_column).collect()
            }
            Task::Syrk { k, .. } | Task::Gemm { k, .. } => vec![after(self.output(task), k + 1)],
        }
    }

    /// All tiles, in the order of their numbers.
    pub fn all_tiles(&self) -> impl Iterator<Item = TileId> + use<> {
        let tiles = self.tiles;
        (0..tiles).flat_map(move |col| (col..tiles).map(move |row| TileId { row, col }))
    }

    /// All tasks, in an order in which they may run.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + use<> {
        let graph = *self;
        self.all_tiles()
            .flat_map(move |tile| (0..tile.col).map(move |k| graph.update(tile, k)).chain([graph.finish(tile)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn successors_and_predecessors_are_each_other_reversed() {
        for tiles in 0..8 {
            let graph = CholeskyGraph { tiles };
            let pairs = |of: &dyn Fn(Task) -> Vec<(Task, Task)>| graph.tasks().flat_map(of).collect::<Vec<_>>();
            let forward = pairs(&|task| graph.successors(task).into_iter().map(|next| (task, next)).collect());
            let backward = pairs(&|task| graph.predecessors(task).into_iter().map(|last| (last, task)).collect());
            let (set, count) = (forward.iter().copied().collect::<HashSet<_>>(), forward.len());
            assert_eq!((set.len(), backward.len()), (count, count), "{tiles} tiles");
            assert_eq!(set, backward.into_iter().collect::<HashSet<_>>(), "{tiles} tiles");
        }
    }

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
