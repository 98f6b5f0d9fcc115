//! Bases against their definition.

use super::*;
use crate::polynomial::DampedRational;
use crate::polynomial::points::{sample_points, scalings};
use sunzi::advanced::testing::effort;

fn floats(values: &[f64]) -> Vec<Float> {
    values.iter().map(|value| Float::with_val(100, *value)).collect()
}

#[test]
fn rows_are_orthonormal_polynomials_of_rising_degree() -> Result<()> {
    let points = (0..12).map(|at| Float::with_val(300, at * at) / 7u32).collect::<Vec<_>>();
    let weights = points.iter().map(|x| (Float::with_val(300, x * 9u32) * -1i32).exp()).collect::<Vec<_>>();
    let rows = orthonormal(&points, &weights, 6, 300)?;
    for (a, left) in rows.iter().enumerate() {
        for (b, right) in rows.iter().enumerate() {
            let wanted = u32::from(a == b);
            assert!((inner(left, right, 400) - wanted).abs() < 1e-85, "{a} {b}");
        }
        // Values divided by the roots are a polynomial of degree a with a positive first coefficient: divided
        // differences over a + 1 points are the coefficient, those over more are 0.
        let mut table = left.iter().zip(&weights).map(|(v, w)| v.clone() / w.clone().sqrt()).collect::<Vec<_>>();
        for order in 1..table.len() {
            for at in 0..table.len() - order {
                table[at] = (table[at + 1].clone() - &table[at]) / (points[at + order].clone() - &points[at]);
            }
            if order == a {
                assert!(table[0] > 0);
            } else if order > a {
                assert!(table[0].clone().abs() < 1e-20, "{a} {order} {}", table[0]);
            }
        }
    }
    Ok(())
}

/// The rows are orthonormal, the first one is a multiple of the roots of the weights, and each of the others lies
/// with a positive part in the span of those before it and of the points times the last of them: so row m has degree
/// m and a positive first coefficient.
fn are_orthonormal_polynomials(points: &[Float], weights: &[Float], bits: u32) -> Result<()> {
    let count = points.len();
    let rows = orthonormal(points, weights, count.div_ceil(2), bits)?;
    let (working, tolerance) = (2 * bits + 64, Float::with_val(64, 1) >> (bits - 8));
    for (a, left) in rows.iter().enumerate() {
        for (b, right) in rows[..=a].iter().enumerate() {
            let off = inner(left, right, working) - u32::from(a == b);
            assert!(off.abs() < tolerance, "{count} points, {bits} bits, rows {a} and {b}");
        }
    }
    let (mut first, _) = normalized(roots(weights, working)?, working);
    remove(&mut first, &rows[0], working);
    assert!(rows[0][0] > 0 && inner(&first, &first, working).sqrt() < tolerance, "{count} points, {bits} bits");
    for (m, pair) in rows.windows(2).enumerate() {
        let (mut next, size) = normalized(
            pair[0].iter().zip(points).map(|(entry, x)| Float::with_val(working, entry * x)).collect(),
            working,
        );
        assert!(size > 0 && inner(&next, &pair[1], working) > 0, "{count} points, {bits} bits, row {m}");
        rows[m.saturating_sub(1)..m + 2].iter().for_each(|row| remove(&mut next, row, working));
        assert!(inner(&next, &next, working).sqrt() < tolerance, "{count} points, {bits} bits, row {m}");
    }
    Ok(())
}

/// At the points that are chosen without poles, and with single or double ones; in long runs at every degree. The
/// largest degrees take most of the time: in short runs they have one of the two.
#[test]
fn bases_at_chosen_points_are_those_of_their_definition() -> Result<()> {
    let all = (1..=250).flat_map(|degree| [(degree, false), (degree, true)]);
    let few = [(5, false), (5, true), (66, false), (66, true), (127, false), (249, true)];
    for (degree, double) in all.filter(|case| effort() > 1 || few.contains(case)) {
        let bits = if degree < 100 { [256, 1024, 4096][degree % 3] } else { 256 };
        let poles = (0..degree % 41).map(|at| match double {
            false => Float::with_val(64, -0.01 - 0.7 * at as f64),
            true => Float::with_val(64, -0.01 - 0.7 * (at / 2) as f64),
        });
        let base = Float::with_val(64, [0.3679, 0.6863][degree % 2]);
        let prefactor = DampedRational { constant: Float::with_val(64, 1), base, poles: poles.collect() };
        let points = sample_points(degree + 1, &prefactor, bits)?;
        let weights = scalings(&points, &prefactor, bits);
        are_orthonormal_polynomials(&points, &weights, bits)?;
        let odd = weights.iter().zip(&points).map(|(s, x)| Float::with_val(bits, s * x)).collect::<Vec<_>>();
        are_orthonormal_polynomials(&points, &odd, bits)?;
    }
    Ok(())
}

#[test]
fn weights_and_points_that_carry_nothing_are_refused() -> Result<()> {
    let refused = |points: &[f64], weights: &[f64], rows| {
        orthonormal(&floats(points), &floats(weights), rows, 100).unwrap_err().to_string()
    };
    assert!(refused(&[0.0, 1.0], &[1.0, -2.0], 1).contains("sample point 1 is -2.0"));
    assert!(refused(&[1.0, 1.0, 1.0], &[1.0, 1.0, 2.0], 2).contains("coincide"));
    assert!(refused(&[1.0, 2.0], &[0.0, 0.0], 1).contains("coincide"));
    let given = given(&[floats(&[1.0]), floats(&[0.0, 2.0])], &floats(&[3.0]), &floats(&[4.0]), 100)?;
    assert_eq!(given, [[2], [12]]);
    assert!(orthonormal(&floats(&[5.0]), &floats(&[2.0]), 0, 100)?.is_empty());
    Ok(())
}
