//! The memory that calls would take.

use crate::array::invalid;
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use sunzi::plans::ProductPlanOptions;
use sunzi::{CholeskyOptions, Context, Matrix};

/// Computes the memory that `sunzi_syrk` would take on this context, without `beta`, and stores it in `*plan`; nothing
/// else is computed. With `beta` the call also needs memory for a copy of C.
///
/// Arguments:
/// - `format`: format of the operands and of the result.
/// - `n`, `k`: order of C, and length of the sums.
/// - `operand_bits`: precision of the operands in bits. An `mpf_t` counts 64 bits for each limb in use, at most
///   `mpf_get_prec` + 128.
/// - `precision_bits`: precision of the result in bits.
///
/// The call makes and keeps the tables of the kernel. Under a memory limit the plan is the one that the operation would
/// use within the limit. Unless the accuracy of the context is `SUNZI_NORM`, the plan assumes that all entries are of
/// equal magnitude; the wider the range of their exponents, the more memory the operation needs.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_plan_syrk(
    ctx: *const sunzi_context,
    format: i32,
    n: i64,
    k: i64,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let ([n, k], [operand, bits]) = (sizes(["n", "k"], [n, k])?, precisions([operand_bits, precision_bits])?);
            let shapes = Shapes { format, operands: &[(k, n, operand)], result: (n, n, bits) };
            let options = ProductPlanOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| {
                Ok(sunzi::plans::plan_syrk_with(ctx, (k, n), bits, &options)?.planned_bytes)
            })
        })
    }
}

/// Computes the memory that `sunzi_gemm` would take for an m x n matrix C and sums of length k; everything else as in
/// `sunzi_plan_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_plan_gemm(
    ctx: *const sunzi_context,
    format: i32,
    m: i64,
    n: i64,
    k: i64,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let [m, n, k] = sizes(["m", "n", "k"], [m, n, k])?;
            let [operand, bits] = precisions([operand_bits, precision_bits])?;
            let shapes = Shapes { format, operands: &[(m, k, operand), (k, n, operand)], result: (m, n, bits) };
            let options = ProductPlanOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| {
                Ok(sunzi::plans::plan_gemm_with(ctx, (m, n), k, bits, &options)?.planned_bytes)
            })
        })
    }
}

/// Computes the memory that `sunzi_cholesky` would take for a matrix of order n with entries of `precision_bits` bits;
/// everything else as in `sunzi_plan_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_plan_cholesky(
    ctx: *const sunzi_context,
    format: i32,
    n: i64,
    precision_bits: i64,
    plan: *mut sunzi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let ([n], [bits]) = (sizes(["n"], [n])?, precisions([precision_bits])?);
            let shapes = Shapes { format, operands: &[(n, n, bits)], result: (n, n, bits) };
            let options = CholeskyOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| Ok(sunzi::plans::plan_cholesky(ctx, n, bits, &options)?.planned_bytes))
        })
    }
}

/// Computes the memory that `sunzi_trsm` would take for a triangle of order n with entries of `operand_bits` bits and m
/// right-hand sides with entries of `precision_bits` bits; everything else as in `sunzi_plan_syrk`.
///
/// The plan assumes that each pivot is at least 2^-21 times the norm of its row. With smaller pivots the operation
/// takes more memory, or proceeds in smaller steps under a memory limit.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_plan_trsm(
    ctx: *const sunzi_context,
    format: i32,
    n: i64,
    m: i64,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let ([n, m], [operand, bits]) = (sizes(["n", "m"], [n, m])?, precisions([operand_bits, precision_bits])?);
            let shapes = Shapes { format, operands: &[(n, n, operand), (n, m, bits)], result: (n, m, bits) };
            let accuracy = call.accuracy();
            write(call, plan, &shapes, |ctx| Ok(sunzi::plans::plan_trsm(ctx, (n, m), bits, accuracy)?.planned_bytes))
        })
    }
}

/// Computes an upper bound of the memory that `sunzi_solve` would take for a matrix A of order n with entries of
/// `operand_bits` bits and m right-hand sides with entries of `precision_bits` bits: the factorisation, then the solve,
/// in addition to copies of both operands. Everything else as in `sunzi_plan_trsm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_plan_solve(
    ctx: *const sunzi_context,
    format: i32,
    n: i64,
    m: i64,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let ([n, m], [operand, bits]) = (sizes(["n", "m"], [n, m])?, precisions([operand_bits, precision_bits])?);
            let shapes = Shapes { format, operands: &[(n, n, operand), (n, m, bits)], result: (n, m, bits) };
            let options = CholeskyOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| Ok(sunzi::plans::plan_solve(ctx, (n, m), bits, &options)?.planned_bytes))
        })
    }
}

/// Rows, columns and bits of a matrix.
type PlannedShape = (usize, usize, u32);

/// The matrices that a call copies.
struct Shapes<'a> {
    format: i32,
    operands: &'a [PlannedShape],
    result: PlannedShape,
}

impl Shapes<'_> {
    fn bytes(&(rows, cols, bits): &PlannedShape) -> u64 {
        Matrix::bytes_for(rows, cols, bits)
    }

    /// Bytes of the copies of operands.
    fn operand_bytes(&self) -> Outcome<u64> {
        match self.format {
            SUNZI_MPFR | SUNZI_MPF => Ok(self.operands.iter().map(Shapes::bytes).fold(0, u64::saturating_add)),
            SUNZI_LIMBS => Ok(0),
            other => Err(invalid("format", format!("the format {other} is not valid"))),
        }
    }
}

/// Fills the plan, where the operation's own part exists at the same time as the copies.
///
/// # Safety
/// `plan` is null or can be written.
unsafe fn write(
    call: &Call<'_>,
    plan: *mut sunzi_plan,
    shapes: &Shapes<'_>,
    operation: impl FnOnce(&Context) -> sunzi::Result<u64>,
) -> Outcome<()> {
    let copies = shapes.operand_bytes()?;
    if plan.is_null() {
        return Err(Failure::null("plan"));
    }
    call.hold_bytes(copies)?;
    let planned = call.done(operation(&call.context()))?;
    let copied_bytes = copies.saturating_add(Shapes::bytes(&shapes.result));
    let filled = sunzi_plan { copied_bytes, planned_bytes: planned.saturating_add(copies) };
    // SAFETY: it can be written by contract.
    unsafe { plan.write(filled) };
    Ok(())
}

fn sizes<const N: usize>(names: [&'static str; N], given: [i64; N]) -> Outcome<[usize; N]> {
    let mut sizes = [0; N];
    for ((size, name), given) in sizes.iter_mut().zip(names).zip(given) {
        *size = usize::try_from(given).map_err(|_| {
            Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, format!("the size {given} must not be negative"))
        })?;
    }
    Ok(sizes)
}

fn precisions<const N: usize>(given: [i64; N]) -> Outcome<[u32; N]> {
    let mut bits = [0; N];
    for (bits, given) in bits.iter_mut().zip(given) {
        *bits = u32::try_from(given).map_err(|_| {
            Failure::new(sunzi_status::SUNZI_PRECISION, format!("a precision of {given} bits is not valid"))
        })?;
    }
    Ok(bits)
}
