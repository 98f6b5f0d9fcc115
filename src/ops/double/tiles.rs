//! Tiles of a matrix of doubles: their shapes, their homes in host memory, and the way in and out.
//!
//! A tile is contiguous, column-major, in page-locked memory of the device that owns it, so that copies to and from
//! that device need no other buffer. Another device copies it through a staging buffer of its own.

use crate::context::Context;
use crate::device::{Device, Pinned};
use crate::drive::{self, HostCopy};
use crate::error::{Error, Result};
use crate::tile::{TileId, TileMap};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Staging buffers of a device that reads what lies elsewhere: one is filled while another is copied from.
const STAGING_BUFFERS: usize = 3;

/// Bytes of a tile.
pub(in crate::ops) fn tile_bytes(tiling: &TileMap, tile: TileId) -> usize {
    tiling.entries(tile) * size_of::<f64>()
}

/// Bytes of the largest tile.
pub(in crate::ops) fn most_tile_bytes(tiling: &TileMap) -> usize {
    tiling.most_entries() * size_of::<f64>()
}

/// Buffers that are used in turn.
struct Staging {
    buffers: Vec<Pinned>,
    next: usize,
    bytes: u64,
}

/// What a lock guards is whole also where its holder panicked.
fn lock(staging: &Mutex<Staging>) -> MutexGuard<'_, Staging> {
    staging.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tile's home, and the device that owns it.
struct OwnHome {
    pinned: Pinned,
    owner: usize,
}

/// The homes of some tiles: all of a matrix, or those of one rank.
pub(in crate::ops) struct HostTiles {
    pub tiling: TileMap,
    homes: FxHashMap<TileId, OwnHome>,
    staging: Vec<Mutex<Staging>>,
}

impl HostTiles {
    /// Memory for tiles, each from the device that owns it; staging buffers for so many of the devices.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`].
    pub fn new(
        tiling: TileMap,
        devices: &[Arc<dyn Device>],
        owners: impl Iterator<Item = (TileId, usize)>,
        staged: usize,
    ) -> Result<HostTiles> {
        let home = |(tile, owner): (TileId, usize)| {
            let pinned = devices[owner].allocate_pinned(tile_bytes(&tiling, tile))?;
            Ok((tile, OwnHome { pinned, owner }))
        };
        let homes = owners.map(home).collect::<Result<_>>()?;
        let staging = |device: &Arc<dyn Device>| {
            let buffers = (0..STAGING_BUFFERS).map(|_| device.allocate_pinned(most_tile_bytes(&tiling)));
            Ok(Mutex::new(Staging { buffers: buffers.collect::<Result<_>>()?, next: 0, bytes: 0 }))
        };
        let staging = devices[..staged].iter().map(staging).collect::<Result<_>>()?;
        Ok(HostTiles { tiling, homes, staging })
    }

    /// Bytes of host memory for these tiles, and for staging buffers of so many devices.
    pub fn planned_bytes(tiling: &TileMap, tiles: impl Iterator<Item = TileId>, staged: usize) -> u64 {
        let homes = tiles.map(|tile| tile_bytes(tiling, tile) as u64).sum::<u64>();
        homes + (staged * STAGING_BUFFERS * most_tile_bytes(tiling)) as u64
    }

    /// The home of a tile at its owner.
    pub fn own(&self, tile: TileId) -> &Pinned {
        &self.homes.get(&tile).expect("the tile has its home here").pinned
    }

    /// The device that owns a tile, where its home is here.
    pub fn owner(&self, tile: TileId) -> Option<usize> {
        self.homes.get(&tile).map(|home| home.owner)
    }

    /// Bytes that a device copied from the homes of others.
    pub fn staged_bytes(&self, device: usize) -> u64 {
        self.staging.get(device).map_or(0, |staging| lock(staging).bytes)
    }

