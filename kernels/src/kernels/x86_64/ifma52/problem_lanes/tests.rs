//! Roots, reciprocals and sums against big integers, at the edges of their bounds.

use super::numbers::lengths;
use super::pivots::Reciprocals;
use super::remainder::Remainder;
use super::sums::{self, Terms};
use super::{ProblemLanes, numbers, pivots};
use crate::kernels::x86_64::ifma52::probe;
use crate::math::bound::{LANE_ERROR_BITS, lane_first_column, lane_problem_terms, lane_root_bits};
use crate::math::pivot::round_root;
use crate::plan::BLOCK;
use rug::ops::Pow;
use rug::{Integer, rand::RandState};

fn random() -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(8));
    rng
}

/// The digits of eight numbers.
fn digits(numbers: &[Integer; BLOCK], count: usize) -> Vec<u64> {
    let digit = |at: usize| Integer::from(&numbers[at % BLOCK] >> (52 * (at / BLOCK) as u32)).keep_bits(52);
    (0..count * BLOCK).map(|at| digit(at).to_u64().unwrap()).collect()
}

/// The number in a lane.
fn number(digits: &[u64], lane: usize) -> Integer {
    digits.chunks_exact(BLOCK).rev().fold(Integer::new(), |sum, digit| (sum << 52u32) + digit[lane])
}

#[test]
fn roots_and_reciprocals_are_as_close_as_their_bound() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    for bits in [60u32, 66, 102, 154, 258, 310, 514, 770, 781, 1026, 1240] {
        let count = (bits as usize + 2).div_ceil(52);
        let (least, most) = (lane_root_bits(bits), bits);
        for case in 0..24u32 {
            let squares: [Integer; BLOCK] = std::array::from_fn(|lane| {
                let length = match lane {
                    0 => 2 * least,
                    1 => 2 * least - 1,
                    2 => 2 * most,
                    _ => 2 * least + rng.below(2 * (most - least)),
                };
                let root = Integer::from(1) << (length / 2);
                match (case + lane as u32) % 6 {
                    0 => (Integer::from(1) << length) - 1u32,
                    1 => Integer::from(1) << (length - 1),
                    2 => Integer::from((root - 1u32).square_ref()) | Integer::from(1) << (length - 2),
                    3 => (Integer::from(1) << (length - 1)) + rng.below(3),
                    _ => Integer::from(Integer::random_bits(length, &mut rng)) | Integer::from(1) << (length - 1),
                }
            });
            let square = digits(&squares, 2 * count);
            let mut roots = vec![0xdead; count * BLOCK];
            let mut reciprocals = vec![0xdead; pivots::reciprocal_digits(bits) * BLOCK];
            let mut space = vec![0xdead; pivots::space_words(bits, count)];
            // SAFETY: the CPU has the instructions.
            let (unclear, found) = unsafe {
                let lengths = lengths(&square);
                pivots::find(bits, &square, &lengths, &mut roots, &mut reciprocals, &mut space)
            };
            for (lane, square) in squares.iter().enumerate() {
                let what = format!("{bits} bits, case {case}, lane {lane}");
                let (root, want) = (number(&roots, lane), round_root(square));
                assert!(unclear >> lane & 1 == 1 || root == want, "{what}");
                // |R - 2^(52 f) / L| <= 1 + 2^(-bits - 35) 2^(52 f) / L, times L 2^(bits + 35).
                let one = Integer::from(1) << (52 * found.fraction as u32);
                let reciprocal = number(&reciprocals[..found.count * BLOCK], lane);
                let error = (Integer::from(&reciprocal * &root) - &one).abs() << (bits + 35);
                assert!(error <= (Integer::from(&root << (bits + 35))) + one, "{what}");
            }
            // Halves: a root of x + 1/4 is as close to x + 1/2 as there is.
            assert!(unclear.count_ones() < 6, "{bits} bits, case {case}: {unclear:b}");
        }
    }
}

/// Numerators and roots as far from one half as the window reaches are left to the caller; one unit of a digit further
/// they are rounded.
#[test]
fn roundings_are_left_to_others_within_the_window_and_no_further() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let edge = pivots::WINDOW;
    let offsets: [i64; BLOCK] = [0, edge, edge + 1, -edge, -edge - 1, 1, edge - 1, 1 << 49];
    let unclear = (0..BLOCK).filter(|&lane| offsets[lane].abs() <= edge).fold(0u8, |bits, lane| bits | 1 << lane);
    let half = 1i64 << 51;
    for bits in [150u32, 300, 770] {
        let lanes = ProblemLanes::new(bits).unwrap();
        let count = lanes.digits();
        // A pivot that is a power of two, whose reciprocal is exact.
        let longest = bits as usize;
        let fraction = (bits as usize + longest + 36).div_ceil(52);
        let quotient = (Integer::from(1) << (bits - 1)) + 12345u32;
        let numerators = offsets.map(|offset| {
            let below = Integer::from(&quotient << 52u32) + half + offset;
            (below << (longest as u32 - 1)) >> 52u32
        });
        let reciprocal = Integer::from(1) << (52 * fraction - longest + 1) as u32;
        let used = (52 * fraction + 2 - longest).div_ceil(52);
        let reciprocals = digits(&std::array::from_fn(|_| reciprocal.clone()), used);
        let mut words = vec![0xdead; Remainder::words(&lanes, bits)];
        let (mut remainder, _) = Remainder::new(&lanes, bits, &mut words);
        remainder.left.copy_from_slice(&digits(&numerators, 2 * count));
        let known = Reciprocals { fraction, count: used, longest };
        // SAFETY: the CPU has the instructions, as there are lanes.
        assert_eq!(unsafe { remainder.divide(&reciprocals, &known, 0) }, unclear, "{bits} bits");
        // The digits of a root, the first one below its point.
        let roots = offsets.map(|offset| Integer::from(&quotient << 52u32) + half + offset);
        let (mut rounded, mut space) = (vec![0; count * BLOCK], vec![0; (count + 1) * BLOCK]);
        // SAFETY: as above.
        let found =
            unsafe { pivots::round_roots(&digits(&roots, count + 1), &[0; BLOCK], &mut rounded, &mut &mut space[..]) };
        assert_eq!(found, unclear, "{bits} bits");
        for lane in (0..BLOCK).filter(|lane| unclear >> lane & 1 == 0) {
            let want = Integer::from(&quotient + u32::from(offsets[lane] > 0));
            assert_eq!(number(&remainder.entry[..count * BLOCK], lane), want, "{bits} bits, lane {lane}");
            assert_eq!(number(&rounded, lane), want, "{bits} bits, lane {lane}");
        }
    }
}

