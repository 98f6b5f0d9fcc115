//! The factor as a file: finished tiles are read once more and rounded.

use super::DiskFactoring;
use crate::context::Context;
use crate::error::Result;
use crate::io::{Block, MatrixFileShape};
use crate::math::float::limbs_for;
use crate::ops::disk::{StoredBlocks, write_file};
use crate::ops::factor::home::Home;
use crate::ops::factor::tile_work::TileWork;
use crate::store::IoBuffer;
use crate::tile::TileId;
use std::path::Path;

/// What one worker has for itself.
struct Local {
    buffer: Option<IoBuffer>,
    /// Heads and limbs of a tile.
    words: Vec<u64>,
}

/// Tiles of the storage, as entries of the factor.
struct Rounding<'a> {
    work: TileWork<'a>,
    home: &'a Home,
    precision_bits: u32,
}

/// Writes the whole factor to `path`, zeros above the diagonal. Collective.
///
/// # Errors
/// [`crate::Error::ExponentRange`] with the place in the matrix; [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub(super) fn write_factor(ctx: &Context, path: &Path, call: &DiskFactoring<'_>, home: &Home) -> Result<()> {
    let precision_bits = call.problem.precision_bits;
    let work = TileWork::new(&*call.engine, &call.tiling, call.problem.working_bits, &call.problem.exponents);
    let rounding = Rounding { work, home, precision_bits };
    let words = call.tiling.most_entries() * (1 + limbs_for(precision_bits));
    let local = || Local { buffer: home.take_read_buffer(), words: vec![0; words] };
    let locals = (0..call.threads()).map(|_| local()).filter(|local| local.buffer.is_some()).collect();
    write_file((ctx, call.place.here.world), path, &rounding, locals)
}

impl StoredBlocks for Rounding<'_> {
    type Space = Local;

    fn shape(&self) -> MatrixFileShape {
        let order = self.work.tiling.rows;
        MatrixFileShape { rows: order, cols: order, precision_bits: self.precision_bits, symmetric: false }
    }

    fn blocks(&self) -> Box<dyn Iterator<Item = TileId> + Send + '_> {
        Box::new(self.work.tiling.tiles())
    }

    fn block(&self, tile: TileId) -> Block {
        Block { rows: self.work.tiling.row_range(tile.row), cols: self.work.tiling.row_range(tile.col) }
    }

    fn owner(&self, tile: TileId) -> usize {
        self.work.tiling.grid.owner(tile)
    }

    /// Reads a tile and rounds it.
    fn read(&self, tile: TileId, local: &mut Local) -> Result<()> {
        self.home.read_now(tile, &mut local.buffer)?;
        let entries = self.work.tiling.entries(tile);
        let words = &mut local.words[..entries * (1 + limbs_for(self.precision_bits))];
        if tile.row == tile.col {
            words.fill(0);
        }
        let read = local.buffer.as_ref().expect("a read leaves its buffer");
        let payload = &read.words()[..self.work.payload_words(tile)];
        self.work.round_payload(tile, payload, words.split_at_mut(entries), self.precision_bits)
    }

    fn words<'s>(&self, local: &'s mut Local) -> &'s mut [u64] {
        &mut local.words
    }
}
