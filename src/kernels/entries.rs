//! The integers of a factorisation or a triangular solve on limbs: how wide they are, and their roots and quotients,
//! each rounded once.
//!
//! Knows: slices of limbs. Does not know: matrices, tiles, which rows are rejected.

use crate::kernels::limbs;
use crate::math::bound::{DIVISOR_GUARD_BITS, DIVISOR_WINDOW, TILE_SPARE_BITS};
use crate::math::float::{LIMB_BITS, bit_length, limbs_for};
use rug::Integer;
use rug::integer::Order;
use std::cmp::Ordering;

/// Limbs of the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Of an entry of the factor, below `2^(working_bits + 1)`.
    pub entry: usize,
    /// Of what is left of an entry, below `2.01 * 2^(2 working_bits)`, with its sign.
    pub rest: usize,
}

impl Widths {
    /// For so many working bits.
    pub fn new(working_bits: u32) -> Widths {
        let entry = limbs_for(working_bits + 1);
        // One limb more than a product, which is added to it.
        Widths { entry, rest: limbs_for(2 * working_bits + TILE_SPARE_BITS + 1).max(2 * entry + 1) }
    }

    /// Limbs of scratch for [`root`], [`quotient`] and [`Divisor::divide`].
    pub fn quotient(self) -> usize {
        2 * (self.rest + 2)
    }
}

/// The square root of a magnitude of so many limbs as a rest has, to nearest, in `space`; `None` for 0.
pub fn root<'s>(rest: &[u64], space: &'s mut [u64]) -> Option<&'s [u64]> {
    let count = significant(rest)?;
    // Room for a carry of rounding.
    let (root, remainder) = space.split_at_mut(count.div_ceil(2) + 1);
    root.fill(0);
    let left = limbs::square_root(&mut root[..count.div_ceil(2)], &mut remainder[..count], &rest[..count]);
    if compare(&remainder[..left], root) == Ordering::Greater {
        limbs::increment(root);
    }
    Some(root)
}

/// A magnitude over a pivot other than 0, to nearest, ties to even, in `space`.
pub fn quotient<'s>(rest: &[u64], pivot: &[u64], space: &'s mut [u64]) -> &'s [u64] {
    let Some(count) = significant(rest) else { return &[] };
    let pivot = &pivot[..significant(pivot).expect("a pivot is not 0")];
    let (quotient, remainder) = space.split_at_mut(count.max(pivot.len()) + 2 - pivot.len());
    let remainder = &mut remainder[..pivot.len()];
    // Room for a carry of rounding.
    quotient.fill(0);
    if count < pivot.len() {
        remainder.fill(0);
        remainder[..count].copy_from_slice(&rest[..count]);
    } else {
        limbs::divide(&mut quotient[..=count - pivot.len()], remainder, &rest[..count], pivot);
    }
    match compare_twice(remainder, pivot) {
        Ordering::Greater => limbs::increment(quotient),
        Ordering::Equal if quotient[0] & 1 == 1 => limbs::increment(quotient),
        _ => {}
    }
    quotient
}

/// A pivot's reciprocal, for quotients of many magnitudes by it.
pub struct Divisor {
    /// `floor(2^(64 (low + fraction)) / pivot)`.
    reciprocal: Vec<u64>,
    /// Lowest limbs of a magnitude that are left out.
    low: usize,
    /// Limbs of the product with the reciprocal that lie below the point.
    fraction: usize,
    /// Bits of the longest magnitude that this serves.
    most_bits: u64,
}

