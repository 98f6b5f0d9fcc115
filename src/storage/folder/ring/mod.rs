//! Several transfers of a file at a time through io_uring, where the kernel has it.
//!
//! The only part of storage that passes addresses to the kernel directly. Promise: the kernel uses none of the memory
//! after a call returns. Independent of: what is transferred, and why.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod kernel;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod none;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use kernel::Rings;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use none::Rings;

/// Memory of a transfer.
pub enum Memory<'a> {
    /// To read into.
    Read(&'a mut [u8]),
    /// To write from.
    Write(&'a [u8]),
}

/// One transfer: at most 2 GiB.
pub struct TransferPart<'a> {
    pub memory: Memory<'a>,
    pub offset: u64,
    /// Whether all of its bytes were moved; otherwise the caller moves the rest.
    pub is_done: bool,
}

impl TransferPart<'_> {
    /// Bytes to be moved.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::Read(bytes) => bytes.len(),
            Memory::Write(bytes) => bytes.len(),
        }
    }
}
