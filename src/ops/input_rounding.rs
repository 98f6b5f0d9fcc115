//! Roundings of operands when they were read.
//!
//! Independent of: readers, uses of the operands.

use crate::options::setters;
use rug::Float;

/// Bits of the bounds.
const UNIT_BITS: u32 = 64;

/// A bound of the difference between operands and the numbers that they represent: `1/3` in a file is rounded when it
/// is read.
///
/// An operand of `bits` bits has been rounded to nearest: the error of each entry is at most `2^-bits` of its
/// magnitude. `None` means that an operand is exact. Estimated and proven digits refer to the solution of the problem
/// before this rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct InputRounding {
    /// Bits to which the entries of the matrix were rounded.
    pub matrix_bits: Option<u32>,
    /// Bits to which the entries of the right-hand sides were rounded.
    pub right_bits: Option<u32>,
}

setters! { new InputRounding { matrix_bits: impl Into<Option<u32>>, right_bits: impl Into<Option<u32>> } }

impl InputRounding {
    /// Whether no operand was rounded.
    pub fn is_none(&self) -> bool {
        *self == InputRounding::default()
    }

    /// The relative bounds of entries of the matrix and of the right-hand sides.
    pub(crate) fn units(&self) -> [Float; 2] {
        let unit = |bits: u32| Float::with_val(UNIT_BITS, 1) >> bits;
        [self.matrix_bits, self.right_bits].map(|bits| bits.map_or_else(|| Float::new(UNIT_BITS), unit))
    }
}
