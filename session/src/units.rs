//! Numbers as text: counts such as `1e5`, sizes such as `100.1K`, and the conversion back.
//!
//! Promise: parsing is exact decimal arithmetic (no double in between); a refusal states the expected form.

use sunzi::Matrix;

/// Decimal digits that a typed number may have: far beyond any count or size, and times 2^40 still below 2^128.
const LONGEST: usize = 26;

/// A plain decimal number `digits * 10^exponent`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

/// A count: a whole number such as `4000`, `1e5` or `2.5e3`.
///
/// # Errors
/// For words, signs, fractions and numbers above `u64::MAX`: the form that is expected.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let refused = |why: &str| Err(why.to_string());
    let Some(Decimal { mut digits, mut exponent }) = parse_decimal(text) else {
        return refused("not a count such as 4000 or 1e5");
    };
    while exponent < 0 && digits % 10 == 0 {
        (digits, exponent) = (digits / 10, exponent + 1);
    }
    if digits == 0 {
        return Ok(0);
    }
    if exponent < 0 {
        return refused("not a whole number");
    }
    let value = 10u128.checked_pow(exponent as u32).and_then(|power| power.checked_mul(digits));
    match value.and_then(|value| u64::try_from(value).ok()) {
        Some(value) => Ok(value),
        None => refused("too large"),
    }
}

/// A size in bytes: a number with an optional suffix K, M, G or T (powers of 1024), decimals allowed; a fraction of
/// a byte is dropped. `KB` and `KiB` mean the same as `K`, in either case.
///
/// # Errors
/// For anything else and for sizes above `u64::MAX`: the form that is expected.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let refused = |why: &str| Err(why.to_string());
    let lower = text.to_ascii_lowercase();
    let number = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match &lower[number.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return refused("not a size such as 2G or 100.1K"),
    };
    let Some(Decimal { digits, exponent }) = parse_decimal(number) else {
        return refused("not a size such as 2G or 100.1K");
    };
    let scaled = digits.checked_mul(1 << (10 * power));
    let power_of_ten = 10u128.checked_pow(exponent.unsigned_abs());
    let value = match (scaled, power_of_ten) {
        (Some(0), _) => Some(0),
        (Some(scaled), Some(ten)) if exponent >= 0 => scaled.checked_mul(ten),
        (Some(scaled), Some(ten)) => Some(scaled / ten),
        (Some(_), None) if exponent < 0 => Some(0),
        _ => None,
    };
    match value.and_then(|value| u64::try_from(value).ok()) {
        Some(value) => Ok(value),
        None => refused("too large"),
    }
}

/// `12`, `12.5`, `.5`, `1e5`, `2.5e-3`; no sign in front, no spaces, no words.
fn parse_decimal(text: &str) -> Option<Decimal> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok().filter(|e| e.unsigned_abs() < 1000)?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > LONGEST || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Decimal { digits: digits.parse().ok()?, exponent: exponent - fraction.len() as i32 })
}

/// A number of bytes as text: `512 B`, `1.50 KiB`, `2.00 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    const NAMES: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut name = 0;
    while value >= 1023.995 && name + 1 < NAMES.len() {
        value /= 1024.0;
        name += 1;
    }
    format!("{value:.2} {}", NAMES[name])
}

/// A time as text with three significant digits: `1.23 s`, `45.6 ms`, `7.89 us`.
pub fn format_seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 0.9995 => (s, "s"),
        s if s >= 0.9995e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}

/// Columns of the narrowest terminal that tables are made for.
const COLUMNS: usize = 80;

/// Wraps text to the width of a terminal, as far as words allow: the rest of a longer line is indented to its second
/// column, or by four blanks where it has no columns; a line breaks after a comma where there is one in its second
/// half.
pub fn folded(text: &str) -> String {
    text.lines().map(folded_line).collect::<Vec<_>>().join("\n")
}

