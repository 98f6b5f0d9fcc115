//! Sums of products of a few matrix columns with one vector, in fixed point: a building block of substitutions with a
//! single right-hand side. Residues would cost more than they save in this case.
//!
//! In a product of `D` digits by `D` digits, only pairs of digits in columns from [`first_column`] on are used. Nothing
//! else is rounded, so every kernel gives the same integers. Depends on: limbs, views. Independent of: triangles, error
//! bounds.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::kernels::PanelSource;
use crate::math::float::{limbs_for, shift_down};
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;

/// Bits of a digit of a [`FixedVector`].
pub const DIGIT_BITS: u32 = 52;

/// Zero digits before and after the digits of an entry of a [`FixedVector`].
pub const PADDING: usize = 8;

/// The first column, `a + b` for a product of digits `a` and `b`, that is used for operands of `digits` digits.
///
/// The omitted part of a product is below `digits 2^(52 (digits - 2))`.
pub const fn first_column(digits: usize) -> usize {
    digits.saturating_sub(3)
}

/// A vector of signed integers of at most `bits` bits, as digits.
pub struct FixedVector {
    digits_per_entry: usize,
    negative: Vec<bool>,
    digits: Vec<u64>,
}

impl FixedVector {
    /// `len` zeros that hold `bits` bits.
    pub fn new(len: usize, bits: u32) -> FixedVector {
        let digits_per_entry = bits.div_ceil(DIGIT_BITS) as usize;
        let digits = vec![0; len * (digits_per_entry + 2 * PADDING)];
        FixedVector { digits_per_entry, negative: vec![false; len], digits }
    }

    /// Digits of an entry, without its padding.
    pub fn digits_per_entry(&self) -> usize {
        self.digits_per_entry
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.negative.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.negative.is_empty()
    }

    /// The digits of entry `index` with [`PADDING`] zeros on both sides.
    pub fn padded(&self, index: usize) -> &[u64] {
        let stride = self.digits_per_entry + 2 * PADDING;
        &self.digits[index * stride..][..stride]
    }

    /// Whether entry `index` is negative.
    pub fn is_negative(&self, index: usize) -> bool {
        self.negative[index]
    }

    /// Sets an entry to an integer given by its limbs; bits beyond its digits are dropped.
    pub fn set(&mut self, index: usize, negative: bool, limbs: &[u64]) {
        let stride = self.digits_per_entry + 2 * PADDING;
        let digits = &mut self.digits[index * stride + PADDING..][..self.digits_per_entry];
        let limb = |at: usize| limbs.get(at).copied().unwrap_or(0);
        for (at, digit) in digits.iter_mut().enumerate() {
            let bit = at * DIGIT_BITS as usize;
            let pair = (u128::from(limb(bit / 64 + 1)) << 64) | u128::from(limb(bit / 64));
            *digit = (pair >> (bit % 64)) as u64 & ((1 << DIGIT_BITS) - 1);
        }
        self.negative[index] = negative;
    }

    /// Entry `index`.
    pub fn integer(&self, index: usize) -> Integer {
        let digits = &self.padded(index)[PADDING..][..self.digits_per_entry];
        let size = digits.iter().rev().fold(Integer::new(), |size, &digit| (size << DIGIT_BITS) + digit);
        if self.negative[index] { -size } else { size }
    }
}

/// A panel of up to 8 columns in fixed point: entry `(k, j)` stands for the integer
/// `trunc(a_kj 2^(shifts[j] + row_shifts[k]))`, which has at most the bits of the vector's digits.
pub struct DotSource<'a> {
    /// Columns, rows and the columns' shifts.
    pub panel: PanelSource<'a>,
    /// Scale shift of every row of the view.
    pub row_shifts: &'a [i64],
    /// Row `k` of the view meets entry `first_entry + k` of the vector.
    pub first_entry: usize,
}

/// As [`by_limbs`], with vector instructions if the processor has AVX2.
pub fn in_vectors(sources: &[DotSource<'_>], vector: &FixedVector, sums: &mut [Integer; BLOCK]) {
    #[cfg(target_arch = "x86_64")]
    if avx2::can_sum(vector.digits_per_entry()) {
        // SAFETY: `can_sum` found that the processor has AVX2.
        return unsafe { avx2::sums(sources, vector, sums) };
    }
    by_limbs(sources, vector, sums);
}

/// Largest number of bytes that [`in_vectors`] allocates for a vector of `digits` digits.
pub fn vector_bytes(digits: usize) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if avx2::can_sum(digits) {
        return avx2::bytes(digits);
    }
    limb_bytes(digits)
}

