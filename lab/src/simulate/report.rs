//! The results of a simulation.

use super::SimulationOptions;
use super::level::LevelCounts;
use super::world::World;
use serde::Serialize;
use std::time::Instant;
use sunzi::advanced::runtime::protocol::{Counters, DeliveryKind, Termination};
use sunzi::advanced::runtime::{BottomLevels, CholeskyGraph, Eviction, LevelTraffic, Policy, Task, TaskWeights};
use sunzi::advanced::tile::TileId;
use sunzi::distributed::RankGrid;

/// Units of the critical path.
const NANOSECONDS: f64 = 1e9;

/// Messages of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Messages {
    /// Messages of all processes.
    pub total: u64,
    /// Messages of the process that sent most.
    pub most: u64,
}

/// Messages by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct MessageCounts {
    /// Notices.
    pub notices: Messages,
    /// Requests, forwarded ones not counted.
    pub requests: Messages,
    /// Forwarded requests.
    pub forwards: Messages,
    /// Tiles.
    pub tiles: Messages,
    /// Only for termination.
    pub finished: Messages,
}

/// The fractions of the makespan in which resources were busy on average, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Busy {
    /// Kernels of devices, or workers without devices.
    pub devices: f64,
    /// Processors of processes with devices.
    pub processors: f64,
    /// Copies to devices.
    pub copies_up: f64,
    /// Copies from devices.
    pub copies_down: f64,
    /// Links out of nodes.
    pub out_links: f64,
    /// The busiest of them.
    pub busiest_out_link: f64,
    /// Links into nodes.
    pub in_links: f64,
    /// Copies inside nodes.
    pub local_links: f64,
    /// Progress threads.
    pub progress_threads: f64,
    /// Workers that wait for tiles in transit to the device.
    pub workers_loading: f64,
    /// Workers that wait for the device.
    pub workers_queueing: f64,
}

/// The work of the disks of all processes. Bytes, and fractions from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DiskFigures {
    /// Tiles that a process can hold.
    pub room_tiles: usize,
    /// Tile rows and columns of a process in a block.
    pub block_tiles: (usize, usize),
    /// The largest number of tiles of a run.
    pub strip_tiles: usize,
    /// The largest number of tiles in the memory of a process.
    pub peak_tiles: usize,
    /// Bytes that tasks needed, by kind, and bytes written: own tiles and those of others.
    #[serde(flatten)]
    pub traffic: LevelTraffic,
    /// All bytes read for tasks.
    pub read_bytes: u64,
    /// The fewest that blocks of this shape read.
    pub least_read_bytes: u64,
    /// Finished tiles that tasks read and that were in memory still.
    pub reused_bytes: u64,
    /// Finished tiles read for other processes.
    pub sent_bytes: u64,
    /// The fraction of the makespan in which a worker had nothing to do while runs waited for tiles or for room, on
    /// average.
    pub waiting_for_tiles: f64,
    /// The fraction in which a worker waited to hand over the tiles that it had finished.
    pub waiting_to_write: f64,
    /// The fraction in which a disk moved data, on average.
    pub busy: f64,
    /// The fraction for the busiest disk.
    pub busiest: f64,
}

/// The figures of one simulation. Seconds, bytes, TFLOP/s.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Simulation {
    /// Name of the machine.
    pub machine: String,
    /// Processes.
    pub grid: RankGrid,
    /// Rows of the matrix.
    pub order: u64,
    /// Tile rows.
    pub tiles: usize,
    /// The algorithm that sends tiles to processes.
    pub delivery: DeliveryKind,
    /// When a process may end.
    pub termination: Termination,
    /// The order of ready tiles.
    pub policy: String,
    /// The rule of eviction of a full device.
    pub eviction: Eviction,
    /// Slots of a process.
    pub slots: usize,
    /// Workers of a process.
    pub workers: usize,
    /// The time until the last process has ended.
    pub makespan_seconds: f64,
    /// The rate: `order^3 / 3` floating-point operations divided by this time.
    pub tflops: f64,
    /// The length of the longest path of the task graph, without any transfer.
    pub critical_path_seconds: f64,
    /// The time of all tasks, distributed over all devices or workers without any pause.
    pub work_seconds: f64,
    /// Tasks.
    pub tasks: u64,
    /// Messages.
    pub messages: MessageCounts,
    /// The largest number of times that one process sent one of its own tiles.
    pub most_sends: u32,
    /// The largest number of transfers between the owner of a tile and a reader.
    pub tree_depth: u32,
    /// The largest number of times that a request was forwarded.
    pub hops: u32,
    /// The largest number of slots in use in a process.
    pub peak_slots: u64,
    /// Their bytes.
    pub peak_slot_bytes: u64,
    /// Most ready tasks in a process.
    pub peak_ready: u64,
    /// The largest number of bytes of tiles on a device.
    pub peak_device_bytes: u64,
    /// Bytes to devices.
    pub up_bytes: u64,
    /// Bytes from devices.
    pub down_bytes: u64,
    /// The bytes if every task moved all its operands to the device and its result back.
    pub baseline_bytes: u64,
    /// The utilisation of the parts of the machine.
    pub busy: Busy,
    /// The work of the disks, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskFigures>,
    /// The number of events of the simulation.
    pub events: u64,
    /// The wall-clock seconds that the simulation took.
    pub wall_seconds: f64,
}

