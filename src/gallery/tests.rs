//! Tests of the generators: formulas in exact fractions, bits that do not change, accuracy of the derivatives.

use super::*;
use crate::io;
use rug::{Float, Integer, Rational};

const SMALL: Size = Size { rows: 7, cols: 5, precision_bits: 100 };

#[test]
fn known_entries_are_the_rounded_fractions() {
    for (name, kind) in KINDS {
        let exact = |i: u64, j: u64| -> Option<Rational> {
            let (least, most) = (i.min(j) + 1, i.max(j) + 1);
            Some(match kind {
                Kind::Hilbert => Rational::from((1, i + j + 1)),
                Kind::Cauchy => Rational::from((1, i + j + 2)),
                Kind::Lehmer => Rational::from((least, most)),
                Kind::Minij => Rational::from(least),
                Kind::Pascal => Rational::from(Integer::from(i + j).binomial(i as u32)),
                Kind::Moler => Rational::from(if i == j { least as i64 } else { least as i64 - 2 }),
                Kind::Kms => Rational::from((1, 1u64 << (most - least))),
                Kind::Lauchli if i == 0 => Rational::from(1),
                Kind::Lauchli => Rational::from(u32::from(i == j + 1)) >> 50,
                _ => return None,
            })
        };
        for size in [SMALL, Size { rows: 4, cols: 9, ..SMALL }] {
            let matrix = generate(kind, size, 0).unwrap();
            assert_eq!((matrix.rows(), matrix.cols(), matrix.precision_bits()), (size.rows, size.cols, 100), "{name}");
            for (i, j) in (0..size.rows).flat_map(|i| (0..size.cols).map(move |j| (i, j))) {
                let Some(exact) = exact(i as u64, j as u64) else { continue };
                assert_eq!(matrix.float(i, j), Float::with_val(100, &exact), "{name} ({i}, {j})");
            }
        }
    }
}

#[test]
fn a_long_pascal_entry_is_rounded_once() {
    let matrix = generate(Kind::Pascal, Size { rows: 60, cols: 60, precision_bits: 20 }, 0).unwrap();
    let exact = Integer::from(118).binomial(59);
    assert!(exact.significant_bits() > 100);
    assert_eq!(matrix.float(59, 59), Float::with_val(20, &exact));
}

#[test]
fn every_kind_takes_empty_and_tiny_sizes() {
    for (name, kind) in KINDS {
        for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1)] {
            let matrix = generate(kind, Size { rows, cols, precision_bits: 2 }, 1).unwrap();
            assert_eq!((matrix.rows(), matrix.cols()), (rows, cols), "{name}");
        }
        let error = generate(kind, Size { rows: 1, cols: 1, precision_bits: 0 }, 1).unwrap_err();
        assert!(matches!(error, Error::Precision { .. }), "{name}");
        let error = generate(kind, Size { rows: usize::MAX, cols: 2, precision_bits: 64 }, 1).unwrap_err();
        assert!(matches!(error, Error::DimensionOverflow { .. }), "{name}");
    }
}

#[test]
fn random_entries_are_full_and_uniform() {
    let size = Size { rows: 1000, cols: 20, precision_bits: 70 };
    let matrix = generate(Kind::Random, size, 5).unwrap();
    let (mut sum, mut squares, mut odd) = (0.0, 0.0, 0);
    for value in matrix.view().to_floats() {
        assert!(Float::with_val(70, value.abs_ref()) < 1 && !value.is_zero());
        let (integer, _) = value.to_integer_exp().unwrap();
        odd += u32::from(integer.significant_bits() == 70 && integer.is_odd());
        sum += value.to_f64();
        squares += value.to_f64().powi(2);
    }
    // Mean 0, mean square 1/3, half of the lowest bits set: five standard deviations at 20000 draws.
    assert!((sum / 20_000.0).abs() < 0.0205, "{sum}");
    assert!((squares / 20_000.0 - 1.0 / 3.0).abs() < 0.0106, "{squares}");
    assert!((f64::from(odd) / 20_000.0 - 0.5).abs() < 0.018, "{odd}");
}

