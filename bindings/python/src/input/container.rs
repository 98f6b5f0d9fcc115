//! Containers of numbers, taken apart: lists, NumPy arrays, matrices of mpmath and flint.

use crate::kind::Container;
use crate::packages::{entries_of_mpmath, loaded};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// The numbers of one operand, row by row.
pub struct Unpacked<'py> {
    pub container: Container,
    pub rows: usize,
    pub cols: usize,
    pub items: Items<'py>,
}

/// Numbers as objects, or as doubles.
pub enum Items<'py> {
    Objects(Vec<Bound<'py, PyAny>>),
    Doubles(Vec<f64>),
}

/// Takes `object` apart; `name` names the operand in errors.
///
/// # Errors
/// `TypeError` for an object that holds no numbers, `ValueError` for ragged rows and for more than two dimensions.
pub fn unpack<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Unpacked<'py>> {
    let unpacked = taken_apart(object, name)?;
    let (rows, cols) = (unpacked.rows, unpacked.cols);
    let count = match &unpacked.items {
        Items::Objects(objects) => objects.len(),
        Items::Doubles(values) => values.len(),
    };
    // Containers with methods of their own may report one shape and have another.
    if rows.checked_mul(cols) != Some(count) {
        return Err(PyValueError::new_err(format!("{name} holds {count} numbers, but its shape is {rows} x {cols}")));
    }
    Ok(unpacked)
}

fn taken_apart<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Unpacked<'py>> {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return rows_of(object, name);
    }
    let class = object.get_type();
    let place = class.getattr(intern!(object.py(), "__module__"))?.extract::<String>().unwrap_or_default();
    let class_name = class.name()?.to_string();
    if is_array(object)? {
        return array(&plain_array(object, name)?, name);
    } else if place.starts_with("mpmath.") && class_name == "matrix" {
        let (rows, cols) = (object.getattr("rows")?.extract()?, object.getattr("cols")?.extract()?);
        let items = match entries_by_place(object, rows, cols)? {
            Some(items) => Items::Objects(items),
            None => rows_of(&object.call_method0("tolist")?, name)?.items,
        };
        return Ok(Unpacked { container: Container::MpmathMatrix, rows, cols, items });
    } else if place.starts_with("flint.") && object.hasattr("nrows")? && object.hasattr("entries")? {
        let (rows, cols) = (object.call_method0("nrows")?.extract()?, object.call_method0("ncols")?.extract()?);
        let items = Items::Objects(items_of(&object.call_method0("entries")?)?);
        return Ok(Unpacked { container: Container::ArbMat, rows, cols, items });
    }
    if object.hasattr(intern!(object.py(), "__array__"))? {
        let whole = object.py().import("numpy")?.call_method1("asanyarray", (object,))?;
        return array(&plain_array(&whole, name)?, name);
    }
    Err(PyTypeError::new_err(format!(
        "{name} is of type {}: use a list of rows, a NumPy array or an object with __array__, a sunzi.Matrix, an \
         mpmath.matrix or a flint.arb_mat",
        class.fully_qualified_name()?
    )))
}

/// The entries of an `mpmath.matrix`, row by row, from its dictionary of those that are not 0; `None` where that is not
/// as expected.
fn entries_by_place<'py>(
    matrix: &Bound<'py, PyAny>,
    rows: usize,
    cols: usize,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let Some(entries) = entries_of_mpmath(matrix)? else { return Ok(None) };
    let Some(count) = rows.checked_mul(cols) else { return Ok(None) };
    let zero = matrix.getattr("ctx")?.getattr("zero")?;
    let mut items = Vec::new();
    items
        .try_reserve_exact(count)
        .map_err(|_| PyMemoryError::new_err(format!("there is no memory for {rows} x {cols} numbers")))?;
    items.resize(count, zero);
    for (key, entry) in entries.iter() {
        match key.extract::<EntryKey>() {
            Ok(EntryKey(row, col)) if row < rows && col < cols => items[row * cols + col] = entry,
            _ => return Ok(None),
        }
    }
    Ok(Some(items))
}

/// Row and column of an entry, as a key of a dictionary.
#[derive(FromPyObject)]
struct EntryKey(usize, usize);

/// Whether `object` is a NumPy array.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match loaded(object.py(), "numpy")? {
        Some(numpy) => object.is_instance(&numpy.getattr("ndarray")?),
        None => Ok(false),
    }
}

