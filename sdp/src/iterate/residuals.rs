//! Objectives, and how far a point is from meeting the equations.

use crate::block::{Block, Summand};
use crate::calls::gemv_with;
use crate::iterate::memory::{ConeTask, IterationStep};
use crate::iterate::point::{Cone, Point};
use crate::iterate::quality::Quality;
use crate::iterate::site::Site;
use crate::numbers::largest;
use crate::problem::{Constraints, Form, Group, Sparse};
use crate::ranks::Piece;
use rug::Float;
use sunzi::blas::GemvOptions;
use sunzi::{Head, Matrix, Op, Result};

/// The residuals of the equations.
pub struct Residuals {
    /// `A(x) - C - X`, block by block.
    pub primal: Vec<Block>,
    /// `b - B^T x`.
    pub free: Matrix,
    /// `c - A*(Y) - B y`, group by group.
    pub dual: Vec<Matrix>,
}

/// The data of a point that an iteration needs.
pub struct Evaluation {
    /// The residuals of the equations.
    pub residuals: Residuals,
    /// The errors, objectives and gap of the point.
    pub quality: Quality,
}

impl Evaluation {
    /// The evaluation of a point. Collective.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn new(site: &Site<'_>, point: &Point) -> Result<Evaluation> {
        let site = &site.at(IterationStep::Residuals);
        let residuals = Residuals::new(site, point)?;
        let objectives = Objectives::new(site, point)?;
        let [primal_matrix_error, dual_error] = residuals.errors(site)?;
        let quality = Quality {
            gap: objectives.gap(site.problem.form),
            primal_objective: objectives.primal,
            dual_objective: objectives.dual,
            primal_matrix_error,
            primal_free_error: residuals.primal_free_error(),
            dual_error,
        };
        Ok(Evaluation { residuals, quality })
    }
}

/// The values of both objectives.
pub struct Objectives {
    /// `f + c^T x`.
    pub primal: Float,
    /// `f + C . Y + b^T y`.
    pub dual: Float,
}

impl Objectives {
    /// Both objectives at a point. Collective.
    ///
    /// # Errors
    /// The errors of [`sunzi::blas::dot`].
    pub fn new(site: &Site<'_>, point: &Point) -> Result<Objectives> {
        let (k, problem, share) = (site.arithmetic(), site.problem, site.share);
        let constant = || Float::with_val(k.bits, &problem.constant);
        let of_group = |at: usize| Ok([k.inner(&problem.groups[at].costs, &point.x[at])?]);
        let groups = share.of_groups(k.bits, share.spoken_for().map(of_group).collect())?;
        let primal = groups.iter().fold(constant(), |sum, [value]| sum + value);
        let free = site.agreed(k.inner(&problem.objective, &point.y))?;
        let of_cone = |(cone, block): (&Cone, &Block)| {
            [problem.groups[cone.group].constraints.constant_pairing(k, cone.number, block)]
        };
        let cones = share.of_cones(k.bits, Ok(site.cones.iter().zip(&point.dual).map(of_cone).collect()))?;
        let dual = cones.iter().fold(constant() + free, |sum, [value]| sum + value);
        Ok(Objectives { primal, dual })
    }

    /// `|p - d| / max(|p| + |d|, 1)`, as SDPB has it; in SDPA's form SDPA's, `|p - d| / max((|p| + |d|) / 2, 1)`.
    pub fn gap(&self, form: Form) -> Float {
        let bits = self.primal.prec();
        let mut size = Float::with_val(bits, self.primal.abs_ref()) + Float::with_val(bits, self.dual.abs_ref());
        if form == Form::Sdpa {
            size >>= 1u32;
        }
        let difference = Float::with_val(bits, &self.primal - &self.dual).abs();
        difference / size.max(&Float::with_val(bits, 1))
    }
}

