//! Polynomial programs: points, weights and a basis of few bits near those of the solver, and the solver's point in
//! terms of them. What is chosen here need not be near anything for a proof to hold.

use super::floats::{exponent, to_integer};
use crate::block::Block;
use crate::iterate::Point;
use crate::polynomial::orthonormal;
use crate::problem::{Constraints, Origin, Problem, Sampled};
use crate::proof::{Fixed, Sampling, triangle};
use rug::{Assign, Float};
use sunzi::{Matrix, Result};

/// Bits of the distance of two points that rounding leaves as they are.
const POINT_BITS: i64 = 12;

/// Bits to which the rounded basis is orthonormal.
const BASIS_BITS: i64 = 16;

/// A square or rectangular matrix of floating-point numbers.
type Dense = Vec<Vec<Float>>;

/// A sampling, and how the solver's numbers become those for it.
pub struct Change {
    /// The sampling.
    pub sampling: Sampling,
    /// The solver's basis of each block in terms of this one.
    bases: Vec<Dense>,
    /// The weight that the solver's points have at these ones.
    weights: Dense,
    bits: u32,
}

/// `sum_k a_k b_k`.
fn dot<'a>(a: impl IntoIterator<Item = &'a Float>, b: impl IntoIterator<Item = &'a Float>, bits: u32) -> Float {
    let (mut sum, mut product) = (Float::new(bits), Float::new(bits));
    for (a, b) in a.into_iter().zip(b) {
        product.assign(a * b);
        sum += &product;
    }
    sum
}

