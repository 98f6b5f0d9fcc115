//! Sums of products of big floats, scalar by scalar: a fixed-point window that holds the leading bits of a sum.
//!
//! Promise: a sum of `k` terms is off by less than `k 2^-63 * 2^-precision` times its largest term. Bits do not
//! depend on anything but the terms and their order.

use crate::kernels::limbs;
use crate::math::bound::WINDOW_EXTRA_LIMBS;
use crate::math::float::{FloatRef, Head, limbs_for, round_integer};
use crate::ops::combine::ExactEntry;
use rug::Float;

/// Space for one sum at a time.
pub(crate) struct Window {
    precision_bits: u32,
    low: i64,
    sum: Vec<u64>,
    product: Vec<u64>,
}

/// How a term enters a sum.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

impl Window {
    /// A window for sums that are rounded to `precision_bits`.
    pub fn new(precision_bits: u32) -> Window {
        let count = limbs_for(precision_bits) + WINDOW_EXTRA_LIMBS;
        Window { precision_bits, low: 0, sum: vec![0; count], product: vec![0; 2 * count] }
    }

    /// Starts a sum of fewer than `2^60` terms, each below `2^top`.
    pub fn open(&mut self, top: i64) {
        self.low = top + 62 - 64 * self.sum.len() as i64;
        self.sum.fill(0);
    }

    /// Adds or subtracts a number.
    #[inline]
    pub fn add(&mut self, value: FloatRef<'_>, sign: Sign) {
        if !value.head.is_zero() {
            let value = ExactEntry::from(value);
            let negative = value.negative != (sign == Sign::Minus);
            limbs::add_shifted(&mut self.sum, value.magnitude, value.exponent - self.low, negative);
        }
    }

    /// Adds or subtracts the product of two numbers; limbs of either that cannot matter are left out.
    #[inline]
    pub fn add_product(&mut self, x: FloatRef<'_>, y: FloatRef<'_>, sign: Sign) {
        if x.head.is_zero() || y.head.is_zero() || x.head.exponent() + y.head.exponent() <= self.low {
            return;
        }
        let (x, y) = (leading(x, self.sum.len()), leading(y, self.sum.len()));
        let product = &mut self.product[..x.limbs.len() + y.limbs.len()];
        limbs::multiply_any(product, x.limbs, y.limbs);
        let exponent = x.head.exponent() + y.head.exponent() - 64 * product.len() as i64;
        let negative = (x.head.is_negative() != y.head.is_negative()) != (sign == Sign::Minus);
        limbs::add_shifted(&mut self.sum, product, exponent - self.low, negative);
    }

    /// The sum, rounded to the precision into `out`; the window must be opened again.
    pub fn round(&mut self, out: &mut [u64]) -> Head {
        let negative = limbs::to_magnitude(&mut self.sum);
        round_integer(negative, &self.sum, self.low, self.precision_bits, out)
    }

    /// Starts a sum with its only term.
    pub fn hold(&mut self, value: FloatRef<'_>) {
        self.open(value.head.exponent());
        self.add(value, Sign::Plus);
    }

    /// `value * factor`, rounded to the precision into `out`.
    pub fn multiply(&mut self, value: FloatRef<'_>, factor: &OwnFloat, out: &mut [u64]) -> Head {
        self.hold(value);
        self.round_product(factor.get(), out)
    }

    /// The sum times a number, rounded to the precision into `out`; the window must be opened again.
    pub fn round_product(&mut self, factor: FloatRef<'_>, out: &mut [u64]) -> Head {
        let negative = limbs::to_magnitude(&mut self.sum) != factor.head.is_negative();
        let factor = leading(factor, self.sum.len());
        let product = &mut self.product[..self.sum.len() + factor.limbs.len()];
        limbs::multiply_any(product, &self.sum, factor.limbs);
        let exponent = self.low + factor.head.exponent() - 64 * factor.limbs.len() as i64;
        round_integer(negative, product, exponent, self.precision_bits, out)
    }
}

/// The number cut to its leading limbs.
#[inline]
fn leading(value: FloatRef<'_>, count: usize) -> FloatRef<'_> {
    FloatRef { limbs: &value.limbs[value.limbs.len().saturating_sub(count)..], ..value }
}

/// Exponent above the product of two numbers, or `None` where it is 0.
#[inline]
pub(crate) fn product_top(x: Head, y: Head) -> Option<i64> {
    (!x.is_zero() && !y.is_zero()).then(|| x.exponent() + y.exponent())
}

/// A number of its own limbs.
#[derive(Clone, Debug)]
pub(crate) struct OwnFloat {
    head: Head,
    limbs: Vec<u64>,
}

impl OwnFloat {
    /// A finite float, exactly.
    pub fn new(value: &Float) -> OwnFloat {
        let Some((integer, exponent)) = value.to_integer_exp().filter(|(integer, _)| *integer != 0) else {
            return OwnFloat { head: Head::ZERO, limbs: vec![0] };
        };
        let bits = integer.significant_bits();
        let mut limbs = vec![0; limbs_for(bits)];
        let head =
            round_integer(integer < 0, integer.as_limbs(), exponent.into(), 64 * limbs_for(bits) as u32, &mut limbs);
        OwnFloat { head, limbs }
    }

    /// `1 / value` to a relative error below `2^-(precision_bits + 62)`; `value` is not 0 (asserted).
    pub fn reciprocal(value: FloatRef<'_>, precision_bits: u32) -> OwnFloat {
        assert!(!value.head.is_zero(), "no reciprocal of 0");
        let bits = precision_bits + 64;
        // The exponent is left out, so that nothing leaves MPFR's range.
        let fraction = FloatRef { head: Head::new(value.head.is_negative(), 0), ..value };
        let fraction = fraction.to_float(64 * value.limbs.len() as u32);
        let mut own = OwnFloat::new(&Float::with_val(bits, fraction.recip_ref()));
        own.head = Head::new(own.head.is_negative(), own.head.exponent() - value.head.exponent());
        own
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
