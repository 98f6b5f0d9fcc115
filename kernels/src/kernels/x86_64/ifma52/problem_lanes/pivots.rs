//! Square roots and reciprocals of eight pivots at once, in digits.
//!
//! `z` rises to `1 / sqrt(t)` for the pivot's square `t`, scaled to `1/4 <= t < 1`: each step triples its digits and is
//! cut downwards, so that no number here is below 0. Root and reciprocal are products with it.
//! Bounds: docs/ALGORITHM.md, "Eight problems in lanes".

use super::numbers::{DIGIT_BITS, MASK, carry, lanes, load, multiply, shift, store, vector};
use crate::math::bound::{LANE_ERROR_BITS, lane_root_bits};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Half-width of the window around one half, in the first digit below 1, in which rounding is left to the caller.
pub const WINDOW: i64 = 1 << (DIGIT_BITS - LANE_ERROR_BITS as usize);

/// Bits of the first `z`, from doubles.
const FIRST_BITS: usize = 46;

/// Eight pivots as divisors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reciprocals {
    /// Digits of `2^(52 fraction) / L` that lie above its point.
    pub fraction: usize,
    /// Digits of the longest.
    pub count: usize,
    /// Bits of the longest root.
    pub longest: usize,
}

/// Digits of fractions for roots of `bits` bits.
fn fraction_digits(bits: u32) -> usize {
    (bits as usize + 44).div_ceil(DIGIT_BITS)
}

/// The largest number of digits of a reciprocal.
pub fn reciprocal_digits(bits: u32) -> usize {
    // `fraction` digits for a root of `bits + 1` bits, whose ends lie `bits / 2` bits apart.
    let (bits, fraction) = (bits as usize, (2 * bits as usize + 37).div_ceil(DIGIT_BITS));
    (DIGIT_BITS * fraction + 2 - lane_root_bits(bits as u32) as usize).div_ceil(DIGIT_BITS)
}

/// Words of scratch.
pub fn space_words(bits: u32, digits: usize) -> usize {
    let fraction = fraction_digits(bits);
    (9 * (fraction + 3) + 2 * (fraction + 3) + digits + 1) * BLOCK
}

/// The next `vectors` vectors of some space.
fn take<'s>(space: &mut &'s mut [u64], vectors: usize) -> &'s mut [u64] {
    let (own, rest) = std::mem::take(space).split_at_mut(vectors * BLOCK);
    *space = rest;
    own
}

/// Writes the roots of eight positive numbers, each of `lengths` bits, and their reciprocals; the lanes in which a root
/// is too close to half an integer. Roots are below `2^(bits + 1)`, and have [`lane_root_bits`] at least.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn find(
    bits: u32,
    squares: &[u64],
    lengths: &[i64; BLOCK],
    roots: &mut [u64],
    reciprocals: &mut [u64],
    mut space: &mut [u64],
) -> (u8, Reciprocals) {
    let (count, unit) = (fraction_digits(bits), DIGIT_BITS as i64);
    let halves = lengths.map(|length| (length + 1) / 2);
    let top = unit * (count as i64 + 1);
    let space = &mut space;
    let (t, z) = (take(space, count + 1), take(space, count + 2));
    shift(squares, &halves.map(|half| top - 2 * half), t);
    inverse_roots(bits, t, z, space);
    // r = t z, with one digit more of fraction.
    let r = take(space, count + 2);
    multiply(t, &z[..(count + 1) * BLOCK], count, r);
    let unclear = round_roots(r, &halves.map(|half| half - unit * count as i64), roots, space);
    // l = L / 2^half, and the difference of 1 and its product with z: v, with an offset that makes it positive.
    let (l, b) = (take(space, count + 2), take(space, count + 3));
    shift(roots, &halves.map(|half| top - half), l);
    multiply(l, &z[..(count + 1) * BLOCK], count, b);
    let (shortest, longest) =
        (halves.iter().min().map_or(0, |&half| half), halves.iter().max().map_or(0, |&half| half));
    let lead = ((shortest - 2).max(0) / unit) as usize;
    let (used, mut more) = (count + 2 - lead, _mm512_setzero_si512());
    let mask = _mm512_set1_epi64(MASK);
    for at in 0..used {
        let ones = i64::from(at == count + 1) + i64::from(at == count + 1 - lead);
        let sum = _mm512_sub_epi64(_mm512_add_epi64(_mm512_set1_epi64(ones), more), load(b, at));
        more = _mm512_srai_epi64::<52>(sum);
        store(b, at, _mm512_and_si512(sum, mask));
    }
    // w = z + z v.
    let w = l;
    multiply(&z[..(count + 1) * BLOCK], &b[..used * BLOCK], count + 1, r);
    for at in 0..count + 2 {
        let own = |of: &[u64], at: usize, end: usize| if at < end { load(of, at) } else { _mm512_setzero_si512() };
        let sum = _mm512_add_epi64(own(z, at, count + 1), own(r, at, used));
        store(w, at, _mm512_sub_epi64(sum, own(z, at + lead, count + 1)));
    }
    carry(w);
    let fraction = (bits as usize + longest as usize + 36).div_ceil(DIGIT_BITS);
    let all = DIGIT_BITS * fraction;
    let digits = (all + 2 - shortest as usize).div_ceil(DIGIT_BITS);
    let down = unit * count as i64;
    shift(w, &halves.map(|half| all as i64 - half - down), &mut reciprocals[..digits * BLOCK]);
    (unclear, Reciprocals { fraction, count: digits, longest: longest as usize })
}

