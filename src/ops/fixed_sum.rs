//! Sums of products of big floats, scalar by scalar: the leading bits of a sum in fixed point, below its largest term.
//!
//! Promise: a sum of `n` products is off by less than `n 2^(-p - 63)` times its largest term, for a precision of `p`
//! bits. Its bits depend only on the terms. Proof: docs/ALGORITHM.md, "Sums scalar by scalar".

use crate::comm::say_fields;
use crate::kernels::limbs;
use crate::math::bound::FIXED_SUM_EXTRA_LIMBS;
use crate::math::float::{FloatRef, Head, limbs_for, round_integer};
use crate::ops::exact_sum::ExactEntry;
use rug::Float;

/// Bits above the largest term: for the carries of `2^60` terms and the sign.
const HEADROOM_BITS: i64 = 62;

/// Room for one sum at a time.
pub(crate) struct FixedSum {
    precision_bits: u32,
    /// Power of two of the lowest bit.
    low: i64,
    /// In two's complement.
    limbs: Vec<u64>,
    /// Room for a product that is not added as it is formed: as large as the longest one so far needed.
    product: Vec<u64>,
}

/// Whether products are added or subtracted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

impl FixedSum {
    /// Bytes of the limbs that [`FixedSum::new`] takes.
    pub fn bytes(precision_bits: u32) -> u64 {
        24 * (limbs_for(precision_bits) + FIXED_SUM_EXTRA_LIMBS) as u64
    }

    /// Room for sums that are rounded to `precision_bits`.
    pub fn new(precision_bits: u32) -> FixedSum {
        let count = limbs_for(precision_bits) + FIXED_SUM_EXTRA_LIMBS;
        FixedSum { precision_bits, low: 0, limbs: vec![0; count], product: Vec::new() }
    }

