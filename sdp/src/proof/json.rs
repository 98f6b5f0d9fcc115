//! JSON with the texts of its numbers kept as they stand.
//!
//! Does not know: what the values mean.

use std::collections::HashSet;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// A number, a word, or what stands in quotation marks.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object; no key stands twice.
    Object(Vec<(String, Json)>),
}

/// Lists in lists, at most.
const MAXIMUM_DEPTH: usize = 64;

impl Json {
    /// Reads a whole text.
    ///
    /// # Errors
    /// A text with the number of the byte, from 0.
    pub fn parse(text: &[u8]) -> Result<Json, String> {
        let mut reader = Reader { text, at: 0 };
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

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte that is no blank.
    fn next(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
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
            return Err(format!("byte {}: more than {MAXIMUM_DEPTH} lists or objects in each other", self.at));
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
                    if !keys.insert(key.clone()) {
                        return Err(format!("byte {}: the key '{key}' stands twice in an object", reader.at));
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

    /// What stands between an opening bracket and `close`, with commas between.
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
                None => return Err("the file ends inside of a list or an object".into()),
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
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        Err("the file ends inside of a string".into())
    }

    fn word(&mut self) -> Result<Json, String> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b':' | b'"');
        let rest = &self.text[self.at..];
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected(rest[0], "a value"));
        }
        self.at += length;
        Ok(Json::Text(String::from_utf8_lossy(&rest[..length]).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_digits() {
        let json =
            Json::parse(br#" {"a": [1.00000000000000000000000001, "2e5"], "b": {}, "c": [], "d": "\"" } "#).unwrap();
        let text = |text: &str| Json::Text(text.into());
        assert_eq!(json.get("a"), Ok(&Json::List(vec![text("1.00000000000000000000000001"), text("2e5")])));
        assert_eq!(json.get("b"), Ok(&Json::Object(Vec::new())));
        assert_eq!(json.get("c"), Ok(&Json::List(Vec::new())));
        assert!(json.get("e").unwrap_err().contains("'e'"));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(100_000);
        for text in
            ["", "[", "[1", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":1,\"a\":2}", "{a:1}", "\"x", "\"x\\", "1 2", &deep]
        {
            assert!(Json::parse(text.as_bytes()).is_err(), "{}", &text[..text.len().min(20)]);
        }
    }
}
