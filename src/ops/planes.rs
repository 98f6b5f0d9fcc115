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
use crate::ops::convert::{CONVERT_UNITS, Conversion};
use crate::ops::inner_check::InnerCheck;
use crate::ops::multiply::Multiplication;
use crate::ops::plan::PlannedRun;
use crate::ops::problem::{Bits, Operand, Problem};
use crate::ops::recover::{RECOVER_UNITS, Recovery, RecoveryTime};
use crate::ops::report::Phases;
use crate::ops::segments::Region;
use crate::plan::{BLOCK, BlockGrid};
use std::ops::Range;
use std::time::Instant;

/// What one worker has for itself during a call.
pub(crate) struct Space<'a> {
    /// Scratch for the kernel.
    pub scratch: &'a mut [u64],
    /// The integers of one block.
    pub integers: &'a mut IntegerBlock,
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

/// A pair of bands of panels, and whether its product is a triangle.
#[derive(Clone)]
struct BandPair {
    left: Range<usize>,
    right: Range<usize>,
    grid: BlockGrid,
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
        let (limbs, workers) = (self.engine.magnitude_limbs(), self.planned.plan.threads);
        workspace.hire(workers);
        let mut spaces = Vec::with_capacity(workers);
        for WorkerSpace { scratch, integers } in &mut workspace.workers[..workers] {
            if integers.limbs != limbs {
                *integers = IntegerBlock::new(limbs);
            }
            spaces.push(Space { scratch: scratch.words(words.scratch)?, integers });
        }
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

    /// All pairs of bands, back and forth, so that a band stays in its slot from one pair to the next.
    fn band_pairs(&self) -> impl Iterator<Item = BandPair> + use<> {
        let (rows, cols) = self.problem.result_shape();
        let (rows, cols, size) = (rows.div_ceil(BLOCK), cols.div_ceil(BLOCK), self.planned.cut.band_panels);
        let triangle = self.problem.triangle();
        let band = move |index: usize, panels: usize| index * size..((index + 1) * size).min(panels);
        (0..rows.div_ceil(size)).flat_map(move |i| {
            let count = if triangle { i + 1 } else { cols.div_ceil(size) };
            (0..count).map(move |step| {
                let j = if i % 2 == 0 { step } else { count - 1 - step };
                let (left, right) = (band(i, rows), band(j, cols));
                let grid = BlockGrid { rows: left.len(), cols: right.len(), triangle: triangle && i == j };
                BandPair { left, right, grid }
            })
        })
    }

    /// All batches of primes, and within each all chunks of rows.
    fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let (cut, rows, primes) = (self.planned.cut, self.problem.contracted(), self.engine.moduli().len());
        let pieces = |total: usize, size: usize| {
            (0..total.div_ceil(size)).map(move |index| index * size..((index + 1) * size).min(total))
        };
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
        let (plane_words, right_offset) = self.plane_words(step.rows.len());
        let conversion = |operand: Operand<'a>, panels: &Range<usize>, offset: usize| Conversion {
            engine: self.engine,
            view: operand.view,
            shifts: &[],
            panels: panels.clone(),
            rows: step.rows.clone(),
            primes: step.primes.clone(),
            plane_words,
            offset,
        };
        let wanted = Some((pair.left.clone(), step.clone()));
        if windows.left_held != wanted {
            let left = Conversion { shifts: windows.left_shifts, ..conversion(self.problem.left, &pair.left, 0) };
            left.run(windows.operands, &mut windows.spaces, &self.meter)?;
            windows.left_held = wanted;
        }
        let wanted = Some((pair.right.clone(), step.clone()));
        if !pair.grid.triangle && windows.right_held != wanted {
            let operand = self.problem.right_operand();
            let right = Conversion { shifts: windows.right_shifts, ..conversion(operand, &pair.right, right_offset) };
            right.run(windows.operands, &mut windows.spaces, &self.meter)?;
            windows.right_held = wanted;
        }
        Ok(())
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
        multiplication.run(windows.products, &mut windows.spaces, &self.meter)
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
        recovery.run(result, &mut windows.spaces, &self.meter)
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
