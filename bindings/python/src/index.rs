//! The keys between the brackets of `matrix[..]`: integers, slices, and pairs of them.

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::ops::Range;

/// The selected rows or columns.
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

    /// How many.
    pub fn count(&self) -> usize {
        match self {
            Selection::One(_) => 1,
            Selection::Block(range) => range.len(),
            Selection::Listed(list) => list.len(),
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

/// How the entries of a matrix are counted where there is only one index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Line {
    /// By rows: the index chooses one.
    #[default]
    None,
    /// Along the one row that an integer has chosen: the index chooses an entry.
    Row,
    /// Along such a column.
    Column,
}

impl Line {
    /// The line of the transpose.
    pub fn transposed(self) -> Line {
        match self {
            Line::None => Line::None,
            Line::Row => Line::Column,
            Line::Column => Line::Row,
        }
    }
}

/// The entries that a key chooses.
pub struct Chosen {
    pub rows: Selection,
    pub cols: Selection,
}

impl Chosen {
    /// The rows and columns of `key` in a matrix of this shape, whose entries are counted along `line`.
    ///
    /// # Errors
    /// `IndexError` and `TypeError`, with the shape.
    pub fn new(key: &Bound<'_, PyAny>, rows: usize, cols: usize, line: Line) -> PyResult<Chosen> {
        let Ok(pair) = key.cast::<PyTuple>() else {
            return Ok(match line {
                Line::None => Chosen { rows: selection(key, rows, "row")?, cols: Selection::Block(0..cols) },
                Line::Row => Chosen { rows: Selection::One(0), cols: selection(key, cols, "column")? },
                Line::Column => Chosen { rows: selection(key, rows, "row")?, cols: Selection::One(0) },
            });
        };
        if pair.len() != 2 {
            return Err(PyIndexError::new_err(format!(
                "{} indices are given for a {rows} x {cols} matrix",
                pair.len()
            )));
        }
        let (row_key, col_key) = (pair.get_item(0)?, pair.get_item(1)?);
        Ok(Chosen { rows: selection(&row_key, rows, "row")?, cols: selection(&col_key, cols, "column")? })
    }

    /// How the chosen entries are counted: along the row or column that an integer chose.
    pub fn line(&self) -> Line {
        match (&self.rows, &self.cols) {
            (Selection::One(_), Selection::One(_)) => Line::None,
            (Selection::One(_), _) => Line::Row,
            (_, Selection::One(_)) => Line::Column,
            _ => Line::None,
        }
    }
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
    let index: isize = key.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(key.py()) {
            return PyIndexError::new_err(format!("{name} {key} is out of range for a matrix with {count} {name}s"));
        }
        let kind = key.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("a {name} index must be an integer or a slice, but its type is {kind}"))
    })?;
    let from_start = if index < 0 { index + count as isize } else { index };
    match usize::try_from(from_start).ok().filter(|&at| at < count) {
        Some(at) => Ok(Selection::One(at)),
        None => Err(PyIndexError::new_err(format!("{name} {index} is out of range for a matrix with {count} {name}s"))),
    }
}
