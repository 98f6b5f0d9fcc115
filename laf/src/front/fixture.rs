//! Sessions and matrices for tests.

use super::{Session, SessionOptions, SparseMatrix, Symmetry};
use crate::chunks::Chunks;
use crate::gallery::GrowingDiagonal;
use crate::small::SmallMatrix;
use crate::sparse::SparseBlock;

/// The generated matrix in a session.
pub fn matrix(session: &Session, matrix: GrowingDiagonal) -> SparseMatrix {
    let mut a = session.sparse(matrix.order(), matrix.order(), Symmetry::Lower).unwrap();
    a.fill(|chunks, row, col| matrix.block(chunks, row, col)).unwrap();
    a
}

/// All of its entries.
pub fn dense(matrix: GrowingDiagonal) -> SmallMatrix {
    let order = matrix.order();
    let chunks = Chunks::new(order, order).unwrap();
    let bytes = matrix.block(chunks, 0, 0).unwrap();
    let mut full = SmallMatrix::zeros(order, order);
    let visit = SparseBlock::parse(&bytes).unwrap().for_each_row(|row, entries| {
        for (col, value) in entries {
            (*full.at_mut(row, col), *full.at_mut(col, row)) = (value, value);
        }
        Ok(())
    });
    visit.unwrap();
    full
}

/// A session in memory.
pub fn plain(chunk_rows: usize) -> Session {
    Session::new(&SessionOptions { chunk_rows, ..SessionOptions::default() }).unwrap()
}
