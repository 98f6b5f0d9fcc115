//! Sums of products against integers, and quotients by the exact path against those by the fast one.

use super::*;
use crate::kernels::test_integers::assert_forms_agree;
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
        let EntryDigits { count, group, .. } = EntryDigits::new(bits);
        let least = (2 * bits as usize + 4).div_ceil(104);
        assert!(104 * count > cholesky_modulus_bits(bits) as usize && 52 * count >= bits as usize + 2, "{bits} bits");
        assert!((1..=sums::GROUP).contains(&group) && count.is_multiple_of(group), "{bits} bits");
        assert!(count <= least + least.div_ceil(7), "{bits} bits: {count} digits for {least}");
        // Raised remainders and entries have the room that those of more bits would need.
        let filled = EntryDigits::filled(bits);
        let room = cholesky_modulus_bits(bits + filled.below) as usize;
        assert!(
            filled.below < 52 && 104 * count > room && (filled.count, filled.group) == (count, group),
            "{bits} bits"
        );
        // Few enough products are left out of a sum for what is left out to be small.
        let most_first = (bits as usize + 1 + 2 * filled.below as usize).saturating_sub(64) / 52;
        assert!(filled.below == 0 || most_first < count, "{bits} bits: digits from {most_first} on of {count}");
    }
}

