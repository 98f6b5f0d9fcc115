//! A try whose tiles of the triangle the ranks of a node make together, in a window that all of them read.
//!
//! Tile row by tile row: all ranks agree on what became of the row before; each is brought the entries of some tiles
//! and makes their residues; all read. The tile on the diagonal each rank makes for itself, since a solve with it
//! changes its words. Every rank takes part in every row, whether it has right sides or not.
//! Knows the same tiles as a try by oneself, so the bits are the same.

use super::rows::{Making, RankOfNode, SharedRows};
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
            let made = self.make_tiles(ctx, (row, &mut *rows), scratch)?;
            let (size, own) = (self.plan.triangle_shape(row, row), self.plan.rows(row));
            let diagonal = &mut own_words[..self.engine.operand_words(size)];
            let piece = rows.diagonal(&own)?;
            let loaded = self.load_tile((row, row), &piece, diagonal, scratch[0]);
            let (window, fence) = rows.window();
            let mut words = window.read(&fence, Ok(()))?;
            done = made.and(loaded).and_then(|()| {
                let others = (self.first..row).map(|col| {
                    let (tile, rest) = words.split_at(self.engine.operand_words(self.plan.triangle_shape(row, col)));
                    words = rest;
                    tile
                });
                let others = others.collect::<Vec<_>>();
                let data = self.engine.triangle(size, diagonal, &self.pivots[own.clone()]);
                let row_tiles = RowTiles { others: &others, diagonal, data: &*data, depths: None };
                self.step_strips((ctx, meter), row, &row_tiles, strips, scratch)
            });
        }
        agree(rows.ranks().world, done)
    }

    /// Makes this rank's tiles of tile row `row` in the node's window. Collective; what fails here alone comes inside.
    fn make_tiles(
        &self,
        ctx: &Context,
        (row, rows): (usize, &mut dyn SharedRows),
        scratch: &mut [&mut [u64]],
    ) -> Result<Result<()>> {
        let (plan, first) = (self.plan, self.first);
        let node = rows.ranks().node;
        let of = RankOfNode { rank: node.rank(), ranks: node.size() };
        let partition = partition(plan, (first, row), of.ranks);
        let own = own_tiles((first, row), of);
        let cols = |of: RankOfNode| {
            let tiles = own_tiles((first, row), of);
            plan.rows(tiles.start).start..plan.rows(tiles.end).start
        };
        rows.share(&plan.rows(row), &cols)?;
        let Making { piece, window, fence } = rows.making((plan.rows(row).start, cols(of).start));
        let shares = window.write(&fence, Ok(()), &partition)?;
        let mut tiles = own.zip(shares);
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
