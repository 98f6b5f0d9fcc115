//! Reads one number: an integer, a C99 hexadecimal float, a decimal or a fraction of any length. The one syntax of
//! numbers, of all files, options of the program and strings in Python: docs/FORMATS.md states it.
//!
//! Promise: integers and hexadecimal floats are taken exactly; all else is rounded once, to nearest, ties to even.
//! The number may be followed by nothing: the whole word must be a number. Independent of: files, matrices.

mod parse;

pub use parse::{NumberError, NumberParser, ParsedNumber, parse_exact_integer, parse_number};

use crate::io::digits::{self, take_digits};
use crate::io::powers::{MAXIMUM_POWER, PowersOfFive};
use crate::math::float::{Head, bit_length, limbs_for, round_integer};
use crate::matrix::{MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS};
use rug::integer::Order;
use rug::{Assign, Complete, Float, Integer, Rational};

/// The numbers that a file may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// Integers only.
    Integer,
    /// Integers, decimals and hexadecimal floats.
    Real,
}

/// The reason why a word is not a number that can be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// NaN or infinity; the text names which.
    NotFinite(&'static str),
    /// The text is not a number.
    NotANumber,
    /// A number with a fraction or an exponent where integers are wanted.
    NotAnInteger,
    /// Its binary exponent is beyond [`MAXIMUM_EXPONENT`].
    ExponentRange,
    /// It has this many significant bits, more than [`MAXIMUM_PRECISION_BITS`].
    TooLong(u64),
    /// The system refused this many bytes for it.
    OutOfMemory(u64),
    /// The limit, and the least bytes that the numbers read need, which are more.
    MemoryLimit(u64, u64),
    /// It must be rounded, but no precision is given.
    NoPrecision,
}

/// A number just read, before it is written into a matrix: see [`NumberReader::store`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Number {
    negative: bool,
    /// Exponent of the lowest bit of the reader's magnitude.
    exponent: i64,
    /// Bits that the stored significand needs.
    pub bits: u32,
    /// Whether the number is stored without rounding.
    pub exact: bool,
}

/// Largest precision, in digits, that a mark of Mathematica may state.
const MAXIMUM_MARKED_DIGITS: f64 = MAXIMUM_PRECISION_BITS as f64 * std::f64::consts::LOG10_2;

/// Digits above which GMP's conversion, which is faster than quadratic, is used.
const LONG_DIGITS: usize = 2000;

/// Largest decimal exponent, by magnitude, of a number that is kept as it was written: a power of ten of 8 KiB.
const KEPT_EXPONENT: u64 = 20_000;

/// Decimal exponents beyond this are out of range for certain: 10^330000000 > 2^(2^30).
const DECIMAL_EXPONENT_LIMIT: i64 = 330_000_000;

/// Reads numbers one after the other, with scratch space kept between them.
pub(super) struct NumberReader {
    decimal_bits: Option<u32>,
    marked_bits: Option<u32>,
    digits: Vec<u8>,
    magnitude: Vec<u64>,
    /// Whether the magnitude has been rounded already.
    is_rounded: bool,
    /// Whether numbers that may be rounded are kept as they were written.
    keeps: bool,
    /// The last of them.
    written: Option<Rational>,
    powers: PowersOfFive,
    divisor: Integer,
    division: Division,
}

/// Scratch space of a division.
#[derive(Default)]
struct Division {
    numerator: Integer,
    quotient: Integer,
    remainder: Integer,
}

impl Division {
    /// `magnitude := magnitude 2^shift / divisor`, with enough bits to be rounded to `bits` and a sticky bit below
    /// them; returns the shift.
    fn divide(&mut self, magnitude: &mut Vec<u64>, divisor: &Integer, bits: u32) -> i64 {
        // With two bits more than the precision, half an ulp is above the sticky bit.
        let wanted = i64::from(bits) + 2 + i64::from(divisor.significant_bits());
        let shift = (wanted - bit_length(magnitude) as i64).max(0) as u32;
        self.numerator.assign_digits(magnitude, Order::Lsf);
        self.numerator <<= shift;
        (&mut self.quotient, &mut self.remainder).assign(self.numerator.div_rem_ref(divisor));
        self.quotient <<= 1;
        if !self.remainder.is_zero() {
            self.quotient += 1;
        }
        copy_limbs(&self.quotient, magnitude);
        i64::from(shift) + 1
    }
}

