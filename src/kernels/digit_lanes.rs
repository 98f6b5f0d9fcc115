//! Exact sums of products of a few integers in digits of 28 bits, four columns side by side in the lanes of a vector.
//!
//! No tables and little to convert, so that products of some tens of rows cost what their digits do. An integer has
//! balanced digits, `-2^27 <= d < 2^27`; a product of two of them is at most `2^54`, so that sums of many products stay
//! in 64 bits without a carry (`math::bound::digit_lane_terms`). A *panel* holds four columns as
//! `[row][digit][lane]`; one column of a panel is multiplied with all four of another.
//!
//! Does not know: matrices, signs apart from numbers, which columns are wanted.

use crate::math::bound::{DIGIT_LANE_BITS, digit_lane_terms};
use bytemuck::{cast_slice, cast_slice_mut};

/// Columns of a panel.
pub const LANES: usize = 4;

/// Half the base: what balanced digits lie below.
const HALF: u64 = 1 << (DIGIT_LANE_BITS - 1);

/// Largest number of digits: longer integers are multiplied faster by others.
const MOST_DIGITS: usize = 128;

/// Limbs of as many digits, and one that may be read beyond them.
const MOST_LIMBS: usize = MOST_DIGITS * DIGIT_LANE_BITS as usize / 64 + 1;

/// How integers of one length lie in digits.
#[derive(Clone, Copy, Debug)]
pub struct DigitLanes {
    /// An even number.
    digits: usize,
    /// Products between carries.
    terms: usize,
}

impl DigitLanes {
    /// For integers `|x| <= 2^bits`; `None` where this processor lacks the instructions, or digits are too many.
    pub fn new(bits: u32) -> Option<DigitLanes> {
        if !has_instructions() {
            return None;
        }
        // The largest number of n balanced digits is 2^(28 n - 1) - 1 at least, but for the digits below the first.
        let least = (bits + 2).div_ceil(DIGIT_LANE_BITS) as usize;
        let digits = least.next_multiple_of(2);
        let terms = digit_lane_terms(digits);
        (digits <= MOST_DIGITS && terms > 0).then_some(DigitLanes { digits, terms })
    }

    /// Digits of an integer.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// Words of a panel of so many rows.
    pub fn panel_words(&self, rows: usize) -> usize {
        rows * self.row_words()
    }

    /// Words of one row of a panel.
    pub fn row_words(&self) -> usize {
        self.digits * LANES / 2
    }

    /// Words of the sums of a column with the four of a panel.
    pub fn sum_words(&self) -> usize {
        2 * self.digits * LANES
    }

