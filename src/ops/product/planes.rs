//! A product on residue planes: for each pair of bands all batches of primes and chunks of rows, then the result.
//!
//! The product window holds all primes of one pair of bands. The operand window holds one batch of primes of two
//! bands and one chunk; what it holds is remembered, so that a band that stays is not converted again.

use crate::context::{Context, WorkerSpace, Workspace};
use crate::drive::Meter;
use crate::error::Result;
use crate::kernels::{IntegerBlock, PlaneEngine};
use crate::math::bound::range_check_bits;
use crate::matrix::Matrix;
use crate::ops::product::convert::{CONVERT_UNITS, Conversion, Part, whole_panels};
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::multiply::{Multiplication, queues};
use crate::ops::product::plan::PlannedRun;
use crate::ops::product::problem::{Bits, Operand, Problem};
use crate::ops::product::recover::{RECOVER_UNITS, Recovery, RecoveryTime};
use crate::ops::product::report::Phases;
use crate::ops::product::segments::{Region, Segments};
use crate::plan::{BLOCK, BandPair, band_pairs, pieces, plan_jobs};
use std::ops::Range;
use std::time::Instant;

/// What one worker has for itself during a call.
pub(crate) struct Space<'a> {
    /// Scratch for the kernel.
    pub scratch: &'a mut [u64],
    /// The integers of one block.
    pub integers: &'a mut IntegerBlock,
}

/// What each of `workers` has for itself: integers of so many limbs, and so many words of scratch.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(crate) fn worker_spaces(workers: &mut [WorkerSpace], limbs: usize, scratch_words: usize) -> Result<Vec<Space<'_>>> {
    let mut spaces = Vec::with_capacity(workers.len());
    for WorkerSpace { scratch, integers } in workers {
        if integers.limbs != limbs {
            *integers = IntegerBlock::new(limbs);
        }
        spaces.push(Space { scratch: scratch.words(scratch_words)?, integers });
    }
    Ok(spaces)
}

/// A product on planes, ready to run.
pub(crate) struct PlaneRun<'a> {
    ctx: &'a Context,
    problem: &'a Problem<'a>,
    engine: &'a dyn PlaneEngine,
    planned: &'a PlannedRun,
    bits: Bits,
    meter: Meter<'a>,
}

/// One chunk of rows and one batch of primes.
#[derive(Clone, PartialEq, Eq)]
struct Step {
    rows: Range<usize>,
    primes: Range<usize>,
}

/// What a slot of the operand window holds: its panels and the step they were made for.
type Held = Option<(Range<usize>, Step)>;

/// The memory of a run, borrowed from the workspace.
struct Windows<'w> {
    operands: &'w mut [u64],
    products: &'w mut [u64],
    spaces: Vec<Space<'w>>,
    left_shifts: &'w [i64],
    right_shifts: &'w [i64],
    left_held: Held,
    right_held: Held,
}

