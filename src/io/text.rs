//! Writes one number as text: a decimal that reads back to the same bits, or a C99 hexadecimal float.
//!
//! Promise: decimals are rounded to nearest, ties to even, in the last digit; equal numbers of equal precision give
//! equal text. Independent of: files, matrices.

use crate::io::powers::{MAXIMUM_POWER, PowersOfFive};
use crate::math::float::FloatRef;
use rug::integer::Order;
use rug::{Assign, Float, Integer};

/// Digits that distinguish all floats of `precision_bits` bits: the least d with `10^(d-1) >= 2^precision_bits`.
///
/// Rounding to nearest in both directions then gives the same bits back (Matula 1968). The ratio 30103/100000 is
/// above log10(2) by less than 5e-9, so at the largest precision the count may be one too high, never too low.
pub(super) fn decimal_digits(precision_bits: u32) -> usize {
    1 + (u64::from(precision_bits) * 30103).div_ceil(100_000) as usize
}

/// Writes decimals one after the other, with scratch space kept between them.
pub(super) struct DecimalWriter {
    precision_bits: u32,
    digits: usize,
    powers: PowersOfFive,
    scaled: Integer,
    divisor: Integer,
    remainder: Integer,
}

impl DecimalWriter {
    /// A writer for floats of `precision_bits` bits.
    pub fn new(precision_bits: u32) -> Self {
        DecimalWriter {
            precision_bits,
            digits: decimal_digits(precision_bits),
            powers: PowersOfFive::default(),
            scaled: Integer::new(),
            divisor: Integer::new(),
            remainder: Integer::new(),
        }
    }

    /// Appends `value` to `out`, as `-1.25e-3`; trailing zeros and the exponent 0 are left out.
    pub fn write(&mut self, value: FloatRef<'_>, out: &mut Vec<u8>) {
        if value.head.is_zero() {
            out.push(b'0');
            return;
        }
        let (digits, exponent) = self.significant_digits(value);
        if value.head.is_negative() {
            out.push(b'-');
        }
        let digits = digits.trim_end_matches('0').as_bytes();
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        if exponent != 0 {
            out.push(b'e');
            out.extend_from_slice(exponent.to_string().as_bytes());
        }
    }

    /// Exactly `self.digits` digits `d` and the exponent `t` of `|value| ~ d[0].d[1]d[2]... * 10^t`.
    fn significant_digits(&mut self, value: FloatRef<'_>) -> (String, i64) {
        let mut exponent = decimal_exponent(value);
        let limit = i64::from(MAXIMUM_POWER) - 2;
        let last_place = self.digits as i64 - 1 - exponent;
        if last_place.abs() > limit {
            return self.significant_digits_by_mpfr(value);
        }
        loop {
            self.round_scaled(value, (self.digits as i64 - 1 - exponent) as i32);
            let text = self.scaled.to_string();
            // The estimate is never too high, so there are never too few digits; one step suffices.
            if text.len() <= self.digits {
                return (text, exponent);
            }
            exponent += 1;
        }
    }

    /// `scaled := |value| * 10^power`, rounded to the nearest integer, ties to even.
    fn round_scaled(&mut self, value: FloatRef<'_>, power: i32) {
        let low = value.limbs.iter().position(|&limb| limb != 0).unwrap_or(0);
        self.scaled.assign_digits(&value.limbs[low..], Order::Lsf);
        let shift = value.head.exponent() - (value.limbs.len() - low) as i64 * 64 + i64::from(power);
        // |shift| is below the precision plus a few thousand: `power` is small, so the value is near 1 in size.
        let shift = shift as i32;
        let five = self.powers.get(power.unsigned_abs());
        self.divisor.assign(1);
        if power >= 0 {
            self.scaled *= five;
        } else {
            self.divisor.assign(five);
        }
        if shift >= 0 {
            self.scaled <<= shift;
        } else {
            self.divisor <<= -shift;
        }
        if power >= 0 && shift >= 0 {
            return;
        }
        if power >= 0 {
            // The divisor is a power of two: the halves are split without a division.
            self.remainder.assign(self.scaled.keep_bits_ref((-shift) as u32));
            self.scaled >>= -shift;
        } else {
            self.remainder.assign(&self.scaled % &self.divisor);
            self.scaled /= &self.divisor;
        }
        self.remainder <<= 1;
        match self.remainder.cmp(&self.divisor) {
            std::cmp::Ordering::Greater => self.scaled += 1,
            std::cmp::Ordering::Equal if self.scaled.is_odd() => self.scaled += 1,
            _ => {}
        }
    }

    /// The digits computed by MPFR, whose cost does not grow with the exponent.
    fn significant_digits_by_mpfr(&self, value: FloatRef<'_>) -> (String, i64) {
        let float: Float = value.to_float(self.precision_bits).abs();
        let (_, digits, exponent) = float.to_sign_string_exp(10, Some(self.digits));
        // MPFR's exponent belongs to 0.d[0]d[1]...
        (digits, i64::from(exponent.unwrap_or(0)) - 1)
    }
}

