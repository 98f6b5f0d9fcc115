//! `DistMatrix`: a matrix in tiles, each on the rank that owns it.

use crate::comm::{Transport, agree, agreed, check_alike};
use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::matrix::Matrix;
use crate::matrix::mirror::{Workers, mirror};
use crate::ops::distribution::rect::{Rect, receive, send, store, unpack};
use crate::plan::BLOCK;
use crate::tile::{LARGEST_BLOCK, RankGrid, TileId, TileMap};

/// One rank's part of a matrix in tiles, distributed 2D block-cyclically over the ranks of a team.
///
/// If only a triangle is stored, only the tiles that contain entries of the triangle exist. Entries outside the
/// triangle are 0, as in a factor, or the mirror image of the entries inside, as in the result of a SYRK:
/// [`DistMatrix::is_symmetric`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistMatrix {
    map: TileMap,
    rank: usize,
    precision_bits: u32,
    /// Whether the matrix is symmetric, so that the stored triangle represents both. The tiles on the diagonal then
    /// contain both triangles.
    symmetric: bool,
    /// The rank's tiles, column by column.
    tiles: Vec<(TileId, Matrix)>,
}

impl DistMatrix {
    /// The zero matrix: the tiles of rank `rank`.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Precision`]; [`crate::Error::InvalidArgument`] for a grid without
    /// ranks and for tiles whose height is not a multiple of 8.
    pub fn zeros(map: TileMap, rank: usize, precision_bits: u32) -> Result<DistMatrix> {
        check_tile_size(map.tile_size)?;
        map.grid.check_ranks(usize::MAX)?;
        let tile = |id: TileId| {
            let (rows, cols) = (map.row_range(id.row).len(), map.col_range(id.col).len());
            Ok((id, Matrix::zeros(rows, cols, precision_bits)?))
        };
        let tiles = map.tiles_of(rank).map(tile).collect::<Result<_>>()?;
        Ok(DistMatrix { map, rank, precision_bits, symmetric: false, tiles })
    }

    /// A matrix without entries.
    pub(crate) fn empty() -> DistMatrix {
        let map = TileMap { rows: 0, cols: 0, tile_size: BLOCK, grid: RankGrid { rows: 1, cols: 1 }, triangle: None };
        DistMatrix { map, rank: 0, precision_bits: 2, symmetric: false, tiles: Vec::new() }
    }

    /// Becomes a matrix of which every entry will be written: keeps its tiles, with arbitrary contents, where they fit
    /// the map and the precision, and allocates new ones otherwise.
    ///
    /// # Errors
    /// As [`DistMatrix::zeros`]; the matrix is empty then.
    pub(crate) fn prepare(&mut self, map: TileMap, rank: usize, precision_bits: u32) -> Result<()> {
        if !self.fits(&map, rank, precision_bits) {
            *self = DistMatrix::empty(); // give the old memory back before asking for the new
            *self = DistMatrix::zeros(map, rank, precision_bits)?;
        }
        Ok(())
    }

    /// Whether the tiles have the shapes that [`DistMatrix::zeros`] would make.
    pub(crate) fn fits(&self, map: &TileMap, rank: usize, precision_bits: u32) -> bool {
        // Tiles can be replaced through `tiles_mut`.
        (self.map, self.rank, self.precision_bits, self.symmetric) == (*map, rank, precision_bits, false)
            && self.has_own_tiles()
    }

    /// Shape, tiles and owners of the matrix.
    pub fn map(&self) -> &TileMap {
        &self.map
    }

    /// Whether this is one triangle of a symmetric matrix and represents the whole matrix; otherwise entries outside a
    /// triangle are 0.
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    /// The symmetric matrix with this triangle; entries of the diagonal tiles outside the triangle are replaced.
    ///
    /// # Errors
    /// On every rank: [`Error::InvalidArgument`] if the map has no triangle, [`Error::ShapeMismatch`] if it is not
    /// square. Since no message is sent, [`Error::InvalidArgument`] for a tile that was replaced by another one
    /// ([`DistMatrix::tiles_mut`]) is returned only on the rank of that tile.
    pub fn into_symmetric(mut self) -> Result<DistMatrix> {
        let (rows, cols) = (self.map.rows, self.map.cols);
        if rows != cols {
            let operation = "a symmetric matrix in tiles";
            let (left_rows, left_cols, right_rows, right_cols) = (rows, cols, cols, rows);
            return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
        }
        let Some(uplo) = self.map.triangle else {
            return Err(Error::InvalidArgument("a matrix in tiles is whole where a triangle was expected".into()));
        };
        self.check_tiles()?;
        let on_diagonal = self.tiles.iter_mut().filter(|(id, _)| id.row == id.col);
        on_diagonal.for_each(|(_, tile)| mirror(tile.view_mut(), uplo, Workers::One));
        self.symmetric = true;
        Ok(self)
    }

