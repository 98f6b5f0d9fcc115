//! The memory that calls over ranks would take, from the descriptions of their matrices.

use super::opening::Opening;
use super::{DistArgument, collective};
use crate::api::{diag_of, op_of, side_of};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{SUNZI_LIMBS, sunzi_dist_matrix, sunzi_mpi_plan, sunzi_status};
use std::ptr::NonNull;
use sunzi::Matrix;
use sunzi::advanced::calls::{
    CallPlan, PlannedBits, Routine, plan_cholesky_over, plan_gemm_over, plan_solve_over, plan_syrk_over, plan_trsm_over,
};

/// The destination of a plan.
struct PlanTarget(*mut sunzi_mpi_plan);

impl PlanTarget {
    /// Refuses null.
    fn new(plan: *mut sunzi_mpi_plan) -> Outcome<PlanTarget> {
        if plan.is_null() { Err(Failure::null("plan")) } else { Ok(PlanTarget(plan)) }
    }

    /// Stores a plan.
    ///
    /// # Safety
    /// The target can be written.
    unsafe fn write(self, plan: CallPlan) {
        let CallPlan { copied_bytes, rank_bytes, node_bytes } = plan;
        // SAFETY: by contract.
        unsafe { self.0.write(sunzi_mpi_plan { copied_bytes, rank_bytes, node_bytes }) };
    }
}

/// Computes the memory that `sunzi_mpi_syrk` would take on this rank and on its node, without `beta`, and stores it in
/// `*plan`; nothing else is computed. Collective. With `beta` the call also needs tiles of C.
///
/// Arguments:
/// - `a`, `c`: the descriptions of the call. The entries are not read, and the pointers to them may be null.
/// - `operand_bits`, `precision_bits`: precision in bits of the entries of A and of C.
///
/// The call makes and keeps the tables of the kernel. Under a memory limit the plan is the one that the operation would
/// use within the limit; `SUNZI_MEMORY_LIMIT` names the least limit for the step that does not fit, and a later step
/// may need more. If the limits of ranks or nodes differ, the plan of a product uses the least. Unless the accuracy of
/// the context is `SUNZI_NORM`, the plan assumes that all entries are of equal magnitude. Memory that the context keeps
/// from earlier calls is not counted. For products on devices the plan counts the memory of the host, not of the
/// devices.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_syrk(
    ctx: *const sunzi_context,
    trans: i32,
    a: *const sunzi_dist_matrix,
    c: *const sunzi_dist_matrix,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["trans", "a", "c", "operand_bits", "precision_bits", "plan"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_plan_syrk", arguments },
            |open| {
                let op = open.choice("trans", op_of("trans", trans))?;
                let (a, c) = (matrix(open, "a", a)?, matrix(open, "c", c)?);
                Ok((op, a, c, both_bits(open, operand_bits, precision_bits)?, PlanTarget::new(plan)?))
            },
            |call, team, (op, a, c, bits, target), shapes| {
                let (a, c) = (a.place(shapes)?, c.place(shapes)?);
                target.write(plan_syrk_over(call, team, op, a, &c, bits)?);
                Ok(())
            },
        )
    }
}

/// Computes the memory that `sunzi_mpi_gemm` would take; everything else as in `sunzi_mpi_plan_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_gemm(
    ctx: *const sunzi_context,
    trans_a: i32,
    trans_b: i32,
    a: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
    c: *const sunzi_dist_matrix,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["trans_a", "trans_b", "a", "b", "c", "operand_bits", "precision_bits", "plan"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_plan_gemm", arguments },
            |open| {
                let of_a = open.choice("trans_a", op_of("trans_a", trans_a))?;
                let of_b = open.choice("trans_b", op_of("trans_b", trans_b))?;
                let (a, b, c) = (matrix(open, "a", a)?, matrix(open, "b", b)?, matrix(open, "c", c)?);
                Ok(([of_a, of_b], a, b, c, both_bits(open, operand_bits, precision_bits)?, PlanTarget::new(plan)?))
            },
            |call, team, (ops, a, b, c, bits, target), shapes| {
                let (a, b, c) = (a.place(shapes)?, b.place(shapes)?, c.place(shapes)?);
                target.write(plan_gemm_over(call, team, ops, a, b, &c, bits)?);
                Ok(())
            },
        )
    }
}