#[test]
fn graded_scales_spread_over_thousands_of_bits() {
    let matrix = generate(Kind::Graded, Size { rows: 40, cols: 40, precision_bits: 64 }, 9).unwrap();
    let exponent = |row, col| i64::from(matrix.float(row, col).get_exp().unwrap());
    let spread = |exponents: Vec<i64>| exponents.iter().max().unwrap() - exponents.iter().min().unwrap();
    assert!(spread((0..40).map(|row| exponent(row, 0)).collect()) > 2500);
    assert!(spread((0..40).map(|col| exponent(0, col)).collect()) > 2500);
}

#[test]
fn random_bits_never_change() {
    // Recorded once; a change would break every file that scripts make by seed.
    let matrix = generate(Kind::Random, SMALL, 42).unwrap();
    let first: Vec<String> = (0..2).map(|row| matrix.float(row, 1).to_string_radix(16, None)).collect();
    assert_eq!(first, ["f.b7f8b60120ab2972abaa2d2a0@-1", "c.613ce64550752681109c5bd10@-1"]);
    let taller = generate(Kind::Random, Size { rows: 9, ..SMALL }, 42).unwrap();
    assert_eq!(taller.float(1, 1), matrix.float(1, 1), "a column does not depend on the shape");
    let other = generate(Kind::Random, SMALL, 43).unwrap();
    assert_ne!(other.float(0, 0), matrix.float(0, 0));
}

#[test]
fn derivatives_do_not_change_with_guard_bits() {
    for (rows, cols, precision_bits) in [(9, 3, 53), (6, 60, 256), (5, 200, 512), (3, 333, 1024)] {
        let size = Size { rows, cols, precision_bits };
        let guard_bits = bootstrap::guard_bits(cols);
        let whole = MatrixPart { size, rows: 0..rows, cols: 0..cols };
        let matrix = bootstrap::with_guard_bits(&whole, guard_bits).unwrap();
        assert!(matrix == bootstrap::with_guard_bits(&whole, 2 * guard_bits).unwrap(), "{rows} x {cols}");
    }
}

#[test]
fn derivatives_agree_with_the_series_of_the_block() {
    // Another road: d^n/dz^n of (1 - z) z^(D + m) at 1/2 is a product of falling factorials; sum it over m.
    let (rows, cols, bits) = (4, 6, 200);
    let matrix = generate(Kind::Bootstrap1d, Size { rows, cols, precision_bits: bits }, 0).unwrap();
    for row in 0..rows {
        let dimension = Float::with_val(800, bootstrap::sample(row, rows)) >> 32;
        for col in 0..cols {
            let n = 2 * col as u32 + 1;
            let falling = |top: &Float, count: u32| {
                (0..count).fold(Float::with_val(800, 1), |product, step| product * Float::with_val(800, top - step))
            };
            let (mut sum, mut coefficient) = (Float::new(800), Float::with_val(800, 1));
            for m in 0..1200u32 {
                let power = Float::with_val(800, &dimension + m);
                // (1 - z) z^s = z^s - z^(s+1).
                let half = |exponent: Float| Float::with_val(800, -exponent).exp2();
                let low = falling(&power, n) * half(Float::with_val(800, &power - n));
                let next = Float::with_val(800, &power + 1u32);
                let high = falling(&next, n) * half(Float::with_val(800, &next - n));
                sum += Float::with_val(800, &coefficient * (low - high));
                coefficient *= &power;
                coefficient *= &power;
                coefficient /= Float::with_val(800, &dimension + &power);
                coefficient /= m + 1;
            }
            assert_eq!(matrix.float(row, col), Float::with_val(bits, sum * 2u32), "row {row}, derivative {n}");
        }
    }
}

#[test]
fn blocks_have_the_bits_of_the_whole() {
    for (name, kind) in KINDS {
        for (rows, cols) in [(1, 1), (40, 7), (19, 19), (3, 33)] {
            let size = Size { rows, cols, precision_bits: 150 };
            let whole = generate(kind, size, 3).unwrap();
            for (bytes, lower) in [(1, false), (3000, false), (1 << 30, false), (1, true), (3000, true)] {
                if lower && (rows != cols || !kind.is_symmetric()) {
                    continue;
                }
                let mut seen = vec![0; rows * cols];
                for (block_rows, block_cols) in kind.blocks(size, lower, bytes) {
                    let block = generate_block(kind, size, 3, (block_rows.clone(), block_cols.clone())).unwrap();
                    assert!(block.bytes() <= bytes.max(16 * 32 * cols.max(rows) as u64), "{name}");
                    for (j, col) in block_cols.enumerate() {
                        for (i, row) in block_rows.clone().enumerate() {
                            assert_eq!(block.get(i, j), whole.get(row, col), "{name} {rows} x {cols} ({row}, {col})");
                            seen[row + rows * col] += 1;
                        }
                    }
                }
                let is_due = |at: usize| !lower || at % rows >= at / rows;
                assert!((0..rows * cols).all(|at| seen[at] <= 1 && (seen[at] == 1 || !is_due(at))), "{name} {lower}");
            }
        }
    }
}

