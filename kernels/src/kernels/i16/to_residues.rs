//! Big floats to balanced residues: scale and round, cut into digits, multiply by radix powers, reduce.
//!
//! Some rows of a panel go through two steps in scratch: pairs of balanced digits of 16 bits (a pair of all entries,
//! then the next), and the product with the table of radix powers. With `2^15` added to each of its digits an integer
//! of either sign is a natural number, and each of that number's 16 bits less `2^15` is the balanced digit: one
//! addition with carries gives all of them, the sign and the rounding, and pairs of digits are halves of limbs. The
//! panel determines the entry of each lane: a reduction interleaves the residues of a lane of the first vector and of
//! the second one, in the order of the panel. Promise: equal to `math::scale::scaled_integer` modulo each prime;
//! allocates nothing.
#![forbid(unsafe_code)]

use super::lanes::{I16Task, Lanes};
use super::micro::{COLUMNS, CONVERTED_VECTORS as VECTORS, I16Tile, MOST_CONVERTED, PairStrip, convert};
use super::tables::OperandTables;
use crate::kernels::PanelSource;
use crate::kernels::form::Form;
use crate::kernels::scaled::Scaled;
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

/// Entries that are cut side by side.
const SIDE_BY_SIDE: usize = 8;

/// One panel to convert.
pub struct I16ToResidues<'a, 'b> {
    /// Moduli, digits and radix powers.
    pub tables: &'a OperandTables,
    /// The primes to convert for.
    pub primes: Range<usize>,
    /// The columns to convert.
    pub source: &'a PanelSource<'a>,
    /// The order of the rows.
    pub form: Form,
    /// One panel for each of `primes`.
    pub planes: &'a mut [&'b mut [u64]],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call: the limbs of a strip, then the digits of all strips, and padding that aligns them.
pub fn scratch_words(tables: &OperandTables) -> usize {
    limbs(tables) * (1 + STRIPS) * MOST_CONVERTED + LINE_WORDS
}

/// Limbs of an entry's digits. Limbs beyond the highest digit meet no factor.
fn limbs(tables: &OperandTables) -> usize {
    tables.digits.div_ceil(DIGITS_OF_LIMB)
}

