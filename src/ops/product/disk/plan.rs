//! The division of memory in an out-of-core product, and the bytes that it reads.

use super::OutOfCoreProductOptions;
use super::operands::FileProduct;
use crate::context::Context;
use crate::error::Result;
use crate::io::{BlockStream, BlockStreamOptions};
use crate::ops::disk::{LARGEST_TILE, ResultCut};
use crate::ops::product::plan::{Plan, PlanRequest, PlannedRun, plan_above_disk};
use crate::ops::product::problem::{Bits, ProductSize};
use crate::ops::product::run::{ProductSchedule, Side};
use crate::plan::overhead;
use crate::plan::{BLOCK, BandPair, BlockGrid, DiskInput, assign, band_pairs, rank_chunk};
use crate::site::{Site, Team};
use crate::storage::{Caching, StorageContents, StorageOptions};
use crate::store::IoBuffer;
use serde::Serialize;
use std::ops::Range;

/// Rows and columns of a tile of a large result: a few megabytes, written in some milliseconds.
const TILE_SIZE: usize = 256;

/// Approximate number of tiles of a smaller result in its longer direction.
const LEAST_TILES: usize = 8;

/// Pieces of operands in memory: one in use, one being read; or two being read while bands are multiplied.
const PIECES: usize = 2;

/// Largest share of a product relative to the mean share for which the shares count as even.
const MOST_UNEVEN: f64 = 1.2;

/// The largest number of bands for each rank.
const MOST_BANDS_OF_RANK: usize = 4;

/// The plan of an out-of-core product.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreProductPlan {
    /// Rows and columns of a tile of the result.
    pub tile_size: usize,
    /// Tiles of the result.
    pub tiles: usize,
    /// Bytes read by the pass over the operands before the product.
    pub scan_bytes: u64,
    /// Bytes of the operands that the product reads, assuming that no tile exists from an earlier run.
    pub read_bytes: u64,
    /// The least possible number of bytes read with bands of this width: each pair of bands is read once for all
    /// primes.
    pub least_read_bytes: u64,
    /// Bands, chunks, and bytes of memory.
    #[serde(flatten)]
    pub product: Plan,
}

impl FileProduct {
    /// The tiles of the result: they depend only on its shape, so that a run under another limit finds them.
    pub(super) fn cut(&self, options: &OutOfCoreProductOptions) -> ResultCut {
        let ProductSize { rows, cols, triangle, .. } = self.size();
        let wanted = options.tile_size.unwrap_or_else(|| (rows.max(cols) / LEAST_TILES).min(TILE_SIZE));
        let tile_size = wanted.clamp(1, LARGEST_TILE).next_multiple_of(BLOCK);
        ResultCut { rows, cols, block_rows: tile_size, block_cols: tile_size, is_triangle: triangle }
    }

    /// Buffers for tiles of the result: one for each worker when the file is written.
    pub(super) fn tile_buffers(&self, ctx: &Context) -> usize {
        ctx.threads().max(2)
    }

    fn widest_entry(&self) -> usize {
        1 + self.left.file.limbs().max(self.right().file.limbs())
    }

    /// The reading of pieces of `panels` panels and `rows` rows.
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

    fn fixed_bytes(&self, cut: &ResultCut, caching: Caching) -> u64 {
        let tiles = cut.blocks().count() as u64;
        let contents = StorageContents { groups: tiles, objects: tiles, name_bytes: overhead::NAME * tiles };
        let storage = StorageOptions { caching, ..StorageOptions::default() }.memory_bytes(&contents);
        let size = self.size();
        storage
            + overhead::RESULT_TILE * tiles
            + overhead::FILE_COLUMN * (size.rows + size.cols) as u64
            + overhead::FILE_CALL
    }

    /// The plan of one process.
    ///
    /// # Errors
    /// The errors of the check of the operands, and of [`FileProduct::plan`].
    pub fn planned(&self, ctx: &Context, options: &OutOfCoreProductOptions) -> Result<OutOfCoreProductPlan> {
        self.check(ctx)?;
        Ok(self.plan(Site::one_process(ctx), ctx, &self.cut(options), options.caching)?.1)
    }

