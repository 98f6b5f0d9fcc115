//! How a rank's part of a factorisation is cut, the tiles that travel, and the bytes that are held at once, counted one
//! by one.
//!
//! Buffers of travelling tiles are released before the factor is rounded, and its memory is allocated then. So a call
//! takes the larger of the two in addition to what stays: tiles, slots, scratch, tables. Source:
//! docs/decisions/102-what-is-there-at-once.md.

use crate::comm::{Reduction, agree};
use crate::context::Context;
use crate::drive::{TransferRoom, sample_bytes, span_bytes};
use crate::error::Result;
use crate::kernels::rounding::scratch_words;
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::pivot::RowWeight;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::factor::kernel::LEAST_TILE_ROWS;
use crate::ops::factor::node_tiles::node_plan;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::{FactorPlan, task_span_bytes};
use crate::ops::factor::problem::FactorProblem;
use crate::ops::factor::tile_work::TileWork;
use crate::plan::overhead;
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::{Delivery, Memories};
use crate::site::Team;
use crate::tile::{RankGrid, RankPlace, TileId, TileMap, count_in};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Tiles for each row or column of ranks, so that all of them stay busy; fewer do where none travels.
const TILES_EACH: usize = 9;
const SHARED_TILES_EACH: usize = 5;

/// Time to take a tile in, run its last task and round it, in updates of the tile, roughly.
const LAST_TASK: f64 = 1.8;

/// Relative increase of the time of a factor with tiles half as high, roughly.
const COST_OF_LOWER: f64 = 0.05;

/// Smaller tiles are not made to keep ranks busy.
const LEAST_ROWS: usize = 48;

/// Own tiles that a rank holds packed for sending at a time, in addition to two for each of its workers: enough that
/// all wanted tiles are on their way, while the following ones are packed when these have left.
const PACKED_TILES: usize = 4;

/// Tiles that arrive at a rank at a time, in addition to one for each of its workers: the workers convert some to
/// operands while others arrive.
const INCOMING_TILES: usize = 2;

/// Tile columns that a rank has room for where memory is plenty: readers request that many in advance.
const COLUMNS_AHEAD: usize = 4;

/// Rows of a tile for a matrix of `order` rows on `grid`, where the kernel prefers `preferred_rows`.
///
/// If ranks read each other's tiles in place, a waiting rank reads tiles ahead, and the rank with the most work
/// determines the time. Of the heights that are about as good for the kernel, the function then chooses the one with
/// the most even distribution of work.
pub(super) fn tile_rows(order: usize, grid: RankGrid, preferred_rows: usize, is_shared: bool) -> usize {
    let each = if is_shared { SHARED_TILES_EACH } else { TILES_EACH };
    let by_ranks = (order / (each * grid.rows.max(grid.cols)).max(1)).max(LEAST_ROWS);
    let most = preferred_rows.min(by_ranks).next_multiple_of(PANEL_ROWS);
    if !is_shared {
        return most;
    }
    // No lower than kernels are chosen for.
    let lowest = (most - most / 8).max(LEAST_TILE_ROWS.min(most));
    let lower = |rows: usize| COST_OF_LOWER * (2 * (most - rows)) as f64 / most as f64;
    let time = |rows: usize| largest_share(order, grid, rows) * (1.0 + lower(rows));
    let heights = (lowest..=most).filter(|rows| rows.is_multiple_of(PANEL_ROWS));
    heights.min_by(|&one, &other| time(one).total_cmp(&time(other))).unwrap_or(most)
}

/// The largest work of a rank relative to the mean.
fn largest_share(order: usize, grid: RankGrid, rows: usize) -> f64 {
    let tiles = order.div_ceil(rows);
    let height = |tile: usize| (order - tile * rows).min(rows) as f64 / rows as f64;
    let (mut most, mut all) = (0.0f64, 0.0);
    for RankPlace { row: grid_row, col: grid_col } in (0..grid.size()).map(|rank| grid.place(rank)) {
        let in_column = |col: usize| {
            let mut heights = count_in(col..tiles, grid_row, grid.rows) as f64;
            if (tiles - 1) % grid.rows == grid_row {
                heights -= 1.0 - height(tiles - 1);
            }
            // Half of a tile on the diagonal.
            if col % grid.rows == grid_row {
                heights -= height(col) / 2.0;
            }
            (col as f64 + LAST_TASK) * height(col) * heights
        };
        let own = (grid_col..tiles).step_by(grid.cols).map(in_column).sum::<f64>();
        (most, all) = (most.max(own), all + own);
    }
    if all > 0.0 { most * grid.size() as f64 / all } else { 1.0 }
}

