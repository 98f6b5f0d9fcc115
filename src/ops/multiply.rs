//! The plane products of one batch of primes on one pair of bands and one chunk of rows.

use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::{PlaneEngine, PlaneProduct};
use crate::ops::planes::Space;
use crate::plan::{BLOCK_WORDS, BlockGrid, plan_jobs};
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

struct Task<'w> {
    prime: usize,
    blocks: Range<usize>,
    words: &'w mut [u64],
}

impl Multiplication<'_> {
    /// Runs all jobs of the batch; `products` is the product window of all primes.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn run(&self, products: &mut [u64], spaces: &mut [Space<'_>], meter: &Meter<'_>) -> Result<()> {
        let plane = self.grid.words();
        let list = plan_jobs(self.primes.len(), self.grid.len(), spaces.len());
        let mut queues = (0..spaces.len()).map(|_| VecDeque::new()).collect::<Vec<_>>();
        let mut rest = &mut products[self.primes.start * plane..self.primes.end * plane];
        for (job, &worker) in list.jobs.into_iter().zip(&list.assignment.worker) {
            let (words, after) = rest.split_at_mut(job.blocks.len() * BLOCK_WORDS);
            rest = after;
            queues[worker].push_back(Task { prime: job.prime, blocks: job.blocks, words });
        }
        drive::drain(spaces, queues, |space, task| {
            let operands = &self.operands[task.prime * self.plane_words..][..self.plane_words];
            let units = (self.rows * task.blocks.len()) as u64;
            let product = PlaneProduct {
                x: &operands[self.left.clone()],
                y: &operands[self.right.clone()],
                rows: self.rows,
                grid: self.grid,
                blocks: task.blocks,
                accumulate: self.accumulate,
            };
            self.engine.multiply(self.primes.start + task.prime, &product, task.words, space.scratch);
            meter.add("product", units)
        })
    }
}
