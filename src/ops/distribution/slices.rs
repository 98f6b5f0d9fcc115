//! Other distributions of a matrix into the one that products take: whole rows on each rank.

use crate::comm::{Transport, agree, agreed};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::place::{Place, pack, receive, send, store, trade, unpack};
use crate::plan::even_share;
use crate::tile::{RankGrid, TileId, TileMap};

impl DistMatrix {
    /// This rank's even share of the rows, all columns. Collective over `group`, the ranks of the matrix.
    ///
    /// Each entry travels once. Memory: the share, and messages of up to a rank's tiles. What lies
    /// outside a triangle is 0, or its mirror image: see [`DistMatrix::is_symmetric`].
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

    /// The rectangle `share(rank)` of this rank; the ranks' rectangles are the same functions on all. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::row_slice`].
    pub(crate) fn slice(&self, group: &dyn Transport, share: impl Fn(usize) -> Place) -> Result<Matrix> {
        self.check_group(group)?;
        let (rank, size) = (group.rank(), group.size());
        let own = share(rank);
        let made = Matrix::zeros(own.rows.len(), own.cols.len(), self.precision_bits());
        let mut slice = agreed(group, made)?;
        let width = 1 + slice.limbs_per_element();
        for step in 0..size {
            let (to, from) = ((rank + step) % size, (rank + size - step) % size);
            let pack_image = |mut message: Vec<u64>, (place, view): (Place, MatrixView<'_>)| {
                let common = place.intersect(&share(to));
                pack(view, &common.within(&place), &mut message).map(|()| message)
            };
            let mut images = self.tiles().iter().flat_map(|(id, tile)| self.images(*id, tile));
            let message = agreed(group, images.try_fold(Vec::new(), pack_image))?;
            let places = self.map().tiles_of(from).flat_map(|id| self.places(id));
            let pieces = places.map(|place| place.intersect(&own));
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

    /// The matrix of which every rank has the rectangle `share(rank)` in `slice`, as `map` distributes it: the way back
    /// from [`DistMatrix::slice`]. The rectangles do not overlap; what is in none of them is 0. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::row_slice`].
    pub(crate) fn from_slices(
        group: &dyn Transport,
        map: TileMap,
        slice: &Matrix,
        share: impl Fn(usize) -> Place,
    ) -> Result<DistMatrix> {
        let (rank, size) = (group.rank(), group.size());
        let mut part = agreed(group, DistMatrix::zeros(map, rank, slice.precision_bits()))?;
        let (own, width) = (share(rank), 1 + slice.limbs_per_element());
        for step in 0..size {
            let (to, from) = ((rank + step) % size, (rank + size - step) % size);
            let pack_piece = |mut message: Vec<u64>, id: TileId| {
                let common = Place::of_tile(&map, id).intersect(&own);
                pack(slice.view(), &common.within(&own), &mut message).map(|()| message)
            };
            let message = agreed(group, map.tiles_of(to).try_fold(Vec::new(), pack_piece))?;
            let theirs = share(from);
            let pieces = part.tiles_mut().iter_mut().map(|(id, tile)| {
                let place = Place::of_tile(&map, *id);
                let common = place.intersect(&theirs);
                (common.within(&place), tile)
            });
            let pieces = pieces.filter(|(piece, _)| !piece.is_empty()).collect::<Vec<_>>();
            let words = pieces.iter().map(|(piece, _)| piece.entries()).sum::<usize>() * width;
            let received = if step == 0 { message } else { trade(group, (to, &message), (from, words))? };
            let mut at = 0;
            for (piece, tile) in pieces {
                let end = at + piece.entries() * width;
                unpack(&received[at..end], &piece, tile);
                at = end;
            }
        }
        Ok(part)
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
            send(group, rank, &piece)?;
        } else if rank == group.rank() {
            receive(group, root, own.parts_mut())?;
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
                store((&heads[one], limbs), &place, &mut rows);
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
        Err(Error::shape_mismatch("cyclic block", (held.0, held.1), (self.local.rows(), self.local.cols())))
    }
}
