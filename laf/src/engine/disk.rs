//! The directory of one node: objects by their ids, in versions.

use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;
use sunzi::Result;
use sunzi::advanced::runtime::graph::ObjectId;
use sunzi::advanced::storage::{
    Completion, DeleteRequest, Durability, GroupName, Identity, NewObject, ObjectName, Priority, PublishRequest,
    ReadRequest, Storage, StorageOptions, StorageStatistics,
};
use sunzi::advanced::store::IoBuffer;

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A read of an object to the memory of a node.
    Read { to: usize, object: ObjectId },
    /// A write of an object.
    Write { object: ObjectId, version: u64 },
    /// Removal of an old version.
    Delete,
}

/// An open directory.
pub(super) struct Disk {
    storage: Storage,
    /// The version of each object that can be read.
    versions: FxHashMap<ObjectId, u64>,
    purposes: FxHashMap<u64, Purpose>,
    next: u64,
}

impl Disk {
    /// # Errors
    /// The errors of [`Storage::open`].
    pub fn open(path: &Path, deliver: impl Fn(Completion) + Send + Sync + 'static) -> Result<Disk> {
        let identity = Identity::new("objects of a linear-algebra front end");
        let storage = Storage::open(path, &identity, options(), Box::new(deliver))?;
        Ok(Disk { storage, versions: FxHashMap::default(), purposes: FxHashMap::default(), next: 0 })
    }

    fn tag(&mut self, purpose: Purpose) -> u64 {
        self.next += 1;
        self.purposes.insert(self.next, purpose);
        self.next
    }

    /// The purpose of the request that an answer belongs to.
    pub fn purpose(&mut self, tag: u64) -> Option<Purpose> {
        self.purposes.remove(&tag)
    }

    /// Requests that are not answered.
    pub fn requests(&self) -> usize {
        self.purposes.len()
    }

    /// Reads an object into a buffer.
    pub fn read(&mut self, object: ObjectId, to: usize, buffer: IoBuffer) -> Result<()> {
        let name = object_name(object, self.versions.get(&object).copied().unwrap_or(0))?;
        let tag = self.tag(Purpose::Read { to, object });
        self.storage.read(ReadRequest { objects: vec![name], buffer, tag, priority: Priority::Urgent })
    }

    /// Writes an object under a new version.
    pub fn write(&mut self, object: ObjectId, buffer: Arc<IoBuffer>, bytes: u64) -> Result<()> {
        let version = self.next + 1;
        let tag = self.tag(Purpose::Write { object, version });
        let objects = vec![NewObject { name: object_name(object, version)?, buffer, start: 0, bytes }];
        let group = group_name(object, version)?;
        self.storage.publish(PublishRequest { group, objects, tag, priority: Priority::default() })
    }

    /// Records that a version was written: an older one goes.
    pub fn written(&mut self, object: ObjectId, version: u64) -> Result<()> {
        match self.versions.insert(object, version) {
            Some(old) => self.delete_version(object, old),
            None => Ok(()),
        }
    }

    /// Removes an object, where it is here.
    pub fn delete(&mut self, object: ObjectId) -> Result<()> {
        match self.versions.remove(&object) {
            Some(version) => self.delete_version(object, version),
            None => Ok(()),
        }
    }

    fn delete_version(&mut self, object: ObjectId, version: u64) -> Result<()> {
        let tag = self.tag(Purpose::Delete);
        self.storage.delete(DeleteRequest { group: group_name(object, version)?, tag })
    }

    /// The statistics of the moves.
    pub fn statistics(&self) -> StorageStatistics {
        self.storage.statistics()
    }
}

/// The objects are not read once the engine is gone: they need not survive a power cut.
fn options() -> StorageOptions {
    StorageOptions { durability: Durability::Scratch, ..StorageOptions::default() }
}

fn object_name(object: ObjectId, version: u64) -> Result<ObjectName> {
    ObjectName::new(&format!("object-{}-{version}", object.0))
}

fn group_name(object: ObjectId, version: u64) -> Result<GroupName> {
    GroupName::new(&format!("group-{}-{version}", object.0))
}
