//! The private memory of a worker during a product.

use crate::context::WorkerSpace;
use crate::error::Result;
use crate::kernels::IntegerBlock;

/// The private memory of one worker during a call.
pub(crate) struct Space<'a> {
    /// Scratch for the kernel.
    pub scratch: &'a mut [u64],
    /// The integers of one block.
    pub integers: &'a mut IntegerBlock,
}

/// The private memory of each of `workers`: integers of `limbs` limbs, and `scratch_words` words of scratch.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(crate) fn worker_spaces(workers: &mut [WorkerSpace], limbs: usize, scratch_words: usize) -> Result<Vec<Space<'_>>> {
    let mut spaces = Vec::with_capacity(workers.len());
    for WorkerSpace { scratch, integers } in workers {
        if integers.limbs != limbs {
            *integers = IntegerBlock::new(limbs);
        }
        spaces.push(Space { scratch: scratch.words(scratch_words)?, integers });
    }
    Ok(spaces)
}
