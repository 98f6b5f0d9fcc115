//! Carries out moves of tiles and work on them on one device: slots of one allocation, streams, events.
//!
//! The cache's decisions are submitted in order, to up to three streams: uploads, work, downloads. Each slot has events
//! of its last fill, work and save, and every command waits only for the events that it depends on, so that copies both
//! ways and work overlap. Nothing here waits on the host but [`TileStreams::finish`].
//! Depends on: slots and events. Independent of: which tile is where and why (the cache does), what the work is.
#![forbid(unsafe_code)]

use crate::device::{Allowance, Device, Event, Memory, Pinned, Region, Stream, Streams};
use crate::error::{Error, Result};
use crate::runtime::Move;
use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Slots start at multiples of this number of bytes.
const ALIGN_BYTES: usize = 256;

/// The copy of a tile in host memory of this device that contains its bytes from the first on.
pub struct HostCopy {
    /// The memory.
    pub pinned: Pinned,
    /// Bytes of the tile.
    pub bytes: usize,
}

/// The end of a command, and its stream: later commands of that stream need not wait for it.
#[derive(Clone)]
struct Stamp {
    stream: Stream,
    event: Event,
}

/// The events of the last copy into a slot, of the last work on it, and of the last copy from it.
#[derive(Clone, Default)]
struct StreamSlot {
    filled: Option<Stamp>,
    worked: Option<Stamp>,
    saved: Option<Stamp>,
}

/// One device with its slots and streams.
pub struct TileStreams<T> {
    device: Arc<dyn Device>,
    uploads: Stream,
    work: Stream,
    downloads: Stream,
    memory: Memory,
    slot_bytes: usize,
    slots: Vec<StreamSlot>,
    /// Slots without a tile, the slot that has been free for the longest time first.
    free: VecDeque<usize>,
    places: HashMap<T, usize>,
    /// The last copy of each tile to the host.
    saved: HashMap<T, Stamp>,
    begun: Event,
    _lease: Streams,
}

/// Bytes of a slot for tiles of at most `tile_bytes` bytes.
pub fn slot_bytes(tile_bytes: usize) -> usize {
    tile_bytes.next_multiple_of(ALIGN_BYTES)
}

