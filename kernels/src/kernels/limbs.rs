//! Products and sums of integers on contiguous limbs, through GMP's lowest level: no heap object per number.
//!
//! Depends on: slices of limbs. Independent of: signs, matrices, residues. All lengths are checked here.

use crate::math::family::IFMA52_BITS;
use crate::math::fixed;
use crate::math::float::LIMB_BITS;
use crate::plan::BLOCK;
use gmp_mpfr_sys::gmp::{self, limb_t, size_t};

const _: () = assert!(size_of::<limb_t>() == 8 && gmp::NUMB_BITS == 64, "a GMP limb is a u64");

/// `out := a * b` for two integers of the same number of limbs, at least 1; `out` has twice as many (asserted).
#[inline]
pub fn multiply(out: &mut [u64], a: &[u64], b: &[u64]) {
    assert!(!a.is_empty() && a.len() == b.len() && out.len() == 2 * a.len());
    macro_rules! with_width {
        ($($width:literal)*) => {
            match a.len() {
                $($width => multiply_fixed::<$width>(out, a, b),)*
                // SAFETY: the three slices have the lengths that the function reads and writes (asserted), `out`
                // overlaps neither operand because it is borrowed mutably, and the length is not 0.
                _ => unsafe { gmp::mpn_mul_n(out.as_mut_ptr(), a.as_ptr(), b.as_ptr(), a.len() as size_t) },
            }
        };
    }
    with_width!(1 2 3 4 5 6 7 8); // up to here a loop without a call is faster
}

/// `out := a * b` for any two numbers of at least 1 limb; `out` has as many limbs as both (asserted).
#[inline]
pub fn multiply_any(out: &mut [u64], a: &[u64], b: &[u64]) {
    if a.len() == b.len() {
        return multiply(out, a, b);
    }
    let (long, short) = if a.len() > b.len() { (a, b) } else { (b, a) };
    assert!(!short.is_empty() && out.len() == long.len() + short.len());
    let (target, long_count, short_count) = (out.as_mut_ptr(), long.len() as size_t, short.len() as size_t);
    // SAFETY: `out` has the limbs of both operands (asserted) and overlaps neither because it is borrowed mutably; the
    // first operand is the longer one and the second has at least 1 limb (asserted).
    unsafe { gmp::mpn_mul(target, long.as_ptr(), long_count, short.as_ptr(), short_count) };
}

/// `quotient := floor(numerator / divisor)` and the remainder; the divisor's top limb is not 0, the numerator is at
/// least as long, the quotient has one limb more than the difference of the lengths, the remainder has the length of
/// the divisor (asserted).
pub fn divide(quotient: &mut [u64], remainder: &mut [u64], numerator: &[u64], divisor: &[u64]) {
    let (long, short) = (numerator.len(), divisor.len());
    assert!(long >= short && divisor.last().is_some_and(|&top| top != 0));
    assert!(quotient.len() == long - short + 1 && remainder.len() == short);
    let (quotient, remainder) = (quotient.as_mut_ptr(), remainder.as_mut_ptr());
    let (long, short) = (long as size_t, short as size_t);
    // SAFETY: all four slices have the lengths that the function reads and writes, and the divisor's top limb is not 0
    // (asserted); the memory written overlaps nothing else because it is borrowed mutably.
    unsafe { gmp::mpn_tdiv_qr(quotient, remainder, 0, numerator.as_ptr(), long, divisor.as_ptr(), short) };
}

/// Row by row with the widths known to the compiler.
#[inline]
fn multiply_fixed<const W: usize>(out: &mut [u64], a: &[u64], b: &[u64]) {
    let (a, b): (&[u64; W], &[u64; W]) = (a.try_into().expect("W limbs"), b.try_into().expect("W limbs"));
    multiply_rows(out, a, b);
}

/// `out := a * b`; `out` has the limbs of both (asserted by the slices taken).
#[inline(always)]
fn multiply_rows<const A: usize, const B: usize>(out: &mut [u64], a: &[u64; A], b: &[u64; B]) {
    out[..B].fill(0);
    for (i, &limb) in a.iter().enumerate() {
        let row: &mut [u64; B] = (&mut out[i..i + B]).try_into().expect("a range of B limbs");
        let mut carry = 0;
        for (word, &other) in row.iter_mut().zip(b) {
            let wide = u128::from(limb) * u128::from(other) + u128::from(*word) + u128::from(carry);
            (*word, carry) = (wide as u64, (wide >> 64) as u64);
        }
        out[i + B] = carry;
    }
}

