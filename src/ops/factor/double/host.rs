//! Tiles of a matrix of doubles in host memory that devices copy from: their shapes and their host copies.
//!
//! A tile is contiguous, column-major, in page-locked memory of the device that owns it, so that copies to and from
//! that device need no other buffer. Another device copies it through a staging buffer of its own.

use crate::device::{Device, Pinned};
use crate::drive::HostCopy;
use crate::error::Result;
use crate::tile::{TileId, TileMap};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Staging buffers of a device that reads tiles of another memory: one is filled while another is copied from.
const STAGING_BUFFERS: usize = 3;

/// Bytes of a tile.
pub(super) fn tile_bytes(tiling: &TileMap, tile: TileId) -> usize {
    tiling.entries(tile) * size_of::<f64>()
}

/// Bytes of the largest tile.
pub(super) fn most_tile_bytes(tiling: &TileMap) -> usize {
    tiling.most_entries() * size_of::<f64>()
}

/// Buffers that are used in turn.
struct Staging {
    buffers: Vec<Pinned>,
    next: usize,
    bytes: u64,
}

/// The guarded data is valid even if a holder panicked.
fn lock(staging: &Mutex<Staging>) -> MutexGuard<'_, Staging> {
    staging.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host copy of a tile, and the device that owns it.
struct OwnCopy {
    pinned: Pinned,
    owner: usize,
}

/// The host copies of some tiles: all tiles of a matrix, or the tiles of one rank.
pub(super) struct HostCopies {
    pub tiling: TileMap,
    copies: FxHashMap<TileId, OwnCopy>,
    staging: Vec<Mutex<Staging>>,
}

impl HostCopies {
    /// Memory for tiles, each from the device with the number `owner(tile)`; staging buffers for `staged` of the
    /// devices.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`].
    pub fn new(
        tiling: TileMap,
        devices: &[Arc<dyn Device>],
        tiles: impl Iterator<Item = TileId>,
        owner: impl Fn(TileId) -> usize,
        staged: usize,
    ) -> Result<HostCopies> {
        let host_copy = |tile: TileId| {
            let owner = owner(tile);
            let pinned = devices[owner].allocate_pinned(tile_bytes(&tiling, tile))?;
            Ok((tile, OwnCopy { pinned, owner }))
        };
        let copies = tiles.map(host_copy).collect::<Result<_>>()?;
        let staging = |device: &Arc<dyn Device>| {
            let buffers = (0..STAGING_BUFFERS).map(|_| device.allocate_pinned(most_tile_bytes(&tiling)));
            Ok(Mutex::new(Staging { buffers: buffers.collect::<Result<_>>()?, next: 0, bytes: 0 }))
        };
        let staging = devices[..staged].iter().map(staging).collect::<Result<_>>()?;
        Ok(HostCopies { tiling, copies, staging })
    }

    /// Bytes of host memory for these tiles, and for staging buffers of `staged` devices.
    pub fn planned_bytes(tiling: &TileMap, tiles: impl Iterator<Item = TileId>, staged: usize) -> u64 {
        let copies = tiles.map(|tile| tile_bytes(tiling, tile) as u64).sum::<u64>();
        copies + (staged * STAGING_BUFFERS * most_tile_bytes(tiling)) as u64
    }

    /// The host copy of a tile at its owner.
    pub fn own(&self, tile: TileId) -> &Pinned {
        &self.copies.get(&tile).expect("the tile has its host copy here").pinned
    }

    /// The device that owns a tile, where its host copy is here.
    pub fn owner(&self, tile: TileId) -> Option<usize> {
        self.copies.get(&tile).map(|host_copy| host_copy.owner)
    }

    /// Bytes that a device copied from the host copies of others.
    pub fn staged_bytes(&self, device: usize) -> u64 {
        self.staging.get(device).map_or(0, |staging| lock(staging).bytes)
    }

    /// Memory of `device` that holds a tile: its host copy, or another where another device owns it.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn host_copy(&self, device: usize, tile: TileId) -> Result<HostCopy> {
        let host_copy = self.copies.get(&tile).expect("the tile has its host copy here");
        if host_copy.owner == device {
            return Ok(HostCopy { pinned: host_copy.pinned.clone(), bytes: tile_bytes(&self.tiling, tile) });
        }
        self.stage(device, &host_copy.pinned.lock()?)
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

    /// Waits until all tiles are on the host.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn settle(&self) -> Result<()> {
        self.copies.values().try_for_each(|host_copy| host_copy.pinned.lock().map(drop))
    }
}