impl World<'_> {
    /// The figures, at the end.
    pub(super) fn report(&self, begin: Instant) -> Simulation {
        let (machine, options) = (self.machine, self.options);
        let makespan = self.hosts.iter().filter_map(|host| host.finished).fold(0.0, f64::max);
        let counters = self.processes.iter().map(|process| process.counters()).collect::<Vec<_>>();
        let most = |of: &dyn Fn(&Counters) -> u64| counters.iter().map(of).max().unwrap_or(0);
        let devices = || self.hosts.iter().flat_map(|host| &host.devices);
        let moved = devices().map(|device| device.counters());
        let (up_bytes, down_bytes) = moved.fold((0, 0), |(up, down), one| (up + one.up_bytes, down + one.down_bytes));
        let peak_slots = most(&|one| one.peak_slots);
        let bounds = Bounds::new(self);
        Simulation {
            machine: machine.name.clone(),
            grid: options.grid,
            order: options.order,
            tiles: self.graph.tiles,
            delivery: options.delivery,
            termination: options.termination,
            policy: options.policy_name(),
            eviction: options.eviction,
            slots: options.slots(machine),
            workers: machine.layout.workers,
            makespan_seconds: makespan,
            tflops: (options.order as f64).powi(3) / 3.0 / makespan / 1e12,
            critical_path_seconds: bounds.critical_path_seconds,
            work_seconds: bounds.work_seconds,
            tasks: counters.iter().map(|one| one.tasks).sum(),
            messages: messages(&counters),
            most_sends: most(&|one| u64::from(one.most_sends)) as u32,
            tree_depth: most(&|one| u64::from(one.depth)) as u32,
            hops: most(&|one| u64::from(one.hops)) as u32,
            peak_slots,
            peak_slot_bytes: peak_slots * machine.tile_bytes(),
            peak_ready: most(&|one| one.peak_ready),
            peak_device_bytes: devices().map(|device| device.peak_bytes).max().unwrap_or(0),
            up_bytes,
            down_bytes,
            baseline_bytes: bounds.baseline_tiles * machine.tile_bytes(),
            busy: self.busy(makespan),
            disk: self.disk_figures(makespan),
            events: self.clock.count(),
            wall_seconds: begin.elapsed().as_secs_f64(),
        }
    }

    fn disk_figures(&self, makespan: f64) -> Option<DiskFigures> {
        let (disks, shape) = (self.disks.as_ref()?, self.options.level_shape(self.machine)?);
        let all = || self.levels.iter().map(|level| level.counts());
        let sum = |of: &dyn Fn(&LevelCounts) -> u64| all().map(|one| of(&one)).sum::<u64>();
        let traffic = LevelTraffic {
            entry_bytes: sum(&|one| one.traffic.entry_bytes),
            operand_bytes: sum(&|one| one.traffic.operand_bytes),
            written_bytes: sum(&|one| one.traffic.written_bytes),
        };
        let workers = makespan * (self.levels.len() * self.machine.layout.workers) as f64;
        let [waiting_for_tiles, waiting_to_write] =
            [|one: LevelCounts| one.wait_seconds, |one: LevelCounts| one.write_wait_seconds]
                .map(|of| all().map(of).sum::<f64>() / workers.max(f64::MIN_POSITIVE));
        let [busy, busiest] = disks.busy(makespan);
        Some(DiskFigures {
            room_tiles: shape.room_tiles,
            block_tiles: (shape.blocks.rows, shape.blocks.cols),
            strip_tiles: shape.strip_tiles,
            peak_tiles: all().map(|one| one.peak_tiles).max().unwrap_or(0),
            least_read_bytes: self.options.least_read_bytes(self.machine),
            read_bytes: traffic.read_bytes(),
            reused_bytes: sum(&|one| one.used_bytes).saturating_sub(traffic.operand_bytes),
            sent_bytes: sum(&|one| one.sent_bytes),
            traffic,
            waiting_for_tiles,
            waiting_to_write,
            busy,
            busiest,
        })
    }

    fn busy(&self, makespan: f64) -> Busy {
        let processes = self.hosts.len() as f64;
        let part = |seconds: f64, count: f64| if seconds == 0.0 { 0.0 } else { seconds / (makespan * count) };
        let devices = || self.hosts.iter().flat_map(|host| &host.devices);
        let count = devices().count() as f64;
        let kernels = devices().map(|device| device.kernels.busy).sum::<f64>();
        let copies = |way: usize| devices().map(|device| device.copying()[way]).sum::<f64>();
        let [out_links, in_links, local_links] = self.links.busy(makespan);
        let workers = processes * self.machine.layout.workers as f64;
        Busy {
            devices: part(kernels, count) + part(self.statistics.worker_seconds, workers),
            processors: part(self.hosts.iter().map(|host| host.processor.busy).sum(), processes),
            copies_up: part(copies(0), count),
            copies_down: part(copies(1), count),
            out_links,
            busiest_out_link: self.links.busiest_out(makespan),
            in_links,
            local_links,
            progress_threads: part(self.statistics.progress_seconds, processes),
            workers_loading: part(self.statistics.loading_seconds, workers),
            workers_queueing: part(self.statistics.queueing_seconds, workers),
        }
    }
}

