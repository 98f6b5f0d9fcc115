//! Accuracy entry by entry of factorisations and solves: the bounds against exact residuals, and the same bits on every
//! path.

use crate::common::oracle::Exact;
use crate::common::solves::{
    assert_solved, assert_within, dot, magnitudes, power, rows_of, size, symmetric, transposed, triangle,
};
use crate::common::{Rng, by_norms, effort, forced, kernel_names};
use rug::Float;
use sunzi::advanced::cholesky_reference;
use sunzi::{
    Accuracy, CholeskyOptions, Context, Diag, Error, LdltOptions, Matrix, MoreBits, Op, Side, Symmetric, TrsmOptions,
    Uplo, cholesky_with, ldlt_with, solve, solve_with, trsm_with,
};

fn entrywise() -> CholeskyOptions {
    CholeskyOptions::new().accuracy(Accuracy::Entrywise)
}

fn alone() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// Symmetric matrices with an entry of about 1 on the diagonal, but for their scale.
#[derive(Clone, Copy, Debug)]
enum Coupling {
    /// Other entries anywhere in so many bits below the diagonal, some of them 0.
    Spread(usize),
    /// Two blocks with entries of one size, coupled by entries that lie so many bits lower.
    Weak(usize),
    /// The Gram matrix of an arrow: all entries of one size, nearly all of the factor 0.
    Arrow,
    /// Three diagonals and a corner: fill-in decays exponentially.
    Corner,
}

const COUPLINGS: [Coupling; 6] = [
    Coupling::Spread(1),
    Coupling::Spread(100),
    Coupling::Spread(700),
    Coupling::Weak(200),
    Coupling::Arrow,
    Coupling::Corner,
];

/// The lower triangle of a positive definite matrix; rows and columns are scaled by powers of two up to `2^grade`.
fn definite(coupling: Coupling, n: usize, bits: u32, (grade, seed): (i64, u64)) -> Matrix {
    let mut rng = Rng::new(seed);
    let shifts = (0..n).map(|_| rng.within(grade)).collect::<Vec<_>>();
    let mut a = Matrix::zeros(n, n, bits).unwrap();
    let low = -i64::from(bits) - 3 - i64::from(usize::BITS - n.leading_zeros());
    for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
        let below = match coupling {
            Coupling::Spread(range) => (rng.below(5) > 0).then(|| rng.below(range) as i64),
            Coupling::Weak(range) => Some(if (row < n / 2) == (col < n / 2) { 0 } else { range as i64 }),
            Coupling::Arrow => (col == 0).then_some(0),
            Coupling::Corner => (row - col <= 1 || (row, col) == (n - 1, 0)).then_some(0),
        };
        let entry = match (row == col, below) {
            (true, _) => (power(0), 0),
            (false, None) => (Float::new(bits), 0),
            (false, Some(below)) => (Float::with_val(bits, rng.integer(bits)), low - below),
        };
        let value = entry.0 << (entry.1 + shifts[row] + shifts[col]) as i32;
        a.set_float(row, col, &value).unwrap();
    }
    if matches!(coupling, Coupling::Arrow) && n > 0 {
        return gram_of_arrow(n, bits, &shifts);
    }
    a
}

/// `L L^T` of the factor with ones in its first column and on its diagonal, scaled.
fn gram_of_arrow(n: usize, bits: u32, shifts: &[i64]) -> Matrix {
    let mut a = Matrix::zeros(n, n, bits).unwrap();
    for (row, col) in (0..n).flat_map(|row| (0..=row).map(move |col| (row, col))) {
        let value = if row == col && row > 0 { 2 } else { 1 };
        a.set_float(row, col, &(Float::with_val(bits, value) << (shifts[row] + shifts[col]) as i32)).unwrap();
    }
    a
}

