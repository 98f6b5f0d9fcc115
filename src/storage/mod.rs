//! Named immutable objects in a directory on disk: published, read and deleted by threads of the directory.
//!
//! Objects are published in groups. Each group is a file that appears complete or not at all: it is written under a
//! temporary name, synced, renamed, and the directory synced, before the publication is acknowledged. Acknowledged
//! objects survive a power failure, and every object has a checksum that each read compares. Objects of a single run
//! need no sync ([`Durability::Scratch`]). A directory belongs to one [`Identity`] and, at a time, to one process.
//!
//! ```
//! use sunzi::advanced::storage::{GroupName, Identity, NewObject, ObjectName, PublishRequest, ReadRequest, Storage};
//! use sunzi::advanced::store::IoBuffer;
//! use std::sync::{Arc, mpsc};
//!
//! # fn main() -> sunzi::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("objects");
//! let (sender, completions) = mpsc::channel();
//! let deliver = Box::new(move |completion| drop(sender.send(completion)));
//! let storage = Storage::open(&path, &Identity::new("example").with("order", 3), Default::default(), deliver)?;
//!
//! let mut buffer = IoBuffer::new(24)?;
//! buffer.words_mut()[..3].copy_from_slice(&[7, 8, 9]);
//! let (name, group) = (ObjectName::new("row 1")?, GroupName::new("rows")?);
//! let object = NewObject { name: name.clone(), buffer: Arc::new(buffer), start: 0, bytes: 24 };
//! storage.publish(PublishRequest { group, objects: vec![object], tag: 1, priority: Default::default() })?;
//! completions.recv().unwrap().result?;
//!
//! let buffer = IoBuffer::new(24)?;
//! storage.read(ReadRequest { objects: vec![name], buffer, tag: 2, priority: Default::default() })?;
//! let completion = completions.recv().unwrap();
//! completion.result?;
//! assert_eq!(completion.buffer.unwrap().words()[..3], [7, 8, 9]);
//! # Ok(())
//! # }
//! ```
//!
//! Depends on: files, threads, bytes. Independent of: the contents of objects, the order of their use.

mod answered;
mod catalog;
mod folder;
mod format;
mod identity;
mod name;
mod open;
mod queue;
mod rates;
mod request;
mod service;
mod statistics;
mod transfer;

pub use answered::{AnsweredStorage, Completions};
pub use catalog::{DamagedGroup, ObjectInfo, StorageContents};
pub use folder::{Access, DirectIo, File, Folder, Lock, ReadPiece, WritePiece};
pub use folder::{SimulatedFaults, SimulatedFolder, SystemFolder};
pub use format::padded_bytes;
pub use identity::Identity;
pub use name::{GroupName, ObjectName};
pub(crate) use open::is_storage;
pub use queue::Priority;
pub use rates::DiskRates;
pub use request::{
    Caching, Calls, Completion, DeleteRequest, Deliver, Durability, ExternalSource, FetchRequest, NewObject,
};
pub use request::{PublishRequest, ReadRequest, StorageOptions, StorageReport};
pub use statistics::StorageStatistics;

use crate::error::{Error, Result};
use crate::store::IoBuffer;
use format::{GroupHeader, ObjectEntry};
use service::{Request, Service, StorageWork};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transfer::{Transfer, runs};

/// An open directory of objects.
///
/// Dropping it waits for active requests and answers queued ones with [`Error::Cancelled`]; no temporary file remains.
/// Only afterwards can another process open the directory.
pub struct Storage {
    // Before the lock: threads end first.
    service: Service,
    report: StorageReport,
    identity: u64,
    _lock: Box<dyn Any + Send + Sync>,
}

impl Storage {
    /// Opens the directory `path` of this `identity`, or makes it in a folder that exists.
    ///
    /// Temporary files of killed runs are removed. Every answer is passed to `deliver`.
    ///
    /// # Errors
    /// [`Error::StorageInUse`] while another process uses it; [`Error::StorageMismatch`] if it belongs to another
    /// identity; [`Error::Format`] if it contains other files; [`Error::Io`] and [`Error::DiskFull`];
    /// [`Error::Threads`].
    pub fn open(path: &Path, identity: &Identity, options: StorageOptions, deliver: Deliver) -> Result<Storage> {
        let mut folder = SystemFolder::open_or_make(path).map_err(|(action, source)| Error::Io {
            path: path.to_path_buf(),
            action,
            source,
        })?;
        let rings = if options.calls == Calls::Ring { Some(folder.use_rings()) } else { None };
        let mut storage = Storage::open_in(Arc::new(folder), identity, options, deliver)?;
        match rings {
            Some(Ok(())) => storage.report.calls = Calls::Ring,
            Some(Err(refused)) => storage.report.remarks.push(format!("io_uring is not available: {refused}")),
            None => {}
        }
        Ok(storage)
    }

