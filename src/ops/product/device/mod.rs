//! Products on devices: one or several, each with a share of the moduli; the same bits as on the CPU.
//!
//! Big floats go to the devices, big floats come back: scaling, residues, products, reconstruction and rounding run
//! there.
//! Promise: whatever fails on a device, the operands are untouched, and the error says what happened.

mod lane;
mod products;
mod rates;
mod recover;
mod report;
mod stage;
mod timer;

pub use report::DeviceReport;
pub use timer::DeviceSeconds;

use crate::comm::local;
use crate::context::{Context, Workspace};
use crate::device::{Device, DeviceKind, Event, MemoryShare, Traffic};
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::kernels::device::DeviceEngine;
use crate::math::bound::range_check_bits;
use crate::math::float::limbs_for;
use crate::matrix::{MatrixViewMut, Uplo};
use crate::ops::product::device::lane::{Lane, LaneParts};
use crate::ops::product::device::products::{Band, Operands};
use crate::ops::product::device::recover::Recovery;
use crate::ops::product::device::stage::Sink;
use crate::ops::product::device::timer::Timer;
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::problem::{Bits, Operand, OperandRows, Problem};
use crate::ops::product::size::ProductSize;
use crate::plan::{DEVICE_ALIGN, DeviceBytes, DeviceCut, DeviceInput, shares};
use crate::store::room_for_threads;
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// Shape and bit counts of a product: all that its plan depends on beside the context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceRequest {
    /// The three sizes.
    pub size: ProductSize,
    /// Whether the upper triangle is wanted.
    pub upper: bool,
    /// Whether the result is the product itself, which a device can round.
    pub plain: bool,
    /// Limbs of an operand's entry.
    pub input_limbs: usize,
    /// The bit counts.
    pub bits: Bits,
    /// A cut to run instead of the one that memory asks for.
    pub cut: Option<DeviceCut>,
}

impl DeviceRequest {
    fn new(problem: &Problem<'_>, bits: Bits) -> DeviceRequest {
        let limbs = |operand: Operand<'_>| operand.view.limbs_per_element();
        DeviceRequest {
            size: problem.size(),
            upper: problem.uplo == Uplo::Upper,
            plain: problem.combination.is_plain(),
            input_limbs: limbs(problem.left).max(limbs(problem.right_operand())),
            bits,
            cut: problem.hooks.device_cut,
        }
    }
}

/// A product planned for the context's devices.
pub(crate) struct DevicePlan {
    engine: Arc<DeviceEngine>,
    parts: Vec<Part>,
    /// Bytes of pinned host memory.
    pub pinned_bytes: u64,
}

/// Into how many pieces a product is cut.
pub(crate) struct CutCounts {
    pub batches: usize,
    pub bands: usize,
    pub chunks: usize,
}

/// One device in a plan, as numbers a user can read.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DevicePart {
    /// As its maker calls it.
    pub name: String,
    /// `cuda`, `soft` or `host`.
    pub kind: DeviceKind,
    /// Number among the devices of its kind.
    pub index: usize,
    /// Moduli of its share.
    pub moduli: usize,
    /// Operand planes of its share.
    pub planes: usize,
    /// How the product is cut.
    pub cut: DeviceCut,
    /// Bytes of each part, on the device.
    pub bytes: DeviceBytes,
    /// Sum of `bytes`.
    pub planned_bytes: u64,
    /// Ranks of the machine that share the device; 1 for one of this process alone.
    pub ranks: usize,
    /// Bytes of it that are this rank's to use; absent where all of it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_bytes: Option<u64>,
}

/// One device's part of a plan.
#[derive(Clone)]
struct Part {
    device: Arc<dyn Device>,
    share: MemoryShare,
    moduli: Range<usize>,
    weight: f64,
    input: DeviceInput,
    cut: DeviceCut,
}

