//! Cholesky factorisation, solves and log-determinants on arrays.

use crate::api::{operands, part_of, symmetric, symmetric_of, uplo_of};
use crate::array::{Array, Operand, Part};
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use rug::Float;
use rug::float::{FreeCache, free_cache};
use sunzi::estimate::log_det_of;
use sunzi::{Cholesky, CholeskyOptions, Matrix, MatrixView, Uplo, cholesky_into, solve_into};

/// Replaces a symmetric positive definite A by its Cholesky factor: L with `A = L L^T` in the lower triangle, or
/// `U = L^T` in the upper triangle.
///
/// Arguments:
/// - `uplo`: the triangle of A that is read and written; the other triangle is neither read nor written. With
///   `SUNZI_BOTH` the two triangles must hold the same numbers, and A becomes L with zeros above the diagonal.
/// - `a`: n x n.
///
/// Accuracy: `|A - L L^T|_ij <= 2^(2 - p) (|L| |L^T|)_ij` for any order and condition. Under `SUNZI_NORM`, or if
/// `sunzi_last_report` returns the accuracy `SUNZI_NORM`, the bound is `2^(2 - p) sqrt(a_ii a_jj)`. Then each entry is
/// rounded to its own precision.
///
/// Errors: `SUNZI_NOT_POSITIVE_DEFINITE` with the index of the first pivot that is not positive as computed; A is
/// unchanged then. `SUNZI_NOT_SYMMETRIC` if `SUNZI_BOTH` was passed and the triangles differ.
///
/// Cost: n^3 / 6 word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_cholesky(ctx: *const sunzi_context, uplo: i32, a: *const sunzi_matrix) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let uplo = symmetric_of(uplo)?;
            let [a] = operands(["a"], [a])?;
            factor_in_place(call, uplo, &a)
        })
    }
}

/// Computes `B := A^-1 B` for a symmetric positive definite A, which is not changed.
///
/// Arguments:
/// - `uplo`: the triangle of A that is read; with `SUNZI_BOTH` the two triangles must hold the same numbers.
/// - `a`: n x n.
/// - `b`: n x m, the right-hand sides, which the solution X replaces.
///
/// Accuracy, for each column: `|b - A x|_i <= 2^(4 - p) ((|L| |L^T| |x|)_i + |b_i|)`; under `SUNZI_NORM`,
/// `2^(4 - p) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)`. p is the largest precision of the entries of B; A is
/// factored at this precision as well. Then each entry is rounded to its own precision.
///
/// Errors: those of `sunzi_cholesky`.
///
/// Cost: one factorisation and one solve with m right-hand sides. For several solves with one A, see
/// `sunzi_factor_new`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_solve(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let uplo = symmetric_of(uplo)?;
            let [a, b] = operands(["a", "b"], [a, b])?;
            a.check_square()?;
            b.check_shape(a.rows(), b.cols())?;
            let bits = call.result_bits(&b, Part::All)?;
            let (left, right) = (call.read(&a, part_of(uplo))?, call.read(&b, Part::All)?);
            let (operand, options) = (symmetric(a.name, left.view(), uplo)?, options(call));
            let mut solution = call.result(b.rows(), b.cols(), bits)?;
            let done = solve_into(&call.context(), operand, right.view(), bits, &options, &mut solution);
            call.note_solve(&call.done(done)?);
            [left, right].into_iter().for_each(|input| call.keep_input(input));
            call.write(&b, Part::All, solution)
        })
    }
}

/// Computes `B := A^-1 B` from a Cholesky factor in an array, as `sunzi_cholesky` leaves it.
///
/// Arguments:
/// - `uplo`: the triangle of `factor` that holds the factor (`SUNZI_LOWER` or `SUNZI_UPPER`); only this triangle is
///   read.
/// - `factor`: n x n.
/// - `b`: n x m, the right-hand sides, which the solution replaces.
///
/// Accuracy: as `sunzi_solve`, with p the smaller of the largest precision of B and the precision of the factor.
///
/// Errors: `SUNZI_SINGULAR` if the diagonal of the factor has a zero.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_cholesky_solve(
    ctx: *const sunzi_context,
    uplo: i32,
    factor: *const sunzi_matrix,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let uplo = uplo_of(uplo)?;
            let [factor, b] = operands(["factor", "b"], [factor, b])?;
            solve_factored(call, uplo, &factor, &b)
        })
    }
}

/// Computes `result := log det A = 2 sum_i log |l_ii|` from a Cholesky factor in an array, of which only the diagonal
/// is read. `factor` is n x n; `result` is 1 x 1, and its precision is the precision of the logarithm.
///
/// Errors: `SUNZI_SINGULAR` if the diagonal has a zero.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_log_det(
    ctx: *const sunzi_context,
    factor: *const sunzi_matrix,
    result: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let [factor, result] = operands(["factor", "result"], [factor, result])?;
            factor.check_square()?;
            result.check_shape(1, 1)?;
            let bits = call.result_bits(&result, Part::All)?;
            let diagonal = read_diagonal(call, &factor)?;
            log_det_number(call, &result, (&diagonal).into(), bits)?;
            call.keep(diagonal);
            Ok(())
        })
    }
}

/// Stores the logarithm of a determinant in the one entry of `result`, from the diagonal of a factor as a column.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn log_det_number(
    call: &Call<'_>,
    result: &Operand,
    diagonal: MatrixView<'_>,
    bits: u32,
) -> Outcome<()> {
    check_pivots(diagonal)?;
    // SAFETY: by contract.
    unsafe { write_number(call, result, &log_det(diagonal, bits), bits) }
}

