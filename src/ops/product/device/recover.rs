//! The result of one band: residues of all devices together, integers, big floats, out.
//!
//! A piece of the band goes to one lane, which reconstructs and rounds it while the piece before is copied out and
//! stored. Where several lanes have residues, those of the others come to it over the host.

use crate::device::{Event, Region};
use crate::error::Result;
use crate::kernels::device::{Integers, Pack, Reconstruct, Residues, Round};
use crate::matrix::MatrixViewMut;
use crate::ops::product::device::lane::{FAULT_BYTES, Lane};
use crate::ops::product::device::stage::{Piece, Sink, float_bytes};
use crate::ops::product::device::timer::{Part, Timer};
use crate::plan::Strip;
use std::collections::VecDeque;
use std::ops::Range;

/// A piece of a strip and where its entries lie in the band.
struct Portion {
    piece: Piece,
    first: usize,
}

/// A piece on its way to the host.
struct Pending {
    lane: usize,
    slot: usize,
    piece: Piece,
}

/// Reconstruction of a band.
pub(super) struct Recovery<'a, 'b> {
    pub sink: &'a Sink<'b>,
    pub strips: Vec<Strip>,
    /// Entries of the band.
    pub entries: usize,
}

impl Recovery<'_, '_> {
    /// Fills the band of `result`; `done` says when each lane's residues are there.
    ///
    /// # Errors
    /// [`crate::Error::SelfCheck`], [`crate::Error::ExponentRange`], [`crate::Error::DeviceLost`].
    pub fn run(
        &self,
        lanes: &mut [Lane],
        timers: &mut [Timer],
        done: &[Event],
        result: &mut MatrixViewMut<'_>,
    ) -> Result<()> {
        let largest = lanes.iter().map(|lane| lane.cut.piece_entries).min().expect("a lane");
        let mut pending = VecDeque::new();
        let mut turns = Turns::new(lanes);
        for portion in self.strips.iter().flat_map(|strip| portions(strip, largest)) {
            let (index, slot) = turns.next(portion.piece.entries());
            while pending.iter().any(|other: &Pending| (other.lane, other.slot) == (index, slot)) {
                let oldest = pending.pop_front().expect("one is pending");
                self.store(lanes, &oldest, result)?;
            }
            let count = portion.piece.entries();
            let (region, stride) = match lanes[index].gathered.is_some() {
                true => (self.gather(lanes, (index, slot), &portion, done)?, count),
                false => {
                    let from = portion.first * lanes[index].input.residue_bytes;
                    (lanes[index].residues.from(from), self.entries)
                }
            };
            self.reconstruct(&mut lanes[index], &mut timers[index], (region, stride), &portion.piece, slot)?;
            pending.push_back(Pending { lane: index, slot, piece: portion.piece });
        }
        pending.iter().try_for_each(|oldest| self.store(lanes, oldest, result))
    }

    /// Integers and big floats of a piece, and the copy out.
    fn reconstruct(
        &self,
        lane: &mut Lane,
        timer: &mut Timer,
        (residues, stride): (Region, usize),
        piece: &Piece,
        slot: usize,
    ) -> Result<()> {
        let (compute, store, count) = (lane.streams.compute, lane.streams.store, piece.entries());
        timer.start(Part::Reconstruct, lane)?;
        let integers = lane.integers.clone();
        let integers = Integers { region: &integers, entries: count };
        let residues = Residues { region: &residues, first_modulus: 0, stride, offset: 0 };
        lane.launcher(compute).reconstruct(&Reconstruct { residues, integers })?;
        if let Some(gathered) = lane.gathered.as_mut() {
            gathered[slot].free = Some(lane.device.record(compute)?);
        }
        timer.stop(lane)?;
        timer.start(Part::Round, lane)?;
        lane.wait(compute, lane.outputs[slot].free.as_ref())?;
        let entries_bytes = float_bytes(count, lane.input.output_limbs);
        let out = lane.outputs[slot].region.region(0..entries_bytes + FAULT_BYTES);
        if self.sink.rounds_on_device() {
            let faults = out.from(entries_bytes);
            lane.launcher(compute).clear_faults(&faults)?;
            lane.launcher(compute).round(&Round {
                integers,
                rows: piece.rows.len(),
                left_shifts: Some(&lane.left_shifts.region(piece.rows.start * 8..piece.rows.end * 8)),
                right_shifts: Some(&lane.right_shifts.region(piece.cols.start * 8..piece.cols.end * 8)),
                precision_bits: self.sink.precision_bits,
                heads: &out.region(0..count * 8),
                limbs: &out.region(count * 8..entries_bytes),
                largest_bits: self.sink.largest_bits,
                faults: &faults,
                first_index: 0,
            })?;
        } else {
            lane.launcher(compute).pack(&Pack { integers, packed: &out.region(0..entries_bytes) })?;
        }
        timer.stop(lane)?;
        let rounded = lane.device.record(compute)?;
        lane.device.wait(store, &rounded)?;
        lane.device.download(store, &out, &lane.outputs[slot].pinned, 0)?;
        lane.outputs[slot].free = Some(lane.device.record(store)?);
        Ok(())
    }

