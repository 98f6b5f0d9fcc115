//! `DoubleMatrix`: the lower triangle of a symmetric matrix of doubles, in tiles over ranks.

use crate::comm::{Incoming, Outgoing, Say, Transport, agree, check_alike};
use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::matrix::Uplo;
use crate::ops::distribution::matrix::{check_place, check_root};
use crate::store::vectors_on_huge_pages;
use crate::tile::{RankGrid, TileId, TileMap};
use std::collections::HashMap;
use std::sync::Arc;

/// A tile's doubles as words, column by column: the form in which it travels.
pub(super) type DoubleWords = Arc<Vec<u64>>;

/// This rank's tiles of the lower triangle of a symmetric matrix, or of a lower triangular factor.
///
/// Tiles are column-major, 2D block-cyclic over the grid. Tiles above the diagonal do not exist, and entries above the
/// diagonal inside diagonal tiles have no meaning.
#[derive(Debug)]
pub struct DoubleMatrix {
    map: TileMap,
    rank: usize,
    pub(super) own: HashMap<TileId, DoubleWords>,
}

impl Clone for DoubleMatrix {
    /// A copy with words of its own: a factorisation would copy shared ones.
    fn clone(&self) -> DoubleMatrix {
        let lengths = self.own.values().map(|words| words.len()).collect::<Vec<_>>();
        // If memory does not suffice for the buffers, it does not suffice for the copies, which report the error.
        let buffers = vectors_on_huge_pages(&lengths).unwrap_or_else(|_| vec![Vec::new(); lengths.len()]);
        let copy = |((&tile, words), mut buffer): ((&TileId, &DoubleWords), Vec<u64>)| {
            buffer.extend_from_slice(words);
            (tile, Arc::new(buffer))
        };
        DoubleMatrix { map: self.map, rank: self.rank, own: self.own.iter().zip(buffers).map(copy).collect() }
    }
}

impl DoubleMatrix {
    /// The tiles of rank `rank`, of a matrix with entries `entry(i, j)`, `i >= j`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tiles of 0 rows and an empty grid; [`Error::OutOfMemory`].
    pub fn from_fn(
        rank: usize,
        order: usize,
        tile_rows: usize,
        grid: RankGrid,
        entry: impl Fn(usize, usize) -> f64,
    ) -> Result<DoubleMatrix> {
        if tile_rows == 0 || grid.size() == 0 {
            let message = format!(
                "tiles of {tile_rows} rows on a grid of {} x {} ranks are not possible; all these numbers must be at \
                 least 1",
                grid.rows, grid.cols
            );
            return Err(Error::InvalidArgument(message));
        }
        let triangle = Some(Uplo::Lower);
        let map = TileMap { rows: order, cols: order, tile_size: tile_rows.min(order.max(1)), grid, triangle };
        let mut own = HashMap::new();
        let count = |tile: TileId| map.entries(tile);
        let buffers = vectors_on_huge_pages(&map.tiles_of(rank).map(count).collect::<Vec<_>>())?;
        for (tile, mut words) in map.tiles_of(rank).zip(buffers) {
            let (rows, cols) = (map.row_range(tile.row), map.col_range(tile.col));
            let lower = |i: usize, j: usize| if i < j { 0.0 } else { entry(i, j) };
            words.extend(cols.flat_map(|j| rows.clone().map(move |i| (i, j))).map(|(i, j)| lower(i, j).to_bits()));
            own.insert(tile, Arc::new(words));
        }
        Ok(DoubleMatrix { map, rank, own })
    }

    /// The tile size of the matrix, and the owners of its tiles.
    pub fn map(&self) -> &TileMap {
        &self.map
    }

    /// Rows of a tile for a matrix of `order` rows on one device: about 24 tiles a side, of 64 to 2048 rows.
    pub fn tile_rows_for(order: usize) -> usize {
        order.div_ceil(24).next_multiple_of(64).clamp(64, 2048)
    }

    /// The rank whose tiles these are.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// This rank's tiles, column by column.
    pub fn tiles(&self) -> impl Iterator<Item = (TileId, &[f64])> {
        self.map.tiles_of(self.rank).map(|tile| (tile, bytemuck::cast_slice::<u64, f64>(&self.own[&tile])))
    }

