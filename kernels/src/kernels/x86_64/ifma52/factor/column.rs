//! One column of a tile, 8 `V` rows at once: its residues to integers, divided by the pivot, rounded, and back.
//!
//! The updates by the columns before it in its block of 8 are folded into the first step of the reconstruction, so a
//! residue is read and written once. Bounds: docs/ALGORITHM.md, "Columns of a tile".

use super::super::micro::Fold;
use super::divide::{PivotDivisor, digit_of, divide};
use super::weights::{First, LaneWeights, Live};
use super::{FactorTables, FactorTileLayout};
use crate::math::pivot::round_quotient;
use crate::plan::BLOCK;
use rug::Integer;
use std::arch::x86_64::*;

/// The largest number of vectors handled together.
pub const VECTORS: usize = 4;

const MASK: i64 = (1 << 52) - 1;

/// Words of scratch for [`Column::run`].
pub fn scratch_words(primes: usize, digits: usize) -> usize {
    (2 * primes + 1 + digits) * VECTORS * BLOCK
}

/// A column to finish.
pub struct Column<'a> {
    /// Tables.
    pub factor: &'a FactorTables,
    /// The positions of the words of the tile.
    pub layout: FactorTileLayout,
    /// Column within the tile.
    pub col: usize,
    /// For each prime 8 words: `-w y_m`, the factors of the earlier columns of the block.
    pub couplings: &'a [u64],
}

