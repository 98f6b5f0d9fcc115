//! What a run takes of memory at most, known before it begins.
//!
//! The matrices that are there at the same time are counted step by step at every precision of the run; beside them
//! stand the largest of the library's calls, by the library's own plans, in each context that makes such calls and
//! keeps its workspace. Where there is a limit, the contexts share what it leaves, so a call whose numbers take more
//! bits than were planned for is refused rather than made.
//! Does not know: numbers of a program, but how many there are.

use crate::block::Shape;
use crate::iterate::factors::exponent;
use crate::iterate::point::Cone;
use crate::iterate::ramp;
use crate::options::SolverOptions;
use crate::problem::{Constraints, Group, Needs, Problem, Sampled, Sparse};
use serde::Serialize;
use sunzi::{Accuracy, CholeskyOptions, Context, Error, Matrix, ProductPlanOptions, Result};
use sunzi::{plan_cholesky, plan_gemm_with, plan_syrk_with, plan_trsm};

/// Bits for the range of exponents beside those that hang on the gap.
const RANGE_BITS: u32 = 64;

/// Bytes of an MPFR number beside its limbs, with what the allocator adds.
const FLOAT_BYTES: u64 = 48;

/// Bytes of an entry of a sparse matrix in all tables beside its limbs, and while they are made.
const SPARSE_ENTRY_BYTES: u64 = 280;

/// Bytes of all that is no matrix: lists, tasks, and what each context holds.
const BASE_BYTES: u64 = 64 << 10;

/// The least bytes of what a sum or a product with a vector works with, beside its result.
const PLAIN_BYTES: u64 = 128 << 10;

/// What a run takes; see [`super::Solver::plan`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryPlan {
    /// The program at the lower precision of the first iterations, and tables of sparse matrices.
    pub program_bytes: u64,
    /// Blocks: points, directions, factors, residuals, and what a step holds beside them.
    pub block_bytes: u64,
    /// The Schur complement, its factor, and what belongs to free variables.
    pub system_bytes: u64,
    /// Calls of the library.
    pub call_bytes: u64,
    /// All of them.
    pub planned_bytes: u64,
    /// Of `call_bytes`, those of a call on all threads, and of one on a single thread; with their results.
    #[serde(skip)]
    pub(super) calls: (u64, u64),
}

/// The largest of so many tasks at a time, together.
fn largest_sum(mut bytes: Vec<u64>, count: usize) -> u64 {
    bytes.sort_unstable_by(|left, right| right.cmp(left));
    bytes.into_iter().take(count).sum()
}

/// Entries of all matrices.
fn entries(sparse: &Sparse) -> usize {
    sparse.cones.iter().flat_map(|cone| &cone.entries).map(Vec::len).sum()
}

/// Sizes of a program at one precision.
struct Sizes<'a> {
    problem: &'a Problem,
    cones: &'a [Cone],
    bits: u32,
    /// Of the gap at which a run ends: near the optimum eigenvalues of X and Y differ by so many bits, and entries of
    /// the Schur complement, which has their quotients, by twice as many. Products of theirs count both factors.
    gap_bits: u32,
    threads: usize,
    /// Of each group of sparse matrices, what its Schur complement takes, and the number of positions.
    needs: Vec<Option<(Needs, usize)>>,
}

