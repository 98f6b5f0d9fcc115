//! The order of a product on residue planes, and its run on one rank of a team: convert own rows, multiply own jobs,
//! add up over nodes, reconstruct own entries. One process is a team of one rank.
//!
//! For each pair of bands all batches of primes, and within each all chunks of rows. The product window holds all
//! primes of one pair of bands. The operand window holds one batch of primes of two bands and one chunk; its content is
//! remembered, so that a band that stays is not converted again. The runner, the count of its work and the read-ahead
//! of operands follow this order.
//! All ranks of a node go through the same phases; each begins with a fence of the node, at which an error of one rank
//! becomes the error of all. Nodes meet only where residues are exchanged. A single rank on its node has no fence to
//! wait at, and its windows are plain memory.
//! Where nodes exchange residues, the products of a batch are formed part by part: the calling thread exchanges one
//! part while the workers multiply the next.
//! Independent of: the sources of entries (`OperandSource`) and their destinations (`ResultSink`).

use crate::comm::Fence;
use crate::comm::window::{Level, NodeWindow, Partition, Run, TwoParts};
use crate::context::WorkerSpace;
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::kernels::PlaneEngine;
use crate::matrix::{MatrixView, Uplo};
use crate::ops::product::clock::{PhaseClock, RankPhase};
use crate::ops::product::combine::Epilogue;
use crate::ops::product::exchange::{Exchange, PlaneExchange};
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::problem::{Bits, FaultHook, OperandRows};
use crate::ops::product::sink::{Region, ResultSink, SegmentIter};
use crate::ops::product::steps::{
    CONVERT_UNITS, Conversion, MatrixRows, Multiplication, RECOVER_UNITS, Recovery, RecoveryTime, Rounding, Space,
    Task, worker_spaces,
};
use crate::plan::{
    BLOCK, BandPair, BlockGrid, Cut, JobList, NodeShape, WindowWords, band_pairs, part_primes, pieces, plan_jobs,
    rank_chunk,
};
use crate::site::Site;
use crate::store::Buffer;
use crate::tile::TileMap;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The division of a product, the same on all ranks.
#[derive(Clone, Copy)]
pub(crate) struct Cutting {
    /// Batches and bands.
    pub cut: Cut,
    /// Chunks of rows, of which every rank cuts its own.
    pub chunks: usize,
    /// Panels that fit the operand window, of the left and of the right operand.
    pub slot_panels: (usize, usize),
}

/// One batch of primes and one chunk of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProductStep {
    pub primes: Range<usize>,
    pub chunk: usize,
}

/// The part of a step whose products are formed together, before those of the next part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StepPart {
    pub primes: Range<usize>,
    /// The first of them among the primes of the step.
    pub first_plane: usize,
    pub chunk: usize,
}

/// The operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The operand that provides the rows of the result.
    Left,
    /// The operand that provides the columns of the result.
    Right,
}

/// A band to be converted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BandLoad {
    pub side: Side,
    pub panels: Range<usize>,
    pub step: ProductStep,
}

/// The content of the two slots of the operand window: a band, and the step it was converted for.
#[derive(Default)]
pub(crate) struct HeldBands([Option<(Range<usize>, ProductStep)>; 2]);

impl HeldBands {
    /// The bands to convert before a step on a pair of bands; they count as held from then on.
    pub fn loads(&mut self, pair: &BandPair, step: &ProductStep) -> impl Iterator<Item = BandLoad> + use<> {
        let right = (!pair.grid.triangle).then(|| (Side::Right, pair.right.clone()));
        let wanted = [Some((Side::Left, pair.left.clone())), right];
        let mut loads = [None, None];
        for ((held, wanted), load) in self.0.iter_mut().zip(wanted).zip(&mut loads) {
            let Some((side, panels)) = wanted else { continue };
            let wanted = Some((panels.clone(), step.clone()));
            if *held != wanted {
                *held = wanted;
                *load = Some(BandLoad { side, panels, step: step.clone() });
            }
        }
        loads.into_iter().flatten()
    }
}

/// The pairs of bands of a product.
#[derive(Clone)]
enum Pairs {
    /// All pairs, computed rather than stored: narrow bands make many.
    All { panels: BlockGrid, band_panels: usize, half: Option<Uplo> },
    /// The wanted pairs.
    Some(Arc<[BandPair]>),
}

