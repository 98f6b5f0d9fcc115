//! Polynomial programs in Mathematica's text, exactly:
//! `SDP[objective, normalization, {PositiveMatrixWithPrefactor[prefactor, {{{p, ...}, ...}}]}]`.
//!
//! The text is cut into numbers, names and marks first. Blanks and comments stand between them and never within one,
//! but after a backslash at the end of a line a number continues in the next line. Independent of: the solver's reader.

use super::choices::{Choices, Prefactor};
use super::limits::{NUMBER_BYTES, bytes_of};
use super::number::as_text;
use super::polynomial_parts::{MAXIMUM_DEGREE, Matrix, ProofParts, symmetric};
use super::room::Room;
use rug::Rational;

type Refusal<T> = Result<T, String>;

/// A piece of the text.
#[derive(PartialEq, Debug)]
enum Token {
    /// A number without its sign.
    Number(String),
    /// Letters, digits and `$`.
    Name(String),
    /// Any other letter.
    Mark(u8),
}

/// Reads the text of a file.
pub fn read(bytes: &[u8], room: &Room) -> Refusal<ProofParts> {
    let tokens = tokens(as_text(bytes)?.as_bytes())?;
    let mut reader = TextReader { tokens: &tokens, at: 0, room };
    let mut first = reader.name()?;
    if first != "SDP" {
        // It may be given a name.
        reader.mark(b'=')?;
        first = reader.name()?;
    }
    if first != "SDP" {
        return Err(format!("'{first}' where 'SDP' is expected"));
    }
    reader.mark(b'[')?;
    let objective = reader.list(TextReader::number)?;
    reader.mark(b',')?;
    let normalization = reader.list(TextReader::number)?;
    reader.mark(b',')?;
    let matrices = reader.list(TextReader::matrix)?;
    reader.mark(b']')?;
    reader.finds(b';');
    match reader.tokens.get(reader.at) {
        None => {
            let present = |list: Vec<Rational>| Some(list).filter(|list| !list.is_empty());
            Ok(ProofParts { objective: present(objective), normalization: present(normalization), matrices })
        }
        Some(found) => Err(format!("{found:?} after the end")),
    }
}

/// Where the next letter that counts stands: behind blanks, comments and the ends of lines.
fn behind_blanks(text: &[u8], mut at: usize) -> Refusal<usize> {
    let mut depth = 0usize;
    while at < text.len() {
        let pair = text.get(at..at + 2);
        if pair == Some(b"(*") {
            depth += 1;
            at += 2;
        } else if depth > 0 && pair == Some(b"*)") {
            depth -= 1;
            at += 2;
        } else if depth > 0 || text[at].is_ascii_whitespace() || text[at] == b'\\' {
            at += 1;
        } else {
            break;
        }
    }
    if depth > 0 { Err("a comment is not closed".into()) } else { Ok(at) }
}

/// Where the digits under a fraction's line stand, which may have blanks on both sides.
fn divisor(text: &[u8], at: usize) -> Option<usize> {
    let line = behind_blanks(text, at).ok().filter(|&at| text.get(at) == Some(&b'/'))?;
    behind_blanks(text, line + 1).ok().filter(|&at| text.get(at).is_some_and(u8::is_ascii_digit))
}

