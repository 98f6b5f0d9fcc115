//! Programs with many one-point blocks, which the solver puts together: nothing of it shows outside.

use super::{decimal, digits, solve};
use std::sync::atomic::{AtomicUsize, Ordering};
use sunzi::rug::Float;
use sunzi::{Context, Error, Matrix, Result};
use sunzi_sdp::block::{Block, Shape};
use sunzi_sdp::{Checkpoints, Constraints, Control, Group, PolynomialMatrix, PolynomialProgram, Problem, Sampled};
use sunzi_sdp::{Sampling, Solver, SolverOptions, Termination, load_checkpoint};

const BITS: u32 = 256;

/// Bounds `c - b . y >= 0` of two free variables.
const BOUNDS: [(f64, [f64; 2]); 5] =
    [(4.0, [1.0, 1.0]), (9.0, [0.0, 1.0]), (2.0, [-1.0, 0.0]), (8.0, [0.0, -1.0]), (11.0, [1.0, 0.5])];

fn numbers(values: &[f64]) -> Vec<Float> {
    values.iter().map(|&value| Float::with_val(64, value)).collect()
}

/// A polynomial matrix of these entries, column by column of its upper triangle, each with those of both free
/// variables.
fn matrix(dim: usize, entries: &[[&[f64]; 3]]) -> PolynomialMatrix {
    let entries = entries.iter().map(|entry| entry.iter().map(|list| numbers(list)).collect()).collect();
    PolynomialMatrix { dim, entries, sampling: Sampling::default() }
}

fn bound((constant, [one, two]): (f64, [f64; 2])) -> PolynomialMatrix {
    matrix(1, &[[&[constant], &[-one], &[-two]]])
}

/// `x^2 - 4 x + 7 - y_1 >= 0` for all `x >= 0`: `y_1 <= 3`.
fn parabola() -> PolynomialMatrix {
    matrix(1, &[[&[7.0, -4.0, 1.0], &[-1.0], &[0.0]]])
}

/// `max 2 y_1 + y_2`, which is 7 at (3, 1) under the bounds.
fn program(matrices: Vec<PolynomialMatrix>) -> Result<Problem> {
    PolynomialProgram { objective: numbers(&[0.0, 2.0, 1.0]), normalization: None, matrices }.problem(BITS)
}

/// The bounds as blocks of their own, before and behind the polynomial.
fn singles() -> Result<Problem> {
    let [first, rest @ ..] = BOUNDS;
    program([vec![bound(first), parabola()], rest.map(bound).to_vec()].concat())
}

fn solver(problem: &Problem, threads: usize) -> Result<Solver<'_>> {
    Solver::new(Context::builder().threads(threads).build()?, problem, SolverOptions::new(problem.form))
}

/// Beside the same bounds as diagonals of constant matrices of two rows, which are no one-point blocks of one row.
#[test]
fn one_point_blocks_have_the_iterations_of_diagonals() -> Result<()> {
    let problem = singles()?;
    let shapes = |group: &Group| group.constraints.shapes();
    assert_eq!(problem.groups.iter().filter(|group| shapes(group) == [Shape::Dense(1)]).count(), BOUNDS.len());
    let solution = solve(&problem, 1, |_| ())?;
    assert_eq!(solution.termination, Termination::PrimalDualOptimal, "{:?}", solution.remark);
    assert!(digits(&solution, &decimal("7")) > 28.0, "{}", solution.quality.primal_objective);
    assert!((solution.point.y.float(0, 0) - 3u32).abs() < 1e-25);
    // All blocks are the caller's.
    assert_eq!((solution.point.x.len(), solution.point.primal.len()), (6, 7));
    assert!([0, 3, 6].iter().all(|&at| solution.point.primal[at].shape() == Shape::Dense(1)));
    assert_eq!([1, 2].map(|at| solution.point.dual[at].shape()), [Shape::Dense(2), Shape::Dense(1)]);
    let slack = |block: usize| solution.point.dual[block].stored().float(0, 0);
    let is_near = |found: Float, wanted: f64| (found - wanted).abs() < 1e-25;
    // The first bound holds with equality; the second, third and last are 8, 5 and 7.5 away.
    assert!(is_near(slack(0), 0.0) && is_near(slack(3), 8.0) && is_near(slack(4), 5.0) && is_near(slack(6), 7.5));
    let pair = |one: (f64, [f64; 2]), other: (f64, [f64; 2])| {
        let ((c, [b1, b2]), (d, [e1, e2])) = (one, other);
        matrix(2, &[[&[c], &[-b1], &[-b2]], [&[0.0], &[0.0], &[0.0]], [&[d], &[-e1], &[-e2]]])
    };
    let [a, b, c, d, e] = BOUNDS;
    let diagonals = solve(&program(vec![bound(a), parabola(), pair(b, c), pair(d, e)])?, 1, |_| ())?;
    assert_eq!((diagonals.termination, diagonals.iterations), (solution.termination, solution.iterations));
    let off = Float::with_val(BITS, &diagonals.quality.primal_objective - &solution.quality.primal_objective);
    assert!(off.abs() < 1e-28);
    for threads in [2, 3] {
        assert!(solve(&problem, threads, |_| ())?.point == solution.point, "{threads} threads");
    }
    Ok(())
}

