//! A pause of Python's cyclic garbage collector while many objects are made, none of which is garbage.

use pyo3::prelude::*;

/// The collector rests until this is dropped. It would run again and again over all objects that are there, and take
/// longer than the numbers.
pub struct CollectorPause<'py> {
    paused: Option<Bound<'py, PyModule>>,
}

impl<'py> CollectorPause<'py> {
    /// Starts a pause, where the collector is on.
    ///
    /// # Errors
    /// What the module `gc` raises.
    pub fn start(py: Python<'py>) -> PyResult<CollectorPause<'py>> {
        let collector = py.import("gc")?;
        let enabled = collector.call_method0("isenabled")?.extract::<bool>()?;
        if enabled {
            collector.call_method0("disable")?;
        }
        Ok(CollectorPause { paused: enabled.then_some(collector) })
    }
}

impl Drop for CollectorPause<'_> {
    fn drop(&mut self) {
        if let Some(collector) = &self.paused {
            // An error here could not be told to anybody; the call takes no arguments and has none of its own.
            let _ = collector.call_method0("enable");
        }
    }
}
