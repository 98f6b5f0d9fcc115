//! The owners of the blocks of a product plane, and the stream of words of them that is sent to one rank.

use crate::matrix::Uplo;
use crate::ops::product::segments::Region;
use crate::plan::BLOCK;
use crate::tile::{TileId, TileMap};
use std::ops::Range;

/// Neighbouring blocks of a plane, by linear index, whose entries live on one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedBlocks {
    /// Linear block indices.
    pub blocks: Range<usize>,
    /// The rank.
    pub owner: usize,
}

/// The owners of all blocks of `region`, in the order of the blocks.
pub(crate) fn block_owners(map: &TileMap, region: &Region) -> Vec<OwnedBlocks> {
    let tile_blocks = map.tile_size / BLOCK;
    let grid = &region.grid;
    let mut owners: Vec<OwnedBlocks> = Vec::new();
    let mut next = 0;
    for col in 0..grid.cols {
        let mut row = grid.first_row(col);
        while row < grid.rows {
            // Blocks down to the end of the tile that the first of them lies in.
            let (left, right) = (region.first_left + row, region.first_right + col);
            let last = ((left / tile_blocks + 1) * tile_blocks - region.first_left).min(grid.rows);
            let (left, right) = (left / tile_blocks, right / tile_blocks);
            let tile = match region.uplo {
                Uplo::Lower => TileId { row: left, col: right },
                Uplo::Upper => TileId { row: right, col: left },
            };
            let (owner, blocks) = (map.owner(tile), next..next + last - row);
            next = blocks.end;
            row = last;
            match owners.last_mut() {
                Some(before) if before.owner == owner => before.blocks.end = blocks.end,
                _ => owners.push(OwnedBlocks { blocks, owner }),
            }
        }
    }
    owners
}

/// The words of all planes that belong to one rank, as one stream: plane by plane, in each its blocks in order.
#[derive(Clone, Debug)]
pub(crate) struct ShareStream {
    /// Words of a plane.
    runs: Vec<Range<usize>>,
    /// Where each run begins in the stream of one plane, and at last the words of that stream.
    starts: Vec<usize>,
    planes: usize,
}

/// A piece of a stream that is contiguous in a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamPiece {
    /// The plane.
    pub plane: usize,
    /// The number of the run among the rank's runs.
    pub run: usize,
    /// Words, counted from the start of the run.
    pub within: Range<usize>,
    /// The same words, counted from the start of the plane.
    pub words: Range<usize>,
}

impl ShareStream {
    /// The share of `owner` in `planes` planes with blocks of `block_words` words.
    pub fn new(owners: &[OwnedBlocks], owner: usize, planes: usize, block_words: usize) -> ShareStream {
        let of_owner = owners.iter().filter(|run| run.owner == owner);
        let runs = of_owner.map(|run| run.blocks.start * block_words..run.blocks.end * block_words).collect::<Vec<_>>();
        let mut starts = vec![0];
        for run in &runs {
            starts.push(starts[starts.len() - 1] + run.len());
        }
        ShareStream { runs, starts, planes }
    }

    /// Words of the whole stream.
    pub fn len(&self) -> usize {
        self.starts[self.runs.len()] * self.planes
    }

    /// Visits the pieces of the words `range` of the stream, in order.
    pub fn for_each(&self, range: Range<usize>, mut visit: impl FnMut(StreamPiece)) {
        let plane_words = self.starts[self.runs.len()];
        let mut at = range.start;
        while at < range.end {
            let (plane, place) = (at / plane_words, at % plane_words);
            let run = self.starts.partition_point(|&start| start <= place) - 1;
            let start = place - self.starts[run];
            let count = (self.runs[run].len() - start).min(range.end - at);
            let first = self.runs[run].start + start;
            visit(StreamPiece { plane, run, within: start..start + count, words: first..first + count });
            at += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BlockGrid, band_pairs};
    use crate::tile::RankGrid;

    #[test]
    fn owners_of_all_bands_agree_with_the_tiles() {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            for (size, tile_size, ranks, band) in [(67, 16, 6, 3), (200, 8, 4, 25), (9, 256, 3, 1), (130, 24, 13, 7)] {
                let map = TileMap {
                    rows: size,
                    cols: size,
                    tile_size,
                    grid: RankGrid::for_ranks(ranks),
                    triangle: Some(uplo),
                };
                let panels = size.div_ceil(BLOCK);
                for pair in band_pairs(BlockGrid { rows: panels, cols: panels, triangle: true }, band) {
                    let (first_left, first_right) = (pair.left.start, pair.right.start);
                    let region = Region { grid: pair.grid, first_left, first_right, uplo };
                    let owners = block_owners(&map, &region);
                    let mut index = 0;
                    for col in 0..pair.grid.cols {
                        for row in pair.grid.first_row(col)..pair.grid.rows {
                            let found = owners.iter().find(|run| run.blocks.contains(&index)).unwrap();
                            let (row, col) = (first_left + row, first_right + col);
                            let (row, col) = if uplo == Uplo::Lower { (row, col) } else { (col, row) };
                            let tile = TileId { row: row * BLOCK / tile_size, col: col * BLOCK / tile_size };
                            assert_eq!(found.owner, map.owner(tile));
                            index += 1;
                        }
                    }
                    assert_eq!(index, pair.grid.len());
                    let words: usize = (0..ranks).map(|rank| ShareStream::new(&owners, rank, 3, 64).len()).sum();
                    assert_eq!(words, 3 * pair.grid.words());
                }
            }
        }
    }

    #[test]
    fn pieces_of_a_stream_are_the_stream() {
        let map =
            TileMap { rows: 90, cols: 90, tile_size: 16, grid: RankGrid::for_ranks(4), triangle: Some(Uplo::Lower) };
        let region = Region { grid: BlockGrid::triangle(90), first_left: 0, first_right: 0, uplo: Uplo::Lower };
        let owners = block_owners(&map, &region);
        let stream = ShareStream::new(&owners, 1, 5, 64);
        let mut whole = Vec::new();
        stream.for_each(0..stream.len(), |piece| {
            whole.extend(piece.words.clone().map(|word| (piece.plane, piece.run, word)));
            assert_eq!(piece.within.len(), piece.words.len());
        });
        assert_eq!(whole.len(), stream.len());
        assert!(whole.is_sorted());
        for size in [1, 63, 64, 1000, stream.len()] {
            let mut joined = Vec::new();
            for range in crate::plan::pieces(stream.len(), size) {
                stream.for_each(range, |piece| {
                    joined.extend(piece.words.clone().map(|word| (piece.plane, piece.run, word)));
                });
            }
            assert_eq!(joined, whole);
        }
    }
}
