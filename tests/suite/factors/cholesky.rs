//! Cholesky factorisations against their definition: the same bits, and the same failure, on every path.

use crate::common::{by_norms, in_turn};
use rug::{Float, Integer, rand::RandState};
use sunzi::advanced::cholesky_reference;
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{Accuracy, CholeskyOptions, Context, Error, Matrix, MoreBits, Symmetric, cholesky_with};

fn ctx(threads: usize, kernel: &str) -> Context {
    Context::builder().threads(threads).kernel(kernel).build().unwrap()
}

/// A symmetric matrix of random entries in (-1/2, 1/2) with `diagonal` added: positive definite where that is large.
fn symmetric(n: usize, bits: u32, seed: u64, diagonal: f64) -> Matrix {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    let mut values = vec![Float::new(bits); n * n];
    for col in 0..n {
        for row in col..n {
            let mut value = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64;
            if row == col {
                value += diagonal;
            }
            values[col + row * n] = value.clone();
            values[row + col * n] = value;
        }
    }
    Matrix::from_floats(n, n, bits, &values).unwrap()
}

/// Row and column `i` times `2^shift(i)`.
fn graded(a: &Matrix, shift: impl Fn(usize) -> i64) -> Matrix {
    let (n, bits) = (a.rows(), a.precision_bits());
    let mut scaled = Matrix::zeros(n, n, bits).unwrap();
    for col in 0..n {
        for row in 0..n {
            let (integer, exponent) = a.get(row, col).to_integer_exponent();
            scaled.set_integer_exponent(row, col, &integer, exponent + shift(row) + shift(col)).unwrap();
        }
    }
    scaled
}

/// The factor, or the text of the error, which holds index, pivot and hint.
fn outcome(result: Result<sunzi::Cholesky, Error>) -> Result<Matrix, String> {
    result.map(sunzi::Cholesky::into_factor).map_err(|error| error.to_string())
}

/// Threads and tiles of the paths that each kernel has.
const PATHS: [(usize, Option<usize>); 5] = [(1, None), (1, Some(8)), (3, Some(16)), (2, Some(40)), (1, Some(1000))];

/// The contexts of all paths, made once for a test.
struct Paths {
    /// Name, and a context for each of [`PATHS`].
    kernels: Vec<(&'static str, Vec<Context>)>,
}

impl Paths {
    fn new() -> Paths {
        let contexts = |name: &'static str| (name, PATHS.map(|(threads, _)| ctx(threads, name)).to_vec());
        Paths { kernels: sunzi::advanced::kernels::available().iter().map(|kernel| contexts(kernel.name())).collect() }
    }

    /// Compares every path with the definition.
    fn agree_on<'a>(&self, a: impl Into<Symmetric<'a>>, bits: u32, what: &str) {
        self.agree_on_some(a, bits, what, |_, _| true);
    }

    /// Compares those paths, by the numbers of kernel and path, that are wanted.
    fn agree_on_some<'a>(
        &self,
        a: impl Into<Symmetric<'a>>,
        bits: u32,
        what: &str,
        is_wanted: impl Fn(usize, usize) -> bool,
    ) {
        let a = a.into();
        let want = outcome(cholesky_reference(a, bits, 0));
        for (number, (kernel, contexts)) in self.kernels.iter().enumerate() {
            for (at, (ctx, (threads, tile_rows))) in contexts.iter().zip(PATHS).enumerate() {
                if !is_wanted(number, at) {
                    continue;
                }
                let options = CholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(tile_rows);
                let got = outcome(cholesky_with(ctx, a, bits, &options).map(|outcome| outcome.result));
                let place = format!("{what}: kernel {kernel}, {threads} threads, tiles {tile_rows:?}");
                assert!(got == want, "{place}: {:?} against {:?}", got.as_ref().err(), want.as_ref().err());
            }
        }
    }
}

#[test]
fn every_path_gives_the_bits_of_the_definition() {
    let paths = Paths::new();
    for bits in [2, 10, 30, 53, 100, 256, 300, 1000] {
        for n in [0usize, 1, 2, 7, 8, 9, 15, 16, 17, 33, 41, 65] {
            if bits > 300 && n > 33 {
                continue;
            }
            let a = symmetric(n, bits.max(20), n as u64, 1.5 * (n as f64).sqrt());
            // Each kernel has each order and each precision on every second path, the others with the next one.
            let turn = n + bits as usize / 3;
            let wanted = |kernel: usize, at: usize| in_turn(2, turn + kernel).contains(&(at % 2));
            paths.agree_on_some(&a, bits, &format!("n = {n}, {bits} bits"), wanted);
        }
    }
}

