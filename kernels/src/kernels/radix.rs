//! Integers as digits: how many and how wide, and how sums of digit positions become magnitudes, a block at a time.
//!
//! Depends on: slices. Independent of: moduli, instructions; what is inlined is compiled with those of its caller.
#![forbid(unsafe_code)]

use crate::kernels::IntegerBlock;
use crate::plan::BLOCK_WORDS;
use rug::Integer;

/// An integer as `sum_i d_i 2^(bits i)`.
#[derive(Clone, Copy)]
pub struct Digits {
    /// Bits of a digit.
    pub bits: u32,
    /// Number of digits.
    pub count: usize,
}

/// Eight numbers that were cut into digits, a bit for each.
#[cfg(any(target_arch = "x86_64", test))]
#[derive(Clone, Copy)]
pub struct CutLanes {
    /// Those below 0.
    pub signs: u8,
    /// Those to whose lowest digit rounding adds 1.
    pub carries: u8,
}

#[cfg(any(target_arch = "x86_64", test))]
impl CutLanes {
    /// Integers with these signs: nothing is rounded.
    pub fn exact(signs: u8) -> CutLanes {
        CutLanes { signs, carries: 0 }
    }
}

impl Digits {
    /// The widest digits for `integer_bits` bits, of at most `most_bits` each, where `count` digits may have up to
    /// `bits_for(count)` bits each.
    pub fn widest(integer_bits: u32, most_bits: u32, bits_for: impl Fn(usize) -> u32) -> Digits {
        // The widest digits may make so many terms that they must be narrower, and so on: at most a few rounds.
        let mut bits = most_bits;
        loop {
            let count = integer_bits.div_ceil(bits) as usize;
            if bits_for(count) >= bits {
                return Digits { bits, count };
            }
            bits -= 1;
        }
    }

    /// Limbs that hold the digits.
    pub fn limbs(&self) -> usize {
        self.shift(self.count).div_ceil(64) as usize
    }

    /// The balanced digits of an integer, `-2^(bits-1) <= d_i < 2^(bits-1)`; two bits more than the integer's suffice.
    pub fn balanced(&self, integer: &Integer) -> Vec<i64> {
        assert!(self.bits < 63, "a plain digit and a carry are below 2^63");
        let (limbs, negative) = (integer.as_limbs(), *integer < 0);
        let (radix, half) = (1i64 << self.bits, 1i64 << (self.bits - 1));
        let mut carry = 0;
        let digits = (0..self.count).map(|digit| {
            let plain = plain_digit(limbs, self.shift(digit), self.bits) as i64;
            let signed = if negative { -plain } else { plain } + carry;
            let balanced = ((signed + half) & (radix - 1)) - half;
            carry = (signed - balanced) >> self.bits;
            balanced
        });
        let digits = digits.collect();
        assert!(carry == 0 && integer.significant_bits() <= self.shift(self.count), "too few digits");
        digits
    }

    /// Bits below a digit.
    pub fn shift(&self, digit: usize) -> u32 {
        digit as u32 * self.bits
    }
}

/// The `bits < 64` bits of a magnitude from `shift` on.
fn plain_digit(limbs: &[u64], shift: u32, bits: u32) -> u64 {
    let limb = |at: usize| limbs.get(at).copied().unwrap_or(0);
    let (at, offset) = ((shift / 64) as usize, shift % 64);
    let window = u128::from(limb(at)) | u128::from(limb(at + 1)) << 64;
    (window >> offset) as u64 & ((1 << bits) - 1)
}

/// A sum of a digit position.
pub trait Whole: Copy {
    /// The integer that it is; its magnitude and a carry stay below `2^63`.
    fn whole(self) -> i64;
}