/// The order of a product.
#[derive(Clone)]
pub(crate) struct ProductSchedule {
    pairs: Pairs,
    primes: usize,
    batch_primes: usize,
    chunks: usize,
    /// Parts of a batch whose products are formed one after the other.
    parts: usize,
}

impl ProductSchedule {
    /// The whole product modulo `primes` primes of operands whose panels are the rows and columns of `panels`.
    pub fn new(cutting: &Cutting, panels: BlockGrid, primes: usize) -> ProductSchedule {
        let Cutting { cut, chunks, .. } = *cutting;
        let pairs = Pairs::All { panels, band_panels: cut.band_panels, half: None };
        ProductSchedule { pairs, primes, batch_primes: cut.batch_primes, chunks, parts: 1 }
    }

    /// The same schedule without the pairs of bands outside the triangle `half`, if only a triangle is computed.
    pub fn of_half(self, half: Option<Uplo>) -> ProductSchedule {
        match self.pairs {
            Pairs::All { panels, band_panels, .. } => {
                ProductSchedule { pairs: Pairs::All { panels, band_panels, half }, ..self }
            }
            Pairs::Some(_) => self,
        }
    }

    /// The same schedule with the pairs of bands for which `is_wanted` returns true.
    pub fn of_pairs(self, is_wanted: impl FnMut(&BandPair) -> bool) -> ProductSchedule {
        let pairs = Pairs::Some(self.pairs().filter(is_wanted).collect());
        ProductSchedule { pairs, ..self }
    }

    /// The same schedule with the products of the last chunk of each batch in `parts` parts: each part is in transit to
    /// other nodes while the next one is multiplied.
    pub fn in_parts(self, parts: usize) -> ProductSchedule {
        ProductSchedule { parts: parts.max(1), ..self }
    }

    /// The parts of a step that are multiplied one after the other, and whether the products of each are finished then.
    pub fn parts(&self, step: &ProductStep) -> (impl Iterator<Item = StepPart> + use<>, bool) {
        let (first, chunk, is_last) = (step.primes.start, step.chunk, step.chunk + 1 == self.chunks);
        let size = if is_last { part_primes(step.primes.len(), self.parts) } else { step.primes.len() };
        let part = move |planes: Range<usize>| {
            let primes = first + planes.start..first + planes.end;
            StepPart { primes, first_plane: planes.start, chunk }
        };
        (pieces(step.primes.len(), size.max(1)).map(part), is_last)
    }

    /// The same schedule with all primes in one batch.
    pub fn in_one_batch(self) -> ProductSchedule {
        ProductSchedule { batch_primes: self.primes, ..self }
    }

    /// The pairs of bands in order.
    pub fn pairs(&self) -> Box<dyn Iterator<Item = BandPair> + Send> {
        match &self.pairs {
            &Pairs::All { panels, band_panels, half } => {
                Box::new(band_pairs(panels, band_panels).filter(move |BandPair { left, right, .. }| match half {
                    None => true,
                    Some(Uplo::Lower) => left.end > right.start,
                    Some(Uplo::Upper) => right.end > left.start,
                }))
            }
            Pairs::Some(pairs) => {
                let pairs = pairs.clone();
                Box::new((0..pairs.len()).map(move |at| pairs[at].clone()))
            }
        }
    }

    /// The steps of each pair: all batches of primes, and within each all chunks of rows.
    pub fn steps(&self) -> impl Iterator<Item = ProductStep> + use<> {
        let chunks = self.chunks;
        pieces(self.primes, self.batch_primes)
            .flat_map(move |primes| (0..chunks).map(move |chunk| ProductStep { primes: primes.clone(), chunk }))
    }

    /// All conversions, in order.
    pub fn loads(&self) -> impl Iterator<Item = BandLoad> + Send + use<> {
        let (schedule, mut held) = (self.clone(), HeldBands::default());
        let steps = self.pairs().flat_map(move |pair| schedule.steps().map(move |step| (pair.clone(), step)));
        steps.flat_map(move |(pair, step)| held.loads(&pair, &step))
    }
}

