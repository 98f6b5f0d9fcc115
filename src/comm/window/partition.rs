//! The assignment of the words of a window to the ranks that write them in one phase.

use bytemuck::cast_slice;
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3;

/// Neighbouring words of a cell that belong to one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Words, counted from the start of the cell.
    pub words: Range<usize>,
    /// The rank within the node to which the words belong.
    pub rank: usize,
}

/// Cells repeated at equal distances; either of the two levels of a partition may have the larger distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Number of cells.
    pub count: usize,
    /// Words from the start of one cell to the start of the next.
    pub stride: usize,
}

impl Level {
    /// No repetition.
    pub const ONCE: Level = Level { count: 1, stride: 0 };
}

/// Disjoint runs of words, repeated on two levels: cell `(i, j)` begins at word
/// `base + i * outer.stride + j * inner.stride`.
///
/// Words of a cell that lie in no run are written by no rank.
#[derive(Clone, Debug)]
pub struct Partition {
    base: usize,
    outer: Level,
    inner: Level,
    runs: Vec<Run>,
    /// Indices into `runs`, grouped by rank; empty for a single rank, which owns all runs.
    by_rank: Vec<u32>,
    ranks: usize,
}

impl Partition {
    /// A partition among `ranks` ranks; empty runs are left out.
    ///
    /// # Panics
    /// If runs are not in ascending order, overlap or name a rank that does not exist, or if cells overlap.
    pub fn new(ranks: usize, outer: Level, inner: Level, mut runs: Vec<Run>) -> Partition {
        runs.retain(|run| !run.words.is_empty());
        let in_order = runs.windows(2).all(|pair| pair[0].words.end <= pair[1].words.start);
        assert!(in_order && runs.iter().all(|run| run.rank < ranks), "runs overlap or have no rank");
        let cell = runs.last().map_or(0, |run| run.words.end);
        let (near, far) = by_stride(outer, inner);
        assert!(near.count <= 1 || cell <= near.stride, "cells of {cell} words, {} apart", near.stride);
        let end = |level: Level, size: usize| match level.count.checked_sub(1) {
            None => Some(0),
            Some(last) => last.checked_mul(level.stride)?.checked_add(size),
        };
        let row = end(near, cell).expect("cells within the address space");
        assert!(far.count <= 1 || row <= far.stride, "rows of cells of {row} words, {} apart", far.stride);
        end(far, row).expect("rows of cells within the address space");
        assert!(runs.len() <= u32::MAX as usize);
        let by_rank = if ranks > 1 { by_rank(&runs, ranks) } else { Vec::new() };
        Partition { base: 0, outer, inner, runs, by_rank, ranks }
    }

    /// The same partition with its first cell at word `base`.
    pub fn at(self, base: usize) -> Partition {
        self.end().checked_add(base).expect("cells within the address space");
        Partition { base, ..self }
    }

    /// Position of the first cell.
    pub fn base(&self) -> usize {
        self.base
    }

    /// The outer repetition.
    pub fn outer(&self) -> Level {
        self.outer
    }

