//! Opening a directory: its lock, its identity, files of killed runs, published groups.
//!
//! Independent of: threads, requests.

use super::catalog::Catalog;
use super::folder::{Access, DirectIo, Folder, Lock, read_whole, write_whole};
use super::format::{GroupHeader, padded_bytes};
use super::identity::Identity;
use super::name::GroupName;
use super::request::{Caching, Calls, StorageOptions, StorageReport};
use crate::error::{Error, Result, is_full_disk};
use crate::store::IoBuffer;
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// The file that the lock is tied to; it holds the number of the process.
const LOCK: &str = "lock";

/// The file with the identity of the directory.
const IDENTITY: &str = "identity.json";

/// The largest number of bytes of it that are read.
const IDENTITY_BYTES: u64 = 1 << 20;

/// The ending of the names of groups' files.
const GROUP: &str = ".group";

/// The ending of the names of incomplete files.
const TEMPORARY: &str = ".tmp";

/// Headers that a thread of its own is worth.
const LEAST_SHARE: usize = 64;

/// The temporary file that rates are measured with.
pub const RATES_FILE: &str = "rates.tmp";

/// The file of a group.
pub fn group_file(group: &GroupName) -> String {
    format!("{group}{GROUP}")
}

/// The file of a group while it is written.
pub fn temporary_group_file(group: &GroupName) -> String {
    format!("{group}{GROUP}{TEMPORARY}")
}

/// Whether a file is removed when a directory is opened.
fn is_temporary(name: &str) -> bool {
    let complete = name.strip_suffix(TEMPORARY);
    complete.is_some_and(|name| [IDENTITY, "rates"].contains(&name) || name.ends_with(GROUP))
}

/// The error for a call that was refused on a file or folder.
pub fn refused(folder: &dyn Folder, name: &str, action: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = if name.is_empty() { folder.path().to_path_buf() } else { folder.path_of(name) };
    move |source| Error::Io { path, action, source }
}

/// The error for a file of `bytes` bytes that could not be written: for a full disk with the bytes free on it.
pub fn not_written(folder: &dyn Folder, name: &str, bytes: u64) -> impl FnOnce(io::Error) -> Error {
    let path = folder.path_of(name);
    move |source| match is_full_disk(&source) {
        true => Error::DiskFull { path, bytes, free_bytes: folder.free_bytes().unwrap_or(0) },
        false => Error::Io { path, action: "write", source },
    }
}

/// A directory that is this process's own.
pub struct Directory {
    pub folder: Arc<dyn Folder>,
    pub identity: u64,
    pub catalog: Catalog,
    pub report: StorageReport,
    /// Held until the directory is closed.
    pub lock: Box<dyn Any + Send + Sync>,
}

/// Opens a directory, a new one or one of the same identity.
///
/// # Errors
/// [`Error::StorageInUse`], [`Error::StorageMismatch`], [`Error::Format`] for a directory of something else,
/// [`Error::Io`], [`Error::DiskFull`], [`Error::OutOfMemory`].
pub fn open(folder: Arc<dyn Folder>, identity: &Identity, options: &StorageOptions) -> Result<Directory> {
    let files: &dyn Folder = &*folder;
    // Before anything is written there.
    refuse_foreign(files, &names(files)?)?;
    let lock = match files.lock(LOCK).map_err(refused(files, "", "write in this directory"))? {
        Lock::Taken(lock) => lock,
        Lock::Held(process) => return Err(Error::StorageInUse { path: files.path().to_path_buf(), process }),
    };
    let found = names(files)?;
    refuse_foreign(files, &found)?;
    if found.iter().any(|name| name == IDENTITY) {
        let file = files.open(IDENTITY, Access::Cached).map_err(refused(files, IDENTITY, "open"))?;
        let bytes = file.bytes().map_err(refused(files, IDENTITY, "read"))?.min(IDENTITY_BYTES);
        let mut text = vec![0; bytes as usize];
        let bytes = read_whole(&*file, &mut text, 0).map_err(refused(files, IDENTITY, "read"))?;
        identity.compare(&text[..bytes], &files.path_of(IDENTITY))?;
    }
    for name in found.iter().filter(|name| is_temporary(name)) {
        files.remove(name).map_err(refused(files, name, "remove"))?;
    }
    if !found.iter().any(|name| name == IDENTITY) {
        write_identity(files, identity)?;
    }
    let report = resolve_caching(files, options.caching)?;
    let identity = identity.checksum();
    let catalog = read_headers(files, identity, &found, options.threads)?;
    Ok(Directory { folder, identity, catalog, report, lock })
}

/// Whether a directory is one of objects.
pub fn is_storage(path: &Path) -> bool {
    path.join(IDENTITY).exists()
}

fn names(folder: &dyn Folder) -> Result<Vec<String>> {
    let mut names = folder.names().map_err(refused(folder, "", "list"))?;
    names.sort_unstable();
    Ok(names)
}

/// A directory without an identity holds at most the files that a killed run leaves before it has one.
fn refuse_foreign(folder: &dyn Folder, names: &[String]) -> Result<()> {
    let is_known =
        |name: &String| name == LOCK || is_temporary(name) && !name.ends_with(&format!("{GROUP}{TEMPORARY}"));
    match names.iter().find(|name| !is_known(name)) {
        Some(foreign) if !names.iter().any(|name| name == IDENTITY) => Err(Error::Format {
            path: folder.path().to_path_buf(),
            message: format!(
                "this is not a storage directory: it contains '{foreign}' and no '{IDENTITY}'; choose a new or empty \
                 one"
            ),
        }),
        _ => Ok(()),
    }
}

