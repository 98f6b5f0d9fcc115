//! The memory that calls would take.

use crate::array::invalid;
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use sunzi::plans::ProductPlanOptions;
use sunzi::{CholeskyOptions, Context, Matrix};

/// What `sunzi_syrk` would take on this context for C of order n and k contracted, with operands of `operand_bits` in
/// the given format and a result of `precision_bits`, without beta; with it, a copy of C comes on top.
///
/// Bits of an `mpf_t` are 64 for each limb in use, up to `mpf_get_prec` + 128. Nothing is computed; the kernel's tables
/// are made and kept. Under a memory limit the plan is the one that the call would run within it. On a context without
/// `SUNZI_NORM` the entries are taken to be of one size: the wider they are spread, the more a call takes.
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
            let ([n, k], [operand, bits]) = (sizes([("n", n), ("k", k)])?, precisions([operand_bits, precision_bits])?);
            let shapes = Shapes { format, operands: &[(k, n, operand)], result: (n, n, bits) };
            let options = ProductPlanOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| {
                Ok(sunzi::plans::plan_syrk_with(ctx, (k, n), bits, &options)?.planned_bytes)
            })
        })
    }
}

/// What `sunzi_gemm` would take for C of m x n and k contracted; the rest as in `sunzi_plan_syrk`.
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
            let [m, n, k] = sizes([("m", m), ("n", n), ("k", k)])?;
            let [operand, bits] = precisions([operand_bits, precision_bits])?;
            let shapes = Shapes { format, operands: &[(m, k, operand), (k, n, operand)], result: (m, n, bits) };
            let options = ProductPlanOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| {
                Ok(sunzi::plans::plan_gemm_with(ctx, (m, n), k, bits, &options)?.planned_bytes)
            })
        })
    }
}

/// What `sunzi_cholesky` would take for order n, with entries of `precision_bits`; the rest as in `sunzi_plan_syrk`.
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
            let ([n], [bits]) = (sizes([("n", n)])?, precisions([precision_bits])?);
            let shapes = Shapes { format, operands: &[(n, n, bits)], result: (n, n, bits) };
            let options = CholeskyOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| Ok(sunzi::plans::plan_cholesky(ctx, n, bits, &options)?.planned_bytes))
        })
    }
}

/// What `sunzi_trsm` would take for a triangle of order n with entries of `operand_bits`, and m right sides with
/// entries of `precision_bits`; the rest as in `sunzi_plan_syrk`.
///
/// The pivots are taken to lie within 2^-21 of the norms of their rows; with smaller ones a call takes some more, or
/// goes in smaller steps where a memory limit says so.
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
            let ([n, m], [operand, bits]) = (sizes([("n", n), ("m", m)])?, precisions([operand_bits, precision_bits])?);
            let shapes = Shapes { format, operands: &[(n, n, operand), (n, m, bits)], result: (n, m, bits) };
            let accuracy = call.accuracy();
            write(call, plan, &shapes, |ctx| Ok(sunzi::plans::plan_trsm(ctx, (n, m), bits, accuracy)?.planned_bytes))
        })
    }
}

/// What `sunzi_solve` would take at most for A of order n with entries of `operand_bits`, and m right sides with
/// entries of `precision_bits`: the factorisation, then the solve, beside copies of both; the rest as in
/// `sunzi_plan_trsm`.
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
            let ([n, m], [operand, bits]) = (sizes([("n", n), ("m", m)])?, precisions([operand_bits, precision_bits])?);
            let shapes = Shapes { format, operands: &[(n, n, operand), (n, m, bits)], result: (n, m, bits) };
            let options = CholeskyOptions::new().accuracy(call.accuracy());
            write(call, plan, &shapes, |ctx| Ok(sunzi::plans::plan_solve(ctx, (n, m), bits, &options)?.planned_bytes))
        })
    }
}

/// Rows, columns and bits of a matrix.
type Shape = (usize, usize, u32);

/// The matrices that a call copies.
struct Shapes<'a> {
    format: i32,
    operands: &'a [Shape],
    result: Shape,
}

impl Shapes<'_> {
    fn bytes(&(rows, cols, bits): &Shape) -> u64 {
        Matrix::bytes_for(rows, cols, bits)
    }

    /// Bytes of the copies of operands.
    fn operand_bytes(&self) -> Outcome<u64> {
        match self.format {
            SUNZI_MPFR | SUNZI_MPF => Ok(self.operands.iter().map(Shapes::bytes).fold(0, u64::saturating_add)),
            SUNZI_LIMBS => Ok(0),
            other => Err(invalid("format", format!("{other} is no format of entries"))),
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

fn sizes<const N: usize>(named: [(&'static str, i64); N]) -> Outcome<[usize; N]> {
    let mut sizes = [0; N];
    for (size, (name, given)) in sizes.iter_mut().zip(named) {
        *size = usize::try_from(given).map_err(|_| {
            Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, format!("{given}: sizes must not be negative"))
        })?;
    }
    Ok(sizes)
}

fn precisions<const N: usize>(given: [i64; N]) -> Outcome<[u32; N]> {
    let mut bits = [0; N];
    for (bits, given) in bits.iter_mut().zip(given) {
        *bits = u32::try_from(given)
            .map_err(|_| Failure::new(sunzi_status::SUNZI_PRECISION, format!("{given} bits are no precision")))?;
    }
    Ok(bits)
}
