//! The runner of a product on residue planes, on one rank of a team: convert own rows, multiply own jobs, add up over
//! nodes, reconstruct own entries. One process is a team of one rank.
//!
//! For each pair of bands all batches of primes, and within each all chunks of rows. The product window holds all
//! primes of one pair of bands. The operand window holds one batch of primes of two bands and one chunk; its content is
//! remembered, so that a band that stays is not converted again.
//! All ranks of a node go through the same phases; each begins with a fence of the node, at which an error of one rank
//! becomes the error of all. Nodes meet only where residues are exchanged. A single rank on its node has no fence to
//! wait at, and its windows are plain memory.
//! Where nodes exchange residues, the products of a batch are formed part by part: the calling thread exchanges one
//! part while the workers multiply the next.

use crate::comm::Fence;
use crate::comm::window::{Level, NodeWindow, Partition, Run, TwoParts};
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::kernels::PlaneEngine;
use crate::math::bound::range_check_bits;
use crate::matrix::Uplo;
use crate::ops::product::clock::{PhaseClock, RankPhase};
use crate::ops::product::combine::Epilogue;
use crate::ops::product::convert::{CONVERT_UNITS, Conversion, MatrixRows};
use crate::ops::product::exchange::{Exchange, PlaneExchange};
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::multiply::{Multiplication, Task};
use crate::ops::product::problem::{Bits, FaultHook, OperandRows};
use crate::ops::product::recover::{RECOVER_UNITS, Recovery, RecoveryTime};
use crate::ops::product::schedule::{BandLoad, Cutting, HeldBands, ProductSchedule, ProductStep, Side, StepPart};
use crate::ops::product::segments::{Region, ResultEntries, SegmentIter};
use crate::ops::product::space::Space;
use crate::ops::product::streamed::StreamedOperands;
use crate::plan::rank_chunk;
use crate::plan::{BLOCK, BandPair, JobList, NodeShape, plan_jobs};
use crate::site::Site;
use crate::tile::TileMap;
use std::collections::VecDeque;
use std::ops::Range;

/// One rank's part of a product, ready to run.
pub(crate) struct ProductRun<'a> {
    pub site: Site<'a>,
    /// The ranks of this node.
    pub shape: &'a NodeShape,
    pub engine: &'a dyn PlaneEngine,
    pub cutting: Cutting,
    /// The order of the work.
    pub schedule: ProductSchedule,
    pub left: OperandRows<'a>,
    /// `None` for SYRK.
    pub right: Option<OperandRows<'a>>,
    /// The entries of both, where they come from files; the blocks of rows are then empty.
    pub streamed: Option<&'a StreamedOperands>,
    pub uplo: Uplo,
    pub bits: Bits,
    pub epilogue: Epilogue<'a>,
    /// The owners of the entries of the result, where there are several nodes.
    pub owners: Option<&'a TileMap>,
    pub fault: Option<&'a FaultHook<'a>>,
}

/// The state that changes while a rank runs: the windows of its node, and its own.
pub(crate) struct RunState<'s> {
    pub operands: NodeWindow<'s>,
    pub products: NodeWindow<'s>,
    pub spaces: Vec<Space<'s>>,
    pub clock: &'s mut PhaseClock,
}

/// The reason why the ranks of a node stop the products.
struct ProductFailure {
    error: Error,
    /// Whether the ranks of all nodes have it.
    is_known: bool,
}

impl From<Error> for ProductFailure {
    fn from(error: Error) -> ProductFailure {
        ProductFailure { error, is_known: false }
    }
}

/// Panels of one operand, and the panel of the operand window that holds the first of them.
struct PanelSlot<'a> {
    operand: OperandRows<'a>,
    panels: Range<usize>,
    first: usize,
}

impl<'a> ProductRun<'a> {
    fn rank(&self) -> usize {
        self.site.team.node().rank()
    }

