//! Polynomial programs: points, weights and a basis of few bits near those of the solver, and the solver's point in
//! terms of them. A proof holds whether or not the choices made here are near to anything.

use super::floats::{exponent, to_integer};
use super::{MOST_WORK_BITS, work_bits};
use crate::block::Block;
use crate::iterate::Point;
use crate::numbers::{Arithmetic, entrywise};
use crate::polynomial::orthonormal;
use crate::problem::{Constraints, Origin, Problem, Sampled};
use crate::proof::{Fixed, ProofSampling, triangle};
use rug::{Assign, Float};
use sunzi::{Accuracy, CholeskyOptions, Context, Matrix, Result, SymmetricMatrix, SyrkOptions, Uplo};
use sunzi::{cholesky_with, gemm_into, gemm_with, syrk_with};

/// Bits of the distance of two points that rounding leaves as they are.
const POINT_BITS: i64 = 12;

/// Bits to which the rounded basis is orthonormal.
const BASIS_BITS: i64 = 16;

/// A sampling, and how the solver's numbers become those for it.
pub struct Change {
    /// The sampling.
    pub sampling: ProofSampling,
    /// The solver's basis of each block in terms of this one.
    bases: Vec<Matrix>,
    /// The weight that the solver's points have at these ones.
    weights: Matrix,
}

/// `sum_k a_k b_k`.
fn dot(a: &[Float], b: &[Float], bits: u32) -> Float {
    let (mut sum, mut product) = (Float::new(bits), Float::new(bits));
    for (a, b) in a.iter().zip(b) {
        product.assign(a * b);
        sum += &product;
    }
    sum
}

/// The points with as few bits as their distances allow.
fn short_points(points: &[Float], bits: u32) -> Fixed {
    let mut sorted = points.to_vec();
    sorted.push(Float::new(bits));
    sorted.sort_by(Float::total_cmp);
    let gaps = sorted.windows(2).map(|pair| exponent(&Float::with_val(bits, &pair[1] - &pair[0])));
    let least = gaps.filter(|&gap| gap > -(1 << 20)).min().unwrap_or(0);
    let fraction = (POINT_BITS - least).clamp(0, 4096) as u32;
    Fixed { bits: fraction, values: points.iter().map(|x| to_integer(x, fraction)).collect() }
}

/// The coefficients of the orthonormal polynomials of these weights, rounded.
fn short_basis(origin: &Origin, rows: usize, bits: u32) -> Result<Fixed> {
    let Origin { points, scalings } = origin;
    let lines = orthonormal(points, scalings, rows, bits)?;
    let moved = |line: &Vec<Float>| {
        line.iter().zip(points).map(|(entry, x)| Float::with_val(bits, entry * x)).collect::<Vec<_>>()
    };
    let total = scalings.iter().fold(Float::new(bits), |sum, scaling| sum + scaling);
    let mut all = vec![vec![total.sqrt().recip()]];
    for row in 1..rows {
        let image = moved(&lines[row - 1]);
        let next = dot(&image, &lines[row], bits);
        let along = dot(&image, &lines[row - 1], bits);
        let mut coefficients = vec![Float::new(bits)];
        coefficients.extend(all[row - 1].iter().cloned());
        for (to, by) in coefficients.iter_mut().zip(&all[row - 1]) {
            *to -= Float::with_val(bits, by * &along);
        }
        if row > 1 {
            let before = dot(&image, &lines[row - 2], bits);
            for (to, by) in coefficients.iter_mut().zip(&all[row - 2]) {
                *to -= Float::with_val(bits, by * &before);
            }
        }
        coefficients.iter_mut().for_each(|entry| *entry /= &next);
        all.push(coefficients);
    }
    // The largest effect of a unit of a coefficient.
    let powers = (rows - 1) as i64;
    let effect = |(x, s): (&Float, &Float)| (exponent(s) + 1) / 2 + powers * exponent(x).max(0);
    let largest = points.iter().zip(scalings).map(effect).max().unwrap_or(0);
    let fraction = (BASIS_BITS + largest + 2 * i64::from(usize::BITS - points.len().leading_zeros())).max(0) as u32;
    Ok(Fixed { bits: fraction, values: all.iter().flatten().map(|value| to_integer(value, fraction)).collect() })
}

