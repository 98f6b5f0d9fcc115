//! The data of the steps of an iteration: this rank's part of a program at one precision, and the workers.

use crate::iterate::crew::Crew;
use crate::iterate::memory::{ConeTask, IterationStep};
use crate::iterate::point::{Cone, Point};
use crate::iterate::share::Share;
use crate::iterate::side::Sides;
use crate::numbers::Arithmetic;
use crate::problem::Problem;
use crate::workers::{TaskBytes, Workers};
use rug::Float;
use sunzi::{Context, Result};

/// See the module.
#[derive(Clone, Copy)]
pub struct Site<'s> {
    /// The groups of this rank, rounded to `bits`.
    pub problem: &'s Problem,
    /// The blocks of this rank.
    pub cones: &'s [Cone],
    /// The other ranks.
    pub share: &'s Share,
    /// The crew.
    pub crew: &'s Crew,
    /// The workers at this step.
    pub workers: &'s Workers,
    /// The precision.
    pub bits: u32,
}

impl<'s> Site<'s> {
    /// The same site at `step`; the memory of the step is freed for it.
    pub fn at(&self, step: IterationStep) -> Site<'s> {
        let workers = self.crew.at(step);
        workers.make_room();
        Site { workers, ..*self }
    }

    /// Calls on all threads.
    pub fn arithmetic(&self) -> Arithmetic<'_> {
        Arithmetic { ctx: self.workers.all(), bits: self.bits }
    }

    /// The result of `work` for each block of this rank; the same outcome on all ranks. Collective.
    ///
    /// # Errors
    /// The errors of `work`.
    pub fn map<R: Send>(
        &self,
        task: ConeTask,
        work: impl Fn(Arithmetic<'_>, usize) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let tasks = (0..self.cones.len()).collect::<Vec<_>>();
        let cost = |&at: &usize| self.cones[at].shape.cost();
        let bytes = |&at: &usize| self.crew.ledger().map_or_else(TaskBytes::default, |ledger| ledger.task(task, at));
        let bits = self.bits;
        self.agreed(self.workers.map(&tasks, (cost, bytes), |ctx: &Context, &at| work(Arithmetic { ctx, bits }, at)))
    }

    /// The results of all ranks, or the error of the first rank that failed. Collective.
    ///
    /// # Errors
    /// As [`crate::ranks::Ranks::agreed`].
    pub fn agreed<T>(&self, made: Result<T>) -> Result<T> {
        self.share.ranks.agreed(made)
    }

    /// Sums over all blocks of the program, in their order; `made` are the numbers of the blocks of this rank.
    /// Collective.
    ///
    /// # Errors
    /// The errors of any rank.
    pub fn sum<const W: usize>(&self, made: Result<Vec<[Float; W]>>) -> Result<[Float; W]> {
        let mut sums = std::array::from_fn(|_| Float::new(self.bits));
        for values in self.share.of_cones(self.bits, made)? {
            sums.iter_mut().zip(values).for_each(|(sum, value): (&mut Float, Float)| *sum += value);
        }
        Ok(sums)
    }

    /// `Tr(X Y)` of X of one point and Y of another, for each of these. Collective.
    ///
    /// # Errors
    /// The errors of [`sunzi::blas::dot`] on any rank.
    pub fn complementarity<const W: usize>(&self, points: [Sides<&Point>; W]) -> Result<[Float; W]> {
        let k = self.arithmetic();
        let of_cone = |at: usize| {
            let values =
                points.iter().map(|of| of.primal.primal[at].inner(k, &of.dual.dual[at])).collect::<Result<Vec<_>>>()?;
            Ok(std::array::from_fn(|number| values[number].clone()))
        };
        self.sum((0..self.cones.len()).map(of_cone).collect())
    }
}
