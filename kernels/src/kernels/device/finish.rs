//! From sums of products to residues, from residues to integers, and from these to big floats or to the host.

use super::checks::{apart, extent, number, optional, part};
use super::launch::{Integers, Launcher, Residues, slices};
use super::source::{FILL, PACK, RECONSTRUCT, REDUCE, ROUND, SELECT};
use crate::device::{Argument, Region};
use crate::error::Result;
use crate::math::float::limbs_for;
use crate::matrix::MAXIMUM_EXPONENT;
use std::ops::Range;

/// The combination of reduced sums with existing residues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceInto {
    /// They replace them.
    Overwrite,
    /// The sums are added to the residues.
    Add,
    /// The sums are subtracted from the residues.
    Subtract,
}

/// Conversion of the sums of a batch of plane products to residues.
#[derive(Clone)]
pub struct Reduce<'a> {
    /// The sum of entry `i` in plane `s`, counted from the first plane of the range, is element `s * sum_stride + i`, a
    /// double or a 32-bit integer; over at most [`super::DeviceEngine::largest_chunk_rows`] rows.
    pub sums: &'a Region,
    /// Distance in elements from one plane to the next.
    pub sum_stride: usize,
    /// Number of entries.
    pub entries: usize,
    /// The moduli.
    pub moduli: Range<usize>,
    /// The destination of the residues.
    pub residues: Residues<'a>,
    /// The combination with existing residues.
    pub into: ReduceInto,
}

/// Copies the residues of a rectangle of entries, so that they lie one after the other, column by column.
#[derive(Clone)]
pub struct Select<'a> {
    /// Entry `(r, c)` of the rectangle is entry number `c * leading + r` of these.
    pub from: Residues<'a>,
    /// Distance in entries from one column to the next.
    pub leading: usize,
    /// Rows of the rectangle.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// The moduli.
    pub moduli: Range<usize>,
    /// Their destination.
    pub to: Residues<'a>,
}

/// Conversion of residues modulo all moduli to the integers of least magnitude with these residues.
///
/// Residues of an integer that is too large give a magnitude near half the product of the moduli.
#[derive(Clone, Copy)]
pub struct DeviceReconstruct<'a> {
    /// The residues.
    pub residues: Residues<'a>,
    /// The destination of the integers.
    pub integers: Integers<'a>,
}

/// Conversion of integers times powers of two to big floats, to nearest, ties to even, dense and column-major.
///
/// Entry `i` of a block of `rows` rows is integer number `i` times `2^-(left + right)`, `left` the shift of row
/// `i % rows` and `right` that of column `i / rows`.
#[derive(Clone, Copy)]
pub struct Round<'a> {
    /// The integers.
    pub integers: Integers<'a>,
    /// Rows of the block; divides the number of integers.
    pub rows: usize,
    /// Shifts of the rows, 64 bits each, the block's first one first; zeros where absent.
    pub left_shifts: Option<&'a Region>,
    /// Shifts of the columns; zeros where absent.
    pub right_shifts: Option<&'a Region>,
    /// Bits of the significands.
    pub precision_bits: u32,
    /// A head of 64 bits for each entry, as in [`crate::math::float::Head`].
    pub heads: &'a Region,
    /// The significands, `limbs_for(precision_bits)` limbs for each entry.
    pub limbs: &'a Region,
    /// Largest length in bits of an integer, if it is to be checked.
    pub largest_bits: Option<u32>,
    /// Two words of 64 bits that [`Launcher::clear_faults`] prepared: the smallest number of an entry that is too long,
    /// and of an entry whose exponent is beyond [`MAXIMUM_EXPONENT`]; both are the largest word if there is none.
    pub faults: &'a Region,
    /// The offset that is added to the number of an entry there.
    pub first_index: u64,
}

/// Conversion of integers to the form that the host reads: for each entry a sign word and
/// [`super::DeviceEngine::limbs`] limbs.
#[derive(Clone, Copy)]
pub struct PackIntegers<'a> {
    /// The integers.
    pub integers: Integers<'a>,
    /// The destination of the words, 64 bits each.
    pub packed: &'a Region,
}

