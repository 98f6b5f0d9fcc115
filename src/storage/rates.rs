//! How fast a disk is, by writing a file and reading it again.
//!
//! Independent of: groups.

use super::folder::{Access, Folder, ReadPiece, WritePiece};
use super::open::{RATES_FILE, not_written, refused};
use super::request::Caching;
use super::transfer::Transfer;
use crate::error::{Error, Result};
use crate::store::IoBuffer;
use std::io;
use std::thread;
use std::time::Instant;

/// Threads that write and read at a time.
const THREADS: usize = 4;

/// Bytes of one call.
const PIECE_BYTES: usize = 1 << 20;

/// The bytes that a disk transfers per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskRates {
    /// Bytes read.
    pub read_bytes_per_second: f64,
    /// Bytes written and synced.
    pub write_bytes_per_second: f64,
}

impl DiskRates {
    /// Memory that the measurement takes.
    pub const MEMORY_BYTES: u64 = (THREADS * (PIECE_BYTES + IoBuffer::ALIGNMENT)) as u64;
}

/// Measures the rates with a file of about `bytes` bytes, which is removed.
///
/// # Errors
/// [`Error::DiskFull`], [`Error::Io`], [`Error::OutOfMemory`].
pub fn measure(transfer: &Transfer, bytes: u64) -> Result<DiskRates> {
    let folder = &*transfer.folder;
    let measured = measure_file(folder, transfer.caching, bytes);
    let removed = folder.remove(RATES_FILE);
    let rates = measured?;
    removed.map_err(refused(folder, RATES_FILE, "remove"))?;
    Ok(rates)
}

fn measure_file(folder: &dyn Folder, caching: Caching, bytes: u64) -> Result<DiskRates> {
    let access = if caching == Caching::Direct { Access::Direct } else { Access::Cached };
    let pieces = bytes.div_ceil(PIECE_BYTES as u64).max(1);
    let bytes = pieces * PIECE_BYTES as u64;
    let mut buffers = (0..THREADS).map(|_| IoBuffer::new(PIECE_BYTES)).collect::<Result<Vec<_>>>()?;
    // Not zeros, which a disk may store faster.
    for (index, word) in buffers.iter_mut().flat_map(|buffer| buffer.words_mut()).enumerate() {
        *word = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    let file = folder.create(RATES_FILE, access).map_err(not_written(folder, RATES_FILE, bytes))?;
    file.allocate(bytes).map_err(not_written(folder, RATES_FILE, bytes))?;
    let begun = Instant::now();
    let write = |buffer: &mut IoBuffer, offset| file.write_pieces(&[WritePiece { bytes: buffer.as_bytes(), offset }]);
    share_out(&mut buffers, pieces, write)
        .and_then(|()| file.sync())
        .map_err(not_written(folder, RATES_FILE, bytes))?;
    let writing = begun.elapsed();
    file.drop_cached(0, bytes);
    let begun = Instant::now();
    let read = |buffer: &mut IoBuffer, offset| {
        file.read_pieces(&mut [ReadPiece { bytes: buffer.as_bytes_mut(), offset, found: 0 }])
    };
    share_out(&mut buffers, pieces, read).map_err(|source| Error::Io {
        path: folder.path_of(RATES_FILE),
        action: "read",
        source,
    })?;
    let reading = begun.elapsed();
    file.drop_cached(0, bytes);
    let rate = |seconds: f64| bytes as f64 / seconds.max(1e-9);
    Ok(DiskRates {
        read_bytes_per_second: rate(reading.as_secs_f64()),
        write_bytes_per_second: rate(writing.as_secs_f64()),
    })
}

/// Calls `body` for each piece, on a thread for each buffer; returns the first refusal.
fn share_out(
    buffers: &mut [IoBuffer],
    pieces: u64,
    body: impl Fn(&mut IoBuffer, u64) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let (count, body) = (buffers.len() as u64, &body);
    thread::scope(|scope| {
        let mut started = Vec::new();
        for (index, buffer) in (0u64..).zip(buffers) {
            let work = move || {
                let mut mine = (index..pieces).step_by(count as usize);
                mine.try_for_each(|piece| body(buffer, piece * PIECE_BYTES as u64))
            };
            started.push(thread::Builder::new().spawn_scoped(scope, work)?);
        }
        let mut ended = started.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    })
}
