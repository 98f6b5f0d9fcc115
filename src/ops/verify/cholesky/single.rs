//! An entry of `A - L L^T` that is summed term by term, exactly, except for terms that are known to be small.

use crate::math::float::FloatRef;
use crate::matrix::{EntryIndex, Matrix};
use crate::ops::verify::exact::{Accumulator, Dyadic, KEEP_ALL, ProductSum, term};
use rug::Integer;
use rug::integer::Order;

/// Terms this many bits below the bound are left out at first; they are added where they could decide.
pub(super) const SPARE_BITS: i64 = 96;

/// `a_ij - (L L^T)_ij` but for terms below a floor.
pub(super) struct EntryDifference {
    /// The terms that are not left out.
    pub sum: Dyadic,
    /// The number of terms that are.
    pub left_out: usize,
}

/// An entry that is summed term by term.
pub(super) struct Single {
    /// Its row and column.
    pub place: EntryIndex,
    /// Terms below `2^floor` are left out.
    floor: i64,
    sum: Accumulator,
    left_out: usize,
}

impl Single {
    /// Bytes of one, its sum included: from the floor up, and down to the lowest bit of a product above it.
    pub fn bytes(precision_bits: u32, factor_bits: u32) -> u64 {
        let span = u64::from(precision_bits) + 2 * u64::from(factor_bits) + SPARE_BITS as u64 + 128;
        size_of::<Single>() as u64 + 2 * 8 * (span / 64 * 5 / 4 + 4)
    }

    /// An entry with its own term, where that is not below the floor.
    pub fn new(place: EntryIndex, floor: i64, own: FloatRef<'_>) -> Single {
        let (mut sum, mut left_out) = (Accumulator::default(), 0);
        add_own(&mut sum, &mut left_out, own, floor);
        Single { place, floor, sum, left_out }
    }

    /// Subtracts the terms of some columns: the products of row `i` of `left` and row `j` of `right`, which are blocks
    /// of the factor.
    pub fn subtract(&mut self, left: &Matrix, i: usize, right: &Matrix, j: usize) {
        let (mut products, mut factor) = (ProductSum::default(), Integer::new());
        for k in 0..left.cols() {
            let (x, y) = (left.get(i, k), right.get(j, k));
            let (Some(one), Some(other)) = (term(x, KEEP_ALL), term(y, KEEP_ALL)) else { continue };
            if x.head.exponent() + y.head.exponent() <= self.floor {
                self.left_out += 1;
                continue;
            }
            products.set_left(one);
            factor.assign_digits(other.limbs, Order::Lsf);
            if !other.negative {
                factor = -factor;
            }
            products.add_to(&mut self.sum, &factor, one.low + other.low);
        }
    }

    /// The difference so far; the sum is 0 afterwards.
    pub fn take(&mut self) -> EntryDifference {
        EntryDifference { sum: self.sum.take(), left_out: self.left_out }
    }
}

/// Adds an entry of the matrix, or leaves it out.
pub(super) fn add_own(sum: &mut Accumulator, left_out: &mut usize, own: FloatRef<'_>, floor: i64) {
    let Some(term) = term(own, KEEP_ALL) else { return };
    if own.head.exponent() > floor {
        sum.add(term.negative, term.limbs, term.low);
    } else {
        *left_out += 1;
    }
}
