//! A try whose tiles of the triangle the ranks of a node make together, in a window that all of them read.
//!
//! Tile row by tile row: all ranks agree on what became of the row before; the entries come to a window of each node,
//! where each rank makes the residues of some tiles from them; all read these. The tile on the diagonal each rank makes
//! for itself, since a solve with it changes its words. Every rank takes part in every row, whether it has right sides
//! or not. Knows the same tiles as a try by oneself, so the bits are the same.

use super::rows::{RankOfNode, RowsFrom, SharedRows};
use super::run::{FixedRun, RowTiles, Strip};
use crate::comm::window::{Level, Partition, Run};
use crate::comm::{Reduction, agree};
use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::ops::solve::tiles::TilePlan;
use crate::plan::even_share;
use std::ops::Range;

/// The tiles of tile row `row` that a rank makes, of those from `first` on. Ranks take turns at the odd ones.
fn own_tiles((first, row): (usize, usize), of: RankOfNode) -> Range<usize> {
    let share = even_share(row - first, of.ranks, (of.rank + row) % of.ranks);
    first + share.start..first + share.end
}

/// The columns of the triangle before the diagonal, and on it, that come from other nodes to a rank: those of the tiles
/// that it makes, and of the one on the diagonal to one of the ranks.
fn own_columns(plan: &TilePlan, (first, row): (usize, usize), of: RankOfNode) -> Range<usize> {
    let tiles = own_tiles((first, row), of);
    let is_last = (of.rank + row) % of.ranks == of.ranks - 1;
    let end = if is_last { plan.rows(row).end } else { plan.rows(tiles.end).start };
    plan.rows(tiles.start).start..end
}

/// Which words of the window each rank of a node writes in tile row `row`: tile after tile.
fn partition(plan: &TilePlan, (first, row): (usize, usize), ranks: usize) -> Partition {
    let mut runs = Vec::with_capacity(row - first);
    for rank in 0..ranks {
        runs.extend(own_tiles((first, row), RankOfNode { rank, ranks }).map(|col| (col, rank)));
    }
    runs.sort_unstable();
    let mut start = 0;
    let runs = runs.into_iter().map(|(col, rank)| {
        let words = start..start + plan.engine.operand_words(plan.triangle_shape(row, col));
        start = words.end;
        Run { words, rank }
    });
    let runs = runs.collect();
    Partition::new(ranks, Level::ONCE, Level::ONCE, runs)
}

impl FixedRun<'_> {
    /// All unknowns that fit, tile row by tile row. Collective.
    ///
    /// # Errors
    /// On every rank the same: those of the steps, [`crate::Error::Transport`].
    pub(super) fn solve_together(
        &self,
        (ctx, meter): (&Context, &Meter<'_>),
        rows: &mut dyn SharedRows,
        (strips, own_words): (&mut [Strip<'_>], &mut [u64]),
        scratch: &mut [&mut [u64]],
    ) -> Result<()> {
        let mut done = Ok(());
        for row in self.first..self.plan.tiles() {
            let world = rows.ranks().world;
            agree(world, std::mem::replace(&mut done, Ok(())))?;
            let mut live = [u64::from(strips.iter().any(|strip| !strip.is_rejected()))];
            world.all_reduce(Reduction::Max, &mut live)?;
            if live[0] == 0 {
                break;
            }
            let size = self.plan.triangle_shape(row, row);
            let diagonal = &mut own_words[..self.engine.operand_words(size)];
            let made = self.make_tiles(ctx, (row, &mut *rows), diagonal, scratch)?;
            let (window, fence) = rows.window();
            let mut words = window.read(&fence, Ok(()))?;
            done = made.and_then(|()| {
                let others = (self.first..row).map(|col| {
                    let (tile, rest) = words.split_at(self.engine.operand_words(self.plan.triangle_shape(row, col)));
                    words = rest;
                    tile
                });
                let others = others.collect::<Vec<_>>();
                let data = self.engine.triangle(size, diagonal, &self.pivots[self.plan.rows(row)]);
                let row_tiles = RowTiles { others: &others, diagonal, data: &*data, depths: None };
                self.step_strips((ctx, meter), row, &row_tiles, strips, scratch)
            });
        }
        agree(rows.ranks().world, done)
    }

    /// Makes this rank's tiles of tile row `row` in the node's window, and the one on the diagonal in `diagonal`.
    /// Collective; what fails here alone comes inside.
    fn make_tiles(
        &self,
        ctx: &Context,
        (row, rows): (usize, &mut dyn SharedRows),
        diagonal: &mut [u64],
        scratch: &mut [&mut [u64]],
    ) -> Result<Result<()>> {
        let (plan, first) = (self.plan, self.first);
        let node = rows.ranks().node;
        let of = RankOfNode { rank: node.rank(), ranks: node.size() };
        let partition = partition(plan, (first, row), of.ranks);
        let from = RowsFrom { rows: &plan.rows(row), first_col: plan.rows(first).start };
        rows.share(from, &|of| own_columns(plan, (first, row), of))?;
        let (piece, shares) = rows.making(&partition)?;
        let mut tiles = own_tiles((first, row), of).zip(shares).chain([(row, diagonal)]);
        let load = |scratch: &mut &mut [u64], (col, words): (usize, &mut [u64])| {
            self.load_tile((row, col), &piece, words, scratch)
        };
        Ok(ctx.install(|| drive::parallel_for(scratch, |_| tiles.next(), load)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_before_the_diagonal_has_one_maker() {
        for (first, row, ranks) in [(0, 0, 3), (0, 1, 4), (2, 9, 2), (0, 11, 4), (5, 5, 1)] {
            let mut tiles =
                (0..ranks).flat_map(|rank| own_tiles((first, row), RankOfNode { rank, ranks })).collect::<Vec<_>>();
            let most = (0..ranks).map(|rank| own_tiles((first, row), RankOfNode { rank, ranks }).len()).max();
            assert_eq!(most, Some((row - first).div_ceil(ranks)));
            tiles.sort_unstable();
            assert_eq!(tiles, (first..row).collect::<Vec<_>>(), "{first} {row} {ranks}");
        }
    }
}
