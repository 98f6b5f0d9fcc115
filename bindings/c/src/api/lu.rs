//! General square matrices on arrays: LU with partial pivoting, solves, inverses and determinants.

use crate::api::cholesky::{read_diagonal, write_number};
use crate::api::{op_of, operands};
use crate::array::{Operand, Part, invalid};
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};
use sunzi::advanced::product_of_pivots;
use sunzi::report::{LuReport, SolveReport};
use sunzi::{Lu, LuOptions, Matrix, Op, lu_with};

/// Factors a square A as `P A = L U` with partial pivoting, and replaces it by the factors as LAPACK's `getrf` stores
/// them: U on and above the diagonal, and L below it, whose diagonal of ones is not stored.
///
/// Arguments:
/// - `a`: n x n.
/// - `rows`: receives n indices from 0: row i of `P A` is row `rows[i]` of A.
///
/// In each column the largest candidate becomes the pivot, and the first one among equals. If the largest entries of
/// the rows, relative to those of their columns, differ by more than 2^32, pivots are chosen as if powers of two had
/// scaled the rows to equal size.
///
/// Accuracy: `|P A - L U|_ij <= 2^(2 - p) (|L| |U|)_ij`. Under `SUNZI_NORM`, or if `sunzi_last_report` returns the
/// accuracy `SUNZI_NORM`, the bound is `2^(2 - p) ((|L| |U|)_ij + max(m_j, |u_jj|))`, where m_j is the largest
/// magnitude in column j of A. Then each entry is rounded to its own precision.
///
/// Errors: `SUNZI_SINGULAR` with the index of the first column in which all candidates for the pivot are 0 at the
/// working precision; A and `rows` are unchanged then.
///
/// Cost: n^3 / 3 word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_lu(ctx: *const sunzi_context, a: *const sunzi_matrix, rows: *mut usize) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let [a] = operands(["a"], [a])?;
            a.check_square()?;
            let rows = Integers::new("rows", rows, a.rows())?;
            let bits = call.result_bits(&a, Part::All)?;
            let (factors, _) = factor(call, &a, bits)?;
            rows.write(store_factors(call, &a, factors)?);
            Ok(())
        })
    }
}

/// Computes `B := A^-1 B` for any square A, which is not changed.
///
/// Arguments:
/// - `a`: n x n.
/// - `b`: n x m, the right-hand sides, which the solution X replaces.
///
/// Accuracy, for each column: `|b - A x|_i <= 2^(4 - p) (P^T |L| |U| |x|)_i`; under `SUNZI_NORM` the error of the
/// factors is added, see `sunzi_lu`. p is the largest precision of the entries of B; A is factored at this precision as
/// well. Then each entry is rounded to its own precision.
///
/// Errors: those of `sunzi_lu`.
///
/// Cost: one factorisation and one solve with m right-hand sides. For several solves with one A, see `sunzi_lu_solve`.
/// If A is symmetric positive definite, `sunzi_solve` needs half as many word products.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_general_solve(
    ctx: *const sunzi_context,
    a: *const sunzi_matrix,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let [a, b] = operands(["a", "b"], [a, b])?;
            a.check_square()?;
            b.check_shape(a.rows(), b.cols())?;
            let bits = call.result_bits(&b, Part::All)?;
            let (factors, report) = factor(call, &a, bits)?;
            call.hold_bytes(factors.factors().bytes())?;
            let (solution, solved) = solution(call, Op::NoTranspose, &factors, &b, bits)?;
            call.keep(factors.into_parts().0);
            call.write_solution(&b, Part::All, solution, &solved)?;
            call.note_accuracy(report.accuracy, report.range_bits);
            Ok(())
        })
    }
}

/// Computes `B := op(A)^-1 B` from the factors of A in an array, as `sunzi_lu` leaves them.
///
/// Arguments:
/// - `trans`: `SUNZI_NO_TRANS` solves `A X = B`, `SUNZI_TRANS` solves `A^T X = B`.
/// - `factors`: n x n, L and U.
/// - `rows`: n indices, the order of the rows.
/// - `b`: n x m, the right-hand sides, which the solution replaces.
///
/// Accuracy, for each column: `|b - A x|_i <= 2^(4 - p) (P^T |L| |U| |x|)_i`, or, for the transpose, `|b - A^T x|_i <=
/// 2^(4 - p) (|U^T| |L^T| |P x|)_i`. The bounds are those for factors with componentwise accuracy; the error of other
/// factors is added. p is the smaller of the largest precision of B and the precision of the factors. Then each entry
/// is rounded to its own precision.
///
/// Errors: `SUNZI_SINGULAR` if the diagonal of U has a zero; `SUNZI_INVALID_ARGUMENT` if `rows` does not have each of
/// the numbers from 0 to n - 1 once.
///
/// Cost: n^2 m word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_lu_solve(
    ctx: *const sunzi_context,
    trans: i32,
    factors: *const sunzi_matrix,
    rows: *const usize,
    b: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let op = op_of("trans", trans)?;
            let [factors, b] = operands(["factors", "b"], [factors, b])?;
            factors.check_square()?;
            b.check_shape(factors.rows(), b.cols())?;
            let rows = order_of_rows(&Integers::new("rows", rows.cast_mut(), factors.rows())?)?;
            solve_factored(call, op, &factors, rows, &b)
        })
    }
}

