//! Command lines: none panics, a refusal is one line, and counts and sizes are accepted exactly where exact rational
//! arithmetic says so.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rug::{Integer, Rational};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use sunzi_cli::check_arguments;

const WORDS: [&str; 33] = [
    "syrk",
    "gemm",
    "gen",
    "verify",
    "convert",
    "compare",
    "plan",
    "bench",
    "demo",
    "info",
    "-o",
    "--precision",
    "64",
    "p.mtx",
    "q.bin",
    "--rows",
    "--cols",
    "1e3",
    "--memory",
    "2G",
    "--threads",
    "--kernel",
    "reference",
    "--hex",
    "--alpha",
    "--beta",
    "--accumulate",
    "--accumulate-triangle",
    "--input-precision",
    "random",
    "--seed",
    "--report",
    "--upper",
];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice % 4 {
        0 => size(rest),
        1 => count(rest),
        _ => any_words(rest),
    }
});

fn check(words: Vec<OsString>) -> Result<(), String> {
    let result = check_arguments(words);
    if let Err(message) = &result {
        assert!(!message.trim().is_empty() && !message.contains(['\n', '\r']), "{message:?}");
    }
    result
}

/// Words between bytes 0; a byte above 223 stands for a word of the list.
fn any_words(rest: &[u8]) {
    let mut words = vec![OsString::from("sunzi")];
    for word in rest.split(|&byte| byte == 0) {
        words.push(match word {
            [only @ 224..=255] => WORDS[usize::from(only - 224)].into(),
            other => OsString::from_vec(other.to_vec()),
        });
    }
    let first = check(words.clone());
    assert_eq!(first, check(words.clone()), "the answer to {words:?} changes");
    words.insert(1, "--no-such-option".into());
    assert!(check(words).is_err(), "an unknown option is accepted");
}

fn size(rest: &[u8]) {
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let words = ["sunzi", "syrk", "p.mtx", "-o", "q.mtx", "--precision", "64", "--memory", text];
    let accepted = check(words.map(OsString::from).to_vec()).is_ok();
    let lower = text.to_ascii_lowercase();
    let letters: String =
        lower.chars().rev().take_while(char::is_ascii_alphabetic).collect::<Vec<_>>().into_iter().rev().collect();
    let power = match letters.as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    };
    let number = text.get(..text.len() - letters.len()).and_then(decimal);
    // A leading dash makes the next word an option, not a value; that too is refused.
    let wanted = match (number, power) {
        (Some(number), Some(power)) => {
            let bytes: Rational = number << power;
            bytes.floor() <= u64::MAX
        }
        _ => false,
    };
    assert_eq!(accepted, wanted, "size {text:?}");
}

fn count(rest: &[u8]) {
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let words =
        ["sunzi", "gen", "random", "--rows", "2", "--cols", "2", "--precision", "64", "-o", "p.mtx", "--seed", text];
    let accepted = check(words.map(OsString::from).to_vec()).is_ok();
    let wanted = decimal(text).is_some_and(|value| value.is_integer() && value <= u64::MAX);
    assert_eq!(accepted, wanted, "count {text:?}");
}

/// A plain decimal of at most 26 digits, exactly.
fn decimal(text: &str) -> Option<Rational> {
    let (number, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok().filter(|power| (-999..=999).contains(power))?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = [whole, fraction].concat();
    let plain = (1..=26).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_digit());
    let integer: Integer = plain.then(|| digits.parse().ok())??;
    let power = exponent - fraction.len() as i32;
    let ten = Integer::from(Integer::u_pow_u(10, power.unsigned_abs()));
    Some(if power >= 0 { Rational::from(integer * ten) } else { Rational::from((integer, ten)) })
}
