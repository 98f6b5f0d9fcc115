//! The assignment of the tiles of a row of the triangle to the ranks of a node: ranks that solve for fewer right-hand
//! sides make more tiles, so that all finish the row at about the same time.
//!
//! Depends on: only counts, so that all ranks find the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The work of a rank in every row in addition to the tiles that it makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RankLoad {
    /// Panels of right-hand sides of its busiest worker.
    pub panels: usize,
    /// Workers, which share the rank's work.
    pub workers: usize,
}

/// Costs of the parts of the work on a row, in hundredths of the update of one panel of right-hand sides by one tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
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
pub(super) fn share_out(loads: &[RankLoad], costs: Costs, tiles: usize, turn: usize) -> Vec<Range<usize>> {
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
