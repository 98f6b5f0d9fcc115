//! How a product is cut for the memory of one device.
//!
//! Depends on: the numbers a device engine and a shape supply. Independent of: engines, devices, matrices. The result
//! is made in *bands* of columns; a band is cut into *strips* that one batch of products fills. Rows come in *chunks*,
//! moduli in *batches*. Promise: the bytes of a cut are all that the call allocates on the device; where no cut fits,
//! the least limit named is that of the finest one.

use serde::Serialize;
use std::ops::Range;

/// Rows and columns of operands are padded to a multiple of this number, as products of bytes require.
pub const DEVICE_ALIGN: usize = 16;

/// Columns of a strip: wide enough for products at full rate, narrow enough that little is computed outside a triangle.
const STRIP_COLS: usize = 512;

/// Columns of the narrowest strip.
const LEAST_STRIP_COLS: usize = 16;

/// Rows of a chunk beyond which passing over the residues of the product once more costs nothing any more.
const LARGEST_CHUNK_ROWS: usize = 8192;

/// Rows of the smallest chunk.
const LEAST_CHUNK_ROWS: usize = 256;

/// Moduli of a batch: enough products at once to fill a device.
const BATCH_MODULI: usize = 16;

/// Bytes of big floats that one copy carries.
const PIECE_BYTES: usize = 32 << 20;

/// Allocations are padded to this.
const PAGE_BYTES: u64 = 256;

/// The numbers from which a cut is computed.
#[derive(Clone, Copy, Debug)]
pub struct DeviceInput {
    /// Contracted rows.
    pub contracted: usize,
    /// Rows of the result, padded to a multiple of [`DEVICE_ALIGN`].
    pub rows: usize,
    /// Columns of the result, padded.
    pub cols: usize,
    /// Whether only one triangle of a symmetric product is computed.
    pub triangle: bool,
    /// Whether the operands of a triangle differ.
    pub differ: bool,
    /// Whether the triangle is the upper one.
    pub upper: bool,
    /// Moduli of this device.
    pub moduli: usize,
    /// Moduli of all devices, whose residues are needed when integers are reconstructed.
    pub all_moduli: usize,
    /// Largest number of operand planes of one modulus.
    pub planes_per_modulus: usize,
    /// Bytes of an element of an operand plane.
    pub operand_bytes: usize,
    /// Bytes of an element of a product of planes.
    pub sum_bytes: usize,
    /// Bytes of a residue of the product.
    pub residue_bytes: usize,
    /// 32-bit digits of a scaled entry, without its sign.
    pub digits: usize,
    /// 32-bit words of a reconstructed integer, without its sign.
    pub words: usize,
    /// Limbs of an operand's entry.
    pub input_limbs: usize,
    /// Words of 64 bits of a finished entry.
    pub output_limbs: usize,
    /// Bytes of the engine's tables.
    pub table_bytes: u64,
    /// Entries whose residues ranks exchange at a time, and whose results are computed at a time; 0 in one process.
    pub exchanged: usize,
}

/// The blocking of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceCut {
    /// Columns of a band of the result.
    pub band_cols: usize,
    /// Columns of a strip.
    pub strip_cols: usize,
    /// Contracted rows on the device at the same time.
    pub chunk_rows: usize,
    /// Moduli whose operand planes are on the device at the same time.
    pub batch_moduli: usize,
    /// Entries of the result in one copy, and of an operand, but at least one column of a chunk.
    pub piece_entries: usize,
}

/// Bytes of every part of a call on one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DeviceBytes {
    /// Big floats copied to the device.
    pub input: u64,
    /// Digits of scaled entries.
    pub digits: u64,
    /// Operand planes of a batch.
    pub planes: u64,
    /// Products of planes.
    pub sums: u64,
    /// Residues of the product.
    pub residues: u64,
    /// Integers and big floats copied from the device.
    pub output: u64,
    /// Moduli, tables and shifts.
    pub tables: u64,
}

impl DeviceBytes {
    /// Sum of all parts.
    pub fn total(&self) -> u64 {
        [self.input, self.digits, self.planes, self.sums, self.residues, self.output, self.tables]
            .iter()
            .fold(0, |sum, &part| sum.saturating_add(part))
    }
}

