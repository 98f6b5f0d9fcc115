//! The engine against plain big-integer arithmetic, on every unit of this CPU and on emulated tiles.

use super::product::PASS_ROWS;
use super::tiles::STEP;
use super::*;
use crate::math::bound::{I8_LARGEST_DIGITS, I8_TABLE_TERMS};
use crate::math::family_i8::i8_moduli;
use crate::math::scale::scaled_integer;
use crate::matrix::{Matrix, MatrixView};
use crate::testing::effort;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rug::Integer;
use rug::integer::Order;

fn engines(spec: EngineSpec) -> impl Iterator<Item = (I8Isa, I8Engine)> {
    I8Isa::all().map(move |isa| (isa, I8Engine { tables: I8Tables::new(&spec), isa }))
}

/// Whether each product takes so long that fewer cases must do.
fn is_slow(isa: I8Isa) -> bool {
    !I8Isa::available().any(|other| other == isa)
}

fn halves(words: &[u64]) -> &[u16] {
    bytemuck::cast_slice(words)
}

fn congruent(a: &Integer, b: i64, prime: u64) -> bool {
    i64::from(a.mod_u(prime as u32)) == b.rem_euclid(prime as i64)
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

/// The number whose digits an entry of a panel holds.
fn number(half: u16, is_triple: bool) -> i64 {
    let [low, high] = half.to_le_bytes().map(|byte| i64::from(byte as i8));
    if is_triple { 128 * high + low } else { low }
}

/// The entry of a panel for a number: its digits, or itself for a modulus of one plane.
fn digits(number: i64, is_triple: bool) -> u16 {
    let high = if is_triple { (number + 64).div_euclid(128) } else { 0 };
    u16::from_le_bytes([(number - 128 * high) as u8, high as u8])
}

/// Converts into dirty planes and checks each residue.
fn check_residues(engine: &I8Engine, source: &PanelSource<'_>, primes: Range<usize>, label: &str) {
    let rows = source.rows.len();
    let words = engine.panel_words(rows);
    let mut window = vec![u64::MAX; words * primes.len()];
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
                let (half, is_triple) = (halves(plane)[row * BLOCK + column], index >= engine.tables.singles);
                let residue = number(half, is_triple);
                let limit = if is_triple { I8_LARGEST_DIGITS } else { prime / 2 };
                assert!(residue.unsigned_abs() <= limit, "{label}: {residue} modulo {prime} is too large");
                assert!(!is_triple || half == digits(residue, true), "{label}: {half:04x} for {residue}");
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
        if is_slow(isa) {
            continue;
        }
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
    for operand_bits in [1u32, 22, 31, 32, 63, 64, 65, 1033, 5036] {
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
            if is_slow(isa) && operand_bits > 65 {
                continue;
            }
            let source = PanelSource { view: matrix.view(), columns: 0..2, rows: 0..6, shifts: &[0, 0] };
            let count = engine.moduli().len();
            check_residues(&engine, &source, 0..count, &format!("{isa:?}, {operand_bits} bits"));
        }
    }
}

#[test]
fn magnitudes_longer_than_one_sum_of_a_table_are_right() {
    // All bytes 255, below, at and beyond the terms that are summed before a reduction: the last one rounds.
    for bytes in [I8_TABLE_TERMS - 9, I8_TABLE_TERMS - 1, I8_TABLE_TERMS, I8_TABLE_TERMS + 8, 2 * I8_TABLE_TERMS] {
        let operand_bits = 8 * bytes as u32;
        let mut matrix = Matrix::zeros(2, 1, operand_bits + 2).unwrap();
        let ones = (Integer::from(1) << (operand_bits + 1)) - 1u32;
        matrix.set_integer_exponent(0, 0, &ones, 0).unwrap();
        matrix.set_integer_exponent(1, 0, &-ones, 0).unwrap();
        let (isa, engine) = engines(EngineSpec { operand_bits, modulus_bits: 400, redundant: false }).next().unwrap();
        for shift in [-1, -2] {
            let source = PanelSource { view: matrix.view(), columns: 0..1, rows: 0..2, shifts: &[shift] };
            check_residues(&engine, &source, 0..engine.moduli().len(), &format!("{isa:?}, {bytes} bytes"));
        }
    }
}

/// Panels of `columns` columns (a multiple of 8) of entries that `entry(row, column)` gives.
fn panels(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> u16) -> Vec<u64> {
    let mut words = vec![0u64; rows * columns / 4];
    let residues: &mut [u16] = bytemuck::cast_slice_mut(&mut words);
    for col in 0..columns {
        for row in 0..rows {
            residues[(col / BLOCK * rows + row) * BLOCK + col % BLOCK] = entry(row, col);
        }
    }
    words
}

