//! The errors by which benchmarks of semidefinite programs compare solutions.
//!
//! Source: H. D. Mittelmann, Math. Programming 95 (2003), 407-430, whose x, y and z are Y, -x and X here, and whose b
//! and c are -c and -C; `||b||_1` is the largest magnitude of an entry, and a norm of blocks the sum of theirs.

use crate::iterate::outcome::Solution;
use crate::iterate::residuals::{Objectives, Residuals};
use crate::iterate::side::Sides;
use crate::iterate::site::Site;
use crate::iterate::sizes::{largest_constant, largest_costs};
use crate::numbers::{Arithmetic, largest};
use rug::Float;
use sunzi::{Matrix, Result};

/// The squared lengths of matrices as vectors.
fn squares<'m>(k: Arithmetic<'_>, matrices: impl Iterator<Item = &'m Matrix>) -> Result<Vec<[Float; 1]>> {
    matrices.map(|matrix| Ok([k.inner(matrix, matrix)?])).collect()
}

/// The sum of the norms of blocks of one entry each, given as a column.
fn sizes(bits: u32, entries: &Matrix) -> Float {
    (0..entries.rows()).fold(Float::new(bits), |sum, row| sum + entries.float(row, 0).abs())
}

/// See [`super::Solver::dimacs_errors`]. Collective.
///
/// # Errors
/// The errors of the library's products.
pub fn errors(site: &Site<'_>, solution: &Solution) -> Result<[f64; 6]> {
    let (point, problem, bits) = (&solution.point, site.problem, site.bits);
    let (k, share) = (site.arithmetic(), site.share);
    let residuals = Residuals::new(site, point)?;
    let Objectives { primal, dual } = Objectives::new(site, point)?;
    let (primal, dual) = (primal - &problem.constant, dual - &problem.constant);
    let one = |size: Float| size + 1u32;
    let of_costs = largest_costs(site)?;
    let of_constant = one(largest_constant(problem, bits).max(&largest(&problem.objective)));
    let size = one(Float::with_val(bits, primal.abs_ref()) + Float::with_val(bits, dual.abs_ref()));
    let own = squares(k, share.spoken_for().map(|at| &residuals.dual[at]));
    let first = share.of_groups(bits, own)?.into_iter().fold(Float::new(bits), |sum, [square]| sum + square);
    let first = first.sqrt() / one(of_costs);
    // Equations of x belong to the side of X, as those of free variables do.
    let own = site.cones.iter().zip(&residuals.primal).map(|(cone, rest)| {
        let are_many = share.is_joined(share.groups[cone.group]);
        Ok([if are_many { sizes(bits, rest.stored()) } else { rest.inner(k, rest)?.sqrt() }])
    });
    let own = own.collect::<Result<Vec<_>>>();
    let blocks = share.of_cones(bits, own)?.into_iter().fold(Float::new(bits), |sum, [norm]| sum + norm);
    let free = site.agreed(k.inner(&residuals.free, &residuals.free))?.sqrt();
    let third = (blocks + free) / of_constant;
    let gap = Float::with_val(bits, &primal - &dual) / &size;
    let [complementarity] = site.complementarity([Sides { primal: point, dual: point }])?;
    let complementarity = complementarity / &size;
    // X and Y have been factored: no eigenvalue is below 0.
    Ok([first.to_f64(), 0.0, third.to_f64(), 0.0, gap.to_f64(), complementarity.to_f64()])
}

#[cfg(test)]
mod tests {
    use crate::block::Block;
    use crate::iterate::{Solver, cones};
    use crate::problem::{Entry, Problem, SparseCone};
    use crate::{Control, SolverOptions, block::Shape};
    use rug::Float;
    use sunzi::{Context, Matrix, Result};

    /// `min 2 t` with `t I - A >= 0`, at a point that is off by known amounts.
    #[test]
    fn errors_are_those_of_the_definition() -> Result<()> {
        let entry = |row, col, value| Entry { row, col, value: Float::with_val(53, value) };
        let block = SparseCone {
            shape: Shape::Dense(2),
            active: vec![0],
            entries: vec![vec![entry(0, 0, 1), entry(1, 1, 1)]],
            constant: vec![entry(1, 0, -3)],
        };
        let problem = Problem::standard(200, Matrix::from_f64s(1, 1, 200, &[2.0])?, vec![block], None)?;
        assert_eq!(cones(&problem).len(), 1);
        let ctx = Context::builder().threads(1).build()?;
        let solver = Solver::new(ctx, &problem, SolverOptions::new(problem.form))?;
        let mut solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
        assert!(solver.dimacs_errors(&solution)?.into_iter().all(|error| error.abs() < 1e-29));
        solution.point.x[0] = Matrix::from_f64s(1, 1, 200, &[4.0])?;
        solution.point.primal = vec![Block::Dense(Matrix::from_f64s(2, 2, 200, &[5.0, 3.0, 3.0, 4.0])?)];
        solution.point.dual = vec![Block::Dense(Matrix::from_f64s(2, 2, 200, &[0.5, -0.25, -0.25, 2.0])?)];
        // c - A . Y = 2 - 2.5; A(x) - C - X = diag(-1, 0); objectives 8 and 1.5; X . Y = 2.5 - 1.5 + 8.
        let expected = [0.5 / 3.0, 0.0, 1.0 / 4.0, 0.0, 6.5 / 10.5, 9.0 / 10.5];
        for (found, expected) in solver.dimacs_errors(&solution)?.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        Ok(())
    }
}
