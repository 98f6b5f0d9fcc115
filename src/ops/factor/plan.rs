//! How a factorisation is cut into tiles, and the memory it takes.

use crate::context::{Context, WorkspaceNeeds};
use crate::device::Description;
use crate::drive::{RankPlan, TransferRoom};
use crate::error::{Error, Result};
use crate::kernels::rounding::scratch_words;
use crate::kernels::tiles::{TileEngine, TileTraffic};
use crate::matrix::Matrix;
use crate::ops::factor::direct::{self, Direct};
use crate::ops::factor::entrywise::{self, RangeBits};
use crate::ops::factor::kernel::{engine_for, tiles_for};
use crate::ops::factor::node_tiles::NodeTilePlan;
use crate::ops::factor::options::{CholeskyOptions, DistCholeskyOptions};
use crate::ops::factor::problem::working_bits;
use crate::ops::factor::spans::Span;
use crate::ops::factor::tile_work::shape_of;
use crate::ops::product::problem::Accuracy;
use crate::plan::overhead;
use crate::runtime::protocol::{Memories, ProtocolOptions};
use crate::runtime::{CholeskyGraph, Policy};
use crate::store::Buffer;
use crate::tile::{TileId, TileMap};
use serde::Serialize;

/// Larger parts could not be addressed, nor their sums counted.
pub(super) const MAXIMUM_BYTES: u64 = 1 << 62;

/// The largest number of tiles of a strip: reading their shared operands costs little relative to the updates, and
/// progress is reported between strips.
pub(crate) const STRIP_TILES: usize = 8;

/// Units of work of `tasks` tasks on a tile.
pub(crate) fn units(tiling: &TileMap, tile: TileId, tasks: usize) -> u64 {
    (tiling.entries(tile) * tasks) as u64
}