impl Sizes<'_> {
    fn matrix(&self, rows: usize, cols: usize) -> u64 {
        Matrix::bytes_for(rows, cols, self.bits)
    }

    fn block(&self, shape: Shape) -> u64 {
        let (rows, cols) = shape.stored();
        self.matrix(rows, cols)
    }

    fn floats(&self, count: usize) -> u64 {
        count as u64 * (FLOAT_BYTES + 8 * u64::from(self.bits.div_ceil(64)))
    }

    /// Tables of sparse matrices, and the numbers of a rounded program.
    fn program(&self, is_rounded: bool) -> u64 {
        let limbs = 8 * u64::from(self.bits.div_ceil(64));
        let of_group = |group: &Group| {
            let (variables, free) = (group.costs.rows(), group.free.cols());
            let own = self.matrix(variables, 1 + free);
            match &group.constraints {
                Constraints::Sampled(sampled) => {
                    let basis = |shape: &Shape| self.matrix(shape.order() / sampled.dim(), sampled.points());
                    if is_rounded { own + sampled.shapes().iter().map(basis).sum::<u64>() } else { 0 }
                }
                Constraints::Sparse(sparse) => {
                    let entries = entries(sparse);
                    let met = (sparse.cones.len() * (variables + 1)) as u64;
                    let tables = entries as u64 * (SPARSE_ENTRY_BYTES + 4 * limbs) + met * 8;
                    if is_rounded { own + tables + self.floats(entries) } else { tables }
                }
            }
        };
        self.problem.groups.iter().map(of_group).sum::<u64>()
    }

    /// Blocks that are there at the same time at most.
    fn blocks(&self) -> u64 {
        let all = self.cones.iter().map(|cone| self.block(cone.shape)).sum::<u64>();
        let at_work = |count: u64| {
            largest_sum(self.cones.iter().map(|cone| count * self.block(cone.shape)).collect(), self.threads)
        };
        // The state, the best point, factors, residuals; then what a step has beside them: products with residuals, a
        // direction, and the next point with its factors, or the predictor, the constant parts and the new blocks.
        let (held, next, corrector) = (2 + 2 + 3 + 1, 1 + 2 + 2 + 3, 1 + 2 + 2 + 2);
        let eigenvalues = (1 + 2) * all + at_work(5);
        let columns = self.problem.variables() + self.problem.free_variables();
        held * all
            + (next * all + at_work(2)).max(corrector * all + at_work(2)).max(eigenvalues)
            + 24 * self.matrix(columns, 1)
    }

    /// The equation for the direction, and what is there while it is formed.
    fn system(&self) -> u64 {
        let (groups, free) = (&self.problem.groups, self.problem.free_variables());
        let variables = self.problem.variables();
        let own = groups.iter().map(|group| {
            let variables = group.costs.rows();
            self.matrix(variables, variables) + self.matrix(variables, free)
        });
        let forming = groups.iter().zip(&self.needs).map(|(group, needs)| match (&group.constraints, needs) {
            (Constraints::Sampled(sampled), _) => self.forming_sampled(sampled),
            // The columns, which the complement is made of.
            (_, Some((needs, _))) => needs.columns + largest_sum(needs.tasks.clone(), self.threads),
            (_, None) => 0,
        });
        let beside = if free == 0 { 0 } else { self.matrix(variables, free) + 2 * self.matrix(free, free) };
        own.sum::<u64>() + beside.max(largest_sum(forming.collect(), self.threads))
    }

    fn forming_sampled(&self, sampled: &Sampled) -> u64 {
        let (variables, width) = (sampled.variables(), sampled.dim() * sampled.points());
        let rows = sampled.shapes().iter().map(|shape| shape.order()).max().unwrap_or(0);
        let grams = 2 * self.floats(width * width) + self.matrix(width, width) + self.matrix(rows, width);
        // The sum, a part and the new sum; or the complement beside its factor.
        2 * self.matrix(variables, variables) + grams
    }

    /// The largest of those calls that make nothing but their result: sums, and products with sparse matrices.
    fn plain_call(&self) -> u64 {
        let block = self.cones.iter().map(|cone| self.block(cone.shape)).max().unwrap_or(0);
        let columns = self.problem.variables() + self.problem.free_variables();
        let sparse = self.needs.iter().flatten().map(|(needs, positions)| {
            let task = needs.tasks.iter().copied().max().unwrap_or(0);
            task.max(self.matrix(columns.max(*positions), 8))
        });
        2 * block + self.matrix(columns, 16) + sparse.max().unwrap_or(0) + PLAIN_BYTES
    }

    /// The largest call in a context, with its result: on all threads, where tasks that are alone run, or on a single
    /// one.
    fn call(&self, ctx: &Context, is_single: bool) -> Result<u64> {
        let plan = Calls { ctx, bits: self.bits, range_bits: 2 * self.gap_bits + RANGE_BITS };
        let system = Calls { range_bits: 4 * self.gap_bits + RANGE_BITS, ..plan };
        let mut most = self.plain_call();
        let free = self.problem.free_variables();
        if free > 0 {
            most = most.max(system.syrk(self.problem.variables(), free)?).max(system.cholesky(free)?);
        }
        let runs_here = |tasks: usize| self.threads == 1 || (tasks > 1) == is_single;
        for cone in self.cones {
            // Both sides of a block are tasks, so there are at least two for its factors.
            if let Shape::Dense(order) = cone.shape {
                let calls = [
                    plan.cholesky(order)?,
                    plan.trsm(order, order)?,
                    plan.syrk(order, order)?,
                    plan.gemm(order, order, 2 * order)?,
                ];
                let own = calls.into_iter().fold(0, u64::max);
                most = if is_single || runs_here(self.cones.len()) { most.max(own) } else { most };
            }
        }
        for (group, needs) in self.problem.groups.iter().zip(&self.needs) {
            let variables = group.costs.rows();
            if let Some((needs, _)) = needs {
                for &(order, width) in &needs.products {
                    let own = plan.gemm(order, width, order)?;
                    most = if is_single || runs_here(needs.tasks.len()) { most.max(own) } else { most };
                }
            }
            if !runs_here(self.problem.groups.len()) {
                continue;
            }
            most = most.max(system.cholesky(variables)?);
            if free > 0 {
                most = most.max(system.trsm(variables, free)?);
            }
            if let Constraints::Sampled(sampled) = &group.constraints {
                let (points, dim) = (sampled.points(), sampled.dim());
                for shape in sampled.shapes() {
                    let (rows, order) = (shape.order(), shape.order() / dim);
                    most = most.max(plan.gemm(rows, points, order)?).max(plan.syrk(rows, dim * points)?);
                    most = most.max(plan.gemm(order, order, points)?).max(plan.gemm(order, points, order)?);
                }
            }
        }
        Ok(most)
    }
}

