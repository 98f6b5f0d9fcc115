//! Other distributions of a matrix into the one that products take: whole rows on each rank.

use crate::comm::{Incoming, Outgoing, Transport, agree, agreed};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distributed::{DistMatrix, even_share};
use crate::plan::{RankGrid, TileId};
use std::ops::Range;

impl DistMatrix {
    /// This rank's even share of the rows, all columns. Collective over `group`, the ranks of the matrix.
    ///
    /// Each entry travels once. Memory: the share, and messages of up to a rank's tiles. Entries outside a triangle
    /// are 0.
    ///
    /// # Errors
    /// [`Error::Transport`], [`Error::OutOfMemory`].
    pub fn row_slice(&self, group: &dyn Transport) -> Result<Matrix> {
        let (rows, cols) = (self.map().rows, self.map().cols);
        let share = |rank| Place { rows: even_share(rows, group.size(), rank), cols: 0..cols };
        self.slice(group, share)
    }

    /// This rank's even share of the columns, all rows; see [`DistMatrix::row_slice`]. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::row_slice`].
    pub fn col_slice(&self, group: &dyn Transport) -> Result<Matrix> {
        let (rows, cols) = (self.map().rows, self.map().cols);
        let share = |rank| Place { rows: 0..rows, cols: even_share(cols, group.size(), rank) };
        self.slice(group, share)
    }

    fn slice(&self, group: &dyn Transport, share: impl Fn(usize) -> Place) -> Result<Matrix> {
        self.check_group(group)?;
        let (rank, size) = (group.rank(), group.size());
        let own = share(rank);
        let made = Matrix::zeros(own.rows.len(), own.cols.len(), self.precision_bits());
        let mut slice = agreed(group, made)?;
        let width = 1 + slice.limbs_per_element();
        for step in 0..size {
            let (to, from) = ((rank + step) % size, (rank + size - step) % size);
            let pack_tile = |mut message: Vec<u64>, (id, tile): &(TileId, Matrix)| {
                let place = self.tile_place(*id);
                let common = place.intersect(&share(to));
                pack(tile.view(), &common.within(&place), &mut message).map(|()| message)
            };
            let message = agreed(group, self.tiles().iter().try_fold(Vec::new(), pack_tile))?;
            let pieces = self.map().tiles_of(from).map(|id| self.tile_place(id).intersect(&own));
            let pieces = pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>();
            let words = pieces.iter().map(Place::entries).sum::<usize>() * width;
            let received = if step == 0 { message } else { trade(group, (to, &message), (from, words))? };
            let mut at = 0;
            for piece in pieces {
                let end = at + piece.entries() * width;
                unpack(&received[at..end], &piece.within(&own), &mut slice);
                at = end;
            }
        }
        Ok(slice)
    }

    fn tile_place(&self, id: TileId) -> Place {
        Place { rows: self.map().row_range(id.row), cols: self.map().col_range(id.col) }
    }
}

/// Each rank's even share of the rows of `whole`, which rank `root` has and all others pass as `None`. Collective.
///
/// # Errors
/// [`Error::Transport`]; [`Error::OutOfMemory`] on every rank where one cannot hold its share.
pub fn scatter_rows(group: &dyn Transport, root: usize, whole: Option<MatrixView<'_>>) -> Result<Matrix> {
    let mut shape =
        whole.map_or([0; 3], |view| [view.rows() as u64, view.cols() as u64, u64::from(view.precision_bits())]);
    group.broadcast(root, &mut shape)?;
    let (rows, cols, precision_bits) = (shape[0] as usize, shape[1] as usize, shape[2] as u32);
    let share = |rank: usize| even_share(rows, group.size(), rank);
    let piece = |view: MatrixView<'_>, rank: usize| view.block(share(rank), 0..cols)?.to_matrix();
    let made = match whole {
        Some(view) => piece(view, root),
        None => Matrix::zeros(share(group.rank()).len(), cols, precision_bits),
    };
    let mut own = agreed(group, made)?;
    for rank in (0..group.size()).filter(|&rank| rank != root) {
        // A piece that the root cannot hold is the error of all.
        let piece = agreed(group, whole.map(|view| piece(view, rank)).transpose())?;
        if let Some(piece) = piece {
            let (heads, limbs) = piece.parts();
            group.exchange(&[heads, limbs].map(|words| Outgoing { to: rank, words }), &mut [])?;
        } else if rank == group.rank() {
            let (heads, limbs) = own.parts_mut();
            group.exchange(&[], &mut [heads, limbs].map(|words| Incoming { from: root, words }))?;
        }
    }
    Ok(own)
}

