//! JSON: nested lists of numbers or strings, as a whole file or as a value inside of objects and lists.
//!
//! A name such as `B` or `0/samplePoints` leads to it: keys of objects and positions in lists, from 0, with `/` between
//! them. Other values are skipped without being kept. Independent of: how lists become matrices.

use crate::error::{Error, Result};
use crate::io::lists::{Syntax, expect, goes_on, next, unexpected};
use crate::io::scan::{BufferSpan, Scanner, shown};
use crate::io::{FileFormat, Source};
use std::io::Read;

/// Keys that an error repeats.
const SHOWN_KEYS: usize = 12;

/// JSON's lists.
pub(super) struct Json;

impl Syntax for Json {
    const FORMAT: FileFormat = FileFormat::Json;
    const OPEN: u8 = b'[';
    const CLOSE: u8 = b']';

    fn enter<R: Read>(scanner: &mut Scanner<'_, R>, source: &Source<'_>) -> Result<()> {
        for step in source.member.into_iter().flat_map(|member| member.split('/')) {
            match next_value(scanner)? {
                b'{' => enter_object(scanner, step)?,
                b'[' => enter_list(scanner, step)?,
                found => return Err(unexpected(scanner, found, &format!("an object or list that holds '{step}'"))),
            }
        }
        if next_value(scanner)? == b'{' {
            return Err(keys(scanner, source));
        }
        Ok(())
    }

    fn word<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<BufferSpan> {
        if next::<Json, R>(scanner)? != b'"' {
            return scanner.take_until(|byte| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace());
        }
        scanner.step();
        let word = scanner.take_until(|byte| byte == b'"' || byte == b'\n')?;
        let found = shown(scanner.bytes(word));
        close_string(scanner, &found)?;
        Ok(word)
    }

    fn skip<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<Option<u8>> {
        scanner.skip(|byte| byte.is_ascii_whitespace())
    }

    /// The rest must still close each bracket, so that a truncated file is noticed.
    fn leave<R: Read>(scanner: &mut Scanner<'_, R>, source: &Source<'_>) -> Result<()> {
        let depth = source.member.map_or(0, |member| member.split('/').count());
        close(scanner, depth)
    }
}

/// The next byte of a value.
fn next_value<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<u8> {
    Json::skip(scanner)?.ok_or_else(|| scanner.error("the file ends where a value is expected"))
}

/// Steps over the mark at the end of a string whose text is `found`.
fn close_string<R: Read>(scanner: &mut Scanner<'_, R>, found: &str) -> Result<()> {
    match scanner.skip(|_| false)? {
        Some(b'"') => {
            scanner.step();
            Ok(())
        }
        _ => Err(scanner.error(format_args!("a string is not closed: {found}"))),
    }
}

/// Goes to the value of a key.
fn enter_object<R: Read>(scanner: &mut Scanner<'_, R>, wanted: &str) -> Result<()> {
    let mut seen = Keys::default();
    scanner.step();
    if next_value(scanner)? != b'}' {
        loop {
            let key = key(scanner)?;
            if key == wanted.as_bytes() {
                return Ok(());
            }
            seen.add(&key);
            pass_value(scanner)?;
            match next_value(scanner)? {
                b',' => scanner.step(),
                b'}' => break,
                found => return Err(unexpected(scanner, found, "a comma or the end of the object")),
            }
        }
    }
    Err(scanner.error(format_args!("the object has no key '{wanted}': its keys are {}", seen.text())))
}

/// Goes to an element of a list.
fn enter_list<R: Read>(scanner: &mut Scanner<'_, R>, wanted: &str) -> Result<()> {
    let index = wanted.parse::<u64>().map_err(|_| {
        scanner.error(format_args!(
            "'{wanted}' is used as a key of a list: select a value of the list by its index, counted from 0"
        ))
    })?;
    scanner.step();
    let mut count = 0;
    if next_value(scanner)? != b']' {
        loop {
            if count == index {
                return Ok(());
            }
            pass_value(scanner)?;
            count += 1;
            if !goes_on::<Json, R>(scanner)? {
                break;
            }
        }
    }
    Err(scanner
        .error(format_args!("the list has {count} values, so the index {index} (counted from 0) is out of range")))
}

