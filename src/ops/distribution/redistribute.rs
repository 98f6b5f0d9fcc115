//! The same matrix in other tiles, over another grid of ranks, or as one triangle of it; and the distribution that
//! products take: whole rows on each rank.

use crate::comm::{Reduction, Transport, agree, agreed};
use crate::error::{Error, Result};
use crate::math::float::limbs_for;
use crate::matrix::{Matrix, MatrixView, MatrixViewMut, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::rect::{receive, send};
use crate::ops::distribution::travel::{
    EntryReader, EntryWriter, LocalSource, LocalTarget, Moved, Travel, read_run, write_run,
};
use crate::plan::even_share;
use crate::tile::{Distribution, TileId, TileMap};
use std::ops::Range;

/// The tiles of a rank, or of its part of the transpose.
struct TileSource<'a> {
    matrix: &'a DistMatrix,
    transposed: bool,
}

impl EntryReader for TileSource<'_> {
    fn read(&self, rows: Range<usize>, col: usize, width: usize, words: &mut [u64]) {
        let size = self.matrix.map().tile_size;
        let (row, col_tile) = (rows.start / size, col / size);
        let id = if self.transposed { TileId { row: col_tile, col: row } } else { TileId { row, col: col_tile } };
        let tile = self.matrix.tile(id).expect("runs lie within own tiles");
        let view = if self.transposed { tile.transposed() } else { tile.view() };
        let first = rows.start % size;
        read_run(&view, first..first + rows.len(), col % size, width, words);
    }
}

/// The tiles of a rank, to be filled.
struct TileTarget<'a>(&'a mut DistMatrix);

impl EntryWriter for TileTarget<'_> {
    fn write(&mut self, rows: Range<usize>, col: usize, words: &[u64]) {
        let size = self.0.map().tile_size;
        let id = TileId { row: rows.start / size, col: col / size };
        let tile = self.0.tile_mut(id).expect("runs that come are for own tiles");
        write_run(tile.view_mut(), rows.start % size, col % size, words);
    }
}

impl DistMatrix {
    /// The same matrix distributed according to `map`: other tiles, another grid, or one triangle of it. Collective
    /// over `group`, whose ranks all pass the same map.
    ///
    /// If one triangle is made from the other, the matrix is taken as symmetric and the entries are transposed. A whole
    /// matrix made from a triangle has zeros outside it, or the mirror image if it is symmetric
    /// ([`DistMatrix::is_symmetric`]); a triangle made from a whole matrix omits the other triangle. Memory: the new
    /// tiles, and messages of 1 to 8 MiB to and from this rank. Each entry is sent once.
    ///
    /// # Errors
    /// On every rank: [`Error::ShapeMismatch`] for a map of another shape; [`Error::InvalidArgument`] for a grid of
    /// more ranks than there are, tiles whose height is not a multiple of 8, maps that differ between ranks, a group in
    /// which this rank has another number, and tiles that were replaced by others; [`Error::OutOfMemory`],
    /// [`Error::Transport`].
    pub fn redistribute(&self, group: &dyn Transport, map: TileMap) -> Result<DistMatrix> {
        self.in_tiles(group, false, map)
    }

    /// The transpose distributed according to `map`, whole or one triangle of it. Collective; memory and errors as
    /// [`DistMatrix::redistribute`].
    ///
    /// # Errors
    /// As [`DistMatrix::redistribute`].
    pub fn transposed(&self, group: &dyn Transport, map: TileMap) -> Result<DistMatrix> {
        self.in_tiles(group, true, map)
    }

    /// The matrix, or its transpose where it is turned, as `map` distributes it.
    fn in_tiles(&self, group: &dyn Transport, turned: bool, map: TileMap) -> Result<DistMatrix> {
        self.check_group(group)?;
        let mut target = agreed(group, DistMatrix::zeros(map, group.rank(), self.precision_bits()))?;
        let to = Distribution::of_tiles(&map);
        self.travel(group, turned, &to, map.triangle, &mut TileTarget(&mut target))?;
        if self.is_symmetric() && map.triangle.is_some() { target.into_symmetric() } else { Ok(target) }
    }

