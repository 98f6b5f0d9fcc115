//! Calls over ranks, which are threads here, beside their twins in one process.

use crate::common::Kind;
use crate::compare::{check, check_alone};
use crate::dealt::{Choice, Deal, Whole};
use crate::problem::{Problem, Verb};
use crate::random;
use rug::Float;
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

const LOWER_SOLVE: Verb =
    Verb::Trsm { side: SUNZI_LEFT, uplo: SUNZI_LOWER, trans: SUNZI_NO_TRANS, diag: SUNZI_NON_UNIT };
const GRAM: Verb = Verb::Syrk { uplo: SUNZI_LOWER, trans: SUNZI_NO_TRANS };
const PLAIN_PRODUCT: Verb = Verb::Gemm { trans: [SUNZI_NO_TRANS; 2] };

/// A call on matrices that rank 0 has.
fn on_first(verb: Verb, operands: Vec<Whole>, ranks: usize) -> Problem {
    let deals = operands.iter().map(|whole| Deal::on_first((whole.rows, whole.cols), ranks)).collect();
    let plain = (Kind::Mpfr, SUNZI_ROW_MAJOR);
    Problem {
        verb,
        scalapack: false,
        alpha: None,
        beta: None,
        operands,
        deals,
        alone: plain,
        kinds: vec![plain; ranks],
        number_bits: 64,
        asks: vec![true; ranks],
        choice: Choice::default(),
        fault: None,
        wrong: None,
    }
}

/// A matrix of ones.
fn ones(shape: (usize, usize), bits: u32) -> Whole {
    Whole::new(shape, |_, _| Float::with_val(bits, 1))
}

/// A lower triangle whose rows and columns are graded by so many bits a step.
fn graded(order: usize, bits: u32, step: i32) -> Whole {
    Whole::new((order, order), |i, j| {
        let value = if i == j { Float::with_val(bits, 2.5) } else { Float::with_val(bits, 0.25) / (i + j) as u32 };
        value << (((5 * i as i32) % 7 - (5 * j as i32) % 7) * step)
    })
}

#[test]
fn graded_triangles_are_solved_without_a_limit() {
    for (order, columns, bits) in [(20, 2, 64), (16, 1, 53), (40, 5, 200), (120, 9, 100), (90, 40, 512)] {
        for ranks in 1..=4 {
            for verb in [LOWER_SOLVE, Verb::CholeskySolve { uplo: SUNZI_LOWER }] {
                let mut problem = on_first(verb, vec![graded(order, bits, 100), ones((order, columns), bits)], ranks);
                check(&problem, ranks);
                // A limit of a terabyte is none.
                problem.choice.memory_bytes = 1 << 40;
                check(&problem, ranks);
            }
        }
    }
}

#[test]
fn a_result_beyond_the_exponents_has_its_status_and_place_where_it_is() {
    let huge = |shape| {
        let mut whole = ones(shape, 64);
        *whole.at_mut(0, 0) = Float::with_val(64, 1) << ((1u32 << 30) - 2);
        whole
    };
    let tiny = || {
        let mut whole = graded(2, 64, 0);
        *whole.at_mut(0, 0) = Float::with_val(64, 1) >> ((1u32 << 30) - 2);
        whole
    };
    let small = || {
        let mut whole = tiny();
        (*whole.at_mut(0, 1), *whole.at_mut(1, 0)) = (Float::new(64), Float::new(64));
        whole
    };
    let right_solve = Verb::Trsm { side: SUNZI_RIGHT, uplo: SUNZI_UPPER, trans: SUNZI_NO_TRANS, diag: SUNZI_NON_UNIT };
    let spread = |shape| Whole::new(shape, |_, _| Float::with_val(64, 1) << (1u32 << 29));
    for ranks in 1..=4 {
        let problems = [
            (GRAM, vec![huge((2, 2)), ones((2, 2), 64)]),
            (PLAIN_PRODUCT, vec![huge((2, 2)), huge((2, 3)), ones((2, 3), 64)]),
            (LOWER_SOLVE, vec![tiny(), spread((2, 1))]),
            (LOWER_SOLVE, vec![tiny(), spread((2, 9))]),
            (Verb::CholeskySolve { uplo: SUNZI_LOWER }, vec![tiny(), spread((2, 5))]),
            (Verb::FactorSolve { uplo: SUNZI_LOWER }, vec![small(), spread((2, 2))]),
            (Verb::Solve { uplo: SUNZI_LOWER }, vec![small(), spread((2, 9))]),
            (right_solve, vec![tiny(), spread((9, 2))]),
        ];
        for (verb, operands) in problems {
            let problem = on_first(verb, operands, ranks);
            assert_eq!(problem.alone().status, SUNZI_EXPONENT_RANGE, "{verb:?}");
            check(&problem, ranks);
        }
    }
}

#[test]
fn parts_without_entries_and_ranks_outside_of_a_grid_take_part() {
    for ranks in 1..=4 {
        for (rows, inner, cols) in [(0, 1, 7), (3, 0, 7), (3, 1, 0), (1, 1, 1), (0, 0, 0), (5, 2, 3)] {
            let operands = vec![ones((rows, inner), 64), ones((inner, cols), 64), ones((rows, cols), 64)];
            let mut problem = on_first(PLAIN_PRODUCT, operands, ranks);
            for deal in &mut problem.deals {
                *deal = Deal {
                    grid: [1, 1],
                    order: SUNZI_COL_MAJOR,
                    along: [SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_GRID_COL],
                    block: [1, 1],
                    ..deal.clone()
                };
            }
            check(&problem, ranks);
        }
    }
}

