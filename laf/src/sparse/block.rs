//! The bytes of one block of a sparse matrix.
//!
//! Compressed sparse rows, all little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `SZSB` |
//! | 1, 1, 1, 1 | version 1; 1 for a lower triangle, else 0; bytes of a column index; bytes of a count |
//! | 8, 8, 8 | rows, columns, entries |
//! | 8 an entry | the values, row by row |
//! | 1 to 4 an entry | the column of each, from 0, ascending within a row |
//! | 1 to 4 a row | entries of each row |
//! | 0 to 7 | zeros up to a multiple of 8 |
//!
//! An index takes the number of bytes that the largest possible index needs, so that a block of 65,536 columns takes 10
//! bytes an entry and one of 16 million columns 11, in addition to the counts of the rows. Promise:
//! [`SparseBlock::parse`] accepts no bytes whose lengths are wrong. A column index out of range, or counts that do not
//! add up, are found where they are used: no kernel reads or writes elsewhere.

use sunzi::{Error, Result};

/// The first bytes of a block.
const MAGIC: [u8; 4] = *b"SZSB";
const VERSION: u8 = 1;
/// Bytes before the values.
pub(super) const HEADER_BYTES: usize = 32;

/// The shape of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockShape {
    /// Its rows, less than `2^32`.
    pub rows: usize,
    /// Its columns, less than `2^32`.
    pub cols: usize,
    /// Whether it is the lower triangle, including the diagonal, of a symmetric block.
    pub lower: bool,
}

/// Bytes of each field of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Widths {
    pub column: usize,
    pub count: usize,
}

/// The fewest bytes, at least 1, that hold every number up to `largest`.
pub(super) fn bytes_for(largest: u64) -> usize {
    (64 - largest.leading_zeros() as usize).div_ceil(8).max(1)
}

/// Bytes of a whole block; `None` where they exceed the address space.
pub(super) fn block_bytes(shape: BlockShape, entries: usize, widths: Widths) -> Option<usize> {
    let values = entries.checked_mul(8 + widths.column)?;
    let counts = shape.rows.checked_mul(widths.count)?;
    HEADER_BYTES.checked_add(values)?.checked_add(counts)?.checked_next_multiple_of(8)
}

/// The first [`HEADER_BYTES`] bytes.
pub(super) fn header(shape: BlockShape, entries: usize, widths: Widths) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&[VERSION, u8::from(shape.lower), widths.column as u8, widths.count as u8]);
    for (place, number) in bytes[8..].chunks_exact_mut(8).zip([shape.rows, shape.cols, entries]) {
        place.copy_from_slice(&(number as u64).to_le_bytes());
    }
    bytes
}

/// A block whose header and lengths are valid.
#[derive(Clone, Copy, Debug)]
pub struct SparseBlock<'a> {
    shape: BlockShape,
    entries: usize,
    widths: Widths,
    values: &'a [u8],
    columns: &'a [u8],
    counts: &'a [u8],
}

