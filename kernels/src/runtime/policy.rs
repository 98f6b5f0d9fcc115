//! The rule that selects the next task of a device.
//!
//! The first four are those of the papers (docs/decisions/014-tiles-on-devices.md); the choice never changes a result,
//! only the bytes moved and the time. Depends on: tasks, which tiles are resident. Independent of: bytes of memory,
//! clocks.

use crate::error::{Error, Result};
use crate::runtime::{BottomLevels, CholeskyGraph, Task};
use crate::tile::{RankGrid, TileId};
use serde::Serialize;
use std::sync::Arc;

/// Rule of choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The task that has been ready for the longest time.
    Fifo,
    /// The task that became ready last.
    Lifo,
    /// A task chosen at random.
    Random(u64),
    /// A tile in the row of the last one, else in its column, else the task that has been ready for the longest time.
    ByIj,
    /// The task with the fewest missing tiles; of several the leftmost.
    Greedy,
    /// The task with the longest path after it.
    CriticalPath,
    /// Columns in panels that fit in memory, from left to right; earlier columns are streamed once for each panel.
    #[default]
    Panels,
    /// The leftmost tile all of whose updates are ready, else the leftmost tile.
    Leftmost,
    /// Blocks of tiles, block column by block column, for a memory that holds one block: earlier columns are streamed
    /// once for each block. Square blocks read the fewest bytes; blocks of the full height are panels.
    Blocks {
        /// Tile rows of a rank in a block.
        rows: usize,
        /// Tile columns of a rank in a block.
        cols: usize,
    },
}

impl Policy {
    /// All rules, `Random` with seed 0, `Blocks` of 4 x 4.
    pub const ALL: [Policy; 9] = [
        Policy::Fifo,
        Policy::Lifo,
        Policy::Random(0),
        Policy::ByIj,
        Policy::Greedy,
        Policy::CriticalPath,
        Policy::Panels,
        Policy::Leftmost,
        Policy::Blocks { rows: 4, cols: 4 },
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::Lifo => "lifo",
            Policy::Random(_) => "random",
            Policy::ByIj => "by_ij",
            Policy::Greedy => "greedy",
            Policy::CriticalPath => "critical_path",
            Policy::Panels => "panels",
            Policy::Leftmost => "leftmost",
            Policy::Blocks { .. } => "blocks",
        }
    }

    /// The rule of that name; `random:7` uses the seed 7, `blocks:7x5` uses blocks of 7 x 5 tiles.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] lists the names.
    pub fn by_name(name: &str) -> Result<Policy> {
        if let Some(seed) = name.strip_prefix("random:").and_then(|seed| seed.parse::<u64>().ok()) {
            return Ok(Policy::Random(seed));
        }
        if let Some((rows, cols)) = name.strip_prefix("blocks:").and_then(|sides| sides.split_once('x'))
            && let (Ok(rows @ 1..), Ok(cols @ 1..)) = (rows.parse(), cols.parse())
        {
            return Ok(Policy::Blocks { rows, cols });
        }
        let names = || Policy::ALL.map(Policy::name).join(", ");
        let unknown = || Error::InvalidArgument(format!("unknown policy '{name}': choose one of {}", names()));
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(unknown)
    }
}

/// Tasks in an order that does not change while they wait, under the policies that have one.
#[derive(Clone, Debug)]
pub(super) enum Priorities {
    /// There is none.
    None,
    /// The longest path to the end first.
    Levels(Arc<BottomLevels>),
    /// By the panel of each tile column.
    Panels(Vec<usize>),
    /// By the block of each tile.
    Blocks(BlockShape),
    /// All updates by one column before those by the next.
    Steps,
}

/// Tile rows and columns of a block under [`Policy::Blocks`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockShape {
    /// Tile rows.
    pub rows: usize,
    /// Tile columns.
    pub cols: usize,
}

impl BlockShape {
    /// The blocks of a policy over a grid, if it has blocks.
    pub fn of(policy: Policy, grid: RankGrid) -> Option<BlockShape> {
        let Policy::Blocks { rows, cols } = policy else { return None };
        Some(BlockShape { rows: rows.max(1), cols: cols.max(1) }.over(grid))
    }

