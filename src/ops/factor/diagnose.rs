//! What an error says about a failed factorisation: the pivot, and whether more precision might help.

use crate::error::Error;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::factor::problem::Problem;
use rug::float::Special;
use rug::{Float, Integer};

/// Bits of the numbers shown.
const SHOWN_BITS: u32 = 53;

/// The error for a failure at `index` of the matrix with this lower triangle, given the factor of the rows before it
/// and the scaled pivot, if it is known.
///
/// The pivot of the exact matrix is `a - a_i^T w` with `w = A_11^-1 a_i`; an error `E` in the matrix, within the
/// residual bound `|E_ij| <= 2^(2 - b) sqrt(a_ii a_jj)`, moves it by at most
/// `2^(2 - b) a (1 + sum |w_k| sqrt(a_kk / a))^2`.
/// A pivot further below 0 than that proves that the matrix is indefinite. Else more bits than hide the pivot now might
/// help. Cost: quadratic in `index`, paid on failure only.
pub(crate) fn failure(
    (problem, lower): (&Problem, MatrixView<'_>),
    index: usize,
    factor: &Matrix,
    pivot: Option<Integer>,
) -> Error {
    let bits = problem.working_bits + 64;
    let diagonal = lower.get(index, index).to_float(lower.precision_bits());
    let mut y = Vec::with_capacity(index);
    for i in 0..index {
        let mut sum = lower.get(index, i).to_float(bits);
        for (k, entry) in y.iter().enumerate() {
            sum -= Float::with_val(bits, entry * &factor.float(i, k));
        }
        y.push(sum / factor.float(i, i));
    }
    let pivot = match pivot {
        Some(scaled) => {
            let exponent = 2 * (problem.exponents[index] - i64::from(problem.working_bits));
            Float::with_val(bits, scaled) << exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        }
        // The row was rejected since the squares of its own entries reach the diagonal entry. Those of the rounded
        // factor may fall short of it, which is no pivot of this factorisation.
        None => {
            let rest = y
                .iter()
                .fold(Float::with_val(bits, &diagonal), |rest, entry| rest - Float::with_val(bits, entry * entry));
            if rest > 0 { Float::new(bits) } else { rest }
        }
    };
    // Numbers beyond MPFR's range cancel to nothing sensible; only rows left out from the start have such.
    let pivot = if pivot.is_nan() { Float::with_val(bits, Special::NegInfinity) } else { pivot };
    // A row left out from the start has a diagonal entry or a 2 x 2 minor that is not positive, at any precision.
    let is_certain = index == problem.order;
    let more_bits = if is_certain { None } else { more_bits((problem, lower), factor, &y, &diagonal, &pivot) };
    Error::NotPositiveDefinite {
        index,
        pivot: Float::with_val(SHOWN_BITS, pivot),
        diagonal: Float::with_val(SHOWN_BITS, diagonal),
        more_bits,
        enough_bits: None,
    }
}

fn more_bits(
    (problem, lower): (&Problem, MatrixView<'_>),
    factor: &Matrix,
    y: &[Float],
    diagonal: &Float,
    pivot: &Float,
) -> Option<u32> {
    let bits = problem.working_bits + 64;
    let mut w = y.to_vec();
    for i in (0..w.len()).rev() {
        w[i] /= factor.float(i, i);
        let entry = w[i].clone();
        for (k, other) in w[..i].iter_mut().enumerate() {
            *other -= Float::with_val(bits, &entry * &factor.float(i, k));
        }
    }
    let root = |i: usize| lower.get(i, i).to_float(SHOWN_BITS).sqrt();
    let own = Float::with_val(SHOWN_BITS, diagonal).sqrt();
    let sum =
        w.iter().enumerate().fold(own, |sum, (i, entry)| sum + Float::with_val(SHOWN_BITS, entry).abs() * root(i));
    let noise = Float::with_val(SHOWN_BITS, &sum * &sum) >> (problem.precision_bits as i32 - 2);
    if Float::with_val(SHOWN_BITS, -pivot) > noise {
        return None;
    }
    // Bits by which the noise covers the pivot, but never fewer than would show a pivot as large as the noise is now.
    let hidden = match (noise.get_exp(), pivot.get_exp()) {
        (Some(noise), Some(pivot)) => noise.saturating_sub(pivot).max(0) as u32,
        _ => 0,
    };
    Some(hidden.max(problem.precision_bits / 8) + 8)
}