impl DevicePlan {
    /// Chooses the family and each device's share and cut.
    ///
    /// # Errors
    /// [`Error::DeviceLimit`] names the least memory that would do; [`Error::Precision`].
    pub fn new(ctx: &Context, request: &DeviceRequest, limit_bytes: Option<u64>) -> Result<DevicePlan> {
        let spec = request.bits.spec(ctx.self_check());
        let set = ctx.devices();
        let family = match set.family {
            Some(family) => family,
            None => rates::faster_family(ctx, &spec)?,
        };
        let engine = set.engine(family, spec)?;
        let speeds = rates::speeds(ctx, family)?;
        let costs = (0..engine.moduli().len()).map(|at| engine.planes(at..at + 1).len() as u64).collect::<Vec<_>>();
        let mut parts = Vec::new();
        for (((index, device), moduli), &speed) in
            set.devices.iter().enumerate().zip(shares(&costs, &speeds)).zip(&speeds)
        {
            if moduli.is_empty() {
                continue; // too slow to have a share
            }
            let allowance = set.allowance(index);
            let limit_bytes = allowance.bytes(&**device).min(limit_bytes.unwrap_or(u64::MAX));
            let input = device_input(request, &engine, &moduli);
            let cut = input.choose(limit_bytes).map_err(|least| allowance.refusal(limit_bytes, least))?;
            // The host reconstructs nothing where a GPU is there to do it.
            let weight = if device.description().kind == DeviceKind::Host { speed * 1e-9 } else { speed };
            let share = allowance.share;
            parts.push(Part { device: device.clone(), share, moduli, weight, input, cut });
        }
        join_cuts(&mut parts, request.cut);
        let pinned_bytes = parts.iter().map(Part::pinned_bytes).sum();
        Ok(DevicePlan { engine, parts, pinned_bytes })
    }

    /// Name of the kernel.
    pub fn kernel(&self) -> &'static str {
        self.engine.family().name()
    }

    /// Number of moduli.
    pub fn moduli(&self) -> usize {
        self.engine.moduli().len()
    }

    /// What each device will hold.
    pub fn describe(&self) -> Vec<DevicePart> {
        let part = |part: &Part| {
            let (description, bytes) = (part.device.description(), part.input.bytes(&part.cut));
            DevicePart {
                name: description.name,
                kind: description.kind,
                index: description.index,
                moduli: part.moduli.len(),
                planes: self.engine.planes(part.moduli.clone()).len(),
                cut: part.cut,
                planned_bytes: bytes.total(),
                bytes,
                ranks: part.share.ranks,
                share_bytes: (part.share.ranks > 1).then_some(part.share.bytes),
            }
        };
        self.parts.iter().map(part).collect()
    }

    /// Batches, bands and chunks of the device that has most of each.
    pub fn cuts(&self) -> CutCounts {
        let most = |count: &dyn Fn(&Part) -> usize| self.parts.iter().map(count).max().unwrap_or(1);
        CutCounts {
            batches: most(&|part| part.moduli.len().div_ceil(part.cut.batch_moduli)),
            bands: most(&|part| part.input.bands(&part.cut).count()),
            chunks: most(&|part| part.input.chunks(&part.cut)),
        }
    }
}

impl Part {
    fn pinned_bytes(&self) -> u64 {
        let bytes = self.input.bytes(&self.cut);
        let gathered = if self.moduli.len() < self.input.all_moduli {
            2 * (self.input.all_moduli * self.cut.piece_entries * self.input.residue_bytes) as u64
        } else {
            0
        };
        bytes.input + bytes.output + bytes.tables + gathered
    }
}

