//! Exact sums of products of a few integers in digits of 24 to 28 bits; four columns are computed in the lanes of a
//! vector.
//!
//! There are no tables and few conversions, so that products of some tens of rows cost only the products of their
//! digits. An integer has balanced digits, `-2^(b-1) <= d < 2^(b-1)`; sums of many of their products stay in 64 bits
//! without a carry (`math::bound::digit_lane_terms`). Longer integers are halved one to three times by Karatsuba's
//! scheme (`halves`): since it is linear, halves are added once for each integer, and sums once for each column. A
//! *panel* holds four columns as `[row][block of digits][digit][lane]`; one column of a panel is multiplied with all
//! four of another.
//!
//! Independent of: matrices, signs, the selection of columns.

mod halves;
mod products;

use crate::math::bound::{DIGIT_LANE_BITS, digit_lane_terms};
use bytemuck::{cast_slice, cast_slice_mut};
use halves::MOST_LEVELS;
use products::DigitLaneProducts;

/// Columns of a panel.
pub const LANES: usize = 4;

/// Largest number of digits: longer integers are multiplied faster by others.
const MOST_DIGITS: usize = 160;

/// Fewest bits of a digit: fewer than the most where more products are to be summed between carries.
const LEAST_BITS: u32 = 24;

/// Rows for which the way to cut integers is chosen.
const USUAL_ROWS: usize = 16;

/// Fewest products between carries.
const LEAST_TERMS: usize = 4;

/// Limbs of as many digits, and one that may be read beyond them.
const MOST_LIMBS: usize = MOST_DIGITS * DIGIT_LANE_BITS as usize / 64 + 2;

/// Distance in bits between lengths of integers that are cut differently.
pub const STEP_BITS: u32 = 16;

/// The number of steps of lengths.
const STEPS: usize = MOST_DIGITS * DIGIT_LANE_BITS as usize / STEP_BITS as usize + 1;

/// How integers are cut, for each number of steps. Made by the compiler: the smallest products take less time than the
/// choice.
static BEST: [Option<DigitLanes>; STEPS] = choices(false);

/// The same from the longest down, so that shorter integers never take more memory.
static NARROW: [Option<DigitLanes>; STEPS] = choices(true);

const fn choices(narrow: bool) -> [Option<DigitLanes>; STEPS] {
    let mut best = [None; STEPS];
    let (mut steps, mut most_words) = (STEPS, usize::MAX);
    while steps > 0 {
        steps -= 1;
        best[steps] = DigitLanes::best(steps as u32 * STEP_BITS, most_words);
        if let (Some(lanes), true) = (best[steps], narrow) {
            most_words = lanes.row_words();
        }
    }
    best
}

/// The layout of integers of one length in digits.
#[derive(Clone, Copy, Debug)]
pub struct DigitLanes {
    /// Bits of a digit.
    bits: u32,
    /// Halvings.
    levels: u32,
    /// Digits of a block, an even number.
    block: usize,
    /// Products between carries.
    terms: usize,
    /// The instructions that it uses.
    products: DigitLaneProducts,
}

impl DigitLanes {
    /// For integers `|x| <= 2^bits`; `None` if this processor lacks the instructions, or if there are too many digits.
    pub fn new(bits: u32) -> Option<DigitLanes> {
        if !DigitLaneProducts::are_there() {
            return None;
        }
        *BEST.get(bits.div_ceil(STEP_BITS) as usize)?
    }

    /// As [`DigitLanes::new`], a little slower, such that shorter integers need no more memory: a step that needs fewer
    /// bits than planned uses the same plan.
    pub fn narrow(bits: u32) -> Option<DigitLanes> {
        if !DigitLaneProducts::are_there() {
            return None;
        }
        *NARROW.get(bits.div_ceil(STEP_BITS) as usize)?
    }