    /// `first + sum x y`, or `first - sum x y`, over fewer than `2^60` pairs `(x, y)`.
    #[inline]
    pub fn set<'x>(
        &mut self,
        first: FloatRef<'_>,
        pairs: impl Iterator<Item = (FloatRef<'x>, FloatRef<'x>)> + Clone,
        sign: Sign,
    ) {
        let own = (!first.head.is_zero()).then(|| first.head.exponent());
        self.begin(FixedSum::top(pairs.clone()).max(own).unwrap_or(0));
        self.add(first);
        self.add_products(pairs, sign);
    }

    /// `sum x y` over fewer than `2^60` pairs `(x, y)`.
    #[inline]
    pub fn set_products<'x>(&mut self, pairs: impl Iterator<Item = (FloatRef<'x>, FloatRef<'x>)> + Clone) {
        self.begin(FixedSum::top(pairs.clone()).unwrap_or(0));
        self.add_products(pairs, Sign::Plus);
    }

    /// The power of two above all products, or `None` where all are 0.
    #[inline]
    pub fn top<'x>(pairs: impl Iterator<Item = (FloatRef<'x>, FloatRef<'x>)>) -> Option<i64> {
        pairs.filter_map(|(x, y)| product_top(x.head, y.head)).max()
    }

    /// Begins a sum of terms below 2 to the power `top`.
    #[inline]
    pub fn begin(&mut self, top: i64) {
        self.limbs.resize(limbs_for(self.precision_bits) + FIXED_SUM_EXTRA_LIMBS, 0);
        self.low = top + HEADROOM_BITS - 64 * self.limbs.len() as i64;
        self.limbs.fill(0);
    }

    /// Takes the sum from elsewhere: `count` limbs in two's complement with the lowest bit `2^low`, which the caller
    /// writes next.
    pub fn take(&mut self, low: i64, count: usize) -> &mut [u64] {
        self.low = low;
        self.limbs.resize(count, 0);
        &mut self.limbs
    }

    /// Adds or subtracts products.
    #[inline]
    pub fn add_products<'x>(&mut self, pairs: impl Iterator<Item = (FloatRef<'x>, FloatRef<'x>)>, sign: Sign) {
        for (x, y) in pairs {
            self.add_product(x, y, sign);
        }
    }

    /// The sum so far, in two's complement: sums that began alike can be added.
    pub fn limbs(&mut self) -> &mut [u64] {
        &mut self.limbs
    }

    /// Adds a number; bits below the sum's lowest one are left out.
    pub fn add(&mut self, value: FloatRef<'_>) {
        if !value.head.is_zero() {
            let value = ExactEntry::from(value);
            limbs::add_shifted(&mut self.limbs, value.magnitude, value.exponent - self.low, value.negative);
        }
    }

    /// Adds or subtracts a product; limbs of either factor that cannot matter are left out.
    #[inline]
    fn add_product(&mut self, x: FloatRef<'_>, y: FloatRef<'_>, sign: Sign) {
        if product_top(x.head, y.head).is_none_or(|top| top <= self.low) {
            return;
        }
        let (x, y) = (leading(x, self.limbs.len()), leading(y, self.limbs.len()));
        let low = x.head.exponent() + y.head.exponent() - 64 * (x.limbs.len() + y.limbs.len()) as i64 - self.low;
        let subtracted = (x.head.is_negative() != y.head.is_negative()) != (sign == Sign::Minus);
        if limbs::add_shifted_product(&mut self.limbs, x.limbs, y.limbs, low, subtracted) {
            return;
        }
        let product = room_for(&mut self.product, x.limbs.len() + y.limbs.len());
        limbs::multiply_any(product, x.limbs, y.limbs);
        limbs::add_shifted(&mut self.limbs, product, low, subtracted);
    }

    /// The sum as it is, cut terms left out; the sum is destroyed.
    pub fn exact(&mut self) -> ExactEntry<'_> {
        let negative = limbs::to_magnitude(&mut self.limbs);
        ExactEntry { negative, magnitude: &self.limbs, exponent: self.low }
    }

    /// The sum, rounded into `out`; the sum is destroyed.
    pub fn round(&mut self, out: &mut [u64]) -> Head {
        let precision_bits = self.precision_bits;
        let ExactEntry { negative, magnitude, exponent } = self.exact();
        round_integer(negative, magnitude, exponent, precision_bits, out)
    }

    /// The sum times a number, rounded into `out`; the sum is destroyed.
    pub fn round_product(&mut self, factor: &OwnFloat, out: &mut [u64]) -> Head {
        let factor = factor.get();
        let negative = limbs::to_magnitude(&mut self.limbs) != factor.head.is_negative();
        let factor = leading(factor, self.limbs.len());
        let product = room_for(&mut self.product, self.limbs.len() + factor.limbs.len());
        limbs::multiply_any(product, &self.limbs, factor.limbs);
        let exponent = self.low + factor.head.exponent() - 64 * factor.limbs.len() as i64;
        round_integer(negative, product, exponent, self.precision_bits, out)
    }

    /// The sum divided by a number other than 0, rounded once into `out`; the sum is destroyed. `room` is scratch that
    /// grows as needed.
    pub fn round_quotient(&mut self, divisor: FloatRef<'_>, room: &mut Vec<u64>, out: &mut [u64]) -> Head {
        let low = self.low;
        let negative = limbs::to_magnitude(&mut self.limbs) != divisor.head.is_negative();
        let count = self.limbs.iter().rposition(|&limb| limb != 0).map_or(0, |top| top + 1);
        if count == 0 {
            out.fill(0);
            return Head::ZERO;
        }
        // The quotient of the integers has a limb more than the precision, and the remainder decides the rounding.
        let divided = divisor.limbs.len();
        let length = count.max(divided + out.len() + 2);
        room.clear();
        room.reserve_exact(2 * length + 1);
        room.resize(length - count, 0);
        room.extend_from_slice(&self.limbs[..count]);
        room.resize(2 * length + 1, 0);
        let (numerator, rest) = room.split_at_mut(length);
        let (quotient, remainder) = rest.split_at_mut(length - divided + 1);
        limbs::divide(quotient, remainder, numerator, divisor.limbs);
        quotient[0] |= u64::from(remainder.iter().any(|&limb| limb != 0));
        let exponent = low - 64 * (length - count) as i64 - divisor.head.exponent() + 64 * divided as i64;
        round_integer(negative, quotient, exponent, self.precision_bits, out)
    }

    /// Bytes of the scratch of [`FixedSum::round_quotient`] for divisors of `divisor_limbs` limbs.
    pub fn quotient_bytes(precision_bits: u32, divisor_limbs: usize) -> u64 {
        16 * (divisor_limbs + limbs_for(precision_bits) + FIXED_SUM_EXTRA_LIMBS) as u64 + 8
    }

    /// `value * factor`, rounded into `out`.
    pub fn multiply(&mut self, value: FloatRef<'_>, factor: &OwnFloat, out: &mut [u64]) -> Head {
        self.set(value, std::iter::empty(), Sign::Plus);
        self.round_product(factor, out)
    }
}

