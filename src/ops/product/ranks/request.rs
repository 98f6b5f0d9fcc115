//! From the call of one rank to a plan that all ranks share: what each rank has is gathered, compared, planned for.

use crate::comm::window::NodeWindow;
use crate::comm::{Reduction, agree, agreed};
use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::matrix::{MatrixView, Uplo};
use crate::ops::distributed::matrix::{DistMatrix, check_tile_size};
use crate::ops::distributed::team::{NodeLayout, Team, Windows};
use crate::ops::product::combine::Combination;
use crate::ops::product::direct::ProductSize;
use crate::ops::product::problem::{Bits, OperandRows, check_precision};
use crate::ops::product::ranks::plan::{ClusterRequest, PlannedCluster, plan_cluster};
use crate::ops::product::ranks::report::{ClusterReport, spread_over_ranks};
use crate::ops::product::ranks::{DistOptions, DistOutcome, PlanHook, scale};
use crate::ops::product::report::{PhaseClock, RankPhase};
use crate::ops::product::run::{ProductRun, RunState, worker_spaces};
use crate::plan::{NodeShape, RankGrid, TileMap};

/// A product as one rank calls for it.
pub(crate) struct RankProblem<'a> {
    pub operation: &'static str,
    /// Rows of the operand whose columns are the rows of the result.
    pub left: &'a [MatrixView<'a>],
    /// The same rows of the other operand; `None` for SYRK.
    pub right: Option<&'a [MatrixView<'a>]>,
    pub precision_bits: u32,
    pub options: &'a DistOptions<'a>,
}

/// What the ranks have together.
struct Shared {
    /// Contracted rows of each rank.
    rows: Vec<usize>,
    /// Threads of each rank.
    threads: Vec<usize>,
    /// Columns of the left and of the right operand.
    cols: [usize; 2],
    /// Bytes that each node may take.
    node_bytes: Vec<u64>,
    /// Whether some rank of each node has a memory limit.
    limited: Vec<bool>,
}

/// What a rank tells the others, one word each.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Fact {
    Rows,
    LeftCols,
    RightCols,
    Threads,
    NodeBytes,
    Precision,
    Options,
    Kernel,
    Limited,
}

const FACTS: usize = 9;

/// In place of the number of columns: this rank has no block to tell it.
const UNKNOWN: u64 = u64::MAX;

/// Computes `problem`. Collective.
///
/// # Errors
/// Those of [`super::syrk`].
pub(crate) fn run(ctx: &Context, team: &mut Team, problem: &RankProblem<'_>) -> Result<DistOutcome> {
    agree(team.world(), problem.check(ctx, team.size()))?;
    let mut clock = PhaseClock::new();
    let shared = problem.share(ctx, team)?;
    let operands = [Some(problem.left), problem.right];
    let mut exponents = [Vec::new(), Vec::new()];
    for ((exponents, blocks), cols) in exponents.iter_mut().zip(operands).zip(shared.cols) {
        if let Some(blocks) = blocks {
            let exact = problem.options.exact_integers;
            let found = clock.time(RankPhase::Scale, || scale::norm_exponents(ctx, team.world(), blocks, cols, exact));
            *exponents = found?;
        }
    }
    let bits = problem.bits(ctx, &shared, &exponents)?;
    for exponent in exponents.iter_mut().flatten() {
        *exponent = if problem.options.exact_integers { 0 } else { i64::from(bits.working) - *exponent };
    }
    let [left_shifts, right_shifts] = exponents;
    let map = problem.map(team, &shared);
    let made = || DistMatrix::zeros(map, team.rank(), bits.result);
    let size = problem.size(&shared);
    if size.is_empty() {
        let (result, report) = (agreed(team.world(), made())?, ClusterReport::default());
        return Ok(DistOutcome { result, report, spans: Vec::new() });
    }
    let layout = team.layout().clone();
    let nodes = shared.shapes(&layout);
    let planned = plan_cluster(
        ctx,
        &ClusterRequest {
            operation: problem.operation,
            size,
            bits,
            nodes: &nodes,
            ranks: &layout.nodes,
            map,
            node_bytes: &shared.node_bytes,
            cut: problem.options.cut,
        },
    )?;
    if let Some(PlanHook(tell)) = problem.options.on_plan {
        tell(&planned.plan);
    }
    let mut result = agreed(team.world(), made())?;
    let node = layout.node_of[team.rank()];
    let left = OperandRows { blocks: problem.left, shifts: &left_shifts };
    let right = problem.right.map(|blocks| OperandRows { blocks, shifts: &right_shifts });
    let limited = shared.limited[node];
    let part = Part { problem, planned: &planned, shape: &nodes[node], words: node, left, right, bits, limited };
    part.compute(ctx, team, &mut clock, &mut result)?;
    let report = make_report(ctx, team, planned, &shared, &clock)?;
    Ok(DistOutcome { result, report, spans: clock.into_spans() })
}

