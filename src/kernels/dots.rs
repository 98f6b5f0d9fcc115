//! Exact sums of products of a few matrix columns with one vector, in fixed point: what a substitution with a single
//! right-hand side is made of. Residues would cost more than they save there.
//!
//! Knows: limbs, views. Does not know: triangles, error bounds. Every kernel gives the same integers.

use crate::kernels::PanelSource;
use crate::math::float::{limbs_for, shift_down};
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;

/// Bits of a digit of a [`FixedVector`].
pub const DIGIT_BITS: u32 = 52;

/// Zero digits before and after the digits of an entry of a [`FixedVector`].
pub const PADDING: usize = 8;

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

    /// Digits of an entry, those of its paddings not counted.
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

    /// Whether entry `index` is below 0.
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
}

/// `sums[j] := sum over the panel's rows k of entry (k, j) times vector entry k`, on limbs.
pub fn by_limbs(source: &DotSource<'_>, vector: &FixedVector, sums: &mut [Integer; BLOCK]) {
    let panel = &source.panel;
    let mut limbs = vec![0; limbs_for(vector.digits_per_entry() as u32 * DIGIT_BITS)];
    sums.fill(Integer::new());
    for k in panel.rows.clone() {
        let factor = vector.integer(k);
        if factor == 0 {
            continue;
        }
        for (sum, column) in sums.iter_mut().zip(panel.columns.clone()) {
            let entry = panel.view.get(k, column);
            if entry.head.is_zero() {
                continue;
            }
            let drop = limbs_for(panel.view.precision_bits()) as i64 * 64 - entry.head.exponent();
            shift_down(entry.limbs, drop - panel.shifts[column] - source.row_shifts[k], &mut limbs);
            let value = Integer::from_digits(&limbs, Order::Lsf);
            if entry.head.is_negative() { *sum -= value * &factor } else { *sum += value * &factor }
        }
    }
}
