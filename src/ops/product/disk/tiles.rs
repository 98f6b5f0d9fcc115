//! The tiles of a product: which of them a pair of bands fills, and how they are rounded into blocks of the result.

use crate::error::Result;
use crate::ops::disk::StoredResult;
use crate::ops::product::segments::{Region, ResultEntries, SegmentIter, tile_segments};
use crate::plan::{BLOCK, BandPair};
use crate::tile::TileId;
use std::ops::Range;

/// The tiles of a pair of bands that no rank has.
fn missing(tiles: &StoredResult, left: &Range<usize>, right: &Range<usize>, is_triangle: bool) -> Vec<TileId> {
    let tile_panels = tiles.cut().block_rows / BLOCK;
    // Panels of a band are whole tiles.
    let of = |panels: &Range<usize>| panels.start / tile_panels..panels.end.div_ceil(tile_panels);
    let (rows, cols) = (of(left), of(right));
    let all = cols.flat_map(|col| rows.clone().map(move |row| TileId { row, col }));
    all.filter(|tile| (!is_triangle || tile.row >= tile.col) && !tiles.has(*tile)).collect()
}

/// Whether a pair of bands has a tile that no rank has.
pub(super) fn is_wanted(tiles: &StoredResult, pair: &BandPair) -> bool {
    !missing(tiles, &pair.left, &pair.right, pair.grid.triangle).is_empty()
}

/// The tiles that pairs of bands are rounded into.
pub(super) struct PairTiles<'t>(pub &'t mut StoredResult);

impl ResultEntries for PairTiles<'_> {
    fn fill(&mut self, region: Region, fill: &mut dyn FnMut(SegmentIter<'_>) -> Result<()>) -> Result<()> {
        let left = region.first_left..region.first_left + region.grid.rows;
        let right = region.first_right..region.first_right + region.grid.cols;
        let tile_blocks = self.0.cut().block_rows / BLOCK;
        for tile in missing(self.0, &left, &right, region.grid.triangle) {
            let rows = self.0.cut().block(tile).rows.len();
            self.0.publish(tile, |heads, limbs| {
                if region.grid.triangle {
                    // Entries outside the triangle are 0 in its tiles.
                    heads.fill(0);
                    limbs.fill(0);
                }
                fill(Box::new(tile_segments(region, tile, tile_blocks, rows, heads, limbs)))
            })?;
        }
        Ok(())
    }
}
