//! The rows of a factor in tiles, brought to all ranks one piece after the other.

use crate::comm::window::{Partition, SharedWindow, Shares};
use crate::comm::{Fence, Reduction, Transport, agree};
use crate::context::Context;
use crate::error::Result;
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::place::{Place, store, trade};
use crate::ops::distribution::team::{Ranks, close_all};
use crate::ops::solve::fixed::{RankOfNode, RowPiece, RowsFrom, SharedRows, TriangleRows};
use crate::ops::solve::ranks::factor::scaled_head;
use crate::ops::solve::ranks::strip::Strip;
use crate::tile::TileId;
use std::ops::Range;

/// Words of a message that brings entries, at most, or those of one entry: half a MiB. More would only take memory, and
/// would leave the caches between the copies at both ends.
const MESSAGE_WORDS: usize = 1 << 16;

/// Bytes of a piece of so many entries on its way: a message that comes in, and where there are other ranks one that
/// goes out.
pub(super) fn message_bytes((entries, factor_bits): (usize, u32), ranks: usize) -> u64 {
    let entry = Matrix::bytes_for(1, 1, factor_bits);
    let most = (MESSAGE_WORDS as u64 * 8).max(entry);
    ranks.min(2) as u64 * most.min(entry.saturating_mul(entries as u64))
}

/// What the pieces are taken from.
#[derive(Clone, Copy)]
pub(super) struct StreamSource<'a> {
    pub world: &'a dyn Transport,
    /// Those ranks, and how they lie on nodes.
    pub team: &'a Team,
    pub factor: &'a DistMatrix,
    /// Its diagonal, as a column.
    pub pivots: &'a Matrix,
    /// Row `i` of the factor is scaled by `2^-scale[i]`.
    pub scale: Option<&'a [i64]>,
    /// Whether this rank has a memory limit.
    pub limited: bool,
}

