//! Cholesky factors of matrices of balls.
//!
//! With the factor `L` of the midpoint and `W = L^-1`, column `j` of the factor of a point `A` follows from row `j` of
//! `W` and from the vector of the same last entry that `A` maps to 0 in the rows before `j`. How far that vector moves
//! is bounded as the solution of a linear system; the rest is exact.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{RADIUS_BITS, power_above_one};
use super::matrix::BallMatrix;
use super::product::rounding;
use super::regular::{BOUND_BITS, Definite, InverseFactor, perturbation};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::estimate::{Upper, magnitude, power};
use crate::ops::product::problem::Accuracy;
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, AssignRound};

/// The largest number of steps of the iteration that bounds the change of a vector.
const STEPS: usize = 100;

/// Amount by which a candidate for a bound is raised, as a power of two.
const RAISED_LOG2: i32 = -20;

/// Pairs of equal entries that count as one, at most this times the order: their cost is that of the other sums.
const PAIRS_OF_ROW: usize = 4;

/// A bound is not improved upon where it is at most this times what the iteration has reached from below.
const SHARP_RATIO: f64 = 1.03;

/// Balls that contain the lower triangular `L` with `A = L L^T` for every symmetric point of `a`.
///
/// Shapes: `a` is `n x n` with a symmetric midpoint; only the lower triangle of the radii is used. Above the diagonal
/// both midpoint and radius are 0. Radius: to first order the sum of the magnitudes of all derivatives, times the
/// radii; for the `4 n` pairs with the largest radii relative to the diagonal, entries `(i, j)` and `(j, i)` are one
/// variable of this sum, and two variables otherwise. Cost: a factorisation with as many bits as `precision_bits` and
/// the condition require, the inverse of a triangle, `n^3 / 2` multiply-adds of as many bits as the condition takes,
/// `n^3` of 64 bits or more, and for the pairs in each entry `(i, j)` two of the former and six of the latter for each
/// pair up to row `j`. Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let midpoint = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.0, 0.5, 0.5, 0.0])?;
/// let l = ball::cholesky(&ctx, &BallMatrix::new(midpoint, &radius)?, 128)?;
/// assert!(l.contains(0, 0, &Rational::from(2)) && l.contains(1, 1, &Rational::from(2)));
/// assert!(l.contains(1, 0, &Rational::from((3, 4))) && l.contains(1, 0, &Rational::from((5, 4))));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] for the midpoint; [`crate::Error::InvalidArgument`] if no proof is found that
/// all points are positive definite; [`crate::Error::NotSymmetric`]; the errors of [`crate::cholesky_with`].
pub fn cholesky(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    let definite = Definite::new(ctx, a, precision_bits, Accuracy::Entrywise)?;
    let factor = definite.factor.factor();
    let (order, midpoint) = (factor.rows(), factor.view().rounded(precision_bits)?);
    let perturbation = perturbation(ctx, a, factor.view())?;
    let inverse = InverseFactor::of(ctx, &definite)?;
    let pairs = EqualEntries::of(a.midpoint(), &perturbation);
    let columns = columns(&definite, &inverse, &perturbation, &pairs).map_err(|row| not_definite(a, row))?;
    let moved = off_diagonal(&definite, &inverse, &columns, &pairs)?;
    let radius = Matrix::from_fn(order, order, RADIUS_BITS, |row, col| {
        if row < col {
            return Float::new(RADIUS_BITS);
        }
        let FactorColumn { least, drop, .. } = &columns[col];
        let own = Upper(magnitude(factor.get(row, col))).times(drop);
        // (|y|^T D |p| + |l| (1 - lambda)^2 / 2) / lambda, or |l| (1 - lambda).
        let change = match row == col {
            true => own,
            false => Upper(own.times(drop).0 >> 1).add(&moved.float(row, col)).over(least),
        };
        change.add(&rounding(factor.float(row, col), &midpoint.float(row, col))).0
    })?;
    Ok(BallMatrix::trusted(midpoint, radius))
}