/// Travelling tiles that a rank with `threads` workers has room for.
fn room(threads: usize) -> TransferRoom {
    TransferRoom { packed: PACKED_TILES + 2 * threads, incoming: INCOMING_TILES + threads }
}

/// The tiles of the factor in the tiles `map` of the matrix.
pub(super) fn tiling(problem: &FactorProblem, map: TileMap) -> TileMap {
    TileMap { rows: problem.order, cols: problem.order, ..map }
}

/// The inputs of a plan.
#[derive(Clone, Copy)]
pub(super) struct PlanInput<'a> {
    /// The kernels, and the tiles of the rows that are factored.
    pub work: &'a TileWork<'a>,
    pub precision_bits: u32,
    /// The tiles to work in.
    pub map: TileMap,
    /// The ranks that keep their tiles in one window.
    pub memories: &'a Memories,
    /// Bytes of this rank's copy of the matrix in those tiles; 0 where the matrix was given in them.
    pub moved_bytes: u64,
    /// Whether this rank's tiles of the factor are there from the start, in memory of an earlier one.
    pub holds_factor: bool,
}

/// The bytes of one rank's part, as a function of the number of its slots.
struct RankBytes {
    traffic: Traffic,
    room: TransferRoom,
    /// Bytes that do not depend on the number of slots and stay from the first task to the last rounded entry.
    fixed: u64,
    /// Bytes of a slot, with the data of the tile in it.
    slot: u64,
    /// Bytes of this rank's tiles of the factor.
    factor: u64,
    /// Whether these are there from the start.
    holds_factor: bool,
}

impl RankBytes {
    /// Bytes of the rank and the tiles of `plan`, one of `ranks` ranks; the slots and bytes of `plan` are not used.
    fn new(
        plan: &FactorPlan,
        ranks: usize,
        input: &PlanInput<'_>,
        options: &DistCholeskyOptions,
        traffic: Traffic,
    ) -> RankBytes {
        let PlanInput { work, precision_bits, map, moved_bytes, holds_factor, .. } = *input;
        let (rank, tiling, grid) = (plan.rank, &plan.tiling, plan.tiling.grid);
        // Tiles on the diagonal that this rank finishes or reads.
        let is_known = |col: usize| {
            let tile = TileId { row: col, col };
            grid.owner(tile) == rank || grid.consumers(tiling.tile_rows(), rank, tile) > 0
        };
        let weight_bytes = |rows: usize| (rows * size_of::<RowWeight>()) as u64;
        let fixed = plan.fixed_bytes(work.engine, is_known)
            + weight_bytes(traffic.sent_rows)
            + map.tiles_of(rank).count() as u64 * overhead::RANK_TILE
            + tiling.rows as u64 * overhead::RANK_ROW
            + log_bytes(plan, ranks, options)
            + (plan.threads as u64 - 1) * (overhead::WORKER + overhead::STRIP * tiling.tile_rows() as u64)
            + (ranks - 1) as u64 * overhead::FACTOR_PEER
            + moved_bytes
            + overhead::FACTOR_RANK;
        RankBytes {
            room: plan.room,
            fixed,
            slot: 8 * plan.operand_words as u64 + weight_bytes(tiling.tile_size) + overhead::RANK_TILE,
            factor: DistMatrix::bytes_for(&map, rank, precision_bits),
            holds_factor,
            traffic,
        }
    }

    /// Bytes with `slots` slots.
    fn with_slots(&self, slots: usize) -> u64 {
        let in_words =
            self.traffic.sent_bytes(self.room.packed) + self.traffic.received_bytes(self.room.incoming, slots);
        let beside = if self.holds_factor { self.factor + in_words } else { self.factor.max(in_words) };
        let used = slots.min(self.traffic.received());
        self.fixed + used as u64 * self.slot + (slots - used) as u64 * overhead::EMPTY_SLOT + beside
    }
}

