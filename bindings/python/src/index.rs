//! The keys between the brackets of `matrix[..]`: integers, slices, lists and masks, and pairs of them.

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyRange, PySlice, PyTuple};
use std::ops::Range;

/// The selected rows or columns.
#[derive(Clone)]
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

    /// Their number.
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

/// The order in which a single index counts the entries of a matrix.
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
pub enum Chosen {
    /// All entries of some rows in some columns.
    Block { rows: Selection, cols: Selection },
    /// Single entries, each by its row and its column: a column of results.
    Entries { rows: Vec<usize>, cols: Vec<usize> },
}

impl Chosen {
    /// The rows and columns of `key` in a matrix of this shape, whose entries are counted along `line`.
    ///
    /// # Errors
    /// `IndexError` and `TypeError`, with the shape.
    pub fn new(key: &Bound<'_, PyAny>, rows: usize, cols: usize, line: Line) -> PyResult<Chosen> {
        let Ok(pair) = key.cast::<PyTuple>() else {
            if let Some(mask) = Mask::of(key)? {
                return mask.chosen(rows, cols);
            }
            return Ok(match line {
                Line::None => Chosen::Block { rows: selection(key, rows, "row")?, cols: Selection::Block(0..cols) },
                Line::Row => Chosen::Block { rows: Selection::One(0), cols: selection(key, cols, "column")? },
                Line::Column => Chosen::Block { rows: selection(key, rows, "row")?, cols: Selection::One(0) },
            });
        };
        if pair.len() != 2 {
            return Err(PyIndexError::new_err(format!(
                "{} indices are given for a {rows} x {cols} matrix",
                pair.len()
            )));
        }
        let (row_key, col_key) = (pair.get_item(0)?, pair.get_item(1)?);
        if let Some((row_key, col_key)) = crossed(&row_key, &col_key)? {
            return Ok(Chosen::Block {
                rows: selection(&row_key, rows, "row")?,
                cols: selection(&col_key, cols, "column")?,
            });
        }
        let (row_choice, col_choice) = (selection(&row_key, rows, "row")?, selection(&col_key, cols, "column")?);
        match (row_choice, col_choice) {
            // As in NumPy two lists name single entries, pair by pair.
            (Selection::Listed(rows), Selection::Listed(cols)) if is_list(&row_key)? && is_list(&col_key)? => {
                if rows.len() != cols.len() {
                    return Err(PyIndexError::new_err(format!(
                        "{} rows and {} columns are listed: two lists name entries pair by pair; for all entries of \
                         these rows and columns use a[rows][:, cols] or numpy.ix_(rows, cols)",
                        rows.len(),
                        cols.len()
                    )));
                }
                Ok(Chosen::Entries { rows, cols })
            }
            (rows, cols) => Ok(Chosen::Block { rows, cols }),
        }
    }

    /// The order of the chosen entries: along the row or column that an integer chose.
    pub fn line(&self) -> Line {
        match self {
            Chosen::Block { rows: Selection::One(_), cols: Selection::One(_) } => Line::None,
            Chosen::Block { rows: Selection::One(_), .. } => Line::Row,
            Chosen::Block { cols: Selection::One(_), .. } | Chosen::Entries { .. } => Line::Column,
            Chosen::Block { .. } => Line::None,
        }
    }

    /// Rows of the result.
    pub fn rows(&self) -> usize {
        match self {
            Chosen::Block { rows, .. } => rows.count(),
            Chosen::Entries { rows, .. } => rows.len(),
        }
    }

    /// Columns of the result.
    pub fn cols(&self) -> usize {
        match self {
            Chosen::Block { cols, .. } => cols.count(),
            Chosen::Entries { .. } => 1,
        }
    }
}

/// A mask of two dimensions, row by row.
struct Mask {
    rows: Vec<Vec<bool>>,
}

impl Mask {
    /// The mask that `key` is, if it is one of two dimensions.
    fn of(key: &Bound<'_, PyAny>) -> PyResult<Option<Mask>> {
        if !is_list(key)? || dimensions(key)? != 2 {
            return Ok(None);
        }
        let rows = items(key)?.iter().map(items).collect::<PyResult<Vec<_>>>()?;
        if !rows.iter().flatten().all(|item| truth(item).is_some()) {
            return Err(PyIndexError::new_err(
                "an index of two dimensions must be a mask of True and False; lists of integers have one dimension",
            ));
        }
        let rows = rows.iter().map(|row| row.iter().filter_map(truth).collect());
        Ok(Some(Mask { rows: rows.collect() }))
    }

