//! The integers of a factorisation or a triangular solve on limbs: how wide they are, and their roots and quotients,
//! each rounded once.
//!
//! Knows: slices of limbs. Does not know: matrices, tiles, which rows are rejected.

use crate::kernels::limbs;
use crate::math::bound::TILE_SPARE_BITS;
use crate::math::float::limbs_for;
use std::cmp::Ordering;

/// Limbs of the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Of an entry of the factor, below `2^(working_bits + 1)`.
    pub entry: usize,
    /// Of what is left of an entry, below `2.01 * 2^(2 working_bits)`, with its sign.
    pub rest: usize,
}

impl Widths {
    /// For so many working bits.
    pub fn new(working_bits: u32) -> Widths {
        let entry = limbs_for(working_bits + 1);
        // One limb more than a product, which is added to it.
        Widths { entry, rest: limbs_for(2 * working_bits + TILE_SPARE_BITS + 1).max(2 * entry + 1) }
    }

    /// Limbs of scratch for [`root`] and [`quotient`].
    pub fn quotient(self) -> usize {
        2 * (self.rest + 1)
    }
}

/// The square root of a magnitude of so many limbs as a rest has, to nearest, in `space`; `None` for 0.
pub fn root<'s>(rest: &[u64], space: &'s mut [u64]) -> Option<&'s [u64]> {
    let count = significant(rest)?;
    // Room for a carry of rounding.
    let (root, remainder) = space.split_at_mut(count.div_ceil(2) + 1);
    root.fill(0);
    let left = limbs::square_root(&mut root[..count.div_ceil(2)], &mut remainder[..count], &rest[..count]);
    if compare(&remainder[..left], root) == Ordering::Greater {
        limbs::increment(root);
    }
    Some(root)
}

/// A magnitude over a pivot other than 0, to nearest, ties to even, in `space`.
pub fn quotient<'s>(rest: &[u64], pivot: &[u64], space: &'s mut [u64]) -> &'s [u64] {
    let Some(count) = significant(rest) else { return &[] };
    let pivot = &pivot[..significant(pivot).expect("a pivot is not 0")];
    let (quotient, remainder) = space.split_at_mut(count.max(pivot.len()) + 2 - pivot.len());
    let remainder = &mut remainder[..pivot.len()];
    // Room for a carry of rounding.
    quotient.fill(0);
    if count < pivot.len() {
        remainder.fill(0);
        remainder[..count].copy_from_slice(&rest[..count]);
    } else {
        limbs::divide(&mut quotient[..=count - pivot.len()], remainder, &rest[..count], pivot);
    }
    match compare_twice(remainder, pivot) {
        Ordering::Greater => limbs::increment(quotient),
        Ordering::Equal if quotient[0] & 1 == 1 => limbs::increment(quotient),
        _ => {}
    }
    quotient
}

/// Limbs up to the highest that is not 0; `None` for 0.
fn significant(magnitude: &[u64]) -> Option<usize> {
    magnitude.iter().rposition(|&limb| limb != 0).map(|top| top + 1)
}

/// Compares two magnitudes.
fn compare(x: &[u64], y: &[u64]) -> Ordering {
    let limb = |number: &[u64], at: usize| number.get(at).copied().unwrap_or(0);
    let differ = (0..x.len().max(y.len())).rev().find(|&at| limb(x, at) != limb(y, at));
    differ.map_or(Ordering::Equal, |at| limb(x, at).cmp(&limb(y, at)))
}

/// Compares `2 x` with `y`, of as many limbs.
fn compare_twice(x: &[u64], y: &[u64]) -> Ordering {
    if x.last().is_some_and(|top| top >> 63 == 1) {
        return Ordering::Greater;
    }
    let doubled = |at: usize| x[at] << 1 | at.checked_sub(1).map_or(0, |below| x[below] >> 63);
    let differ = (0..y.len()).rev().find(|&at| doubled(at) != y[at]);
    differ.map_or(Ordering::Equal, |at| doubled(at).cmp(&y[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_to_nearest_and_ties_to_even() {
        let max = u64::MAX;
        for (x, y, want) in [([5, 0], [10, 0], Ordering::Equal), ([0, 1 << 63], [0, max], Ordering::Greater)] {
            assert_eq!(compare_twice(&x, &y), want);
        }
        assert_eq!(compare_twice(&[1 << 63, 4], &[0, 9]), Ordering::Equal);
        assert_eq!(compare_twice(&[(1 << 63) - 1, 4], &[0, 9]), Ordering::Less);
        assert_eq!(compare(&[0, 0, 1], &[max, max]), Ordering::Greater);
        assert_eq!(compare(&[7, 0], &[7]), Ordering::Equal);
    }
}