    /// This rank's part of the matrix in the distribution `distribution`, in the order of the indices. Collective.
    ///
    /// Entries outside a triangle are 0, or the triangle's mirror image: see [`DistMatrix::is_symmetric`]. Memory: the
    /// part, and messages of 1 to 8 MiB to and from this rank. Each entry is sent once to each rank that needs it.
    ///
    /// # Errors
    /// As [`DistMatrix::redistribute`], and [`Error::InvalidArgument`] as [`Distribution::check`]; on every rank.
    pub fn to_local(&self, group: &dyn Transport, distribution: &Distribution) -> Result<Matrix> {
        self.check_group(group)?;
        agree(group, distribution.check(group.size()))?;
        let (rows, cols) = distribution.local_shape(group.rank());
        let mut local = agreed(group, Matrix::zeros(rows, cols, self.precision_bits()))?;
        let mut target = LocalTarget { distribution, local: local.view_mut() };
        self.travel(group, false, distribution, None, &mut target)?;
        Ok(local)
    }

    /// [`DistMatrix::to_local`] into the caller's memory, which must have the shape of the part and the precision of
    /// the matrix. With a triangle only that triangle is written; it may be either triangle of a symmetric matrix.
    /// Entries of `local` outside the triangle keep their values. Collective; the content of `local` after an error is
    /// arbitrary.
    ///
    /// # Errors
    /// As [`DistMatrix::to_local`]; [`Error::ShapeMismatch`] and [`Error::InvalidArgument`] if `local` does not fit,
    /// and if the other triangle of a matrix that is not symmetric is requested.
    pub fn fill_local(
        &self,
        group: &dyn Transport,
        (distribution, triangle): (&Distribution, Option<Uplo>),
        mut local: MatrixViewMut<'_>,
    ) -> Result<()> {
        self.check_group(group)?;
        agree(group, distribution.check(group.size()))?;
        let (rows, cols) = distribution.local_shape(group.rank());
        let fits = check_target(rows, cols, self.precision_bits(), &local);
        agree(group, fits.and(self.check_triangle(triangle)))?;
        // Entries outside of a triangle are not sent.
        if triangle.is_none() && self.map().triangle.is_some() && !self.is_symmetric() {
            clear(local.reborrow());
        }
        self.travel(group, false, distribution, triangle, &mut LocalTarget { distribution, local })
    }

    /// Refuses a triangle that is not there.
    fn check_triangle(&self, triangle: Option<Uplo>) -> Result<()> {
        match (self.map().triangle, triangle) {
            (Some(held), Some(wanted)) if held != wanted && !self.is_symmetric() => {
                let message =
                    format!("the {wanted:?} triangle is requested, but the matrix stores only the {held:?} triangle");
                Err(Error::InvalidArgument(message))
            }
            _ => Ok(()),
        }
    }

