//! Products on devices: one or several, each with a share of the moduli; the same bits as on the CPU.
//!
//! Big floats are sent to the devices and back: scaling, residues, products, reconstruction and rounding run there.
//! Promise: after any failure of a device, the operands are untouched, and the error describes the failure.

mod lane;
mod portions;
mod products;
mod rank_sum;
mod rates;
mod recover;
mod stage;

pub use lane::{DeviceReport, DeviceSeconds};
pub(crate) use rank_sum::Owners;

use crate::comm::{Reduction, agree, agreed};
use crate::context::Context;
use crate::device::{Device, DeviceKind, Event, MemoryShare, Traffic};
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::kernels::device::{DeviceEngine, DeviceFamily};
use crate::math::float::limbs_for;
use crate::matrix::Uplo;
use crate::ops::product::clock::{PhaseClock, RankPhase};
use crate::ops::product::combine::Epilogue;
use crate::ops::product::device::lane::{Lane, LaneParts};
use crate::ops::product::device::products::DeviceBand;
use crate::ops::product::device::rank_sum::RankSum;
use crate::ops::product::device::recover::DeviceRecovery;
use crate::ops::product::device::stage::EntrySink;
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::problem::{Bits, OperandRows, ProductOperand, ProductProblem, ProductSize};
use crate::ops::product::sink::ResultTarget;
use crate::ops::product::steps::Rounding;
use crate::plan::{DEVICE_ALIGN, DeviceBytes, DeviceCut, DeviceInput, shares};
use crate::site::{NodeLayout, Site};
use crate::store::{room_for_threads, start_in};
use crate::tile::TileMap;
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// Shape and bit counts of a product: all that its plan depends on besides the context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceRequest {
    /// The three sizes; the contracted rows of this process.
    pub size: ProductSize,
    /// Whether the upper triangle is wanted.
    pub upper: bool,
    /// Whether the result is the product itself, which a device can round.
    pub plain: bool,
    /// Limbs of an operand's entry.
    pub input_limbs: usize,
    /// The bit counts.
    pub bits: Bits,
    /// The cut to use; by default it is computed from the memory limit.
    pub cut: Option<DeviceCut>,
    /// Entries that ranks exchange at a time; 0 in one process.
    pub exchanged: usize,
    /// The largest number of entries that a copy carries, where the memory limit allows fewer than would be of use.
    pub most_entries: usize,
}

impl DeviceRequest {
    /// The request of the product itself, in one process, of operands with the precision of the result.
    pub fn plain(size: ProductSize, bits: Bits) -> DeviceRequest {
        DeviceRequest {
            size,
            upper: false,
            plain: true,
            input_limbs: limbs_for(bits.result),
            bits,
            cut: None,
            exchanged: 0,
            most_entries: usize::MAX,
        }
    }

    /// The request of a product in one process.
    pub fn of(problem: &ProductProblem<'_>, bits: Bits) -> DeviceRequest {
        let limbs = |operand: ProductOperand<'_>| operand.view.limbs_per_element();
        DeviceRequest {
            upper: problem.uplo == Uplo::Upper,
            plain: problem.epilogue.is_plain(),
            input_limbs: limbs(problem.left).max(limbs(problem.right_operand())),
            cut: problem.hooks.device_cut,
            ..DeviceRequest::plain(problem.size(), bits)
        }
    }
}

/// A product planned for the context's devices.
pub(crate) struct DevicePlan {
    engine: Arc<DeviceEngine>,
    parts: Vec<DeviceAssignment>,
}

/// Numbers of pieces into which a product is cut.
pub(crate) struct CutCounts {
    pub batches: usize,
    pub bands: usize,
    pub chunks: usize,
}

/// One device in a plan, as numbers a user can read.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DevicePart {
    /// Name of the device, as given by its maker.
    pub name: String,
    /// `cuda`, `soft` or `host`.
    pub kind: DeviceKind,
    /// Number of the device among the devices of its kind.
    pub index: usize,
    /// Moduli assigned to the device.
    pub moduli: usize,
    /// Operand planes assigned to the device.
    pub planes: usize,
    /// The division of the product.
    pub cut: DeviceCut,
    /// Bytes of each part, on the device.
    pub bytes: DeviceBytes,
    /// Sum of `bytes`.
    pub planned_bytes: u64,
    /// Number of ranks of the machine that share the device; 1 if only this process uses it.
    pub ranks: usize,
    /// Bytes of its memory that this rank may use; absent where it may use all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_bytes: Option<u64>,
}

