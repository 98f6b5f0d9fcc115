//! Tasks that are added during a computation: the selection of needed tasks, their nodes, the order in which a node
//! plans its own tasks, and the end of an object's use.
//!
//! A task reads objects, updates others and creates others. Tasks that write an object run in the order in which they
//! were added, and a task that reads one runs after those that were added before it; once an object is read it does not
//! change any more. No task runs before its result is [wanted](TaskGraph::want). Promise: nothing here does I/O, owns a
//! thread or reads a clock; the same calls give the same answers, and no call goes over all tasks. Depends on: ids and
//! bytes. Independent of: the computations of tasks, the amount of memory. Source: Saule, Aktulga, Yang, Ng,
//! Catalyurek, "An Out-of-Core Task-based Middleware for Data-Intensive Scientific Computing", section 3.

mod machine;
#[cfg(test)]
mod machine_tests;
mod order;
mod place;
mod tasks;
#[cfg(test)]
mod tests;

pub use machine::{CopySource, GraphAction, Machine, NodeOptions, NodeState, TooSmall};
pub use order::TaskOrder;
pub use place::Placement;
pub use tasks::{Changes, TaskGraph, TaskSpec};

/// An object: immutable once it is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ObjectId(pub u64);

/// An object and its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizedObject {
    /// The object.
    pub object: ObjectId,
    /// Its bytes.
    pub bytes: u64,
}

/// A task, numbered in the order of adding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TaskId(pub u64);