/// Bytes of the log that each of `ranks` ranks keeps for its report.
fn log_bytes(plan: &FactorPlan, ranks: usize, options: &DistCholeskyOptions) -> u64 {
    if ranks == 1 {
        return task_span_bytes(&plan.tiling, plan.threads);
    }
    let (graph, grid) = (CholeskyGraph::of(&plan.tiling), plan.tiling.grid);
    let own = graph.all_tiles().filter(|&tile| grid.owner(tile) == plan.rank);
    // The events of an own tile are its tasks and its load; those of each tile are the messages between its readers.
    let events = own.map(|tile| tile.col + 2).sum::<usize>() + 4 * (grid.rows + grid.cols) * (1 + graph.tile_count());
    // Each worker's list grows separately, so together they have room for up to twice as many.
    sample_bytes(events) + if options.spans { span_bytes(2 * events + plan.threads) } else { 0 }
}

impl FactorPlan {
    /// Plans this rank's part; all ranks have the same slots. Collective.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the least limit of a node; [`Error::InvalidArgument`] for too few slots or a grid
    /// of more ranks than there are; on every rank.
    pub(super) fn over_ranks(
        ctx: &Context,
        team: &Team,
        input: &PlanInput<'_>,
        options: &DistCholeskyOptions,
    ) -> Result<FactorPlan> {
        let PlanInput { work, precision_bits, memories, .. } = *input;
        let (world, rank) = (team.world(), team.rank());
        let (engine, tiling) = (work.engine, *work.tiling);
        let (graph, grid) = (CholeskyGraph::of(&tiling), tiling.grid);
        let own = || graph.all_tiles().filter(|&tile| grid.owner(tile) == rank);
        let (memories, node) = (memories.clone(), node_plan(team, work, memories));
        let (least, wanted) = (memories.least_slots(grid, graph.tiles), options.slots);
        // Without messages slots are of no use.
        let useful = if least == 0 { 0 } else { wanted.unwrap_or(least * COLUMNS_AHEAD) };
        let first = TileId { row: graph.tiles.min(2).saturating_sub(1), col: 0 };
        let operand_words = match graph.tiles {
            0 => 0,
            _ => work.operand_words(first).max(work.operand_words(TileId { row: 0, col: 0 })),
        };
        let traffic = Traffic::new(work, &memories, rank, options.delivery.rule());
        let threads = ctx.threads();
        let mut plan = FactorPlan {
            rank,
            room: room(threads),
            slots: grid.useful_slots(graph.tiles, useful),
            received: traffic.received(),
            tile_words: own().map(|tile| engine.tile_words(work.shape(tile))).sum(),
            operand_words,
            scratch_words: scratch_words(engine, tiling.tile_size, precision_bits),
            threads,
            bytes: 0,
            tiling,
            memories,
            node,
        };
        let bytes = RankBytes::new(&plan, team.size(), input, options, traffic);
        // The largest number of slots that fits the limit, at least the least.
        let fits = |slots: usize| ctx.admit(bytes.with_slots(slots) * team.ranks_here());
        while wanted.is_none() && plan.slots > least && fits(plan.slots).is_err() {
            plan.slots = (plan.slots - plan.slots.div_ceil(8)).max(least);
        }
        agree(world, fits(plan.slots))?;
        let mut fewest = [plan.slots as u64];
        world.all_reduce(Reduction::Min, &mut fewest)?;
        plan.slots = fewest[0] as usize;
        plan.bytes = bytes.with_slots(plan.slots);
        agree(world, check(&plan, world.size()))?;
        Ok(plan)
    }
}

fn check(plan: &FactorPlan, ranks: usize) -> Result<()> {
    plan.tiling.grid.check_ranks(ranks)?;
    plan.memories.check(plan.tiling.grid, plan.tiling.tile_rows(), plan.slots)
}

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
struct Traffic {
    /// Own tiles that are sent to others.
    sent: Lengths,
    /// Tiles that come.
    received: Lengths,
    /// Number of received tiles that this rank may pass on.
    passed_on: usize,
    /// Rows of own tiles that are sent, of which the weights are kept.
    sent_rows: usize,
}

