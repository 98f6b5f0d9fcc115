//! The innermost loops: a register tile of 52-bit multiply-adds, and the fold of its sums modulo `p = 2^52 - c`.
//!
//! Layout: an operand panel is `[row][8 columns]`, so one 64-byte load takes 8 columns of one row, and one column of
//! the other operand is a broadcast. A tile is one panel of X times one of Y.
//! Bounds: docs/ALGORITHM.md, "Sums and folds of the IFMA kernel".

use crate::math::bound::IFMA52_CHUNK_ROWS;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Rows per turn of the inner loop.
const UNROLL: usize = 4;

/// The constants for folding modulo a prime `2^52 - c`, in every lane.
#[derive(Clone, Copy)]
pub struct Fold {
    prime: __m512i,
    c: __m512i,
    mask: __m512i,
}

impl Fold {
    /// Constants of `prime`, which lies in `(2^52 - 2^14, 2^52)`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(prime: u64) -> Fold {
        let prime = _mm512_set1_epi64(prime as i64);
        let c = _mm512_sub_epi64(_mm512_set1_epi64(1 << 52), prime);
        Fold { prime, c, mask: _mm512_set1_epi64((1 << 52) - 1) }
    }

    /// `lo + 2^52 hi mod p`, least residue, for `lo`, `hi` sums of at most 4093 terms below `2^52`.
    ///
    /// With `hi = h0 + 2^52 h1` and `2^52 = c`: `2^52 hi = c h0 + c^2 h1`, of which the low half of `c h0` joins `lo`,
    /// and its high half with `c h1` is multiplied by `c` once more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn fold(&self, lo: __m512i, hi: __m512i) -> __m512i {
        let high = _mm512_madd52hi_epu64(_mm512_setzero_si512(), hi, self.c);
        let high = _mm512_madd52lo_epu64(high, _mm512_srli_epi64::<52>(hi), self.c);
        let low = _mm512_madd52lo_epu64(lo, hi, self.c);
        self.least(_mm512_madd52lo_epu64(low, high, self.c))
    }

    /// The least residue of any 64-bit `sum`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn least(&self, sum: __m512i) -> __m512i {
        let low = _mm512_and_si512(sum, self.mask);
        let near = _mm512_madd52lo_epu64(low, _mm512_srli_epi64::<52>(sum), self.c);
        _mm512_min_epu64(near, _mm512_sub_epi64(near, self.prime))
    }

    /// `a - b mod p` for least residues.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn subtract(&self, a: __m512i, b: __m512i) -> __m512i {
        let difference = _mm512_sub_epi64(a, b);
        _mm512_min_epu64(difference, _mm512_add_epi64(difference, self.prime))
    }

    /// `-a mod p` where `negative` is set, else `a`; minus zero becomes `p`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn negate(&self, negative: u8, a: __m512i) -> __m512i {
        _mm512_mask_sub_epi64(a, negative, self.prime, a)
    }

    /// `a + b mod p` for least residues.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn add(&self, a: __m512i, b: __m512i) -> __m512i {
        let sum = _mm512_add_epi64(a, b);
        _mm512_min_epu64(sum, _mm512_sub_epi64(sum, self.prime))
    }

    /// `a * b mod p` for operands below `2^52`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn multiply(&self, a: __m512i, b: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        self.fold(_mm512_madd52lo_epu64(zero, a, b), _mm512_madd52hi_epu64(zero, a, b))
    }
}

/// One register tile: `C := C + X^T Y` (or `:= X^T Y`) for one panel of X and one of Y, an 8 x 8 block of C.
///
/// Sixteen accumulators hide the latency of the multiply-adds, and each row costs one load and eight broadcasts for
/// sixteen of them.
///
/// # Safety
/// `tile.x` and `tile.y` point to at least `rows <= 4092` rows of 8 words, `c` to a block of 64 words, each below
/// `2^52` for [`Store::Add`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn tile(fold: &Fold, tile: RegisterTile, rows: usize, c: *mut u64, into: Store) {
    assert!(rows <= IFMA52_CHUNK_ROWS);
    let mut lo = [_mm512_setzero_si512(); BLOCK];
    let mut hi = [_mm512_setzero_si512(); BLOCK];
    let (mut x, mut y) = (tile.x, tile.y);
    let (mut next_x, mut next_y) = (tile.next_x, tile.next_y);
    // SAFETY: the caller promises `rows` rows behind both pointers, and the block behind `c`.
    unsafe {
        for column in 0..BLOCK {
            _mm_prefetch::<_MM_HINT_T0>(c.add(column * BLOCK).cast());
        }
        macro_rules! row {
            ($at:expr) => {
                let left = _mm512_loadu_si512(x.add($at * BLOCK).cast());
                for column in 0..BLOCK {
                    let right = _mm512_set1_epi64(*y.add(column + $at * BLOCK) as i64);
                    lo[column] = _mm512_madd52lo_epu64(lo[column], left, right);
                    hi[column] = _mm512_madd52hi_epu64(hi[column], left, right);
                }
            };
        }
        for _ in 0..rows / UNROLL {
            row!(0);
            row!(1);
            row!(2);
            row!(3);
            _mm_prefetch::<_MM_HINT_T0>(next_y.cast());
            _mm_prefetch::<_MM_HINT_T1>(next_x.cast());
            next_y = next_y.wrapping_add(BLOCK);
            next_x = next_x.wrapping_add(BLOCK);
            x = x.add(UNROLL * BLOCK);
            y = y.add(UNROLL * BLOCK);
        }
        for _ in 0..rows % UNROLL {
            row!(0);
            x = x.add(BLOCK);
            y = y.add(BLOCK);
        }
        for column in 0..BLOCK {
            let at = c.add(column * BLOCK);
            let start = if into == Store::Add { _mm512_loadu_si512(at.cast()) } else { _mm512_setzero_si512() };
            _mm512_storeu_si512(at.cast(), fold.fold(_mm512_add_epi64(lo[column], start), hi[column]));
        }
    }
}

