//! `alpha x + y`, rounded correctly, eight pairs at a time on AVX-512 IFMA, a lane each.
//!
//! All digits of a sum are formed, from a first one for the carry to the lowest of the product and of `y`, so it is
//! exact, and rounded once. Sums that take more digits, or whose leading ones cancel, are left to the caller.
//! Source: docs/ALGORITHM.md, "Sums digit by digit".

use super::ifma::{EightSignificands, cut_eight, load, store, transpose};
use super::{DIGIT_BITS, EightDigits, Eights, MASK, ScaledPair, copy_limbs, cut_number};
use crate::kernels::x86_64::cpu::has_scaled_sums;
use crate::math::float::{FloatRef, Head, limbs_for};
use std::arch::x86_64::*;

/// The largest number of limbs of a factor, of an addend and of a result.
const MOST_LIMBS: usize = 24;

/// Eights of zeros before and behind the digits of `x`: columns are formed eight at a time.
const PAD: usize = 7;

const BITS: usize = DIGIT_BITS as usize;

/// Memory for sums `alpha x + y` with one `alpha`.
pub struct ScaledSums {
    alpha_head: Head,
    alpha: Vec<u64>,
    sizes: DigitSizes,
    /// The memory that [`DigitParts`] divide.
    room: Eights,
    exponents: EightDigits,
    negative: u8,
}

/// Numbers of digits, and sizes that follow from them.
#[derive(Clone, Copy)]
struct DigitSizes {
    alpha: usize,
    x: usize,
    /// Digits of a sum, without the first one.
    sum: usize,
    /// Of a significand and of half a unit of its last place.
    rounded: usize,
    /// Limbs of a result, and its bits.
    limbs: usize,
    precision: usize,
    /// Bits that a product and a number that is added may lie below the largest of both.
    most_shifts: [i64; 2],
}

impl DigitSizes {
    /// `None` where the processor or a length does not allow it.
    fn new([alpha, x, y]: [usize; 3], precision_bits: u32) -> Option<DigitSizes> {
        let longest = [alpha, x, y, limbs_for(precision_bits)].into_iter().max()?;
        if !has_scaled_sums() || longest > MOST_LIMBS {
            return None;
        }
        let digits = |limbs: usize, more: usize| (64 * limbs + more).div_ceil(BITS);
        let (alpha, of_x) = (digits(alpha, 0), digits(x, BITS));
        let sum = (alpha + of_x).max(digits(y, BITS));
        let most_shifts = [(BITS * of_x - 64 * x) as i64, (BITS * sum - 64 * y) as i64];
        let precision = precision_bits as usize;
        let (rounded, limbs) = (precision / BITS + 1, limbs_for(precision_bits));
        Some(DigitSizes { alpha, x: of_x, sum, rounded, limbs, precision, most_shifts })
    }

    /// Eights of `sums`: columns of products are added eight at a time, and rounding reads two digits further.
    fn sums(&self) -> usize {
        (self.sum + 9).max(self.rounded + 4)
    }

    /// Eights before the limbs of the results, and with them.
    fn before_limbs(&self) -> usize {
        self.x + 2 * PAD + self.sums() + self.rounded + 3
    }

    fn room(&self) -> usize {
        self.before_limbs() + self.limbs.next_multiple_of(8)
    }
}

/// Digits and limbs of eight numbers.
struct DigitParts<'a> {
    /// The digits of `x` between zeros.
    x: &'a mut [EightDigits],
    /// The digits of `y`, which become those of the sums, and zeros behind them.
    sums: &'a mut [EightDigits],
    /// The digits of the rounded significands, zeros behind them.
    rounded: &'a mut [EightDigits],
    limbs: &'a mut [EightDigits],
}

