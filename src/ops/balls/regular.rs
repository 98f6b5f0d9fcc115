//! Matrices of balls of which every point is regular, and bounds of their inverses times small vectors.
//!
//! With `R` near the inverse, `E >= |I - R A|` for every point `A`, and a vector `v > 0` with `E v < v`, all powers
//! of `E` sum up to `(I - E)^-1 >= 0`, so no `A` is singular and `|A^-1| <= (I - E)^-1 |R|`.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS};
use super::matrix::BallView;
use super::product::BallProduct;
use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::estimate::ESTIMATE_BITS;
use crate::ops::estimate::bounds::Upper;
use rug::Float;
use rug::float::Round;

/// Most steps of the search for a vector that proves regularity, each of which adds a power of `E`.
const MOST_STEPS: usize = 400;

/// A vector whose image is at most this part of it is not improved upon.
const FINE_RATIO: f64 = 0.9;

/// No larger part is taken.
const MOST_RATIO: f64 = 1.0 - 1e-6;

/// Most improvements of a bound.
const MOST_IMPROVEMENTS: usize = 100;

/// A bound is not improved any more when a step leaves each entry at least this fraction of its value.
const SHARP_RATIO: f64 = 0.97;

/// A matrix of balls that is proven to hold no singular point.
pub(super) struct Regular {
    /// `E`.
    deviation: Matrix,
    /// `v`.
    vector: Vec<Float>,
    /// A lower bound of `v - E v`, positive.
    left: Vec<Float>,
}

/// The result where there is no proof: an estimate of the spectral radius of `E`.
pub(super) struct Unproven {
    pub ratio: f64,
}

impl Regular {
    /// Proves that no point of `a` is singular, from an approximate `inverse`; `start` is a first guess of `v`.
    ///
    /// # Errors
    /// The errors of [`crate::gemm_with`].
    pub fn prove(
        ctx: &Context,
        inverse: MatrixView<'_>,
        a: BallView<'_>,
        start: Vec<Float>,
    ) -> Result<std::result::Result<Regular, Unproven>> {
        let unit = Matrix::identity(inverse.rows(), 2)?;
        let product = BallProduct::residual(BallView::point(&unit), BallView::point(inverse), a);
        // The sum is about 0, apart from the error of the inverse: more bits would not make the bound much better.
        let deviation = product.enclose(ctx, inverse.precision_bits())?.magnitudes()?;
        Ok(Regular::of(deviation, start))
    }

    /// The same where `E` is known.
    fn of(deviation: Matrix, start: Vec<Float>) -> std::result::Result<Regular, Unproven> {
        let mut vector = start.clone();
        let mut worst = 0.0;
        for step in 0..MOST_STEPS {
            let image = bounds::image(&deviation, &vector);
            let ratios = image.iter().zip(&vector).map(|(image, own)| Float::with_val(ESTIMATE_BITS, image / own));
            worst = ratios.fold(0.0, |most: f64, ratio| most.max(ratio.to_f64()));
            if worst <= FINE_RATIO || step + 1 == MOST_STEPS && worst <= MOST_RATIO {
                let left = vector.iter().zip(&image);
                let left: Vec<Float> =
                    left.map(|(own, image)| Float::with_val_round(ESTIMATE_BITS, own - image, Round::Down).0).collect();
                if left.iter().all(|left| *left > 0) {
                    return Ok(Regular { deviation, vector, left });
                }
            }
            vector = image.into_iter().zip(&start).map(|(image, first)| Upper(image).add(first).0).collect();
            if vector.iter().any(|entry| !entry.is_finite() || entry.get_exp().is_some_and(|top| top > 1 << 29)) {
                break;
            }
        }
        Err(Unproven { ratio: worst })
    }

    /// A bound of `|A^-1| Y'` for all points `A` of the balls, where `bound >= |R Y'|` for the columns of a `Y'`; an
    /// entry that is 0 for all of them stays 0.
    ///
    /// # Errors
    /// The errors of [`crate::gemm_with`].
    pub fn solution(&self, ctx: &Context, bound: &Matrix) -> Result<Matrix> {
        let (rows, cols) = (bound.rows(), bound.cols());
        let moved = bounds::product(ctx, self.deviation.view(), bound.view())?;
        // (I - E)^-1 y = y + (I - E)^-1 E y, and w <= t (I - E) v gives (I - E)^-1 w <= t v.
        let mut whole = Matrix::zeros(rows, cols, RADIUS_BITS)?;
        for col in 0..cols {
            let times = (0..rows).map(|row| Upper(moved.float(row, col)).over(&self.left[row]).0);
            let times = times.fold(Float::new(RADIUS_BITS), |most, ratio| most.max(&ratio));
            let start: Vec<bool> = (0..rows).map(|row| !bound.get(row, col).head.is_zero()).collect();
            for (row, _) in bounds::reached(&self.deviation, &start).iter().enumerate().filter(|(_, seen)| **seen) {
                let tail = Upper(times.clone()).times(&self.vector[row]);
                whole.set_float(row, col, &tail.add(&bound.float(row, col)).0)?;
            }
        }
        // Each step is a bound where the last one was: y + E s for s >= (I - E)^-1 y.
        for _ in 0..MOST_IMPROVEMENTS {
            let moved = bounds::product(ctx, self.deviation.view(), whole.view())?;
            let better = bounds::sum(moved.view(), bound.view())?;
            let is_better = |row: usize, col: usize| {
                better.float(row, col) < Float::with_val(ESTIMATE_BITS, whole.float(row, col) * SHARP_RATIO)
            };
            let go_on = (0..cols).any(|col| (0..rows).any(|row| is_better(row, col)));
            whole = Matrix::from_fn(rows, cols, RADIUS_BITS, |row, col| {
                better.float(row, col).min(&whole.float(row, col))
            })?;
            if !go_on {
                break;
            }
        }
        Ok(whole)
    }

    /// `|I - R A|`, at most.
    pub fn deviation(&self) -> &Matrix {
        &self.deviation
    }
}
