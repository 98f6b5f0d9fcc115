//! Carries out one rank of a tiled factorisation: workers compute, one thread moves messages.
//!
//! Over several ranks only the calling thread calls the mailbox, as MPI may require; it sleeps while nothing moves, and
//! workers are threads of their own. Where one process owns all tiles there are no messages, and the workers are those
//! of the context's pool. They share one [`TaskMachine`], which decides the next steps, under a lock that no thread
//! holds while it computes, copies or sends. Depends on: threads, locks, messages, buffers. Independent of: numbers,
//! what a task computes. Promise: all ranks come to an end, and with the same outcome, whichever of them fails.

mod disk;
mod disk_state;
mod packed;
mod progress_thread;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod worker;

pub use report::{RankReport, Sample, SpanKind, WorkSpan, WorkerReport, sample_bytes, span_bytes};

use super::run_workers;
use crate::comm::mailbox::{Mailbox, Payload, drain};
use crate::comm::{Transport, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::runtime::protocol::{DeviceSites, Memories, ProtocolOptions, Sites, TaskMachine, TileRun};
use crate::runtime::{CholeskyGraph, LevelShape};
use crate::store::{IoBuffer, room_for_threads, start_in};
use crate::tile::{RankGrid, TileId};
use progress_thread::ProgressThread;
use state::{Moves, SharedState};
use std::panic::resume_unwind;
use worker::PanicGuard;

/// The tiles of one rank, and the operations on them.
///
/// Methods with a local state are called by workers, several at a time, each with its own local state. A tile is
/// processed by one worker at a time, and read only when it is finished. Operands are found by their identifiers, among
/// own tiles and received ones.
pub trait RankTiles: Sync {
    /// The private data of a worker: scratch memory, kernels.
    type Local: Send;

    /// Whether received tiles must be converted by [`RankTiles::unpack`] before tasks can read them.
    const UNPACKS: bool;

    /// Carries out a run on own tiles: updates by the columns `run.updates`, then POTRF or TRSM where `run.finish`. A
    /// run of no task ([`TileRun::is_ahead`]) takes in the data other than operands that the first task needs of the
    /// tiles.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], and whatever else is to end the factorisation on all ranks.
    fn run(&self, local: &mut Self::Local, run: &TileRun) -> Result<()>;

    /// The words in which a finished own tile travels, [`RankTiles::payload_words`] of them, always the same. Called
    /// for a tile that other ranks read, after its last task, or after [`RankTiles::pack_later`] when a rank requests
    /// it, and again where the words had to be dropped in between; they are dropped when the last reader has received
    /// them.
    ///
    /// # Errors
    /// As [`RankTiles::run`].
    fn pack(&self, local: &mut Self::Local, tile: TileId) -> Result<Payload>;

    /// Notes that a finished tile will be packed later: data of it that would change meanwhile must be kept.
    fn pack_later(&self, _tile: TileId) {}

    /// Words in which a finished tile travels, own or not.
    fn payload_words(&self, tile: TileId) -> usize;

    /// Buffers for tiles of other ranks to begin with; more are made where there are too few. Called once.
    fn buffers(&self) -> Vec<Vec<u64>> {
        Vec::new()
    }

    /// Notes that a tile has arrived, before it is used. Called by the thread that moves messages, so it must be quick:
    /// a handle may be kept until [`RankTiles::release`].
    fn arrived(&self, _tile: TileId, _body: &Payload) {}

    /// Makes an operand of a received tile, before any task reads it; called where [`RankTiles::UNPACKS`].
    ///
    /// # Errors
    /// As [`RankTiles::run`].
    fn unpack(&self, _local: &mut Self::Local, _tile: TileId, _body: &Payload) -> Result<()> {
        Ok(())
    }

    /// A received tile is not needed again: all handles to its words are to be dropped. Called under the lock, so it
    /// must be quick.
    fn release(&self, tile: TileId);

    /// The site that a worker belongs to ([`Sites`]): it carries out only the runs of that site.
    fn site(_local: &Self::Local) -> usize {
        Sites::HOST
    }

    /// Whether a tile lies at a site, for the policies that need it. Called under the lock.
    fn is_near(&self, _site: usize, _tile: TileId) -> bool {
        true
    }

    /// The out-of-core side of the tiles, where there is one.
    fn disk(&self) -> Option<&dyn DiskTiles<Self::Local>> {
        None
    }

    /// Notes that a run is done, and its tiles are packed.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    fn advanced(&self, _run: &TileRun) -> Result<()> {
        Ok(())
    }
}

/// The tiles of an out-of-core rank, and their transfers between memory and disk.
///
/// Methods without a local state are called under the lock of the rank, so they must be quick; an event reports the end
/// of the work that they begin.
pub trait DiskTiles<L>: Sync {
    /// Tiles that there is room for, and the matching order.
    fn shape(&self) -> LevelShape;

    /// Whether a tile lay on the disk, finished, when this run began.
    fn was_finished(&self, tile: TileId) -> bool;

