//! Huge pages under windows.
//!
//! Reading many megabytes from small pages costs a walk through the tables of the system for each of them. The memory
//! of one process lies on huge pages where it requests them (`store`); shared memory does so only where the machine was
//! set up for it, which by default it is not. But Linux joins small pages that are there into a huge one on an explicit
//! request (`MADV_COLLAPSE`, since 6.1), whatever the default, if they begin at a multiple of the size of a huge page
//! in the file and lie at an address with the same remainder.
//! Promise: contents never change, and nothing fails: pages that cannot be joined stay as they are.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ops::Range;

/// Bytes of a huge page.
pub(super) const HUGE_BYTES: usize = 2 << 20;

/// Addresses for `bytes` bytes of a file from its byte `offset` on, at which they can lie on huge pages: nothing is
/// mapped there yet except a placeholder that keeps others away. `None` where no huge page fits, where pages have
/// another size than windows are cut by, or where the system has no room.
///
/// A caller that fails to map memory there must not use or free the addresses: some versions of Linux have released
/// them then, and another thread may have them.
pub(in crate::comm) fn reserve(bytes: usize, offset: usize) -> Option<*mut u8> {
    // SAFETY: asks the system for a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let fits = bytes >= HUGE_BYTES && usize::try_from(page_bytes) == Ok(super::PAGE_BYTES);
    let total = bytes.checked_add(HUGE_BYTES).filter(|_| fits)?;
    // SAFETY: a new mapping at an address of the system's choice, which nobody can read or write.
    let begin = unsafe { mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::empty(), MapFlags::PRIVATE) }.ok()?;
    let before = (offset % HUGE_BYTES + HUGE_BYTES - begin.addr() % HUGE_BYTES) % HUGE_BYTES;
    let start = begin.wrapping_byte_add(before);
    let end = bytes.next_multiple_of(super::PAGE_BYTES) + before;
    for (at, length) in [(0, before), (end, total.saturating_sub(end))] {
        if length > 0 {
            // SAFETY: a part of the mapping just made, outside the part that is returned.
            let _ = unsafe { munmap(begin.wrapping_byte_add(at), length) };
        }
    }
    Some(start.cast())
}

/// Has the system make huge pages of the pages that begin among the bytes `share` of a window of `bytes` bytes, as far
/// as possible. Where no page was present this takes a tenth of the time of small pages.
///
/// # Safety
/// The bytes from `start` on are shared memory of a file, mapped by [`reserve`]'s rule.
pub(in crate::comm) unsafe fn join(start: *mut u8, bytes: usize, share: Range<usize>) {
    let first = (start.addr() + share.start).next_multiple_of(HUGE_BYTES) - start.addr();
    let begun = (first..share.end).step_by(HUGE_BYTES).take_while(|page| page + HUGE_BYTES <= bytes);
    let is_there = |&page: &usize| {
        // SAFETY: inside the mapping by contract; a page is provided, contents stay.
        let provided =
            unsafe { madvise(start.wrapping_add(page).cast(), super::PAGE_BYTES, Advice::LinuxPopulateWrite) };
        provided.is_ok()
    };
    let count = begun.take_while(is_there).count();
    if count > 0 {
        // One call for all: it skips pages that cannot be joined now, and continues.
        // SAFETY: as above; where the bytes lie changes, not what they are, and a refusal changes nothing.
        let _ = unsafe { libc::madvise(start.wrapping_add(first).cast(), count * HUGE_BYTES, libc::MADV_COLLAPSE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::comm::window::{PAGE_BYTES, SharedWindow, WindowKind};
    use crate::store::Buffer;

    /// Whether this system joins pages: it does so to memory of one process, and has not denied it to shared memory.
    fn joins_pages() -> bool {
        let denied = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
        let mut buffer = Buffer::default();
        let words = buffer.words(HUGE_BYTES / 4).unwrap();
        words.fill(1);
        let first = words.as_ptr().addr().next_multiple_of(HUGE_BYTES) - words.as_ptr().addr();
        let page = words.as_mut_ptr().wrapping_byte_add(first).cast();
        // SAFETY: inside the buffer, which is twice as long; contents stay.
        let joined = unsafe { libc::madvise(page, HUGE_BYTES, libc::MADV_COLLAPSE) } == 0;
        joined && denied.is_ok_and(|text| !text.contains("[deny]"))
    }

    /// KiB of the mapping that begins at an address which lie on huge pages.
    fn huge_kib(start: usize) -> Option<usize> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let own = maps.lines().skip_while(|line| !line.starts_with(&format!("{start:x}-")));
        let kib = own.into_iter().find_map(|line| line.strip_prefix("ShmemPmdMapped:"))?;
        kib.trim().trim_end_matches(" kB").parse().ok()
    }

    #[test]
    fn windows_of_several_megabytes_lie_on_huge_pages() {
        if !joins_pages() {
            return println!("skipped: this system joins no pages");
        }
        for (ranks, pages, more) in [(1, 1, 0), (2, 5, 1000), (3, 4, 0), (3, 7, 1000)] {
            let words = pages * HUGE_BYTES / 8 + more;
            local::run(ranks, |rank| {
                let mut window = SharedWindow::open(rank, WindowKind::Posix, words).unwrap();
                let words = window.read(&crate::comm::Fence::new(rank), Ok(())).unwrap();
                assert!(words.iter().all(|&word| word == 0));
                let start = words.as_ptr().addr();
                // A system without room for some of them leaves these small.
                let huge = huge_kib(start).unwrap() / (HUGE_BYTES / 1024);
                assert!(start.is_multiple_of(HUGE_BYTES), "{start:x}");
                assert!((pages.div_ceil(2)..=pages).contains(&huge), "{huge} of {pages} on {ranks} ranks");
                window.close().unwrap();
            });
        }
    }

    #[test]
    fn reserved_addresses_have_the_remainder_of_the_offset_and_keep_nothing_else() {
        let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
        for (bytes, offset) in
            [(HUGE_BYTES, 0), (3 * HUGE_BYTES + 5, PAGE_BYTES), (HUGE_BYTES + 1, 3 * HUGE_BYTES - PAGE_BYTES)]
        {
            let start = reserve(bytes, offset).unwrap();
            assert_eq!((start.addr() + 2 * HUGE_BYTES - offset % HUGE_BYTES) % HUGE_BYTES, 0);
            let end = start.addr() + bytes.next_multiple_of(PAGE_BYTES);
            let ranges = maps();
            let held = |address: usize| {
                ranges.lines().any(|line| {
                    let (first, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                    let [first, end] = [first, end].map(|text| usize::from_str_radix(text, 16).unwrap());
                    (first..end).contains(&address) && line.contains("---p")
                })
            };
            assert!(held(start.addr()) && held(end - 1), "{bytes} bytes at {offset}");
            // SAFETY: reserved above, and nobody else has the address.
            let _ = unsafe { munmap(start.cast(), bytes) };
        }
        assert_eq!((reserve(HUGE_BYTES - 1, 0), reserve(usize::MAX, 0)), (None, None));
    }
}
