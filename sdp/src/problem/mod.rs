//! A semidefinite program, the same type for all forms of input.
//!
//! `min f + c^T x` subject to `X = sum_p x_p A_p - C >= 0`, `B^T x = b`, and its dual
//! `max f + C . Y + b^T y` subject to `A_p . Y + (B y)_p = c_p`, `Y >= 0`. Variables x come in groups: matrices of
//! two groups share no block, so the Schur complement is one matrix for each group, and only y joins them.
//! SDPB's programs have `C = 0` and a group for each block of theirs; SDPA's have no y and one group.
//! Independent of: files, iterations.

mod dependent;
mod merged;
mod sampled;
mod scalars;
mod sparse;
mod sparse_cone;
mod sparse_schur;
mod sparse_tables;
mod standard;
mod units;

pub(crate) use dependent::Dependent;
pub(crate) use merged::{Merged, Owned, Owners};
pub(crate) use sampled::Origin;
pub use sampled::Sampled;
pub use scalars::Scalars;
pub use sparse::Sparse;
pub(crate) use sparse_cone::entry_bytes;
pub use sparse_cone::{Entry, SparseCone};
pub(crate) use units::Units;

use crate::block::{Block, Shape};
use crate::numbers::{Arithmetic, rounded};
use rug::Float;
use sunzi::sparse::SparseMatrix;
use sunzi::{Error, Matrix, Result};

/// The form of a problem's files, which decides its default options and output files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A polynomial matrix program in SDPB's form.
    Sdpb,
    /// SDPA's standard form.
    Sdpa,
}

/// A program; see the module.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The form of the files from which it was read.
    pub form: Form,
    /// Precision of all numbers.
    pub precision_bits: u32,
    /// `f`.
    pub constant: Float,
    /// `b`, a column.
    pub objective: Matrix,
    /// The variables x and their matrices.
    pub groups: Vec<Group>,
    /// SDPB's normalization, by which z follows from y.
    pub normalization: Option<Matrix>,
}

/// A group of variables that share blocks.
#[derive(Clone, Debug)]
pub struct Group {
    /// `c`, a column.
    pub costs: Matrix,
    /// `B`: one row for each variable.
    pub free: Matrix,
    /// The matrices `A_p`, and `C`.
    pub constraints: Constraints,
}

/// The matrices of a group.
#[derive(Clone, Debug)]
pub enum Constraints {
    /// Polynomial matrices at sample points.
    Sampled(Sampled),
    /// Few entries each.
    Sparse(Sparse),
    /// One entry for each variable, each at its own place: used by the solver for polynomial matrices of one point.
    Scalars(Scalars),
}

/// The operands of the Schur complement in one block.
pub struct SchurOperand<'a> {
    /// `X^-1`.
    pub x_inverse: &'a Block,
    /// `L_X^-1`, of a dense block.
    pub x_lower_inverse: Option<&'a Matrix>,
    /// `Y`.
    pub y: &'a Block,
    /// `L_Y`, of a dense block.
    pub y_lower: Option<&'a Matrix>,
}

impl Constraints {
    /// Number of variables of the group.
    pub fn variables(&self) -> usize {
        match self {
            Constraints::Sampled(sampled) => sampled.variables(),
            Constraints::Sparse(sparse) => sparse.variables,
            Constraints::Scalars(scalars) => scalars.variables(),
        }
    }

    /// Kinds and orders of the blocks.
    pub fn shapes(&self) -> Vec<Shape> {
        match self {
            Constraints::Sampled(sampled) => sampled.shapes(),
            Constraints::Sparse(sparse) => sparse.cones.iter().map(|cone| cone.shape).collect(),
            Constraints::Scalars(scalars) => vec![scalars.shape()],
        }
    }

    /// Block `cone` of `sum_p x_p A_p`.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn weighted_sum(&self, k: Arithmetic<'_>, cone: usize, x: &Matrix) -> Result<Block> {
        match self {
            Constraints::Sampled(sampled) => sampled.weighted_sum(k, cone, x),
            Constraints::Sparse(sparse) => sparse.weighted_sum(k, cone, x),
            Constraints::Scalars(scalars) => scalars.weighted_sum(k, x),
        }
    }

    /// Block `cone` of `M - C`.
    ///
    /// # Errors
    /// The errors of [`Matrix::set_float`].
    pub fn less_constant(&self, cone: usize, block: Block) -> Result<Block> {
        match self {
            Constraints::Sampled(_) | Constraints::Scalars(_) => Ok(block),
            Constraints::Sparse(sparse) => sparse.cones[cone].less_constant(block),
        }
    }

    /// `C . M` for one block.
    pub fn constant_pairing(&self, k: Arithmetic<'_>, cone: usize, block: &Block) -> Float {
        match self {
            Constraints::Sampled(_) | Constraints::Scalars(_) => Float::new(k.bits),
            Constraints::Sparse(sparse) => sparse.cones[cone].constant_pairing(k, block),
        }
    }

    /// The entries of a dense block of a sum of the matrices, rounded to `bits`, if they are few.
    ///
    /// # Errors
    /// The errors of the library's sparse matrices.
    pub fn sparse_image(&self, cone: usize, matrix: &Matrix, bits: u32) -> Result<Option<SparseMatrix>> {
        match self {
            Constraints::Sparse(sparse) if sparse.is_sparse(cone, bits)? => {
                Ok(Some(sparse.entries_of(cone, matrix, bits)?))
            }
            _ => Ok(None),
        }
    }

    /// Whether the matrices have entries at so few positions of a dense block that these are computed one by one.
    ///
    /// # Errors
    /// The errors of sparse matrices of the library.
    pub fn meets_few(&self, cone: usize, bits: u32) -> Result<bool> {
        match self {
            Constraints::Sampled(_) | Constraints::Scalars(_) => Ok(false),
            Constraints::Sparse(sparse) => Ok(sparse.tables()?.cones[cone].meets_few(bits)),
        }
    }
}

