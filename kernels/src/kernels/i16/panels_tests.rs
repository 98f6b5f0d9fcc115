//! Products over rows of several operands against plain sums, on every instruction set of this CPU.

use super::tests::{SMALL, engines, halves, in_form, panels};
use super::*;
use crate::math::family_i16::i16_primes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rows `first..first + depth` of some pairs of operands of `of` rows, row after row.
struct RowsCase {
    of: usize,
    first: usize,
    depth: usize,
    x: Vec<Vec<u64>>,
    y: Vec<Vec<u64>>,
    grid: BlockGrid,
}

impl RowsCase {
    /// Checks the last blocks of the product modulo one prime, into dirty memory (or added to it), against sums of
    /// 64-bit integers.
    fn check(&self, (engine, prime): (&I16Engine, usize), accumulate: bool, label: &str) {
        let RowsCase { of, first, depth, x, y, grid } = self;
        let modulus = engine.moduli()[prime] as i64;
        let own = |operands: &[Vec<u64>]| -> Vec<Vec<u64>> {
            operands.iter().map(|words| in_form(engine, *of, words)).collect()
        };
        let (left, right) = (own(x), own(y));
        let rows = |words| PanelRows { words, of: *of, first: *first };
        let blocks = grid.len() / 3..grid.len();
        let mut c = vec![0u64; blocks.len() * RESIDUE_WORDS];
        bytemuck::cast_slice_mut(&mut c).fill(if accumulate { (modulus / 2) as i16 } else { i16::MIN });
        let x_rows: Vec<_> = left.iter().map(|words| rows(words)).collect();
        let y_rows: Vec<_> = right.iter().map(|words| rows(words)).collect();
        let (depth, grid) = (*depth, *grid);
        let next = NextRows { x: &y_rows, y: &x_rows };
        let product = RowsProduct {
            x: &x_rows,
            y: &y_rows,
            depth,
            next,
            grid,
            blocks: blocks.clone(),
            accumulate,
            window: 0..grid.rows,
        };
        let mut scratch = vec![u64::MAX; engine.rows_scratch_words(*of, &grid)];
        engine.multiply_rows(prime, &product, &mut c, &mut scratch);
        let entry = |words: &[u64], column: usize, k: usize| {
            i64::from(halves(words)[(column / BLOCK * of + first + k) * BLOCK + column % BLOCK])
        };
        let mut found = halves(&c).chunks_exact(BLOCK_ENTRIES);
        for (col, row) in (0..grid.cols).flat_map(|col| grid.rows_in(col, &blocks).map(move |row| (col, row))) {
            for (at, &got) in found.next().unwrap().iter().enumerate().step_by(3) {
                let (i, j) = (row * BLOCK + at % BLOCK, col * BLOCK + at / BLOCK);
                let of_pair = |x: &[u64], y: &[u64]| (0..depth).map(|k| entry(x, i, k) * entry(y, j, k)).sum::<i64>();
                let start = if accumulate { modulus / 2 } else { 0 };
                let want = x.iter().zip(y).fold(start, |sum, (x, y)| sum + of_pair(x, y));
                let got = i64::from(got);
                assert!(got.abs() <= modulus / 2, "{label}: {got} is not balanced");
                assert_eq!((want - got) % modulus, 0, "{label}: entry ({i}, {j})");
            }
        }
    }
}

/// A few rows of many operands, whose sums are folded across them; some have the largest residues everywhere.
#[test]
fn rows_of_several_operands_are_multiplied_where_they_lie() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let half = (i16_primes()[0] / 2) as i64;
    let extents = [(128, 0, 128, 17), (128, 40, 8, 1), (128, 8, 120, 2), (24, 0, 24, 10), (48, 8, 16, 15)];
    for (of, first, depth, count) in
        extents.into_iter().chain([(7, 0, 7, 3), (9, 2, 7, 1), (1032, 0, 1032, 2), (16, 0, 0, 2)])
    {
        for (rows, cols, triangle) in [(96usize, 40usize, false), (104, 104, true), (8, 8, true), (9, 3, false)] {
            let mut operands = |columns: usize| -> Vec<Vec<u64>> {
                let mut entry = |at: usize| if at % 3 < 2 { half } else { rng.random_range(-half..=half) };
                (0..count).map(|at| panels(of, columns.next_multiple_of(BLOCK), |_, _| entry(at))).collect()
            };
            let x = operands(rows);
            let y = if triangle { x.clone() } else { operands(cols) };
            let grid = if triangle { BlockGrid::triangle(cols) } else { BlockGrid::rectangle(rows, cols) };
            let case = RowsCase { of, first, depth, x, y, grid };
            for (isa, engine) in engines(SMALL) {
                for accumulate in [false, true] {
                    let label = format!("{isa:?}, {:?}, {count} times {depth} of {of} rows", engine.form);
                    case.check((&engine, 0), accumulate, &label);
                }
            }
        }
    }
}

/// The same modulo the largest and the smallest primes of 13, 12 and 11 bits, with the largest residues everywhere:
/// each length has its own way of reducing sums.
#[test]
fn rows_are_multiplied_modulo_primes_of_every_length() {
    let primes = i16_primes();
    let ends = |bits: u32| {
        let of_length = |&(_, prime): &(usize, &u64)| prime.ilog2() + 1 == bits;
        let mut all = primes.iter().enumerate().filter(of_length).map(|(at, _)| at);
        let first = all.next().expect("primes of that length");
        [first, all.next_back().expect("more of them")]
    };
    let spec = EngineSpec { operand_bits: 40, modulus_bits: i16_maximum_modulus_bits(), redundant: true };
    for (isa, engine) in engines(spec) {
        for prime in [13, 12, 11].into_iter().flat_map(ends) {
            let half = (engine.moduli()[prime] / 2) as i64;
            for (of, first, depth, count) in [(128, 0, 128, 17), (24, 8, 16, 3)] {
                let operands = |sign: i64| -> Vec<Vec<u64>> {
                    let entry = |at: usize, k: usize| if (at + k) % 5 < 4 { half } else { sign * half };
                    (0..count).map(|at| panels(of, 16, |column, k| entry(at + column, k))).collect()
                };
                let (x, y) = (operands(1), operands(-1));
                let case = RowsCase { of, first, depth, x, y, grid: BlockGrid::rectangle(16, 16) };
                for accumulate in [false, true] {
                    let label = format!("{isa:?}, {:?}, prime {prime}, {count} times {depth}", engine.form);
                    case.check((&engine, prime), accumulate, &label);
                }
            }
        }
    }
}

#[test]
fn tiles_of_each_kind_of_core_go_by_its_own_sizes() {
    let none = Multipliers { digits: false, one_a_cycle: false, pairs: false, tiles: false, of_intel: false };
    let all = [1.0, 2.0, 3.0].map(|rows| FactorCosts { rows, row_bits: 0.0 });
    let rows = |multipliers| large_tiles(&multipliers, all).map(|costs| costs.rows);
    let two = Multipliers { digits: true, pairs: true, ..none };
    assert_eq!(rows(two), Some(2.0));
    assert_eq!(rows(Multipliers { of_intel: true, ..two }), Some(3.0));
    for of_intel in [false, true] {
        assert_eq!(rows(Multipliers { one_a_cycle: true, of_intel, ..two }), Some(1.0));
        for gains_nothing in [none, Multipliers { digits: true, ..none }, Multipliers { pairs: true, ..none }] {
            assert_eq!(rows(Multipliers { of_intel, ..gains_nothing }), None);
        }
    }
}
