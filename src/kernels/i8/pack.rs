//! Residues of panels as bytes of tiles: rows balanced, columns least; those of large moduli as three planes of bytes.
#![forbid(unsafe_code)]

use super::tiles::{Columns, GROUP, Rows, STEP, STEP_GROUPS};
use crate::plan::BLOCK;

/// Panels of a strip: one tile.
pub const STRIP_PANELS: usize = super::tiles::SIDE / BLOCK;

/// Residues of four rows of a panel.
const GROUP_RESIDUES: usize = GROUP * BLOCK;

/// Bytes that stand for a residue: itself, or `low`, `high` and their sum for `128 high + low`.
pub trait Digits {
    /// Planes of bytes.
    const PLANES: usize;
    /// The bytes of a balanced residue.
    fn signed(residue: i16) -> [i16; 3];
    /// The bytes of a least residue.
    fn unsigned(residue: u16) -> [u16; 3];
}

/// Moduli of one plane.
pub struct Single;

/// Moduli of three planes.
pub struct Triple;

impl Digits for Single {
    const PLANES: usize = 1;

    #[inline(always)]
    fn signed(residue: i16) -> [i16; 3] {
        [residue, 0, 0]
    }

    #[inline(always)]
    fn unsigned(residue: u16) -> [u16; 3] {
        [residue, 0, 0]
    }
}

impl Digits for Triple {
    const PLANES: usize = 3;

    #[inline(always)]
    fn signed(residue: i16) -> [i16; 3] {
        let high = (residue + 64) >> 7;
        let low = residue - (high << 7);
        [low, high, low + high]
    }

    #[inline(always)]
    fn unsigned(residue: u16) -> [u16; 3] {
        let (low, high) = (residue & 127, residue >> 7);
        [low, high, low + high]
    }
}

/// Four rows of bytes as a word for each column.
#[inline(always)]
fn words(bytes: &[[u8; BLOCK]; GROUP]) -> [u32; BLOCK] {
    let mut words = [0; BLOCK];
    for column in 0..BLOCK {
        words[column] = u32::from(bytes[0][column])
            | u32::from(bytes[1][column]) << 8
            | u32::from(bytes[2][column]) << 16
            | u32::from(bytes[3][column]) << 24;
    }
    words
}

/// The words of one group of rows, plane by plane.
#[inline(always)]
fn group_words(digits: &[[u16; 3]; GROUP_RESIDUES], planes: usize) -> [[u32; BLOCK]; 3] {
    let mut out = [[0; BLOCK]; 3];
    for plane in 0..planes {
        let mut bytes = [[0; BLOCK]; GROUP];
        for at in 0..GROUP_RESIDUES {
            bytes[at / BLOCK][at % BLOCK] = digits[at][plane] as u8;
        }
        out[plane] = words(&bytes);
    }
    out
}

#[inline(always)]
fn signed_group<D: Digits>(residues: &[u16; GROUP_RESIDUES], modulus: u16) -> [[u32; BLOCK]; 3] {
    let mut digits = [[0; 3]; GROUP_RESIDUES];
    for at in 0..GROUP_RESIDUES {
        let above = if residues[at] > (modulus - 1) / 2 { modulus } else { 0 };
        digits[at] = D::signed(residues[at].wrapping_sub(above) as i16).map(|digit| digit as u16);
    }
    group_words(&digits, D::PLANES)
}

#[inline(always)]
fn unsigned_group<D: Digits>(residues: &[u16; GROUP_RESIDUES]) -> [[u32; BLOCK]; 3] {
    let mut digits = [[0; 3]; GROUP_RESIDUES];
    for at in 0..GROUP_RESIDUES {
        digits[at] = D::unsigned(residues[at]);
    }
    group_words(&digits, D::PLANES)
}

/// The residues of one step of a panel; rows beyond the last are 0. `None` where the panel has ended.
#[inline(always)]
fn group_of(panel: &[u16], number: usize) -> [u16; GROUP_RESIDUES] {
    let rest = panel.get(number * GROUP_RESIDUES..).unwrap_or_default();
    match rest.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut group = [0; GROUP_RESIDUES];
            group[..rest.len()].copy_from_slice(rest);
            group
        }
    }
}

/// Steps of so many rows.
pub fn steps(rows: usize) -> usize {
    rows.div_ceil(STEP)
}

/// Writes a panel's residues, row after row, as columns `8 at` to `8 at + 7` of a strip; the steps of a plane follow
/// those of the one before.
#[inline(always)]
pub fn pack_columns<D: Digits>(panel: &[u16], at: usize, out: &mut [Columns]) {
    let steps = out.len() / D::PLANES;
    for step in 0..steps {
        for group in 0..STEP_GROUPS {
            let words = unsigned_group::<D>(&group_of(panel, step * STEP_GROUPS + group));
            for plane in 0..D::PLANES {
                let tile = &mut out[plane * steps + step][at / 2];
                tile[group][at % 2 * BLOCK..][..BLOCK].copy_from_slice(&words[plane]);
            }
        }
    }
}

/// Writes a panel's residues as rows `8 at` to `8 at + 7` of a strip.
#[inline(always)]
pub fn pack_rows<D: Digits>(panel: &[u16], modulus: u16, at: usize, out: &mut [Rows]) {
    let steps = out.len() / D::PLANES;
    for step in 0..steps {
        let mut words = [[[0; BLOCK]; STEP_GROUPS]; 3];
        for group in 0..STEP_GROUPS {
            let of_planes = signed_group::<D>(&group_of(panel, step * STEP_GROUPS + group), modulus);
            for plane in 0..D::PLANES {
                words[plane][group] = of_planes[plane];
            }
        }
        for plane in 0..D::PLANES {
            let tile = &mut out[plane * steps + step][at * BLOCK..][..BLOCK];
            for (column, row) in tile.iter_mut().enumerate() {
                for group in 0..STEP_GROUPS {
                    row[group] = words[plane][group][column];
                }
            }
        }
    }
}