impl Shared {
    /// The ranks of each node.
    fn shapes(&self, layout: &NodeLayout) -> Vec<NodeShape> {
        let shape = |ranks: &Vec<usize>| NodeShape {
            rows: ranks.iter().map(|&rank| self.rows[rank]).collect(),
            threads: ranks.iter().map(|&rank| self.threads[rank]).collect(),
        };
        layout.nodes.iter().map(shape).collect()
    }
}

/// What one rank computes.
struct Part<'a> {
    problem: &'a RankProblem<'a>,
    planned: &'a PlannedCluster,
    /// The ranks of this node.
    shape: &'a NodeShape,
    /// The node's place in the plan.
    words: usize,
    left: OperandRows<'a>,
    right: Option<OperandRows<'a>>,
    bits: Bits,
    /// Whether some rank of the node has a memory limit.
    limited: bool,
}

impl Part<'_> {
    /// Opens windows, takes scratch, runs. Collective.
    fn compute(&self, ctx: &Context, team: &mut Team, clock: &mut PhaseClock, result: &mut DistMatrix) -> Result<()> {
        let words = &self.planned.words[self.words];
        let exact = self.limited;
        let opened = clock.time(RankPhase::Windows, || team.open_windows((words.operands, words.products), exact));
        let mut workspace = ctx.workspace();
        let needs = WorkspaceNeeds {
            operand_bytes: 0,
            product_bytes: 0,
            workers: ctx.threads(),
            worker_bytes: words.scratch as u64 * 8 + words.call_bytes,
            // What other ranks of the node keep is not known here: under a limit of all of them nobody keeps anything.
            planned_bytes: if self.shape.ranks() > 1 { u64::MAX } else { self.planned.plan.planned_bytes },
        };
        workspace.trim(ctx, &needs);
        workspace.hire(ctx.threads());
        let limbs = self.planned.engine.magnitude_limbs();
        let spaces = worker_spaces(&mut workspace.workers[..ctx.threads()], limbs, words.scratch);
        let outcome = opened.and(match &spaces {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::OutOfMemory { bytes: needs.worker_bytes * ctx.threads() as u64 }),
        });
        agree(team.world(), team.in_world(outcome))?;
        let (ranks, Windows { operands, products }) = team.parts();
        let map = *result.map();
        let run = ProductRun {
            ctx,
            ranks,
            shape: self.shape,
            engine: &*self.planned.engine,
            cutting: self.planned.cutting,
            left: self.left,
            right: self.right,
            // A general product has no triangle to transpose.
            uplo: if self.right.is_some() { Uplo::Lower } else { self.problem.options.uplo },
            bits: self.bits,
            combination: Combination::new(self.problem.options.alpha, None, None),
            owners: Some(&map),
            fault: None,
        };
        let (operands, products) = (NodeWindow::Shared(operands), NodeWindow::Shared(products));
        run.run(&mut RunState { operands, products, spaces: spaces?, clock }, result).map(drop)
    }
}

