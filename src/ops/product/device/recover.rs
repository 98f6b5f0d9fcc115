//! The result of one band: residues of all devices together, then the entries that they represent, and the copy out.
//!
//! Each piece of the band goes to one lane. Where several lanes have residues, the others send theirs to it through the
//! host. Entries are reconstructed and rounded while the previous ones are copied out and stored.

use crate::device::{Event, Region};
use crate::error::Result;
use crate::kernels::device::{DeviceReconstruct, Integers, PackIntegers, Residues, Round};
use crate::ops::product::device::lane::{FAULT_BYTES, Lane, LaneSlot, TimedPart};
use crate::ops::product::device::portions::{Portion, of_strip};
use crate::ops::product::device::stage::{EntrySink, float_bytes};
use crate::ops::product::inner_check::RowSums;
use crate::ops::product::sink::ResultTarget;
use crate::plan::Strip;
use std::collections::VecDeque;
use std::ops::Range;

/// Reconstruction of a band.
pub(super) struct DeviceRecovery<'a, 'b> {
    pub sink: &'a EntrySink<'b>,
    pub strips: Vec<Strip>,
    /// Entries of the band.
    pub entries: usize,
}

impl DeviceRecovery<'_, '_> {
    /// Fills the band of the result; the events `done` mark when each lane's residues are there.
    ///
    /// # Errors
    /// [`crate::Error::SelfCheck`], [`crate::Error::ExponentRange`], [`crate::Error::DeviceLost`].
    pub fn run(&self, lanes: &mut [Lane], done: &[Event], target: &mut ResultTarget<'_>) -> Result<()> {
        let largest = lanes.iter().map(|lane| lane.cut.piece_entries).min().expect("a lane");
        let mut finish = Finish::new(self.sink, lanes);
        for portion in self.strips.iter().flat_map(|strip| of_strip(strip, largest)) {
            let (count, first) = (portion.piece.entries(), portion.first);
            let at = finish.place(lanes, count, target)?;
            let gathers = !lanes[at.lane].gathered.is_empty();
            let (region, stride) = match gathers {
                true => (self.gather(lanes, at, &portion, done)?, count),
                false => (lanes[at.lane].residues.from(first * lanes[at.lane].input.residue_bytes), self.entries),
            };
            let residues = Residues { region: &region, first_modulus: 0, stride, offset: 0 };
            finish.make(lanes, at, residues, vec![portion])?;
            if gathers {
                let lane = &mut lanes[at.lane];
                lane.gathered[at.slot].free = Some(lane.device.record(lane.streams.compute)?);
            }
        }
        finish.store_all(lanes, target)
    }

    /// Brings the residues of a piece, of all moduli, to a lane; returns where they lie.
    fn gather(&self, lanes: &mut [Lane], at: LaneSlot, portion: &Portion, done: &[Event]) -> Result<Region> {
        let LaneSlot { lane: index, slot } = at;
        let piece = PiecePlanes { count: portion.piece.entries(), size: lanes[index].input.residue_bytes };
        let plane = |modulus: usize| piece.of(modulus);
        let target = lanes[index].gathered[slot].region.clone();
        let compute = lanes[index].streams.compute;
        lanes[index].wait(compute, lanes[index].gathered[slot].free.as_ref())?;
        for other in 0..lanes.len() {
            let moduli = lanes[other].moduli.clone();
            if other == index {
                for modulus in moduli.clone() {
                    let from = self.source(&lanes[other], modulus - moduli.start, portion);
                    lanes[index].device.copy(compute, &from, &target.region(plane(modulus)))?;
                }
                continue;
            }
            self.bring(&lanes[other], slot, &piece, portion, &done[other])?;
            let [from, to] = [other, index].map(|lane| &lanes[lane].gathered[slot].pinned);
            let range = plane(moduli.start).start..plane(moduli.end - 1).end;
            to.lock()?[range.clone()].copy_from_slice(&from.lock()?[range.clone()]);
            lanes[index].device.upload(compute, to, range.start, &target.region(range))?;
        }
        Ok(target)
    }

    /// The residues of a portion modulo a lane's own modulus number `local`.
    fn source(&self, lane: &Lane, local: usize, portion: &Portion) -> Region {
        let size = lane.input.residue_bytes;
        let first = (local * self.entries + portion.first) * size;
        lane.residues.region(first..first + portion.piece.entries() * size)
    }

