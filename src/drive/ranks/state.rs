//! The shared state of the threads of a rank: its task machine, the jobs, the words of tiles, envelopes to be sent.

use super::disk_state::{DiskState, Reader};
use super::packed::PackedTiles;
use super::report::{SampleLog, SpanLog};
use super::{RankPlan, RankReport, RankTiles, Sample, WorkerReport};
use crate::comm::mailbox::{Payload, Waker};
use crate::error::{Error, Result};
use crate::runtime::protocol::{
    Delivery, Memories, Message, ProtocolAction, ProtocolEvent, Sites, TaskMachine, TileRun,
};
use crate::runtime::{Owner, TileLevel};
use crate::store::IoBuffer;
use crate::tile::{RankGrid, TileId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Work for any worker of a site.
pub(super) enum Job {
    /// A received tile is to be made an operand.
    Unpack(TileId, Payload),
    /// A finished own tile is to be packed, for the ranks that wait for it.
    Pack(TileId),
    /// A tile that was read from a disk is to be put into its place.
    Place(TileId, IoBuffer),
    /// Tasks on an own tile.
    Run(TileRun),
}

/// A message that the progress thread is to send.
pub(super) struct Envelope {
    pub to: usize,
    pub header: Vec<u64>,
    pub payload: Option<(TileId, Payload)>,
}

/// The work to do at a site.
#[derive(Default)]
pub(super) struct SiteState {
    pub runs: VecDeque<TileRun>,
    /// Workers that sleep.
    idle: usize,
}

/// The data that the lock protects.
pub(super) struct RankState {
    pub machine: TaskMachine,
    /// For out-of-core tiles.
    pub disk: Option<DiskState>,
    /// Conversions come first: this rank may wait for tiles that others have sent.
    unpacks: VecDeque<(TileId, Payload)>,
    pub sites: Vec<SiteState>,
    envelopes: Vec<Envelope>,
    /// Packed finished own tiles, while some rank is to get them.
    pub packed: PackedTiles,
    /// Received tiles, with their words while these are needed.
    received: FxHashMap<TileId, Option<Payload>>,
    /// Tiles that are coming, or wait to be made operands.
    incoming: usize,
    /// Buffers of tiles that are not needed any more.
    spare: Vec<Vec<u64>>,
    /// Number of the first of these buffers that were never written: they do not count as memory yet.
    untouched: usize,
    /// The machine is done.
    finished: bool,
    /// Workers are to leave.
    ended: bool,
    error: Option<Error>,
    /// The progress thread looks for messages seldom.
    patient: bool,
    /// Buffers for tiles of others that have been written to: given out, in use, spare.
    buffer_bytes: u64,
    peak_buffer_bytes: u64,
    /// Where there are other ranks, or spans are noted.
    samples: Option<SampleLog>,
    /// The report of each worker, once it has left.
    pub workers: Vec<WorkerReport>,
}

/// The data that the threads of a rank share.
pub(super) struct SharedState<'a, W> {
    pub tiles: &'a W,
    grid: RankGrid,
    memories: Memories,
    tile_rows: usize,
    /// The senders and receivers of tiles, and so whether readers pass them on.
    delivery: &'static dyn Delivery,
    /// The largest number of tiles that are coming, or wait to be made operands, at a time.
    most_incoming: usize,
    /// The largest number of runs under way on the host.
    most_runs: usize,
    pub(super) sites: Sites,
    spans: bool,
    epoch: Instant,
    /// The waker of the thread that moves messages, where there are other ranks.
    waker: Option<Waker>,
    /// By site.
    changed: Vec<Condvar>,
    state: Mutex<RankState>,
}

/// The transfers of a rank, as the progress thread reports them.
#[derive(Default)]
pub(super) struct Moves {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub transfers: Vec<super::WorkSpan>,
}

pub(super) fn bytes_of(words: usize) -> u64 {
    (words * size_of::<u64>()) as u64
}

