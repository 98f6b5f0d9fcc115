//! The two sides of a semidefinite program.

/// One side of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// X.
    Primal,
    /// Y.
    Dual,
}
