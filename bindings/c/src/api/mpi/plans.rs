//! What calls over ranks would take: the steps of each, with the bytes of a rank at every one of them.

use super::factors::tiles;
use super::matrix::{DistOperand, Told};
use super::opening::{Opening, Routine};
use super::{Ranks, collective};
use crate::api::{op_of, side_of};
use crate::array::Array;
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{SUNZI_LIMBS, sunzi_dist_matrix, sunzi_mpi_plan, sunzi_status};
use std::ptr::NonNull;
use sunzi::comm::Reduction;
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, Team, TileMap, TrsmBits, cholesky_tiles, contracted_rows, plan_cholesky,
    plan_gemm, plan_solve_local, plan_syrk, plan_trsm_local, redistribution_bytes,
};
use sunzi::{Matrix, Op, ProductPlanOptions, Side, TrsmOptions};

/// What `sunzi_mpi_syrk` would take for matrices of these descriptions, entries of A with `operand_bits` and of C with
/// `precision_bits`, without beta; with it, tiles of C come on top. Collective: all ranks call it, and each is told of
/// itself and of its node.
///
/// The descriptions are those of the call, but their entries are not looked at and may be null. Nothing is computed;
/// the kernel's tables are made and kept. Under a memory limit the plan is the one that the call would run within it,
/// and `SUNZI_MEMORY_LIMIT` says by how much it falls short. On a context with `SUNZI_ENTRYWISE` the entries are taken
/// to be of one size. What the context has kept of earlier calls is not counted.
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
                let matrices = (matrix(open, "a", a)?, matrix(open, "c", c)?);
                Ok((op, matrices, bits(open, [operand_bits, precision_bits])?, target(plan)?))
            },
            |call, team, ((op, (a, c), [operand, bits], target), parts)| {
                let (a, c) = (a.place(&parts)?, c.place(&parts)?);
                let a = if op == Op::Transpose { a } else { a.transposed() };
                let (k, n) = a.shape();
                c.check_shape(n, n)?;
                let steps = Steps::new(call, team);
                steps.product((&[&a], &c), [operand, bits], target, |ctx, team, options| {
                    Ok(plan_syrk(ctx, team, (k, n), bits, options)?.planned_bytes)
                })
            },
        )
    }
}

/// What `sunzi_mpi_gemm` would take; the rest as in `sunzi_mpi_plan_syrk`.
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
                let matrices = (matrix(open, "a", a)?, matrix(open, "b", b)?, matrix(open, "c", c)?);
                Ok(((of_a, of_b), matrices, bits(open, [operand_bits, precision_bits])?, target(plan)?))
            },
            |call, team, (((of_a, of_b), (a, b, c), [operand, bits], target), parts)| {
                let (a, b, c) = (a.place(&parts)?, b.place(&parts)?, c.place(&parts)?);
                // The contracted index first, as in the call.
                let a = if of_a == Op::Transpose { a } else { a.transposed() };
                let b = if of_b == Op::Transpose { b.transposed() } else { b };
                let ((k, m), (_, n)) = (a.shape(), b.shape());
                b.check_shape(k, n)?;
                c.check_shape(m, n)?;
                let steps = Steps::new(call, team);
                steps.product((&[&a, &b], &c), [operand, bits], target, |ctx, team, options| {
                    Ok(plan_gemm(ctx, team, (m, n), k, bits, options)?.planned_bytes)
                })
            },
        )
    }
}

/// What `sunzi_mpi_cholesky` would take for a matrix with entries of `precision_bits`, and `sunzi_mpi_factor_new` with
/// that precision; the rest as in `sunzi_mpi_plan_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_cholesky(
    ctx: *const sunzi_context,
    a: *const sunzi_dist_matrix,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_plan_cholesky", arguments: &["a", "precision_bits", "plan"] },
            |open| Ok((matrix(open, "a", a)?, bits(open, [0, precision_bits])?, target(plan)?)),
            |call, team, ((a, [_, bits], target), parts)| {
                let a = a.place(&parts)?;
                let mut steps = Steps::new(call, team);
                let placed = steps.result(&a, bits)?;
                steps.factor(&a, bits)?;
                // The copy of A is kept for it where there is no limit.
                let again = if steps.limited { placed } else { 0 };
                steps.at_most(again + steps.messages(a.shape().0, bits, placed));
                steps.tell(target)
            },
        )
    }
}

