//! Which ready task a device takes next.
//!
//! The first four are those of the papers (docs/decisions/014-tiles-on-devices.md); the choice never shows in a result,
//! only in bytes moved and in time. Knows: tasks, which tiles are resident. Does not know: bytes of memory, clocks.

use crate::error::{Error, Result};
use crate::runtime::{BottomLevels, CholeskyGraph, Task, TileId};
use serde::Serialize;
use std::cmp::Reverse;

/// Rule of choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The task that is ready for longest.
    Fifo,
    /// The task that became ready last.
    Lifo,
    /// A task drawn from a seed.
    Random(u64),
    /// A tile in the row of the last one, else in its column, else the task that is ready for longest.
    ByIj,
    /// The task with the fewest tiles missing; of those the leftmost.
    Greedy,
    /// The task with the longest path behind it.
    CriticalPath,
    /// Columns in panels that fit the memory, left to right; earlier columns pass by each panel once.
    #[default]
    Panels,
}

impl Policy {
    /// All rules, `Random` with seed 0.
    pub const ALL: [Policy; 7] = [
        Policy::Fifo,
        Policy::Lifo,
        Policy::Random(0),
        Policy::ByIj,
        Policy::Greedy,
        Policy::CriticalPath,
        Policy::Panels,
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
        }
    }

    /// The rule of that name; `random:7` draws from seed 7.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] lists the names.
    pub fn by_name(name: &str) -> Result<Policy> {
        if let Some(seed) = name.strip_prefix("random:").and_then(|seed| seed.parse::<u64>().ok()) {
            return Ok(Policy::Random(seed));
        }
        let names = || Policy::ALL.map(Policy::name).join(", ");
        let unknown = || Error::InvalidArgument(format!("unknown policy '{name}': choose one of {}", names()));
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(unknown)
    }
}

/// Makes the choices of one device.
pub struct Chooser {
    policy: Policy,
    graph: CholeskyGraph,
    last: Option<TileId>,
    random: u64,
    levels: Option<BottomLevels>,
    /// The panel of each tile column.
    panels: Vec<usize>,
}

impl Chooser {
    /// A chooser for a device that has room for `room_tiles` tiles and owns those that `owns` names.
    pub fn new(policy: Policy, graph: CholeskyGraph, room_tiles: usize, owns: impl Fn(TileId) -> bool) -> Chooser {
        let random = if let Policy::Random(seed) = policy { seed } else { 0 };
        let levels = (policy == Policy::CriticalPath).then(|| BottomLevels::new(graph));
        let panels = if policy == Policy::Panels { panels(graph, room_tiles, owns) } else { Vec::new() };
        Chooser { policy, graph, last: None, random, levels, panels }
    }

    /// The place of the best of `ready`, which is not empty.
    pub fn choose(&mut self, ready: &[Task], resident: impl Fn(TileId) -> bool) -> usize {
        assert!(!ready.is_empty(), "nothing to choose from");
        let place = match self.policy {
            Policy::Fifo => 0,
            Policy::Lifo => ready.len() - 1,
            Policy::Random(_) => (self.draw() % ready.len() as u64) as usize,
            Policy::ByIj => self.in_row_or_column(ready),
            Policy::Greedy => best(ready, |task| {
                let (tile, k) = (self.graph.output(task), step(task));
                let absent = |row, col| usize::from(!resident(TileId { row, col }));
                let inputs = match task {
                    Task::Gemm { i, j, .. } => absent(i, k) + absent(j, k),
                    Task::Syrk { i, .. } => absent(i, k),
                    Task::Trsm { .. } => absent(k, k),
                    Task::Potrf { .. } => 0,
                };
                let missing = inputs + absent(tile.row, tile.col);
                (missing, tile.col, k, tile.row)
            }),
            Policy::CriticalPath => {
                let levels = self.levels.as_ref().expect("made for this policy");
                best(ready, |task| Reverse(levels.of(task)))
            }
            Policy::Panels => best(ready, |task| {
                let tile = self.graph.output(task);
                // Inside a step first what the next diagonal tile waits for, then row by row.
                let is_next = tile.row == tile.col && tile.col == step(task) + 1;
                (self.panels[tile.col], step(task), !is_next, tile.row, tile.col)
            }),
        };
        self.last = Some(self.graph.output(ready[place]));
        place
    }

    fn in_row_or_column(&self, ready: &[Task]) -> usize {
        let Some(last) = self.last else { return 0 };
        let find = |fits: &dyn Fn(TileId) -> bool| ready.iter().position(|&task| fits(self.graph.output(task)));
        find(&|tile| tile.row == last.row).or_else(|| find(&|tile| tile.col == last.col)).unwrap_or(0)
    }

    /// The next number of the generator of Steele, Lea and Flood (SplitMix64).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}

/// The tile column that a task contracts or divides by.
fn step(task: Task) -> usize {
    match task {
        Task::Potrf { k } | Task::Trsm { k, .. } | Task::Syrk { k, .. } | Task::Gemm { k, .. } => k,
    }
}

fn best<K: Ord>(ready: &[Task], key: impl Fn(Task) -> K) -> usize {
    (0..ready.len()).min_by_key(|&at| key(ready[at])).expect("there is a task")
}

/// Cuts the columns into panels: the tiles of a panel stay while all columns before it pass by, one after the other.
///
/// Under `Lru` that takes room for the panel, for one whole column beside it (a tile of the panel is used again only
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
