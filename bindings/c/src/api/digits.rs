//! How many digits of what a kept factor gives are right.

use crate::api::factor::sunzi_factor;
use crate::api::{operands, part_of, symmetric, symmetric_of};
use crate::array::Part;
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use rug::float::{FreeCache, free_cache};
use sunzi::{Cholesky, Context};

/// Computes a number from a factor and stores it. The constants that MPFR keeps for logarithms in this thread are given
/// back.
///
/// # Safety
/// The header's rules; `result` is null or can be written.
unsafe fn number_of(
    call: &Call<'_>,
    factor: *const sunzi_factor,
    result: *mut f64,
    number: impl FnOnce(&Context, &Cholesky) -> sunzi::Result<f64>,
) -> Outcome<()> {
    // SAFETY: null or live by contract.
    let factor = unsafe { factor.as_ref() }.ok_or_else(|| Failure::null("factor"))?;
    if result.is_null() {
        return Err(Failure::null("result"));
    }
    let found = call.done(number(&call.context(), &factor.cholesky));
    free_cache(FreeCache::Local);
    // SAFETY: it can be written by contract; it need not be initialised.
    unsafe { result.write(found?) };
    Ok(())
}

/// `*bits :=` about how many bits solves with a kept factor lose: log2 of the norm of the inverse of A, scaled by
/// powers of two to a diagonal of about 1. Found once and kept in the factor. Cost: a few solves with one right side.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_condition_bits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    bits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            number_of(call, factor, bits, |ctx, factor| Ok(factor.scaled_condition(ctx)?.log2().to_f64().max(0.0)))
        })
    }
}

/// `*digits :=` about how many decimal digits of `sunzi_factor_log_det` are right, at the factor's precision. Cost: a
/// few solves with one right side.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_log_det_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe { enter(ctx, |call| number_of(call, factor, digits, |ctx, factor| factor.log_det_digits(ctx))) }
}

/// `*digits :=` about how many decimal digits of a solution X of `A X = B` are right, beside the largest entry of its
/// worst column. A is the matrix that was factored, of which one triangle is read, or with `SUNZI_BOTH` both.
///
/// Cost: for up to four columns, and for four where there are more, a product of A with a column and a solve.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_solution_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
    x: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let uplo = symmetric_of(uplo)?;
            let [a, b, x] = operands([("a", a), ("b", b), ("x", x)])?;
            a.check_square()?;
            b.check_shape(a.rows(), b.cols())?;
            x.check_shape(a.rows(), b.cols())?;
            let inputs = [call.read(&a, part_of(uplo))?, call.read(&b, Part::All)?, call.read(&x, Part::All)?];
            let [left, right, solution] = &inputs;
            let operand = symmetric(a.name, left.view(), uplo)?;
            number_of(call, factor, digits, |ctx, factor| {
                factor.solution_digits(ctx, operand, right.view(), solution.view())
            })?;
            inputs.into_iter().for_each(|input| call.keep_input(input));
            Ok(())
        })
    }
}
