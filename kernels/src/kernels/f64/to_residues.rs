//! Big floats to balanced residues: scale and round, cut into digits, multiply by radix powers, reduce.
//!
//! A batch of rows of one column goes through three steps in scratch: magnitudes (a limb of all rows, then the next
//! limb), digits as doubles (a digit of all rows, then the next), and the product with the table of radix powers, whose
//! sums are reduced in registers and stored in the planes. Signs go into the digits, and the rounding bit is added to
//! the lowest digit, so that no carry runs through the limbs.
//! Promise: equal to `math::scale::scaled_integer` modulo each prime; allocates nothing.
#![forbid(unsafe_code)]

use super::combine::{F64Reducer, OUTPUTS, combine};
use super::simd::{DoubleVector, F64Task, LANES};
use super::tables::F64Tables;
use crate::kernels::PanelSource;
use crate::kernels::radix::Digits;
use crate::kernels::scaled::write_scaled;
use crate::math::float::{FloatRef, Head};
use crate::plan::BLOCK;
use std::ops::Range;

/// Rows that are converted at a time: their digits stay in the nearest caches.
const BATCH: usize = 96;

/// Vectors of a batch.
const VECTORS: usize = BATCH / LANES;

/// Windows larger than this are written past the caches: they would be evicted before the products read them.
const STREAM_BYTES: usize = 24 << 20;

/// One panel to convert.
pub struct F64ToResidues<'a, 'b> {
    /// Moduli and tables.
    pub tables: &'a F64Tables,
    /// The primes to convert for.
    pub primes: Range<usize>,
    /// The columns to convert.
    pub source: &'a PanelSource<'a>,
    /// The layout of the columns in `planes`.
    pub place: Place,
    /// One panel for each of `primes`, or its eight columns.
    pub planes: &'a mut [&'b mut [u64]],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Where the columns of a panel go.
#[derive(Clone, Copy)]
pub enum Place {
    /// One slice for each prime, its columns `stride` words apart.
    Panel {
        /// Words from one column to the next.
        stride: usize,
    },
    /// Eight slices for each prime, a column each.
    Runs,
}

impl Place {
    /// Slice and first word of a column of the prime number `prime` of those to convert for.
    #[inline(always)]
    fn of(self, prime: usize, column: usize) -> (usize, usize) {
        match self {
            Place::Panel { stride } => (prime, column * stride),
            Place::Runs => (prime * BLOCK + column, 0),
        }
    }
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &F64Tables) -> usize {
    (tables.operand.limbs() + tables.operand.count) * BATCH
}

impl F64Task for F64ToResidues<'_, '_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        let (rows, operand) = (self.source.rows.len(), self.tables.operand);
        if rows <= LANES {
            return self.convert_square::<V, N>();
        }
        let stream = 8 * self.primes.len() * rows * self.source.view.cols() > STREAM_BYTES;
        let (limbs, digits) = self.scratch.split_at_mut(operand.limbs() * BATCH);
        let digits: &mut [f64] = bytemuck::cast_slice_mut(&mut digits[..operand.count * BATCH]);
        for column in 0..BLOCK {
            if column >= self.source.columns.len() {
                for prime in 0..self.primes.len() {
                    let (plane, start) = self.place.of(prime, column);
                    self.planes[plane][start..start + rows].fill(0);
                }
                continue;
            }
            for first in (0..rows).step_by(BATCH) {
                let count = BATCH.min(rows - first);
                let mut ends = Ends { signs: [0; BATCH], rounding: [0.0; BATCH] };
                scale_batch(self.source, column, first..first + count, limbs, 0, &mut ends);
                cut_digits(operand, limbs, &ends, digits);
                let lanes = BatchLanes::Column { column, first };
                let batch = Batch { tables: self.tables, digits, place: self.place, lanes, rows, stream };
                batch.write_residues::<V, N>(self.primes.clone(), self.planes);
            }
        }
        if stream {
            V::fence();
        }
    }
}