    /// The rank to which this part belongs.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Bits of every significand.
    pub fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    /// The tiles of this rank, column by column.
    pub fn tiles(&self) -> &[(TileId, Matrix)] {
        &self.tiles
    }

    /// The tiles of this rank, for changes; calls refuse a matrix whose tiles have other shapes or precisions
    /// afterwards.
    pub fn tiles_mut(&mut self) -> &mut [(TileId, Matrix)] {
        &mut self.tiles
    }

    /// A tile of this rank; `None` if another rank owns it.
    pub fn tile(&self, id: TileId) -> Option<&Matrix> {
        self.find(id).map(|at| &self.tiles[at].1)
    }

    /// A tile of this rank, for changes, as [`DistMatrix::tiles_mut`].
    pub fn tile_mut(&mut self, id: TileId) -> Option<&mut Matrix> {
        self.find(id).map(|at| &mut self.tiles[at].1)
    }

    /// Entry `(row, col)` of the whole matrix, which must lie in a tile of this rank (asserted).
    pub(crate) fn entry(&self, row: usize, col: usize) -> FloatRef<'_> {
        let size = self.map.tile_size;
        let tile = self.tile(TileId { row: row / size, col: col / size }).expect("an entry of this rank");
        tile.get(row % size, col % size)
    }

    fn find(&self, id: TileId) -> Option<usize> {
        self.tiles.binary_search_by_key(&(id.col, id.row), |(tile, _)| (tile.col, tile.row)).ok()
    }

    /// Bytes of this rank's tiles.
    pub fn bytes(&self) -> u64 {
        self.tiles.iter().map(|(_, tile)| tile.bytes()).sum()
    }

    /// Bytes of the tiles of any rank; 0 if tiles have 0 rows.
    pub fn bytes_for(map: &TileMap, rank: usize, precision_bits: u32) -> u64 {
        if map.tile_size == 0 {
            return 0;
        }
        let tile =
            |id: TileId| Matrix::bytes_for(map.row_range(id.row).len(), map.col_range(id.col).len(), precision_bits);
        map.tiles_of(rank).map(tile).sum()
    }

    /// Refuses a group other than the one that the matrix is distributed over, and tiles put in by a caller that do not
    /// fit the map. Collective.
    pub(crate) fn check_group(&self, group: &dyn Transport) -> Result<()> {
        agree(group, check_place(group, self.rank, self.map.grid).and_then(|()| self.check_tiles()))
    }

    /// Refuses tiles put in by a caller that do not fit the map.
    fn check_tiles(&self) -> Result<()> {
        match self.has_own_tiles() {
            true => Ok(()),
            false => Err(Error::InvalidArgument(format!(
                "rank {}: a tile was replaced by one of another position, shape or precision",
                self.rank
            ))),
        }
    }

    /// Whether every tile still has its place, shape and precision.
    fn has_own_tiles(&self) -> bool {
        let is_own = |(id, tile): &(TileId, Matrix)| {
            (tile.rows(), tile.cols()) == self.map.shape(*id) && tile.precision_bits() == self.precision_bits
        };
        self.tiles.iter().map(|(id, _)| *id).eq(self.map.tiles_of(self.rank)) && self.tiles.iter().all(is_own)
    }

    /// The whole matrix on rank `root`, `None` on the others; see [`DistMatrix::is_symmetric`]. Collective.
    ///
    /// # Errors
    /// On every rank: [`crate::Error::InvalidArgument`] for a root outside the group, for a group of fewer ranks than
    /// the grid or in which this rank has another number, for tiles that were replaced by others
    /// ([`DistMatrix::tiles_mut`]), and for ranks that differ in the root, the tiles, the precision or the symmetry;
    /// [`crate::Error::OutOfMemory`] if the root cannot hold the matrix; [`crate::Error::Transport`].
    pub fn gather(&self, group: &dyn Transport, root: usize) -> Result<Option<Matrix>> {
        self.check_group(group)?;
        let refusal =
            || Error::InvalidArgument(format!("gather: there is no rank {root} among {} ranks", group.size()));
        agree(group, if root < group.size() { Ok(()) } else { Err(refusal()) })?;
        let said = (root, self.map, self.precision_bits, self.symmetric);
        check_alike(group, &said, "gather: the ranks pass different roots, tilings, precisions or symmetries")?;
        let made = match group.rank() == root {
            true => Matrix::zeros(self.map.rows, self.map.cols, self.precision_bits).map(Some),
            false => Ok(None),
        };
        let mut whole = agreed(group, made)?;
        let mut own = self.tiles.iter();
        let mut words = Vec::new();
        for id in self.map.tiles() {
            let owner = self.map.owner(id);
            let place = Rect::of_tile(&self.map, id);
            let tile = if owner == self.rank { own.next().map(|(_, tile)| tile) } else { None };
            match (&mut whole, tile) {
                (Some(whole), Some(tile)) => {
                    let (heads, limbs) = tile.parts();
                    store(heads, limbs, &place, whole);
                }
                (None, Some(tile)) => send(group, root, tile)?,
                (Some(whole), None) => {
                    words.resize(place.entries() * (1 + whole.limbs_per_element()), 0);
                    let (heads, limbs) = words.split_at_mut(place.entries());
                    receive(group, owner, heads, limbs)?;
                    unpack(&words, &place, whole);
                }
                (None, None) => {}
            }
        }
        whole.iter_mut().for_each(|whole| self.complete(whole));
        Ok(whole)
    }

    /// Fills the other triangle of a symmetric matrix of which all tiles have arrived.
    fn complete(&self, whole: &mut Matrix) {
        if let (true, Some(uplo)) = (self.symmetric, self.map.triangle) {
            mirror(whole.view_mut(), uplo, Workers::One);
        }
    }

    /// Distributes the matrix `whole` of rank `root` into tiles according to `map`; all other ranks pass `None`. If the
    /// map has a triangle, the result is that triangle: see [`DistMatrix::into_symmetric`]. Collective.
    ///
    /// # Errors
    /// On every rank: [`crate::Error::InvalidArgument`] for a root or a grid outside the group, for a matrix that is
    /// not only on the root or has another precision, and for ranks with different arguments;
    /// [`crate::Error::ShapeMismatch`] for a matrix of another shape; [`crate::Error::OutOfMemory`] if a rank cannot
    /// hold its tiles; [`crate::Error::Transport`].
    pub fn scatter(
        group: &dyn Transport,
        root: usize,
        whole: Option<&Matrix>,
        map: TileMap,
        precision_bits: u32,
    ) -> Result<DistMatrix> {
        agree(group, check_scatter(group, root, whole, &map, precision_bits))?;
        let said = (root, map, precision_bits);
        check_alike(group, &said, "scatter: the ranks pass different roots, tilings or precisions")?;
        let mut part = agreed(group, DistMatrix::zeros(map, group.rank(), precision_bits))?;
        let mut own = part.tiles.iter_mut();
        for id in map.tiles() {
            let owner = map.owner(id);
            let tile = if owner == group.rank() { own.next().map(|(_, tile)| tile) } else { None };
            // A tile that the root cannot hold is the error of all.
            let sent = agreed(group, whole.map(|whole| cut(whole, &map, id)).transpose())?;
            match (sent, tile) {
                (Some(sent), Some(tile)) => *tile = sent,
                (Some(sent), None) => send(group, owner, &sent)?,
                (None, Some(tile)) => {
                    let (heads, limbs) = tile.parts_mut();
                    receive(group, root, heads, limbs)?;
                }
                (None, None) => {}
            }
        }
        Ok(part)
    }
}

