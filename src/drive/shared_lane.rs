//! One device for several workers: its lane, and the cache of tiles that says what must move.
//!
//! A worker takes a turn, in which it submits all that its run needs; then the next one may, while the first waits for
//! its own work to be done. So copies of one run overlap with the work of another, and a tile that a run updates more
//! than once stays for it. What is submitted is ordered by the lane's events, so holds end with the submission.
//! Knows: moves, events. Does not know: what the work is, who owns a tile.
#![forbid(unsafe_code)]

use super::device::{Home, Lane};
use crate::device::{Device, Event, Region, Stream};
use crate::error::{Error, Result};
use crate::runtime::{Admission, CacheCounters, CholeskyGraph, Limits, Move, TileCache, TileState, TileUse, Victim};
use crate::tile::TileId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a turn works with.
struct Inner {
    lane: Lane<TileId>,
    cache: TileCache<TileId>,
    tasks: u64,
    /// Set by the first error: what is where is not known after it.
    broken: Option<Broken>,
}

/// Why a device is of no use any more.
enum Broken {
    Lost(String),
    DeviceMemory { bytes: u64, used_bytes: u64, capacity_bytes: u64 },
    OutOfMemory { bytes: u64 },
    Other(String),
}

impl Broken {
    fn by(error: &Error) -> Broken {
        match error {
            Error::DeviceLost(reason) => Broken::Lost(reason.clone()),
            &Error::DeviceMemory { bytes, used_bytes, capacity_bytes } => {
                Broken::DeviceMemory { bytes, used_bytes, capacity_bytes }
            }
            &Error::OutOfMemory { bytes } => Broken::OutOfMemory { bytes },
            other => Broken::Other(other.to_string()),
        }
    }

    fn again(&self) -> Result<()> {
        Err(match self {
            Broken::Lost(reason) => Error::DeviceLost(reason.clone()),
            &Broken::DeviceMemory { bytes, used_bytes, capacity_bytes } => {
                Error::DeviceMemory { bytes, used_bytes, capacity_bytes }
            }
            &Broken::OutOfMemory { bytes } => Error::OutOfMemory { bytes },
            Broken::Other(reason) => Error::Device(reason.clone()),
        })
    }
}

/// A lane with its cache.
pub struct SharedLane {
    device: Arc<dyn Device>,
    graph: CholeskyGraph,
    inner: Mutex<Inner>,
    /// Tiles that nobody reads any more.
    unwanted: Mutex<Vec<TileId>>,
    /// By tile number: whether the tile is there, or about to come. Asked without a lock, for choices alone.
    resident: Vec<AtomicBool>,
}

/// The device for one worker: what it submits comes after all that was submitted before.
pub struct Turn<'a> {
    shared: &'a SharedLane,
    inner: MutexGuard<'a, Inner>,
}

impl SharedLane {
    /// With an empty cache.
    pub fn new(lane: Lane<TileId>, graph: CholeskyGraph, victim: Victim) -> SharedLane {
        let cache = TileCache::new(Limits { bytes: u64::MAX, tiles: lane.room_tiles() }, victim);
        let resident = (0..graph.tile_count()).map(|_| AtomicBool::new(false)).collect();
        let (device, unwanted) = (lane.device().clone(), Mutex::default());
        SharedLane {
            device,
            graph,
            inner: Mutex::new(Inner { lane, cache, tasks: 0, broken: None }),
            unwanted,
            resident,
        }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Whether a tile is on the device.
    pub fn holds(&self, tile: TileId) -> bool {
        self.resident[self.graph.index(tile)].load(Ordering::Relaxed)
    }

    /// Takes in that nobody reads a tile any more: its place is free from the next turn on.
    pub fn forget(&self, tile: TileId) {
        self.unwanted.lock().unwrap_or_else(PoisonError::into_inner).push(tile);
    }

    /// The device for the calling worker alone, until the turn is dropped.
    pub fn turn(&self) -> Turn<'_> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn = Turn { shared: self, inner };
        turn.drop_unwanted();
        turn
    }

