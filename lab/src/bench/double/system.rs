//! The matrix that is factored, and the test of its factor by random vectors.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use sunzi::{Context, Error, Result};

/// Random vectors.
const VECTORS: u64 = 3;

/// A symmetric positive definite matrix, of which only the lower triangle is filled.
pub struct System {
    pub rows: usize,
    pub a: Vec<f64>,
}

impl System {
    /// Entries uniform in (-1, 1) and a dominant diagonal.
    ///
    /// # Errors
    /// [`Error::DimensionOverflow`], [`Error::OutOfMemory`].
    pub fn new(ctx: &Context, rows: usize) -> Result<System> {
        let overflow = Error::DimensionOverflow { rows, cols: rows, precision_bits: f64::MANTISSA_DIGITS };
        let entries = rows.checked_mul(rows).filter(|&count| count < isize::MAX as usize / 8).ok_or(overflow)?;
        let bytes = 8 * entries as u64;
        // The matrix and the copy that is factored.
        ctx.admit(2 * bytes)?;
        let mut a = Vec::new();
        a.try_reserve_exact(entries).map_err(|_| Error::OutOfMemory { bytes })?;
        a.resize(entries, 0.0);
        ctx.install(|| {
            a.par_chunks_mut(rows.max(1)).enumerate().for_each(|(col, column)| {
                let mut random = ChaCha8Rng::seed_from_u64(col as u64);
                column[col..].iter_mut().for_each(|entry| *entry = random.random_range(-1.0..1.0));
                column[col] += rows as f64;
            });
        });
        Ok(System { rows, a })
    }
}

/// The largest of `|A x - L L^T x| / (rows eps |A|_F |x|)` (Euclidean norms) over a few random vectors of signs.
pub fn largest_residual(system: &System, l: &[f64]) -> f64 {
    (0..VECTORS).map(|seed| residual(system, l, seed)).fold(0.0, f64::max)
}

fn residual(System { rows, a }: &System, l: &[f64], seed: u64) -> f64 {
    if *rows == 0 {
        return 0.0;
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let x = (0..*rows).map(|_| if random.random::<bool>() { 1.0 } else { -1.0 }).collect::<Vec<f64>>();
    let (mut rest, mut square_norm) = (vec![0.0; *rows], 0.0);
    for (col, (column, factor)) in a.chunks_exact(*rows).zip(l.chunks_exact(*rows)).enumerate() {
        let z = factor[col..].iter().zip(&x[col..]).map(|(entry, value)| entry * value).sum::<f64>();
        rest[col] += column[col] * x[col] - factor[col] * z;
        square_norm += column[col] * column[col];
        for row in col + 1..*rows {
            rest[row] += column[row] * x[col] - factor[row] * z;
            rest[col] += column[row] * x[row];
            square_norm += 2.0 * column[row] * column[row];
        }
    }
    let norm = |vector: &[f64]| vector.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
    let scaled = norm(&rest) / (*rows as f64 * f64::EPSILON * square_norm.sqrt() * norm(&x));
    if scaled.is_finite() { scaled } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_residual_tells_a_factor_from_another() {
        let system = System { rows: 2, a: vec![4.0, 2.0, f64::NAN, 10.0] };
        let right = [2.0, 1.0, f64::NAN, 3.0];
        assert_eq!(largest_residual(&system, &right), 0.0);
        for at in [0, 1, 3] {
            let mut wrong = right;
            wrong[at] += 1e-6;
            assert!(largest_residual(&system, &wrong) > 1e3, "{at}");
        }
        assert!(largest_residual(&system, &[f64::NAN; 4]).is_infinite());
        let ctx = Context::builder().threads(2).build().unwrap();
        assert_eq!(largest_residual(&System::new(&ctx, 0).unwrap(), &[]), 0.0);
        assert!(matches!(System::new(&ctx, usize::MAX / 3), Err(Error::DimensionOverflow { .. })));
    }
}
