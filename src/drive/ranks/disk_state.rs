//! The state of an out-of-core rank: the level's plans, tiles read that wait for a worker, tiles from and to other
//! ranks.

use crate::runtime::protocol::TileRun;
use crate::runtime::{Outgoing, Ticket, TileLevel};
use crate::store::IoBuffer;
use crate::tile::TileId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A rank that gets a tile, and the header sent with it.
pub(super) type Reader = (usize, Vec<u64>);

/// The state of the tiles in memory, and of the runs on them.
pub(super) struct DiskState {
    pub level: TileLevel,
    /// Tiles that were read and must be put into their places.
    pub read: VecDeque<(TileId, IoBuffer)>,
    /// The planned runs that workers have, by their first tiles.
    pub tickets: FxHashMap<TileId, Ticket>,
    /// Tiles for other ranks.
    pub outgoing: Outgoing<Reader>,
    /// Tiles of other ranks that are arriving, or being written.
    pub coming: usize,
}

impl DiskState {
    pub fn new(level: TileLevel) -> DiskState {
        let (read, tickets, outgoing) = (VecDeque::new(), FxHashMap::default(), Outgoing::default());
        DiskState { level, read, tickets, outgoing, coming: 0 }
    }

    /// Tiles to be put into their places.
    pub fn jobs(&self) -> usize {
        self.read.len()
    }

    /// The next tile to be put into its place, with the bytes read.
    pub fn next_job(&mut self) -> Option<(TileId, IoBuffer)> {
        self.read.pop_front()
    }

    /// Whether the disk has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.level.in_flight() + self.coming == 0
    }

    /// Takes a run from the machine.
    pub fn take(&mut self, run: TileRun) {
        self.level.take(run);
    }

    /// Drops and returns the runs that no worker has.
    pub fn abandon(&mut self) -> Vec<TileRun> {
        self.read.clear();
        self.level.abandon()
    }
}