impl Divisor {
    /// For a pivot other than 0, at most `2^working_bits`.
    pub fn new(pivot: &[u64], working_bits: u32) -> Divisor {
        let length = bit_length(pivot) as u32;
        let low = length.saturating_sub(DIVISOR_GUARD_BITS) / LIMB_BITS;
        let fraction = (working_bits + length + DIVISOR_GUARD_BITS + 1 - LIMB_BITS * low).div_ceil(LIMB_BITS);
        let power = Integer::from(1) << (LIMB_BITS * (low + fraction));
        let reciprocal = power / Integer::from_digits(pivot, Order::Lsf);
        Divisor {
            reciprocal: reciprocal.to_digits(Order::Lsf),
            low: low as usize,
            fraction: fraction as usize,
            most_bits: u64::from(working_bits + length + 1),
        }
    }

    /// Most bytes of one.
    pub fn bytes(working_bits: u32) -> u64 {
        size_of::<Divisor>() as u64 + 8 * limbs_for(working_bits + DIVISOR_GUARD_BITS + 3 * LIMB_BITS) as u64
    }

    /// [`quotient`] of a magnitude by the pivot, faster: exactly only where the fraction is too near to a half.
    #[inline]
    pub fn divide<'s>(&self, rest: &[u64], pivot: &[u64], space: &'s mut [u64]) -> &'s [u64] {
        match self.estimate(rest, space) {
            Some(length) => &space[self.fraction..length],
            None => quotient(rest, pivot, space),
        }
    }

    /// Writes a rounded quotient from limb `fraction` of `space` on; where it ends, or `None` where it is not clear.
    #[inline]
    fn estimate(&self, rest: &[u64], space: &mut [u64]) -> Option<usize> {
        let count = significant(rest)?;
        let bits = count as u64 * 64 - u64::from(rest[count - 1].leading_zeros());
        if bits > self.most_bits || count <= self.low || count - self.low + self.reciprocal.len() <= self.fraction {
            return None;
        }
        let length = count - self.low + self.reciprocal.len();
        let space = &mut space[..length + 1];
        limbs::multiply_any(&mut space[..length], &rest[self.low..count], &self.reciprocal);
        space[length] = 0; // room for a carry of rounding
        let part = space[self.fraction - 1];
        if part.abs_diff(1 << 63) <= DIVISOR_WINDOW {
            return None;
        }
        if part >> 63 == 1 {
            limbs::increment(&mut space[self.fraction..]);
        }
        Some(length + 1)
    }
}

/// Limbs up to the highest that is not 0; `None` for 0.
fn significant(magnitude: &[u64]) -> Option<usize> {
    magnitude.iter().rposition(|&limb| limb != 0).map(|top| top + 1)
}

/// Compares two magnitudes.
fn compare(x: &[u64], y: &[u64]) -> Ordering {
    let limb = |number: &[u64], at: usize| number.get(at).copied().unwrap_or(0);
    let differ = (0..x.len().max(y.len())).rev().find(|&at| limb(x, at) != limb(y, at));
    differ.map_or(Ordering::Equal, |at| limb(x, at).cmp(&limb(y, at)))
}

