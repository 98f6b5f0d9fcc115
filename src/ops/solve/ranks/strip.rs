//! The entries that the ranks of a node work on, as one matrix in a window of theirs: each rank writes the entries of
//! its tiles, and all read.
//!
//! Heads come first, column by column, then limbs, column by column.

use crate::comm::window::{Level, Partition, Run, Shares};
use crate::error::Result;
use crate::matrix::MatrixView;
use crate::ops::distribution::rect::Rect;
use std::ops::Range;

/// A part of a matrix in a window.
pub(super) struct WindowStrip {
    place: Rect,
    /// Limbs of an entry.
    width: usize,
}

/// Entries of a column-major array of heads and one of limbs.
#[derive(Clone, Copy)]
pub(super) struct StripEntries<'a> {
    pub heads: &'a [u64],
    pub limbs: &'a [u64],
    /// The index of the first one.
    pub first: usize,
    /// Indices from a column to the next.
    pub stride: usize,
}

/// A part of a matrix, and the rank of the node that writes it.
pub(super) struct WrittenPart {
    pub part: Rect,
    pub rank: usize,
}

/// The part of a strip that one rank writes.
pub(super) struct StripWriter<'w> {
    strip: &'w WindowStrip,
    /// Words, and the place in the window of the first of them, in order.
    runs: Vec<(usize, &'w mut [u64])>,
}

impl WindowStrip {
    /// Room for the entries of `place`, of `width` limbs.
    pub fn new(place: Rect, width: usize) -> WindowStrip {
        WindowStrip { place, width }
    }

    /// The part of the matrix.
    pub fn place(&self) -> &Rect {
        &self.place
    }

    /// The words that each of the `ranks` ranks of a node writes: `parts`, which are disjoint.
    pub fn partition(&self, ranks: usize, parts: &[WrittenPart]) -> Partition {
        let inside = |written: &WrittenPart| WrittenPart { part: written.part.within(&self.place), rank: written.rank };
        let mut parts = parts.iter().map(inside).collect::<Vec<_>>();
        parts.sort_unstable_by_key(|written| written.part.cols.start);
        let mut cuts =
            parts.iter().flat_map(|WrittenPart { part, .. }| [part.cols.start, part.cols.end]).collect::<Vec<_>>();
        cuts.sort_unstable();
        cuts.dedup();
        // Most runs of heads, where none continues in the next column.
        let most = parts.iter().map(|written| written.part.cols.len()).sum::<usize>();
        let mut runs = Vec::with_capacity(2 * most);
        let (mut column, mut next) = (Vec::<&WrittenPart>::new(), 0);
        for cut in cuts.windows(2) {
            let begun = parts[next..].iter().take_while(|written| written.part.cols.start <= cut[0]);
            let ended = column.len();
            column.extend(begun);
            next += column.len() - ended;
            column.retain(|written| written.part.cols.end > cut[0]);
            column.sort_unstable_by_key(|written| written.part.rows.start);
            for col in cut[0]..cut[1] {
                let first = col * self.place.rows.len();
                for WrittenPart { part, rank } in &column {
                    let words = first + part.rows.start..first + part.rows.end;
                    append(&mut runs, Run { words, rank: *rank });
                }
            }
        }
        let (first, width) = (self.place.entries(), self.width);
        for at in 0..runs.len() {
            let Run { words, rank } = runs[at].clone();
            runs.push(Run { words: first + words.start * width..first + words.end * width, rank });
        }
        Partition::new(ranks, Level::ONCE, Level::ONCE, runs)
    }

    /// The part that `rank` of the node writes in a phase.
    pub fn writer<'w>(&'w self, rank: usize, partition: &Partition, shares: Shares<'w>) -> StripWriter<'w> {
        let positions = partition.positions(rank);
        let mut runs = Vec::with_capacity(positions.len());
        runs.extend(positions.map(|position| partition.run(position).words.start).zip(shares));
        StripWriter { strip: self, runs }
    }

    /// The matrix, of which only written entries may be read; they have `precision_bits` bits.
    ///
    /// # Errors
    /// None where `words` are the words of the window.
    pub fn view<'a>(&self, words: &'a [u64], precision_bits: u32) -> Result<MatrixView<'a>> {
        let (rows, cols) = (self.place.rows.len(), self.place.cols.len());
        let (heads, rest) = words.split_at(rows * cols);
        MatrixView::from_parts((heads, &rest[..rows * cols * self.width]), (rows, cols), rows.max(1), precision_bits)
    }
}

/// Appends a run, or extends the last one where it continues that.
fn append(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.rank == run.rank && last.words.end == run.words.start => last.words.end = run.words.end,
        _ => runs.push(run),
    }
}

