//! Products on ranks whose contexts have devices: each rank multiplies its own rows on its own devices, as one process
//! does, and the owner of an entry adds up the parts of all ranks.
//!
//! A part is exact: integers times powers of two that are the same on all ranks, at a precision that holds every sum of
//! parts (no sum of some rows exceeds the bound of all). So the order of the ranks cannot change a bit, and an entry is
//! rounded once, by its owner. Ranks may have devices of different kinds and families.

use crate::comm::{Reduction, Transport, agree, agreed};
use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{Matrix, Op};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::place::{Place, pack, trade, unpack};
use crate::ops::distribution::team::Ranks;
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::clock::{PhaseClock, RankPhase};
use crate::ops::product::combine::{Addend, Combination, Place as Entry};
use crate::ops::product::device::{CutCounts, DevicePlan, DeviceReport, DeviceRun};
use crate::ops::product::plan::{Plan, TeamPlan};
use crate::ops::product::problem::{Bits, OperandRows, Problem};
use crate::ops::product::size::ProductSize;
use crate::plan::PlanBytes;
use crate::tile::{TileId, TileMap};

/// A product of which each rank has some rows.
pub(super) struct RankProduct<'a> {
    pub operation: &'static str,
    pub left: OperandRows<'a>,
    /// `None` for SYRK.
    pub right: Option<OperandRows<'a>>,
    pub size: ProductSize,
    /// Bit counts of the product.
    pub bits: Bits,
    /// Tiles of the result.
    pub map: TileMap,
}

impl<'a> RankProduct<'a> {
    /// Bit counts of a part: it holds the integers of the product.
    fn part_bits(&self) -> Bits {
        Bits { result: self.bits.modulus, ..self.bits }
    }