    /// Sets the integer of one lane of a row of a panel; `magnitude` may be shorter than the digits, and no longer
    /// than their number of bits allows.
    pub fn set(&self, row: &mut [u64], lane: usize, negative: bool, magnitude: &[u64]) {
        let row: &mut [i32] = cast_slice_mut(&mut row[..self.row_words()]);
        // Half the base in every digit makes all of them positive, without a carry from one to the next.
        let (flip, mut carry) = (u64::from(negative).wrapping_neg(), negative);
        let mut moved = [0; MOST_LIMBS];
        let count = (self.digits * DIGIT_LANE_BITS as usize).div_ceil(64);
        for (at, limb) in moved[..count].iter_mut().enumerate() {
            let own = magnitude.get(at).copied().unwrap_or(0) ^ flip;
            let (sum, first) = own.overflowing_add(OFFSET[at % OFFSET.len()]);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first | second);
        }
        let bytes: &[u8] = cast_slice(&moved);
        for (pair, digits) in row.chunks_exact_mut(2 * LANES).enumerate() {
            // Two digits are 7 bytes.
            let both = u64::from_le_bytes(bytes[7 * pair..7 * pair + 8].try_into().expect("8 bytes"));
            let digit = |from: u32| ((both >> from) & (2 * HALF - 1)) as i32 - HALF as i32;
            digits[lane] = digit(0);
            digits[LANES + lane] = digit(DIGIT_LANE_BITS);
        }
    }

    /// The sums of the products of column `lane` of panel `x` with the four columns of `y`, over all of their `rows`.
    pub fn multiply(&self, (x, lane): (&[u64], usize), y: &[u64], rows: usize, sums: &mut [u64]) {
        let words = self.panel_words(rows);
        let (x, y): (&[i32], &[i32]) = (cast_slice(&x[..words]), cast_slice(&y[..words]));
        let sums: &mut [i64] = cast_slice_mut(&mut sums[..self.sum_words()]);
        sums.fill(0);
        assert!(lane < LANES);
        let step = self.terms * self.digits * LANES;
        for (index, (x, y)) in x.chunks(step).zip(y.chunks(step)).enumerate() {
            if index > 0 {
                carry(sums);
            }
            self.add_products(&x[lane..], y, sums);
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn add_products(&self, x: &[i32], y: &[i32], sums: &mut [i64]) {
        // SAFETY: `new` has found AVX2.
        unsafe { avx2::add_products(x, y, self.digits, sums) }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn add_products(&self, _x: &[i32], _y: &[i32], _sums: &mut [i64]) {
        unreachable!("`new` makes none for this processor");
    }

    /// The sum in one lane as two's complement, modulo the limbs of `out`.
    pub fn sum(&self, sums: &[u64], lane: usize, out: &mut [u64]) {
        let sums: &[i64] = cast_slice(&sums[..self.sum_words()]);
        let (mut buffer, mut held, mut at) = (0i128, 0, 0);
        for &sum in sums[lane..].iter().step_by(LANES) {
            buffer += i128::from(sum) << held;
            held += DIGIT_LANE_BITS;
            if held >= 64 {
                out[at] = buffer as u64;
                (buffer, held, at) = (buffer >> 64, held - 64, at + 1);
                if at == out.len() {
                    return;
                }
            }
        }
        for limb in &mut out[at..] {
            *limb = buffer as u64;
            buffer >>= 64;
        }
    }
}

/// Whether this processor has the instructions.
fn has_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// The limbs of the number that has half the base in every digit, as far as they do not repeat.
const OFFSET: [u64; (DIGIT_LANE_BITS / 4) as usize] = {
    let mut limbs = [0; (DIGIT_LANE_BITS / 4) as usize];
    let mut bit = DIGIT_LANE_BITS as usize - 1;
    while bit < 64 * limbs.len() {
        limbs[bit / 64] |= 1 << (bit % 64);
        bit += DIGIT_LANE_BITS as usize;
    }
    limbs
};

/// Makes all sums but the last of each lane balanced digits.
fn carry(sums: &mut [i64]) {
    for at in LANES..sums.len() {
        let below = sums[at - LANES];
        let up = (below + HALF as i64) >> DIGIT_LANE_BITS;
        sums[at - LANES] = below - (up << DIGIT_LANE_BITS);
        sums[at] += up;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::LANES;
    use std::arch::x86_64::*;

    /// Digits of `x` at a time, whose sums with two digits of `y` stay in registers over the rows.
    const GROUP: usize = 10;

    /// Adds the products of all rows; `x` begins at its lane.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn add_products(x: &[i32], y: &[i32], digits: usize, sums: &mut [i64]) {
        let stride = digits * LANES;
        let rows = y.len() / stride;
        assert!(digits.is_multiple_of(2) && sums.len() == 2 * stride);
        assert!(y.len() == rows * stride && x.len() + LANES > rows * stride);
        for from in (0..digits).step_by(GROUP) {
            macro_rules! with_group {
                ($($count:literal $sums:literal)*) => {
                    match digits - from {
                        // SAFETY: the processor has AVX2, and the lengths are those that were asserted.
                        $($count => unsafe { add_group::<$count, $sums>((x, y), (digits, from), sums) },)*
                        // SAFETY: as above.
                        _ => unsafe { add_group::<10, 11>((x, y), (digits, from), sums) },
                    }
                };
            }
            with_group!(2 3 4 5 6 7 8 9);
        }
    }

    /// The products of `D` digits of `x`, the first of them `from`, with all of `y`; there are `S = D + 1` sums.
    ///
    /// # Safety
    /// The processor has AVX2; `y` has four times `digits` entries for each row, `x` at most three less in all, `sums`
    /// twice four times `digits`, and `from + D` is at most `digits`, which is even.
    #[target_feature(enable = "avx2")]
    unsafe fn add_group<const D: usize, const S: usize>(
        (x, y): (&[i32], &[i32]),
        (digits, from): (usize, usize),
        sums: &mut [i64],
    ) {
        assert!(S == D + 1 && from + D <= digits);
        let stride = digits * LANES;
        let rows = y.len() / stride;
        for second in (0..digits).step_by(2) {
            // SAFETY: the processor has AVX2 (the caller's promise). The largest place read of `x` is
            // `(rows - 1) stride + (from + D - 1) LANES`, of `y` `(rows - 1) stride + (second + 1) LANES + 3`; of
            // `sums` the places `from + second + s <= digits + digits - 2 + 1` of four are read and written. All
            // lie inside (the caller's promise).
            unsafe {
                let mut own = [_mm256_setzero_si256(); S];
                let (mut x, mut y) = (x.as_ptr().add(from * LANES), y.as_ptr().add(second * LANES));
                for _ in 0..rows {
                    let low = _mm256_cvtepi32_epi64(_mm_loadu_si128(y.cast()));
                    let high = _mm256_cvtepi32_epi64(_mm_loadu_si128(y.add(LANES).cast()));
                    // Written out: a loop of ten digits would stay one, and its sums in memory.
                    macro_rules! multiply_digits {
                        ($($i:literal)*) => {
                            $(if $i < D {
                                let digit = _mm256_set1_epi32(*x.add($i * LANES));
                                own[$i] = _mm256_add_epi64(own[$i], _mm256_mul_epi32(digit, low));
                                own[$i + 1] = _mm256_add_epi64(own[$i + 1], _mm256_mul_epi32(digit, high));
                            })*
                        };
                    }
                    multiply_digits!(0 1 2 3 4 5 6 7 8 9);
                    (x, y) = (x.wrapping_add(stride), y.wrapping_add(stride));
                }
                for (s, own) in own.into_iter().enumerate() {
                    let place = sums.as_mut_ptr().add((from + second + s) * LANES).cast::<__m256i>();
                    _mm256_storeu_si256(place, _mm256_add_epi64(_mm256_loadu_si256(place), own));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::limbs_for;
    use rug::integer::Order;
    use rug::{Integer, rand::RandState};

    fn limbs(value: &Integer, count: usize) -> Vec<u64> {
        let mut limbs = value.to_digits::<u64>(Order::Lsf);
        limbs.resize(count, 0);
        limbs
    }

    /// Integers at both ends of the range and at random ones, some 0.
    fn integer(bits: u32, rng: &mut RandState<'_>) -> Integer {
        let value = match rng.below(6) {
            0 => Integer::new(),
            1 | 2 => Integer::from(1) << bits,
            3 => (Integer::from(1) << bits) - 1u32,
            _ => {
                let length = rng.below(bits + 1);
                Integer::from(Integer::random_bits(length, rng))
            }
        };
        if rng.below(2) == 0 { -value } else { value }
    }

    #[test]
    fn sums_equal_the_big_integers() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(28));
        for bits in [2u32, 25, 26, 27, 28, 54, 110, 111, 138, 139, 262, 278, 279, 520, 775, 1040, 2060, 3500] {
            let Some(lanes) = DigitLanes::new(bits) else {
                println!("skipped: no AVX2");
                return;
            };
            let width = limbs_for(bits + 1);
            for rows in [0usize, 1, 2, 5, lanes.terms, lanes.terms + 1, 2 * lanes.terms + 1, 70] {
                let mut columns = || {
                    let each = (0..LANES * rows).map(|_| integer(bits, &mut rng));
                    each.collect::<Vec<_>>()
                };
                let (x, y) = (columns(), columns());
                let panel = |columns: &[Integer]| {
                    let mut panel = vec![0xdead_beef_dead_beef; lanes.panel_words(rows)];
                    for (row, words) in panel.chunks_exact_mut(lanes.row_words()).enumerate() {
                        for lane in 0..LANES {
                            let value = &columns[lane * rows + row];
                            lanes.set(words, lane, *value < 0, &limbs(&Integer::from(value.abs_ref()), width));
                        }
                    }
                    panel
                };
                let (left, right) = (panel(&x), panel(&y));
                let mut sums = vec![77; lanes.sum_words()];
                for (i, j) in (0..LANES).flat_map(|i| (0..LANES).map(move |j| (i, j))) {
                    lanes.multiply((&left, i), &right, rows, &mut sums);
                    let terms = x[i * rows..][..rows].iter().zip(&y[j * rows..]);
                    let want = terms.map(|(x, y)| Integer::from(x * y)).sum::<Integer>();
                    let mut got = vec![0xdead; 2 * width + 1];
                    lanes.sum(&sums, j, &mut got);
                    let modulus = Integer::from(1) << (64 * got.len() as u32);
                    assert_eq!(got, limbs(&want.modulo(&modulus), 2 * width + 1), "{bits} bits, {rows} rows");
                }
            }
        }
    }

    /// Every digit at its least, in as many products as a sum takes.
    #[test]
    fn sums_hold_as_many_products_as_the_bound_says() {
        for bits in [110u32, 262, 775, 2060] {
            let Some(lanes) = DigitLanes::new(bits) else { return };
            let row = vec![-(HALF as i32); lanes.digits * LANES];
            let rows = row.repeat(lanes.terms);
            let words: &[u64] = cast_slice(&rows);
            let mut sums = vec![0; lanes.sum_words()];
            lanes.multiply((words, 1), words, lanes.terms, &mut sums);
            let sums: &[i64] = cast_slice(&sums);
            let largest = (lanes.digits * lanes.terms) as i64 * (1 << 54);
            assert_eq!(sums.iter().max(), Some(&largest));
            // One product more, and the digit that a carry may have left, leave 64 bits.
            let beyond = (lanes.digits * (lanes.terms + 1)) as i128 * (1 << 54) + i128::from(HALF);
            assert!(largest.checked_add(HALF as i64).is_some() && beyond > i128::from(i64::MAX));
        }
    }
}