/// Refuses a zero in the diagonal of a factor, a column.
pub(crate) fn check_pivots(diagonal: MatrixView<'_>) -> Outcome<()> {
    let zero = (0..diagonal.rows()).find(|&i| diagonal.get(i, 0).head.is_zero());
    zero.map_or(Ok(()), |index| Err(Failure::about("factor", sunzi::Error::Singular { index })))
}

/// The logarithm of the determinant. The constants that MPFR keeps for it in each thread are given back: a caller's
/// thread could not do so, as this MPFR is the library's own.
pub(crate) fn log_det(factor: MatrixView<'_>, bits: u32) -> Float {
    let value = log_det_of(factor, bits);
    free_cache(FreeCache::Local);
    value
}

/// The diagonal of a square matrix as a column; nothing else of the matrix is read.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn read_diagonal(call: &Call<'_>, matrix: &Operand) -> Outcome<Matrix> {
    // SAFETY: by contract.
    let diagonal = unsafe {
        match &matrix.array {
            Array::Mpfr(grid) => call.read_copy(&column(matrix, Array::Mpfr(grid.diagonal())), Part::All),
            Array::Mpf(grid) => call.read_copy(&column(matrix, Array::Mpf(grid.diagonal())), Part::All),
            Array::Limbs(array) => array.diagonal(matrix.name),
        }
    };
    diagonal.map_err(on_diagonal)
}

fn column(factor: &Operand, array: Array) -> Operand {
    Operand { array, ..*factor }
}

/// A place in the column of a diagonal as one on the diagonal.
fn on_diagonal(failure: Failure) -> Failure {
    match failure.place {
        Some((row, 0)) if row > 0 => {
            let message = failure.message.replace("column 0", &format!("column {row}"));
            Failure { message, place: Some((row, row)), ..failure }
        }
        _ => failure,
    }
}

/// Stores a number in the one entry of `result`.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn write_number(call: &Call<'_>, result: &Operand, value: &Float, bits: u32) -> Outcome<()> {
    let mut matrix = call.result(1, 1, bits)?;
    if matrix.rows() == 0 {
        matrix = Matrix::zeros(1, 1, bits)?;
    }
    matrix.clear();
    matrix.set_float(0, 0, value)?;
    // SAFETY: by contract.
    unsafe { call.write(result, Part::All, matrix) }
}

/// Choices of a factorisation.
fn options(call: &Call<'_>) -> CholeskyOptions {
    CholeskyOptions::new().accuracy(call.accuracy())
}

/// The factor, at a precision, of the matrix in one triangle or in both.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn factor(call: &Call<'_>, uplo: Option<Uplo>, a: &Operand, bits: u32) -> Outcome<Cholesky> {
    a.check_square()?;
    // SAFETY: by contract.
    let input = unsafe { call.read(a, part_of(uplo)) }?;
    let operand = symmetric(a.name, input.view(), uplo)?;
    let mut factor = Cholesky::with_memory(call.result(a.rows(), a.rows(), bits)?);
    let done = call.done(cholesky_into(&call.context(), operand, bits, &options(call), &mut factor))?;
    call.note_plan(done.planned_bytes);
    call.note_accuracy(done.accuracy, done.range_bits);
    call.keep_input(input);
    Ok(factor)
}

/// `a := l` or `l^T`.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn factor_in_place(call: &Call<'_>, uplo: Option<Uplo>, a: &Operand) -> Outcome<()> {
    a.check_square()?;
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(a, part_of(uplo))?;
        let factor = factor(call, uplo, a, bits)?;
        store_factor(call, uplo, a, factor.factor())?;
        call.keep(factor.into_factor());
        Ok(())
    }
}

/// Stores a factor in one triangle, or as the whole matrix L.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn store_factor(call: &Call<'_>, uplo: Option<Uplo>, a: &Operand, factor: &Matrix) -> Outcome<()> {
    let target = if uplo == Some(Uplo::Upper) { a.transposed() } else { *a };
    let part = if uplo.is_none() { Part::All } else { Part::Lower };
    // SAFETY: by contract.
    unsafe { call.store(&target, part, factor) }
}

/// `b := a^-1 b` with a factor in one triangle.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn solve_factored(call: &Call<'_>, uplo: Uplo, factor: &Operand, b: &Operand) -> Outcome<()> {
    factor.check_square()?;
    b.check_shape(factor.rows(), b.cols())?;
    let lower = if uplo == Uplo::Lower { *factor } else { factor.transposed() };
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(b, Part::All)?;
        let copy = call.read_copy(&lower, Part::Lower)?;
        let factor = Cholesky::from_factor(copy).map_err(|error| Failure::about(factor.name, error))?;
        let factor = factor.with_accuracy(call.accuracy());
        solve_with(call, &factor, b, bits)?;
        call.keep(factor.into_factor());
    }
    Ok(())
}

/// `b := a^-1 b` with a factor.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn solve_with(call: &Call<'_>, factor: &Cholesky, b: &Operand, bits: u32) -> Outcome<()> {
    // SAFETY: by contract, for all below.
    unsafe {
        let right = call.read(b, Part::All)?;
        let mut solution = Matrix::empty();
        let solved = call.done(factor.solve_into(&call.context(), right.view(), bits, &mut solution))?;
        call.keep_input(right);
        call.write_solution(b, Part::All, solution, &solved)
    }
}
