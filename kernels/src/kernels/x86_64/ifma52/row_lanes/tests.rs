//! Sums against big integers and at their bound, and rounding against its definition.

use super::eights::EightRounding;
use super::*;
use crate::kernels::test_integers::{eight_of, in_form, integer, limbs};
use crate::kernels::tiles::{EightEntries, EntryForm};
use crate::kernels::x86_64::ifma52::probe;
use crate::math::bound::row_lane_terms;
use crate::math::float::round_integer;
use crate::matrix::Matrix;
use rug::integer::Order;
use rug::{Integer, rand::RandState};

fn random(seed: u32) -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    rng
}

/// Columns of integers as a matrix that holds them exactly.
fn matrix(columns: &[Vec<Integer>], bits: u32) -> Matrix {
    let mut matrix = Matrix::zeros(columns[0].len(), columns.len(), bits.max(2) + 1).unwrap();
    for (col, column) in columns.iter().enumerate() {
        for (row, value) in column.iter().enumerate() {
            matrix.set_integer_exponent(row, col, value, 0).unwrap();
        }
    }
    matrix
}

/// The digits of all columns of a matrix of integers.
fn cut(lanes: &RowLanes, matrix: &Matrix) -> Vec<u64> {
    let mut out = vec![0xdead_beef; matrix.cols() * lanes.column_words(matrix.rows())];
    let mut scratch = vec![0xdead; lanes.scratch_words(64)];
    lanes.cut(matrix.view(), &vec![0; matrix.cols()], &mut out, &mut scratch);
    out
}

/// The exact sums of up to eight pairs of columns, and their magnitudes.
fn multiply(lanes: &RowLanes, columns: LaneColumns<'_>, pairs: &[(usize, usize)]) -> Vec<Integer> {
    let entries = pairs.iter().map(|&(row, col)| EntryIndex { row, col }).collect::<Vec<_>>();
    let mut scratch = vec![0xdead_beef_dead_beef; lanes.scratch_words(64)];
    let signs = lanes.multiply(columns, &entries, &mut scratch);
    let mut out = vec![0xdead; lanes.limbs()];
    let lane = |lane: usize| {
        lanes.magnitude(lane, &scratch, &mut out);
        let value = Integer::from_digits(&out, Order::Lsf);
        if signs >> lane & 1 == 1 { -value } else { value }
    };
    (0..pairs.len()).map(lane).collect()
}

#[test]
fn sums_equal_the_big_integers() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random(28);
    for bits in [2u32, 50, 51, 102, 154, 258, 262, 263, 310, 362, 366, 467, 520, 640, 775, 1040, 2060, 2494] {
        let lanes = RowLanes::new(bits).unwrap();
        let most = row_lane_terms(lanes.digits());
        // Several parts of a column are as good at one length for each number of groups.
        let is_worth = |&rows: &usize| rows > 0 && (rows <= 2 * most || [50, 262, 775].contains(&bits));
        // The norms of columns bound the wanted sums.
        for rows in [1, 2, 4, 5, 7, 8, 9, 31, most / 8 * 8, most / 8 * 8 + 1, 8 * most + 3, 16 * most + 5]
            .into_iter()
            .filter(is_worth)
        {
            let depth = usize::BITS - rows.leading_zeros();
            let length = bits.saturating_sub(depth.div_ceil(2)).max(1);
            let mut columns = |count: usize| {
                let column = |rng: &mut RandState<'_>| (0..rows).map(|_| integer(length, rng)).collect::<Vec<_>>();
                (0..count).map(|_| column(&mut rng)).collect::<Vec<_>>()
            };
            if bits == 2 && rows > 7 {
                continue;
            }
            let (x, y) = (columns(3), columns(if rows > 2 * most { 1 } else { 4 }));
            let (left, right) = (cut(&lanes, &matrix(&x, bits)), cut(&lanes, &matrix(&y, bits)));
            let others = y.len();
            let pairs = (0..3).flat_map(|i| (0..others).map(move |j| (i, j))).collect::<Vec<_>>();
            for pairs in pairs.chunks(ENTRIES) {
                let got = multiply(&lanes, LaneColumns { left: &left, right: &right, rows }, pairs);
                for (&(i, j), got) in pairs.iter().zip(got) {
                    let want = x[i].iter().zip(&y[j]).map(|(x, y)| Integer::from(x * y)).sum::<Integer>();
                    assert_eq!(got, want, "{bits} bits, {rows} rows, ({i}, {j})");
                }
            }
        }
    }
}