impl<'a, W: RankTiles> SharedState<'a, W> {
    pub fn new(
        mut machine: TaskMachine,
        tiles: &'a W,
        plan: &RankPlan,
        workers: usize,
        waker: Option<Waker>,
    ) -> SharedState<'a, W> {
        let sites = Sites::new(plan.grid, &plan.protocol);
        let spare = tiles.buffers();
        let disk = tiles.disk().map(|disk| {
            machine.resume(&|tile| disk.was_finished(tile));
            let owner = Owner { grid: plan.grid, number: machine.rank() };
            DiskState::new(TileLevel::new(plan.graph, owner, disk.shape(), |tile| disk.was_finished(tile)))
        });
        let state = RankState {
            machine,
            disk,
            unpacks: VecDeque::new(),
            sites: (0..sites.count()).map(|_| SiteState::default()).collect(),
            envelopes: Vec::new(),
            packed: PackedTiles::new(plan.room.packed),
            received: FxHashMap::default(),
            incoming: 0,
            untouched: spare.len(),
            spare,
            finished: false,
            ended: false,
            error: None,
            patient: false,
            buffer_bytes: 0,
            peak_buffer_bytes: 0,
            samples: (waker.is_some() || plan.spans).then(SampleLog::new),
            workers: vec![WorkerReport::default(); workers],
        };
        let shared = SharedState {
            tiles,
            grid: plan.grid,
            memories: plan.memories.clone(),
            tile_rows: plan.graph.tiles,
            delivery: plan.protocol.delivery.rule(),
            most_incoming: plan.room.incoming.max(1),
            most_runs: plan.protocol.workers,
            sites,
            spans: plan.spans,
            epoch: Instant::now(),
            waker,
            changed: (0..sites.count()).map(|_| Condvar::new()).collect(),
            state: Mutex::new(state),
        };
        shared.advance(&mut shared.lock());
        shared
    }

    pub fn lock(&self) -> MutexGuard<'_, RankState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until something has changed for the workers of a site.
    pub fn wait<'s>(&self, site: usize, mut state: MutexGuard<'s, RankState>) -> MutexGuard<'s, RankState> {
        state.sites[site].idle += 1;
        if std::mem::take(&mut state.patient) {
            self.wake_progress_thread();
        }
        let mut state = self.changed[site].wait(state).unwrap_or_else(PoisonError::into_inner);
        state.sites[site].idle -= 1;
        state
    }

    /// A log of spans from the time that this rank began.
    pub fn span_log(&self) -> SpanLog {
        SpanLog::new(self.epoch, self.spans)
    }

    /// Whether a tile is to be sent to other ranks.
    pub fn is_sent(&self, tile: TileId) -> bool {
        self.grid.size() > 1 && !self.memories.clients(self.grid, self.tile_rows, tile).is_empty()
    }

    /// Processes an event, and the machine's actions on it; wakes the threads that carry them out.
    pub fn handle(&self, state: &mut RankState, event: ProtocolEvent) {
        state.machine.handle(event);
        self.advance(state);
    }

    pub(super) fn advance(&self, state: &mut RankState) {
        self.abandon_runs(state);
        self.carry_out_actions(state);
        if let Err(error) = self.begin_moves(state) {
            self.fail_moves(state, error);
            self.carry_out_actions(state);
        }
        if state.is_over() && !state.ended && self.waker.is_none() {
            state.ended = true;
            self.close_disk();
            self.changed.iter().for_each(Condvar::notify_all);
        }
        for (site, changed) in self.changed.iter().enumerate() {
            (0..state.sites[site].idle.min(state.jobs(site))).for_each(|_| changed.notify_one());
        }
        if state.is_over() || !state.envelopes.is_empty() {
            self.wake_progress_thread();
        }
        let RankState { machine, samples, sites, packed, buffer_bytes, workers, .. } = state;
        let Some(samples) = samples else { return };
        samples.event(|| Sample {
            at_ns: self.epoch.elapsed().as_nanos() as u64,
            ready: machine.ready() as u32,
            busy: (workers.len() - sites.iter().map(|site| site.idle).sum::<usize>()) as u32,
            held_bytes: packed.bytes() + *buffer_bytes,
        });
    }

    fn next_action(&self, state: &mut RankState) -> Option<ProtocolAction> {
        let level = state.disk.as_ref().map(|disk| &disk.level);
        let admits = |tile| level.is_none_or(|level| level.admits(tile, self.most_runs));
        state.machine.poll_near(&|site, tile| self.tiles.is_near(site, tile), &admits)
    }

    /// Carries out the actions of the machine, except those of workers.
    fn carry_out_actions(&self, state: &mut RankState) {
        while let Some(action) = self.next_action(state) {
            match (action, &mut state.disk) {
                (ProtocolAction::Send { to, message: message @ Message::Tile { tile, .. } }, Some(disk)) => {
                    let is_written = self.tiles.disk().is_some_and(|tiles| tiles.is_written(tile));
                    disk.outgoing.ask(tile, (to, message.to_words()), is_written);
                }
                (ProtocolAction::Send { to, message }, _) => state.enqueue(to, &message),
                (ProtocolAction::Run(run), Some(disk)) => disk.take(run),
                (ProtocolAction::Run(run), None) => state.sites[self.sites.of_run(&run)].runs.push_back(run),
                (ProtocolAction::Release(tile), _) => self.release(state, tile),
                (ProtocolAction::Finished, _) => state.finished = true,
            }
        }
    }

    pub(super) fn owns(&self, state: &RankState, tile: TileId) -> bool {
        self.grid.owner(tile) == state.machine.rank()
    }

    pub(super) fn wake_progress_thread(&self) {
        self.waker.iter().for_each(Waker::wake);
    }

    fn release(&self, state: &mut RankState, tile: TileId) {
        state.packed.release(tile);
        if let Some(payload) = state.received.remove(&tile) {
            self.tiles.release(tile);
            payload.into_iter().for_each(|payload| state.give_buffer_back(payload));
        }
    }

    /// Stores the words of a finished own tile that others read.
    pub fn packed(&self, state: &mut RankState, tile: TileId, payload: &Payload) {
        let readers = state.packed.keep(tile, payload.clone());
        readers.into_iter().for_each(|reader| state.send(reader, tile, payload.clone()));
    }

    /// Notes that a received tile is an operand: its words stay only where this rank may pass them on.
    pub fn imported(&self, state: &mut RankState, tile: TileId) {
        state.incoming = state.incoming.saturating_sub(1);
        if W::UNPACKS && !self.delivery.passes_on(self.memories.clients(self.grid, self.tile_rows, tile).len()) {
            let payload = state.received.get_mut(&tile).and_then(Option::take);
            payload.into_iter().for_each(|payload| state.give_buffer_back(payload));
        }
        self.handle(state, ProtocolEvent::Imported(tile));
        self.wake_progress_thread(); // the next one may come
    }

    /// Whether another tile may come now; it counts from then on.
    pub fn takes_another(&self, state: &mut RankState) -> bool {
        if state.disk.is_some() {
            return self.disk_takes_another(state);
        }
        let has_room = !W::UNPACKS || state.incoming < self.most_incoming;
        state.incoming += usize::from(has_room);
        has_room
    }

    /// Stores a received tile, with its message.
    pub fn came(&self, state: &mut RankState, from: usize, message: Message, tile: TileId, words: Vec<u64>) {
        state.buffer_bytes += bytes_of(words.capacity());
        state.peak_buffer_bytes = state.peak_buffer_bytes.max(state.buffer_bytes);
        if state.machine.is_stopped() {
            state.buffer_bytes -= bytes_of(words.capacity());
            return;
        }
        if state.disk.is_some() {
            self.handle(state, ProtocolEvent::Message { from, message });
            self.keep(state, tile, &words);
            state.spare.push(words);
            return self.advance(state);
        }
        let payload = Arc::new(words);
        self.tiles.arrived(tile, &payload);
        if W::UNPACKS {
            state.unpacks.push_back((tile, payload.clone()));
        }
        state.received.insert(tile, Some(payload));
        self.handle(state, ProtocolEvent::Message { from, message });
    }

    /// Notes that a tile has left.
    pub fn left(&self, state: &mut RankState, tile: TileId) {
        if let Some(disk) = &mut state.disk {
            disk.outgoing.sent(tile);
        }
        state.packed.left(tile);
        self.handle(state, ProtocolEvent::Sent(tile));
    }

    /// An error of this rank: the others are notified, and the first error is kept.
    pub fn fail(&self, state: &mut RankState, error: Error) {
        state.keep_error(error);
        self.handle(state, ProtocolEvent::Failed);
    }

    /// Lets the workers go.
    pub fn end(&self) {
        self.lock().ended = true;
        self.close_disk();
        self.changed.iter().for_each(Condvar::notify_all);
        self.wake_progress_thread();
    }

    /// The report, or the error of this rank.
    pub fn into_report(self, moves: Moves) -> Result<RankReport> {
        let seconds = self.epoch.elapsed().as_secs_f64();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(()), Err)?;
        Ok(RankReport {
            counters: state.machine.counters(),
            workers: state.workers,
            seconds,
            sent_bytes: moves.sent_bytes,
            received_bytes: moves.received_bytes,
            peak_buffer_bytes: state.peak_buffer_bytes,
            peak_packed_bytes: state.packed.peak_bytes(),
            transfers: moves.transfers,
            samples: state.samples.map_or(Vec::new(), SampleLog::into_samples),
        })
    }
}

