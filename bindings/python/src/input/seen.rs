//! Numbers that have been checked: their types, their own precision, their radii.

use super::balls::Radius;
use super::entry::{Entry, NumberType, Reader};
use super::{ReadPart, Source, long_double_bits};
use crate::kind::NumberKind;
use crate::signals::look_for_signals;
use pyo3::prelude::*;

/// The properties of numbers that have been checked.
pub struct Seen<'py> {
    pub kind: NumberKind,
    pub natural_bits: Option<u32>,
    pub radii: Vec<Radius<'py>>,
}

impl Seen<'_> {
    /// The properties of doubles.
    pub fn doubles() -> Self {
        Seen { kind: NumberKind::Float, natural_bits: Some(53), radii: Vec::new() }
    }
}

/// Checks the objects of an operand, row by row.
///
/// # Errors
/// As [`super::Operand::of`].
pub fn look_at<'py>(
    py: Python<'py>,
    objects: &[Bound<'py, PyAny>],
    cols: usize,
    part: ReadPart,
) -> PyResult<(Seen<'py>, Source<'py>)> {
    let mut reader = Reader::new(py)?;
    let (mut entries, mut radii) = (Vec::new(), Vec::new());
    entries
        .try_reserve_exact(objects.len())
        .map_err(|_| pyo3::exceptions::PyMemoryError::new_err("too many entries"))?;
    for (index, object) in objects.iter().enumerate() {
        let (row, col) = (index / cols, index % cols);
        entries.push(match part.holds(row, col) {
            true => reader.read(object).map_err(|refusal| refusal.exception(object, row, col))?,
            false => Entry::Zero,
        });
        radii.extend(
            reader.take_radius().map(|(mantissa, exponent)| Radius::new(index, mantissa, exponent, object.clone())),
        );
        look_for_signals(py, index)?;
    }
    let mut natural_bits = (reader.mpfr_bits > 0).then_some(reader.mpfr_bits);
    let mut also = |bits: u32| natural_bits = Some(natural_bits.unwrap_or(0).max(bits));
    if reader.has_seen(NumberType::Float) {
        also(53);
    }
    if reader.has_seen(NumberType::LongDouble) {
        also(long_double_bits(py)?);
    }
    if reader.has_seen(NumberType::Mpf) {
        also(py.import("mpmath")?.getattr("mp")?.getattr("prec")?.extract()?);
    }
    if reader.has_seen(NumberType::Arb) {
        also(py.import("flint")?.getattr("ctx")?.getattr("prec")?.extract()?);
    }
    let kind = reader.kind();
    let Reader { limbs, exact_bits, rounds, .. } = reader;
    Ok((Seen { kind, natural_bits, radii }, Source::Entries { entries, limbs, exact_bits, rounds }))
}
