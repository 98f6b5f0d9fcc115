//! Where the words of matrices, windows and scratch live, and how much memory the machine has.
//!
//! Knows: allocation, huge pages, the system's memory figures. Does not know: what the words mean.

mod buffer;
mod counting;
mod freed;
mod system;

pub use buffer::{Buffer, advise_huge_pages, vectors_on_huge_pages};
pub use counting::{CountingAllocator, allocated_bytes, peak_bytes, reset_peak_bytes};
pub use freed::return_freed_memory;
pub use system::{available_bytes, shared_memory_bytes};
