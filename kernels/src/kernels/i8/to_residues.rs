//! Big floats to digits of residues: scale and round, multiply the bytes of integers by radix powers, reduce.
//!
//! The limbs of an integer are columns of a tile as they are, four bytes a word, in two's complement; one more word
//! holds a carry, for rounding and for negative numbers, and the sign. The radix powers end with 1 and with the
//! correction for negative numbers in two's complement. Promise: `128 high + low`, or `low` for a modulus of one plane,
//! is equal to `math::scale::scaled_integer` modulo each modulus; allocates nothing.
#![forbid(unsafe_code)]

use super::reduce::{I8Reducer, halves};
use super::tables::{I8Tables, ModulusGroup};
use super::tiles::{
    AlignedSums, Extent, I8Task, LINE_WORDS, SIDE, STEP, STEP_GROUPS, STEP_WORDS, TileColumns, TileSums, Unit, aligned,
    columns_mut,
};
use super::vectors::{HalfwordVector, Vector, WORDS};
use crate::kernels::PanelSource;
use crate::kernels::scaled::Scaled;
use crate::math::bound::I8_TABLE_TERMS;
use crate::math::float::{FloatRef, Head};
use crate::plan::BLOCK;
use std::ops::Range;

/// Strips of 32 entries whose bytes are held: they share each read of the table.
const STRIPS: usize = 4;

/// Rows of a strip.
const STRIP_ROWS: usize = SIDE / BLOCK;

/// Limbs of a step.
const STEP_LIMBS: usize = STEP / 8;

/// Steps of a table whose products are summed before they are reduced.
const MOST_STEPS: usize = I8_TABLE_TERMS / STEP;

/// Windows larger than this bypass the caches. Entries of a hundred planes lie in as many pages: to fetch a line before
/// it is written costs more than to read it from memory later, and nothing is gained where the second-level cache,
/// which has two megabytes where there are tile registers, does not hold the window.
const STREAM_BYTES: usize = 2 << 20;

/// One panel to convert.
pub struct I8ToResidues<'a, 'b> {
    /// Moduli and tables.
    pub tables: &'a I8Tables,
    /// The moduli to convert for.
    pub primes: Range<usize>,
    /// The columns to convert.
    pub source: &'a PanelSource<'a>,
    /// One panel for each of `primes`.
    pub planes: &'a mut [&'b mut [u64]],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &I8Tables) -> usize {
    STRIPS * tables.radix_powers.steps() * STEP_WORDS / 2 + LINE_WORDS
}

impl I8Task for I8ToResidues<'_, '_> {
    #[inline(always)]
    fn run<U: Unit>(self) {
        let I8ToResidues { tables, primes, source, planes, scratch } = self;
        let strip_steps = tables.radix_powers.steps();
        let columns = columns_mut(&mut aligned(scratch)[..STRIPS * strip_steps * STEP_WORDS]);
        let (mut sums, mut part) = ([const { AlignedSums::new() }; 2], AlignedSums::new());
        let rows = source.rows.len();
        let streams = source.halves_bytes(primes.len()) > STREAM_BYTES;
        for first in (0..rows).step_by(STRIPS * STRIP_ROWS) {
            let starts = (first..(first + STRIPS * STRIP_ROWS).min(rows)).step_by(STRIP_ROWS);
            for (start, strip) in starts.clone().zip(columns.chunks_exact_mut(strip_steps)) {
                let strip_rows = start..(start + STRIP_ROWS).min(rows);
                put_rows::<U::Vectors>(source, strip_rows, tables.operand_limbs, strip);
            }
            // The residues of a tile are taken once the products of the next have been issued.
            let (mut last, mut turn) = (None, 0);
            for (index, group) in tables.groups.iter().enumerate() {
                if group.moduli.start >= primes.end || group.moduli.end <= primes.start {
                    continue;
                }
                for (start, strip) in starts.clone().zip(columns.chunks_exact(strip_steps)) {
                    SumTile { tables, group, sums: &mut sums[turn].0 }.sum::<U>(index, strip, &mut part.0);
                    turn = 1 - turn;
                    let entries = start * BLOCK..(start + STRIP_ROWS).min(rows) * BLOCK;
                    if let Some((group, entries)) = last.replace((group, entries)) {
                        let out = Out { primes: primes.clone(), entries, streams };
                        SumTile { tables, group, sums: &mut sums[turn].0 }.write::<U::Vectors>(out, planes);
                    }
                }
            }
            if let Some((group, entries)) = last {
                let out = Out { primes: primes.clone(), entries, streams };
                SumTile { tables, group, sums: &mut sums[1 - turn].0 }.write::<U::Vectors>(out, planes);
            }
        }
        U::Vectors::fence(); // streamed words must be visible before another thread is told of them
    }
}

