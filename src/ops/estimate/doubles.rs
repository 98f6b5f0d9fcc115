//! A scaled factor in doubles, and solves with eight right-hand sides at a time: for conditions that leave doubles some
//! bits.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::f64::packed::{RightSideRow, solve_packed};
use crate::math::float::{FloatRef, Head};
use crate::ops::cholesky::Cholesky;
use std::sync::Arc;

/// Entries below `2^LEAST_EXPONENT` count as 0: the others have a unit in the last place that is a normal number.
const LEAST_EXPONENT: i64 = -900;

/// Exponents above this count as infinite.
const MOST_EXPONENT: i64 = 1000;

/// `D^-1 L` with rows of norm at most 1, rounded to doubles.
pub(super) struct ScaledDoubles {
    /// Column `j` from its diagonal entry on, one column after the other.
    entries: Arc<Vec<f64>>,
}

impl ScaledDoubles {
    /// Row `i` is scaled by `2^-exponents[i]`; `None` where there is no room. Without a memory limit the factor keeps
    /// them, until a call with one.
    ///
    /// # Errors
    /// The errors of reading the factor.
    pub fn new(factor: &Cholesky, ctx: &Context) -> Result<Option<ScaledDoubles>> {
        let exponents = factor.row_exponents(ctx)?;
        let order = exponents.len();
        if let Some(entries) = factor.scaled_doubles.for_call(ctx) {
            return Ok(Some(ScaledDoubles { entries }));
        }
        if ctx.admit(4 * (order as u64).saturating_mul(order as u64 + 1)).is_err() {
            return Ok(None);
        }
        let (lower, mut entries) = (factor.factor(), Vec::with_capacity(order * (order + 1) / 2));
        let ((heads, limbs), width) = (lower.parts(), lower.limbs_per_element());
        for col in 0..order {
            let places = col * (order + 1)..(col + 1) * order;
            let limbs = limbs[places.start * width..places.end * width].chunks_exact(width);
            let numbers = heads[places].iter().zip(limbs).map(|(&head, limbs)| FloatRef { head: Head(head), limbs });
            entries.extend(numbers.zip(&exponents[col..]).map(|(number, &exponent)| double(number, exponent)));
        }
        let entries = Arc::new(entries);
        factor.scaled_doubles.keep(ctx, &entries);
        Ok(Some(ScaledDoubles { entries }))
    }

    /// Replaces right-hand sides, row by row, by the solutions of `L L^T X = B` for the scaled factor.
    pub fn solve(&self, rows: &mut [RightSideRow]) {
        solve_packed(&self.entries, rows);
    }
}

/// A number times `2^-exponent`, its last bits cut off.
#[inline]
pub(super) fn double(value: FloatRef<'_>, exponent: i64) -> f64 {
    let scaled = value.head.exponent() - exponent;
    let Some(&top) = value.limbs.last().filter(|_| !value.head.is_zero() && scaled > LEAST_EXPONENT) else {
        return 0.0;
    };
    // The top limb is at least 2^63.
    let power = f64::from_bits(((scaled.min(MOST_EXPONENT) - 64 + 1023) as u64) << 52);
    let size = top as f64 * power;
    if value.head.is_negative() { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Matrix, SymmetricMatrix};

    #[test]
    fn what_calls_without_a_limit_keep_is_given_back_before_one_with_a_limit() {
        let free = Context::builder().threads(1).build().unwrap();
        let limited = free.with_memory_bytes(Some(64 << 20));
        let (order, bits) = (24, 100);
        let b = Matrix::zeros(order, 2, bits).unwrap();
        let a = SymmetricMatrix::trusted(Matrix::identity(order, bits).unwrap());
        for verb in 0..5 {
            let call = |factor: &Cholesky, ctx: &Context| match verb {
                0 => drop(factor.solve(ctx, &b, bits).unwrap()),
                1 => drop(factor.inverse(ctx, bits).unwrap()),
                2 => drop(factor.solve_columns(ctx, b.view(), bits).unwrap()),
                3 => drop(factor.certify(ctx, &a).unwrap().unwrap()),
                _ => drop(ScaledDoubles::new(factor, ctx).unwrap().unwrap()),
            };
            let factor = Cholesky::from_factor(Matrix::identity(order, bits).unwrap()).unwrap();
            ScaledDoubles::new(&factor, &free).unwrap().unwrap();
            call(&factor, &free);
            let kept = Arc::downgrade(&factor.scaled_doubles.for_call(&free).expect("without a limit they are kept"));
            assert!(factor.clone().scaled_doubles.for_call(&free).is_none(), "verb {verb}");
            call(&factor, &limited);
            assert!(kept.upgrade().is_none(), "verb {verb}");
            assert!(factor.scaled_doubles.for_call(&free).is_none(), "verb {verb}");
        }
    }
}
