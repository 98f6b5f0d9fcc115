//! Sample points against the equations that they solve.

use super::*;
use sunzi::advanced::testing::effort;

fn damped(base: f64, poles: &[f64]) -> DampedRational {
    let number = |value: &f64| Float::with_val(200, *value);
    DampedRational { constant: number(&1.0), base: number(&base), poles: poles.iter().map(number).collect() }
}

#[test]
fn points_solve_their_equations_at_any_precision() -> Result<()> {
    for poles in [&[][..], &[-1.0], &[-0.5, -0.5, -3.0], &[-1e-12, -2.0], &[0.0, 0.0, -7.5]] {
        for count in [3, 4, 5, 24] {
            let prefactor = damped(0.3, poles);
            let points = sample_points(count, &prefactor, 300)?;
            let few = sample_points(count, &prefactor, 100)?;
            assert_eq!(points.len(), count);
            let density = Density::new(&prefactor, count, 300)?;
            // All of the interval holds as many as there are points.
            let (whole, _) = density.integral(&density.end, 400);
            assert!((whole - count).abs() < 1e-85, "{count} {poles:?}");
            let small = poles.iter().filter(|pole| **pole >= -1e-10).count().min(count);
            for (number, point) in points.iter().enumerate() {
                assert!(*point >= 0 && *point < density.end);
                assert!(Float::with_val(300, point - &few[number]).abs() <= Float::with_val(300, point) >> 96u32);
                if number >= small {
                    let (value, slope) = density.integral(point, 350);
                    let off: Float = value - number - 0.5;
                    assert!(off.abs() < 1e-85, "{count} {poles:?} {number}");
                    // The derivative is the slope of the chord.
                    let step = Float::with_val(350, point >> 60u32);
                    let next = density.integral(&Float::with_val(350, point + &step), 350).0;
                    let chord: Float = (next - number - 0.5) / step;
                    assert!((chord / slope - 1u32).abs() < 1e-15, "{count} {poles:?} {number}");
                }
            }
        }
    }
    Ok(())
}

/// The points for a degree rise, lie in the interval, and each has half of its own share of the integral before it.
fn are_those_of_their_definition(prefactor: &DampedRational, degree: usize, bits: u32) -> Result<()> {
    let (count, at) = (degree + 1, || format!("degree {degree}, {} poles, {bits} bits", prefactor.poles.len()));
    let points = sample_points(count, prefactor, bits)?;
    let density = Density::new(prefactor, count, bits)?;
    let tolerance = Float::with_val(64, count) >> bits;
    assert!((density.integral(&density.end, bits + 64).0 - count).abs() < tolerance, "{}", at());
    assert!(points.len() == count && points[0] > 0 && points[degree] < density.end, "{}", at());
    assert!(points.windows(2).all(|pair| pair[0] < pair[1]), "{}", at());
    for (number, point) in points.iter().enumerate() {
        let off: Float = density.integral(point, bits + 64).0 - number - 0.5;
        assert!(off.abs() < tolerance, "{}, point {number} is {point:.6}", at());
    }
    Ok(())
}

/// Without poles Newton's method steps from the middle of the interval onto 0 at some of these degrees.
#[test]
fn points_without_poles_are_found_at_any_degree() -> Result<()> {
    let base = Float::with_val(256, -1).exp();
    let prefactor = DampedRational { constant: Float::with_val(64, 1), base, poles: Vec::new() };
    let step = if effort() > 1 { 1 } else { 25 };
    for degree in (1..=250).step_by(step).chain([56, 58, 60, 62, 70, 80]) {
        are_those_of_their_definition(&prefactor, degree, 256)?;
    }
    Ok(())
}

/// Every degree and every number of poles, single and double ones and both precisions in turn; in long runs each
/// degree with each number.
#[test]
fn points_with_poles_are_found_at_any_degree() -> Result<()> {
    let all = (1..=250).flat_map(|degree| (0..=40).map(move |poles| (degree, poles)));
    for (degree, poles) in all.filter(|(degree, poles)| effort() > 1 || (degree * 41 + poles) % 1009 == 0) {
        let order = 1 + (degree + poles) % 2;
        let poles = (0..poles).map(|at| -0.01 - 0.7 * (at / order) as f64).collect::<Vec<_>>();
        let prefactor = damped([0.3679, 0.6863][degree % 2], &poles);
        let bits = match (degree * 41 + poles.len()) % 97 {
            turn @ 0..4 if degree < 100 => [512, 1024, 2048, 4096][turn],
            _ => 256,
        };
        are_those_of_their_definition(&prefactor, degree, bits)?;
    }
    Ok(())
}

#[test]
fn prefactors_without_points_are_refused() {
    let refused = |base: f64, poles: &[f64]| sample_points(3, &damped(base, poles), 64).unwrap_err().to_string();
    assert!(refused(1.0, &[]).contains("base is 1.0"));
    assert!(refused(-0.5, &[]).contains("base is -"));
    assert!(refused(0.5, &[0.25]).contains("pole at 2.5"));
    assert!(refused(0.5, &[0.0; 4]).contains("4 poles"));
    assert_eq!(sample_points(1, &damped(1.0, &[]), 64).unwrap(), [0]);
}

#[test]
fn scalings_are_the_prefactor() {
    let points = [0.0, 1.0, 2.5].map(|x| Float::with_val(200, x));
    let found = scalings(&points, &damped(0.5, &[-1.0, 1.0]), 200);
    assert_eq!(found[0], -1);
    assert!((found[1].to_f64() / 2.5e15 - 1.0).abs() < 1e-15);
    let wanted = 0.5f64.powf(2.5) / (3.5 * 1.5);
    assert!((found[2].to_f64() - wanted).abs() < 1e-15);
}
