//! The order in which the parts of a product are computed.

use crate::plan::BlockGrid;
use std::ops::Range;

/// A pair of bands of panels, and the shape of its product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandPair {
    /// Panels of the left operand.
    pub left: Range<usize>,
    /// Panels of the right operand.
    pub right: Range<usize>,
    /// Blocks of their product.
    pub grid: BlockGrid,
}

/// All pairs of bands of `band_panels` panels of a product of this shape, in alternating direction, so that a band
/// stays in its slot from one pair to the next. Of a triangle only the pairs on and below the diagonal.
pub fn band_pairs(panels: BlockGrid, band_panels: usize) -> impl Iterator<Item = BandPair> {
    let BlockGrid { rows: left_panels, cols: right_panels, triangle } = panels;
    let band = move |index: usize, panels: usize| index * band_panels..((index + 1) * band_panels).min(panels);
    (0..left_panels.div_ceil(band_panels)).flat_map(move |i| {
        let count = if triangle { i + 1 } else { right_panels.div_ceil(band_panels) };
        (0..count).map(move |step| {
            let j = if i % 2 == 0 { step } else { count - 1 - step };
            let (left, right) = (band(i, left_panels), band(j, right_panels));
            let grid = BlockGrid { rows: left.len(), cols: right.len(), triangle: triangle && i == j };
            BandPair { left, right, grid }
        })
    })
}

/// `0..total` in pieces of `size`; the last may have fewer.
pub fn pieces(total: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total.div_ceil(size)).map(move |index| index * size..((index + 1) * size).min(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_cover_every_block_once() {
        for (left, right, triangle) in [(1, 1, true), (7, 7, true), (12, 5, false), (5, 12, false)] {
            for band in 1..=12 {
                let mut seen = vec![0; left * right];
                for pair in band_pairs(BlockGrid { rows: left, cols: right, triangle }, band) {
                    for col in 0..pair.grid.cols {
                        for row in pair.grid.first_row(col)..pair.grid.rows {
                            seen[(pair.left.start + row) * right + pair.right.start + col] += 1;
                        }
                    }
                }
                for (place, count) in seen.into_iter().enumerate() {
                    let wanted = !triangle || place / right >= place % right;
                    assert_eq!(count, usize::from(wanted), "{left} {right} {triangle} {band}: {place}");
                }
            }
        }
    }
}
