//! The memory that calls over ranks would take, from the descriptions of their matrices.

use super::CallOutcome;
use super::caller::Caller;
use super::factors::triangle_tiles;
use super::matrix::PlacedMatrix;
use super::plan_steps::{CallPlan, CallSteps, PlannedBits};
use super::products::contracted_first;
use crate::context::Context;
use crate::matrix::{Diag, Op, Side, Uplo};
use crate::ops::TrsmOptions;
use crate::ops::product::ranks::plan::{plan_gemm, plan_syrk};
use crate::ops::solve::ranks::{TrsmBits, plan_solve_local, plan_trsm_local};
use crate::site::Team;

/// The plan of [`super::syrk_over`] without an added matrix. Collective.
///
/// # Errors
/// The errors of the call; the smallest memory limit for the step that does not fit.
pub fn plan_syrk_over<C: Caller>(
    caller: &C,
    team: &Team,
    op: Op,
    a: PlacedMatrix<C::Array>,
    c: &PlacedMatrix<C::Array>,
    bits: PlannedBits,
) -> CallOutcome<CallPlan, C> {
    let a = contracted_first(a, op == Op::Transpose);
    let (rows, cols) = (a.rows(), a.cols());
    c.check_shape::<C::Failure>(cols, cols)?;
    let steps = CallSteps::new(caller, team);
    steps.product(&[&a], c, bits, |ctx, team, options| plan_syrk(ctx, team, (rows, cols), bits.result, options))
}

/// The plan of [`super::gemm_over`] without an added matrix. Collective.
///
/// # Errors
/// As [`plan_syrk_over`].
pub fn plan_gemm_over<C: Caller>(
    caller: &C,
    team: &Team,
    ops: [Op; 2],
    a: PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
    c: &PlacedMatrix<C::Array>,
    bits: PlannedBits,
) -> CallOutcome<CallPlan, C> {
    // The contracted index first, as in the call.
    let a = contracted_first(a, ops[0] == Op::Transpose);
    let b = contracted_first(b, ops[1] == Op::NoTranspose);
    let (contracted, rows, cols) = (a.rows(), a.cols(), b.cols());
    b.check_shape::<C::Failure>(contracted, cols)?;
    c.check_shape::<C::Failure>(rows, cols)?;
    let steps = CallSteps::new(caller, team);
    steps.product(&[&a, &b], c, bits, |ctx, team, options| {
        plan_gemm(ctx, team, (rows, cols), contracted, bits.result, options)
    })
}

/// The plan of [`super::cholesky_over`], an upper bound for [`super::KeptFactor::new`]. Collective.
///
/// # Errors
/// As [`plan_syrk_over`].
pub fn plan_cholesky_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<CallPlan, C> {
    let a = a.into_lower(uplo);
    let mut steps = CallSteps::new(caller, team);
    let placed = steps.result(&a, bits)?;
    let tiles = steps.factor(uplo.map(|_| Uplo::Lower), &a, bits)?;
    steps.store_again(&a, &tiles, placed, bits);
    steps.plan()
}

/// The plan of [`super::trsm_over`]. Collective.
///
/// # Errors
/// As [`plan_syrk_over`].
pub fn plan_trsm_over<C: Caller>(
    caller: &C,
    team: &Team,
    side: Side,
    diag: Diag,
    t: &PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
    bits: PlannedBits,
) -> CallOutcome<CallPlan, C> {
    let b = if side == Side::Right { b.transposed() } else { b };
    let (order, columns) = (t.order::<C::Failure>()?, b.cols());
    b.check_shape::<C::Failure>(order, columns)?;
    let mut steps = CallSteps::new(caller, team);
    let placed = steps.result(&b, bits.result)?;
    let taken = steps.take(t, bits.operand, triangle_tiles(team, order))?;
    // Ones on the diagonal are written into a copy.
    let copies = if diag == Diag::Unit { taken } else { 0 };
    let options = TrsmOptions::new().diag(diag).accuracy(caller.account().accuracy());
    let of = TrsmBits { triangle: bits.operand, right: bits.result, solution: bits.result };
    let plan = |ctx: &Context, team: &Team| plan_trsm_local(ctx, team, (order, columns), of, &options);
    steps.right_sides(&b, placed, copies, bits.result, plan)?;
    steps.plan()
}

/// The plan of [`super::solve_over`], an upper bound; without `a` that of [`super::KeptFactor::solve`]. Collective.
///
/// # Errors
/// As [`plan_syrk_over`].
pub fn plan_solve_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: Option<PlacedMatrix<C::Array>>,
    b: &PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<CallPlan, C> {
    let (order, columns) = (b.rows(), b.cols());
    let mut steps = CallSteps::new(caller, team);
    let placed = steps.result(b, bits)?;
    if let Some(a) = a {
        b.check_shape::<C::Failure>(a.order::<C::Failure>()?, columns)?;
        steps.factor(uplo.map(|_| Uplo::Lower), &a.into_lower(uplo), bits)?;
    }
    let accuracy = caller.account().accuracy();
    let plan = |ctx: &Context, team: &Team| plan_solve_local(ctx, team, (order, columns), (bits, bits), accuracy);
    steps.right_sides(b, placed, 0, bits, plan)?;
    steps.plan()
}