    /// Blocks of which each rank of a grid has an equal one.
    pub fn over(self, grid: RankGrid) -> BlockShape {
        BlockShape { rows: self.rows * grid.rows, cols: self.cols * grid.cols }
    }

    /// Tile rows from `row` to the end of its block, of which one rank has every `step`th.
    pub(super) fn rows_left(self, row: usize, step: usize) -> usize {
        (self.rows - row % self.rows).div_ceil(step)
    }

    /// Column and row of the block of a tile, in the order of the blocks.
    pub fn block(self, tile: TileId) -> (usize, usize) {
        (tile.col / self.cols, tile.row / self.rows)
    }
}

impl Priorities {
    /// The order under `policy`, for a memory of `room_tiles` tiles and the tiles that `owns` names.
    pub fn new(
        policy: Policy,
        grid: RankGrid,
        graph: CholeskyGraph,
        room_tiles: usize,
        owns: impl Fn(TileId) -> bool,
    ) -> Priorities {
        match policy {
            Policy::CriticalPath => Priorities::Levels(BottomLevels::shared(graph)),
            Policy::Panels => Priorities::Panels(panels(graph, room_tiles, owns)),
            _ => BlockShape::of(policy, grid).map_or(Priorities::None, Priorities::Blocks),
        }
    }

    /// The least rank comes first.
    pub fn rank(&self, task: Task) -> Option<[u64; 4]> {
        let k = step(task);
        let TileId { row, col } = match task {
            Task::Potrf { k } => TileId { row: k, col: k },
            Task::Trsm { i, k } => TileId { row: i, col: k },
            Task::Syrk { i, .. } => TileId { row: i, col: i },
            Task::Gemm { i, j, .. } => TileId { row: i, col: j },
        };
        let place = (row as u64) << 32 | col as u64;
        match self {
            Priorities::None => None,
            Priorities::Levels(levels) => Some([u64::MAX - levels.of(task), 0, 0, 0]),
            Priorities::Panels(panels) => {
                // Inside a step, the tasks that the next diagonal tile waits for come first, then the others row by
                // row.
                let is_next = row == col && col == k + 1;
                Some([panels[col] as u64, k as u64, u64::from(!is_next), place])
            }
            Priorities::Blocks(shape) => {
                let (block_col, block_row) = shape.block(TileId { row, col });
                let by_columns = (col as u64) << 32 | row as u64;
                Some([(block_col as u64) << 32 | block_row as u64, k as u64, by_columns, 0])
            }
            Priorities::Steps => Some([k as u64, u64::from(col > k + 1), col as u64, row as u64]),
        }
    }
}

/// The generator of Steele, Lea and Flood (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }
}

/// The tile column that a task contracts or divides by.
fn step(task: Task) -> usize {
    match task {
        Task::Potrf { k } | Task::Trsm { k, .. } | Task::Syrk { k, .. } | Task::Gemm { k, .. } => k,
    }
}

/// Cuts the columns into panels: the tiles of a panel stay while all columns before it pass by, one after the other.
///
/// Under `Lru` that takes room for the panel, for one whole column in addition (a tile of the panel is used again only
/// when the next column has passed), and for the tiles of the column before it that all rows shared, which were used
/// last and so go last. One column is always taken.
fn panels(graph: CholeskyGraph, room_tiles: usize, owns: impl Fn(TileId) -> bool) -> Vec<usize> {
    let own = |col: usize| (col..graph.tiles).filter(|&row| owns(TileId { row, col })).count();
    let (mut panels, mut start) = (vec![0; graph.tiles], 0);
    let mut panel = 0;
    while start < graph.tiles {
        let (mut end, mut held) = (start, 0);
        while end < graph.tiles {
            let passing = if start == 0 { 0 } else { graph.tiles - start + end - start + 2 };
            if end > start && held + own(end) + passing > room_tiles {
                break;
            }
            held += own(end);
            panels[end] = panel;
            end += 1;
        }
        (start, panel) = (end, panel + 1);
    }
    panels
}
