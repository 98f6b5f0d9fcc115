//! Matrices of mpmath, filled without its conversions of each entry.
//!
//! An `mpmath.matrix` keeps its entries other than 0 in a dictionary by row and column. Before the first use a small
//! matrix must show that.

use crate::packages::entries_of_mpmath;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The matrix with these numbers, row by row, which are `mpmath.mpf`; `None` where mpmath keeps its entries otherwise.
///
/// # Errors
/// Exceptions of mpmath and Python.
pub fn matrix<'py>(
    py: Python<'py>,
    numbers: &[Bound<'py, PyAny>],
    rows: usize,
    cols: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mpmath = py.import("mpmath")?;
    let class = mpmath.getattr("matrix")?;
    let whole = class.call1((rows, cols))?;
    if numbers.is_empty() {
        return Ok(Some(whole));
    }
    let Some(entries) = entries_of_mpmath(&whole)?.filter(|_| is_as_known(py, &class).unwrap_or(false)) else {
        return Ok(None);
    };
    let zero = mpmath.getattr("mp")?.getattr("zero")?;
    for (row, numbers) in numbers.chunks(cols.max(1)).enumerate() {
        let row = row.into_pyobject(py)?;
        for (col, number) in numbers.iter().enumerate().filter(|(_, number)| !number.is(&zero)) {
            entries.set_item((&row, col), number)?;
        }
    }
    Ok(Some(whole))
}

/// Whether a matrix that mpmath has made itself has the entries other than 0 where they are expected, and no others.
fn is_as_known(py: Python<'_>, class: &Bound<'_, PyAny>) -> PyResult<bool> {
    static KNOWN: PyOnceLock<bool> = PyOnceLock::new();
    let look = || -> PyResult<bool> {
        let made = class.call1((vec![vec![1, 0], vec![2, 3]],))?;
        let want = PyDict::new(py);
        for (row, col, number) in [(0, 0, 1), (1, 0, 2), (1, 1, 3)] {
            want.set_item((row, col), number)?;
        }
        Ok(match entries_of_mpmath(&made)? {
            Some(entries) => entries.eq(want)? && made.get_item((0, 1))?.eq(0)?,
            None => false,
        })
    };
    KNOWN.get_or_try_init(py, look).copied()
}
