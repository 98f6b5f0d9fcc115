//! A reader of Matrix Market text that shares nothing with the library: whole text, strings, one rug value each.
//!
//! Slow and plain. It follows the same rules; where the library has limits (exponents, precision), it says so.

use rug::{Float, Integer, Rational};

/// One number of a file.
pub enum Value {
    /// `integer * 2^exponent`, to be stored as it is.
    Exact(Integer, i64),
    /// A decimal as MPFR reads it.
    Decimal(String),
    /// A fraction, to be rounded.
    Fraction(Rational),
}

/// A file that follows the format.
pub struct Text {
    pub rows: usize,
    pub cols: usize,
    pub symmetric: bool,
    /// Row, column, value; from 0, in the order of the file.
    pub entries: Vec<(usize, usize, Value)>,
}

/// Reads `bytes`, or `None` where they do not follow the format.
pub fn parse(bytes: &[u8]) -> Option<Text> {
    // Latin letters for all bytes above 127: they are no part of any number or word.
    let text: String = bytes.iter().map(|&byte| byte as char).collect();
    let mut lines = text.split('\n');
    let banner: Vec<String> = words(lines.next()?).iter().map(|word| word.to_ascii_lowercase()).collect();
    let banner: Vec<&str> = banner.iter().map(String::as_str).collect();
    let ["%%matrixmarket", "matrix", arrangement, field, symmetry] = banner[..] else { return None };
    let dense = match arrangement {
        "array" => true,
        "coordinate" => false,
        _ => return None,
    };
    let integers = match field {
        "integer" => true,
        "real" | "double" => false,
        _ => return None,
    };
    let symmetric = match symmetry {
        "symmetric" => true,
        "general" => false,
        _ => return None,
    };
    let size = loop {
        let line = lines.next()?;
        if let Some(comment) = line.strip_prefix('%') {
            comment_is_fine(comment).then_some(())?;
        } else if !words(line).is_empty() {
            break words(line);
        }
    };
    let size: Vec<usize> = size.iter().map(|word| count(word)).collect::<Option<_>>()?;
    let (rows, cols, stored) = match size[..] {
        [rows, cols] if dense => (rows, cols, None),
        [rows, cols, stored] if !dense => (rows, cols, Some(stored)),
        _ => return None,
    };
    if symmetric && rows != cols {
        return None;
    }
    let rest: Vec<&str> = lines.collect();
    let entries = match stored {
        None => dense_entries(&rest, (rows, cols), integers, symmetric)?,
        Some(stored) => sparse_entries(&rest, (rows, cols, stored), integers, symmetric)?,
    };
    Some(Text { rows, cols, symmetric, entries })
}

type Entries = Vec<(usize, usize, Value)>;

fn dense_entries(lines: &[&str], (rows, cols): (usize, usize), integers: bool, symmetric: bool) -> Option<Entries> {
    let mut values = lines.iter().flat_map(|line| words(line));
    let mut entries = Vec::new();
    for col in 0..if rows == 0 { 0 } else { cols } {
        for row in if symmetric { col } else { 0 }..rows {
            entries.push((row, col, value(values.next()?, integers)?));
        }
    }
    values.next().is_none().then_some(entries)
}

fn sparse_entries(
    lines: &[&str],
    (rows, cols, stored): (usize, usize, usize),
    integers: bool,
    symmetric: bool,
) -> Option<Entries> {
    let mut entries: Entries = Vec::new();
    for words in lines.iter().map(|line| words(line)).filter(|words| !words.is_empty()) {
        let [row, col, number] = words[..] else { return None };
        let (row, col) = (count(row)?.checked_sub(1)?, count(col)?.checked_sub(1)?);
        let inside = row < rows && col < cols && (!symmetric || row >= col);
        let is_new = !entries.iter().any(|entry| (entry.0, entry.1) == (row, col));
        (inside && is_new).then_some(())?;
        entries.push((row, col, value(number, integers)?));
    }
    (entries.len() == stored).then_some(entries)
}

fn words(line: &str) -> Vec<&str> {
    line.split([' ', '\t', '\r', '\n', '\x0c']).filter(|word| !word.is_empty()).collect()
}

fn count(word: &str) -> Option<usize> {
    if word.chars().all(|letter| letter.is_ascii_digit()) { word.parse().ok() } else { None }
}

fn comment_is_fine(comment: &str) -> bool {
    let words = words(comment);
    if !comment.starts_with("sunzi") || words.first() != Some(&"sunzi") {
        return true;
    }
    let bits = words[1..].iter().find_map(|word| word.strip_prefix("precision_bits="));
    bits.is_none_or(|bits| bits.parse::<u32>().is_ok_and(|bits| (2..=1 << 24).contains(&bits)))
}

/// Takes off a sign.
fn sign(word: &str) -> (bool, &str) {
    match word.chars().next() {
        Some('-') => (true, &word[1..]),
        Some('+') => (false, &word[1..]),
        _ => (false, word),
    }
}

/// A number; an underscore may stand between two digits.
fn value(word: &str, integers: bool) -> Option<Value> {
    let is_hexadecimal = word.contains(['x', 'X']);
    let is_digit = |at: Option<usize>| {
        let letter = at.and_then(|at| word.as_bytes().get(at)).copied().unwrap_or(b' ');
        if is_hexadecimal { letter.is_ascii_hexdigit() } else { letter.is_ascii_digit() }
    };
    let mut marks = word.bytes().enumerate().filter(|(_, byte)| *byte == b'_').map(|(at, _)| at);
    if !marks.all(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))) {
        return None;
    }
    plain_value(&word.replace('_', ""), integers)
}

