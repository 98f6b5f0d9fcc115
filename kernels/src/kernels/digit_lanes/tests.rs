//! Against big integers, and at the bounds.

use super::*;
use crate::kernels::test_integers::{integer, limbs};
use crate::math::float::limbs_for;
use rug::{Integer, rand::RandState};

#[test]
fn sums_equal_the_big_integers() {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(28));
    for bits in [2u32, 25, 26, 27, 28, 54, 110, 111, 138, 139, 262, 278, 279, 520, 775, 1040, 2060, 3500] {
        let Some(lanes) = DigitLanes::new(bits) else {
            println!("skipped: no AVX2");
            return;
        };
        let width = limbs_for(bits + 1);
        for rows in [0usize, 1, 2, 5, lanes.terms, lanes.terms + 1, 2 * lanes.terms + 1, 70] {
            // Many rows repeat some hundreds of integers.
            let mut columns = || {
                let some = (0..(LANES * rows).min(509)).map(|_| integer(bits, &mut rng)).collect::<Vec<_>>();
                some.into_iter().cycle().take(LANES * rows).collect::<Vec<_>>()
            };
            let (x, y) = (columns(), columns());
            let panel = |columns: &[Integer]| {
                let mut panel = vec![0xdead_beef_dead_beef; lanes.panel_words(rows)];
                for (row, words) in panel.chunks_exact_mut(lanes.row_words()).enumerate() {
                    for lane in 0..LANES {
                        let value = &columns[lane * rows + row];
                        lanes.set(words, lane, *value < 0, &limbs(&Integer::from(value.abs_ref()), width));
                    }
                }
                panel
            };
            let (left, right) = (panel(&x), panel(&y));
            let mut sums = vec![77; lanes.sum_words()];
            for (i, j) in (0..LANES).flat_map(|i| (0..LANES).map(move |j| (i, j))) {
                // One call makes the sums of all lanes j.
                if j == 0 {
                    lanes.multiply(&left, i, &right, rows, &mut sums);
                }
                let terms = x[i * rows..][..rows].iter().zip(&y[j * rows..]);
                let mut want = Integer::new();
                terms.for_each(|(x, y)| want += x * y);
                let mut got = vec![0xdead; 2 * width + 1];
                lanes.sum(&sums, j, &mut got);
                let modulus = Integer::from(1) << (64 * got.len() as u32);
                assert_eq!(got, limbs(&want.modulo(&modulus), 2 * width + 1), "{bits} bits, {rows} rows");
            }
        }
    }
}

/// Every digit at its least, in as many products as the sums take, and in more with carries between them; each way to
/// cut an integer.
#[test]
fn sums_hold_as_many_products_as_the_bound_says() {
    if !DigitLaneProducts::are_there() {
        println!("skipped: no AVX2");
        return;
    }
    let ways = (0..=MOST_LEVELS).flat_map(|levels| (LEAST_BITS..=DIGIT_LANE_BITS).map(move |digit| (levels, digit)));
    for (bits, (levels, digit)) in
        [110u32, 262, 775, 2060].into_iter().flat_map(|bits| ways.clone().map(move |way| (bits, way)))
    {
        let Some(lanes) = DigitLanes::with(bits, levels, digit) else { continue };
        let half = Integer::from(1) << (digit - 1);
        let least = (0..lanes.digits() as u32).map(|at| Integer::from(&half << (digit * at))).sum::<Integer>();
        let (width, label) = (limbs_for(digit * lanes.digits() as u32), format!("{bits} bits, {lanes:?}"));
        for rows in [1, lanes.terms, 2 * lanes.terms + 1] {
            let mut panel = vec![0; lanes.panel_words(rows)];
            for words in panel.chunks_exact_mut(lanes.row_words()) {
                (0..LANES).for_each(|lane| lanes.set(words, lane, true, &limbs(&least, width)));
            }
            let mut sums = vec![0; lanes.sum_words()];
            lanes.multiply(&panel, 1, &panel, rows, &mut sums);
            let mut got = vec![0; 2 * width + 1];
            lanes.sum(&sums, 2, &mut got);
            assert_eq!(got, limbs(&(Integer::from(least.square_ref()) * rows as u32), 2 * width + 1), "{label}");
        }
        // One product more, with the rest of a carry and another carry, leaves 64 bits.
        let sums = |terms: usize| ((lanes.block * terms) as i128) << (2 * digit - 2 + 2 * levels);
        let beside = (1i128 << (digit - 1)) + (1 << (64 - digit));
        assert!(sums(lanes.terms) + beside <= 1 << 63 && sums(lanes.terms + 1) + beside > 1 << 63, "{label}");
    }
}

/// More rows than any plan counts on: the highest sum outgrows its digit.
#[test]
fn sums_of_many_rows_keep_their_highest_bits() {
    let Some(lanes) = DigitLanes::new(52) else {
        println!("skipped: no AVX2");
        return;
    };
    let (rows, value) = (100_000usize, Integer::from(1) << 52);
    let mut panel = vec![0; lanes.panel_words(rows)];
    for (row, words) in panel.chunks_exact_mut(lanes.row_words()).enumerate() {
        (0..LANES).for_each(|lane| lanes.set(words, lane, lane == 1 || row == 7, &limbs(&value, 1)));
    }
    let mut sums = vec![0; lanes.sum_words()];
    lanes.multiply(&panel, 0, &panel, rows, &mut sums);
    for (lane, count) in [(0, rows as i64), (1, 2 - rows as i64)] {
        let mut got = vec![0; 3];
        lanes.sum(&sums, lane, &mut got);
        let square: Integer = Integer::from(count) << 104;
        let want = square.modulo(&(Integer::from(1) << 192));
        assert_eq!(got, limbs(&want, 3), "lane {lane}");
    }
}

/// A plan is made for the most bits that a step may need.
#[test]
fn shorter_integers_take_no_more_memory() {
    let mut words = 0;
    for (narrow, best) in NARROW.iter().zip(&BEST) {
        assert_eq!(narrow.is_some(), best.is_some());
        if let (Some(narrow), Some(best)) = (narrow, best) {
            assert!(narrow.row_words() >= words, "{narrow:?} after {words} words");
            words = narrow.row_words();
            let slower = narrow.nanoseconds(USUAL_ROWS) / best.nanoseconds(USUAL_ROWS);
            assert!((1.0..1.5).contains(&slower), "{narrow:?} beside {best:?}: {slower}");
        }
    }
    assert!(words > 0 && BEST.iter().flatten().any(|best| best.levels == MOST_LEVELS));
}