    /// The entries that it marks, row by row.
    fn chosen(&self, rows: usize, cols: usize) -> PyResult<Chosen> {
        if self.rows.len() != rows || self.rows.iter().any(|row| row.len() != cols) {
            let width = self.rows.first().map_or(0, Vec::len);
            let height = self.rows.len();
            let message = format!("the mask is {height} x {width}, but the matrix is {rows} x {cols}");
            return Err(PyIndexError::new_err(message));
        }
        let places = || (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
        let marked = places().filter(|&(row, col)| self.rows[row][col]);
        let (rows, cols) = marked.unzip();
        Ok(Chosen::Entries { rows, cols })
    }
}

/// The two lists of `numpy.ix_`, a column of rows and a row of columns, as lists of one dimension.
fn crossed<'py>(
    row_key: &Bound<'py, PyAny>,
    col_key: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let shape = |key: &Bound<'py, PyAny>| key.getattr("shape").ok()?.extract::<Vec<usize>>().ok();
    match (shape(row_key).as_deref(), shape(col_key).as_deref()) {
        (Some([_, 1]), Some([1, _])) => Ok(Some((row_key.call_method0("ravel")?, col_key.call_method0("ravel")?))),
        _ => Ok(None),
    }
}

/// Whether a key lists indices, or is a mask: a list, a range, an array of at least one dimension.
fn is_list(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_list = key.is_instance_of::<PyList>() || key.is_instance_of::<PyTuple>() || key.is_instance_of::<PyRange>();
    Ok(is_list || is_array(key) && key.getattr("ndim")?.extract::<usize>()? > 0)
}

fn is_array(key: &Bound<'_, PyAny>) -> bool {
    key.hasattr("tolist").unwrap_or(false) && key.hasattr("ndim").unwrap_or(false)
}

/// The dimensions of a list or an array.
fn dimensions(key: &Bound<'_, PyAny>) -> PyResult<usize> {
    if is_array(key) {
        return key.getattr("ndim")?.extract();
    }
    let first = key.try_iter()?.next().transpose()?;
    Ok(match first {
        Some(first) if is_list(&first)? => 2,
        _ => 1,
    })
}

/// The items of a list or an array of one dimension; the rows of an array of two dimensions.
fn items<'py>(key: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let plain = if is_array(key) { key.call_method0("tolist")? } else { key.clone() };
    plain.try_iter()?.collect()
}

/// The value of a `bool`, Python's or NumPy's.
fn truth(item: &Bound<'_, PyAny>) -> Option<bool> {
    if let Ok(value) = item.cast::<PyBool>() {
        return Some(value.is_true());
    }
    let is_bool = item.getattr("dtype").ok()?.getattr("char").ok()?.extract::<String>().ok()? == "?";
    if is_bool { item.is_truthy().ok() } else { None }
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
    if is_list(key)? {
        return listed(key, count, name);
    }
    place(key, count, name).map(Selection::One)
}

/// The rows or columns that a list names, or a mask marks.
fn listed(key: &Bound<'_, PyAny>, count: usize, name: &str) -> PyResult<Selection> {
    if dimensions(key)? != 1 {
        let message = format!("a list of {name}s must have one dimension, but it has {}", dimensions(key)?);
        return Err(PyIndexError::new_err(message));
    }
    let items = items(key)?;
    let marks: Vec<bool> = items.iter().filter_map(truth).collect();
    if marks.is_empty() {
        return Ok(Selection::Listed(items.iter().map(|item| place(item, count, name)).collect::<PyResult<_>>()?));
    }
    if marks.len() != items.len() {
        return Err(PyIndexError::new_err(format!("a list of {name}s holds both bool and integers")));
    }
    if marks.len() != count {
        let message = format!("a mask of {} {name}s is given for a matrix with {count} {name}s", marks.len());
        return Err(PyIndexError::new_err(message));
    }
    Ok(Selection::Listed((0..count).filter(|&at| marks[at]).collect()))
}

/// The row or column that an integer names, from the end where it is negative.
fn place(key: &Bound<'_, PyAny>, count: usize, name: &str) -> PyResult<usize> {
    let index: isize = key.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(key.py()) {
            return PyIndexError::new_err(format!("{name} {key} is out of range for a matrix with {count} {name}s"));
        }
        let kind = key.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "a {name} index must be an integer, a slice, a list of integers or a mask, but its type is {kind}"
        ))
    })?;
    let from_start = if index < 0 { index + count as isize } else { index };
    usize::try_from(from_start).ok().filter(|&at| at < count).ok_or_else(|| {
        PyIndexError::new_err(format!("{name} {index} is out of range for a matrix with {count} {name}s"))
    })
}
