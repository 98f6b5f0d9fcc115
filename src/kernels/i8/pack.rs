//! Residues of panels as bytes of tiles: rows balanced, columns least; those of large moduli as three planes of bytes.
//!
//! The terms of a step are 64 rows of a panel, in an order of their own, the same in both operands. A vector holds four
//! rows of 8 residues each; the bytes of four vectors make words of four terms, and word `r` of the vectors from `4 b`
//! on is group `4 r + b`. A strip's even columns stand in the first half of a tile of columns, the odd ones in the
//! second.
#![forbid(unsafe_code)]

use super::reduce::{Reducer, karatsuba_row, row};
use super::tiles::{Columns, Rows, STEP, Sums};
use super::vectors::{HALVES, Vector, WORDS};
use crate::plan::BLOCK;

/// Panels of a strip: one tile.
pub const STRIP_PANELS: usize = super::tiles::SIDE / BLOCK;

/// Residues of a step of a panel.
const STEP_RESIDUES: usize = STEP * BLOCK;

/// Vectors of residues of a step of a panel.
const STEP_VECTORS: usize = STEP_RESIDUES / HALVES;

/// The residues of a step of a panel.
type Step = [[u16; HALVES]; STEP_VECTORS];

/// Bytes that stand for residues: themselves, or `low`, `high` and their sum for `128 high + low`; in the low bytes of
/// halves.
pub trait Digits {
    /// Planes of bytes.
    const PLANES: usize;
    /// The bytes of one plane of balanced residues.
    fn signed<V: Vector>(residues: V, plane: usize) -> V;
    /// The bytes of one plane of least residues.
    fn unsigned<V: Vector>(residues: V, plane: usize) -> V;
    /// Least residues of a row of sums, from those of each plane.
    fn least<V: Vector>(reducer: Reducer, sums: &[Sums], at: usize) -> V;
}

/// Moduli of one plane.
pub struct Single;

/// Moduli of three planes.
pub struct Triple;

impl Digits for Single {
    const PLANES: usize = 1;

    #[inline(always)]
    fn signed<V: Vector>(residues: V, _plane: usize) -> V {
        residues
    }

    #[inline(always)]
    fn unsigned<V: Vector>(residues: V, _plane: usize) -> V {
        residues
    }

    #[inline(always)]
    fn least<V: Vector>(reducer: Reducer, sums: &[Sums], at: usize) -> V {
        row(reducer, &sums[0][at])
    }
}

impl Digits for Triple {
    const PLANES: usize = 3;

    #[inline(always)]
    fn signed<V: Vector>(residues: V, plane: usize) -> V {
        // With 64 more, the digits are `low + 64`, in `[0, 127]`, and `high`.
        let shifted = residues.add_halves(V::splat_half(64));
        let high = shifted.shift_halves_right_7();
        let low = shifted.and(V::splat_half(127)).subtract_halves(V::splat_half(64));
        match plane {
            0 => low,
            1 => high,
            _ => low.add_halves(high),
        }
    }

    #[inline(always)]
    fn unsigned<V: Vector>(residues: V, plane: usize) -> V {
        let (low, high) = (residues.and(V::splat_half(127)), residues.shift_halves_right_7());
        match plane {
            0 => low,
            1 => high,
            _ => low.add_halves(high),
        }
    }

    #[inline(always)]
    fn least<V: Vector>(reducer: Reducer, sums: &[Sums], at: usize) -> V {
        karatsuba_row(reducer, [&sums[0][at], &sums[1][at], &sums[2][at]])
    }
}

/// Steps of so many rows.
pub fn steps(rows: usize) -> usize {
    rows.div_ceil(STEP)
}

/// The residues of one step of a panel; `padded` holds them where some of its rows are missing, which become 0.
#[inline(always)]
fn step_of<'a>(panel: &'a [u16], step: usize, padded: &'a mut Step) -> &'a Step {
    let rest = panel.get(step * STEP_RESIDUES..).unwrap_or_default();
    if let Some(whole) = rest.as_chunks().0.first_chunk() {
        return whole;
    }
    *padded = [[0; HALVES]; STEP_VECTORS];
    padded.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
    padded
}

/// Words of four terms from the bytes of four vectors: those of even columns, then of odd ones; quarter `r` is of row
/// `r`.
#[inline(always)]
fn words<V: Vector>([a, b, c, d]: [V; 4]) -> [V; 2] {
    let (first, second) = (a.join_bytes(b), c.join_bytes(d));
    [first.join_low_halves(second), first.join_high_halves(second)]
}

