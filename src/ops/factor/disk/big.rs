//! Out-of-core factorisations of big floats: unfinished tiles are residues, finished ones exact integers on the disk.

use super::call::{
    DiskCall, Element, ElementFigures, OutOfCorePlan, PayloadWords, TileNeeds, grid_of, most_entry_bytes, plan_tiles,
    tiling, write_factor,
};
use super::{OutOfCoreOptions, OutOfCoreReport};
use crate::comm::{Reduction, Transport, agree, agreed};
use crate::context::Context;
use crate::drive::RankReport;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::kernels::rounding::scratch_words;
use crate::kernels::tiles::{TileEngine, TileShape};
use crate::math::float::limbs_for;
use crate::ops::disk::telling_of_disk;
use crate::ops::factor::diagnose::unexamined;
use crate::ops::factor::kernel::MOST_TILE_ROWS;
use crate::ops::factor::problem::{FactorProblem, working_bits};
use crate::ops::factor::spans::Clock;
use crate::ops::factor::tile_file::TileFile;
use crate::ops::factor::tile_store::{TileStore, WorkerMemory};
use crate::ops::factor::tile_work::{FailedRow, TileWork};
use crate::site::Site;
use crate::storage::Identity;
use crate::store::Buffer;
use crate::tile::TileMap;
use rug::Integer;
use std::path::Path;
use std::sync::Arc;

/// Updates in a row, for kernels to which each call has costs of its own.
const UPDATES_AT_ONCE: usize = 4;

/// The factorisation of [`super::cholesky`], by one process or a rank. Collective.
///
/// # Errors
/// As [`super::cholesky_over_ranks`].
pub(crate) fn factor_file(
    site: Site<'_>,
    matrix: &Path,
    factor: &Path,
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    let clock = Clock::new();
    let (call, element) = open(site, matrix, storage, precision_bits, options)?;
    call.run(element, factor, clock)
}

