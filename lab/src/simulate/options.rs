//! The options of a simulation in addition to the machine.

use super::Cluster;
use super::clock::MOST_PROCESSES;
use sunzi::advanced::runtime::protocol::{DeliveryKind, DeviceSites, ProtocolOptions, Termination};
use sunzi::advanced::runtime::{
    BlockShape, CholeskyGraph, Eviction, LevelBytes, LevelSearch, LevelShape, MOST_STRIP_TILES, Owner, Policy,
    least_level_bytes, level_options,
};
use sunzi::distributed::RankGrid;
use sunzi::{Error, Result};

/// Largest factor of slow processes, and largest jitter.
const MOST_FACTOR: f64 = 1e6;

/// Most tile rows: a tile is named by two numbers of 16 bits.
const MOST_TILES: usize = u16::MAX as usize;

/// Choices of a simulated factorisation.
#[derive(Clone, PartialEq, Debug)]
pub struct SimulationOptions {
    /// Processes.
    pub grid: RankGrid,
    /// Rows of the matrix.
    pub order: u64,
    /// The algorithm that sends tiles to processes.
    pub delivery: DeliveryKind,
    /// The condition under which a process may end.
    pub termination: Termination,
    /// The order of ready tiles; out of core some policies of blocks, as [`SimulationOptions::above_disk`] chooses.
    pub policy: Policy,
    /// The rule of eviction of a full device.
    pub eviction: Eviction,
    /// Tiles of other processes that a process can hold at a time; `None` for the number that host memory allows.
    pub slots: Option<usize>,
    /// Updates that a task may bring to a tile at once: one, as in the paper, for times; more only without devices, and
    /// above a disk only where there is room for their operands.
    pub most_updates: usize,
    /// The seed of all random times.
    pub seed: u64,
    /// Times of tasks, copies and transfers, but not latencies, are multiplied by 1 to `1 + jitter`.
    pub jitter: f64,
    /// Processes with a factor for the times of their tasks.
    pub slow: Vec<(usize, f64)>,
    /// Whether every operand is looked up before it is read: for small runs.
    pub watch: bool,
}

impl SimulationOptions {
    /// The choices of the paper, for a grid and an order.
    pub fn new(grid: RankGrid, order: u64) -> SimulationOptions {
        SimulationOptions {
            grid,
            order,
            delivery: DeliveryKind::CsList,
            termination: Termination::Lists,
            policy: Policy::Random(0),
            eviction: Eviction::Fifo,
            slots: None,
            most_updates: 1,
            seed: 0,
            jitter: 0.0,
            slow: Vec::new(),
            watch: false,
        }
    }

    /// The same above a disk: with the blocks that read the fewest bytes, the smallest of those that the processes
    /// would choose, as in a real run.
    pub fn above_disk(self, machine: &Cluster) -> SimulationOptions {
        let shapes = (0..self.grid.size()).map(|process| {
            self.with_search(machine, process, |search| {
                let LevelShape { blocks, most_updates, .. } = search.best();
                [blocks.rows, blocks.cols, most_updates]
            })
        });
        let least = |one: [usize; 3], other: [usize; 3]| std::array::from_fn(|at| one[at].min(other[at]));
        let [rows, cols, most_updates] = shapes.reduce(least).unwrap_or([1; 3]);
        SimulationOptions { policy: Policy::Blocks { rows, cols }, most_updates, ..self }
    }

    /// The shape of the blocks by which the memory of a process above a disk works; `None` for other machines, and
    /// other policies.
    pub(super) fn level_shape(&self, machine: &Cluster) -> Option<LevelShape> {
        let Policy::Blocks { rows, cols } = self.policy else { return None };
        machine.disk.as_ref()?;
        let blocks = BlockShape { rows: rows.max(1), cols: cols.max(1) };
        Some(self.with_search(machine, 0, |search| search.with_blocks(blocks, search.most_updates)))
    }

    /// The fewest bytes that all processes read for their tasks.
    pub(super) fn least_read_bytes(&self, machine: &Cluster) -> u64 {
        let Some(LevelShape { blocks, .. }) = self.level_shape(machine) else { return 0 };
        let least = |search: LevelSearch<'_>| least_level_bytes(search.graph, search.owner, blocks, search.bytes);
        (0..self.grid.size()).map(|process| self.with_search(machine, process, least)).sum()
    }

