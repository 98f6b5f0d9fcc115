//! The entries of a factor in tiles, and the transfer of pieces of it to the ranks that need them, or into a window
//! that the ranks of a node read as one matrix.
//!
//! In a window heads come first, column by column, then limbs, column by column.

use crate::comm::window::{Level, Partition, Run, Shares};
use crate::comm::{Incoming, Outgoing, Transport};
use crate::error::Result;
use crate::math::float::{Head, limbs_for};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::rect::{Rect, trade, unpack};
use crate::ops::distribution::travel::most_of_one;
use crate::ops::solve::triangle::scaled_head;
use crate::tile::TileId;
use std::ops::Range;

/// Words of a message that brings entries, at most, or those of one entry: half a MiB. More would only take memory, and
/// would leave the caches between the copies at both ends.
pub(super) const MESSAGE_WORDS: usize = 1 << 16;

/// Bytes of messages for a piece of `entries` entries: an incoming message, and where there are other ranks an outgoing
/// one.
pub(super) fn message_bytes(entries: usize, factor_bits: u32, ranks: usize) -> u64 {
    let entry = Matrix::bytes_for(1, 1, factor_bits);
    let most = (MESSAGE_WORDS as u64 * 8).max(entry);
    ranks.min(2) as u64 * most.min(entry.saturating_mul(entries as u64))
}

/// The source of the pieces.
#[derive(Clone, Copy)]
pub(super) struct StreamSource<'a> {
    /// The ranks that have parts of the factor.
    pub team: &'a Team,
    pub factor: &'a DistMatrix,
    /// Row `i` of the factor is scaled by `2^-scale[i]`.
    pub scale: Option<&'a [i64]>,
}

