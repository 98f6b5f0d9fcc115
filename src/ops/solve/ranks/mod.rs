//! Solves with a triangular factor in tiles over many ranks, which stays where it is.

mod operands;
mod plan;
mod source;
mod stream;
mod vector;
mod verbs;

use crate::comm::{Reduction, Said, Transport, agreed, alike};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::processor;
use crate::matrix::{Destination, Diag, Matrix, Uplo};
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::travel;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::band::with_column;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::fixed::{FixedTriangle, LowerForm};
use crate::ops::solve::memory::{Bands, FirstTryKernel, SolveMemory, UnsolvedColumns};
use crate::ops::solve::parts::Parts;
pub use crate::ops::solve::problem::TrsmBits;
use crate::ops::solve::problem::{CHOLESKY, Method, Path, SCALAR_ROWS, Substitution, SystemShape};
use crate::ops::solve::ranks::operands::{FactorTiles, RightSides};
use crate::ops::solve::ranks::source::{StreamSource, message_bytes};
use crate::ops::solve::ranks::stream::{RankBlocks, Stream, pieces};
use crate::ops::solve::run::{Right, Solve, SolveStep, TriangleSolver};
use crate::ops::solve::system::SolveReport;
use crate::ops::solve::tiles::NodeShared;
use crate::plan::even_share;
use crate::site::Site;
use crate::tile::{Distribution, TileMap};
pub use operands::LocalSolution;
pub use plan::{plan_solve, plan_solve_local, plan_trsm, plan_trsm_local};
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
    /// Scalar of the right-hand sides; `None` is 1.
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
                "{operation}: ranks differ in shapes, tiles, precision, accuracy or scalar: all ranks must pass the \
                 same"
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
            return Err(Error::InvalidArgument(format!(
                "{operation}: the first matrix must be a lower triangular factor L, but this one is stored as \
                 symmetric: factor it first, and pass the factor"
            )));
        }
        if map.triangle == Some(Uplo::Upper) {
            return Err(upper_refused(operation));
        }
        Ok(map.rows)
    }

    /// The shape of the system, once the arguments are checked.
    fn shape(&self, tiles: &FactorTiles<'_>) -> SystemShape {
        SystemShape { order: tiles.order(), columns: self.b.shape().1 }
    }

    /// Bits of factor, right sides and solution.
    fn bits(&self) -> TrsmBits {
        let (triangle, right) = (self.factor.precision_bits(), self.b.precision_bits());
        TrsmBits { triangle, right, solution: self.precision_bits }
    }

    /// All right-hand sides by the path that one process takes; `alone` solves a small system for some columns on one
    /// rank, with the whole factor. Collective.
    fn solve(
        &self,
        tiles: &FactorTiles<'_>,
        substitutions: &[Substitution],
        working_bits: u32,
        alone: impl FnOnce(&Context, &Matrix, &Matrix, Destination<'_>) -> Result<SolveReport>,
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
                x = Matrix::empty();
                self.solve_small(&b, own, alone, &mut x)?
            }
            false => {
                let (b, alpha) = (b.view(), self.alpha.clone());
                let right = Right { b, alpha, first_column: own.start, transposed: false };
                self.solve_columns(tiles, substitutions, working_bits, method, &right, &mut x)?
            }
        };
        Ok(LocalSolution::of_columns(columns, world.rank(), x, b).planned(planned_bytes))
    }

    /// This rank's columns of the right sides by themselves into `x`, with a factor so small that every rank has it;
    /// the bytes of the plan. Collective.
    fn solve_small(
        &self,
        b: &Matrix,
        own: Range<usize>,
        alone: impl FnOnce(&Context, &Matrix, &Matrix, Destination<'_>) -> Result<SolveReport>,
        x: &mut Matrix,
    ) -> Result<u64> {
        let site = self.site;
        let factor = self.factor.everywhere(site.world())?;
        let ctx = site.share().holding(factor.bytes() + b.bytes());
        let numbers = own.collect::<Vec<_>>();
        let solved = alone(&ctx, &factor, b, x.into()).map_err(|error| with_column(error, &numbers));
        site.agreed(site.of_node(solved.map(|report| report.planned_bytes)))
    }

    /// This rank's columns of the right sides into `x`, with the factor that stays where it is: in fixed point while
    /// its rows are streamed, where the path is by tiles, and by parts that all ranks solve together for columns that
    /// outgrow every try; the bytes of the plan. Collective.
    fn solve_columns(
        &self,
        tiles: &FactorTiles<'_>,
        substitutions: &[Substitution],
        working_bits: u32,
        method: Method,
        right: &Right<'_>,
        x: &mut Matrix,
    ) -> Result<u64> {
        let (site, own) = (self.site, SystemShape { order: tiles.order(), columns: right.b.cols() });
        site.agree(x.reshape(own.order, own.columns, self.precision_bits))?;
        let scale = (substitutions == CHOLESKY).then(|| tiles.row_exponents(site)).transpose()?;
        let pivots = &tiles.pivots(site.world())?;
        let source = StreamSource { team: site.team, factor: self.factor, scale: scale.as_deref() };
        let sizes =
            ColumnSizes { own, total: self.b.shape().1, bits: self.bits(), path: method.path, target: self.b.target() };
        let share = &site.share();
        let triangles = ColumnTriangles { site: site.with(share), source, tiles, pivots, working_bits, method };
        let solved = triangles.solve(substitutions, &sizes, right, x);
        site.agreed(site.of_node(solved))
    }
}