/// An array of a subclass, such as `numpy.matrix`, as one of NumPy's own.
///
/// # Errors
/// `TypeError` for a masked array: a hidden entry is not 0, nor any number.
fn plain_array<'py>(array: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if let Some(masked) = loaded(py, "numpy.ma")?
        && array.is_instance(&masked.getattr("MaskedArray")?)?
    {
        return Err(PyTypeError::new_err(format!("{name} is a masked array: pass its filled(value)")));
    }
    py.import("numpy")?.call_method1("asarray", (array,))
}

/// The items of an iteration: a list of a subclass may have another length than it reports.
fn items_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match object.cast_exact::<PyList>() {
        Ok(list) => Ok(list.iter().collect()),
        Err(_) => object.try_iter()?.collect(),
    }
}

fn is_row(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let sequence = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    Ok(sequence || is_array(object)? && object.getattr("ndim")?.extract::<usize>()? > 0)
}

fn rows_of<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Unpacked<'py>> {
    let rows = items_of(object)?;
    let first_is_row = rows.first().map(is_row).transpose()?.unwrap_or(true);
    if !first_is_row {
        for (index, item) in rows.iter().enumerate() {
            if is_row(item)? {
                let message = format!("{name}: row 0 is a number, but row {index} is a list");
                return Err(PyValueError::new_err(message));
            }
        }
        return Ok(Unpacked { container: Container::Flat, rows: rows.len(), cols: 1, items: Items::Objects(rows) });
    }
    let (mut cols, mut items) = (0, Vec::new());
    for (index, row) in rows.iter().enumerate() {
        if !is_row(row)? {
            let kind = row.get_type().fully_qualified_name()?;
            return Err(PyTypeError::new_err(format!("{name}: row {index} is of type {kind}, but row 0 is a list")));
        }
        let entries = match is_array(row)? {
            true => items_of(&plain_array(row, &format!("{name}: row {index}"))?.call_method0("tolist")?)?,
            false => items_of(row)?,
        };
        let length = entries.len();
        if index == 0 {
            cols = length;
            let count = rows.len().checked_mul(cols);
            let reserved = count.is_some_and(|count| items.try_reserve_exact(count).is_ok());
            reserved.then_some(()).ok_or_else(|| {
                PyMemoryError::new_err(format!("{name}: there is no memory for {} x {cols} numbers", rows.len()))
            })?;
        } else if length != cols {
            let message = format!("{name} is ragged: row {index} has {length} entries, but row 0 has {cols}");
            return Err(PyValueError::new_err(message));
        }
        items.extend(entries);
        object.py().check_signals()?;
    }
    Ok(Unpacked { container: Container::Rows, rows: rows.len(), cols, items: Items::Objects(items) })
}

fn array<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Unpacked<'py>> {
    let py = object.py();
    let shape: Vec<usize> = object.getattr("shape")?.extract()?;
    let (rows, cols) = match shape[..] {
        [rows] => (rows, 1),
        [rows, cols] => (rows, cols),
        _ => {
            let message = format!("{name} has {} dimensions: use one or two", shape.len());
            return Err(PyValueError::new_err(message));
        }
    };
    let flat = shape.len() == 1;
    let dtype = object.getattr("dtype")?;
    let letter: String = dtype.getattr("char")?.extract()?;
    if matches!(letter.as_str(), "d" | "f" | "e") {
        let numpy = py.import("numpy")?;
        let doubles = numpy.call_method1("ascontiguousarray", (object, "<f8"))?;
        let bytes = doubles.call_method0("tobytes")?.cast_into::<PyBytes>()?;
        let words = bytes.as_bytes().chunks_exact(8);
        let values = words.map(|word| f64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
        let container = if flat { Container::FlatDoubles } else { Container::Doubles };
        return Ok(Unpacked { container, rows, cols, items: Items::Doubles(values) });
    }
    if !"ObhilqpBHILQPUg".contains(&letter) {
        let message = format!("{name} has the dtype {dtype}: use object, floats, integers or strings");
        return Err(PyTypeError::new_err(message));
    }
    let items = items_of(&object.call_method0("ravel")?.call_method0("tolist")?)?;
    let container = if flat { Container::FlatObjects } else { Container::Objects };
    Ok(Unpacked { container, rows, cols, items: Items::Objects(items) })
}
