//! Sums of products of big floats with any exponents, digit by digit: a building block of products with a vector.
//!
//! A term is the product of a number that is cut into digits of 52 bits relative to the largest term, and a number that
//! has been cut beforehand. Only pairs of digits whose product lies in one of the first columns are used; all kernels
//! give the same integers. Proof: docs/ALGORITHM.md, "Sums digit by digit". Depends on: limbs. Independent of:
//! matrices, precisions.

#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod scaled;
#[cfg(not(target_arch = "x86_64"))]
mod unscaled;

#[cfg(target_arch = "x86_64")]
pub use scaled::ScaledSums;
#[cfg(not(target_arch = "x86_64"))]
pub use unscaled::ScaledSums;

#[cfg(target_arch = "x86_64")]
use crate::kernels::x86_64::cpu::has_digit_sums;
use crate::math::float::FloatRef;

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 52;

/// The largest number of columns: beyond it, products of whole numbers are faster.
pub const MOST_COLUMNS: usize = 48;

/// The largest number of terms that are added before carries are propagated.
const CHUNK: usize = 64;

/// Eights of digits that a vector kernel has at a time: with fewer than 128 pairs for a column in each lane, the sum
/// of eight lanes of 64 bits does not overflow.
#[cfg(target_arch = "x86_64")]
const ROOM: usize = 127;

const MASK: u64 = (1 << DIGIT_BITS) - 1;

/// One digit of eight numbers.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct EightDigits([u64; 8]);

/// Eights of digits, all 0 at first. An ordinary allocation with room to align them takes less time than an aligned
/// one.
struct Eights {
    words: Vec<u64>,
    count: usize,
}

impl Eights {
    fn new(count: usize) -> Eights {
        Eights { words: vec![0; 8 * count + 7], count }
    }

    fn bytes(count: usize) -> u64 {
        64u64.saturating_mul(count as u64).saturating_add(56)
    }
}

impl std::ops::Deref for Eights {
    type Target = [EightDigits];

    #[inline]
    fn deref(&self) -> &[EightDigits] {
        // SAFETY: an eight is eight words, of any value.
        &unsafe { self.words.align_to::<EightDigits>() }.1[..self.count]
    }
}

impl std::ops::DerefMut for Eights {
    #[inline]
    fn deref_mut(&mut self) -> &mut [EightDigits] {
        // SAFETY: as above.
        &mut unsafe { self.words.align_to_mut::<EightDigits>() }.1[..self.count]
    }
}

/// Numbers as digits, the leading one first; eight neighbouring numbers are interleaved.
pub struct DigitVector {
    columns: usize,
    /// The digits of eight numbers, then those of the next eight.
    digits: Eights,
}

impl DigitVector {
    /// Memory for `len` numbers, all 0, for sums of `columns` columns.
    pub fn new(len: usize, columns: usize) -> DigitVector {
        DigitVector { columns, digits: Eights::new(len.div_ceil(8) * columns) }
    }

    /// Bytes of the memory for `len` numbers.
    pub fn bytes(len: usize, columns: usize) -> u64 {
        Eights::bytes(len.div_ceil(8).saturating_mul(columns))
    }

    /// Sets a number to a significand, as little-endian limbs. Digits beyond the columns have no product in the columns
    /// used.
    pub fn set(&mut self, index: usize, limbs: &[u64]) {
        let mut digits = [0; MOST_COLUMNS];
        let digits = &mut digits[..self.columns];
        cut_number(limbs, digits);
        for (eight, digit) in self.digits[index / 8 * self.columns..].iter_mut().zip(digits) {
            eight.0[index % 8] = *digit;
        }
    }

    /// Sets neighbouring numbers from index `first` on.
    pub fn set_all(&mut self, first: usize, numbers: &Significands<'_>) {
        let next = self.set_eights(first, numbers);
        (next..numbers.count).for_each(|k| self.set(first + k, numbers.get(k)));
    }

