//! One rank's part of a product: convert own rows, multiply own jobs, add up over nodes, reconstruct own tiles.
//!
//! All ranks of a node go through the same phases; each begins with a fence of the node, at which an error of one rank
//! becomes that of all. Nodes meet only where residues are exchanged, once for each pair of bands.

use crate::comm::window::{Level, Partition, Run};
use crate::comm::{Fence, Transport, agree};
use crate::context::Context;
use crate::drive::Meter;
use crate::error::Result;
use crate::kernels::PlaneEngine;
use crate::math::bound::range_check_bits;
use crate::matrix::{MatrixView, Uplo};
use crate::ops::distributed::matrix::DistMatrix;
use crate::ops::distributed::team::{NodeLayout, Windows};
use crate::ops::product::combine::Combination;
use crate::ops::product::convert::{CONVERT_UNITS, Conversion, Part};
use crate::ops::product::multiply::{Multiplication, Task};
use crate::ops::product::planes::Space;
use crate::ops::product::problem::Bits;
use crate::ops::product::ranks::exchange::Exchange;
use crate::ops::product::ranks::plan::PlannedCluster;
use crate::ops::product::ranks::report::{PhaseClock, RankPhase};
use crate::ops::product::ranks::tiles::tile_segments;
use crate::ops::product::recover::{RECOVER_UNITS, Recovery};
use crate::ops::product::segments::Region;
use crate::plan::{BLOCK, BLOCK_WORDS, BandPair, JobList, NodeShape, band_pairs, pieces, plan_jobs, rank_chunk};
use std::collections::VecDeque;
use std::ops::Range;

/// The rows of one operand that a rank holds, as blocks one above the other, and the shifts of its columns.
#[derive(Clone, Copy)]
pub(crate) struct RankOperand<'a> {
    pub blocks: &'a [MatrixView<'a>],
    pub shifts: &'a [i64],
}

/// One rank's part of a product, ready to run.
pub(crate) struct RankRun<'a> {
    pub ctx: &'a Context,
    pub world: &'a dyn Transport,
    pub node: &'a dyn Transport,
    pub layout: &'a NodeLayout,
    /// The ranks of this node.
    pub shape: &'a NodeShape,
    pub engine: &'a dyn PlaneEngine,
    pub planned: &'a PlannedCluster,
    pub left: RankOperand<'a>,
    /// `None` for SYRK.
    pub right: Option<RankOperand<'a>>,
    pub uplo: Uplo,
    pub bits: Bits,
    pub combination: Combination<'a>,
}

/// One batch of primes and one chunk of rows.
#[derive(Clone, PartialEq, Eq)]
struct Step {
    primes: Range<usize>,
    chunk: usize,
}

/// What changes while a rank runs.
pub(crate) struct RankState<'s, 'w> {
    pub windows: &'s mut Windows,
    pub spaces: Vec<Space<'w>>,
    pub clock: &'s mut PhaseClock,
}

impl<'a> RankRun<'a> {
    fn rank(&self) -> usize {
        self.node.rank()
    }

