//! The tiles of a rank as segments that workers write on their own.

use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::product::segments::{ColumnPiece, Region, ResultEntries, Segment};
use crate::plan::BLOCK;

impl ResultEntries for DistMatrix {
    fn segments<'w>(&'w mut self, region: Region) -> impl Iterator<Item = Segment<'w>> + Send {
        let tile_blocks = self.map().tile_size / BLOCK;
        self.tiles_mut().iter_mut().flat_map(move |(id, tile)| {
            let (rows, width) = (tile.rows(), tile.limbs_per_element());
            let (first_row, first_col) = (id.row * tile_blocks, id.col * tile_blocks);
            let (heads, limbs) = tile.parts_mut();
            let columns = heads.chunks_mut(BLOCK * rows).zip(limbs.chunks_mut(BLOCK * rows * width));
            columns.enumerate().filter_map(move |(index, (heads, limbs))| {
                let (region_first, region_cols) = region.columns();
                let col = first_col + index;
                let within = col.checked_sub(region_first).filter(|&within| within < region_cols)?;
                let wanted = region.rows(within);
                let blocks = wanted.start.max(first_row)..wanted.end.min(first_row + rows.div_ceil(BLOCK));
                if blocks.is_empty() {
                    return None;
                }
                let elements = (blocks.start - first_row) * BLOCK..((blocks.end - first_row) * BLOCK).min(rows);
                let mut columns: [ColumnPiece<'w>; BLOCK] = Default::default();
                let pieces = heads.chunks_mut(rows).zip(limbs.chunks_mut(rows * width));
                for (column, (heads, limbs)) in columns.iter_mut().zip(pieces) {
                    column.heads = &mut heads[elements.clone()];
                    column.limbs = &mut limbs[elements.start * width..elements.end * width];
                }
                Some(Segment { col, rows: blocks, columns })
            })
        })
    }
}
