//! Seconds that were spent, added up over all processes.

/// Sums of seconds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Statistics {
    /// Seconds of workers without devices, computing.
    pub worker_seconds: f64,
    /// Seconds in which progress threads processed messages.
    pub progress_seconds: f64,
    /// Seconds of workers, from taking a task until its tiles are on the device.
    pub loading_seconds: f64,
    /// Seconds of workers, until the device is free then.
    pub queueing_seconds: f64,
}
