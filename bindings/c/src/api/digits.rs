//! How many digits of the results of a kept factor are right.

use crate::api::factor::sunzi_factor;
use crate::api::{operands, part_of, symmetric, symmetric_of};
use crate::array::{Part, invalid};
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_rounding, sunzi_status};
use rug::float::{FreeCache, free_cache};
use sunzi::estimate::{Certificate, InputRounding};
use sunzi::{Context, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Symmetric};

/// Computes a number from a factor and stores it. The constants that MPFR keeps for logarithms in this thread are given
/// back.
///
/// # Safety
/// The header's rules; `result` is null or can be written.
pub(super) unsafe fn number_of<F>(
    call: &Call<'_>,
    factor: *const F,
    result: *mut f64,
    number: impl FnOnce(&Context, &F) -> sunzi::Result<f64>,
) -> Outcome<()> {
    // SAFETY: null or live by contract.
    let factor = unsafe { factor.as_ref() }.ok_or_else(|| Failure::null("factor"))?;
    if result.is_null() {
        return Err(Failure::null("result"));
    }
    let found = call.done(number(&call.context(), factor));
    free_cache(FreeCache::Local);
    // SAFETY: it can be written by contract; it need not be initialised.
    unsafe { result.write(found?) };
    Ok(())
}

/// Estimates the number of bits that solves with a kept factor lose: `*bits` is log2 of the norm of the inverse of A
/// after A has been scaled by powers of two to a diagonal of about 1.
///
/// Cost: a few solves with one right-hand side at the first call; the factor keeps the result.
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
            number_of(call, factor, bits, |ctx, factor| {
                Ok(factor.cholesky.scaled_condition(ctx)?.log2().to_f64().max(0.0))
            })
        })
    }
}

/// Estimates the number of correct decimal digits of `sunzi_factor_log_det` at the precision of the factor, for an
/// exact A, and stores it in `*digits`.
///
/// Cost: a few solves with one right-hand side.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_log_det_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { sunzi_factor_log_det_digits_with(ctx, factor, std::ptr::null(), digits) }
}

/// Same as `sunzi_factor_log_det_digits`, for a matrix that was rounded as `rounding` states.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_log_det_digits_with(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    rounding: *const sunzi_rounding,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let rounding = rounding_of(rounding)?;
            number_of(call, factor, digits, |ctx, factor| factor.cholesky.log_det_digits_with(ctx, rounding))
        })
    }
}

/// The source of digits: an estimate or a proof.
#[derive(Clone, Copy)]
pub(super) enum Means {
    Estimate,
    Proof,
}

/// The roundings of the operands, as far as they are known.
///
/// # Safety
/// `rounding` is null or live.
pub(super) unsafe fn rounding_of(rounding: *const sunzi_rounding) -> Outcome<InputRounding> {
    // SAFETY: null or live by contract.
    let Some(&sunzi_rounding { matrix_bits, right_bits }) = (unsafe { rounding.as_ref() }) else {
        return Ok(InputRounding::new());
    };
    let bits = |bits: i64| match u32::try_from(bits) {
        Ok(0) => Ok(None),
        Ok(bits) if bits <= MAXIMUM_PRECISION_BITS => Ok(Some(bits)),
        _ => Err(invalid(
            "rounding",
            format!("a precision of {bits} bits is not valid; choose 0 to {MAXIMUM_PRECISION_BITS}"),
        )),
    };
    Ok(InputRounding::new().matrix_bits(bits(matrix_bits)?).right_bits(bits(right_bits)?))
}

/// Digits that a certificate proves; 0 where there is none.
fn proven(
    ctx: &Context,
    factor: &sunzi_factor,
    a: Symmetric<'_>,
    rounding: InputRounding,
    digits: impl FnOnce(&Certificate<'_>) -> sunzi::Result<f64>,
) -> sunzi::Result<f64> {
    factor.cholesky.certify_with(ctx, a, rounding)?.map_or(Ok(0.0), |proof| digits(&proof))
}

/// The operands of a call about the digits of a solution.
pub(super) struct Solution {
    pub rounding: *const sunzi_rounding,
    pub uplo: i32,
    pub a: *const sunzi_matrix,
    pub b: *const sunzi_matrix,
    pub x: *const sunzi_matrix,
}

/// A system and its solution, taken in.
pub(super) struct System<'s> {
    pub a: Symmetric<'s>,
    pub b: MatrixView<'s>,
    pub x: MatrixView<'s>,
    pub rounding: InputRounding,
}

