//! Matrix Market coordinate files of any length, read as a stream into blocks of a sparse matrix.
//!
//! The text is read once: entries are written to a temporary file, sorted by block in runs, and read from it block by
//! block. Memory: first the buffers of the runs, within the given bytes, then the entries of the largest block. Rows
//! and columns in messages count from 1, as in the files. Numbers have the syntax of all files of the library and are
//! rounded once to doubles.

mod header;
mod spool;
#[cfg(test)]
mod tests;

pub use header::{FileSymmetry, Header};

use crate::chunks::Chunks;
use crate::sparse::{BlockShape, Entry, pack};
use header::{Field, Lines};
use spool::{Record, Spool};
use std::io::BufRead;
use std::path::Path;
use sunzi::io::{NumberError, NumberParser};
use sunzi::{Error, Result};

/// Options for reading a file.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions<'a> {
    /// Rows of a chunk of rows, and columns of a chunk of columns.
    pub chunk_rows: usize,
    /// Bytes for the runs; each block needs at least one record.
    pub buffer_bytes: usize,
    /// Folder of the temporary file.
    pub folder: &'a Path,
    /// Name of the file in messages.
    pub path: &'a Path,
}

/// A block that was read: its chunks, and its bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacedBlock {
    /// Chunk of its rows.
    pub row_chunk: usize,
    /// Chunk of its columns.
    pub col_chunk: usize,
    /// See [`crate::sparse::SparseBlock`].
    pub bytes: Vec<u8>,
}

/// Reads a coordinate file of real or integer numbers, or a pattern, whose entries are 1; general or symmetric. Passes
/// every block to `take`, also empty blocks, column of blocks by column; of a symmetric matrix the blocks of the lower
/// triangle.
///
/// # Errors
/// [`Error::Format`] with the line number for lines that the format does not allow: a wrong header, places outside the
/// matrix or above the diagonal of a symmetric matrix, duplicate or missing entries, numbers that are not finite
/// doubles; [`Error::Io`]; [`Error::MemoryLimit`] if `buffer_bytes` are too few; the errors of `take`.
pub fn read_blocks(
    reader: impl BufRead,
    options: &ReadOptions<'_>,
    mut take: impl FnMut(&Header, PlacedBlock) -> Result<()>,
) -> Result<Header> {
    let mut lines = Lines::new(reader, options.path);
    let header = Header::read(&mut lines)?;
    let grid = Grid::new(&header, options.chunk_rows)?;
    let mut spool = Spool::new(options.folder, grid.blocks()?, options.buffer_bytes)?;
    let mut parser = NumberParser::new(53);
    for count in 0..header.entries {
        let Some(record) = next_entry(&mut lines, &header, &mut parser)? else {
            return Err(lines.error(format_args!("the file ends after {count} of {} entries", header.entries)));
        };
        let (place, record) = grid.place(record);
        spool.push(place, record)?;
    }
    if lines.next_filled()? {
        let message = format!("'{}' follows after all {} entries", lines.shown(), header.entries);
        return Err(lines.error(format_args!("{message}")));
    }
    for place in 0..grid.blocks()? {
        let block = grid.pack(place, &mut spool.take(place)?, options.path)?;
        take(&header, block)?;
    }
    Ok(header)
}

/// The next entry, with row and column from 0 in the whole matrix.
fn next_entry<R: BufRead>(
    lines: &mut Lines<'_, R>,
    header: &Header,
    parser: &mut NumberParser,
) -> Result<Option<WholeRecord>> {
    if !lines.next_filled()? {
        return Ok(None);
    }
    let text = lines.text()?;
    let mut words = text.split_ascii_whitespace();
    let (row, col) = (words.next(), words.next());
    let value = if header.field == Field::Pattern { Some("1") } else { words.next() };
    let (Some(row), Some(col), Some(value), None) = (row, col, value, words.next()) else {
        let form = if header.field == Field::Pattern { "row column" } else { "row column value" };
        return Err(lines.error(format_args!("an entry must read '{form}', found '{}'", lines.shown())));
    };
    let index = |word: &str, name: &str, size: u64| match word.parse::<u64>() {
        Ok(index) if (1..=size).contains(&index) => Ok(index - 1),
        _ => Err(lines.error(format_args!("the {name} must be 1 to {size}, found '{word}'"))),
    };
    let (row, col) = (index(row, "row index", header.rows)?, index(col, "column index", header.cols)?);
    if header.symmetry == FileSymmetry::Lower && row < col {
        let (row, col) = (row + 1, col + 1);
        return Err(lines.error(format_args!(
            "row {row}, column {col} is above the diagonal: symmetric files hold the lower triangle"
        )));
    }
    let value = number(value, header.field, parser).map_err(|reason| lines.error(format_args!("{reason}")))?;
    Ok(Some(WholeRecord { row, col, value, line: lines.line() }))
}

