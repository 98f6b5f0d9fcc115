//! Triangular solves and solves from files to a file, against those in memory.

mod few;

use crate::common::definite::integer_gram;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::gallery::{Kind, Size, generate};
use sunzi::io::{self, Symmetry, WriteOptions};
use sunzi::out_of_core::{self, OutOfCoreSolveOptions, OutOfCoreSolveReport, SolvePaths};
use sunzi::rug::Float;
use sunzi::{
    Accuracy, CholeskyOptions, Context, Diag, Error, Matrix, Op, Result, Side, Symmetric, TrsmOptions, Uplo,
    solve_with, trsm_with,
};

pub const BITS: u32 = 140;

/// A matrix or triangle, right-hand sides, and a place for a directory.
pub struct Case {
    folder: tempfile::TempDir,
    pub matrix: Matrix,
    pub right: Matrix,
}

impl Case {
    /// Right-hand sides of other bits than the matrix.
    pub fn new(matrix: Matrix, columns: usize) -> Case {
        let size = Size { rows: matrix.rows(), cols: columns, precision_bits: 170 };
        let right = generate(Kind::Random, size, 9).unwrap();
        let case = Case { folder: tempfile::tempdir().unwrap(), matrix, right };
        case.write(Symmetry::General);
        case
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, symmetry: Symmetry) {
        io::write(self.path("a.bin"), &self.matrix, &WriteOptions::new().symmetry(symmetry)).unwrap();
        io::write(self.path("b.bin"), &self.right, &WriteOptions::new()).unwrap();
    }

    fn trsm(&self, ctx: &Context, options: &TrsmOptions<'_>) -> Result<OutOfCoreSolveReport> {
        self.call(|paths| out_of_core::trsm(ctx, paths, BITS, options, &OutOfCoreSolveOptions::new()))
    }

    fn solve(&self, ctx: &Context) -> Result<OutOfCoreSolveReport> {
        self.call(|paths| out_of_core::solve(ctx, paths, BITS, &OutOfCoreSolveOptions::new()))
    }

    pub fn call(&self, call: impl Fn(SolvePaths<'_>) -> Result<OutOfCoreSolveReport>) -> Result<OutOfCoreSolveReport> {
        let [matrix, right, solution, storage] = &["a.bin", "b.bin", "x.bin", "work"].map(|name| self.path(name));
        call(SolvePaths { matrix, right, solution, storage })
    }

    /// The solution is that of memory, byte for byte.
    pub fn check(&self, x: &Matrix, what: &str) {
        io::write(self.path("in_memory.bin"), x, &WriteOptions::new()).unwrap();
        let bytes = |name: &str| fs::read(self.path(name)).unwrap();
        assert!(bytes("x.bin") == bytes("in_memory.bin"), "{what}: another solution");
        fs::remove_file(self.path("x.bin")).unwrap();
    }

    /// A file of the directory whose name ends so.
    fn found(&self, ending: &str) -> PathBuf {
        let mut paths = fs::read_dir(self.path("work")).unwrap().map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|own| own == ending)).unwrap()
    }

    pub fn forget(&self) {
        fs::remove_dir_all(self.path("work")).unwrap();
    }

    /// The least limit that a call names.
    fn least(&self, call: impl Fn(&Context) -> Result<OutOfCoreSolveReport>) -> u64 {
        match call(&context(2).with_memory_bytes(Some(1))) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{other:?}"),
        }
    }
}

pub fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// A triangle whose other half is not 0, with a diagonal that rises and a row `depth` bits below the others.
pub fn triangle(order: usize, depth: u32) -> Matrix {
    let mut t = generate(Kind::Random, Size { rows: order, cols: order, precision_bits: 150 }, 4).unwrap();
    for i in 0..order {
        t.set_f64(i, i, 3.0 + i as f64).unwrap();
    }
    for col in 0..order {
        let scaled = Float::with_val(150, t.float(order / 2, col) >> depth);
        t.set_float(order / 2, col, &scaled).unwrap();
    }
    t
}

/// 1 on the diagonal, -8 below it: the unknowns of any right side outgrow it by 3 bits a row.
fn growing() -> Matrix {
    let mut t = Matrix::zeros(200, 200, 150).unwrap();
    for i in 0..200 {
        t.set_f64(i, i, 1.0).unwrap();
        if i > 0 {
            t.set_f64(i, i - 1, -8.0).unwrap();
        }
    }
    t
}

