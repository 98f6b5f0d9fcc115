//! Reads one number: an integer, a C99 hexadecimal float or a decimal of any length.
//!
//! Promise: integers and hexadecimal floats are taken exactly; decimals are rounded once, to nearest, ties to even.
//! The number may be followed by nothing: the whole word must be a number. Does not know: files, matrices.

use crate::io::digits::{self, take_digits};
use crate::io::powers::{MAXIMUM_POWER, PowersOfFive};
use crate::math::float::{Head, bit_length, limbs_for, round_integer};
use crate::matrix::{MAXIMUM_EXPONENT, MAXIMUM_PRECISION_BITS};
use rug::integer::Order;
use rug::{Assign, Float, Integer};

/// Which numbers a file may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// Integers only.
    Integer,
    /// Integers, decimals and hexadecimal floats.
    Real,
}

/// Why a word is not a number that can be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// NaN or infinity; the text says which.
    NotFinite(&'static str),
    /// No number at all.
    NotANumber,
    /// A number with a fraction or an exponent where integers are wanted.
    NotAnInteger,
    /// Its binary exponent is beyond [`MAXIMUM_EXPONENT`].
    ExponentRange,
    /// It has this many significant bits, more than [`MAXIMUM_PRECISION_BITS`].
    TooLong(u64),
    /// The system refused this many bytes for it.
    OutOfMemory(u64),
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

/// Digits above which GMP's conversion, which is faster than quadratic, is used.
const LONG_DIGITS: usize = 2000;

/// Decimal exponents beyond this are out of range for certain: 10^330000000 > 2^(2^30).
const DECIMAL_EXPONENT_LIMIT: i64 = 330_000_000;

/// Reads numbers one after the other, with scratch space kept between them.
pub(super) struct NumberReader {
    decimal_bits: u32,
    digits: Vec<u8>,
    magnitude: Vec<u64>,
    powers: PowersOfFive,
    numerator: Integer,
    quotient: Integer,
    remainder: Integer,
}

impl NumberReader {
    /// A reader that rounds decimals to `decimal_bits` bits.
    pub fn new(decimal_bits: u32) -> Self {
        NumberReader {
            decimal_bits,
            digits: Vec::new(),
            magnitude: Vec::new(),
            powers: PowersOfFive::default(),
            numerator: Integer::new(),
            quotient: Integer::new(),
            remainder: Integer::new(),
        }
    }

    /// Reads `word`; [`NumberReader::store`] then gives its significand.
    ///
    /// # Errors
    /// A [`Refusal`] that says what the word is instead.
    pub fn read(&mut self, word: &[u8], field: Field) -> Result<Number, Refusal> {
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

    /// The magnitude times `2^exponent`, exactly.
    fn exact(&mut self, negative: bool, exponent: i64) -> Result<Number, Refusal> {
        let length = bit_length(&self.magnitude);
        if length == 0 {
            return Ok(Number { negative: false, exponent: 0, bits: 2, exact: true });
        }
        let low = self.magnitude.iter().position(|&limb| limb != 0).unwrap_or(0);
        let zeros = low as u64 * 64 + u64::from(self.magnitude[low].trailing_zeros());
        match u32::try_from(length - zeros) {
            Ok(bits) if bits <= MAXIMUM_PRECISION_BITS => {
                Ok(Number { negative, exponent, bits: bits.max(2), exact: true })
            }
            _ => Err(Refusal::TooLong(length - zeros)),
        }
    }

    /// The magnitude times `10^exponent`, ready to be rounded: enough quotient bits and a sticky bit below them.
    fn scaled(&mut self, negative: bool, exponent: i64) -> Result<Number, Refusal> {
        let bits = self.decimal_bits;
        if bit_length(&self.magnitude) == 0 {
            return Ok(Number { negative: false, exponent: 0, bits, exact: false });
        }
        if exponent.saturating_add(self.digits.len() as i64).abs() > DECIMAL_EXPONENT_LIMIT {
            return Err(Refusal::ExponentRange);
        }
        if exponent.unsigned_abs() > u64::from(MAXIMUM_POWER) {
            return self.scaled_by_mpfr(negative, exponent);
        }
        let power = self.powers.get(exponent.unsigned_abs() as u32);
        if exponent >= 0 {
            self.numerator.assign_digits(&self.magnitude, Order::Lsf);
            self.numerator *= power;
            copy_limbs(&self.numerator, &mut self.magnitude);
            return Ok(Number { negative, exponent, bits, exact: false });
        }
        // With two bits more than the precision, half an ulp is above the sticky bit.
        let wanted = i64::from(bits) + 2 + i64::from(power.significant_bits());
        let shift = (wanted - bit_length(&self.magnitude) as i64).max(0) as u32;
        self.numerator.assign_digits(&self.magnitude, Order::Lsf);
        self.numerator <<= shift;
        (&mut self.quotient, &mut self.remainder).assign(self.numerator.div_rem_ref(power));
        self.quotient <<= 1;
        if !self.remainder.is_zero() {
            self.quotient += 1;
        }
        copy_limbs(&self.quotient, &mut self.magnitude);
        Ok(Number { negative, exponent: exponent - i64::from(shift) - 1, bits, exact: false })
    }

    /// As [`NumberReader::scaled`], for exponents whose power of ten would be long: MPFR rounds correctly.
    fn scaled_by_mpfr(&mut self, negative: bool, exponent: i64) -> Result<Number, Refusal> {
        let bits = self.decimal_bits;
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

fn copy_limbs(integer: &Integer, limbs: &mut Vec<u64>) {
    limbs.clear();
    limbs.extend_from_slice(integer.as_limbs());
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

/// Which value that is not finite a word without its sign spells.
fn not_finite(word: &[u8]) -> Option<&'static str> {
    let lower = word.get(..word.len().min(16))?.to_ascii_lowercase();
    match lower.as_slice() {
        b"inf" | b"infinity" => Some("infinite"),
        [b'n', b'a', b'n'] | [b'n', b'a', b'n', b'(', ..] => Some("NaN"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::FloatRef;
    use rug::rand::RandState;

    fn generator(seed: u32) -> RandState<'static> {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(seed));
        rng
    }

    /// The value of `word` read at `bits`, and its number.
    fn value(reader: &mut NumberReader, word: &str) -> Result<(Float, Number), Refusal> {
        let number = reader.read(word.as_bytes(), Field::Real)?;
        let mut limbs = vec![0xdead; limbs_for(number.bits) + 1];
        let head = reader.store(number, &mut limbs)?;
        assert_eq!(limbs[0], 0, "{word}: the limb below the significand is cleared");
        Ok((FloatRef { head, limbs: &limbs }.to_float(number.bits), number))
    }

    fn decimal(bits: u32, word: &str) -> Float {
        let (value, number) = value(&mut NumberReader::new(bits), word).unwrap();
        assert!(!number.exact && number.bits == bits, "{word}");
        value
    }

    fn oracle(bits: u32, word: &str) -> Float {
        Float::with_val(bits, Float::parse(word.replace(['d', 'D'], "e")).unwrap())
    }

    #[test]
    fn decimals_round_as_mpfr_does() {
        let mut rng = generator(5);
        for case in 0..6000 {
            let bits = 2 + rng.below(if case % 7 == 0 { 1500 } else { 200 });
            let digits = 1 + rng.below(if case % 11 == 0 { 2500 } else { 80 });
            let mut word: String = (0..digits).map(|_| char::from(b'0' + rng.below(10) as u8)).collect();
            if case % 4 != 0 {
                word.insert(rng.below(digits) as usize, '.');
            }
            if case % 3 != 0 || !word.contains('.') {
                let exponent = match case % 5 {
                    0 => rng.below(120_000) as i64 - 60_000,
                    1 => rng.below(8400) as i64 - 4200,
                    _ => rng.below(120) as i64 - 60,
                };
                word += &format!("{}{exponent}", ['e', 'E', 'd', 'D'][case % 4]);
            }
            if case % 2 == 0 {
                word.insert(0, '-');
            }
            assert_eq!(decimal(bits, &word), oracle(bits, &word), "{bits} bits: {word}");
        }
    }

    #[test]
    fn exact_ties_go_to_even_and_their_neighbours_away() {
        let mut rng = generator(6);
        for case in 0..2000u32 {
            let bits = 2 + rng.below(150);
            let odd = Integer::from(Integer::random_bits(bits, &mut rng)) * 2u32 + 1u32;
            let tie: Integer = odd + (Integer::from(1) << (bits + 1)); // bits + 2 significant bits at most, odd
            let shift = rng.below(160) as i32 - 80;
            // The tie as a decimal, exactly: 2^-k = 5^k 10^-k.
            let (digits, exponent) = if shift >= 0 {
                ((tie.clone() << shift).to_string(), 0)
            } else {
                ((tie.clone() * Integer::from(Integer::u_pow_u(5, shift.unsigned_abs()))).to_string(), shift)
            };
            for (tail, nudge) in [("", 0), ("000000000000000000000000000000000001", 1)] {
                let word = format!("{digits}{tail}e{}", exponent - tail.len() as i32);
                let exact: Integer = (tie.clone() << 4) + nudge;
                let mut want = Float::with_val(bits, &exact);
                want <<= shift - 4;
                assert_eq!(decimal(bits, &word), want, "case {case}, {bits} bits: {word}");
                assert_eq!(want, oracle(bits, &word));
            }
        }
        assert_eq!(decimal(2, "2.5"), 2);
        assert_eq!(decimal(2, "3.5"), 4);
        assert_eq!(decimal(2, "-3.5000000000000000000001"), -4);
        assert_eq!(decimal(2, "2.5000000000000000000001"), 3);
    }

    #[test]
    fn the_ends_of_the_exponent_range() {
        // 2^-1073741824 is the least number; half of it would be rounded twice if MPFR's underflow were trusted.
        let least = Float::with_val(64, 1) >> (MAXIMUM_EXPONENT + 1) as i32;
        let text = least.to_string_radix(10, Some(40));
        assert_eq!(decimal(64, &text), least);
        let mut reader = NumberReader::new(64);
        for word in ["1.5e-323228497", "1e-323228497", "1e323228497", "-1e999999999999999999999", "3e-99999999999999"] {
            assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::ExponentRange, "{word}");
        }
        assert!(value(&mut reader, "1e323228400").is_ok());
        assert!(value(&mut reader, "0.000e-99999999999999999").unwrap().0.is_zero());
        for (word, ok) in [
            ("0x.8p1073741823", true),
            ("0x1p1073741823", false),
            ("0x1p-1073741824", true),
            ("0x1p-1073741825", false),
            ("0x1p99999999999999999999", false),
        ] {
            assert_eq!(value(&mut reader, word).is_ok(), ok, "{word}");
        }
    }

    #[test]
    fn integers_and_hexadecimal_floats_are_exact() {
        let mut rng = generator(7);
        let mut reader = NumberReader::new(2);
        for case in 0..3000u32 {
            let size = 1 + rng.below(if case % 9 == 0 { 9000 } else { 300 });
            let integer = (Integer::from(Integer::random_bits(size, &mut rng)) | 1u32) << rng.below(90);
            let bits = (integer.significant_bits() - integer.find_one(0).unwrap()).max(2);
            let (found, number) = value(&mut reader, &format!("-{integer}")).unwrap();
            assert_eq!((found.clone(), number.bits, number.exact), (-Float::with_val(bits, &integer), bits, true));
            let mut hex = integer.to_string_radix(16);
            let exponent = rng.below(400) as i32 - 200;
            let after = rng.below(hex.len() as u32 + 1) as usize;
            hex.insert(hex.len() - after, '.');
            if case % 2 == 0 {
                hex = hex.to_uppercase();
            }
            let (found, number) = value(&mut reader, &format!("-0x000{hex}00p{exponent}")).unwrap();
            let want = -Float::with_val(bits, &integer) << (exponent - 4 * after as i32);
            assert_eq!((found, number.bits, number.exact), (want, bits, true), "{hex}p{exponent}");
        }
        for (word, want) in
            [("0x1.8p-3", 0.1875), ("0X.8", 0.5), ("0xA.", 10.0), ("+7", 7.0), ("-0", 0.0), ("0x0p0", 0.0)]
        {
            assert_eq!(value(&mut reader, word).unwrap().0, want, "{word}");
        }
    }

    #[test]
    fn what_is_no_number() {
        let mut reader = NumberReader::new(64);
        for word in [
            "", "-", "+-1", ".", "1.2.3", "e5", "1e", "1e+", "1e5.0", "0x", "0x.p1", "0x1p", "0x1q2", "one", "1_000",
            "1,5", "0b1", "١", "1e5x", "--1", "nano", "infinit", "0x1.8e3p",
        ] {
            assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::NotANumber, "{word}");
        }
        for word in ["nan", "-NaN", "nan(0x1)", "NAN"] {
            assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::NotFinite("NaN"), "{word}");
        }
        for word in ["inf", "-Inf", "+INFINITY"] {
            assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::NotFinite("infinite"), "{word}");
        }
        for word in ["1.0", "1e3", "0x10", ".5", "7."] {
            assert_eq!(reader.read(word.as_bytes(), Field::Integer).unwrap_err(), Refusal::NotAnInteger, "{word}");
        }
        assert!(reader.read(b"-17", Field::Integer).unwrap().exact);
        let long = format!("0x1{}1", "0".repeat((MAXIMUM_PRECISION_BITS / 4) as usize));
        assert!(matches!(reader.read(long.as_bytes(), Field::Real), Err(Refusal::TooLong(_))));
    }
}
