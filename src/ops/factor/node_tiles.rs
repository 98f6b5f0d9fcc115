//! The tiles of the ranks of a node in one window: each is written by its owner, and read in place by all.
//!
//! A piece of the window has the words of a tile, followed by the weights of its rows after it.

use crate::comm::window::{SharedWindow, Shown, WindowPieces};
use crate::comm::{Fence, Transport};
use crate::error::Result;
use crate::kernels::tiles::DiagonalData;
use crate::ops::factor::tile_work::TileWork;
use crate::tile::{OwnTiles, TileId, TileMap};
use std::sync::OnceLock;

/// Which tiles lie in the window of a node, and how long they are.
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

    /// The words of a finished tile of another rank, where that is one of the node.
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