/// Asserts `|A - L D L^T|_ij <= factor (|L| |D| |L^T|)_ij`; returns the largest quotient of the two sides.
fn assert_factor(a: &Matrix, (lower, pivots): (&Matrix, Option<&Matrix>), factor: &Float, what: &str) -> f64 {
    let (a, lower) = (symmetric(a), rows_of(lower));
    let scaled = |row: &Vec<Exact>| match pivots {
        Some(pivots) => row.iter().enumerate().map(|(k, x)| x.times(&Exact::entry(&pivots.view(), k, 0))).collect(),
        None => row.clone(),
    };
    let mut worst = 0.0f64;
    for (i, row) in lower.iter().enumerate() {
        let row = scaled(row);
        for (j, other) in lower.iter().enumerate().take(i + 1) {
            let residual = a[i][j].clone().plus(dot(&row, other).negated());
            let bound = size(&dot(&magnitudes(&row), &magnitudes(other))) * factor;
            worst = worst.max(assert_within(&residual, &bound, (i, j), what));
        }
    }
    worst
}

#[test]
fn factors_keep_their_promise_or_say_by_how_much_they_miss_it() {
    let ctx = alone();
    let (mut worst, mut missed, mut repeated) = (0.0f64, 0, 0);
    for seed in 0..effort() {
        for (at, coupling) in COUPLINGS.into_iter().enumerate() {
            for n in [0, 1, 2, 5, 8, 9, 31, 32, 33, 50] {
                let bits = [2, 30, 53, 128][(at + n + seed as usize) % 4];
                let grade = [0, 3000][(n + seed as usize) % 2];
                let a = definite(coupling, n, bits.max(20), (grade, 100 * seed + n as u64));
                let what = format!("{coupling:?}, n = {n}, {bits} bits, seed {seed}");
                let outcome = cholesky_with(&ctx, Symmetric::lower(&a), bits, &entrywise()).unwrap();
                let report = outcome.report;
                let reached = report.accuracy == Accuracy::Entrywise;
                assert_eq!(reached, report.missing_bits == 0, "{what}");
                // Fill-in is a product of entries that lie far below the diagonal already.
                let lies_far_off = matches!(coupling, Coupling::Corner | Coupling::Spread(700));
                assert!(reached || lies_far_off, "{what}: missed by {} bits", report.missing_bits);
                let bound = power(2 - bits as i32 + report.missing_bits as i32);
                let quotient = assert_factor(&a, (outcome.result.factor(), None), &bound, &what);
                worst = worst.max(if reached { quotient } else { 0.0 });
                missed += u32::from(!reached);
                repeated += u32::from(report.repeats > 0);
                let again = cholesky_reference(Symmetric::lower(&a), bits, report.range_bits).unwrap();
                assert!(again.factor() == outcome.result.factor(), "{what}: other bits than the definition");
            }
        }
    }
    println!("largest residual over its bound {worst:.3}, {missed} missed, {repeated} repeated");
    assert!(worst > 0.1 && missed > 0 && repeated > 0);
}

#[test]
fn factors_have_the_same_bits_on_every_path() {
    for (coupling, n) in [(Coupling::Spread(300), 70), (Coupling::Corner, 41), (Coupling::Weak(90), 33)] {
        let a = definite(coupling, n, 100, (0, 7));
        let want = cholesky_with(&alone(), Symmetric::lower(&a), 100, &entrywise()).unwrap();
        for kernel in kernel_names() {
            for (threads, tile_rows) in [(1, None), (3, Some(8)), (2, Some(40))] {
                let ctx = forced(kernel, threads).build().unwrap();
                let options = entrywise().tile_rows(tile_rows);
                let got = cholesky_with(&ctx, Symmetric::lower(&a), 100, &options).unwrap();
                assert!(got.result.factor() == want.result.factor(), "{coupling:?} {kernel} {threads} {tile_rows:?}");
                assert_eq!(got.report.range_bits, want.report.range_bits);
            }
        }
    }
}

#[test]
fn bits_to_begin_with_spare_repeats() {
    let a = definite(Coupling::Corner, 20, 100, (0, 3));
    let first = cholesky_with(&alone(), Symmetric::lower(&a), 100, &entrywise()).unwrap();
    assert!(first.report.repeats > 0 && first.report.accuracy == Accuracy::Entrywise);
    let options = entrywise().range_bits(first.report.range_bits);
    let second = cholesky_with(&alone(), Symmetric::lower(&a), 100, &options).unwrap();
    assert_eq!((second.report.repeats, second.report.range_bits), (0, first.report.range_bits));
    assert!(second.result.factor() == first.result.factor());
}