impl F64ToResidues<'_, '_> {
    /// Up to a vector of rows, all columns in one batch: a vector each.
    #[inline(always)]
    fn convert_square<V: DoubleVector, const N: usize>(self) {
        const { assert!(BLOCK <= VECTORS) };
        let (rows, operand) = (self.source.rows.len(), self.tables.operand);
        let (limbs, digits) = self.scratch.split_at_mut(operand.limbs() * BATCH);
        let digits: &mut [f64] = bytemuck::cast_slice_mut(&mut digits[..operand.count * BATCH]);
        let mut ends = Ends { signs: [0; BATCH], rounding: [0.0; BATCH] };
        limbs.fill(0); // columns that there are not
        if rows > 0 {
            for column in 0..self.source.columns.len() {
                scale_batch(self.source, column, 0..rows, limbs, column * LANES, &mut ends);
            }
        }
        cut_digits(operand, limbs, &ends, digits);
        let lanes = BatchLanes::Square;
        let batch = Batch { tables: self.tables, digits, place: self.place, lanes, rows, stream: false };
        batch.write_residues::<V, N>(self.primes.clone(), self.planes);
    }
}

/// What is not in a magnitude: the sign bit of each double, and 1 where the magnitude is to be rounded up.
struct Ends {
    signs: [u64; BATCH],
    rounding: [f64; BATCH],
}

/// Writes the magnitudes of rows `rows` (counted from the chunk's first) of one column to the lanes from `start` on.
#[inline(always)]
fn scale_batch(
    source: &PanelSource<'_>,
    column: usize,
    rows: Range<usize>,
    out: &mut [u64],
    start: usize,
    ends: &mut Ends,
) {
    let (view, column) = (&source.view, source.columns.start + column);
    let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
    let first = view.element_index(source.rows.start + rows.start, column);
    view.element_index(source.rows.start + rows.end - 1, column); // asserts that all rows lie in the view
    for (row, lane) in (start..start + rows.len()).enumerate() {
        let index = first + row * view.row_stride();
        let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
        let round_up = write_scaled(value, source.shifts[column], out[lane..].iter_mut().step_by(BATCH));
        ends.signs[lane] = u64::from(value.head.is_negative()) << 63;
        ends.rounding[lane] = f64::from(u8::from(round_up));
    }
}

/// Cuts the magnitudes of a batch into digits with the entries' signs, the rounding bit added to the lowest.
#[inline(always)]
fn cut_digits(shape: Digits, limbs: &[u64], ends: &Ends, digits: &mut [f64]) {
    // A field below 2^52 under this exponent is the double 2^52 + field.
    const EXPONENT: u64 = 0x433 << 52;
    const BIAS: f64 = f64::from_bits(EXPONENT);
    let mask = (1u64 << shape.bits) - 1;
    for (index, digits) in digits.chunks_exact_mut(BATCH).enumerate() {
        let bit = index * shape.bits as usize;
        let (word, shift) = (bit / 64, (bit % 64) as u32);
        let low = &limbs[word * BATCH..][..BATCH];
        if shift + shape.bits <= 64 {
            for lane in 0..BATCH {
                let field = (low[lane] >> shift) & mask;
                digits[lane] = signed(f64::from_bits(field | EXPONENT) - BIAS, ends.signs[lane]);
            }
        } else {
            let high = &limbs[(word + 1) * BATCH..][..BATCH];
            for lane in 0..BATCH {
                let field = ((low[lane] >> shift) | (high[lane] << (64 - shift))) & mask;
                digits[lane] = signed(f64::from_bits(field | EXPONENT) - BIAS, ends.signs[lane]);
            }
        }
    }
    for ((digit, &rounding), &sign) in digits.iter_mut().zip(&ends.rounding).zip(&ends.signs) {
        *digit += signed(rounding, sign);
    }
}

/// `x` with its sign bit changed where `sign` has it set.
#[inline(always)]
fn signed(x: f64, sign: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ sign)
}

/// The kinds of vectors of a batch.
#[derive(Clone, Copy)]
enum BatchLanes {
    /// Rows of one column, from row `first` on.
    Column { column: usize, first: usize },
    /// A column each.
    Square,
}

