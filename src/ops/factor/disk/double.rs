//! Out-of-core factorisations of doubles: tiles are doubles in memory and on the disk; the kernels are those of doubles
//! in memory.

use super::call::{DiskCall, Element, ElementFigures, check_square};
use super::plan::{OutOfCorePlan, TileNeeds, grid_of, most_entry_bytes, tiling};
use super::store::write_factor;
use super::{OutOfCoreOptions, OutOfCoreReport};
use crate::comm::{Reduction, Transport, agree, agreed};
use crate::drive::RankReport;
use crate::error::{Error, Result};
use crate::io::{HeadVisitor, MatrixFile};
use crate::kernels::f64::tile::TileKernels;
use crate::math::double::{DOUBLE_EXPONENT, double_parts, nearest_double};
use crate::math::float::{FloatRef, Head};
use crate::ops::disk::{progress_of, telling_of_disk};
use crate::ops::factor::double::{DiskDoubles, DiskWorker};
use crate::ops::factor::spans::{Clock, TaskLog};
use crate::ops::factor::tile_file::TileFile;
use crate::site::Site;
use crate::tile::{TileId, TileMap};
use std::path::Path;
use std::sync::Arc;

/// Rows of a tile of a large matrix: kernels are as fast as on any larger one, and blocks fill a small memory better.
const TILE_ROWS: usize = 192;

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
    let mut clock = Clock::new();
    let grid = site.agreed(grid_of(site.team, options.grid))?;
    let file = Arc::new(site.agreed(MatrixFile::open(matrix))?);
    check_square(site, &file)?;
    let instructions = agree_on_instructions(site.world())?;
    let tiling = tiling(file.rows(), options.tile_rows, TILE_ROWS, grid);
    let call = DiskCall { site, file: file.clone(), tiling, options, storage };
    // Refused before the file is read.
    let plan = call.plan(&Doubles)?;
    let checksum = site.root_finds(|| {
        let checksum = file.check_heads(progress_of(site.ctx), &mut DoubleRange)?;
        if !options.lower {
            file.check_symmetric(tiling.tile_size)?;
        }
        Ok(vec![checksum])
    })?;
    let scan_seconds = clock.now();
    let identity = call.identify("cholesky of doubles", None, checksum[0]).with("instructions", instructions);
    let made = call.factor(&Doubles, &plan, &identity, factor, &mut clock)?;
    let figures =
        ElementFigures { element: "double", precision_bits: BITS, working_bits: BITS, kernel: instructions, primes: 0 };
    call.report(figures, plan, made, clock, scan_seconds)
}

/// The plan of a factorisation by ranks. Collective.
///
/// # Errors
/// As [`super::plan_double_cholesky`].
pub(super) fn plan_doubles(site: Site<'_>, matrix: &Path, options: &OutOfCoreOptions) -> Result<OutOfCorePlan> {
    let file = Arc::new(MatrixFile::open(matrix)?);
    check_square(site, &file)?;
    let grid = grid_of(site.team, options.grid)?;
    let tiling = tiling(file.rows(), options.tile_rows, TILE_ROWS, grid);
    DiskCall { site, file, tiling, options, storage: Path::new("") }.plan(&Doubles)
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
            "the ranks have different CPUs: this rank factors doubles with {name} instructions, and others with other \
             instructions"
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

/// How doubles are factored.
struct Doubles;

impl Element for Doubles {
    fn payload_words(&self, tiling: &TileMap) -> Box<dyn Fn(TileId) -> usize + Send + Sync> {
        let tiling = *tiling;
        Box::new(move |tile| tiling.entries(tile))
    }

    fn needs<'n>(&self, tiling: &TileMap, payload_words: &'n dyn Fn(TileId) -> usize) -> TileNeeds<'n> {
        TileNeeds {
            slot_words: tiling.most_entries(),
            payload_words,
            worker_bytes: DiskWorker::BYTES + most_entry_bytes(tiling, 1),
            shared_bytes: 0,
            most_updates: 1,
        }
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
        let worker = |worker: usize| DiskWorker::new(TaskLog::new(clock.start, worker, call.options.spans));
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
