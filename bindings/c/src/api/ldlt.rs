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

/// The factors of `A = L D L^T` in the library's memory. `sunzi_ldlt_new` makes them, `sunzi_ldlt_free` frees them.
/// Several threads may use them at the same time, and with any context.
pub struct sunzi_ldlt {
    ldlt: Ldlt,
}

/// Factors a symmetric A as `A = L D L^T` without pivoting, with L unit lower triangular and D diagonal, keeps the
/// factors in the library's memory, and stores a handle in `*factor` (null after a failure). A need not be positive
/// definite and is not changed.
///
/// Arguments:
/// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
/// - `precision_bits`: precision of the factors; 0 selects the largest precision of the entries that are read.
/// - `a`: n x n.
///
/// Accuracy: `|A - L D L^T|_ij <= 2^(3 - p) sqrt(g_i g_j)` with p the precision of the factors and
/// `g_i = (|L| |D| |L^T|)_ii`. For quasi-definite matrices g_i is moderate; for other matrices it may have any size,
/// and `sunzi_ldlt_solution_digits` shows how many digits of a solution are correct.
///
/// Errors: `SUNZI_SINGULAR` if a pivot is 0.
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
            let [a] = operands(["a"], [a])?;
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

/// Frees the factors; a null pointer is ignored.
///
/// # Safety
/// `factor` must be null or a result of `sunzi_ldlt_new`, and must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_ldlt_free(factor: *mut sunzi_ldlt) {
    if !factor.is_null() {
        // SAFETY: made by `Box::into_raw`, and not freed before, by contract.
        drop(unsafe { Box::from_raw(factor) });
    }
}

/// Computes `B := A^-1 B` with kept factors of A. `b` is n x m, the right-hand sides, which the solution replaces.
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
            let [b] = operands(["b"], [b])?;
            b.check_shape(ldlt.lower().rows(), b.cols())?;
            let bits = call.result_bits(&b, Part::All)?;
            let right = call.read(&b, Part::All)?;
            let mut solution = Matrix::empty();
            let solved = call.done(ldlt.solve_into(&call.context(), right.view(), bits, &mut solution))?;
            call.keep_input(right);
            call.write_solution(&b, Part::All, solution, &solved)
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

/// Estimates the number of correct decimal digits of a solution X of `A X = B`, and stores it in `*digits`: `-log10` of
/// the error of the worst column, relative to the largest entry of that column. The number is 0 if the factors are too
/// inaccurate for an estimate.
///
/// Arguments:
/// - `factor`: the factors of A.
/// - `rounding`: the roundings of A and B before the call; null means that A and B are exact.
/// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
/// - `a`: n x n, the matrix that was factored.
/// - `b`, `x`: n x m, the right-hand sides and the solution.
///
/// Cost: at most five solves with two right-hand sides, a product of A with X, and a solve.
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

/// Computes a proven lower bound of the number of correct decimal digits of a solution X of `A X = B`, relative to the
/// largest entry of each column, and stores it in `*digits`; the bound is 0 if nothing can be proven. Arguments as in
/// `sunzi_ldlt_solution_digits`.
///
/// Cost: two factorisations, with the bits that the condition and the growth of the factors require, and the cost of
/// `sunzi_ldlt_solution_digits`.
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