/// A strip of a band: columns `cols` of the result, in which the rows `rows` are computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strip {
    /// Rows of the result.
    pub rows: Range<usize>,
    /// Columns of the result.
    pub cols: Range<usize>,
    /// Entries of the strips of the band before this one.
    pub offset: usize,
}

impl Strip {
    /// Entries computed.
    pub fn entries(&self) -> usize {
        self.rows.len() * self.cols.len()
    }
}

impl DeviceInput {
    /// The bands under `cut`.
    pub fn bands(&self, cut: &DeviceCut) -> impl Iterator<Item = Range<usize>> + use<> {
        let (cols, width) = (self.cols, cut.band_cols);
        (0..cols.div_ceil(width)).map(move |band| band * width..((band + 1) * width).min(cols))
    }

    /// The strips of a band.
    pub fn strips(&self, cut: &DeviceCut, band: Range<usize>) -> Vec<Strip> {
        let mut strips = Vec::new();
        let (mut start, mut offset) = (band.start, 0);
        while start < band.end {
            let cols = start..(start + cut.strip_cols).min(band.end);
            let rows = match (self.triangle, self.upper) {
                (false, _) => 0..self.rows,
                (true, false) => cols.start..self.rows,
                (true, true) => 0..cols.end,
            };
            start = cols.end;
            let strip = Strip { rows, cols, offset };
            offset += strip.entries();
            strips.push(strip);
        }
        strips
    }

    /// Columns of the left operand, and of the right one if it is another matrix, that a band needs.
    pub fn operand_cols(&self, band: &Range<usize>) -> (Range<usize>, Option<Range<usize>>) {
        match (self.triangle, self.upper) {
            (false, _) => (0..self.rows, Some(band.clone())),
            (true, false) => (band.start..self.rows, self.differ.then(|| band.clone())),
            (true, true) => (0..band.end, self.differ.then(|| band.clone())),
        }
    }

    /// Entries of a band that are computed.
    pub fn band_entries(&self, cut: &DeviceCut, band: &Range<usize>) -> usize {
        self.strips(cut, band.clone()).last().map_or(0, |strip| strip.offset + strip.entries())
    }

    /// Entries of the largest band.
    pub fn largest_band_entries(&self, cut: &DeviceCut) -> usize {
        self.bands(cut).map(|band| self.band_entries(cut, &band)).max().unwrap_or(0)
    }

    /// Rows of a chunk, padded.
    pub fn leading_rows(&self, cut: &DeviceCut) -> usize {
        cut.chunk_rows.next_multiple_of(DEVICE_ALIGN)
    }

    /// Columns of an operand in one copy.
    pub fn piece_cols(&self, cut: &DeviceCut) -> usize {
        (cut.piece_entries / cut.chunk_rows).max(1)
    }

    /// Entries of the result that are computed and copied to the host at a time.
    pub fn made_entries(&self, cut: &DeviceCut) -> usize {
        if self.exchanged == 0 { cut.piece_entries } else { self.exchanged.min(cut.piece_entries) }
    }

    /// Copies of the residues of a piece, of all moduli, in which other devices or ranks have a part: two that
    /// alternate, and a third one if ranks have parts, for the residues that they have sent.
    pub fn gathered(&self) -> usize {
        match self.exchanged {
            0 if self.moduli == self.all_moduli => 0,
            0 => 2,
            _ => 3,
        }
    }

    /// Bytes of each such copy. If ranks exchange residues, the packed residues of a modulus are whole words.
    pub fn gathered_bytes(&self, cut: &DeviceCut) -> usize {
        let entries = self.made_entries(cut);
        let entries = if self.exchanged == 0 { entries } else { entries.next_multiple_of(u64::BITS as usize) };
        self.all_moduli * entries * self.residue_bytes
    }

    /// Bytes of the shifts of a piece's entries, one for each, if these are not a rectangle.
    pub fn entry_shift_bytes(&self, cut: &DeviceCut) -> usize {
        if self.exchanged == 0 { 0 } else { 8 * self.made_entries(cut) }
    }

