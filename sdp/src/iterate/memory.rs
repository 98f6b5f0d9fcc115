//! The memory that a run takes at most, known before it begins, and how a limit is kept.
//!
//! A ledger for each precision of the run has the memory in use at each step of an iteration (`ledger`), and the memory
//! of the library's calls (`calls`). Under a limit the calls of a step have the memory that the ledger leaves. So a
//! call whose numbers take more bits than were planned for takes narrower bands, or is refused, and never exceeds the
//! limit silently; except for calls of several ranks together, which are planned and have no limit (`definite`).
//! Independent of: numbers of a program, except how many there are.

mod calls;
mod ledger;
mod lists;

pub use ledger::{ConeTask, IterationStep, Ledger, STEPS};

use crate::iterate::point::Cone;
use crate::iterate::precisions;
use crate::iterate::share::Share;
use crate::options::SolverOptions;
use crate::problem::Problem;
use crate::ranks::Ranks;
use calls::Gap;
use ledger::Held;
use serde::Serialize;
use sunzi::{Context, Error, Result};

/// The memory that a run needs; see [`super::Solver::plan`]. The parts are those of the step that needs the most.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryPlan {
    /// The program at the lower precision of the first iterations, and tables of sparse matrices.
    pub program_bytes: u64,
    /// Blocks that stay through the step: points, directions, factors, residuals.
    pub block_bytes: u64,
    /// The factor of the Schur complement, and the matrices of free variables.
    pub system_bytes: u64,
    /// Running tasks and calls of the library.
    pub call_bytes: u64,
    /// All of them.
    pub planned_bytes: u64,
    /// The memory of the iterations at each single precision. A run may use more at the lower precisions if the limit,
    /// or the plan, allows it.
    pub precisions: Vec<PrecisionPlan>,
}

/// The memory that iterations at one precision need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PrecisionPlan {
    /// The precision.
    pub precision_bits: u32,
    /// The total at the step that needs the most.
    pub planned_bytes: u64,
}

/// A rank's part of a program.
#[derive(Clone, Copy)]
pub struct ProgramPart<'a> {
    /// The groups of this rank.
    pub problem: &'a Problem,
    /// The blocks of this rank.
    pub cones: &'a [Cone],
    /// The parts of all ranks.
    pub share: &'a Share,
}

/// The ledgers of all precisions of a run.
pub struct Memory {
    ledgers: Vec<Ledger>,
}

fn total(ledger: &Ledger, step: IterationStep) -> u64 {
    ledger.base + ledger.total(step)
}

/// Contexts without a limit that plan as another does. They own the tables that plans make and free them at their end:
/// tables of other precisions would otherwise take memory during the run.
pub struct Planners {
    /// The context with all threads.
    all: Context,
    /// The context with one thread.
    single: Context,
}

impl Planners {
    fn of(ctx: &Context) -> Planners {
        Planners { all: ctx.without_cache().with_memory_bytes(None), single: ctx.apart() }
    }
}

/// Bytes that an iteration on a whole program takes at `bits` bits, whatever the limit of `ctx`.
///
/// # Errors
/// The errors of the library's plans and contexts.
pub fn of_iteration(ctx: &Context, problem: &Problem, bits: u32) -> Result<u64> {
    let share = Share::new(Ranks::alone(), problem, None);
    let gap = Gap::of(&SolverOptions::new(problem.form).duality_gap_threshold);
    let ledger =
        Ledger::new(&Planners::of(ctx), ProgramPart { problem, cones: &share.all, share: &share }, bits, gap, 1)?;
    Ok(total(&ledger, ledger.peak()))
}

impl Memory {
    /// The memory of a run in `ctx`, whatever its limit, on the part of a rank.
    ///
    /// # Errors
    /// The errors of the library's plans and contexts.
    pub fn new(ctx: &Context, part: ProgramPart<'_>, options: &SolverOptions) -> Result<Memory> {
        let planners = Planners::of(ctx);
        let full = part.problem.precision_bits;
        let first = if options.ramp { precisions::first_bits(full) } else { full };
        let precisions = std::iter::successors(Some(first), |&bits| precisions::next_bits(bits, full));
        let count = precisions.clone().count();
        let gap = Gap::of(&options.duality_gap_threshold);
        let ledgers = precisions.map(|bits| Ledger::new(&planners, part, bits, gap, count));
        Ok(Memory { ledgers: ledgers.collect::<Result<_>>()? })
    }

    /// The same memory with `bytes` more bytes in use at all steps.
    pub fn beside(mut self, bytes: u64) -> Memory {
        self.ledgers.iter_mut().for_each(|ledger| ledger.base += bytes);
        self
    }

    /// The plan of the precision at which the run needs the most memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no precision.
    pub fn plan(&self) -> Result<MemoryPlan> {
        let peak = |ledger: &Ledger| total(ledger, ledger.peak());
        let largest = self.ledgers.iter().max_by_key(|ledger| peak(ledger));
        let largest = largest.ok_or_else(|| Error::InvalidArgument("a run without a precision".into()))?;
        let Held { blocks, system } = largest.held(largest.peak());
        let (program_bytes, planned_bytes) = (largest.base + largest.program, peak(largest));
        let precisions = self.ledgers.iter();
        let precisions = precisions
            .map(|ledger| PrecisionPlan { precision_bits: ledger.bits, planned_bytes: peak(ledger) })
            .collect();
        Ok(MemoryPlan {
            program_bytes,
            block_bytes: blocks,
            system_bytes: system,
            call_bytes: planned_bytes - program_bytes - blocks - system,
            planned_bytes,
            precisions,
        })
    }

