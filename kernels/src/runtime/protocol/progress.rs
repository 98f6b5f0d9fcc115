//! The own tiles of a rank: how far each is, and which operands are present.

use super::TileRun;
use crate::runtime::CholeskyGraph;
use crate::tile::{OwnTiles, RankGrid, RankPlace, TileId, count_in, first_from};

/// An operand that is not there.
const ABSENT: u16 = 0;
/// An operand that lies where it was finished.
const IN_PLACE: u16 = 1;
/// Slot 0; the others follow.
const FIRST_SLOT: u16 = 2;

/// The largest number of slots: their numbers are kept in 16 bits.
pub(super) const MOST_SLOTS: usize = (u16::MAX - FIRST_SLOT) as usize;

/// The stages of an own tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum TileStage {
    /// Something that it needs is missing.
    #[default]
    Waiting,
    /// It is in the ready queue.
    Ready,
    /// A run works on it.
    Running,
    Finished,
}

#[derive(Clone, Copy, Default)]
struct Own {
    /// Updates done.
    applied: u32,
    stage: TileStage,
    /// Whether a run has begun on it.
    begun: bool,
}

/// Where a finished tile lies for the tasks of this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    /// It is an own tile, or one that this rank reads where its owner has it.
    InPlace,
    /// It came from another rank.
    Slot(usize),
}

/// In which order the updates of a tile go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UpdateOrder {
    /// Updates by a column wait for all by the columns before it.
    pub in_steps: bool,
    /// A tile waits until all its updates are ready.
    pub at_once: bool,
}

/// The largest run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLimits {
    /// The largest number of updates on each tile; with more than one, a run may also finish its tiles.
    pub updates: usize,
    /// Whether the last task runs apart from the updates.
    pub apart: bool,
    /// The largest number of tiles.
    pub strip: usize,
    /// The largest number of tiles where the first lies on the diagonal.
    pub strip_on_diagonal: usize,
}

/// Progress of the own tiles.
pub(super) struct Progress {
    grid: RankGrid,
    graph: CholeskyGraph,
    place: RankPlace,
    own: OwnTiles,
    /// By the numbers of own tiles.
    tiles: Vec<Own>,
    /// Finished tiles of three kinds: left operands are indexed by tile column and own row, right operands by tile
    /// column and own column, diagonal tiles by own column.
    operands: Vec<u16>,
    rows: usize,
    cols: usize,
    unfinished: usize,
    /// Tiles in the ready queue.
    ready: usize,
    /// A tile waits until all its updates are ready.
    at_once: bool,
    /// The own tiles before this one, column by column, have been begun.
    ahead: TileId,
    /// Under the synchronous algorithm: updates by each column still to be done, and the first column with any.
    pending: Option<Vec<usize>>,
    step: usize,
}

impl Progress {
    /// A rank that has done nothing yet.
    pub fn new(grid: RankGrid, graph: CholeskyGraph, rank: usize, order: UpdateOrder) -> Progress {
        let place @ RankPlace { row: grid_row, col: grid_col } = grid.place(rank);
        let n = graph.tiles;
        let rows = count_in(0..n, grid_row, grid.rows);
        let cols = count_in(0..n, grid_col, grid.cols);
        let own = OwnTiles::new(grid, n, rank);
        let pending = order.in_steps.then(|| {
            let mut pending = vec![0; n];
            own.in_columns(0..n).for_each(|tile| pending[..tile.col].iter_mut().for_each(|updates| *updates += 1));
            pending
        });
        let count = own.count();
        let mut progress = Progress {
            grid,
            graph,
            place,
            own,
            tiles: vec![Own::default(); count],
            operands: vec![ABSENT; n * (rows + cols) + cols],
            rows,
            cols,
            unfinished: count,
            ready: 0,
            at_once: order.at_once,
            ahead: TileId { row: first_from(grid_col, grid_row, grid.rows), col: grid_col },
            pending,
            step: 0,
        };
        progress.advance();
        progress
    }

    /// Records that some own tiles were finished before anything began: those, and the others.
    pub fn resume(&mut self, finished: &dyn Fn(TileId) -> bool) -> (Vec<TileId>, Vec<TileId>) {
        let tiles = self.own.in_columns(0..self.graph.tiles);
        let (done, left) = tiles.partition::<Vec<_>, _>(|&tile| finished(tile));
        done.iter().for_each(|&tile| self.finished_before(tile));
        (done, left)
    }

