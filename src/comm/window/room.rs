//! The free room for windows that processes share: used by plans, and before a window is opened.

use crate::comm::window::WindowKind;
use crate::error::{Error, Result};
use rustix::fs::statvfs;
use std::path::PathBuf;

/// The largest number of bytes that MPI stores in addition to the words of a window.
const OWN_BYTES: u64 = 1 << 20;

/// The folder in whose file system windows of that kind lie, where they are not on the heap.
pub(crate) fn folder(kind: WindowKind) -> PathBuf {
    let of_mpi = std::env::var_os("OMPI_MCA_osc_sm_backing_directory").filter(|_| kind != WindowKind::Posix);
    PathBuf::from(of_mpi.unwrap_or_else(|| "/dev/shm".into()))
}

/// Bytes that such a window may have now, or `None` where the system does not say.
pub(crate) fn free_bytes(kind: WindowKind) -> Option<u64> {
    let system = statvfs(folder(kind)).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize).saturating_sub(OWN_BYTES))
}

/// Refuses a window for which there is no room.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn check(kind: WindowKind, bytes: u64) -> Result<()> {
    match free_bytes(kind) {
        Some(free) if free < bytes => Err(Error::OutOfMemory { bytes }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_may_count_on_is_what_opening_asks_for() {
        let Some(free) = free_bytes(WindowKind::Posix) else { return };
        assert!(check(WindowKind::Posix, 0).is_ok());
        // Others may take and give while this runs.
        assert!(check(WindowKind::Posix, free.saturating_mul(2).saturating_add(1 << 40)).is_err());
    }
}
