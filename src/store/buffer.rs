//! A growable block of words, 64-byte aligned, on huge pages where the system grants them.
//!
//! The pages are zero and untouched when the block is new, so that whoever writes first places them.

use crate::error::{Error, Result};

/// Words that keep their place between calls; growing gives fresh zero pages and drops the old contents.
#[derive(Default)]
pub struct Buffer {
    words: Vec<u64>,
    start: usize,
    len: usize,
}

/// Alignment of the first word, in words: one cache line.
const ALIGN_WORDS: usize = 8;

/// From this size on huge pages are asked for.
const HUGE_BYTES: usize = 4 << 20;

impl Buffer {
    /// At least `len` words; contents are dirty. Allocates only when the block must grow.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the system refuses the memory.
    pub fn words(&mut self, len: usize) -> Result<&mut [u64]> {
        if len > self.len {
            *self = Buffer::default(); // give the old block back first: both at once would break the plan
            let total = len + ALIGN_WORDS;
            let refused = || Error::OutOfMemory { bytes: total as u64 * 8 };
            Vec::<u64>::new().try_reserve_exact(total).map_err(|_| refused())?;
            let words = vec![0u64; total];
            let misaligned = words.as_ptr() as usize / 8 % ALIGN_WORDS;
            self.start = (ALIGN_WORDS - misaligned) % ALIGN_WORDS;
            self.words = words;
            self.len = len;
            advise_huge_pages(&mut self.words);
        }
        Ok(&mut self.words[self.start..self.start + len])
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Bytes that a block of `len` words takes.
    pub fn bytes_for(len: usize) -> u64 {
        if len == 0 { 0 } else { (len as u64 + ALIGN_WORDS as u64) * 8 }
    }
}

/// Asks the system for huge pages under `words` where there are enough of them: fewer page faults and table walks.
///
/// Only a hint: contents stay as they are, and a system without huge pages loses nothing.
pub fn advise_huge_pages(words: &mut [u64]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = size_of_val(words);
        if bytes < HUGE_BYTES {
            return;
        }
        let address = words.as_mut_ptr() as usize;
        let first = address.next_multiple_of(PAGE);
        let length = (address + bytes - first) / PAGE * PAGE;
        // SAFETY: the range lies inside the slice's own memory, and advice on huge pages changes no contents.
        let _ =
            unsafe { rustix::mm::madvise(first as *mut core::ffi::c_void, length, rustix::mm::Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = words;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_aligned_and_reused() {
        let mut buffer = Buffer::default();
        for len in [1usize, 7, 100, 1 << 20, 5] {
            let words = buffer.words(len).unwrap();
            assert_eq!((words.len(), words.as_ptr() as usize % 64), (len, 0));
            words.fill(7);
        }
        assert_eq!(buffer.bytes(), Buffer::bytes_for(1 << 20));
    }
}
