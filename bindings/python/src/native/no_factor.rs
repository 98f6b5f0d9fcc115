//! The replacement of a factor over ranks where the package is built without MPI.

/// No factor.
pub enum Factor {}

impl Factor {
    /// Never called.
    pub fn order(&self) -> i64 {
        match *self {}
    }

    /// Never called.
    pub fn precision_bits(&self) -> i64 {
        match *self {}
    }
}
