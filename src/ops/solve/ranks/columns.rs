//! Many right-hand sides: whole columns on each rank, solved there in fixed point while the factor's rows stream by.

use crate::comm::agreed;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::tiles::PANEL_ROWS;
use crate::matrix::Matrix;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::agreement::Agreement;
use crate::ops::solve::fixed::FixedPoint;
use crate::ops::solve::memory::SolveMemory;
use crate::ops::solve::problem::Substitution;
use crate::ops::solve::ranks::factor::FactorTiles;
use crate::ops::solve::ranks::stream::{Stream, StreamSource, row_bytes};
use crate::ops::solve::run::{Right, Solve};
use crate::ops::solve::step::{Step, TriangleSolver};
use crate::plan::even_share;
use crate::tile::Distribution;
use std::ops::Range;

/// The columns of `rank`: whole panels, evenly.
pub(super) fn panel_share(cols: usize, ranks: usize, rank: usize) -> Range<usize> {
    let panels = even_share(cols.div_ceil(PANEL_ROWS), ranks, rank);
    panels.start * PANEL_ROWS..(panels.end * PANEL_ROWS).min(cols)
}

/// The columns of all ranks.
pub(super) fn panel_columns((rows, cols): (usize, usize), ranks: usize) -> Distribution {
    let starts = (0..ranks).map(|rank| panel_share(cols, ranks, rank).start.min(cols)).chain([cols]).collect();
    Distribution::col_blocks(rows, starts)
}

/// What is substituted, at which working precision, and what that promises.
pub(super) struct Substitutions<'a> {
    pub list: &'a [Substitution],
    pub working_bits: u32,
    pub accuracy: Accuracy,
}

/// Solves for the right sides, this rank's own columns of all, into `x`, by substitutions with the
/// factor that `source` streams; the columns that outgrow every try are left alone, and returned. Collective.
///
/// # Errors
/// As [`crate::distributed::solve`].
pub(super) fn solve_columns(
    ctx: &Context,
    (source, tiles): (StreamSource<'_>, &FactorTiles<'_>),
    &Substitutions { list, working_bits, accuracy }: &Substitutions<'_>,
    right: Right<'_>,
    x: &mut Matrix,
) -> Result<Vec<usize>> {
    let (world, order) = (source.world, tiles.order());
    let (mut steps, mut cuts) = (Vec::new(), Vec::new());
    for &substitution in list {
        let reversed = substitution == Substitution::Upper;
        let exponents = match (reversed, source.scale) {
            (false, Some(_)) => vec![0; order], // the scale is that of these norms
            (false, None) => tiles.row_exponents(ctx, world)?,
            (true, scale) => tiles.col_exponents(ctx, world, scale)?.into_iter().rev().collect(),
        };
        let stream = agreed(world, Stream::new(source, reversed))?;
        let fixed = FixedPoint::of_rows(&stream, exponents, (reversed, false), (working_bits, accuracy));
        let solver = TriangleSolver::of_rows(fixed, Box::new(stream), working_bits);
        cuts.push(solver.cut());
        steps.push(Step::Triangle(solver));
    }
    let piece_row_bytes = row_bytes(order, source.factor.precision_bits());
    let memory = SolveMemory {
        ctx: ctx.holding(Matrix::bytes_for(order, x.cols(), right.b.precision_bits()) + x.bytes()),
        cuts,
        piece_row_bytes,
        by_parts: false,
    };
    let agreement = Agreement(Some(world));
    let mut solve = Solve { memory, agreement, steps, scale: source.scale, order, working_bits };
    let (bands, _) = agreed(world, solve.bands(right.b.cols()))?;
    solve.run(bands, &right, &mut x.view_mut())
}
