//! Big floats to residues: digits straight from the limbs, then one small product with the radix powers.
//!
//! A panel's lanes are its 8 columns. Each entry's fixed-point digits are cut out of its limbs where they lie: a
//! masked 64-byte load, a byte permutation and one variable shift give 8 digits of 52 bits; bits above them may be
//! garbage, which the multiply-adds ignore. The rounding bit is one more term of the sum, so no carry runs through
//! the digits, and the sign is applied to the finished residue.
//! Bounds: docs/ALGORITHM.md, "Residues as a product".

use super::micro::Fold;
use super::tables::Tables;
use super::transpose::transpose;
use crate::kernels::PanelSource;
use crate::math::float::Head;
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows converted together.
const ROWS: usize = 4;

/// Windows larger than this bypass the caches: they would be evicted before the products read them.
const STREAM_BYTES: usize = 24 << 20;

/// Words of scratch for operands of `digits` digits.
pub fn scratch_words(digits: usize) -> usize {
    digits.next_multiple_of(8) * (ROWS * BLOCK + BLOCK)
}

/// Fills one panel of the planes of `primes`; see `PlaneEngine::to_residues`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn to_residues(
    tables: &Tables,
    primes: Range<usize>,
    source: &PanelSource<'_>,
    planes: &mut [&mut [u64]],
    scratch: &mut [u64],
) {
    let rows = source.rows.len();
    assert!(source.columns.len() <= BLOCK && source.columns.end <= source.view.cols());
    assert!(source.rows.end <= source.view.rows() && source.shifts.len() >= source.columns.end);
    assert!(planes.len() == primes.len() && planes.iter().all(|plane| plane.len() >= rows * BLOCK));
    assert!(primes.end <= tables.count());
    let padded = tables.operand_digits.next_multiple_of(8);
    let (digits, staging) = scratch[..scratch_words(tables.operand_digits)].split_at_mut(padded * ROWS * BLOCK);
    let window_bytes = 8 * primes.len() * rows * source.view.cols();
    let aligned = planes.iter().all(|plane| (plane.as_ptr() as usize).is_multiple_of(64));
    let stream = aligned && window_bytes > STREAM_BYTES;
    let mut first = 0;
    while first < rows {
        let count = ROWS.min(rows - first);
        let mut signs = [0u8; ROWS];
        let mut carries = [0u8; ROWS];
        for offset in 0..count {
            let row = source.rows.start + first + offset;
            (signs[offset], carries[offset]) = row_digits(source, row, padded, staging);
            spread(staging, padded, &mut digits[offset * BLOCK..]);
        }
        let group = Group { digits, signs, carries, first, stream };
        // A short last group reads what earlier rows left in `digits` and stores only its own rows.
        residues_of_group(tables, primes.clone(), &group, count, planes);
        first += count;
    }
    _mm_sfence(); // streamed words must be visible before another thread is told of them
}

/// Digits of the 8 entries of one row, entry after entry, `padded` words each; their signs and rounding bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn row_digits(source: &PanelSource<'_>, row: usize, padded: usize, staging: &mut [u64]) -> (u8, u8) {
    let limbs_per_element = source.view.limbs_per_element();
    let bits = limbs_per_element as i64 * 64;
    let (mut signs, mut carries) = (0u8, 0u8);
    for lane in 0..BLOCK {
        let out = &mut staging[lane * padded..][..padded];
        let column = source.columns.start + lane;
        let index = if column < source.columns.end { source.view.element_index(row, column) } else { usize::MAX };
        prefetch_limbs(source, index, row);
        let head = if index == usize::MAX { Head::ZERO } else { Head(source.view.all_heads()[index]) };
        if head.is_zero() {
            out.fill(0);
            continue;
        }
        let limbs = &source.view.all_limbs()[index * limbs_per_element..][..limbs_per_element];
        // The scaled integer is the significand, an integer of `bits` bits, shifted right by `drop`.
        let drop = (bits - head.exponent() - source.shifts[column]).clamp(-(1 << 20), bits + 1);
        cut_digits(limbs, drop, out);
        signs |= u8::from(head.is_negative()) << lane;
        carries |= u8::from(drop > 0 && rounds_up(limbs, drop as usize)) << lane;
    }
    (signs, carries)
}

