//! Tiles on one of two levels of memory: which of them have copies on the upper level, the state of each copy, and the
//! moves before a task can run there.
//!
//! Every tile has its home on the lower level: a device stands above the host, the host above a disk. Per tile there is
//! a state, `Invalid` (not here), `Shared` (as at home) or `Modified` (newer than at home), and how often it is held.
//! Promise: the limits are never exceeded; a held tile never leaves; a `Modified` tile is written back before it
//! leaves, so no write is lost; a reader always finds the last write. A request that cannot be met changes nothing.
//! Depends on: ids and bytes. Independent of: which levels these are, what tiles are made of, when moves are carried
//! out. Moves must be carried out in order, or with the same effect. If the lower level answers later,
//! [`LocalScheduler`](super::LocalScheduler) holds the objects in transit.

mod eviction;
mod tasks;
#[cfg(test)]
mod tests;

pub use eviction::{Eviction, EvictionOrder};
pub use tasks::{Owner, TaskMoves, least_room_tiles};

use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::hash_map::Entry as Slot;
use std::fmt::Debug;
use std::hash::Hash;

/// The state of the copy of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileState {
    /// There is none.
    Invalid,
    /// It equals the copy at home.
    Shared,
    /// It is newer than the copy at home.
    Modified,
}

/// The use of a tile by a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Reads and writes it.
    Update,
    /// Creates it: nothing is copied from its home.
    Create,
}

/// A tile that a task needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileUse<T> {
    /// The tile.
    pub tile: T,
    /// Its size, the same in every request.
    pub bytes: u64,
    /// Its use.
    pub access: Access,
}

/// A move to carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move<T> {
    /// Copy the tile to its home.
    WriteBack(T),
    /// Remove the tile: its memory is free.
    Drop(T),
    /// Find memory for the tile and copy it from its home.
    Fetch(T),
}

/// The capacity of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of all tiles.
    pub bytes: u64,
    /// Number of tiles, if they are stored in slots of one size.
    pub tiles: usize,
}

/// The holds of one task; [`Residency::release`] ends them.
#[must_use = "tiles stay held until the lease is released"]
#[derive(Debug)]
pub struct Lease<T>(Vec<T>);

/// Answer to a request.
#[derive(Debug)]
pub enum Admission<T> {
    /// The task can run after these moves.
    Granted {
        /// In this order.
        moves: Vec<Move<T>>,
        /// To be released after the task.
        lease: Lease<T>,
    },
    /// Other tasks hold too many tiles now.
    Busy,
    /// Too many tiles are newer than at home; these tiles must be written back before others fit (only from
    /// [`Residency::acquire_clean`]). Empty if enough writes are under way.
    Unwritten(Vec<T>),
    /// The tiles exceed the limits even without other tiles.
    TooLarge {
        /// Bytes of the tiles.
        bytes: u64,
        /// Number of the tiles.
        tiles: usize,
    },
}

/// Counts of moves, and of moves that were unnecessary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CacheCounters {
    /// Bytes copied from their homes.
    pub up_bytes: u64,
    /// Bytes written back.
    pub down_bytes: u64,
    /// Tiles copied from their homes.
    pub uploads: u64,
    /// Tiles written back.
    pub write_backs: u64,
    /// Tiles that were in memory when they were needed.
    pub hits: u64,
    /// Tiles that were evicted for others.
    pub evictions: u64,
}

impl CacheCounters {
    /// The counts since `earlier`; all counts if a new memory has been counting since then.
    pub fn since(&self, earlier: &CacheCounters) -> CacheCounters {
        if earlier.up_bytes > self.up_bytes {
            return *self;
        }
        CacheCounters {
            up_bytes: self.up_bytes - earlier.up_bytes,
            down_bytes: self.down_bytes.saturating_sub(earlier.down_bytes),
            uploads: self.uploads.saturating_sub(earlier.uploads),
            write_backs: self.write_backs.saturating_sub(earlier.write_backs),
            hits: self.hits.saturating_sub(earlier.hits),
            evictions: self.evictions.saturating_sub(earlier.evictions),
        }
    }
}

#[derive(Clone, Debug)]
struct ResidentEntry {
    bytes: u64,
    modified: bool,
    hold_count: usize,
}

impl ResidentEntry {
    fn hold(&mut self, held: &mut Limits) {
        if self.hold_count == 0 {
            held.bytes += self.bytes;
            held.tiles += 1;
        }
        self.hold_count += 1;
    }
}