/// What `sunzi_mpi_trsm` would take for a triangle with entries of `operand_bits` and right sides with entries of
/// `precision_bits`; the rest as in `sunzi_mpi_plan_syrk`. Pivots are taken to be as in `sunzi_plan_trsm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_trsm(
    ctx: *const sunzi_context,
    side: i32,
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
                arguments: &["side", "t", "b", "operand_bits", "precision_bits", "plan"],
            },
            |open| {
                let side = open.choice("side", side_of(side))?;
                let matrices = (matrix(open, "t", t)?, matrix(open, "b", b)?);
                Ok((side, matrices, bits(open, [operand_bits, precision_bits])?, target(plan)?))
            },
            |call, team, ((side, (t, b), [operand, bits], target), parts)| {
                let (t, b) = (t.place(&parts)?, b.place(&parts)?);
                let b = if side == Side::Right { b.transposed() } else { b };
                let (order, columns) = (t.order()?, b.shape().1);
                b.check_shape(order, columns)?;
                let mut steps = Steps::new(call, team);
                steps.result(&b, bits)?;
                steps.take(&t, operand, tiles(&steps.ranks, t.shape()))?;
                let options = TrsmOptions::new().accuracy(call.accuracy());
                let (shape, of) = ((order, columns), TrsmBits { triangle: operand, right: bits, solution: bits });
                steps.right_sides(&b, bits, |ctx, team| plan_trsm_local(ctx, team, shape, of, &options))?;
                steps.tell(target)
            },
        )
    }
}

/// What `sunzi_mpi_solve` would take at most for entries of `precision_bits` in both matrices: the factorisation, then
/// the solve beside the factor and what the context keeps of the factorisation. With null for `a` on every rank: what
/// `sunzi_mpi_factor_solve` would take beside a factor of that precision. The rest as in `sunzi_mpi_plan_trsm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_plan_solve(
    ctx: *const sunzi_context,
    a: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
    precision_bits: i64,
    plan: *mut sunzi_mpi_plan,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_plan_solve", arguments: &["a", "b", "precision_bits", "plan"] },
            |open| {
                open.say(("a", None), "it is", if a.is_null() { "null" } else { "a matrix" });
                let b = matrix(open, "b", b)?;
                let a = if a.is_null() { None } else { Some(matrix(open, "a", a)?) };
                Ok(((a, b), bits(open, [0, precision_bits])?, target(plan)?))
            },
            |call, team, (((a, b), [_, bits], target), parts)| {
                let (a, b) = (a.map(|a| a.place(&parts)).transpose()?, b.place(&parts)?);
                let sizes = b.shape();
                let mut steps = Steps::new(call, team);
                steps.result(&b, bits)?;
                if let Some(a) = &a {
                    b.check_shape(a.order()?, sizes.1)?;
                    steps.factor(a, bits)?;
                }
                let accuracy = call.accuracy();
                steps.right_sides(&b, bits, |ctx, team| plan_solve_local(ctx, team, sizes, (bits, bits), accuracy))?;
                steps.tell(target)
            },
        )
    }
}

