//! A few digits of the smallest eigenvalue, searched for and proven in doubles.
//!
//! The steps are those of the search in big floats: a quotient from above, a factorisation from below. Where doubles
//! cannot distinguish the eigenvalue from their own roundings, nothing is found, and big floats continue. Every sum has
//! one order, so the bits are the same everywhere. Proof: docs/decisions/070-a-few-digits-in-doubles.md.

use super::lanczos::{self, dot, multiply};

/// Most bits that are sought: beyond this the roundings of doubles are nearly always too large.
pub(super) const MOST_BITS: u32 = 32;

/// Most rows: the error bounds below hold up to this number.
pub(super) const MOST_ROWS: usize = 1 << 14;

/// Half a unit in the last place of 1.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Factorisations with the vectors of one start.
const MOST_FACTORISATIONS: usize = 8;

/// A pivot at which a factorisation ends: quotients by its root stay far from overflow.
const LEAST_PIVOT: f64 = 1e-200;

/// An interval that holds the smallest eigenvalue, and its cost.
#[derive(Debug)]
pub(super) struct EigenvalueBounds {
    pub lower: f64,
    pub upper: f64,
    pub lanczos_steps: usize,
    pub factorisations: usize,
}

/// Bytes of the matrix in doubles, of its factor and of the vectors.
pub(super) fn bytes(order: usize) -> u64 {
    let order = order as u64;
    8 * order * (2 * order + order.min(lanczos::MOST_STEPS as u64) + 6)
}

/// The interval for a symmetric matrix that differs from `matrix` by at most one unit in the last place of each entry,
/// and in entries below `2^-1000`; its largest entry is between 1/2 and 1. The interval is at most `2^-bits` times the
/// eigenvalue wide. `None` where doubles do not suffice.
pub(super) fn enclose(matrix: &[f64], order: usize, bits: u32) -> Option<EigenvalueBounds> {
    let norm = dot(matrix, matrix).sqrt();
    if order > MOST_ROWS || norm == 0.0 || !norm.is_finite() {
        return None;
    }
    let goal = Goal { matrix, order, norm, relative: 0.5f64.powi(bits as i32) };
    let (mut lanczos_steps, mut factorisations) = (0, 0);
    let mut factor = Vec::with_capacity(matrix.len());
    // The second vector is as good as doubles make it, for a first one that was near another eigenvalue.
    for share in [goal.relative / 16.0, 0.0] {
        let start = lanczos::start(matrix, order, share);
        lanczos_steps += start.steps;
        let (mut vector, mut known) = (start.vector, f64::NEG_INFINITY);
        for _ in 0..MOST_FACTORISATIONS {
            let found = goal.at(&vector);
            if goal.is_narrow(known, found.upper) {
                return Some(EigenvalueBounds { lower: known, upper: found.upper, lanczos_steps, factorisations });
            }
            if !goal.is_narrow(found.value - found.hidden, found.upper) {
                return None;
            }
            factorisations += 1;
            factor.clear();
            factor.extend_from_slice(matrix);
            (0..order).for_each(|at| factor[at * order + at] -= found.shift);
            if !has_factor(&mut factor, order) {
                break;
            }
            known = known.max(found.shift - found.hidden);
            if goal.is_narrow(known, found.upper) {
                return Some(EigenvalueBounds { lower: known, upper: found.upper, lanczos_steps, factorisations });
            }
            solve(&factor, &mut vector);
        }
    }
    None
}

/// The goal of the search, and the matrix.
struct Goal<'a> {
    matrix: &'a [f64],
    order: usize,
    norm: f64,
    /// Width that the interval may have relative to the eigenvalue.
    relative: f64,
}

/// The bounds of the eigenvalue from a vector.
struct Look {
    value: f64,
    /// Not below the eigenvalue.
    upper: f64,
    /// Where to factor next.
    shift: f64,
    /// Distance below that shift within which a factor proves nothing.
    hidden: f64,
}

impl Goal<'_> {
    fn at(&self, vector: &[f64]) -> Look {
        let Goal { matrix, order, norm, .. } = *self;
        let Quotient { value, residual } = Quotient::new(matrix, vector);
        let above = (4 * order + 12) as f64 * UNIT * norm;
        let trace = (0..order).map(|at| (matrix[at * order + at] - value).abs()).sum::<f64>();
        let hidden = 1.125 * (order + 8) as f64 * UNIT * (trace + order as f64 * residual + norm);
        Look { value, upper: value + above, shift: value - (1.0625 * residual + above), hidden }
    }

    fn is_narrow(&self, lower: f64, upper: f64) -> bool {
        let least = if lower > 0.0 || upper < 0.0 { lower.abs().min(upper.abs()) } else { 0.0 };
        1.0625 * (upper - lower) <= 0.5 * self.relative * least
    }
}

