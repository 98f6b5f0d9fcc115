//! Which tiles are worked on next: the leftmost first, all updates that are ready at once.
//!
//! A piece of work is the same run of tasks on each tile of a strip, neighbours in a tile column: their updates by the
//! next finished tile columns and, where nothing is missing, the tasks that finish them. A strip reads the operands
//! that its tiles share once. Leftmost tiles lie on the critical path; tiles whose updates are only partly ready wait
//! until nothing better is left.

use crate::runtime::CholeskyGraph;

use crate::tile::TileId;
use std::ops::Range;

/// Most tiles of a strip: reading what they share costs little beside them, and progress is reported between strips.
const STRIP_TILES: usize = 8;

/// A run of tasks on each tile of a strip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// Rows of the tiles written.
    pub rows: Range<usize>,
    /// Column of the tiles written.
    pub col: usize,
    /// Tile columns whose updates are applied.
    pub updates: Range<usize>,
    /// Whether the tiles are finished after them, from the first row to the last.
    pub finish: bool,
    /// Whether this is the first work on the tiles, so that they must be loaded.
    pub first: bool,
}

impl Work {
    /// The tiles written.
    pub fn tiles(&self) -> impl Iterator<Item = TileId> + use<> {
        let col = self.col;
        self.rows.clone().map(move |row| TileId { row, col })
    }
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
    workers: usize,
    at_once: bool,
    states: Vec<State>,
    /// Tile columns before this one are finished.
    first_col: usize,
    in_flight: usize,
}

impl Scheduler {
    /// Nothing done; the work is cut for so many workers.
    pub fn new(graph: CholeskyGraph, workers: usize) -> Scheduler {
        let states = vec![State::default(); graph.tile_count()];
        Scheduler { graph, workers, at_once: false, states, first_col: 0, in_flight: 0 }
    }

    /// The same, but all updates of a tile are one piece of work.
    pub fn with_updates_at_once(self) -> Scheduler {
        Scheduler { at_once: true, ..self }
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
        for tile in work.tiles() {
            let index = self.graph.index(tile);
            let state = &mut self.states[index];
            assert!(state.busy, "{work:?} was not handed out");
            (state.busy, state.applied, state.finished) = (false, work.updates.end, work.finish);
        }
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
                match self.offer(TileId { row, col }, false) {
                    Some(work) if work.updates.end == col => return Some(self.hand_out(work)),
                    Some(work) if partial.is_none() && !self.at_once => partial = Some(work),
                    _ => {}
                }
            }
        }
        partial.map(|work| self.hand_out(work))
    }

    /// What could be done on `tile` now, or once the tile on its diagonal is finished.
    fn offer(&mut self, tile: TileId, below_finished: bool) -> Option<Work> {
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
        let on_diagonal = tile.row == tile.col;
        let finish = ready == tile.col && (on_diagonal || below_finished || self.is_finished(tile.col, tile.col));
        let (rows, first) = (tile.row..tile.row + 1, !state.begun);
        let work = Work { rows, col: tile.col, updates: state.applied..ready, finish, first };
        (finish || ready > state.applied).then_some(work)
    }

    /// Lengthens the strip by the tiles below it on which the same is to be done.
    fn hand_out(&mut self, mut work: Work) -> Work {
        let on_diagonal = work.rows.start == work.col;
        while work.rows.len() < self.longest_strip(work.col, on_diagonal) && work.rows.end < self.graph.tiles {
            let tile = TileId { row: work.rows.end, col: work.col };
            let same =
                |next: &Work| next.updates == work.updates && (next.finish, next.first) == (work.finish, work.first);
            if !self.offer(tile, on_diagonal && work.finish).is_some_and(|next| same(&next)) {
                break;
            }
            work.rows.end += 1;
        }
        for tile in work.tiles() {
            let index = self.graph.index(tile);
            (self.states[index].busy, self.states[index].begun) = (true, true);
        }
        self.in_flight += 1;
        work
    }

    /// Most tiles of a strip: several workers share a column, and wait for its diagonal tile.
    fn longest_strip(&self, col: usize, on_diagonal: bool) -> usize {
        match self.workers {
            0 | 1 => STRIP_TILES,
            _ if on_diagonal => 1,
            workers => ((self.graph.tiles - col) / (2 * workers)).clamp(1, STRIP_TILES),
        }
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

    /// The tasks of a piece of work, in order.
    fn tasks(graph: CholeskyGraph, work: &Work) -> Vec<Task> {
        let updates = work.tiles().flat_map(|tile| work.updates.clone().map(move |k| graph.update(tile, k)));
        updates.chain(work.tiles().filter(|_| work.finish).map(|tile| graph.finish(tile))).collect()
    }

    /// Runs the scheduler with up to `workers` pieces in flight, finished in an order drawn from `seed`.
    fn run(tiles: usize, workers: usize, mut seed: u64) -> Vec<Task> {
        let graph = CholeskyGraph { tiles };
        let mut scheduler = Scheduler::new(graph, workers);
        if seed % 2 == 1 {
            scheduler = scheduler.with_updates_at_once();
        }
        let (mut flying, mut order, mut finished) = (Vec::<Work>::new(), Vec::new(), HashSet::new());
        while !scheduler.is_complete() {
            while flying.len() < workers {
                let Some(work) = scheduler.poll() else { break };
                let apart = |other: &Work| other.tiles().all(|tile| work.tiles().all(|own| own != tile));
                assert!(flying.iter().all(apart), "{work:?} is under way");
                let mut own = HashSet::new();
                for task in tasks(graph, &work) {
                    let ready = |tile: &TileId| finished.contains(tile) || own.contains(tile);
                    assert!(graph.inputs(task).iter().all(ready), "{task:?} is not ready");
                    if task == graph.finish(graph.output(task)) {
                        own.insert(graph.output(task));
                    }
                    order.push(task);
                }
                flying.push(work);
            }
            assert!(!flying.is_empty(), "nothing in flight and nothing ready");
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let work = flying.swap_remove((seed >> 33) as usize % flying.len());
            finished.extend(work.tiles().filter(|_| work.finish));
            scheduler.done(&work);
        }
        order
    }

    #[test]
    fn every_task_is_handed_out_once_when_it_is_ready() {
        for tiles in (0..8).chain([21]) {
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
    fn one_worker_takes_strips_of_a_column_at_once() {
        let mut scheduler = Scheduler::new(CholeskyGraph { tiles: 10 }, 1);
        let mut strips = Vec::new();
        while let Some(work) = scheduler.poll() {
            assert!(work.first && work.finish && work.updates == (0..work.col));
            strips.push((work.col, work.rows.clone()));
            scheduler.done(&work);
        }
        assert_eq!(strips[..4], [(0, 0..8), (0, 8..10), (1, 1..9), (1, 9..10)]);
        assert!(scheduler.is_complete() && strips.len() == 12);
    }
}