/// `sum := sum + a b 2^shift`, or minus it, modulo the limbs of `sum`; bits of the product below the lowest bit of
/// `sum` are cut off. Returns whether it was done: it is done only for sums of two limbs more than the longer factor,
/// factors of equal length or a factor of one limb, and a product that begins no higher than the lowest limb and ends
/// no higher than the highest.
#[inline]
pub fn add_shifted_product(sum: &mut [u64], a: &[u64], b: &[u64], shift: i64, negative: bool) -> bool {
    macro_rules! with_widths {
        ($(($width:literal, $sum:literal, $short:literal, $long:literal))*) => {
            match (sum.len(), a.len(), b.len()) {
                (3, 1, 1) => add_window::<1, 1, 3, 6>(sum, a, b, shift, negative),
                $(($sum, $width, $width) => add_window::<$width, $width, $sum, $long>(sum, a, b, shift, negative),
                ($sum, 1, $width) => add_window::<1, $width, $sum, $short>(sum, a, b, shift, negative),
                ($sum, $width, 1) => add_window::<1, $width, $sum, $short>(sum, b, a, shift, negative),)*
                _ => false,
            }
        };
    }
    // The room is that of the product, of a window of the sum's limbs above it, and of a limb below.
    with_widths!((2, 4, 8, 9)(3, 5, 10, 12)(4, 6, 12, 15)(5, 7, 14, 18)(6, 8, 16, 21)(7, 9, 18, 24)(8, 10, 20, 27))
}

/// The same for factors of `A` and `B` limbs and a sum of `S`, with `R = A + B + S + 1` limbs of room; no branch
/// depends on the shift, except where there is nothing to add.
#[inline]
fn add_window<const A: usize, const B: usize, const S: usize, const R: usize>(
    sum: &mut [u64],
    a: &[u64],
    b: &[u64],
    shift: i64,
    negative: bool,
) -> bool {
    const { assert!(R == A + B + S + 1) };
    let (word, bits) = (-(shift >> 6), (shift & 63) as u32);
    if word > (A + B) as i64 {
        return true;
    }
    if word < 0 {
        return false;
    }
    let (a, b): (&[u64; A], &[u64; B]) = (a.try_into().expect("A limbs"), b.try_into().expect("B limbs"));
    let sum: &mut [u64; S] = sum.try_into().expect("S limbs");
    // A limb of zeros below the product, and zeros above it.
    let mut room = [0; R];
    multiply_rows(&mut room[1..=A + B], a, b);
    let window = &room[word as usize..][..S + 1];
    // Minus a number is its complement and 1 more.
    let flip = u64::from(negative).wrapping_neg();
    let mut carry = negative;
    for at in 0..S {
        let limb = (window[at + 1] << bits) | ((window[at] >> 1) >> (63 - bits));
        (sum[at], carry) = add_with_carry(sum[at], limb ^ flip, carry);
    }
    true
}

/// `sum := sum + a b`, or minus it, modulo the limbs of `sum`: it is longer than both operands together, which have the
/// same length of at least 1 limb (asserted). `product` is scratch memory with the limbs of both (asserted).
#[inline]
pub fn add_product(sum: &mut [u64], a: &[u64], b: &[u64], negative: bool, product: &mut [u64]) {
    assert!(a.len() == b.len() && sum.len() > 2 * a.len());
    macro_rules! with_width {
        ($($width:literal)*) => {
            match a.len() {
                $($width => add_product_fixed::<$width, { 2 * $width }>(sum, a, b, negative),)*
                _ => {
                    multiply(product, a, b);
                    match negative {
                        true => subtract_assign(sum, product),
                        false => add_assign(sum, product),
                    }
                }
            }
        };
    }
    with_width!(1 2 3 4 5 6 7 8);
}

/// The same with `W` limbs, and twice as many of the product; which sign it has costs no branch.
#[inline]
fn add_product_fixed<const W: usize, const P: usize>(sum: &mut [u64], a: &[u64], b: &[u64], negative: bool) {
    let mut product = [0; P];
    multiply_fixed::<W>(&mut product, a, b);
    // Minus a number is its complement and 1 more.
    let flip = u64::from(negative).wrapping_neg();
    let (low, high) = sum.split_at_mut(P);
    let mut carry = negative;
    for (limb, part) in low.iter_mut().zip(product) {
        (*limb, carry) = add_with_carry(*limb, part ^ flip, carry);
    }
    for limb in high {
        (*limb, carry) = add_with_carry(*limb, flip, carry);
    }
}

