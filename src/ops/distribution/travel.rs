//! Entries on their way from one distribution of a matrix to another.

use crate::comm::{Incoming, Outgoing, Said, Say, Transport, check_alike, say_fields};
use crate::error::{Error, Result};
use crate::math::float::limbs_for;
use crate::matrix::{MatrixView, MatrixViewMut, Uplo};
use crate::tile::{Distribution, TileMap};
use std::ops::Range;

/// Words of the messages that a rank of a group sends or receives at a time, about: 256 KiB for each other rank, 1 to
/// 8 MiB in all. More for few ranks would only take memory, which is slow to get.
fn strip_words(ranks: usize) -> usize {
    (ranks << 15).clamp(1 << 17, 1 << 20)
}

/// Words of the longest strip, of columns that have so many words.
fn most_words(ranks: usize, column_words: usize) -> usize {
    (strip_words(ranks) * ranks).max(column_words)
}

/// Columns of a strip, of so many words each: at least one.
fn strip_columns(ranks: usize, column_words: usize) -> usize {
    (strip_words(ranks) / column_words.div_ceil(ranks).max(1)).max(1)
}

/// Bytes of the messages of a rank, one of so many, that gives and takes so many bytes in all of columns that have
/// `column_words` with the head of each entry: a strip may be all its own, and all of it may go to one rank or come
/// from one.
pub(crate) fn message_bytes(ranks: usize, column_words: usize, (given, taken): (u64, u64)) -> u64 {
    let strip = most_words(ranks, column_words) as u64 * 8;
    let apart = if ranks == 1 { 0 } else { taken.min(strip) }; // what stays does not travel
    given.min(strip) + apart
}

/// [`message_bytes`] of a rank that gives and takes so many bytes of a matrix which goes into tiles: of each strip it
/// takes the columns that are its own.
pub(crate) fn tile_message_bytes(
    map: &TileMap,
    ranks: usize,
    precision_bits: u32,
    (given_bytes, taken_bytes): (u64, u64),
) -> u64 {
    let entry_words = 1 + limbs_for(precision_bits);
    let column_words = map.rows * entry_words;
    let cols = most_of_one(strip_columns(ranks, column_words).min(map.cols), map.tile_size, map.grid.cols);
    let rows = most_of_one(map.rows, map.tile_size, map.grid.rows);
    message_bytes(ranks, column_words, (given_bytes, taken_bytes.min((8 * rows * cols * entry_words) as u64)))
}

/// Most indices that one of so many ranks has of `length` consecutive ones, dealt out in blocks of `size`.
pub(crate) fn most_of_one(length: usize, size: usize, ranks: usize) -> usize {
    length / (size * ranks) * size + (length % (size * ranks)).min(size)
}

/// Bytes of the messages of a rank, one of so many, while a matrix goes from one distribution to another, of whose
/// entries of `rows` rows and `precision_bits` bits the rank gives and takes so many bytes: what
/// [`crate::distributed::DistMatrix::from_local`], [`crate::distributed::DistMatrix::fill_local`] and their kin take
/// beside the matrices. Each way a rank may have a whole strip, 1 to 8 MiB for each rank or one column, if all of it is
/// its own or goes to one rank; of a matrix that is dealt out evenly it has 1 to 8 MiB. This is for entries that go to
/// one rank each; where each goes to several, that many times the bytes for `(given_bytes, 0)`, and once those for
/// `(0, taken_bytes)`.
pub fn redistribution_bytes(
    ranks: usize,
    (rows, precision_bits): (usize, u32),
    (given_bytes, taken_bytes): (u64, u64),
) -> u64 {
    let column_words = rows.saturating_mul(1 + limbs_for(precision_bits.max(1)));
    message_bytes(ranks.max(1), column_words, (given_bytes, taken_bytes))
}

