//! The only access to MPI: while a [`Gate`] is held, MPI is initialised and not finalised, and calls respect the level
//! of thread support with which MPI was initialised.
//!
//! With `MPI_THREAD_MULTIPLE` calls run freely. With less, one call runs at a time in the process; as all waiting is
//! done by repeated short calls (`wait`), a waiting thread does not block others. With `MPI_THREAD_FUNNELED` any thread
//! but MPI's main one is refused. `MPI_THREAD_SINGLE`, which a host may have requested, is treated like it: Open MPI
//! and MPICH make no difference between the two, and worker threads never call MPI.
//!
//! A fork of the process has MPI's memory and its connections, but is not a rank: all its calls are refused.

use crate::comm::mpi::result;
use crate::error::{Error, Result};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Read while an operation runs, written while MPI is initialised or finalised.
static ALIVE: RwLock<()> = RwLock::new(());

/// Held during one call where MPI allows one at a time.
static CALLS: Mutex<()> = Mutex::new(());

/// The thread level that MPI was initialised with; queried once, as it never changes.
static LEVEL: OnceLock<ThreadLevel> = OnceLock::new();

/// The process that MPI was first called in.
static PROCESS: OnceLock<u32> = OnceLock::new();

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ThreadLevel {
    MainThread,
    OneAtATime,
    Free,
}

/// Permission to call MPI, for one operation. A thread must not request it twice.
pub struct Gate {
    _alive: RwLockReadGuard<'static, ()>,
    level: ThreadLevel,
}

impl Gate {
    /// Permission for an operation that begins now.
    ///
    /// # Errors
    /// [`Error::Transport`] where MPI is not initialised, has been finalised, or must not be called by this thread, or
    /// by this process.
    pub fn enter() -> Result<Gate> {
        // Before anything is locked: a lock that another thread held stays locked in a fork.
        let process = std::process::id();
        if let Some(first) = PROCESS.get().filter(|&&first| first != process) {
            let text = format!("process {process} is a fork of process {first}, and only process {first} may call MPI");
            return Err(Error::Transport(text));
        }
        let alive = ALIVE.read().unwrap_or_else(PoisonError::into_inner);
        if !result::is_initialised() {
            return Err(Error::Transport("MPI is not initialised".into()));
        }
        if result::is_finalised() {
            return Err(Error::Transport("MPI has been finalised".into()));
        }
        let level = *LEVEL.get_or_init(level);
        if level == ThreadLevel::MainThread && !result::is_main_thread()? {
            let text = "this thread must not call MPI, which was initialised for calls from its main thread only \
                        (MPI_THREAD_FUNNELED)";
            return Err(Error::Transport(text.into()));
        }
        PROCESS.get_or_init(|| process);
        Ok(Gate { _alive: alive, level })
    }

    /// Runs one call of MPI.
    pub fn call<R>(&self, call: impl FnOnce() -> R) -> R {
        let _one: Option<MutexGuard<'_, ()>> =
            (self.level == ThreadLevel::OneAtATime).then(|| CALLS.lock().unwrap_or_else(PoisonError::into_inner));
        call()
    }
}

fn level() -> ThreadLevel {
    match result::thread_level() {
        Ok(level) if level >= result::multiple() => ThreadLevel::Free,
        Ok(level) if level >= result::serialized() => ThreadLevel::OneAtATime,
        _ => ThreadLevel::MainThread,
    }
}

/// Keeps all operations out, for initialising and finalising.
pub fn shut() -> RwLockWriteGuard<'static, ()> {
    ALIVE.write().unwrap_or_else(PoisonError::into_inner)
}