/// The solution X of `X A = B`, for symmetric A of full rank.
fn divided(mut a: Dense, b: &Dense, bits: u32) -> Dense {
    // X^T solves A X^T = B^T.
    let order = a.len();
    let mut found = (0..order).map(|row| b.iter().map(|line| line[row].clone()).collect::<Vec<_>>()).collect::<Dense>();
    for col in 0..order {
        for row in (0..order).filter(|&row| row != col) {
            let factor = Float::with_val(bits, &a[row][col] / &a[col][col]);
            let (pivot, other) = (a[col].clone(), found[col].clone());
            a[row].iter_mut().zip(&pivot).for_each(|(to, by)| *to -= Float::with_val(bits, by * &factor));
            found[row].iter_mut().zip(&other).for_each(|(to, by)| *to -= Float::with_val(bits, by * &factor));
        }
    }
    for (line, pivots) in found.iter_mut().zip(&a).enumerate().map(|(row, (line, pivots))| (line, &pivots[row])) {
        line.iter_mut().for_each(|entry| *entry /= pivots);
    }
    let cols = b.len();
    (0..cols).map(|col| found.iter().map(|line| line[col].clone()).collect()).collect()
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
    let mut all: Dense = vec![vec![total.sqrt().recip()]];
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

/// `sqrt(s_k) q_m(x_k)` of a rounded basis, a row for each polynomial.
fn rows_of(basis: &Fixed, origin: &Origin, rows: usize, bits: u32) -> Dense {
    let one = |row: usize, x: &Float, scaling: &Float| {
        let mut sum = Float::new(bits);
        for coefficient in basis.values[triangle(row)..][..=row].iter().rev() {
            sum *= x;
            sum += coefficient;
        }
        (sum >> basis.bits) * Float::with_val(bits, scaling.sqrt_ref())
    };
    (0..rows).map(|row| origin.points.iter().zip(&origin.scalings).map(|(x, s)| one(row, x, s)).collect()).collect()
}

/// The values of the polynomials that are 1 at one of the points and 0 at all others, at the solver's points, a row for
/// each, times the solver's scalings and divided by the weights.
fn weights(sampling: &Sampling, origin: &Origin, bits: u32) -> Dense {
    let near = sampling.points.values.iter().map(|x| Float::with_val(bits, x) >> sampling.points.bits);
    let near = near.collect::<Vec<Float>>();
    let difference = |x: &Float, y: &Float| Float::with_val(bits, x - y);
    let row = |(at, (x, &power)): (usize, (&Float, &i64))| {
        let others = || near.iter().enumerate().filter(move |&(other, _)| other != at).map(|(_, other)| other);
        let product = |x: &Float| others().fold(Float::with_val(bits, 1), |all, other| all * difference(x, other));
        let below = product(x) << power as i32;
        origin.points.iter().zip(&origin.scalings).map(|(x, scaling)| product(x) / &below * scaling).collect()
    };
    near.iter().zip(&sampling.exponents).enumerate().map(row).collect()
}

impl Change {
    fn new(sampled: &Sampled, origin: &Origin, precision_bits: u32) -> Result<Change> {
        let count = origin.points.len();
        let rows = count.div_ceil(2);
        let basis = short_basis(origin, rows, 4 * precision_bits + 64)?;
        let exponents = origin.scalings.iter().map(exponent).collect();
        let points = short_points(&origin.points, precision_bits);
        let sampling = Sampling { points, exponents, basis };
        let bits = 2 * precision_bits + 64 + 2 * sampling.basis.bits;
        let even = rows_of(&sampling.basis, origin, rows, bits);
        let roots = origin.points.iter().map(|x| Float::with_val(bits, x.sqrt_ref())).collect::<Vec<_>>();
        let times_root =
            |line: &Vec<Float>| line.iter().zip(&roots).map(|(entry, root)| entry.clone() * root).collect();
        let mut bases = Vec::new();
        for (cone, &parity) in sampled.parities().iter().enumerate() {
            let own = sampled.basis(cone);
            let lines = match parity {
                0 => even.clone(),
                _ => even[..own.rows()].iter().map(times_root).collect::<Dense>(),
            };
            let gram = lines.iter().map(|a| lines.iter().map(|b| dot(a, b, bits)).collect()).collect();
            let own = (0..own.rows()).map(|row| (0..count).map(|k| own.float(row, k)).collect::<Vec<_>>());
            let cross = own.map(|a| lines.iter().map(|b| dot(&a, b, bits)).collect()).collect::<Dense>();
            bases.push(divided(gram, &cross, bits));
        }
        let weights = weights(&sampling, origin, bits);
        Ok(Change { sampling, bases, weights, bits })
    }

    /// `(I (x) T)^T Y (I (x) T)`.
    fn dual(&self, cone: usize, block: &Block, bits: u32) -> Result<Block> {
        let (y, t) = (block.stored(), &self.bases[cone]);
        let rows = t.len();
        let image = |i: usize, j: usize| {
            let (part, at) = (j / rows * rows, j % rows);
            let column = (0..rows).map(|k| y.float(i, part + k)).collect::<Vec<_>>();
            dot(&column, t.iter().map(|line| &line[at]), self.bits)
        };
        let right = (0..y.rows()).map(|i| (0..y.cols()).map(|j| image(i, j)).collect::<Vec<_>>()).collect::<Dense>();
        let found = Matrix::from_fn(y.rows(), y.cols(), bits, |i, j| {
            let (part, at) = (i / rows * rows, i % rows);
            dot(t.iter().map(|line| &line[at]), right[part..part + rows].iter().map(|line| &line[j]), bits)
        })?;
        Ok(Block::Dense(found))
    }

    /// The same functional at the other points.
    fn primal(&self, x: &Matrix, bits: u32) -> Result<Matrix> {
        let count = self.weights.len();
        let columns = (0..x.rows()).map(|row| x.float(row, 0)).collect::<Vec<_>>();
        Matrix::from_fn(x.rows(), 1, bits, |row, _| {
            let (pair, at) = (row / count, row % count);
            dot(&self.weights[at], &columns[pair * count..][..count], bits)
        })
    }
}

/// How each group changes; a text where it is not known where it was sampled.
///
/// # Errors
/// Those of the basis.
pub fn changes(problem: &Problem) -> Result<std::result::Result<Vec<Change>, String>> {
    let mut found = Vec::new();
    for group in &problem.groups {
        let Constraints::Sampled(sampled) = &group.constraints else { return Ok(Err("no polynomials".into())) };
        let Some(origin) = sampled.origin() else { return Ok(Err("it is not known where it was sampled".into())) };
        if origin.scalings.iter().any(|scaling| scaling.is_nan() || *scaling <= 0) {
            return Ok(Err("a scaling of a sample point is not positive".into()));
        }
        found.push(Change::new(sampled, origin, problem.precision_bits)?);
    }
    Ok(Ok(found))
}

/// The point in terms of the samplings.
///
/// # Errors
/// Those of [`Matrix::from_fn`].
pub fn changed(changes: &[Change], problem: &Problem, point: &Point) -> Result<Point> {
    let bits = 2 * problem.precision_bits + 64;
    let (mut x, mut dual) = (Vec::new(), Vec::new());
    let mut blocks = point.dual.iter();
    for (change, own) in changes.iter().zip(&point.x) {
        x.push(change.primal(own, bits)?);
        for (cone, block) in (0..change.bases.len()).zip(&mut blocks) {
            dual.push(change.dual(cone, block, bits)?);
        }
    }
    Ok(Point { x, dual, primal: point.primal.clone(), y: point.y.clone() })
}
