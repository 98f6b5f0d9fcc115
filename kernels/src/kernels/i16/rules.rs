//! Sums and differences of residues, and the sums of parts of an operand that the sub-cubic schemes multiply: four of
//! four, some with rotations of pairs of rows. They are formed of rows in place: pairs are made of the sums.
//!
//! A sum is reduced once: up to three balanced residues lie between `-3 (p - 1) / 2` and `3 (p - 1) / 2`, up to five
//! between `-5 (p - 1) / 2` and `5 (p - 1) / 2`, which fits in 16 bits. Unsigned, a value below zero is larger than
//! with a prime added, and one above a prime is larger than with a prime subtracted: the lesser counts. Damaged words
//! become some others.
#![forbid(unsafe_code)]

use super::lanes::{HalfwordLanes, InterleavedRows, Lanes, PAIRS, RowPairs};
use super::micro::{BIAS, Prime, least};
use super::tables::Rotation;

/// Four sums of four parts.
pub trait Rule: Copy {
    /// Sum number `N` of rows of 8 columns: as pairs of rows where it is `PAIRED`, else as they are.
    fn sum<L: Lanes, const N: usize, const PAIRED: bool>(&self, parts: [L; 4]) -> L;

    /// All of them, row by row.
    #[inline(always)]
    fn sums<L: Lanes>(&self, parts: [&InterleavedRows; 4]) -> [InterleavedRows; 4] {
        let [mut first, mut second, mut third, mut fourth] = [[0; 2 * PAIRS]; 4];
        for part in 0..PAIRS / L::WIDTH {
            let rows = load_rows::<L>(parts, part);
            self.sum::<L, 0, false>(rows).store_rows(&mut first, part);
            self.sum::<L, 1, false>(rows).store_rows(&mut second, part);
            self.sum::<L, 2, false>(rows).store_rows(&mut third, part);
            self.sum::<L, 3, false>(rows).store_rows(&mut fourth, part);
        }
        [first, second, third, fourth]
    }
}

/// Vector number `part` of the rows of each part.
#[inline(always)]
pub fn load_rows<L: RowPairs>([a, b, c, d]: [&InterleavedRows; 4], part: usize) -> [L; 4] {
    [L::load_rows(a, part), L::load_rows(b, part), L::load_rows(c, part), L::load_rows(d, part)]
}

/// Rows as they are, or as pairs of them.
#[inline(always)]
fn in_form<L: RowPairs, const PAIRED: bool>(rows: L) -> L {
    if PAIRED { rows.paired() } else { rows }
}

/// The sums of `levels::symmetric`.
#[derive(Clone, Copy)]
pub struct SymmetricSums {
    /// The prime.
    pub prime: Prime,
    /// The pair of residues that stands for a square root of -1.
    pub rotation: Rotation,
}

impl SymmetricSums {
    /// Pairs of rows times a skew-orthogonal matrix of order 2, plus `(p - 1) / 2`: in `0..p`. The operand may be the
    /// difference of two residues: `math::bound::i16_montgomery_fits` holds for its products.
    #[inline(always)]
    fn rotated<L: Lanes, const PAIRED: bool>(&self, rows: L) -> L {
        let (bias, pairs) = (L::splat(BIAS), rows.paired());
        let even = bias.multiply_add(pairs, L::splat(self.rotation.even));
        let odd = bias.multiply_add(pairs, L::splat(self.rotation.odd));
        let rotated = least(even.pair(odd), even.pair_upper(odd), &self.prime);
        if PAIRED { rotated } else { rotated.apart() }
    }
}