impl<T: Copy + Eq + Hash + Debug> TileStreams<T> {
    /// The number of slots in the range `slots` that memory allows; 1 to 3 streams.
    ///
    /// # Errors
    /// [`Error::DeviceLimit`] if the smallest number of slots does not fit; [`Error::DeviceLost`].
    pub fn new(
        device: Arc<dyn Device>,
        tile_bytes: usize,
        slots: RangeInclusive<usize>,
        streams: usize,
    ) -> Result<TileStreams<T>> {
        let slot_bytes = slot_bytes(tile_bytes);
        let (memory, count) = allocate(&*device, slot_bytes, slots)?;
        let mut lease = Streams::of(&device);
        let work = lease.take()?;
        let uploads = if streams > 1 { lease.take()? } else { work };
        let downloads = if streams > 2 { lease.take()? } else { uploads };
        let begun = device.record(work)?;
        Ok(TileStreams {
            device,
            uploads,
            work,
            downloads,
            memory,
            slot_bytes,
            slots: vec![StreamSlot::default(); count],
            free: (0..count).collect(),
            places: HashMap::new(),
            saved: HashMap::new(),
            begun,
            _lease: lease,
        })
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Slots.
    pub fn room_tiles(&self) -> usize {
        self.slots.len()
    }

    /// Submits copies in order; `host_copy` finds host memory of this device for a tile.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], and the errors of `host_copy`.
    pub fn carry_out(&mut self, moves: &[Move<T>], mut host_copy: impl FnMut(T) -> Result<HostCopy>) -> Result<()> {
        for step in moves {
            match *step {
                Move::Fetch(tile) => {
                    let host_copy = host_copy(tile)?;
                    let slot = self.settle(tile);
                    let StreamSlot { worked, saved, filled } = self.slots[slot].clone();
                    let on_host = self.saved.get(&tile).cloned();
                    self.wait_for(self.uploads, [worked, saved, filled, on_host])?;
                    self.device.upload(self.uploads, &host_copy.pinned, 0, &self.region(slot, host_copy.bytes))?;
                    self.slots[slot].filled = Some(self.stamp(self.uploads)?);
                }
                Move::WriteBack(tile) => {
                    let host_copy = host_copy(tile)?;
                    let slot = self.place(tile);
                    let StreamSlot { worked, filled, .. } = self.slots[slot].clone();
                    let on_host = self.saved.get(&tile).cloned();
                    self.wait_for(self.downloads, [worked, filled, on_host])?;
                    self.device.download(self.downloads, &self.region(slot, host_copy.bytes), &host_copy.pinned, 0)?;
                    let stamp = self.stamp(self.downloads)?;
                    self.slots[slot].saved = Some(stamp.clone());
                    self.saved.insert(tile, stamp);
                }
                Move::Drop(tile) => {
                    let slot = self.places.remove(&tile).expect("a dropped tile is in memory");
                    self.free.push_back(slot);
                }
            }
        }
        Ok(())
    }

    /// Submits work that reads `inputs` and updates `output`, all of which are on the device: `submit` receives the
    /// slots of the inputs in that order, then the slot of the output. Returns its end.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], and the errors of `submit`.
    pub fn work(
        &mut self,
        inputs: &[T],
        output: T,
        submit: impl FnOnce(&dyn Device, Stream, &[Region]) -> Result<()>,
    ) -> Result<Event> {
        let tiles = inputs.iter().copied().chain([output]);
        let mut regions = Vec::with_capacity(inputs.len() + 1);
        for (index, tile) in tiles.clone().enumerate() {
            let slot = self.place(tile);
            let StreamSlot { filled, worked, saved } = self.slots[slot].clone();
            // A tile that is still being copied to the host must not change before that is done.
            let saved = saved.filter(|_| index == inputs.len());
            self.wait_for(self.work, [filled, worked, saved])?;
            regions.push(self.region(slot, self.slot_bytes));
        }
        submit(&*self.device, self.work, &regions)?;
        let stamp = self.stamp(self.work)?;
        for tile in tiles {
            let slot = self.place(tile);
            self.slots[slot].worked = Some(stamp.clone());
        }
        Ok(stamp.event)
    }

    /// Waits for everything; seconds of the device's clock since the streams were made.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn finish(&mut self) -> Result<f64> {
        for stream in [self.uploads, self.downloads] {
            let last = self.stamp(stream)?;
            self.wait_for(self.work, [Some(last)])?;
        }
        let end = self.device.record(self.work)?;
        self.device.synchronize(&end)?;
        self.device.seconds_between(&self.begun, &end)
    }

    fn place(&self, tile: T) -> usize {
        *self.places.get(&tile).unwrap_or_else(|| panic!("{tile:?} is not here"))
    }

    /// A slot for a tile that comes.
    fn settle(&mut self, tile: T) -> usize {
        let slot = self.free.pop_front().expect("the cache keeps to its limit");
        assert!(self.places.insert(tile, slot).is_none(), "{tile:?} is here already");
        slot
    }

    fn region(&self, slot: usize, bytes: usize) -> Region {
        let start = slot * self.slot_bytes;
        self.memory.region(start..start + bytes)
    }

    fn stamp(&self, stream: Stream) -> Result<Stamp> {
        Ok(Stamp { stream, event: self.device.record(stream)? })
    }

    fn wait_for(&self, stream: Stream, stamps: impl IntoIterator<Item = Option<Stamp>>) -> Result<()> {
        let other = stamps.into_iter().flatten().filter(|stamp| stamp.stream != stream);
        other.into_iter().try_for_each(|stamp| self.device.wait(stream, &stamp.event))
    }
}

/// One allocation of as many slots as fit, in the range `slots`.
fn allocate(device: &dyn Device, slot_bytes: usize, slots: RangeInclusive<usize>) -> Result<(Memory, usize)> {
    let (least, most) = slots.into_inner();
    let mut count = most.max(least);
    loop {
        // Some devices refuse an allocation of 0 bytes.
        match device.allocate((count * slot_bytes).max(ALIGN_BYTES)) {
            Ok(memory) => return Ok((memory, count)),
            Err(Error::DeviceMemory { .. } | Error::OutOfMemory { .. }) if count > least => {
                // An eighth less each time: the memory that others hold is unknown.
                count = (count - count.div_ceil(8)).max(least);
            }
            Err(Error::DeviceMemory { used_bytes, capacity_bytes, .. }) => {
                let bytes = capacity_bytes.saturating_sub(used_bytes);
                return Err(Allowance::WHOLE.refusal(bytes, (least * slot_bytes) as u64));
            }
            Err(error) => return Err(error),
        }
    }
}
