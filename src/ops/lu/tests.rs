//! All paths against the definition, the room for growth, and what has no factors.

use super::leaf::Rules;
use super::problem::{LuProblem, LuStop};
use super::reference;
use super::run::{LuOperands, LuSizes, factor};
use super::{Lu, LuOptions, direct, lu_with};
use crate::context::Context;
use crate::error::Error;
use crate::kernels::{self, EngineSpec};
use crate::matrix::Matrix;
use crate::ops::product::problem::Accuracy;
use crate::testing::effort;
use rug::{Float, Integer, rand::RandState};

/// Entries of at most 1/2; some are 0, some tiny, some equal to others in size.
fn random(order: usize, bits: u32, kind: u32, rng: &mut RandState<'_>) -> Matrix {
    let mut a = Matrix::zeros(order, order, bits).unwrap();
    for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
        let value = Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
        let value = match kind {
            // Many ties.
            1 => Float::with_val(bits, i64::from(rng.below(5)) - 2),
            // Exponents far apart.
            2 => value >> (rng.below(40) as i32),
            3 if rng.below(3) == 0 => Float::new(bits),
            // The last column is the first one.
            4 if col + 1 == order => a.float(row, 0),
            // Rows and columns of sizes thousands of bits apart.
            5 => value >> (977 * (row % 5) as i32 - 1403 * (col % 3) as i32),
            _ => value,
        };
        a.set_float(row, col, &value).unwrap();
    }
    a
}

/// The factors of the definition, or the column without a pivot.
fn by_definition(problem: &LuProblem, a: &Matrix) -> Result<(Matrix, Vec<usize>), usize> {
    match reference::factor(problem, a.view()) {
        Ok(factors) => Ok((factors.to_matrix(problem).unwrap(), factors.rows)),
        Err(LuStop::NoPivot(col)) => Err(col),
        Err(stop) => panic!("{stop:?}"),
    }
}

/// The matrix, and memory with all bits set for its factors.
fn dirty<'a>(problem: &LuProblem, a: &'a Matrix) -> LuOperands<'a> {
    let mut memory = Matrix::zeros(problem.order, problem.order, problem.precision_bits).unwrap();
    let (heads, limbs) = memory.parts_mut();
    heads.fill(u64::MAX);
    limbs.fill(u64::MAX);
    LuOperands { a: a.view(), memory }
}

#[test]
fn all_paths_give_the_factors_of_the_definition() {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(3));
    let orders = [1, 2, 7, 8, 9, 16, 17, 31, 40, 49, 64, 65, 100];
    let (mut factored, mut refused) = (0, 0);
    for case in 0..26 * effort() as usize {
        let (order, kind) = (orders[case % orders.len()], (case % 6) as u32);
        let bits = [60, 64, 130, 256][case / 4 % 4];
        let a = random(order, bits, kind, &mut rng);
        let problem = LuProblem::new(a.view(), bits, [0, 13, 61][case % 3]).unwrap();
        let want = by_definition(&problem, &a);
        let headroom = problem.headroom(12);
        let rules = Rules::new(&problem, headroom);
        let what = format!("case {case}: {order} rows, {bits} bits, kind {kind}");
        let check = |got: Result<super::Factors, LuStop>, path: &str| match (got, &want) {
            (Ok(got), Ok((entries, rows))) => {
                assert_eq!(got.rows, *rows, "{what}, {path}");
                assert!(got.entries == *entries, "{what}, {path}");
            }
            (Err(LuStop::NoPivot(col)), Err(index)) => assert_eq!(col, *index, "{what}, {path}"),
            (got, _) => panic!("{what}, {path}: {:?}, {:?}", got.err(), want.is_ok()),
        };
        (factored, refused) = (factored + u32::from(want.is_ok()), refused + u32::from(want.is_err()));
        for kernel in kernels::available() {
            let ctx = Context::builder().threads(1 + case % 3).build().unwrap();
            let operand_bits = problem.working_bits + headroom.growth_bits;
            let spec = EngineSpec { operand_bits, modulus_bits: headroom.modulus_bits, redundant: false };
            let engine = ctx.engine_for_tiles(kernel, spec).unwrap();
            let sizes = LuSizes { width: [8, 16, 40][case % 3], ..LuSizes::new(order, ctx.threads()) };
            check(factor(&ctx, dirty(&problem, &a), &problem, &*engine, rules, sizes), kernel.name());
            let limbs = Rules { lanes: None, ..rules };
            check(
                factor(&ctx, dirty(&problem, &a), &problem, &*engine, limbs, sizes),
                &format!("{}, limbs", kernel.name()),
            );
        }
        if order <= 49 {
            check(direct::factor(&Context::new().unwrap(), dirty(&problem, &a), &problem, rules), "direct");
        }
    }
    assert!(factored > 12 && refused > 1, "{factored} factored, {refused} refused");
}