/// Operands of one register tile.
#[derive(Clone, Copy)]
pub struct RegisterTile {
    /// Panel of X.
    pub x: *const u64,
    /// Panel of Y.
    pub y: *const u64,
    /// Where to fetch lines of a later X ahead, one every 4 rows; never read.
    pub next_x: *const u64,
    /// Where to fetch lines of the next Y ahead, one every 4 rows; never read.
    pub next_y: *const u64,
}

/// The combination of a product with the words of C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// They are overwritten, dirty or not.
    Overwrite,
    /// They are least residues, to be added to.
    Add,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::family::ifma52_primes;

    /// The longest sums that a fold takes, whose low halves fill their words except for two digits.
    #[test]
    fn the_largest_sums_are_folded_right() {
        if let Err(reason) = crate::kernels::x86_64::ifma52::probe() {
            println!("skipped: {reason}");
            return;
        }
        const MOST: u64 = (1 << 52) - 1;
        const TERMS: u64 = IFMA52_CHUNK_ROWS as u64 + 1;
        assert!((TERMS + 2).checked_mul(MOST + 1).is_some() && (TERMS + 3).checked_mul(MOST + 1).is_none());
        let primes = ifma52_primes();
        for prime in [primes[0], primes[primes.len() - 1]] {
            for (lo, hi) in [(0, 0), (MOST, MOST), (TERMS * MOST, TERMS * MOST), (TERMS * MOST, 0), (0, TERMS * MOST)] {
                let mut words = [0u64; BLOCK];
                // SAFETY: `probe` found the instructions; the array has 8 words.
                unsafe {
                    let [low, high] = [lo, hi].map(|sum| _mm512_set1_epi64(sum as i64));
                    _mm512_storeu_si512(words.as_mut_ptr().cast(), Fold::new(prime).fold(low, high));
                }
                let wanted = (u128::from(lo) + (u128::from(hi) << 52)) % u128::from(prime);
                assert!(words.iter().all(|&word| u128::from(word) == wanted), "{lo} and {hi} modulo {prime}");
            }
        }
    }

    /// A chunk as long as it may be, with the largest low halves, then the largest high halves, on residues as large as
    /// they can be.
    #[test]
    fn the_longest_chunk_of_the_largest_words_is_folded_right() {
        if let Err(reason) = crate::kernels::x86_64::ifma52::probe() {
            println!("skipped: {reason}");
            return;
        }
        const MOST: u64 = (1 << 52) - 1;
        let rows = IFMA52_CHUNK_ROWS;
        let primes = ifma52_primes();
        for prime in [primes[0], primes[primes.len() - 1]] {
            for (x, y) in [(MOST, 1), (1, MOST), (MOST, MOST), (prime - 1, prime - 1)] {
                let (left, right) = (vec![x; rows * BLOCK], vec![y; rows * BLOCK]);
                let mut c = [MOST; BLOCK * BLOCK];
                let operands =
                    RegisterTile { x: left.as_ptr(), y: right.as_ptr(), next_x: left.as_ptr(), next_y: right.as_ptr() };
                // SAFETY: `probe` found the instructions; both operands have `rows` rows of 8 words, `c` has 64 words.
                unsafe { tile(&Fold::new(prime), operands, rows, c.as_mut_ptr(), Store::Add) };
                let product = u128::from(x) * u128::from(y) % u128::from(prime);
                let wanted = (u128::from(MOST) + rows as u128 * product) % u128::from(prime);
                assert!(c.iter().all(|&word| u128::from(word) == wanted), "{x} times {y} modulo {prime}");
            }
        }
    }
}
