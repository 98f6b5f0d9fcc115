//! The own tiles on which a task can run, and which of them is taken next.
//!
//! A run may take tiles in addition to the next one; they are removed here where that is cheap, else the caller drops
//! them.

use crate::runtime::policy::{Draw, Priorities};
use crate::runtime::{CholeskyGraph, Policy, Task};
use crate::tile::TileId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A tile with something to do, and its next task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Item {
    tile: TileId,
    task: Task,
}

/// Priority, then age, then the tile.
type Ranked = (Reverse<[u64; 4]>, Reverse<u64>, usize, usize);

/// Ready tiles under one policy.
pub(super) struct Ready {
    policy: Policy,
    graph: CholeskyGraph,
    priorities: Priorities,
    /// Under policies that rank tasks once and for all.
    heap: BinaryHeap<Ranked>,
    /// Under [`Policy::Leftmost`]: columns and rows, in order.
    columns: Vec<(usize, usize)>,
    /// Under the others, in the order in which tiles became ready.
    queue: VecDeque<Item>,
    last: Option<TileId>,
    draw: Draw,
    count: u64,
    /// Runs that come before a tile on the diagonal is factored, where that waits for other runs.
    lookahead: Option<usize>,
    diagonals: VecDeque<WaitingDiagonal>,
    /// Tiles taken.
    taken: usize,
}

/// A tile on the diagonal that can be factored.
#[derive(Clone, Copy, Debug)]
struct WaitingDiagonal {
    tile: TileId,
    /// Tiles taken when it became ready.
    since: usize,
}

impl Ready {
    /// A queue with nothing ready.
    pub fn new(policy: Policy, graph: CholeskyGraph, priorities: Priorities, lookahead: Option<usize>) -> Ready {
        let draw = Draw::new(if let Policy::Random(seed) = policy { seed } else { 0 });
        let (heap, columns, queue) = (BinaryHeap::new(), Vec::new(), VecDeque::new());
        let (last, count, taken, diagonals) = (None, 0, 0, VecDeque::new());
        Ready { policy, graph, priorities, heap, columns, queue, last, draw, count, lookahead, diagonals, taken }
    }

    /// Records that `task` is the next one on its tile and can run.
    pub fn push(&mut self, task: Task) {
        let tile = self.graph.output(task);
        if self.lookahead.is_some() && matches!(task, Task::Potrf { .. }) {
            return self.diagonals.push_back(WaitingDiagonal { tile, since: self.taken });
        }
        match self.priorities.rank(task) {
            Some(rank) => {
                self.count += 1;
                self.heap.push((Reverse(rank), Reverse(self.count), tile.row, tile.col));
            }
            None if self.policy == Policy::Leftmost => {
                let place = (tile.col, tile.row);
                self.columns.insert(self.columns.partition_point(|&other| other < place), place);
            }
            None => self.queue.push_back(Item { tile, task }),
        }
    }

    /// Takes a tile out that a run has taken, where that is cheap.
    pub fn remove(&mut self, tile: TileId) {
        if let Ok(at) = self.columns.binary_search(&(tile.col, tile.row)) {
            self.columns.remove(at);
        }
    }

    /// Takes the next tile; `resident` decides whether a tile is at the place of the work, `is_whole` whether all
    /// updates of a tile are ready.
    pub fn pop(&mut self, resident: &dyn Fn(TileId) -> bool, is_whole: impl Fn(TileId) -> bool) -> Option<TileId> {
        let others = self.heap.len() + self.columns.len() + self.queue.len();
        let is_due = |since: usize| others == 0 || self.taken >= since + self.lookahead.unwrap_or(0);
        if let Some(&WaitingDiagonal { tile, .. }) = self.diagonals.front().filter(|diagonal| is_due(diagonal.since)) {
            self.diagonals.pop_front();
            return Some(tile);
        }
        self.taken += usize::from(others > 0);
        if let Some((.., row, col)) = self.heap.pop() {
            return Some(TileId { row, col });
        }
        if !self.columns.is_empty() {
            let first_whole = self.columns.iter().position(|&(col, row)| is_whole(TileId { row, col }));
            let (col, row) = self.columns.remove(first_whole.unwrap_or(0));
            return Some(TileId { row, col });
        }
        let last = self.queue.len().checked_sub(1)?;
        let item = match self.policy {
            Policy::Lifo => self.queue.pop_back(),
            Policy::Random(_) => self.queue.swap_remove_back(self.draw.below(last + 1)),
            Policy::ByIj => self.queue.remove(self.in_row_or_column()),
            Policy::Greedy => self.queue.remove(self.least_missing(resident)),
            Policy::Fifo | Policy::CriticalPath | Policy::Panels | Policy::Leftmost | Policy::Blocks { .. } => {
                self.queue.pop_front()
            }
        };
        let tile = item.expect("the place is in the queue").tile;
        self.last = Some(tile);
        Some(tile)
    }

    fn in_row_or_column(&self) -> usize {
        let Some(last) = self.last else { return 0 };
        let find = |fits: &dyn Fn(TileId) -> bool| self.queue.iter().position(|item| fits(item.tile));
        find(&|tile| tile.row == last.row).or_else(|| find(&|tile| tile.col == last.col)).unwrap_or(0)
    }

    fn least_missing(&self, resident: &dyn Fn(TileId) -> bool) -> usize {
        let key = |at: &usize| self.graph.missing_key(self.queue[*at].task, resident);
        (0..self.queue.len()).min_by_key(key).unwrap_or(0)
    }
}