/// A number that `number` finds from a factor of any kind and a solution, stored.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn digits_of_solution<F>(
    ctx: *const sunzi_context,
    factor: *const F,
    asked: &Solution,
    digits: *mut f64,
    number: impl FnOnce(&Context, &F, &System<'_>) -> sunzi::Result<f64>,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (rounding, uplo) = (rounding_of(asked.rounding)?, symmetric_of(asked.uplo)?);
            let [a, b, x] = operands(["a", "b", "x"], [asked.a, asked.b, asked.x])?;
            a.check_square()?;
            b.check_shape(a.rows(), b.cols())?;
            x.check_shape(a.rows(), b.cols())?;
            let inputs = [call.read(&a, part_of(uplo))?, call.read(&b, Part::All)?, call.read(&x, Part::All)?];
            let [left, right, solution] = &inputs;
            let operand = symmetric(a.name, left.view(), uplo)?;
            let system = System { a: operand, b: right.view(), x: solution.view(), rounding };
            number_of(call, factor, digits, |ctx, factor| number(ctx, factor, &system))?;
            inputs.into_iter().for_each(|input| call.keep_input(input));
            Ok(())
        })
    }
}

/// # Safety
/// The header's rules.
unsafe fn solution_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    asked: &Solution,
    digits: *mut f64,
    means: Means,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe {
        digits_of_solution(ctx, factor, asked, digits, |ctx, factor, &System { a, b, x, rounding }| match means {
            Means::Estimate => factor.cholesky.solution_digits_with(ctx, a, b, x, rounding),
            Means::Proof => proven(ctx, factor, a, rounding, |proof| proof.solution_digits(ctx, b, x)),
        })
    }
}

/// The operands of a call about the digits of an inverse.
struct Inverse {
    rounding: *const sunzi_rounding,
    uplo: i32,
    a: *const sunzi_matrix,
    inverse: *const sunzi_matrix,
}

/// # Safety
/// The header's rules.
unsafe fn inverse_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    asked: &Inverse,
    digits: *mut f64,
    means: Means,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (rounding, uplo) = (rounding_of(asked.rounding)?, symmetric_of(asked.uplo)?);
            let [a, x] = operands(["a", "inverse"], [asked.a, asked.inverse])?;
            a.check_square()?;
            x.check_shape(a.rows(), a.rows())?;
            let inputs = [call.read(&a, part_of(uplo))?, call.read(&x, part_of(uplo))?];
            let operand = symmetric(a.name, inputs[0].view(), uplo)?;
            let inverse = symmetric(x.name, inputs[1].view(), uplo)?;
            call.hold_bytes(Matrix::bytes_for(a.rows(), a.rows(), inputs[1].view().precision_bits()))?;
            let inverse = inverse.to_symmetric()?;
            number_of(call, factor, digits, |ctx, factor| match means {
                Means::Estimate => factor.cholesky.inverse_digits_with(ctx, operand, inverse.as_matrix(), rounding),
                Means::Proof => {
                    proven(ctx, factor, operand, rounding, |proof| proof.inverse_digits(ctx, inverse.as_matrix()))
                }
            })?;
            inputs.into_iter().for_each(|input| call.keep_input(input));
            Ok(())
        })
    }
}

/// Estimates the number of correct decimal digits of a solution X of `A X = B`, and stores it in `*digits`: `-log10` of
/// the error of the worst column, relative to the largest entry of that column.
///
/// Arguments:
/// - `factor`: the factor of A.
/// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
/// - `a`: n x n, the matrix that was factored.
/// - `b`, `x`: n x m, the right-hand sides and the solution.
///
/// Cost: a product of A with a column and a solve, for each of up to four columns.
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
    // SAFETY: by contract.
    unsafe { sunzi_factor_solution_digits_with(ctx, factor, std::ptr::null(), uplo, a, b, x, digits) }
}

/// Same as `sunzi_factor_solution_digits`, for operands that were rounded as `rounding` states.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_solution_digits_with(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    rounding: *const sunzi_rounding,
    uplo: i32,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
    x: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { solution_digits(ctx, factor, &Solution { rounding, uplo, a, b, x }, digits, Means::Estimate) }
}

