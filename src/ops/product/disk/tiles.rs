//! The result of a product above a disk: tiles that are rounded one after another into buffers and published as
//! objects, and the file that is made of them.

use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::io::{Block, MatrixFileShape, MatrixFileWriter, write_blocks};
use crate::math::float::limbs_for;
use crate::ops::disk_use::progress_of;
use crate::ops::product::segments::{Region, ResultEntries, SegmentIter, tile_segments};
use crate::plan::{BLOCK, BandPair};
use crate::storage::{AnsweredStorage, Completion, GroupName, NewObject, ObjectName, Priority, PublishRequest};
use crate::store::IoBuffer;
use crate::tile::{TileId, TileMap};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The tiles of a result in a storage directory.
pub(super) struct ResultTiles {
    pub objects: AnsweredStorage,
    tiling: TileMap,
    precision_bits: u32,
    /// Tiles that lie there.
    found: FxHashSet<TileId>,
    free: Vec<IoBuffer>,
    /// Buffers that are being written, by the tags of their tiles.
    under_way: FxHashMap<u64, Arc<IoBuffer>>,
}

/// The name of a tile.
fn object_name(tile: TileId) -> ObjectName {
    ObjectName::new(&format!("tile {} {}", tile.row, tile.col)).expect("a short name")
}

/// The tile of a name.
fn tile_of(name: &ObjectName) -> Option<TileId> {
    let (row, col) = name.as_str().strip_prefix("tile ")?.split_once(' ')?;
    Some(TileId { row: row.parse().ok()?, col: col.parse().ok()? })
}

/// What tells requests apart.
fn tag(tile: TileId) -> u64 {
    (tile.row as u64) << 32 | tile.col as u64
}

/// Bytes of a tile of so many entries: heads, then limbs, column by column.
pub(super) fn tile_bytes(entries: usize, precision_bits: u32) -> u64 {
    8 * (entries * (1 + limbs_for(precision_bits))) as u64
}