    /// Tiles that there is room for.
    pub fn room_tiles(&self) -> usize {
        self.turn().inner.lane.room_tiles()
    }

    /// What was moved, and the tasks run.
    pub fn counters(&self) -> (CacheCounters, u64) {
        let turn = self.turn();
        (turn.inner.cache.counters(), turn.inner.tasks)
    }

    /// Waits for everything; seconds of the device's clock since the lane was made.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    pub fn finish(&self) -> Result<f64> {
        self.turn().inner.lane.finish()
    }
}

impl Turn<'_> {
    /// Submits a task, and before it the moves that it needs. `home` finds host memory for a tile; `submit` gets the
    /// places of the tiles in the order of `uses`. Returns the end of the task.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`], and those of `home` and `submit`.
    pub fn run(
        &mut self,
        uses: &[TileUse<TileId>],
        home: impl FnMut(TileId) -> Result<Home>,
        submit: impl FnOnce(&dyn Device, Stream, &[Region]) -> Result<()>,
    ) -> Result<Event> {
        self.attempt(|turn| turn.submit(uses, home, submit))
    }

    fn submit(
        &mut self,
        uses: &[TileUse<TileId>],
        home: impl FnMut(TileId) -> Result<Home>,
        submit: impl FnOnce(&dyn Device, Stream, &[Region]) -> Result<()>,
    ) -> Result<Event> {
        let Admission::Granted { moves, lease } = self.inner.cache.acquire(uses) else {
            panic!("there is room for one task, and holds end with the submission");
        };
        self.note(&moves);
        let tiles = uses.iter().map(|one| (one.tile, one.access)).collect::<Vec<_>>();
        let Inner { lane, cache, tasks, .. } = &mut *self.inner;
        lane.carry_out(&moves, home)?;
        let end = lane.work(&tiles, submit)?;
        cache.release(lease);
        *tasks += 1;
        Ok(end)
    }

    /// Submits the way home of a tile that was modified; it stays.
    ///
    /// # Errors
    /// As [`Turn::run`].
    pub fn write_back(&mut self, tile: TileId, home: impl FnMut(TileId) -> Result<Home>) -> Result<()> {
        self.attempt(|turn| {
            let Inner { lane, cache, .. } = &mut *turn.inner;
            lane.carry_out(cache.write_back(tile).as_slice(), home)
        })
    }

    /// Submits the way home of a tile that was modified and will be changed there: it goes.
    ///
    /// # Errors
    /// As [`Turn::run`].
    pub fn send_home(&mut self, tile: TileId, home: impl FnMut(TileId) -> Result<Home>) -> Result<()> {
        self.write_back(tile, home)?;
        self.discard(tile)
    }

    /// Remembers an error for the turns of others, which could only go wrong.
    fn attempt<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.inner.broken.as_ref().map_or(Ok(()), Broken::again)?;
        work(self).inspect_err(|error| self.inner.broken = Some(Broken::by(error)))
    }

    fn discard(&mut self, tile: TileId) -> Result<()> {
        let moves = self.inner.cache.discard(tile);
        self.note(moves.as_slice());
        self.inner.lane.carry_out(moves.as_slice(), |_| unreachable!("nothing is copied"))
    }

    fn drop_unwanted(&mut self) {
        let unwanted = std::mem::take(&mut *self.shared.unwanted.lock().unwrap_or_else(PoisonError::into_inner));
        if self.inner.broken.is_some() {
            return;
        }
        for tile in unwanted {
            // What nobody reads is finished, and so at home.
            assert_ne!(self.inner.cache.state(tile), TileState::Modified, "{tile:?} has changes");
            self.discard(tile).expect("to forget needs no device");
        }
    }

    fn note(&self, moves: &[Move<TileId>]) {
        let set = |tile, here| self.shared.resident[self.shared.graph.index(tile)].store(here, Ordering::Relaxed);
        for step in moves {
            match *step {
                Move::Upload(tile) | Move::Allocate(tile) => set(tile, true),
                Move::Drop(tile) => set(tile, false),
                Move::WriteBack(_) => {}
            }
        }
    }
}
