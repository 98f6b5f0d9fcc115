//! The result of one band: residues of all devices together, then the entries that they represent.
//!
//! Each piece of the band goes to one lane. Where several lanes have residues, the others send theirs to it through the
//! host.

use crate::device::{Event, Region};
use crate::error::Result;
use crate::kernels::device::Residues;
use crate::ops::product::device::finish::Finish;
use crate::ops::product::device::lane::{Lane, LaneSlot};
use crate::ops::product::device::portions::{Portion, of_strip};
use crate::ops::product::device::stage::EntrySink;
use crate::ops::product::sink::ResultTarget;
use crate::plan::Strip;
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
