//! Sums of parts of an operand, four of four, and rotations of pairs of rows.
#![forbid(unsafe_code)]

use crate::kernels::i16::lanes::{INTERLEAVED, Lanes, Task};
use crate::kernels::i16::micro::{BIAS, Prime, reduce};
use crate::kernels::i16::product::{Panels, difference, sum};
use crate::kernels::i16::tables::Rotation;
use crate::plan::BLOCK;

/// Residues of the rows of a panel that are worked on together.
pub const GROUP: usize = INTERLEAVED * BLOCK;

/// Some rows of one panel.
pub type Group = [i16; GROUP];

/// Four sums of four parts.
pub trait Rule {
    /// The sums.
    fn sums<L: Lanes>(&self, parts: [&Group; 4]) -> [Group; 4];
}

/// Forms the four sums of all panels.
pub struct FormSums<'a, R> {
    /// Which sums.
    pub rule: R,
    /// The parts.
    pub parts: [Panels<'a>; 4],
    /// Panels of each part.
    pub panels: usize,
    /// Rows, a multiple of [`INTERLEAVED`].
    pub depth: usize,
    /// Where the sums go, one after the other.
    pub out: &'a mut [i16],
}

impl<R: Rule> Task for FormSums<'_, R> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let FormSums { rule, parts, panels, depth, out } = self;
        let size = depth * BLOCK;
        assert!(depth.is_multiple_of(INTERLEAVED) && out.len() == 4 * panels * size);
        for panel in 0..panels {
            let [a, b, c, d] = parts.map(|part| part.rows(panel, &(0..depth)).as_chunks::<GROUP>().0);
            for (group, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
                for (number, sum) in rule.sums::<L>([a, b, c, d]).iter().enumerate() {
                    out[(number * panels + panel) * size + group * GROUP..][..GROUP].copy_from_slice(sum);
                }
            }
        }
    }
}

/// Sum number `number` of those that [`FormSums`] wrote.
pub fn formed(out: &[i16], number: usize, depth: usize) -> Panels<'_> {
    let size = out.len() / 4;
    Panels { residues: &out[number * size..][..size], stride: depth * BLOCK }
}

/// The sums of `symmetric`.
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

/// The sums of the left operand of `winograd`.
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

/// The sums of the right operand of `winograd`.
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
