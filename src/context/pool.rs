//! The worker threads of a context: started with it, and waited for when its last clone is dropped.

use crate::error::{Error, Result};
use crate::store::room_for_threads;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle};

/// Worker threads that have ended once the pool is dropped, so that a program may unload the library afterwards.
pub(super) struct WorkerPool {
    /// Taken only by `drop`.
    pool: Option<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
    /// The process that has the threads: a fork of it has only the pool.
    process: u32,
    /// The threads of a fork of that process. It is not touched before the fork, so that no lock is held in the copy.
    fork: OnceLock<Option<Box<WorkerPool>>>,
}

impl WorkerPool {
    /// Starts `threads` threads.
    ///
    /// # Errors
    /// [`Error::Threads`] if memory does not allow them, or the system refuses some of them; threads already started
    /// have then ended.
    pub fn new(threads: usize) -> Result<WorkerPool> {
        room_for_threads(threads)?;
        let mut handles = Vec::with_capacity(threads);
        let built = ThreadPoolBuilder::new().num_threads(threads).spawn_handler(|worker| {
            handles.push(Builder::new().spawn(|| worker.run())?);
            Ok(())
        });
        let built = built.build();
        let failure = built.as_ref().err().map(|error| Error::Threads { threads, reason: error.to_string() });
        // Without a pool this waits for the threads that were started before one was refused.
        let process = std::process::id();
        let workers = WorkerPool { pool: built.ok(), handles, process, fork: OnceLock::new() };
        failure.map_or(Ok(workers), Err)
    }

    /// Runs `work` on a thread of the pool. A fork of the process that made the pool starts threads of its own; where
    /// the system refuses them, the calling thread does the work.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let (mut work, mut result) = (Some(work), None);
        self.run(&mut || result = work.take().map(|work| work()));
        result.expect("work that was run has a result")
    }

    /// `install` for all types of work, compiled once: otherwise rayon's code that passes work to threads would be
    /// compiled for each type.
    fn run(&self, work: &mut (dyn FnMut() + Send)) {
        let Some(pool) = &self.pool else { return work() };
        if self.process == std::process::id() {
            return pool.install(work);
        }
        let threads = || WorkerPool::new(pool.current_num_threads()).ok().map(Box::new);
        match self.fork.get_or_init(threads) {
            Some(own) => own.run(work),
            None => work(),
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // A thread of the pool cannot wait for itself; it ends when it has returned from the work that drops the pool.
        let inside = self.pool.as_ref().is_some_and(|pool| pool.current_thread_index().is_some());
        if self.process != std::process::id() {
            // A fork has the locks of the pool, and none of the threads that would open them. Nor may it drop their
            // handles: the system reuses their identifiers for the fork's own threads, which would be detached in their
            // place.
            std::mem::forget(std::mem::take(&mut self.handles));
            return std::mem::forget(self.pool.take());
        }
        drop(self.pool.take());
        if !inside {
            for handle in self.handles.drain(..) {
                let _ = handle.join(); // a panic of a worker was passed on to the call that met it
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerPool;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts the threads that have ended: a value of the thread's own is dropped when it does.
    struct Ended(Arc<AtomicUsize>);

    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    thread_local! {
        static MARK: std::cell::RefCell<Option<Ended>> = const { std::cell::RefCell::new(None) };
    }

    #[test]
    fn threads_have_ended_once_the_pool_is_dropped() {
        for threads in [1, 2, 5] {
            let ended = Arc::new(AtomicUsize::new(0));
            let pool = WorkerPool::new(threads).unwrap();
            pool.install(|| {
                rayon::broadcast(|_| MARK.with(|mark| *mark.borrow_mut() = Some(Ended(Arc::clone(&ended)))));
            });
            assert_eq!(ended.load(Ordering::SeqCst), 0);
            drop(pool);
            assert_eq!(ended.load(Ordering::SeqCst), threads);
        }
    }

    #[test]
    fn a_thread_of_the_pool_may_drop_it() {
        let pool = Arc::new(WorkerPool::new(3).unwrap());
        let (own, (done, finished)) = (Arc::clone(&pool), std::sync::mpsc::channel());
        // The last clone is dropped inside.
        let caller = std::thread::spawn(move || {
            let guest = Arc::clone(&own);
            own.pool.as_ref().unwrap().spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                drop(guest);
                done.send(()).unwrap();
            });
            drop(own);
        });
        drop(pool);
        caller.join().unwrap();
        finished.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    }
}
