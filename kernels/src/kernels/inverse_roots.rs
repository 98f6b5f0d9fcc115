//! The root of a pivot and its reciprocal together, on limbs, by Newton's method from a double.
//!
//! Both come from `1 / sqrt t` to half of the bits, which takes products of half as many limbs as a division does, and
//! one of these for the root and one for the reciprocal bring the rest. The root is the nearest integer or none: roots
//! that are too close to call are left to the caller. Bounds: docs/ALGORITHM.md, "Roots on limbs".
//!
//! Depends on: slices of limbs. Independent of: matrices, digits.

use crate::kernels::limbs::{self, add_with_carry, subtract_with_borrow};
use crate::math::bound::{INVERSE_ROOT_SPARE_BITS, ROOT_WINDOW};
use crate::math::float::{LIMB_BITS, bit_length, limbs_for};

/// Limbs of a half, at most: longer numbers are left to the caller.
const MOST_HALF_LIMBS: usize = 8;

/// Bits to which a double gives `1 / sqrt t`.
const SEED_BITS: usize = 48;

/// Bits by which the correction of a root or a reciprocal may be longer than a half.
const OVERLAP: i64 = 16;

/// A root and its reciprocal, in the caller's memory.
#[derive(Clone, Copy)]
pub struct RootAndInverse<'s> {
    /// Limbs of `L`, the nearest integer; the top one is not 0.
    pub root: &'s [u64],
    /// `2^(e - 1) / L`, at least 1/2 and below 1, as a fraction with all limbs of the slice: `e` is the bit length of
    /// `L`.
    pub inverse: &'s [u64],
}

/// Words of memory for [`root_and_inverse`].
pub fn words(working_bits: u32) -> usize {
    limbs_for(working_bits + 1) + 2 * half_limbs(working_bits)
}

/// Limbs of a half.
fn half_limbs(working_bits: u32) -> usize {
    ((working_bits + INVERSE_ROOT_SPARE_BITS) as usize).div_ceil(2 * LIMB_BITS as usize)
}

/// The integer nearest to the square root of a magnitude, below `2^(working_bits + 1)`, and the reciprocal of that to a
/// relative `2^-(working_bits + 56)`; `None` for a root that is too close to call, too short, too long or a power of
/// two. `memory` has [`words`].
pub fn root_and_inverse<'s>(square: &[u64], working_bits: u32, memory: &'s mut [u64]) -> Option<RootAndInverse<'s>> {
    macro_rules! with_half {
        ($($half:literal)*) => {
            match half_limbs(working_bits) {
                $($half => Newton::<$half, { 2 * $half }>::both(square, working_bits, memory),)*
                _ => None,
            }
        };
    }
    const { assert!(MOST_HALF_LIMBS == 8) };
    with_half!(1 2 3 4 5 6 7 8)
}

/// `t = T 2^(-2 e)` in `[1/4, 1)` as a fraction of `N = 2 H` limbs, cut, and `y <= 1 / (2 sqrt t)` as one of `H`.
struct Newton<const H: usize, const N: usize> {
    t: [u64; N],
    y: [u64; H],
}