/// Carries the sums through their digit positions: limbs in two's complement, limb `w` of all entries at
/// `w * BLOCK_WORDS`. Returns all ones for each entry below 0, else 0.
#[inline(always)]
pub fn carry(shape: Digits, sums: &[impl Whole], limbs: &mut [u64]) -> [u64; BLOCK_WORDS] {
    let mask = (1i64 << shape.bits) - 1;
    let mut carry = [0i64; BLOCK_WORDS];
    let mut limb = [0u64; BLOCK_WORDS];
    let mut bit = 0; // bits of `limb` that are filled
    let mut filled = limbs.chunks_exact_mut(BLOCK_WORDS);
    for sums in sums.chunks_exact(BLOCK_WORDS) {
        let next_bit = bit + shape.bits;
        let mut digits = [0u64; BLOCK_WORDS];
        for lane in 0..BLOCK_WORDS {
            let sum = sums[lane].whole() + carry[lane];
            digits[lane] = (sum & mask) as u64;
            carry[lane] = sum >> shape.bits;
            limb[lane] |= digits[lane] << bit;
        }
        bit = next_bit;
        if bit >= 64 {
            bit -= 64;
            filled.next().expect("limbs hold all digits").copy_from_slice(&limb);
            for lane in 0..BLOCK_WORDS {
                limb[lane] = digits[lane] >> (shape.bits - bit); // 0 for bit 0: a digit has shape.bits bits
            }
        }
    }
    // The digits hold the integer with its sign, so the last carry is 0 or -1.
    let negative = carry.map(|carry| carry as u64);
    if bit > 0 {
        let last = filled.next().expect("limbs hold all digits");
        for lane in 0..BLOCK_WORDS {
            last[lane] = limb[lane] | negative[lane] << bit;
        }
    }
    negative
}

/// Writes signs and magnitudes.
#[inline(always)]
pub fn take_magnitudes(limbs: &mut [u64], negative: &[u64; BLOCK_WORDS], integers: &mut IntegerBlock) {
    let mut carry = negative.map(|mask| mask & 1);
    for limb in limbs.chunks_exact_mut(BLOCK_WORDS) {
        for lane in 0..BLOCK_WORDS {
            let (sum, over) = (limb[lane] ^ negative[lane]).overflowing_add(carry[lane]);
            limb[lane] = sum;
            carry[lane] = u64::from(over);
        }
    }
    integers.negative = negative.map(|mask| mask != 0);
    let width = integers.limbs;
    for (entry, magnitude) in integers.magnitudes.chunks_exact_mut(width).enumerate() {
        for (word, limb) in magnitude.iter_mut().enumerate() {
            *limb = limbs.get(word * BLOCK_WORDS + entry).copied().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integer all of whose balanced digits are `digit`.
    fn uniform(shape: Digits, digit: i64) -> Integer {
        (0..shape.count).map(|at| Integer::from(digit) << shape.shift(at)).sum()
    }

    #[test]
    fn balanced_digits_add_up_to_the_integer() {
        for (bits, count) in [(1, 70), (2, 9), (13, 1), (13, 40), (23, 17), (31, 5), (52, 9), (62, 4)] {
            let shape = Digits { bits, count };
            let half = 1i64 << (bits - 1);
            let (least, most) = (uniform(shape, -half), uniform(shape, half - 1));
            let square = Integer::from(&most * &most) % (Integer::from(&most) + 1);
            for integer in [least, most.clone(), Integer::from(0), Integer::from(&most / 3), square, -most / 5] {
                let digits = shape.balanced(&integer);
                assert!(digits.iter().all(|digit| (-half..half).contains(digit)), "{bits} bits, {integer}");
                let sum = digits.iter().enumerate().map(|(at, &digit)| Integer::from(digit) << shape.shift(at));
                assert_eq!(sum.sum::<Integer>(), integer, "{count} digits of {bits} bits");
            }
        }
    }

    #[test]
    fn integers_beyond_the_digits_are_bugs() {
        let shape = Digits { bits: 13, count: 3 };
        let (least, most) = (uniform(shape, -(1 << 12)), uniform(shape, (1 << 12) - 1));
        for beyond in [least - 1, most + 1] {
            assert!(std::panic::catch_unwind(|| shape.balanced(&beyond)).is_err(), "{beyond}");
        }
    }
}
