//! The Schur complement equation: `S dx - B dy = r`, `B^T dx = p`.
//!
//! With `S = L L^T`, `V = L^-1 B` and `Q = V^T V`: `dy = Q^-1 (p - V^T L^-1 r)`, `dx = L^-T (L^-1 r + V dy)`.

use crate::block::Block;
use crate::calls::gemv_with;
use crate::iterate::definite::Factor;
use crate::iterate::factors::ConeFactors;
use crate::iterate::point::Point;
use crate::iterate::site::Site;
use crate::numbers::Arithmetic;
use crate::problem::{Constraints, Sampled, Scalars, SchurOperand, Sparse};
use crate::workers::TaskBytes;
use rug::Float;
use sunzi::blas::GemvOptions;
use sunzi::distributed::even_share;
use sunzi::{Accuracy, Context, Error, Matrix, Op, Result};

/// The factored equation.
pub struct System {
    /// Systems of the groups of this rank.
    groups: Vec<GroupSystem>,
    /// The factor of Q, where there are free variables.
    free: Option<Factor>,
}

/// The factor of S for one group, and V.
struct GroupSystem {
    factor: Factor,
    free: Matrix,
}

/// The system of a group, or the row whose Schur complement is not positive definite, where the rows are groups of the
/// caller.
type Made = std::result::Result<GroupSystem, usize>;

/// The matrix that was not positive definite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Singular {
    /// The Schur complement of a group, by its number among all of the caller's.
    Schur(usize),
    /// Q.
    Free,
}

/// The point at which a system is made.
#[derive(Clone, Copy)]
pub struct SystemPoint<'a> {
    /// The program.
    pub site: Site<'a>,
    /// The point.
    pub point: &'a Point,
    /// Factors of its blocks.
    pub factors: &'a [ConeFactors],
}

impl System {
    /// Forms and factors the equation. Collective.
    ///
    /// # Errors
    /// The errors of the library, except for a matrix that is not positive definite, which is a result.
    pub fn new(place: &SystemPoint<'_>) -> Result<std::result::Result<System, Singular>> {
        let SystemPoint { site, .. } = *place;
        let (problem, share) = (site.problem, site.share);
        let is_sparse = |at: usize| matches!(problem.groups[at].constraints, Constraints::Sparse(_));
        let tasks = (0..problem.groups.len()).filter(|&at| !is_sparse(at)).collect::<Vec<_>>();
        let cost = |&at: &usize| match &problem.groups[at].constraints {
            Constraints::Scalars(scalars) => scalars.variables() as u64,
            constraints => (constraints.variables() as u64).pow(2),
        };
        let bytes = |&at: &usize| site.crew.ledger().map_or_else(TaskBytes::default, |ledger| ledger.group(at));
        let made = site.workers.map(&tasks, (cost, bytes), |ctx, &at| {
            let k = Arithmetic { ctx, bits: site.bits };
            match &problem.groups[at].constraints {
                Constraints::Sampled(sampled) => Ok(place.sampled(k, at, sampled)?.ok_or(0)),
                Constraints::Scalars(scalars) => place.scalars(k, at, scalars),
                Constraints::Sparse(_) => Ok(Err(0)),
            }
        });
        let made = site.agreed(made)?;
        let number =
            |(made, &at): (&Made, &usize)| Some(share.callers_group(share.groups[at], *made.as_ref().err()?) as u64);
        let refused = made.iter().zip(&tasks).filter_map(number).min();
        let first = share.ranks.least(refused.unwrap_or(u64::MAX))?;
        if first != u64::MAX {
            return Ok(Err(Singular::Schur(first as usize)));
        }
        let (mut groups, mut made) = (Vec::with_capacity(problem.groups.len()), made.into_iter());
        for (at, group) in problem.groups.iter().enumerate() {
            let made = match &group.constraints {
                Constraints::Sparse(sparse) => place.sparse(at, sparse)?,
                Constraints::Sampled(_) | Constraints::Scalars(_) => made.next().and_then(Made::ok),
            };
            match made {
                Some(made) => groups.push(made),
                None => return Ok(Err(Singular::Schur(share.callers_group(share.groups[at], 0)))),
            }
        }
        let width = problem.free_variables();
        if width == 0 {
            return Ok(Ok(System { groups, free: None }));
        }
        let rows = groups.iter().map(|group| {
            let rows = group.free.rows();
            // All ranks have the rows of a factor in tiles.
            let own = match group.factor.is_in_tiles() {
                false => 0..rows,
                true => even_share(rows, share.ranks.size(), share.ranks.rank()),
            };
            group.free.view().block(own, 0..width)
        });
        let rows = site.agreed(rows.collect::<Result<Vec<_>>>())?;
        let free = Factor::of_gram(&site, &rows, width)?;
        Ok(free.map(|free| System { groups, free: Some(free) }).ok_or(Singular::Free))
    }