    /// Chunks of rows.
    pub fn chunks(&self, cut: &DeviceCut) -> usize {
        self.contracted.div_ceil(cut.chunk_rows)
    }

    /// Bytes of every part under `cut`, with the padding of each allocation.
    pub fn bytes(&self, cut: &DeviceCut) -> DeviceBytes {
        let pad = |bytes: u128| u64::try_from(bytes.next_multiple_of(u128::from(PAGE_BYTES))).unwrap_or(u64::MAX / 16);
        let product = |parts: &[usize]| pad(parts.iter().map(|&part| part as u128).product());
        let widest = |measure: &dyn Fn(&Range<usize>) -> usize| self.bands(cut).map(|band| measure(&band)).max();
        let cols = widest(&|band| {
            let (left, right) = self.operand_cols(band);
            left.len() + right.map_or(0, |right| right.len())
        });
        let cols = cols.unwrap_or(0);
        let entries = self.largest_band_entries(cut);
        let strip = widest(&|band| self.strips(cut, band.clone()).iter().map(Strip::entries).max().unwrap_or(0));
        let batch_planes = cut.batch_moduli * self.planes_per_modulus;
        let chunk = self.leading_rows(cut) * cols;
        let digit_sets = self.chunks(cut).min(2);
        let made = self.made_entries(cut);
        let out = pad(made as u128 * 8 * (1 + self.output_limbs as u128)) * 2 + 2 * PAGE_BYTES;
        let entry_shifts = 2 * product(&[self.entry_shift_bytes(cut)]);
        let shifts = (self.rows + self.cols) as u128 * 8;
        DeviceBytes {
            input: 2 * product(&[self.piece_cols(cut) * cut.chunk_rows, 8 * (1 + self.input_limbs)]),
            digits: digit_sets as u64 * product(&[chunk, 4 * (self.digits + 1)]),
            planes: product(&[chunk, batch_planes, self.operand_bytes]),
            sums: 2 * product(&[strip.unwrap_or(0), batch_planes, self.sum_bytes]),
            residues: product(&[entries, self.moduli, self.residue_bytes])
                + self.gathered() as u64 * product(&[self.gathered_bytes(cut)]),
            output: out + product(&[made, 4 * (self.words + 1)]) + entry_shifts,
            tables: pad(u128::from(self.table_bytes)) + 2 * pad(shifts),
        }
    }

    /// Bytes of the host's memory for copies. Tables and shifts are sent once, and need no memory afterwards.
    pub fn pinned_bytes(&self, cut: &DeviceCut) -> u64 {
        let bytes = self.bytes(cut);
        let integers = self.made_entries(cut) * 4 * (self.words + 1);
        bytes.input + (bytes.output - integers as u64) + (self.gathered() * self.gathered_bytes(cut)) as u64
    }

    /// The coarsest cut: one band, and everything else as large as is useful.
    pub fn coarsest(&self) -> DeviceCut {
        let strip_cols = STRIP_COLS.min(self.cols.next_multiple_of(DEVICE_ALIGN)).max(LEAST_STRIP_COLS);
        let each = 8 * (1 + self.input_limbs.max(self.output_limbs));
        let entries = (self.contracted * self.cols.max(self.rows)).max(self.rows * self.cols).max(1);
        DeviceCut {
            band_cols: self.cols.max(1),
            strip_cols,
            chunk_rows: self.contracted.clamp(1, LARGEST_CHUNK_ROWS),
            batch_moduli: self.moduli.clamp(1, BATCH_MODULI),
            piece_entries: (PIECE_BYTES / each).min(entries),
        }
    }

