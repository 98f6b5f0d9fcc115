//! Cholesky factorisations from file to file, against those in memory.

use super::{damage, ended_after, groups};
use crate::common::definite::{integer_gram, set_both};
use crate::common::{by_norms, forced, in_turn, kernel_names, seeds};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::storage::Caching;
use sunzi::devices::Device;
use sunzi::io::{self, Symmetry, WriteOptions};
use sunzi::out_of_core::{self, OutOfCoreOptions};
use sunzi::rug::Float;
use sunzi::{Context, DiskProgress, Error, Matrix, Progress};

/// A matrix in a file, its factor of one call in memory in another one, and a place for a storage directory.
pub(super) struct Case {
    folder: tempfile::TempDir,
    matrix: Matrix,
    pub precision_bits: u32,
}

impl Case {
    pub fn new(matrix: Matrix, precision_bits: u32) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let options = WriteOptions::new().symmetry(Symmetry::SymmetricLower);
        io::write(folder.path().join("a.bin"), &matrix, &options).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        if let Ok(factor) = by_norms::cholesky(&ctx, &matrix, precision_bits) {
            io::write(folder.path().join("in_memory.bin"), factor.factor(), &WriteOptions::default()).unwrap();
        }
        Case { folder, matrix, precision_bits }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, ctx: &Context, options: &OutOfCoreOptions) -> sunzi::Result<out_of_core::OutOfCoreReport> {
        let (matrix, factor) = (self.path("a.bin"), self.path("l.bin"));
        out_of_core::cholesky(ctx, (&matrix, &factor), &self.path("tiles"), self.precision_bits, options)
    }

    /// The factor is that of memory, byte for byte.
    pub fn check(&self, what: &str) {
        assert!(same(&self.path("l.bin"), &self.path("in_memory.bin")), "{what}: another factor");
        fs::remove_file(self.path("l.bin")).unwrap();
    }

    pub fn forget_tiles(&self) {
        fs::remove_dir_all(self.path("tiles")).unwrap();
    }

    /// The least limit under which the call runs.
    fn least_limit(&self, ctx: &Context, options: &OutOfCoreOptions) -> u64 {
        let ctx = ctx.with_memory_bytes(Some(1));
        match out_of_core::plan_cholesky(&ctx, &self.path("a.bin"), self.precision_bits, options) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{other:?}"),
        }
    }
}

fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}

pub(super) fn options() -> OutOfCoreOptions {
    // The cache spares the tests' disk; what goes past it is tested with the storage.
    OutOfCoreOptions::new().caching(Caching::Cached)
}

#[test]
fn the_file_is_that_of_memory_for_all_shapes_limits_threads_and_kernels() {
    let shapes = [(0, 8, 1), (1, 8, 2), (8, 8, 1), (9, 8, 2), (67, 8, 2), (130, 24, 2)];
    for (at, (order, tile_rows, threads)) in shapes.into_iter().enumerate() {
        let case = Case::new(integer_gram(order + 5, order, 150, 1), 150);
        for (turn, kernel) in kernel_names().into_iter().enumerate() {
            let ctx = forced(kernel, threads).build().unwrap();
            let options = options().tile_rows(tile_rows);
            let least = case.least_limit(&ctx, &options);
            let limits = [Some(least), Some(least + least / 40), Some(least + least / 4), None];
            // Two of the four limits, the others with the next kernel.
            for limit in in_turn(2, at + turn).flat_map(|which| [limits[which], limits[which + 2]]) {
                let report = case.run(&ctx.with_memory_bytes(limit), &options).unwrap();
                let what = format!("{kernel}, {order} rows, limit {limit:?}: {:?}", report.plan);
                case.check(&what);
                assert!(report.plan.planned_bytes <= limit.unwrap_or(u64::MAX), "{what}");
                case.forget_tiles();
            }
            let refused = case.run(&ctx.with_memory_bytes(Some(least - 1)), &options).unwrap_err();
            assert!(matches!(refused, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == least));
        }
    }
}

