//! One rank of a tiled Cholesky factorisation over many ranks, without I/O, threads or clocks.
//!
//! The owner of a tile runs its tasks. Ranks that share its memory read a finished tile in place; to all other ranks it
//! is sent on request, and a rank holds received tiles in a fixed number of slots. [`TaskMachine::handle`] processes
//! events, [`TaskMachine::poll`] returns the next action; drivers move messages and compute. Every driver (threads,
//! MPI, simulator) runs this code. Promise: with at least [`Memories::least_slots`] slots, and drivers that deliver
//! every message and run every task, every rank terminates, for any order of messages
//! (docs/decisions/017-one-protocol.md). Source: Tsujita, Endo, Fujisawa, "The Scalable Petascale Data-Driven Approach
//! for the Cholesky Factorization with multiple GPUs", ESPM2 2015.

mod admission;
mod counters;
mod delivery;
mod grid;
mod lists;
mod machine;
mod memories;
mod message;
mod progress;
mod ready;
mod sites;
#[cfg(test)]
mod tests;

pub use counters::Counters;
pub use delivery::{Binomial, CsList, Delivery, DeliveryKind, PointToPoint, Synchronous};
pub use machine::TaskMachine;
pub use memories::Memories;
pub use message::{Client, Message};
pub use sites::{DeviceSites, Sites};

use crate::runtime::{CholeskyGraph, Policy, Task};
use crate::tile::TileId;
use serde::Serialize;
use std::ops::Range;

/// The method by which a rank detects that no other rank will send it a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// Its lists of clients are empty; this needs no messages.
    #[default]
    Lists,
    /// Every rank notifies every other that it has finished.
    AllToAll,
}

/// Options of a rank; the same on all ranks except for the policy and the options for workers and devices.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolOptions {
    /// The rule that determines the sender of a finished tile for each receiver.
    pub delivery: DeliveryKind,
    /// The rule by which a rank detects that it may end.
    pub termination: Termination,
    /// The order of ready tiles.
    pub policy: Policy,
    /// Tiles of other ranks that a rank can hold at a time.
    pub slots: usize,
    /// Largest number of runs at a time; on the host, if there are devices.
    pub workers: usize,
    /// The devices of this rank, if it has any; ranks may have different devices.
    pub devices: Option<DeviceSites>,
    /// Largest number of updates of a run on each of its tiles; with more than one, a run may also finish its tiles.
    pub most_updates: usize,
    /// The largest number of tiles of a run.
    pub strip_tiles: usize,
    /// Whether a run waits until all updates of its tiles are ready. Only for a single process: over several, an update
    /// that waits would keep the slots of its operands.
    pub updates_at_once: bool,
    /// Whether an idle worker of the host loads own tiles before their first task: runs without tasks
    /// ([`TileRun::is_ahead`]).
    pub loads_ahead: bool,
    /// Whether a received tile must be converted before tasks can read it ([`ProtocolEvent::Imported`]).
    pub imports: bool,
    /// Tiles that fit each device, for the policies that use it.
    pub room_tiles: usize,
}

impl ProtocolOptions {
    /// Options of a rank that owns all tiles, with `workers` workers: nothing is sent.
    pub fn alone(policy: Policy, workers: usize) -> ProtocolOptions {
        ProtocolOptions {
            delivery: DeliveryKind::default(),
            termination: Termination::default(),
            policy,
            slots: 0,
            workers,
            devices: None,
            most_updates: 1,
            strip_tiles: 1,
            updates_at_once: false,
            loads_ahead: false,
            imports: false,
            room_tiles: usize::MAX,
        }
    }
}

/// Work on a strip of own tiles, neighbours in a tile column: on each tile the updates by some columns, in order, and
/// possibly its last task, from the first tile to the last. The tiles share the right operands of their updates. A run
/// without tasks loads a tile, which its first task would have to do otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TileRun {
    /// The first tile.
    pub tile: TileId,
    /// Number of tiles.
    pub count: usize,
    /// Distance in tile rows from one tile to the next.
    pub row_step: usize,
    /// Tile columns whose updates (SYRK, GEMM) are applied.
    pub updates: Range<usize>,
    /// Whether the tiles are finished after them (POTRF, TRSM).
    pub finish: bool,
}

impl TileRun {
    /// The tiles, from the first to the last.
    pub fn tiles(&self) -> impl Iterator<Item = TileId> + use<> {
        let (TileId { row, col }, step) = (self.tile, self.row_step);
        (0..self.count).map(move |at| TileId { row: row + at * step, col })
    }

    /// The rows of the tiles that an update by one column reads, each once: the rows of the run's tiles, and the row of
    /// their column.
    pub fn operand_rows(&self) -> impl Iterator<Item = usize> + use<> {
        let col = self.tile.col;
        self.tiles().map(|tile| tile.row).filter(move |row| *row != col).chain([col])
    }

    /// Its tasks, in order.
    pub fn tasks(&self, graph: CholeskyGraph) -> impl Iterator<Item = Task> + use<> {
        let (updates, finish) = (self.updates.clone(), self.finish);
        self.tiles().flat_map(move |tile| {
            let own = updates.clone().map(move |k| graph.update(tile, k));
            own.chain(finish.then(|| graph.finish(tile)))
        })
    }

    /// Whether it loads a tile before its tasks, and does none of them.
    pub fn is_ahead(&self) -> bool {
        self.updates.is_empty() && !self.finish
    }

    /// Number of tasks on each tile.
    pub fn tasks_each(&self) -> usize {
        self.updates.len() + usize::from(self.finish)
    }
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolEvent {
    /// A message arrived; for [`Message::Tile`] the tile's data are in a buffer of the driver.
    Message {
        /// The sender.
        from: usize,
        /// The message.
        message: Message,
    },
    /// Tasks can read the tile of another rank, if by [`ProtocolOptions::imports`] it must be converted first.
    Imported(TileId),
    /// The transfer of the data of a tile sent by [`ProtocolAction::Send`] has ended: one event for each such message.
    Sent(TileId),
    /// A run is done.
    Done(TileRun),
    /// This rank must stop because of its own error.
    Failed,
}

/// An action for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolAction {
    /// Send a message, and with [`Message::Tile`] the data of the tile.
    Send {
        /// The receiver.
        to: usize,
        /// The message.
        message: Message,
    },
    /// Do some work.
    Run(TileRun),
    /// The data of a tile of another rank, or the copy of an own one that was kept for sending, is not needed again.
    Release(TileId),
    /// This rank is done: returned once, as the last action.
    Finished,
}
