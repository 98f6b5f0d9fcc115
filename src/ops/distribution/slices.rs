//! The distribution that products take: whole rows on each rank.

use crate::comm::{Transport, agreed};
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::rect::{receive, send};
use crate::plan::even_share;
use crate::tile::Distribution;

impl DistMatrix {
    /// This rank's equal share of the rows, with all columns. Collective over `group`, the ranks of the matrix.
    ///
    /// # Errors
    /// As [`DistMatrix::to_local`].
    pub fn row_slice(&self, group: &dyn Transport) -> Result<Matrix> {
        self.to_local(group, &even_rows(self.map().rows, self.map().cols, group.size()))
    }

    /// This rank's equal share of the columns, with all rows; see [`DistMatrix::row_slice`]. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::to_local`].
    pub fn col_slice(&self, group: &dyn Transport) -> Result<Matrix> {
        self.to_local(group, &even_rows(self.map().cols, self.map().rows, group.size()).transposed())
    }
}

/// The distribution of whole rows in blocks, [`even_share`] rows on each rank.
///
/// ```
/// use sunzi::distributed::even_rows;
/// let rows = even_rows(6, 3, 2);
/// assert_eq!((rows.local_shape(0), rows.local_shape(1)), ((3, 3), (3, 3)));
/// ```
pub fn even_rows(rows: usize, cols: usize, ranks: usize) -> Distribution {
    let starts = (0..ranks).map(|rank| even_share(rows, ranks, rank).start).chain([rows]).collect();
    Distribution::row_blocks(starts, cols)
}

/// The distribution of the contracted rows in a product whose operands have the distributions `operands`, rows first.
/// It is the distribution of an operand whose rows lie whole and about evenly on the ranks, so that this operand is not
/// sent; otherwise [`even_rows`]. Each rank must have the same rows of every operand. The columns are those of the
/// first operand, and the grid contains all ranks. Operands whose distribution is not over `ranks` ranks are ignored.
///
/// ```
/// use sunzi::distributed::{Distribution, contracted_rows, even_rows};
/// let uneven = Distribution::on_root(6, 3, 2, 0);
/// assert_eq!(contracted_rows(&[&uneven], 2), even_rows(6, 3, 2)); // its rows have to move
/// ```
pub fn contracted_rows(operands: &[&Distribution], ranks: usize) -> Distribution {
    let (rows, cols) = operands.first().map_or((0, 0), |first| (first.rows, first.cols));
    // A rank with an eighth more rows than an even share takes at most an eighth longer.
    let share = rows.div_ceil(ranks.max(1));
    let most = share + share / 8;
    // A rank outside of the grid has no columns, but a product needs the columns of each operand on all ranks.
    let is_fit = |placed: &Distribution, rank| placed.numbers(rank).is_some() && placed.local_shape(rank).0 <= most;
    let is_even = |placed: &Distribution| (0..ranks).all(|rank| is_fit(placed, rank));
    let sound = operands.iter().filter(|operand| operand.check(ranks).is_ok());
    let mut whole = sound.filter_map(|operand| operand.with_whole_rows(cols));
    whole.find(is_even).unwrap_or_else(|| even_rows(rows, cols, ranks))
}

/// Each rank's equal share of the rows of `whole`, which rank `root` passes; all others pass `None`. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::{Matrix, distributed};
/// let parts = local::run(2, |rank| -> sunzi::Result<Vec<f64>> {
///     let whole = Matrix::from_f64s(4, 1, 128, &[1.0, 2.0, 3.0, 4.0])?;
///     let whole = (rank.rank() == 0).then(|| whole.view()); // the others need not have it
///     Ok(distributed::scatter_rows(rank, 0, whole)?.view().to_f64s())
/// });
/// assert_eq!(parts.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [[1.0, 2.0], [3.0, 4.0]]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Transport`]; [`crate::Error::OutOfMemory`] on every rank if one cannot hold its share.
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
            let (heads, limbs) = own.parts_mut();
            receive(group, root, heads, limbs)?;
        }
    }
    Ok(own)
}
