//! Cholesky factorisations of doubles from file to file, against those in memory: the same bits.

use super::cholesky::options;
use super::{damage, ended_after, groups};
use crate::common::definite::{integer_gram, set_both};
use crate::common::{in_turn, seeds};
use std::fs;
use std::path::PathBuf;
use sunzi::advanced::tile::RankGrid;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::double::{DoubleMatrix, DoubleOptions, double_cholesky};
use sunzi::io::{self, Symmetry, WriteOptions};
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCoreReport};
use sunzi::rug::Float;
use sunzi::{Context, Error, Matrix, Result};

/// A positive definite matrix whose entries look random in all of their bits.
fn definite(order: usize, precision_bits: u32) -> Matrix {
    let mut matrix = Matrix::zeros(order, order, precision_bits).unwrap();
    for (i, j) in (0..order).flat_map(|j| (j..order).map(move |i| (i, j))) {
        let hash = |salt: u64| ((i as u64) << 32 | j as u64).wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = Float::with_val(precision_bits, hash(3)) + (Float::with_val(precision_bits, hash(1 << 50)) >> 64);
        let noise = (noise >> 64) - 0.5f64;
        let value = if i == j { noise + order as f64 } else { noise };
        matrix.set_float(i, j, &value).unwrap();
        matrix.set_float(j, i, &value).unwrap();
    }
    matrix
}

/// A matrix in a file, and a place for a factor and a storage directory.
struct Case {
    folder: tempfile::TempDir,
    matrix: Matrix,
}

impl Case {
    fn new(matrix: Matrix) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let options = WriteOptions::new().symmetry(Symmetry::SymmetricLower);
        io::write(folder.path().join("a.bin"), &matrix, &options).unwrap();
        Case { folder, matrix }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, ctx: &Context, options: &OutOfCoreOptions) -> Result<OutOfCoreReport> {
        let (matrix, factor) = (self.path("a.bin"), self.path("l.bin"));
        out_of_core::double_cholesky(ctx, (&matrix, &factor), &self.path("tiles"), options)
    }

    fn on_ranks(&self, ranks: usize, ctx: &Context, options: &OutOfCoreOptions) -> Vec<Result<OutOfCoreReport>> {
        let (matrix, factor, tiles) = (self.path("a.bin"), self.path("l.bin"), self.path("tiles"));
        local::run(ranks, |rank| {
            let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
            let files = (matrix.as_path(), factor.as_path());
            let made = out_of_core::double_cholesky_over_ranks(ctx, &team, files, &tiles, options);
            team.close().unwrap();
            made
        })
    }

    /// The factor in memory with tiles of so many rows, each entry rounded by MPFR.
    fn in_memory(&self, tile_rows: usize) -> Result<Vec<f64>> {
        let ctx = Context::builder().threads(2).build().unwrap();
        let (order, grid) = (self.matrix.rows(), RankGrid { rows: 1, cols: 1 });
        let entry = |i: usize, j: usize| self.matrix.float(i, j).to_f64();
        let mut tiles = DoubleMatrix::from_fn(0, order, tile_rows, grid, entry)?;
        double_cholesky(&ctx, local::alone(), &mut tiles, &DoubleOptions::new())?;
        Ok(tiles.gather(local::alone(), 0)?.expect("one rank has all"))
    }

    /// The file is what a factor in memory would be as a file, byte for byte.
    fn check(&self, tile_rows: usize, what: &str) {
        let (order, entries) = (self.matrix.rows(), self.in_memory(tile_rows).unwrap());
        let factor = Matrix::from_f64s(order, order, 53, &entries).unwrap();
        io::write(self.path("in_memory.bin"), &factor, &WriteOptions::default()).unwrap();
        let read = |name: &str| fs::read(self.path(name)).unwrap();
        assert!(read("l.bin") == read("in_memory.bin"), "{what}: another factor");
        fs::remove_file(self.path("l.bin")).unwrap();
    }

    fn forget_tiles(&self) {
        fs::remove_dir_all(self.path("tiles")).unwrap();
    }

    /// The least limit under which the call runs.
    fn least_limit(&self, ctx: &Context, options: &OutOfCoreOptions) -> u64 {
        match out_of_core::plan_double_cholesky(&ctx.with_memory_bytes(Some(1)), &self.path("a.bin"), options) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{other:?}"),
        }
    }
}

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

