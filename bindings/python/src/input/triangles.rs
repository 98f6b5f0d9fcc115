//! The triangle of a symmetric matrix that the caller did not name: whether it goes with the one that is named.

use super::container::Items;
use super::entry::{Entry, Reader, Refusal};
use super::{Bits, ReadPart, Source};
use crate::errors::not_symmetric;
use crate::signals::look_for_signals;
use crate::view::View;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use sunzi::io::triangle_conflict;
use sunzi::{FloatRef, Uplo};

/// The entries of the triangle that is not selected, without the diagonal; an entry that is not a finite number counts
/// as an empty place.
pub struct OtherTriangle<'py> {
    named: Uplo,
    /// `None` where the matrix itself holds them.
    source: Option<Source<'py>>,
}

impl<'py> OtherTriangle<'py> {
    /// The other triangle of a matrix, which holds both; `None` if it is not read.
    pub fn of_matrix(part: ReadPart) -> Option<OtherTriangle<'py>> {
        let ReadPart::Symmetric(named) = part else { return None };
        Some(OtherTriangle { named, source: None })
    }

    /// The other triangle among the numbers of an operand.
    ///
    /// # Errors
    /// `MemoryError`; exceptions of reading a number other than a refusal.
    pub fn of_items(
        py: Python<'py>,
        items: &Items<'py>,
        cols: usize,
        part: ReadPart,
    ) -> PyResult<Option<OtherTriangle<'py>>> {
        let ReadPart::Symmetric(named) = part else { return Ok(None) };
        let other = ReadPart::StrictTriangle(if named == Uplo::Lower { Uplo::Upper } else { Uplo::Lower });
        let source = match items {
            Items::Doubles(values) => {
                let finite = values.iter().map(|value| if value.is_finite() { *value } else { 0.0 });
                Source::Doubles(finite.collect(), other)
            }
            Items::Objects(objects) => numbers_among(py, objects, cols, other)?,
        };
        Ok(Some(OtherTriangle { named, source: Some(source) }))
    }

    /// Refuses a triangle that contradicts `view`, of numbers that are read with `bits` and are known to `known_bits`.
    ///
    /// # Errors
    /// `NotSymmetricError` with both entries; the errors of [`super::Operand::view`].
    pub fn check(self, py: Python<'py>, view: &View, bits: Bits, known_bits: u32) -> PyResult<()> {
        let order = view.rows();
        let other = match self.source {
            Some(source) => source.view(py, order, order, bits)?,
            None => view.clone(),
        };
        let (named, entries) = (view.entries(), other.entries());
        let found = py.detach(|| triangle_conflict(named, entries, self.named, known_bits));
        let Some(conflict) = found else { return Ok(()) };
        let (row, col) = (conflict.row, conflict.column);
        let word = if self.named == Uplo::Lower { "lower" } else { "upper" };
        let shown = |entry: FloatRef<'_>| format!("{:.20e}", entry.to_float(64 * entry.limbs.len() as u32));
        let (first, second) = (shown(named.get(row, col)), shown(entries.get(col, row)));
        let reason = match conflict.named_is_zero {
            true => format!("uplo='{word}' names a triangle that is zero outside the diagonal, but the other is not"),
            false => format!("uplo='{word}_only' ignores the other triangle"),
        };
        let text = format!(
            "the matrix is not symmetric: the entry at row {row}, column {col} is {first}, that at row {col}, column \
             {row} is {second}: {reason}"
        );
        Err(not_symmetric(py, text, row, col))
    }
}

/// The numbers in a part of an operand; all else is 0.
fn numbers_among<'py>(
    py: Python<'py>,
    objects: &[Bound<'py, PyAny>],
    cols: usize,
    part: ReadPart,
) -> PyResult<Source<'py>> {
    let mut reader = Reader::new(py)?;
    let mut entries = Vec::new();
    entries.try_reserve_exact(objects.len()).map_err(|_| PyMemoryError::new_err("too many entries"))?;
    for (index, object) in objects.iter().enumerate() {
        let entry = match part.holds(index / cols, index % cols) {
            true => reader.read(object),
            false => Ok(Entry::Zero),
        };
        entries.push(match entry {
            Ok(entry) => entry,
            Err(Refusal::Raised(error)) => return Err(error),
            Err(_) => Entry::Zero,
        });
        look_for_signals(py, index)?;
    }
    let Reader { limbs, exact_bits, rounds, .. } = reader;
    Ok(Source::Entries { entries, limbs, exact_bits, rounds })
}