/// A matrix of the call, of which the entries are nobody's.
///
/// # Safety
/// The header's rules, but for null entries.
unsafe fn matrix(open: &mut Opening<'_>, name: &'static str, matrix: *const sunzi_dist_matrix) -> Outcome<Told> {
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

fn bits(open: &mut Opening<'_>, given: [i64; 2]) -> Outcome<[u32; 2]> {
    let names = ["operand_bits", "precision_bits"];
    let mut found = [0; 2];
    for ((bits, name), given) in found.iter_mut().zip(names).zip(given) {
        let refused = |_| Failure::of(sunzi_status::SUNZI_PRECISION, name, format!("{given} bits are no precision"));
        *bits = u32::try_from(given).map_err(refused)?;
        open.say((name, None), "it is", given);
    }
    Ok(found)
}

/// Where a plan goes.
struct Target(*mut sunzi_mpi_plan);

fn target(plan: *mut sunzi_mpi_plan) -> Outcome<Target> {
    if plan.is_null() { Err(Failure::null("plan")) } else { Ok(Target(plan)) }
}

/// The bytes of this rank, step by step.
struct Steps<'a> {
    ranks: Ranks<'a>,
    call: &'a Call<'a>,
    team: &'a Team,
    limited: bool,
    /// Bytes now, and what the context keeps of copies that have gone.
    now: u64,
    most: u64,
    /// Bytes that the context keeps of a factorisation under a limit, as far as that has room for them.
    kept: u64,
    most_with_kept: u64,
    copied: u64,
}