/// One limb of a sum and its carry.
#[inline]
pub fn add_with_carry(x: u64, y: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = x.overflowing_add(y);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first | second)
}

/// One limb of a difference and its borrow.
#[inline]
pub fn subtract_with_borrow(x: u64, y: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = x.overflowing_sub(y);
    let (difference, second) = difference.overflowing_sub(u64::from(borrow));
    (difference, first | second)
}

/// `sum := sum + x`, modulo the limbs of `sum`, which is longer than `x`, of at least 1 limb (asserted).
#[inline]
pub fn add_assign(sum: &mut [u64], x: &[u64]) {
    assert!(!x.is_empty() && sum.len() > x.len());
    let target = sum.as_mut_ptr();
    // SAFETY: both lengths are those of the slices, the first is not below the second (asserted), and the function
    // allows the result to be its first operand.
    unsafe { gmp::mpn_add(target, target, sum.len() as size_t, x.as_ptr(), x.len() as size_t) };
}

/// `sum := sum - x`, with the lengths of [`add_assign`].
#[inline]
pub fn subtract_assign(sum: &mut [u64], x: &[u64]) {
    assert!(!x.is_empty() && sum.len() > x.len());
    let target = sum.as_mut_ptr();
    // SAFETY: as in `add_assign`.
    unsafe { gmp::mpn_sub(target, target, sum.len() as size_t, x.as_ptr(), x.len() as size_t) };
}

/// `x := x - y`, modulo their limbs; both have the same length (asserted).
#[inline]
pub fn subtract_equal(x: &mut [u64], y: &[u64]) {
    assert!(x.len() == y.len());
    let mut borrow = false;
    for (x, &y) in x.iter_mut().zip(y) {
        let (difference, first) = x.overflowing_sub(y);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        (*x, borrow) = (difference, first | second);
    }
}

/// `x := -x`, modulo its limbs, of which there is at least 1 (asserted).
#[inline]
pub fn negate(x: &mut [u64]) {
    assert!(!x.is_empty());
    let target = x.as_mut_ptr();
    // SAFETY: the length is that of the slice and not 0 (asserted); the function allows the result to be its operand.
    unsafe { gmp::mpn_neg(target, target, x.len() as size_t) };
}

/// `x := x + 1`, modulo its limbs.
#[inline]
pub fn increment(x: &mut [u64]) {
    for limb in x {
        *limb = limb.wrapping_add(1);
        if *limb != 0 {
            break;
        }
    }
}

/// `root := floor(sqrt(number))` and the remainder, whose number of limbs is returned; the top limb of `number` is not
/// 0, `root` has half its number of limbs, rounded up, and the remainder has its number of limbs (asserted).
pub fn square_root(root: &mut [u64], remainder: &mut [u64], number: &[u64]) -> usize {
    let count = number.len();
    assert!(number.last().is_some_and(|&top| top != 0) && root.len() == count.div_ceil(2) && remainder.len() == count);
    let (root, remainder) = (root.as_mut_ptr(), remainder.as_mut_ptr());
    // SAFETY: the three slices have the lengths that the function reads and writes, and the top limb is not 0
    // (asserted); the memory written overlaps nothing else because it is borrowed mutably.
    unsafe { gmp::mpn_sqrtrem(root, remainder, number.as_ptr(), count as size_t) as usize }
}

/// Limbs of a shifted magnitude that are kept on the stack.
const SHIFTED_LIMBS: usize = 48;

/// The same of a short one, which takes less room to clear.
const SHORT_LIMBS: usize = 12;

/// `sum := sum + magnitude * 2^shift`, or minus it, modulo the limbs of `sum`: [`fixed::add_shifted`], faster.
#[inline]
pub fn add_shifted(sum: &mut [u64], magnitude: &[u64], shift: i64, negative: bool) {
    let (word, bits) = (shift.div_euclid(64), shift.rem_euclid(64) as u32);
    if magnitude.len() >= SHIFTED_LIMBS || word >= sum.len() as i64 || -word > magnitude.len() as i64 {
        return fixed::add_shifted(sum, magnitude, shift, negative);
    }
    match magnitude.len() < SHORT_LIMBS {
        true => add_in::<SHORT_LIMBS>(sum, magnitude, word, bits, negative),
        false => add_in::<SHIFTED_LIMBS>(sum, magnitude, word, bits, negative),
    }
}

