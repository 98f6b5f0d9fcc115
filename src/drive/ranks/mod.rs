//! Carries out one rank of a tiled factorisation: workers compute, one thread moves messages.
//!
//! Over several ranks the calling thread alone calls the mailbox, as MPI may want it; it sleeps while nothing moves,
//! and workers are threads of their own. Where one process owns all tiles there are no messages, and the workers are
//! those of the context's pool. They share one [`TaskMachine`], which says what to do, under a lock that nobody holds
//! while it computes, copies or sends. Knows: threads, locks, messages, buffers. Does not know: numbers, what a task
//! computes. Promise: all ranks come to an end, and with the same outcome, whichever of them fails.

mod progress_thread;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod worker;

pub use report::{RankReport, Sample, Span, SpanKind, WorkerReport};

use super::run_workers;
use crate::comm::mailbox::{Mailbox, Payload, drain};
use crate::comm::{Transport, agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::{DeviceSites, ProtocolOptions, Sites, TaskMachine, TileRun};
use crate::store::room_for_threads;
use crate::tile::{RankGrid, TileId};
use progress_thread::ProgressThread;
use state::{Moves, SharedState};
use std::panic::resume_unwind;
use worker::PanicGuard;

/// The tiles of one rank, and what is done with them.
///
/// Methods with a local are called by workers, several at a time, each with a local of its own. A tile is worked on by
/// one worker at a time, and read only when it is finished. Operands are found by their names, among own tiles and
/// those that came.
pub trait RankTiles: Sync {
    /// What a worker has for itself: scratch memory, kernels.
    type Local: Send;

    /// Whether tiles that come must be converted by [`RankTiles::unpack`] before tasks can read them.
    const UNPACKS: bool;

    /// Carries out a run on own tiles: updates by the columns `run.updates`, then POTRF or TRSM where `run.finish`.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], and whatever else is to end the factorisation on all ranks.
    fn run(&self, local: &mut Self::Local, run: &TileRun) -> Result<()>;

    /// The words in which a finished own tile travels, [`RankTiles::payload_words`] of them. Called once for a tile
    /// that other ranks read, after its last task; the words are dropped when the last of them has got it.
    ///
    /// # Errors
    /// As [`RankTiles::run`].
    fn pack(&self, local: &mut Self::Local, tile: TileId) -> Result<Payload>;

    /// Words in which a finished tile travels, be it an own one or not.
    fn payload_words(&self, tile: TileId) -> usize;

    /// Buffers for tiles of other ranks to begin with; more are made where there are too few. Called once.
    fn buffers(&self) -> Vec<Vec<u64>> {
        Vec::new()
    }

    /// Takes in that a tile came, before anything is done with it. Called by the thread that moves messages, so it must
    /// be quick: a handle may be kept until [`RankTiles::release`].
    fn arrived(&self, _tile: TileId, _body: &Payload) {}

    /// Makes an operand of a tile that came, before any task reads it; called where [`RankTiles::UNPACKS`].
    ///
    /// # Errors
    /// As [`RankTiles::run`].
    fn unpack(&self, _local: &mut Self::Local, _tile: TileId, _body: &Payload) -> Result<()> {
        Ok(())
    }

    /// A tile that came is not needed again: all handles to its words are to be dropped. Called under the lock, so it
    /// must be quick.
    fn release(&self, tile: TileId);

    /// The site that a worker belongs to ([`Sites`]): it carries out the runs of that one alone.
    fn site(_local: &Self::Local) -> usize {
        Sites::HOST
    }

    /// Whether a tile lies at a site, for the policies that ask. Called under the lock.
    fn is_near(&self, _site: usize, _tile: TileId) -> bool {
        true
    }

    /// Takes in that a run is done, and its tiles are packed.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    fn advanced(&self, _run: &TileRun) -> Result<()> {
        Ok(())
    }
}