impl NumberReader {
    /// A reader that rounds decimals to `decimal_bits` bits; without them, to the precision that a mark of Mathematica
    /// states first.
    pub fn new(decimal_bits: impl Into<Option<u32>>) -> Self {
        NumberReader {
            decimal_bits: decimal_bits.into(),
            marked_bits: None,
            digits: Vec::new(),
            magnitude: Vec::new(),
            is_rounded: false,
            keeps: false,
            written: None,
            powers: PowersOfFive::default(),
            divisor: Integer::new(),
            division: Division::default(),
        }
    }

    /// Keeps decimals and fractions as they were written from now on: see [`NumberReader::take_written`].
    pub fn keep_written(&mut self) {
        self.keeps = true;
    }

    /// The decimal or fraction just read as it was written; `None` where such numbers are not kept, or its exponent is
    /// beyond [`KEPT_EXPONENT`].
    pub fn take_written(&mut self) -> Option<Rational> {
        self.written.take()
    }

    /// Reads `word`; [`NumberReader::store`] then gives its significand.
    ///
    /// # Errors
    /// A [`Refusal`] that names what the word is instead.
    pub fn read(&mut self, word: &[u8], field: Field) -> Result<Number, Refusal> {
        (self.is_rounded, self.written) = (false, None);
        match self.read_plain(word, field) {
            Err(Refusal::NotANumber) if word.contains(&b'_') => {
                let joined = without_underscores(word).ok_or(Refusal::NotANumber)?;
                self.read_plain(&joined, field)
            }
            outcome => outcome,
        }
    }

    /// Bits that the first mark of Mathematica so far stated.
    pub fn marked_bits(&self) -> Option<u32> {
        self.marked_bits
    }

