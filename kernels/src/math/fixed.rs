//! Signed sums in fixed point on a slice of limbs, in two's complement.
//!
//! Depends on: limbs and shifts. Independent of: the position of the point, floats, products.

/// `sum := sum + magnitude * 2^shift`, or minus it, modulo the limbs of `sum`.
///
/// With a negative shift the bits of the magnitude that fall below the sum are cut off.
#[inline]
pub fn add_shifted(sum: &mut [u64], magnitude: &[u64], shift: i64, negative: bool) {
    let (word, bits) = (shift.div_euclid(64), shift.rem_euclid(64) as u32);
    let (skip, dropped) = if word >= 0 { (word as u64, 0) } else { (0, word.unsigned_abs()) };
    let (Ok(skip), Ok(dropped)) = (usize::try_from(skip), usize::try_from(dropped)) else { return };
    if skip >= sum.len() || dropped > magnitude.len() {
        return;
    }
    let below = if dropped > 0 { magnitude[dropped - 1] } else { 0 };
    let (sum, magnitude) = (&mut sum[skip..], &magnitude[dropped..]);
    if negative { subtract(sum, magnitude, bits, below) } else { add(sum, magnitude, bits, below) }
}

/// The upper limb of `(limb, below) << bits`, for fewer than 64 bits.
#[inline]
fn join(limb: u64, below: u64, bits: u32) -> u64 {
    (limb << bits) | ((below >> 1) >> (63 - bits))
}

#[inline]
fn add(sum: &mut [u64], magnitude: &[u64], bits: u32, mut below: u64) {
    let mut carry = false;
    let mut step = |limb: &mut u64, word: u64| {
        let (partial, first) = limb.overflowing_add(word);
        let (total, second) = partial.overflowing_add(u64::from(carry));
        (*limb, carry) = (total, first | second);
        carry
    };
    let count = sum.len().min(magnitude.len());
    for (limb, &word) in sum.iter_mut().zip(magnitude) {
        step(limb, join(word, below, bits));
        below = word;
    }
    let mut rest = sum[count..].iter_mut();
    if let Some(limb) = rest.next()
        && step(limb, join(0, below, bits))
    {
        rest.all(|limb| step(limb, 0)); // until the carry is used up
    }
}

#[inline]
fn subtract(sum: &mut [u64], magnitude: &[u64], bits: u32, mut below: u64) {
    let mut borrow = false;
    let mut step = |limb: &mut u64, word: u64| {
        let (partial, first) = limb.overflowing_sub(word);
        let (total, second) = partial.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (total, first | second);
        borrow
    };
    let count = sum.len().min(magnitude.len());
    for (limb, &word) in sum.iter_mut().zip(magnitude) {
        step(limb, join(word, below, bits));
        below = word;
    }
    let mut rest = sum[count..].iter_mut();
    if let Some(limb) = rest.next()
        && step(limb, join(0, below, bits))
    {
        rest.all(|limb| step(limb, 0));
    }
}

/// Replaces `sum` by its magnitude; returns whether it was negative.
#[inline]
pub fn to_magnitude(sum: &mut [u64]) -> bool {
    let negative = sum.last().is_some_and(|top| top >> 63 == 1);
    if negative {
        let mut carry = true;
        for limb in sum {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }
    negative
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::integer::Order;
    use rug::{Integer, rand::RandState};

    #[test]
    fn shifted_sums_equal_the_big_integers() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(31));
        for case in 0..4000u32 {
            let limbs = 1 + rng.below(9) as usize;
            let room = 64 * limbs as u32;
            let start = Integer::from(Integer::random_bits(room - 2, &mut rng));
            let bits = rng.below(room + 100);
            let magnitude = Integer::from(Integer::random_bits(bits, &mut rng));
            let shift = i64::from(rng.below(2 * room)) - i64::from(bits.max(room));
            let moved = if shift >= 0 {
                Integer::from(&magnitude << shift as u32)
            } else {
                Integer::from(&magnitude >> (-shift) as u32)
            };
            let negative = case % 2 == 0;
            let want = if negative { start.clone() - moved } else { start.clone() + moved };
            let modulus = Integer::from(1) << room;
            let wrapped = |value: &Integer| {
                let mut limbs = Integer::from(value.modulo_ref(&modulus)).to_digits::<u64>(Order::Lsf);
                limbs.resize(room as usize / 64, 0);
                limbs
            };
            let mut sum = wrapped(&start);
            add_shifted(&mut sum, magnitude.as_limbs(), shift, negative);
            assert_eq!(sum, wrapped(&want), "case {case}: {start} and {magnitude} * 2^{shift}");
            if want.significant_bits() < room {
                assert_eq!(to_magnitude(&mut sum), want < 0);
                assert_eq!(sum, wrapped(&want.abs()), "case {case}");
            }
        }
        add_shifted(&mut [], &[1], 0, false);
        assert!(!to_magnitude(&mut []));
    }
}