/// Checks `product` into dirty memory (or added to it) against sums of 64-bit integers.
fn check_product(engine: &I8Engine, prime: usize, product: &PlaneProduct<'_>, label: &str) {
    let modulus = engine.moduli()[prime];
    let before = (modulus - 1) as u16;
    let dirty = if product.accumulate { before } else { u16::MAX };
    let mut c = vec![0u64; product.blocks.len() * RESIDUE_WORDS];
    bytemuck::cast_slice_mut(&mut c).fill(dirty);
    let mut scratch = vec![u64::MAX; engine.scratch_words(product.rows, &product.grid)];
    engine.multiply(prime, product, &mut c, &mut scratch);
    let mut blocks = halves(&c).chunks_exact(BLOCK_WORDS);
    let is_triple = prime >= engine.tables.singles;
    let numbers = |words| halves(words).iter().map(|&entry| number(entry, is_triple)).collect::<Vec<_>>();
    let (x, y) = (numbers(product.x), numbers(product.y));
    let panel = product.rows * BLOCK;
    for col in 0..product.grid.cols {
        for row in product.grid.rows_in(col, &product.blocks) {
            let mut sums = [if product.accumulate { i64::from(before) } else { 0 }; BLOCK_WORDS];
            for (x, y) in x[row * panel..][..panel].chunks_exact(BLOCK).zip(y[col * panel..].chunks_exact(BLOCK)) {
                for (entry, sum) in sums.iter_mut().enumerate() {
                    *sum += x[entry % BLOCK] * y[entry / BLOCK];
                }
            }
            for (entry, (&got, want)) in blocks.next().unwrap().iter().zip(sums).enumerate() {
                let (i, j) = (row * BLOCK + entry % BLOCK, col * BLOCK + entry / BLOCK);
                assert_eq!(
                    i64::from(got),
                    want.rem_euclid(modulus as i64),
                    "{label}, modulus {modulus}: entry ({i}, {j})"
                );
            }
        }
    }
}

/// The digits of a balanced residue.
fn random_entry(engine: &I8Engine, prime: usize, rng: &mut ChaCha8Rng) -> u16 {
    let half = engine.moduli()[prime] as i64 / 2;
    let even = i64::from(engine.moduli()[prime].is_multiple_of(2));
    digits(rng.random_range(-half..=half - even), prime >= engine.tables.singles)
}

/// Moduli of both kinds: number 0 is 256, number 50 the first of three planes.
const SMALL: EngineSpec = EngineSpec { operand_bits: 30, modulus_bits: 380, redundant: false };

#[test]
fn products_equal_integer_sums() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let rows_tried =
        [0, 1, 3, 4, 5, STEP - 1, STEP, STEP + 1, PASS_ROWS - 1, PASS_ROWS, PASS_ROWS + 1, 2 * PASS_ROWS + 1];
    for rows in rows_tried {
        let shapes = [(9usize, 8usize), (1, 1), (8, 50), (70, 33), (136, 600)];
        for &(left, right) in &shapes[..if rows > 4 { 3 } else { 5 }] {
            for (isa, engine) in engines(SMALL) {
                if is_slow(isa) && (rows > 2 * STEP || left > 9) {
                    continue;
                }
                for prime in [0, 1, 50, 51] {
                    let mut entry = |_, _| random_entry(&engine, prime, &mut rng);
                    let x = panels(rows, left.next_multiple_of(BLOCK), &mut entry);
                    let y = panels(rows, right.next_multiple_of(BLOCK), &mut entry);
                    let accumulate = prime % 2 == 1;
                    let label = format!("{isa:?}, {rows} rows, {left} by {right}");
                    let (triangle, grid) = (BlockGrid::triangle(left), BlockGrid::rectangle(left, right));
                    let (all, every) = (0..triangle.len(), 0..grid.len());
                    let gram = PlaneProduct { x: &x, y: &x, rows, grid: triangle, blocks: all, accumulate };
                    check_product(&engine, prime, &gram, &label);
                    let product = PlaneProduct { x: &x, y: &y, rows, grid, blocks: every, accumulate };
                    check_product(&engine, prime, &product, &label);
                }
            }
        }
    }
}

