//! Factors side by side against the definition.

use super::*;
use crate::kernels::problem_lanes::on_all_lanes;
use crate::math::float::limbs_for;
use crate::ops::factor::problem::FactorInput;
use crate::ops::factor::reference;
use crate::ops::product::problem::Accuracy;
use rug::{Float, Integer, rand::RandState};

/// A matrix of random entries below `2^-spread` with ones and more on its diagonal, whose rows grow by `2^step` each.
fn random(order: usize, bits: u32, (spread, step): (i32, i32), rng: &mut RandState<'_>) -> Matrix {
    let mut a = Matrix::zeros(order, order, bits).unwrap();
    for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
        let value = Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
        let value = if row == col { value + 1.5f64 } else { value >> spread };
        let value = if rng.below(9) == 0 && row != col { Float::new(bits) } else { value };
        a.set_float(row, col, &(value << (step * (row + col) as i32))).unwrap();
    }
    a
}

#[test]
fn factors_are_those_of_the_definition() {
    on_all_lanes(check_factors);
}

fn check_factors() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut rng = RandState::new();
    rng.seed(&Integer::from(73));
    let mut all = 0;
    for (case, bits) in [52u32, 64, 100, 155, 256, 320, 510, 640, 768, 832, 1024, 1200].into_iter().enumerate() {
        for order in [1usize, 2, 3, 8, 13] {
            let Some(together) =
                LaneFactors::choose(&ctx, order, bits, &CholeskyOptions::new().accuracy(Accuracy::Norm))
            else {
                continue;
            };
            // Well conditioned; with pivots that fall by many bits; and some that have no factor.
            let forms = [(4, 0), (1, 0), (1, 3), (0, -7), (4, 1), (-3, 0), (5, 40), (3, 0)];
            let count = 1 + (case + order) % PROBLEMS;
            let matrices = (0..count).map(|lane| random(order, bits + 5 * lane as u32, forms[lane], &mut rng));
            let matrices = matrices.collect::<Vec<_>>();
            let lowers = matrices.iter().map(Matrix::view).collect::<Vec<_>>();
            let mut factors = vec![Matrix::zeros(order, order, bits).unwrap(); count];
            let done = together.factor(&ctx, &lowers, &mut factors).unwrap().mask;
            for (lane, (lower, got)) in lowers.iter().zip(&factors).enumerate() {
                let problem = FactorProblem::new(*lower, bits, together.working_bits(0)).unwrap();
                let want = reference::factor(FactorInput { problem: &problem, lower: *lower })
                    .map(|rows| rows.to_matrix(&problem).unwrap());
                let is_done = done >> lane & 1 == 1;
                let what = format!("{bits} bits, {order} rows, lane {lane} of {count}");
                match want {
                    Ok(want) if problem.is_whole() => {
                        // A matrix far from singular must not be left to the single call.
                        assert!(is_done || lane > 2, "{what}");
                        assert!(!is_done || *got == want, "{what}");
                        all += u32::from(is_done);
                    }
                    _ => assert!(!is_done, "{what} is not positive definite"),
                }
            }
            assert!(limbs_for(bits) == factors[0].limbs_per_element());
        }
    }
    assert!(all > 150 || ProblemLanes::new(100).is_none(), "{all} factors");
}

/// Lanes whose matrices are scaled by thousands of bits against each other.
#[test]
fn scales_of_other_lanes_do_not_matter() {
    on_all_lanes(check_scales);
}