/// One device's part of a plan.
#[derive(Clone)]
struct DeviceAssignment {
    device: Arc<dyn Device>,
    share: MemoryShare,
    moduli: Range<usize>,
    weight: f64,
    input: DeviceInput,
    cut: DeviceCut,
}

impl DevicePlan {
    /// Chooses the family and each device's share and cut; the family and all cuts by which residues lie on devices are
    /// the same on all ranks. Collective.
    ///
    /// # Errors
    /// On all ranks: [`Error::DeviceLimit`] with the smallest memory that suffices; [`Error::Precision`];
    /// [`Error::InvalidArgument`] if ranks force different kernels.
    pub fn new(site: Site<'_>, request: &DeviceRequest, limit_bytes: Option<u64>) -> Result<DevicePlan> {
        let (ctx, world) = (site.ctx, site.world());
        let family = rates::family(site, &request.bits.spec(ctx.self_check()))?;
        let mut plan = agreed(world, DevicePlan::of_rank(ctx, family, request, limit_bytes))?;
        let mut least = plan.common();
        world.all_reduce(Reduction::Min, &mut least)?;
        plan.narrow(least);
        Ok(plan)
    }

    /// The plan of one rank of a team whose ranks have devices like these; `requests` are the different requests of the
    /// ranks, this rank's own first.
    ///
    /// # Errors
    /// The errors of [`DevicePlan::new`].
    pub fn among(ctx: &Context, requests: &[DeviceRequest]) -> Result<DevicePlan> {
        let plan_of = |request| DevicePlan::new(Site::one_process(ctx), request, None);
        let mut plans = requests.iter().map(plan_of).collect::<Result<Vec<_>>>()?;
        let common = plans.iter().map(DevicePlan::common).collect::<Vec<_>>();
        let least = |at: usize| common.iter().map(|sizes| sizes[at]).min().expect("a request");
        let mut own = plans.swap_remove(0);
        own.narrow([0, 1, 2].map(least));
        Ok(own)
    }

    /// The sizes that are the same on all ranks.
    fn common(&self) -> [u64; 3] {
        let cut = self.parts[0].cut;
        [cut.band_cols, cut.strip_cols, cut.piece_entries].map(|size| size as u64)
    }

    /// Takes the sizes of all ranks. A narrower cut never takes more.
    fn narrow(&mut self, least: [u64; 3]) {
        let [band_cols, strip_cols, piece_entries] = least.map(|size| size as usize);
        for part in &mut self.parts {
            part.cut = DeviceCut { band_cols, strip_cols, piece_entries, ..part.cut };
        }
    }

    /// The plan of one rank by itself.
    fn of_rank(
        ctx: &Context,
        family: DeviceFamily,
        request: &DeviceRequest,
        limit_bytes: Option<u64>,
    ) -> Result<DevicePlan> {
        let spec = request.bits.spec(ctx.self_check());
        let set = ctx.devices();
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
            let cut = DeviceCut { piece_entries: cut.piece_entries.min(request.most_entries).max(1), ..cut };
            // The host reconstructs no entries where a GPU can do it.
            let weight = if device.description().kind == DeviceKind::Host { speed * 1e-9 } else { speed };
            let share = allowance.share;
            parts.push(DeviceAssignment { device: device.clone(), share, moduli, weight, input, cut });
        }
        join_cuts(&mut parts, request.cut);
        Ok(DevicePlan { engine, parts })
    }

    /// Bytes of pinned host memory.
    pub fn pinned_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.input.pinned_bytes(&part.cut)).sum()
    }

    /// Bytes of the host's lists in addition: the shifts of all columns, of the product and in transit to each device,
    /// and Freivalds' test if `check_threads` threads make it.
    pub fn list_bytes(&self, check_threads: Option<usize>) -> u64 {
        let DeviceInput { contracted, rows, cols, .. } = self.parts[0].input;
        let shifts = (1 + self.parts.len()) * 8 * (rows + cols);
        shifts as u64 + check_threads.map_or(0, |threads| InnerCheck::bytes(rows, cols, contracted, threads))
    }

    /// Bytes of the host's memory in addition, in which ranks add up the residues of the tiles of `map`.
    pub fn exchange_bytes(&self, map: &TileMap, layout: &NodeLayout) -> u64 {
        let DeviceAssignment { input, cut, .. } = &self.parts[0];
        let pending = 2 * self.parts.len(); // copies on their way to the host
        let ranks = layout.node_of.len();
        let lists = input.bands(cut).map(|band| rank_sum::list_bytes(map, ranks, input, cut, band, pending));
        rank_sum::buffer_bytes(layout, self.engine.moduli(), input, cut) + lists.max().unwrap_or(0)
    }

    /// Words of the messages about the entries of each of `ranks` ranks, each from one sender.
    pub fn message_words(&self, map: &TileMap, ranks: usize) -> Vec<u64> {
        let DeviceAssignment { input, cut, .. } = &self.parts[0];
        rank_sum::message_words(map, ranks, self.engine.moduli(), input, cut)
    }

    /// Name of the kernel.
    pub fn kernel(&self) -> &'static str {
        self.engine.family().name()
    }

    /// Number of moduli.
    pub fn moduli(&self) -> usize {
        self.engine.moduli().len()
    }

    /// The memory that each device will hold.
    pub fn describe(&self) -> Vec<DevicePart> {
        let part = |part: &DeviceAssignment| {
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
        let most = |count: &dyn Fn(&DeviceAssignment) -> usize| self.parts.iter().map(count).max().unwrap_or(1);
        CutCounts {
            batches: most(&|part| part.moduli.len().div_ceil(part.cut.batch_moduli)),
            bands: most(&|part| part.input.bands(&part.cut).count()),
            chunks: most(&|part| part.input.chunks(&part.cut)),
        }
    }
}

