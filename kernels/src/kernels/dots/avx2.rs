//! Products of a panel of 8 columns with one vector in the lanes of AVX2: digits of 26 bits, halves of those of 52.
//!
//! Halves carry the signs, so that their products are signed sums of 64 bits. Of the pairs of halves `i` and `j` those
//! count whose digits do, `i / 2 + j / 2 >= F`: all with `i + j > 2 F`, and of those with `i + j = 2 F` the even ones,
//! since two odd halves are those of digits that meet one column below.
//! Sums of eight rows stay in registers, four columns of halves at a time.

use super::{DIGIT_BITS, DotSource, FixedVector, first_column};
use crate::math::bound::half_digit_sum_terms;
use crate::math::float::{limbs_for, shift_down};
use crate::math::processor::processor_has;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::arch::x86_64::*;

/// Bits of half a digit.
const HALF_BITS: u32 = DIGIT_BITS / 2;

const MASK: i64 = (1 << HALF_BITS) - 1;

/// Columns of halves that are summed at the same time.
const GROUP: usize = 4;

/// Zeros before and after the halves of an entry of the vector: a group reads this many beyond them.
const ZEROS: usize = GROUP - 1;

/// Rows whose products are added while their sums are in registers.
const ROWS: usize = 8;

/// Whether this processor has the instructions, and sums of `digits` digits allow some rows.
pub fn can_sum(digits: usize) -> bool {
    half_digit_sum_terms(2 * digits) >= ROWS && processor_has!(Avx2: "avx2")
}

/// Bytes that [`sums`] allocates for a vector of `digits` digits: columns, rows of both factors, and a sum as limbs and
/// as an integer, before and after its shift.
pub fn bytes(digits: usize) -> u64 {
    let halves = 2 * digits;
    let lanes = columns(halves) + ROWS * halves;
    let words = ROWS * (halves + 2 * ZEROS) + limbs_for(halves as u32 * HALF_BITS) + 1;
    8 * (BLOCK * lanes + words + 4 * (halves + GROUP)) as u64
}

/// Columns of the products of `halves` halves from the first one that counts on, in whole groups. The last one is
/// `2 halves - 2`; carries need two more.
fn columns(halves: usize) -> usize {
    (2 * halves + 1 - 2 * first_column(halves / 2)).next_multiple_of(GROUP) + GROUP
}

