//! Extreme eigenvalues: intervals that hold them, by the signs of exact pivots, and are as narrow as promised.

use crate::common::{Kind, Rng, claims, matrix, seeds};
use rug::{Float, Integer, Rational};
use sunzi::eigenvalue::{EigenvalueInterval, EigenvalueOptions, Extreme, plan_extreme_eigenvalue};
use sunzi::eigenvalue::{extreme_eigenvalue, extreme_eigenvalue_with, pencil_eigenvalue, pencil_eigenvalue_with};
use sunzi::{Context, Error, Matrix, Symmetric, SymmetricMatrix, Uplo};

type Square = Vec<Vec<Rational>>;

fn context(threads: usize) -> Context {
    Context::builder().threads(threads).build().unwrap()
}

fn rational(matrix: &Matrix) -> Square {
    let entry = |i: usize, j: usize| matrix.float(i, j).to_rational().unwrap();
    (0..matrix.rows()).map(|i| (0..matrix.cols()).map(|j| entry(i, j)).collect()).collect()
}

/// How many eigenvalues `A - t B` has below 0, for symmetric matrices, by exact elimination.
///
/// On integers, with the common denominator multiplied out: an entry after step k is a minor of the matrix, and the
/// division by the pivot before is exact (Bareiss 1968). The pivots of the elimination in fractions are quotients of
/// these.
fn negatives(a: &Square, b: &Square, t: &Rational) -> usize {
    let order = a.len();
    let at = |i: usize, j: usize| &a[i][j] - Rational::from(t * &b[i][j]);
    let exact = (0..order).map(|i| (0..order).map(|j| at(i, j)).collect::<Vec<_>>()).collect::<Vec<_>>();
    let common = exact.iter().flatten().fold(Integer::from(1), |common, entry| common.lcm(entry.denom()));
    let scaled = |entry: &Rational| Integer::from(&common / entry.denom()) * entry.numer();
    let mut rest = exact.iter().map(|row| row.iter().map(scaled).collect::<Vec<_>>()).collect::<Vec<_>>();
    let (mut count, mut previous) = (0, Integer::from(1));
    for k in 0..order {
        let pivot = rest[k][k].clone();
        if pivot == 0 {
            assert!((k..order).all(|i| rest[i][k] == 0), "the elimination needs another order");
            continue;
        }
        count += usize::from((pivot < 0) != (previous < 0));
        let own = rest[k].clone();
        for row in &mut rest[k + 1..] {
            let first = row[k].clone();
            for (entry, own) in row.iter_mut().zip(&own).skip(k) {
                let difference = Integer::from(&pivot * &*entry) - Integer::from(&first * own);
                *entry = difference.div_exact(&previous);
            }
        }
        previous = pivot;
    }
    count
}

fn identity(order: usize) -> Square {
    (0..order).map(|i| (0..order).map(|j| Rational::from(u32::from(i == j))).collect()).collect()
}

/// Asserts that the interval holds the end of the spectrum of `A v = t B v`, and how wide it is.
fn assert_holds(found: &EigenvalueInterval, which: Extreme, pencil: (&Square, &Square), bits: u32, label: &str) {
    let (a, b) = pencil;
    let (lower, upper) = (found.lower.to_rational().unwrap(), found.upper.to_rational().unwrap());
    let tiny = Rational::from((1, 1)) >> 9000u32;
    let order = a.len();
    assert!(lower <= upper, "{label}");
    match which {
        Extreme::Smallest => {
            assert_eq!(negatives(a, b, &(lower.clone() - &tiny)), 0, "{label}: the lower end is too high");
            assert!(negatives(a, b, &(upper.clone() + &tiny)) > 0, "{label}: the upper end is too low");
        }
        Extreme::Largest => {
            assert_eq!(negatives(a, b, &(upper.clone() + &tiny)), order, "{label}: the upper end is too low");
            assert!(negatives(a, b, &(lower.clone() - &tiny)) < order, "{label}: the lower end is too high");
        }
    }
    let size = lower.clone().abs().max(upper.clone().abs());
    let norm = a.iter().flatten().map(|entry| entry.clone().abs()).max().unwrap() * order as u32;
    let promise = (size >> bits).max(norm >> (2 * bits + 30));
    assert!(upper - lower <= promise, "{label}: {found:?} is too wide");
}

fn symmetric(kind: Kind, order: usize, bits: u32, seed: u64) -> SymmetricMatrix {
    SymmetricMatrix::from_triangle(matrix(kind, order, order, bits, seed), Uplo::Lower).unwrap()
}

