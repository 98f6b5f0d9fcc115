//! The IFMA engine against the reference engine: same residues, same planes, same integers, word for word.

use super::*;
use crate::kernels::fenced::Fenced;
use crate::kernels::reference;
use crate::matrix::Matrix;
use crate::plan::BLOCK_WORDS;
use crate::testing::effort;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rug::{Float, Integer, rand::RandState};

/// Both engines for one spec, or `None` (with a printed word) where the CPU lacks the instructions.
fn engines(spec: &EngineSpec) -> Option<[Arc<dyn PlaneEngine>; 2]> {
    let fast = match probe() {
        Ok(kernel) => kernel,
        Err(reason) => {
            println!("skipped: {reason}");
            return None;
        }
    };
    let slow = reference::probe().expect("always there");
    Some([fast.prepare(spec).unwrap(), slow.prepare(spec).unwrap()])
}

fn spec(operand_bits: u32) -> EngineSpec {
    EngineSpec { operand_bits, modulus_bits: 2 * operand_bits + 2, redundant: false }
}

/// Entries below `2^0` with exponents spread over `spread` bits, some zeros, exact halves and all-ones.
fn random_matrix(rows: usize, cols: usize, bits: u32, spread: u32, rng: &mut RandState<'_>) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, bits).unwrap();
    for col in 0..cols {
        for row in 0..rows {
            let value = match rng.below(12) {
                0 => continue,
                1 => Integer::from(1),
                2 => (Integer::from(1) << bits) - 1u32,
                3 => Integer::from(3),
                _ => Integer::from(Integer::random_bits(bits, rng)),
            };
            let length = i64::from(value.significant_bits());
            let sign = if rng.below(2) == 0 { 1 } else { -1 };
            matrix.set_integer_exponent(row, col, &(value * sign), -length - i64::from(rng.below(spread + 1))).unwrap();
        }
    }
    matrix
}

#[test]
fn residues_equal_the_reference() {
    let mut rng = RandState::new();
    for (case, &(bits, operand_bits, spread)) in
        [(53u32, 60u32, 5u32), (64, 52, 70), (128, 103, 140), (512, 520, 3), (1000, 1033, 1200), (200, 2070, 9)]
            .iter()
            .enumerate()
    {
        rng.seed(&Integer::from(case));
        let Some([fast, slow]) = engines(&spec(operand_bits)) else { return };
        for (rows, cols) in [(0usize, 1usize), (1, 8), (3, 5), (4, 9), (21, 17)] {
            let matrix = random_matrix(rows, cols, bits, spread, &mut rng);
            let shifts = (0..cols).map(|col| i64::from(operand_bits) - (col as i64 % 3)).collect::<Vec<_>>();
            for view_rows in [0..rows, rows / 2..rows] {
                for start in (0..cols).step_by(8) {
                    let columns = start..cols.min(start + 8);
                    let rows = view_rows.clone();
                    let source = PanelSource { view: matrix.view(), columns, rows, shifts: &shifts };
                    compare_residues(&*fast, &*slow, &source);
                }
            }
        }
    }
}

/// Residues that bypass the caches, and those of a window that is just not large enough for that.
#[test]
fn residues_of_large_windows_equal_the_reference() {
    let mut rng = RandState::new();
    let Some([fast, slow]) = engines(&spec(1033)) else { return };
    let (rows, count) = (9, fast.moduli().len());
    let most = to_residues::STREAM_BYTES / (8 * count * rows);
    let matrix = random_matrix(rows, most + 1, 20, 9, &mut rng);
    let shifts = vec![1030; most + 1];
    for cols in [most, most + 1] {
        let view = matrix.view().block(0..rows, 0..cols).unwrap();
        let source = PanelSource { view, columns: 3..11, rows: 0..rows, shifts: &shifts };
        compare_residues(&*fast, &*slow, &source);
    }
}

fn compare_residues(fast: &dyn PlaneEngine, slow: &dyn PlaneEngine, source: &PanelSource<'_>) {
    let count = fast.moduli().len();
    assert_eq!(fast.moduli(), slow.moduli());
    for primes in [0..count, 1..count, count / 2..count / 2 + 1] {
        let words = fast.panel_words(source.rows.len());
        // Whole cache lines, so that memory that ends with a page begins with a line.
        let mut results = [77, 99].map(|dirt| Fenced::new(&vec![dirt; words * primes.len()]));
        for (engine, result) in [fast, slow].iter().zip(&mut results) {
            let mut planes = result.chunks_exact_mut(words.max(1)).collect::<Vec<_>>();
            let mut empty: Vec<&mut [u64]> = (0..primes.len()).map(|_| &mut [][..]).collect();
            let planes = if words == 0 { &mut empty } else { &mut planes };
            let grid = BlockGrid::triangle(1);
            let mut scratch = vec![u64::MAX; engine.scratch_words(source.rows.len(), &grid)];
            engine.to_residues(primes.clone(), source, planes, &mut scratch);
        }
        for (plane, &prime) in results[0].chunks_exact_mut(words.max(1)).zip(&fast.moduli()[primes.clone()]) {
            plane.iter_mut().filter(|word| **word == prime).for_each(|word| *word = 0); // a zero with a minus sign
        }
        assert_eq!(results[0][..], results[1][..], "rows {:?}, columns {:?}", source.rows, source.columns);
    }
}

