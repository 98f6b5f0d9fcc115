//! A large sparse symmetric matrix of any order, generated block by block: every entry depends only on its place.

use crate::chunks::Chunks;
use crate::random;
use crate::sparse::{BlockShape, Entry, pack};
use std::ops::Range;
use sunzi::{Error, Result};

/// A symmetric matrix with a growing diagonal and small entries off the diagonal, spread over all columns.
///
/// `A_ii = sqrt(1 + i)`; row `i` has one entry at a random place in each of `links` strips of equal width that cover
/// the columns from `i + 1` on, cyclically, up to half of the order, and these entries are mirrored: on average `1 + 2
/// links` entries per row. The entries are uniform in `[-1, 1) / (2 links)`, so that the sum of the magnitudes in a row
/// is below about 1 and the matrix is strictly diagonally dominant, hence positive definite, except for rare rows at
/// the very top. The lowest eigenvalues are near `sqrt(1), sqrt(2), ..`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrowingDiagonal {
    order: usize,
    links: usize,
    seed: u64,
}

impl GrowingDiagonal {
    /// # Errors
    /// [`Error::InvalidArgument`] for an order of `2^48` and more, or more links than columns up to half of the order.
    pub fn new(order: usize, links: usize, seed: u64) -> Result<GrowingDiagonal> {
        if order >= 1 << 48 || links > order.saturating_sub(1) / 2 {
            let message = format!(
                "{links} links in each of {order} rows are too many; choose at most (n - 1) / 2 for an order of n \
                 below 2^48"
            );
            return Err(Error::InvalidArgument(message));
        }
        Ok(GrowingDiagonal { order, links, seed })
    }

    /// Number of rows.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Stored entries of the lower triangle.
    pub fn entries(&self) -> u64 {
        self.order as u64 * (1 + self.links as u64)
    }

    /// A diagonal entry.
    pub fn diagonal(&self, row: usize) -> f64 {
        (1.0 + row as f64).sqrt()
    }

    /// Columns `i + d` that a strip may lie in, as the range of `d`.
    fn strip(&self, link: usize) -> Range<usize> {
        let half = (self.order - 1) / 2;
        let at = |link: usize| 1 + (link as u128 * half as u128 / self.links as u128) as usize;
        at(link)..at(link + 1)
    }

    /// How far behind `row` its entry in a strip lies, and its value.
    fn link(&self, row: usize, link: usize) -> (usize, f64) {
        let strip = self.strip(link);
        let place = row as u64 * self.links as u64 + link as u64;
        let offset = ((u128::from(random::bits(self.seed, 2 * place)) * strip.len() as u128) >> 64) as usize;
        (strip.start + offset, random::symmetric(self.seed, 2 * place + 1) / (2 * self.links) as f64)
    }

    /// The bytes of the block in these chunks of rows and columns; only blocks with `row_chunk >= col_chunk` are
    /// stored.
    ///
    /// Cost: proportional to the rows that may have entries in the block, plus sorting the entries of the block.
    ///
    /// # Errors
    /// The errors of [`pack`].
    pub fn block(&self, chunks: Chunks, row_chunk: usize, col_chunk: usize) -> Result<Vec<u8>> {
        let (rows, cols) = (chunks.range(row_chunk), chunks.range(col_chunk));
        let shape = BlockShape { rows: rows.len(), cols: cols.len(), lower: row_chunk == col_chunk };
        let mut entries = Vec::new();
        let mut put = |row: usize, col: usize, value: f64| {
            let (row, col) = (row.max(col), row.min(col));
            if rows.contains(&row) && cols.contains(&col) {
                let (row, col) = ((row - rows.start) as u32, (col - cols.start) as u32);
                entries.push(Entry { row, col, value });
            }
        };
        if shape.lower {
            rows.clone().for_each(|row| put(row, row, self.diagonal(row)));
        }
        // An entry goes from its own row to one further on, cyclically: from the columns down, or from the rows around.
        for (own, far) in [(&cols, &rows), (&rows, &cols)] {
            self.links_between(own, far, &mut put);
            if shape.lower {
                break;
            }
        }
        entries.sort_unstable_by_key(|entry| (entry.row, entry.col));
        pack(shape, &entries)
    }

    /// Hands out the entries that rows `own` have in columns `far`.
    fn links_between(&self, own: &Range<usize>, far: &Range<usize>, put: &mut impl FnMut(usize, usize, f64)) {
        for link in 0..self.links {
            let strip = self.strip(link);
            // Whether any of `own + strip`, as it is or around the end, lies in `far`.
            let (first, last) = (own.start + strip.start, own.end + strip.end);
            let meets = |shift: usize| first < far.end + shift && last > far.start + shift;
            if !meets(0) && !meets(self.order) {
                continue;
            }
            for row in own.clone() {
                let (distance, value) = self.link(row, link);
                let col = (row + distance) % self.order;
                if far.contains(&col) {
                    put(row, col, value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::SparseBlock;
    use std::collections::BTreeMap;

    fn entries(matrix: GrowingDiagonal, chunk_rows: usize) -> BTreeMap<(usize, usize), f64> {
        let chunks = Chunks::new(matrix.order(), chunk_rows).unwrap();
        let mut all = BTreeMap::new();
        for i in 0..chunks.count() {
            for j in 0..=i {
                let bytes = matrix.block(chunks, i, j).unwrap();
                let block = SparseBlock::parse(&bytes).unwrap();
                block.check().unwrap();
                let (rows, cols) = (chunks.range(i), chunks.range(j));
                let read = block.for_each_row(|row, entries| {
                    for (col, value) in entries {
                        assert!(all.insert((rows.start + row, cols.start + col), value).is_none());
                    }
                    Ok(())
                });
                read.unwrap();
            }
        }
        all
    }

    #[test]
    fn the_matrix_does_not_depend_on_its_chunks() {
        for (order, links) in [(1, 0), (3, 1), (50, 4), (101, 50), (100, 49), (300, 25)] {
            let matrix = GrowingDiagonal::new(order, links, 11).unwrap();
            let whole = entries(matrix, order);
            assert_eq!(whole.len() as u64, matrix.entries(), "{order}");
            for chunk_rows in [1, 7, 64] {
                if order / chunk_rows < 60 {
                    assert_eq!(entries(matrix, chunk_rows), whole, "{order} {chunk_rows}");
                }
            }
        }
    }

    #[test]
    fn impossible_orders_are_refused() {
        let error = GrowingDiagonal::new(10, 5, 0).unwrap_err().to_string();
        assert_eq!(
            error,
            "5 links in each of 10 rows are too many; choose at most (n - 1) / 2 for an order of n below 2^48"
        );
    }
}
