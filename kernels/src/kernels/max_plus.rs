//! Products of matrices of exponents in the (max, +) semiring: the size of the largest term of each sum of products.
//!
//! A *depth* is the distance of an exponent below that of the norm of its column: a negated 16-bit number, so that 16
//! depths fit in a vector. Sums saturate and maxima do not depend on order, so every instruction set gives the same
//! result. Depends on: heads of big floats. Independent of: the use of the depths, threads.

use crate::math::float::Head;
#[cfg(target_arch = "x86_64")]
use crate::math::processor::processor_has;

/// Columns of a panel.
pub const PANEL: usize = 32;

/// The depths of one row of a panel.
pub type DepthRow = [i16; PANEL];

/// The depth of the number 0, and of a sum in which every term has a factor 0.
pub const EMPTY: i16 = i16::MIN;

/// Depths from this one on are not distinguished: the sum of two of them is above [`EMPTY`].
pub const DEEPEST: i16 = i16::MIN / 2 + 1;

/// Rows of the left operand at a time: the sums of four of its columns stay in registers.
const TOGETHER: usize = 4;

/// Rows whose depths stay in the first cache.
const CHUNK_ROWS: usize = 256;

/// The depth of an entry in a column whose norm is at most 2 to the power `norm_exponent`.
#[inline]
pub fn depth(head: Head, norm_exponent: i64) -> i16 {
    if head.is_zero() { EMPTY } else { (head.exponent() - norm_exponent).clamp(DEEPEST.into(), 0) as i16 }
}

/// The depths of neighbouring entries, each below the norm of its own column.
pub fn depths(heads: &[u64], norm_exponents: &[i64], out: &mut [i16]) {
    #[cfg(target_arch = "x86_64")]
    if processor_has!(Avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl") {
        // SAFETY: the CPU has the features that `depths_avx512` needs.
        return unsafe { depths_avx512(heads, norm_exponents, out) };
    }
    depths_portable(heads, norm_exponents, out);
}

/// [`depths_portable`] with wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn depths_avx512(heads: &[u64], norm_exponents: &[i64], out: &mut [i16]) {
    depths_portable(heads, norm_exponents, out);
}

#[inline(always)]
fn depths_portable(heads: &[u64], norm_exponents: &[i64], out: &mut [i16]) {
    for ((&head, &norm), out) in heads.iter().zip(norm_exponents).zip(out) {
        *out = depth(Head(head), norm);
    }
}

/// The least and the largest exponent of entries that are not 0, each less that of the norms of its row and column;
/// `least` is above `largest` where there are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Of the smallest entry.
    pub least: i64,
    /// Of the largest entry.
    pub largest: i64,
}

impl Spread {
    /// Of no entries.
    pub const EMPTY: Spread = Spread { least: i64::MAX, largest: i64::MIN };

    /// With neighbouring entries, each below the norm of its own row, of a column of the norm `other`.
    pub fn with(self, heads: &[u64], norm_exponents: &[i64], other: i64) -> Spread {
        #[cfg(target_arch = "x86_64")]
        if processor_has!(Avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl") {
            // SAFETY: the CPU has the features that `spread_avx512` needs.
            return unsafe { spread_avx512(self, heads, norm_exponents, other) };
        }
        spread_portable(self, heads, norm_exponents, other)
    }
}

/// [`spread_portable`] with wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn spread_avx512(so_far: Spread, heads: &[u64], norm_exponents: &[i64], other: i64) -> Spread {
    spread_portable(so_far, heads, norm_exponents, other)
}

#[inline(always)]
fn spread_portable(so_far: Spread, heads: &[u64], norm_exponents: &[i64], other: i64) -> Spread {
    let Spread { mut least, mut largest } = so_far;
    for (&head, &norm) in heads.iter().zip(norm_exponents) {
        let exponent = Head(head).exponent() - norm - other;
        least = least.min(if head == 0 { i64::MAX } else { exponent });
        largest = largest.max(if head == 0 { i64::MIN } else { exponent });
    }
    Spread { least, largest }
}

/// `sums[i][j] = max_k left[k][i] + right[k][j]`, or [`EMPTY`] if every sum has an empty part.
pub fn largest_sums(left: &[DepthRow], right: &[DepthRow], sums: &mut [DepthRow; PANEL]) {
    sums.fill([EMPTY; PANEL]);
    raise_sums(left, right, sums);
}

/// Replaces `sums[i][j]` by the maximum of itself and all `left[k][i] + right[k][j]`.
pub fn raise_sums(left: &[DepthRow], right: &[DepthRow], sums: &mut [DepthRow; PANEL]) {
    #[cfg(target_arch = "x86_64")]
    if processor_has!(Avx2: "avx2") {
        // SAFETY: the CPU has the one feature that `avx2` needs.
        return unsafe { avx2(left, right, sums) };
    }
    portable(left, right, sums);
}

