//! Eight small problems of one shape, in the form of [`crate::kernels::problem_lanes`].

use crate::math::float::{FloatRef, Head};
use crate::matrix::MatrixView;
use crate::plan::BLOCK;

/// Problems computed together.
pub const PROBLEMS: usize = BLOCK;

/// Number of problems from which it is faster to compute them together than one after the other: lanes without a
/// problem take the same time as the others.
pub const LEAST_TOGETHER: usize = 4;

/// Receives an entry of all results: row and column, the heads, and the significands one after the other.
pub type Rounded<'o> = dyn FnMut((usize, usize), &[u64; PROBLEMS], &[u64]) + 'o;

/// Eight matrices to factor, given by their lower triangles.
pub struct Matrices<'a> {
    /// One matrix for each lane.
    pub views: [MatrixView<'a>; PROBLEMS],
    /// Rows to factor.
    pub order: usize,
    /// For each row the exponents of all eight problems, as in `math::pivot`.
    pub exponents: &'a [i64],
    /// For each row the sums of weights beyond which the row is rejected.
    pub limits: &'a [u64],
    /// Bits of the factors.
    pub precision_bits: u32,
}

/// Eight lower triangles and their right-hand sides, in fixed point with the number of fractional bits that the lanes
/// have.
pub struct Systems<'a> {
    /// One triangle for each lane; nothing above the diagonal is read.
    pub triangles: [MatrixView<'a>; PROBLEMS],
    /// Whether diagonals are ones, which are not read.
    pub unit: bool,
    /// The right-hand sides, as columns.
    pub rights: [MatrixView<'a>; PROBLEMS],
    /// Rows of a triangle.
    pub order: usize,
    /// Right-hand sides of a problem.
    pub columns: usize,
    /// For each row the exponents of all eight problems: row `i` is scaled by `2^-exponents[i]`.
    pub exponents: &'a [i64],
    /// For each right-hand side the exponents of all eight problems: its unknowns are below 2 to that power.
    pub scales: &'a [i64],
    /// Bits of the unknowns.
    pub precision_bits: u32,
}

impl<'a> Systems<'a> {
    /// A pivot of one lane.
    pub fn pivot(&self, lane: usize, row: usize) -> FloatRef<'a> {
        match self.unit {
            true => FloatRef { head: Head::new(false, 1), limbs: &[1 << 63] },
            false => self.triangles[lane].get(row, row),
        }
    }
}

/// Eight operands, whose columns are contracted with those of the other operands.
#[derive(Clone, Copy)]
pub struct ProblemColumns<'a> {
    /// The common shape.
    pub views: [MatrixView<'a>; PROBLEMS],
    /// For each column the shifts of all eight operands: entries are `round(x 2^shift)`.
    pub shifts: &'a [i64],
}

/// Eight products `X^T Y`.
pub struct ProblemProducts<'a> {
    /// The operands for the rows of the results.
    pub left: ProblemColumns<'a>,
    /// The operands for the columns of the results; `None` for the left operands.
    pub right: Option<ProblemColumns<'a>>,
    /// Bits of the results.
    pub precision_bits: u32,
    /// Selects the entries, by row and column.
    pub wanted: &'a dyn Fn(usize, usize) -> bool,
}
