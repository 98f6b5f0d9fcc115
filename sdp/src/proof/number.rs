//! Words of a file as exact rational numbers, in the one syntax of numbers (docs/FORMATS.md).
//!
//! Independent of: precisions, files.

use super::limits::{MAXIMUM_POWER, MAXIMUM_WORD};
use rug::ops::Pow;
use rug::{Integer, Rational};

/// The number in `word`, exactly.
///
/// # Errors
/// A text that states what the word is instead.
pub fn exact_number(word: &str) -> Result<Rational, String> {
    let refused = || format!("'{}' is not a number", shown(word));
    if word.len() > MAXIMUM_WORD {
        return Err(format!("'{}' has {} characters, but the limit is {MAXIMUM_WORD}", shown(word), word.len()));
    }
    let joined = without_underscores(word).ok_or_else(refused)?;
    let (negative, text) = match joined.as_bytes().first() {
        Some(b'-') => (true, &joined[1..]),
        Some(b'+') => (false, &joined[1..]),
        _ => (false, joined.as_str()),
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = match hexadecimal {
        Some(text) => positional(text, 16, |byte| byte.is_ascii_hexdigit()),
        None => match text.split_once('/') {
            Some((over, under)) => fraction(over, under),
            None => positional(&without_mark(text).ok_or_else(refused)?, 10, |byte| byte.is_ascii_digit()),
        },
    };
    match value {
        Some(Ok(value)) => Ok(if negative { -value } else { value }),
        Some(Err(exponent)) => {
            Err(format!("'{}' has the exponent {exponent}, which is beyond {MAXIMUM_POWER}", shown(word)))
        }
        None => Err(refused()),
    }
}

/// The bytes of a file as text.
///
/// # Errors
/// A text with the first invalid byte.
pub fn as_text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("it is not text at byte {}", error.valid_up_to()))
}

/// The first characters of a word.
pub fn shown(word: &str) -> String {
    let start = word.chars().take(40).collect::<String>();
    if start.len() < word.len() { format!("{start}...") } else { start }
}

fn without_underscores(word: &str) -> Option<String> {
    let bytes = word.as_bytes();
    let between = |at: usize| {
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_hexdigit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    let fine = (0..bytes.len()).all(|at| bytes[at] != b'_' || between(at));
    fine.then(|| word.replace('_', ""))
}

/// The text without Mathematica's mark of a precision, which changes no value.
fn without_mark(text: &str) -> Option<String> {
    let Some(mark) = text.find('`') else { return Some(text.to_string()) };
    let end = text.find("*^").unwrap_or(text.len());
    let digits = text.get(mark..end)?.trim_start_matches('`');
    let is_mark = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'));
    is_mark.then(|| format!("{}{}", &text[..mark], &text[end..]))
}

fn digits(text: &str) -> Option<Integer> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn fraction(over: &str, under: &str) -> Option<Result<Rational, i64>> {
    let (over, under) = (digits(over)?, digits(under)?);
    (!under.is_zero()).then(|| Ok(Rational::from((over, under))))
}

/// Digits, a point, digits, an exponent; or the exponent that is too large.
fn positional(text: &str, radix: i32, is_digit: fn(&u8) -> bool) -> Option<Result<Rational, i64>> {
    let count = |text: &str| text.bytes().take_while(is_digit).count();
    let whole = count(text);
    let rest = &text[whole..];
    let fraction = rest.strip_prefix('.').map_or(0, count);
    let rest = rest.strip_prefix('.').map_or(rest, |after| &after[fraction..]);
    let all = format!("{}{}", &text[..whole], text.get(whole + 1..whole + 1 + fraction).unwrap_or(""));
    if all.is_empty() {
        return None;
    }
    let power = match (rest.as_bytes(), radix) {
        ([], _) => "0",
        ([b'e' | b'E' | b'd' | b'D', ..], 10) | ([b'p' | b'P', ..], 16) => &rest[1..],
        ([b'*', b'^', ..], 10) => &rest[2..],
        _ => return None,
    };
    let unsigned = power.strip_prefix(['-', '+']).unwrap_or(power);
    let magnitude = digits(unsigned)?.to_i64().unwrap_or(i64::MAX);
    let exponent = if power.starts_with('-') { -magnitude } else { magnitude };
    let integer = Integer::from_str_radix(&all, radix).ok()?;
    if integer.is_zero() {
        return Some(Ok(Rational::new()));
    }
    let (limit, base, shift) = match radix {
        16 => (4 * MAXIMUM_POWER, 2u32, 4 * fraction as i64),
        _ => (MAXIMUM_POWER, 10, fraction as i64),
    };
    if exponent.abs() > limit {
        return Some(Err(exponent));
    }
    let exponent = exponent - shift;
    let scale = Integer::from(base).pow(u32::try_from(exponent.unsigned_abs()).ok()?);
    Some(Ok(match exponent < 0 {
        true => Rational::from((integer, scale)),
        false => Rational::from(integer * scale),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_number_is_exact() {
        let cases = [
            ("0", (0, 1)),
            ("-0.0e+00", (0, 1)),
            ("+1_000", (1000, 1)),
            (".5", (1, 2)),
            ("5.", (5, 1)),
            ("-1.25e2", (-125, 1)),
            ("1.5D-1", (3, 20)),
            ("0.1", (1, 10)),
            ("2/6", (1, 3)),
            ("-0x1.8p-3", (-3, 16)),
            ("0xA", (10, 1)),
            ("1.5`30*^2", (150, 1)),
            ("2.5``12", (5, 2)),
            ("0e999999999999999999999", (0, 1)),
        ];
        for (text, (over, under)) in cases {
            assert_eq!(exact_number(text), Ok(Rational::from((over, under))), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_named() {
        for text in ["", "-", ".", "one", "1e", "1/0", "1/-2", "1__0", "_1", "1.2.3", "nan", "0x", "1 2", "1e5p", "é"]
        {
            assert!(exact_number(text).is_err(), "{text}");
        }
        assert!(exact_number("1e20000").is_ok() && exact_number(&"7".repeat(MAXIMUM_WORD)).is_ok());
        assert!(exact_number(&"7".repeat(MAXIMUM_WORD + 1)).unwrap_err().contains("65537 characters"));
        assert!(exact_number("1e20001").unwrap_err().contains("exponent 20001"));
        assert!(exact_number("1e-99999999999999999999999").is_err());
    }

    #[test]
    fn they_are_those_of_the_library() {
        for text in ["1.23456789012345678901234567890e-12", "-7/11", "0x.8p5", "12345678901234567890123", "3.5*^-7"] {
            let exact = exact_number(text).unwrap();
            let rounded = sunzi::io::parse_number(text, 200).unwrap().value;
            assert_eq!(rug::Float::with_val(rounded.prec(), &exact), rounded, "{text}");
        }
    }
}
