//! Communicators of mpi4py, by their Fortran handles.

use sunzi::comm::Transport;

/// The ranks of the communicator with a Fortran handle, which is duplicated; `None` in a build without MPI. Collective.
///
/// # Errors
/// Refusals of MPI, which must be initialised.
#[cfg(feature = "mpi")]
pub fn ranks_of(handle: i32) -> sunzi::Result<Option<Box<dyn Transport>>> {
    // SAFETY: mpi4py gives handles of live communicators, and `sunzi.mpi` frees its duplicate after the ranks of it.
    let world = unsafe { sunzi::comm::mpi::MpiRank::from_fortran(handle) }?;
    Ok(Some(Box::new(world)))
}

/// The same in a build without MPI, which has none.
///
/// # Errors
/// Never.
#[cfg(not(feature = "mpi"))]
pub fn ranks_of(_handle: i32) -> sunzi::Result<Option<Box<dyn Transport>>> {
    Ok(None)
}
