//! The rows of a factor in tiles, brought to all ranks one piece after the other.

use crate::comm::Transport;
use crate::error::Result;
use crate::math::float::{FloatRef, Head};
use crate::matrix::Matrix;
use crate::ops::distributed::DistMatrix;
use crate::ops::distributed::solve::factor::scaled_head;
use crate::ops::distribution::place::{Place, store};
use crate::ops::trsm::fixed::{RowPiece, TriangleRows};
use crate::tile::TileId;
use std::ops::Range;

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

/// The rows of `L`, or of `L^T` turned so that it is lower: all ranks ask for the same rows, in order.
///
/// Each piece is sent once to every rank, by those that own parts of it. Memory: twice the largest piece.
pub(super) struct Stream<'a> {
    source: StreamSource<'a>,
    turned: bool,
    /// The pivots, scaled as the rows are.
    pivot_heads: Vec<u64>,
    piece: Matrix,
    /// Rows asked for so far, and rows of a piece.
    next: usize,
    piece_rows: usize,
}

impl<'a> Stream<'a> {
    /// A stream from the first row on, in pieces of `piece_rows`.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(source: StreamSource<'a>, turned: bool, piece_rows: usize) -> Result<Stream<'a>> {
        let (order, precision_bits) = (source.factor.map().rows, source.factor.precision_bits());
        let scale = |row: usize| source.scale.map_or(0, |scale| -scale[row]);
        let heads = source.pivots.parts().0.iter().enumerate();
        Ok(Stream {
            source,
            turned,
            pivot_heads: heads.map(|(row, &head)| scaled_head(Head(head), scale(row)).0).collect(),
            piece: Matrix::zeros(piece_rows.min(order), order, precision_bits)?,
            next: 0,
            piece_rows,
        })
    }

    /// Bytes that a stream holds at most.
    pub fn bytes(factor: &DistMatrix, piece_rows: usize) -> u64 {
        2 * Matrix::bytes_for(piece_rows, factor.map().rows, factor.precision_bits())
    }

    /// Takes part in what is left, so that the ranks that still need it have it. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn finish(&mut self) -> Result<()> {
        let order = self.source.factor.map().rows;
        while self.next < order {
            self.fetch(self.next..(self.next + self.piece_rows).min(order))?;
        }
        Ok(())
    }

    /// The part of the factor that rows of the triangle lie in.
    fn place(&self, rows: &Range<usize>) -> Place {
        let order = self.source.factor.map().rows;
        match self.turned {
            false => Place { rows: rows.clone(), cols: 0..rows.end },
            true => Place { rows: order - rows.end..order, cols: order - rows.end..order - rows.start },
        }
    }

    /// Brings some rows into `piece`. Collective.
    fn fetch(&mut self, rows: Range<usize>) -> Result<()> {
        assert_eq!(rows.start, self.next, "the rows come in order");
        self.next = rows.end;
        let (place, factor) = (self.place(&rows), self.source.factor);
        self.piece.reshape(place.rows.len(), place.cols.len(), factor.precision_bits())?;
        let width = 1 + self.piece.limbs_per_element();
        let map = factor.map();
        let common = |id: TileId| Place::of_tile(map, id).intersect(&place);
        for rank in 0..map.grid.size() {
            let ids = map.tiles_of(rank).filter(|&id| id.col <= id.row && !common(id).is_empty()).collect::<Vec<_>>();
            if ids.is_empty() {
                continue;
            }
            let mut words = Vec::new();
            if rank == factor.rank() {
                for (id, tile) in factor.tiles().iter().filter(|(id, _)| ids.contains(id)) {
                    self.pack(tile, &common(*id), &Place::of_tile(map, *id), &mut words);
                }
            }
            words.resize(ids.iter().map(|&id| common(id).entries() * width).sum(), 0);
            self.source.world.broadcast(rank, &mut words)?;
            let mut rest = &words[..];
            for id in ids {
                let part = common(id);
                let (own, others) = rest.split_at(part.entries() * width);
                store(own.split_at(part.entries()), &part.within(&place), &mut self.piece);
                rest = others;
            }
        }
        Ok(())
    }

    /// Appends heads, scaled, and limbs of a part of a tile, column by column.
    fn pack(&self, tile: &Matrix, part: &Place, of_tile: &Place, words: &mut Vec<u64>) {
        let ((heads, limbs), width) = (tile.parts(), tile.limbs_per_element());
        let inside = part.within(of_tile);
        let column = |col: usize| inside.rows.start + col * tile.rows()..inside.rows.end + col * tile.rows();
        for col in inside.cols.clone() {
            let rows = part.rows.clone().zip(&heads[column(col)]);
            words.extend(
                rows.map(|(row, &head)| self.source.scale.map_or(head, |scale| scaled_head(Head(head), -scale[row]).0)),
            );
        }
        for col in inside.cols.clone() {
            let at = column(col);
            words.extend_from_slice(&limbs[at.start * width..at.end * width]);
        }
    }
}

impl TriangleRows for Stream<'_> {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        let at = if self.turned { self.pivot_heads.len() - 1 - row } else { row };
        FloatRef { head: Head(self.pivot_heads[at]), limbs: self.source.pivots.get(at, 0).limbs }
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let first = rows.start;
        self.fetch(rows)?;
        let view = self.piece.view();
        let view = if self.turned { view.reversed_rows().transposed().reversed_rows() } else { view };
        Ok(RowPiece { view, first })
    }
}