    /// Begins to read a tile from the disk: entries of the matrix or the finished tile. A place is free for it.
    ///
    /// # Errors
    /// Any error that ends the factorisation.
    fn fetch(&self, tile: TileId) -> Result<()>;

    /// Puts the bytes read for a tile into its place.
    ///
    /// # Errors
    /// As [`RankTiles::run`].
    fn place(&self, local: &mut L, tile: TileId, read: IoBuffer) -> Result<()>;

    /// The bytes of the tiles that the worker's last run has finished, ready to be written. May wait for a buffer.
    ///
    /// # Errors
    /// As [`RankTiles::run`].
    fn encode(&self, local: &mut L) -> Result<IoBuffer>;

    /// The worker's last run has failed: others may wait for the resources that it held for [`DiskTiles::encode`].
    fn abandon(&self, local: &mut L);

    /// Begins to write the encoded bytes.
    ///
    /// # Errors
    /// Any error that ends the factorisation.
    fn write(&self, run: &TileRun, bytes: IoBuffer) -> Result<()>;

    /// Frees the place of a tile.
    fn drop_tile(&self, tile: TileId);

    /// Whether a finished tile, an own one or not, lies on the disk.
    fn is_written(&self, tile: TileId) -> bool;

    /// The largest number of tiles of other ranks that may arrive at a time, and most that may be on their way to
    /// others.
    fn transfers(&self) -> (usize, usize);

    /// Begins to write a received tile. At most [`DiskTiles::transfers`] at a time.
    ///
    /// # Errors
    /// Any error that ends the factorisation.
    fn keep(&self, tile: TileId, words: &[u64]) -> Result<()>;

    /// Begins to read a finished tile for other ranks. At most [`DiskTiles::transfers`] at a time.
    ///
    /// # Errors
    /// Any error that ends the factorisation.
    fn fetch_to_send(&self, tile: TileId) -> Result<()>;

    /// Waits for the next event; `None` after [`DiskTiles::close`].
    fn next_event(&self) -> Option<DiskEvent>;

    /// Ends the events.
    fn close(&self);
}

/// An event of the disk.
#[derive(Debug)]
pub enum DiskEvent {
    /// A tile was read.
    Read(TileId, IoBuffer),
    /// A tile was read for other ranks: its words.
    ReadToSend(TileId, Payload),
    /// Tiles were written durably: they survive a power failure.
    Written(Vec<TileId>),
    /// A request failed.
    Failed(Error),
}

/// Tiles in transit that a rank can hold, each at least one.
#[derive(Clone, Copy, Debug)]
pub struct TransferRoom {
    /// Own tiles packed for sending.
    pub packed: usize,
    /// Tiles of other ranks that are arriving, or wait for their conversion to operands ([`RankTiles::UNPACKS`]); tiles
    /// that may be passed on also keep their words.
    pub incoming: usize,
}

impl TransferRoom {
    /// Room for any.
    pub const ANY: TransferRoom = TransferRoom { packed: usize::MAX, incoming: usize::MAX };
}

/// The problem and the plan of a run; the same on all ranks, except for the fields of [`ProtocolOptions`] that may
/// differ.
#[derive(Clone, Debug)]
pub struct RankPlan {
    /// The owners of tiles; ranks outside the grid own none.
    pub grid: RankGrid,
    /// The ranks that read each other's finished tiles in place.
    pub memories: Memories,
    /// The tiles.
    pub graph: CholeskyGraph,
    /// Options of the protocol. `imports` and the numbers of workers are ignored: the driver sets them.
    pub protocol: ProtocolOptions,
    /// Whether the report includes the time spans of all tasks and transfers.
    pub spans: bool,
    /// Memory for tiles in transit; it may differ between ranks.
    pub room: TransferRoom,
}

/// Runs all tasks of `plan`; one worker for each local state runs the tasks on own tiles. Collective over `group`.
///
/// A single rank uses the threads of the context's pool; with other ranks the workers are separate threads, while the
/// calling thread moves messages until all tasks are done.
///
/// # Errors
/// The same error on every rank: the errors of `tiles`, of the first rank that failed, as [`agree`] returns them;
/// [`Error::InvalidArgument`] for fewer slots than the grid needs, a grid of more ranks than there are, or no local
/// states; [`Error::Transport`].
pub fn run_tiles<W: RankTiles>(
    ctx: &Context,
    group: &dyn Transport,
    plan: &RankPlan,
    tiles: &W,
    locals: &mut [W::Local],
) -> Result<RankReport> {
    if group.size() == 1 {
        return run_alone(ctx, plan, tiles, locals);
    }
    let mut mailbox = group.open_mailbox()?;
    run_ranks(group, &mut *mailbox, plan, tiles, locals)
}

