//! Points that are not on their equations: changes that are least in their metric, and certificates all the same.

use super::polynomial::{CUBIC, PAIR, parabola};
use super::*;
use crate::block::Block;
use crate::certify::metric::{DualChange, FactoredMetric, Linked, Rounded, pairings};
use crate::iterate::Point;
use crate::numbers::{Arithmetic, largest};
use crate::workers::Workers;
use sunzi::{Matrix, cholesky, gemm};

fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

fn scaled(matrix: &Matrix, factor: &Float) -> Matrix {
    let bits = matrix.precision_bits();
    Matrix::from_fn(matrix.rows(), matrix.cols(), bits, |row, col| matrix.float(row, col) * factor).unwrap()
}

/// The point with x and Y times a number, and another one added to y.
fn moved(point: &Point, factor: &Float, added: &Float) -> Point {
    let bits = point.y.precision_bits();
    let y = Matrix::from_fn(point.y.rows(), 1, bits, |row, _| point.y.float(row, 0) + added).unwrap();
    let dual = point.dual.iter().map(|block| block.like(scaled(block.stored(), factor))).collect();
    let x = point.x.iter().map(|x| scaled(x, factor)).collect();
    Point { x, primal: point.primal.clone(), y, dual }
}

/// Residuals far above the least eigenvalues of Y and X, which are about 1e-31, and a y for which nothing is feasible.
#[test]
fn residuals_above_the_least_eigenvalues_do_not_stand_in_the_way() -> Result<()> {
    let (ctx, folder) = (context(), tempfile::tempdir().unwrap());
    let cases = [("a.json", parabola(""), Some(3)), ("b.json", PAIR.into(), Some(2)), ("c.json", CUBIC.into(), None)];
    for (name, text, optimum) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let (program, problem) = (read_exact(&path)?, read_problem(&path, 300)?);
        let solver = Solver::new(ctx.clone(), &problem, SolverOptions::new(problem.form))?;
        let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
        let known = certify(&ctx, &program, &problem, &solution.point)?.proof.unwrap();
        let optimum = optimum.map_or_else(
            || Float::with_val(300, &known.lower.as_ref().unwrap().claim),
            |optimum| Float::with_val(300, optimum),
        );
        for (factor, added) in [(1.0, 1e-20), (1.0 + 1.0 / 1024.0, 0.0), (1.0 - 1.0 / 256.0, 1e-12), (1.75, 1e-15)] {
            let point = moved(&solution.point, &Float::with_val(64, factor), &Float::with_val(64, added));
            let found = certify(&ctx, &program, &problem, &point)?;
            assert_eq!((&found.without_lower, &found.without_upper), (&None, &None), "{name} {factor} {added}");
            let proof = found.proof.unwrap();
            verify(&program, &proof, 1)?;
            let (lower, upper) = (proof.lower.unwrap().claim, proof.upper.unwrap().claim);
            let width = Float::with_val(64, Rational::from(&upper - &lower));
            assert!(width < 1e-28, "{name} {factor} {added}: {width:e}");
            let off = Float::with_val(64, Float::with_val(300, &lower) - &optimum).abs();
            assert!(off < 1e-28, "{name} {factor} {added}: {off:e}");
        }
    }
    Ok(())
}

/// A point from which nothing follows about the optimum, and none about the precision.
#[test]
fn a_dual_point_outside_its_cone_gives_no_lower_bound() -> Result<()> {
    let (ctx, folder) = (context(), tempfile::tempdir().unwrap());
    let path = folder.path().join("a.json");
    std::fs::write(&path, parabola("")).unwrap();
    let (program, problem) = (read_exact(&path)?, read_problem(&path, 300)?);
    let solver = Solver::new(ctx.clone(), &problem, SolverOptions::new(problem.form))?;
    let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    let mut point = solution.point;
    // An indefinite Y.
    let Block::Dense(first) = &mut point.dual[0] else { panic!("dense") };
    first.set_float(0, 0, &Float::with_val(300, -1))?;
    let found = certify(&ctx, &program, &problem, &point)?;
    let why = found.without_lower.unwrap();
    assert!(why.contains("block 1 of Y is not positive definite") && !why.contains("bits"), "{why}");
    assert!(found.proof.unwrap().upper.is_some());
    Ok(())
}

/// `A_p . W` are the residuals, the square is that of the norm, and it is the least: `W Y^-1 V Y^-1` has no trace for
/// any V with `A_p . V = 0`, since `Y^-1 W Y^-1 = A^*(t)`.
#[test]
fn changes_meet_the_residuals_and_are_least() -> Result<()> {
    let (ctx, bits, folder) = (context(), 256, tempfile::tempdir().unwrap());
    let k = Arithmetic { ctx: &ctx, bits };
    let workers = Workers::new(ctx.clone())?;
    Polynomial::new(2).write(folder.path());
    std::fs::write(folder.path().join("a.dat-s"), PATH).unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join("a.dat-s")] {
        let program = read_exact(&path)?;
        let rounded = Rounded::new(&program.groups[0], program.free_variables(), bits)?;
        let block = |shape: &proof::ProofShape| {
            let order = shape.order;
            let entry = |row: usize, col: usize| match row == col {
                true => Float::with_val(bits, 3 * order + row),
                false => Float::with_val(bits, (row + 2) * (col + 2)).sin(),
            };
            match shape.diagonal {
                true => {
                    Block::Diagonal(Matrix::from_fn(order, 1, bits, |row, _| Float::with_val(bits, row + 1)).unwrap())
                }
                false => Block::Dense(Matrix::from_fn(order, order, bits, entry).unwrap()),
            }
        };
        let y = program.groups[0].shapes().iter().map(block).collect::<Vec<_>>();
        let seen = FactoredMetric::from_dual(k, &y)?.unwrap_or_else(|at| panic!("block {at}"));
        let rest =
            Matrix::from_fn(program.groups[0].variables(), 1, bits, |row, _| Float::with_val(bits, row as f64 - 0.3))?;
        let groups = [rounded];
        let linked = Linked::new(&workers, bits, &groups, vec![seen])?.unwrap_or_else(|(_, why)| panic!("{why}"));
        let (t, square) = linked.of_group(0).solve(k, &rest)?;
        let constraints = &groups[0].constraints;
        let change = |cone| linked.of_group(0).change(k, constraints, cone, &t);
        let changes = (0..y.len()).map(change).collect::<Result<Vec<_>>>()?;
        assert!(largest(&k.difference(&pairings(k, constraints, &changes)?, &rest)?) < 1e-60);
        let mut sum = Float::new(bits);
        for (cone, (y, w)) in y.iter().zip(&changes).enumerate() {
            let of_t = constraints.weighted_sum(k, cone, &t)?;
            sum += match (y, w) {
                (Block::Dense(y), Block::Dense(w)) => {
                    let inverse = cholesky(&ctx, y, bits)?.inverse(&ctx, bits)?.into_matrix();
                    let outer = gemm(&ctx, &gemm(&ctx, &inverse, w, bits)?, &inverse, bits)?;
                    assert!(largest(&k.difference(&outer, of_t.stored())?) < 1e-60);
                    k.inner(&outer, w)?
                }
                _ => k.inner(of_t.stored(), w.stored())?,
            };
        }
        assert!((sum - &square).abs() < 1e-60);
        // With free variables it is smaller still, and y takes the rest.
        let DualChange { dy, square: less, .. } = linked.dual(k, std::slice::from_ref(&rest))?;
        assert!(less <= square && dy.is_some() == (program.free_variables() > 0));
    }
    Ok(())
}
