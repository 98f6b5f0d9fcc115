//! The steps of a call over ranks, and the bytes of a rank and of what a limit counts at every one of them.

use super::matrix::DistOperand;
use super::{Ranks, together};
use crate::array::Array;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_mpi_plan;
use std::collections::HashMap;
use sunzi::comm::Reduction;
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, Distribution, Team, TileMap, cholesky_tiles, contracted_rows, even_share,
    plan_cholesky, redistribution_bytes,
};
use sunzi::{Context, Matrix, Plan, ProductPlanOptions, Uplo};

/// Where a plan goes.
pub(super) struct Target(*mut sunzi_mpi_plan);

/// Refuses null.
pub(super) fn target(plan: *mut sunzi_mpi_plan) -> Outcome<Target> {
    if plan.is_null() { Err(Failure::null("plan")) } else { Ok(Target(plan)) }
}

/// Whether a matrix is read where it lies.
pub(super) fn in_place(operand: &DistOperand) -> bool {
    matches!(&operand.local.array, Array::Limbs(_))
}

/// Bytes of the part of a matrix that is this rank's.
fn part_bytes(operand: &DistOperand, bits: u32) -> u64 {
    Matrix::bytes_for(operand.local.rows(), operand.local.cols(), bits)
}

/// A limit that is none, but for which calls go the ways of limited ones.
const PLENTY: u64 = u64::MAX >> 16;

/// The bytes of this rank, step by step.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Whether the context has no limit, and keeps copies and memory for the next call.
    keeps: bool,
    /// Bytes now, and what the context keeps of copies that have gone.
    now: u64,
    most: u64,
    /// Bytes that the context keeps of a factorisation under a limit, as far as that has room for them.
    kept: u64,
    most_with_kept: u64,
}

impl Tally {
    fn at_most(&mut self, more: u64) {
        let all = self.now.saturating_add(more);
        self.most = self.most.max(all);
        self.most_with_kept = self.most_with_kept.max(all.saturating_add(self.kept));
    }

    /// A copy goes, or to the next call.
    fn drop_copy(&mut self, bytes: u64) {
        self.now -= if self.keeps { 0 } else { bytes };
    }

    /// Memory of a step that the context keeps when it has gone.
    fn keep(&mut self, bytes: u64) {
        if self.keeps { self.now += bytes } else { self.kept = bytes }
    }
}

/// The bytes of this rank and those that a limit counts, step by step.
pub(super) struct Steps<'a> {
    pub(super) ranks: Ranks<'a>,
    call: &'a Call<'a>,
    team: &'a Team,
    /// Whether any rank has a limit, so that all go the ways of limited ones.
    limited: bool,
    /// Of the call as it is asked for, and of one whose ranks all have a limit.
    tallies: [Tally; 2],
    copied: u64,
    /// The most that a call under a limit takes of it, on all ranks of the node.
    node: u64,
}