    /// Bytes of the largest tile of any rank.
    pub(super) fn most_bytes(&self) -> u64 {
        (self.map.tile_size * self.map.tile_size * size_of::<f64>()) as u64
    }

    /// Room for `slots` tiles of other ranks, or for all of them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn buffers(&self, slots: usize) -> Result<Vec<Vec<u64>>> {
        let tiles = self.map.tile_rows();
        let others = tiles * (tiles + 1) / 2 - self.own.len();
        vectors_on_huge_pages(&vec![self.map.tile_size * self.map.tile_size; slots.min(others)])
    }

    /// Refuses entries that are not finite: the first one here, column by column.
    pub(super) fn check_finite(&self, ctx: &Context) -> Result<()> {
        let (mut tiles, mut workers) = (self.tiles(), vec![None::<(usize, usize)>; ctx.threads()]);
        let look = |first: &mut Option<(usize, usize)>, (tile, entries): (TileId, &[f64])| {
            let (rows, cols) = (self.map.row_range(tile.row), self.map.col_range(tile.col));
            for (column, entries) in cols.zip(entries.chunks_exact(rows.len().max(1))) {
                let above = column.saturating_sub(rows.start);
                if let Some(at) = entries.iter().skip(above).position(|entry| !entry.is_finite()) {
                    let found = (column, rows.start + above + at);
                    *first = Some(first.map_or(found, |known| known.min(found)));
                    break;
                }
            }
            Ok(())
        };
        ctx.install(|| drive::parallel_for(&mut workers, |_| tiles.next(), look))?;
        let Some((column, row)) = workers.into_iter().flatten().min() else { return Ok(()) };
        Err(Error::NotFinite { row, column, kind: if self.entry(row, column).is_nan() { "NaN" } else { "infinite" } })
    }

    /// An entry of this rank's tiles.
    fn entry(&self, row: usize, column: usize) -> f64 {
        let tile = TileId { row: row / self.map.tile_size, col: column / self.map.tile_size };
        let (rows, cols) = (self.map.row_range(tile.row), self.map.col_range(tile.col));
        f64::from_bits(self.own[&tile][(column - cols.start) * rows.len() + row - rows.start])
    }

    /// The whole lower triangle on rank `root`, column-major with zeros above the diagonal; `None` on the others.
    /// Collective.
    ///
    /// # Errors
    /// The same error on every rank: [`Error::InvalidArgument`] for a root outside the group, for a group to which
    /// these tiles do not belong, and for ranks that differ in the root or in the tiling of the matrix;
    /// [`Error::Transport`].
    pub fn gather(&self, world: &dyn Transport, root: usize) -> Result<Option<Vec<f64>>> {
        self.check_group(world, check_root(world, root), &root)?;
        let own = self.map.tiles_of(self.rank).flat_map(|tile| self.own[&tile].iter().copied()).collect::<Vec<_>>();
        let of_rank = |rank: usize| if rank < self.map.grid.size() { self.map.entries_of(rank) } else { 0 };
        let is_root = world.rank() == root;
        let senders = if is_root { world.size() } else { 0 };
        let mut parts = (0..senders).map(|rank| vec![0; of_rank(rank)]).collect::<Vec<_>>();
        let receives = parts.iter_mut().enumerate().map(|(from, words)| Incoming { from, words: &mut words[..] });
        let mut receives = receives.collect::<Vec<_>>();
        world.exchange(&[Outgoing { to: root, words: &own }], &mut receives)?;
        Ok(is_root.then(|| self.put_together(&parts)))
    }

    fn put_together(&self, parts: &[Vec<u64>]) -> Vec<f64> {
        let order = self.map.rows;
        let mut whole = vec![0.0; order * order];
        for (rank, words) in parts.iter().enumerate().take(self.map.grid.size()) {
            let mut words = words.iter();
            for tile in self.map.tiles_of(rank) {
                for j in self.map.col_range(tile.col) {
                    for (i, &word) in self.map.row_range(tile.row).zip(words.by_ref()) {
                        whole[j * order + i] = if i < j { 0.0 } else { f64::from_bits(word) };
                    }
                }
            }
        }
        whole
    }

    /// The largest `|A x - L L^T x| / (order eps |A|_F |x|)` (Euclidean norms) over `vectors`, for the matrix `A` with
    /// entries `entry(i, j)`, `i >= j`, and the factor in these tiles. Collective; no entries of the matrix are sent.
    ///
    /// # Errors
    /// The same error on every rank: [`Error::InvalidArgument`] for a vector whose length is not `order`, for a group
    /// to which these tiles do not belong, and for ranks that differ in the number of vectors or in the tiling of the
    /// matrix; [`Error::Transport`].
    pub fn residual(
        &self,
        world: &dyn Transport,
        entry: impl Fn(usize, usize) -> f64,
        vectors: &[Vec<f64>],
    ) -> Result<f64> {
        let order = self.map.rows;
        let other_length = vectors.iter().map(Vec::len).find(|&entries| entries != order);
        let fit = other_length.map_or(Ok(()), |entries| {
            let message = format!("a vector of {entries} entries does not fit a matrix of order {order}");
            Err(Error::InvalidArgument(message))
        });
        self.check_group(world, fit, &vectors.len())?;
        let mut worst = 0.0f64;
        for x in vectors.iter().filter(|_| order > 0) {
            // `A x`, then `L^T x`, then the square of `|A|_F`.
            let mut sums = vec![0.0; 2 * order + 1];
            self.each_entry(|i, j, l| {
                let a = entry(i, j);
                sums[i] += a * x[j];
                sums[order + j] += l * x[i];
                sums[2 * order] += a * a;
                if i != j {
                    sums[j] += a * x[i];
                    sums[2 * order] += a * a;
                }
            });
            let sums = sum_over_ranks(world, sums)?;
            let (transposed, mut product) = (&sums[order..], vec![0.0; order]);
            self.each_entry(|i, j, l| product[i] += l * transposed[j]);
            let product = sum_over_ranks(world, product)?;
            let rest = product.iter().zip(&sums).map(|(l, a)| (a - l).powi(2)).sum::<f64>().sqrt();
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            let residual = rest / (order as f64 * f64::EPSILON * sums[2 * order].sqrt() * length);
            worst = if residual.is_nan() { f64::INFINITY } else { worst.max(residual) };
        }
        Ok(worst)
    }

    /// Refuses an error in `own` on any rank, a group with fewer ranks than the grid, one in which a rank has the tiles
    /// of another, and ranks that differ in how the matrix is cut or in the options `asked`. Collective.
    ///
    /// # Errors
    /// The errors of `own`; [`Error::InvalidArgument`]; [`Error::Transport`]. Every rank returns the same error.
    pub(super) fn check_group(&self, world: &dyn Transport, own: Result<()>, asked: &impl Say) -> Result<()> {
        agree(world, own.and_then(|()| check_place(world, self.rank, self.map.grid)))?;
        check_alike(
            world,
            &(self.map, asked),
            "the ranks pass different tilings of a matrix of doubles or different arguments",
        )
    }

    fn each_entry(&self, mut visit: impl FnMut(usize, usize, f64)) {
        for (tile, entries) in self.tiles() {
            let rows = self.map.row_range(tile.row);
            for (j, column) in self.map.col_range(tile.col).zip(entries.chunks_exact(rows.len().max(1))) {
                for (i, &entry) in rows.clone().zip(column).filter(|(i, _)| *i >= j) {
                    visit(i, j, entry);
                }
            }
        }
    }
}

/// The sums of all ranks' numbers, in the order of the ranks.
fn sum_over_ranks(world: &dyn Transport, own: Vec<f64>) -> Result<Vec<f64>> {
    let words = own.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let mut all = vec![0; words.len() * world.size()];
    world.all_gather(&words, &mut all)?;
    let mut sums = vec![0.0; own.len()];
    for (at, word) in all.into_iter().enumerate() {
        sums[at % own.len()] += f64::from_bits(word);
    }
    Ok(sums)
}
