//! The tiles of the ranks of a node in one window: each is written by its owner, and read in place by all; which ranks
//! have such a window.
//!
//! A piece of the window has the words of a tile, followed by the weights of its rows after it.

use crate::comm::window::{SharedWindow, Shown, WindowPieces};
use crate::comm::{Fence, Reduction, Said, Transport, agree};
use crate::error::Result;
use crate::kernels::tiles::{DiagonalData, TileEngine, TileShape};
use crate::math::processor;
use crate::ops::factor::tile_work::TileWork;
use crate::runtime::protocol::Memories;
use crate::site::{Site, Team, close_all};
use crate::tile::{OwnTiles, RankGrid, TileId, TileMap};
use std::sync::OnceLock;

/// The tiles in the window of a node, and their lengths.
#[derive(Clone, Debug)]
pub(crate) struct NodeTilePlan {
    /// The ranks of the node.
    ranks: Vec<usize>,
    /// The number of this one among them.
    local: usize,
    /// Their tiles, in order.
    pieces: WindowPieces,
}

/// The window of a node for the time of one factorisation.
pub(crate) struct TileWindow<'a> {
    /// The ranks of the node.
    pub node: &'a dyn Transport,
    pub window: &'a mut SharedWindow,
    pub plan: &'a NodeTilePlan,
}

/// The tiles of a node, seen from one of its ranks.
pub(crate) struct NodeTiles<'w> {
    shown: Shown<'w>,
    tiling: TileMap,
    /// The ranks of the node and their tiles, in the order of their pieces.
    owners: Vec<(usize, OwnTiles)>,
    /// The data that solves need of diagonal tiles finished by other ranks.
    diagonals: Vec<OnceLock<Box<dyn DiagonalData>>>,
}

fn tiles_of(tiling: &TileMap, rank: usize) -> OwnTiles {
    OwnTiles::new(tiling.grid, tiling.tile_rows(), rank)
}

impl NodeTilePlan {
    /// For the tiles of `work`, and the ranks of a node of which `rank` is one.
    pub fn new(work: &TileWork<'_>, ranks: &[usize], rank: usize) -> NodeTilePlan {
        let tiles = work.tiling.tile_rows();
        let words = |tile: TileId| work.engine.tile_words(work.shape(tile)) + work.weight_words(tile);
        let of = |&rank: &usize| tiles_of(work.tiling, rank).in_columns(0..tiles).map(words);
        let local = ranks.iter().position(|&other| other == rank).expect("a rank of the node");
        NodeTilePlan { ranks: ranks.to_vec(), local, pieces: WindowPieces::new(ranks.iter().map(of)) }
    }

    /// Words of the window.
    pub fn window_words(&self) -> usize {
        self.pieces.total_words()
    }

    /// Bytes that this rank's tiles take in the window, and of the data kept about all tiles.
    pub fn bytes(&self) -> u64 {
        let (own, ends) = (8 * self.pieces.words_of(self.local) as u64, SharedWindow::bytes_for(1));
        own + ends + self.pieces.list_bytes()
    }
}

impl<'w> NodeTiles<'w> {
    /// This rank's tiles to be written, in order, and the tiles of the node. Collective over the node.
    ///
    /// # Errors
    /// The errors of [`SharedWindow::pieces`].
    pub fn new(
        TileWindow { node, window, plan }: TileWindow<'w>,
        tiling: &TileMap,
    ) -> Result<(Vec<&'w mut [u64]>, NodeTiles<'w>)> {
        let (own, shown) = window.pieces(&Fence::new(node), Ok(()), &plan.pieces)?;
        let owners = plan.ranks.iter().map(|&rank| (rank, tiles_of(tiling, rank))).collect();
        let diagonals = (0..tiling.tile_rows()).map(|_| OnceLock::new()).collect();
        Ok((own, NodeTiles { shown, tiling: *tiling, owners, diagonals }))
    }

    /// The words of a finished tile of another rank, if that rank is on this node.
    ///
    /// # Panics
    /// If the tile is not finished.
    pub fn words(&self, tile: TileId) -> Option<&'w [u64]> {
        let owner = self.tiling.owner(tile);
        let place = self.owners.iter().position(|(rank, _)| *rank == owner)?;
        let words = self.shown.get(place, self.owners[place].1.index(tile));
        Some(words.expect("a tile is shown before others hear of it"))
    }

    /// Lets the others read the own tile of that number.
    pub fn show(&self, index: usize, words: &'w mut [u64]) -> &'w [u64] {
        self.shown.show(index, words)
    }

    /// The data that solves need in addition to the words of the diagonal tile in column `col`, which another rank has
    /// finished.
    pub fn diagonal(&self, col: usize, work: &TileWork<'_>, words: &[u64]) -> &dyn DiagonalData {
        let shape = work.shape(TileId { row: col, col });
        &**self.diagonals[col].get_or_init(|| work.engine.factored(shape, words))
    }
}

