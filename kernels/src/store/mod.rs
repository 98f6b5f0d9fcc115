//! The memory of matrices, windows and scratch space, and the amount of memory of the machine.
//!
//! Depends on: allocation, huge pages, the system's memory figures. Independent of: the meaning of the words.

mod buffer;
mod counters;
mod counting;
mod freed;
mod io_buffer;
mod raise;
mod refusal;
mod room;
mod system;

pub use buffer::{Buffer, advise_huge_pages, vectors_on_huge_pages};
pub use counters::{allocated_bytes, allocation_count, peak_bytes, requested_bytes, reset_peak_bytes};
pub use counting::CountingAllocator;
pub use freed::{keep_freed_memory, return_freed_memory};
pub use io_buffer::IoBuffer;
pub use raise::{raise, start_in};
pub use refusal::{count_numbers, end_where_refused};
pub use room::{address_space, filled, reserve, room_for_threads, with_room, zeroed};
pub use system::available_bytes;
