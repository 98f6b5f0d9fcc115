//! From big floats or packed integers to digits, and from digits to operand planes or residues.

use super::checks::{apart, extent, number, optional, part};
use super::launch::{Launcher, Residues, slices};
use super::source::{CONVERT, SCALE, UNPACK};
use crate::device::{Argument, Region};
use crate::error::Result;
use std::ops::Range;

/// Largest number of digits that a thread of a conversion holds in registers.
const HELD_DIGITS: usize = 96;

/// Fixed-point integers on a device: digit `d` of entry `e`, of 32 bits, is element `d * stride + e`; the sign (0 or 1)
/// is digit number `count`.
#[derive(Clone, Copy)]
pub struct DeviceDigits<'a> {
    /// Where element 0 lies.
    pub region: &'a Region,
    /// Digits of a magnitude.
    pub count: usize,
    /// Distance in elements from one digit to the next.
    pub stride: usize,
}

/// Conversion of big floats, dense and column-major, to digits: `round(value * 2^(row shift + column shift))`, to
/// nearest, ties to even. A value that rounds to 0 has no sign.
#[derive(Clone, Copy)]
pub struct Scale<'a> {
    /// A head of 64 bits for each entry, as in [`crate::math::float::Head`].
    pub heads: &'a Region,
    /// The significands, `limbs_per_element` limbs for each entry.
    pub limbs: &'a Region,
    /// Limbs of a significand.
    pub limbs_per_element: usize,
    /// Shifts of the rows, 64 bits each; zeros where absent. The sum of an exponent and its shifts must be within
    /// `+-2^61`.
    pub row_shifts: Option<&'a Region>,
    /// Shifts of the columns; zeros where absent.
    pub col_shifts: Option<&'a Region>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The destination of the digits, which must suffice for every scaled integer: higher digits are lost.
    pub digits: DeviceDigits<'a>,
    /// Distance in entries from one column of the digits to the next; entries beyond `rows` become 0.
    pub ld: usize,
    /// Column of the digits for the first column.
    pub first_col: usize,
}

/// Conversion of packed integers, dense and column-major, to digits.
#[derive(Clone, Copy)]
pub struct Unpack<'a> {
    /// For each entry a word whose lowest bit is the sign, and the limbs of the magnitude, 64 bits each.
    pub packed: &'a Region,
    /// Limbs of a magnitude.
    pub limbs_per_element: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The destination of the digits; digits beyond the limbs become 0, limbs beyond the digits are lost.
    pub digits: DeviceDigits<'a>,
    /// Entries from one column of the digits to the next; those beyond `rows` become 0.
    pub ld: usize,
    /// Column of the digits that the first column becomes.
    pub first_col: usize,
}

/// Conversion of digits to the operand planes of some moduli: the residue of entry `e` in plane `s`, counted from the
/// first plane of the range, is element `s * stride + e`, a double or a signed byte.
#[derive(Clone)]
pub struct ToPlanes<'a> {
    /// The integers; at most [`super::DeviceEngine::largest_digits`] digits.
    pub digits: DeviceDigits<'a>,
    /// Number of integers.
    pub entries: usize,
    /// The moduli.
    pub moduli: Range<usize>,
    /// The destination of the planes.
    pub planes: &'a Region,
    /// Elements from one plane to the next.
    pub stride: usize,
}

/// Conversion of digits to least residues modulo some moduli.
#[derive(Clone)]
pub struct DeviceToResidues<'a> {
    /// The integers; at most [`super::DeviceEngine::largest_digits`] digits.
    pub digits: DeviceDigits<'a>,
    /// Number of integers.
    pub entries: usize,
    /// The moduli.
    pub moduli: Range<usize>,
    /// Where the residues go.
    pub residues: Residues<'a>,
}

/// The block that [`Scale`] and [`Unpack`] write.
struct PlaneBlock<'a> {
    digits: DeviceDigits<'a>,
    rows: usize,
    cols: usize,
    ld: usize,
    first_col: usize,
}

impl PlaneBlock<'_> {
    /// The digits from the first column of the block on.
    fn region(&self) -> Region {
        let PlaneBlock { digits, rows, cols, ld, first_col } = *self;
        assert!(ld >= rows, "{rows} rows, {ld} from column to column");
        let entries = first_col.checked_add(cols).and_then(|cols| cols.checked_mul(ld)).expect("entries are counted");
        let elements = extent(digits.count + 1, digits.stride, 0, entries);
        let region = part("digits", digits.region, 4, elements);
        region.from((first_col * ld * 4).min(region.bytes()))
    }

    fn threads(&self) -> u64 {
        self.ld as u64 * self.cols as u64
    }
}