    fn with_search<T>(&self, machine: &Cluster, process: usize, then: impl FnOnce(LevelSearch<'_>) -> T) -> T {
        let (graph, owner) = (CholeskyGraph { tiles: self.tiles(machine) }, Owner { grid: self.grid, number: process });
        let (entries, finished) = (|_| machine.matrix_tile_bytes(), |_| machine.tile_bytes());
        then(LevelSearch {
            graph,
            owner,
            room_tiles: machine.level_room_tiles(),
            strip_tiles: machine.written_together().clamp(1, MOST_STRIP_TILES),
            most_updates: self.most_updates.clamp(1, graph.tiles.max(1)),
            workers: machine.layout.workers,
            bytes: LevelBytes { entries: &entries, finished: &finished },
        })
    }

    /// Tile rows on a machine.
    pub fn tiles(&self, machine: &Cluster) -> usize {
        self.order.div_ceil(machine.tiles.rows as u64) as usize
    }

    /// Slots that host memory leaves in addition to the own tiles of the process with most of them, at most all tiles.
    /// Above a disk, where tiles of others lie, one for each of them.
    pub fn slots(&self, machine: &Cluster) -> usize {
        let tiles = self.tiles(machine);
        if machine.disk.is_some() {
            return self.grid.useful_slots(tiles, usize::MAX);
        }
        let own = (0..self.grid.size()).map(|process| self.grid.own_tiles(tiles, process)).max().unwrap_or(0) as u64;
        let fitting = (machine.layout.host_memory_bytes / machine.tile_bytes()).saturating_sub(own);
        let all = tiles * (tiles + 1) / 2;
        self.slots.unwrap_or((fitting as usize).min(all))
    }

    /// The options of the protocol.
    pub(super) fn protocol(&self, machine: &Cluster) -> ProtocolOptions {
        let workers = machine.layout.workers;
        if let Some(shape) = self.level_shape(machine) {
            return ProtocolOptions {
                delivery: self.delivery,
                termination: self.termination,
                slots: self.slots(machine),
                imports: true,
                ..level_options(&shape, workers)
            };
        }
        // The processors factor one tile on the diagonal at a time.
        let devices = machine.device.as_ref().map(|device| {
            let grid = RankGrid::for_ranks(device.count);
            DeviceSites { grid, workers: workers.div_ceil(grid.size()), lookahead: None }
        });
        ProtocolOptions {
            delivery: self.delivery,
            termination: self.termination,
            policy: self.policy,
            slots: self.slots(machine),
            workers: if devices.is_some() { 1 } else { workers },
            devices,
            most_updates: self.most_updates,
            strip_tiles: 1,
            updates_at_once: false,
            loads_ahead: false,
            imports: false,
            room_tiles: machine.room_tiles(),
        }
    }

    /// Refuses options that cannot be simulated, with the numbers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check(&self, machine: &Cluster) -> Result<()> {
        let refused = |message: String| Err(Error::InvalidArgument(message));
        let (tiles, size) = (self.order.div_ceil(machine.tiles.rows as u64), self.grid.size());
        if tiles == 0 || tiles > MOST_TILES as u64 {
            let (order, rows) = (self.order, machine.tiles.rows);
            return refused(format!(
                "order {order} gives {tiles} tile rows of {rows} rows, but only 1 to {MOST_TILES} can be simulated"
            ));
        }
        if size >= MOST_PROCESSES {
            return refused(format!("{size} processes are too many: at most {} can be simulated", MOST_PROCESSES - 1));
        }
        if !(0.0..=MOST_FACTOR).contains(&self.jitter) {
            return refused(format!("jitter {} is out of range: choose 0 to {MOST_FACTOR}", self.jitter));
        }
        if self.most_updates == 0 || (self.most_updates > 1 && machine.device.is_some()) {
            return refused(format!(
                "{} updates at a time are not possible on a machine with devices: choose 1",
                self.most_updates
            ));
        }
        for &(process, factor) in &self.slow {
            if process >= size || !(factor > 0.0 && factor <= MOST_FACTOR) {
                let least =
                    format!("there are {size} processes, and factors must be above 0 and at most {MOST_FACTOR}");
                return refused(format!("slow process {process} with factor {factor}: {least}"));
            }
        }
        self.check_above_disk(machine).map_err(Error::InvalidArgument)?;
        self.grid.check(tiles as usize, self.slots(machine))
    }

    fn check_above_disk(&self, machine: &Cluster) -> std::result::Result<(), String> {
        if machine.disk.is_none() || self.grid.size() == 0 {
            return Ok(());
        }
        if let Some(slots) = self.slots {
            return Err(format!(
                "{slots} slots for remote tiles cannot be used out of core, where remote tiles are on disk"
            ));
        }
        if self.delivery == DeliveryKind::Synchronous {
            return Err("the synchronous algorithm cannot run out of core: it uses all tiles in every step".into());
        }
        let Some(shape) = self.level_shape(machine) else {
            let policy = self.policy.name();
            return Err(format!("policy {policy} cannot run out of core: choose blocks:RxC, such as blocks:7x5"));
        };
        let own = (0..self.grid.size()).map(|process| self.grid.own_tiles(self.tiles(machine), process));
        let (rows, cols, room) = (shape.blocks.rows, shape.blocks.cols, shape.room_tiles);
        let least = shape.least_room(rows.saturating_mul(cols).min(own.max().unwrap_or(0)));
        if least > room {
            return Err(format!(
                "blocks of {rows} x {cols} tiles need memory for {least} tiles, but the memory holds {room}"
            ));
        }
        Ok(())
    }
}
