//! The tiles that a factorisation in one process is cut into.

use crate::error::{Error, Result};
use crate::kernels::tiles::{PANEL_ROWS, TileShape};
use crate::math::bound::IFMA52_CHUNK_ROWS;
use crate::ops::distribution::matrix::check_tile_size;
use crate::tile::{TileId, TileMap};

/// Smaller tiles are not made to have several in a small matrix: they leave more of its work to whole updates.
const LEAST_SIZED_ROWS: usize = 64;

/// Smaller tiles are not made to keep threads busy.
const LEAST_SHARED_ROWS: usize = 48;

/// Most rows of a tile: sums over this many columns are exact on every kernel.
pub(crate) const MOST_TILE_ROWS: usize = IFMA52_CHUNK_ROWS / PANEL_ROWS * PANEL_ROWS;

/// Refuses tiles that no factor is cut into.
pub(crate) fn check_tile_rows(tile_rows: usize) -> Result<()> {
    check_tile_size(tile_rows)?;
    if tile_rows > MOST_TILE_ROWS {
        let message = format!("tiles of {tile_rows} rows: a factor has tiles of at most {MOST_TILE_ROWS}");
        return Err(Error::InvalidArgument(message));
    }
    Ok(())
}

/// The shape of a tile, for the kernels.
pub(crate) fn shape_of(tiling: &TileMap, tile: TileId) -> TileShape {
    let (rows, cols) = tiling.shape(tile);
    TileShape { rows, cols, diagonal: tile.row == tile.col }
}

/// The tiles of a factorisation of `order` rows: `tile_rows` rows each, rounded up to whole panels; `None` takes the
/// `preferred_rows` of the kernel, or fewer where that would leave threads without work.
pub(crate) fn tiles_for(order: usize, tile_rows: Option<usize>, preferred_rows: usize, threads: usize) -> TileMap {
    let by_threads = if threads > 1 { (order / (4 * threads)).max(LEAST_SHARED_ROWS) } else { order };
    let by_size = (order / 5).max(LEAST_SIZED_ROWS);
    let wanted = tile_rows.unwrap_or_else(|| preferred_rows.min(by_threads).min(by_size));
    TileMap::symmetric(order, wanted.clamp(1, MOST_TILE_ROWS).next_multiple_of(PANEL_ROWS))
}
