//! The factor as a file: finished tiles are read once more, rounded, and written where they belong.

use super::DiskFactoring;
use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::io::{Block, MatrixFileShape, MatrixFileWriter, write_blocks};
use crate::math::float::limbs_for;
use crate::ops::factor::home::Home;
use crate::ops::factor::tile_work::TileWork;
use crate::store::IoBuffer;
use crate::tile::TileId;
use std::path::Path;

/// What one worker has for itself.
struct Local {
    buffer: Option<IoBuffer>,
    heads: Vec<u64>,
    limbs: Vec<u64>,
}

/// Writes the whole factor to `path`, zeros above the diagonal.
///
/// # Errors
/// [`crate::Error::ExponentRange`] with the place in the matrix; [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub(super) fn write_factor(ctx: &Context, path: &Path, call: &DiskFactoring<'_>, home: &Home) -> Result<()> {
    let (order, precision_bits) = (call.problem.order, call.problem.precision_bits);
    let shape = MatrixFileShape { rows: order, cols: order, precision_bits, symmetric: false };
    let work = TileWork::new(&*call.engine, &call.tiling, call.problem.working_bits, &call.problem.exponents);
    let most = call.tiling.most_entries();
    let local = || Local {
        buffer: home.take_read_buffer(),
        heads: vec![0; most],
        limbs: vec![0; most * limbs_for(precision_bits)],
    };
    let mut locals = (0..call.threads()).map(|_| local()).filter(|local| local.buffer.is_some()).collect::<Vec<_>>();
    let units = |tile: TileId| call.tiling.entries(tile) as u64;
    let meter = Meter::new(ctx, call.tiling.tiles().map(units).sum());
    write_blocks(path, shape, super::progress_of(ctx), |writer| {
        let mut tiles = call.tiling.tiles();
        ctx.install(|| {
            drive::parallel_for(
                &mut locals,
                |_| tiles.next(),
                |local, tile| {
                    write_tile(&work, (home, writer), tile, local)?;
                    meter.add("write", units(tile))
                },
            )
        })
    })
}

fn write_tile(
    work: &TileWork<'_>,
    (home, writer): (&Home, &MatrixFileWriter<'_>),
    tile: TileId,
    local: &mut Local,
) -> Result<()> {
    let buffer = local.buffer.take().expect("the last tile left it");
    let read = home.read_now(tile, buffer)?;
    let (rows, cols) = (work.tiling.row_range(tile.row), work.tiling.row_range(tile.col));
    let entries = rows.len() * cols.len();
    let width = local.limbs.len() / local.heads.len();
    let (heads, limbs) = (&mut local.heads[..entries], &mut local.limbs[..entries * width]);
    if tile.row == tile.col {
        heads.fill(0);
        limbs.fill(0);
    }
    let payload = &read.words()[..work.payload_words(tile)];
    let bits = writer.precision_bits();
    work.round_payload(tile, payload, (heads, limbs), bits)?;
    local.buffer = Some(read);
    writer.write_block(&Block { rows, cols }, heads, limbs)
}
