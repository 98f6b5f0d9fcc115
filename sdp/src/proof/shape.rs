//! Kinds and orders of blocks, and the Gram matrix of constraints.

use super::scaled::{Scaled, triangle};

/// Kind and order of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProofShape {
    /// Rows.
    pub order: usize,
    /// Whether all entries outside the diagonal are 0; of such a block only the diagonal is stored.
    pub diagonal: bool,
}

impl ProofShape {
    /// Number of stored numbers of a block.
    pub fn stored(self) -> usize {
        if self.diagonal { self.order } else { triangle(self.order) }
    }
}

/// The Gram matrix `A_p . A_q`: a block for each copy, `matrix / repeat`, and zeros elsewhere. Variable `k` of copy `i`
/// has the number `i order + k`.
pub struct Gram {
    /// Rows of a block.
    pub order: usize,
    /// The lower triangle.
    pub matrix: Scaled,
    /// The divisor of the matrix in each copy.
    pub repeats: Vec<u32>,
}
