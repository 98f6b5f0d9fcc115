//! Tile kernels for any plane kernel: products on planes, everything inside a tile on integers.
//!
//! Updates run through the plane kernel and are taken off the tile's integers at once. The triangles are solved by
//! exact dot products of integers. Slower than a kernel's own tiles, with the same bits.
//! Layout of a tile: integers `[column][padded row][sign, limbs]`, behind them the residues of the factor, operand
//! panels of the plane kernel, prime-major.

use crate::kernels::tiles::{
    DiagonalData, EntrySource, FailedPivot, NoData, PANEL_ROWS, SolveTile, TileEngine, TileShape, TileSource,
    UpdateTile, fill_slots,
};
use crate::kernels::{BlockResidues, IntegerBlock, PanelSource, PlaneEngine, PlaneProduct};
use crate::math::float::{LIMB_BITS, limbs_for, round_integer};
use crate::math::pivot::{RowWeight, round_quotient, round_root, round_shift};
use crate::matrix::Matrix;
use crate::plan::{BLOCK_WORDS, BlockGrid};
use rug::Integer;
use rug::integer::Order;
use std::sync::Arc;

/// Tile kernels over one plane engine.
pub struct LimbTiles {
    engine: Arc<dyn PlaneEngine>,
    working_bits: u32,
    /// Limbs of an integer of a tile, its sign not counted.
    limbs: usize,
}

impl LimbTiles {
    /// Over `engine`, which holds operands of `working_bits` and products of
    /// [`crate::math::bound::cholesky_modulus_bits`].
    pub fn new(engine: Arc<dyn PlaneEngine>, working_bits: u32) -> LimbTiles {
        LimbTiles { engine, working_bits, limbs: limbs_for(2 * working_bits + LIMB_BITS) }
    }

    fn integer_words(&self, shape: TileShape) -> usize {
        shape.cols * shape.panels() * PANEL_ROWS * (1 + self.limbs)
    }

    fn index(&self, shape: TileShape, row: usize, col: usize) -> usize {
        (col * shape.panels() * PANEL_ROWS + row) * (1 + self.limbs)
    }

    fn read(&self, shape: TileShape, words: &[u64], (row, col): (usize, usize)) -> Integer {
        let slot = &words[self.index(shape, row, col)..][..1 + self.limbs];
        let value = Integer::from_digits(&slot[1..], Order::Lsf);
        if slot[0] == 1 { -value } else { value }
    }

    fn write(&self, shape: TileShape, words: &mut [u64], (row, col): (usize, usize), value: &Integer) {
        let slot = &mut words[self.index(shape, row, col)..][..1 + self.limbs];
        slot[0] = u64::from(*value < 0);
        let limbs = value.as_limbs();
        slot[1..].fill(0);
        slot[1..1 + limbs.len()].copy_from_slice(limbs);
    }

    /// Residues of the factor of a finished tile.
    fn publish(&self, shape: TileShape, words: &mut [u64], scratch: &mut [u64]) {
        let bits = self.working_bits + 2;
        // The panels of the plane kernel are columns: the tile goes in transposed.
        let mut factor = Matrix::zeros(shape.cols, shape.rows, bits).expect("a small matrix");
        let width = factor.limbs_per_element();
        let (heads, limbs) = factor.parts_mut();
        for row in 0..shape.rows {
            for col in 0..shape.cols.min(if shape.diagonal { row + 1 } else { shape.cols }) {
                let slot = &words[self.index(shape, row, col)..][..1 + self.limbs];
                let at = row * shape.cols + col;
                heads[at] = round_integer(slot[0] == 1, &slot[1..], 0, bits, &mut limbs[at * width..][..width]).0;
            }
        }
        let panel_words = self.engine.panel_words(shape.cols);
        let planes = &mut words[self.integer_words(shape)..][..self.plane_words(shape) * self.primes()];
        let shifts = vec![0; shape.rows];
        for panel in 0..shape.panels() {
            let columns = panel * PANEL_ROWS..((panel + 1) * PANEL_ROWS).min(shape.rows);
            let source = PanelSource { view: factor.view(), columns, rows: 0..shape.cols, shifts: &shifts };
            let mut targets = planes
                .chunks_exact_mut(self.plane_words(shape))
                .map(|plane| &mut plane[panel * panel_words..][..panel_words])
                .collect::<Vec<_>>();
            self.engine.to_residues(0..self.primes(), &source, &mut targets, scratch);
        }
    }

    fn plane_words(&self, shape: TileShape) -> usize {
        shape.panels() * self.engine.panel_words(shape.cols)
    }

