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
use crate::matrix::{EntryIndex, Matrix, MatrixView, check_exponent};
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

/// The shape of a tile, for the kernels.
pub(crate) fn shape_of(tiling: &TileMap, tile: TileId) -> TileShape {
    let (rows, cols) = tiling.shape(tile);
    TileShape { rows, cols, diagonal: tile.row == tile.col }
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
    /// `weights` are the row weights after the previous tile of the row, or the first ones.
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
        let (shape, rows) = (self.shape(tile), self.tiling.row_range(tile.row));
        let first = EntryIndex { row: rows.start, col: self.tiling.col_range(tile.col).start };
        let rounding = EntryRounding::new(form, column.precision_bits);
        let (working_bits, row_shifts) = (self.working_bits, &self.row_shifts[rows]);
        TileRounding { shape, first, form, rounding, working_bits, row_shifts }.column(entries, column, scratch)
    }
}

/// The rounding of the integers of a finished tile to entries of the factor.
pub(super) struct TileRounding<'r> {
    pub shape: TileShape,
    /// The place of its first entry in the matrix.
    pub first: EntryIndex,
    /// The form of its integers.
    pub form: EntryForm,
    pub rounding: EntryRounding,
    /// Fixed-point bits of the scaled factor.
    pub working_bits: u32,
    /// `2 working_bits - s_i` of its rows.
    pub row_shifts: &'r [i64],
}

