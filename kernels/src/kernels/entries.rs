//! The integers of a factorisation or a triangular solve on limbs: their widths, and their roots and quotients, each
//! rounded once.
//!
//! Depends on: slices of limbs. Independent of: matrices, tiles, the rejection of rows.

use crate::kernels::limbs;
use crate::math::bound::{CHOLESKY_GUARD_BITS, LIMB_QUOTIENT_WINDOW, TILE_SPARE_BITS};
use crate::math::float::{LIMB_BITS, bit_length, limbs_for};
use std::cmp::Ordering;

/// Limbs of the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Limbs of an entry of the factor, below `2^(working_bits + 1)`.
    pub entry: usize,
    /// Limbs of the remainder of an entry, below `2.01 * 2^(2 working_bits)`, with its sign.
    pub rest: usize,
}

impl Widths {
    /// The widths for `working_bits` working bits.
    pub fn new(working_bits: u32) -> Widths {
        let entry = limbs_for(working_bits + 1);
        // One limb more than a product, which is added to it.
        Widths { entry, rest: limbs_for(2 * working_bits + TILE_SPARE_BITS + 1).max(2 * entry + 1) }
    }

    /// Limbs of scratch for [`root`] and [`quotient`].
    pub fn quotient(self) -> usize {
        2 * (self.rest + 2)
    }
}

/// The square root of a magnitude with the limbs of a remainder, to nearest, in `space`; `None` for 0.
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

/// A magnitude divided by a nonzero pivot, to nearest, ties to even, in `space`.
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

/// The reciprocal of a pivot by which many magnitudes are divided: each quotient is a product with it, and is divided
/// exactly only if that product is too close to half an integer. `L` is the container of its limbs: the caller's memory
/// or its own. Source: docs/ALGORITHM.md, "Quotients by a common pivot".
pub struct Reciprocal<L> {
    /// `floor(2^(64 (skipped + fraction)) / pivot)`.
    limbs: L,
    /// Low limbs of a numerator that are skipped.
    skipped: usize,
    /// Limbs of a product below the integer part of the quotient.
    fraction: usize,
    /// Bits that a numerator may have.
    most_bits: u64,
}

impl<'s> Reciprocal<&'s [u64]> {
    /// Limbs of scratch for [`Reciprocal::new`].
    pub fn words(working_bits: u32) -> usize {
        3 * most_numerator(working_bits) + 1
    }

    /// The reciprocal for a magnitude other than 0 and at most `2^(working_bits + 1)`, for quotients below
    /// `2^(working_bits + 1)`.
    pub fn new(pivot: &[u64], working_bits: u32, space: &'s mut [u64]) -> Reciprocal<&'s [u64]> {
        let pivot = &pivot[..significant(pivot).expect("a pivot is not 0")];
        let length = bit_length(pivot);
        let skipped = length.saturating_sub(CHOLESKY_GUARD_BITS.into()) / 64;
        let most_bits = length + u64::from(working_bits) + 2;
        let fraction = (most_bits + u64::from(CHOLESKY_GUARD_BITS) - 1 - 64 * skipped).div_ceil(64);
        let (skipped, fraction) = (skipped as usize, fraction as usize);
        let (power, space) = space.split_at_mut(skipped + fraction + 1);
        power.fill(0);
        power[skipped + fraction] = 1;
        let (remainder, limbs) = space.split_at_mut(pivot.len());
        let count = power.len() - pivot.len() + 1;
        limbs::divide(&mut limbs[..count], remainder, power, pivot);
        let count = significant(&limbs[..count]).expect("the power is above the pivot");
        // As many limbs as a numerator has, which are multiplied fastest.
        let width = (most_bits.div_ceil(64) as usize - skipped).max(count);
        limbs[count..width].fill(0);
        Reciprocal { limbs: &limbs[..width], skipped, fraction, most_bits }
    }
}

impl Reciprocal<Box<[u64]>> {
    /// [`Reciprocal::new`] in newly allocated memory.
    pub fn boxed(pivot: &[u64], working_bits: u32) -> Reciprocal<Box<[u64]>> {
        let mut space = vec![0; Reciprocal::words(working_bits)];
        let Reciprocal { limbs, skipped, fraction, most_bits } = Reciprocal::new(pivot, working_bits, &mut space);
        Reciprocal { limbs: limbs.into(), skipped, fraction, most_bits }
    }

    /// Largest number of bytes of a reciprocal.
    pub fn bytes(working_bits: u32) -> u64 {
        let limbs = limbs_for(working_bits + 2 * CHOLESKY_GUARD_BITS + 2 * LIMB_BITS);
        size_of::<Self>() as u64 + 8 * limbs as u64
    }
}

/// Limbs of scratch for [`Reciprocal::quotient`].
pub fn quotient_words(widths: Widths, working_bits: u32) -> usize {
    widths.quotient().max(3 * limbs_for(working_bits + 2 * CHOLESKY_GUARD_BITS + 2))
}

impl<L: AsRef<[u64]>> Reciprocal<L> {
    /// A magnitude divided by the pivot, to nearest, ties to even, in `space`: [`quotient`], faster.
    #[inline]
    pub fn quotient<'q>(&self, rest: &[u64], pivot: &[u64], space: &'q mut [u64]) -> &'q [u64] {
        if bit_length(rest) > self.most_bits {
            return quotient(rest, pivot, space);
        }
        let limbs = self.limbs.as_ref();
        let width = limbs.len();
        let (product, copy) = space.split_at_mut(2 * width);
        match rest.get(self.skipped..self.skipped + width) {
            Some(numerator) => limbs::multiply(product, numerator, limbs),
            None => {
                let kept = rest.get(self.skipped..).unwrap_or_default();
                let numerator = &mut copy[..width];
                numerator[..kept.len()].copy_from_slice(kept);
                numerator[kept.len()..].fill(0);
                limbs::multiply(product, numerator, limbs);
            }
        }
        let part = product[self.fraction - 1];
        let is_close = part.abs_diff(1 << 63) <= LIMB_QUOTIENT_WINDOW;
        if is_close || product[2 * width - 1] == u64::MAX {
            return quotient(rest, pivot, space);
        }
        let quotient = &mut space[self.fraction..2 * width];
        if part >> 63 == 1 {
            limbs::increment(quotient);
        }
        quotient
    }
}