/// The digits of a batch of `rows` rows in all, written past the caches or not.
struct Batch<'a> {
    tables: &'a F64Tables,
    digits: &'a [f64],
    place: Place,
    lanes: BatchLanes,
    rows: usize,
    stream: bool,
}

impl Batch<'_> {
    /// Column and first row of a vector; the row may lie behind the last one.
    #[inline(always)]
    fn start(&self, vector: usize) -> (usize, usize) {
        match self.lanes {
            BatchLanes::Column { column, first } => (column, first + vector * LANES),
            BatchLanes::Square => (vector, 0),
        }
    }

    /// Vectors that have rows to write.
    #[inline(always)]
    fn vectors(&self) -> usize {
        match self.lanes {
            BatchLanes::Column { first, .. } => (self.rows - first).div_ceil(LANES).min(VECTORS),
            BatchLanes::Square => BLOCK,
        }
    }

    #[inline(always)]
    fn write_residues<V: DoubleVector, const N: usize>(&self, primes: Range<usize>, planes: &mut [&mut [u64]]) {
        let digits = self.digits.as_chunks::<LANES>().0;
        let vectors = self.vectors();
        for group in primes.start / OUTPUTS..primes.end.div_ceil(OUTPUTS) {
            let table = self.tables.radix_powers.group(group);
            for first in (0..VECTORS).step_by(N) {
                if first >= vectors {
                    break;
                }
                let sums = combine::<V, N>(digits, VECTORS, first, table);
                for (output, sums) in sums.iter().enumerate() {
                    let prime = group * OUTPUTS + output;
                    if primes.contains(&prime) {
                        let reducer = F64Reducer::<V>::new(self.tables.primes[prime], self.tables.inverses[prime]);
                        for (vector, &sum) in (first..vectors).zip(sums) {
                            let (column, row) = self.start(vector);
                            let (plane, start) = self.place.of(prime - primes.start, column);
                            let count = LANES.min(self.rows - row);
                            self.store(reducer.reduce(sum), &mut planes[plane][start + row..][..count]);
                        }
                    }
                }
            }
        }
    }

    /// Stores the residues of up to eight rows.
    #[inline(always)]
    fn store<V: DoubleVector>(&self, residues: V, out: &mut [u64]) {
        let out: &mut [f64] = bytemuck::cast_slice_mut(out);
        if let Some(whole) = out.first_chunk_mut() {
            if self.stream { residues.stream(whole) } else { residues.store(whole) }
        } else {
            let mut last = [0.0; LANES];
            residues.store(&mut last);
            out.copy_from_slice(&last[..out.len()]);
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
            let tables = F64Tables::new(&spec);
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

            let operand = tables.operand;
            let mut out = vec![0xdead; operand.limbs() * BATCH];
            let round_up = write_scaled(value, size - exponent, out[5..].iter_mut().step_by(BATCH));
            let words: Vec<u64> = out[5..].iter().step_by(BATCH).copied().collect();
            let got = Integer::from_digits(&words, Order::Lsf) + u32::from(round_up);
            let got = if head.is_negative() { -got } else { got };
            assert_eq!(got, want, "seed {seed}: {value:?} shifted by {}", size - exponent);

            let mut ends = Ends { signs: [0; BATCH], rounding: [0.0; BATCH] };
            ends.signs[5] = u64::from(head.is_negative()) << 63;
            ends.rounding[5] = f64::from(u8::from(round_up));
            let mut digits = vec![f64::NAN; operand.count * BATCH];
            cut_digits(operand, &out, &ends, &mut digits);
            let largest = f64::from(1u32 << operand.bits);
            let mut sum = Integer::new();
            for digit in (0..operand.count).rev() {
                let value = digits[digit * BATCH + 5];
                assert!(value.abs() <= largest && value.fract() == 0.0, "seed {seed}: digit {value}");
                sum = (sum << operand.bits) + value as i64;
            }
            assert_eq!(sum, want, "seed {seed}: digits");
        }
    }
}