    /// `T_ij` less the products of the columns before `j` of this tile's row `i` with `other`.
    fn rest(&self, value: Integer, row: &[Integer], other: &[Integer]) -> Integer {
        row.iter().zip(other).fold(value, |rest, (x, y)| rest - x * y)
    }

    /// One entry of the factor under the rule of rejected rows.
    fn entry(&self, value: &Integer, pivot: &Integer, weight: &mut RowWeight) -> Integer {
        if weight.is_rejected() {
            return Integer::new();
        }
        let entry = match *pivot < 0 {
            true => round_quotient(&Integer::from(-value), &Integer::from(-pivot)),
            false => round_quotient(value, pivot),
        };
        weight.add(&Integer::from(entry.abs_ref()), self.working_bits);
        if weight.is_rejected() { Integer::new() } else { entry }
    }
}

impl TileEngine for LimbTiles {
    fn primes(&self) -> usize {
        self.engine.moduli().len()
    }

    fn tile_words(&self, shape: TileShape) -> usize {
        (self.integer_words(shape) + self.primes() * self.plane_words(shape)).next_multiple_of(8)
    }

    fn scratch_words(&self, tile_rows: usize) -> usize {
        let grid = BlockGrid::rectangle(tile_rows, tile_rows);
        let products = self.primes() * self.engine.plane_words(&grid);
        let entries = PANEL_ROWS * self.limbs;
        products + self.engine.scratch_words(tile_rows, &grid) + entries
    }

    fn diagonal_bytes(&self, _cols: usize) -> u64 {
        0
    }

    fn table_bytes(&self) -> u64 {
        self.engine.table_bytes()
    }

    fn call_bytes(&self, tile_rows: usize) -> u64 {
        let each = 40 + 8 * self.limbs as u64; // an integer of GMP
        let grid = BlockGrid::rectangle(tile_rows, tile_rows);
        let tiles = 2 * (tile_rows * tile_rows) as u64 * each;
        tiles + Matrix::bytes_for(tile_rows, tile_rows, self.working_bits) + self.engine.call_bytes(tile_rows, &grid)
    }

    fn preferred_rows(&self) -> usize {
        32 // half of a tile's columns, on average, are multiplied on integers
    }

    fn load(&self, source: &TileSource<'_>, words: &mut [u64], _scratch: &mut [u64]) {
        let shape = source.shape();
        words[..self.integer_words(shape)].fill(0);
        for (col, j) in source.cols.clone().enumerate() {
            for (row, i) in source.rows.clone().enumerate().skip(source.offset().map_or(0, |offset| col + offset)) {
                let entry = source.matrix.get(i, j);
                if !entry.head.is_zero() {
                    let (integer, exponent) = entry.to_integer_exponent();
                    let value = round_shift(&integer, exponent + source.row_shifts[i] + source.col_shifts[j]);
                    self.write(shape, words, (row, col), &value);
                }
            }
        }
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        self.tile_words(shape)
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        self.load(source, words, scratch);
        self.publish(source.shape(), words, scratch);
    }

    fn load_integers(
        &self,
        shape: TileShape,
        integers: (usize, &mut EntrySource<'_>),
        words: &mut [u64],
        scratch: &mut [u64],
    ) {
        let slots = &mut words[..self.integer_words(shape)];
        fill_slots(shape, integers, slots, |row, col| self.index(shape, row, col), scratch);
        self.publish(shape, words, scratch);
    }

    fn triangle(&self, shape: TileShape, words: &mut [u64], pivots: &[Integer]) -> Box<dyn DiagonalData> {
        pivots.iter().enumerate().for_each(|(at, pivot)| self.write(shape, words, (at, at), pivot));
        Box::new(NoData)
    }

    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        scratch: &mut [u64],
    ) -> crate::Result<()> {
        if !y.is_empty() {
            tiles.iter_mut().for_each(|tile| self.update_tile(tile, y, depth, scratch));
        }
        Ok(())
    }

    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<Box<dyn DiagonalData>, FailedPivot> {
        let (rows, ending) = self.factor_rows(shape, words, weights);
        for (row, entries) in rows.iter().enumerate() {
            entries.iter().enumerate().for_each(|(col, entry)| self.write(shape, words, (row, col), entry));
        }
        ending?; // the rows before a pivot that fails are in place
        self.publish(shape, words, scratch);
        Ok(Box::new(NoData))
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: (&[u64], &dyn DiagonalData), scratch: &mut [u64]) {
        let SolveTile { shape, words, weights } = tile;
        let above = TileShape { rows: shape.cols, cols: shape.cols, diagonal: true };
        let triangle = (0..shape.cols)
            .map(|row| (0..=row).map(|col| self.read(above, diagonal.0, (row, col))).collect::<Vec<_>>())
            .collect::<Vec<_>>();
        for (row, weight) in weights.iter_mut().enumerate().take(shape.rows) {
            let mut entries = Vec::with_capacity(shape.cols);
            for (col, other) in triangle.iter().enumerate() {
                let value = self.rest(self.read(shape, words, (row, col)), &entries, &other[..col]);
                entries.push(self.entry(&value, &other[col], weight));
            }
            entries.iter().enumerate().for_each(|(col, entry)| self.write(shape, words, (row, col), entry));
        }
        self.publish(shape, words, scratch);
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: (usize, usize), magnitudes: &mut [u64]) -> u8 {
        let (panel, col) = at;
        let mut signs = 0;
        for (lane, out) in magnitudes.chunks_exact_mut(self.limbs).enumerate() {
            let slot = &words[self.index(shape, panel * PANEL_ROWS + lane, col)..][..1 + self.limbs];
            out.copy_from_slice(&slot[1..]);
            signs |= (slot[0] as u8) << lane;
        }
        signs
    }

