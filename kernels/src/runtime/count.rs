//! The bytes that a factorisation moves between two levels, counted without them.

use crate::runtime::protocol::{DeviceSites, ProtocolAction, ProtocolEvent, ProtocolOptions, TaskMachine};
use crate::runtime::residency::{CacheCounters, Eviction, Owner, TaskMoves};
use crate::runtime::{CholeskyGraph, Policy, Task};
use crate::tile::{RankGrid, TileId};

/// One rank.
const ALONE: RankGrid = RankGrid { rows: 1, cols: 1 };

/// Options of one rank with one upper memory level.
#[derive(Clone, Copy, Debug)]
pub struct CountOptions {
    /// The order of tasks.
    pub policy: Policy,
    /// The rule of eviction.
    pub eviction: Eviction,
    /// Tiles that fit in the upper level.
    pub room_tiles: usize,
    /// Tasks that are begun between the last update of a diagonal tile and its factorisation.
    pub lookahead: usize,
}

/// The bytes that one rank with one device transfers: equal to the count of the device that runs it.
pub fn count_moves(
    graph: CholeskyGraph,
    options: CountOptions,
    tile_bytes: impl Fn(TileId) -> u64 + Send + 'static,
) -> CacheCounters {
    let CountOptions { policy, eviction, room_tiles, lookahead } = options;
    let protocol = ProtocolOptions {
        devices: Some(DeviceSites { grid: ALONE, workers: 1, lookahead: Some(lookahead) }),
        room_tiles,
        ..ProtocolOptions::alone(policy, 0)
    };
    let mut machine = TaskMachine::unchecked(ALONE, graph, 0, protocol);
    let owner = Owner { grid: ALONE, number: 0 };
    let mut moves = TaskMoves::new(graph, owner, room_tiles, eviction, tile_bytes);
    while let Some(ProtocolAction::Run(run)) = machine.poll_near(&|_, tile| moves.holds(tile), &|_| true) {
        for task in run.tasks(graph).filter(|task| !matches!(task, Task::Potrf { .. })) {
            moves.begin(task);
            moves.end(task);
        }
        machine.handle(ProtocolEvent::Done(run));
    }
    moves.counters()
}

/// The bytes that would be transferred if every task above the home level uploaded its operands and downloaded its
/// result.
pub fn baseline_bytes(graph: CholeskyGraph, tile_bytes: impl Fn(TileId) -> u64) -> u64 {
    let baseline = baseline_traffic(graph, |_| true, tile_bytes);
    baseline.up_bytes + baseline.down_bytes
}

/// Bytes both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Baseline {
    /// Bytes to the upper level.
    pub up_bytes: u64,
    /// Bytes back to the home level.
    pub down_bytes: u64,
}

/// [`baseline_bytes`] for the tasks on some tiles.
pub fn baseline_traffic(
    graph: CholeskyGraph,
    owns: impl Fn(TileId) -> bool,
    tile_bytes: impl Fn(TileId) -> u64,
) -> Baseline {
    let above = graph.tasks().filter(|task| !matches!(task, Task::Potrf { .. }) && owns(graph.output(*task)));
    let mut sum = Baseline::default();
    for task in above {
        let output = tile_bytes(graph.output(task));
        sum.up_bytes += graph.inputs(task).into_iter().map(&tile_bytes).sum::<u64>() + output;
        sum.down_bytes += output;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::least_room_tiles;

    fn moved(tiles: usize, room_tiles: usize, policy: Policy, eviction: Eviction) -> u64 {
        let options = CountOptions { policy, eviction, room_tiles, lookahead: 16 };
        let counters = count_moves(CholeskyGraph { tiles }, options, |_| 1);
        counters.up_bytes + counters.down_bytes
    }

    #[test]
    fn with_room_for_all_every_tile_moves_once_each_way() {
        for tiles in 1..10 {
            let graph = CholeskyGraph { tiles };
            for policy in Policy::ALL {
                for eviction in Eviction::ALL {
                    // Diagonal tiles come home to be factored and go back; the first and the last go one way less, and
                    // tiles that are never on the device do not move.
                    let off = (graph.tile_count() - tiles) as u64;
                    let diagonal = tiles as u64 - 1;
                    let expected = 2 * off + 3 * diagonal;
                    assert_eq!(moved(tiles, graph.tile_count(), policy, eviction), expected, "{tiles} {policy:?}");
                }
            }
        }
    }

    #[test]
    fn the_least_room_is_enough_for_every_choice() {
        for tiles in 0..9 {
            let graph = CholeskyGraph { tiles };
            for policy in Policy::ALL {
                for eviction in Eviction::ALL {
                    let most = moved(tiles, least_room_tiles(graph), policy, eviction);
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
                let saved = 1.0 - moved(tiles, room, policy, Eviction::Lru) as f64 / baseline;
                assert!(saved >= 0.90, "{tiles} tiles, {policy:?}: {saved:.3}");
            }
        }
    }
}
