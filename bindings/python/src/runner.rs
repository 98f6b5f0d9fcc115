//! Long calls: without the interpreter's lock, with progress, Ctrl-C and panics turned into exceptions.
//!
//! The work runs on a thread of its own, on the context's threads. The caller's thread waits, wakes a few times in a
//! second, looks for signals and calls the progress callback: so Python code runs only where the call was made.

use crate::context::Context;
use crate::errors::exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rug::float::{FreeCache, free_cache};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use sunzi::ProgressCallback;

/// The longest time until a signal, or progress, is noticed.
const WAKE: Duration = Duration::from_millis(20);

/// The work's own stack; the main thread of a process usually has the same size.
const STACK_BYTES: usize = 8 << 20;

/// Where and how a call runs.
pub struct Runner<'py> {
    /// The context; the shared one where the caller named none.
    pub context: Bound<'py, Context>,
    /// Called with `(done, total)`; an exception in it cancels the call.
    pub progress: Option<Bound<'py, PyAny>>,
}

/// Gives back the memory that MPFR keeps for the thread, at its end: MPFR itself would not.
struct Caches;

impl Drop for Caches {
    fn drop(&mut self) {
        free_cache(FreeCache::Local);
    }
}

/// The state that the work shares with the thread that waits.
#[derive(Default)]
struct Signals {
    cancelled: AtomicBool,
    done_and_total: Mutex<(u64, u64)>,
    changes: AtomicU64,
}

impl<'py> Runner<'py> {
    /// A call on `context`, or on the shared one.
    pub fn new(
        py: Python<'py>,
        context: Option<Bound<'py, Context>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let context = context.map_or_else(|| Context::shared(py), Ok)?;
        Ok(Runner { context, progress })
    }

    /// Runs `work`, and returns its result.
    ///
    /// # Errors
    /// The exception for the library's error; the exception of the progress callback or of a signal handler, once the
    /// work has ended; `RuntimeError` for a panic.
    pub fn run<R: Send>(&self, work: impl FnOnce(&sunzi::Context) -> sunzi::Result<R> + Send) -> PyResult<R> {
        self.run_watched(|ctx, _| work(ctx))
    }

    /// As [`Runner::run`], for work with a progress callback in addition to the context's, such as reading a file.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run_watched<R: Send>(
        &self,
        work: impl FnOnce(&sunzi::Context, Arc<ProgressCallback>) -> sunzi::Result<R> + Send,
    ) -> PyResult<R> {
        let signals = Arc::new(Signals::default());
        let callback = self.progress.as_ref().map(|callback| callback.clone().unbind());
        let (watched, seen) = (signals.clone(), AtomicU64::new(0));
        let tell = move |py: Python<'_>| -> PyResult<()> {
            let changes = watched.changes.load(Ordering::Acquire);
            if let Some(callback) = callback.as_ref().filter(|_| seen.swap(changes, Ordering::Relaxed) != changes) {
                let (done, total) = *watched.done_and_total.lock().unwrap_or_else(PoisonError::into_inner);
                callback.bind(py).call1((done, total))?;
            }
            Ok(())
        };
        self.attended(work, signals, &tell)
    }

    /// The same for work with reports of its own: `tell` is called a few times in a second, and when the work has
    /// ended, with the interpreter's lock on the thread that made the call.
    ///
    /// # Errors
    /// As [`Runner::run`], and exceptions of `tell`.
    pub fn run_telling<R: Send>(
        &self,
        work: impl FnOnce(&sunzi::Context) -> sunzi::Result<R> + Send,
        tell: &Tell<'_>,
    ) -> PyResult<R> {
        self.attended(|ctx, _| work(ctx), Arc::new(Signals::default()), tell)
    }

    fn attended<R: Send>(
        &self,
        work: impl FnOnce(&sunzi::Context, Arc<ProgressCallback>) -> sunzi::Result<R> + Send,
        signals: Arc<Signals>,
        tell: &Tell<'_>,
    ) -> PyResult<R> {
        let py = self.context.py();
        let hook = signals.clone();
        let told: Arc<ProgressCallback> = Arc::new(move |progress| hook.take(&progress));
        let teller = told.clone();
        let context = self.context.get().get(py)?.with_progress(move |progress| teller(progress));
        let ended = py.detach(|| {
            thread::scope(|scope| {
                let (sender, receiver) = channel::<()>();
                let worker = thread::Builder::new().name("sunzi".into()).stack_size(STACK_BYTES);
                let worker = worker.spawn_scoped(scope, move || {
                    let _open_while_at_work = sender;
                    let _caches = Caches;
                    work(&context, told)
                });
                let worker = worker.map_err(|error| {
                    PyRuntimeError::new_err(format!("cannot start a thread of {STACK_BYTES} bytes: {error}"))
                })?;
                let raised = attend(&signals, tell, &receiver);
                let ended = worker.join();
                raised.and_then(|()| ended.map_err(|panic| panicked(&*panic)))
            })
        });
        ended?.map_err(|error| exception(py, error))
    }
}

impl Signals {
    /// The work's side of progress.
    fn take(&self, progress: &sunzi::Progress) -> bool {
        *self.done_and_total.lock().unwrap_or_else(PoisonError::into_inner) = (progress.done, progress.total);
        self.changes.fetch_add(1, Ordering::Release);
        !self.cancelled.load(Ordering::Relaxed)
    }
}

/// The function that the waiting thread calls a few times in a second.
type Tell<'t> = dyn Fn(Python<'_>) -> PyResult<()> + Send + Sync + 't;

/// Looks after signals and progress until the work ends. After an exception it requests a stop of the work, and waits.
fn attend(signals: &Signals, tell: &Tell<'_>, ended: &Receiver<()>) -> PyResult<()> {
    let mut outcome = Ok(());
    loop {
        let at_work = ended.recv_timeout(WAKE) == Err(RecvTimeoutError::Timeout);
        if outcome.is_ok() {
            outcome = Python::attach(|py| py.check_signals().and_then(|()| tell(py)));
            signals.cancelled.store(outcome.is_err(), Ordering::Relaxed);
        }
        if !at_work {
            return outcome;
        }
    }
}

/// The exception for a panic: a bug of the library, which the caller's process survives.
fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    // Code that cannot return errors panics with the error of a refusal.
    let text = text.or_else(|| panic.downcast_ref::<sunzi::Error>().map(ToString::to_string)).unwrap_or_default();
    PyRuntimeError::new_err(format!("internal error (please report it): {text}"))
}