/// Room for exactly so many words in each letter. Where together with what letters have had before it were more than
/// `most`, that goes first: in one strip most words may be for one rank, in the next for another.
fn make_room(letters: &mut [Vec<u64>], counts: &[usize], most: usize) {
    let kept = letters.iter().zip(counts).map(|(words, &count)| words.capacity().max(count)).sum::<usize>();
    match kept > most {
        true => letters.iter_mut().for_each(|words| *words = Vec::new()),
        false => letters.iter_mut().for_each(Vec::clear),
    }
    // Words that are added run by run would get up to twice as much.
    letters.iter_mut().zip(counts).for_each(|(words, &count)| words.reserve_exact(count));
}

/// Where a rank's entries are read. Rows and columns are those of the whole matrix.
pub(crate) trait Source {
    /// Appends the heads, then the limbs, `width` of them, of some rows of a column, which this rank has as one run.
    fn read(&self, rows: Range<usize>, col: usize, width: usize, words: &mut Vec<u64>);
}

/// Where entries that come are stored.
pub(crate) trait Target {
    /// Stores what [`Source::read`] has put into `words`.
    fn write(&mut self, rows: Range<usize>, col: usize, words: &[u64]);
}

/// A move of a matrix.
pub(crate) struct Travel<'a> {
    pub from: &'a Distribution,
    pub to: &'a Distribution,
    /// The entries that move.
    pub part: Moved,
    /// The triangle that was asked for, which says what moves after this: all ranks must mean the same.
    pub asked: Option<Uplo>,
    /// Limbs of an entry on the way, at least as many as a source has.
    pub width: usize,
}

/// Messages to and from each rank, kept from strip to strip: fresh memory would cost more than the way.
struct Letters {
    outgoing: Vec<Vec<u64>>,
    incoming: Vec<Vec<u64>>,
    /// Words of the fullest strip that has come.
    most_incoming: usize,
}

/// Entries that move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    All,
    /// A triangle with its diagonal.
    Triangle(Uplo),
    /// A triangle without.
    Strict(Uplo),
}

impl Moved {
    /// The rows of a column that move, of so many.
    fn rows(self, col: usize, rows: usize) -> Range<usize> {
        match self {
            Moved::All => 0..rows,
            Moved::Triangle(Uplo::Lower) => col.min(rows)..rows,
            Moved::Triangle(Uplo::Upper) => 0..(col + 1).min(rows),
            Moved::Strict(Uplo::Lower) => (col + 1).min(rows)..rows,
            Moved::Strict(Uplo::Upper) => 0..col.min(rows),
        }
    }
}