impl RankProblem<'_> {
    /// What this rank can say alone about its arguments.
    fn check(&self, ctx: &Context, ranks: usize) -> Result<()> {
        let same_cols = |blocks: &[MatrixView<'_>]| {
            let first = blocks.first().map_or(0, MatrixView::cols);
            match blocks.iter().position(|block| block.cols() != first) {
                Some(index) => Err(mismatch(self.operation, &blocks[0], &blocks[index])),
                None => Ok(()),
            }
        };
        same_cols(self.left)?;
        if let Some(right) = self.right {
            same_cols(right)?;
            if right.len() != self.left.len() {
                let message = format!("{} blocks of A against {} blocks of B", self.left.len(), right.len());
                return Err(Error::InvalidArgument(message));
            }
            let pairs = self.left.iter().zip(right);
            if let Some((a, b)) = pairs.into_iter().find(|(a, b)| a.rows() != b.rows()) {
                return Err(mismatch(self.operation, a, b));
            }
        }
        if ctx.freivalds() {
            let message = "Freivalds' test is for products in one process: use the self-check here";
            return Err(Error::InvalidArgument(message.into()));
        }
        if let Some(grid) = self.options.grid.filter(|grid| !(1..=ranks).contains(&grid.size())) {
            return Err(Error::InvalidArgument(format!("a grid of {} x {} ranks for {ranks}", grid.rows, grid.cols)));
        }
        self.options.tile_size.map_or(Ok(()), check_tile_size)?;
        Combination::new(self.options.alpha, None, None).check((0, 0), self.options.exact_integers)
    }

    /// Gathers what all ranks have, and compares what must agree. Collective.
    fn share(&self, ctx: &Context, team: &Team) -> Result<Shared> {
        let cols = |blocks: &[MatrixView<'_>]| blocks.first().map_or(UNKNOWN, |block| block.cols() as u64);
        let mut own = [0; FACTS];
        let mut tell = |fact: Fact, word: u64| own[fact as usize] = word;
        tell(Fact::Rows, self.left.iter().map(|block| block.rows() as u64).sum());
        tell(Fact::LeftCols, cols(self.left));
        tell(Fact::RightCols, self.right.map_or(UNKNOWN, cols));
        tell(Fact::Threads, ctx.threads() as u64);
        tell(Fact::NodeBytes, team.node_bytes(ctx.memory_bytes())?);
        tell(Fact::Precision, self.precision_bits.into());
        tell(Fact::Options, self.options_hash(ctx));
        tell(Fact::Kernel, hash(ctx.kernel().name()));
        tell(Fact::Limited, ctx.memory_bytes().is_some().into());
        let mut all = vec![0; FACTS * team.size()];
        team.world().all_gather(&own, &mut all)?;
        let facts = all.chunks_exact(FACTS).collect::<Vec<_>>();
        let column = |fact: Fact| facts.iter().map(move |words| words[fact as usize]);
        let agreed = [(Fact::Precision, "precisions"), (Fact::Options, "options"), (Fact::Kernel, "kernels")];
        for (fact, what) in agreed {
            same(column(fact), what)?;
        }
        let cols = [(Fact::LeftCols, "numbers of columns"), (Fact::RightCols, "numbers of columns of B")];
        let cols = cols.map(|(fact, what)| same(column(fact), what).map(|cols| cols.map_or(0, |cols| cols as usize)));
        let [left, right] = cols;
        let left = left?;
        let nodes = &team.layout().nodes;
        let limited = |&rank: &usize| facts[rank][Fact::Limited as usize] != 0;
        Ok(Shared {
            rows: column(Fact::Rows).map(|word| word as usize).collect(),
            threads: column(Fact::Threads).map(|word| word as usize).collect(),
            cols: [left, if self.right.is_some() { right? } else { left }],
            node_bytes: nodes.iter().map(|ranks| facts[ranks[0]][Fact::NodeBytes as usize]).collect(),
            limited: nodes.iter().map(|ranks| ranks.iter().any(limited)).collect(),
        })
    }

    fn options_hash(&self, ctx: &Context) -> u64 {
        let DistOptions { uplo, exact_integers, alpha, tile_size, grid, cut, on_plan: _ } = self.options;
        let alpha = alpha.map(|alpha| alpha.to_string_radix(16, None));
        let text = format!("{uplo:?} {exact_integers} {alpha:?} {tile_size:?} {grid:?} {cut:?} {}", ctx.self_check());
        hash(&format!("{} {text}", self.operation))
    }

    fn size(&self, shared: &Shared) -> ProductSize {
        let [rows, cols] = shared.cols;
        ProductSize { contracted: shared.rows.iter().sum(), rows, cols, triangle: self.right.is_none() }
    }

    /// The bit counts, from the exponents of all columns.
    fn bits(&self, ctx: &Context, shared: &Shared, exponents: &[Vec<i64>; 2]) -> Result<Bits> {
        let size = self.size(shared);
        check_precision(ctx.kernel(), self.precision_bits, size.contracted)?;
        size.check(self.precision_bits)?;
        if !self.options.exact_integers {
            return Ok(Bits::scaled(self.precision_bits, size.contracted));
        }
        let largest = |exponents: &[i64]| exponents.iter().copied().max().unwrap_or(0).max(0);
        let left = largest(&exponents[0]);
        let right = if self.right.is_some() { largest(&exponents[1]) } else { left };
        let combination = Combination::new(self.options.alpha, None, None);
        Bits::integers(ctx.kernel(), (left, right), &combination, self.precision_bits)
    }

    /// Tiles of the result and their owners.
    fn map(&self, team: &Team, shared: &Shared) -> TileMap {
        let [rows, cols] = shared.cols;
        let grid = self.options.grid.unwrap_or_else(|| RankGrid::for_ranks(team.size()));
        let tile_size = self.options.tile_size.unwrap_or_else(|| TileMap::default_tile_size(rows.max(cols), grid));
        let triangle = if self.right.is_none() { Some(self.options.uplo) } else { None };
        TileMap { rows, cols, tile_size, grid, triangle }
    }
}

