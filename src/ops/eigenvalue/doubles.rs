//! A few digits of the smallest eigenvalue, searched for and proven in doubles, and the first vector of every search.
//!
//! Lanczos' method, with full reorthogonalisation, has no accuracy promise: it only chooses where a search begins. The
//! steps after it are those of the search in big floats: a quotient from above, a factorisation from below. Where
//! doubles cannot distinguish the eigenvalue from their own roundings, nothing is found, and big floats continue. Every
//! sum has one order, so the bits are the same everywhere. Proof: docs/decisions/070-a-few-digits-in-doubles.md.

/// The largest number of bits that are sought: beyond this the roundings of doubles are nearly always too large.
pub(super) const MOST_BITS: u32 = 32;

/// The largest number of rows: the error bounds below hold up to this number.
pub(super) const MOST_ROWS: usize = 1 << 14;

/// Half a unit in the last place of 1.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Factorisations with the vectors of one start.
const MOST_FACTORISATIONS: usize = 8;

/// A pivot at which a factorisation ends: quotients by its root stay far from overflow.
const LEAST_PIVOT: f64 = 1e-200;

/// Steps between two looks at the tridiagonal matrix.
const LOOK_STEPS: usize = 8;

/// The largest number of steps: beyond this number factorisations are cheaper.
const MOST_STEPS: usize = 160;

/// The residual, relative to the largest entry of the tridiagonal matrix, at which the vector is good enough.
const RESIDUAL: f64 = 1e-11;

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
    8 * order * (2 * order + order.min(MOST_STEPS as u64) + 6)
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
        let Start { mut vector, steps } = start(matrix, order, share);
        lanczos_steps += steps;
        let mut known = f64::NEG_INFINITY;
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

/// A vector of length 1, about, and the steps it took.
pub(super) struct Start {
    pub vector: Vec<f64>,
    pub steps: usize,
}

/// Vectors, orthonormal up to rounding, and the tridiagonal matrix of the operator on them.
#[derive(Default)]
struct Basis {
    vectors: Vec<Vec<f64>>,
    diagonal: Vec<f64>,
    beside: Vec<f64>,
}

/// A vector near that of the smallest eigenvalue of a symmetric matrix of `order` rows, given column by column: as near
/// as doubles make it, or with a residual below `share` of that eigenvalue.
pub(super) fn start(matrix: &[f64], order: usize, share: f64) -> Start {
    let mut basis = Basis::default();
    let mut next = first_vector(order);
    let mut image = vec![0.0; order];
    loop {
        multiply(matrix, &next, &mut image);
        basis.diagonal.push(dot(&next, &image));
        basis.vectors.push(next);
        basis.remove_from(&mut image);
        let steps = basis.vectors.len();
        let norm = dot(&image, &image).sqrt();
        let largest = basis.largest();
        // A residual of only rounding errors: the vectors span all that can be reached.
        let ends = steps == order.min(MOST_STEPS) || norm <= 1e-15 * largest || !norm.is_finite();
        if ends || steps.is_multiple_of(LOOK_STEPS) {
            let (lowest, weights) = basis.lowest();
            if ends || norm * weights[steps - 1].abs() <= (RESIDUAL * largest).max(share * lowest.abs()) {
                return Start { vector: basis.combine(&weights), steps };
            }
        }
        basis.beside.push(norm);
        next = image.iter().map(|value| value / norm).collect();
    }
}

/// Numbers of both signs, none of them 0, without a pattern that a matrix is likely to have.
fn first_vector(order: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut vector = (0..order).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = 0.5 + (state >> 12) as f64 / (1u64 << 53) as f64;
        if state >> 63 == 1 { -size } else { size }
    });
    let vector = vector.by_ref().collect::<Vec<f64>>();
    let norm = dot(&vector, &vector).sqrt();
    vector.iter().map(|value| value / norm).collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    // Four sums at a time: one would wait for itself.
    let mut sums = [0.0; 4];
    let (x_fours, y_fours) = (x.chunks_exact(4), y.chunks_exact(4));
    let rest = x_fours.remainder().iter().zip(y_fours.remainder()).map(|(x, y)| x * y).sum::<f64>();
    for (x, y) in x_fours.zip(y_fours) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x * y;
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// `to := to + factor * from`.
fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

