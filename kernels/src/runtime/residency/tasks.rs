//! The moves between two levels around each task of a tiled Cholesky factorisation.
//!
//! The tiles that one owner of a grid works on have their home one level below: host memory for a device, a disk for
//! host memory. POTRF runs at the home; all other tasks run above it. A finished tile is written back to its home at
//! once, a tile on the diagonal as soon as only POTRF is left, and a tile that no task of this owner reads again is
//! forgotten, so that the rule of eviction decides among tiles that are of use. Depends on: the graph and who owns
//! what. Independent of: what carries moves out, when, or which task is next.

use super::{Access, Admission, CacheCounters, Eviction, Lease, Limits, Move, Residency, TileState, TileUse};
use crate::runtime::{CholeskyGraph, Task};
use crate::tile::{RankGrid, TileId};
use rustc_hash::FxHashMap;

/// Number `number` of a grid of owners, whose tasks are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// All owners.
    pub grid: RankGrid,
    /// This one.
    pub number: usize,
}

/// The moves of one owner's tiles.
pub struct TaskMoves {
    graph: CholeskyGraph,
    owner: Owner,
    tiles: Residency<TileId>,
    tile_bytes: Box<dyn Fn(TileId) -> u64 + Send>,
    /// Tasks that are still to read a finished tile, from the first of them on.
    unread: FxHashMap<TileId, usize>,
    /// The tiles that the task under way holds.
    lease: Option<Lease<TileId>>,
}

/// The smallest number of tiles that the upper level must hold: the operands of one task.
pub fn least_room_tiles(graph: CholeskyGraph) -> usize {
    match graph.tiles {
        0 | 1 => 0,
        2 => 2,
        _ => 3,
    }
}

impl TaskMoves {
    /// An empty upper level with room for `room_tiles` tiles, at least [`least_room_tiles`] (asserted).
    pub fn new(
        graph: CholeskyGraph,
        owner: Owner,
        room_tiles: usize,
        eviction: Eviction,
        tile_bytes: impl Fn(TileId) -> u64 + Send + 'static,
    ) -> TaskMoves {
        assert!(room_tiles >= least_room_tiles(graph), "room for {room_tiles} tiles");
        let tiles = Residency::new(Limits { bytes: u64::MAX, tiles: room_tiles }, eviction);
        let (unread, lease) = (FxHashMap::default(), None);
        TaskMoves { graph, owner, tiles, tile_bytes: Box::new(tile_bytes), unread, lease }
    }

    /// Whether a tile lies on the upper level.
    pub fn holds(&self, tile: TileId) -> bool {
        self.tiles.state(tile) != TileState::Invalid
    }

    /// The bytes that the moves so far move.
    pub fn counters(&self) -> CacheCounters {
        self.tiles.counters()
    }

    /// The moves before TRSM, SYRK or GEMM on an own tile.
    pub fn begin(&mut self, task: Task) -> Vec<Move<TileId>> {
        assert!(self.lease.is_none(), "the last task is not done");
        let Admission::Granted { moves, lease } = self.tiles.acquire(&self.uses(task)) else {
            panic!("there is room for one task, and no other holds anything");
        };
        self.lease = Some(lease);
        moves
    }

    /// The tiles of a task: its inputs in the graph's order, then its output.
    pub fn uses(&self, task: Task) -> Vec<TileUse<TileId>> {
        let one = |tile, access| TileUse { tile, bytes: (self.tile_bytes)(tile), access };
        let reads = self.graph.inputs(task).into_iter().map(|tile| one(tile, Access::Read));
        reads.chain([one(self.graph.output(task), Access::Update)]).collect()
    }

    /// The moves after the task that was begun last, once it is done or submitted so that all that is submitted later
    /// finds its result.
    pub fn end(&mut self, task: Task) -> Vec<Move<TileId>> {
        let lease = self.lease.take().expect("a task was begun");
        self.tiles.release(lease);
        let (tile, mut moves) = (self.graph.output(task), Vec::new());
        let is_next = |k: usize| tile.row == tile.col && k + 1 == tile.col;
        match task {
            Task::Syrk { k, .. } if is_next(k) => {
                moves.extend(self.tiles.write_back(tile));
                moves.extend(self.tiles.discard(tile));
            }
            Task::Trsm { .. } => {
                moves.extend(self.tiles.write_back(tile));
                if self.readers(tile) == 0 {
                    moves.extend(self.tiles.discard(tile));
                }
            }
            _ => {}
        }
        for input in self.graph.inputs(task) {
            moves.extend(self.has_read(input));
        }
        moves
    }

    /// Tasks of this owner that read a finished tile.
    fn readers(&self, tile: TileId) -> usize {
        self.owner.grid.consumers(self.graph.tiles, self.owner.number, tile)
    }

    /// Records that a task has read a finished tile: after the last such task the tile is released.
    fn has_read(&mut self, tile: TileId) -> Option<Move<TileId>> {
        let known = self.unread.remove(&tile);
        match known.unwrap_or_else(|| self.readers(tile)) {
            1 => self.tiles.discard(tile),
            left => {
                self.unread.insert(tile, left - 1);
                None
            }
        }
    }
}