/// `vector := (L L^T)^-1 vector`, with a length of about 1.
fn solve(factor: &[f64], vector: &mut [f64]) {
    let order = vector.len();
    let column = |at: usize| &factor[at * order + at..(at + 1) * order];
    for at in 0..order {
        let (done, rest) = vector.split_at_mut(at + 1);
        done[at] /= column(at)[0];
        rest.iter_mut().zip(&column(at)[1..]).for_each(|(entry, own)| *entry -= done[at] * own);
    }
    for at in (0..order).rev() {
        let (done, rest) = vector.split_at_mut(at + 1);
        done[at] = (done[at] - dot(&column(at)[1..], rest)) / column(at)[0];
    }
    let size = vector.iter().fold(f64::MIN_POSITIVE, |most, entry| most.max(entry.abs()));
    vector.iter_mut().for_each(|entry| *entry /= size);
}

/// A Rayleigh quotient, and the norm of its residual relative to that of the vector.
struct Quotient {
    value: f64,
    residual: f64,
}

impl Quotient {
    fn new(matrix: &[f64], vector: &[f64]) -> Quotient {
        let mut image = vec![0.0; vector.len()];
        multiply(matrix, vector, &mut image);
        let square = dot(vector, vector);
        let value = dot(vector, &image) / square;
        image.iter_mut().zip(vector).for_each(|(image, entry)| *image -= value * entry);
        Quotient { value, residual: (dot(&image, &image) / square).sqrt() }
    }
}

/// Whether the lower triangle, column by column, has a Cholesky factor, which takes its place.
fn has_factor(matrix: &mut [f64], order: usize) -> bool {
    for at in 0..order {
        let (done, rest) = matrix.split_at_mut((at + 1) * order);
        let column = &mut done[at * order + at..];
        if column[0].is_nan() || column[0] <= LEAST_PIVOT {
            return false;
        }
        let root = column[0].sqrt();
        column.iter_mut().for_each(|entry| *entry /= root);
        for (below, other) in rest.chunks_exact_mut(order).enumerate() {
            let own = &column[1 + below..];
            let factor = own[0];
            other[at + 1 + below..].iter_mut().zip(own).for_each(|(entry, own)| *entry -= factor * own);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::effort;

    #[test]
    fn a_factor_exists_for_positive_definite_matrices_alone() {
        let matrix = |last: f64| vec![4.0, 2.0, 2.0, 9.0, 5.0, 3.0, 9.0, 9.0, last];
        let mut factor = matrix(6.0);
        assert!(has_factor(&mut factor, 3));
        assert_eq!([factor[0], factor[1], factor[2], factor[4], factor[5], factor[8]], [2.0, 1.0, 1.0, 2.0, 1.0, 2.0]);
        assert!(has_factor(&mut matrix(2.1), 3) && !has_factor(&mut matrix(2.0), 3));
        assert!(!has_factor(&mut matrix(f64::NAN), 3) && !has_factor(&mut matrix(f64::NEG_INFINITY), 3));
        assert!(!has_factor(&mut [1e-201], 1) && has_factor(&mut [1e-199], 1));
    }

    #[test]
    fn intervals_hold_the_eigenvalue_of_a_formula_or_are_not_given() {
        for order in [1usize, 2, 5, 40, 200] {
            // Eigenvalues c - 2 cos(k pi / (n + 1)), scaled.
            for (at, shift) in [0.0, 3.0, 1.5].into_iter().enumerate() {
                let entry = |i: usize, j: usize| if i == j { shift } else { -f64::from(u8::from(i.abs_diff(j) == 1)) };
                let matrix = (0..order * order).map(|at| entry(at % order, at / order) / 4.0).collect::<Vec<_>>();
                let want = (shift - 2.0 * (std::f64::consts::PI / (order as f64 + 1.0)).cos()) / 4.0;
                for bits in [2, 16, 32] {
                    // The largest order takes most of the time: with little effort each shift has one precision there.
                    if order == 200 && effort() == 1 && bits != [16, 32, 2][at] {
                        continue;
                    }
                    let Some(found) = enclose(&matrix, order, bits) else {
                        assert!(want.abs() < 1e-15 || (bits == 32 && order == 200), "order {order}, {bits} bits");
                        continue;
                    };
                    assert!(found.lower <= want + 1e-15 && found.upper >= want - 1e-15, "{found:?} for {want}");
                    assert!(found.upper - found.lower <= want.abs() * 0.5f64.powi(bits as i32));
                    assert!(found.factorisations <= if order == 200 { 4 } else { 1 }, "order {order}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn what_roundings_hide_is_not_told() {
        // Rank one: the others are 0.
        assert!(enclose(&[0.5; 9], 3, 16).is_none());
        assert!(enclose(&[0.0; 4], 2, 16).is_none());
        // Eigenvalues 2^-1 and 2^-50.
        assert!(enclose(&[0.5, 0.0, 0.0, 0.5f64.powi(50)], 2, 16).is_none());
        assert!(enclose(&[0.5, 0.0, 0.0, 0.5f64.powi(20)], 2, 16).is_some());
    }
}
