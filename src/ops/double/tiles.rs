//! Tiles of a matrix of doubles: their shapes, their homes in host memory, and the way in and out.
//!
//! A tile is contiguous, column-major, in page-locked memory of the device that owns it, so that copies to and from
//! that device need no other buffer. Another device copies it through a staging buffer of its own.

use crate::context::Context;
use crate::device::{Device, Pinned};
use crate::drive::{self, Home};
use crate::error::{Error, Result};
use crate::runtime::{CholeskyGraph, TileId};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Staging buffers of a device, where there are several: one is filled while another is copied from.
const STAGING_BUFFERS: usize = 3;

/// How a matrix is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    pub order: usize,
    pub tile_rows: usize,
    pub graph: CholeskyGraph,
}

impl Tiling {
    pub fn new(order: usize, tile_rows: usize) -> Tiling {
        Tiling { order, tile_rows, graph: CholeskyGraph { tiles: order.div_ceil(tile_rows) } }
    }

    /// Rows of the matrix in a tile row.
    pub fn rows(&self, index: usize) -> Range<usize> {
        index * self.tile_rows..((index + 1) * self.tile_rows).min(self.order)
    }

    /// Rows and columns of a tile.
    pub fn shape(&self, tile: TileId) -> (usize, usize) {
        (self.rows(tile.row).len(), self.rows(tile.col).len())
    }

    pub fn bytes(&self, tile: TileId) -> usize {
        let (rows, cols) = self.shape(tile);
        rows * cols * size_of::<f64>()
    }

    /// Bytes of the largest tile.
    pub fn most_bytes(&self) -> usize {
        let rows = self.tile_rows.min(self.order);
        rows * rows * size_of::<f64>()
    }

    /// Bytes of all tiles.
    pub fn all_bytes(&self) -> u64 {
        self.graph.all_tiles().map(|tile| self.bytes(tile) as u64).sum()
    }
}

/// Buffers that are used in turn.
struct Staging {
    buffers: Vec<Pinned>,
    next: usize,
    bytes: u64,
}

/// The homes of all tiles.
pub(super) struct HostTiles {
    pub tiling: Tiling,
    homes: Vec<Pinned>,
    owners: Vec<usize>,
    staging: Vec<Mutex<Staging>>,
}

impl HostTiles {
    /// Memory for all tiles, each from its owner.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`].
    pub fn new(tiling: Tiling, devices: &[Arc<dyn Device>], owner: impl Fn(TileId) -> usize) -> Result<HostTiles> {
        let owners = tiling.graph.all_tiles().map(owner).collect::<Vec<_>>();
        let home = |(tile, &owner): (TileId, &usize)| devices[owner].allocate_pinned(tiling.bytes(tile));
        let homes = tiling.graph.all_tiles().zip(&owners).map(home).collect::<Result<Vec<_>>>()?;
        let several = if devices.len() > 1 { STAGING_BUFFERS } else { 0 };
        let staging = |device: &Arc<dyn Device>| {
            let buffers = (0..several).map(|_| device.allocate_pinned(tiling.most_bytes()));
            Ok(Mutex::new(Staging { buffers: buffers.collect::<Result<_>>()?, next: 0, bytes: 0 }))
        };
        let staging = devices.iter().map(staging).collect::<Result<Vec<_>>>()?;
        Ok(HostTiles { tiling, homes, owners, staging })
    }

    /// Bytes of host memory for so many devices.
    pub fn planned_bytes(tiling: &Tiling, devices: usize) -> u64 {
        let staged = if devices > 1 { devices * STAGING_BUFFERS * tiling.most_bytes() } else { 0 };
        tiling.all_bytes() + staged as u64
    }

    /// The home of a tile at its owner.
    pub fn own(&self, tile: TileId) -> &Pinned {
        &self.homes[self.tiling.graph.index(tile)]
    }

    /// Bytes that a device copied from the homes of others.
    pub fn staged_bytes(&self, device: usize) -> u64 {
        self.staging[device].lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Memory of `device` that holds a tile: its home, or a copy where another device owns it.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn home(&self, device: usize, tile: TileId) -> Result<Home> {
        let (index, bytes) = (self.tiling.graph.index(tile), self.tiling.bytes(tile));
        if self.owners[index] == device {
            return Ok(Home { pinned: self.homes[index].clone(), bytes });
        }
        let mut staging = self.staging[device].lock().unwrap_or_else(PoisonError::into_inner);
        staging.next = (staging.next + 1) % STAGING_BUFFERS;
        staging.bytes += bytes as u64;
        let pinned = staging.buffers[staging.next].clone();
        pinned.lock()?[..bytes].copy_from_slice(&self.homes[index].lock()?);
        Ok(Home { pinned, bytes })
    }

    /// Copies the lower triangle in; above the diagonal of the matrix tiles get zeros.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the first such entry, column by column; [`Error::DeviceLost`].
    pub fn load(&self, ctx: &Context, a: &[f64]) -> Result<()> {
        let first_bad = Mutex::new(None::<(usize, usize)>);
        self.each_column(ctx, |col| {
            for row in col..self.tiling.graph.tiles {
                let tile = TileId { row, col };
                let mut home = self.own(tile).lock()?;
                let words = bytemuck::cast_slice_mut::<u8, f64>(&mut home);
                let (rows, cols) = (self.tiling.rows(row), self.tiling.rows(col));
                for (j, column) in cols.zip(words.chunks_exact_mut(rows.len().max(1))) {
                    column.copy_from_slice(&a[j * self.tiling.order..][rows.clone()]);
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
                let kind = if a[column * self.tiling.order + row].is_nan() { "NaN" } else { "infinite" };
                Err(Error::NotFinite { row, column, kind })
            }
        }
    }

    /// Waits until all tiles are at home.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn settle(&self) -> Result<()> {
        self.homes.iter().try_for_each(|home| home.lock().map(drop))
    }

    /// Copies the lower triangle out, once nothing can fail any more.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] only where [`HostTiles::settle`] would say so too.
    pub fn store(&self, ctx: &Context, a: &mut [f64]) -> Result<()> {
        let order = self.tiling.order;
        let mut columns = a.chunks_mut((order * self.tiling.tile_rows).max(1)).enumerate();
        let mut workers = vec![(); ctx.threads()];
        let work = |(): &mut (), (col, out): (usize, &mut [f64])| {
            for row in col..self.tiling.graph.tiles {
                let home = self.own(TileId { row, col }).lock()?;
                let rows = self.tiling.rows(row);
                let words = bytemuck::cast_slice::<u8, f64>(&home).chunks_exact(rows.len());
                for (j, (column, out)) in words.zip(out.chunks_exact_mut(order)).enumerate() {
                    let above = if row == col { j } else { 0 };
                    out[rows.clone()][above..].copy_from_slice(&column[above..]);
                }
            }
            Ok(())
        };
        ctx.install(|| drive::share(&mut workers, |()| columns.next(), work))
    }

    /// Works on all tile columns, on the context's threads.
    fn each_column(&self, ctx: &Context, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
        let mut columns = 0..self.tiling.graph.tiles;
        let mut workers = vec![(); ctx.threads()];
        ctx.install(|| drive::share(&mut workers, |()| columns.next(), |(), col| work(col)))
    }
}
