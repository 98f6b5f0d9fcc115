//! The tiles of one rank of a matrix of doubles under factorisation, on its CPUs or on its devices.
//!
//! A finished tile is sent in the form in which it is in memory. For devices own tiles are copied to page-locked
//! memory; where other ranks read them, each is copied into the matrix when it is finished; otherwise all are copied at
//! the very end, so that no error changes the matrix.

use super::cpu::CpuTasks;
use super::devices::{DeviceTiles, UnderWay};
use super::matrix::{DoubleMatrix, DoubleWords};
use crate::comm::mailbox::Payload;
use crate::context::Context;
use crate::drive::{self, HostCopy, Meter, RankTiles};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::{BadPivot, TileKernels};
use crate::ops::factor::diagnose::double_refusal;
use crate::ops::factor::unpoisoned;
use crate::runtime::protocol::{Sites, TileRun};
use crate::tile::{TileId, TileMap};
use rug::Float;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// The private memory of a worker.
pub(super) enum DoubleWorker {
    /// Works on tiles on a CPU.
    Cpu(TileKernels),
    /// Factors tiles on the diagonal for the devices, with all threads.
    Factor,
    /// Works for a device.
    Device {
        /// Its number.
        device: usize,
        /// The runs that it waits for.
        under_way: UnderWay,
    },
}

/// One factorisation under way.
pub(super) struct DoubleTiles<'a> {
    ctx: &'a Context,
    map: TileMap,
    own: HashMap<TileId, Mutex<&'a mut DoubleWords>>,
    /// Finished tiles of other ranks.
    received: RwLock<HashMap<TileId, Payload>>,
    /// The diagonal of the matrix in the own tiles, for error messages.
    diagonals: HashMap<usize, Vec<f64>>,
    /// For tiles of other ranks.
    buffers: Mutex<Vec<Vec<u64>>>,
    devices: Option<DeviceTiles>,
    /// Whether other ranks read finished tiles.
    shared: bool,
    /// Kernels of each thread, for tiles on the diagonal on the host.
    kernels: Mutex<Vec<TileKernels>>,
    potrf_nanoseconds: AtomicU64,
    meter: Meter<'a>,
}