/// Computes `inverse := A^-1` from the factors of A in an array, as `sunzi_lu` leaves them: the solution for the
/// columns of the identity.
///
/// Arguments:
/// - `factors`: n x n, L and U.
/// - `rows`: n indices, the order of the rows.
/// - `inverse`: n x n; it may be the array of the factors.
///
/// Accuracy and errors: as `sunzi_lu_solve`, with the precision of `inverse` in place of that of B.
///
/// Cost: n^3 word products per prime.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_lu_inverse(
    ctx: *const sunzi_context,
    factors: *const sunzi_matrix,
    rows: *const usize,
    inverse: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let [factors, inverse] = operands(["factors", "inverse"], [factors, inverse])?;
            factors.check_square()?;
            inverse.check_shape(factors.rows(), factors.rows())?;
            let rows = order_of_rows(&Integers::new("rows", rows.cast_mut(), factors.rows())?)?;
            invert_factored(call, &factors, rows, &inverse)
        })
    }
}

/// Computes `result := det A` from the factors of A in an array, of which only the diagonal is read. `factors` is
/// n x n; `rows` has n indices, the order of the rows; `result` is 1 x 1, and its precision is the precision of the
/// determinant. The determinant is 1 if n is 0, and 0 if the diagonal of U has a zero.
///
/// Accuracy: 2^(1 - p) relative to the determinant of `P^T L U`, taking the factors as exact.
///
/// Errors: `SUNZI_INVALID_ARGUMENT` as in `sunzi_lu_solve`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_lu_det(
    ctx: *const sunzi_context,
    factors: *const sunzi_matrix,
    rows: *const usize,
    result: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let [factors, result] = operands(["factors", "result"], [factors, result])?;
            factors.check_square()?;
            result.check_shape(1, 1)?;
            let rows = order_of_rows(&Integers::new("rows", rows.cast_mut(), factors.rows())?)?;
            let bits = call.result_bits(&result, Part::All)?;
            let diagonal = read_diagonal(call, &factors)?;
            let product = product_of_pivots(diagonal.view(), bits);
            let product = product.map_err(|error| Failure::about(result.name, error))?;
            call.keep(diagonal);
            let swaps = interchanges(&rows)?.into_iter().enumerate().filter(|(one, other)| one != other).count();
            write_number(call, &result, &if swaps % 2 == 1 { -product } else { product }, bits)
        })
    }
}

/// Integers of the caller, one for each row of a matrix.
pub(crate) struct Integers<T> {
    name: &'static str,
    first: *mut T,
    count: usize,
}

impl<T: Copy> Integers<T> {
    /// The argument `name`, which has `count` integers.
    pub(crate) fn new(name: &'static str, first: *mut T, count: usize) -> Outcome<Integers<T>> {
        if first.is_null() && count > 0 {
            return Err(Failure::null(name));
        }
        if !first.is_aligned() {
            return Err(invalid(name, format!("the address must be a multiple of {} bytes", align_of::<T>())));
        }
        Ok(Integers { name, first, count })
    }

    /// # Safety
    /// The integers are live, and no thread writes to them.
    pub(crate) unsafe fn read(&self) -> Vec<T> {
        // SAFETY: by contract, as the place is one of them.
        (0..self.count).map(|at| unsafe { self.first.add(at).read() }).collect()
    }

    /// Stores as many values as there are integers.
    ///
    /// # Safety
    /// The integers can be written, and no other thread uses them.
    pub(crate) unsafe fn write(&self, values: impl IntoIterator<Item = T>) {
        for (at, value) in values.into_iter().enumerate().take(self.count) {
            // SAFETY: by contract, as the place is one of them.
            unsafe { self.first.add(at).write(value) };
        }
    }

    /// The integer at this index is not valid: `message` says why.
    pub(crate) fn refuse(&self, at: usize, message: String) -> Failure {
        invalid(self.name, format!("the integer at index {at} is not valid: {message}"))
    }
}

/// An order of rows of the caller, checked.
///
/// # Safety
/// The header's rules.
unsafe fn order_of_rows(rows: &Integers<usize>) -> Outcome<Vec<usize>> {
    // SAFETY: by contract.
    let order = unsafe { rows.read() };
    interchanges(&order).map(|_| order)
}

