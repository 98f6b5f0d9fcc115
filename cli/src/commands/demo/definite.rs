//! From a Gram matrix to its Cholesky factor and a solution: in doubles, where it breaks down, and in big floats.

use super::still_wanted;
use rug::{Float, Integer};
use serde::Serialize;
use std::fmt;
use std::time::Instant;
use sunzi::advanced::math::bound::ceil_log2;
use sunzi::advanced::math::pivot::diagonal_exponent;
use sunzi::verify::{VerifyOptions, verify_cholesky};
use sunzi::{Accuracy, Cholesky, CholeskyOptions, Context, Error, IndexBase, Matrix, Result, SymmetricMatrix};
use sunzi::{cholesky, cholesky_with};
use sunzi_session::units::format_seconds;

/// Bits of a double.
const DOUBLE_BITS: u32 = 53;

/// The number of columns that a factorisation in doubles completed.
#[derive(Serialize)]
pub struct InDoubles {
    /// Number of rows of the matrix.
    dimension: usize,
    /// Index, from 0, of the first pivot that is not positive.
    failed_index: Option<usize>,
    /// The last pivot computed, of the matrix with its diagonal scaled to between 1/4 and 1.
    pivot: f64,
}

impl fmt::Display for InDoubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InDoubles { dimension, failed_index, pivot } = self;
        match failed_index {
            Some(index) => {
                let place = IndexBase::One.one("pivot", *index);
                write!(f, "breaks down at {place} of {dimension}, computed as {pivot:.1e}")
            }
            None => write!(f, "finds all {dimension} pivots positive"),
        }
    }
}

/// Factors the lower triangle of `q`, each row and column scaled by a power of two, in double precision.
pub fn in_doubles(q: &Matrix) -> InDoubles {
    let n = q.rows();
    let scales: Vec<i64> = (0..n).map(|i| diagonal_exponent(q.get(i, i).head.exponent())).collect();
    let scaled = |i: usize, j: usize| {
        let shift = (scales[i] + scales[j]).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Float::with_val(DOUBLE_BITS, q.float(i, j) >> shift).to_f64()
    };
    let mut factor: Vec<Vec<f64>> = (0..n).map(|i| (0..=i).map(|j| scaled(i, j)).collect()).collect();
    let mut last = 0.0;
    for j in 0..n {
        last = factor[j][j] - factor[j][..j].iter().map(|x| x * x).sum::<f64>();
        if last <= 0.0 {
            return InDoubles { dimension: n, failed_index: Some(j), pivot: last };
        }
        factor[j][j] = last.sqrt();
        let (above, below) = factor.split_at_mut(j + 1);
        let pivot_row = &above[j];
        for row in below {
            let sum: f64 = row[..j].iter().zip(pivot_row).map(|(x, y)| x * y).sum();
            row[j] = (row[j] - sum) / pivot_row[j];
        }
    }
    InDoubles { dimension: n, failed_index: None, pivot: last }
}

/// A factorisation and a solve at full precision, both checked.
#[derive(Serialize)]
pub struct InBigFloats {
    precision_bits: u32,
    factor_seconds: f64,
    /// Largest residual of the factor in units of its bound.
    worst_residual: f64,
    log_det: String,
    solve_seconds: f64,
    /// `log2` of the largest `|b - Q x|_i / (sqrt(q_ii) sum_j sqrt(q_jj) |x_j| + |b_i|)`; `None` where all are 0.
    backward_error_log2: Option<i32>,
    /// The library's answer for the same matrix at 53 bits.
    at_double_precision: String,
}