/// All digits at their largest in as many terms as the bound allows; one more term has no room.
#[test]
fn sums_hold_as_many_products_as_the_bound_says() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    for count in 2..=sums::MOST_DIGITS {
        let most = lane_problem_terms(count);
        let mut words = vec![(1u64 << 52) - 1; most * count * BLOCK];
        for at in 0..most * count {
            // SAFETY: the CPU has the instructions.
            unsafe {
                let digit = sums::form(numbers::load(&words, at));
                numbers::store(&mut words, at, digit);
            }
        }
        let value = (Integer::from(1) << (52 * count as u32)) - 1u32;
        let sum = Integer::from(value.square_ref()) * most as u32;
        for from in [0, 1, sums::first_column(count) / 2, sums::first_column(count)] {
            let mut got = vec![0; 2 * count * BLOCK];
            let terms = Terms { x: words.as_ptr(), y: words.as_ptr(), count: most };
            // SAFETY: the CPU has the instructions, and all entries and sums their words.
            unsafe { sums::multiply(count, terms, from, got.as_mut_ptr()) };
            let largest = got.iter().max().copied().unwrap_or(0);
            // Two halves of the sums that take the offset off, a digit and a carry.
            let rest = most as u64 + 3;
            assert!(u128::from(largest) + (u128::from(rest) << 52) <= 1 << 63, "{count} digits");
            let lane = number(&got, from % BLOCK);
            let left_out = Integer::from(&sum - &lane);
            let bound = Integer::from(2 * from * most) << (52 * from as u32);
            assert!(left_out >= 0 && left_out <= bound, "{count} digits from {from}");
        }
        let all = |terms: usize| (2 * count as u128 * terms as u128 + terms as u128 + 3) << 52;
        assert!(all(most) < 1 << 63 && all(most + 1) >= 1 << 63, "{count} digits");
    }
}

#[test]
fn columns_that_are_left_out_change_quotients_by_less_than_half_their_window() {
    for (digits, terms) in [(2usize, 1usize), (6, 20), (15, 16), (24, 41)] {
        for length in (40i64..52 * digits as i64).step_by(7) {
            let column = lane_first_column(length, digits, terms);
            // (2 d k + 1) 2^(52 c) over a root of at least 2^(length - 1).
            let fits = |column: usize| {
                let left_out = Integer::from(2 * digits * terms + 1) << (52 * column as u32 + LANE_ERROR_BITS + 1);
                left_out <= Integer::from(2).pow(length as u32 - 1)
            };
            assert!(column == 0 || fits(column), "{digits} digits, {length} bits");
            assert!(!fits(column + 1), "{digits} digits, {length} bits: {column} is not the last");
        }
    }
}

#[test]
fn shifts_and_magnitudes_are_those_of_integers() {
    if probe().is_err() {
        return println!("skipped: no IFMA");
    }
    let mut rng = random();
    for _ in 0..200 {
        let count = 1 + rng.below(9) as usize;
        let all: [Integer; BLOCK] = std::array::from_fn(|_| Integer::random_bits(52 * count as u32, &mut rng).into());
        let shifts: [i64; BLOCK] = std::array::from_fn(|_| i64::from(rng.below(400)) - 200);
        let from = digits(&all, count);
        let mut to = vec![0xdead; 6 * BLOCK];
        // SAFETY: the CPU has the instructions.
        unsafe { numbers::shift(&from, &shifts, &mut to) };
        let mut own = from.clone();
        // SAFETY: as above.
        let signs = unsafe { numbers::magnitudes(&mut own) };
        for (lane, value) in all.iter().enumerate() {
            let want = match shifts[lane] {
                up @ 0.. => Integer::from(value << up as u32),
                down => Integer::from(value >> (-down) as u32),
            };
            assert_eq!(number(&to, lane), want.keep_bits(6 * 52));
            let is_negative = signs >> lane & 1 == 1;
            let size = if is_negative { (Integer::from(1) << (52 * count as u32)) - value } else { value.clone() };
            assert!(number(&own, lane) == size && is_negative == value.get_bit(52 * count as u32 - 1));
        }
    }
}