/// The change of one column of the factor over the points of the balls.
struct FactorColumn {
    /// `D |p|`: a bound of the perturbation times the vector that belongs to the column.
    image: Vec<Float>,
    /// The same for the rows up to that of the column, where of the pairs only what moves `p` counts.
    without_pairs: Vec<Float>,
    /// A lower bound of the pivots of all points relative to that of the midpoint, positive.
    least: Float,
    /// An upper bound of the distance of these ratios from 1.
    drop: Float,
}

/// Equal entries `(k, m)` and `(m, k)` whose bounds count once: the derivative with respect to both is the sum of two
/// terms, which may cancel.
struct EqualEntries {
    /// The rows and columns, `k > m`, by `k`, with their bounds.
    chosen: Vec<(usize, usize, Float)>,
    /// The columns `m` of each row `k` that are chosen, of both triangles.
    of_row: Vec<Vec<bool>>,
}

impl EqualEntries {
    /// The pairs with the largest bounds relative to the diagonal.
    fn of(midpoint: &Matrix, perturbation: &Matrix) -> EqualEntries {
        let order = midpoint.rows();
        let diagonal: Vec<Float> = (0..order).map(|at| midpoint.float(at, at)).collect();
        let mut all: Vec<(Float, usize, usize)> = Vec::new();
        for (k, m) in (0..order).flat_map(|k| (0..k).map(move |m| (k, m))) {
            let bound = perturbation.float(k, m);
            if !bound.is_zero() {
                let size = Float::with_val(RADIUS_BITS, &diagonal[k] * &diagonal[m]);
                all.push((bound.square() / size, k, m));
            }
        }
        all.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        all.truncate(PAIRS_OF_ROW * order);
        let mut of_row = vec![vec![false; order]; order];
        let mut chosen: Vec<(usize, usize, Float)> = Vec::with_capacity(all.len());
        for (_, k, m) in all {
            (of_row[k][m], of_row[m][k]) = (true, true);
            chosen.push((k, m, perturbation.float(k, m)));
        }
        chosen.sort_by_key(|&(k, m, _)| (k, m));
        EqualEntries { chosen, of_row }
    }

    /// `D |p|` in the rows up to that of the column, where the bounds of pairs are multiplied by `|p - w|` only.
    fn rest(&self, bounds: &[Vec<Float>], whole: &[Float], moved: &[Float]) -> Vec<Float> {
        let row = |k: usize| {
            let of_pair = &self.of_row[k];
            dot(&bounds[k], (0..whole.len()).map(|m| if of_pair[m] { &moved[m] } else { &whole[m] }))
        };
        (0..whole.len()).map(row).collect()
    }

    /// The sum over the pairs up to row `col` of their bounds times `|v_k w_m + v_m w_k|`.
    fn first_order(&self, vector: &[Known], own: &InverseRow, unit: &Float) -> Upper {
        let within = self.chosen.iter().take_while(|(k, ..)| *k < vector.len());
        within.fold(Upper::zero(), |sum, (k, m, bound)| {
            let (near, off) = (&vector[*k].value, &vector[*m].value);
            let bits = near.prec();
            let product = Float::with_val(bits, near * &own.near[*m]);
            let cancelled = product + Float::with_val(bits, off * &own.near[*k]);
            let size = Float::with_val_round(RADIUS_BITS, cancelled.abs_ref(), Round::Up).0;
            let error = vector[*k].error_of_product(own, *m, unit).add(&vector[*m].error_of_product(own, *k, unit).0);
            sum.add(&Upper(size).add(&error.0).times(bound).0)
        })
    }
}

/// A number that is known up to an error.
struct Known {
    value: Float,
    /// At most this is the error.
    off: Upper,
    /// At least the magnitude.
    size: Float,
}

impl Known {
    /// A bound of the error of the computed product with entry `at` of a row of `W`, and of its share of the rounding
    /// of a sum.
    fn error_of_product(&self, own: &InverseRow, at: usize, unit: &Float) -> Upper {
        let known = Upper(own.size[at].clone()).times(unit).add(&own.off[at]).times(&self.size);
        Upper(self.off.0.clone()).times(&own.size[at]).add(&known.0)
    }
}