    /// The way to cut integers of `bits` bits that costs least for [`USUAL_ROWS`], of the ways that take at most
    /// `most_words` words.
    const fn best(bits: u32, most_words: usize) -> Option<DigitLanes> {
        let mut best: Option<DigitLanes> = None;
        let mut levels = 0;
        while levels <= MOST_LEVELS {
            let mut digit = DIGIT_LANE_BITS;
            while digit >= LEAST_BITS {
                if let Some(lanes) = DigitLanes::with(bits, levels, digit) {
                    let is_better = match best {
                        Some(other) => lanes.nanoseconds(USUAL_ROWS) < other.nanoseconds(USUAL_ROWS),
                        None => true,
                    };
                    if is_better && lanes.row_words() <= most_words {
                        best = Some(lanes);
                    }
                }
                digit -= 1;
            }
            levels += 1;
        }
        best
    }

    /// With digits of `digit` bits and `levels` halvings; `None` where sums would not fit.
    const fn with(bits: u32, levels: u32, digit: u32) -> Option<DigitLanes> {
        // The largest number of n balanced digits is 2^(n digit - 1) - 1 at least, but for the digits below the first.
        let least = (bits + 2).div_ceil(digit) as usize;
        let block = least.div_ceil(1 << levels).next_multiple_of(2);
        let terms = digit_lane_terms(digit, levels, block);
        let fits = block << levels <= MOST_DIGITS && terms >= LEAST_TERMS;
        // SAFETY: `new` and `narrow` give it out where the processor has the instructions, and tests use it there.
        let products = unsafe { DigitLaneProducts::assume() };
        if fits { Some(DigitLanes { bits: digit, levels, block, terms, products }) } else { None }
    }

    /// Estimated time of the products of a column with a panel of `rows` rows, fitted to measurements from 128 to 2080
    /// bits on a Zen 3.
    pub const fn nanoseconds(&self, rows: usize) -> f64 {
        let (block, digits, rows) = (self.block as f64, self.digits() as f64, rows as f64);
        let each_row = block * (0.2 * (block + 2.0) + 7.0 / self.terms as f64);
        let once = 30.0 + 8.0 * block;
        let halvings = (self.levels + 1) as f64;
        self.blocks() as f64 * (rows * each_row + once) + 5.0 * digits * halvings
    }

    /// Estimated time of one call of [`DigitLanes::set`], fitted to the same measurements.
    pub fn set_nanoseconds(&self) -> f64 {
        20.0 + 1.6 * self.digits() as f64 + self.blocks() as f64 * (self.block as f64 * 0.8 + 8.0)
    }

    /// Digits of an integer.
    pub const fn digits(&self) -> usize {
        self.block << self.levels
    }

    /// Blocks of digits: those of an integer and of the sums of its halves.
    const fn blocks(&self) -> usize {
        3usize.pow(self.levels)
    }

    /// Words of a panel of `rows` rows.
    pub fn panel_words(&self, rows: usize) -> usize {
        rows * self.row_words()
    }

    /// Words of one row of a panel.
    pub const fn row_words(&self) -> usize {
        self.blocks() * self.block * LANES / 2
    }

    /// Words of the sums of a column with the four columns of a panel.
    pub fn sum_words(&self) -> usize {
        self.blocks() * 2 * self.block * LANES
    }

