//! TRSM and TRMM.

use crate::api::{diag_of, op_of, operands, scalar, side_of, uplo_of};
use crate::array::{Operand, Part};
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{sunzi_matrix, sunzi_status};
use rug::Float;
use sunzi::advanced::calls::TriangularKind;
use sunzi::{Diag, Matrix, MatrixView, Side, TrmmOptions, TrsmOptions, Uplo};

/// Solves a triangular system in place: `B := alpha op(T)^-1 B` (`side = SUNZI_LEFT`) or `B := alpha B op(T)^-1`
/// (`SUNZI_RIGHT`).
///
/// Arguments:
/// - `uplo`, `diag`: the triangle of T that is read, and whether its diagonal is read.
/// - `alpha`: 1 x 1; null means 1. If `alpha` is 0, T is not read and B becomes 0.
/// - `t`: n x n.
/// - `b`: n x m for `SUNZI_LEFT`, m x n for `SUNZI_RIGHT`.
///
/// Accuracy, for the left side: `|alpha B - op(T) X|_ij <= 2^(2 - p) (|op(T)| |X|)_ij` for any condition of T; under
/// `SUNZI_NORM`, `2^(1 - p) (norm(t_i) norm(x_j) + |alpha b_ij|)`. Then each entry is rounded to its own precision.
///
/// Errors: `SUNZI_SINGULAR` if the diagonal of T has a zero.
///
/// Cost: n^2 m / 2 word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_trsm(
    ctx: *const sunzi_context,
    side: i32,
    uplo: i32,
    trans: i32,
    diag: i32,
    alpha: *const sunzi_matrix,
    t: *const sunzi_matrix,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (side, uplo) = (side_of(side)?, uplo_of(uplo)?);
            let (op, diag) = (op_of("trans", trans)?, diag_of(diag)?);
            let [t, b] = operands(["t", "b"], [t, b])?;
            let alpha = scalar(call, "alpha", alpha)?;
            trsm(call, TriangularKind { side, uplo, op, diag }, alpha.as_ref(), &t, &b)
        })
    }
}

/// `b := alpha op(t)^-1 b`, or from the right.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn trsm(
    call: &Call<'_>,
    kind: TriangularKind,
    alpha: Option<&Float>,
    t: &Operand,
    b: &Operand,
) -> Outcome<()> {
    let TriangularKind { side, uplo, op, diag } = kind;
    let work = |call: &Call<'_>, t: MatrixView<'_>, b: MatrixView<'_>, bits, result: &mut Matrix| {
        let options = TrsmOptions::new().side(side).uplo(uplo).op(op).diag(diag).accuracy(call.accuracy()).alpha(alpha);
        call.note_solve(&call.done(sunzi::trsm_into(&call.context(), t, b, bits, &options, result))?);
        Ok(())
    };
    // SAFETY: by contract.
    unsafe { replace(call, &Operands { kind, alpha, t, b }, work) }
}

/// `b := alpha op(t) b`, or from the right.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn trmm(
    call: &Call<'_>,
    kind: TriangularKind,
    alpha: &Float,
    t: &Operand,
    b: &Operand,
) -> Outcome<()> {
    let TriangularKind { side, uplo, op, diag } = kind;
    let work = |call: &Call<'_>, t: MatrixView<'_>, b: MatrixView<'_>, bits, result: &mut Matrix| {
        let options = TrmmOptions::new().side(side).uplo(uplo).op(op).diag(diag).accuracy(call.accuracy()).alpha(alpha);
        call.note_product(&call.done(sunzi::trmm_into(&call.context(), t, b, bits, &options, result))?);
        Ok(())
    };
    // SAFETY: by contract.
    unsafe { replace(call, &Operands { kind, alpha: Some(alpha), t, b }, work) }
}

/// A triangle and the matrix that it is applied to.
struct Operands<'a> {
    kind: TriangularKind,
    alpha: Option<&'a Float>,
    t: &'a Operand,
    b: &'a Operand,
}

/// Stores the result of `work` for a triangle and `b` in `b`.
///
/// # Safety
/// The header's rules.
unsafe fn replace(
    call: &Call<'_>,
    operands: &Operands<'_>,
    work: impl FnOnce(&Call<'_>, MatrixView<'_>, MatrixView<'_>, u32, &mut Matrix) -> Outcome<()>,
) -> Outcome<()> {
    let Operands { kind: TriangularKind { side, uplo, diag, .. }, alpha, t, b } = *operands;
    t.check_square()?;
    match side {
        Side::Left => b.check_shape(t.rows(), b.cols())?,
        Side::Right => b.check_shape(b.rows(), t.rows())?,
    }
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(b, Part::All)?;
        if alpha.is_some_and(Float::is_zero) {
            // As in the BLAS, the triangle is not looked at.
            call.hold_bytes(Matrix::bytes_for(b.rows(), b.cols(), bits))?;
            return call.store(b, Part::All, &Matrix::zeros(b.rows(), b.cols(), bits)?);
        }
        let (triangle, right) = (call.read(t, part_read(uplo, diag))?, call.read(b, Part::All)?);
        let mut result = call.result(b.rows(), b.cols(), bits)?;
        work(call, triangle.view(), right.view(), bits, &mut result)?;
        call.keep_input(triangle);
        call.keep_input(right);
        call.write(b, Part::All, result)
    }
}

/// The entries of a triangle that are read.
pub(crate) fn part_read(uplo: Uplo, diag: Diag) -> Part {
    match (uplo, diag) {
        (Uplo::Lower, Diag::NonUnit) => Part::Lower,
        (Uplo::Upper, Diag::NonUnit) => Part::Upper,
        (Uplo::Lower, Diag::Unit) => Part::StrictLower,
        (Uplo::Upper, Diag::Unit) => Part::StrictUpper,
    }
}