/// Writes numbers as a finished cell.
fn cell(digits: EntryDigits, numbers: &[Integer; BLOCK], words: &mut [u64]) {
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
fn parts_hold_their_lanes() {
    assert_eq!(
        [0..8, 0..4, 0..1, 3..5, 4..8, 7..8, 3..8, 4..5].map(Part::of),
        [Part::All, Part::Low, Part::Low, Part::All, Part::High, Part::High, Part::All, Part::High]
    );
}

#[test]
fn sums_of_products_equal_those_of_integers() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    for bits in [3u32, 50, 102, 150, 258, 266, 310, 365, 514, 538, 780, 1026] {
        let digits = EntryDigits::new(bits);
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
            let terms = CellTerms { x: x.as_ptr(), y: y.as_ptr().wrapping_add(lane_of_y), count, from: 0 };
            // Products that are left out are found again, and nothing is left out above the digit that is requested.
            for from in (0..2 * digits.count).filter(|_| count <= digits.terms) {
                let (mut whole, mut cut) = (vec![1u64; words], vec![1u64; words]);
                let terms = CellTerms { from, ..terms };
                // SAFETY: the CPU has the instructions, and all cells have their words.
                unsafe {
                    sums::subtract(digits, CellTerms { from: 0, ..terms }, Part::All, whole.as_mut_ptr());
                    sums::subtract(digits, terms, Part::All, cut.as_mut_ptr());
                    assert_eq!(cut[from * BLOCK..], whole[from * BLOCK..], "{bits} bits, {count} terms, from {from}");
                    sums::subtract_left_out(digits, terms, cut.as_mut_ptr());
                }
                assert_eq!(cut, whole, "{bits} bits, {count} terms, from {from}");
            }
            // SAFETY: the CPU has the instructions, and all cells have their words.
            unsafe {
                sums::subtract(digits, terms, Part::All, left.as_mut_ptr());
                normalize(digits, left.as_ptr(), left.as_mut_ptr());
            }
            // Halves agree with the whole, and leave the numbers of the other lanes unchanged.
            for (part, wanted) in [(Part::Low, 0..BLOCK / 2), (Part::High, BLOCK / 2..BLOCK)] {
                let mut half = vec![1u64; words];
                // SAFETY: as above.
                unsafe {
                    sums::subtract(digits, terms, part, half.as_mut_ptr());
                    normalize(digits, half.as_ptr(), half.as_mut_ptr());
                }
                for (at, (&half, &whole)) in half.iter().zip(&left).enumerate() {
                    let want = if wanted.contains(&(at % BLOCK)) { whole } else { 1 };
                    assert_eq!(half, want, "{part:?}: {bits} bits, {count} terms, word {at}");
                }
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

/// The factor of `2^(2 bits)` times the lower triangle of `a`, in one tile.
fn factored(tiles: &DigitTiles, a: &Matrix, bits: u32) -> (TileShape, Vec<u64>) {
    let (matrix, part, n) = (a.view(), TilePart::Lower, a.rows());
    let (rows, cols) = (vec![2 * i64::from(bits); n], vec![0; n]);
    let source = TileSource { matrix, part, rows: 0..n, cols: 0..n, row_shifts: &rows, col_shifts: &cols };
    let mut scratch = vec![0xdead; tiles.scratch_words(n)];
    let mut words = vec![u64::MAX; tiles.tile_words(source.shape())];
    tiles.load(&source, &mut words, &mut scratch);
    let mut open = vec![RowWeight { sum: 0, limit: u64::MAX >> 1 }; n];
    tiles.factor(source.shape(), &mut words, &mut open, &mut scratch).unwrap();
    (source.shape(), words)
}

#[test]
fn the_exact_road_and_the_fast_one_agree() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    // With zeros below the entries: none, some, as many as a digit has less one.
    let short = [(5u32, 19), (52, 19), (104, 19), (130, 19), (207, 29), (230, 29), (258, 37), (259, 37), (260, 19)];
    let long = [(282, 37), (284, 19), (290, 30), (310, 37), (514, 30), (538, 30), (770, 27), (1026, 29)];
    for (bits, n) in short.into_iter().chain(long) {
        let mut a = Matrix::zeros(n, n, bits).unwrap();
        for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let value = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64;
            a.set_float(row, col, &if row == col { value / 8u32 + 0.6f64 } else { value / 40u32 }).unwrap();
        }
        let mut tiles = DigitTiles::new(bits);
        let mut factors = [crate::math::bound::QUOTIENT_WINDOW, 1 << 52].map(|window| {
            tiles.window = window; // every quotient is unclear to the second
            let (shape, words) = factored(&tiles, &a, bits);
            let mut magnitudes = vec![0; BLOCK * tiles.entry_limbs()];
            let mut all = Vec::new();
            for (panel, col) in cells(shape) {
                all.push(u64::from(tiles.entries(shape, &words, PanelColumn { panel, col }, &mut magnitudes)));
                all.extend_from_slice(&magnitudes);
                assert_forms_agree(&tiles, shape, &words, PanelColumn { panel, col });
            }
            all
        });
        let exact = factors[1].split_off(0);
        assert!(exact.iter().any(|&word| word != 0) && factors[0] == exact, "{bits} bits");
    }
}

/// Every quotient lies at half an integer: products left out of the dividend would move it to one side.
#[test]
fn halves_are_rounded_as_all_products_say() {
    use crate::math::pivot::round_quotient;
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    for (bits, n) in [(230u32, 19usize), (258, 37), (260, 19), (282, 37), (310, 19), (514, 30), (770, 27), (1026, 29)] {
        let mut below = |bits: u32| Integer::from(Integer::random_bits(bits, &mut rng));
        let mut factor = vec![vec![Integer::new(); n]; n];
        let mut a = Matrix::zeros(n, n, 2 * bits + 2).unwrap();
        for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let products = (0..col).map(|k| Integer::from(&factor[row][k] * &factor[col][k])).sum::<Integer>();
            let left = if row == col {
                factor[row][row] = (Integer::from(3) << (bits - 2)) + (below(bits - 3) << 1u32);
                Integer::from(factor[row][row].square_ref())
            } else {
                let pivot = &factor[col][col];
                let half = below(bits - 6) * pivot + Integer::from(pivot >> 1u32);
                let left = if (row + col) % 3 == 0 { -half } else { half };
                factor[row][col] = round_quotient(&left, pivot);
                left
            };
            let entry = Float::with_val(2 * bits + 2, left + products) >> (2 * bits);
            a.set_float(row, col, &entry).unwrap();
        }
        let tiles = DigitTiles::new(bits);
        let (shape, words) = factored(&tiles, &a, bits);
        let mut magnitudes = vec![0; BLOCK * tiles.entry_limbs()];
        for (panel, col) in cells(shape) {
            let signs = tiles.entries(shape, &words, PanelColumn { panel, col }, &mut magnitudes);
            for (lane, magnitude) in magnitudes.chunks_exact(tiles.entry_limbs()).enumerate() {
                let row = panel * BLOCK + lane;
                if row < n && row >= col {
                    let entry = Integer::from_digits(magnitude, Order::Lsf);
                    let entry = if signs >> lane & 1 == 1 { -entry } else { entry };
                    assert_eq!(entry, factor[row][col], "{bits} bits, entry ({row}, {col})");
                }
            }
        }
    }
}