impl<const H: usize, const N: usize> Newton<H, N> {
    fn both<'s>(square: &[u64], working_bits: u32, memory: &'s mut [u64]) -> Option<RootAndInverse<'s>> {
        let length = bit_length(square).div_ceil(2) as i64;
        // With fewer bits the rounding of the root would show in the reciprocal, by more than docs/ALGORITHM.md allows;
        // where it shows in a quotient, `inverse` sees it.
        let least = 64 * H as i64 - 14;
        if !(least.max(1)..=i64::from(working_bits) + 1).contains(&length) {
            return None;
        }
        let bit = 2 * length - 64 * N as i64;
        let t = std::array::from_fn(|at| bits_at(square, bit + 64 * at as i64));
        let newton = Newton::<H, N>::new(t);
        let (root, memory) = memory.split_at_mut(limbs_for(length as u32));
        newton.root(length, root)?;
        let inverse = &mut memory[..N];
        newton.inverse(root, length, inverse)?;
        Some(RootAndInverse { root, inverse })
    }

    /// `y` to all of its limbs but the last few bits, from below.
    fn new(t: [u64; N]) -> Newton<H, N> {
        let mut y = [0; H];
        // Below the limit by a relative 2^-49, give or take 2^-51 for four roundings of doubles.
        let seed = 2f64.powi(95) / (t[N - 1] as f64).sqrt();
        y[H - 1] = (seed * (1.0 - 2f64.powi(-49))) as u64;
        let mut newton = Newton { t, y };
        let mut known = SEED_BITS;
        while known < 64 * H - 8 {
            let count = (2 * known + 4).div_ceil(64).min(H);
            newton.step(count);
            known = (2 * known).min(64 * count - 4) - 2;
        }
        newton
    }

    /// `y := y + y (1 - 4 t y^2) / 2` with `count` leading limbs, from below.
    #[inline]
    fn step(&mut self, count: usize) {
        let (mut square, mut product) = ([0; N], [0; N]);
        let (square, product) = (&mut square[..2 * count], &mut product[..2 * count]);
        let y = &mut self.y[H - count..];
        limbs::multiply(square, y, y);
        limbs::multiply(product, &self.t[N - count..], &square[count..]);
        // The remainder of 1 is minus the product times four, modulo 1; the products were cut, so the remainder is not
        // too small.
        let (mut left, mut below, mut borrow) = ([0; H], 0, false);
        for (left, &limb) in left.iter_mut().zip(&product[count..]) {
            let four = limb << 2 | below >> 62;
            below = limb;
            (*left, borrow) = subtract_with_borrow(0, four, borrow);
        }
        limbs::multiply(square, y, &left[..count]);
        // The part that was cut off could make `y` too large by 6 units.
        let (mut carry, mut borrow, mut less) = (false, false, 7);
        for (at, y) in y.iter_mut().enumerate() {
            let half = square[count + at] >> 1 | square.get(count + at + 1).map_or(0, |above| above << 63);
            let sum;
            (sum, carry) = add_with_carry(*y, half, carry);
            (*y, borrow) = subtract_with_borrow(sum, less, borrow);
            less = 0;
        }
    }

    /// The nearest integer to `sqrt t 2^length`.
    #[inline]
    fn root(&self, length: i64, root: &mut [u64]) -> Option<()> {
        // To half of the bits it is 2 t y.
        let mut product = [0; N];
        limbs::multiply(&mut product, &self.t[N - H..], &self.y);
        let half: [u64; H] = std::array::from_fn(|at| product[H + at] << 1 | product[H + at - 1] >> 63);
        // The rest is (t - half^2) y.
        limbs::multiply(&mut product, &half, &half);
        let mut borrow = false;
        for (rest, &t) in product.iter_mut().zip(&self.t) {
            (*rest, borrow) = subtract_with_borrow(t, *rest, borrow);
        }
        let rest: [u64; H] = std::array::from_fn(|at| bits_at(&product, OVERLAP + 64 * at as i64));
        limbs::multiply(&mut product, &rest, &self.y);
        let mut whole = [0; N];
        whole[H..].copy_from_slice(&half);
        let mut carry = false;
        for (at, limb) in whole.iter_mut().enumerate() {
            (*limb, carry) = add_with_carry(*limb, bits_at(&product, 64 * (H + at) as i64 - OVERLAP), carry);
        }
        // It is short by less than 2 units of the fraction of 64 bits.
        let bit = 64 * N as i64 - length;
        let fraction = bits_at(&whole, bit - 64);
        if ((1 << 63) - ROOT_WINDOW..1 << 63).contains(&fraction) {
            return None;
        }
        for (at, limb) in root.iter_mut().enumerate() {
            *limb = bits_at(&whole, bit + 64 * at as i64);
        }
        if fraction >> 63 == 1 {
            limbs::increment(root);
        }
        (bit_length(root) as i64 == length).then_some(())
    }

    /// `2^(length - 1)` over a root of `length` bits.
    #[inline]
    fn inverse(&self, root: &[u64], length: i64, inverse: &mut [u64]) -> Option<()> {
        let bit = length - 64 * N as i64;
        let fraction: [u64; N] = std::array::from_fn(|at| bits_at(root, bit + 64 * at as i64));
        // The product with y is one half and a little more or less.
        let (mut product, mut low) = ([0; N], [0; N]);
        limbs::multiply(&mut product, &fraction[H..], &self.y);
        limbs::multiply(&mut low, &fraction[..H], &self.y);
        let mut carry = false;
        for (at, limb) in product.iter_mut().enumerate() {
            (*limb, carry) = add_with_carry(*limb, low.get(H + at).copied().unwrap_or(0), carry);
        }
        product[N - 1] = product[N - 1].wrapping_sub(1 << 63);
        // Where it is less, the reciprocal lies above y.
        let above = limbs::to_magnitude(&mut product);
        if product[H] >> OVERLAP != 0 || product[H + 1..].iter().any(|&limb| limb != 0) {
            return None;
        }
        let rest: [u64; H] = std::array::from_fn(|at| bits_at(&product, OVERLAP + 64 * at as i64));
        limbs::multiply(&mut product, &rest, &self.y);
        inverse[..H].fill(0);
        inverse[H..].copy_from_slice(&self.y);
        let mut carry = false;
        for (at, limb) in inverse.iter_mut().enumerate() {
            let change = bits_at(&product, 64 * (H + at) as i64 - OVERLAP - 1);
            (*limb, carry) =
                if above { add_with_carry(*limb, change, carry) } else { subtract_with_borrow(*limb, change, carry) };
        }
        (!carry).then_some(())
    }
}