#[test]
fn a_file_with_both_triangles_must_be_symmetric_unless_one_counts() {
    let mut case = Case::new(integer_gram(45, 40, 100, 1), 100);
    let plain = |matrix: &Matrix| io::write(case.path("a.bin"), matrix, &WriteOptions::default()).unwrap();
    let (ctx, options) = (Context::builder().threads(2).build().unwrap(), options().tile_rows(8));
    plain(&case.matrix);
    case.run(&ctx, &options).unwrap();
    case.check("both triangles");
    let mut other = case.matrix.clone();
    other.set_f64(3, 29, 0.5).unwrap();
    plain(&other);
    case.matrix = other;
    case.forget_tiles();
    match case.run(&ctx, &options).unwrap_err() {
        Error::NotSymmetric { row, column } => assert_eq!((row, column), (29, 3)),
        other => panic!("{other:?}"),
    }
    case.run(&ctx, &options.lower(true)).unwrap();
    case.check("the lower triangle counts");
}

#[test]
fn a_device_gives_the_same_file() {
    let case = Case::new(integer_gram(95, 90, 150, 1), 150);
    let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions::default()));
    let ctx = Context::builder().threads(2).devices(vec![device]).kernel("cuda-i8").build().unwrap();
    let options = options().tile_rows(16);
    let least = case.least_limit(&ctx, &options);
    for limit in [least, least + least / 40] {
        case.run(&ctx.with_memory_bytes(Some(limit)), &options).unwrap();
        case.check("on a device");
        case.forget_tiles();
    }
}

#[test]
fn what_is_read_is_what_was_counted() {
    let case = Case::new(integer_gram(200 + 5, 200, 100, 1), 100);
    let options = options().tile_rows(8);
    let (last, seen) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (told, phases) = (last.clone(), seen.clone());
    let ctx = Context::builder().threads(1).progress(move |progress: Progress| {
        if progress.phase == "factor" {
            *told.lock().unwrap() = progress.disk;
        } else if progress.phase == "read" {
            *phases.lock().unwrap() = Some(progress.disk.is_none());
        }
        true
    });
    let ctx = ctx.build().unwrap();
    let least = case.least_limit(&ctx, &options);
    let report = case.run(&ctx.with_memory_bytes(Some(least + (1 << 17))), &options).unwrap();
    case.check("counted");
    let told: DiskProgress = last.lock().unwrap().expect("the disk is told of");
    assert!(told.read_bytes > 0 && told.read_bytes <= report.disk.read_bytes, "{told:?}");
    assert!(told.written_bytes <= report.disk.written_bytes && told.reused_bytes <= report.disk.reused_bytes);
    assert!(report.disk.reused_bytes > 0, "a step of a block reads tiles that the last one has read");
    assert_eq!(*seen.lock().unwrap(), Some(true), "the pass over the file is no work of the directory");
    let plan = &report.plan;
    assert!(plan.traffic.read_bytes() as f64 <= 1.2 * plan.least_read_bytes as f64, "{plan:?}");
    // Rounding reads every tile once more. A disk that answers late changes a little.
    let read = (report.disk.read_bytes - plan.traffic.written_bytes) as f64;
    let counted = plan.traffic.read_bytes() as f64;
    assert!(read <= 1.2 * plan.least_read_bytes as f64, "{read}: {plan:?}");
    assert!(read >= 0.8 * counted, "{read} of {counted}: {plan:?}");
}

/// Ends calls after more and more work, and begins each again under other limits and threads.
#[test]
fn a_run_that_is_begun_again_goes_on_and_ends_with_the_same_bytes() {
    for seed in seeds(3) {
        let case = Case::new(integer_gram(120 + 5, 120, 120, 1), 120);
        let options = options().tile_rows(16);
        let base = Context::builder().threads(1).build().unwrap();
        // With the least memory there is one buffer to write from: a run that fails must not keep it.
        let least = case.least_limit(&Context::builder().threads(3).build().unwrap(), &options);
        let mut found = Vec::new();
        for round in 0..40 {
            let most = if round > 30 { u64::MAX } else { 3 + (seed * 7 + round) % 11 };
            let limit = least * (1 + round % 2) + (round % 5) * (least / 3);
            let ctx = ended_after(most, "factor", (1 + (round % 3) as usize, limit));
            match case.run(&ctx, &options) {
                Ok(report) => {
                    found.push(report.disk.tiles_found);
                    break;
                }
                Err(Error::Cancelled) => assert!(!case.path("l.bin").exists()),
                Err(error) => panic!("{error}"),
            }
        }
        case.check("resumed");
        assert!(found.first().is_some_and(|&tiles| tiles > 0), "the last run found nothing: {found:?}");
        // Another run finds everything.
        let report = case.run(&base, &options).unwrap();
        assert_eq!(report.disk.tiles_found, 8 * 9 / 2);
        case.check("found whole");
    }
}

