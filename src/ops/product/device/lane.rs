//! One device during a call: its share of the moduli, its memory, its streams; its times, and what it reports of them.

use crate::device::{Device, DeviceKind, Event, Pinned, Region, Stream, Streams as Lease, Traffic};
use crate::error::Result;
use crate::kernels::device::{DeviceEngine, DeviceTables, Launcher};
use crate::ops::product::device::stage::float_bytes;
use crate::plan::{DeviceCut, DeviceInput};
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// The streams of a lane. Each runs in order; work that depends on another stream waits for an event.
pub(super) struct Streams {
    /// Big floats in.
    pub load: Stream,
    /// Digits.
    pub prepare: Stream,
    /// Operand planes, products, integers.
    pub compute: Stream,
    /// Residues of products.
    pub reduce: Stream,
    /// Finished entries out.
    pub store: Stream,
    _lease: Lease,
}

/// Host and device memory of one of two copies that alternate, and the event after which it is free again.
pub(super) struct CopySlot {
    /// On the host.
    pub pinned: Pinned,
    /// On the device.
    pub region: Region,
    /// The event after which the device no longer uses it.
    pub free: Option<Event>,
}

/// Memory on the device that alternates, and the event after which it is free again.
pub(super) struct Half {
    /// On the device.
    pub region: Region,
    /// The event after which the device no longer uses it.
    pub free: Option<Event>,
}

/// One device.
pub(super) struct Lane {
    pub device: Arc<dyn Device>,
    pub engine: Arc<DeviceEngine>,
    pub tables: DeviceTables,
    /// Its share of the moduli.
    pub moduli: Range<usize>,
    /// Its part of the reconstruction, as a weight.
    pub weight: f64,
    /// Ranks that share the device.
    pub ranks: usize,
    pub input: DeviceInput,
    pub cut: DeviceCut,
    pub streams: Streams,
    pub inputs: [CopySlot; 2],
    pub digits: Vec<Half>,
    pub planes: Region,
    pub sums: [Half; 2],
    /// Products so far: which half of the sums is next.
    pub turn: usize,
    pub residues: Region,
    pub integers: Region,
    pub outputs: [CopySlot; 2],
    /// Residues of all moduli for a piece, where other devices or other ranks have a part in them.
    pub gathered: Vec<CopySlot>,
    /// Where ranks have parts, a shift for each entry of a piece.
    pub entry_shifts: Option<[CopySlot; 2]>,
    pub left_shifts: Region,
    pub right_shifts: Region,
    timer: Timer,
    /// Bytes allocated here.
    pub bytes: u64,
    /// Multiply-adds of the products submitted so far.
    pub multiply_adds: u64,
}

/// A lane, and one of the two slots of its outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneSlot {
    /// Number of the lane.
    pub lane: usize,
    /// 0 or 1.
    pub slot: usize,
}

/// Bytes of the words in which a device reports faults, behind the entries of an output.
pub(super) const FAULT_BYTES: usize = 16;

/// The parts of a lane.
pub(super) struct LaneParts {
    pub device: Arc<dyn Device>,
    pub ranks: usize,
    pub engine: Arc<DeviceEngine>,
    pub moduli: Range<usize>,
    pub weight: f64,
    pub input: DeviceInput,
    pub cut: DeviceCut,
}

