//! Big floats to balanced residues: scale and round, cut into digits, multiply by radix powers, reduce.
//!
//! Some rows of a panel go through two steps in scratch: pairs of balanced digits of 16 bits (a pair of all entries,
//! then the next), and the product with the table of radix powers. With `2^15` added to each of its digits an integer
//! of either sign is a natural number, and each of that number's 16 bits less `2^15` is the balanced digit: one
//! addition with carries gives all of them, the sign and the rounding, and pairs of digits are halves of limbs.
//! Promise: equal to `math::scale::scaled_integer` modulo each prime; allocates nothing.
#![forbid(unsafe_code)]

use super::lanes::{Lanes, Task};
use super::micro::{COLUMNS, CONVERTED_VECTORS as VECTORS, MOST_LANES, Strip, Tile, residues};
use super::tables::OperandTables;
use crate::kernels::PanelSource;
use crate::kernels::form::Form;
use crate::kernels::limbs::add_with_carry;
use crate::kernels::scaled::write_scaled;
use crate::math::float::{FloatRef, Head};
use crate::plan::BLOCK;
use std::ops::Range;

/// Strips of rows whose digits are held: as many neighbouring lines of a plane are written together.
const STRIPS: usize = 16;

/// Words in a cache line.
const LINE_WORDS: usize = 8;

/// Digits of 16 bits in a limb.
const DIGITS_OF_LIMB: usize = 4;

/// `2^15` for each digit of a limb.
const HALVES: u64 = 0x8000_8000_8000_8000;

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

/// Words of scratch for one call: a magnitude, then the digits of all strips, two pairs in a word.
pub fn scratch_words(tables: &OperandTables) -> usize {
    limbs(tables) * (1 + STRIPS * MOST_LANES)
}

/// Limbs of an entry's digits. Those beyond the highest digit that there is meet no factor.
fn limbs(tables: &OperandTables) -> usize {
    tables.digits.div_ceil(DIGITS_OF_LIMB)
}

impl Task for ToResidues<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let ToResidues { tables, primes, source, form, planes, scratch } = self;
        let lanes = VECTORS * L::WIDTH;
        let (magnitude, digits) = scratch.split_at_mut(limbs(tables));
        let strip_words = limbs(tables) * DIGITS_OF_LIMB / 2 * lanes;
        let digits: &mut [i32] = bytemuck::cast_slice_mut(digits);
        let digits = &mut digits[..STRIPS * strip_words];
        let (rows, strip_rows) = (source.rows.len(), lanes / BLOCK);
        let mut tile = Tile::new();
        let streams = L::STREAMS && source.streams_halves(primes.len());
        for first in (0..rows).step_by(STRIPS * strip_rows) {
            let batch = first..(first + STRIPS * strip_rows).min(rows);
            for (start, digits) in batch.clone().step_by(strip_rows).zip(digits.chunks_exact_mut(strip_words)) {
                cut_rows(source, start..(start + strip_rows).min(rows), magnitude, (digits, lanes));
            }
            let groups = primes.start / COLUMNS..primes.end.div_ceil(COLUMNS);
            let next = batch.end..(batch.end + STRIPS * strip_rows).min(rows);
            for group in groups.clone() {
                // Beside streams it costs more than it saves.
                if !L::STREAMS {
                    fetch::<L>(source, &next, (group - groups.start, groups.len()));
                    let words = form.panel_words(batch.start)..form.panel_words(batch.end);
                    for prime in (group + 1) * COLUMNS..((group + 2) * COLUMNS).min(primes.end) {
                        let lines = planes[prime - primes.start][words.clone()].iter().step_by(LINE_WORDS);
                        lines.for_each(|line| L::prefetch(line));
                    }
                }
                let factors = tables.radix_powers.group(group);
                let moduli = (&tables.primes[group], tables.intervals[group]);
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

/// Writes the balanced digits of some rows, row by row: pair `w` of entry `lane` to integer `w * lanes + lane`.
#[inline(always)]
fn cut_rows(source: &PanelSource<'_>, rows: Range<usize>, magnitude: &mut [u64], (out, lanes): (&mut [i32], usize)) {
    let (view, columns) = (&source.view, source.columns.clone());
    let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
    for lane in 0..lanes {
        let (row, column) = (rows.start + lane / BLOCK, columns.start + lane % BLOCK);
        if row >= rows.end || column >= columns.end {
            out.chunks_exact_mut(lanes).for_each(|pairs| pairs[lane] = 0);
            continue;
        }
        let index = view.element_index(source.rows.start + row, column);
        let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
        let rounds_up = write_scaled(value, source.shifts[column], magnitude.iter_mut());
        // The negative of `m + r` is that of `m` with all bits turned over, plus 1 less `r`.
        let negative = value.head.is_negative();
        let (mask, mut carry) = (0u64.wrapping_sub(u64::from(negative)), negative ^ rounds_up);
        for (limb, pairs) in magnitude.iter().zip(out.chunks_exact_mut(2 * lanes)) {
            let sum;
            (sum, carry) = add_with_carry(limb ^ mask, HALVES, carry);
            let digits = sum ^ HALVES;
            (pairs[lane], pairs[lanes + lane]) = (digits as i32, (digits >> 32) as i32);
        }
    }
}

/// Asks for part `part` of `parts` of some rows, which are converted next.
#[inline(always)]
fn fetch<L: Lanes>(source: &PanelSource<'_>, rows: &Range<usize>, (part, parts): (usize, usize)) {
    let (view, columns) = (&source.view, source.columns.clone());
    let (limbs, width, count) = (view.all_limbs(), view.limbs_per_element(), rows.len() * columns.len());
    for at in part * count / parts..(part + 1) * count / parts {
        let (row, column) = (rows.start + at % rows.len(), columns.start + at / rows.len());
        let index = view.element_index(source.rows.start + row, column);
        limbs[index * width..][..width].iter().step_by(LINE_WORDS).for_each(|line| L::prefetch(line));
    }
}
