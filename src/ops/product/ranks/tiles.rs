//! The tiles of a rank as segments that workers write on their own.

use crate::error::Result;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::product::segments::{Region, ResultEntries, SegmentIter, tile_segments};
use crate::plan::BLOCK;

impl ResultEntries for DistMatrix {
    fn fill(&mut self, region: Region, fill: &mut dyn FnMut(SegmentIter<'_>) -> Result<()>) -> Result<()> {
        let tile_blocks = self.map().tile_size / BLOCK;
        fill(Box::new(self.tiles_mut().iter_mut().flat_map(move |(id, tile)| {
            let rows = tile.rows();
            let (heads, limbs) = tile.parts_mut();
            tile_segments(region, *id, tile_blocks, rows, heads, limbs)
        })))
    }
}
