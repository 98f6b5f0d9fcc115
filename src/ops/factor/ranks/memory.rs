//! The bytes of one rank's part of a factorisation: the memory that is held at once, counted one by one.
//!
//! Buffers of travelling tiles are released before the factor is rounded, and its memory is allocated then. So a call
//! takes the larger of the two in addition to what stays: tiles, slots, scratch, tables. Source:
//! docs/decisions/102-what-is-there-at-once.md.

use super::traffic::Traffic;
use crate::drive::{TransferRoom, sample_bytes, span_bytes};
use crate::kernels::tiles::TileEngine;
use crate::math::pivot::RowWeight;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::{FactorPlan, task_span_bytes};
use crate::ops::factor::problem::FactorProblem;
use crate::plan::overhead;
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::Memories;
use crate::tile::{TileId, TileMap};

/// The inputs of a plan.
#[derive(Clone, Copy)]
pub(super) struct PlanInput<'a> {
    pub problem: &'a FactorProblem,
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
pub(super) struct RankBytes {
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
    pub fn new(
        plan: &FactorPlan,
        ranks: usize,
        input: &PlanInput<'_>,
        options: &DistCholeskyOptions,
        engine: &dyn TileEngine,
        traffic: Traffic,
    ) -> RankBytes {
        let PlanInput { problem, map, moved_bytes, holds_factor, .. } = *input;
        let (rank, tiling, grid) = (plan.rank, &plan.tiling, plan.tiling.grid);
        // Tiles on the diagonal that this rank finishes or reads.
        let is_known = |col: usize| {
            let tile = TileId { row: col, col };
            grid.owner(tile) == rank || grid.consumers(tiling.tile_rows(), rank, tile) > 0
        };
        let weight_bytes = |rows: usize| (rows * size_of::<RowWeight>()) as u64;
        let fixed = plan.fixed_bytes(engine, is_known)
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
            factor: DistMatrix::bytes_for(&map, rank, problem.precision_bits),
            holds_factor,
            traffic,
        }
    }

    /// Bytes with `slots` slots.
    pub fn with_slots(&self, slots: usize) -> u64 {
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
