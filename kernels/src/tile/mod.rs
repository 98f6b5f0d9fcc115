//! Tiles of a matrix: their indices, the tiling of a matrix, and the owner of each tile in a grid of ranks.
//!
//! Pure numbers: no I/O, clock, thread or `unsafe`. Independent of: the contents of a tile, the operations on it.
#![forbid(unsafe_code)]

mod axis;
mod deal;
mod diagonal;
mod distribution;
mod grid;
mod map;
mod own;

pub use axis::{Along, Axis};
pub use deal::Deal;
pub use diagonal::LocalDiagonal;
pub use distribution::LARGEST_BLOCK;
pub use distribution::{Distribution, GridOrder};
pub use grid::{RankGrid, RankPlace};
pub use grid::{count_in, first_from};
pub use map::TileMap;
pub use own::OwnTiles;

/// A tile of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TileId {
    /// Row of tiles.
    pub row: usize,
    /// Column of tiles.
    pub col: usize,
}