impl Rule for SymmetricSums {
    #[inline(always)]
    fn sum<L: Lanes, const N: usize, const PAIRED: bool>(&self, [a11, a12, a21, a22]: [L; 4]) -> L {
        let (prime, half) = (L::splat(self.prime.prime), L::splat(self.prime.half));
        let rotated = self.rotated::<L, PAIRED>(if N == 1 { a21 } else { a21.sub_halves(a11) });
        let a22_again = in_form::<L, PAIRED>(a22);
        match N {
            0 => rotated.sub_halves(half),
            1 => near(prime, a22_again.sub_halves(rotated).add_halves(half).add_halves(half)).sub_halves(half),
            2 => near(prime, rotated.sub_halves(a22_again)).sub_halves(half),
            _ => {
                let other = in_form::<L, PAIRED>(a12.sub_halves(a22));
                near(prime, rotated.add_halves(other)).sub_halves(half)
            }
        }
    }
}

/// The sums of the left operand of `levels::winograd`.
#[derive(Clone, Copy)]
pub struct WinogradLeft(pub Prime);

impl Rule for WinogradLeft {
    #[inline(always)]
    fn sum<L: Lanes, const N: usize, const PAIRED: bool>(&self, [a11, a12, a21, a22]: [L; 4]) -> L {
        let (prime, half) = (L::splat(self.0.prime), L::splat(self.0.half));
        let sum = match N {
            0 => near(prime, a21.add_halves(a22).add_halves(half)),
            1 => near(prime, a21.add_halves(a22).sub_halves(a11).add_halves(half)),
            2 => near(prime, a11.sub_halves(a21).add_halves(half)),
            _ => far(prime, a12.sub_halves(a21).sub_halves(a22).add_halves(a11).add_halves(half)),
        };
        in_form::<L, PAIRED>(sum.sub_halves(half))
    }
}

/// The sums of the right operand of `levels::winograd`.
#[derive(Clone, Copy)]
pub struct WinogradRight(pub Prime);

impl Rule for WinogradRight {
    #[inline(always)]
    fn sum<L: Lanes, const N: usize, const PAIRED: bool>(&self, [b11, b12, b21, b22]: [L; 4]) -> L {
        let (prime, half) = (L::splat(self.0.prime), L::splat(self.0.half));
        let sum = match N {
            0 => near(prime, b12.sub_halves(b11).add_halves(half)),
            1 => near(prime, b22.sub_halves(b12).add_halves(b11).add_halves(half)),
            2 => near(prime, b22.sub_halves(b12).add_halves(half)),
            _ => far(prime, b21.sub_halves(b22).add_halves(b12).sub_halves(b11).add_halves(half)),
        };
        in_form::<L, PAIRED>(sum.sub_halves(half))
    }
}

/// The least residues of integers in `-p..2p`: sums of up to three balanced residues, and `(p - 1) / 2`.
#[inline(always)]
fn near<L: HalfwordLanes>(prime: L, integers: L) -> L {
    let integers = integers.min_halves(integers.add_halves(prime));
    integers.min_halves(integers.sub_halves(prime))
}

/// The least residues of integers in `-2p..3p`: sums of up to five balanced residues, and `(p - 1) / 2`.
#[inline(always)]
fn far<L: HalfwordLanes>(prime: L, integers: L) -> L {
    let twice = prime.add_halves(prime);
    let integers = integers.min_halves(integers.add_halves(twice));
    let integers = integers.min_halves(integers.sub_halves(twice));
    integers.min_halves(integers.sub_halves(prime))
}

/// Balanced residues of a block of a plane.
pub type ResidueBlock = [i16; crate::plan::BLOCK_WORDS];

/// `a + b` without a reduction.
#[inline(always)]
pub fn plus(a: &ResidueBlock, b: &ResidueBlock) -> ResidueBlock {
    let mut sums = *a;
    for (sum, b) in sums.iter_mut().zip(b) {
        *sum = sum.wrapping_add(*b);
    }
    sums
}

