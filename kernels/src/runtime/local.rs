//! The jobs of one memory above a disk: which of them are planned, which objects must be fetched, written and dropped
//! for them, and which can run.
//!
//! The lower level answers later: a fetch or a write begins with a move that is returned as an action and ends with an
//! event. A planned job holds its objects from then on, so that objects fetched for it stay; an object that is being
//! written is held until the write has ended. Jobs are planned in advance within the memory, so that fetches for later
//! jobs overlap the computation of earlier ones. Promise: as [`Residency`]; every planned job can run once its fetches
//! have ended, whatever the others do. Depends on: ids and bytes. Independent of: what jobs compute, what a move takes,
//! clocks. Source: Saule, Aktulga, Yang, Ng, Catalyurek, "An Out-of-Core Task-based Middleware for Data-Intensive
//! Scientific Computing", section 3.

use crate::runtime::residency::{
    Access, Admission, CacheCounters, Eviction, Lease, Limits, Move, Residency, TileState, TileUse,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;

/// A planned job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ticket(u64);

/// Answer to a request to plan a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planned {
    /// It will run.
    Yes,
    /// There is not enough memory now; the end of a transfer or of a job will free some.
    Later,
    /// Its objects exceed the memory even without other objects.
    TooLarge {
        /// Bytes of the objects.
        bytes: u64,
        /// Number of the objects.
        tiles: usize,
    },
}

/// A job from its plan to its end.
struct LocalJob<T, J> {
    job: Option<J>,
    lease: Lease<T>,
    /// Fetches that have not ended.
    missing: usize,
}

/// The objects and jobs of one memory.
pub struct LocalScheduler<T, J> {
    objects: Residency<T>,
    jobs: FxHashMap<Ticket, LocalJob<T, J>>,
    next: u64,
    /// Objects being fetched, and the jobs that wait for them.
    coming: FxHashMap<T, Vec<Ticket>>,
    /// Objects being written, and whether they are to be removed afterwards.
    leaving: FxHashMap<T, (Lease<T>, bool)>,
    moves: VecDeque<Move<T>>,
    ready: VecDeque<Ticket>,
}

