//! What one device does next in a tiled Cholesky factorisation: which task, which tiles must move before it.
//!
//! Sans-I/O: [`Conductor::poll`] answers a [`Step`], the driver carries it out and says so. With one device the steps
//! depend on the choices alone, so bytes can be counted without a device ([`simulate`]). Diagonal tiles are factored on
//! the host: a tile that is ready for it is fetched at once, but the host turns to it only when `lookahead` more tasks
//! are under way, which the device works on meanwhile.
//! Knows: the graph, the cache, the policy. Does not know: streams, memory, numbers.

use crate::runtime::{
    Access, Admission, CacheCounters, CholeskyGraph, Chooser, Lease, Limits, Move, Policy, Task, TaskQueue, TileCache,
    TileId, TileState, TileUse, Victim,
};
use std::collections::VecDeque;

/// What the driver is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Carry out the moves, then the task on the device, then write back what it finished; then call
    /// [`Conductor::done`].
    Run {
        /// TRSM, SYRK or GEMM.
        task: Task,
        /// Moves before it.
        before: Vec<Move<TileId>>,
        /// Moves after it.
        after: Vec<Move<TileId>>,
    },
    /// Carry out the moves: a diagonal tile goes home to be factored later.
    Fetch(Vec<Move<TileId>>),
    /// Factor the diagonal tile `(k, k)` at its home, then call [`Conductor::done`].
    Factor {
        /// Its row and column.
        k: usize,
    },
    /// Nothing can be done until another device is further.
    Wait,
    /// All tiles of this device are finished and at home.
    Finished,
}

/// Choices of a conductor.
#[derive(Clone, Copy, Debug)]
pub struct ConductorOptions {
    /// Which device of the queue.
    pub device: usize,
    /// Which task next.
    pub policy: Policy,
    /// Which tile leaves.
    pub victim: Victim,
    /// Tiles that the device's memory has room for.
    pub room_tiles: usize,
    /// Tasks submitted between the last update of a diagonal tile and its factorisation on the host.
    pub lookahead: usize,
}

/// The decisions for one device.
pub struct Conductor<B> {
    options: ConductorOptions,
    cache: TileCache<TileId>,
    chooser: Chooser,
    tile_bytes: B,
    lease: Option<Lease<TileId>>,
    /// Diagonal tiles to be factored, and how many tasks had been run when they were fetched.
    factors: VecDeque<(usize, usize)>,
    run_count: usize,
}

/// The fewest tiles that a device must have room for: the operands of one task.
pub fn least_room_tiles(graph: CholeskyGraph) -> usize {
    match graph.tiles {
        0 | 1 => 0,
        2 => 2,
        _ => 3,
    }
}

impl<B: Fn(TileId) -> u64> Conductor<B> {
    /// Begins with an empty memory of at least [`least_room_tiles`] tiles.
    pub fn new(options: ConductorOptions, queue: &TaskQueue, tile_bytes: B) -> Conductor<B> {
        let graph = queue.graph();
        assert!(options.room_tiles >= least_room_tiles(graph), "room for {} tiles", options.room_tiles);
        let owns = |tile| queue.owner(tile) == options.device;
        let chooser = Chooser::new(options.policy, graph, options.room_tiles, owns);
        let cache = TileCache::new(Limits { bytes: u64::MAX, tiles: options.room_tiles }, options.victim);
        Conductor { options, cache, chooser, tile_bytes, lease: None, factors: VecDeque::new(), run_count: 0 }
    }

    /// The bytes that the steps so far move.
    pub fn counters(&self) -> CacheCounters {
        self.cache.counters()
    }

