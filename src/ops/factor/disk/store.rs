//! The factor as a file: finished tiles are read once more and converted to its entries.

use super::call::DiskCall;
use crate::error::Result;
use crate::io::{Block, MatrixFileShape};
use crate::math::float::limbs_for;
use crate::ops::disk::{StoredBlocks, write_file};
use crate::ops::factor::tile_file::TileFile;
use crate::store::IoBuffer;
use crate::tile::{TileId, TileMap};
use std::path::Path;

/// The private memory of one worker.
struct StoreMemory {
    buffer: Option<IoBuffer>,
    /// Heads and limbs of a tile.
    words: Vec<u64>,
}

/// Makes entries of the words of a finished tile: heads and limbs, column by column; those above the diagonal
/// are 0 before.
pub(super) type MakeEntries<'a> = dyn Fn(TileId, &[u64], (&mut [u64], &mut [u64])) -> Result<()> + Sync + 'a;

/// Tiles of the storage, as entries of the factor.
struct FinishedEntries<'a> {
    tiling: &'a TileMap,
    tile_file: &'a TileFile,
    precision_bits: u32,
    make_entries: &'a MakeEntries<'a>,
}

/// Writes the whole factor to `path`, with `precision_bits` bits and zeros above the diagonal. Collective.
///
/// # Errors
/// The errors of `make_entries`; [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub(super) fn write_factor(
    call: &DiskCall<'_>,
    path: &Path,
    tile_file: &TileFile,
    precision_bits: u32,
    make_entries: &MakeEntries<'_>,
) -> Result<()> {
    let finished = FinishedEntries { tiling: &call.tiling, tile_file, precision_bits, make_entries };
    let words = call.tiling.most_entries() * (1 + limbs_for(precision_bits));
    let local = || StoreMemory { buffer: tile_file.take_read_buffer(), words: vec![0; words] };
    let locals = (0..call.threads()).map(|_| local()).filter(|local| local.buffer.is_some()).collect();
    write_file(call.site, path, &finished, locals)
}

impl StoredBlocks for FinishedEntries<'_> {
    type Space = StoreMemory;

    fn shape(&self) -> MatrixFileShape {
        let order = self.tiling.rows;
        MatrixFileShape { rows: order, cols: order, precision_bits: self.precision_bits, symmetric: false }
    }

    fn blocks(&self) -> Box<dyn Iterator<Item = TileId> + Send + '_> {
        Box::new(self.tiling.tiles())
    }

    fn block(&self, tile: TileId) -> Block {
        Block { rows: self.tiling.row_range(tile.row), cols: self.tiling.row_range(tile.col) }
    }

    fn owner(&self, tile: TileId) -> usize {
        self.tiling.grid.owner(tile)
    }

    /// Reads a tile and makes its entries.
    fn read(&self, tile: TileId, local: &mut StoreMemory) -> Result<()> {
        self.tile_file.read_now(tile, &mut local.buffer)?;
        let entries = self.tiling.entries(tile);
        let words = &mut local.words[..entries * (1 + limbs_for(self.precision_bits))];
        if tile.row == tile.col {
            words.fill(0);
        }
        let read = local.buffer.as_ref().expect("a read leaves its buffer");
        (self.make_entries)(tile, self.tile_file.finished(tile, read.words()), words.split_at_mut(entries))
    }

    fn words<'s>(&self, local: &'s mut StoreMemory) -> &'s mut [u64] {
        &mut local.words
    }
}