/// All devices work on the same bands, strip by strip; a narrower cut never takes more.
fn join_cuts(parts: &mut [DeviceAssignment], forced: Option<DeviceCut>) {
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
    let ProductSize { contracted, rows, cols, half, .. } = request.size;
    let planes = |at: usize| engine.planes(at..at + 1).len();
    DeviceInput {
        contracted,
        rows: rows.next_multiple_of(DEVICE_ALIGN),
        cols: cols.next_multiple_of(DEVICE_ALIGN),
        triangle: request.size.is_half(),
        differ: half.is_some(),
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
        // Freivalds' test needs the integers, so there is always room for them.
        output_limbs: engine.limbs().max(if request.plain { limbs_for(request.bits.result) } else { 0 }),
        table_bytes: engine.table_bytes() as u64,
        exchanged: request.exchanged,
    }
}

/// A product under way.
pub(crate) struct DeviceRun<'a> {
    pub site: Site<'a>,
    /// Rows of the left operand, and the scale shifts of its columns.
    pub left: OperandRows<'a>,
    /// Rows of the right operand; `None` for SYRK.
    pub right: Option<OperandRows<'a>>,
    pub epilogue: Epilogue<'a>,
    pub request: DeviceRequest,
    /// The ranks that own the tiles; `None` in one process.
    pub owners: Option<Owners<'a>>,
}