#[test]
fn entries_beyond_any_number_of_bits_take_none() {
    let mut a = Matrix::from_f64s(2, 2, 60, &[1.0, 0.0, 0.0, 1.0]).unwrap();
    a.set_float(1, 0, &(Float::with_val(60, 1) << -(1 << 28))).unwrap();
    let report = cholesky_with(&alone(), Symmetric::lower(&a), 60, &entrywise()).unwrap().report;
    assert_eq!((report.accuracy, report.repeats, report.range_bits), (Accuracy::Norm, 0, 8));
    assert!(report.missing_bits > 30_000);
    let indefinite = Matrix::from_f64s(2, 2, 60, &[1.0, 2.0, 2.0, 1.0]).unwrap();
    let refused = cholesky_with(&alone(), Symmetric::lower(&indefinite), 60, &entrywise());
    assert!(matches!(refused, Err(Error::NotPositiveDefinite { index: 1, more_bits: MoreBits::Never, .. })));
}

/// A matrix with entries anywhere in `range` bits, a fifth of them 0; none on the diagonal.
fn spread((rows, cols): (usize, usize), bits: u32, (range, seed): (usize, u64)) -> Matrix {
    let mut rng = Rng::new(seed);
    let mut matrix = Matrix::zeros(rows, cols, bits).unwrap();
    for (col, row) in (0..cols).flat_map(|col| (0..rows).map(move |row| (col, row))) {
        let exponent = -(rng.below(range) as i64) - i64::from(bits);
        let value = rng.integer(bits);
        if (rng.below(5) > 0 && value != 0) || row == col {
            let value = if value == 0 { value + 1 } else { value };
            matrix.set_integer_exponent(row, col, &value, exponent).unwrap();
        }
    }
    matrix
}

/// Asserts `|alpha b - op(T) x| <= 2^(1 - b) |op(T)| |x|` for all entries; returns the largest quotient.
fn assert_trsm(t: &Matrix, b: &Matrix, x: &Matrix, options: &TrsmOptions<'_>, what: &str) -> f64 {
    let t = triangle(t, options);
    let (t, right, solution) = match options.side {
        Side::Left => (t, transposed(&rows_of(b)), transposed(&rows_of(x))),
        Side::Right => (transposed(&t), rows_of(b), rows_of(x)),
    };
    let alpha = options.alpha.map_or(Exact { integer: 1.into(), exponent: 0 }, Exact::float);
    let unit = power(1 - x.precision_bits() as i32);
    let mut worst = 0.0f64;
    for (col, (right, solution)) in right.iter().zip(&solution).enumerate() {
        for (row, entries) in t.iter().enumerate() {
            let residual = alpha.times(&right[row]).plus(dot(entries, solution).negated());
            let bound = size(&dot(&magnitudes(entries), &magnitudes(solution))) * &unit;
            worst = worst.max(assert_within(&residual, &bound, (row, col), what));
        }
    }
    worst
}

#[test]
fn triangular_solves_keep_their_promise() {
    let ctx = alone();
    let third = Float::with_val(70, 1) / 3;
    let mut worst = 0.0f64;
    for seed in 0..effort() {
        for (at, (order, columns)) in
            [(0, 3), (1, 1), (3, 0), (16, 9), (17, 8), (17, 1), (40, 3), (40, 12), (70, 8), (70, 40)]
                .into_iter()
                .enumerate()
        {
            for range in [1, 60, 900] {
                let pick = at + range + seed as usize;
                let options = TrsmOptions::new()
                    .side(if pick.is_multiple_of(2) { Side::Left } else { Side::Right })
                    .uplo(if (pick / 2).is_multiple_of(2) { Uplo::Lower } else { Uplo::Upper })
                    .op(if (pick / 4).is_multiple_of(2) { Op::NoTranspose } else { Op::Transpose })
                    .diag(if pick.is_multiple_of(5) { Diag::Unit } else { Diag::NonUnit })
                    .alpha(pick.is_multiple_of(3).then_some(&third))
                    .accuracy(Accuracy::Entrywise);
                let bits = [53, 100, 256][pick % 3];
                let t = spread((order, order), bits, (range, seed + at as u64));
                let shape = if options.side == Side::Left { (order, columns) } else { (columns, order) };
                let b = spread(shape, bits, (range, 77 + seed + at as u64));
                let what = format!("{order} x {columns}, range {range}, {bits} bits, {options:?}");
                let x = trsm_with(&ctx, &t, &b, bits, &options).unwrap().result;
                worst = worst.max(assert_trsm(&t, &b, &x, &options, &what));
            }
        }
    }
    println!("largest residual over its bound {worst:.3}");
    assert!(worst > 0.2);
}