/// The copies on the upper level.
#[derive(Clone, Debug)]
pub struct Residency<T> {
    limits: Limits,
    used_bytes: u64,
    /// The bytes and tiles that tasks hold.
    held: Limits,
    entries: FxHashMap<T, ResidentEntry>,
    order: EvictionOrder<T>,
    counters: CacheCounters,
}

impl<T: Copy + Eq + Hash + Debug> Residency<T> {
    /// An empty memory.
    pub fn new(limits: Limits, eviction: Eviction) -> Residency<T> {
        let (entries, order) = (FxHashMap::default(), EvictionOrder::new(eviction));
        let held = Limits { bytes: 0, tiles: 0 };
        Residency { limits, used_bytes: 0, held, entries, order, counters: CacheCounters::default() }
    }

    /// Allows `tiles` tiles from now on, not fewer than before.
    pub fn allow(&mut self, tiles: usize) {
        assert!(tiles >= self.limits.tiles, "a memory does not shrink: {tiles} of {}", self.limits.tiles);
        self.limits.tiles = tiles;
    }

    /// State of a tile.
    pub fn state(&self, tile: T) -> TileState {
        match self.entries.get(&tile) {
            None => TileState::Invalid,
            Some(entry) if entry.modified => TileState::Modified,
            Some(_) => TileState::Shared,
        }
    }

    /// The number of tasks that hold a tile.
    pub fn hold_count(&self, tile: T) -> usize {
        self.entries.get(&tile).map_or(0, |entry| entry.hold_count)
    }

    /// Bytes of all tiles in this memory.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Tiles here.
    pub fn tile_count(&self) -> usize {
        self.entries.len()
    }

    /// All moves so far.
    pub fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// Requests all tiles of a task at once; a tile may be named more than once.
    pub fn acquire(&mut self, uses: &[TileUse<T>]) -> Admission<T> {
        let uses = merged(uses);
        if let Some(refusal) = self.too_large(&uses) {
            return refusal;
        }
        let Some(leaving) = self.leaving(&uses, |_| true) else { return Admission::Busy };
        let mut moves = Vec::new();
        for tile in leaving {
            moves.extend(self.write_back(tile));
            moves.extend(self.discard(tile));
            self.counters.evictions += 1;
        }
        self.grant(&uses, moves)
    }

    /// As [`Residency::acquire`], if a tile that was written back may be evicted only when the write has ended: no
    /// write is among the moves, and the caller holds a tile that is being written ([`Residency::hold`]).
    pub fn acquire_clean(&mut self, uses: &[TileUse<T>]) -> Admission<T> {
        let uses = merged(uses);
        if let Some(refusal) = self.too_large(&uses) {
            return refusal;
        }
        let Some(leaving) = self.leaving(&uses, |entry| !entry.modified) else {
            return match self.leaving(&uses, |_| true) {
                None => Admission::Busy,
                Some(tiles) => {
                    Admission::Unwritten(tiles.into_iter().filter(|tile| self.entries[tile].modified).collect())
                }
            };
        };
        self.counters.evictions += leaving.len() as u64;
        let moves = leaving.into_iter().filter_map(|tile| self.discard(tile)).collect();
        self.grant(&uses, moves)
    }

    fn too_large(&self, uses: &[TileUse<T>]) -> Option<Admission<T>> {
        let (bytes, tiles) = (uses.iter().map(|one| one.bytes).sum::<u64>(), uses.len());
        (bytes > self.limits.bytes || tiles > self.limits.tiles).then_some(Admission::TooLarge { bytes, tiles })
    }

    /// Takes tiles in that have room now.
    fn grant(&mut self, uses: &[TileUse<T>], mut moves: Vec<Move<T>>) -> Admission<T> {
        for &TileUse { tile, bytes, access } in uses {
            if let Slot::Vacant(place) = self.entries.entry(tile) {
                place.insert(ResidentEntry { bytes, modified: false, hold_count: 0 });
                self.used_bytes += bytes;
                if access != Access::Create {
                    self.counters.up_bytes += bytes;
                    self.counters.uploads += 1;
                    moves.push(Move::Fetch(tile));
                }
            } else {
                self.counters.hits += 1;
            }
            let entry = self.entries.get_mut(&tile).expect("the tile is here");
            assert_eq!(entry.bytes, bytes, "{tile:?} changed its size");
            entry.modified |= access != Access::Read;
            entry.hold(&mut self.held);
            self.order.used(tile);
        }
        Admission::Granted { moves, lease: Lease(uses.iter().map(|one| one.tile).collect()) }
    }

