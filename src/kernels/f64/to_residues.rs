//! Big floats to balanced residues: scale and round, cut into digits, multiply by radix powers, reduce.
//!
//! A batch of rows of one column goes through three steps in scratch: scaled integers (a limb of all rows, then the
//! next limb), balanced digits as doubles (a digit of all rows, then the next), and the product with the table of
//! radix powers, whose sums are reduced in registers and stored in the planes.
//! Promise: equal to `math::scale::scaled_integer` modulo each prime; allocates nothing.
#![forbid(unsafe_code)]

use super::combine::{OUTPUTS, Reducer, combine};
use super::simd::{LANES, Task, Vector};
use super::tables::{Digits, Tables};
use crate::kernels::PanelSource;
use crate::math::float::{FloatRef, Head};
use crate::plan::BLOCK;
use std::ops::Range;

/// Rows that are converted at a time: their digits stay in the nearest caches.
const BATCH: usize = 96;

/// Vectors of a batch.
const VECTORS: usize = BATCH / LANES;

/// One panel to convert.
pub struct ToResidues<'a, 'b> {
    /// Moduli and tables.
    pub tables: &'a Tables,
    /// The primes wanted.
    pub primes: Range<usize>,
    /// The columns to convert.
    pub source: &'a PanelSource<'a>,
    /// Words from one column of a panel to the next.
    pub stride: usize,
    /// One panel for each prime wanted.
    pub planes: &'a mut [&'b mut [u64]],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &Tables) -> usize {
    (tables.operand_offset.len() + tables.operand.count) * BATCH
}

impl Task for ToResidues<'_, '_> {
    #[inline(always)]
    fn run<V: Vector, const N: usize>(self) {
        let rows = self.source.rows.len();
        for column in 0..BLOCK {
            let start = column * self.stride;
            if column >= self.source.columns.len() {
                for plane in self.planes.iter_mut() {
                    plane[start..start + rows].fill(0);
                }
                continue;
            }
            let (limbs, digits) = self.scratch.split_at_mut(self.tables.operand_offset.len() * BATCH);
            let digits: &mut [f64] = bytemuck::cast_slice_mut(&mut digits[..self.tables.operand.count * BATCH]);
            for first in (0..rows).step_by(BATCH) {
                let count = BATCH.min(rows - first);
                scale_batch(self.source, column, first..first + count, &self.tables.operand_offset, limbs);
                cut_digits(self.tables.operand, limbs, digits);
                let batch = Batch { tables: self.tables, digits, start: start + first, count };
                batch.write_residues::<V, N>(self.primes.clone(), self.planes);
            }
        }
    }
}

/// Writes the scaled integers of rows `rows` (counted from the chunk's first) of one column, plus the offset.
#[inline(always)]
fn scale_batch(source: &PanelSource<'_>, column: usize, rows: Range<usize>, offset: &[u64], out: &mut [u64]) {
    let (view, column) = (&source.view, source.columns.start + column);
    let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
    let first = view.element_index(source.rows.start + rows.start, column);
    view.element_index(source.rows.start + rows.end - 1, column); // asserts that all rows lie in the view
    for lane in 0..rows.len() {
        let index = first + lane * view.row_stride();
        let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
        write_scaled(value, source.shifts[column], offset, &mut out[lane..]);
    }
}

