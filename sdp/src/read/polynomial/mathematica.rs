//! Mathematica's text: `SDP[objective, normalization, {PositiveMatrixWithPrefactor[prefactor, {{{p, ...}, ...}}]}]`.
//!
//! A prefactor is `DampedRational[constant, {pole, ...}, base, x]` or a number; a polynomial is a sum of terms in `x`.
//! Numbers may be broken over lines by a backslash, and have marks of precision and powers of ten `*^`; `(* ... *)` is
//! a comment. Vectors that are `{}` are absent. Expressions that Mathematica would still have to compute are refused.

use super::{FileParts, Numbers, upper};
use crate::polynomial::{DampedRational, Polynomial, PolynomialMatrix, Sampling};
use rug::Float;
use sunzi::{Error, Result};

/// Bytes that an error repeats.
const SHOWN: usize = 30;

/// The largest power of x: a polynomial has a coefficient for each power below.
const HIGHEST_POWER: usize = 1 << 16;

/// The text without needless blanks and comments, and the position of reading.
struct MathematicaReader<'a, 'n> {
    text: Vec<u8>,
    at: usize,
    numbers: &'a mut Numbers<'n>,
}

/// Reads the text of a file.
pub(super) fn read(text: &str, numbers: &mut Numbers<'_>) -> Result<FileParts> {
    let text = stripped(text).map_err(|message| numbers.refused(message))?;
    let mut reader = MathematicaReader { text, at: 0, numbers };
    if !reader.found("SDP[") {
        // It may be given a name.
        reader.skip(|byte| byte.is_ascii_alphanumeric() || byte == b'$');
        reader.word("=SDP[")?;
    }
    let objective = reader.vector()?;
    reader.word(",")?;
    let normalization = reader.vector()?;
    reader.word(",")?;
    let matrices = reader.list(MathematicaReader::matrix)?;
    reader.word("]")?;
    reader.found(";");
    if reader.at < reader.text.len() {
        return Err(reader.refused("the end of the file"));
    }
    let present = |vector: Vec<Float>| Some(vector).filter(|vector| !vector.is_empty());
    Ok(FileParts { objective: present(objective), normalization: present(normalization), matrices })
}

/// Whether letters behind a blank or a comment would join those before if it were dropped: in names, which no backslash
/// breaks either, and in powers of ten `*^`.
fn are_parted(kept: &[u8], rest: &[u8], is_broken: bool) -> bool {
    let is_name = kept.last().is_some_and(u8::is_ascii_alphabetic) && rest[0].is_ascii_alphanumeric();
    let is_behind = [&b"*^"[..], b"*^-", b"*^+"].into_iter().any(|mark| kept.ends_with(mark));
    let is_power = is_behind || rest.starts_with(b"*^") || kept.ends_with(b"*") && rest[0] == b'^';
    is_name || is_power && !is_broken
}

/// The text without comments, blanks and backslashes. Two numbers with a blank between them are a product, not one
/// number: they are refused, but where a backslash breaks a line inside of a number.
fn stripped(text: &str) -> std::result::Result<Vec<u8>, String> {
    let mut kept = Vec::with_capacity(text.len());
    let mut depth = 0usize;
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'`');
    // Whether something was left out behind the last letter that was kept, and a backslash in it.
    let (mut is_apart, mut is_broken) = (false, false);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at..at + 2);
        if pair == Some(b"(*") {
            depth += 1;
            is_apart = true;
            at += 2;
        } else if depth > 0 && pair == Some(b"*)") {
            depth -= 1;
            at += 2;
        } else {
            let byte = bytes[at];
            if depth == 0 && !byte.is_ascii_whitespace() && byte != b'\\' {
                if is_apart && !is_broken && kept.last().is_some_and(is_part) && is_part(&byte) {
                    return Err(format!("byte {at}: two numbers with only a blank between them"));
                }
                if is_apart && are_parted(&kept, &bytes[at..], is_broken) {
                    return Err(format!("byte {at}: a name or a power of ten continues after a blank"));
                }
                (is_apart, is_broken) = (false, false);
                kept.push(byte);
            } else {
                is_apart = true;
                is_broken |= depth == 0 && byte == b'\\';
            }
            at += 1;
        }
    }
    if depth > 0 { Err("a comment is not closed".into()) } else { Ok(kept) }
}

