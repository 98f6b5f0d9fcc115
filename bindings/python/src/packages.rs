//! Optional packages: an object of one can only exist where the package has been imported.

use pyo3::prelude::*;

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