/// [`portable`] with wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(left: &[DepthRow], right: &[DepthRow], sums: &mut [DepthRow; PANEL]) {
    portable(left, right, sums);
}

/// The definition; the compiler makes vectors of the inner loop.
#[inline(always)]
fn portable(left: &[DepthRow], right: &[DepthRow], sums: &mut [DepthRow; PANEL]) {
    for (left, right) in left.chunks(CHUNK_ROWS).zip(right.chunks(CHUNK_ROWS)) {
        for (group, sums) in sums.chunks_exact_mut(TOGETHER).enumerate() {
            let mut own = [[EMPTY; PANEL]; TOGETHER];
            own.copy_from_slice(sums);
            for (left, right) in left.iter().zip(right) {
                for (sums, &left) in own.iter_mut().zip(&left[group * TOGETHER..]) {
                    for (sum, &right) in sums.iter_mut().zip(right) {
                        *sum = (*sum).max(left.saturating_add(right));
                    }
                }
            }
            sums.copy_from_slice(&own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_largest_and_empty_ones_are_told_apart() {
        let mut state = 88_172_645_463_325_252u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for rows in [0, 1, 2, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS] {
            let mut panel = |zeros: u64| {
                let mut value = |_| match next() % 10 {
                    x if x < zeros => EMPTY,
                    9 => DEEPEST,
                    _ => -((next() % 3000) as i16),
                };
                (0..rows).map(|_| std::array::from_fn(&mut value)).collect::<Vec<DepthRow>>()
            };
            let (left, mut right) = (panel(8), panel(3));
            right.iter_mut().for_each(|row| row[5] = EMPTY);
            let mut sums = [[7; PANEL]; PANEL];
            largest_sums(&left, &right, &mut sums);
            let mut plain = [[EMPTY; PANEL]; PANEL];
            portable(&left, &right, &mut plain);
            assert_eq!(sums, plain);
            for (i, sums) in sums.iter().enumerate() {
                for (j, &sum) in sums.iter().enumerate() {
                    let terms = left.iter().zip(&right).filter(|(l, r)| l[i] != EMPTY && r[j] != EMPTY);
                    let want = terms.map(|(l, r)| i32::from(l[i]) + i32::from(r[j])).max();
                    assert_eq!((sum != EMPTY).then_some(i32::from(sum)), want, "{rows} rows, ({i}, {j})");
                }
            }
        }
    }

    #[test]
    fn neighbours_have_the_depths_and_the_spread_of_single_entries() {
        let exponents =
            [0i64, 5, -3, 1, -40, i64::from(DEEPEST), -(1 << 59), 1 << 59, 7, -1, 2, 3, -70_000, 9, 8, 4, 6];
        for count in 0..=exponents.len() {
            for zeros in [0usize, 1, 2, 3] {
                let head = |(at, &exponent): (usize, &i64)| match zeros > 0 && at % zeros == 0 {
                    true => Head::ZERO,
                    false => Head::new(at % 2 == 1, exponent),
                };
                let heads = exponents[..count].iter().enumerate().map(head).collect::<Vec<_>>();
                let words = heads.iter().map(|head| head.0).collect::<Vec<_>>();
                let norms = (0..count as i64).map(|at| 3 * at - 20).collect::<Vec<_>>();
                let mut got = vec![1; count];
                depths(&words, &norms, &mut got);
                let want = heads.iter().zip(&norms).map(|(&head, &norm)| depth(head, norm)).collect::<Vec<_>>();
                assert_eq!(got, want);
                let places = heads.iter().zip(&norms).filter(|(head, _)| !head.is_zero());
                let own = places.map(|(head, norm)| head.exponent() - norm - 11).collect::<Vec<_>>();
                let spread = Spread::EMPTY.with(&words, &norms, 11);
                assert_eq!(spread.least, own.iter().copied().min().unwrap_or(i64::MAX));
                assert_eq!(spread.largest, own.iter().copied().max().unwrap_or(i64::MIN));
                let parts = Spread::EMPTY.with(&words[..count / 2], &norms, 11);
                assert_eq!(parts.with(&words[count / 2..], &norms[count / 2..], 11), spread);
            }
        }
    }

    #[test]
    fn depths_keep_their_sums_above_empty() {
        let head = |exponent| Head::new(false, exponent);
        assert_eq!(depth(Head::ZERO, 5), EMPTY);
        assert_eq!((depth(head(5), 5), depth(head(-3), 5)), (0, -8));
        let deep = i64::from(DEEPEST);
        assert_eq!((depth(head(deep + 1), 1), depth(head(deep - 9), 0)), (DEEPEST, DEEPEST));
        assert!(DEEPEST.checked_add(DEEPEST).unwrap() > EMPTY && (DEEPEST - 1).checked_mul(2).unwrap() == EMPTY);
        assert_eq!(EMPTY.saturating_add(-1), EMPTY);
    }
}
