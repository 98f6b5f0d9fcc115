//! Threads that run kernels.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use sunzi::advanced::runtime::Ticket;
use sunzi::advanced::runtime::graph::TaskId;
use sunzi::advanced::store::IoBuffer;
use sunzi::{Error, Result};

/// The objects of a task, in the order in which it names them.
pub struct Operands<'a> {
    /// The objects that it reads.
    pub reads: Vec<&'a [u64]>,
    /// The objects that it updates, then those that it creates, which begin as zeros.
    pub writes: Vec<&'a mut [u64]>,
}

/// The computation of a task.
pub type Kernel = Box<dyn FnOnce(Operands<'_>) -> Result<()> + Send>;

/// An object, and how many of the words of its buffer it has.
pub(super) struct Held {
    pub buffer: Arc<IoBuffer>,
    pub words: usize,
}

/// A task that can run.
pub(super) struct Job {
    pub node: usize,
    pub ticket: Ticket,
    pub task: TaskId,
    pub kernel: Kernel,
    pub reads: Vec<Held>,
    pub writes: Vec<Held>,
}

/// A task that has run.
pub(super) struct Ended {
    pub node: usize,
    pub ticket: Ticket,
    pub task: TaskId,
    pub writes: Vec<Held>,
    pub result: Result<()>,
    pub seconds: f64,
}

/// The threads of one node.
pub(super) struct Workers {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// # Errors
    /// [`Error::Threads`].
    pub fn start(threads: usize, ended: impl Fn(Ended) + Send + Clone + 'static) -> Result<Workers> {
        let (jobs, waiting) = channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut workers = Workers { jobs: Some(jobs), threads: Vec::new() };
        for _ in 0..threads {
            let (waiting, ended) = (Arc::clone(&waiting), ended.clone());
            let thread = std::thread::Builder::new().name("laf worker".into()).spawn(move || {
                while let Some(job) = next(&waiting) {
                    ended(job.run());
                }
            });
            workers.threads.push(thread.map_err(|error| Error::Threads { threads, reason: error.to_string() })?);
        }
        Ok(workers)
    }

    /// Runs a task on the next thread that is free.
    pub fn run(&self, job: Job) {
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job).is_ok());
        assert_eq!(sent, Some(true), "threads end after the last job");
    }
}

fn next(waiting: &Mutex<Receiver<Job>>) -> Option<Job> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Job {
    fn run(self) -> Ended {
        let Job { node, ticket, task, kernel, reads, mut writes } = self;
        let start = Instant::now();
        let result = writes.iter_mut().try_for_each(Held::make_own).and_then(|()| {
            let reads = reads.iter().map(|one| &one.buffer.words()[..one.words]).collect();
            let writes = writes.iter_mut().filter_map(Held::own).collect();
            let run = std::panic::AssertUnwindSafe(|| kernel(Operands { reads, writes }));
            let caught = std::panic::catch_unwind(run);
            caught.unwrap_or_else(|_| Err(Error::InvalidArgument("a task has panicked".to_string())))
        });
        drop(reads);
        Ended { node, ticket, task, writes, result, seconds: start.elapsed().as_secs_f64() }
    }
}

impl Held {
    /// The object, where no other task reads the buffer.
    fn own(&mut self) -> Option<&mut [u64]> {
        let words = self.words;
        Arc::get_mut(&mut self.buffer).map(|buffer| &mut buffer.words_mut()[..words])
    }

    /// Copies the object where others still read the buffer, as a disk does that is writing an older version.
    fn make_own(&mut self) -> Result<()> {
        if Arc::get_mut(&mut self.buffer).is_none() {
            let mut copy = IoBuffer::new(8 * self.words)?;
            copy.words_mut()[..self.words].copy_from_slice(&self.buffer.words()[..self.words]);
            self.buffer = Arc::new(copy);
        }
        Ok(())
    }
}
