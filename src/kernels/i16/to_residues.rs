//! Big floats to balanced residues: scale and round, cut into digits, multiply by radix powers, reduce.
//!
//! Some rows of a panel go through three steps in scratch: magnitudes (a limb of all entries, then the next limb),
//! pairs of balanced digits (a pair of all entries, then the next), and the product with the table of radix powers.
//! A digit of 13 bits is balanced by the bit below it alone: the digit becomes negative where its own highest bit is
//! set, and one more where that of the digit below is, so that no carry runs through the limbs. Signs go into the
//! digits, and the rounding bit is added to the lowest.
//! Promise: equal to `math::scale::scaled_integer` modulo each prime; allocates nothing.
#![forbid(unsafe_code)]

use super::lanes::{Lanes, Task};
use super::micro::{COLUMNS, CONVERTED_VECTORS as VECTORS, MOST_LANES, Strip, Tile, residues};
use super::tables::OperandTables;
use crate::kernels::PanelSource;
use crate::kernels::form::Form;
use crate::kernels::radix::Digits;
use crate::kernels::scaled::write_scaled;
use crate::math::float::{FloatRef, Head};
use crate::plan::BLOCK;
use std::ops::Range;

/// Strips of rows whose digits are held: as many neighbouring lines of a plane are written together.
const STRIPS: usize = 16;

/// One panel to convert.
pub struct ToResidues<'a, 'b> {
    /// Moduli, digits and radix powers.
    pub tables: &'a OperandTables,
    /// The primes wanted.
    pub primes: Range<usize>,
    /// The columns to convert.
    pub source: &'a PanelSource<'a>,
    /// The order of the rows.
    pub form: Form,
    /// One panel for each prime wanted.
    pub planes: &'a mut [&'b mut [u64]],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &OperandTables) -> usize {
    (limbs(tables.digits) + (STRIPS * tables.radix_powers.pairs()).div_ceil(2)) * MOST_LANES
}

/// Limbs of a magnitude, with one more, which is 0 or read beyond the highest digit alone.
fn limbs(operand: Digits) -> usize {
    operand.shift(operand.count.next_multiple_of(2)).div_ceil(64) as usize + 1
}

impl Task for ToResidues<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let ToResidues { tables, primes, source, form, planes, scratch } = self;
        let lanes = VECTORS * L::WIDTH;
        let (magnitudes, digits) = scratch.split_at_mut(limbs(tables.digits) * MOST_LANES);
        let magnitudes = &mut magnitudes[..limbs(tables.digits) * lanes];
        let strip_words = tables.radix_powers.pairs() * lanes;
        let digits: &mut [i32] = bytemuck::cast_slice_mut(digits);
        let digits = &mut digits[..STRIPS * strip_words];
        let (rows, strip_rows) = (source.rows.len(), lanes / BLOCK);
        let mut tile = Tile::new();
        let streams = source.streams_halves(primes.len());
        for first in (0..rows).step_by(STRIPS * strip_rows) {
            let batch = first..(first + STRIPS * strip_rows).min(rows);
            for (start, digits) in batch.clone().step_by(strip_rows).zip(digits.chunks_exact_mut(strip_words)) {
                let mut ends = Ends { signs: [0; MOST_LANES], rounding: [0; MOST_LANES] };
                scale_rows(source, start..(start + strip_rows).min(rows), (magnitudes, lanes), &mut ends);
                for (number, pairs) in digits.chunks_exact_mut(lanes).enumerate() {
                    cut_pair(number, (magnitudes, lanes), &ends, pairs);
                }
            }
            for group in primes.start / COLUMNS..primes.end.div_ceil(COLUMNS) {
                let (factors, moduli) = (tables.radix_powers.group(group), (&tables.primes[group], tables.interval));
                for (start, digits) in batch.clone().step_by(strip_rows).zip(digits.chunks_exact(strip_words)) {
                    let strip = Strip { words: digits, stride: lanes, skipped: 0 };
                    residues::<L, C>((strip, factors), moduli, &mut tile);
                    let strip = start..(start + strip_rows).min(rows);
                    for (prime, column) in (group * COLUMNS..).zip(&tile.residues) {
                        if primes.contains(&prime) {
                            let plane = &mut *planes[prime - primes.start];
                            write::<L>(plane, (form, strip.clone()), &column[..lanes], streams);
                        }
                    }
                }
            }
        }
        L::fence(); // streamed words must be visible before another thread is told of them
    }
}