/// The ranks that would have their tiles in a window of their node: all ranks of a node where tiles have the same
/// layout, no rank has devices, and the window has room. Only where no rank has a memory limit, since windows would be
/// kept. Collective.
pub(super) fn memories(Site { ctx, team }: Site<'_>, work: &TileWork<'_>, kernel: &str) -> Result<Memories> {
    let (world, layout) = (team.world(), team.layout());
    if team.drop_windows_if_limited(ctx.memory_bytes())? {
        return Ok(Memories::apart());
    }
    let here = &layout.nodes[layout.node_of[team.rank()]];
    let window = || SharedWindow::bytes_for(NodeTilePlan::new(work, here, team.rank()).window_words());
    let can = here.len() > 1
        && (1..=world.size()).contains(&work.tiling.grid.size())
        && ctx.devices().is_empty()
        && window() <= team.tile_window_room();
    let own = if can { layout_of(work, kernel) | 1 } else { 0 };
    let mut all = vec![0; world.size()];
    world.all_gather(&[own], &mut all)?;
    let share = |ranks: &[usize]| all[ranks[0]] != 0 && ranks.iter().all(|&rank| all[rank] == all[ranks[0]]);
    // Ranks that share nothing get numbers beyond those of the nodes.
    let of = |rank: usize| {
        let node = layout.node_of[rank];
        if share(&layout.nodes[node]) { node } else { layout.nodes.len() + rank }
    };
    Ok(Memories::new((0..world.size()).map(of).collect()))
}

/// Whether this rank expects that no tile travels, as all ranks of `grid` may have theirs in one window.
pub(super) fn may_share(Site { ctx, team }: Site<'_>, grid: RankGrid) -> bool {
    let is_one_node = team.layout().nodes.len() == 1 && (1..=team.size()).contains(&grid.size());
    is_one_node && team.size() > 1 && ctx.devices().is_empty() && ctx.memory_bytes().is_none()
}

/// Whether tiles of `tile_rows` rows have room in one window, as far as this rank can see.
pub(super) fn has_room(team: &Team, engine: &dyn TileEngine, order: usize, tile_rows: usize) -> bool {
    let tiles = order.div_ceil(tile_rows.max(1));
    let each = engine.tile_words(TileShape { rows: tile_rows, cols: tile_rows, diagonal: false });
    let bytes = (tiles as u128 * (tiles as u128 + 1) / 2) * each as u128 * 8;
    bytes <= u128::from(team.tile_window_room())
}

/// A hash of all that must be the same for ranks to read each other's tiles. A kernel may have the same name with other
/// instructions, and then another layout of words.
fn layout_of(work: &TileWork<'_>, kernel: &str) -> u64 {
    let words = work.engine.tile_words(work.shape(TileId { row: 0, col: 0 }));
    Said::hash(&(kernel, processor::level().name(), work.engine.tile_layout(), words))
}

/// The tiles of this node in its window, where it has one.
pub(super) fn node_plan(team: &Team, work: &TileWork<'_>, memories: &Memories) -> Option<NodeTilePlan> {
    let here = &team.layout().nodes[team.layout().node_of[team.rank()]];
    (here.len() > 1 && memories.share(here[0], here[1])).then(|| NodeTilePlan::new(work, here, team.rank()))
}

/// The windows of the nodes for `memories`, or none and ranks by themselves where one of them cannot be opened: tiles
/// also travel. Collective.
pub(super) fn open(
    team: &Team,
    work: &TileWork<'_>,
    memories: Memories,
) -> Result<(Memories, Option<[SharedWindow; 2]>)> {
    let words = node_plan(team, work, &memories).as_ref().map(NodeTilePlan::window_words);
    let opened = words.map(|words| team.take_tile_windows([0, words])).transpose();
    let mut failed = [u64::from(opened.is_err())];
    team.world().all_reduce(Reduction::Max, &mut failed)?;
    match opened {
        Ok(windows) if failed[0] == 0 => Ok((memories, windows)),
        opened => {
            agree(team.world(), opened.ok().flatten().map_or(Ok(()), close_all))?;
            Ok((Memories::apart(), None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::comm::window::WindowKind;
    use crate::context::Context;
    use crate::ops::factor::options::DistCholeskyOptions;
    use crate::ops::factor::ranks::cholesky_tiles;
    use crate::site::TeamOptions;

    fn on_two_ranks(check: impl Fn(&Context, &mut Team) + Sync) {
        local::run(2, |rank| {
            let ctx = Context::builder().threads(1).build().unwrap();
            let options = TeamOptions::new().window(WindowKind::Heap);
            let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
            check(&ctx, &mut team);
            team.close().unwrap();
        });
    }

    #[test]
    fn tiles_are_as_low_as_between_nodes_where_a_window_has_no_room() {
        on_two_ranks(|ctx, team| {
            let options = DistCholeskyOptions::default();
            let rows = |team: &Team| cholesky_tiles(ctx, team, 2000, 768, &options).unwrap().tile_size;
            let tall = rows(team);
            team.machine_bytes = || Some(1 << 20);
            let low = rows(team);
            assert!(low <= 112 && low <= tall, "{low} {tall}");
            let engine = ctx.tile_engine(ctx.kernel(), 300).unwrap();
            assert!(has_room(team, &*engine, 8, 48) && !has_room(team, &*engine, 1 << 30, 128));
        });
    }

    #[test]
    fn tiles_are_shared_on_one_node_by_the_ranks_of_a_grid_that_they_fill() {
        on_two_ranks(|ctx, team| {
            let shares = |rows, cols| may_share(Site { ctx, team }, RankGrid { rows, cols });
            assert!(shares(1, 2) && shares(2, 1) && shares(1, 1));
            assert!(!shares(0, 2) && !shares(2, 2) && !shares(usize::MAX, usize::MAX));
            let limited = Context::builder().threads(1).memory_bytes(1 << 30).build().unwrap();
            assert!(!may_share(Site { ctx: &limited, team }, RankGrid { rows: 1, cols: 2 }));
        });
    }
}
