//! Status codes of MPI turned into errors, one function per call.
//!
//! Relies on the caller for what MPI demands (live handles, buffers that stay while a request runs); `rank`, `mailbox`
//! and `window` ensure it. All calls except the queries of MPI's own state need MPI to be alive: hold a `Gate`.

use crate::comm::Reduction;
use crate::comm::mpi::sys;
use crate::error::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

pub mod mailbox;
pub mod window;

/// An error with the library's own words where `code` is one.
fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == sys::MPI_SUCCESS as c_int { Ok(()) } else { Err(Error::Transport(format!("{call}: {}", text(code)))) }
}

fn text(code: c_int) -> String {
    let mut bytes = [0 as c_char; sys::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: room for the longest text and its final zero.
    let known = unsafe { sys::MPI_Error_string(code, bytes.as_mut_ptr(), &mut length) } == sys::MPI_SUCCESS as c_int;
    if known { string(&bytes) } else { format!("error {code}") }
}

fn string(bytes: &[c_char]) -> String {
    let bytes: &[u8] = bytemuck::cast_slice(bytes);
    CStr::from_bytes_until_nul(bytes).map_or(String::new(), |text| text.to_string_lossy().trim().replace('\n', " "))
}

/// Whether MPI has been initialised, even if finalised since.
pub fn is_initialised() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time, by any thread; `flag` is written.
    unsafe { sys::MPI_Initialized(&mut flag) };
    flag != 0
}

/// Whether MPI has been finalised.
pub fn is_finalised() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time, by any thread; `flag` is written.
    unsafe { sys::MPI_Finalized(&mut flag) };
    flag != 0
}

/// Name and version of the library.
pub fn library() -> String {
    let mut bytes = [0 as c_char; sys::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: may be called at any time; room for the longest text and its final zero.
    unsafe { sys::MPI_Get_library_version(bytes.as_mut_ptr(), &mut length) };
    string(&bytes)
}

/// Initialises MPI with as much thread support as it grants; errors are returned from then on, also where no
/// communicator of ours is involved.
pub fn initialise() -> Result<()> {
    let mut provided = 0;
    // SAFETY: the caller has found MPI not initialised and keeps other threads of ours out; no arguments are passed.
    let code =
        unsafe { sys::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), sys::RSMPI_THREAD_MULTIPLE, &mut provided) };
    check("MPI_Init_thread", code)?;
    // SAFETY: MPI has just been initialised; both handles are constants of the library.
    check("MPI_Comm_set_errhandler", unsafe {
        sys::MPI_Comm_set_errhandler(sys::RSMPI_COMM_WORLD, sys::RSMPI_ERRORS_RETURN)
    })
}

/// Finalises MPI.
pub fn finalise() -> Result<()> {
    // SAFETY: the caller initialised MPI, found it not finalised, and keeps all operations of ours out.
    check("MPI_Finalize", unsafe { sys::MPI_Finalize() })
}

/// The level of thread support that MPI was initialised with.
pub fn thread_level() -> Result<c_int> {
    let mut level = 0;
    // SAFETY: MPI is alive; `level` is written.
    check("MPI_Query_thread", unsafe { sys::MPI_Query_thread(&mut level) })?;
    Ok(level)
}

/// The level at which calls may run at the same time.
pub fn multiple() -> c_int {
    // SAFETY: a constant of the library.
    unsafe { sys::RSMPI_THREAD_MULTIPLE }
}

/// The level at which any thread may call, one at a time.
pub fn serialized() -> c_int {
    // SAFETY: a constant of the library.
    unsafe { sys::RSMPI_THREAD_SERIALIZED }
}

/// Whether this is the thread that initialised MPI.
pub fn is_main_thread() -> Result<bool> {
    let mut flag = 0;
    // SAFETY: MPI is alive, and any thread may ask this; `flag` is written.
    check("MPI_Is_thread_main", unsafe { sys::MPI_Is_thread_main(&mut flag) })?;
    Ok(flag != 0)
}