#[test]
fn intervals_hold_the_ends_of_the_spectrum() {
    let ctx = context(2);
    let (mut searches, mut long) = (0, 0);
    for seed in claims(100) {
        let mut rng = Rng::new(seed);
        let order = 1 + rng.below(7);
        let (kind, bits) = (rng.pick(&[Kind::Unit, Kind::Doubles, Kind::Flat]), rng.pick(&[4, 32, 100, 300]));
        let a = symmetric(kind, order, 60, seed);
        for which in [Extreme::Smallest, Extreme::Largest] {
            let options = EigenvalueOptions::new().which(which);
            let outcome = extreme_eigenvalue_with(&ctx, &a, bits, &options).unwrap();
            let label = format!("seed {seed}, order {order}, {kind:?}, {bits} bits, {:?}", outcome.report);
            assert_holds(&outcome.result, which, (&rational(&a), &identity(order)), bits, &label);
            // Four searches of 20,000 took 36 to 66.
            assert!(outcome.report.factorisations < 100, "{label}");
            searches += 1;
            long += u32::from(outcome.report.factorisations >= 30);
        }
    }
    assert!(1000 * long <= searches, "{long} of {searches}");
}

#[test]
fn eigenvalues_far_below_the_norm_are_found() {
    let ctx = context(1);
    for order in [3usize, 6, 9, 12] {
        let hilbert = Matrix::from_fn(order, order, 400, |i, j| Float::with_val(400, 1) / (i + j + 1) as u32).unwrap();
        for bits in [16, 64, 300] {
            let found = extreme_eigenvalue(&ctx, &hilbert, bits).unwrap();
            assert!(found.lower > 0);
            assert_holds(&found, Extreme::Smallest, (&rational(&hilbert), &identity(order)), bits, "hilbert");
        }
    }
    // Rank one: all eigenvalues but one are 0. And nothing at all.
    let ones = Matrix::from_f64s(5, 5, 80, &[1.0; 25]).unwrap();
    for (matrix, bits) in [(ones, 40), (Matrix::zeros(4, 4, 100).unwrap(), 40)] {
        let found = extreme_eigenvalue(&ctx, &matrix, bits).unwrap();
        assert!(found.lower <= 0 && found.upper >= 0);
        assert!(found.upper - found.lower < 1e-30);
    }
    // The same twice, with the lowest in the middle, and exponents far from 1.
    for shift in [0, 5000, -5000] {
        let diagonal = [3.0, 7.0, -2.0, -2.0, 9.0];
        let entry = |i: usize, j: usize| Float::with_val(64, if i == j { diagonal[i] } else { 0.0 }) << shift;
        let matrix = Matrix::from_fn(5, 5, 64, entry).unwrap();
        let found = extreme_eigenvalue(&ctx, &matrix, 64).unwrap();
        let want: Float = Float::with_val(64, -2) << shift;
        assert!(found.lower <= want && found.upper >= want, "{found:?}");
        let width = Float::with_val(64, &found.upper - &found.lower);
        assert!(width <= want.abs() >> 64u32);
    }
}

#[test]
fn a_large_matrix_has_the_eigenvalue_of_the_formula() {
    let order = 150;
    let entry = |i: usize, j: usize| Float::with_val(64, if i == j { 2 } else { -i32::from(i.abs_diff(j) == 1) });
    let matrix = Matrix::from_fn(order, order, 64, entry).unwrap();
    let angle = Float::with_val(500, rug::float::Constant::Pi) / (order + 1) as u32;
    let want = 2 - 2 * angle.cos();
    let mut all = Vec::new();
    for threads in [1, 2] {
        let outcome = extreme_eigenvalue_with(&context(threads), &matrix, 400, &EigenvalueOptions::new()).unwrap();
        let EigenvalueInterval { lower, upper } = &outcome.result;
        assert!(*lower <= want && *upper >= want);
        assert!(Float::with_val(500, upper - lower) <= Float::with_val(500, &want >> 400u32));
        assert!(outcome.report.lanczos_steps > 10 && outcome.report.factorisations < 20, "{:?}", outcome.report);
        let limited = context(threads).with_memory_bytes(Some(outcome.report.planned_bytes));
        assert_eq!(extreme_eigenvalue(&limited, &matrix, 400).unwrap(), outcome.result);
        all.push(outcome.result);
    }
    assert_eq!(all[0], all[1]);
    let refused = extreme_eigenvalue(&context(1).with_memory_bytes(Some(1000)), &matrix, 400);
    assert!(matches!(refused, Err(Error::MemoryLimit { .. })));
}

