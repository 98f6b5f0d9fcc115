//! Which tile is worked on next: the leftmost first, all updates that are ready at once.
//!
//! A piece of work is a run of tasks on one tile: its updates by the next finished tile columns and, where nothing is
//! missing, the task that finishes it. Leftmost tiles lie on the critical path; a tile whose updates are only partly
//! ready waits until nothing better is left.

use crate::runtime::{CholeskyGraph, TileId};
use std::ops::Range;

/// A run of tasks on one tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// The tile written.
    pub tile: TileId,
    /// Tile columns whose updates are applied; the tile must be loaded first where this begins at 0.
    pub updates: Range<usize>,
    /// Whether the tile is finished after them.
    pub finish: bool,
    /// Whether this is the first work on the tile.
    pub first: bool,
}

#[derive(Clone, Copy, Default)]
struct State {
    applied: usize,
    ready: usize,
    begun: bool,
    busy: bool,
    finished: bool,
}

/// What is done, in flight and ready.
pub struct Scheduler {
    graph: CholeskyGraph,
    states: Vec<State>,
    /// Tile columns before this one are finished.
    first_col: usize,
    in_flight: usize,
}

impl Scheduler {
    /// Nothing done.
    pub fn new(graph: CholeskyGraph) -> Scheduler {
        Scheduler { graph, states: vec![State::default(); graph.tile_count()], first_col: 0, in_flight: 0 }
    }

    /// Whether all tiles are finished.
    pub fn is_complete(&self) -> bool {
        self.first_col == self.graph.tiles
    }

    /// Pieces of work handed out and not yet done.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Takes in that `work` is done.
    pub fn done(&mut self, work: &Work) {
        let index = self.graph.index(work.tile);
        let state = &mut self.states[index];
        assert!(state.busy, "{work:?} was not handed out");
        (state.busy, state.applied, state.finished) = (false, work.updates.end, work.finish);
        self.in_flight -= 1;
        while self.first_col < self.graph.tiles && self.column_is_finished(self.first_col) {
            self.first_col += 1;
        }
    }

    /// The next piece of work, or `None` until something in flight is done.
    pub fn poll(&mut self) -> Option<Work> {
        let tiles = self.graph.tiles;
        let mut partial = None;
        for col in self.first_col..tiles {
            for row in col..tiles {
                let tile = TileId { row, col };
                match self.offer(tile) {
                    Some(work) if work.updates.end == col => return Some(self.hand_out(work)),
                    Some(work) if partial.is_none() => partial = Some(work),
                    _ => {}
                }
            }
        }
        partial.map(|work| self.hand_out(work))
    }

    /// What could be done on `tile` now.
    fn offer(&mut self, tile: TileId) -> Option<Work> {
        let index = self.graph.index(tile);
        let state = self.states[index];
        if state.busy || state.finished {
            return None;
        }
        let mut ready = state.ready;
        while ready < tile.col && self.is_finished(tile.row, ready) && self.is_finished(tile.col, ready) {
            ready += 1;
        }
        self.states[index].ready = ready;
        let finish = ready == tile.col && (tile.row == tile.col || self.is_finished(tile.col, tile.col));
        let work = Work { tile, updates: state.applied..ready, finish, first: !state.begun };
        (finish || ready > state.applied).then_some(work)
    }

    fn hand_out(&mut self, work: Work) -> Work {
        let index = self.graph.index(work.tile);
        (self.states[index].busy, self.states[index].begun) = (true, true);
        self.in_flight += 1;
        work
    }

    fn is_finished(&self, row: usize, col: usize) -> bool {
        self.states[self.graph.index(TileId { row, col })].finished
    }

    fn column_is_finished(&self, col: usize) -> bool {
        (col..self.graph.tiles).all(|row| self.is_finished(row, col))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Task;
    use std::collections::HashSet;

    /// Runs the scheduler with up to `workers` pieces in flight, finished in an order drawn from `seed`.
    fn run(tiles: usize, workers: usize, mut seed: u64) -> Vec<Task> {
        let graph = CholeskyGraph { tiles };
        let mut scheduler = Scheduler::new(graph);
        let (mut flying, mut order, mut finished) = (Vec::<Work>::new(), Vec::new(), HashSet::new());
        while !scheduler.is_complete() {
            while flying.len() < workers {
                let Some(work) = scheduler.poll() else { break };
                assert!(flying.iter().all(|other| other.tile != work.tile));
                let tasks = work.updates.clone().map(|k| graph.update(work.tile, k));
                let tasks = tasks.chain(work.finish.then(|| graph.finish(work.tile))).collect::<Vec<_>>();
                for &task in &tasks {
                    assert!(graph.inputs(task).iter().all(|tile| finished.contains(tile)), "{task:?} is not ready");
                }
                order.extend(tasks);
                flying.push(work);
            }
            assert!(!flying.is_empty(), "nothing in flight and nothing ready");
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let work = flying.swap_remove((seed >> 33) as usize % flying.len());
            if work.finish {
                finished.insert(work.tile);
            }
            scheduler.done(&work);
        }
        order
    }

    #[test]
    fn every_task_is_handed_out_once_when_it_is_ready() {
        for tiles in 0..8 {
            for workers in 1..6 {
                for seed in 0..20 {
                    let order = run(tiles, workers, seed);
                    let all = CholeskyGraph { tiles }.tasks().collect::<HashSet<_>>();
                    assert_eq!(order.len(), all.len(), "{tiles} tiles, {workers} workers, seed {seed}");
                    assert_eq!(order.into_iter().collect::<HashSet<_>>(), all);
                }
            }
        }
    }

    #[test]
    fn one_worker_goes_column_by_column() {
        let order = run(3, 1, 0);
        assert_eq!(order, CholeskyGraph { tiles: 3 }.tasks().collect::<Vec<_>>());
    }
}
