//! The register tile: sums of products of pairs, and their residues.
//!
//! A sum `S` is held as `S + 2^15`, so that its halves give `S = 2^16 h + l` with signed halves `h` and `l` after one
//! bit is turned over; folding takes `l + (2^16 mod p) h`, by one multiplication of pairs. `math::bound::i16_sum_pairs`
//! bounds the number of pairs between folds. Residues are taken by Montgomery's reduction, of two vectors at a time.
#![forbid(unsafe_code)]

use super::lanes::{HalfwordLanes, Lanes};
use crate::math::modulus::{Modulus, inverse_modulo_word};
use crate::plan::BLOCK;

/// Columns of the right operand of a tile.
pub const COLUMNS: usize = 8;

/// The largest number of lanes of a tile.
pub const MOST_LANES: usize = 48;

/// Vectors of lanes of a tile of a conversion: residues are taken of two vectors at a time, and in AVX-512 those of
/// two are a cache line.
pub const CONVERTED_VECTORS: usize = 2;

/// The largest number of lanes of a tile of a conversion.
pub const MOST_CONVERTED: usize = 32;

/// Pairs of entries of a block of a product plane.
const BLOCK_PAIRS: usize = BLOCK * BLOCK / 2;

/// A tile: sums, a column after the other, small enough to be lifted.
#[repr(C, align(64))]
pub struct I16Tile([[i32; MOST_LANES]; COLUMNS]);

impl I16Tile {
    /// A tile of zeros.
    pub fn new() -> I16Tile {
        I16Tile([[0; MOST_LANES]; COLUMNS])
    }

    /// The balanced residues of a column of a conversion: those of lane `i` of both vectors are pair `i`.
    #[inline(always)]
    pub fn residues<L: Lanes>(&self, column: usize, prime: &Prime) -> L {
        let sums = &self.0[column];
        let first = fold(L::load(sums), prime.lift);
        let second = fold(L::load(&sums[L::WIDTH..]), prime.lift);
        least(first.pair(second), first.pair_upper(second), prime).sub_halves(L::splat(prime.half))
    }
}

/// The offset with which a sum is held.
pub const BIAS: i32 = 1 << 15;

/// A prime, ready for reductions; each constant is a pair of 16-bit integers.
#[derive(Clone, Copy, Debug)]
pub struct Prime {
    /// 1 and `2^16` modulo the prime, balanced.
    pub fold: i32,
    /// `2^16` and `2^32` modulo the prime, balanced: they contain the factor by which Montgomery's reduction divides.
    pub lift: i32,
    /// The prime twice.
    pub prime: i32,
    /// Its inverse modulo `2^16`, twice.
    pub inverse: i32,
    /// `(p - 1) / 2`, twice.
    pub half: i32,
}

impl Prime {
    /// The constants of an odd prime below `2^13`.
    pub fn new(prime: u64) -> Prime {
        let modulus = Modulus::new(prime);
        let power = |bits: u32| modulus.balanced(modulus.reduce(&[1 << bits])) as i32;
        let inverse = inverse_modulo_word(prime) as u16;
        Prime {
            fold: pair(1, power(16)),
            lift: pair(power(16), power(32)),
            prime: pair(prime as i32, prime as i32),
            inverse: pair(i32::from(inverse), i32::from(inverse)),
            half: pair(prime as i32 / 2, prime as i32 / 2),
        }
    }

    /// The prime.
    #[inline(always)]
    pub fn value(&self) -> i16 {
        self.prime as i16
    }
}

/// A prime, and the rows of pairs after which sums of products modulo it are folded.
#[derive(Clone, Copy)]
pub struct FoldedPrime {
    /// The prime.
    pub prime: Prime,
    /// Rows of pairs.
    pub interval: usize,
}

/// Two 16-bit integers side by side.
pub fn pair(low: i32, high: i32) -> i32 {
    (low & 0xffff) | high << 16
}

/// Pairs of rows of the left operand, `stride` integers apart.
#[derive(Clone, Copy)]
pub struct PairStrip<'a> {
    /// Whole rows of pairs.
    pub words: &'a [i32],
    /// Integers from one row to the next.
    pub stride: usize,
    /// Integers at the front of each row that are not multiplied.
    pub skipped: usize,
}

/// Panels of pairs of rows, in place: the left factors of as many vectors as they fill.
#[derive(Clone, Copy)]
pub struct PanelStrip<'a> {
    /// Rows of pairs, from the first row that is multiplied in the first panel on.
    pub pairs: &'a [[i32; BLOCK]],
    /// Rows of pairs from one panel to the next.
    pub stride: usize,
    /// Number of panels. Lanes behind the last panel repeat it: their results are not read.
    pub panels: usize,
}

/// Left factors of a tile.
pub trait Left: Copy {
    /// `sums + left^T right`, for columns `first..first + C` and rows of pairs from `start` on. By value: sums behind a
    /// reference would be stored each time.
    fn multiply_add<L: Lanes, const V: usize, const C: usize>(
        self,
        start: usize,
        sums: [[L; V]; C],
        right: &[[i32; COLUMNS]],
        first: usize,
    ) -> [[L; V]; C];
}