/// `floor(log10 |value|)`, or one less where the value is within 3 parts in a million above a power of ten.
///
/// Never too high for exponents below 10^9, where the double's error stays below 10^-6.
fn decimal_exponent(value: FloatRef<'_>) -> i64 {
    let top = value.limbs[value.limbs.len() - 1] as f64 / 18_446_744_073_709_551_616.0;
    let logarithm = top.log10() + value.head.exponent() as f64 * std::f64::consts::LOG10_2;
    (logarithm - 1e-6).floor() as i64
}

/// Appends `value` to `out` as `-0x1.8p-3`: exact, the leading digit 1, no trailing zeros.
pub(super) fn write_hexadecimal(value: FloatRef<'_>, out: &mut Vec<u8>) {
    if value.head.is_zero() {
        out.extend_from_slice(b"0x0p0");
        return;
    }
    if value.head.is_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(b"0x1");
    let start = out.len();
    out.push(b'.');
    let limbs = value.limbs;
    for index in (0..limbs.len()).rev() {
        // One bit to the left: the top bit is the 1 before the point.
        let limb = limbs[index] << 1 | if index > 0 { limbs[index - 1] >> 63 } else { 0 };
        for nibble in (0..16).rev() {
            out.push(b"0123456789abcdef"[(limb >> (4 * nibble)) as usize & 15]);
        }
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.len() == start + 1 {
        out.pop();
    }
    out.push(b'p');
    out.extend_from_slice((value.head.exponent() - 1).to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use rug::rand::RandState;

    fn decimal(value: &Float) -> String {
        let mut matrix = Matrix::zeros(1, 1, value.prec()).unwrap();
        matrix.set_float(0, 0, value).unwrap();
        let mut out = Vec::new();
        DecimalWriter::new(value.prec()).write(matrix.get(0, 0), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn hexadecimal(bits: u32, value: f64) -> String {
        let matrix = Matrix::from_f64s(1, 1, bits, &[value]).unwrap();
        let mut out = Vec::new();
        write_hexadecimal(matrix.get(0, 0), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// MPFR's digits in our form.
    fn oracle(value: &Float) -> String {
        let (negative, digits, exponent) = value.to_sign_string_exp(10, Some(decimal_digits(value.prec())));
        let digits = digits.trim_end_matches('0');
        let exponent = exponent.unwrap() - 1;
        let point = if digits.len() > 1 { "." } else { "" };
        let power = if exponent == 0 { String::new() } else { format!("e{exponent}") };
        format!("{}{}{point}{}{power}", if negative { "-" } else { "" }, &digits[..1], &digits[1..])
    }

    #[test]
    fn decimals_are_those_of_mpfr_and_read_back() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(17));
        for case in 0..4000u32 {
            let bits = 2 + rng.below(if case % 5 == 0 { 1500 } else { 130 });
            let integer = Integer::from(Integer::random_bits(1 + rng.below(bits), &mut rng)) + 1u32;
            let range = [40, 3000, 30_000, 400_000][case as usize % 4];
            let mut value = Float::with_val(bits, integer) << (rng.below(range) as i32 - (range / 2) as i32);
            if case % 3 == 0 {
                value = -value;
            }
            let text = decimal(&value);
            assert_eq!(text, oracle(&value), "{bits} bits");
            assert_eq!(Float::with_val(bits, Float::parse(&text).unwrap()), value, "{bits} bits: {text}");
        }
    }

    #[test]
    fn powers_of_ten_and_their_neighbours() {
        for bits in [2, 3, 10, 53, 64, 65, 200] {
            for exponent in -60..60i32 {
                let ten: Float = Float::with_val(bits, Float::parse(format!("1e{exponent}")).unwrap());
                let (mut above, mut below) = (ten.clone(), ten.clone());
                above.next_up();
                below.next_down();
                for value in [ten, above, below] {
                    assert_eq!(decimal(&value), oracle(&value), "{bits} bits, 10^{exponent}");
                }
            }
        }
    }

    #[test]
    fn short_forms() {
        for (value, text) in
            [(0.0, "0"), (1.0, "1"), (-3.0, "-3"), (0.5, "5e-1"), (-1234.5, "-1.2345e3"), (1e20, "1e20")]
        {
            assert_eq!(decimal(&Float::with_val(100, value)), text);
        }
        for (value, text) in
            [(0.0, "0x0p0"), (1.0, "0x1p0"), (-3.0, "-0x1.8p1"), (0.1875, "0x1.8p-3"), (0.1, "0x1.999999999999ap-4")]
        {
            for bits in [53, 64, 65, 128] {
                assert_eq!(hexadecimal(bits, value), text, "{bits} bits");
            }
        }
    }

    #[test]
    fn digit_counts_suffice() {
        for bits in 2..3000u32 {
            let enough = Integer::from(Integer::u_pow_u(10, decimal_digits(bits) as u32 - 1));
            assert!(enough >= Integer::from(1) << bits, "{bits} bits");
            assert!(enough / 10u32 < Integer::from(1) << bits, "{bits} bits: one digit less would do");
        }
    }
}
