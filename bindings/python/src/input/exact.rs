//! Decimals and fractions that are integers, taken exactly: operands of exact products.

use super::Source;
use super::entry::Entry;
use super::integers::magnitude;
use super::look_for_signals;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rug::Integer;
use rug::ops::Pow;
use sunzi::MAXIMUM_PRECISION_BITS;

impl<'py> Source<'py> {
    /// The same with every decimal and fraction as the integer that it is.
    ///
    /// # Errors
    /// `ValueError` with the place of a number that is no integer, or has more bits than a matrix can.
    pub fn integers(self, py: Python<'py>, cols: usize) -> PyResult<Source<'py>> {
        let Source::Entries { mut entries, mut limbs, mut exact_bits, rounds: true } = self else { return Ok(self) };
        for (index, entry) in entries.iter_mut().enumerate() {
            let (found, text) = match entry {
                Entry::Decimal(text) => (scaled_integer(text), text.to_string()),
                Entry::Ratio(ratio) => (ratio.is_integer().then(|| (ratio.numer().clone(), 0)), ratio.to_string()),
                _ => continue,
            };
            let (row, col) = (index / cols, index % cols);
            let refused = |what: &str| {
                let text: String = text.chars().take(60).collect();
                PyValueError::new_err(format!("entry at row {row}, column {col} is {text}: {what}"))
            };
            let (integer, exponent) = found.ok_or_else(|| refused("exact products take integers alone"))?;
            if integer.significant_bits() > MAXIMUM_PRECISION_BITS {
                return Err(refused(&format!("it has more than {MAXIMUM_PRECISION_BITS} bits")));
            }
            exact_bits = exact_bits.max(integer.significant_bits());
            let start = limbs.len();
            limbs.extend_from_slice(magnitude(&integer));
            *entry = match integer == 0 {
                true => Entry::Zero,
                false => Entry::Binary { negative: integer < 0, start, end: limbs.len(), exponent },
            };
            look_for_signals(py, index)?;
        }
        Ok(Source::Entries { entries, limbs, exact_bits, rounds: false })
    }
}

/// An integer in decimal digits, possibly with a point and an exponent, as `m * 2^e` with `m` odd or 0; `None` where it
/// is no integer. An exponent that makes `m` larger than any matrix can hold gives an `m` that is too large.
fn scaled_integer(text: &str) -> Option<(Integer, i64)> {
    let word = text.replace('_', "").to_ascii_lowercase();
    let (number, power) = word.split_once('e').unwrap_or((&word, "0"));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{part}");
    let kept = digits.trim_end_matches('0');
    if !kept.bytes().any(|digit| digit.is_ascii_digit()) {
        return Some((Integer::new(), 0));
    }
    // Exponents beyond 64 bits are as good as the largest ones.
    let far = if power.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 };
    let power = power.parse::<i64>().map_or(far, |power| power.clamp(i64::MIN / 4, i64::MAX / 4));
    let tens = power + (digits.len() - kept.len()) as i64 - part.len() as i64;
    if tens < 0 {
        return None;
    }
    // 5^tens has more than two bits for each power.
    let fives = Integer::from(5).pow(tens.min(i64::from(MAXIMUM_PRECISION_BITS) / 2) as u32);
    let integer = Integer::from_str_radix(kept.trim_start_matches('+'), 10).ok()? * fives;
    let zeros = integer.find_one(0).unwrap_or(0);
    Some((integer >> zeros, i64::from(zeros) + tens))
}
