//! Solutions, inverses, Cholesky factors and log-determinants of balls.

use super::operands;
use super::points::{POINTS, Radii, assert_inside, balls, determinant, factor, number, point};
use crate::common::Rng;
use crate::common::rational::{FAMILIES, definite, identity, rounded, solve as solve_exactly};
use rug::ops::Pow;
use rug::{Float, Rational};
use sunzi::ball::{self, BallMatrix};
use sunzi::{Context, Error, Matrix};

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// A positive definite matrix of balls, and words for it.
fn system(rng: &mut Rng) -> (BallMatrix, u32, String) {
    let n = rng.pick(&[1usize, 2, 3, 4, 6]);
    let bits = rng.pick(&[53u32, 120, 250]);
    let radii =
        rng.pick(&[Radii::None, Radii::None, Radii::Tiny, Radii::Some, Radii::Relative(30), Radii::Relative(5)]);
    let (midpoint, name) = if n >= 2 && rng.below(3) > 0 {
        let family = rng.pick(&FAMILIES);
        // Rounded to many bits, so that the matrix is what it is.
        (rounded(&definite(family, n, rng), n, 700).0, format!("{family:?}"))
    } else {
        (gram(rng, n, bits), "Gram".into())
    };
    let label = format!("{name}, n = {n}, {bits} bits, {radii:?}");
    (balls(midpoint, radii, true, rng), bits, label)
}

/// `P^T P` of small integers, with rows scaled far apart at times.
fn gram(rng: &mut Rng, n: usize, bits: u32) -> Matrix {
    let p: Vec<Vec<i64>> = (0..n + 2).map(|_| (0..n).map(|_| rng.within(50)).collect()).collect();
    let spread = rng.pick(&[0i64, 100]);
    let scales: Vec<i32> = (0..n).map(|_| rng.within(spread) as i32).collect();
    Matrix::from_fn(n, n, bits.max(24), |row, col| {
        let sum: i64 = p.iter().map(|p| p[row] * p[col]).sum();
        Float::with_val(bits.max(24), sum + i64::from(row == col)) << (scales[row] + scales[col])
    })
    .unwrap()
}

/// Whether an error says that there is no proof for all points.
pub fn is_unproven(error: &Error) -> bool {
    matches!(error, Error::InvalidArgument(text) if text.contains("balls may contain"))
}

#[test]
fn solutions_hold_those_of_all_points() {
    let (ctx, mut proven) = (context(), 0);
    let count = operands(40, 1000);
    for seed in 0..count {
        let mut rng = Rng::new(500 + seed);
        let (a, bits, label) = system(&mut rng);
        let cols = rng.pick(&[0usize, 1, 3]);
        let right = Matrix::from_fn(a.rows(), cols, bits, |_, _| number(&mut rng, bits, 4)).unwrap();
        let radii = rng.pick(&[Radii::None, Radii::Tiny, Radii::Relative(8)]);
        let b = balls(right, radii, false, &mut rng);
        let label = format!("seed {seed}: {label}, right {radii:?}");
        let found = match ball::solve(&ctx, &a, &b, bits) {
            Ok(found) => found,
            Err(error) if is_unproven(&error) => continue,
            Err(error) => panic!("{label}: {error}"),
        };
        proven += 1;
        for _ in 0..POINTS {
            let (p, q) = (point(&a, false, &mut rng), point(&b, false, &mut rng));
            let exact = solve_exactly(&p, &q).unwrap_or_else(|| panic!("{label}: a point is singular"));
            assert_inside(&found, &exact, &label);
        }
    }
    assert!(2 * proven > count, "{proven} of {count}");
}

#[test]
fn inverses_hold_those_of_all_points_and_are_rounded_once_where_radii_are_0() {
    let (ctx, mut proven) = (context(), 0);
    let count = operands(40, 1000);
    for seed in 0..count {
        let mut rng = Rng::new(700 + seed);
        let (a, bits, label) = system(&mut rng);
        let label = format!("seed {seed}: {label}");
        let found = match ball::inverse(&ctx, &a, bits) {
            Ok(found) => found,
            Err(error) if is_unproven(&error) => continue,
            Err(error) => panic!("{label}: {error}"),
        };
        proven += 1;
        for _ in 0..POINTS {
            let exact = solve_exactly(&point(&a, false, &mut rng), &identity(a.rows())).unwrap();
            assert_inside(&found, &exact, &label);
            if a.radius().max_norm() > 0 {
                continue;
            }
            for (row, col) in (0..a.rows()).flat_map(|row| (0..a.rows()).map(move |col| (row, col))) {
                let (size, radius) = (Float::with_val(64, &exact[row][col]).abs(), found.radius().float(row, col));
                let largest = Float::with_val(64, Rational::from(&exact[row][row] * &exact[col][col])).sqrt() >> 40;
                let unit = size.max(&largest) >> (bits - 3);
                assert!(
                    radius <= unit,
                    "{label}: row {row}, column {col}: {radius} beside {}",
                    exact[row][col].to_f64()
                );
            }
        }
    }
    assert!(2 * proven > count, "{proven} of {count}");
}