/// The interchanges that bring rows into an order, as LAPACK's `getrf` lists them, but from 0: rows 0 and `result[0]`
/// change places first, then rows 1 and `result[1]`, and so on.
///
/// # Errors
/// `SUNZI_INVALID_ARGUMENT` if `rows` does not have each row once.
pub(crate) fn interchanges(rows: &[usize]) -> Outcome<Vec<usize>> {
    // Which row stands at a place, and the place at which a row stands.
    let (mut row_at, mut place_of) = ((0..rows.len()).collect::<Vec<_>>(), (0..rows.len()).collect::<Vec<_>>());
    let swap = |(at, &row): (usize, &usize)| {
        let Some(place) = place_of.get(row).copied().filter(|&place| place >= at) else {
            let most = rows.len() - 1;
            let message = format!("entry {at} is {row}; the entries must be the numbers from 0 to {most}, each once");
            return Err(invalid("rows", message));
        };
        place_of[row_at[at]] = place;
        place_of[row] = at;
        row_at.swap(at, place);
        Ok(place)
    };
    rows.iter().enumerate().map(swap).collect()
}

/// The factors of a square matrix at a precision.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn factor(call: &Call<'_>, a: &Operand, bits: u32) -> Outcome<(Lu, LuReport)> {
    // SAFETY: by contract.
    let input = unsafe { call.read(a, Part::All) }?;
    let options = LuOptions::new().accuracy(call.accuracy());
    let made = call.done(lu_with(&call.context(), input.view(), bits, &options))?;
    call.note_plan(made.report.planned_bytes);
    call.note_accuracy(made.report.accuracy, made.report.range_bits);
    call.keep_input(input);
    Ok((made.result, made.report))
}

/// Stores factors in `a`; the order of the rows.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn store_factors(call: &Call<'_>, a: &Operand, factors: Lu) -> Outcome<Vec<usize>> {
    let (entries, rows) = factors.into_parts();
    call.note_allocated(&entries);
    // SAFETY: by contract.
    unsafe { call.write(a, Part::All, entries) }?;
    Ok(rows)
}

/// Factors out of an array of the caller.
///
/// # Safety
/// The header's rules.
unsafe fn read_factors(call: &Call<'_>, factors: &Operand, rows: Vec<usize>) -> Outcome<Lu> {
    // SAFETY: by contract.
    let copy = unsafe { call.read_copy(factors, Part::All) }?;
    Lu::from_factors(copy, rows).map_err(|error| Failure::about(factors.name, error))
}

/// The solution of `op(A) X = B` with factors of A.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn solution(
    call: &Call<'_>,
    op: Op,
    factors: &Lu,
    b: &Operand,
    bits: u32,
) -> Outcome<(Matrix, SolveReport)> {
    // SAFETY: by contract.
    let right = unsafe { call.read(b, Part::All) }?;
    let mut solution = Matrix::empty();
    let solved = match op {
        Op::NoTranspose => factors.solve_into(&call.context(), right.view(), bits, &mut solution),
        Op::Transpose => factors.solve_transposed_into(&call.context(), right.view(), bits, &mut solution),
    };
    let solved = call.done(solved)?;
    call.keep_input(right);
    Ok((solution, solved))
}

/// `b := op(a)^-1 b` with the factors of a in an array.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn solve_factored(
    call: &Call<'_>,
    op: Op,
    factors: &Operand,
    rows: Vec<usize>,
    b: &Operand,
) -> Outcome<()> {
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(b, Part::All)?;
        let factors = read_factors(call, factors, rows)?;
        let (solution, solved) = solution(call, op, &factors, b, bits)?;
        call.keep(factors.into_parts().0);
        call.write_solution(b, Part::All, solution, &solved)
    }
}

/// `inverse := a^-1` with the factors of a in an array.
///
/// # Safety
/// The header's rules.
pub(crate) unsafe fn invert_factored(
    call: &Call<'_>,
    factors: &Operand,
    rows: Vec<usize>,
    inverse: &Operand,
) -> Outcome<()> {
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = call.result_bits(inverse, Part::All)?;
        let factors = read_factors(call, factors, rows)?;
        let (order, least_bits) = (factors.order(), 2);
        call.hold_bytes(Matrix::bytes_for(order, order, least_bits))?;
        let (identity, mut solution) = (Matrix::identity(order, least_bits)?, Matrix::empty());
        let solved = call.done(factors.solve_into(&call.context(), &identity, bits, &mut solution))?;
        call.keep(factors.into_parts().0);
        call.write_solution(inverse, Part::All, solution, &solved)
    }
}