    /// The products of the blocks that have rows.
    fn problems(&self) -> Vec<Problem<'a>> {
        let precision_bits = self.bits.result;
        let blocks = (0..self.left.blocks.len()).filter(|&at| self.left.blocks[at].rows() > 0);
        let problem = |at: usize| match self.right {
            None => {
                let uplo = self.map.triangle.unwrap_or_default();
                Problem { uplo, ..Problem::syrk(self.left.blocks[at], Op::NoTranspose, precision_bits) }
            }
            Some(right) => {
                let operands = [(self.left.blocks[at], Op::Transpose), (right.blocks[at], Op::NoTranspose)];
                Problem::gemm(operands[0], operands[1], precision_bits)
            }
        };
        blocks.map(problem).collect()
    }

    /// The sum over all ranks, in this rank's tiles, and what its devices did. Collective.
    ///
    /// # Errors
    /// Those of [`crate::syrk_with`] on devices, on all ranks; [`Error::MemoryLimit`] with what a node needs.
    pub fn compute(
        &self,
        (ctx, world): (&Context, &dyn Transport),
        planned_bytes: u64,
        clock: &mut PhaseClock,
    ) -> Result<(DistMatrix, Vec<DeviceReport>)> {
        let part = clock.time(RankPhase::Product, || self.part(ctx, planned_bytes));
        let (part, reports) = agreed(world, part)?;
        let sum = clock.time(RankPhase::Exchange, || self.sum(world, &part))?;
        Ok((sum, reports))
    }

    /// The product of this rank's rows.
    fn part(&self, ctx: &Context, planned_bytes: u64) -> Result<(Matrix, Vec<DeviceReport>)> {
        let bits = self.part_bits();
        let zeros = || Matrix::zeros(self.size.rows, self.size.cols, bits.result);
        let (mut part, mut reports) = (zeros()?, Vec::new());
        let mut workspace = ctx.workspace();
        workspace.trim(ctx.memory(), &WorkspaceNeeds { planned_bytes, ..WorkspaceNeeds::default() });
        workspace.left_shifts.clear();
        workspace.left_shifts.extend(self.left.shifts);
        workspace.right_shifts.clear();
        workspace.right_shifts.extend(self.right.map_or(&[][..], |right| right.shifts));
        for (index, problem) in self.problems().iter().enumerate() {
            let run = DeviceRun { ctx, problem, bits };
            let plan = run.plan()?;
            if index == 0 {
                reports = run.run(plan, &workspace, part.view_mut())?.1;
                continue;
            }
            let mut other = zeros()?;
            reports.extend(run.run(plan, &workspace, other.view_mut())?.1);
            add_exactly(&mut part, &other)?;
        }
        Ok((part, reports))
    }

    /// This rank's tiles of the sum of all ranks' parts. Collective.
    fn sum(&self, world: &dyn Transport, part: &Matrix) -> Result<DistMatrix> {
        let (rank, size, map) = (world.rank(), world.size(), &self.map);
        let mut own = agreed(world, DistMatrix::zeros(*map, rank, part.precision_bits()))?;
        let words = map.entries_of(rank) * (1 + part.limbs_per_element());
        for step in 0..size {
            let (to, from) = ((rank + step) % size, (rank + size - step) % size);
            let pack_tile = |mut message: Vec<u64>, id: TileId| {
                pack(part.view(), &Place::of_tile(map, id), &mut message).map(|()| message)
            };
            let message = agreed(world, map.tiles_of(to).try_fold(Vec::new(), pack_tile))?;
            let received = match step {
                0 => message,
                _ => {
                    let mut received = vec![0; words];
                    trade(world, (to, &message), (from, &mut received))?;
                    received
                }
            };
            agree(world, add_tiles(&mut own, &received))?;
        }
        Ok(own)
    }

    /// How the product will run on ranks with so many `threads` together. Collective.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] where a node needs more than the `node_bytes` that it may take, [`Error::DeviceLimit`];
    /// on all ranks.
    pub fn plan(&self, ctx: &Context, ranks: Ranks<'_>, node_bytes: u64, threads: usize) -> Result<Plan> {
        let plan_of = |problem: &Problem<'_>| DeviceRun { ctx, problem, bits: self.part_bits() }.plan();
        let plans = agreed(ranks.world, self.problems().iter().map(plan_of).collect::<Result<Vec<_>>>())?;
        let bytes = self.bytes(ranks.world, &plans);
        let mut node = [bytes.total()];
        ranks.node.all_reduce(Reduction::Sum, &mut node)?;
        let refusal = Error::MemoryLimit { limit_bytes: node_bytes, minimum_bytes: node[0] };
        agree(ranks.world, if node[0] <= node_bytes { Ok(()) } else { Err(refusal) })?;
        ranks.world.all_reduce(Reduction::Max, &mut node)?;
        let first = plans.first();
        let counts = first.map_or(CutCounts { batches: 1, bands: 1, chunks: 1 }, DevicePlan::cuts);
        Ok(Plan {
            operation: self.operation,
            contracted: self.size.contracted,
            rows: self.size.rows,
            cols: self.size.cols,
            precision_bits: self.bits.result,
            working_bits: self.bits.working,
            kernel: first.map_or(ctx.kernel().name(), DevicePlan::kernel),
            threads,
            primes: first.map_or(0, DevicePlan::moduli),
            batches: counts.batches,
            bands: counts.bands,
            chunks: counts.chunks,
            bytes,
            planned_bytes: node[0],
            load_max_over_mean: 1.0,
            team: Some(self.team(ranks)),
            devices: first.map_or(Vec::new(), DevicePlan::describe),
            ..Plan::default()
        })
    }

    /// Host bytes of this rank: its tiles of the result and of the sum, its part, two messages.
    fn bytes(&self, world: &dyn Transport, plans: &[DevicePlan]) -> PlanBytes {
        let (rank, part_bits) = (world.rank(), self.part_bits().result);
        let tiles = |precision_bits: u32| DistMatrix::bytes_for(&self.map, rank, precision_bits);
        let part = Matrix::bytes_for(self.size.rows, self.size.cols, part_bits);
        let parts = part.saturating_mul(plans.len().clamp(1, 2) as u64);
        let width = 8 * (1 + limbs_for(part_bits));
        let largest = (0..world.size()).map(|rank| self.map.entries_of(rank)).max().unwrap_or(0);
        PlanBytes {
            result: tiles(self.bits.result),
            product_window: parts.saturating_add(tiles(part_bits)),
            scratch: plans.iter().map(|plan| plan.pinned_bytes).max().unwrap_or(0),
            lists: (2 * largest * width + 2 * 8 * (self.size.rows + self.size.cols)) as u64,
            ..PlanBytes::default()
        }
    }

    fn team(&self, ranks: Ranks<'_>) -> TeamPlan {
        let nodes = &ranks.layout.nodes;
        let entries = |ranks: &[usize]| ranks.iter().map(|&rank| self.map.entries_of(rank)).sum::<usize>();
        let all = nodes.iter().map(|node| entries(node)).sum::<usize>();
        let sent = nodes.iter().map(|node| node.len() * (all - entries(node))).max().unwrap_or(0);
        TeamPlan {
            nodes: nodes.len(),
            ranks: ranks.world.size(),
            grid: (self.map.grid.rows, self.map.grid.cols),
            tile_size: self.map.tile_size,
            per_node: Vec::new(),
            exchange_parts: 1,
            sent_bytes: (sent * 8 * (1 + limbs_for(self.part_bits().result))) as u64,
        }
    }
}

/// Adds the tiles in a message, one after the other, to those of `own`.
fn add_tiles(own: &mut DistMatrix, message: &[u64]) -> Result<()> {
    let mut at = 0;
    for (_, tile) in own.tiles_mut() {
        let mut other = Matrix::zeros(tile.rows(), tile.cols(), tile.precision_bits())?;
        let whole = Place { rows: 0..tile.rows(), cols: 0..tile.cols() };
        let end = at + whole.entries() * (1 + tile.limbs_per_element());
        unpack(&message[at..end], &whole, &mut other);
        add_exactly(tile, &other)?;
        at = end;
    }
    Ok(())
}

/// Adds `other` to `sum`, of the same shape, whose precision holds the result.
fn add_exactly(sum: &mut Matrix, other: &Matrix) -> Result<()> {
    let combination = Combination::new(None, None, Some(Addend::Whole(other.view())));
    let (rows, width, precision_bits) = (sum.rows(), sum.limbs_per_element(), sum.precision_bits());
    let (heads, limbs) = sum.parts_mut();
    let mut before = vec![0; width];
    for (at, (head, limbs)) in heads.iter_mut().zip(limbs.chunks_exact_mut(width)).enumerate() {
        before.copy_from_slice(limbs);
        let value = FloatRef { head: Head(*head), limbs: &before };
        let entry = Entry { row: at % rows, col: at / rows };
        *head = combination.finish(ExactEntry::from(value), entry, precision_bits, limbs)?.0;
    }
    Ok(())
}