impl<'a> DigitParts<'a> {
    fn new(room: &'a mut [EightDigits], sizes: &DigitSizes) -> DigitParts<'a> {
        let (x, rest) = room.split_at_mut(sizes.x + 2 * PAD);
        let (sums, rest) = rest.split_at_mut(sizes.sums());
        let (rounded, limbs) = rest.split_at_mut(sizes.rounded + 3);
        DigitParts { x, sums, rounded, limbs }
    }
}

impl ScaledSums {
    /// Memory for numbers of `x_limbs` and `y_limbs` limbs; `None` if the processor or a length does not allow it, or
    /// for `alpha = 0`.
    pub fn new(alpha: FloatRef<'_>, x_limbs: usize, y_limbs: usize, precision_bits: u32) -> Option<ScaledSums> {
        let sizes = DigitSizes::new([alpha.limbs.len(), x_limbs, y_limbs], precision_bits)?;
        if alpha.head.is_zero() {
            return None;
        }
        let mut digits = vec![0; sizes.alpha];
        cut_number(alpha.limbs, &mut digits);
        Some(ScaledSums {
            alpha_head: alpha.head,
            alpha: digits,
            sizes,
            room: Eights::new(sizes.room()),
            exponents: EightDigits([0; 8]),
            negative: 0,
        })
    }

    /// Bytes of the memory for numbers of these `limbs`: of `alpha`, `x` and `y`.
    pub fn bytes(limbs: [usize; 3], precision_bits: u32) -> u64 {
        let bytes =
            |sizes: DigitSizes| (size_of::<ScaledSums>() + 8 * sizes.alpha) as u64 + Eights::bytes(sizes.room());
        DigitSizes::new(limbs, precision_bits).map_or(0, bytes)
    }

    /// Computes and rounds the sums of up to eight pairs of numbers with exactly the limbs for which the memory was
    /// made; returns the lanes that are done.
    pub fn form(&mut self, pairs: &[ScaledPair<'_>]) -> u8 {
        // SAFETY: the features are present, or there would be no room.
        unsafe { self.form_eight(pairs) }
    }

    /// The sum of a lane that is done, its limbs written into `out`.
    #[inline]
    pub fn get(&self, lane: usize, out: &mut [u64]) -> Head {
        let groups = self.room[self.sizes.before_limbs()..].chunks_exact(8);
        out.chunks_mut(8).zip(groups).for_each(|(out, group)| copy_limbs(out, &group[lane].0[..out.len()]));
        Head::new(self.negative >> lane & 1 == 1, self.exponents.0[lane] as i64)
    }

    #[target_feature(enable = "avx512f,avx512cd,avx512ifma,avx512vbmi2")]
    fn form_eight(&mut self, pairs: &[ScaledPair<'_>]) -> u8 {
        let (mut xs, mut ys): (EightSignificands<'_>, EightSignificands<'_>) = ([(&[], 0); 8], [(&[], 0); 8]);
        let (mut tops, mut signs, mut differ, mut held) = (EightDigits([0; 8]), 0u8, 0u8, 0u8);
        for (lane, ScaledPair { x, y }) in pairs.iter().take(8).enumerate() {
            // Far below all exponents where the number is 0.
            let far = i64::MIN / 4;
            let product = if x.head.is_zero() { far } else { self.alpha_head.exponent() + x.head.exponent() };
            let added = if y.head.is_zero() { far } else { y.head.exponent() };
            let top = product.max(added);
            let [below_x, below_y] = self.sizes.most_shifts;
            let (fits_x, fits_y) = (top - product <= below_x, top - added <= below_y);
            if !(fits_x || product == far) || !(fits_y || added == far) {
                continue;
            }
            let negative = self.alpha_head.is_negative() != x.head.is_negative();
            tops.0[lane] = top as u64;
            held |= 1 << lane;
            signs |= u8::from(negative) << lane;
            differ |= u8::from(negative != y.head.is_negative()) << lane;
            if product != far {
                xs[lane] = (x.limbs, (top - product) as u32);
            }
            if added != far {
                ys[lane] = (y.limbs, (top - added) as u32);
            }
        }
        let mut parts = DigitParts::new(&mut self.room, &self.sizes);
        cut_eight(&xs, self.sizes.x, |at, digits| store(&mut parts.x[PAD + at], digits));
        cut_eight(&ys, self.sizes.sum, |at, digits| store(&mut parts.sums[at], digits));
        parts.sums[self.sizes.sum..].fill(EightDigits([0; 8]));
        negate_lanes(&mut parts.sums[..self.sizes.sum], differ);
        parts.add_products(&self.alpha, self.sizes.x);
        let (carried, negative) = carry(&mut parts.sums[..self.sizes.sum]);
        self.negative = signs ^ negative;
        let (done, exponents) = parts.round(&self.sizes, carried, load(&tops));
        store(&mut self.exponents, exponents);
        parts.pack(&self.sizes);
        held & done
    }
}

/// The digits of the sums with the other sign in some lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn negate_lanes(sums: &mut [EightDigits], lanes: u8) {
    for eight in sums {
        let digits = load(eight);
        store(eight, _mm512_mask_sub_epi64(digits, lanes, _mm512_setzero_si512(), digits));
    }
}

/// Makes the digits of the sums those of their magnitudes; gives what is carried out, and the lanes that were
/// negative.
#[inline]
#[target_feature(enable = "avx512f")]
fn carry(sums: &mut [EightDigits]) -> (__m512i, u8) {
    let (mask, zero) = (_mm512_set1_epi64(MASK as i64), _mm512_setzero_si512());
    let mut carry = zero;
    for eight in sums.iter_mut().rev() {
        let total = _mm512_add_epi64(load(eight), carry);
        store(eight, _mm512_and_epi64(total, mask));
        carry = _mm512_srai_epi64::<DIGIT_BITS>(total);
    }
    let negative = _mm512_cmplt_epi64_mask(carry, zero);
    if negative != 0 {
        let mut over = _mm512_maskz_set1_epi64(negative, 1);
        for eight in sums.iter_mut().rev() {
            let digits = load(eight);
            let total = _mm512_add_epi64(_mm512_mask_xor_epi64(digits, negative, digits, mask), over);
            store(eight, _mm512_and_epi64(total, mask));
            over = _mm512_srli_epi64::<DIGIT_BITS>(total);
        }
        let ones = _mm512_set1_epi64(-1);
        carry = _mm512_add_epi64(_mm512_mask_xor_epi64(carry, negative, carry, ones), over);
    }
    (carry, negative)
}

impl DigitParts<'_> {
    /// Adds the digits of the products, eight columns at a time.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_products(&mut self, alpha: &[u64], x: usize) {
        for start in (0..alpha.len() + x - 1).step_by(8) {
            let (mut low, mut high) = ([_mm512_setzero_si512(); 8], [_mm512_setzero_si512(); 8]);
            let (first, end) = ((start + 1).saturating_sub(x), alpha.len().min(start + 8));
            for (at, &digit) in (first..end).zip(&alpha[first..end]) {
                let digit = _mm512_set1_epi64(digit as i64);
                // Digit `start + column - at` of `x`, or a zero before or behind.
                let others: &[EightDigits; 8] = self.x[PAD + start - at..][..8].try_into().expect("eight");
                for column in 0..8 {
                    let other = load(&others[column]);
                    low[column] = _mm512_madd52lo_epu64(low[column], digit, other);
                    high[column] = _mm512_madd52hi_epu64(high[column], digit, other);
                }
            }
            let sums: &mut [EightDigits; 9] = (&mut self.sums[start..][..9]).try_into().expect("nine");
            for column in 0..8 {
                let both = if column == 0 { high[0] } else { _mm512_add_epi64(high[column], low[column - 1]) };
                let sum = _mm512_add_epi64(load(&sums[column]), both);
                store(&mut sums[column], sum);
            }
            let sum = _mm512_add_epi64(load(&sums[8]), low[7]);
            store(&mut sums[8], sum);
        }
    }

