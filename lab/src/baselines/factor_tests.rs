//! Baselines of operations with a triangular factor: residuals in far more bits, and baselines against one another.

use rug::rand::RandState;
use rug::{Assign, Float};

use super::{Baseline, Operation, Problem, admit, by_name, names};

const OPERATIONS: [Operation; 3] = [Operation::Cholesky, Operation::Trsm, Operation::Solve];

/// A problem with its operands: numbers of full precision in [-1, 1], the first operand with `rows` added along its
/// diagonal, and symmetric where it is to be factored.
struct Case {
    operation: Operation,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    a: Vec<Float>,
    b: Vec<Float>,
}

impl Case {
    fn new(operation: Operation, (rows, cols, precision_bits): (usize, usize, u32), seed: u64) -> Case {
        let mut state = RandState::new_mersenne_twister();
        state.seed(&seed.into());
        let mut draw = |count: usize| -> Vec<Float> {
            let entry = |_| Float::with_val(precision_bits, Float::random_bits(&mut state)) * 2u32 - 1u32;
            (0..count).map(entry).collect()
        };
        let mut a = draw(rows * rows);
        let cols = if operation == Operation::Cholesky { rows } else { cols };
        let b = if operation == Operation::Cholesky { Vec::new() } else { draw(rows * cols) };
        for i in 0..rows {
            a[i * (rows + 1)] += rows as u32;
            for j in i + 1..rows {
                let mirrored = if operation == Operation::Cholesky { a[i * rows + j].clone() } else { Float::new(64) };
                a[j * rows + i].assign(mirrored);
            }
        }
        Case { operation, rows, cols, precision_bits, a, b }
    }

    fn problem(&self, threads: usize) -> Problem<'_> {
        let Case { operation, rows, cols, precision_bits, .. } = *self;
        let b = (operation != Operation::Cholesky).then_some(self.b.as_slice());
        Problem { operation, rows, cols, precision_bits, a: &self.a, b, threads }
    }

    fn baseline(&self, name: &str, threads: usize) -> Box<dyn Baseline> {
        let mut baseline = by_name(name, self.problem(threads)).unwrap();
        baseline.run();
        baseline
    }

    /// The baselines that this build has for the operation and precision.
    fn built(&self) -> impl Iterator<Item = &'static str> {
        let (operation, bits) = (self.operation, self.precision_bits);
        names(operation).iter().copied().filter(move |name| admit(name, operation, bits).is_ok())
    }

    fn bits(&self) -> u32 {
        2 * self.precision_bits + 200
    }

    fn left(&self, i: usize, j: usize) -> Float {
        Float::with_val(self.bits(), &self.a[j * self.rows + i])
    }

    /// `sum_k<count x(k) y(k)` in bits enough.
    fn sum(&self, count: usize, x: impl Fn(usize) -> Float, y: impl Fn(usize) -> Float) -> Float {
        (0..count).fold(Float::new(self.bits()), |sum, k| sum + x(k) * Float::with_val(self.bits(), y(k)))
    }

    fn norm(&self, count: usize, x: impl Fn(usize) -> Float) -> Float {
        self.sum(count, &x, &x).sqrt()
    }

    /// Error of the last run at (i, j) and the size that its bound multiplies by `2^(8-b) rows`.
    fn error_and_size(&self, baseline: &dyn Baseline, i: usize, j: usize) -> (Float, Float) {
        let high = |value: Float| Float::with_val(self.bits(), value);
        let x = |k: usize| high(baseline.entry(k, j));
        if self.operation == Operation::Cholesky {
            let product = self.sum(i.min(j) + 1, |k| high(baseline.entry(i, k)), x);
            return (product - self.left(i, j), (self.left(i, i) * self.left(j, j)).sqrt());
        }
        let wanted = high(self.b[j * self.rows + i].clone());
        let row_norm = |k: usize| self.norm(k + 1, |l| self.left(k, l));
        if self.operation == Operation::Trsm {
            let product = self.sum(i + 1, |k| self.left(i, k), x);
            let size = row_norm(i) * self.norm(self.rows, x) + wanted.clone().abs();
            return (product - wanted, size);
        }
        let inner = |k: usize| self.sum(self.rows - k, |l| self.left(k + l, k), |l| x(k + l));
        let product = self.sum(i + 1, |k| self.left(i, k), inner);
        let size = row_norm(i) * self.sum(self.rows, row_norm, |k| x(k).abs()) + wanted.clone().abs();
        (product - wanted, size)
    }

    fn check(&self, baseline: &dyn Baseline) {
        let factor = Float::with_val(64, self.rows) >> (self.precision_bits - 8);
        for i in 0..self.rows {
            for j in 0..self.cols {
                let (error, size) = self.error_and_size(baseline, i, j);
                let shape = (self.rows, self.cols, self.precision_bits);
                let name = baseline.name();
                let bound = Float::with_val(64, size) * &factor;
                assert!(error.clone().abs() <= bound, "{name} {:?} {shape:?} ({i}, {j}): {error}", self.operation);
            }
        }
    }
}

