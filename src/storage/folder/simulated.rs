//! A folder in memory that models the state after a power cut, and that can fail on demand.
//!
//! Data written and not synced, in files and in the folder's list of names, is kept apart from durable data. A power
//! cut keeps any subset of it, drawn from a seed: data in sectors, names call by call, neither waiting for the other.
//! So a name may be durable before the file's data, or a new file may vanish although it was synced, as POSIX allows.

use super::{Access, DirectIo, File, Folder, Lock};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The unit that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// Faults in addition to power cuts. Calls are counted from 0, over all files of a folder.
#[derive(Clone, Debug, Default)]
pub struct SimulatedFaults {
    /// The power fails at this call, which has no effect, like all later ones.
    pub power_cut_at: Option<u64>,
    /// These calls fail with this error number.
    pub errors: BTreeMap<u64, i32>,
    /// This call, and all later ones, wait until [`SimulatedFolder::resume`].
    pub stall_at: Option<u64>,
    /// Bytes that the disk has; more are refused (`ENOSPC`).
    pub capacity_bytes: Option<u64>,
    /// Reads and writes move fewer bytes than requested, or are interrupted, at random.
    pub ragged: bool,
    /// The file system has no direct I/O.
    pub no_direct_io: bool,
}

/// A change of the list of names that is not durable yet.
enum NameChange {
    Linked(String, usize),
    Renamed { from: String, to: String, inode: usize },
    Removed(String),
}

/// A change of a file that is not durable yet.
enum DataChange {
    Written(u64, Vec<u8>),
    Length(usize),
}

#[derive(Default)]
struct Inode {
    data: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<DataChange>,
}

#[derive(Default)]
struct Disk {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending: Vec<NameChange>,
    calls: u64,
    faults: SimulatedFaults,
    random: Option<StdRng>,
    is_locked: bool,
}

struct SharedDisk {
    path: PathBuf,
    disk: Mutex<Disk>,
    resumed: Condvar,
}

/// The folder; clones are the same one.
#[derive(Clone)]
pub struct SimulatedFolder(Arc<SharedDisk>);

impl SharedDisk {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and lets it fail or wait where the faults say so.
    fn call(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.disk();
        let number = disk.calls;
        disk.calls += 1;
        while disk.faults.stall_at.is_some_and(|from| number >= from) {
            disk = self.resumed.wait(disk).unwrap_or_else(PoisonError::into_inner);
        }
        if disk.faults.power_cut_at.is_some_and(|from| number >= from) {
            return Err(Errno::IO.into());
        }
        match disk.faults.errors.get(&number) {
            Some(&error) => Err(io::Error::from_raw_os_error(error)),
            None => Ok(disk),
        }
    }
}

impl Disk {
    fn find(&self, name: &str) -> io::Result<usize> {
        Ok(self.names.get(name).copied().ok_or(Errno::NOENT)?)
    }

    /// Bytes of all files that have a name.
    fn used_bytes(&self) -> u64 {
        self.names.values().map(|&inode| self.inodes[inode].data.len() as u64).sum()
    }