#[test]
fn a_part_without_entries_has_no_precision() {
    for ranks in 2..=4 {
        let symmetric = || Whole::new((3, 3), |i, j| Float::with_val(64, if i == j { 4 } else { 1 }));
        for (verb, operands) in [
            (GRAM, vec![ones((3, 2), 64), symmetric()]),
            (Verb::Cholesky { uplo: SUNZI_LOWER }, vec![symmetric()]),
            (Verb::FactorGet { uplo: SUNZI_LOWER, to: SUNZI_LOWER }, vec![symmetric(), symmetric()]),
            (Verb::Solve { uplo: SUNZI_LOWER }, vec![symmetric(), ones((3, 9), 64)]),
        ] {
            let mut problem = on_first(verb, operands, ranks);
            problem.kinds[1..].fill((Kind::Limbs, SUNZI_ROW_MAJOR));
            let ended = problem.over(ranks, |rank, parts| {
                let change = |part: &mut sunzi_dist_matrix| part.local.precision_bits = 3000;
                parts.iter_mut().filter(|_| rank > 0).for_each(change);
            });
            check_alone(&problem, &ended);
        }
    }
}

#[test]
fn reports_have_what_the_calls_took_and_promise() {
    let order = 40;
    let definite = || Whole::new((order, order), |i, j| Float::with_val(100, if i == j { 60 } else { 1 }));
    for ranks in 1..=4 {
        for (verb, operands) in [
            (LOWER_SOLVE, vec![definite(), ones((order, 9), 100)]),
            (Verb::CholeskySolve { uplo: SUNZI_LOWER }, vec![definite(), ones((order, 9), 100)]),
            (Verb::FactorSolve { uplo: SUNZI_LOWER }, vec![definite(), ones((order, 2), 100)]),
            (Verb::Solve { uplo: SUNZI_LOWER }, vec![definite(), ones((order, 200), 100)]),
            (Verb::Inverse { uplo: SUNZI_LOWER }, vec![definite(), definite()]),
        ] {
            let problem = on_first(verb, operands, ranks);
            check(&problem, ranks);
            for ended in problem.over(ranks, |_, _| ()) {
                let report = ended.report;
                assert!(report.planned_bytes > 0 && report.accuracy == SUNZI_ENTRYWISE, "{verb:?}: {report:?}");
            }
        }
    }
}

#[test]
fn a_zero_pivot_counts_where_there_are_right_sides() {
    for ranks in 1..=4 {
        for columns in [0, 1, 9] {
            for verb in [LOWER_SOLVE, Verb::CholeskySolve { uplo: SUNZI_LOWER }] {
                let mut triangle = graded(5, 64, 0);
                *triangle.at_mut(2, 2) = Float::new(64);
                let mut problem = on_first(verb, vec![triangle, ones((5, columns), 64)], ranks);
                check(&problem, ranks);
                problem.scalapack = true;
                problem.alone = (Kind::Mpfr, SUNZI_COL_MAJOR);
                problem.kinds.fill(problem.alone);
                for deal in &mut problem.deals {
                    let along = [SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_GRID_COL];
                    *deal = Deal { grid: [1, ranks], along, block: [2, 2], ..deal.clone() };
                }
                check(&problem, ranks);
            }
        }
    }
}

#[test]
fn a_logarithm_reads_the_diagonal_alone_and_is_refused_on_all_ranks() {
    for ranks in 1..=4 {
        for asks in 0..1 << ranks {
            for (fault, value) in [((3, 1), rug::float::Special::Nan), ((2, 2), rug::float::Special::Zero)] {
                let mut factor = graded(5, 64, 0);
                *factor.at_mut(fault.0, fault.1) = Float::with_val(64, value);
                let mut problem = on_first(Verb::LogDet { uplo: SUNZI_LOWER }, vec![factor], ranks);
                problem.deals =
                    vec![Deal::rows(&[vec![5 / ranks; ranks - 1], vec![5 - 5 / ranks * (ranks - 1)]].concat(), 5)];
                problem.asks = (0..ranks).map(|rank| asks >> rank & 1 == 1).collect();
                check(&problem, ranks);
            }
        }
    }
}

#[test]
fn sizes_that_are_no_sizes_are_refused() {
    for ranks in 1..=3 {
        let problem = on_first(GRAM, vec![ones((2, 2), 64), ones((2, 2), 64)], ranks);
        for length in [-2, -3, i64::MIN] {
            for ended in problem.over(ranks, |_, parts| parts[0].rows = length) {
                assert_eq!((ended.status, ended.message.contains(&length.to_string())), (SUNZI_INVALID_SIZE, true));
            }
        }
        for ended in problem.over(ranks, |_, parts| parts[0].rows = -1) {
            assert_eq!(ended.status, SUNZI_OK);
        }
    }
}

#[test]
fn random_calls_come_to_what_one_process_comes_to() {
    let cases = 0..250 * sunzi::advanced::testing::effort();
    let differs = |&case: &u64| {
        let (problem, ranks) = random::any(case);
        std::panic::catch_unwind(|| check(&problem, ranks)).is_err()
    };
    assert_eq!(cases.filter(differs).collect::<Vec<_>>(), [0; 0], "cases that differ: see above");
}