#[test]
fn a_block_inside_is_that_of_the_matrix_and_one_outside_is_refused() {
    for (name, kind) in KINDS {
        let whole = generate(kind, SMALL, 8).unwrap();
        let block = generate_block(kind, SMALL, 8, (2..6, 3..5)).unwrap();
        assert!(block == whole.view().block(2..6, 3..5).unwrap().to_matrix().unwrap(), "{name}");
        for (rows, cols) in [(0..8, 0..5), (0..7, 0..6), (0..usize::MAX, 0..1)] {
            let error = generate_block(kind, SMALL, 8, (rows, cols)).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{name}");
        }
    }
}

#[test]
fn kinds_that_are_called_symmetric_are() {
    for (name, kind) in KINDS {
        let matrix = generate(kind, Size { rows: 12, cols: 12, precision_bits: 90 }, 1).unwrap();
        let is_symmetric = (0..12).all(|i| (0..i).all(|j| matrix.get(i, j) == matrix.get(j, i)));
        assert_eq!(kind.is_symmetric(), is_symmetric, "{name}");
    }
}

#[test]
fn a_file_made_in_blocks_has_the_bytes_of_one_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, kind) in KINDS {
        for (rows, cols, symmetric) in [(0, 3, false), (1, 1, false), (30, 21, false), (23, 23, true), (0, 0, true)] {
            if symmetric && !kind.is_symmetric() {
                continue;
            }
            let size = Size { rows, cols, precision_bits: 190 };
            let symmetry = if symmetric { io::Symmetry::SymmetricLower } else { io::Symmetry::General };
            let whole = generate(kind, size, 4).unwrap();
            io::write(path("whole.bin"), &whole, &io::WriteOptions::new().symmetry(symmetry)).unwrap();
            generate_file(&path("blocks.bin"), &FileMatrix { kind, size, seed: 4, symmetric }, None).unwrap();
            let bytes = |name| std::fs::read(path(name)).unwrap();
            assert!(bytes("whole.bin") == bytes("blocks.bin"), "{name}, {rows} x {cols}");
        }
    }
    let size = Size { rows: 4, cols: 4, precision_bits: 64 };
    let refused = |matrix: FileMatrix| generate_file(&path("none.bin"), &matrix, None).unwrap_err();
    let random = FileMatrix { kind: Kind::Random, size, seed: 0, symmetric: true };
    assert!(matches!(refused(random), Error::InvalidArgument(_)));
    let oblong = FileMatrix { kind: Kind::Minij, size: Size { rows: 5, ..size }, ..random };
    assert!(matches!(refused(oblong), Error::InvalidArgument(_)));
    let plain = FileMatrix { symmetric: false, ..random };
    // A triangle is as much as its blocks, not as the whole matrix.
    let last = std::sync::Arc::new(std::sync::Mutex::new((0, 0)));
    let seen = last.clone();
    let see: std::sync::Arc<crate::context::ProgressCallback> = std::sync::Arc::new(move |progress| {
        if progress.phase == "generate" {
            *seen.lock().unwrap() = (progress.done, progress.total);
        }
        true
    });
    let wide = Size { rows: 900, cols: 900, precision_bits: 1000 };
    let triangle = FileMatrix { kind: Kind::Minij, size: wide, seed: 0, symmetric: true };
    generate_file(&path("triangle.bin"), &triangle, Some(see)).unwrap();
    let (done, total) = *last.lock().unwrap();
    assert!(done == total && total < 900 * 900, "{done} of {total}");
    let stop: std::sync::Arc<crate::context::ProgressCallback> = std::sync::Arc::new(|_| false);
    assert!(matches!(generate_file(&path("none.bin"), &plain, Some(stop)), Err(Error::Cancelled)));
    assert!(!path("none.bin").exists());
}
