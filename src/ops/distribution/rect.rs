//! Rectangles of a matrix, and how their entries travel between ranks.

use crate::comm::{Incoming, Outgoing, Transport};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::tile::{TileId, TileMap};
use std::ops::Range;

/// A rectangle of a matrix.
#[derive(Clone)]
pub(crate) struct Rect {
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

impl Rect {
    /// The place of a tile in the whole matrix.
    pub fn of_tile(map: &TileMap, id: TileId) -> Rect {
        Rect { rows: map.row_range(id.row), cols: map.col_range(id.col) }
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// The common part of both.
    pub fn intersect(&self, other: &Rect) -> Rect {
        let common = |a: &Range<usize>, b: &Range<usize>| {
            let start = a.start.max(b.start);
            start..a.end.min(b.end).max(start)
        };
        Rect { rows: common(&self.rows, &other.rows), cols: common(&self.cols, &other.cols) }
    }

    /// The same rectangle, counted from the first row and column of `outer`.
    pub fn within(&self, outer: &Rect) -> Rect {
        let shift = |range: &Range<usize>, by: usize| range.start.wrapping_sub(by)..range.end.wrapping_sub(by);
        if self.is_empty() {
            return Rect { rows: 0..0, cols: 0..0 };
        }
        Rect { rows: shift(&self.rows, outer.rows.start), cols: shift(&self.cols, outer.cols.start) }
    }
}

/// Writes the entries of a rectangle: `message` has the heads, then the limbs, column by column.
pub(crate) fn unpack(message: &[u64], place: &Rect, matrix: &mut Matrix) {
    let (heads, limbs) = message.split_at(place.entries());
    store(heads, limbs, place, matrix);
}

/// Writes the entries of a rectangle, which come column by column.
pub(crate) fn store(heads: &[u64], limbs: &[u64], place: &Rect, matrix: &mut Matrix) {
    let (stride, width, count) = (matrix.rows(), matrix.limbs_per_element(), place.rows.len());
    let (all_heads, all_limbs) = matrix.parts_mut();
    for (index, col) in place.cols.clone().enumerate() {
        let (from, to) = (index * count, place.rows.start + col * stride);
        all_heads[to..to + count].copy_from_slice(&heads[from..from + count]);
        all_limbs[to * width..(to + count) * width].copy_from_slice(&limbs[from * width..(from + count) * width]);
    }
}

/// Sends one message and receives another; empty ones do not travel.
pub(crate) fn trade(group: &dyn Transport, outgoing: Outgoing<'_>, incoming: Incoming<'_>) -> Result<()> {
    let (send_count, receive_count) =
        (usize::from(!outgoing.words.is_empty()), usize::from(!incoming.words.is_empty()));
    let sends = &[outgoing][..send_count];
    let receives = &mut [incoming][..receive_count];
    group.exchange(sends, receives)
}

/// Sends a matrix to another rank, which calls [`receive`].
pub(crate) fn send(group: &dyn Transport, to: usize, matrix: &Matrix) -> Result<()> {
    let (heads, limbs) = matrix.parts();
    group.exchange(&[heads, limbs].map(|words| Outgoing { to, words }), &mut [])
}

/// Receives the heads and limbs of a matrix that another rank sends by [`send`].
pub(crate) fn receive(group: &dyn Transport, from: usize, heads: &mut [u64], limbs: &mut [u64]) -> Result<()> {
    group.exchange(&[], &mut [heads, limbs].map(|words| Incoming { from, words }))
}
