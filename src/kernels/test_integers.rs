//! Integers for tests of kernels: random ones at the ends of a range, and their limbs.

use rug::integer::Order;
use rug::{Integer, rand::RandState};

/// A magnitude in so many limbs.
pub fn limbs(value: &Integer, count: usize) -> Vec<u64> {
    let mut limbs = value.to_digits::<u64>(Order::Lsf);
    limbs.resize(count, 0);
    limbs
}

/// An integer of at most `2^bits`: at either end of the range, 0, or a random one.
pub fn integer(bits: u32, rng: &mut RandState<'_>) -> Integer {
    let value = match rng.below(6) {
        0 => Integer::new(),
        1 | 2 => Integer::from(1) << bits,
        3 => (Integer::from(1) << bits) - 1u32,
        _ => {
            let length = rng.below(bits + 1);
            Integer::from(Integer::random_bits(length, rng))
        }
    };
    if rng.below(2) == 0 { -value } else { value }
}
