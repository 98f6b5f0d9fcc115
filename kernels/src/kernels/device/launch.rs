//! Where kernels run: a device, a stream, an engine and its tables.
#![forbid(unsafe_code)]

use super::checks::extent;
use super::engine::{DeviceEngine, DeviceFamily};
use super::tables::{DeviceTables, TableLayout};
use crate::device::{Device, Region, Stream};
use std::ops::Range;

/// Threads that keep a large device busy: few entries are cut into slices of their moduli until there are this many
/// threads.
const WANTED_THREADS: usize = 1 << 18;

/// Submits kernels to one stream. All layouts are described on the page of the module.
///
/// Each call checks that its regions are large enough, begin at whole elements, and that no output overlaps an input;
/// it panics otherwise. Regions may be larger than needed.
#[derive(Clone, Copy)]
pub struct Launcher<'a> {
    pub(super) device: &'a dyn Device,
    pub(super) stream: Stream,
    pub(super) engine: &'a DeviceEngine,
    pub(super) tables: &'a DeviceTables,
}

/// Residues on a device: that of entry `i` modulo modulus number `k` of the engine is element
/// `(k - first_modulus) * stride + offset + i`, of 16 or 32 bits ([`DeviceEngine::residue_bytes`]).
#[derive(Clone, Copy)]
pub struct Residues<'a> {
    /// The region of element 0.
    pub region: &'a Region,
    /// The first modulus that has residues there.
    pub first_modulus: usize,
    /// Distance in elements from one modulus to the next.
    pub stride: usize,
    /// First element, of each modulus.
    pub offset: usize,
}

impl Residues<'_> {
    /// Elements up to the last of `entries` entries modulo `moduli`, all of which are stored there.
    pub(super) fn elements(&self, moduli: &Range<usize>, entries: usize) -> usize {
        assert!(moduli.is_empty() || moduli.start >= self.first_modulus, "no residues modulo number {}", moduli.start);
        extent(moduli.end.saturating_sub(self.first_modulus), self.stride, self.offset, entries)
    }

    /// The offset modulo 2^64, as kernels take it, which count all moduli and compute modulo 2^64.
    pub(super) fn kernel_offset(&self) -> u64 {
        (self.offset as u64).wrapping_sub((self.first_modulus as u64).wrapping_mul(self.stride as u64))
    }
}

/// Integers on a device: word `w` of entry `i`, of 32 bits, is element `w * entries + i`; the sign (0 or 1) is word
/// number [`DeviceEngine::words`].
#[derive(Clone, Copy)]
pub struct Integers<'a> {
    /// Where element 0 lies.
    pub region: &'a Region,
    /// Number of integers.
    pub entries: usize,
}

impl<'a> Launcher<'a> {
    /// Kernels of `engine` on a stream; `tables` are those that the engine sent to this device.
    pub fn new(
        device: &'a dyn Device,
        stream: Stream,
        engine: &'a DeviceEngine,
        tables: &'a DeviceTables,
    ) -> Launcher<'a> {
        // The kernels' bounds rest on the sizes of the tables.
        assert!(TableLayout::new(engine).fits(tables), "tables of another engine");
        Launcher { device, stream, engine, tables }
    }

    /// The same on another stream.
    pub fn on(&self, stream: Stream) -> Launcher<'a> {
        Launcher { stream, ..*self }
    }

    /// Bytes of [`Integers`].
    pub fn integer_bytes(&self, entries: usize) -> usize {
        (self.engine.words() + 1) * entries * 4
    }

    /// Whether residues are those of signed bytes, as the kernels take it.
    pub(super) fn bytes_flag(&self) -> u64 {
        u64::from(self.engine.family() == DeviceFamily::I8)
    }
}

/// How `items` are cut so that `entries` entries make enough threads: items of a thread, and number of slices.
pub(super) fn slices(entries: usize, items: usize) -> (usize, usize) {
    if entries == 0 || items == 0 {
        return (1, 0);
    }
    let per_slice = items.div_ceil(WANTED_THREADS.div_ceil(entries).min(items));
    (per_slice, items.div_ceil(per_slice))
}