#[test]
fn damaged_tiles_are_made_again() {
    for seed in seeds(8) {
        let case = Case::new(integer_gram(100 + 5, 100, 100, 1), 100);
        let options = options().tile_rows(16);
        let ctx = Context::builder().threads(2).build().unwrap();
        case.run(&ctx, &options).unwrap();
        case.check("whole");
        let groups = groups(&case.path("tiles"));
        damage(&groups[(seed as usize * 5) % groups.len()], seed);
        fs::remove_file(&groups[(seed as usize * 3 + 1) % groups.len()]).ok();
        let report = case.run(&ctx, &options).unwrap();
        case.check("repaired");
        assert!(report.disk.groups_repaired <= 1, "{report:?}");
    }
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let case = Case::new(integer_gram(40 + 5, 40, 100, 1), 100);
    let ctx = Context::builder().threads(1).build().unwrap();
    let options = options().tile_rows(8);
    case.run(&ctx, &options).unwrap();
    let other = Case { precision_bits: 90, folder: tempfile::tempdir().unwrap(), matrix: case.matrix.clone() };
    let (matrix, factor) = (case.path("a.bin"), case.path("other.bin"));
    let refused = out_of_core::cholesky(&ctx, (&matrix, &factor), &case.path("tiles"), other.precision_bits, &options);
    assert!(matches!(refused.unwrap_err(), Error::StorageMismatch { .. }));
    let refused = case.run(&ctx, &options.tile_rows(16)).unwrap_err();
    assert!(refused.to_string().contains("tile_rows"), "{refused}");
    assert!(!factor.exists());
}

#[test]
fn what_is_not_positive_definite_fails_where_it_fails_in_memory() {
    for (row, beyond) in [(0, false), (7, false), (8, false), (33, false), (20, true), (39, true)] {
        let mut matrix = integer_gram(40 + 5, 40, 100, 1);
        let value = if beyond { Float::with_val(100, -1) } else { matrix.float(row, row) >> 40 };
        set_both(&mut matrix, row, row, &value);
        let case = Case::new(matrix, 100);
        let ctx = Context::builder().threads(2).build().unwrap();
        let expected = by_norms::cholesky(&ctx, &case.matrix, 100).unwrap_err();
        let failed = case.run(&ctx, &options().tile_rows(8)).unwrap_err();
        let index = |error: &Error| match error {
            Error::NotPositiveDefinite { index, .. } => *index,
            other => panic!("{other}"),
        };
        assert_eq!(index(&failed), index(&expected));
        assert!(!case.path("l.bin").exists());
    }
}

/// Sums over more columns than a tile of a factor may have would be wrong: it has fewer, whatever is asked for.
#[test]
fn tiles_of_too_many_rows_have_as_many_as_there_may_be() {
    let case = Case::new(integer_gram(25, 20, 150, 1), 150);
    for kernel in kernel_names() {
        let ctx = forced(kernel, 1).build().unwrap();
        for tile_rows in [4088, 4089, 4096, 1 << 40, usize::MAX] {
            let options = options().tile_rows(tile_rows);
            let plan = out_of_core::plan_cholesky(&ctx, &case.path("a.bin"), 150, &options).unwrap();
            assert_eq!(plan.tile_rows, 4088, "{kernel}, {tile_rows} asked for");
            case.run(&ctx, &options).unwrap();
            case.check(&format!("{kernel}, {tile_rows} asked for"));
            case.forget_tiles();
        }
    }
}

/// Of a file with other numbers, of the same shape and precision, a directory with finished tiles is refused.
#[test]
fn tiles_of_another_matrix_are_not_taken_for_its_own() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let case = Case::new(integer_gram(45, 40, 100, 1), 100);
    case.run(&ctx, &options()).unwrap();
    case.check("the first matrix");
    let symmetric = WriteOptions::new().symmetry(Symmetry::SymmetricLower);
    io::write(case.path("a.bin"), &integer_gram(45, 40, 100, 2), &symmetric).unwrap();
    let error = case.run(&ctx, &options()).unwrap_err();
    assert!(error.to_string().contains("matrix_checksum"), "{error}");
    assert!(!case.path("l.bin").exists());
    case.forget_tiles();
    case.run(&ctx, &options()).unwrap();
    assert!(!same(&case.path("l.bin"), &case.path("in_memory.bin")));
}
