//! Where there are no vectors of 64-bit products all sums `alpha x + y` are left to the caller.

use super::ScaledPair;
use crate::math::float::{FloatRef, Head};

/// Memory for no sums.
pub enum ScaledSums {}

impl ScaledSums {
    /// No sums are possible here.
    pub fn new(_: FloatRef<'_>, _: usize, _: usize, _: u32) -> Option<ScaledSums> {
        None
    }

    /// No bytes.
    pub fn bytes(_: [usize; 3], _: u32) -> u64 {
        0
    }

    /// This type has no values, so it is never called.
    pub fn form(&mut self, _: &[ScaledPair<'_>]) -> u8 {
        match *self {}
    }

    /// There is no room to call this with.
    pub fn get(&self, _: usize, _: &mut [u64]) -> Head {
        match *self {}
    }
}
