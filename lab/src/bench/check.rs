//! Checks of every answer at sampled entries: the trait of verifiers, and the verifier of products, which is exact.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rug::float::Round;
use rug::ops::{AssignRound, CompleteRound};
use rug::{Assign, Float};
use sunzi::Matrix;

/// Entries sampled.
const SAMPLES: usize = 64;

/// Decides whether a result is right.
pub trait Verifier {
    /// Largest error of the sampled entries of a result in units of our bound; 0 where there are none, and not a
    /// number where an entry is none.
    fn worst_error(&self, entry: &dyn Fn(usize, usize) -> Float) -> f64;

    /// The bound of the baselines in units of ours.
    fn baseline_allowance(&self) -> f64;
}

/// An endless sequence of places in a matrix that is not empty, the same in every run.
pub fn draw(rows: usize, cols: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut generator = ChaCha8Rng::seed_from_u64(0);
    let mut index = move |count: usize| ((u128::from(generator.next_u64()) * count as u128) >> 64) as usize;
    std::iter::repeat_with(move || (index(rows), index(cols)))
}

/// The largest of some ratios, or the first that is NaN.
pub fn worst(ratios: impl Iterator<Item = f64>) -> f64 {
    ratios.fold(0.0, |worst: f64, ratio| if worst.is_nan() || ratio <= worst { worst } else { ratio })
}

/// One entry: its place, its value, and the error that is allowed.
struct EntrySample {
    row: usize,
    col: usize,
    /// `sum_k a_k,row * b_k,col`, correct to far below the bound.
    value: Float,
    /// `2^(1 - b) ||a_row|| ||b_col||`, rounded up.
    bound: Float,
}

/// The sampled entries of `A^T B` (of the lower triangle of `A^T A` without B).
pub struct Samples {
    samples: Vec<EntrySample>,
    contracted: usize,
}

impl Samples {
    /// Computes the samples through MPFR's correctly rounded dot product.
    pub fn new(a: &Matrix, b: Option<&Matrix>) -> Samples {
        let cols = a.cols();
        let count = if a.rows() == 0 { 0 } else { SAMPLES.min(cols * cols) };
        let place = |(row, col): (usize, usize)| if b.is_none() { (row.max(col), row.min(col)) } else { (row, col) };
        let samples = draw(cols, cols).take(count).map(place).map(|(row, col)| sample(a, b.unwrap_or(a), row, col));
        Samples { samples: samples.collect(), contracted: a.rows() }
    }
}

impl Verifier for Samples {
    fn worst_error(&self, entry: &dyn Fn(usize, usize) -> Float) -> f64 {
        worst(self.samples.iter().map(|sample| {
            let error = (&sample.value - &entry(sample.row, sample.col)).complete(64).abs();
            if error.is_zero() { 0.0 } else { (error / &sample.bound).to_f64() }
        }))
    }

    /// `2^(4 - b) K ||a|| ||b||`.
    fn baseline_allowance(&self) -> f64 {
        8.0 * self.contracted as f64
    }
}

fn sample(a: &Matrix, b: &Matrix, row: usize, col: usize) -> EntrySample {
    let column = |matrix: &Matrix, col: usize| (0..matrix.rows()).map(|k| matrix.float(k, col)).collect::<Vec<_>>();
    let (x, y) = (column(a, row), column(b, col));
    let mut value = Float::new(2 * a.precision_bits() + 64);
    value.assign(Float::dot(x.iter().zip(&y)));
    let mut bound = norm(&x) * norm(&y);
    bound.next_up();
    EntrySample { row, col, value, bound: bound >> (a.precision_bits() - 1) }
}

/// Euclidean norm, rounded up.
fn norm(values: &[Float]) -> Float {
    let mut sum = Float::new(64);
    sum.assign_round(Float::dot(values.iter().map(|value| (value, value))), Round::Up);
    sum.sqrt_round(Round::Up);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::gallery::{Kind, Size, generate};

    #[test]
    fn an_error_is_seen_in_units_of_the_bound() {
        let p = generate(Kind::Random, Size { rows: 30, cols: 3, precision_bits: 80 }, 1).unwrap();
        let samples = Samples::new(&p, None);
        let exact = |i: usize, j: usize| {
            let terms = (0..30).map(|k| Float::with_val(500, p.float(k, i)) * p.float(k, j));
            terms.fold(Float::new(500), |sum, term| sum + term)
        };
        assert_eq!(samples.worst_error(&exact), 0.0);
        let squared = Float::with_val(500, exact(0, 0)); // norms of columns differ little
        let off = samples.worst_error(&|i, j| exact(i, j) + (squared.clone() >> 79));
        assert!((0.5..2.0).contains(&off), "{off}");
        let nothing = |i: usize, j: usize| if i == 2 { Float::with_val(64, f64::NAN) } else { exact(i, j) };
        assert!(samples.worst_error(&nothing).is_nan());
    }
}
