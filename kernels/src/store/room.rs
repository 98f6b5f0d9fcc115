//! Memory that is requested such that a refusal is an error of the caller's call, not the end of the process.
//!
//! Promise: [`reserve`], [`zeroed`], [`address_space`] and [`room_for_threads`] return where the system refuses. Does
//! not know: what the memory is for.

use crate::error::{Error, Result};
use bytemuck::Zeroable;
use std::cell::Cell;

/// Memory that a thread may take while it starts, in addition to its stack: guard pages, its signal stack, the first
/// blocks.
const THREAD_EXTRA_BYTES: usize = 128 << 10;

/// Stack of a thread that the standard library starts.
const STACK_BYTES: usize = 2 << 20;

/// Memory that all of them take together: the C library enlarges its heap by up to 1 MiB at a time, and ends the
/// process where it finds no room for its records of a thread.
const HEAP_BYTES: usize = 2 << 20;

thread_local! {
    /// Whether the request that this thread makes of the allocator may be refused.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller of the allocator handles a refusal.
pub(super) fn is_asking() -> bool {
    ASKING.try_with(Cell::get).unwrap_or(false)
}

/// Runs `request`, whose refusal becomes an error.
fn ask<T, E>(bytes: u64, request: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    let before = ASKING.replace(true);
    let answer = request();
    ASKING.set(before);
    answer.map_err(|_| Error::OutOfMemory { bytes })
}

/// Extends the capacity of `vector` by exactly `more` elements.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<()> {
    ask((more as u64).saturating_mul(size_of::<T>() as u64), || vector.try_reserve_exact(more))
}

/// An empty vector with capacity for exactly `count` elements.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn with_room<T>(count: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    reserve(&mut vector, count)?;
    Ok(vector)
}

/// `count` zeros. The system provides their pages when they are first used.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn zeroed<T: Zeroable>(count: usize) -> Result<Vec<T>> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    ask(bytes, || bytemuck::allocation::try_zeroed_vec(count))
}

/// `count` copies of `value`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut vector = with_room(count)?;
    vector.resize(count, value);
    Ok(vector)
}

/// Checks whether `bytes` bytes of addresses are free, without using them.
///
/// # Errors
/// [`Error::OutOfMemory`] if a limit of the process (`ulimit -v`) forbids them.
pub fn address_space(bytes: usize) -> Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let refused = |_| Error::OutOfMemory { bytes: bytes as u64 };
    // SAFETY: a new mapping at a place of the system's choice overlaps nothing, and nothing can use it when it is given
    // back, whole.
    unsafe {
        let start = mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE);
        start.and_then(|start| munmap(start, bytes)).map_err(refused)
    }
}

/// Checks whether memory allows `threads` threads with stacks of the usual size. A thread that finds no memory when it
/// starts would end the process.
///
/// # Errors
/// [`Error::Threads`] with the bytes of all threads.
pub fn room_for_threads(threads: usize) -> Result<()> {
    let room = address_space(threads.saturating_mul(STACK_BYTES + THREAD_EXTRA_BYTES).saturating_add(HEAP_BYTES));
    room.map_err(|refused| Error::Threads { threads, reason: refused.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn what_is_granted_is_there_and_what_is_refused_is_an_error() {
        assert_eq!(zeroed::<u32>(1000).unwrap(), vec![0; 1000]);
        assert_eq!(filled(7u8, 3).unwrap(), [7; 3]);
        let mut numbers = vec![1u64];
        reserve(&mut numbers, 100).unwrap();
        assert!(numbers.capacity() >= 101 && with_room::<u64>(5).unwrap().capacity() >= 5);
        address_space(1 << 20).unwrap();
        room_for_threads(2).unwrap();
        let huge = usize::MAX / 64;
        let bytes = 8 * huge as u64;
        for refused in [
            reserve(black_box(&mut numbers), huge),
            zeroed::<u64>(huge).map(|words| drop(black_box(words))), // or nothing would be allocated
            filled(1u64, huge).map(|words| drop(black_box(words))),
            address_space(8 * huge),
        ] {
            assert!(matches!(refused, Err(Error::OutOfMemory { bytes: told }) if told == bytes), "{refused:?}");
        }
        assert!(room_for_threads(usize::MAX).is_err() && !is_asking());
    }
}