    /// The cut for an allocation of at most `limit_bytes`.
    ///
    /// It has the fewest bands, since each band reads the operands again; then the largest number of rows, then of
    /// moduli.
    ///
    /// # Errors
    /// The bytes of the finest cut, if even that exceeds the limit.
    pub fn choose(&self, limit_bytes: u64) -> Result<DeviceCut, u64> {
        let whole = self.coarsest();
        let halves = |from: usize, least: usize, step: usize| {
            let half = move |&size: &usize| (size > least).then(|| (size / 2).next_multiple_of(step).max(least));
            std::iter::successors(Some(from), half)
        };
        let mut minimum = u64::MAX;
        let mut bands = 1;
        loop {
            let width = self.cols.max(1).div_ceil(bands).next_multiple_of(LEAST_STRIP_COLS).min(self.cols.max(1));
            for strip_cols in halves(
                whole.strip_cols.min(width.next_multiple_of(LEAST_STRIP_COLS)),
                LEAST_STRIP_COLS,
                LEAST_STRIP_COLS,
            ) {
                for chunk_rows in halves(whole.chunk_rows, LEAST_CHUNK_ROWS.min(whole.chunk_rows), 1) {
                    for batch_moduli in halves(whole.batch_moduli, 1, 1) {
                        let pieces =
                            [whole.piece_entries, whole.piece_entries.min(1 << 14), whole.piece_entries.min(1 << 8)];
                        for piece_entries in pieces {
                            let cut =
                                DeviceCut { band_cols: width, strip_cols, chunk_rows, batch_moduli, piece_entries };
                            let bytes = self.bytes(&cut).total();
                            minimum = minimum.min(bytes);
                            if bytes <= limit_bytes {
                                return Ok(cut);
                            }
                        }
                    }
                }
            }
            if width <= LEAST_STRIP_COLS {
                return Err(minimum);
            }
            bands *= 2;
        }
    }
}