impl Left for PairStrip<'_> {
    #[inline(always)]
    fn multiply_add<L: Lanes, const V: usize, const C: usize>(
        self,
        start: usize,
        mut sums: [[L; V]; C],
        right: &[[i32; COLUMNS]],
        first: usize,
    ) -> [[L; V]; C] {
        // Whole rows, so that no bound is checked in the loop.
        for (row, factors) in self.words[start * self.stride..].chunks_exact(self.stride).zip(right) {
            let words = &row[self.skipped..self.skipped + V * L::WIDTH];
            let mut lanes = [L::splat(0); V];
            for v in 0..V {
                lanes[v] = L::load(&words[v * L::WIDTH..]);
            }
            sums = L::add_products(sums, lanes, factors, first);
        }
        sums
    }
}

impl Left for PanelStrip<'_> {
    #[inline(always)]
    fn multiply_add<L: Lanes, const V: usize, const C: usize>(
        self,
        start: usize,
        mut sums: [[L; V]; C],
        right: &[[i32; COLUMNS]],
        first: usize,
    ) -> [[L; V]; C] {
        let (rows, each) = (right.len(), L::WIDTH / BLOCK);
        // All of one length, so that no bound is checked in the loop.
        let mut panels = [[&self.pairs[..rows]; 2]; V];
        for (v, halves) in panels.iter_mut().enumerate() {
            for (half, pairs) in halves.iter_mut().enumerate() {
                let panel = (v * each + half % each).min(self.panels - 1);
                *pairs = &self.pairs[panel * self.stride + start..][..rows];
            }
        }
        for row in 0..rows {
            let mut lanes = [L::splat(0); V];
            for v in 0..V {
                lanes[v] = L::join(&panels[v][0][row], &panels[v][1][row]);
            }
            sums = L::add_products(sums, lanes, &right[row], first);
        }
        sums
    }
}

/// The factors of a tile: one stretch of rows of pairs after the other.
pub trait TileFactors: Copy {
    /// Its left factors.
    type Left: Left;
    /// Stretches.
    fn stretches(&self) -> usize;
    /// The factors of one of them: as many rows of the left ones count as there are right ones.
    fn stretch(&self, number: usize) -> (Self::Left, &[[i32; COLUMNS]]);
}

impl<'a> TileFactors for (PairStrip<'a>, &[[i32; COLUMNS]]) {
    type Left = PairStrip<'a>;

    #[inline(always)]
    fn stretches(&self) -> usize {
        1
    }

    #[inline(always)]
    fn stretch(&self, _number: usize) -> (PairStrip<'a>, &[[i32; COLUMNS]]) {
        *self
    }
}

/// The rest of a sum after its halves are multiplied with a pair of constants.
#[inline(always)]
fn fold<L: Lanes>(sum: L, constants: i32) -> L {
    let bias = L::splat(BIAS);
    bias.multiply_add(sum.xor(bias), L::splat(constants))
}

/// The lower halves of two vectors of sums, and the upper ones in the same order.
#[inline(always)]
fn halves<L: HalfwordLanes>([first, second]: [L; 2]) -> (L, L) {
    (first.low_halves(second), first.high_halves(second))
}

/// The balanced residues of `2^-16 S` plus `(p - 1) / 2`, in `0..p`, from the lower and the upper halves of sums `S`,
/// held as `S + 2^15`, that `math::bound` calls small enough ([`crate::math::bound::i16_montgomery_fits`]).
///
/// With `m` the product of the lower half and the inverse of `p`, `S + 2^15 - m p` is `2^16` times the difference of
/// the upper halves. That is congruent to `2^-16 S` and a half, so less `(p + 1) / 2` it is the residue: plus
/// `(p - 1) / 2`, which makes residues least ones, that is less 1.
#[inline(always)]
pub fn least<L: Lanes>(low: L, high: L, prime: &Prime) -> L {
    let p = L::splat(prime.prime);
    let multiples = low.multiply_halves(L::splat(prime.inverse)).multiply_halves_top(p);
    let above = high.sub_halves(multiples).sub_halves(L::splat(pair(1, 1)));
    above.min_halves(above.add_halves(p))
}

/// Sums of `left^T right` for `V` vectors of lanes in `C` columns, folded every `interval` rows, into the tile.
#[inline(always)]
fn columns<L: Lanes, const V: usize, const C: usize>(
    factors: impl TileFactors,
    first: usize,
    primes: &[Prime; COLUMNS],
    interval: usize,
    tile: &mut I16Tile,
) {
    let mut sums = [[L::splat(BIAS); V]; C];
    // Rows until sums must be folded, whichever stretches they lie in.
    let mut room = interval;
    for number in 0..factors.stretches() {
        let (left, right) = factors.stretch(number);
        let mut done = 0;
        while done < right.len() {
            let count = room.min(right.len() - done);
            sums = left.multiply_add(done, sums, &right[done..][..count], first);
            (done, room) = (done + count, room - count);
            if room == 0 {
                sums = fold_all(sums, primes, first);
                room = interval;
            }
        }
    }
    // Through memory: a long loop over registers would keep the sums there from the start.
    for (sums, out) in sums.iter().zip(&mut tile.0[first..]) {
        for (v, sum) in sums.iter().enumerate() {
            sum.store(&mut out[v * L::WIDTH..]);
        }
    }
}