/// A row of `W = L^-1` up to its diagonal, with bounds of its errors and magnitudes.
struct InverseRow {
    near: Vec<Float>,
    off: Vec<Float>,
    size: Vec<Float>,
}

impl InverseRow {
    fn of(inverse: &InverseFactor, row: usize) -> InverseRow {
        let of = |matrix: &Matrix| (0..=row).map(|at| matrix.float(row, at)).collect();
        InverseRow { near: of(&inverse.near), off: of(&inverse.off), size: of(&inverse.size) }
    }
}

/// The columns; otherwise the first row whose pivot is not proven to be positive for all points.
fn columns(
    definite: &Definite,
    inverse: &InverseFactor,
    perturbation: &Matrix,
    pairs: &EqualEntries,
) -> std::result::Result<Vec<FactorColumn>, usize> {
    let order = perturbation.rows();
    let perturbation = (0..order).map(|row| (0..order).map(|col| perturbation.float(row, col)).collect());
    let perturbation: Vec<Vec<Float>> = perturbation.collect();
    let mut leading = LeadingInverse::new(definite, order);
    let mut columns = Vec::with_capacity(order);
    for col in 0..order {
        let own: Vec<Float> = (0..=col).map(|at| inverse.size.float(col, at)).collect();
        let Some(moved) = distance(&leading, &perturbation, &own) else { return Err(col) };
        let whole: Vec<Float> = own.iter().zip(&moved).map(|(own, moved)| Upper(own.clone()).add(moved).0).collect();
        let image = times(&perturbation, &whole, order);
        let change = Upper(dot(&own, &image));
        // lambda^2 is within `change` of 1.
        let left = Float::with_val_round(RADIUS_BITS, 1 - &change.0, Round::Down).0;
        if left <= 0 {
            return Err(col);
        }
        let least = Float::with_val_round(RADIUS_BITS, left.sqrt_ref(), Round::Down).0;
        let drop = change.over(&Float::with_val_round(RADIUS_BITS, &least + 1u32, Round::Down).0).0;
        let without_pairs = pairs.rest(&perturbation, &whole, &moved);
        columns.push(FactorColumn { image, without_pairs, least, drop });
        leading.extend(inverse, col);
    }
    Ok(columns)
}

/// The sum of the products, rounded up.
fn dot<'a>(left: impl IntoIterator<Item = &'a Float>, right: impl IntoIterator<Item = &'a Float>) -> Float {
    let (mut sum, mut product) = (Float::new(RADIUS_BITS), Float::new(RADIUS_BITS));
    let terms = left.into_iter().zip(right);
    for (one, other) in terms.filter(|(one, other)| !one.is_zero() && !other.is_zero()) {
        product.assign_round(one * other, Round::Up);
        sum.add_assign_round(&product, Round::Up);
    }
    sum
}

/// `D v` in the first `rows` rows, rounded up.
fn times(bounds: &[Vec<Float>], vector: &[Float], rows: usize) -> Vec<Float> {
    bounds[..rows].iter().map(|own| dot(own, vector)).collect()
}

/// The inverse of a leading block of `L L^T`, which grows by a row and a column.
struct LeadingInverse {
    /// Bits of sums.
    bits: u32,
    /// Bound of the error of a sum relative to its terms.
    unit: Float,
    /// The lower triangle, row by row, and bounds of its errors.
    near: Vec<Vec<Float>>,
    off: Vec<Vec<Upper>>,
    /// Bounds of the magnitudes.
    size: Vec<Vec<Float>>,
}

/// Bound of the error of a sum of products of `bits` bits relative to its terms, of which there are at most
/// `2 order`, with the roundings of the products.
fn unit(order: usize, bits: u32) -> Float {
    Upper(Float::with_val(RADIUS_BITS, order + 4)).times(&power(2 - i64::from(bits))).0
}

