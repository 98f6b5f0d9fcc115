//! Is this stored triangle a Cholesky factor of that matrix? Every entry of `A - L L^T`, by exact integers.
//!
//! Promise: a factor is accepted if and only if `|A - L L^T|_ij <= 2^(2-b) sqrt(a_ii a_jj)` for all `i >= j`; no
//! rounding takes place before the decision. Products come from the residue pipeline as exact integers, and Freivalds'
//! test must pass before one is believed; rows whose entries spread too far for that are summed one by one.
//! Independent of: how a factor is made. Source: docs/CHECKS.md, "Verification".

mod cut;
mod file;
mod rows;
mod single;
mod source;
mod sums;
mod tile;

pub use file::{FileFactorOptions, verify_cholesky_files};

use super::{Verification, VerifyOptions};
use crate::context::Context;
use crate::error::{Error, ErrorText, IndexBase, Result};
use crate::io::MatrixFile;
use crate::math::bound::{EXPECTED_SPREAD_BITS, ceil_log2};
use crate::matrix::{EntryIndex, MatrixView, Symmetric, Uplo};
use cut::Cut;
use rows::Row;
use source::LowerTriangle;
use tile::{EntryResidual, Verifier};

/// Checks that `l` is a Cholesky factor of `a` to `precision_bits` bits: lower triangular, with a positive diagonal,
/// and `|A - L L^T|_ij <= 2^(2 - precision_bits) sqrt(a_ii a_jj)` for all `i >= j`.
///
/// With [`Uplo::Upper`] in `options` the matrix `l` is `U` with `A = U^T U`. Of the other options only the seed is
/// used, for Freivalds' test. [`Verification::worst_entry`] is the largest residual in units of its bound, and
/// [`Verification::worst_place`] is its place. Shapes: both `n x n`, each of any precision; `a` is given as a plain
/// matrix, a symmetric matrix, or one triangle, see [`Symmetric`]. Entries of a [`crate::Matrix`] are finite. Accuracy:
/// the decision is exact, for any exponents. Cost: an exact product in tiles, `n^3 / 6` word products for each of about
/// `2 precision_bits / 52` primes, and two products of big integers for each entry; rows whose exponents spread over
/// more than about three times their precision need `n^2 / 2` products of big integers each. Memory: a few blocks of
/// 256 rows; smaller blocks under a memory limit.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_cholesky};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let l = sunzi::cholesky(&ctx, &a, 128)?;
/// assert!(verify_cholesky(&ctx, &a, l.factor(), 128, &VerifyOptions::new())?.worst_entry <= 1.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the worst entry, or another defect; [`Error::NotSymmetric`] for `a`;
/// [`Error::ShapeMismatch`]; [`Error::Precision`] for fewer than 2 bits; the errors of [`gemm_with`](crate::gemm_with).
pub fn verify_cholesky<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    l: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    check_bits(precision_bits)?;
    let (a, l, uplo) = (a.into().lower_view("verify cholesky")?, l.into(), options.uplo);
    check_shapes(LowerTriangle::Memory(a), LowerTriangle::Memory(l))?;
    let l = if uplo == Uplo::Lower { l } else { l.transposed() };
    let check =
        FactorCheck { a: LowerTriangle::Memory(a), l: LowerTriangle::Memory(l), uplo, precision_bits, compared: None };
    check.decide_by(check.look_at_rows(ctx)?, ctx, options.seed)
}

fn check_bits(precision_bits: u32) -> Result<()> {
    if precision_bits < 2 {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: 1 << 24 });
    }
    Ok(())
}

/// Refuses shapes that are not the same square; both as the caller has them.
fn check_shapes(matrix: LowerTriangle<'_>, factor: LowerTriangle<'_>) -> Result<()> {
    let (matrix, factor) = (matrix.shape(), factor.shape());
    if matrix.0 != matrix.1 || matrix != factor {
        return Err(Error::shape_mismatch("verify cholesky", matrix, factor));
    }
    Ok(())
}

/// The claim to be checked: `A = L L^T`. Both are read as lower triangles.
#[derive(Clone, Copy)]
struct FactorCheck<'a> {
    a: LowerTriangle<'a>,
    l: LowerTriangle<'a>,
    /// The triangle that the caller has.
    uplo: Uplo,
    precision_bits: u32,
    /// A file with both triangles of the matrix, which must agree.
    compared: Option<&'a MatrixFile>,
}

impl FactorCheck<'_> {
    /// Plans the tiles within the context's limit, and looks at every entry. Rows of long integers are summed one by
    /// one where the limit has no room for them.
    fn decide_by(self, mut rows: Vec<Row>, ctx: &Context, seed: Option<u64>) -> Result<Verification> {
        let mut integer_bits = rows.iter().filter(|row| row.planar).map(Row::integer_bits).max().unwrap_or(0);
        let cut = match Cut::plan(ctx, &self, integer_bits) {
            Err(Error::MemoryLimit { .. }) if integer_bits > self.expected_bits(ctx) => {
                integer_bits = self.expected_bits(ctx);
                rows.iter_mut().for_each(|row| row.planar &= row.integer_bits() <= integer_bits);
                self.plan_least(ctx)
            }
            cut => cut,
        };
        Verifier { check: self, rows, cut: cut?, integer_bits }.decide(ctx, seed)
    }

    /// A plan before there are rows: for a refusal before a file is read.
    fn plan_least(&self, ctx: &Context) -> Result<Cut> {
        Cut::plan(ctx, self, self.expected_bits(ctx))
    }

    /// Integers of most rows are below 2 to this power, which allows for entries of different exponents.
    fn expected_bits(&self, ctx: &Context) -> i64 {
        (i64::from(self.l.precision_bits()) + i64::from(EXPECTED_SPREAD_BITS)).min(self.planar_bits(ctx))
    }

    fn order(&self) -> usize {
        self.a.shape().0
    }

    /// Rows of longer integers are summed one by one.
    fn planar_bits(&self, ctx: &Context) -> i64 {
        let reach = |modulus_bits: u32| i64::from(modulus_bits) / 2 - 4 - i64::from(ceil_log2(self.order()));
        let (bits, own) = (i64::from(self.l.precision_bits()), reach(ctx.kernel().maximum_modulus_bits()));
        // A few rows of longer integers than the preferred kernel holds are no reason for a slower one for all, but
        // most rows spread a little.
        let kernel_bits =
            if bits + i64::from(EXPECTED_SPREAD_BITS) <= own { own } else { reach(ctx.maximum_modulus_bits()) };
        (3 * bits + 256).min(kernel_bits)
    }

    /// Names a place as the caller stored it.
    fn name(&self, place: EntryIndex, base: IndexBase) -> String {
        let EntryIndex { row, col } = self.stored_place(place);
        base.place(row, col)
    }

    fn stored_place(&self, place: EntryIndex) -> EntryIndex {
        if self.uplo == Uplo::Lower { place } else { place.transposed() }
    }

    fn failure(&self, worst: &EntryResidual) -> Error {
        let product = if self.uplo == Uplo::Lower { "A - L L^T" } else { "A - U^T U" };
        let (ratio, bits) = (worst.ratio, self.precision_bits);
        refusal(|base| {
            let place = self.name(worst.place, base);
            format!("{product} at {place} is {ratio:.4e} times its bound 2^(2-{bits}) sqrt(a_ii a_jj)")
        })
    }
}

fn refusal(say: impl Fn(IndexBase) -> String) -> Error {
    Error::verification(ErrorText::counted(|base| format!("verify cholesky: {}", say(base))))
}

#[cfg(test)]
mod tests;
