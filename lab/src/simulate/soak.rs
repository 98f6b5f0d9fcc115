//! Simulations drawn from seeds under adverse conditions: few slots, slow processes, times that differ by a factor of a
//! thousand so that messages overtake each other, and every rule of delivery, choice, eviction and termination. Grids
//! have 1 to 64 processes. Three of ten cases are above disks, with memory for 3 to 100 tiles.

use super::machine::{Device, Disk, Network, ProcessLayout, Rates, Tiles};
use super::{Cluster, Recorder, Simulation, SimulationOptions, simulate};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::runtime::{CholeskyGraph, Eviction, Policy};
use sunzi::distributed::RankGrid;
use sunzi::{Error, Result};

/// The largest number of processes of a case.
const MOST_PROCESSES: usize = 64;

/// Most tile rows of a case.
const MOST_TILES: usize = 22;

/// Rows of a tile: only times matter.
const TILE_ROWS: usize = 64;

/// Factors of jitter: none, some, and enough for any order of events.
const JITTERS: [f64; 4] = [0.0, 0.5, 20.0, 2000.0];

/// A simulation drawn from a seed.
#[derive(Clone, PartialEq, Debug)]
pub struct SoakCase {
    /// The seed.
    pub seed: u64,
    /// The machine.
    pub machine: Cluster,
    /// The choices.
    pub options: SimulationOptions,
}

/// The simulation of a seed.
pub fn soak_case(seed: u64) -> SoakCase {
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let machine = machine(&mut draw);
    let processes = draw.random_range(1..=MOST_PROCESSES);
    let divisors = (1..=processes).filter(|rows| processes.is_multiple_of(*rows)).collect::<Vec<_>>();
    let rows = pick(&mut draw, &divisors);
    let grid = RankGrid { rows, cols: processes / rows };
    let tiles = draw.random_range(1..=MOST_TILES);
    let last_rows = draw.random_range(1..=TILE_ROWS);
    let mut options = SimulationOptions::new(grid, ((tiles - 1) * TILE_ROWS + last_rows) as u64);
    options.delivery = pick(&mut draw, &DeliveryKind::ALL);
    options.termination = pick(&mut draw, &[Termination::Lists, Termination::AllToAll]);
    options.policy = match pick(&mut draw, &Policy::ALL) {
        Policy::Random(_) => Policy::Random(seed),
        policy => policy,
    };
    options.eviction = pick(&mut draw, &Eviction::ALL);
    options.slots = Some(grid.least_slots(tiles) + pick(&mut draw, &[0, 0, 1, 2, 10]));
    options.most_updates = if machine.device.is_some() { 1 } else { pick(&mut draw, &[1, 3, usize::MAX]) };
    options.seed = seed;
    options.jitter = pick(&mut draw, &JITTERS);
    let slow = pick(&mut draw, &[0, 0, 1, 3]);
    options.slow = (0..slow).map(|_| (draw.random_range(0..processes), draw.random_range(2.0..500.0))).collect();
    options.watch = true;
    let mut case = SoakCase { seed, machine, options };
    if draw.random_bool(0.3) {
        case.lay_above_disk(&mut draw);
    }
    case
}

fn pick<T: Copy>(draw: &mut ChaCha8Rng, values: &[T]) -> T {
    *values.choose(draw).expect("there is a value")
}

/// A machine with every ratio of computing, latency and bandwidth, with and without devices.
fn machine(draw: &mut ChaCha8Rng) -> Cluster {
    let tiles = Tiles { rows: TILE_ROWS, element_bytes: 8 };
    let bytes = (TILE_ROWS * TILE_ROWS * 8) as u64;
    let bandwidth = |draw: &mut ChaCha8Rng| 10f64.powf(draw.random_range(5.0..11.0));
    let latency = |draw: &mut ChaCha8Rng| 10f64.powf(draw.random_range(-9.0..-2.0));
    let layout = ProcessLayout {
        processes_per_node: draw.random_range(1..=4),
        nodes_per_rack: draw.random_range(1..=4),
        workers: draw.random_range(1..=5),
        host_memory_bytes: bytes << 20,
    };
    let network = Network {
        latency: latency(draw),
        bandwidth: bandwidth(draw),
        local_latency: latency(draw),
        local_bandwidth: bandwidth(draw),
        rack_bandwidth: draw.random_bool(0.5).then(|| bandwidth(draw)),
        message_seconds: pick(draw, &[0.0, 1e-7, 1e-4]),
    };
    let device = draw.random_bool(0.7).then(|| Device {
        count: draw.random_range(1..=3),
        memory_bytes: bytes * draw.random_range(3..=12),
        launch_seconds: 1e-6,
        up_bandwidth: bandwidth(draw),
        down_bandwidth: bandwidth(draw),
        latency: latency(draw),
        node_bandwidth: draw.random_bool(0.5).then(|| bandwidth(draw)),
    });
    let rates = Rates { potrf: bandwidth(draw), trsm: bandwidth(draw), syrk: bandwidth(draw), gemm: bandwidth(draw) };
    Cluster { name: "soak".into(), layout, network, device, disk: None, rates, tiles }
}

/// A disk of any ratio to computing, latency and bandwidth, and little memory above it.
fn disk(draw: &mut ChaCha8Rng) -> Disk {
    let rate = |draw: &mut ChaCha8Rng| 10f64.powf(draw.random_range(5.0..11.0));
    Disk {
        read_bandwidth: rate(draw),
        write_bandwidth: rate(draw),
        latency: pick(draw, &[0.0, 1e-6, 1e-3]),
        shared: draw.random_bool(0.5),
        in_flight_bytes: pick(draw, &[None, Some(1), Some(100_000)]),
        matrix_element_bytes: pick(draw, &[None, Some(3)]),
        memory_element_bytes: pick(draw, &[None, Some(20)]),
        convert_bandwidth: draw.random_bool(0.5).then(|| rate(draw)),
    }
}