impl Launcher<'_> {
    /// All words of some integers.
    fn integers(&self, integers: &Integers<'_>) -> Region {
        let elements = extent(self.engine.words() + 1, integers.entries, 0, integers.entries);
        part("integers", integers.region, 4, elements)
    }

    /// Sums to residues.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn reduce(&self, reduce: &Reduce<'_>) -> Result<()> {
        let Reduce { sum_stride, entries, ref moduli, residues, into, .. } = *reduce;
        let planes = self.engine.planes(moduli.clone()).len();
        let sum_bytes = self.engine.element().product_bytes();
        let sums = part("sums", reduce.sums, sum_bytes, extent(planes, sum_stride, 0, entries));
        let out = part("residues", residues.region, self.engine.residue_bytes(), residues.elements(moduli, entries));
        apart(&[&out], &[&sums, &self.tables.moduli]);
        let (moduli_per_thread, slices) = slices(entries, moduli.len());
        if entries == 0 || slices == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Address(self.tables.moduli.clone()),
            Argument::Address(sums),
            number(sum_stride),
            number(entries),
            number(moduli.start),
            number(moduli.end),
            number(moduli_per_thread),
            number(self.engine.family().single_count()),
            Argument::Number(self.bytes_flag()),
            Argument::Number(into as u64),
            Argument::Address(out),
            number(residues.stride),
            Argument::Number(residues.kernel_offset()),
        ];
        let defines = [("SUNZI_BYTES", self.bytes_flag())];
        let threads = entries as u64 * slices as u64;
        // SAFETY: these are the fields of `reduce_arguments`. A thread has an entry and a slice of the moduli; it reads
        // their sums and constants and writes their residues: inside what was checked, no place twice.
        unsafe { self.device.launch(self.stream, &REDUCE, &defines, threads, &arguments) }
    }

    /// Residues of a rectangle to residues of a list.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn select(&self, select: &Select<'_>) -> Result<()> {
        let Select { from, leading, rows, cols, ref moduli, to } = *select;
        let (entries, bytes) = (rows * cols, self.engine.residue_bytes());
        let (moduli_per_thread, slices) = slices(entries, moduli.len());
        if entries == 0 || slices == 0 {
            return Ok(());
        }
        assert!(cols == 1 || leading >= rows, "columns of {rows} entries, {leading} apart");
        let input = part("residues", from.region, bytes, from.elements(moduli, (cols - 1) * leading + rows));
        let out = part("selected residues", to.region, bytes, to.elements(moduli, entries));
        apart(&[&out], &[&input]);
        let arguments = [
            Argument::Address(input),
            number(from.stride),
            Argument::Number(from.kernel_offset()),
            number(leading),
            number(rows),
            number(entries),
            number(moduli.start),
            number(moduli.end),
            number(moduli_per_thread),
            Argument::Number(self.bytes_flag()),
            Argument::Address(out),
            number(to.stride),
            Argument::Number(to.kernel_offset()),
        ];
        let defines = [("SUNZI_BYTES", self.bytes_flag())];
        let threads = entries as u64 * slices as u64;
        // SAFETY: these are the fields of `select_arguments`. A thread has an entry and a slice of the moduli; it reads
        // their residues in one list and writes them in the other: inside what was checked, no place twice.
        unsafe { self.device.launch(self.stream, &SELECT, &defines, threads, &arguments) }
    }

    /// Residues to integers.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn reconstruct(&self, reconstruct: &DeviceReconstruct<'_>) -> Result<()> {
        let DeviceReconstruct { residues, integers } = *reconstruct;
        let (count, entries) = (self.engine.moduli().len(), integers.entries);
        let input =
            part("residues", residues.region, self.engine.residue_bytes(), residues.elements(&(0..count), entries));
        let out = self.integers(&integers);
        apart(&[&out], &[&input, &self.tables.moduli, &self.tables.cofactors]);
        if entries == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Address(self.tables.moduli.clone()),
            Argument::Address(self.tables.cofactors.clone()),
            number(count),
            Argument::Number(self.bytes_flag()),
            Argument::Address(input),
            number(residues.stride),
            Argument::Number(residues.kernel_offset()),
            number(entries),
            Argument::Address(out),
            number(self.engine.words()),
        ];
        let defines = [("SUNZI_BYTES", self.bytes_flag())];
        // SAFETY: these are the fields of `reconstruct_arguments`. The cofactors have a row for each modulus and one
        // more in every pass over sixteen words. A thread reads the residues of its entry and writes the entry's words.
        unsafe { self.device.launch(self.stream, &RECONSTRUCT, &defines, entries as u64, &arguments) }
    }

    /// Prepares the two words in which [`Launcher::round`] reports faults.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn clear_faults(&self, faults: &Region) -> Result<()> {
        let arguments = [Argument::Address(part("faults", faults, 8, 2)), Argument::Number(u64::MAX)];
        // SAFETY: these are the fields of `fill_arguments`; each of two threads writes one of two words.
        unsafe { self.device.launch(self.stream, &FILL, &[], 2, &arguments) }
    }

    /// Conversion of integers to big floats.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn round(&self, round: &Round<'_>) -> Result<()> {
        let (entries, rows) = (round.integers.entries, round.rows);
        if entries == 0 {
            return Ok(());
        }
        assert!(rows > 0 && entries.is_multiple_of(rows), "{entries} entries in columns of {rows}");
        assert!(round.precision_bits > 0, "a significand has bits");
        let limb_count = limbs_for(round.precision_bits);
        let integers = self.integers(&round.integers);
        let left = round.left_shifts.map(|shifts| part("left shifts", shifts, 8, rows));
        let right = round.right_shifts.map(|shifts| part("right shifts", shifts, 8, entries / rows));
        let heads = part("heads", round.heads, 8, entries);
        let limbs = part("limbs", round.limbs, 8, extent(entries, limb_count, 0, limb_count));
        let faults = part("faults", round.faults, 8, 2);
        let reads = [Some(&integers), left.as_ref(), right.as_ref()];
        apart(&[&heads, &limbs, &faults], &reads.into_iter().flatten().collect::<Vec<_>>());
        let arguments = [
            Argument::Address(integers),
            number(self.engine.words()),
            number(entries),
            number(rows),
            optional(left),
            optional(right),
            Argument::Number(round.precision_bits.into()),
            number(limb_count),
            Argument::Number(round.largest_bits.map_or(u64::MAX, u64::from)),
            Argument::Number(MAXIMUM_EXPONENT as u64),
            Argument::Number(round.first_index),
            Argument::Address(faults),
            Argument::Address(heads),
            Argument::Address(limbs),
        ];
        // SAFETY: these are the fields of `round_arguments`. A thread reads the words of its entry and the shifts of
        // its row and column, writes the entry's head and limbs, and lowers the two words of faults atomically.
        unsafe { self.device.launch(self.stream, &ROUND, &[], entries as u64, &arguments) }
    }

    /// Integers to packed ones.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn pack(&self, pack: &PackIntegers<'_>) -> Result<()> {
        let (entries, limb_count) = (pack.integers.entries, self.engine.limbs());
        let integers = self.integers(&pack.integers);
        let packed = part("packed integers", pack.packed, 8, extent(entries, 1 + limb_count, 0, 1 + limb_count));
        apart(&[&packed], &[&integers]);
        if entries == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Address(integers),
            number(self.engine.words()),
            number(entries),
            number(limb_count),
            Argument::Address(packed),
        ];
        let threads = entries as u64 * (1 + limb_count as u64);
        // SAFETY: these are the fields of `pack_arguments`. A thread for each word that is written reads the sign or at
        // most two words of its entry; the limbs are `words.div_ceil(2)`, so the first of the two exists.
        unsafe { self.device.launch(self.stream, &PACK, &[], threads, &arguments) }
    }
}

/// The numbers by which the kernel distinguishes them.
const _: () =
    assert!(ReduceInto::Overwrite as u64 == 0 && ReduceInto::Add as u64 == 1 && ReduceInto::Subtract as u64 == 2);