    /// Converts a matrix in the distribution `distribution`, of which each rank passes its part `local`, to tiles.
    /// Collective.
    ///
    /// If the map has a triangle, only that triangle is read, and the result is a triangle: see
    /// [`DistMatrix::into_symmetric`]. The result has the largest precision of all ranks' parts. If several ranks have
    /// an entry, one of them sends it. To obtain the transpose, pass [`Distribution::transposed`] and the transposed
    /// view. Memory: as [`DistMatrix::redistribute`].
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] for a part of another shape; otherwise as [`DistMatrix::to_local`].
    pub fn from_local<'m>(
        group: &dyn Transport,
        distribution: &Distribution,
        local: impl Into<MatrixView<'m>>,
        map: TileMap,
    ) -> Result<DistMatrix> {
        let mut target = DistMatrix::empty();
        target.take_local(group, distribution, local.into(), map)?;
        Ok(target)
    }

    /// Becomes [`DistMatrix::from_local`], in the memory that it has where it is distributed like that. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::from_local`].
    pub(crate) fn take_local(
        &mut self,
        group: &dyn Transport,
        distribution: &Distribution,
        local: MatrixView<'_>,
        map: TileMap,
    ) -> Result<()> {
        let precision_bits = LocalPart { distribution, local }.check(group)?;
        if map.triangle.is_some() {
            *self = DistMatrix::empty(); // what lies outside of a triangle is 0
        }
        agree(group, self.prepare(map, group.rank(), precision_bits))?;
        let width = limbs_for(precision_bits);
        let to = Distribution::of_tiles(&map);
        let part = map.triangle.map_or(Moved::All, Moved::Triangle);
        let travel = Travel { from: distribution, to: &to, part, asked: map.triangle, width };
        travel.run(group, &LocalSource { distribution, local }, &mut TileTarget(self))
    }

    /// Moves the entries, or those of the transpose, to their places in `to`; with a triangle, only the entries in it.
    fn travel(
        &self,
        group: &dyn Transport,
        turned: bool,
        to: &Distribution,
        triangle: Option<Uplo>,
        target: &mut dyn EntryWriter,
    ) -> Result<()> {
        let own = self.map().triangle.map(|uplo| if turned { other(uplo) } else { uplo });
        let flipped = turned != (own.is_some() && triangle.is_some() && own != triangle);
        let part = triangle.or(own).map_or(Moved::All, Moved::Triangle);
        // The other side of a symmetric matrix of which one triangle is held and both are wanted.
        let mirrored = own.filter(|_| self.is_symmetric() && triangle.is_none());
        let mirrored = mirrored.map(|uplo| (!turned, Moved::Strict(other(uplo))));
        for (transposed, part) in std::iter::once((flipped, part)).chain(mirrored) {
            let tiles = Distribution::of_tiles(self.map());
            let from = if transposed { tiles.transposed() } else { tiles };
            let travel = Travel { from: &from, to, part, asked: triangle, width: limbs_for(self.precision_bits()) };
            travel.run(group, &TileSource { matrix: self, transposed }, target)?;
        }
        Ok(())
    }

    /// Refuses a whole square matrix that is not its own transpose. Collective; memory: three triangles of it.
    ///
    /// # Errors
    /// [`Error::NotSymmetric`] with the first entry below the diagonal, column by column, that differs from its mirror
    /// image; [`Error::OutOfMemory`], [`Error::Transport`]; on every rank.
    pub(crate) fn check_symmetric(&self, group: &dyn Transport) -> Result<()> {
        let triangle = |uplo| TileMap { triangle: Some(uplo), ..*self.map() };
        let lower = self.redistribute(group, triangle(Uplo::Lower))?;
        let mirrored = self.redistribute(group, triangle(Uplo::Upper))?.redistribute(group, triangle(Uplo::Lower))?;
        let differs = |((id, one), (_, other)): (&(TileId, Matrix), &(TileId, Matrix))| {
            let places = (0..one.cols()).flat_map(|col| (0..one.rows()).map(move |row| (row, col)));
            let (rows, cols) = (self.map().row_range(id.row).start, self.map().col_range(id.col).start);
            let first = places.into_iter().find(|&(row, col)| one.get(row, col) != other.get(row, col));
            first.map(|(row, col)| ((col + cols) * self.map().rows + row + rows) as u64)
        };
        let own = lower.tiles().iter().zip(mirrored.tiles()).filter_map(differs).min();
        // The least of all is the complement of the largest complement.
        let mut first = [!own.unwrap_or(u64::MAX)];
        group.all_reduce(Reduction::Max, &mut first)?;
        match !first[0] {
            u64::MAX => Ok(()),
            place => {
                let (row, column) = (place as usize % self.map().rows, place as usize / self.map().rows);
                Err(Error::NotSymmetric { row, column })
            }
        }
    }
}

/// Refuses memory for a part of another shape than `rows x cols`, or of another precision.
pub(crate) fn check_target(rows: usize, cols: usize, precision_bits: u32, local: &MatrixViewMut<'_>) -> Result<()> {
    let held = (local.rows(), local.cols());
    if held != (rows, cols) {
        return Err(Error::shape_mismatch("local part", (rows, cols), held));
    }
    match local.precision_bits() {
        bits if bits == precision_bits => Ok(()),
        bits => {
            let message = format!("the local part has {bits} bits, but the matrix has {precision_bits}");
            Err(Error::InvalidArgument(message))
        }
    }
}

/// Zeros, column by column: gaps between columns stay.
fn clear(local: MatrixViewMut<'_>) {
    if local.rows() > 0 {
        local.into_columns().for_each(|(heads, limbs)| {
            heads.fill(0);
            limbs.fill(0);
        });
    }
}

/// The triangle on the other side of the diagonal.
fn other(uplo: Uplo) -> Uplo {
    if uplo == Uplo::Lower { Uplo::Upper } else { Uplo::Lower }
}

/// A distributed matrix in the caller's own distribution: this rank's part, and the distribution of all entries.
#[derive(Clone, Copy, Debug)]
pub struct LocalPart<'a> {
    /// The distribution of the entries; the same on all ranks.
    pub distribution: &'a Distribution,
    /// The entries of this rank, in the order of their indices. Ranks may have different precisions.
    pub local: MatrixView<'a>,
}

