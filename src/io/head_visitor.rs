//! Visitors of the heads of a matrix file while it is checked. Independent of: files.

use crate::error::Result;
use crate::math::float::{FloatRef, Head};

/// A visitor of the heads of all stored entries, in two passes of the same order.
pub trait HeadVisitor {
    /// Receives an entry in the first pass, in which its head may be malformed.
    ///
    /// # Errors
    /// An error ends the pass.
    fn first(&mut self, row: usize, col: usize, head: Head) -> Result<()>;

    /// Receives an entry in the second pass, in which it is a valid number.
    ///
    /// # Errors
    /// An error ends the pass.
    fn second(&mut self, row: usize, col: usize, number: FloatRef<'_>) -> Result<()>;
}

/// A visitor of only the first walk.
pub(super) struct FirstWalk<F>(pub F);

impl<F: FnMut(usize, usize, Head) -> Result<()>> HeadVisitor for FirstWalk<F> {
    fn first(&mut self, row: usize, col: usize, head: Head) -> Result<()> {
        (self.0)(row, col, head)
    }

    fn second(&mut self, _row: usize, _col: usize, _number: FloatRef<'_>) -> Result<()> {
        Ok(())
    }
}