impl<T: Copy + Eq + Hash + Debug, J> LocalScheduler<T, J> {
    /// An empty memory.
    pub fn new(limits: Limits, eviction: Eviction) -> LocalScheduler<T, J> {
        LocalScheduler {
            objects: Residency::new(limits, eviction),
            jobs: FxHashMap::default(),
            next: 0,
            coming: FxHashMap::default(),
            leaving: FxHashMap::default(),
            moves: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Plans a job on these objects, if it leaves `spare` of the memory that no job holds; otherwise returns it.
    ///
    /// An object named [`Access::Create`] is made by the job; the others must be in memory, being fetched, or in the
    /// lower level.
    pub fn plan(&mut self, job: J, uses: &[TileUse<T>], spare: Limits) -> (Planned, Option<J>) {
        let new = |one: &&TileUse<T>| self.objects.hold_count(one.tile) == 0;
        let (bytes, tiles) = uses.iter().filter(new).fold((0, 0), |(bytes, tiles), one| (bytes + one.bytes, tiles + 1));
        let unheld = self.objects.unheld();
        let is_tight = bytes + spare.bytes > unheld.bytes || tiles + spare.tiles > unheld.tiles;
        let limits = self.objects.limits();
        if is_tight && bytes <= limits.bytes && tiles <= limits.tiles {
            return (Planned::Later, Some(job));
        }
        match self.objects.acquire_clean(uses) {
            Admission::Granted { moves, lease } => {
                self.begin(job, uses, moves, lease);
                (Planned::Yes, None)
            }
            Admission::Busy => (Planned::Later, Some(job)),
            Admission::Unwritten(tiles) => {
                tiles.into_iter().for_each(|tile| self.write(tile));
                (Planned::Later, Some(job))
            }
            Admission::TooLarge { bytes, tiles } => (Planned::TooLarge { bytes, tiles }, Some(job)),
        }
    }

    fn begin(&mut self, job: J, uses: &[TileUse<T>], moves: Vec<Move<T>>, lease: Lease<T>) {
        let ticket = Ticket(self.next);
        self.next += 1;
        for step in &moves {
            if let Move::Fetch(tile) = *step {
                self.coming.insert(tile, Vec::new());
            }
        }
        self.moves.extend(moves);
        let mut missing = 0;
        for one in uses {
            if let Some(waiting) = self.coming.get_mut(&one.tile)
                && waiting.last() != Some(&ticket)
            {
                waiting.push(ticket);
                missing += 1;
            }
        }
        self.jobs.insert(ticket, LocalJob { job: Some(job), lease, missing });
        if missing == 0 {
            self.ready.push_back(ticket);
        }
    }

    /// The next move to begin, in this order: memory that a [`Move::Drop`] frees may be used by the next fetch.
    pub fn next_move(&mut self) -> Option<Move<T>> {
        self.moves.pop_front()
    }

    /// The next job that can run, whose objects are in memory.
    pub fn next_job(&mut self) -> Option<(Ticket, J)> {
        let ticket = self.ready.pop_front()?;
        let job = self.jobs.get_mut(&ticket).and_then(|job| job.job.take());
        Some((ticket, job.expect("a ready job was not started before")))
    }

    /// Jobs that can run and have not been started.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Jobs that are planned, ready or running.
    pub fn planned(&self) -> usize {
        self.jobs.len()
    }

    /// Records that a fetch has ended.
    pub fn fetched(&mut self, tile: T) {
        let waiting = self.coming.remove(&tile).unwrap_or_else(|| panic!("{tile:?} was not being fetched"));
        for ticket in waiting {
            let job = self.jobs.get_mut(&ticket).expect("a waiting job is planned");
            job.missing -= 1;
            if job.missing == 0 {
                self.ready.push_back(ticket);
            }
        }
    }

    /// Records that a write has ended.
    pub fn written(&mut self, tile: T) {
        let (lease, forget) = self.leaving.remove(&tile).unwrap_or_else(|| panic!("{tile:?} was not being written"));
        self.objects.release(lease);
        if forget {
            self.forget(tile);
        }
    }

    /// Records that a job is done and no longer holds its objects.
    pub fn done(&mut self, ticket: Ticket) {
        let job = self.jobs.remove(&ticket).expect("the job is planned");
        assert!(job.job.is_none(), "the job was started");
        self.objects.release(job.lease);
    }

    /// Removes all jobs that have not been started. No job can be planned after that.
    pub fn abandon(&mut self) -> Vec<J> {
        self.moves.clear();
        self.ready.clear();
        self.coming.values_mut().for_each(Vec::clear);
        self.jobs.values_mut().filter_map(|job| job.job.take()).collect()
    }

    /// Begins to write an object that is newer than its copy in the lower level; it stays in memory, at least until the
    /// write has ended.
    pub fn write(&mut self, tile: T) {
        if let Some(step) = self.objects.write_back(tile) {
            let lease = self.objects.hold(tile);
            assert!(self.leaving.insert(tile, (lease, false)).is_none(), "{tile:?} is written once at a time");
            self.moves.push_back(step);
        }
    }

    /// Holds an object in memory until the lease is [released](LocalScheduler::release).
    pub fn hold(&mut self, tile: T) -> Lease<T> {
        self.objects.hold(tile)
    }

    /// Ends a hold.
    pub fn release(&mut self, lease: Lease<T>) {
        self.objects.release(lease);
    }

    /// Records that an object will not be requested again; it may be held only by a write. If it was not written yet,
    /// it will not be written.
    pub fn forget(&mut self, tile: T) {
        match self.leaving.get_mut(&tile) {
            Some((_, forget)) => *forget = true,
            None => self.moves.extend(self.objects.destroy(tile)),
        }
    }

    /// Whether an object is in memory or being fetched.
    pub fn has(&self, tile: T) -> bool {
        self.objects.state(tile) != TileState::Invalid
    }

    /// Whether an object is in memory, and not only being fetched.
    pub fn is_here(&self, tile: T) -> bool {
        self.has(tile) && !self.coming.contains_key(&tile)
    }

    /// Bytes in memory or being fetched.
    pub fn used_bytes(&self) -> u64 {
        self.objects.used_bytes()
    }

    /// Fetches and writes that have begun and not ended.
    pub fn in_flight(&self) -> usize {
        self.coming.len() + self.leaving.len()
    }

    /// All transfers until now.
    pub fn counters(&self) -> CacheCounters {
        self.objects.counters()
    }
}

/// The value of `spare` that leaves no memory free.
pub const NO_SPARE: Limits = Limits { bytes: 0, tiles: 0 };

/// A use that copies the object from the lower level.
pub fn reads<T>(tile: T, bytes: u64) -> TileUse<T> {
    TileUse { tile, bytes, access: Access::Read }
}

/// A use that makes the object.
pub fn creates<T>(tile: T, bytes: u64) -> TileUse<T> {
    TileUse { tile, bytes, access: Access::Create }
}

#[cfg(test)]
mod tests;
