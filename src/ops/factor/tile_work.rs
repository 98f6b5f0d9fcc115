//! The work on single tiles of a factorisation, independent of their place: load, update, factor, solve, round.
//!
//! All that a tile needs is passed in: its words, finished tiles as words, the running weights of its rows. Does not
//! know: threads, ranks, the places of tiles. `payload` has the words in which a finished tile travels.

use crate::error::{Error, Result};
use crate::kernels::rounding::EntryRounding;
use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, EightEntries, EntryForm, EntrySource, FailedPivot, PANEL_ROWS, PanelColumn, SolveTile,
    TileEngine, TilePart, TileShape, TileSource, UpdateTile,
};
use crate::math::float::Head;
use crate::math::pivot::RowWeight;
use crate::matrix::{MAXIMUM_EXPONENT, Matrix, MatrixView};
use crate::ops::factor::tiling::shape_of;
use crate::tile::{OwnTiles, TileId, TileMap};
use rug::Integer;

/// Tile kernels with the tiling and the scaling of one factorisation.
pub(crate) struct TileWork<'a> {
    /// The kernels.
    pub engine: &'a dyn TileEngine,
    /// The tiles.
    pub tiling: &'a TileMap,
    /// Fixed-point bits of the scaled factor.
    pub working_bits: u32,
    row_shifts: Vec<i64>,
    col_shifts: Vec<i64>,
}

/// A row of the matrix whose pivot is not positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedRow {
    /// The row.
    pub index: usize,
    /// The pivot, scaled by `2^(2 working_bits)`, where it was computed.
    pub pivot: Option<Integer>,
}

/// A piece of a column of the factor, to be rounded: heads and limbs of the leading rows of a tile.
pub(crate) struct ColumnOfTile<'m> {
    /// Column within the tile.
    pub col: usize,
    /// A head for each row that is wanted.
    pub heads: &'m mut [u64],
    /// Their limbs.
    pub limbs: &'m mut [u64],
    /// Bits of the rounded entries.
    pub precision_bits: u32,
}

