//! The rounding of quotients, with the exact road forced and against integers.

use super::divide::{OwnPivot, PivotDivisor, QuotientBits, digit, divide};
use super::*;
use crate::kernels::test_integers::assert_forms_agree;
use crate::kernels::tiles::TilePart;
use crate::kernels::x86_64::ifma52::probe;
use crate::math::pivot::{diagonal_exponent, round_quotient};
use crate::matrix::Matrix;
use rug::rand::RandState;

/// Factors one diagonal tile and solves one below it; the integers of both.
fn factor_two_tiles(engine: &FactorTables, a: &Matrix, cols: usize) -> Vec<Vec<u64>> {
    let rows = a.rows();
    let bits = i64::from(engine.working_bits);
    let exponents = (0..rows).map(|i| diagonal_exponent(a.get(i, i).head.exponent())).collect::<Vec<_>>();
    let row_shifts = exponents.iter().map(|s| 2 * bits - s).collect::<Vec<_>>();
    let col_shifts = exponents.iter().map(|s| -s).collect::<Vec<_>>();
    let mut scratch = vec![0xdead_beef; engine.scratch_words(rows)];
    let mut load = |rows: Range<usize>, cols: Range<usize>| {
        let part = if rows.start == cols.start { TilePart::Lower } else { TilePart::Whole };
        let (row_shifts, col_shifts) = (&row_shifts[..], &col_shifts[..]);
        let source = TileSource { matrix: a.view(), part, rows, cols, row_shifts, col_shifts };
        let shape = source.shape();
        let mut words = vec![u64::MAX; engine.tile_words(shape)];
        engine.load(&source, &mut words, &mut scratch);
        (shape, words)
    };
    let ((above, mut diagonal), (below, mut words)) = (load(0..cols, 0..cols), load(cols..rows, 0..cols));
    let open = |count: usize| vec![RowWeight { sum: 0, limit: u64::MAX >> 1 }; count];
    let data = engine.factor(above, &mut diagonal, &mut open(cols), &mut scratch).unwrap();
    let mut weights = open(rows - cols);
    let tile = SolveTile { shape: below, words: &mut words, weights: &mut weights };
    engine.solve(tile, DiagonalTile { words: &diagonal, data: &*data }, &mut scratch);
    let mut integers = Vec::new();
    for (shape, words) in [(above, &diagonal), (below, &words)] {
        for (panel, col) in (0..shape.panels()).flat_map(|panel| (0..cols).map(move |col| (panel, col))) {
            let mut magnitudes = vec![0xdead; BLOCK * engine.entry_limbs()];
            let signs = engine.entries(shape, words, PanelColumn { panel, col }, &mut magnitudes);
            assert_forms_agree(engine, shape, words, PanelColumn { panel, col });
            let zero = |lane: &usize| {
                magnitudes.chunks(engine.entry_limbs()).nth(*lane).unwrap().iter().all(|&limb| limb == 0)
            };
            let unsigned = (0..BLOCK).filter(zero).fold(0u8, |lanes, lane| lanes | 1 << lane);
            magnitudes.push(u64::from(signs & !unsigned)); // a zero has no sign
            integers.push(magnitudes);
        }
    }
    integers
}

#[test]
fn the_exact_road_and_the_fast_one_agree() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    for bits in [5u32, 52, 104, 130, 260, 514, 1026] {
        let n = 27;
        let mut rng = RandState::new();
        rng.seed(&Integer::from(bits));
        let mut values = vec![rug::Float::new(bits); n * n];
        for col in 0..n {
            for row in col..n {
                let value = rug::Float::with_val(bits, rug::Float::random_bits(&mut rng)) - 0.5f64;
                values[row + col * n] = if row == col { value + 8u32 } else { value };
            }
        }
        let a = Matrix::from_floats(n, n, bits, &values).unwrap();
        let mut engine = FactorTables::new(bits);
        let fast = factor_two_tiles(&engine, &a, 16);
        engine.window = 1 << 52; // every quotient is unclear
        assert_eq!(factor_two_tiles(&engine, &a, 16), fast, "{bits} bits");
    }
}

/// Quotients of `numerators` by `pivot`, and whether each is clear and fits.
fn quotients(values: &[Integer; BLOCK], pivot: &PivotDivisor<'_>, digits: usize, window: u64) -> Vec<Option<Integer>> {
    let all = 2 * digits + 1;
    let mut numerators = vec![0; all * BLOCK];
    for (lane, value) in values.iter().enumerate() {
        (0..all).for_each(|at| numerators[at * BLOCK + lane] = digit(value, at));
    }
    let mut out = vec![0xdead; digits * BLOCK];
    // SAFETY: the CPU has the instructions (the caller asked), and the lengths are those of the two areas.
    let verdict = unsafe { divide::<1>(pivot, numerators.as_ptr(), all, out.as_mut_ptr(), digits, window) };
    let lane = |lane: usize| {
        let value = (0..digits).rev().fold(Integer::new(), |sum, at| (sum << 52u32) + out[at * BLOCK + lane]);
        let good = (verdict.beyond[0] | verdict.unclear[0]) >> lane & 1 == 0;
        good.then_some(value)
    };
    (0..BLOCK).map(lane).collect()
}

#[test]
fn clear_quotients_are_right_and_unclear_ones_are_said_to_be() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = RandState::new();
    rng.seed(&Integer::from(77));
    // Numbers of terms change at 80, 132, 184, 236 and 288 bits: loops without lengths take 4 to 8 of them.
    for bits in [5u32, 28, 29, 40, 60, 80, 81, 104, 132, 133, 184, 185, 236, 237, 258, 288, 289, 514, 1026] {
        let digits = (bits / 52 + 1) as usize;
        for case in 0..200u32 {
            let length = 1 + rng.below(bits + 1);
            let mut divisor = Integer::from(Integer::random_bits(length, &mut rng));
            divisor.set_bit(length - 1, true);
            let divisor = divisor.min(Integer::from(1) << bits);
            let own = OwnPivot::new(&divisor, QuotientBits { working: bits, raised: 0 });
            let pivot = own.get();
            let values: [Integer; BLOCK] = std::array::from_fn(|lane| {
                let quotient = Integer::from(Integer::random_below_ref(&(Integer::from(1) << bits), &mut rng));
                let exact = quotient * &divisor;
                match lane {
                    0 => exact,                                         // an integer
                    1 => exact + Integer::from(&divisor >> 1),          // a half, where the divisor is even
                    2 => exact + (Integer::from(&divisor >> 1) + 1u32), // just above
                    3 => exact + Integer::from(&divisor - 1u32),        // just below the next
                    4 => Integer::from(&divisor << bits),               // the largest
                    5 => Integer::from(&divisor << (bits + 2)),         // too large, or nearly
                    _ => exact + Integer::from(Integer::random_below_ref(&divisor, &mut rng)),
                }
            });
            for (lane, got) in quotients(&values, &pivot, digits, divide::WINDOW).into_iter().enumerate() {
                let want = round_quotient(&values[lane], &divisor);
                let place = format!("{bits} bits, case {case}, lane {lane}");
                match got {
                    Some(got) => assert_eq!(got, want, "{place}"),
                    None => assert!(lane < 6 || length < 20, "{place}: an ordinary quotient is unclear"),
                }
                if lane == 1 && divisor.is_even() {
                    let got = quotients(&values, &pivot, digits, divide::WINDOW);
                    assert!(got[lane].is_none(), "{place}: a tie is never clear");
                }
            }
        }
    }
}
