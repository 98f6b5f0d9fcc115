//! The products of one band on one device: big floats in, digits, operand planes, products, residues.
//!
//! The host runs ahead: it stages the next chunk of rows while the device multiplies the previous one. Digits and
//! product sums have two copies each, so that scaling overlaps multiplying, and reducing overlaps the next product.

use crate::context::Context;
use crate::device::{Event, Gemm, GemmOperand};
use crate::drive::Meter;
use crate::error::Result;
use crate::kernels::device::{DeviceDigits, Reduce, ReduceInto, Residues, Scale, ToPlanes};
use crate::matrix::MatrixView;
use crate::ops::product::device::lane::{Half, Lane, TimedPart};
use crate::ops::product::device::portions::CopyPiece;
use crate::ops::product::device::stage::{float_bytes, gather};
use crate::plan::{DEVICE_ALIGN, Strip, pieces};
use std::ops::Range;

/// Columns of one operand that are staged, and where they begin among the columns of a chunk.
struct Staged<'a> {
    blocks: &'a [MatrixView<'a>],
    cols: Range<usize>,
    at: usize,
    right: bool,
}

/// A band on a device.
pub(super) struct DeviceBand<'a> {
    pub ctx: &'a Context,
    pub meter: &'a Meter<'a>,
    /// Rows of the left operand, and the same rows of the right one.
    pub left: &'a [MatrixView<'a>],
    pub right: &'a [MatrixView<'a>],
    pub cols: Range<usize>,
}

/// A chunk on the device.
#[derive(Clone, Copy)]
struct Ready {
    /// Its rows.
    rows: usize,
    /// Selects one of the two sets of digits.
    set: usize,
    /// Whether it is the first of the band.
    is_first: bool,
}

/// Some rows of a block.
#[derive(Clone)]
struct Chunk {
    block: usize,
    rows: Range<usize>,
}

