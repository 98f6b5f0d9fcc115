//! Who uses a device, over all processes of a machine: files that name it and stay locked for as long.
//!
//! The lock goes with its process, however that ends, so what is left of one that was killed is known as such.
#![cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "software devices are those of one process"))]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where all processes of a machine see the files; they hold nothing.
const FOLDER: &str = "/dev/shm";

/// One user of a device, until it is dropped.
pub(super) struct User {
    path: PathBuf,
    /// Locked.
    _file: File,
}

impl User {
    /// One more user of the device with this identity; `None` where the system has no such folder, or refuses.
    pub fn new(identity: u64) -> Option<User> {
        User::within(Path::new(FOLDER), identity)
    }

    fn within(folder: &Path, identity: u64) -> Option<User> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{identity:016x}-{}-{number}", std::process::id());
        // Under its name it is locked from the start, so that nobody takes it for one that is left.
        let (unlocked, path) = (folder.join(format!("sunzinew-{name}")), folder.join(prefix(identity) + &name));
        let file = OpenOptions::new().write(true).create_new(true).open(&unlocked).ok()?;
        let placed = file.try_lock().is_ok() && fs::rename(&unlocked, &path).is_ok();
        if !placed {
            let _ = fs::remove_file(&unlocked);
        }
        placed.then_some(User { path, _file: file })
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Users of a device on this machine, as far as the system tells; files of processes that are gone are removed.
pub(super) fn count(identity: u64) -> usize {
    count_within(Path::new(FOLDER), identity)
}

fn count_within(folder: &Path, identity: u64) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix(identity)));
    named.filter(|entry| is_used(&entry.path())).count()
}

fn is_used(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
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
        let folder = std::env::temp_dir().join(format!("sunzi-users-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let count = |identity| count_within(&folder, identity);
        assert_eq!(count(7), 0);
        let mut users = Vec::from([7, 7, 8].map(|identity| User::within(&folder, identity).unwrap()));
        assert_eq!((count(7), count(8), count(9)), (2, 1, 0));
        // What a process that was killed has left: nobody holds its lock.
        fs::write(folder.join(format!("{}1-1", prefix(7))), "").unwrap();
        assert_eq!((count(7), fs::read_dir(&folder).unwrap().count()), (2, 3));
        users.remove(0);
        assert_eq!((count(7), count(8)), (1, 1));
        users.clear();
        assert_eq!((count(7), count(8), fs::read_dir(&folder).unwrap().count()), (0, 0, 0));
        assert_eq!(count_within(Path::new("/no/such/folder"), 7), 0);
        assert!(User::within(Path::new("/no/such/folder"), 7).is_none());
        fs::remove_dir(&folder).unwrap();
    }
}
