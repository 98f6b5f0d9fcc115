//! Parts of a binary matrix file, read in place: for matrices larger than memory.
//!
//! Promise: a file that [`MatrixFile::check`] has passed obeys every rule of `math::float`, as a matrix that was read
//! whole.
//! Independent of: what the blocks are for, threads.

use crate::context::ProgressCallback;
use crate::error::{Error, Result};
use crate::io::binary::check_number;
use crate::io::binary_header::{BinaryHeader, CHECKSUM_BYTES, HEADER_BYTES};
use crate::io::head_visitor::{FirstWalk, HeadVisitor};
use crate::io::progress::Reporter;
use crate::io::{FileInfo, Symmetry};
use crate::math::float::{FloatRef, Head};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Bytes read at a time by passes over a whole file; a multiple of 8.
pub(super) const BUFFER_BYTES: usize = 1 << 20;

/// After this number of bytes the system is asked to drop the bytes that a pass has read.
const FORGET_BYTES: u64 = 16 << 20;

/// A binary matrix file, open for reading blocks of it.
#[derive(Debug)]
pub struct MatrixFile {
    path: PathBuf,
    file: File,
    header: BinaryHeader,
}

/// A block of a matrix; in a file that stores the lower triangle, a block of that triangle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Rows of the matrix.
    pub rows: Range<usize>,
    /// Columns of the matrix.
    pub cols: Range<usize>,
}

/// The positions of the entries of a column.
impl BinaryHeader {
    /// Number of the stored entry `(row, col)`, which is stored.
    fn index(&self, row: usize, col: usize) -> u64 {
        match self.symmetry {
            Symmetry::General => (row + col * self.rows) as u64,
            Symmetry::SymmetricLower => {
                let (n, col) = (self.rows as u64, col as u64);
                col * n - col * col.saturating_sub(1) / 2 + (row as u64 - col)
            }
        }
    }

    fn head_at(&self, index: u64) -> u64 {
        HEADER_BYTES as u64 + 8 * index
    }

    fn limbs_at(&self, index: u64) -> u64 {
        self.head_at(self.entries()) + 8 * self.limbs() as u64 * index
    }

    /// The rows of a column in a block that are stored.
    fn stored(&self, rows: &Range<usize>, col: usize) -> Range<usize> {
        let first = if self.symmetry == Symmetry::SymmetricLower { rows.start.max(col) } else { rows.start };
        first.min(rows.end)..rows.end
    }

    /// The stored entries of a block, column by column.
    pub(super) fn pieces(self, block: &Block) -> impl Iterator<Item = ColumnExtent> + use<'_> {
        block.cols.clone().enumerate().filter_map(move |(at, col)| {
            let rows = self.stored(&block.rows, col);
            let first = at * block.rows.len() + rows.start - block.rows.start;
            (!rows.is_empty()).then(|| {
                let index = self.index(rows.start, col);
                ColumnExtent {
                    entries: first..first + rows.len(),
                    heads_at: self.head_at(index),
                    limbs_at: self.limbs_at(index),
                }
            })
        })
    }
}

/// The stored entries of one column of a block, and where they lie in the file.
pub(super) struct ColumnExtent {
    /// Their places among all entries of the block.
    pub entries: Range<usize>,
    pub heads_at: u64,
    pub limbs_at: u64,
}

impl ColumnExtent {
    /// The places of their limbs, `width` for each entry.
    pub fn limbs(&self, width: usize) -> Range<usize> {
        self.entries.start * width..self.entries.end * width
    }
}

pub(super) fn failed<'p>(path: &'p Path, action: &'static str) -> impl Fn(io::Error) -> Error + use<'p> {
    move |source| Error::Io { path: path.to_path_buf(), action, source }
}