/// Factors of a hundred points lie in the balls, whose radii are at most `2^8` times what the factors differ by, or a
/// unit in the last place, or `2^-60` of the largest radius, each relative to its row: derivatives are sums that are
/// formed with 64 bits beyond the condition, so those that are 0 are only known to be that small.
fn assert_factors(a: &BallMatrix, found: &BallMatrix, bits: u32, rng: &mut Rng, label: &str) {
    let (n, sampled_bits) = (a.rows(), 4 * bits + 2000);
    let mut extremes: Vec<Option<(Float, Float)>> = vec![None; n * n];
    for _ in 0..100 {
        let exact = factor(&point(a, true, rng), sampled_bits).unwrap_or_else(|| panic!("{label}"));
        for (row, col) in (0..n).flat_map(|row| (0..n).map(move |col| (row, col))) {
            let value = &exact[row][col];
            // The sample is as good as exact: off by far less than this.
            let off = Float::with_val(64, value).abs() >> (2 * bits + 200);
            let distance = Float::with_val(sampled_bits, &found.midpoint().float(row, col) - value).abs();
            let radius = found.radius().float(row, col);
            assert!(distance <= Float::with_val(sampled_bits, &radius + off), "{label}: row {row}, column {col}");
            let own = &mut extremes[row * n + col];
            *own = Some(match own.take() {
                None => (value.clone(), value.clone()),
                Some((least, most)) => (least.min(value), most.max(value)),
            });
        }
    }
    let places = || (0..n).flat_map(|row| (0..=row).map(move |col| (row, col)));
    let size = |row: usize, col: usize| {
        let [diagonal, own] = [row, col].map(|col| found.midpoint().float(row, col).abs());
        Float::with_val(64, diagonal.max(&own))
    };
    let relative = |(row, col): (usize, usize)| found.radius().float(row, col) / size(row, col);
    let largest = places().map(relative).fold(Float::new(64), |largest, other| largest.max(&other));
    for (row, col) in places() {
        let (least, most) = extremes[row * n + col].clone().unwrap();
        let unit = (Float::with_val(64, &largest) >> 60u32).max(&(Float::with_val(64, 1) >> bits));
        let spread = Float::with_val(64, most - least).max(&(unit * size(row, col)));
        let radius = found.radius().float(row, col);
        assert!(radius <= spread.clone() << 8, "{label}: row {row}, column {col}: {radius} beside {spread}");
    }
}

#[test]
fn factors_hold_those_of_all_points_and_are_not_much_wider() {
    let (ctx, mut proven) = (context(), 0);
    let count = operands(200, 5000);
    for seed in 0..count {
        let mut rng = Rng::new(900 + seed);
        let (a, bits, label) = system(&mut rng);
        let label = format!("seed {seed}: {label}");
        let found = match ball::cholesky(&ctx, &a, bits) {
            Ok(found) => found,
            Err(error) if is_unproven(&error) => continue,
            Err(error) => panic!("{label}: {error}"),
        };
        proven += 1;
        assert_factors(&a, &found, bits, &mut rng, &label);
    }
    assert!(2 * proven > count, "{proven} of {count}");
}