/// `image := matrix * vector`, column by column.
fn multiply(matrix: &[f64], vector: &[f64], image: &mut [f64]) {
    image.fill(0.0);
    for (column, &factor) in matrix.chunks_exact(vector.len()).zip(vector) {
        add(image, factor, column);
    }
}

impl Basis {
    /// Makes a vector orthogonal to all; twice is enough.
    fn remove_from(&self, vector: &mut [f64]) {
        for _ in 0..2 {
            for known in &self.vectors {
                let part = dot(known, vector);
                add(vector, -part, known);
            }
        }
    }

    fn largest(&self) -> f64 {
        self.diagonal.iter().chain(&self.beside).fold(f64::MIN_POSITIVE, |largest, value| largest.max(value.abs()))
    }

    /// The smallest eigenvalue of the tridiagonal matrix, and its eigenvector.
    fn lowest(&self) -> (f64, Vec<f64>) {
        let steps = self.diagonal.len();
        let beside = |at: usize| if at == 0 { 0.0 } else { self.beside[at - 1].abs() };
        let after = |at: usize| if at + 1 == steps { 0.0 } else { self.beside[at].abs() };
        let reach = |at: usize| beside(at) + after(at);
        let mut low = (0..steps).map(|at| self.diagonal[at] - reach(at)).fold(f64::INFINITY, f64::min);
        let mut high = self.diagonal.iter().copied().fold(f64::INFINITY, f64::min);
        low -= 1e-14 * self.largest() + 1e-100; // beside entries of about 1
        // Bisection with the pivots' signs: they are positive just below the smallest eigenvalue.
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if middle == low || middle == high {
                break;
            }
            if self.pivots(middle).all(|pivot| pivot > 0.0) { low = middle } else { high = middle }
        }
        let pivots = self.pivots(low).collect::<Vec<_>>();
        let mut weights = vec![1.0; steps];
        for _ in 0..3 {
            self.solve(&pivots, &mut weights);
            let norm = dot(&weights, &weights).sqrt();
            weights.iter_mut().for_each(|weight| *weight /= norm);
        }
        (low, weights)
    }

    /// The pivots of the tridiagonal matrix less `shift`.
    fn pivots(&self, shift: f64) -> impl Iterator<Item = f64> {
        let beside = std::iter::once(0.0).chain(self.beside.iter().copied());
        self.diagonal.iter().zip(beside).scan(1.0, move |before, (&own, beside)| {
            let pivot = own - shift - beside * beside / *before;
            *before = if pivot == 0.0 { -f64::MIN_POSITIVE } else { pivot };
            Some(*before)
        })
    }

    /// Solves with the factor of these pivots, in place.
    fn solve(&self, pivots: &[f64], right: &mut [f64]) {
        let steps = pivots.len();
        for at in 1..steps {
            right[at] -= self.beside[at - 1] / pivots[at - 1] * right[at - 1];
        }
        right[steps - 1] /= pivots[steps - 1];
        for at in (0..steps - 1).rev() {
            right[at] = (right[at] - self.beside[at] * right[at + 1]) / pivots[at];
        }
    }

    fn combine(&self, weights: &[f64]) -> Vec<f64> {
        let mut vector = vec![0.0; self.vectors[0].len()];
        for (known, &weight) in self.vectors.iter().zip(weights) {
            add(&mut vector, weight, known);
        }
        vector
    }
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

    /// `2` on the diagonal, `-1` next to it: the smallest eigenvalue is `2 - 2 cos(pi / (n + 1))`.
    #[test]
    fn the_quotient_of_the_vector_is_near_the_smallest_eigenvalue() {
        for order in [1usize, 2, 3, 10, 60, 150] {
            let mut matrix = vec![0.0; order * order];
            for at in 0..order {
                matrix[at * order + at] = 2.0;
                if at > 0 {
                    (matrix[at * order + at - 1], matrix[(at - 1) * order + at]) = (-1.0, -1.0);
                }
            }
            let Start { vector, steps } = start(&matrix, order, 0.0);
            let mut image = vec![0.0; order];
            multiply(&matrix, &vector, &mut image);
            let quotient = dot(&vector, &image) / dot(&vector, &vector);
            let want = 2.0 - 2.0 * (std::f64::consts::PI / (order as f64 + 1.0)).cos();
            assert!((quotient - want).abs() < 1e-10, "order {order}: {quotient} for {want} in {steps} steps");
        }
        assert!(start(&[0.0; 9], 3, 0.0).vector.iter().all(|value| value.is_finite()));
    }
}
