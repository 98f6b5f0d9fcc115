//! The ranks that share a memory: such ranks read each other's finished tiles in place.
//!
//! Such a tile is announced ([`super::Message::Shown`]) and takes no slot. All other readers get it as if there were
//! only its owner and them: they request it, it is sent to them, and some pass it on.

use super::progress::MOST_SLOTS;
use crate::error::{Error, Result};
use crate::tile::{RankGrid, TileId};
use std::sync::Arc;

/// The memory of each rank of a grid; the same on all ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Memories {
    /// The number of the memory by rank; without it each rank has its own memory.
    of: Option<Arc<[usize]>>,
}

impl Memories {
    /// Ranks of which each has its own memory.
    pub fn apart() -> Memories {
        Memories::default()
    }

    /// Ranks with the same number share a memory; ranks without a number share a memory with no other.
    pub fn new(of: Vec<usize>) -> Memories {
        Memories { of: Some(of.into()) }
    }

    /// Whether a rank reads the finished tiles of another one in place.
    pub fn share(&self, rank: usize, other: usize) -> bool {
        self.of.as_ref().is_some_and(|of| of.get(rank).is_some_and(|memory| of.get(other) == Some(memory)))
    }

    /// The readers of a tile to which it must be sent, in the order of [`RankGrid::clients`].
    pub fn clients(&self, grid: RankGrid, tiles: usize, tile: TileId) -> Vec<u32> {
        let (mut clients, owner) = (grid.clients(tiles, tile), grid.owner(tile));
        clients.retain(|&client| !self.share(owner, client as usize));
        clients
    }

    /// The readers of a tile, other than its owner, that read it in place.
    pub fn neighbours(&self, grid: RankGrid, tiles: usize, tile: TileId) -> Vec<u32> {
        if self.of.is_none() {
            return Vec::new();
        }
        let (mut clients, owner) = (grid.clients(tiles, tile), grid.owner(tile));
        clients.retain(|&client| self.share(owner, client as usize));
        clients
    }

    /// The first tile in column `from.col`, from row `from.row` on, that `rank` reads and that must be sent to it.
    pub(super) fn next_need(&self, grid: RankGrid, tiles: usize, rank: usize, from: TileId) -> Option<TileId> {
        let mut from = from;
        loop {
            let tile = grid.next_need(tiles, rank, from)?;
            if !self.share(grid.owner(tile), rank) {
                return Some(tile);
            }
            from.row = tile.row + 1;
        }
    }

    /// The smallest number of slots with which every rank terminates: slots for all tiles of one column that must be
    /// sent to a rank.
    pub fn least_slots(&self, grid: RankGrid, tiles: usize) -> usize {
        // The number of tiles of a column that a rank reads depends on the rank column that owns it, and else shrinks
        // with each.
        let columns = (0..tiles.min(grid.cols + 2)).collect::<Vec<_>>();
        let count = |rank: usize, col: usize| {
            let mut next = self.next_need(grid, tiles, rank, TileId { row: col, col });
            let mut count = 0;
            while let Some(tile) = next {
                count += 1;
                next = self.next_need(grid, tiles, rank, TileId { row: tile.row + 1, ..tile });
            }
            count
        };
        let of = |rank: usize| columns.iter().map(|&col| count(rank, col)).max().unwrap_or(0);
        (0..grid.size()).map(of).max().unwrap_or(0)
    }

    /// Returns an error for a grid without ranks, or with fewer slots than [`Memories::least_slots`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the numbers of slots.
    pub fn check(&self, grid: RankGrid, tiles: usize, slots: usize) -> Result<()> {
        let RankGrid { rows, cols } = grid;
        grid.check_ranks(usize::MAX)?;
        let least = self.least_slots(grid, tiles);
        if grid.useful_slots(tiles, slots) < least {
            let message = format!(
                "{slots} tiles of other ranks are allowed in the memory of a rank: a matrix of {tiles} x {tiles} \
                 tiles on a grid of {rows} x {cols} ranks needs at least {least}"
            );
            return Err(Error::InvalidArgument(message));
        }
        Ok(())
    }
}

impl RankGrid {
    /// [`Memories::least_slots`] if each rank has its own memory.
    pub fn least_slots(&self, tiles: usize) -> usize {
        Memories::apart().least_slots(*self, tiles)
    }

    /// The largest useful number of slots, at most `slots`: no more than tiles, and than numbers for them.
    pub fn useful_slots(&self, tiles: usize, slots: usize) -> usize {
        slots.min(tiles.saturating_mul(tiles + 1) / 2).min(MOST_SLOTS)
    }

    /// [`Memories::check`] if each rank has its own memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the numbers of slots.
    pub fn check(&self, tiles: usize, slots: usize) -> Result<()> {
        Memories::apart().check(*self, tiles, slots)
    }
}
