//! One device for its workers: its streams, and the cache that decides which tiles must move.
//!
//! A worker takes a submission guard, with which it submits all that its run needs; then the next one may, while the
//! first waits for its own work to be done. So copies of one run overlap with the work of another, and a tile that a
//! run updates more than once stays for it. Submitted work is ordered by the events of the streams, so holds end with
//! the submission.
//! Depends on: moves, events. Independent of: what the work is, who owns a tile.
#![forbid(unsafe_code)]

use super::streams::{HostCopy, TileStreams};
use crate::device::{Device, Event, Region, Stream};
use crate::error::{Error, Result};
use crate::runtime::{CacheCounters, CholeskyGraph, Move, Task, TaskMoves};
use crate::tile::TileId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The data of a submission.
struct Inner {
    streams: TileStreams<TileId>,
    moves: TaskMoves,
    tasks: u64,
    /// Set by the first error, after which the places of tiles are unknown.
    broken: Option<Error>,
}

/// Streams with the cache that decides which tiles are copied.
pub struct SharedStreams {
    device: Arc<dyn Device>,
    graph: CholeskyGraph,
    inner: Mutex<Inner>,
    /// By tile number: whether the tile is on the device, or will be soon. Read without a lock, only for heuristic
    /// choices.
    resident: Vec<AtomicBool>,
}

/// The device for one worker, whose submissions follow all earlier ones.
pub struct Submission<'a> {
    shared: &'a SharedStreams,
    inner: MutexGuard<'a, Inner>,
}

impl SharedStreams {
    /// With no tiles on the device; `moves` holds the slots of the streams.
    pub fn new(streams: TileStreams<TileId>, graph: CholeskyGraph, moves: TaskMoves) -> SharedStreams {
        let resident = (0..graph.tile_count()).map(|_| AtomicBool::new(false)).collect();
        let device = streams.device().clone();
        SharedStreams { device, graph, inner: Mutex::new(Inner { streams, moves, tasks: 0, broken: None }), resident }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Whether a tile is on the device.
    pub fn holds(&self, tile: TileId) -> bool {
        self.resident[self.graph.index(tile)].load(Ordering::Relaxed)
    }

    /// The device for only the calling worker, until the guard is dropped.
    pub fn submission(&self) -> Submission<'_> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Submission { shared: self, inner }
    }

    /// Tiles that there is room for.
    pub fn room_tiles(&self) -> usize {
        self.submission().inner.streams.room_tiles()
    }

    /// The counters of copies, and the number of tasks run.
    pub fn counters(&self) -> (CacheCounters, u64) {
        let guard = self.submission();
        (guard.inner.moves.counters(), guard.inner.tasks)
    }

    /// Waits for all work; returns the seconds of the device's clock since the streams were made.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    pub fn finish(&self) -> Result<f64> {
        self.submission().inner.streams.finish()
    }
}

impl Submission<'_> {
    /// Submits a task, after the copies that it needs, and before those that may follow it. `host_copy` finds host
    /// memory for a tile; `submit` receives the slots of the tiles in the order of the graph's inputs, then the output.
    /// Returns the end of the task.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`], and the errors of `host_copy` and `submit`; afterwards every guard returns the
    /// same error.
    pub fn run(
        &mut self,
        task: Task,
        host_copy: impl Fn(TileId) -> Result<HostCopy>,
        submit: impl FnOnce(&dyn Device, Stream, &[Region]) -> Result<()>,
    ) -> Result<Event> {
        self.inner.broken.as_ref().map_or(Ok(()), |error| Err(error.repeated()))?;
        self.submit(task, host_copy, submit).inspect_err(|error| self.inner.broken = Some(error.repeated()))
    }

    fn submit(
        &mut self,
        task: Task,
        host_copy: impl Fn(TileId) -> Result<HostCopy>,
        submit: impl FnOnce(&dyn Device, Stream, &[Region]) -> Result<()>,
    ) -> Result<Event> {
        let before = self.inner.moves.begin(task);
        self.note(&before);
        let Inner { streams, moves, tasks, .. } = &mut *self.inner;
        streams.carry_out(&before, &host_copy)?;
        let graph = &self.shared.graph;
        let end = streams.work(&graph.inputs(task), graph.output(task), submit)?;
        let after = moves.end(task);
        streams.carry_out(&after, &host_copy)?;
        *tasks += 1;
        self.note(&after);
        Ok(end)
    }

    fn note(&self, moves: &[Move<TileId>]) {
        let set = |tile, here| self.shared.resident[self.shared.graph.index(tile)].store(here, Ordering::Relaxed);
        for step in moves {
            match *step {
                Move::Fetch(tile) => set(tile, true),
                Move::Drop(tile) => set(tile, false),
                Move::WriteBack(_) => {}
            }
        }
    }
}