impl StreamSource<'_> {
    /// Words of so many entries on their way.
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
    pub fn bring_to_all(&self, place: &Place, piece: &mut Matrix, letters: &mut Letters) -> Result<()> {
        piece.reshape(place.rows.len(), place.cols.len(), self.factor.precision_bits())?;
        for part in self.parts(place) {
            for rank in 0..self.factor.map().grid.size() {
                let count = self.words_of(rank, &part);
                if count == 0 {
                    continue;
                }
                if rank == self.factor.rank() {
                    self.pack(&part, &mut letters.incoming);
                }
                let words = sized(&mut letters.incoming, count);
                self.world.broadcast(rank, words)?;
                self.unpack(rank, words, (&part, place), piece);
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
        places: impl Fn(usize) -> Place,
        piece: &mut Matrix,
        Letters { incoming, outgoing }: &mut Letters,
    ) -> Result<()> {
        let (rank, ranks) = (self.world.rank(), self.world.size());
        let own = places(rank);
        piece.reshape(own.rows.len(), own.cols.len(), self.factor.precision_bits())?;
        self.copy_own(&own, piece);
        // One message at a time each way: the one of a rank meets that of the same number of the other.
        let own_parts = self.parts(&own);
        for distance in 1..ranks {
            let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
            let parts = self.parts(&places(to));
            for at in 0..parts.len().max(own_parts.len()) {
                match parts.get(at) {
                    Some(part) => self.pack(part, outgoing),
                    None => outgoing.clear(),
                }
                let count = own_parts.get(at).map_or(0, |part| self.words_of(from, part));
                let words = sized(incoming, count);
                trade(self.world, (to, outgoing), (from, words))?;
                if let Some(part) = own_parts.get(at) {
                    self.unpack(from, words, (part, &own), piece);
                }
            }
        }
        Ok(())
    }

    /// A place in parts of which no rank has more entries than fit a message.
    pub(super) fn parts(&self, place: &Place) -> Vec<Place> {
        let (size, grid) = (self.factor.map().tile_size, self.factor.map().grid);
        let most = (MESSAGE_WORDS / self.words_for(1)).max(1);
        let rows = longest(most, size, grid.rows).min(place.rows.len()).max(1);
        let cuts = |range: &Range<usize>, step: usize| {
            let end = range.end;
            range.clone().step_by(step).map(move |start| start..(start + step).min(end))
        };
        let cols = cuts(&place.cols, longest(most / most_of_one(rows, size, grid.rows), size, grid.cols).max(1));
        cols.flat_map(|cols| cuts(&place.rows, rows).map(move |rows| Place { rows, cols: cols.clone() })).collect()
    }

    /// What the tiles of a rank have of a place, tile by tile.
    pub(super) fn parts_of(&self, rank: usize, place: &Place) -> impl Iterator<Item = (TileId, Place)> {
        let map = self.factor.map();
        let own = self.tiles_of(place).filter(move |id| map.owner(*id) == rank);
        let parts = own.map(|id| (id, Place::of_tile(map, id).intersect(place)));
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// The tiles that have a part of a place, column by column.
    pub(super) fn tiles_of(&self, place: &Place) -> impl Iterator<Item = TileId> + use<> {
        let size = self.factor.map().tile_size;
        let tiles = |range: &Range<usize>| range.start / size..range.end.div_ceil(size);
        let (rows, cols) = (tiles(&place.rows), tiles(&place.cols));
        let ids = cols.flat_map(move |col| rows.clone().map(move |row| TileId { row, col }));
        ids.filter(|id| id.col <= id.row)
    }

    /// Words in which the tiles of a rank come that have a part of `place`.
    pub(super) fn words_of(&self, rank: usize, place: &Place) -> usize {
        let width = 1 + limbs_for(self.factor.precision_bits());
        self.parts_of(rank, place).map(|(_, part)| part.entries() * width).sum()
    }

    /// Copies what this rank's tiles have of a place, heads scaled, into a piece for that place.
    fn copy_own(&self, place: &Place, piece: &mut Matrix) {
        let (factor, height, width) = (self.factor, piece.rows(), piece.limbs_per_element());
        let (all_heads, all_limbs) = piece.parts_mut();
        for (id, part) in self.parts_of(factor.rank(), place) {
            let tile = factor.tile(id).expect("a tile of this rank");
            let (heads, limbs) = tile.parts();
            let (from, to) = (part.within(&Place::of_tile(factor.map(), id)), part.within(place));
            for (from_col, to_col) in from.cols.zip(to.cols) {
                let source = from.rows.start + from_col * tile.rows()..from.rows.end + from_col * tile.rows();
                let target = to.rows.start + to_col * height..to.rows.end + to_col * height;
                let rows = part.rows.clone().zip(&heads[source.clone()]);
                all_heads[target.clone()].iter_mut().zip(rows).for_each(|(to, (row, &head))| {
                    *to = self.scaled(row, head);
                });
                all_limbs[target.start * width..target.end * width]
                    .copy_from_slice(&limbs[source.start * width..source.end * width]);
            }
        }
    }

    /// A head of row `row` of the factor, scaled.
    pub(super) fn scaled(&self, row: usize, head: u64) -> u64 {
        self.scale.map_or(head, |scale| scaled_head(Head(head), -scale[row]).0)
    }

    /// Heads, scaled, and limbs of what this rank's tiles have of a place, tile by tile and column by column.
    pub(super) fn pack(&self, place: &Place, words: &mut Vec<u64>) {
        let factor = self.factor;
        words.clear();
        words.reserve_exact(self.words_of(factor.rank(), place));
        for (id, part) in self.parts_of(factor.rank(), place) {
            let tile = factor.tile(id).expect("a tile of this rank");
            let ((heads, limbs), width) = (tile.parts(), tile.limbs_per_element());
            let inside = part.within(&Place::of_tile(factor.map(), id));
            let column = |col: usize| inside.rows.start + col * tile.rows()..inside.rows.end + col * tile.rows();
            for col in inside.cols.clone() {
                let rows = part.rows.clone().zip(&heads[column(col)]);
                words.extend(rows.map(|(row, &head)| self.scaled(row, head)));
            }
            for col in inside.cols.clone() {
                let at = column(col);
                words.extend_from_slice(&limbs[at.start * width..at.end * width]);
            }
        }
    }

    /// Takes what [`StreamSource::pack`] made of a part on a rank, into a piece for a place around it.
    fn unpack(&self, rank: usize, words: &[u64], (part, place): (&Place, &Place), piece: &mut Matrix) {
        let (width, mut rest) = (1 + piece.limbs_per_element(), words);
        for (_, part) in self.parts_of(rank, part) {
            let (own, others) = rest.split_at(part.entries() * width);
            store(own.split_at(part.entries()), &part.within(place), piece);
            rest = others;
        }
    }
}

/// Most indices that one of so many ranks has of `length` consecutive ones, dealt out in blocks of `size`.
fn most_of_one(length: usize, size: usize, ranks: usize) -> usize {
    length / (size * ranks) * size + (length % (size * ranks)).min(size)
}

/// The longest range of which no rank has more than `most`, wherever it begins.
fn longest(most: usize, size: usize, ranks: usize) -> usize {
    if ranks == 1 { most } else { most / size * size * ranks + most % size }
}

/// A piece of the factor as rows of the triangle.
fn in_order(view: MatrixView<'_>, reversed: bool) -> MatrixView<'_> {
    if reversed { view.reversed_rows().transposed().reversed_rows() } else { view }
}

/// What travels, kept from piece to piece: memory that is fresh each time costs more than the way.
#[derive(Default)]
pub(super) struct Letters {
    pub(super) incoming: Vec<u64>,
    pub(super) outgoing: Vec<u64>,
}

/// Room for `count` words in all.
fn reserve(words: &mut Vec<u64>, count: usize) {
    words.reserve_exact(count.saturating_sub(words.len()));
}

/// The first `count` words, made where they are not there.
pub(super) fn sized(words: &mut Vec<u64>, count: usize) -> &mut [u64] {
    if words.capacity() < count {
        words.clear(); // nothing is worth a copy
        words.reserve_exact(count);
    }
    if words.len() < count {
        words.resize(count, 0);
    }
    &mut words[..count]
}

/// The rows of `L`, or of `L^T` reversed so that it is lower: all ranks ask for the same rows, in order.
///
/// Each piece is sent once to every rank, by those that own parts of it, or where the ranks of a node make tiles
/// together, once to each node. Memory: the largest piece, and what travels.
pub(super) struct Stream<'a> {
    ctx: &'a Context,
    source: StreamSource<'a>,
    reversed: bool,
    /// The pivots, scaled as the rows are.
    pivot_heads: Vec<u64>,
    piece: Matrix,
    letters: Letters,
    /// Rows asked for so far, and rows of a piece.
    next: usize,
    piece_rows: usize,
    /// Where the ranks of this node put the entries of a row of tiles, and the tiles that they make together.
    windows: Option<[SharedWindow; 2]>,
    /// What lies in the first of them, from a row and a column of the triangle on.
    strip: Strip,
    first: (usize, usize),
}

impl<'a> Stream<'a> {
    /// The rows of `L`, or of `L^T` reversed.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(ctx: &'a Context, source: StreamSource<'a>, reversed: bool) -> Result<Stream<'a>> {
        let scale = |row: usize| source.scale.map_or(0, |scale| -scale[row]);
        let heads = source.pivots.parts().0.iter().enumerate();
        Ok(Stream {
            ctx,
            source,
            reversed,
            pivot_heads: heads.map(|(row, &head)| scaled_head(Head(head), scale(row)).0).collect(),
            piece: Matrix::zeros(0, 0, 2)?,
            letters: Letters::default(),
            next: 0,
            piece_rows: 0,
            windows: None,
            strip: Strip::new(Place { rows: 0..0, cols: 0..0 }, 0),
            first: (0, 0),
        })
    }

    /// The part of the factor that some rows and columns of the triangle lie in.
    fn place(&self, rows: &Range<usize>, cols: Range<usize>) -> Place {
        let turned = |range: Range<usize>| self.source.order() - range.end..self.source.order() - range.start;
        match self.reversed {
            false => Place { rows: rows.clone(), cols },
            true => Place { rows: turned(cols), cols: turned(rows.clone()) },
        }
    }

    /// Brings some rows into `piece`. Collective.
    fn fetch(&mut self, rows: Range<usize>) -> Result<()> {
        assert_eq!(rows.start, self.next, "the rows come in order");
        self.next = rows.end;
        let place = self.place(&rows, 0..rows.end);
        self.source.bring_to_all(&place, &mut self.piece, &mut self.letters)
    }
}

impl TriangleRows for Stream<'_> {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        let at = if self.reversed { self.pivot_heads.len() - 1 - row } else { row };
        FloatRef { head: Head(self.pivot_heads[at]), limbs: self.source.pivots.get(at, 0).limbs }
    }

    fn begin(&mut self, piece_rows: usize) -> Result<()> {
        let (order, precision_bits) = (self.source.factor.map().rows, self.source.factor.precision_bits());
        (self.next, self.piece_rows) = (0, piece_rows);
        self.take_kept();
        self.piece.reshape(piece_rows.min(order), order, precision_bits)?;
        // Pieces grow from row to row.
        reserve(&mut self.letters.incoming, self.source.words_for(piece_rows.min(order) * order).min(MESSAGE_WORDS));
        Ok(())
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let first = rows.start;
        self.fetch(rows)?;
        Ok(RowPiece { view: in_order(self.piece.view(), self.reversed), first, first_col: 0 })
    }

    /// Takes part in what is left, so that the ranks that still need it have it.
    fn finish(&mut self) -> Result<()> {
        let order = self.source.order();
        while self.next < order {
            self.fetch(self.next..(self.next + self.piece_rows).min(order))?;
        }
        self.free();
        Ok(())
    }

    fn together(&mut self) -> Option<&mut dyn SharedRows> {
        Some(self)
    }
}