/// A tile of each shape, and the number of such tiles: the last tile row may be lower than the others.
fn kinds(tiling: &TileMap) -> impl Iterator<Item = (TileId, usize)> + use<> {
    let whole = tiling.tile_rows().saturating_sub(1);
    let tile = |row, col, count| (TileId { row, col }, count);
    let last = usize::from(tiling.tile_rows() > 0);
    [
        tile(0, 0, whole),
        tile(1, 0, whole * whole.saturating_sub(1) / 2),
        tile(whole, 0, whole),
        tile(whole, whole, last),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
}

/// Most bytes of the recorded times: with several threads the updates of a tile may come one by one.
pub(super) fn task_span_bytes(tiling: &TileMap, threads: usize) -> u64 {
    let tiles = tiling.tile_rows() as u128;
    // The sum of 1, or of `col + 1`, over all tiles.
    let pieces = if threads == 1 { tiles * (tiles + 1) / 2 } else { tiles * (tiles + 1) * (tiles + 2) / 6 };
    u64::try_from(pieces * 3 * 2 * size_of::<Span>() as u128).unwrap_or(u64::MAX) // lists grow by doubling
}

/// The needs of one rank's part of a factorisation; one process is a single rank.
#[derive(Clone, Debug)]
pub(crate) struct FactorPlan {
    /// The tiles, and their owners.
    pub tiling: TileMap,
    /// This rank.
    pub rank: usize,
    /// Tiles of other ranks that every rank can hold.
    pub slots: usize,
    /// Tiles of other ranks that this one receives in all: it has memory for no more.
    pub received: usize,
    /// Words of all own tiles.
    pub tile_words: usize,
    /// The ranks that read each other's finished tiles in place.
    pub memories: Memories,
    /// The window in which the ranks of this node have their tiles, where they do.
    pub node: Option<NodeTilePlan>,
    /// Tiles in transit that this rank can hold.
    pub room: TransferRoom,
    /// Words of the operand in a slot.
    pub operand_words: usize,
    /// Words of scratch of one worker.
    pub scratch_words: usize,
    /// Workers.
    pub threads: usize,
    /// Bytes of everything, the result included.
    pub bytes: u64,
}

impl FactorPlan {
    /// Plans the factorisation of `order` rows at a precision in one process.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], [`Error::DimensionOverflow`].
    pub fn new(
        ctx: &Context,
        order: usize,
        precision_bits: u32,
        tile_rows: Option<usize>,
        engine: &dyn TileEngine,
    ) -> Result<FactorPlan> {
        let overflow = Error::DimensionOverflow { rows: order, cols: order, precision_bits };
        if Matrix::bytes_for(order, order, precision_bits) > MAXIMUM_BYTES {
            return Err(overflow);
        }
        let tiling = tiles_for(order, tile_rows, engine.preferred_rows(), ctx.threads());
        let words = |(tile, count)| engine.tile_words(shape_of(&tiling, tile)) as u128 * count as u128;
        let tile_words = usize::try_from(kinds(&tiling).map(words).sum::<u128>());
        let tile_words = tile_words.ok().filter(|&words| words as u64 <= MAXIMUM_BYTES / 8).ok_or(overflow)?;
        let tiles = CholeskyGraph::of(&tiling).tile_count();
        let threads = ctx.threads().min(tiles).max(1);
        let mut plan = FactorPlan {
            tiling,
            rank: 0,
            slots: 0,
            received: 0,
            tile_words,
            memories: Memories::apart(),
            node: None,
            room: TransferRoom::ANY,
            operand_words: 0,
            scratch_words: scratch_words(engine, tiling.tile_size, precision_bits),
            threads,
            bytes: 0,
        };
        let bytes = plan.fixed_bytes(engine, |_| true)
            + Matrix::bytes_for(order, order, precision_bits)
            + tiles as u64 * overhead::TILE
            + threads as u64 * overhead::STRIP * tiling.tile_rows() as u64
            + overhead::CALL;
        plan.bytes = bytes.saturating_add(task_span_bytes(&tiling, threads));
        ctx.admit(plan.bytes)?;
        Ok(plan)
    }

    /// Bytes of own tiles, scratch, tables, of the data for each row of the matrix, and of the data that solves need of
    /// the tiles on the diagonal in the columns that `has_diagonal` names.
    pub fn fixed_bytes(&self, engine: &dyn TileEngine, has_diagonal: impl Fn(usize) -> bool) -> u64 {
        let columns = (0..self.tiling.tile_rows()).filter(|&col| has_diagonal(col));
        let diagonals = columns.map(|col| engine.diagonal_bytes(self.tiling.col_range(col).len())).sum::<u64>();
        Buffer::bytes_for(self.private_words())
            + self.node.as_ref().map_or(0, NodeTilePlan::bytes)
            + self.threads as u64 * (Buffer::bytes_for(self.scratch_words) + engine.call_bytes(self.tiling.tile_size))
            + diagonals
            + engine.table_bytes()
            + 8 * 8 * self.tiling.rows as u64 // exponents, shifts and weights of the rows
    }

    /// The plan for the driver.
    pub fn rank_plan(&self, engine: &dyn TileEngine, options: &DistCholeskyOptions) -> RankPlan {
        let graph = CholeskyGraph::of(&self.tiling);
        let protocol = ProtocolOptions {
            delivery: options.delivery,
            termination: options.termination,
            policy: self.policy(options),
            slots: self.slots,
            workers: self.threads,
            devices: None,
            most_updates: usize::MAX,
            strip_tiles: STRIP_TILES,
            updates_at_once: engine.updates_at_once(),
            loads_ahead: true,
            imports: true,
            room_tiles: graph.tile_count().max(1),
        };
        let (grid, memories, room) = (self.tiling.grid, self.memories.clone(), self.room);
        RankPlan { grid, memories, graph, protocol, spans: options.spans, room }
    }

    /// The order of ready tiles: if no tile is sent, the leftmost first, since no rank waits for a tile in transit, and
    /// all updates of a tile come at once.
    pub fn policy(&self, options: &DistCholeskyOptions) -> Policy {
        let least = self.memories.least_slots(self.tiling.grid, self.tiling.tile_rows());
        options.policy.unwrap_or(if least == 0 { Policy::Leftmost } else { Policy::CriticalPath })
    }

    /// Words of own tiles that lie in this rank's private memory.
    pub fn private_words(&self) -> usize {
        if self.node.is_some() { 0 } else { self.tile_words }
    }

    /// Words of all slots that may come into use.
    pub fn slot_words(&self) -> usize {
        self.slots.min(self.received) * self.operand_words
    }

    /// The kept memory that the call uses.
    pub fn needs(&self) -> WorkspaceNeeds {
        WorkspaceNeeds {
            operand_bytes: Buffer::bytes_for(self.private_words() + self.slot_words()),
            product_bytes: 0,
            workers: self.threads,
            worker_bytes: Buffer::bytes_for(self.scratch_words),
            planned_bytes: self.bytes,
        }
    }
}

/// A device that will run updates of a factorisation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UpdatePlan {
    /// The device.
    pub device: Description,
    /// Name of the kernel of the device.
    pub kernel: &'static str,
    /// Number of moduli on the device.
    pub moduli: usize,
    /// Bytes of a finished tile on the device; a tile stays there as long as memory allows.
    pub tile_bytes: u64,
}

/// The plan of a factorisation: tiles and bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CholeskyPlan {
    /// `cholesky`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Precision of the factor.
    pub precision_bits: u32,
    /// Fixed-point bits of the computation.
    pub working_bits: u32,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Part of `working_bits` for the range of exponents: the bits of the first attempt at entrywise accuracy for
    /// entries of equal magnitude, or the bits that the options require.
    pub range_bits: u32,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Number of residue planes.
    pub primes: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Number of tile rows.
    pub tiles: usize,
    /// Bytes of the tiles: their residues and integers.
    pub tile_bytes: u64,
    /// Bytes of the kernel's tables, which the context keeps.
    pub table_bytes: u64,
    /// Bytes of the factor.
    pub factor_bytes: u64,
    /// Bytes of all memory on the host, including the factor and excluding the matrix.
    pub planned_bytes: u64,
    /// The devices that will run the updates, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<UpdatePlan>,
}

