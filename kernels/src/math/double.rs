//! Conversion of doubles to big floats and back, rounded to nearest, ties to even. Independent of: matrices.

use crate::math::float::{FloatRef, Head};

/// The largest exponent `e` of `0.s * 2^e` that a double can have.
pub const DOUBLE_EXPONENT: i64 = f64::MAX_EXP as i64;

/// Bits of a double that stand for its significand, the leading one not among them.
const STORED_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The double nearest to a number, ties to even; infinite beyond the range, and subnormal or 0 below it.
///
/// As `FloatRef::to_f64`, except for that unit in the last place.
pub fn nearest_double(FloatRef { head, limbs }: FloatRef<'_>) -> f64 {
    let Some((&top, rest)) = limbs.split_last().filter(|_| !head.is_zero()) else { return 0.0 };
    let exponent = head.exponent();
    // Bits below the top limb count only where the others are halfway: one of them is enough.
    let significand = top | u64::from(rest.iter().any(|&limb| limb != 0));
    let normal = (exponent - i64::from(f64::MIN_EXP)).max(0);
    let below = (i64::from(f64::MIN_EXP) - exponent).clamp(0, 64) as u32;
    let rounded = shifted(significand, 64 - f64::MANTISSA_DIGITS + below);
    let size = match exponent {
        ..=DOUBLE_EXPONENT => f64::from_bits(((normal as u64) << STORED_BITS) + rounded),
        _ => f64::INFINITY,
    };
    if head.is_negative() { -size } else { size }
}

/// `value * 2^-drop`, rounded to nearest, ties to even; `drop` is at least 1.
fn shifted(value: u64, drop: u32) -> u64 {
    let whole = value.checked_shr(drop).unwrap_or(0);
    let half = 1u64.checked_shl(drop - 1).unwrap_or(0);
    // With a half beyond the word the value is below it.
    let rest = value - whole.checked_shl(drop).unwrap_or(0);
    let up = half != 0 && (rest > half || (rest == half && whole & 1 == 1));
    whole + u64::from(up)
}

/// The head and the limb of a finite double, exactly, for a precision of 53 to 64 bits.
pub fn double_parts(value: f64) -> (Head, u64) {
    let bits = value.to_bits();
    let (biased, fraction) = (bits >> STORED_BITS & 0x7ff, bits & ((1 << STORED_BITS) - 1));
    let integer = if biased == 0 { fraction } else { fraction | 1 << STORED_BITS };
    if integer == 0 {
        return (Head::ZERO, 0);
    }
    let zeros = integer.leading_zeros();
    // The value is the integer times 2^(exponent - 64), an integer of 64 bits being 0.s * 2^64.
    let exponent = biased.max(1) as i64 + i64::from(f64::MIN_EXP) - 1 + 64 - i64::from(f64::MANTISSA_DIGITS);
    (Head::new(value.is_sign_negative(), exponent - i64::from(zeros)), integer << zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::round_integer;
    use rug::Float;
    use rug::float::Round;

    fn doubles() -> impl Iterator<Item = f64> {
        let some = [0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1, -1e-310, 2f64.powi(-1022) * 0.75];
        let bits = |seed: u64| f64::from_bits(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        some.into_iter().chain((0..2000).map(bits).filter(|value| value.is_finite()))
    }

    #[test]
    fn doubles_come_back_as_they_went() {
        for value in doubles() {
            let (head, limb) = double_parts(value);
            let number = FloatRef { head, limbs: &[limb] };
            assert_eq!(nearest_double(number), value, "{value:e}");
            assert_eq!(number.to_float(53), value, "{value:e}");
        }
    }

    /// Compared with MPFR, which rounds to 53 bits or fewer where a double is subnormal.
    #[test]
    fn numbers_of_more_bits_are_rounded_as_mpfr_rounds_them() {
        let low = [0, 1, 1 << 10, 1 << 11, 3 << 10, (1 << 11) - 1, u64::MAX, 1 << 63];
        let exponents = [-1200, -1076, -1075, -1074, -1073, -1060, -1022, -1021, -1020, 0, 5, 1023, 1024, 1025, 5000];
        for exponent in exponents {
            for integer in low.map(|low| [low, 1 << 63 | low]).into_iter().chain([[0, 1 << 63], [u64::MAX; 2]]) {
                for limb in [integer[0], 0, 1] {
                    let mut limbs = [0; 2];
                    let head = round_integer(false, &[limb, integer[1]], exponent - 128, 128, &mut limbs);
                    let number = FloatRef { head, limbs: &limbs };
                    let wanted = number.to_float(128).to_f64_round(Round::Nearest);
                    assert_eq!(nearest_double(number), wanted, "{limbs:x?}, {exponent}");
                    let negative = FloatRef { head: head.negated(), limbs: &limbs };
                    assert_eq!(nearest_double(negative), -wanted);
                }
            }
        }
        assert_eq!(Float::with_val(53, nearest_double(FloatRef { head: Head::ZERO, limbs: &[0] })), 0);
    }
}