impl LocalPart<'_> {
    /// Refuses parts that do not fit their distribution; returns the largest precision of the parts that have entries,
    /// or of all where none has. Collective.
    ///
    /// # Errors
    /// As [`redistribute`].
    pub(crate) fn check(&self, group: &dyn Transport) -> Result<u32> {
        let LocalPart { distribution, local } = self;
        agree(group, distribution.check(group.size()))?;
        let (shape, held) = (distribution.local_shape(group.rank()), (local.rows(), local.cols()));
        agree(group, if shape == held { Ok(()) } else { Err(Error::shape_mismatch("local part", shape, held)) })?;
        let own = u64::from(local.precision_bits());
        let mut bits = [if shape.0 * shape.1 > 0 { own } else { 0 }, own];
        group.all_reduce(Reduction::Max, &mut bits)?;
        Ok(if bits[0] > 0 { bits[0] } else { bits[1] } as u32)
    }

    /// Moves the entries to their places in the distribution `to`. `local` receives this rank's part: it has the shape
    /// of the part, and at least the precision of the parts of all ranks. Collective.
    ///
    /// # Errors
    /// The errors of [`Travel::run`].
    pub(crate) fn bring(&self, group: &dyn Transport, to: &Distribution, local: MatrixViewMut<'_>) -> Result<()> {
        let (part, width) = (Moved::All, local.limbs_per_element());
        let travel = Travel { from: self.distribution, to, part, asked: None, width };
        let source = LocalSource { distribution: self.distribution, local: self.local };
        travel.run(group, &source, &mut LocalTarget { distribution: to, local })
    }

    /// [`redistribute`] into the memory of `result`, which is allocated anew if it is too small. Collective.
    ///
    /// # Errors
    /// As [`redistribute`].
    pub fn redistribute_into(&self, group: &dyn Transport, to: &Distribution, result: &mut Matrix) -> Result<()> {
        let precision_bits = self.check(group)?;
        agree(group, to.check(group.size()))?;
        let (rows, cols) = to.local_shape(group.rank());
        agree(group, result.reshape(rows, cols, precision_bits))?;
        self.bring(group, to, result.view_mut())
    }
}

/// Redistributes a matrix of which each rank passes its part in `local`. Collective; memory and errors as
/// [`DistMatrix::from_local`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Distribution, even_rows, redistribute};
/// use sunzi::Matrix;
/// let parts = local::run(2, |rank| -> sunzi::Result<Vec<f64>> {
///     let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 3.0], [2.0, 4.0]][rank.rank()])?;
///     let cols = Distribution::col_blocks(2, vec![0, 1, 2]);
///     Ok(redistribute(rank, (&even_rows(2, 2, 2), &row), &cols)?.view().to_f64s()) // a column on each rank
/// });
/// assert_eq!(parts.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [[1.0, 2.0], [3.0, 4.0]]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`DistMatrix::from_local`].
pub fn redistribute<'m>(
    group: &dyn Transport,
    (from, local): (&Distribution, impl Into<MatrixView<'m>>),
    to: &Distribution,
) -> Result<Matrix> {
    let mut moved = Matrix::empty();
    LocalPart { distribution: from, local: local.into() }.redistribute_into(group, to, &mut moved)?;
    Ok(moved)
}

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

