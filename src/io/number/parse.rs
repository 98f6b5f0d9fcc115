//! Numbers in strings of a caller, by the syntax of files.
//!
//! Independent of: files.

use super::{Field, NumberReader, Refusal};
use crate::math::float::{FloatRef, limbs_for};
use crate::matrix::{MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS};
use rug::ops::Pow;
use rug::{Float, Integer, Rational};

/// The reason why a text is not a number that can be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// NaN or infinity; the text names which.
    #[error("is {0}, not finite")]
    NotFinite(&'static str),
    /// The text is not a number.
    #[error("is not a number")]
    NotANumber,
    /// The binary exponent of the number is beyond [`MAXIMUM_EXPONENT`].
    #[error("has a binary exponent outside +-{MAXIMUM_EXPONENT}")]
    ExponentRange,
    /// The number has this number of significant bits, more than [`MAXIMUM_PRECISION_BITS`].
    #[error("has {0} significant bits, more than {MAXIMUM_PRECISION_BITS}")]
    TooLong(u64),
}

impl From<Refusal> for NumberError {
    fn from(refusal: Refusal) -> NumberError {
        match refusal {
            Refusal::NotFinite(kind) => NumberError::NotFinite(kind),
            Refusal::ExponentRange => NumberError::ExponentRange,
            Refusal::TooLong(bits) => NumberError::TooLong(bits),
            _ => NumberError::NotANumber,
        }
    }
}

/// A number read from a string.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ParsedNumber {
    /// The number; an exact number has the precision that it needs, at least 2 bits.
    pub value: Float,
    /// Whether it is an integer or a hexadecimal float; these are never rounded.
    pub exact: bool,
    /// Whether the number was rounded: it differs from the decimal or fraction in the text.
    pub rounded: bool,
}

/// Reads numbers one after the other, with scratch space kept between them; see [`parse_number`].
pub struct NumberParser {
    reader: NumberReader,
    limbs: Vec<u64>,
}

impl NumberParser {
    /// A parser that rounds to `precision_bits` bits; a value outside 2 to [`MAXIMUM_PRECISION_BITS`] is replaced by
    /// the nearer limit.
    pub fn new(precision_bits: u32) -> NumberParser {
        let reader = NumberReader::new(precision_bits.clamp(2, MAXIMUM_PRECISION_BITS));
        NumberParser { reader, limbs: Vec::new() }
    }

    /// Keeps decimals and fractions as they are written from now on: see [`NumberParser::take_written`].
    pub fn keep_written(&mut self) {
        self.reader.keep_written();
    }

    /// The decimal or fraction parsed last as it was written, without rounding; `None` where such numbers are not kept,
    /// for numbers that are never rounded, and for decimal exponents beyond 20,000.
    pub fn take_written(&mut self) -> Option<Rational> {
        self.reader.take_written()
    }

    /// The number in `text`.
    ///
    /// # Errors
    /// [`NumberError`].
    pub fn parse(&mut self, text: &str) -> Result<ParsedNumber, NumberError> {
        let number = self.reader.read(text.trim().as_bytes(), Field::Real)?;
        self.limbs.clear();
        self.limbs.resize(limbs_for(number.bits), 0);
        let head = self.reader.store(number, &mut self.limbs)?;
        let value = FloatRef { head, limbs: &self.limbs }.to_float(number.bits);
        Ok(ParsedNumber { value, exact: number.exact, rounded: self.reader.is_rounded(number) })
    }
}

/// Reads the number in `text` by the syntax of all files (docs/FORMATS.md), white space around it ignored.
///
/// Integers and hexadecimal floats are read exactly, however long; decimals, fractions and Mathematica's forms are
/// rounded once to `precision_bits` bits, to nearest, ties to even. Cost: that of GMP's conversion.
///
/// ```
/// use sunzi::io::parse_number;
/// assert_eq!(parse_number("-0x1.8p-3", 53).unwrap().value, -0.1875);
/// assert_eq!(parse_number("1.5`30*^2", 53).unwrap().value, 150);
/// assert!(parse_number("1/3", 200).unwrap().value.prec() == 200);
/// assert!(parse_number("1_000", 2).unwrap().exact);
/// assert!(parse_number("0.1", 200).unwrap().rounded && !parse_number("0.5", 2).unwrap().rounded);
/// ```
///
/// # Errors
/// [`NumberError`].
pub fn parse_number(text: &str, precision_bits: u32) -> Result<ParsedNumber, NumberError> {
    NumberParser::new(precision_bits).parse(text)
}

/// The number in `text` as `m * 2^e` with `m` odd or 0, if it is an integer, such as `1e5` and `2.50e1`.
///
/// Where `m` has more bits than any matrix entry can have, the result is another odd integer with too many bits; so a
/// caller that refuses long integers refuses it too. The result is `None` for texts that are not integers, and for
/// texts that [`parse_number`] refuses.
pub fn parse_exact_integer(text: &str) -> Option<(Integer, i64)> {
    let text = text.trim();
    match parse_number(text, 2) {
        Ok(parsed) if parsed.exact => {
            let (integer, exponent) = parsed.value.to_integer_exp()?;
            let zeros = integer.find_one(0).unwrap_or(0);
            let exponent = i64::from(exponent) + i64::from(zeros);
            return (exponent >= 0 || integer.is_zero()).then(|| (integer >> zeros, exponent.max(0)));
        }
        Ok(_) | Err(NumberError::ExponentRange) => {}
        Err(_) => return None,
    }
    let mut word = text.replace('_', "");
    if let Some((numerator, denominator)) = word.split_once('/') {
        let (numerator, denominator) = (numerator.parse::<Integer>().ok()?, denominator.parse::<Integer>().ok()?);
        let divides = numerator.is_divisible(&denominator);
        return divides.then(|| odd_part(numerator / denominator, 0));
    }
    // A mark of Mathematica changes no value.
    if let Some(mark) = word.find('`') {
        let end = word.find("*^").unwrap_or(word.len());
        word.replace_range(mark..end, "");
    }
    let (number, power) = match word.split_once("*^") {
        Some(parts) => parts,
        None => word.split_once(['e', 'E', 'd', 'D']).unwrap_or((&word, "0")),
    };
    decimal_integer(number, power)
}

/// `number * 10^power` for digits with a point, where it is an integer.
fn decimal_integer(number: &str, power: &str) -> Option<(Integer, i64)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{part}");
    let kept = digits.trim_end_matches('0');
    if !kept.bytes().any(|digit| digit.is_ascii_digit()) {
        return Some((Integer::new(), 0));
    }
    // Exponents beyond 64 bits are as good as the largest ones.
    let far = if power.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 };
    let power = power.parse::<i64>().map_or(far, |power| power.clamp(i64::MIN / 4, i64::MAX / 4));
    let tens = power + (digits.len() - kept.len()) as i64 - part.len() as i64;
    if tens < 0 {
        return None;
    }
    // 5^tens has more than two bits for each power.
    let fives = Integer::from(5).pow(tens.min(i64::from(MAXIMUM_PRECISION_BITS) / 2) as u32);
    let integer = Integer::from_str_radix(kept.trim_start_matches('+'), 10).ok()? * fives;
    Some(odd_part(integer, tens))
}

fn odd_part(integer: Integer, exponent: i64) -> (Integer, i64) {
    let zeros = integer.find_one(0).unwrap_or(0);
    (integer >> zeros, i64::from(zeros) + exponent)
}