impl Launcher<'_> {
    /// Big floats to digits.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn scale(&self, scale: &Scale<'_>) -> Result<()> {
        let Scale { limbs_per_element, rows, cols, digits, ld, first_col, .. } = *scale;
        let block = PlaneBlock { digits, rows, cols, ld, first_col };
        let entries = rows.checked_mul(cols).expect("entries are counted");
        let heads = part("heads", scale.heads, 8, entries);
        let limbs = part("limbs", scale.limbs, 8, extent(entries, limbs_per_element, 0, limbs_per_element));
        let row_shifts = scale.row_shifts.map(|shifts| part("row shifts", shifts, 8, rows));
        let col_shifts = scale.col_shifts.map(|shifts| part("column shifts", shifts, 8, cols));
        let out = block.region();
        let reads = [Some(&heads), Some(&limbs), row_shifts.as_ref(), col_shifts.as_ref()];
        apart(&[&out], &reads.into_iter().flatten().collect::<Vec<_>>());
        if block.threads() == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Address(heads),
            Argument::Address(limbs),
            optional(row_shifts),
            optional(col_shifts),
            number(rows),
            number(ld),
            number(limbs_per_element),
            Argument::Address(out),
            number(digits.count),
            number(digits.stride),
        ];
        // SAFETY: these are the fields of `scale_arguments`. A thread for each place `col * ld + row`, `col < cols`,
        // reads the head, limbs and shifts of its entry, and writes element `digit * stride + place`, `digit <= count`:
        // all inside what was checked; places of threads differ, digits do not overlap, and nothing read is written.
        unsafe { self.device.launch(self.stream, &SCALE, &[], block.threads(), &arguments) }
    }

    /// Packed integers to digits.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn unpack(&self, unpack: &Unpack<'_>) -> Result<()> {
        let Unpack { limbs_per_element, rows, cols, digits, ld, first_col, .. } = *unpack;
        let block = PlaneBlock { digits, rows, cols, ld, first_col };
        let entries = rows.checked_mul(cols).expect("entries are counted");
        let packed =
            part("packed integers", unpack.packed, 8, extent(entries, 1 + limbs_per_element, 0, 1 + limbs_per_element));
        let out = block.region();
        apart(&[&out], &[&packed]);
        if block.threads() == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Address(packed),
            number(rows),
            number(ld),
            number(limbs_per_element),
            Argument::Address(out),
            number(digits.count),
            number(digits.stride),
        ];
        // SAFETY: these are the fields of `unpack_arguments`. As for `scale`: a thread reads the words of its entry, if
        // its row exists, and writes the digits of its place.
        unsafe { self.device.launch(self.stream, &UNPACK, &[], block.threads(), &arguments) }
    }

    /// Conversion of digits to operand planes.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn to_planes(&self, to: &ToPlanes<'_>) -> Result<()> {
        let planes = self.engine.planes(to.moduli.clone()).len();
        let element_bytes = self.engine.element().operand_bytes();
        let out = part("planes", to.planes, element_bytes, extent(planes, to.stride, 0, to.entries));
        self.convert(DeviceConversion::new(to.digits, to.entries, &to.moduli), out, to.stride, 1)
    }

    /// Digits to least residues.
    ///
    /// # Errors
    /// The errors of [`crate::device::Device::launch`].
    pub fn to_residues(&self, to: &DeviceToResidues<'_>) -> Result<()> {
        let element_bytes = self.engine.residue_bytes();
        assert_eq!(to.residues.first_modulus, 0, "residues of integers begin with the first modulus");
        let elements = to.residues.elements(&to.moduli, to.entries);
        let residues = part("residues", to.residues.region, element_bytes, elements);
        let out = residues.from((to.residues.offset * element_bytes).min(residues.bytes()));
        self.convert(DeviceConversion::new(to.digits, to.entries, &to.moduli), out, to.residues.stride, 0)
    }

    /// Both conversions: `out` and `stride` are checked, and `planes` is 1 for operand planes.
    fn convert(&self, from: DeviceConversion<'_>, out: Region, stride: usize, planes: u64) -> Result<()> {
        let DeviceConversion { digits, entries, moduli } = from;
        let largest = self.engine.largest_digits();
        assert!(moduli.start <= moduli.end && moduli.end <= self.engine.moduli().len(), "moduli {moduli:?}");
        assert!(digits.count <= largest, "{} digits of at most {largest}", digits.count);
        let input = part("digits", digits.region, 4, extent(digits.count + 1, digits.stride, 0, entries));
        apart(&[&out], &[&input, &self.tables.moduli, &self.tables.powers]);
        let groups = if moduli.is_empty() { 0 } else { moduli.end.div_ceil(4) - moduli.start / 4 };
        let (groups_per_thread, slices) = slices(entries, groups);
        if entries == 0 || slices == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Address(self.tables.moduli.clone()),
            Argument::Address(self.tables.powers.clone()),
            number(largest),
            Argument::Address(input),
            number(digits.count),
            number(digits.stride),
            number(entries),
            number(moduli.start),
            number(moduli.end),
            number(groups_per_thread),
            number(self.engine.family().single_count()),
            Argument::Number(self.bytes_flag()),
            Argument::Number(planes),
            Argument::Address(out),
            number(stride),
        ];
        let mut defines = vec![("SUNZI_BYTES", self.bytes_flag()), ("SUNZI_PLANES", planes)];
        if (1..=HELD_DIGITS).contains(&digits.count) {
            defines.push(("SUNZI_DIGITS", digits.count as u64));
        }
        let threads = entries as u64 * slices as u64;
        // SAFETY: these are the fields of `convert_arguments`. The tables have a group for each four moduli, with
        // `largest` digits, and are those of this engine. A thread has an entry and a slice of the groups; it reads the
        // entry's digits and writes its planes or residues of those moduli of the slice that are in the range: inside
        // what was checked, no place twice, and nothing read is written.
        unsafe { self.device.launch(self.stream, &CONVERT, &defines, threads, &arguments) }
    }
}

/// The source of a conversion.
struct DeviceConversion<'a> {
    digits: DeviceDigits<'a>,
    entries: usize,
    moduli: Range<usize>,
}

impl<'a> DeviceConversion<'a> {
    fn new(digits: DeviceDigits<'a>, entries: usize, moduli: &Range<usize>) -> DeviceConversion<'a> {
        DeviceConversion { digits, entries, moduli: moduli.clone() }
    }
}