/// The error for a factor that is stored as its upper triangle.
fn upper_refused(operation: &str) -> Error {
    Error::InvalidArgument(format!(
        "{operation}: the tiles of the factor hold an upper triangle, but must hold the lower triangular L of A = L L^T"
    ))
}

/// Memory for a rank's columns of the right-hand sides and of the solution: that of an earlier call, without a limit.
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

/// The kernel of first tries of this rank on `own` columns in bands. Tiles of a triangle that the ranks of a node make
/// together lie in one window, in the form of one kernel: the one that suits all of these ranks, or the context's where
/// they differ. Collective.
///
/// # Errors
/// [`Error::Transport`].
fn first_kernel(team: &Team, memory: &SolveMemory, own: usize) -> Result<FirstTryKernel> {
    let Some(NodeShared { ranks, .. }) = memory.together else { return Ok(FirstTryKernel::Suited) };
    let suited = memory.suited_kernel(Bands::widest(own).columns, ranks);
    let alike = alike(team.node(), suited.map_or("", |kernel| kernel.name()))?;
    Ok(suited.filter(|_| alike).map_or(FirstTryKernel::Own, FirstTryKernel::Agreed))
}

/// Whether every rank takes the whole factor: it is one block that is solved scalar by scalar.
fn is_small(order: usize, method: Method) -> bool {
    method.path == Path::Parts && order <= SCALAR_ROWS
}

/// The columns of `rank`: whole panels, evenly.
fn panel_share(cols: usize, ranks: usize, rank: usize) -> Range<usize> {
    let panels = even_share(cols.div_ceil(PANEL_ROWS), ranks, rank);
    panels.start * PANEL_ROWS..(panels.end * PANEL_ROWS).min(cols)
}

/// The columns of all ranks.
fn panel_columns(shape: SystemShape, ranks: usize) -> Distribution {
    let SystemShape { order, columns } = shape;
    let starts = (0..ranks).map(|rank| panel_share(columns, ranks, rank).start.min(columns)).chain([columns]).collect();
    Distribution::col_blocks(order, starts)
}

/// The layout of a solution found by columns on the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SolutionLayout {
    /// These tiles, made while the memory of a try in fixed point is still kept.
    Tiles(TileMap),
    /// Memory of the caller.
    Caller,
}

impl SolutionLayout {
    /// Bytes of this rank's tiles of a solution of `total` columns, and of the messages that bring the columns to the
    /// tiles; this rank computes the columns of `own`.
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

/// The sizes that the memory of a rank's columns depends on.
struct ColumnSizes {
    /// This rank's part of the system.
    own: SystemShape,
    /// Right-hand sides of all ranks.
    total: usize,
    bits: TrsmBits,
    path: Path,
    /// The destination of the solution.
    target: SolutionLayout,
}

impl ColumnSizes {
    /// Bytes of the messages that bring the solution to its tiles, and of these.
    fn result_bytes(&self, world: &dyn Transport) -> u64 {
        match self.path {
            Path::Tiles => self.target.result_bytes(self.own, self.total, self.bits.solution, world),
            _ => 0,
        }
    }

    /// Bytes of the buffers for entries of the factor on their way between ranks: in a solve by parts at most a piece,
    /// and on one rank only the blocks on the diagonal.
    fn buffer_bytes(&self, cut: &TriangleCut, ranks: usize) -> u64 {
        let entries = match (self.path, ranks) {
            (Path::Tiles, _) => cut.order * cut.order,
            (_, 1) => cut.order.min(SCALAR_ROWS).pow(2),
            _ => cut.most_piece_entries(),
        };
        message_bytes(entries, self.bits.triangle, ranks)
    }