fn folded_line(line: &str) -> String {
    let indent = second_column(line).unwrap_or(4);
    let (mut lines, mut rest) = (Vec::new(), line.to_string());
    while rest.chars().count() > COLUMNS {
        let end = rest.char_indices().nth(COLUMNS).map_or(rest.len(), |(at, _)| at);
        let least = rest.len() - rest.trim_start().len();
        // A blank behind the last column leaves a full line.
        let fits = &rest[..if rest[end..].starts_with(' ') { end + 1 } else { end }];
        let words = fits.rmatch_indices(' ').map(|(at, _)| at).find(|&at| at > least.max(indent));
        let comma = fits.rmatch_indices(", ").map(|(at, _)| at + 1).find(|&at| at > COLUMNS / 2);
        let Some(at) = comma.or(words) else { break };
        let next = format!("{:indent$}{}", "", rest[at..].trim_start());
        lines.push(rest[..at].trim_end().to_string());
        rest = next;
    }
    lines.push(rest);
    lines.join("\n")
}

/// The place where the second column of a line of a table begins: after the first two blanks that follow a word.
fn second_column(line: &str) -> Option<usize> {
    let first = line.len() - line.trim_start().len();
    let gap = first + line[first..].find("  ")?;
    Some(gap + line[gap..].len() - line[gap..].trim_start().len()).filter(|&column| column < COLUMNS / 2)
}

/// A number of things as text: `1 thread`, `2 threads`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A matrix as text: `400 x 50, 256 bits`.
pub fn describe(matrix: &Matrix) -> String {
    describe_shape(matrix.rows(), matrix.cols(), matrix.precision_bits())
}

/// As [`describe`], for a matrix that is not in memory.
pub fn describe_shape(rows: usize, cols: usize, precision_bits: u32) -> String {
    format!("{rows} x {cols}, {precision_bits} bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers() {
        let cases = [("0", 0), ("7", 7), ("1e5", 100_000), ("2.5e3", 2500), ("1.50e1", 15), ("0e9", 0), ("1000e-3", 1)];
        for (text, value) in cases {
            assert_eq!(parse_count(text).unwrap(), value, "{text}");
        }
        assert_eq!(parse_count("18446744073709551615").unwrap(), u64::MAX);
        let wrong =
            ["", "-1", "+1", "1.5", "ten", "1e", "e5", "1e20", "1e-1", "1 0", "0x10", "inf", "nan", "1e999", "1K"];
        for text in wrong {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_take_suffixes_and_decimals() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("2G", 2 << 30),
            ("100.1K", 102_502),
            ("1.5m", 3 << 19),
            ("1T", 1 << 40),
            ("1e3K", 1_024_000),
            (".5KiB", 512),
            ("10000000000000000000000000e-25T", 1 << 40),
            ("1e-5", 0),
            ("16777215.9999T", (16_777_215u64 << 40) + 1_099_401_676_613),
        ];
        for (text, value) in cases {
            assert_eq!(parse_size(text).unwrap(), value, "{text}");
        }
        for text in ["", "G", "-1G", "2X", "lots", "2 G", "1e30", "99999999T", "1.2.3K", "2GG"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn long_lines_go_on_below_their_second_column() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let line = format!("  name     {}, {}", words(11), words(9));
        assert_eq!(folded(&line), format!("  name     {},\n{:11}{}", words(11), "", words(9)));
        assert_eq!(folded(&words(20)), format!("{}\n    {}", words(16), words(4)));
        assert_eq!(folded(&format!("{}\n\nshort", words(16))), format!("{}\n\nshort", words(16)));
        let long = "x".repeat(200);
        assert_eq!(folded(&long), long);
        assert_eq!(folded(&format!("{long} {long}")), format!("{long} {long}"));
        let umlauts = "\u{e4}".repeat(60);
        assert_eq!(folded(&format!("{umlauts} {umlauts}")), format!("{umlauts}\n    {umlauts}"));
        let tables = (1..60).map(|count| format!("  name     {}", words(count)));
        assert!(tables.flat_map(|line| folded(&line).lines().map(str::len).collect::<Vec<_>>()).all(|len| len <= 80));
    }

    #[test]
    fn figures_for_people_have_three_digits() {
        assert_eq!(format_bytes(1023), "1023 B");
        assert_eq!(format_bytes(1536), "1.50 KiB");
        assert_eq!(format_bytes((1 << 20) - 1), "1.00 MiB");
        assert_eq!(format_seconds(1.234), "1.23 s");
        assert_eq!(format_seconds(0.99999), "1.00 s");
        assert_eq!(format_seconds(0.0456), "45.6 ms");
        assert_eq!(format_seconds(123.4), "123 s");
        assert_eq!(format_seconds(7.89e-6), "7.89 us");
    }
}