/// The value that all ranks which know it agree on.
fn same(words: impl Iterator<Item = u64>, what: &str) -> Result<Option<u64>> {
    let known = words.enumerate().filter(|(_, word)| *word != UNKNOWN).collect::<Vec<_>>();
    let Some(&(first, value)) = known.first() else { return Ok(None) };
    match known.iter().find(|(_, word)| *word != value) {
        None => Ok(Some(value)),
        // Only counts mean something as numbers.
        Some((other, word)) if value.max(*word) < 1 << 48 => Err(Error::InvalidArgument(format!(
            "ranks have different {what}: {value} on rank {first}, {word} on rank {other}"
        ))),
        Some((other, _)) => Err(Error::InvalidArgument(format!("ranks {first} and {other} have different {what}"))),
    }
}

fn hash(text: &str) -> u64 {
    // The top bit keeps hashes apart from counts and from `UNKNOWN`.
    xxhash_rust::xxh3::xxh3_64(text.as_bytes()) >> 1 | 1 << 62
}

fn mismatch(operation: &'static str, left: &MatrixView<'_>, right: &MatrixView<'_>) -> Error {
    Error::ShapeMismatch {
        operation,
        left_rows: left.rows(),
        left_cols: left.cols(),
        right_rows: right.rows(),
        right_cols: right.cols(),
    }
}

/// The report, the same on all ranks. Collective.
fn make_report(
    ctx: &Context,
    team: &Team,
    planned: PlannedCluster,
    shared: &Shared,
    clock: &PhaseClock,
) -> Result<ClusterReport> {
    let mut most = [clock.seconds().to_bits(), team.window_bytes()];
    team.world().all_reduce(Reduction::Max, &mut most)?; // positive doubles are ordered like their bits
    Ok(ClusterReport {
        plan: planned.plan,
        seconds: f64::from_bits(most[0]),
        phases: spread_over_ranks(team.world(), &clock.totals())?,
        threads: shared.threads.iter().sum(),
        window: team.window_kind(),
        window_bytes: most[1],
        checked: ctx.self_check(),
    })
}
