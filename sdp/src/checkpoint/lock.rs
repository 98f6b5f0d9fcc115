//! A folder of checkpoints belongs to the run that writes there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use sunzi::{Error, Result};

/// The file that is locked.
const FILE: &str = "checkpoint.lock";

/// Exclusive use of a folder of checkpoints, until the value is dropped: two runs would overwrite each other's states.
#[derive(Debug)]
pub struct CheckpointLock {
    folder: PathBuf,
    /// Folders that were created for it, the deepest first.
    made: Vec<PathBuf>,
    /// The lock, if the file system has locks.
    file: Option<File>,
}

fn number_in(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

impl CheckpointLock {
    /// Locks a folder, which is created if it is missing. The lock is released when the process ends, also after a
    /// crash.
    ///
    /// # Errors
    /// [`Error::StorageInUse`] with the process that holds the lock; [`Error::Io`].
    pub fn take(folder: &Path) -> Result<CheckpointLock> {
        let path = folder.join(FILE);
        let failed = |path: &Path, source| Error::Io { path: path.to_path_buf(), action: "create", source };
        let made = folder.ancestors().take_while(|one| !one.as_os_str().is_empty() && !one.exists());
        let made = made.map(Path::to_path_buf).collect();
        std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|source| failed(&path, source))?;
        let taken = |file| Ok(CheckpointLock { folder: folder.to_path_buf(), made, file });
        match file.try_lock() {
            Ok(()) => {
                // For the process that is refused; without it nothing goes wrong.
                let _ = file.set_len(0).and_then(|()| writeln!(&file, "{}", std::process::id()));
                taken(Some(file))
            }
            Err(TryLockError::WouldBlock) => {
                Err(Error::StorageInUse { path: folder.to_path_buf(), process: number_in(&file) })
            }
            // A file system without locks is no reason not to run.
            Err(TryLockError::Error(_)) => taken(None),
        }
    }
}

impl Drop for CheckpointLock {
    fn drop(&mut self) {
        // Before it is given back, so that no process removes the file of another.
        let _ = std::fs::remove_file(self.folder.join(FILE));
        // Where a run has left nothing, it leaves no folder; one with files in it stays.
        let _ = self.made.iter().try_for_each(std::fs::remove_dir);
        drop(self.file.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_and_leaves_no_trace() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/ck");
        let lock = CheckpointLock::take(&folder)?;
        let refused = CheckpointLock::take(&folder).unwrap_err();
        assert!(refused.to_string().contains(&format!("process {} is using this directory", std::process::id())));
        // A process that is refused leaves the file where it is.
        assert!(CheckpointLock::take(&folder).is_err());
        drop(lock);
        assert!(!root.path().join("deep").exists() && root.path().exists());
        std::fs::create_dir_all(&folder).unwrap();
        drop(CheckpointLock::take(&folder)?);
        assert!(folder.read_dir().unwrap().next().is_none());
        let lock = CheckpointLock::take(&folder)?;
        std::fs::write(folder.join("checkpoint.bin"), "").unwrap();
        drop(lock);
        assert_eq!(folder.read_dir().unwrap().count(), 1);
        // A file that a killed run has left is no lock.
        std::fs::write(folder.join(FILE), "1\n").unwrap();
        CheckpointLock::take(&folder).map(drop)
    }
}