fn plain_value(word: &str, integers: bool) -> Option<Value> {
    let (negative, size) = sign(word);
    let signed = |integer: Integer| if negative { -integer } else { integer };
    if !size.is_empty() && size.chars().all(|letter| letter.is_ascii_digit()) {
        return Some(Value::Exact(signed(size.parse().ok()?), 0));
    }
    if integers {
        return None;
    }
    if let Some(hex) = size.strip_prefix("0x").or_else(|| size.strip_prefix("0X")) {
        let (digits, exponent) = hex.split_once(['p', 'P']).map_or((hex, Some(0)), |(d, e)| (d, power(e)));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.chars().all(|letter| letter.is_ascii_hexdigit()) {
            return None;
        }
        let integer = Integer::from_str_radix(&digits, 16).ok()?;
        return Some(Value::Exact(signed(integer), exponent? - 4 * fraction.len() as i64));
    }
    if let Some((numerator, denominator)) = size.split_once('/') {
        let is_integer = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
        if !is_integer(numerator) || !is_integer(denominator) {
            return None;
        }
        let (numerator, denominator) = (numerator.parse::<Integer>().ok()?, denominator.parse::<Integer>().ok()?);
        return (denominator != 0).then(|| Value::Fraction(Rational::from((signed(numerator), denominator))));
    }
    let mathematica = mathematica(size)?;
    let size = mathematica.as_str();
    let (digits, exponent) = size.split_once(['e', 'E', 'd', 'D']).map_or((size, Some(0)), |(d, e)| (d, power(e)));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.chars().chain(fraction.chars()).all(|letter| letter.is_ascii_digit());
    if !all_digits || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let minus = if negative { "-" } else { "" };
    Some(Value::Decimal(format!("{minus}{digits}e{}", exponent?)))
}

/// A number of Mathematica as others write it; anything else stays as it is.
fn mathematica(word: &str) -> Option<String> {
    let (front, power) = match word.split_once("*^") {
        Some((front, power)) => (front, format!("e{power}")),
        None => (word, String::new()),
    };
    let (digits, mark) = match front.split_once('`') {
        Some((digits, mark)) => (digits, Some(mark)),
        None => (front, None),
    };
    if let Some(mark) = mark {
        let (is_accuracy, mark) = mark.strip_prefix('`').map_or((false, mark), |mark| (true, mark));
        let plain = mark.chars().all(|letter| letter.is_ascii_digit() || ".+-".contains(letter));
        let fine = plain && (mark.parse::<f64>().is_ok() || mark.is_empty() && !is_accuracy);
        fine.then_some(())?;
    }
    let is_mathematica = mark.is_some() || !power.is_empty();
    // One exponent is enough.
    if is_mathematica && digits.contains(['e', 'E', 'd', 'D']) {
        return None;
    }
    // A mark makes a decimal of an integer.
    let point = if is_mathematica && !digits.contains('.') { "." } else { "" };
    Some(format!("{digits}{point}{power}"))
}

/// An exponent; beyond a million million it does not matter how large it is.
fn power(text: &str) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() || !digits.chars().all(|letter| letter.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000_000_000);
    Some(if negative { -size } else { size })
}

impl Value {
    /// Significant bits that an exact value needs.
    pub fn bits(&self) -> u32 {
        match self {
            Value::Exact(integer, _) => integer.significant_bits() - integer.find_one(0).unwrap_or(0),
            Value::Decimal(_) | Value::Fraction(_) => 0,
        }
    }

    /// Whether the binary exponent is near or beyond the ends of the range.
    pub fn is_extreme(&self) -> bool {
        let limit = (1 << 30) - 70_000;
        match self {
            Value::Exact(integer, exponent) => {
                !integer.is_zero() && (exponent + i64::from(integer.significant_bits())).abs() > limit
            }
            Value::Fraction(_) => false,
            Value::Decimal(text) => {
                let value = Float::with_val(64, Float::parse(text).expect("the oracle made this text"));
                let has_digit =
                    text.split('e').next().is_some_and(|digits| digits.contains(|d| ('1'..='9').contains(&d)));
                has_digit && value.get_exp().is_none_or(|exponent| i64::from(exponent).abs() > limit)
            }
        }
    }

    /// Whether `found`, stored after rounding decimals to `decimal_bits`, is this number.
    pub fn equals(&self, found: sunzi::FloatRef<'_>, decimal_bits: u32) -> bool {
        let (mut found, mut found_exponent) = found.to_integer_exponent();
        let (mut wanted, mut wanted_exponent) = match self {
            Value::Exact(integer, exponent) => (integer.clone(), *exponent),
            Value::Decimal(text) => {
                let value = Float::with_val(decimal_bits, Float::parse(text).expect("the oracle made this text"));
                let (integer, exponent) = value.to_integer_exp().expect("not extreme, so finite");
                (integer, i64::from(exponent))
            }
            Value::Fraction(value) => {
                let value = Float::with_val(decimal_bits, value);
                let (integer, exponent) = value.to_integer_exp().expect("a finite number");
                (integer, i64::from(exponent))
            }
        };
        for (integer, exponent) in [(&mut found, &mut found_exponent), (&mut wanted, &mut wanted_exponent)] {
            match integer.find_one(0) {
                None => *exponent = 0,
                Some(zeros) => {
                    *integer >>= zeros;
                    *exponent += i64::from(zeros);
                }
            }
        }
        found == wanted && found_exponent == wanted_exponent
    }
}
