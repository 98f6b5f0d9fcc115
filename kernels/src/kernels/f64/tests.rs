//! The engine against plain big-integer arithmetic, on every instruction set of this CPU.

use super::dgemm::GemmCrate;
use super::product::{chunk_rows, column_stride};
use super::*;
use crate::math::family::{F64_CHUNK_ROWS, f64_primes};
use crate::math::scale::scaled_integer;
use crate::matrix::{Matrix, MatrixView};
use crate::plan::BLOCK_WORDS;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rug::Integer;
use rug::integer::Order;

fn engines(spec: EngineSpec) -> impl Iterator<Item = (F64Isa, F64Engine<GemmCrate>)> {
    F64Isa::available().map(move |isa| (isa, F64Engine { tables: F64Tables::new(&spec), dgemm: GemmCrate, isa }))
}

fn as_integer(word: u64) -> i64 {
    let value = f64::from_bits(word);
    assert!(value.fract() == 0.0 && value.abs() < 1e9, "{value} is no residue");
    value as i64
}

fn congruent(a: &Integer, b: i64, prime: u64) -> bool {
    Integer::from(a - b).is_divisible(&Integer::from(prime))
}

/// A matrix whose entries have all signs and exponents of `spread` bits; every seventh is 0.
fn random_matrix(rng: &mut ChaCha8Rng, rows: usize, cols: usize, spread: i64) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, 200).unwrap();
    for at in 0..rows * cols {
        let digits: Vec<u64> = (0..4).map(|_| rng.random()).collect();
        let integer = Integer::from_digits(&digits, Order::Lsf) * if rng.random() { 1 } else { -1 };
        if !rng.random_ratio(1, 7) {
            let exponent = -256 - rng.random_range(0..=spread);
            matrix.set_integer_exponent(at % rows, at / rows, &integer, exponent).unwrap();
        }
    }
    matrix
}

/// Converts into planes on cache lines and off them, and checks both.
fn check_residues(engine: &F64Engine<GemmCrate>, source: &PanelSource<'_>, primes: Range<usize>, label: &str) {
    for misaligned in [0, 1] {
        let words = engine.panel_words(source.rows.len()) * primes.len();
        let mut window = vec![u64::MAX; words + 16];
        let start = window.as_ptr().align_offset(64) + misaligned;
        check_window(engine, source, primes.clone(), &mut window[start..start + words], label);
    }
}

fn check_window(
    engine: &F64Engine<GemmCrate>,
    source: &PanelSource<'_>,
    primes: Range<usize>,
    window: &mut [u64],
    label: &str,
) {
    let rows = source.rows.len();
    let words = engine.panel_words(rows);
    let mut planes: Vec<&mut [u64]> = match words {
        0 => primes.clone().map(|_| Default::default()).collect(),
        _ => window.chunks_exact_mut(words).collect(),
    };
    let mut scratch = vec![u64::MAX; engine.scratch_words(rows, &BlockGrid::triangle(8))];
    engine.to_residues(primes.clone(), source, &mut planes, &mut scratch);
    for column in 0..BLOCK {
        for row in 0..rows {
            let want = match source.columns.clone().nth(column) {
                Some(col) => scaled_integer(source.view.get(source.rows.start + row, col), source.shifts[col]),
                None => Integer::new(),
            };
            for (plane, index) in planes.iter().zip(primes.clone()) {
                let prime = engine.moduli()[index];
                let residue = as_integer(plane[column * column_stride(rows) + row]);
                assert!(residue.unsigned_abs() <= prime / 2, "{label}: {residue} is not balanced modulo {prime}");
                assert!(congruent(&want, residue, prime), "{label}: row {row}, column {column}, prime {prime}");
            }
        }
    }
}

