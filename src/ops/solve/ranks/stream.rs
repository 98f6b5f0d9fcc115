//! The rows of a factor in tiles, brought to all ranks one piece after the other.

use crate::comm::Transport;
use crate::error::Result;
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::Matrix;
use crate::ops::distributed::DistMatrix;
use crate::ops::distribution::place::{Place, store, trade};
use crate::ops::solve::fixed::{RowPiece, TriangleRows};
use crate::ops::solve::ranks::factor::scaled_head;
use crate::tile::TileId;
use std::ops::Range;

/// Bytes that a stream holds at most for each row of a piece of a factor of `order` rows: the piece, and what travels.
pub(super) fn row_bytes(order: usize, factor_bits: u32) -> u64 {
    2 * Matrix::bytes_for(1, order, factor_bits)
}

/// What the pieces are taken from.
#[derive(Clone, Copy)]
pub(super) struct StreamSource<'a> {
    pub world: &'a dyn Transport,
    pub factor: &'a DistMatrix,
    /// Its diagonal, as a column.
    pub pivots: &'a Matrix,
    /// Row `i` of the factor is scaled by `2^-scale[i]`.
    pub scale: Option<&'a [i64]>,
}

impl StreamSource<'_> {
    /// Rows of the factor.
    pub fn order(&self) -> usize {
        self.factor.map().rows
    }

    /// Brings a part of the factor to every rank. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`].
    pub fn bring_to_all(&self, place: &Place, piece: &mut Matrix) -> Result<()> {
        piece.reshape(place.rows.len(), place.cols.len(), self.factor.precision_bits())?;
        for rank in 0..self.factor.map().grid.size() {
            let count = self.words_of(rank, place);
            if count == 0 {
                continue;
            }
            let mut words = if rank == self.factor.rank() { self.pack(place) } else { Vec::new() };
            words.resize(count, 0);
            self.world.broadcast(rank, &mut words)?;
            self.unpack(rank, &words, place, piece);
        }
        Ok(())
    }

    /// Brings to each rank a part of the factor of its own, `places` of them; `piece` is this rank's. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`].
    pub fn bring_shares(&self, places: impl Fn(usize) -> Place, piece: &mut Matrix) -> Result<()> {
        let (rank, ranks) = (self.world.rank(), self.world.size());
        let own = places(rank);
        piece.reshape(own.rows.len(), own.cols.len(), self.factor.precision_bits())?;
        self.unpack(rank, &self.pack(&own), &own, piece);
        // One message at a time each way, so that they take no more memory than a part.
        for distance in 1..ranks {
            let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
            let words = trade(self.world, (to, &self.pack(&places(to))), (from, self.words_of(from, &own)))?;
            self.unpack(from, &words, &own, piece);
        }
        Ok(())
    }

    /// What the tiles of a rank have of a place, tile by tile.
    fn parts_of(&self, rank: usize, place: &Place) -> impl Iterator<Item = (TileId, Place)> {
        let map = self.factor.map();
        let tiles = map.tiles_of(rank).filter(|id| id.col <= id.row);
        let parts = tiles.map(|id| (id, Place::of_tile(map, id).intersect(place)));
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// Words in which the tiles of a rank come that have a part of `place`.
    fn words_of(&self, rank: usize, place: &Place) -> usize {
        let width = 1 + limbs_for(self.factor.precision_bits());
        self.parts_of(rank, place).map(|(_, part)| part.entries() * width).sum()
    }

    /// Heads, scaled, and limbs of what this rank's tiles have of a place, tile by tile and column by column.
    fn pack(&self, place: &Place) -> Vec<u64> {
        let factor = self.factor;
        let count = self.words_of(factor.rank(), place);
        let mut words = Vec::with_capacity(count);
        for (id, part) in self.parts_of(factor.rank(), place) {
            let tile = factor.tile(id).expect("a tile of this rank");
            let ((heads, limbs), width) = (tile.parts(), tile.limbs_per_element());
            let inside = part.within(&Place::of_tile(factor.map(), id));
            let column = |col: usize| inside.rows.start + col * tile.rows()..inside.rows.end + col * tile.rows();
            for col in inside.cols.clone() {
                let rows = part.rows.clone().zip(&heads[column(col)]);
                words.extend(
                    rows.map(|(row, &head)| self.scale.map_or(head, |scale| scaled_head(Head(head), -scale[row]).0)),
                );
            }
            for col in inside.cols.clone() {
                let at = column(col);
                words.extend_from_slice(&limbs[at.start * width..at.end * width]);
            }
        }
        words
    }

    /// Takes what [`StreamSource::pack`] made on a rank.
    fn unpack(&self, rank: usize, words: &[u64], place: &Place, piece: &mut Matrix) {
        let (width, mut rest) = (1 + piece.limbs_per_element(), words);
        for (_, part) in self.parts_of(rank, place) {
            let (own, others) = rest.split_at(part.entries() * width);
            store(own.split_at(part.entries()), &part.within(place), piece);
            rest = others;
        }
    }
}

/// The rows of `L`, or of `L^T` reversed so that it is lower: all ranks ask for the same rows, in order.
///
/// Each piece is sent once to every rank, by those that own parts of it. Memory: twice the largest piece.
pub(super) struct Stream<'a> {
    source: StreamSource<'a>,
    reversed: bool,
    /// The pivots, scaled as the rows are.
    pivot_heads: Vec<u64>,
    piece: Matrix,
    /// Rows asked for so far, and rows of a piece.
    next: usize,
    piece_rows: usize,
}

impl<'a> Stream<'a> {
    /// The rows of `L`, or of `L^T` reversed.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(source: StreamSource<'a>, reversed: bool) -> Result<Stream<'a>> {
        let scale = |row: usize| source.scale.map_or(0, |scale| -scale[row]);
        let heads = source.pivots.parts().0.iter().enumerate();
        Ok(Stream {
            source,
            reversed,
            pivot_heads: heads.map(|(row, &head)| scaled_head(Head(head), scale(row)).0).collect(),
            piece: Matrix::zeros(0, 0, 2)?,
            next: 0,
            piece_rows: 0,
        })
    }

    /// The part of the factor that rows of the triangle lie in.
    fn place(&self, rows: &Range<usize>) -> Place {
        let order = self.source.order();
        match self.reversed {
            false => Place { rows: rows.clone(), cols: 0..rows.end },
            true => Place { rows: order - rows.end..order, cols: order - rows.end..order - rows.start },
        }
    }

    /// Brings some rows into `piece`. Collective.
    fn fetch(&mut self, rows: Range<usize>) -> Result<()> {
        assert_eq!(rows.start, self.next, "the rows come in order");
        self.next = rows.end;
        let place = self.place(&rows);
        self.source.bring_to_all(&place, &mut self.piece)
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
        self.piece = Matrix::zeros(piece_rows.min(order), order, precision_bits)?;
        Ok(())
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let first = rows.start;
        self.fetch(rows)?;
        let view = self.piece.view();
        let view = if self.reversed { view.reversed_rows().transposed().reversed_rows() } else { view };
        Ok(RowPiece { view, first })
    }

    /// Takes part in what is left, so that the ranks that still need it have it.
    fn finish(&mut self) -> Result<()> {
        let order = self.source.factor.map().rows;
        while self.next < order {
            self.fetch(self.next..(self.next + self.piece_rows).min(order))?;
        }
        self.piece = Matrix::zeros(0, 0, 2)?; // the other triangle's pieces count on its memory
        Ok(())
    }
}
