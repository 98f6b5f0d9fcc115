//! The iterate: x, X, y, Y; also the direction in which it moves.

use crate::block::{Block, Shape};
use crate::iterate::side::Sides;
use crate::numbers::{Arithmetic, rounded};
use crate::options::SolverOptions;
use crate::problem::{Constraints, Problem};
use rug::Float;
use sunzi::{Matrix, Result};

/// The place of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cone {
    /// Its group.
    pub group: usize,
    /// Its number within the group.
    pub number: usize,
    /// Kind and order.
    pub shape: Shape,
}

/// All blocks of a program, group by group.
pub fn cones(problem: &Problem) -> Vec<Cone> {
    let of_group = |(group, shapes): (usize, Vec<Shape>)| {
        shapes.into_iter().enumerate().map(move |(number, shape)| Cone { group, number, shape })
    };
    let groups = problem.groups.iter().map(|group| group.constraints.shapes()).enumerate();
    groups.flat_map(of_group).collect()
}

/// The number of each block in the names of SDPB's text files, which count even and odd blocks of a group of samples;
/// of other groups all blocks.
pub fn block_numbers(problem: &Problem) -> Vec<usize> {
    let number = |(at, cone): (usize, Cone)| match &problem.groups[cone.group].constraints {
        Constraints::Sampled(sampled) => 2 * cone.group + sampled.parities()[cone.number],
        Constraints::Sparse(_) | Constraints::Scalars(_) => at,
    };
    cones(problem).into_iter().enumerate().map(number).collect()
}

/// x, X, y, Y, or a direction of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// x, a column for each group.
    pub x: Vec<Matrix>,
    /// X, block by block.
    pub primal: Vec<Block>,
    /// y, a column.
    pub y: Matrix,
    /// Y, block by block.
    pub dual: Vec<Block>,
}

impl Point {
    /// Multiples of the identity in the blocks of X and Y, and zeros in x and y.
    ///
    /// # Errors
    /// The errors of [`Matrix::zeros`].
    pub fn initial(problem: &Problem, cones: &[Cone], options: &SolverOptions, bits: u32) -> Result<Point> {
        let blocks = |scale: &Float| -> Result<Vec<Block>> {
            cones.iter().map(|cone| Block::scaled_identity(cone.shape, scale, bits)).collect()
        };
        let x = problem.groups.iter().map(|group| Matrix::zeros(group.constraints.variables(), 1, bits));
        Ok(Point {
            x: x.collect::<Result<_>>()?,
            primal: blocks(&options.initial_matrix_scale_primal)?,
            y: Matrix::zeros(problem.free_variables(), 1, bits)?,
            dual: blocks(&options.initial_matrix_scale_dual)?,
        })
    }

    /// The point rounded to `bits`.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn rounded(self, bits: u32) -> Result<Point> {
        Ok(Point {
            x: self.x.into_iter().map(|x| rounded(x, bits)).collect::<Result<_>>()?,
            primal: self.primal.into_iter().map(|block| block.rounded(bits)).collect::<Result<_>>()?,
            y: rounded(self.y, bits)?,
            dual: self.dual.into_iter().map(|block| block.rounded(bits)).collect::<Result<_>>()?,
        })
    }

    /// `self + primal (dx, dX) + dual (dy, dY)` for these steps.
    ///
    /// # Errors
    /// The errors of [`sunzi::blas::axpy`].
    pub fn moved(&self, k: Arithmetic<'_>, direction: &Point, steps: Sides<&Float>) -> Result<Point> {
        let blocks = |from: &[Block], by: &[Block], step: &Float| {
            from.iter().zip(by).map(|(block, by)| block.plus(k, step, by)).collect::<Result<Vec<_>>>()
        };
        let x = self.x.iter().zip(&direction.x).map(|(x, dx)| k.sum(steps.primal, dx, x));
        Ok(Point {
            x: x.collect::<Result<_>>()?,
            primal: blocks(&self.primal, &direction.primal, steps.primal)?,
            y: k.sum(steps.dual, &direction.y, &self.y)?,
            dual: blocks(&self.dual, &direction.dual, steps.dual)?,
        })
    }
}
