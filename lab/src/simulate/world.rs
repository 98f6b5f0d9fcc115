//! The loop over events: processes of the protocol, their devices and links, one virtual clock.
//!
//! The third driver of [`sunzi::advanced::runtime::protocol`]: every action of a process becomes events to come, every
//! event is handled by its process. Independent of: the use of the figures.

use super::accelerator::{Accelerator, Copies, SerialEngine};
use super::clock::{Clock, EventKind, Noise, Slab, TimedEvent};
use super::disks::Disks;
use super::host::Host;
use super::level::{DiskLevel, Request, TileBytes};
use super::links::Links;
use super::record::{Recorder, Track};
use super::statistics::Statistics;
use super::watch::Watch;
use super::{Cluster, SimulationOptions};
use sunzi::advanced::runtime::protocol::{Message, ProtocolAction, ProtocolEvent, Sites, TaskMachine, TileRun};
use sunzi::advanced::runtime::{CholeskyGraph, Lease, Owner, TileLevel};
use sunzi::advanced::tile::TileId;
use sunzi::{Error, Result};

/// A message on its way.
pub(super) struct Envelope {
    pub from: u32,
    /// Factor of the time of its tile.
    pub factor: f64,
    pub message: Message,
}

/// A run of a worker.
pub(super) struct Job {
    pub process: usize,
    pub device: usize,
    pub run: TileRun,
    /// The time for which it holds tiles on the device.
    pub lease: Option<Lease<u32>>,
    /// The time at which the worker took it.
    pub begun: f64,
    /// The time at which it began to compute.
    pub started: f64,
}

/// Everything.
pub(super) struct World<'a> {
    pub machine: &'a Cluster,
    pub options: &'a SimulationOptions,
    pub graph: CholeskyGraph,
    pub processes: Vec<TaskMachine>,
    pub hosts: Vec<Host>,
    pub clock: Clock,
    pub now: f64,
    pub envelopes: Slab<Envelope>,
    pub jobs: Slab<Job>,
    pub links: Links,
    pub copies: Option<Copies>,
    /// The memories of processes above disks; none without disks.
    pub levels: Vec<DiskLevel>,
    pub disks: Option<Disks>,
    pub requests: Slab<Request>,
    pub noise: Noise,
    pub statistics: Statistics,
    pub watch: Watch,
    pub recorder: &'a mut Recorder,
    /// The place where the runs of a process are done.
    pub sites: Sites,
    /// Rows of the last tile.
    pub last_rows: usize,
    in_steps: bool,
}

/// A tile in 32 bits.
pub(super) fn code(tile: TileId) -> u32 {
    (tile.row as u32) << 16 | tile.col as u32
}

/// The tile of a code.
pub(super) fn tile_of(code: u32) -> TileId {
    TileId { row: (code >> 16) as usize, col: (code & 0xFFFF) as usize }
}