impl Lane {
    /// Allocates everything and sends the tables and the shifts.
    ///
    /// # Errors
    /// [`crate::Error::DeviceMemory`] where the device has less memory than it reported.
    pub fn new(parts: LaneParts, left_shifts: &[i64], right_shifts: &[i64]) -> Result<Lane> {
        let LaneParts { device, ranks, engine, moduli, weight, input, cut } = parts;
        let before = device.used_bytes();
        let bytes = input.bytes(&cut);
        let mut lease = Lease::of(&device);
        let mut stream = || lease.take();
        let (load, prepare, compute) = (stream()?, stream()?, stream()?);
        let streams = Streams { load, prepare, compute, reduce: stream()?, store: stream()?, _lease: lease };
        let half = |bytes: u64| Ok::<_, crate::Error>(Half { region: region(&*device, bytes)?, free: None });
        let slot = |on_device: u64, on_host: usize| {
            let pinned = device.allocate_pinned(on_host)?;
            Ok::<_, crate::Error>(CopySlot { pinned, region: region(&*device, on_device)?, free: None })
        };
        let in_bytes = float_bytes(input.piece_cols(&cut) * cut.chunk_rows, input.input_limbs);
        let made = input.made_entries(&cut);
        let out_bytes = float_bytes(made, input.output_limbs) + FAULT_BYTES;
        let sets = input.chunks(&cut).clamp(1, 2) as u64;
        let (gather_bytes, shift_bytes) = (input.gathered_bytes(&cut), input.entry_shift_bytes(&cut));
        let digits = (0..sets).map(|_| half(bytes.digits / sets)).collect::<Result<Vec<_>>>()?;
        let tables = engine.upload(&*device, streams.compute)?;
        let lane = Lane {
            inputs: [slot(in_bytes as u64, in_bytes)?, slot(in_bytes as u64, in_bytes)?],
            planes: region(&*device, bytes.planes)?,
            sums: [half(bytes.sums / 2)?, half(bytes.sums / 2)?],
            residues: region(&*device, (input.largest_band_entries(&cut) * input.moduli * input.residue_bytes) as u64)?,
            integers: region(&*device, (made * 4 * (input.words + 1)) as u64)?,
            outputs: [slot(out_bytes as u64, out_bytes)?, slot(out_bytes as u64, out_bytes)?],
            gathered: (0..input.gathered()).map(|_| slot(gather_bytes as u64, gather_bytes)).collect::<Result<_>>()?,
            entry_shifts: match shift_bytes {
                0 => None,
                bytes => Some([slot(bytes as u64, bytes)?, slot(bytes as u64, bytes)?]),
            },
            left_shifts: shift_region(&*device, streams.compute, input.rows, left_shifts)?,
            right_shifts: shift_region(&*device, streams.compute, input.cols, right_shifts)?,
            timer: Timer::default(),
            bytes: 0,
            multiply_adds: 0,
            turn: 0,
            digits,
            tables,
            streams,
            moduli,
            weight,
            ranks,
            input,
            cut,
            engine,
            device,
        };
        // Later streams read data that this one sent.
        let sent = lane.device.record(lane.streams.compute)?;
        [lane.streams.prepare, lane.streams.reduce].iter().try_for_each(|&other| lane.device.wait(other, &sent))?;
        Ok(Lane { bytes: lane.device.used_bytes().saturating_sub(before), ..lane })
    }

    /// A call begins.
    pub fn begin(&mut self) -> Result<()> {
        self.timer = Timer::begin(&*self.device, self.streams.load)?;
        Ok(())
    }

    /// A part of the call begins on the compute stream.
    pub fn start(&mut self, part: TimedPart) -> Result<()> {
        self.timer.start(part, &*self.device, self.streams.compute)
    }

    /// The part that began last ends.
    pub fn stop(&mut self) -> Result<()> {
        self.timer.stop(&*self.device, self.streams.compute)
    }

    /// The work of the device in a finished call; `before` is its traffic at the start.
    pub fn report(&self, before: &Traffic) -> Result<DeviceReport> {
        let description = self.device.description();
        let seconds = self.timer.finish(&*self.device, self.streams.store)?;
        Ok(DeviceReport {
            name: description.name,
            kind: description.kind,
            index: description.index,
            moduli: self.moduli.len(),
            planes: self.engine.planes(self.moduli.clone()).len(),
            cut: self.cut,
            device_bytes: self.bytes,
            multiply_adds: self.multiply_adds,
            traffic: self.device.traffic().since(before),
            seconds,
            ranks: self.ranks,
        })
    }