/// `c := c + value` where it `adds`, else `c := value`, for balanced residues and a value of up to four of them.
#[inline(always)]
pub fn put<const N: usize>(prime: i16, c: &mut [i16; N], value: &[i16; N], adds: bool) {
    let (prime, half) = (prime as u16, prime as u16 / 2);
    for (c, value) in c.iter_mut().zip(value) {
        let sum = (if adds { *c } else { 0 }).wrapping_add(*value) as u16;
        let sum = sum.wrapping_add(half);
        let sum = sum.min(sum.wrapping_add(2 * prime));
        let sum = sum.min(sum.wrapping_sub(2 * prime));
        *c = sum.min(sum.wrapping_sub(prime)).wrapping_sub(half) as i16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::i16::lanes::{I16Isa, I16Task};
    use crate::math::family_i16::i16_primes;
    use crate::math::modulus::Modulus;
    use crate::plan::BLOCK_WORDS;
    use std::array::from_fn;

    /// All sums of one rule: as they are packed, then as they are formed.
    struct Sums<'a, R> {
        rule: R,
        parts: &'a [InterleavedRows; 4],
        out: &'a mut [[InterleavedRows; 4]; 2],
    }

    impl<R: Rule> Sums<'_, R> {
        #[inline(always)]
        fn packed<L: Lanes, const N: usize>(&mut self) {
            let mut pairs = [[0; 8]; 2];
            for part in 0..PAIRS / L::WIDTH {
                let sum = self.rule.sum::<L, N, true>(load_rows(self.parts.each_ref(), part));
                let [first, second] = &mut pairs;
                sum.store_paired([first, second], part);
            }
            self.out[0][N] = from_fn(|at| (pairs[at / 16][at % 8] >> (16 * (at / 8 % 2))) as i16);
        }
    }

    impl<R: Rule> I16Task for Sums<'_, R> {
        #[inline(always)]
        fn run<L: Lanes, const V: usize, const C: usize>(mut self) {
            self.packed::<L, 0>();
            self.packed::<L, 1>();
            self.packed::<L, 2>();
            self.packed::<L, 3>();
            self.out[1] = self.rule.sums::<L>(self.parts.each_ref());
        }
    }

    fn sums(isa: I16Isa, rule: impl Rule, parts: &[InterleavedRows; 4]) -> [[InterleavedRows; 4]; 2] {
        let mut out = [[[0; 2 * PAIRS]; 4]; 2];
        isa.run(Sums { rule, parts, out: &mut out });
        out
    }

    fn balanced(prime: i64, value: i64) -> i16 {
        let least = value.rem_euclid(prime);
        (if least > prime / 2 { least - prime } else { least }) as i16
    }

    /// Every sum agrees with its formula, at all ends of the range at once and in between, for the longest primes and
    /// the shortest.
    #[test]
    fn sums_are_those_of_their_formulas() {
        for prime in [i16_primes()[0], i16_primes()[100], *i16_primes().last().unwrap()] {
            let (a, b) = Modulus::new(prime).squares_of_minus_one();
            let (field, rotation, p) = (Prime::new(prime), Rotation::new(Modulus::new(prime)), prime as i64);
            for case in 0..300 {
                let half = p / 2;
                let mut state = case as u64 + 1;
                let mut value = |part: usize, at: usize| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(97);
                    match case {
                        0..81 => (case / 3i64.pow(part as u32) % 3 - 1) * half,
                        _ if at.is_multiple_of(5) => (state >> 40) as i64 % 3 * half - half,
                        _ => (state >> 33) as i64 % p - half,
                    }
                };
                let parts: [InterleavedRows; 4] = from_fn(|part| from_fn(|at| value(part, at) as i16));
                let of = |part: usize, at: usize| i64::from(parts[part][at]);
                // Rows 2 i and 2 i + 1 times (a, -b; b, a).
                let rotated = |at: usize, value: &dyn Fn(usize) -> i64| {
                    let (upper, lower) = (at / 16 * 16 + at % 8, at / 16 * 16 + 8 + at % 8);
                    let (a, b) = (a as i64, b as i64);
                    if at == upper { a * value(upper) + b * value(lower) } else { a * value(lower) - b * value(upper) }
                };
                let left = |at| {
                    let (s1, s3) = (of(2, at) + of(3, at), of(0, at) - of(2, at));
                    [s1, s1 - of(0, at), s3, of(1, at) - s1 + of(0, at)]
                };
                let right = |at| {
                    let t1 = of(1, at) - of(0, at);
                    [t1, of(3, at) - t1, of(3, at) - of(1, at), of(2, at) - of(3, at) + t1]
                };
                let symmetric = |at| {
                    let s1 = rotated(at, &|at| of(2, at) - of(0, at));
                    let s3 = s1 - of(3, at);
                    [s1, of(3, at) - rotated(at, &|at| of(2, at)), s3, s3 + of(1, at)]
                };
                let want = |sums: &dyn Fn(usize) -> [i64; 4]| -> [InterleavedRows; 4] {
                    from_fn(|number| from_fn(|at| balanced(p, sums(at)[number])))
                };
                let (left, right, symmetric) = (want(&left), want(&right), want(&symmetric));
                for isa in I16Isa::all() {
                    let name = isa.name();
                    assert!(sums(isa, WinogradLeft(field), &parts) == [left; 2], "{name} {prime} {case}");
                    assert!(sums(isa, WinogradRight(field), &parts) == [right; 2], "{name} {prime} {case}");
                    let rule = SymmetricSums { prime: field, rotation };
                    assert!(sums(isa, rule, &parts) == [symmetric; 2], "{name} {prime} {case}");
                }
            }
        }
    }

    /// An integer as the reductions for sums of up to three residues and of up to five leave it.
    struct Reduce<'a> {
        prime: i16,
        integer: i16,
        out: &'a mut [i16; 2],
    }

    impl I16Task for Reduce<'_> {
        #[inline(always)]
        fn run<L: Lanes, const V: usize, const C: usize>(self) {
            let (prime, integers) = (L::splat(self.prime.into()), L::splat(self.integer.into()));
            for (out, reduced) in self.out.iter_mut().zip([near(prime, integers), far(prime, integers)]) {
                let mut lanes = [0; 16];
                reduced.store(&mut lanes);
                *out = lanes[0] as i16;
            }
        }
    }

    /// Three balanced residues at their ends are reduced on the near way and four are not; five on the far way, and of
    /// six those at the lower end are not.
    #[test]
    fn no_more_residues_are_reduced_than_there_is_room_for() {
        for prime in [i16_primes()[0], *i16_primes().last().unwrap()] {
            let (p, half) = (prime as i64, prime as i64 / 2);
            for end in [half, -half] {
                let reduced = |count: i64| {
                    let mut out = [0; 2];
                    let integer = (count * end + half) as i16;
                    I16Isa::detect().run(Reduce { prime: prime as i16, integer, out: &mut out });
                    out.map(|least| i64::from(least) == (count * end + half).rem_euclid(p))
                };
                assert!((1..=3).all(|count| reduced(count) == [true; 2]), "{prime} {end}");
                assert!(reduced(4) == [false, true] && reduced(5) == [false, true], "{prime} {end}");
                assert!(reduced(6) == [false, end > 0], "{prime} {end}");
                let put_of = |count: i64| {
                    let mut c: ResidueBlock = [end as i16; BLOCK_WORDS];
                    put(prime as i16, &mut c, &[((count - 1) * end) as i16; BLOCK_WORDS], true);
                    c[0] == balanced(p, count * end)
                };
                assert!((1..=5).all(put_of) && put_of(6) == (end > 0), "{prime} {end}");
            }
            let mut c: ResidueBlock = [-1; BLOCK_WORDS];
            put(prime as i16, &mut c, &plus(&[1; BLOCK_WORDS], &[p as i16 / 2; BLOCK_WORDS]), false);
            assert_eq!(c[63], balanced(p, p / 2 + 1));
        }
    }
}
