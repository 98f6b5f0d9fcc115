//! How much work lies on the longest path from each task to the end of a tiled Cholesky factorisation.
//!
//! In units of a third of the multiply-adds of a product of tiles. Knows: the graph. Does not know: devices.

use crate::runtime::{CholeskyGraph, Task, TileId};

const POTRF: u64 = 1;
const TRSM: u64 = 3;
const SYRK: u64 = 3;
const GEMM: u64 = 6;

/// The bottom level of each task, from a table with one number per tile.
#[derive(Clone, Debug)]
pub struct BottomLevels {
    graph: CholeskyGraph,
    /// Of the task that finishes each tile.
    finish: Vec<u64>,
}

impl BottomLevels {
    /// Computes the table; the work is cubic in the number of tile rows.
    pub fn new(graph: CholeskyGraph) -> BottomLevels {
        let mut levels = BottomLevels { graph, finish: vec![0; graph.tile_count()] };
        for col in (0..graph.tiles).rev() {
            // From below the diagonal up: a tile's readers are finished in later columns.
            for row in (col..graph.tiles).rev() {
                let tile = TileId { row, col };
                let own = if row == col { POTRF } else { TRSM };
                let next = graph.successors(graph.finish(tile));
                let longest = next.into_iter().map(|task| levels.of(task)).max();
                levels.finish[graph.index(tile)] = own + longest.unwrap_or(0);
            }
        }
        levels
    }

    /// The level of a task, its own work included.
    pub fn of(&self, task: Task) -> u64 {
        let tile = self.graph.output(task);
        let finish = self.finish[self.graph.index(tile)];
        match task {
            Task::Potrf { .. } | Task::Trsm { .. } => finish,
            Task::Syrk { i, k } => (i - k) as u64 * SYRK + finish,
            Task::Gemm { j, k, .. } => (j - k) as u64 * GEMM + finish,
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
            let levels = BottomLevels::new(graph);
            for task in graph.tasks() {
                let own = match task {
                    Task::Potrf { .. } => POTRF,
                    Task::Trsm { .. } => TRSM,
                    Task::Syrk { .. } => SYRK,
                    Task::Gemm { .. } => GEMM,
                };
                let after = graph.successors(task).into_iter().map(|next| levels.of(next)).max().unwrap_or(0);
                assert_eq!(levels.of(task), own + after, "{task:?} of {tiles} tiles");
            }
        }
    }
}
