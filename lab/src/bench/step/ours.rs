//! Our step on the ranks, and the same in one process.

use super::{BenchStep, SOLVES, StageSeconds, timed};
use crate::baselines::Operation;
use crate::bench::check::{Samples, Verifier};
use crate::bench::operands::Operands;
use crate::bench::residual::Residual;
use sunzi::advanced::tile::TileMap;
use sunzi::batch::trsm_batch_into;
use sunzi::comm::{Reduction, Transport, agreed};
use sunzi::distributed::{self, DistCholeskyOptions, DistMatrix, DistOptions, RankGrid, Team, TeamOptions};
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Matrix, Result, Symmetric, SymmetricMatrix, SyrkOptions, TrsmOptions,
    cholesky_with, syrk_with,
};
use sunzi_session::session::{ROOT, Session};

/// Rows of a tile of a right side.
const TILE_ROWS: usize = 64;

/// Blocks whose `V_j` are checked by the verifier.
pub(super) const CHECKED_BLOCKS: usize = 4;

/// The results of a step on the ranks.
struct Answers {
    q: DistMatrix,
    factor: DistMatrix,
    solutions: Vec<DistMatrix>,
}

/// Our side on one rank.
pub(super) struct StepSide<'a> {
    config: &'a BenchStep,
    pub ctx: Context,
    pub team: Team,
    /// The blocks of this rank.
    pub own: Vec<Operands>,
    v: Vec<Matrix>,
    right: Vec<DistMatrix>,
    answers: Option<Answers>,
    pub runs: Vec<StageSeconds>,
}

/// `V_j` of some blocks.
fn vs(ctx: &Context, config: &BenchStep, blocks: &[Operands], v: &mut [Matrix]) -> Result<()> {
    let pairs = blocks.iter().map(|block| (&block.a, block.second()));
    let outcome = trsm_batch_into(ctx, pairs, config.precision_bits, &TrsmOptions::new().accuracy(Accuracy::Norm), v)?;
    outcome.result.into_iter().collect()
}