#[test]
fn growth_beyond_the_room_is_noticed_and_more_room_is_made() {
    // Wilkinson's matrix: the last column doubles with each pivot.
    for (order, kernel) in [(20, None), (40, None), (40, Some("reference"))] {
        let mut a = Matrix::identity(order, 64).unwrap();
        for row in 0..order {
            (0..row).for_each(|col| a.set_f64(row, col, -1.0).unwrap());
            a.set_f64(row, order - 1, 1.0).unwrap();
        }
        let builder = Context::builder().threads(1);
        let ctx = kernel.map_or(builder.clone(), |name| builder.kernel(name)).build().unwrap();
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            let made = lu_with(&ctx, &a, 64, &LuOptions::new().accuracy(accuracy)).unwrap();
            assert_eq!(made.result.factors().float(order - 1, order - 1), Float::with_val(64, 1) << (order - 1) as u32);
            assert_eq!(made.report.growth_bits, order as u32 - 1, "{order} rows, {kernel:?}");
        }
        let problem = LuProblem::new(a.view(), 64, 0).unwrap();
        let too_small = |bits: u32| {
            let rules = Rules::new(&problem, problem.headroom(bits));
            matches!(direct::factor(&ctx, dirty(&problem, &a), &problem, rules), Err(LuStop::Growth(_)))
        };
        // The bound of the room is exact: it names the largest power of two.
        assert!(too_small(order as u32 - 2) && !too_small(order as u32 - 1), "{order} rows");
    }
}

#[test]
fn a_pivot_that_is_lost_is_named() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let a = Matrix::from_f64s(3, 3, 64, &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 0.0, 5.0]).unwrap();
    match lu_with(&ctx, &a, 64, &LuOptions::new()) {
        Err(Error::NoPivot { index, working_bits }) => assert!(index == 1 && working_bits > 64),
        other => panic!("{:?}", other.map(|made| made.report)),
    }
    let wide = Matrix::zeros(2, 3, 64).unwrap();
    assert!(matches!(lu_with(&ctx, &wide, 64, &LuOptions::new()), Err(Error::NotSquare { rows: 2, cols: 3, .. })));
    assert!(matches!(lu_with(&ctx, &a, 1, &LuOptions::new()), Err(Error::Precision { .. })));
    assert!(matches!(lu_with(&ctx, &a, 100_000, &LuOptions::new()), Err(Error::Precision { .. })));
}

#[test]
fn factors_made_elsewhere_are_checked() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut rng = RandState::new();
    let a = random(9, 128, 0, &mut rng);
    let made = lu_with(&ctx, &a, 128, &LuOptions::new()).unwrap().result;
    let again = Lu::from_factors(made.factors().clone(), made.rows().to_vec()).unwrap();
    assert_eq!(again.det().unwrap(), made.det().unwrap());
    assert!(again.inverse(&ctx, 128).unwrap() == made.inverse(&ctx, 128).unwrap());
    let empty = lu_with(&ctx, &Matrix::empty(), 64, &LuOptions::new()).unwrap().result;
    assert!(empty.rows().is_empty() && empty.det().unwrap() == 1 && empty.inverse(&ctx, 64).unwrap().rows() == 0);
    for rows in [vec![], vec![0, 0], vec![0, 2], vec![0, 1, 2]] {
        let refused = Lu::from_factors(Matrix::identity(2, 64).unwrap(), rows);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    }
    let singular = Matrix::from_f64s(2, 2, 64, &[1.0, 0.0, 3.0, 0.0]).unwrap();
    assert!(matches!(Lu::from_factors(singular, vec![1, 0]), Err(Error::Singular { index: 1 })));
    let wide = Lu::from_factors(Matrix::zeros(2, 3, 64).unwrap(), vec![0, 1]);
    assert!(matches!(wide, Err(Error::NotSquare { rows: 2, cols: 3, .. })));
}
