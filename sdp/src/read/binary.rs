//! Blocks in SDPB's binary form: a binary archive of Boost's serialization library.
//!
//! All numbers are little-endian. The archive begins with the length (8 bytes) and text of a signature, its version (2
//! bytes), the sizes of int, long, float and double (1 byte each) and the int 1. Then come the precision in bits (8
//! bytes), the matrix B, the vector c, and the even and the odd basis. A matrix is its rows, columns and leading
//! dimension, and its columns one after the other; a vector is its length (8 bytes), a version (4 bytes) and its
//! numbers. The first object of each class has a byte and a version of 4 bytes in front. A number is a byte that is 0
//! if the number is 0 (from version 1 on), and otherwise GMP's format: the number of limbs with the sign (4 bytes), the
//! exponent in limbs (8 bytes), and the limbs of the precision, the least significant first.
//!
//! Source: SDPB (`src/pmp2sdp/write_block_data.cxx`, `src/sdpb_util/boost_serialization.hxx`), Boost 1.74
//! (`boost/archive/basic_binary_oarchive.hpp`), GMP (`mpf/init2.c`). That the exponent stands behind the number of
//! limbs is how Elemental writes MPFR's numbers; where GMP's stand the other way around, the first number shows it.
//! Independent of: what the matrices mean.

use crate::numbers::Dimensions;
use rug::{Float, Integer, integer::Order};
use std::io::{ErrorKind, Read};
use std::path::Path;
use sunzi::{Error, Matrix, Result};

/// The text that an archive begins with.
const SIGNATURE: &[u8] = b"serialization::archive";

/// Bits of a limb.
const LIMB_BITS: u64 = 64;

/// Exponents, in limbs, beyond those of any number that can be stored.
const FARTHEST: u64 = 1 << 23;

/// Bytes of a matrix that are taken with its first number; more when they are full.
const FIRST_BYTES: usize = 1 << 20;

/// The sizes that a block should have.
pub struct Shapes {
    /// Variables of the block: rows of B, length of c.
    pub variables: usize,
    /// Sample points: columns of the bases.
    pub points: usize,
    /// Columns of B.
    pub free: usize,
}

/// The contents of the file of a block, in either form.
#[derive(Debug)]
pub struct BlockData {
    /// `B`.
    pub free: Matrix,
    /// `c`, a column.
    pub costs: Matrix,
    /// The even and the odd basis.
    pub bases: [Matrix; 2],
}

/// An archive that is being read.
struct ArchiveReader<'a> {
    inner: &'a mut dyn Read,
    path: &'a Path,
    /// Bits to which numbers are rounded.
    bits: u32,
    /// Limbs that a number takes.
    limbs: usize,
    /// Bytes of Elemental's integers.
    integer_bytes: usize,
    /// Version of the class of numbers, once one was met.
    number_version: Option<u32>,
    /// Whether a matrix was met.
    has_matrix: bool,
    /// Whether exponents stand in front of the numbers of limbs, once that is known.
    exponent_first: Option<bool>,
    /// The bytes of a number.
    scratch: Vec<u8>,
}

/// Reads a block from `inner`, called `path` in messages.
///
/// # Errors
/// [`Error::Format`] with the fault of the archive; the errors of [`Matrix::zeros`].
pub fn read(inner: &mut dyn Read, path: &Path, shapes: &Shapes, bits: u32) -> Result<BlockData> {
    reader(inner, path, bits).block(shapes)
}

/// At the beginning of an archive.
fn reader<'a>(inner: &'a mut dyn Read, path: &'a Path, bits: u32) -> ArchiveReader<'a> {
    ArchiveReader {
        inner,
        path,
        bits,
        limbs: 0,
        integer_bytes: 4,
        number_version: None,
        has_matrix: false,
        exponent_first: None,
        scratch: Vec::new(),
    }
}

/// Bits that GMP gives a number for which `bits` are requested: whole limbs.
fn stored_bits(bits: u32) -> u64 {
    u64::from(bits.max(53)).div_ceil(LIMB_BITS) * LIMB_BITS
}