/// The entry of row 2 and column 1 of the factor of `r^|i - j|` does not depend on entry (1, 0) to first order, as the
/// derivatives with respect to it and to its equal cancel. With more rows there are more pairs than count as one.
#[test]
fn radii_are_small_where_the_derivatives_of_equal_entries_cancel() {
    let (ctx, bits) = (context(), 120);
    for n in [3, 12] {
        let near = Float::with_val(700, 1) - (Float::with_val(700, 1) >> 16);
        let power = |row: usize, col: usize| Float::with_val(700, Pow::pow(&near, row.abs_diff(col) as u32));
        let midpoint = Matrix::from_fn(n, n, 700, power).unwrap();
        let part = |row: usize, col: usize| if row + col == 1 { 40 } else { 100 };
        let radius = Matrix::from_fn(n, n, 64, |row, col| Float::with_val(64, 1) >> part(row, col)).unwrap();
        let a = BallMatrix::new(midpoint, &radius).unwrap();
        let found = ball::cholesky(&ctx, &a, bits).unwrap();
        assert_factors(&a, &found, bits, &mut Rng::new(n as u64), &format!("n = {n}"));
        let [first, second] = [(1, 1), (2, 1)].map(|(row, col)| found.radius().float(row, col));
        assert!(second <= first >> 20, "n = {n}: {second}");
    }
}

/// The same balls with radii a power of two times as wide.
fn widened(a: &BallMatrix, shift: i32) -> BallMatrix {
    let radius = Matrix::from_fn(a.rows(), a.rows(), 64, |row, col| a.radius().float(row, col) << shift);
    BallMatrix::new(a.midpoint().clone(), &radius.unwrap()).unwrap()
}

