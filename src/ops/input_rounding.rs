//! Roundings of operands when they were read.
//!
//! Does not know: readers, uses of the operands.

use crate::options::setters;
use rug::Float;

/// Bits of the bounds.
const UNIT_BITS: u32 = 64;

/// How far operands may lie from the numbers that they stand for: `1/3` in a file is rounded when it is read.
///
/// An operand of `bits` bits has been rounded to nearest: each entry is off by at most `2^-bits` of its own magnitude.
/// `None` is for an operand that is exact. Digits, estimated and proven, are those of the answer to the problem before
/// the rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct InputRounding {
    /// Bits that the entries of the matrix were rounded to.
    pub matrix_bits: Option<u32>,
    /// Bits that the entries of the right sides were rounded to.
    pub right_bits: Option<u32>,
}

setters! { new InputRounding { matrix_bits: impl Into<Option<u32>>, right_bits: impl Into<Option<u32>> } }

impl InputRounding {
    /// Whether nothing was rounded.
    pub fn is_none(&self) -> bool {
        *self == InputRounding::default()
    }

    /// The relative bounds of entries of the matrix and of the right sides.
    pub(crate) fn units(&self) -> [Float; 2] {
        let unit = |bits: u32| Float::with_val(UNIT_BITS, 1) >> bits;
        [self.matrix_bits, self.right_bits].map(|bits| bits.map_or_else(|| Float::new(UNIT_BITS), unit))
    }
}
