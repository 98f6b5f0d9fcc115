//! Entries in transit from one distribution of a matrix to another.

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

/// Words of the longest strip, of columns that have `column_words` words.
fn most_words(ranks: usize, column_words: usize) -> usize {
    (strip_words(ranks) * ranks).max(column_words)
}

/// Columns of a strip, of `column_words` words each: at least one.
fn strip_columns(ranks: usize, column_words: usize) -> usize {
    (strip_words(ranks) / column_words.div_ceil(ranks).max(1)).max(1)
}

/// Bytes of the messages of one of `ranks` ranks, which gives `given` bytes and takes `taken` bytes in all; columns
/// have `column_words` words, heads included. A strip may be all its own, and all of it may go to one rank or come from
/// one.
pub(crate) fn message_bytes(ranks: usize, column_words: usize, given: u64, taken: u64) -> u64 {
    let strip = most_words(ranks, column_words) as u64 * 8;
    let apart = if ranks == 1 { 0 } else { taken.min(strip) }; // what stays does not travel
    given.min(strip) + apart
}

/// [`message_bytes`] of a rank that gives `given_bytes` and takes `taken_bytes` of a matrix which goes into tiles: it
/// takes only its own columns of each strip.
pub(crate) fn tile_message_bytes(
    map: &TileMap,
    ranks: usize,
    precision_bits: u32,
    given_bytes: u64,
    taken_bytes: u64,
) -> u64 {
    let entry_words = 1 + limbs_for(precision_bits);
    let column_words = map.rows * entry_words;
    let cols = most_of_one(strip_columns(ranks, column_words).min(map.cols), map.tile_size, map.grid.cols);
    let rows = most_of_one(map.rows, map.tile_size, map.grid.rows);
    message_bytes(ranks, column_words, given_bytes, taken_bytes.min((8 * rows * cols * entry_words) as u64))
}

/// The largest number of indices that one of `ranks` ranks has of `length` consecutive ones, dealt out in blocks of
/// `size`.
pub(crate) fn most_of_one(length: usize, size: usize, ranks: usize) -> usize {
    length / (size * ranks) * size + (length % (size * ranks)).min(size)
}

/// Bytes of the messages of one of `ranks` ranks during a redistribution of a matrix of `rows` rows and
/// `precision_bits` bits, in which the rank sends `given_bytes` and receives `taken_bytes`.
/// [`crate::distributed::DistMatrix::from_local`], [`crate::distributed::DistMatrix::fill_local`] and similar functions
/// need these bytes in addition to the matrices. The entries are sent strip by strip; a strip has 1 to 8 MiB for each
/// rank, or is one column. In each direction a rank may hold a whole strip, if all of the strip is its own or goes to
/// one rank; with an even distribution it holds 1 to 8 MiB. The number is right if each entry is sent to one rank. If
/// each is sent to `k` ranks, multiply the bytes for `(given_bytes, 0)` by `k` and add the bytes for
/// `(0, taken_bytes)`.
///
/// ```
/// use sunzi::{Matrix, distributed};
/// let half = Matrix::bytes_for(500, 1000, 128); // what each of two ranks gives and takes
/// let messages = distributed::redistribution_bytes(2, (1000, 128), (half, half));
/// assert!(messages > 0 && messages <= 4 * (8 << 20));
/// ```
pub fn redistribution_bytes(
    ranks: usize,
    (rows, precision_bits): (usize, u32),
    (given_bytes, taken_bytes): (u64, u64),
) -> u64 {
    let column_words = rows.saturating_mul(1 + limbs_for(precision_bits.max(1)));
    message_bytes(ranks.max(1), column_words, given_bytes, taken_bytes)
}