/// Computes the memory that `sunzi_mpi_cholesky` would take with this `uplo` for entries of `precision_bits` bits; it
/// is an upper bound for `sunzi_mpi_factor_new` at this precision. Everything else as in `sunzi_mpi_plan_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_cholesky(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_dist_matrix,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_plan_cholesky", arguments: &["uplo", "a", "precision_bits", "plan"] },
            |open| {
                let uplo = open.symmetric(uplo)?;
                Ok((uplo, matrix(open, "a", a)?, bits(open, "precision_bits", precision_bits)?, PlanTarget::new(plan)?))
            },
            |call, team, (uplo, a, bits, target), shapes| {
                target.write(plan_cholesky_over(call, team, uplo, a.place(shapes)?, bits)?);
                Ok(())
            },
        )
    }
}

/// Computes the memory that `sunzi_mpi_trsm` would take with this `side` and `diag` for a triangle with entries of
/// `operand_bits` bits and right-hand sides with entries of `precision_bits` bits. The assumption about pivots is the
/// one of `sunzi_plan_trsm`; everything else as in `sunzi_mpi_plan_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_trsm(
    ctx: *const sunzi_context,
    side: i32,
    diag: i32,
    t: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
    operand_bits: i64,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine {
                name: "sunzi_mpi_plan_trsm",
                arguments: &["side", "diag", "t", "b", "operand_bits", "precision_bits", "plan"],
            },
            |open| {
                let (side, diag) = (open.choice("side", side_of(side))?, open.choice("diag", diag_of(diag))?);
                let (t, b) = (matrix(open, "t", t)?, matrix(open, "b", b)?);
                Ok((side, diag, t, b, both_bits(open, operand_bits, precision_bits)?, PlanTarget::new(plan)?))
            },
            |call, team, (side, diag, t, b, bits, target), shapes| {
                let (t, b) = (t.place(shapes)?, b.place(shapes)?);
                target.write(plan_trsm_over(call, team, side, diag, &t, b, bits)?);
                Ok(())
            },
        )
    }
}

/// Computes an upper bound of the memory that `sunzi_mpi_solve` would take with this `uplo`, for entries of
/// `precision_bits` bits in both matrices: the factorisation, then the solve, in addition to the factor and to the
/// memory that the context keeps from the factorisation. If `a` is null on every rank, the result is the memory of
/// `sunzi_mpi_factor_solve`, in addition to a factor of this precision. Everything else as in `sunzi_mpi_plan_trsm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_solve(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_plan_solve", arguments: &["uplo", "a", "b", "precision_bits", "plan"] },
            |open| {
                let uplo = open.symmetric(uplo)?;
                open.say("a", "it is", if a.is_null() { "null" } else { "a matrix" });
                let b = matrix(open, "b", b)?;
                let a = if a.is_null() { None } else { Some(matrix(open, "a", a)?) };
                Ok((uplo, a, b, bits(open, "precision_bits", precision_bits)?, PlanTarget::new(plan)?))
            },
            |call, team, (uplo, a, b, bits, target), shapes| {
                let (a, b) = (a.map(|a| a.place(shapes)).transpose()?, b.place(shapes)?);
                target.write(plan_solve_over(call, team, uplo, a, &b, bits)?);
                Ok(())
            },
        )
    }
}

/// A matrix of the call, whose entries may be absent.
///
/// # Safety
/// The header's rules, except that entries may be null.
unsafe fn matrix(
    open: &mut Opening<'_>,
    name: &'static str,
    matrix: *const sunzi_dist_matrix,
) -> Outcome<DistArgument> {
    // SAFETY: null or live by contract.
    let Some(&described) = (unsafe { matrix.as_ref() }) else { return Err(Failure::null(name)) };
    let (mut described, nowhere) = (described, NonNull::<u64>::dangling().as_ptr());
    described.local.entries = nowhere.cast();
    if described.local.format == SUNZI_LIMBS {
        described.local.limbs = nowhere;
    }
    // SAFETY: the description is live, and plans read no entry.
    unsafe { open.matrix(name, &described) }
}

/// The precisions of a product or a triangular solve.
fn both_bits(open: &mut Opening<'_>, operand: i64, precision: i64) -> Outcome<PlannedBits> {
    let operand = bits(open, "operand_bits", operand)?;
    Ok(PlannedBits { operand, result: bits(open, "precision_bits", precision)? })
}

/// A precision, by its name.
fn bits(open: &mut Opening<'_>, name: &'static str, given: i64) -> Outcome<u32> {
    let message = || format!("a precision of {given} bits is not valid");
    let refused = || Failure::of(sunzi_status::SUNZI_PRECISION, name, message());
    let found = u32::try_from(given).ok().filter(|bits| *bits >= 2).ok_or_else(refused)?;
    Matrix::zeros(0, 0, found).map_err(|error| Failure::about(name, error))?;
    open.say(name, "it is", given);
    Ok(found)
}