impl<'a> Steps<'a> {
    pub(super) fn new(call: &'a Call<'a>, team: &'a Team) -> Steps<'a> {
        let (ranks, limited, keeps) = (Ranks::new(call, team), call.is_limited(), call.limit_bytes().is_none());
        let tallies = [Tally { keeps, ..Tally::default() }, Tally::default()];
        Steps { ranks, call, team, limited, tallies, copied: 0, node: 0 }
    }

    /// Whether this rank has no limit.
    fn keeps(&self) -> bool {
        self.tallies[0].keeps
    }

    fn at_most(&mut self, more: u64) {
        self.tallies.iter_mut().for_each(|tally| tally.at_most(more));
    }

    /// Counts so many bytes of the node beside what its ranks hold, which is counted as the call would. Collective over
    /// the node, whose ranks pass the same.
    fn node_takes(&mut self, bytes: u64) -> Outcome<()> {
        let mut held = [self.call.held_bytes()];
        self.ranks.node.all_reduce(Reduction::Sum, &mut held)?;
        self.node = self.node.max(held[0].saturating_add(bytes));
        Ok(())
    }

    /// [`Steps::node_takes`] of so many bytes of each rank, and of more that a limit grants to all ranks of the node
    /// alike. Collective.
    fn each_takes(&mut self, own: u64, more: u64) -> Outcome<()> {
        let (mut sum, mut most) = ([own], [more]);
        self.ranks.node.all_reduce(Reduction::Sum, &mut sum)?;
        self.ranks.node.all_reduce(Reduction::Max, &mut most)?;
        // A share of what is held is rounded.
        let alike = most[0].saturating_add(1).saturating_mul(self.team.node().size() as u64);
        self.node_takes(sum[0].saturating_add(alike))
    }

    /// Takes memory of the limit.
    fn hold(&mut self, bytes: u64) -> Outcome<()> {
        self.ranks.hold(bytes)?;
        self.node_takes(0)?;
        self.tallies.iter_mut().for_each(|tally| tally.now += bytes);
        self.at_most(0);
        Ok(())
    }

    /// Gives it back, or to the next call where this rank has no limit.
    fn drop_copy(&mut self, bytes: u64) {
        self.call.release_bytes(bytes);
        self.tallies.iter_mut().for_each(|tally| tally.drop_copy(bytes));
    }

    /// Bytes of a copy of this rank's part.
    fn copy(&mut self, operand: &DistOperand, bits: u32) -> u64 {
        let bytes = if in_place(operand) { 0 } else { part_bytes(operand, bits) };
        self.copied += bytes;
        bytes
    }

    /// Bytes of a result in the form of its array, which the limit counts from the beginning and which is made last.
    pub(super) fn result(&mut self, target: &DistOperand, bits: u32) -> Outcome<u64> {
        let bytes = match &target.local.array {
            Array::Limbs(array) if array.precision_bits() == bits && array.is_packed() => 0,
            _ => part_bytes(target, bits),
        };
        self.ranks.hold(bytes)?;
        self.node_takes(0)?;
        self.copied += bytes;
        Ok(bytes)
    }

    /// Stores a result of so many bytes that was copied before: what is kept of the copy makes room.
    pub(super) fn store_again(&mut self, target: &DistOperand, (placed, bits): (u64, u32)) {
        let messages = self.last_messages(target, bits);
        for tally in &mut self.tallies {
            tally.at_most(messages + if tally.keeps && !in_place(target) { 0 } else { placed });
        }
    }

    /// Bytes of the messages in which so many bytes of a matrix come or go.
    fn messages(&self, rows: usize, bits: u32, bytes: (u64, u64)) -> u64 {
        redistribution_bytes(self.team.size(), (rows, bits), bytes)
    }

    /// Bytes of the messages in which tiles become this rank's part: of a strip all may be in them.
    fn last_messages(&self, target: &DistOperand, bits: u32) -> u64 {
        let (rows, cols) = target.shape();
        let (all, part) = (Matrix::bytes_for(rows, cols, bits), part_bytes(target, bits));
        most_holders(&target.distribution) * self.messages(rows, bits, (all, 0)) + self.messages(rows, bits, (0, part))
    }

    /// Bytes of those in which a solution becomes this rank's part beyond what comes to one of evenly dealt parts, each
    /// entry to one rank, which the plan of the solve counts.
    fn more_messages(&self, target: &DistOperand, bits: u32) -> u64 {
        let (rows, cols) = target.shape();
        let all = Matrix::bytes_for(rows, cols, bits);
        let comes = |bytes| self.messages(rows, bits, (0, bytes));
        let share = comes(all.div_ceil(self.team.size() as u64));
        let others = most_holders(&target.distribution) - 1;
        others * self.messages(rows, bits, (all, 0)) + comes(part_bytes(target, bits)).saturating_sub(share)
    }

    /// What a step takes on this rank in each tally, so many bytes of it for copies that a limit counts on each rank as
    /// they are; what it takes of a limit is counted. Collective.
    fn planned(&mut self, copies: u64, plan: impl Fn(&Context, &Team) -> sunzi::Result<u64>) -> Outcome<[u64; 2]> {
        let ctx = self.ranks.context()?;
        let own = self.call.done(plan(&ctx, self.team))?;
        let plenty = || plan(&ctx.with_memory_bytes(Some(PLENTY)), self.team);
        let within = if self.limited { own } else { self.call.done(plenty())? };
        self.each_takes(copies, within.saturating_sub(copies))?;
        Ok([own, within])
    }

    /// Takes an operand into tiles; their bytes.
    pub(super) fn take(&mut self, operand: &DistOperand, bits: u32, map: TileMap) -> Outcome<u64> {
        let copy = self.copy(operand, bits);
        self.hold(copy)?;
        let taken = DistMatrix::bytes_for(&map, self.team.rank(), bits);
        self.hold(taken)?;
        let given = part_bytes(operand, bits);
        self.at_most(self.messages(operand.shape().0, bits, (given, given.max(taken))));
        self.drop_copy(copy);
        Ok(taken)
    }

    /// A factorisation of `a`, up to where its factor is held and the matrix has gone.
    pub(super) fn factor(&mut self, (uplo, a): (Option<Uplo>, &DistOperand), bits: u32) -> Outcome<()> {
        let (order, call, team) = (a.order()?, self.call, self.team);
        let options = DistCholeskyOptions::new().accuracy(call.accuracy());
        let map = call.done(cholesky_tiles(&*self.ranks.context()?, team, order, bits, &options))?;
        let options = options.tile_rows(map.tile_size).grid(map.grid);
        // Both triangles are taken in whole, and compared.
        let read = TileMap { triangle: uplo.and(map.triangle), ..map };
        let taken = self.take(a, bits, read)?;
        let planned = self.planned(0, |ctx, team| plan_cholesky(ctx, team, (&read, bits), bits, &options))?;
        for (tally, planned) in self.tallies.iter_mut().zip(planned) {
            tally.at_most(planned);
            tally.now -= taken;
        }
        call.release_bytes(taken);
        let factor = DistMatrix::bytes_for(&map, team.rank(), bits);
        self.hold(factor)?;
        for (tally, planned) in self.tallies.iter_mut().zip(planned) {
            tally.keep(planned.saturating_sub(factor));
        }
        Ok(())
    }

    /// The right sides, and a solve for them whose result is so many bytes in the form of its array; of the triangle
    /// it copies so many.
    pub(super) fn right_sides(
        &mut self,
        (b, placed, copies): (&DistOperand, u64, u64),
        bits: u32,
        plan: impl Fn(&Context, &Team) -> sunzi::Result<u64>,
    ) -> Outcome<()> {
        let copy = self.copy(b, bits);
        self.hold(copy)?;
        // The copy makes room for the result, which the limit counts already.
        self.call.release_bytes(copy);
        self.tallies.iter_mut().for_each(|tally| tally.now -= copy);
        let planned = self.planned(copies, plan)?;
        let beside = copy.max(placed) + self.more_messages(b, bits);
        for (tally, planned) in self.tallies.iter_mut().zip(planned) {
            tally.at_most(planned + beside);
        }
        Ok(())
    }

    /// A product of operands with the contracted index first.
    ///
    /// # Safety
    /// The target can be written.
    pub(super) unsafe fn product(
        mut self,
        (operands, c): (&[&DistOperand], &DistOperand),
        [operand_bits, bits]: [u32; 2],
        target: Target,
        plan: impl FnOnce(&Context, &Team, &ProductPlanOptions) -> sunzi::Result<Plan>,
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
            let given = part_bytes(operand, operand_bits);
            self.at_most(self.messages(operand.shape().0, operand_bits, (given, moved)));
            self.drop_copy(copy);
        }
        let options = ProductPlanOptions::new().accuracy(self.call.accuracy());
        let planned = plan(&self.least_context()?, self.team, &options);
        // No rank waits for another in it, so that one which is refused must not leave the others.
        let planned = together(self.ranks.world, self.call.done(planned))?;
        let bytes = node_bytes(&planned, self.team);
        self.node_takes(bytes)?;
        // Windows are the node's; each of its ranks has an equal share.
        let last = placed + self.last_messages(c, bits);
        self.at_most(bytes.div_ceil(self.team.node().size() as u64) + last);
        // SAFETY: by contract.
        unsafe { self.tell(target) }
    }

