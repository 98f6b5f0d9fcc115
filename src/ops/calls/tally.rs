//! The bytes that a rank has at each step of a call over ranks: one count for the call and for its plan, so that a
//! report states the planned bytes.

/// Bytes that one of several ranks takes in addition to those that the library counts: MPI's requests and its data for
/// each other rank, and memory that the allocator keeps from freed blocks of other lengths. Measured: 0.2 to
/// 0.6 MB (docs/BENCHMARKS.md).
const PROCESS_BYTES: u64 = 512 << 10;

/// The memory of the process of one of `ranks` ranks.
pub fn process_bytes(ranks: usize) -> u64 {
    if ranks > 1 { PROCESS_BYTES } else { 0 }
}

/// The bytes of a rank, step by step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Whether the context has no limit, so that it keeps copies and memory for the next step and the next call.
    keeps: bool,
    /// Bytes at this time, and bytes that the context keeps from copies that have been freed.
    now: u64,
    /// Bytes of the longest messages that have been freed: the allocator keeps them for later messages.
    freed: u64,
    most: u64,
}

impl Tally {
    /// The tally of one of `ranks` ranks.
    pub fn new(keeps: bool, ranks: usize) -> Tally {
        Tally { keeps, now: process_bytes(ranks), ..Tally::default() }
    }

    /// Whether copies are kept for the next step.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// The largest number of bytes at one time.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Counts `more` additional bytes for a step.
    pub fn at_most(&mut self, more: u64) {
        self.most = self.most.max(self.now.saturating_add(self.freed).saturating_add(more));
    }

    /// Counts messages of `messages` bytes, and `more` bytes in addition to them.
    pub fn travel(&mut self, messages: u64, more: u64) {
        self.at_most(more.saturating_add(messages.saturating_sub(self.freed)));
        self.freed = self.freed.max(messages);
    }

    /// Bytes that stay.
    pub fn hold(&mut self, bytes: u64) {
        self.now = self.now.saturating_add(bytes);
        self.at_most(0);
    }

    /// Bytes that go.
    pub fn release(&mut self, bytes: u64) {
        self.now = self.now.saturating_sub(bytes);
    }

    /// A copy is freed, or kept for the next call.
    pub fn drop_copy(&mut self, bytes: u64) {
        self.release(if self.keeps { 0 } else { bytes });
    }

    /// Memory of a step that the context keeps after it, if it has no limit.
    pub fn keep(&mut self, bytes: u64) {
        self.now += if self.keeps { bytes } else { 0 };
    }

    /// Stores a result of `placed` bytes whose copy was freed before: it uses the memory kept from the copy.
    pub fn store_again(&mut self, messages: u64, placed: u64) {
        self.travel(messages, if self.keeps { 0 } else { placed });
    }
}