/// Bytes of the messages of this rank of `group` during a redistribution of a matrix, or of one triangle, with
/// `precision_bits` bits: the fullest strip that it sends, and the fullest that it receives, as in
/// [`crate::distributed::DistMatrix::from_local`], [`crate::distributed::DistMatrix::fill_local`] and similar
/// functions. The number is computed without communication, and is exact if each entry is sent to one rank; for unknown
/// distributions use [`redistribution_bytes`].
///
/// ```
/// use sunzi::comm::local;
/// use sunzi::distributed::{Distribution, even_rows, travel_bytes};
/// let bytes = local::run(2, |rank| {
///     let (from, to) = (even_rows(4, 2, 2), Distribution::on_root(4, 2, 2, 0));
///     travel_bytes(rank, &from, &to, None, 128)
/// });
/// assert!(bytes[1] > 0); // two rows go from rank 1 to rank 0
/// ```
pub fn travel_bytes(
    group: &dyn Transport,
    from: &Distribution,
    to: &Distribution,
    triangle: Option<Uplo>,
    precision_bits: u32,
) -> u64 {
    let (rank, size, width) = (group.rank(), group.size(), limbs_for(precision_bits.max(1)));
    let part = triangle.map_or(Moved::All, Moved::Triangle);
    let owns = |distribution: &Distribution| {
        let mut owned = vec![false; distribution.cols];
        if let Some((_, number)) = distribution.numbers(rank) {
            distribution.col_deal().runs(number, 0..distribution.cols).flatten().for_each(|col| owned[col] = true);
        }
        owned
    };
    let (gives, takes, stays) = (owns(from), owns(to), rows_that_stay(rank, from, to));
    let rows_in = |of: &Distribution, rows: &Range<usize>| {
        of.local_before(rank, rows.end, 0).0 - of.local_before(rank, rows.start, 0).0
    };
    let takers = to.holders();
    let (numbers_down, numbers_across) = (to.row_deal().numbers, to.col_deal().numbers);
    let pairs = (0..numbers_down).flat_map(|row| (0..numbers_across).map(move |col| (row, col)));
    let copies = pairs.map(|(row, col)| takers.of(row, col).len()).max().unwrap_or(1);
    let strip = strip_columns(size, from.rows * (1 + width));
    let (mut given, mut taken) = (0, 0);
    for start in (0..from.cols).step_by(strip) {
        let (mut gives_here, mut takes_here) = (0, 0);
        for col in start..(start + strip).min(from.cols) {
            let rows = part.rows(col, from.rows);
            gives_here += if gives[col] { rows_in(from, &rows) } else { 0 };
            takes_here += if takes[col] { rows_in(to, &rows) } else { 0 };
            // Entries that stay are not received.
            takes_here -= if gives[col] && takes[col] { stays[rows.end] - stays[rows.start] } else { 0 };
        }
        (given, taken) = (given.max(gives_here), taken.max(takes_here));
    }
    ((given * copies + taken) * (1 + width) * 8) as u64
}

/// For each row index, the number of smaller indices whose rows this rank has in both distributions.
fn rows_that_stay(rank: usize, from: &Distribution, to: &Distribution) -> Vec<usize> {
    let mut stays = vec![0; from.rows + 1];
    let (Some((giver, _)), Some((taker, _))) = (from.numbers(rank), to.numbers(rank)) else { return stays };
    for run in to.row_deal().runs(taker, 0..to.rows) {
        from.row_deal().runs(giver, run).flatten().for_each(|row| stays[row + 1] = 1);
    }
    for row in 0..from.rows {
        stays[row + 1] += stays[row];
    }
    stays
}

/// Room for the words of a strip, sized by the fullest strip so far: strips follow each other, and fresh memory would
/// cost more than the transfer.
fn make_room(words: &mut Vec<u64>, needed: usize) {
    if words.len() < needed {
        *words = Vec::new(); // gone before there is more
        *words = vec![0; needed];
    }
}

/// The words of each rank in a strip; rank `r` has `counts[r]` of them.
fn cut<'a>(mut words: &'a mut [u64], counts: &[usize]) -> Vec<&'a mut [u64]> {
    let mut of = |&count: &usize| {
        let (own, rest) = std::mem::take(&mut words).split_at_mut(count);
        words = rest;
        own
    };
    counts.iter().map(&mut of).collect()
}

/// Where a rank's entries are read. Rows and columns are those of the whole matrix.
pub(crate) trait EntryReader {
    /// Fills `words` with the heads, then the limbs, `width` of them, of some rows of a column, which this rank has as
    /// one run.
    fn read(&self, rows: Range<usize>, col: usize, width: usize, words: &mut [u64]);
}

/// Where received entries are stored.
pub(crate) trait EntryWriter {
    /// Stores what [`EntryReader::read`] has put into `words`.
    fn write(&mut self, rows: Range<usize>, col: usize, words: &[u64]);
}