impl<'a> TileWork<'a> {
    /// For kernels of `working_bits` and the exponents `s_i` of all rows of `tiling`.
    pub fn new(engine: &'a dyn TileEngine, tiling: &'a TileMap, working_bits: u32, exponents: &[i64]) -> TileWork<'a> {
        let bits = i64::from(working_bits);
        TileWork {
            engine,
            tiling,
            working_bits,
            row_shifts: exponents.iter().map(|exponent| 2 * bits - exponent).collect(),
            col_shifts: exponents.iter().map(|exponent| -exponent).collect(),
        }
    }

    /// Shape of a tile.
    pub fn shape(&self, tile: TileId) -> TileShape {
        shape_of(self.tiling, tile)
    }

    /// The words of the tiles of a rank, in order, from the front of `words`.
    pub fn cut<'w>(&self, rank: usize, mut words: &'w mut [u64]) -> Vec<&'w mut [u64]> {
        let tiles = self.tiling.tile_rows();
        let next = |tile: TileId| {
            let (own, rest) = std::mem::take(&mut words).split_at_mut(self.engine.tile_words(self.shape(tile)));
            words = rest;
            own
        };
        OwnTiles::new(self.tiling.grid, tiles, rank).in_columns(0..tiles).map(next).collect()
    }

    /// Takes a tile in; `matrix` begins at the first row and column of the tile, and may go beyond it.
    ///
    /// Of a tile on the diagonal the lower triangle is read. `words` has the engine's `tile_words` words.
    pub fn load(&self, tile: TileId, matrix: MatrixView<'_>, words: &mut [u64], scratch: &mut [u64]) {
        let (rows, cols) = (self.tiling.row_range(tile.row), self.tiling.row_range(tile.col));
        let source = TileSource {
            matrix,
            part: if tile.row == tile.col { TilePart::Lower } else { TilePart::Whole },
            rows: 0..rows.len(),
            cols: 0..cols.len(),
            row_shifts: &self.row_shifts[rows],
            col_shifts: &self.col_shifts[cols],
        };
        self.engine.load(&source, words, scratch);
    }

    /// SYRK and GEMM: subtracts the products with finished tiles of the previous columns from `tiles`, a strip of one
    /// column that begins at `first`.
    ///
    /// `y` are the finished tiles in the row of tiles `first.col`, one for each column that is subtracted, and the `x`
    /// of each tile are those in its own row; for a tile on the diagonal they are `y`. The order of columns is free.
    ///
    /// # Errors
    /// The errors of [`TileEngine::update`]; places are those in the matrix.
    pub fn update(&self, first: TileId, tiles: &mut [UpdateTile<'_>], y: &[&[u64]], scratch: &mut [u64]) -> Result<()> {
        let updated = self.engine.update(tiles, y, self.tiling.tile_size, scratch);
        updated.map_err(|error| match error {
            // The first tile of the strip stands for all: a fault concerns more than one entry.
            Error::SelfCheck { row, column } => Error::SelfCheck {
                row: row + self.tiling.row_range(first.row).start,
                column: column + self.tiling.row_range(first.col).start,
            },
            error => error,
        })
    }

    /// POTRF of a tile on the diagonal, all of whose updates are applied; returns the data that [`TileWork::solve`]
    /// needs in addition to its words.
    ///
    /// `weights` are those that the tile before it in its row has left, or the first ones.
    ///
    /// # Errors
    /// The first row whose pivot is not positive; the rows before it are finished.
    pub fn factor(
        &self,
        tile: TileId,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> std::result::Result<Box<dyn DiagonalData>, FailedRow> {
        let factored = self.engine.factor(self.shape(tile), words, weights, scratch);
        factored.map_err(|FailedPivot { column, value }| FailedRow {
            index: self.tiling.row_range(tile.col).start + column,
            pivot: value,
        })
    }

    /// TRSM of a tile, all of whose updates are applied, below the factored tile with the words `diagonal` and their
    /// `data`.
    ///
    /// `weights` are those that the tile before it in its row has left, or the first ones; they become those that the
    /// next one needs.
    pub fn solve(
        &self,
        tile: TileId,
        words: &mut [u64],
        weights: &mut [RowWeight],
        diagonal: &[u64],
        data: &dyn DiagonalData,
        scratch: &mut [u64],
    ) {
        let tile = SolveTile { shape: self.shape(tile), words, weights };
        self.engine.solve(tile, DiagonalTile { words: diagonal, data }, scratch);
    }

    /// Rounds the leading rows and columns of a finished tile that `matrix` has into `matrix`.
    ///
    /// Entries above the diagonal stay unchanged.
    ///
    /// # Errors
    /// [`Error::ExponentRange`], with the place in the whole matrix.
    pub fn store(&self, tile: TileId, words: &[u64], matrix: &mut Matrix, scratch: &mut [u64]) -> Result<()> {
        let shape = self.shape(tile);
        let (rows, precision_bits, width) = (matrix.rows(), matrix.precision_bits(), matrix.limbs_per_element());
        if rows == 0 {
            return Ok(());
        }
        let (heads, limbs) = matrix.parts_mut();
        let columns = heads.chunks_exact_mut(rows).zip(limbs.chunks_exact_mut(rows * width));
        for (col, (heads, limbs)) in columns.enumerate().take(shape.cols) {
            let rows = rows.min(shape.rows);
            let (heads, limbs) = (&mut heads[..rows], &mut limbs[..rows * width]);
            self.store_column(tile, words, ColumnOfTile { col, heads, limbs, precision_bits }, scratch)?;
        }
        Ok(())
    }

    /// Rounds one column of a finished tile.
    ///
    /// # Errors
    /// As [`TileWork::store`].
    pub fn store_column(
        &self,
        tile: TileId,
        words: &[u64],
        column: ColumnOfTile<'_>,
        scratch: &mut [u64],
    ) -> Result<()> {
        let shape = self.shape(tile);
        let mut entries =
            |at: PanelColumn, magnitudes: &mut [u64]| self.engine.entries_in_form(shape, words, at, magnitudes);
        self.round_column(tile, self.engine.entry_form(), &mut entries, column, scratch)
    }

    /// Rounds one column of a finished tile whose integers come from `entries`, in that form;
    /// `scratch` has [`rounding_words`](crate::kernels::rounding::rounding_words).
    ///
    /// # Errors
    /// As [`TileWork::store`].
    pub fn round_column(
        &self,
        tile: TileId,
        form: EntryForm,
        entries: &mut EntrySource<'_>,
        column: ColumnOfTile<'_>,
        scratch: &mut [u64],
    ) -> Result<()> {
        let ColumnOfTile { col, heads, limbs, precision_bits } = column;
        let (shape, first_row) = (self.shape(tile), self.tiling.row_range(tile.row).start);
        let width = limbs.len() / heads.len().max(1);
        let rounding = EntryRounding::new(form, precision_bits);
        let (magnitudes, scratch) = scratch.split_at_mut(form.words());
        let first = if shape.diagonal { col } else { 0 };
        let exponents = &self.row_shifts[first_row..][..heads.len()];
        for panel in first / PANEL_ROWS..heads.len().div_ceil(PANEL_ROWS) {
            let signs = entries(PanelColumn { panel, col }, magnitudes);
            let start = panel * PANEL_ROWS;
            let end = (start + PANEL_ROWS).min(heads.len());
            let rows = start.max(first).min(end)..end;
            let exponent =
                |lane: usize| exponents.get(start + lane).map_or(0, |shift| i64::from(self.working_bits) - shift);
            let eight = EightEntries { magnitudes, signs, exponents: std::array::from_fn(exponent) };
            let out = &mut limbs[rows.start * width..rows.end * width];
            rounding.round(&eight, rows.start - start..rows.end - start, &mut heads[rows.clone()], out, scratch);
            for row in rows {
                let exponent = Head(heads[row]).exponent();
                if exponent.abs() > MAXIMUM_EXPONENT {
                    let (row, column) = (first_row + row, self.tiling.row_range(tile.col).start + col);
                    return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
                }
            }
        }
        Ok(())
    }
}
