//! Lanczos' method in doubles, with full reorthogonalisation: a vector whose Rayleigh quotient is near the smallest
//! eigenvalue.
//!
//! It has no accuracy promise: it only chooses where a search begins. Every sum has one order, so its bits are the same
//! everywhere.

/// Steps between two looks at the tridiagonal matrix.
const LOOK_STEPS: usize = 8;

/// Most steps: beyond this number factorisations are cheaper.
pub(super) const MOST_STEPS: usize = 160;

/// The residual, relative to the largest entry of the tridiagonal matrix, at which the vector is good enough.
const RESIDUAL: f64 = 1e-11;

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

pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
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
pub(super) fn multiply(matrix: &[f64], vector: &[f64], image: &mut [f64]) {
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
