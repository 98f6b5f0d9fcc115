//! The slot of each tile, where tiles come and go: own tiles and those that own tasks read.
//!
//! Independent of: the contents of a slot, the moves of tiles.

use crate::tile::TileId;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of a tile of the lower triangle among all of them, row by row.
fn number(tile: TileId) -> usize {
    tile.row * (tile.row + 1) / 2 + tile.col
}

/// The slots of a memory, and the tiles in them.
pub(super) struct Slots {
    /// By [`number`].
    of: Vec<AtomicUsize>,
    free: Mutex<Vec<usize>>,
}

impl Slots {
    /// `slots` free slots for the lower triangle of a matrix of `tile_rows` rows of tiles.
    pub fn new(tile_rows: usize, slots: usize) -> Slots {
        let of = (0..tile_rows * (tile_rows + 1) / 2).map(|_| AtomicUsize::new(usize::MAX)).collect();
        Slots { of, free: Mutex::new((0..slots).collect()) }
    }

    /// The slot of a tile that has one.
    pub fn of(&self, tile: TileId) -> usize {
        self.of[number(tile)].load(Ordering::Acquire)
    }

    /// Finds a slot for a tile.
    pub fn take(&self, tile: TileId) {
        let slot = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        self.of[number(tile)].store(slot.expect("the level keeps to its limit"), Ordering::Release);
    }

    /// A tile leaves its slot.
    pub fn give_back(&self, tile: TileId) {
        let slot = self.of[number(tile)].swap(usize::MAX, Ordering::AcqRel);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }
}
