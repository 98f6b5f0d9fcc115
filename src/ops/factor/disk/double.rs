//! Out-of-core factorisations of doubles: tiles are doubles in memory and on the disk; the kernels are those of doubles
//! in memory.

use super::call::{
    DiskCall, Element, ElementFigures, OutOfCorePlan, PayloadWords, TileNeeds, most_entry_bytes, write_factor,
};
use super::{OutOfCoreOptions, OutOfCoreReport};
use crate::comm::mailbox::Payload;
use crate::comm::{Reduction, Transport, agree, agreed};
use crate::context::Context;
use crate::drive::{DiskTiles, Meter, RankReport, RankTiles};
use crate::error::{Error, Result};
use crate::io::{HeadVisitor, MatrixFile};
use crate::kernels::f64::tile::{BadPivot, TileKernels};
use crate::math::double::{DOUBLE_EXPONENT, double_parts, nearest_double};
use crate::math::float::{FloatRef, Head};
use crate::ops::disk::{LARGEST_TILE, progress_of, telling_of_disk};
use crate::ops::factor::diagnose::double_refusal;
use crate::ops::factor::double::CpuTasks;
use crate::ops::factor::plan::units;
use crate::ops::factor::spans::{Clock, TaskKind, TaskLog};
use crate::ops::factor::tile_file::{Encoded, FileTiles, TileFile};
use crate::ops::factor::unpoisoned;
use crate::runtime::protocol::TileRun;
use crate::site::Site;
use crate::storage::Identity;
use crate::store::IoBuffer;
use crate::tile::{TileId, TileMap};
use std::path::Path;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bits of the significand of a double.
const BITS: u32 = f64::MANTISSA_DIGITS;

/// The factorisation of [`super::double_cholesky`], by one process or a rank. Collective.
///
/// # Errors
/// As [`super::double_cholesky_over_ranks`].
pub(super) fn factor_doubles(
    site: Site<'_>,
    matrix: &Path,
    factor: &Path,
    storage: &Path,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    let clock = Clock::new();
    let call = DiskCall::open::<Doubles>(site, matrix, storage, options)?;
    let instructions = agree_on_instructions(site.world())?;
    call.run(Doubles { instructions }, factor, clock)
}

/// The plan of a factorisation by ranks. Collective.
///
/// # Errors
/// As [`super::plan_double_cholesky`].
pub(super) fn plan_doubles(site: Site<'_>, matrix: &Path, options: &OutOfCoreOptions) -> Result<OutOfCorePlan> {
    let element = Doubles { instructions: TileKernels::instructions() };
    DiskCall::open::<Doubles>(site, matrix, Path::new(""), options)?.plan(&element)
}

/// Checks that all ranks use the same instructions, without which the bits would differ. Collective.
///
/// # Errors
/// [`Error::InvalidArgument`] where they differ; [`Error::Transport`].
fn agree_on_instructions(world: &dyn Transport) -> Result<&'static str> {
    let name = TileKernels::instructions();
    let word = name.bytes().fold(0u64, |word, byte| word << 8 | u64::from(byte));
    let mut range = [word, !word];
    world.all_reduce(Reduction::Max, &mut range)?;
    let refusal = || {
        let message = format!(
            "the ranks have different CPUs: this rank factors doubles with {name} instructions, and another rank with \
             different ones"
        );
        Error::InvalidArgument(message)
    };
    agree(world, if range[0] == !range[1] { Ok(()) } else { Err(refusal()) })?;
    Ok(name)
}

/// Refuses the first entry of the lower triangle that is beyond the range of doubles.
struct DoubleRange;

impl HeadVisitor for DoubleRange {
    fn first(&mut self, _row: usize, _col: usize, _head: Head) -> Result<()> {
        Ok(())
    }

    fn second(&mut self, row: usize, column: usize, number: FloatRef<'_>) -> Result<()> {
        let exponent = number.head.exponent();
        if row < column || exponent < DOUBLE_EXPONENT || nearest_double(number).is_finite() {
            return Ok(());
        }
        Err(Error::ExponentRange { row, column, exponent, limit: DOUBLE_EXPONENT })
    }
}

/// The factorisation of doubles.
struct Doubles {
    /// The instructions of the kernels.
    instructions: &'static str,
}

impl Element for Doubles {
    /// Kernels are as fast as on any larger one, and blocks fill a small memory better.
    const TILE_ROWS: usize = 192;

    const MOST_TILE_ROWS: usize = LARGEST_TILE;

    fn payload_words(&self, tiling: &TileMap) -> PayloadWords {
        let tiling = *tiling;
        Box::new(move |tile| tiling.entries(tile))
    }

    fn needs(&self, tiling: &TileMap) -> TileNeeds {
        TileNeeds {
            slot_words: tiling.most_entries(),
            worker_bytes: TileKernels::BYTES + most_entry_bytes(tiling, 1),
            shared_bytes: 0,
            most_updates: 1,
        }
    }

