//! The disk use of an out-of-core operation.

use crate::comm::{Reduction, Transport};
use crate::context::{Context, DiskProgress, Progress, ProgressCallback};
use crate::error::Result;
use crate::storage::{Caching, Storage, StorageStatistics};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The progress of a context for passes over files.
pub(crate) fn progress_of(ctx: &Context) -> Option<Arc<ProgressCallback>> {
    let ctx = ctx.clone();
    Some(Arc::new(move |progress: Progress| ctx.report_progress(progress).is_ok()))
}

/// A context whose progress reports include the disk progress that `read` returns.
pub(crate) fn telling_of_disk(
    ctx: &Context,
    read: impl Fn() -> Option<DiskProgress> + Send + Sync + 'static,
) -> Context {
    let told = ctx.clone();
    ctx.with_progress(move |progress| told.report_progress(Progress { disk: read(), ..progress }).is_ok())
}

/// The disk progress of a call: in the directory, with `elsewhere_bytes` bytes read from elsewhere, and `reused_bytes`
/// bytes of finished tiles used without a read.
pub(crate) fn disk_progress(storage: &Storage, elsewhere_bytes: u64, reused_bytes: u64) -> DiskProgress {
    let StorageStatistics { read_bytes, written_bytes, .. } = storage.statistics();
    let waiting = storage.oldest_request();
    DiskProgress { read_bytes: read_bytes + elsewhere_bytes, written_bytes, reused_bytes, waiting }
}

/// The disk work of a call in addition to the tasks of a factorisation: the directory of its result, and the bytes read
/// from files during the work.
#[derive(Clone, Default)]
pub(crate) struct DiskWatch {
    storage: Arc<Mutex<Weak<Storage>>>,
    /// Bytes read of files.
    pub read_bytes: Arc<AtomicU64>,
}

impl DiskWatch {
    /// From now on the directory is this one.
    pub fn opened(&self, storage: &Arc<Storage>) {
        *self.lock() = Arc::downgrade(storage);
    }

    /// The guarded data is valid even if a holder panicked.
    fn lock(&self) -> MutexGuard<'_, Weak<Storage>> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A context whose progress reports include the disk.
    pub fn told(&self, ctx: &Context) -> Context {
        let watch = self.clone();
        telling_of_disk(ctx, move || {
            let storage = watch.lock().upgrade()?;
            Some(disk_progress(&storage, watch.read_bytes.load(Ordering::Relaxed), 0))
        })
    }
}

/// The use of a storage directory by a call: tiles found in it, bytes read from it and written to it.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DiskUse {
    /// Tiles that an earlier run had completed.
    pub tiles_found: usize,
    /// Groups of tiles that were damaged and computed again.
    pub groups_repaired: usize,
    /// Bytes read during the computation, without the passes over the input before it.
    pub read_bytes: u64,
    /// Bytes written to the directory.
    pub written_bytes: u64,
    /// Bytes of finished tiles that were used again while they were still in memory.
    pub reused_bytes: u64,
    /// Seconds during which the disk was busy.
    pub disk_seconds: f64,
    /// Whether the system's cache was bypassed.
    pub direct_io: bool,
    /// Remarks on features that the directory does not support.
    pub remarks: Vec<String>,
}

impl DiskUse {
    /// Adds the counts of a storage since it was opened.
    pub(crate) fn add(&mut self, storage: &Storage) {
        let statistics = storage.statistics();
        self.read_bytes += statistics.read_bytes;
        self.written_bytes += statistics.written_bytes;
        self.disk_seconds += statistics.busy_seconds;
        self.direct_io = storage.report().caching == Caching::Direct;
        self.remarks.clone_from(&storage.report().remarks);
    }

    /// Becomes the sum over all ranks; the remarks stay those of this rank's directory. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub(crate) fn sum(&mut self, world: &dyn Transport) -> Result<()> {
        let DiskUse { tiles_found, groups_repaired, read_bytes, written_bytes, reused_bytes, .. } = self;
        let mut sums = [*tiles_found as u64, *groups_repaired as u64, *read_bytes, *written_bytes, *reused_bytes];
        world.all_reduce(Reduction::Sum, &mut sums)?;
        (*tiles_found, *groups_repaired) = (sums[0] as usize, sums[1] as usize);
        (*read_bytes, *written_bytes, *reused_bytes) = (sums[2], sums[3], sums[4]);
        Ok(())
    }
}
