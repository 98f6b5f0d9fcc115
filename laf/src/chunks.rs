//! The division of the rows of a matrix into chunks.

use std::ops::Range;
use sunzi::{Error, Result};

/// Rows `0 .. rows` in chunks of `chunk_rows` each, the last one shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunks {
    rows: usize,
    chunk_rows: usize,
}

impl Chunks {
    /// # Errors
    /// [`Error::InvalidArgument`] for chunks of no rows, or of `2^32` and more.
    pub fn new(rows: usize, chunk_rows: usize) -> Result<Chunks> {
        if chunk_rows == 0 || chunk_rows > u32::MAX as usize {
            return Err(Error::InvalidArgument(format!(
                "chunk_rows = {chunk_rows} is not valid; choose 1 to {}",
                u32::MAX
            )));
        }
        Ok(Chunks { rows, chunk_rows })
    }

    /// All rows.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Rows of all chunks but the last.
    pub fn chunk_rows(self) -> usize {
        self.chunk_rows
    }

    /// Number of chunks.
    pub fn count(self) -> usize {
        self.rows.div_ceil(self.chunk_rows)
    }

    /// Rows of one chunk; empty after the last one.
    pub fn range(self, chunk: usize) -> Range<usize> {
        let start = chunk.saturating_mul(self.chunk_rows).min(self.rows);
        start..start.saturating_add(self.chunk_rows).min(self.rows)
    }

    /// Number of rows of one chunk.
    pub fn len(self, chunk: usize) -> usize {
        self.range(chunk).len()
    }

    /// Whether there are no rows.
    pub fn is_empty(self) -> bool {
        self.rows == 0
    }

    /// The chunk that contains a row.
    pub fn of(self, row: usize) -> usize {
        row / self.chunk_rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_all_rows_once() {
        for (rows, chunk_rows) in [(0, 3), (1, 3), (3, 3), (10, 3), (12, 5)] {
            let chunks = Chunks::new(rows, chunk_rows).unwrap();
            let all = (0..chunks.count()).flat_map(|chunk| chunks.range(chunk).map(move |row| (row, chunk)));
            assert!(all.clone().map(|(row, _)| row).eq(0..rows));
            assert!(all.into_iter().all(|(row, chunk)| chunks.of(row) == chunk));
            assert_eq!(chunks.len(chunks.count()), 0);
        }
        let error = Chunks::new(5, 0).unwrap_err().to_string();
        assert_eq!(error, "chunk_rows = 0 is not valid; choose 1 to 4294967295");
    }
}
