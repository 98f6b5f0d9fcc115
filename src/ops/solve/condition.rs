//! The condition of a factored matrix in the 1-norm, estimated by a few solves.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::cholesky::Cholesky;
use rug::Float;

/// Bits of sums and of the estimate.
const ESTIMATE_BITS: u32 = 53;

/// Most steps of the ascent; two are enough nearly always.
const STEPS: usize = 5;

impl Cholesky {
    /// A lower bound, rarely off by more than a factor of 3, of the condition `||A||_1 ||A^-1||_1` of the factored
    /// matrix, whose 1-norm is `one_norm` (see [`Matrix::one_norm`]); 53 bits. 0 for an empty matrix.
    ///
    /// Deterministic. Cost: at most eleven solves with one right side, at the factor's precision.
    /// Source: N. J. Higham, *FORTRAN codes for estimating the one-norm of a real or complex matrix*, ACM TOMS 14
    /// (1988), algorithm 4.1.
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn condition_estimate(&self, ctx: &Context, one_norm: &Float) -> Result<Float> {
        Ok(Float::with_val(ESTIMATE_BITS, self.inverse_norm(ctx)? * one_norm))
    }

    fn inverse_norm(&self, ctx: &Context) -> Result<Float> {
        let order = self.factor().rows();
        let bits = self.factor().precision_bits();
        let solve = |x: &[Float]| -> Result<Vec<Float>> {
            let b = Matrix::from_floats(order, 1, ESTIMATE_BITS, x)?;
            Ok(self.solve(ctx, &b, bits)?.view().to_floats())
        };
        if order == 0 {
            return Ok(Float::new(ESTIMATE_BITS));
        }
        let mut x = vec![Float::with_val(ESTIMATE_BITS, order).recip(); order];
        let (mut largest, mut signs) = (Float::new(ESTIMATE_BITS), Vec::new());
        for step in 0..STEPS {
            let y = solve(&x)?;
            let norm = sum_of_sizes(&y);
            let new_signs: Vec<bool> = y.iter().map(Float::is_sign_negative).collect();
            if step > 0 && (norm <= largest || new_signs == signs) {
                largest.max_mut(&norm);
                break;
            }
            (largest, signs) = (norm, new_signs);
            let unit = |&negative: &bool| Float::with_val(ESTIMATE_BITS, if negative { -1 } else { 1 });
            let z = solve(&signs.iter().map(unit).collect::<Vec<_>>())?;
            let slope = z.iter().zip(&x).fold(Float::new(bits), |sum, (z, x)| sum + Float::with_val(bits, z * x));
            let steepest = (0..order)
                .fold(0, |best, i| if z[i].cmp_abs(&z[best]).is_some_and(|order| order.is_gt()) { i } else { best });
            if step > 0 && Float::with_val(bits, z[steepest].abs_ref()) <= slope {
                break;
            }
            x.fill(Float::new(ESTIMATE_BITS));
            x[steepest] = Float::with_val(ESTIMATE_BITS, 1);
        }
        // A vector of alternating signs catches matrices that are built to mislead the ascent.
        let alternating = |i: usize| {
            let size = Float::with_val(ESTIMATE_BITS, i) / Float::with_val(ESTIMATE_BITS, order.max(2) - 1) + 1u32;
            if i.is_multiple_of(2) { size } else { -size }
        };
        let y = solve(&(0..order).map(alternating).collect::<Vec<_>>())?;
        let other = sum_of_sizes(&y) * 2u32 / Float::with_val(ESTIMATE_BITS, 3 * order);
        Ok(largest.max(&other))
    }
}

fn sum_of_sizes(x: &[Float]) -> Float {
    x.iter().fold(Float::new(ESTIMATE_BITS), |sum, value| sum + Float::with_val(ESTIMATE_BITS, value.abs_ref()))
}
