//! The life of a context, and its information about the last calls.

use crate::api::mpi::together;
use crate::call::{catch, status};
use crate::context::{make, sunzi_context};
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_options, sunzi_report, sunzi_status};
use std::ffi::{c_char, c_int};
use sunzi::comm::Transport;
use sunzi::distributed::{Team, TeamOptions};

/// All defaults: every processor, no memory limit, the fastest kernel, no checks.
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

/// Makes a context as `options` say (null for the defaults) and puts it into `*ctx`.
///
/// `*ctx` is a context after a failure too: one that answers `sunzi_last_error`, and every call with the same failure.
/// Free it in either case.
///
/// A fork of the process may go on with the context: its first call starts threads of its own. A call that is under way
/// while the process forks, devices and communicators stay with the parent: calls over ranks are refused in the fork
/// with `SUNZI_COMMUNICATION`, and freeing the context there gives back the fork's own memory and tells no rank.
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

/// A context on the communicator with the Fortran handle `communicator` (`MPI_Comm_c2f(comm)`), for the calls named
/// `sunzi_mpi_...`; all others run on this rank alone. Collective over the communicator, which is duplicated.
///
/// MPI stays the caller's: it must be initialised before, and finalised after `sunzi_context_free`. Threads of the
/// context never call MPI. An intercommunicator is refused on all ranks of both groups. Contexts are freed in one order
/// on all ranks that have several. Without the feature `mpi` this is `SUNZI_UNAVAILABLE`.
///
/// # Safety
/// `communicator` is the handle of a live communicator, or of none.
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
    sunzi_context::with_team(made)
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
    let message = "this build has no MPI: build the library with the feature mpi";
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

/// Frees a context; null does nothing. No call may be under way on it. Texts of `sunzi_last_error` go with it.
/// Collective for a context on a communicator, unless MPI has been finalised.
///
/// # Safety
/// `ctx` is null or came from `sunzi_context_new` or `sunzi_context_from_mpi`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_context_free(ctx: *mut sunzi_context) {
    if ctx.is_null() {
        return;
    }
    // SAFETY: made by `Box::into_raw`, and not freed before, by contract.
    let context = unsafe { Box::from_raw(ctx) };
    let _ = catch(|| {
        context.close();
        Ok(())
    });
}

/// Gives back the memory that the context keeps between calls: copies, windows, scratch. Tables and threads stay.
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

/// Why the calling thread's last call on the context failed, as one line with the numbers; empty where it went well.
///
/// The text stays until the thread's next call on the context.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_last_error(ctx: *const sunzi_context) -> *const c_char {
    // SAFETY: null or live by contract.
    unsafe { ctx.as_ref() }.map_or(c"ctx: a null pointer".as_ptr(), sunzi_context::message)
}

/// The status of the calling thread's last call on the context, also of one that returned info.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_last_status(ctx: *const sunzi_context) -> sunzi_status {
    // SAFETY: null or live by contract.
    unsafe { ctx.as_ref() }.map_or(sunzi_status::SUNZI_NULL_POINTER, sunzi_context::status)
}

/// The row and the column, from 0, of the entry that the calling thread's last call failed at, as
/// `sunzi_last_error` names it; for a matrix that is not positive definite, or singular, twice the index. Both are -1
/// where the failure has no place. Null pointers are passed over.
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

/// Fills `report` with what the context's last call that went well took, whichever thread made it.
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
