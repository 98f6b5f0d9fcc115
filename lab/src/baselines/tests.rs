//! Baselines of products against exact rational arithmetic, and against one another.

use rug::rand::RandState;
use rug::{Assign, Float, Integer};

use super::{Baseline, Operation, Problem, admit, by_name, names};

/// Over how many bits the exponents of test entries spread.
const SPREAD: u32 = 20;

/// A matrix of signed numbers of full precision, with exponents spread over `spread` bits and
/// one zero column where there are at least three.
fn random_matrix(rows: usize, cols: usize, precision_bits: u32, spread: u32, seed: u64) -> Vec<Float> {
    let mut state = RandState::new_mersenne_twister();
    state.seed(&seed.into());
    let mut entries = Vec::with_capacity(rows * cols);
    for index in 0..rows * cols {
        let mut entry = Float::with_val(precision_bits, Float::random_bits(&mut state));
        entry -= 0.5;
        entry >>= state.below(spread + 1);
        if cols >= 3 && index / rows == 2 {
            entry.assign(0);
        }
        entries.push(entry);
    }
    entries
}

/// The baselines of products that this build has.
fn built() -> impl Iterator<Item = &'static str> {
    names(Operation::Syrk).iter().copied().filter(|name| admit(name, Operation::Syrk, 64).is_ok())
}

/// A baseline for two operands, of which `Syrk` uses the first, after one run.
fn after_run(
    name: &str,
    operation: Operation,
    shape: (usize, usize, u32),
    operands: [&[Float]; 2],
) -> Box<dyn Baseline> {
    after_run_on(1, name, operation, shape, operands)
}

/// The same with several threads.
fn after_run_on(
    threads: usize,
    name: &str,
    operation: Operation,
    shape: (usize, usize, u32),
    operands: [&[Float]; 2],
) -> Box<dyn Baseline> {
    let (rows, cols, precision_bits) = shape;
    let [a, b] = operands;
    let b = (operation == Operation::Gemm).then_some(b);
    let mut baseline = by_name(name, Problem { operation, rows, cols, precision_bits, a, b, threads }).unwrap();
    baseline.run();
    baseline
}

/// The entries times `2^(b + SPREAD)`, which makes integers of all that `random_matrix` gives.
fn to_integers(entries: &[Float], precision_bits: u32) -> Vec<Integer> {
    let scaled = entries.iter().map(|entry| Float::with_val(precision_bits, entry << (precision_bits + SPREAD)));
    scaled.map(|entry| if entry.is_integer() { entry.to_integer().unwrap() } else { panic!("{entry}") }).collect()
}

/// The exact dot product of two columns.
fn exact_dot(x: &[Integer], y: &[Integer]) -> Integer {
    x.iter().zip(y).fold(Integer::new(), |sum, (x, y)| sum + x * y)
}

/// The norm of each column, to 64 bits.
fn norms(entries: &[Integer], rows: usize, cols: usize) -> Vec<Float> {
    let columns = (0..cols).map(|j| &entries[j * rows..][..rows]);
    columns.map(|column| Float::with_val(64, exact_dot(column, column)).sqrt()).collect()
}

/// Checks every entry against exact arithmetic, to `2^(-b + log2 K + 4)` times the norms.
fn check_against_exact(name: &str, operation: Operation, shape: (usize, usize, u32)) {
    let (rows, cols, precision_bits) = shape;
    let a = random_matrix(rows, cols, precision_bits, SPREAD, 1);
    let b = random_matrix(rows, cols, precision_bits, SPREAD, 2);
    let baseline = after_run(name, operation, shape, [&a, &b]);
    let left = to_integers(&a, precision_bits);
    let right = to_integers(if operation == Operation::Syrk { &a } else { &b }, precision_bits);
    let (left_norms, right_norms) = (norms(&left, rows, cols), norms(&right, rows, cols));
    let factor = Float::with_val(64, 16 * rows.max(1)) >> precision_bits;
    for (i, j) in (0..cols).flat_map(|i| (0..cols).map(move |j| (i, j))) {
        let exact = exact_dot(&left[i * rows..][..rows], &right[j * rows..][..rows]);
        let scaled = baseline.entry(i, j) << (2 * (precision_bits + SPREAD));
        let error = Float::with_val(64, (scaled.to_rational().unwrap() - exact).abs());
        let bound = Float::with_val(64, &left_norms[i] * &right_norms[j]) * &factor;
        assert!(error <= bound, "{name} {operation:?} {shape:?} entry ({i}, {j}): {error} above {bound}");
    }
}