/// Writes the residues of some rows to one plane.
#[inline(always)]
fn write<L: Lanes>(plane: &mut [u64], (form, rows): (Form, Range<usize>), column: &[i16], streams: bool) {
    let out = &mut plane[form.panel_words(rows.start)..form.panel_words(rows.end)];
    let mut words = [0u64; MOST_LANES / 4];
    let column = match form {
        Form::Rows => column,
        Form::Pairs => {
            let words = &mut words[..column.len() / 4];
            let pairs: &mut [i16] = bytemuck::cast_slice_mut(words);
            for (pair, two) in pairs.as_chunks_mut::<{ 2 * BLOCK }>().0.iter_mut().zip(column.as_chunks().0) {
                interleave(two, pair);
            }
            form.clear_behind(rows.len(), words);
            bytemuck::cast_slice(words)
        }
    };
    let out: &mut [i16] = bytemuck::cast_slice_mut(out);
    if out.len() != column.len() {
        out.copy_from_slice(&column[..out.len()]);
    } else if streams {
        L::stream_halves(column, out);
    } else {
        out.copy_from_slice(column); // of a length that is known when this is compiled
    }
}

/// Two rows as pairs.
#[inline(always)]
fn interleave(rows: &[i16; 2 * BLOCK], pairs: &mut [i16; 2 * BLOCK]) {
    for at in 0..2 * BLOCK {
        pairs[at] = rows[at % 2 * BLOCK + at / 2];
    }
}

/// What a magnitude lacks: all ones where the entry is negative, and 1 where the magnitude is to be rounded up.
struct Ends {
    signs: [i32; MOST_LANES],
    rounding: [i32; MOST_LANES],
}

/// Writes the magnitudes of some rows, row by row: limb `w` of entry `lane` to word `w * lanes + lane`.
#[inline(always)]
fn scale_rows(source: &PanelSource<'_>, rows: Range<usize>, (out, lanes): (&mut [u64], usize), ends: &mut Ends) {
    let (view, columns) = (&source.view, source.columns.clone());
    let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
    for lane in 0..lanes {
        let (row, column) = (rows.start + lane / BLOCK, columns.start + lane % BLOCK);
        let mut words = out[lane..].iter_mut().step_by(lanes);
        if row >= rows.end || column >= columns.end {
            words.by_ref().for_each(|word| *word = 0);
            continue;
        }
        let index = view.element_index(source.rows.start + row, column);
        let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
        let round_up = write_scaled(value, source.shifts[column], words);
        ends.signs[lane] = -i32::from(value.head.is_negative());
        ends.rounding[lane] = i32::from(round_up);
    }
}

/// Digits `2 number` and `2 number + 1` of all entries as pairs.
#[inline(always)]
fn cut_pair(number: usize, (magnitudes, lanes): (&[u64], usize), ends: &Ends, pairs: &mut [i32]) {
    // The digits, and the bit below them: 27 bits.
    const BITS: usize = 26;
    if number == 0 {
        for lane in 0..lanes {
            pairs[lane] = balanced((magnitudes[lane] << 1) as u32, ends.signs[lane], ends.rounding[lane]);
        }
        return;
    }
    let (word, shift) = ((BITS * number - 1) / 64, (BITS * number - 1) % 64);
    let low = &magnitudes[word * lanes..][..lanes];
    if shift + BITS < 64 {
        for lane in 0..lanes {
            pairs[lane] = balanced((low[lane] >> shift) as u32, ends.signs[lane], 0);
        }
    } else {
        let high = &magnitudes[(word + 1) * lanes..][..lanes];
        for lane in 0..lanes {
            let window = (low[lane] >> shift) | (high[lane] << (64 - shift));
            pairs[lane] = balanced(window as u32, ends.signs[lane], 0);
        }
    }
}

/// Two digits of 13 bits, and the bit below them, as balanced digits with a sign; `more` is added to the lower one.
#[inline(always)]
fn balanced(window: u32, sign: i32, more: i32) -> i32 {
    // Each digit with the bit below it as a signed number, half of it rounded up.
    let digit = |top: u32| (((window << top) as i32 >> 18) + 1) >> 1;
    let (low, high) = (digit(18) + more, digit(5));
    (((low ^ sign) - sign) & 0xffff) | ((high ^ sign) - sign) << 16
}
