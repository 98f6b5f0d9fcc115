//! The life of a context, and its information about the last calls.

use crate::call::{catch, status};
use crate::context::{make, sunzi_context};
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_options, sunzi_report, sunzi_status};
use std::ffi::{c_char, c_int};
use sunzi::advanced::calls::together;
use sunzi::comm::Transport;
use sunzi::distributed::{Team, TeamOptions};

/// Returns the default options: all processors, no memory limit, the fastest kernel, no checks.
#[unsafe(no_mangle)]
pub extern "C" fn sunzi_options_default() -> sunzi_options {
    sunzi_options {
        threads: 0,
        memory_bytes: 0,
        kernel: std::ptr::null(),
        self_check: 0,
        freivalds: 0,
        progress: None,
        user: std::ptr::null_mut(),
        accuracy: 0,
        devices: std::ptr::null(),
        device_memory_bytes: 0,
    }
}

/// Makes a context with `options` (null for the defaults) and stores it in `*ctx`.
///
/// After a failure `*ctx` is a context as well: `sunzi_last_error` returns the reason, and every call on it fails with
/// the same status. The caller must free it in both cases.
///
/// Forks: a child process may continue to use the context, and the first call there starts new threads. Calls that were
/// running during the fork, devices, and communicators remain with the parent: in the child, calls over ranks return
/// `SUNZI_COMMUNICATION`, and `sunzi_context_free` frees the child's own memory without communication.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_context_new(
    options: *const sunzi_options,
    ctx: *mut *mut sunzi_context,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { deliver(|| catch(|| make(options)).map_or_else(refused, |made| sunzi_context::new(Ok(made))), ctx) }
}

/// Makes a context for the calls named `sunzi_mpi_...` on the ranks of an MPI communicator, which is passed as its
/// Fortran handle `MPI_Comm_c2f(comm)`. All other calls on the context run on the calling rank only. Collective over
/// the communicator, which is duplicated.
///
/// The program must initialise MPI before this call and finalise it after `sunzi_context_free`. Threads of the context
/// never call MPI. An intercommunicator is refused on all ranks of both groups. Ranks with several contexts must make
/// and free them in the same order. A build without the feature `mpi` returns `SUNZI_UNAVAILABLE`.
///
/// # Safety
/// `communicator` must be the handle of a live communicator, or of no communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_context_from_mpi(
    communicator: c_int,
    options: *const sunzi_options,
    ctx: *mut *mut sunzi_context,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { deliver(|| from_mpi(communicator, options, !ctx.is_null()), ctx) }
}

/// # Safety
/// As [`sunzi_context_from_mpi`].
#[cfg(feature = "mpi")]
unsafe fn from_mpi(communicator: c_int, options: *const sunzi_options, has_place: bool) -> sunzi_context {
    use sunzi::comm::mpi::MpiRank;
    // SAFETY: by contract.
    let world = catch(|| Ok(unsafe { MpiRank::from_fortran(communicator) }?));
    match world {
        // SAFETY: by contract.
        Ok(world) => unsafe { over(Box::new(world), options, has_place) },
        Err(failure) => refused(failure),
    }
}

/// A context whose ranks are those of `world`. Collective.
///
/// # Safety
/// As [`make`].
unsafe fn over(world: Box<dyn Transport>, options: *const sunzi_options, has_place: bool) -> sunzi_context {
    let made = catch(|| {
        // SAFETY: by contract. A refusal on one rank is one on all.
        let own = unsafe { make(options) }.and_then(|ctx| Ok((ctx, TeamOptions::from_environment()?)));
        let own = if has_place { own } else { Err(Failure::null("ctx")) };
        let (ctx, team_options) = together(&*world, own)?;
        Ok((ctx, Team::new(world, team_options)?))
    });
    match made {
        Ok((made, team)) => sunzi_context::with_team(made, team),
        Err(failure) => refused(failure),
    }
}

/// `sunzi_context_from_mpi` over ranks of any kind: those of the tests are threads. Collective.
///
/// # Safety
/// `options` is null or live; `ctx` is null or can be written.
#[doc(hidden)]
pub unsafe fn context_over(
    world: Box<dyn Transport>,
    options: *const sunzi_options,
    ctx: *mut *mut sunzi_context,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { deliver(|| over(world, options, !ctx.is_null()), ctx) }
}