impl Column<'_> {
    /// `T_jj` of the lane `lane` of panel `panel`.
    ///
    /// # Safety
    /// `words` is the whole tile, `scratch` has [`scratch_words`].
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub unsafe fn value(&self, words: *const u64, panel: usize, lane: usize, scratch: *mut u64) -> Integer {
        // SAFETY: the caller's promise.
        unsafe {
            self.weigh::<1>(words, panel, scratch);
            self.exact::<1>(scratch, 0, lane)
        }
    }

    /// Finishes the column in the panels `panel .. panel + V`.
    ///
    /// # Safety
    /// `words` is the whole tile, which has these panels and this column; `scratch` has [`scratch_words`]; residues are
    /// below `2^52`.
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq,avx512bw,avx512vbmi")]
    pub unsafe fn run<const V: usize>(
        &self,
        words: *mut u64,
        panel: usize,
        pivot: &PivotDivisor<'_>,
        first: First,
        weights: LaneWeights<'_>,
        scratch: *mut u64,
    ) {
        let factor = self.factor;
        let (count, digits) = (factor.tables.count(), factor.digits);
        assert!(weights.sums.len() >= V * BLOCK && weights.limits.len() >= V * BLOCK);
        // SAFETY: `scratch_words` leaves room for these three areas; the rest is the caller's promise.
        unsafe {
            let numerators = scratch.add((count + 1) * V * BLOCK);
            let quotients = numerators.add(count * V * BLOCK);
            self.weigh::<V>(words, panel, scratch);
            let mut signs = self.numerators::<V>(scratch, numerators, pivot.first);
            // The signs are those of the quotients from here on.
            signs.iter_mut().for_each(|sign| *sign ^= if pivot.negative { u8::MAX } else { 0 });
            let verdict = divide::<V>(pivot, numerators, count, quotients, digits, factor.window);
            for (v, sign) in signs.iter_mut().enumerate() {
                let mut beyond = verdict.beyond[v];
                let mut unclear = verdict.unclear[v] & !beyond;
                while unclear != 0 {
                    let lane = unclear.trailing_zeros() as usize;
                    unclear &= unclear - 1;
                    let (negative, fits) = self.divide_exactly::<V>(scratch, quotients, v, lane, pivot);
                    *sign = *sign & !(1 << lane) | u8::from(negative) << lane;
                    beyond |= u8::from(!fits) << lane;
                }
                let live = if v == 0 { first.live() } else { u8::MAX };
                let lanes = LaneWeights {
                    sums: &mut weights.sums[v * BLOCK..][..BLOCK],
                    limits: &weights.limits[v * BLOCK..][..BLOCK],
                };
                let rejected = factor.rule.add::<V>(quotients, v, Live { beyond, live }, lanes);
                let clear = rejected | !live;
                if clear != 0 {
                    *sign &= !clear;
                    for at in 0..digits {
                        let slot = quotients.add((at * V + v) * BLOCK);
                        _mm512_mask_storeu_epi64(slot.cast(), clear, _mm512_setzero_si512());
                        if let (First::Diagonal(lane), 0) = (first, v) {
                            *slot.add(lane) = pivot.digit(at);
                        }
                    }
                }
            }
            self.publish::<V>(quotients, &signs, words, panel);
        }
    }

    /// `y_i = (T - sum of earlier columns) w_i mod p_i`, `V` vectors for each prime, and after them the quotients `q`.
    ///
    /// # Safety
    /// As [`Column::run`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    unsafe fn weigh<const V: usize>(&self, words: *const u64, panel: usize, weighted: *mut u64) {
        let tables = &self.factor.tables;
        let earlier = self.col % BLOCK;
        assert!(self.couplings.len() >= tables.count() * BLOCK);
        let mut quotients = [_mm512_setzero_pd(); V];
        let stride = self.layout.padded_cols * BLOCK;
        for (index, &prime) in tables.primes.iter().enumerate() {
            let fold = Fold::new(prime);
            let weight = _mm512_set1_epi64(tables.weights[index] as i64);
            let reciprocal = _mm512_set1_pd(tables.reciprocals[index]);
            let zero = _mm512_setzero_si512();
            let (mut lo, mut hi) = ([zero; V], [zero; V]);
            // SAFETY: the layout's panels lie in the tile, by the promise of `run`; the column's block has `earlier`
            // columns before it.
            unsafe {
                let block = words.add(self.layout.residue(index, panel, self.col - earlier));
                for v in 0..V {
                    let value = _mm512_loadu_si512(block.add(v * stride + earlier * BLOCK).cast());
                    lo[v] = _mm512_madd52lo_epu64(zero, value, weight);
                    hi[v] = _mm512_madd52hi_epu64(zero, value, weight);
                }
                for m in 0..earlier {
                    let coupling = _mm512_set1_epi64(*self.couplings.as_ptr().add(index * BLOCK + m) as i64);
                    for v in 0..V {
                        let value = _mm512_loadu_si512(block.add(v * stride + m * BLOCK).cast());
                        lo[v] = _mm512_madd52lo_epu64(lo[v], value, coupling);
                        hi[v] = _mm512_madd52hi_epu64(hi[v], value, coupling);
                    }
                }
                for v in 0..V {
                    let y = fold.fold(lo[v], hi[v]);
                    _mm512_storeu_si512(weighted.add((index * V + v) * BLOCK).cast(), y);
                    quotients[v] = _mm512_fmadd_pd(_mm512_cvtepu64_pd(y), reciprocal, quotients[v]);
                }
            }
        }
        for (v, quotient) in quotients.iter().enumerate() {
            // SAFETY: `weighted` has one row more than there are primes.
            unsafe {
                let slot = weighted.add((tables.count() * V + v) * BLOCK);
                _mm512_storeu_si512(slot.cast(), _mm512_cvtpd_epu64(*quotient));
            }
        }
    }

    /// Digits of `|T|` from `first` on, all but exact at the lowest of them (exact for `first = 0`); the signs.
    ///
    /// # Safety
    /// As [`Column::run`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn numerators<const V: usize>(&self, weighted: *const u64, digits: *mut u64, first: usize) -> [u8; V] {
        let count = self.factor.tables.count();
        let zero = _mm512_setzero_si512();
        let mask = _mm512_set1_epi64(MASK);
        let (mut flow, mut top) = ([zero; V], [zero; V]);
        // The high halves of the digit below `first` belong to it.
        let mut at = first.saturating_sub(1);
        // SAFETY: digits below `count` are written, as `run` leaves room for.
        unsafe {
            while at < count {
                let together = if at + 2 <= count { 2 } else { 1 };
                let sums = match together {
                    2 => self.digit_sums::<V, 2>(weighted, at),
                    _ => {
                        let [last] = self.digit_sums::<V, 1>(weighted, at);
                        [last, ([zero; V], [zero; V])]
                    }
                };
                for (offset, (lo, hi)) in sums.iter().enumerate().take(together) {
                    for v in 0..V {
                        let sum = _mm512_add_epi64(lo[v], flow[v]);
                        top[v] = _mm512_and_si512(sum, mask);
                        flow[v] = _mm512_add_epi64(hi[v], _mm512_srli_epi64::<52>(sum));
                        _mm512_storeu_si512(digits.add(((at + offset) * V + v) * BLOCK).cast(), top[v]);
                    }
                }
                at += together;
            }
            let mut signs = [0; V];
            for v in 0..V {
                signs[v] = _mm512_test_epi64_mask(top[v], _mm512_set1_epi64(1 << 51));
                if signs[v] == 0 {
                    continue;
                }
                let mut carry = _mm512_set1_epi64(1);
                for at in first..count {
                    let slot = digits.add((at * V + v) * BLOCK);
                    let value = _mm512_loadu_si512(slot.cast());
                    let sum = _mm512_add_epi64(_mm512_andnot_si512(value, mask), carry);
                    carry = _mm512_srli_epi64::<52>(sum);
                    _mm512_mask_storeu_epi64(slot.cast(), signs[v], _mm512_and_si512(sum, mask));
                }
            }
            signs
        }
    }

    /// Low and high sums over all table rows for `D` neighbouring digits.
    ///
    /// # Safety
    /// As [`Column::run`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn digit_sums<const V: usize, const D: usize>(
        &self,
        weighted: *const u64,
        digit: usize,
    ) -> [([__m512i; V], [__m512i; V]); D] {
        let tables = &self.factor.tables;
        let terms = tables.count() + 1;
        assert!(tables.cofactors.len() >= (digit + D) * terms);
        let table = &tables.cofactors[digit * terms..];
        let zero = _mm512_setzero_si512();
        let mut sums = [([zero; V], [zero; V]); D];
        for term in 0..terms {
            // SAFETY: asserted for the table; `weighted` has `terms` rows of `V` vectors.
            unsafe {
                let values: [__m512i; V] =
                    std::array::from_fn(|v| _mm512_loadu_si512(weighted.add((term * V + v) * BLOCK).cast()));
                for (which, (lo, hi)) in sums.iter_mut().enumerate() {
                    let factor = _mm512_set1_epi64(*table.as_ptr().add(which * terms + term) as i64);
                    for v in 0..V {
                        lo[v] = _mm512_madd52lo_epu64(lo[v], values[v], factor);
                        hi[v] = _mm512_madd52hi_epu64(hi[v], values[v], factor);
                    }
                }
            }
        }
        sums
    }

    /// `T` of one lane, from its weighted residues.
    ///
    /// # Safety
    /// As [`Column::run`].
    unsafe fn exact<const V: usize>(&self, weighted: *const u64, v: usize, lane: usize) -> Integer {
        let factor = self.factor;
        // SAFETY: `weigh` has written one vector for each prime and one for the quotients.
        let word = |term: usize| unsafe { *weighted.add((term * V + v) * BLOCK + lane) };
        let mut value = Integer::new();
        for (term, cofactor) in factor.cofactors.iter().enumerate() {
            value += cofactor * word(term);
        }
        value - Integer::from(&factor.product * word(factor.cofactors.len()))
    }

    /// Replaces one quotient by the exactly rounded one; its sign, and whether it fits.
    ///
    /// # Safety
    /// As [`Column::run`].
    #[cold]
    unsafe fn divide_exactly<const V: usize>(
        &self,
        weighted: *const u64,
        quotients: *mut u64,
        v: usize,
        lane: usize,
        pivot: &PivotDivisor<'_>,
    ) -> (bool, bool) {
        // SAFETY: as `run` promises.
        let value = unsafe { self.exact::<V>(weighted, v, lane) };
        let value = if pivot.negative { -value } else { value };
        let quotient = round_quotient(&value, &pivot.integer());
        let size = Integer::from(quotient.abs_ref());
        for at in 0..self.factor.digits {
            // SAFETY: `quotients` has `digits` digits.
            unsafe { *quotients.add((at * V + v) * BLOCK + lane) = digit_of(size.as_limbs(), at) };
        }
        (quotient < 0, size.significant_bits() as usize <= 52 * self.factor.digits)
    }

    /// Writes the quotients as residues in place of the column, and as integers.
    ///
    /// # Safety
    /// As [`Column::run`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn publish<const V: usize>(&self, quotients: *const u64, signs: &[u8; V], words: *mut u64, panel: usize) {
        let (factor, layout) = (self.factor, self.layout);
        // SAFETY: panels `panel .. panel + V` and column `col` lie in the tile.
        unsafe {
            for (v, &sign) in signs.iter().enumerate() {
                let entry = words.add(layout.entry(panel + v, self.col));
                for at in 0..factor.digits {
                    let value = _mm512_loadu_si512(quotients.add((at * V + v) * BLOCK).cast());
                    _mm512_storeu_si512(entry.add(at * BLOCK).cast(), value);
                }
                let one = _mm512_maskz_set1_epi64(sign, 1);
                _mm512_storeu_si512(entry.add(factor.digits * BLOCK).cast(), one);
            }
            let count = factor.tables.count();
            let mut prime = 0;
            while prime < count {
                let together = if prime + 2 <= count { 2 } else { 1 };
                let sums = match together {
                    2 => factor.radix_sums::<V, 2>(prime, quotients, 0..factor.digits),
                    _ => {
                        let [last] = factor.radix_sums::<V, 1>(prime, quotients, 0..factor.digits);
                        [last, last]
                    }
                };
                for (offset, sums) in sums.iter().enumerate().take(together) {
                    let fold = Fold::new(factor.tables.primes[prime + offset]);
                    for (v, &(lo, hi)) in sums.iter().enumerate() {
                        let residue = fold.negate(signs[v], fold.fold(lo, hi));
                        let at = layout.residue(prime + offset, panel + v, self.col);
                        _mm512_storeu_si512(words.add(at).cast(), residue);
                    }
                }
                prime += together;
            }
        }
    }
}
