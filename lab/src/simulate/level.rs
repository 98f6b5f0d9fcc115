//! A process above a disk: the contents of its memory, by the very [`TileLevel`] of a real run, the next work of its
//! workers, and the requests to the disk. At most [`MOST_TRANSFERS`] tiles of other processes are received and written
//! at a time; further ones wait before the link.
//!
//! Promise: no more tiles are here than there is room for, and a run begins when all its tiles are here; anything else
//! is an error. Depends on: tiles, bytes. Independent of: the model of the disk, the other processes.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use sunzi::advanced::runtime::protocol::{Message, TileRun};
use sunzi::advanced::runtime::{Access, LevelTraffic, MOST_TRANSFERS, Move, Outgoing, Ticket, TileLevel};
use sunzi::advanced::tile::TileId;
use sunzi::{Error, Result};

/// A request to a disk.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum DiskWork {
    /// A tile is read for tasks.
    Fetch(TileId),
    /// The tiles that a run has finished are written.
    Write(TileRun),
    /// A finished tile is read for other processes.
    Send(TileId),
    /// A tile that came is written.
    Keep(TileId),
}

impl DiskWork {
    /// The tile, or the first of several.
    pub fn tile(&self) -> TileId {
        match self {
            DiskWork::Fetch(tile) | DiskWork::Send(tile) | DiskWork::Keep(tile) => *tile,
            DiskWork::Write(run) => run.tile,
        }
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        matches!(self, DiskWork::Write(_) | DiskWork::Keep(_))
    }
}

/// A request, with its bytes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Request {
    pub work: DiskWork,
    pub bytes: u64,
}

/// The next work of a worker.
pub(super) enum WorkerWork {
    /// A tile that was read is put into its place.
    Place(TileId),
    Run(TileRun),
}

/// Bytes of requests that are under way, and the most that there may be.
struct RequestBudget {
    most: u64,
    used: u64,
}

impl RequestBudget {
    /// Takes bytes, where there are enough, or nothing else is under way.
    fn take(&mut self, bytes: u64) -> bool {
        let fits = self.used == 0 || self.used.saturating_add(bytes) <= self.most;
        self.used += if fits { bytes } else { 0 };
        fits
    }
}

/// Bytes of a tile: in the matrix, and finished.
#[derive(Clone, Copy)]
pub(super) struct TileBytes {
    pub entries: u64,
    pub finished: u64,
}

/// The counts of moves and of waiting times.
#[derive(Clone, Copy, Default)]
pub(super) struct LevelCounts {
    pub traffic: LevelTraffic,
    /// Bytes read for other processes.
    pub sent_bytes: u64,
    /// Bytes of finished tiles that tasks have read.
    pub used_bytes: u64,
    /// The largest number of tiles at a time.
    pub peak_tiles: usize,
    /// Seconds of workers without work while runs waited for tiles.
    pub wait_seconds: f64,
    /// Seconds of workers that waited to hand finished tiles to the disk.
    pub write_wait_seconds: f64,
}

/// The process that gets a tile, and the message that goes with it.
type Reader = (usize, Message);

/// A process above a disk.
pub(super) struct DiskLevel {
    tiles: TileLevel,
    bytes: TileBytes,
    room_tiles: usize,
    /// The largest number of runs that the protocol gives out.
    most_runs: usize,
    /// Runs given out that no worker could take yet.
    waiting_runs: usize,
    /// Runs that workers have, by their first tiles.
    tickets: FxHashMap<TileId, Ticket>,
    /// Tiles in their places.
    here: FxHashSet<TileId>,
    /// Occupied places, including those of tiles in transit.
    places: usize,
    /// Finished tiles on the disk.
    published: FxHashSet<TileId>,
    outgoing: Outgoing<Reader>,
    /// Tiles that come or are being written, and envelopes that wait for their turn to come.
    coming: usize,
    announced: VecDeque<u32>,
    /// Tiles to be put into their places, and runs whose tiles are here.
    read: VecDeque<TileId>,
    runs: VecDeque<TileRun>,
    /// Workers without work; jobs whose workers wait to hand over the tiles that they have finished.
    idle: usize,
    blocked: Vec<u32>,
    asked: VecDeque<Request>,
    fetches: VecDeque<Request>,
    fetching: RequestBudget,
    writing: RequestBudget,
    /// When waiting was last added up.
    since: f64,
    counts: LevelCounts,
}