/// [`run_tiles`] where there is one rank.
fn run_alone<W: RankTiles>(ctx: &Context, plan: &RankPlan, tiles: &W, locals: &mut [W::Local]) -> Result<RankReport> {
    let plan = &staffed::<W>(1, plan, tiles.disk().is_some(), locals)?;
    let machine = TaskMachine::unchecked(plan.grid, plan.graph, 0, plan.protocol);
    let shared = SharedState::new(machine, tiles, plan, locals.len(), None);
    let work = |worker: usize, local: &mut W::Local| shared.work(worker, local);
    match plan.protocol.devices {
        None if tiles.disk().is_some() => {
            room_for_threads(1)?;
            std::thread::scope(|scope| {
                start_in(scope, || shared.take_disk_events());
                ctx.install(|| run_workers(locals, work));
            });
        }
        None => ctx.install(|| run_workers(locals, work)),
        // Workers of a device wait for it, which threads of the pool must not: they share the work of the host.
        Some(_) => {
            room_for_threads(locals.len())?;
            run_on_threads(locals, work);
        }
    }
    shared.into_report(Moves::default())
}

/// Runs `worker(index, local)` once for each local, the first one here and each other on a thread of its own.
fn run_on_threads<L: Send>(locals: &mut [L], worker: impl Fn(usize, &mut L) + Sync) {
    let Some((first, others)) = locals.split_first_mut() else { return };
    let worker = &worker;
    std::thread::scope(|scope| {
        others.iter_mut().zip(1..).for_each(|(local, index)| drop(start_in(scope, move || worker(index, local))));
        worker(0, first);
    });
}

/// [`run_tiles`] over the ranks of `group`, to which `mailbox` belongs; no message is left on it.
fn run_ranks<W: RankTiles>(
    group: &dyn Transport,
    mailbox: &mut dyn Mailbox,
    plan: &RankPlan,
    tiles: &W,
    locals: &mut [W::Local],
) -> Result<RankReport> {
    let plan = &agreed(group, staffed::<W>(group.size(), plan, tiles.disk().is_some(), locals))?;
    let outcome = match group.rank() < plan.grid.size() {
        true => work(group.rank(), mailbox, plan, tiles, locals),
        false => Ok(RankReport::default()),
    };
    let drained = drain(group, mailbox);
    let (report, outcome) = match outcome {
        Ok(report) => (report, Ok(())),
        Err(error) => (RankReport::default(), Err(error)),
    };
    // An error of this rank is more informative than the failure to receive its messages.
    agree(group, outcome.and(drained)).map(|()| report)
}

/// The plan with the existing workers, where it can be carried out on `ranks` ranks.
fn staffed<W: RankTiles>(ranks: usize, plan: &RankPlan, above_disk: bool, locals: &[W::Local]) -> Result<RankPlan> {
    let RankPlan { grid, graph, protocol, .. } = *plan;
    grid.check_ranks(ranks)?;
    if grid.size() != 1 {
        plan.memories.check(grid, graph.tiles, protocol.slots)?;
    }
    let sites = Sites::new(grid, &protocol);
    let workers = |site: usize| locals.iter().filter(|local| W::site(local) == site).count();
    if (0..sites.count()).any(|site| sites.has_runs(site) && workers(site) == 0) {
        return Err(Error::InvalidArgument("a rank has no workers: each rank with work needs at least 1".into()));
    }
    let on_devices = (Sites::FIRST_DEVICE..sites.count()).map(workers).min().unwrap_or(0);
    let devices = protocol.devices.map(|devices| DeviceSites { workers: on_devices, ..devices });
    // Out of core, runs are begun ahead of the workers, as many as the protocol's choices allow.
    let ahead = if above_disk { protocol.workers } else { 0 };
    let workers = workers(Sites::HOST).max(ahead);
    let (imports, loads_ahead) = (W::UNPACKS || above_disk, protocol.loads_ahead && !above_disk);
    let protocol = ProtocolOptions { workers, imports, loads_ahead, devices, ..protocol };
    Ok(RankPlan { protocol, ..plan.clone() })
}

/// The part of one rank of the grid.
fn work<W: RankTiles>(
    rank: usize,
    mailbox: &mut dyn Mailbox,
    plan: &RankPlan,
    tiles: &W,
    locals: &mut [W::Local],
) -> Result<RankReport> {
    room_for_threads(locals.len() + 1)?;
    let machine = TaskMachine::new(plan.grid, &plan.memories, plan.graph, rank, plan.protocol)?;
    let shared = SharedState::new(machine, tiles, plan, locals.len(), Some(mailbox.waker()));
    let moves = std::thread::scope(|scope| {
        let shared = &shared;
        let _guard = PanicGuard(shared);
        let spawn = |(worker, local)| start_in(scope, move || shared.work(worker, local));
        let workers = locals.iter_mut().enumerate().map(spawn).collect::<Vec<_>>();
        if tiles.disk().is_some() {
            start_in(scope, || shared.take_disk_events());
        }
        let mut progress = ProgressThread::new(shared, mailbox);
        progress.run();
        shared.end();
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        progress.into_moves()
    });
    shared.into_report(moves)
}