#[test]
fn small_products_meet_the_bound() {
    for name in built() {
        for rows in [0, 1, 7, 33] {
            for cols in [1, 5, 17] {
                for precision_bits in [100, 256, 1000] {
                    check_against_exact(name, Operation::Syrk, (rows, cols, precision_bits));
                    check_against_exact(name, Operation::Gemm, (rows, cols, precision_bits));
                }
            }
        }
    }
}

#[test]
fn blocks_and_blas_forms_meet_the_bound() {
    for name in built() {
        check_against_exact(name, Operation::Syrk, (130, 101, 192));
        check_against_exact(name, Operation::Gemm, (110, 100, 192));
    }
}

#[test]
fn baselines_agree_with_one_another() {
    let shape = (200, 40, 512);
    let a = random_matrix(200, 40, 512, 0, 3);
    let b = random_matrix(200, 40, 512, 0, 4);
    for operation in [Operation::Syrk, Operation::Gemm] {
        let baselines: Vec<_> = built().map(|name| after_run(name, operation, shape, [&a, &b])).collect();
        for i in 0..40 {
            for j in 0..40 {
                for baseline in &baselines {
                    let error = baseline.entry(i, j) - baselines[0].entry(i, j);
                    // The norms are below 8 each.
                    let bound = Float::with_val(64, 64 * 200 * 32) >> 512;
                    assert!(error.abs() <= bound, "{} against {} at ({i}, {j})", baseline.name(), baselines[0].name());
                }
            }
        }
    }
}

#[test]
fn threads_and_repetition_change_nothing() {
    let shape = (90, 70, 300);
    let a = random_matrix(90, 70, 300, 5, 5);
    let b = random_matrix(90, 70, 300, 5, 6);
    for name in built() {
        for operation in [Operation::Syrk, Operation::Gemm] {
            let one = after_run(name, operation, shape, [&a, &b]);
            let mut three = after_run_on(3, name, operation, shape, [&a, &b]);
            three.run();
            for i in 0..70 {
                for j in 0..70 {
                    assert_eq!(one.entry(i, j), three.entry(i, j), "{name} {operation:?} ({i}, {j})");
                }
            }
        }
    }
}

#[test]
fn forms_name_their_libraries() {
    let a = random_matrix(3, 2, 128, 0, 7);
    for name in built() {
        let baseline = after_run(name, Operation::Syrk, (3, 2, 128), [&a, &a]);
        assert_eq!(baseline.name(), name);
        assert!(baseline.form().contains("thread(s)"), "{}", baseline.form());
    }
}

#[test]
fn unfit_problems_are_refused() {
    let a = random_matrix(3, 2, 128, 0, 8);
    let good =
        Problem { operation: Operation::Syrk, rows: 3, cols: 2, precision_bits: 128, a: &a, b: None, threads: 1 };
    let refuse = |problem: Problem| assert!(by_name("mpfr", problem).is_err(), "{problem:?}");
    assert!(by_name("mpfr", good).is_ok());
    assert_eq!(
        by_name("nfloat", good).err().unwrap(),
        "unknown baseline 'nfloat' of syrk: choose from sdpb, flint, mpfr"
    );
    refuse(Problem { threads: 0, ..good });
    refuse(Problem { rows: 4, ..good });
    refuse(Problem { b: Some(&a), ..good });
    refuse(Problem { operation: Operation::Gemm, ..good });
    refuse(Problem { operation: Operation::Cholesky, ..good });
    refuse(Problem { operation: Operation::Solve, rows: 1, ..good });
    refuse(Problem { precision_bits: 100, ..good });
    let mut infinite = a.clone();
    infinite[1].assign(rug::float::Special::Infinity);
    refuse(Problem { a: &infinite, ..good });
}

#[cfg(not(feature = "flint"))]
#[test]
fn baselines_that_are_not_built_say_so() {
    let problem =
        Problem { operation: Operation::Syrk, rows: 0, cols: 0, precision_bits: 64, a: &[], b: None, threads: 1 };
    assert_eq!(by_name("flint", problem).err().unwrap(), "baseline flint needs the feature `flint`");
}