impl RankState {
    fn jobs(&self, site: usize) -> usize {
        let read = self.disk.as_ref().map_or(0, DiskState::jobs);
        let unpacks = if site == Sites::HOST { self.unpacks.len() + self.packed.jobs() + read } else { 0 };
        unpacks + self.sites[site].runs.len()
    }

    /// Keeps the first error.
    pub fn keep_error(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Whether all workers are busy and find more when they are done; the first one that does not ends the pause.
    pub fn is_patient(&mut self) -> bool {
        let has_jobs = (0..self.sites.len()).any(|site| self.jobs(site) > 0);
        let has_more = has_jobs || self.machine.ready() > 0;
        self.patient = has_more && !self.machine.is_stopped() && self.sites.iter().all(|site| site.idle == 0);
        self.patient
    }

    /// Work for a worker of a site; conversions are for the host.
    pub fn next_job(&mut self, site: usize) -> Option<Job> {
        let unpack = if site == Sites::HOST { self.unpacks.pop_front() } else { None };
        let unpack = unpack.map(|(tile, payload)| Job::Unpack(tile, payload));
        let mut pack = || if site == Sites::HOST { self.packed.next_job().map(Job::Pack) } else { None };
        let unpack = unpack.or_else(&mut pack);
        let mut read = || self.disk.as_mut().filter(|_| site == Sites::HOST)?.next_job();
        let unpack = unpack.or_else(|| read().map(|(tile, bytes)| Job::Place(tile, bytes)));
        unpack.or_else(|| self.sites[site].runs.pop_front().map(Job::Run))
    }

    /// Whether workers are to leave.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether this rank or another one has met an error.
    pub fn is_stopped(&self) -> bool {
        self.machine.is_stopped()
    }

    /// The envelopes to be sent, and whether none comes after them.
    pub fn take_envelopes(&mut self) -> (Vec<Envelope>, bool) {
        (std::mem::take(&mut self.envelopes), self.is_over() || self.ended)
    }

    /// Whether the machine is done, and the disk has no relevant work: work begun before an error is not relevant.
    fn is_over(&self) -> bool {
        let is_idle = || self.machine.is_stopped() || self.disk.as_ref().is_none_or(DiskState::is_idle);
        self.finished && is_idle()
    }

    /// Sends the words of a tile.
    pub fn send(&mut self, (to, header): Reader, tile: TileId, payload: Payload) {
        self.envelopes.push(Envelope { to, header, payload: Some((tile, payload)) });
    }

    /// A buffer for a tile of another rank.
    pub fn take_buffer(&mut self) -> Vec<u64> {
        let is_untouched = self.spare.len() == self.untouched;
        let buffer = self.spare.pop().unwrap_or_default();
        match is_untouched {
            true => self.untouched = self.spare.len(),
            false => self.buffer_bytes -= bytes_of(buffer.capacity()),
        }
        buffer
    }

    fn enqueue(&mut self, to: usize, message: &Message) {
        let payload = match message {
            Message::Tile { tile, .. } => {
                let payload = match self.received.get(tile) {
                    Some(words) => Some(words.clone().expect("a tile that is passed on is here")),
                    None => self.packed.ask(*tile, || (to, message.to_words())),
                };
                let Some(payload) = payload else { return }; // it goes once it is packed
                Some((*tile, payload))
            }
            _ => None,
        };
        self.envelopes.push(Envelope { to, header: message.to_words(), payload });
    }

    /// Keeps a buffer for the next received tile.
    fn give_buffer_back(&mut self, payload: Payload) {
        let bytes = bytes_of(payload.capacity());
        match Arc::try_unwrap(payload) {
            Ok(buffer) => self.spare.push(buffer),
            Err(_) => self.buffer_bytes -= bytes,
        }
    }
}