impl Traffic {
    /// The traffic of `rank`, where tiles are delivered by this rule.
    fn new(work: &TileWork<'_>, memories: &Memories, rank: usize, rule: &dyn Delivery) -> Traffic {
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
    fn received(&self) -> usize {
        self.received.count()
    }

    /// The largest number of bytes of own tiles in words, where there is room for `most` of them.
    fn sent_bytes(&self, most: usize) -> u64 {
        8 * self.sent.longest(most) as u64
    }

    /// Most bytes of the buffers for arriving tiles, where `most` of them arrive at a time, and the words of tiles that
    /// may be passed on stay as long as their slots.
    ///
    /// Buffers are used again. There are no more than tiles in words at a time, and each is as long as the longest tile
    /// that it had; no tile comes twice, so all of them are no longer than as many of the longest tiles.
    fn received_bytes(&self, most: usize, slots: usize) -> u64 {
        let others = self.received() - self.passed_on;
        let at_a_time = self.passed_on.min(slots) + others.min(most);
        8 * self.received.longest(at_a_time.min(slots)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{Transport, local};
    use crate::matrix::Matrix;
    use crate::ops::factor::node_tiles;
    use crate::ops::factor::ranks::{cholesky_with, engine_in_tiles};
    use crate::runtime::Policy;
    use crate::runtime::protocol::DeliveryKind;
    use crate::site::{Site, TeamOptions};

    /// Tile by tile.
    fn counted(order: usize, grid: RankGrid, rows: usize) -> f64 {
        let map = TileMap::symmetric(order, rows);
        let mut works = vec![0.0; grid.size()];
        for tile in CholeskyGraph::of(&map).all_tiles() {
            let (rows, cols) = map.shape(tile);
            let part = if tile.row == tile.col { 0.5 } else { 1.0 };
            works[grid.owner(tile)] += part * (rows * cols) as f64 * (tile.col as f64 + LAST_TASK);
        }
        works.iter().fold(0.0f64, |most, &work| most.max(work)) * grid.size() as f64 / works.iter().sum::<f64>()
    }

    #[test]
    fn the_largest_share_is_that_of_all_tiles_one_by_one() {
        for (rows, cols) in [(1, 1), (1, 2), (2, 2), (3, 1), (2, 4), (3, 5)] {
            let grid = RankGrid { rows, cols };
            for (order, height) in [(8, 8), (9, 8), (1000, 96), (1000, 104), (960, 96), (2000, 128), (301, 24)] {
                let (share, counted) = (largest_share(order, grid, height), counted(order, grid, height));
                assert!(
                    (share - counted).abs() < 1e-12 * counted,
                    "{order} in {height} on {grid:?}: {share} {counted}"
                );
            }
        }
        assert_eq!(largest_share(0, RankGrid { rows: 1, cols: 2 }, 8), 1.0);
    }

    #[test]
    fn heights_share_the_work_out_where_no_tile_travels() {
        let (two, four) = (RankGrid { rows: 1, cols: 2 }, RankGrid { rows: 2, cols: 2 });
        let shared = |order, grid, preferred| tile_rows(order, grid, preferred, true);
        // 17 and 16 tiles of 2000 rows are about as even; of 1024 rows 11 share better than 10.
        assert_eq!(shared(2000, two, 128), 128);
        assert_eq!((shared(1024, two, 112), shared(1024, two, 96)), (96, 96));
        assert_eq!((shared(0, two, 96), shared(300, four, 96)), (48, 48));
        for (order, grid) in [(600, two), (1500, four), (3001, four), (5000, RankGrid { rows: 3, cols: 4 })] {
            let most = tile_rows(order, grid, 136, false).max(96.min(order / (5 * grid.cols)));
            let rows = shared(order, grid, 136);
            assert!(rows.is_multiple_of(PANEL_ROWS) && (48..=136).contains(&rows), "{order} on {grid:?}: {rows}");
            assert!(rows + 8 > most - most / 8, "{order} on {grid:?}: {rows} of {most}");
        }
        // Between nodes as before.
        assert_eq!((tile_rows(2000, two, 128, false), tile_rows(1000, two, 96, false)), (112, 56));
    }

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
                let memories = node_tiles::memories(site, &work, kernel.name()).unwrap();
                let traffic = Traffic::new(&work, &memories, rank.rank(), delivery.rule());
                let (room, slots) = (room(threads), made.report.ranks.as_ref().unwrap().slots);
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