    fn entry_limbs(&self) -> usize {
        self.limbs
    }
}

impl LimbTiles {
    fn update_tile(&self, tile: &mut UpdateTile<'_>, y: &[&[u64]], depth: usize, scratch: &mut [u64]) {
        let UpdateTile { shape, words, x, .. } = tile;
        let grid = match shape.diagonal {
            true => BlockGrid::triangle(shape.cols),
            false => BlockGrid::rectangle(shape.rows, shape.cols),
        };
        let left = TileShape { cols: depth, diagonal: false, ..*shape };
        let right = TileShape { rows: shape.cols, cols: depth, diagonal: false };
        let plane_words = self.engine.plane_words(&grid);
        let (window, scratch) = scratch.split_at_mut(self.primes() * plane_words);
        for (prime, c) in window.chunks_exact_mut(plane_words).enumerate() {
            for (number, (x, y)) in x.iter().zip(y).enumerate() {
                let plane = |words, shape| {
                    let size = self.plane_words(shape);
                    let words: &[u64] = words;
                    &words[self.integer_words(shape) + prime * size..][..size]
                };
                let (x, y) = (plane(x, left), plane(y, right));
                let accumulate = number > 0;
                let product = PlaneProduct { x, y, rows: depth, grid, blocks: 0..grid.len(), accumulate };
                self.engine.multiply(prime, &product, c, scratch);
            }
        }
        let mut integers = IntegerBlock::new(self.engine.magnitude_limbs());
        for col in 0..grid.cols {
            for row in grid.first_row(col)..grid.rows {
                let offset = (grid.column_start(col) + row - grid.first_row(col)) * self.engine.block_words();
                let residues = BlockResidues { window, plane_words, offset };
                self.engine.reconstruct(&residues, &mut integers, scratch);
                self.subtract(*shape, words, (row, col), &integers);
            }
        }
    }

    /// The rows of a diagonal tile, as far as its pivots are positive.
    fn factor_rows(
        &self,
        shape: TileShape,
        words: &[u64],
        weights: &mut [RowWeight],
    ) -> (Vec<Vec<Integer>>, Result<(), FailedPivot>) {
        let mut rows = vec![Vec::<Integer>::new(); shape.rows];
        for column in 0..shape.cols {
            if weights[column].is_rejected() {
                return (rows, Err(FailedPivot { column, value: None }));
            }
            let value = self.rest(self.read(shape, words, (column, column)), &rows[column], &rows[column]);
            if value <= 0 {
                return (rows, Err(FailedPivot { column, value: Some(value) }));
            }
            let pivot = round_root(&value);
            for row in column + 1..shape.rows {
                let value = self.rest(self.read(shape, words, (row, column)), &rows[row], &rows[column]);
                let entry = self.entry(&value, &pivot, &mut weights[row]);
                rows[row].push(entry);
            }
            rows[column].push(pivot);
        }
        (rows, Ok(()))
    }

    /// Takes one block of products off the tile's integers.
    fn subtract(&self, shape: TileShape, words: &mut [u64], (row, col): (usize, usize), integers: &IntegerBlock) {
        for entry in 0..BLOCK_WORDS {
            let at = (row * PANEL_ROWS + entry % PANEL_ROWS, col * PANEL_ROWS + entry / PANEL_ROWS);
            if at.0 >= shape.rows || at.1 >= shape.cols || shape.diagonal && at.0 < at.1 {
                continue;
            }
            let product = Integer::from_digits(integers.magnitude(entry), Order::Lsf);
            let value = self.read(shape, words, at);
            let rest = if integers.negative[entry] { value + product } else { value - product };
            self.write(shape, words, at, &rest);
        }
    }
}
