//! Python's collector of cyclic garbage, held back while many objects are made that all stay.

use pyo3::prelude::*;

/// While it lives the collector does not run, which would look at all objects again and again. A collector that the
/// caller has switched off stays off.
pub struct CollectorPause<'py> {
    enable: Option<Bound<'py, PyAny>>,
}

impl<'py> CollectorPause<'py> {
    /// Holds the collector back.
    ///
    /// # Errors
    /// Exceptions of Python, such as `MemoryError`.
    pub fn begin(py: Python<'py>) -> PyResult<CollectorPause<'py>> {
        let collector = py.import("gc")?;
        let runs = collector.call_method0("isenabled")?.is_truthy()?;
        let enable = if runs { Some(collector.getattr("enable")?) } else { None };
        if runs {
            collector.call_method0("disable")?;
        }
        Ok(CollectorPause { enable })
    }
}

impl Drop for CollectorPause<'_> {
    fn drop(&mut self) {
        if let Some(enable) = self.enable.take() {
            // It raises nothing, and there is no caller who could be told.
            let _ = enable.call0();
        }
    }
}