    /// Memory of `device` that holds a tile: its home, or a copy where another device owns it.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn home(&self, device: usize, tile: TileId) -> Result<HostCopy> {
        let home = self.homes.get(&tile).expect("the tile has its home here");
        if home.owner == device {
            return Ok(HostCopy { pinned: home.pinned.clone(), bytes: tile_bytes(&self.tiling, tile) });
        }
        self.stage(device, &home.pinned.lock()?)
    }

    /// Memory of `device` with a copy of a tile that lies elsewhere.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn stage(&self, device: usize, tile: &[u8]) -> Result<HostCopy> {
        let mut staging = lock(&self.staging[device]);
        staging.next = (staging.next + 1) % STAGING_BUFFERS;
        staging.bytes += tile.len() as u64;
        let pinned = staging.buffers[staging.next].clone();
        pinned.lock()?[..tile.len()].copy_from_slice(tile);
        Ok(HostCopy { pinned, bytes: tile.len() })
    }

    /// Copies the lower triangle in; above the diagonal of the matrix tiles get zeros.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the first such entry, column by column; [`Error::DeviceLost`].
    pub fn load(&self, ctx: &Context, a: &[f64]) -> Result<()> {
        let first_bad = Mutex::new(None::<(usize, usize)>);
        self.each_column(ctx, |col| {
            for row in col..self.tiling.tile_rows() {
                let tile = TileId { row, col };
                let mut home = self.own(tile).lock()?;
                let words = bytemuck::cast_slice_mut::<u8, f64>(&mut home);
                let (rows, cols) = (self.tiling.row_range(row), self.tiling.row_range(col));
                for (j, column) in cols.zip(words.chunks_exact_mut(rows.len().max(1))) {
                    column.copy_from_slice(&a[j * self.tiling.rows..][rows.clone()]);
                    let above = if row == col { j - rows.start } else { 0 };
                    column[..above].fill(0.0);
                    if let Some(at) = column.iter().position(|entry| !entry.is_finite()) {
                        let found = (j, rows.start + at);
                        let mut first = first_bad.lock().unwrap_or_else(PoisonError::into_inner);
                        *first = Some(first.map_or(found, |known| known.min(found)));
                    }
                }
            }
            Ok(())
        })?;
        match first_bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some((column, row)) => {
                let kind = if a[column * self.tiling.rows + row].is_nan() { "NaN" } else { "infinite" };
                Err(Error::NotFinite { row, column, kind })
            }
        }
    }

    /// Waits until all tiles are at home.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn settle(&self) -> Result<()> {
        self.homes.values().try_for_each(|home| home.pinned.lock().map(drop))
    }

    /// Copies the lower triangle out, once nothing can fail any more.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] only where [`HostTiles::settle`] would say so too.
    pub fn store(&self, ctx: &Context, a: &mut [f64]) -> Result<()> {
        let order = self.tiling.rows;
        let mut columns = a.chunks_mut((order * self.tiling.tile_size).max(1)).enumerate();
        let mut workers = vec![(); ctx.threads()];
        let work = |(): &mut (), (col, out): (usize, &mut [f64])| {
            for row in col..self.tiling.tile_rows() {
                let home = self.own(TileId { row, col }).lock()?;
                let rows = self.tiling.row_range(row);
                let words = bytemuck::cast_slice::<u8, f64>(&home).chunks_exact(rows.len());
                for (j, (column, out)) in words.zip(out.chunks_exact_mut(order)).enumerate() {
                    let above = if row == col { j } else { 0 };
                    out[rows.clone()][above..].copy_from_slice(&column[above..]);
                }
            }
            Ok(())
        };
        ctx.install(|| drive::parallel_for(&mut workers, |()| columns.next(), work))
    }

    /// Works on all tile columns, on the context's threads.
    fn each_column(&self, ctx: &Context, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
        let mut columns = 0..self.tiling.tile_rows();
        let mut workers = vec![(); ctx.threads()];
        ctx.install(|| drive::parallel_for(&mut workers, |()| columns.next(), |(), col| work(col)))
    }
}
