//! A scalar such as `--alpha 0.1`, `-3`, `2.5e10` or `0x1.8p-3` as a big float.
//!
//! Promise: integers, hexadecimal floats and decimals that are integers are exact; other decimals are rounded once, to
//! nearest even, at the precision of the product.

use rug::{Float, Integer, Rational};
use sunzi::{Error, MAXIMUM_EXPONENT, Result};

/// Largest decimal exponent that is worked out exactly.
const LARGEST_EXACT_EXPONENT: i32 = 20_000;

/// The number written as `text`; `what` names it in the error.
///
/// # Errors
/// [`Error::InvalidArgument`] for anything that is no finite number.
pub fn parse_scalar(what: &str, text: &str, precision_bits: u32) -> Result<Float> {
    let (negative, size) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = match size.strip_prefix("0x").or_else(|| size.strip_prefix("0X")) {
        Some(hex) => parse_hex(hex),
        None => parse_decimal(size, precision_bits),
    };
    match value {
        Some(value) if value.is_finite() => Ok(if negative { -value } else { value }),
        _ => Err(Error::InvalidArgument(format!("{what}: '{text}' is not a finite number"))),
    }
}

/// Digits and the position of the point: `12.5` is `("125", 1)`.
fn digits(number: &str) -> Option<(String, i32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let places = i32::try_from(fraction.len()).ok()?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some((digits, places))
}

fn parse_hex(text: &str) -> Option<Float> {
    let (number, exponent) = match text.split_once(['p', 'P']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (digits, places) = digits(number)?;
    let integer = Integer::from_str_radix(&digits, 16).ok()?;
    let exponent = i64::from(exponent) - 4 * i64::from(places);
    if exponent.abs() > MAXIMUM_EXPONENT {
        return None;
    }
    Some(exact(&integer) << exponent as i32)
}

fn parse_decimal(text: &str, precision_bits: u32) -> Option<Float> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (digits, places) = digits(number)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let integer = Integer::from_str_radix(&digits, 10).ok()?;
    let exponent = exponent.checked_sub(places)?;
    if exponent.abs() > LARGEST_EXACT_EXPONENT {
        return Some(Float::with_val(precision_bits, Float::parse(text).ok()?));
    }
    let power = Integer::from(Integer::u_pow_u(10, exponent.unsigned_abs()));
    if exponent >= 0 {
        return Some(exact(&(integer * power)));
    }
    let value = Rational::from((integer, power));
    Some(if value.is_integer() { exact(value.numer()) } else { Float::with_val(precision_bits, &value) })
}

fn exact(integer: &Integer) -> Float {
    Float::with_val(integer.significant_bits().max(2), integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_exact_or_rounded_once() {
        let exact = [("0", 0.0), ("-3", -3.0), ("+2.5e1", 25.0), ("0x1.8p-3", 0.1875), ("-0X.8", -0.5), ("1e22", 1e22)];
        for (text, value) in exact {
            assert_eq!(parse_scalar("--alpha", text, 2).unwrap(), value, "{text}");
        }
        let third = parse_scalar("--alpha", "0.1", 100).unwrap();
        assert_eq!(third, Float::with_val(100, &Rational::from((1, 10))));
        let large = parse_scalar("--alpha", "1e100000", 64).unwrap();
        assert_eq!(large, Float::with_val(64, Float::parse("1e100000").unwrap()));
        for text in
            ["", "-", "nan", "inf", "1e", "0x", "1e999999999", "0x1p2000000000", "ten", "1 2", "0x1.g", "--1", "."]
        {
            assert!(parse_scalar("--alpha", text, 64).is_err(), "{text}");
        }
    }
}