/// The rules of blocks against a tile of the same integers, with sums that are subtracted in the middle: the largest of
/// either sign that a factorisation has, whose digits reach as far as those of a cell.
#[test]
fn blocks_are_finished_as_tiles_are() {
    use super::blocks::LaneRules;
    use crate::kernels::IntegerBlock;
    use crate::kernels::plane_tiles::rules::BlockRules;
    for bits in [4u32, 49, 50, 127, 207, 258, 290, 514, 546, 770, 1026, 5510] {
        let Some(rules) = LaneRules::new(bits) else { return println!("skipped: no AVX-512 IFMA") };
        let one = Integer::from(1);
        let mut scratch = vec![0xdead; rules.scratch_words()];
        let mut block = vec![0; rules.block_words()];
        // The loaded number is the wanted one plus the sum, which `take_off` subtracts again.
        let limbs = limbs_for(2 * bits + 3);
        let mut sums = IntegerBlock::new(limbs);
        let wanted = |row: usize, col: usize| match row.cmp(&col) {
            std::cmp::Ordering::Equal => Integer::from(&one << (2 * bits)) - 3u32,
            _ => (Integer::from(&one << (2 * bits - 3)) - (row + 8 * col) as u32) * if row % 3 == 1 { -1 } else { 1 },
        };
        let (cell_words, raised) = (rules.block_words() / BLOCK, 2 * EntryDigits::filled(bits).below);
        for (row, col) in (0..BLOCK).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let number = BLOCK * col + row;
            let sum = Integer::from(&one << (2 * bits)) + number as u32;
            sums.negative[number] = number % 2 == 1;
            sums.magnitudes[number * limbs..][..sum.as_limbs().len()].copy_from_slice(sum.as_limbs());
            let whole = wanted(row, col) + if number % 2 == 1 { -sum } else { sum };
            let size = Integer::from(whole.abs_ref()) << raised;
            for at in 0..cell_words / BLOCK {
                let digit = super::super::factor::divide::digit(&size, at);
                let signed = if whole < 0 { digit.wrapping_neg() } else { digit };
                block[col * cell_words + at * BLOCK + row] = signed;
            }
        }
        rules.take_off(&mut block, &sums, BLOCK, &mut scratch);
        let mut weights = vec![RowWeight::new(&(Integer::from(&one << (2 * bits + 2))), bits); BLOCK];
        let mut pivots = Vec::new();
        rules.factor(&mut block, &mut weights, &mut pivots, &mut scratch).unwrap();
        let column = |col: usize| {
            let mut magnitudes = vec![0; BLOCK * rules.entry_limbs()];
            let signs = rules.get(&block, col, &mut magnitudes);
            let entry = |(row, magnitude): (usize, &[u64])| {
                let magnitude = Integer::from_digits(magnitude, Order::Lsf);
                if signs >> row & 1 == 1 { -magnitude } else { magnitude }
            };
            magnitudes.chunks_exact(rules.entry_limbs()).enumerate().map(entry).collect::<Vec<_>>()
        };
        let columns = (0..BLOCK).map(column).collect::<Vec<_>>();
        let factor = |row: usize, col: usize| &columns[col][row];
        for (row, col) in (0..BLOCK).flat_map(|row| (0..BLOCK).map(move |col| (row, col))) {
            let products = (0..col).map(|k| Integer::from(factor(row, k) * factor(col, k))).sum::<Integer>();
            let want = match row.cmp(&col) {
                std::cmp::Ordering::Less => Integer::new(),
                std::cmp::Ordering::Equal => crate::math::pivot::round_root(&(wanted(row, col) - products)),
                std::cmp::Ordering::Greater => {
                    crate::math::pivot::round_quotient(&(wanted(row, col) - products), factor(col, col))
                }
            };
            assert_eq!(*factor(row, col), want, "{bits} bits, entry ({row}, {col})");
        }
    }
}

/// The products of a block come on top of two numbers: they fit for up to 146 digits, not for one more, and no kernel
/// has so many.
#[test]
fn digits_of_a_block_leave_room_for_its_products() {
    let fits = |digits: u64| 2 * digits * (BLOCK as u64 - 1) + 2 < 1 << 11;
    assert!(fits(146) && !fits(147));
    let most = (crate::math::family::ifma52_maximum_modulus_bits() - 3) / 2;
    assert!(EntryDigits::new(most).count <= 146, "{most} working bits");
}