    /// The ledgers of each precision.
    pub fn into_ledgers(self) -> Vec<Ledger> {
        self.ledgers
    }
}

impl Ledger {
    /// The memory that a limit leaves for tasks and calls of a step.
    pub fn room(&self, step: IterationStep, limit_bytes: u64) -> u64 {
        let Held { blocks, system } = self.held(step);
        limit_bytes.saturating_sub(self.base + self.program + blocks + system)
    }
}

impl MemoryPlan {
    /// Refuses a limit below the plan.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`].
    pub(super) fn admit(&self, limit_bytes: u64) -> Result<()> {
        match self.planned_bytes > limit_bytes {
            true => Err(Error::MemoryLimit { limit_bytes, minimum_bytes: self.planned_bytes }),
            false => Ok(()),
        }
    }
}

/// The limit of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The limit that the caller gave: for all ranks of the node.
    pub given_bytes: u64,
    /// The part of this rank.
    pub own_bytes: u64,
    /// The ranks that divide it.
    pub ranks: u64,
}

/// The limit of this rank, of one for all ranks of its node, which divide the memory that their plans leave.
/// Collective.
///
/// # Errors
/// [`Error::MemoryLimit`] with the smallest limit that suffices for all nodes, on all ranks; [`Error::Transport`].
pub fn of_rank(ranks: &Ranks, plan: &MemoryPlan, limit_bytes: u64) -> Result<Limit> {
    let (node_bytes, node_ranks) = ranks.node_sum(plan.planned_bytes)?;
    let most = !ranks.least(!node_bytes)?;
    match ranks.any(node_bytes > limit_bytes)? {
        true => Err(Error::MemoryLimit { limit_bytes, minimum_bytes: most }),
        false => Ok(Limit {
            given_bytes: limit_bytes,
            own_bytes: plan.planned_bytes + (limit_bytes - node_bytes) / node_ranks,
            ranks: node_ranks,
        }),
    }
}

impl Limit {
    /// The limit of a run in one process.
    pub fn alone(limit_bytes: u64) -> Limit {
        Limit { given_bytes: limit_bytes, own_bytes: limit_bytes, ranks: 1 }
    }

    /// The refusal of a call as one of the run: with the limit under which the call would have had enough.
    pub fn restated(&self, error: Error, threads: usize) -> Error {
        let Error::MemoryLimit { limit_bytes: had, minimum_bytes } = error else { return error };
        let more = minimum_bytes.saturating_sub(had).saturating_mul(threads as u64).saturating_mul(self.ranks);
        let limit_bytes = self.given_bytes;
        Error::MemoryLimit { limit_bytes, minimum_bytes: limit_bytes.saturating_add(more) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Shape;
    use crate::iterate::Solver;
    use crate::problem::{Entry, SparseCone};
    use rug::Float;
    use sunzi::Matrix;
    use sunzi::comm::{Transport, local};
    use sunzi::distributed::{Team, TeamOptions};

    /// A rank has a part of the limit, and names the whole one.
    #[test]
    fn ranks_refuse_by_the_limit_of_the_node() -> Result<()> {
        let bits = 128;
        let cone = |at: usize| SparseCone {
            shape: Shape::Dense(2),
            active: vec![at],
            entries: vec![vec![Entry { row: 1, col: 0, value: Float::with_val(2, 1) }]],
            constant: Vec::new(),
        };
        let problem =
            Problem::standard(bits, Matrix::from_f64s(2, 1, bits, &[1.0, 1.0])?, vec![cone(0), cone(1)], None)?;
        let stated = local::run(2, |rank| {
            let team = Team::new(rank.split(0)?, TeamOptions::default())?;
            let ctx = Context::builder().threads(1).memory_bytes(1 << 30).build()?;
            let solver = Solver::on_ranks(ctx, team, &problem, SolverOptions::new(problem.form))?;
            let stated = solver.restated(Error::MemoryLimit { limit_bytes: 20, minimum_bytes: 27 });
            solver.close()?;
            Ok::<_, Error>(stated)
        });
        for error in stated {
            let Error::MemoryLimit { limit_bytes, minimum_bytes } = error? else { panic!("another error") };
            assert_eq!((limit_bytes, minimum_bytes), (1 << 30, (1 << 30) + 14));
        }
        Ok(())
    }

    #[test]
    fn refusals_are_those_of_the_run() -> Result<()> {
        let plan = MemoryPlan {
            program_bytes: 20,
            block_bytes: 40,
            system_bytes: 10,
            call_bytes: 30,
            planned_bytes: 100,
            precisions: Vec::new(),
        };
        plan.admit(100)?;
        let refused = plan.admit(99).unwrap_err();
        assert!(matches!(refused, Error::MemoryLimit { limit_bytes: 99, minimum_bytes: 100 }));
        // Seven bytes more in a call are as many for each of two that are at work.
        let call = Error::MemoryLimit { limit_bytes: 20, minimum_bytes: 27 };
        let limit = Limit::alone(131);
        let stated = limit.restated(call, 2);
        assert!(matches!(stated, Error::MemoryLimit { limit_bytes: 131, minimum_bytes: 145 }), "{stated}");
        assert!(matches!(limit.restated(Error::Cancelled, 2), Error::Cancelled));
        // The limit of a node is the one that was given, and each of its ranks gets a share of the excess over the
        // plans.
        let node = Limit { given_bytes: 400, own_bytes: 131, ranks: 3 };
        let stated = node.restated(Error::MemoryLimit { limit_bytes: 20, minimum_bytes: 27 }, 2);
        assert!(matches!(stated, Error::MemoryLimit { limit_bytes: 400, minimum_bytes: 442 }), "{stated}");
        Ok(())
    }
}
