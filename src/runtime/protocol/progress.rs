//! The own tiles of a rank: how far each is, and which operands are there.

use super::TileRun;
use crate::runtime::CholeskyGraph;
use crate::tile::{RankGrid, RankPlace, TileId, count_in, first_from};
use std::ops::Range;

/// An operand that is not there.
const ABSENT: u16 = 0;
/// An operand that is an own tile.
const OWN: u16 = 1;
/// Slot 0; the others follow.
const FIRST_SLOT: u16 = 2;

/// Most slots: their numbers are kept in 16 bits.
pub(super) const MOST_SLOTS: usize = (u16::MAX - FIRST_SLOT) as usize;

#[derive(Clone, Copy, Default)]
struct Own {
    /// Updates done.
    applied: u32,
    /// Whether the tile waits in the ready queue or is worked on.
    taken: bool,
    finished: bool,
}

/// Where a finished tile lies for the tasks of this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    /// It is an own tile.
    Own,
    /// It came from another rank.
    Slot(usize),
}

/// Progress of the own tiles.
pub(super) struct Progress {
    grid: RankGrid,
    graph: CholeskyGraph,
    place: RankPlace,
    /// Number of own tiles left of each own column.
    starts: Vec<u32>,
    tiles: Vec<Own>,
    /// By tile column and own row, or own column: the finished tile that is the left, or right, operand.
    left: Vec<u16>,
    right: Vec<u16>,
    diagonal: Vec<u16>,
    rows: usize,
    cols: usize,
    unfinished: usize,
    /// Under the synchronous algorithm: updates by each column still to be done, and the first column with any.
    pending: Option<Vec<usize>>,
    step: usize,
}

impl Progress {
    /// Nothing done; `in_steps` lets updates by a column wait for all by the columns before it.
    pub fn new(grid: RankGrid, graph: CholeskyGraph, rank: usize, in_steps: bool) -> Progress {
        let place @ RankPlace { row: grid_row, col: grid_col } = grid.place(rank);
        let n = graph.tiles;
        let rows = count_in(0..n, grid_row, grid.rows);
        let cols = count_in(0..n, grid_col, grid.cols);
        let (mut starts, mut count) = (Vec::with_capacity(cols), 0);
        let mut pending = vec![0; n];
        for col in (grid_col..n).step_by(grid.cols) {
            starts.push(count as u32);
            let own = count_in(col..n, grid_row, grid.rows);
            count += own;
            pending[..col].iter_mut().for_each(|updates| *updates += own);
        }
        let mut progress = Progress {
            grid,
            graph,
            place,
            starts,
            tiles: vec![Own::default(); count],
            left: vec![ABSENT; n * rows],
            right: vec![ABSENT; n * cols],
            diagonal: vec![ABSENT; cols],
            rows,
            cols,
            unfinished: count,
            pending: in_steps.then_some(pending),
            step: 0,
        };
        progress.advance();
        progress
    }

