//! Whole factorisations and solves tile by tile on every plane kernel, against the integers themselves, entry by entry.

use super::*;
use crate::kernels::integer_tiles::IntegerTiles;
use crate::kernels::tiles::TilePart;
use crate::kernels::{EngineSpec, PlaneKernel, available};
use crate::math::bound::cholesky_modulus_bits;
use crate::math::float::limbs_for;
use crate::math::pivot::diagonal_exponent;
use crate::matrix::Matrix;
use rug::integer::Order;
use rug::{Float, rand::RandState};
use std::ops::Range;

/// The contents of dirty memory.
const NOISE: u64 = 0xdead_beef_dead_beef;

/// Tiles over a kernel with the rules on limbs, and with those of this CPU where these differ.
fn tiles_over(kernel: &dyn PlaneKernel, bits: u32) -> Vec<Arc<dyn TileEngine>> {
    let spec = EngineSpec { operand_bits: bits, modulus_bits: cholesky_modulus_bits(bits), redundant: false };
    let engine = kernel.prepare_tiles(&spec).unwrap();
    vec![Arc::new(PlaneTiles::new(engine.clone(), LimbRules::new(bits))), over(engine, bits)]
}

/// Whether tiles are used where they were finished, or only after their integers have travelled.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Home,
    Travels,
}

/// A finished tile.
struct Finished {
    words: Vec<u64>,
    data: Option<Box<dyn DiagonalData>>,
}

/// A matrix that is factored in tiles of `edge` rows.
struct Factoring<'a> {
    engine: &'a dyn TileEngine,
    matrix: &'a Matrix,
    bits: u32,
    edge: usize,
    way: Way,
    row_shifts: Vec<i64>,
    col_shifts: Vec<i64>,
    scratch: Vec<u64>,
}

/// How a factorisation ends: entries of the rows that are finished, how the next one fails, and the weights.
type Ending = (Vec<Vec<Integer>>, Option<(usize, Option<Integer>)>, Vec<RowWeight>);

