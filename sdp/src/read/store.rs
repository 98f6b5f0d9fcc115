//! Where the files of a program lie: a directory, or an archive of one.
//!
//! Independent of: what the files hold.

use super::archive::Archive;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};

/// Files by their names.
pub enum Store {
    /// Files of a directory.
    Folder(PathBuf),
    /// Members of an archive.
    Archive(Archive),
}

impl Store {
    /// Opens the directory or archive at `path`.
    ///
    /// # Errors
    /// The errors of [`Archive::open`].
    pub fn open(path: &Path) -> Result<Store> {
        if path.is_dir() { Ok(Store::Folder(path.to_path_buf())) } else { Ok(Store::Archive(Archive::open(path)?)) }
    }

    /// The name of a file in messages.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Store::Folder(folder) => folder.join(name),
            Store::Archive(archive) => archive.path().join(name),
        }
    }

    /// Whether there is a file of this name.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Store::Folder(folder) => folder.join(name).exists(),
            Store::Archive(archive) => archive.has(name),
        }
    }

    /// The result of `take` for the file of this name, of which an archive may hold at most `most_bytes`.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] where the archive holds no such file, or a larger one; the errors of `take`.
    pub fn with<T>(&self, name: &str, most_bytes: u64, take: impl FnOnce(&mut dyn Read) -> Result<T>) -> Result<T> {
        match self {
            Store::Archive(archive) => archive.with(name, most_bytes, take),
            Store::Folder(folder) => {
                let path = folder.join(name);
                let file = File::open(&path).map_err(|source| Error::Io { path, action: "open", source })?;
                take(&mut BufReader::new(file))
            }
        }
    }
}