/// Where residues go.
struct Out {
    /// The moduli to convert for.
    primes: Range<usize>,
    /// Entries of the panel.
    entries: Range<usize>,
    /// Whether they bypass the caches.
    streams: bool,
}

/// The sums of one tile, for some group of moduli.
struct SumTile<'a> {
    tables: &'a I8Tables,
    group: &'a ModulusGroup,
    sums: &'a mut TileSums,
}

impl SumTile<'_> {
    /// Writes the digits of the residues of some entries, modulo the moduli of the group that are wanted.
    #[inline(always)]
    fn write<V: Vector>(&self, out: Out, planes: &mut [&mut [u64]]) {
        let (moduli, tables) = (&self.group.moduli, self.tables);
        let wanted = moduli.start.max(out.primes.start)..moduli.end.min(out.primes.end);
        let planes = &mut planes[wanted.start - out.primes.start..][..wanted.len()];
        let first = wanted.start - moduli.start;
        for (number, (reducer, plane)) in tables.reducers[wanted].iter().zip(planes).enumerate() {
            let digits = self.digits::<V>(*reducer, first + number);
            write(plane, out.entries.clone(), digits, out.streams);
        }
    }

    /// Sums of the entries of a strip with the factors of strip number `index` of the table.
    #[inline(always)]
    fn sum<U: Unit>(&mut self, index: usize, strip: &[TileColumns], part: &mut TileSums) {
        let (table, group) = (&self.tables.radix_powers, self.group);
        let rows_each = if group.is_triple { 2 } else { 1 };
        for first in (0..table.steps()).step_by(MOST_STEPS) {
            let steps = first..(first + MOST_STEPS).min(table.steps());
            let groups = table.groups().min(steps.end * STEP_GROUPS) - first * STEP_GROUPS;
            let extent = Extent { groups, rows: group.moduli.len() * rows_each, columns: SIDE };
            let factors = &table.strip(index)[steps.clone()];
            if first == 0 {
                U::multiply::<false>(factors, &strip[steps], extent, self.sums);
                continue;
            }
            U::multiply::<false>(factors, &strip[steps], extent, part);
            for (number, reducer) in self.tables.reducers[group.moduli.clone()].iter().enumerate() {
                let rows = number * rows_each..(number + 1) * rows_each;
                for (sums, part) in self.sums[rows.clone()].iter_mut().zip(&part[rows]) {
                    add_part::<U::Vectors>(*reducer, sums, part);
                }
            }
        }
    }

    /// The digits of the residues of all entries modulo one modulus of the group.
    #[inline(always)]
    fn digits<V: Vector>(&self, reducer: I8Reducer, number: usize) -> V {
        if !self.group.is_triple {
            let [even, odd] = halves::<V>(&self.sums[number]);
            return reducer.balanced_halves(even, odd);
        }
        let [low, low_odd] = halves::<V>(&self.sums[2 * number]);
        let [high, high_odd] = halves::<V>(&self.sums[2 * number + 1]);
        reducer.near_halves(high.shift_left_7().add(low), high_odd.shift_left_7().add(low_odd)).digits()
    }
}

