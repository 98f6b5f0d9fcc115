//! Sums of products of big floats of any exponents, digit by digit: what products with a vector are made of.
//!
//! A term is the product of a number that is cut into digits of 52 bits where it stands below the largest term, and of
//! a number that has been cut beforehand. Pairs of digits count that meet in one of the first columns; all kernels
//! give the same integers. Proof: docs/ALGORITHM.md, "Sums digit by digit".
//! Knows: limbs. Does not know: matrices, signs, precisions.

#[cfg(target_arch = "x86_64")]
mod ifma;

/// Bits of a digit.
pub const DIGIT_BITS: u32 = 52;

/// Most columns: beyond, products of whole numbers are faster.
pub const MOST_COLUMNS: usize = 48;

/// Terms that are added to 64-bit sums, at most.
const CHUNK: usize = 4095 / MOST_COLUMNS;

/// Words before the digits of an entry, all 0: vectors of eight columns reach so far. Where there are few, they reach
/// over all columns, so that no branch depends on where a term stands.
const fn padding(columns: usize) -> usize {
    if columns <= 16 { columns.next_multiple_of(8) } else { 8 }
}

const MASK: u64 = (1 << DIGIT_BITS) - 1;

/// Numbers as digits, the leading one first, each between zeros.
pub struct DigitVector {
    columns: usize,
    stride: usize,
    words: Vec<u64>,
}

impl DigitVector {
    /// Room for `len` numbers, all 0, that meet others in so many columns.
    pub fn new(len: usize, columns: usize) -> DigitVector {
        let stride = padding(columns) + columns.next_multiple_of(8);
        DigitVector { columns, stride, words: vec![0; len * stride] }
    }

    /// Bytes of the room for `len` numbers.
    pub fn bytes(len: usize, columns: usize) -> u64 {
        8 * (len as u64).saturating_mul((padding(columns) + columns.next_multiple_of(8)) as u64)
    }

    /// Sets a number to a significand, as little-endian limbs.
    pub fn set(&mut self, index: usize, limbs: &[u64]) {
        // Digits beyond the columns meet none of those that count.
        let end = (index + 1) * self.stride;
        let digits = &mut self.words[index * self.stride + padding(self.columns)..end];
        #[cfg(target_arch = "x86_64")]
        if has_ifma() {
            // SAFETY: the features that the function wants are there.
            return unsafe { ifma::cut_number(limbs, digits) };
        }
        cut(limbs, 0, digits);
    }

    /// The digits of a number with the zeros around them.
    #[inline]
    fn padded(&self, index: usize) -> &[u64] {
        &self.words[index * self.stride..][..self.stride]
    }

    /// Columns in which digits meet.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// One term: a significand among limbs, an entry of a digit vector, and how far their product lies below the top.
#[derive(Clone, Copy)]
pub struct Term {
    /// Index of the first limb of the left significand.
    pub limb: usize,
    /// Index of the right number.
    pub right: usize,
    /// Bits below the largest power of two; fewer than columns times digits.
    pub shift: u32,
}

/// Column sums, in digits: the first for what is carried out of the first column.
pub type Columns = [u128; MOST_COLUMNS + 1];

/// Adds the terms to `sums`; `width` limbs make a left significand.
pub fn add_terms(sums: &mut Columns, limbs: &[u64], width: usize, right: &DigitVector, terms: &[Term]) {
    for terms in terms.chunks(CHUNK) {
        #[cfg(target_arch = "x86_64")]
        if has_ifma() {
            // A chunk adds less than 2^65 to each sum: they take all terms that a machine can hold.
            // SAFETY: the features that the function wants are there.
            unsafe { ifma::add_terms(sums, limbs, width, right, terms) };
            continue;
        }
        add_plainly(sums, limbs, width, right, terms);
        carry(&mut sums[..right.columns + 1]);
    }
}

/// Whether the processor has what the faster way takes.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_ifma() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512ifma")
        && std::arch::is_x86_feature_detected!("avx512vbmi2")
}