/// All devices work on the same bands, strip by strip; a narrower cut never takes more.
fn join_cuts(parts: &mut [Part], forced: Option<DeviceCut>) {
    let least = |of: &dyn Fn(&DeviceCut) -> usize| parts.iter().map(|part| of(&part.cut)).min().expect("a device");
    let (band_cols, strip_cols) = (least(&|cut| cut.band_cols), least(&|cut| cut.strip_cols));
    let piece_entries = least(&|cut| cut.piece_entries);
    for part in parts {
        part.cut = DeviceCut { band_cols, strip_cols, piece_entries, ..part.cut };
        part.cut = forced.map_or(part.cut, |cut| DeviceCut {
            band_cols: cut.band_cols.max(1),
            strip_cols: cut.strip_cols.max(1),
            chunk_rows: cut.chunk_rows.max(1),
            batch_moduli: cut.batch_moduli.max(1),
            piece_entries: cut.piece_entries.max(1),
        });
    }
}

fn device_input(request: &DeviceRequest, engine: &DeviceEngine, moduli: &Range<usize>) -> DeviceInput {
    let ProductSize { contracted, rows, cols, triangle } = request.size;
    let planes = |at: usize| engine.planes(at..at + 1).len();
    DeviceInput {
        contracted,
        rows: rows.next_multiple_of(DEVICE_ALIGN),
        cols: cols.next_multiple_of(DEVICE_ALIGN),
        triangle,
        upper: request.upper,
        moduli: moduli.len(),
        all_moduli: engine.moduli().len(),
        planes_per_modulus: moduli.clone().map(planes).max().unwrap_or(1),
        operand_bytes: engine.element().operand_bytes(),
        sum_bytes: engine.element().product_bytes(),
        residue_bytes: engine.residue_bytes(),
        digits: engine.digits(),
        words: engine.words(),
        input_limbs: request.input_limbs,
        // Freivalds' test asks for the integers, so there is always room for them.
        output_limbs: engine.limbs().max(if request.plain { limbs_for(request.bits.result) } else { 0 }),
        table_bytes: engine.table_bytes() as u64,
    }
}

/// A product under way.
pub(crate) struct DeviceRun<'a> {
    pub ctx: &'a Context,
    pub problem: &'a Problem<'a>,
    pub bits: Bits,
}

