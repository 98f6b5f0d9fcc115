//! Texts and fractions that are integers, taken exactly: operands of exact products.

use super::Source;
use super::entry::Entry;
use super::integers::magnitude;
use crate::signals::look_for_signals;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sunzi::MAXIMUM_PRECISION_BITS;
use sunzi::io::parse_exact_integer;

impl<'py> Source<'py> {
    /// The same with every decimal and fraction as the integer that it is.
    ///
    /// # Errors
    /// `ValueError` with the place of a number that is not an integer, or has more bits than a matrix can store.
    pub fn integers(self, py: Python<'py>, cols: usize) -> PyResult<Source<'py>> {
        let Source::Entries { mut entries, mut limbs, mut exact_bits, rounds: true } = self else { return Ok(self) };
        for (index, entry) in entries.iter_mut().enumerate() {
            let (found, text) = match entry {
                Entry::Decimal(text) => (parse_exact_integer(text), text.to_string()),
                Entry::Ratio(ratio) => (ratio.is_integer().then(|| (ratio.numer().clone(), 0)), ratio.to_string()),
                _ => continue,
            };
            let (row, col) = (index / cols, index % cols);
            let refused = |what: &str| {
                let text: String = text.chars().take(60).collect();
                PyValueError::new_err(format!("entry at row {row}, column {col} is {text}: {what}"))
            };
            let (integer, exponent) = found.ok_or_else(|| refused("exact products accept only integers"))?;
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
