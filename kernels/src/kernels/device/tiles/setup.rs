//! The memory of a device for tiles of one size: streams, and slots in the memory that remains.

use super::slots::Slots;
use crate::device::{Allowance, Device, Pinned, Region, Stream, Streams};
use crate::error::{Error, Result};
use crate::kernels::device::{DeviceEngine, DeviceTables};
use crate::math::float::limbs_for;
use crate::runtime::Eviction;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Streams of a device, where its memory allows.
const STREAMS: usize = 3;

/// Rows and columns are padded to a multiple of this.
pub(super) const ALIGN: usize = 16;

/// One stream with its memory.
pub(super) struct WorkStream {
    pub index: usize,
    pub stream: Stream,
    pub pinned_in: Pinned,
    pub packed_in: Region,
    pub digits: Region,
    pub sums: Region,
    pub residues: Region,
    pub integers: Region,
    pub packed_out: Region,
    pub pinned_out: Pinned,
    _streams: Streams,
}

/// Sizes for tiles of at most `rows` rows and columns, padded.
#[derive(Clone, Copy)]
pub(super) struct TileSizes {
    pub rows: usize,
    pub operand_limbs: usize,
}

/// All data that depend on the size of tiles.
pub(super) struct Setup {
    pub sizes: TileSizes,
    pub tables: DeviceTables,
    pub slots: Slots,
    pub streams: Mutex<Vec<WorkStream>>,
    pub given_back: Condvar,
}

/// A device, the engine that multiplies there, and the memory that may be taken of it.
pub(super) struct Site {
    pub device: Arc<dyn Device>,
    pub engine: DeviceEngine,
    pub allowance: Allowance,
    pub eviction: Eviction,
}

impl Site {
    /// Sizes for tiles of `rows` rows.
    pub fn sizes(&self, rows: usize) -> TileSizes {
        TileSizes { rows: rows.next_multiple_of(ALIGN), operand_limbs: limbs_for(self.engine.spec().operand_bits + 1) }
    }

    /// As many streams as find room, and slots in the rest.
    ///
    /// # Errors
    /// [`Error::DeviceLimit`] names the least memory that would do; [`Error::DeviceMemory`], [`Error::DeviceLost`].
    pub(super) fn allocate(&self, sizes: TileSizes) -> Result<Setup> {
        let (stream_bytes, slot_bytes) = (self.stream_bytes(&sizes), self.slot_bytes(&sizes));
        let table_bytes = (self.engine.table_bytes() as u64).next_multiple_of(256);
        let free = self.allowance.bytes(&*self.device);
        let room = |count: u64| free.saturating_sub(table_bytes + count * stream_bytes) / slot_bytes;
        let count = (1..=STREAMS as u64).rev().find(|&count| room(count) >= 2 * count);
        let least = table_bytes + stream_bytes + 2 * slot_bytes;
        let count = count.ok_or_else(|| self.allowance.refusal(free, least))?;
        let mut streams = Streams::of(&self.device);
        let stream = streams.take()?;
        let tables = self.engine.upload(&*self.device, stream)?;
        self.device.synchronize(&self.device.record(stream)?)?;
        let made = (0..count as usize).map(|index| self.stream(index, &sizes)).collect::<Result<Vec<_>>>()?;
        let device = self.device.clone();
        let grow = move || Ok(device.allocate(slot_bytes as usize)?.whole());
        let most = usize::try_from(room(count)).unwrap_or(usize::MAX);
        Ok(Setup {
            sizes,
            tables,
            slots: Slots::new(2 * count as usize, most, self.eviction, grow),
            streams: Mutex::new(made),
            given_back: Condvar::new(),
        })
    }

    /// Bytes of the operand planes of a tile of `rows` rows.
    pub(super) fn tile_bytes(&self, rows: usize) -> u64 {
        self.slot_bytes(&self.sizes(rows))
    }

    fn slot_bytes(&self, sizes: &TileSizes) -> u64 {
        let planes = self.engine.plane_count() * self.engine.element().operand_bytes();
        ((planes * sizes.rows * sizes.rows) as u64).next_multiple_of(256)
    }

    /// Bytes of each part of a stream: packed in, digits, sums, residues, integers, packed out.
    fn stream_parts(&self, sizes: &TileSizes) -> [usize; 6] {
        let (entries, engine) = (sizes.rows * sizes.rows, &self.engine);
        [
            entries * 8 * (1 + sizes.operand_limbs),
            entries * 4 * (1 + engine.digits()),
            entries * engine.plane_count() * engine.element().product_bytes(),
            entries * engine.moduli().len() * engine.residue_bytes(),
            entries * 4 * (1 + engine.words()),
            entries * 8 * (1 + engine.limbs()),
        ]
    }

    fn stream_bytes(&self, sizes: &TileSizes) -> u64 {
        self.stream_parts(sizes).iter().map(|&bytes| (bytes as u64).next_multiple_of(256)).sum()
    }

    fn stream(&self, index: usize, sizes: &TileSizes) -> Result<WorkStream> {
        let parts = self.stream_parts(sizes);
        let mut streams = Streams::of(&self.device);
        let region = |part: usize| Ok::<_, Error>(self.device.allocate(parts[part])?.whole());
        Ok(WorkStream {
            index,
            stream: streams.take()?,
            pinned_in: self.device.allocate_pinned(parts[0])?,
            packed_in: region(0)?,
            digits: region(1)?,
            sums: region(2)?,
            residues: region(3)?,
            integers: region(4)?,
            packed_out: region(5)?,
            pinned_out: self.device.allocate_pinned(parts[5])?,
            _streams: streams,
        })
    }
}

impl Setup {
    /// A stream that nobody else has; waits for one.
    pub fn take(&self) -> WorkStream {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match streams.pop() {
                Some(stream) => return stream,
                None => streams = self.given_back.wait(streams).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub fn give_back(&self, stream: WorkStream) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        self.given_back.notify_one();
    }
}
