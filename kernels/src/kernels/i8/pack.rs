//! Digits of panels as bytes of tiles: residues modulo a small modulus are bytes, those of a large one three planes.
//!
//! The half of an entry of a panel holds the digits of its residue, `low` in its low byte and `high` in its high one
//! ([`Vector::digits`]). A vector holds four rows of a panel, the terms of a group; one permutation of its bytes makes
//! words of four terms, for each digit those of the even columns, then of the odd ones. A strip's even columns stand in
//! the first half of a tile of columns, the odd ones in the second.
#![forbid(unsafe_code)]

use super::reduce::{Karatsuba, row};
use super::tiles::{STEP, STEP_GROUPS, TileColumns, TileRows, TileSums};
use super::vectors::{HALVES, Vector, WORDS};
use crate::plan::BLOCK;

/// Panels of a strip: one tile.
pub const STRIP_PANELS: usize = super::tiles::SIDE / BLOCK;

/// Entries of a step of a panel.
const STEP_ENTRIES: usize = STEP * BLOCK;

/// The entries of a step of a panel, group by group.
type PanelStep = [[u16; HALVES]; STEP_GROUPS];

/// No entries.
const EMPTY: PanelStep = [[0; HALVES]; STEP_GROUPS];

/// Bytes that stand for residues: themselves, or `low`, `high` and their sum for `128 high + low`.
pub trait ByteDigits {
    /// Planes of bytes.
    const PLANES: usize;
    /// Least residues of a row of sums, from those of each plane.
    fn least<V: Vector>(joiner: &Karatsuba, sums: &[TileSums], at: usize) -> V;
}

/// Moduli of one plane.
pub struct Single;

/// Moduli of three planes.
pub struct Triple;

impl ByteDigits for Single {
    const PLANES: usize = 1;

    #[inline(always)]
    fn least<V: Vector>(joiner: &Karatsuba, sums: &[TileSums], at: usize) -> V {
        row(joiner.reducer(), &sums[0][at])
    }
}

impl ByteDigits for Triple {
    const PLANES: usize = 3;

    #[inline(always)]
    fn least<V: Vector>(joiner: &Karatsuba, sums: &[TileSums], at: usize) -> V {
        joiner.row([&sums[0][at], &sums[1][at], &sums[2][at]])
    }
}

/// Steps of `rows` rows.
pub fn steps(rows: usize) -> usize {
    rows.div_ceil(STEP)
}

/// The entries of one step of a panel; `padded` holds them where some of its rows are missing, which become 0.
#[inline(always)]
fn step_of<'a>(panel: &'a [u16], step: usize, padded: &'a mut PanelStep) -> &'a PanelStep {
    let rest = panel.get(step * STEP_ENTRIES..).unwrap_or_default();
    if let Some(whole) = rest.as_chunks().0.first_chunk() {
        return whole;
    }
    *padded = EMPTY;
    padded.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
    padded
}

/// Writes the entries of neighbouring panels, row after row, as the columns of a strip; where there are fewer panels
/// than a strip takes, the missing columns are 0. The steps of a plane follow those of the one before.
#[inline(always)]
pub fn pack_columns<V: Vector, D: ByteDigits>(panels: [&[u16]; STRIP_PANELS], out: &mut [TileColumns]) {
    let steps = out.len() / D::PLANES;
    let mut padded = [EMPTY; STRIP_PANELS];
    let [of_first, of_second, of_third, of_fourth] = &mut padded;
    for step in 0..steps {
        let first = step_of(panels[0], step, of_first);
        let second = step_of(panels[1], step, of_second);
        let third = step_of(panels[2], step, of_third);
        let fourth = step_of(panels[3], step, of_fourth);
        for group in 0..STEP_GROUPS {
            let of_panels = [
                V::load_halves(&first[group]).group_rows(),
                V::load_halves(&second[group]).group_rows(),
                V::load_halves(&third[group]).group_rows(),
                V::load_halves(&fourth[group]).group_rows(),
            ];
            let [low, low_odd, high, high_odd] = V::swap_quarters(of_panels);
            low.store(&mut out[step][0][group]);
            low_odd.store(&mut out[step][1][group]);
            if D::PLANES == 3 {
                high.store(&mut out[steps + step][0][group]);
                high_odd.store(&mut out[steps + step][1][group]);
                low.add_bytes(high).store(&mut out[2 * steps + step][0][group]);
                low_odd.add_bytes(high_odd).store(&mut out[2 * steps + step][1][group]);
            }
        }
    }
}

/// Writes a panel's entries as rows `8 at` to `8 at + 7` of a strip.
#[inline(always)]
pub fn pack_rows<V: Vector, D: ByteDigits>(panel: &[u16], at: usize, out: &mut [TileRows]) {
    let steps = out.len() / D::PLANES;
    let mut padded = EMPTY;
    for step in 0..steps {
        let entries = step_of(panel, step, &mut padded);
        let mut groups = [V::splat(0); STEP_GROUPS];
        for group in 0..STEP_GROUPS {
            groups[group] = V::load_halves(&entries[group]).group_rows();
        }
        // Of each column the words of all groups: low digits of the even columns, of the odd ones, then high digits.
        let turned = V::turn(groups);
        for column in 0..BLOCK {
            let at_low = column % 2 * (BLOCK / 2) + column / 2;
            let (low, high) = (turned[at_low], turned[BLOCK + at_low]);
            low.store(&mut panel_rows(&mut out[step], at)[column]);
            if D::PLANES == 3 {
                high.store(&mut panel_rows(&mut out[steps + step], at)[column]);
                low.add_bytes(high).store(&mut panel_rows(&mut out[2 * steps + step], at)[column]);
            }
        }
    }
}

/// The rows of one panel.
#[inline(always)]
fn panel_rows(rows: &mut TileRows, at: usize) -> &mut [[u32; WORDS]; BLOCK] {
    &mut rows.as_chunks_mut().0[at]
}
