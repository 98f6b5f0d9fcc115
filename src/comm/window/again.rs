//! Shared memory that MPI has mapped, once more where it can lie on huge pages.

use super::huge::{HUGE_BYTES, reserve};
use rustix::mm::{MremapFlags, mremap_fixed, munmap};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// The `bytes` shared bytes from `start` on, a page boundary, once more at an address where they can lie on huge pages;
/// `None` where the system does not support that. [`forget`] releases the addresses.
///
/// # Safety
/// The bytes are mapped, and stay so as long as anybody uses the addresses that are returned.
pub(in crate::comm) unsafe fn map_again(start: *mut u8, bytes: usize) -> Option<*mut u8> {
    if bytes < HUGE_BYTES {
        return None;
    }
    let again = reserve(bytes, offset_in_file(start.addr(), bytes)?)?;
    // SAFETY: with an old size of 0 the old mapping stays as it is, and the new one takes the place of the reserved
    // addresses, which nobody uses.
    let mapped = unsafe { mremap_fixed(start.cast(), 0, bytes, MremapFlags::MAYMOVE, again.cast()) };
    mapped.ok().map(|mapped| mapped.cast())
}

/// Releases addresses that [`map_again`] has returned.
///
/// # Safety
/// They came from there, with as many bytes, and nobody uses them any more.
pub(in crate::comm) unsafe fn forget(start: *mut u8, bytes: usize) {
    // SAFETY: a mapping of our own, by contract.
    let _ = unsafe { munmap(start.cast(), bytes) };
}

/// Where in its file the shared mapping has the bytes at an address; `None` where they are not in one such mapping.
fn offset_in_file(address: usize, bytes: usize) -> Option<usize> {
    let of_line = |line: &str| {
        // Addresses, permissions, offset.
        let mut fields = line.split_ascii_whitespace();
        let (first, end) = fields.next()?.split_once('-')?;
        let [first, end] = [first, end].map(|text| usize::from_str_radix(text, 16));
        let (first, is_shared) = (first.ok()?, fields.next()?.contains('s'));
        let inside = first <= address && address.checked_add(bytes)? <= end.ok()?;
        let offset = usize::from_str_radix(fields.next()?, 16).ok()?;
        (is_shared && inside).then(|| offset + address - first)
    };
    // Line by line: with many threads there are thousands, and no plan counts them.
    let (mut maps, mut line) = (BufReader::new(File::open("/proc/self/maps").ok()?), String::new());
    while maps.read_line(&mut line).ok()? > 0 {
        if let Some(offset) = of_line(&line) {
            return Some(offset);
        }
        line.clear();
    }
    None
}