/// Divides `costs` in order among workers of different speeds: worker `w` receives the items `result[w]`.
///
/// The largest finishing time exceeds that of a perfect division by at most the time of one item.
pub fn shares(costs: &[u64], speeds: &[f64]) -> Vec<Range<usize>> {
    assert!(!speeds.is_empty());
    let (total, speed) = (costs.iter().sum::<u64>() as f64, speeds.iter().sum::<f64>());
    let (mut ranges, mut at, mut before, mut sum) = (Vec::new(), 0, 0.0, 0u64);
    for (worker, own) in speeds.iter().enumerate() {
        before += own;
        let (start, target) = (at, total * before / speed);
        // An item goes to the worker on whose side of the boundary most of it lies.
        while at < costs.len() && (worker + 1 == speeds.len() || sum as f64 + costs[at] as f64 / 2.0 <= target) {
            sum += costs[at];
            at += 1;
        }
        ranges.push(start..at);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(contracted: usize, rows: usize, cols: usize, triangle: bool, upper: bool) -> DeviceInput {
        DeviceInput {
            contracted,
            rows,
            cols,
            triangle,
            differ: false,
            upper,
            moduli: 40,
            all_moduli: 40,
            planes_per_modulus: 3,
            operand_bytes: 1,
            sum_bytes: 4,
            residue_bytes: 2,
            digits: 9,
            words: 18,
            input_limbs: 4,
            output_limbs: 4,
            table_bytes: 10_000,
            exchanged: 0,
        }
    }

    #[test]
    fn strips_cover_what_is_wanted_once() {
        for (rows, cols, triangle, upper) in
            [(50, 50, true, false), (50, 50, true, true), (30, 70, false, false), (1, 1, true, false)]
        {
            let input = input(100, rows, cols, triangle, upper);
            for (band_cols, strip_cols) in [(cols, 512), (cols, 16), (16, 16), (32, 16), (cols.min(20), 7)] {
                let cut = DeviceCut { band_cols, strip_cols, ..input.coarsest() };
                let mut seen = vec![0; rows * cols];
                for band in input.bands(&cut) {
                    let (left, right) = input.operand_cols(&band);
                    let mut offset = 0;
                    for strip in input.strips(&cut, band.clone()) {
                        assert_eq!(strip.offset, offset);
                        offset += strip.entries();
                        assert!(left.start <= strip.rows.start && strip.rows.end <= left.end);
                        let columns = right.clone().unwrap_or(left.clone());
                        assert!(columns.start <= strip.cols.start && strip.cols.end <= columns.end);
                        for col in strip.cols.clone() {
                            strip.rows.clone().for_each(|row| seen[col * rows + row] += 1);
                        }
                    }
                    assert_eq!(offset, input.band_entries(&cut, &band));
                }
                for (at, count) in seen.into_iter().enumerate() {
                    let (row, col) = (at % rows, at / rows);
                    let wanted = !triangle || if upper { row <= col } else { row >= col };
                    assert!(count <= 1 && (count == 1 || !wanted), "({row}, {col}) computed {count} times");
                }
            }
        }
    }

    /// Each part by itself, of numbers that are multiples of a page, so that no padding hides one.
    #[test]
    fn parts_have_the_bytes_of_their_entries() {
        let input = input(1024, 256, 512, false, false);
        let cut = DeviceCut { band_cols: 512, strip_cols: 128, chunk_rows: 256, batch_moduli: 8, piece_entries: 4096 };
        assert_eq!((input.chunks(&cut), input.chunks(&DeviceCut { chunk_rows: 1000, ..cut })), (4, 2));
        let strips = input.strips(&cut, 0..512);
        let entries = strips.iter().map(Strip::entries).collect::<Vec<_>>();
        assert_eq!(entries.iter().sum::<usize>(), 256 * 512);
        let largest = entries.into_iter().max().unwrap();
        let bytes = input.bytes(&cut);
        let rows = 256 + 512;
        assert_eq!(bytes.input, 2 * 4096 * 8 * 5);
        assert_eq!(bytes.digits, 2 * 256 * rows * 4 * 10);
        assert_eq!(bytes.planes, 256 * rows * 8 * 3);
        assert_eq!(bytes.sums, 2 * largest as u64 * 8 * 3 * 4);
        assert_eq!(bytes.residues, 256 * 512 * 40 * 2);
        assert_eq!(bytes.output, 2 * 4096 * 8 * 5 + 2 * PAGE_BYTES + 4096 * 4 * 19);
        assert_eq!(bytes.tables, 10_240 + 2 * rows * 8);
        // One chunk needs its digits once.
        let whole = DeviceCut { chunk_rows: 1024, ..cut };
        assert_eq!(input.bytes(&whole).digits, 1024 * rows * 4 * 10);
        assert_eq!(input.coarsest().piece_entries, 1024 * 512);
        let wide = DeviceInput { contracted: 100_000, ..input };
        assert_eq!(wide.coarsest().piece_entries, PIECE_BYTES / (8 * 5));
    }

    #[test]
    fn every_limit_gives_a_cut_within_it_or_the_least_that_works() {
        for (contracted, rows, cols, triangle) in
            [(4000, 1000, 1000, true), (1, 1, 1, true), (100_000, 20_000, 20_000, true), (300, 40, 5000, false)]
        {
            let input = input(contracted, rows, cols, triangle, false);
            let least = input.choose(0).unwrap_err();
            assert!(input.choose(least - 1).is_err());
            for limit in [least, least + least / 3, 2 * least, 100 * least, u64::MAX] {
                let cut = input.choose(limit).unwrap();
                assert!(input.bytes(&cut).total() <= limit, "{cut:?}");
            }
            assert_eq!(input.bands(&input.choose(u64::MAX).unwrap()).count(), 1);
        }
    }

    #[test]
    fn shares_follow_the_speeds() {
        let costs = [1u64; 10].into_iter().chain([3; 40]).collect::<Vec<_>>();
        for speeds in [vec![1.0], vec![1.0, 1.0], vec![10.0, 1.0, 3.0], vec![1.0, 0.0, 1.0], vec![0.001, 1.0]] {
            let ranges = shares(&costs, &speeds);
            let total = costs.iter().sum::<u64>() as f64 / speeds.iter().sum::<f64>();
            let mut next = 0;
            for (range, speed) in ranges.iter().zip(&speeds) {
                assert_eq!(range.start, next);
                next = range.end;
                let load = costs[range.clone()].iter().sum::<u64>() as f64;
                assert!(load <= total * speed + 3.0, "{speeds:?}: {ranges:?}");
            }
            assert_eq!(next, costs.len());
        }
    }
}
