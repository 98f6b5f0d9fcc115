//! The threads that carry out requests, and their shared state.
//!
//! One lock guards the queue, the catalogue and the counters; nothing is read, written or delivered under it. Threads
//! sleep until there is a request that may begin. Independent of: how a request is carried out.

use super::catalog::Catalog;
use super::format::GroupHeader;
use super::name::GroupName;
use super::queue::{Limits, Priority, Queue};
use super::request::{Completion, Deliver, ExternalSource, NewObject, StorageOptions};
use super::statistics::{Activity, StorageStatistics};
use super::transfer::{ObjectRun, Transfer};
use crate::error::{Error, Result};
use crate::store::{IoBuffer, room_for_threads};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Stack of an I/O thread: its own calls are shallow, but the callback is the caller's.
const STACK_BYTES: usize = 1 << 20;

/// A piece of work.
pub enum StorageWork {
    Read { runs: Vec<ObjectRun>, buffer: IoBuffer },
    Publish { header: GroupHeader, objects: Vec<NewObject> },
    Delete(GroupName),
    Fetch { source: Arc<dyn ExternalSource>, buffer: IoBuffer },
}

impl StorageWork {
    /// Bytes between memory and disk.
    fn bytes(&self) -> u64 {
        match self {
            StorageWork::Read { runs, .. } => runs.iter().map(ObjectRun::bytes).sum(),
            StorageWork::Publish { header, .. } => header.file_bytes(),
            StorageWork::Delete(_) => 0,
            StorageWork::Fetch { buffer, .. } => buffer.len() as u64,
        }
    }
}

/// A request in the queue.
pub struct Request {
    pub tag: u64,
    pub work: StorageWork,
}

/// The data under the lock.
pub struct ServiceState {
    pub catalog: Catalog,
    queue: Queue<Request>,
    activity: Activity,
    statistics: StorageStatistics,
    is_closing: bool,
}

struct ServiceShared {
    transfer: Transfer,
    deliver: Deliver,
    state: Mutex<ServiceState>,
    wake: Condvar,
}

/// The outcome of a piece of work.
struct WorkOutcome {
    result: Result<()>,
    buffer: Option<IoBuffer>,
    read_bytes: u64,
    written_bytes: u64,
}

