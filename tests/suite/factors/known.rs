//! Cholesky factors of matrices whose factor, rank or failing minor is known; the judge is `verify_cholesky`.

mod indefinite;

use crate::common::definite::{KNOWN, Known, check_factor, ill_conditioned, integer_gram, rounded};
use crate::common::{Rng, sdplib, seeds};
use rug::Float;
use sunzi::advanced::math::bound::ceil_log2;
use sunzi::{CholeskyOptions, Context, Error, Matrix, MoreBits, Symmetric, Uplo, cholesky, cholesky_with};

/// The edges of tiles and panels.
const SIZES: [usize; 9] = [0, 1, 2, 7, 8, 9, 63, 64, 65];

fn ctx() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// Asserts that the factor is within what its condition allows of the known one: `2^(c - b)` of each row's norm.
fn assert_close(kind: Known, factor: &Matrix, precision_bits: u32) {
    let n = factor.rows();
    let lost_bits = kind.condition_bits(n) + ceil_log2(n) + 4;
    let bits = precision_bits + 64;
    for i in 0..n {
        let norm = (0..=i).fold(Float::new(bits), |sum, k| sum + factor.float(i, k).square()).sqrt();
        let tolerance = norm >> (precision_bits - lost_bits);
        for j in 0..n {
            let wanted = if j <= i { kind.factor(i, j, bits) } else { Float::new(bits) };
            let error = Float::with_val(bits, factor.float(i, j) - wanted).abs();
            assert!(error <= tolerance, "{kind:?}, {n} rows, {precision_bits} bits: off by {error:.3e} at ({i}, {j})");
        }
    }
}

#[test]
fn factors_are_the_known_ones() {
    for kind in KNOWN {
        for (n, spare_bits) in [(1, 30), (2, 50), (9, 100), (33, 77), (64, 200)] {
            let bits = kind.condition_bits(n) + ceil_log2(n) + 4 + spare_bits;
            let a = kind.matrix(n, bits);
            let factor = cholesky(&ctx(), &a, bits).unwrap().into_factor();
            let found = check_factor(&a, &factor, bits, &format!("{kind:?}, {n} rows"));
            assert_close(kind, &factor, bits);
            if kind.is_dyadic() {
                // Nothing is rounded where all numbers are on the grid.
                assert_eq!(found.worst_entry, 0.0, "{kind:?}, {n} rows");
                let exact = (0..n * n).map(|at| match (at % n, at / n) {
                    (i, j) if j <= i => kind.factor(i, j, bits),
                    _ => Float::new(bits),
                });
                let exact = Matrix::from_floats(n, n, bits, &exact.collect::<Vec<_>>()).unwrap();
                assert_eq!(factor, exact, "{kind:?}, {n} rows");
            }
        }
    }
}

#[test]
fn a_hilbert_matrix_of_a_hundred_rows() {
    let bits = 640;
    let a = Known::Hilbert.matrix(100, bits);
    let result = cholesky(&ctx(), &a, bits).unwrap();
    check_factor(&a, result.factor(), bits, "hilbert");
    assert_close(Known::Hilbert, result.factor(), bits);
    // det = c^4 / product of k! for k < 2 n, c the product of k! for k < n.
    let log_factorial = |k: usize| Float::with_val(800, rug::Integer::from(rug::Integer::factorial(k as u32))).ln();
    let small = (0..100).fold(Float::new(800), |sum, k| sum + log_factorial(k));
    let large = (0..200).fold(Float::new(800), |sum, k| sum + log_factorial(k));
    let error = Float::with_val(800, result.log_det() - (small * 4u32 - large)).abs();
    assert!(error < Float::with_val(800, 1) >> 100, "{error:.3e}");
}

#[test]
fn edges_of_every_kind_of_size() {
    for (seed, n) in SIZES.into_iter().enumerate() {
        for bits in [60, 333] {
            let a = integer_gram(n + 3, n, 128, seed as u64);
            let factor = cholesky(&ctx(), &a, bits).unwrap().into_factor();
            assert_eq!((factor.rows(), factor.cols(), factor.precision_bits()), (n, n, bits));
            check_factor(&a, &factor, bits, &format!("{n} rows, {bits} bits"));
            for tile_rows in [1, 5, 64] {
                let options = CholeskyOptions::new().tile_rows(tile_rows);
                let tiled = cholesky_with(&ctx(), &a, bits, &options).unwrap().result.into_factor();
                assert_eq!(tiled, factor, "{n} rows, {bits} bits, tiles of {tile_rows}");
            }
        }
    }
}