impl<'w> StripWriter<'w> {
    /// The strip.
    pub fn strip(&self) -> &'w WindowStrip {
        self.strip
    }

    /// Writes a part of the matrix, each head as `head` makes it of the row and what `from` has.
    pub fn write(&mut self, part: &Rect, from: StripEntries<'_>, head: impl Fn(usize, u64) -> u64) {
        let WindowStrip { place, width } = self.strip;
        let (inside, height, width) = (part.within(place), place.rows.len(), *width);
        for (index, col) in inside.cols.clone().enumerate() {
            let source = from.first + index * from.stride;
            let source = source..source + inside.rows.len();
            let target = inside.rows.start + col * height..inside.rows.end + col * height;
            let heads = part.rows.clone().zip(&from.heads[source.clone()]);
            self.words(target.clone()).iter_mut().zip(heads).for_each(|(to, (row, &from))| *to = head(row, from));
            let first = place.entries();
            self.words(first + target.start * width..first + target.end * width)
                .copy_from_slice(&from.limbs[source.start * width..source.end * width]);
        }
    }

    /// Words of this rank, none of another's among them.
    fn words(&mut self, range: Range<usize>) -> &mut [u64] {
        let after = self.runs.partition_point(|(first, _)| *first <= range.start);
        let (first, words) = &mut self.runs[after - 1];
        &mut words[range.start - *first..range.end - *first]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::window::{SharedWindow, WindowKind};
    use crate::comm::{Fence, Transport, local};
    use crate::matrix::Matrix;

    /// A matrix comes from blocks that ranks own, dealt out in both directions, and all of them see all of it.
    #[test]
    fn a_matrix_is_put_together_from_blocks_of_all_ranks() {
        let (rows, cols, bits) = (13, 17, 100);
        let mut whole = Matrix::zeros(rows, cols, bits).unwrap();
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            whole.set_f64(row, col, (100 * row + col + 1) as f64).unwrap();
        }
        for (ranks, size, grid_rows) in [(1, 4, 1), (2, 4, 2), (2, 4, 1), (3, 5, 1), (4, 3, 2), (4, 16, 2)] {
            let owner = |row: usize, col: usize| row % grid_rows * (ranks / grid_rows) + col % (ranks / grid_rows);
            for place in [0..13, 3..9, 12..13].into_iter().zip([0..17, 2..11, 5..5]) {
                let place = Rect { rows: place.0, cols: place.1 };
                let mut parts = Vec::new();
                for (row, col) in (0..rows.div_ceil(size)).flat_map(|i| (0..cols.div_ceil(size)).map(move |j| (i, j))) {
                    let block = Rect { rows: row * size..(row + 1) * size, cols: col * size..(col + 1) * size };
                    parts.push(WrittenPart { part: block.intersect(&place), rank: owner(row, col) });
                }
                parts.retain(|written| !written.part.is_empty());
                local::run(ranks, |rank| {
                    let strip = WindowStrip::new(place.clone(), whole.limbs_per_element());
                    let words = place.entries() * (1 + whole.limbs_per_element());
                    let mut window = SharedWindow::open(rank, WindowKind::Auto, words).unwrap();
                    let fence = Fence::new(rank);
                    let partition = strip.partition(ranks, &parts);
                    let shares = window.write(&fence, Ok(()), &partition).unwrap();
                    let mut writer = strip.writer(rank.rank(), &partition, shares);
                    let (heads, limbs) = whole.parts();
                    for WrittenPart { part, .. } in parts.iter().filter(|written| written.rank == rank.rank()) {
                        let first = part.rows.start + part.cols.start * rows;
                        writer.write(part, StripEntries { heads, limbs, first, stride: rows }, |_, head| head);
                    }
                    let view = strip.view(window.read(&fence, Ok(())).unwrap(), bits).unwrap();
                    let want = whole.view().block(place.rows.clone(), place.cols.clone()).unwrap();
                    assert!(view.to_matrix().unwrap() == want.to_matrix().unwrap(), "{ranks} ranks, blocks of {size}");
                });
            }
        }
    }

    /// Whole columns of a rank are one run, so that a phase has few of them.
    #[test]
    fn neighbouring_columns_of_a_rank_are_one_run() {
        let strip = WindowStrip::new(Rect { rows: 10..14, cols: 0..6 }, 2);
        let part = |cols| Rect { rows: 10..14, cols };
        let parts = [(0..2, 0), (2..4, 0), (4..6, 1)].map(|(cols, rank)| WrittenPart { part: part(cols), rank });
        let partition = strip.partition(2, &parts);
        let runs = |rank| partition.positions(rank).map(|position| partition.run(position).words.clone());
        assert_eq!(runs(0).collect::<Vec<_>>(), [0..16, 24..56]);
        assert_eq!(runs(1).collect::<Vec<_>>(), [16..24, 56..72]);
    }
}