fn check_scales() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut rng = RandState::new();
    rng.seed(&Integer::from(75));
    let (order, bits) = (9, 256);
    let Some(together) = LaneFactors::choose(&ctx, order, bits, &CholeskyOptions::new().accuracy(Accuracy::Norm))
    else {
        return println!("skipped: no lanes");
    };
    let scales = [0, 1 << 20, -(1 << 20), 1, 1 << 28, -(1 << 28), 5000, -333];
    let matrices = scales.map(|scale| {
        let mut a = random(order, bits, (4, 0), &mut rng);
        for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let value = a.float(row, col) << scale;
            a.set_float(row, col, &value).unwrap();
        }
        a
    });
    let lowers = matrices.iter().map(Matrix::view).collect::<Vec<_>>();
    let mut factors = vec![Matrix::zeros(order, order, bits).unwrap(); PROBLEMS];
    assert_eq!(together.factor(&ctx, &lowers, &mut factors).unwrap().mask, u8::MAX);
    for (lower, got) in lowers.iter().zip(&factors) {
        let problem = FactorProblem::new(*lower, bits, together.working_bits(0)).unwrap();
        let want = reference::factor(FactorInput { problem: &problem, lower: *lower })
            .map(|rows| rows.to_matrix(&problem).unwrap());
        assert!(want.is_ok_and(|want| *got == want));
    }
}

/// Entrywise: a factor that is done here has the bits and the range of the single call.
#[test]
fn entrywise_factors_are_those_of_single_calls() {
    on_all_lanes(check_entrywise);
}

fn check_entrywise() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut rng = RandState::new();
    rng.seed(&Integer::from(76));
    let (mut done_here, mut left, mut ranges) = (0, 0, std::collections::BTreeSet::new());
    for (case, bits) in [64u32, 155, 256, 510, 768, 1024].into_iter().enumerate() {
        for order in [1usize, 2, 9, 31, 32, 33, 40] {
            for least_bits in [0, 40] {
                let options = CholeskyOptions::new().range_bits(least_bits);
                let Some(together) = LaneFactors::choose(&ctx, order, bits, &options) else { continue };
                // Entries of similar size, and rows and columns that fall by many bits or have small entries.
                let forms = [(4, 0), (3, 0), (1, 3), (20, 0), (60, 0), (4, -9), (150, 1), (2, 0)];
                let count = 1 + (case + order) % PROBLEMS;
                let matrices = (0..count).map(|lane| random(order, bits + 5 * lane as u32, forms[lane], &mut rng));
                let matrices = matrices.collect::<Vec<_>>();
                let lowers = matrices.iter().map(Matrix::view).collect::<Vec<_>>();
                let mut factors = vec![Matrix::zeros(order, order, bits).unwrap(); count];
                let LanesDone { mask: done, range_bits } = together.factor(&ctx, &lowers, &mut factors).unwrap();
                let choices = lowers.iter().map(|lower| {
                    let (problem, range_bits) = together.scaled(Vec::new(), Vec::new(), *lower).unwrap();
                    problem.is_whole().then_some(range_bits)
                });
                let choices = choices.collect::<Vec<_>>();
                assert!(choices.contains(&Some(range_bits)) || done == 0, "{choices:?}: {range_bits}");
                for (lane, (matrix, got)) in matrices.iter().zip(&factors).enumerate() {
                    let lower = crate::matrix::Symmetric::lower(matrix);
                    let single = crate::cholesky_with(&ctx, lower, bits, &options);
                    let is_done = done >> lane & 1 == 1;
                    let what = format!("{bits} bits, {order} rows, lane {lane} of {count}, at least {least_bits}");
                    let Ok(single) = single else {
                        assert!(!is_done, "{what} has no factor");
                        continue;
                    };
                    let same_range = single.report.range_bits == range_bits;
                    assert!(!is_done || same_range, "{what}");
                    assert!(!is_done || *got == *single.result.factor(), "{what}");
                    assert!(!is_done || single.report.accuracy == Accuracy::Entrywise, "{what}");
                    assert!(is_done || lane > 1 || !same_range, "{what} is left to the single call");
                    ranges.insert(range_bits);
                    (done_here, left) = (done_here + u32::from(is_done), left + u32::from(!is_done));
                }
            }
        }
    }
    assert!(
        (done_here > 100 && left > 10 && ranges.len() > 2) || ProblemLanes::new(100).is_none(),
        "{done_here} done, {left} left"
    );
}
