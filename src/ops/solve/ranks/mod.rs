//! Solves with a triangular factor in tiles over many ranks, which stays where it is.

mod operands;
mod plan;
mod source;
mod stream;
mod sums;
mod vector;
mod verbs;

use crate::comm::{Reduction, Said, Transport, agreed, alike};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::processor;
use crate::matrix::{Diag, Matrix, Uplo};
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::travel;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::solve::band::with_column;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::dots::{Scaling, Sweep, bytes, store_columns};
use crate::ops::solve::fixed::{FixedTriangle, LowerForm};
use crate::ops::solve::memory::{Bands, FirstTryKernel, SolveMemory, UnsolvedColumns};
use crate::ops::solve::parts::Parts;
use crate::ops::solve::problem::{CHOLESKY, Method, Path, SCALAR_ROWS, Substitution, SystemShape, working_bits};
use crate::ops::solve::ranks::operands::{FactorTiles, RightSides};
use crate::ops::solve::ranks::source::{MessageBuffers, StreamSource, message_bytes};
use crate::ops::solve::ranks::stream::{RankBlocks, Stream};
use crate::ops::solve::ranks::vector::SubstitutionPass;
use crate::ops::solve::run::{Right, Solve, SolveStep, TriangleSolver, make_room};
use crate::ops::solve::system::SolveReport;
use crate::ops::solve::tiles::NodeShared;
use crate::plan::even_share;
use crate::site::Site;
use crate::tile::{Distribution, TileMap};
pub use operands::LocalSolution;
pub use plan::{TrsmBits, plan_solve, plan_solve_local, plan_trsm, plan_trsm_local};
use std::ops::Range;
pub use verbs::{
    DistSolution, inverse, inverse_local, log_det, pivots, solve, solve_into, solve_local, solve_with, trsm, trsm_into,
    trsm_local, trsm_with,
};

/// Rows from which on the ranks of a node make the residues of a triangle together: below there are few tiles, and a
/// window costs more.
const TOGETHER_ROWS: usize = 256;

/// The problem of a call.
struct SolveCall<'a> {
    site: Site<'a>,
    factor: &'a DistMatrix,
    b: RightSides<'a>,
    precision_bits: u32,
    accuracy: Accuracy,
    /// Scalar of the right sides; `None` is 1.
    alpha: Option<OwnFloat>,
}