    fn finished_before(&mut self, tile: TileId) {
        let index = self.index(tile);
        self.ready -= usize::from(self.tiles[index].stage == TileStage::Ready);
        self.tiles[index] = Own { applied: tile.col as u32, stage: TileStage::Finished, begun: true };
        self.unfinished -= 1;
        if let Some(pending) = &mut self.pending {
            pending[..tile.col].iter_mut().for_each(|updates| *updates -= 1);
            self.advance();
        }
    }

    /// Own tiles that are not finished.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Own tiles on which something can be done and that no run has taken.
    pub fn ready(&self) -> usize {
        self.ready
    }

    fn index(&self, tile: TileId) -> usize {
        self.own.index(tile)
    }

    /// Where the left operand of updates by column `k` stands for the own tiles of a tile row.
    fn left_at(&self, k: usize, row: usize) -> usize {
        k * self.rows + row / self.grid.rows
    }

    /// Where the right operand of updates by column `k` stands for the own tiles of a tile column.
    fn right_at(&self, k: usize, col: usize) -> usize {
        self.graph.tiles * self.rows + k * self.cols + col / self.grid.cols
    }

    /// Where the tile on the diagonal stands for the own tiles of a tile column.
    fn diagonal_at(&self, col: usize) -> usize {
        self.right_at(self.graph.tiles, col)
    }

    /// Notes that a finished tile can be read: the own tiles that may have waited for it.
    pub fn arrived(&mut self, tile: TileId, operand: Operand) -> impl Iterator<Item = TileId> + use<> {
        let (RankPlace { row: grid_row, col: grid_col }, TileId { row, col }) = (self.place, tile);
        let (grid, n) = (self.grid, self.graph.tiles);
        let code = match operand {
            Operand::InPlace => IN_PLACE,
            Operand::Slot(slot) => FIRST_SLOT + slot as u16,
        };
        let (mut along, mut below) = (0..0, 0..0);
        if row > col && row % grid.rows == grid_row {
            let place = self.left_at(col, row);
            self.operands[place] = code;
            along = first_from(col + 1, grid_col, grid.cols)..row + 1;
        }
        if row % grid.cols == grid_col {
            let place = if row == col { self.diagonal_at(col) } else { self.right_at(col, row) };
            self.operands[place] = code;
            below = first_from(row + 1, grid_row, grid.rows)..n;
        }
        let along = along.step_by(grid.cols).map(move |col| TileId { row, col });
        along.chain(below.step_by(grid.rows).map(move |below| TileId { row: below, col: row }))
    }

    fn operand(code: u16) -> Option<Operand> {
        match code {
            ABSENT => None,
            IN_PLACE => Some(Operand::InPlace),
            slot => Some(Operand::Slot((slot - FIRST_SLOT) as usize)),
        }
    }

    /// The operands of the update of an own tile by column `k`; both are the same for a diagonal tile.
    pub fn operands(&self, tile: TileId, k: usize) -> Option<(Operand, Operand)> {
        let left = self.operands[self.left_at(k, tile.row)];
        if tile.row == tile.col {
            return Progress::operand(left).map(|both| (both, both));
        }
        let right = self.operands[self.right_at(k, tile.col)];
        Progress::operand(left).zip(Progress::operand(right))
    }

    /// The finished diagonal tile above an own tile.
    pub fn above(&self, tile: TileId) -> Option<Operand> {
        Progress::operand(self.operands[self.diagonal_at(tile.col)])
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
        let Own { applied, stage, .. } = self.tiles[index];
        let applied = applied as usize;
        if stage != TileStage::Waiting {
            return None;
        }
        let ready = match applied < tile.col {
            true if self.at_once => self.is_whole(tile),
            true => self.is_due(applied) && self.operands(tile, applied).is_some(),
            false => self.can_finish(tile),
        };
        if !ready {
            return None;
        }
        self.tiles[index].stage = TileStage::Ready;
        self.ready += 1;
        Some(applied)
    }

    /// Updates of an own tile that are done.
    pub fn applied(&self, tile: TileId) -> usize {
        self.tiles[self.index(tile)].applied as usize
    }

    /// Whether a tile is in the ready queue still.
    pub fn is_ready(&self, tile: TileId) -> bool {
        self.tiles[self.index(tile)].stage == TileStage::Ready
    }