/// The execution of a product on planes: its kernel, division, order of work and sizes of windows.
#[derive(Clone)]
pub(crate) struct RunPlan {
    pub engine: Arc<dyn PlaneEngine>,
    pub cutting: Cutting,
    pub schedule: ProductSchedule,
    pub words: WindowWords,
}

/// Operands that are read piece by piece: a band and a chunk of rows each, in the order of [`ProductSchedule::loads`].
pub(crate) trait OperandSource {
    /// Waits for the next piece, which is one of the operand on this `side`.
    ///
    /// # Errors
    /// The errors of the read.
    fn next(&self, side: Side) -> Result<Box<dyn OperandPiece>>;
}

/// A piece of an operand. Its buffer is free again when it is dropped.
pub(crate) trait OperandPiece {
    /// All its rows, transposed where the operand is.
    ///
    /// # Errors
    /// The errors of the read.
    fn view(&self) -> Result<MatrixView<'_>>;
}

/// One rank's part of a product, ready to run.
pub(crate) struct ProductRun<'a> {
    pub site: Site<'a>,
    /// The ranks of this node.
    pub shape: &'a NodeShape,
    /// The division of the product, and the order of its parts.
    pub plan: &'a RunPlan,
    pub left: OperandRows<'a>,
    /// `None` for SYRK.
    pub right: Option<OperandRows<'a>>,
    /// The source of the entries of both operands, if they are not in memory; the blocks of rows are then empty.
    pub source: Option<&'a dyn OperandSource>,
    pub uplo: Uplo,
    /// The triangle that is wanted of the symmetric product of two operands.
    pub half: Option<Uplo>,
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