#[test]
fn products_equal_the_reference() {
    let Some([fast, slow]) = engines(&spec(100)) else { return };
    let mut rng = RandState::new();
    rng.seed(&Integer::from(5));
    let prime_count = fast.moduli().len();
    for (rows, m, n) in
        [(0usize, 9usize, 9usize), (1, 1, 1), (2, 8, 40), (7, 33, 16), (513, 25, 17), (1030, 9, 30), (5, 210, 9)]
    {
        for triangle in [false, true] {
            let grid = if triangle { BlockGrid::triangle(m) } else { BlockGrid::rectangle(m, n) };
            for case in 0..3 {
                let prime = case % prime_count;
                let p = fast.moduli()[prime];
                let mut residues = |panels: usize| {
                    let word = |rng: &mut RandState<'_>| if case == 2 { p - 1 } else { rng.below_u64(p) };
                    (0..panels * rows * BLOCK).map(|_| word(&mut rng)).collect::<Vec<_>>()
                };
                let x = residues(grid.rows);
                let y = if triangle { x.clone() } else { residues(grid.cols) };
                let end = grid.len() - grid.len() / 5 * (case & 1);
                let blocks = grid.len() / 7 * case..end.max(grid.len() / 7 * case);
                let accumulate = case > 0;
                let start = (0..blocks.len() * BLOCK_WORDS).map(|at| at as u64 % p).collect::<Vec<_>>();
                let y = if triangle { &x } else { &y };
                let product = PlaneProduct { x: &x, y, rows, grid, blocks, accumulate };
                let mut results = [start.clone(), start];
                for (engine, result) in [&fast, &slow].iter().zip(&mut results) {
                    let mut scratch = vec![3; engine.scratch_words(rows, &grid)];
                    engine.multiply(prime, &product, result, &mut scratch);
                }
                assert!(results[0] == results[1], "rows {rows}, m {m}, n {n}, triangle {triangle}, case {case}");
            }
        }
    }
}

#[test]
fn the_sub_cubic_schemes_equal_the_classical_product() {
    let Some([fast, _]) = engines(&spec(60)) else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let triangles =
        [(256usize, 192usize), (257, 193), (300, 208), (1027, 214)].map(|(k, n)| (k, BlockGrid::triangle(n)));
    let rectangles = [(192usize, 192usize, 192usize), (193, 193, 192), (280, 194, 201), (515, 192, 209)]
        .map(|(k, m, n)| (k, BlockGrid::rectangle(m, n)));
    let two_levels = [(771usize, BlockGrid::triangle(401)), (390, BlockGrid::rectangle(397, 411))];
    let four_levels = [(1035, BlockGrid::triangle(2571)), (1030, BlockGrid::rectangle(2564, 2580))];
    // A model would take minutes for them, and test no more than with two.
    let four_levels = four_levels.into_iter().filter(|_| !cpu::IS_MODEL);
    for (at, (rows, grid)) in triangles.into_iter().chain(rectangles).chain(two_levels).chain(four_levels).enumerate() {
        assert!(levels::scratch_words(rows, grid) > 0);
        // A product replaces or adds, the schemes below it being the same: one after the other, or both.
        for accumulate in [false, true].into_iter().filter(|&add| effort() > 1 || add == (at % 2 == 1)) {
            let prime = usize::from(accumulate);
            let p = fast.moduli()[prime];
            let mut residues = |words: usize| (0..words).map(|_| rng.random_range(0..p)).collect::<Vec<_>>();
            let x = residues(grid.rows * rows * BLOCK);
            let y = if grid.triangle { x.clone() } else { residues(grid.cols * rows * BLOCK) };
            let y = if grid.triangle { &x } else { &y };
            let start = residues(grid.words());
            let (mut whole, mut pieces) = (start.clone(), start);
            let mut scratch = vec![u64::MAX; fast.scratch_words(rows, &grid)];
            let mut multiply = |blocks: Range<usize>, c: &mut [u64]| {
                let product = PlaneProduct { x: &x, y, rows, grid, blocks, accumulate };
                fast.multiply(prime, &product, c, &mut scratch);
            };
            multiply(0..grid.len(), &mut whole);
            let (first, second) = pieces.split_at_mut(grid.len() / 3 * BLOCK_WORDS);
            multiply(0..grid.len() / 3, first);
            multiply(grid.len() / 3..grid.len(), second);
            assert!(whole == pieces, "rows {rows}, grid {grid:?}, accumulate {accumulate}");
        }
    }
}

