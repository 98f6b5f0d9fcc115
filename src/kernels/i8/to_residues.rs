//! Big floats to least residues: scale and round, multiply the bytes of magnitudes by radix powers, reduce.
//!
//! The limbs of a magnitude are columns of a tile as they are, four bytes a word; one more word holds the rounding bit,
//! which the radix powers end with a 1 for. Signs are given to the sums.
//! Promise: equal to `math::scale::scaled_integer` modulo each modulus; allocates nothing.
#![forbid(unsafe_code)]

use super::reduce::Residues;
use super::tables::Tables;
use super::tiles::{
    Columns, Extent, GROUP, LINE_WORDS, SIDE, STEP, STEP_GROUPS, STEP_WORDS, Sums, Task, Unit, aligned, columns_mut,
};
use crate::kernels::PanelSource;
use crate::kernels::scaled::write_scaled;
use crate::math::bound::I8_TABLE_TERMS;
use crate::math::float::{FloatRef, Head};
use crate::plan::BLOCK;
use std::ops::Range;

/// Strips of 32 entries whose bytes are held: they share what is read of the table.
const STRIPS: usize = 4;

/// Rows of a strip.
const STRIP_ROWS: usize = SIDE / BLOCK;

/// Steps of a table whose products are summed before they are reduced.
const MOST_STEPS: usize = I8_TABLE_TERMS / STEP;

/// One panel to convert.
pub struct ToResidues<'a, 'b> {
    /// Moduli and tables.
    pub tables: &'a Tables,
    /// The moduli wanted.
    pub primes: Range<usize>,
    /// The columns to convert.
    pub source: &'a PanelSource<'a>,
    /// One panel for each modulus wanted.
    pub planes: &'a mut [&'b mut [u64]],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &Tables) -> usize {
    STRIPS * tables.radix_powers.steps() * STEP_WORDS / 2 + LINE_WORDS + tables.operand_limbs * SIDE
}

impl Task for ToResidues<'_, '_> {
    #[inline(always)]
    fn run<U: Unit>(self) {
        let ToResidues { tables, primes, source, planes, scratch } = self;
        let (magnitudes, scratch) = scratch.split_at_mut(tables.operand_limbs * SIDE);
        let strip_steps = tables.radix_powers.steps();
        let columns = columns_mut(&mut aligned(scratch)[..STRIPS * strip_steps * STEP_WORDS]);
        let mut signs = [[0; SIDE]; STRIPS];
        let mut tile = Tile { sums: Sums::new(), residues: Residues::new() };
        let rows = source.rows.len();
        for first in (0..rows).step_by(STRIPS * STRIP_ROWS) {
            let starts = (first..(first + STRIPS * STRIP_ROWS).min(rows)).step_by(STRIP_ROWS);
            for ((start, strip), signs) in starts.clone().zip(columns.chunks_exact_mut(strip_steps)).zip(&mut signs) {
                let mut rounding = [0; SIDE];
                let rows = start..(start + STRIP_ROWS).min(rows);
                scale_rows(source, rows, magnitudes, (signs, &mut rounding));
                put_bytes(magnitudes, &rounding, strip);
            }
            for (index, group) in tables.groups.iter().enumerate() {
                let wanted = group.moduli.start.max(primes.start)..group.moduli.end.min(primes.end);
                if wanted.is_empty() {
                    continue;
                }
                for ((start, strip), signs) in starts.clone().zip(columns.chunks_exact(strip_steps)).zip(&signs) {
                    let entries = start * BLOCK..(start + STRIP_ROWS).min(rows) * BLOCK;
                    tile.convert::<U>(tables, index, (strip, entries.len()), signs);
                    for modulus in wanted.clone() {
                        let residues = &tile.residues.0[modulus - group.moduli.start];
                        write(planes[modulus - primes.start], entries.clone(), residues);
                    }
                }
            }
        }
    }
}

/// What becomes of the sums of one tile.
struct Tile {
    sums: Sums,
    residues: Residues,
}