impl Problem {
    /// Number of free variables y.
    pub fn free_variables(&self) -> usize {
        self.objective.rows()
    }

    /// Number of variables x.
    pub fn variables(&self) -> usize {
        self.groups.iter().map(|group| group.constraints.variables()).sum()
    }

    /// Total number of rows of all blocks.
    pub fn total_rows(&self) -> usize {
        let shapes = self.groups.iter().flat_map(|group| group.constraints.shapes());
        shapes.map(Shape::order).sum()
    }

    /// Approximate bytes of its numbers.
    pub fn bytes(&self) -> u64 {
        let matrix = |matrix: &Matrix| Matrix::bytes_for(matrix.rows(), matrix.cols(), matrix.precision_bits());
        let of_group = |group: &Group| {
            let constraints = match &group.constraints {
                Constraints::Sampled(sampled) => {
                    (0..sampled.parities().len()).map(|at| matrix(sampled.basis(at))).sum()
                }
                Constraints::Sparse(sparse) => sparse.bytes(),
                Constraints::Scalars(scalars) => matrix(scalars.weights()),
            };
            matrix(&group.costs) + matrix(&group.free) + constraints
        };
        matrix(&self.objective) + self.groups.iter().map(of_group).sum::<u64>()
    }

    /// Bytes of x, X, y and Y at the precision of the program.
    pub fn point_bytes(&self) -> u64 {
        let matrix = |(rows, cols)| Matrix::bytes_for(rows, cols, self.precision_bits);
        let of_group = |group: &Group| {
            let blocks = group.constraints.shapes().into_iter().map(|shape| matrix(shape.stored())).sum::<u64>();
            matrix((group.costs.rows(), 1)) + 2 * blocks
        };
        matrix((self.objective.rows(), 1)) + self.groups.iter().map(of_group).sum::<u64>()
    }

    /// The program with all numbers rounded to at most `bits` bits.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn rounded(&self, bits: u32) -> Result<Problem> {
        let group = |group: &Group| {
            let constraints = match &group.constraints {
                Constraints::Sampled(sampled) => Constraints::Sampled(sampled.rounded(bits)?),
                Constraints::Sparse(sparse) => Constraints::Sparse(sparse.rounded(bits)),
                Constraints::Scalars(scalars) => Constraints::Scalars(scalars.rounded(bits)?),
            };
            let (costs, free) = (rounded(group.costs.clone(), bits)?, rounded(group.free.clone(), bits)?);
            Ok(Group { costs, free, constraints })
        };
        Ok(Problem {
            form: self.form,
            precision_bits: bits,
            constant: Float::with_val(bits, &self.constant),
            objective: rounded(self.objective.clone(), bits)?,
            groups: self.groups.iter().map(group).collect::<Result<_>>()?,
            normalization: self.normalization.clone(),
        })
    }

    /// Checks that all shapes fit.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the group, counted from 0, and the numbers.
    pub fn check(&self) -> Result<()> {
        let free = self.free_variables();
        if self.total_rows() == 0 {
            return Err(Error::InvalidArgument("the program has no rows: there is nothing to solve".into()));
        }
        for (number, Group { costs, free: b, constraints }) in self.groups.iter().enumerate() {
            let variables = constraints.variables();
            if (costs.rows(), costs.cols()) != (variables, 1) {
                let (rows, cols) = (costs.rows(), costs.cols());
                return Err(Error::InvalidArgument(format!(
                    "block {number}: c is {rows} x {cols}, but there are {variables} variables"
                )));
            }
            if (b.rows(), b.cols()) != (variables, free) {
                let (rows, cols) = (b.rows(), b.cols());
                return Err(Error::InvalidArgument(format!(
                    "block {number}: B is {rows} x {cols} instead of {variables} x {free}"
                )));
            }
        }
        Ok(())
    }
}