#[test]
fn eigenvalues_of_products_with_inverse_factors_are_held() {
    let ctx = context(2);
    for seed in seeds(30) {
        let mut rng = Rng::new(seed);
        let (order, bits) = (1 + rng.below(6), rng.pick(&[16, 32, 128, 256]));
        let x = symmetric(Kind::Unit, order, 50, seed);
        let mut l = matrix(Kind::Unit, order, order, 40, seed + 1);
        for i in 0..order {
            // Rows far apart, or a small last pivot: the condition of L is large.
            let scale = if seed % 3 == 0 { 40 * i as i32 } else { 0 };
            for j in 0..order {
                let entry = l.float(i, j) << (scale + if i == j && i + 1 == order { -30 } else { 0 });
                l.set_float(i, j, &if j > i { Float::with_val(9, 77) } else { entry }).unwrap();
            }
        }
        let lower = |i: usize, j: usize| if j > i { Rational::new() } else { l.float(i, j).to_rational().unwrap() };
        let term = |i: usize, j: usize, k: usize| lower(i, k) * lower(j, k);
        let square = |i: usize, j: usize| (0..order).map(|k| term(i, j, k)).sum::<Rational>();
        let z = (0..order).map(|i| (0..order).map(|j| square(i, j)).collect()).collect::<Square>();
        let mut found = Vec::new();
        for which in [Extreme::Smallest, Extreme::Largest] {
            let options = EigenvalueOptions::new().which(which);
            let outcome = pencil_eigenvalue_with(&ctx, &l, Symmetric::from(&x), bits, &options).unwrap();
            let label = format!("seed {seed}, order {order}, {bits} bits, {:?}", outcome.report);
            let (a, b) = (rational(&x), &z);
            let EigenvalueInterval { lower, upper } = &outcome.result;
            let (tiny, ends) =
                (Rational::from((1, 1)) >> 9000u32, [lower, upper].map(|end| end.to_rational().unwrap()));
            let (below, above) = (ends[0].clone() - &tiny, ends[1].clone() + &tiny);
            let (none, some) = (negatives(&a, b, &below), negatives(&a, b, &above));
            match which {
                Extreme::Smallest => assert!(none == 0 && some > 0, "{label}"),
                Extreme::Largest => assert!(some == order && none < order, "{label}"),
            }
            found.push((ends, label));
        }
        let sizes = found.iter().flat_map(|(ends, _)| ends.iter().map(|end| end.clone().abs()));
        let norm = sizes.max().unwrap() * order as u32;
        for ([lower, upper], label) in found {
            let size = lower.clone().abs().max(upper.clone().abs());
            let promise = (size >> bits).max(norm.clone() >> (2 * bits + 30));
            assert!(upper - lower <= promise, "{label}: too wide");
        }
    }
}

/// All eigenvalues of a zero matrix are 0, and so is its norm: the interval has no width.
#[test]
fn the_interval_of_a_zero_matrix_is_a_point() {
    let ctx = context(1);
    for (order, bits) in [(1, 2), (1, 32), (1, 500), (3, 30), (40, 100), (300, 64)] {
        let (zero, unit) = (Matrix::zeros(order, order, 64).unwrap(), Matrix::identity(order, 64).unwrap());
        for which in [Extreme::Smallest, Extreme::Largest] {
            let options = EigenvalueOptions::new().which(which);
            let found = extreme_eigenvalue_with(&ctx, &zero, bits, &options).unwrap();
            assert!(found.result.lower == 0 && found.result.upper == 0, "{order} {bits}: {:?}", found.result);
            let found = pencil_eigenvalue_with(&ctx, &unit, &zero, bits, &options).unwrap();
            assert!(found.result.lower == 0 && found.result.upper == 0, "{order} {bits}: {:?}", found.result);
        }
    }
}

#[test]
fn searches_refuse_what_has_no_eigenvalue() {
    let ctx = context(1);
    let (flat, empty) = (Matrix::zeros(2, 3, 64).unwrap(), Matrix::zeros(0, 0, 64).unwrap());
    assert!(matches!(extreme_eigenvalue(&ctx, &flat, 32), Err(Error::NotSquare { .. })));
    assert!(matches!(extreme_eigenvalue(&ctx, &empty, 32), Err(Error::InvalidArgument(_))));
    let plain = matrix(Kind::Unit, 3, 3, 64, 1);
    assert!(matches!(extreme_eigenvalue(&ctx, &plain, 32), Err(Error::NotSymmetric { .. })));
    let known = symmetric(Kind::Unit, 3, 64, 1);
    assert!(matches!(extreme_eigenvalue(&ctx, &known, 1), Err(Error::Precision { .. })));
    assert!(matches!(extreme_eigenvalue(&ctx, &known, u32::MAX), Err(Error::Precision { .. })));
    assert!(matches!(pencil_eigenvalue(&ctx, &empty, &known, 32), Err(Error::ShapeMismatch { .. })));
    let singular = Matrix::zeros(3, 3, 64).unwrap();
    assert!(matches!(pencil_eigenvalue(&ctx, &singular, &known, 32), Err(Error::Singular { index: 0 })));
}

