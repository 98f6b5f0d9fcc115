//! Carrying out one request, on an I/O thread: reads with their checksums, publications, deletions.
//!
//! Independent of: queues, threads, which objects are known.

use super::catalog::ObjectExtent;
use super::folder::{Access, File, Folder, ReadPiece, WritePiece};
use super::format::{GroupHeader, padded_bytes};
use super::name::{GroupName, ObjectName};
use super::open::{group_file, not_written, refused, temporary_group_file};
use super::request::{Caching, Durability, NewObject};
use crate::error::{Error, Result};
use crate::store::IoBuffer;
use std::io;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Where transfers go, and how.
pub struct Transfer {
    pub folder: Arc<dyn Folder>,
    pub caching: Caching,
    pub durability: Durability,
}

/// An object of a run.
struct ObjectPiece {
    name: ObjectName,
    bytes: usize,
    checksum: u64,
}

/// Neighbouring objects in a file, which one call reads.
pub struct ObjectRun {
    group: GroupName,
    offset: u64,
    bytes: usize,
    pieces: Vec<ObjectPiece>,
}

/// Joins objects that are neighbours.
pub fn runs(objects: Vec<(ObjectName, ObjectExtent)>) -> Vec<ObjectRun> {
    let mut runs: Vec<ObjectRun> = Vec::new();
    for (name, place) in objects {
        let padded = padded_bytes(place.bytes) as usize;
        let piece = ObjectPiece { name, bytes: place.bytes as usize, checksum: place.checksum };
        match runs.last_mut() {
            Some(run) if run.group == place.group && run.offset + run.bytes as u64 == place.offset => {
                run.bytes += padded;
                run.pieces.push(piece);
            }
            _ => runs.push(ObjectRun { group: place.group, offset: place.offset, bytes: padded, pieces: vec![piece] }),
        }
    }
    runs
}

impl ObjectRun {
    /// Bytes with their padding.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Checks that `bytes` are the whole run, as it was written.
    fn check(&self, folder: &dyn Folder, bytes: &[u8]) -> Result<()> {
        let path = || folder.path_of(&group_file(&self.group));
        let mut start = 0;
        for piece in &self.pieces {
            let end = start + piece.bytes;
            let Some(found) = bytes.get(start..end) else {
                let missing_bytes = (end - bytes.len()) as u64;
                return Err(Error::Truncated { path: path(), object: piece.name.to_string(), missing_bytes });
            };
            let (expected, found) = (piece.checksum, xxh3_64(found));
            if expected != found {
                return Err(Error::Damaged { path: path(), object: piece.name.to_string(), expected, found });
            }
            start += padded_bytes(piece.bytes as u64) as usize;
        }
        Ok(())
    }
}

impl Transfer {
    fn access(&self) -> Access {
        if self.caching == Caching::Direct { Access::Direct } else { Access::Cached }
    }

    /// Makes the list of names survive a power cut, where it has to.
    fn sync_folder(&self) -> io::Result<()> {
        match self.durability {
            Durability::PowerCut => self.folder.sync(),
            Durability::Scratch => Ok(()),
        }
    }

    /// Lets the system drop these bytes of a file from its cache, where that is requested.
    fn drop_behind(&self, file: &dyn File, offset: u64, bytes: u64) {
        if self.caching == Caching::DropBehind {
            file.drop_cached(offset, bytes);
        }
    }

    /// Reads objects into a buffer with room for all, and checks them; returns the bytes read.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Damaged`], [`Error::Truncated`].
    pub fn read(&self, runs: &[ObjectRun], buffer: &mut [u8]) -> Result<u64> {
        let (folder, mut rest, mut total) = (&*self.folder, buffer, 0);
        for runs in runs.chunk_by(|one, next| one.group == next.group) {
            let name = group_file(&runs[0].group);
            let file = folder.open(&name, self.access()).map_err(refused(folder, &name, "open"))?;
            let mut pieces = Vec::with_capacity(runs.len());
            for run in runs {
                let (bytes, later) = rest.split_at_mut(run.bytes);
                pieces.push(ReadPiece { bytes, offset: run.offset, found: 0 });
                rest = later;
            }
            file.read_pieces(&mut pieces).map_err(refused(folder, &name, "read"))?;
            for (run, piece) in runs.iter().zip(pieces) {
                self.drop_behind(&*file, run.offset, run.bytes as u64);
                run.check(folder, &piece.bytes[..piece.found])?;
                total += piece.found as u64;
            }
        }
        Ok(total)
    }

    /// Writes a group such that it is there as a whole from the moment of its last step on, and after a power cut where
    /// the directory is durable; returns its header with all checksums.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`], [`Error::OutOfMemory`]. No file of the group is left then.
    pub fn publish(&self, mut header: GroupHeader, objects: &[NewObject]) -> Result<GroupHeader> {
        for (entry, object) in header.entries.iter_mut().zip(objects) {
            let bytes = &object.buffer.as_bytes()[object.start..];
            entry.checksum = xxh3_64(&bytes[..object.bytes as usize]);
        }
        let mut block = IoBuffer::new(header.bytes() as usize)?;
        header.encode(block.as_bytes_mut());
        let (folder, temporary, name) = (&*self.folder, temporary_group_file(&header.group), group_file(&header.group));
        let steps = || {
            self.write(&temporary, &header, &block, objects)?;
            folder.rename(&temporary, &name)
        };
        steps().map_err(|source| {
            let _ = folder.remove(&temporary);
            not_written(folder, &name, header.file_bytes())(source)
        })?;
        // Until its name is durable the group may be lost, which is as if it had not been written.
        self.sync_folder().map_err(|source| {
            let _ = folder.remove(&name);
            refused(folder, &name, "sync its folder")(source)
        })?;
        Ok(header)
    }

    /// Writes a file, and syncs it where it has to survive a power cut.
    fn write(&self, name: &str, header: &GroupHeader, block: &IoBuffer, objects: &[NewObject]) -> io::Result<()> {
        // No other process writes here: an existing file of that name is one that could not be removed.
        let file = match self.folder.create(name, self.access()) {
            Err(refused) if refused.kind() == io::ErrorKind::AlreadyExists => {
                self.folder.remove(name)?;
                self.folder.create(name, self.access())
            }
            answer => answer,
        }?;
        // A full disk is reported before anything is written.
        file.allocate(header.file_bytes())?;
        let mut pieces = vec![WritePiece { bytes: block.as_bytes(), offset: 0 }];
        pieces.extend(header.entries.iter().zip(objects).map(|(entry, object)| {
            let bytes = &object.buffer.as_bytes()[object.start..];
            WritePiece { bytes: &bytes[..padded_bytes(object.bytes) as usize], offset: entry.offset }
        }));
        file.write_pieces(&pieces)?;
        if self.durability == Durability::PowerCut {
            file.sync()?;
        }
        self.drop_behind(&*file, 0, header.file_bytes());
        Ok(())
    }

    /// Removes a group. If the directory is durable, the group stays removed after a power failure.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn delete(&self, group: &GroupName) -> Result<()> {
        let (folder, name) = (&*self.folder, group_file(group));
        folder.remove(&name).map_err(refused(folder, &name, "remove"))?;
        self.sync_folder().map_err(refused(folder, &name, "sync its folder"))
    }
}