/// Plans of the library's calls at one precision, entry by entry.
#[derive(Clone, Copy)]
struct Calls<'c> {
    ctx: &'c Context,
    bits: u32,
    range_bits: u32,
}

impl Calls<'_> {
    /// With room for the range of exponents, or without where the kernel does not reach so far.
    fn with_range(&self, plan: impl Fn(Option<u32>) -> Result<u64>) -> Result<u64> {
        match plan(Some(self.range_bits)) {
            Err(Error::Precision { .. }) => plan(None),
            other => other,
        }
    }

    fn syrk(&self, rows: usize, cols: usize) -> Result<u64> {
        self.with_range(|range| {
            let options = ProductPlanOptions::new().accuracy(Accuracy::Entrywise).range_bits(range);
            Ok(plan_syrk_with(self.ctx, (rows, cols), self.bits, &options)?.planned_bytes)
        })
    }

    fn gemm(&self, rows: usize, cols: usize, contracted: usize) -> Result<u64> {
        self.with_range(|range| {
            let options = ProductPlanOptions::new().accuracy(Accuracy::Entrywise).range_bits(range);
            Ok(plan_gemm_with(self.ctx, (rows, cols), contracted, self.bits, &options)?.planned_bytes)
        })
    }

    fn cholesky(&self, order: usize) -> Result<u64> {
        self.with_range(|range| {
            let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise).range_bits(range.unwrap_or(0));
            Ok(plan_cholesky(self.ctx, order, self.bits, &options)?.planned_bytes)
        })
    }

    fn trsm(&self, order: usize, columns: usize) -> Result<u64> {
        // Its plan takes pivots near the norms of their rows; smaller ones take more bits.
        self.with_range(|range| {
            let bits = self.bits + range.unwrap_or(0);
            Ok(plan_trsm(self.ctx, (order, columns), bits, Accuracy::Entrywise)?.planned_bytes)
        })
    }
}