/// A number from `at` on: its letters, without lines that are broken in it, and where it ends. A power of x has only
/// digits: a fraction behind it divides the whole term.
fn number(text: &[u8], mut at: usize, is_power: bool) -> (String, usize) {
    let mut found = String::new();
    // The parts that may follow: digits, a mark of precision, the sign and the digits of a power of ten, those of a
    // fraction.
    let (mut part, mut is_sign) = (if is_power { 3 } else { 0 }, false);
    while let Some(&byte) = text.get(at) {
        if byte == b'\\' {
            at += 1;
            while text.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            continue;
        }
        let power = byte == b'*' && text.get(at + 1) == Some(&b'^');
        match byte {
            b'0'..=b'9' => is_sign = false,
            b'.' if part < 2 => {}
            b'`' if part < 2 => part = 1,
            b'*' if power && part < 2 => (part, is_sign) = (2, true),
            b'+' | b'-' if is_sign => is_sign = false,
            b'/' if part < 3 => part = 3,
            _ => match divisor(text, at).filter(|_| part < 3) {
                Some(next) => {
                    (part, at) = (3, next);
                    found.push('/');
                    continue;
                }
                None => break,
            },
        }
        found.push(char::from(byte));
        at += 1;
        if byte == b'/' {
            at = divisor(text, at - 1).unwrap_or(at);
        }
        if power {
            found.push('^');
            at += 1;
        }
    }
    (found, at)
}

fn tokens(text: &[u8]) -> Refusal<Vec<Token>> {
    let (mut found, mut at) = (Vec::new(), behind_blanks(text, 0)?);
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'$';
    while let Some(&byte) = text.get(at) {
        if byte.is_ascii_digit() || byte == b'.' {
            let (word, end) = number(text, at, byte != b'.' && found.last() == Some(&Token::Mark(b'^')));
            found.push(Token::Number(word));
            at = end;
        } else if is_letter(&byte) {
            let length = text[at..].iter().take_while(|byte| is_letter(byte)).count();
            found.push(Token::Name(String::from_utf8_lossy(&text[at..at + length]).into_owned()));
            at += length;
        } else {
            found.push(Token::Mark(byte));
            at += 1;
        }
        at = behind_blanks(text, at)?;
    }
    Ok(found)
}

/// The pieces of a file, and how far they are read.
struct TextReader<'a> {
    tokens: &'a [Token],
    at: usize,
    room: &'a Room,
}