    /// Sets whole eights in vectors, where the processor has them, and returns how many numbers these are.
    #[cfg(target_arch = "x86_64")]
    fn set_eights(&mut self, first: usize, numbers: &Significands<'_>) -> usize {
        if !has_digit_sums() || !first.is_multiple_of(8) {
            return 0;
        }
        let count = numbers.count / 8 * 8;
        let eights = &mut self.digits[first / 8 * self.columns..][..count / 8 * self.columns];
        // SAFETY: the features that the function needs are present.
        unsafe { ifma::cut_all(numbers, self.columns, eights) };
        count
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn set_eights(&mut self, _first: usize, _numbers: &Significands<'_>) -> usize {
        0
    }

    /// Columns of the sums.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The digits of the eight numbers that a number is one of.
    #[inline]
    fn eights(&self, group: usize) -> &[EightDigits] {
        &self.digits[group * self.columns..][..self.columns]
    }
}

/// Significands at equal distances among limbs.
#[derive(Clone, Copy)]
pub struct Significands<'a> {
    /// All limbs, including those of other numbers.
    pub limbs: &'a [u64],
    /// Limbs of a significand.
    pub width: usize,
    /// Index of the first limb of the first number.
    pub first: usize,
    /// Distance from one number to the next, modulo the word size.
    pub stride: usize,
    /// Their number.
    pub count: usize,
}

impl<'a> Significands<'a> {
    #[inline(always)]
    fn get(&self, k: usize) -> &'a [u64] {
        &self.limbs[self.first.wrapping_add(k.wrapping_mul(self.stride))..][..self.width]
    }
}

/// The numbers of a sum `alpha x + y`.
#[derive(Clone, Copy)]
pub struct ScaledPair<'a> {
    /// The number that is scaled.
    pub x: FloatRef<'a>,
    /// The number that is added.
    pub y: FloatRef<'a>,
}

/// Terms: the products of significands and of neighbouring entries of a digit vector.
pub struct DigitTerms<'a> {
    /// The left factors.
    pub left: Significands<'a>,
    /// Index of the right factor of the first term.
    pub right: usize,
    /// The position of each term.
    pub marks: &'a [Mark],
}

/// The position of a term: twice the bits that it lies below the largest power of two, and 1 more if it is subtracted.
/// Terms that are smaller than all columns are ignored.
pub type Mark = i64;

/// The mark of an ignored term.
pub const SKIPPED: Mark = Mark::MAX;

/// Bits below the largest power of two, and whether a term is subtracted; `None` where it does not count.
#[inline(always)]
fn place(mark: Mark) -> Option<(u32, bool)> {
    (mark != SKIPPED).then_some(((mark >> 1) as u32, mark & 1 == 1))
}

/// The size of a term: twice the exponent of the power of two above it, and 1 more where it is subtracted.
pub type Size = i64;

/// The size of a term that is 0.
pub const NOTHING: Size = Size::MIN;

/// Converts the sizes of all terms of a sum in `columns` columns to their marks; returns the power of two above all of
/// them, `None` if all are 0.
pub fn place_terms(sizes: &mut [Size], columns: usize) -> Option<i64> {
    #[cfg(target_arch = "x86_64")]
    if has_digit_sums() {
        // SAFETY: the features that the function needs are present.
        return unsafe { ifma::place_terms(sizes, columns) };
    }
    place_plainly(sizes, columns)
}

/// The same on any processor.
#[inline(always)]
fn place_plainly(sizes: &mut [Size], columns: usize) -> Option<i64> {
    let most = sizes.iter().fold(NOTHING, |most, &size| most.max(size));
    let (top, beyond) = (most >> 1, i64::from(DIGIT_BITS) * columns as i64);
    for size in sizes {
        // No term's size is far beyond.
        let shift = top - (*size >> 1);
        *size = if *size != NOTHING && shift < beyond { 2 * shift + (*size & 1) } else { SKIPPED };
    }
    (most != NOTHING).then_some(top)
}

/// The sums of the columns of some terms.
pub struct Sums {
    /// The sums in digits; the first is for the carry out of the first column.
    columns: Vec<i128>,
}

impl Sums {
    /// Zero sums in `columns` columns.
    pub fn new(columns: usize) -> Sums {
        Sums { columns: vec![0; columns + 1] }
    }

    /// Bytes of one.
    pub fn bytes(columns: usize) -> u64 {
        (size_of::<Sums>() + 16 * (columns + 1)) as u64
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.columns.fill(0);
    }

    /// Adds terms.
    pub fn add(&mut self, terms: &DigitTerms<'_>, right: &DigitVector) {
        assert_eq!(terms.left.count, terms.marks.len());
        #[cfg(target_arch = "x86_64")]
        if has_digit_sums() {
            // SAFETY: the features that the function needs are present.
            return unsafe { ifma::add_terms(self, terms, right) };
        }
        self.add_plainly(terms, right);
    }