    fn free_bytes(&self) -> u64 {
        self.faults.capacity_bytes.map_or(1 << 40, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    fn change_name(&mut self, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.pending.push(change);
    }

    /// The number of bytes, of `bytes`, that this call moves.
    fn moved(&mut self, bytes: usize, access: Access) -> io::Result<usize> {
        if !self.faults.ragged || bytes == 0 {
            return Ok(bytes);
        }
        let random = self.random.get_or_insert_with(|| StdRng::seed_from_u64(1));
        match random.random_range(0..4) {
            0 => Err(Errno::INTR.into()),
            1 if access == Access::Cached => Ok(random.random_range(1..=bytes)),
            1 => Ok(bytes.min(SECTOR * random.random_range(1..=bytes.div_ceil(SECTOR)))),
            _ => Ok(bytes),
        }
    }
}

fn apply_name(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Linked(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        // The new name is that of the file that was renamed, whatever the old one was before.
        NameChange::Renamed { from, to, inode } => {
            names.remove(from);
            names.insert(to.clone(), *inode);
        }
        NameChange::Removed(name) => {
            names.remove(name);
        }
    }
}

/// Writes over existing data, and beyond its end.
fn put(data: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if data.len() < offset + bytes.len() {
        data.resize(offset + bytes.len(), 0);
    }
    data[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl Inode {
    /// Reduces the file to the part that a power cut leaves.
    fn cut(&mut self, random: &mut StdRng) {
        for change in std::mem::take(&mut self.pending) {
            match change {
                DataChange::Length(bytes) if random.random() => self.durable.resize(bytes, 0),
                DataChange::Length(_) => {}
                DataChange::Written(offset, bytes) => {
                    let kept = random.random_range(0..3);
                    for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                        if kept == 2 || kept == 1 && random.random() {
                            put(&mut self.durable, offset as usize + index * SECTOR, sector);
                        }
                    }
                }
            }
        }
        self.data = self.durable.clone();
    }
}

impl SimulatedFolder {
    /// An empty folder that works, for now.
    pub fn new() -> SimulatedFolder {
        let path = PathBuf::from("/simulated");
        SimulatedFolder(Arc::new(SharedDisk { path, disk: Mutex::default(), resumed: Condvar::new() }))
    }

    /// From now on these faults happen, and calls are counted from 0 again.
    pub fn set_faults(&self, faults: SimulatedFaults) {
        let mut disk = self.0.disk();
        (disk.faults, disk.calls) = (faults, 0);
        self.0.resumed.notify_all();
    }

    /// Calls made since faults were set.
    pub fn calls(&self) -> u64 {
        self.0.disk().calls
    }

    /// Ends a stall.
    pub fn resume(&self) {
        self.0.disk().faults.stall_at = None;
        self.0.resumed.notify_all();
    }

    /// The folder that a restart finds after a power cut; `seed` draws which data was written in time. No call fails
    /// there.
    pub fn after_power_cut(&self, seed: u64) -> SimulatedFolder {
        let mut random = StdRng::seed_from_u64(seed);
        let mut old = std::mem::take(&mut *self.0.disk());
        for change in std::mem::take(&mut old.pending) {
            if random.random() {
                apply_name(&mut old.durable_names, &change);
            }
        }
        for inode in &mut old.inodes {
            inode.cut(&mut random);
        }
        let names = old.durable_names.clone();
        let disk = Disk { inodes: old.inodes, names, durable_names: old.durable_names, ..Disk::default() };
        let restarted = SimulatedFolder::new();
        *restarted.0.disk() = disk;
        restarted
    }

    /// Names and contents of all files.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let disk = self.0.disk();
        disk.names.iter().map(|(name, &inode)| (name.clone(), disk.inodes[inode].data.clone())).collect()
    }

    /// Puts a file there, or other contents into one: damage, or a write by another program.
    pub fn put_file(&self, name: &str, data: Vec<u8>) {
        let mut disk = self.0.disk();
        let inode = disk.inodes.len();
        disk.inodes.push(Inode { durable: data.clone(), data, pending: Vec::new() });
        disk.names.insert(name.to_string(), inode);
        disk.durable_names.insert(name.to_string(), inode);
    }
}

impl Default for SimulatedFolder {
    fn default() -> Self {
        SimulatedFolder::new()
    }
}

/// The lock of the folder.
struct FolderLock(Arc<SharedDisk>);

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.0.disk().is_locked = false;
    }
}

