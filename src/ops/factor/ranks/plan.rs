//! How a rank's part of a factorisation is cut, and the memory it takes.

use super::window::node_plan;
use crate::comm::{Reduction, agree};
use crate::context::Context;
use crate::drive::TransferRoom;
use crate::error::{Error, Result};
use crate::kernels::rounding::scratch_words;
use crate::kernels::tiles::{PANEL_ROWS, TileEngine};
use crate::math::pivot::RowWeight;
use crate::matrix::Matrix;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::team::Team;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::Plan;
use crate::ops::factor::problem::Problem;
use crate::ops::factor::tile_work::TileWork;
use crate::ops::factor::tiling::shape_of;
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::Memories;
use crate::tile::{RankGrid, TileId, TileMap};

/// Bytes that a call takes beside what is counted one by one: lists of tiles, weights, messages.
const CALL_BYTES: u64 = 64 << 10;

/// Bytes of lists and locks for a tile, own or not.
const TILE_BYTES: u64 = 512;

/// Tiles for each row or column of ranks, so that all of them stay busy.
const TILES_EACH: usize = 9;

/// Smaller tiles are not made to keep ranks busy.
const LEAST_ROWS: usize = 48;

/// Own tiles that a rank has in the words in which they travel at a time, for each of its workers two and so many more:
/// all that are wanted are on their way then, and those that follow are packed when these have left.
const PACKED_TILES: usize = 4;

/// Tiles that come to a rank at a time, for each of its workers one and so many more: the workers make operands of some
/// while others come.
const INCOMING_TILES: usize = 2;

/// Tile columns that a rank has room for where memory is plenty: readers ask ahead for that many.
const COLUMNS_AHEAD: usize = 4;

/// Rows of a tile for a matrix of `order` rows on `grid`, where the kernel prefers so many.
pub(super) fn tile_rows(order: usize, grid: RankGrid, preferred_rows: usize) -> usize {
    let by_ranks = (order / (TILES_EACH * grid.rows.max(grid.cols)).max(1)).max(LEAST_ROWS);
    preferred_rows.min(by_ranks).next_multiple_of(PANEL_ROWS)
}

/// The tiles of the factor in the tiles `map` of the matrix.
pub(super) fn tiling(problem: &Problem, map: TileMap) -> TileMap {
    TileMap { rows: problem.order, cols: problem.order, ..map }
}

/// What a plan is made from.
#[derive(Clone, Copy)]
pub(super) struct PlanInput<'a> {
    pub problem: &'a Problem,
    /// The tiles to work in.
    pub map: TileMap,
    /// Which ranks have their tiles in one window.
    pub memories: &'a Memories,
    /// Bytes of this rank's copy of the matrix in those tiles; 0 where it came in them.
    pub moved_bytes: u64,
}

impl Plan {
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
    ) -> Result<Plan> {
        let PlanInput { problem, map, memories, moved_bytes } = *input;
        let (world, rank) = (team.world(), team.rank());
        let tiling = tiling(problem, map);
        let (graph, grid) = (CholeskyGraph::of(&tiling), map.grid);
        let own = || graph.all_tiles().filter(|&tile| grid.owner(tile) == rank);
        let work = TileWork::new(engine, &tiling, problem.working_bits, &problem.exponents);
        let (memories, node) = (memories.clone(), node_plan(team, &work, memories));
        let (least, wanted) = (memories.least_slots(grid, graph.tiles), options.slots);
        // Where nothing is sent there is no use for slots.
        let useful = if least == 0 { 0 } else { wanted.unwrap_or(least * COLUMNS_AHEAD) };
        let first = TileId { row: graph.tiles.min(2).saturating_sub(1), col: 0 };
        let (operand_words, payload_words) = match graph.tiles {
            0 => (0, 0),
            _ => (
                work.operand_words(first).max(work.operand_words(TileId { row: 0, col: 0 })),
                work.payload_words(first),
            ),
        };
        let threads = ctx.threads();
        let mut plan = Plan {
            rank,
            room: TransferRoom { packed: PACKED_TILES + 2 * threads, incoming: INCOMING_TILES + threads },
            slots: grid.useful_slots(graph.tiles, useful),
            tile_words: own().map(|tile| engine.tile_words(shape_of(&tiling, tile))).sum(),
            operand_words,
            scratch_words: scratch_words(engine, tiling.tile_size, problem.precision_bits),
            threads,
            bytes: 0,
            tiling,
            memories,
            node,
        };
        let readers = |tile: TileId| plan.memories.clients(grid, graph.tiles, tile).len();
        let sent = own().filter(|&tile| readers(tile) > 0).count();
        let passed_on = options.delivery.rule().passes_on() && graph.all_tiles().any(|tile| readers(tile) > 1);
        let payload_bytes = 8 * payload_words as u64;
        let fixed = plan.fixed_bytes(engine)
            + sent.min(plan.room.packed) as u64 * payload_bytes
            + (sent * tiling.tile_size * size_of::<RowWeight>()) as u64
            + DistMatrix::bytes_for(&map, rank, problem.precision_bits)
            + map.tiles_of(rank).count() as u64 * TILE_BYTES
            + Matrix::bytes_for(tiling.tile_size, tiling.tile_size, problem.precision_bits)
            + CALL_BYTES;
        // The words in which a tile has come stay where it may be passed on.
        let most_in_words = if passed_on { usize::MAX } else { plan.room.incoming };
        let in_words = |slots: usize| slots.min(most_in_words) as u64;
        let each = 8 * operand_words as u64 + TILE_BYTES;
        let (fixed, ranks_here) = (fixed + moved_bytes, team.ranks_here());
        let bytes = |slots: usize| fixed + slots as u64 * each + in_words(slots) * payload_bytes;
        // The largest number of slots that fits the limit, at least the least.
        let fits = |slots: usize| ctx.admit(bytes(slots) * ranks_here);
        while wanted.is_none() && plan.slots > least && fits(plan.slots).is_err() {
            plan.slots = (plan.slots - plan.slots.div_ceil(8)).max(least);
        }
        agree(world, fits(plan.slots))?;
        let mut fewest = [plan.slots as u64];
        world.all_reduce(Reduction::Min, &mut fewest)?;
        plan.slots = fewest[0] as usize;
        plan.bytes = bytes(plan.slots);
        agree(world, check(&plan, world.size()))?;
        Ok(plan)
    }
}

fn check(plan: &Plan, ranks: usize) -> Result<()> {
    let grid @ RankGrid { rows, cols } = plan.tiling.grid;
    if rows.saturating_mul(cols) > ranks {
        return Err(Error::InvalidArgument(format!("a grid of {rows} x {cols} ranks for {ranks}")));
    }
    plan.memories.check(grid, plan.tiling.tile_rows(), plan.slots)
}