impl DistMatrix {
    /// The whole matrix on every rank; see [`DistMatrix::is_symmetric`]. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`]; [`crate::Error::OutOfMemory`] on every rank where one cannot hold it.
    pub(crate) fn everywhere(&self, group: &dyn Transport) -> Result<Matrix> {
        let mut whole = agreed(group, Matrix::zeros(self.map.rows, self.map.cols, self.precision_bits))?;
        let width = 1 + whole.limbs_per_element();
        for rank in 0..self.map.grid.size() {
            let mut words = match rank == self.rank {
                true => self.tiles.iter().flat_map(|(_, tile)| [tile.parts().0, tile.parts().1].concat()).collect(),
                false => vec![0; self.map.entries_of(rank) * width],
            };
            if words.is_empty() {
                continue;
            }
            group.broadcast(rank, &mut words)?;
            let mut rest = &words[..];
            for id in self.map.tiles_of(rank) {
                let place = Rect::of_tile(&self.map, id);
                let (tile, others) = rest.split_at(place.entries() * width);
                unpack(tile, &place, &mut whole);
                rest = others;
            }
        }
        self.complete(&mut whole);
        Ok(whole)
    }

    /// This rank's tiles of a matrix that every rank has whole, of the map's shape.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub(crate) fn of_whole(whole: &Matrix, map: TileMap, rank: usize) -> Result<DistMatrix> {
        let tiles = map.tiles_of(rank).map(|id| Ok((id, cut(whole, &map, id)?))).collect::<Result<_>>()?;
        Ok(DistMatrix { map, rank, precision_bits: whole.precision_bits(), symmetric: false, tiles })
    }
}