    /// A number without underscores.
    fn read_plain(&mut self, word: &[u8], field: Field) -> Result<Number, Refusal> {
        let (negative, rest) = match word {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        match rest {
            [b'0', b'x' | b'X', hex @ ..] if field == Field::Real => self.hexadecimal(negative, hex),
            [b'0', b'x' | b'X', ..] => Err(Refusal::NotAnInteger),
            [b'0'..=b'9' | b'.', ..] => self.decimal(negative, rest, field),
            _ => Err(not_finite(rest).map_or(Refusal::NotANumber, Refusal::NotFinite)),
        }
    }

    /// Writes the significand of the number just read into the upper limbs of `out`, zeros below it.
    ///
    /// `out` has at least `limbs_for(number.bits)` limbs.
    ///
    /// # Errors
    /// [`Refusal::ExponentRange`].
    pub fn store(&self, number: Number, out: &mut [u64]) -> Result<Head, Refusal> {
        let low = out.len() - limbs_for(number.bits);
        let (spare, significand) = out.split_at_mut(low);
        spare.fill(0);
        let head = round_integer(number.negative, &self.magnitude, number.exponent, number.bits, significand);
        if head.exponent().abs() > MAXIMUM_EXPONENT { Err(Refusal::ExponentRange) } else { Ok(head) }
    }

    /// Whether the number just read is not the one that was written: the quotient of a fraction ends in a sticky bit.
    pub fn is_rounded(&self, number: Number) -> bool {
        self.is_rounded || (!number.exact && self.significant_bits() > u64::from(number.bits))
    }

    /// Bits of the magnitude from its highest one to its lowest one.
    fn significant_bits(&self) -> u64 {
        let low = self.magnitude.iter().position(|&limb| limb != 0).unwrap_or(0);
        let zeros = self.magnitude.get(low).map_or(0, |limb| low as u64 * 64 + u64::from(limb.trailing_zeros()));
        bit_length(&self.magnitude).saturating_sub(zeros)
    }

    /// The number behind `0x`.
    fn hexadecimal(&mut self, negative: bool, text: &[u8]) -> Result<Number, Refusal> {
        self.digits.clear();
        let whole = take_digits(text, u8::is_ascii_hexdigit);
        self.digits.extend_from_slice(whole);
        let mut rest = &text[whole.len()..];
        let mut exponent = 0;
        if let [b'.', fraction @ ..] = rest {
            let fraction_digits = take_digits(fraction, u8::is_ascii_hexdigit);
            self.digits.extend_from_slice(fraction_digits);
            exponent = -4 * fraction_digits.len() as i64;
            rest = &fraction[fraction_digits.len()..];
        }
        if self.digits.is_empty() {
            return Err(Refusal::NotANumber);
        }
        match rest {
            [] => {}
            [b'p' | b'P', power @ ..] => exponent += signed(power).ok_or(Refusal::NotANumber)?,
            _ => return Err(Refusal::NotANumber),
        }
        self.magnitude.clear();
        digits::hexadecimal(&self.digits, &mut self.magnitude);
        self.exact(negative, exponent)
    }

    /// An integer or a decimal, its sign taken off.
    fn decimal(&mut self, negative: bool, text: &[u8], field: Field) -> Result<Number, Refusal> {
        let whole = take_digits(text, u8::is_ascii_digit);
        let mut rest = &text[whole.len()..];
        let mut fraction: &[u8] = &[];
        if let [b'.', after @ ..] = rest {
            fraction = take_digits(after, u8::is_ascii_digit);
            rest = &after[fraction.len()..];
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(Refusal::NotANumber);
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E' | b'd' | b'D', power @ ..] => signed(power).ok_or(Refusal::NotANumber)?,
            [b'*', b'^', power @ ..] => signed(power).ok_or(Refusal::NotANumber)?,
            [b'`', ..] => self.marked(rest)?,
            [b'/', denominator @ ..] if rest.len() + whole.len() == text.len() => {
                return self.fraction(negative, whole, denominator, field);
            }
            _ => return Err(Refusal::NotANumber),
        };
        let is_integer = whole.len() == text.len();
        if field == Field::Integer && !is_integer {
            return Err(Refusal::NotAnInteger);
        }
        self.digits.clear();
        let leading_zeros = whole.iter().take_while(|&&digit| digit == b'0').count();
        self.digits.extend_from_slice(&whole[leading_zeros..]);
        if is_integer {
            self.digits_to_magnitude();
            return self.exact(negative, 0);
        }
        let mut exponent = exponent - fraction.len() as i64;
        let is_below_one = self.digits.is_empty();
        let leading_zeros = fraction.iter().take_while(|&&digit| is_below_one && digit == b'0').count();
        self.digits.extend_from_slice(&fraction[leading_zeros..]);
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
            exponent += 1;
        }
        self.digits_to_magnitude();
        self.scaled(negative, exponent)
    }

