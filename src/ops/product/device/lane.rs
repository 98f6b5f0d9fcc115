//! One device during a call: its share of the moduli, its memory, its streams.

use crate::device::{Device, Event, Pinned, Region, Stream, Streams as Lease};
use crate::error::Result;
use crate::kernels::device::{DeviceEngine, DeviceTables, Launcher};
use crate::ops::product::device::stage::float_bytes;
use crate::ops::product::device::timer::{DeviceSeconds, TimedPart, Timer};
use crate::plan::{DeviceCut, DeviceInput};
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
    /// When the device is done with it.
    pub free: Option<Event>,
}

/// Memory on the device that alternates, and the event after which it is free again.
pub(super) struct Half {
    /// On the device.
    pub region: Region,
    /// When the device is done with it.
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

    /// Device seconds of the call, once everything is done.
    pub fn seconds(&self) -> Result<DeviceSeconds> {
        self.timer.finish(&*self.device, self.streams.store)
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