/// `floor(r 2^shift + 1/2)` for the fractions `r`; the lanes that are too close to a half.
#[target_feature(enable = "avx512f")]
pub fn round_roots(r: &[u64], shifts: &[i64; BLOCK], roots: &mut [u64], space: &mut &mut [u64]) -> u8 {
    let digits = roots.len() / BLOCK;
    let cut = take(space, digits + 1);
    shift(r, shifts, cut);
    let half = _mm512_set1_epi64(1 << (DIGIT_BITS - 1));
    let below = load(cut, 0);
    let distance = _mm512_abs_epi64(_mm512_sub_epi64(below, half));
    let up = _mm512_cmpgt_epu64_mask(below, half);
    roots.copy_from_slice(&cut[BLOCK..]);
    store(roots, 0, _mm512_add_epi64(load(roots, 0), _mm512_maskz_set1_epi64(up, 1)));
    carry(roots);
    _mm512_cmple_epu64_mask(distance, _mm512_set1_epi64(WINDOW))
}

/// `z <= 1 / sqrt(t)`, to a relative `2^-(bits + 36)`, for `1/4 <= t < 1` with a digit more of fraction.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_roots(bits: u32, t: &[u64], z: &mut [u64], space: &mut &mut [u64]) {
    let count = t.len() / BLOCK - 1;
    let leading = lanes(load(t, count));
    let first = leading.map(|digit| {
        let t = digit as f64 / (1u64 << DIGIT_BITS) as f64;
        // Less by more than the error of two roundings and of the digits below.
        let z = (1.0 - 1.0 / (1u64 << 47) as f64) / t.sqrt();
        (z * (1u64 << DIGIT_BITS) as f64) as i64
    });
    store(z, 0, _mm512_and_si512(vector(&first), _mm512_set1_epi64(MASK)));
    store(z, 1, _mm512_srli_epi64::<52>(vector(&first)));
    let buffers = PivotBuffers {
        square: take(space, 2 * count + 3),
        product: take(space, count + 3),
        step: take(space, count + 3),
        change: take(space, count + 3),
    };
    let PivotBuffers { square, product, step, change } = buffers;
    let (mut have, mut right) = (1, FIRST_BITS);
    while right < bits as usize + 36 {
        let next = (3 * right + 2).div_ceil(DIGIT_BITS).min(count).max(have);
        let buffers =
            PivotBuffers { square: &mut *square, product: &mut *product, step: &mut *step, change: &mut *change };
        refine(t, z, PivotStep { have, next, lead: (right - 2) / DIGIT_BITS }, buffers);
        right = (3 * right - 5).min(DIGIT_BITS * next - 7) - 1;
        have = next;
    }
    // Digits that none has reached.
    assert!(have == count);
}

/// Digits of fraction before and after one step, and the first ones of its error, which are 0.
struct PivotStep {
    have: usize,
    next: usize,
    lead: usize,
}

/// Memory of one step.
struct PivotBuffers<'s> {
    square: &'s mut [u64],
    product: &'s mut [u64],
    step: &'s mut [u64],
    change: &'s mut [u64],
}

/// `z := z (1 + e/2 + 3 e^2 / 8)` with `e = 1 - t z^2`, from `have` to `next` digits of fraction; the first `lead`
/// digits of the fraction of `e` are 0.
#[target_feature(enable = "avx512f,avx512ifma")]
fn refine(t: &[u64], z: &mut [u64], PivotStep { have, next, lead }: PivotStep, buffers: PivotBuffers<'_>) {
    let PivotBuffers { square, product: e, step: g, change } = buffers;
    let (count, mask) = (t.len() / BLOCK, _mm512_set1_epi64(MASK));
    let used = count.min(next + 2);
    let t = &t[(count - used) * BLOCK..];
    let old = &z[..(have + 1) * BLOCK];
    let square = &mut square[..(2 * have + 2) * BLOCK];
    multiply(old, old, 0, square);
    multiply(t, square, used + 2 * have - (next + 1), e);
    let mut more = _mm512_set1_epi64(-(2 * used as i64 + 1));
    for at in 0..next + 2 {
        let one = _mm512_set1_epi64(i64::from(at == next + 1));
        let sum = _mm512_sub_epi64(_mm512_add_epi64(one, more), load(e, at));
        more = _mm512_srai_epi64::<52>(sum);
        store(e, at, _mm512_and_si512(sum, mask));
    }
    let digits = next + 1 - lead;
    let e = &e[..digits * BLOCK];
    // (4 e + 3 e^2) / 8.
    let squared = (2 * digits).saturating_sub(next + 1);
    if squared > 0 {
        multiply(e, e, next + 1, change);
    }
    let mut more = _mm512_setzero_si512();
    for at in 0..digits {
        let mut sum = _mm512_add_epi64(_mm512_slli_epi64::<2>(load(e, at)), more);
        if at < squared {
            let own = load(change, at);
            sum = _mm512_add_epi64(sum, _mm512_add_epi64(own, _mm512_slli_epi64::<1>(own)));
        }
        more = _mm512_srli_epi64::<52>(sum);
        store(g, at, _mm512_and_si512(sum, mask));
    }
    store(g, digits, more);
    for at in 0..digits {
        let high = _mm512_and_si512(_mm512_slli_epi64::<49>(load(g, at + 1)), mask);
        store(g, at, _mm512_or_si512(_mm512_srli_epi64::<3>(load(g, at)), high));
    }
    multiply(old, &g[..digits * BLOCK], have + 1, change);
    z.copy_within(..(have + 1) * BLOCK, (next - have) * BLOCK);
    z[..(next - have) * BLOCK].fill(0);
    store(z, 0, _mm512_sub_epi64(load(z, 0), _mm512_set1_epi64(1)));
    for at in 0..digits {
        store(z, at, _mm512_add_epi64(load(z, at), load(change, at)));
    }
    carry(&mut z[..(next + 1) * BLOCK]);
}