/// Keeps all sums but the first below a digit.
fn carry(sums: &mut [u128]) {
    let mut over = 0;
    for sum in sums[1..].iter_mut().rev() {
        let total = *sum + over;
        (*sum, over) = (total & u128::from(MASK), total >> DIGIT_BITS);
    }
    sums[0] += over;
}

/// The same on any processor.
fn add_plainly(sums: &mut Columns, limbs: &[u64], width: usize, right: &DigitVector, terms: &[Term]) {
    let mut buffer = [0; MOST_COLUMNS];
    for term in terms {
        let (skipped, bits) = ((term.shift / DIGIT_BITS) as usize, term.shift % DIGIT_BITS);
        let count = right.columns - skipped;
        let (digits, others) = (&mut buffer[..count], &right.padded(term.right)[padding(right.columns)..][..count]);
        cut(&limbs[term.limb..][..width], bits, digits);
        for column in 0..count {
            let pairs = digits[..column + 1].iter().zip(others[..column + 1].iter().rev());
            sums[skipped + column + 1] += pairs.map(|(&x, &y)| u128::from(x) * u128::from(y)).sum::<u128>();
        }
    }
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

/// Limbs of a sum of so many columns in two's complement.
pub fn sum_limbs(columns: usize) -> usize {
    (DIGIT_BITS as usize * (columns + 1) + 128).div_ceil(64)
}

/// `added - subtracted` in two's complement, with the last of `columns` as the lowest digit; `out` has [`sum_limbs`]
/// limbs (asserted).
pub fn difference(added: &Columns, subtracted: &Columns, columns: usize, out: &mut [u64]) {
    assert_eq!(out.len(), sum_limbs(columns));
    let (mut held, mut held_bits, mut carry) = (0u128, 0, 0i128);
    let mut limbs = out.iter_mut();
    for (plus, minus) in added[..columns + 1].iter().zip(&subtracted[..columns + 1]).rev() {
        let total = carry + *plus as i128 - *minus as i128;
        carry = total >> DIGIT_BITS;
        held |= u128::from(total as u64 & MASK) << held_bits;
        held_bits += DIGIT_BITS;
        if held_bits >= 64 {
            *limbs.next().expect("a limb for 64 bits") = held as u64;
            (held, held_bits) = (held >> 64, held_bits - 64);
        }
    }
    // What is above the first column, with its sign.
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
        for case in 0..300 {
            let columns = 1 + rng.below(if case % 9 == 0 { MOST_COLUMNS as u32 } else { 22 }) as usize;
            let (width, other) = (1 + rng.below(18) as usize, 1 + rng.below(18) as usize);
            let count = if case % 20 == 0 { 200 } else { rng.below(7) as usize };
            let left = (0..count).flat_map(|_| limbs(&mut rng, width)).collect::<Vec<_>>();
            let mut right = DigitVector::new(count, columns);
            let mut want = [Integer::new(), Integer::new()];
            let mut terms = [Vec::new(), Vec::new()];
            for index in 0..count {
                let (y, sign) = (limbs(&mut rng, other), rng.below(2) as usize);
                let term = Term { limb: index * width, right: index, shift: rng.below(52 * columns as u32) };
                right.set(index, &y);
                want[sign] += by_definition(&left[term.limb..][..width], &y, term.shift, columns);
                terms[sign].push(term);
            }
            let mut sums = [[0; MOST_COLUMNS + 1]; 2];
            let mut plain = sums;
            for ((sums, plain), terms) in sums.iter_mut().zip(&mut plain).zip(&terms) {
                add_terms(sums, &left, width, &right, terms);
                add_plainly(plain, &left, width, &right, terms);
                [sums, plain].into_iter().for_each(|sums| carry(&mut sums[..columns + 1]));
            }
            assert_eq!(sums, plain, "case {case}");
            let mut out = vec![0xdead; sum_limbs(columns)];
            difference(&sums[0], &sums[1], columns, &mut out);
            let [plus, minus] = want;
            let modulus = Integer::from(1) << (64 * out.len() as u32);
            let got = Integer::from_digits(&out, Order::Lsf);
            let want = (plus - minus).modulo(&modulus);
            assert_eq!(got, want, "case {case}: {columns} columns, {count} terms");
        }
    }
}
