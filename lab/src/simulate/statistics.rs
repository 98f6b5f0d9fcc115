//! Seconds that were spent, added up over all processes.

/// Sums of seconds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Statistics {
    /// Of workers without devices, computing.
    pub worker_seconds: f64,
    /// Of progress threads, dealing with messages.
    pub progress_seconds: f64,
    /// Of workers, from taking a task until its tiles are on the device.
    pub loading_seconds: f64,
    /// Of workers, until the device is free then.
    pub queueing_seconds: f64,
}
