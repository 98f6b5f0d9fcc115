//! Room for tiles of other ranks: slots, given out column by column.
//!
//! A rank requests a tile only when it has a slot for it, and gives slots out in one order: by tile column, then by
//! row. So the tiles of the first column that is not done everywhere always have their slots. The proof that no rank
//! waits for ever rests on this (docs/decisions/017-one-protocol.md).

use super::Memories;
use super::lists::ClientList;
use crate::tile::{RankGrid, TileId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A tile of another rank, from the time that a slot is set aside for it.
#[derive(Clone, Debug)]
pub(super) struct ReservedSlot {
    /// The tile.
    pub tile: TileId,
    /// Own tasks that are still to read it.
    pub consumers: usize,
    /// Transfers since its owner, once it is here.
    pub depth: Option<u32>,
    /// The ranks to which this rank is to send it.
    pub list: ClientList,
    /// Transfers that have begun and not ended.
    pub sending: usize,
}

impl ReservedSlot {
    /// Whether no task and no rank needs the tile any more.
    pub fn is_done(&self) -> bool {
        self.depth.is_some() && self.consumers == 0 && self.sending == 0 && self.list.is_empty()
    }
}

/// The slots of one rank.
pub(super) struct SlotAdmission {
    grid: RankGrid,
    memories: Memories,
    tiles: usize,
    rank: usize,
    /// The next tile that may be wanted.
    next: Option<TileId>,
    slots: Vec<Option<ReservedSlot>>,
    free: Vec<usize>,
    places: FxHashMap<TileId, usize>,
    /// Finished tiles without a slot yet.
    announced: FxHashSet<TileId>,
    /// Own tasks done before this run began that have read tiles without a slot yet.
    read_before: FxHashMap<TileId, usize>,
    /// The ranks that requested tiles which this rank is to serve and which are not here yet.
    early: FxHashMap<TileId, Vec<u32>>,
    peak: usize,
}

impl SlotAdmission {
    /// `slots` free slots.
    pub fn new(grid: RankGrid, memories: &Memories, tiles: usize, rank: usize, slots: usize) -> SlotAdmission {
        SlotAdmission {
            grid,
            memories: memories.clone(),
            tiles,
            rank,
            // One rank owns all tiles.
            next: (tiles > 0 && grid.size() > 1).then_some(TileId { row: 0, col: 0 }),
            slots: vec![None; slots],
            free: (0..slots).rev().collect(),
            places: FxHashMap::default(),
            announced: FxHashSet::default(),
            read_before: FxHashMap::default(),
            early: FxHashMap::default(),
            peak: 0,
        }
    }

    /// Whether every slot is free and no more will be wanted.
    pub fn is_done(&self) -> bool {
        self.free.len() == self.slots.len() && self.next.is_none()
    }

    /// Slots in use.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The largest number of slots in use at a time.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Sets slots aside while there are any, and calls `admitted` with each tile and whether it was announced.
    pub fn admit(&mut self, mut admitted: impl FnMut(TileId, bool)) {
        while !self.free.is_empty() {
            let Some(tile) = self.next_need() else { break };
            let slot = self.free.pop().expect("there is one");
            let (list, before) = (ClientList::default(), self.read_before.remove(&tile).unwrap_or(0));
            let consumers = self.grid.consumers(self.tiles, self.rank, tile) - before;
            let new = ReservedSlot { tile, consumers, depth: None, list, sending: 0 };
            self.places.insert(tile, slot);
            self.slots[slot] = Some(new);
            admitted(tile, self.announced.remove(&tile));
            self.peak = self.peak.max(self.in_use());
        }
        // Checks whether more will be wanted, so that the end is noticed.
        if self.next.is_some() && self.free.len() == self.slots.len() {
            self.next = self.peek();
        }
    }

    fn peek(&self) -> Option<TileId> {
        let mut from = self.next?;
        loop {
            match self.memories.next_need(self.grid, self.tiles, self.rank, from) {
                Some(tile) => return Some(tile),
                None if from.col + 1 < self.tiles => from = TileId { row: from.col + 1, col: from.col + 1 },
                None => return None,
            }
        }
    }

    fn next_need(&mut self) -> Option<TileId> {
        let tile = self.peek();
        self.next = tile.map(|tile| TileId { row: tile.row + 1, ..tile });
        tile
    }

    /// The slot of a tile.
    pub fn find(&mut self, tile: TileId) -> Option<(usize, &mut ReservedSlot)> {
        let &slot = self.places.get(&tile)?;
        Some((slot, self.slots[slot].as_mut().expect("places name slots in use")))
    }

    /// The slot of that number, which is in use.
    pub fn slot(&mut self, slot: usize) -> &mut ReservedSlot {
        self.slots[slot].as_mut().expect("the slot is in use")
    }

    /// Notes that an own task has read a tile before this run began.
    pub fn was_read(&mut self, tile: TileId) {
        match self.find(tile) {
            Some((_, slot)) => slot.consumers -= 1,
            None => *self.read_before.entry(tile).or_default() += 1,
        }
    }

    /// Notes that a tile without a slot is finished.
    pub fn announce(&mut self, tile: TileId) {
        self.announced.insert(tile);
    }

    /// Notes that a rank requests a tile that is not here yet.
    pub fn ask_early(&mut self, tile: TileId, rank: u32) {
        self.early.entry(tile).or_default().push(rank);
    }

    /// The ranks that requested a tile before it came.
    pub fn take_early(&mut self, tile: TileId) -> Vec<u32> {
        self.early.remove(&tile).unwrap_or_default()
    }

    /// Frees a slot.
    pub fn free(&mut self, slot: usize) -> TileId {
        let gone = self.slots[slot].take().expect("the slot is in use");
        self.places.remove(&gone.tile);
        self.free.push(slot);
        gone.tile
    }
}
