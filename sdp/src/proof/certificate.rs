//! Certificates: proofs that a bound of a program's optimal value holds. Independent of: how it is checked.

use super::definite::Witness;
use super::polynomial::ProofSampling;
use super::scaled::Fixed;
use rug::Rational;

/// A proof that a small correction makes a point satisfy equations exactly.
#[derive(Clone, PartialEq, Debug)]
pub struct GramProof {
    /// Each equation is multiplied by 2 to this power.
    pub scales: Vec<i64>,
    /// A proof that the Gram matrix of the equations is positive definite.
    pub witness: Witness,
}

/// A dual point, and a proof that a feasible point is near it.
#[derive(Clone, PartialEq, Debug)]
pub struct LowerProof {
    /// The bound.
    pub claim: Rational,
    /// `y`.
    pub y: Fixed,
    /// Group by group.
    pub groups: Vec<LowerGroup>,
}

/// The blocks of Y in a group.
#[derive(Clone, PartialEq, Debug)]
pub struct LowerGroup {
    /// Proof for the equations of the group.
    pub gram: GramProof,
    /// `Y = L L^T + tau I`, block by block; for a diagonal block the numbers of Y themselves, none below `tau`.
    pub blocks: Vec<Witness>,
}

/// A primal point, and a proof that a feasible point is near it.
#[derive(Clone, PartialEq, Debug)]
pub struct UpperProof {
    /// The bound.
    pub claim: Rational,
    /// `x`, group by group.
    pub x: Vec<Fixed>,
    /// The proof for `B^T x = b`, if there are free variables.
    pub gram: Option<GramProof>,
    /// Proofs for the blocks of `X`, group by group.
    pub blocks: Vec<Vec<Witness>>,
}

/// Bounds of the optimal value of a program, with their proofs.
#[derive(Clone, PartialEq, Debug)]
pub struct Proof {
    /// [`super::Program::digest`] of the program.
    pub digest: String,
    /// The sample points for the polynomial matrices of a polynomial program; empty for other programs.
    pub samplings: Vec<ProofSampling>,
    /// The lower bound: no primal point has a smaller objective.
    pub lower: Option<LowerProof>,
    /// The upper bound: no dual point has a larger objective.
    pub upper: Option<UpperProof>,
    /// A dual ray that proves primal infeasibility: a lower bound above 0 of the program with `c = 0` and `f = 0`.
    pub no_primal: Option<LowerProof>,
    /// A primal ray that proves dual infeasibility: an upper bound below 0 of the program with `b = 0`, `C = 0`, `f =
    /// 0`.
    pub no_dual: Option<UpperProof>,
}

/// Bits behind the point of `B D` of which the Gram matrix is formed, for N numbers and this tau: the fewest for which
/// the parts cut off, less than `2^-bits` each, are at most `2^-24 min(tau, 1)` of all together.
pub fn free_bits(numbers: usize, exponent: i64) -> i64 {
    24 + i64::from(numbers.next_power_of_two().trailing_zeros()) + (-exponent).max(0)
}