#[test]
fn any_range_of_blocks_can_be_computed_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let rows = 19;
    let (isa, engine) = engines(SMALL).next().unwrap();
    let x = panels(rows, 104, |_, _| random_entry(&engine, 50, &mut rng));
    for grid in [BlockGrid::triangle(100), BlockGrid::rectangle(40, 100)] {
        for start in (0..=grid.len()).step_by(3) {
            for end in (start..=grid.len()).step_by(5) {
                let product = PlaneProduct { x: &x, y: &x, rows, grid, blocks: start..end, accumulate: end % 2 == 0 };
                check_product(&engine, 50, &product, &format!("{isa:?}, {grid:?}, blocks {start}..{end}"));
            }
        }
    }
}

#[test]
fn the_largest_residues_everywhere_stay_exact() {
    // Numbers whose bytes are the largest and the least, over whole passes; sums of the digits of -8256 are -128.
    let spec = EngineSpec { operand_bits: 30, modulus_bits: i8_maximum_modulus_bits(), redundant: true };
    let moduli = i8_moduli();
    let limit = I8_LARGEST_DIGITS as i64;
    for (isa, engine) in engines(spec) {
        for prime in [0, 1, 2, 49, 50, 51, moduli.len() - 1] {
            let (is_triple, half) = (prime >= engine.tables.singles, moduli[prime] as i64 / 2);
            let ends =
                if is_triple { [limit, -limit, 8255, -8256] } else { [(moduli[prime] as i64 - 1) / 2, -half, 1, 0] };
            for rows in [STEP, PASS_ROWS, 2 * PASS_ROWS] {
                if is_slow(isa) && rows > STEP {
                    continue;
                }
                for pattern in 0..6 {
                    let x = panels(rows, 16, |row, col| {
                        digits(ends[if pattern < 4 { pattern } else { (row * (pattern - 4) + col) % 4 }], is_triple)
                    });
                    let (grid, accumulate) = (BlockGrid::rectangle(16, 16), pattern % 2 == 0);
                    let product = PlaneProduct { x: &x, y: &x, rows, grid, blocks: 0..grid.len(), accumulate };
                    check_product(&engine, prime, &product, &format!("{isa:?}, pattern {pattern}, {rows} rows"));
                }
            }
        }
    }
}

#[test]
fn residues_of_planes_are_added() {
    for (_, engine) in engines(SMALL).take(1) {
        for prime in [0, 1, 49, 50] {
            let modulus = engine.moduli()[prime];
            for (a, b) in [(0, 0), (1, modulus - 1), (modulus - 1, modulus - 1), (modulus / 2, modulus / 2)] {
                let (mut sum, words) = ([a * 0x0001_0001_0001_0001; 2], [b * 0x0001_0001_0001_0001; 2]);
                engine.add(prime, &mut sum, &words);
                assert_eq!(sum, [(a + b) % modulus * 0x0001_0001_0001_0001; 2], "{a} + {b} modulo {modulus}");
            }
        }
    }
}

/// Residues of 64 integers as a product window with one word between planes.
fn window(engine: &I8Engine, integers: &[Integer]) -> Vec<u64> {
    let mut words = Vec::new();
    for &modulus in engine.moduli() {
        let least = |integer: &Integer| integer.mod_u(modulus as u32) as u16;
        words.push(u64::MAX);
        words.extend(
            integers
                .chunks_exact(4)
                .map(|four| (0..4).fold(0, |word, entry| word | u64::from(least(&four[entry])) << (16 * entry))),
        );
    }
    words
}

fn reconstruct(engine: &I8Engine, window: &[u64], extra_limbs: usize) -> Vec<Integer> {
    let mut block = IntegerBlock::new(engine.magnitude_limbs() + extra_limbs);
    block.magnitudes.fill(0xdead);
    let mut scratch = vec![u64::MAX; engine.scratch_words(1, &BlockGrid::triangle(8))];
    let residues = BlockResidues { window, plane_words: RESIDUE_WORDS + 1, offset: 1 };
    engine.reconstruct(&residues, &mut block, &mut scratch);
    (0..BLOCK_WORDS)
        .map(|entry| {
            let magnitude = Integer::from_digits(block.magnitude(entry), Order::Lsf);
            assert!(!block.negative[entry] || magnitude != 0, "a negative zero");
            if block.negative[entry] { -magnitude } else { magnitude }
        })
        .collect()
}

fn modulus_product(engine: &I8Engine) -> Integer {
    engine.moduli().iter().fold(Integer::from(1), |product, &prime| product * prime)
}