/// The error for an object of which no value was named.
fn keys<R: Read>(scanner: &mut Scanner<'_, R>, source: &Source<'_>) -> Error {
    let mut seen = Keys::default();
    let found = (|| {
        scanner.step();
        while next_value(scanner)? != b'}' {
            seen.add(&key(scanner)?);
            pass_value(scanner)?;
            if next_value(scanner)? == b',' {
                scanner.step();
            }
        }
        Ok(())
    })();
    let inside = source.member.map_or(String::new(), |member| format!("{member}/"));
    let first = String::from_utf8_lossy(&seen.first).into_owned();
    let file = source.path.display();
    match found {
        Err(error) => error,
        Ok(()) => scanner.error(format_args!(
            "an object stands where a list is expected: name one of its values, such as {file}:{inside}{first}; its \
             keys are {}",
            seen.text()
        )),
    }
}

/// A key and the colon behind it.
fn key<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<Vec<u8>> {
    expect::<Json, R>(scanner, b'"', "a key in quotation marks")?;
    let span = scanner.take_until(|byte| byte == b'"' || byte == b'\n')?;
    let text = scanner.bytes(span).to_vec();
    close_string(scanner, &shown(&text))?;
    expect::<Json, R>(scanner, b':', "a colon after a key")?;
    Ok(text)
}

/// Steps over a value of any kind.
fn pass_value<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<()> {
    let mut depth = 0u64;
    loop {
        match next_value(scanner)? {
            b'[' | b'{' => {
                scanner.step();
                depth += 1;
            }
            b']' | b'}' if depth > 0 => {
                scanner.step();
                depth -= 1;
            }
            b'"' => pass_string(scanner)?,
            b',' | b':' if depth > 0 => scanner.step(),
            found @ (b']' | b'}' | b',' | b':') => return Err(unexpected(scanner, found, "a value")),
            _ => {
                let ends = |byte: u8| matches!(byte, b',' | b']' | b'}' | b':' | b'"') || byte.is_ascii_whitespace();
                scanner.skip(|byte| !ends(byte))?;
            }
        }
        if depth == 0 {
            return Ok(());
        }
    }
}

/// Steps over a string.
fn pass_string<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<()> {
    scanner.step();
    loop {
        match scanner.skip(|byte| byte != b'"' && byte != b'\\')? {
            None => return Err(scanner.error("the file ends within a string")),
            Some(b'"') => {
                scanner.step();
                return Ok(());
            }
            Some(_) => {
                scanner.step();
                if scanner.skip(|_| false)?.is_some() {
                    scanner.step();
                }
            }
        }
    }
}

/// Reads to the end of the file, where `depth` brackets are to be closed on the way.
fn close<R: Read>(scanner: &mut Scanner<'_, R>, mut depth: usize) -> Result<()> {
    while let Some(found) = Json::skip(scanner)? {
        match found {
            _ if depth == 0 => return Err(unexpected(scanner, found, "the end of the file after the list")),
            b']' | b'}' => {
                scanner.step();
                depth -= 1;
            }
            b',' | b':' => scanner.step(),
            _ => pass_value(scanner)?,
        }
    }
    if depth > 0 {
        return Err(scanner.error(format_args!("the file ends before {depth} brackets are closed")));
    }
    Ok(())
}

/// Keys of an object, for a message.
#[derive(Default)]
struct Keys {
    first: Vec<u8>,
    shown: String,
    count: usize,
}

impl Keys {
    fn add(&mut self, key: &[u8]) {
        if self.count == 0 {
            self.first = key.iter().copied().take(40).filter(|byte| byte.is_ascii_graphic()).collect();
        }
        if self.count < SHOWN_KEYS {
            let comma = if self.count > 0 { ", " } else { "" };
            self.shown += &format!("{comma}{}", shown(key));
        }
        self.count += 1;
    }

    fn text(&self) -> String {
        match self.count {
            0 => "none".into(),
            count if count > SHOWN_KEYS => format!("{} and {} more", self.shown, count - SHOWN_KEYS),
            _ => self.shown.clone(),
        }
    }
}