    /// Sets the integer of one lane of a row of a panel; `magnitude` may be shorter than the digits, and must not
    /// exceed their number of bits.
    pub fn set(&self, row: &mut [u64], lane: usize, negative: bool, magnitude: &[u64]) {
        let row: &mut [i32] = cast_slice_mut(&mut row[..self.row_words()]);
        // Half the base in every digit makes all of them positive, without a carry from one to the next.
        let (flip, mut carry) = (u64::from(negative).wrapping_neg(), negative);
        let mut moved = [0; MOST_LIMBS];
        let count = (self.digits() * self.bits as usize).div_ceil(64);
        let offset = &OFFSETS[(DIGIT_LANE_BITS - self.bits) as usize];
        for (at, (limb, offset)) in moved[..count].iter_mut().zip(offset).enumerate() {
            let own = magnitude.get(at).copied().unwrap_or(0) ^ flip;
            let (sum, first) = own.overflowing_add(*offset);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first | second);
        }
        let bytes: &[u8] = cast_slice(&moved);
        let (mask, half) = ((1 << self.bits) - 1, 1 << (self.bits - 1));
        let length = self.block * LANES;
        let mut bit = 0;
        for part in 0..1 << self.levels {
            let place = halves::block_of(part) * length;
            for digit in row[place..place + length].iter_mut().skip(lane).step_by(LANES) {
                let window: [u8; 8] = bytes[bit / 8..bit / 8 + 8].try_into().expect("8 bytes");
                *digit = ((u64::from_le_bytes(window) >> (bit % 8)) & mask) as i32 - half;
                bit += self.bits as usize;
            }
        }
        halves::add(row, length);
    }

    /// The sums of the products of column `lane` of panel `x` with the four columns of `y`, over all of their `rows`:
    /// plain digits in pairs, and the part above them.
    pub fn multiply(&self, x: &[u64], lane: usize, y: &[u64], rows: usize, sums: &mut [u64]) {
        let words = self.panel_words(rows);
        let (x, y): (&[i32], &[i32]) = (cast_slice(&x[..words]), cast_slice(&y[..words]));
        let sums: &mut [i64] = cast_slice_mut(&mut sums[..self.sum_words()]);
        sums.fill(0);
        assert!(lane < LANES);
        let (stride, block) = (self.blocks() * self.block * LANES, self.block * LANES);
        for (at, sums) in sums.chunks_exact_mut(2 * block).enumerate() {
            let step = self.terms * stride;
            for (index, (x, y)) in x.chunks(step).zip(y.chunks(step)).enumerate() {
                if index > 0 {
                    self.products.carry(sums, self.bits);
                }
                self.products.add(&x[at * block + lane..], &y[at * block..], self.block, stride, sums);
            }
        }
        self.products.finish(sums, self.block, self.levels, self.bits);
    }

    /// The sum in one lane as two's complement, modulo the limbs of `out`.
    pub fn sum(&self, sums: &[u64], lane: usize, out: &mut [u64]) {
        let width = 2 * self.bits;
        let mut pairs = sums[lane..].iter().step_by(LANES);
        let (mut limb, mut held, mut at) = (0, 0, 0);
        for &pair in pairs.by_ref().take(self.digits()) {
            limb |= pair << held;
            held += width;
            if held >= 64 {
                out[at] = limb;
                (held, at) = (held - 64, at + 1);
                limb = pair >> (width - held);
                if at == out.len() {
                    return;
                }
            }
        }
        let top = *pairs.next().expect("a digit above the pairs") as i64;
        out[at] = limb | (top as u64) << held;
        let mut above = if held == 0 { top >> 63 } else { top >> (64 - held) };
        for limb in &mut out[at + 1..] {
            *limb = above as u64;
            above >>= 63;
        }
    }
}

/// For each number of bits, from the largest down, the number that has half the base in every digit.
const OFFSETS: [[u64; MOST_LIMBS]; (DIGIT_LANE_BITS - LEAST_BITS + 1) as usize] = {
    let mut offsets = [[0; MOST_LIMBS]; (DIGIT_LANE_BITS - LEAST_BITS + 1) as usize];
    let mut index = 0;
    while index < offsets.len() {
        let bits = DIGIT_LANE_BITS as usize - index;
        let mut bit = bits - 1;
        while bit < 64 * MOST_LIMBS {
            offsets[index][bit / 64] |= 1 << (bit % 64);
            bit += bits;
        }
        index += 1;
    }
    offsets
};

#[cfg(test)]
mod tests;