impl Stream<'_> {
    /// Takes the memory of an earlier pass, where there is no limit.
    fn take_kept(&mut self) {
        if !self.source.limited {
            let mut workspace = self.ctx.workspace();
            self.piece = std::mem::take(&mut workspace.piece);
            let [incoming, outgoing] = std::mem::take(&mut workspace.letters);
            self.letters = Letters { incoming, outgoing };
        }
    }

    /// Leaves all memory to the next pass, or gives it back where a limit counts it for others.
    fn free(&mut self) {
        let Letters { incoming, outgoing } = std::mem::take(&mut self.letters);
        let piece = std::mem::take(&mut self.piece);
        if !self.source.limited {
            let mut workspace = self.ctx.workspace();
            (workspace.piece, workspace.letters) = (piece, [incoming, outgoing]);
        }
    }
}

impl SharedRows for Stream<'_> {
    fn ranks(&self) -> Ranks<'_> {
        self.source.team.ranks()
    }

    fn begin(&mut self, piece_entries: usize, tile_words: usize) -> Result<()> {
        let team = self.source.team;
        self.next = self.source.order(); // no rank asks for what is left
        self.take_kept();
        let opened = team.take_solve_windows([self.source.words_for(piece_entries), tile_words]);
        if team.layout().nodes.len() > 1 {
            let words = self.source.words_for(piece_entries).min(MESSAGE_WORDS);
            let Letters { incoming, outgoing } = &mut self.letters;
            [incoming, outgoing].into_iter().for_each(|letter| reserve(letter, words));
        }
        let outcome = agree(team.world(), opened.map(|windows| self.windows = Some(windows)));
        if outcome.is_err() {
            self.end()?;
        }
        outcome
    }

    fn share(&mut self, from: RowsFrom<'_>, cols: &dyn Fn(RankOfNode) -> Range<usize>) -> Result<()> {
        let team = self.source.team;
        let Ranks { node, layout, .. } = team.ranks();
        let RowsFrom { rows, first_col } = from;
        let mut letters = std::mem::take(&mut self.letters);
        let mut windows = self.windows.take().expect("a pass has begun");
        let places = |rank: usize| {
            let (rank, ranks) = (layout.local_of[rank], layout.nodes[layout.node_of[rank]].len());
            self.place(rows, cols(RankOfNode { rank, ranks }))
        };
        let place = self.place(rows, first_col..rows.end);
        let parts = self.source.writers(&place, &places);
        let strip = Strip::new(place, limbs_for(self.source.factor.precision_bits()));
        let partition = strip.partition(node.size(), &parts);
        let shares = windows[0].write(&Fence::new(node), Ok(()), &partition);
        let filled = shares.and_then(|shares| {
            let writer = strip.writer(node.rank(), &partition, shares);
            self.source.fill((&strip, writer), &places, &mut letters)
        });
        (self.letters, self.windows) = (letters, Some(windows));
        (self.strip, self.first) = (strip, (rows.start, first_col));
        filled
    }

    fn making<'a>(&'a mut self, partition: &'a Partition) -> Result<(RowPiece<'a>, Shares<'a>)> {
        let [entries, tiles] = self.windows.as_mut().expect("a pass has begun");
        let fence = Fence::new(self.source.team.node());
        let (words, shares) = tiles.write_from(entries, &fence, Ok(()), partition)?;
        let view = in_order(self.strip.view(words, self.source.factor.precision_bits())?, self.reversed);
        Ok((RowPiece { view, first: self.first.0, first_col: self.first.1 }, shares))
    }

    fn window(&mut self) -> (&mut SharedWindow, Fence<'_>) {
        let [_, tiles] = self.windows.as_mut().expect("a pass has begun");
        (tiles, Fence::new(self.source.team.node()))
    }

    fn end(&mut self) -> Result<()> {
        let team = self.source.team;
        let mut limited = [u64::from(self.source.limited)];
        team.node().all_reduce(Reduction::Max, &mut limited)?;
        let closed = match self.windows.take() {
            Some(windows) if limited[0] == 0 => {
                team.keep_solve_windows(windows);
                Ok(())
            }
            Some(windows) => close_all(windows),
            None => Ok(()),
        };
        self.free();
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
