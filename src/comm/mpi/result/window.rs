//! The calls for windows, in the style of `result`.

use crate::comm::mpi::result::check;
use crate::comm::mpi::sys;
use crate::error::Result;
use std::ffi::{c_int, c_void};
use std::ptr;

/// Makes a window of `bytes` bytes in one piece, all of it rank 0's. Collective.
///
/// # Safety
/// `comm` is a live communicator of ranks that can share memory; `rank` is this one's in it.
pub unsafe fn allocate(comm: sys::MPI_Comm, rank: usize, bytes: usize) -> Result<sys::MPI_Win> {
    // SAFETY: constants of the library.
    let (mut info, mut window) = unsafe { (sys::RSMPI_INFO_NULL, sys::RSMPI_WIN_NULL) };
    // SAFETY: `info` is written.
    check("MPI_Info_create", unsafe { sys::MPI_Info_create(&mut info) })?;
    // SAFETY: the object just made; both strings end with a zero and are copied.
    let set = check("MPI_Info_set", unsafe {
        sys::MPI_Info_set(info, c"alloc_shared_noncontig".as_ptr(), c"false".as_ptr())
    });
    let own = if rank == 0 { bytes as sys::MPI_Aint } else { 0 };
    let mut start = ptr::null_mut::<c_void>();
    let place = (&raw mut start).cast::<c_void>();
    // SAFETY: a live communicator by contract, live info; the address of this rank's part and the handle are written.
    let made = check("MPI_Win_allocate_shared", unsafe {
        sys::MPI_Win_allocate_shared(own, 1, info, comm, place, &mut window)
    });
    // SAFETY: the object made above, not used again.
    let freed = check("MPI_Info_free", unsafe { sys::MPI_Info_free(&mut info) });
    set.and(made).and(freed)?;
    Ok(window)
}

/// Makes errors on `window` come back as codes.
///
/// # Safety
/// `window` is live, as for all functions below.
pub unsafe fn return_errors(window: sys::MPI_Win) -> Result<()> {
    // SAFETY: a live window by contract; the handler is a constant of the library.
    check("MPI_Win_set_errhandler", unsafe { sys::MPI_Win_set_errhandler(window, sys::RSMPI_ERRORS_RETURN) })
}

/// The address of rank 0's part in this process, and its length in bytes.
///
/// # Safety
/// As [`return_errors`].
pub unsafe fn first_part(window: sys::MPI_Win) -> Result<(*mut u8, usize)> {
    let (mut bytes, mut unit, mut start) = (0, 0, ptr::null_mut::<c_void>());
    let place = (&raw mut start).cast::<c_void>();
    // SAFETY: a live window by contract; the three values are written.
    check("MPI_Win_shared_query", unsafe { sys::MPI_Win_shared_query(window, 0, &mut bytes, &mut unit, place) })?;
    Ok((start.cast(), bytes as usize))
}

/// Opens the epoch in which the window's memory is used by loads and stores.
///
/// # Safety
/// As [`return_errors`]; no epoch is open.
pub unsafe fn lock_all(window: sys::MPI_Win) -> Result<()> {
    // SAFETY: a live window by contract; nobody takes conflicting locks, as `MPI_MODE_NOCHECK` promises.
    check("MPI_Win_lock_all", unsafe { sys::MPI_Win_lock_all(sys::MPI_MODE_NOCHECK as c_int, window) })
}

/// Closes the epoch of [`lock_all`].
///
/// # Safety
/// As [`return_errors`]; the epoch is open.
pub unsafe fn unlock_all(window: sys::MPI_Win) -> Result<()> {
    // SAFETY: a live window by contract, and its epoch is open.
    check("MPI_Win_unlock_all", unsafe { sys::MPI_Win_unlock_all(window) })
}

/// Brings this process's view of the window and the window together.
///
/// # Safety
/// As [`return_errors`]; the epoch is open.
pub unsafe fn sync(window: sys::MPI_Win) -> Result<()> {
    // SAFETY: a live window by contract, and its epoch is open.
    check("MPI_Win_sync", unsafe { sys::MPI_Win_sync(window) })
}

/// Frees the window and its memory. Collective.
///
/// # Safety
/// As [`return_errors`]; no epoch is open, and neither the window nor its memory is used again.
pub unsafe fn free(mut window: sys::MPI_Win) -> Result<()> {
    // SAFETY: a live window by contract, of which nothing is used again.
    check("MPI_Win_free", unsafe { sys::MPI_Win_free(&mut window) })
}