/// Columns whose digits are added up in several parts, with more rows than 64 bits would hold in one part.
#[test]
fn long_columns_are_offset_in_parts() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let lanes = RowLanes::new(50).unwrap();
    let part = BLOCK * offset::MOST_EIGHTS;
    let all = (Integer::from(1) << (52 * lanes.digits() as u32 - 1)) - 1u32;
    let modulus = Integer::from(1) << (104 * lanes.digits() as u32);
    for rows in [part, part + 1, part + BLOCK, 17 * part + 3] {
        for value in [all.clone(), -all.clone(), Integer::from(-3)] {
            let x = cut(&lanes, &matrix(&[vec![value.clone(); rows]], 52 * lanes.digits() as u32));
            let [got] = &multiply(&lanes, LaneColumns { left: &x, right: &x, rows }, &[(0, 0)])[..] else { panic!() };
            let want = Integer::from(value.square_ref()) * rows as u32;
            assert_eq!(Integer::from(got - &want).modulo(&modulus), 0, "{rows} rows of {value}");
        }
    }
}

/// All digits at their largest in as many rows as are summed without a carry, and in one more.
#[test]
fn sums_hold_as_many_products_as_the_bound_says() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    for bits in [50u32, 154, 262, 362, 775, 2060] {
        let lanes = RowLanes::new(bits).unwrap();
        let digits = lanes.digits();
        let most = row_lane_terms(digits);
        // Beyond what products are used for: sums are known modulo a power of two.
        let all = (Integer::from(1) << (52 * digits as u32 - 1)) - 1u32;
        let modulus = Integer::from(1) << (104 * digits as u32);
        for rows in [most, most / 8 * 8 + 8, 8 * most, 8 * most + 1] {
            for value in [all.clone(), Integer::from(-1)] {
                let x = cut(&lanes, &matrix(&[vec![value.clone(); rows]], 52 * digits as u32));
                let [got] = &multiply(&lanes, LaneColumns { left: &x, right: &x, rows }, &[(0, 0)])[..] else {
                    panic!()
                };
                let want = Integer::from(value.square_ref()) * rows as u32;
                assert_eq!(Integer::from(got - &want).modulo(&modulus), 0, "{bits} bits, {rows} rows");
            }
        }
    }
}

/// Both forms of entries, among them those that fill their words.
#[test]
fn entries_of_tiles_are_rounded_like_one() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random(52);
    for case in 0..600u32 {
        let precision = [2u32, 53, 64, 65, 256, 257, 510, 768][case as usize % 8];
        let count = 1 + rng.below(17) as usize;
        let form = [EntryForm::Limbs(count), EntryForm::Digits(count)][case as usize / 8 % 2];
        let numbers = eight_of(form, &mut rng);
        let (magnitudes, exponents) = (in_form(form, &numbers), std::array::from_fn(|lane| 10 * lane as i64 - 40));
        let eight = EightEntries { magnitudes: &magnitudes, signs: rng.below(256) as u8, exponents };
        let (rounding, width) = (EightRounding::new(form, precision).unwrap(), limbs_for(precision));
        let (mut heads, mut scratch) = ([7; BLOCK], vec![0xdead_beef_dead_beef; rounding.words()]);
        let got = rounding.round(&eight, &mut heads, &mut scratch);
        for (lane, number) in numbers.iter().enumerate() {
            let (mut want, magnitude) = (vec![0; width], limbs(number, count));
            let negative = eight.signs >> lane & 1 == 1;
            let head = round_integer(negative, &magnitude, exponents[lane], precision, &mut want);
            let label = format!("case {case}: {form:?} to {precision} bits, lane {lane}");
            assert_eq!((head.0, &want[..]), (heads[lane], &got[lane * width..][..width]), "{label}");
        }
    }
}

