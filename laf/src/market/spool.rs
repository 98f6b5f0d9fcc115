//! Entries in transit into blocks: full buffers are written to the end of a file without a name, and are found there
//! again.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use sunzi::advanced::store::{reserve, with_room};
use sunzi::{Error, Result};

/// An entry in its block, and the line that it stood in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Record {
    pub row: u32,
    pub col: u32,
    pub value: f64,
    pub line: u64,
}

const RECORD_BYTES: usize = 24;

impl Record {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.row.to_le_bytes());
        bytes.extend_from_slice(&self.col.to_le_bytes());
        bytes.extend_from_slice(&self.value.to_le_bytes());
        bytes.extend_from_slice(&self.line.to_le_bytes());
    }

    fn read(bytes: &[u8; RECORD_BYTES]) -> Record {
        let part = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        let wide = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        Record {
            row: u32::from_le_bytes(part(0)),
            col: u32::from_le_bytes(part(4)),
            value: f64::from_le_bytes(wide(8)),
            line: u64::from_le_bytes(wide(16)),
        }
    }
}

/// The records of one block.
#[derive(Clone, Default)]
struct Bucket {
    waiting: Vec<u8>,
    /// Positions of the runs in the file; each run has as many bytes as a full buffer.
    runs: Vec<u64>,
}

/// All records, by block.
pub(super) struct Spool {
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    buckets: Vec<Bucket>,
    run_bytes: usize,
}

impl Spool {
    /// # Errors
    /// [`Error::MemoryLimit`] if the buffers cannot hold one record of each block; [`Error::OutOfMemory`].
    pub fn new(folder: &Path, blocks: usize, buffer_bytes: usize) -> Result<Spool> {
        let records = buffer_bytes / blocks.max(1) / RECORD_BYTES;
        if records == 0 {
            let minimum_bytes = (blocks as u64).saturating_mul(RECORD_BYTES as u64);
            return Err(Error::MemoryLimit { limit_bytes: buffer_bytes as u64, minimum_bytes });
        }
        // Longer runs than this make no file faster.
        let run_bytes = records.min(1 << 16) * RECORD_BYTES;
        let buckets = sunzi::advanced::store::filled(Bucket::default(), blocks)?;
        Ok(Spool { folder: folder.into(), file: None, end: 0, buckets, run_bytes })
    }

    fn io(&self, action: &'static str) -> impl Fn(std::io::Error) -> Error + use<> {
        let path = self.folder.clone();
        move |source| Error::Io { path: path.clone(), action, source }
    }

    /// Adds a record.
    pub fn push(&mut self, block: usize, record: Record) -> Result<()> {
        let bucket = &mut self.buckets[block];
        reserve(&mut bucket.waiting, RECORD_BYTES)?;
        record.write(&mut bucket.waiting);
        if bucket.waiting.len() < self.run_bytes {
            return Ok(());
        }
        let run = std::mem::take(&mut bucket.waiting);
        bucket.runs.push(self.end);
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile_in(&self.folder).map_err(self.io("create a file there"))?);
        }
        let failed = self.io("write a temporary file there");
        if let Some(file) = &mut self.file {
            file.write_all(&run).map_err(failed)?;
        }
        self.end += run.len() as u64;
        self.buckets[block].waiting = run;
        self.buckets[block].waiting.clear();
        Ok(())
    }

    /// Returns the records of a block, in the order in which they were added.
    pub fn take(&mut self, block: usize) -> Result<Vec<Record>> {
        let Bucket { waiting, runs } = std::mem::take(&mut self.buckets[block]);
        let run_records = self.run_bytes / RECORD_BYTES;
        let mut records = with_room(runs.len() * run_records + waiting.len() / RECORD_BYTES)?;
        let mut take = |bytes: &[u8]| records.extend(bytes.as_chunks().0.iter().map(Record::read));
        let failed = self.io("read a temporary file there");
        let mut run = with_room(if runs.is_empty() { 0 } else { self.run_bytes })?;
        for start in runs {
            let Some(file) = &mut self.file else { continue };
            run.resize(self.run_bytes, 0);
            file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut run)).map_err(&failed)?;
            take(&run);
        }
        take(&waiting);
        Ok(records)
    }
}
