//! The plane products of one batch of primes on one pair of bands and one chunk of rows.

use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::{PlaneEngine, PlaneProduct};
use crate::ops::product::space::Space;
use crate::plan::{BlockGrid, Job};
use std::collections::VecDeque;
use std::ops::Range;

/// One batch of plane products.
pub(crate) struct Multiplication<'a> {
    /// Does the products.
    pub engine: &'a dyn PlaneEngine,
    /// Primes of the batch.
    pub primes: Range<usize>,
    /// Shape of the product planes.
    pub grid: BlockGrid,
    /// Rows of this chunk.
    pub rows: usize,
    /// The operand window.
    pub operands: &'a [u64],
    /// Words of one operand plane in the window.
    pub plane_words: usize,
    /// Words of the left panels within an operand plane.
    pub left: Range<usize>,
    /// Words of the right panels within an operand plane.
    pub right: Range<usize>,
    /// Whether to add to the product window.
    pub accumulate: bool,
}

/// A job and the words it fills.
pub(crate) struct Task<'w> {
    /// The job.
    pub job: Job,
    /// The words of its blocks.
    pub words: &'w mut [u64],
}

impl Multiplication<'_> {
    /// Runs the tasks, a queue for each worker.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn run(&self, queues: Vec<VecDeque<Task<'_>>>, spaces: &mut [Space<'_>], meter: &Meter<'_>) -> Result<()> {
        drive::parallel_queues(spaces, queues, |space, Task { job, words }| {
            let units = (self.rows * job.blocks.len()) as u64;
            if self.rows == 0 {
                if !self.accumulate {
                    words.fill(0);
                }
                return Ok(());
            }
            let operands = &self.operands[job.prime * self.plane_words..][..self.plane_words];
            let product = PlaneProduct {
                x: &operands[self.left.clone()],
                y: &operands[self.right.clone()],
                rows: self.rows,
                grid: self.grid,
                blocks: job.blocks,
                accumulate: self.accumulate,
            };
            self.engine.multiply(self.primes.start + job.prime, &product, words, space.scratch);
            meter.add("product", units)
        })
    }
}
