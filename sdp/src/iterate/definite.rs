//! Cholesky factors of positive definite matrices, of one process or in tiles over all ranks: the same bits.

use crate::calls::{Call, call, cholesky_with, syrk_with, trsm_with};
use crate::iterate::site::Site;
use crate::numbers::{Arithmetic, column};
use crate::ranks::{ROOT, Ranks};
use sunzi::blas::HadamardOptions;
use sunzi::blas::hadamard_into;
use sunzi::distributed::{self, DistCholesky, DistCholeskyOptions, DistMatrix, DistOptions, Distribution, TileMap};
use sunzi::{Accuracy, Cholesky, CholeskyOptions, Context, Error, Head, Matrix, MatrixView, Op};
use sunzi::{Result, Symmetric, SyrkOptions, TrsmOptions};

/// A factor `L`.
pub enum Factor {
    /// A factor in this process.
    Own(Cholesky),
    /// In tiles over all ranks, for solves with this accuracy.
    Tiles(DistMatrix, Accuracy),
    /// The factor of a diagonal matrix, in this process: the inverses of its entries, a column.
    Diagonal(Matrix),
}

/// The context of calls of all ranks together: their limit would be that of the node, and the plan has counted them.
fn of_all_ranks(k: Arithmetic<'_>) -> Context {
    k.ctx.with_memory_bytes(None)
}

/// The result of a factorisation, where the matrix is positive definite.
fn found<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Error::NotPositiveDefinite { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The factor of a matrix, of which the lower triangle is read, or nothing where that is not positive definite at this
/// precision.
///
/// # Errors
/// The errors of [`cholesky_with`] other than that.
pub fn cholesky(k: Arithmetic<'_>, matrix: &Matrix, accuracy: Accuracy) -> Result<Option<Cholesky>> {
    let options = CholeskyOptions::new().accuracy(accuracy);
    let made = found(cholesky_with(k.ctx, Symmetric::lower(matrix), k.bits, &options))?;
    Ok(made.map(|outcome| outcome.result))
}

impl Factor {
    /// The factor of a diagonal matrix of this process, whose entries are a column; or the first row that is not
    /// positive.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn diagonal(k: Arithmetic<'_>, entries: &Matrix) -> Result<std::result::Result<Factor, usize>> {
        if let Some(row) = first_refused(entries) {
            return Ok(Err(row));
        }
        Ok(Ok(Factor::Diagonal(column(entries.rows(), k.bits, |row| entries.float(row, 0).recip_sqrt())?)))
    }

    /// Whether all ranks have a part of it.
    pub fn is_in_tiles(&self) -> bool {
        matches!(self, Factor::Tiles(..))
    }

    /// The factor of a matrix of this process: see [`cholesky`].
    ///
    /// # Errors
    /// The errors of [`cholesky`].
    pub fn own(k: Arithmetic<'_>, matrix: &Matrix, accuracy: Accuracy) -> Result<Option<Factor>> {
        Ok(cholesky(k, matrix, accuracy)?.map(Factor::Own))
    }

    /// The factor of the lower triangle of a matrix that the root has. Collective.
    ///
    /// # Errors
    /// As [`Factor::own`].
    pub fn of_root(site: &Site<'_>, order: usize, whole: Option<Matrix>) -> Result<Option<Factor>> {
        let (ranks, k) = (&site.share.ranks, site.arithmetic());
        if let (false, Some(whole)) = (ranks.are_several(), &whole) {
            let ctx = k.beside(whole.bytes());
            return Factor::own(Arithmetic { ctx: &ctx, ..k }, whole, Accuracy::Entrywise);
        }
        let options = DistCholeskyOptions::default().accuracy(Accuracy::Entrywise);
        let local = ranks.agreed(whole.map_or_else(|| Matrix::zeros(0, order, k.bits), Ok))?;
        let made = ranks.together(|team| {
            let ctx = &of_all_ranks(k);
            let map = distributed::cholesky_tiles(ctx, team, order, k.bits, &options)?;
            let place = Distribution::on_root(order, order, team.size(), ROOT);
            let tiles = DistMatrix::from_local(team.world(), &place, &local, map)?;
            drop(local);
            distributed::cholesky_with(ctx, team, &tiles, k.bits, &options)
        });
        Ok(found(made)?.map(|DistCholesky { factor, .. }| Factor::Tiles(factor, Accuracy::Entrywise)))
    }

    /// The factor of the Gram matrix of all rows on all ranks, with an error bounded by norms. Collective.
    ///
    /// # Errors
    /// As [`Factor::own`].
    pub fn of_gram(site: &Site<'_>, rows: &[MatrixView<'_>], width: usize) -> Result<Option<Factor>> {
        let (ranks, k) = (&site.share.ranks, site.arithmetic());
        if !ranks.are_several() {
            let mut all = Matrix::zeros(rows.iter().map(MatrixView::rows).sum(), width, k.bits)?;
            let mut first = 0;
            for part in rows {
                all.view_mut().block(first..first + part.rows(), 0..width)?.copy_from(*part);
                first += part.rows();
            }
            let gram = syrk_with(k.ctx, &all, k.bits, &SyrkOptions::new().accuracy(Accuracy::Norm))?.result;
            return Factor::own(k, gram.as_matrix(), Accuracy::Norm);
        }
        let made = ranks.together(|team| {
            let ctx = &of_all_ranks(k);
            let gram = distributed::syrk(ctx, team, rows, k.bits, &DistOptions::new().accuracy(Accuracy::Norm))?.result;
            distributed::cholesky_with(ctx, team, &gram, k.bits, &DistCholeskyOptions::new().accuracy(Accuracy::Norm))
        });
        Ok(found(made)?.map(|DistCholesky { factor, .. }| Factor::Tiles(factor, Accuracy::Norm)))
    }

    /// `L^-1 B`, or `L^-T B`, for a matrix that every rank has where the factor is in tiles; entry by entry.
    /// Collective there.
    ///
    /// # Errors
    /// The errors of [`trsm_with`].
    pub fn substituted(&self, ranks: &Ranks, k: Arithmetic<'_>, b: &Matrix, op: Op) -> Result<Matrix> {
        let options = TrsmOptions::new().op(op).accuracy(Accuracy::Entrywise);
        match self {
            Factor::Own(factor) => Ok(trsm_with(k.ctx, factor.factor(), b, k.bits, &options)?.result),
            Factor::Tiles(factor, _) => in_tiles(ranks, factor, b, |team, b| {
                Ok(distributed::trsm_with(&of_all_ranks(k), team, factor, b, k.bits, &options)?.solution)
            }),
            Factor::Diagonal(inverses) => scaled(k, inverses, b),
        }
    }

    /// `L^-T L^-1 B`, as [`Factor::substituted`].
    ///
    /// # Errors
    /// The errors of [`Cholesky::solve`].
    pub fn solve(&self, ranks: &Ranks, k: Arithmetic<'_>, b: &Matrix) -> Result<Matrix> {
        match self {
            Factor::Own(factor) => {
                call(Call { verb: "solve", shape: (b.rows(), b.cols(), b.rows()), bits: k.bits }, || {
                    factor.solve(k.ctx, b, k.bits)
                })
            }
            Factor::Tiles(factor, accuracy) => in_tiles(ranks, factor, b, |team, b| {
                Ok(distributed::solve_with(&of_all_ranks(k), team, factor, b, k.bits, *accuracy)?.solution)
            }),
            Factor::Diagonal(inverses) => scaled(k, inverses, &scaled(k, inverses, b)?),
        }
    }
}

