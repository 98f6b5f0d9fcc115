//! The matrices that a solve works in, kept in the context between calls.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;

/// Matrices of arbitrary contents.
pub(crate) struct Spaces {
    /// The right-hand sides, which become the solutions.
    pub w: Matrix,
    /// The result of a product.
    pub result: Matrix,
    /// Right-hand sides that are tried again.
    pub again: Matrix,
}

impl Spaces {
    /// The spaces of an earlier call, or empty ones.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn take(ctx: &Context) -> Result<Spaces> {
        let mut kept = std::mem::take(&mut ctx.workspace().matrices).into_iter();
        let mut next = || kept.next().map_or_else(|| Matrix::zeros(0, 0, 2), Ok);
        Ok(Spaces { w: next()?, result: next()?, again: next()? })
    }

    /// Leaves them for the next call, unless a memory limit has other uses for them.
    pub fn give_back(self, ctx: &Context) {
        if ctx.memory_bytes().is_none() {
            ctx.workspace().matrices = vec![self.w, self.result, self.again];
        }
    }
}