impl StreamSource<'_> {
    /// Words of a message with `entries` entries.
    pub(super) fn words_for(&self, entries: usize) -> usize {
        entries * (1 + limbs_for(self.factor.precision_bits()))
    }

    /// Rows of the factor.
    pub fn order(&self) -> usize {
        self.factor.map().rows
    }

    /// Brings a part of the factor to every rank. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`].
    pub fn bring_to_all(&self, place: &Rect, piece: &mut Matrix, buffers: &mut MessageBuffers) -> Result<()> {
        piece.reshape(place.rows.len(), place.cols.len(), self.factor.precision_bits())?;
        for part in self.parts(place) {
            for rank in 0..self.factor.map().grid.size() {
                let count = self.words_of(rank, &part);
                if count == 0 {
                    continue;
                }
                if rank == self.factor.rank() {
                    self.pack(&part, &mut buffers.incoming);
                }
                let words = sized(&mut buffers.incoming, count);
                self.team.world().broadcast(rank, words)?;
                self.unpack(rank, words, &part, place, piece);
            }
        }
        Ok(())
    }

    /// Brings to each rank a part of the factor of its own, `places` of them; `piece` is this rank's. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`].
    pub fn bring_shares(
        &self,
        places: impl Fn(usize) -> Rect,
        piece: &mut Matrix,
        buffers: &mut MessageBuffers,
    ) -> Result<()> {
        let own = places(self.team.rank());
        piece.reshape(own.rows.len(), own.cols.len(), self.factor.precision_bits())?;
        self.copy_own(&own, piece);
        let parts_for = |reader: usize, _: usize| self.parts(&places(reader));
        self.trade_parts(&parts_for, buffers, &mut |from, part, words| self.unpack(from, words, part, &own, piece))
    }

    /// Sends to each rank this rank's entries of `parts_for(that rank, this one)`, and passes the parts received from
    /// each other rank to `take`: the rank, the part, and the words of [`StreamSource::pack`]. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn trade_parts(
        &self,
        parts_for: &dyn Fn(usize, usize) -> Vec<Rect>,
        MessageBuffers { incoming, outgoing }: &mut MessageBuffers,
        take: &mut dyn FnMut(usize, &Rect, &[u64]),
    ) -> Result<()> {
        let (rank, ranks) = (self.team.rank(), self.team.size());
        // One message at a time each way: message `k` of a rank pairs with message `k` of the other.
        for distance in 1..ranks {
            let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
            let (parts, own_parts) = (parts_for(to, rank), parts_for(rank, from));
            for at in 0..parts.len().max(own_parts.len()) {
                match parts.get(at) {
                    Some(part) => self.pack(part, outgoing),
                    None => outgoing.clear(),
                }
                let count = own_parts.get(at).map_or(0, |part| self.words_of(from, part));
                let words = sized(incoming, count);
                trade(self.team.world(), Outgoing { to, words: outgoing }, Incoming { from, words })?;
                if let Some(part) = own_parts.get(at) {
                    take(from, part, words);
                }
            }
        }
        Ok(())
    }

    /// A place in parts of which no rank has more entries than fit a message.
    fn parts(&self, place: &Rect) -> Vec<Rect> {
        let (size, grid) = (self.factor.map().tile_size, self.factor.map().grid);
        let most = (MESSAGE_WORDS / self.words_for(1)).max(1);
        let rows = longest(most, size, grid.rows).min(place.rows.len()).max(1);
        let cuts = |range: &Range<usize>, step: usize| {
            let end = range.end;
            range.clone().step_by(step).map(move |start| start..(start + step).min(end))
        };
        let cols = cuts(&place.cols, longest(most / most_of_one(rows, size, grid.rows), size, grid.cols).max(1));
        cols.flat_map(|cols| cuts(&place.rows, rows).map(move |rows| Rect { rows, cols: cols.clone() })).collect()
    }

    /// The parts of a place in the tiles of a rank, tile by tile.
    fn parts_of(&self, rank: usize, place: &Rect) -> impl Iterator<Item = (TileId, Rect)> {
        let map = self.factor.map();
        let own = self.tiles_of(place).filter(move |id| map.owner(*id) == rank);
        let parts = own.map(|id| (id, Rect::of_tile(map, id).intersect(place)));
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// The tiles that have a part of a place, column by column.
    fn tiles_of(&self, place: &Rect) -> impl Iterator<Item = TileId> + use<> {
        let size = self.factor.map().tile_size;
        let tiles = |range: &Range<usize>| range.start / size..range.end.div_ceil(size);
        let (rows, cols) = (tiles(&place.rows), tiles(&place.cols));
        let ids = cols.flat_map(move |col| rows.clone().map(move |row| TileId { row, col }));
        ids.filter(|id| id.col <= id.row)
    }

    /// Words of the message with a rank's tiles that have a part of `place`.
    fn words_of(&self, rank: usize, place: &Rect) -> usize {
        let width = 1 + limbs_for(self.factor.precision_bits());
        self.parts_of(rank, place).map(|(_, part)| part.entries() * width).sum()
    }

    /// The parts of a place in this rank's tiles, tile by tile, with their entries.
    fn own_parts(&self, place: &Rect) -> impl Iterator<Item = (Rect, StripEntries<'_>)> {
        self.parts_of(self.factor.rank(), place).map(move |(id, part)| {
            let tile = self.factor.tile(id).expect("a tile of this rank");
            let ((heads, limbs), stride) = (tile.parts(), tile.rows());
            let inside = part.within(&Rect::of_tile(self.factor.map(), id));
            let first = inside.rows.start + inside.cols.start * stride;
            (part, StripEntries { heads, limbs, first, stride })
        })
    }

    /// Copies the part of a place that lies in this rank's tiles, heads scaled, into a piece for that place.
    fn copy_own(&self, place: &Rect, piece: &mut Matrix) {
        let (height, width) = (piece.rows(), piece.limbs_per_element());
        let (all_heads, all_limbs) = piece.parts_mut();
        for (part, from) in self.own_parts(place) {
            let to = part.within(place);
            for (index, col) in to.cols.enumerate() {
                let source = from.column(index, part.rows.len());
                let target = to.rows.start + col * height..to.rows.end + col * height;
                let rows = part.rows.clone().zip(&from.heads[source.clone()]);
                all_heads[target.clone()].iter_mut().zip(rows).for_each(|(to, (row, &head))| {
                    *to = self.scaled(row, head);
                });
                all_limbs[target.start * width..target.end * width]
                    .copy_from_slice(&from.limbs[source.start * width..source.end * width]);
            }
        }
    }

    /// A head of row `row` of the factor, scaled.
    fn scaled(&self, row: usize, head: u64) -> u64 {
        self.scale.map_or(head, |scale| scaled_head(Head(head), -scale[row]).0)
    }

    /// Heads, scaled, and limbs of the part of a place that lies in this rank's tiles, tile by tile and column by
    /// column.
    fn pack(&self, place: &Rect, words: &mut Vec<u64>) {
        let (factor, width) = (self.factor, limbs_for(self.factor.precision_bits()));
        words.clear();
        words.reserve_exact(self.words_of(factor.rank(), place));
        for (part, from) in self.own_parts(place) {
            let columns = (0..part.cols.len()).map(|index| from.column(index, part.rows.len()));
            for at in columns.clone() {
                let rows = part.rows.clone().zip(&from.heads[at]);
                words.extend(rows.map(|(row, &head)| self.scaled(row, head)));
            }
            columns.for_each(|at| words.extend_from_slice(&from.limbs[at.start * width..at.end * width]));
        }
    }

    /// Unpacks the words that [`StreamSource::pack`] made of a part on a rank, into a piece for a place around it.
    fn unpack(&self, rank: usize, words: &[u64], part: &Rect, place: &Rect, piece: &mut Matrix) {
        let (width, mut rest) = (1 + piece.limbs_per_element(), words);
        for (_, part) in self.parts_of(rank, part) {
            let (own, others) = rest.split_at(part.entries() * width);
            unpack(own, &part.within(place), piece);
            rest = others;
        }
    }

    /// The ranks that write the parts of `place` on this rank's node: the owner of a part, or where that is on another
    /// node, the rank whose `places` contain it.
    pub fn writers(&self, place: &Rect, places: &dyn Fn(usize) -> Rect) -> Vec<WrittenPart> {
        let layout = self.team.layout();
        let here = layout.node_of[self.team.rank()];
        let mut writers = Vec::new();
        for id in self.tiles_of(place) {
            let (map, part) = (self.factor.map(), Rect::of_tile(self.factor.map(), id).intersect(place));
            let rank = map.owner(id);
            if layout.node_of[rank] == here {
                writers.push(WrittenPart { part, rank: layout.local_of[rank] });
                continue;
            }
            let own = |&to: &usize| WrittenPart { part: part.intersect(&places(to)), rank: layout.local_of[to] };
            writers.extend(layout.nodes[here].iter().map(own));
        }
        writers.retain(|written| !written.part.is_empty());
        writers
    }

    /// Writes the part of a strip that lies in this rank's tiles, and the entries that arrive from other nodes for its
    /// own one of `places`. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn fill(
        &self,
        mut writer: StripWriter<'_>,
        places: &dyn Fn(usize) -> Rect,
        buffers: &mut MessageBuffers,
    ) -> Result<()> {
        for (part, entries) in self.own_parts(writer.strip().place()) {
            writer.write(&part, entries, |row, head| self.scaled(row, head));
        }
        let node_of = &self.team.layout().node_of;
        let parts_for = |reader: usize, other: usize| match node_of[reader] == node_of[other] {
            true => Vec::new(),
            false => self.parts(&places(reader)),
        };
        self.trade_parts(&parts_for, buffers, &mut |from, part, mut words| {
            for (_, part) in self.parts_of(from, part) {
                let (own, rest) = words.split_at(self.words_for(part.entries()));
                let (heads, limbs) = own.split_at(part.entries());
                writer.write(&part, StripEntries { heads, limbs, first: 0, stride: part.rows.len() }, |_, head| head);
                words = rest;
            }
        })
    }
}

