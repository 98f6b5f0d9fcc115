//! The size of tiles of a distributed matrix where the user chose none.

use crate::plan::BLOCK;
use crate::tile::RankGrid;

/// The default size of tiles for an order and a grid: some tiles for each rank in both directions, whole blocks,
/// between 16 and 256.
pub fn default_tile_size(order: usize, grid: RankGrid) -> usize {
    order.div_ceil(4 * grid.rows.max(grid.cols)).next_multiple_of(BLOCK).clamp(2 * BLOCK, 256)
}