impl MatrixFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a file that is not a binary matrix file, or has another length than its
    /// header requires.
    pub fn open(path: &Path) -> Result<MatrixFile> {
        let file = File::open(path).map_err(failed(path, "open"))?;
        let format = |message| Error::Format { path: path.to_path_buf(), message };
        let found = file.metadata().map_err(failed(path, "read"))?.len();
        if found < HEADER_BYTES as u64 {
            return Err(format(format!("the file ends after {found} of the {HEADER_BYTES} bytes of its header")));
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).map_err(failed(path, "read"))?;
        let header = BinaryHeader::parse(&bytes).map_err(format)?;
        match header.file_bytes() {
            Some(expected) if expected != found => {
                let word = if found < expected { "truncated" } else { "too long" };
                Err(format(format!("the file is {word}: it has {found} bytes, but its header requires {expected}")))
            }
            _ => Ok(MatrixFile { path: path.to_path_buf(), file, header }),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of the header.
    pub fn info(&self) -> FileInfo {
        self.header.info()
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.header.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.header.cols
    }

    /// Bits of the entries.
    pub fn precision_bits(&self) -> u32 {
        self.header.precision_bits
    }

    /// Limbs of each entry.
    pub fn limbs(&self) -> usize {
        self.header.limbs()
    }

    /// Whether the file stores only the lower triangle of a symmetric matrix.
    pub fn is_symmetric(&self) -> bool {
        self.header.symmetry == Symmetry::SymmetricLower
    }

    /// The checksum of all entries, as the file states it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn checksum(&self) -> Result<u64> {
        let at = self.header.limbs_at(self.header.entries());
        let mut bytes = [0; CHECKSUM_BYTES];
        self.file.read_exact_at(&mut bytes, at).map_err(failed(&self.path, "read"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Words of a block as [`MatrixFile::read_block`] leaves it: heads, then limbs.
    pub fn block_words(&self, block: &Block) -> usize {
        block.rows.len() * block.cols.len() * (1 + self.limbs())
    }

    /// Reads a block into words: all heads, column by column, then all limbs in the same order; words of entries that
    /// are not stored stay unchanged. Returns the bytes read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read_block(&self, block: &Block, words: &mut [u64]) -> Result<u64> {
        let (count, limbs) = (block.rows.len() * block.cols.len(), self.limbs());
        let (heads, rest) = words.split_at_mut(count);
        let mut total = 0;
        for piece in self.header.pieces(block) {
            total += 8 * (piece.entries.len() * (1 + limbs)) as u64;
            self.read_words(&mut rest[piece.limbs(limbs)], piece.limbs_at)?;
            self.read_words(&mut heads[piece.entries], piece.heads_at)?;
        }
        Ok(total)
    }

    /// Checks that all stored entries of a block are valid numbers, in words as [`MatrixFile::read_block`] leaves them:
    /// the file may have been overwritten since it was checked as a whole. Cost: a pass over the words.
    ///
    /// # Errors
    /// [`Error::Format`] for the first entry that is not a valid number.
    pub fn check_block(&self, block: &Block, words: &[u64]) -> Result<()> {
        let limbs = self.limbs();
        let (heads, rest) = words.split_at((block.rows.len() * block.cols.len()).min(words.len()));
        let places = block.cols.clone().flat_map(|col| block.rows.clone().map(move |row| (row, col)));
        for (((row, col), &head), number) in places.zip(heads).zip(rest.chunks_exact(limbs)) {
            if !self.is_symmetric() || row >= col {
                self.check_entry(row, col, Head(head), number)?;
            }
        }
        Ok(())
    }

    /// Asks the system to read a block ahead of its use, into memory that is the system's own.
    pub(crate) fn announce_block(&self, block: &Block) {
        for piece in self.header.pieces(block) {
            self.advise(piece.heads_at, 8 * piece.entries.len() as u64, Advice::WillNeed);
            self.advise(piece.limbs_at, 8 * piece.limbs(self.limbs()).len() as u64, Advice::WillNeed);
        }
    }

    /// Requests the system to drop a block from its cache.
    pub fn forget_block(&self, block: &Block) {
        for piece in self.header.pieces(block) {
            self.advise(piece.limbs_at, 8 * piece.limbs(self.limbs()).len() as u64, Advice::DontNeed);
        }
    }

    /// The diagonal heads of all rows.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn diagonal_heads(&self) -> Result<Vec<Head>> {
        let one = |at: usize| {
            let mut word = [0];
            self.read_words(&mut word, self.header.head_at(self.header.index(at, at)))?;
            Ok(Head(word[0]))
        };
        (0..self.rows().min(self.cols())).map(one).collect()
    }

    /// A diagonal entry.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn diagonal_entry(&self, row: usize) -> Result<rug::Float> {
        let mut word = [0];
        self.read_words(&mut word, self.header.head_at(self.header.index(row, row)))?;
        let limbs = self.entry_limbs(row, row)?;
        Ok(FloatRef { head: Head(word[0]), limbs: &limbs }.to_float(self.precision_bits()))
    }

    /// The limbs of one entry that is stored.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn entry_limbs(&self, row: usize, col: usize) -> Result<Vec<u64>> {
        let mut limbs = vec![0; self.limbs()];
        self.read_words(&mut limbs, self.header.limbs_at(self.header.index(row, col)))?;
        Ok(limbs)
    }

    /// Reads the whole file once, and its heads twice; checks every number and the checksum. `visit` receives the row,
    /// column and head of each stored entry.
    ///
    /// # Errors
    /// [`Error::Format`] for damage and invalid numbers, [`Error::Io`], [`Error::Cancelled`], the errors of `visit`.
    pub fn check(
        &self,
        progress: Option<Arc<ProgressCallback>>,
        visit: impl FnMut(usize, usize, Head) -> Result<()>,
    ) -> Result<u64> {
        self.check_heads(progress, &mut FirstWalk(visit))
    }

    /// Reads all heads once; `visit` receives the row, column and head of each stored entry. Nothing is checked.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    pub fn visit_heads(
        &self,
        progress: Option<Arc<ProgressCallback>>,
        mut visit: impl FnMut(usize, usize, Head),
    ) -> Result<()> {
        let (entries, mut places) = (self.header.entries(), self.places());
        let reporter = Reporter::new(progress, "read", 8 * entries);
        let mut pass = FilePass { file: self, checksum: Xxh3::new(), reporter };
        pass.words(self.header.head_at(0), entries, false, |heads| {
            heads.iter().zip(&mut places).for_each(|(&head, (row, col))| visit(row, col, Head(head)));
            Ok(())
        })
    }

    /// [`MatrixFile::check`] for a visitor that needs the heads twice, or whole numbers.
    ///
    /// # Errors
    /// As [`MatrixFile::check`]; the errors of the visitor.
    pub fn check_heads(&self, progress: Option<Arc<ProgressCallback>>, visitor: &mut impl HeadVisitor) -> Result<u64> {
        let (entries, limbs) = (self.header.entries(), self.limbs());
        let bytes = 8 * entries * (2 + limbs as u64);
        let mut pass = FilePass { file: self, checksum: Xxh3::new(), reporter: Reporter::new(progress, "read", bytes) };
        let mut places = self.places();
        pass.words(self.header.head_at(0), entries, true, |heads| {
            for &head in heads {
                let (row, col) = places.next().expect("a place for each entry");
                visitor.first(row, col, Head(head))?;
            }
            Ok(())
        })?;
        let mut heads = Vec::new();
        let mut next = 0;
        let mut places = self.places();
        let step = (BUFFER_BYTES / 8 / limbs.max(1)).max(1) as u64;
        while next < entries {
            let count = step.min(entries - next);
            heads.clear();
            pass.words(self.header.head_at(next), count, false, |words| {
                heads.extend_from_slice(words);
                Ok(())
            })?;
            let mut numbers = heads.iter();
            let mut number = Vec::with_capacity(limbs);
            pass.words(self.header.limbs_at(next), count * limbs as u64, true, |words| {
                let mut rest = words;
                while !rest.is_empty() {
                    let (more, later) = rest.split_at((limbs - number.len()).min(rest.len()));
                    number.extend_from_slice(more);
                    rest = later;
                    if number.len() == limbs {
                        let (row, col) = places.next().expect("a place for each entry");
                        let head = Head(*numbers.next().expect("a head for each entry"));
                        self.check_entry(row, col, head, &number)?;
                        visitor.second(row, col, FloatRef { head, limbs: &number })?;
                        number.clear();
                    }
                }
                Ok(())
            })?;
            next += count;
        }
        let (found, computed) = (self.checksum()?, pass.checksum.digest());
        if found != computed {
            let message = format!("the entries are damaged: their checksum is {computed:016x} instead of {found:016x}");
            return Err(Error::Format { path: self.path.clone(), message });
        }
        pass.reporter.finish()?;
        Ok(computed)
    }

    fn check_entry(&self, row: usize, col: usize, head: Head, limbs: &[u64]) -> Result<()> {
        check_number(head, limbs, self.precision_bits()).map_err(|reason| {
            let (row, col) = (row + 1, col + 1);
            let message = format!("entry at row {row}, column {col} (counted from 1) is not a valid number: {reason}");
            Error::Format { path: self.path.clone(), message }
        })
    }

    fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let header = self.header;
        (0..if header.rows == 0 { 0 } else { header.cols })
            .flat_map(move |col| header.stored(&(0..header.rows), col).map(move |row| (row, col)))
    }

    fn read_words(&self, words: &mut [u64], at: u64) -> Result<()> {
        let read = self.file.read_exact_at(bytemuck::cast_slice_mut(words), at);
        read.map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => {
                let message = "the file has become shorter while it was read".to_string();
                Error::Format { path: self.path.clone(), message }
            }
            _ => failed(&self.path, "read")(source),
        })?;
        words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        Ok(())
    }

    fn advise(&self, at: u64, bytes: u64, advice: Advice) {
        let _ = fadvise(&self.file, at, std::num::NonZero::new(bytes), advice);
    }
}

