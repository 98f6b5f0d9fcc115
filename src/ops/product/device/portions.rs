//! Rectangles of a band of the result: the ones made in one process, and the ones in each rank's tiles.
//!
//! Pure numbers: where entries lie in the result, among the residues of a band, and in a copy of some of them.

use crate::matrix::Uplo;
use crate::plan::{BLOCK, Strip};
use crate::tile::{TileId, TileMap};
use std::ops::Range;

/// A rectangle of a matrix, dense and column-major in a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CopyPiece {
    /// Rows.
    pub rows: Range<usize>,
    /// Columns.
    pub cols: Range<usize>,
}

impl CopyPiece {
    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.rows.len() * self.cols.len()
    }
}

/// A rectangle of the result whose entries lie in one strip of a band, and one after the other in a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Portion {
    /// Its position in the result.
    pub piece: CopyPiece,
    /// Index of its first entry in the band.
    pub first: usize,
    /// Entries of the band from one of its columns to the next.
    pub leading: usize,
    /// Its first entry in the copy.
    pub at: usize,
}

impl Portion {
    fn of(strip: &Strip, rows: Range<usize>, cols: Range<usize>) -> Portion {
        let leading = strip.rows.len();
        let first = strip.offset + (cols.start - strip.cols.start) * leading + rows.start - strip.rows.start;
        Portion { piece: CopyPiece { rows, cols }, first, leading, at: 0 }
    }
}

/// The pieces of a strip: whole columns, or parts of one where it is longer than a piece.
pub(super) fn of_strip(strip: &Strip, largest: usize) -> Vec<Portion> {
    let height = strip.rows.len();
    let (rows, cols) = (largest.min(height), (largest / height).max(1));
    let mut portions = Vec::new();
    for col in strip.cols.clone().step_by(cols) {
        let cols = col..(col + cols).min(strip.cols.end);
        for row in strip.rows.clone().step_by(rows) {
            portions.push(Portion::of(strip, row..(row + rows).min(strip.rows.end), cols.clone()));
        }
    }
    portions
}

/// Entries of a copy that holds these portions, one after the other.
pub(super) fn entries_of(copy: &[Portion]) -> usize {
    copy.last().map_or(0, |last| last.at + last.piece.entries())
}

/// A rectangle of one strip.
type Rectangle<'s> = (&'s Strip, Range<usize>, Range<usize>);

/// The entries of one rank's tiles in a band, cut into copies. Yields the portions of one copy after the other, since a
/// list for all copies would grow with the result.
pub(super) struct Copies<'s> {
    /// With no more rows than a copy has entries.
    rectangles: Box<dyn Iterator<Item = Rectangle<'s>> + 's>,
    /// The part of a rectangle that the last copy did not take.
    rest: Option<Rectangle<'s>>,
    largest: usize,
}

impl Iterator for Copies<'_> {
    type Item = Vec<Portion>;

    /// The next copy, by whole columns of rectangles.
    fn next(&mut self) -> Option<Vec<Portion>> {
        let (mut copy, mut filled) = (Vec::new(), 0);
        while let Some((strip, rows, cols)) = self.rest.take().or_else(|| self.rectangles.next()) {
            let end = cols.end.min(cols.start + (self.largest - filled) / rows.len());
            if end > cols.start {
                let portion = Portion { at: filled, ..Portion::of(strip, rows.clone(), cols.start..end) };
                filled += portion.piece.entries();
                copy.push(portion);
            }
            if end < cols.end {
                self.rest = Some((strip, rows, end..cols.end));
                break;
            }
        }
        (!copy.is_empty()).then_some(copy)
    }
}

/// Copies of at most `largest` entries that lie both in a band and in the tiles of `rank`.
pub(super) fn copies_of<'s>(map: &'s TileMap, rank: usize, strips: &'s [Strip], largest: usize) -> Copies<'s> {
    let split = move |(strip, rows, cols): Rectangle<'s>| {
        let part = move |start: usize| (strip, start..(start + largest).min(rows.end), cols.clone());
        rows.clone().step_by(largest).map(part)
    };
    Copies { rectangles: Box::new(rectangles(map, rank, strips).flat_map(split)), rest: None, largest }
}