impl LeadingInverse {
    fn new(definite: &Definite, order: usize) -> LeadingInverse {
        let bits = definite.lost_bits + BOUND_BITS;
        LeadingInverse { bits, unit: unit(order, bits), near: Vec::new(), off: Vec::new(), size: Vec::new() }
    }

    /// `W_j^T W_j` of one more row of `W`.
    fn extend(&mut self, inverse: &InverseFactor, row: usize) {
        self.near.push(vec![Float::new(self.bits); row + 1]);
        self.off.push(vec![Upper::zero(); row + 1]);
        self.size.push(vec![Float::new(RADIUS_BITS); row + 1]);
        let InverseRow { near, off, size } = InverseRow::of(inverse, row);
        for i in (0..=row).filter(|&i| !size[i].is_zero()) {
            for j in (0..=i).filter(|&j| !size[j].is_zero()) {
                self.near[i][j] += Float::with_val(self.bits, &near[i] * &near[j]);
                // w_i w_j is off by at most |w_i| |dw_j| + |dw_i| |w_j|, and by its roundings.
                let known = Upper(size[j].clone()).times(&self.unit).add(&off[j]).times(&size[i]);
                let error = Upper(off[i].clone()).times(&size[j]).add(&known.0);
                self.off[i][j].0 = Upper(self.off[i][j].0.clone()).add(&error.0).0;
                let magnitude = Float::with_val_round(RADIUS_BITS, self.near[i][j].abs_ref(), Round::Up).0;
                self.size[i][j] = Upper(magnitude).add(&self.off[i][j].0).0;
            }
        }
    }

    /// `N v`, rounded up, with `N` the magnitudes.
    fn image(&self, vector: &[Float]) -> Vec<Float> {
        let rows = self.size.len();
        let entry = |row: usize, col: usize| &self.size[row.max(col)][row.min(col)];
        (0..rows).map(|row| dot((0..rows).map(|col| entry(row, col)), vector)).collect()
    }
}

/// A bound of `|p_j - w_j|` for all points, with `own >= |w_j|`: some `z >= N D (|w_j| + z)`, and 0 in the last entry;
/// `None` where none is found.
///
/// The iteration from 0 approaches the least `z` from below. Where a step shrinks to at most `r` times itself in every
/// entry, the sum of all further ones is at most `r / (1 - r)` times it; that this is a bound is checked.
fn distance(leading: &LeadingInverse, perturbation: &[Vec<Float>], own: &[Float]) -> Option<Vec<Float>> {
    let rows = leading.size.len();
    let with_last = |mut vector: Vec<Float>| {
        vector.push(Float::new(RADIUS_BITS));
        vector
    };
    let image = |moved: &[Float]| -> Vec<Float> {
        let whole: Vec<Float> = own.iter().zip(moved).map(|(own, moved)| Upper(own.clone()).add(moved).0).collect();
        with_last(leading.image(&times(perturbation, &whole, rows)))
    };
    let raised = power_above_one(RAISED_LOG2);
    let (mut last, mut next) =
        (vec![Float::new(RADIUS_BITS); own.len()], image(&vec![Float::new(RADIUS_BITS); own.len()]));
    let mut found: Option<Vec<Float>> = None;
    for _ in 0..STEPS {
        let further = image(&next);
        let (least, most) = ratios(&last, &next, &further);
        if least >= 1 {
            break;
        }
        if most < 1 {
            let rest = Upper(most.clone()).over(&Float::with_val_round(RADIUS_BITS, 1 - &most, Round::Down).0).0;
            let candidate: Vec<Float> = (last.iter().zip(&next))
                .map(|(last, next)| {
                    let step = Float::with_val_round(RADIUS_BITS, next - last, Round::Up).0;
                    Upper(step).times(&rest).add(next).times(&raised).0
                })
                .collect();
            let moved = image(&candidate);
            if moved.iter().zip(&candidate).all(|(moved, candidate)| moved <= candidate) {
                let is_sharp =
                    |(bound, reached): (&Float, &Float)| *bound <= Float::with_val(RADIUS_BITS, reached * SHARP_RATIO);
                let is_last = moved.iter().zip(&further).all(is_sharp);
                found = Some(moved);
                if is_last {
                    break;
                }
            }
        }
        (last, next) = (next, further);
    }
    found
}

