//! What the ranks of a solve agree on between its steps; a process alone agrees with itself.

use crate::comm::{Reduction, Transport, agreed};
use crate::error::Result;

/// The ranks that take the steps of a solve together; `None` for a process alone.
#[derive(Clone, Copy)]
pub(crate) struct Agreement<'a>(pub Option<&'a dyn Transport>);

impl Agreement<'_> {
    /// A value that every rank has, or on every rank the error of the first that has not. Collective.
    ///
    /// # Errors
    /// As [`agreed`].
    pub fn on<T>(&self, made: Result<T>) -> Result<T> {
        match self.0 {
            Some(world) => agreed(world, made),
            None => made,
        }
    }

    /// The largest of all ranks' numbers. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn largest(&self, number: u64) -> Result<u64> {
        let mut words = [number];
        if let Some(world) = self.0 {
            world.all_reduce(Reduction::Max, &mut words)?;
        }
        Ok(words[0])
    }

    /// The smallest of all ranks' numbers. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn smallest(&self, number: u64) -> Result<u64> {
        self.largest(!number).map(|largest| !largest)
    }
}