/// # Safety
/// As [`sunzi_context_from_mpi`].
#[cfg(not(feature = "mpi"))]
unsafe fn from_mpi(_communicator: c_int, _options: *const sunzi_options, _has_place: bool) -> sunzi_context {
    let message = "this build does not support MPI; build the library with the feature mpi";
    refused(Failure::new(sunzi_status::SUNZI_UNAVAILABLE, message))
}

fn refused(failure: Failure) -> sunzi_context {
    sunzi_context::new(Err(failure))
}

/// Puts a new context into `*ctx`, its failure being that of its first call.
///
/// # Safety
/// `ctx` is null or can be written.
unsafe fn deliver(made: impl FnOnce() -> sunzi_context, ctx: *mut *mut sunzi_context) -> sunzi_status {
    // On a communicator all ranks come this far, and are refused together.
    let context = made();
    if ctx.is_null() {
        return sunzi_status::SUNZI_NULL_POINTER;
    }
    let outcome: Outcome<()> = context.made().map(|_| ());
    context.answer(&outcome);
    // SAFETY: it can be written by contract.
    unsafe { ctx.write(Box::into_raw(Box::new(context))) };
    status(&outcome)
}

/// Frees a context; a null pointer is ignored. No other call on the context may be running. The texts of
/// `sunzi_last_error` become invalid. Collective for a context on a communicator, unless MPI has been finalised.
///
/// # Safety
/// `ctx` must be null or a result of `sunzi_context_new` or `sunzi_context_from_mpi`, and must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_context_free(ctx: *mut sunzi_context) {
    if ctx.is_null() {
        return;
    }
    // SAFETY: made by `Box::into_raw`, and not freed before, by contract.
    let context = unsafe { Box::from_raw(ctx) };
    let _: Outcome<()> = catch(|| {
        context.close();
        Ok(())
    });
}

/// Frees the memory that the context keeps between calls: copies, windows and work memory. Tables and threads stay.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_context_release(ctx: *const sunzi_context) -> sunzi_status {
    // SAFETY: null or live by contract.
    match unsafe { ctx.as_ref() } {
        Some(context) => {
            context.release();
            sunzi_status::SUNZI_OK
        }
        None => sunzi_status::SUNZI_NULL_POINTER,
    }
}

/// Returns the reason why the calling thread's last call on the context failed, as one line with the numbers; an empty
/// string after a success. The text is valid until the next call of the same thread on the context.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_last_error(ctx: *const sunzi_context) -> *const c_char {
    // SAFETY: null or live by contract.
    unsafe { ctx.as_ref() }.map_or(c"ctx: the pointer is null".as_ptr(), sunzi_context::message)
}

/// Returns the status of the calling thread's last call on the context, including calls that return info.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_last_status(ctx: *const sunzi_context) -> sunzi_status {
    // SAFETY: null or live by contract.
    unsafe { ctx.as_ref() }.map_or(sunzi_status::SUNZI_NULL_POINTER, sunzi_context::status)
}

/// Stores the row and the column, counted from 0, of the entry at which the calling thread's last call failed, as
/// `sunzi_last_error` names them. For a matrix that is not positive definite or is singular, both numbers are the index
/// of the pivot. Both are -1 if the failure has no place. Null pointers are ignored.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_last_place(ctx: *const sunzi_context, row: *mut i64, column: *mut i64) {
    // SAFETY: null or live by contract.
    let place = unsafe { ctx.as_ref() }.and_then(sunzi_context::place);
    let (row_index, column_index) = place.map_or((-1, -1), |(row, column)| (row as i64, column as i64));
    for (target, index) in [(row, row_index), (column, column_index)] {
        if !target.is_null() {
            // SAFETY: it can be written by contract.
            unsafe { target.write(index) };
        }
    }
}

/// Stores the statistics of the last successful call on the context, by any thread, in `*report`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_last_report(ctx: *const sunzi_context, report: *mut sunzi_report) -> sunzi_status {
    // SAFETY: null or live by contract.
    match (unsafe { ctx.as_ref() }, report.is_null()) {
        (Some(context), false) => {
            // SAFETY: it can be written by contract.
            unsafe { report.write(context.report()) };
            sunzi_status::SUNZI_OK
        }
        _ => sunzi_status::SUNZI_NULL_POINTER,
    }
}