/// Bounds alone: a linear program, whose free variables are all that is not a number by itself.
#[test]
fn a_linear_program_is_solved() -> Result<()> {
    let mut matrices = BOUNDS.map(bound).to_vec();
    matrices.push(bound((3.0, [1.0, 0.0])));
    let problem = program(matrices)?;
    let solution = solve(&problem, 1, |_| ())?;
    assert_eq!(solution.termination, Termination::PrimalDualOptimal);
    assert!(digits(&solution, &decimal("7")) > 28.0, "{}", solution.quality.primal_objective);
    let errors = solver(&problem, 1)?.dimacs_errors(&solution)?;
    assert!(errors.iter().all(|error| error.abs() < 1e-28), "{errors:?}");
    Ok(())
}

/// The third error is a sum of norms of blocks: of numbers, where these are the blocks.
#[test]
fn errors_are_those_of_the_blocks() -> Result<()> {
    let problem = singles()?;
    let solver = solver(&problem, 1)?;
    let mut solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    for (block, by) in [(0, 3), (3, -4)] {
        let moved = solution.point.primal[block].stored().float(0, 0) + by;
        solution.point.primal[block] = Block::Dense(Matrix::from_floats(1, 1, BITS, &[moved])?);
    }
    // Beside 1 and the largest number of b, which is 2.
    let third = solver.dimacs_errors(&solution)?[2];
    assert!((third - 7.0 / 3.0).abs() < 1e-12, "{third}");
    Ok(())
}

#[test]
fn a_run_goes_on_from_the_checkpoint_of_its_blocks() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let problem = singles()?;
    let (whole, checkpoints) = (solve(&problem, 1, |_| ())?, Checkpoints::new(&problem));
    let first = solver(&problem, 2)?;
    let seen = AtomicUsize::new(0);
    first.run(first.begin()?, |iteration, state| {
        assert_eq!((state.point.x.len(), state.point.dual.len()), (6, 7));
        seen.fetch_add(usize::from(iteration.conditions.name.contains("block_")), Ordering::Relaxed);
        checkpoints.save(folder.path(), state)?;
        Ok(if iteration.number == 20 { Control::Stop } else { Control::Continue })
    })?;
    assert_eq!(seen.into_inner(), 20);
    let second = solver(&problem, 1)?;
    let state = checkpoints.load(&second, Some(folder.path()), false)?.unwrap();
    assert!(state.point == load_checkpoint(folder.path(), &problem)?.unwrap().point);
    assert_eq!((state.iterations, state.course.is_some()), (20, true));
    let rest = second.run(state, |_, _| Ok(Control::Continue))?;
    assert_eq!(rest.iterations, whole.iterations);
    assert!(rest.point == whole.point);
    Ok(())
}

/// Refusals and ends name blocks by their numbers in the program.
#[test]
fn a_block_that_is_refused_has_its_own_number() -> Result<()> {
    let problem = singles()?;
    let solver = solver(&problem, 1)?;
    for (block, is_primal, words) in [(5, true, "block 0 of group 4 of X"), (3, false, "block 0 of group 2 of Y")] {
        let mut state = solver.begin()?;
        // A later one is refused as well.
        for at in [block, 6] {
            let list = if is_primal { &mut state.point.primal } else { &mut state.point.dual };
            list[at] = Block::Dense(Matrix::from_f64s(1, 1, BITS, &[-1.0])?);
        }
        let refused = solver.run(state, |_, _| Ok(Control::Continue)).unwrap_err();
        assert!(matches!(&refused, Error::InvalidArgument(text) if text.contains(words)), "{refused}");
    }
    // A matrix of 0.
    let mut problem = singles()?;
    let zero = Sampled::new(1, 1, [Matrix::zeros(1, 1, BITS)?, Matrix::zeros(0, 1, BITS)?])?;
    problem.groups[4].constraints = Constraints::Sampled(zero);
    let ended = solve(&problem, 1, |_| ())?;
    assert_eq!(ended.termination, Termination::PrecisionTooLow);
    let remark = ended.remark.unwrap();
    assert!(remark.contains("the Schur complement of block 4 is not positive definite"), "{remark}");
    Ok(())
}

/// A free variable that follows from another beside them.
#[test]
fn free_variables_are_left_out_beside_them() -> Result<()> {
    let mut problem = singles()?;
    let twice = |matrix: &Matrix| {
        let (rows, cols) = (matrix.rows(), matrix.cols() + 1);
        Matrix::from_fn(rows, cols, BITS, |row, col| matrix.float(row, col.min(matrix.cols() - 1)))
    };
    for group in &mut problem.groups {
        group.free = twice(&group.free)?;
    }
    problem.objective = twice(&problem.objective.transposed().to_matrix()?)?.transposed().to_matrix()?;
    let solution = solve(&problem, 1, |_| ())?;
    assert!(digits(&solution, &decimal("7")) > 28.0, "{:?}", solution.remark);
    assert!(solution.remark.is_some_and(|remark| remark.contains("free variable 3")));
    assert_eq!((solution.point.y.rows(), solution.point.x.len()), (3, 6));
    Ok(())
}