/// The number cut to its leading limbs.
#[inline]
fn leading(value: FloatRef<'_>, count: usize) -> FloatRef<'_> {
    FloatRef { limbs: &value.limbs[value.limbs.len().saturating_sub(count)..], ..value }
}

/// Exponent of the power of two above the product of two numbers, or `None` where it is 0.
#[inline]
fn product_top(x: Head, y: Head) -> Option<i64> {
    (!x.is_zero() && !y.is_zero()).then(|| x.exponent() + y.exponent())
}

/// `limbs` limbs of a room that grows as needed.
fn room_for(room: &mut Vec<u64>, limbs: usize) -> &mut [u64] {
    if room.len() < limbs {
        room.resize(limbs, 0);
    }
    &mut room[..limbs]
}

/// A number with limbs of its own.
#[derive(Clone, Debug)]
pub(crate) struct OwnFloat {
    head: Head,
    limbs: Vec<u64>,
}

say_fields! { OwnFloat { head, limbs } }

impl OwnFloat {
    /// A finite float, exactly.
    pub fn new(value: &Float) -> OwnFloat {
        let Some((integer, exponent)) = value.to_integer_exp().filter(|(integer, _)| *integer != 0) else {
            return OwnFloat { head: Head::ZERO, limbs: vec![0] };
        };
        let mut limbs = vec![0; limbs_for(integer.significant_bits())];
        let bits = 64 * limbs.len() as u32;
        let head = round_integer(integer < 0, integer.as_limbs(), exponent.into(), bits, &mut limbs);
        OwnFloat { head, limbs }
    }

    /// `1 / value` to a relative error below `2^(-precision_bits - 64)`; `value` is not 0 (asserted).
    pub fn reciprocal(value: FloatRef<'_>, precision_bits: u32) -> OwnFloat {
        assert!(!value.head.is_zero(), "no reciprocal of 0");
        // The exponent is omitted, so that no number leaves MPFR's range.
        let fraction = FloatRef { head: Head::new(value.head.is_negative(), 0), ..value };
        let fraction = fraction.to_float(64 * value.limbs.len() as u32);
        let own = OwnFloat::new(&Float::with_val(precision_bits + 64, fraction.recip_ref()));
        own.shifted(-value.head.exponent())
    }

    /// The number times `2^shift`; it is not 0 (asserted).
    pub fn shifted(mut self, shift: i64) -> OwnFloat {
        assert!(!self.head.is_zero(), "0 has no exponent");
        self.head = Head::new(self.head.is_negative(), self.head.exponent() + shift);
        self
    }

    /// The number, borrowed.
    pub fn get(&self) -> FloatRef<'_> {
        FloatRef { head: self.head, limbs: &self.limbs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use rug::Integer;
    use rug::rand::RandState;

    /// `count` random numbers with exponents up to `spread` from 0, some of them 0.
    fn numbers(rng: &mut RandState<'_>, (count, bits): (usize, u32), spread: u32) -> Matrix {
        let mut matrix = Matrix::zeros(count, 1, bits).unwrap();
        for row in 0..count {
            let integer = Integer::from(Integer::random_bits(bits, rng));
            let integer = if rng.below(5) == 0 { Integer::new() } else { integer };
            let exponent = i64::from(rng.below(2 * spread + 1)) - i64::from(spread) - i64::from(bits);
            matrix.set_integer_exponent(row, 0, &if rng.below(2) == 0 { -integer } else { integer }, exponent).unwrap();
        }
        matrix
    }

    #[test]
    fn sums_and_their_products_are_right_beside_their_largest_term() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(41));
        let mut room = Vec::new();
        for case in 0..600u32 {
            let (count, spread) = (case as usize % 40, [0, 3, 90, 5000][case as usize % 4]);
            let (x_bits, y_bits, bits) = (2 + rng.below(300), 2 + rng.below(700), 2 + rng.below(400));
            let (x, y) = (numbers(&mut rng, (count, x_bits), spread), numbers(&mut rng, (count, y_bits), spread));
            let (first, factor) = (numbers(&mut rng, (1, 80), spread), numbers(&mut rng, (1, 333), 9));
            let divisor_bits = 2 + rng.below(500);
            let sign = if case % 3 == 0 { Sign::Plus } else { Sign::Minus };
            let wide = 40_000;
            let mut want = Float::with_val(wide, first.float(0, 0));
            let mut largest = Float::with_val(60, want.abs_ref());
            for k in 0..count {
                let product = Float::with_val(wide, &x.float(k, 0) * &y.float(k, 0));
                largest = largest.max(&Float::with_val(60, product.abs_ref()));
                want += if sign == Sign::Plus { product } else { -product };
            }
            let mut sum = FixedSum::new(bits);
            let mut out = vec![0; limbs_for(bits)];
            let pairs = (0..count).map(|k| (x.get(k, 0), y.get(k, 0)));
            let cut = Float::with_val(60, &largest >> (bits + 20));
            let check = |head: Head, out: &[u64], want: Float, cut: Float| {
                let got = FloatRef { head, limbs: out }.to_float(bits);
                let error = Float::with_val(60, &want - &got).abs();
                let bound = Float::with_val(60, Float::with_val(60, got.abs_ref()) >> bits) + cut;
                assert!(error <= bound, "case {case}: {error:.3e} above {bound:.3e}");
            };
            sum.set(first.get(0, 0), pairs.clone(), sign);
            let head = sum.round(&mut out);
            check(head, &out, want.clone(), cut.clone());
            let factor = factor.float(0, 0);
            sum.set(first.get(0, 0), pairs.clone(), sign);
            let head = sum.round_product(&OwnFloat::new(&factor), &mut out);
            let product_cut = Float::with_val(60, &cut * Float::with_val(60, factor.abs_ref()));
            check(head, &out, Float::with_val(wide, &want * &factor), product_cut);
            let divisor = numbers(&mut rng, (1, divisor_bits), 9);
            if divisor.get(0, 0).head.is_zero() {
                continue;
            }
            sum.set(first.get(0, 0), pairs, sign);
            let head = sum.round_quotient(divisor.get(0, 0), &mut room, &mut out);
            let divisor = divisor.float(0, 0);
            let quotient_cut = Float::with_val(60, &cut / Float::with_val(60, divisor.abs_ref()));
            check(head, &out, want / &divisor, quotient_cut);
        }
    }

    #[test]
    fn reciprocals_are_right_for_any_exponent() {
        for (value, shift) in [(3.0, 0), (-0.7, 1 << 40), (1.0, -(1 << 40))] {
            let matrix = Matrix::from_f64s(1, 1, 100, &[value]).unwrap();
            let number = matrix.get(0, 0);
            let head = Head::new(number.head.is_negative(), number.head.exponent() + shift);
            let own = OwnFloat::reciprocal(FloatRef { head, ..number }, 150).shifted(shift);
            let want = Float::with_val(300, value).recip();
            let error = Float::with_val(60, own.get().to_float(300) - &want).abs() / want.abs();
            assert!(error <= Float::with_val(60, 1) >> 214, "{value}: {error}");
        }
        assert!(OwnFloat::new(&Float::new(53)).get().head.is_zero());
    }
}
