//! The verifier of Cholesky factors in files, against the one in memory.

use crate::common::definite::integer_gram;
use std::path::PathBuf;
use sunzi::io::{self, Symmetry, WriteOptions};
use sunzi::rug::Float;
use sunzi::verify::{FileFactorOptions, Verification, VerifyOptions, verify_cholesky, verify_cholesky_files};
use sunzi::{Context, Error, Matrix, Result, Symmetric, Uplo};

const BITS: u32 = 150;

/// A matrix and what may be its factor, in memory and in files.
struct Case {
    folder: tempfile::TempDir,
    a: Matrix,
    l: Matrix,
}

impl Case {
    fn new(order: usize) -> Case {
        let a = integer_gram(order + 5, order, 240, 7);
        let ctx = Context::builder().threads(1).build().unwrap();
        let l = sunzi::cholesky(&ctx, Symmetric::lower(&a), BITS).unwrap().into_factor();
        Case { folder: tempfile::tempdir().unwrap(), a, l }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, symmetry: Symmetry) {
        io::write(self.path("a.bin"), &self.a, &WriteOptions::new().symmetry(symmetry)).unwrap();
        io::write(self.path("l.bin"), &self.l, &WriteOptions::new()).unwrap();
    }

    fn in_files(&self, ctx: &Context, triangle: Option<Uplo>) -> Result<Verification> {
        let options = FileFactorOptions::new().triangle(triangle).seed(5);
        verify_cholesky_files(ctx, (&self.path("a.bin"), &self.path("l.bin")), BITS, &options)
    }

    /// Both give one verdict, with the same worst entry at the same place.
    fn compare(&self, ctx: &Context, triangle: Option<Uplo>) -> bool {
        let uplo = triangle.unwrap_or_default();
        let a = if uplo == Uplo::Lower { Symmetric::lower(&self.a) } else { Symmetric::upper(&self.a) };
        let in_memory = verify_cholesky(ctx, a, &self.l, BITS, &VerifyOptions::new().uplo(uplo).seed(5));
        let told = |found: Result<Verification>| match found {
            Ok(found) => Ok((found.entry_count, found.worst_entry, found.worst_place)),
            Err(error) => Err(error.to_string()),
        };
        let in_memory = told(in_memory);
        assert_eq!(told(self.in_files(ctx, triangle)), in_memory, "without a limit");
        let least = match self.in_files(&ctx.with_memory_bytes(Some(1)), triangle) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{other:?}"),
        };
        let refused = self.in_files(&ctx.with_memory_bytes(Some(least - 1)), triangle);
        assert!(matches!(refused, Err(Error::MemoryLimit { minimum_bytes, .. }) if minimum_bytes == least));
        assert_eq!(told(self.in_files(&ctx.with_memory_bytes(Some(least)), triangle)), in_memory, "{least} bytes");
        in_memory.is_ok()
    }
}

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

/// Changes one bit of a number that is not 0.
fn flip(matrix: &mut Matrix, row: usize, col: usize, bit: usize) {
    let at = row + col * matrix.rows();
    let limbs = matrix.limbs_per_element();
    let limb = limbs - 1 - bit / 64;
    matrix.parts_mut().1[at * limbs + limb] ^= 1 << (63 - bit % 64);
}

#[test]
fn files_and_memory_agree_on_good_and_on_damaged_factors() {
    for (order, threads) in [(1, 1), (64, 2), (65, 1), (150, 2)] {
        let mut case = Case::new(order);
        for symmetry in [Symmetry::General, Symmetry::SymmetricLower] {
            case.write(symmetry);
            assert!(case.compare(&context(threads), None), "{order}");
        }
        let (row, col) = (order - 1, order / 3);
        flip(&mut case.l, row, col, 90);
        case.write(Symmetry::SymmetricLower);
        assert!(!case.compare(&context(threads), Some(Uplo::Lower)), "a bit of the factor, {order}");
        flip(&mut case.l, row, col, 90);
        // Far below the bound.
        flip(&mut case.l, row, col, 149);
        case.write(Symmetry::General);
        assert!(case.compare(&context(threads), None), "the last bit of the factor, {order}");
        let mut changed = case.a.clone();
        flip(&mut changed, row, col, 3);
        changed.set(col, row, changed.clone().get(row, col));
        case.a = changed;
        case.write(Symmetry::General);
        assert!(!case.compare(&context(threads), None), "a bit of the matrix, {order}");
    }
}

