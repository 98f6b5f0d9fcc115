//! A result as a file: its blocks are read from the storage once more, and written to their places.
//!
//! Over ranks each reads the blocks that it has, and rank 0 writes them, in the order of the blocks.

use super::progress_of;
use crate::comm::{Incoming, Outgoing};
use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::io::{Block, MatrixFileShape, MatrixFileWriter, write_blocks};
use crate::math::float::limbs_for;
use crate::site::{ROOT, Site};
use crate::tile::TileId;
use std::path::Path;

/// Blocks of a result in storage directories.
pub(crate) trait StoredBlocks: Sync {
    /// The memory into which a worker reads a block.
    type Space: Send;

    /// What the file is to hold.
    fn shape(&self) -> MatrixFileShape;

    /// All blocks, the same on all ranks.
    fn blocks(&self) -> Box<dyn Iterator<Item = TileId> + Send + '_>;

    /// The entries of a block.
    fn block(&self, id: TileId) -> Block;

    /// The rank that has a block.
    fn owner(&self, id: TileId) -> usize;

    /// Reads a block of this rank.
    ///
    /// # Errors
    /// The errors of the storage, and of rounding.
    fn read(&self, id: TileId, space: &mut Self::Space) -> Result<()>;

    /// The words that blocks are read into, heads and then limbs; those of any block fit.
    fn words<'s>(&self, space: &'s mut Self::Space) -> &'s mut [u64];
}

/// Writes the file of a result, with one worker for each space; each rank has at least one; entries outside the blocks
/// are 0. Collective.
///
/// # Errors
/// The errors of [`StoredBlocks::read`]; [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub(crate) fn write_file<S: StoredBlocks>(
    site: Site<'_>,
    path: &Path,
    stored: &S,
    mut spaces: Vec<S::Space>,
) -> Result<()> {
    by_root(site, path, stored.shape(), |writer| match writer {
        Some(writer) if site.team.size() == 1 => write_all(site.ctx, writer, stored, &mut spaces),
        writer => {
            let space = spaces.first_mut().expect("each rank can hold a block");
            over_ranks(site, writer, stored, space)
        }
    })
}

/// Writes a file whose entries are all 0. Collective.
///
/// # Errors
/// As [`write_file`].
pub(crate) fn write_zeros(site: Site<'_>, path: &Path, shape: MatrixFileShape) -> Result<()> {
    by_root(site, path, shape, |_| Ok(()))
}

/// Writes a file on rank 0 with the help of all; `body` is collective, and has the writer on rank 0.
fn by_root(
    site: Site<'_>,
    path: &Path,
    shape: MatrixFileShape,
    body: impl FnOnce(Option<&MatrixFileWriter<'_>>) -> Result<()>,
) -> Result<()> {
    if !site.is_root() {
        site.agree(Ok(()))?;
        return site.agree(body(None)).and_then(|()| site.agree(Ok(())));
    }
    // Whether all ranks have come through the blocks, once they have begun.
    let mut through = None;
    let written = write_blocks(path, shape, progress_of(site.ctx), |writer| {
        site.agree(Ok(()))?;
        let outcome = site.agree(body(Some(writer)));
        through = Some(outcome.is_ok());
        outcome
    });
    // The others wait for the beginning, or for the end of the file.
    if through == Some(false) { written } else { site.agree(written) }
}

fn entries<S: StoredBlocks>(stored: &S, id: TileId) -> usize {
    let Block { rows, cols } = stored.block(id);
    rows.len() * cols.len()
}

fn meter<'a, S: StoredBlocks>(ctx: &'a Context, stored: &S) -> Meter<'a> {
    Meter::new(ctx, stored.blocks().map(|id| entries(stored, id) as u64).sum())
}

/// Writes a block that was read.
fn write<S: StoredBlocks>(
    stored: &S,
    id: TileId,
    words: &[u64],
    writer: &MatrixFileWriter<'_>,
    meter: &Meter<'_>,
) -> Result<()> {
    let count = entries(stored, id);
    let (heads, rest) = words.split_at(count);
    writer.write_block(&stored.block(id), heads, &rest[..count * limbs_for(stored.shape().precision_bits)])?;
    meter.add("write", count as u64)
}

/// All blocks, by all workers.
fn write_all<S: StoredBlocks>(
    ctx: &Context,
    writer: &MatrixFileWriter<'_>,
    stored: &S,
    spaces: &mut [S::Space],
) -> Result<()> {
    let (meter, mut blocks) = (meter(ctx, stored), stored.blocks());
    ctx.install(|| {
        drive::parallel_for(
            spaces,
            |_| blocks.next(),
            |space, id| {
                stored.read(id, space)?;
                write(stored, id, stored.words(space), writer, &meter)
            },
        )
    })
}

/// All blocks, each by the rank that has it; the others are sent to rank 0. An error does not keep a rank from its
/// part of the transfers.
fn over_ranks<S: StoredBlocks>(
    site: Site<'_>,
    writer: Option<&MatrixFileWriter<'_>>,
    stored: &S,
    space: &mut S::Space,
) -> Result<()> {
    let (world, rank, meter) = (site.world(), site.team.rank(), meter(site.ctx, stored));
    let mut outcome = Ok(());
    for id in stored.blocks() {
        let owner = stored.owner(id);
        if owner == rank && outcome.is_ok() {
            outcome = stored.read(id, space);
        }
        let words = &mut stored.words(space)[..entries(stored, id) * (1 + limbs_for(stored.shape().precision_bits))];
        match (owner == ROOT, owner == rank) {
            (false, true) => world.exchange(&[Outgoing { to: ROOT, words }], &mut [])?,
            (false, false) if rank == ROOT => world.exchange(&[], &mut [Incoming { from: owner, words }])?,
            _ => {}
        }
        if let Some(writer) = writer.filter(|_| outcome.is_ok()) {
            outcome = write(stored, id, words, writer, &meter);
        }
    }
    outcome
}
