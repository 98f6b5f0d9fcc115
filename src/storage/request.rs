//! The requests to a storage directory, and the answers.
//!
//! Independent of: how requests are carried out.

use super::catalog::StorageContents;
use super::name::{GroupName, ObjectName};
use super::queue::Priority;
use crate::error::Result;
use crate::plan::overhead;
use crate::store::IoBuffer;
use std::sync::Arc;

/// Objects to be read into a buffer.
#[derive(Debug)]
pub struct ReadRequest {
    /// The objects. Neighbours of one group, in the order in which they were published, are read by one system call.
    pub objects: Vec<ObjectName>,
    /// The buffer that receives them one after another, each at the start of a block: the second one begins
    /// [`super::padded_bytes`] of the first one's bytes after it.
    pub buffer: IoBuffer,
    /// Identifies the answer.
    pub tag: u64,
    /// The priority with which it is started.
    pub priority: Priority,
}

/// An object to be published: bytes of a buffer, which others may read meanwhile.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// Its name, which no other object has.
    pub name: ObjectName,
    /// The buffer with its bytes.
    pub buffer: Arc<IoBuffer>,
    /// Position of the first byte: the start of a block.
    pub start: usize,
    /// Number of bytes.
    pub bytes: u64,
}

/// A group to be published: either all of its objects will exist, or none.
#[derive(Debug)]
pub struct PublishRequest {
    /// The name of the group; no other group has this name.
    pub group: GroupName,
    /// Its objects, in the order of its file.
    pub objects: Vec<NewObject>,
    /// Identifies the answer.
    pub tag: u64,
    /// The priority with which it is started.
    pub priority: Priority,
}

/// A group to be deleted, damaged or not.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// The group.
    pub group: GroupName,
    /// Identifies the answer.
    pub tag: u64,
}

/// Data that are read from another source than the directory, such as a part of a matrix file.
pub trait ExternalSource: Send + Sync {
    /// Fills the buffer; bytes read. Called on an I/O thread.
    ///
    /// # Errors
    /// The error that the request is to be answered with.
    fn read(&self, buffer: &mut IoBuffer) -> Result<u64>;
}

/// A read of an [`ExternalSource`], in turn with those of objects.
pub struct FetchRequest {
    /// The source to read.
    pub source: Arc<dyn ExternalSource>,
    /// The buffer that receives the bytes.
    pub buffer: IoBuffer,
    /// Identifies the answer.
    pub tag: u64,
    /// The priority with which it is started.
    pub priority: Priority,
}

/// The answer to one request.
#[derive(Debug)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u64,
    /// Whether it was carried out. A group that was published or deleted stays so after a power failure, if the
    /// directory is durable.
    pub result: Result<()>,
    /// The buffer of a [`ReadRequest`]; after an error its contents are arbitrary. The buffers of a [`PublishRequest`]
    /// are no longer used by the storage when this value is delivered.
    pub buffer: Option<IoBuffer>,
    /// Seconds from the beginning of the work on it, without the wait in the queue.
    pub seconds: f64,
}

/// The callback for completions, called from an I/O thread: it should be quick, and may submit requests.
pub type Deliver = Box<dyn Fn(Completion) + Send + Sync>;

/// Whether the system caches the bytes read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Caching {
    /// Reads and writes bypass the cache.
    #[default]
    Direct,
    /// They go through the cache, and the system decides what stays in it.
    Cached,
    /// They go through the cache, and the system is requested to drop each piece when it is read, or synced.
    DropBehind,
}

/// The system calls by which bytes are transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Calls {
    /// `pread` and `pwrite`.
    #[default]
    Ordinary,
    /// io_uring for transfers of several pieces, or of more than 4 MiB, if the kernel has it and allows it.
    Ring,
}

/// The events that a publication survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// A power failure: files and the directory are synced before the answer.
    #[default]
    PowerCut,
    /// Only the end of the process: no sync is waited for. For objects that no later run reads. After a power failure
    /// they may be missing or damaged, and are reported as such.
    Scratch,
}

/// The use of a directory.
#[derive(Clone, Copy, Debug)]
pub struct StorageOptions {
    /// The use of the system's cache.
    pub caching: Caching,
    /// The system calls by which bytes are transferred.
    pub calls: Calls,
    /// The events that publications survive.
    pub durability: Durability,
    /// Threads that read and write.
    pub threads: usize,
    /// Largest number of active requests.
    pub requests_in_flight: usize,
    /// Largest number of bytes of active requests; a larger request runs by itself.
    pub bytes_in_flight: u64,
}

impl Default for StorageOptions {
    /// Past the cache, durable, 8 threads, 50 requests, any number of bytes.
    fn default() -> Self {
        let (caching, calls, durability) = (Caching::Direct, Calls::Ordinary, Durability::PowerCut);
        StorageOptions { caching, calls, durability, threads: 8, requests_in_flight: 50, bytes_in_flight: u64::MAX }
    }
}

impl StorageOptions {
    /// Largest number of bytes of memory that an open directory uses, in addition to the buffers of its callers.
    pub fn memory_bytes(&self, contents: &StorageContents) -> u64 {
        let threads = (self.threads as u64).saturating_mul(overhead::STORAGE_THREAD);
        threads.saturating_add(contents.memory_bytes()).saturating_add(overhead::STORAGE)
    }
}

/// The options in effect for a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageReport {
    /// The caching in use: the requested one, or [`Caching::DropBehind`] if direct I/O is not available.
    pub caching: Caching,
    /// The alignment of direct I/O, if it is in use.
    pub alignment: Option<u32>,
    /// The calls in use: the requested ones, or [`Calls::Ordinary`].
    pub calls: Calls,
    /// Reasons why a requested option is not in use.
    pub remarks: Vec<String>,
}