    /// Own tiles that are not finished.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    fn index(&self, tile: TileId) -> usize {
        let first = first_from(tile.col, self.place.row, self.grid.rows);
        self.starts[tile.col / self.grid.cols] as usize + (tile.row - first) / self.grid.rows
    }

    /// Notes that a finished tile can be read, and calls `offer` with every own tile that may have waited for it.
    pub fn arrived(&mut self, tile: TileId, operand: Operand, mut offer: impl FnMut(TileId)) {
        let RankPlace { row: grid_row, col: grid_col } = self.place;
        let TileId { row, col } = tile;
        let code = match operand {
            Operand::Own => OWN,
            Operand::Slot(slot) => FIRST_SLOT + slot as u16,
        };
        let n = self.graph.tiles;
        let below = || (first_from(row + 1, grid_row, self.grid.rows)..n).step_by(self.grid.rows);
        if row == col {
            if col % self.grid.cols == grid_col {
                self.diagonal[col / self.grid.cols] = code;
                below().for_each(|row| offer(TileId { row, col }));
            }
            return;
        }
        if row % self.grid.rows == grid_row {
            self.left[col * self.rows + row / self.grid.rows] = code;
            let first = first_from(col + 1, grid_col, self.grid.cols);
            (first..=row).step_by(self.grid.cols).for_each(|col| offer(TileId { row, col }));
        }
        if row % self.grid.cols == grid_col {
            self.right[col * self.cols + row / self.grid.cols] = code;
            below().for_each(|below| offer(TileId { row: below, col: row }));
        }
    }

    fn operand(code: u16) -> Option<Operand> {
        match code {
            ABSENT => None,
            OWN => Some(Operand::Own),
            slot => Some(Operand::Slot((slot - FIRST_SLOT) as usize)),
        }
    }

    /// The operands of the update of an own tile by column `k`; both are the same for a diagonal tile.
    pub fn operands(&self, tile: TileId, k: usize) -> Option<(Operand, Operand)> {
        let left = self.left[k * self.rows + tile.row / self.grid.rows];
        if tile.row == tile.col {
            return Progress::operand(left).map(|both| (both, both));
        }
        let right = self.right[k * self.cols + tile.col / self.grid.cols];
        Progress::operand(left).zip(Progress::operand(right))
    }

    /// The finished diagonal tile above an own tile.
    pub fn above(&self, tile: TileId) -> Option<Operand> {
        Progress::operand(self.diagonal[tile.col / self.grid.cols])
    }

    fn can_finish(&self, tile: TileId) -> bool {
        tile.row == tile.col || self.above(tile).is_some()
    }

    /// Whether the update by column `k` may run now, as far as steps go.
    fn is_due(&self, k: usize) -> bool {
        self.pending.is_none() || k <= self.step
    }

    /// Takes an own tile for the ready queue if something can be done on it and it is not there: the column of its next
    /// task.
    pub fn take(&mut self, tile: TileId) -> Option<usize> {
        let index = self.index(tile);
        let Own { applied, taken, finished } = self.tiles[index];
        let applied = applied as usize;
        if taken || finished {
            return None;
        }
        let ready = match applied < tile.col {
            true => self.is_due(applied) && self.operands(tile, applied).is_some(),
            false => self.can_finish(tile),
        };
        self.tiles[index].taken = ready;
        ready.then_some(applied)
    }

    /// What can be done now on a tile that was taken: at most so many updates, and its last task with them if several
    /// are allowed and it need not run apart from them.
    pub fn run(&self, tile: TileId, most_updates: usize, apart: bool) -> TileRun {
        let start = self.tiles[self.index(tile)].applied as usize;
        let most = tile.col.min(start.saturating_add(most_updates));
        let is_ready = |&k: &usize| self.is_due(k) && self.operands(tile, k).is_some();
        let end = start + (start..most).take_while(is_ready).count();
        let joins = start == end || (most_updates > 1 && !apart);
        let finish = end == tile.col && joins && self.can_finish(tile);
        TileRun { tile, updates: start..end, finish }
    }

    /// Takes in that a run is done; `offer` is called with other tiles that may have waited for it.
    pub fn done(&mut self, run: &TileRun, offer: impl FnMut(TileId)) {
        let index = self.index(run.tile);
        let own = &mut self.tiles[index];
        assert!(own.taken && own.applied as usize == run.updates.start, "{run:?} was not handed out");
        (own.taken, own.applied, own.finished) = (false, run.updates.end as u32, run.finish);
        self.unfinished -= usize::from(run.finish);
        if let Some(pending) = &mut self.pending {
            pending[run.updates.clone()].iter_mut().for_each(|updates| *updates -= 1);
            let before = self.step;
            self.advance();
            if self.step > before {
                self.own_tiles(self.step + 1..self.graph.tiles).for_each(offer);
            }
        }
    }

    fn advance(&mut self) {
        let Some(pending) = &self.pending else { return };
        self.step += pending[self.step.min(pending.len())..].iter().take_while(|&&updates| updates == 0).count();
    }

    /// The own tiles in some tile columns.
    pub fn own_tiles(&self, cols: Range<usize>) -> impl Iterator<Item = TileId> + use<> {
        let RankPlace { row: grid_row, col: grid_col } = self.place;
        let (grid, n) = (self.grid, self.graph.tiles);
        let cols = (first_from(cols.start, grid_col, grid.cols)..cols.end).step_by(grid.cols);
        cols.flat_map(move |col| {
            let rows = (first_from(col, grid_row, grid.rows)..n).step_by(grid.rows);
            rows.map(move |row| TileId { row, col })
        })
    }
}
