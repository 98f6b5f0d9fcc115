//! The tiles of a factorisation in a memory above a disk: which tiles each run needs, which stay, and when each is
//! written.
//!
//! A tile under work is held from its first task to its last: it has no home to go to. A finished tile is written at
//! once, stays as long as there is room, and goes when no task of this rank reads it again. Runs on the next block may
//! be planned if the current block, and the runs on it, keep their memory; so the first unfinished block always makes
//! progress. Depends on: the graph, blocks, which tiles are here. Independent of: what carries moves out, bytes of a
//! file.

use crate::runtime::CholeskyGraph;
use crate::runtime::local::{LocalScheduler, Planned, Ticket};
use crate::runtime::policy::BlockShape;
use crate::runtime::protocol::TileRun;
use crate::runtime::residency::{Access, Eviction, Lease, Limits, Move, Owner, TileUse};
use crate::tile::{OwnTiles, TileId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The memory and the runs of one rank.
#[derive(Clone, Copy, Debug)]
pub struct LevelShape {
    /// Tiles that there is room for.
    pub room_tiles: usize,
    /// The tiles of this rank in a block.
    pub blocks: BlockShape,
    /// The largest number of tiles of a run.
    pub strip_tiles: usize,
    /// Largest number of updates of a run on each of its tiles.
    pub most_updates: usize,
}

impl LevelShape {
    /// Blocks of one tile, and runs of one task.
    pub const SINGLE_TILES: LevelShape =
        LevelShape { room_tiles: 0, blocks: BlockShape { rows: 1, cols: 1 }, strip_tiles: 1, most_updates: 1 };

    /// Largest number of tiles that a run needs: its own tiles, the operands that are subtracted from them, and the
    /// tile on the diagonal.
    pub fn run_tiles(&self) -> usize {
        let operands = (self.strip_tiles + 1) * self.most_updates;
        self.strip_tiles + operands + usize::from(self.most_updates > 1)
    }

    /// Memory for the tiles that two steps of a block read, if a run needs no more: one step is fetched during the
    /// computation of the other.
    pub fn steps_room(&self) -> usize {
        let step = (self.blocks.rows + self.blocks.cols) * self.most_updates;
        (2 * step).max(self.run_tiles() - self.strip_tiles)
    }

    /// The smallest number of tiles that memory must hold: the tiles of the current block and the operands of one run.
    pub fn least_room(&self, own_tiles_of_block: usize) -> usize {
        own_tiles_of_block + self.run_tiles() - self.strip_tiles
    }
}

/// Own tiles of a block that are not loaded, and that are not finished; runs on them.
#[derive(Clone, Copy, Default)]
struct BlockState {
    unloaded: usize,
    unfinished: usize,
    runs: usize,
}

/// Block, first column of the updates, column and row of a run: their order is that in which runs are planned.
type RunKey = ((usize, usize), usize, usize, usize);

/// The tiles of one rank in memory.
pub struct TileLevel {
    graph: CholeskyGraph,
    owner: Owner,
    shape: LevelShape,
    /// The blocks of all ranks.
    all_blocks: BlockShape,
    scheduler: LocalScheduler<TileId, TileRun>,
    /// Runs that wait for memory, in order.
    pending: BTreeMap<RunKey, TileRun>,
    /// Tiles under work.
    holds: FxHashMap<TileId, Lease<TileId>>,
    /// Blocks with unfinished tiles, in their order.
    blocks: BTreeMap<(usize, usize), BlockState>,
    /// Tasks that have not read a finished tile yet, from the first of them on.
    unread: FxHashMap<TileId, usize>,
}

impl TileLevel {
    /// An empty memory; `finished` tiles are on the disk already.
    pub fn new(graph: CholeskyGraph, owner: Owner, shape: LevelShape, finished: impl Fn(TileId) -> bool) -> TileLevel {
        let (mut blocks, all_blocks) = (BTreeMap::<_, BlockState>::new(), shape.blocks.over(owner.grid));
        let own = OwnTiles::new(owner.grid, graph.tiles, owner.number);
        for tile in own.in_columns(0..graph.tiles).filter(|&tile| !finished(tile)) {
            let block = blocks.entry(all_blocks.block(tile)).or_default();
            block.unloaded += 1;
            block.unfinished += 1;
        }
        let limits = Limits { bytes: u64::MAX, tiles: shape.room_tiles };
        TileLevel {
            graph,
            owner,
            shape,
            all_blocks,
            scheduler: LocalScheduler::new(limits, Eviction::Lru),
            pending: BTreeMap::new(),
            holds: FxHashMap::default(),
            blocks,
            unread: FxHashMap::default(),
        }
    }

    /// Adds a run whose tasks can be done, and plans all runs that fit in memory.
    pub fn take(&mut self, run: TileRun) {
        let (TileId { row, col }, block) = (run.tile, self.all_blocks.block(run.tile));
        self.blocks.get_mut(&block).expect("its block is unfinished").runs += 1;
        self.pending.insert((block, run.updates.start, col, row), run);
        self.plan();
    }

    /// Whether a run on a tile is wanted, if `most` runs may be active. On one rank every run is wanted. On several
    /// ranks, runs on the first unfinished block are wanted; other runs must leave half of the memory to it, as it may
    /// wait for tiles of other ranks and continue later.
    pub fn admits(&self, tile: TileId, most: usize) -> bool {
        if self.owner.grid.size() == 1 {
            return true;
        }
        let mut blocks = self.blocks.iter();
        let first = blocks.next().is_none_or(|(&first, _)| first == self.all_blocks.block(tile));
        first || blocks.map(|(_, block)| block.runs).sum::<usize>() < most / 2
    }

    /// The tiles of a run: its own tiles, and the tiles that it reads.
    pub fn uses(&self, run: &TileRun) -> Vec<TileUse<TileId>> {
        let one = |tile, access| TileUse { tile, bytes: 1, access };
        let mut uses = run.tiles().map(|tile| one(tile, Access::Update)).collect::<Vec<_>>();
        let col = run.tile.col;
        for k in run.updates.clone() {
            uses.extend(run.operand_rows().map(|row| one(TileId { row, col: k }, Access::Read)));
        }
        if run.finish && run.tile.row > col {
            uses.push(one(TileId { row: col, col }, Access::Read));
        }
        uses
    }

    /// Plans runs in the order of blocks and steps; none overtakes another, so that the runs of a step follow one
    /// another and find the tiles that they share.
    fn plan(&mut self) {
        while let Some((key, run)) = self.pending.pop_first() {
            let Some(spare) = self.spare(&run) else {
                self.pending.insert(key, run);
                return;
            };
            let uses = self.uses(&run);
            match self.scheduler.plan(run, &uses, spare) {
                (Planned::Yes, _) => self.load(&uses),
                (Planned::Later, run) => {
                    self.pending.insert(key, run.expect("it comes back"));
                    return;
                }
                (Planned::TooLarge { tiles, .. }, _) => panic!("a run of {tiles} tiles, room for less"),
            }
        }
    }

    /// Room that a run must leave; `None` for one that must wait. The first unfinished block needs to leave nothing,
    /// the next one must leave the room that the first will still take; later ones would push out the tiles that these
    /// two read.
    fn spare(&self, run: &TileRun) -> Option<Limits> {
        let mut before = self.blocks.range(..self.all_blocks.block(run.tile));
        let (first, second) = (before.next(), before.next());
        let tiles = match first {
            None => 0,
            Some((_, first)) if second.is_none() => first.unloaded + self.shape.steps_room(),
            Some(_) => return None,
        };
        Some(Limits { bytes: 0, tiles })
    }

    /// Holds the tiles that are worked on for the first time.
    fn load(&mut self, uses: &[TileUse<TileId>]) {
        for one in uses.iter().filter(|one| one.access == Access::Update) {
            if !self.holds.contains_key(&one.tile) {
                self.holds.insert(one.tile, self.scheduler.hold(one.tile));
                let block = self.all_blocks.block(one.tile);
                self.blocks.get_mut(&block).expect("its block is unfinished").unloaded -= 1;
            }
        }
    }

    /// The next move to begin, in this order.
    pub fn next_move(&mut self) -> Option<Move<TileId>> {
        self.scheduler.next_move()
    }

    /// The next run whose tiles are in memory.
    pub fn next_run(&mut self) -> Option<(Ticket, TileRun)> {
        self.scheduler.next_job()
    }

    /// Runs whose tiles are in memory and that have not been started.
    pub fn ready(&self) -> usize {
        self.scheduler.ready()
    }

    /// Records that a tile has arrived.
    pub fn fetched(&mut self, tile: TileId) {
        self.scheduler.fetched(tile);
    }

    /// Records that a finished tile is on the disk.
    pub fn written(&mut self, tile: TileId) {
        self.scheduler.written(tile);
        self.plan();
    }

    /// Records that a run is done: its finished tiles are to be written.
    pub fn done(&mut self, ticket: Ticket, run: &TileRun) {
        let uses = self.uses(run);
        self.scheduler.done(ticket);
        self.blocks.get_mut(&self.all_blocks.block(run.tile)).expect("its block is unfinished").runs -= 1;
        if run.finish {
            run.tiles().for_each(|tile| self.finished(tile));
        }
        // One task reads an operand of each tile; that on the diagonal once for each tile of the strip.
        for one in uses.iter().filter(|one| one.access == Access::Read) {
            let is_shared = one.tile.row == run.tile.col;
            self.has_read(one.tile, if is_shared { run.count } else { 1 });
        }
        self.plan();
    }

    fn finished(&mut self, tile: TileId) {
        let hold = self.holds.remove(&tile).expect("a tile under work is held");
        self.scheduler.release(hold);
        self.scheduler.write(tile);
        let block = self.all_blocks.block(tile);
        let state = self.blocks.get_mut(&block).expect("its block is unfinished");
        state.unfinished -= 1;
        if state.unfinished == 0 {
            self.blocks.remove(&block);
        }
        if self.readers(tile) == 0 {
            self.scheduler.forget(tile);
        }
    }

    fn readers(&self, tile: TileId) -> usize {
        self.owner.grid.consumers(self.graph.tiles, self.owner.number, tile)
    }

    /// Records that tasks have read a finished tile: after the last such task the tile is released.
    fn has_read(&mut self, tile: TileId, tasks: usize) {
        let known = self.unread.remove(&tile).unwrap_or_else(|| self.readers(tile));
        if known > tasks {
            self.unread.insert(tile, known - tasks);
        } else {
            self.scheduler.forget(tile);
        }
    }

    /// Removes all runs that have not been started: they are never done.
    pub fn abandon(&mut self) -> Vec<TileRun> {
        let pending = std::mem::take(&mut self.pending).into_values();
        pending.chain(self.scheduler.abandon()).collect()
    }

    /// Fetches and writes that have begun and not ended.
    pub fn in_flight(&self) -> usize {
        self.scheduler.in_flight()
    }
}