/// `A*(M)` of all groups of this rank, for its blocks of a matrix. Collective.
///
/// # Errors
/// The errors of the library's products.
pub fn adjoint(site: &Site<'_>, blocks: &[Summand<'_>]) -> Result<Vec<Matrix>> {
    let (problem, cones, bits) = (site.problem, site.cones, site.bits);
    let parts = site.map(ConeTask::Pairing, |k, at| match &problem.groups[cones[at].group].constraints {
        Constraints::Sampled(sampled) => sampled.pairings(k, cones[at].number, blocks[at].block),
        Constraints::Scalars(scalars) => Ok(scalars.pairings(k, blocks[at].block)),
        Constraints::Sparse(_) => Ok(Vec::new()),
    })?;
    let none = |group: &Group| match &group.constraints {
        Constraints::Sparse(_) => Vec::new(),
        constraints => vec![Float::new(bits); constraints.variables()],
    };
    let mut sampled = problem.groups.iter().map(none).collect::<Vec<_>>();
    for (cone, part) in cones.iter().zip(parts) {
        sampled[cone.group].iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    let sampled = sampled.iter().map(|sum| Matrix::from_floats(sum.len(), 1, bits, sum));
    let mut sums = site.agreed(sampled.collect::<Result<Vec<_>>>())?;
    for (number, group) in problem.groups.iter().enumerate() {
        if let Constraints::Sparse(sparse) = &group.constraints {
            sums[number] = of_sparse(site, number, sparse, blocks)?;
        }
    }
    Ok(sums)
}

/// The same for a group of sparse matrices; each rank contributes the numbers of its blocks at their positions.
/// Collective.
fn of_sparse(site: &Site<'_>, group: usize, sparse: &Sparse, blocks: &[Summand<'_>]) -> Result<Matrix> {
    let (k, share) = (site.arithmetic(), site.share);
    let own = site.cones.iter().zip(blocks).filter(|(cone, _)| cone.group == group);
    let own = own.map(|(cone, summand)| sparse.numbers(k, cone.number, summand)).collect();
    let heights = site.agreed(sparse.heights())?;
    let all = share.all.iter().zip(&share.cone_owners).filter(|(cone, _)| cone.group == share.groups[group]);
    let list = all.map(|(cone, &owner)| Piece { owner, shape: (heights[cone.number], 1) }).collect::<Vec<_>>();
    let numbers = share.ranks.everywhere(k.bits, &list, own)?;
    site.agreed(sparse.paired(k, &numbers))
}

impl Residuals {
    /// The residuals of a point. Collective.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn new(site: &Site<'_>, point: &Point) -> Result<Residuals> {
        let (problem, share, bits) = (site.problem, site.share, site.bits);
        let primal = site.map(ConeTask::Residual, |k, at| {
            let cone = site.cones[at];
            let constraints = &problem.groups[cone.group].constraints;
            let sum = constraints.weighted_sum(k, cone.number, &point.x[cone.group])?;
            constraints.less_constant(cone.number, sum)?.plus(k, &Float::with_val(2, -1), &point.primal[at])
        })?;
        let k = site.arithmetic();
        let minus = Float::with_val(2, -1);
        let mut free = problem.objective.clone();
        if free.rows() > 0 {
            let options = GemvOptions::new().op(Op::Transpose).alpha(&minus);
            let part = |at: usize| Ok(gemv_with(k.ctx, &problem.groups[at].free, &point.x[at], bits, &options)?.result);
            free = share.ranks.sum(k.ctx, &free, &share.group_owners, share.spoken_for().map(part).collect())?;
        }
        let summands = point.dual.iter().map(|block| Summand { block, product: None }).collect::<Vec<_>>();
        let of_y = adjoint(site, &summands)?;
        let dual = problem.groups.iter().zip(&of_y).map(|(group, of_y)| {
            let rest = k.difference(&group.costs, of_y)?;
            if point.y.rows() == 0 {
                return Ok(rest);
            }
            let options = GemvOptions::new().alpha(&minus).accumulate(rest.view());
            Ok(gemv_with(k.ctx, &group.free, &point.y, bits, &options)?.result)
        });
        let dual = site.agreed(dual.collect())?;
        Ok(Residuals { primal, free, dual })
    }

    /// The largest entries of `A(x) - C - X` and of `c - A*(Y) - B y`. Collective.
    ///
    /// # Errors
    /// [`sunzi::Error::Transport`].
    pub fn errors(&self, site: &Site<'_>) -> Result<[Float; 2]> {
        let most = |sizes: &mut dyn Iterator<Item = Float>| sizes.fold(Float::new(64), |most, size| most.max(&size));
        let primal = most(&mut self.primal.iter().map(Block::largest));
        site.share.ranks.largest(64, Ok([primal, most(&mut self.dual.iter().map(largest))]))
    }

    /// The largest entry of `b - B^T x`.
    pub fn primal_free_error(&self) -> Float {
        largest(&self.free)
    }
}

/// The matrix with the other sign.
pub fn negated(mut matrix: Matrix) -> Matrix {
    for head in matrix.parts_mut().0 {
        *head = Head(*head).negated().0;
    }
    matrix
}