    /// A launcher on one of the streams.
    pub fn launcher(&self, stream: Stream) -> Launcher<'_> {
        Launcher::new(&*self.device, stream, &self.engine, &self.tables)
    }

    /// Lets `stream` continue after `event`, if there is one.
    pub fn wait(&self, stream: Stream, event: Option<&Event>) -> Result<()> {
        event.map_or(Ok(()), |event| self.device.wait(stream, event))
    }
}

fn region(device: &dyn Device, bytes: u64) -> Result<Region> {
    Ok(device.allocate(bytes as usize)?.whole())
}

/// Shifts on the device, padded with zeros.
fn shift_region(device: &dyn Device, stream: Stream, count: usize, shifts: &[i64]) -> Result<Region> {
    let pinned = device.allocate_pinned(count * 8)?;
    pinned.lock()?[..size_of_val(shifts)].copy_from_slice(bytemuck::cast_slice(shifts));
    let region = region(device, count as u64 * 8)?;
    device.upload(stream, &pinned, 0, &region)?;
    Ok(region)
}

/// A part of a call whose device time is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimedPart {
    /// Conversion of digits to operand planes.
    ToResidues,
    /// Products of planes, including the reductions that do not overlap them.
    Product,
    /// Conversion of residues to integers.
    Reconstruct,
    /// Conversion of integers to big floats.
    Round,
}

/// Seconds measured by a device's clock, without copies and scaling, which overlap the steps named here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceSeconds {
    /// Conversion of digits to operand planes.
    pub to_residues: f64,
    /// Products of planes, including the reductions that do not overlap them.
    pub product: f64,
    /// Conversion of residues to integers.
    pub reconstruct: f64,
    /// Conversion of integers to big floats.
    pub round: f64,
    /// Time from the first copy to the device to the last copy from it.
    pub total: f64,
}

/// Intervals of the compute stream.
#[derive(Default)]
struct Timer {
    open: Option<(TimedPart, Event)>,
    closed: Vec<(TimedPart, Event, Event)>,
    first: Option<Event>,
}

impl Timer {
    /// Begins with a call, whose first copies run on `stream`.
    pub fn begin(device: &dyn Device, stream: Stream) -> Result<Timer> {
        Ok(Timer { first: Some(device.record(stream)?), ..Timer::default() })
    }

    /// A part begins on the compute stream.
    pub fn start(&mut self, part: TimedPart, device: &dyn Device, compute: Stream) -> Result<()> {
        self.open = Some((part, device.record(compute)?));
        Ok(())
    }

    /// The part that began last ends.
    pub fn stop(&mut self, device: &dyn Device, compute: Stream) -> Result<()> {
        let (part, start) = self.open.take().expect("a part that began");
        self.closed.push((part, start, device.record(compute)?));
        Ok(())
    }

    /// Sums, once everything is done; the last copies run on `stream`.
    pub fn finish(&self, device: &dyn Device, stream: Stream) -> Result<DeviceSeconds> {
        let last = device.record(stream)?;
        device.synchronize(&last)?;
        let mut seconds = DeviceSeconds::default();
        if let Some(first) = &self.first {
            seconds.total = device.seconds_between(first, &last)?;
        }
        for (part, start, end) in &self.closed {
            let sum = match part {
                TimedPart::ToResidues => &mut seconds.to_residues,
                TimedPart::Product => &mut seconds.product,
                TimedPart::Reconstruct => &mut seconds.reconstruct,
                TimedPart::Round => &mut seconds.round,
            };
            *sum += device.seconds_between(start, end)?;
        }
        Ok(seconds)
    }
}

/// The work of one device in one call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
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
    /// The blocking: columns of a strip, rows of a chunk, moduli of a batch, and the like.
    pub cut: DeviceCut,
    /// Bytes allocated on it.
    pub device_bytes: u64,
    /// Multiply-adds of residue planes, including those on padding and outside a triangle.
    pub multiply_adds: u64,
    /// Bytes copied to and from the device.
    pub traffic: Traffic,
    /// Seconds measured by the device's clock.
    pub seconds: DeviceSeconds,
    /// Number of ranks of the machine that share the device; 1 if only this process uses it.
    pub ranks: usize,
}