    /// The next step.
    pub fn poll(&mut self, queue: &mut TaskQueue) -> Step {
        assert!(self.lease.is_none(), "the last task is not done");
        let device = self.options.device;
        if let Some(k) = queue.take_factor(device) {
            let tile = TileId { row: k, col: k };
            self.factors.push_back((k, self.run_count));
            let moves = self.cache.write_back(tile).into_iter().chain(self.cache.discard(tile));
            return Step::Fetch(moves.collect());
        }
        let ready = queue.ready(device);
        let due = |fetched: usize| ready.is_empty() || self.run_count >= fetched + self.options.lookahead;
        if let Some(&(k, fetched)) = self.factors.front()
            && due(fetched)
        {
            self.factors.pop_front();
            return Step::Factor { k };
        }
        if ready.is_empty() {
            return if queue.is_complete(device) { Step::Finished } else { Step::Wait };
        }
        let cache = &self.cache;
        let place = self.chooser.choose(ready, |tile| cache.state(tile) != TileState::Invalid);
        self.run(queue, place)
    }

    fn run(&mut self, queue: &mut TaskQueue, place: usize) -> Step {
        let (graph, task) = (queue.graph(), queue.take(self.options.device, place));
        let one = |tile, access| TileUse { tile, bytes: (self.tile_bytes)(tile), access };
        let mut uses = graph.inputs(task).into_iter().map(|tile| one(tile, Access::Read)).collect::<Vec<_>>();
        let tile = graph.output(task);
        uses.push(one(tile, Access::Update));
        let Admission::Granted { moves: before, lease } = self.cache.acquire(&uses) else {
            panic!("room for one task is there, and no other holds anything");
        };
        self.lease = Some(lease);
        self.run_count += 1;
        // A finished tile goes home once, now or later; now it may overlap with what follows.
        let after = (task == graph.finish(tile)).then(|| self.cache.write_back(tile)).flatten();
        Step::Run { task, before, after: after.into_iter().collect() }
    }

    /// Takes in that a task has been run, or submitted so that all that is submitted later finds its result.
    pub fn done(&mut self, queue: &mut TaskQueue, task: Task) {
        if let Some(lease) = self.lease.take() {
            self.cache.release(lease);
        }
        queue.done(task);
    }
}

/// The bytes that one device moves for tiles of `tile_bytes` bytes each.
pub fn simulate(graph: CholeskyGraph, options: ConductorOptions, tile_bytes: u64) -> CacheCounters {
    let mut queue = TaskQueue::new(graph, 1, |_| 0);
    let mut conductor = Conductor::new(ConductorOptions { device: 0, ..options }, &queue, |_| tile_bytes);
    loop {
        match conductor.poll(&mut queue) {
            Step::Run { task, .. } => conductor.done(&mut queue, task),
            Step::Fetch(_) => {}
            Step::Factor { k } => conductor.done(&mut queue, Task::Potrf { k }),
            Step::Wait => unreachable!("one device waits for nobody"),
            Step::Finished => return conductor.counters(),
        }
    }
}

/// The bytes that would move if every task of the device uploaded its operands and downloaded its result.
pub fn baseline_bytes(graph: CholeskyGraph, tile_bytes: impl Fn(TileId) -> u64) -> u64 {
    let on_device = graph.tasks().filter(|task| !matches!(task, Task::Potrf { .. }));
    let of = |task: Task| {
        let inputs = graph.inputs(task).into_iter().map(&tile_bytes).sum::<u64>();
        inputs + 2 * tile_bytes(graph.output(task))
    };
    on_device.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_table() {
        for tiles in [24, 32] {
            let graph = CholeskyGraph { tiles };
            let base = baseline_bytes(graph, |_| 1);
            for policy in Policy::ALL {
                for victim in Victim::ALL {
                    for lookahead in [0, 16] {
                        let room_tiles = graph.tile_count() / 2;
                        let options = ConductorOptions { device: 0, policy, victim, room_tiles, lookahead };
                        let c = simulate(graph, options, 1);
                        let moved = c.up_bytes + c.down_bytes;
                        let saved = 100.0 * (1.0 - moved as f64 / base as f64);
                        println!(
                            "{tiles} {:14} {:5} {lookahead:3} up {:6} down {:6} base {base} saved {saved:.1}",
                            policy.name(),
                            victim.name(),
                            c.up_bytes,
                            c.down_bytes
                        );
                    }
                }
            }
        }
    }
}