/// `sums := sums + part` modulo the modulus; the summand added to the part is less than the modulus, for which there is
/// room.
#[inline(always)]
fn add_part<V: Vector>(reducer: I8Reducer, sums: &mut [i32; SIDE], part: &[i32; SIDE]) {
    let (before, part) = (halves::<V>(sums), halves::<V>(part));
    let sums: &mut [u32; SIDE] = bytemuck::cast_mut(sums);
    for (sums, (before, part)) in sums.as_chunks_mut().0.iter_mut().zip(before.into_iter().zip(part)) {
        reducer.near_words(before).add(part).store(sums);
    }
}

/// Writes the residues of `entries` to one plane.
#[inline(always)]
fn write<V: HalfwordVector>(plane: &mut [u64], entries: Range<usize>, residues: V, streams: bool) {
    let plane: &mut [u16] = bytemuck::cast_slice_mut(plane);
    let out = &mut plane[entries];
    match out.as_chunks_mut().0 {
        [whole] if streams => residues.stream_halves(whole),
        [whole] => residues.store_halves(whole),
        _ => {
            let mut all = [0; SIDE];
            residues.store_halves(&mut all);
            out.copy_from_slice(&all[..out.len()]);
        }
    }
}

/// The entries of a strip, those of even columns first, and the terms of their signs and rounding.
struct StripEntries<'a> {
    scaled: [Scaled<'a>; SIDE],
    signs: [[u32; WORDS]; 2],
    carries: [[u32; WORDS]; 2],
}

impl<'a> StripEntries<'a> {
    #[inline(always)]
    fn new(source: &PanelSource<'a>, rows: Range<usize>) -> StripEntries<'a> {
        let (view, columns) = (&source.view, source.columns.clone());
        let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
        let mut entries =
            StripEntries { scaled: [Scaled::ZERO; SIDE], signs: [[0; WORDS]; 2], carries: [[0; WORDS]; 2] };
        for lane in 0..SIDE {
            let (row, column) = (rows.start + lane / BLOCK, columns.start + lane % BLOCK);
            if row >= rows.end || column >= columns.end {
                continue;
            }
            let index = view.element_index(source.rows.start + row, column);
            let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
            let (scaled, half, at) = (Scaled::new(value, source.shifts[column]), lane % 2, lane / 2);
            let negative = u32::from(value.head.is_negative());
            entries.scaled[half * WORDS + at] = scaled;
            entries.signs[half][at] = negative.wrapping_neg();
            // A byte each: the lowest bit of the integer in two's complement, and its sign.
            entries.carries[half][at] = (u32::from(scaled.rounds_up) ^ negative) | negative << 8;
        }
        entries
    }
}

/// The bytes of the integers of some rows, their carries and signs, as columns; groups beyond them become anything.
#[inline(always)]
fn put_rows<V: Vector>(source: &PanelSource<'_>, rows: Range<usize>, limbs: usize, strip: &mut [TileColumns]) {
    let entries = StripEntries::new(source, rows);
    for half in 0..2 {
        let (scaled, signs) = (&entries.scaled[half * WORDS..][..WORDS], V::load(&entries.signs[half]));
        for (step, tile) in strip.iter_mut().enumerate().take(limbs.div_ceil(STEP_LIMBS)) {
            let mut bits = [V::splat(0); WORDS];
            for (bits, scaled) in bits.iter_mut().zip(scaled) {
                *bits = V::bits_from(scaled.limbs, scaled.low.saturating_add((step * 8 * STEP) as i64));
            }
            for (words, group) in V::turn(bits).into_iter().zip(&mut tile[half]) {
                words.xor(signs).store(group);
            }
        }
        let group = 2 * limbs;
        strip[group / STEP_GROUPS][half][group % STEP_GROUPS] = entries.carries[half];
    }
}