    /// The plan within `share`, the context with this rank's share of the limit of the site. Collective.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
    pub(super) fn plan(
        &self,
        site: Site<'_>,
        share: &Context,
        cut: &ResultCut,
        caching: Caching,
    ) -> Result<(PlannedRun, OutOfCoreProductPlan)> {
        let mut most = widest_bands(self.size().panels(), cut.block_rows / BLOCK, site.team.size());
        let planned = loop {
            let planned = site.agreed(site.of_node(self.plan_in_bands(share, cut, caching, most)))?;
            // All ranks use the same bands, chosen for the rank with the least memory.
            let own = planned.run.cutting.cut.band_panels as u64;
            let least = site.smallest(own)?;
            if least == site.largest(own)? {
                break planned;
            }
            most = least as usize;
        };
        let schedule = of_rank(planned.run.schedule.clone(), site.team);
        let plan = OutOfCoreProductPlan {
            tile_size: cut.block_rows,
            tiles: cut.blocks().count(),
            scan_bytes: self.scan_bytes(),
            read_bytes: self.read_bytes(&schedule, planned.run.cutting.chunks),
            least_read_bytes: self.read_bytes(&schedule.in_one_batch(), planned.run.cutting.chunks),
            product: planned.plan.clone(),
        };
        Ok((planned, plan))
    }

    /// The plan with bands of at most `most_band_panels` panels.
    fn plan_in_bands(
        &self,
        ctx: &Context,
        cut: &ResultCut,
        caching: Caching,
        most_band_panels: usize,
    ) -> Result<PlannedRun> {
        let (size, bits) = (self.size(), Bits::scaled(self.precision_bits, self.size().contracted));
        // For an empty product the plan is that of a single entry.
        let (contracted, rows, cols) = (size.contracted.max(1), size.rows.max(1), size.cols.max(1));
        let size = ProductSize { contracted, rows, cols, ..size };
        let tile_bytes = cut.most_bytes(self.precision_bits);
        let request = PlanRequest {
            result_bytes: self.tile_buffers(ctx) as u64 * IoBuffer::memory_bytes(tile_bytes),
            on_cpu: true,
            ..PlanRequest::new(size, bits)
        };
        let disk = DiskInput {
            piece_bytes: &|panels, rows| self.stream_bytes(panels, rows),
            entry_bytes: 8 * self.widest_entry() as u64,
            tile_panels: cut.block_rows / BLOCK,
            most_band_panels,
            fixed_bytes: self.fixed_bytes(cut, caching),
        };
        plan_above_disk(ctx, &request, disk)
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

    fn read_bytes(&self, schedule: &ProductSchedule, chunks: usize) -> u64 {
        let rows = |chunk: usize| rank_chunk(self.size().contracted, chunks, chunk).len();
        schedule.loads().map(|load| self.piece_bytes(load.side, &load.panels, rows(load.step.chunk))).sum()
    }
}

/// The widest bands, of whole tiles, in which `ranks` ranks have nearly equal shares of the pairs.
fn widest_bands(panels: BlockGrid, tile_panels: usize, ranks: usize) -> usize {
    let tiles = panels.rows.max(panels.cols).div_ceil(tile_panels).max(1);
    let uneven = |bands: usize| {
        let costs = band_pairs(panels, tiles.div_ceil(bands) * tile_panels).map(|pair| work(&pair));
        assign(&costs.collect::<Vec<_>>(), ranks).max_over_mean()
    };
    let most = tiles.min(MOST_BANDS_OF_RANK * ranks);
    let fair = (1..=most).find(|&bands| uneven(bands) <= MOST_UNEVEN);
    let bands = fair.unwrap_or_else(|| (1..=most).min_by(|a, b| uneven(*a).total_cmp(&uneven(*b))).unwrap_or(1));
    tiles.div_ceil(bands) * tile_panels
}

/// The work of a pair of bands, in blocks.
fn work(pair: &BandPair) -> u64 {
    pair.grid.len() as u64
}

/// The pairs of a rank: all ranks compute the same shares.
pub(super) fn of_rank(schedule: ProductSchedule, team: &Team) -> ProductSchedule {
    let ranks = team.size();
    if ranks == 1 {
        return schedule;
    }
    let costs = schedule.pairs().map(|pair| work(&pair)).collect::<Vec<_>>();
    let mut owners = assign(&costs, ranks).worker.into_iter();
    schedule.of_pairs(|_| owners.next() == Some(team.rank()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_nearly_equal_shares_in_the_widest_bands() {
        let bands = |(rows, cols), triangle, ranks| widest_bands(BlockGrid { rows, cols, triangle }, 4, ranks);
        // Bands of 24, 24 and 16 panels: six pairs, whose largest share is 1.15 times the mean.
        assert_eq!((bands((64, 64), true, 1), bands((64, 64), true, 2), bands((64, 64), true, 4)), (64, 32, 24));
        assert_eq!((bands((64, 64), false, 4), bands((64, 8), false, 4), bands((8, 64), false, 1)), (32, 16, 64));
        // One rank has all of a single tile, and no band is narrower than a tile.
        assert_eq!((bands((3, 3), true, 4), bands((0, 0), true, 2), bands((9, 1), false, 50)), (4, 4, 4));
    }
}