#[test]
fn residues_equal_the_scaled_integers() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let matrix = random_matrix(&mut rng, 203, 21, 900);
    let transposed = random_matrix(&mut rng, 21, 203, 900);
    let spec = EngineSpec { operand_bits: 240, modulus_bits: 482, redundant: true };
    let shifts: Vec<i64> = (0..203).map(|col| 240 - col % 3).collect();
    for (isa, engine) in engines(spec) {
        let count = engine.moduli().len();
        let views: [(&str, MatrixView<'_>); 2] = [("plain", matrix.view()), ("transposed", transposed.transposed())];
        for (name, view) in views {
            for (rows, columns) in [(0..0, 0..8), (5..6, 3..11), (0..7, 16..21), (0..203, 8..16), (100..196, 20..21)] {
                for primes in [0..count, 0..1, 5..7, 4..13, count - 1..count, 3..3] {
                    let label = format!("{isa:?}, {name}, rows {rows:?}, columns {columns:?}, primes {primes:?}");
                    let source = PanelSource { view, columns: columns.clone(), rows: rows.clone(), shifts: &shifts };
                    check_residues(&engine, &source, primes, &label);
                }
            }
        }
    }
}

#[test]
fn residues_of_the_largest_integers_and_precisions_are_right() {
    // All-ones, powers of two at the very limit of the operand bits, and slightly beyond it, up to 5000 bits.
    for operand_bits in [1u32, 22, 23, 24, 51, 52, 63, 64, 65, 1033, 5036] {
        let mut matrix = Matrix::zeros(6, 2, operand_bits.max(32)).unwrap();
        let power = Integer::from(1) << operand_bits;
        let beyond = &power + Integer::from(&power >> 24);
        let values = [power.clone(), power.clone() - 1u32, -power.clone(), -power + 1u32, beyond.clone(), -beyond];
        for (row, value) in values.iter().enumerate() {
            for col in 0..2 {
                matrix.set_integer_exponent(row, col, value, 0).unwrap();
            }
        }
        let spec = EngineSpec { operand_bits, modulus_bits: 2 * operand_bits + 2, redundant: false };
        for (isa, engine) in engines(spec) {
            let source = PanelSource { view: matrix.view(), columns: 0..2, rows: 0..6, shifts: &[0, 0] };
            let count = engine.moduli().len();
            check_residues(&engine, &source, 0..count, &format!("{isa:?}, {operand_bits} bits"));
        }
    }
}

#[test]
fn residues_written_past_the_caches_are_right() {
    // The window of the whole matrix, of which one panel is converted, is above the size from which words are streamed.
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let matrix = random_matrix(&mut rng, 130, 500, 300);
    let spec = EngineSpec { operand_bits: 240, modulus_bits: 1200, redundant: false };
    for (isa, engine) in engines(spec) {
        let count = engine.moduli().len();
        assert!(count * 130 * 500 * 8 > 24 << 20);
        let source = PanelSource { view: matrix.view(), columns: 488..496, rows: 0..130, shifts: &[240; 500] };
        check_residues(&engine, &source, 0..count, &format!("{isa:?}"));
    }
}

/// Panels of `columns` columns (a multiple of 8) of residues that `entry(row, column)` gives; the padding is NaN.
fn panels(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> i64) -> Vec<u64> {
    let stride = column_stride(rows);
    let mut words = vec![f64::NAN.to_bits(); stride * columns];
    for col in 0..columns {
        for row in 0..rows {
            words[col * stride + row] = (entry(row, col) as f64).to_bits();
        }
    }
    words
}

/// Checks `product` into dirty memory (or added to it) against sums of 128-bit integers.
fn check_product(engine: &F64Engine<GemmCrate>, product: &PlaneProduct<'_>, label: &str) {
    let prime = engine.moduli()[0];
    let before = (prime / 2) as f64 + 2.0;
    let dirty = if product.accumulate { before } else { f64::NAN };
    let mut c = vec![dirty.to_bits(); product.blocks.len() * BLOCK_WORDS];
    let mut scratch = vec![u64::MAX; engine.scratch_words(product.rows, &product.grid)];
    engine.multiply(0, product, &mut c, &mut scratch);
    let stride = column_stride(product.rows);
    let mut blocks = c.chunks_exact(BLOCK_WORDS);
    for col in 0..product.grid.cols {
        for row in product.grid.rows_in(col, &product.blocks) {
            let block = blocks.next().unwrap();
            for (entry, &word) in block.iter().enumerate() {
                let (i, j) = (row * BLOCK + entry % BLOCK, col * BLOCK + entry / BLOCK);
                let start = if product.accumulate { before as i128 } else { 0 };
                let want = (0..product.rows).fold(start, |sum, k| {
                    let (x, y) = (product.x[i * stride + k], product.y[j * stride + k]);
                    sum + i128::from(as_integer(x)) * i128::from(as_integer(y))
                });
                let got = as_integer(word);
                assert!(got.unsigned_abs() <= prime / 2 + 2, "{label}: {got} is too large");
                assert_eq!((want - i128::from(got)) % i128::from(prime), 0, "{label}: entry ({i}, {j})");
            }
        }
    }
}

const SMALL: EngineSpec = EngineSpec { operand_bits: 30, modulus_bits: 62, redundant: false };

#[test]
fn products_equal_integer_sums() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let half = (f64_primes()[0] / 2) as i64;
    let rows_tried = [0, 1, 7, F64_CHUNK_ROWS - 1, F64_CHUNK_ROWS, F64_CHUNK_ROWS + 1, 2 * F64_CHUNK_ROWS + 300];
    for rows in rows_tried {
        let shapes = [(9usize, 8usize), (1, 1), (8, 100), (100, 9), (104, 150)];
        for &(left, right) in &shapes[..if rows > 100 { 3 } else { 5 }] {
            let x = panels(rows, left.next_multiple_of(BLOCK), |_, _| rng.random_range(-half..=half));
            let y = panels(rows, right.next_multiple_of(BLOCK), |_, _| rng.random_range(-half..=half));
            for (isa, engine) in engines(SMALL) {
                for accumulate in [false, true] {
                    let label = format!("{isa:?}, {rows} rows, {left} by {right}, accumulate {accumulate}");
                    let triangle = BlockGrid::triangle(left);
                    let grid = BlockGrid::rectangle(left, right);
                    let (all, every) = (0..triangle.len(), 0..grid.len());
                    let gram = PlaneProduct { x: &x, y: &x, rows, grid: triangle, blocks: all, accumulate };
                    check_product(&engine, &gram, &label);
                    let product = PlaneProduct { x: &x, y: &y, rows, grid, blocks: every, accumulate };
                    check_product(&engine, &product, &label);
                }
            }
        }
    }
}