impl I16Task for I16ToResidues<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let I16ToResidues { tables, primes, source, form, planes, scratch } = self;
        let lanes = VECTORS * L::WIDTH;
        let strip_words = limbs(tables) * lanes;
        let skipped = scratch.as_ptr().align_offset(8 * LINE_WORDS).min(LINE_WORDS);
        let (limbs, digits) = scratch[skipped..].split_at_mut(strip_words);
        let digits: &mut [i32] = bytemuck::cast_slice_mut(&mut digits[..STRIPS * strip_words]);
        let (rows, strip_rows) = (source.rows.len(), lanes / BLOCK);
        let mut tile = I16Tile::new();
        let streams = L::STREAMS && source.streams_halves(primes.len());
        for first in (0..rows).step_by(STRIPS * strip_rows) {
            let batch = first..(first + STRIPS * strip_rows).min(rows);
            let strips = batch.clone().step_by(strip_rows);
            for (start, digits) in strips.clone().zip(digits.chunks_exact_mut(2 * strip_words)) {
                let strip = start..(start + strip_rows).min(rows);
                let entries = gather::<L>(source, form, strip, limbs);
                cut::<L>(limbs, &entries, digits);
            }
            let groups = primes.start / COLUMNS..primes.end.div_ceil(COLUMNS);
            let next = batch.end..(batch.end + STRIPS * strip_rows).min(rows);
            for group in groups.clone() {
                // Together with streamed stores it costs more than it saves.
                if !L::STREAMS {
                    fetch::<L>(source, &next, group - groups.start, groups.len());
                    let words = form.panel_words(batch.start)..form.panel_words(batch.end);
                    for prime in (group + 1) * COLUMNS..((group + 2) * COLUMNS).min(primes.end) {
                        let lines = planes[prime - primes.start][words.clone()].iter().step_by(LINE_WORDS);
                        lines.for_each(|line| L::prefetch(line));
                    }
                }
                let (factors, of_group) = (tables.radix_powers.group(group), &tables.primes[group]);
                for (start, digits) in strips.clone().zip(digits.chunks_exact(2 * strip_words)) {
                    let strip = PairStrip { words: digits, stride: lanes, skipped: 0 };
                    convert::<L, C>((strip, factors), of_group, tables.intervals[group], &mut tile);
                    let rows = start..(start + strip_rows).min(rows);
                    let words = form.panel_words(rows.start)..form.panel_words(rows.end);
                    for (column, prime) in of_group.iter().enumerate() {
                        let number = group * COLUMNS + column;
                        if primes.contains(&number) {
                            let out = &mut planes[number - primes.start][words.clone()];
                            write(tile.residues::<L>(column, prime), bytemuck::cast_slice_mut(out), streams);
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
fn write<L: Lanes>(residues: L, out: &mut [i32], streams: bool) {
    if out.len() < L::WIDTH {
        let mut whole = [0; MOST_CONVERTED];
        residues.store(&mut whole);
        out.copy_from_slice(&whole[..out.len()]);
    } else if streams {
        residues.stream(out);
    } else {
        residues.store(out);
    }
}

/// The conversion of the limbs of each lane to digits.
struct LaneDigits {
    /// Bits of the lowest limb that are not part of the integer.
    shifts: [u64; MOST_CONVERTED],
    /// All ones for entries below 0, else 0.
    signs: [u64; MOST_CONVERTED],
    /// 0 where a one is carried into the lowest limb, else 1.
    borrows: [u64; MOST_CONVERTED],
}

/// Writes the limbs of the magnitudes of some rows, limb by limb of all lanes. Missing rows are zeros.
#[inline(always)]
fn gather<L: Lanes>(source: &PanelSource<'_>, form: Form, rows: Range<usize>, out: &mut [u64]) -> LaneDigits {
    let (view, columns) = (&source.view, source.columns.clone());
    let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
    let lanes = VECTORS * L::WIDTH;
    let mut entries =
        LaneDigits { shifts: [0; MOST_CONVERTED], signs: [0; MOST_CONVERTED], borrows: [1; MOST_CONVERTED] };
    for at in 0..lanes {
        let place = form.place(at / BLOCK, at % BLOCK);
        let (row, column, lane) = (rows.start + at / BLOCK, columns.start + at % BLOCK, lane::<L>(place));
        let mut to = out.chunks_exact_mut(lanes);
        if row < rows.end && column < columns.end {
            let index = view.element_index(source.rows.start + row, column);
            let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
            let Scaled { limbs, low, rounds_up } = Scaled::new(value, source.shifts[column]);
            // The negative of `m + r` is that of `m` with all bits turned over, plus 1 less `r`.
            let negative = value.head.is_negative();
            entries.shifts[lane] = low.rem_euclid(64) as u64;
            entries.signs[lane] = u64::from(negative).wrapping_neg();
            entries.borrows[lane] = u64::from(negative == rounds_up);
            // Word `w` of the integer straddles limbs `first + w` and `first + w + 1`; those outside the number are 0.
            let first = low.div_euclid(64);
            for limbs in to.by_ref().take((-first).max(0) as usize) {
                limbs[lane] = 0;
            }
            let above = (first.max(0) as usize).min(limbs.len());
            for (&limb, limbs) in limbs[above..].iter().zip(&mut to) {
                limbs[lane] = limb;
            }
        }
        for limbs in to {
            limbs[lane] = 0;
        }
    }
    entries
}

/// The lane of the residue at `place` among those of some rows of a panel: pairs of residues are in one lane of both
/// vectors.
#[inline(always)]
fn lane<L: Lanes>(place: usize) -> usize {
    place % VECTORS * L::WIDTH + place / VECTORS
}

/// Writes the balanced digits of all lanes: pair `w` of lane `l` to integer `w * lanes + l`.
#[inline(always)]
fn cut<L: Lanes>(limbs: &[u64], entries: &LaneDigits, out: &mut [i32]) {
    let lanes = VECTORS * L::WIDTH;
    for first in (0..lanes).step_by(SIDE_BY_SIDE) {
        let (shifts, signs) = (some(&entries.shifts, first), some(&entries.signs, first));
        let mut borrows = *some(&entries.borrows, first);
        let mut limb = *some(limbs, first);
        let mut above = limbs[lanes..].chunks_exact(lanes);
        for pairs in out.chunks_exact_mut(2 * lanes) {
            let next = match above.next() {
                Some(limbs) => *some(limbs, first),
                None => [0; SIDE_BY_SIDE],
            };
            let [mut lower, mut upper] = [[0; SIDE_BY_SIDE]; 2];
            for lane in 0..SIDE_BY_SIDE {
                let word = (limb[lane] >> shifts[lane]) | ((next[lane] << 1) << (63 - shifts[lane]));
                let word = word ^ signs[lane];
                // As the highest bit of the summand is 1, none is carried out only where that of the word is 0 and that
                // of the sum is 1.
                let sum = word.wrapping_add(HALVES + 1).wrapping_sub(borrows[lane]);
                borrows[lane] = (!word & sum) >> 63;
                let digits = sum ^ HALVES;
                lower[lane] = digits as i32;
                upper[lane] = (digits >> 32) as i32;
            }
            pairs[first..][..SIDE_BY_SIDE].copy_from_slice(&lower);
            pairs[lanes + first..][..SIDE_BY_SIDE].copy_from_slice(&upper);
            limb = next;
        }
    }
}

/// Eight neighbours.
#[inline(always)]
fn some(of_lanes: &[u64], first: usize) -> &[u64; SIDE_BY_SIDE] {
    of_lanes[first..].first_chunk().expect("whole blocks of lanes")
}

/// Prefetches part `part` of `parts` of some rows, which are converted next.
#[inline(always)]
fn fetch<L: Lanes>(source: &PanelSource<'_>, rows: &Range<usize>, part: usize, parts: usize) {
    let (view, columns) = (&source.view, source.columns.clone());
    let (limbs, width, count) = (view.all_limbs(), view.limbs_per_element(), rows.len() * columns.len());
    for at in part * count / parts..(part + 1) * count / parts {
        let (row, column) = (rows.start + at % rows.len(), columns.start + at / rows.len());
        let index = view.element_index(source.rows.start + row, column);
        limbs[index * width..][..width].iter().step_by(LINE_WORDS).for_each(|line| L::prefetch(line));
    }
}
