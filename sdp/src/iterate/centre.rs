//! How far a point is from the central path: SDPB's `R-err`, the largest magnitude of an entry of `mu I - X Y`.
//!
//! Nothing else needs the product, and a few digits of it are enough. So `X Y` is formed with as many bits as leave 16
//! of mu, where X and Y are as large as they are: near the end of a run that is the gap, not the precision.

use crate::block::Block;
use crate::calls::gemm_with;
use crate::iterate::memory::{ConeTask, IterationStep};
use crate::iterate::system::SystemPoint;
use crate::numbers::exponent;
use crate::numbers::{Arithmetic, largest};
use rug::Float;
use sunzi::{Accuracy, GemmOptions, Matrix, Result};

/// Bits of mu to which the number is right.
const GOOD_BITS: i64 = 16;

/// The smallest precision of a product, in bits.
const LEAST_BITS: i64 = 64;

/// The largest magnitude of an entry of `mu I - X Y`, to about `2^-16 mu`. Collective.
///
/// Cost: a product of each block of X with that of Y at `log2(|X| |Y| / mu) + 16` bits, at most those of the point.
/// Source: SDPB, `src/sdp_solve/SDP_Solver/run/step/compute_R_error.hxx`.
///
/// # Errors
/// The errors of the library's products.
pub fn off_centre(place: &SystemPoint<'_>, mu: &Float) -> Result<Float> {
    let site = place.site.at(IterationStep::Constants);
    let sizes = site.map(ConeTask::Product, |k, at| {
        let (primal, dual) = (&place.point.primal[at], place.point.dual[at].stored());
        match primal {
            Block::Diagonal(primal) => Ok(of_diagonal(k, primal, dual, mu)),
            Block::Dense(primal) => of_block(k, primal, dual, mu),
        }
    })?;
    let most = sizes.iter().fold(Float::new(LEAST_BITS as u32), |most, size| most.max(size));
    let [most] = site.share.ranks.largest(LEAST_BITS as u32, Ok([most]))?;
    Ok(most)
}

fn of_diagonal(k: Arithmetic<'_>, primal: &Matrix, dual: &Matrix, mu: &Float) -> Float {
    let sizes = (0..primal.rows()).map(|row| {
        let product = Float::with_val(k.bits, &primal.float(row, 0) * &dual.float(row, 0));
        Float::with_val(LEAST_BITS as u32, mu - product).abs()
    });
    sizes.fold(Float::new(LEAST_BITS as u32), |most, size| most.max(&size))
}

fn of_block(k: Arithmetic<'_>, primal: &Matrix, dual: &Matrix, mu: &Float) -> Result<Float> {
    let order = primal.rows();
    let size = exponent(&largest(primal)) + exponent(&largest(dual)) + i64::from(order.max(1).ilog2()) + 1;
    let bits = (size.saturating_sub(exponent(mu)) + GOOD_BITS).max(LEAST_BITS).min(i64::from(k.bits)) as u32;
    let mut product = gemm_with(k.ctx, primal, dual, bits, &GemmOptions::new().accuracy(Accuracy::Norm))?.result;
    for at in 0..order {
        let rest = Float::with_val(bits, &product.float(at, at) - mu);
        product.set_float(at, at, &rest)?;
    }
    Ok(largest(&product))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::Context;

    /// Compared with the product with all bits, where X Y is near mu I and where it is not.
    #[test]
    fn few_bits_say_how_far_a_point_is() -> Result<()> {
        let (order, bits) = (6, 400);
        let ctx = Context::builder().threads(1).build()?;
        let k = Arithmetic { ctx: &ctx, bits };
        // Blocks [[2, 1], [1, 1]] and their inverses, of sizes that differ by powers of two.
        let blocks = |of: [i32; 3], sign: i32| {
            Matrix::from_fn(order, order, bits, |row, col| {
                let value = if row / 2 == col / 2 { of[row % 2 + col % 2] } else { 0 };
                Float::with_val(bits, value) << (sign * 11 * (row / 2) as i32)
            })
        };
        let (x, inverse) = (blocks([2, 1, 1], 1)?, blocks([1, -1, 2], -1)?);
        for (power, off) in [(-200, 0.25), (-200, 1e-5), (-300, 3.0), (0, 0.5), (40, 1e-3)] {
            // mu (X^-1 + off E), of which mu X^-1 has the product mu I.
            let mu = Float::with_val(bits, 1) << power;
            let y = Matrix::from_fn(order, order, bits, |row, col| {
                let shift = if (row, col) == (1, 1) { off } else { 0.0 };
                (inverse.float(row, col) + shift) * &mu
            })?;
            let found = of_block(k, &x, &y, &mu)?;
            // The second column of X times off.
            let wanted = Float::with_val(bits, &mu * off);
            let error = Float::with_val(64, &found - &wanted).abs();
            assert!(error <= Float::with_val(64, &mu >> 14u32), "{power} {off}: {found} {wanted}");
            let diagonal = |value: Float| Matrix::from_fn(2, 1, bits, |_, _| value.clone());
            let (one, two) = (diagonal(Float::with_val(bits, 3))?, diagonal(Float::with_val(bits, &mu * 2u32))?);
            assert_eq!(of_diagonal(k, &one, &two, &mu), Float::with_val(64, &mu * 5u32));
        }
        Ok(())
    }
}
