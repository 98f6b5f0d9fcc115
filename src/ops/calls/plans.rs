//! The memory that calls over ranks would take, from the descriptions of their matrices: the steps of each call, the
//! bytes of a rank at every one of them, and those that a limit counts.

use super::CallOutcome;
use super::account::{CallAccount, Tally, process_bytes};
use super::caller::{CallRanks, Caller, LocalArray, together};
use super::factors::triangle_tiles;
use super::matrix::PlacedMatrix;
use super::products::{gemm_operands, result_messages, syrk_operand};
use crate::comm::Reduction;
use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Diag, Matrix, Op, Side, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::redistribute::contracted_rows;
use crate::ops::distribution::travel::travel_bytes;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::ranks::{cholesky_tiles, plan_cholesky};
use crate::ops::product::ranks::plan::{plan_gemm, plan_syrk};
use crate::ops::solve::ranks::{TrsmBits, plan_solve_local, plan_trsm_local};
use crate::ops::{Plan, ProductPlanOptions, TrsmOptions};
use crate::plan::even_share;
use crate::site::Team;
use crate::tile::{Distribution, RankGrid, TileMap};

/// A limit that is none, but for which calls go the ways of limited ones.
const PLENTY: u64 = u64::MAX >> 16;

/// Predicted memory of a call over ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallPlan {
    /// Bytes of the copies of operands and of the result on this rank, in addition to its arrays.
    pub copied_bytes: u64,
    /// Largest number of bytes on this rank at one time, including copies and an even share of the memory that the
    /// ranks of its node have in common.
    pub rank_bytes: u64,
    /// Upper bound of the bytes of all ranks of this rank's node together.
    pub node_bytes: u64,
}

/// Precisions of a planned call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBits {
    /// Bits of the operands of a product, and of a triangle.
    pub operand: u32,
    /// Bits of the result.
    pub result: u32,
}

/// The plan of [`super::syrk_over`] without an added matrix. Collective.
///
/// Cost: no numbers are read; a few reductions of words over the ranks.
/// Source: docs/decisions/090-plans-from-descriptions.md.
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
    let a = syrk_operand::<C>(op, a, c)?;
    let (rows, cols) = (a.rows(), a.cols());
    let steps = CallSteps::new(caller, team);
    steps.product(&[&a], c, bits, |ctx, team, options| plan_syrk(ctx, team, (rows, cols), bits.result, options))
}

/// The plan of [`super::gemm_over`] without an added matrix. Collective.
///
/// Cost: no numbers are read; a few reductions of words over the ranks.
/// Source: docs/decisions/090-plans-from-descriptions.md.
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
    let [a, b] = gemm_operands::<C>(ops, a, b, c)?;
    let (contracted, rows, cols) = (a.rows(), a.cols(), b.cols());
    let steps = CallSteps::new(caller, team);
    steps.product(&[&a, &b], c, bits, |ctx, team, options| {
        plan_gemm(ctx, team, (rows, cols), contracted, bits.result, options)
    })
}

/// The plan of [`super::cholesky_over`], an upper bound for [`super::KeptFactor::new`]. Collective.
///
/// Cost: no numbers are read; a few reductions of words over the ranks.
/// Source: docs/decisions/090-plans-from-descriptions.md.
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
/// Cost: no numbers are read; a few reductions of words over the ranks.
/// Source: docs/decisions/090-plans-from-descriptions.md.
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
/// Cost: no numbers are read; a few reductions of words over the ranks.
/// Source: docs/decisions/090-plans-from-descriptions.md.
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

/// The bytes of this rank and those that a limit counts, step by step.
struct CallSteps<'a, C> {
    ranks: CallRanks<'a, C>,
    account: &'a CallAccount<'a>,
    team: &'a Team,
    /// Whether any rank has a limit, so that all go the ways of limited ones.
    limited: bool,
    /// Tallies of the call as requested, and of one whose ranks all have a limit.
    tallies: [Tally; 2],
    copied: u64,
    /// The largest number of bytes that a call under a limit takes of it, on all ranks of the node.
    node: u64,
}

