//! Solutions, inverses and determinants of balls around midpoints that are not symmetric, or not definite.

use super::operands;
use super::points::{POINTS, Radii, assert_inside, balls, determinant, number, point};
use super::systems::is_unproven;
use crate::common::Rng;
use crate::common::rational::{GENERAL_FAMILIES, GeneralFamily, general, identity, rounded, solve as solve_exactly};
use rug::{Float, Rational};
use sunzi::ball::{self, BallMatrix};
use sunzi::{Context, Error, Matrix};

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

/// A matrix of balls and its family, a precision, and words for them.
fn system(rng: &mut Rng) -> (BallMatrix, GeneralFamily, u32, String) {
    let n = rng.pick(&[1usize, 2, 3, 4, 6]);
    let bits = rng.pick(&[53u32, 120, 250]);
    let radii = rng.pick(&[Radii::None, Radii::None, Radii::Tiny, Radii::Relative(30), Radii::Relative(5)]);
    let family = rng.pick(&GENERAL_FAMILIES);
    let mut rows = general(family, n.max(2), rng);
    if rng.below(3) == 0 {
        // Symmetric, and hardly ever definite.
        rows = (0..rows.len())
            .map(|row| (0..rows.len()).map(|col| Rational::from(&rows[row][col] + &rows[col][row])).collect())
            .collect();
    }
    let midpoint = rounded(&rows, rows.len(), 700).0;
    let label = format!("{family:?}, n = {n}, {bits} bits, {radii:?}");
    (balls(midpoint, radii, false, rng), family, bits, label)
}

/// Whether an error says that no ball is known; the midpoint may be singular.
fn is_refused(error: &Error) -> bool {
    is_unproven(error) || matches!(error, Error::NoPivot { .. } | Error::Precision { .. })
}

#[test]
fn general_solutions_inverses_and_determinants_hold_those_of_all_points() {
    let (ctx, mut proven, mut sharp) = (context(), 0, 0);
    let count = operands(60, 3000);
    for seed in 0..count {
        let mut rng = Rng::new(7500 + seed);
        let (a, family, bits, label) = system(&mut rng);
        let label = format!("seed {seed}: {label}");
        let cols = rng.pick(&[0usize, 1, 3]);
        let right = Matrix::from_fn(a.rows(), cols, bits, |_, _| number(&mut rng, bits, 4)).unwrap();
        let radii = rng.pick(&[Radii::None, Radii::Tiny, Radii::Relative(8)]);
        let b = balls(right, radii, false, &mut rng);
        let found = (ball::solve(&ctx, &a, &b, bits), ball::inverse(&ctx, &a, bits), ball::det(&ctx, &a, bits));
        let (x, inverse, det) = match found {
            (Ok(x), Ok(inverse), Ok(det)) => (x, inverse, det),
            (Err(error), ..) | (_, Err(error), _) if is_refused(&error) => continue,
            found => panic!("{label}: {:?}", (found.0.err(), found.1.err(), found.2.err())),
        };
        proven += 1;
        for _ in 0..POINTS {
            let (p, q) = (point(&a, false, &mut rng), point(&b, false, &mut rng));
            let exact = solve_exactly(&p, &q).unwrap_or_else(|| panic!("{label}: a point is singular"));
            assert_inside(&x, &exact, &label);
            assert_inside(&inverse, &solve_exactly(&p, &identity(a.rows())).unwrap(), &label);
            let exact = determinant(&p);
            let distance = (det.midpoint.to_rational().unwrap() - exact).abs();
            assert!(distance <= det.radius.to_rational().unwrap(), "{label}: {det:?}");
        }
        // Where rows and columns lie far apart an entry may be tiny beside its row and its column.
        if a.radius().max_norm() == 0 && family != GeneralFamily::Graded {
            // Of exact operands each ball is about as small as the rounding of its midpoint, or of a millionth of a
            // millionth of the largest entry: entries that are 0 are only known to be that small.
            let entries = || (0..a.rows()).flat_map(|row| (0..a.rows()).map(move |col| (row, col)));
            let size = |(row, col): (usize, usize)| inverse.midpoint().float(row, col).abs();
            let least = entries().map(size).fold(Float::new(64), |most, size| most.max(&size)) >> 40;
            for (row, col) in entries() {
                let radius = inverse.radius().float(row, col);
                let unit = size((row, col)).max(&least) >> (bits - 4);
                assert!(radius <= unit, "{label}: row {row}, column {col}: {radius}");
            }
            assert!(det.radius <= Float::with_val(64, det.midpoint.abs_ref()) >> (bits - 4), "{label}: {}", det.radius);
            sharp += 1;
        }
    }
    assert!(2 * proven > count && 8 * sharp > count, "{proven} proven, {sharp} sharp, of {count}");
}

/// Balls that hold a singular matrix have no inverse; a singular midpoint has no factors.
#[test]
fn balls_around_singular_matrices_are_refused() {
    let ctx = context();
    let near = Matrix::from_f64s(2, 2, 64, &[1.0, 2.0, 2.0, 4.0625]).unwrap();
    let radius = Matrix::from_f64s(2, 2, 64, &[0.0, 0.0, 0.0, 0.0625]).unwrap();
    let narrow = Matrix::from_f64s(2, 2, 64, &[0.0, 0.0, 0.0, 0.0624]).unwrap();
    let refused = ball::inverse(&ctx, &BallMatrix::new(near.clone(), &radius).unwrap(), 64).unwrap_err();
    assert!(is_unproven(&refused), "{refused}");
    assert!(ball::inverse(&ctx, &BallMatrix::new(near, &narrow).unwrap(), 64).is_ok());
    let singular = BallMatrix::exact(Matrix::from_f64s(2, 2, 64, &[1.0, 2.0, 2.0, 4.0]).unwrap()).unwrap();
    assert!(matches!(ball::inverse(&ctx, &singular, 64), Err(Error::NoPivot { index: 1, .. })));
}
