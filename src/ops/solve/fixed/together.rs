//! A try whose tiles of the triangle the ranks of a node make together, in a window that all of them read.
//!
//! Tile row by tile row: all ranks agree on the outcome of the previous row; the entries arrive in a window of each
//! node, where each rank makes the residues of some tiles from them and publishes them to the others. A rank that has
//! made its tiles continues with its right-hand sides, using the tiles that are published. A rank with fewer right-hand
//! sides makes more tiles, so that no rank waits long for the last tile or at the end of the row. Every rank takes part
//! in every row, with or without right-hand sides. The tiles are those of a try on one rank, so the bits are the same.
//!
//! The tiles that each rank makes follow from counts only, so that all ranks agree.

use super::run::{FixedRun, RightSideStrip, RowTiles};
use super::{Making, RowsFrom, SharedRows};
use crate::comm::idle::{Idle, Patience};
use crate::comm::window::Shown;
use crate::comm::{Reduction, agree};
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::tiles::{DiagonalData, DiagonalTile};
use crate::site::Team;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::OnceLock;

/// A tile that this rank makes. The others wait for it, so it is published even after an error.
struct Unfinished<'s, 'w> {
    shown: &'s Shown<'w>,
    /// Its number among the tiles of this rank.
    at: usize,
    words: Option<&'w mut [u64]>,
}

impl Unfinished<'_, '_> {
    fn finish(mut self) {
        self.words.take().map(|words| self.shown.show(self.at, words));
    }
}

impl Drop for Unfinished<'_, '_> {
    /// If a tile could not be made, all ranks continue with zeros in its place, until they agree on the error before
    /// the next row.
    fn drop(&mut self) {
        if let Some(words) = self.words.take() {
            words.fill(0);
            self.shown.show(self.at, words);
        }
    }
}

/// A tile row of the triangle that the ranks of this node make.
struct SharedRow<'a, 'w> {
    run: &'a FixedRun<'a>,
    row: usize,
    shown: &'a Shown<'w>,
    /// By rank of the node: which of the tiles from the first on.
    makers: &'a [Range<usize>],
    data: OnceLock<Box<dyn DiagonalData>>,
}

impl SharedRow<'_, '_> {
    /// Tile `at` of those from the first on, where it is finished.
    fn tile(&self, at: usize) -> Option<&[u64]> {
        let rank = self.makers.iter().position(|tiles| tiles.contains(&at))?;
        self.shown.get(rank, at - self.makers[rank].start)
    }
}

impl RowTiles for SharedRow<'_, '_> {
    fn before(&self, col: usize) -> Option<&[u64]> {
        self.tile(col - self.run.first)
    }

    fn diagonal(&self) -> DiagonalTile<'_> {
        let mut idle = Idle::new(Patience::Sleep);
        let words = loop {
            match self.tile(self.row - self.run.first) {
                Some(words) => break words,
                None => idle.pass_in_pool(),
            }
        };
        DiagonalTile { words, data: &**self.data.get_or_init(|| self.run.diagonal_data(self.row, words)) }
    }
}