/// The same for a magnitude of fewer than `N` limbs, and a shift by limbs and bits.
#[inline]
fn add_in<const N: usize>(sum: &mut [u64], magnitude: &[u64], word: i64, bits: u32, negative: bool) {
    let (skip, dropped) = (word.max(0) as usize, (-word).max(0) as usize);
    let mut shifted = [0; N];
    let count = shift_up(&mut shifted, magnitude, bits);
    let (sum, shifted) = (&mut sum[skip..], &shifted[dropped..count]);
    let shifted = &shifted[..shifted.len().min(sum.len())];
    if shifted.is_empty() {
        return;
    }
    let (target, length) = (sum.as_mut_ptr(), sum.len() as size_t);
    let (source, count) = (shifted.as_ptr(), shifted.len() as size_t);
    // SAFETY: both lengths are those of the slices, the second is at least 1 and at most the first, and both functions
    // allow the result to be their first operand.
    unsafe {
        if negative {
            gmp::mpn_sub(target, target, length, source, count);
        } else {
            gmp::mpn_add(target, target, length, source, count);
        }
    }
}

/// Writes `magnitude << bits`, for fewer than 64 bits, into one limb more than `magnitude` has; returns that number.
#[inline]
fn shift_up(out: &mut [u64], magnitude: &[u64], bits: u32) -> usize {
    let count = magnitude.len();
    let Some(&top) = magnitude.last() else { return 0 };
    out[0] = magnitude[0] << bits;
    for (limb, pair) in out[1..count].iter_mut().zip(magnitude.windows(2)) {
        *limb = (pair[1] << bits) | ((pair[0] >> 1) >> (63 - bits));
    }
    out[count] = (top >> 1) >> (63 - bits);
    count + 1
}

/// Replaces a number in two's complement by its magnitude; returns whether it was negative. At least 1 limb (asserted).
#[inline]
pub fn to_magnitude(sum: &mut [u64]) -> bool {
    let negative = sum[sum.len() - 1] >> 63 == 1;
    if negative {
        let target = sum.as_mut_ptr();
        // SAFETY: the length is that of the slice and not 0 (the line above reads its last limb); the function allows
        // the result to be its operand.
        unsafe { gmp::mpn_neg(target, target, sum.len() as size_t) };
    }
    negative
}