impl TileRounding<'_> {
    /// Rounds one column, from the diagonal on, whose integers come from `entries`; `scratch` as for
    /// [`TileWork::round_column`].
    ///
    /// # Errors
    /// As [`TileWork::store`].
    pub fn column(&self, entries: &mut EntrySource<'_>, column: ColumnOfTile<'_>, scratch: &mut [u64]) -> Result<()> {
        let ColumnOfTile { col, heads, limbs, .. } = column;
        let width = limbs.len() / heads.len().max(1);
        let (magnitudes, scratch) = scratch.split_at_mut(self.form.words());
        let first = if self.shape.diagonal { col } else { 0 };
        let shifts = &self.row_shifts[..heads.len()];
        for panel in first / PANEL_ROWS..heads.len().div_ceil(PANEL_ROWS) {
            let signs = entries(PanelColumn { panel, col }, magnitudes);
            let start = panel * PANEL_ROWS;
            let end = (start + PANEL_ROWS).min(heads.len());
            let rows = start.max(first).min(end)..end;
            let exponent =
                |lane: usize| shifts.get(start + lane).map_or(0, |shift| i64::from(self.working_bits) - shift);
            let eight = EightEntries { magnitudes, signs, exponents: std::array::from_fn(exponent) };
            let out = &mut limbs[rows.start * width..rows.end * width];
            self.rounding.round(&eight, rows.start - start..rows.end - start, &mut heads[rows.clone()], out, scratch);
            for row in rows {
                check_exponent(Head(heads[row]).exponent(), self.first.row + row, self.first.col + col)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Factorisations tile by tile in which every finished tile travels as words, against the definition.

    use super::{FailedRow, TileWork};
    use crate::context::Context;
    use crate::device::soft::{SoftDevice, SoftOptions};
    use crate::error::Error;
    use crate::kernels::rounding::scratch_words;
    use crate::kernels::tiles::{DiagonalData, TileEngine, UpdateTile};
    use crate::math::bound::cholesky_working_bits;
    use crate::math::pivot::RowWeight;
    use crate::matrix::{Matrix, Symmetric};
    use crate::ops::cholesky::{CholeskyOptions, cholesky_with};
    use crate::ops::factor::kernel::tiles_for;
    use crate::ops::factor::problem::{FactorInput, FactorProblem, working_bits};
    use crate::ops::factor::reference;
    use crate::ops::product::problem::Accuracy;
    use crate::runtime::CholeskyGraph;
    use crate::runtime::Task;
    use crate::testing::effort;
    use crate::tile::TileId;
    use crate::tile::TileMap;
    use rug::{Float, Integer, rand::RandState};
    use std::collections::HashMap;
    use std::sync::Arc;

    /// Content of dirty memory.
    const NOISE: u64 = 0xdead_beef_dead_beef;

    /// A finished tile as another rank has it.
    struct Travelled {
        words: Vec<u64>,
        diagonal: Option<Box<dyn DiagonalData>>,
        weights: Vec<RowWeight>,
    }

    /// A factorisation whose finished tiles are used only after they have travelled.
    struct Travels<'a> {
        work: TileWork<'a>,
        matrix: &'a Matrix,
        first_weights: Vec<RowWeight>,
        open: HashMap<TileId, Vec<u64>>,
        /// Words of finished tiles where they were made, only for the factor.
        finished: HashMap<TileId, Vec<u64>>,
        travelled: HashMap<TileId, Travelled>,
        scratch: Vec<u64>,
    }

    impl<'a> Travels<'a> {
        fn new(
            matrix: &'a Matrix,
            problem: &FactorProblem,
            tiling: &'a TileMap,
            engine: &'a dyn TileEngine,
        ) -> Travels<'a> {
            Travels {
                work: TileWork::new(engine, tiling, problem.working_bits, &problem.exponents),
                matrix,
                first_weights: problem.weights.clone(),
                open: HashMap::new(),
                finished: HashMap::new(),
                travelled: HashMap::new(),
                scratch: vec![NOISE; scratch_words(engine, tiling.tile_size, problem.precision_bits)],
            }
        }

        /// The tile with its entries, from a copy of only this tile.
        fn load(&mut self, tile: TileId) -> Vec<u64> {
            let tiling = self.work.tiling;
            let own = self
                .matrix
                .view()
                .block(tiling.row_range(tile.row), tiling.row_range(tile.col))
                .unwrap()
                .to_matrix()
                .unwrap();
            let mut words = vec![NOISE; self.work.engine.tile_words(self.work.shape(tile))];
            self.work.load(tile, own.view(), &mut words, &mut self.scratch);
            words
        }

        /// The weights that the tile before in the row has left.
        fn weights(&self, tile: TileId) -> Vec<RowWeight> {
            match tile.col.checked_sub(1) {
                Some(col) => self.travelled[&TileId { col, ..tile }].weights.clone(),
                None => self.first_weights[self.work.tiling.row_range(tile.row)].to_vec(),
            }
        }

        fn run(&mut self, task: Task) -> Result<(), FailedRow> {
            let tile = CholeskyGraph::of(self.work.tiling).output(task);
            let mut words = self.open.remove(&tile).unwrap_or_else(|| self.load(tile));
            match task {
                Task::Syrk { .. } | Task::Gemm { .. } => {
                    self.update(tile, &mut words, task);
                    self.open.insert(tile, words);
                    Ok(())
                }
                Task::Potrf { .. } => {
                    let mut weights = self.weights(tile);
                    let factored = self.work.factor(tile, &mut words, &mut weights, &mut self.scratch);
                    self.send(tile, words, &weights, factored.is_ok());
                    factored.map(drop)
                }
                Task::Trsm { k, .. } => {
                    let mut weights = self.weights(tile);
                    let above = &self.travelled[&TileId { row: k, col: k }];
                    let data = above.diagonal.as_deref().unwrap();
                    self.work.solve(tile, &mut words, &mut weights, &above.words, data, &mut self.scratch);
                    self.send(tile, words, &weights, true);
                    Ok(())
                }
            }
        }

        /// All columns at once with the first task of a tile; the later tasks have no updates to make.
        fn update(&mut self, tile: TileId, words: &mut [u64], task: Task) {
            if !matches!(task, Task::Syrk { k: 0, .. } | Task::Gemm { k: 0, .. }) {
                return;
            }
            let row = |row: usize| {
                let tiles = (0..tile.col).map(|col| &self.travelled[&TileId { row, col }].words[..]);
                tiles.collect::<Vec<_>>()
            };
            let (x, y) = (row(tile.row), row(tile.col));
            let mut strip = [UpdateTile { shape: self.work.shape(tile), words, x, device: 0 }];
            self.work.update(tile, &mut strip, &y, &mut self.scratch).unwrap();
        }

        /// Packs a tile and unpacks it again; one that has failed stays.
        fn send(&mut self, tile: TileId, words: Vec<u64>, weights: &[RowWeight], whole: bool) {
            if whole {
                let mut payload = vec![NOISE; self.work.payload_words(tile)];
                self.work.pack(tile, &words, weights, &mut payload, &mut self.scratch);
                self.scratch.fill(NOISE);
                let mut operand = vec![NOISE; self.work.operand_words(tile)];
                let diagonal = self.work.unpack(tile, &payload, &mut operand, &mut self.scratch);
                let weights = self.work.unpack_weights(tile, &payload);
                assert_eq!(diagonal.is_some(), weights.is_empty());
                self.travelled.insert(tile, Travelled { words: operand, diagonal, weights });
            }
            self.finished.insert(tile, words);
        }

        /// The factor of the first `order` rows, from matrices of single tiles.
        fn factor(&mut self, order: usize, precision_bits: u32) -> Matrix {
            let tiling = self.work.tiling;
            let mut factor = Matrix::zeros(order, order, precision_bits).unwrap();
            let within =
                |index: usize| tiling.row_range(index).start.min(order)..tiling.row_range(index).end.min(order);
            for (&tile, words) in &self.finished {
                let (rows, cols) = (within(tile.row), within(tile.col));
                let mut own = Matrix::zeros(rows.len(), cols.len(), precision_bits).unwrap();
                self.work.store(tile, words, &mut own, &mut self.scratch).unwrap();
                for (col, j) in cols.enumerate() {
                    rows.clone().enumerate().for_each(|(row, i)| factor.set(i, j, own.get(row, col)));
                }
            }
            factor
        }
    }

    /// The result of the definition.
    struct Expected {
        problem: FactorProblem,
        factor: Matrix,
        ending: Result<(), FailedRow>,
    }

    impl Expected {
        fn new(a: &Matrix, precision_bits: u32, working_bits: u32) -> Expected {
            let problem = FactorProblem::new(a.view(), precision_bits, working_bits).unwrap();
            let (rows, ending) = match reference::factor(FactorInput { problem: &problem, lower: a.view() }) {
                Ok(rows) => (rows, Ok(())),
                Err(reference::Failed { index, rows, pivot }) => (rows, Err(FailedRow { index, pivot })),
            };
            Expected { factor: rows.to_matrix(&problem).unwrap(), problem, ending }
        }
    }

    /// Compares the factorisation by travelling tiles with its definition and with the one of a process, for every
    /// kernel.
    fn agree_on(a: &Matrix, precision_bits: u32, what: &str) -> Option<usize> {
        let contexts = crate::kernels::available().into_iter().map(|kernel| Context::builder().kernel(kernel.name()));
        let contexts = contexts.map(|builder| builder.threads(1).build().unwrap());
        // Kernels with equally many working bits share the result of the definition.
        let mut known: Option<Expected> = None;
        contexts.enumerate().fold(None, |_, (turn, ctx)| {
            let bits = working_bits(precision_bits, ctx.kernel().maximum_modulus_bits()).unwrap();
            let known_one = known.take().filter(|expected| expected.problem.working_bits == bits);
            let expected = known.insert(known_one.unwrap_or_else(|| Expected::new(a, precision_bits, bits)));
            agree_with(&ctx, (a, expected), turn, what)
        })
    }

    /// Compares one kernel; returns the row that fails. With little effort each engine has tiles of one size, another
    /// one with every kernel, order and precision.
    fn agree_with(ctx: &Context, (a, expected): (&Matrix, &Expected), turn: usize, what: &str) -> Option<usize> {
        let (kernel, Expected { problem, factor: want, ending }) = (ctx.kernel(), expected);
        let precision_bits = problem.precision_bits;
        let what = format!("{what}, {precision_bits} bits: kernel {}", kernel.name());
        let engines = [
            Some(ctx.tile_engine(kernel, problem.working_bits).unwrap()),
            ctx.devices().is_empty().then(|| kernel.small_tile_engine(problem.working_bits)),
        ];
        let cases = engines.iter().flatten().enumerate().flat_map(|(place, engine)| {
            let chosen = (turn + place + a.rows() + precision_bits as usize) % 3;
            let sizes = [8, 16, 40].into_iter().enumerate();
            sizes.filter(move |(at, _)| effort() > 1 || *at == chosen).map(move |(_, tile_rows)| (engine, tile_rows))
        });
        for (engine, tile_rows) in cases {
            let tiling = tiles_for(problem.order, Some(tile_rows), engine.preferred_rows(), 1);
            let mut travels = Travels::new(a, problem, &tiling, &**engine);
            let got = CholeskyGraph::of(&tiling).tasks().try_for_each(|task| travels.run(task));
            assert_eq!(got, *ending, "{what}, tiles of {tile_rows}");
            let factor = travels.factor(want.rows(), precision_bits);
            assert!(factor == *want, "{what}, tiles of {tile_rows}: another factor");
        }
        let failing = ending.as_ref().err().map(|row| row.index).or((!problem.is_whole()).then_some(problem.order));
        let failed = match cholesky_with(
            ctx,
            Symmetric::lower(a),
            precision_bits,
            &CholeskyOptions::new().accuracy(Accuracy::Norm),
        ) {
            Ok(of_process) => {
                assert!(of_process.result.factor() == want, "{what}: another factor in one process");
                None
            }
            Err(Error::NotPositiveDefinite { index, .. }) => Some(index),
            Err(error) => panic!("{what}: {error}"),
        };
        assert_eq!(failed, failing, "{what}");
        failed
    }

    /// A symmetric matrix of random entries in `(-1/2, 1/2)` with `diagonal` added: positive definite where that is
    /// large.
    fn symmetric(n: usize, bits: u32, seed: u64, diagonal: f64) -> Matrix {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(seed));
        let mut a = Matrix::zeros(n, n, bits).unwrap();
        for col in 0..n {
            for row in col..n {
                let value = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64;
                let value = if row == col { value + diagonal } else { value };
                a.set_float(row, col, &value).unwrap();
            }
        }
        a
    }

    #[test]
    fn tiles_that_travel_give_the_bits_of_one_process() {
        for bits in [2, 29, 62, 64, 100, 126, 190, 256, 300, 766, 1000] {
            for n in [0usize, 1, 7, 8, 9, 17, 33, 41, 65] {
                if bits > 300 && n > 33 {
                    continue;
                }
                let a = symmetric(n, bits.max(20), n as u64, 1.5 * (n as f64).sqrt());
                agree_on(&a, bits, &format!("{n} rows"));
            }
        }
    }

    #[test]
    fn failures_come_at_the_same_row_with_the_same_pivot() {
        let mut rows = Vec::new();
        for (seed, n) in [5usize, 16, 24, 33, 50].into_iter().enumerate() {
            for diagonal in [0.6, 1.0, 1.8, 2.4] {
                let a = symmetric(n, 120, 70 + seed as u64, diagonal);
                for bits in [30, 110] {
                    rows.extend(agree_on(&a, bits, &format!("{n} rows, diagonal {diagonal}")));
                }
            }
        }
        rows.sort_unstable();
        rows.dedup();
        assert!(rows.len() > 8 && rows[rows.len() - 1] > 16, "failures at few rows: {rows:?}");
    }

    /// Rows that are rejected by their weights long before their pivot: `a_ij^2` is nearly `a_ii a_jj` for several `j`.
    #[test]
    fn rejected_rows_stay_rejected_on_the_way() {
        for (n, row) in [(20usize, 19usize), (33, 30), (41, 17), (50, 49)] {
            for bits in [40, 200] {
                let mut a = symmetric(n, 120, n as u64, 2.0 * (n as f64).sqrt());
                for col in 0..row {
                    let root = (a.float(row, row) * a.float(col, col)).sqrt() * 0.9f64;
                    let value = if col % 3 == 1 { -root } else { root };
                    a.set_float(row, col, &value).unwrap();
                }
                let problem = FactorProblem::new(a.view(), bits, working_bits(bits, 11_000).unwrap()).unwrap();
                let reference::Failed { index, pivot, .. } =
                    reference::factor(FactorInput { problem: &problem, lower: a.view() }).err().unwrap();
                assert_eq!((index, pivot), (row, None), "the row is rejected before its pivot is computed");
                assert_eq!(agree_on(&a, bits, &format!("row {row} of {n}")), Some(row));
            }
        }
    }

    #[test]
    fn matrices_that_show_themselves_indefinite_are_cut() {
        let mut a = symmetric(40, 100, 3, 9.0);
        a.set_float(29, 3, &Float::with_val(100, 1e9)).unwrap();
        assert_eq!(agree_on(&a, 90, "a huge entry"), Some(29));
        a.set_float(12, 12, &Float::with_val(100, -1)).unwrap();
        assert_eq!(agree_on(&a, 90, "a negative diagonal entry"), Some(12));
    }

    #[test]
    fn tiles_that_travel_to_devices_do_too() {
        for family in ["cuda-f64", "cuda-i8"] {
            let device = Arc::new(SoftDevice::new(SoftOptions::default()));
            let ctx = Context::builder().threads(1).devices(vec![device]).kernel(family).build().unwrap();
            let most = ctx.kernel().maximum_modulus_bits();
            let of = |a: &Matrix, bits: u32| Expected::new(a, bits, working_bits(bits, most).unwrap());
            for (n, bits) in [(9usize, 100), (33, 190), (41, 64)] {
                let a = symmetric(n, bits, n as u64, 1.5 * (n as f64).sqrt());
                let expected = of(&a, bits);
                let agree = |turn: usize| agree_with(&ctx, (&a, &expected), turn, &format!("{family}, {n} rows"));
                assert_eq!([0, 1, 2].map(agree), [None; 3]);
            }
            let a = symmetric(33, 120, 5, 1.8);
            let failed = agree_with(&ctx, (&a, &of(&a, 110)), 0, family);
            assert!(failed.is_some_and(|row| row > 0), "{failed:?}");
        }
    }

    #[test]
    fn payloads_are_near_the_bits_of_their_entries() {
        let kernel = crate::kernels::preferred();
        for bits in [53u32, 64, 254, 768, 1000] {
            let working_bits = cholesky_working_bits(bits);
            let engine = kernel.tile_engine(working_bits).unwrap();
            let tiling = tiles_for(72, Some(32), engine.preferred_rows(), 1);
            let work = TileWork::new(&*engine, &tiling, working_bits, &[0; 72]);
            let bytes = (working_bits as usize + 2).div_ceil(8); // of an entry
            let square = TileId { row: 1, col: 0 };
            assert_eq!(work.payload_words(square), 32 * 32 / 8 * bytes + 2 * 32, "{bits} bits");
            let (diagonal, last) = (TileId { row: 1, col: 1 }, TileId { row: 2, col: 2 });
            assert_eq!(work.payload_words(diagonal), (8 + 16 + 24 + 32) * bytes, "{bits} bits");
            assert_eq!(work.payload_words(last), 8 * bytes, "{bits} bits");
        }
    }
}
