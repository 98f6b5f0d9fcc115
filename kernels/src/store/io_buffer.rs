//! Memory that files are read into and written from without a copy in between.
//!
//! Promise: the first byte, and with it each whole number of blocks after it, is aligned as direct I/O needs it. Does
//! not know: files.

use super::room::zeroed;
use crate::error::Result;

/// A block of bytes, aligned for direct I/O, that keeps its address when it is moved between owners.
///
/// Its pages are zero and untouched when it is new. The same memory reads as bytes and as words.
#[derive(Default)]
pub struct IoBuffer {
    words: Vec<u64>,
    start: usize,
    bytes: usize,
}

impl IoBuffer {
    /// Alignment of the first byte and of lengths, which are rounded up: at least what current disks and file systems
    /// need.
    pub const ALIGNMENT: usize = 4096;

    /// A buffer of `bytes` zeros, rounded up to whole blocks of [`IoBuffer::ALIGNMENT`].
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] where the system refuses the memory.
    pub fn new(bytes: usize) -> Result<IoBuffer> {
        // No system has more than half of all addresses, and rounding a larger length up could overflow.
        let bytes = bytes.min(usize::MAX / 2).next_multiple_of(Self::ALIGNMENT);
        if bytes == 0 {
            return Ok(IoBuffer::default());
        }
        let words = zeroed::<u64>((bytes + Self::ALIGNMENT) / 8)?;
        let start = words.as_ptr() as usize;
        let start = (start.next_multiple_of(Self::ALIGNMENT) - start) / 8;
        Ok(IoBuffer { words, start, bytes })
    }

    /// Its capacity in bytes: whole blocks.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether its capacity is 0.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes of memory that a buffer for `bytes` takes, alignment included.
    pub fn memory_bytes(bytes: u64) -> u64 {
        let alignment = Self::ALIGNMENT as u64;
        if bytes == 0 { 0 } else { bytes.div_ceil(alignment).saturating_add(1).saturating_mul(alignment) }
    }

    /// Its words.
    pub fn words(&self) -> &[u64] {
        &self.words[self.start..self.start + self.bytes / 8]
    }

    /// Its words, for changes.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.start..self.start + self.bytes / 8]
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.words())
    }

    /// Its bytes, for changes.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.words_mut())
    }
}

impl std::fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoBuffer of {} bytes", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn buffers_are_aligned_wherever_they_are_moved() {
        for (bytes, length) in [(0, 0), (1, 4096), (4096, 4096), (4097, 8192), (1 << 20, 1 << 20)] {
            let mut buffer = Box::new(IoBuffer::new(bytes).unwrap());
            assert_eq!((buffer.len(), buffer.is_empty()), (length, length == 0));
            assert_eq!((buffer.words().len() * 8, buffer.as_bytes().len()), (length, length));
            buffer.words_mut().fill(0x0101_0101_0101_0101);
            let moved = *buffer;
            assert!(moved.as_bytes().iter().all(|&byte| byte == 1));
            assert!(length == 0 || (moved.as_bytes().as_ptr() as usize).is_multiple_of(IoBuffer::ALIGNMENT));
            assert_eq!(IoBuffer::memory_bytes(bytes as u64), moved.words.len() as u64 * 8);
        }
        for bytes in [usize::MAX, usize::MAX - 4096, usize::MAX - 8191, usize::MAX / 2] {
            assert!(matches!(IoBuffer::new(bytes), Err(Error::OutOfMemory { .. })));
        }
    }
}
