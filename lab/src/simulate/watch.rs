//! Rules that must hold in every run: each task runs once, in order, with its operands available; every process ends.

use rustc_hash::FxHashSet;
use sunzi::advanced::runtime::CholeskyGraph;
use sunzi::advanced::runtime::protocol::{TaskMachine, TileRun};
use sunzi::advanced::tile::TileId;
use sunzi::distributed::RankGrid;
use sunzi::{Error, Result};

/// The state of all tiles.
pub(super) struct Watch {
    graph: CholeskyGraph,
    grid: RankGrid,
    /// Updates done on each tile, and one more for its last task.
    done: Vec<u16>,
    /// The finished tiles that each process has, where that is checked.
    held: Option<FxHashSet<(u32, TileId)>>,
}

impl Watch {
    /// Nothing done; `closely` looks up every operand.
    pub fn new(graph: CholeskyGraph, grid: RankGrid, closely: bool) -> Watch {
        Watch { graph, grid, done: vec![0; graph.tile_count()], held: closely.then(FxHashSet::default) }
    }

    fn fail<T>(message: String) -> Result<T> {
        Err(Error::verification(message))
    }

    /// A tile has come to a process.
    pub fn came(&mut self, process: usize, tile: TileId) -> Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        if held.insert((process as u32, tile)) {
            return Ok(());
        }
        Watch::fail(format!("process {process} receives tile ({}, {}) twice", tile.row, tile.col))
    }

    /// A tile of another process is given up.
    pub fn gone(&mut self, process: usize, tile: TileId) {
        if let Some(held) = &mut self.held {
            held.remove(&(process as u32, tile));
        }
    }

    /// A process reads or sends a finished tile.
    pub fn read(&self, process: usize, tile: TileId) -> Result<()> {
        match &self.held {
            Some(held) if !held.contains(&(process as u32, tile)) => Watch::fail(format!(
                "process {process} reads tile ({}, {}), which it does not have",
                tile.row, tile.col
            )),
            _ => Ok(()),
        }
    }

    /// A run is started.
    pub fn start(&self, process: usize, run: &TileRun) -> Result<()> {
        let TileRun { updates, finish, .. } = run;
        for tile in run.tiles() {
            let done = self.done[self.graph.index(tile)] as usize;
            let whole =
                updates.end <= tile.col && (!finish || updates.end == tile.col) && (*finish || !updates.is_empty());
            if done != updates.start || !whole || self.grid.owner(tile) != process {
                return Watch::fail(format!("process {process} runs {run:?} after {done} tasks"));
            }
        }
        if self.held.is_some() {
            let mut inputs = run.tasks(self.graph).flat_map(|task| self.graph.inputs(task));
            inputs.try_for_each(|input| self.read(process, input))?;
        }
        Ok(())
    }

    /// A run is done.
    pub fn done(&mut self, process: usize, run: &TileRun) {
        for tile in run.tiles() {
            self.done[self.graph.index(tile)] = (run.updates.end + usize::from(run.finish)) as u16;
            if let (true, Some(held)) = (run.finish, &mut self.held) {
                held.insert((process as u32, tile));
            }
        }
    }

    /// No event is left.
    pub fn finish(&self, processes: &[TaskMachine]) -> Result<()> {
        let lost = self.graph.all_tiles().zip(&self.done).find(|(tile, done)| **done as usize != tile.col + 1);
        if let Some((TileId { row, col }, done)) = lost {
            let all = processes.iter().filter(|process| process.is_finished()).count();
            return Watch::fail(format!(
                "deadlock: tile ({row}, {col}) has {done} of {} tasks; {all} of {} processes have ended",
                col + 1,
                processes.len()
            ));
        }
        match processes.iter().position(|process| !process.is_finished()) {
            Some(process) => Watch::fail(format!("deadlock: process {process} does not end")),
            None => Ok(()),
        }
    }
}
