//! The same matrix in other tiles, over another grid of ranks, or as one triangle of it.

use crate::comm::{Incoming, Outgoing, Reduction, Transport, agree, agreed};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::place::{Place, pack, unpack};
use crate::tile::{TileId, TileMap};
use std::ops::Range;

/// Two distributions of one matrix.
struct Route {
    from: TileMap,
    to: TileMap,
    /// Whether entry `(i, j)` comes from `(j, i)`.
    flipped: bool,
}

/// Entries that a tile of the old distribution gives to one of the new.
struct Piece {
    source: TileId,
    target: TileId,
    /// Within the source, transposed where the route is flipped.
    in_source: Place,
    in_target: Place,
}

impl Route {
    /// All pieces of some columns of tiles of the new distribution: in the same order on every rank.
    fn pieces(&self, cols: Range<usize>) -> impl Iterator<Item = Piece> + '_ {
        let targets = cols.flat_map(|col| self.to.tile_rows_of(col).map(move |row| TileId { row, col }));
        targets.flat_map(move |target| {
            let outer = Place::of_tile(&self.to, target);
            self.sources(&outer).map(move |source| {
                let place = self.source_place(source);
                let common = outer.intersect(&place);
                Piece { source, target, in_source: common.within(&place), in_target: common.within(&outer) }
            })
        })
    }

    /// The tiles of the old distribution that have entries of `place`.
    fn sources<'r>(&'r self, place: &Place) -> impl Iterator<Item = TileId> + use<'r> {
        let (rows, cols) = if self.flipped { (&place.cols, &place.rows) } else { (&place.rows, &place.cols) };
        let size = self.from.tile_size;
        let (rows, cols) = (rows.start / size..rows.end.div_ceil(size), cols.start / size..cols.end.div_ceil(size));
        cols.flat_map(move |col| {
            let exist = self.from.tile_rows_of(col);
            (rows.start.max(exist.start)..rows.end.min(exist.end)).map(move |row| TileId { row, col })
        })
    }

    /// Where the entries of an old tile lie in the matrix.
    fn source_place(&self, source: TileId) -> Place {
        let Place { rows, cols } = Place::of_tile(&self.from, source);
        if self.flipped { Place { rows: cols, cols: rows } } else { Place { rows, cols } }
    }
}

impl DistMatrix {
    /// The same matrix as `map` distributes it: other tiles, another grid, or a triangle of it. Collective over
    /// `group`, whose ranks all pass the same map.
    ///
    /// One triangle made of the other is that of a symmetric matrix: the entries are transposed. A whole matrix made of
    /// a triangle has zeros elsewhere, or the mirror image where it is symmetric ([`DistMatrix::is_symmetric`]); a
    /// triangle made of a whole matrix leaves the other out.
    /// Memory: the new tiles; at a time, messages for one of this rank's columns of them, and with what it has for such
    /// a column of every other rank. Each entry travels once.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] for a map of another shape; [`Error::InvalidArgument`] for a grid of more ranks than
    /// there are, tiles that are not a multiple of 8 high, and maps that differ between ranks;
    /// [`Error::OutOfMemory`], [`Error::Transport`]; on every rank.
    pub fn redistribute(&self, group: &dyn Transport, map: TileMap) -> Result<DistMatrix> {
        self.check_group(group)?;
        check_alike(group, &map)?;
        let from = *self.map();
        check_map(group, &from, &map)?;
        let mut target = agreed(group, DistMatrix::zeros(map, group.rank(), self.precision_bits()))?;
        let flipped = from.triangle.is_some() && map.triangle.is_some() && from.triangle != map.triangle;
        let mirrored = self.is_symmetric() && map.triangle.is_none();
        for flipped in std::iter::once(flipped).chain(mirrored.then_some(true)) {
            let route = Route { from, to: map, flipped };
            // A column of tiles for each column of the new grid: every rank receives at a time.
            for start in (0..map.tile_cols()).step_by(map.grid.cols) {
                let cols = start..(start + map.grid.cols).min(map.tile_cols());
                self.send_columns(group, &route, cols, &mut target)?;
            }
        }
        if let (None, Some(uplo)) = (from.triangle, map.triangle) {
            let on_diagonal = target.tiles_mut().iter_mut().filter(|(id, _)| id.row == id.col);
            on_diagonal.for_each(|(_, tile)| clear_outside(tile, uplo));
        }
        if self.is_symmetric() && map.triangle.is_some() { target.into_symmetric() } else { Ok(target) }
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

    /// Moves the entries of some columns of new tiles.
    fn send_columns(
        &self,
        group: &dyn Transport,
        route: &Route,
        cols: Range<usize>,
        target: &mut DistMatrix,
    ) -> Result<()> {
        let (rank, size) = (group.rank(), group.size());
        let (mut messages, mut coming) = (vec![Vec::new(); size], Vec::new());
        coming.resize_with(size, Vec::new);
        let mut packed = Ok(());
        for piece in route.pieces(cols) {
            let (from, to) = (route.from.owner(piece.source), route.to.owner(piece.target));
            if from == rank && packed.is_ok() {
                packed = self.pack_piece(route, &piece, &mut messages[to]);
            }
            if to == rank {
                coming[from].push(piece);
            }
        }
        agree(group, packed)?;
        let width = 1 + self.precision_bits().div_ceil(u64::BITS) as usize;
        let words = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.in_target.entries()).sum::<usize>() * width;
        let own = std::mem::take(&mut messages[rank]);
        let mut received = coming.iter().map(|pieces| vec![0; words(pieces)]).collect::<Vec<_>>();
        received[rank] = Vec::new(); // what stays does not travel
        let sends = messages.iter().enumerate().filter(|(_, words)| !words.is_empty());
        let sends = sends.map(|(to, words)| Outgoing { to, words }).collect::<Vec<_>>();
        let receives = received.iter_mut().enumerate().filter(|(_, words)| !words.is_empty());
        group.exchange(&sends, &mut receives.map(|(from, words)| Incoming { from, words }).collect::<Vec<_>>())?;
        received[rank] = own;
        for (pieces, message) in coming.iter().zip(&received) {
            let mut rest = &message[..];
            for piece in pieces {
                let (words, after) = rest.split_at(piece.in_target.entries() * width);
                let tile = target.tile_mut(piece.target).expect("pieces that come are for own tiles");
                unpack(words, &piece.in_target, tile);
                rest = after;
            }
        }
        Ok(())
    }

