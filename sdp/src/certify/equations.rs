//! Proofs that equations are independent: powers of two that scale them, and a factor of their Gram matrix.

use super::Attempt;
use super::floats::{exponent, shown};
use crate::numbers::Arithmetic;
use crate::proof::GramProof;
use rug::Float;
use sunzi::{Matrix, Result};

/// A proof that a Gram matrix is definite, or why there is none.
///
/// # Errors
/// The errors of the library.
pub fn independent(k: Arithmetic<'_>, gram: &Matrix) -> Result<Attempt<GramProof>> {
    let diagonal = (0..gram.rows()).map(|at| gram.float(at, at));
    let scales = diagonal.map(|entry| -exponent(&entry).div_euclid(2)).collect::<Vec<_>>();
    let dependent = || Ok(Err("the equations could not be shown to be independent".to_string()));
    if scales.iter().any(|&scale| scale > 1 << 20) {
        return dependent(); // an equation without terms
    }
    let scaled = Matrix::from_fn(gram.rows(), gram.rows(), k.bits, |row, col| {
        gram.float(row.max(col), row.min(col)) << (scales[row] + scales[col]) as i32
    })?;
    match shown(k, &scaled)? {
        Some(witness) => Ok(Ok(GramProof { scales, witness })),
        None => dependent(),
    }
}

/// About the square of the largest correction that residuals need.
pub fn correction_square(proof: &GramProof, rest: &Matrix, repeat: impl Fn(usize) -> u32) -> Float {
    let scales = &proof.scales;
    let mut sum = Float::new(64);
    for row in 0..rest.rows() {
        let value = Float::with_val(64, rest.float(row, 0)) << scales[row % scales.len()] as i32;
        sum += value.square() * repeat(row);
    }
    sum << (1 - proof.witness.exponent) as i32
}
