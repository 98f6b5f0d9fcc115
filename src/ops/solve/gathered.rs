//! Columns of all ranks that visit every rank, to be solved there together, and return.

use crate::comm::{Transport, agree};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::distribution::rect::{Rect, unpack};
use crate::ops::solve::band::gather;
use std::ops::Range;

/// Some of the columns of all ranks, those of rank 0 first.
pub(crate) struct GatheredColumns {
    ranks: Vec<OfRank>,
}

/// GatheredColumns of one rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OfRank {
    /// The numbers of the columns among the rank's columns.
    pub own: Range<usize>,
    /// Their places among the gathered columns.
    pub places: Range<usize>,
}

impl GatheredColumns {
    /// The columns `some` of all; rank `r` has `counts[r]` of these.
    pub fn new(counts: &[u64], some: Range<usize>) -> GatheredColumns {
        let mut next = 0;
        let of_rank = |&count: &u64| {
            let all = next..next + count as usize;
            next = all.end;
            let common = all.start.max(some.start).min(all.end)..all.end.min(some.end).max(all.start);
            let length = common.end.saturating_sub(common.start);
            let (own, place) = match length {
                0 => (0, 0),
                _ => (common.start - all.start, common.start - some.start),
            };
            OfRank { own: own..own + length, places: place..place + length }
        };
        GatheredColumns { ranks: counts.iter().map(of_rank).collect() }
    }

    /// The columns of a rank.
    pub fn of_rank(&self, rank: usize) -> OfRank {
        self.ranks[rank].clone()
    }

    /// Brings them side by side into `target` on every rank; `own` are the columns of `source` that this rank sends,
    /// the first column of `source` being number `first` of the call. Their numbers in the call. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`].
    pub fn spread(
        &self,
        world: &dyn Transport,
        own: &[usize],
        first: usize,
        source: &Matrix,
        target: &mut Matrix,
    ) -> Result<Vec<usize>> {
        let (rows, width) = (source.rows(), 1 + source.limbs_per_element());
        let total = self.ranks.iter().map(|of_rank| of_rank.places.len()).sum();
        let mut part = Matrix::empty();
        let made = gather(source, own, &mut part);
        agree(world, made.and_then(|()| target.reshape(rows, total, source.precision_bits())))?;
        let mut numbers = Vec::with_capacity(total);
        for (rank, OfRank { places, .. }) in self.ranks.iter().enumerate().filter(|(_, some)| !some.places.is_empty()) {
            let mut words = Vec::with_capacity(places.len() * (1 + rows * width));
            if rank == world.rank() {
                words.extend(own.iter().map(|col| (first + col) as u64));
                let (heads, limbs) = part.parts();
                words.extend_from_slice(heads);
                words.extend_from_slice(limbs);
            }
            words.resize(places.len() * (1 + rows * width), 0);
            world.broadcast(rank, &mut words)?;
            let (said, entries) = words.split_at(places.len());
            numbers.extend(said.iter().map(|&number| number as usize));
            let place = Rect { rows: 0..rows, cols: places.clone() };
            unpack(entries, &place, target);
        }
        Ok(numbers)
    }

    /// Copies this rank's own back to their columns of `target`.
    pub fn take_back(&self, rank: usize, own: &[usize], source: &Matrix, target: &mut Matrix) {
        let places = self.ranks[rank].places.clone();
        for (place, col) in places.zip(own) {
            for row in 0..source.rows() {
                target.set(row, *col, source.get(row, place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;

    #[test]
    fn columns_visit_all_ranks_and_return() {
        for (counts, together) in [(vec![3u64, 0, 2, 4], 4), (vec![1, 1], 1), (vec![0, 0, 5], 8), (vec![2, 3], 5)] {
            let total = counts.iter().sum::<u64>() as usize;
            local::run(counts.len(), |rank| {
                let before = counts[..rank.rank()].iter().sum::<u64>() as usize;
                let count = counts[rank.rank()] as usize;
                // Every second column is taken, and its entries encode its number.
                let mut w = Matrix::zeros(3, 2 * count, 80).unwrap();
                let left = (0..count).map(|at| 2 * at + 1).collect::<Vec<_>>();
                left.iter().enumerate().for_each(|(at, col)| w.set_f64(1, *col, (before + at + 1) as f64).unwrap());
                let (mut target, mut start) = (Matrix::empty(), 0);
                while start < total {
                    let some = GatheredColumns::new(&counts, start..total.min(start + together));
                    let own = &left[some.of_rank(rank.rank()).own];
                    let numbers = some.spread(rank, own, 100, &w, &mut target).unwrap();
                    assert_eq!(target.cols(), numbers.len());
                    for col in 0..target.cols() {
                        assert_eq!(target.float(1, col), (start + col + 1) as f64);
                        let negative = -target.float(1, col);
                        target.set_float(1, col, &negative).unwrap();
                    }
                    let own_numbers = own.iter().map(|col| 100 + col).collect::<Vec<_>>();
                    assert_eq!(numbers[some.of_rank(rank.rank()).places], own_numbers[..]);
                    some.take_back(rank.rank(), own, &target, &mut w);
                    start += together;
                }
                for (at, col) in left.iter().enumerate() {
                    assert_eq!(w.float(1, *col), -((before + at + 1) as f64));
                }
            });
        }
    }
}