/// Writes `round(value * 2^shift) + offset`, to nearest, ties to even; limb `w` goes to word `w * BATCH`.
///
/// The sum must lie in `[0, 2^(64 offset.len()))`: so no sign is left to store.
#[inline(always)]
fn write_scaled(value: FloatRef<'_>, shift: i64, offset: &[u64], out: &mut [u64]) {
    let limbs = value.limbs;
    let bits = limbs.len() as i64 * 64;
    // Bit `low` of the significand becomes bit 0 of the integer; the bits below it are rounded off.
    let low = bits.saturating_sub(value.head.exponent().saturating_add(shift));
    if value.head.is_zero() || low > bits {
        // Zero, or less than one half.
        for (word, &limb) in offset.iter().enumerate() {
            out[word * BATCH] = limb;
        }
        return;
    }
    // A negative index wraps to one that is too large.
    let fetch = |index: i64| limbs.get(index as usize).copied().unwrap_or(0);
    let (word, right) = (low.div_euclid(64), low.rem_euclid(64) as u32);
    let round_up = low > 0 && rounds_up(limbs, low as usize);
    // offset + (m + r) or, for a negative number, offset - (m + r) = offset + !m + (1 - r) modulo 2^(64 words).
    let negative = value.head.is_negative();
    let flip = if negative { u64::MAX } else { 0 };
    let mut carry = u64::from(negative != round_up);
    let mut below = fetch(word);
    for (index, &limb) in offset.iter().enumerate() {
        let above = fetch(word + 1 + index as i64);
        let shifted = (below >> right) | ((above << 1) << (63 - right));
        let (sum, first_carry) = limb.overflowing_add(shifted ^ flip);
        let (sum, second_carry) = sum.overflowing_add(carry);
        carry = u64::from(first_carry | second_carry);
        out[index * BATCH] = sum;
        below = above;
    }
}

/// Whether the significand without its lowest `low` bits, `1 <= low <= 64 limbs`, must be increased by one.
#[inline(always)]
fn rounds_up(limbs: &[u64], low: usize) -> bool {
    let (word, bit) = ((low - 1) / 64, (low - 1) % 64);
    if (limbs[word] >> bit) & 1 == 0 {
        return false;
    }
    let odd = limbs.get(low / 64).is_some_and(|limb| (limb >> (low % 64)) & 1 == 1);
    odd || limbs[word] & ((1 << bit) - 1) != 0 || limbs[..word].iter().any(|&limb| limb != 0)
}

/// Cuts the offset integers of a batch into balanced digits.
#[inline(always)]
fn cut_digits(shape: Digits, limbs: &[u64], digits: &mut [f64]) {
    // A field below 2^52 under this exponent is the double 2^52 + field.
    const EXPONENT: u64 = 0x433 << 52;
    let mask = (1u64 << shape.bits) - 1;
    let excess = f64::from_bits(EXPONENT | 1 << (shape.bits - 1));
    for (index, digits) in digits.chunks_exact_mut(BATCH).enumerate() {
        let bit = index * shape.bits as usize;
        let (word, shift) = (bit / 64, (bit % 64) as u32);
        let low = &limbs[word * BATCH..][..BATCH];
        if shift + shape.bits <= 64 {
            for lane in 0..BATCH {
                digits[lane] = f64::from_bits(((low[lane] >> shift) & mask) | EXPONENT) - excess;
            }
        } else {
            let high = &limbs[(word + 1) * BATCH..][..BATCH];
            let left = 64 - shift;
            for lane in 0..BATCH {
                let field = (low[lane] >> shift) | (high[lane] << left);
                digits[lane] = f64::from_bits((field & mask) | EXPONENT) - excess;
            }
        }
    }
}

/// The digits of `count` rows, whose residues go to words `start..start + count` of each plane.
struct Batch<'a> {
    tables: &'a Tables,
    digits: &'a [f64],
    start: usize,
    count: usize,
}

