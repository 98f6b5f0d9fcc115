//! What is simulated: choices beside the machine.

use super::Machine;
use super::clock::MOST_PROCESSES;
use sunzi::advanced::runtime::protocol::{DeliveryKind, DeviceSites, ProtocolOptions, Termination};
use sunzi::advanced::runtime::{Eviction, Policy};
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
    /// Who sends a tile to whom.
    pub delivery: DeliveryKind,
    /// When a process may end.
    pub termination: Termination,
    /// Which ready tile is worked on next.
    pub policy: Policy,
    /// Which tile leaves a full device.
    pub eviction: Eviction,
    /// Tiles of other processes that have room at a time; `None` for what host memory leaves.
    pub slots: Option<usize>,
    /// Updates that a task may bring to a tile at once: one, as in the paper, for times; more only without devices.
    pub most_updates: usize,
    /// Seed of all times.
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

    /// Tile rows on a machine.
    pub fn tiles(&self, machine: &Machine) -> usize {
        self.order.div_ceil(machine.tiles.rows as u64) as usize
    }

    /// Slots that host memory leaves beside the own tiles of the process with most of them, at most all tiles.
    pub fn slots(&self, machine: &Machine) -> usize {
        let tiles = self.tiles(machine);
        let own = (0..self.grid.size()).map(|process| self.grid.own_tiles(tiles, process)).max().unwrap_or(0) as u64;
        let fitting = (machine.layout.host_memory_bytes / machine.tile_bytes()).saturating_sub(own);
        let all = tiles * (tiles + 1) / 2;
        self.slots.unwrap_or((fitting as usize).min(all))
    }

    /// What the protocol is told.
    pub(super) fn protocol(&self, machine: &Machine) -> ProtocolOptions {
        let workers = machine.layout.workers;
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
            imports: false,
            room_tiles: machine.room_tiles(),
        }
    }

    /// Refuses what cannot be simulated, with the numbers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check(&self, machine: &Machine) -> Result<()> {
        let refused = |message: String| Err(Error::InvalidArgument(message));
        let (tiles, size) = (self.order.div_ceil(machine.tiles.rows as u64), self.grid.size());
        if tiles == 0 || tiles > MOST_TILES as u64 {
            let (order, rows) = (self.order, machine.tiles.rows);
            return refused(format!("order {order} in tiles of {rows} rows: {tiles} tile rows, not 1 to {MOST_TILES}"));
        }
        if size >= MOST_PROCESSES {
            return refused(format!("{size} processes: at most {} can be simulated", MOST_PROCESSES - 1));
        }
        if !(0.0..=MOST_FACTOR).contains(&self.jitter) {
            return refused(format!("jitter {}: choose 0 to {MOST_FACTOR}", self.jitter));
        }
        if self.most_updates == 0 || (self.most_updates > 1 && machine.device.is_some()) {
            return refused(format!("{} updates at once on a machine with devices: only 1", self.most_updates));
        }
        for &(process, factor) in &self.slow {
            if process >= size || !(factor > 0.0 && factor <= MOST_FACTOR) {
                let least = format!("there are {size} processes, and factors go up to {MOST_FACTOR}");
                return refused(format!("slow process {process} with factor {factor}: {least}"));
            }
        }
        self.grid.check(tiles as usize, self.slots(machine))
    }
}
