//! Cholesky factorisation `A = L L^T` in fixed point: exact updates, one rounding per entry of the factor.
//!
//! Promise: the bits of the factor, and the index at which it fails, depend on the matrix and the precision alone.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, Symmetric};
pub use crate::ops::factor::options::CholeskyOptions;
use crate::ops::factor::plan::Plan;
pub use crate::ops::factor::plan::{CholeskyPlan, UpdatePlan, plan_cholesky};
use crate::ops::factor::problem::{Problem, SQUARE};
pub use crate::ops::factor::report::CholeskyReport;
use crate::ops::factor::run::{Ending, run};
use crate::ops::factor::spans::Clock;
pub use crate::ops::factor::spans::{Span, TaskKind, TaskTimes};
use crate::ops::factor::{diagnose, reference};
use crate::ops::product::report::Outcome;
use rug::Float;
use std::sync::OnceLock;

/// A factor `L` with `A = L L^T`; by default that of the 0 x 0 matrix.
#[derive(Clone, Debug, Default)]
pub struct Cholesky {
    factor: Matrix,
    /// Found by the first solve that needs them.
    pub(crate) row_norms: OnceLock<Vec<i64>>,
}

/// `A = L L^T`; see [`cholesky_with`].
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky<'a>(ctx: &Context, a: impl Into<Symmetric<'a>>, precision_bits: u32) -> Result<Cholesky> {
    Ok(cholesky_with(ctx, a, precision_bits, &CholeskyOptions::default())?.result)
}

/// The lower triangular `L` with `A = L L^T` for a symmetric positive definite `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n` (n may be 0): a [`SymmetricMatrix`](crate::SymmetricMatrix), a plain matrix, which is
/// checked, or a triangle that the caller names, see [`Symmetric`].
/// Accuracy: `|A - L L^T|_ij <= 2^(2 - precision_bits) sqrt(a_ii a_jj)`, whatever n and the condition of `A`. The bits
/// depend on `A` and the precision alone: not on threads, tiles, kernel or memory limit.
/// Cost: `n^3 / 6` word products for each of about `2 precision_bits / 52` primes, and `n^2 / 2` conversions.
/// Source: docs/ALGORITHM.md, "Cholesky in residues".
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] with the first leading minor that is not positive;
/// [`crate::Error::NotSymmetric`]; [`crate::Error::ShapeMismatch`] where `A` is not square;
/// [`crate::Error::Precision`]; [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`];
/// [`crate::Error::OutOfMemory`].
pub fn cholesky_with<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<Outcome<Cholesky, CholeskyReport>> {
    let mut result = Cholesky::default();
    let report = cholesky_into(ctx, a, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`cholesky_with`] in the memory of a factor that is no longer needed, such as that of an earlier call.
///
/// Fresh memory is slow to get, so repeated factorisations of one size gain from this. Where its order or precision do
/// not fit, it is given back. After an error `result` is the factor of the 0 x 0 matrix.
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky_into<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
    result: &mut Cholesky,
) -> Result<CholeskyReport> {
    let memory = std::mem::take(result).factor;
    let mut clock = Clock::new();
    let kernel = ctx.kernel();
    let lower = a.into().lower_view(SQUARE)?;
    let problem = Problem::new(lower, precision_bits, kernel.maximum_modulus_bits())?;
    let memory = Some(memory).filter(|memory| memory.fits((problem.order, problem.order), precision_bits));
    let engine = ctx.tile_engine(kernel, problem.working_bits)?;
    let plan = Plan::new(ctx, (problem.order, precision_bits), options.tile_rows, &*engine)?;
    let before = engine.traffic();
    let ending = run(ctx, (&problem, lower), (&plan, &*engine), memory, &mut clock);
    let devices = engine.traffic().into_iter().zip(&before).map(|(after, before)| after.since(before)).collect();
    engine.end_operation();
    match ending? {
        Ending::Factor(factor) if problem.is_whole() => {
            *result = Cholesky::new(factor);
            let report = CholeskyReport::new(&problem, &plan, &*engine, clock);
            Ok(CholeskyReport { kernel: kernel.name(), devices, ..report })
        }
        Ending::Factor(factor) => Err(diagnose::failure((&problem, lower), problem.order, &factor, None)),
        Ending::Failed(index, factor, pivot) => Err(diagnose::failure((&problem, lower), index, &factor, pivot)),
    }
}

