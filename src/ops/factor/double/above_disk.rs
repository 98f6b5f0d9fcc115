//! The tiles of one rank of an out-of-core matrix of doubles.
//!
//! Unfinished and finished tiles have the same form in memory, on the disk and between ranks: their doubles, column by
//! column, zeros above the diagonal.

use super::tasks::CpuTasks;
use super::tiles::failure;
use crate::comm::mailbox::Payload;
use crate::context::Context;
use crate::drive::{DiskTiles, Meter, RankTiles};
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::kernels::f64::tile::{BadPivot, TileKernels};
use crate::math::double::nearest_double;
use crate::ops::factor::file_tiles::FileTiles;
use crate::ops::factor::plan::units;
use crate::ops::factor::slots::Slots;
use crate::ops::factor::spans::{TaskKind, TaskLog};
use crate::ops::factor::tile_file::{Encoded, TileFile};
use crate::runtime::protocol::TileRun;
use crate::store::IoBuffer;
use crate::tile::{OwnTiles, TileId, TileMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The private memory of a worker.
pub(crate) struct DiskWorker {
    kernels: TileKernels,
    /// Finished tiles of the run under way.
    encoded: Encoded,
    /// The times of its tasks.
    pub log: TaskLog,
}

impl DiskWorker {
    /// Bytes that one holds.
    pub const BYTES: u64 = TileKernels::BYTES;

    /// One that has done nothing.
    pub fn new(log: TaskLog) -> DiskWorker {
        DiskWorker { kernels: TileKernels::new(), encoded: Encoded::default(), log }
    }
}

/// The tiles of one rank; the ones in memory lie in slots.
pub(crate) struct DiskDoubles<'a, 'w> {
    map: TileMap,
    file: &'a MatrixFile,
    tile_file: TileFile,
    slots: Slots,
    words: Vec<RwLock<&'w mut [u64]>>,
    meter: Meter<'a>,
}

impl<'a, 'w> DiskDoubles<'a, 'w> {
    /// The tiles of `rank` of the matrix in `file`, in `words`, which are cut into slots of the largest tile.
    pub fn new(
        ctx: &'a Context,
        map: TileMap,
        file: &'a MatrixFile,
        words: &'w mut [u64],
        rank: usize,
        tile_file: TileFile,
    ) -> DiskDoubles<'a, 'w> {
        let words = words.chunks_exact_mut(map.most_entries().max(1)).map(RwLock::new).collect::<Vec<_>>();
        let slots = Slots::new(map.tile_rows(), words.len());
        let own = OwnTiles::new(map.grid, map.tile_rows(), rank);
        let left = own.in_columns(0..map.tile_rows()).filter(|&tile| !tile_file.was_finished(tile));
        let total = left.map(|tile| units(&map, tile, tile.col + 1)).sum();
        DiskDoubles { map, file, slots, words, meter: Meter::new(ctx, total), tile_file }
    }

    /// The file of the tiles that do not fit in memory.
    pub fn into_tile_file(self) -> TileFile {
        self.tile_file
    }

    /// The guarded data is valid even if a holder panicked; such a call ends with the panic.
    fn write(&self, tile: TileId) -> RwLockWriteGuard<'_, &'w mut [u64]> {
        self.words[self.slots.of(tile)].write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, tile: TileId) -> RwLockReadGuard<'_, &'w mut [u64]> {
        self.words[self.slots.of(tile)].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error for a pivot in a tile on the diagonal.
    fn failure(&self, tile: TileId, BadPivot { index, pivot }: BadPivot) -> Error {
        failure_in_file(self.file, self.map.row_range(tile.row).start + index, pivot)
    }

    /// The entries of a tile that was read, as doubles.
    fn load(&self, tile: TileId, read: &[u64], words: &mut [u64]) -> Result<()> {
        let (entries, rows) = (self.tile_file.entries(tile, read)?, self.map.shape(tile).0);
        for (j, column) in words.chunks_exact_mut(rows).enumerate() {
            let first = if tile.row == tile.col { j } else { 0 };
            column[..first].fill(0);
            for (i, word) in column.iter_mut().enumerate().skip(first) {
                *word = nearest_double(entries.get(i, j)).to_bits();
            }
        }
        Ok(())
    }
}

/// The error for a pivot of the matrix in a file, or the one of reading its diagonal entry.
fn failure_in_file(file: &MatrixFile, row: usize, pivot: f64) -> Error {
    file.diagonal_entry(row).map_or_else(|unread| unread, |diagonal| failure(row, pivot, &diagonal))
}

impl FileTiles<DiskWorker> for DiskDoubles<'_, '_> {
    fn tile_file(&self) -> (&TileFile, &Slots) {
        (&self.tile_file, &self.slots)
    }

    fn take_in(&self, worker: &mut DiskWorker, tile: TileId, read: &IoBuffer) -> Result<()> {
        let mut words = self.write(tile);
        worker.log.begin();
        let words = &mut words[..self.map.entries(tile)];
        if self.tile_file.is_published(tile) {
            words.copy_from_slice(self.tile_file.finished(tile, read.words()));
        } else {
            self.load(tile, read.words(), words)?;
        }
        worker.log.add(TaskKind::Load, tile);
        Ok(())
    }

    fn encoded(worker: &mut DiskWorker) -> &mut Encoded {
        &mut worker.encoded
    }

    fn wait(&self) -> Result<()> {
        self.meter.add("factor", 0)
    }
}

impl RankTiles for DiskDoubles<'_, '_> {
    type Local = DiskWorker;

    const UNPACKS: bool = false;

    fn run(&self, worker: &mut DiskWorker, run: &TileRun) -> Result<()> {
        let tasks = CpuTasks { map: &self.map, operand: |tile| self.read(tile) };
        self.tile_file.count_use(run);
        worker.log.begin();
        for tile in run.tiles() {
            let mut words = self.write(tile);
            let words = &mut words[..self.map.entries(tile)];
            let is_diagonal = tile.row == tile.col;
            if !run.updates.is_empty() {
                tasks.update(&mut worker.kernels, tile, run.updates.clone(), words);
                worker.log.add(if is_diagonal { TaskKind::Syrk } else { TaskKind::Gemm }, tile);
            }
            // The guard of a tile on the diagonal ends with it: the tiles below read it.
            if run.finish {
                tasks.finish(&mut worker.kernels, tile, words).map_err(|bad| self.failure(tile, bad))?;
                worker.log.add(if is_diagonal { TaskKind::Potrf } else { TaskKind::Trsm }, tile);
                self.tile_file.encode(&mut worker.encoded, tile, |finished| finished.copy_from_slice(words))?;
            }
        }
        self.meter.add("factor", run.tiles().map(|tile| units(&self.map, tile, run.tasks_each())).sum())
    }

    /// Out of core, tiles are sent from the disk, so this is never called.
    fn pack(&self, _worker: &mut DiskWorker, tile: TileId) -> Result<Payload> {
        Ok(Arc::new(self.read(tile)[..self.map.entries(tile)].to_vec()))
    }

    fn payload_words(&self, tile: TileId) -> usize {
        self.map.entries(tile)
    }

    /// Tiles of other ranks lie on the disk.
    fn release(&self, _tile: TileId) {}

    fn disk(&self) -> Option<&dyn DiskTiles<DiskWorker>> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MoreBits;
    use crate::io::{WriteOptions, write};
    use crate::matrix::Matrix;

    /// A matrix in a file, which is cut after it was opened.
    #[test]
    fn a_diagonal_entry_that_cannot_be_read_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("A.bin");
        write(&path, &Matrix::identity(3, 64).unwrap(), &WriteOptions::default()).unwrap();
        let file = MatrixFile::open(&path).unwrap();
        let said = |pivot| match failure_in_file(&file, 1, pivot) {
            Error::NotPositiveDefinite { diagonal, more_bits, .. } => (diagonal.to_f64(), more_bits),
            error => panic!("{error}"),
        };
        assert!(matches!(said(-1e-17), (1.0, MoreBits::AtLeast(_))), "{:?}", said(-1e-17));
        // The error of a pivot may exceed that of its own sums without bound.
        assert_eq!(said(-0.5), (1.0, MoreBits::Unknown));
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(64).unwrap();
        let error = failure_in_file(&file, 1, -0.5);
        assert!(!matches!(error, Error::NotPositiveDefinite { .. }) && error.to_string().contains("A.bin"), "{error}");
    }
}