impl<'a> World<'a> {
    /// The state before the first event; the options have been checked.
    pub fn new(machine: &'a Cluster, options: &'a SimulationOptions, recorder: &'a mut Recorder) -> World<'a> {
        let (graph, size) = (CholeskyGraph { tiles: options.tiles(machine) }, options.grid.size());
        let protocol = options.protocol(machine);
        let processes = (0..size).map(|rank| TaskMachine::unchecked(options.grid, graph, rank, protocol)).collect();
        let sites = Sites::new(options.grid, &protocol);
        let devices = sites.count() - Sites::FIRST_DEVICE;
        let memory = machine.device.as_ref().map_or(0, |device| device.memory_bytes);
        let host = |rank: usize| Host {
            devices: (0..devices).map(|_| Accelerator::new(memory, options.eviction)).collect(),
            processor: SerialEngine::default(),
            promised: 0.0,
            slowness: options.slow.iter().filter(|(slow, _)| *slow == rank).map(|(_, factor)| factor).product(),
            finished: None,
        };
        World {
            machine,
            options,
            graph,
            processes,
            hosts: (0..size).map(host).collect(),
            clock: Clock::default(),
            now: 0.0,
            envelopes: Slab::new(),
            jobs: Slab::new(),
            links: Links::new(machine, size),
            copies: Copies::new(machine, size),
            levels: levels(machine, options, graph),
            disks: Disks::new(machine, size),
            requests: Slab::new(),
            noise: Noise::new(options.jitter, options.seed),
            statistics: Statistics::default(),
            watch: Watch::new(graph, options.grid, options.watch),
            recorder,
            sites,
            last_rows: (options.order - (graph.tiles as u64 - 1) * machine.tiles.rows as u64) as usize,
            in_steps: options.delivery.rule().in_steps(),
        }
    }

    /// Whether updates are made column by column and no tile stays on a device.
    pub fn in_steps(&self) -> bool {
        self.in_steps
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`Error::Verification`] where a task is lost, done twice or before its operands, or a process never ends: a
    /// mistake of the protocol; [`Error::Cancelled`] where `proceed` returns `false`.
    pub fn run(&mut self, proceed: &dyn Fn() -> bool) -> Result<()> {
        (0..self.processes.len()).try_for_each(|process| self.poll(process))?;
        while let Some(event) = self.clock.next() {
            if self.clock.count() & 0xFFFF == 0 && !proceed() {
                return Err(Error::Cancelled);
            }
            self.recorder.advance(event.time, &self.processes, &self.hosts, &self.levels);
            self.now = event.time;
            self.handle(event)?;
        }
        self.watch.finish(&self.processes)?;
        match self.levels.iter().position(|level| !level.is_idle()) {
            Some(process) => {
                Err(Error::verification(format!("deadlock: the disk of process {process} has not finished")))
            }
            None => Ok(()),
        }
    }

    fn handle(&mut self, TimedEvent { kind, process, value, .. }: TimedEvent) -> Result<()> {
        match kind {
            EventKind::Arrive => self.arrive(process, value),
            EventKind::Take => self.take(process, value),
            EventKind::Depart => {
                self.depart(process, value);
                Ok(())
            }
            EventKind::Sent => {
                if let Some(level) = self.levels.get_mut(process) {
                    level.sent(tile_of(value));
                }
                self.processes[process].handle(ProtocolEvent::Sent(tile_of(value)));
                self.poll(process)
            }
            EventKind::Loaded => {
                self.compute(value);
                Ok(())
            }
            EventKind::Computed => self.computed(value),
            EventKind::Done => self.done(value),
            EventKind::Moved => self.moved(process, value),
            EventKind::Placed => self.placed(process, value),
        }
    }

    /// Carries out the actions of a process.
    pub fn poll(&mut self, process: usize) -> Result<()> {
        loop {
            let devices = &self.hosts[process].devices;
            let level = self.levels.get(process);
            let admits = |tile| level.is_none_or(|level| level.admits(tile));
            let near = |site: usize, tile: TileId| {
                let device = site.checked_sub(Sites::FIRST_DEVICE);
                device.is_none_or(|device| devices[device].holds(code(tile)))
            };
            let Some(action) = self.processes[process].poll_near(&near, &admits) else { break };
            match (action, self.levels.get_mut(process)) {
                (ProtocolAction::Send { to, message: message @ Message::Tile { tile, .. } }, Some(level)) => {
                    level.ask(tile, (to, message));
                }
                (ProtocolAction::Send { to, message }, _) => self.send(process, to, message)?,
                (ProtocolAction::Run(run), Some(level)) => level.take(run, self.now),
                (ProtocolAction::Run(run), None) => self.start(process, run)?,
                (ProtocolAction::Release(tile), _) => self.release(process, tile),
                (ProtocolAction::Finished, _) => self.finish(process),
            }
        }
        self.advance_level(process)
    }

    fn release(&mut self, process: usize, tile: TileId) {
        if self.options.grid.owner(tile) != process {
            self.watch.gone(process, tile);
            self.hosts[process].devices.iter_mut().for_each(|device| device.invalidate(code(tile)));
        }
    }

    /// The end of a process: tiles that are newer on its devices go to the host.
    fn finish(&mut self, process: usize) {
        let (noise, now) = (&mut self.noise, self.now);
        let mut end = now;
        if let Some(copies) = &mut self.copies {
            let flush = |device: &mut Accelerator| device.flush(now, process, copies, noise);
            end = self.hosts[process].devices.iter_mut().map(flush).fold(now, f64::max);
        }
        self.hosts[process].finished = Some(end);
    }

    /// Notes a span of the trace.
    pub fn record(&mut self, process: usize, track: Track, tile: TileId, start: f64, end: f64) {
        self.recorder.span(process, track, tile, start, end);
    }
}

/// The memories of processes above disks, where there are any.
fn levels(machine: &Cluster, options: &SimulationOptions, graph: CholeskyGraph) -> Vec<DiskLevel> {
    let (Some(disk), Some(shape)) = (&machine.disk, options.level_shape(machine)) else { return Vec::new() };
    let (grid, runs) = (options.grid, options.protocol(machine).workers);
    let bytes = TileBytes { entries: machine.matrix_tile_bytes(), finished: machine.tile_bytes() };
    let level = |number: usize| {
        let tiles = TileLevel::new(graph, Owner { grid, number }, shape, |_| false);
        DiskLevel::new(tiles, shape.room_tiles, bytes, runs, machine.layout.workers, disk.in_flight_bytes)
    };
    (0..grid.size()).map(level).collect()
}
