//! Sizes of big floats, to a few digits and without a limit on the exponent: for error bounds and estimates.

use crate::math::float::FloatRef;
use rug::Float;

/// The number `fraction * 2^exponent`, the fraction 0 or in `[1/2, 1)`, with a relative error of at most `2^-48`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Magnitude {
    fraction: f64,
    exponent: i64,
}

impl Magnitude {
    /// The number 0.
    pub const ZERO: Magnitude = Magnitude { fraction: 0.0, exponent: 0 };

    /// `|value|`.
    pub fn of(value: FloatRef<'_>) -> Magnitude {
        if value.head.is_zero() {
            return Magnitude::ZERO;
        }
        let top = value.limbs[value.limbs.len() - 1];
        Magnitude::new((top >> 11) as f64 / 9_007_199_254_740_992.0, value.head.exponent())
    }

    /// `2^exponent`.
    pub fn power_of_two(exponent: i64) -> Magnitude {
        Magnitude { fraction: 0.5, exponent: exponent + 1 }
    }

    /// `fraction * 2^exponent` for a finite fraction of at least 0.
    fn new(fraction: f64, exponent: i64) -> Magnitude {
        if fraction == 0.0 {
            return Magnitude::ZERO;
        }
        let own = ((fraction.to_bits() >> 52) & 0x7ff) as i64 - 1022; // fractions here are never subnormal
        Magnitude { fraction: fraction * 2f64.powi(-own as i32), exponent: exponent + own }
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.fraction == 0.0
    }

    /// The exponent; `i64::MIN` for 0.
    pub fn exponent(&self) -> i64 {
        if self.is_zero() { i64::MIN } else { self.exponent }
    }

    /// The sum.
    pub fn plus(self, other: Magnitude) -> Magnitude {
        let (large, small) = if self.exponent() >= other.exponent() { (self, other) } else { (other, self) };
        if small.is_zero() || large.exponent - small.exponent > 60 {
            return large;
        }
        let shift = (small.exponent - large.exponent) as i32;
        Magnitude::new(large.fraction + small.fraction * 2f64.powi(shift), large.exponent)
    }

    /// The product.
    pub fn times(self, other: Magnitude) -> Magnitude {
        Magnitude::new(self.fraction * other.fraction, self.exponent + other.exponent)
    }

    /// The quotient; `divisor` is not 0 (asserted).
    pub fn over(self, divisor: Magnitude) -> Magnitude {
        assert!(!divisor.is_zero(), "a quotient by 0");
        Magnitude::new(self.fraction / divisor.fraction, self.exponent - divisor.exponent)
    }

    /// The larger one.
    pub fn max(self, other: Magnitude) -> Magnitude {
        let key = |value: &Magnitude| (value.exponent(), value.fraction);
        if key(&other) > key(&self) { other } else { self }
    }

    /// The number with 53 bits; infinite or 0 outside MPFR's exponent range.
    pub fn to_float(self) -> Float {
        let exponent = self.exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Float::with_val(53, self.fraction) << exponent
    }

    /// At least `log2(self / whole * (1 + 2^-9) + 2^floor)`, and at most one above it; `whole` is not 0 (asserted).
    pub fn log2_over(&self, whole: &Magnitude, floor: i64) -> i64 {
        assert!(!whole.is_zero(), "a quotient by 0");
        if self.is_zero() {
            return floor;
        }
        let exponent = self.exponent - whole.exponent;
        if floor - exponent > 60 {
            return floor + 1;
        }
        let least = 2f64.powi((floor - exponent).max(-1000) as i32);
        let sum = self.fraction / whole.fraction * (1.0 + 1.0 / 512.0) + least;
        exponent + sum.log2().ceil() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    fn magnitude(value: f64) -> Magnitude {
        Magnitude::of(Matrix::from_f64s(1, 1, 60, &[value]).unwrap().get(0, 0))
    }

    #[test]
    fn sums_and_quotients_are_those_of_doubles() {
        for (x, y) in [(1.0, 3.0), (-0.75, 1e-9), (5e20, 7.0), (0.0, 2.0), (1e-150, 1e150), (0.0, 0.0)] {
            let sum = magnitude(x).plus(magnitude(y));
            assert_eq!(sum, magnitude(f64::abs(x) + f64::abs(y)), "{x} and {y}");
            assert_eq!(magnitude(x).max(magnitude(y)).to_float(), f64::abs(x).max(f64::abs(y)));
            assert_eq!(magnitude(x).times(magnitude(y)).to_float().to_f64(), f64::abs(x) * f64::abs(y));
            if y != 0.0 && x != 0.0 {
                assert_eq!(magnitude(x).over(magnitude(y)).to_float().to_f64(), f64::abs(x) / f64::abs(y));
                let wanted = f64::abs(x).log2() - f64::abs(y).log2();
                let found = magnitude(x).log2_over(&magnitude(y), -5000) as f64;
                assert!(found >= wanted && found <= wanted + 1.01, "{x} over {y}: {found}");
            }
        }
        assert_eq!(magnitude(0.0).log2_over(&magnitude(2.0), -70), -70);
        assert_eq!(magnitude(1.0).log2_over(&magnitude(1.0), 0), 2);
        assert_eq!(magnitude(1e-300).log2_over(&magnitude(1.0), -10), -9);
        assert_eq!(magnitude(0.0).exponent(), i64::MIN);
    }
}