#[test]
fn any_range_of_blocks_can_be_computed_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let half = (f64_primes()[0] / 2) as i64;
    let rows = 19;
    let x = panels(rows, 104, |_, _| rng.random_range(-half..=half));
    let (isa, engine) = engines(SMALL).next().unwrap();
    for grid in [BlockGrid::triangle(100), BlockGrid::rectangle(40, 100)] {
        for start in (0..=grid.len()).step_by(3) {
            for end in (start..=grid.len()).step_by(5) {
                let product = PlaneProduct { x: &x, y: &x, rows, grid, blocks: start..end, accumulate: end % 2 == 0 };
                check_product(&engine, &product, &format!("{isa:?}, {grid:?}, blocks {start}..{end}"));
            }
        }
    }
}

#[test]
fn the_largest_residues_everywhere_stay_exact() {
    // Full chunks of (p - 1) / 2 with all signs equal, opposite, or mixed, on top of the largest carried residue: any
    // rounding in the sums or in the reduction would show.
    let half = (f64_primes()[0] / 2) as i64;
    let rows = 2 * F64_CHUNK_ROWS;
    assert_eq!(chunk_rows(rows), F64_CHUNK_ROWS);
    let patterns: [fn(usize, usize) -> i64; 4] = [
        |_, _| 1,
        |_, col| if col % 2 == 0 { 1 } else { -1 },
        |row, col| if (row + col) % 2 == 0 { 1 } else { -1 },
        |row, _| if row < F64_CHUNK_ROWS { 1 } else { -1 },
    ];
    for (index, sign) in patterns.iter().enumerate() {
        let x = panels(rows, 24, |row, col| half * sign(row, col));
        for (isa, engine) in engines(SMALL) {
            for accumulate in [false, true] {
                let grid = BlockGrid::rectangle(24, 24);
                let product = PlaneProduct { x: &x, y: &x, rows, grid, blocks: 0..grid.len(), accumulate };
                check_product(&engine, &product, &format!("{isa:?}, pattern {index}"));
            }
        }
    }
}

