//! Bases of a polynomial matrix at its sample points: orthonormal polynomials, or those that are given.
//!
//! Row m of the even basis is `sqrt(s_k) q_m(x_k)`, that of the odd one `sqrt(x_k s_k) q_m(x_k)`, where the `q_m` of
//! degree m are orthonormal for the weights under the roots: the rows are orthonormal vectors. They come from Lanczos's
//! recurrence with the diagonal matrix of the points, each orthogonalised against all before it, where SDPB factors the
//! Hankel matrix of moments, which loses digits without end as the degree grows.
//! Source: SDPB (`src/pmp/convert/bilinear_basis`); Gautschi, Orthogonal Polynomials (2004), section 2.2.

use rug::{Assign, Float};
use sunzi::{Error, Result};

/// Bits beyond those of a result.
const GUARD_BITS: u32 = 64;

/// `sqrt` of each weight.
///
/// # Errors
/// [`Error::InvalidArgument`] for a weight below 0.
fn roots(weights: &[Float], bits: u32) -> Result<Vec<Float>> {
    if let Some(at) = weights.iter().position(|weight| weight.is_nan() || *weight < 0) {
        let weight = &weights[at];
        return Err(Error::InvalidArgument(format!(
            "the scaling of sample point {at} is {weight:.6}, which has no square root"
        )));
    }
    Ok(weights.iter().map(|weight| Float::with_val(bits, weight.sqrt_ref())).collect())
}

/// `x . y`.
fn inner(x: &[Float], y: &[Float], bits: u32) -> Float {
    let (mut sum, mut product) = (Float::new(bits), Float::new(bits));
    for (x, y) in x.iter().zip(y) {
        product.assign(x * y);
        sum += &product;
    }
    sum
}

/// `vector` without its part along the unit vector `direction`.
fn remove(vector: &mut [Float], direction: &[Float], bits: u32) {
    let along = inner(vector, direction, bits);
    let mut product = Float::new(bits);
    for (entry, part) in vector.iter_mut().zip(direction) {
        product.assign(part * &along);
        *entry -= &product;
    }
}

/// The vector divided by its length, which is returned as well.
fn normalized(mut vector: Vec<Float>, bits: u32) -> (Vec<Float>, Float) {
    let length = inner(&vector, &vector, bits).sqrt();
    vector.iter_mut().for_each(|entry| *entry /= &length);
    (vector, length)
}

/// The first `rows` orthonormal polynomials times the roots of the weights, a row for each.
///
/// # Errors
/// [`Error::InvalidArgument`] for a weight below 0, and for fewer different points of positive weight than rows.
pub fn orthonormal(points: &[Float], weights: &[Float], rows: usize, bits: u32) -> Result<Vec<Vec<Float>>> {
    // Small entries have their digits too, as far as the precision goes.
    let exponents = || weights.iter().filter_map(Float::get_exp);
    let spread = exponents().max().unwrap_or(0).saturating_sub(exponents().min().unwrap_or(0)) / 2;
    let bits = bits + GUARD_BITS + (spread.max(0) as u32).min(bits);
    let missing = || {
        let found = points.len();
        Error::InvalidArgument(format!(
            "{found} sample points cannot determine {rows} polynomials: some points coincide"
        ))
    };
    let mut found = Vec::<Vec<Float>>::with_capacity(rows);
    for row in 0..rows {
        let mut next = match row.checked_sub(1) {
            None => roots(weights, bits)?,
            Some(last) => found[last].iter().zip(points).map(|(entry, x)| Float::with_val(bits, entry * x)).collect(),
        };
        let before = inner(&next, &next, bits).sqrt();
        // The recurrence takes out the last two, where nearly all of it lies; the others remove rounding errors.
        found.iter().rev().take(2).chain(&found).for_each(|direction| remove(&mut next, direction, bits));
        let (next, length) = normalized(next, bits);
        if length.is_nan() || length <= before >> (bits - GUARD_BITS / 2) {
            return Err(missing());
        }
        found.push(next);
    }
    Ok(found)
}

/// `p(x)` for coefficients from the constant one on.
pub fn value(coefficients: &[Float], x: &Float, bits: u32) -> Float {
    let mut sum = Float::new(bits);
    for coefficient in coefficients.iter().rev() {
        sum *= x;
        sum += coefficient;
    }
    sum
}

/// The polynomials that are given, times the roots of the weights, a row for each.
///
/// # Errors
/// [`Error::InvalidArgument`] for a weight below 0.
pub fn given(polynomials: &[Vec<Float>], points: &[Float], weights: &[Float], bits: u32) -> Result<Vec<Vec<Float>>> {
    let roots = roots(weights, bits)?;
    let row = |polynomial: &Vec<Float>| {
        points.iter().zip(&roots).map(|(x, root)| value(polynomial, x, bits) * root).collect()
    };
    Ok(polynomials.iter().map(row).collect())
}

#[cfg(test)]
#[path = "basis/tests.rs"]
mod tests;
