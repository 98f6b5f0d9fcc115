//! The running sums of squares of the rows of a tile, 8 lanes at a time, and when they reject a row.

use crate::math::family::IFMA52_BITS;
use crate::math::pivot::{RowWeight, WEIGHT_BITS};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Selects the lanes of a vector.
#[derive(Clone, Copy)]
pub struct Live {
    /// The lanes whose quotient does not fit its digits.
    pub beyond: u8,
    /// The lanes whose squares are added.
    pub live: u8,
}

/// The treatment of the first panel, which may hold the diagonal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// The panel lies below the diagonal.
    Below,
    /// This lane takes the pivot itself, the lanes before it lie above the diagonal.
    Diagonal(usize),
}

impl First {
    /// The lanes below the diagonal.
    pub fn live(self) -> u8 {
        match self {
            First::Below => u8::MAX,
            First::Diagonal(lane) => 0xfeu8.checked_shl(lane as u32).unwrap_or(0),
        }
    }
}

/// Running sums of the rows of some panels, by lanes.
pub struct LaneWeights<'a> {
    /// `sum h^2`.
    pub sums: &'a mut [u64],
    /// Where a row is rejected.
    pub limits: &'a [u64],
}

/// Running sums of the rows of a tile, by lanes, in scratch.
pub struct WeightLanes<'a> {
    /// `sum h^2`.
    pub sums: &'a mut [u64],
    /// Where a row is rejected.
    pub limits: &'a mut [u64],
}

impl<'a> WeightLanes<'a> {
    /// The lanes of `weights`, in `scratch`, the rest of which is returned.
    pub fn new(panels: usize, weights: &[RowWeight], scratch: &'a mut [u64]) -> (WeightLanes<'a>, &'a mut [u64]) {
        let (sums, rest) = scratch.split_at_mut(panels * BLOCK);
        let (limits, rest) = rest.split_at_mut(panels * BLOCK);
        for (lane, (sum, limit)) in sums.iter_mut().zip(limits.iter_mut()).enumerate() {
            // Rows that only fill the last panel up are zero and stay so.
            let weight = weights.get(lane).copied().unwrap_or(RowWeight { sum: 0, limit: 1 });
            (*sum, *limit) = (weight.sum, weight.limit);
        }
        (WeightLanes { sums, limits }, rest)
    }

    /// Whether the row in that lane is rejected.
    pub fn is_rejected(&self, lane: usize) -> bool {
        self.sums[lane] > self.limits[lane]
    }

    /// The lanes of a panel.
    pub fn of_panel(&mut self, panel: usize) -> LaneWeights<'_> {
        let own = panel * BLOCK..(panel + 1) * BLOCK;
        LaneWeights { sums: &mut self.sums[own.clone()], limits: &self.limits[own] }
    }

    /// Writes them back.
    pub fn give_back(&self, weights: &mut [RowWeight]) {
        for (weight, (&sum, &limit)) in weights.iter_mut().zip(self.sums.iter().zip(self.limits.iter())) {
            *weight = RowWeight { sum, limit };
        }
    }
}

/// The position of the weight of an entry among its digits, and the entries that are too large.
pub struct WeightRule {
    /// Digits of an entry.
    digits: usize,
    /// Digit and shift at which the weight `floor(|L| 2^(30 - B))` begins.
    weight_digit: (usize, i64),
    /// Digit and bit `B + 1`: a quotient with a bit from there on rejects its row.
    limit_digit: (usize, i64),
}

impl WeightRule {
    /// The rule for entries of `digits` digits, of `working_bits`.
    pub fn new(working_bits: u32, digits: usize) -> WeightRule {
        let weight_digit = match working_bits.checked_sub(WEIGHT_BITS) {
            Some(drop) => ((drop / IFMA52_BITS) as usize, i64::from(drop % IFMA52_BITS)),
            None => (0, i64::from(working_bits) - i64::from(WEIGHT_BITS)),
        };
        let limit = working_bits + 1;
        let limit_digit = ((limit / IFMA52_BITS) as usize, i64::from(limit % IFMA52_BITS));
        WeightRule { digits, weight_digit, limit_digit }
    }

    /// Adds the squares of the live lanes to their sums; the lanes that are rejected by now.
    ///
    /// # Safety
    /// `quotients` has the digits of `V` vectors, digit `d` of vector `v` at `(d V + v) 8`, and `v < V`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub unsafe fn add<const V: usize>(
        &self,
        quotients: *const u64,
        v: usize,
        Live { beyond, live }: Live,
        LaneWeights { sums, limits }: LaneWeights<'_>,
    ) -> u8 {
        assert!(sums.len() == BLOCK && limits.len() == BLOCK);
        let (at, shift) = self.weight_digit;
        let digits = self.digits;
        // SAFETY: digits below `digits` are read; sums and limits have 8 lanes.
        unsafe {
            let digit = |at: usize| {
                if at < digits {
                    _mm512_loadu_si512(quotients.add((at * V + v) * BLOCK).cast())
                } else {
                    _mm512_setzero_si512()
                }
            };
            let count = |bits: i64| _mm512_set1_epi64(bits);
            // floor(|L| 2^(30 - B)), whose bits lie in two digits at most.
            let weight = if shift >= 0 {
                let low = _mm512_srlv_epi64(digit(at), count(shift));
                _mm512_or_si512(low, _mm512_sllv_epi64(digit(at + 1), count(52 - shift)))
            } else {
                _mm512_sllv_epi64(digit(0), count(-shift))
            };
            // The weight is below 2^31 where |L| is below 2^(B + 1); bits of larger ones may be lost in it.
            let (top, bit) = self.limit_digit;
            let mut above = _mm512_srlv_epi64(digit(top), count(bit));
            for at in top + 1..digits {
                above = _mm512_or_si512(above, digit(at));
            }
            let too_large = _mm512_test_epi64_mask(above, above);
            let before = _mm512_loadu_si512(sums.as_ptr().cast());
            let limit = _mm512_loadu_si512(limits.as_ptr().cast());
            let square = _mm512_mullo_epi64(weight, weight);
            let open = _mm512_cmple_epu64_mask(before, limit);
            let sum = _mm512_mask_add_epi64(before, open & live, before, square);
            let lost = (beyond | too_large) & live;
            let sum = _mm512_mask_mov_epi64(sum, lost, _mm512_set1_epi64(-1));
            _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
            _mm512_cmpgt_epu64_mask(sum, limit)
        }
    }
}
