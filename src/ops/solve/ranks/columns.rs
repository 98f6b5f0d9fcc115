//! Whole columns of the right-hand sides on each rank: solved there in fixed point while the factor's rows are
//! streamed, or by parts with all ranks.

use crate::comm::Transport;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::tiles::PANEL_ROWS;
use crate::matrix::{Diag, Matrix, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::travel;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::fixed::{FixedTriangle, LowerForm};
use crate::ops::solve::memory::{Bands, FirstTryKernel, SolveMemory, UnsolvedColumns};
use crate::ops::solve::parts::Parts;
use crate::ops::solve::path::{Method, Path, SCALAR_ROWS};
use crate::ops::solve::problem::{Substitution, SystemShape};
use crate::ops::solve::ranks::blocks::{self, RankBlocks};
use crate::ops::solve::ranks::factor::FactorTiles;
use crate::ops::solve::ranks::source::{MessageBuffers, StreamSource, message_bytes};
use crate::ops::solve::ranks::stream::Stream;
use crate::ops::solve::ranks::{first_kernel, ranks_together};
use crate::ops::solve::run::{Right, Solve};
use crate::ops::solve::step::{SolveStep, TriangleSolver};
use crate::plan::even_share;
use crate::site::Site;
use crate::tile::{Distribution, TileMap};
use std::ops::Range;

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
    /// Bytes of this rank's tiles of a solution of `total` columns, of which it computes the number in `own`, and of
    /// the messages that bring the columns to the tiles.
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
    /// Right-hand sides of all ranks.
    pub total: usize,
    /// Where the solution goes.
    pub target: SolutionLayout,
}

/// Solves for the right-hand sides, this rank's own columns of all `total`, into `x`, by substitutions with the factor
/// that `source` has: in fixed point while its rows are streamed, where the path is by tiles, and by parts that all
/// ranks solve together for columns that outgrow every try; returns the bytes of the plan. Collective.
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