/// Factors `q`, verifies every entry of the residual, and solves a system.
pub fn in_big_floats(ctx: &Context, q: &SymmetricMatrix) -> Result<InBigFloats> {
    let bits = q.precision_bits();
    let start = Instant::now();
    let factor = cholesky(ctx, q, bits)?;
    let factor_seconds = start.elapsed().as_secs_f64();
    still_wanted()?;
    let worst_residual = verify_cholesky(ctx, q, factor.factor(), bits, &VerifyOptions::default())?.worst_entry;
    still_wanted()?;
    let (solve_seconds, backward_error_log2) = solve_one(ctx, q, &factor)?;
    // By norms: entry by entry takes the bits that the pivots need, more than a double has.
    let by_norms = CholeskyOptions::new().accuracy(Accuracy::Norm);
    let at_double_precision = match cholesky_with(ctx, q, DOUBLE_BITS, &by_norms) {
        Ok(_) => "no failure".to_string(),
        Err(error @ Error::NotPositiveDefinite { .. }) => error.text().in_base(IndexBase::One).to_string(),
        Err(error) => return Err(error),
    };
    let log_det = format!("{:.20e}", factor.log_det());
    Ok(InBigFloats {
        precision_bits: bits,
        factor_seconds,
        worst_residual,
        log_det,
        solve_seconds,
        backward_error_log2,
        at_double_precision,
    })
}

/// Seconds of a solve of `Q x = b`, and `log2` of its backward error; `b_i` is about `sqrt(q_ii)`.
fn solve_one(ctx: &Context, q: &Matrix, factor: &Cholesky) -> Result<(f64, Option<i32>)> {
    let (n, bits) = (q.rows(), q.precision_bits());
    let mut b = Matrix::zeros(n, 1, bits)?;
    for i in 0..n {
        b.set_integer_exponent(i, 0, &Integer::from(1), diagonal_exponent(q.get(i, i).head.exponent()))?;
    }
    let start = Instant::now();
    let x = factor.solve(ctx, &b, bits)?;
    let seconds = start.elapsed().as_secs_f64();
    let long = 2 * bits + ceil_log2(n) + 2; // more than the residual needs
    // The bound of a solve by a Cholesky factor weighs entry (i, j) of Q by sqrt(q_ii q_jj).
    let root = |i: usize| q.float(i, i).sqrt();
    let weight = (0..n).fold(Float::new(bits), |sum, k| sum + root(k) * x.float(k, 0).abs());
    let backward_error = (0..n).filter_map(|i| {
        let residual = (0..n).fold(Float::with_val(long, b.float(i, 0)), |sum, k| {
            sum - Float::with_val(long, q.float(i.max(k), i.min(k)) * x.float(k, 0))
        });
        (residual / (root(i) * &weight + b.float(i, 0))).get_exp()
    });
    Ok((seconds, backward_error.max()))
}

impl fmt::Display for InBigFloats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.backward_error_log2.map_or("0".into(), |log2| format!("2^{log2}"));
        write!(
            f,
            "{} bits: Q = L L^T in {}, every entry of Q - L L^T verified; the largest is {:.3} times its bound.\n   \
             log det Q = {}.\n   Q x = b in {}: every |b - Q x|_i is below {error} (sqrt(q_ii) sum_j sqrt(q_jj) |x_j| \
             + |b_i|).",
            self.precision_bits,
            format_seconds(self.factor_seconds),
            self.worst_residual,
            self.log_det,
            format_seconds(self.solve_seconds),
        )
    }
}

impl InBigFloats {
    /// The library's answer at 53 bits.
    pub fn at_double_precision(&self) -> &str {
        &self.at_double_precision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::gallery::{Kind, Size, generate};

    #[test]
    fn a_hilbert_matrix_breaks_doubles_but_not_big_floats() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let size = Size { rows: 20, cols: 20, precision_bits: 256 };
        let (well, ill) = (generate(Kind::Minij, size, 0).unwrap(), generate(Kind::Hilbert, size, 0).unwrap());
        assert_eq!((in_doubles(&well).failed_index, in_doubles(&well).pivot), (None, 1.0 / 64.0));
        assert!(in_doubles(&ill).failed_index.is_some_and(|index| (10..20).contains(&index)));
        let well = in_big_floats(&ctx, &SymmetricMatrix::new(well).unwrap()).unwrap();
        assert_eq!((well.worst_residual, well.backward_error_log2), (0.0, None));
        assert_eq!(well.at_double_precision(), "no failure");
        let ill = in_big_floats(&ctx, &SymmetricMatrix::new(ill).unwrap()).unwrap();
        assert!(ill.worst_residual <= 1.0 && ill.backward_error_log2.is_some_and(|log2| log2 < -240), "{ill}");
        assert!(ill.at_double_precision().contains("index 1"), "{}", ill.at_double_precision());
    }
}
