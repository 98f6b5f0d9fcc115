//! One axis of a distribution: which number owns which index, and at which place among its own.

use super::axis::Axis;
use super::diagonal::Line;
use std::ops::Range;

/// An axis with its length and its coordinates, after a check.
#[derive(Clone, Copy)]
pub struct Deal<'a> {
    pub(super) axis: &'a Axis,
    pub(super) len: usize,
    /// Their number.
    pub numbers: usize,
}

impl Deal<'_> {
    /// The coordinate that owns `index`, and the end of the run of consecutive indices that it owns as one block.
    pub fn run_at(&self, index: usize) -> (usize, usize) {
        match self.axis {
            Axis::Whole => (0, self.len),
            Axis::Cyclic { block, first, offset, .. } => {
                let number = (index + offset) / block;
                ((number + first) % self.numbers, ((number + 1) * block - offset).min(self.len))
            }
            Axis::Consecutive { starts, .. } => {
                let number = starts.partition_point(|&start| start <= index) - 1;
                (number, starts[number + 1])
            }
        }
    }

    /// The runs of a coordinate within `range`, ascending.
    pub fn runs(&self, number: usize, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'_> {
        // Counted from the start of the first block, whether it is whole or not.
        let offset = self.offset();
        let (from, most) = (range.start + offset, range.end.min(self.len) + offset);
        let (first, step) = match self.axis {
            Axis::Cyclic { block, .. } => {
                let turn = self.turn(number);
                // The first block of the number that ends beyond the range's start.
                let before = (from / block).saturating_sub(turn).div_ceil(self.numbers);
                ((turn + before * self.numbers) * block, Some(self.numbers * block))
            }
            Axis::Whole => (0, None),
            Axis::Consecutive { starts, .. } => (starts[number], None),
        };
        let end_of = move |start: usize| match self.axis {
            Axis::Whole => self.len,
            Axis::Cyclic { block, .. } => start + block,
            Axis::Consecutive { starts, .. } => starts[number + 1],
        };
        let starts = std::iter::successors(Some(first), move |start| step.map(|step| start + step));
        starts
            .take_while(move |&start| start < most)
            .map(move |start| start.max(from)..end_of(start).min(most))
            .filter(|run| !run.is_empty())
            .map(move |run| run.start - offset..run.end - offset)
    }

    /// The place of `index` among the indices of its owner.
    pub fn local(&self, index: usize) -> usize {
        match self.axis {
            Axis::Whole => index,
            Axis::Cyclic { block, offset, .. } => {
                let at = index + offset;
                let lacks = if (at / block).is_multiple_of(self.numbers) { *offset } else { 0 };
                at / (block * self.numbers) * block + at % block - lacks
            }
            Axis::Consecutive { starts, .. } => index - starts[self.run_at(index).0],
        }
    }

    /// How many blocks come before the first of a number, where blocks are dealt in turn.
    fn turn(&self, number: usize) -> usize {
        match self.axis {
            Axis::Cyclic { first, .. } => (number + self.numbers - first) % self.numbers,
            _ => 0,
        }
    }

    /// Indices that the first block lacks.
    fn offset(&self) -> usize {
        match self.axis {
            Axis::Cyclic { offset, .. } => *offset,
            _ => 0,
        }
    }

    /// The axis of some of the indices.
    pub(super) fn part(&self, range: &Range<usize>) -> Axis {
        match self.axis.clone() {
            Axis::Whole => Axis::Whole,
            Axis::Cyclic { block, first, offset, along } => {
                let start = range.start + offset;
                Axis::Cyclic { block, first: (first + start / block) % self.numbers, offset: start % block, along }
            }
            Axis::Consecutive { starts, along } => {
                let within = |start: usize| start.clamp(range.start, range.end) - range.start;
                Axis::Consecutive { starts: starts.into_iter().map(within).collect(), along }
            }
        }
    }

    /// The indices of a number.
    pub(super) fn line(&self, number: usize) -> Line {
        match self.axis {
            Axis::Whole => Line::from(0),
            Axis::Cyclic { block, offset, .. } => {
                let turn = self.turn(number);
                let lacks = if turn == 0 { *offset } else { 0 };
                Line { start: turn * block, block: *block, step: self.numbers * block, offset: *offset, lacks }
            }
            Axis::Consecutive { starts, .. } => Line::from(starts[number]),
        }
    }

    /// The number of indices of a position.
    pub(super) fn count_of(&self, number: usize) -> usize {
        self.count_below(number, self.len)
    }

    /// The number of indices below `end` of a position.
    pub(super) fn count_below(&self, number: usize, end: usize) -> usize {
        let end = end.min(self.len);
        match self.axis {
            Axis::Whole => end,
            Axis::Cyclic { block, offset, .. } => {
                let turn = self.turn(number);
                let (blocks, rest) = ((end + offset) / block, (end + offset) % block);
                let whole = (blocks + self.numbers - 1 - turn) / self.numbers * block;
                let lacks = if turn == 0 { *offset } else { 0 };
                whole + if blocks % self.numbers == turn { rest } else { 0 } - lacks
            }
            Axis::Consecutive { starts, .. } => end.clamp(starts[number], starts[number + 1]) - starts[number],
        }
    }
}

/// The ranks that have the entries of each pair of numbers, ascending.
pub struct Holders {
    pub(super) lists: Vec<Vec<usize>>,
    pub(super) cols: usize,
}

impl Holders {
    /// The ranks that have the entries of a pair.
    pub fn of(&self, row: usize, col: usize) -> &[usize] {
        &self.lists[row * self.cols + col]
    }

    /// The rank that sends the entries of a pair to rank `to`: `to` itself if it has them.
    pub fn provider(&self, row: usize, col: usize, to: usize) -> usize {
        let list = self.of(row, col);
        if list.binary_search(&to).is_ok() { to } else { list[to % list.len()] }
    }
}