    fn scan(&mut self, call: &DiskCall<'_>) -> Result<(usize, u64)> {
        let checksum = call.site.root_finds(|| {
            let checksum = call.file.check_heads(progress_of(call.site.ctx), &mut DoubleRange)?;
            if !call.options.lower {
                call.file.check_symmetric(call.tiling.tile_size)?;
            }
            Ok(vec![checksum])
        })?;
        Ok((call.tiling.rows, checksum[0]))
    }

    fn identity(&self, call: &DiskCall<'_>, checksum: u64) -> Identity {
        call.identify("cholesky of doubles", None, checksum).with("instructions", self.instructions)
    }

    fn figures(&self, _ctx: &Context) -> ElementFigures {
        let (bits, kernel) = (BITS, self.instructions);
        ElementFigures { element: "double", precision_bits: bits, working_bits: bits, kernel, primes: 0 }
    }

    fn run(
        &self,
        call: &DiskCall<'_>,
        tile_file: TileFile,
        clock: &mut Clock,
    ) -> Result<(TileFile, Result<RankReport>)> {
        let world = call.site.world();
        let ctx = &telling_of_disk(call.site.ctx, tile_file.progress());
        let shape = tile_file.shape;
        let worker = |worker: usize| DiskWorker {
            kernels: TileKernels::new(),
            encoded: Encoded::default(),
            log: TaskLog::new(clock.start, worker, call.options.spans),
        };
        let mut workers = (0..call.threads()).map(worker).collect::<Vec<_>>();
        let mut workspace = ctx.workspace();
        let words = agreed(world, workspace.operands.words(shape.room_tiles * call.tiling.most_entries()))?;
        let tiles = DiskDoubles::new(ctx, call.tiling, &call.file, words, world.rank(), tile_file);
        let outcome = call.run_tiles(ctx, &shape, &tiles, &mut workers);
        clock.add(workers.into_iter().map(|worker| worker.log));
        Ok((tiles.into_tile_file(), outcome))
    }

    fn write(&self, call: &DiskCall<'_>, path: &Path, tile_file: &TileFile) -> Result<()> {
        write_factor(call, path, tile_file, BITS, &|tile, finished, (heads, limbs)| {
            let (rows, is_diagonal) = (call.tiling.shape(tile).0.max(1), tile.row == tile.col);
            for (at, &word) in finished.iter().enumerate().filter(|(at, _)| !is_diagonal || at % rows >= at / rows) {
                let (head, limb) = double_parts(f64::from_bits(word));
                (heads[at], limbs[at]) = (head.0, limb);
            }
            Ok(())
        })
    }
}

// Unfinished and finished tiles have the same form in memory, on the disk and between ranks: their doubles, column by
// column, zeros above the diagonal.

/// The private memory of a worker.
struct DiskWorker {
    kernels: TileKernels,
    /// Finished tiles of the run under way.
    encoded: Encoded,
    /// The times of its tasks.
    log: TaskLog,
}

/// The tiles of one rank; the ones in memory lie in slots.
struct DiskDoubles<'a, 'w> {
    map: TileMap,
    file: &'a MatrixFile,
    tile_file: TileFile,
    words: Vec<RwLock<&'w mut [u64]>>,
    meter: Meter<'a>,
}

impl<'a, 'w> DiskDoubles<'a, 'w> {
    /// The tiles of `rank` of the matrix in `file`, in `words`, which are cut into slots of the largest tile.
    fn new(
        ctx: &'a Context,
        map: TileMap,
        file: &'a MatrixFile,
        words: &'w mut [u64],
        rank: usize,
        tile_file: TileFile,
    ) -> DiskDoubles<'a, 'w> {
        let words = words.chunks_exact_mut(map.most_entries().max(1)).map(RwLock::new).collect();
        let total = tile_file.units_left(rank);
        DiskDoubles { map, file, words, meter: Meter::new(ctx, total), tile_file }
    }

    /// The file of the tiles that have no room in memory.
    fn into_tile_file(self) -> TileFile {
        self.tile_file
    }

    fn write(&self, tile: TileId) -> RwLockWriteGuard<'_, &'w mut [u64]> {
        unpoisoned(self.words[self.tile_file.slot(tile)].write())
    }

    fn read(&self, tile: TileId) -> RwLockReadGuard<'_, &'w mut [u64]> {
        unpoisoned(self.words[self.tile_file.slot(tile)].read())
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
    file.diagonal_entry(row).map_or_else(|unread| unread, |diagonal| double_refusal(row, pivot, &diagonal))
}

impl FileTiles<DiskWorker> for DiskDoubles<'_, '_> {
    fn tile_file(&self) -> &TileFile {
        &self.tile_file
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