impl<'a> TextReader<'a> {
    fn next(&mut self) -> Refusal<&'a Token> {
        let found = self.tokens.get(self.at).ok_or("the file ends too early")?;
        self.at += 1;
        Ok(found)
    }

    fn finds(&mut self, mark: u8) -> bool {
        let is_next = self.tokens.get(self.at) == Some(&Token::Mark(mark));
        self.at += usize::from(is_next);
        is_next
    }

    fn mark(&mut self, mark: u8) -> Refusal<()> {
        match self.next()? {
            Token::Mark(found) if *found == mark => Ok(()),
            found => Err(format!("{found:?} where '{}' is expected", char::from(mark))),
        }
    }

    fn name(&mut self) -> Refusal<&'a str> {
        match self.next()? {
            Token::Name(name) => Ok(name),
            found => Err(format!("{found:?} where a name is expected")),
        }
    }

    /// A number without sign.
    fn digits(&mut self) -> Refusal<Rational> {
        match self.next()? {
            Token::Number(word) => {
                // It would be an accuracy below 0, or a sum: Mathematica takes the first.
                if word.ends_with("``") && matches!(self.tokens.get(self.at), Some(Token::Mark(b'-' | b'+'))) {
                    return Err(format!("a sign after the accuracy mark of '{word}'"));
                }
                self.room.number(word)
            }
            found => Err(format!("{found:?} where a number is expected")),
        }
    }

    fn number(&mut self) -> Refusal<Rational> {
        let is_negative = self.finds(b'-');
        if !is_negative {
            self.finds(b'+');
        }
        let value = self.digits()?;
        Ok(if is_negative { -value } else { value })
    }

    /// `{item, ...}`, of any length.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Refusal<T>) -> Refusal<Vec<T>> {
        self.mark(b'{')?;
        let mut items = Vec::new();
        if self.finds(b'}') {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.finds(b',') {
                return self.mark(b'}').map(|()| items);
            }
        }
    }

    fn prefactor(&mut self) -> Refusal<Prefactor> {
        if !matches!(self.tokens.get(self.at), Some(Token::Name(_))) {
            return Ok(Prefactor { constant: self.number()?, base: Some(Rational::from(1)), poles: Vec::new() });
        }
        if self.name()? != "DampedRational" {
            return Err("a prefactor is a number or a DampedRational".into());
        }
        self.mark(b'[')?;
        let constant = self.number()?;
        self.mark(b',')?;
        let poles = self.list(TextReader::number)?;
        self.mark(b',')?;
        let base = Some(self.number()?);
        self.mark(b',')?;
        self.name()?;
        self.mark(b']')?;
        Ok(Prefactor { constant, base, poles })
    }

    fn matrix(&mut self) -> Refusal<Matrix> {
        if self.name()? != "PositiveMatrixWithPrefactor" {
            return Err("a list of PositiveMatrixWithPrefactor is expected".into());
        }
        self.mark(b'[')?;
        let prefactor = Some(self.prefactor()?);
        self.mark(b',')?;
        let rows = self.list(|reader| reader.list(|reader| reader.list(TextReader::polynomial)))?;
        self.mark(b']')?;
        let (dim, entries) = symmetric(rows)?;
        Ok(Matrix { dim, entries, choices: Choices { prefactor, ..Choices::default() } })
    }

    /// A sum of terms.
    fn polynomial(&mut self) -> Refusal<Vec<Rational>> {
        let mut coefficients = Vec::new();
        loop {
            let (coefficient, power) = self.term()?;
            if let Some(more) = (power + 1).checked_sub(coefficients.len()) {
                self.room.take(more as u64 * NUMBER_BYTES)?;
                coefficients.resize_with(power + 1, Rational::new);
            }
            coefficients[power] += coefficient;
            // A sum of fractions grows with each term.
            self.room.take(bytes_of(&coefficients[power]))?;
            if !matches!(self.tokens.get(self.at), Some(Token::Mark(b'-' | b'+'))) {
                return Ok(coefficients);
            }
        }
    }

    /// `2.5*x^3`, `x`, `-x^2`, `x/2` or a number, with its signs.
    fn term(&mut self) -> Refusal<(Rational, usize)> {
        let mut is_negative = false;
        loop {
            match (self.finds(b'-'), self.finds(b'+')) {
                (false, false) => break,
                (minus, _) => is_negative ^= minus,
            }
        }
        let mut coefficient = Rational::from(1);
        let mut power = 0;
        if matches!(self.tokens.get(self.at), Some(Token::Number(_))) {
            coefficient = self.digits()?;
            let is_product = self.finds(b'*');
            if is_product || matches!(self.tokens.get(self.at), Some(Token::Name(_))) {
                power = self.power(&mut coefficient)?;
            }
        } else {
            power = self.power(&mut coefficient)?;
        }
        Ok((if is_negative { -coefficient } else { coefficient }, power))
    }

    /// The power of `x^3` or `x^3/2`; the coefficient is divided.
    fn power(&mut self, coefficient: &mut Rational) -> Refusal<usize> {
        let name = self.name()?;
        if name != "x" {
            return Err(format!("'{name}' where 'x' is expected"));
        }
        let mut power = 1;
        if self.finds(b'^') {
            let Token::Number(word) = self.next()? else { return Err("a power is not a number".into()) };
            let limit = format!("a power is '{word}', but must be at most {MAXIMUM_DEGREE}");
            power = word.parse().ok().filter(|&power| power <= MAXIMUM_DEGREE).ok_or(limit)?;
        }
        if self.finds(b'/') {
            self.divide(coefficient)?;
        }
        Ok(power)
    }

    fn divide(&mut self, coefficient: &mut Rational) -> Refusal<()> {
        let token = self.tokens.get(self.at);
        let divisor = self.digits()?;
        if divisor == 0 || matches!(token, Some(Token::Number(word)) if word.contains('/')) {
            return Err(format!("{divisor} is not a valid divisor"));
        }
        *coefficient /= divisor;
        self.room.take(bytes_of(coefficient))
    }
}
