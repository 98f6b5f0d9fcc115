//! Where the runs of a process are done: on its host, or on one of its devices.
//!
//! A tile belongs to one device, which runs its updates and its TRSM; POTRF runs on the host, as a run of its own.
//! Knows: numbers. Does not know: what a device is.

use super::{ProcessGrid, ProtocolOptions, TileRun};
use crate::runtime::{Task, TileId};

/// The devices of a process, a grid over its own tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceSites {
    /// Rows of devices.
    pub rows: usize,
    /// Columns of devices.
    pub cols: usize,
    /// Runs that may be under way on each at a time.
    pub workers: usize,
}

/// The sites of a process, by number: the host, then its devices.
#[derive(Clone, Copy, Debug)]
pub struct Sites {
    grid: ProcessGrid,
    host_workers: usize,
    devices: Option<DeviceSites>,
}

impl Sites {
    /// The host's number.
    pub const HOST: usize = 0;

    /// The number of the first device; the others follow.
    pub const FIRST_DEVICE: usize = 1;

    /// The sites under some choices.
    pub fn new(grid: ProcessGrid, options: &ProtocolOptions) -> Sites {
        Sites { grid, host_workers: options.workers, devices: options.devices }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        Sites::FIRST_DEVICE + self.devices.map_or(0, |devices| devices.rows * devices.cols)
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
        self.devices.map_or(Sites::HOST, |DeviceSites { rows, cols, .. }| {
            let (row, col) = (tile.row / self.grid.rows % rows, tile.col / self.grid.cols % cols);
            Sites::FIRST_DEVICE + row * cols + col
        })
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