/// Residues of 64 integers as a product window with one word between planes; words as `multiply` may leave them.
fn window(engine: &F64Engine<GemmCrate>, integers: &[Integer]) -> Vec<u64> {
    let mut words = Vec::new();
    for (index, &prime) in engine.moduli().iter().enumerate() {
        words.push(u64::MAX);
        for (entry, integer) in integers.iter().enumerate() {
            let least = Integer::from(integer.modulo_ref(&Integer::from(prime))).to_i64().unwrap();
            let balanced = if least as u64 > prime / 2 { least - prime as i64 } else { least };
            // The form is not unique: up to 2 beyond the balanced range.
            let shifted = if balanced < 0 { balanced + prime as i64 } else { balanced - prime as i64 };
            let fits = shifted.unsigned_abs() <= prime / 2 + 2;
            words.push(((if fits && (entry + index) % 2 == 0 { shifted } else { balanced }) as f64).to_bits());
        }
    }
    words
}

fn reconstruct(engine: &F64Engine<GemmCrate>, window: &[u64], extra_limbs: usize) -> Vec<Integer> {
    let mut block = IntegerBlock::new(engine.magnitude_limbs() + extra_limbs);
    block.magnitudes.fill(0xdead);
    let mut scratch = vec![u64::MAX; engine.scratch_words(1, &BlockGrid::triangle(8))];
    let residues = BlockResidues { window, plane_words: BLOCK_WORDS + 1, offset: 1 };
    engine.reconstruct(&residues, &mut block, &mut scratch);
    (0..BLOCK_WORDS)
        .map(|entry| {
            let magnitude = Integer::from_digits(block.magnitude(entry), Order::Lsf);
            assert!(!block.negative[entry] || magnitude != 0, "a negative zero");
            if block.negative[entry] { -magnitude } else { magnitude }
        })
        .collect()
}

fn modulus_product(engine: &F64Engine<GemmCrate>) -> Integer {
    engine.moduli().iter().fold(Integer::from(1), |product, &prime| product * prime)
}

#[test]
fn reconstruction_inverts_the_residues() {
    let mut rng = rug::rand::RandState::new();
    for (modulus_bits, redundant) in
        [(0, false), (22, false), (23, true), (64, false), (700, true), (2068, false), (10_074, true)]
    {
        for (isa, engine) in engines(EngineSpec { operand_bits: 10, modulus_bits, redundant }) {
            let product = modulus_product(&engine);
            // Just inside +-M / 2 (1 - 2^-30), around 0, and random sizes between.
            let largest = Integer::from(&product / 2u32) - Integer::from(&product >> 31) - 1u32;
            let integers: Vec<Integer> = (0..BLOCK_WORDS as u32)
                .map(|entry| match entry {
                    0 => Integer::new(),
                    1 | 2 => Integer::from(if entry == 1 { 1 } else { -1 }) * Integer::from(!largest.is_zero()),
                    3 => largest.clone(),
                    4 => -largest.clone(),
                    5 => (Integer::from(1) << (product.significant_bits() - 2)).min(largest.clone()),
                    _ => {
                        let size = product.significant_bits() * entry / 64;
                        let bound = (Integer::from(1) << size).min(largest.clone()) + 1u32;
                        let magnitude = bound.random_below(&mut rng);
                        if entry % 2 == 0 { magnitude } else { -magnitude }
                    }
                })
                .collect();
            let words = window(&engine, &integers);
            for extra_limbs in [0, 2] {
                let got = reconstruct(&engine, &words, extra_limbs);
                assert_eq!(got, integers, "{isa:?}, {modulus_bits} bits, redundant {redundant}");
            }
        }
    }
}

#[test]
fn a_damaged_word_is_seen_or_changes_nothing() {
    let (modulus_bits, mut rng) = (300, ChaCha8Rng::seed_from_u64(4));
    let accepted = Integer::from(1) << crate::math::bound::range_check_bits(modulus_bits);
    for (isa, engine) in engines(EngineSpec { operand_bits: 140, modulus_bits, redundant: true }) {
        let integers: Vec<Integer> = (0..BLOCK_WORDS)
            .map(|entry| {
                let digits: Vec<u64> = (0..4).map(|_| rng.random()).collect();
                Integer::from_digits(&digits, Order::Lsf) * if entry % 2 == 0 { 1 } else { -1 }
            })
            .collect();
        let words = window(&engine, &integers);
        let (mut seen, mut harmless) = (0, 0);
        for trial in 0..3000 {
            let mut damaged = words.clone();
            let at = rng.random_range(0..words.len());
            damaged[at] = match trial % 3 {
                0 => damaged[at] ^ 1 << rng.random_range(0..64),
                1 => rng.random(),
                _ => [f64::NAN, f64::INFINITY, -1e300, 0.5, 4e6][trial % 5].to_bits(),
            };
            for (entry, (got, want)) in reconstruct(&engine, &damaged, 0).iter().zip(&integers).enumerate() {
                let refused = *got.as_abs() >= accepted;
                assert!(refused || got == want, "{isa:?}, trial {trial}: entry {entry} is wrong and passes");
                assert!(!refused || (at % (BLOCK_WORDS + 1)) == entry + 1, "{isa:?}: another entry was refused");
                seen += usize::from(refused);
            }
            harmless += usize::from(reconstruct(&engine, &damaged, 0) == integers);
        }
        assert!(seen > 1500 && harmless > 20 && seen + harmless == 3000, "{isa:?}: {seen} seen, {harmless} harmless");
    }
}

