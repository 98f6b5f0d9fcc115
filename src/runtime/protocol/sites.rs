//! Where the runs of a rank are done: on its host, or on one of its devices.
//!
//! A tile belongs to one device, which runs its updates and its TRSM; POTRF runs on the host, as a run of its own.
//! Knows: numbers. Does not know: what a device is.

use super::{ProtocolOptions, TileRun};
use crate::runtime::Task;
use crate::tile::{RankGrid, TileId};

/// The devices of a rank, a grid over its own tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceSites {
    /// Their grid.
    pub grid: RankGrid,
    /// Runs that may be under way on each at a time.
    pub workers: usize,
}

/// The sites of a rank, by number: the host, then its devices.
#[derive(Clone, Copy, Debug)]
pub struct Sites {
    grid: RankGrid,
    host_workers: usize,
    devices: Option<DeviceSites>,
}

impl Sites {
    /// The host's number.
    pub const HOST: usize = 0;

    /// The number of the first device; the others follow.
    pub const FIRST_DEVICE: usize = 1;

    /// The sites under some choices.
    pub fn new(grid: RankGrid, options: &ProtocolOptions) -> Sites {
        Sites { grid, host_workers: options.workers, devices: options.devices }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        Sites::FIRST_DEVICE + self.devices.map_or(0, |devices| devices.grid.size())
    }

    /// Runs that may be under way at a site.
    pub fn workers(&self, site: usize) -> usize {
        match self.devices {
            Some(devices) if site != Sites::HOST => devices.workers,
            _ => self.host_workers,
        }
    }

    /// Where an own tile is worked on, but for POTRF.
    pub fn of_tile(&self, tile: TileId) -> usize {
        self.devices.map_or(Sites::HOST, |devices| Sites::FIRST_DEVICE + devices.grid.owner(self.grid.within(tile)))
    }

    /// Where a task on an own tile runs.
    pub fn of_task(&self, task: Task, tile: TileId) -> usize {
        match task {
            Task::Potrf { .. } => Sites::HOST,
            _ => self.of_tile(tile),
        }
    }

    /// Where a run is done.
    pub fn of_run(&self, run: &TileRun) -> usize {
        if run.finish && self.finishes_apart(run.tile) { Sites::HOST } else { self.of_tile(run.tile) }
    }

    /// Whether the last task on a tile runs elsewhere than its updates, and so is a run of its own.
    pub fn finishes_apart(&self, tile: TileId) -> bool {
        tile.row == tile.col && self.devices.is_some()
    }
}