/// [`cholesky_with`] by its definition, one integer after the other: what every other path is tested against.
///
/// # Errors
/// As [`cholesky_with`].
#[doc(hidden)]
pub fn cholesky_reference<'a>(a: impl Into<Symmetric<'a>>, precision_bits: u32) -> Result<Cholesky> {
    let lower = a.into().lower_view(SQUARE)?;
    let problem = &Problem::new(lower, precision_bits, 11_000)?;
    match reference::factor(problem, lower) {
        Ok(rows) if problem.is_whole() => Ok(Cholesky::new(rows.to_matrix(problem)?)),
        Ok(rows) => Err(diagnose::failure((problem, lower), problem.order, &rows.to_matrix(problem)?, None)),
        Err(reference::Failed { index, rows, pivot }) => {
            Err(diagnose::failure((problem, lower), index, &rows.to_matrix(problem)?, pivot))
        }
    }
}

impl Cholesky {
    fn new(factor: Matrix) -> Cholesky {
        Cholesky { factor, row_norms: OnceLock::new() }
    }

    /// A place for a factor in the memory of a matrix that is no longer needed, for [`cholesky_into`]. Until then it is
    /// not the factor of anything.
    pub fn with_memory(memory: Matrix) -> Cholesky {
        Cholesky::new(memory)
    }

    /// Takes a factor made elsewhere; what lies above its diagonal is not looked at.
    ///
    /// # Errors
    /// [`crate::Error::ShapeMismatch`] where it is not square, [`crate::Error::Singular`] for a zero on its diagonal.
    pub fn from_factor(mut factor: Matrix) -> Result<Cholesky> {
        let (rows, cols) = (factor.rows(), factor.cols());
        if rows != cols {
            return Err(crate::Error::shape_mismatch("a square factor", (rows, cols), (cols, rows)));
        }
        match (0..rows).find(|&i| factor.get(i, i).head.is_zero()) {
            Some(index) => Err(crate::Error::Singular { index }),
            None => {
                factor.clear_above_diagonal();
                Ok(Cholesky::new(factor))
            }
        }
    }

    /// The factor: lower triangular, zeros above the diagonal.
    pub fn factor(&self) -> &Matrix {
        &self.factor
    }

    /// The factor, by value.
    pub fn into_factor(self) -> Matrix {
        self.factor
    }

    /// `log det A = 2 sum log l_ii`, to nearly the factor's precision; see [`log_det_of`].
    pub fn log_det(&self) -> Float {
        log_det_of(&self.factor, self.factor.precision_bits())
    }
}

/// `log det A = 2 sum log |l_ii|` for a factor of `A = L L^T`, at `precision_bits` bits.
///
/// Only the diagonal of `factor` is read, which may stand alone as a matrix of one column; a zero on it gives minus
/// infinity.
/// Accuracy: each logarithm and each sum is rounded at `precision_bits + 32` bits, the result once more.
/// Cost: one logarithm for each row.
pub fn log_det_of<'a>(factor: impl Into<MatrixView<'a>>, precision_bits: u32) -> Float {
    let factor = factor.into();
    let bits = precision_bits + 32;
    let mut sum = Float::new(bits);
    let column = factor.cols() == 1;
    let count = if column { factor.rows() } else { factor.rows().min(factor.cols()) };
    for i in 0..count {
        let entry = factor.get(i, if column { 0 } else { i }).to_float(factor.precision_bits());
        sum += Float::with_val(bits, entry.abs().ln_ref());
    }
    Float::with_val(precision_bits, sum << 1)
}
