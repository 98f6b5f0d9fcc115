//! The tiles that one rank sends and receives in a factorisation, counted one by one, and the largest number that it
//! holds at once.

use crate::ops::factor::tile_work::TileWork;
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::{Delivery, Memories};
use crate::tile::TileId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lengths of tiles in words, the longest first, with the number of tiles of each length.
#[derive(Default)]
struct Lengths(BTreeMap<Reverse<usize>, usize>);

impl Lengths {
    fn add(&mut self, words: usize) {
        *self.0.entry(Reverse(words)).or_default() += 1;
    }

    fn count(&self) -> usize {
        self.0.values().sum()
    }

    /// Words of the longest ones, at most `most` of them.
    fn longest(&self, most: usize) -> usize {
        let mut left = most;
        let taken = self.0.iter().map(|(Reverse(words), &count)| {
            let count = count.min(left);
            left -= count;
            words * count
        });
        taken.sum()
    }
}

/// The tiles that travel from a rank and to it.
#[derive(Default)]
pub(super) struct Traffic {
    /// Own tiles that are sent to others.
    sent: Lengths,
    /// Tiles that come.
    received: Lengths,
    /// Number of received tiles that this rank may pass on.
    passed_on: usize,
    /// Rows of own tiles that are sent, of which the weights are kept.
    pub sent_rows: usize,
}

impl Traffic {
    /// The traffic of `rank`, where tiles are delivered by this rule.
    pub fn new(work: &TileWork<'_>, memories: &Memories, rank: usize, rule: &dyn Delivery) -> Traffic {
        let (graph, grid) = (CholeskyGraph::of(work.tiling), work.tiling.grid);
        let mut traffic = Traffic::default();
        // Where ranks share all memories no tile travels, and there may be many tiles.
        // Ranks beyond the grid have no part in it.
        if memories.least_slots(grid, graph.tiles) == 0 || rank >= grid.size() {
            return traffic;
        }
        let readers = |tile: TileId| memories.clients(grid, graph.tiles, tile).len();
        for tile in graph.all_tiles() {
            let owner = grid.owner(tile);
            if owner == rank && readers(tile) > 0 {
                traffic.sent.add(work.payload_words(tile));
                traffic.sent_rows += if tile.row == tile.col { 0 } else { work.shape(tile).rows };
            } else if owner != rank && grid.consumers(graph.tiles, rank, tile) > 0 && !memories.share(owner, rank) {
                traffic.received.add(work.payload_words(tile));
                traffic.passed_on += usize::from(rule.passes_on(readers(tile)));
            }
        }
        traffic
    }

    /// Tiles that come in all.
    pub fn received(&self) -> usize {
        self.received.count()
    }

    /// Most bytes of own tiles in words, where there is room for `most` of them.
    pub fn sent_bytes(&self, most: usize) -> u64 {
        8 * self.sent.longest(most) as u64
    }

    /// Most bytes of the buffers for arriving tiles, where `most` of them arrive at a time, and the words of tiles that
    /// may be passed on stay as long as their slots.
    ///
    /// Buffers are used again. There are no more than tiles in words at a time, and each is as long as the longest tile
    /// that it had; no tile comes twice, so all of them are no longer than as many of the longest tiles.
    pub fn received_bytes(&self, most: usize, slots: usize) -> u64 {
        let others = self.received() - self.passed_on;
        let at_a_time = self.passed_on.min(slots) + others.min(most);
        8 * self.received.longest(at_a_time.min(slots)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{Transport, local};
    use crate::context::Context;
    use crate::matrix::Matrix;
    use crate::ops::distribution::matrix::DistMatrix;
    use crate::ops::factor::options::DistCholeskyOptions;
    use crate::ops::factor::ranks::{cholesky_with, engine_in_tiles, plan, window};
    use crate::runtime::Policy;
    use crate::runtime::protocol::DeliveryKind;
    use crate::site::{Site, Team, TeamOptions};
    use crate::tile::{RankGrid, TileMap};

    #[test]
    fn the_longest_are_taken_first() {
        let mut lengths = Lengths::default();
        [3, 9, 5, 9].into_iter().for_each(|words| lengths.add(words));
        let sums = [0, 1, 2, 3, 4, usize::MAX].map(|most| lengths.longest(most));
        assert_eq!((sums, lengths.count()), ([0, 9, 18, 23, 26, 26], 4));
        assert_eq!(Lengths::default().longest(3), 0);
    }

    /// No more tiles travel at once than planned, in many orders of tasks, with every delivery, on one node and
    /// several.
    #[test]
    fn no_order_has_more_on_its_way() {
        let (order, bits) = (90, 100);
        let mut a = Matrix::identity(order, bits).unwrap();
        (1..order).for_each(|i| a.set_f64(i, i - 1, 0.25).unwrap());
        for seed in 0..60usize {
            let (ranks, threads) = (2 + seed % 5, 1 + seed % 2);
            let ranks_per_node = [1, 2, 3, ranks][seed / 5 % 4];
            let grid = RankGrid::for_ranks(ranks);
            let delivery = DeliveryKind::ALL[seed / 20 + 2 * (seed % 2)];
            let options = DistCholeskyOptions::new().tile_rows(8).delivery(delivery);
            let options = options.policy(Policy::Random(seed as u64)).slots((seed % 3 > 0).then_some(12));
            local::run(ranks, |rank| {
                let map = TileMap { grid, ..TileMap::symmetric(order, 8) };
                let a = DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(&a), map, bits).unwrap();
                let team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(ranks_per_node));
                let (team, ctx) = (team.unwrap(), Context::builder().threads(threads).build().unwrap());
                let site = Site { ctx: &ctx, team: &team };
                let made = cholesky_with(&ctx, &team, &a, bits, &options).unwrap();
                let working_bits = made.report.working_bits;
                let (engine, kernel) = engine_in_tiles(site, &map, working_bits).unwrap();
                let work = TileWork::new(&*engine, &map, working_bits, &[]);
                let memories = window::memories(site, &work, kernel.name()).unwrap();
                let traffic = Traffic::new(&work, &memories, rank.rank(), delivery.rule());
                let (room, slots) = (plan::room(threads), made.report.ranks.as_ref().unwrap().slots);
                let most = [traffic.sent_bytes(room.packed), traffic.received_bytes(room.incoming, slots)];
                let (own, what) = (&made.own, format!("seed {seed}, rank {}: {most:?}", rank.rank()));
                println!("{what}: {} {}", own.peak_packed_bytes, own.peak_buffer_bytes);
                assert!(own.peak_packed_bytes <= most[0] && own.peak_buffer_bytes <= most[1], "{what}");
                assert!(own.counters.peak_slots as usize <= traffic.received(), "{what}");
                // Every tile comes once.
                assert_eq!(own.received_bytes, 8 * traffic.received.longest(usize::MAX) as u64, "{what}");
            });
        }
    }
}
