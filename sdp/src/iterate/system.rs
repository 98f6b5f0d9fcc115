//! The Schur complement equation: `S dx - B dy = r`, `B^T dx = p`.
//!
//! With `S = L L^T`, `V = L^-1 B` and `Q = V^T V`: `dy = Q^-1 (p - V^T L^-1 r)`, `dx = L^-T (L^-1 r + V dy)`.

use crate::iterate::factors::ConeFactors;
use crate::iterate::point::{Cone, Point};
use crate::numbers::Arithmetic;
use crate::problem::{Problem, SchurOperand};
use crate::workers::Workers;
use rug::Float;
use sunzi::{Accuracy, Cholesky, CholeskyOptions, Error, Matrix, Op, Result, Symmetric, TrsmOptions};
use sunzi::{GemvOptions, cholesky_with, gemv_with, syrk, trsm_with};

/// The factored equation.
pub struct System {
    groups: Vec<GroupSystem>,
    /// The factor of Q, where there are free variables.
    free: Option<Cholesky>,
}

/// The factor of S for one group, and V.
struct GroupSystem {
    factor: Cholesky,
    free: Matrix,
}

/// Which matrix was not positive definite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Singular {
    /// The Schur complement of a group.
    Schur(usize),
    /// Q.
    Free,
}

/// What a system is made at.
pub struct Place<'a> {
    /// The program.
    pub problem: &'a Problem,
    /// Its blocks.
    pub cones: &'a [Cone],
    /// The point.
    pub point: &'a Point,
    /// Factors of its blocks.
    pub factors: &'a [ConeFactors],
}

impl System {
    /// Forms and factors the equation.
    ///
    /// # Errors
    /// Those of the library, but that of a matrix that is not positive definite, which is a result.
    pub fn new(workers: &Workers, bits: u32, place: &Place<'_>) -> Result<std::result::Result<System, Singular>> {
        let tasks = (0..place.problem.groups.len()).collect::<Vec<_>>();
        let cost = |&group: &usize| (place.problem.groups[group].constraints.variables() as u64).pow(2);
        let groups = workers.map(&tasks, cost, |ctx, &group| {
            let k = Arithmetic { ctx, bits };
            place.group(workers, k, group)
        })?;
        if let Some(group) = groups.iter().position(Option::is_none) {
            return Ok(Err(Singular::Schur(group)));
        }
        let groups = groups.into_iter().flatten().collect::<Vec<_>>();
        let width = place.problem.free_variables();
        if width == 0 {
            return Ok(Ok(System { groups, free: None }));
        }
        let rows = groups.iter().map(|group| group.free.rows()).sum();
        let mut all = Matrix::zeros(rows, width, bits)?;
        let mut first = 0;
        for group in &groups {
            let next = first + group.free.rows();
            all.view_mut().block(first..next, 0..width)?.copy_from(&group.free);
            first = next;
        }
        let gram = syrk(workers.all(), &all, bits)?;
        match cholesky_with(workers.all(), &gram, bits, &CholeskyOptions::new()) {
            Ok(outcome) => Ok(Ok(System { groups, free: Some(outcome.result) })),
            Err(Error::NotPositiveDefinite { .. }) => Ok(Err(Singular::Free)),
            Err(error) => Err(error),
        }
    }

    /// `dx` and `dy` for the right sides `r` and `p`.
    ///
    /// # Errors
    /// Those of the library's solves.
    pub fn solve(&self, workers: &Workers, bits: u32, r: &[Matrix], p: &Matrix) -> Result<(Vec<Matrix>, Matrix)> {
        let Some(free) = &self.free else {
            let solved = self.groups.iter().zip(r).map(|(group, r)| group.factor.solve(workers.all(), r, bits));
            return Ok((solved.collect::<Result<_>>()?, Matrix::zeros(0, 1, bits)?));
        };
        let tasks = (0..r.len()).collect::<Vec<_>>();
        let cost = |&group: &usize| (r[group].rows() as u64).pow(2);
        let forward = workers.map(&tasks, cost, |ctx, &group| {
            let lower = self.groups[group].factor.factor();
            Ok(trsm_with(ctx, lower, &r[group], bits, &TrsmOptions::new().accuracy(Accuracy::Entrywise))?.result)
        })?;
        let minus = Float::with_val(2, -1);
        let mut rest = p.clone();
        for (group, forward) in self.groups.iter().zip(&forward) {
            let options = GemvOptions::new().op(Op::Transpose).alpha(&minus).accumulate(rest.view());
            let next = gemv_with(workers.all(), &group.free, forward, bits, &options)?.result;
            rest = next;
        }
        let dy = free.solve(workers.all(), &rest, bits)?;
        let dx = workers.map(&tasks, cost, |ctx, &group| {
            let GroupSystem { factor, free } = &self.groups[group];
            let options = GemvOptions::new().accumulate(forward[group].view());
            let sum = gemv_with(ctx, free, &dy, bits, &options)?.result;
            let options = TrsmOptions::new().op(Op::Transpose).accuracy(Accuracy::Entrywise);
            Ok(trsm_with(ctx, factor.factor(), &sum, bits, &options)?.result)
        })?;
        Ok((dx, dy))
    }
}

impl Place<'_> {
    /// The factor of the Schur complement of a group, or nothing where it is not positive definite.
    fn group(&self, workers: &Workers, k: Arithmetic<'_>, group: usize) -> Result<Option<GroupSystem>> {
        let constraints = &self.problem.groups[group].constraints;
        let mine = self.cones.iter().enumerate().filter(|(_, cone)| cone.group == group);
        let operands = mine.map(|(at, _)| {
            let ConeFactors { x_inverse, x_lower_inverse, y_lower } = &self.factors[at];
            SchurOperand {
                x_inverse,
                x_lower_inverse: x_lower_inverse.as_ref(),
                y: &self.point.dual[at],
                y_lower: y_lower.as_ref(),
            }
        });
        let schur = constraints.schur(workers, k, &operands.collect::<Vec<_>>())?;
        let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise);
        let factor = match cholesky_with(k.ctx, Symmetric::lower(&schur), k.bits, &options) {
            Ok(outcome) => outcome.result,
            Err(Error::NotPositiveDefinite { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let b = &self.problem.groups[group].free;
        let free = match b.cols() {
            0 => b.clone(),
            _ => {
                let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
                trsm_with(k.ctx, factor.factor(), b, k.bits, &options)?.result
            }
        };
        Ok(Some(GroupSystem { factor, free }))
    }
}