impl<'a> Factoring<'a> {
    fn new(engine: &'a dyn TileEngine, matrix: &'a Matrix, (bits, edge): (u32, usize), way: Way) -> Factoring<'a> {
        let exponent = |i: usize| diagonal_exponent(matrix.get(i, i).head.exponent());
        let exponents = (0..matrix.rows()).map(exponent).collect::<Vec<_>>();
        Factoring {
            engine,
            matrix,
            bits,
            edge,
            way,
            row_shifts: exponents.iter().map(|s| 2 * i64::from(bits) - s).collect(),
            col_shifts: exponents.iter().map(|s| -s).collect(),
            scratch: vec![NOISE; engine.scratch_words(edge)],
        }
    }

    fn rows(&self, index: usize) -> Range<usize> {
        index * self.edge..((index + 1) * self.edge).min(self.matrix.rows())
    }

    fn shape(&self, row: usize, col: usize) -> TileShape {
        TileShape { rows: self.rows(row).len(), cols: self.rows(col).len(), diagonal: row == col }
    }

    fn load(&mut self, row: usize, col: usize) -> Vec<u64> {
        let source = TileSource {
            matrix: self.matrix.view(),
            part: if row == col { TilePart::Lower } else { TilePart::Whole },
            rows: self.rows(row),
            cols: self.rows(col),
            row_shifts: &self.row_shifts,
            col_shifts: &self.col_shifts,
        };
        let mut words = vec![NOISE; self.engine.tile_words(self.shape(row, col))];
        self.engine.load(&source, &mut words, &mut self.scratch);
        words
    }

    fn integers(&self, shape: TileShape, words: &[u64]) -> Vec<Vec<Integer>> {
        let entry = |row: usize, col: usize| entry(self.engine, shape, words, (row, col));
        (0..shape.rows).map(|row| (0..shape.cols).map(|col| entry(row, col)).collect()).collect()
    }

    /// The finished tile as later ones see it.
    fn finished(&mut self, shape: TileShape, words: Vec<u64>, data: Option<Box<dyn DiagonalData>>) -> Finished {
        if self.way == Way::Home {
            return Finished { words, data };
        }
        let limbs = limbs_for(self.bits + 2);
        let each = self.engine.entry_limbs();
        let mut source = |at: PanelColumn, magnitudes: &mut [u64]| {
            let mut own = vec![0; PANEL_ROWS * each];
            let signs = self.engine.entries(shape, &words, at, &mut own);
            magnitudes.fill(0);
            for (to, from) in magnitudes.chunks_exact_mut(limbs).zip(own.chunks_exact(each)) {
                to[..each.min(limbs)].copy_from_slice(&from[..each.min(limbs)]);
            }
            signs
        };
        let mut operand = vec![NOISE; self.engine.operand_words(shape)];
        self.engine.load_integers(
            shape,
            FinishedEntries { limbs, source: &mut source },
            &mut operand,
            &mut self.scratch,
        );
        let data = data.map(|_| {
            let pivots = (0..shape.cols).map(|at| entry(self.engine, shape, &words, (at, at))).collect::<Vec<_>>();
            self.engine.set_pivots(shape, &mut operand, &pivots);
            self.engine.triangle(shape, &operand, &pivots)
        });
        Finished { words: operand, data }
    }

    /// All tiles, row by row; the updates of a tile come in two calls.
    fn run(&mut self, mut weights: Vec<RowWeight>) -> Ending {
        let tiles = self.matrix.rows().div_ceil(self.edge);
        let (mut rows, mut done) = (Vec::new(), Vec::<Vec<Finished>>::new());
        for row in 0..tiles {
            let (own, mut finished) = (self.rows(row), Vec::<Finished>::new());
            let mut integers = vec![Vec::new(); own.len()];
            let columns = 0..=row;
            for col in columns {
                let (shape, mut words) = (self.shape(row, col), self.load(row, col));
                let at_row = |at: usize| if col == row { &finished[at] } else { &done[col][at] };
                for ks in [0..col / 2, col / 2..col] {
                    let y = ks.clone().map(|k| &at_row(k).words[..]).collect::<Vec<_>>();
                    let x = ks.map(|k| &finished[k].words[..]).collect();
                    let tile = UpdateTile { shape, words: &mut words, x, device: 0 };
                    self.engine.update(&mut [tile], &y, self.edge, &mut self.scratch).unwrap();
                }
                self.scratch.fill(NOISE);
                let weights = &mut weights[own.clone()];
                let mut ending = None;
                let data = if row == col {
                    match self.engine.factor(shape, &mut words, weights, &mut self.scratch) {
                        Ok(data) => Some(data),
                        Err(failed) => {
                            ending = Some((failed.column, failed.value));
                            None
                        }
                    }
                } else {
                    let diagonal = &done[col][col];
                    let diagonal = DiagonalTile { words: &diagonal.words, data: diagonal.data.as_deref().unwrap() };
                    let tile = SolveTile { shape, words: &mut words, weights };
                    self.engine.solve(tile, diagonal, &mut self.scratch);
                    None
                };
                let own_integers = self.integers(shape, &words);
                integers.iter_mut().zip(own_integers).for_each(|(row, more)| row.extend(more));
                if let Some((column, value)) = ending {
                    rows.extend(integers.into_iter().take(column));
                    return (rows, Some((own.start + column, value)), Vec::new());
                }
                let tile = self.finished(shape, words, data);
                finished.push(tile);
            }
            rows.extend(integers);
            done.push(finished);
        }
        (rows, None, weights)
    }
}

/// An entry of a finished tile.
fn entry(engine: &dyn TileEngine, shape: TileShape, words: &[u64], (row, col): (usize, usize)) -> Integer {
    let each = engine.entry_limbs();
    let mut magnitudes = vec![NOISE; PANEL_ROWS * each];
    let signs = engine.entries(shape, words, PanelColumn { panel: row / PANEL_ROWS, col }, &mut magnitudes);
    let lane = row % PANEL_ROWS;
    let magnitude = Integer::from_digits(&magnitudes[lane * each..][..each], Order::Lsf);
    if signs >> lane & 1 == 1 { -magnitude } else { magnitude }
}

/// Random entries in `(-1/2, 1/2)`, `diagonal` added on the diagonal.
fn symmetric(n: usize, seed: u64, diagonal: f64) -> Matrix {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    let mut a = Matrix::zeros(n, n, 320).unwrap();
    for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
        let value = Float::with_val(320, Float::random_bits(&mut rng)) - 0.5f64;
        a.set_float(row, col, &if row == col { value + diagonal } else { value }).unwrap();
    }
    a
}