/// Gives all ranks the part of a matrix that `rank` has. Collective.
///
/// # Errors
/// [`crate::Error::Transport`].
pub(super) fn broadcast_part(world: &dyn Transport, rank: usize, place: &Rect, matrix: &mut Matrix) -> Result<()> {
    let count = place.entries() * (1 + matrix.limbs_per_element());
    let mut words = Vec::with_capacity(count);
    if rank == world.rank() {
        // Nothing may fail here: the other ranks wait for the words.
        let ((heads, limbs), width, stride) = (matrix.parts(), matrix.limbs_per_element(), matrix.rows());
        let columns = place.cols.clone().map(|col| place.rows.start + col * stride..place.rows.end + col * stride);
        columns.clone().for_each(|at| words.extend_from_slice(&heads[at]));
        columns.for_each(|at| words.extend_from_slice(&limbs[at.start * width..at.end * width]));
    }
    words.resize(count, 0);
    world.broadcast(rank, &mut words)?;
    if rank != world.rank() {
        unpack(&words, place, matrix);
    }
    Ok(())
}

/// The longest range of which no rank has more than `most`, wherever it begins.
fn longest(most: usize, size: usize, ranks: usize) -> usize {
    if ranks == 1 { most } else { most / size * size * ranks + most % size }
}