impl DiskLevel {
    /// An empty memory for at most `room_tiles` tiles; the protocol may give out `runs` runs at a time to `workers`
    /// workers.
    pub fn new(
        tiles: TileLevel,
        room_tiles: usize,
        bytes: TileBytes,
        runs: usize,
        workers: usize,
        in_flight: Option<u64>,
    ) -> DiskLevel {
        let budget = || RequestBudget { most: in_flight.unwrap_or(u64::MAX), used: 0 };
        DiskLevel {
            tiles,
            bytes,
            room_tiles,
            most_runs: runs,
            waiting_runs: 0,
            tickets: FxHashMap::default(),
            here: FxHashSet::default(),
            places: 0,
            published: FxHashSet::default(),
            outgoing: Outgoing::default(),
            coming: 0,
            announced: VecDeque::new(),
            read: VecDeque::new(),
            runs: VecDeque::new(),
            idle: workers,
            blocked: Vec::new(),
            asked: VecDeque::new(),
            fetches: VecDeque::new(),
            fetching: budget(),
            writing: budget(),
            since: 0.0,
            counts: LevelCounts::default(),
        }
    }

    /// The counts of moves and of waiting times.
    pub fn counts(&self) -> LevelCounts {
        self.counts
    }

    /// Tiles in memory or in transit to it.
    pub fn held_tiles(&self) -> usize {
        self.places
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.tiles.in_flight() + self.waiting_runs + self.coming + self.tickets.len() == 0
    }

    /// Whether a run on a tile is wanted now.
    pub fn admits(&self, tile: TileId) -> bool {
        self.tiles.admits(tile, self.most_runs)
    }

    /// Adds up how long workers have waited, before that changes: a worker without work has found none.
    fn settle(&mut self, now: f64) {
        let seconds = now - self.since;
        self.counts.wait_seconds += seconds * self.idle.min(self.waiting_runs) as f64;
        self.counts.write_wait_seconds += seconds * self.blocked.len() as f64;
        self.since = now;
    }

    /// Takes a run that the protocol gives out.
    pub fn take(&mut self, run: TileRun, now: f64) {
        self.settle(now);
        self.waiting_runs += 1;
        self.tiles.take(run);
    }

    /// Records that a process gets a tile.
    pub fn ask(&mut self, tile: TileId, reader: Reader) {
        let is_written = self.published.contains(&tile);
        self.outgoing.ask(tile, reader, is_written);
    }

    /// Begins the moves that the level requests.
    pub fn begin_moves(&mut self, now: f64) -> Result<()> {
        while let Some(step) = self.tiles.next_move() {
            match step {
                Move::Fetch(tile) => self.fetch(tile)?,
                Move::Drop(tile) => {
                    self.here.remove(&tile);
                    self.places -= 1;
                }
                Move::WriteBack(_) => {} // the run that finished the tile writes it
            }
        }
        while let Some(tile) = self.outgoing.next(MOST_TRANSFERS) {
            self.counts.sent_bytes += self.bytes.finished;
            self.asked.push_back(Request { work: DiskWork::Send(tile), bytes: self.bytes.finished });
        }
        while let Some((ticket, run)) = self.tiles.next_run() {
            self.settle(now);
            self.waiting_runs -= 1;
            self.tickets.insert(run.tile, ticket);
            self.runs.push_back(run);
        }
        Ok(())
    }

    fn fetch(&mut self, tile: TileId) -> Result<()> {
        self.places += 1;
        self.counts.peak_tiles = self.counts.peak_tiles.max(self.places);
        if self.places > self.room_tiles {
            let message =
                format!("tile ({}, {}) arrives while all {} places are in use", tile.row, tile.col, self.room_tiles);
            return Err(Error::verification(message));
        }
        let (is_finished, traffic) = (self.published.contains(&tile), &mut self.counts.traffic);
        let (bytes, sum) = match is_finished {
            true => (self.bytes.finished, &mut traffic.operand_bytes),
            false => (self.bytes.entries, &mut traffic.entry_bytes),
        };
        *sum += bytes;
        self.fetches.push_back(Request { work: DiskWork::Fetch(tile), bytes });
        Ok(())
    }

    /// The next request that may begin.
    pub fn next_request(&mut self) -> Option<Request> {
        if let Some(request) = self.asked.pop_front() {
            return Some(request);
        }
        let bytes = self.fetches.front()?.bytes;
        if self.fetching.take(bytes) { self.fetches.pop_front() } else { None }
    }