impl ResultTiles {
    /// Over an open directory, with so many buffers for tiles.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(objects: AnsweredStorage, tiling: TileMap, precision_bits: u32, buffers: usize) -> Result<ResultTiles> {
        let found = objects.storage.objects().iter().filter_map(|object| tile_of(&object.name)).collect();
        let bytes = tile_bytes(tiling.most_entries(), precision_bits) as usize;
        let free = (0..buffers).map(|_| IoBuffer::new(bytes)).collect::<Result<_>>()?;
        Ok(ResultTiles { objects, tiling, precision_bits, found, free, under_way: FxHashMap::default() })
    }

    /// Tiles that lie there.
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// The tiles of some panels of the result's rows or columns, which are whole tiles.
    fn tiles_in(&self, panels: &Range<usize>) -> Range<usize> {
        let tile_panels = self.tiling.tile_size / BLOCK;
        panels.start / tile_panels..panels.end.div_ceil(tile_panels)
    }

    /// The tiles of a pair of bands that are not there yet.
    fn missing(&self, left: &Range<usize>, right: &Range<usize>, is_triangle: bool) -> Vec<TileId> {
        let (rows, cols) = (self.tiles_in(left), self.tiles_in(right));
        let tiles = cols.flat_map(|col| rows.clone().map(move |row| TileId { row, col }));
        tiles.filter(|tile| (!is_triangle || tile.row >= tile.col) && !self.found.contains(tile)).collect()
    }

    /// Whether a pair of bands has a tile that is not there yet.
    pub fn is_wanted(&self, pair: &BandPair) -> bool {
        !self.missing(&pair.left, &pair.right, pair.grid.triangle).is_empty()
    }

    /// Waits for a buffer.
    fn buffer(&mut self) -> Result<IoBuffer> {
        loop {
            if let Some(buffer) = self.free.pop() {
                return Ok(buffer);
            }
            self.take_answer()?;
        }
    }

    /// Takes the next answer of the directory: a tile was written.
    fn take_answer(&mut self) -> Result<()> {
        let Completion { tag, result, .. } = self.objects.answers.wait(|| Ok(()))?.expect("nobody closes the answers");
        let buffer = self.under_way.remove(&tag).expect("it was begun");
        self.free.extend(Arc::into_inner(buffer));
        result?;
        self.found.insert(TileId { row: (tag >> 32) as usize, col: (tag & 0xffff_ffff) as usize });
        Ok(())
    }

    fn publish(&mut self, tile: TileId, buffer: IoBuffer) -> Result<()> {
        let (buffer, tag) = (Arc::new(buffer), tag(tile));
        let bytes = tile_bytes(self.tiling.entries(tile), self.precision_bits);
        let objects = vec![NewObject { name: object_name(tile), buffer: buffer.clone(), start: 0, bytes }];
        let group = GroupName::new(&format!("tile-{}-{}", tile.col, tile.row)).expect("a short name");
        self.under_way.insert(tag, buffer);
        self.objects.storage.publish(PublishRequest { group, objects, tag, priority: Priority::default() })
    }

    /// Waits until all tiles are written.
    ///
    /// # Errors
    /// That of the first tile that could not be written.
    pub fn finish(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        while !self.under_way.is_empty() {
            outcome = outcome.and(self.take_answer());
        }
        outcome
    }

    fn shape(&self) -> MatrixFileShape {
        let TileMap { rows, cols, triangle, .. } = self.tiling;
        MatrixFileShape { rows, cols, precision_bits: self.precision_bits, symmetric: triangle.is_some() }
    }

    /// Writes the result where nothing is contracted.
    ///
    /// # Errors
    /// Those of the file; [`crate::Error::Cancelled`].
    pub fn write_zeros(&self, ctx: &Context, path: &Path) -> Result<()> {
        write_blocks(path, self.shape(), progress_of(ctx), |_| Ok(()))
    }

    /// Writes the result to `path`, when all tiles are there.
    ///
    /// # Errors
    /// Those of reading tiles and of the file; [`crate::Error::Cancelled`].
    pub fn write(&mut self, ctx: &Context, path: &Path) -> Result<()> {
        let shape = self.shape();
        let mut locals = self.free.drain(..).take(ctx.threads()).map(Some).collect::<Vec<_>>();
        let this = &*self;
        let meter = Meter::new(ctx, this.tiling.tiles().map(|tile| this.tiling.entries(tile) as u64).sum());
        write_blocks(path, shape, progress_of(ctx), |writer| {
            let mut tiles = this.tiling.tiles();
            ctx.install(|| {
                drive::parallel_for(
                    &mut locals,
                    |_| tiles.next(),
                    |local, tile| {
                        let buffer = local.take().expect("the last tile left it");
                        *local = Some(this.write_tile(writer, tile, buffer)?);
                        meter.add("write", this.tiling.entries(tile) as u64)
                    },
                )
            })
        })
    }

    fn write_tile(&self, writer: &MatrixFileWriter<'_>, tile: TileId, buffer: IoBuffer) -> Result<IoBuffer> {
        let read = self.objects.read_now(object_name(tile), buffer, tag(tile))?;
        let (rows, cols) = (self.tiling.row_range(tile.row), self.tiling.col_range(tile.col));
        let (heads, rest) = read.words().split_at(rows.len() * cols.len());
        let limbs = &rest[..heads.len() * limbs_for(self.precision_bits)];
        writer.write_block(&Block { rows, cols }, heads, limbs)?;
        Ok(read)
    }
}

impl ResultEntries for ResultTiles {
    fn fill(&mut self, region: Region, fill: &mut dyn FnMut(SegmentIter<'_>) -> Result<()>) -> Result<()> {
        let left = region.first_left..region.first_left + region.grid.rows;
        let right = region.first_right..region.first_right + region.grid.cols;
        let tile_blocks = self.tiling.tile_size / BLOCK;
        for tile in self.missing(&left, &right, region.grid.triangle) {
            let mut buffer = self.buffer()?;
            let ((rows, _), entries) = (self.tiling.shape(tile), self.tiling.entries(tile));
            let words = &mut buffer.words_mut()[..entries * (1 + limbs_for(self.precision_bits))];
            if region.grid.triangle {
                // What a triangle does not have is 0 in its tiles.
                words.fill(0);
            }
            let first = (tile.row * tile_blocks, tile.col * tile_blocks);
            fill(Box::new(tile_segments(region, first, rows, words.split_at_mut(entries))))?;
            self.publish(tile, buffer)?;
        }
        Ok(())
    }
}
