//! Memory that a context keeps between calls.

use crate::context::MemoryBudget;
use crate::kernels::IntegerBlock;
use crate::math::pivot::RowWeight;
use crate::matrix::Matrix;
use crate::store::Buffer;

/// Memory kept between calls.
#[derive(Default)]
pub struct Workspace {
    /// Planes of the operands, batch by batch.
    pub operands: Buffer,
    /// Planes of the product, all primes.
    pub products: Buffer,
    /// The private memory of each worker.
    pub workers: Vec<WorkerSpace>,
    /// Scale shifts of the columns of the left operand.
    pub left_shifts: Vec<i64>,
    /// Scale shifts of the columns of the right operand.
    pub right_shifts: Vec<i64>,
    /// Matrices that solves work in, of arbitrary contents.
    pub matrices: Vec<Matrix>,
    /// Right-hand sides and solutions of a rank as whole columns, of arbitrary contents.
    pub columns: Vec<Matrix>,
    /// A piece of a streamed factor, and its message buffers, all of arbitrary contents.
    pub piece: Matrix,
    /// See [`Workspace::piece`].
    pub buffers: [Vec<u64>; 2],
    /// Running sums of the rows of a factorisation, and their initial values.
    pub weights: [Vec<RowWeight>; 2],
}

/// Memory of one worker, kept between calls.
pub struct WorkerSpace {
    /// Scratch for the kernel.
    pub scratch: Buffer,
    /// The integers of one block.
    pub integers: IntegerBlock,
}

impl WorkerSpace {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.scratch.bytes() + self.integers.magnitudes.capacity() as u64 * 8
    }
}

/// The part of the memory kept between calls that a call uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkspaceNeeds {
    /// Bytes of the first window.
    pub operand_bytes: u64,
    /// Bytes of the second window.
    pub product_bytes: u64,
    /// Workers.
    pub workers: usize,
    /// Bytes of each worker.
    pub worker_bytes: u64,
    /// Bytes of the whole call, including those above.
    pub planned_bytes: u64,
}

impl WorkspaceNeeds {
    /// Bytes that windows and scratch of this size take beyond the needs of a later call, where both lie in the memory
    /// kept between calls.
    pub(crate) fn beyond(&self, later: &WorkspaceNeeds) -> u64 {
        let workers = |needs: &WorkspaceNeeds| (needs.workers as u64).saturating_mul(needs.worker_bytes);
        self.operand_bytes.saturating_sub(later.operand_bytes)
            + self.product_bytes.saturating_sub(later.product_bytes)
            + workers(self).saturating_sub(workers(later))
    }
}

impl Workspace {
    /// Releases the memory where the bytes kept beyond `needs` would break the limit; shifts stay.
    pub(crate) fn trim(&mut self, memory: MemoryBudget, needs: &WorkspaceNeeds) {
        let excess = |held: u64, needed: u64| held.saturating_sub(needed);
        let matrices = self.matrices.iter().chain(&self.columns).chain([&self.piece]);
        let mut kept = matrices.map(Matrix::bytes).sum::<u64>()
            + self.buffers.iter().map(|buffer| buffer.capacity() as u64 * 8).sum::<u64>()
            + excess(self.operands.bytes(), needs.operand_bytes)
            + excess(self.products.bytes(), needs.product_bytes);
        for (index, worker) in self.workers.iter().enumerate() {
            kept += excess(worker.bytes(), if index < needs.workers { needs.worker_bytes } else { 0 });
        }
        if memory.admit(needs.planned_bytes.saturating_add(kept)).is_err() {
            self.give_back();
        }
    }

    /// Releases all of it except shifts and sums of rows.
    pub(crate) fn give_back(&mut self) {
        *self = Workspace {
            left_shifts: std::mem::take(&mut self.left_shifts),
            right_shifts: std::mem::take(&mut self.right_shifts),
            weights: std::mem::take(&mut self.weights),
            ..Workspace::default()
        };
    }

    /// Extends the memory to `workers` workers.
    pub fn reserve_workers(&mut self, workers: usize) {
        let space = || WorkerSpace { scratch: Buffer::default(), integers: IntegerBlock::new(0) };
        self.workers.resize_with(self.workers.len().max(workers), space);
    }

    /// Bytes held in windows and by workers.
    pub fn bytes(&self) -> u64 {
        self.operands.bytes() + self.products.bytes() + self.workers.iter().map(WorkerSpace::bytes).sum::<u64>()
    }
}