#[test]
fn triangles_of_every_kind() {
    for (order, columns) in [(17, 8), (100, 9), (131, 33)] {
        let mut case = Case::new(triangle(order, 0), columns);
        for (uplo, op) in [(Uplo::Lower, Op::NoTranspose), (Uplo::Upper, Op::Transpose)]
            .into_iter()
            .chain([(Uplo::Lower, Op::Transpose), (Uplo::Upper, Op::NoTranspose)])
        {
            let alpha = Float::with_val(60, -3) / 7u32;
            for (diag, accuracy) in [(Diag::NonUnit, Accuracy::Norm), (Diag::Unit, Accuracy::Norm)]
                .into_iter()
                .chain([(Diag::NonUnit, Accuracy::Entrywise)])
            {
                // A row far below the others is a pivot far below its column, and takes more bits entry by entry, than
                // there are tries for.
                let is_scaled = accuracy == Accuracy::Norm && op == Op::NoTranspose;
                case.matrix = triangle(order, if is_scaled { 300 } else { 0 });
                case.write(Symmetry::General);
                let options = TrsmOptions::new().uplo(uplo).op(op).diag(diag).accuracy(accuracy).alpha(&alpha);
                let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
                let what = format!("{order} x {columns}, {uplo:?} {op:?} {diag:?} {accuracy:?}");
                let report = case.trsm(&context(2), &options).unwrap();
                assert_eq!((report.disk.tiles_found, report.bands), (0, 1), "{what}");
                // Entries of 150 bits take 32 bytes.
                assert!(report.disk.read_bytes >= (16 * order * order) as u64, "{what}: {report:?}");
                case.check(&x, &what);
                case.forget();
            }
        }
    }
}

#[test]
fn the_triangles_of_a_symmetric_file_are_those_of_its_matrix() {
    let case = Case::new(integer_gram(60, 50, 150, 3), 12);
    case.write(Symmetry::SymmetricLower);
    for (uplo, op) in [(Uplo::Lower, Op::NoTranspose), (Uplo::Upper, Op::NoTranspose), (Uplo::Upper, Op::Transpose)] {
        let options = TrsmOptions::new().accuracy(Accuracy::Norm).uplo(uplo).op(op);
        let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
        case.trsm(&context(1), &options).unwrap();
        case.check(&x, &format!("{uplo:?} {op:?}"));
        case.forget();
    }
}

#[test]
fn any_limit_and_number_of_threads() {
    let case = Case::new(triangle(150, 300), 40);
    let options = TrsmOptions::new().accuracy(Accuracy::Norm);
    let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
    let least = case.least(|ctx| case.trsm(ctx, &options));
    let ctx = context(2).with_memory_bytes(Some(least - 1));
    assert!(
        matches!(case.trsm(&ctx, &options), Err(Error::MemoryLimit { minimum_bytes, .. }) if minimum_bytes == least)
    );
    for (limit, threads) in [(least, 2), (least + least / 8, 1), (2 * least, 3)] {
        let ctx = context(threads).with_memory_bytes(Some(limit));
        let report = case.trsm(&ctx, &options).unwrap();
        assert!(report.planned_bytes <= limit);
        case.check(&x, &format!("{limit} bytes, {threads} threads"));
        case.forget();
    }
}

#[test]
fn a_solve_is_that_of_memory() {
    for (order, columns, symmetry) in [(40, 8, Symmetry::SymmetricLower), (130, 21, Symmetry::General)] {
        let case = Case::new(integer_gram(order + 30, order, 160, 5), columns);
        case.write(symmetry);
        let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
        let x = solve_with(&context(1), Symmetric::lower(&case.matrix), &case.right, BITS, &options).unwrap().result;
        let report = case.solve(&context(2)).unwrap();
        assert!(report.factorisation.is_some());
        case.check(&x, &format!("{order} x {columns}"));
        // Everything is there: only the solution is written.
        let report = case.solve(&context(1)).unwrap();
        assert_eq!((report.bands, report.disk.tiles_found), (0, columns.div_ceil(8)));
        assert!(report.factorisation.is_none());
        case.check(&x, "again");
        // A damaged factor is made again, from its tiles.
        let factor = case.found("bin");
        let mut bytes = fs::read(&factor).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&factor, bytes).unwrap();
        let report = case.solve(&context(1)).unwrap();
        assert!(report.factorisation.is_some_and(|report| report.disk.tiles_found > 0));
        case.check(&x, "after damage");
        case.forget();
        let least = case.least(|ctx| case.solve(ctx));
        case.solve(&context(2).with_memory_bytes(Some(least))).unwrap();
        case.check(&x, &format!("{least} bytes"));
    }
}