    fn right(&self) -> RankOperand<'a> {
        self.right.unwrap_or(self.left)
    }

    /// Fills this rank's tiles of `result`. Collective.
    ///
    /// # Errors
    /// Those of [`super::syrk`], the same on all ranks.
    pub fn run(&self, state: &mut RankState<'_, '_>, result: &mut DistMatrix) -> Result<()> {
        let panels = [self.left, self.right()].map(|operand| operand.shifts.len().div_ceil(BLOCK));
        let pairs = || band_pairs((panels[0], panels[1]), self.right.is_none(), self.planned.cut.band_panels);
        let meter = Meter::new(self.ctx, self.total_units(pairs()));
        let mut held = Held::default();
        for pair in pairs() {
            let done = self.products(&pair, &mut held, state, &meter);
            self.meet(done, state)?;
            let done = self.results(&pair, state, result, &meter);
            self.meet(done, state)?;
        }
        Ok(())
    }

    /// Waits for all ranks of all nodes and agrees with them.
    fn meet(&self, outcome: Result<()>, state: &mut RankState<'_, '_>) -> Result<()> {
        let outcome = self.layout.in_world(self.world.rank(), self.node.size(), outcome);
        state.clock.time(RankPhase::Wait, || agree(self.world, outcome))
    }

    /// All batches of primes, and within each all chunks of rows.
    fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let (primes, batch, chunks) = (self.engine.moduli().len(), self.planned.cut.batch_primes, self.planned.chunks);
        pieces(primes, batch)
            .flat_map(move |primes| (0..chunks).map(move |chunk| Step { primes: primes.clone(), chunk }))
    }

    /// The planes of one pair of bands, from the rows of this node.
    ///
    /// An error between two fences travels with the next one, so that all ranks of the node leave together.
    fn products(
        &self,
        pair: &BandPair,
        held: &mut Held,
        state: &mut RankState<'_, '_>,
        meter: &Meter<'_>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for step in self.steps() {
            let wanted = Some((pair.left.clone(), step.clone()));
            if held.left != wanted {
                outcome = self.convert(self.left, (pair.left.clone(), 0), &step, state, (meter, outcome))?;
                held.left = wanted;
            }
            let wanted = Some((pair.right.clone(), step.clone()));
            if !pair.grid.triangle && held.right != wanted {
                let slot = (pair.right.clone(), self.planned.slot_panels.0);
                outcome = self.convert(self.right(), slot, &step, state, (meter, outcome))?;
                held.right = wanted;
            }
            outcome = self.multiply(pair, &step, state, (meter, outcome))?;
        }
        outcome
    }

    /// Words of a panel of the chunk, and of one operand plane in the window.
    fn operand_words(&self, chunk: usize) -> (usize, usize) {
        let panel = self.engine.panel_words(self.shape.chunk_rows(self.planned.chunks, chunk));
        let (left, right) = self.planned.slot_panels;
        (panel, (left + right) * panel)
    }

    /// Which rank writes which words of the panels from `slot` on.
    fn operand_partition(&self, (panels, slot): (usize, usize), step: &Step) -> Partition {
        let starts = self.shape.chunk_starts(self.planned.chunks, step.chunk);
        let ranks = self.shape.ranks();
        let (panel_words, plane_words) = self.operand_words(step.chunk);
        let of_rank = |rank: usize| self.engine.row_runs(starts[ranks], starts[rank]..starts[rank + 1]);
        let mut runs = Vec::new();
        for index in 0..of_rank(0).count {
            for rank in 0..ranks {
                let of = of_rank(rank);
                let first = of.first + index * of.stride;
                runs.push(Run { words: first..first + of.words, rank });
            }
        }
        let outer = Level { count: step.primes.len(), stride: plane_words };
        let inner = Level { count: panels, stride: panel_words };
        Partition::new(ranks, outer, inner, runs).at(slot * panel_words)
    }

    /// Writes the residues of this rank's rows. The outer error is the node's, the inner one this rank's own.
    fn convert(
        &self,
        operand: RankOperand<'_>,
        (panels, slot): (Range<usize>, usize),
        step: &Step,
        state: &mut RankState<'_, '_>,
        (meter, outcome): (&Meter<'_>, Result<()>),
    ) -> Result<Result<()>> {
        let partition = self.operand_partition((panels.len(), slot), step);
        let windows = &mut *state.windows;
        let fence = Fence::new(self.node);
        let shares = state.clock.time(RankPhase::Wait, || windows.operands.write(&fence, outcome, &partition))?;
        let parts = chunk_parts(operand.blocks, self.shape.rows[self.rank()], self.planned.chunks, step.chunk);
        if parts.is_empty() {
            return Ok(Ok(()));
        }
        let conversion = Conversion {
            engine: self.engine,
            parts: &parts,
            shifts: operand.shifts,
            panels,
            primes: step.primes.clone(),
            runs: partition.runs_of(self.rank()).len(),
        };
        let spaces = &mut state.spaces;
        let run = || conversion.run(shares.walks(), spaces, meter);
        Ok(state.clock.time(RankPhase::ToResidues, || self.ctx.install(run)))
    }

    /// The jobs of a batch on `blocks` blocks, for all workers of the node.
    fn jobs(&self, primes: usize, blocks: usize) -> JobList {
        plan_jobs(primes, blocks, self.shape.workers())
    }

    /// Which rank writes which words of the product window.
    fn product_partition(&self, list: &JobList, first_prime: usize, plane_words: usize) -> Partition {
        let rank_of = (0..self.shape.workers()).map(|worker| self.shape.rank_of(worker)).collect::<Vec<_>>();
        let runs = list.jobs.iter().zip(&list.assignment.worker).map(|(job, &worker)| {
            let plane = (first_prime + job.prime) * plane_words;
            let words = plane + job.blocks.start * BLOCK_WORDS..plane + job.blocks.end * BLOCK_WORDS;
            Run { words, rank: rank_of[worker] }
        });
        Partition::new(self.shape.ranks(), Level::ONCE, Level::ONCE, runs.collect())
    }

    /// Runs this rank's jobs. The outer error is the node's, the inner one this rank's own.
    fn multiply(
        &self,
        pair: &BandPair,
        step: &Step,
        state: &mut RankState<'_, '_>,
        (meter, outcome): (&Meter<'_>, Result<()>),
    ) -> Result<Result<()>> {
        let list = self.jobs(step.primes.len(), pair.grid.len());
        let partition = self.product_partition(&list, step.primes.start, pair.grid.words());
        let Windows { operands, products } = &mut *state.windows;
        let fence = Fence::new(self.node);
        let (operands, shares) =
            state.clock.time(RankPhase::Wait, || products.write_from(operands, &fence, outcome, &partition))?;
        let own = self.shape.workers_of(self.rank());
        let mut queues = own.clone().map(|_| VecDeque::new()).collect::<Vec<_>>();
        let jobs = list.jobs.into_iter().zip(list.assignment.worker).filter(|(_, worker)| own.contains(worker));
        for ((job, worker), words) in jobs.zip(shares.all()) {
            queues[worker - own.start].push_back(Task { job, words });
        }
        let (panel, plane_words) = self.operand_words(step.chunk);
        let left = 0..pair.left.len() * panel;
        let right = self.planned.slot_panels.0 * panel..(self.planned.slot_panels.0 + pair.right.len()) * panel;
        let multiplication = Multiplication {
            engine: self.engine,
            primes: step.primes.clone(),
            grid: pair.grid,
            rows: self.shape.chunk_rows(self.planned.chunks, step.chunk),
            operands,
            plane_words,
            right: if pair.grid.triangle { left.clone() } else { right },
            left,
            accumulate: step.chunk > 0,
        };
        let spaces = &mut state.spaces;
        let run = || multiplication.run(queues, spaces, meter);
        Ok(state.clock.time(RankPhase::Product, || self.ctx.install(run)))
    }

    /// Adds the planes of all nodes and reconstructs this rank's tiles.
    fn results(
        &self,
        pair: &BandPair,
        state: &mut RankState<'_, '_>,
        result: &mut DistMatrix,
        meter: &Meter<'_>,
    ) -> Result<()> {
        let region =
            Region { grid: pair.grid, first_left: pair.left.start, first_right: pair.right.start, uplo: self.uplo };
        let fence = Fence::new(self.node);
        let mut outcome = Ok(());
        if self.layout.nodes.len() > 1 {
            let exchange = Exchange::new(self.world, self.layout, self.engine, result.map(), &region);
            let (products, clock) = (&mut state.windows.products, &mut *state.clock);
            let partition = exchange.partition();
            let shares = clock.time(RankPhase::Wait, || products.write(&fence, Ok(()), &partition))?;
            outcome = clock.time(RankPhase::Exchange, || exchange.run(shares));
        }
        let (products, clock) = (&mut state.windows.products, &mut *state.clock);
        let window = clock.time(RankPhase::Wait, || products.read(&fence, outcome))?;
        let recovery = Recovery {
            engine: self.engine,
            window,
            region,
            left_shifts: self.left.shifts,
            right_shifts: self.right().shifts,
            combination: self.combination,
            largest_bits: self.ctx.self_check().then(|| range_check_bits(self.bits.modulus)),
            precision_bits: self.bits.result,
            check: None,
        };
        let spaces = &mut state.spaces;
        let run = || recovery.run(tile_segments(region, result), spaces, meter).map(drop);
        clock.time(RankPhase::Reconstruct, || self.ctx.install(run))
    }

    /// Units of work of this rank: its own rows to convert, its share of the node's jobs and of the result.
    fn total_units(&self, pairs: impl Iterator<Item = BandPair>) -> u64 {
        let (own_rows, node_rows) = (self.shape.rows[self.rank()] as u64, self.shape.total_rows() as u64);
        let primes = self.engine.moduli().len() as u64;
        let threads = self.shape.threads[self.rank()] as u64;
        let shares = (self.shape.workers() as u64).max(1);
        let mut units = 0;
        for pair in pairs {
            let panels = pair.left.len() + if pair.grid.triangle { 0 } else { pair.right.len() };
            let blocks = pair.grid.len() as u64;
            units += CONVERT_UNITS * panels as u64 * own_rows * primes;
            units += blocks * primes * node_rows * threads / shares;
            units += blocks * primes * RECOVER_UNITS * primes / self.world.size() as u64;
        }
        units
    }
}

/// What the slots of the operand window hold: their panels and the step they were made for.
#[derive(Default)]
struct Held {
    left: Option<(Range<usize>, Step)>,
    right: Option<(Range<usize>, Step)>,
}

/// The rows of chunk `chunk` out of `chunks` among the `rows` rows of all `blocks`.
fn chunk_parts<'a>(blocks: &[MatrixView<'a>], rows: usize, chunks: usize, chunk: usize) -> Vec<Part<'a>> {
    let wanted = rank_chunk(rows, chunks, chunk);
    let mut parts = Vec::new();
    let mut first = 0;
    for &view in blocks {
        let last = first + view.rows();
        let (start, end) = (wanted.start.clamp(first, last), wanted.end.clamp(first, last));
        if start < end {
            parts.push(Part { view, rows: start - first..end - first });
        }
        first = last;
    }
    parts
}
