//! The engine against plain big-integer arithmetic, on every instruction set of this CPU and in the shapes of AVX-512.

use super::micro::COLUMNS;
use super::operand::MOST_DEPTH;
use super::*;
use crate::math::bound::i16_digit_sum_fits;
use crate::math::family_i16::i16_primes;
use crate::math::modulus::Modulus;
use crate::math::scale::scaled_integer;
use crate::matrix::{Matrix, MatrixView};
use crate::testing::effort;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rug::Integer;
use rug::integer::Order;

/// Engines with panels in both forms.
pub(super) fn engines(spec: EngineSpec) -> impl Iterator<Item = (I16Isa, I16Engine)> {
    engines_of(spec, Form::Rows).chain(engines_of(spec, Form::Pairs))
}

fn engines_of(spec: EngineSpec, form: Form) -> impl Iterator<Item = (I16Isa, I16Engine)> {
    // The first one twice: with conversions by 52-bit digits, where the CPU has them, and without.
    let by_digits = move |isa| {
        let tables = Tables::new(&spec);
        let conversion = ResidueConversion::Digits(OperandTables::new(&tables.moduli, spec.operand_bits));
        (isa, I16Engine { form, conversion, recovery: Recovery::Digits(ResultTables::new(&tables)), tables, isa })
    };
    let tables = Tables::new(&spec);
    let conversion = ResidueConversion::new(&tables.moduli, spec.operand_bits, form);
    let chosen = I16Engine { form, conversion, recovery: Recovery::new(&tables), tables, isa: I16Isa::detect() };
    I16Isa::all().map(by_digits).chain([(I16Isa::detect(), chosen)])
}