#[test]
fn columns_that_outgrow_fixed_point_go_by_parts() {
    let mut case = Case::new(growing(), 40);
    // Some right sides begin so far down that they are held.
    for (col, row) in (0..40).flat_map(|col| (0..col * 5).map(move |row| (col, row))) {
        case.right.set_f64(row, col, 0.0).unwrap();
    }
    case.write(Symmetry::General);
    for op in [Op::NoTranspose, Op::Transpose] {
        let options = TrsmOptions::new().accuracy(Accuracy::Norm).op(op);
        let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
        let least = case.least(|ctx| case.trsm(ctx, &options));
        for limit in [None, Some(least), Some(least + least / 4)] {
            let report = case.trsm(&context(2).with_memory_bytes(limit), &options).unwrap();
            assert!(limit.is_none_or(|limit| report.planned_bytes <= limit));
            case.check(&x, &format!("{op:?}, {limit:?} bytes"));
            case.forget();
        }
    }
}

#[test]
fn a_run_that_was_ended_goes_on() {
    let case = Case::new(triangle(120, 300), 64);
    let options = TrsmOptions::new().accuracy(Accuracy::Norm);
    let x = trsm_with(&context(1), &case.matrix, &case.right, BITS, &options).unwrap().result;
    let least = case.least(|ctx| case.trsm(ctx, &options));
    let (mut ended, mut found) = (0, 0);
    for steps in (0..400).step_by(13) {
        let left = Arc::new(AtomicU64::new(steps));
        let goes_on =
            move |_| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let ctx = Context::builder().threads(2).progress(goes_on).build().unwrap().with_memory_bytes(Some(least));
        match case.trsm(&ctx, &options) {
            Err(Error::Cancelled) => ended += 1,
            Ok(report) => {
                found = found.max(report.disk.tiles_found);
                break;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(!case.path("x.bin").exists());
    }
    assert!(ended > 0);
    let report = case.trsm(&context(1), &options).unwrap();
    assert!(report.disk.tiles_found.max(found) > 0, "nothing was found of {ended} runs");
    case.check(&x, "after the runs that were ended");
    // A damaged panel is made again.
    let damaged = case.found("group");
    let mut bytes = fs::read(&damaged).unwrap();
    let at = bytes.len() - 5000;
    bytes[at] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let report = case.trsm(&context(1), &options).unwrap();
    assert_eq!((report.disk.groups_repaired, report.bands), (1, 1));
    case.check(&x, "after damage");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let case = Case::new(triangle(40, 300), 7);
    let entrywise = TrsmOptions::new().accuracy(Accuracy::Entrywise);
    let error = case.trsm(&context(1), &entrywise).unwrap_err().to_string();
    assert!(error.contains("7 right-hand sides of 40 rows are too few"), "{error}");
    assert!(!case.path("work").exists());
    let case = Case::new(growing(), 9);
    let error = case.trsm(&context(1), &entrywise).unwrap_err().to_string();
    assert!(error.contains("right-hand side 1 (counted from 1) exceed the range of fixed-point"), "{error}");
    let mut case = Case::new(triangle(40, 300), 8);
    let right = case.trsm(&context(1), &TrsmOptions::new().accuracy(Accuracy::Norm).side(Side::Right)).unwrap_err();
    assert!(right.to_string().contains("must be on the left"), "{right}");
    case.trsm(&context(1), &TrsmOptions::new().accuracy(Accuracy::Norm)).unwrap();
    let other = case.trsm(&context(1), &TrsmOptions::new().accuracy(Accuracy::Norm).op(Op::Transpose)).unwrap_err();
    assert!(matches!(other, Error::StorageMismatch { .. }), "{other}");
    case.matrix.set_f64(11, 11, 0.0).unwrap();
    case.write(Symmetry::General);
    assert!(matches!(
        case.trsm(&context(1), &TrsmOptions::new().accuracy(Accuracy::Norm)),
        Err(Error::Singular { index: 11 })
    ));
    case.right = Matrix::zeros(39, 8, BITS).unwrap();
    case.write(Symmetry::General);
    assert!(matches!(
        case.trsm(&context(1), &TrsmOptions::new().accuracy(Accuracy::Norm)),
        Err(Error::ShapeMismatch { right_rows: 39, .. })
    ));
}
