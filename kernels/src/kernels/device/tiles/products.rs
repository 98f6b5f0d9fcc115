//! Sums of products of tiles on one device: a few streams, each with memory of its own, over shared slots.
//!
//! A stream takes a tile to update, brings the operands that are not there, multiplies, reconstructs, sends the sums
//! to the host. Streams overlap one another: one copies while another multiplies and a third's caller works on the CPU.

use super::setup::{ALIGN, Setup, Site, WorkStream};
use super::slots::SlotRegion;
use crate::device::{DeviceKind, Gemm, GemmOperand, Region, Traffic};
use crate::error::{Error, Result};
use crate::kernels::device::{
    DeviceDigits, DeviceEngine, DeviceReconstruct, Integers, Launcher, PackIntegers, Reduce, ReduceInto, Residues,
    ToPlanes, Unpack,
};
use crate::kernels::tiles::TileTraffic;
use crate::math::float::{bit_length, limbs_for};
use crate::runtime::{Access, TileUse};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of a tile on a GPU: its products are then large enough for full rates.
const CARD_ROWS: usize = 512;

/// A finished tile as an operand.
#[derive(Clone, Copy)]
pub(super) struct TileOperand<'a> {
    /// The number that identifies it in the cache.
    pub number: u64,
    /// Its rows; its columns are the depth of the product.
    pub rows: usize,
    /// `[row][column][sign, limbs]`.
    pub integers: &'a [u64],
}

/// The operands of a product `X Y^T` of tiles.
pub(super) struct OperandPair<'a> {
    pub x: TileOperand<'a>,
    pub y: TileOperand<'a>,
}

/// Products of tiles on one device.
pub struct DeviceProducts {
    site: Site,
    /// Rows that are summed before they are reduced.
    chunk_rows: usize,
    setup: Mutex<Option<Arc<Setup>>>,
    start: Traffic,
    baseline_bytes: AtomicU64,
    products: AtomicU64,
    device_bytes: AtomicU64,
}

impl DeviceProducts {
    /// Over a device; nothing is allocated before the first product.
    pub(super) fn new(site: Site) -> DeviceProducts {
        let (start, chunk_rows) = (site.device.traffic(), site.engine.largest_chunk_rows());
        DeviceProducts {
            chunk_rows,
            site,
            setup: Mutex::default(),
            start,
            baseline_bytes: AtomicU64::new(0),
            products: AtomicU64::new(0),
            device_bytes: AtomicU64::new(0),
        }
    }

    /// The device, and the engine that multiplies there.
    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    pub(super) fn engine(&self) -> &DeviceEngine {
        &self.site.engine
    }

    /// Limbs of a sum.
    pub(super) fn sum_limbs(&self) -> usize {
        self.site.engine.limbs()
    }

    /// Words of the sums of a tile.
    pub(super) fn sum_words(&self, rows: usize, cols: usize) -> usize {
        rows * cols * (1 + self.sum_limbs())
    }

    /// Rows of a tile at which the device is fast.
    pub(super) fn preferred_rows(&self, on_cpu: usize) -> usize {
        if self.site.device.description().kind == DeviceKind::Cuda { CARD_ROWS } else { on_cpu }
    }

    /// Bytes of pinned host memory that a worker takes at most.
    pub(super) fn pinned_bytes(&self, tile_rows: usize) -> u64 {
        let rows = tile_rows.next_multiple_of(ALIGN) as u64;
        rows * rows
            * 8
            * (2 + self.site.engine.limbs() as u64 + limbs_for(self.site.engine.spec().operand_bits + 1) as u64)
    }

    /// The traffic so far.
    pub(super) fn traffic(&self) -> TileTraffic {
        let setup = self.setup.lock().unwrap_or_else(PoisonError::into_inner);
        TileTraffic {
            device: self.site.device.description(),
            kernel: self.site.engine.family().name(),
            moduli: self.site.engine.moduli().len(),
            traffic: self.site.device.traffic().since(&self.start),
            baseline_bytes: self.baseline_bytes.load(Ordering::Relaxed),
            products: self.products.load(Ordering::Relaxed),
            cache: setup.as_ref().map(|setup| setup.slots.counters()).unwrap_or_default(),
            device_bytes: self.device_bytes.load(Ordering::Relaxed),
            ranks: self.site.allowance.share.ranks,
        }
    }

