//! Sparse matrices from files.

use super::{Session, SparseMatrix, Symmetry};
use crate::market::{self, ReadOptions};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use sunzi::{Error, Result};

impl Session {
    /// A sparse matrix from a Matrix Market coordinate file, which is read as a stream: see [`market::read_blocks`].
    ///
    /// Entries are stored in a temporary file without a name, in the session's folder or that of temporary files;
    /// `buffer_bytes` are held in addition to the session's limit, and then the entries of the largest block.
    ///
    /// # Errors
    /// The errors of [`market::read_blocks`] and of [`SparseMatrix::insert`].
    pub fn read_matrix_market(&self, path: &Path, buffer_bytes: usize) -> Result<SparseMatrix> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.into(), action: "open", source })?;
        let temporary = std::env::temp_dir();
        let folder = self.inner.folder.as_deref().unwrap_or(&temporary);
        let options = ReadOptions { chunk_rows: self.inner.chunk_rows, buffer_bytes, folder, path };
        let mut matrix: Option<SparseMatrix> = None;
        let empty = |header: &market::Header| {
            let size = |size: u64| {
                usize::try_from(size).map_err(|_| Error::InvalidArgument(format!("{size} rows cannot be addressed")))
            };
            let symmetry = match header.symmetry {
                market::FileSymmetry::General => Symmetry::General,
                market::FileSymmetry::Lower => Symmetry::Lower,
            };
            self.sparse(size(header.rows)?, size(header.cols)?, symmetry)
        };
        let header = market::read_blocks(BufReader::new(file), &options, |header, placed| {
            let matrix = match &mut matrix {
                Some(matrix) => matrix,
                None => matrix.insert(empty(header)?),
            };
            matrix.insert(placed.row_chunk, placed.col_chunk, placed.bytes)
        })?;
        matrix.map_or_else(|| empty(&header), Ok)
    }
}