#[test]
fn reconstruction_inverts_the_residues() {
    let mut rng = rug::rand::RandState::new();
    for (modulus_bits, redundant) in
        [(0, false), (8, false), (22, true), (64, false), (346, false), (360, true), (2068, false), (10_074, true)]
    {
        for (isa, engine) in engines(EngineSpec { operand_bits: 10, modulus_bits, redundant }) {
            if is_slow(isa) && modulus_bits > 360 {
                continue;
            }
            let product = modulus_product(&engine);
            // Just inside +-M / 2 (1 - 2^-6), around 0, and random sizes between.
            let largest = Integer::from(&product / 2u32) - Integer::from(&product >> 7) - 1u32;
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
        if is_slow(isa) {
            continue;
        }
        let (mut seen, mut harmless) = (0, 0);
        let trials = 1000 * effort().min(20) as usize;
        for trial in 0..trials {
            let mut damaged = words.clone();
            let at = rng.random_range(0..words.len());
            damaged[at] = match trial % 3 {
                0 => damaged[at] ^ 1 << rng.random_range(0..64),
                1 => rng.random(),
                _ => [0x7fff_7fff_7fff_7fff, 0x8000_8000_8000_8000, u64::MAX, 0, 0xffff][trial % 5],
            };
            let found = reconstruct(&engine, &damaged, 0);
            for (entry, (got, want)) in found.iter().zip(&integers).enumerate() {
                let refused = *got.as_abs() >= accepted;
                assert!(refused || got == want, "{isa:?}, trial {trial}: entry {entry} is wrong and passes");
                assert!(!refused || (at % (RESIDUE_WORDS + 1)) == entry / 4 + 1, "{isa:?}: another entry was refused");
                seen += usize::from(refused);
            }
            harmless += usize::from(found == integers);
        }
        assert!(seen > trials && harmless > trials / 150, "{isa:?}: {seen} entries seen, {harmless} words harmless");
    }
}

#[test]
fn three_steps_give_the_exact_gram_matrix() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (most_rows, cols, operand_bits) = (600usize, 19usize, 190u32);
    let matrix = random_matrix(&mut rng, most_rows, cols, 60);
    let shifts = vec![i64::from(operand_bits); cols];
    let spec = EngineSpec { operand_bits, modulus_bits: 2 * operand_bits + 2 + 10, redundant: true };
    let grid = BlockGrid::triangle(cols);
    for (isa, engine) in engines(spec) {
        let rows = if is_slow(isa) { 20 } else { most_rows };
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
        let mut products = vec![u64::MAX; count * engine.plane_words(&grid)];
        for (prime, c) in products.chunks_exact_mut(engine.plane_words(&grid)).enumerate() {
            let x = &planes[prime * panel * grid.cols..][..panel * grid.cols];
            let product = PlaneProduct { x, y: x, rows, grid, blocks: 0..grid.len(), accumulate: false };
            engine.multiply(prime, &product, c, &mut scratch);
        }
        let integer = |row, col| scaled_integer(matrix.get(row, col), i64::from(operand_bits));
        let mut block = IntegerBlock::new(engine.magnitude_limbs());
        for index in 0..grid.len() {
            let col = grid.column_of(index);
            let row = index - grid.column_start(col) + col;
            let (plane_words, offset) = (engine.plane_words(&grid), index * RESIDUE_WORDS);
            let residues = BlockResidues { window: &products, plane_words, offset };
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
    assert_eq!(kernel.plane_count(&spec), i8_moduli().len());
    let beyond = EngineSpec { modulus_bits: largest + 1, ..spec };
    assert!(matches!(kernel.prepare(&beyond), Err(Error::Precision { .. })));
    let small = kernel.prepare(&SMALL).unwrap();
    assert_eq!(small.moduli().len(), kernel.plane_count(&SMALL));
    assert!(small.table_bytes() > 0 && small.panel_words(0) == 0);
}

#[test]
fn rates_are_those_of_single_instructions() {
    for isa in I8Isa::available() {
        let is_single = ["amx", "vnni8", "avx-vnni"].contains(&isa.name());
        assert_eq!(isa.issue_rate(1).map(|rate| rate > 0.0), is_single.then_some(true), "{}", isa.name());
    }
}

/// The loop that measures the tile registers, on instructions that are emulated.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn chains_are_of_four_sums_in_turn() {
    if !amx::is_granted() {
        emulation::trap::products();
        // SAFETY: `trap` runs it with the tiles configured.
        emulation::trap::run(unsafe { amx::Chains::new(3) });
        assert_eq!(emulation::trap::products(), [0, 1, 2, 3].repeat(3));
    }
}
