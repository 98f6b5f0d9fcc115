//! How far a direction can be followed until a block is no longer positive definite.
//!
//! `M + t dM` is positive definite while `t lambda > -1`, with `lambda` the smallest eigenvalue of
//! `L^-1 dM L^-T`, `M = L L^T`. The library encloses it to a few bits; the Cholesky factorisations of the next
//! iteration, at full precision, prove that the new point is inside.

use crate::block::Block;
use crate::iterate::factors::{ConeFactors, Side, is_zero};
use crate::iterate::point::{Cone, Point};
use crate::numbers::Arithmetic;
use crate::numbers::entrywise;
use crate::workers::Workers;
use rug::Float;
use sunzi::{Accuracy, Error, Matrix, Op, Result, Side as Hand, Symmetric, TrsmOptions};
use sunzi::{extreme_eigenvalue, gemm_with, trsm_with};

/// Bits to which eigenvalues are enclosed.
const EIGENVALUE_BITS: u32 = 16;

/// Bits of the matrix whose eigenvalue is looked for.
const MATRIX_BITS: u32 = 128;

/// The smallest eigenvalues of `L_X^-1 dX L_X^-T` and of `L_Y^-1 dY L_Y^-T`, from below.
pub struct Eigenvalues {
    /// Of the primal side.
    pub primal: Float,
    /// Of the dual side.
    pub dual: Float,
}

impl Eigenvalues {
    /// Those of a direction.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(
        workers: &Workers,
        bits: u32,
        place: (&[Cone], &[ConeFactors]),
        point: &Point,
        direction: &Point,
    ) -> Result<Eigenvalues> {
        let (cones, factors) = place;
        let tasks = (0..cones.len()).flat_map(|at| [(at, Side::Primal), (at, Side::Dual)]).collect::<Vec<_>>();
        let found = workers.map(
            &tasks,
            |&(at, _)| cones[at].shape.cost(),
            |ctx, &(at, side)| {
                let k = Arithmetic { ctx, bits };
                match side {
                    Side::Primal => smallest(k, (&point.primal[at], &direction.primal[at]), |change| {
                        let inverse = factors[at].x_lower_inverse.as_ref().ok_or_else(no_factor)?;
                        let half = gemm_with(ctx, inverse, change, bits, &entrywise())?.result;
                        Ok(gemm_with(ctx, &half, inverse.transposed(), bits, &entrywise())?.result)
                    }),
                    Side::Dual => smallest(k, (&point.dual[at], &direction.dual[at]), |change| {
                        let lower = factors[at].y_lower.as_ref().ok_or_else(no_factor)?;
                        let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
                        let half = trsm_with(ctx, lower, change, bits, &options)?.result;
                        let options = options.side(Hand::Right).op(Op::Transpose);
                        Ok(trsm_with(ctx, lower, &half, bits, &options)?.result)
                    }),
                }
            },
        )?;
        let (mut primal, mut dual) = (Float::new(64), Float::new(64));
        for ((_, side), value) in tasks.iter().zip(found) {
            let least = if *side == Side::Primal { &mut primal } else { &mut dual };
            if value < *least {
                *least = value;
            }
        }
        Ok(Eigenvalues { primal, dual })
    }
}

fn no_factor() -> Error {
    Error::InvalidArgument("a dense block without its factor".into())
}

/// The smallest eigenvalue of one block, or 0 where it is positive.
fn smallest(
    k: Arithmetic<'_>,
    (block, change): (&Block, &Block),
    congruence: impl FnOnce(&Matrix) -> Result<Matrix>,
) -> Result<Float> {
    if is_zero(change.stored()) {
        return Ok(Float::new(64));
    }
    match (block, change) {
        (Block::Diagonal(diagonal), change) => {
            let quotient = |row| Float::with_val(64, &change.stored().float(row, 0) / &diagonal.float(row, 0));
            Ok((0..diagonal.rows()).map(quotient).fold(Float::new(64), |least, next| least.min(&next)))
        }
        (Block::Dense(_), change) => {
            let image = congruence(change.stored())?;
            let bits = MATRIX_BITS.min(k.bits);
            let image = crate::numbers::rounded(image, bits)?;
            let interval = extreme_eigenvalue(k.ctx, Symmetric::lower(&image), EIGENVALUE_BITS)?;
            Ok(Float::with_val(64, interval.lower).min(&Float::new(64)))
        }
    }
}

/// The step: 1 where the boundary is further away than `1 / reduction`, else `reduction` of the way to it.
pub fn step_length(eigenvalue: &Float, reduction: &Float) -> Float {
    let bits = 64;
    let reach = Float::with_val(bits, -reduction);
    if *eigenvalue > reach { Float::with_val(bits, 1) } else { reach / eigenvalue }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_inside() {
        let gamma = Float::with_val(64, 0.5);
        let step = |eigenvalue: f64| step_length(&Float::with_val(64, eigenvalue), &gamma).to_f64();
        assert_eq!((step(0.0), step(-0.4), step(-0.5), step(-2.0)), (1.0, 1.0, 1.0, 0.25));
    }
}