    /// The context with the least that a limit leaves on any rank, where there is one. Collective.
    fn least_context(&self) -> Outcome<Context> {
        let ctx = self.ranks.context()?.into_owned();
        let mut least = [ctx.memory_bytes().unwrap_or(u64::MAX)];
        self.ranks.world.all_reduce(Reduction::Min, &mut least)?;
        Ok(if self.limited { ctx.with_memory_bytes(Some(least[0])) } else { ctx })
    }

    /// Fills a plan. Collective.
    ///
    /// # Safety
    /// The target can be written.
    pub(super) unsafe fn tell(self, Target(plan): Target) -> Outcome<()> {
        let limit = self.call.limit_bytes().unwrap_or(0);
        let [own, limited] = self.tallies;
        let mut sums = [own.most, limited.most, own.most_with_kept, u64::from(self.keeps())];
        self.ranks.node.all_reduce(Reduction::Sum, &mut sums)?;
        let [of_own, of_limited, with_kept, keeping] = sums;
        // What is kept under a limit has room in it; only ranks without one keep all.
        let with_kept = if keeping > 0 { with_kept } else { with_kept.min(limit) };
        let node_bytes = of_own.max(of_limited).max(with_kept).max(self.node);
        let rank_bytes = own.most.max(own.most_with_kept.min(limit / self.team.node().size() as u64));
        let told = sunzi_mpi_plan { copied_bytes: self.copied, rank_bytes, node_bytes };
        // SAFETY: it can be written by contract.
        unsafe { plan.write(told) };
        Ok(())
    }
}

/// The most ranks that have one entry of a matrix.
fn most_holders(distribution: &Distribution) -> u64 {
    let mut counts = HashMap::new();
    for numbers in (0..distribution.grid.size()).filter_map(|rank| distribution.numbers(rank)) {
        *counts.entry(numbers).or_insert(0) += 1;
    }
    counts.into_values().max().unwrap_or(1)
}

/// Bytes of this rank's node in a plan that knows of nodes by their rows and ranks.
fn node_bytes(plan: &Plan, team: &Team) -> u64 {
    let (layout, of_nodes) = (team.layout(), plan.team.as_ref().map_or(&[][..], |of| &of.per_node));
    let ranks = &layout.nodes[layout.node_of[team.rank()]];
    let rows = ranks.iter().map(|&rank| even_share(plan.contracted, team.size(), rank).len()).sum::<usize>();
    let alike = of_nodes.iter().filter(|node| node.ranks == ranks.len() && node.rows == rows);
    let largest = of_nodes.iter().map(|node| node.planned_bytes).max();
    match alike.map(|node| node.planned_bytes).max() {
        Some(bytes) if largest == Some(plan.planned_bytes) => bytes,
        // What comes before the product is the most.
        _ => plan.planned_bytes,
    }
}