/// Compares `2 x` with `y`, of as many limbs.
fn compare_twice(x: &[u64], y: &[u64]) -> Ordering {
    if x.last().is_some_and(|top| top >> 63 == 1) {
        return Ordering::Greater;
    }
    let doubled = |at: usize| x[at] << 1 | at.checked_sub(1).map_or(0, |below| x[below] >> 63);
    let differ = (0..y.len()).rev().find(|&at| doubled(at) != y[at]);
    differ.map_or(Ordering::Equal, |at| doubled(at).cmp(&y[at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::pivot::round_quotient;
    use rug::rand::RandState;

    #[test]
    fn quotients_are_rounded_to_nearest_and_ties_to_even() {
        let max = u64::MAX;
        for (x, y, want) in [([5, 0], [10, 0], Ordering::Equal), ([0, 1 << 63], [0, max], Ordering::Greater)] {
            assert_eq!(compare_twice(&x, &y), want);
        }
        assert_eq!(compare_twice(&[1 << 63, 4], &[0, 9]), Ordering::Equal);
        assert_eq!(compare_twice(&[(1 << 63) - 1, 4], &[0, 9]), Ordering::Less);
        assert_eq!(compare(&[0, 0, 1], &[max, max]), Ordering::Greater);
        assert_eq!(compare(&[7, 0], &[7]), Ordering::Equal);
    }

    #[test]
    fn quotients_by_reciprocals_are_those_of_divisions() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(78));
        let mut estimated = 0;
        for bits in [4u32, 31, 32, 33, 63, 64, 65, 127, 128, 256, 514, 1026] {
            let widths = Widths::new(bits);
            for case in 0..300u32 {
                let length = if case % 4 == 0 { 1 + rng.below(bits + 1) } else { bits - rng.below(bits.min(9)) };
                let mut pivot = Integer::from(Integer::random_bits(length, &mut rng));
                pivot.set_bit(length - 1, true);
                let pivot = pivot.min(Integer::from(1) << bits);
                let divisor = Divisor::new(pivot.as_limbs(), bits);
                let exact = Integer::from(Integer::random_bits(bits, &mut rng)) * &pivot;
                let value = match case % 9 {
                    0 => exact,                                        // an integer
                    1 => exact + Integer::from(&pivot >> 1),           // a half, where the pivot is even
                    2 => exact + (Integer::from(&pivot >> 1) + 1u32),  // just above
                    3 => exact + Integer::from(&pivot - 1u32),         // just below the next
                    4 => Integer::from(&pivot << bits),                // the largest quotient
                    5 => (Integer::from(&pivot << (bits + 1))) - 1u32, // too large, as far as reciprocals serve
                    6 => Integer::from(1) << (2 * bits + 2),           // too large, or nearly
                    7 => Integer::from(Integer::random_bits(bits / 2, &mut rng)),
                    _ => exact + Integer::from(Integer::random_below_ref(&pivot, &mut rng)),
                };
                let want = round_quotient(&value, &pivot);
                let mut rest = vec![0; widths.rest];
                rest[..value.as_limbs().len()].copy_from_slice(value.as_limbs());
                let mut limbs = vec![0; widths.entry.max(pivot.as_limbs().len())];
                limbs[..pivot.as_limbs().len()].copy_from_slice(pivot.as_limbs());
                let mut space = vec![0xdead; widths.quotient()];
                let clear = divisor.estimate(&rest, &mut space);
                estimated += usize::from(clear.is_some());
                if case % 9 == 1 && pivot.is_even() {
                    assert!(clear.is_none(), "{bits} bits, case {case}: a tie is never clear");
                }
                let got = Integer::from_digits(divisor.divide(&rest, &limbs, &mut space), Order::Lsf);
                assert_eq!(got, want, "{bits} bits, case {case}: {value} by {pivot}");
            }
        }
        assert!(estimated > 1800, "{estimated} quotients came from reciprocals");
    }

    /// The next smaller guard would not do: an error of the estimate that the window allows for occurs.
    #[test]
    fn estimates_are_off_by_less_than_the_window() {
        let mut largest = 0;
        for bits in [100u32, 159, 160, 256] {
            for length in bits - 70..=bits {
                let pivot = (Integer::from(1) << (length - 1)) + 1u32;
                let divisor = Divisor::new(pivot.as_limbs(), bits);
                let value = Integer::from(&pivot << bits) - 1u32;
                let (low, point) = (64 * divisor.low as u32, 64 * divisor.fraction as u32);
                let reciprocal = Integer::from_digits(&divisor.reciprocal, Order::Lsf);
                let product = Integer::from(&value >> low) * reciprocal;
                let exact = Integer::from(&value << point) / &pivot;
                let off = (exact - product) >> (point - 64);
                assert!(off >= 0 && off < DIVISOR_WINDOW / 2, "{bits} bits, {length}: {off}");
                largest = largest.max(off.to_u64().unwrap());
            }
        }
        assert!(largest > DIVISOR_WINDOW / 64, "{largest}: the bound is far from what occurs");
    }
}
