//! What a rank keeps of the points of a program: all of them in one process.
//!
//! Does not know: files.

use crate::block::Block;
use crate::iterate::{Cone, Point, Share, Solver, cones};
use crate::problem::Problem;
use sunzi::{Matrix, Result};

/// The parts of a program's points, of which some are kept.
pub struct Parts<'a> {
    /// The whole program.
    pub problem: &'a Problem,
    /// All of its blocks.
    pub cones: Vec<Cone>,
    /// Who has what, where there are several ranks.
    share: Option<&'a Share>,
}

/// A part of a point, by its number.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// x of a group.
    Variables(usize),
    /// A block of X.
    Primal(usize),
    /// y.
    Free,
    /// A block of Y.
    Dual(usize),
}

impl<'a> Parts<'a> {
    /// All of a program.
    pub fn whole(problem: &'a Problem) -> Parts<'a> {
        Parts { problem, cones: cones(problem), share: None }
    }

    /// Those of a rank.
    pub fn of_rank(problem: &'a Problem, solver: &'a Solver<'_>) -> Parts<'a> {
        Parts { share: Some(solver.share()), ..Parts::whole(problem) }
    }

    /// Numbers of a whole point.
    pub fn length(&self) -> usize {
        self.all().map(|part| self.shape(part)).map(|(rows, cols)| rows * cols).sum()
    }

    /// All parts in the order of the files.
    fn all(&self) -> impl Iterator<Item = Part> {
        let (groups, blocks) = (self.problem.groups.len(), self.cones.len());
        let of_x = (0..groups).map(Part::Variables).chain((0..blocks).map(Part::Primal));
        of_x.chain([Part::Free]).chain((0..blocks).map(Part::Dual))
    }

    /// Rows and columns of a part.
    pub fn shape(&self, part: Part) -> (usize, usize) {
        match part {
            Part::Variables(group) => (self.problem.groups[group].constraints.variables(), 1),
            Part::Primal(at) | Part::Dual(at) => self.cones[at].shape.stored(),
            Part::Free => (self.problem.free_variables(), 1),
        }
    }

    fn is_kept(&self, part: Part) -> bool {
        self.share.is_none_or(|share| match part {
            Part::Variables(group) => share.groups.contains(&group),
            Part::Primal(at) | Part::Dual(at) => share.own.contains(&at),
            Part::Free => true,
        })
    }

    /// The point, or what is kept of it, of the parts in the order of the files: `take` makes one that is kept, and
    /// passes any other.
    ///
    /// # Errors
    /// Those of `take` and of [`Matrix::zeros`].
    pub fn point(&self, bits: u32, mut take: impl FnMut(Part, bool) -> Result<Option<Matrix>>) -> Result<Point> {
        let mut point = Point { x: Vec::new(), primal: Vec::new(), y: Matrix::zeros(0, 1, bits)?, dual: Vec::new() };
        for part in self.all() {
            let Some(numbers) = take(part, self.is_kept(part))? else { continue };
            match part {
                Part::Variables(_) => point.x.push(numbers),
                Part::Primal(at) => point.primal.push(Block::of_shape(self.cones[at].shape, numbers)),
                Part::Free => point.y = numbers,
                Part::Dual(at) => point.dual.push(Block::of_shape(self.cones[at].shape, numbers)),
            }
        }
        Ok(point)
    }
}