/// Message buffers, kept from piece to piece: fresh memory for each would cost more than the transfer.
#[derive(Default)]
pub(super) struct MessageBuffers {
    pub(super) incoming: Vec<u64>,
    pub(super) outgoing: Vec<u64>,
}

/// Room for `count` words in all.
pub(super) fn reserve(words: &mut Vec<u64>, count: usize) {
    words.reserve_exact(count.saturating_sub(words.len()));
}

/// The first `count` words, made where they are not there.
fn sized(words: &mut Vec<u64>, count: usize) -> &mut [u64] {
    if words.capacity() < count {
        words.clear(); // nothing is worth a copy
        words.reserve_exact(count);
    }
    if words.len() < count {
        words.resize(count, 0);
    }
    &mut words[..count]
}

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

impl StripEntries<'_> {
    /// The indices of a column, of `rows` rows.
    fn column(&self, index: usize, rows: usize) -> Range<usize> {
        let start = self.first + index * self.stride;
        start..start + rows
    }
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

    /// Writes a part of the matrix; `head` computes each head from the row and the head in `from`.
    pub fn write(&mut self, part: &Rect, from: StripEntries<'_>, head: impl Fn(usize, u64) -> u64) {
        let WindowStrip { place, width } = self.strip;
        let (inside, height, width) = (part.within(place), place.rows.len(), *width);
        for (index, col) in inside.cols.clone().enumerate() {
            let source = from.column(index, inside.rows.len());
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

    #[test]
    fn ranges_are_as_long_as_a_message_allows() {
        for (size, ranks) in [(8, 1), (8, 2), (8, 3), (16, 5), (64, 2)] {
            // Counted one by one, from every start.
            let counted = |length: usize| {
                let of =
                    |start: usize, rank: usize| (start..start + length).filter(|at| at / size % ranks == rank).count();
                (0..size * ranks).flat_map(|start| (0..ranks).map(move |rank| of(start, rank))).max().unwrap()
            };
            for length in 0..3 * size * ranks {
                assert_eq!(
                    most_of_one(length, size, ranks),
                    counted(length),
                    "{length} in blocks of {size} on {ranks}"
                );
            }
            for most in 0..3 * size {
                let length = longest(most, size, ranks);
                assert!(counted(length) <= most && counted(length + 1) > most, "{most}, blocks of {size} on {ranks}");
            }
        }
    }

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
