//! How the C library's allocator handles memory that is given back.
//!
//! Promise: after [`return_freed_memory`], memory that a program frees goes back to the system, up to small blocks;
//! after [`keep_freed_memory`], it stays for the next block. Independent of: who allocates.

/// Smallest block, in bytes, that gets pages of its own; and most bytes at the end of the heap that stay unused.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: i32 = 256 << 10;

/// Returns freed blocks of 256 KiB and more to the system at once.
///
/// The GNU C library starts that way (at 128 KiB), but raises its threshold, up to 32 MiB, to the size of each large
/// block that is freed: later blocks below it come from the heap, where one block in use keeps all freed blocks before
/// it. The memory held then exceeds the allocated memory, by a sixth in products under a memory limit, and no plan can
/// predict it. A threshold that is set explicitly is not changed. For programs, at their start; a library does not
/// change its host's allocator. Other C libraries are not changed.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    set_thresholds(KEPT_BYTES, KEPT_BYTES);
}

/// Keeps freed blocks below 32 MiB in the process, for the next blocks of their size.
///
/// For commands that allocate and free matrices of the same sizes again and again, and have no memory limit: otherwise
/// the system receives each of them back, and clears its pages before it provides them again.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    set_thresholds(32 << 20, 1 << 30);
}

/// From which size on a block has pages of its own, and how much may stay unused at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set_thresholds(own_pages: i32, unused: i32) {
    for (parameter, bytes) in [(libc::M_MMAP_THRESHOLD, own_pages), (libc::M_TRIM_THRESHOLD, unused)] {
        // SAFETY: `mallopt` takes two integers, changes one number under the allocator's own lock, and touches no block
        // that is allocated. A refusal (0) leaves the number as it was.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Bytes that the allocator took from the system as single blocks.
    fn single_blocks() -> usize {
        // SAFETY: reads the allocator's own figures.
        unsafe { libc::mallinfo2() }.hblkhd
    }

    #[test]
    fn large_blocks_keep_pages_of_their_own_until_they_are_kept() {
        const BYTES: usize = 30 << 20;
        keep_freed_memory();
        let before = single_blocks();
        let block = std::hint::black_box(vec![1u8; BYTES]);
        assert!(single_blocks() < before + BYTES / 2, "{} after {before}", single_blocks());
        drop(block);
        return_freed_memory();
        // Freeing such a block would raise the threshold to its size.
        drop(std::hint::black_box(vec![1u8; BYTES]));
        let before = single_blocks();
        let block = std::hint::black_box(vec![1u8; BYTES]);
        assert!(single_blocks() >= before + BYTES / 2, "{} after {before}", single_blocks());
        drop(block);
    }
}
