//! The two sides of a semidefinite program.

/// One side of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// X.
    Primal,
    /// Y.
    Dual,
}

/// A value for each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides<T> {
    /// The value for x and X.
    pub primal: T,
    /// The value for y and Y.
    pub dual: T,
}

impl<T> Sides<T> {
    /// The primal and the dual value, as public fields have them.
    pub fn into_pair(self) -> (T, T) {
        (self.primal, self.dual)
    }
}

impl Sides<bool> {
    /// Whether it holds on both sides.
    pub fn both(self) -> bool {
        self.primal && self.dual
    }

    /// Whether it holds on a side.
    pub fn any(self) -> bool {
        self.primal || self.dual
    }
}