/// The rectangles of a band that lie in the tiles of `rank`: the wanted entries, and all of a block on the diagonal.
fn rectangles<'s>(map: &'s TileMap, rank: usize, strips: &'s [Strip]) -> impl Iterator<Item = Rectangle<'s>> {
    let size = map.tile_size;
    let tiles = move |range: Range<usize>| match range.is_empty() {
        true => 0..0,
        false => range.start / size..range.end.div_ceil(size),
    };
    let is_own = move |id: &TileId| {
        let wanted = match map.triangle {
            None => true,
            Some(Uplo::Lower) => id.row >= id.col,
            Some(Uplo::Upper) => id.row <= id.col,
        };
        wanted && map.owner(*id) == rank
    };
    strips.iter().flat_map(move |strip| {
        // Padding of the operands belongs to no tile.
        let (rows, cols) = (common(&strip.rows, &(0..map.rows)), common(&strip.cols, &(0..map.cols)));
        let (tile_rows, tile_cols) = (tiles(rows.clone()), tiles(cols.clone()));
        let ids = tile_cols.flat_map(move |col| tile_rows.clone().map(move |row| TileId { row, col }));
        ids.filter(is_own).flat_map(move |TileId { row, col }| {
            let (rows, cols) = (common(&rows, &map.row_range(row)), common(&cols, &map.col_range(col)));
            let triangle = map.triangle.filter(|_| row == col);
            let width = if triangle.is_some() { BLOCK } else { cols.len().max(1) };
            cols.clone().step_by(width).map(move |start| {
                let block = start..(start + width).min(cols.end);
                let rows = match triangle {
                    None => rows.clone(),
                    Some(Uplo::Lower) => common(&rows, &(block.start..rows.end)),
                    Some(Uplo::Upper) => common(&rows, &(rows.start..block.end)),
                };
                (strip, rows, block)
            })
        })
    })
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::RankGrid;

    /// Strips of a band as `DeviceInput` makes them.
    fn strips(rows: usize, band: Range<usize>, width: usize, triangle: Option<Uplo>) -> Vec<Strip> {
        let (mut strips, mut offset) = (Vec::new(), 0);
        for start in band.clone().step_by(width) {
            let cols = start..(start + width).min(band.end);
            let rows = match triangle {
                None => 0..rows,
                Some(Uplo::Lower) => cols.start..rows,
                Some(Uplo::Upper) => 0..cols.end,
            };
            let strip = Strip { rows, cols, offset };
            offset += strip.entries();
            strips.push(strip);
        }
        strips
    }

    #[test]
    fn shares_of_ranks_hold_every_wanted_entry_once() {
        for triangle in [None, Some(Uplo::Lower), Some(Uplo::Upper)] {
            for (rows, cols, tile_size, ranks) in [(67, 67, 16, 6), (130, 130, 24, 4), (9, 9, 256, 3), (40, 40, 8, 1)] {
                let cols = if triangle.is_none() { cols / 2 } else { cols };
                let grid = RankGrid::for_ranks(ranks);
                let map = TileMap { rows, cols, tile_size, grid, triangle };
                let padded = |size: usize| size.next_multiple_of(16);
                for (largest, width) in [(4, 32), (100, 16), (1000, 512), (1 << 20, 48)] {
                    let mut seen = vec![0; rows * cols];
                    for band in [0..padded(cols) / 32 * 16, padded(cols) / 32 * 16..padded(cols)] {
                        let strips = strips(padded(rows), band, width, triangle);
                        for rank in 0..ranks {
                            for copy in copies_of(&map, rank, &strips, largest) {
                                let mut at = 0;
                                for portion in &copy {
                                    assert_eq!(portion.at, at);
                                    at += portion.piece.entries();
                                    check(portion, &strips, &map, rank, &mut seen);
                                }
                                assert!(at > 0 && at <= largest && entries_of(&copy) == at);
                            }
                        }
                    }
                    let mut beside = 0;
                    for (place, count) in seen.into_iter().enumerate() {
                        let (row, col) = (place % rows, place / rows);
                        let wanted = match triangle {
                            None => true,
                            Some(Uplo::Lower) => row >= col,
                            Some(Uplo::Upper) => row <= col,
                        };
                        assert!(if wanted { count == 1 } else { count <= 1 }, "({row}, {col}) {count} times");
                        beside += if wanted { 0 } else { count };
                    }
                    assert!(beside <= 28 * cols.div_ceil(8), "{beside} entries beside the triangle");
                }
            }
        }
    }

    /// The entries of a portion lie in its strip and in tiles of `rank`.
    fn check(portion: &Portion, strips: &[Strip], map: &TileMap, rank: usize, seen: &mut [usize]) {
        let strip = strips.iter().rfind(|strip| strip.offset <= portion.first).unwrap();
        let CopyPiece { rows, cols } = &portion.piece;
        for (c, col) in cols.clone().enumerate() {
            for (r, row) in rows.clone().enumerate() {
                let place = portion.first + c * portion.leading + r - strip.offset;
                let height = strip.rows.len();
                assert_eq!((strip.rows.start + place % height, strip.cols.start + place / height), (row, col));
                assert_eq!(map.owner(TileId { row: row / map.tile_size, col: col / map.tile_size }), rank);
                seen[col * map.rows + row] += 1;
            }
        }
    }
}