impl Tile {
    /// Residues of the entries of a strip, modulo each of a group of moduli.
    #[inline(always)]
    fn convert<U: Unit>(
        &mut self,
        tables: &Tables,
        index: usize,
        (strip, entries): (&[Columns], usize),
        signs: &Signs,
    ) {
        let (table, group) = (&tables.radix_powers, &tables.groups[index]);
        let (rows_each, reducers) = (if group.is_triple { 2 } else { 1 }, &tables.reducers[group.moduli.clone()]);
        for first in (0..table.steps()).step_by(MOST_STEPS) {
            let steps = first..(first + MOST_STEPS).min(table.steps());
            let groups = table.groups().min(steps.end * STEP_GROUPS) - first * STEP_GROUPS;
            let extent = Extent { groups, rows: reducers.len() * rows_each, columns: entries };
            U::multiply(&table.strip(index)[steps.clone()], &strip[steps], extent, &mut self.sums);
            let sums = &self.sums.0;
            for (number, reducer) in reducers.iter().enumerate() {
                let row = match group.is_triple {
                    true => join(&sums[2 * number], &sums[2 * number + 1], signs),
                    false => with_signs(&sums[number], signs),
                };
                if first == 0 {
                    reducer.row(&row, &mut self.residues.0[number]);
                } else {
                    let mut part = [0; SIDE];
                    reducer.row(&row, &mut part);
                    reducer.add(&mut self.residues.0[number], &part);
                }
            }
        }
    }
}

/// All ones for each entry that is negative.
type Signs = [i32; SIDE];

#[inline(always)]
fn with_signs(sums: &[i32; SIDE], signs: &Signs) -> [i32; SIDE] {
    let mut row = [0; SIDE];
    for column in 0..SIDE {
        row[column] = (sums[column] ^ signs[column]).wrapping_sub(signs[column]);
    }
    row
}

#[inline(always)]
fn join(low: &[i32; SIDE], high: &[i32; SIDE], signs: &Signs) -> [i32; SIDE] {
    let mut row = [0; SIDE];
    for column in 0..SIDE {
        row[column] = high[column].wrapping_mul(128).wrapping_add(low[column]);
    }
    with_signs(&row, signs)
}

/// Writes the residues of `entries` to one plane.
#[inline(always)]
fn write(plane: &mut [u64], entries: Range<usize>, residues: &[u16; SIDE]) {
    let plane: &mut [u16] = bytemuck::cast_slice_mut(plane);
    let out = &mut plane[entries];
    match out.as_chunks_mut().0 {
        [whole] => *whole = *residues,
        _ => out.copy_from_slice(&residues[..out.len()]),
    }
}

/// Writes the magnitudes of some rows, row by row: limb `w` of entry `lane` to word `w * SIDE + lane`. What a magnitude
/// lacks: all ones where the entry is negative, and 1 where the magnitude is to be rounded up.
#[inline(always)]
fn scale_rows(
    source: &PanelSource<'_>,
    rows: Range<usize>,
    out: &mut [u64],
    (signs, rounding): (&mut Signs, &mut [u32; SIDE]),
) {
    let (view, columns) = (&source.view, source.columns.clone());
    let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
    for lane in 0..SIDE {
        let (row, column) = (rows.start + lane / BLOCK, columns.start + lane % BLOCK);
        let mut words = out[lane..].iter_mut().step_by(SIDE);
        if row >= rows.end || column >= columns.end {
            words.by_ref().for_each(|word| *word = 0);
            (signs[lane], rounding[lane]) = (0, 0);
            continue;
        }
        let index = view.element_index(source.rows.start + row, column);
        let value = FloatRef { head: Head(heads[index]), limbs: &limbs[index * width..][..width] };
        rounding[lane] = u32::from(write_scaled(value, source.shifts[column], words));
        signs[lane] = -i32::from(value.head.is_negative());
    }
}

/// The bytes of magnitudes, and the rounding bits, as columns; groups beyond them keep what they hold.
#[inline(always)]
fn put_bytes(magnitudes: &[u64], rounding: &[u32; SIDE], strip: &mut [Columns]) {
    const { assert!(GROUP == size_of::<u32>()) };
    let mut put = |group: usize, words: &[u32; SIDE]| {
        let tiles = &mut strip[group / STEP_GROUPS];
        tiles[0][group % STEP_GROUPS].copy_from_slice(&words[..16]);
        tiles[1][group % STEP_GROUPS].copy_from_slice(&words[16..]);
    };
    let limbs = magnitudes.as_chunks::<SIDE>().0;
    for (limb, words) in limbs.iter().enumerate() {
        put(2 * limb, &words.map(|word| word as u32));
        put(2 * limb + 1, &words.map(|word| (word >> 32) as u32));
    }
    put(2 * limbs.len(), rounding);
}