    /// Reads the part after the digits of a Mathematica number: a mark of precision or accuracy, and perhaps an
    /// exponent.
    fn marked(&mut self, text: &[u8]) -> Result<i64, Refusal> {
        let (is_accuracy, rest) = match text {
            [b'`', b'`', rest @ ..] => (true, rest),
            rest => (false, &rest[1..]),
        };
        let end = rest.iter().position(|&byte| byte == b'*').unwrap_or(rest.len());
        let (digits, power) = rest.split_at(end);
        if !digits.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+')) {
            return Err(Refusal::NotANumber);
        }
        let digits = std::str::from_utf8(digits).map_err(|_| Refusal::NotANumber)?;
        if !digits.is_empty() || is_accuracy {
            let digits = digits.parse::<f64>().map_err(|_| Refusal::NotANumber)?;
            let bits = digits * std::f64::consts::LOG2_10;
            if !is_accuracy && digits > 0.0 && digits <= MAXIMUM_MARKED_DIGITS {
                // A precision of whole bits, as it is written here, comes back in spite of the mark's own rounding.
                let whole = if (bits - bits.round()).abs() < 1e-6 { bits.round() } else { bits.ceil() };
                let bits = (whole as u32).clamp(2, MAXIMUM_PRECISION_BITS);
                self.decimal_bits.get_or_insert(bits);
                self.marked_bits.get_or_insert(bits);
            }
        }
        match power {
            [] => Ok(0),
            [b'*', b'^', power @ ..] => signed(power).ok_or(Refusal::NotANumber),
            _ => Err(Refusal::NotANumber),
        }
    }

    /// A fraction of two integers, rounded.
    fn fraction(
        &mut self,
        negative: bool,
        numerator: &[u8],
        denominator: &[u8],
        field: Field,
    ) -> Result<Number, Refusal> {
        let is_zero = denominator.iter().all(|&digit| digit == b'0');
        if numerator.is_empty() || is_zero || !denominator.iter().all(u8::is_ascii_digit) {
            return Err(Refusal::NotANumber);
        }
        if field == Field::Integer {
            return Err(Refusal::NotAnInteger);
        }
        let bits = self.decimal_bits.ok_or(Refusal::NoPrecision)?;
        self.integer(denominator);
        self.divisor.assign_digits(&self.magnitude, Order::Lsf);
        self.integer(numerator);
        if bit_length(&self.magnitude) == 0 {
            return Ok(Number { negative: false, exponent: 0, bits, exact: false });
        }
        if self.keeps {
            let numerator = signed_integer(negative, &self.magnitude);
            self.written = Some(Rational::from((numerator, self.divisor.clone())));
        }
        let shift = self.division.divide(&mut self.magnitude, &self.divisor, bits);
        Ok(Number { negative, exponent: -shift, bits, exact: false })
    }

    /// The integer with these digits, in the magnitude.
    fn integer(&mut self, digits: &[u8]) {
        self.digits.clear();
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        self.digits.extend_from_slice(&digits[zeros..]);
        self.digits_to_magnitude();
    }

    /// The magnitude times `2^exponent`, exactly.
    fn exact(&mut self, negative: bool, exponent: i64) -> Result<Number, Refusal> {
        let length = self.significant_bits();
        if length == 0 {
            return Ok(Number { negative: false, exponent: 0, bits: 2, exact: true });
        }
        match u32::try_from(length) {
            Ok(bits) if bits <= MAXIMUM_PRECISION_BITS => {
                Ok(Number { negative, exponent, bits: bits.max(2), exact: true })
            }
            _ => Err(Refusal::TooLong(length)),
        }
    }

    /// The magnitude times `10^exponent`, ready to be rounded: enough quotient bits and a sticky bit below them.
    fn scaled(&mut self, negative: bool, exponent: i64) -> Result<Number, Refusal> {
        let bits = self.decimal_bits.ok_or(Refusal::NoPrecision)?;
        if bit_length(&self.magnitude) == 0 {
            return Ok(Number { negative: false, exponent: 0, bits, exact: false });
        }
        if exponent.saturating_add(self.digits.len() as i64).abs() > DECIMAL_EXPONENT_LIMIT {
            return Err(Refusal::ExponentRange);
        }
        if self.keeps && exponent.unsigned_abs() <= KEPT_EXPONENT {
            let power = Rational::from(Integer::u_pow_u(10, exponent.unsigned_abs() as u32).complete());
            let digits = Rational::from(signed_integer(negative, &self.magnitude));
            self.written = Some(if exponent < 0 { digits / power } else { digits * power });
        }
        if exponent.unsigned_abs() > u64::from(MAXIMUM_POWER) {
            return self.scaled_by_mpfr(bits, negative, exponent);
        }
        if exponent >= 0 {
            let power = self.powers.get(exponent.unsigned_abs() as u32);
            let product = &mut self.division.numerator;
            product.assign_digits(&self.magnitude, Order::Lsf);
            *product *= power;
            copy_limbs(product, &mut self.magnitude);
            return Ok(Number { negative, exponent, bits, exact: false });
        }
        let power = self.powers.get(exponent.unsigned_abs() as u32);
        let shift = self.division.divide(&mut self.magnitude, power, bits);
        Ok(Number { negative, exponent: exponent - shift, bits, exact: false })
    }

    /// As [`NumberReader::scaled`], for exponents whose power of ten would be long: MPFR rounds correctly.
    fn scaled_by_mpfr(&mut self, bits: u32, negative: bool, exponent: i64) -> Result<Number, Refusal> {
        let digits = Integer::from_digits(&self.magnitude, Order::Lsf);
        // MPFR's exponents end where ours end, and just below it would round a second time, to its least number;
        // 4 times the number has the same significand.
        for quadrupled in [0, 2] {
            let text = format!("{}e{exponent}", Integer::from(&digits << quadrupled));
            let value = Float::with_val(bits, Float::parse(&text).map_err(|_| Refusal::NotANumber)?);
            let at_edge = value.get_exp().is_none_or(|exponent| i64::from(exponent) <= 2 - MAXIMUM_EXPONENT);
            if at_edge && quadrupled == 0 && value.is_finite() {
                continue;
            }
            let Some((integer, exponent)) = value.to_integer_exp().filter(|(integer, _)| !integer.is_zero()) else {
                return Err(Refusal::ExponentRange);
            };
            copy_limbs(&integer, &mut self.magnitude);
            self.is_rounded = true;
            return Ok(Number { negative, exponent: i64::from(exponent) - i64::from(quadrupled), bits, exact: false });
        }
        Err(Refusal::ExponentRange)
    }

    /// The decimal digits as an integer in `magnitude`.
    fn digits_to_magnitude(&mut self) {
        self.magnitude.clear();
        if self.digits.len() > LONG_DIGITS {
            let text = std::str::from_utf8(&self.digits).expect("only digits were collected");
            let integer: Integer = text.parse().expect("only digits were collected");
            copy_limbs(&integer, &mut self.magnitude);
            return;
        }
        digits::decimal(&self.digits, &mut self.magnitude);
    }
}