#[test]
fn three_steps_give_the_exact_gram_matrix() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (rows, cols, operand_bits) = (600usize, 19usize, 190u32);
    let matrix = random_matrix(&mut rng, rows, cols, 60);
    let shifts = vec![i64::from(operand_bits); cols];
    let spec = EngineSpec { operand_bits, modulus_bits: 2 * operand_bits + 2 + 10, redundant: true };
    let grid = BlockGrid::triangle(cols);
    for (isa, engine) in engines(spec) {
        let (count, panel) = (engine.moduli().len(), engine.panel_words(rows));
        let mut scratch = vec![u64::MAX; engine.scratch_words(rows, &grid)];
        let mut planes = vec![u64::MAX; count * panel * grid.cols];
        for block in 0..grid.cols {
            let columns = block * BLOCK..((block + 1) * BLOCK).min(cols);
            let source = PanelSource { view: matrix.view(), columns, rows: 0..rows, shifts: &shifts };
            let mut pieces: Vec<&mut [u64]> =
                planes.chunks_exact_mut(panel * grid.cols).map(|plane| &mut plane[block * panel..][..panel]).collect();
            engine.to_residues(0..count, &source, &mut pieces, &mut scratch);
        }
        let mut products = vec![u64::MAX; count * grid.words()];
        for (prime, c) in products.chunks_exact_mut(grid.words()).enumerate() {
            let x = &planes[prime * panel * grid.cols..][..panel * grid.cols];
            let product = PlaneProduct { x, y: x, rows, grid, blocks: 0..grid.len(), accumulate: false };
            engine.multiply(prime, &product, c, &mut scratch);
        }
        let integer = |row, col| scaled_integer(matrix.get(row, col), i64::from(operand_bits));
        let mut block = IntegerBlock::new(engine.magnitude_limbs());
        for index in 0..grid.len() {
            let col = grid.column_of(index);
            let row = index - grid.column_start(col) + col;
            let residues = BlockResidues { window: &products, plane_words: grid.words(), offset: index * BLOCK_WORDS };
            engine.reconstruct(&residues, &mut block, &mut scratch);
            for entry in (0..BLOCK_WORDS).step_by(5) {
                let (i, j) = (row * BLOCK + entry % BLOCK, col * BLOCK + entry / BLOCK);
                let want = match i.max(j) < cols {
                    true => (0..rows).fold(Integer::new(), |sum, k| sum + integer(k, i) * integer(k, j)),
                    false => Integer::new(),
                };
                let magnitude = Integer::from_digits(block.magnitude(entry), Order::Lsf);
                let got = if block.negative[entry] { -magnitude } else { magnitude };
                assert_eq!(got, want, "{isa:?}: entry ({i}, {j})");
            }
        }
    }
}

#[test]
fn the_kernel_states_its_limits() {
    let kernel = probe().unwrap();
    let largest = kernel.maximum_modulus_bits();
    let spec = EngineSpec { operand_bits: 100, modulus_bits: largest, redundant: true };
    assert_eq!(kernel.plane_count(&spec), f64_primes().len());
    let beyond = EngineSpec { modulus_bits: largest + 1, ..spec };
    assert!(matches!(kernel.prepare(&beyond), Err(Error::Precision { .. })));
    let small = kernel.prepare(&SMALL).unwrap();
    assert_eq!(small.moduli().len(), kernel.plane_count(&SMALL));
    assert!(small.table_bytes() > 0 && small.panel_words(0) == 0);
}
