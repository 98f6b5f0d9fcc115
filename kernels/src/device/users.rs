//! The users of a device, over all processes of a machine: files that name the device and stay locked while it is used.
//!
//! The lock goes with its process, however that ends, so the file of a killed process is recognised as a leftover. A
//! file is identified by its own number in the file system, which no other file has while it is open.
#![cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "software devices cannot be shared between processes"))]

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where all processes of a machine see the files; they hold nothing.
const FOLDER: &str = "/dev/shm";

/// One user of a device, until it is dropped.
pub(super) struct User {
    path: PathBuf,
    /// The process: one that was forked from it has the lock as well, but the file is not its own to remove.
    process: u32,
    /// Locked.
    _file: File,
}

impl User {
    /// One more user of the device with this identity; `None` where the system has no such folder, or refuses.
    pub fn new(identity: u64) -> Option<User> {
        User::within(Path::new(FOLDER), identity)
    }

    fn within(folder: &Path, identity: u64) -> Option<User> {
        // Under its name it is locked from the start, so that nobody takes it for a leftover.
        let (file, unlocked) = unnamed(folder)?;
        let path = file.metadata().map(|data| folder.join(format!("{}{}", prefix(identity), data.ino())));
        let placed = path.ok().filter(|path| file.try_lock().is_ok() && fs::hard_link(&unlocked, path).is_ok());
        let _ = fs::remove_file(&unlocked);
        Some(User { path: placed?, process: process::id(), _file: file })
    }
}

/// A new file under a name that nobody counts. Processes of other containers may have the same number.
fn unnamed(folder: &Path) -> Option<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("sunzinew-{}-{number}", process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            // All users of the machine may ask who holds its lock.
            Ok(file) if file.set_permissions(Permissions::from_mode(0o644)).is_ok() => return Some((file, path)),
            Ok(_) => {
                let _ = fs::remove_file(&path);
                return None;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if self.process == process::id() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Users of a device on this machine, as far as the system shows; files of processes that are gone are removed.
pub(super) fn count(identity: u64) -> usize {
    count_within(Path::new(FOLDER), identity)
}

fn count_within(folder: &Path, identity: u64) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix(identity)));
    named.filter(|entry| is_used(&entry.path())).count()
}

fn is_used(path: &Path) -> bool {
    // Whoever may write here could have left a pipe or a link under such a name.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = match opened {
        Ok(file) => file,
        // The file of another user, which cannot be checked.
        Err(error) => return error.kind() == ErrorKind::PermissionDenied,
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => true,
        Ok(()) => {
            let _ = fs::remove_file(path);
            false
        }
        Err(TryLockError::Error(_)) => false,
    }
}

fn prefix(identity: u64) -> String {
    format!("sunzidevice-{identity:016x}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_counted_while_they_live() {
        let folder = std::env::temp_dir().join(format!("sunzi-users-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let count = |identity| count_within(&folder, identity);
        assert_eq!(count(7), 0);
        let mut users = Vec::from([7, 7, 8].map(|identity| User::within(&folder, identity).unwrap()));
        assert_eq!((count(7), count(8), count(9)), (2, 1, 0));
        // The file of a process that was killed: nobody holds its lock.
        fs::write(folder.join(format!("{}1-1", prefix(7))), "").unwrap();
        assert_eq!((count(7), fs::read_dir(&folder).unwrap().count()), (2, 3));
        // A pipe would keep its reader waiting, and a link lead to a file of others.
        let (pipe, link, other) = (prefix(9) + "1", prefix(9) + "2", folder.join("other"));
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.join(&pipe), rustix::fs::Mode::from(0o600)).unwrap();
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, folder.join(link)).unwrap();
        assert_eq!((count(9), other.exists()), (0, true));
        for name in [pipe, prefix(9) + "2", "other".to_string()] {
            let _ = fs::remove_file(folder.join(name));
        }
        // A process that was forked has the lock too, and leaves the file to the one that made it.
        let mut forked = User::within(&folder, 9).unwrap();
        let file = forked.path.clone();
        forked.process += 1;
        drop(forked);
        assert_eq!((file.exists(), count(9), file.exists()), (true, 0, false), "nobody holds it now");
        users.remove(0);
        assert_eq!((count(7), count(8)), (1, 1));
        users.clear();
        assert_eq!((count(7), count(8), fs::read_dir(&folder).unwrap().count()), (0, 0, 0));
        assert_eq!(count_within(Path::new("/no/such/folder"), 7), 0);
        assert!(User::within(Path::new("/no/such/folder"), 7).is_none());
        fs::remove_dir(&folder).unwrap();
    }
}