/// The least and the largest ratio of two successive steps of an iteration, about; 0 where there are none.
fn ratios(last: &[Float], next: &[Float], further: &[Float]) -> (Float, Float) {
    let (mut least, mut most) = (None::<Float>, Float::new(RADIUS_BITS));
    for ((last, next), further) in last.iter().zip(next).zip(further) {
        let (first, second) = (Float::with_val(RADIUS_BITS, next - last), Float::with_val(RADIUS_BITS, further - next));
        if first <= 0 && second <= 0 {
            continue;
        }
        // An entry that has only now been reached: infinite, which is no bound.
        let ratio = Float::with_val(RADIUS_BITS, second / first);
        least = Some(least.map_or_else(|| ratio.clone(), |least| least.min(&ratio)));
        most = most.max(&ratio);
    }
    (least.unwrap_or_else(|| Float::new(RADIUS_BITS)), most)
}

/// Bounds of `|(y_ij - l_ij w_j / 2)^T dA p_j|` below the diagonal, where `y_ij = e_i - sum_(m < j) l_im w_m`.
///
/// The vectors are sums whose terms cancel, formed in as many bits as the condition takes.
/// Cost: `n^3 / 3` multiply-adds of few bits, and those of the pairs.
fn off_diagonal(
    definite: &Definite,
    inverse: &InverseFactor,
    columns: &[FactorColumn],
    pairs: &EqualEntries,
) -> Result<Matrix> {
    let factor = definite.factor.factor();
    let order = factor.rows();
    let bits = definite.lost_bits + BOUND_BITS;
    let unit = unit(order, bits);
    let mut whole = Matrix::zeros(order, order, RADIUS_BITS)?;
    for row in 0..order {
        let mut vector: Vec<Known> = Vec::with_capacity(row);
        for (col, column) in columns[..row].iter().enumerate() {
            let (entry, size) = (Float::with_val(bits, factor.float(row, col)), magnitude(factor.get(row, col)));
            let own = InverseRow::of(inverse, col);
            vector.push(Known { value: Float::new(bits), off: Upper::zero(), size: Float::new(RADIUS_BITS) });
            let halves: Vec<Float> = own.near.iter().map(|near| Float::with_val(bits, &entry * near) >> 1).collect();
            for (k, known) in vector.iter_mut().enumerate() {
                let error = Upper(own.size[k].clone()).times(&unit).add(&own.off[k]).times(&size);
                known.off = Upper(known.off.0.clone()).add(&error.0);
                known.value -= &halves[k];
                known.size = Float::with_val_round(RADIUS_BITS, known.value.abs_ref(), Round::Up).0;
                known.size = Upper(known.size.clone()).add(&known.off.0).0;
            }
            // The entry of `y` in this row is 1.
            let sum = Upper(column.image[row].clone()).add(&pairs.first_order(&vector, &own, &unit).0);
            let rest = dot(vector.iter().map(|known| &known.size), &column.without_pairs);
            whole.set_float(row, col, &sum.add(&rest).0)?;
            vector.iter_mut().zip(&halves).for_each(|(known, half)| known.value -= half);
        }
    }
    Ok(whole)
}

fn not_definite(a: &BallMatrix, row: usize) -> Error {
    let order = a.rows();
    let remedy = match a.widest() {
        Some((row, col)) => {
            let radius = a.radius().float(row, col).to_f64();
            format!("give smaller radii (the largest is {radius:.3e}, at row {row}, column {col})")
        }
        None => "give more bits of precision".to_string(),
    };
    Error::InvalidArgument(format!(
        "cholesky: the {order} x {order} balls may contain a matrix that is not positive definite: {remedy}. No proof \
         is found that the pivot of row {row} is positive for every matrix in the balls"
    ))
}
