//! Big floats to residues: digits straight from the limbs, then one small product with the radix powers.
//!
//! A panel's lanes are its 8 columns. `digits` cuts each entry's fixed-point digits out of its limbs. The rounding
//! bit is one more term of the sum, so no carry runs through the digits, and the sign is applied to the finished
//! residue.
//! Bounds: docs/ALGORITHM.md, "Residues as a product".

use super::digits::{Cutter, ROWS, padded};
use super::micro::Fold;
use super::tables::Ifma52Tables;
use crate::kernels::PanelSource;
use crate::kernels::radix::CutLanes;
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Windows larger than this bypass the caches: they would be evicted before the products read them.
pub const STREAM_BYTES: usize = 24 << 20;

/// Words of scratch for operands of `digits` digits.
pub fn scratch_words(digits: usize) -> usize {
    padded(digits) * ROWS * BLOCK
}

/// Fills one panel of the planes of `primes`; see `PlaneEngine::to_residues`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn to_residues(
    tables: &Ifma52Tables,
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
    let digits = &mut scratch[..scratch_words(tables.operand_digits)];
    let window_bytes = 8 * primes.len() * rows * source.view.cols();
    let aligned = planes.iter().all(|plane| (plane.as_ptr() as usize).is_multiple_of(64));
    let stream = aligned && window_bytes > STREAM_BYTES;
    let mut cutter = Cutter::new(source);
    let mut first = 0;
    while first < rows {
        let count = ROWS.min(rows - first);
        let mut signs = [0u8; ROWS];
        let mut carries = [0u8; ROWS];
        for offset in 0..count {
            CutLanes { signs: signs[offset], carries: carries[offset] } =
                cutter.next_row(&mut digits[offset * BLOCK..]);
        }
        let group = RowGroup { digits: DigitRows { words: digits, carries }, signs, first, stream };
        // A short last group reads what earlier rows left in `digits` and stores only its own rows.
        residues_of_group(tables, primes.clone(), &group, count, planes);
        first += count;
    }
    _mm_sfence(); // streamed words must be visible before another thread is told of them
}

/// `ROWS` rows of digits, the one for rounding first, with their rounding bits.
pub struct DigitRows<'a> {
    /// `ROWS * 8` words for each digit.
    pub words: &'a [u64],
    /// A bit for each column.
    pub carries: [u8; ROWS],
}

/// Up to `ROWS` rows of digits with their signs; `first` is the first row within the panel.
struct RowGroup<'a> {
    digits: DigitRows<'a>,
    signs: [u8; ROWS],
    first: usize,
    stream: bool,
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn residues_of_group(
    tables: &Ifma52Tables,
    primes: Range<usize>,
    group: &RowGroup<'_>,
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
    tables: &Ifma52Tables,
    prime: usize,
    group: &RowGroup<'_>,
    count: usize,
    planes: &mut [&mut [u64]],
) -> usize {
    let digits = tables.operand_digits;
    let powers = &tables.radix_powers[prime * digits..][..PRIMES * digits];
    let sums = sums::<PRIMES>(powers, [1; PRIMES], &group.digits);
    for (offset, sum) in sums.iter().enumerate() {
        store_residues(tables, prime + offset, group, count, sum, planes[offset]);
    }
    PRIMES
}

/// Low and high sums of one prime, a pair for each row.
pub type PrimeSums = [(__m512i, __m512i); ROWS];

/// `sum over digits of digit * power` for the powers of `PRIMES` moduli, one modulus after the other, and all rows;
/// where a number was rounded up, the modulus's own unit is a term, too.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn sums<const PRIMES: usize>(powers: &[u64], units: [u64; PRIMES], digits: &DigitRows<'_>) -> [PrimeSums; PRIMES] {
    let count = powers.len() / PRIMES;
    assert!(powers.len() == PRIMES * count && digits.words.len() >= (count + 1) * ROWS * BLOCK);
    let zero = _mm512_setzero_si512();
    let mut sums = [[(zero, zero); ROWS]; PRIMES];
    for (which, unit) in sums.iter_mut().zip(units) {
        for (row, (lo, _)) in which.iter_mut().enumerate() {
            *lo = _mm512_maskz_set1_epi64(digits.carries[row], unit as i64);
        }
    }
    for digit in 0..count {
        // SAFETY: the assert above covers `digit < count` digits, after the one for rounding, and as many powers.
        unsafe {
            let rows: [__m512i; ROWS] = std::array::from_fn(|row| {
                _mm512_loadu_si512(digits.words.as_ptr().add(((digit + 1) * ROWS + row) * BLOCK).cast())
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
/// A zero with a minus sign becomes `p`: below `2^52` all the same, which is all that products need.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn store_residues(
    tables: &Ifma52Tables,
    prime: usize,
    group: &RowGroup<'_>,
    count: usize,
    sums: &PrimeSums,
    plane: &mut [u64],
) {
    let fold = Fold::new(tables.primes[prime]);
    let out = &mut plane[group.first * BLOCK..][..count * BLOCK];
    let residues: [__m512i; ROWS] =
        std::array::from_fn(|row| fold.negate(group.signs[row], fold.fold(sums[row].0, sums[row].1)));
    let write = |row: usize, start: *mut u64| {
        let at = start.wrapping_add(row * BLOCK).cast();
        // SAFETY: the callers below write the `count` rows of `out`, on 64-byte boundaries where `stream` is set.
        unsafe {
            if group.stream { _mm512_stream_si512(at, residues[row]) } else { _mm512_storeu_si512(at, residues[row]) }
        }
    };
    if count == ROWS {
        (0..ROWS).for_each(|row| write(row, out.as_mut_ptr()));
    } else {
        (0..count).for_each(|row| write(row, out.as_mut_ptr()));
    }
}
