//! JSON that keeps the texts of its numbers.
//!
//! Independent of: what the values mean.

use super::number::{as_text, shown};
use std::collections::HashSet;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// The text in quotation marks; marks behind a backslash stay as they are.
    Text(String),
    /// A number, `true`, `false` or `null`.
    Word(String),
    /// A list.
    List(Vec<Json>),
    /// An object; no key stands twice.
    Object(Vec<(String, Json)>),
}

/// The largest depth of nested lists and objects.
const MAXIMUM_DEPTH: usize = 64;

impl Json {
    /// Reads a whole text.
    ///
    /// # Errors
    /// A text with the number of the byte, from 0.
    pub fn parse(text: &[u8]) -> Result<Json, String> {
        as_text(text)?;
        let mut reader = JsonReader { text, at: 0 };
        let value = reader.value(0)?;
        match reader.next() {
            None => Ok(value),
            Some(found) => Err(reader.unexpected(found, "the end")),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A text that names it.
    pub fn get(&self, key: &str) -> Result<&Json, String> {
        let missing = || format!("there is no '{key}'");
        let Json::Object(pairs) = self else { return Err("an object is expected".into()) };
        pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value).ok_or_else(missing)
    }
}

impl Json {
    /// The values of a list.
    ///
    /// # Errors
    /// A text if it is not valid.
    pub fn items(&self) -> Result<&[Json], String> {
        match self {
            Json::List(list) => Ok(list),
            _ => Err("a list is expected".into()),
        }
    }

    /// The results of `read` for each value of a list.
    ///
    /// # Errors
    /// The first error of `read`, or that the value is not a list.
    pub fn each<T>(&self, read: impl Fn(&Json) -> Result<T, String>) -> Result<Vec<T>, String> {
        self.items()?.iter().map(read).collect()
    }
}

struct JsonReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl JsonReader<'_> {
    /// The next byte that is no blank.
    fn next(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn unexpected(&self, found: u8, wanted: &str) -> String {
        format!("byte {}: '{}' where {wanted} is expected", self.at, char::from(found).escape_default())
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.next() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(found) => Err(self.unexpected(found, &format!("'{}'", char::from(byte)))),
            None => Err(format!("the file ends where '{}' is expected", char::from(byte))),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > MAXIMUM_DEPTH {
            return Err(format!("byte {}: more than {MAXIMUM_DEPTH} nested lists or objects", self.at));
        }
        match self.next() {
            None => Err("the file ends where a value is expected".into()),
            Some(b'[') => {
                let mut list = Vec::new();
                self.members(b']', |reader| {
                    list.push(reader.value(depth + 1)?);
                    Ok(())
                })?;
                Ok(Json::List(list))
            }
            Some(b'{') => {
                let (mut pairs, mut keys) = (Vec::new(), HashSet::new());
                self.members(b'}', |reader| {
                    reader.expect(b'"')?;
                    let key = reader.string()?;
                    // Other readers would undo it, and might find the same key twice.
                    if key.contains('\\') {
                        return Err(format!("byte {}: a key with a backslash", reader.at));
                    }
                    if !keys.insert(key.clone()) {
                        return Err(format!("byte {}: the key '{key}' occurs twice in an object", reader.at));
                    }
                    reader.expect(b':')?;
                    pairs.push((key, reader.value(depth + 1)?));
                    Ok(())
                })?;
                Ok(Json::Object(pairs))
            }
            Some(b'"') => {
                self.at += 1;
                Ok(Json::Text(self.string()?))
            }
            Some(_) => self.word(),
        }
    }

    /// The members between an opening bracket and `close`, separated by commas.
    fn members(&mut self, close: u8, mut member: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.at += 1;
        if self.next() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            member(self)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(found) if found == close => {
                    self.at += 1;
                    return Ok(());
                }
                Some(found) => return Err(self.unexpected(found, "a comma or the end of a list")),
                None => return Err("the file ends within a list or an object".into()),
            }
        }
    }

    /// The rest of a string; marks behind a backslash stay as they are.
    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    let text = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => self.at += self.escape()?,
                ..b' ' => return Err(self.unexpected(byte, "a letter")),
                _ => self.at += 1,
            }
        }
        Err("the file ends within a string".into())
    }

    /// Bytes of an escape sequence, which a backslash begins.
    fn escape(&self) -> Result<usize, String> {
        let digits = self.text.get(self.at + 2..self.at + 6);
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
            Some(b'u') if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) => Ok(6),
            _ => Err(format!("byte {}: a backslash without a valid escape", self.at)),
        }
    }

    fn word(&mut self) -> Result<Json, String> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b':' | b'"');
        let rest = &self.text[self.at..];
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected(rest[0], "a value"));
        }
        let word = String::from_utf8_lossy(&rest[..length]).into_owned();
        if !is_number(&word) && !matches!(word.as_str(), "true" | "false" | "null") {
            let shown = shown(&word);
            return Err(format!("byte {}: '{shown}' is neither a number of JSON nor in quotation marks", self.at));
        }
        self.at += length;
        Ok(Json::Word(word))
    }
}

/// Whether a word is a number as JSON has them: `-12.5e+3`, without zeros in front.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let word = word.strip_prefix('-').unwrap_or(word);
    let whole = digits(word);
    let mut rest = &word[whole..];
    if whole == 0 || (whole > 1 && word.starts_with('0')) {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = &fraction[digits(fraction)..];
        if fraction.len() == rest.len() {
            return false;
        }
    }
    if let Some(power) = rest.strip_prefix(['e', 'E']) {
        let power = power.strip_prefix(['-', '+']).unwrap_or(power);
        return !power.is_empty() && digits(power) == power.len();
    }
    rest.is_empty()
}

/// Whether other readers take a word for a whole number of 64 bits, of which none is lost.
pub fn is_whole(word: &str) -> bool {
    (word.parse::<u64>().is_ok() || word.parse::<i64>().is_ok()) && !word.starts_with('+') && word != "-0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_digits() {
        let json =
            Json::parse(br#" {"a": [1.00000000000000000000000001, "2e5"], "b": {}, "c": [], "d": "\"" } "#).unwrap();
        let text = |text: &str| Json::Text(text.into());
        let word = Json::Word("1.00000000000000000000000001".into());
        assert_eq!(json.get("a"), Ok(&Json::List(vec![word, text("2e5")])));
        assert_eq!(json.get("b"), Ok(&Json::Object(Vec::new())));
        assert_eq!(json.get("c"), Ok(&Json::List(Vec::new())));
        assert!(json.get("e").unwrap_err().contains("'e'"));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "[",
            "[1",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":1,\"a\":2}",
            "{a:1}",
            "\"x",
            "\"x\\",
            "1 2",
            "01",
            "1.",
            ".5",
            "+1",
            "0x1",
            "1e",
            "nan",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a\u{1}\"",
            "{\"a\\n\": 1}",
            "[1,\u{b}2]",
            &deep,
        ] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{}", &text[..text.len().min(20)]);
        }
    }
}