impl SolveCall<'_> {
    /// Checks the arguments, and that they are equal on all ranks; returns the order of the factor. Collective.
    fn check(&self, operation: &'static str) -> Result<usize> {
        let SolveCall { site, factor, b, precision_bits, accuracy, .. } = *self;
        let world = site.world();
        factor.check_group(world)?;
        b.check_group(world)?;
        let bits = [factor.precision_bits(), b.precision_bits(), precision_bits];
        let said = Said::hash(&(operation, factor.map(), b, bits, accuracy, &self.alpha));
        let mut words = [said, !said, u64::from(site.ctx.memory_bytes().is_some())];
        world.all_reduce(Reduction::Max, &mut words)?;
        if words[0] != !words[1] {
            return Err(Error::InvalidArgument(format!(
                "{operation}: ranks differ in shapes, tiles, precision, accuracy or scalar"
            )));
        }
        if words[2] > 0 {
            site.team.release()?; // no limit counts on what earlier calls have kept
        }
        let (map, right) = (factor.map(), b.shape());
        if map.rows != map.cols || map.rows != right.0 {
            return Err(Error::shape_mismatch(operation, (map.rows, map.cols), right));
        }
        if factor.is_symmetric() {
            return Err(Error::InvalidArgument(format!("{operation}: a symmetric matrix is no triangular factor")));
        }
        if map.triangle == Some(Uplo::Upper) {
            return Err(Error::InvalidArgument(format!("{operation}: a factor in tiles is lower triangular")));
        }
        Ok(map.rows)
    }

    /// The shape of the system, once the arguments are checked.
    fn shape(&self, tiles: &FactorTiles<'_>) -> SystemShape {
        SystemShape { order: tiles.order(), columns: self.b.shape().1 }
    }

    /// All right sides by substitution. Collective.
    fn solve_vectors(&self, tiles: &FactorTiles<'_>) -> Result<LocalSolution> {
        let SystemShape { order, columns } = self.shape(tiles);
        let site = self.site;
        let needed = vectors_bytes(site.ctx, self.shape(tiles), self.b.precision_bits(), self.precision_bits);
        site.admit(needed)?;
        make_room(site.ctx, site.on_node(needed));
        let scaling = Scaling::new(self.precision_bits, &tiles.row_exponents(site)?);
        let right = self.b.everywhere(site.world())?;
        let pass = |sweep| SubstitutionPass::new(site, tiles, &scaling, sweep, columns);
        let middle = pass(Sweep::Forward).run(&|column, row| right.float(row, column))?;
        let solution = pass(Sweep::Backward).run(&|column, row| middle[column][row].clone())?;
        let whole = Matrix::zeros(order, solution.len(), self.precision_bits)
            .and_then(|mut whole| store_columns(&solution, whole.view_mut()).map(|()| whole));
        let planned_bytes = site.share().memory().total(needed);
        Ok(LocalSolution::on_every_rank(site.world(), site.agreed(whole)?).planned(planned_bytes))
    }

    /// All right sides by the path that one process takes; `alone` solves a small system for some columns on one rank,
    /// with the whole factor. Collective.
    fn solve(
        &self,
        tiles: &FactorTiles<'_>,
        substitutions: &[Substitution],
        working_bits: u32,
        alone: impl FnOnce(&Context, &Matrix, &Matrix) -> Result<Outcome<Matrix, SolveReport>>,
    ) -> Result<LocalSolution> {
        let (world, shape) = (self.site.world(), self.shape(tiles));
        let SystemShape { order, columns: total } = shape;
        if shape.is_empty() {
            let nothing = agreed(world, Matrix::zeros(order, total, self.precision_bits))?;
            return Ok(LocalSolution::on_every_rank(world, nothing));
        }
        let method = Method::choose(substitutions, order, total, self.accuracy);
        match method.path {
            Path::Dots => return self.solve_vectors(tiles),
            Path::Sums => return self.solve_sums(tiles, working_bits),
            Path::Parts | Path::Tiles => {}
        }
        let columns = panel_columns(shape, world.size());
        let own = panel_share(total, world.size(), world.rank());
        let [mut b, mut x] = take_columns(self.site.ctx);
        self.b.bring(world, &columns, &mut b)?;
        let planned_bytes = match is_small(order, method) {
            true => {
                let Outcome { result, report } = self.solve_small(&b, own, alone)?;
                x = result;
                report.planned_bytes
            }
            false => {
                let how = Substitutions { list: substitutions, working_bits, method, total, target: self.b.target() };
                self.solve_columns(tiles, &how, &b, own, &mut x)?
            }
        };
        Ok(LocalSolution::of_columns(columns, world.rank(), x, b).planned(planned_bytes))
    }

    /// This rank's columns of the right sides by themselves, with a factor so small that every rank has it. Collective.
    fn solve_small(
        &self,
        b: &Matrix,
        own: Range<usize>,
        alone: impl FnOnce(&Context, &Matrix, &Matrix) -> Result<Outcome<Matrix, SolveReport>>,
    ) -> Result<Outcome<Matrix, SolveReport>> {
        let site = self.site;
        let factor = self.factor.everywhere(site.world())?;
        let ctx = site.share().holding(factor.bytes() + b.bytes());
        let numbers = own.collect::<Vec<_>>();
        let solved = alone(&ctx, &factor, b).map_err(|error| with_column(error, &numbers));
        site.agreed(site.of_node(solved))
    }

    /// This rank's columns of the right sides into `x`, with the factor that stays where it is; the bytes of its plan.
    /// Collective.
    fn solve_columns(
        &self,
        tiles: &FactorTiles<'_>,
        how: &Substitutions<'_>,
        b: &Matrix,
        own: Range<usize>,
        x: &mut Matrix,
    ) -> Result<u64> {
        let site = self.site;
        site.agree(x.reshape(tiles.order(), own.len(), self.precision_bits))?;
        let scale = (how.list == CHOLESKY).then(|| tiles.row_exponents(site)).transpose()?;
        let pivots = tiles.pivots(site.world())?;
        let limited = site.ctx.memory_bytes().is_some();
        let source =
            StreamSource { team: site.team, factor: self.factor, pivots: &pivots, scale: scale.as_deref(), limited };
        let right = Right { b: b.view(), alpha: self.alpha.clone(), first_column: own.start, transposed: false };
        let solved = columns::solve_columns(&site.share(), source, tiles, how, right, x);
        site.agreed(site.of_node(solved))
    }
}

/// Memory for a rank's columns of the right sides and of the solution: that of an earlier call, without a limit.
fn take_columns(ctx: &Context) -> [Matrix; 2] {
    let kept = std::mem::take(&mut ctx.workspace().columns);
    match ctx.memory_bytes() {
        None => kept.try_into().unwrap_or_default(),
        Some(_) => Default::default(),
    }
}