    /// The factors of the groups of this rank, and the factor of Q.
    pub fn factors(&self) -> (impl Iterator<Item = &Factor>, Option<&Factor>) {
        (self.groups.iter().map(|group| &group.factor), self.free.as_ref())
    }

    /// `dx` and `dy` for the right-hand sides `r` and `p`. Collective.
    ///
    /// # Errors
    /// The errors of the library's solves.
    pub fn solve(&self, site: &Site<'_>, r: &[Matrix], p: &Matrix) -> Result<(Vec<Matrix>, Matrix)> {
        let (ranks, bits) = (&site.share.ranks, site.bits);
        let Some(free) = &self.free else {
            let solved = self.map(site, |k, at| self.groups[at].factor.solve(ranks, k, &r[at]))?;
            return Ok((solved, Matrix::zeros(0, 1, bits)?));
        };
        let forward = self.map(site, |k, at| self.groups[at].factor.substituted(ranks, k, &r[at], Op::NoTranspose))?;
        let (k, minus) = (site.arithmetic(), Float::with_val(2, -1));
        let options = GemvOptions::new().op(Op::Transpose).alpha(&minus);
        let part = |at: usize| Ok(gemv_with(k.ctx, &self.groups[at].free, &forward[at], bits, &options)?.result);
        let parts = site.share.spoken_for().map(part).collect();
        let rest = ranks.sum(k.ctx, p, &site.share.group_owners, parts)?;
        let dy = free.solve(ranks, k, &rest)?;
        let dx = self.map(site, |k, at| {
            let GroupSystem { factor, free } = &self.groups[at];
            let options = GemvOptions::new().accumulate(forward[at].view());
            let sum = gemv_with(k.ctx, free, &dy, bits, &options).map(|outcome| outcome.result);
            // Every rank makes the sum for itself, and the others would wait for one that failed.
            let sum = if factor.is_in_tiles() { site.agreed(sum)? } else { sum? };
            factor.substituted(ranks, k, &sum, Op::Transpose)
        })?;
        Ok((dx, dy))
    }