    fn pack_piece(&self, route: &Route, piece: &Piece, message: &mut Vec<u64>) -> Result<()> {
        let tile = self.tile(piece.source).expect("an own tile");
        pack(if route.flipped { tile.transposed() } else { tile.view() }, &piece.in_source, message)
    }
}

/// Refuses maps that differ between ranks. Collective.
fn check_alike(group: &dyn Transport, map: &TileMap) -> Result<()> {
    let triangle = map.triangle.map_or(0, |uplo| if uplo == Uplo::Lower { 1 } else { 2 });
    let own = [map.rows, map.cols, map.tile_size, map.grid.rows, map.grid.cols, triangle].map(|number| number as u64);
    let mut words = own.iter().copied().chain(own.map(|word| !word)).collect::<Vec<_>>();
    group.all_reduce(Reduction::Max, &mut words)?;
    let (largest, least) = words.split_at(own.len());
    match largest.iter().zip(least).all(|(largest, least)| *largest == !least) {
        true => Ok(()),
        false => Err(Error::InvalidArgument("ranks ask for different distributions of a matrix".to_string())),
    }
}

/// Refuses a map of another shape or of more ranks than there are; all ranks have the same one.
fn check_map(group: &dyn Transport, from: &TileMap, to: &TileMap) -> Result<()> {
    if (from.rows, from.cols) != (to.rows, to.cols) {
        return Err(Error::shape_mismatch("redistribute", (from.rows, from.cols), (to.rows, to.cols)));
    }
    if to.grid.size() > group.size() {
        let message = format!("a grid of {} x {} for {} ranks", to.grid.rows, to.grid.cols, group.size());
        return Err(Error::InvalidArgument(message));
    }
    Ok(())
}

/// Zeros in a tile on the diagonal, outside a triangle.
fn clear_outside(tile: &mut Matrix, uplo: Uplo) {
    if uplo == Uplo::Lower {
        return tile.clear_above_diagonal();
    }
    let (rows, width) = (tile.rows(), tile.limbs_per_element());
    let (heads, limbs) = tile.parts_mut();
    for (col, (heads, limbs)) in heads.chunks_mut(rows).zip(limbs.chunks_mut(rows * width)).enumerate() {
        let below = (col + 1).min(rows);
        heads[below..].fill(0);
        limbs[below * width..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
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
            for (from_grid, to_grid) in pairs {
                for (rows, cols, from_size, to_size) in
                    [(67, 67, 16, 24), (5, 90, 8, 32), (90, 31, 40, 8), (0, 7, 8, 8)]
                {
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
            // One rank alone asks for something else.
            let tile_size = if rank.rank() == 1 { 16 } else { 24 };
            let result = part.redistribute(rank, TileMap { tile_size, ..map });
            assert!(matches!(result, Err(Error::InvalidArgument(_))));
            assert!(part.redistribute(rank, map).is_ok());
        });
    }
}
