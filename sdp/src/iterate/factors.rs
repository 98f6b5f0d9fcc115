//! Factors and inverses of the blocks of X and Y, which the other steps of an iteration use.

use crate::block::Block;
use crate::calls::{syrk_with, trsm_with};
use crate::iterate::definite::{cholesky, first_refused};
use crate::iterate::memory::IterationStep;
use crate::iterate::point::Point;
use crate::iterate::side::Side;
use crate::iterate::site::Site;
use crate::numbers::{Arithmetic, column};
use crate::workers::TaskBytes;
use sunzi::{Accuracy, Cholesky, Matrix, Result, SyrkOptions, TrsmOptions};

/// The factors of a block of X and of Y.
pub struct ConeFactors {
    /// `X^-1`.
    pub x_inverse: Block,
    /// `L_X^-1`, of a dense block.
    pub x_lower_inverse: Option<Matrix>,
    /// `L_Y`, of a dense block.
    pub y_lower: Option<Matrix>,
}

/// The parts of one side.
enum SidePart {
    Primal {
        inverse: Block,
        lower_inverse: Option<Matrix>,
    },
    Dual(Option<Matrix>),
    /// It is not positive definite: by this row, of a diagonal.
    Refused(usize),
}

/// The lower factor, or nothing where the matrix is not positive definite at this precision.
fn lower(k: Arithmetic<'_>, matrix: &Matrix) -> Result<Option<Matrix>> {
    Ok(cholesky(k, matrix, Accuracy::Entrywise)?.map(Cholesky::into_factor))
}

fn primal(k: Arithmetic<'_>, block: &Block) -> Result<SidePart> {
    match block {
        Block::Diagonal(diagonal) => {
            if let Some(row) = first_refused(diagonal) {
                return Ok(SidePart::Refused(row));
            }
            let inverse = column(diagonal.rows(), k.bits, |row| diagonal.float(row, 0).recip())?;
            Ok(SidePart::Primal { inverse: Block::Diagonal(inverse), lower_inverse: None })
        }
        Block::Dense(matrix) => {
            let Some(lower) = lower(k, matrix)? else { return Ok(SidePart::Refused(0)) };
            let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
            let identity = Matrix::identity(matrix.rows(), 2)?;
            let held = lower.bytes() + identity.bytes();
            let inverse = trsm_with(&k.beside(held), &lower, &identity, k.bits, &options)?.result;
            let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
            let ctx = k.beside(held + inverse.bytes());
            let whole = syrk_with(&ctx, &inverse, k.bits, &options)?.result;
            Ok(SidePart::Primal { inverse: Block::Dense(whole.into_matrix()), lower_inverse: Some(inverse) })
        }
    }
}

fn dual(k: Arithmetic<'_>, block: &Block) -> Result<SidePart> {
    match block {
        Block::Diagonal(diagonal) => Ok(first_refused(diagonal).map_or(SidePart::Dual(None), SidePart::Refused)),
        Block::Dense(matrix) => Ok(lower(k, matrix)?.map_or(SidePart::Refused(0), |lower| SidePart::Dual(Some(lower)))),
    }
}

/// Factors of the blocks of this rank, or the first block of the caller's program, by its number among all, that is not
/// positive definite. Collective.
///
/// # Errors
/// The errors of the library.
pub fn factor(site: &Site<'_>, point: &Point) -> Result<std::result::Result<Vec<ConeFactors>, (usize, Side)>> {
    let (cones, bits) = (site.cones, site.bits);
    let both = (0..cones.len()).flat_map(|at| [(at, Side::Primal), (at, Side::Dual)]);
    let tasks = both.collect::<Vec<_>>();
    let cost = |&(at, side): &(usize, Side)| cones[at].shape.cost() * if side == Side::Primal { 6 } else { 1 };
    let bytes = |&(at, side): &(usize, Side)| {
        site.crew.ledger().map_or_else(TaskBytes::default, |ledger| ledger.factor(at, side))
    };
    let workers = site.at(IterationStep::Next).workers;
    let parts = site.agreed(workers.map(&tasks, (cost, bytes), |ctx, &(at, side)| {
        let k = Arithmetic { ctx, bits };
        match side {
            Side::Primal => primal(k, &point.primal[at]),
            Side::Dual => dual(k, &point.dual[at]),
        }
    }))?;
    let place = |(&(at, side), part): (&(usize, Side), &SidePart)| match part {
        SidePart::Refused(row) => {
            let block = site.share.callers_block(site.share.own[at], *row);
            Some(2 * block as u64 + u64::from(side == Side::Dual))
        }
        SidePart::Primal { .. } | SidePart::Dual(_) => None,
    };
    let refused = tasks.iter().zip(&parts).filter_map(place).min();
    let first = site.share.ranks.least(refused.unwrap_or(u64::MAX))?;
    if first != u64::MAX {
        return Ok(Err((first as usize / 2, if first % 2 == 0 { Side::Primal } else { Side::Dual })));
    }
    let mut found = Vec::with_capacity(cones.len());
    let mut parts = parts.into_iter();
    while let (Some(SidePart::Primal { inverse, lower_inverse }), Some(SidePart::Dual(y_lower))) =
        (parts.next(), parts.next())
    {
        found.push(ConeFactors { x_inverse: inverse, x_lower_inverse: lower_inverse, y_lower });
    }
    Ok(Ok(found))
}
