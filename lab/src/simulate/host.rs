//! The state of a simulated process in addition to its tasks and messages.

use super::accelerator::{Accelerator, SerialEngine};

/// The state of a process.
pub(super) struct Host {
    pub devices: Vec<Accelerator>,
    /// The processors, where there are devices: one task at a time.
    pub processor: SerialEngine,
    /// The time at which the progress thread will have processed the last waiting envelope.
    pub promised: f64,
    /// The factor by which its times are multiplied.
    pub slowness: f64,
    /// When it was done.
    pub finished: Option<f64>,
}