#[test]
fn triangular_solves_have_the_same_bits_on_every_path() {
    let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
    for range in [1, 200] {
        let (t, b) = (spread((60, 60), 90, (range, 5)), spread((60, 20), 90, (range, 6)));
        let want = trsm_with(&alone(), &t, &b, 90, &options).unwrap().result;
        for kernel in kernel_names() {
            for threads in [1, 3] {
                let ctx = forced(kernel, threads).build().unwrap();
                let got = trsm_with(&ctx, &t, &b, 90, &options).unwrap().result;
                assert!(got == want, "{kernel}, {threads} threads, range {range}");
            }
        }
        let limited = Context::builder().threads(1).memory_bytes(4 << 20).build().unwrap();
        assert!(trsm_with(&limited, &t, &b, 90, &options).unwrap().result == want, "a memory limit");
    }
}

#[test]
fn solves_keep_their_promise() {
    let (ctx, threads) = (alone(), Context::builder().threads(3).build().unwrap());
    for seed in 0..effort() {
        for coupling in [Coupling::Spread(1), Coupling::Spread(150), Coupling::Weak(200), Coupling::Arrow] {
            for (n, columns) in [(1, 1), (2, 2), (9, 1), (20, 3), (33, 9), (40, 20)] {
                let a = definite(coupling, n, 80, (seed as i64 * 40, 100 * seed + n as u64));
                let b = spread((n, columns), 80, (1 + 200 * (n % 3), seed));
                let what = format!("{coupling:?}, n = {n}, {columns} columns, seed {seed}");
                let exact = symmetric(&a);
                let factor = cholesky_with(&ctx, Symmetric::lower(&a), 80, &entrywise()).unwrap().result;
                let x = factor.solve(&ctx, &b, 80).unwrap();
                assert_solved((&exact, &b, &x), (factor.factor(), None), &what);
                assert!(factor.solve(&threads, &b, 80).unwrap() == x, "{what}, three threads");
                let whole = solve_with(&ctx, Symmetric::lower(&a), &b, 80, &entrywise()).unwrap();
                assert!(whole.result == x && whole.report.accuracy == Accuracy::Entrywise, "{what}");
                let options = LdltOptions::new().accuracy(Accuracy::Entrywise);
                let factors = ldlt_with(&ctx, Symmetric::lower(&a), 80, &options).unwrap().result;
                let (lower, pivots) = (factors.lower(), Some(factors.pivots()));
                assert_factor(&a, (lower, pivots), &power(3 - 80), &what);
                let x = factors.solve(&ctx, &b, 80).unwrap();
                assert_solved((&exact, &b, &x), (lower, pivots), &what);
            }
        }
    }
}

#[test]
fn factors_without_pivoting_keep_their_promise_beyond_a_block() {
    let a = definite(Coupling::Spread(90), 150, 60, (0, 9));
    let options = LdltOptions::new().accuracy(Accuracy::Entrywise);
    let factors = ldlt_with(&alone(), Symmetric::lower(&a), 60, &options).unwrap().result;
    assert_factor(&a, (factors.lower(), Some(factors.pivots())), &power(3 - 60), "150 rows");
}

#[test]
fn small_unknowns_of_weakly_coupled_systems_are_not_lost() {
    let ctx = alone();
    let mut a = Matrix::from_f64s(2, 2, 53, &[1.0, 0.0, 0.0, 1.0]).unwrap();
    for (row, col) in [(0, 1), (1, 0)] {
        a.set_float(row, col, &(Float::with_val(53, 1) << -60)).unwrap();
    }
    let b = Matrix::from_f64s(2, 1, 53, &[1.0, 0.0]).unwrap();
    assert!(by_norms::solve(&ctx, &a, &b, 53).unwrap().float(1, 0).is_zero());
    let x = solve(&ctx, &a, &b, 53).unwrap();
    assert_eq!((x.float(0, 0), x.float(1, 0)), (Float::with_val(53, 1), Float::with_val(53, -1) << -60));
}