/// The ranks of this node, where the ranks of a node make the tiles of a triangle together from a factor in tiles of
/// `factor_tile` rows: where all of them use the same kernel and no devices. Only by norms, since for entrywise
/// accuracy every rank reads all entries. Collective.
///
/// # Errors
/// [`Error::Transport`].
fn ranks_together(
    Site { ctx, team }: Site<'_>,
    order: usize,
    factor_tile: usize,
    accuracy: Accuracy,
) -> Result<Option<NodeShared>> {
    let most = team.layout().nodes.iter().map(Vec::len).max().unwrap_or(1);
    if most == 1 || accuracy != Accuracy::Norm || order < TOGETHER_ROWS {
        return Ok(None);
    }
    // A kernel may lay out tiles in another way where some instructions are hidden.
    let (kernel, on_cpu, level) = (ctx.kernel().name(), ctx.devices().is_empty(), processor::level().name());
    let alike = alike(team.world(), &(kernel, on_cpu, level))?;
    Ok((alike && on_cpu).then_some(NodeShared {
        ranks: team.ranks_here() as usize,
        factor_tile,
        one_node: team.layout().nodes.len() == 1,
    }))
}

/// The kernel of first tries of this rank in bands of at most `columns` columns. Tiles of a triangle that the ranks of
/// a node make together lie in one window, in the form of one kernel: the one that suits all of these ranks, or the
/// context's where they differ. Collective.
///
/// # Errors
/// [`Error::Transport`].
fn first_kernel(team: &Team, memory: &SolveMemory, columns: usize) -> Result<FirstTryKernel> {
    let Some(NodeShared { ranks, .. }) = memory.together else { return Ok(FirstTryKernel::Suited) };
    let suited = memory.suited_kernel(columns, ranks);
    let alike = alike(team.node(), suited.map_or("", |kernel| kernel.name()))?;
    Ok(suited.filter(|_| alike).map_or(FirstTryKernel::Own, FirstTryKernel::Agreed))
}

/// Whether every rank takes the whole factor: it is one block that is solved scalar by scalar.
fn is_small(order: usize, method: Method) -> bool {
    method.path == Path::Parts && order <= SCALAR_ROWS
}

/// Bytes of a rank that has all right sides, of `right_bits` bits, and their unknowns.
fn vectors_bytes(ctx: &Context, shape: SystemShape, right_bits: u32, precision_bits: u32) -> u64 {
    // Each right side has its unknowns at the same time, and sums that are twice as long.
    3 * bytes(ctx, shape, precision_bits) + shape.right_bytes(right_bits)
}

/// The columns of `rank`: whole panels, evenly.
pub(super) fn panel_share(cols: usize, ranks: usize, rank: usize) -> Range<usize> {
    let panels = even_share(cols.div_ceil(PANEL_ROWS), ranks, rank);
    panels.start * PANEL_ROWS..(panels.end * PANEL_ROWS).min(cols)
}

/// The columns of all ranks.
pub(super) fn panel_columns(shape: SystemShape, ranks: usize) -> Distribution {
    let SystemShape { order, columns } = shape;
    let starts = (0..ranks).map(|rank| panel_share(columns, ranks, rank).start.min(columns)).chain([columns]).collect();
    Distribution::col_blocks(order, starts)
}

/// The layout of a solution found by columns on the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SolutionLayout {
    /// These tiles, made while the memory of a try in fixed point is still kept.
    Tiles(TileMap),
    /// Memory of the caller.
    Caller,
}

impl SolutionLayout {
    /// Bytes of this rank's tiles of a solution of `total` columns, of which it finds as many as `own` has, and of the
    /// messages that bring the columns to the tiles.
    pub fn result_bytes(self, own: SystemShape, total: usize, precision_bits: u32, world: &dyn Transport) -> u64 {
        let (rank, ranks) = (world.rank(), world.size());
        let SystemShape { order, columns } = own;
        let [given, all] = [columns, total].map(|columns| Matrix::bytes_for(order, columns, precision_bits));
        match self {
            SolutionLayout::Tiles(map) => {
                let taken = DistMatrix::bytes_for(&map, rank, precision_bits);
                taken + travel::tile_message_bytes(&map, ranks, precision_bits, given, taken)
            }
            SolutionLayout::Caller => {
                let share = all.div_ceil(ranks as u64);
                travel::redistribution_bytes(ranks, (order, precision_bits), (given, share))
            }
        }
    }
}