    /// Takes a piece that has come out into the result.
    fn store(&self, lanes: &[Lane], pending: &Pending, result: &mut MatrixViewMut<'_>) -> Result<()> {
        let lane = &lanes[pending.lane];
        let limbs = lane.input.output_limbs;
        let bytes = lane.outputs[pending.slot].pinned.lock()?;
        if !self.sink.rounds_on_device() {
            return self.sink.finish(&pending.piece, &bytes, limbs, result);
        }
        let end = float_bytes(pending.piece.entries(), limbs);
        let faults = [0, 8].map(|at| bytemuck::pod_read_unaligned::<u64>(&bytes[end + at..][..8]));
        self.sink.faults(&pending.piece, faults, &bytes)?;
        self.sink.store_rounded(&pending.piece, &bytes, result)
    }

    /// Brings the residues of a piece, of all moduli, to the lane `index`; returns where they lie.
    fn gather(
        &self,
        lanes: &mut [Lane],
        (index, slot): (usize, usize),
        portion: &Portion,
        done: &[Event],
    ) -> Result<Region> {
        let piece = Planes { count: portion.piece.entries(), size: lanes[index].input.residue_bytes };
        let plane = |modulus: usize| piece.of(modulus);
        let target = lanes[index].gathered.as_ref().expect("several lanes")[slot].region.clone();
        let compute = lanes[index].streams.compute;
        lanes[index].wait(compute, lanes[index].gathered.as_ref().and_then(|slots| slots[slot].free.as_ref()))?;
        for other in 0..lanes.len() {
            let moduli = lanes[other].moduli.clone();
            if other == index {
                for modulus in moduli.clone() {
                    let from = self.source(&lanes[other], modulus - moduli.start, portion);
                    lanes[index].device.copy(compute, &from, &target.region(plane(modulus)))?;
                }
                continue;
            }
            let bytes = self.bring(&lanes[other], slot, (&piece, portion), &done[other])?;
            let slots = lanes[index].gathered.as_ref().expect("several lanes");
            let range = plane(moduli.start).start..plane(moduli.end - 1).end;
            slots[slot].pinned.lock()?[range.clone()].copy_from_slice(&bytes);
            lanes[index].device.upload(compute, &slots[slot].pinned, range.start, &target.region(range))?;
        }
        Ok(target)
    }

    /// The residues of a portion modulo a lane's own modulus number `local`.
    fn source(&self, lane: &Lane, local: usize, portion: &Portion) -> Region {
        let size = lane.input.residue_bytes;
        let first = (local * self.entries + portion.first) * size;
        lane.residues.region(first..first + portion.piece.entries() * size)
    }

    /// The residues of a portion that a lane has, on the host.
    fn bring(&self, lane: &Lane, slot: usize, (piece, portion): (&Planes, &Portion), done: &Event) -> Result<Vec<u8>> {
        let pinned = &lane.gathered.as_ref().expect("several lanes")[slot].pinned;
        drop(pinned.lock()?); // copies of an earlier piece from it are done
        lane.device.wait(lane.streams.store, done)?;
        let moduli = lane.moduli.clone();
        for modulus in moduli.clone() {
            let from = self.source(lane, modulus - moduli.start, portion);
            lane.device.download(lane.streams.store, &from, pinned, piece.of(modulus).start)?;
        }
        let bytes = pinned.lock()?;
        Ok(bytes[piece.of(moduli.start).start..piece.of(moduli.end - 1).end].to_vec())
    }
}

/// Residues of a piece modulo all moduli, one after the other.
struct Planes {
    /// Entries.
    count: usize,
    /// Bytes of a residue.
    size: usize,
}

impl Planes {
    /// Bytes of the residues modulo one modulus.
    fn of(&self, modulus: usize) -> Range<usize> {
        modulus * self.count * self.size..(modulus + 1) * self.count * self.size
    }
}

/// The pieces of a strip: whole columns, or parts of one where it is longer than a piece.
fn portions(strip: &Strip, largest: usize) -> Vec<Portion> {
    let height = strip.rows.len();
    let (rows, cols) = (largest.min(height), (largest / height).max(1));
    let mut portions = Vec::new();
    for col in strip.cols.clone().step_by(cols) {
        let cols = col..(col + cols).min(strip.cols.end);
        for row in strip.rows.clone().step_by(rows) {
            let piece = Piece { rows: row..(row + rows).min(strip.rows.end), cols: cols.clone() };
            let first = strip.offset + (col - strip.cols.start) * height + (row - strip.rows.start);
            portions.push(Portion { piece, first });
        }
    }
    portions
}

/// Which lane takes the next piece, by weight, and into which of its two slots.
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

    fn next(&mut self, entries: usize) -> (usize, usize) {
        let after = |lane: usize| (self.loads[lane] + entries as f64) / self.weights[lane].max(1e-300);
        let lane = (0..self.weights.len()).min_by(|&a, &b| after(a).total_cmp(&after(b))).expect("a lane");
        self.loads[lane] += entries as f64;
        self.counts[lane] += 1;
        (lane, (self.counts[lane] - 1) % 2)
    }
}