fn signed_integer(negative: bool, magnitude: &[u64]) -> Integer {
    let integer = Integer::from_digits(magnitude, Order::Lsf);
    if negative { -integer } else { integer }
}

fn copy_limbs(integer: &Integer, limbs: &mut Vec<u64>) {
    limbs.clear();
    limbs.extend_from_slice(integer.as_limbs());
}

/// The word without its underscores, each of which must stand between two digits.
fn without_underscores(word: &[u8]) -> Option<Vec<u8>> {
    let is_hexadecimal = word.iter().any(|byte| matches!(byte, b'x' | b'X'));
    let is_digit = |byte: u8| if is_hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let between = word.windows(3).filter(|three| three[1] == b'_');
    let fine = between.clone().all(|three| is_digit(three[0]) && is_digit(three[2]));
    let count = word.iter().filter(|&&byte| byte == b'_').count();
    (fine && count == between.count()).then(|| word.iter().copied().filter(|&byte| byte != b'_').collect())
}

/// An exponent: a sign and digits. Values beyond every supported exponent stop growing, they stay out of range.
fn signed(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0, |size: i64, digit| (size * 10 + i64::from(digit - b'0')).min(1 << 50));
    Some(if negative { -size } else { size })
}

/// The infinity or NaN that a word without its sign spells, if it spells one.
pub(super) fn not_finite(word: &[u8]) -> Option<&'static str> {
    let lower = word.get(..word.len().min(16))?.to_ascii_lowercase();
    match lower.as_slice() {
        b"inf" | b"infinity" => Some("infinite"),
        [b'n', b'a', b'n'] | [b'n', b'a', b'n', b'(', ..] => Some("NaN"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
