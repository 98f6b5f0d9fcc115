//! Where the blocks of a program lie: a directory, or a zip archive of one.
//!
//! The crate `zip` finds and inflates members. Members that it would accept but that are unsafe are refused here: names
//! that lead outside, two members of one name, members that share bytes, links, and members that are much larger than
//! the archive.
//! Independent of: what the files hold, the solver's reader.

use super::files::{Files, refused};
use super::limits::{FREE_INFLATED, INFLATED_PER_BYTE};
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use sunzi::Result;
use zip::ZipArchive;

/// The file that every program has.
const ROOT: &str = "control.json";

/// The files of a program by their names.
pub enum Container {
    Folder(PathBuf),
    Archive(ProofArchive),
}

/// An archive in memory.
pub struct ProofArchive {
    path: PathBuf,
    members: HashMap<String, usize>,
    reader: ZipArchive<Cursor<Vec<u8>>>,
    /// Bytes that members may still have.
    left: u64,
}

/// Whether bytes are those of an archive.
pub fn is_archive(first: &[u8]) -> bool {
    first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06")
}

impl Container {
    /// The name of a file in messages.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Container::Folder(folder) => folder.join(name),
            Container::Archive(archive) => archive.path.join(name),
        }
    }

    /// Whether there is a file of this name.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Container::Folder(folder) => folder.join(name).exists(),
            Container::Archive(archive) => archive.members.contains_key(name),
        }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// The errors of [`Files::read`]; refusals of the module.
    pub fn read(&mut self, name: &str, files: &mut Files) -> Result<Vec<u8>> {
        match self {
            Container::Folder(folder) => files.read(&folder.join(name)),
            Container::Archive(archive) => {
                archive.read(name).map_err(|message| refused(&archive.path.join(name), message))
            }
        }
    }
}

impl ProofArchive {
    /// The archive with these bytes, which lie at `path`.
    ///
    /// # Errors
    /// [`sunzi::Error::Format`].
    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<ProofArchive> {
        let left = FREE_INFLATED + INFLATED_PER_BYTE * bytes.len() as u64;
        let failed = |message: String| refused(path, message);
        let mut reader = ZipArchive::new(Cursor::new(bytes)).map_err(|error| failed(error.to_string()))?;
        let is_doubled = reader.has_duplicate_names()
            || reader.has_overlapping_entries().map_err(|error| failed(error.to_string()))?;
        if is_doubled {
            return Err(failed("two members have the same name, or overlap".into()));
        }
        reader.validate_header_consistency().map_err(|error| failed(error.to_string()))?;
        let mut names = Vec::with_capacity(reader.len());
        for name in reader.file_names() {
            names.push(name.map_err(|error| failed(error.to_string()))?.into_owned());
        }
        let is_outside = |part: &str| matches!(part, ".." | ".");
        if let Some(name) = names
            .iter()
            .find(|name| name.starts_with('/') || name.contains(['\\', '\0', ':']) || name.split('/').any(is_outside))
        {
            return Err(failed(format!("the name '{}' leads outside of the archive", name.escape_default())));
        }
        let folders = names.iter().filter_map(|name| name.strip_suffix(ROOT));
        let mut folders = folders.filter(|folder| folder.is_empty() || folder.ends_with('/'));
        let (Some(folder), None) = (folders.next(), folders.next()) else {
            return Err(failed(format!("there is no {ROOT} in the archive, or more than one")));
        };
        let own = names.iter().enumerate().filter_map(|(at, name)| Some((name.strip_prefix(folder)?.to_string(), at)));
        Ok(ProofArchive { path: path.to_path_buf(), members: own.collect(), reader, left })
    }

    fn read(&mut self, name: &str) -> std::result::Result<Vec<u8>, String> {
        let &at = self.members.get(name).ok_or("there is no such member in the archive")?;
        let member = self.reader.by_index(at).map_err(|error| error.to_string())?;
        if !member.is_file() {
            return Err("the member is a folder or a link".into());
        }
        let mut bytes = Vec::new();
        let read = member.take(self.left + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("the archive is damaged: {error}"))?;
        let left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            format!(
                "the members have more than {FREE_INFLATED} bytes plus {INFLATED_PER_BYTE} for each byte of the archive"
            )
        })?;
        self.left = left;
        Ok(bytes)
    }
}