/// The polynomials of a rounded basis at the solver's points, times the roots of its scalings: a row for each.
///
/// # Errors
/// The errors of the library's products.
fn rows_of(k: Arithmetic<'_>, basis: &Fixed, origin: &Origin, rows: usize) -> Result<Matrix> {
    let coefficients = Matrix::from_fn(rows, rows, k.bits, |row, power| match power <= row {
        true => Float::with_val(k.bits, &basis.values[triangle(row) + power]) >> basis.bits,
        false => Float::new(2),
    })?;
    let mut powers = Vec::with_capacity(rows);
    powers.push(origin.scalings.iter().map(|s| Float::with_val(k.bits, s.sqrt_ref())).collect::<Vec<_>>());
    for power in 1..rows {
        let next = powers[power - 1].iter().zip(&origin.points).map(|(value, x)| Float::with_val(k.bits, value * x));
        powers.push(next.collect());
    }
    let powers = Matrix::from_fn(rows, origin.points.len(), k.bits, |power, point| powers[power][point].clone())?;
    Ok(gemm_with(k.ctx, &coefficients, &powers, k.bits, &entrywise())?.result)
}

/// For each number the product of the differences `x - y` to all others of a list: products from both ends meet there.
fn products_of_others(x: &Float, list: &[Float], bits: u32) -> Vec<Float> {
    let differences = list.iter().map(|y| Float::with_val(bits, x - y)).collect::<Vec<_>>();
    let mut found = Vec::with_capacity(list.len());
    let mut product = Float::with_val(bits, 1);
    for difference in &differences {
        found.push(product.clone());
        product *= difference;
    }
    product.assign(1);
    for (found, difference) in found.iter_mut().zip(&differences).rev() {
        *found *= &product;
        product *= difference;
    }
    found
}

/// The values of the polynomials that are 1 at one of the points and 0 at all others, at the solver's points, a row for
/// each, times the solver's scalings and divided by the weights.
///
/// # Errors
/// The errors of [`Matrix::from_fn`].
fn weights(sampling: &ProofSampling, origin: &Origin, bits: u32) -> Result<Matrix> {
    let near = sampling.points.values.iter().map(|x| Float::with_val(bits, x) >> sampling.points.bits);
    let near = near.collect::<Vec<Float>>();
    let above = origin.points.iter().map(|x| products_of_others(x, &near, bits)).collect::<Vec<_>>();
    let below = near.iter().zip(&sampling.exponents).enumerate().map(|(at, (x, &power))| {
        let product = products_of_others(x, &near, bits).swap_remove(at);
        (product << power as i32).recip()
    });
    let below = below.collect::<Vec<Float>>();
    Matrix::from_fn(near.len(), origin.points.len(), bits, |row, col| {
        Float::with_val(bits, &above[col][row] * &below[row]) * &origin.scalings[col]
    })
}

impl Change {
    fn new(ctx: &Context, sampled: &Sampled, origin: &Origin, precision_bits: u32) -> Result<Change> {
        let count = origin.points.len();
        let basis = short_basis(origin, count.div_ceil(2), 4 * precision_bits + 64)?;
        let exponents = origin.scalings.iter().map(exponent).collect();
        let points = short_points(&origin.points, precision_bits);
        let sampling = ProofSampling { points, exponents, basis };
        let wanted = 2 * precision_bits + 64 + 2 * sampling.basis.bits;
        // As many as every kernel reaches, where that is less.
        let bits = wanted.min(MOST_WORK_BITS.max(precision_bits + 64));
        let k = Arithmetic { ctx, bits };
        let even = rows_of(k, &sampling.basis, origin, count.div_ceil(2))?;
        let roots = origin.points.iter().map(|x| Float::with_val(bits, x.sqrt_ref())).collect::<Vec<_>>();
        let mut bases = Vec::new();
        for (cone, &parity) in sampled.parities().iter().enumerate() {
            let own = sampled.basis(cone);
            let lines = match parity {
                0 => even.clone(),
                _ => Matrix::from_fn(own.rows(), count, bits, |row, point| even.float(row, point) * &roots[point])?,
            };
            // T of `own = T lines`: `lines lines^T T^T = lines own^T`.
            let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
            let turned = lines.transposed().to_matrix()?;
            let gram = syrk_with(ctx, &turned, bits, &options)?.result.into_matrix();
            let cross = gemm_with(ctx, &lines, own.transposed(), bits, &entrywise())?.result;
            let factor = cholesky_with(ctx, &gram, bits, &CholeskyOptions::new().accuracy(Accuracy::Norm))?.result;
            bases.push(factor.solve(ctx, &cross, bits)?.transposed().to_matrix()?);
        }
        let weights = weights(&sampling, origin, bits)?;
        Ok(Change { sampling, bases, weights })
    }