/// What is factored, and how; the same on all ranks, but for what [`ProtocolOptions`] lets differ.
#[derive(Clone, Copy, Debug)]
pub struct RankPlan {
    /// Who owns which tile; ranks beyond the grid own nothing.
    pub grid: RankGrid,
    /// The tiles.
    pub graph: CholeskyGraph,
    /// Choices of the protocol. `imports` and the numbers of workers do not count: the driver knows them.
    pub protocol: ProtocolOptions,
    /// Whether the report has the spans of all tasks and transfers.
    pub spans: bool,
}

/// Carries out all tasks of `plan`, those on own tiles by a worker for each local. Collective over `group`.
///
/// One rank by itself takes the threads of the context's pool; beside others workers are threads of their own, while
/// the calling thread moves messages until all is done.
///
/// # Errors
/// On every rank the same: those of `tiles`, of the first rank that met one, as [`agree`] gives them;
/// [`Error::InvalidArgument`] for fewer slots than the grid needs, a grid of more ranks than there are, or no locals;
/// [`Error::Transport`].
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
    let plan = &staffed::<W>(1, plan, locals)?;
    let machine = TaskMachine::unchecked(plan.grid, plan.graph, 0, plan.protocol);
    let shared = SharedState::new(machine, tiles, plan, locals.len(), None);
    let work = |worker: usize, local: &mut W::Local| shared.work(worker, local);
    match plan.protocol.devices {
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
        others.iter_mut().zip(1..).for_each(|(local, index)| drop(scope.spawn(move || worker(index, local))));
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
    let plan = &agreed(group, staffed::<W>(group.size(), plan, locals))?;
    let outcome = match group.rank() < plan.grid.size() {
        true => work(group.rank(), mailbox, plan, tiles, locals),
        false => Ok(RankReport::default()),
    };
    let drained = drain(group, mailbox);
    let (report, outcome) = match outcome {
        Ok(report) => (report, Ok(())),
        Err(error) => (RankReport::default(), Err(error)),
    };
    // An error of this rank says more than that its messages could not be received.
    agree(group, outcome.and(drained)).map(|()| report)
}

/// The plan with the workers that there are, where it can be carried out on so many ranks.
fn staffed<W: RankTiles>(ranks: usize, plan: &RankPlan, locals: &[W::Local]) -> Result<RankPlan> {
    let RankPlan { grid, graph, protocol, .. } = *plan;
    if grid.size() != 1 {
        grid.check(graph.tiles, protocol.slots)?;
    }
    if grid.size() > ranks {
        let message = format!("a grid of {} x {} ranks, of which there are {ranks}", grid.rows, grid.cols);
        return Err(Error::InvalidArgument(message));
    }
    let sites = Sites::new(grid, &protocol);
    let workers = |site: usize| locals.iter().filter(|local| W::site(local) == site).count();
    if (0..sites.count()).any(|site| sites.has_runs(site) && workers(site) == 0) {
        return Err(Error::InvalidArgument("a rank without workers".into()));
    }
    let on_devices = (Sites::FIRST_DEVICE..sites.count()).map(workers).min().unwrap_or(0);
    let devices = protocol.devices.map(|devices| DeviceSites { workers: on_devices, ..devices });
    let protocol = ProtocolOptions { workers: workers(Sites::HOST), imports: W::UNPACKS, devices, ..protocol };
    Ok(RankPlan { protocol, ..*plan })
}

/// The part of one rank of the grid.
fn work<W: RankTiles>(
    rank: usize,
    mailbox: &mut dyn Mailbox,
    plan: &RankPlan,
    tiles: &W,
    locals: &mut [W::Local],
) -> Result<RankReport> {
    room_for_threads(locals.len())?;
    let machine = TaskMachine::new(plan.grid, plan.graph, rank, plan.protocol)?;
    let shared = SharedState::new(machine, tiles, plan, locals.len(), Some(mailbox.waker()));
    let moves = std::thread::scope(|scope| {
        let shared = &shared;
        let _guard = PanicGuard(shared);
        let spawn = |(worker, local)| scope.spawn(move || shared.work(worker, local));
        let workers = locals.iter_mut().enumerate().map(spawn).collect::<Vec<_>>();
        let mut progress = ProgressThread::new(shared, mailbox);
        progress.run();
        shared.end();
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        progress.into_moves()
    });
    shared.into_report(moves)
}
