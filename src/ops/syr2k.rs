//! `syr2k`: `alpha * (A^T B + B^T A) + beta * C`, a symmetric matrix.
//!
//! One product `W = A^T B` at two bits more than requested; entry `(i, j)` of the result is `W_ij + W_ji`, formed
//! exactly and rounded once. So the work is that of one full product. Proof: docs/decisions/032-vectors.md, "Rank-2k
//! updates".

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::mirror::{Workers, mirror};
use crate::matrix::{Destination, EntryIndex, Matrix, MatrixView, MatrixViewMut, Op, Uplo};
use crate::matrix::{Symmetric, SymmetricDestination, SymmetricMatrix};
use crate::ops::columns::{Column, each_column};
use crate::ops::product::call;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::problem::{Accuracy, ProductProblem, check_precision};
use crate::ops::product::report::{Outcome, Report};
use crate::options::setters;
use rug::Float;
use std::time::Instant;

/// Bits of the product beyond those of the result.
const PRODUCT_BITS: u32 = 2;

/// Bits of the sum of two entries beyond those of the result, where scalars follow.
const SUM_BITS: u32 = 64;

/// Options of a SYR2K in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Syr2kOptions<'a> {
    /// `NoTranspose` gives `A^T B + B^T A` (the default, as in [`crate::SyrkOptions`]), `Transpose` gives
    /// `A B^T + B A^T`.
    pub op: Op,
    /// The triangle of the result that is computed; the other is its mirror image. It does not affect the result.
    pub uplo: Uplo,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A symmetric matrix to add; the sum is rounded once.
    pub accumulate: Option<Symmetric<'a>>,
}

setters! { new Syr2kOptions<'a> {
    op: Op,
    uplo: Uplo,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<Symmetric<'a>>>,
} }

/// `A^T B + B^T A`; see [`syr2k_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(1, 2, 128, &[1.0, 2.0])?;
/// let b = Matrix::from_f64s(1, 2, 128, &[3.0, 4.0])?;
/// let c = sunzi::syr2k(&ctx, &a, &b, 128)?;
/// assert_eq!(c.view().to_f64s(), [6.0, 10.0, 10.0, 16.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syr2k_with`].
pub fn syr2k<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<SymmetricMatrix> {
    Ok(syr2k_with(ctx, a, b, precision_bits, &Syr2kOptions::default())?.result)
}

/// `alpha * (A^T B + B^T A) + beta * C` for two matrices and a symmetric `C`, rounded to `precision_bits` bits.
///
/// Shapes: `a` and `b` are `K x N`; with [`Op::Transpose`] they are `N x K` and the result is `A B^T + B A^T`. The
/// result and `accumulate` are `N x N`; one triangle is computed and mirrored. Accuracy: `|computed - exact|_ij <=
/// 2^(1 - precision_bits) (|alpha| s_ij + |beta c_ij|)` with `s_ij = ||a_i|| ||b_j|| + ||b_i|| ||a_j||`, or, with
/// [`Accuracy::Entrywise`], `s_ij = (|A|^T |B| + |B|^T |A|)_ij`. The bits depend only on the operands, the precision
/// and the options. Cost: `K N^2` word products for each prime, and an `N x N` matrix during the call.
///
/// ```
/// use sunzi::{Context, Matrix, Op, Syr2kOptions, rug::Float};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 1, 128, &[1.0, 2.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let half = Float::with_val(2, 0.5);
/// let options = Syr2kOptions::new().op(Op::Transpose).alpha(&half);
/// let c = sunzi::syr2k_with(&ctx, &a, &b, 128, &options)?; // the symmetric part of A B^T
/// assert_eq!(c.result.view().to_f64s(), [3.0, 5.0, 5.0, 8.0]);
/// assert_eq!(c.report.precision_bits, 128);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::syrk_with`]; [`Error::ShapeMismatch`] also if the shapes of the operands differ.
pub fn syr2k_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &Syr2kOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    let mut result = SymmetricMatrix::default();
    let report = syr2k_into(ctx, a, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`syr2k_with`] into the caller's memory, as [`crate::syrk_into`].
///
/// # Errors
/// As [`syr2k_with`] and [`crate::syrk_into`].
pub fn syr2k_into<'a, 'b, 'r>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &Syr2kOptions<'_>,
    result: impl Into<SymmetricDestination<'r>>,
) -> Result<Report> {
    let update = Syr2kUpdate::new(ctx, a.into(), b.into(), precision_bits, options)?;
    call::fill_symmetric(result.into(), |result, mirrored| update.run(result, mirrored))
}

