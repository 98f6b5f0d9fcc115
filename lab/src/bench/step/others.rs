//! A step without our library: a baseline of products computes Q, and MPFR loops do the rest.

use super::ours::{Alone, CHECKED_BLOCKS, StepSide};
use super::{BenchStep, LONG_SECONDS, SOLVES, StageSeconds, timed};
use crate::baselines::{Operation, Problem};
use crate::bench::residual::Residual;
use crate::bench::sides::TimedBaseline;
use sunzi::comm::{Reduction, Transport, agreed};
use sunzi::{Matrix, Result};

/// The loops for all but Q.
const LOOPS: &str = "mpfr";

/// The stages that are one problem: the root has them.
struct Whole {
    product: TimedBaseline,
    factor: TimedBaseline,
    solves: Vec<TimedBaseline>,
}

/// Another side on one rank.
pub(super) struct Others<'a> {
    /// The baseline that computes Q.
    pub name: &'static str,
    config: &'a BenchStep,
    world: &'a dyn Transport,
    /// The triangular systems of this rank's blocks.
    blocks: Vec<TimedBaseline>,
    whole: Option<Whole>,
    pub runs: Vec<StageSeconds>,
    /// Whether all answers are right; known after [`Others::judge`].
    pub right: bool,
}

impl<'a> Others<'a> {
    /// Copies the operands into the side's own numbers. Collective.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`] for problems that the baselines do not take.
    pub fn new(
        name: &'static str,
        config: &'a BenchStep,
        world: &'a dyn Transport,
        ours: &StepSide<'_>,
        alone: Option<&Alone>,
        threads: usize,
    ) -> Result<Others<'a>> {
        let own_threads = ours.ctx.threads();
        let blocks =
            ours.own.iter().map(|block| prepare(LOOPS, Operation::Trsm, &block.a, block.b.as_ref(), own_threads));
        let blocks = agreed(world, blocks.collect::<Result<Vec<_>>>())?;
        let whole = agreed(world, alone.map(|alone| Whole::new(name, alone, threads)).transpose())?;
        Ok(Others { name, config, world, blocks, whole, runs: Vec::new(), right: false })
    }

    /// Runs one step; where the step of round 0 takes long, it is counted and also serves for round 1. Collective.
    ///
    /// # Errors
    /// [`sunzi::Error::Transport`].
    pub fn run(&mut self, round: usize) -> Result<()> {
        if round == 1 && !self.runs.is_empty() {
            return Ok(());
        }
        let Others { world, blocks, whole, .. } = self;
        let mut stage = |of: &mut dyn FnMut(&mut Whole)| {
            let done = timed(*world, || {
                whole.iter_mut().for_each(&mut *of);
                Ok(())
            });
            done.map(|((), seconds)| seconds)
        };
        let product = stage(&mut |whole| whole.product.run_once())?;
        let factor = stage(&mut |whole| whole.factor.run_once())?;
        let solves = stage(&mut |whole| whole.solves.iter_mut().for_each(TimedBaseline::run_once))?;
        let ((), systems) = timed(*world, || {
            blocks.iter_mut().for_each(TimedBaseline::run_once);
            Ok(())
        })?;
        let seconds = [systems, product, factor, solves];
        if round > 0 || seconds.iter().sum::<f64>() > LONG_SECONDS {
            self.runs.push(seconds);
        }
        Ok(())
    }

    /// Checks the answers of the last run by the verifiers, some of each rank's blocks on that rank. Collective.
    ///
    /// # Errors
    /// The errors of the allocation of the operands; [`sunzi::Error::Transport`].
    pub fn judge(&mut self, alone: Option<&Alone>) -> Result<()> {
        let (config, world) = (self.config, self.world);
        let mut right = self.whole.as_ref().zip(alone).is_none_or(|(whole, alone)| whole.is_right(alone));
        let numbers = config.own(world).zip(&self.blocks);
        let step = self.blocks.len().div_ceil(CHECKED_BLOCKS).max(1);
        let judged = || {
            for (at, baseline) in numbers.step_by(step) {
                let block = config.block(at)?;
                right &= baseline.is_right_by(&Residual::new(Operation::Trsm, &block.a, block.b.as_ref()));
            }
            Ok(())
        };
        agreed(world, judged())?;
        let mut wrong = [u64::from(!right)];
        world.all_reduce(Reduction::Max, &mut wrong)?;
        self.right = wrong[0] == 0;
        Ok(())
    }
}

impl Whole {
    fn new(name: &'static str, alone: &Alone, threads: usize) -> Result<Whole> {
        let factor = alone.factor.factor();
        let solves = alone.right.iter().map(|right| prepare(LOOPS, Operation::Solve, factor, Some(right), threads));
        Ok(Whole {
            product: prepare(name, Operation::Syrk, &alone.v, None, threads)?,
            factor: prepare(LOOPS, Operation::Cholesky, &alone.q, None, threads)?,
            solves: solves.collect::<Result<_>>()?,
        })
    }

    fn is_right(&self, alone: &Alone) -> bool {
        let solves = (0..SOLVES).zip(&self.solves);
        self.product.is_right_by(&alone.samples())
            && self.factor.is_right_by(&alone.factor_residual())
            && solves.into_iter().all(|(at, solve)| solve.is_right_by(&alone.solution_residual(at)))
    }
}

/// A baseline on operands of ours.
fn prepare(name: &str, operation: Operation, a: &Matrix, b: Option<&Matrix>, threads: usize) -> Result<TimedBaseline> {
    let (first, second) = (a.view().to_floats(), b.map(|b| b.view().to_floats()));
    let cols = b.map_or(a.cols(), Matrix::cols);
    let (rows, precision_bits) = (a.rows(), a.precision_bits());
    let problem = Problem { operation, rows, cols, precision_bits, a: &first, b: second.as_deref(), threads };
    TimedBaseline::prepare(name, problem)
}