/// Of a matrix whose eigenvalues are near its norm a run takes what the plan says, within the limit that it names.
#[test]
fn a_plan_holds_what_a_run_takes() {
    let (order, bits) = (70, 200);
    let a = SymmetricMatrix::new(Matrix::identity(order, bits).unwrap()).unwrap();
    let plan = plan_extreme_eigenvalue(&context(1), order, bits, bits).unwrap();
    assert_eq!((plan.order, plan.precision_bits, plan.factorisation.precision_bits), (order, bits, bits + 64));
    let found = extreme_eigenvalue_with(&context(1), &a, bits, &EigenvalueOptions::new()).unwrap();
    assert!(found.report.planned_bytes <= plan.planned_bytes, "{:?} {}", found.report, plan.planned_bytes);
    let limited = |bytes| Context::builder().threads(1).memory_bytes(bytes).build().unwrap();
    let Err(Error::MemoryLimit { minimum_bytes, .. }) = plan_extreme_eigenvalue(&limited(1), order, bits, bits) else {
        panic!("one byte is enough");
    };
    assert!(minimum_bytes <= plan.planned_bytes);
    plan_extreme_eigenvalue(&limited(minimum_bytes), order, bits, bits).unwrap();
    extreme_eigenvalue_with(&limited(minimum_bytes), &a, bits, &EigenvalueOptions::new()).unwrap();
    for (order, bits) in [(0, 64), (10, 1), (10, 1 << 30)] {
        assert!(plan_extreme_eigenvalue(&context(1), order, bits, bits).is_err(), "{order} {bits}");
    }
    let most = plan_extreme_eigenvalue(&context(1), usize::MAX, 64, 64);
    assert!(matches!(most, Err(Error::DimensionOverflow { .. })), "{most:?}");
}

/// So is a plan for a matrix of more bits than its eigenvalue is to have.
#[test]
fn a_plan_counts_the_precision_of_the_matrix() {
    let (order, bits) = (50, 100);
    for matrix_bits in [100, 164, 165, 1000] {
        let a = SymmetricMatrix::new(Matrix::identity(order, matrix_bits).unwrap()).unwrap();
        let plan = plan_extreme_eigenvalue(&context(1), order, matrix_bits, bits).unwrap();
        let found = extreme_eigenvalue_with(&context(1), &a, bits, &EigenvalueOptions::new()).unwrap();
        assert!(found.report.planned_bytes <= plan.planned_bytes, "{matrix_bits}: {:?}", found.report);
    }
}

/// Bounds of errors are powers of two, which must be within the range of exponents.
#[test]
fn entries_near_the_ends_of_the_exponents_are_refused() {
    let of = |exponent: i64| {
        let mut matrix = Matrix::zeros(2, 2, 64).unwrap();
        matrix.set_integer_exponent(0, 0, &3.into(), exponent).unwrap();
        matrix.set_integer_exponent(1, 1, &5.into(), exponent).unwrap();
        extreme_eigenvalue(&context(1), &SymmetricMatrix::new(matrix).unwrap(), 64)
    };
    for (sign, most) in [(1, (1 << 27) - 3), (-1, (1 << 27) + 3)] {
        let found = of(sign * most).unwrap();
        let exact = Float::with_val(64, 3) << (sign * most) as i32;
        assert!(found.lower <= exact && exact <= found.upper, "{sign}: {found:?}");
        for exponent in [sign * (most + 1), sign * 600_000_000] {
            let refused = of(exponent).unwrap_err();
            assert!(matches!(refused, Error::ExponentRange { row: 1, column: 1, .. }), "{exponent}: {refused}");
        }
    }
}

/// Entries 4 and 1/2 of which each is off by a part of 2^-10: no eigenvalue moves by more than 2^-5.
#[test]
fn roundings_move_an_eigenvalue_by_no_more_than_their_norm() {
    let point = EigenvalueInterval { lower: Float::with_val(53, 1), upper: Float::with_val(53, 1) };
    let a = Matrix::from_f64s(2, 2, 53, &[4.0, 0.5, 0.5, 0.0]).unwrap();
    let wider = point.clone().widened_by_rounding(a.view(), 10);
    assert!(wider.lower == 1.0 - 0.03125 && wider.upper == 1.03125, "{wider:?}");
    assert_eq!(point.clone().widened_by_rounding(Matrix::zeros(3, 3, 53).unwrap().view(), 10), point);
}