impl DeviceRun<'_> {
    /// The plan of the run.
    ///
    /// # Errors
    /// Those of [`DevicePlan::new`].
    pub fn plan(&self) -> Result<DevicePlan> {
        DevicePlan::new(self.ctx, &DeviceRequest::new(self.problem, self.bits), None)
    }

    /// Fills `result`; where a device has less memory than it said, again with less.
    ///
    /// # Errors
    /// Those of [`crate::syrk_with`], [`Error::DeviceMemory`], [`Error::DeviceLost`].
    pub fn run(
        &self,
        plan: DevicePlan,
        workspace: &Workspace,
        mut result: MatrixViewMut<'_>,
    ) -> Result<(DevicePlan, Vec<DeviceReport>)> {
        let right = if self.problem.right.is_some() { &workspace.right_shifts } else { &workspace.left_shifts };
        let shifts = (&*workspace.left_shifts, &**right);
        let request = DeviceRequest::new(self.problem, self.bits);
        let (mut plan, mut last) = (plan, None);
        loop {
            let before = plan.parts.iter().map(|part| part.device.traffic()).collect::<Vec<_>>();
            match self.lanes(&plan, shifts) {
                Ok(lanes) => {
                    let reports = self.run_lanes(lanes, &before, shifts, &mut result)?;
                    return Ok((plan, reports));
                }
                Err(error @ Error::DeviceMemory { bytes, used_bytes, .. }) => {
                    // Somebody else has taken memory since it was asked for: what was got so far is what there is.
                    let limit_bytes = (used_bytes.saturating_add(bytes) / 4 * 3).min(last.unwrap_or(u64::MAX) / 4 * 3);
                    last = Some(limit_bytes);
                    plan = DevicePlan::new(self.ctx, &request, last).map_err(|_| error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn lanes(&self, plan: &DevicePlan, shifts: (&[i64], &[i64])) -> Result<Vec<Lane>> {
        let lane = |part: &Part| {
            let Part { device, share, moduli, weight, input, cut } = part.clone();
            let (engine, ranks) = (plan.engine.clone(), share.ranks);
            Lane::new(LaneParts { device, ranks, engine, moduli, weight, input, cut }, shifts)
        };
        plan.parts.iter().map(lane).collect()
    }

    fn run_lanes(
        &self,
        mut lanes: Vec<Lane>,
        before: &[Traffic],
        shifts: (&[i64], &[i64]),
        result: &mut MatrixViewMut<'_>,
    ) -> Result<Vec<DeviceReport>> {
        let (ctx, problem) = (self.ctx, self.problem);
        let blocks = [problem.left, problem.right_operand()].map(|operand| [operand.view]);
        let left = OperandRows { blocks: &blocks[0], shifts: shifts.0 };
        let right = problem.right.map(|_| OperandRows { blocks: &blocks[1], shifts: shifts.1 });
        let check = ctx.freivalds().then(|| InnerCheck::new(ctx, local::alone(), left, right)).transpose()?;
        let sink = Sink {
            ctx,
            triangle: problem.triangle().then_some(problem.uplo),
            left_shifts: shifts.0,
            right_shifts: shifts.1,
            combination: problem.combination,
            precision_bits: self.bits.result,
            largest_bits: ctx.self_check().then(|| range_check_bits(self.bits.modulus)),
            check: check.as_ref(),
        };
        for lane in &mut lanes {
            // What a lane sends back: rounded entries, or integers.
            let limbs = if sink.rounds_on_device() { limbs_for(self.bits.result) } else { lane.engine.limbs() };
            lane.input.output_limbs = limbs;
        }
        let meter = Meter::new(ctx, self.units(&lanes));
        let mut timers = lanes.iter().map(Timer::begin).collect::<Result<Vec<_>>>()?;
        let (input, cut) = (lanes[0].input, lanes[0].cut);
        for cols in input.bands(&cut) {
            let done = self.multiply(&mut lanes, &mut timers, &meter, cols.clone())?;
            let (strips, entries) = (input.strips(&cut, cols.clone()), input.band_entries(&cut, &cols));
            Recovery { sink: &sink, strips, entries }.run(&mut lanes, &mut timers, &done, result)?;
        }
        check.map_or(Ok(()), |check| check.finish(local::alone()))?;
        let each = lanes.iter().zip(timers).zip(before);
        each.map(|((lane, timer), before)| DeviceReport::new(lane, timer, before)).collect()
    }

    /// The products of a band on all devices at the same time.
    fn multiply(
        &self,
        lanes: &mut [Lane],
        timers: &mut [Timer],
        meter: &Meter<'_>,
        cols: Range<usize>,
    ) -> Result<Vec<Event>> {
        let operands = Operands { left: self.problem.left.view, right: self.problem.right_operand().view };
        let band = Band { ctx: self.ctx, meter, operands, cols, rows: self.problem.contracted() };
        if let ([lane], [timer]) = (&mut *lanes, &mut *timers) {
            return Ok(vec![band.multiply(lane, timer)?]);
        }
        let band = &band;
        room_for_threads(lanes.len())?;
        std::thread::scope(|scope| {
            let work = lanes.iter_mut().zip(timers).map(|(lane, timer)| scope.spawn(|| band.multiply(lane, timer)));
            let work = work.collect::<Vec<_>>();
            let joined = work.into_iter().map(|thread| thread.join());
            joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Units of work of all lanes.
    fn units(&self, lanes: &[Lane]) -> u64 {
        let units = lanes.iter().map(|lane| {
            let entries = lane.input.bands(&lane.cut).map(|band| lane.input.band_entries(&lane.cut, &band) as u64);
            lane.moduli.len() as u64 * self.problem.contracted() as u64 * entries.sum::<u64>()
        });
        units.sum()
    }
}
