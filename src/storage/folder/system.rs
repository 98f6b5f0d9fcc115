//! A folder of the system's, by its descriptor: it stays the same folder when it is renamed.
//!
//! Independent of: what the files hold.

use super::ring::{Memory, Rings, TransferPart};
use super::{Access, DirectIo, File, Folder, Lock, ReadPiece, WritePiece, read_whole, write_whole};
use crate::store::IoBuffer;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest number of bytes of one transfer of a ring.
const PART_BYTES: usize = 4 << 20;

/// The real thing.
pub struct SystemFolder {
    path: PathBuf,
    descriptor: OwnedFd,
    rings: Option<Arc<Rings>>,
}

impl SystemFolder {
    /// The folder at `path`, which is made where it is missing and its parent is there.
    ///
    /// # Errors
    /// The failed operation, and the system's refusal.
    pub fn open_or_make(path: &Path) -> Result<SystemFolder, (&'static str, io::Error)> {
        match std::fs::create_dir(path) {
            // The folder's own name has to outlast a power cut as well.
            Ok(()) => sync_parent(path).map_err(|refused| ("sync its folder", refused))?,
            Err(refused) if refused.kind() == io::ErrorKind::AlreadyExists => {}
            Err(refused) => return Err(("make the folder", refused)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor =
            fs::open(path, flags, Mode::empty()).map_err(|refused| ("open the folder", io::Error::from(refused)))?;
        Ok(SystemFolder { path: path.to_path_buf(), descriptor, rings: None })
    }

    /// From now on large transfers of its files go through io_uring.
    ///
    /// # Errors
    /// The reason why there is none; transfers stay as they were.
    pub fn use_rings(&mut self) -> io::Result<()> {
        self.rings = Some(Arc::new(Rings::probe()?));
        Ok(())
    }

    fn file(&self, descriptor: OwnedFd, access: Access) -> Box<dyn File> {
        Box::new(SystemFile { descriptor, access, rings: self.rings.clone() })
    }

    fn open_at(&self, name: &str, flags: OFlags, access: Access) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | direct_flag(access);
        Ok(fs::openat(&self.descriptor, name, flags, Mode::from_raw_mode(0o666))?)
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(&fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Some file systems refuse to sync a folder: its entries are then synced with the files.
fn sync_folder(descriptor: &OwnedFd) -> io::Result<()> {
    match fs::fsync(descriptor) {
        Err(Errno::INVAL) => Ok(()),
        answer => Ok(answer?),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn direct_flag(access: Access) -> OFlags {
    if access == Access::Direct { OFlags::DIRECT } else { OFlags::empty() }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn direct_flag(_access: Access) -> OFlags {
    OFlags::empty()
}

impl Folder for SystemFolder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.open_at(name, OFlags::RDONLY, access)?, access))
    }

    fn create(&self, name: &str, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.open_at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, access)?, access))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.descriptor)
    }

    fn lock(&self, name: &str) -> io::Result<Lock> {
        let descriptor = self.open_at(name, OFlags::RDWR | OFlags::CREATE, Access::Cached)?;
        let mut file = std::fs::File::from(descriptor);
        match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                writeln!(file, "{}", std::process::id())?;
                Ok(Lock::Taken(Box::new(file)))
            }
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let read = file.take(32).read_to_string(&mut holder);
                Ok(Lock::Held(read.ok().and_then(|_| holder.trim().parse().ok())))
            }
            Err(refused) => Err(refused.into()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let system = fs::fstatvfs(&self.descriptor)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }

    fn direct_io(&self, name: &str) -> io::Result<DirectIo> {
        direct::of(self, name)
    }
}

/// A file of the system's.
struct SystemFile {
    descriptor: OwnedFd,
    access: Access,
    rings: Option<Arc<Rings>>,
}

impl SystemFile {
    /// Moves all parts through a ring, where there is one and more than one part; returns whether all is done.
    fn run(&self, mut parts: Vec<TransferPart<'_>>) -> bool {
        let rings = self.rings.as_ref().filter(|_| parts.len() > 1);
        let ran = rings.is_some_and(|rings| rings.run(self.descriptor.as_fd(), &mut parts).is_ok());
        ran && parts.iter().all(|part| part.is_done)
    }
}

