//! `L D L^T` of a symmetric matrix that need not be definite, kept: solves, and how many of their digits are right.

use crate::api::digits::{Means, Solution, System, digits_of_solution};
use crate::api::factor::asked_bits;
use crate::api::{operands, part_of, symmetric, symmetric_of};
use crate::array::Part;
use crate::call::enter;
use crate::context::sunzi_context;
use crate::failure::Failure;
use crate::types::{sunzi_matrix, sunzi_rounding, sunzi_status};
use sunzi::{Ldlt, LdltOptions, Matrix, ldlt_with};

/// Factors `L D L^T` in the library's memory; made by `sunzi_ldlt_new`, freed by `sunzi_ldlt_free`. They may be used by
/// several threads at the same time, and with any context.
pub struct sunzi_ldlt {
    ldlt: Ldlt,
}

/// Factors a symmetric A, of which one triangle is read, or with `SUNZI_BOTH` both, which must hold the same numbers,
/// as `A = L D L^T` without pivoting, and puts a handle of the factors into `*factor` (null where it fails).
///
/// `precision_bits` is the precision of the factors; 0 takes the largest of the triangle's entries. Accuracy: with
/// `g_i = (|L| |D| |L^T|)_ii` the residual is at most `2^(3 - precision_bits) sqrt(g_i g_j)`. For quasi-definite
/// matrices `g_i` is moderate, for others it may be of any size: `sunzi_ldlt_solution_digits` tells what it has cost.
/// A pivot that is 0 is `SUNZI_SINGULAR`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_ldlt_new(
    ctx: *const sunzi_context,
    uplo: i32,
    precision_bits: i64,
    a: *const sunzi_matrix,
    factor: *mut *mut sunzi_ldlt,
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
            let [a] = operands([("a", a)])?;
            a.check_square()?;
            let bits = match asked_bits(precision_bits)? {
                0 => call.result_bits(&a, part_of(uplo))?,
                bits => bits,
            };
            let input = call.read(&a, part_of(uplo))?;
            let operand = symmetric(a.name, input.view(), uplo)?;
            let options = LdltOptions::new().accuracy(call.accuracy());
            let made = call.done(ldlt_with(&call.context(), operand, bits, &options))?;
            call.note_solve(&made.report);
            call.keep_input(input);
            factor.write(Box::into_raw(Box::new(sunzi_ldlt { ldlt: made.result })));
            Ok(())
        })
    }
}

/// Frees factors; null does nothing.
///
/// # Safety
/// `factor` is null or came from `sunzi_ldlt_new`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_ldlt_free(factor: *mut sunzi_ldlt) {
    if !factor.is_null() {
        // SAFETY: made by `Box::into_raw`, and not freed before, by contract.
        drop(unsafe { Box::from_raw(factor) });
    }
}

/// `B := A^-1 B` with kept factors of A.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_ldlt_solve(
    ctx: *const sunzi_context,
    factor: *const sunzi_ldlt,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let sunzi_ldlt { ldlt } = factor.as_ref().ok_or_else(|| Failure::null("factor"))?;
            let [b] = operands([("b", b)])?;
            b.check_shape(ldlt.lower().rows(), b.cols())?;
            let bits = call.result_bits(&b, Part::All)?;
            let right = call.read(&b, Part::All)?;
            let mut solution = Matrix::empty();
            let solved = call.done(ldlt.solve_into(&call.context(), right.view(), bits, &mut solution))?;
            call.keep_input(right);
            call.note(|report| {
                report.copied_bytes += solution.bytes();
                report.precision_bits = bits.into();
            });
            call.note_solve(&solved);
            call.write(&b, Part::All, solution)
        })
    }
}

/// # Safety
/// The header's rules.
unsafe fn solution_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_ldlt,
    asked: &Solution,
    digits: *mut f64,
    means: Means,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe {
        digits_of_solution(ctx, factor, asked, digits, |ctx, sunzi_ldlt { ldlt }, &System { a, b, x, rounding }| {
            match means {
                Means::Estimate => ldlt.solution_digits(ctx, a, b, x, rounding),
                Means::Proof => {
                    ldlt.certify(ctx, a, rounding)?.map_or(Ok(0.0), |proof| proof.solution_digits(ctx, b, x))
                }
            }
        })
    }
}

/// `*digits :=` about how many decimal digits of a solution X of `A X = B` are right, beside the largest entry of its
/// worst column; 0 where the factors are too rough to tell. A is the matrix that was factored, of which one triangle is
/// read, or with `SUNZI_BOTH` both; `rounding` says how A and B were rounded before, null that they are exact.
///
/// Cost: at most five solves with two right sides, a product of A with X and a solve.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_ldlt_solution_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_ldlt,
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

/// `*digits :=` how many decimal digits of a solution X of `A X = B` are proven to be right, beside the largest entry
/// of each column; 0 where nothing can be proven. Operands as `sunzi_ldlt_solution_digits`.
///
/// Cost: two factorisations with as many bits as condition and growth take, and that of `sunzi_ldlt_solution_digits`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_ldlt_certified_solution_digits(
    ctx: *const sunzi_context,
    factor: *const sunzi_ldlt,
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