/// The same for [`by_limbs`]: an entry as limbs and as digits, a product as limbs and as an integer, before and after
/// its shift.
pub fn limb_bytes(digits: usize) -> u64 {
    8 * (10 * digits + 2 * PADDING + 8) as u64
}

/// `sums[j] := sum over the rows k of all panels of entry (k, j) times vector entry first_entry + k`, digit by digit.
///
/// All panels of one call have the same columns; the fixed cost of a sum is then paid once.
pub fn by_limbs(sources: &[DotSource<'_>], vector: &FixedVector, sums: &mut [Integer; BLOCK]) {
    sums.fill(Integer::new());
    sources.iter().for_each(|source| add_by_limbs(source, vector, sums));
}

/// Adds the products of one panel.
fn add_by_limbs(source: &DotSource<'_>, vector: &FixedVector, sums: &mut [Integer; BLOCK]) {
    let panel = &source.panel;
    let count = vector.digits_per_entry();
    let first = first_column(count);
    let mut limbs = vec![0; limbs_for(count as u32 * DIGIT_BITS)];
    let mut digits = FixedVector::new(1, count as u32 * DIGIT_BITS);
    for k in panel.rows.clone() {
        let y = &vector.padded(source.first_entry + k)[PADDING..][..count];
        if y.iter().all(|&digit| digit == 0) {
            continue;
        }
        for (sum, column) in sums.iter_mut().zip(panel.columns.clone()) {
            let entry = panel.view.get(k, column);
            if entry.head.is_zero() {
                continue;
            }
            let drop = limbs_for(panel.view.precision_bits()) as i64 * 64 - entry.head.exponent();
            shift_down(entry.limbs, drop - panel.shifts[column] - source.row_shifts[k], &mut limbs);
            digits.set(0, false, &limbs);
            let product = truncated_product(&digits.padded(0)[PADDING..][..count], y, first);
            if entry.head.is_negative() != vector.is_negative(source.first_entry + k) {
                *sum -= product
            } else {
                *sum += product
            }
        }
    }
}

/// `sum of x_a y_b 2^(52 (a + b))` over `a + b >= first`.
fn truncated_product(x: &[u64], y: &[u64], first: usize) -> Integer {
    let count = x.len();
    let column = |at: usize| {
        let pairs = (at + 1).saturating_sub(count)..=at.min(count - 1);
        pairs.map(|a| u128::from(x[a]) * u128::from(y[at - a])).sum::<u128>() // fewer than 2^24 products below 2^104
    };
    let mut limbs = Vec::with_capacity(2 * count);
    let (mut carry, mut held, mut bits) = (0u128, 0u128, 0);
    for at in first..2 * count + 1 {
        let sum = carry + if at < 2 * count - 1 { column(at) } else { 0 };
        carry = sum >> DIGIT_BITS;
        held |= (sum & ((1 << DIGIT_BITS) - 1)) << bits;
        bits += DIGIT_BITS;
        if bits >= 64 {
            limbs.push(held as u64);
            (held, bits) = (held >> 64, bits - 64);
        }
    }
    limbs.push(held as u64);
    Integer::from_digits(&limbs, Order::Lsf) << (DIGIT_BITS * first as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_products_leave_out_less_than_they_say() {
        for count in 1..30usize {
            let digit = |seed: u64, at: usize| match seed {
                0 => (1 << 52) - 1,
                _ => (seed * 977 + at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12,
            };
            for seeds in [(0, 0), (1, 2), (3, 0)] {
                let x = (0..count).map(|at| digit(seeds.0, at)).collect::<Vec<_>>();
                let y = (0..count).map(|at| digit(seeds.1, at)).collect::<Vec<_>>();
                let whole = |digits: &[u64]| digits.iter().rev().fold(Integer::new(), |sum, &d| (sum << 52u32) + d);
                let exact = whole(&x) * whole(&y);
                let left_out = exact - truncated_product(&x, &y, first_column(count));
                let bound = Integer::from(count) << (52 * count.saturating_sub(2) as u32);
                assert!(left_out >= 0 && (left_out == 0 || left_out < bound), "{count} digits");
                assert!(first_column(count) > 0 || truncated_product(&x, &y, 0) == whole(&x) * whole(&y));
            }
        }
    }
}
