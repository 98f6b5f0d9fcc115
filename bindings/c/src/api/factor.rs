//! A factor that is kept: factored once, solved with many times, without conversions in between.

use crate::api::cholesky::{factor, log_det, solve_with, store_factor, write_number};
use crate::api::{operands, part_of, symmetric_of, triangle, uplo_of};
use crate::array::Part;
use crate::call::enter;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use sunzi::{Cholesky, SymmetricMatrix};

/// A Cholesky factor in the library's memory. `sunzi_factor_new` makes it, `sunzi_factor_free` frees it. Several
/// threads may use it at the same time, and with any context.
pub struct sunzi_factor {
    pub(crate) cholesky: Cholesky,
}

/// The requested bits; 0 leaves them to the operands.
///
/// # Errors
/// `SUNZI_PRECISION` for a number that is negative or has more than 32 bits.
pub(crate) fn asked_bits(precision_bits: i64) -> Outcome<u32> {
    let message = || format!("a precision of {precision_bits} bits is not valid");
    let refused = |_| Failure::of(sunzi_status::SUNZI_PRECISION, "precision_bits", message());
    u32::try_from(precision_bits).map_err(refused)
}

/// Factors a symmetric positive definite A as `A = L L^T`, keeps the factor in the library's memory, and stores a
/// handle in `*factor` (null after a failure). A is not changed.
///
/// Arguments:
/// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
/// - `precision_bits`: precision of the factor; 0 selects the largest precision of the entries that are read.
/// - `a`: n x n.
///
/// Accuracy, errors and cost: as `sunzi_cholesky`, with p the precision of the factor.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_new(
    ctx: *const sunzi_context,
    uplo: i32,
    precision_bits: i64,
    a: *const sunzi_matrix,
    factor: *mut *mut sunzi_factor,
) -> sunzi_status {
    if !factor.is_null() {
        // SAFETY: it can be written by contract; it need not be initialised.
        unsafe { factor.write(std::ptr::null_mut()) };
    }
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            if factor.is_null() {
                return Err(Failure::null("factor"));
            }
            let uplo = symmetric_of(uplo)?;
            let [a] = operands(["a"], [a])?;
            let bits = match asked_bits(precision_bits)? {
                0 => call.result_bits(&a, part_of(uplo))?,
                bits => bits,
            };
            let made = Box::new(sunzi_factor { cholesky: self::factor(call, uplo, &a, bits)? });
            factor.write(Box::into_raw(made));
            Ok(())
        })
    }
}

/// Frees a factor; a null pointer is ignored.
///
/// # Safety
/// `factor` must be null or a result of `sunzi_factor_new`, and must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_free(factor: *mut sunzi_factor) {
    if !factor.is_null() {
        // SAFETY: made by `Box::into_raw`, and not freed before, by contract.
        drop(unsafe { Box::from_raw(factor) });
    }
}

/// Returns the number of rows of the factored matrix; -1 for a null pointer.
///
/// # Safety
/// `factor` must be null or a live factor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_order(factor: *const sunzi_factor) -> i64 {
    // SAFETY: null or live by contract.
    unsafe { factor.as_ref() }.map_or(-1, |factor| factor.cholesky.factor().rows() as i64)
}

/// Returns the precision of the factor in bits; -1 for a null pointer.
///
/// # Safety
/// `factor` must be null or a live factor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_precision_bits(factor: *const sunzi_factor) -> i64 {
    // SAFETY: null or live by contract.
    unsafe { factor.as_ref() }.map_or(-1, |factor| factor.cholesky.factor().precision_bits().into())
}

/// Computes `B := A^-1 B` with a kept factor of A. `b` is n x m, the right-hand sides, which the solution replaces.
/// Accuracy as `sunzi_cholesky_solve`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_solve(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let factor = factor.as_ref().ok_or_else(|| Failure::null("factor"))?;
            let [b] = operands(["b"], [b])?;
            b.check_shape(factor.cholesky.factor().rows(), b.cols())?;
            let bits = call.result_bits(&b, Part::All)?;
            solve_with(call, &factor.cholesky, &b, bits)
        })
    }
}

/// Computes `inverse := A^-1` from a kept factor of A.
///
/// Arguments:
/// - `uplo`: the triangle of `inverse` that is written; with `SUNZI_BOTH` the whole matrix is written.
/// - `inverse`: n x n.
///
/// Accuracy: `|inverse - Z|_ij <= 2^(2 - p) sqrt(z_ii z_jj)` with `Z = (L L^T)^-1` for the stored factor L. Then each
/// entry is rounded to its own precision.
///
/// Cost: n^3 / 3 word products per prime, with additional bits: half the binary logarithm of the condition number.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_inverse(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    inverse: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let part = part_of(symmetric_of(uplo)?);
            let factor = factor.as_ref().ok_or_else(|| Failure::null("factor"))?;
            let [inverse] = operands(["inverse"], [inverse])?;
            let order = factor.cholesky.factor().rows();
            inverse.check_shape(order, order)?;
            let bits = call.result_bits(&inverse, part)?;
            let mut result = SymmetricMatrix::default();
            let report = call.done(factor.cholesky.inverse_into(&call.context(), bits, &mut result))?;
            call.write_solution(&inverse, part, result.into_matrix(), &report)
        })
    }
}

/// Computes `result := log det A` from a kept factor of A. `result` is 1 x 1, and its precision is the precision of the
/// logarithm.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_log_det(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    result: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let factor = factor.as_ref().ok_or_else(|| Failure::null("factor"))?;
            let [result] = operands(["result"], [result])?;
            result.check_shape(1, 1)?;
            let bits = call.result_bits(&result, Part::All)?;
            write_number(call, &result, &log_det(factor.cholesky.factor().into(), bits), bits)
        })
    }
}

/// Stores a kept factor in one triangle of the n x n matrix `a`: L in the lower triangle (`SUNZI_LOWER`) or `L^T` in
/// the upper triangle (`SUNZI_UPPER`). The other triangle is not written.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_get(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    a: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let uplo = uplo_of(uplo)?;
            let factor = factor.as_ref().ok_or_else(|| Failure::null("factor"))?;
            let [a] = operands(["a"], [a])?;
            let lower = factor.cholesky.factor();
            a.check_shape(lower.rows(), lower.rows())?;
            call.result_bits(&a, triangle(uplo))?; // all of them are initialised
            store_factor(call, Some(uplo), &a, lower)
        })
    }
}