impl<'a, C: Caller> CallSteps<'a, C> {
    fn new(caller: &'a C, team: &'a Team) -> CallSteps<'a, C> {
        let (ranks, account) = (CallRanks::new(caller, team), caller.account());
        let tallies = [account.limit_bytes().is_none(), false].map(|keeps| Tally::new(keeps, team.size()));
        CallSteps { ranks, account, team, limited: account.is_limited(), tallies, copied: 0, node: 0 }
    }

    fn travel(&mut self, messages: u64) {
        self.tallies.iter_mut().for_each(|tally| tally.travel(messages, 0));
    }

    /// Counts `bytes` bytes of the node in addition to the bytes that its ranks hold, which are counted as in the call.
    /// Collective over the node, whose ranks pass the same.
    fn node_takes(&mut self, bytes: u64) -> CallOutcome<(), C> {
        let mut held = [self.account.held_bytes()];
        self.ranks.node.all_reduce(Reduction::Sum, &mut held)?;
        self.node = self.node.max(held[0].saturating_add(bytes));
        Ok(())
    }

    /// [`CallSteps::node_takes`] of `own` bytes of each rank, and of `more` that a limit grants to all ranks of the
    /// node alike. Collective.
    fn each_takes(&mut self, own: u64, more: u64) -> CallOutcome<(), C> {
        let (mut sum, mut most) = ([own], [more]);
        self.ranks.node.all_reduce(Reduction::Sum, &mut sum)?;
        self.ranks.node.all_reduce(Reduction::Max, &mut most)?;
        // A share of the bytes held is rounded.
        let alike = most[0].saturating_add(1).saturating_mul(self.team.node().size() as u64);
        self.node_takes(sum[0].saturating_add(alike))
    }

    /// Takes memory of the limit.
    fn hold(&mut self, bytes: u64) -> CallOutcome<(), C> {
        self.ranks.hold(bytes)?;
        self.node_takes(0)?;
        self.tallies.iter_mut().for_each(|tally| tally.hold(bytes));
        Ok(())
    }

    /// Gives it back, or to the next call where this rank has no limit.
    fn drop_copy(&mut self, bytes: u64) {
        self.account.release_bytes(bytes);
        self.tallies.iter_mut().for_each(|tally| tally.drop_copy(bytes));
    }

    /// Bytes of a copy of this rank's part.
    fn copy(&mut self, operand: &PlacedMatrix<C::Array>, bits: u32) -> u64 {
        let bytes = if operand.local.is_in_place() { 0 } else { operand.part_bytes(bits) };
        self.copied += bytes;
        bytes
    }

    /// Bytes of a result in the form of its array, which the limit counts from the beginning and which is made last.
    fn result(&mut self, target: &PlacedMatrix<C::Array>, bits: u32) -> CallOutcome<u64, C> {
        let bytes = target.placed_bytes(bits);
        self.ranks.hold(bytes)?;
        self.node_takes(0)?;
        self.copied += bytes;
        Ok(bytes)
    }

    /// Stores a factor in these tiles, of `placed` bytes in the form of its array, where its matrix was.
    fn store_again(&mut self, a: &PlacedMatrix<C::Array>, map: &TileMap, placed: u64, bits: u32) {
        let messages = self.messages(&Distribution::of_tiles(map), &a.distribution, Some(Uplo::Lower), bits);
        let was_copied = !a.local.is_in_place();
        self.tallies.iter_mut().for_each(|tally| tally.store_again(messages, placed, was_copied));
    }

    /// Bytes of the messages in which a matrix goes from one distribution to another.
    fn messages(&self, from: &Distribution, to: &Distribution, triangle: Option<Uplo>, bits: u32) -> u64 {
        travel_bytes(self.team.world(), from, to, triangle, bits)
    }

    /// The bytes that a step takes on this rank in each tally, `copies` of them for copies that a limit counts on each
    /// rank as they are; the bytes that it takes of a limit are counted. Collective.
    fn planned(&mut self, copies: u64, plan: impl Fn(&Context, &Team) -> Result<u64>) -> CallOutcome<[u64; 2], C> {
        let ctx = self.ranks.context()?;
        let own = self.account.done(plan(&ctx, self.team))?;
        let plenty = || plan(&ctx.with_memory_bytes(Some(PLENTY)), self.team);
        let within = if self.limited { own } else { self.account.done(plenty())? };
        self.each_takes(copies, within.saturating_sub(copies))?;
        Ok([own, within])
    }

    /// Takes an operand into tiles; their bytes.
    fn take(&mut self, operand: &PlacedMatrix<C::Array>, bits: u32, map: TileMap) -> CallOutcome<u64, C> {
        let copy = self.copy(operand, bits);
        self.hold(copy)?;
        let taken = DistMatrix::bytes_for(&map, self.team.rank(), bits);
        self.hold(taken)?;
        self.travel(self.messages(&operand.distribution, &Distribution::of_tiles(&map), map.triangle, bits));
        self.drop_copy(copy);
        Ok(taken)
    }

    /// A factorisation of `a` in its lower triangle or in both, up to where its factor is held and the matrix has gone;
    /// the tiles of the factor.
    fn factor(&mut self, uplo: Option<Uplo>, a: &PlacedMatrix<C::Array>, bits: u32) -> CallOutcome<TileMap, C> {
        let (order, account, team) = (a.order::<C::Failure>()?, self.account, self.team);
        let options = DistCholeskyOptions::new().accuracy(account.accuracy());
        let map = account.done(cholesky_tiles(&*self.ranks.context()?, team, order, bits, &options))?;
        let options = options.tile_rows(map.tile_size).grid(map.grid);
        // Both triangles are taken in whole, and compared.
        let read = TileMap { triangle: uplo.and(map.triangle), ..map };
        let taken = self.take(a, bits, read)?;
        let planned = self.planned(0, |ctx, team| plan_cholesky(ctx, team, (&read, bits), bits, &options))?;
        account.release_bytes(taken);
        let made = DistMatrix::bytes_for(&map, team.rank(), bits);
        self.ranks.hold(made)?;
        self.node_takes(0)?;
        for (tally, planned) in self.tallies.iter_mut().zip(planned) {
            tally.factor(planned, taken, made);
        }
        Ok(map)
    }

    /// The right-hand sides, and a solve for them: `placed` is the bytes of its result in the form of its array,
    /// `copies` those of its copies of the triangle.
    fn right_sides(
        &mut self,
        b: &PlacedMatrix<C::Array>,
        placed: u64,
        copies: u64,
        bits: u32,
        plan: impl Fn(&Context, &Team) -> Result<u64>,
    ) -> CallOutcome<(), C> {
        let copy = self.copy(b, bits);
        self.hold(copy)?;
        // The copy makes room for the result, which the limit counts already.
        self.account.release_bytes(copy);
        self.tallies.iter_mut().for_each(|tally| tally.release(copy));
        let planned = self.planned(copies, plan)?;
        let more = copy.max(placed) + b.more_messages(self.team.world(), bits);
        for (tally, planned) in self.tallies.iter_mut().zip(planned) {
            tally.at_most(planned + more);
        }
        Ok(())
    }

    /// A product of operands with the contracted index first.
    fn product(
        mut self,
        operands: &[&PlacedMatrix<C::Array>],
        c: &PlacedMatrix<C::Array>,
        bits: PlannedBits,
        plan: impl FnOnce(&Context, &Team, &ProductPlanOptions) -> Result<Plan>,
    ) -> CallOutcome<CallPlan, C> {
        let placed = self.result(c, bits.result)?;
        let distributions = operands.iter().map(|operand| &operand.distribution).collect::<Vec<_>>();
        let to = contracted_rows(&distributions, self.team.size());
        for operand in operands {
            let copy = self.copy(operand, bits.operand);
            self.hold(copy)?;
            let rows = operand.distribution.with_whole_rows(0);
            if rows.is_some() && rows == to.with_whole_rows(0) {
                continue;
            }
            let moved = Matrix::bytes_for(to.local_shape(self.team.rank()).0, operand.cols(), bits.operand);
            self.copied += moved;
            self.hold(moved)?;
            let to = Distribution { cols: operand.cols(), ..to.clone() };
            self.travel(self.messages(&operand.distribution, &to, None, bits.operand));
            self.drop_copy(copy);
        }
        let options = ProductPlanOptions::new().accuracy(self.account.accuracy());
        let planned = plan(&self.least_context()?, self.team, &options);
        // No rank waits for another in it, so that one which is refused must not leave the others.
        let planned = together(self.ranks.world, self.account.done(planned).map_err(C::Failure::from))?;
        let bytes = node_bytes(&planned, self.team);
        self.node_takes(bytes)?;
        // Windows are the node's; each of its ranks has an equal share.
        let (rows, cols) = (c.rows(), c.cols());
        let fallback = || (triangle_tiles(self.team, rows).tile_size, RankGrid::for_ranks(self.team.size()));
        let (tile_size, grid) = planned.team.as_ref().map_or_else(fallback, |of| {
            let (rows, cols) = of.grid;
            (of.tile_size, RankGrid { rows, cols })
        });
        let triangle = if operands.len() == 1 { Some(Uplo::Lower) } else { None };
        let map = TileMap { rows, cols, tile_size, grid, triangle };
        let messages = result_messages(self.team.world(), &map, &c.distribution, bits.result);
        let share = bytes.div_ceil(self.team.node().size() as u64);
        self.tallies.iter_mut().for_each(|tally| tally.travel(messages, share + placed));
        self.plan()
    }

    /// The context with the least that a limit leaves on any rank, where there is one. Collective.
    fn least_context(&self) -> CallOutcome<Context, C> {
        let ctx = self.ranks.context()?.into_owned();
        let mut least = [ctx.memory_bytes().unwrap_or(u64::MAX)];
        self.ranks.world.all_reduce(Reduction::Min, &mut least)?;
        Ok(if self.limited { ctx.with_memory_bytes(Some(least[0])) } else { ctx })
    }

    /// The plan of all steps. Collective.
    fn plan(self) -> CallOutcome<CallPlan, C> {
        let [own, limited] = self.tallies.map(|tally| tally.most());
        let mut sums = [own, limited];
        self.ranks.node.all_reduce(Reduction::Sum, &mut sums)?;
        // No limit counts the memory that processes take in addition.
        let counted = self.node.saturating_add(process_bytes(self.team.size()) * self.team.node().size() as u64);
        let node_bytes = sums[0].max(sums[1]).max(counted);
        Ok(CallPlan { copied_bytes: self.copied, rank_bytes: own, node_bytes })
    }
}

/// Bytes of this rank's node in a plan that depends on nodes only through their rows and ranks.
fn node_bytes(plan: &Plan, team: &Team) -> u64 {
    let (layout, of_nodes) = (team.layout(), plan.team.as_ref().map_or(&[][..], |of| &of.per_node));
    let ranks = &layout.nodes[layout.node_of[team.rank()]];
    let rows = ranks.iter().map(|&rank| even_share(plan.contracted, team.size(), rank).len()).sum::<usize>();
    let alike = of_nodes.iter().filter(|node| node.ranks == ranks.len() && node.rows == rows);
    let largest = of_nodes.iter().map(|node| node.planned_bytes).max();
    match alike.map(|node| node.planned_bytes).max() {
        Some(bytes) if largest == Some(plan.planned_bytes) => bytes,
        // The steps before the product take the most.
        _ => plan.planned_bytes,
    }
}
