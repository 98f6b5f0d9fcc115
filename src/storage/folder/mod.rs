//! The calls that storage makes of a file system, as traits: the system's own below them, or a simulated one.
//!
//! Promise: no code above these traits accesses a file in another way. Independent of: groups, objects, threads.

mod ring;
mod simulated;
mod system;
mod whole;

pub use simulated::{SimulatedFaults, SimulatedFolder};
pub use system::SystemFolder;
pub use whole::{read_whole, write_whole};

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

/// Whether the system caches the bytes read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It does.
    Cached,
    /// It does not; memory, offsets and lengths must be multiples of the alignment.
    Direct,
}

/// The support of a folder's file system for direct I/O.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DirectIo {
    /// Supported for memory, offsets and lengths that are multiples of this number of bytes.
    Aligned(u32),
    /// It is not available; the text is the reason.
    Absent(String),
}

/// The answer to a request for the lock of a folder.
pub enum Lock {
    /// The lock is held until this value is dropped.
    Taken(Box<dyn Any + Send + Sync>),
    /// Another process holds it; its number if it is known.
    Held(Option<u32>),
}

/// A folder of files without folders inside. Names are names of its entries.
pub trait Folder: Send + Sync {
    /// Its path, for messages.
    fn path(&self) -> &Path;

    /// Its entries, in no order.
    ///
    /// # Errors
    /// The system's refusal, as for every other call here.
    fn names(&self) -> io::Result<Vec<String>>;

    /// An existing file, to read.
    ///
    /// # Errors
    /// The system's refusal.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>>;

    /// A new file, to write and read; there must be none of that name.
    ///
    /// # Errors
    /// The system's refusal.
    fn create(&self, name: &str, access: Access) -> io::Result<Box<dyn File>>;

    /// Gives a file another name, in one step. A file of that name is replaced.
    ///
    /// # Errors
    /// The system's refusal.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's refusal.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when names as they are now, new, changed and removed, outlast a power cut.
    ///
    /// # Errors
    /// The system's refusal.
    fn sync(&self) -> io::Result<()>;

    /// Asks for a lock that is tied to a file, which is made where there is none, and never waits for it.
    ///
    /// # Errors
    /// The system's refusal, other than that the lock is held.
    fn lock(&self, name: &str) -> io::Result<Lock>;

    /// Bytes that this user may still write.
    ///
    /// # Errors
    /// The system's refusal.
    fn free_bytes(&self) -> io::Result<u64>;

    /// The support for direct I/O of a file of that name, which must exist.
    ///
    /// # Errors
    /// The system's refusal of the query; a lack of direct I/O is no error.
    fn direct_io(&self, name: &str) -> io::Result<DirectIo>;

    /// The path of an entry, for messages.
    fn path_of(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// Bytes of a file to be read.
pub struct ReadPiece<'a> {
    /// The buffer that receives them.
    pub bytes: &'a mut [u8],
    /// Position in the file.
    pub offset: u64,
    /// Number of bytes that the file has.
    pub found: usize,
}

/// Bytes of a file to be written.
pub struct WritePiece<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Position in the file.
    pub offset: u64,
}

/// An open file. Several threads may use it.
pub trait File: Send + Sync {
    /// The way in which it was opened.
    fn access(&self) -> Access;

    /// Reads several pieces, all of each that the file has, in any order.
    ///
    /// # Errors
    /// The system's refusal, other than an interruption.
    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        for piece in pieces {
            piece.found = read_whole(self, piece.bytes, piece.offset)?;
        }
        Ok(())
    }

    /// Writes all of several pieces, in any order.
    ///
    /// # Errors
    /// The system's refusal, other than an interruption.
    fn write_pieces(&self, pieces: &[WritePiece<'_>]) -> io::Result<()> {
        pieces.iter().try_for_each(|piece| write_whole(self, piece.bytes, piece.offset))
    }

    /// Reads from `offset` on, as many bytes as the system gives at once; 0 at the end of the file.
    ///
    /// # Errors
    /// The system's refusal, as for every other call here.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes from `offset` on, as many bytes as the system takes at once.
    ///
    /// # Errors
    /// The system's refusal.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes the file `bytes` long, and reserves space for it on the disk where the file system can.
    ///
    /// # Errors
    /// The system's refusal: the disk may be full.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Returns when all that was written outlasts a power cut.
    ///
    /// # Errors
    /// The system's refusal; written data may be lost then.
    fn sync(&self) -> io::Result<()>;

    /// Length of the file.
    ///
    /// # Errors
    /// The system's refusal.
    fn bytes(&self) -> io::Result<u64>;

    /// Asks the system to drop these bytes from its cache. A hint.
    fn drop_cached(&self, offset: u64, bytes: u64);
}