impl<'a> StepSide<'a> {
    /// Makes the operands of this rank. Collective.
    pub fn new(session: &dyn Session, config: &'a BenchStep, world: &dyn Transport) -> Result<StepSide<'a>> {
        let options = agreed(world, TeamOptions::from_environment())?;
        let team = Team::new(world.split(0)?, options)?;
        let ctx = agreed(world, session.context(&config.engine)?.build())?;
        let own = agreed(world, config.own(world).map(|at| config.block(at)).collect::<Result<Vec<_>>>())?;
        let (grid, rows) = (RankGrid::for_ranks(world.size()), config.cols);
        let right = |at| {
            let whole = agreed(world, if world.rank() == ROOT { config.right(at).map(Some) } else { Ok(None) })?;
            let map = TileMap { rows, cols: 1, tile_size: TILE_ROWS, grid, triangle: None };
            DistMatrix::scatter(world, ROOT, whole.as_ref(), map, config.precision_bits)
        };
        let right = (0..SOLVES).map(right).collect::<Result<Vec<_>>>()?;
        let v = vec![Matrix::empty(); own.len()];
        Ok(StepSide { config, ctx, team, own, v, right, answers: None, runs: Vec::new() })
    }

    /// Runs one step; its time is recorded if `counts` is set. Collective.
    ///
    /// # Errors
    /// The errors of the operations.
    pub fn run(&mut self, counts: bool) -> Result<()> {
        let StepSide { config, ctx, team, own, v, right, answers, runs } = self;
        let bits = config.precision_bits;
        *answers = None;
        v.iter_mut().for_each(Matrix::clear);
        let ((), v_seconds) = timed(team.world(), || vs(ctx, config, own, v))?;
        let views = v.iter().map(Matrix::view).collect::<Vec<_>>();
        let world = team.world().split(0)?;
        // By norms, all of it, as SDPB's own product is.
        let by_norms = DistOptions::new().accuracy(Accuracy::Norm);
        let (q, q_seconds) = timed(&*world, || distributed::syrk(ctx, team, &views, bits, &by_norms))?;
        let q = q.result;
        let by_norms = DistCholeskyOptions::new().accuracy(Accuracy::Norm);
        let (factor, factor_seconds) = timed(&*world, || distributed::cholesky_with(ctx, team, &q, bits, &by_norms))?;
        let factor = factor.factor;
        let solve = |right| {
            distributed::solve_with(ctx, team, &factor, right, bits, Accuracy::Norm).map(|solved| solved.solution)
        };
        let (solutions, seconds) = timed(&*world, || right.iter().map(solve).collect::<Result<Vec<_>>>())?;
        *answers = Some(Answers { q, factor, solutions });
        if counts {
            runs.push([v_seconds, q_seconds, factor_seconds, seconds]);
        }
        Ok(())
    }

    /// Whether the last answers are equal to those of one process, which are on the root; the result is the same on all
    /// ranks. Collective.
    ///
    /// # Errors
    /// The errors of gathering.
    pub fn has_bits_of(&self, alone: Option<&Alone>) -> Result<bool> {
        let world = self.team.world();
        let Answers { q, factor, solutions } = self.answers.as_ref().expect("a step was done");
        let whole = [q, factor].into_iter().chain(solutions).map(|one| one.gather(world, ROOT));
        let whole = whole.collect::<Result<Vec<_>>>()?;
        let same = alone.is_none_or(|alone| {
            let wanted = [&*alone.q, alone.factor.factor()].into_iter().chain(&alone.solutions);
            whole.iter().zip(wanted).all(|(got, wanted)| got.as_ref() == Some(wanted))
        });
        let mut different = [u64::from(!same)];
        world.all_reduce(Reduction::Max, &mut different)?;
        Ok(different[0] == 0)
    }
}

/// The whole step in one process.
pub(super) struct Alone {
    /// The blocks that the verifier checks, with their `V_j`.
    checked: Vec<(Operands, Matrix)>,
    /// The rows of all `V_j`.
    pub v: Matrix,
    pub q: SymmetricMatrix,
    pub factor: Cholesky,
    pub right: Vec<Matrix>,
    solutions: Vec<Matrix>,
}

impl Alone {
    /// Computes it.
    ///
    /// # Errors
    /// The errors of the operations.
    pub fn new(ctx: &Context, config: &BenchStep) -> Result<Alone> {
        let bits = config.precision_bits;
        let blocks = (0..config.blocks).map(|at| config.block(at)).collect::<Result<Vec<_>>>()?;
        let mut each = vec![Matrix::empty(); blocks.len()];
        vs(ctx, config, &blocks, &mut each)?;
        let rows = config.blocks * config.order;
        let entry = |row: usize, col: usize| each[row / config.order].float(row % config.order, col);
        let v = Matrix::from_fn(rows, config.cols, bits, entry)?;
        let q = syrk_with(ctx, &v, bits, &SyrkOptions::new().accuracy(Accuracy::Norm))?.result;
        let by_norms = CholeskyOptions::new().accuracy(Accuracy::Norm);
        let factor = cholesky_with(ctx, Symmetric::lower(&q), bits, &by_norms)?.result;
        let right = (0..SOLVES).map(|at| config.right(at)).collect::<Result<Vec<_>>>()?;
        let solutions = right.iter().map(|right| factor.solve(ctx, right, bits)).collect::<Result<Vec<_>>>()?;
        let step = config.blocks.div_ceil(CHECKED_BLOCKS).max(1);
        let checked = blocks.into_iter().zip(each).step_by(step).collect();
        Ok(Alone { checked, v, q, factor, right, solutions })
    }

    /// The verifier of Q.
    pub fn samples(&self) -> Samples {
        Samples::new(&self.v, None)
    }

    /// The verifier of the factor.
    pub fn factor_residual(&self) -> Residual<'_> {
        Residual::new(Operation::Cholesky, &self.q, None)
    }

    /// The verifier of a solution.
    pub fn solution_residual(&self, at: usize) -> Residual<'_> {
        Residual::new(Operation::Solve, self.factor.factor(), Some(&self.right[at]))
    }

    /// The largest errors of all answers in units of their bounds.
    pub fn errors(&self) -> impl Iterator<Item = f64> + '_ {
        let vs = self.checked.iter().map(|(block, v)| {
            let judge = Residual::new(Operation::Trsm, &block.a, block.b.as_ref());
            judge.worst_error(&|i, j| v.float(i, j))
        });
        let factor = self.factor.factor();
        let (q, l) = (
            self.samples().worst_error(&|i, j| self.q.float(i, j)),
            self.factor_residual().worst_error(&|i, j| factor.float(i.max(j), i.min(j))),
        );
        let solutions = self.solutions.iter().enumerate();
        let solutions = solutions.map(|(at, x)| self.solution_residual(at).worst_error(&|i, j| x.float(i, j)));
        vs.chain([q, l]).chain(solutions)
    }
}
