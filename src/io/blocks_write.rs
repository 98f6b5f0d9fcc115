//! Parts of a binary matrix file, written in place: for matrices larger than memory.
//!
//! Promise: a file that is written is complete under its final name, or absent. Independent of: what the blocks are
//! for, threads.

use crate::context::ProgressCallback;
use crate::error::{Error, Result};
use crate::io::Symmetry;
use crate::io::atomic::write_atomically;
use crate::io::binary_header::{BinaryHeader, HEADER_BYTES};
use crate::io::blocks::{BUFFER_BYTES, Block, failed};
use crate::io::progress::Reporter;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// A binary matrix file that is being written, block by block in any order.
pub struct MatrixFileWriter<'f> {
    path: &'f Path,
    file: &'f File,
    header: BinaryHeader,
}

/// The shape of a matrix file to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixFileShape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Bits of the entries.
    pub precision_bits: u32,
    /// Whether only the lower triangle of a symmetric matrix is stored.
    pub symmetric: bool,
}

/// Writes the binary file `path` by the blocks that `body` writes. The file appears under its name when it is complete.
///
/// Entries outside all blocks are 0. At the end the file is read once to compute its checksum.
///
/// # Errors
/// [`Error::Io`]; [`Error::DimensionOverflow`] if the file would exceed the largest length; [`Error::Cancelled`]; the
/// errors of `body`.
pub fn write_blocks(
    path: &Path,
    shape: MatrixFileShape,
    progress: Option<Arc<ProgressCallback>>,
    body: impl FnOnce(&MatrixFileWriter<'_>) -> Result<()>,
) -> Result<()> {
    let MatrixFileShape { rows, cols, precision_bits, symmetric } = shape;
    let symmetry = if symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    let header = BinaryHeader { rows, cols, precision_bits, symmetry };
    let bytes = header.file_bytes().ok_or(Error::DimensionOverflow { rows, cols, precision_bits })?;
    write_atomically(path, |file| {
        let writer = MatrixFileWriter { path, file, header };
        // Bytes that are never written, such as zeros above a diagonal, take no space on the disk.
        file.set_len(bytes).map_err(failed(path, "write"))?;
        writer.write(&header.to_bytes(), 0)?;
        body(&writer)?;
        writer.finish(progress)
    })
}

impl MatrixFileWriter<'_> {
    /// Bits of the entries.
    pub fn precision_bits(&self) -> u32 {
        self.header.precision_bits
    }

    /// Writes a block: heads and limbs column by column, in the layout of
    /// [`MatrixFile::read_block`](crate::io::MatrixFile::read_block). Several threads may write at a time.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_block(&self, block: &Block, heads: &[u64], limbs: &[u64]) -> Result<()> {
        let width = self.header.limbs();
        for piece in self.header.pieces(block) {
            self.write_words(&limbs[piece.limbs(width)], piece.limbs_at)?;
            self.write_words(&heads[piece.entries], piece.heads_at)?;
        }
        Ok(())
    }

    fn write_words(&self, words: &[u64], at: u64) -> Result<()> {
        if cfg!(target_endian = "little") {
            return self.write(bytemuck::cast_slice(words), at);
        }
        let words = words.iter().map(|word| word.to_le()).collect::<Vec<_>>();
        self.write(bytemuck::cast_slice(&words), at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(failed(self.path, "write"))
    }

    fn finish(&self, progress: Option<Arc<ProgressCallback>>) -> Result<()> {
        let bytes = 8 * self.header.entries() * (1 + self.header.limbs() as u64);
        let mut reporter = Reporter::new(progress, "checksum", bytes);
        let (mut checksum, mut buffer, mut at) = (Xxh3::new(), vec![0; BUFFER_BYTES], 0);
        let start = HEADER_BYTES as u64;
        while at < bytes {
            let piece = &mut buffer[..BUFFER_BYTES.min(usize::try_from(bytes - at).unwrap_or(usize::MAX))];
            self.file.read_exact_at(piece, start + at).map_err(failed(self.path, "read"))?;
            checksum.update(piece);
            at += piece.len() as u64;
            reporter.advance(piece.len() as u64)?;
        }
        self.write(&checksum.digest().to_le_bytes(), start + bytes)?;
        reporter.finish()
    }
}