impl<'a> DoubleTiles<'a> {
    /// The tiles of `a`, in the host copies of `devices` too where there are any; `buffers` are for tiles of other
    /// ranks, if `shared`.
    pub fn new(
        ctx: &'a Context,
        a: &'a mut DoubleMatrix,
        devices: Option<DeviceTiles>,
        shared: bool,
        buffers: Vec<Vec<u64>>,
    ) -> DoubleTiles<'a> {
        let map = *a.map();
        let on_diagonal = a.tiles().filter(|(tile, _)| tile.row == tile.col);
        let diagonal = |(tile, entries): (TileId, &[f64])| {
            let step = map.row_range(tile.row).len() + 1;
            (tile.row, entries.iter().step_by(step).copied().collect())
        };
        let diagonals = on_diagonal.map(diagonal).collect();
        let tasks = a.tiles().map(|(tile, _)| tile.col as u64 + 1).sum();
        let kernels = if devices.is_some() { ctx.threads() } else { 0 };
        DoubleTiles {
            ctx,
            map,
            own: a.own.iter_mut().map(|(&tile, words)| (tile, Mutex::new(words))).collect(),
            received: RwLock::default(),
            diagonals,
            buffers: Mutex::new(buffers),
            devices,
            shared,
            kernels: Mutex::new((0..kernels).map(|_| TileKernels::new()).collect()),
            potrf_nanoseconds: AtomicU64::new(0),
            meter: Meter::new(ctx, tasks),
        }
    }

    /// The devices with their host copies of the tiles.
    pub fn devices(&self) -> Option<&DeviceTiles> {
        self.devices.as_ref()
    }

    /// Seconds in which tiles on the diagonal were factored on the host, including the waits for them.
    pub fn potrf_seconds(&self) -> f64 {
        self.potrf_nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9
    }

    fn own(&self, tile: TileId) -> MutexGuard<'_, &'a mut DoubleWords> {
        unpoisoned(self.own[&tile].lock())
    }

    /// A finished tile.
    fn operand(&self, tile: TileId) -> DoubleWords {
        if self.own.contains_key(&tile) {
            return self.own(tile).clone();
        }
        let received = unpoisoned(self.received.read());
        received.get(&tile).expect("a task runs when its operands are here").clone()
    }

    /// A run on a CPU.
    fn on_cpu(&self, kernels: &mut TileKernels, run: &TileRun) -> Result<()> {
        let mut own = self.own(run.tile);
        // There is no other handle before the tile is finished, so nothing is copied.
        let words: &mut Vec<u64> = Arc::make_mut(&mut own);
        let tasks = CpuTasks { map: &self.map, operand: |tile| self.operand(tile) };
        tasks.run(kernels, run, words).map_err(|bad| self.failure(run.tile, bad))
    }

    /// Updates on a device, and TRSM with them.
    fn on_device(&self, devices: &DeviceTiles, device: usize, under_way: &mut UnderWay, run: &TileRun) -> Result<()> {
        let host_copy = |tile| -> Result<HostCopy> {
            match devices.host.owner(tile) {
                Some(_) => devices.host.host_copy(device, tile),
                None => devices.host.stage(device, bytemuck::cast_slice(&self.operand(tile))),
            }
        };
        devices.run(device, run, under_way, host_copy)?;
        if run.finish && self.shared { self.copy_back(devices, run.tile) } else { Ok(()) }
    }

    /// POTRF of a tile on the host.
    fn factor_on_host(&self, devices: &DeviceTiles, tile: TileId) -> Result<()> {
        let start = std::time::Instant::now();
        let factored =
            devices.factor(self.ctx, &mut unpoisoned(self.kernels.lock()), tile, |bad| self.failure(tile, bad));
        self.potrf_nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        factored?;
        if self.shared { self.copy_back(devices, tile) } else { Ok(()) }
    }

    /// Copies a finished own tile from its host copy into the matrix.
    fn copy_back(&self, devices: &DeviceTiles, tile: TileId) -> Result<()> {
        let host_copy = devices.host.own(tile).lock()?;
        // There is no other handle before the tile is finished, so only the words are copied.
        Arc::make_mut(*self.own(tile)).copy_from_slice(bytemuck::cast_slice(&host_copy));
        Ok(())
    }

    /// Copies all tiles from their host copies into the matrix, where that was left for the end.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], before the first is copied.
    pub fn copy_all_back(&self) -> Result<()> {
        let Some(devices) = self.devices.as_ref().filter(|_| !self.shared) else { return Ok(()) };
        devices.host.settle()?;
        let mut tiles = self.own.keys();
        let mut workers = vec![(); self.ctx.threads()];
        let work = |(): &mut (), &tile: &TileId| self.copy_back(devices, tile);
        self.ctx.install(|| drive::parallel_for(&mut workers, |()| tiles.next(), work))
    }

    /// The error for a pivot in a tile on the diagonal.
    fn failure(&self, tile: TileId, BadPivot { index, pivot }: BadPivot) -> Error {
        let diagonal = Float::with_val(f64::MANTISSA_DIGITS, self.diagonals[&tile.row][index]);
        double_refusal(self.map.row_range(tile.row).start + index, pivot, &diagonal)
    }
}

impl RankTiles for DoubleTiles<'_> {
    type Local = DoubleWorker;

    const UNPACKS: bool = false;

    fn site(worker: &DoubleWorker) -> usize {
        match worker {
            DoubleWorker::Cpu(_) | DoubleWorker::Factor => Sites::HOST,
            DoubleWorker::Device { device, .. } => Sites::FIRST_DEVICE + device,
        }
    }

    fn run(&self, worker: &mut DoubleWorker, run: &TileRun) -> Result<()> {
        match (worker, &self.devices) {
            (DoubleWorker::Cpu(kernels), _) => self.on_cpu(kernels, run),
            (DoubleWorker::Device { device, under_way }, Some(devices))
                if !(run.finish && run.tile.row == run.tile.col) =>
            {
                self.on_device(devices, *device, under_way, run)
            }
            (_, devices) => self.factor_on_host(devices.as_ref().expect("the worker is that of a device"), run.tile),
        }
    }

    fn pack(&self, _worker: &mut DoubleWorker, tile: TileId) -> Result<Payload> {
        Ok(self.own(tile).clone())
    }

    fn payload_words(&self, tile: TileId) -> usize {
        self.map.entries(tile)
    }

    fn buffers(&self) -> Vec<Vec<u64>> {
        std::mem::take(&mut *unpoisoned(self.buffers.lock()))
    }

    fn arrived(&self, tile: TileId, body: &Payload) {
        unpoisoned(self.received.write()).insert(tile, body.clone());
    }

    /// No task reads the tile again, so no copy of it is under way, and the devices have dropped it.
    fn release(&self, tile: TileId) {
        unpoisoned(self.received.write()).remove(&tile);
    }

    fn is_near(&self, site: usize, tile: TileId) -> bool {
        let device = site.checked_sub(Sites::FIRST_DEVICE).zip(self.devices.as_ref());
        device.is_none_or(|(device, devices)| devices.holds(device, tile))
    }

    fn advanced(&self, run: &TileRun) -> Result<()> {
        self.meter.add("factor", run.tasks_each() as u64)
    }
}