impl<'a> PlaneRun<'a> {
    /// Joins a problem and its plan.
    pub fn new(ctx: &'a Context, problem: &'a Problem<'a>, planned: &'a PlannedRun, bits: Bits) -> PlaneRun<'a> {
        let engine = &*planned.engine;
        let mut run = PlaneRun { ctx, problem, engine, planned, bits, meter: Meter::new(ctx, 0) };
        run.meter = Meter::new(ctx, run.total_units());
        run
    }

    /// Fills `result`.
    ///
    /// # Errors
    /// Those of [`crate::syrk_with`].
    pub fn run(&self, workspace: &mut Workspace, result: &mut Matrix) -> Result<Phases> {
        let mut windows = self.windows(workspace)?;
        let check = (self.ctx.freivalds())
            .then(|| InnerCheck::new(self.ctx, self.problem, windows.left_shifts, windows.right_shifts));
        let mut phases = Phases::default();
        for pair in self.band_pairs() {
            for step in self.steps() {
                let start = Instant::now();
                self.convert(&pair, &step, &mut windows)?;
                phases.to_residues += start.elapsed().as_secs_f64();
                let start = Instant::now();
                self.multiply(&pair, &step, &mut windows)?;
                phases.product += start.elapsed().as_secs_f64();
            }
            if let Some(fault) = self.problem.fault {
                let plane_words = pair.grid.words();
                fault(&mut windows.products[..self.engine.moduli().len() * plane_words], plane_words);
            }
            let start = Instant::now();
            let time = self.recover(&pair, &mut windows, result, check.as_ref())?;
            let share = start.elapsed().as_secs_f64() / (time.reconstruct + time.unscale).as_secs_f64().max(1e-9);
            phases.reconstruct += share * time.reconstruct.as_secs_f64();
            phases.unscale += share * time.unscale.as_secs_f64();
        }
        check.map_or(Ok(()), InnerCheck::finish)?;
        Ok(phases)
    }

    /// Takes the windows from the workspace, in the sizes planned.
    fn windows<'w>(&self, workspace: &'w mut Workspace) -> Result<Windows<'w>> {
        let words = &self.planned.words;
        workspace.hire(self.planned.plan.threads);
        let workers = &mut workspace.workers[..self.planned.plan.threads];
        let spaces = worker_spaces(workers, self.engine.magnitude_limbs(), words.scratch)?;
        Ok(Windows {
            operands: workspace.operands.words(words.operands)?,
            products: workspace.products.words(words.products)?,
            spaces,
            left_shifts: &workspace.left_shifts,
            right_shifts: match self.problem.right {
                Some(_) => &workspace.right_shifts,
                None => &workspace.left_shifts,
            },
            left_held: None,
            right_held: None,
        })
    }

    fn band_pairs(&self) -> impl Iterator<Item = BandPair> + use<> {
        let (rows, cols) = self.problem.result_shape();
        let panels = (rows.div_ceil(BLOCK), cols.div_ceil(BLOCK));
        band_pairs(panels, self.problem.triangle(), self.planned.cut.band_panels)
    }

    /// All batches of primes, and within each all chunks of rows.
    fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let (cut, rows, primes) = (self.planned.cut, self.problem.contracted(), self.engine.moduli().len());
        pieces(primes, cut.batch_primes)
            .flat_map(move |primes| pieces(rows, cut.chunk_rows).map(move |rows| Step { rows, primes: primes.clone() }))
    }

    /// Words of one operand plane, and the word at which the right slot begins.
    fn plane_words(&self, rows: usize) -> (usize, usize) {
        let (left, right) = self.planned.slot_panels;
        let panel = self.engine.panel_words(rows);
        ((left + right) * panel, left * panel)
    }

    fn convert(&self, pair: &BandPair, step: &Step, windows: &mut Windows<'_>) -> Result<()> {
        let wanted = Some((pair.left.clone(), step.clone()));
        if windows.left_held != wanted {
            let (shifts, operand) = (windows.left_shifts, self.problem.left);
            self.convert_operand(operand, shifts, (pair.left.clone(), 0), step, windows)?;
            windows.left_held = wanted;
        }
        let wanted = Some((pair.right.clone(), step.clone()));
        if !pair.grid.triangle && windows.right_held != wanted {
            let (shifts, operand) = (windows.right_shifts, self.problem.right_operand());
            let slot = self.planned.slot_panels.0;
            self.convert_operand(operand, shifts, (pair.right.clone(), slot), step, windows)?;
            windows.right_held = wanted;
        }
        Ok(())
    }

    /// Converts some panels of an operand into the slots from `slot` on.
    fn convert_operand(
        &self,
        operand: Operand<'a>,
        shifts: &[i64],
        (panels, slot): (Range<usize>, usize),
        step: &Step,
        windows: &mut Windows<'_>,
    ) -> Result<()> {
        let panel_words = self.engine.panel_words(step.rows.len());
        let (plane_words, _) = self.plane_words(step.rows.len());
        let slots = slot..slot + panels.len();
        let parts = [Part { view: operand.view, rows: step.rows.clone() }];
        let primes = step.primes.clone();
        let window = &mut windows.operands[..primes.len() * plane_words];
        let walks = whole_panels(window, plane_words, slots, panel_words);
        let conversion = Conversion { engine: self.engine, parts: &parts, shifts, panels, primes, runs: 1 };
        conversion.run(walks, &mut windows.spaces, &self.meter)
    }

    fn multiply(&self, pair: &BandPair, step: &Step, windows: &mut Windows<'_>) -> Result<()> {
        let (plane_words, right_offset) = self.plane_words(step.rows.len());
        let panel = self.engine.panel_words(step.rows.len());
        let left = 0..pair.left.len() * panel;
        let right = right_offset..right_offset + pair.right.len() * panel;
        let multiplication = Multiplication {
            engine: self.engine,
            primes: step.primes.clone(),
            grid: pair.grid,
            rows: step.rows.len(),
            operands: windows.operands,
            plane_words,
            right: if pair.grid.triangle { left.clone() } else { right },
            left,
            accumulate: step.rows.start > 0,
        };
        let (workers, plane) = (windows.spaces.len(), pair.grid.words());
        let list = plan_jobs(step.primes.len(), pair.grid.len(), workers);
        let tasks = queues(list, workers, windows.products, plane, step.primes.start);
        multiplication.run(tasks, &mut windows.spaces, &self.meter)
    }

    fn recover(
        &self,
        pair: &BandPair,
        windows: &mut Windows<'_>,
        result: &mut Matrix,
        check: Option<&InnerCheck>,
    ) -> Result<RecoveryTime> {
        let recovery = Recovery {
            engine: self.engine,
            window: windows.products,
            region: Region {
                grid: pair.grid,
                first_left: pair.left.start,
                first_right: pair.right.start,
                uplo: self.problem.uplo,
            },
            left_shifts: windows.left_shifts,
            right_shifts: windows.right_shifts,
            combination: self.problem.combination,
            largest_bits: self.ctx.self_check().then(|| range_check_bits(self.bits.modulus)),
            precision_bits: self.bits.result,
            check,
        };
        recovery.run(Segments::new(recovery.region, result), &mut windows.spaces, &self.meter)
    }

    /// Units of work of the whole call.
    fn total_units(&self) -> u64 {
        let (rows, primes) = (self.problem.contracted() as u64, self.engine.moduli().len() as u64);
        let single_step = self.steps().nth(1).is_none();
        let (mut left, mut right) = (None, None);
        let mut units = 0;
        for pair in self.band_pairs() {
            let mut panels = 0;
            if !(single_step && left.as_ref() == Some(&pair.left)) {
                panels += pair.left.len() as u64;
            }
            if !(pair.grid.triangle || single_step && right.as_ref() == Some(&pair.right)) {
                panels += pair.right.len() as u64;
                right = Some(pair.right.clone());
            }
            left = Some(pair.left.clone());
            let blocks = pair.grid.len() as u64;
            units += CONVERT_UNITS * panels * rows * primes + blocks * primes * (rows + RECOVER_UNITS * primes);
        }
        units
    }
}