impl SoakCase {
    /// Puts a disk below the processes, which then have no devices, and slots for all tiles.
    fn lay_above_disk(&mut self, draw: &mut ChaCha8Rng) {
        let (machine, options) = (&mut self.machine, &mut self.options);
        let disk = disk(draw);
        let tile_bytes = (TILE_ROWS * TILE_ROWS) as u64 * disk.memory_element_bytes.unwrap_or(8);
        machine.layout.host_memory_bytes = tile_bytes * pick(draw, &[3, 3, 4, 7, 12, 30, 100]);
        (machine.device, machine.disk) = (None, Some(disk));
        options.delivery = pick(draw, &[DeliveryKind::PointToPoint, DeliveryKind::CsList, DeliveryKind::Binomial]);
        options.most_updates = pick(draw, &[1, 2, 4]);
        options.slots = None;
        *options = options.clone().above_disk(machine);
        let mut given = options.clone();
        given.policy = Policy::Blocks { rows: draw.random_range(1..=6), cols: draw.random_range(1..=6) };
        if given.check(machine).is_ok() {
            *options = given;
        }
    }

    /// Runs it and checks the results.
    ///
    /// # Errors
    /// [`Error::Verification`] with the case, where the protocol or a figure fails; the errors of [`simulate`].
    pub fn run(&self) -> Result<Simulation> {
        let named = |error: Error| match error {
            Error::Verification(message) => Error::verification(format!("{}: {message}", self.describe())),
            other => other,
        };
        let simulation = simulate(&self.machine, &self.options, &mut Recorder::none(), &|| true).map_err(named)?;
        self.check(&simulation).map_err(|message| named(Error::verification(message)))?;
        Ok(simulation)
    }

    /// The choices in one line of text.
    pub fn describe(&self) -> String {
        let SimulationOptions { grid, order, slots, jitter, slow, .. } = &self.options;
        let (rows, cols, label) = (grid.rows, grid.cols, self.options.label());
        let slots = slots.map_or("all".into(), |slots| slots.to_string());
        let disk = self.machine.disk.as_ref().map_or(String::new(), |disk| format!(", {disk:?}"));
        format!(
            "seed {}: {rows} x {cols} processes, order {order} in tiles of {TILE_ROWS}, {label}, {slots} slots, jitter \
             {jitter}, slow {slow:?}{disk}",
            self.seed
        )
    }

    fn check(&self, simulation: &Simulation) -> std::result::Result<(), String> {
        let tiles = simulation.tiles as u64;
        let tasks = CholeskyGraph { tiles: simulation.tiles }.tile_count() as u64
            + (0..tiles).map(|col| (tiles - col) * col).sum::<u64>();
        let readers = CholeskyGraph { tiles: simulation.tiles }.all_tiles();
        let readers = readers.map(|tile| self.options.grid.clients(simulation.tiles, tile).len() as u64).sum::<u64>();
        let (sent, asked) = (simulation.messages.tiles.total, simulation.messages.requests.total);
        let (makespan, path, work) =
            (simulation.makespan_seconds, simulation.critical_path_seconds, simulation.work_seconds);
        let slots = self.options.slots.unwrap_or(usize::MAX) as u64;
        let rules = [
            (simulation.tasks == tasks, format!("{} tasks done, not {tasks}", simulation.tasks)),
            (sent == readers && asked == readers, format!("{sent} tiles and {asked} requests for {readers} readers")),
            (simulation.peak_slots <= slots, format!("{} slots in use of {slots}", simulation.peak_slots)),
            (makespan >= path * (1.0 - 1e-6), format!("{makespan} s are shorter than the critical path of {path} s")),
            (makespan >= work * (1.0 - 1e-6), format!("{makespan} s are shorter than the work of {work} s")),
        ];
        rules
            .into_iter()
            .chain(self.disk_rules(simulation, readers))
            .find(|(holds, _)| !holds)
            .map_or(Ok(()), |(_, message)| Err(message))
    }

    /// The rules of the disks, where there are any: every entry is read once, every finished tile written once by its
    /// owner and once by each reader, and there is room for all tiles in memory.
    fn disk_rules(&self, simulation: &Simulation, readers: u64) -> Vec<(bool, String)> {
        let (Some(figures), Some(disk)) = (simulation.disk, &self.machine.disk) else { return Vec::new() };
        let (traffic, all) = (figures.traffic, CholeskyGraph { tiles: simulation.tiles }.tile_count() as u64);
        let (each, entries) = (self.machine.tile_bytes(), all * self.machine.matrix_tile_bytes());
        let written = each * (all + readers);
        let moved = (traffic.entry_bytes + traffic.operand_bytes + figures.sent_bytes) as f64 / disk.read_bandwidth
            + traffic.written_bytes as f64 / disk.write_bandwidth;
        let disks = if disk.shared { self.machine.layout.processes_per_node } else { 1 };
        let least = moved / self.options.grid.size().div_ceil(disks) as f64;
        let makespan = simulation.makespan_seconds;
        vec![
            (traffic.entry_bytes == entries, format!("{} bytes of entries read of {entries}", traffic.entry_bytes)),
            (traffic.written_bytes == written, format!("{} bytes written of {written}", traffic.written_bytes)),
            (figures.sent_bytes <= each * readers, format!("{} bytes read for {readers} readers", figures.sent_bytes)),
            (figures.peak_tiles <= figures.room_tiles, format!("{figures:?}")),
            (
                makespan >= least * (1.0 - 1e-6),
                format!(
                    "{makespan} s are shorter than the {least} s that the disks \
                                                        need"
                ),
            ),
        ]
    }
}