#[test]
fn the_sub_cubic_schemes_begin_where_they_pay() {
    let is_used =
        |height, (rows, cols), triangle| levels::scratch_words(height, BlockGrid { rows, cols, triangle }) > 0;
    assert!(is_used(256, (24, 24), true) && !is_used(255, (24, 24), true) && !is_used(256, (23, 23), true));
    assert!(is_used(192, (24, 24), false) && !is_used(191, (24, 24), false) && !is_used(192, (24, 23), false));
}

#[test]
fn scratch_covers_all_products_of_fewer_rows() {
    for panels in [24, 27, 47, 48, 59, 119, 120, 200] {
        for triangle in [false, true] {
            let grid = BlockGrid { rows: panels, cols: panels + usize::from(!triangle), triangle };
            let mut most = 0;
            for rows in (0..9000).step_by(2).chain(9000..9100) {
                most = most.max(levels::scratch_words(rows, grid));
                assert_eq!(levels::most_scratch_words(rows, grid), most, "{rows} rows, {grid:?}");
            }
        }
    }
}

trait BelowU64 {
    fn below_u64(&mut self, bound: u64) -> u64;
}

impl BelowU64 for RandState<'_> {
    fn below_u64(&mut self, bound: u64) -> u64 {
        Integer::from(bound).random_below(self).to_u64().expect("below a word")
    }
}

#[test]
fn integers_equal_the_reference() {
    let mut rng = RandState::new();
    for operand_bits in [10u32, 60, 130, 520, 1033, 2070, 5040] {
        let spec = spec(operand_bits);
        let Some([fast, slow]) = engines(&spec) else { return };
        let (plane_words, offset) = (3 * BLOCK_WORDS, BLOCK_WORDS);
        let mut window = vec![0u64; plane_words * fast.moduli().len()];
        let limit = Integer::from(1) << (spec.modulus_bits - 1);
        let values = (0..BLOCK_WORDS).map(|entry| match entry {
            0 => Integer::new(),
            1 => limit.clone() - 1u32,
            2 => 1u32 - limit.clone(),
            3 => Integer::from(-1),
            _ => (limit.clone() * 2u32).random_below(&mut rng) - &limit,
        });
        let values = values.collect::<Vec<_>>();
        for (entry, value) in values.iter().enumerate() {
            for (index, &prime) in fast.moduli().iter().enumerate() {
                let residue = Integer::from(value.modulo_ref(&Integer::from(prime)));
                window[index * plane_words + offset + entry] = residue.to_u64().unwrap();
            }
        }
        let residues = BlockResidues { window: &window, plane_words, offset };
        for engine in [&fast, &slow] {
            let mut block = IntegerBlock::new(engine.magnitude_limbs());
            block.magnitudes.fill(u64::MAX);
            let mut scratch = vec![u64::MAX; engine.scratch_words(0, &BlockGrid::triangle(1))];
            engine.reconstruct(&residues, &mut block, &mut scratch);
            for (entry, value) in values.iter().enumerate() {
                let magnitude = Integer::from_digits(block.magnitude(entry), rug::integer::Order::Lsf);
                let got = if block.negative[entry] { -magnitude } else { magnitude };
                assert_eq!(got, *value, "entry {entry} at {operand_bits} bits");
            }
        }
    }
}

#[test]
fn a_float_matrix_makes_the_round_trip() {
    // A column times the unit column gives the scaled integers back.
    let Some([fast, _]) = engines(&spec(300)) else { return };
    let value = Float::with_val(200, Float::parse("-0.7071067811865475244008443621048490392848").unwrap());
    let matrix = Matrix::from_floats(1, 1, 200, &[value]).unwrap();
    let source = PanelSource { view: matrix.view(), columns: 0..1, rows: 0..1, shifts: &[299] };
    let mut window = vec![0u64; fast.moduli().len() * BLOCK_WORDS];
    let mut planes = window.chunks_exact_mut(BLOCK_WORDS).map(|plane| &mut plane[..BLOCK]).collect::<Vec<_>>();
    let mut scratch = vec![0; fast.scratch_words(1, &BlockGrid::triangle(1))];
    fast.to_residues(0..planes.len(), &source, &mut planes, &mut scratch);
    let mut block = IntegerBlock::new(fast.magnitude_limbs());
    fast.reconstruct(&BlockResidues { window: &window, plane_words: BLOCK_WORDS, offset: 0 }, &mut block, &mut scratch);
    let want = crate::math::scale::scaled_integer(matrix.get(0, 0), 299);
    assert_eq!(Integer::from_digits(block.magnitude(0), rug::integer::Order::Lsf), want.abs());
    assert!(block.negative[0]);
}