fn write_identity(folder: &dyn Folder, identity: &Identity) -> Result<()> {
    let (mut text, temporary) = (identity.to_text(), format!("{IDENTITY}{TEMPORARY}"));
    // A whole block: some file systems keep less where direct I/O does not reach it.
    text.extend(std::iter::repeat_n('\n', (padded_bytes(text.len() as u64) - text.len() as u64) as usize));
    let write = || {
        let file = folder.create(&temporary, Access::Cached)?;
        write_whole(&*file, text.as_bytes(), 0)?;
        file.sync()?;
        folder.rename(&temporary, IDENTITY)?;
        folder.sync()
    };
    write().map_err(|source| {
        let _ = folder.remove(&temporary);
        not_written(folder, IDENTITY, text.len() as u64)(source)
    })
}

/// The caching that the directory's file system supports for the requested one.
fn resolve_caching(folder: &dyn Folder, caching: Caching) -> Result<StorageReport> {
    let mut report = StorageReport { caching, alignment: None, calls: Calls::Ordinary, remarks: Vec::new() };
    if caching != Caching::Direct {
        return Ok(report);
    }
    match probe(folder)? {
        DirectIo::Aligned(alignment) => report.alignment = Some(alignment),
        DirectIo::Absent(reason) => {
            report.caching = Caching::DropBehind;
            let (path, instead) = (folder.path().display(), "pages are dropped from the cache after reads and writes");
            report.remarks.push(format!("{path}: direct I/O is not available ({reason}): {instead}"));
        }
    }
    Ok(report)
}

/// Reads the identity past the cache, which needs no space on a disk that may be full.
fn probe(folder: &dyn Folder) -> Result<DirectIo> {
    let mut buffer = IoBuffer::new(IoBuffer::ALIGNMENT)?;
    let answer = folder.direct_io(IDENTITY).map_err(refused(folder, IDENTITY, "query its direct I/O"))?;
    let DirectIo::Aligned(_) = answer else { return Ok(answer) };
    let file = folder.open(IDENTITY, Access::Direct);
    let tried = file.and_then(|file| read_whole(&*file, buffer.as_bytes_mut(), 0));
    Ok(tried.map_or_else(|source| DirectIo::Absent(format!("a direct read failed: {source}")), |_| answer))
}

/// A group's header, or the defect of its file.
struct FoundGroup {
    group: GroupName,
    header: std::result::Result<GroupHeader, String>,
}

/// Reads the headers of all groups, on some threads where there are many.
fn read_headers(folder: &dyn Folder, identity: u64, names: &[String], threads: usize) -> Result<Catalog> {
    let share = names.len().div_ceil(threads.max(1)).max(LEAST_SHARE);
    let (first, others) = names.split_at(share.min(names.len()));
    let found = thread::scope(|scope| {
        let mut started = Vec::new();
        for names in others.chunks(share) {
            let work = move || read_share(folder, identity, names);
            let refused = |refused: io::Error| Error::Threads { threads, reason: refused.to_string() };
            started.push(thread::Builder::new().spawn_scoped(scope, work).map_err(refused)?);
        }
        let mut found = read_share(folder, identity, first)?;
        for thread in started {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            found.extend(ended?);
        }
        Ok(found)
    })?;
    let mut catalog = Catalog::default();
    for FoundGroup { group, header } in found {
        match header {
            Ok(header) => catalog.add_found(header),
            Err(reason) => catalog.add_damaged(group, reason),
        }
    }
    Ok(catalog)
}

fn read_share(folder: &dyn Folder, identity: u64, names: &[String]) -> Result<Vec<FoundGroup>> {
    let (mut block, mut found) = (vec![0; IoBuffer::ALIGNMENT], Vec::new());
    for name in names {
        let group = name.strip_suffix(GROUP).and_then(|group| GroupName::new(group).ok());
        let Some(group) = group else { continue };
        let header = read_header(folder, name, &mut block).map_err(refused(folder, name, "read"))?;
        let header = header.and_then(|header| match () {
            () if header.group != group => Err(format!("it is the file of group '{}'", header.group)),
            () if header.identity != identity => Err("it belongs to another directory".to_string()),
            () => Ok(header),
        });
        found.push(FoundGroup { group, header });
    }
    Ok(found)
}

/// The header of a file, or its damage. The system's refusal is an error of the outer kind.
fn read_header(
    folder: &dyn Folder,
    name: &str,
    block: &mut Vec<u8>,
) -> io::Result<std::result::Result<GroupHeader, String>> {
    let file = folder.open(name, Access::Cached)?;
    let file_bytes = file.bytes()?;
    let first = IoBuffer::ALIGNMENT;
    let mut found = read_whole(&*file, &mut block[..first], 0)?;
    let mut bytes = match GroupHeader::bytes_of(&block[..found]) {
        Ok(bytes) if bytes > file_bytes => {
            return Ok(Err(format!("it has {file_bytes} bytes, but its header states {bytes}")));
        }
        Ok(bytes) => bytes as usize,
        Err(reason) => return Ok(Err(reason)),
    };
    if bytes > first {
        block.resize(block.len().max(bytes), 0);
        found = read_whole(&*file, &mut block[..bytes], 0)?;
    }
    bytes = bytes.min(found);
    file.drop_cached(0, 0);
    Ok(GroupHeader::decode(&block[..bytes], file_bytes))
}