/// The plan of a factorisation by ranks. Collective.
///
/// # Errors
/// As [`super::plan_cholesky`].
pub(crate) fn plan_file(
    site: Site<'_>,
    matrix: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCorePlan> {
    let (call, element) = open(site, matrix, Path::new(""), precision_bits, options)?;
    call.plan(&element)
}

/// The plan for a matrix of `order` rows with `precision_bits` bits, of which no file exists. Collective.
///
/// # Errors
/// [`Error::MemoryLimit`] with the smallest limit that suffices; [`Error::InvalidArgument`] for a grid of more ranks
/// than there are; [`Error::Precision`]; [`Error::DimensionOverflow`].
pub(crate) fn plan_order(
    site: Site<'_>,
    order: usize,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCorePlan> {
    let grid = site.agreed(grid_of(site.team, options.grid))?;
    let element = site.agreed(BigFloats::new(site.ctx, order, precision_bits))?;
    plan_tiles(site, tiling::<BigFloats>(order, grid, options), limbs_for(precision_bits), &element)
}

/// The call for a file, and how its entries are factored. Collective.
fn open<'a>(
    site: Site<'a>,
    matrix: &Path,
    storage: &'a Path,
    precision_bits: u32,
    options: &'a OutOfCoreOptions,
) -> Result<(DiskCall<'a>, BigFloats)> {
    let call = DiskCall::open::<BigFloats>(site, matrix, storage, options)?;
    let element = site.agreed(BigFloats::new(site.ctx, call.file.rows(), precision_bits))?;
    Ok((call, element))
}

/// The factorisation of big floats.
struct BigFloats {
    engine: Arc<dyn TileEngine>,
    /// Only its shape before the file is read.
    problem: FactorProblem,
}

impl BigFloats {
    fn new(ctx: &Context, order: usize, precision_bits: u32) -> Result<BigFloats> {
        let working_bits = working_bits(precision_bits, ctx.maximum_modulus_bits())?;
        let engine = ctx.tile_engine(ctx.tile_kernel(working_bits), working_bits)?;
        Ok(BigFloats { engine, problem: FactorProblem::unscaled(order, order, precision_bits, working_bits)? })
    }

    /// A whole tile.
    fn largest(tiling: &TileMap) -> TileShape {
        let rows = tiling.tile_size.min(tiling.rows);
        TileShape { rows, cols: rows, diagonal: false }
    }

    /// Words of a tile before its last task, or of one that updates read.
    fn slot_words(&self, tiling: &TileMap) -> usize {
        let whole = BigFloats::largest(tiling);
        let diagonal = TileShape { diagonal: true, ..whole };
        let words = |shape| self.engine.update_words(shape).max(self.engine.operand_words(shape));
        words(whole).max(words(diagonal))
    }

    /// Words of the memory in which a worker finishes a tile, where a slot is too small for that.
    fn whole_words(&self, tiling: &TileMap) -> usize {
        let whole = self.engine.tile_words(BigFloats::largest(tiling));
        if whole > self.slot_words(tiling) { whole } else { 0 }
    }

    fn work<'w>(&'w self, tiling: &'w TileMap) -> TileWork<'w> {
        TileWork::new(&*self.engine, tiling, self.problem.working_bits, &self.problem.exponents)
    }

    /// The error for a row whose pivot is not positive, or the one of reading its diagonal entry.
    fn not_positive(&self, file: &MatrixFile, index: usize, pivot: Option<Integer>) -> Error {
        // The whole matrix would have to be read to say more.
        let diagonal = file.diagonal_entry(index);
        let refused = |diagonal| unexamined(&self.problem, index, pivot.as_ref(), &diagonal);
        diagonal.map_or_else(|unread| unread, refused)
    }
}

impl Element for BigFloats {
    /// Updates with this many columns run at full speed, and a tile is read in about a millisecond.
    const TILE_ROWS: usize = 128;

    const MOST_TILE_ROWS: usize = MOST_TILE_ROWS;

    fn payload_words(&self, tiling: &TileMap) -> PayloadWords {
        let (engine, tiling, bits) = (self.engine.clone(), *tiling, self.problem.working_bits);
        Box::new(move |tile| TileWork::new(&*engine, &tiling, bits, &[]).payload_words(tile))
    }

    fn needs(&self, tiling: &TileMap) -> TileNeeds {
        let (engine, rows) = (&self.engine, tiling.tile_size);
        let words = scratch_words(&**engine, rows, self.problem.precision_bits) + self.whole_words(tiling);
        let scratch = Buffer::bytes_for(words) + engine.call_bytes(rows);
        let diagonals = tiling.tile_rows() as u64 * engine.diagonal_bytes(BigFloats::largest(tiling).rows);
        TileNeeds {
            slot_words: self.slot_words(tiling),
            worker_bytes: scratch + most_entry_bytes(tiling, limbs_for(self.problem.precision_bits)),
            shared_bytes: diagonals + engine.table_bytes(),
            most_updates: if engine.updates_at_once() { UPDATES_AT_ONCE } else { 1 },
        }
    }

    fn scan(&mut self, call: &DiskCall<'_>) -> Result<(usize, u64)> {
        let FactorProblem { precision_bits, working_bits, .. } = self.problem;
        let check = || if call.options.lower { Ok(()) } else { call.file.check_symmetric(call.tiling.tile_size) };
        let (problem, checksum) = FactorProblem::of_file(call.site, &call.file, precision_bits, working_bits, check)?;
        self.problem = problem;
        Ok((self.problem.order, checksum))
    }

    fn identity(&self, call: &DiskCall<'_>, checksum: u64) -> Identity {
        call.identify("cholesky", Some(self.problem.precision_bits), checksum)
    }

    fn figures(&self, ctx: &Context) -> ElementFigures {
        let FactorProblem { precision_bits, working_bits, .. } = self.problem;
        let kernel = ctx.tile_kernel(working_bits).name();
        ElementFigures { element: "big", precision_bits, working_bits, kernel, primes: self.engine.primes() }
    }

    fn run(
        &self,
        call: &DiskCall<'_>,
        tile_file: TileFile,
        clock: &mut Clock,
    ) -> Result<(TileFile, Result<RankReport>)> {
        let (engine, world, tiling) = (&*self.engine, call.site.world(), &call.tiling);
        let ctx = &telling_of_disk(call.site.ctx, tile_file.progress());
        let shape = tile_file.shape;
        let scratch_words = scratch_words(engine, tiling.tile_size, self.problem.precision_bits);
        let mut workspace = ctx.workspace();
        let workspace = &mut *workspace;
        workspace.reserve_workers(call.threads());
        let (spaces, whole_words) = (&mut workspace.workers[..call.threads()], self.whole_words(tiling));
        let locals = WorkerMemory::of_workers(spaces, scratch_words, whole_words, clock.start, call.options.spans);
        let mut locals = agreed(world, locals)?;
        let words = agreed(world, workspace.operands.words(shape.room_tiles * self.slot_words(tiling)))?;
        let tiles =
            TileStore::above_disk(ctx, self.work(tiling), words, world.rank(), tile_file, &self.problem.weights);
        let outcome = call.run_tiles(ctx, &shape, &tiles, &mut locals);
        clock.add(locals.into_iter().map(|local| local.log));
        let failed = tiles.failed();
        let failed = failed.map(|FailedRow { index, pivot }| self.not_positive(&call.file, *index, pivot.clone()));
        let outcome = agree_on_failure(world, failed, outcome);
        let tile_file = tiles.into_tile_file().expect("the tiles are above a disk");
        engine.end_operation();
        Ok((tile_file, outcome))
    }

    fn write(&self, call: &DiskCall<'_>, path: &Path, tile_file: &TileFile) -> Result<()> {
        if !self.problem.is_whole() {
            return Err(self.not_positive(&call.file, self.problem.order, None));
        }
        let (work, bits) = (self.work(&call.tiling), self.problem.precision_bits);
        write_factor(call, path, tile_file, bits, &|tile, payload, (heads, limbs)| {
            work.round_payload(tile, payload, heads, limbs, bits)
        })
    }
}

/// The error of the rank that met a row which is not positive, where one did, or `outcome`. Collective.
fn agree_on_failure(world: &dyn Transport, own: Option<Error>, outcome: Result<RankReport>) -> Result<RankReport> {
    let mut any = [u64::from(own.is_some())];
    world.all_reduce(Reduction::Max, &mut any)?;
    if any[0] == 1 {
        agree(world, own.map_or(Ok(()), Err))?;
    }
    outcome
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
        let (ctx, file) = (Context::builder().threads(1).build().unwrap(), MatrixFile::open(&path).unwrap());
        let floats = BigFloats::new(&ctx, 3, 64).unwrap();
        let error = floats.not_positive(&file, 1, None);
        let Error::NotPositiveDefinite { diagonal, more_bits, .. } = &error else { panic!("{error}") };
        assert_eq!((diagonal.to_f64(), *more_bits), (1.0, MoreBits::Unknown));
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(64).unwrap();
        let error = floats.not_positive(&file, 1, None);
        assert!(!matches!(error, Error::NotPositiveDefinite { .. }) && error.to_string().contains("A.bin"), "{error}");
    }

    #[test]
    fn a_plan_refuses_a_matrix_that_is_not_square_like_the_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("A.bin");
        write(&path, &Matrix::zeros(2, 3, 64).unwrap(), &WriteOptions::default()).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        let refused = plan_file(Site::one_process(&ctx), &path, 64, &OutOfCoreOptions::new());
        assert!(matches!(refused, Err(Error::NotSquare { rows: 2, cols: 3, .. })), "{refused:?}");
    }
}
