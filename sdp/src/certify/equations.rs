//! Corrections that make equations exact: the Gram matrix of the equations, its factor, and what shows that it is
//! positive definite.

use super::floats::{
    bits_within, half_of_least_eigenvalue, nearest, rational_exponent, scaled_matrix, to_integer, witness,
};
use crate::proof::{Fixed, Gram, GramProof, is_definite, packed};
use rug::{Float, Rational};
use sunzi::{Cholesky, Context, Error, Matrix, Result, cholesky};

/// Attempts at a factor with enough bits.
const ATTEMPTS: u32 = 3;

/// Equations that are independent.
pub struct Equations {
    /// Their Gram matrix.
    pub gram: Gram,
    /// What shows that it is definite.
    pub proof: GramProof,
    factor: Cholesky,
    bits: u32,
}

impl Equations {
    /// Equations with this Gram matrix, or why nothing is known of them.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(ctx: &Context, gram: Gram, bits: u32) -> Result<std::result::Result<Equations, String>> {
        let bits = bits_within(bits.into());
        let dependent = || Ok(Err("the equations are not shown to be independent".to_string()));
        let diagonal = (0..gram.order).map(|at| gram.matrix.get(packed(at, at)));
        let scales = diagonal.map(|entry| -rational_exponent(&entry).div_euclid(2)).collect::<Vec<_>>();
        if scales.iter().any(|&scale| scale > 1 << 20) {
            return dependent(); // an equation without terms
        }
        let matrix = scaled_matrix(&gram.matrix, &scales, bits)?;
        let Some(exponent) = half_of_least_eigenvalue(ctx, &matrix)? else { return dependent() };
        let factor = match cholesky(ctx, &matrix, bits) {
            Ok(factor) => factor,
            Err(Error::NotPositiveDefinite { .. } | Error::Precision { .. }) => return dependent(),
            Err(error) => return Err(error),
        };
        for attempt in 0..ATTEMPTS {
            let size = 2 * (usize::BITS - gram.order.leading_zeros());
            let fraction_bits = bits_within(-exponent + i64::from(size + 8 + 32 * attempt));
            let Some(witness) = witness(ctx, &matrix, exponent, fraction_bits)? else { return dependent() };
            if is_definite(&gram.matrix, &scales, &witness, ctx.threads()) {
                return Ok(Ok(Equations { gram, proof: GramProof { scales, witness }, factor, bits }));
            }
        }
        dependent()
    }

    /// About the solution t of `G t = rest`.
    ///
    /// # Errors
    /// Those of the library.
    pub fn solve(&self, ctx: &Context, rest: &[Rational], fraction_bits: u32) -> Result<Fixed> {
        let (order, scales) = (self.gram.order, &self.proof.scales);
        let mut values = Vec::with_capacity(rest.len());
        for (part, &repeat) in rest.chunks(order).zip(&self.gram.repeats) {
            let right = Matrix::from_fn(order, 1, self.bits, |row, _| {
                Float::with_val(self.bits, &part[row]) << scales[row] as i32
            })?;
            let found = self.factor.solve(ctx, &right, self.bits)?;
            for (row, &scale) in scales.iter().enumerate() {
                let value = (found.float(row, 0) << scale as i32) * repeat;
                values.push(to_integer(&value, fraction_bits));
            }
        }
        Ok(Fixed { bits: fraction_bits, values })
    }

    /// The largest of the residuals beside the scales, as an exponent.
    pub fn size(&self, rest: &[Rational]) -> i64 {
        let scales = &self.proof.scales;
        let sizes = rest.iter().enumerate().map(|(at, rest)| rational_exponent(rest) + scales[at % scales.len()]);
        sizes.max().unwrap_or(i64::MIN)
    }
}

/// Adds rational numbers to fixed ones, rounded.
pub fn add(to: &mut Fixed, by: &crate::proof::Scaled) {
    for (at, value) in to.values.iter_mut().enumerate() {
        *value += nearest(&by.get(at), to.bits);
    }
}