/// Computes a proven lower bound of the number of correct decimal digits of a solution X of `A X = B`, relative to the
/// largest entry of each column, and stores it in `*digits`. The bound is 0 if nothing can be proven, because the proof
/// that A is positive definite did not succeed. Arguments as in `sunzi_factor_solution_digits`.
///
/// Cost: a second factorisation, whose precision exceeds the logarithm of the condition number of the scaled A by some
/// tens of bits; a product of A with X, and a solve.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_certified_solution_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
    x: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { sunzi_factor_certified_solution_digits_with(ctx, factor, std::ptr::null(), uplo, a, b, x, digits) }
}

/// Same as `sunzi_factor_certified_solution_digits`, for operands that were rounded as `rounding` states.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_certified_solution_digits_with(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    rounding: *const sunzi_rounding,
    uplo: i32,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
    x: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { solution_digits(ctx, factor, &Solution { rounding, uplo, a, b, x }, digits, Means::Proof) }
}

/// Estimates the number of correct decimal digits of an inverse of A, relative to its largest entry, and stores it in
/// `*digits`.
///
/// Arguments:
/// - `factor`: the factor of A.
/// - `uplo`: the triangle of both matrices that is read; with `SUNZI_BOTH` the two triangles of each matrix must hold
///   the same numbers.
/// - `a`: n x n, the matrix that was factored.
/// - `inverse`: n x n.
///
/// Cost: a product of A with a column and a solve, for each of up to four columns.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_inverse_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    a: *const sunzi_matrix,
    inverse: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { sunzi_factor_inverse_digits_with(ctx, factor, std::ptr::null(), uplo, a, inverse, digits) }
}

/// Same as `sunzi_factor_inverse_digits`, for a matrix that was rounded as `rounding` states.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_inverse_digits_with(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    rounding: *const sunzi_rounding,
    uplo: i32,
    a: *const sunzi_matrix,
    inverse: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { inverse_digits(ctx, factor, &Inverse { rounding, uplo, a, inverse }, digits, Means::Estimate) }
}

/// Computes a proven lower bound of the number of correct decimal digits of an inverse of A, relative to its largest
/// entry, and stores it in `*digits`; the bound is 0 if nothing can be proven. Arguments as in
/// `sunzi_factor_inverse_digits`.
///
/// Cost: as `sunzi_factor_certified_solution_digits` with n right-hand sides.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_certified_inverse_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    a: *const sunzi_matrix,
    inverse: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { sunzi_factor_certified_inverse_digits_with(ctx, factor, std::ptr::null(), uplo, a, inverse, digits) }
}

/// Same as `sunzi_factor_certified_inverse_digits`, for a matrix that was rounded as `rounding` states.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_certified_inverse_digits_with(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    rounding: *const sunzi_rounding,
    uplo: i32,
    a: *const sunzi_matrix,
    inverse: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { inverse_digits(ctx, factor, &Inverse { rounding, uplo, a, inverse }, digits, Means::Proof) }
}

/// Computes a proven lower bound of the number of correct decimal digits of `sunzi_factor_log_det` at the precision of
/// the factor, and stores it in `*digits`; the bound is 0 if nothing can be proven. `a` is the n x n matrix that was
/// factored, of which the triangle `uplo` is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
///
/// Cost: as `sunzi_factor_certified_solution_digits`, and a product of the factor with its transpose.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_certified_log_det_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    uplo: i32,
    a: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { sunzi_factor_certified_log_det_digits_with(ctx, factor, std::ptr::null(), uplo, a, digits) }
}

/// Same as `sunzi_factor_certified_log_det_digits`, for a matrix that was rounded as `rounding` states.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_factor_certified_log_det_digits_with(
    ctx: *const sunzi_context,
    factor: *const sunzi_factor,
    rounding: *const sunzi_rounding,
    uplo: i32,
    a: *const sunzi_matrix,
    digits: *mut f64,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let (rounding, uplo) = (rounding_of(rounding)?, symmetric_of(uplo)?);
            let [a] = operands(["a"], [a])?;
            a.check_square()?;
            let input = call.read(&a, part_of(uplo))?;
            let operand = symmetric(a.name, input.view(), uplo)?;
            number_of(call, factor, digits, |ctx, factor| {
                proven(ctx, factor, operand, rounding, |proof| proof.log_det_digits(ctx))
            })?;
            call.keep_input(input);
            Ok(())
        })
    }
}
