//! Packs entries into the bytes of a block.

use super::block::{BlockShape, Widths, block_bytes, bytes_for, header};
use sunzi::{Error, Result};

/// One entry of a block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// Row in the block, from 0.
    pub row: u32,
    /// Column in the block, from 0.
    pub col: u32,
    /// Its value.
    pub value: f64,
}

/// The bytes of a block with these entries, which must be sorted by row, then by column. See [`super::SparseBlock`].
///
/// Cost: one pass.
///
/// # Errors
/// [`Error::InvalidArgument`] names the first entry that is out of range or order, duplicate or not finite, and shapes
/// beyond `2^32` rows or columns.
pub fn pack(shape: BlockShape, entries: &[Entry]) -> Result<Vec<u8>> {
    let limit = u32::MAX as usize;
    if shape.rows > limit || shape.cols > limit || (shape.lower && shape.rows != shape.cols) {
        let message = format!("a block of {} x {} entries cannot be stored", shape.rows, shape.cols);
        return Err(Error::InvalidArgument(message));
    }
    check(shape, entries)?;
    let mut most = 0;
    for row in entries.chunk_by(|one, other| one.row == other.row) {
        most = most.max(row.len() as u64);
    }
    let widths = Widths { column: bytes_for(shape.cols.saturating_sub(1) as u64), count: bytes_for(most) };
    let size = block_bytes(shape, entries.len(), widths)
        .ok_or_else(|| Error::InvalidArgument(format!("{} entries in one block cannot be addressed", entries.len())))?;
    let mut bytes = sunzi::advanced::store::with_room(size)?;
    bytes.extend_from_slice(&header(shape, entries.len(), widths));
    for entry in entries {
        bytes.extend_from_slice(&entry.value.to_le_bytes());
    }
    for entry in entries {
        bytes.extend_from_slice(&entry.col.to_le_bytes()[..widths.column]);
    }
    let mut rest = entries;
    for row in 0..shape.rows as u32 {
        let count = rest.iter().take_while(|entry| entry.row == row).count();
        rest = &rest[count..];
        bytes.extend_from_slice(&(count as u32).to_le_bytes()[..widths.count]);
    }
    bytes.resize(size, 0);
    Ok(bytes)
}

fn check(shape: BlockShape, entries: &[Entry]) -> Result<()> {
    let mut next = (0, 0);
    for &Entry { row, col, value } in entries {
        let inside = (row as usize) < shape.rows && (col as usize) < shape.cols && (!shape.lower || col <= row);
        let problem = match () {
            () if !inside => "lies outside of its block",
            () if (row, col) < next => "has a duplicate or is not in order",
            () if !value.is_finite() => "is not finite",
            () => {
                next = (row, col + 1);
                continue;
            }
        };
        let message = format!("the entry {value} at row {row}, column {col} of a block {problem}");
        return Err(Error::InvalidArgument(message));
    }
    Ok(())
}