impl Batch<'_> {
    #[inline(always)]
    fn write_residues<V: Vector, const N: usize>(&self, primes: Range<usize>, planes: &mut [&mut [u64]]) {
        let rows = self.digits.as_chunks::<LANES>().0;
        for group in primes.start / OUTPUTS..primes.end.div_ceil(OUTPUTS) {
            let table = self.tables.radix_powers.group(group);
            for first in (0..VECTORS).step_by(N) {
                if first * LANES >= self.count {
                    break;
                }
                let sums = combine::<V, N>(rows, VECTORS, first, table);
                for (output, sums) in sums.iter().enumerate() {
                    let prime = group * OUTPUTS + output;
                    if primes.contains(&prime) {
                        self.store(sums, first, prime, &mut *planes[prime - primes.start]);
                    }
                }
            }
        }
    }

    /// Reduces and stores the rows of vectors `first..first + N` that exist.
    #[inline(always)]
    fn store<V: Vector, const N: usize>(&self, sums: &[V; N], first: usize, prime: usize, plane: &mut [u64]) {
        let reducer = Reducer::<V>::new(self.tables.primes[prime], self.tables.inverses[prime]);
        let plane: &mut [f64] = bytemuck::cast_slice_mut(plane);
        let plane = &mut plane[self.start..self.start + self.count];
        for (n, &sum) in sums.iter().enumerate() {
            let residues = reducer.reduce(sum);
            let at = (first + n) * LANES;
            if let Some(whole) = plane.get_mut(at..at + LANES) {
                residues.store(whole.first_chunk_mut().expect("eight words"));
            } else if at < self.count {
                let mut last = [0.0; LANES];
                residues.store(&mut last);
                plane[at..].copy_from_slice(&last[..self.count - at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::EngineSpec;
    use crate::math::scale::scaled_integer;
    use rand::{Rng, SeedableRng};
    use rug::Integer;
    use rug::integer::Order;

    /// A random significand of `limbs` limbs; every third has few bits set, so that exact values and ties occur.
    fn significand(rng: &mut impl Rng, limbs: usize) -> Vec<u64> {
        let mut words: Vec<u64> = (0..limbs).map(|_| rng.random()).collect();
        match rng.random_range(0..3) {
            0 => words.iter_mut().for_each(|word| *word = 0),
            1 => words.iter_mut().for_each(|word| *word = u64::MAX << rng.random_range(0..64)),
            _ => {}
        }
        let set = rng.random_range(0..limbs);
        words[set] |= 1 << rng.random_range(0..64);
        words[limbs - 1] |= 1 << 63;
        words
    }

    #[test]
    fn scaled_integers_and_their_digits_equal_the_reference() {
        for seed in 0..6000u64 {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let width = rng.random_range(1..=5);
            let operand_bits = rng.random_range(1..400u32);
            let spec = EngineSpec { operand_bits, modulus_bits: 60, redundant: false };
            let tables = Tables::new(&spec);
            let limbs = significand(&mut rng, width);
            let exponent = rng.random_range(-100_000..100_000i64);
            // The scaled number lies below 2^operand_bits; far below, about one half, or near the top.
            let size = match seed % 4 {
                0 => rng.random_range(-200..=i64::from(operand_bits)),
                1 => rng.random_range(-1..=1i64).min(i64::from(operand_bits)),
                2 => i64::from(operand_bits),
                _ => -1_000_000_000,
            };
            let head = if seed % 11 == 0 { Head::ZERO } else { Head::new(seed % 2 == 1, exponent) };
            let value = FloatRef { head, limbs: &limbs };
            let want = scaled_integer(value, size - exponent);

            let mut out = vec![0xdead; tables.operand_offset.len() * BATCH];
            write_scaled(value, size - exponent, &tables.operand_offset, &mut out[5..]);
            let words: Vec<u64> = out[5..].iter().step_by(BATCH).copied().collect();
            let got = Integer::from_digits(&words, Order::Lsf) - tables.operand.offset();
            assert_eq!(got, want, "seed {seed}: {value:?} shifted by {}", size - exponent);

            let mut digits = vec![f64::NAN; tables.operand.count * BATCH];
            cut_digits(tables.operand, &out, &mut digits);
            let half = f64::from(1u32 << (tables.operand.bits - 1));
            let mut sum = Integer::new();
            for digit in (0..tables.operand.count).rev() {
                let value = digits[digit * BATCH + 5];
                assert!(value.abs() <= half && value.fract() == 0.0, "seed {seed}: digit {value}");
                sum = (sum << tables.operand.bits) + value as i64;
            }
            assert_eq!(sum, want, "seed {seed}: digits");
        }
    }
}