/// Most limbs of the power of two that reciprocals are taken from.
fn most_numerator(working_bits: u32) -> usize {
    limbs_for(2 * working_bits + 3 * CHOLESKY_GUARD_BITS) + 3
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
    use rug::Integer;
    use rug::integer::Order;
    use rug::rand::RandState;

    #[test]
    fn products_with_reciprocals_give_the_quotients() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(14));
        for case in 0..40_000u32 {
            let working_bits = [4, 62, 64, 129, 258, 300, 770][case as usize % 7];
            let widths = Widths::new(working_bits);
            let own = 1 + rng.below(working_bits + 1);
            let pivot = match case % 5 {
                0 => Integer::from(1) << (own - 1),
                1 => (Integer::from(1) << own) - 1u32,
                2 => Integer::from(1) << (working_bits + 1),
                _ => Integer::from(Integer::random_bits(own, &mut rng)) + 1u32,
            };
            let whole = Integer::from(Integer::random_bits(rng.below(working_bits + 2), &mut rng));
            // At integers, at halves, and one away from either; else anywhere, also beyond what the product takes.
            let mut rest = Integer::from(&whole * &pivot);
            match rng.below(5) {
                0 => rest += rng.below(2),
                1 => rest += Integer::from(&pivot >> 1u32) + rng.below(3),
                2 => rest -= rng.below(2),
                3 => rest += Integer::from(pivot.random_below_ref(&mut rng)),
                _ => rest = Integer::from(Integer::random_bits(2 * working_bits + 2, &mut rng)),
            }
            let rest = if rest < 0 { Integer::new() } else { rest };
            let limbs = |value: &Integer, count: usize| {
                let mut limbs = value.to_digits::<u64>(Order::Lsf);
                limbs.resize(count.max(limbs.len()), 0);
                limbs
            };
            let (divisor, number) = (limbs(&pivot, widths.entry), limbs(&rest, widths.rest));
            let mut memory = vec![0xdead; Reciprocal::words(working_bits)];
            let reciprocal = Reciprocal::new(&divisor, working_bits, &mut memory);
            let mut space = vec![0xdead; quotient_words(widths, working_bits)];
            let got = Integer::from_digits(reciprocal.quotient(&number, &divisor, &mut space), Order::Lsf);
            assert_eq!(got, round_quotient(&rest, &pivot), "case {case}: {rest} / {pivot}");
        }
    }

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
        for bits in [4u32, 31, 32, 33, 63, 64, 65, 127, 128, 256, 514, 1026] {
            let widths = Widths::new(bits);
            for case in 0..300u32 {
                let length = if case % 4 == 0 { 1 + rng.below(bits + 1) } else { bits - rng.below(bits.min(9)) };
                let mut pivot = Integer::from(Integer::random_bits(length, &mut rng));
                pivot.set_bit(length - 1, true);
                let pivot = pivot.min(Integer::from(1) << bits);
                let divisor = Reciprocal::boxed(pivot.as_limbs(), bits);
                assert!(size_of_val(&*divisor.limbs) as u64 + 40 <= Reciprocal::bytes(bits), "{bits} bits");
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
                let mut space = vec![0xdead; quotient_words(widths, bits)];
                let got = Integer::from_digits(divisor.quotient(&rest, &limbs, &mut space), Order::Lsf);
                assert_eq!(got, want, "{bits} bits, case {case}: {value} by {pivot}");
            }
        }
    }

    /// The window would do if it were half as wide, and not if it were an eighth: such errors occur.
    #[test]
    fn products_with_reciprocals_are_off_by_less_than_the_window() {
        let mut largest = 0;
        for bits in [100u32, 159, 160, 256] {
            for length in bits - 70..=bits {
                let pivot = (Integer::from(1) << (length - 1)) + 1u32;
                let divisor = Reciprocal::boxed(pivot.as_limbs(), bits);
                let value = (Integer::from(1) << divisor.most_bits as u32) - 1u32;
                let (low, point) = (64 * divisor.skipped as u32, 64 * divisor.fraction as u32);
                let reciprocal = Integer::from_digits(&divisor.limbs, Order::Lsf);
                let product = Integer::from(&value >> low) * reciprocal;
                let exact = Integer::from(&value << point) / &pivot;
                let off = (exact - product) >> (point - 64);
                let most = Integer::from(LIMB_QUOTIENT_WINDOW / 2);
                assert!((Integer::ZERO..=most).contains(&off), "{bits} bits, {length}: {off}");
                largest = largest.max(off.to_u64().unwrap());
            }
        }
        assert!(largest >= LIMB_QUOTIENT_WINDOW / 8, "{largest}: the bound is far from what occurs");
    }
}