    /// `(I (x) T)^T Y (I (x) T)`.
    fn dual(&self, k: Arithmetic<'_>, cone: usize, block: &Block) -> Result<Block> {
        let (y, t) = (block.stored(), &self.bases[cone]);
        let (rows, dim) = (t.rows(), y.rows() / t.rows());
        let mut whole = Matrix::zeros(y.rows(), y.rows(), k.bits)?;
        for (r, s) in (0..dim).flat_map(|r| (0..dim).map(move |s| (r, s))) {
            let place = (r * rows..(r + 1) * rows, s * rows..(s + 1) * rows);
            let part = y.view().block(place.0.clone(), place.1.clone())?;
            let right = gemm_with(k.ctx, part, t, k.bits, &entrywise())?.result;
            gemm_into(k.ctx, t.transposed(), &right, k.bits, &entrywise(), whole.view_mut().block(place.0, place.1)?)?;
        }
        Ok(Block::Dense(SymmetricMatrix::from_triangle(whole, Uplo::Lower)?.into_matrix()))
    }

    /// The same functional at the other points.
    fn primal(&self, k: Arithmetic<'_>, x: &Matrix) -> Result<Matrix> {
        let count = self.weights.rows();
        let mut whole = Matrix::zeros(x.rows(), 1, k.bits)?;
        for first in (0..x.rows()).step_by(count) {
            let own = x.view().block(first..first + count, 0..1)?;
            let place = whole.view_mut().block(first..first + count, 0..1)?;
            gemm_into(k.ctx, &self.weights, own, k.bits, &entrywise(), place)?;
        }
        Ok(whole)
    }
}

/// The change of each group; a message if its sample points are not known.
///
/// # Errors
/// The errors of the basis.
pub fn changes(ctx: &Context, problem: &Problem) -> Result<std::result::Result<Vec<Change>, String>> {
    let mut found = Vec::new();
    for group in &problem.groups {
        let Constraints::Sampled(sampled) = &group.constraints else {
            return Ok(Err("the program that was solved has a block without polynomials".into()));
        };
        let Some(origin) = sampled.origin() else {
            return Ok(Err("the sample points of the program that was solved are not known".into()));
        };
        if origin.scalings.iter().any(|scaling| scaling.is_nan() || *scaling <= 0) {
            return Ok(Err("a scaling of a sample point is not positive".into()));
        }
        found.push(Change::new(ctx, sampled, origin, problem.precision_bits)?);
    }
    Ok(Ok(found))
}

/// The point in terms of the samplings.
///
/// # Errors
/// The errors of the library's products.
pub fn changed(ctx: &Context, changes: &[Change], problem: &Problem, point: &Point) -> Result<Point> {
    let k = Arithmetic { ctx, bits: work_bits(problem.precision_bits) };
    let (mut x, mut dual) = (Vec::new(), Vec::new());
    let mut blocks = point.dual.iter();
    for (change, own) in changes.iter().zip(&point.x) {
        x.push(change.primal(k, own)?);
        for (cone, block) in (0..change.bases.len()).zip(&mut blocks) {
            dual.push(change.dual(k, cone, block)?);
        }
    }
    Ok(Point { x, dual, primal: point.primal.clone(), y: point.y.clone() })
}