/// The 64 bits of a magnitude from `bit` on, with zeros around it.
#[inline]
pub fn bits_at(magnitude: &[u64], bit: i64) -> u64 {
    let limb = |at: i64| usize::try_from(at).ok().and_then(|at| magnitude.get(at)).copied().unwrap_or(0);
    let (at, shift) = (bit >> 6, bit & 63);
    limb(at) >> shift | limb(at + 1) << 1 << (63 - shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::pivot::round_root;
    use rug::integer::Order;
    use rug::rand::RandState;
    use rug::{Integer, Rational};

    /// Roots where the fraction is next to one half, next to an integer, and anywhere, of all lengths.
    fn square(case: u32, working_bits: u32, rng: &mut RandState<'_>) -> Integer {
        let length = working_bits + 1
            - if case.is_multiple_of(4) { rng.below(working_bits) } else { rng.below(20.min(working_bits)) };
        let root = match rng.below(5) {
            0 => Integer::from(1) << (length - 1),
            1 => (Integer::from(1) << length) - 1u32,
            2 => (Integer::from(1) << (length - 1)) + rng.below(3),
            _ => Integer::from(Integer::random_bits(length, rng)),
        };
        let square = root.clone() * &root;
        match rng.below(6) {
            0 => square,
            1 => square + rng.below(2) + &root, // below one half, and above
            2 => Integer::from(&square - 1u32).max(Integer::new()),
            3 => square + 1u32,
            _ => Integer::from(Integer::random_bits(2 * length, rng)),
        }
    }

    #[test]
    fn roots_are_the_nearest_integers_and_reciprocals_are_close() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(31));
        let (mut found, mut all) = (0, 0);
        for case in 0..60_000u32 {
            let around =
                [3, 20, 38, 39, 66, 130, 166, 167, 258, 294, 295, 386, 514, 770, 1026, 1062, 1063][case as usize % 17];
            let working_bits = around + rng.below(3);
            let number = square(case, working_bits, &mut rng);
            let mut limbs = number.to_digits::<u64>(Order::Lsf);
            limbs.resize(limbs.len() + rng.below(3) as usize, 0);
            let mut memory = vec![0xdead_beef; words(working_bits)];
            let got = root_and_inverse(&limbs, working_bits, &mut memory);
            all += 1;
            let Some(RootAndInverse { root, inverse }) = got else { continue };
            found += 1;
            let root = Integer::from_digits(root, Order::Lsf);
            assert_eq!(root, round_root(&number), "case {case}: {number} at {working_bits} bits");
            // 2^(e - 1) / L - inverse, as a fraction of the reciprocal, is below 2^-(B + 56).
            let scaled = Integer::from_digits(inverse, Order::Lsf);
            let own = 64 * inverse.len() as u32;
            assert_eq!(scaled.significant_bits(), own, "case {case}");
            let limit = Rational::from((Integer::from(1) << (root.significant_bits() - 1 + own), root.clone()));
            let error = Rational::from(&limit - &scaled).abs() << (working_bits + 56);
            assert!(error < limit, "case {case}: {number} at {working_bits} bits");
        }
        assert!(found > all / 4 && found < all, "{found} of {all}");
    }

    /// With the largest spare bits that the half allows and the fewest, roots whose fraction is as near to one half as
    /// an integer can bring it are decided or left out.
    #[test]
    fn roots_next_to_one_half_are_told_apart_or_left_out() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(32));
        for case in 0..20_000u32 {
            let working_bits = 2 + rng.below(1100);
            let root = (Integer::from(1) << working_bits) + Integer::from(Integer::random_bits(working_bits, &mut rng));
            // (L + 1/2)^2 = L^2 + L + 1/4: the nearest integers below and above.
            let number = Integer::from(root.square_ref()) + &root + case % 2;
            let mut memory = vec![0; words(working_bits)];
            if let Some(both) = root_and_inverse(number.as_limbs(), working_bits, &mut memory) {
                assert_eq!(Integer::from_digits(both.root, Order::Lsf), round_root(&number), "{number}");
            }
        }
    }
}