#[test]
fn the_bits_are_those_of_memory_for_all_shapes_limits_and_threads() {
    let shapes = [(0, 8), (1, 8), (8, 8), (9, 8), (67, 8), (200, 24), (130, 130)];
    for (at, (order, tile_rows)) in shapes.into_iter().enumerate() {
        let case = Case::new(definite(order, if order % 2 == 0 { 53 } else { 150 }));
        let options = options().tile_rows(tile_rows);
        for threads in [1, 2, 3] {
            let ctx = context(threads);
            let least = case.least_limit(&ctx, &options);
            let limits = [Some(least), Some(least + least / 100), Some(least + least / 12), None];
            // Two of the four limits, the others with the next number of threads.
            for limit in in_turn(2, at + threads).flat_map(|which| [limits[which], limits[which + 2]]) {
                let report = case.run(&ctx.with_memory_bytes(limit), &options).unwrap();
                let what = format!("{order} rows, {threads} threads, limit {limit:?}: {:?}", report.plan);
                case.check(report.plan.tile_rows, &what);
                assert!(report.plan.planned_bytes <= limit.unwrap_or(u64::MAX), "{what}");
                assert_eq!((report.element, report.precision_bits), ("double", 53));
                case.forget_tiles();
            }
            let refused = case.run(&ctx.with_memory_bytes(Some(least - 1)), &options).unwrap_err();
            assert!(matches!(refused, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == least));
        }
    }
}

/// Another order of the updates gives other bits, or the test above would show nothing.
#[test]
fn other_tiles_give_other_bits() {
    let case = Case::new(definite(200, 53));
    let (one, other) = (case.in_memory(24).unwrap(), case.in_memory(32).unwrap());
    assert!(one.iter().zip(&other).any(|(one, other)| one.to_bits() != other.to_bits()));
}

#[test]
fn the_file_of_ranks_is_that_of_one_process() {
    let case = Case::new(definite(150, 53));
    let (ctx, choices) = (context(2), options().tile_rows(16));
    for (ranks, grid) in [(2, None), (3, Some((3, 1))), (4, None), (6, Some((2, 2)))] {
        let options = choices.grid(grid.map(|(rows, cols)| RankGrid { rows, cols }));
        let refused = case.on_ranks(ranks, &ctx.with_memory_bytes(Some(1)), &options);
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = refused[0] else { panic!("{refused:?}") };
        for limit in [Some(minimum_bytes), Some(minimum_bytes + minimum_bytes / 30), None] {
            for outcome in case.on_ranks(ranks, &ctx.with_memory_bytes(limit), &options) {
                let report = outcome.unwrap();
                assert!(report.plan.planned_bytes <= limit.unwrap_or(u64::MAX) / ranks as u64);
                assert_eq!(report.ranks.unwrap().ranks, ranks);
            }
            case.check(16, &format!("{ranks} ranks, {grid:?}, limit {limit:?}"));
            case.forget_tiles();
        }
    }
}

#[test]
fn all_ranks_name_the_pivot() {
    let mut matrix = definite(90, 53);
    matrix.set_f64(61, 61, -3.0).unwrap();
    for outcome in Case::new(matrix).on_ranks(4, &context(2), &options().tile_rows(16)) {
        assert!(matches!(&outcome, Err(Error::NotPositiveDefinite { index: 61, .. })), "{outcome:?}");
    }
}

#[test]
fn a_file_with_both_triangles_must_be_symmetric_unless_one_counts() {
    let mut case = Case::new(definite(40, 53));
    let (ctx, options) = (context(2), options().tile_rows(8));
    case.matrix.set_f64(3, 29, f64::MAX).unwrap();
    io::write(case.path("a.bin"), &case.matrix, &WriteOptions::default()).unwrap();
    match case.run(&ctx, &options).unwrap_err() {
        Error::NotSymmetric { row, column } => assert_eq!((row, column), (29, 3)),
        other => panic!("{other:?}"),
    }
    case.run(&ctx, &options.lower(true)).unwrap();
    case.check(8, "the lower triangle counts");
}

/// Entries beyond the range are refused by their place, those below it become what MPFR makes of them.
#[test]
fn entries_are_rounded_to_doubles_or_refused() {
    let mut matrix = definite(20, 100);
    let tiny = Float::with_val(100, 3) >> 1076;
    set_both(&mut matrix, 7, 2, &tiny);
    set_both(&mut matrix, 8, 2, &(tiny >> 3));
    let case = Case::new(matrix.clone());
    case.run(&context(1), &options().tile_rows(8)).unwrap();
    case.check(8, "small entries");
    // Rounded up, it is beyond the largest double.
    let all_ones = (Float::with_val(100, 1) << 1024) - (Float::with_val(100, 1) << 960);
    for (value, exponent) in [(all_ones, 1024), (Float::with_val(100, -1) << 5000, 5001)] {
        let mut matrix = matrix.clone();
        set_both(&mut matrix, 13, 5, &value);
        set_both(&mut matrix, 17, 5, &value);
        let case = Case::new(matrix);
        let refused = case.run(&context(1), &options()).unwrap_err();
        assert!(
            matches!(refused, Error::ExponentRange { row: 13, column: 5, exponent: e, .. } if e == exponent),
            "{refused}"
        );
        assert!(!case.path("tiles").exists() && !case.path("l.bin").exists());
    }
}

