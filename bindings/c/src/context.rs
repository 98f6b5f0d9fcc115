//! `sunzi_context`: the choices of a caller, the data kept between calls, and the results of the last calls.
//!
//! There is no state outside of contexts. A context may be used by several threads at the same time: calls overlap as
//! those on a `sunzi::Context` do, each thread reads its own last error.

use crate::array::invalid;
use crate::failure::{Failure, Outcome};
use crate::types::{SUNZI_ENTRYWISE, SUNZI_NORM, sunzi_options, sunzi_report, sunzi_status};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sunzi::advanced::calls::{CopyPool, check_process};
use sunzi::advanced::device::{Device, DeviceName};
use sunzi::distributed::{GridOrder, RankGrid, Team};
use sunzi::{Accuracy, Context, Matrix, Progress};

/// A context: the options of calls, and the threads, tables and memory that calls share. `sunzi_context_new` or
/// `sunzi_context_from_mpi` makes it, `sunzi_context_free` frees it.
pub struct sunzi_context {
    made: Outcome<Made>,
    kept: CopyPool,
    answers: Mutex<HashMap<u64, FailureMessage>>,
    report: Mutex<sunzi_report>,
    team: Mutex<Option<Team>>,
    /// The process that made the context: a fork is not one of the ranks.
    process: u32,
    /// The grids of ranks that numbers in descriptors of ScaLAPACK stand for.
    grids: Mutex<HashMap<c_int, (RankGrid, GridOrder)>>,
}

/// The parts that are made from options.
pub struct Made {
    /// The library's context.
    pub ctx: Context,
    /// The accuracy of entries.
    pub accuracy: Accuracy,
}

/// The message of the last failed call of a thread.
struct FailureMessage {
    status: sunzi_status,
    message: CString,
    place: Option<(usize, usize)>,
}

/// A number of this thread's own. `std::thread::current` would leave an allocation behind in threads of the caller.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    OWN.with(|own| *own)
}

/// A lock whose holder may have panicked: what it guards stays consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl sunzi_context {
    /// A context; where it could not be made, one that answers every call with the reason.
    pub fn new(made: Outcome<Made>) -> sunzi_context {
        sunzi_context {
            made,
            kept: CopyPool::default(),
            answers: Mutex::default(),
            report: Mutex::default(),
            team: Mutex::default(),
            process: std::process::id(),
            grids: Mutex::default(),
        }
    }

    /// The context whose ranks are those of `team`.
    pub fn with_team(made: Made, team: Team) -> sunzi_context {
        let context = sunzi_context::new(Ok(made));
        *lock(&context.team) = Some(team);
        context
    }

    /// The ranks, for one call.
    pub fn team(&self) -> MutexGuard<'_, Option<Team>> {
        lock(&self.team)
    }

    /// Refuses a call over ranks in a fork of the process.
    pub fn check_process(&self) -> Outcome<()> {
        check_process(self.process)
    }

    /// The grid that a number in a descriptor stands for.
    pub fn grid(&self, number: c_int) -> Option<(RankGrid, GridOrder)> {
        lock(&self.grids).get(&number).copied()
    }

    /// Sets the grid that a number in a descriptor stands for.
    pub fn set_grid(&self, number: c_int, grid: RankGrid, order: GridOrder) {
        lock(&self.grids).insert(number, (grid, order));
    }

    /// Ends the context. On several ranks the call is collective, and frees their shared windows, unless MPI has been
    /// finalised and has freed them already. A fork gives back only its own memory.
    pub fn close(self) {
        let is_rank = self.check_process().is_ok();
        if let Some(team) = self.team.into_inner().unwrap_or_else(PoisonError::into_inner).filter(|_| is_rank) {
            let _ = team.close(); // there is nobody left to tell
        }
    }

    /// The library's context.
    pub fn made(&self) -> Outcome<&Context> {
        self.made.as_ref().map(|made| &made.ctx).map_err(Failure::clone)
    }

    /// The accuracy of entries.
    pub fn accuracy(&self) -> Accuracy {
        self.made.as_ref().map_or_else(|_| Accuracy::default(), |made| made.accuracy)
    }

    /// Records the outcome of a call of this thread.
    pub fn answer(&self, outcome: &Outcome<()>) {
        let thread = thread_number();
        match outcome {
            Ok(()) => {
                let mut answers = lock(&self.answers);
                if !answers.is_empty() {
                    answers.remove(&thread);
                }
            }
            Err(failure) => {
                let message = CString::new(failure.message.replace('\0', " ")).unwrap_or_default();
                lock(&self.answers)
                    .insert(thread, FailureMessage { status: failure.status, message, place: failure.place });
            }
        }
    }

    /// The message of this thread's last call; empty where it went well. It stays until the thread's next call.
    pub fn message(&self) -> *const std::ffi::c_char {
        let answers = lock(&self.answers);
        answers.get(&thread_number()).map_or(c"".as_ptr(), |answer| answer.message.as_ptr())
    }

    /// The code of this thread's last call.
    pub fn status(&self) -> sunzi_status {
        lock(&self.answers).get(&thread_number()).map_or(sunzi_status::SUNZI_OK, |answer| answer.status)
    }

    /// The entry that this thread's last call failed at.
    pub fn place(&self) -> Option<(usize, usize)> {
        lock(&self.answers).get(&thread_number())?.place
    }

    /// The report of the last call.
    pub fn report(&self) -> sunzi_report {
        *lock(&self.report)
    }

    /// Records the report of a call.
    pub fn set_report(&self, report: sunzi_report) {
        *lock(&self.report) = report;
    }

    /// A matrix of the shape and precision with arbitrary numbers in it, new or one that was kept with as many entries.
    pub fn take_matrix(&self, rows: usize, cols: usize, precision_bits: u32) -> Outcome<Matrix> {
        Ok(self.kept.take(rows, cols, precision_bits)?)
    }

    /// Keeps a matrix for the next call, but not under a memory limit.
    pub fn give_matrix(&self, matrix: Matrix) {
        let limited = self.made.as_ref().is_ok_and(|made| made.ctx.memory_bytes().is_some());
        if !limited {
            self.kept.give(matrix);
        }
    }

    /// Gives the kept memory back.
    pub fn release(&self) {
        self.kept.clear();
        if let Ok(made) = &self.made {
            *made.ctx.workspace() = sunzi::advanced::context::Workspace::default();
        }
    }
}