fn weights_of(a: &Matrix, bits: u32) -> Vec<RowWeight> {
    let weight = |i: usize| {
        let (integer, exponent) = a.get(i, i).to_integer_exponent();
        let scale = 2 * (i64::from(bits) - diagonal_exponent(a.get(i, i).head.exponent()));
        RowWeight::new(&crate::math::pivot::round_shift(&integer, exponent + scale), bits)
    };
    (0..a.rows()).map(weight).collect()
}

/// Compares all kernels with the integers; whether the factorisation ends early.
fn agree(a: &Matrix, bits: u32, edges: &[usize]) -> bool {
    let integers = IntegerTiles::new(bits);
    let mut fails = false;
    for &edge in edges {
        let want = Factoring::new(&integers, a, (bits, edge), Way::Home).run(weights_of(a, bits));
        fails = want.1.is_some();
        for kernel in available() {
            let engines = tiles_over(kernel, bits);
            for (engine, way) in engines.iter().flat_map(|engine| [(engine, Way::Home), (engine, Way::Travels)]) {
                let got = Factoring::new(&**engine, a, (bits, edge), way).run(weights_of(a, bits));
                let what = format!("{} rows, {bits} bits, edge {edge}, {}, {way:?}", a.rows(), kernel.name());
                assert_eq!(got.1, want.1, "{what}: the ending");
                assert_eq!(got.2, want.2, "{what}: weights");
                assert!(got.0 == want.0, "{what}: entries");
            }
        }
    }
    fails
}

#[test]
fn factors_have_the_integers_of_the_definition_at_every_edge() {
    for (n, edges) in
        [(1usize, &[8usize, 40][..]), (7, &[8]), (8, &[8, 16]), (9, &[8, 16]), (17, &[8, 24]), (31, &[8, 16, 32])]
    {
        for bits in [4, 31, 63, 64, 130, 254, 320] {
            assert!(!agree(&symmetric(n, n as u64, 2.0 + (n as f64).sqrt()), bits, edges));
        }
    }
    // Where operands have as many digits of 52 bits as they can hold, and where sums have more than twice as many.
    for bits in [51, 103, 258, 310, 413] {
        assert!(!agree(&symmetric(20, 20, 6.5), bits, &[8, 16]), "{bits} bits");
    }
    for (n, edges) in [(33usize, &[16usize, 32, 40][..]), (65, &[32, 64]), (100, &[24, 96, 104])] {
        assert!(!agree(&symmetric(n, n as u64, 2.0 + (n as f64).sqrt()), 150, edges));
    }
}

#[test]
fn failing_pivots_and_rejected_rows_are_those_of_the_definition() {
    let mut failures = 0;
    for (seed, n) in [9usize, 20, 33, 41].into_iter().enumerate() {
        for diagonal in [0.6, 1.0, 1.9] {
            failures += usize::from(agree(&symmetric(n, 90 + seed as u64, diagonal), 100, &[8, 16, 40]));
        }
    }
    assert!(failures > 6, "{failures} of the matrices fail");
    // A row whose entries are too large for its diagonal is rejected in the middle of a tile.
    for (row, col) in [(20usize, 3usize), (20, 12), (30, 17), (30, 29)] {
        let mut a = symmetric(31, 5, 8.0);
        for at in 0..3 {
            a.set_float(row, (col + at) % row, &Float::with_val(320, 6)).unwrap();
        }
        assert!(agree(&a, 120, &[8, 16, 32]));
    }
}

#[test]
fn rows_graded_over_many_bits_and_exact_integers_agree() {
    let n = 33;
    let mut graded = symmetric(n, 3, 9.0);
    let mut exact = Matrix::zeros(n, n, 320).unwrap();
    for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
        let value = graded.float(row, col) >> (5 * (row + col)) as u32;
        graded.set_float(row, col, &value).unwrap();
        // Every quotient is an integer, or a tie: the pivots are powers of two.
        let value = if row == col { 4.0 } else { f64::from(u8::from((row + col) % 3 == 0)) / 1024.0 };
        exact.set_float(row, col, &Float::with_val(320, value)).unwrap();
    }
    for bits in [10, 64, 200] {
        agree(&graded, bits, &[16, 40]);
        agree(&exact, bits, &[16, 40]);
    }
}