#[test]
fn eight_magnitudes_are_rounded_like_one() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random(5);
    for case in 0..6000u32 {
        let precision = [2u32, 53, 63, 64, 65, 128, 250, 256, 257, 510, 768, 832, 1000, 1664][case as usize % 14];
        let count = 1 + rng.below(16) as usize;
        let magnitudes: [Integer; BLOCK] = std::array::from_fn(|_| {
            let length = rng.below(52 * count as u32 + 1);
            match rng.below(5) {
                0 => (Integer::from(1) << length) - 1u32,
                1 => {
                    // A power of two and a half of its last bit, perhaps a little more.
                    let half = Integer::from(1) << length.saturating_sub(precision + 1);
                    ((Integer::from(1) << length) + half + rng.below(3)).keep_bits(52 * count as u32)
                }
                _ => Integer::from(Integer::random_bits(length, &mut rng)),
            }
        });
        let mut digits = vec![0; count * BLOCK];
        for (at, digit) in digits.iter_mut().enumerate() {
            let shifted = Integer::from(&magnitudes[at % BLOCK] >> (52 * (at / BLOCK) as u32));
            *digit = shifted.keep_bits(52).to_u64().unwrap();
        }
        let rounding = Rounding::new(precision);
        let width = limbs_for(precision);
        let exponents: [i64; BLOCK] = std::array::from_fn(|lane| 100 * lane as i64 - 300);
        let signs = rng.below(256) as u8;
        let (mut heads, mut out) = ([7; BLOCK], vec![9; BLOCK * width]);
        let mut window = vec![0xdead_beef; rounding.scratch_words()];
        let from = Magnitudes { digits: &digits, exponents: &exponents, signs };
        // SAFETY: the CPU has the instructions.
        unsafe { rounding.round(from, &mut heads, &mut out, &mut window) };
        for (lane, magnitude) in magnitudes.iter().enumerate() {
            let mut want = vec![0; width];
            let magnitude = limbs(magnitude, limbs_for(52 * count as u32));
            let head = round_integer(signs >> lane & 1 == 1, &magnitude, exponents[lane], precision, &mut want);
            let label = format!("case {case}: {precision} bits of {count} digits, lane {lane}");
            assert_eq!((head.0, &want[..]), (heads[lane], &out[lane * width..][..width]), "{label}");
        }
    }
}

/// A number that is known to within `2^known` is rounded as it is with that added or subtracted, or reported as
/// unclear.
#[test]
fn a_change_that_shows_is_unclear() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random(6);
    let (mut clear, mut unclear) = (0, 0);
    for case in 0..3000u32 {
        let precision = [2u32, 53, 64, 128, 250, 257, 510, 768][case as usize % 8];
        let (count, known) = (precision as usize / 52 + 4, rng.below(60));
        let rounding = Rounding::new(precision);
        let width = limbs_for(precision);
        let magnitudes: [Integer; BLOCK] = std::array::from_fn(|lane| {
            let length = precision + known + 30 + rng.below(30);
            let value = Integer::from(1) << (length - 1) | Integer::from(Integer::random_bits(length, &mut rng));
            let (cut, one) = (length - precision, Integer::from(1));
            // A half, and changes of it, below a significand that is kept.
            let half = one.clone() << (cut - 1);
            let near = Integer::from(&value >> cut) << cut;
            match lane {
                0 => near + half,
                1 => near + half + (one << known),
                2 => near + half - (one << known),
                3 => near + half - 1u32,
                _ => value,
            }
        });
        let round = |numbers: &[Integer; BLOCK], known_bits: i64| {
            let mut digits = vec![0; count * BLOCK];
            for (at, digit) in digits.iter_mut().enumerate() {
                let shifted = Integer::from(&numbers[at % BLOCK] >> (52 * (at / BLOCK) as u32));
                *digit = shifted.keep_bits(52).to_u64().unwrap();
            }
            let (mut heads, mut out) = ([7; BLOCK], vec![9; BLOCK * width]);
            let mut window = vec![0xdead_beef; rounding.scratch_words()];
            let from = Magnitudes { digits: &digits, exponents: &[0; BLOCK], signs: 0 };
            // SAFETY: the CPU has the instructions.
            let unclear = unsafe { rounding.round_known(from, known_bits, &mut heads, &mut out, &mut window) };
            (unclear, heads, out)
        };
        let (given_up, heads, limbs) = round(&magnitudes, known.into());
        let step = Integer::from(1) << known;
        for changed in [magnitudes.clone().map(|value| value + &step), magnitudes.clone().map(|value| value - &step)] {
            let (_, other_heads, other_limbs) = round(&changed, i64::MIN);
            for lane in (0..BLOCK).filter(|lane| given_up >> lane & 1 == 0) {
                let own = lane * width..(lane + 1) * width;
                assert_eq!(heads[lane], other_heads[lane], "case {case}, lane {lane}");
                assert_eq!(limbs[own.clone()], other_limbs[own], "case {case}, lane {lane}");
            }
        }
        assert!(given_up & 0b1111 == 0b1111, "case {case}: {given_up:b}");
        clear += (given_up >> 4).count_zeros() - 4;
        unclear += given_up.count_ones();
    }
    assert!(clear > 2000 && unclear > 12_000, "{clear} {unclear}");
}
