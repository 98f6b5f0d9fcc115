//! A software device in plain memory, with a capacity, counted transfers, and a clock that models the overlap of
//! operations.
//!
//! Work is queued and run when somebody waits for it, in the order of submission or, with a seed, in a random order
//! that streams and events allow. A missing event then gives a wrong result, and the seed reproduces it. New memory is
//! filled with a pattern, so that reads of uninitialised memory are detected too. Faults can be planned: a device that
//! is lost after a given number of commands, a bit that flips in a product. Ranks that share a device each open it
//! ([`SoftDevice::open_again`]), as processes open a GPU: memory and clock are common, and the work of one opening
//! waits for that of another, command by command.

mod math;
mod queue;
mod threads;

use crate::device::{
    Argument, Defines, Description, Device, DeviceAllocator, DeviceEvents, DeviceKind, DeviceStatus, Event, Gemm,
    Kernel, Memory, Pinned, RawMemory, RawPinned, Region, Stream, Traffic, Trsm,
};
use crate::error::{Error, Result};
use crate::store::with_room;
use queue::{CommandMark, QueueAction, Queues};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Alignment of device memory, as CUDA promises it, and of host memory.
const ALIGN_BYTES: usize = 256;

/// The byte with which new device memory is filled.
const DIRT: u8 = 0xA7;

/// Rates of the device's clock; they do not affect results.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Bytes per second to the device; the rate from the device is the same, and both directions overlap.
    pub bytes_per_second: f64,
    /// Multiply-adds of doubles per second.
    pub f64_per_second: f64,
    /// Multiply-adds of bytes per second.
    pub i8_per_second: f64,
    /// Kernel threads per second.
    pub threads_per_second: f64,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates { bytes_per_second: 25e9, f64_per_second: 25e12, i8_per_second: 600e12, threads_per_second: 2e9 }
    }
}

/// The clock of a device.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// Simulated time at these rates, as if copies and computing overlapped.
    Virtual(Rates),
    /// Real time. The device is then the host itself, with its own threads.
    Wall,
}

/// A planned fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Every command from this one on fails, as for a GPU that is no longer on the bus.
    LostAfter(u64),
    /// The first entry of the result of this product, in the first matrix of its batch, has an error of one.
    FlipInProduct(u64),
}

/// Options of a software device.
#[derive(Clone, Debug)]
pub struct SoftOptions {
    /// Bytes of memory.
    pub capacity_bytes: u64,
    /// Number among the software devices.
    pub index: usize,
    /// Seed of the order of execution; `None` for the order of submission.
    pub seed: Option<u64>,
    /// The clock.
    pub clock: Clock,
    /// Threads of the host's own device; 0 for all processors.
    pub threads: usize,
    /// A fault to happen.
    pub fault: Option<Fault>,
}

impl Default for SoftOptions {
    fn default() -> SoftOptions {
        SoftOptions {
            capacity_bytes: 1 << 30,
            index: 0,
            seed: None,
            clock: Clock::Virtual(Rates::default()),
            threads: 0,
            fault: None,
        }
    }
}

/// Bytes allocated, shared with the memory that gives them back.
#[derive(Default)]
struct SoftAccount {
    used: AtomicU64,
    peak: AtomicU64,
}

/// The state that all openings of a device share.
struct Card {
    identity: u64,
    /// Bytes allocated by all openings.
    used: AtomicU64,
    /// Openings that contexts use.
    users: AtomicUsize,
    /// The times on its clock at which each part of the device is free again. The opening that holds the lock may run
    /// commands.
    free: Mutex<[f64; 3]>,
}

impl Card {
    fn new(clock: Clock) -> Arc<Card> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let identity = match clock {
            // No two processes of a machine have the same number, nor two devices of a process.
            Clock::Virtual(_) => {
                u64::from(std::process::id()) << 32 | (NEXT.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff)
            }
            // All processes of a machine mean the same processors.
            Clock::Wall => u64::MAX,
        };
        Arc::new(Card { identity, used: AtomicU64::new(0), users: AtomicUsize::new(0), free: Mutex::default() })
    }

    /// Waits until no other opening is at work.
    fn turn(&self) -> MutexGuard<'_, [f64; 3]> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An opening of the device.
pub struct SoftDevice {
    options: SoftOptions,
    account: Arc<SoftAccount>,
    card: Arc<Card>,
    queues: Arc<Mutex<Queues>>,
    /// Whether a context uses this opening.
    is_used: AtomicBool,
}