impl ArchiveReader<'_> {
    fn refused<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::Format { path: self.path.to_path_buf(), message: message.into() })
    }

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        self.scratch.resize(count, 0);
        match self.inner.read_exact(&mut self.scratch) {
            Ok(()) => Ok(&self.scratch),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.refused("the file ends within its numbers: it is incomplete")
            }
            Err(source) => Err(Error::Io { path: self.path.to_path_buf(), action: "read", source }),
        }
    }

    fn unsigned(&mut self, count: usize) -> Result<u64> {
        let bytes = self.take(count)?;
        Ok(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// The head of the archive, and the precision.
    fn head(&mut self) -> Result<()> {
        let length = self.unsigned(8)?;
        if length != SIGNATURE.len() as u64 || self.take(SIGNATURE.len())? != SIGNATURE {
            return self.refused("the file does not begin as a binary archive of the Boost library, which SDPB uses");
        }
        let version = self.unsigned(2)?;
        if version < 8 {
            return self.refused(format!(
                "the archive has version {version} of Boost's format, but versions below 8 cannot be read"
            ));
        }
        if self.take(4)? != [4, 8, 4, 8] || self.unsigned(4)? != 1 {
            return self.refused("the archive was written on a machine with other sizes of integers or order of bytes");
        }
        let found = self.unsigned(8)?;
        let wanted = stored_bits(self.bits);
        if found != wanted {
            let asked = self.bits;
            return self.refused(format!(
                "the numbers of the block have {found} bits, but a precision of {asked} requires {wanted}, in whole \
                 words of 64 bits: choose {found}, or let pmp2sdp write the blocks with --precision={asked}"
            ));
        }
        self.limbs = (found / LIMB_BITS) as usize + 2;
        Ok(())
    }

    fn block(&mut self, shapes: &Shapes) -> Result<BlockData> {
        self.head()?;
        let free = self.matrix("B", Some(Dimensions { rows: shapes.variables, cols: shapes.free }))?;
        self.class("c")?;
        let length = self.unsigned(8)?;
        if length != shapes.variables as u64 {
            let wanted = shapes.variables;
            return self.refused(format!("'c' has {length} numbers instead of {wanted}"));
        }
        self.unsigned(4)?;
        let costs = self.columns(shapes.variables, 1, length)?;
        let bases = [self.matrix("bilinear_bases_even", None)?, self.matrix("bilinear_bases_odd", None)?];
        let mut beyond = [0];
        match self.inner.read(&mut beyond) {
            Ok(0) => Ok(BlockData { free, costs, bases }),
            Ok(_) => self.refused("data follow the last matrix, bilinear_bases_odd"),
            Err(source) => Err(Error::Io { path: self.path.to_path_buf(), action: "read", source }),
        }
    }

    /// The data in front of the first object of a class: whether objects are tracked, which none here are, and the
    /// version.
    fn class(&mut self, name: &str) -> Result<u32> {
        match self.unsigned(1)? {
            0 => Ok(self.unsigned(4)? as u32),
            _ => self.refused(format!("the archive is not a block of SDPB: '{name}' should begin at this place")),
        }
    }

    /// A matrix, of known shape or of one that its bytes must bear out.
    fn matrix(&mut self, name: &str, shape: Option<Dimensions>) -> Result<Matrix> {
        if !self.has_matrix {
            self.class(name)?;
            self.has_matrix = true;
        }
        let mut sizes = [0; 3];
        sizes[0] = self.unsigned(self.integer_bytes)?;
        sizes[1] = self.unsigned(self.integer_bytes)?;
        // The first matrix has at least one row: where its columns seem to be 0 and should not, integers have 8 bytes.
        if self.integer_bytes == 4 && sizes[1] == 0 && shape.is_some_and(|shape| shape.cols > 0) {
            self.integer_bytes = 8;
            sizes[1] = self.unsigned(8)?;
        }
        sizes[2] = self.unsigned(self.integer_bytes)?;
        let [rows, cols, leading] = sizes;
        let is_other = |shape: &Dimensions| (rows, cols) != (shape.rows as u64, shape.cols as u64);
        if let Some(wanted) = shape.filter(is_other) {
            let Dimensions { rows: wanted_rows, cols: wanted_cols } = wanted;
            return self.refused(format!("'{name}' is {rows} x {cols} instead of {wanted_rows} x {wanted_cols}"));
        }
        let least = rows.max(1);
        let most = least.saturating_mul(2).saturating_add(64);
        if !(least..=most).contains(&leading) {
            return self.refused(format!(
                "'{name}' is {rows} x {cols} with a leading dimension of {leading}, which should be {least} to {most}"
            ));
        }
        self.columns(rows as usize, cols, leading)
    }

    /// The columns of a matrix, one after the other, of `leading` numbers each. Its memory grows with the numbers that
    /// have come: the sizes that a file claims may be any numbers.
    fn columns(&mut self, rows: usize, cols: u64, leading: u64) -> Result<Matrix> {
        let total = usize::try_from(cols).ok().and_then(|cols| rows.checked_mul(cols)).unwrap_or(usize::MAX);
        let number_bytes = Matrix::bytes_for(1, 1, self.bits) as usize;
        let first = total.min((FIRST_BYTES / number_bytes).max(1));
        let mut numbers = Matrix::zeros(0, 1, self.bits)?;
        let mut count = 0;
        for row in (0..cols).flat_map(|_| 0..leading) {
            let number = self.number()?;
            if row >= rows as u64 {
                continue;
            }
            if count == numbers.rows() {
                let more = Matrix::zeros(count.saturating_mul(2).clamp(first, total), 1, self.bits)?;
                let fewer = std::mem::replace(&mut numbers, more);
                let ((heads, limbs), (to_heads, to_limbs)) = (fewer.parts(), numbers.parts_mut());
                to_heads[..heads.len()].copy_from_slice(heads);
                to_limbs[..limbs.len()].copy_from_slice(limbs);
            }
            numbers.set_float(count, 0, &number)?;
            count += 1;
        }
        numbers.into_shape(rows, cols as usize)
    }

    fn number(&mut self) -> Result<Float> {
        let version = match self.number_version {
            Some(version) => version,
            None => self.class("a number")?,
        };
        self.number_version = Some(version);
        if version > 0 {
            match self.unsigned(1)? {
                0 => {}
                1 => return Ok(Float::new(self.bits)),
                _ => return self.refused("a number does not begin as SDPB writes it: the file is damaged"),
            }
        }
        let limbs = self.limbs;
        let bytes = self.take(12 + 8 * limbs)?.to_vec();
        let field = |at: usize, count: usize| bytes[at..at + count].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        let parts = |exponent_first: bool| match exponent_first {
            false => (field(0, 4) as u32 as i32, field(4, 8) as i64),
            true => (field(8, 4) as u32 as i32, field(0, 8) as i64),
        };
        let is_sound = |exponent_first: bool| {
            let (size, exponent) = parts(exponent_first);
            match size.unsigned_abs() as usize {
                0 => version == 0 && exponent == 0,
                count => count <= limbs && exponent.unsigned_abs() <= FARTHEST,
            }
        };
        let order = self.exponent_first.or_else(|| [false, true].into_iter().find(|&order| is_sound(order)));
        let Some(order) = order.filter(|&order| is_sound(order)) else {
            let message =
                "a number has more limbs than its precision allows, or an exponent out of range: the file is damaged";
            return self.refused(message);
        };
        let (size, exponent) = parts(order);
        let count = size.unsigned_abs() as usize;
        if count > 0 {
            self.exponent_first = Some(order);
        }
        let words = (0..count).map(|at| field(12 + 8 * at, 8)).collect::<Vec<_>>();
        if words.last() == Some(&0) {
            return self.refused("the most significant word of a number is 0: the file is damaged");
        }
        let integer = Integer::from_digits(&words, Order::Lsf);
        let shift = (exponent - count as i64) * LIMB_BITS as i64;
        let exact = Float::with_val(integer.significant_bits().max(2), &integer) << shift as i32;
        let value = Float::with_val(self.bits, exact);
        Ok(if size < 0 { -value } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a matrix of any shape, whose numbers have `bits` bits, from its sizes and the bytes of its numbers.
    fn matrix(sizes: [u64; 3], numbers: &[u8], bits: u32) -> Result<Matrix> {
        let bytes = sizes.iter().flat_map(|size| size.to_le_bytes()).chain(numbers.iter().copied()).collect::<Vec<_>>();
        let mut inner = &bytes[..];
        let begun = reader(&mut inner, Path::new("block_data_0.bin"), bits);
        let (number_version, exponent_first) = (Some(1), Some(false));
        let mut reader =
            ArchiveReader { limbs: 1, integer_bytes: 8, number_version, has_matrix: true, exponent_first, ..begun };
        reader.matrix("bilinear_bases_even", None)
    }

    /// Sizes that no bytes bear out take no memory: the file ends, as it would with sizes that memory holds.
    #[test]
    fn sizes_are_believed_as_far_as_numbers_come() {
        for sizes in [[1 << 40, 1, 1 << 40], [1 << 20, 1 << 40, 1 << 20], [1, 1 << 60, 1], [1 << 33, 1 << 33, 1 << 33]]
        {
            let refused = matrix(sizes, &[1; 100], 768).unwrap_err().to_string();
            assert!(refused.contains("the file ends within its numbers"), "{sizes:?}: {refused}");
        }
    }

    /// A block of a few bytes that has very many variables in its other file: no column for them is made.
    #[test]
    fn as_many_costs_as_are_wanted_are_believed_as_far_as_numbers_come() {
        let zeros = |count: usize| vec![1; count];
        let block = |variables: u64, numbers: usize| {
            let head = [&22u64.to_le_bytes()[..], SIGNATURE, &[18, 0, 4, 8, 4, 8, 1, 0, 0, 0], &128u64.to_le_bytes()];
            // B has no columns; the first number of c has the version of all of them.
            let free = [&[0; 5][..], &variables.to_le_bytes(), &[0; 8], &variables.to_le_bytes()];
            let costs = [&[0; 5][..], &variables.to_le_bytes(), &[0; 4], &[0, 1, 0, 0, 0], &zeros(numbers)];
            let bytes = [head.concat(), free.concat(), costs.concat()].concat();
            let shapes = Shapes { variables: variables as usize, points: 1, free: 0 };
            let mut inner = &bytes[..];
            let mut reader =
                ArchiveReader { integer_bytes: 8, ..reader(&mut inner, Path::new("block_data_0.bin"), 128) };
            reader.block(&shapes).unwrap_err().to_string()
        };
        for variables in [1 << 45, 1 << 59] {
            let refused = block(variables, 100);
            assert!(refused.contains("the file ends within its numbers"), "{variables}: {refused}");
        }
    }

    /// The numbers of a matrix stay in their places while its memory grows, and those between two columns are left out.
    #[test]
    fn memory_grows_with_the_numbers() {
        let seven = [&[0][..], &1u32.to_le_bytes(), &1i64.to_le_bytes(), &7u64.to_le_bytes()].concat();
        let bits = 1 << 17;
        let (rows, cols, leading) = (100, 45, 101);
        assert!(rows * cols * Matrix::bytes_for(1, 1, bits) as usize > FIRST_BYTES);
        let mut numbers = Vec::new();
        for col in 0..cols {
            for row in 0..leading {
                let is_seven = (row, col) == (99, 44) || (row, col) == (1, 2) || row == 100;
                numbers.extend_from_slice(if is_seven { &seven } else { &[1] });
            }
        }
        let read = matrix([rows as u64, cols as u64, leading as u64], &numbers, bits).unwrap();
        assert_eq!((read.rows(), read.cols()), (rows, cols));
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let wanted = if (row, col) == (99, 44) || (row, col) == (1, 2) { 7.0 } else { 0.0 };
            assert_eq!(read.get(row, col).to_f64(), wanted, "{row} {col}");
        }
    }
}