    /// Ends the holds of a task.
    pub fn release(&mut self, lease: Lease<T>) {
        for tile in lease.0 {
            let entry = self.entries.get_mut(&tile).expect("a held tile is here");
            assert!(entry.hold_count > 0, "{tile:?} is not held");
            entry.hold_count -= 1;
            if entry.hold_count == 0 {
                self.held.bytes -= entry.bytes;
                self.held.tiles -= 1;
            }
        }
    }

    /// Holds a tile in this memory.
    pub fn hold(&mut self, tile: T) -> Lease<T> {
        self.entries.get_mut(&tile).unwrap_or_else(|| panic!("{tile:?} is not here")).hold(&mut self.held);
        Lease(vec![tile])
    }

    /// Bytes and tiles that could be loaded if all tiles that are not held were evicted, modified or not.
    pub fn unheld(&self) -> Limits {
        Limits { bytes: self.limits.bytes - self.held.bytes, tiles: self.limits.tiles - self.held.tiles }
    }

    /// The capacity of the memory.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Writes a tile back if it is modified; it stays in memory.
    pub fn write_back(&mut self, tile: T) -> Option<Move<T>> {
        let entry = self.entries.get_mut(&tile).filter(|entry| entry.modified)?;
        entry.modified = false;
        self.counters.down_bytes += entry.bytes;
        self.counters.write_backs += 1;
        Some(Move::WriteBack(tile))
    }

    /// Removes a tile, because its owner changes or because it is not needed again. It must not be held or modified.
    pub fn discard(&mut self, tile: T) -> Option<Move<T>> {
        let entry = self.entries.get(&tile)?;
        assert!(!entry.modified && entry.hold_count == 0, "{tile:?} cannot go: {entry:?}");
        self.used_bytes -= entry.bytes;
        self.entries.remove(&tile);
        self.order.gone(tile);
        Some(Move::Drop(tile))
    }

    /// Removes a tile that will not be read again, written back or not. It must not be held.
    pub fn destroy(&mut self, tile: T) -> Option<Move<T>> {
        self.entries.get_mut(&tile)?.modified = false;
        self.discard(tile)
    }

    /// Writes back all modified tiles, in the order of eviction.
    pub fn flush(&mut self) -> Vec<Move<T>> {
        let tiles = self.order.iter().collect::<Vec<_>>();
        tiles.into_iter().filter_map(|tile| self.write_back(tile)).collect()
    }

    /// Tiles that must leave so that those of `uses` that are missing find room; `None` where too few may.
    fn leaving(&self, uses: &[TileUse<T>], may_leave: impl Fn(&ResidentEntry) -> bool) -> Option<Vec<T>> {
        let missing = || uses.iter().filter(|one| !self.entries.contains_key(&one.tile));
        let bytes = self.used_bytes + missing().map(|one| one.bytes).sum::<u64>();
        let tiles = self.entries.len() + missing().count();
        let (mut bytes, mut tiles) = (bytes.saturating_sub(self.limits.bytes), tiles.saturating_sub(self.limits.tiles));
        let mut leaving = Vec::new();
        let mut order = self.order.iter();
        while bytes > 0 || tiles > 0 {
            let tile = order.next()?;
            let entry = &self.entries[&tile];
            if entry.hold_count == 0 && may_leave(entry) && uses.iter().all(|one| one.tile != tile) {
                (bytes, tiles) = (bytes.saturating_sub(entry.bytes), tiles.saturating_sub(1));
                leaving.push(tile);
            }
        }
        Some(leaving)
    }
}

/// The uses with each tile once: a tile that is both read and written is updated.
fn merged<T: Copy + Eq + Debug>(uses: &[TileUse<T>]) -> Vec<TileUse<T>> {
    let mut all: Vec<TileUse<T>> = Vec::with_capacity(uses.len());
    for one in uses {
        match all.iter_mut().find(|known| known.tile == one.tile) {
            Some(known) if known.access == one.access => {}
            Some(known) => known.access = Access::Update,
            None => all.push(*one),
        }
    }
    all
}