impl MathematicaReader<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Steps over `word` where it comes next.
    fn found(&mut self, word: &str) -> bool {
        let is_next = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if self.found(word) { Ok(()) } else { Err(self.refused(&format!("'{word}'"))) }
    }

    /// The error for text that stands where `wanted` should.
    fn refused(&self, wanted: &str) -> Error {
        let rest = &self.text[self.at..];
        let shown = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN)]).into_owned();
        let found = if rest.is_empty() { "the file ends".to_string() } else { format!("there is '{shown}'") };
        self.numbers.refused(format!("{found} where {wanted} is expected"))
    }

    /// `{item, ...}`, of any length.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.word("{")?;
        let mut items = Vec::new();
        if self.found("}") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.found(",") {
                self.word("}")?;
                return Ok(items);
            }
        }
    }

    fn vector(&mut self) -> Result<Vec<Float>> {
        self.list(MathematicaReader::number)
    }

    /// A number with its sign.
    fn number(&mut self) -> Result<Float> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+')) {
            self.at += 1;
        }
        self.digits()?;
        self.parse(start)
    }

    /// The number from `start` to here.
    fn parse(&mut self, start: usize) -> Result<Float> {
        let text = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        self.numbers.number(&text, &|| "a number".to_string())
    }

    /// Steps over a number without sign: digits, a mark, a power of ten.
    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        self.skip(is_digit);
        if self.at == start {
            return Err(self.refused("a number"));
        }
        if self.peek() == Some(b'`') {
            self.skip(|byte| byte == b'`');
            // It would be an accuracy below 0, or a sum: Mathematica takes the first.
            if self.text[..self.at].ends_with(b"``") && matches!(self.peek(), Some(b'-' | b'+')) {
                return Err(self.refused("the accuracy of a number"));
            }
            self.skip(is_digit);
        }
        if self.found("*^") {
            if matches!(self.peek(), Some(b'-' | b'+')) {
                self.at += 1;
            }
            self.skip(|byte| byte.is_ascii_digit());
        }
        // A fraction of two whole numbers.
        if self.peek() == Some(b'/') {
            self.at += 1;
            self.skip(|byte| byte.is_ascii_digit());
        }
        Ok(())
    }

    fn skip(&mut self, is_part: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_part) {
            self.at += 1;
        }
    }

    fn matrix(&mut self) -> Result<PolynomialMatrix> {
        self.word("PositiveMatrixWithPrefactor[")?;
        let prefactor = if self.found("DampedRational[") {
            let constant = self.number()?;
            self.word(",")?;
            let poles = self.vector()?;
            self.word(",")?;
            let base = self.number()?;
            self.word(",")?;
            self.skip(|byte| byte.is_ascii_alphanumeric() || byte == b'$');
            self.word("]")?;
            DampedRational { constant, base, poles }
        } else {
            let constant = self.number()?;
            DampedRational { base: Float::with_val(self.numbers.bits, 1), constant, poles: Vec::new() }
        };
        self.word(",")?;
        let rows = self.list(|reader| reader.list(|reader| reader.list(MathematicaReader::polynomial)))?;
        self.word("]")?;
        let (dim, entries) = upper(rows).map_err(|message| self.numbers.refused(message))?;
        Ok(PolynomialMatrix { dim, entries, sampling: Sampling { prefactor: Some(prefactor), ..Sampling::default() } })
    }

    /// A sum of terms.
    fn polynomial(&mut self) -> Result<Polynomial> {
        let mut coefficients = Polynomial::new();
        loop {
            let (coefficient, power) = self.term()?;
            while coefficients.len() <= power {
                coefficients.push(Float::new(self.numbers.bits));
            }
            coefficients[power] += coefficient;
            if !matches!(self.peek(), Some(b'-' | b'+')) {
                return Ok(coefficients);
            }
        }
    }

    /// `2.5*x^3`, `x`, `-x^2`, `x/2` or a number, with its sign.
    fn term(&mut self) -> Result<(Float, usize)> {
        let bits = self.numbers.bits;
        let mut negative = false;
        while let Some(sign @ (b'-' | b'+')) = self.peek() {
            negative ^= sign == b'-';
            self.at += 1;
        }
        let mut coefficient = Float::with_val(bits, 1);
        let mut has_x = self.peek() == Some(b'x');
        if !has_x {
            let start = self.at;
            self.digits()?;
            coefficient = self.parse(start)?;
            let is_product = self.found("*");
            has_x = self.peek() == Some(b'x');
            if is_product && !has_x {
                return Err(self.refused("x"));
            }
        }
        let mut power = 0;
        if has_x {
            self.at += 1;
            power = if self.found("^") { self.power()? } else { 1 };
            if self.found("/") {
                let start = self.at;
                self.digits()?;
                let divisor = self.parse(start)?;
                if divisor == 0 || self.text[start..self.at].contains(&b'/') {
                    self.at = start;
                    return Err(self.refused("a divisor"));
                }
                coefficient /= divisor;
            }
        }
        if negative {
            coefficient = -coefficient;
        }
        Ok((coefficient, power))
    }

    fn power(&mut self) -> Result<usize> {
        let start = self.at;
        self.skip(|byte| byte.is_ascii_digit());
        let text = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        match text.parse::<usize>() {
            Ok(power) if power <= HIGHEST_POWER => Ok(power),
            _ => {
                self.at = start;
                Err(self.refused(&format!("a power of at most {HIGHEST_POWER}")))
            }
        }
    }
}