/// Ends calls after more and more work, and begins each again under other limits and threads.
#[test]
fn a_run_that_is_begun_again_goes_on_and_ends_with_the_same_bits() {
    for seed in seeds(3) {
        let case = Case::new(definite(120, 53));
        let options = options().tile_rows(16);
        let least = case.least_limit(&context(3), &options);
        let mut found = None;
        for round in 0..40 {
            let most = if round > 30 { u64::MAX } else { 3 + (seed * 7 + round) % 11 };
            let limit = least + (round % 5) * (least / 60);
            let ctx = ended_after(most, "factor", (1 + (round % 3) as usize, limit));
            match case.run(&ctx, &options) {
                Ok(report) => {
                    found = Some(report.disk.tiles_found);
                    break;
                }
                Err(Error::Cancelled) => assert!(!case.path("l.bin").exists()),
                Err(error) => panic!("{error}"),
            }
        }
        case.check(16, "resumed");
        assert!(found.is_some_and(|tiles| tiles > 0), "the last run found nothing: {found:?}");
        let report = case.run(&context(1), &options).unwrap();
        assert_eq!(report.disk.tiles_found, 8 * 9 / 2);
        case.check(16, "found whole");
    }
}

#[test]
fn damaged_tiles_are_made_again() {
    let case = Case::new(definite(100, 53));
    let (ctx, options) = (context(2), options().tile_rows(16));
    case.run(&ctx, &options).unwrap();
    case.check(16, "whole");
    for seed in seeds(8) {
        let all = groups(&case.path("tiles"));
        damage(&all[(seed as usize * 5) % all.len()], seed);
        fs::remove_file(&all[(seed as usize * 3 + 1) % all.len()]).ok();
        let report = case.run(&ctx, &options).unwrap();
        case.check(16, "repaired");
        assert!(report.disk.groups_repaired <= 1, "{report:?}");
    }
}

#[test]
fn a_directory_of_other_elements_is_refused() {
    let case = Case::new(integer_gram(45, 40, 53, 1));
    let (ctx, options) = (context(1), options().tile_rows(8));
    let files = (case.path("a.bin"), case.path("l.bin"));
    let big = || out_of_core::cholesky(&ctx, (&files.0, &files.1), &case.path("tiles"), 53, &options);
    let refused = |error: Error| {
        let text = error.to_string();
        assert!(matches!(error, Error::StorageMismatch { .. }), "{text}");
        text
    };
    case.run(&ctx, &options).unwrap();
    let text = refused(big().unwrap_err());
    assert!(text.contains("operation is 'cholesky of doubles' there and 'cholesky' in this run"), "{text}");
    assert!(refused(case.run(&ctx, &options.tile_rows(16)).unwrap_err()).contains("tile_rows"));
    case.forget_tiles();
    big().unwrap();
    let text = refused(case.run(&ctx, &options).unwrap_err());
    assert!(text.contains("operation is 'cholesky' there and 'cholesky of doubles' in this run"), "{text}");
}

#[test]
fn what_is_not_positive_definite_fails_where_it_fails_in_memory() {
    for (row, value) in [(0, 0.0), (7, -1.0), (8, 1e-300), (33, 0.01), (39, -1e300)] {
        let mut matrix = definite(40, 53);
        matrix.set_f64(row, row, value).unwrap();
        let case = Case::new(matrix);
        let expected = case.in_memory(8).map(drop).unwrap_err();
        let failed = case.run(&context(2), &options().tile_rows(8)).unwrap_err();
        assert!(matches!(failed, Error::NotPositiveDefinite { index, .. } if index == row), "{failed}");
        assert_eq!(failed.to_string(), expected.to_string());
        assert!(!case.path("l.bin").exists());
    }
}

#[test]
fn what_is_read_is_what_was_counted() {
    let case = Case::new(definite(200, 53));
    let (ctx, options) = (context(1), options().tile_rows(8));
    let least = case.least_limit(&ctx, &options);
    let report = case.run(&ctx.with_memory_bytes(Some(least + (1 << 16))), &options).unwrap();
    case.check(8, "counted");
    let plan = &report.plan;
    assert!(plan.traffic.read_bytes() as f64 <= 1.2 * plan.least_read_bytes as f64, "{plan:?}");
    // The file of the factor reads every tile once more. A disk that answers late changes a little.
    let read = (report.disk.read_bytes - plan.traffic.written_bytes) as f64;
    assert!(read >= 0.8 * plan.traffic.read_bytes() as f64, "{read}: {plan:?}");
    assert!(read <= 1.2 * plan.least_read_bytes as f64, "{read}: {plan:?}");
    assert!(report.disk.reused_bytes > 0);
}