/// One number as a double.
fn number(word: &str, field: Field, parser: &mut NumberParser) -> std::result::Result<f64, String> {
    let is_plain = word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if field == Field::Integer && !word.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("'{word}' is not an integer"));
    }
    let value = match word.parse::<f64>() {
        Ok(value) if is_plain => value,
        _ => match parser.parse(word) {
            Ok(parsed) => parsed.value.to_f64(),
            Err(NumberError::NotANumber) => return Err(format!("'{word}' is not a number")),
            Err(reason) => return Err(format!("'{word}' {reason}")),
        },
    };
    if value.is_finite() { Ok(value) } else { Err(format!("'{word}' is beyond the range of doubles")) }
}

/// An entry of the whole matrix.
struct WholeRecord {
    row: u64,
    col: u64,
    value: f64,
    line: u64,
}

/// The blocks of a matrix.
#[derive(Clone, Copy)]
struct Grid {
    rows: Chunks,
    cols: Chunks,
    lower: bool,
}

impl Grid {
    fn new(header: &Header, chunk_rows: usize) -> Result<Grid> {
        let size = |size: u64| {
            usize::try_from(size).map_err(|_| Error::InvalidArgument(format!("{size} rows cannot be addressed")))
        };
        let chunks = |count: u64| Chunks::new(size(count)?, chunk_rows);
        Ok(Grid {
            rows: chunks(header.rows)?,
            cols: chunks(header.cols)?,
            lower: header.symmetry == FileSymmetry::Lower,
        })
    }

    fn blocks(&self) -> Result<usize> {
        let (rows, cols) = (self.rows.count(), self.cols.count());
        let all = if self.lower { rows.checked_mul(rows + 1).map(|twice| twice / 2) } else { rows.checked_mul(cols) };
        all.ok_or_else(|| {
            Error::InvalidArgument(format!("{rows} x {cols} blocks are too many to count: choose longer chunks"))
        })
    }

    /// Blocks in front of a column of blocks.
    fn before(&self, col: usize) -> usize {
        if self.lower { col * self.rows.count() - col * col.saturating_sub(1) / 2 } else { col * self.rows.count() }
    }

    /// The number of an entry's block, and the entry in it.
    fn place(&self, whole: WholeRecord) -> (usize, Record) {
        let (row, col) = (whole.row as usize, whole.col as usize);
        let (i, j) = (self.rows.of(row), self.cols.of(col));
        let first = if self.lower { j } else { 0 };
        let (row, col) = (row - self.rows.range(i).start, col - self.cols.range(j).start);
        let record = Record { row: row as u32, col: col as u32, value: whole.value, line: whole.line };
        (self.before(j) + i - first, record)
    }

    /// Chunks of the rows and of the columns of a block.
    fn chunks_of(&self, place: usize) -> (usize, usize) {
        let (mut low, mut high) = (0, self.cols.count());
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.before(middle) <= place { low = middle } else { high = middle }
        }
        (place - self.before(low) + if self.lower { low } else { 0 }, low)
    }

    /// The block of this number with these entries.
    fn pack(&self, place: usize, records: &mut [Record], path: &Path) -> Result<PlacedBlock> {
        let (i, j) = self.chunks_of(place);
        records.sort_unstable_by_key(|record| (record.row, record.col, record.line));
        let doubled = records.windows(2).filter(|pair| (pair[0].row, pair[0].col) == (pair[1].row, pair[1].col));
        if let Some(second) = doubled.map(|pair| &pair[1]).min_by_key(|second| second.line) {
            let row = self.rows.range(i).start + second.row as usize + 1;
            let col = self.cols.range(j).start + second.col as usize + 1;
            let message = format!("line {}: a second entry for row {row}, column {col}", second.line);
            return Err(Error::Format { path: path.into(), message });
        }
        let shape = BlockShape { rows: self.rows.len(i), cols: self.cols.len(j), lower: self.lower && i == j };
        let entries = records.iter().map(|record| Entry { row: record.row, col: record.col, value: record.value });
        let bytes = pack(shape, &entries.collect::<Vec<_>>())?;
        Ok(PlacedBlock { row_chunk: i, col_chunk: j, bytes })
    }
}
