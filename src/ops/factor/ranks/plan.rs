//! The blocking of a rank's part of a factorisation, and its memory for tiles in transit.

use super::memory::{PlanInput, RankBytes};
use super::traffic::Traffic;
use super::window::node_plan;
use crate::comm::{Reduction, agree};
use crate::context::Context;
use crate::drive::TransferRoom;
use crate::error::Result;
use crate::kernels::rounding::scratch_words;
use crate::kernels::tiles::{PANEL_ROWS, TileEngine};
use crate::ops::factor::kernel::LEAST_TILE_ROWS;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::FactorPlan;
use crate::ops::factor::problem::FactorProblem;
use crate::ops::factor::tile_work::TileWork;
use crate::ops::factor::tiling::shape_of;
use crate::runtime::CholeskyGraph;
use crate::site::Team;
use crate::tile::{RankGrid, RankPlace, TileId, TileMap, count_in};

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
/// Where ranks read each other's tiles in place, a waiting rank takes tiles in ahead, and the time is that of the rank
/// with most work: of the heights that are about as good for the kernel, the one that shares the work out best.
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
pub(super) fn room(threads: usize) -> TransferRoom {
    TransferRoom { packed: PACKED_TILES + 2 * threads, incoming: INCOMING_TILES + threads }
}

/// The tiles of the factor in the tiles `map` of the matrix.
pub(super) fn tiling(problem: &FactorProblem, map: TileMap) -> TileMap {
    TileMap { rows: problem.order, cols: problem.order, ..map }
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
        engine: &dyn TileEngine,
    ) -> Result<FactorPlan> {
        let PlanInput { problem, map, memories, .. } = *input;
        let (world, rank) = (team.world(), team.rank());
        let tiling = tiling(problem, map);
        let (graph, grid) = (CholeskyGraph::of(&tiling), map.grid);
        let own = || graph.all_tiles().filter(|&tile| grid.owner(tile) == rank);
        let work = TileWork::new(engine, &tiling, problem.working_bits, &problem.exponents);
        let (memories, node) = (memories.clone(), node_plan(team, &work, memories));
        let (least, wanted) = (memories.least_slots(grid, graph.tiles), options.slots);
        // Without messages slots are of no use.
        let useful = if least == 0 { 0 } else { wanted.unwrap_or(least * COLUMNS_AHEAD) };
        let first = TileId { row: graph.tiles.min(2).saturating_sub(1), col: 0 };
        let operand_words = match graph.tiles {
            0 => 0,
            _ => work.operand_words(first).max(work.operand_words(TileId { row: 0, col: 0 })),
        };
        let traffic = Traffic::new(&work, &memories, rank, options.delivery.rule());
        let threads = ctx.threads();
        let mut plan = FactorPlan {
            rank,
            room: room(threads),
            slots: grid.useful_slots(graph.tiles, useful),
            received: traffic.received(),
            tile_words: own().map(|tile| engine.tile_words(shape_of(&tiling, tile))).sum(),
            operand_words,
            scratch_words: scratch_words(engine, tiling.tile_size, problem.precision_bits),
            threads,
            bytes: 0,
            tiling,
            memories,
            node,
        };
        let bytes = RankBytes::new(&plan, team.size(), input, options, engine, traffic);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