    fn fence(&self) -> Fence<'a> {
        Fence::new(self.site.team.node())
    }

    fn right(&self) -> OperandRows<'a> {
        self.right.unwrap_or(self.left)
    }

    /// Fills this rank's entries of `result`. Collective.
    ///
    /// # Errors
    /// The errors of [`crate::syrk_with`], the same on all ranks.
    pub fn run(&self, state: &mut RunState<'_>, result: &mut impl ResultEntries) -> Result<RecoveryTime> {
        let check = (self.site.ctx.freivalds()).then(|| InnerCheck::new(self.site, self.left, self.right));
        let check = check.transpose()?;
        let meter = Meter::new(self.site.ctx, self.total_units());
        let (mut held, mut time) = (HeldBands::default(), RecoveryTime::default());
        for pair in self.schedule.pairs() {
            let region = self.region(&pair);
            let owners = self.owners.filter(|_| self.site.team.layout().nodes.len() > 1);
            let exchange = owners.map(|owners| Exchange::new(self.site.team, self.engine, owners, &region));
            let left = match self.products(&pair, &mut held, exchange.as_ref(), state, &meter) {
                Ok(left) => self.meet(Ok(()), state).map(|()| left),
                Err(ProductFailure { error, is_known: true }) => Err(error),
                Err(ProductFailure { error, .. }) => self.meet(Err(error), state).map(|()| 0..0),
            };
            let left = left?;
            let rest = exchange.as_ref().map(|exchange| exchange.of(left));
            let done = self.results(region, rest, state, result, &meter, check.as_ref());
            self.meet(done.map(|spent| time.add(spent)), state)?;
        }
        check.map_or(Ok(()), |check| check.finish(self.site.world()))?;
        Ok(time)
    }

    /// Waits for all ranks of all nodes and agrees with them.
    fn meet(&self, outcome: Result<()>, state: &mut RunState<'_>) -> Result<()> {
        state.clock.wait(|| self.site.agree(self.site.team.in_world(outcome)))
    }

    /// Runs `work` on this rank's workers.
    fn on_workers<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        if self.shape.threads[self.rank()] == 1 { work() } else { self.site.ctx.install(work) }
    }

    /// The part of the result that a pair of bands makes.
    fn region(&self, pair: &BandPair) -> Region {
        Region { grid: pair.grid, first_left: pair.left.start, first_right: pair.right.start, uplo: self.uplo }
    }

    /// The planes of one pair of bands, from the rows of this node; returns the planes that have not been exchanged
    /// yet. The others travelled while the next ones were multiplied.
    ///
    /// An error between two fences travels with the next one, so that all ranks of the node leave together, and with
    /// the next agreement of all nodes: before each exchange, or at the end.
    fn products(
        &self,
        pair: &BandPair,
        held: &mut HeldBands,
        exchange: Option<&Exchange<'_>>,
        state: &mut RunState<'_>,
        meter: &Meter<'_>,
    ) -> std::result::Result<Range<usize>, ProductFailure> {
        let (mut outcome, mut sent, mut finished) = (Ok(()), 0, 0);
        // A planted fault must take effect before residues are summed.
        let exchange = exchange.filter(|_| self.fault.is_none());
        for step in self.schedule.steps() {
            for load in held.loads(pair, &step) {
                outcome = self.convert(&load, state, meter, outcome)?;
            }
            let (parts, is_last) = self.schedule.parts(&step);
            for part in parts {
                let rest = exchange.filter(|_| sent < finished).map(|exchange| exchange.of(sent..finished));
                if rest.is_some() {
                    outcome =
                        self.meet(outcome, state).map(Ok).map_err(|error| ProductFailure { error, is_known: true })?;
                    sent = finished;
                }
                outcome = self.multiply(pair, &part, rest, state, meter, outcome)?;
                finished = if is_last { part.primes.end } else { finished };
            }
        }
        match self.fault {
            None => outcome?,
            Some(fault) => self.damage(fault, pair, state, outcome)?,
        }
        Ok(sent..self.engine.moduli().len())
    }

    /// Passes all planes of a pair of bands to `fault`, on the first rank of each node.
    fn damage(
        &self,
        fault: &FaultHook<'_>,
        pair: &BandPair,
        state: &mut RunState<'_>,
        outcome: Result<()>,
    ) -> Result<()> {
        let plane_words = self.engine.plane_words(&pair.grid);
        let all = Run { words: 0..self.engine.moduli().len() * plane_words, rank: 0 };
        let partition = Partition::new(self.shape.ranks(), Level::ONCE, Level::ONCE, vec![all]);
        let shares = state.products.write(&self.fence(), outcome, &partition)?;
        shares.into_iter().for_each(|words| fault(words, plane_words));
        Ok(())
    }

    /// Words of a panel of the chunk, and of one operand plane in the window.
    fn operand_words(&self, chunk: usize) -> (usize, usize) {
        let panel = self.engine.panel_words(self.shape.chunk_rows(self.cutting.chunks, chunk));
        let (left, right) = self.cutting.slot_panels;
        (panel, (left + right) * panel)
    }

    /// Which rank writes which words of a slot; `parts` are the rows of this rank.
    fn operand_partition(&self, slot: &PanelSlot<'_>, step: &ProductStep, parts: &[MatrixRows<'_>]) -> Partition {
        let ranks = self.shape.ranks();
        let (panel_words, plane_words) = self.operand_words(step.chunk);
        let mut runs = Vec::new();
        if ranks == 1 && parts.len() == 1 {
            // A kernel that is given all rows of a panel at once needs no runs of them.
            runs.push(Run { words: 0..panel_words, rank: 0 });
        } else {
            let starts = self.shape.chunk_starts(self.cutting.chunks, step.chunk);
            let of_rank = |rank: usize| self.engine.row_runs(starts[ranks], starts[rank]..starts[rank + 1]);
            for index in 0..of_rank(0).count {
                for rank in 0..ranks {
                    let of = of_rank(rank);
                    let first = of.first + index * of.stride;
                    runs.push(Run { words: first..first + of.words, rank });
                }
            }
        }
        let panels = Level { count: slot.panels.len(), stride: panel_words };
        let planes = Level { count: step.primes.len(), stride: plane_words };
        Partition::new(ranks, panels, planes, runs).at(slot.first * panel_words)
    }

    /// The place of a band in the operand window.
    fn slot(&self, load: &BandLoad) -> PanelSlot<'a> {
        let (operand, first) = match load.side {
            Side::Left => (self.left, 0),
            Side::Right => (self.right(), self.cutting.slot_panels.0),
        };
        PanelSlot { operand, panels: load.panels.clone(), first }
    }

    /// Writes the residues of this rank's rows. The outer error is the node's, the inner one this rank's own.
    fn convert(
        &self,
        load: &BandLoad,
        state: &mut RunState<'_>,
        meter: &Meter<'_>,
        outcome: Result<()>,
    ) -> Result<Result<()>> {
        let (slot, step) = (self.slot(load), &load.step);
        let read = self.streamed.map(|streamed| state.clock.wait(|| streamed.next(load.side))).transpose();
        let piece = match read {
            Ok(piece) => piece,
            Err(error) => return Ok(outcome.and(Err(error))),
        };
        // A piece from a file holds only the band.
        let (parts, first_panel) = match &piece {
            Some(piece) => (vec![piece.part()?], slot.panels.start),
            None => (chunk_parts(&slot.operand, self.shape.rows[self.rank()], self.cutting.chunks, step.chunk), 0),
        };
        let partition = self.operand_partition(&slot, step, &parts);
        let RunState { operands, spaces, clock, .. } = state;
        let shares = clock.wait(|| operands.write(&self.fence(), outcome, &partition))?;
        if parts.is_empty() {
            return Ok(Ok(()));
        }
        let conversion = Conversion {
            engine: self.engine,
            parts: &parts,
            shifts: &slot.operand.shifts[first_panel * BLOCK..],
            panels: slot.panels.start - first_panel..slot.panels.end - first_panel,
            primes: step.primes.clone(),
            runs: partition.positions(self.rank()).len(),
        };
        let run = || conversion.run(shares.into_iter(), spaces, meter);
        Ok(clock.time(RankPhase::ToResidues, || self.on_workers(run)))
    }

    /// Which rank writes which words of the product window: neighbouring jobs of a rank are one run.
    fn product_partition(&self, list: &JobList, first_prime: usize, plane_words: usize) -> Partition {
        let (block, mut runs) = (self.engine.block_words(), Vec::<Run>::new());
        for (job, &worker) in list.jobs.iter().zip(&list.assignment.worker) {
            let plane = (first_prime + job.prime) * plane_words;
            let words = plane + job.blocks.start * block..plane + job.blocks.end * block;
            let rank = if self.shape.ranks() == 1 { 0 } else { self.shape.rank_of(worker) };
            match runs.last_mut() {
                Some(last) if last.rank == rank && last.words.end == words.start => last.words.end = words.end,
                _ => runs.push(Run { words, rank }),
            }
        }
        Partition::new(self.shape.ranks(), Level::ONCE, Level::ONCE, runs)
    }

    /// Runs this rank's jobs. The outer error is the node's, the inner one this rank's own.
    fn multiply(
        &self,
        pair: &BandPair,
        part: &StepPart,
        rest: Option<PlaneExchange<'_, '_>>,
        state: &mut RunState<'_>,
        meter: &Meter<'_>,
        outcome: Result<()>,
    ) -> Result<Result<()>> {
        let list = plan_jobs(part.primes.len(), pair.grid.len(), self.shape.workers());
        let partition = self.product_partition(&list, part.primes.start, self.engine.plane_words(&pair.grid));
        let RunState { operands, products, spaces, clock } = state;
        let fence = self.fence();
        let beside = rest.as_ref().map(PlaneExchange::partition);
        let (operands, mut runs, exchanged) = match rest.zip(beside.as_ref()) {
            None => {
                let (words, shares) = clock.wait(|| products.write_from(operands, &fence, outcome, &partition))?;
                (words, shares.into_iter(), None)
            }
            Some((planes, beside)) => {
                let parts = (&partition, planes.beside(beside));
                let parts = clock.wait(|| products.write_beside(operands, &fence, outcome, parts))?;
                let TwoParts { source, shares, beside } = parts;
                (source, shares, Some(move || planes.run(beside)))
            }
        };
        let own = self.shape.workers_of(self.rank());
        let queue = || VecDeque::with_capacity(list.jobs.len() / self.shape.workers() + 2);
        let mut queues = own.clone().map(|_| queue()).collect::<Vec<_>>();
        let jobs = list.jobs.into_iter().zip(list.assignment.worker).filter(|(_, worker)| own.contains(worker));
        let mut run = &mut [][..];
        for (job, worker) in jobs {
            if run.is_empty() {
                run = runs.next().expect("words for each job");
            }
            let (words, rest) = std::mem::take(&mut run).split_at_mut(job.blocks.len() * self.engine.block_words());
            run = rest;
            queues[worker - own.start].push_back(Task { job, words });
        }
        let (panel, plane_words) = self.operand_words(part.chunk);
        let left = 0..pair.left.len() * panel;
        let first = self.cutting.slot_panels.0;
        let right = first * panel..(first + pair.right.len()) * panel;
        let multiplication = Multiplication {
            engine: self.engine,
            primes: part.primes.clone(),
            grid: pair.grid,
            rows: self.shape.chunk_rows(self.cutting.chunks, part.chunk),
            operands: &operands[part.first_plane * plane_words..],
            plane_words,
            right: if pair.grid.triangle { left.clone() } else { right },
            left,
            accumulate: part.chunk > 0,
        };
        let run = || multiplication.run(queues, spaces, meter);
        let Some(exchanged) = exchanged else {
            return Ok(clock.time(RankPhase::Product, || self.on_workers(run)));
        };
        let (ctx, threads) = (self.site.ctx, self.shape.threads[self.rank()]);
        let on_workers = move || if threads == 1 { run() } else { ctx.install(run) };
        let (multiplied, exchanged) = clock.beside(on_workers, exchanged);
        Ok(multiplied.and(exchanged))
    }

    /// Adds the planes of all nodes and reconstructs this rank's entries.
    fn results(
        &self,
        region: Region,
        rest: Option<PlaneExchange<'_, '_>>,
        state: &mut RunState<'_>,
        result: &mut impl ResultEntries,
        meter: &Meter<'_>,
        check: Option<&InnerCheck>,
    ) -> Result<RecoveryTime> {
        let RunState { products, spaces, clock, .. } = state;
        let (mut outcome, mut time) = (Ok(()), RecoveryTime::default());
        if let Some(planes) = rest {
            let partition = planes.partition();
            let shares = clock.wait(|| products.write(&self.fence(), Ok(()), &partition))?;
            let sent = clock.time(RankPhase::Exchange, || planes.run(shares));
            outcome = sent.map(|words| clock.note_sent(words));
        }
        let window = clock.wait(|| products.read(&self.fence(), outcome))?;
        let recovery = Recovery {
            engine: self.engine,
            window,
            region,
            left_shifts: self.left.shifts,
            right_shifts: self.right().shifts,
            epilogue: self.epilogue,
            largest_bits: self.site.ctx.self_check().then(|| range_check_bits(self.bits.modulus)),
            precision_bits: self.bits.result,
            check,
        };
        let mut fill = |segments: SegmentIter<'_>| {
            let run = || recovery.run(segments, spaces, meter);
            time.add(self.on_workers(run)?);
            Ok(())
        };
        clock.time(RankPhase::Reconstruct, || result.fill(region, &mut fill))?;
        Ok(time)
    }

    /// Units of work of this rank: its own rows to convert, its share of the node's jobs and of the result.
    fn total_units(&self) -> u64 {
        let (own_rows, node_rows) = (self.shape.rows[self.rank()], self.shape.total_rows() as u64);
        let (primes, threads) = (self.engine.moduli().len() as u64, self.shape.threads[self.rank()] as u64);
        let (workers, ranks) = (self.shape.workers().max(1) as u64, self.site.team.size() as u64);
        let load_units = |BandLoad { panels, step, .. }: BandLoad| {
            let rows = rank_chunk(own_rows, self.cutting.chunks, step.chunk).len();
            CONVERT_UNITS * (panels.len() * rows * step.primes.len()) as u64
        };
        let pair_units = |pair: BandPair| {
            let blocks = pair.grid.len() as u64;
            blocks * primes * (node_rows * threads / workers) + blocks * primes * RECOVER_UNITS * primes / ranks
        };
        self.schedule.loads().map(load_units).sum::<u64>() + self.schedule.pairs().map(pair_units).sum::<u64>()
    }
}

/// The rows of chunk `chunk` out of `chunks` among the `rows` rows of all blocks of an operand.
fn chunk_parts<'a>(operand: &OperandRows<'a>, rows: usize, chunks: usize, chunk: usize) -> Vec<MatrixRows<'a>> {
    let wanted = rank_chunk(rows, chunks, chunk);
    let mut parts = Vec::new();
    let mut first = 0;
    for &view in operand.blocks {
        let last = first + view.rows();
        let (start, end) = (wanted.start.clamp(first, last), wanted.end.clamp(first, last));
        if start < end {
            parts.push(MatrixRows { view, rows: start - first..end - first });
        }
        first = last;
    }
    parts
}
