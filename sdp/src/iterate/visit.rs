//! All numbers of a program in one order, for code that reduces them to one number: a hash, or a sum.
//!
//! Independent of: what is made of them.

use crate::problem::{Constraints, Problem, SparseCone};
use rug::Float;
use sunzi::Matrix;

/// A visitor of the numbers.
pub trait Visitor {
    /// Kinds and sizes of the data that follow.
    fn shape(&mut self, text: &str);
    /// Whether a part that may be missing comes next.
    fn presence(&mut self, is_there: bool);
    /// A single number.
    fn number(&mut self, value: &Float);
    /// A matrix.
    fn matrix(&mut self, matrix: &Matrix);
    /// A block of matrices of few entries.
    fn block(&mut self, cone: &SparseCone);
}

/// Shows a whole program.
pub fn visit(problem: &Problem, visitor: &mut impl Visitor) {
    visitor.shape(&format!("{:?} {} {}", problem.form, problem.precision_bits, problem.groups.len()));
    visitor.number(&problem.constant);
    visitor.matrix(&problem.objective);
    visitor.presence(problem.normalization.is_some());
    problem.normalization.iter().for_each(|normalization| visitor.matrix(normalization));
    for group in &problem.groups {
        visitor.matrix(&group.costs);
        visitor.matrix(&group.free);
        match &group.constraints {
            Constraints::Sparse(sparse) => {
                visitor.shape(&format!("sparse {} {}", sparse.variables, sparse.cones.len()));
                sparse.cones.iter().for_each(|cone| visitor.block(cone));
            }
            Constraints::Sampled(sampled) => {
                visitor.shape(&format!("sampled {} {} {:?}", sampled.dim(), sampled.points(), sampled.parities()));
                (0..sampled.parities().len()).for_each(|at| visitor.matrix(sampled.basis(at)));
            }
            Constraints::Scalars(scalars) => {
                visitor.shape("scalars");
                visitor.matrix(scalars.weights());
            }
        }
    }
}