/// See `kernels::dots::by_limbs`.
///
/// # Safety
/// [`can_sum`] is true for the vector's digits.
#[target_feature(enable = "avx2")]
pub unsafe fn sums(sources: &[DotSource<'_>], vector: &FixedVector, results: &mut [Integer; BLOCK]) {
    let halves = 2 * vector.digits_per_entry();
    let first = 2 * first_column(vector.digits_per_entry());
    let mut sums = HalfColumnSums { halves, first, columns: vec![[0; BLOCK]; columns(halves)], rows: 0 };
    let mut rows = HalfRows::new(halves);
    for source in sources {
        let mut next = source.panel.rows.clone();
        while !next.is_empty() {
            rows.take(source, vector, &mut next);
            sums.add(&rows);
        }
    }
    sums.carry();
    for (lane, result) in results.iter_mut().enumerate() {
        *result = sums.value(lane);
    }
}

/// Some rows of both factors as halves.
struct HalfRows {
    halves: usize,
    count: usize,
    /// Of the columns, with the signs of their products: a half of all lanes, then the next, row after row.
    left: Vec<[i64; BLOCK]>,
    /// Halves of the vector, between zeros.
    right: Vec<i64>,
    limbs: Vec<u64>,
}

impl HalfRows {
    fn new(halves: usize) -> HalfRows {
        let (left, right) = (vec![[0; BLOCK]; ROWS * halves], vec![0; ROWS * (halves + 2 * ZEROS)]);
        HalfRows { halves, count: 0, left, right, limbs: vec![0; limbs_for(halves as u32 * HALF_BITS) + 1] }
    }

    /// Takes the next rows of a panel that meet an entry which is not 0, as many as there is room for.
    fn take(&mut self, source: &DotSource<'_>, vector: &FixedVector, rows: &mut std::ops::Range<usize>) {
        self.count = 0;
        while self.count < ROWS {
            let Some(row) = rows.next() else { break };
            let entry = source.first_entry + row;
            let digits = &vector.padded(entry)[super::PADDING..][..self.halves / 2];
            if digits.iter().all(|&digit| digit == 0) {
                continue;
            }
            let right = &mut self.right[self.count * (self.halves + 2 * ZEROS) + ZEROS..][..self.halves];
            for (two, &digit) in right.chunks_exact_mut(2).zip(digits) {
                (two[0], two[1]) = (digit as i64 & MASK, (digit >> HALF_BITS) as i64);
            }
            self.take_row(source, row, vector.is_negative(entry));
            self.count += 1;
        }
    }

    /// One row of the panel.
    fn take_row(&mut self, source: &DotSource<'_>, row: usize, turns: bool) {
        let (panel, halves) = (&source.panel, self.halves);
        let left = &mut self.left[self.count * halves..][..halves];
        let size = limbs_for(panel.view.precision_bits()) as i64 * 64;
        // The last limb stays 0: it is read beyond the highest half.
        let last = self.limbs.len() - 1;
        for lane in 0..BLOCK {
            let column = panel.columns.start + lane;
            let entry = (column < panel.columns.end).then(|| panel.view.get(row, column));
            let Some(entry) = entry.filter(|entry| !entry.head.is_zero()) else {
                left.iter_mut().for_each(|half| half[lane] = 0);
                continue;
            };
            let drop = size - entry.head.exponent() - panel.shifts[column] - source.row_shifts[row];
            shift_down(entry.limbs, drop, &mut self.limbs[..last]);
            let sign = if entry.head.is_negative() != turns { -1 } else { 0 };
            let mut bit = 0;
            for half in left.iter_mut() {
                let (word, shift) = (bit / 64, bit % 64);
                let window = (self.limbs[word] >> shift) | (self.limbs[word + 1] << 1 << (63 - shift));
                half[lane] = ((window as i64 & MASK) ^ sign) - sign;
                bit += HALF_BITS as usize;
            }
        }
    }
}

/// Columns of halves from number `first` on, eight lanes each.
struct HalfColumnSums {
    halves: usize,
    first: usize,
    columns: Vec<[i64; BLOCK]>,
    /// Rows added since the last carry.
    rows: usize,
}

impl HalfColumnSums {
    #[target_feature(enable = "avx2")]
    fn add(&mut self, rows: &HalfRows) {
        if self.rows + rows.count > half_digit_sum_terms(self.halves) {
            self.carry();
        }
        self.rows += rows.count;
        if self.first > 0 {
            self.add_first(rows);
        }
        // Columns after the first one, or all of them where every pair counts.
        let (from, end) = (usize::from(self.first > 0), 2 * self.halves - 1 - self.first);
        for at in (from..end).step_by(GROUP) {
            self.add_group(rows, at);
        }
    }

    /// The first column, of which only pairs of even halves count.
    fn add_first(&mut self, rows: &HalfRows) {
        let (halves, column) = (self.halves, self.first);
        let stride = halves + 2 * ZEROS;
        // An even number on both sides, since the column's own is even.
        let least = (column + 1).saturating_sub(halves).next_multiple_of(2);
        for row in 0..rows.count {
            let (left, right) = (&rows.left[row * halves..][..halves], &rows.right[row * stride + ZEROS..][..halves]);
            for i in (least..halves.min(column + 1)).step_by(2) {
                for (sum, half) in self.columns[0].iter_mut().zip(&left[i]) {
                    *sum += half * right[column - i];
                }
            }
        }
    }

    /// Columns number `at` and the following ones, of which all pairs count.
    #[target_feature(enable = "avx2")]
    fn add_group(&mut self, rows: &HalfRows, at: usize) {
        let (halves, column) = (self.halves, self.first + at);
        let stride = halves + 2 * ZEROS;
        let (least, end) = ((column + 1).saturating_sub(halves), halves.min(column + GROUP));
        let out = &mut self.columns[at..at + GROUP];
        // Plain loops: iterators over pairs would not be compiled with the instructions of this function.
        let mut sums = [[_mm256_setzero_si256(); 2]; GROUP];
        for c in 0..GROUP {
            sums[c] = load(&out[c]);
        }
        for row in 0..rows.count {
            let (left, right) = (&rows.left[row * halves..][least..end], &rows.right[row * stride..][..stride]);
            // Half `column + c - i` of the vector, which lies behind `ZEROS` zeros.
            let last = column + ZEROS - least;
            for i in 0..left.len() {
                let (lanes, factors) = (load(&left[i]), &right[last - i..][..GROUP]);
                for c in 0..GROUP {
                    let factor = _mm256_set1_epi64x(factors[c]);
                    for v in 0..2 {
                        sums[c][v] = _mm256_add_epi64(sums[c][v], _mm256_mul_epi32(lanes[v], factor));
                    }
                }
            }
        }
        for c in 0..GROUP {
            store(&sums[c], &mut out[c]);
        }
    }

    /// Makes all columns but the last halves, `0 <= x < 2^26`; the last one takes the signs.
    fn carry(&mut self) {
        self.rows = 0;
        let mut carry = [0; BLOCK];
        let last = self.columns.len() - 1;
        for column in &mut self.columns[..last] {
            for (sum, carry) in column.iter_mut().zip(&mut carry) {
                let whole = *sum + *carry;
                (*sum, *carry) = (whole & MASK, whole >> HALF_BITS);
            }
        }
        for (sum, carry) in self.columns[last].iter_mut().zip(&carry) {
            *sum += carry;
        }
    }

    /// The sum of one lane, after a carry.
    fn value(&self, lane: usize) -> Integer {
        let (last, halves) = self.columns.split_last().expect("there are columns");
        let mut limbs = Vec::with_capacity(halves.len() / 2 + 1);
        let (mut held, mut bits) = (0u128, 0);
        for half in halves {
            held |= (half[lane] as u128) << bits;
            bits += HALF_BITS;
            if bits >= 64 {
                limbs.push(held as u64);
                (held, bits) = (held >> 64, bits - 64);
            }
        }
        limbs.push(held as u64);
        let above = Integer::from(last[lane]) << (HALF_BITS * halves.len() as u32);
        (Integer::from_digits(&limbs, Order::Lsf) + above) << (HALF_BITS * self.first as u32)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(lanes: &[i64; BLOCK]) -> [__m256i; 2] {
    // SAFETY: eight lanes are two vectors.
    unsafe { [_mm256_loadu_si256(lanes.as_ptr().cast()), _mm256_loadu_si256(lanes.as_ptr().add(4).cast())] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(vectors: &[__m256i; 2], lanes: &mut [i64; BLOCK]) {
    // SAFETY: eight lanes are two vectors.
    unsafe {
        _mm256_storeu_si256(lanes.as_mut_ptr().cast(), vectors[0]);
        _mm256_storeu_si256(lanes.as_mut_ptr().add(4).cast(), vectors[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::PanelSource;
    use crate::kernels::dots::by_limbs;
    use crate::matrix::Matrix;
    use rug::Float;
    use rug::rand::RandState;

    /// With significands of ones as well, whose halves are as large as they can be.
    #[test]
    fn the_sums_are_those_of_limbs() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(3));
        for bits in [1u32, 20, 26, 27, 52, 53, 104, 157, 300, 1042, 5600, 6700] {
            for (rows, cols, is_full) in
                [(0usize, 3usize, false), (1, 8, true), (9, 8, false), (5, 1, false), (90, 3, true), (94, 2, false)]
            {
                let mut random = || {
                    let value = Float::with_val(bits.max(2), Float::random_bits(&mut rng)) - 0.5f64;
                    value >> rng.below(80)
                };
                let values = (0..rows * cols).map(|_| random()).collect::<Vec<_>>();
                let matrix = Matrix::from_floats(rows, cols, bits.max(2), &values).unwrap();
                let ones = (Integer::from(1) << bits) - 1u32;
                let full = Matrix::from_integers(rows, cols, bits.max(2), &vec![ones.clone(); rows * cols]).unwrap();
                let (matrix, shift) = if is_full { (full, 0) } else { (matrix, i64::from(bits) - 3) };
                let shifts = vec![shift; cols];
                let row_shifts = (0..rows).map(|row| if is_full { 0 } else { row as i64 % 4 }).collect::<Vec<_>>();
                let first_entry = cols % 3 * 11;
                let mut vector = FixedVector::new(first_entry + rows + 1, bits);
                for row in 0..vector.len() {
                    let size = Integer::from(Integer::random_bits(bits, &mut rng));
                    let size = if is_full { ones.clone() } else { size };
                    vector.set(row, !is_full && row % 3 == 0, if row % 7 == 6 { &[] } else { size.as_limbs() });
                }
                if !can_sum(vector.digits_per_entry()) {
                    assert!(bits == 6700 || !processor_has!(Avx2: "avx2"));
                    continue;
                }
                let source = |rows| {
                    let panel = PanelSource { view: matrix.view(), columns: 0..cols, rows, shifts: &shifts };
                    DotSource { panel, row_shifts: &row_shifts, first_entry }
                };
                let mut want = [Integer::ZERO; BLOCK];
                by_limbs(&[source(0..rows)], &vector, &mut want);
                for cut in [0, rows / 3] {
                    let mut got = [1; BLOCK].map(|_| Integer::from(7));
                    // SAFETY: `can_sum` is true.
                    unsafe { sums(&[source(0..cut), source(cut..rows)], &vector, &mut got) };
                    assert_eq!(got, want, "{bits} bits, {rows} x {cols}, cut at {cut}");
                }
            }
        }
    }
}