    /// The same on any processor.
    fn add_plainly(&mut self, terms: &DigitTerms<'_>, right: &DigitVector) {
        let (columns, mut buffer) = (right.columns, [0; MOST_COLUMNS]);
        for (k, mark) in terms.marks.iter().enumerate() {
            if k % CHUNK == CHUNK - 1 {
                carry(&mut self.columns);
            }
            let Some((shift, negative)) = place(*mark) else { continue };
            let (skipped, bits) = ((shift / DIGIT_BITS) as usize, shift % DIGIT_BITS);
            let (index, digits) = (terms.right + k, &mut buffer[..columns - skipped]);
            let others = right.eights(index / 8);
            cut(terms.left.get(k), bits, digits);
            for column in 0..digits.len() {
                let pairs = digits[..column + 1].iter().zip(others[..column + 1].iter().rev());
                let sum = pairs.map(|(&x, y)| u128::from(x) * u128::from(y.0[index % 8])).sum::<u128>() as i128;
                self.columns[skipped + column + 1] += if negative { -sum } else { sum };
            }
        }
        carry(&mut self.columns);
    }
}

/// Copies as many limbs as both have (asserted), without a call for the numbers that are met most often.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn copy_limbs(to: &mut [u64], from: &[u64]) {
    match to.len() {
        4 => to[..4].copy_from_slice(&from[..4]),
        8 => to[..8].copy_from_slice(&from[..8]),
        _ => to.copy_from_slice(from),
    }
}

/// Keeps all sums but the first below a digit, and not negative.
fn carry(sums: &mut [i128]) {
    let mut over = 0;
    for sum in sums[1..].iter_mut().rev() {
        let total = *sum + over;
        (*sum, over) = (total & i128::from(MASK), total >> DIGIT_BITS);
    }
    sums[0] += over;
}

/// The leading digits of a significand.
fn cut_number(limbs: &[u64], digits: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if has_digit_sums() {
        // SAFETY: the features that the function needs are present.
        return unsafe { ifma::cut_number(limbs, digits) };
    }
    cut(limbs, 0, digits);
}

/// The leading digits of a significand times `2^-bits`, for fewer bits than a digit has.
#[inline]
fn cut(limbs: &[u64], bits: u32, digits: &mut [u64]) {
    let mut at = 64 * limbs.len() as isize + bits as isize;
    for digit in &mut *digits {
        at -= DIGIT_BITS as isize;
        let (word, low) = (at >> 6, (at & 63) as u32);
        // In two steps: a limb cannot be shifted by all of its bits.
        let joined = |below: u64, above: u64| ((below >> low) | (above << 1 << (63 - low))) & MASK;
        *digit = match usize::try_from(word) {
            Ok(word) if word + 1 < limbs.len() => joined(limbs[word], limbs[word + 1]),
            Ok(word) => joined(limbs.get(word).copied().unwrap_or(0), 0),
            Err(_) if word == -1 => joined(0, limbs[0]),
            Err(_) => 0,
        };
    }
}

/// Limbs of a sum of `columns` columns in two's complement.
pub fn sum_limbs(columns: usize) -> usize {
    (DIGIT_BITS as usize * (columns + 1) + 128).div_ceil(64)
}

