//! The scalar rules of a fixed-point Cholesky factorisation: scaling, rounding, and when a row is rejected.
//!
//! Depends on: integers. Independent of: tiles, residues, matrices. Every implementation of the factorisation follows
//! these rules, so that all give the same bits and fail at the same index. Proofs: docs/ALGORITHM.md, "Cholesky in
//! residues".

use crate::math::float::{bit_length, shift_down};
use rug::Integer;

/// Exponent `s` with `a * 2^(-2 s)` in `[1/4, 1)` for a positive diagonal entry `0.f * 2^exponent`.
pub fn diagonal_exponent(exponent: i64) -> i64 {
    exponent.div_euclid(2) + exponent.rem_euclid(2)
}

/// `value / divisor`, to the nearest integer, ties to even; `divisor > 0`.
pub fn round_quotient(value: &Integer, divisor: &Integer) -> Integer {
    let (mut quotient, remainder) = value.clone().div_rem_floor(divisor.clone());
    let twice = Integer::from(&remainder << 1);
    if twice > *divisor || (twice == *divisor && quotient.is_odd()) {
        quotient += 1u32;
    }
    quotient
}

/// The integer nearest to the square root of `value >= 0`; there are no ties.
pub fn round_root(value: &Integer) -> Integer {
    let (root, remainder) = value.clone().sqrt_rem(Integer::new());
    if remainder > root { root + 1u32 } else { root }
}

/// `round(value * 2^shift)`, to nearest, ties to even.
pub fn round_shift(value: &Integer, shift: i64) -> Integer {
    if shift >= 0 {
        return Integer::from(value << u32::try_from(shift).expect("scaled entries fit the working precision"));
    }
    let drop = u32::try_from(-shift).unwrap_or(u32::MAX);
    if drop > value.significant_bits() + 1 {
        return Integer::new();
    }
    round_quotient(value, &(Integer::from(1) << drop))
}

/// Bits after the point of the weights that [`RowWeight`] adds up.
pub const WEIGHT_BITS: u32 = 30;

/// The running sum of squares of a row, cut to 30 bits, against the row's diagonal entry.
///
/// With entries `l = |L| 2^-B` and `h = floor(l 2^30)` a row is rejected once `sum h^2 > floor(a 2^60) + 1`, `a` its
/// scaled diagonal entry: then the exact sum of squares exceeds `a`, and the row's pivot would be negative. A row that
/// is not rejected has a sum of squares of at most `a + 2^-28 sqrt(n)`, so that nothing computed from it can wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowWeight {
    /// `sum h^2`.
    pub sum: u64,
    /// `floor(a 2^60) + 1`; 0 for a row that is rejected from the beginning.
    pub limit: u64,
}

impl RowWeight {
    /// A row that is rejected.
    pub const REJECTED: RowWeight = RowWeight { sum: 1, limit: 0 };

    /// A new weight without entries; `diagonal` is the scaled diagonal entry times `2^(2 working_bits)`.
    pub fn new(diagonal: &Integer, working_bits: u32) -> RowWeight {
        if *diagonal < 0 { RowWeight::REJECTED } else { RowWeight::of_limbs(diagonal.as_limbs(), working_bits) }
    }

    /// [`RowWeight::new`] for a nonnegative diagonal entry, given by its limbs.
    pub fn of_limbs(diagonal: &[u64], working_bits: u32) -> RowWeight {
        if diagonal.iter().all(|&limb| limb == 0) {
            return RowWeight::REJECTED;
        }
        let mut cut = [0];
        shift_down(diagonal, 2 * i64::from(working_bits) - i64::from(2 * WEIGHT_BITS), &mut cut);
        RowWeight { sum: 0, limit: cut[0] + 1 }
    }

    /// The two words by which it is sent to other ranks.
    pub fn to_words(self) -> [u64; 2] {
        [self.sum, self.limit]
    }

    /// From the words of [`RowWeight::to_words`].
    pub fn from_words([sum, limit]: [u64; 2]) -> RowWeight {
        RowWeight { sum, limit }
    }

    /// Whether the row is rejected.
    pub fn is_rejected(self) -> bool {
        self.sum > self.limit
    }

    /// Rejects the row.
    pub fn reject(&mut self) {
        *self = RowWeight::REJECTED;
    }

    /// Adds an entry `|L|` of the row.
    pub fn add(&mut self, magnitude: &Integer, working_bits: u32) {
        self.add_limbs(magnitude.as_limbs(), working_bits);
    }

    /// [`RowWeight::add`] for an entry given by its limbs.
    pub fn add_limbs(&mut self, magnitude: &[u64], working_bits: u32) {
        let drop = i64::from(working_bits) - i64::from(WEIGHT_BITS);
        if bit_length(magnitude) as i64 - drop > i64::from(WEIGHT_BITS) + 1 {
            return self.reject();
        }
        let mut cut = [0];
        shift_down(magnitude, drop, &mut cut);
        self.add_weight(cut[0]);
    }

    /// Adds an entry by its weight `h`, below `2^31`.
    pub fn add_weight(&mut self, weight: u64) {
        if !self.is_rejected() {
            self.sum += weight * weight; // at most 2^61 + 2^62
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_diagonals_lie_between_a_quarter_and_one() {
        for exponent in -9..9 {
            let scaled = exponent - 2 * diagonal_exponent(exponent); // 0.f * 2^scaled with f in [1/2, 1)
            assert!(scaled == 0 || scaled == -1, "{exponent}");
        }
    }

    #[test]
    fn quotients_and_roots_are_the_nearest_integers() {
        for value in -60i32..60 {
            for divisor in 1..9 {
                let want = (f64::from(value) / f64::from(divisor)).round_ties_even();
                assert_eq!(round_quotient(&value.into(), &divisor.into()).to_f64(), want, "{value} / {divisor}");
            }
            assert_eq!(round_shift(&value.into(), -2).to_f64(), (f64::from(value) / 4.0).round_ties_even());
            assert_eq!(round_shift(&value.into(), -90), 0);
            assert_eq!(round_shift(&value.into(), 3), 8 * value);
        }
        for value in 0..5000u32 {
            assert_eq!(round_root(&value.into()).to_f64(), f64::from(value).sqrt().round(), "{value}");
        }
    }

    #[test]
    fn a_row_is_rejected_when_its_squares_pass_the_diagonal() {
        for bits in [4u32, 20, 31, 64, 300] {
            let one = Integer::from(1) << bits;
            let quarter = Integer::from(1) << (2 * bits - 2);
            let half = Integer::from(&one >> 1);
            let mut row = RowWeight::new(&quarter, bits);
            row.add(&half, bits);
            assert!(!row.is_rejected(), "1/4 does not pass 1/4 ({bits} bits)");
            row.add(&Integer::from(&one >> 2), bits);
            assert!(row.is_rejected());
            let mut row = RowWeight::new(&quarter, bits);
            row.add(&(one << 1), bits);
            assert!(row.is_rejected() && RowWeight::new(&Integer::new(), bits).is_rejected());
        }
    }
}