/// The communicator of all processes.
pub fn world() -> sys::MPI_Comm {
    // SAFETY: a constant of the library.
    unsafe { sys::RSMPI_COMM_WORLD }
}

/// The communicator with a Fortran handle; `None` where the library has none of that number.
pub fn from_fortran(handle: sys::RSMPI_Fint) -> Option<sys::MPI_Comm> {
    // SAFETY: MPI is alive, and looks the number up; the next one is a constant of the library. Handles are pointers or
    // integers, which may be all zeros: so Open MPI answers for a number that it never gave out.
    let (comm, none, zero) =
        unsafe { (sys::RSMPI_Comm_f2c(handle), sys::RSMPI_COMM_NULL, MaybeUninit::zeroed().assume_init()) };
    (comm != none && comm != zero && is_known(comm)).then_some(comm)
}

/// Whether the library recognises a communicator. MPICH takes every number for a handle until it is used, and then ends
/// the program, unless errors are returned: they are those of the communicator of all processes.
fn is_known(comm: sys::MPI_Comm) -> bool {
    let (mut before, mut size) = (MaybeUninit::uninit(), 0);
    // SAFETY: MPI is alive; the handler is written, put back and given back once. The library looks the handle up
    // before it uses it, and reports one that it does not know.
    unsafe {
        let success = sys::MPI_SUCCESS as c_int;
        if sys::MPI_Comm_get_errhandler(sys::RSMPI_COMM_WORLD, before.as_mut_ptr()) != success {
            return false;
        }
        sys::MPI_Comm_set_errhandler(sys::RSMPI_COMM_WORLD, sys::RSMPI_ERRORS_RETURN);
        let known = sys::MPI_Comm_size(comm, &mut size) == success;
        sys::MPI_Comm_set_errhandler(sys::RSMPI_COMM_WORLD, before.assume_init());
        sys::MPI_Errhandler_free(before.as_mut_ptr());
        known
    }
}

/// Rank of this process in `comm`, and the number of its ranks.
///
/// # Safety
/// `comm` is a live communicator, as for all functions below that take one.
pub unsafe fn rank_and_size(comm: sys::MPI_Comm) -> Result<(usize, usize)> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: a live communicator by contract; both numbers are written.
    check("MPI_Comm_rank", unsafe { sys::MPI_Comm_rank(comm, &mut rank) })?;
    // SAFETY: as above.
    check("MPI_Comm_size", unsafe { sys::MPI_Comm_size(comm, &mut size) })?;
    Ok((rank as usize, size as usize))
}

/// Whether it has two groups, each of which communicates only with the other.
///
/// # Safety
/// `comm` is a live communicator.
pub unsafe fn is_inter(comm: sys::MPI_Comm) -> Result<bool> {
    let mut flag = 0;
    // SAFETY: a live communicator by contract; `flag` is written.
    check("MPI_Comm_test_inter", unsafe { sys::MPI_Comm_test_inter(comm, &mut flag) })?;
    Ok(flag != 0)
}

/// A new communicator of the same ranks. Collective.
///
/// # Safety
/// As [`rank_and_size`].
pub unsafe fn duplicate(comm: sys::MPI_Comm) -> Result<sys::MPI_Comm> {
    let mut made = comm;
    // SAFETY: a live communicator by contract; `made` is written.
    check("MPI_Comm_dup", unsafe { sys::MPI_Comm_dup(comm, &mut made) })?;
    Ok(made)
}

/// The ranks of one color as a communicator, in the order of `key`. Collective.
///
/// # Safety
/// As [`rank_and_size`].
pub unsafe fn split(comm: sys::MPI_Comm, color: c_int, key: c_int) -> Result<sys::MPI_Comm> {
    let mut made = comm;
    // SAFETY: a live communicator by contract; `made` is written.
    check("MPI_Comm_split", unsafe { sys::MPI_Comm_split(comm, color, key, &mut made) })?;
    Ok(made)
}