/// All sums folded.
#[inline(always)]
fn fold_all<L: Lanes, const V: usize, const C: usize>(
    mut sums: [[L; V]; C],
    primes: &[Prime; COLUMNS],
    first: usize,
) -> [[L; V]; C] {
    for (c, sums) in sums.iter_mut().enumerate() {
        for sum in sums {
            *sum = fold(*sum, primes[first + c].fold);
        }
    }
    sums
}

/// Sums of `left^T right` for `vectors` vectors of lanes, at most `V`, in all columns.
#[inline(always)]
fn all_columns<L: Lanes, const V: usize, const C: usize>(
    vectors: usize,
    factors: impl TileFactors,
    primes: &[Prime; COLUMNS],
    interval: usize,
    tile: &mut I16Tile,
) {
    const { assert!(V <= 3 && COLUMNS.is_multiple_of(C)) };
    for first in (0..COLUMNS).step_by(C) {
        if vectors == V {
            columns::<L, V, C>(factors, first, primes, interval, tile);
        } else if vectors == 2 {
            columns::<L, 2, C>(factors, first, primes, interval, tile);
        } else {
            columns::<L, 1, C>(factors, first, primes, interval, tile);
        }
    }
}

/// Sums of `left^T right` for [`CONVERTED_VECTORS`] vectors of lanes, whose residues are [`I16Tile::residues`]: those
/// of column `c` are folded modulo `primes[c]`.
#[inline(always)]
pub fn convert<L: Lanes, const C: usize>(
    factors: impl TileFactors,
    primes: &[Prime; COLUMNS],
    interval: usize,
    tile: &mut I16Tile,
) {
    all_columns::<L, CONVERTED_VECTORS, C>(CONVERTED_VECTORS, factors, primes, interval, tile);
}

/// Residues of `left^T right` modulo one prime as blocks of a product plane, those of the panels from number `first`
/// on, added to the contents of `out` where it `adds`.
#[inline(always)]
pub fn blocks<L: Lanes, const V: usize, const C: usize>(
    vectors: usize,
    factors: impl TileFactors,
    field: &FoldedPrime,
    tile: &mut I16Tile,
    first: usize,
    out: &mut [i32],
    adds: bool,
) {
    let FoldedPrime { prime, interval } = field;
    all_columns::<L, V, C>(vectors, factors, &[*prime; COLUMNS], *interval, tile);
    let (p, half) = (L::splat(prime.prime), L::splat(prime.half));
    let (panels, parts) = (L::WIDTH / BLOCK, BLOCK_PAIRS / L::WIDTH);
    let out = out.as_chunks_mut::<BLOCK_PAIRS>().0;
    for v in 0..vectors {
        let mut columns = [L::splat(0); COLUMNS / 2];
        for (at, two) in columns.iter_mut().enumerate() {
            let even = L::load(&tile.0[2 * at][v * L::WIDTH..]);
            let odd = L::load(&tile.0[2 * at + 1][v * L::WIDTH..]);
            let (low, high) = halves([fold(even, prime.lift), fold(odd, prime.lift)]);
            *two = least(low, high, prime);
        }
        let values = L::in_blocks(columns);
        for panel in 0..panels {
            // The first panel and the last one may have neighbours in their vectors that are not wanted.
            let number = v * panels + panel;
            if number < first || number - first >= out.len() {
                continue;
            }
            let block = &mut out[number - first];
            for part in 0..parts {
                let (value, place) = (values[panel * parts + part], &mut block[part * L::WIDTH..]);
                if adds {
                    // Of two balanced residues plus half a prime: unsigned, a number out of range is larger.
                    let sum = L::load(place).add_halves(value);
                    let sum = sum.min_halves(sum.add_halves(p));
                    sum.min_halves(sum.sub_halves(p)).sub_halves(half).store(place);
                } else {
                    value.sub_halves(half).store(place);
                }
            }
        }
    }
}

/// Sums of `left^T right` for `V` vectors of lanes, those of a column `stride` integers after the one before.
#[inline(always)]
pub fn sums<L: Lanes, const V: usize, const C: usize>(
    left: PairStrip<'_>,
    right: &[[i32; COLUMNS]],
    out: &mut [i32],
    stride: usize,
) {
    for first in (0..COLUMNS).step_by(C) {
        let sums = left.multiply_add(0, [[L::splat(0); V]; C], right, first);
        for c in 0..C {
            for v in 0..V {
                sums[c][v].store(&mut out[(first + c) * stride + v * L::WIDTH..]);
            }
        }
    }
}