/// The first entry of a diagonal, a column, that is not positive.
pub fn first_refused(diagonal: &Matrix) -> Option<usize> {
    let heads = diagonal.parts().0.iter().map(|&head| Head(head));
    heads.into_iter().position(|head| head.is_zero() || head.is_negative())
}

/// The rows of a matrix, each times the number of its own.
fn scaled(k: Arithmetic<'_>, factors: &Matrix, b: &Matrix) -> Result<Matrix> {
    let (rows, cols) = (b.rows(), b.cols());
    call(Call { verb: "hadamard", shape: (rows, cols, 1), bits: k.bits }, || {
        let mut scaled = Matrix::zeros(rows, cols, k.bits)?;
        for col in 0..cols {
            let column = (0..rows, col..col + 1);
            let pair = (factors.view(), b.view().block(column.0.clone(), column.1.clone())?);
            let place = scaled.view_mut().block(column.0, column.1)?;
            hadamard_into(k.ctx, &[pair], k.bits, &HadamardOptions::new(), place)?;
        }
        Ok(scaled)
    })
}

/// Gives out the right-hand sides, which every rank has, in the tiles of the factor, and the solution to every rank.
fn in_tiles(
    ranks: &Ranks,
    factor: &DistMatrix,
    b: &Matrix,
    solve: impl FnOnce(&distributed::Team, &DistMatrix) -> Result<DistMatrix>,
) -> Result<Matrix> {
    let everywhere = ranks.on_all(b.rows(), b.cols());
    let map = TileMap { rows: b.rows(), cols: b.cols(), triangle: None, ..*factor.map() };
    ranks.together(|team| {
        let tiles = DistMatrix::from_local(team.world(), &everywhere, b, map)?;
        solve(team, &tiles)?.to_local(team.world(), &everywhere)
    })
}