#[test]
fn the_other_triangle_is_not_read() {
    for (n, bits) in [(2, 64), (9, 100), (40, 200)] {
        let a = integer_gram(n, n, 128, 5);
        let factor = cholesky(&ctx(), &a, bits).unwrap().into_factor();
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let mut spoiled = a.clone();
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let (row, col) = if uplo == Uplo::Lower { (j, i) } else { (i, j) };
                spoiled.set_f64(row, col, if i % 2 == 0 { -1e300 } else { 0.0 }).unwrap();
            }
            let operand = Symmetric::triangle(&spoiled, uplo);
            assert_eq!(cholesky(&ctx(), operand, bits).unwrap().into_factor(), factor, "{uplo:?}, {n}");
        }
    }
}

#[test]
fn condition_numbers_up_to_two_to_the_2000() {
    for (n, half_bits) in [(5, 100), (20, 500), (33, 1000)] {
        for seed in seeds(2) {
            let label = format!("condition 2^{}, seed {seed}", 2 * half_bits);
            let (known, a) = ill_conditioned(n, half_bits, seed);
            // Given exactly, all numbers of the factorisation are on the grid of the working precision.
            let bits = half_bits + 40;
            let factor = cholesky(&ctx(), &a, bits).unwrap().into_factor();
            assert_eq!(factor, rounded(&known, bits), "{label}");
            assert_eq!(check_factor(&a, &factor, bits, &label).worst_entry, 0.0);
            // Rounded first, the matrix stays positive definite where the bits outweigh the condition.
            let bits = 2 * half_bits + 60;
            let a = rounded(&a, bits);
            check_factor(&a, &cholesky(&ctx(), &a, bits).unwrap().into_factor(), bits, &label);
            // At fewer bits it either fails, and says that more would help, or meets the bound.
            let bits = half_bits / 2;
            match cholesky(&ctx(), &a, bits) {
                Ok(result) => drop(check_factor(&a, result.factor(), bits, &label)),
                Err(Error::NotPositiveDefinite { index, more_bits: MoreBits::AtLeast(more), .. }) => {
                    assert!(index > n / 4 && more <= 4 * half_bits, "{label}: index {index}, {more} more bits");
                }
                Err(error) => panic!("{label}: {error}"),
            }
        }
    }
}

#[test]
fn scaling_by_powers_of_two_scales_the_rows() {
    for seed in seeds(6) {
        let mut rng = Rng::new(900 + seed);
        let (n, bits) = (3 + rng.below(30), 64 + rng.below(200) as u32);
        let a = integer_gram(n + 2, n, 128, seed);
        let shifts = (0..n).map(|_| rng.within(4000)).collect::<Vec<_>>();
        let scaled = |matrix: &Matrix, exponent: &dyn Fn(usize, usize) -> i64| {
            let mut scaled = Matrix::zeros(n, n, matrix.precision_bits()).unwrap();
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let (integer, low) = matrix.get(i, j).to_integer_exponent();
                scaled.set_integer_exponent(i, j, &integer, low + exponent(i, j)).unwrap();
            }
            scaled
        };
        let graded = scaled(&a, &|i, j| shifts[i] + shifts[j]);
        let factor = cholesky(&ctx(), &a, bits).unwrap().into_factor();
        let found = cholesky(&ctx(), &graded, bits).unwrap().into_factor();
        assert_eq!(found, scaled(&factor, &|i, _| shifts[i]), "seed {seed}");
        check_factor(&graded, &found, bits, &format!("graded, seed {seed}"));
    }
}

#[test]
fn entries_far_below_their_diagonal() {
    // Off-diagonal entries at, above and far below the last bit of the working precision.
    for bits in [53, 100, 256] {
        for exponent in [-10, 1 - bits as i64, -(bits as i64) - 2, -(bits as i64) - 4, -3000, -(1 << 29)] {
            let mut a = Matrix::from_f64s(3, 3, 60, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
            for (i, j) in [(1, 0), (0, 1), (2, 1), (1, 2)] {
                a.set_integer_exponent(i, j, &rug::Integer::from(-3), exponent).unwrap();
            }
            let factor = cholesky(&ctx(), &a, bits).unwrap().into_factor();
            check_factor(&a, &factor, bits, &format!("2^{exponent} at {bits} bits"));
        }
    }
}

#[test]
fn schur_complements_of_semidefinite_programs() {
    for (name, rows) in [
        ("truss1.dat-s", 6),
        ("control1.dat-s", 21),
        ("hinf1.dat-s", 13),
        ("infd1.dat-s", 10),
        ("theta1.dat-s", 104),
        ("mcp100.dat-s", 100),
    ] {
        let Some(program) = sdplib::read(name, 400) else { continue };
        assert_eq!(program.constraints.len(), rows, "{name}");
        for step in [0, 2] {
            let s = program.schur_complement(step, 400, 3);
            let result = cholesky(&ctx(), &s, 400).unwrap_or_else(|error| panic!("{name}, step {step}: {error}"));
            check_factor(&s, result.factor(), 400, &format!("{name}, step {step}"));
        }
    }
}