/// The distribution of the contracted index in a product whose operands have the distributions `operands`; the
/// contracted index is the row index of each operand. If an operand has whole rows that lie about evenly on the ranks,
/// the result is the distribution of this operand, which is then not sent; otherwise it is [`even_rows`]. (A product
/// requires that each rank has the same rows of every operand.) The result has the columns of the first operand and a
/// grid of all ranks. Operands whose distribution is not over `ranks` ranks are ignored.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::testing::effort;
    use crate::tile::RankGrid;

    /// Entry `(i, j)` is `100 i + j + 1`.
    fn numbered(rows: usize, cols: usize) -> Matrix {
        let mut whole = Matrix::zeros(rows, cols, 100).unwrap();
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            whole.set_f64(i, j, (100 * i + j + 1) as f64).unwrap();
        }
        whole
    }

    /// `matrix` with zeros outside of a triangle.
    fn triangle_of(matrix: &Matrix, triangle: Option<Uplo>) -> Matrix {
        let mut part = Matrix::zeros(matrix.rows(), matrix.cols(), matrix.precision_bits()).unwrap();
        for (i, j) in (0..matrix.rows()).flat_map(|i| (0..matrix.cols()).map(move |j| (i, j))) {
            let is_inside = triangle.is_none_or(|uplo| if uplo == Uplo::Lower { j <= i } else { i <= j });
            if is_inside {
                part.set(i, j, matrix.get(i, j));
            }
        }
        part
    }

    fn grids(ranks: usize) -> Vec<RankGrid> {
        let mut grids = vec![RankGrid { rows: 1, cols: ranks }, RankGrid { rows: ranks, cols: 1 }];
        grids.push(RankGrid::for_ranks(ranks));
        grids.push(RankGrid { rows: (ranks / 2).max(1), cols: 1 }); // ranks without tiles
        // For few ranks some of them are the same.
        let known = grids.clone();
        let mut number = 0..;
        grids.retain(|grid| known.iter().position(|one| one == grid) == number.next());
        grids
    }

    fn check(whole: &Matrix, ranks: usize, from: TileMap, to: TileMap) {
        let held = triangle_of(whole, from.triangle);
        let is_flipped = from.triangle.is_some() && to.triangle.is_some() && from.triangle != to.triangle;
        let same = if is_flipped { held.transposed().to_matrix().unwrap() } else { held.clone() };
        let want = triangle_of(&same, to.triangle);
        local::run(ranks, |rank| {
            let root = (rank.rank() == 0).then_some(&held);
            let part = DistMatrix::scatter(rank, 0, root, from, 100).unwrap();
            let got = part.redistribute(rank, to).unwrap();
            let direct = DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(&want), to, 100).unwrap();
            assert!(got == direct, "{ranks} ranks, {from:?} to {to:?}");
        });
    }

    #[test]
    fn any_distribution_becomes_any_other() {
        for ranks in [1, 2, 3, 5, 6, 7] {
            let pairs = grids(ranks).into_iter().flat_map(|from| grids(ranks).into_iter().map(move |to| (from, to)));
            for (turn, (from_grid, to_grid)) in pairs.enumerate() {
                let shapes = [(67, 67, 16, 24), (5, 90, 8, 32), (90, 31, 40, 8), (0, 7, 8, 8)];
                for (at, (rows, cols, from_size, to_size)) in shapes.into_iter().enumerate() {
                    // With little effort every second shape, the others with the next pair of grids.
                    if effort() == 1 && (turn + at) % 2 == 1 {
                        continue;
                    }
                    let whole = numbered(rows, cols);
                    let from = TileMap { rows, cols, tile_size: from_size, grid: from_grid, triangle: None };
                    check(&whole, ranks, from, TileMap { tile_size: to_size, grid: to_grid, ..from });
                }
            }
        }
    }

    #[test]
    fn triangles_become_each_other_and_whole_matrices() {
        let triangles = [None, Some(Uplo::Lower), Some(Uplo::Upper)];
        for (ranks, order, from_size, to_size) in [(1, 40, 16, 8), (4, 67, 16, 24), (5, 67, 24, 16), (6, 30, 8, 64)] {
            let whole = numbered(order, order);
            for (from, to) in triangles.into_iter().flat_map(|from| triangles.map(|to| (from, to))) {
                let grid = RankGrid::for_ranks(ranks);
                let from = TileMap { rows: order, cols: order, tile_size: from_size, grid, triangle: from };
                let turned = RankGrid { rows: grid.cols, cols: grid.rows };
                check(&whole, ranks, from, TileMap { tile_size: to_size, grid: turned, triangle: to, ..from });
            }
        }
    }

    #[test]
    fn maps_that_cannot_be_are_refused_on_all_ranks() {
        let grid = RankGrid::for_ranks(3);
        let map = TileMap { rows: 30, cols: 30, tile_size: 8, grid, triangle: None };
        let wrong = [
            TileMap { cols: 31, ..map },
            TileMap { tile_size: 12, ..map },
            TileMap { tile_size: 0, ..map },
            TileMap { grid: RankGrid { rows: 2, cols: 2 }, ..map },
            TileMap { grid: RankGrid { rows: 0, cols: 2 }, ..map },
        ];
        local::run(3, |rank| {
            let part = DistMatrix::zeros(map, rank.rank(), 100).unwrap();
            for wrong in wrong {
                assert!(part.redistribute(rank, wrong).is_err(), "{wrong:?}");
            }
            // Only one rank asks for another tile size.
            let tile_size = if rank.rank() == 1 { 16 } else { 24 };
            let result = part.redistribute(rank, TileMap { tile_size, ..map });
            assert!(matches!(result, Err(Error::InvalidArgument(_))));
            assert!(part.redistribute(rank, map).is_ok());
        });
    }
}