impl File for SystemFile {
    fn access(&self) -> Access {
        self.access
    }

    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        let parts = pieces.iter_mut().flat_map(|piece| {
            let chunks = piece.bytes.chunks_mut(PART_BYTES);
            let offsets = (piece.offset..).step_by(PART_BYTES);
            offsets.zip(chunks).map(|(offset, bytes)| TransferPart {
                memory: Memory::Read(bytes),
                offset,
                is_done: false,
            })
        });
        let is_done = self.run(parts.collect());
        for piece in pieces {
            // A read that ended early or failed is repeated the ordinary way, which reports the reason.
            piece.found = if is_done { piece.bytes.len() } else { read_whole(self, piece.bytes, piece.offset)? };
        }
        Ok(())
    }

    fn write_pieces(&self, pieces: &[WritePiece<'_>]) -> io::Result<()> {
        let parts = pieces.iter().flat_map(|piece| {
            let chunks = piece.bytes.chunks(PART_BYTES);
            let offsets = (piece.offset..).step_by(PART_BYTES);
            offsets.zip(chunks).map(|(offset, bytes)| TransferPart {
                memory: Memory::Write(bytes),
                offset,
                is_done: false,
            })
        });
        match self.run(parts.collect()) {
            true => Ok(()),
            false => pieces.iter().try_for_each(|piece| write_whole(self, piece.bytes, piece.offset)),
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(&self.descriptor, bytes, offset)?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(&self.descriptor, bytes, offset)?)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        #[cfg(not(target_vendor = "apple"))]
        match fs::fallocate(&self.descriptor, fs::FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            answer => return Ok(answer?),
        }
        Ok(fs::ftruncate(&self.descriptor, bytes)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fs::fsync(&self.descriptor)?)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(fs::fstat(&self.descriptor)?.st_size as u64)
    }

    fn drop_cached(&self, offset: u64, bytes: u64) {
        #[cfg(not(target_vendor = "apple"))]
        let _ = fs::fadvise(&self.descriptor, offset, std::num::NonZeroU64::new(bytes), fs::Advice::DontNeed);
        #[cfg(target_vendor = "apple")]
        let _ = (offset, bytes);
    }
}

/// The alignment of direct I/O: from `statx` (Linux 6.1), else from the block device below, else a page.
#[cfg(target_os = "linux")]
mod direct {
    use super::*;
    use rustix::fs::{StatxFlags, statx};

    /// `TMPFS_MAGIC` and `RAMFS_MAGIC` of `statfs(2)`: they take the flag, and keep files in the cache all the same.
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

    pub fn of(folder: &SystemFolder, name: &str) -> io::Result<DirectIo> {
        let absent = |reason: &str| Ok(DirectIo::Absent(reason.to_string()));
        let kind = fs::fstatfs(&folder.descriptor)?.f_type as i64;
        if IN_MEMORY.contains(&kind) {
            return absent("the directory is in memory");
        }
        let file = match folder.open_at(name, OFlags::RDONLY, Access::Direct) {
            Ok(file) => file,
            Err(refused) if refused.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                return absent("the file system refuses O_DIRECT");
            }
            Err(refused) => return Err(refused),
        };
        let answer = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN)?;
        let alignment = if answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0 {
            answer.stx_dio_mem_align.max(answer.stx_dio_offset_align)
        } else {
            device_block(answer.stx_dev_major, answer.stx_dev_minor).unwrap_or(IoBuffer::ALIGNMENT as u32)
        };
        match alignment {
            0 => absent("the file system reports that it does not support it"),
            wide if wide as usize > IoBuffer::ALIGNMENT => absent(&format!(
                "the file system requires an alignment of {wide} bytes, more than {}",
                IoBuffer::ALIGNMENT
            )),
            alignment => Ok(DirectIo::Aligned(alignment)),
        }
    }

    /// Logical block size of the device with these numbers, or of the disk that it is a part of.
    fn device_block(major: u32, minor: u32) -> Option<u32> {
        ["queue", "../queue"].into_iter().find_map(|queue| {
            let path = format!("/sys/dev/block/{major}:{minor}/{queue}/logical_block_size");
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod direct {
    use super::*;

    pub fn of(_folder: &SystemFolder, _name: &str) -> io::Result<DirectIo> {
        Ok(DirectIo::Absent(format!("no direct I/O of {} bytes on this system", IoBuffer::ALIGNMENT)))
    }
}