/// Rows ahead of their use at which limbs are fetched: their latency is what the conversion would wait for.
const AHEAD: usize = 2 * ROWS;

/// Fetches the limbs of the entry `AHEAD` rows below entry `index` of row `row`.
#[inline]
fn prefetch_limbs(source: &PanelSource<'_>, index: usize, row: usize) {
    if index == usize::MAX || row + AHEAD >= source.rows.end {
        return;
    }
    let limbs = source.view.limbs_per_element();
    let ahead = &source.view.all_limbs()[(index + AHEAD * source.view.row_stride()) * limbs..][..limbs];
    for line in ahead.chunks(8) {
        // SAFETY: the pointer is that of a live slice, and fetching changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Whether dropping the low `drop >= 1` bits rounds away from zero: to nearest, ties to even.
///
/// No branch depends on random bits; only an apparent tie looks at the limbs below.
#[inline]
fn rounds_up(limbs: &[u64], drop: usize) -> bool {
    let (word, shift) = ((drop - 1) / 64, (drop - 1) % 64);
    if word >= limbs.len() {
        return false;
    }
    let next = if word + 1 < limbs.len() { limbs[word + 1] } else { 0 };
    let pair = (u128::from(next) << 64) | u128::from(limbs[word]);
    let (guard, odd) = (pair >> shift & 1 == 1, pair >> (shift + 1) & 1 == 1);
    let below = limbs[word] & ((1u64 << shift) - 1) != 0;
    let tie_so_far = guard & !odd & !below;
    (guard & (odd | below)) || (tie_so_far && limbs[..word].iter().any(|&limb| limb != 0))
}

/// For each of 8 digits, the 8 bytes from the one in which it begins: digit `i` starts at bit `52 i`.
const DIGIT_BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        bytes[at] = (at / 8 * 52 / 8 + at % 8) as u8;
        at += 1;
    }
    bytes
};