say_fields! { Travel<'_> { from, to, part, asked, width } }

impl Say for Moved {
    fn say(&self, said: &mut Said) {
        match self {
            Moved::All => 0u64.say(said),
            Moved::Triangle(uplo) => (1u64, uplo).say(said),
            Moved::Strict(uplo) => (2u64, uplo).say(said),
        }
    }
}

impl Travel<'_> {
    /// Moves the entries. Collective over `group`, whose ranks all say the same. Each entry travels once to each rank
    /// that gets it; memory: messages of 1 to 8 MiB to and from this rank, at least a column of the matrix.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what is no distribution, and where ranks differ; [`Error::ShapeMismatch`] for
    /// distributions of different shapes; on every rank. [`Error::Transport`].
    pub fn run(&self, group: &dyn Transport, source: &dyn Source, target: &mut dyn Target) -> Result<()> {
        self.check(group)?;
        let (rows, cols) = (self.from.rows, self.from.cols);
        let strip = strip_columns(group.size(), rows * (1 + self.width));
        let empty = || vec![Vec::new(); group.size()];
        let mut letters = Letters { outgoing: empty(), incoming: empty(), most_incoming: 0 };
        for start in (0..cols).step_by(strip) {
            self.move_columns(group, start..(start + strip).min(cols), (source, target), &mut letters)?;
        }
        Ok(())
    }

    /// Refuses what cannot be, alike on all ranks. Collective.
    fn check(&self, group: &dyn Transport) -> Result<()> {
        check_alike(group, self, "ranks ask for different distributions or triangles of a matrix")?;
        // What follows is the same on all ranks.
        let (from, to) = ((self.from.rows, self.from.cols), (self.to.rows, self.to.cols));
        if from != to {
            return Err(Error::shape_mismatch("redistribute", from, to));
        }
        self.from.check(group.size())?;
        self.to.check(group.size())
    }

    fn move_columns(
        &self,
        group: &dyn Transport,
        cols: Range<usize>,
        (source, target): (&dyn Source, &mut dyn Target),
        Letters { outgoing, incoming, most_incoming }: &mut Letters,
    ) -> Result<()> {
        let (rank, size) = (group.rank(), group.size());
        let most = most_words(size, self.from.rows * (1 + self.width));
        let mut counts = vec![0; size];
        self.outgoing(rank, cols.clone(), &mut |to, rows, _| counts[to] += rows.len() * (1 + self.width));
        make_room(outgoing, &counts, most);
        self.outgoing(rank, cols.clone(), &mut |to, rows, col| source.read(rows, col, self.width, &mut outgoing[to]));
        counts.fill(0);
        self.incoming(rank, cols.clone(), &mut |from, rows, _| counts[from] += rows.len() * (1 + self.width));
        counts[rank] = 0; // what stays does not travel
        // No more than the fullest strip so far has brought: plans count what that is at most.
        *most_incoming = (*most_incoming).max(counts.iter().sum());
        make_room(incoming, &counts, *most_incoming);
        incoming.iter_mut().zip(&counts).for_each(|(words, &count)| words.resize(count, 0));
        let sends = outgoing.iter().enumerate().filter(|(to, words)| *to != rank && !words.is_empty());
        let sends = sends.map(|(to, words)| Outgoing { to, words }).collect::<Vec<_>>();
        let receives = incoming.iter_mut().enumerate().filter(|(_, words)| !words.is_empty());
        group.exchange(&sends, &mut receives.map(|(from, words)| Incoming { from, words }).collect::<Vec<_>>())?;
        let mut rest = incoming.iter().map(Vec::as_slice).collect::<Vec<_>>();
        rest[rank] = &outgoing[rank];
        self.incoming(rank, cols, &mut |from, rows, col| {
            let (words, after) = rest[from].split_at(rows.len() * (1 + self.width));
            rest[from] = after;
            target.write(rows, col, words);
        });
        Ok(())
    }

    /// The runs that this rank gives, and to whom: in the order in which they come there.
    fn outgoing(&self, rank: usize, cols: Range<usize>, visit: &mut dyn FnMut(usize, Range<usize>, usize)) {
        let Some((row_number, col_number)) = self.from.numbers(rank) else { return };
        let (givers, takers) = (self.from.holders(), self.to.holders());
        let (own_rows, to_rows, to_cols) = (self.from.row_deal(), self.to.row_deal(), self.to.col_deal());
        for col in self.from.col_deal().runs(col_number, cols).flatten() {
            let to_col = to_cols.run_at(col).0;
            for run in own_rows.runs(row_number, self.part.rows(col, self.from.rows)) {
                for (to_row, rows) in pieces(to_rows, run) {
                    for &to in takers.of(to_row, to_col) {
                        if givers.provider(row_number, col_number, to) == rank {
                            visit(to, rows.clone(), col);
                        }
                    }
                }
            }
        }
    }

    /// The runs that this rank gets, and from whom.
    fn incoming(&self, rank: usize, cols: Range<usize>, visit: &mut dyn FnMut(usize, Range<usize>, usize)) {
        let Some((row_number, col_number)) = self.to.numbers(rank) else { return };
        let givers = self.from.holders();
        let (own_rows, from_rows, from_cols) = (self.to.row_deal(), self.from.row_deal(), self.from.col_deal());
        for col in self.to.col_deal().runs(col_number, cols).flatten() {
            let from_col = from_cols.run_at(col).0;
            for run in own_rows.runs(row_number, self.part.rows(col, self.to.rows)) {
                for (from_row, rows) in pieces(from_rows, run) {
                    visit(givers.provider(from_row, from_col, rank), rows, col);
                }
            }
        }
    }
}