/// The plan of [`crate::cholesky_with`] for `order` rows: tiles and bytes.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. A matrix that is not positive
/// definite needs no more memory; a matrix whose entries differ widely in magnitude needs more bits for entrywise
/// accuracy: if their number is known, pass it as [`CholeskyOptions::range_bits`].
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Matrix, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_cholesky(&ctx, 100, 256, &CholeskyOptions::new())?;
/// assert_eq!((plan.order, plan.precision_bits), (100, 256));
/// assert_eq!(plan.factor_bytes, Matrix::bytes_for(100, 100, 256));
/// assert!(plan.planned_bytes > plan.factor_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Precision`]; [`Error::MemoryLimit`] with the smallest limit that suffices; [`Error::DimensionOverflow`].
pub fn plan_cholesky(
    ctx: &Context,
    order: usize,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<CholeskyPlan> {
    let range = RangeBits::for_accuracy(options.accuracy, order, precision_bits, options.range_bits);
    let (range_bits, check_bytes) = range.map_or((0, 0), |range| (range.bits, entrywise::check_bytes(order)));
    let working_bits = working_bits(precision_bits, ctx.maximum_modulus_bits())? + range_bits;
    let planned = CholeskyPlan {
        operation: "cholesky",
        order,
        precision_bits,
        working_bits,
        accuracy: options.accuracy,
        range_bits,
        kernel: direct::NAME,
        threads: 1,
        primes: 0,
        tile_rows: order,
        tiles: 1,
        tile_bytes: 0,
        table_bytes: 0,
        factor_bytes: Matrix::bytes_for(order, order, precision_bits),
        planned_bytes: 0,
        devices: Vec::new(),
    };
    if let Some(direct) = Direct::choose(ctx, order, working_bits, options) {
        let bytes = direct.bytes(precision_bits) + check_bytes;
        return Ok(CholeskyPlan { planned_bytes: ctx.memory().admit(bytes)?, ..planned });
    }
    let (engine, kernel) = engine_for(ctx, order, options.tile_rows, working_bits)?;
    let plan = FactorPlan::new(&ctx.holding(check_bytes), order, precision_bits, options.tile_rows, &*engine)?;
    let update_plan = |(index, known): (usize, TileTraffic)| UpdatePlan {
        device: known.device,
        kernel: known.kernel,
        moduli: known.moduli,
        tile_bytes: engine.device_tile_bytes(index, plan.tiling.tile_size),
    };
    Ok(CholeskyPlan {
        kernel: kernel.name(),
        threads: plan.threads,
        primes: engine.primes(),
        tile_rows: plan.tiling.tile_size,
        tiles: plan.tiling.tile_rows(),
        tile_bytes: Buffer::bytes_for(plan.tile_words),
        table_bytes: engine.table_bytes(),
        planned_bytes: plan.bytes + check_bytes,
        devices: engine.traffic().into_iter().enumerate().map(update_plan).collect(),
        ..planned
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted tile by tile.
    fn counted(tiling: &TileMap, engine: &dyn TileEngine, threads: usize) -> (usize, u64) {
        let words = tiling.tiles().map(|tile| engine.tile_words(shape_of(tiling, tile))).sum();
        let pieces = tiling.tiles().map(|tile| if threads == 1 { 1 } else { tile.col as u64 + 1 }).sum::<u64>();
        (words, pieces * 6 * size_of::<Span>() as u64)
    }

    #[test]
    fn sums_over_tiles_are_those_of_each_tile() {
        for threads in [1, 2] {
            let ctx = Context::builder().threads(threads).build().unwrap();
            let engine = ctx.tile_engine(ctx.kernel(), working_bits(300, 1 << 20).unwrap()).unwrap();
            for (order, rows) in [(0, 8), (1, 8), (8, 8), (9, 8), (16, 8), (17, 8), (100, 24), (96, 24)] {
                let plan = FactorPlan::new(&ctx, order, 300, Some(rows), &*engine).unwrap();
                let (words, span_bytes_each) = counted(&plan.tiling, &*engine, threads);
                assert_eq!(plan.tile_words, words, "{order} in tiles of {rows}");
                assert_eq!(task_span_bytes(&plan.tiling, threads), span_bytes_each, "{order} in tiles of {rows}");
            }
        }
    }

    #[test]
    fn orders_beyond_all_memory_are_refused_at_once() {
        let ctx = Context::new().unwrap();
        for order in [1 << 30, 1 << 33, usize::MAX / 2, usize::MAX] {
            let refused = plan_cholesky(&ctx, order, 1000, &CholeskyOptions::default());
            assert!(matches!(refused, Err(Error::DimensionOverflow { .. })), "{order}: {}", refused.is_ok());
        }
        let planned = plan_cholesky(&ctx, 1 << 26, 1000, &CholeskyOptions::default()).unwrap();
        assert!(planned.planned_bytes > 1 << 59);
    }
}
