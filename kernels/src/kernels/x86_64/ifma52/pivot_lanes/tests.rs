//! Entries of the factors against integers, and quotients by the exact path as well.

use super::*;
use crate::kernels::x86_64::ifma52::factor::divide::digit;
use crate::math::pivot::{round_quotient, round_shift};
use rug::rand::RandState;

/// Eight numbers of at most `bits` bits, some of them 0 or halves of odd multiples of `unit`, which is even.
fn rests(bits: u32, unit: &Integer, rng: &mut RandState<'_>) -> [Integer; BLOCK] {
    std::array::from_fn(|lane| {
        let number = Integer::from(Integer::random_bits(bits, rng));
        let number = match lane {
            0 => Integer::new(),
            1 | 2 => (number / unit * 2u32 + 1u32) * Integer::from(unit >> 1u32) / 2u32,
            3 => Integer::from(unit >> 1u32),
            _ => number >> (lane as u32 - 4),
        };
        if lane % 2 == 0 { number } else { -number }
    })
}

/// Writes magnitudes as the first cell of a block; their signs.
fn write_magnitudes(words: &mut [u64], numbers: &[Integer; BLOCK]) -> u8 {
    for (lane, number) in numbers.iter().enumerate() {
        let size = Integer::from(number.abs_ref());
        for (at, lanes) in words.chunks_exact_mut(BLOCK).enumerate() {
            lanes[lane] = digit(&size, at);
        }
    }
    numbers.iter().enumerate().fold(0, |signs, (lane, number)| signs | u8::from(*number < 0) << lane)
}

#[test]
fn entries_with_pivots_are_rounded_once_and_the_largest_is_found() {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(31));
    for (working, growth) in [(5u32, 3), (52, 5), (60, 12), (103, 9), (104, 3), (285, 8), (530, 8), (1040, 10)] {
        let Some(lanes) = PivotLanes::new(working, working + growth, 2 * working + growth + 12) else {
            return println!("skipped: no IFMA");
        };
        let what = format!("{working} bits");
        let (mut block, mut scratch) = (vec![0; lanes.block_words()], vec![0; lanes.scratch_words(64)]);
        let cell_words = lanes.largest_words();
        let entries = |block: &[u64]| -> Vec<Integer> {
            let mut limbs = vec![0; BLOCK * lanes.entry_limbs()];
            let signs = lanes.limbs(block, 0, &mut limbs);
            let magnitudes = limbs.chunks_exact(lanes.entry_limbs()).enumerate();
            let signed = |(lane, limbs): (usize, &[u64])| match signs >> lane & 1 {
                1 => -Integer::from_digits(limbs, Order::Lsf),
                _ => Integer::from_digits(limbs, Order::Lsf),
            };
            magnitudes.map(signed).collect()
        };
        let unit = Integer::from(1) << working;
        let numbers = rests(2 * working + growth, &Integer::from(&unit << 1u32), &mut rng);
        let signs = write_magnitudes(&mut block[..cell_words], &numbers);
        let mut largest = [LargestLanes::new(cell_words), LargestLanes::new(cell_words)];
        lanes.see(&block, 0, 3, u8::MAX, &mut largest[1]);
        lanes.see(&block, 0, 7, u8::MAX, &mut largest[0]);
        let sizes = numbers.iter().map(|number| Integer::from(number.abs_ref()));
        let (lane, _) = sizes.enumerate().max_by(|(i, x), (j, y)| x.cmp(y).then(j.cmp(i))).unwrap();
        assert_eq!(LargestLanes::first_largest(&largest), Some(3 * BLOCK + lane), "{what}");
        lanes.finish_upper(&mut block, 0, signs, u8::MAX).unwrap();
        let upper = entries(&block);
        for (entry, rest) in upper.iter().zip(&numbers) {
            assert_eq!(*entry, round_shift(rest, -i64::from(working)), "{what}");
        }
        // One bit more than there is room for.
        let beyond = std::array::from_fn(|lane| Integer::from(1) << (2 * working + growth - u32::from(lane != 5)));
        let mut other = vec![0; lanes.block_words()];
        write_magnitudes(&mut other[..cell_words], &beyond);
        assert_eq!(lanes.finish_upper(&mut other, 0, 0, u8::MAX), Err(growth + 1), "{what}");
        for (lane, divisor) in upper.iter().enumerate().filter(|(_, divisor)| **divisor != 0) {
            let pivot = lanes.pivot(&block, CellLane { cell: 0, lane }, &mut scratch).expect("it is not 0");
            let size = Integer::from(divisor.abs_ref());
            let bits = size.significant_bits() + working - 1;
            let even = Integer::from(&size << 1u32);
            let numerators = rests(bits, &even, &mut rng);
            for lanes in [lanes, lanes.exact()] {
                let mut own = vec![0; lanes.block_words()];
                let signs = write_magnitudes(&mut own[..cell_words], &numerators);
                lanes.divide(&mut own, 0, &pivot, [signs, 0x7f], &mut scratch);
                for (lane, (entry, numerator)) in entries(&own).iter().zip(&numerators).enumerate() {
                    let sign = if *divisor < 0 { -1 } else { 1 };
                    let want = round_quotient(&Integer::from(numerator * sign), &size);
                    assert_eq!(*entry, if lane == 7 { Integer::new() } else { want }, "{what}, lane {lane}");
                }
            }
        }
        assert!(lanes.pivot(&block, CellLane { cell: 0, lane: 0 }, &mut scratch).is_none());
    }
}