impl<'a> SparseBlock<'a> {
    /// Reads the header. Cost: constant.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the fault in the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<SparseBlock<'a>> {
        let Some((head, body)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(damaged(format_args!("it has {} bytes, fewer than its header", bytes.len())));
        };
        if head[..4] != MAGIC || head[4] != VERSION {
            return Err(damaged(format_args!("it begins with {:02x?}, not with {MAGIC:02x?} {VERSION}", &head[..5])));
        }
        let number = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[8 * index + byte]));
        let [rows, cols, entries] = [number(1), number(2), number(3)];
        let widths = Widths { column: head[6].into(), count: head[7].into() };
        let is_sized = head[5] <= 1 && (1..=4).contains(&widths.column) && (1..=4).contains(&widths.count);
        if !is_sized || rows >> 32 != 0 || cols >> 32 != 0 || (head[5] == 1 && rows != cols) {
            return Err(damaged(format_args!("its header is wrong: {head:02x?}")));
        }
        let shape = BlockShape { rows: rows as usize, cols: cols as usize, lower: head[5] == 1 };
        let wanted = usize::try_from(entries).ok().and_then(|entries| block_bytes(shape, entries, widths));
        if wanted != Some(bytes.len()) {
            return Err(damaged(format_args!("{} bytes do not hold {rows} rows and {entries} entries", bytes.len())));
        }
        let entries = entries as usize;
        let (values, body) = body.split_at(8 * entries);
        let (columns, body) = body.split_at(widths.column * entries);
        let counts = &body[..widths.count * shape.rows];
        Ok(SparseBlock { shape, entries, widths, values, columns, counts })
    }

    /// The shape of the block.
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Stored entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Checks the properties that [`SparseBlock::parse`] does not: consistent counts, ascending columns inside the
    /// block and, in a lower triangle, not right of the diagonal; finite values. Cost: one pass.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the first row with a fault.
    pub fn check(&self) -> Result<()> {
        self.for_each_row(|row, entries| {
            let end = if self.shape.lower { row + 1 } else { self.shape.cols };
            let mut least = 0;
            for (col, value) in entries {
                if col < least || col >= end || !value.is_finite() {
                    return Err(damaged(format_args!("row {row} has {value} in column {col}")));
                }
                least = col + 1;
            }
            Ok(())
        })
    }

    /// Passes the rows to `visit` in order, each with its entries.
    ///
    /// # Errors
    /// The errors of `visit`, and [`Error::InvalidArgument`] if the counts are not consistent.
    pub fn for_each_row(
        &self,
        mut visit: impl FnMut(usize, &mut dyn Iterator<Item = (usize, f64)>) -> Result<()>,
    ) -> Result<()> {
        match self.widths.column {
            1 => self.rows::<1>(|row, entries| visit(row, &mut entries.iter())),
            2 => self.rows::<2>(|row, entries| visit(row, &mut entries.iter())),
            3 => self.rows::<3>(|row, entries| visit(row, &mut entries.iter())),
            _ => self.rows::<4>(|row, entries| visit(row, &mut entries.iter())),
        }
    }

    pub(super) fn column_bytes(&self) -> usize {
        self.widths.column
    }

    /// As [`SparseBlock::for_each_row`], for column indices of `W` bytes.
    #[inline(always)]
    pub(super) fn rows<const W: usize>(
        &self,
        mut visit: impl FnMut(usize, RowEntries<'a, W>) -> Result<()>,
    ) -> Result<()> {
        let (values, _) = self.values.as_chunks::<8>();
        let (columns, _) = self.columns.as_chunks::<W>();
        let (mut values, mut columns) = (values, columns);
        for (row, count) in self.counts.chunks_exact(self.widths.count).enumerate() {
            let count = number(count);
            if count > values.len() || count > columns.len() {
                return Err(damaged(format_args!(
                    "row {row} states {count} entries, but only {} are left",
                    values.len()
                )));
            }
            let (head, rest) = values.split_at(count);
            let (head_columns, rest_columns) = columns.split_at(count);
            visit(row, RowEntries { values: head, columns: head_columns })?;
            (values, columns) = (rest, rest_columns);
        }
        if !values.is_empty() {
            return Err(damaged(format_args!("{} entries belong to no row", values.len())));
        }
        Ok(())
    }
}

/// The entries of one row.
#[derive(Clone, Copy)]
pub(super) struct RowEntries<'a, const W: usize> {
    values: &'a [[u8; 8]],
    columns: &'a [[u8; W]],
}

impl<'a, const W: usize> RowEntries<'a, W> {
    /// Column and value of each entry.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.columns.iter().zip(self.values).map(|(column, value)| (number(column), f64::from_le_bytes(*value)))
    }
}

/// A little-endian number of up to four bytes.
#[inline(always)]
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// The error for a block whose bytes are wrong.
pub(super) fn damaged(reason: std::fmt::Arguments<'_>) -> Error {
    Error::InvalidArgument(format!("a block of a sparse matrix is damaged: {reason}"))
}