/// The pointer of the caller that the progress function gets.
struct User(*mut c_void);

// SAFETY: the header states that the progress function is called from any thread; the pointer is only handed on.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// Makes a context with these options.
///
/// # Safety
/// `options` is null or live, its texts are null or end with a zero.
pub unsafe fn make(options: *const sunzi_options) -> Outcome<Made> {
    // SAFETY: null or live by contract.
    let Some(options) = (unsafe { options.as_ref() }) else {
        return Ok(Made { ctx: Context::new()?, accuracy: Accuracy::default() });
    };
    let accuracy = accuracy_of(options.accuracy)?;
    let mut builder = Context::builder().self_check(options.self_check != 0).freivalds(options.freivalds != 0);
    match usize::try_from(options.threads) {
        Ok(0) => {}
        Ok(threads) => builder = builder.threads(threads),
        Err(_) => {
            let message =
                format!("threads = {} is not valid; choose 1 to 4096, or 0 for all processors", options.threads);
            return Err(Failure::of(sunzi_status::SUNZI_INVALID_ARGUMENT, "options", message));
        }
    }
    if options.memory_bytes > 0 {
        builder = builder.memory_bytes(options.memory_bytes);
    }
    if !options.kernel.is_null() {
        // SAFETY: ends with a zero by contract.
        builder = builder.kernel(&unsafe { CStr::from_ptr(options.kernel) }.to_string_lossy());
    }
    if let Some(progress) = options.progress {
        let user = User(options.user);
        builder = builder.progress(move |Progress { phase, done, total, .. }| {
            let phase = CString::new(phase).unwrap_or_default();
            // SAFETY: a function of the caller's, with the arguments that the header promises it.
            unsafe { progress(user.pointer(), phase.as_ptr(), done, total) == 0 }
        });
    }
    if !options.devices.is_null() {
        // SAFETY: ends with a zero by contract.
        let names = unsafe { CStr::from_ptr(options.devices) }.to_string_lossy();
        let threads = usize::try_from(options.threads).ok().filter(|&count| count > 0);
        builder = builder.devices(devices_of(&names, threads)?);
    }
    if options.device_memory_bytes > 0 {
        builder = builder.device_memory_bytes(options.device_memory_bytes);
    }
    let ctx = builder.build().map_err(|error| Failure::about("options", error))?;
    Ok(Made { ctx, accuracy })
}

/// The devices of these names, with commas between them; the CPU as a device takes `threads`.
fn devices_of(names: &str, threads: Option<usize>) -> Outcome<Vec<Arc<dyn Device>>> {
    let bytes = |text: &str| {
        text.parse::<u64>().map_err(|_| format!("a software device, but '{text}' is not a number of bytes"))
    };
    let read = |name: &str| {
        let refused = |why| invalid("options", format!("device '{name}' is {why}"));
        DeviceName::parse(name.trim(), bytes).map_err(refused)
    };
    let found = names.split(',').map(read).collect::<Outcome<Vec<_>>>()?;
    DeviceName::open(&found, threads).map_err(|error| Failure::about("options", error))
}

fn accuracy_of(choice: i32) -> Outcome<Accuracy> {
    match choice {
        0 => Ok(Accuracy::default()),
        SUNZI_NORM => Ok(Accuracy::Norm),
        SUNZI_ENTRYWISE => Ok(Accuracy::Entrywise),
        other => {
            let message = format!("accuracy = {other} is not valid; choose SUNZI_NORM (1), SUNZI_ENTRYWISE (2), or 0");
            Err(Failure::of(sunzi_status::SUNZI_INVALID_ARGUMENT, "options", message))
        }
    }
}