#[test]
fn upper_factors_and_named_triangles() {
    let mut case = Case::new(90);
    case.l = case.l.transposed().to_matrix().unwrap();
    case.write(Symmetry::SymmetricLower);
    assert!(case.compare(&context(2), Some(Uplo::Upper)));
    assert!(!case.compare(&context(2), Some(Uplo::Lower)), "an upper factor is not a lower one");
    // What stands below the diagonal does not count.
    case.a.set_f64(50, 3, 1e9).unwrap();
    case.write(Symmetry::General);
    assert!(case.compare(&context(1), Some(Uplo::Upper)));
    case.l = case.l.transposed().to_matrix().unwrap();
    case.write(Symmetry::General);
    assert!(matches!(case.in_files(&context(1), None), Err(Error::NotSymmetric { row: 50, column: 3 })));
}

#[test]
fn rows_of_any_spread_are_judged_alike() {
    let mut case = Case::new(80);
    // Rows of the factor are scaled, and one entry is far below the rest of its row.
    for (row, power) in [(10, 300), (40, -700), (79, 2000)] {
        for col in 0..80 {
            let scaled = case.a.float(row, col) << power;
            case.a.set_float(row, col, &scaled).unwrap();
            let scaled = case.a.float(col, row) << power;
            case.a.set_float(col, row, &scaled).unwrap();
        }
    }
    case.l = sunzi::cholesky(&context(1), Symmetric::lower(&case.a), BITS).unwrap().into_factor();
    for (row, col, power) in [(60, 2, -900), (79, 0, -50), (3, 1, -3000)] {
        let tiny = Float::with_val(BITS, 1) << power;
        case.l.set_float(row, col, &tiny).unwrap();
    }
    case.write(Symmetry::General);
    case.compare(&context(2), Some(Uplo::Lower));
    case.l = sunzi::cholesky(&context(1), Symmetric::lower(&case.a), BITS).unwrap().into_factor();
    // Column 0 of the factor is exact, so that an entry far below all others changes nothing that counts.
    let (exact, tiny) = (case.l.float(70, 0), Float::with_val(BITS, 1) >> 5000);
    case.l.set_float(70, 0, &exact).unwrap();
    case.l.set_float(70, 69, &tiny).unwrap();
    case.write(Symmetry::General);
    case.compare(&context(2), Some(Uplo::Lower));
}

#[test]
fn damaged_files_and_wrong_shapes_are_refused() {
    let mut case = Case::new(40);
    case.write(Symmetry::SymmetricLower);
    for name in ["a.bin", "l.bin"] {
        let right = std::fs::read(case.path(name)).unwrap();
        for at in [right.len() / 3, right.len() / 2, right.len() - 20] {
            let mut bytes = right.clone();
            bytes[at] ^= 4;
            std::fs::write(case.path(name), &bytes).unwrap();
            let error = case.in_files(&context(1), None).unwrap_err();
            assert!(matches!(error, Error::Format { .. }), "{name}, byte {at}: {error}");
        }
        std::fs::write(case.path(name), &right).unwrap();
    }
    case.l = Matrix::zeros(40, 39, BITS).unwrap();
    case.write(Symmetry::General);
    assert!(matches!(case.in_files(&context(1), None), Err(Error::ShapeMismatch { right_cols: 39, .. })));
    case.a = Matrix::zeros(40, 39, BITS).unwrap();
    case.write(Symmetry::General);
    assert!(matches!(case.in_files(&context(1), None), Err(Error::NotSquare { .. })));
}