pub(super) fn halves(words: &[u64]) -> &[i16] {
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

/// Converts into dirty planes and checks each residue.
fn check_residues(engine: &I16Engine, source: &PanelSource<'_>, primes: Range<usize>, label: &str) {
    let rows = source.rows.len();
    let words = engine.panel_words(rows);
    let mut window = vec![u64::MAX; words * primes.len()];
    let mut planes: Vec<&mut [u64]> = match words {
        0 => primes.clone().map(|_| Default::default()).collect(),
        _ => window.chunks_exact_mut(words).collect(),
    };
    let mut scratch = vec![u64::MAX; engine.scratch_words(rows, &BlockGrid::triangle(8))];
    engine.to_residues(primes.clone(), source, &mut planes, &mut scratch);
    if engine.form == Form::Pairs && rows % 2 == 1 {
        let behind = |plane: &&mut [u64]| (0..BLOCK).all(|column| halves(plane)[engine.form.place(rows, column)] == 0);
        assert!(planes.iter().all(behind), "{label}: what completes the last pair is 0");
    }
    for column in 0..BLOCK {
        for row in 0..rows {
            let want = match source.columns.clone().nth(column) {
                Some(col) => scaled_integer(source.view.get(source.rows.start + row, col), source.shifts[col]),
                None => Integer::new(),
            };
            for (plane, index) in planes.iter().zip(primes.clone()) {
                let prime = engine.moduli()[index];
                let residue = i64::from(halves(plane)[engine.form.place(row, column)]);
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
    for operand_bits in [1u32, 14, 22, 23, 24, 62, 63, 64, 65, 1033, 5036] {
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

/// Balanced residues of powers of `2^16` modulo a prime.
fn powers_of_radix(prime: u64, count: usize) -> Vec<i64> {
    let modulus = Modulus::new(prime);
    let next = |power: &u64| Some(modulus.multiply(*power, (1 << 16) % prime));
    std::iter::successors(Some(1), next).take(count).map(|power| modulus.balanced(power)).collect()
}

/// Integers whose digits are at their ends, with the signs of a prime's powers of the radix, have the largest possible
/// sums: a run that is too long would show. In fewer runs the sums would not fit.
#[test]
fn the_largest_sums_of_digits_stay_exact() {
    for digits in [3usize, 33, 65, 130, 314] {
        let operand_bits = 16 * digits as u32 - 2;
        let spec = EngineSpec { operand_bits, modulus_bits: 2 * operand_bits + 2, redundant: false };
        let moduli = Tables::new(&spec).moduli;
        let (tables, powers) = (OperandTables::new(&moduli, operand_bits), |prime| powers_of_radix(prime, digits));
        assert_eq!(tables.digits, digits);
        for (interval, primes) in tables.intervals.iter().zip(moduli.chunks(COLUMNS)) {
            let of_primes: Vec<_> = primes.iter().map(|&prime| powers(prime)).collect();
            let fits = |runs: usize| {
                let run = 2 * digits.div_ceil(2).div_ceil(runs);
                let sum = |powers: &[i64]| powers.iter().map(|power| power.unsigned_abs()).sum();
                let fold = |number, powers: &[i64]| if number == 0 { 0 } else { powers[1].unsigned_abs() as u32 };
                of_primes.iter().all(|powers| {
                    let mut runs = powers.chunks(run).enumerate();
                    runs.all(|(number, of_run)| i16_digit_sum_fits(sum(of_run), fold(number, powers)))
                })
            };
            let runs = digits.div_ceil(2).div_ceil(*interval);
            assert!(fits(runs) && (1..runs).all(|fewer| !fits(fewer)), "{digits} digits modulo {primes:?}");
        }
        let worst = |(prime, towards): (u64, i64)| {
            let end = |power: i64| if power * towards > 0 { (1i64 << 15) - 1 } else { -(1 << 15) };
            let mut ends: Vec<_> = powers(prime).into_iter().map(end).collect();
            ends[digits - 1] /= 4; // what the operand's bits leave to the highest digit
            ends.iter().rev().fold(Integer::new(), |above, &digit| (above << 16) + digit)
        };
        let some = moduli.iter().step_by(moduli.len() / 20 + 1).flat_map(|&prime| [(prime, 1), (prime, -1)]);
        let integers: Vec<_> = some.map(worst).collect();
        let mut matrix = Matrix::zeros(integers.len(), 1, operand_bits).unwrap();
        for (row, integer) in integers.iter().enumerate() {
            matrix.set_integer_exponent(row, 0, integer, 0).unwrap();
        }
        for (isa, engine) in engines(spec) {
            let source = PanelSource { view: matrix.view(), columns: 0..1, rows: 0..integers.len(), shifts: &[0] };
            check_residues(&engine, &source, 0..moduli.len(), &format!("{isa:?}, {digits} digits"));
        }
    }
}

/// Panels of `columns` columns (a multiple of 8) of residues that `entry(row, column)` gives, row after row.
pub(super) fn panels(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> i64) -> Vec<u64> {
    let mut words = vec![0u64; rows * columns / 4];
    let residues: &mut [i16] = bytemuck::cast_slice_mut(&mut words);
    for col in 0..columns {
        for row in 0..rows {
            residues[(col / BLOCK * rows + row) * BLOCK + col % BLOCK] = entry(row, col) as i16;
        }
    }
    words
}

/// Panels of `rows` rows, row after row, in the form of an engine.
pub(super) fn in_form(engine: &I16Engine, rows: usize, words: &[u64]) -> Vec<u64> {
    let size = engine.panel_words(rows) * 4;
    let mut out = vec![0u64; words.len() / (2 * rows).max(1) * size / 4];
    let residues: &mut [i16] = bytemuck::cast_slice_mut(&mut out);
    for (at, &residue) in halves(words).iter().enumerate() {
        let (panel, row, column) = (at / BLOCK / rows, at / BLOCK % rows, at % BLOCK);
        residues[panel * size + engine.form.place(row, column)] = residue;
    }
    out
}

/// The sums of a product in 64-bit integers, block after block.
pub(super) fn sums(product: &PlaneProduct<'_>) -> Vec<i64> {
    let panel = |words, at: usize| &halves(words)[at * product.rows * BLOCK..][..product.rows * BLOCK];
    let mut sums = Vec::with_capacity(product.blocks.len() * BLOCK_ENTRIES);
    for col in 0..product.grid.cols {
        for row in product.grid.rows_in(col, &product.blocks) {
            let mut block = [0i64; BLOCK_ENTRIES];
            let rows = panel(product.x, row).chunks_exact(BLOCK).zip(panel(product.y, col).chunks_exact(BLOCK));
            for (x, y) in rows {
                for (entry, sum) in block.iter_mut().enumerate() {
                    *sum += i64::from(x[entry % BLOCK]) * i64::from(y[entry / BLOCK]);
                }
            }
            sums.extend(block);
        }
    }
    sums
}

/// Checks `product` into dirty memory (or added to it) against its [`sums`].
pub(super) fn check_sums(engine: &I16Engine, prime: usize, product: &PlaneProduct<'_>, sums: &[i64], label: &str) {
    let modulus = engine.moduli()[prime] as i64;
    let before = (modulus / 2) as i16;
    let dirty = if product.accumulate { before } else { i16::MIN };
    let mut c = vec![0u64; product.blocks.len() * RESIDUE_WORDS];
    bytemuck::cast_slice_mut(&mut c).fill(dirty);
    let mut scratch = vec![u64::MAX; engine.scratch_words(product.rows, &product.grid)];
    let [x, y] = [product.x, product.y].map(|words| in_form(engine, product.rows, words));
    let y = if std::ptr::eq(product.x, product.y) { &x } else { &y };
    engine.multiply(prime, &PlaneProduct { x: &x, y, ..product.clone() }, &mut c, &mut scratch);
    assert_eq!(halves(&c).len(), sums.len());
    for (at, (&got, &sum)) in halves(&c).iter().zip(sums).enumerate() {
        let want = sum + if product.accumulate { i64::from(before) } else { 0 };
        let (got, block) = (i64::from(got), product.blocks.start + at / BLOCK_ENTRIES);
        assert!(got.abs() <= modulus / 2, "{label}: {got} is not balanced");
        assert_eq!((want - got) % modulus, 0, "{label}: entry {} of block {block}", at % BLOCK_ENTRIES);
    }
}

/// The same for a product that is checked once.
fn check_product(engine: &I16Engine, prime: usize, product: &PlaneProduct<'_>, label: &str) {
    check_sums(engine, prime, product, &sums(product), label);
}

pub(super) const SMALL: EngineSpec = EngineSpec { operand_bits: 30, modulus_bits: 62, redundant: false };

#[test]
fn products_equal_integer_sums() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let half = (i16_primes()[0] / 2) as i64;
    let rows_tried = [0, 1, 7, 119, 120, 121, 128, 129, MOST_DEPTH - 1, MOST_DEPTH, MOST_DEPTH + 1];
    for rows in rows_tried {
        let shapes = [(9usize, 8usize), (1, 1), (8, 100), (100, 9), (104, 600)];
        for &(left, right) in &shapes[..if rows > 7 { 3 } else { 5 }] {
            let x = panels(rows, left.next_multiple_of(BLOCK), |_, _| rng.random_range(-half..=half));
            let y = panels(rows, right.next_multiple_of(BLOCK), |_, _| rng.random_range(-half..=half));
            let products =
                [(&x, BlockGrid::triangle(left)), (&y, BlockGrid::rectangle(left, right))].map(|(y, grid)| {
                    let product = PlaneProduct { x: &x, y, rows, grid, blocks: 0..grid.len(), accumulate: false };
                    (sums(&product), product)
                });
            for (isa, engine) in engines(SMALL) {
                for accumulate in [false, true] {
                    let label = format!("{isa:?}, {rows} rows, {left} by {right}, accumulate {accumulate}");
                    for (sums, product) in &products {
                        check_sums(&engine, 0, &PlaneProduct { accumulate, ..product.clone() }, sums, &label);
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_several_levels_equal_integer_sums() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let primes = i16_primes();
    // Primes that are 1 and 3 modulo 4, the largest and the smallest; odd numbers of panels, rows of every remainder.
    let spec = EngineSpec { operand_bits: 30, modulus_bits: i16_maximum_modulus_bits(), redundant: true };
    let engines = engines(spec).collect::<Vec<_>>();
    for (prime, rows) in [(0, 256), (1, 131), (1, 278), (463, 70), (464, 97), (855, 64), (854, 32)] {
        let half = (primes[prime] / 2) as i64;
        let extreme = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
            0 => half,
            1 => -half,
            _ => rng.random_range(-half..=half),
        };
        for (left, right) in [(96usize, 72usize), (65, 130), (150, 40)] {
            let x = panels(rows, left.next_multiple_of(BLOCK), |_, _| extreme(&mut rng));
            let y = panels(rows, right.next_multiple_of(BLOCK), |_, _| extreme(&mut rng));
            for (y, grid) in [(&x, BlockGrid::triangle(left)), (&y, BlockGrid::rectangle(left, right))] {
                let product = PlaneProduct { x: &x, y, rows, grid, blocks: 0..grid.len(), accumulate: false };
                let sums = sums(&product);
                for ((isa, engine), accumulate) in engines.iter().flat_map(|own| [(own, false), (own, true)]) {
                    let label = format!("{isa:?}, {rows} rows, {grid:?}, prime {prime}, {accumulate}");
                    check_sums(engine, prime, &PlaneProduct { accumulate, ..product.clone() }, &sums, &label);
                }
            }
        }
    }
}

#[test]
fn any_range_of_blocks_can_be_computed_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let half = (i16_primes()[0] / 2) as i64;
    let rows = 19;
    let x = panels(rows, 104, |_, _| rng.random_range(-half..=half));
    for (form, grid) in [Form::Rows, Form::Pairs]
        .into_iter()
        .flat_map(|form| [BlockGrid::triangle(100), BlockGrid::rectangle(40, 100)].map(|grid| (form, grid)))
    {
        let (isa, engine) = engines_of(SMALL, form).next().unwrap();
        for start in (0..=grid.len()).step_by(3) {
            for end in (start..=grid.len()).step_by(5) {
                let product = PlaneProduct { x: &x, y: &x, rows, grid, blocks: start..end, accumulate: end % 2 == 0 };
                check_product(&engine, 0, &product, &format!("{isa:?}, {grid:?}, blocks {start}..{end}"));
            }
        }
    }
}

/// Residues of 64 integers as a product window with one word between planes.
fn window(engine: &I16Engine, integers: &[Integer]) -> Vec<u64> {
    let mut words = Vec::new();
    for &prime in engine.moduli() {
        let least = |integer: &Integer| u64::from(integer.mod_u(prime as u32));
        let residues = integers.iter().map(|integer| Modulus::new(prime).balanced(least(integer)) as i16);
        words.push(u64::MAX);
        words.extend_from_slice(bytemuck::cast_slice::<i16, u64>(&residues.collect::<Vec<_>>()));
    }
    words
}

fn reconstruct(engine: &I16Engine, window: &[u64], extra_limbs: usize) -> Vec<Integer> {
    let mut block = IntegerBlock::new(engine.magnitude_limbs() + extra_limbs);
    block.magnitudes.fill(0xdead);
    let mut scratch = vec![u64::MAX; engine.scratch_words(1, &BlockGrid::triangle(8))];
    let residues = BlockResidues { window, plane_words: RESIDUE_WORDS + 1, offset: 1 };
    engine.reconstruct(&residues, &mut block, &mut scratch);
    (0..BLOCK_ENTRIES)
        .map(|entry| {
            let magnitude = Integer::from_digits(block.magnitude(entry), Order::Lsf);
            assert!(!block.negative[entry] || magnitude != 0, "a negative zero");
            if block.negative[entry] { -magnitude } else { magnitude }
        })
        .collect()
}

fn modulus_product(engine: &I16Engine) -> Integer {
    engine.moduli().iter().fold(Integer::from(1), |product, &prime| product * prime)
}

#[test]
fn reconstruction_inverts_the_residues() {
    let mut rng = rug::rand::RandState::new();
    for (modulus_bits, redundant) in
        [(0, false), (22, false), (23, true), (64, false), (700, true), (2068, false), (10_074, true)]
    {
        for (turn, (isa, engine)) in engines(EngineSpec { operand_bits: 10, modulus_bits, redundant }).enumerate() {
            let product = modulus_product(&engine);
            // Just inside +-M / 2 (1 - 2^-6), around 0, and random sizes between.
            let largest = Integer::from(&product / 2u32) - Integer::from(&product >> 7) - 1u32;
            let integers: Vec<Integer> = (0..BLOCK_ENTRIES as u32)
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
            // Both forms of panels have the same reconstruction: each with more limbs or without.
            let (count, form) = (engines_of(SMALL, Form::Rows).count(), engine.form);
            let is_longer = (turn % count + usize::from(form == Form::Pairs)) % 2 == 1;
            for extra_limbs in [0, 2].into_iter().filter(|&extra| effort() > 1 || (extra > 0) == is_longer) {
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
        let integers: Vec<Integer> = (0..BLOCK_ENTRIES)
            .map(|entry| {
                let digits: Vec<u64> = (0..4).map(|_| rng.random()).collect();
                Integer::from_digits(&digits, Order::Lsf) * if entry % 2 == 0 { 1 } else { -1 }
            })
            .collect();
        let words = window(&engine, &integers);
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
            for entry in (0..BLOCK_ENTRIES).step_by(5) {
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
    assert_eq!(kernel.plane_count(&spec), i16_primes().len());
    let beyond = EngineSpec { modulus_bits: largest + 1, ..spec };
    assert!(matches!(kernel.prepare(&beyond), Err(Error::Precision { .. })));
    let small = kernel.prepare(&SMALL).unwrap();
    assert_eq!(small.moduli().len(), kernel.plane_count(&SMALL));
    assert!(small.table_bytes() > 0 && small.panel_words(0) == 0);
}
