//! Digits of eight numbers of different matrices, one number in each lane, word by word.
//!
//! As `ifma52::problem_lanes::cut`, for which the bytes of a vector go anywhere at once.

use crate::kernels::radix::CutLanes;
use crate::math::float::{FloatRef, any_below};
use crate::plan::BLOCK;

const DIGIT_BITS: usize = 52;
const MASK: u64 = (1 << DIGIT_BITS) - 1;

/// Shifts beyond this leave no bit of any number.
const LARGEST_SHIFT: i64 = 1 << 30;

/// Words of the digits of numbers of `digits` digits, and one digit below them.
pub fn words(digits: usize) -> usize {
    (digits + 1) * BLOCK
}

/// Writes the digits of `|x| 2^shift`, the first one those of the 52 bits below 1. Digits below `from` are left out.
/// Gives the signs, and, where the lowest are cut, the lanes that rounding to nearest, ties to even, adds 1 to.
pub fn cut(numbers: &[FloatRef<'_>; BLOCK], shifts: &[i64; BLOCK], from: usize, out: &mut [u64]) -> CutLanes {
    let (mut signs, mut carries) = (0, 0);
    for (lane, number) in numbers.iter().enumerate() {
        signs |= u8::from(number.head.is_negative()) << lane;
        let own = out.iter_mut().skip(lane).step_by(BLOCK);
        if number.head.is_zero() {
            own.for_each(|digit| *digit = 0);
            continue;
        }
        let (limbs, bits) = (number.limbs, 64 * number.limbs.len() as i64);
        let drop = bits - number.head.exponent() - shifts[lane];
        let first = drop.clamp(-LARGEST_SHIFT, LARGEST_SHIFT) - DIGIT_BITS as i64;
        for (at, digit) in own.enumerate().skip(from) {
            *digit = window(limbs, first + (at * DIGIT_BITS) as i64);
        }
        if from == 0 {
            carries |= u8::from(rounds_up(limbs, first, out[lane], out[BLOCK + lane])) << lane;
        }
    }
    CutLanes { signs, carries }
}

/// The bits of a number from number `bit` on, as many as a digit has.
#[inline]
fn window(limbs: &[u64], bit: i64) -> u64 {
    if bit < 0 {
        return if bit > -(DIGIT_BITS as i64) { (limbs[0] << -bit) & MASK } else { 0 };
    }
    let (at, shift) = (bit as usize / 64, bit % 64);
    let limb = |at: usize| limbs.get(at).copied().unwrap_or(0);
    ((limb(at) >> shift) | (limb(at + 1) << 1 << (63 - shift))) & MASK
}

/// Whether a number with these digits below and above its point is rounded up.
fn rounds_up(limbs: &[u64], first: i64, dropped: u64, above: u64) -> bool {
    let half = 1 << (DIGIT_BITS - 1);
    dropped > half || dropped == half && (above & 1 == 1 || first > 0 && any_below(limbs, first))
}
