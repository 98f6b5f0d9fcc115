//! The register tile: sums of products of pairs, and their residues.
//!
//! A sum `S` is held as `S + 2^15`, so that its halves give `S = 2^16 h + l` with signed halves `h` and `l` after one
//! bit is turned over; folding takes `l + (2^16 mod p) h`, by one multiplication of pairs. `math::bound::i16_sum_pairs`
//! says when it must be done, `I16_FOLDS` how often before a residue is taken.
#![forbid(unsafe_code)]

use super::lanes::Lanes;
use crate::math::bound::I16_FOLDS;

/// Columns of the right operand of a tile.
pub const COLUMNS: usize = 8;

/// Most lanes of a tile.
pub const MOST_LANES: usize = 48;

/// A tile: a column after the other.
#[repr(C, align(64))]
pub struct Tile {
    /// Sums that were folded once.
    sums: [[i32; MOST_LANES]; COLUMNS],
    /// Their residues.
    pub residues: [[i16; MOST_LANES]; COLUMNS],
}

impl Tile {
    /// A tile of zeros.
    pub fn new() -> Tile {
        Tile { sums: [[0; MOST_LANES]; COLUMNS], residues: [[0; MOST_LANES]; COLUMNS] }
    }
}

/// What a sum is held with.
const BIAS: i32 = 1 << 15;

/// A prime, ready for reductions.
#[derive(Clone, Copy, Debug)]
pub struct Prime {
    /// The prime, and 0 in the upper half.
    pub prime: i32,
    /// 1, and `2^16` modulo the prime, balanced, in the upper half.
    pub fold: i32,
    /// The inverse in single precision.
    pub inverse: f32,
}

/// Pairs of rows of the left operand, `stride` integers apart.
#[derive(Clone, Copy)]
pub struct Strip<'a> {
    /// The first row's first integer begins the slice.
    pub words: &'a [i32],
    /// From one row to the next.
    pub stride: usize,
}

/// `sums + left^T right`, for columns `first..first + C`. By value: sums behind a reference would be stored each time.
#[inline(always)]
fn multiply_add<L: Lanes, const V: usize, const C: usize>(
    mut sums: [[L; V]; C],
    left: Strip<'_>,
    right: &[[i32; COLUMNS]],
    first: usize,
) -> [[L; V]; C] {
    for (row, factors) in right.iter().enumerate() {
        let words = &left.words[row * left.stride..][..V * L::WIDTH];
        let mut lanes = [L::splat(0); V];
        for v in 0..V {
            lanes[v] = L::load(&words[v * L::WIDTH..]);
        }
        for c in 0..C {
            let factor = L::splat(factors[first + c]);
            for v in 0..V {
                sums[c][v] = sums[c][v].multiply_add(lanes[v], factor);
            }
        }
    }
    sums
}

#[inline(always)]
fn fold<L: Lanes>(sum: L, prime: &Prime) -> L {
    let bias = L::splat(BIAS);
    bias.multiply_add(sum.xor(bias), L::splat(prime.fold))
}

/// What is left of a sum is folded until its quotient is exact; the result is balanced.
#[inline(always)]
fn residue<L: Lanes>(sum: L, prime: &Prime) -> L {
    let mut sum = sum;
    for _ in 1..I16_FOLDS {
        sum = fold(sum, prime);
    }
    let sum = sum.sub(L::splat(BIAS));
    let quotient = sum.times(prime.inverse);
    sum.sub(L::splat(0).multiply_add(quotient, L::splat(prime.prime)))
}

/// Residues of `left^T right`, column `c` modulo `primes[c]`, for `C` columns; sums are folded every `interval` rows.
#[inline(always)]
fn columns<L: Lanes, const V: usize, const C: usize>(
    (left, right): (Strip<'_>, &[[i32; COLUMNS]]),
    first: usize,
    (primes, interval): (&[Prime; COLUMNS], usize),
    tile: &mut Tile,
) {
    let mut sums = [[L::splat(BIAS); V]; C];
    for (number, right) in right.chunks(interval).enumerate() {
        let words = &left.words[number * interval * left.stride..];
        sums = multiply_add(sums, Strip { words, ..left }, right, first);
        for c in 0..C {
            for sum in &mut sums[c] {
                *sum = fold(*sum, &primes[first + c]);
            }
        }
    }
    // Through memory: a long loop over registers would keep the sums there from the start.
    for (sums, out) in sums.iter().zip(&mut tile.sums[first..]) {
        for (v, sum) in sums.iter().enumerate() {
            sum.store(&mut out[v * L::WIDTH..]);
        }
    }
    let sums = tile.sums.iter().zip(&mut tile.residues);
    for ((sums, residues), prime) in sums.zip(primes).skip(first).take(C) {
        for v in 0..V {
            residue(L::load(&sums[v * L::WIDTH..]), prime).narrow(&mut residues[v * L::WIDTH..]);
        }
    }
}

/// Residues of `left^T right` for `vectors` vectors of lanes, at most `V`, in all columns.
#[inline(always)]
pub fn residues<L: Lanes, const V: usize, const C: usize>(
    vectors: usize,
    operands: (Strip<'_>, &[[i32; COLUMNS]]),
    moduli: (&[Prime; COLUMNS], usize),
    tile: &mut Tile,
) {
    const { assert!(V <= 3 && COLUMNS.is_multiple_of(C)) };
    for first in (0..COLUMNS).step_by(C) {
        if vectors == V {
            columns::<L, V, C>(operands, first, moduli, tile);
        } else if vectors == 2 {
            columns::<L, 2, C>(operands, first, moduli, tile);
        } else {
            columns::<L, 1, C>(operands, first, moduli, tile);
        }
    }
}

/// Sums of `left^T right` for `V` vectors of lanes, those of a column `stride` integers after the one before.
#[inline(always)]
pub fn sums<L: Lanes, const V: usize, const C: usize>(
    left: Strip<'_>,
    right: &[[i32; COLUMNS]],
    (out, stride): (&mut [i32], usize),
) {
    for first in (0..COLUMNS).step_by(C) {
        let sums = multiply_add([[L::splat(0); V]; C], left, right, first);
        for c in 0..C {
            for v in 0..V {
                sums[c][v].store(&mut out[(first + c) * stride + v * L::WIDTH..]);
            }
        }
    }
}