/// How the ranks of a group are numbered within their grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GridOrder {
    /// Rank `r * grid_cols + c` is at row `r`, column `c`.
    #[default]
    RowMajor,
    /// Rank `c * grid_rows + r` is at row `r`, column `c`, as in Elemental's default grids.
    ColumnMajor,
}

/// A matrix that a group of ranks shares, distributed entry by entry: entry `(i, j)` lies on the rank at row
/// `i mod grid.rows`, column `j mod grid.cols` of the grid, as Elemental's `DistMatrix<T, MC, MR>` has it.
#[derive(Clone, Copy)]
pub struct CyclicBlock<'a> {
    /// Rows of the whole block.
    pub rows: usize,
    /// Columns of the whole block.
    pub cols: usize,
    /// The grid of the group's ranks; it has a place for each (others are refused).
    pub grid: RankGrid,
    /// Their order.
    pub order: GridOrder,
    /// The entries of this rank, in order.
    pub local: MatrixView<'a>,
}

impl CyclicBlock<'_> {
    /// Some whole rows of the block for each rank: together all of them, each on one rank. Collective over `group`.
    ///
    /// The rows are not in the block's order, which no product of rows depends on. Ranks of one row of the grid hold
    /// parts of the same rows; they share them out evenly.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a grid of another size; [`Error::ShapeMismatch`] for local entries of another
    /// shape; on every rank. [`Error::Transport`], [`Error::OutOfMemory`].
    pub fn to_rows(&self, group: &dyn Transport) -> Result<Matrix> {
        self.check_alike(group)?;
        agree(group, self.check(group))?;
        let (grid, (row, col)) = (self.grid, self.position(group.rank()));
        let count = self.local.rows();
        let made = Matrix::zeros(even_share(count, grid.cols, col).len(), self.cols, self.local.precision_bits());
        let mut rows = agreed(group, made)?;
        let width = 1 + rows.limbs_per_element();
        for step in 0..grid.cols {
            let (to, from) = ((col + step) % grid.cols, (col + grid.cols - step) % grid.cols);
            let mut message = Vec::new();
            let sent = Place { rows: even_share(count, grid.cols, to), cols: 0..self.local.cols() };
            let packed = pack(self.local, &sent, &mut message);
            agree(group, packed)?;
            let columns = (from..self.cols).step_by(grid.cols);
            let words = rows.rows() * columns.len() * width;
            let partners = (self.rank_at(row, to), self.rank_at(row, from));
            let received = if step == 0 { message } else { trade(group, (partners.0, &message), (partners.1, words))? };
            let entries = rows.rows() * columns.len();
            let (heads, limbs) = received.split_at(entries);
            for (index, col) in columns.enumerate() {
                let one = index * rows.rows()..(index + 1) * rows.rows();
                let limbs = &limbs[one.start * (width - 1)..one.end * (width - 1)];
                let place = Place { rows: 0..rows.rows(), cols: col..col + 1 };
                store(&heads[one], limbs, &place, &mut rows);
            }
        }
        Ok(rows)
    }

    fn position(&self, rank: usize) -> (usize, usize) {
        match self.order {
            GridOrder::RowMajor => (rank / self.grid.cols, rank % self.grid.cols),
            GridOrder::ColumnMajor => (rank % self.grid.rows, rank / self.grid.rows),
        }
    }

    fn rank_at(&self, row: usize, col: usize) -> usize {
        match self.order {
            GridOrder::RowMajor => row * self.grid.cols + col,
            GridOrder::ColumnMajor => col * self.grid.rows + row,
        }
    }

    /// Refuses a group whose ranks describe different blocks. Collective.
    fn check_alike(&self, group: &dyn Transport) -> Result<()> {
        let order = usize::from(self.order == GridOrder::ColumnMajor);
        let bits = self.local.precision_bits() as usize;
        let own = [self.rows, self.cols, self.grid.rows, self.grid.cols, order, bits].map(|number| number as u64);
        let mut all = vec![0; own.len() * group.size()];
        group.all_gather(&own, &mut all)?;
        match all.chunks_exact(own.len()).position(|other| other != &all[..own.len()]) {
            None => Ok(()),
            Some(other) => Err(Error::InvalidArgument(format!("ranks 0 and {other} describe different cyclic blocks"))),
        }
    }

    fn check(&self, group: &dyn Transport) -> Result<()> {
        let RankGrid { rows, cols } = self.grid;
        if rows == 0 || cols == 0 || self.grid.size() != group.size() {
            let message = format!("a grid of {rows} x {cols} ranks for a group of {}", group.size());
            return Err(Error::InvalidArgument(message));
        }
        let (row, col) = self.position(group.rank());
        let held = ((row..self.rows).step_by(rows).len(), (col..self.cols).step_by(cols).len());
        if held == (self.local.rows(), self.local.cols()) {
            return Ok(());
        }
        Err(Error::ShapeMismatch {
            operation: "cyclic block",
            left_rows: held.0,
            left_cols: held.1,
            right_rows: self.local.rows(),
            right_cols: self.local.cols(),
        })
    }
}

