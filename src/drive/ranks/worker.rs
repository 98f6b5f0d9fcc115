//! A worker of a rank: takes jobs, notifies the task machine, sleeps while there are none.

use super::report::SpanLog;
use super::state::{Job, RankState, SharedState};
use super::{RankTiles, SpanKind, WorkerReport};
use crate::comm::mailbox::Payload;
use crate::error::{Error, Result};
use crate::runtime::protocol::{ProtocolEvent, TileRun};
use crate::store::IoBuffer;
use crate::tile::TileId;
use std::time::Instant;

/// Ends the other threads, and the other ranks, where one panics: they would wait for it for ever.
pub(super) struct PanicGuard<'a, 's, W: RankTiles>(pub &'a SharedState<'s, W>);

impl<W: RankTiles> Drop for PanicGuard<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(&mut self.0.lock(), Error::Cancelled);
            self.0.end();
        }
    }
}

/// The words of finished tiles that others read, and the bytes of tiles to be written.
type FinishedTiles = (Vec<(TileId, Payload)>, Option<IoBuffer>);

/// A job that is done.
enum Done {
    Imported(TileId),
    Packed(TileId, Payload),
    Placed(TileId),
    /// With the words of the tiles that others read, and the bytes of tiles to be written.
    Run(TileRun, Vec<(TileId, Payload)>, Option<IoBuffer>),
}

impl<W: RankTiles> SharedState<'_, W> {
    /// Works until the rank is done, and leaves the report of this worker.
    pub fn work(&self, worker: usize, local: &mut W::Local) {
        let _guard = PanicGuard(self);
        let (mut report, mut log, site) = (WorkerReport::default(), self.span_log(), W::site(local));
        let start = Instant::now();
        let mut state = self.lock();
        while !state.is_ended() {
            let Some(job) = state.next_job(site) else {
                let since = Instant::now();
                state = self.wait(site, state);
                report.wait_seconds += since.elapsed().as_secs_f64();
                continue;
            };
            drop(state);
            let (run, outcome) = self.carry_out(local, job, &mut log);
            report.jobs += 1;
            state = self.lock();
            self.take_in(&mut state, run, outcome);
        }
        report.busy_seconds = start.elapsed().as_secs_f64() - report.wait_seconds;
        report.spans = log.into_spans();
        state.workers[worker] = report;
    }

    fn carry_out(&self, local: &mut W::Local, job: Job, log: &mut SpanLog) -> (Option<TileRun>, Result<Done>) {
        match job {
            Job::Unpack(tile, payload) => {
                let start = log.now();
                let outcome = self.tiles.unpack(local, tile, &payload);
                log.add(SpanKind::Unpack, tile, start);
                (None, outcome.map(|()| Done::Imported(tile)))
            }
            Job::Pack(tile) => {
                let start = log.now();
                let outcome = self.tiles.pack(local, tile);
                log.add(SpanKind::Pack, tile, start);
                (None, outcome.map(|payload| Done::Packed(tile, payload)))
            }
            Job::Place(tile, bytes) => {
                let (start, disk) = (log.now(), self.tiles.disk().expect("a rank above a disk"));
                let outcome = disk.place(local, tile, bytes);
                log.add(SpanKind::Unpack, tile, start);
                (None, outcome.map(|()| Done::Placed(tile)))
            }
            Job::Run(run) => {
                let outcome = self.run(local, &run, log);
                if let (Err(_), Some(disk)) = (&outcome, self.tiles.disk()) {
                    disk.abandon(local);
                }
                (Some(run.clone()), outcome.map(|(packed, bytes)| Done::Run(run, packed, bytes)))
            }
        }
    }

    /// The words of the tiles that are finished and read by others.
    fn run(&self, local: &mut W::Local, run: &TileRun, log: &mut SpanLog) -> Result<FinishedTiles> {
        let start = log.now();
        self.tiles.run(local, run)?;
        let updates = run.updates.len() as u32;
        let kind = if run.finish { SpanKind::Finish(updates) } else { SpanKind::Updates(updates) };
        log.add(kind, run.tile, start);
        let mut packed = Vec::new();
        let disk = self.tiles.disk().filter(|_| run.finish);
        // Out of core, tiles are sent from the disk.
        for tile in run.tiles().filter(|&tile| run.finish && disk.is_none() && self.is_sent(tile)) {
            if !self.lock().packed.set_aside() {
                self.tiles.pack_later(tile);
                continue;
            }
            let start = log.now();
            packed.push((tile, self.tiles.pack(local, tile)?));
            log.add(SpanKind::Pack, tile, start);
        }
        self.tiles.advanced(run)?;
        let bytes = disk.map(|disk| disk.encode(local)).transpose()?;
        Ok((packed, bytes))
    }

    /// Takes in the outcome of a job; `run` where it was a run of a tile.
    fn take_in(&self, state: &mut RankState, run: Option<TileRun>, outcome: Result<Done>) {
        match outcome {
            Ok(Done::Imported(tile)) => self.imported(state, tile),
            Ok(Done::Packed(tile, payload)) => {
                self.packed(state, tile, &payload);
                self.advance(state);
            }
            Ok(Done::Placed(tile)) => self.placed(state, tile),
            Ok(Done::Run(run, packed, bytes)) => {
                packed.iter().for_each(|(tile, payload)| self.packed(state, *tile, payload));
                self.run_done(state, &run, bytes);
                self.handle(state, ProtocolEvent::Done(run));
            }
            Err(error) => {
                self.fail(state, error);
                // The machine ends when no run is under way.
                if let Some(run) = run {
                    self.handle(state, ProtocolEvent::Done(run));
                }
            }
        }
    }
}