    /// Rounds the sums below `2^(tops + 52)` whose first digits are those carried out; gives the lanes whose leading
    /// bit is in one of the first three digits, and the powers of two above the results.
    #[inline]
    #[target_feature(enable = "avx512f,avx512cd")]
    fn round(&mut self, sizes: &DigitSizes, carried: __m512i, tops: __m512i) -> (u8, __m512i) {
        let DigitSizes { rounded, precision, sum, .. } = *sizes;
        let set = |value: i64| _mm512_set1_epi64(value);
        let mask = set(MASK as i64);
        let sums = &*self.sums;
        let digit = |at: usize| if at == 0 { carried } else { load(&sums[at - 1]) };
        // The lanes that begin with the first, the second, the third digit.
        let [in_first, in_second, in_third] = [0, 1, 2].map(|at| _mm512_test_epi64_mask(digit(at), digit(at)));
        let before_third = in_first | in_second;
        let leading = |at: usize| {
            let later = _mm512_mask_blend_epi64(before_third, digit(at + 2), digit(at + 1));
            _mm512_mask_blend_epi64(in_first, later, digit(at))
        };
        let skipped = _mm512_sub_epi64(_mm512_lzcnt_epi64(leading(0)), set(12));
        let rest = _mm512_sub_epi64(set(BITS as i64), skipped);
        let mut next = leading(0);
        for at in 0..rounded {
            let own = next;
            next = leading(at + 1);
            let both = _mm512_or_si512(_mm512_sllv_epi64(own, skipped), _mm512_srlv_epi64(next, rest));
            store(&mut self.rounded[at], _mm512_and_epi64(both, mask));
        }
        // The bits below: the rest of the digit after them, and those behind it.
        let mut below = _mm512_and_epi64(_mm512_sllv_epi64(next, skipped), mask);
        below = _mm512_mask_or_epi64(below, in_first, below, digit(rounded + 1));
        below = _mm512_mask_or_epi64(below, before_third, below, digit(rounded + 2));
        for eight in &sums[rounded + 2..sum.max(rounded + 2)] {
            below = _mm512_or_si512(below, load(eight));
        }
        let unit = (BITS * rounded - precision) as u32; // bits of the last digit beyond the precision, at least one
        let last = load(&self.rounded[rounded - 1]);
        let odd = match unit == DIGIT_BITS {
            true => _mm512_test_epi64_mask(load(&self.rounded[rounded - 2]), set(1)),
            false => _mm512_test_epi64_mask(last, set(1 << unit)),
        };
        let half = _mm512_test_epi64_mask(last, set(1 << (unit - 1)));
        below = _mm512_or_si512(below, _mm512_and_epi64(last, set((1 << (unit - 1)) - 1)));
        let up = half & (odd | _mm512_test_epi64_mask(below, below));
        let mut over = _mm512_maskz_set1_epi64(up, 1 << unit);
        store(&mut self.rounded[rounded - 1], _mm512_andnot_si512(set((1 << unit) - 1), last));
        for eight in self.rounded[..rounded].iter_mut().rev() {
            let total = _mm512_add_epi64(load(eight), over);
            store(eight, _mm512_and_epi64(total, mask));
            over = _mm512_srli_epi64::<DIGIT_BITS>(total);
            if _mm512_test_epi64_mask(over, over) == 0 {
                break;
            }
        }
        // A significand of ones becomes the next power of two.
        let full = _mm512_test_epi64_mask(over, over);
        let first = load(&self.rounded[0]);
        store(&mut self.rounded[0], _mm512_mask_mov_epi64(first, full, set(1 << (BITS - 1))));
        let place = _mm512_sub_epi64(_mm512_add_epi64(tops, set(BITS as i64)), skipped);
        let place = _mm512_mask_sub_epi64(place, !in_first, place, set(BITS as i64));
        let place = _mm512_mask_sub_epi64(place, !before_third, place, set(BITS as i64));
        (before_third | in_third, _mm512_mask_add_epi64(place, full, place, set(1)))
    }