/// Writes a panel's residues, row after row, as columns `8 at` to `8 at + 7` of a strip; the steps of a plane follow
/// those of the one before.
#[inline(always)]
pub fn pack_columns<V: Vector, D: Digits>(panel: &[u16], at: usize, out: &mut [Columns]) {
    let steps = out.len() / D::PLANES;
    let mut padded = [[0; HALVES]; STEP_VECTORS];
    for step in 0..steps {
        let residues = step_of(panel, step, &mut padded);
        columns_of_plane::<V, D, 0>(residues, at, &mut out[step]);
        if D::PLANES == 3 {
            columns_of_plane::<V, D, 1>(residues, at, &mut out[steps + step]);
            columns_of_plane::<V, D, 2>(residues, at, &mut out[2 * steps + step]);
        }
    }
}

#[inline(always)]
fn columns_of_plane<V: Vector, D: Digits, const PLANE: usize>(residues: &Step, at: usize, tile: &mut Columns) {
    for (b, vectors) in residues.as_chunks::<4>().0.iter().enumerate() {
        let mut digits = [V::splat(0); 4];
        for v in 0..4 {
            digits[v] = D::unsigned(V::load_halves(&vectors[v]), PLANE);
        }
        for (half, words) in words(digits).into_iter().enumerate() {
            let groups = &mut tile[half];
            words.store_quarter::<0>(quarter(&mut groups[b], at));
            words.store_quarter::<1>(quarter(&mut groups[4 + b], at));
            words.store_quarter::<2>(quarter(&mut groups[8 + b], at));
            words.store_quarter::<3>(quarter(&mut groups[12 + b], at));
        }
    }
}

/// The words of four columns.
#[inline(always)]
fn quarter(group: &mut [u32; 16], at: usize) -> &mut [u32; 4] {
    &mut group.as_chunks_mut().0[at]
}

/// Writes a panel's residues as rows `8 at` to `8 at + 7` of a strip.
#[inline(always)]
pub fn pack_rows<V: Vector, D: Digits>(panel: &[u16], modulus: u16, at: usize, out: &mut [Rows]) {
    let steps = out.len() / D::PLANES;
    let mut padded = [[0; HALVES]; STEP_VECTORS];
    for step in 0..steps {
        let residues = step_of(panel, step, &mut padded);
        rows_of_plane::<V, D, 0>(residues, modulus, row_tile(&mut out[step], at));
        if D::PLANES == 3 {
            rows_of_plane::<V, D, 1>(residues, modulus, row_tile(&mut out[steps + step], at));
            rows_of_plane::<V, D, 2>(residues, modulus, row_tile(&mut out[2 * steps + step], at));
        }
    }
}

/// The rows of one panel.
#[inline(always)]
fn row_tile(rows: &mut Rows, at: usize) -> &mut [[u32; WORDS]; BLOCK] {
    &mut rows.as_chunks_mut().0[at]
}

#[inline(always)]
fn rows_of_plane<V: Vector, D: Digits, const PLANE: usize>(
    residues: &Step,
    modulus: u16,
    tile: &mut [[u32; WORDS]; BLOCK],
) {
    let mut halves = [[V::splat(0); 4]; 2];
    for (b, vectors) in residues.as_chunks::<4>().0.iter().enumerate() {
        let mut digits = [V::splat(0); 4];
        for v in 0..4 {
            digits[v] = D::signed(balanced(V::load_halves(&vectors[v]), modulus), PLANE);
        }
        [halves[0][b], halves[1][b]] = words(digits);
    }
    for parity in 0..2 {
        let turned = V::turn_quarters(halves[parity]);
        for number in 0..4 {
            turned[number].store(&mut tile[2 * number + parity]);
        }
    }
}

/// Balanced residues from least ones: at most half of `modulus - 1`, which may be odd, rounded down.
#[inline(always)]
fn balanced<V: Vector>(residues: V, modulus: u16) -> V {
    // What is beyond the half, less the modulus, is larger than all without signs once the rest is added back.
    let rest = V::splat_half(modulus - 1 - (modulus - 1) / 2);
    let moved = residues.add_halves(rest);
    moved.least_halves(moved.subtract_halves(V::splat_half(modulus))).subtract_halves(rest)
}
