//! Sums and differences of residues, and the sums of parts of an operand that the sub-cubic schemes multiply: four of
//! four, some with rotations of pairs of rows.
#![forbid(unsafe_code)]

use super::lanes::{INTERLEAVED, Lanes};
use super::micro::{BIAS, Prime, reduce};
use super::tables::Rotation;
use crate::plan::BLOCK;

/// Residues of the rows of a panel that are worked on together.
pub const GROUP: usize = INTERLEAVED * BLOCK;

/// Some rows of one panel.
pub type Group = [i16; GROUP];

/// Four sums of four parts.
pub trait Rule: Copy {
    /// The sums.
    fn sums<L: Lanes>(&self, parts: [&Group; 4]) -> [Group; 4];
}

/// The sums of `levels::symmetric`.
#[derive(Clone, Copy)]
pub struct Symmetric {
    /// The prime.
    pub prime: Prime,
    /// What stands for a square root of -1.
    pub rotation: Rotation,
}

impl Rule for Symmetric {
    #[inline(always)]
    fn sums<L: Lanes>(&self, [a11, a12, a21, a22]: [&Group; 4]) -> [Group; 4] {
        let prime = self.prime.value();
        let s1 = rotate::<L>(&self.prime, self.rotation, &difference(prime, a21, a11));
        let s2 = difference(prime, a22, &rotate::<L>(&self.prime, self.rotation, a21));
        let s3 = difference(prime, &s1, a22);
        [s1, s2, s3, sum(prime, &s3, a12)]
    }
}

/// The sums of the left operand of `levels::winograd`.
#[derive(Clone, Copy)]
pub struct WinogradLeft(pub Prime);

impl Rule for WinogradLeft {
    #[inline(always)]
    fn sums<L: Lanes>(&self, [a11, a12, a21, a22]: [&Group; 4]) -> [Group; 4] {
        let prime = self.0.value();
        let s1 = sum(prime, a21, a22);
        let s2 = difference(prime, &s1, a11);
        [s1, s2, difference(prime, a11, a21), difference(prime, a12, &s2)]
    }
}

/// The sums of the right operand of `levels::winograd`.
#[derive(Clone, Copy)]
pub struct WinogradRight(pub Prime);

impl Rule for WinogradRight {
    #[inline(always)]
    fn sums<L: Lanes>(&self, [b11, b12, b21, b22]: [&Group; 4]) -> [Group; 4] {
        let prime = self.0.value();
        let t1 = difference(prime, b12, b11);
        let t2 = difference(prime, b22, &t1);
        [t1, t2, difference(prime, b22, b12), difference(prime, b21, &t2)]
    }
}

/// Pairs of rows times a skew-orthogonal matrix of order 2.
#[inline(always)]
fn rotate<L: Lanes>(prime: &Prime, rotation: Rotation, rows: &Group) -> Group {
    let (mut first, mut second) = ([0; BLOCK], [0; BLOCK]);
    L::interleave(rows, [&mut first, &mut second]);
    let pairs = [first, second];
    let (pairs, bias) = (pairs.as_flattened(), L::splat(BIAS));
    let mut out = [0; GROUP];
    for at in (0..GROUP / 2).step_by(L::WIDTH) {
        let lanes = L::load(&pairs[at..]);
        let even = bias.multiply_add(lanes, L::splat(rotation.even));
        let odd = bias.multiply_add(lanes, L::splat(rotation.odd));
        let mut halves = [0; 2 * GROUP];
        reduce([even, odd], prime).store_halves(&mut halves);
        for pair in 0..L::WIDTH / BLOCK {
            let row = 2 * (at + pair * BLOCK);
            out[row..][..BLOCK].copy_from_slice(&halves[pair * BLOCK..][..BLOCK]);
            out[row + BLOCK..][..BLOCK].copy_from_slice(&halves[L::WIDTH + pair * BLOCK..][..BLOCK]);
        }
    }
    out
}

/// `a + b` for balanced residues.
///
/// Unsigned, what lies outside of the range is larger by a prime taken off or added than without: the lesser counts.
/// Damaged words become some others.
#[inline(always)]
pub fn sum<const N: usize>(prime: i16, a: &[i16; N], b: &[i16; N]) -> [i16; N] {
    let (prime, half, mut sums) = (prime as u16, prime as u16 / 2, [0; N]);
    for at in 0..N {
        sums[at] = least(prime, (a[at] as u16).wrapping_add(b[at] as u16).wrapping_add(half)).wrapping_sub(half) as i16;
    }
    sums
}

/// `c := c + value` where it `adds`, else `c := value`, for balanced residues.
#[inline(always)]
pub fn put<const N: usize>(prime: i16, c: &mut [i16; N], value: &[i16; N], adds: bool) {
    *c = if adds { sum(prime, c, value) } else { *value };
}

/// `a - b` for balanced residues.
#[inline(always)]
pub fn difference<const N: usize>(prime: i16, a: &[i16; N], b: &[i16; N]) -> [i16; N] {
    let (prime, half, mut sums) = (prime as u16, prime as u16 / 2, [0; N]);
    for at in 0..N {
        sums[at] = least(prime, (a[at] as u16).wrapping_sub(b[at] as u16).wrapping_add(half)).wrapping_sub(half) as i16;
    }
    sums
}

/// The least residue of an integer in `-p..2p`.
#[inline(always)]
fn least(prime: u16, integer: u16) -> u16 {
    let integer = integer.min(integer.wrapping_add(prime));
    integer.min(integer.wrapping_sub(prime))
}
