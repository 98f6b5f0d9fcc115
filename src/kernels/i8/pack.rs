//! Residues of panels as bytes of tiles: rows balanced, columns least; those of large moduli as three planes of bytes.
#![forbid(unsafe_code)]

use super::tiles::{Columns, GROUP, Rows, STEP, STEP_GROUPS};
use crate::plan::BLOCK;

/// Panels of a strip: one tile.
pub const STRIP_PANELS: usize = super::tiles::SIDE / BLOCK;

/// Residues of four rows of a panel.
const GROUP_RESIDUES: usize = GROUP * BLOCK;

/// Bytes that stand for residues: themselves, or `low`, `high` and their sum for `128 high + low`; in the low halves of
/// 16-bit numbers.
pub trait Digits {
    /// Planes of bytes.
    const PLANES: usize;
    /// The bytes of balanced residues.
    fn signed(residues: &[i16; GROUP_RESIDUES]) -> [[u16; GROUP_RESIDUES]; 3];
    /// The bytes of least residues.
    fn unsigned(residues: &[u16; GROUP_RESIDUES]) -> [[u16; GROUP_RESIDUES]; 3];
}

/// Moduli of one plane.
pub struct Single;

/// Moduli of three planes.
pub struct Triple;

impl Digits for Single {
    const PLANES: usize = 1;

    #[inline(always)]
    fn signed(residues: &[i16; GROUP_RESIDUES]) -> [[u16; GROUP_RESIDUES]; 3] {
        let mut digits = [[0; GROUP_RESIDUES]; 3];
        for at in 0..GROUP_RESIDUES {
            digits[0][at] = residues[at] as u16;
        }
        digits
    }

    #[inline(always)]
    fn unsigned(residues: &[u16; GROUP_RESIDUES]) -> [[u16; GROUP_RESIDUES]; 3] {
        [*residues, [0; GROUP_RESIDUES], [0; GROUP_RESIDUES]]
    }
}

impl Digits for Triple {
    const PLANES: usize = 3;

    #[inline(always)]
    fn signed(residues: &[i16; GROUP_RESIDUES]) -> [[u16; GROUP_RESIDUES]; 3] {
        let mut digits = [[0; GROUP_RESIDUES]; 3];
        for at in 0..GROUP_RESIDUES {
            let high = (residues[at] + 64) >> 7;
            let low = residues[at] - (high << 7);
            digits[0][at] = low as u16;
            digits[1][at] = high as u16;
            digits[2][at] = (low + high) as u16;
        }
        digits
    }

    #[inline(always)]
    fn unsigned(residues: &[u16; GROUP_RESIDUES]) -> [[u16; GROUP_RESIDUES]; 3] {
        let mut digits = [[0; GROUP_RESIDUES]; 3];
        for at in 0..GROUP_RESIDUES {
            let (low, high) = (residues[at] & 127, residues[at] >> 7);
            digits[0][at] = low;
            digits[1][at] = high;
            digits[2][at] = low + high;
        }
        digits
    }
}

/// Four rows of bytes as a word for each column.
#[inline(always)]
fn words(digits: &[u16; GROUP_RESIDUES]) -> [u32; BLOCK] {
    let mut pairs = [[0u16; BLOCK]; 2];
    for column in 0..BLOCK {
        pairs[0][column] = (digits[column] & 0xff) | digits[BLOCK + column] << 8;
        pairs[1][column] = (digits[2 * BLOCK + column] & 0xff) | digits[3 * BLOCK + column] << 8;
    }
    let mut words = [0; BLOCK];
    for column in 0..BLOCK {
        words[column] = u32::from(pairs[0][column]) | u32::from(pairs[1][column]) << 16;
    }
    words
}

/// The words of the balanced residues of one group, plane by plane.
#[inline(always)]
fn signed_words<D: Digits>(residues: &[u16; GROUP_RESIDUES], modulus: u16) -> [[u32; BLOCK]; 3] {
    let (mut balanced, half) = ([0; GROUP_RESIDUES], ((modulus - 1) / 2) as i16);
    for at in 0..GROUP_RESIDUES {
        // Residues and moduli are below 2^15.
        let above = if residues[at] as i16 > half { modulus } else { 0 };
        balanced[at] = residues[at].wrapping_sub(above) as i16;
    }
    let digits = D::signed(&balanced);
    let mut out = [[0; BLOCK]; 3];
    for plane in 0..D::PLANES {
        out[plane] = words(&digits[plane]);
    }
    out
}

/// The words of the least residues of one group, plane by plane.
#[inline(always)]
fn unsigned_words<D: Digits>(residues: &[u16; GROUP_RESIDUES]) -> [[u32; BLOCK]; 3] {
    let digits = D::unsigned(residues);
    let mut out = [[0; BLOCK]; 3];
    for plane in 0..D::PLANES {
        out[plane] = words(&digits[plane]);
    }
    out
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
            let words = unsigned_words::<D>(&group_of(panel, step * STEP_GROUPS + group));
            for plane in 0..D::PLANES {
                let tile = &mut out[plane * steps + step][at / 2];
                tile[group][at % 2 * BLOCK..][..BLOCK].copy_from_slice(&words[plane]);
            }
        }
    }
}

/// Groups whose words are turned at a time.
const TURNED: usize = 4;

/// Writes a panel's residues as rows `8 at` to `8 at + 7` of a strip.
#[inline(always)]
pub fn pack_rows<D: Digits>(panel: &[u16], modulus: u16, at: usize, out: &mut [Rows]) {
    let steps = out.len() / D::PLANES;
    for step in 0..steps {
        for first in (0..STEP_GROUPS).step_by(TURNED) {
            let mut words = [[[0; BLOCK]; 3]; TURNED];
            for (number, words) in words.iter_mut().enumerate() {
                *words = signed_words::<D>(&group_of(panel, step * STEP_GROUPS + first + number), modulus);
            }
            for plane in 0..D::PLANES {
                let mut turned = [[0; TURNED]; BLOCK];
                for (column, turned) in turned.iter_mut().enumerate() {
                    for (word, words) in turned.iter_mut().zip(&words) {
                        *word = words[plane][column];
                    }
                }
                let tile = &mut out[plane * steps + step][at * BLOCK..][..BLOCK];
                for (row, turned) in tile.iter_mut().zip(&turned) {
                    row.as_chunks_mut::<TURNED>().0[first / TURNED] = *turned;
                }
            }
        }
    }
}