/// A run cut where another axis cuts it, with the numbers there.
fn pieces(deal: crate::tile::Deal<'_>, run: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<'_> {
    let mut start = run.start;
    std::iter::from_fn(move || {
        (start < run.end).then(|| {
            let (number, end) = deal.run_at(start);
            let piece = start..end.min(run.end);
            start = piece.end;
            (number, piece)
        })
    })
}

/// A rank's part of a matrix, as one matrix.
pub(crate) struct LocalSource<'a> {
    pub distribution: &'a Distribution,
    pub local: MatrixView<'a>,
}

impl Source for LocalSource<'_> {
    fn read(&self, rows: Range<usize>, col: usize, width: usize, words: &mut Vec<u64>) {
        let (first, col) = (self.distribution.row_deal().local(rows.start), self.distribution.col_deal().local(col));
        read_run(&self.local, first..first + rows.len(), col, width, words);
    }
}

/// Appends the heads and the limbs of a run of one column.
pub(crate) fn read_run(view: &MatrixView<'_>, rows: Range<usize>, col: usize, width: usize, words: &mut Vec<u64>) {
    let (own, zeros) = (view.limbs_per_element(), width - view.limbs_per_element());
    if view.row_stride() == 1 && zeros == 0 && !rows.is_empty() {
        let first = view.element_index(rows.start, col);
        let last = view.element_index(rows.end - 1, col);
        words.extend_from_slice(&view.all_heads()[first..=last]);
        words.extend_from_slice(&view.all_limbs()[first * own..(last + 1) * own]);
        return;
    }
    words.extend(rows.clone().map(|row| view.head(row, col).0));
    for row in rows {
        // The top limbs of a significand are the last ones.
        words.extend(std::iter::repeat_n(0, zeros));
        words.extend_from_slice(view.get(row, col).limbs);
    }
}

/// A rank's part of a matrix, to be filled.
pub(crate) struct LocalTarget<'a> {
    pub distribution: &'a Distribution,
    pub local: MatrixViewMut<'a>,
}

impl Target for LocalTarget<'_> {
    fn write(&mut self, rows: Range<usize>, col: usize, words: &[u64]) {
        let (first, col) = (self.distribution.row_deal().local(rows.start), self.distribution.col_deal().local(col));
        write_run(self.local.reborrow(), first, col, words);
    }
}

/// Stores a run of one column from row `first` on.
pub(crate) fn write_run(matrix: MatrixViewMut<'_>, first: usize, col: usize, words: &[u64]) {
    let width = matrix.limbs_per_element();
    let (count, at) = (words.len() / (1 + width), first + col * matrix.leading_dimension());
    let (heads, limbs) = matrix.into_parts();
    heads[at..at + count].copy_from_slice(&words[..count]);
    limbs[at * width..(at + count) * width].copy_from_slice(&words[count..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_strip_keep_to_what_plans_count() {
        for ranks in [1, 2, 3, 7, 40, 1000] {
            // The last ones are those of 100,000 and more rows, of which one column is more than a strip.
            for column_words in [0, 1, 2, ranks, 2 * ranks - 1, 5000, 300_001, 40_000_000] {
                let words = (strip_columns(ranks, column_words) * column_words) as u64;
                let all = (u64::MAX / 4, u64::MAX / 4);
                let planned = message_bytes(ranks, column_words, all);
                let ways = if ranks == 1 { 1 } else { 2 };
                assert!(8 * words * ways <= planned, "{ranks} ranks, columns of {column_words} words");
                assert!(words as usize <= most_words(ranks, column_words));
            }
        }
        assert_eq!(message_bytes(2, 300_000, (u64::MAX / 4, 8)), 8 * 300_000 + 8);
    }
}