    /// The memory of the solve with triangles that are cut so, on a site with this rank's share of the limit.
    fn memory(&self, site: Site<'_>, cuts: Vec<TriangleCut>, together: Option<NodeShared>) -> SolveMemory {
        let (own, world) = (self.own, site.world());
        let held_bytes = own.right_bytes(self.bits.right) + own.right_bytes(self.bits.solution);
        SolveMemory {
            piece_row_bytes: Matrix::bytes_for(1, own.order, self.bits.triangle),
            message_bytes: self.buffer_bytes(&cuts[0], world.size()),
            left: UnsolvedColumns::shared(self.total),
            together,
            ..SolveMemory::new(site.ctx.holding(held_bytes + self.result_bytes(world)), cuts)
        }
    }
}

/// A factor in tiles, as the triangles of a solve by columns.
struct ColumnTriangles<'a> {
    /// With this rank's share of the limit.
    site: Site<'a>,
    source: StreamSource<'a>,
    tiles: &'a FactorTiles<'a>,
    /// The diagonal of the factor.
    pivots: &'a Matrix,
    working_bits: u32,
    method: Method,
}

impl<'a> ColumnTriangles<'a> {
    /// Solves for the right sides, this rank's own columns, into `x`; returns the bytes of the plan. Collective.
    fn solve(
        &self,
        substitutions: &[Substitution],
        sizes: &ColumnSizes,
        right: &Right<'_>,
        x: &mut Matrix,
    ) -> Result<u64> {
        let ColumnTriangles { site, source, tiles, method, .. } = *self;
        let own = right.b.cols();
        let mut steps = Vec::new();
        for substitution in substitutions {
            steps.push(SolveStep::Triangle(self.triangle(*substitution == Substitution::Upper)?));
        }
        let cuts = steps.iter().filter_map(SolveStep::cut).collect();
        let together = ranks_together(site, tiles.order(), source.factor.map().tile_size, method.accuracy)?;
        let mut memory = sizes.memory(site, cuts, together);
        memory.first_tries = first_kernel(site.team, &memory, own)?;
        let mut solve = Solve { memory, team: site.team, steps, scale: source.scale };
        let (bands, planned_bytes) = site.agreed(solve.bands(own))?;
        let left = solve.run(bands, right, &mut x.view_mut())?;
        debug_assert!(left.is_empty(), "parts solve for all columns");
        Ok(planned_bytes)
    }

    /// The factor, or its transpose, prepared: its rows for fixed point where the path is by tiles, and its blocks.
    /// Collective.
    fn triangle(&self, reversed: bool) -> Result<TriangleSolver<'a>> {
        let ColumnTriangles { site, source, tiles, working_bits, method: Method { path, accuracy }, .. } = *self;
        let order = tiles.order();
        let fixed = if path == Path::Tiles { Some(self.fixed_point(reversed)?) } else { None };
        let first_try_bits = fixed.as_ref().and_then(|fixed| fixed.tries().next());
        let pieces = pieces(order, source.factor.precision_bits(), accuracy, site.world().size());
        let cut = TriangleCut { order, working_bits, first_try_bits, accuracy, pieces };
        let uplo = if reversed { Uplo::Upper } else { Uplo::Lower };
        let blocks = Box::new(RankBlocks::new(source, reversed, pieces, accuracy));
        Ok(TriangleSolver::of_sources(cut, fixed, Some(Parts { blocks, uplo, diag: Diag::NonUnit, cut })))
    }

    /// Its rows, in the order of the unknowns. Collective.
    fn fixed_point(&self, reversed: bool) -> Result<FixedTriangle<'a>> {
        let ColumnTriangles { site, source, tiles, .. } = *self;
        let exponents = match (reversed, source.scale) {
            (false, Some(_)) => vec![0; tiles.order()], // the scale is that of these norms
            (false, None) => tiles.row_exponents(site)?,
            (true, scale) => tiles.col_exponents(site, scale)?.into_iter().rev().collect(),
        };
        let stream = site.agreed(Stream::new(site.ctx, source, self.pivots, reversed))?;
        let form = LowerForm { reversed, unit: false, exponents };
        Ok(FixedTriangle::of_rows(Box::new(stream), form, self.working_bits, self.method.accuracy))
    }
}
