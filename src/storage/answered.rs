//! A directory of objects with its answers: waited for one by one, or by their tags.
//!
//! Independent of: what the objects are.

use super::{
    Caching, Completion, DeleteRequest, GroupName, Identity, ObjectName, Priority, ReadRequest, Storage, StorageOptions,
};
use crate::error::{Error, Result};
use crate::store::IoBuffer;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The tag of deletions, which no other request uses.
const DELETION: u64 = u64::MAX;

/// Interval between calls of `quiet` while a disk does not answer.
const QUIET: Duration = Duration::from_secs(1);

/// Answers of a storage, in the order of arrival.
#[derive(Default)]
pub struct Completions {
    state: Mutex<CompletionState>,
    changed: Condvar,
}

#[derive(Default)]
struct CompletionState {
    answers: VecDeque<Completion>,
    closed: bool,
}

impl Completions {
    /// The guarded data is valid even if a holder panicked.
    fn lock(&self) -> MutexGuard<'_, CompletionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an answer.
    pub fn push(&self, answer: Completion) {
        self.lock().answers.push_back(answer);
        self.changed.notify_all();
    }

    /// Waits for the next answer; `None` once the answers are closed. While no answer comes, `quiet` is called every
    /// second.
    ///
    /// # Errors
    /// The errors of `quiet`.
    pub fn wait(&self, quiet: impl Fn() -> Result<()>) -> Result<Option<Completion>> {
        loop {
            let state = self.lock();
            let is_quiet = |state: &mut CompletionState| !state.closed && state.answers.is_empty();
            let waited =
                self.changed.wait_timeout_while(state, QUIET, is_quiet).unwrap_or_else(PoisonError::into_inner);
            let (mut state, timeout) = waited;
            if state.closed {
                return Ok(None);
            }
            if let Some(answer) = state.answers.pop_front() {
                return Ok(Some(answer));
            }
            drop(state);
            debug_assert!(timeout.timed_out());
            quiet()?;
        }
    }

    /// Waits for the answer with a tag, if several callers wait for answers.
    pub fn wait_for(&self, tag: u64) -> Completion {
        let mut state = self.lock();
        loop {
            if let Some(at) = state.answers.iter().position(|answer| answer.tag == tag) {
                return state.answers.remove(at).expect("it is there");
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that no caller waits any more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// An open directory and the answers to its requests.
pub struct AnsweredStorage {
    /// The directory.
    pub storage: Arc<Storage>,
    /// The completions of its requests.
    pub answers: Arc<Completions>,
}

impl AnsweredStorage {
    /// Opens the directory and deletes the damaged groups in it; returns their number.
    ///
    /// # Errors
    /// The errors of [`Storage::open`] and of deletions.
    pub fn open(path: &Path, identity: &Identity, caching: Caching) -> Result<(AnsweredStorage, usize)> {
        let answers = Arc::new(Completions::default());
        let told = answers.clone();
        let options = StorageOptions { caching, ..StorageOptions::default() };
        let storage = Storage::open(path, identity, options, Box::new(move |answer| told.push(answer)))?;
        let opened = AnsweredStorage { storage: Arc::new(storage), answers };
        let damaged = opened.storage.damaged();
        damaged.iter().try_for_each(|group| opened.delete(&group.group))?;
        Ok((opened, damaged.len()))
    }

    fn delete(&self, group: &GroupName) -> Result<()> {
        self.storage.delete(DeleteRequest { group: group.clone(), tag: DELETION })?;
        self.answers.wait_for(DELETION).result
    }

    /// Deletes the group of a damaged object.
    ///
    /// # Errors
    /// The errors of the deletion.
    pub fn discard(&self, object: &str) -> Result<()> {
        let known = self.storage.objects().into_iter().find(|known| known.name.as_str() == object);
        known.map_or(Ok(()), |damaged| self.delete(&damaged.group))
    }

    /// Reads an object into a buffer, and waits for it. Several threads may do so, with a tag each. The buffer stays;
    /// its contents after an error are arbitrary.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn read_now(&self, object: ObjectName, buffer: &mut Option<IoBuffer>, tag: u64) -> Result<()> {
        if self.storage.object(&object).is_none() {
            return Err(Error::InvalidArgument(format!("there is no stored object '{object}'")));
        }
        let (priority, own) = (Priority::default(), buffer.take().expect("there is a buffer"));
        self.storage.read(ReadRequest { objects: vec![object], buffer: own, tag, priority })?;
        let answer = self.answers.wait_for(tag);
        *buffer = answer.buffer;
        answer.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn answer(tag: u64) -> Completion {
        Completion { tag, result: Ok(()), buffer: None, seconds: 0.0 }
    }

    #[test]
    fn who_waits_is_asked_every_second_whether_to_go_on() {
        let (answers, asked) = (Completions::default(), AtomicUsize::new(0));
        let quiet = || {
            answers.push(answer(7));
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(answers.wait(quiet).unwrap().unwrap().tag, 7);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(matches!(answers.wait(|| Err(Error::Cancelled)), Err(Error::Cancelled)));
        answers.push(answer(8));
        assert_eq!(answers.wait_for(8).tag, 8);
        answers.close();
        assert!(answers.wait(|| Ok(())).unwrap().is_none());
    }
}