/// Writes `out.len()` (a multiple of 8) digits of `integer >> drop`; bits from 52 up are garbage.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn cut_digits(limbs: &[u64], drop: i64, out: &mut [u64]) {
    let bytes = limbs.len() as i64 * 8;
    let index = load_bytes(&DIGIT_BYTES);
    let odd = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    let shift = _mm512_add_epi64(odd, _mm512_set1_epi64(drop.rem_euclid(8)));
    for (group, digits) in out.chunks_exact_mut(8).enumerate() {
        let start = drop.div_euclid(8) + 52 * group as i64;
        // Bytes `low..high` of the 64 belong to the integer; beyond it every bit is 0.
        let inside = start > -64 && start < bytes;
        let (low, high) = ((-start).max(0), (bytes - start).min(64));
        let mask = if inside { (u64::MAX << low) & (u64::MAX >> (64 - high)) } else { 0 };
        // SAFETY: the mask keeps only bytes of `limbs`; `digits` has 8 words.
        unsafe {
            let loaded = _mm512_maskz_loadu_epi8(mask, limbs.as_ptr().cast::<i8>().wrapping_offset(start as isize));
            let words = _mm512_permutexvar_epi8(index, loaded);
            _mm512_storeu_si512(digits.as_mut_ptr().cast(), _mm512_srlv_epi64(words, shift));
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Turns the digits of 8 entries into one vector per digit, `ROWS * 8` words from digit to digit.
#[inline]
#[target_feature(enable = "avx512f")]
fn spread(staging: &[u64], padded: usize, digits: &mut [u64]) {
    assert!(staging.len() >= BLOCK * padded && digits.len() >= (padded - 1) * ROWS * BLOCK + BLOCK);
    for group in (0..padded).step_by(8) {
        // SAFETY: entry `lane` has `padded` words in `staging`, digit `group + digit` its vector in `digits`.
        unsafe {
            let entries =
                std::array::from_fn(|lane| _mm512_loadu_si512(staging.as_ptr().add(lane * padded + group).cast()));
            for (digit, vector) in transpose(entries).into_iter().enumerate() {
                _mm512_storeu_si512(digits.as_mut_ptr().add((group + digit) * ROWS * BLOCK).cast(), vector);
            }
        }
    }
}

/// Up to `ROWS` rows of digits with their signs and rounding bits; `first` is the first row within the panel.
struct Group<'a> {
    digits: &'a [u64],
    signs: [u8; ROWS],
    carries: [u8; ROWS],
    first: usize,
    stream: bool,
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn residues_of_group(
    tables: &Tables,
    primes: Range<usize>,
    group: &Group<'_>,
    count: usize,
    planes: &mut [&mut [u64]],
) {
    let mut at = 0;
    while at < primes.len() {
        let prime = primes.start + at;
        // Two primes at a time: 16 sums in registers, and each digit loaded serves four multiply-adds.
        at += match primes.len() - at {
            1 => several::<1>(tables, prime, group, count, &mut planes[at..]),
            _ => several::<2>(tables, prime, group, count, &mut planes[at..]),
        };
    }
}

/// Residues modulo `PRIMES` neighbouring primes; returns their number.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn several<const PRIMES: usize>(
    tables: &Tables,
    prime: usize,
    group: &Group<'_>,
    count: usize,
    planes: &mut [&mut [u64]],
) -> usize {
    let sums = sums::<PRIMES>(tables, prime, group);
    for (offset, sum) in sums.iter().enumerate() {
        store_residues(tables, prime + offset, group, count, sum, planes[offset]);
    }
    PRIMES
}

/// Low and high sums of one prime, a pair for each row.
type Sums = [(__m512i, __m512i); ROWS];

/// `sum over digits of digit * (2^(52 d) mod p)` for `PRIMES` primes and all rows of the group.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn sums<const PRIMES: usize>(tables: &Tables, prime: usize, group: &Group<'_>) -> [Sums; PRIMES] {
    let count = tables.operand_digits;
    assert!(tables.radix_powers.len() >= (prime + PRIMES) * count && group.digits.len() >= count * ROWS * BLOCK);
    let powers = &tables.radix_powers[prime * count..];
    let zero = _mm512_setzero_si512();
    let mut sums = [[(zero, zero); ROWS]; PRIMES];
    for which in &mut sums {
        for (row, (lo, _)) in which.iter_mut().enumerate() {
            *lo = _mm512_maskz_set1_epi64(group.carries[row], 1);
        }
    }
    for digit in 0..count {
        // SAFETY: the assert above covers `digit < count` rows of digits and of powers.
        unsafe {
            let rows: [__m512i; ROWS] = std::array::from_fn(|row| {
                _mm512_loadu_si512(group.digits.as_ptr().add((digit * ROWS + row) * BLOCK).cast())
            });
            for (which, sum) in sums.iter_mut().enumerate() {
                let power = _mm512_set1_epi64(*powers.as_ptr().add(which * count + digit) as i64);
                for (row, (lo, hi)) in sum.iter_mut().enumerate() {
                    *lo = _mm512_madd52lo_epu64(*lo, rows[row], power);
                    *hi = _mm512_madd52hi_epu64(*hi, rows[row], power);
                }
            }
        }
    }
    sums
}

/// Folds, applies the signs and writes the rows of one prime.
///
/// A zero with a minus sign becomes `p`, not 0: below `2^52` all the same, which is all that products ask for.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn store_residues(tables: &Tables, prime: usize, group: &Group<'_>, count: usize, sums: &Sums, plane: &mut [u64]) {
    let prime = tables.primes[prime];
    let (fold, prime) = (Fold::new(prime), _mm512_set1_epi64(prime as i64));
    let out = &mut plane[group.first * BLOCK..][..count * BLOCK];
    for (row, words) in out.chunks_exact_mut(BLOCK).enumerate() {
        let magnitude = fold.fold(sums[row].0, sums[row].1);
        let residue = _mm512_mask_sub_epi64(magnitude, group.signs[row], prime, magnitude);
        // SAFETY: `words` has 8 words, on a 64-byte boundary where `stream` is set.
        unsafe {
            if group.stream {
                _mm512_stream_si512(words.as_mut_ptr().cast(), residue);
            } else {
                _mm512_storeu_si512(words.as_mut_ptr().cast(), residue);
            }
        }
    }
}