/// Bytes of the buffers for entries of the factor on their way between ranks: in a solve by parts at most a piece, and
/// on one rank only the blocks on the diagonal.
pub(super) fn buffer_bytes(path: Path, cut: &TriangleCut, factor_bits: u32, ranks: usize) -> u64 {
    let entries = match (path, ranks) {
        (Path::Tiles, _) => cut.order * cut.order,
        (_, 1) => cut.order.min(SCALAR_ROWS).pow(2),
        _ => cut.most_piece_entries(),
    };
    message_bytes(entries, factor_bits, ranks)
}

/// The substitutions, their working precision and their promise.
pub(super) struct Substitutions<'a> {
    pub list: &'a [Substitution],
    pub working_bits: u32,
    pub method: Method,
    /// Right sides of all ranks.
    pub total: usize,
    /// Where the solution goes.
    pub target: SolutionLayout,
}

/// Solves for the right sides, this rank's own columns of all `total`, into `x`, by substitutions with the factor that
/// `source` has: in fixed point while its rows are streamed, where the path is by tiles, and by parts that all ranks
/// solve together for columns that outgrow every try; returns the bytes of the plan. Collective.
///
/// # Errors
/// As [`crate::distributed::solve`].
pub(super) fn solve_columns(
    ctx: &Context,
    source: StreamSource<'_>,
    tiles: &FactorTiles<'_>,
    &Substitutions { list, working_bits, method, total, target }: &Substitutions<'_>,
    right: Right<'_>,
    x: &mut Matrix,
) -> Result<u64> {
    let Method { path, accuracy } = method;
    let (site, order) = (Site { ctx, team: source.team }, tiles.order());
    let world = site.world();
    let (mut steps, mut cuts) = (Vec::new(), Vec::new());
    let factor_bits = source.factor.precision_bits();
    let pieces = blocks::pieces(order, factor_bits, accuracy, world.size());
    for &substitution in list {
        let reversed = substitution == Substitution::Upper;
        let parts = |cut| {
            let blocks = RankBlocks {
                source,
                transposed: reversed,
                pieces,
                accuracy,
                piece: Matrix::empty(),
                buffers: MessageBuffers::default(),
            };
            let uplo = if reversed { Uplo::Upper } else { Uplo::Lower };
            Parts { blocks: Box::new(blocks), uplo, diag: Diag::NonUnit, cut }
        };
        let cut = TriangleCut { order, working_bits, first_try_bits: None, accuracy, pieces };
        if path != Path::Tiles {
            cuts.push(cut);
            steps.push(SolveStep::Triangle(TriangleSolver::of_sources(cut, None, Some(parts(cut)))));
            continue;
        }
        let exponents = match (reversed, source.scale) {
            (false, Some(_)) => vec![0; order], // the scale is that of these norms
            (false, None) => tiles.row_exponents(site)?,
            (true, scale) => tiles.col_exponents(site, scale)?.into_iter().rev().collect(),
        };
        let stream = site.agreed(Stream::new(ctx, source, reversed))?;
        let form = LowerForm { reversed, unit: false, exponents };
        let fixed = FixedTriangle::of_rows(Box::new(stream), form, working_bits, accuracy);
        let cut = TriangleCut { first_try_bits: fixed.tries().next(), ..cut };
        cuts.push(cut);
        steps.push(SolveStep::Triangle(TriangleSolver::of_sources(cut, Some(fixed), Some(parts(cut)))));
    }
    let piece_row_bytes = Matrix::bytes_for(1, order, factor_bits);
    let message_bytes = buffer_bytes(path, &cuts[0], factor_bits, world.size());
    let result = match path {
        Path::Tiles => target.result_bytes(SystemShape { order, columns: x.cols() }, total, x.precision_bits(), world),
        _ => 0,
    };
    let right_bytes = Matrix::bytes_for(order, x.cols(), right.b.precision_bits());
    let mut memory = SolveMemory {
        ctx: ctx.holding(right_bytes + x.bytes() + result),
        cuts,
        piece_row_bytes,
        message_bytes,
        left: UnsolvedColumns::shared(total),
        together: ranks_together(site, order, source.factor.map().tile_size, accuracy)?,
        first_tries: FirstTryKernel::Own,
    };
    memory.first_tries = first_kernel(source.team, &memory, Bands::widest(right.b.cols()).columns)?;
    let mut solve = Solve { memory, team: source.team, steps, scale: source.scale, order, working_bits };
    let (bands, planned_bytes) = site.agreed(solve.bands(right.b.cols()))?;
    let left = solve.run(bands, &right, &mut x.view_mut())?;
    debug_assert!(left.is_empty(), "parts solve for all columns");
    Ok(planned_bytes)
}