/// A call whose operands have been checked.
struct Syr2kUpdate<'a> {
    ctx: &'a Context,
    /// `W = A^T B`.
    problem: ProductProblem<'a>,
    uplo: Uplo,
    /// The epilogue of the sum of two entries.
    epilogue: Epilogue<'a>,
    precision_bits: u32,
}

impl<'a> Syr2kUpdate<'a> {
    fn new(
        ctx: &'a Context,
        a: MatrixView<'a>,
        b: MatrixView<'a>,
        precision_bits: u32,
        options: &Syr2kOptions<'a>,
    ) -> Result<Syr2kUpdate<'a>> {
        let Syr2kOptions { op, uplo, accuracy, alpha, beta, accumulate } = *options;
        if (a.rows(), a.cols()) != (b.rows(), b.cols()) {
            return Err(Error::shape_mismatch("syr2k", (a.rows(), a.cols()), (b.rows(), b.cols())));
        }
        let other = if op == Op::Transpose { Op::NoTranspose } else { Op::Transpose };
        let product = ProductProblem::gemm(a, other, b, op, precision_bits.saturating_add(PRODUCT_BITS));
        let problem = ProductProblem { operation: "syr2k", accuracy, ..product };
        check_precision(ctx.maximum_modulus_bits(), precision_bits, problem.contracted())?;
        let view = accumulate.map(|matrix| matrix.triangle_view(uplo, "accumulate")).transpose()?;
        let addend = view.map(|view| AddedMatrix::Triangle(view, uplo));
        let epilogue = Epilogue::new(alpha, beta, addend);
        let (rows, cols) = problem.result_shape();
        epilogue.check(rows, cols, false)?;
        Ok(Syr2kUpdate { ctx, problem, uplo, epilogue, precision_bits })
    }

    fn run(&self, result: Destination<'_>, mirrored: bool) -> Result<Report> {
        let (start, order) = (Instant::now(), self.problem.result_shape().0);
        let result_bytes = Matrix::bytes_for(order, order, self.precision_bits);
        let scratch_bytes = self.ctx.threads() as u64 * 8 * limbs_for(self.precision_bits + SUM_BITS) as u64;
        let beside_bytes = result_bytes.saturating_add(scratch_bytes);
        let mut product = Matrix::empty();
        let inner = self.ctx.holding(beside_bytes);
        let report = call::run(&inner, &self.problem, Destination::Matrix(&mut product))?;
        let mut result = result.prepare((order, order), self.precision_bits)?;
        self.add_halves(product.view(), result.reborrow())?;
        if mirrored {
            match self.ctx.threads() > 1 {
                true => self.ctx.install(|| mirror(result, self.uplo, Workers::Pool)),
                false => mirror(result, self.uplo, Workers::One),
            }
        }
        let planned_bytes = report.planned_bytes + beside_bytes;
        let (precision_bits, seconds) = (self.precision_bits, start.elapsed().as_secs_f64());
        Ok(Report { precision_bits, planned_bytes, seconds, ..report })
    }

    /// `alpha (W + W^T) + beta C` in the triangle that is wanted.
    fn add_halves(&self, product: MatrixView<'_>, result: MatrixViewMut<'_>) -> Result<()> {
        let halves = Epilogue::new(None, None, Some(AddedMatrix::Whole(product.transposed())));
        let sum_bits = self.precision_bits + SUM_BITS;
        let (order, uplo) = (result.rows(), self.uplo);
        let local = || vec![0; limbs_for(sum_bits)];
        each_column(self.ctx, result, local, |sum: &mut Vec<u64>, mut column: Column<'_>| {
            let col = column.index;
            for row in if uplo == Uplo::Lower { col..order } else { 0..col + 1 } {
                let (place, half) = (EntryIndex { row, col }, product.get(row, col));
                let mut done = Ok(());
                column.set(row, |limbs| {
                    let head = self.finish(&halves, half, place, sum, limbs);
                    head.unwrap_or_else(|error| {
                        done = Err(error);
                        Head::ZERO
                    })
                });
                done?;
            }
            Ok(())
        })
    }

    fn finish(
        &self,
        halves: &Epilogue<'_>,
        half: FloatRef<'_>,
        place: EntryIndex,
        sum: &mut [u64],
        limbs: &mut [u64],
    ) -> Result<Head> {
        let half = half.into();
        if self.epilogue.is_plain() {
            return halves.finish(half, place, self.precision_bits, limbs);
        }
        let head = halves.finish(half, place, self.precision_bits + SUM_BITS, sum)?;
        let both = FloatRef { head, limbs: sum };
        self.epilogue.finish(both.into(), place, self.precision_bits, limbs)
    }
}