impl FixedRun<'_> {
    /// All unknowns that fit, tile row by tile row. Collective.
    ///
    /// # Errors
    /// The same on every rank: those of the steps, [`crate::Error::Transport`].
    pub(super) fn solve_together(
        &self,
        meter: &Meter<'_>,
        rows: &mut dyn SharedRows,
        strips: &mut [RightSideStrip<'_>],
        scratch: &mut [&mut [u64]],
    ) -> Result<()> {
        let loads = self.loads(rows.team())?;
        let mut done = Ok(());
        for row in self.first..self.plan.tiles() {
            let world = rows.team().world();
            agree(world, std::mem::replace(&mut done, Ok(())))?;
            let mut live = [u64::from(strips.iter().any(|strip| !strip.is_rejected()))];
            world.all_reduce(Reduction::Max, &mut live)?;
            if live[0] == 0 {
                break;
            }
            done = self.row_together(meter, row, rows, &loads, strips, scratch)?;
        }
        agree(rows.team().world(), done)
    }

    /// The work of each rank in every row, by node and rank. Collective.
    fn loads(&self, team: &Team) -> Result<Vec<Vec<RankLoad>>> {
        let (world, layout) = (team.world(), team.layout());
        let mut all = vec![0; 2 * world.size()];
        world.all_gather(&[self.busiest_panels() as u64, self.plan.threads as u64], &mut all)?;
        let load = |&rank: &usize| RankLoad { panels: all[2 * rank] as usize, workers: all[2 * rank + 1] as usize };
        Ok(layout.nodes.iter().map(|ranks| ranks.iter().map(load).collect()).collect())
    }

    /// Tile row `row`: its tiles, and the unknowns of all strips. Collective; the inner result is an error of this rank
    /// only.
    fn row_together(
        &self,
        meter: &Meter<'_>,
        row: usize,
        rows: &mut dyn SharedRows,
        loads: &[Vec<RankLoad>],
        strips: &mut [RightSideStrip<'_>],
        scratch: &mut [&mut [u64]],
    ) -> Result<Result<()>> {
        let ctx = meter.ctx();
        let (plan, first) = (self.plan, self.first);
        let team = rows.team();
        let (world, node, layout) = (team.world(), team.node(), team.layout());
        let (local, own_node, several) = (node.rank(), layout.node_of[world.rank()], layout.nodes.len() > 1);
        let costs = Costs::new(plan.size.fixed_bits);
        let makers = |node: usize| share_out(&loads[node], costs, row - first, row);
        let own = makers(own_node);
        // Only where there are other nodes do ranks need to know which parts of the factor the others want.
        let of_nodes = if several { (0..loads.len()).map(makers).collect() } else { Vec::new() };
        let places = layout.node_of.iter().copied().zip(layout.local_of.iter().copied()).collect::<Vec<_>>();
        let columns = |rank: usize| {
            let (node, local) = places[rank];
            let tiles = if several { &of_nodes[node][local] } else { &own[local] };
            plan.cols(first + tiles.start..first + tiles.end)
        };
        rows.share(RowsFrom { rows: &plan.rows(row), first_col: plan.rows(first).start }, &columns)?;
        let pieces = plan.row_pieces(row, first, own.iter().cloned());
        let Making { piece, own: words, shown } = rows.making(&pieces)?;
        let unfinished = |(at, words)| Unfinished { shown: &shown, at, words: Some(words) };
        let mut tiles = words.into_iter().enumerate().map(unfinished).collect::<Vec<_>>().into_iter();
        let load = |scratch: &mut &mut [u64], mut tile: Unfinished<'_, '_>| {
            let col = first + own[local].start + tile.at;
            if let Some(words) = &mut tile.words {
                self.load_tile(row, col, &piece, words, scratch)?;
            }
            tile.finish();
            Ok(())
        };
        let made = ctx.install(|| drive::parallel_for(scratch, |_| tiles.next(), load));
        drop(tiles);
        Ok(made.and_then(|()| {
            let tiles = SharedRow { run: self, row, shown: &shown, makers: &own, data: OnceLock::new() };
            self.step_strips(meter, row, &tiles, strips, scratch)
        }))
    }
}

/// The work of a rank in every row in addition to the tiles that it makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RankLoad {
    /// Panels of right-hand sides of its busiest worker.
    pub panels: usize,
    /// Workers, which share the rank's work.
    pub workers: usize,
}

/// Costs of the parts of the work on a row, in hundredths of the update of one panel of right-hand sides by one tile.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Making a tile before the diagonal.
    make: u64,
    /// Making the one on the diagonal, of which half counts.
    make_diagonal: u64,
    /// Loading a panel of right-hand sides, and solving for it with the tile on the diagonal.
    solve: u64,
}

/// The update of one panel by one tile.
const UPDATE: u64 = 100;

/// Additional cost of the first panel relative to the others, in panels.
const SHARED_PANELS: u64 = 2;

impl Costs {
    /// Approximate costs for entries with `fixed_bits` bits after the point. An update takes as many multiplications
    /// for each entry of a tile as there are planes; making its residues takes one for each plane and digit, and some
    /// for each plane. Measured on a Zen 5 with `ifma52`: 5.8 updates of a panel at 810 bits and 6.6 at 1070.
    pub fn new(fixed_bits: u32) -> Costs {
        let make = 3 * UPDATE + u64::from(fixed_bits) / 3;
        Costs { make, make_diagonal: make / 2, solve: 5 * UPDATE / 2 }
    }