impl DeviceRun<'_> {
    /// Fills `target`; where a device has less memory than it reported, runs again with a plan that needs less.
    /// Collective over the ranks.
    ///
    /// # Errors
    /// The errors of [`crate::syrk_with`], [`Error::DeviceMemory`], [`Error::DeviceLost`], on all ranks.
    pub fn run(
        &self,
        plan: DevicePlan,
        mut target: ResultTarget<'_>,
        clock: &mut PhaseClock,
    ) -> Result<(DevicePlan, Vec<DeviceReport>)> {
        let (mut plan, mut last) = (plan, None);
        loop {
            let before = plan.parts.iter().map(|part| part.device.traffic()).collect::<Vec<_>>();
            let (lanes, short) = match self.lanes(&plan) {
                Err(error @ Error::DeviceMemory { .. }) => (Ok(Vec::new()), Some(error)),
                lanes => (lanes, None),
            };
            let lanes = agreed(self.site.world(), lanes)?;
            let mut any_short = [u64::from(short.is_some())];
            self.site.world().all_reduce(Reduction::Max, &mut any_short)?;
            if any_short[0] == 0 {
                let reports = self.run_lanes(lanes, &before, &mut target, clock)?;
                return Ok((plan, reports));
            }
            drop(lanes);
            if let Some(Error::DeviceMemory { bytes, used_bytes, .. }) = short {
                // Another process has taken memory since the query: the bytes obtained so far are all there are.
                last = Some((used_bytes.saturating_add(bytes) / 4 * 3).min(last.unwrap_or(u64::MAX) / 4 * 3));
            }
            plan = match DevicePlan::new(self.site, &self.request, last) {
                Ok(plan) => plan,
                // Refused on all ranks. The device's shortage explains more than this refusal, and all ranks return the
                // same one.
                Err(refusal) => {
                    return Err(agree(self.site.world(), short.map_or(Ok(()), Err)).err().unwrap_or(refusal));
                }
            };
        }
    }

    fn right(&self) -> OperandRows<'_> {
        self.right.unwrap_or(self.left)
    }

    fn lanes(&self, plan: &DevicePlan) -> Result<Vec<Lane>> {
        let lane = |part: &DeviceAssignment| {
            let DeviceAssignment { device, share, moduli, weight, input, cut } = part.clone();
            let (engine, ranks) = (plan.engine.clone(), share.ranks);
            let parts = LaneParts { device, ranks, engine, moduli, weight, input, cut };
            Lane::new(parts, self.left.shifts, self.right().shifts)
        };
        plan.parts.iter().map(lane).collect()
    }

    fn run_lanes(
        &self,
        mut lanes: Vec<Lane>,
        before: &[Traffic],
        target: &mut ResultTarget<'_>,
        clock: &mut PhaseClock,
    ) -> Result<Vec<DeviceReport>> {
        let (site, DeviceRequest { size, bits, .. }) = (self.site, self.request);
        let (ctx, world) = (site.ctx, site.world());
        let check = ctx.freivalds().then(|| InnerCheck::new(site, self.left, self.right, size.half)).transpose()?;
        let uplo = if self.request.upper { Uplo::Upper } else { Uplo::Lower };
        let (left, right) = (&self.left, &self.right());
        let sink = EntrySink {
            ctx,
            triangle: size.is_half().then_some(uplo),
            rounding: Rounding::new(ctx, left, right, &bits, self.epilogue, check.as_ref()),
        };
        for lane in &mut lanes {
            // A lane sends back rounded entries, or integers.
            let limbs = if sink.rounds_on_device() { limbs_for(bits.result) } else { lane.engine.limbs() };
            lane.input.output_limbs = limbs;
        }
        let meter = Meter::new(ctx, self.units(&lanes));
        agreed(world, lanes.iter_mut().try_for_each(Lane::begin))?;
        let (input, cut) = (lanes[0].input, lanes[0].cut);
        for cols in input.bands(&cut) {
            let multiplied = clock.time(RankPhase::Product, || self.multiply(&mut lanes, &meter, cols.clone()));
            let done = agreed(world, multiplied)?;
            let (strips, entries) = (input.strips(&cut, cols.clone()), input.band_entries(&cut, &cols));
            match self.owners {
                None => DeviceRecovery { sink: &sink, strips, entries }.run(&mut lanes, &done, target)?,
                Some(owners) => {
                    let sum = RankSum { world, owners, sink: &sink, meter: &meter, strips, entries, done: &done };
                    let sent = clock.time(RankPhase::Exchange, || sum.run(&mut lanes, target))?;
                    clock.note_sent(sent);
                }
            }
        }
        check.map_or(Ok(()), |check| check.finish(world))?;
        let reports = lanes.iter().zip(before).map(|(lane, before)| lane.report(before));
        agreed(world, reports.collect())
    }

    /// The products of a band on all devices at the same time.
    fn multiply(&self, lanes: &mut [Lane], meter: &Meter<'_>, cols: Range<usize>) -> Result<Vec<Event>> {
        let band = DeviceBand { ctx: self.site.ctx, meter, left: self.left.blocks, right: self.right().blocks, cols };
        if let [lane] = &mut *lanes {
            return Ok(vec![band.multiply(lane)?]);
        }
        let band = &band;
        room_for_threads(lanes.len())?;
        std::thread::scope(|scope| {
            let work = lanes.iter_mut().map(|lane| start_in(scope, || band.multiply(lane)));
            let work = work.collect::<Vec<_>>();
            let joined = work.into_iter().map(|thread| thread.join());
            joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Units of work of all lanes.
    fn units(&self, lanes: &[Lane]) -> u64 {
        let units = lanes.iter().map(|lane| {
            let entries = lane.input.bands(&lane.cut).map(|band| lane.input.band_entries(&lane.cut, &band) as u64);
            lane.moduli.len() as u64 * self.request.size.contracted as u64 * entries.sum::<u64>()
        });
        units.sum()
    }
}