impl MemoryPlan {
    /// The plan of a run in `ctx`, whatever its limit.
    ///
    /// # Errors
    /// Those of the library's plans and contexts.
    pub(super) fn new(ctx: &Context, problem: &Problem, cones: &[Cone], options: &SolverOptions) -> Result<MemoryPlan> {
        let (all, threads) = (ctx.with_memory_bytes(None), ctx.threads());
        let single = Context::builder().threads(1);
        let single = match ctx.forced_kernel() {
            Some(kernel) => single.kernel(kernel.name()).build()?,
            None => single.build()?,
        };
        let full = problem.precision_bits;
        let mut stages = vec![full];
        if options.ramp {
            stages.clear();
            let mut next = Some(ramp::first_bits(full));
            while let Some(bits) = next {
                stages.push(bits);
                next = ramp::next_bits(bits, full);
            }
        }
        let gap_bits = -exponent(&options.duality_gap_threshold).clamp(-4096, 0);
        let sizes = |bits: u32| -> Result<Sizes<'_>> {
            let needs = problem.groups.iter().map(|group| match &group.constraints {
                Constraints::Sampled(_) => Ok(None),
                Constraints::Sparse(sparse) => sparse.needs(bits).map(Some),
            });
            let needs = needs.collect::<Result<_>>()?;
            Ok(Sizes { problem, cones, bits, gap_bits: gap_bits as u32, threads, needs })
        };
        let mut largest: Option<MemoryPlan> = None;
        for bits in stages {
            let stage = sizes(bits)?;
            let program_bytes = stage.program(bits != full) + BASE_BYTES;
            let (block_bytes, system_bytes) = (stage.blocks(), stage.system());
            let on_all = stage.call(&all, false)?;
            let on_one = if threads == 1 { 0 } else { stage.call(&single, true)? };
            let call_bytes = on_all + threads as u64 * on_one;
            let planned_bytes = program_bytes + block_bytes + system_bytes + call_bytes;
            let calls = (on_all, on_one);
            let plan = MemoryPlan { program_bytes, block_bytes, system_bytes, call_bytes, planned_bytes, calls };
            if largest.is_none_or(|known| known.planned_bytes < planned_bytes) {
                largest = Some(plan);
            }
        }
        largest.ok_or_else(|| Error::InvalidArgument("a run without a precision".into()))
    }

    /// The refusal of a call as one of the run: with the limit under which the call would have had enough.
    pub(super) fn restate(&self, error: Error, limit_bytes: u64, threads: usize) -> Error {
        let Error::MemoryLimit { limit_bytes: had, minimum_bytes } = error else { return error };
        let more = minimum_bytes.saturating_sub(had).saturating_mul(threads as u64 + 1);
        Error::MemoryLimit { limit_bytes, minimum_bytes: limit_bytes.saturating_add(more) }
    }

    /// The limits of a call on all threads and of one on a single thread, under a limit of the whole run.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] where the plan is larger.
    pub(super) fn limits(&self, limit_bytes: u64, threads: usize) -> Result<(u64, u64)> {
        let Some(left) = limit_bytes.checked_sub(self.planned_bytes) else {
            return Err(Error::MemoryLimit { limit_bytes, minimum_bytes: self.planned_bytes });
        };
        let share = left / (threads as u64 + 1);
        Ok((self.calls.0 + share, self.calls.1 + share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_leaves_is_shared_and_refusals_are_those_of_the_run() -> Result<()> {
        let parts = (20, 40, 10, 30);
        let plan = MemoryPlan {
            program_bytes: parts.0,
            block_bytes: parts.1,
            system_bytes: parts.2,
            call_bytes: parts.3,
            planned_bytes: 100,
            calls: (10, 20),
        };
        assert_eq!((plan.limits(100, 2)?, plan.limits(131, 2)?), ((10, 20), (20, 30)));
        let refused = plan.limits(99, 2).unwrap_err();
        assert!(matches!(refused, Error::MemoryLimit { limit_bytes: 99, minimum_bytes: 100 }));
        // Seven bytes more in a call are as many for each of three contexts.
        let call = Error::MemoryLimit { limit_bytes: 20, minimum_bytes: 27 };
        let restated = plan.restate(call, 131, 2);
        assert!(matches!(restated, Error::MemoryLimit { limit_bytes: 131, minimum_bytes: 152 }), "{restated}");
        assert!(matches!(plan.restate(Error::Cancelled, 131, 2), Error::Cancelled));
        assert_eq!((largest_sum(vec![3, 9, 4], 2), largest_sum(vec![3], 2), largest_sum(vec![], 2)), (13, 3, 0));
        Ok(())
    }
}