/// A pass over a whole file.
struct FilePass<'f> {
    file: &'f MatrixFile,
    checksum: Xxh3,
    reporter: Reporter,
}

impl FilePass<'_> {
    /// Visits `count` words from byte `at` on, piece by piece; where `summed` they go into the checksum.
    fn words(
        &mut self,
        mut at: u64,
        count: u64,
        summed: bool,
        mut visit: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut words = vec![0u64; (BUFFER_BYTES / 8).min(usize::try_from(count).unwrap_or(usize::MAX))];
        let (mut left, mut forgotten) = (count, at);
        while left > 0 {
            let piece = words.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let words = &mut words[..piece];
            self.file.read_words(words, at)?;
            if summed {
                // The checksum is that of the file's bytes; on a big-endian machine the words differ.
                words.iter_mut().for_each(|word| *word = word.to_le());
                self.checksum.update(bytemuck::cast_slice(words));
                words.iter_mut().for_each(|word| *word = u64::from_le(*word));
            }
            visit(words)?;
            let bytes = 8 * piece as u64;
            (at, left) = (at + bytes, left - piece as u64);
            self.reporter.advance(bytes)?;
            if at - forgotten >= FORGET_BYTES {
                self.file.advise(forgotten, at - forgotten, Advice::DontNeed);
                forgotten = at;
            }
        }
        self.file.advise(forgotten, at - forgotten, Advice::DontNeed);
        Ok(())
    }
}
