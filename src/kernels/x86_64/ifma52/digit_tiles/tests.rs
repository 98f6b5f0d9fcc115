//! Sums of products against integers, and quotients on the exact road against those on the fast one.

use super::*;
use crate::kernels::tiles::TilePart;
use crate::kernels::x86_64::ifma52::probe;
use crate::matrix::Matrix;
use rug::{Complete, Float, rand::RandState};

fn random() -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(31));
    rng
}

#[test]
fn digits_hold_what_they_must_in_groups_that_waste_little() {
    for bits in 1..5200 {
        let Digits { count, group } = Digits::new(bits);
        let least = (2 * bits as usize + 4).div_ceil(104);
        assert!(104 * count > cholesky_modulus_bits(bits) as usize && 52 * count >= bits as usize + 2, "{bits} bits");
        assert!((1..=sums::GROUP).contains(&group) && count.is_multiple_of(group), "{bits} bits");
        assert!(count <= least + least.div_ceil(7), "{bits} bits: {count} digits for {least}");
    }
}

/// Writes numbers as a finished cell.
fn cell(digits: Digits, numbers: &[Integer; BLOCK], words: &mut [u64]) {
    for (lane, number) in numbers.iter().enumerate() {
        let whole = number + (Integer::from(u8::from(*number < 0)) << (52 * digits.count as u32));
        for at in 0..digits.count {
            let digit = (&whole >> (52 * at as u32)).complete().keep_bits(52);
            words[at * BLOCK + lane] = digit.to_u64().unwrap();
        }
        words[digits.count * BLOCK + lane] = u64::from(*number < 0);
    }
}

#[test]
fn sums_of_products_equal_those_of_integers() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    for bits in [3u32, 50, 102, 150, 258, 266, 310, 365, 514, 780, 1026] {
        let digits = Digits::new(bits);
        let modulus = Integer::from(1) << (104 * digits.count as u32);
        for count in [0usize, 1, 2, 30, 129, 400] {
            let most = (Integer::from(1) << (52 * digits.count as u32 - 1)) - 1u32;
            let mut number = |at: usize| match at % 5 {
                0 => most.clone(),
                1 => -most.clone(),
                2 => Integer::new(),
                _ => Integer::from(Integer::random_bits(bits, &mut rng)) - (Integer::from(1) << (bits - 1)),
            };
            let rows = (0..count).map(|k| std::array::from_fn(|lane| number(k * lane + k + lane))).collect::<Vec<_>>();
            let others = (0..count).map(|k| std::array::from_fn(|lane| number(3 * k + lane))).collect::<Vec<_>>();
            let words = digits.cell_words();
            let (mut x, mut y) = (vec![u64::MAX; count * words], vec![u64::MAX; count * words]);
            x.chunks_mut(words).zip(&rows).for_each(|(words, numbers)| cell(digits, numbers, words));
            y.chunks_mut(words).zip(&others).for_each(|(words, numbers)| cell(digits, numbers, words));
            let mut left = vec![1u64; words];
            let lane_of_y = count % BLOCK;
            let terms = Terms { x: x.as_ptr(), y: y.as_ptr().wrapping_add(lane_of_y), count };
            // SAFETY: the CPU has the instructions, and all cells have their words.
            unsafe {
                sums::subtract(digits, terms, left.as_mut_ptr());
                normalize(digits, left.as_ptr(), left.as_mut_ptr());
            }
            for lane in 0..BLOCK {
                let places = (0..2 * digits.count).rev();
                let got = places.clone().fold(Integer::new(), |sum, at| (sum << 52u32) + left[at * BLOCK + lane]);
                let ones = places.fold(Integer::new(), |sum, _| (sum << 52u32) + 1u32);
                let sum =
                    rows.iter().zip(&others).fold(ones, |sum, (x, y)| sum - (&x[lane] * &y[lane_of_y]).complete());
                assert_eq!(got, sum.modulo(&modulus), "{bits} bits, {count} terms, lane {lane}");
            }
        }
    }
}

#[test]
fn the_exact_road_and_the_fast_one_agree() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    for bits in [5u32, 52, 104, 130, 260, 514] {
        let n = 19;
        let mut a = Matrix::zeros(n, n, bits).unwrap();
        for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let value = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64;
            a.set_float(row, col, &if row == col { value / 8u32 + 0.6f64 } else { value / 40u32 }).unwrap();
        }
        let mut tiles = DigitTiles::new(bits);
        let mut factors = [crate::math::bound::QUOTIENT_WINDOW, 1 << 52].map(|window| {
            tiles.window = window; // every quotient is unclear to the second
            let (rows, cols) = (vec![2 * i64::from(bits); n], vec![0; n]);
            let source = TileSource {
                matrix: a.view(),
                part: TilePart::Lower,
                rows: 0..n,
                cols: 0..n,
                row_shifts: &rows,
                col_shifts: &cols,
            };
            let mut scratch = vec![0xdead; tiles.scratch_words(n)];
            let mut words = vec![u64::MAX; tiles.tile_words(source.shape())];
            tiles.load(&source, &mut words, &mut scratch);
            let mut open = vec![RowWeight { sum: 0, limit: u64::MAX >> 1 }; n];
            tiles.factor(source.shape(), &mut words, &mut open, &mut scratch).unwrap();
            let mut magnitudes = vec![0; BLOCK * tiles.entry_limbs()];
            let mut all = Vec::new();
            for (panel, col) in cells(source.shape()) {
                all.push(u64::from(tiles.entries(source.shape(), &words, (panel, col), &mut magnitudes)));
                all.extend_from_slice(&magnitudes);
            }
            all
        });
        let exact = factors[1].split_off(0);
        assert!(exact.iter().any(|&word| word != 0) && factors[0] == exact, "{bits} bits");
    }
}
