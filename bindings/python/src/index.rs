//! What stands between the brackets of `matrix[..]`: integers, slices, and pairs of them.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::ops::Range;

/// Rows or columns that are asked for.
pub enum Selection {
    /// One of them.
    One(usize),
    /// Neighbours in their order.
    Block(Range<usize>),
    /// Any others.
    Listed(Vec<usize>),
}

impl Selection {
    /// As a range, where it is one.
    pub fn range(&self) -> Option<Range<usize>> {
        match self {
            Selection::One(index) => Some(*index..*index + 1),
            Selection::Block(range) => Some(range.clone()),
            Selection::Listed(_) => None,
        }
    }

    /// All of them.
    pub fn list(&self) -> Vec<usize> {
        match self {
            Selection::Listed(list) => list.clone(),
            other => other.range().into_iter().flatten().collect(),
        }
    }
}

/// The rows and columns of `key` in a matrix of this shape.
///
/// # Errors
/// `IndexError` and `TypeError`, with the shape.
pub fn selections(key: &Bound<'_, PyAny>, (rows, cols): (usize, usize)) -> PyResult<(Selection, Selection)> {
    let Ok(pair) = key.cast::<PyTuple>() else {
        return Ok((selection(key, rows, "row")?, Selection::Block(0..cols)));
    };
    if pair.len() != 2 {
        return Err(PyIndexError::new_err(format!("{} indices given for a {rows} x {cols} matrix", pair.len())));
    }
    Ok((selection(&pair.get_item(0)?, rows, "row")?, selection(&pair.get_item(1)?, cols, "column")?))
}

fn selection(key: &Bound<'_, PyAny>, count: usize, name: &str) -> PyResult<Selection> {
    if let Ok(slice) = key.cast::<PySlice>() {
        let indices = slice.indices(isize::try_from(count)?)?;
        let at = |index: usize| (indices.start + index as isize * indices.step) as usize;
        return Ok(match indices.step {
            1 if indices.slicelength == 0 => Selection::Block(0..0),
            1 => Selection::Block(at(0)..at(indices.slicelength)),
            _ => Selection::Listed((0..indices.slicelength).map(at).collect()),
        });
    }
    let index: isize = key.extract().map_err(|_| {
        let kind = key.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("a {name} index of type {kind}: use an integer or a slice"))
    })?;
    let from_start = if index < 0 { index + count as isize } else { index };
    match usize::try_from(from_start).ok().filter(|&at| at < count) {
        Some(at) => Ok(Selection::One(at)),
        None => Err(PyIndexError::new_err(format!("{name} {index} of a matrix with {count}"))),
    }
}