/// A move of a matrix.
pub(crate) struct Travel<'a> {
    pub from: &'a Distribution,
    pub to: &'a Distribution,
    /// The entries that move.
    pub part: Moved,
    /// The requested triangle, which decides the later moves: it must be the same on all ranks.
    pub asked: Option<Uplo>,
    /// Limbs of an entry in a message, not fewer than a source has.
    pub width: usize,
}

/// The messages of a strip to all ranks, rank by rank, and those from all ranks.
#[derive(Default)]
struct Letters {
    outgoing: Vec<u64>,
    incoming: Vec<u64>,
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
    /// The rows of a column that move, of `rows` rows.
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
    /// Moves the entries. Collective over `group`, whose ranks all pass the same arguments. Each entry travels once to
    /// each rank that gets it; memory: messages of 1 to 8 MiB to and from this rank, at least a column of the matrix.
    ///
    /// # Errors
    /// On every rank: [`Error::InvalidArgument`] for arguments that are not a distribution, and if ranks differ;
    /// [`Error::ShapeMismatch`] for distributions of different shapes. [`Error::Transport`].
    pub fn run(&self, group: &dyn Transport, source: &dyn EntryReader, target: &mut dyn EntryWriter) -> Result<()> {
        self.check(group)?;
        let (rows, cols) = (self.from.rows, self.from.cols);
        let strip = strip_columns(group.size(), rows * (1 + self.width));
        let mut letters = Letters::default();
        for start in (0..cols).step_by(strip) {
            self.move_columns(group, start..(start + strip).min(cols), source, target, &mut letters)?;
        }
        Ok(())
    }

    /// Refuses invalid arguments, with the same error on all ranks. Collective.
    fn check(&self, group: &dyn Transport) -> Result<()> {
        check_alike(group, self, "the ranks request different distributions or triangles of a matrix")?;
        // The next steps are the same on all ranks.
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
        source: &dyn EntryReader,
        target: &mut dyn EntryWriter,
        letters: &mut Letters,
    ) -> Result<()> {
        let (rank, size) = (group.rank(), group.size());
        let words_of = |rows: &Range<usize>| rows.len() * (1 + self.width);
        let (mut given, mut taken) = (vec![0; size], vec![0; size]);
        self.outgoing(rank, cols.clone(), &mut |to, rows, _| given[to] += words_of(&rows));
        self.incoming(rank, cols.clone(), &mut |from, rows, _| taken[from] += words_of(&rows));
        taken[rank] = 0; // what stays does not travel
        make_room(&mut letters.outgoing, given.iter().sum());
        make_room(&mut letters.incoming, taken.iter().sum());
        let mut free = cut(&mut letters.outgoing, &given);
        self.outgoing(rank, cols.clone(), &mut |to, rows, col| {
            let (run, rest) = std::mem::take(&mut free[to]).split_at_mut(words_of(&rows));
            source.read(rows, col, self.width, run);
            free[to] = rest;
        });
        let (outgoing, mut incoming) = (cut(&mut letters.outgoing, &given), cut(&mut letters.incoming, &taken));
        let sends = outgoing.iter().enumerate().filter(|(to, words)| *to != rank && !words.is_empty());
        let sends = sends.map(|(to, words)| Outgoing { to, words }).collect::<Vec<_>>();
        let receives = incoming.iter_mut().enumerate().filter(|(_, words)| !words.is_empty());
        group.exchange(&sends, &mut receives.map(|(from, words)| Incoming { from, words }).collect::<Vec<_>>())?;
        let mut rest = incoming.iter().map(|words| &**words).collect::<Vec<_>>();
        rest[rank] = &*outgoing[rank];
        self.incoming(rank, cols, &mut |from, rows, col| {
            let (words, after) = rest[from].split_at(words_of(&rows));
            rest[from] = after;
            target.write(rows, col, words);
        });
        Ok(())
    }

    /// The runs that this rank sends, with their receivers: in the order in which they arrive there.
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

    /// The runs that this rank receives, with their senders.
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

impl EntryReader for LocalSource<'_> {
    fn read(&self, rows: Range<usize>, col: usize, width: usize, words: &mut [u64]) {
        let (first, col) = (self.distribution.row_deal().local(rows.start), self.distribution.col_deal().local(col));
        read_run(&self.local, first..first + rows.len(), col, width, words);
    }
}