/// The ranks that can share memory with this one as a communicator. Collective.
///
/// # Safety
/// As [`rank_and_size`].
pub unsafe fn split_by_machine(comm: sys::MPI_Comm, key: c_int) -> Result<sys::MPI_Comm> {
    let mut made = comm;
    // SAFETY: a live communicator by contract; the other handles are constants of the library; `made` is written.
    let code =
        unsafe { sys::MPI_Comm_split_type(comm, sys::RSMPI_COMM_TYPE_SHARED, key, sys::RSMPI_INFO_NULL, &mut made) };
    check("MPI_Comm_split_type", code)?;
    Ok(made)
}

/// Makes errors on `comm` come back as codes.
///
/// # Safety
/// As [`rank_and_size`].
pub unsafe fn return_errors(comm: sys::MPI_Comm) -> Result<()> {
    // SAFETY: a live communicator by contract; the handler is a constant of the library.
    check("MPI_Comm_set_errhandler", unsafe { sys::MPI_Comm_set_errhandler(comm, sys::RSMPI_ERRORS_RETURN) })
}

/// Frees a communicator of ours.
///
/// # Safety
/// As [`rank_and_size`]; it is not used again.
pub unsafe fn free(mut comm: sys::MPI_Comm) -> Result<()> {
    // SAFETY: a live communicator by contract, of which no handle is used again.
    check("MPI_Comm_free", unsafe { sys::MPI_Comm_free(&mut comm) })
}

/// Ends all processes of the job.
///
/// # Safety
/// As [`rank_and_size`].
pub unsafe fn abort(comm: sys::MPI_Comm, exit_code: u8) {
    // SAFETY: a live communicator by contract.
    unsafe { sys::MPI_Abort(comm, exit_code.into()) };
}

