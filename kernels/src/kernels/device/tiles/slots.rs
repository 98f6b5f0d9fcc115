//! The assignment of device memory slots to the operand planes of tiles, and the end of the work on them.

use crate::device::{Event, Region};
use crate::error::{Error, Result};
use crate::runtime::{Admission, CacheCounters, Eviction, Lease, Limits, Move, Residency, TileUse};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A place for the planes of one tile.
struct PlaneSlot {
    /// When the tile is there; `None` while a stream brings it.
    ready: Option<Event>,
    /// The last work of each stream that reads it.
    uses: HashMap<usize, Event>,
    /// The arrival of the tile that was there before.
    before: Option<Event>,
}

struct State {
    cache: Residency<u64>,
    free: Vec<usize>,
    places: HashMap<u64, usize>,
    slots: Vec<PlaneSlot>,
    /// Memory of each slot.
    regions: Vec<Region>,
    /// Slots that there may be.
    most: usize,
    /// A stream has failed: nobody should wait for a tile that it would have brought.
    failure: Option<Error>,
}

/// Slots of one size, shared by streams.
pub(super) struct Slots {
    state: Mutex<State>,
    changed: Condvar,
    /// Makes the memory of one more slot.
    grow: Box<dyn Fn() -> Result<Region> + Send + Sync>,
    /// Slots without which the streams cannot work.
    least: usize,
}

/// A tile that a stream may use, and how.
pub(super) struct SlotRegion {
    pub region: Region,
    slot: usize,
    number: u64,
    /// Events that the stream has to wait for.
    pub after: Vec<Event>,
    /// Whether the stream has to bring the tile.
    pub bring: bool,
}

impl Slots {
    /// No tile anywhere: `least` to `most` slots, made by `grow` when they are first needed.
    pub fn new(
        least: usize,
        most: usize,
        eviction: Eviction,
        grow: impl Fn() -> Result<Region> + Send + Sync + 'static,
    ) -> Slots {
        let state = State {
            cache: Residency::new(Limits { bytes: u64::MAX, tiles: 0 }, eviction),
            free: Vec::new(),
            places: HashMap::new(),
            slots: Vec::new(),
            regions: Vec::new(),
            most,
            failure: None,
        };
        Slots { state: Mutex::new(state), changed: Condvar::new(), grow: Box::new(grow), least }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of the cache.
    pub fn counters(&self) -> CacheCounters {
        self.lock().cache.counters()
    }

    /// Holds the tiles of one product; waits while other streams hold too many.
    pub fn acquire(&self, uses: &[TileUse<u64>]) -> Result<(Lease<u64>, Vec<SlotRegion>)> {
        let mut state = self.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.repeated());
            }
            let missing = uses.iter().filter(|of| !state.places.contains_key(&of.tile)).count();
            self.make_room(&mut state, missing)?;
            match state.cache.acquire(uses) {
                Admission::Granted { moves, lease } => {
                    let brought = state.carry_out(moves);
                    let places = uses.iter().map(|of| self.place(&mut state, of.tile, &brought)).collect();
                    return Ok((lease, places));
                }
                Admission::Busy | Admission::Unwritten(_) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Admission::TooLarge { .. } => unreachable!("a product has two tiles, and a stream has two slots"),
            }
        }
    }

    /// Makes `missing` slots free, as long as there may be more.
    fn make_room(&self, state: &mut State, missing: usize) -> Result<()> {
        while state.free.len() < missing && state.regions.len() < state.most {
            match (self.grow)() {
                Ok(region) => {
                    state.free.push(state.regions.len());
                    state.regions.push(region);
                    state.slots.push(PlaneSlot { ready: None, uses: HashMap::new(), before: None });
                    state.cache.allow(state.regions.len());
                }
                // A GPU may have less than it reports: fewer slots do as well.
                Err(Error::DeviceMemory { .. }) if state.regions.len() >= self.least => {
                    state.most = state.regions.len();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn place(&self, state: &mut State, number: u64, brought: &[u64]) -> SlotRegion {
        let slot = state.places[&number];
        let bring = brought.contains(&number);
        let mut after = Vec::new();
        if bring {
            after.extend(state.slots[slot].uses.drain().map(|(_, event)| event));
            after.extend(state.slots[slot].before.take());
        }
        SlotRegion { region: state.regions[slot].clone(), slot, number, after, bring }
    }

    /// Waits until another stream has brought the tile of a place; returns the event at which it is there.
    pub fn arrival(&self, place: &SlotRegion) -> Result<Event> {
        let mut state = self.lock();
        loop {
            if let Some(ready) = &state.slots[place.slot].ready {
                return Ok(ready.clone());
            }
            if let Some(failure) = &state.failure {
                return Err(failure.repeated());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The tile of a place is there at `event`.
    pub fn brought(&self, place: &SlotRegion, event: Event) {
        self.lock().slots[place.slot].ready = Some(event);
        self.changed.notify_all();
    }

    /// Work that reads the places is done at `event`; their holds end.
    pub fn release(&self, lease: Lease<u64>, places: &[SlotRegion], stream: usize, event: &Event) {
        let mut state = self.lock();
        for place in places {
            debug_assert_eq!(state.places.get(&place.number), Some(&place.slot));
            state.slots[place.slot].uses.insert(stream, event.clone());
        }
        state.cache.release(lease);
        drop(state);
        self.changed.notify_all();
    }

    /// Nobody shall wait any more: a stream has failed.
    pub fn fail(&self, error: &Error) {
        self.lock().failure.get_or_insert(error.repeated());
        self.changed.notify_all();
    }

    /// The error with which a stream has failed, if one has.
    pub fn failure(&self) -> Option<Error> {
        self.lock().failure.as_ref().map(Error::repeated)
    }
}

impl State {
    /// Gives the slots of the tiles that leave to the tiles that come; returns the tiles that have to be brought.
    fn carry_out(&mut self, moves: Vec<Move<u64>>) -> Vec<u64> {
        let mut brought = Vec::new();
        for one in moves {
            match one {
                Move::Drop(tile) => {
                    let slot = self.places.remove(&tile).expect("the tile has a slot");
                    self.slots[slot].before = self.slots[slot].ready.take();
                    self.free.push(slot);
                }
                Move::Fetch(tile) => {
                    let slot = self.free.pop().expect("the cache counts the slots");
                    self.places.insert(tile, slot);
                    brought.push(tile);
                }
                Move::WriteBack(_) => unreachable!("finished tiles are never written"),
            }
        }
        brought
    }
}