/// A solve with one tile of a triangle, given as an operand, after an update with a tile next to it.
fn solve(engine: &dyn TileEngine, shape: TileShape, bits: u32, seed: u64) -> (Vec<Vec<Integer>>, Vec<RowWeight>) {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    let mut random = |rows: usize, cols: usize, size: f64| {
        let value = |_: usize| (Float::with_val(300, Float::random_bits(&mut rng)) - 0.5f64) * size;
        Matrix::from_floats(rows, cols, 300, &(0..rows * cols).map(value).collect::<Vec<_>>()).unwrap()
    };
    let (rows, cols) = (shape.rows, shape.cols);
    let root = (cols as f64).sqrt();
    let (triangle, beside) = (random(cols, cols, 1.0 / root), random(cols, cols, 1.0 / root));
    let (right, known) = (random(rows, cols, 0.2), random(rows, cols, 0.2 / root));
    let mut scratch = vec![NOISE; engine.scratch_words(rows.max(cols).next_multiple_of(8))];
    let shifts = |bits: u32| vec![i64::from(bits); rows.max(cols)];
    let (single, double, none) = (shifts(bits), shifts(2 * bits), shifts(0));
    let mut operand = |matrix: &Matrix, part: TilePart| {
        let (rows, cols) = (0..matrix.rows(), 0..matrix.cols());
        let source = TileSource { matrix: matrix.view(), part, rows, cols, row_shifts: &single, col_shifts: &none };
        let mut words = vec![NOISE; engine.operand_words(source.shape())];
        engine.load_operand(&source, &mut words, &mut scratch);
        words
    };
    let (mut above, x, y) = (
        operand(&triangle, if seed.is_multiple_of(2) { TilePart::StrictlyLower } else { TilePart::Lower }),
        operand(&known, TilePart::Whole),
        operand(&beside, TilePart::Whole),
    );
    let pivot =
        |at: usize| Integer::from(if at.is_multiple_of(3) { -1 } else { 1 }) << (bits - (at as u32 % 4).min(bits));
    let pivots = (0..cols).map(pivot).collect::<Vec<_>>();
    let square = TileShape { rows: cols, cols, diagonal: true };
    engine.set_pivots(square, &mut above, &pivots);
    let data = engine.triangle(square, &above, &pivots);
    let part = TilePart::Whole;
    let source =
        TileSource { matrix: right.view(), part, rows: 0..rows, cols: 0..cols, row_shifts: &double, col_shifts: &none };
    let mut words = vec![NOISE; engine.tile_words(shape)];
    engine.load(&source, &mut words, &mut scratch);
    let tile = UpdateTile { shape, words: &mut words, x: vec![&x], device: 0 };
    engine.update(&mut [tile], &[&y], cols, &mut scratch).unwrap();
    scratch.fill(NOISE);
    let mut weights = vec![RowWeight::new(&(Integer::from(1) << (2 * bits)), bits); rows];
    engine.solve(
        SolveTile { shape, words: &mut words, weights: &mut weights },
        DiagonalTile { words: &above, data: &*data },
        &mut scratch,
    );
    let row = |row: usize| (0..cols).map(|col| entry(engine, shape, &words, (row, col))).collect();
    ((0..rows).map(row).collect(), weights)
}

#[test]
fn solves_with_given_triangles_agree_for_all_shapes() {
    for (rows, cols) in [(1, 1), (1, 9), (7, 8), (8, 7), (9, 33), (33, 9), (31, 32), (32, 31), (64, 65), (5, 100)] {
        for bits in [5, 64, 193] {
            let shape = TileShape { rows, cols, diagonal: false };
            let seed = (rows + 2 * cols) as u64;
            let want = solve(&IntegerTiles::new(bits), shape, bits, seed);
            for kernel in available() {
                for engine in tiles_over(kernel, bits) {
                    let got = solve(&*engine, shape, bits, seed);
                    assert!(got == want, "{rows} x {cols}, {bits} bits, {}", kernel.name());
                }
            }
        }
    }
}
