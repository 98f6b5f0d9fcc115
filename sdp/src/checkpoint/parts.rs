//! The parts of the points of a program that a rank keeps: all of them in one process.
//!
//! Independent of: files.

use crate::block::Block;
use crate::iterate::{Cone, Point, Share, Solver, block_numbers, cones};
use crate::numbers::Dimensions;
use crate::problem::Problem;
use sunzi::{Matrix, Result};

/// The sizes of a program's points.
#[derive(Clone, PartialEq, Debug)]
pub struct PointSizes {
    /// The precision of the program.
    pub bits: u32,
    /// All of its blocks.
    pub cones: Vec<Cone>,
    /// The numbers of the blocks in the names of SDPB's text files.
    pub text_numbers: Vec<usize>,
    /// Variables of each group.
    variables: Vec<usize>,
    /// Free variables.
    free: usize,
}

impl PointSizes {
    /// The sizes of a program.
    pub fn of(problem: &Problem) -> PointSizes {
        PointSizes {
            bits: problem.precision_bits,
            text_numbers: block_numbers(problem),
            variables: problem.groups.iter().map(|group| group.constraints.variables()).collect(),
            free: problem.free_variables(),
            cones: cones(problem),
        }
    }
}

/// The parts of a program's points, of which some are kept.
pub struct PointParts<'a> {
    /// Sizes of the whole points.
    pub sizes: &'a PointSizes,
    /// The distribution of the parts over the ranks, if there are several.
    share: Option<&'a Share>,
}

/// A part of a point, by its number.
#[derive(Clone, Copy, Debug)]
pub enum PointPart {
    /// x of a group.
    Variables(usize),
    /// A block of X.
    Primal(usize),
    /// y.
    Free,
    /// A block of Y.
    Dual(usize),
}

impl<'a> PointParts<'a> {
    /// All of a program.
    pub fn whole(sizes: &'a PointSizes) -> PointParts<'a> {
        PointParts { sizes, share: None }
    }

    /// The parts of a rank.
    pub fn of_rank(sizes: &'a PointSizes, solver: &'a Solver<'_>) -> PointParts<'a> {
        PointParts { sizes, share: Some(solver.share()) }
    }

    /// Numbers of a whole point.
    pub fn length(&self) -> usize {
        self.all().map(|part| self.shape(part).count()).sum()
    }

    /// All parts in the order of the files.
    fn all(&self) -> impl Iterator<Item = PointPart> {
        let (groups, blocks) = (self.sizes.variables.len(), self.sizes.cones.len());
        let of_x = (0..groups).map(PointPart::Variables).chain((0..blocks).map(PointPart::Primal));
        of_x.chain([PointPart::Free]).chain((0..blocks).map(PointPart::Dual))
    }

    /// Rows and columns of a part.
    pub fn shape(&self, part: PointPart) -> Dimensions {
        match part {
            PointPart::Variables(group) => Dimensions::column(self.sizes.variables[group]),
            PointPart::Primal(at) | PointPart::Dual(at) => {
                let (rows, cols) = self.sizes.cones[at].shape.stored();
                Dimensions { rows, cols }
            }
            PointPart::Free => Dimensions::column(self.sizes.free),
        }
    }

    fn is_kept(&self, part: PointPart) -> bool {
        self.share.is_none_or(|share| match part {
            PointPart::Variables(group) => share.groups.contains(&group),
            PointPart::Primal(at) | PointPart::Dual(at) => share.own.contains(&at),
            PointPart::Free => true,
        })
    }

    /// The point, or the kept parts of it, from the parts in the order of the files: `take` makes a part that is kept,
    /// and skips any other.
    ///
    /// # Errors
    /// The errors of `take` and of [`Matrix::zeros`].
    pub fn point(&self, bits: u32, mut take: impl FnMut(PointPart, bool) -> Result<Option<Matrix>>) -> Result<Point> {
        let mut point = Point { x: Vec::new(), primal: Vec::new(), y: Matrix::zeros(0, 1, bits)?, dual: Vec::new() };
        for part in self.all() {
            let Some(numbers) = take(part, self.is_kept(part))? else { continue };
            match part {
                PointPart::Variables(_) => point.x.push(numbers),
                PointPart::Primal(at) => point.primal.push(Block::of_shape(self.sizes.cones[at].shape, numbers)),
                PointPart::Free => point.y = numbers,
                PointPart::Dual(at) => point.dual.push(Block::of_shape(self.sizes.cones[at].shape, numbers)),
            }
        }
        Ok(point)
    }
}