    /// As [`Storage::open`], in any folder, for example a simulated one.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open_in(
        folder: Arc<dyn Folder>,
        identity: &Identity,
        options: StorageOptions,
        deliver: Deliver,
    ) -> Result<Storage> {
        let directory = open::open(folder, identity, &options)?;
        let open::Directory { folder, identity, catalog, report, lock } = directory;
        let transfer = Transfer { folder, caching: report.caching, durability: options.durability };
        let service = Service::start(transfer, catalog, &options, deliver)?;
        Ok(Storage { service, report, identity, _lock: lock })
    }

    /// All objects that can be read, group by group.
    pub fn objects(&self) -> Vec<ObjectInfo> {
        self.service.state().catalog.objects()
    }

    /// An object that can be read; `None` if there is none of that name.
    pub fn object(&self, name: &ObjectName) -> Option<ObjectInfo> {
        let state = self.service.state();
        let place = state.catalog.find(name)?;
        Some(ObjectInfo { name: name.clone(), bytes: place.bytes, group: place.group.clone() })
    }

    /// Groups that were found damaged when the directory was opened. Damage inside an object is found when it is read.
    pub fn damaged(&self) -> Vec<DamagedGroup> {
        self.service.state().catalog.damaged()
    }

    /// Reads objects into a buffer. The answer is [`Error::Damaged`] or [`Error::Truncated`] if one of them differs
    /// from the published one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no object of a name, or the buffer is too small for all.
    pub fn read(&self, request: ReadRequest) -> Result<()> {
        let ReadRequest { objects, buffer, tag, priority } = request;
        self.service.submit(priority, |catalog| {
            let mut places = Vec::with_capacity(objects.len());
            let mut bytes = 0;
            for name in objects {
                let place = catalog.find(&name).cloned();
                let place =
                    place.ok_or_else(|| Error::InvalidArgument(format!("there is no stored object '{name}'")))?;
                bytes += padded_bytes(place.bytes);
                places.push((name, place));
            }
            if bytes > buffer.len() as u64 {
                let room = buffer.len();
                let told = format!("{bytes} bytes of stored objects do not fit a buffer of {room} bytes");
                return Err(Error::InvalidArgument(told));
            }
            Ok(Request { tag, work: StorageWork::Read { runs: runs(places), buffer } })
        })
    }

    /// Reads from another source than the directory, in turn with the objects, so that one queue contains all requests
    /// to the disk.
    ///
    /// # Errors
    /// None today.
    pub fn fetch(&self, request: FetchRequest) -> Result<()> {
        let FetchRequest { source, buffer, tag, priority } = request;
        self.service.submit(priority, |_| Ok(Request { tag, work: StorageWork::Fetch { source, buffer } }))
    }

    /// Publishes a group. Its objects can be read from the moment of the answer on; the answer is [`Error::DiskFull`]
    /// if there is no space for them. The padding of the blocks at the ends of objects is also written.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a name is not free, or an object is not within its buffer.
    pub fn publish(&self, request: PublishRequest) -> Result<()> {
        let PublishRequest { group, objects, tag, priority } = request;
        for object in &objects {
            let fits = object.start.is_multiple_of(IoBuffer::ALIGNMENT)
                && object.start as u64 <= object.buffer.len() as u64
                && object.bytes <= (object.buffer.len() - object.start) as u64;
            if !fits {
                let (name, bytes, start, room) = (&object.name, object.bytes, object.start, object.buffer.len());
                return Err(Error::InvalidArgument(format!(
                    "object '{name}' of {bytes} bytes from byte {start} does not fit a buffer of {room} bytes"
                )));
            }
        }
        let entry =
            |object: &NewObject| ObjectEntry { name: object.name.clone(), offset: 0, bytes: object.bytes, checksum: 0 };
        let header = GroupHeader::new(self.identity, group, objects.iter().map(entry).collect());
        self.service.submit(priority, |catalog| {
            catalog.begin_publishing(header.group.clone(), &header.entries)?;
            Ok(Request { tag, work: StorageWork::Publish { header, objects } })
        })
    }

    /// Deletes a group, damaged or not: its file, its objects and their names. Reads of it that have no answer yet may
    /// fail.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no such group.
    pub fn delete(&self, request: DeleteRequest) -> Result<()> {
        let DeleteRequest { group, tag } = request;
        self.service.submit(Priority::InOrder, |catalog| {
            catalog.begin_deleting(&group)?;
            Ok(Request { tag, work: StorageWork::Delete(group) })
        })
    }

    /// The options in effect for the directory.
    pub fn report(&self) -> &StorageReport {
        &self.report
    }

    /// The transfers since the directory was opened.
    pub fn statistics(&self) -> StorageStatistics {
        self.service.statistics()
    }

    /// The age of the oldest active request: the disk has not answered for that time.
    pub fn oldest_request(&self) -> Option<Duration> {
        self.service.oldest()
    }

    /// Measures the disk with a file of about `bytes` bytes (a few tens of MB), which is removed. It uses
    /// [`DiskRates::MEMORY_BYTES`] of memory, and waits for the end; other active requests make the disk slower.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`], [`Error::OutOfMemory`].
    pub fn measure_rates(&self, bytes: u64) -> Result<DiskRates> {
        rates::measure(self.service.transfer(), bytes)
    }
}
