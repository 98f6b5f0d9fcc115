//! A growable block of words, 64-byte aligned, on huge pages where the system grants them.
//!
//! The pages are zero and untouched when the block is new, so that the first thread that writes to them places them.

use super::room::{with_room, zeroed};
use crate::error::Result;

/// Words that keep their place between calls; growing gives fresh zero pages and discards the old contents.
#[derive(Default)]
pub struct Buffer {
    words: Vec<u64>,
    start: usize,
    len: usize,
}

/// Alignment of the first word, in words: one cache line.
const ALIGN_WORDS: usize = 8;

/// From this size on huge pages are requested.
const HUGE_BYTES: usize = 4 << 20;

/// The least page that a system may have.
const PAGE: usize = 4096;

impl Buffer {
    /// At least `len` words; contents are arbitrary. Allocates only when the block must grow.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] where the system refuses the memory.
    pub fn words(&mut self, len: usize) -> Result<&mut [u64]> {
        if len > self.len {
            *self = Buffer::default(); // give the old block back first: both at once would break the plan
            let total = len + ALIGN_WORDS;
            let words = zeroed(total)?;
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

/// Requests huge pages from the system for `words` if there are enough words: they need fewer page faults and table
/// walks.
///
/// It is only a hint: contents do not change, and it has no effect on a system without huge pages.
pub fn advise_huge_pages(words: &mut [u64]) {
    let bytes = size_of_val(words);
    if bytes >= HUGE_BYTES {
        let address = words.as_mut_ptr() as usize;
        advise(address.next_multiple_of(PAGE), address + bytes);
    }
}

/// Empty vectors with capacity for `lengths` words, on huge pages if the system grants them.
///
/// A vector may be smaller than a huge page: all are allocated before any is touched, so that vectors which the
/// allocator puts side by side share huge pages.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub fn vectors_on_huge_pages(lengths: &[usize]) -> Result<Vec<Vec<u64>>> {
    let mut vectors = lengths.iter().map(|&length| with_room::<u64>(length)).collect::<Result<Vec<_>>>()?;
    if 8 * lengths.iter().sum::<usize>() >= HUGE_BYTES {
        for vector in &mut vectors {
            let room = vector.spare_capacity_mut();
            let address = room.as_mut_ptr() as usize;
            // With the pages at both ends, or there would be gaps between neighbours.
            advise(address / PAGE * PAGE, (address + size_of_val(room)).next_multiple_of(PAGE));
        }
    }
    Ok(vectors)
}

/// Requests huge pages between two addresses, the first of which starts a page.
fn advise(first: usize, end: usize) {
    #[cfg(target_os = "linux")]
    {
        let length = end.saturating_sub(first) / PAGE * PAGE;
        // SAFETY: advice on huge pages changes no contents and takes no memory away, whoever owns the memory there; the
        // system refuses it where nothing is mapped.
        let _ =
            unsafe { rustix::mm::madvise(first as *mut core::ffi::c_void, length, rustix::mm::Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (first, end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

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

    #[test]
    fn vectors_have_room_and_their_own_words() {
        for lengths in [&[][..], &[0, 1, 5], &[40_000; 20]] {
            let mut vectors = vectors_on_huge_pages(lengths).unwrap();
            for (index, (vector, &length)) in vectors.iter_mut().zip(lengths).enumerate() {
                assert!(vector.is_empty() && vector.capacity() >= length);
                vector.resize(length, index as u64);
            }
            for (index, (vector, &length)) in vectors.iter().zip(lengths).enumerate() {
                assert_eq!(*vector, vec![index as u64; length]);
            }
        }
        assert!(matches!(vectors_on_huge_pages(&[1, usize::MAX / 16]), Err(Error::OutOfMemory { .. })));
    }
}
