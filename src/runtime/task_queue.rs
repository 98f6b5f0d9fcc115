//! Which tasks of a tiled Cholesky factorisation can run now, on the device that owns the tile they write.
//!
//! Updates of a tile are taken in the order of their columns, so that sums do not depend on the order in which tasks
//! are chosen. A task is *done* for this queue when whatever follows will find its result: with devices, that is when
//! its work is submitted. Knows: the graph, owners as numbers. Does not know: which ready task is best.

use crate::runtime::{CholeskyGraph, Task};

use crate::tile::TileId;

#[derive(Clone, Copy, Default)]
struct State {
    /// Updates done.
    applied: usize,
    /// Whether the next task on the tile was handed to the ready list.
    queued: bool,
    finished: bool,
}

/// The ready tasks of all devices.
pub struct TaskQueue {
    graph: CholeskyGraph,
    states: Vec<State>,
    owners: Vec<usize>,
    ready: Vec<Vec<Task>>,
    factors: Vec<Vec<usize>>,
    unfinished: Vec<usize>,
}

impl TaskQueue {
    /// Nothing done; `owner` names the device of each tile, below `devices`.
    pub fn new(graph: CholeskyGraph, devices: usize, owner: impl Fn(TileId) -> usize) -> TaskQueue {
        let mut owners = vec![0; graph.tile_count()];
        let mut unfinished = vec![0; devices];
        for tile in graph.all_tiles() {
            let device = owner(tile);
            owners[graph.index(tile)] = device;
            unfinished[device] += 1;
        }
        let states = vec![State::default(); graph.tile_count()];
        let (ready, factors) = (vec![Vec::new(); devices], vec![Vec::new(); devices]);
        let mut queue = TaskQueue { graph, states, owners, ready, factors, unfinished };
        if graph.tiles > 0 {
            queue.offer(Task::Potrf { k: 0 });
        }
        queue
    }

    /// The graph.
    pub fn graph(&self) -> CholeskyGraph {
        self.graph
    }

    /// Ready tasks of a device, but for factors of diagonal tiles, in the order in which they became ready.
    pub fn ready(&self, device: usize) -> &[Task] {
        &self.ready[device]
    }

    /// Takes the task at this place of [`TaskQueue::ready`].
    pub fn take(&mut self, device: usize, index: usize) -> Task {
        self.ready[device].remove(index)
    }

    /// Takes a diagonal tile of a device that can be factored.
    pub fn take_factor(&mut self, device: usize) -> Option<usize> {
        self.factors[device].pop()
    }

    /// Whether all tiles of a device are finished.
    pub fn is_complete(&self, device: usize) -> bool {
        self.unfinished[device] == 0
    }

    /// Device of a tile.
    pub fn owner(&self, tile: TileId) -> usize {
        self.owners[self.graph.index(tile)]
    }

    /// Whether a device other than its owner will read a finished tile.
    pub fn is_read_elsewhere(&self, tile: TileId) -> bool {
        let owner = self.owner(tile);
        let readers = self.graph.successors(self.graph.finish(tile));
        readers.into_iter().any(|task| self.owner(self.graph.output(task)) != owner)
    }

    /// Takes in that a task is done: the tasks that waited for it alone become ready.
    pub fn done(&mut self, task: Task) {
        let tile = self.graph.output(task);
        let index = self.graph.index(tile);
        let state = &mut self.states[index];
        assert!(state.queued && !state.finished, "{task:?} was not handed out");
        state.queued = false;
        if task == self.graph.finish(tile) {
            state.finished = true;
            self.unfinished[self.owners[index]] -= 1;
        } else {
            state.applied += 1;
        }
        for next in self.graph.successors(task) {
            self.offer(next);
        }
    }

    /// Puts a task into its ready list, if nothing before it is missing.
    fn offer(&mut self, task: Task) {
        let tile = self.graph.output(task);
        let index = self.graph.index(tile);
        let state = self.states[index];
        let step = match task {
            Task::Potrf { k } | Task::Trsm { k, .. } | Task::Syrk { k, .. } | Task::Gemm { k, .. } => k,
        };
        let missing = |input: &TileId| !self.states[self.graph.index(*input)].finished;
        if state.queued || state.applied != step || self.graph.inputs(task).iter().any(missing) {
            return;
        }
        self.states[index].queued = true;
        let device = self.owners[index];
        match task {
            Task::Potrf { k } => self.factors[device].push(k),
            _ => self.ready[device].push(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_task_comes_once_and_after_all_before_it() {
        for tiles in 0..9usize {
            for devices in 1..4 {
                for seed in 0..10usize {
                    let graph = CholeskyGraph { tiles };
                    let mut queue = TaskQueue::new(graph, devices, |tile| (tile.row + 2 * tile.col) % devices);
                    let (mut done, mut draw) = (HashSet::new(), seed);
                    while (0..devices).any(|device| !queue.is_complete(device)) {
                        draw = draw.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                        let device = (draw >> 7) % devices;
                        let factor = queue.take_factor(device).map(|k| Task::Potrf { k });
                        let count = queue.ready(device).len();
                        let other = || (count > 0).then(|| (draw >> 9) % count);
                        let task = match factor {
                            Some(task) => task,
                            None => match other() {
                                Some(at) => queue.take(device, at),
                                None => continue,
                            },
                        };
                        assert_eq!(queue.owner(graph.output(task)), device);
                        let before = graph.predecessors(task);
                        assert!(before.iter().all(|last| done.contains(last)), "{task:?} is not ready");
                        assert!(done.insert(task), "{task:?} came twice");
                        queue.done(task);
                    }
                    assert_eq!(done, graph.tasks().collect::<HashSet<_>>(), "{tiles} tiles, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn a_tile_is_read_elsewhere_where_its_readers_are_owned_elsewhere() {
        let queue = TaskQueue::new(CholeskyGraph { tiles: 3 }, 2, |tile| tile.col % 2);
        assert!(queue.is_read_elsewhere(TileId { row: 1, col: 0 }));
        assert!(!queue.is_read_elsewhere(TileId { row: 0, col: 0 }), "its readers are in its column");
        assert!(!queue.is_read_elsewhere(TileId { row: 2, col: 2 }), "nobody reads the last tile");
    }
}