    /// Cost of the right-hand sides of a row, without the tiles that are made. Even one panel brings the tiles into the
    /// caches.
    fn solving(&self, panels: usize, tiles: usize) -> u64 {
        let panels = if panels == 0 { 0 } else { panels as u64 + SHARED_PANELS };
        panels * (tiles as u64 * UPDATE + self.solve)
    }
}

/// The tiles that each rank of a node makes, of `tiles` tiles of which the last is on the diagonal: a run of neighbours
/// each. Ranks with equal loads take turns at the remainder.
fn share_out(loads: &[RankLoad], costs: Costs, tiles: usize, turn: usize) -> Vec<Range<usize>> {
    let ranks = loads.len();
    let making = |rank: usize, cost: u64| cost / loads[rank].workers.max(1) as u64;
    let order = |rank: usize| (rank + turn) % ranks;
    let mut counts = vec![0; ranks];
    let mut busy = loads.iter().map(|load| costs.solving(load.panels, tiles)).collect::<Vec<_>>();
    // The rank that would be done first with one tile more makes it.
    let next = |rank: usize, busy: u64| Reverse((busy + making(rank, costs.make), order(rank), rank));
    let mut queue = (0..ranks).map(|rank| next(rank, busy[rank])).collect::<BinaryHeap<_>>();
    for _ in 0..tiles {
        let Some(Reverse((until, _, rank))) = queue.pop() else { break };
        (busy[rank], counts[rank]) = (until, counts[rank] + 1);
        queue.push(next(rank, until));
    }
    let last = (0..ranks).min_by_key(|&rank| (busy[rank] + making(rank, costs.make_diagonal), order(rank)));
    let last = last.unwrap_or(0);
    counts[last] += 1;
    let (mut shares, mut start) = (vec![0..0; ranks], 0);
    for rank in (1..=ranks).map(|at| (last + at) % ranks) {
        shares[rank] = start..start + counts[rank];
        start += counts[rank];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::window::{SharedWindow, WindowKind, WindowPieces};
    use crate::comm::{Fence, Transport, local};
    use crate::context::Context;
    use crate::matrix::{Matrix, Uplo};
    use crate::ops::distributed::{DistMatrix, Team, TeamOptions, solve_with};
    use crate::ops::product::problem::Accuracy;
    use crate::tile::{RankGrid, TileMap};

    /// Ranks that are threads share the workers of one context: a worker that waits for a tile of another rank makes it
    /// itself, where it is the only one that could.
    #[test]
    fn ranks_that_share_a_pool_do_not_wait_for_its_work() {
        let (order, columns, bits) = (200, 40, 100);
        let map = move |ranks, cols, triangle| TileMap {
            rows: order,
            cols,
            tile_size: 32,
            grid: RankGrid::for_ranks(ranks),
            triangle,
        };
        let mut l = Matrix::identity(order, bits).unwrap();
        (1..order).for_each(|i| (0..i).for_each(|j| l.set_f64(i, j, ((3 * i + 5 * j) % 7) as f64 / 64.0).unwrap()));
        let b = Matrix::from_fn(order, columns, bits, |i, j| rug::Float::with_val(bits, (7 * i + j) % 11)).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        // Ranks that waited for ever would be left behind.
        std::thread::spawn(move || {
            let solved = |ranks: usize| {
                let ctx = Context::builder().threads(2).build().unwrap();
                let solved = local::run(ranks, |rank| {
                    let team = Team::new(rank.split(0).unwrap(), TeamOptions::new()).unwrap();
                    let whole = |matrix| (rank.rank() == 0).then_some(matrix);
                    let l = DistMatrix::scatter(rank, 0, whole(&l), map(ranks, order, Some(Uplo::Lower)), bits);
                    let b = DistMatrix::scatter(rank, 0, whole(&b), map(ranks, columns, None), bits);
                    let solved = solve_with(&ctx, &team, &l.unwrap(), &b.unwrap(), bits, Accuracy::Norm);
                    solved.unwrap().solution.gather(rank, 0).unwrap()
                });
                solved.into_iter().flatten().next().unwrap()
            };
            let want = solved(1);
            (0..10).for_each(|turn| sender.send(solved(2 + turn % 3) == want).unwrap());
        });
        for turn in 0..10 {
            let is_same = receiver.recv_timeout(std::time::Duration::from_secs(600));
            assert_eq!(is_same, Ok(true), "turn {turn}");
        }
    }

    /// A rank that fails before its tiles are made does not let the others wait for them.
    #[test]
    fn tiles_that_could_not_be_made_are_shown_as_zeros() {
        let pieces = WindowPieces::new([vec![], vec![9, 8]]);
        local::run(2, |rank| {
            let mut window = SharedWindow::open(rank, WindowKind::Heap, pieces.total_words()).unwrap();
            let fence = Fence::new(rank);
            for round in 0..2 {
                let (own, shown) = window.pieces(&fence, Ok(()), &pieces).unwrap();
                for (at, words) in own.into_iter().enumerate() {
                    words.fill(7);
                    let tile = Unfinished { shown: &shown, at, words: Some(words) };
                    if round == 0 { tile.finish() } else { drop(tile) }
                }
                for (at, words) in [9, 8].into_iter().enumerate() {
                    let tile = loop {
                        match shown.get(1, at) {
                            Some(tile) => break tile,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!(tile, vec![7 * (1 - round); words]);
                }
            }
            window.close().unwrap();
        });
    }

    fn loads(panels: &[usize]) -> Vec<RankLoad> {
        panels.iter().map(|&panels| RankLoad { panels, workers: 1 }).collect()
    }

    /// When each rank is done with a row.
    fn ends(loads: &[RankLoad], costs: Costs, tiles: usize, shares: &[Range<usize>]) -> Vec<u64> {
        let end = |(load, share): (&RankLoad, &Range<usize>)| {
            let diagonal = u64::from(share.end == tiles + 1 && !share.is_empty());
            let made = (share.len() as u64 - diagonal) * costs.make + diagonal * costs.make_diagonal;
            costs.solving(load.panels, tiles) + made / load.workers as u64
        };
        loads.iter().zip(shares).map(end).collect()
    }

    #[test]
    fn every_tile_has_one_maker_and_every_rank_neighbours() {
        for panels in [vec![3], vec![7, 6], vec![0, 1], vec![2, 2, 2], vec![4, 3, 3, 3], vec![100, 0, 0, 5]] {
            for (tiles, turn) in (0..12).flat_map(|tiles| (0..5).map(move |turn| (tiles, turn))) {
                let shares = share_out(&loads(&panels), Costs::new(800), tiles, turn);
                let mut all = shares.iter().cloned().flatten().collect::<Vec<_>>();
                all.sort_unstable();
                assert_eq!(all, (0..=tiles).collect::<Vec<_>>(), "{panels:?}, turn {turn}");
                assert_eq!(shares.len(), panels.len());
            }
        }
    }

    #[test]
    fn ranks_with_fewer_right_sides_make_more_until_all_are_done_together() {
        let costs = Costs::new(800);
        for panels in [vec![7, 6], vec![6, 7], vec![4, 3, 3, 3], vec![1, 0], vec![0, 0, 1]] {
            for (tiles, turn) in [(8, 0), (9, 1), (17, 2), (40, 3)] {
                let loads = loads(&panels);
                let shares = share_out(&loads, costs, tiles, turn);
                let ends = ends(&loads, costs, tiles, &shares);
                let least = ends.iter().min().unwrap();
                // No rank makes a tile that another one would have made in the time in which it waits.
                let fair = (0..panels.len()).all(|rank| shares[rank].is_empty() || ends[rank] <= least + costs.make);
                assert!(fair, "{panels:?}: {shares:?} end at {ends:?}");
            }
        }
    }

    #[test]
    fn what_is_left_over_goes_round() {
        let makers = (0..6).map(|turn| share_out(&loads(&[5, 5, 5]), Costs::new(800), 7, turn));
        let counts = makers.fold(vec![0; 3], |counts: Vec<usize>, shares| {
            counts.iter().zip(&shares).map(|(count, share)| count + share.len()).collect()
        });
        assert_eq!(counts, [16, 16, 16]);
        // Twice the workers make twice as many.
        let unlike = [RankLoad { panels: 0, workers: 2 }, RankLoad { panels: 0, workers: 1 }];
        let shares = share_out(&unlike, Costs::new(800), 30, 0);
        assert!((20..=21).contains(&shares[0].len()), "{shares:?}");
    }
}