/// Starts combining `own` of all ranks into `all`; maxima are those of signed words.
///
/// # Safety
/// As [`rank_and_size`]; both slices stay untouched until the request is done, as for all requests below.
pub unsafe fn start_all_reduce(
    comm: sys::MPI_Comm,
    reduction: Reduction,
    own: &[u64],
    all: &mut [u64],
) -> Result<sys::MPI_Request> {
    assert_eq!(own.len(), all.len());
    let (mut request, count) = (no_request(), count(own.len()));
    // SAFETY: as many words in both slices as are named; they stay, and the communicator lives, by contract.
    let code = unsafe {
        let (operation, kind) = match reduction {
            Reduction::Max => (sys::RSMPI_MAX, sys::RSMPI_INT64_T),
            Reduction::Min => (sys::RSMPI_MIN, sys::RSMPI_INT64_T),
            Reduction::Sum => (sys::RSMPI_SUM, sys::RSMPI_UINT64_T),
        };
        let (own, all) = (own.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        sys::MPI_Iallreduce(own, all, count, kind, operation, comm, &mut request)
    };
    check("MPI_Iallreduce", code)?;
    Ok(request)
}

/// Starts giving every rank the words of `root`.
///
/// # Safety
/// As [`start_all_reduce`].
pub unsafe fn start_broadcast(comm: sys::MPI_Comm, root: usize, words: &mut [u64]) -> Result<sys::MPI_Request> {
    let (mut request, root, count) = (no_request(), rank(root), count(words.len()));
    let start = words.as_mut_ptr().cast::<c_void>();
    // SAFETY: the slice has as many words as are named; it stays, and the communicator lives, by contract.
    let code = unsafe { sys::MPI_Ibcast(start, count, sys::RSMPI_UINT64_T, root, comm, &mut request) };
    check("MPI_Ibcast", code)?;
    Ok(request)
}

/// Starts gathering `own` of all ranks in `all`, which holds as many words for each rank.
///
/// # Safety
/// As [`start_all_reduce`]; `all` has `own.len()` words for each rank of `comm`.
pub unsafe fn start_all_gather(comm: sys::MPI_Comm, own: &[u64], all: &mut [u64]) -> Result<sys::MPI_Request> {
    let (mut request, count) = (no_request(), count(own.len()));
    let (own, all) = (own.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
    // SAFETY: both slices have room by contract; they stay, and the communicator lives.
    let code = unsafe {
        let kind = sys::RSMPI_UINT64_T;
        sys::MPI_Iallgather(own, count, kind, all, count, kind, comm, &mut request)
    };
    check("MPI_Iallgather", code)?;
    Ok(request)
}

/// The kind of a message: messages of one kind between two ranks are matched by their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Tag {
    /// Of an exchange that all its ranks take part in.
    Exchange = 1,
    /// The head of a message that its receiver looks for.
    Header,
    /// A piece of a body that its receiver has requested.
    Payload,
}

/// Starts sending `words` to rank `to`.
///
/// # Safety
/// As [`start_all_reduce`].
pub unsafe fn start_send(comm: sys::MPI_Comm, to: usize, tag: Tag, words: &[u64]) -> Result<sys::MPI_Request> {
    let (mut request, to, count) = (no_request(), rank(to), count(words.len()));
    let start = words.as_ptr().cast::<c_void>();
    // SAFETY: the slice has as many words as are named; it stays, and the communicator lives, by contract.
    let code = unsafe { sys::MPI_Isend(start, count, sys::RSMPI_UINT64_T, to, tag as c_int, comm, &mut request) };
    check("MPI_Isend", code)?;
    Ok(request)
}

/// Starts receiving `words` from rank `from`.
///
/// # Safety
/// As [`start_all_reduce`].
pub unsafe fn start_receive(comm: sys::MPI_Comm, from: usize, tag: Tag, words: &mut [u64]) -> Result<sys::MPI_Request> {
    let (mut request, from, count) = (no_request(), rank(from), count(words.len()));
    let start = words.as_mut_ptr().cast::<c_void>();
    // SAFETY: the slice has as many words as are named; it stays, and the communicator lives, by contract.
    let code = unsafe { sys::MPI_Irecv(start, count, sys::RSMPI_UINT64_T, from, tag as c_int, comm, &mut request) };
    check("MPI_Irecv", code)?;
    Ok(request)
}

/// Whether `request` is done, with its status. An error means that it is done, too, and has failed.
///
/// # Safety
/// `request` is a live request that has not been found done before.
pub unsafe fn test(request: &mut sys::MPI_Request) -> Result<Option<sys::MPI_Status>> {
    let mut done = 0;
    let mut status = MaybeUninit::<sys::MPI_Status>::zeroed();
    // SAFETY: a live request by contract; `done` and, where it is set, `status` are written.
    check("MPI_Test", unsafe { sys::MPI_Test(request, &mut done, status.as_mut_ptr()) })?;
    // SAFETY: a status is a struct of numbers, for which zeros are values.
    Ok((done != 0).then(|| unsafe { status.assume_init() }))
}

/// Words that a receive has brought.
pub fn words_received(status: &sys::MPI_Status) -> Result<usize> {
    let mut words = 0;
    // SAFETY: a status that MPI has written, of messages of words; MPI is alive.
    check("MPI_Get_count", unsafe { sys::MPI_Get_count(status, sys::RSMPI_UINT64_T, &mut words) })?;
    usize::try_from(words).map_err(|_| Error::Transport("a message is not a whole number of words".into()))
}

fn no_request() -> sys::MPI_Request {
    // SAFETY: a constant of the library.
    unsafe { sys::RSMPI_REQUEST_NULL }
}

/// A count as MPI takes it; the callers cut longer messages into pieces.
fn count(words: usize) -> c_int {
    c_int::try_from(words).expect("long messages come in pieces")
}

fn rank(rank: usize) -> c_int {
    c_int::try_from(rank).expect("a rank of a communicator")
}