#[test]
fn exponents_may_spread_over_thousands_of_bits() {
    let paths = Paths::new();
    let a = symmetric(37, 200, 5, 9.0);
    let scaled = graded(&a, |i| (i as i64 * 7919) % 4001 - 2000);
    paths.agree_on(&scaled, 180, "graded");
    let want = outcome(cholesky_reference(&a, 180, 0)).unwrap();
    let got = outcome(cholesky_reference(&scaled, 180, 0)).unwrap();
    for row in 0..37 {
        for col in 0..=row {
            let shift = (row as i64 * 7919) % 4001 - 2000;
            let (integer, exponent) = want.get(row, col).to_integer_exponent();
            assert_eq!(got.get(row, col).to_integer_exponent(), (integer, exponent + shift), "scaling is exact");
        }
    }
}

#[test]
fn entries_far_below_the_diagonal_and_zeros_are_rounded_alike() {
    let paths = Paths::new();
    let mut a = symmetric(21, 300, 9, 6.0);
    for col in 0..21usize {
        for row in col + 1..21 {
            let (integer, exponent) = a.get(row, col).to_integer_exponent();
            let value = if (row * col) % 3 == 0 { Integer::new() } else { integer };
            let exponent = exponent - ((row * 31 + col * 17) % 400) as i64;
            a.set_integer_exponent(row, col, &value, exponent).unwrap();
        }
    }
    paths.agree_on(Symmetric::lower(&a), 256, "small entries");
}

#[test]
fn ties_and_exact_quotients_are_rounded_to_even() {
    let paths = Paths::new();
    // Integers whose factors end in many zero bits: quotients lie on integers and on halves.
    let n = 24;
    for bits in [6, 20, 53, 120] {
        let mut values = vec![0.0; n * n];
        for row in 0..n {
            for col in 0..n {
                values[row + col * n] = if row == col { 64.0 } else { ((row * col) % 5) as f64 - 2.0 };
                if row != col && (row + col) % 7 == 0 {
                    values[row + col * n] = 0.5f64.powi(bits as i32 + 3);
                }
            }
        }
        let a = Matrix::from_f64s(n, n, 200, &values).unwrap();
        paths.agree_on(&a, bits, &format!("integers, {bits} bits"));
    }
}

#[test]
fn failures_are_the_same_on_every_path() {
    let paths = Paths::new();
    let spoil = |n: usize, index: usize, value: f64| {
        let mut a = symmetric(n, 120, index as u64, 1.5 * (n as f64).sqrt());
        a.set_f64(index, index, value).unwrap();
        a
    };
    for (n, index, value) in [(20, 0, 0.0), (20, 7, -1.0), (41, 8, 0.01), (41, 40, 0.0), (65, 33, 0.1), (65, 64, -9.0)]
    {
        paths.agree_on(&spoil(n, index, value), 100, &format!("n = {n}, a_{index} = {value}"));
    }
    for diagonal in [0.0, 0.3, 0.6, 1.0] {
        paths.agree_on(&symmetric(33, 120, 77, diagonal), 100, &format!("indefinite, diagonal {diagonal}"));
    }
    // Far larger off-diagonals: without the rule of rejected rows these would wrap modulo the primes.
    let mut wild = symmetric(30, 120, 3, 6.0);
    for (row, col) in [(17, 3), (25, 8), (29, 20)] {
        wild.set_f64(row, col, 1e30).unwrap();
        wild.set_f64(col, row, 1e30).unwrap();
    }
    paths.agree_on(&wild, 100, "huge off-diagonals");
    let mut steep = symmetric(30, 120, 3, 6.0);
    for col in 0..20 {
        steep.set_f64(25, col, 2.9).unwrap();
    }
    paths.agree_on(Symmetric::lower(&steep), 100, "a row that is too long");
}