    /// The inner repetition.
    pub fn inner(&self) -> Level {
        self.inner
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Positions of the runs of `rank` in the order of the ranks, for [`Partition::run`].
    pub fn positions(&self, rank: usize) -> Range<usize> {
        if self.ranks == 1 {
            return 0..self.runs.len();
        }
        let first = |rank: usize| self.by_rank.partition_point(|&index| self.runs[index as usize].rank < rank);
        first(rank)..first(rank + 1)
    }

    /// The run at a position in the order of the ranks; the runs of each rank are in ascending order.
    pub fn run(&self, position: usize) -> &Run {
        &self.runs[self.by_rank.get(position).map_or(position, |&index| index as usize)]
    }

    /// The first word that a rank writes; the base if no rank writes.
    pub fn start(&self) -> usize {
        self.base + self.runs.first().map_or(0, |run| run.words.start)
    }

    /// Number of words of a window that holds all cells.
    pub fn end(&self) -> usize {
        let cell = self.runs.last().map_or(0, |run| run.words.end);
        if self.outer.count == 0 || self.inner.count == 0 || cell == 0 {
            return 0;
        }
        self.base + (self.outer.count - 1) * self.outer.stride + (self.inner.count - 1) * self.inner.stride + cell
    }

    /// Whether the words `range` lie in a cell but outside all of its runs.
    pub fn is_free(&self, range: &Range<usize>) -> bool {
        let next = self.runs.partition_point(|run| run.words.end <= range.start);
        let free = self.runs.get(next).is_none_or(|run| run.words.start >= range.end);
        // A cell ends where the next one begins, the last of a row of cells where the next row begins.
        let (near, far) = by_stride(self.outer, self.inner);
        let next_cell = if near.count > 1 { near.stride } else { usize::MAX };
        let before_last = near.count.saturating_sub(1) * near.stride;
        let next_row = if far.count > 1 { far.stride - before_last } else { usize::MAX };
        free && range.end <= next_cell.min(next_row) && range.start <= range.end
    }

    /// A hash that is equal on all ranks that made the same partition.
    pub fn hash(&self) -> u64 {
        let Partition { base, outer, inner, runs, .. } = self;
        let mut state = Xxh3::new();
        let cells = [*base, outer.count, outer.stride, inner.count, inner.stride].map(|number| number as u64);
        state.update(cast_slice(&cells));
        // Many at a time, as each update costs more than a number.
        let mut numbers = [[0; 3]; 128];
        for runs in runs.chunks(numbers.len()) {
            for (numbers, run) in numbers.iter_mut().zip(runs) {
                *numbers = [run.words.start, run.words.end, run.rank].map(|number| number as u64);
            }
            state.update(cast_slice(&numbers[..runs.len()]));
        }
        state.digest()
    }
}

/// The indices of the runs, grouped by rank and in order within a rank. Some phases have thousands.
fn by_rank(runs: &[Run], ranks: usize) -> Vec<u32> {
    let mut next = vec![0; ranks + 1];
    runs.iter().for_each(|run| next[run.rank + 1] += 1);
    (0..ranks).for_each(|rank| next[rank + 1] += next[rank]);
    let mut indices = vec![0; runs.len()];
    for (index, run) in runs.iter().enumerate() {
        indices[next[run.rank]] = index as u32;
        next[run.rank] += 1;
    }
    indices
}

/// The two levels, the one whose cells are nearer to each other first.
fn by_stride(outer: Level, inner: Level) -> (Level, Level) {
    if inner.stride <= outer.stride { (inner, outer) } else { (outer, inner) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: Range<usize>, rank: usize) -> Run {
        Run { words, rank }
    }

    #[test]
    fn runs_are_found_by_rank_and_gaps_are_free() {
        let runs = vec![run(0..3, 1), run(3..3, 0), run(4..6, 0), run(6..7, 1)];
        let partition = Partition::new(3, Level { count: 4, stride: 100 }, Level { count: 5, stride: 10 }, runs);
        let words = |rank| partition.positions(rank).map(|position| partition.run(position).words.clone());
        assert_eq!((words(0).count(), words(0).next()), (1, Some(4..6)));
        assert_eq!(words(1).collect::<Vec<_>>(), [0..3, 6..7]);
        assert_eq!(words(2).count(), 0);
        assert_eq!((partition.start(), partition.end()), (0, 300 + 40 + 7));
        for (range, free) in [(3..4, true), (2..4, false), (7..10, true), (7..11, false), (6..7, false), (5..5, false)]
        {
            assert_eq!(partition.is_free(&range), free, "{range:?}");
        }
    }

    #[test]
    fn free_words_end_with_the_row_of_cells() {
        let (outer, inner) = (Level { count: 2, stride: 25 }, Level { count: 3, stride: 10 });
        let partition = Partition::new(1, outer, inner, vec![run(0..5, 0)]);
        // Words 5 to 10 of the last cell are the first cell of the next row.
        assert!(!partition.is_free(&(5..10)) && partition.is_free(&(5..5)));
    }

    #[test]
    #[should_panic(expected = "address space")]
    fn strides_that_wrap_are_refused() {
        Partition::new(1, Level { count: 3, stride: 1 << 63 }, Level::ONCE, vec![run(0..8, 0)]);
    }

    #[test]
    fn different_partitions_have_different_hashes() {
        let make = |rank| Partition::new(2, Level::ONCE, Level::ONCE, vec![run(0..8, rank)]);
        assert_ne!(make(0).hash(), make(1).hash());
        assert_eq!(make(1).hash(), make(1).hash());
    }

    #[test]
    #[should_panic(expected = "overlap")]
    fn overlapping_runs_are_refused() {
        Partition::new(2, Level::ONCE, Level::ONCE, vec![run(0..8, 0), run(7..9, 1)]);
    }

    #[test]
    fn cells_that_overlap_are_refused_whichever_level_is_the_outer_one() {
        let make = |one, other| std::panic::catch_unwind(|| Partition::new(1, one, other, vec![run(0..8, 0)])).is_ok();
        let far = |stride| Level { count: 3, stride };
        for (near, stride, fits) in [(7, 100, false), (8, 32, true), (10, 38, true), (10, 37, false)] {
            let near = Level { count: 4, stride: near };
            assert_eq!((make(near, far(stride)), make(far(stride), near)), (fits, fits), "{near:?} {stride}");
        }
        assert!(make(Level::ONCE, far(8)) && !make(Level::ONCE, far(7)) && !make(far(7), Level::ONCE));
    }
}
