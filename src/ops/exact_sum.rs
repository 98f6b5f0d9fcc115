//! The sum of two exact numbers, rounded once, on limbs.

use crate::kernels::limbs;
use crate::math::float::{FloatRef, Head, bit_length, round_integer};

/// Limbs of the longest sum that is formed here.
const SUM_LIMBS: usize = 256;

/// Limbs of the sums that need less room to be cleared, and still less.
const SHORT_SUM_LIMBS: usize = 48;
const LEAST_SUM_LIMBS: usize = 16;

/// The number `(-1)^negative * magnitude * 2^exponent`: one entry of the exact product.
#[derive(Clone, Copy)]
pub(crate) struct ExactEntry<'a> {
    /// Whether it is below 0.
    pub negative: bool,
    /// Little-endian limbs.
    pub magnitude: &'a [u64],
    /// Power of two.
    pub exponent: i64,
}

impl ExactEntry<'_> {
    /// The number 0.
    pub const ZERO: ExactEntry<'static> = ExactEntry { negative: false, magnitude: &[], exponent: 0 };

    /// Exponent of the power of two above the magnitude.
    pub fn top(&self) -> i64 {
        bit_length(self.magnitude) as i64 + self.exponent
    }
}

impl<'a> From<FloatRef<'a>> for ExactEntry<'a> {
    fn from(value: FloatRef<'a>) -> Self {
        let exponent = value.head.exponent() - value.limbs.len() as i64 * 64;
        ExactEntry { negative: value.head.is_negative(), magnitude: value.limbs, exponent }
    }
}

/// Room for one exact product at a time.
pub(crate) struct ExactProduct {
    limbs: Vec<u64>,
}

impl ExactProduct {
    /// Bytes of the room for a product of numbers of `left_limbs` and `right_limbs` limbs.
    pub fn bytes(left_limbs: usize, right_limbs: usize) -> u64 {
        8 * (left_limbs + right_limbs) as u64
    }

    /// Room for products of numbers of `left_limbs` and `right_limbs` limbs.
    pub fn new(left_limbs: usize, right_limbs: usize) -> ExactProduct {
        ExactProduct { limbs: vec![0; left_limbs + right_limbs] }
    }

    /// `x y`, of numbers with exactly the limbs given to [`ExactProduct::new`] (asserted).
    #[inline]
    pub fn of(&mut self, x: FloatRef<'_>, y: FloatRef<'_>) -> ExactEntry<'_> {
        if x.head.is_zero() || y.head.is_zero() {
            return ExactEntry::ZERO;
        }
        limbs::multiply_any(&mut self.limbs, x.limbs, y.limbs);
        let negative = x.head.is_negative() != y.head.is_negative();
        let exponent = x.head.exponent() + y.head.exponent() - 64 * self.limbs.len() as i64;
        ExactEntry { negative, magnitude: &self.limbs, exponent }
    }
}

/// `x + y`, rounded to `precision_bits`, to nearest, ties to even; `None` where the exact sum is too long for this
/// method.
#[inline]
pub(crate) fn round_sum(x: &ExactEntry<'_>, y: &ExactEntry<'_>, precision_bits: u32, out: &mut [u64]) -> Option<Head> {
    let (x_bits, y_bits) = (bit_length(x.magnitude) as i64, bit_length(y.magnitude) as i64);
    let round =
        |one: &ExactEntry<'_>, out| Some(round_integer(one.negative, one.magnitude, one.exponent, precision_bits, out));
    match (x_bits, y_bits) {
        (_, 0) => return round(x, out),
        (0, _) => return round(y, out),
        _ => {}
    }
    // The point lies a whole number of limbs below the unit of `x`, so that `x` is copied as it is.
    let low = x.exponent - 64 * ((x.exponent - y.exponent).max(0) as u64).div_ceil(64) as i64;
    let bits = (x_bits + x.exponent).max(y_bits + y.exponent) - low + 1;
    let count = usize::try_from(bits).ok()?.div_ceil(64) + 1; // one limb more takes the sign
    let x = ExactEntry { magnitude: &x.magnitude[..(x_bits as usize).div_ceil(64)], ..*x };
    let add_in = |sum: &mut [u64], out: &mut [u64]| {
        let skip = ((x.exponent - low) / 64) as usize;
        sum[skip..skip + x.magnitude.len()].copy_from_slice(x.magnitude);
        limbs::add_shifted(sum, y.magnitude, y.exponent - low, x.negative != y.negative);
        let negative = limbs::to_magnitude(sum) != x.negative;
        round_integer(negative, sum, low, precision_bits, out)
    };
    match count {
        0..=LEAST_SUM_LIMBS => Some(add_in(&mut [0; LEAST_SUM_LIMBS][..count], out)),
        count if count <= SHORT_SUM_LIMBS => Some(add_in(&mut [0; SHORT_SUM_LIMBS][..count], out)),
        count if count <= SUM_LIMBS => Some(add_in(&mut [0; SUM_LIMBS][..count], out)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::limbs_for;
    use rug::rand::RandState;
    use rug::{Integer, integer::Order};

    #[test]
    fn sums_are_exact_before_they_are_rounded() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(21));
        for case in 0..6000u32 {
            let mut number = || {
                let bits = rng.below(400);
                let value = Integer::from(Integer::random_bits(bits, &mut rng));
                let value = if rng.below(4) == 0 { value << rng.below(90) } else { value };
                (value, rng.below(2) == 1, i64::from(rng.below(700)) - 350)
            };
            let (x, y) = (number(), number());
            let y = if case % 7 == 0 { (x.0.clone() + case % 3, !x.1, x.2) } else { y };
            let limbs = [&x, &y].map(|(value, ..)| {
                let mut limbs = value.to_digits::<u64>(Order::Lsf);
                limbs.resize(limbs.len() + case as usize % 2, 0);
                limbs
            });
            let exact = |(_, negative, exponent): &(Integer, bool, i64), magnitude| ExactEntry {
                negative: *negative,
                magnitude,
                exponent: *exponent,
            };
            let precision = 2 + case % 260;
            let mut out = vec![0xdead; limbs_for(precision)];
            let head = round_sum(&exact(&x, &limbs[0]), &exact(&y, &limbs[1]), precision, &mut out).unwrap();
            let signed = |(value, negative, exponent): &(Integer, bool, i64)| {
                let value = value.clone() << (exponent + 350) as u32;
                if *negative { -value } else { value }
            };
            let sum = signed(&x) + signed(&y);
            let mut want = vec![0; limbs_for(precision)];
            let wanted = round_integer(sum < 0, sum.as_limbs(), -350, precision, &mut want);
            assert_eq!((head, out), (wanted, want), "case {case}: {x:?} + {y:?}");
        }
    }

    #[test]
    fn a_sum_that_is_too_long_is_left_to_others() {
        let one = ExactEntry { negative: false, magnitude: &[1], exponent: 0 };
        let far = ExactEntry { exponent: 64 * SUM_LIMBS as i64, ..one };
        assert_eq!(round_sum(&one, &far, 64, &mut [0]), None);
        assert!(round_sum(&one, &ExactEntry { exponent: 64 * (SUM_LIMBS as i64 - 2), ..one }, 64, &mut [0]).is_some());
    }
}
