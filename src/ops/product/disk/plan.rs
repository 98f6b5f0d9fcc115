//! How the memory of a product above a disk is shared out, and the bytes that it reads.

use super::scan::COLUMN_BYTES;
use super::tiles::tile_bytes;
use super::{FileProduct, OutOfCoreProductOptions};
use crate::context::Context;
use crate::error::Result;
use crate::io::{BlockStream, BlockStreamOptions};
use crate::ops::product::plan::{Plan, PlanRequest, PlannedRun, plan_above_disk};
use crate::ops::product::problem::Bits;
use crate::ops::product::schedule::{Schedule, Side};
use crate::ops::product::size::ProductSize;
use crate::plan::{BLOCK, DiskInput, rank_chunk};
use crate::storage::{Caching, StorageContents, StorageOptions};
use crate::store::IoBuffer;
use crate::tile::{RankGrid, TileMap};
use serde::Serialize;
use std::ops::Range;

/// Rows and columns of a tile of a large result: a few megabytes, written in some milliseconds.
const TILE_SIZE: usize = 256;

/// A smaller result is cut into about so many tiles in its longer direction.
const LEAST_TILES: usize = 8;

/// Pieces of operands in memory: one in use, one being read; or two being read while bands are multiplied.
const PIECES: usize = 2;

/// Bytes for each tile of the result, in memory or not: whether it is there.
const TILE_BYTES: u64 = 64;

/// Bytes of the name of a tile and of its group, at most.
const NAME_BYTES: u64 = 64;

/// Bytes beside what is counted one by one: the pass over a file, its checksum at the end, stacks.
const CALL_BYTES: u64 = 6 << 20;

/// The plan of a product above a disk.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreProductPlan {
    /// Rows and columns of a tile of the result.
    pub tile_size: usize,
    /// Tiles of the result.
    pub tiles: usize,
    /// Bytes of the pass over the operands before the product.
    pub scan_bytes: u64,
    /// Bytes of the operands that the product reads, tiles of an earlier run not counted.
    pub read_bytes: u64,
    /// The fewest bytes that bands of this width read: each pair of them once, for all primes.
    pub least_read_bytes: u64,
    /// Bands, chunks, and bytes of memory.
    #[serde(flatten)]
    pub product: Plan,
}

impl FileProduct {
    /// The tiles of the result: they depend on its shape alone, so that a run under another limit finds them.
    pub(super) fn tiling(&self, options: &OutOfCoreProductOptions) -> TileMap {
        let size = self.size();
        let wanted = options.tile_size.unwrap_or_else(|| (size.rows.max(size.cols) / LEAST_TILES).min(TILE_SIZE));
        let tile_size = wanted.max(1).next_multiple_of(BLOCK);
        match size.triangle {
            true => TileMap::symmetric(size.rows, tile_size),
            false => {
                let grid = RankGrid { rows: 1, cols: 1 };
                TileMap { rows: size.rows, cols: size.cols, tile_size, grid, triangle: None }
            }
        }
    }

    /// Buffers for tiles of the result: one for each worker when the file is written.
    pub(super) fn tile_buffers(&self, ctx: &Context) -> usize {
        ctx.threads().max(2)
    }

    fn widest_entry(&self) -> usize {
        1 + self.left.file.limbs().max(self.right().file.limbs())
    }

    /// How pieces of so many panels and rows are read.
    pub(super) fn stream(&self, panels: usize, rows: usize, caching: Caching) -> BlockStreamOptions {
        let size = self.size();
        let cols = (panels * BLOCK).min(size.rows.max(size.cols));
        let buffer_words = cols * rows * self.widest_entry();
        BlockStreamOptions { buffers: PIECES, buffer_words, forget: caching != Caching::Cached }
    }

    fn stream_bytes(&self, panels: usize, rows: usize) -> u64 {
        let options = self.stream(panels, rows, Caching::default());
        let mirrored = self.left.file.is_symmetric() || self.right().file.is_symmetric();
        let widest = if mirrored { (panels * BLOCK).max(rows) } else { 0 };
        BlockStream::memory_bytes(&options, widest, self.widest_entry() - 1)
    }

    fn fixed_bytes(&self, tiling: &TileMap, caching: Caching) -> u64 {
        let tiles = tiling.tiles().count() as u64;
        let contents = StorageContents { groups: tiles, objects: tiles, name_bytes: NAME_BYTES * tiles };
        let storage = StorageOptions { caching, ..StorageOptions::default() }.memory_bytes(&contents);
        let size = self.size();
        storage + TILE_BYTES * tiles + COLUMN_BYTES * (size.rows + size.cols) as u64 + CALL_BYTES
    }

    /// The plan under the context's limit.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the least limit that would do.
    pub(super) fn plan(
        &self,
        ctx: &Context,
        tiling: &TileMap,
        caching: Caching,
    ) -> Result<(PlannedRun, OutOfCoreProductPlan)> {
        let (size, bits) = (self.size(), Bits::scaled(self.precision_bits, self.size().contracted));
        // Where there is nothing to multiply the plan is that of a single entry.
        let (contracted, rows, cols) = (size.contracted.max(1), size.rows.max(1), size.cols.max(1));
        let size = ProductSize { contracted, rows, cols, ..size };
        let tile_bytes = tile_bytes(tiling.most_entries(), self.precision_bits);
        let request = PlanRequest {
            operation: self.operation,
            size,
            bits,
            result_bytes: self.tile_buffers(ctx) as u64 * IoBuffer::memory_bytes(tile_bytes),
            cut: None,
            on_cpu: true,
        };
        let disk = DiskInput {
            piece_bytes: &|panels, rows| self.stream_bytes(panels, rows),
            entry_bytes: 8 * self.widest_entry() as u64,
            tile_panels: tiling.tile_size / BLOCK,
            fixed_bytes: self.fixed_bytes(tiling, caching),
        };
        let planned = plan_above_disk(ctx, &request, disk)?;
        let plan = OutOfCoreProductPlan {
            tile_size: tiling.tile_size,
            tiles: tiling.tiles().count(),
            scan_bytes: self.scan_bytes(),
            read_bytes: self.read_bytes(&planned.schedule, planned.cutting.chunks),
            least_read_bytes: self.read_bytes(&planned.schedule.clone().in_one_batch(), planned.cutting.chunks),
            product: planned.plan.clone(),
        };
        Ok((planned, plan))
    }

    /// Bytes of the passes over the operands: all heads twice, all limbs once.
    fn scan_bytes(&self) -> u64 {
        let files = [Some(&self.left), self.right.as_ref()].into_iter().flatten().map(|operand| &operand.file);
        files.map(|file| 8 * file.info().stored_entries * (2 + file.limbs() as u64)).sum()
    }

    /// Bytes of some rows of some panels of an operand.
    fn piece_bytes(&self, side: Side, panels: &Range<usize>, rows: usize) -> u64 {
        let operand = if side == Side::Left { &self.left } else { self.right() };
        let cols = (panels.end * BLOCK).min(operand.cols()) - panels.start * BLOCK;
        8 * (cols * rows * (1 + operand.file.limbs())) as u64
    }

    fn read_bytes(&self, schedule: &Schedule, chunks: usize) -> u64 {
        let rows = |chunk: usize| rank_chunk(self.size().contracted, chunks, chunk).len();
        schedule.loads().map(|load| self.piece_bytes(load.side, &load.panels, rows(load.step.chunk))).sum()
    }
}