    /// Something for a worker that has nothing to do.
    pub fn next_work(&mut self, now: f64) -> Option<WorkerWork> {
        if self.idle == 0 {
            return None;
        }
        let place = self.read.front().map(|&tile| WorkerWork::Place(tile));
        let work = place.or_else(|| self.runs.front().cloned().map(WorkerWork::Run))?;
        self.settle(now);
        self.idle -= 1;
        match work {
            WorkerWork::Place(_) => drop(self.read.pop_front()),
            WorkerWork::Run(_) => drop(self.runs.pop_front()),
        }
        Some(work)
    }

    /// Records that a worker begins a run: all its tiles must be here.
    pub fn begin_run(&mut self, run: &TileRun) -> Result<()> {
        for one in self.tiles.uses(run) {
            let TileId { row, col } = one.tile;
            if !self.here.contains(&one.tile) {
                return Err(Error::verification(format!("{run:?} starts without tile ({row}, {col})")));
            }
            self.counts.used_bytes += if one.access == Access::Read { self.bytes.finished } else { 0 };
        }
        Ok(())
    }

    /// Records that the worker of a job has finished the tiles of a run: whether they may be handed to the disk now,
    /// or the worker waits.
    pub fn hands_over(&mut self, run: &TileRun, job: u32, now: f64) -> bool {
        let may = !run.finish || self.writing.take(run.count as u64 * self.bytes.finished);
        if !may {
            self.settle(now);
            self.blocked.push(job);
        }
        may
    }

    /// The jobs whose workers wait to hand over the tiles that they have finished: each is to try again.
    pub fn take_blocked(&mut self, now: f64) -> Vec<u32> {
        self.settle(now);
        std::mem::take(&mut self.blocked)
    }

    /// Records that a run is done: its worker is free, and the tiles that it has finished are to be written.
    pub fn done(&mut self, run: &TileRun, now: f64) {
        self.settle(now);
        self.idle += 1;
        let ticket = self.tickets.remove(&run.tile).expect("a run that was planned");
        self.tiles.done(ticket, run);
        if run.finish {
            let bytes = run.count as u64 * self.bytes.finished;
            self.write(DiskWork::Write(run.clone()), bytes);
        }
    }

    fn write(&mut self, work: DiskWork, bytes: u64) {
        self.counts.traffic.written_bytes += bytes;
        self.asked.push_back(Request { work, bytes });
    }

    /// Records that a tile was read for tasks: `at_once` it is in its place, else a worker puts it there.
    pub fn fetched(&mut self, tile: TileId, bytes: u64, at_once: bool) {
        self.fetching.used -= bytes;
        if at_once {
            self.placed(tile);
        } else {
            self.read.push_back(tile);
        }
    }

    fn placed(&mut self, tile: TileId) {
        self.here.insert(tile);
        self.tiles.fetched(tile);
    }

    /// Records that a worker has put a tile into its place.
    pub fn placed_by_worker(&mut self, tile: TileId, now: f64) {
        self.settle(now);
        self.idle += 1;
        self.placed(tile);
    }

    /// Records that the tiles of a run are written.
    pub fn written(&mut self, run: &TileRun, bytes: u64) {
        self.writing.used -= bytes;
        for tile in run.tiles() {
            self.published.insert(tile);
            self.outgoing.written(tile);
            self.tiles.written(tile);
        }
    }

    /// The processes that get a tile that was read for them.
    pub fn read_to_send(&mut self, tile: TileId) -> Vec<Reader> {
        self.outgoing.read(tile)
    }

    /// Records that a tile has left for one of them.
    pub fn sent(&mut self, tile: TileId) {
        self.outgoing.sent(tile);
    }

    /// Whether a tile of another process may come now; else its envelope waits here.
    pub fn lets_come(&mut self, envelope: u32) -> bool {
        let has_room = self.coming < MOST_TRANSFERS;
        self.coming += usize::from(has_room);
        if !has_room {
            self.announced.push_back(envelope);
        }
        has_room
    }

    /// A tile came, and is to be written.
    pub fn keep(&mut self, tile: TileId) {
        self.write(DiskWork::Keep(tile), self.bytes.finished);
    }

    /// A tile that came is written: the next one that may come.
    pub fn kept(&mut self, tile: TileId) -> Option<u32> {
        self.published.insert(tile);
        self.outgoing.written(tile);
        let next = self.announced.pop_front();
        self.coming -= usize::from(next.is_none());
        next
    }
}