/// Radii between a half and all of those for which no proof is found any more.
#[test]
fn factors_near_the_first_singular_point_are_not_much_wider() {
    let ctx = context();
    let mut tried = 0;
    for seed in 0..operands(30, 1000) {
        let mut rng = Rng::new(1900 + seed);
        let (a, bits, label) = system(&mut rng);
        if a.radius().max_norm() == 0 {
            continue;
        }
        let (mut low, mut high) = (-900, 900);
        while high - low > 1 {
            let middle = (low + high) / 2;
            match ball::cholesky(&ctx, &widened(&a, middle), bits) {
                Ok(_) => low = middle,
                Err(error) if is_unproven(&error) => high = middle,
                Err(error) => panic!("seed {seed}: {label}: {error}"),
            }
        }
        let widest = widened(&a, low);
        let found = ball::cholesky(&ctx, &widest, bits).unwrap();
        assert_factors(&widest, &found, bits, &mut rng, &format!("seed {seed}: {label}, radii times 2^{low}"));
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn logarithms_of_determinants_hold_those_of_all_points() {
    let (ctx, mut proven) = (context(), 0);
    let count = operands(40, 500);
    for seed in 0..count {
        let mut rng = Rng::new(1100 + seed);
        let (a, bits, label) = system(&mut rng);
        let label = format!("seed {seed}: {label}");
        let found = match ball::log_det(&ctx, &a, bits) {
            Ok(found) => found,
            Err(error) if is_unproven(&error) => continue,
            Err(error) => panic!("{label}: {error}"),
        };
        proven += 1;
        for _ in 0..POINTS {
            let determinant = determinant(&point(&a, false, &mut rng));
            assert!(determinant > 0, "{label}");
            let exact = Float::with_val(3 * bits + 300, &determinant).ln();
            let distance = Float::with_val(3 * bits + 300, &found.midpoint - &exact).abs();
            let slack = Float::with_val(64, exact.abs()) >> (2 * bits + 200);
            assert!(distance <= found.radius.clone() + slack, "{label}: {distance} beside {}", found.radius);
        }
        if a.radius().max_norm() == 0 {
            let unit = (found.midpoint.clone().abs() >> bits).max(&(Float::with_val(64, 1) >> (bits + 40)));
            assert!(found.radius <= unit * 6u32, "{label}: {}", found.radius);
        }
    }
    assert!(2 * proven > count, "{proven} of {count}");
}

#[test]
fn determinants_hold_those_of_all_points() {
    let ctx = context();
    for seed in 0..operands(40, 1000) {
        let mut rng = Rng::new(1500 + seed);
        let (a, bits, label) = system(&mut rng);
        let label = format!("seed {seed}: {label}");
        // Points may be singular.
        let found = ball::det(&ctx, &a, bits).unwrap_or_else(|error| panic!("{label}: {error}"));
        let (midpoint, radius) = (found.midpoint.to_rational().unwrap(), found.radius.to_rational().unwrap());
        for _ in 0..POINTS {
            let exact = determinant(&point(&a, false, &mut rng));
            let distance = Rational::from(&midpoint - &exact).abs();
            assert!(distance <= radius, "{label}: {} beside {}", exact.to_f64(), found.radius);
        }
        if a.radius().max_norm() == 0 {
            let units = Float::with_val(64, &found.radius / &found.midpoint) << bits;
            // Two units in the last place, which are 4 of the least, and the error of the factor.
            assert!(units < 4.01, "{label}: {units}");
        }
    }
}

/// Of `1 +- r` the determinant is `1 +- r` however wide that is; of a pair with `1 +- r` on the diagonal and `1/2 +- s`
/// beside it, where a corner is off by `2 r + r^2` and `s - s^2` or `s^2`, the radius is not much more than that.
#[test]
fn radii_of_determinants_are_those_of_the_worst_corner() {
    let ctx = context();
    for r in [1e-12, 0.03, 0.25, 0.5, 1.0, 4.0, 1e9] {
        let cell = |value: f64| Matrix::from_f64s(1, 1, 64, &[value]).unwrap();
        let found = ball::det(&ctx, &BallMatrix::new(cell(1.0), &cell(r)).unwrap(), 64).unwrap();
        let ratio = found.radius.to_f64() / r;
        assert!(found.midpoint == 1 && (1.0..1.2).contains(&ratio), "{r}: {ratio}");
        for s in [0.0, r] {
            let radius = ball::det(&ctx, &pair(1.0, [r, s]), 64).unwrap().radius.to_f64();
            let least = 2.0 * r + r * r + (s - s * s).max(s * s);
            assert!((1.0..8.0).contains(&(radius / least)), "{r}, {s}: {radius} beside {least}");
        }
    }
    let of = |exponent: i32| {
        let entry = |row: usize, col: usize| Float::with_val(64, u32::from(row == col)) << exponent;
        BallMatrix::exact(Matrix::from_fn(3, 3, 64, entry).unwrap()).unwrap()
    };
    assert!(matches!(ball::det(&ctx, &of(500_000_000), 64), Err(Error::ExponentRange { .. })));
    let exact = ball::det(&ctx, &of(2), 64).unwrap();
    assert!(exact.midpoint == 64 && exact.radius == 0);
}

/// `a +- r` around `diagonal` on the diagonal and `1/2` beside it.
fn pair(diagonal: f64, radii: [f64; 2]) -> BallMatrix {
    let midpoint = Matrix::from_f64s(2, 2, 64, &[diagonal, 0.5, 0.5, diagonal]).unwrap();
    let radius = Matrix::from_f64s(2, 2, 64, &[radii[0], radii[1], radii[1], radii[0]]).unwrap();
    BallMatrix::new(midpoint, &radius).unwrap()
}

/// Radii up to the first singular point are proven, and none from there on: of `1 +- r` at `r = 1`, of a pair with
/// `1/2 +- r` beside ones at `r = 1/2`, and with `1 +- r` on the diagonal and `1/2 +- r` beside it at `r = 1/4`.
#[test]
fn proofs_reach_to_the_first_singular_point() {
    let ctx = context();
    let single = |radius: f64| {
        let cell = |value: f64| Matrix::from_f64s(1, 1, 64, &[value]).unwrap();
        BallMatrix::new(cell(1.0), &cell(radius)).unwrap()
    };
    let near = 1.0 - 1.0 / 1024.0;
    let of = |part: f64| {
        let pairs = [[0.0, 0.5 * part], [0.5 * part, 0.0], [0.25 * part, 0.25 * part]].map(|radii| pair(1.0, radii));
        (single(part), pairs)
    };
    let (one, pairs) = of(near);
    for a in pairs.iter().chain([&one]) {
        ball::cholesky(&ctx, a, 64).unwrap();
        ball::inverse(&ctx, a, 64).unwrap();
        ball::log_det(&ctx, a, 64).unwrap();
    }
    for part in [1.0, 1.25] {
        let (one, pairs) = of(part);
        for a in pairs.iter().chain([&one]) {
            assert!(is_unproven(&ball::inverse(&ctx, a, 64).unwrap_err()));
            assert!(is_unproven(&ball::cholesky(&ctx, a, 64).unwrap_err()));
            assert!(is_unproven(&ball::log_det(&ctx, a, 64).unwrap_err()));
        }
    }
}

/// The inverse of `1 +- r` is off by `r / (1 - r)` at one end: the radius is no less, and hardly more.
#[test]
fn wide_radii_are_those_of_the_worst_corner() {
    let ctx = context();
    for r in [0.5f64, 0.75, 0.96875] {
        let cell = |value: f64| Matrix::from_f64s(1, 1, 64, &[value]).unwrap();
        let a = BallMatrix::new(cell(1.0), &cell(r)).unwrap();
        let radius = ball::inverse(&ctx, &a, 64).unwrap().radius().float(0, 0).to_f64();
        assert!((1.0..1.1).contains(&(radius / (r / (1.0 - r)))), "{r}: {radius}");
        let factor = ball::cholesky(&ctx, &a, 64).unwrap().radius().float(0, 0).to_f64();
        assert!((1.0 - 1e-15..1.001).contains(&(factor / (1.0 - (1.0 - r).sqrt()))), "{r}: {factor}");
        let logarithm = ball::log_det(&ctx, &a, 64).unwrap().radius.to_f64();
        assert!((1.0..1.1).contains(&(logarithm / -(1.0 - r).ln())), "{r}: {logarithm}");
    }
}

#[test]
fn zeros_of_block_matrices_stay_zeros() {
    let ctx = context();
    let entries = [4.0, 1.0, 0.0, 1.0, 3.0, 0.0, 0.0, 0.0, 7.0];
    let radii = [0.125, 0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 0.5];
    let a =
        BallMatrix::new(Matrix::from_f64s(3, 3, 64, &entries).unwrap(), &Matrix::from_f64s(3, 3, 64, &radii).unwrap())
            .unwrap();
    for found in [ball::inverse(&ctx, &a, 100).unwrap(), ball::cholesky(&ctx, &a, 100).unwrap()] {
        for (row, col) in [(2, 0), (2, 1), (0, 2), (1, 2)] {
            assert!(found.midpoint().float(row, col) == 0 && found.radius().float(row, col) == 0);
        }
    }
}

#[test]
fn results_that_are_exact_have_radius_0() {
    let ctx = context();
    let exact = |rows: usize, entries: &[f64]| {
        BallMatrix::exact(Matrix::from_f64s(rows, entries.len() / rows, 64, entries).unwrap()).unwrap()
    };
    let a = exact(2, &[4.0, 2.0, 2.0, 10.0]);
    let x = ball::solve(&ctx, &a, &exact(2, &[8.0, 22.0]), 64).unwrap();
    assert!(x.midpoint().view().to_f64s() == [1.0, 2.0] && x.radius().max_norm() == 0);
    let l = ball::cholesky(&ctx, &a, 64).unwrap();
    assert!(l.midpoint().view().to_f64s() == [2.0, 1.0, 0.0, 3.0] && l.radius().max_norm() == 0);
    let empty = BallMatrix::exact(Matrix::zeros(0, 0, 64).unwrap()).unwrap();
    assert_eq!(ball::inverse(&ctx, &empty, 64).unwrap().rows(), 0);
    assert_eq!(ball::cholesky(&ctx, &empty, 64).unwrap().rows(), 0);
    let logarithm = ball::log_det(&ctx, &empty, 64).unwrap();
    assert!(logarithm.midpoint == 0 && logarithm.radius == 0);
}

#[test]
fn matrices_that_have_no_factor_are_refused() {
    let ctx = context();
    let exact = |entries: &[f64]| BallMatrix::exact(Matrix::from_f64s(2, 2, 64, entries).unwrap()).unwrap();
    let indefinite = exact(&[1.0, 2.0, 2.0, 1.0]);
    assert!(matches!(ball::cholesky(&ctx, &indefinite, 64), Err(Error::NotPositiveDefinite { index: 1, .. })));
    assert!(matches!(ball::log_det(&ctx, &indefinite, 64), Err(Error::NotPositiveDefinite { index: 1, .. })));
    let singular = exact(&[1.0, 1.0, 1.0, 1.0]);
    assert!(matches!(ball::cholesky(&ctx, &singular, 64), Err(Error::NotPositiveDefinite { .. })));
    let skew = exact(&[1.0, 0.5, 0.25, 1.0]);
    assert!(matches!(ball::log_det(&ctx, &skew, 64), Err(Error::NotSymmetric { .. })));
    let three = BallMatrix::exact(Matrix::zeros(3, 1, 64).unwrap()).unwrap();
    assert!(matches!(ball::solve(&ctx, &exact(&[1.0, 0.0, 0.0, 1.0]), &three, 64), Err(Error::ShapeMismatch { .. })));
    let rational = Rational::from((4, 11));
    let inverse = ball::inverse(&ctx, &exact(&[3.0, 1.0, 1.0, 4.0]), 64).unwrap();
    assert!(inverse.contains(0, 0, &rational) && !inverse.contains(1, 1, &rational));
}