/// Refuses the part of one rank on another one, and a grid of more ranks than the group has.
pub(crate) fn check_place(group: &dyn Transport, rank: usize, grid: RankGrid) -> Result<()> {
    let (here, ranks, RankGrid { rows, cols }) = (group.rank(), group.size(), grid);
    if rank == here && grid.size() <= ranks {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "rank {here} of {ranks} passes the part of rank {rank} of a matrix on a grid of {rows} x {cols} ranks"
    )))
}

/// Refuses a root outside the group.
pub(crate) fn check_root(group: &dyn Transport, root: usize) -> Result<()> {
    let ranks = group.size();
    if root < ranks {
        Ok(())
    } else {
        Err(Error::InvalidArgument(format!("there is no rank {root} among {ranks} ranks to be the root")))
    }
}

/// Refuses tiles that are not whole blocks.
pub(crate) fn check_tile_size(tile_size: usize) -> Result<()> {
    if tile_size == 0 || !tile_size.is_multiple_of(BLOCK) {
        return Err(Error::InvalidArgument(format!(
            "tiles of {tile_size} rows are not possible; choose a multiple of {BLOCK}"
        )));
    }
    if tile_size > LARGEST_BLOCK {
        return Err(Error::InvalidArgument(format!(
            "tiles of {tile_size} rows are too large; choose {LARGEST_BLOCK} rows at most"
        )));
    }
    Ok(())
}

/// Refuses arguments that cannot be scattered: a root or a grid beyond the group, a matrix on a rank other than the
/// root, or one that does not fit the map.
fn check_scatter(
    group: &dyn Transport,
    root: usize,
    whole: Option<&Matrix>,
    map: &TileMap,
    precision_bits: u32,
) -> Result<()> {
    let rank = group.rank();
    let refuse = |message: String| Err(Error::InvalidArgument(message));
    map.grid.check_ranks(group.size())?;
    check_root(group, root)?;
    if whole.is_some() != (rank == root) {
        return refuse(format!(
            "scatter: rank {root} must pass the matrix, and no other rank may: this is rank {rank}"
        ));
    }
    let Some(whole) = whole else { return Ok(()) };
    if (whole.rows(), whole.cols()) != (map.rows, map.cols) {
        return Err(Error::shape_mismatch("scatter", (whole.rows(), whole.cols()), (map.rows, map.cols)));
    }
    if whole.precision_bits() != precision_bits {
        let bits = whole.precision_bits();
        return refuse(format!("scatter: the matrix has {bits} bits, but the result has {precision_bits}"));
    }
    Ok(())
}

/// A tile of a whole matrix.
fn cut(whole: &Matrix, map: &TileMap, id: TileId) -> Result<Matrix> {
    let Rect { rows, cols } = Rect::of_tile(map, id);
    whole.view().block(rows, cols)?.to_matrix()
}