fn messages(counters: &[Counters]) -> MessageCounts {
    let count = |of: &dyn Fn(&Counters) -> u64| Messages {
        total: counters.iter().map(of).sum(),
        most: counters.iter().map(of).max().unwrap_or(0),
    };
    MessageCounts {
        notices: count(&|one| one.notices),
        requests: count(&|one| one.requests),
        forwards: count(&|one| one.forwards),
        tiles: count(&|one| one.tiles),
        finished: count(&|one| one.finished),
    }
}

/// Lower bounds of the time of any run, and the bytes that a run without memory would move.
struct Bounds {
    critical_path_seconds: f64,
    work_seconds: f64,
    baseline_tiles: u64,
}

impl Bounds {
    /// From the times of whole tiles; the last tile row may be shorter, and so counts as nothing.
    fn new(world: &World<'_>) -> Bounds {
        let n = world.graph.tiles as u64;
        let times = [Task::Potrf { k: 0 }, Task::Trsm { i: 1, k: 0 }, Task::Syrk { i: 1, k: 0 }];
        let whole = world.graph.tiles - usize::from(world.last_rows < world.machine.tiles.rows);
        let large = CholeskyGraph { tiles: whole };
        let seconds = |task: Task| world.whole_seconds(task);
        let [potrf, trsm, syrk] = times.map(seconds);
        let gemm = seconds(Task::Gemm { i: 2, j: 1, k: 0 });
        let fastest = world.hosts.iter().map(|host| host.slowness).fold(f64::INFINITY, f64::min);
        let units = |seconds: f64| (seconds * NANOSECONDS).floor() as u64;
        let weights = TaskWeights { potrf: units(potrf), trsm: units(trsm), syrk: units(syrk), gemm: units(gemm) };
        let path = match whole {
            0 => 0,
            _ => BottomLevels::weighted(large, weights).of(large.finish(TileId { row: 0, col: 0 })),
        };
        let (w, devices) = (whole as f64, world.hosts.iter().map(|host| host.devices.len()).sum::<usize>());
        let (pairs, triples) = (w * (w - 1.0) / 2.0, w * (w - 1.0) * (w - 2.0) / 6.0);
        let work = match devices {
            0 => {
                let workers = world.hosts.len() * world.machine.layout.workers;
                (w * potrf + pairs * (trsm + syrk) + triples * gemm) / workers as f64
            }
            _ => (pairs * (trsm + syrk) + triples * gemm) / devices as f64,
        };
        let pairs = n * n.saturating_sub(1) / 2;
        // A product takes three tiles up and one down, the others two and one.
        let moved = if devices == 0 { 0 } else { 4 * (pairs * n.saturating_sub(2) / 3) + 3 * 2 * pairs };
        Bounds {
            critical_path_seconds: path as f64 / NANOSECONDS * fastest,
            work_seconds: work * fastest,
            baseline_tiles: moved,
        }
    }
}

impl SimulationOptions {
    /// The policy, with the sides of blocks.
    fn policy_name(&self) -> String {
        match self.policy {
            Policy::Blocks { rows, cols } => format!("blocks:{rows}x{cols}"),
            policy => policy.name().to_string(),
        }
    }

    /// A short name of the choices: delivery, termination, policy, eviction.
    pub fn label(&self) -> String {
        let termination = if self.termination == Termination::Lists { "lists" } else { "all_to_all" };
        format!("{} {termination} {} {}", self.delivery.name(), self.policy_name(), self.eviction.name())
    }
}
