//! Packages that may be there or not: an object of one can only exist where somebody has imported it.

use pyo3::prelude::*;

/// The package, where it has been imported.
///
/// # Errors
/// What its import raises, where that is still under way.
pub fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyModule>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    if modules.call_method1("get", (name,))?.is_none() {
        return Ok(None);
    }
    py.import(name).map(Some)
}