    /// `sum X Y^T` over the pairs, exactly: `out[(column * rows + row) * (1 + sum_limbs)]` takes a sign and limbs.
    ///
    /// `slot_words` are those of an operand's integer. Where the engine holds a redundant modulus, a sum beyond twice
    /// `2^(2 working_bits)`, which no rows of norm 1 have, is refused.
    ///
    /// # Errors
    /// [`Error::DeviceLimit`], [`Error::DeviceMemory`], [`Error::DeviceLost`], [`Error::SelfCheck`].
    pub(super) fn multiply(
        &self,
        pairs: &[OperandPair<'_>],
        depth: usize,
        slot_words: usize,
        working_bits: u32,
        out: &mut [u64],
    ) -> Result<()> {
        let (rows, cols) = (pairs[0].x.rows, pairs[0].y.rows);
        let setup = self.setup(depth.max(rows).max(cols))?;
        let mut guard = StreamGuard { own: Some(setup.take()), setup: &setup, failed: true };
        let own = guard.own.as_mut().expect("it was just taken");
        let job = TileJob { products: self, setup: &setup, depth, rows, cols, slot_words };
        let result = job.run(own, pairs, working_bits, out);
        self.device_bytes.fetch_max(self.site.device.used_bytes(), Ordering::Relaxed);
        if let Err(error) = &result {
            // Streams that wait for tiles that this one should have brought must not wait for ever.
            setup.slots.fail(error);
        }
        guard.failed = false;
        result
    }

    /// Gives the device's memory back, unless a call is still at work on it.
    pub(super) fn end_operation(&self) {
        let mut setup = self.setup.lock().unwrap_or_else(PoisonError::into_inner);
        if setup.as_ref().is_some_and(|setup| Arc::strong_count(setup) == 1) {
            *setup = None;
        }
    }

    /// Memory for tiles of `rows` rows, made anew where they are larger than before.
    fn setup(&self, rows: usize) -> Result<Arc<Setup>> {
        let mut held = self.setup.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(setup) = held.as_ref() {
            match setup.slots.failure() {
                None if setup.sizes.rows >= rows => return Ok(setup.clone()),
                // Others are still at work on it: the call that failed is the one they belong to.
                Some(error) if Arc::strong_count(setup) > 1 => return Err(error),
                _ => {}
            }
        }
        *held = None; // give the old memory back before asking for the new
        let setup = Arc::new(self.site.allocate(self.site.sizes(rows))?);
        self.device_bytes.fetch_max(self.site.device.used_bytes(), Ordering::Relaxed);
        *held = Some(setup.clone());
        Ok(setup)
    }
}

/// Gives a stream back, and marks the slots as failed where its work did not end well.
struct StreamGuard<'a> {
    setup: &'a Setup,
    own: Option<WorkStream>,
    failed: bool,
}

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        if self.failed {
            self.setup.slots.fail(&Error::Cancelled);
        }
        self.own.take().into_iter().for_each(|own| self.setup.give_back(own));
    }
}

/// One tile's products.
struct TileJob<'a> {
    products: &'a DeviceProducts,
    setup: &'a Setup,
    depth: usize,
    rows: usize,
    cols: usize,
    slot_words: usize,
}

