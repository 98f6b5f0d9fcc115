//! The order in which a node plans its tasks: the task that needs the fewest further bytes comes next.
//!
//! Algorithm 1 of the source, kept up to date as objects come and go instead of computed anew: objects that a planned
//! task brings here count as here for the tasks after it. Cost: logarithmic for each object of a task and each task of
//! an object.

use super::{ObjectId, SizedObject, TaskId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// A task that is not planned yet.
#[derive(Clone, Debug)]
struct Waiting {
    inputs: Vec<ObjectId>,
    missing_bytes: u64,
}

/// Tasks of one node that can be planned, by the bytes that are missing for each.
#[derive(Clone, Debug, Default)]
pub struct TaskOrder {
    tasks: FxHashMap<TaskId, Waiting>,
    by_missing: BTreeSet<(u64, TaskId)>,
    readers: FxHashMap<ObjectId, FxHashSet<TaskId>>,
    bytes: FxHashMap<ObjectId, u64>,
    here: FxHashSet<ObjectId>,
}

impl TaskOrder {
    /// Adds a task with its inputs; an input that is named twice counts once.
    pub fn add(&mut self, task: TaskId, inputs: impl IntoIterator<Item = SizedObject>) {
        let mut waiting = Waiting { inputs: Vec::new(), missing_bytes: 0 };
        for SizedObject { object, bytes } in inputs {
            if self.readers.entry(object).or_default().insert(task) {
                waiting.inputs.push(object);
                self.bytes.insert(object, bytes);
                waiting.missing_bytes += if self.here.contains(&object) { 0 } else { bytes };
            }
        }
        self.by_missing.insert((waiting.missing_bytes, task));
        let known = self.tasks.insert(task, waiting);
        assert!(known.is_none(), "{task:?} is added once");
    }

    /// Records that an object is in memory, or being read.
    pub fn came(&mut self, object: ObjectId) {
        if self.here.insert(object) {
            self.adjust(object, |missing, bytes| missing - bytes);
        }
    }

    /// Records that an object is not in memory any more.
    pub fn left(&mut self, object: ObjectId) {
        if self.here.remove(&object) {
            self.adjust(object, |missing, bytes| missing + bytes);
        }
    }

    fn adjust(&mut self, object: ObjectId, change: impl Fn(u64, u64) -> u64) {
        let Some(readers) = self.readers.get(&object) else { return };
        let bytes = self.bytes[&object];
        for &task in readers {
            let waiting = self.tasks.get_mut(&task).expect("a reader waits");
            self.by_missing.remove(&(waiting.missing_bytes, task));
            waiting.missing_bytes = change(waiting.missing_bytes, bytes);
            self.by_missing.insert((waiting.missing_bytes, task));
        }
    }

    /// The task that needs the fewest further bytes (the oldest of several), and these bytes.
    pub fn first(&self) -> Option<(TaskId, u64)> {
        self.by_missing.first().map(|&(missing, task)| (task, missing))
    }

    /// All tasks in that order.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, u64)> + '_ {
        self.by_missing.iter().map(|&(missing, task)| (task, missing))
    }

    /// Removes a task; returns `false` if it is not in the list.
    pub fn remove(&mut self, task: TaskId) -> bool {
        let Some(waiting) = self.tasks.remove(&task) else { return false };
        self.by_missing.remove(&(waiting.missing_bytes, task));
        for object in waiting.inputs {
            let readers = self.readers.get_mut(&object).expect("the task was a reader");
            readers.remove(&task);
            if readers.is_empty() {
                self.readers.remove(&object);
                self.bytes.remove(&object);
            }
        }
        true
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
