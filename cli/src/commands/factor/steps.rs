//! The steps of a task, each within the memory that the limit leaves.

use crate::session::Session;
use std::cell::Cell;
use sunzi::{Context, ContextBuilder, Matrix, Result};
use sunzi_session::engine::{Engine, limited};

/// Runs the steps of a task, each in a context of its own: the results of a step count against the memory limit of the
/// next, and the memory that it kept for itself is given back.
pub struct Steps<'a> {
    engine: &'a Engine,
    builder: ContextBuilder,
    /// Bytes of the matrices that are held during a step.
    held_bytes: Cell<u64>,
}

impl<'a> Steps<'a> {
    /// The steps of a command that holds matrices of `held_bytes` bytes.
    ///
    /// # Errors
    /// The errors of the session's context.
    pub fn new(session: &Session, engine: &'a Engine, held_bytes: u64) -> Result<Steps<'a>> {
        Ok(Steps { engine, builder: session.context(engine)?, held_bytes: Cell::new(held_bytes) })
    }

    /// Counts a matrix that is held from now on.
    pub fn hold(&self, matrix: &Matrix) {
        self.held_bytes.set(self.held_bytes.get() + matrix.bytes());
    }

    /// Runs a step within the memory that the limit leaves.
    pub fn run<T>(&self, step: impl FnOnce(&Context) -> Result<T>) -> Result<T> {
        let budget = self.engine.budget(self.held_bytes.get());
        let (builder, restate) = limited(self.builder.clone(), budget);
        step(&builder.build()?).map_err(restate)
    }
}