/// Writes the number in one of eight lanes, from vectors of digits below `2^52`, the lowest first, into the whole of
/// `out`.
pub fn from_lane(digits: &[u64], lane: usize, out: &mut [u64]) {
    out.fill(0);
    for (at, digits) in digits.chunks_exact(BLOCK).enumerate() {
        let bit = at as u32 * IFMA52_BITS;
        let (limb, bit) = ((bit / LIMB_BITS) as usize, bit % LIMB_BITS);
        out[limb] |= digits[lane] << bit;
        if bit > LIMB_BITS - IFMA52_BITS {
            out[limb + 1] |= digits[lane] >> (LIMB_BITS - bit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::test_integers::limbs;
    use rug::{Complete, Integer, rand::RandState};

    #[test]
    fn sums_of_products_equal_the_big_integers() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(5));
        for count in [1usize, 2, 3, 4, 5, 6, 7, 8, 9, 17, 63, 200] {
            let mut random = || Integer::from(Integer::random_bits(64 * count as u32, &mut rng));
            let (a, b, c) = (random(), random(), random());
            let mut product = vec![0xdead; 2 * count];
            multiply(&mut product, &limbs(&a, count), &limbs(&b, count));
            assert_eq!(product, limbs(&(&a * &b).into(), 2 * count));
            for short in 1..=count {
                let mut product = vec![0xdead; count + short];
                let cut = b.clone().keep_bits(64 * short as u32);
                multiply_any(&mut product, &limbs(&cut, short), &limbs(&a, count));
                assert_eq!(product, limbs(&(&a * cut), count + short));
            }
            let squared = limbs(&a.clone().square(), 2 * count);
            if b != 0 {
                let divisor = limbs(&b, b.significant_digits::<u64>());
                let room = 2 * count - divisor.len() + 1;
                let (mut quotient, mut remainder) = (vec![0xdead; room], vec![0xdead; divisor.len()]);
                divide(&mut quotient, &mut remainder, &squared, &divisor);
                let (want, rest) = a.clone().square().div_rem(b.clone());
                assert_eq!((quotient, remainder), (limbs(&want, room), limbs(&rest, divisor.len())));
            }
            if a != 0 {
                let number = limbs(&a, a.significant_digits::<u64>());
                let (mut root, mut rest) = (vec![0xdead; number.len().div_ceil(2)], vec![0xdead; number.len()]);
                let left = square_root(&mut root, &mut rest, &number);
                let (want, remainder) = a.clone().sqrt_rem(Integer::new());
                assert_eq!((root.clone(), &rest[..left]), (limbs(&want, root.len()), &limbs(&remainder, left)[..]));
            }
            for (room, negative) in [(2 * count + 1, false), (2 * count + 1, true), (2 * count + 4, true)] {
                let mut sum = limbs(&c, room);
                add_product(&mut sum, &limbs(&a, count), &limbs(&b, count), negative, &mut vec![0; 2 * count]);
                let product = (&a * &b).complete();
                let want = if negative { &c - product } else { &c + product };
                let modulus = Integer::from(1) << (64 * room as u32);
                assert_eq!(sum, limbs(&want.modulo(&modulus), room), "{count} limbs");
            }
            let (mut difference, subtrahend) = (limbs(&a, count), limbs(&b, count));
            subtract_equal(&mut difference, &subtrahend);
            let modulus = Integer::from(1) << (64 * count as u32);
            assert_eq!(difference, limbs(&Integer::from(&a - &b).modulo(&modulus), count));
            let mut sum = vec![u64::MAX; 2 * count + 1]; // -1 modulo the limbs
            subtract_assign(&mut sum, &product);
            negate(&mut sum); // 1 + product
            assert_eq!(sum, limbs(&(Integer::from(&a * &b) + 1u32), 2 * count + 1));
            sum.fill(u64::MAX);
            increment(&mut sum);
            assert_eq!(sum, vec![0; 2 * count + 1]);
            sum.fill(u64::MAX);
            add_assign(&mut sum, &product);
            add_assign(&mut sum, &limbs(&c, count));
            let want = Integer::from(&a * &b) + &c - 1u32;
            assert_eq!(sum, limbs(&want, 2 * count + 1), "{count} limbs");
        }
    }
    #[test]
    fn shifted_products_equal_their_shifted_sums() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(7));
        let mut met = 0;
        for case in 0..20000u32 {
            let width = 1 + rng.below(9) as usize;
            let (a, b) = [(width, width), (1, width), (width, 1), (width, 2)][case as usize % 4];
            let mut random = |count: usize| match rng.below(5) {
                0 => vec![u64::MAX; count],
                _ => limbs(&Integer::from(Integer::random_bits(64 * count as u32, &mut rng)), count),
            };
            let (x, y, start) = (random(a), random(b), random(width + 2));
            let shift = i64::from(rng.below(100)) - i64::from(rng.below(64 * (a + b) as u32 + 200));
            let (mut got, mut want) = (start.clone(), start.clone());
            let mut product = vec![0; a + b];
            multiply_any(&mut product, &x, &y);
            fixed::add_shifted(&mut want, &product, shift, case % 2 == 0);
            match add_shifted_product(&mut got, &x, &y, shift, case % 2 == 0) {
                true => assert_eq!(got, want, "case {case}: {a} by {b} limbs, shifted by {shift}"),
                false => assert!(got == start && (shift >= 0 || case % 4 == 3 || width > 8), "case {case}"),
            }
            met += u32::from(got != start);
        }
        assert!(met > 8000, "{met} products have been added");
    }

    #[test]
    fn shifted_sums_equal_the_plain_ones() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(6));
        for case in 0..6000u32 {
            let room = 1 + rng.below(60) as usize;
            let count = rng.below(SHIFTED_LIMBS as u32 + 3);
            let magnitude = limbs(&Integer::from(Integer::random_bits(64 * count, &mut rng)), count as usize);
            let start = limbs(&Integer::from(Integer::random_bits(64 * room as u32, &mut rng)), room);
            let shift = i64::from(rng.below(8000)) - 4000;
            let (mut got, mut want) = (start.clone(), start);
            add_shifted(&mut got, &magnitude, shift, case % 2 == 0);
            fixed::add_shifted(&mut want, &magnitude, shift, case % 2 == 0);
            assert_eq!(got, want, "case {case}: {count} limbs by {shift} into {room}");
            assert_eq!((to_magnitude(&mut got), got), (fixed::to_magnitude(&mut want), want));
        }
    }
}
