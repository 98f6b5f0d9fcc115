//! How much work lies on the longest path from each task to the end of a tiled Cholesky factorisation.
//!
//! In units of a third of the multiply-adds of a product of tiles, or in others that a caller gives. Depends on: the
//! graph. Independent of: devices.

use crate::runtime::{CholeskyGraph, Task};

use crate::tile::TileId;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The work of each kind of task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskWeights {
    /// Work of a diagonal tile's factor.
    pub potrf: u64,
    /// Work of a solve.
    pub trsm: u64,
    /// Work of the update of a diagonal tile.
    pub syrk: u64,
    /// Work of other updates.
    pub gemm: u64,
}

const OPERATIONS: TaskWeights = TaskWeights { potrf: 1, trsm: 3, syrk: 3, gemm: 6 };

/// The bottom level of each task, from a table with one number per tile.
#[derive(Clone, Debug)]
pub struct BottomLevels {
    graph: CholeskyGraph,
    weights: TaskWeights,
    /// Bottom level of the task that finishes each tile.
    finish: Vec<u64>,
}

/// The table made last, as long as it is in use: all ranks of a simulation share it.
static LAST: Mutex<Weak<BottomLevels>> = Mutex::new(Weak::new());

impl BottomLevels {
    /// Computes the table; the work is quadratic in the number of tile rows.
    pub fn new(graph: CholeskyGraph) -> BottomLevels {
        BottomLevels::weighted(graph, OPERATIONS)
    }

    /// The table for other units.
    pub fn weighted(graph: CholeskyGraph, weights: TaskWeights) -> BottomLevels {
        let (tiles, TaskWeights { potrf, trsm, syrk, gemm }) = (graph.tiles, weights);
        let mut levels = BottomLevels { graph, weights, finish: vec![0; graph.tile_count()] };
        // Over the columns done: the longest way on along each row, its own columns counted; below each diagonal tile.
        let (mut along, mut below) = (vec![0; tiles], vec![0; tiles]);
        for col in (0..tiles).rev() {
            for row in (col + 1..tiles).rev() {
                let (steps, diagonal) = ((row - col) as u64, levels.finish[graph.index(TileId { row, col: row })]);
                let down = if row + 1 < tiles { steps * gemm + below[row] } else { 0 };
                let across = u64::saturating_sub(along[row], col as u64 * gemm);
                let level = trsm + across.max(steps * syrk + diagonal).max(down);
                levels.finish[graph.index(TileId { row, col })] = level;
                along[row] = along[row].max(col as u64 * gemm + level);
                below[col] = below[col].max(level);
            }
            levels.finish[graph.index(TileId { row: col, col })] = potrf + below[col];
        }
        levels
    }

    /// The table, shared with its other users.
    pub fn shared(graph: CholeskyGraph) -> Arc<BottomLevels> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.upgrade().filter(|known| known.graph.tiles == graph.tiles);
        known.unwrap_or_else(|| {
            let made = Arc::new(BottomLevels::new(graph));
            *last = Arc::downgrade(&made);
            made
        })
    }

    /// The level of a task, its own work included.
    pub fn of(&self, task: Task) -> u64 {
        let tile = self.graph.output(task);
        let finish = self.finish[self.graph.index(tile)];
        match task {
            Task::Potrf { .. } | Task::Trsm { .. } => finish,
            Task::Syrk { i, k } => (i - k) as u64 * self.weights.syrk + finish,
            Task::Gemm { j, k, .. } => (j - k) as u64 * self.weights.gemm + finish,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_longest_path() {
        for tiles in 0..7 {
            let graph = CholeskyGraph { tiles };
            let weights = [OPERATIONS, TaskWeights { potrf: 70, trsm: 9, syrk: 8, gemm: 5 }][tiles % 2];
            let levels = BottomLevels::weighted(graph, weights);
            for task in graph.tasks() {
                let own = match task {
                    Task::Potrf { .. } => weights.potrf,
                    Task::Trsm { .. } => weights.trsm,
                    Task::Syrk { .. } => weights.syrk,
                    Task::Gemm { .. } => weights.gemm,
                };
                let after = graph.successors(task).into_iter().map(|next| levels.of(next)).max().unwrap_or(0);
                assert_eq!(levels.of(task), own + after, "{task:?} of {tiles} tiles");
            }
        }
    }
}
