//! The calls that test messages without waiting, in the style of `result`.

use crate::comm::mpi::result::{Tag, check, words_received};
use crate::comm::mpi::sys;
use crate::error::{Error, Result};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The sender and the words of the oldest message of kind `tag` that has come in and is not being received.
///
/// # Safety
/// `comm` is a live communicator.
pub unsafe fn probe(comm: sys::MPI_Comm, tag: Tag) -> Result<Option<(usize, usize)>> {
    let mut found = 0;
    let mut status = MaybeUninit::<sys::MPI_Status>::zeroed();
    // SAFETY: a live communicator by contract; `found` and, where it is set, `status` are written.
    let code = unsafe { sys::MPI_Iprobe(sys::RSMPI_ANY_SOURCE, tag as c_int, comm, &mut found, status.as_mut_ptr()) };
    check("MPI_Iprobe", code)?;
    if found == 0 {
        return Ok(None);
    }
    // SAFETY: a status is a struct of numbers, for which zeros are values.
    let status = unsafe { status.assume_init() };
    let from = usize::try_from(status.MPI_SOURCE);
    let from = from.map_err(|_| Error::Transport("MPI_Iprobe reports a message without a sender".into()))?;
    Ok(Some((from, words_received(&status)?)))
}

/// The finished ones of `requests`, also those with an error, by falling index.
///
/// # Safety
/// All `requests` are live. The returned requests are not used again.
pub unsafe fn test_some(requests: &mut [sys::MPI_Request]) -> Result<Vec<(usize, Result<sys::MPI_Status>)>> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let count = c_int::try_from(requests.len());
    let count = count.map_err(|_| Error::Transport("too many messages are in transit".into()))?;
    let (mut done, mut indices) = (0, vec![0; requests.len()]);
    // SAFETY: a status is a struct of numbers, for which zeros are values.
    let mut statuses = vec![unsafe { MaybeUninit::<sys::MPI_Status>::zeroed().assume_init() }; requests.len()];
    // SAFETY: live requests by contract; room for as many indices and statuses.
    let code = unsafe {
        sys::MPI_Testsome(count, requests.as_mut_ptr(), &mut done, indices.as_mut_ptr(), statuses.as_mut_ptr())
    };
    // Only with this code do the statuses hold the errors, each for its request.
    let some_failed = code == sys::MPI_ERR_IN_STATUS as c_int;
    if !some_failed {
        check("MPI_Testsome", code)?;
    }
    // A negative number means that no request is active, which cannot be.
    let done =
        usize::try_from(done).map_err(|_| Error::Transport("MPI_Testsome: there is no active request".into()))?;
    let outcome = |status: sys::MPI_Status| {
        if some_failed { check("MPI_Testsome", status.MPI_ERROR).map(|()| status) } else { Ok(status) }
    };
    let mut finished: Vec<_> =
        indices.into_iter().zip(statuses).take(done).map(|(index, status)| (index as usize, outcome(status))).collect();
    finished.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
    Ok(finished)
}
