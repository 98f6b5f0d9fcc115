//! Cholesky of a distributed matrix, gathered to one rank for the factorisation itself.

use crate::comm::{agree, agreed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Uplo};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, CholeskyReport, cholesky_with};
use crate::ops::distributed::{DistMatrix, Team};
use crate::plan::TileMap;

/// The rank that factors.
const ROOT: usize = 0;

/// The factor of a distributed matrix.
#[derive(Debug)]
pub struct DistCholesky {
    /// This rank's tiles of `L`, distributed like the lower triangle of the matrix.
    pub factor: DistMatrix,
    /// The rank that the matrix was gathered on, whose threads alone computed the factor.
    pub gathered_on: usize,
    /// How it was computed; on the rank that did.
    pub report: Option<CholeskyReport>,
}

/// `A = L L^T` for a symmetric positive definite matrix in tiles over the ranks of `team`. Collective.
///
/// The matrix is gathered on rank 0, factored there by [`crate::cholesky_with`], and the factor is shared out again:
/// [`DistCholesky::gathered_on`] says so. The bits are those of one process. Of a full matrix the lower triangle is
/// read.
/// Memory: rank 0 takes the whole matrix and the factor beside its tiles, within the context's limit if it has one.
///
/// # Errors
/// As [`crate::cholesky_with`], on every rank, as [`Error::Rank`]; [`Error::ShapeMismatch`] for a matrix that is not
/// square; [`Error::Transport`].
pub fn cholesky(ctx: &Context, team: &Team, a: &DistMatrix, precision_bits: u32) -> Result<DistCholesky> {
    let (world, map) = (team.world(), *a.map());
    if map.rows != map.cols {
        return Err(Error::ShapeMismatch {
            operation: "cholesky",
            left_rows: map.rows,
            left_cols: map.cols,
            right_rows: map.cols,
            right_cols: map.rows,
        });
    }
    let uplo = map.triangle.unwrap_or(Uplo::Lower);
    let gathered_bytes = Matrix::bytes_for(map.rows, map.cols, a.precision_bits());
    agree(world, if team.rank() == ROOT { ctx.admit(gathered_bytes) } else { Ok(()) })?;
    let whole = a.gather(world, ROOT)?;
    let computed =
        whole.map(|whole| cholesky_with(ctx, &whole, precision_bits, &CholeskyOptions { uplo, ..Default::default() }));
    let (factor, report) = agreed(world, computed.transpose())?.map(Cholesky::into_parts).unzip();
    let map = TileMap { triangle: Some(Uplo::Lower), ..map };
    let factor = DistMatrix::scatter(world, ROOT, factor.as_ref(), map, precision_bits)?;
    Ok(DistCholesky { factor, gathered_on: ROOT, report })
}
