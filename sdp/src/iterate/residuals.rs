//! Objectives, and how far a point is from meeting the equations.

use crate::block::{Block, Summand};
use crate::iterate::point::{Cone, Point};
use crate::numbers::{Arithmetic, largest};
use crate::problem::{Constraints, Problem};
use crate::workers::Workers;
use rug::Float;
use rug::ops::NegAssign;
use sunzi::{GemvOptions, Matrix, Op, Result, gemv_with};

/// What is left of the equations.
pub struct Residuals {
    /// `A(x) - C - X`, block by block.
    pub primal: Vec<Block>,
    /// `b - B^T x`.
    pub free: Matrix,
    /// `c - A*(Y) - B y`, group by group.
    pub dual: Vec<Matrix>,
}

/// The values of both objectives.
pub struct Objectives {
    /// `f + c^T x`.
    pub primal: Float,
    /// `f + C . Y + b^T y`.
    pub dual: Float,
}

impl Objectives {
    /// Both at a point.
    ///
    /// # Errors
    /// Those of [`sunzi::dot`].
    pub fn new(k: Arithmetic<'_>, problem: &Problem, cones: &[Cone], point: &Point) -> Result<Objectives> {
        let (mut primal, mut dual) =
            (Float::with_val(k.bits, &problem.constant), Float::with_val(k.bits, &problem.constant));
        for (group, x) in problem.groups.iter().zip(&point.x) {
            primal += k.inner(&group.costs, x)?;
        }
        dual += k.inner(&problem.objective, &point.y)?;
        for (cone, block) in cones.iter().zip(&point.dual) {
            dual += problem.groups[cone.group].constraints.constant_pairing(k, cone.number, block);
        }
        Ok(Objectives { primal, dual })
    }

    /// `|p - d| / max(|p| + |d|, 1)`.
    pub fn gap(&self) -> Float {
        let bits = self.primal.prec();
        let size = Float::with_val(bits, self.primal.abs_ref()) + Float::with_val(bits, self.dual.abs_ref());
        let difference = Float::with_val(bits, &self.primal - &self.dual).abs();
        difference / size.max(&Float::with_val(bits, 1))
    }
}

/// `A*(M)` of all groups, for the blocks of a matrix.
///
/// # Errors
/// Those of the library's products.
pub fn adjoint(
    workers: &Workers,
    bits: u32,
    problem: &Problem,
    blocks: (&[Cone], &[Summand<'_>]),
) -> Result<Vec<Matrix>> {
    let (cones, blocks) = blocks;
    let of_group = |group: usize| (0..cones.len()).filter(move |&at| cones[at].group == group);
    let sampled = |at: &usize| matches!(problem.groups[cones[*at].group].constraints, Constraints::Sampled(_));
    let tasks = (0..cones.len()).filter(sampled).collect::<Vec<_>>();
    let parts = workers.map(
        &tasks,
        |&at| cones[at].shape.cost(),
        |ctx, &at| match &problem.groups[cones[at].group].constraints {
            Constraints::Sampled(sampled) => {
                sampled.pairings(Arithmetic { ctx, bits }, cones[at].number, blocks[at].block)
            }
            Constraints::Sparse(_) => Ok(Vec::new()),
        },
    )?;
    let sums = problem.groups.iter().enumerate().map(|(number, group)| match &group.constraints {
        Constraints::Sparse(sparse) => {
            let k = Arithmetic { ctx: workers.all(), bits };
            sparse.pairings(k, &of_group(number).map(|at| blocks[at]).collect::<Vec<_>>())
        }
        Constraints::Sampled(sampled) => {
            let mut sum = vec![Float::new(bits); sampled.variables()];
            for (_, part) in tasks.iter().zip(&parts).filter(|(at, _)| cones[**at].group == number) {
                sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
            }
            Matrix::from_floats(sum.len(), 1, bits, &sum)
        }
    });
    sums.collect()
}

impl Residuals {
    /// Those of a point.
    ///
    /// # Errors
    /// Those of the library's products.
    pub fn new(workers: &Workers, bits: u32, problem: &Problem, place: (&[Cone], &Point)) -> Result<Residuals> {
        let (cones, point) = place;
        let tasks = (0..cones.len()).collect::<Vec<_>>();
        let primal = workers.map(
            &tasks,
            |&at| cones[at].shape.cost(),
            |ctx, &at| {
                let (k, cone) = (Arithmetic { ctx, bits }, cones[at]);
                let constraints = &problem.groups[cone.group].constraints;
                let sum = constraints.weighted_sum(k, cone.number, &point.x[cone.group])?;
                constraints.less_constant(cone.number, sum)?.plus(k, &Float::with_val(2, -1), &point.primal[at])
            },
        )?;
        let k = Arithmetic { ctx: workers.all(), bits };
        let mut free = problem.objective.clone();
        let minus = Float::with_val(2, -1);
        if free.rows() > 0 {
            for (group, x) in problem.groups.iter().zip(&point.x) {
                let options = GemvOptions::new().op(Op::Transpose).alpha(&minus).accumulate(free.view());
                let next = gemv_with(k.ctx, &group.free, x, bits, &options)?.result;
                free = next;
            }
        }
        let summands = point.dual.iter().map(|block| Summand { block, product: None }).collect::<Vec<_>>();
        let of_y = adjoint(workers, bits, problem, (cones, &summands))?;
        let dual = problem.groups.iter().zip(&of_y).map(|(group, of_y)| {
            let rest = k.difference(&group.costs, of_y)?;
            if point.y.rows() == 0 {
                return Ok(rest);
            }
            let options = GemvOptions::new().alpha(&minus).accumulate(rest.view());
            Ok(gemv_with(k.ctx, &group.free, &point.y, bits, &options)?.result)
        });
        Ok(Residuals { primal, free, dual: dual.collect::<Result<_>>()? })
    }

    /// The largest entry of `A(x) - C - X`.
    pub fn primal_matrix_error(&self) -> Float {
        self.primal.iter().map(Block::largest).fold(Float::new(64), |most, size| most.max(&size))
    }

    /// The largest entry of `b - B^T x`.
    pub fn primal_free_error(&self) -> Float {
        largest(&self.free)
    }

    /// The largest entry of `c - A*(Y) - B y`.
    pub fn dual_error(&self) -> Float {
        self.dual.iter().map(largest).fold(Float::new(64), |most, size| most.max(&size))
    }
}

/// The matrix with the other sign.
///
/// # Errors
/// Those of [`Matrix::from_fn`].
pub fn negated(matrix: &Matrix) -> Result<Matrix> {
    Matrix::from_fn(matrix.rows(), matrix.cols(), matrix.precision_bits(), |row, col| {
        let mut entry = matrix.float(row, col);
        entry.neg_assign();
        entry
    })
}