    /// Submits the copies of the residues of a portion that a lane has to its pinned memory.
    fn bring(&self, lane: &Lane, slot: usize, piece: &PiecePlanes, portion: &Portion, done: &Event) -> Result<()> {
        let pinned = &lane.gathered[slot].pinned;
        drop(pinned.lock()?); // copies of an earlier piece from it are done
        lane.device.wait(lane.streams.store, done)?;
        let moduli = lane.moduli.clone();
        moduli.clone().try_for_each(|modulus| {
            let from = self.source(lane, modulus - moduli.start, portion);
            lane.device.download(lane.streams.store, &from, pinned, piece.of(modulus).start)
        })
    }
}

/// Residues of a piece modulo all moduli, one after the other.
struct PiecePlanes {
    /// Entries.
    count: usize,
    /// Bytes of a residue.
    size: usize,
}

impl PiecePlanes {
    /// Bytes of the residues modulo one modulus.
    fn of(&self, modulus: usize) -> Range<usize> {
        modulus * self.count * self.size..(modulus + 1) * self.count * self.size
    }
}

/// Entries on their way to the host.
struct Pending {
    at: LaneSlot,
    portions: Vec<Portion>,
}

/// The last steps of a call, of one copy of entries after the other.
pub(super) struct Finish<'a, 'b> {
    sink: &'a EntrySink<'b>,
    pending: VecDeque<Pending>,
    turns: Turns,
    /// The sums that each thread adds to Freivalds' test.
    sums: Vec<Option<RowSums>>,
}

impl<'a, 'b> Finish<'a, 'b> {
    /// The last steps for `sink`, before the first copy.
    pub fn new(sink: &'a EntrySink<'b>, lanes: &[Lane]) -> Finish<'a, 'b> {
        Finish { sink, pending: VecDeque::new(), turns: Turns::new(lanes), sums: sink.row_sums() }
    }

    /// Where the next copy, of `entries` entries, is made; the slot's previous content is stored first.
    ///
    /// # Errors
    /// The errors of [`Finish::store_all`].
    pub fn place(&mut self, lanes: &[Lane], entries: usize, target: &mut ResultTarget<'_>) -> Result<LaneSlot> {
        let at = self.turns.next(entries);
        while self.pending.iter().any(|other| other.at == at) {
            let oldest = self.pending.pop_front().expect("one is pending");
            self.store(lanes, &oldest, target)?;
        }
        Ok(at)
    }