impl TileJob<'_> {
    fn run(&self, own: &mut WorkStream, pairs: &[OperandPair<'_>], working_bits: u32, out: &mut [u64]) -> Result<()> {
        let largest = self.products.chunk_rows;
        let (mut summed, mut reduced) = (0, false);
        for pair in pairs {
            let OperandPair { x, y } = pair;
            let tiles = [x, y].map(|tile| self.read_of(tile));
            let tiles = if x.number == y.number { &tiles[..1] } else { &tiles[..] };
            let (lease, places) = self.setup.slots.acquire(tiles)?;
            self.bring(own, &places, &[x, y])?;
            let planes = [&places[0], &places[places.len() - 1]];
            let mut start = 0;
            while start < self.depth {
                // Only the last part of a tile is padded: the others end at multiples of the alignment of products.
                let mut room = (largest - summed) / ALIGN * ALIGN;
                if room == 0 {
                    self.reduce(own, &mut reduced)?;
                    (summed, room) = (0, largest / ALIGN * ALIGN);
                }
                let length = (self.depth - start).min(room);
                self.product(own, planes, start..start + length, summed > 0)?;
                (start, summed) = (start + length, summed + length.next_multiple_of(ALIGN));
            }
            let done = self.products.site.device.record(own.stream)?;
            self.setup.slots.release(lease, &places, own.index, &done);
            self.count(pair);
        }
        self.reduce(own, &mut reduced)?;
        self.recover(own, working_bits, out)
    }

    /// Bytes of an operand's integers.
    fn home_bytes(&self, operand: &TileOperand<'_>) -> u64 {
        (operand.rows * self.depth * 8 * (1 + self.setup.sizes.operand_limbs)) as u64
    }

    /// The use of an operand's tile.
    fn read_of(&self, operand: &TileOperand<'_>) -> TileUse<u64> {
        TileUse { tile: operand.number, bytes: self.home_bytes(operand), access: Access::Read }
    }

    fn count(&self, OperandPair { x, y }: &OperandPair<'_>) {
        let sums = 2 * (self.rows * self.cols * 8 * (1 + self.products.sum_limbs())) as u64;
        let bytes = self.home_bytes(x) + self.home_bytes(y) + sums;
        self.products.baseline_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.products.products.fetch_add(1, Ordering::Relaxed);
    }

    /// Rows from one column of an operand plane to the next.
    fn ld(&self) -> usize {
        self.depth.next_multiple_of(ALIGN)
    }

    fn launcher<'l>(&'l self, own: &WorkStream) -> Launcher<'l> {
        Launcher::new(&*self.products.site.device, own.stream, &self.products.site.engine, &self.setup.tables)
    }

    /// Brings the operands that are not there, then waits for the operands that other streams bring.
    fn bring(&self, own: &mut WorkStream, places: &[SlotRegion], operands: &[&TileOperand<'_>]) -> Result<()> {
        let device = &self.products.site.device;
        for (place, operand) in places.iter().zip(operands).filter(|(place, _)| place.bring) {
            place.after.iter().try_for_each(|event| device.wait(own.stream, event))?;
            self.upload(own, operand, &place.region)?;
            self.setup.slots.brought(place, device.record(own.stream)?);
        }
        for place in places.iter().filter(|place| !place.bring) {
            device.wait(own.stream, &self.setup.slots.arrival(place)?)?;
        }
        Ok(())
    }

    /// Sends an operand and makes its planes: a row of the tile becomes a column, for the contracted index runs down.
    fn upload(&self, own: &mut WorkStream, operand: &TileOperand<'_>, planes: &Region) -> Result<()> {
        let (device, limbs) = (&self.products.site.device, self.setup.sizes.operand_limbs);
        let bytes = self.home_bytes(operand) as usize;
        {
            let mut pinned = own.pinned_in.lock()?;
            let packed = bytemuck::cast_slice_mut::<u8, u64>(&mut pinned[..bytes]);
            let slots = operand.integers.chunks_exact(self.slot_words);
            for (packed, slot) in packed.chunks_exact_mut(1 + limbs).zip(slots) {
                packed.copy_from_slice(&slot[..1 + limbs]);
            }
        }
        let packed = own.packed_in.region(0..bytes);
        device.upload(own.stream, &own.pinned_in, 0, &packed)?;
        let entries = self.ld() * operand.rows.next_multiple_of(ALIGN);
        let count = self.products.site.engine.digits();
        let region = own.digits.region(0..entries * 4 * (1 + count));
        device.clear(own.stream, &region)?; // rows that pad are not written
        let digits = DeviceDigits { region: &region, count, stride: entries };
        self.launcher(own).unpack(&Unpack {
            packed: &packed,
            limbs_per_element: limbs,
            rows: self.depth,
            cols: operand.rows,
            digits,
            ld: self.ld(),
            first_col: 0,
        })?;
        let moduli = 0..self.products.site.engine.moduli().len();
        self.launcher(own).to_planes(&ToPlanes { digits, entries, moduli, planes, stride: entries })
    }

    /// Adds the products of some columns to the stream's sums.
    fn product(
        &self,
        own: &WorkStream,
        places: [&SlotRegion; 2],
        columns: Range<usize>,
        accumulate: bool,
    ) -> Result<()> {
        let engine = &self.products.site.engine;
        let (m, n) = (self.rows.next_multiple_of(ALIGN), self.cols.next_multiple_of(ALIGN));
        let plane = |place: &SlotRegion, rows: usize| GemmOperand {
            region: place.region.from(columns.start * engine.element().operand_bytes()),
            ld: self.ld(),
            stride: self.ld() * rows,
        };
        self.products.site.device.multiply(
            own.stream,
            &Gemm {
                element: engine.element(),
                m,
                n,
                k: columns.len().next_multiple_of(ALIGN).min(self.ld() - columns.start), // zeros pad the columns
                a: plane(places[0], m),
                b: plane(places[1], n),
                c: GemmOperand { region: own.sums.clone(), ld: m, stride: m * n },
                batch: engine.plane_count(),
                negate: false,
                accumulate,
                by_rows: false,
            },
        )
    }

    fn entries(&self) -> usize {
        self.rows.next_multiple_of(ALIGN) * self.cols.next_multiple_of(ALIGN)
    }

    fn residues<'l>(&self, own: &'l WorkStream) -> Residues<'l> {
        Residues { region: &own.residues, first_modulus: 0, stride: self.entries(), offset: 0 }
    }

    fn reduce(&self, own: &WorkStream, reduced: &mut bool) -> Result<()> {
        let into = if std::mem::replace(reduced, true) { ReduceInto::Add } else { ReduceInto::Overwrite };
        self.launcher(own).reduce(&Reduce {
            sums: &own.sums,
            sum_stride: self.entries(),
            entries: self.entries(),
            moduli: 0..self.products.site.engine.moduli().len(),
            residues: self.residues(own),
            into,
        })
    }

    /// Reconstructs the integers and sends them to the host.
    fn recover(&self, own: &WorkStream, working_bits: u32, out: &mut [u64]) -> Result<()> {
        let (device, entries) = (&self.products.site.device, self.entries());
        let integers = Integers { region: &own.integers, entries };
        self.launcher(own).reconstruct(&DeviceReconstruct { residues: self.residues(own), integers })?;
        let each = 1 + self.products.sum_limbs();
        let packed = own.packed_out.region(0..entries * 8 * each);
        self.launcher(own).pack(&PackIntegers { integers, packed: &packed })?;
        device.download(own.stream, &packed, &own.pinned_out, 0)?;
        let bytes = own.pinned_out.lock()?;
        let words = bytemuck::cast_slice::<u8, u64>(&bytes[..entries * 8 * each]);
        let height = self.rows.next_multiple_of(ALIGN) * each;
        for (col, (out, column)) in out.chunks_exact_mut(self.rows * each).zip(words.chunks_exact(height)).enumerate() {
            out.copy_from_slice(&column[..self.rows * each]);
            if self.products.site.engine.spec().redundant {
                check_column(out, each, working_bits, col)?;
            }
        }
        Ok(())
    }
}

/// Refuses a sum beyond twice `2^(2 working_bits)`; the place in the error is that within the tile.
fn check_column(column: &[u64], each: usize, working_bits: u32, col: usize) -> Result<()> {
    let largest = u64::from(2 * working_bits + 1);
    match column.chunks_exact(each).position(|sum| bit_length(&sum[1..]) > largest) {
        Some(row) => Err(Error::SelfCheck { row, column: col }),
        None => Ok(()),
    }
}