/// Fills `words` with the heads and the limbs of a run of one column.
pub(crate) fn read_run(view: &MatrixView<'_>, rows: Range<usize>, col: usize, width: usize, words: &mut [u64]) {
    let (own, zeros) = (view.limbs_per_element(), width - view.limbs_per_element());
    let (heads, limbs) = words.split_at_mut(rows.len());
    if view.row_stride() == 1 && zeros == 0 && !rows.is_empty() {
        let first = view.element_index(rows.start, col);
        let last = view.element_index(rows.end - 1, col);
        heads.copy_from_slice(&view.all_heads()[first..=last]);
        limbs.copy_from_slice(&view.all_limbs()[first * own..(last + 1) * own]);
        return;
    }
    for ((row, head), limbs) in rows.zip(heads).zip(limbs.chunks_exact_mut(width)) {
        *head = view.head(row, col).0;
        // The top limbs of a significand are the last ones.
        limbs[..zeros].fill(0);
        limbs[zeros..].copy_from_slice(view.get(row, col).limbs);
    }
}

/// A rank's part of a matrix, to be filled.
pub(crate) struct LocalTarget<'a> {
    pub distribution: &'a Distribution,
    pub local: MatrixViewMut<'a>,
}

impl EntryWriter for LocalTarget<'_> {
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
    use crate::comm::local;
    use crate::tile::{Along, GridOrder, RankGrid};

    #[test]
    fn messages_of_a_strip_keep_to_what_plans_count() {
        for ranks in [1, 2, 3, 7, 40, 1000] {
            // The last ones are those of 100,000 and more rows, where one column is longer than a strip.
            for column_words in [0, 1, 2, ranks, 2 * ranks - 1, 5000, 300_001, 40_000_000] {
                let words = (strip_columns(ranks, column_words) * column_words) as u64;
                let all = u64::MAX / 4;
                let planned = message_bytes(ranks, column_words, all, all);
                let ways = if ranks == 1 { 1 } else { 2 };
                assert!(8 * words * ways <= planned, "{ranks} ranks, columns of {column_words} words");
                assert!(words as usize <= most_words(ranks, column_words));
            }
        }
        assert_eq!(message_bytes(2, 300_000, u64::MAX / 4, 8), 8 * 300_000 + 8);
    }

    /// Run by run, for matrices of several strips.
    #[test]
    fn messages_are_counted_as_they_come() {
        let (ranks, bits, rows, cols) = (4, 64, 700, 800);
        let grid = RankGrid::for_ranks(ranks);
        let along = (Some(Along::GridRow), Some(Along::GridCol));
        let tiles = |tile_size| Distribution::of_tiles(&TileMap { rows, cols, tile_size, grid, triangle: None });
        let dealt = Distribution::entry_cyclic((rows, cols), (grid, GridOrder::ColumnMajor), along, (0, 0));
        let ways = [
            (dealt.clone(), tiles(64)),
            (tiles(48), dealt.clone()),
            (Distribution::on_root(rows, cols, ranks, 1), tiles(64)),
            (dealt, Distribution::row_blocks(vec![0, 10, 10, 400, rows], cols)),
        ];
        for ((from, to), triangle) in ways.iter().flat_map(|way| [None, Some(Uplo::Lower)].map(|part| (way, part))) {
            local::run(ranks, |group| {
                let (rank, width) = (group.rank(), limbs_for(bits));
                let part = triangle.map_or(Moved::All, Moved::Triangle);
                let travel = Travel { from, to, part, asked: triangle, width };
                let strip = strip_columns(ranks, rows * (1 + width));
                assert!(strip < cols, "several strips");
                let (mut given, mut taken) = (0, 0);
                for start in (0..cols).step_by(strip) {
                    let (mut out, mut come, range) = (0, 0, start..(start + strip).min(cols));
                    travel.outgoing(rank, range.clone(), &mut |_, rows, _| out += rows.len());
                    travel.incoming(rank, range, &mut |of, rows, _| come += if of == rank { 0 } else { rows.len() });
                    (given, taken) = (given.max(out), taken.max(come));
                }
                let words = (given + taken) * (1 + width);
                assert_eq!(travel_bytes(group, from, to, triangle, bits), 8 * words as u64, "{rank}: {from:?}, {to:?}");
            });
        }
    }
}
