//! Files as they are read: their bytes, a checksum of all of them, and the room for their numbers.

use super::room::Room;
use std::path::Path;
use sunzi::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

/// The refusal of a file.
pub fn refused(path: &Path, message: impl Into<String>) -> Error {
    Error::Format { path: path.to_path_buf(), message: message.into() }
}

/// Reads files, and keeps a checksum of their bytes and lengths, and the room for their numbers.
pub struct Files {
    digest: Xxh3,
    /// The memory that their numbers may take.
    pub room: Room,
}

impl Files {
    /// No file yet.
    pub fn new() -> Files {
        Files { digest: Xxh3::new(), room: Room::new(0) }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a path that is not a file.
    pub fn read(&mut self, path: &Path) -> Result<Vec<u8>> {
        let failed = |source| Error::Io { path: path.to_path_buf(), action: "read", source };
        // Something other than a file may have no end.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(refused(path, "it is not a regular file"));
        }
        let bytes = std::fs::read(path).map_err(failed)?;
        self.room.grow(bytes.len() as u64);
        self.digest.update(&(bytes.len() as u64).to_le_bytes());
        self.digest.update(&bytes);
        Ok(bytes)
    }

    /// The checksum of all that was read, as 32 hexadecimal digits.
    pub fn digest(&self) -> String {
        format!("{:032x}", self.digest.digest128())
    }
}