/// Running threads. Dropping it waits for the requests under way and answers the rest with [`Error::Cancelled`].
pub struct Service {
    shared: Arc<ServiceShared>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`Error::Threads`].
    pub fn start(transfer: Transfer, catalog: Catalog, options: &StorageOptions, deliver: Deliver) -> Result<Service> {
        let limits = Limits { requests: options.requests_in_flight, bytes: options.bytes_in_flight };
        let (activity, statistics) = (Activity::default(), StorageStatistics::default());
        let state = ServiceState { catalog, queue: Queue::new(limits), activity, statistics, is_closing: false };
        let shared = Arc::new(ServiceShared { transfer, deliver, state: Mutex::new(state), wake: Condvar::new() });
        let count = options.threads.clamp(1, options.requests_in_flight.max(1));
        room_for_threads(count)?;
        let mut service = Service { shared, threads: Vec::new() };
        for index in 0..count {
            let shared = Arc::clone(&service.shared);
            let builder = thread::Builder::new().name(format!("storage-{index}")).stack_size(STACK_BYTES);
            let started = builder.spawn(move || shared.run());
            service
                .threads
                .push(started.map_err(|refused| Error::Threads { threads: count, reason: refused.to_string() })?);
        }
        Ok(service)
    }

    /// Puts a request into the queue that `make` makes, which sees the catalogue and may change it.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn submit(&self, priority: Priority, make: impl FnOnce(&mut Catalog) -> Result<Request>) -> Result<()> {
        let mut state = self.state();
        let request = make(&mut state.catalog)?;
        state.queue.push(priority, request.work.bytes(), request);
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// The data under the lock.
    pub fn state(&self) -> MutexGuard<'_, ServiceState> {
        self.shared.state()
    }

    /// Where transfers go.
    pub fn transfer(&self) -> &Transfer {
        &self.shared.transfer
    }

    /// Counters up to now.
    pub fn statistics(&self) -> StorageStatistics {
        let state = self.state();
        let mut statistics = state.statistics;
        state.activity.add_to(&mut statistics, Instant::now());
        (statistics.under_way, statistics.waiting) = (state.queue.under_way(), state.queue.waiting());
        statistics
    }

    /// For how long the oldest request has been under way.
    pub fn oldest(&self) -> Option<Duration> {
        self.state().activity.oldest(Instant::now())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let mut state = self.state();
        state.is_closing = true;
        let cancelled = state.queue.take_waiting();
        drop(state);
        self.shared.wake.notify_all();
        for request in cancelled {
            let buffer = match request.work {
                StorageWork::Read { buffer, .. } | StorageWork::Fetch { buffer, .. } => Some(buffer),
                StorageWork::Publish { .. } | StorageWork::Delete(_) => None,
            };
            (self.shared.deliver)(Completion { tag: request.tag, result: Err(Error::Cancelled), buffer, seconds: 0.0 });
        }
        // Where the callback dropped the last handle, this is one of the threads: it ends on its own.
        let own = thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

impl ServiceShared {
    fn state(&self) -> MutexGuard<'_, ServiceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out requests until the service is closed.
    fn run(&self) {
        let mut state = self.state();
        loop {
            if let Some((request, bytes)) = state.queue.begin() {
                let number = state.activity.begin(Instant::now());
                drop(state);
                let (tag, outcome) = (request.tag, self.carry_out_or_say(request.work));
                let took = self.note(&outcome, number, bytes);
                let WorkOutcome { result, buffer, .. } = outcome;
                (self.deliver)(Completion { tag, result, buffer, seconds: took.as_secs_f64() });
                state = self.state();
            } else if state.is_closing {
                return;
            } else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Counts the finished work, and makes room for further requests.
    fn note(&self, outcome: &WorkOutcome, number: u64, bytes: u64) -> Duration {
        let mut state = self.state();
        state.queue.finish(bytes);
        let took = state.activity.end(number, Instant::now());
        state.statistics.read_bytes += outcome.read_bytes;
        state.statistics.written_bytes += outcome.written_bytes;
        state.statistics.failures += u64::from(outcome.result.is_err());
        if state.queue.waiting() > 0 {
            self.wake.notify_all();
        }
        took
    }

    /// Carries out a piece of work; a panic in it is also answered, as a caller waits for an answer.
    fn carry_out_or_say(&self, work: StorageWork) -> WorkOutcome {
        panic::catch_unwind(AssertUnwindSafe(|| self.carry_out(work))).unwrap_or_else(|_| {
            let (path, source) = (self.transfer.folder.path().to_path_buf(), io::Error::other("the thread panicked"));
            let result = Err(Error::Io { path, action: "carry out a request", source });
            WorkOutcome { result, buffer: None, read_bytes: 0, written_bytes: 0 }
        })
    }

    fn carry_out(&self, work: StorageWork) -> WorkOutcome {
        match work {
            StorageWork::Read { runs, mut buffer } => {
                let read = self.transfer.read(&runs, buffer.as_bytes_mut());
                let read_bytes = *read.as_ref().unwrap_or(&0);
                self.state().statistics.reads += u64::from(read.is_ok());
                WorkOutcome { result: read.map(drop), buffer: Some(buffer), read_bytes, written_bytes: 0 }
            }
            StorageWork::Publish { header, objects } => {
                let group = header.group.clone();
                let published = self.transfer.publish(header, &objects);
                drop(objects);
                let mut state = self.state();
                let mut written_bytes = 0;
                match &published {
                    Ok(header) => {
                        state.catalog.published(&group, &header.entries);
                        state.statistics.publications += 1;
                        written_bytes = header.file_bytes();
                    }
                    Err(_) => state.catalog.forget(&group),
                }
                WorkOutcome { result: published.map(drop), buffer: None, read_bytes: 0, written_bytes }
            }
            StorageWork::Fetch { source, mut buffer } => {
                let read = source.read(&mut buffer);
                let read_bytes = *read.as_ref().unwrap_or(&0);
                self.state().statistics.fetches += u64::from(read.is_ok());
                WorkOutcome { result: read.map(drop), buffer: Some(buffer), read_bytes, written_bytes: 0 }
            }
            StorageWork::Delete(group) => {
                let result = self.transfer.delete(&group);
                let mut state = self.state();
                // A file that could not be removed is found when the directory is opened again.
                state.catalog.forget(&group);
                state.statistics.deletions += u64::from(result.is_ok());
                WorkOutcome { result, buffer: None, read_bytes: 0, written_bytes: 0 }
            }
        }
    }
}