    /// Packs the digits of the rounded significands into limbs, the least first, those of each lane side by side.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn pack(&mut self, sizes: &DigitSizes) {
        let (DigitSizes { limbs, rounded, .. }, zero) = (*sizes, _mm512_setzero_si512());
        self.rounded[rounded..].fill(EightDigits([0; 8]));
        let limb = |digits: &[EightDigits], from_top: usize| {
            let (at, bit) = (64 * from_top / BITS, (64 * from_top % BITS) as i64);
            let Some(digits) = digits.get(at..at + 3) else { return zero };
            let up = |digit: &EightDigits, by: i64| _mm512_sllv_epi64(load(digit), _mm512_set1_epi64(by));
            let down = |digit: &EightDigits, by: i64| _mm512_srlv_epi64(load(digit), _mm512_set1_epi64(by));
            let [first, second, third] = [&digits[0], &digits[1], &digits[2]];
            let first = up(first, bit + 12);
            match bit <= 40 {
                true => _mm512_or_si512(first, down(second, 40 - bit)),
                false => _mm512_or_si512(first, _mm512_or_si512(up(second, bit - 40), down(third, 92 - bit))),
            }
        };
        for (group, out) in self.limbs.chunks_exact_mut(8).enumerate() {
            let digits = &*self.rounded;
            let columns = std::array::from_fn(|at| match limbs.checked_sub(8 * group + at + 1) {
                Some(from_top) => limb(digits, from_top),
                None => zero,
            });
            let lanes = transpose(columns);
            for (eight, limbs) in out.iter_mut().zip(lanes.iter()) {
                store(eight, *limbs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::round_integer;
    use rug::rand::RandState;
    use rug::{Integer, integer::Order};

    /// A number of `limbs` limbs, often of few bits or all ones.
    fn number(rng: &mut RandState<'_>, limbs: usize, spread: u32) -> (Vec<u64>, Head) {
        let bits = 64 * limbs as u32;
        let mut value = Integer::from(Integer::random_bits(bits, rng));
        match rng.below(6) {
            0 => value = Integer::from(rng.below(8)) << (bits - 3),
            1 => value = (Integer::from(1) << bits) - 1u32,
            2 => value &= Integer::from(7) << (bits - 3) | Integer::from(1),
            _ => {}
        }
        value.set_bit(bits - 1, true);
        let mut out = value.to_digits::<u64>(Order::Lsf);
        out.resize(limbs, 0);
        let head = Head::new(rng.below(2) == 1, i64::from(rng.below(2 * spread + 1)) - i64::from(spread));
        if rng.below(12) == 0 { (vec![0; limbs], Head::ZERO) } else { (out, head) }
    }

    /// The number as an integer times `2^-low`.
    fn integer(value: FloatRef<'_>, low: i64) -> Integer {
        let magnitude = Integer::from_digits(value.limbs, Order::Lsf);
        let exponent = value.head.exponent() - 64 * value.limbs.len() as i64 + low;
        let magnitude = magnitude << exponent as u32;
        if value.head.is_negative() { -magnitude } else { magnitude }
    }

    #[test]
    fn sums_are_rounded_correctly_or_left() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(8));
        let (mut formed, mut all) = (0, 0);
        for case in 0..1500u32 {
            let mut limbs = || 1 + rng.below(if case % 3 == 0 { MOST_LIMBS as u32 } else { 9 }) as usize;
            let (of_alpha, of_x, of_y, of_sum) = (limbs(), limbs(), limbs(), limbs());
            let precision = 64 * of_sum as u32 - if case % 2 == 0 { 0 } else { rng.below(63) };
            let spread = [0, 3, 40, 300][case as usize % 4];
            let (limbs, head) = number(&mut rng, of_alpha, spread);
            let alpha = FloatRef { head, limbs: &limbs };
            let Some(mut sums) = ScaledSums::new(alpha, of_x, of_y, precision) else { continue };
            let numbers = (0..8).map(|_| (number(&mut rng, of_x, spread), number(&mut rng, of_y, spread)));
            let mut numbers = numbers.collect::<Vec<_>>();
            if of_y == of_x && alpha.limbs[..of_alpha - 1].iter().all(|&limb| limb == 0) {
                // Sums that cancel except for the last bit, or completely.
                for (x, y) in &mut numbers[..4] {
                    y.0.clone_from(&x.0);
                    y.0[0] ^= u64::from(case % 5 == 0);
                    let negative = alpha.head.is_negative() == x.1.is_negative();
                    y.1 = if x.1.is_zero() {
                        x.1
                    } else {
                        Head::new(negative, alpha.head.exponent() + x.1.exponent() - 1)
                    };
                }
            }
            let count = 1 + case as usize % 8;
            let refs = numbers.iter().map(|(x, y)| ScaledPair {
                x: FloatRef { head: x.1, limbs: &x.0 },
                y: FloatRef { head: y.1, limbs: &y.0 },
            });
            let pairs = refs.take(count).collect::<Vec<_>>();
            let done = sums.form(&pairs);
            assert_eq!(u32::from(done) >> count, 0);
            for (lane, ScaledPair { x, y }) in pairs.iter().enumerate() {
                all += 1;
                if done >> lane & 1 == 0 {
                    continue;
                }
                formed += 1;
                let low = 6000;
                let exact = integer(alpha, low) * integer(*x, low) + (integer(*y, low) << low as u32);
                let mut want = vec![0; of_sum];
                let wanted = round_integer(exact < 0, exact.as_limbs(), -2 * low, precision, &mut want);
                let mut out = vec![0xdead; of_sum];
                let head = sums.get(lane, &mut out);
                assert_eq!((head, out), (wanted, want), "case {case}, lane {lane}: {alpha:?} {x:?} {y:?}");
            }
        }
        assert!(all == 0 || 2 * formed > all, "{formed} of {all}");
    }
}