#[test]
fn quotients_far_too_large_reject_their_row() {
    let paths = Paths::new();
    // The second pivot is one unit, so the entry below it is of any size; it must not count as a small one.
    let mut rng = RandState::new();
    rng.seed(&Integer::from(4));
    for bits in [20u32, 50, 51, 60, 67, 106, 160, 206, 320] {
        for exponent in (1..90i64).step_by(2) {
            let factor = Integer::from(if exponent % 3 == 0 { 1 } else { rng.bits(14) | 1 });
            let mut a = Matrix::from_f64s(3, 3, 900, &[1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
            let small = i64::from(2 * bits + 2);
            let one_and_a_bit: Integer = (Integer::from(1) << small as u32) + 1u32;
            a.set_integer_exponent(1, 1, &one_and_a_bit, -small).unwrap();
            a.set_integer_exponent(2, 1, &factor, -exponent).unwrap();
            // Three rows are one tile on all of these paths: the first one, and another one in turns.
            let what = format!("{bits} bits, {factor} 2^-{exponent}");
            let wanted =
                |kernel: usize, at: usize| at == 0 || in_turn(4, kernel + exponent as usize / 2).contains(&(at - 1));
            paths.agree_on_some(Symmetric::lower(&a), bits, &what, wanted);
        }
    }
}

#[test]
fn singular_gram_matrices_end_alike() {
    let paths = Paths::new();
    for (rows, bits) in [(11, 60), (20, 100), (32, 53)] {
        let size = Size { rows, cols: 33, precision_bits: 90 };
        let p = generate(Kind::Random, size, 3).unwrap();
        let q = sunzi::syrk(&ctx(1, "auto"), &p, 400).unwrap();
        paths.agree_on(&q, bits, &format!("rank {rows} of 33"));
    }
}

#[test]
fn the_other_triangle_is_not_read() {
    let paths = Paths::new();
    let a = symmetric(25, 150, 4, 8.0);
    let (mut lower, mut upper) = (a.clone(), a.clone());
    for row in 0..25 {
        for col in 0..row {
            lower.set_f64(col, row, 1e300).unwrap();
            upper.set_f64(row, col, -1e-300).unwrap();
        }
    }
    let want = outcome(cholesky_reference(&a, 140, 0)).unwrap();
    for operand in [Symmetric::lower(&lower), Symmetric::upper(&upper)] {
        paths.agree_on(operand, 140, "one triangle");
        assert!(outcome(cholesky_reference(operand, 140, 0)).unwrap() == want);
    }
}

#[test]
fn a_failure_names_the_leading_minor() {
    let a = Matrix::from_f64s(3, 3, 100, &[1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, -1.0]).unwrap();
    match by_norms::cholesky(&ctx(1, "auto"), &a, 100) {
        Err(Error::NotPositiveDefinite { index: 1, pivot, more_bits: MoreBits::Never, .. }) => {
            assert_eq!(pivot, Float::with_val(53, -3));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_shapes_precisions_and_limits_are_errors() {
    let ctx = ctx(1, "auto");
    let a = Matrix::zeros(3, 4, 100).unwrap();
    assert!(matches!(by_norms::cholesky(&ctx, &a, 100), Err(Error::NotSquare { .. })));
    let a = symmetric(4, 100, 1, 5.0);
    for bits in [0, 1, 100_000, u32::MAX] {
        assert!(matches!(by_norms::cholesky(&ctx, &a, bits), Err(Error::Precision { .. })), "{bits}");
    }
    let small = Context::builder().threads(1).memory_bytes(1000).build().unwrap();
    let Err(Error::MemoryLimit { limit_bytes: 1000, minimum_bytes }) = by_norms::cholesky(&small, &a, 100) else {
        panic!("a limit of 1000 bytes is too small");
    };
    let enough = Context::builder().threads(1).memory_bytes(minimum_bytes).build().unwrap();
    assert!(by_norms::cholesky(&enough, &a, 100).is_ok(), "the limit that the error names is enough");
    let stopped = Context::builder().threads(2).progress(|_| false).build().unwrap();
    assert!(matches!(by_norms::cholesky(&stopped, &a, 100), Err(Error::Cancelled)));
}

#[test]
fn one_solution_is_the_same_on_every_path_and_meets_its_bound() {
    for (n, bits) in [(1usize, 100u32), (7, 60), (8, 200), (9, 53), (41, 300), (70, 1030)] {
        for grade in [0, 300] {
            let a = graded(&symmetric(n, bits, n as u64, 1.5 * (n as f64).sqrt()), |i| grade * (i as i64 % 5 - 2));
            let values = (0..2 * n).map(|k| ((k * 37) % 19) as f64 - 9.0).collect::<Vec<_>>();
            let b = Matrix::from_f64s(n, 2, bits, &values).unwrap();
            let factor = by_norms::cholesky(&ctx(1, "auto"), &a, bits).unwrap();
            let x = factor.solve(&ctx(1, "auto"), &b, bits).unwrap();
            for kernel in sunzi::advanced::kernels::available() {
                let other = factor.solve(&ctx(2, kernel.name()), &b, bits).unwrap();
                assert!(other == x, "n = {n}, {bits} bits, kernel {}", kernel.name());
            }
            let exact = 4 * bits + 4000;
            let root = |i: usize| Float::with_val(64, a.float(i, i).sqrt());
            for col in 0..2 {
                let sum = (0..n).fold(Float::new(64), |sum, j| sum + x.float(j, col).abs() * root(j));
                for row in 0..n {
                    let mut rest = Float::with_val(exact, b.float(row, col));
                    for j in 0..n {
                        rest -= Float::with_val(exact, &a.float(row, j) * &x.float(j, col));
                    }
                    let bound = (Float::with_val(64, root(row) * &sum) + b.float(row, col).abs()) >> (bits as i32 - 4);
                    assert!(rest.abs() <= bound, "n = {n}, {bits} bits, grade {grade}, row {row}");
                }
            }
        }
    }
}
