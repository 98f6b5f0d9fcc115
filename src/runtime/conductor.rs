//! What one device does next in a tiled Cholesky factorisation: which task, which tiles must move before it.
//!
//! Sans-I/O: [`Conductor::poll`] answers a [`Step`], the driver carries it out and says so. With one device the steps
//! depend on the choices alone, so bytes can be counted without a device ([`simulate`]). Diagonal tiles are factored on
//! the host: a tile that is ready for it is fetched at once, but the host turns to it only when `lookahead` more tasks
//! are under way, which the device works on meanwhile.
//! Knows: the graph, the cache, the policy. Does not know: streams, memory, numbers.

use crate::runtime::{
    Access, Admission, CacheCounters, CholeskyGraph, Chooser, Lease, Limits, Move, Policy, Task, TaskQueue, TileCache,
    TileUse, Victim,
};

use crate::tile::TileId;
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
    /// By tile number: whether the tile is in the cache. Policies ask often.
    resident: Vec<bool>,
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
        let resident = vec![false; graph.tile_count()];
        Conductor { options, cache, chooser, tile_bytes, lease: None, resident, factors: VecDeque::new(), run_count: 0 }
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
            let moves = self.cache.write_back(tile).into_iter().chain(self.cache.discard(tile)).collect::<Vec<_>>();
            self.note(queue.graph(), &moves);
            return Step::Fetch(moves);
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
        let (graph, resident) = (queue.graph(), &self.resident);
        let place = self.chooser.choose(ready, |tile| resident[graph.index(tile)]);
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
        self.note(graph, &before);
        self.lease = Some(lease);
        self.run_count += 1;
        // A finished tile goes home once, now or later; now it may overlap with what follows.
        let after = (task == graph.finish(tile)).then(|| self.cache.write_back(tile)).flatten();
        Step::Run { task, before, after: after.into_iter().collect() }
    }

    fn note(&mut self, graph: CholeskyGraph, moves: &[Move<TileId>]) {
        for step in moves {
            match *step {
                Move::Upload(tile) | Move::Allocate(tile) => self.resident[graph.index(tile)] = true,
                Move::Drop(tile) => self.resident[graph.index(tile)] = false,
                Move::WriteBack(_) => {}
            }
        }
    }

    /// Takes in that a task has been run, or submitted so that all that is submitted later finds its result.
    pub fn done(&mut self, queue: &mut TaskQueue, task: Task) {
        if let Some(lease) = self.lease.take() {
            self.cache.release(lease);
        }
        queue.done(task);
    }
}

/// The bytes that one device moves, counted without it.
pub fn simulate(graph: CholeskyGraph, options: ConductorOptions, tile_bytes: impl Fn(TileId) -> u64) -> CacheCounters {
    let mut queue = TaskQueue::new(graph, 1, |_| 0);
    let mut conductor = Conductor::new(ConductorOptions { device: 0, ..options }, &queue, tile_bytes);
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
    let (up, down) = baseline_traffic(graph, |_| true, tile_bytes);
    up + down
}

/// [`baseline_bytes`] for the tasks on some tiles: to the device, and back.
pub fn baseline_traffic(
    graph: CholeskyGraph,
    owns: impl Fn(TileId) -> bool,
    tile_bytes: impl Fn(TileId) -> u64,
) -> (u64, u64) {
    let on_device = graph.tasks().filter(|task| !matches!(task, Task::Potrf { .. }) && owns(graph.output(*task)));
    let of = |task: Task| {
        let output = tile_bytes(graph.output(task));
        (graph.inputs(task).into_iter().map(&tile_bytes).sum::<u64>() + output, output)
    };
    on_device.map(of).fold((0, 0), |(up, down), (more_up, more_down)| (up + more_up, down + more_down))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(tiles: usize, room_tiles: usize, policy: Policy, victim: Victim) -> u64 {
        let options = ConductorOptions { device: 0, policy, victim, room_tiles, lookahead: 16 };
        let counters = simulate(CholeskyGraph { tiles }, options, |_| 1);
        counters.up_bytes + counters.down_bytes
    }

    #[test]
    fn with_room_for_all_every_tile_moves_once_each_way() {
        for tiles in 1..10 {
            let graph = CholeskyGraph { tiles };
            for policy in Policy::ALL {
                for victim in Victim::ALL {
                    // Diagonal tiles come home to be factored and go back; the first and the last go one way less, and
                    // what is never on the device does not move.
                    let off = (graph.tile_count() - tiles) as u64;
                    let diagonal = tiles as u64 - 1;
                    let expected = 2 * off + 3 * diagonal;
                    assert_eq!(moved(tiles, graph.tile_count(), policy, victim), expected, "{tiles} {policy:?}");
                }
            }
        }
    }

    #[test]
    fn the_least_room_is_enough_for_every_choice() {
        for tiles in 0..9 {
            let graph = CholeskyGraph { tiles };
            for policy in Policy::ALL {
                for victim in Victim::ALL {
                    let most = moved(tiles, least_room_tiles(graph), policy, victim);
                    assert!(most <= baseline_bytes(graph, |_| 1) + 2 * tiles as u64, "{tiles} {policy:?}");
                }
            }
        }
    }

    #[test]
    fn the_baseline_counts_every_operand_of_every_task() {
        // 4 moves for each of 4 GEMM, 3 for each of 6 SYRK and 6 TRSM.
        assert_eq!(baseline_bytes(CholeskyGraph { tiles: 4 }, |_| 1), 4 * 4 + 3 * 12);
        assert_eq!(baseline_bytes(CholeskyGraph { tiles: 1 }, |_| 1), 0);
    }

    /// A device that holds half of the tiles moves at least 85 % less than the baseline under the best choice.
    #[test]
    fn the_best_choice_saves_what_was_promised() {
        for tiles in [24, 32, 48] {
            let graph = CholeskyGraph { tiles };
            let room = graph.tile_count() / 2;
            let baseline = baseline_bytes(graph, |_| 1) as f64;
            for policy in [Policy::Greedy, Policy::Panels] {
                let saved = 1.0 - moved(tiles, room, policy, Victim::Lru) as f64 / baseline;
                assert!(saved >= 0.90, "{tiles} tiles, {policy:?}: {saved:.3}");
            }
        }
    }
}
