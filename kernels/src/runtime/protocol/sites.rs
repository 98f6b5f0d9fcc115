//! Where the runs of a rank are done: on its host, or on one of its devices.
//!
//! A tile belongs to one device, which runs its updates and its TRSM; POTRF is computed on the host, as a run of its
//! own, by workers of the host or by those of the device.
//! Depends on: numbers. Independent of: what a device is.

use super::{ProtocolOptions, TileRun};
use crate::runtime::Task;
use crate::tile::{RankGrid, TileId};

/// The devices of a rank, a grid over its own tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceSites {
    /// Their grid.
    pub grid: RankGrid,
    /// Largest number of runs at a time on each device.
    pub workers: usize,
    /// The workers that factor the tiles on the diagonal: `None` for workers of the host; else a worker of the device
    /// that owns the tile, after this number of runs were begun there since the last update, or if nothing else is
    /// ready.
    pub lookahead: Option<usize>,
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

    /// The sites under these options.
    pub fn new(grid: RankGrid, options: &ProtocolOptions) -> Sites {
        Sites { grid, host_workers: options.workers, devices: options.devices }
    }

    /// Their number.
    pub fn count(&self) -> usize {
        Sites::FIRST_DEVICE + self.devices.map_or(0, |devices| devices.grid.size())
    }

    /// Largest number of runs at a time at a site.
    pub fn workers(&self, site: usize) -> usize {
        match self.devices {
            Some(devices) if site != Sites::HOST => devices.workers,
            _ => self.host_workers,
        }
    }

    /// The site of an own tile, except for POTRF.
    pub fn of_tile(&self, tile: TileId) -> usize {
        self.devices.map_or(Sites::HOST, |devices| Sites::FIRST_DEVICE + devices.grid.owner(self.grid.within(tile)))
    }

    /// The site of a task on an own tile.
    pub fn of_task(&self, task: Task, tile: TileId) -> usize {
        match task {
            Task::Potrf { .. } if self.host_factors() => Sites::HOST,
            _ => self.of_tile(tile),
        }
    }

    /// The site of a run.
    pub fn of_run(&self, run: &TileRun) -> usize {
        if run.finish && self.finishes_apart(run.tile) && self.host_factors() {
            Sites::HOST
        } else {
            self.of_tile(run.tile)
        }
    }

    /// Runs that are begun before a tile on the diagonal is factored at a site, if it is factored there.
    pub fn lookahead(&self, site: usize) -> Option<usize> {
        self.devices.filter(|_| site != Sites::HOST)?.lookahead
    }

    fn host_factors(&self) -> bool {
        self.devices.is_none_or(|devices| devices.lookahead.is_none())
    }

    /// Whether a site has runs: without workers no run there would end.
    pub fn has_runs(&self, site: usize) -> bool {
        site != Sites::HOST || self.host_factors()
    }

    /// Whether the last task on a tile is computed at another site than its updates, and so is a separate run.
    pub fn finishes_apart(&self, tile: TileId) -> bool {
        tile.row == tile.col && self.devices.is_some()
    }
}