impl SoftDevice {
    /// A device with these options.
    pub fn new(options: SoftOptions) -> SoftDevice {
        let card = Card::new(options.clock);
        SoftDevice::on(card, options)
    }

    /// Opens the same device again, with its own streams, counters and order of execution, as another process opens a
    /// GPU.
    pub fn open_again(&self) -> SoftDevice {
        SoftDevice::on(self.card.clone(), self.options.clone())
    }

    fn on(card: Arc<Card>, options: SoftOptions) -> SoftDevice {
        let queues = Arc::new(Mutex::new(Queues::new(&options, card.clone())));
        SoftDevice { account: Arc::default(), card, queues, options, is_used: AtomicBool::new(false) }
    }

    fn submit(&self, stream: Stream, action: QueueAction) -> Result<CommandMark> {
        lock(&self.queues).submit(stream, action)
    }
}

impl Drop for SoftDevice {
    fn drop(&mut self) {
        if *self.is_used.get_mut() {
            self.card.users.fetch_sub(1, Ordering::Relaxed);
        }
        // Commands that nobody waited for hold memory that holds the queues.
        let forgotten = lock(&self.queues).clear();
        drop(forgotten);
    }
}

fn lock(queues: &Mutex<Queues>) -> MutexGuard<'_, Queues> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block from the system's allocator.
struct MemoryBlock {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: the block is plain memory without owner; the queues decide who may touch it, and when.
unsafe impl Send for MemoryBlock {}
// SAFETY: as above.
unsafe impl Sync for MemoryBlock {}

impl MemoryBlock {
    fn new(bytes: usize, zeroed: bool) -> Result<MemoryBlock> {
        let refused = |_| Error::OutOfMemory { bytes: bytes as u64 };
        let layout = Layout::from_size_align(bytes.max(1), ALIGN_BYTES).map_err(refused)?;
        drop(with_room::<u8>(bytes)?);
        // SAFETY: the layout has at least one byte.
        let start = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        if !zeroed {
            // SAFETY: the block is ours and has `bytes` bytes.
            unsafe { start.write_bytes(DIRT, bytes) };
        }
        Ok(MemoryBlock { start, layout })
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        // SAFETY: made in `new` with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}

struct SoftMemory {
    block: MemoryBlock,
    bytes: usize,
    account: Arc<SoftAccount>,
    card: Arc<Card>,
}

// SAFETY: the block is this value's own, has `bytes` bytes, and is freed with it; commands that use it hold it.
unsafe impl RawMemory for SoftMemory {
    fn address(&self) -> u64 {
        self.block.start as u64
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for SoftMemory {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        self.card.used.fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

struct SoftPinned {
    block: MemoryBlock,
    bytes: usize,
    queues: Arc<Mutex<Queues>>,
    marks: Mutex<Vec<CommandMark>>,
}

// SAFETY: the block has `bytes` initialised bytes, aligned to 256, and is reached only by copies, which `settle`
// carries out.
unsafe impl RawPinned for SoftPinned {
    fn pointer(&self) -> *mut u8 {
        self.block.start
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn settle(&self) -> Result<()> {
        let marks = std::mem::take(&mut *self.marks.lock().unwrap_or_else(PoisonError::into_inner));
        let mut queues = lock(&self.queues);
        marks.iter().try_for_each(|mark| queues.run_until(mark))
    }

    fn submitted(&self, event: Event) {
        let mark = event.0.downcast_ref::<CommandMark>().expect("an event of this device").clone();
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).push(mark);
    }
}

fn mark(event: &Event) -> &CommandMark {
    event.0.downcast_ref::<CommandMark>().expect("an event of this device")
}

impl DeviceStatus for SoftDevice {
    fn description(&self) -> Description {
        let (name, kind) = match self.options.clock {
            Clock::Virtual(_) => ("software device", DeviceKind::Soft),
            Clock::Wall => ("the CPU of this machine", DeviceKind::Host),
        };
        Description {
            name: name.into(),
            kind,
            index: self.options.index,
            driver: String::new(),
            memory_bytes: self.options.capacity_bytes,
        }
    }

    fn identity(&self) -> u64 {
        self.card.identity
    }

    fn announce(&self) {
        if !self.is_used.swap(true, Ordering::Relaxed) {
            self.card.users.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn users(&self) -> usize {
        self.card.users.load(Ordering::Relaxed)
    }

    fn capacity_bytes(&self) -> u64 {
        self.options.capacity_bytes
    }

    fn used_bytes(&self) -> u64 {
        self.account.used.load(Ordering::Relaxed)
    }

    fn peak_bytes(&self) -> u64 {
        self.account.peak.load(Ordering::Relaxed)
    }

    fn traffic(&self) -> Traffic {
        lock(&self.queues).traffic()
    }
}

impl DeviceAllocator for SoftDevice {
    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let used_bytes = self.card.used.fetch_add(bytes as u64, Ordering::Relaxed);
        let refuse = |error| {
            self.card.used.fetch_sub(bytes as u64, Ordering::Relaxed);
            Err(error)
        };
        if used_bytes.saturating_add(bytes as u64) > self.options.capacity_bytes {
            let capacity_bytes = self.options.capacity_bytes;
            return refuse(Error::DeviceMemory { bytes: bytes as u64, used_bytes, capacity_bytes });
        }
        match MemoryBlock::new(bytes, false) {
            Ok(block) => {
                let own_bytes = self.account.used.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
                self.account.peak.fetch_max(own_bytes, Ordering::Relaxed);
                let (account, card) = (self.account.clone(), self.card.clone());
                Ok(Memory(Arc::new(SoftMemory { block, bytes, account, card })))
            }
            Err(error) => refuse(error),
        }
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<Pinned> {
        let (block, queues) = (MemoryBlock::new(bytes, true)?, self.queues.clone());
        Ok(Pinned::new(Box::new(SoftPinned { block, bytes, queues, marks: Mutex::default() })))
    }
}

impl DeviceEvents for SoftDevice {
    fn record(&self, stream: Stream) -> Result<Event> {
        let mark = lock(&self.queues).submit(stream, QueueAction::Record)?;
        Ok(Event(Arc::new(mark)))
    }

    fn wait(&self, stream: Stream, event: &Event) -> Result<()> {
        self.submit(stream, QueueAction::Wait(mark(event).clone())).map(drop)
    }

    fn synchronize(&self, event: &Event) -> Result<()> {
        lock(&self.queues).run_until(mark(event))
    }

    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64> {
        self.synchronize(from)?;
        self.synchronize(to)?;
        Ok(mark(to).seconds() - mark(from).seconds())
    }
}

impl Device for SoftDevice {
    fn stream(&self) -> Result<Stream> {
        Ok(lock(&self.queues).stream())
    }

    fn retire(&self, stream: Stream) {
        lock(&self.queues).retire(stream);
    }

    fn upload(&self, stream: Stream, from: &Pinned, at: usize, to: &Region) -> Result<()> {
        from.submit(at, to.bytes(), || {
            let action = QueueAction::Upload { from: from.clone(), at, to: to.clone() };
            Ok(Event(Arc::new(self.submit(stream, action)?)))
        })
    }

    fn download(&self, stream: Stream, from: &Region, to: &Pinned, at: usize) -> Result<()> {
        to.submit(at, from.bytes(), || {
            let action = QueueAction::Download { from: from.clone(), to: to.clone(), at };
            Ok(Event(Arc::new(self.submit(stream, action)?)))
        })
    }

    fn copy(&self, stream: Stream, from: &Region, to: &Region) -> Result<()> {
        assert_eq!(from.bytes(), to.bytes(), "regions of equal length");
        self.submit(stream, QueueAction::Copy { from: from.clone(), to: to.clone() }).map(drop)
    }

    fn clear(&self, stream: Stream, region: &Region) -> Result<()> {
        self.submit(stream, QueueAction::Clear(region.clone())).map(drop)
    }

    fn multiply(&self, stream: Stream, gemm: &Gemm) -> Result<()> {
        gemm.check();
        self.submit(stream, QueueAction::Multiply(gemm.clone())).map(drop)
    }

    fn solve(&self, stream: Stream, trsm: &Trsm) -> Result<()> {
        trsm.check();
        self.submit(stream, QueueAction::Solve(trsm.clone())).map(drop)
    }

    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: &Kernel,
        _defines: Defines<'_>,
        threads: u64,
        arguments: &[Argument],
    ) -> Result<()> {
        let (kernel, arguments) = (kernel.host, arguments.to_vec());
        self.submit(stream, QueueAction::Launch { kernel, threads, arguments }).map(drop)
    }
}
