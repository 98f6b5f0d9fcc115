//! Optional packages: an object of one can only exist where the package has been imported.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The package, where it has been imported.
///
/// # Errors
/// The exception of its import, where that is still under way.
pub fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyModule>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    if modules.call_method1("get", (name,))?.is_none() {
        return Ok(None);
    }
    py.import(name).map(Some)
}

/// The dictionary in which an `mpmath.matrix` keeps its entries other than 0, by row and column, where it has one.
///
/// # Errors
/// The exception of an attribute.
pub fn entries_of_mpmath<'py>(matrix: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    // The second name is that of mpmath before 1.4.
    for name in ["_data", "_matrix__data"] {
        if let Some(entries) = matrix.getattr_opt(name)? {
            return Ok(entries.cast_into::<PyDict>().ok());
        }
    }
    Ok(None)
}