    /// The result of `work` for each group at hand: those of this rank on threads, then those of all ranks, one by one.
    /// Collective.
    fn map(
        &self,
        site: &Site<'_>,
        work: impl Fn(Arithmetic<'_>, usize) -> Result<Matrix> + Sync,
    ) -> Result<Vec<Matrix>> {
        let is_own = |at: usize| !self.groups[at].factor.is_in_tiles();
        let tasks = (0..self.groups.len()).filter(|&at| is_own(at)).collect::<Vec<_>>();
        let cost = |&at: &usize| (self.groups[at].free.rows() as u64).pow(2);
        let bits = site.bits;
        let bytes = |_: &usize| TaskBytes::default();
        let own = site.workers.map(&tasks, (cost, bytes), |ctx: &Context, &at| work(Arithmetic { ctx, bits }, at));
        let mut own = site.agreed(own)?.into_iter();
        let all = (0..self.groups.len()).map(|at| match is_own(at) {
            true => own.next().map_or_else(|| Matrix::zeros(0, 1, bits), Ok),
            false => work(site.arithmetic(), at),
        });
        all.collect()
    }
}

impl SystemPoint<'_> {
    /// The operands of the Schur complement of a group, for the blocks at hand.
    fn operands(&self, group: usize) -> Vec<SchurOperand<'_>> {
        // They stand group by group.
        let cones = self.site.cones;
        let first = cones.partition_point(|cone| cone.group < group);
        let mine = (first..cones.len()).take_while(|&at| cones[at].group == group);
        let operands = mine.map(|at| {
            let ConeFactors { x_inverse, x_lower_inverse, y_lower } = &self.factors[at];
            SchurOperand {
                x_inverse,
                x_lower_inverse: x_lower_inverse.as_ref(),
                y: &self.point.dual[at],
                y_lower: y_lower.as_ref(),
            }
        });
        operands.collect()
    }

    /// The factor of the Schur complement of a group of samples, or nothing where it is not positive definite.
    fn sampled(&self, k: Arithmetic<'_>, group: usize, sampled: &Sampled) -> Result<Option<GroupSystem>> {
        let schur = sampled.schur(k, &self.operands(group))?;
        let ctx = k.beside(schur.bytes());
        let k = Arithmetic { ctx: &ctx, ..k };
        self.with_free(k, group, Factor::own(k, &schur, Accuracy::Entrywise)?)
    }

    /// The system of one-point blocks that were combined.
    fn scalars(&self, k: Arithmetic<'_>, group: usize, scalars: &Scalars) -> Result<Made> {
        let operands = self.operands(group);
        let [operand] = &operands[..] else { return Err(Error::InvalidArgument("scalars have one block".into())) };
        match Factor::diagonal(k, &scalars.schur(k, operand.x_inverse, operand.y)?)? {
            Ok(factor) => Ok(self.with_free(k, group, Some(factor))?.ok_or(0)),
            Err(row) => Ok(Err(row)),
        }
    }

    /// The system of a group whose Schur complement has this factor, if it has one. Collective where that is in tiles.
    fn with_free(&self, k: Arithmetic<'_>, group: usize, factor: Option<Factor>) -> Result<Option<GroupSystem>> {
        let Some(factor) = factor else { return Ok(None) };
        let b = &self.site.problem.groups[group].free;
        let free = match b.cols() {
            0 => b.clone(),
            _ => factor.substituted(&self.site.share.ranks, k, b, Op::NoTranspose)?,
        };
        Ok(Some(GroupSystem { factor, free }))
    }

    /// The system of a group of sparse matrices, computed by all ranks together. Collective.
    fn sparse(&self, group: usize, sparse: &Sparse) -> Result<Option<GroupSystem>> {
        let Site { share, workers, .. } = self.site;
        let (ranks, k) = (&share.ranks, self.site.arithmetic());
        let own = self.operands(group);
        let schur = if ranks.are_several() {
            let all = (0..share.all.len()).filter(|&at| share.all[at].group == share.groups[group]);
            let all = all.collect::<Vec<_>>();
            let list = share.pieces(all.iter().copied());
            let whole = |blocks: &mut dyn Iterator<Item = &Block>| -> Result<Vec<Block>> {
                let stored = blocks.map(|block| block.stored().clone()).collect();
                let stored = ranks.everywhere(k.bits, &list, Ok(stored))?;
                Ok(all.iter().zip(stored).map(|(&at, stored)| Block::of_shape(share.all[at].shape, stored)).collect())
            };
            let x_inverse = whole(&mut own.iter().map(|operand| operand.x_inverse))?;
            let y = whole(&mut own.iter().map(|operand| operand.y))?;
            let operands = x_inverse.iter().zip(&y);
            let operands =
                operands.map(|(x_inverse, y)| SchurOperand { x_inverse, x_lower_inverse: None, y, y_lower: None });
            sparse.schur(workers, ranks, k, &operands.collect::<Vec<_>>())?
        } else {
            sparse.schur(workers, ranks, k, &own)?
        };
        self.with_free(k, group, Factor::of_root(&self.site, sparse.variables, schur)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Shape;
    use crate::iterate::Solver;
    use crate::iterate::factors::factor;
    use crate::options::SolverOptions;
    use crate::problem::{Entry, Problem, SparseCone};
    use sunzi::comm::{Transport, local};
    use sunzi::distributed::{Team, TeamOptions};

    /// Two variables on a diagonal, and one equation between them.
    fn program() -> Result<Problem> {
        let entry = |at: usize| Entry { row: at, col: at, value: Float::with_val(2, 1) };
        let cone = SparseCone {
            shape: Shape::Diagonal(2),
            active: vec![0, 1],
            entries: vec![vec![entry(0)], vec![entry(1)]],
            constant: Vec::new(),
        };
        let ones = Matrix::from_f64s(2, 1, 128, &[1.0, 1.0])?;
        Problem::standard(128, ones.clone(), vec![cone], Some((ones, Matrix::from_f64s(1, 1, 128, &[2.0])?)))
    }

    #[test]
    fn a_sum_that_fails_on_one_rank_is_an_error_on_all() -> Result<()> {
        let problem = program()?;
        let solved = local::run(2, |rank| {
            let team = Team::new(rank.split(0)?, TeamOptions::default())?;
            let ctx = Context::builder().threads(1).build()?;
            let solver = Solver::on_ranks(ctx, team, &problem, SolverOptions::new(problem.form))?;
            let (point, site) = (solver.begin()?.point, solver.site(&solver.problem));
            let factors = factor(&site, &point)?.unwrap();
            let mut system = System::new(&SystemPoint { site, point: &point, factors: &factors })?.unwrap();
            assert!(matches!(system.groups[0].factor, Factor::Tiles(..)));
            let (r, p) = ([Matrix::zeros(2, 1, 128)?], Matrix::zeros(1, 1, 128)?);
            system.solve(&site, &r, &p)?;
            if rank.rank() == 1 {
                system.groups[0].free = Matrix::zeros(2, 3, 128)?;
            }
            let failed = system.solve(&site, &r, &p).map(drop).unwrap_err();
            // All are in step after it.
            assert!(solver.root_says(true)?);
            solver.close()?;
            Ok::<_, Error>(failed.to_string())
        });
        for text in solved {
            assert!(text?.contains("rank 1"));
        }
        Ok(())
    }
}