#[test]
fn small_systems_meet_the_bound() {
    for operation in OPERATIONS {
        for rows in [0, 1, 2, 7, 17] {
            for cols in [0, 1, 5] {
                for precision_bits in [64, 100, 256] {
                    let case = Case::new(operation, (rows, cols, precision_bits), 1);
                    case.built().for_each(|name| case.check(&*case.baseline(name, 1)));
                }
            }
        }
    }
}

#[test]
fn blocks_and_recursions_meet_the_bound() {
    // More rows than a block of terms has, and more right-hand sides than FLINT's recursion starts from.
    for (operation, shape) in
        [(Operation::Cholesky, (90, 90, 192)), (Operation::Trsm, (85, 45, 192)), (Operation::Solve, (85, 3, 192))]
    {
        let case = Case::new(operation, shape, 2);
        case.built().for_each(|name| case.check(&*case.baseline(name, 1)));
    }
}

#[test]
fn baselines_agree_with_one_another() {
    for operation in OPERATIONS {
        let case = Case::new(operation, (40, 4, 512), 3);
        let baselines = case.built().map(|name| case.baseline(name, 1)).collect::<Vec<_>>();
        for i in 0..case.rows {
            for j in 0..case.cols.min(i + 1) {
                // All matrices have condition numbers far below 2^20, and entries below 2^4.
                let bound = Float::with_val(64, 1) >> (512 - 40);
                for baseline in &baselines[1..] {
                    let error = Float::with_val(600, baseline.entry(i, j) - baselines[0].entry(i, j));
                    assert!(error.abs() <= bound, "{} {operation:?} ({i}, {j})", baseline.name());
                }
            }
        }
    }
}

#[test]
fn threads_and_repetition_change_nothing() {
    for operation in OPERATIONS {
        let case = Case::new(operation, (70, 45, 320), 4);
        for name in case.built() {
            let (one, mut three) = (case.baseline(name, 1), case.baseline(name, 3));
            three.run();
            for i in 0..case.rows {
                for j in 0..case.cols {
                    assert_eq!(one.entry(i, j), three.entry(i, j), "{name} {operation:?} ({i}, {j})");
                }
            }
            assert!(one.form().contains("1 thread(s)"), "{}", one.form());
        }
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_has_no_answer() {
    let mut case = Case::new(Operation::Cholesky, (5, 5, 128), 5);
    case.a[4 * 6] -= 20;
    for name in case.built() {
        assert!(case.baseline(name, 1).entry(4, 4).is_nan(), "{name}");
    }
}

#[test]
fn unfit_problems_are_refused() {
    let case = Case::new(Operation::Trsm, (4, 2, 128), 6);
    let good = case.problem(1);
    let refuse = |problem: Problem| assert!(by_name("mpfr", problem).is_err(), "{problem:?}");
    assert!(by_name("mpfr", good).is_ok());
    refuse(Problem { b: None, ..good });
    refuse(Problem { cols: 3, ..good });
    refuse(Problem { operation: Operation::Cholesky, ..good });
    let mut singular = case.a.clone();
    singular[5].assign(0);
    let error = by_name("mpfr", Problem { a: &singular, ..good }).err().unwrap();
    assert!(error.contains("zero on its diagonal, at index 1"), "{error}");
    let error = admit("sdpb", Operation::Solve, 128).unwrap_err();
    assert_eq!(error, "unknown baseline 'sdpb' of solve: choose from flint, mpfr");
}

#[cfg(feature = "flint")]
#[test]
fn packed_floats_have_whole_limbs() {
    for precision_bits in [0, 63, 100, 1000, 4288] {
        let error = admit("nfloat", Operation::Cholesky, precision_bits).unwrap_err();
        assert!(error.contains(&format!("no precision of {precision_bits} bits")), "{error}");
    }
    for precision_bits in [64, 1024, 4224] {
        assert_eq!(admit("nfloat", Operation::Cholesky, precision_bits), Ok(()));
        let case = Case::new(Operation::Cholesky, (3, 3, precision_bits), 7);
        case.check(&*case.baseline("nfloat", 1));
    }
}

/// The radii that `form` states show that the working precision is the right one.
#[cfg(feature = "flint")]
#[test]
fn balls_are_as_small_as_the_precision_asks() {
    for operation in OPERATIONS {
        for rows in [1, 3, 20, 60, 200] {
            let case = Case::new(operation, (rows, 3, 128), 8);
            let form = case.baseline("flint", 1).form();
            let radius = form.split("radii below 2^").nth(1).map(|text| text.split(' ').next().unwrap());
            let radius = radius.map_or(i32::MIN, |text| text.parse::<i32>().unwrap());
            assert!(radius <= -128, "{operation:?} of {rows} rows: {form}");
        }
    }
}