/// A rectangle of a matrix.
#[derive(Clone)]
struct Place {
    rows: Range<usize>,
    cols: Range<usize>,
}

impl Place {
    fn entries(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    fn intersect(&self, other: &Place) -> Place {
        let common = |a: &Range<usize>, b: &Range<usize>| {
            let start = a.start.max(b.start);
            start..a.end.min(b.end).max(start)
        };
        Place { rows: common(&self.rows, &other.rows), cols: common(&self.cols, &other.cols) }
    }

    /// The same rectangle, counted from the first row and column of `outer`.
    fn within(&self, outer: &Place) -> Place {
        let shift = |range: &Range<usize>, by: usize| range.start.wrapping_sub(by)..range.end.wrapping_sub(by);
        if self.is_empty() {
            return Place { rows: 0..0, cols: 0..0 };
        }
        Place { rows: shift(&self.rows, outer.rows.start), cols: shift(&self.cols, outer.cols.start) }
    }
}

/// Appends the heads, then the limbs of a rectangle, column by column.
fn pack(view: MatrixView<'_>, place: &Place, message: &mut Vec<u64>) -> Result<()> {
    if !place.is_empty() {
        let piece = view.block(place.rows.clone(), place.cols.clone())?.to_matrix()?;
        let (heads, limbs) = piece.parts();
        message.extend_from_slice(heads);
        message.extend_from_slice(limbs);
    }
    Ok(())
}

fn unpack(message: &[u64], place: &Place, matrix: &mut Matrix) {
    let (heads, limbs) = message.split_at(place.entries());
    store(heads, limbs, place, matrix);
}

/// Writes the entries of a rectangle, which come column by column.
fn store(heads: &[u64], limbs: &[u64], place: &Place, matrix: &mut Matrix) {
    let (stride, width, count) = (matrix.rows(), matrix.limbs_per_element(), place.rows.len());
    let (all_heads, all_limbs) = matrix.parts_mut();
    for (index, col) in place.cols.clone().enumerate() {
        let (from, to) = (index * count, place.rows.start + col * stride);
        all_heads[to..to + count].copy_from_slice(&heads[from..from + count]);
        all_limbs[to * width..(to + count) * width].copy_from_slice(&limbs[from * width..(from + count) * width]);
    }
}

/// Sends one message and receives another of so many words; empty ones do not travel.
fn trade(group: &dyn Transport, (to, words): (usize, &[u64]), (from, count): (usize, usize)) -> Result<Vec<u64>> {
    let mut received = vec![0; count];
    let send = [Outgoing { to, words }];
    let mut receive = [Incoming { from, words: &mut received }];
    let sends = if words.is_empty() { &send[..0] } else { &send[..] };
    let receives = if count == 0 { &mut receive[..0] } else { &mut receive[..] };
    group.exchange(sends, receives)?;
    Ok(received)
}
