//! Operations above a disk give the files of those in memory, byte for byte, whatever the limit, and however often they
//! were ended.

mod cholesky;
mod double;
mod products;
mod ranks;
mod shared;
mod solve;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::Context;

/// The groups of a storage directory, in the order of their names.
fn groups(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut groups = files.filter(|path| path.extension().is_some_and(|ending| ending == "group")).collect::<Vec<_>>();
    groups.sort();
    groups
}

/// A context whose progress ends a call after so many reports of a phase.
fn ended_after(most: u64, phase: &'static str, (threads, limit): (usize, u64)) -> Context {
    let seen = Arc::new(AtomicU64::new(0));
    let told =
        move |progress: sunzi::Progress| !(progress.phase == phase && seen.fetch_add(1, Ordering::Relaxed) >= most);
    Context::builder().threads(threads).memory_bytes(limit).progress(told).build().unwrap()
}

/// Cuts a group, or flips a bit of its header or of an object, as the seed says.
fn damage(group: &Path, seed: u64) {
    let mut bytes = fs::read(group).unwrap();
    match seed % 3 {
        0 => bytes.truncate(bytes.len() / 2),
        1 => bytes[100] ^= 1,
        _ => bytes[4096 + 17] ^= 4,
    }
    fs::write(group, bytes).unwrap();
}
