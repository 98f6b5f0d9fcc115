//! 32-bit sums side by side, to which products of four bytes are added, and the unit that they make.
//!
//! The register tile is written once over [`I8Lanes`]: AVX-512 with VNNI, AVX-VNNI, AVX2,
//! I8MM of AArch64, or plain Rust.

use super::tiles::{Extent, SIDE, STEP_GROUPS, TileColumns, TileRows, TileSums, Unit};
use super::vectors::{self, Vector};
use std::marker::PhantomData;

/// Some 32-bit integers, each also four bytes.
pub trait I8Lanes: Copy {
    /// Their number.
    const WIDTH: usize;
    /// The vectors that pack operands and reduce sums next to the unit.
    type Vectors: Vector;
    /// Zeros.
    fn zero() -> Self;
    /// `x` in every lane.
    fn splat(x: u32) -> Self;
    /// The first [`I8Lanes::WIDTH`] words of `from`.
    fn load(from: &[u32]) -> Self;
    /// Writes the lanes to the front of `to`.
    fn store(self, to: &mut [i32]);
    /// The bits of one of the two.
    fn xor(self, other: Self) -> Self;
    /// `self + sum_j u_j s_j` for the unsigned bytes `u_j` and the signed bytes `s_j` of each lane, modulo `2^32`.
    fn add_products(self, unsigned: Self, signed: Self) -> Self;
}

/// A unit that keeps `R` rows of `V` vectors of sums in registers.
pub struct ByLanes<L, const R: usize, const V: usize>(PhantomData<L>);

impl<L: I8Lanes, const R: usize, const V: usize> Unit for ByLanes<L, R, V> {
    type Vectors = L::Vectors;

    #[inline(always)]
    fn multiply<const SIGNED: bool>(rows: &[TileRows], columns: &[TileColumns], extent: Extent, sums: &mut TileSums) {
        const { assert!(V * L::WIDTH <= 32 && 32 % (V * L::WIDTH) == 0 && 32 % R == 0 && L::WIDTH <= 16) };
        let steps = extent.groups.div_ceil(STEP_GROUPS);
        let (rows, columns) = (&rows[..steps], &columns[..steps]);
        let excess = if SIGNED { excesses::<L>(rows, extent) } else { [0; SIDE] };
        for column in (0..extent.columns).step_by(V * L::WIDTH) {
            for row in (0..extent.rows).step_by(R) {
                let mut tile = [[L::zero(); V]; R];
                for (lanes, excess) in tile.iter_mut().zip(&excess[row..]) {
                    *lanes = [L::splat(excess.wrapping_neg()); V];
                }
                register_tile::<L, R, V, SIGNED>(rows, row, columns, column, extent.groups, &mut tile);
                for (lanes, sums) in tile.iter().zip(&mut sums[row..]) {
                    for (lanes, sums) in lanes.iter().zip(sums[column..].chunks_exact_mut(L::WIDTH)) {
                        lanes.store(sums);
                    }
                }
            }
        }
    }
}

/// The highest bit of each byte: a signed byte with it flipped is the unsigned one of a number 128 larger.
const SIGNS: u32 = 0x8080_8080;

/// 128 times the sum of the terms of each row: by so much are products too large with columns that are 128 too large.
#[inline(always)]
fn excesses<L: I8Lanes>(rows: &[TileRows], extent: Extent) -> [u32; SIDE] {
    let mut excesses = [0u32; SIDE];
    for (row, excess) in excesses.iter_mut().enumerate().take(extent.rows) {
        let mut sums = L::zero();
        for (step, rows) in rows.iter().enumerate() {
            // Groups behind the last one may hold anything.
            let mut words = [0; STEP_GROUPS];
            let count = STEP_GROUPS.min(extent.groups - step * STEP_GROUPS);
            words[..count].copy_from_slice(&rows[row][..count]);
            for words in words.chunks_exact(L::WIDTH) {
                sums = sums.add_products(L::splat(SIGNS), L::load(words));
            }
        }
        let mut lanes = [0i32; STEP_GROUPS];
        sums.store(&mut lanes);
        for lane in lanes {
            *excess = excess.wrapping_add(lane as u32);
        }
    }
    excesses
}

#[inline(always)]
fn register_tile<L: I8Lanes, const R: usize, const V: usize, const SIGNED: bool>(
    rows: &[TileRows],
    row: usize,
    columns: &[TileColumns],
    column: usize,
    groups: usize,
    sums: &mut [[L; V]; R],
) {
    for (step, (rows, columns)) in rows.iter().zip(columns).enumerate() {
        let rows: &[[u32; STEP_GROUPS]; R] = rows[row..].first_chunk().expect("whole register tiles");
        for group in 0..STEP_GROUPS.min(groups - step * STEP_GROUPS) {
            let mut unsigned = [L::zero(); V];
            for (v, lanes) in unsigned.iter_mut().enumerate() {
                let at = column + v * L::WIDTH;
                *lanes = L::load(&columns[at / 16][group][at % 16..]);
                if SIGNED {
                    *lanes = lanes.xor(L::splat(SIGNS));
                }
            }
            for r in 0..R {
                let signed = L::splat(rows[r][group]);
                for v in 0..V {
                    sums[r][v] = sums[r][v].add_products(unsigned[v], signed);
                }
            }
        }
    }
}

/// Eight integers in plain Rust.
#[derive(Clone, Copy)]
pub struct I8PlainLanes([i32; 8]);

impl I8Lanes for I8PlainLanes {
    const WIDTH: usize = 8;
    type Vectors = vectors::PlainVector;

    #[inline(always)]
    fn zero() -> Self {
        I8PlainLanes([0; 8])
    }

    #[inline(always)]
    fn splat(x: u32) -> Self {
        I8PlainLanes([x as i32; 8])
    }

    #[inline(always)]
    fn load(from: &[u32]) -> Self {
        I8PlainLanes(from.first_chunk::<8>().expect("eight words").map(|word| word as i32))
    }

    #[inline(always)]
    fn store(self, to: &mut [i32]) {
        to[..8].copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        let mut lanes = self.0;
        for (lane, other) in lanes.iter_mut().zip(other.0) {
            *lane ^= other;
        }
        I8PlainLanes(lanes)
    }

    #[inline(always)]
    fn add_products(self, unsigned: Self, signed: Self) -> Self {
        let mut sums = self.0;
        for (lane, sum) in sums.iter_mut().enumerate() {
            let (u, s) = (unsigned.0[lane] as u32, signed.0[lane]);
            for byte in 0..4 {
                let (u, s) = ((u >> (8 * byte)) & 0xff, (s << (24 - 8 * byte)) >> 24);
                *sum = sum.wrapping_add(u as i32 * s);
            }
        }
        I8PlainLanes(sums)
    }
}

#[cfg(target_arch = "aarch64")]
pub mod neon;
#[cfg(target_arch = "x86_64")]
pub mod x86;

#[cfg(test)]
mod tests;