impl DeviceBand<'_> {
    /// Leaves the residues of the band on the device; returns the event at which they are there.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`], [`crate::Error::Cancelled`].
    pub fn multiply(&self, lane: &mut Lane) -> Result<Event> {
        for half in &lane.digits {
            lane.wait(lane.streams.prepare, half.free.as_ref())?;
            lane.device.clear(lane.streams.prepare, &half.region)?; // columns that pad are never written
        }
        let of_block = |(block, view): (usize, &MatrixView<'_>)| {
            pieces(view.rows(), lane.cut.chunk_rows).map(move |rows| Chunk { block, rows }).collect::<Vec<_>>()
        };
        let chunks = self.left.iter().enumerate().flat_map(of_block).collect::<Vec<_>>();
        let mut ready = chunks.first().map(|chunk| self.stage(lane, chunk, 0)).transpose()?;
        let strips = lane.input.strips(&lane.cut, self.cols.clone());
        for (index, chunk) in chunks.iter().enumerate() {
            let set = index % lane.digits.len();
            lane.wait(lane.streams.compute, ready.take().as_ref())?;
            self.compute(lane, &strips, Ready { rows: chunk.rows.len(), set, is_first: index == 0 })?;
            if let Some(next) = chunks.get(index + 1) {
                ready = Some(self.stage(lane, next, (index + 1) % lane.digits.len())?);
            }
        }
        let done = lane.device.record(lane.streams.reduce)?;
        lane.wait(lane.streams.compute, Some(&done))?;
        Ok(done)
    }

    fn staged(&self, lane: &Lane) -> Vec<Staged<'_>> {
        let (left, right) = lane.input.operand_cols(&self.cols);
        let at = left.len();
        let mut staged = vec![Staged { blocks: self.left, cols: left, at: 0, right: false }];
        staged.extend(right.map(|cols| Staged { blocks: self.right, cols, at, right: true }));
        staged
    }

    /// Columns of a chunk.
    fn width(&self, lane: &Lane) -> usize {
        let (left, right) = lane.input.operand_cols(&self.cols);
        left.len() + right.map_or(0, |right| right.len())
    }

    /// The digits of the chunk in one of the two sets.
    fn digits<'l>(&self, lane: &'l Lane, set: usize) -> DeviceDigits<'l> {
        let stride = lane.input.leading_rows(&lane.cut) * self.width(lane);
        DeviceDigits { region: &lane.digits[set].region, count: lane.input.digits, stride }
    }

    /// Sends the big floats of some rows and makes them digits; returns when they are ready.
    fn stage(&self, lane: &mut Lane, Chunk { block, rows }: &Chunk, set: usize) -> Result<Event> {
        let (load, prepare) = (lane.streams.load, lane.streams.prepare);
        lane.wait(prepare, lane.digits[set].free.as_ref())?;
        let piece_cols = lane.input.piece_cols(&lane.cut);
        for operand in self.staged(lane) {
            let view = operand.blocks[*block];
            let real = operand.cols.start.min(view.cols())..operand.cols.end.min(view.cols());
            for (number, part) in pieces(real.len(), piece_cols).enumerate() {
                let cols = real.start + part.start..real.start + part.end;
                let piece = CopyPiece { rows: rows.clone(), cols: cols.clone() };
                let slot = &mut lane.inputs[number % 2];
                gather(self.ctx, view, &piece, &mut slot.pinned.lock()?)?;
                if let Some(free) = &slot.free {
                    lane.device.wait(load, free)?;
                }
                let width = view.limbs_per_element();
                let region = slot.region.region(0..float_bytes(piece.entries(), width));
                lane.device.upload(load, &slot.pinned, 0, &region)?;
                let sent = lane.device.record(load)?;
                lane.device.wait(prepare, &sent)?;
                let at = operand.at + cols.start - operand.cols.start;
                let shifts = if operand.right { &lane.right_shifts } else { &lane.left_shifts };
                let shifts = shifts.region(cols.start * 8..cols.end * 8);
                let split = piece.entries() * 8;
                lane.launcher(prepare).scale(&Scale {
                    heads: &region.region(0..split),
                    limbs: &region.from(split),
                    limbs_per_element: width,
                    row_shifts: None,
                    col_shifts: Some(&shifts),
                    rows: rows.len(),
                    cols: cols.len(),
                    digits: self.digits(lane, set),
                    ld: lane.input.leading_rows(&lane.cut),
                    first_col: at,
                })?;
                lane.inputs[number % 2].free = Some(lane.device.record(prepare)?);
            }
        }
        lane.device.record(prepare)
    }

    /// Multiplies one chunk modulo all of the device's moduli, batch by batch.
    fn compute(&self, lane: &mut Lane, strips: &[Strip], ready: Ready) -> Result<()> {
        let Ready { rows, set, .. } = ready;
        let compute = lane.streams.compute;
        let entries = lane.input.leading_rows(&lane.cut) * self.width(lane);
        let own = lane.moduli.clone();
        for batch in pieces(own.len(), lane.cut.batch_moduli) {
            let batch = own.start + batch.start..own.start + batch.end;
            lane.start(TimedPart::ToResidues)?;
            lane.launcher(compute).to_planes(&ToPlanes {
                digits: self.digits(lane, set),
                entries,
                moduli: batch.clone(),
                planes: &lane.planes,
                stride: entries,
            })?;
            lane.stop()?;
            if batch.end == own.end {
                lane.digits[set].free = Some(lane.device.record(compute)?);
            }
            lane.start(TimedPart::Product)?;
            for strip in strips {
                self.strip(lane, strip, &batch, ready)?;
            }
            lane.stop()?;
            let units = batch.len() as u64 * rows as u64 * (strips.iter().map(Strip::entries).sum::<usize>() as u64);
            self.meter.add("product", units)?;
        }
        Ok(())
    }

    /// One strip of the products of a batch, in pieces of rows short enough to be summed exactly.
    fn strip(&self, lane: &mut Lane, strip: &Strip, batch: &Range<usize>, ready: Ready) -> Result<()> {
        let (compute, reduce) = (lane.streams.compute, lane.streams.reduce);
        let (left, right) = lane.input.operand_cols(&self.cols);
        let ld = lane.input.leading_rows(&lane.cut);
        let entries = ld * self.width(lane);
        let planes = lane.engine.planes(batch.clone());
        let (m, n) = (strip.rows.len(), strip.cols.len());
        let first_col = match &right {
            Some(right) => left.len() + strip.cols.start - right.start,
            None => strip.cols.start - left.start,
        };
        for part in pieces(ready.rows, lane.engine.largest_chunk_rows()) {
            let operand = |col: usize| GemmOperand {
                region: lane.planes.from((col * ld + part.start) * lane.input.operand_bytes),
                ld,
                stride: entries,
            };
            // The rows that pad a chunk are zeros.
            let k = part.len().next_multiple_of(DEVICE_ALIGN).min(ld - part.start);
            let half = lane.turn % 2;
            lane.turn += 1;
            let Half { region: sums, free } = &lane.sums[half];
            lane.wait(compute, free.as_ref())?;
            let product = Gemm {
                element: lane.engine.element(),
                m,
                n,
                k,
                a: operand(strip.rows.start - left.start),
                b: operand(first_col),
                c: GemmOperand { region: sums.clone(), ld: m, stride: m * n },
                batch: planes.len(),
                negate: false,
                accumulate: false,
                by_rows: false,
            };
            lane.device.multiply(compute, &product)?;
            lane.multiply_adds += product.work();
            let multiplied = lane.device.record(compute)?;
            lane.device.wait(reduce, &multiplied)?;
            let stride = lane.input.band_entries(&lane.cut, &self.cols);
            lane.launcher(reduce).reduce(&Reduce {
                sums,
                sum_stride: m * n,
                entries: m * n,
                moduli: batch.clone(),
                residues: Residues {
                    region: &lane.residues,
                    first_modulus: lane.moduli.start,
                    stride,
                    offset: strip.offset,
                },
                into: if ready.is_first && part.start == 0 { ReduceInto::Overwrite } else { ReduceInto::Add },
            })?;
            lane.sums[half].free = Some(lane.device.record(reduce)?);
        }
        Ok(())
    }
}
