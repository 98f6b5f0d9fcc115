//! The properties of a verb that a batch needs: the sizes of a problem, its plan, the single call.

use crate::context::Context;
use crate::error::Result;
pub(super) use crate::kernels::problem_lanes::PROBLEMS;
use crate::matrix::Matrix;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::together::LanesDone;

/// The sizes of a problem: its plan and its work follow from them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ProblemShape {
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Terms of an entry.
    pub depth: usize,
}

/// A verb on one problem at a time.
pub(super) trait Verb: Sync {
    /// The name of the verb, such as `syrk_batch`.
    const OPERATION: &'static str;
    /// Operands.
    type Problem<'p>: Send + Sync;
    /// Where a result goes.
    type Output<'p>: Send;
    /// A result by itself.
    type Result;

    /// Precision of all results.
    fn precision_bits(&self) -> u32;
    /// Accuracy promised for each entry.
    fn accuracy(&self) -> Accuracy;
    /// Whether plans from only the sizes cover the memory of the problems.
    fn plans_are_bounds(&self) -> bool {
        self.accuracy() == Accuracy::Norm
    }
    /// The sizes of a problem.
    fn shape(&self, problem: &Self::Problem<'_>) -> ProblemShape;
    /// Bytes of the single call, the result included.
    fn plan(&self, ctx: &Context, shape: ProblemShape) -> Result<u64>;
    /// Bytes in addition to the results that problems of this shape take side by side, where this machine has such a
    /// path.
    fn together_bytes(&self, _ctx: &Context, _shape: ProblemShape) -> Option<u64> {
        None
    }
    /// Up to [`PROBLEMS`] problems of one shape side by side; those that are not done are left to single calls.
    fn run_together(&self, _ctx: &Context, _items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone>
    where
        Self: Sized,
    {
        Ok(LanesDone::default())
    }
    /// The single call.
    fn run(&self, ctx: &Context, problem: &Self::Problem<'_>, output: &mut Self::Output<'_>) -> Result<CallFigures>;
}

/// The figures of a single call.
pub(super) struct CallFigures {
    pub planned_bytes: u64,
    pub direct: bool,
    /// The accuracy that holds for each entry, and the bits that it took beyond those of norms.
    pub accuracy: Accuracy,
    pub range_bits: u32,
}

/// One problem and the place of its result.
pub(super) struct Item<'p, 'r, V: Verb> {
    pub shape: ProblemShape,
    pub number: usize,
    pub problem: V::Problem<'p>,
    pub output: V::Output<'r>,
    pub outcome: Result<()>,
}

impl ProblemShape {
    /// Approximate amount of work.
    pub fn work(&self) -> u128 {
        self.rows as u128 * self.cols as u128 * (self.depth as u128 + 8)
    }

    /// Whether lanes of AVX2 gain on single calls of such a product: from 31 terms and 16 x 16 entries on, the shape
    /// that gained where 20 terms and 10 x 10 entries lost.
    pub fn is_large_product(&self) -> bool {
        self.depth >= 31 && self.rows.min(self.cols) >= 16
    }

    /// Bytes of the result.
    pub fn result_bytes(&self, precision_bits: u32) -> u64 {
        Matrix::bytes_for(self.rows, self.cols, precision_bits)
    }
}