    /// Submits the integers and big floats of a copy, and its transfer to the host. A copy of one rectangle uses shifts
    /// on the device, any other brings one for each entry.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    pub fn make(
        &mut self,
        lanes: &mut [Lane],
        at: LaneSlot,
        residues: Residues<'_>,
        portions: Vec<Portion>,
    ) -> Result<()> {
        let (lane, slot) = (&mut lanes[at.lane], at.slot);
        let count = portions.iter().map(|portion| portion.piece.entries()).sum();
        let (compute, store) = (lane.streams.compute, lane.streams.store);
        lane.start(TimedPart::Reconstruct)?;
        let integers = lane.integers.clone();
        let integers = Integers { region: &integers, entries: count };
        lane.launcher(compute).reconstruct(&DeviceReconstruct { residues, integers })?;
        lane.stop()?;
        lane.start(TimedPart::Round)?;
        lane.wait(compute, lane.outputs[slot].free.as_ref())?;
        let entries_bytes = float_bytes(count, lane.input.output_limbs);
        let out = lane.outputs[slot].region.region(0..entries_bytes + FAULT_BYTES);
        match self.sink.rounds_on_device() {
            true => self.round(lane, slot, &portions, integers, &out)?,
            false => lane.launcher(compute).pack(&PackIntegers { integers, packed: &out.region(0..entries_bytes) })?,
        }
        lane.stop()?;
        let rounded = lane.device.record(compute)?;
        lane.device.wait(store, &rounded)?;
        lane.device.download(store, &out, &lane.outputs[slot].pinned, 0)?;
        lane.outputs[slot].free = Some(lane.device.record(store)?);
        self.pending.push_back(Pending { at, portions });
        Ok(())
    }

    /// Submits the rounding of integers.
    fn round(
        &self,
        lane: &Lane,
        slot: usize,
        portions: &[Portion],
        integers: Integers<'_>,
        out: &Region,
    ) -> Result<()> {
        let (compute, count) = (lane.streams.compute, integers.entries);
        let entries_bytes = float_bytes(count, lane.input.output_limbs);
        let (rows, left, right) = match &lane.entry_shifts {
            None => {
                let piece = &portions[0].piece;
                let left = lane.left_shifts.region(piece.rows.start * 8..piece.rows.end * 8);
                let right = lane.right_shifts.region(piece.cols.start * 8..piece.cols.end * 8);
                (piece.rows.len(), left, Some(right))
            }
            Some(shifts) => {
                let (pinned, region) = (&shifts[slot].pinned, shifts[slot].region.region(0..count * 8));
                let mut bytes = pinned.lock()?;
                self.sink.entry_shifts(portions, bytemuck::cast_slice_mut(&mut bytes[..count * 8]));
                drop(bytes);
                lane.device.upload(compute, pinned, 0, &region)?;
                (count, region, None)
            }
        };
        let faults = out.from(entries_bytes);
        lane.launcher(compute).clear_faults(&faults)?;
        lane.launcher(compute).round(&Round {
            integers,
            rows,
            left_shifts: Some(&left),
            right_shifts: right.as_ref(),
            precision_bits: self.sink.rounding.precision_bits,
            heads: &out.region(0..count * 8),
            limbs: &out.region(count * 8..entries_bytes),
            largest_bits: self.sink.rounding.largest_bits,
            faults: &faults,
            first_index: 0,
        })
    }

    /// Stores all copies that are still in transit, and returns the sums for Freivalds' test.
    ///
    /// # Errors
    /// [`crate::Error::SelfCheck`], [`crate::Error::ExponentRange`], [`crate::Error::DeviceLost`].
    pub fn store_all(mut self, lanes: &[Lane], target: &mut ResultTarget<'_>) -> Result<()> {
        while let Some(oldest) = self.pending.pop_front() {
            self.store(lanes, &oldest, target)?;
        }
        if let Some(check) = self.sink.rounding.check {
            self.sums.into_iter().flatten().for_each(|sums| check.collect(sums));
        }
        Ok(())
    }

    /// Stores entries that have arrived on the host into the result.
    fn store(&mut self, lanes: &[Lane], pending: &Pending, target: &mut ResultTarget<'_>) -> Result<()> {
        let (lane, portions) = (&lanes[pending.at.lane], &pending.portions);
        let limbs = lane.input.output_limbs;
        let bytes = lane.outputs[pending.at.slot].pinned.lock()?;
        if !self.sink.rounds_on_device() {
            return self.sink.finish(portions, &bytes, limbs, &mut self.sums, target);
        }
        let end = float_bytes(portions.iter().map(|portion| portion.piece.entries()).sum(), limbs);
        let faults = [0, 8].map(|at| bytemuck::pod_read_unaligned::<u64>(&bytes[end + at..][..8]));
        self.sink.faults(portions, faults, &bytes)?;
        self.sink.store_rounded(portions, &bytes, target)
    }
}

/// The lane that takes the next piece, by weight, and the slot of its two that receives the piece.
struct Turns {
    weights: Vec<f64>,
    loads: Vec<f64>,
    counts: Vec<usize>,
}

impl Turns {
    fn new(lanes: &[Lane]) -> Turns {
        let weights = lanes.iter().map(|lane| lane.weight).collect::<Vec<_>>();
        Turns { loads: vec![0.0; weights.len()], counts: vec![0; weights.len()], weights }
    }

    fn next(&mut self, entries: usize) -> LaneSlot {
        let after = |lane: usize| (self.loads[lane] + entries as f64) / self.weights[lane].max(1e-300);
        let lane = (0..self.weights.len()).min_by(|&a, &b| after(a).total_cmp(&after(b))).expect("a lane");
        self.loads[lane] += entries as f64;
        self.counts[lane] += 1;
        LaneSlot { lane, slot: (self.counts[lane] - 1) % 2 }
    }
}
