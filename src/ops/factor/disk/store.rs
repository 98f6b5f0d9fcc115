//! The factor as a file: finished tiles are read once more, rounded, and written where they belong.
//!
//! Over ranks each rounds its own tiles, and rank 0 writes them, in the order of the tiles.

use super::DiskFactoring;
use super::problem::ROOT;
use crate::comm::{Incoming, Outgoing, Transport, agree};
use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::io::{Block, MatrixFileShape, MatrixFileWriter, write_blocks};
use crate::math::float::limbs_for;
use crate::ops::disk_use::progress_of;
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
    let (order, precision_bits, world) = (call.problem.order, call.problem.precision_bits, call.place.world);
    let shape = MatrixFileShape { rows: order, cols: order, precision_bits, symmetric: false };
    let work = TileWork::new(&*call.engine, &call.tiling, call.problem.working_bits, &call.problem.exponents);
    let rounding = Rounding { work, home, precision_bits };
    let words = call.tiling.most_entries() * (1 + limbs_for(precision_bits));
    let local = || Local { buffer: home.take_read_buffer(), words: vec![0; words] };
    if world.size() == 1 {
        let locals = (0..call.threads()).map(|_| local()).filter(|local| local.buffer.is_some()).collect();
        return write_blocks(path, shape, progress_of(ctx), |writer| rounding.write_all(ctx, writer, locals));
    }
    if world.rank() != ROOT {
        agree(world, Ok(()))?;
        return agree(world, rounding.over_ranks(world, None, local())).and_then(|()| agree(world, Ok(())));
    }
    // Whether all ranks have come through the tiles, once they have begun.
    let mut through = None;
    let written = write_blocks(path, shape, progress_of(ctx), |writer| {
        agree(world, Ok(()))?;
        let outcome = agree(world, rounding.over_ranks(world, Some(writer), local()));
        through = Some(outcome.is_ok());
        outcome
    });
    // The others wait for the beginning, or for the end of the file.
    if through == Some(false) { written } else { agree(world, written) }
}

impl Rounding<'_> {
    /// All tiles, by all workers.
    fn write_all(&self, ctx: &Context, writer: &MatrixFileWriter<'_>, mut locals: Vec<Local>) -> Result<()> {
        let tiling = self.work.tiling;
        let units = |tile: TileId| tiling.entries(tile) as u64;
        let meter = Meter::new(ctx, tiling.tiles().map(units).sum());
        let mut tiles = tiling.tiles();
        ctx.install(|| {
            drive::parallel_for(
                &mut locals,
                |_| tiles.next(),
                |local, tile| {
                    self.round(tile, local)?;
                    self.write(tile, writer, local)?;
                    meter.add("write", units(tile))
                },
            )
        })
    }

    /// All tiles, each by the rank that has it; the others are sent to rank 0. An error does not keep a rank from its
    /// part of the transfers.
    fn over_ranks(&self, world: &dyn Transport, writer: Option<&MatrixFileWriter<'_>>, mut local: Local) -> Result<()> {
        let (tiling, rank) = (self.work.tiling, world.rank());
        let mut outcome = Ok(());
        for tile in tiling.tiles() {
            let owner = tiling.grid.owner(tile);
            if owner == rank && outcome.is_ok() {
                outcome = self.round(tile, &mut local);
            }
            let words = self.words(tile);
            match (owner == ROOT, owner == rank, writer) {
                (false, true, _) => {
                    world.exchange(&[Outgoing { to: ROOT, words: &local.words[..words] }], &mut [])?;
                }
                (false, false, Some(_)) => {
                    world.exchange(&[], &mut [Incoming { from: owner, words: &mut local.words[..words] }])?;
                }
                _ => {}
            }
            if let Some(writer) = writer.filter(|_| outcome.is_ok()) {
                outcome = self.write(tile, writer, &mut local);
            }
        }
        outcome
    }

    /// Words of the heads and limbs of a tile.
    fn words(&self, tile: TileId) -> usize {
        let (rows, cols) = self.work.tiling.shape(tile);
        rows * cols * (1 + limbs_for(self.precision_bits))
    }

    /// Reads a tile and rounds it.
    fn round(&self, tile: TileId, local: &mut Local) -> Result<()> {
        let buffer = local.buffer.take().expect("the last tile left it");
        let read = self.home.read_now(tile, buffer)?;
        let (rows, cols) = self.work.tiling.shape(tile);
        let words = &mut local.words[..self.words(tile)];
        if tile.row == tile.col {
            words.fill(0);
        }
        let payload = &read.words()[..self.work.payload_words(tile)];
        self.work.round_payload(tile, payload, words.split_at_mut(rows * cols), self.precision_bits)?;
        local.buffer = Some(read);
        Ok(())
    }

    fn write(&self, tile: TileId, writer: &MatrixFileWriter<'_>, local: &mut Local) -> Result<()> {
        let (rows, cols) = (self.work.tiling.row_range(tile.row), self.work.tiling.row_range(tile.col));
        let (heads, limbs) = local.words[..self.words(tile)].split_at(rows.len() * cols.len());
        writer.write_block(&Block { rows, cols }, heads, limbs)
    }
}