impl<'a> Steps<'a> {
    fn new(call: &'a Call<'a>, team: &'a Team) -> Steps<'a> {
        let (ranks, limited) = (Ranks::new(call, team), call.is_limited());
        Steps { ranks, call, team, limited, now: 0, most: 0, kept: 0, most_with_kept: 0, copied: 0 }
    }

    fn at_most(&mut self, more: u64) {
        let all = self.now.saturating_add(more);
        self.most = self.most.max(all);
        self.most_with_kept = self.most_with_kept.max(all.saturating_add(self.kept));
    }

    /// Takes memory of the limit.
    fn hold(&mut self, bytes: u64) -> Outcome<()> {
        self.ranks.hold(bytes)?;
        self.now += bytes;
        self.at_most(0);
        Ok(())
    }

    /// Gives it back, or to the next call where there is no limit.
    fn drop_copy(&mut self, bytes: u64) {
        self.call.release_bytes(bytes);
        self.now -= if self.limited { bytes } else { 0 };
    }

    /// Bytes of a copy of this rank's part.
    fn copy(&mut self, operand: &DistOperand, bits: u32) -> u64 {
        let in_place = matches!(&operand.local.array, Array::Limbs(_));
        let bytes = Matrix::bytes_for(operand.local.rows(), operand.local.cols(), bits);
        self.copied += if in_place { 0 } else { bytes };
        if in_place { 0 } else { bytes }
    }

    /// Bytes of a result in the form of its array, which the limit counts from the beginning and which is made last.
    fn result(&mut self, target: &DistOperand, bits: u32) -> Outcome<u64> {
        let bytes = match &target.local.array {
            Array::Limbs(array) if array.precision_bits() == bits => 0,
            _ => Matrix::bytes_for(target.local.rows(), target.local.cols(), bits),
        };
        self.ranks.hold(bytes)?;
        self.copied += bytes;
        Ok(bytes)
    }

    /// Bytes of the messages in which so many bytes of a matrix come or go.
    fn messages(&self, rows: usize, bits: u32, bytes: u64) -> u64 {
        redistribution_bytes(self.team.size(), (rows, bits), (bytes, bytes))
    }

    /// Takes an operand into tiles; their bytes.
    fn take(&mut self, operand: &DistOperand, bits: u32, map: TileMap) -> Outcome<u64> {
        let copy = self.copy(operand, bits);
        self.hold(copy)?;
        let taken = DistMatrix::bytes_for(&map, self.team.rank(), bits);
        self.hold(taken)?;
        let given = Matrix::bytes_for(operand.local.rows(), operand.local.cols(), bits);
        self.at_most(self.messages(operand.shape().0, bits, given));
        self.drop_copy(copy);
        Ok(taken)
    }

    /// A factorisation of `a`, up to where its factor is held and the matrix has gone.
    fn factor(&mut self, a: &DistOperand, bits: u32) -> Outcome<()> {
        let (order, call, team) = (a.order()?, self.call, self.team);
        let options = DistCholeskyOptions::new().accuracy(call.accuracy());
        let map = call.done(cholesky_tiles(&*self.ranks.context()?, team, order, bits, &options))?;
        let options = options.tile_rows(map.tile_size).grid(map.grid);
        let taken = self.take(a, bits, map)?;
        let planned = plan_cholesky(&*self.ranks.context()?, team, (&map, bits), bits, &options);
        let planned = call.done(planned)?;
        self.at_most(planned);
        call.release_bytes(taken);
        self.now -= taken;
        let factor = DistMatrix::bytes_for(&map, team.rank(), bits);
        self.hold(factor)?;
        let kept = planned.saturating_sub(factor);
        if self.limited {
            self.kept = kept
        } else {
            self.now += kept
        }
        Ok(())
    }

    /// The right sides, and a solve for them.
    fn right_sides(
        &mut self,
        b: &DistOperand,
        bits: u32,
        plan: impl FnOnce(&sunzi::Context, &Team) -> sunzi::Result<u64>,
    ) -> Outcome<()> {
        // The copy makes room for the result, which the limit counts already.
        let copy = self.copy(b, bits);
        let planned = self.call.done(plan(&*self.ranks.context()?, self.team))?;
        self.at_most(copy + planned);
        Ok(())
    }

    /// A product of operands with the contracted index first.
    ///
    /// # Safety
    /// The target can be written.
    unsafe fn product(
        mut self,
        (operands, c): (&[&DistOperand], &DistOperand),
        [operand_bits, bits]: [u32; 2],
        target: Target,
        plan: impl FnOnce(&sunzi::Context, &Team, &ProductPlanOptions) -> sunzi::Result<u64>,
    ) -> Outcome<()> {
        let placed = self.result(c, bits)?;
        let distributions = operands.iter().map(|operand| &operand.distribution).collect::<Vec<_>>();
        let to = contracted_rows(&distributions, self.team.size());
        for operand in operands {
            let copy = self.copy(operand, operand_bits);
            self.hold(copy)?;
            let rows = operand.distribution.with_whole_rows(0);
            if rows.is_some() && rows == to.with_whole_rows(0) {
                continue;
            }
            let moved = Matrix::bytes_for(to.local_shape(self.team.rank()).0, operand.shape().1, operand_bits);
            self.copied += moved;
            self.hold(moved)?;
            self.at_most(self.messages(operand.shape().0, operand_bits, moved));
            self.drop_copy(copy);
        }
        let options = ProductPlanOptions::new().accuracy(self.call.accuracy());
        let planned = self.call.done(plan(&*self.ranks.context()?, self.team, &options))?;
        // Windows are the node's; each of its ranks has an equal share.
        self.at_most(planned.div_ceil(self.team.node().size() as u64));
        let last = placed + self.messages(c.shape().0, bits, placed);
        self.at_most(planned.div_ceil(self.team.node().size() as u64) + last);
        // SAFETY: by contract.
        unsafe { self.tell(target) }
    }

    /// Fills a plan. Collective.
    ///
    /// # Safety
    /// The target can be written.
    unsafe fn tell(self, Target(plan): Target) -> Outcome<()> {
        let share = self.call.limit_bytes().map_or(0, |limit| limit / self.team.node().size() as u64);
        let most = self.most.max(self.most_with_kept.min(share));
        let mut node = [most];
        self.ranks.node.all_reduce(Reduction::Sum, &mut node)?;
        let told = sunzi_mpi_plan { copied_bytes: self.copied, rank_bytes: most, node_bytes: node[0] };
        // SAFETY: it can be written by contract.
        unsafe { plan.write(told) };
        Ok(())
    }
}