/// The sum in two's complement, with the last column as the lowest digit; `out` has [`sum_limbs`] limbs (asserted).
pub fn write_sum(sums: &Sums, out: &mut [u64]) {
    assert_eq!(out.len(), sum_limbs(sums.columns.len() - 1));
    let (mut held, mut held_bits, mut carry) = (0u128, 0, 0i128);
    let mut limbs = out.iter_mut();
    for sum in sums.columns.iter().rev() {
        let total = carry + sum;
        carry = total >> DIGIT_BITS;
        held |= u128::from(total as u64 & MASK) << held_bits;
        held_bits += DIGIT_BITS;
        if held_bits >= 64 {
            *limbs.next().expect("a limb for 64 bits") = held as u64;
            (held, held_bits) = (held >> 64, held_bits - 64);
        }
    }
    // The part above the first column, with its sign.
    let low = held as i128 | carry << held_bits;
    let mut rest = [low as u64, (low >> 64) as u64].into_iter();
    let sign = if carry < 0 { u64::MAX } else { 0 };
    limbs.for_each(|limb| *limb = rest.next().unwrap_or(sign));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::rand::RandState;
    use rug::{Integer, integer::Order};

    fn limbs(rng: &mut RandState<'_>, count: usize) -> Vec<u64> {
        let mut value = Integer::from(Integer::random_bits(64 * count as u32, rng));
        value.set_bit(64 * count as u32 - 1, true);
        if rng.below(4) == 0 {
            value = (value >> 64u32 >> 5u32) << 69u32; // few bits, as doubles have
            value.set_bit(64 * count as u32 - 1, true);
        }
        let mut limbs = value.to_digits::<u64>(Order::Lsf);
        limbs.resize(count, 0);
        limbs
    }

    /// The digits that count, as integers.
    fn by_definition(x: &[u64], y: &[u64], shift: u32, columns: usize) -> Integer {
        let digit = |limbs: &[u64], shift: u32, index: usize| {
            let value = Integer::from_digits(limbs, Order::Lsf) << (52 * columns as u32 + 60);
            let unit = 64 * limbs.len() as u32 + 52 * columns as u32 + 60 + shift - 52 * (index as u32 + 1);
            (value >> unit).keep_bits(52)
        };
        let mut sum = Integer::new();
        for (i, j) in (0..columns).flat_map(|i| (0..columns - i).map(move |j| (i, j))) {
            sum += (digit(x, shift, i) * digit(y, 0, j)) << (52 * (columns - 1 - i - j) as u32);
        }
        sum
    }

    #[test]
    fn every_kernel_adds_up_the_same_digits() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(3));
        for case in 0..400 {
            let columns = 1 + rng.below(if case % 9 == 0 { MOST_COLUMNS as u32 } else { 22 }) as usize;
            let (width, other) = (1 + rng.below(30) as usize, 1 + rng.below(30) as usize);
            let count = if case % 20 == 0 { 300 } else { rng.below(27) as usize };
            // Some numbers before those that count, and every other one of the left ones, from the last to the first.
            let before = rng.below(20) as usize;
            let left = (0..2 * count).flat_map(|_| limbs(&mut rng, width)).collect::<Vec<_>>();
            let others = (0..before + count).flat_map(|_| limbs(&mut rng, other)).collect::<Vec<_>>();
            let mut right = DigitVector::new(before + count, columns);
            let all = Significands { limbs: &others, width: other, first: 0, stride: other, count: before + count };
            match case % 2 {
                0 => right.set_all(0, &all),
                _ => (0..all.count).for_each(|k| right.set(k, all.get(k))),
            }
            let mut want = Integer::new();
            let (first, stride) = ((2 * count).wrapping_sub(1).wrapping_mul(width), (2 * width).wrapping_neg());
            let left = Significands { limbs: &left, width, first, stride, count };
            let mark = |k: usize| {
                let (shift, negative) = (rng.below(52 * columns as u32), rng.below(2) == 1);
                if rng.below(6) == 0 {
                    return SKIPPED;
                }
                let product = by_definition(left.get(k), all.get(before + k), shift, columns);
                want += if negative { -product } else { product };
                2 * i64::from(shift) + i64::from(negative)
            };
            let marks = (0..count).map(mark).collect::<Vec<_>>();
            let terms = DigitTerms { left, right: before, marks: &marks };
            let (mut sums, mut plain) = (Sums::new(columns), Sums::new(columns));
            sums.add(&terms, &right);
            plain.add_plainly(&terms, &right);
            carry(&mut sums.columns);
            assert_eq!(sums.columns, plain.columns, "case {case}");
            let mut out = vec![0xdead; sum_limbs(columns)];
            write_sum(&sums, &mut out);
            let modulus = Integer::from(1) << (64 * out.len() as u32);
            let got = Integer::from_digits(&out, Order::Lsf);
            assert_eq!(got, want.modulo(&modulus), "case {case}: {columns} columns, {count} terms");
        }
    }

    #[test]
    fn the_largest_digits_do_not_overflow() {
        for columns in [1, 7, 15, 16, 31, MOST_COLUMNS] {
            let count = 3000;
            let ones = vec![u64::MAX; columns];
            let left = Significands { limbs: &ones, width: columns, first: 0, stride: 0, count };
            let mut right = DigitVector::new(count, columns);
            right.set_all(0, &left);
            for sign in [0, 1] {
                let marks = vec![sign; count];
                let (mut sums, mut plain) = (Sums::new(columns), Sums::new(columns));
                let terms = DigitTerms { left, right: 0, marks: &marks };
                sums.add(&terms, &right);
                plain.add_plainly(&terms, &right);
                carry(&mut sums.columns);
                assert_eq!(sums.columns, plain.columns, "{columns} columns");
            }
        }
    }
}