/// The memory of a workspace that the only rank of a team runs in.
pub(crate) struct RunMemory<'w> {
    pub operands: &'w mut Buffer,
    pub products: &'w mut Buffer,
    /// One for each thread.
    pub workers: &'w mut [WorkerSpace],
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

    fn engine(&self) -> &'a dyn PlaneEngine {
        &*self.plan.engine
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
    pub fn run(&self, state: &mut RunState<'_>, result: &mut dyn ResultSink) -> Result<RecoveryTime> {
        let check = (self.site.ctx.freivalds()).then(|| InnerCheck::new(self.site, self.left, self.right, self.half));
        let check = check.transpose()?;
        let meter = Meter::new(self.site.ctx, self.total_units());
        let (mut held, mut time) = (HeldBands::default(), RecoveryTime::default());
        for pair in self.plan.schedule.pairs() {
            let region = self.region(&pair);
            let owners = self.owners.filter(|_| self.site.team.layout().nodes.len() > 1);
            let exchange = owners.map(|owners| Exchange::new(self.site.team, self.engine(), owners, &region));
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

    /// [`ProductRun::run`] of a team of one, in windows that are kept from call to call.
    ///
    /// # Errors
    /// As [`ProductRun::run`]; [`Error::OutOfMemory`].
    pub fn run_alone(
        &self,
        memory: RunMemory<'_>,
        clock: &mut PhaseClock,
        result: &mut dyn ResultSink,
    ) -> Result<RecoveryTime> {
        let WindowWords { operands, products, scratch, .. } = self.plan.words;
        let spaces = worker_spaces(memory.workers, self.engine().magnitude_limbs(), scratch)?;
        let operands = NodeWindow::Alone(memory.operands.words(operands)?);
        let products = NodeWindow::Alone(memory.products.words(products)?);
        clock.skip();
        self.run(&mut RunState { operands, products, spaces, clock }, result)
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
        let (first_left, first_right) = (pair.left.start, pair.right.start);
        Region { grid: pair.grid, first_left, first_right, uplo: self.uplo, half: self.half }
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
        for step in self.plan.schedule.steps() {
            for load in held.loads(pair, &step) {
                outcome = self.convert(&load, state, meter, outcome)?;
            }
            let (parts, is_last) = self.plan.schedule.parts(&step);
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
        Ok(sent..self.engine().moduli().len())
    }

    /// Passes all planes of a pair of bands to `fault`, on the first rank of each node.
    fn damage(
        &self,
        fault: &FaultHook<'_>,
        pair: &BandPair,
        state: &mut RunState<'_>,
        outcome: Result<()>,
    ) -> Result<()> {
        let plane_words = self.engine().plane_words(&pair.grid);
        let all = Run { words: 0..self.engine().moduli().len() * plane_words, rank: 0 };
        let partition = Partition::new(self.shape.ranks(), Level::ONCE, Level::ONCE, vec![all]);
        let shares = state.products.write(&self.fence(), outcome, &partition)?;
        shares.into_iter().for_each(|words| fault(words, plane_words));
        Ok(())
    }

    /// Words of a panel of the chunk, and of one operand plane in the window.
    fn operand_words(&self, chunk: usize) -> (usize, usize) {
        let panel = self.engine().panel_words(self.shape.chunk_rows(self.plan.cutting.chunks, chunk));
        let (left, right) = self.plan.cutting.slot_panels;
        (panel, (left + right) * panel)
    }

    /// The words of a slot that each rank writes; `parts` are the rows of this rank.
    fn operand_partition(&self, slot: &PanelSlot<'_>, step: &ProductStep, parts: &[MatrixRows<'_>]) -> Partition {
        let ranks = self.shape.ranks();
        let (panel_words, plane_words) = self.operand_words(step.chunk);
        let mut runs = Vec::new();
        if ranks == 1 && parts.len() == 1 {
            // A kernel that is given all rows of a panel at once needs no runs of them.
            runs.push(Run { words: 0..panel_words, rank: 0 });
        } else {
            let starts = self.shape.chunk_starts(self.plan.cutting.chunks, step.chunk);
            let of_rank = |rank: usize| self.engine().row_runs(starts[ranks], starts[rank]..starts[rank + 1]);
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
            Side::Right => (self.right(), self.plan.cutting.slot_panels.0),
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
        let piece = match self.source.map(|source| source.next(load.side)).transpose() {
            Ok(piece) => piece,
            Err(error) => return Ok(outcome.and(Err(error))),
        };
        // A piece holds only the band.
        let (parts, first_panel) = match &piece {
            Some(piece) => {
                let view = piece.view()?;
                (vec![MatrixRows { view, rows: 0..view.rows() }], slot.panels.start)
            }
            None => (chunk_parts(&slot.operand, self.shape.rows[self.rank()], self.plan.cutting.chunks, step.chunk), 0),
        };
        let partition = self.operand_partition(&slot, step, &parts);
        let RunState { operands, spaces, clock, .. } = state;
        let shares = clock.wait(|| operands.write(&self.fence(), outcome, &partition))?;
        if parts.is_empty() {
            return Ok(Ok(()));
        }
        let conversion = Conversion {
            engine: self.engine(),
            parts: &parts,
            shifts: &slot.operand.shifts[first_panel * BLOCK..],
            panels: slot.panels.start - first_panel..slot.panels.end - first_panel,
            primes: step.primes.clone(),
            runs: partition.positions(self.rank()).len(),
        };
        let run = || conversion.run(shares.into_iter(), spaces, meter);
        Ok(clock.time(RankPhase::ToResidues, || self.on_workers(run)))
    }

    /// The words of the product window that each rank writes: neighbouring jobs of a rank are one run.
    fn product_partition(&self, list: &JobList, first_prime: usize, plane_words: usize) -> Partition {
        let (block, mut runs) = (self.engine().block_words(), Vec::<Run>::new());
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
        let partition = self.product_partition(&list, part.primes.start, self.engine().plane_words(&pair.grid));
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
            let (words, rest) = std::mem::take(&mut run).split_at_mut(job.blocks.len() * self.engine().block_words());
            run = rest;
            queues[worker - own.start].push_back(Task { job, words });
        }
        let (panel, plane_words) = self.operand_words(part.chunk);
        let left = 0..pair.left.len() * panel;
        let first = self.plan.cutting.slot_panels.0;
        let right = first * panel..(first + pair.right.len()) * panel;
        let multiplication = Multiplication {
            engine: self.engine(),
            primes: part.primes.clone(),
            grid: pair.grid,
            rows: self.shape.chunk_rows(self.plan.cutting.chunks, part.chunk),
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
        result: &mut dyn ResultSink,
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
        let rounding = Rounding::new(self.site.ctx, &self.left, &self.right(), &self.bits, self.epilogue, check);
        let recovery = Recovery { engine: self.engine(), window, region, rounding };
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
        let (primes, threads) = (self.engine().moduli().len() as u64, self.shape.threads[self.rank()] as u64);
        let (workers, ranks) = (self.shape.workers().max(1) as u64, self.site.team.size() as u64);
        let load_units = |BandLoad { panels, step, .. }: BandLoad| {
            let rows = rank_chunk(own_rows, self.plan.cutting.chunks, step.chunk).len();
            CONVERT_UNITS * (panels.len() * rows * step.primes.len()) as u64
        };
        let pair_units = |pair: BandPair| {
            let (blocks, region) = (pair.grid.len() as u64, self.region(&pair));
            let recovered = (0..region.columns().1).map(|col| region.rows(col).len() as u64).sum::<u64>();
            blocks * primes * (node_rows * threads / workers) + recovered * primes * RECOVER_UNITS * primes / ranks
        };
        self.plan.schedule.loads().map(load_units).sum::<u64>()
            + self.plan.schedule.pairs().map(pair_units).sum::<u64>()
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

#[cfg(test)]
mod tests {
    use super::*;

    const SIX_PANELS: BlockGrid = BlockGrid { rows: 6, cols: 6, triangle: true };

    fn schedule(panels: BlockGrid, cut: Cut, chunks: usize) -> ProductSchedule {
        ProductSchedule::new(&Cutting { cut, chunks, slot_panels: (0, 0) }, panels, 5)
    }

    #[test]
    fn every_step_finds_its_bands_converted() {
        for (rows, cols, triangle) in [(7, 7, true), (7, 4, false), (1, 9, false)] {
            let panels = BlockGrid { rows, cols, triangle };
            for (band_panels, batch_primes, chunks) in [(3, 2, 1), (3, 5, 1), (2, 5, 3), (9, 5, 1), (1, 1, 2)] {
                let cut = Cut { batch_primes, band_panels, chunk_rows: 1 };
                let schedule = schedule(panels, cut, chunks);
                let (mut loads, mut slots) = (schedule.loads(), [None, None]);
                let (mut count, mut held) = (0, HeldBands::default());
                for pair in schedule.pairs() {
                    for step in schedule.steps() {
                        for load in held.loads(&pair, &step) {
                            assert_eq!(loads.next(), Some(load.clone()));
                            slots[load.side as usize] = Some((load.panels, load.step));
                            count += 1;
                        }
                        assert_eq!(slots[0], Some((pair.left.clone(), step.clone())));
                        assert!(pair.grid.triangle || slots[1] == Some((pair.right.clone(), step)));
                    }
                }
                assert_eq!(loads.next(), None);
                let most = 2 * schedule.pairs().count() * schedule.steps().count();
                assert!(count <= most, "{count} of {most}");
            }
        }
    }

    #[test]
    fn parts_of_a_batch_cover_it_once_and_only_the_last_chunk_is_cut() {
        let cut = Cut { batch_primes: 3, band_panels: 2, chunk_rows: 1 };
        let schedule = schedule(SIX_PANELS, cut, 2).in_parts(2);
        let parts = schedule.steps().map(|step| {
            let (parts, finished) = schedule.parts(&step);
            let primes = parts.map(|part| {
                assert_eq!((part.first_plane, part.chunk), (part.primes.start - step.primes.start, step.chunk));
                (part.primes.start, part.primes.end)
            });
            (primes.collect::<Vec<_>>(), finished)
        });
        let want =
            [(vec![(0, 3)], false), (vec![(0, 2), (2, 3)], true), (vec![(3, 5)], false), (vec![(3, 4), (4, 5)], true)];
        assert_eq!(parts.collect::<Vec<_>>(), want);
    }

    #[test]
    fn a_band_that_stays_is_converted_once() {
        let cut = Cut { batch_primes: 5, band_panels: 2, chunk_rows: 1 };
        // Three bands: each row of pairs loads its left band once, and turns round at the right one; pairs on the
        // diagonal need no second one.
        let loads = schedule(SIX_PANELS, cut, 1).loads().collect::<Vec<_>>();
        let of = |side| loads.iter().filter(|load| load.side == side).count();
        assert_eq!((of(Side::Left), of(Side::Right)), (3, 2));
        let wanted = schedule(SIX_PANELS, cut, 1).of_pairs(|pair| pair.grid.triangle);
        assert_eq!((wanted.pairs().count(), wanted.loads().count()), (3, 3));
    }
}