impl Folder for SimulatedFolder {
    fn path(&self) -> &Path {
        &self.0.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.call()?.names.keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>> {
        let inode = self.0.call()?.find(name)?;
        Ok(Box::new(SimulatedFile { shared: Arc::clone(&self.0), inode, access }))
    }

    fn create(&self, name: &str, access: Access) -> io::Result<Box<dyn File>> {
        let mut disk = self.0.call()?;
        if disk.names.contains_key(name) {
            return Err(Errno::EXIST.into());
        }
        let inode = disk.inodes.len();
        disk.inodes.push(Inode::default());
        disk.change_name(NameChange::Linked(name.to_string(), inode));
        Ok(Box::new(SimulatedFile { shared: Arc::clone(&self.0), inode, access }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.0.call()?;
        let inode = disk.find(from)?;
        disk.change_name(NameChange::Renamed { from: from.to_string(), to: to.to_string(), inode });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.0.call()?;
        disk.find(name)?;
        disk.change_name(NameChange::Removed(name.to_string()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.0.call()?;
        disk.durable_names = disk.names.clone();
        disk.pending.clear();
        Ok(())
    }

    fn lock(&self, name: &str) -> io::Result<Lock> {
        let mut disk = self.0.call()?;
        if std::mem::replace(&mut disk.is_locked, true) {
            return Ok(Lock::Held(Some(1)));
        }
        if !disk.names.contains_key(name) {
            let inode = disk.inodes.len();
            disk.inodes.push(Inode::default());
            disk.change_name(NameChange::Linked(name.to_string(), inode));
        }
        Ok(Lock::Taken(Box::new(FolderLock(Arc::clone(&self.0)))))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.0.call()?.free_bytes())
    }

    fn direct_io(&self, name: &str) -> io::Result<DirectIo> {
        let disk = self.0.call()?;
        disk.find(name)?;
        Ok(match disk.faults.no_direct_io {
            true => DirectIo::Absent("the simulated file system does not support it".to_string()),
            false => DirectIo::Aligned(SECTOR as u32),
        })
    }
}

/// An open file of a simulated folder.
struct SimulatedFile {
    shared: Arc<SharedDisk>,
    inode: usize,
    access: Access,
}

impl SimulatedFile {
    /// The system's error for memory or an offset that is not aligned for direct I/O.
    fn check(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fits = |number: usize| number.is_multiple_of(SECTOR);
        let is_aligned = fits(bytes.as_ptr() as usize) && fits(bytes.len()) && fits(offset as usize);
        if self.access == Access::Direct && !is_aligned { Err(Errno::INVAL.into()) } else { Ok(()) }
    }
}

impl File for SimulatedFile {
    fn access(&self) -> Access {
        self.access
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.shared.call()?;
        self.check(bytes, offset)?;
        let length = disk.inodes[self.inode].data.len();
        let start = length.min(offset as usize);
        let count = disk.moved(bytes.len().min(length - start), self.access)?;
        bytes[..count].copy_from_slice(&disk.inodes[self.inode].data[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.shared.call()?;
        self.check(bytes, offset)?;
        let count = disk.moved(bytes.len(), self.access)?;
        let free = disk.free_bytes();
        let inode = &mut disk.inodes[self.inode];
        let further = (offset + count as u64).saturating_sub(inode.data.len() as u64);
        if further > free {
            return Err(Errno::NOSPC.into());
        }
        put(&mut inode.data, offset as usize, &bytes[..count]);
        inode.pending.push(DataChange::Written(offset, bytes[..count].to_vec()));
        Ok(count)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut disk = self.shared.call()?;
        let free = disk.free_bytes();
        let inode = &mut disk.inodes[self.inode];
        if bytes.saturating_sub(inode.data.len() as u64) > free {
            return Err(Errno::NOSPC.into());
        }
        inode.data.resize(bytes as usize, 0);
        inode.pending.push(DataChange::Length(bytes as usize));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.shared.call()?;
        let inode = &mut disk.inodes[self.inode];
        inode.durable = inode.data.clone();
        inode.pending.clear();
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.shared.call()?.inodes[self.inode].data.len() as u64)
    }

    fn drop_cached(&self, _offset: u64, _bytes: u64) {}
}
