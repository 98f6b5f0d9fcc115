//! A zip archive of a directory of blocks, as pmp2sdp `--zip` writes it.
//!
//! Nothing is unpacked onto a disk: members are read where they lie, one at a time, each with a limit to its size that
//! follows from the numbers it should hold. Refused are names that lead outside, two members of one name, members that
//! share bytes or differ from the archive's list, links, and encrypted members. All checksums are checked. The files
//! may lie in one folder of the archive.
//! Source of the refusals: David Fifield, A better zip bomb (2019). Independent of: what the files hold.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};
use zip::ZipArchive;
use zip::result::ZipError;

/// The file that shows in which folder of an archive the program lies.
const ROOT: &str = "control.json";

/// The first bytes of an archive, and of an empty one.
const MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// An open archive.
pub struct Archive {
    path: PathBuf,
    members: HashMap<String, usize>,
    reader: RefCell<ZipArchive<BufReader<File>>>,
}

/// Whether the file at `path` begins as an archive does.
pub fn is_archive(path: &Path) -> bool {
    let mut first = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && MAGIC.contains(&&first[..])
}

fn failed(path: PathBuf, error: ZipError) -> Error {
    match error {
        ZipError::Io(source) => unreadable(path, source),
        other => Error::Format { path, message: other.to_string() },
    }
}

/// An error while reading; one that reports wrong bytes becomes an error of the format.
fn unreadable(path: PathBuf, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::Format { path, message: format!("the archive is damaged: {source}") }
        }
        _ => Error::Io { path, action: "read", source },
    }
}

impl Archive {
    /// Opens the archive at `path` and checks its list of members.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a file that is not an archive, or is refused: see the module.
    pub fn open(path: &Path) -> Result<Archive> {
        let file = File::open(path);
        let file = file.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
        let failed = |error| failed(path.to_path_buf(), error);
        let refused = |message: String| Error::Format { path: path.to_path_buf(), message };
        let mut reader = ZipArchive::new(BufReader::new(file)).map_err(failed)?;
        if reader.has_duplicate_names() {
            return Err(refused("two members of the archive have the same name".into()));
        }
        if reader.has_overlapping_entries().map_err(failed)? {
            return Err(refused("members of the archive overlap".into()));
        }
        reader.validate_header_consistency().map_err(failed)?;
        let mut names = Vec::with_capacity(reader.len());
        for (at, name) in reader.file_names().enumerate() {
            let name = name.map_err(failed)?.into_owned();
            let leads_outside = name.starts_with('/')
                || name.contains(['\\', '\0', ':'])
                || name.split('/').any(|part| part == ".." || part == ".");
            if leads_outside {
                let shown = name.escape_default();
                return Err(refused(format!("the member '{shown}' has a name that leads outside of the archive")));
            }
            names.push((name, at));
        }
        let roots = names.iter().filter_map(|(name, _)| name.strip_suffix(ROOT));
        let roots = roots.filter(|folder| folder.is_empty() || folder.ends_with('/')).collect::<Vec<_>>();
        let folder = match roots[..] {
            [folder] => folder.to_string(),
            [] => return Err(refused(format!("there is no {ROOT} in the archive"))),
            [first, second, ..] => {
                return Err(refused(format!("there are a {first}{ROOT} and a {second}{ROOT} in the archive")));
            }
        };
        let inside = |(name, at): (String, usize)| name.strip_prefix(&folder).map(|name| (name.to_string(), at));
        let members = names.into_iter().filter_map(inside).collect();
        Ok(Archive { path: path.to_path_buf(), members, reader: RefCell::new(reader) })
    }

    /// The path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// See [`super::store::Store::with`].
    ///
    /// # Errors
    /// [`Error::Format`], [`Error::Io`], those of `take`.
    pub fn with<T>(&self, name: &str, most_bytes: u64, take: impl FnOnce(&mut dyn Read) -> Result<T>) -> Result<T> {
        let path = self.path.join(name);
        let refused = |message: String| Error::Format { path: path.clone(), message };
        let Some(&at) = self.members.get(name) else {
            return Err(refused("there is no such member in the archive".into()));
        };
        let mut reader = self.reader.borrow_mut();
        let member = reader.by_index(at).map_err(|error| failed(path.clone(), error))?;
        if !member.is_file() {
            return Err(refused("the member is a folder or a link".into()));
        }
        let too_large =
            |bytes: u64| format!("the member has {bytes} bytes or more, but its numbers take at most {most_bytes}");
        if member.size() > most_bytes {
            return Err(refused(too_large(member.size())));
        }
        let mut limited = Limited { inner: member, left: most_bytes, exceeded: false, failed: None };
        let taken = take(&mut limited);
        let Limited { exceeded, failed, .. } = limited;
        match failed {
            _ if exceeded => Err(refused(too_large(most_bytes + 1))),
            Some(source) => Err(unreadable(path.clone(), source)),
            None => taken,
        }
    }
}

/// A reader that ends with an error after a limit of bytes, and keeps the error of the reader below.
struct Limited<R> {
    inner: R,
    left: u64,
    exceeded: bool,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) if count as u64 > self.left => {
                self.exceeded = true;
                Err(io::Error::other("the member is too large"))
            }
            Ok(count) => {
                self.left -= count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let copy = io::Error::new(error.kind(), error.to_string());
                self.failed = Some(error);
                Err(copy)
            }
        }
    }
}
