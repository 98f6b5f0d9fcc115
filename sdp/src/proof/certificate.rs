//! Certificates: proofs that a bound of a program's optimal value holds. Does not know: how it is checked.

use super::definite::Witness;
use super::polynomial::ProofSampling;
use super::scaled::Fixed;
use rug::Rational;

/// A proof that equations can be met exactly by a small correction.
#[derive(Clone, PartialEq, Debug)]
pub struct GramProof {
    /// Each equation is multiplied by 2 to this power.
    pub scales: Vec<i64>,
    /// Shows that their Gram matrix is positive definite.
    pub witness: Witness,
}

/// A dual point, near which there is a feasible one.
#[derive(Clone, PartialEq, Debug)]
pub struct LowerProof {
    /// The bound.
    pub claim: Rational,
    /// `y`.
    pub y: Fixed,
    /// Group by group.
    pub groups: Vec<LowerGroup>,
}

/// The blocks of Y that belong to a group.
#[derive(Clone, PartialEq, Debug)]
pub struct LowerGroup {
    /// Proof for the equations of the group.
    pub gram: GramProof,
    /// `Y = L L^T + tau I`, block by block; of a diagonal block the numbers of Y themselves, none below `tau`.
    pub blocks: Vec<Witness>,
}

/// A primal point, near which there is a feasible one.
#[derive(Clone, PartialEq, Debug)]
pub struct UpperProof {
    /// The bound.
    pub claim: Rational,
    /// `x`, group by group.
    pub x: Vec<Fixed>,
    /// For `B^T x = b`, where there are free variables.
    pub gram: Option<GramProof>,
    /// Proofs for the blocks of `X`, group by group.
    pub blocks: Vec<Vec<Witness>>,
}

/// Bounds of the optimal value of a program, proven or to be proven.
#[derive(Clone, PartialEq, Debug)]
pub struct Proof {
    /// [`super::Program::digest`] of the program that it is about.
    pub digest: String,
    /// Where the matrices of a polynomial program are compared; none for other programs.
    pub samplings: Vec<ProofSampling>,
    /// No primal point has a smaller objective.
    pub lower: Option<LowerProof>,
    /// No dual point has a larger one.
    pub upper: Option<UpperProof>,
    /// A ray that no feasible primal point allows: a lower bound above 0 of the program with `c = 0` and `f = 0`.
    pub no_primal: Option<LowerProof>,
    /// A ray that no feasible dual point allows: an upper bound below 0 of the program with `b = 0`, `C = 0`, `f = 0`.
    pub no_dual: Option<UpperProof>,
}

/// Bits behind the point of `B D` of which the Gram matrix is formed, for N numbers and this tau: the fewest for which
/// the parts cut off, less than `2^-bits` each, are at most `2^-24 min(tau, 1)` of all together.
pub fn free_bits(numbers: usize, exponent: i64) -> i64 {
    24 + i64::from(numbers.next_power_of_two().trailing_zeros()) + (-exponent).max(0)
}