    /// Whether all updates of a tile that are not done can be done now.
    pub fn is_whole(&self, tile: TileId) -> bool {
        let applied = self.tiles[self.index(tile)].applied as usize;
        // The last operands are those that come last.
        (applied..tile.col).rev().all(|k| self.is_due(k) && self.operands(tile, k).is_some())
    }

    /// The run that can be done now on a ready tile, and on the tiles below it where it is the same; they count as
    /// under work from now on.
    pub fn start(&mut self, tile: TileId, limits: &RunLimits) -> TileRun {
        let mut run = self.run(tile, limits, false);
        let on_diagonal = tile.row == tile.col;
        let strip = if on_diagonal { limits.strip_on_diagonal } else { limits.strip };
        while run.count < strip {
            let next = TileId { row: tile.row + run.count * run.row_step, ..tile };
            if next.row >= self.graph.tiles || !self.joins(&run, next, limits) {
                break;
            }
            run.count += 1;
        }
        for tile in run.tiles() {
            let index = self.index(tile);
            self.ready -= usize::from(self.tiles[index].stage == TileStage::Ready);
            self.tiles[index] = Own { stage: TileStage::Running, begun: true, ..self.tiles[index] };
        }
        run
    }

    /// A run that starts on the leftmost own tile on which nothing was done and nothing can be done yet.
    pub fn start_ahead(&mut self) -> Option<TileRun> {
        let (grid, tiles) = (self.grid, self.graph.tiles);
        while self.ahead.col < tiles {
            let tile = self.ahead;
            self.ahead.row += grid.rows;
            if tile.row >= tiles {
                let col = tile.col + grid.cols;
                self.ahead = TileId { row: first_from(col, self.place.row, grid.rows), col };
                continue;
            }
            let index = self.index(tile);
            if self.tiles[index].stage == TileStage::Waiting && !self.tiles[index].begun {
                self.tiles[index] = Own { stage: TileStage::Running, begun: true, ..self.tiles[index] };
                return Some(TileRun { tile, count: 1, row_step: grid.rows, updates: 0..0, finish: false });
            }
        }
        None
    }

    /// Whether a run can take the next tile below its strip.
    fn joins(&self, run: &TileRun, next: TileId, limits: &RunLimits) -> bool {
        let Own { applied, stage, .. } = self.tiles[self.index(next)];
        let is_free = matches!(stage, TileStage::Waiting | TileStage::Ready) && applied as usize == run.updates.start;
        // A tile on the diagonal is finished before those below it in the strip.
        let below_finished = run.finish && run.tile.row == run.tile.col;
        is_free && {
            let own = self.run(next, limits, below_finished);
            own.updates == run.updates && own.finish == run.finish
        }
    }

    /// The run that can be done now on one tile, or once the tile on its diagonal is finished.
    fn run(&self, tile: TileId, limits: &RunLimits, below_finished: bool) -> TileRun {
        let start = self.tiles[self.index(tile)].applied as usize;
        let most = tile.col.min(start.saturating_add(limits.updates));
        let is_ready = |&k: &usize| self.is_due(k) && self.operands(tile, k).is_some();
        let end = start + (start..most).take_while(is_ready).count();
        let joins = start == end || (limits.updates > 1 && !limits.apart);
        let finish = end == tile.col && joins && (below_finished || self.can_finish(tile));
        TileRun { tile, count: 1, row_step: self.grid.rows, updates: start..end, finish }
    }

    /// Records that a run is done; `offer` is called with other tiles that may have waited for it.
    pub fn done(&mut self, run: &TileRun, offer: impl FnMut(TileId)) {
        for tile in run.tiles() {
            let index = self.index(tile);
            let own = &mut self.tiles[index];
            let is_under_way = own.stage == TileStage::Running && own.applied as usize == run.updates.start;
            assert!(is_under_way, "{run:?} was not started");
            own.applied = run.updates.end as u32;
            own.stage = if run.finish { TileStage::Finished } else { TileStage::Waiting };
        }
        self.unfinished -= if run.finish { run.count } else { 0 };
        if let Some(pending) = &mut self.pending {
            pending[run.updates.clone()].iter_mut().for_each(|updates| *updates -= run.count);
            let before = self.step;
            self.advance();
            if self.step > before {
                self.own.in_columns(self.step + 1..self.graph.tiles).for_each(offer);
            }
        }
    }

    fn advance(&mut self) {
        let Some(pending) = &self.pending else { return };
        self.step += pending[self.step.min(pending.len())..].iter().take_while(|&&updates| updates == 0).count();
    }
}
